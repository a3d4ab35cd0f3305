"""What was proved is kept, whatever happens after it: an error, Ctrl-C, a function that no other process can load."""

import asyncio
import contextlib
import json
import signal
from itertools import count

import numba
import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.api import curve, loop
from dpwitness.errors import ClusterLost, DependentRuns, MechanismRaised, MechanismTimeout
from dpwitness.health import new_process, refutation
from dpwitness.results.saved import result_from_json
from dpwitness.results.verdict import verdict_from_json

PAIR = dpw.pairs(([0.0], [1.0]))
FEW = {"neighbours": PAIR, "seed": 1, "search_runs": 2_000, "workers": 1}
NOISY = "def f(rng, data):\n    return data[0] + rng.laplace(0, SCALE)\n"


def leaks(rng, data, size):
    return data[0] + rng.laplace(0, 0.2, size)


def private(rng, data, size):
    return data[0] + rng.laplace(0, 1, size)


def first(rng, data):
    return next(iter(data)) + rng.laplace(0, 0.2)


def of_exec(text, **space):
    """What `exec` makes without a name of a module: a function whose `__module__` is None."""
    exec(text, space)
    return space["f"]


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what NumPy raises in this process
@pytest.mark.parametrize("claim", [1.0, "zcdp:0.5"])
@pytest.mark.parametrize("mechanism", [leaks, private])
def test_what_numpy_raises_in_the_users_code_it_does_not_raise_here(mechanism, claim):
    with np.errstate(all="raise"):
        verdict = dpw.check(mechanism, claim=claim, **{**FEW, "runs": 20_000})
        assert verdict.refuted == (mechanism is leaks)
        assert json.loads(json.dumps(verdict.to_json()))
        assert str(verdict)
        assert np.geterr()["under"] == "raise"


class Elsewhere:
    """A callable object whose class says no module, and which has no text."""

    __module__ = None
    __name__ = 7

    def __call__(self, rng, data):
        return data[0] + rng.laplace(0, 0.2)

    def __repr__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [
        pytest.param(of_exec(NOISY, SCALE=0.2), {}, marks=pytest.mark.campaign),
        (of_exec(NOISY, SCALE=0.2), {"outcome": float}),
        (of_exec(NOISY, SCALE=0.2, __name__=7), {"outcome": float}),
        pytest.param(numba.njit(of_exec(NOISY, SCALE=0.2)), {"outcome": float}, marks=pytest.mark.campaign),
        (eval("lambda rng, data: data[0] + rng.laplace(0, 0.2)", {}), {"outcome": float}),
        (Elsewhere(), {"outcome": float}),
    ],
    ids=["compiled", "plain", "a number for a module", "numba", "lambda", "object"],
)
def test_a_function_that_no_other_process_can_load_is_a_violation_with_a_note(mechanism, more):
    verdict = dpw.check(mechanism, claim=1.0, runs=20_000, **FEW, **more)
    assert isinstance(verdict, dpw.Violation)
    assert "compared with" in verdict.notes[0]
    assert verdict_from_json(json.loads(json.dumps(verdict.to_json()))).counts == verdict.counts
    assert "VIOLATED" in str(verdict)


@pytest.mark.usefixtures("asked_here")  # the subject is what comes behind the evidence
def test_a_parameter_without_a_text_loses_nothing():
    def scaled(rng, data, size, by):
        return data[0] + rng.laplace(0, 0.2, size)

    verdict = dpw.check(scaled, claim=1.0, runs=20_000, **FEW, parameters={"by": Elsewhere()})
    assert isinstance(verdict, dpw.Violation)
    assert verdict.parameters == {"by": "of type Elsewhere"}


def test_a_new_process_is_asked_even_where_further_calls_fail(monkeypatch):
    monkeypatch.setattr(refutation, "further_calls", lambda *_: None)
    answers = tuple(new_process.InputAnswer(runs=1_000, hits=(0,), always=None) for _ in range(2))
    monkeypatch.setattr(new_process, "ask", lambda question, further: [answers])
    with pytest.raises(DependentRuns, match="in a new process"):
        dpw.check(leaks, claim=1.0, runs=20_000, **FEW)


def test_inputs_that_cannot_be_written_are_a_note():
    class Local(list):
        """Of a class that no other process can find."""

    verdict = dpw.check(first, claim=1.0, runs=20_000, **FEW | {"neighbours": [(Local([0.0]), Local([1.0]))]})
    assert isinstance(verdict, dpw.Violation)
    assert "it cannot be written for a new process (" in verdict.notes[0]


def interrupt(*_):
    signal.raise_signal(signal.SIGINT)


def time_out(*_):
    pytest.fail("Timeout (>30s)")


@pytest.mark.parametrize(
    ("function", "against", "said"),
    [
        *(
            (interrupt, against, "interrupted before its runs were tested for independence")
            for against in (True, False)
        ),
        (time_out, True, "ended by Failed: Timeout (>30s) before its runs were tested for independence"),
        (time_out, False, None),  # of a pass it is the test's own end
    ],
)
def test_what_ends_a_check_while_its_result_is_questioned_keeps_it(function, against, said, monkeypatch):
    monkeypatch.setattr(loop, "check_refutation", function)
    monkeypatch.setattr(loop, "check_pass", function)
    with pytest.raises(pytest.fail.Exception, match="Timeout") if said is None else contextlib.nullcontext():
        verdict = dpw.check(leaks if against else private, claim=1.0, runs=20_000, **FEW)
        assert isinstance(verdict, dpw.Violation) == against
        assert said in verdict.notes
    if function is interrupt:
        assert verdict.ended == "interrupted"
        bound = dpw.bound(leaks, epsilon=1.0, runs=20_000, **FEW)
        assert (bound.ended, bound.lower_bound > 1) == ("interrupted", True)


