"""An executor of the user's own makes the runs: the same counts as here, and it stays open."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import dpwitness as dpw

FEW = {"epsilon": 1.0, "neighbours": [([0.0], [1.0])], "seed": 5, "runs": 4_000, "search_runs": 1_000}


def noisy(rng, data):
    return data[0] + rng.laplace(0, 0.5)


def leaves_seldom(rng, data):
    if rng.random() < 0.01:
        sys.exit(0)
    return noisy(rng, data)


def leaves_of_many(rng, data, size):
    sys.exit(0)


class Counting(ThreadPoolExecutor):
    """Threads that know how often they were asked."""

    asked = 0

    def submit(self, *given, **named):
        self.asked += 1
        return super().submit(*given, **named)


@pytest.mark.campaign
@pytest.mark.parametrize("function", ["check", "bound"])
def test_counts_on_an_executor_are_those_of_this_process(function):
    here = getattr(dpw, function)(noisy, workers=1, **FEW)
    with Counting(2) as executor:
        there = getattr(dpw, function)(noisy, executor=executor, **FEW)
        assert executor.asked
        assert executor.submit(int).result() == 0  # it is open
    assert there.counts == here.counts
    assert there.witness.event == here.witness.event
    again = {"seed": 6, "runs": 2_000}
    with Counting(2) as executor:
        replayed = dpw.replay(here, noisy, claim=1.0, alpha=1e-6, executor=executor, **again)
        assert executor.asked
    assert replayed.counts == dpw.replay(here, noisy, claim=1.0, alpha=1e-6, workers=1, **again).counts


def test_a_verdict_says_why_its_executor_made_no_more_runs():
    def ends(stage, done, size, note):
        if stage == "confirm" and done:
            executor.shutdown(wait=False)

    given = {**FEW, "epsilon": 2.0, "runs": 10**7, "bits": False}
    with Counting(1) as executor:
        verdict = dpw.check(noisy, executor=executor, progress=ends, **given)
    assert verdict.ended == "cluster lost"
    assert verdict.counts.runs
    assert "stopped early: the cluster or executor does not answer any more" in str(verdict)
    said = "the runs ended with an error: the executor does not take any more work (cannot schedule new futures after"
    assert any(note.startswith(said) for note in verdict.notes)


def test_what_is_no_executor_is_refused():
    with pytest.raises(dpw.InvalidParameter, match=r"executor='local' must be an executor of concurrent\.futures"):
        dpw.check(noisy, executor="local", **FEW)
    with Counting(1) as executor, pytest.raises(dpw.InvalidParameter, match="give one of the two"):
        dpw.check(noisy, executor=executor, cluster="tcp://127.0.0.1:9", **FEW)
    assert not executor.asked


@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
@pytest.mark.parametrize(
    ("leaves", "errors"), [(leaves_seldom, "raise"), (leaves_seldom, "outcome"), (leaves_of_many, "raise")]
)
def test_a_run_that_calls_exit_ends_no_script(leaves, errors):
    """With code 0 it would look like one whose claims passed; it is no outcome either: it ends the user's program."""
    message = rf"{leaves.__name__} called sys\.exit\(0\): take that out, it ends the check"
    with pytest.raises(dpw.MechanismCrashed, match=message):
        dpw.check(leaves, errors=errors, workers=1, **FEW)
    with Counting(1) as executor, pytest.raises(dpw.MechanismCrashed, match=message):
        dpw.check(leaves, errors=errors, executor=executor, **FEW)
