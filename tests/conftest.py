"""Fixtures of all tests, the number of tests at a time, and the settings of hypothesis."""

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numba
import pytest
import scipy.stats  # noqa: F401  # it loads parts of NumPy late, as numba does: see below
from hypothesis import HealthCheck, settings

import dpwitness as dpw
from dpwitness.health import before_search, dependence, new_process
from running import scaled

# pytester drops modules that an inner run imports. Modules that numba imports when it first compiles can be loaded
# only once a process.
numba.njit("float64(float64)")(lambda x: x)
pytest_plugins = ["pytester"]

# A shell that starts the tests in the background ignores Ctrl-C, and child processes would inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """The number of workers, one more than cores: many tests wait for a process, a deadline or a hang."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + 1


def pytest_collection_finish() -> None:
    """Freeze the objects of the collection, which live to the end, so that collections of garbage leave them out.

    numba's compiler makes much garbage; the collections took a fifteenth of the suite's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real histograms of the repository."""
    return Path(__file__).resolve().parents[1] / "data"


def noisy(rng, queries, epsilon):
    """The first number of a list with Gaussian noise, a mechanism that numba compiles."""
    return queries[0] + rng.standard_normal() / epsilon


@pytest.fixture(scope="session")
def loaded() -> None:
    """Import all modules that a check imports on its way, for tests that run pytest within pytest.

    An inner run drops modules that it has imported, and numba's late modules can be loaded only once a process.
    """
    dpw.check(noisy, epsilon=1.0, neighbours=dpw.queries(1), seed=1, runs=50_000)


def told_here(question: new_process.Request | new_process.FunctionPlace, further: new_process.Further) -> list[object]:
    """The answers of a new process and of all further processes, given by this process."""
    if isinstance(question, new_process.FunctionPlace):
        return [new_process.answer(question)]
    numbers = range(1, 1 + further.processes)
    return [new_process.answer(question), *(new_process.answer(replace(question, number=k), further) for k in numbers)]


@contextmanager
def without_processes() -> Iterator[None]:
    """A health check that starts no processes, with an eighth of the further runs and a fifth of the time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(new_process, "_ask_processes", told_here)
        for check in (before_search, new_process):
            patched.setattr(check, "CHECK_SECONDS", 0.2)
        patched.setattr(dependence, "MOST_SERIES_RUNS", dependence.MOST_SERIES_RUNS // 8)
        yield


@pytest.fixture
def asked_here() -> Iterator[None]:
    """The health check of `without_processes`, since a refutation takes a second or more with new processes.

    Tests that refute many times, or that are about steps after the health check, ask for this fixture by name. All
    other tests run the health check of users. Fixtures of whole files that make results use `without_processes`.
    """
    with without_processes():
        yield


settings.register_profile("dpwitness", deadline=None, derandomize=True)  # tests repeat their examples
#: The profile of a campaign: more examples (fewer with $DPWITNESS_SEEDS), new in every run; a failing example is
#: printed with a blob to repeat it.
settings.register_profile(
    "campaign", deadline=None, max_examples=max(scaled(100), 40), print_blob=True, database=None,
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine breaks no law
)  # fmt: skip
settings.load_profile("dpwitness")


def pytest_configure(config: pytest.Config) -> None:
    """Draw new examples in a campaign; for other tests `--hypothesis-profile=campaign` does the same."""
    if config.option.markexpr == "campaign" and not config.getoption("hypothesis_profile", None):
        settings.load_profile("campaign")