class Panic(BaseException):
    """As Rust's, which Polars raises: no `Exception`."""


@pytest.mark.usefixtures("asked_here")  # the subject is what comes behind the evidence
@pytest.mark.parametrize(
    "error",
    [Panic(), SystemExit(3), GeneratorExit(), asyncio.CancelledError(), pytest.fail.Exception("no")],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_run_raises_behind_the_evidence_keeps_it(error, monkeypatch):
    """Further calls, the explanation and the histogram of the report run the mechanism then."""
    refuted = []

    def late(rng, data, size):
        if refuted:
            raise error
        return leaks(rng, data, size)

    def questioned(*given):
        refuted.append(True)
        return refutation.check_refutation(*given)

    monkeypatch.setattr(loop, "check_refutation", questioned)
    verdict = dpw.check(late, claim=1.0, runs=20_000, **FEW)
    assert isinstance(verdict, dpw.Violation)
    assert verdict.notes[0].startswith("its runs were not compared with each other: ")
    assert verdict.ended == "refuted"


def fails_late(claimed):
    """Raises in every call behind the first so many."""
    calls = count()

    def late(rng, data, size):
        if next(calls) > claimed:
            raise ValueError("its budget is used up")
        return leaks(rng, data, size)

    return late


@pytest.mark.usefixtures("asked_here")  # the subject is what comes behind the evidence
def test_a_run_that_fails_behind_the_evidence_ends_the_runs():
    few = FEW | {"search_runs": 20_000}
    calls = count()
    dpw.bound(lambda rng, data, size: (next(calls), leaks(rng, data, size))[1], claim=dpw.PureDP(1.0), runs=1, **few)
    enough = next(calls) + 200  # those of the search, whose number depends on measured times, and some more
    bound = dpw.bound(fails_late(enough), claim=dpw.PureDP(1.0), runs=10**7, **few)
    assert bound.ended == "failed"
    assert bound.lower_bound > 1
    assert bound.notes[0].startswith("the runs ended with an error: late raised ValueError (its budget is used up)")
    assert "stopped early" in str(bound)
    with pytest.raises(MechanismRaised, match="its budget is used up"):  # nothing was proved before it
        dpw.check(fails_late(enough), claim=5.0, runs=10**7, **few)


LINE = {"claims": [0.5, 1.5], "runs": 500, **FEW, "search_runs": 500}


@pytest.mark.usefixtures("asked_here")  # three lines of a curve, each refuted
@pytest.mark.parametrize(
    ("error", "ended", "lines"),
    [
        (MechanismTimeout("no time"), "time", [1.0, 3.0]),
        (MechanismRaised("no luck"), "failed", [1.0]),
        (ClusterLost("gone"), "cluster lost", [1.0]),
        (KeyboardInterrupt(), "interrupted", [1.0]),
    ],
    ids=["time", "failed", "cluster lost", "interrupted"],
)
def test_a_curve_keeps_the_lines_that_are_finished(error, ended, lines, monkeypatch):
    made = curve._line

    def line(problem, runner, effort, tests, how):
        if how[0] == 2.0:
            raise error
        return made(problem, runner, effort, tests, how)

    monkeypatch.setattr(curve, "_line", line)
    found = dpw.curve(leaks, epsilon=[1.0, 2.0, 3.0], **LINE)
    assert [line.epsilon for line in found.lines] == lines
    assert found.ended == ended
    missing = next(note for note in found.notes if "ε = 2" in note)
    assert missing == f"no line for ε = 2: {str(error) or ended}"
    assert ("not begun: ε = 3" in found.notes) == (3.0 not in lines)
    assert "stopped early" in str(found)
    again = result_from_json(json.loads(json.dumps(found.to_json())))
    assert (again.lines, again.ended, again.notes) == (found.lines, found.ended, found.notes)
    with pytest.raises(type(error)):
        dpw.curve(leaks, epsilon=[2.0], **LINE)


@pytest.mark.usefixtures("asked_here")  # the subject is what comes behind the evidence
def test_dependent_runs_of_one_line_are_none_of_the_others(monkeypatch):
    made = curve._line

    def line(problem, runner, effort, tests, how):
        if how[0] == 2.0:
            raise DependentRuns("remembered")
        return made(problem, runner, effort, tests, how)

    monkeypatch.setattr(curve, "_line", line)
    with pytest.raises(DependentRuns):
        dpw.curve(leaks, epsilon=[1.0, 2.0], **LINE)


@pytest.mark.usefixtures("asked_here")  # the subject is what comes behind the evidence
def test_ctrl_c_behind_the_p_values_of_a_line_keeps_the_line(monkeypatch):
    monkeypatch.setattr(curve, "check_refutation", interrupt)
    found = dpw.curve(leaks, epsilon=[1.0, 2.0], **LINE)
    assert (found.ended, len(found.lines)) == ("interrupted", 1)
    assert "not begun: ε = 2" in found.notes
    assert np.all(np.array(found.lines[0].p_values) <= 1)
