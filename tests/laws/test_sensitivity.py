"""Pairs by measured sensitivity: unchanged state, and the violation of one pair of many."""

import time

import pytest

import dpwitness as dpw
from dpwitness.search.sensitivity import LEADING_PAIRS


def costly(rng, data):
    """A sum with enough noise for weights of 1; the value 9 has a weight of 8."""
    end = time.perf_counter() + 80e-6  # so that the check bets from the first run on
    while time.perf_counter() < end:
        pass
    return sum(8.0 if value == 9 else 1.0 for value in data) + rng.laplace()


def test_the_one_pair_of_many_that_shows_a_violation_is_found():
    pairs = [([0] * k, [*[0] * k, 9 if k == 50 else 1]) for k in range(1, 60)]
    verdict = dpw.check(costly, epsilon=1.0, neighbours=dpw.pairs(*pairs), seed=1, workers=1, outcome=float)
    assert verdict.refuted
    assert {len(side) for side in verdict.witness.pair.sides} == {50, 51}
    assert verdict.course.pairs <= LEADING_PAIRS


def rarely(rng, data):
    """A sum with enough noise for weights of 1, or, with probability .4 if the data hold 5, a large number."""
    end = time.perf_counter() + 80e-6
    while time.perf_counter() < end:
        pass
    shown, noise = rng.random() < 0.4, rng.laplace()
    if shown and 5 in data:
        return 100.0
    return sum(value / 10 for value in data if value != 5) + noise


@pytest.mark.campaign  # takes seconds
def test_a_violation_that_sensitivity_does_not_show_is_found_after_the_leading_pairs():
    pairs = [([0], [0, value]) for value in (10, 8, 6, 4, 2, 5)]
    verdict = dpw.check(rarely, epsilon=1.0, neighbours=dpw.pairs(*pairs), seed=1, workers=1, outcome=float)
    assert verdict.refuted
    assert 5 in verdict.witness.pair.neighbour + verdict.witness.pair.data
