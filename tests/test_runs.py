import math
import time

import numpy as np
import pytest
from scipy import stats

from dpwitness.adapters import as_mechanism
from dpwitness.catalog import load
from dpwitness.counts import Counts
from dpwitness.errors import MechanismRaised, MechanismTimeout
from dpwitness.events import Interval, OutcomeSet
from dpwitness.exact import target_probability
from dpwitness.mechanism import sfc64_state
from dpwitness.neighbours import pairs
from dpwitness.runs import confirm, generator, ordered, sample

PAIR = pairs(([0.0] * 10, [1.0] * 9 + [-1.0])).given[0]
EVENTS = [OutcomeSet([[0, 0, 1]]), Interval(coordinate=4, low=1.0)]


def svt(epsilon=0.7):
    return as_mechanism(load("svt"), PAIR.data, epsilon=epsilon)


def last(iterator):
    *_, item = iterator
    return item


@pytest.mark.parametrize("coupled", [True, False])
def test_the_same_seed_gives_the_same_counts_for_any_number_of_workers(coupled):
    totals = {
        workers: last(confirm(svt(), PAIR, EVENTS, seed=5, max_runs=100_001, workers=workers, coupled=coupled))
        for workers in (1, 2, 7)
    }
    assert totals[1] == totals[2] == totals[7]
    assert totals[1][0].runs == 100_001
    assert totals[1] != last(confirm(svt(), PAIR, EVENTS, seed=6, max_runs=100_001, coupled=coupled))


def test_search_and_confirm_draw_from_streams_of_their_own():
    left, _ = sample(svt(), PAIR, 1_000, seed=5, key=(0,))
    again, _ = sample(svt(), PAIR, 1_000, seed=5, key=(0,))
    other, _ = sample(svt(), PAIR, 1_000, seed=5, key=(1,))
    assert np.array_equal(left, again, equal_nan=True)
    assert not np.array_equal(left, other, equal_nan=True)


@pytest.mark.parametrize("coupled", [True, False])
def test_both_sides_have_the_right_distribution(coupled):
    """Sharing random draws within a run changes neither side's distribution."""
    n = 400_000
    (counts, _) = last(confirm(svt(), PAIR, EVENTS, seed=7, max_runs=n, coupled=coupled))
    for hits, data in ((counts.hits, PAIR.data), (counts.neighbour_hits, PAIR.neighbour)):
        p = target_probability("svt", [0, 0, 1], data, epsilon=0.7)
        assert abs(hits / n - p) < 5 * math.sqrt(p * (1 - p) / n)


def test_independent_sides_are_independent_and_coupled_ones_agree_more():
    n = 400_000
    both = {c: last(confirm(svt(), PAIR, EVENTS[:1], seed=8, max_runs=n, coupled=c))[0] for c in (True, False)}
    p, q = (target_probability("svt", [0, 0, 1], d, epsilon=0.7) for d in (PAIR.data, PAIR.neighbour))
    assert abs(both[False].n11 / n - p * q) < 5 * math.sqrt(p * q / n)
    assert both[True].n11 / n > 5 * p * q


def test_coupled_runs_are_independent_of_each_other():
    """What one run of D did says nothing about the next run of D′, though their draws follow each other."""
    pair = pairs(([0.0] * 4, [3.0] * 4)).given[0]
    mechanism = as_mechanism(load("svt"), pair.data, epsilon=1.0)
    left, right = sample(mechanism, pair, 200_000, seed=9, key=(0,))
    stops = [np.sum(~np.isnan(rows), axis=1) for rows in (left, right)]
    for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        table = np.histogram2d(stops[a][:-1], stops[b][1:], bins=[np.arange(1, 6)] * 2)[0]
        assert stats.chi2_contingency(table).pvalue > 1e-6
    together = np.histogram2d(*stops, bins=[np.arange(1, 6)] * 2)[0]
    assert stats.chi2_contingency(together).pvalue < 1e-12  # within a run the sides are dependent, as intended


def test_the_counter_of_a_generator_moves_on_with_its_draws():
    rng = generator(1, 2)
    state = sfc64_state(rng)
    before = int(state[3])
    rng.integers(0, 2**63, 5)
    assert int(state[3]) == before + 5
    with pytest.raises(TypeError, match="SFC64"):
        sfc64_state(np.random.default_rng(0))


def test_an_output_longer_than_the_first_guess_is_kept_whole():
    def growing(rng, value):
        answers = np.zeros(1 + int(3 * rng.random()))
        answers[-1] = 1.0
        return answers

    pair = pairs((0, 1)).given[0]
    mechanism = as_mechanism(growing, pair.data)
    left, _ = sample(mechanism, pair, 3_000, seed=1, key=(0,))
    assert left.shape == (3_000, 3)
    lengths = np.sum(~np.isnan(left), axis=1)
    assert abs(np.mean(lengths == 3) - 1 / 3) < 5 * math.sqrt(2 / 9 / 3_000)
    fresh = as_mechanism(growing, pair.data)
    (only_one,) = last(confirm(fresh, pair, [OutcomeSet([[1.0]])], seed=1, max_runs=3_000))
    assert abs(only_one.hits / 3_000 - 1 / 3) < 5 * math.sqrt(2 / 9 / 3_000)


def test_a_mechanism_that_raises_is_named_with_run_and_input():
    def fragile(rng, value):
        if rng.random() < 0.001:
            raise ValueError("too far out")
        return 1.0

    pair = pairs((4, 5)).given[0]
    mechanism = as_mechanism(fragile, pair.data)
    with pytest.raises(
        MechanismRaised, match=r"fragile raised ValueError \(too far out\) on run \d+, on the input [45]"
    ):
        last(confirm(mechanism, pair, [Interval(coordinate=0, low=0.5)], seed=1, max_runs=100_000, workers=2))


def test_a_mechanism_that_hangs_is_left_behind_at_the_deadline():
    def slow(value):
        time.sleep(30)
        return value

    def quick(rng, value):
        return value

    pair = pairs((0, 1)).given[0]
    mechanism = as_mechanism(quick, pair.data)
    mechanism.fill_pair = lambda *_, **__: slow(0)
    with pytest.raises(MechanismTimeout, match="quick did not finish its first 50 runs in time"):
        last(confirm(mechanism, pair, [Interval(coordinate=0)], seed=1, max_runs=50, deadline=time.monotonic() + 0.2))


def test_ordered_keeps_the_order_and_hands_on_errors():
    def task(k):
        def run():
            time.sleep(0.01 * (k % 3))
            if k == 7:
                raise KeyError(k)
            return k

        return run

    assert list(ordered((task(k) for k in range(7)), 3)) == list(range(7))
    with pytest.raises(KeyError):
        list(ordered((task(k) for k in range(9)), 3))


def test_counts_of_a_stopped_check_are_a_prefix():
    """Stopping early drops later shards, whatever more was already running."""
    first = next(confirm(svt(), PAIR, EVENTS[:1], seed=5, max_runs=10**9, workers=3))
    assert first == next(confirm(svt(), PAIR, EVENTS[:1], seed=5, max_runs=16_384, workers=1))
    assert isinstance(first[0], Counts)
