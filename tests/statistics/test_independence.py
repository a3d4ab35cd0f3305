"""Exact tests of independence, against enumeration of all that independent runs can do."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from dpwitness.evidence.p_value import fisher_p_value
from dpwitness.health.dependence import calls_p_value, lags_p_value, repeats_p_value


def vectors(hits, rows):
    """Every way in which so many hits can fall on calls of so many rows, and its probability."""
    for split in product(*(range(min(n, hits) + 1) for n in rows)):
        if sum(split) == hits:
            yield split, math.prod(map(math.comb, rows, split)) / math.comb(sum(rows), hits)


@pytest.mark.parametrize("rows", [(5, 5, 5, 5), (1, 6, 2, 2), (3, 3), (8, 3)])
def test_the_p_value_of_calls_is_one_at_any_level(rows):
    """P(p ≤ x) ≤ x, here by enumeration."""
    for hits in (0, 3, sum(rows) // 2, sum(rows) - 1):
        values = sorted((calls_p_value(h, rows), p) for h, p in vectors(hits, rows))
        below = 0.0
        for value, p in values:
            below += p
            if value < 1:
                assert below <= value + 1e-12


def test_fishers_test_agrees_with_scipys_tails():
    table = [[9, 3], [2, 11]]
    least = min(stats.fisher_exact(table, alternative=side).pvalue for side in ("less", "greater"))
    assert fisher_p_value(9, 12, 2, 13) == pytest.approx(2 * least)
    assert fisher_p_value(3, 3, 0, 0) == 1.0


def test_the_p_value_of_one_call_of_many_is_corrected_for_their_number():
    """Twice for two tails, three times for three tests, and once for every call."""
    hits, rows = [9] + [0] * 15, [20] * 16
    assert calls_p_value(hits, rows) == pytest.approx(6 * 16 * stats.hypergeom(320, 9, 20).sf(8))


def test_the_p_value_of_lags_is_the_least_of_all_lags_times_two_for_each():
    rng = np.random.default_rng(1)
    hits, size = (rng.random(7) < 0.5)[np.arange(80) % 7], 80
    hits[:3] = ~hits[:3]
    found = []
    for lag in range(1, size // 2 + 1):
        for part in (0, 1):
            first = [t for t in range(size - lag) if t // lag % 2 == part]  # no run is in two pairs
            a, b = hits[first], hits[[t + lag for t in first]]
            found.append((fisher_p_value(int((a & b).sum()), int(a.sum()), int((b & ~a).sum()), int((~a).sum())), lag))
    p, lag = lags_p_value(hits, np.arange(size))
    assert lag == min(found)[1]
    assert p == pytest.approx(2 * (size // 2) * min(found)[0])


def test_power_against_one_flag_a_call():
    """P = 0.01 and 0.001: the first confirm shard is all hits, none of 32 further calls has one."""
    assert calls_p_value([16_384] + [0] * 32, [16_384] + [512] * 32) < 1e-100


def test_power_against_shared_thresholds_and_repeated_calls():
    rng = np.random.default_rng(1)
    rows = [16_384] * 32
    shared = rng.binomial(16_384, rng.uniform(0.45, 0.55, 32))
    assert calls_p_value(shared, rows) < 1e-9
    assert calls_p_value([5_000] * 32, rows) < 1e-9  # every call the same: a generator that is seeded anew each time
    # A rate that varies by three standard errors of a call: no call alone says so, all together do.
    weak = rng.binomial(16_384, 0.3 + 3 * np.sqrt(0.21 / 16_384) * rng.standard_normal(32))
    assert calls_p_value(weak, rows) < 1e-9


def test_one_call_alone_shows_nothing():
    assert calls_p_value([3], [10]) == 1.0
    assert calls_p_value([], []) == 1.0
    nothing = np.zeros(0, np.int64)
    assert repeats_p_value(nothing, nothing) == 1.0


@pytest.mark.parametrize("outcomes", [(0, 0, 1, 1, 2, 3), (0, 0, 0, 1, 1, 2), (0, 1, 2, 3, 4, 4), (0, 0, 0, 0, 0, 1)])
@pytest.mark.parametrize("places", [(0, 1, 2, 3, 4, 5), (0, 3, 4, 6, 9, 10)])
def test_repeats_are_an_e_value_whatever_the_outcomes(outcomes, places):
    """The inverse is the e-value where it is at least 1, so that its mean over all orders is at most 1."""
    orders = list(permutations(outcomes))
    p_values = np.array([repeats_p_value(np.array(one), np.array(places)) for one in orders])
    assert np.mean(np.where(p_values < 1, 1 / p_values, 0.0)) <= 1 + 1e-9
    for x in (0.5, 0.2, 0.1):
        assert np.mean(p_values <= x) <= x


def slow_repeats_p_value(outcomes, places):
    """The definition, run by run."""
    ratios = []
    for at in (places, range(len(outcomes))):
        for favour in (1.0, 1e2, 1e4, 1e8):
            ratio, distance = 1.0, None
            for t, outcome in enumerate(outcomes):
                if distance is not None and at[t] - distance in at:
                    expected, rest = outcomes[at.index(at[t] - distance)], outcomes[t:]
                    share = rest.count(expected) / len(rest)
                    if 0 < share < 1:
                        ratio *= (1 + favour * (outcome == expected)) / (1 + favour * share)
                if outcome in outcomes[:t]:
                    distance = at[t] - max(at[k] for k in range(t) if outcomes[k] == outcome)
            ratios.append(ratio)
    return min(1.0, len(ratios) / sum(ratios))


def test_the_p_value_of_repeats_is_that_of_its_definition():
    rng = np.random.default_rng(3)
    for _ in range(50):
        outcomes, places = rng.integers(0, 4, 12), np.sort(rng.choice(20, 12, replace=False))
        outcomes[6:] = np.where(rng.random(6) < 0.7, outcomes[:6], outcomes[6:])  # some come again
        expected = slow_repeats_p_value(outcomes.tolist(), places.tolist())
        assert repeats_p_value(outcomes, places) == pytest.approx(expected, rel=1e-9)


def in_time(runs, seed):
    """A generator, and the numbers that the runs of one side have where the order of sides is random."""
    rng = np.random.default_rng(seed)
    return rng, 2 * np.arange(runs) + rng.integers(0, 2, runs)


def by_parity(hits, places):
    odd = places % 2 == 1
    return int(hits[odd].sum()), int(odd.sum()), int(hits[~odd].sum()), int((~odd).sum())


def test_the_level_of_lags_and_of_odd_and_even_runs():
    """A fair share of hits at 200 seeds: P(p ≤ .05) ≤ .05."""
    low = np.zeros(2)
    for seed in range(200):
        rng, places = in_time(150, seed)
        hits = rng.random(150) < 0.4
        low += [lags_p_value(hits, places)[0] <= 0.05, fisher_p_value(*by_parity(hits, places)) <= 0.05]
    assert low.max() <= stats.binom.isf(1e-9, 200, 0.05)


@pytest.mark.parametrize("lag", [7, 64, 1000])
def test_hits_that_come_again_are_found_with_their_distance(lag):
    rng, places = in_time(4 * lag + 400, lag)
    p, found = lags_p_value((rng.random(lag) < 0.5)[places % lag], places)
    assert p < 1e-9
    assert found % lag == 0


def test_hits_that_stay_are_found_and_odd_runs_against_even_ones():
    rng, places = in_time(600, 1)
    changes = np.cumsum(rng.random(2 * len(places)) < 0.05) % 2
    assert lags_p_value(changes[places] == 1, places)[0] < 1e-9
    assert fisher_p_value(*by_parity(rng.random(600) < np.where(places % 2, 0.6, 0.2), places)) < 1e-9


def test_a_pool_is_found_once_it_comes_again():
    rng, places = in_time(700, 1)
    pool = rng.permutation(1000)
    assert repeats_p_value(pool[places % 1000], places) < 1e-12
    assert repeats_p_value(rng.integers(0, 1000, 700), places) > 1e-3
