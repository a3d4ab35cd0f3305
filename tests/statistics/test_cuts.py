"""Rare intervals are placed as well as there are runs."""

import numpy as np
import pytest
from scipy import stats

import dpwitness as dpw
from dpwitness.evidence import growth_rate
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.pairs import best_candidate
from running import prepare

#: The standard deviation of the Gaussian mechanism by the classical formula, at sensitivity 1; true δ at ε = 7: .366.
CLASSICAL = np.sqrt(2 * np.log(1.25 / 0.2)) / 7


def classical_gaussian(values, rng):
    return float(sum(values) + rng.normal(0, CLASSICAL))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(4))
def test_a_rare_interval_of_plain_python_is_placed_as_well_as_there_are_runs(seed):
    """The best half-line has probability 4·10⁻⁵ on D′; at 2·10⁻⁴ evidence grows at a third of its rate."""
    claim = dpw.ApproxDP(7.0, 0.2)
    problem, where = prepare(
        classical_gaussian, neighbours=dpw.pairs(([0.0], [1.0])), claim=claim, seed=seed, outcome=float
    )
    objective = GrowthAt(claim=claim, planned=400_000, stop_value=20 * np.log(1e6) / 20_000)
    found, _ = best_candidate(problem, where, objective, planned=400_000, budget=20_000)

    def growth(low, high, pair):
        p, q = (np.array([stats.norm.cdf(high, *law) - stats.norm.cdf(low, *law)]) for law in pair)
        return float(growth_rate(p, q, claim.half_plane(p, q), p * q)[0])

    best = max(growth(low, np.inf, ((1, CLASSICAL), (0, CLASSICAL))) for low in np.linspace(0.8, 1.4, 61))
    laws = [(sum(side), CLASSICAL) for side in found.pair.sides]
    assert growth(found.event.low, found.event.high, laws) > 0.75 * best
