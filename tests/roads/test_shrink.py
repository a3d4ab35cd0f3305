"""Witnesses get smaller and still refute, on runs of their own, and never leave the claim."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dpwitness
from dpwitness import Interval, NotRefuted, Violation, bits, check, histogram, pairs, queries
from dpwitness.algorithms.sparse_vector import isvt2
from dpwitness.api import replay as shrinking
from dpwitness.api.replay import replay, shrink
from dpwitness.api.verdict import confirm_candidate
from dpwitness.errors import InvalidNeighbours
from dpwitness.evidence import Estimate, log_e_value
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair, as_finite_numbers
from running import confirm, soon

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


@pytest.mark.parametrize("epsilon", soon([1.0, 0.1, 0.7], 1))
def test_ten_queries_become_four_at_most(epsilon):
    """One query of isvt2 is ε₀/2-DP and no better (its two noises have scale 2/ε₀ each), so one is enough at 0.2·ε₀."""
    first = violation(isvt2, epsilon=epsilon, claim=0.2 * epsilon)
    small = shrink(first, isvt2)
    assert small.log_e_value == log_e_value(small.counts, small.claim, small.witness.estimate) >= math.log(1 / ALPHA)
    assert small.claim == first.claim
    assert small.seed != first.seed  # else its runs would be those by which it was chosen
    assert (small.search_runs - first.search_runs - first.counts.runs) % shrinking.COMPILED_STEP_RUNS == 0
    assert first.counts.runs % shrinking.COMPILED_STEP_RUNS
    assert first.witness.pair.data.size == 10
    assert small.witness.pair.data.size <= 4
    assert small.epsilon_lower_bound <= epsilon / 2 * small.witness.pair.data.size
    again = replay(small.witness, isvt2, seed=99)
    assert isinstance(again, Violation)


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
            (([10, 10, 1], [10, 10, 0]), histogram(3, any_length=True), ([0], [1])),
            (([7, 7], [8, 7]), queries(2), ([0, 0], [1, 0])),
            (([7.0, 7.5], [8.0, 8.5]), queries(2), ([0.0, 0.0], [0.0, 1.0])),
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
    """Its counts are those of the confirm streams of its own seed, and nothing else."""
    small = isvt2_shrunk()
    mechanism = as_mechanism(isvt2, small.witness.pair.data, epsilon=1.0)
    runs, planned = small.counts.runs, 4_000_000
    again = confirm(mechanism, small.witness.pair, [small.witness.event], seed=small.seed, runs=planned)
    assert next(counts for (counts,) in again if counts.runs >= runs) == small.counts
    assert small.seed != isvt2_refuted().seed


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
    (note,) = shrink(first, Breaks(OSError("disk gone"), 0)).notes
    assert note.startswith("it could not be made smaller: Breaks raised OSError (disk gone)")


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
