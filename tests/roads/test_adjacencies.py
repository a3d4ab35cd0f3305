"""A claim that leaves the adjacency open: one verdict for each, at half of α, and none is lost."""

import math
from dataclasses import replace

import numpy as np
import pytest

import dpwitness as dpw
from conftest import without_processes
from dpwitness.api.check import check_each_adjacency
from dpwitness.errors import CompiledDisagrees, DependentRuns, MechanismRaised
from dpwitness.problem import Effort, Statement, prepare

FEW = {"seed": 1, "runs": 20_000, "search_runs": 5_000, "workers": 1}


def total(rng, data, epsilon, size):
    """Enough noise for one record in [−1, 1] more, not for one that goes from −1 to 1."""
    return np.sum(data) + rng.laplace(0, 1 / epsilon, size)


def mean(rng, data, size):
    """Enough for either: a record more moves it by 2 at most, another record too."""
    return np.sum(data) / max(len(data), 1) + rng.laplace(0, 20, size)


EITHER = dpw.records(dpw.numbers(-1, 1), size=(0, 5), adjacency=None)


@pytest.fixture(scope="module")
def found():
    with without_processes():
        return dpw.check(total, epsilon=1.0, neighbours=EITHER, **FEW)


def test_a_violation_of_either_is_a_violation_and_the_other_is_told(found):
    assert isinstance(found, dpw.Violation)
    assert found.witness.relation.adjacency == "replace-one"
    (other,) = found.others
    assert isinstance(other, dpw.NotRefuted)
    assert other.witness.relation.adjacency == "add-remove"
    assert found.alpha == other.alpha == 1e-6 / 2
    told = str(found)
    assert told.index("VIOLATED") < told.index("adjacency='replace-one'") < told.index("NOT REFUTED")
    assert told.index("NOT REFUTED") < told.index("adjacency='add-remove'")


def test_the_margin_is_that_of_the_adjacency_nearest_to_a_refutation(found):
    (passed,) = found.others
    nearer = replace(passed, others=(replace(passed, log_e_value=passed.log_e_value + 1),))
    assert nearer.margin == pytest.approx(passed.margin - 1)


def outcomes_of(*steps):
    """What `check_each_adjacency` makes of checks that end like this: a verdict, or an error that is raised."""
    problem, runner = prepare(Statement(mechanism=mean, claim=1.0, neighbours=EITHER), Effort(seed=1, workers=1))
    left, shares = list(steps), []

    def check(problem, runner, effort):
        shares.append((effort.alpha, runner.max_time, problem.relation.adjacency))
        step = left.pop(0)
        if isinstance(step, BaseException):
            raise step
        return step

    return check_each_adjacency(problem, runner, Effort(seed=1, workers=1), check), shares


def test_each_has_half_of_alpha_and_what_time_is_left(found):
    _, shares = outcomes_of(found, found.others[0])
    assert [(alpha, adjacency) for alpha, _, adjacency in shares] == [(5e-7, "add-remove"), (5e-7, "replace-one")]
    assert 20 < shares[0][1] <= 30
    assert 40 < shares[1][1] <= 60  # the first took none of it


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_each_of_several_adjacencies_has_an_even_share_of_alpha(k, found, monkeypatch):
    """Together they refute a claim that holds with probability α at most, not k · α."""
    monkeypatch.setattr("dpwitness.api.check.alternatives", lambda relation: EITHER.alternatives()[:1] * k)
    passed = replace(found.others[0], others=())
    _, shares = outcomes_of(*[passed] * k)
    assert [alpha for alpha, _, _ in shares] == [pytest.approx(1e-6 / k)] * k


LATER = (
    MechanismRaised("no luck"),
    CompiledDisagrees("other outcomes"),
    ZeroDivisionError("a relation of the user's"),
    SystemExit(3),
    pytest.fail.Exception("Timeout (>30s)"),
)


@pytest.mark.parametrize("error", LATER, ids=lambda error: type(error).__name__)
def test_a_violation_is_not_lost_to_an_error_under_the_other_adjacency(found, error):
    alone = replace(found, others=())
    verdict, _ = outcomes_of(alone, error)
    assert isinstance(verdict, dpw.Violation)
    assert str(error) in verdict.notes[-1]
    with pytest.raises(type(error)):
        outcomes_of(found.others[0], error)


@pytest.mark.parametrize("order", [1, -1])
def test_a_violation_counts_more_than_a_pass_that_would_have_detected_nothing(found, order):
    violated, blind = replace(found, others=()), replace(found.others[0], detectable_epsilon=math.inf)
    verdict, _ = outcomes_of(*[violated, blind][::order])
    assert isinstance(verdict, dpw.Violation)
    assert [type(other) for other in verdict.others] == [dpw.NotRefuted]


def test_of_two_violations_the_clearer_one_is_told_and_of_two_passes_the_weaker_one(found):
    weak = replace(found, others=(), log_e_value=20.0)
    clear = replace(weak, log_e_value=30.0)
    assert outcomes_of(weak, clear)[0].log_e_value == outcomes_of(clear, weak)[0].log_e_value == 30.0
    sharp, blind = (replace(found.others[0], detectable_epsilon=value) for value in (1.5, math.inf))
    for pair in ((sharp, blind), (blind, sharp)):
        assert outcomes_of(*pair)[0].detectable_epsilon == math.inf


def test_dependent_runs_are_never_a_violation(found):
    with pytest.raises(DependentRuns):
        outcomes_of(replace(found, others=()), DependentRuns("remembered"))


def test_an_interruption_keeps_what_was_found(found):
    verdict, shares = outcomes_of(replace(found, others=()), KeyboardInterrupt())
    assert (type(verdict), verdict.ended, len(shares)) == (dpw.Violation, "interrupted", 2)
    assert "not checked: records(numbers(-1, 1), adjacency='replace-one', size=(0, 5))" in verdict.notes
    verdict, shares = outcomes_of(replace(found.others[0], ended="interrupted"))
    assert (verdict.ended, len(shares)) == ("interrupted", 1)
