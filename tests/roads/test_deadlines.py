"""What counts as the mechanism's time, and what is left when it is over."""

import gc
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

import dpwitness as dpw
import slow_to_load
from dpwitness import problem
from dpwitness.claims import ApproxDP
from dpwitness.errors import DependentRuns, MechanismTimeout, SlowMechanism
from dpwitness.machine import COMPILATION_STOPWATCH, Deadline, Overdue, compiled_within
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair, Relation, pairs
from dpwitness.search.objectives import GrowthAt
from running import ordered, search

PAIRS = pairs(([0.0], [1.0]))
LAST = 3600.0  # so long that nothing here waits for it


SLOW_IMPORT = """
import random, sys, time

class Slowly:
    def find_spec(self, name, path=None, target=None):
        if name in ("numba", "scipy.stats"):
            time.sleep(6)

sys.meta_path.insert(0, Slowly())
import dpwitness as dpw

def near(data):
    return sum(data) + random.uniform(0, 0.5)

print(dpw.check(near, epsilon=1.0, neighbours=dpw.pairs(([0.0], [1.0])), max_time=4, seed=1).refuted)
"""


@pytest.mark.campaign
def test_slow_imports_of_a_check_take_no_time_from_the_runs(tmp_path):
    """On a busy machine SciPy and numba took 5 s to import, which were all that a case of a sweep had."""
    (tmp_path / "slow_import.py").write_text(SLOW_IMPORT, encoding="utf-8")
    ran = subprocess.run([sys.executable, "slow_import.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.stdout == "True\n", ran.stderr


def test_tasks_that_compile_are_waited_for_beyond_their_deadline():
    def compiles():
        COMPILATION_STOPWATCH.start()
        time.sleep(0.3)
        COMPILATION_STOPWATCH.stop()
        return "done"

    assert list(ordered([compiles], 1, Deadline(time.monotonic() + 0.1))) == ["done"]
    assert list(ordered([lambda: time.sleep(0.3)], 1, Deadline(time.monotonic() + 0.1))) == [None]


@pytest.fixture
def free():
    """What sets free whatever waits for it: at the end of the test, at the latest."""
    event = threading.Event()
    yield event
    event.set()


@dataclass(frozen=True)
class MadeSlowly(Relation):
    """Pairs that take ten seconds to make, and as many unusual ones."""

    made: list[str] = field(default_factory=list)

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        return self._pairs("usual")

    def unusual(self, *, centre=0.0, scale=1.0):
        return self._pairs("unusual")

    def _pairs(self, kind):
        for k in range(1, 2_000):
            time.sleep(0.005)
            self.made.append(kind)
            yield Pair(0.0, float(k) + 0.5 * (kind == "unusual"))

    def contains(self, pair, data=None):
        return True


def test_making_the_pairs_of_a_search_leaves_time_to_run_them():
    def noisy(rng, value):
        return value + rng.laplace()

    ready, relation = PythonMechanism(Signature.of(noisy, {})), MadeSlowly()
    objective = GrowthAt(claim=ApproxDP(1.0))
    found, spent = search(ready, relation, objective, seed=1, budget=2_000, deadline=time.monotonic() + 1.0)
    assert found
    assert spent > 0
    assert set(relation.made) == {"usual", "unusual"}


def test_a_check_of_a_slow_mechanism_ends_with_a_verdict_and_not_with_an_error():
    """Eight paired search runs take four times as long as half of the time that there is."""

    def slow(rng, value):
        time.sleep(0.1)
        return value + rng.random()

    # At so large an α few runs would do to refute the claim, so that it is worth trying.
    settings = {"claim": 1.0, "neighbours": [(0.0, 1e-9)], "outcome": float, "seed": 1, "alpha": 0.2}
    verdict = dpw.check(slow, **settings, max_time=1.6)
    assert verdict.ended == "time"
    assert verdict.search_runs < 8
    assert verdict.counts.runs > 0


def test_a_mechanism_that_hangs_in_its_first_run_ends_in_an_error(free, monkeypatch):
    monkeypatch.setattr("dpwitness.problem.FIRST_RUNS_SECONDS", 0.2)

    def hangs(rng, value):
        free.wait(LAST)
        return value + rng.random()

    settings = {"claim": 1.0, "neighbours": [(0.0, 1.0)], "outcome": float}
    with pytest.raises(MechanismTimeout, match=r"hangs did not finish its first runs in 0.2 s: give more time"):
        dpw.check(hangs, **settings, max_time=0.1)


def test_an_interrupt_leaves_a_mechanism_that_hangs_behind(free, monkeypatch):
    monkeypatch.setattr("dpwitness.runs.executors.TASK_GRACE_SECONDS", 0.1)

    class Interrupted:
        """A deadline at which the user has had enough."""

        patience = 0.0

        @property
        def left(self):
            raise KeyboardInterrupt

    waiting = ordered([lambda: free.wait(LAST)], 1, Interrupted())
    with pytest.raises(KeyboardInterrupt):
        next(waiting)  # with a join that waits for the thread this test would take an hour
    assert not free.is_set()


def test_nobody_waits_longer_than_the_time_for_what_hangs(free):
    looks = ordered(iter([lambda: "first", lambda: free.wait(LAST)]), 1, time.monotonic() + 0.3)
    assert next(looks) == "first"
    looks.close()
    assert not free.is_set()
    threading.Timer(5, free.set).start()  # a join without an end would wait for this

    def raises():
        raise OSError("no luck")

    with pytest.raises(OSError, match="no luck"):  # nor for what runs beside a task that raises
        list(ordered([raises, lambda: free.wait(LAST)], 2, time.monotonic() + 0.3))
    assert not free.is_set()


def nested(rng, data):
    """A list of another type after each step: numba's types never end, and its compiler takes a minute to see that."""
    x = []
    for _ in range(20):
        x = [x]
    return len(x) + rng.laplace()


def doubled(rng, data):
    return 2 * data[0] + rng.laplace()


@pytest.fixture
def no_callbacks():
    """What is raised in a callback of the garbage collector, or in a finalizer that it calls, is lost.

    Hypothesis has a callback, once a test has used it, and earlier tests leave objects with finalizers.
    """
    callbacks = gc.callbacks[:]
    gc.collect()
    gc.callbacks.clear()
    gc.disable()
    yield
    gc.enable()
    gc.callbacks[:] = callbacks


@pytest.mark.usefixtures("no_callbacks")
def test_a_function_that_numba_compiles_for_long_runs_as_plain_python():
    with pytest.warns(SlowMechanism, match=r"compiling takes more than 0\.2 s, a share of max_time"):
        mechanism = as_mechanism(nested, np.array([1.0]), compile_seconds=0.2)
    assert type(mechanism) is PythonMechanism
    assert as_mechanism(doubled, np.array([1.0])).compiled  # the compiler is not left locked


class Finalized:
    """An object whose finalizer takes as long as all else that its thread does."""

    def __del__(self):
        for _ in range(2_000):
            pass


@pytest.mark.usefixtures("no_callbacks")
def test_an_overdue_compiler_is_not_interrupted_in_a_finalizer():
    """Python prints what a finalizer raises, and goes on: pytest makes an error of it."""

    def compiles():
        COMPILATION_STOPWATCH.start()
        try:
            while True:
                Finalized()
                for _ in range(2_000):
                    pass
        finally:
            COMPILATION_STOPWATCH.stop()

    for _ in range(8):
        with pytest.raises(Overdue):
            compiled_within(0.01, compiles)


@pytest.mark.parametrize("name", ["kept", "pooled", "noisy"])
@pytest.mark.filterwarnings("ignore::dpwitness.SlowMechanism")
def test_a_new_process_gets_no_more_time_than_the_check_and_the_message_says_that_time_was_missing(name, monkeypatch):
    """It imports for an hour; without a limit this test would wait for a minute."""
    monkeypatch.setattr(problem, "OVERRUN_SECONDS", 0.1)
    outcome = float if name == "kept" else None
    limits = {"outcome": outcome, "max_time": 0.5, "runs": 4_000, "seed": 1, "workers": 1}
    late = r"a new process did not answer within 1(\.\d+)? s: give a larger max_time"
    if name == "kept":
        with pytest.raises(DependentRuns, match=f"kept returned .* draws the same noise in every run .*{late}"):
            dpw.check(slow_to_load.kept, claim=1.0, neighbours=PAIRS, **limits)
        return
    if name == "pooled":
        with pytest.raises(DependentRuns, match=f"^pooled may remember its noise, .*: {late}"):
            dpw.check(slow_to_load.pooled, claim=1.0, neighbours=PAIRS, **limits)
        return
    verdict = dpw.check(slow_to_load.noisy, claim=1.0, neighbours=PAIRS, **limits)
    assert isinstance(verdict, dpw.Violation)
    (note,) = verdict.notes
    assert re.search(late, note)
