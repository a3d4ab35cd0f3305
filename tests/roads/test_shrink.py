"""Witnesses get smaller and still refute, on runs of their own, and never leave the claim."""

import ast
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

import dpwitness
from dpwitness import (
    Box,
    Interval,
    NotRefuted,
    OutcomeSet,
    Violation,
    bits,
    check,
    histogram,
    pairs,
    queries,
)
from dpwitness.algorithms.noise_addition import histogram_wrong_scale
from dpwitness.algorithms.sparse_vector import isvt1, isvt2, isvt4
from dpwitness.api import replay as shrinking
from dpwitness.api.replay import _shrinking_seed, replay, shrink, smallest
from dpwitness.api.verdict import confirm_candidate
from dpwitness.claims import ApproxDP, HalfPlane
from dpwitness.errors import CompiledDiffers, CompiledDisagrees, InvalidNeighbours, InvalidParameter, MechanismRaised
from dpwitness.evidence import Estimate, growth_rate, log_e_value
from dpwitness.mechanisms.mechanism import Cost
from dpwitness.neighbours import Pair, as_finite_numbers
from dpwitness.problem import Effort
from dpwitness.runs import Runner
from dpwitness.search.objectives import GrowthAt
from running import confirm, problem, runner, soon

#: Each smaller witness is a refutation of its own.
pytestmark = pytest.mark.usefixtures("asked_here")

ALPHA = 1e-6


def violation(mechanism, **settings):
    found = check(mechanism, alpha=ALPHA, seed=5, **settings)
    assert isinstance(found, Violation)
    return found


@cache
def isvt2_refuted():
    return violation(isvt2, epsilon=1.0, claim=0.2)


@cache
def isvt2_shrunk():
    return shrink(isvt2_refuted(), isvt2)


@pytest.mark.campaign
def test_the_runs_of_the_check_are_not_fresh_ones_of_its_smaller_witness():
    small = isvt2_shrunk().witness
    assert small.seed != isvt2_refuted().seed
    smaller = replace(small, seed=_shrinking_seed(small.seed))  # as one that was made smaller twice
    for seed in (isvt2_refuted().seed, small.seed, smaller.seed):
        with pytest.raises(InvalidParameter, match=f"seed={seed} made this witness"):
            replay(smaller, isvt2, seed=seed)


def refutes(found):
    witness = found.witness
    assert log_e_value(witness.counts, witness.claim, witness.estimate) >= math.log(1 / ALPHA)
    assert found.log_e_value == log_e_value(witness.counts, witness.claim, witness.estimate)
    return True


@pytest.mark.parametrize("epsilon", soon([1.0, 0.1, 0.7], 1))
def test_ten_queries_become_four_at_most(epsilon):
    """One query of isvt2 is ε₀/2-DP and no better (its two noises have scale 2/ε₀ each), so one is enough at 0.2·ε₀."""
    first = violation(isvt2, epsilon=epsilon, claim=0.2 * epsilon)
    small = shrink(first, isvt2)
    assert refutes(small)
    assert small.claim == first.claim
    assert small.seed != first.seed  # else its runs would be those by which it was chosen
    assert (small.search_runs - first.search_runs - first.counts.runs) % shrinking.COMPILED_STEP_RUNS == 0
    assert first.counts.runs % shrinking.COMPILED_STEP_RUNS
    assert first.witness.pair.data.size == 10
    assert small.witness.pair.data.size <= 4
    assert small.epsilon_lower_bound <= epsilon / 2 * small.witness.pair.data.size
    again = replay(small.witness, isvt2, seed=99)
    assert isinstance(again, Violation)


@pytest.mark.parametrize("mechanism", [isvt1, pytest.param(isvt4, marks=pytest.mark.campaign)])
def test_small_witnesses_are_neighbours_of_the_relation(mechanism):
    small = shrink(violation(mechanism, epsilon=1.0, claim=0.2), mechanism).witness
    assert small.pair.data.size <= 2
    assert np.all(np.abs(small.pair.data - small.pair.neighbour) <= 1)
    assert np.all(np.abs(small.pair.data) <= 1)


