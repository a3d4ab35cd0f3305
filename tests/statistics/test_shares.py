"""What is divided adds up to no more than the whole, exactly: a simulated level would not see a factor of two."""

import itertools
import math

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.api import profile
from dpwitness.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from dpwitness.evidence import Counts, Estimate, log_e_value, profile_band
from dpwitness.evidence import profile_band as mean_bounds
from dpwitness.evidence.bet import bets_and_weights
from dpwitness.evidence.profile_band import PlannedLine, band_of

ESTIMATES = [None, Estimate(p=0.6, q=0.2, both=0.2), Estimate(p=0.1, q=0.0, both=0.0), Estimate(p=0.3, q=0.3, both=0.1)]
LINES = [PlannedLine(slope=math.exp(e), alpha=a, estimate=ESTIMATES[1]) for e, a in ((0.0, 0.01), (1.0, 0.03))]


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(0.5, 1e-3), GaussianDP(1.0), ZCDP(0.1)])
def test_the_bets_of_an_e_value_share_its_wealth(claim, estimate):
    values, log_weights = bets_and_weights(claim, estimate)
    assert np.exp(log_weights).sum() <= 1 + 1e-12
    assert np.isfinite(values).all()  # no bet can lose more than all


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("runs", [1, 2, 5])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.3, 0.05)])
def test_the_mean_of_an_e_value_is_at_most_one_at_the_boundary(epsilon, delta, runs, estimate):
    """By enumeration of all counts; the sides of a run are coupled as closely as they can be, or not at all."""
    claim, factorial = ApproxDP(epsilon, delta), math.factorial
    for q in (0.0, 0.1, 0.3):
        p = math.exp(epsilon) * q + delta
        for both in (p * q, min(p, q)):
            law = (p - both, both, q - both, 1 - p - q + both)
            mean = 0.0
            for found in itertools.product(range(runs + 1), repeat=4):
                if sum(found) == runs:
                    chance = factorial(runs) * math.prod(c**n / factorial(n) for c, n in zip(law, found, strict=True))
                    counts = Counts(**dict(zip(("n10", "n11", "n01", "n00"), found, strict=True)))
                    mean += chance * math.exp(log_e_value(counts, claim, estimate))
            assert mean <= 1 + 1e-9


def noise(rng, data, size):
    return data[0] + rng.normal(0, 1, size)


def test_the_three_bounds_of_a_line_share_its_level(monkeypatch):
    levels = []

    def recorded(counted, values, bets, thresholds):
        levels.append(np.exp(-thresholds))
        return np.zeros(len(counted))

    monkeypatch.setattr(profile_band, "lower_means", recorded)
    band_of(LINES, [Counts(n10=5, n11=5, n01=5, n00=5)] * 2, 20)
    assert len(levels) == 3
    assert np.all(np.sum(levels, axis=0) <= np.array([line.alpha for line in LINES]) * (1 + 1e-12))


def test_the_bets_of_a_mean_share_its_wealth_and_none_can_lose_more(monkeypatch):
    def recorded(counted, values, bets, log_weights, thresholds):
        assert np.exp(log_weights).sum() <= 1 + 1e-12
        ranges = np.ptp(values, axis=1)
        assert np.all(bets.T * ranges < 1)
        assert bets.shape[1] == len(log_weights)
        return np.zeros(len(counted))

    values = np.array([[1.0, -1.0, -2.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
    monkeypatch.setattr(mean_bounds, "_lower_means", recorded)
    mean_bounds.lower_means(np.full((2, 4), 3.0), values, np.array([0.1, 100.0]), np.full(2, 5.0))


@pytest.mark.campaign
def test_the_events_of_a_profile_share_its_level(monkeypatch):
    planned = []

    def recorded(lines, counts, runs):
        planned.extend(lines)
        return band_of(lines, counts, runs)

    monkeypatch.setattr(profile, "band_of", recorded)
    dpw.profile(noise, claim=1.0, alpha=0.01, neighbours=dpw.queries(1), runs=500, search_runs=2_000, seed=1)
    assert len(planned) > 1
    assert math.fsum(line.alpha for line in planned) <= 0.01 * (1 + 1e-12)
