"""Shared fixtures, and how many tests run at a time."""

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

# pytester drops what an inner run imports. What numba imports when it first compiles can be loaded only once a process.
numba.njit("float64(float64)")(lambda x: x)
pytest_plugins = ["pytester"]

# Whoever starts the tests in the background may have Ctrl-C ignored, and what they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One worker more than cores: many tests wait for a process, a deadline or a hang."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + 1


def pytest_collection_finish() -> None:
    """Leave what lives to the end out of the collections of garbage: numba's compiler makes so much that is soon gone.

    A fifteenth of the suite's time, measured.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real histograms of the repository."""
    return Path(__file__).resolve().parents[1] / "data"


def noisy(rng, queries, epsilon):
    """Noise that is compiled, and a check of it that takes all roads."""
    return queries[0] + rng.standard_normal() / epsilon


@pytest.fixture(scope="session")
def loaded() -> None:
    """All that a check imports on its way, for tests that run pytest within pytest.

    An inner run drops what it has imported, and numba's late modules can be loaded only once a process.
    """
    dpw.check(noisy, epsilon=1.0, neighbours=dpw.queries(1), seed=1, runs=50_000)


def told_here(question: new_process.Request | new_process.FunctionPlace, further: new_process.Further) -> list[object]:
    """What this process answers for a new one and for all further ones."""
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
    """The health check of `without_processes`, since a refutation takes a second or more with another one.

    Only tests that ask for it by name have it: those that refute many times, or are about what comes after the health
    check. All others run what users run. Fixtures of whole files that make results use `without_processes`.
    """
    with without_processes():
        yield


settings.register_profile("dpwitness", deadline=None, derandomize=True)  # tests assert no times, and repeat
#: New examples in every run, and more of them (of $DPWITNESS_SEEDS fewer); one that fails is printed as what finds it
#: again.
settings.register_profile(
    "campaign", deadline=None, max_examples=max(scaled(100), 40), print_blob=True, database=None,
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine is no fault of the law
)  # fmt: skip
settings.load_profile("dpwitness")


def pytest_configure(config: pytest.Config) -> None:
    """Draw new examples in a campaign, as `pytest -m hypothesis --hypothesis-profile=campaign` does for all others."""
    if config.option.markexpr == "campaign" and not config.getoption("hypothesis_profile", None):
        settings.load_profile("campaign")