@pytest.mark.campaign
def test_histograms_stay_histograms():
    first = violation(histogram_wrong_scale, epsilon=0.1, neighbours=histogram(5, any_length=True))
    small = shrink(first, histogram_wrong_scale).witness
    assert sorted((small.pair.data.tolist(), small.pair.neighbour.tolist())) == [[0], [1]]
    assert len(f"{small.event.low if math.isfinite(small.event.low) else small.event.high:g}") <= 4


def first_bit_leaks(rng, data, size):
    return data[0] * 1.0 + rng.normal(0, 0.2, size=size)


@pytest.mark.campaign
def test_bits():
    relation = bits(6, any_length=True)
    small = shrink(violation(first_bit_leaks, epsilon=1.0, neighbours=relation), first_bit_leaks, neighbours=relation)
    assert sorted((small.witness.pair.data.tolist(), small.witness.pair.neighbour.tolist())) == [[0], [1]]
    assert refutes(small)


@pytest.mark.campaign
def test_given_pairs_are_all_that_is_known_to_be_neighbouring():
    given = pairs(([3.0, 7.0, 5.0], [4.0, 7.0, 5.0]))
    first = violation(first_bit_leaks, epsilon=1.0, neighbours=given)
    small = shrink(first, first_bit_leaks, neighbours=given)
    assert sorted((small.witness.pair.data, small.witness.pair.neighbour)) == [
        [3.0, 7.0, 5.0],
        [4.0, 7.0, 5.0],
    ]


def needs_ten(rng, data, size):
    if len(data) != 10:
        raise ValueError("ten answers are needed")
    return data[0] + rng.normal(0, 0.2, size=size)


@pytest.mark.campaign
def test_a_mechanism_that_takes_ten_answers_only_keeps_ten():
    relation = queries(10)
    small = shrink(violation(needs_ten, epsilon=1.0, neighbours=relation), needs_ten, neighbours=relation).witness
    assert small.pair.data.size == 10
    assert np.count_nonzero(small.pair.data != small.pair.neighbour) == 1


@pytest.mark.campaign
def test_the_same_seed_gives_the_same_small_witness_and_no_run_twice():
    first = isvt2_refuted()
    one, two = (small.witness.to_json() for small in (isvt2_shrunk(), shrink(first, isvt2)))
    assert one == two
    assert one["seed"] != first.seed


def test_without_time_the_witness_stays():
    first = isvt2_refuted()
    assert shrink(first, isvt2, max_time=1e-9) is first


def leaks_the_sum(rng, data, size):
    return data.sum() + rng.normal(0, 0.05, size=size)


def refuted(pair, relation, data=None, mechanism=leaks_the_sum):
    """A violation of claim 1 by a given pair and the event that its sum shows, found by no search."""
    first = check(mechanism, claim=1.0, neighbours=pairs(pair), alpha=ALPHA, seed=5, search_runs=2_000)
    assert isinstance(first, Violation)
    given = None if data is None else as_finite_numbers(data)
    pair = Pair(*map(as_finite_numbers, pair))
    return replace(first, witness=replace(first.witness, pair=pair, relation=relation, data=given))


@pytest.mark.parametrize(
    ("pair", "relation", "expected"),
    soon(
        [
            (([1, 1, 1], [0, 1, 1]), bits(3), ([0, 0, 0], [1, 0, 0])),
            (([1, 1, 1], [0, 1, 1]), bits(3, any_length=True), ([0], [1])),
            (([10, 10, 0], [10, 10, 1]), histogram(3), ([0, 0, 0], [0, 0, 1])),
            (([10, 10, 1], [10, 10, 0]), histogram(3, any_length=True), ([0], [1])),
            (([7, 7], [8, 7]), queries(2), ([0, 0], [1, 0])),
            (([7.0, 7.5], [8.0, 8.5]), queries(2), ([0.0, 0.0], [0.0, 1.0])),
            (([7.0, 7.5], [8.0, 7.5]), queries(2, may_move="one"), ([0.0, 0.0], [1.0, 0.0])),
            (([7.0, 7.5], [8.0, 8.5]), queries(2, direction="up", any_length=True), ([0.0], [1.0])),
            (([7, 7], [8, 7]), pairs(([7, 7], [8, 7])), ([7, 7], [8, 7])),
            (([7, 7], [8, 7]), None, ([7, 7], [8, 7])),
        ],
        3,
    ),
)
def test_shrunk_inputs_stay_in_the_relation_and_of_their_kind(pair, relation, expected):
    small = shrink(refuted(pair, relation), leaks_the_sum).witness
    assert relation is None or relation.contains(small.pair)
    assert repr(sorted((small.pair.data.tolist(), small.pair.neighbour.tolist()))) == repr(sorted(expected))


