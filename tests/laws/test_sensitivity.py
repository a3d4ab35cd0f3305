"""Pairs by measured sensitivity: shifts in scales of noise, the pairs that come first, the violation of one of many."""

import threading
import time

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.search.sensitivity import (
    LARGEST_SHIFT,
    LEADING_PAIRS,
    REFERENCE_RUNS,
    by_sensitivity,
    measurable,
    measured_sensitivities,
    sensitivity_per_scale,
)
from running import prepare

#: NOISE is Laplace noise of scale 1, shape (runs, entries).
NOISE = np.random.default_rng(0).laplace(size=(REFERENCE_RUNS, 3))
#: The mean difference of two numbers with this noise.
UNIT = np.abs(np.diff(NOISE, axis=0)).mean(axis=0)


def shifted(shift, scale):
    """The sensitivity of outcomes whose noise has a scale on both sides, and whose values differ by `shift`."""
    x = 7.0 + scale * NOISE[:2]
    return sensitivity_per_scale(x, x + shift, 3.0 * NOISE)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_a_shift_is_measured_in_scales_of_the_noise_of_its_entry(scale):
    assert shifted(np.array([2.0 * scale, 0.0, 0.0]), scale) == pytest.approx(2 / UNIT[0])
    both = shifted(np.array([2.0 * scale, 0.0, -0.5 * scale]), scale)
    assert both == pytest.approx(2 / UNIT[0] + 0.5 / UNIT[2])


def test_equal_outcomes_and_rounding_show_no_sensitivity():
    x = 1e6 + NOISE[:2]
    assert sensitivity_per_scale(x, x, NOISE) == 0
    assert sensitivity_per_scale(x, x * (1 + 1e-15), NOISE) == 0


def test_an_entry_without_noise_counts_as_the_largest_shift():
    constant = np.zeros((2, 1))
    assert sensitivity_per_scale(constant, constant + 1, np.zeros((REFERENCE_RUNS, 1))) == LARGEST_SHIFT
    assert sensitivity_per_scale(constant, constant + 1, NOISE[:, :1]) == LARGEST_SHIFT


def test_an_absent_entry_counts_as_one_if_it_is_absent_on_one_side():
    x = np.zeros((2, 2))
    absent = np.array([[0.0, np.nan], [0.0, np.nan]])
    assert sensitivity_per_scale(x, absent, np.zeros((REFERENCE_RUNS, 1))) == 1
    assert sensitivity_per_scale(absent, absent, np.zeros((REFERENCE_RUNS, 3))) == 0
    assert sensitivity_per_scale(x[:, :1], x, NOISE[:, :2]) == 1


def weighted(rng, data):
    """A sum in which the value 9 has a weight of 3."""
    return [sum(3.0 if value == 9 else 1.0 for value in data) + rng.laplace(), rng.laplace(scale=5.0)]


def pairs_of(*values):
    return [([0], [0, value]) for value in values]


def runner_of(mechanism, pairs, outcome=list):
    problem, runner = prepare(mechanism, epsilon=1.0, neighbours=dpw.pairs(*pairs), outcome=outcome, workers=1, seed=3)
    return list(problem.candidates()), runner


def test_pairs_of_larger_sensitivity_come_first_and_half_of_the_places_stay_as_given():
    values = [1] * 30 + [9] + [2] * 5
    pairs, runner = runner_of(weighted, [([0] * k, [*[0] * k, value]) for k, value in enumerate(values, 1)])
    ordered = by_sensitivity(iter(pairs), runner, 8, 4)
    assert ordered.leading == 2
    assert ordered.pairs == [pairs[30], *pairs[:7]]
    assert by_sensitivity(iter(pairs), runner, 8, 4) == ordered


def test_measuring_ends_in_time_and_leaves_the_order():
    free = threading.Event()

    def hangs(rng, data):
        if 9 in data:
            free.wait(30)
        return sum(data) + rng.laplace()

    pairs, runner = runner_of(hangs, pairs_of(1, 30, 9, 3), outcome=float)
    began = time.monotonic()
    assert len(measured_sensitivities(pairs, runner, 0.7)) == 2
    assert time.monotonic() - began < 20
    free.set()


def own_draws(data):
    return sum(data) + np.random.default_rng().laplace()


def test_mechanisms_whose_draws_do_not_repeat_are_not_measured():
    _, runner = runner_of(weighted, pairs_of(1))
    assert measurable(runner.mechanism)
    problem, _ = prepare(own_draws, epsilon=1.0, neighbours=dpw.pairs(([1], [2])), outcome=float, workers=1)
    assert not measurable(problem.mechanism)


def costly(rng, data):
    """A sum with enough noise for weights of 1; the value 9 has a weight of 8."""
    end = time.perf_counter() + 80e-6  # so that the check bets from the first run on
    while time.perf_counter() < end:
        pass
    return sum(8.0 if value == 9 else 1.0 for value in data) + rng.laplace()


@pytest.mark.campaign
def test_the_one_pair_of_many_that_shows_a_violation_is_found():
    pairs = [([0] * k, [*[0] * k, 9 if k == 50 else 1]) for k in range(1, 60)]
    verdict = dpw.check(costly, epsilon=1.0, neighbours=dpw.pairs(*pairs), seed=1, workers=1, outcome=float)
    assert verdict.refuted
    assert {len(side) for side in verdict.witness.pair.sides} == {50, 51}
    assert verdict.course.pairs <= LEADING_PAIRS
