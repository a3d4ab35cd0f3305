"""The targets of the curator attack: their laws, what they hide and where, and that a check finds it."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import dpwitness as dpw
from dpwitness.algorithms.curator_attack import laplace_flat_ends, laplace_flat_ends_low_density, svt_uniform_threshold

#: DP-Sniper looks at no event less probable than this, MPL at no density below this (Wang et al. 2024, section 10.1).
SNIPER, MPL = 0.01, 1e-4
LEVEL = 1e-9


def drawn(mechanism, data, n, **parameters):
    rng = np.random.default_rng(7)
    return [mechanism(rng, np.array(data), **parameters) for _ in range(n)]


def near(found, n, probability):
    """Whether so many of n runs are within six standard errors of what a probability expects."""
    return abs(found - n * probability) <= 6 * math.sqrt(n * probability * (1 - probability))


def flat_ended_cdf(scale, edge):
    """The distribution function of Laplace noise whose tails have a level density, and end."""
    tail = math.exp(-edge / scale) / 2

    def cdf(x):
        x = np.asarray(x, float)
        far = tail * np.clip(1 - (np.abs(x) - edge) / scale, 0, 1)
        below = np.where(np.abs(x) < edge, np.exp(-np.abs(x) / scale) / 2, far)
        return np.where(x < 0, below, 1 - below)

    return cdf


@pytest.mark.parametrize(
    ("mechanism", "parameters", "scale", "edge"),
    [
        (laplace_flat_ends, {"epsilon": 0.5, "edge": 1.0}, 4.0, 2.0),
        (laplace_flat_ends_low_density, {"epsilon": 0.5, "density": 0.1}, 2.0, 2 * math.log(2.5)),
    ],
)
def test_flat_ended_noise_has_its_law(mechanism, parameters, scale, edge):
    """Also where the level parts are most of it; a law a third wider is refused."""
    found = np.array(drawn(mechanism, [3.0], 3_000, **parameters)) - 3
    assert np.max(np.abs(found)) <= edge + scale
    cdf = flat_ended_cdf(scale, edge)
    assert stats.kstest(found, cdf).pvalue > LEVEL
    assert stats.kstest(found, lambda x: cdf(x * 1.4)).pvalue < LEVEL


def test_the_level_density_is_the_one_that_is_asked_for():
    """At its edge the noise of scale 1/ε has the density 10⁻⁴, the limit of MPL."""
    edge = math.log(1 / (2 * MPL))
    assert stats.laplace.pdf(edge) == pytest.approx(MPL, rel=1e-12)
    cdf = flat_ended_cdf(1.0, edge)
    assert cdf(edge + 1) == 1
    assert cdf(edge + 1) - cdf(edge) == pytest.approx(MPL, rel=1e-9)  # the event: what a neighbour cannot reach


@pytest.mark.parametrize(
    ("epsilon", "parameters"), [(1.0, {"density": 0.5}), (1.0, {"density": 0.0}), (1e-4, {"density": 1e-4})]
)
def test_a_density_that_the_noise_does_not_have_is_refused(epsilon, parameters):
    with pytest.raises(ValueError, match="density must be positive and below"):
        laplace_flat_ends_low_density(np.random.default_rng(1), np.array([0.0]), epsilon, **parameters)


def test_what_dp_sniper_can_reach_of_level_ends_is_below_the_claim():
    """Theorem 2, condition (9b), at the defaults and ε = 1: θ₁/2·e^(−θ₁θ₂) ≤ (e^ε − e^θ₁)·c; and the event itself."""
    rate, edge = 0.5, 7.0
    hidden = rate / 2 * math.exp(-rate * edge)
    assert hidden <= (math.e - math.exp(rate)) * SNIPER
    assert hidden < SNIPER
    cdf = flat_ended_cdf(1 / rate, edge)
    assert 1 - cdf(edge + 1 / rate - 1) == pytest.approx(hidden, rel=1e-9)
    found = np.array(drawn(laplace_flat_ends, [1.0], 20_000, epsilon=1.0))
    assert near(np.sum(found > edge + 1 / rate), 20_000, hidden)  # above what noise on the answer 0 reaches


def below(k, first, *, offset, rate):
    """P(⊥ to each of the first k queries, all of one answer): the integral over the threshold."""

    def integrand(u):
        x = 1 - offset * (1 + u) - first
        return (math.exp(rate * x) / 2 if x < 0 else 1 - math.exp(-rate * x) / 2) ** k

    return integrate.quad(integrand, 0, 1, epsabs=0)[0]


def test_the_true_loss_of_a_low_threshold():
    """⊥ k times has the log ratio k·θ₂ on answers of 0 and 1, θ₂ = 5ε; ε = 1 and the default offset hide it."""
    for k in (1, 2, 10):
        ratio = math.log(below(k, 0.0, offset=1.5, rate=5.0) / below(k, 1.0, offset=1.5, rate=5.0))
        assert ratio == pytest.approx(5 * k, rel=1e-9)
    likely, unlikely = (below(1, first, offset=1.5, rate=5.0) for first in (0.0, 1.0))
    assert unlikely < MPL  # and so is each of the densities that MPL compares
    mixed = (SNIPER - unlikely) / (1 - unlikely)  # of the outcome ⊤, to reach the least probability
    assert likely + mixed * (1 - likely) <= math.e * SNIPER  # Theorem 4, condition (11c)
    runs = 20_000
    found = drawn(svt_uniform_threshold, [0.0] * 10, runs, epsilon=1.0)
    assert near(sum(answers[0] == 0 for answers in found), runs, likely)
    assert all(answers[-1] == 1 or len(answers) == 10 for answers in found)


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["laplace_flat_ends", "svt_uniform_threshold"])
def test_default_settings_find_what_is_hidden(name):
    verdict = dpw.check(name, epsilon=1.0, seed=11)
    assert verdict.refuted
    assert verdict.log_e_value > 50


@pytest.mark.campaign
def test_more_search_runs_find_what_is_below_a_density():
    """An event of probability 10⁻⁴ comes some 50 times in the search runs that are usual, and 400 times in these."""
    verdict = dpw.check("laplace_flat_ends_low_density", epsilon=1.0, search_runs=4_000_000, seed=11)
    assert verdict.refuted