@pytest.mark.parametrize(
    ("pair", "relation"),
    [(([10], [11]), queries(1, any_length=True)), (([10, 3], [10, 4]), histogram(2)), (([1, 1], [1, 0]), bits(2))],
)
@pytest.mark.parametrize("where", soon(["witness", "call"], 1))
def test_given_data_stay_as_they_are(pair, relation, where):
    data = pair[0]
    first = refuted(pair, relation, data if where == "witness" else None)
    small = shrink(first, leaks_the_sum, data=data if where == "call" else None).witness
    assert data in (small.pair.data.tolist(), small.pair.neighbour.tolist())
    assert relation.contains(small.pair, as_finite_numbers(data))
    assert small.data.tolist() == data


def test_shrinking_under_another_relation_must_contain_the_witness():
    first = refuted(([5.0, 5.0], [6.0, 5.0]), queries(2))
    for other, data in ((bits(2), None), (queries(2, 0.5), None), (queries(3), None), (queries(2), [1.0, 1.0])):
        with pytest.raises(InvalidNeighbours, match="the witness's pair"):
            shrink(first, leaks_the_sum, neighbours=other, data=data)


def mean(rng, data, size):
    """1-DP for ten bits and no fewer: a bit moves the mean by 1/len."""
    return data.sum() / len(data) + rng.laplace(0, 0.1, size=size)


def mean_too_precise(rng, data, size):
    return data.sum() / len(data) + rng.laplace(0, 0.03, size=size)


@pytest.mark.campaign
def test_a_claim_about_ten_bits_is_never_judged_by_fewer():
    """The mean of one bit with Lap(0.1) is 10-DP: a witness of one bit would accuse the correct mechanism of ten."""
    small = shrink(violation(mean_too_precise, claim=1.0, neighbours=bits(10)), mean_too_precise).witness
    assert small.pair.data.size == 10
    assert isinstance(replay(small, mean, seed=3), NotRefuted)
    # What would happen otherwise: the claim is not about any number of bits.
    shorter = replace(small, relation=None, pair=Pair(as_finite_numbers([1]), as_finite_numbers([0])))
    event = Interval(coordinate=0, low=0.5)
    accused = replay(replace(shorter, event=event, estimate=Estimate(p=1.0, q=0.0)), mean, seed=3)
    assert isinstance(accused, Violation)


@pytest.mark.campaign
def test_shrinking_proves_nothing_by_itself():
    """Counts come from one place: what shrinking finds is a candidate, confirmed like any other."""
    source = Path(dpwitness.__file__).parent
    users = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "confirm":
                users.add(str(path.relative_to(source)))
    assert users == {"api/loop.py"}
    first = isvt2_refuted()
    small = isvt2_shrunk()
    found = small.witness
    mechanism = dpwitness.mechanisms.resolve.as_mechanism(isvt2, found.pair.data, epsilon=1.0)
    runs, planned = small.counts.runs, 4_000_000
    again = confirm(mechanism, found.pair, [found.event], seed=small.seed, runs=planned)
    assert (
        next(counts for (counts,) in again if counts.runs >= runs) == small.counts
    )  # those of the confirm streams of its own seed, and nothing else
    assert small.seed != first.seed


@pytest.mark.campaign
def test_a_candidate_that_does_not_refute_leaves_the_violation(monkeypatch):
    first = isvt2_refuted()

    def unlucky(*arguments, **settings):
        found, spent = smallest(*arguments, **settings)
        return replace(found, event=Interval(coordinate=0, low=1e9)), spent

    monkeypatch.setattr("dpwitness.api.replay.smallest", unlucky)
    assert shrink(first, isvt2) is first


class Breaks:
    """Works for so many calls, then raises."""

    def __init__(self, error, calls):
        self.error, self.left = error, calls

    def __call__(self, rng, data, size):
        self.left -= 1
        if self.left < 0:
            raise self.error
        return data.sum() + rng.normal(0, 0.05, size=size)


def test_a_violation_outlives_a_mechanism_that_fails_while_it_is_shrunk():
    first = refuted(([7.0, 7.5], [8.0, 8.5]), queries(2))
    after = shrink(first, Breaks(OSError("disk gone"), 1))
    assert after == replace(first, notes=after.notes)
    (note,) = after.notes
    assert note.startswith("it could not be made smaller: Breaks raised OSError (disk gone)")
    trial = shrink(first, Breaks(OSError("disk gone"), 0))
    assert trial.notes == ("it could not be made smaller: " + str(_raised(first)),)


def test_shrinking_begins_again_where_a_check_would(monkeypatch):
    first = refuted(([7.0, 7.5], [8.0, 8.5]), queries(2))
    tried = []

    def smallest(problem, runner, effort, pair, event):
        tried.append(problem)
        if len(tried) == 1:
            raise CompiledDisagrees("other outcomes")
        return None, 0

    monkeypatch.setattr("dpwitness.api.replay.smallest", smallest)
    with pytest.warns(CompiledDiffers):
        assert shrink(first, leaks_the_sum) is first
    assert len(tried) == 2


def _raised(first):
    with pytest.raises(MechanismRaised) as caught:
        check(Breaks(OSError("disk gone"), 0), claim=1.0, neighbours=pairs((first.witness.pair.data, [8.0, 8.5])))
    return caught.value


@pytest.mark.campaign
def test_an_interrupt_while_shrinking_is_no_verdict(monkeypatch):
    first = refuted(([7.0, 7.5], [8.0, 8.5]), queries(2))
    with pytest.raises(KeyboardInterrupt):
        shrink(first, Breaks(KeyboardInterrupt(), 1))

    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "confirm", interrupted)
    with pytest.raises(KeyboardInterrupt):
        shrink(first, leaks_the_sum)


@pytest.mark.campaign
def test_outcomes_are_summarised_as_they_were_for_the_check():
    def report(rng, data):
        return {"sum": data.sum() + rng.normal(0, 0.05)}

    def told(outcome):
        return outcome["sum"]

    limits = {"runs": 20_000, "max_time": 1.0}
    settings = {"claim": 1.0, "neighbours": queries(2), "alpha": ALPHA, "seed": 5, "search_runs": 2_000}
    first = check(report, outcome=told, **settings)
    assert isinstance(first, Violation)
    small = shrink(first, report, outcome=told, **limits)
    # Without `outcome` the mechanism returns what is no outcome, and a note says so.
    assert not any("could not be made smaller" in note for note in small.notes)
    assert isinstance(replay(first.witness, report, outcome=told, seed=9), Violation)


def interval(low=-math.inf, high=math.inf, coordinate=0):
    return Interval(coordinate=coordinate, low=low, high=high)


def test_parts_of_an_event_are_simpler_events():
    assert list(interval(1.0, 2.0, 3).simpler()) == [interval(low=1.0, coordinate=3), interval(high=2.0, coordinate=3)]
    assert list(interval(low=1.0).simpler()) == list(interval(high=1.0).simpler()) == []
    sides = (interval(1.0, 2.0), interval(low=0.0, coordinate=1))
    assert list(Box(sides).simpler()) == list(sides)
    assert list(OutcomeSet([[1.0]]).simpler()) == []
    two = OutcomeSet([[1.0, 2.0], [3.0, 4.0]])
    assert sorted(part.rows.tolist() for part in two.simpler()) == [[[1.0, 2.0]], [[3.0, 4.0]]]
    assert len(OutcomeSet([[float(k)] for k in range(20)]).simpler()) == 8


def test_events_in_order_of_complexity():
    """One outcome of one number, one bound, an interval, a box of one side, of two, several outcomes."""
    ordered = [
        OutcomeSet([[1.0]]),
        interval(1.0, 2.0),
        OutcomeSet([[1.0, 2.0, 3.0]]),
        Box((interval(low=1.0),)),
        Box((interval(low=1.0), interval(low=1.0, coordinate=1))),
        OutcomeSet([[1.0], [2.0]]),
        OutcomeSet([[1.0], [2.0], [3.0]]),
    ]
    values = [event.complexity for event in ordered]
    assert values == sorted(set(values))
    assert interval(low=1.0).complexity == interval(high=1.0).complexity == values[0]


def test_bounds_are_rounded_to_one_two_and_three_digits():
    assert list(interval(low=0.12345).rounded()) == [interval(low=b) for b in (0.1, 0.12, 0.123)]
    assert list(interval(high=98.76).rounded()) == [interval(high=b) for b in (100.0, 99.0, 98.8)]
    # With one digit nothing is left of the interval; with two it is 1.1 to 1.2.
    assert list(interval(1.12, 1.18).rounded()) == [interval(1.1, 1.2)]
    assert list(interval(low=0.5).rounded()) == []
    box = Box((interval(low=0.11), interval(high=0.26, coordinate=1)))
    assert list(box.rounded()) == [Box((interval(low=0.1), interval(high=0.3, coordinate=1)))]
    assert list(OutcomeSet([[0.12345]]).rounded()) == []


def shrinker(mechanism, runs):
    objective = GrowthAt(claim=ApproxDP(0.5, 0.0), planned=100_000, log_threshold=math.log(1e6))
    return shrinking._Shrinker(runner(mechanism, seed=3), objective, 0.01, runs)


def leaky_coin(rng, data, size):
    return 1.0 * (rng.random(size) < 0.2 + 0.6 * data[0])


def test_what_an_event_promises_is_its_growth_rate_on_runs_of_its_own():
    """P[1] is 0.8 on D and 0.2 on D′, 0.2 on both from shared draws; each estimate within 5 standard errors.

    No two are from the same runs.
    """
    pair = Pair(as_finite_numbers([1]), as_finite_numbers([0]))
    made = shrinker(dpwitness.mechanisms.resolve.as_mechanism(leaky_coin, pair.data), 20_000)
    first, estimate = made.value(pair, OutcomeSet([[1.0]]))
    error = 5 * math.sqrt(0.16 / 20_000)
    assert abs(estimate.p - 0.8) < error
    assert abs(estimate.q - 0.2) < error
    assert abs(estimate.both - 0.2) < error
    assert first == pytest.approx(float(growth_rate(0.8, 0.2, HalfPlane(math.exp(0.5)), 0.2)), rel=0.2)
    # It is that of a p one standard error of X lower: E[X²] = P10 + (s − 1)²·P11 + s²·P01.
    s = math.exp(0.5)
    square = estimate.p - estimate.both + (s - 1) ** 2 * estimate.both + s**2 * (estimate.q - estimate.both)
    lower = estimate.p - math.sqrt(square / 20_000)
    assert first == pytest.approx(float(growth_rate(lower, estimate.q, HalfPlane(s), estimate.both)), rel=2e-3)
    assert made.value(pair, OutcomeSet([[1.0]]))[1] != estimate
    assert (made.steps, made.spent) == (2, 40_000)
    assert shrinking._refutable(made, pair)
    assert not shrinking._refutable(made, Pair(pair.data, pair.data))
    assert (made.steps, made.spent) == (4, 80_000)


def mostly_zero(rng, data, size):
    return 1.0 * (rng.random(size) < 0.001 + 0.3 * data[0])


def test_the_given_event_is_a_candidate_of_its_own_direction_and_width_only():
    """A one comes with 0.301 on D = 1 and 0.001 on D = 0: only from 1 to 0 is the claim broken."""
    pair = Pair(as_finite_numbers([1]), as_finite_numbers([0]))
    made = shrinker(dpwitness.mechanisms.resolve.as_mechanism(mostly_zero, pair.data), 20_000)
    given = interval(low=0.98765)
    found, events = shrinking._candidates(made, pair, given)
    assert (found.data.tolist(), found.neighbour.tolist()) == ([1], [0])
    assert given in events
    turned, others = shrinking._candidates(made, pair.swapped(), given)
    assert (turned.data.tolist(), turned.neighbour.tolist()) == ([1], [0])
    assert given not in others
    behind = interval(low=0.98765, coordinate=1)  # an output has one number
    assert behind not in shrinking._candidates(made, pair, behind)[1]


@pytest.mark.parametrize(
    ("seconds", "max_time", "runs"),
    # 20 steps of paired runs in max_time: max_time / 20 / (2 · seconds) runs a step, a power of ten down.
    [(0.0005, 20.0, 1_000), (0.0005, 19.0, 100), (0.005, 20.0, 100), (0.05, 20.0, 10), (1e-6, 20.0, 10_000)],
)
def test_runs_of_a_step_is_what_fits_in_the_time(seconds, max_time, runs):
    cost = Cost(seconds_per_run=seconds * (1 - 1e-6), compiled=False, batched=False)
    assert shrinking._runs_of_a_step(cost, max_time) == runs
    compiled = replace(cost, compiled=True)
    assert shrinking._runs_of_a_step(compiled, max_time) == shrinking.COMPILED_STEP_RUNS


def shows_a_third(rng, data, size):
    return (rng.random(size) < data.sum() / 3) + rng.normal(0, 0.1, size)


def test_where_inputs_stay_the_event_gets_rounder():
    """The event of one bound keeps one bound: of one digit, and it grows at least half as fast as the best one."""
    relation = pairs(([1.0], [0.0]))
    mechanism = dpwitness.mechanisms.resolve.as_mechanism(shows_a_third, relation.given[0].data)
    given, running = problem(mechanism, relation, claim=0.5), runner(mechanism, seed=3)
    event = interval(low=0.48765)
    effort = Effort(alpha=ALPHA, runs=100_000, max_time=1_000.0)
    small, spent = smallest(given, running, effort, relation.given[0], event)
    assert small.pair == relation.given[0]
    assert small.event == interval(low=float(f"{small.event.low:.1g}"))
    q = float(norm.sf(small.event.low, scale=0.1))
    p = 2 / 3 * q + float(norm.sf(small.event.low - 1, scale=0.1)) / 3
    assert abs(small.estimate.p - p) < 5 * math.sqrt(p * (1 - p) / shrinking.COMPILED_STEP_RUNS)
    assert abs(small.estimate.q - q) < 5 * math.sqrt(q * (1 - q) / shrinking.COMPILED_STEP_RUNS)
    assert spent >= 2 * shrinking.COMPILED_STEP_RUNS
    assert spent % shrinking.COMPILED_STEP_RUNS == 0
    assert smallest(given, running, replace(effort, max_time=1e-9), relation.given[0], event)[0] is None


@pytest.mark.parametrize(
    ("values", "chosen"),
    [
        ((0.1, 0.04, 0.06, 0.09), 2),  # half of its growth is left
        ((0.015, 0.009, 0.011, 0.012), 2),  # it still refutes
        ((0.015, 0.001, 0.002, 0.003), 0),
        ((0.009, 0.02, 0.02, 0.02), None),  # it did not refute before
    ],
)
def test_an_event_is_as_round_as_it_may_be_and_still_refutes(monkeypatch, values, chosen):
    event, estimate = interval(low=0.48765), Estimate(p=0.5, q=0.1, both=0.1)
    events = [event, *event.rounded()]
    known = dict(zip(map(str, events), values, strict=True))
    made = SimpleNamespace(needed=0.01, value=lambda _, one: (known[str(one)], estimate))
    pair = Pair(as_finite_numbers([1]), as_finite_numbers([0]))
    monkeypatch.setattr(shrinking, "_candidates", lambda *_: (pair, [event]))
    found = shrinking._simplest(made, pair, event)
    assert (found and found.event) == (None if chosen is None else events[chosen])


@pytest.mark.campaign
def test_what_is_smaller_is_confirmed_at_the_level_of_what_it_stands_for(monkeypatch):
    levels = []

    def confirmed(problem, runner, effort, candidate, **more):
        levels.append(effort.alpha)
        return confirm_candidate(problem, runner, effort, candidate, **more)

    monkeypatch.setattr("dpwitness.api.replay.confirm_candidate", confirmed)

    def noisy(rng, data, size):
        return data.sum() + rng.laplace(0, 0.2, size=size)

    few = {"neighbours": queries(3), "seed": 1, "search_runs": 5_000, "runs": 50_000}
    first = dpwitness.check(noisy, claim=1.0, alpha=1e-12, **few)
    small = shrink(first, noisy, runs=50_000)
    assert levels == [1e-12]
    assert small is not first
    assert small.alpha == small.witness.alpha == 1e-12
    assert small.log_e_value >= -math.log(1e-12)
