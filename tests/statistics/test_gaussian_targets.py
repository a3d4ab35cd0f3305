"""The bundled (ε, δ) and zCDP targets: noise of the law that their papers state, and their true curves."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpwitness import ApproxDP, GaussianDP, PrivacyProfile, RenyiDP, TradeOff, exact
from dpwitness.algorithms import gaussian_noise as targets
from dpwitness.claims import ZCDP
from dpwitness.errors import BadInput, InvalidClaim
from dpwitness.mechanisms.claims import claim_of_text as claim
from dpwitness.problem import Statement


def noise(mechanism, data, n=3_000, **parameters):
    rng = np.random.default_rng(5)
    return np.array([mechanism(rng, np.array(data), **parameters) for _ in range(n)])


def test_the_smallest_sigma_is_the_one_whose_delta_is_claimed():
    for epsilon in (0.01, 0.3, 1.0, 4.0, 10.0):
        for delta in (1e-10, 1e-5, 0.05):
            mu = targets.largest_mu(epsilon, delta)
            assert exact.gaussian_delta(epsilon, mu=mu) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize(
    ("mechanism", "parameters", "law"),
    [
        (targets.gaussian_mechanism, {"epsilon": 0.5}, stats.norm(3, math.sqrt(2 * math.log(1.25e5)) / 0.5)),
        (targets.gaussian_wrong_sigma, {"epsilon": 0.5}, stats.norm(3, math.sqrt(math.log(1.25e5)) / 0.5)),
        (targets.analytic_gaussian, {"epsilon": 1.0}, stats.norm(3, 3.730632)),  # Balle & Wang 2018, Alg. 1
    ],
)
def test_gaussian_noise_has_the_sigma_of_its_paper(mechanism, parameters, law):
    """The Kolmogorov distance stays below the limit that it exceeds once in 10⁹; √2 too wide a law is far beyond it."""
    found = noise(mechanism, [3.0], **parameters)
    assert stats.kstest(found, law.cdf).pvalue > 1e-9
    assert stats.kstest(found, lambda x: law.cdf(3 + (x - 3) * math.sqrt(2))).pvalue < 1e-9


def test_the_discrete_gaussian_has_its_law_and_its_claim():
    found = noise(targets.discrete_gaussian, [3], n=8_000, epsilon=0.5)
    k = np.arange(-60, 67)
    weights = np.exp(-((k - 3) ** 2) / 8)
    for value, p in zip(k, weights / weights.sum(), strict=True):
        assert abs(np.sum(found == value) - 8_000 * p) <= 6 * math.sqrt(8_000 * p * (1 - p)) + 1
    assert Statement(mechanism=targets.discrete_gaussian, epsilon=0.5).stated.claim == ZCDP(0.125)
    assert exact.discrete_gaussian_delta(0.1, sigma=30.0) == pytest.approx(
        exact.gaussian_delta(0.1, mu=1 / 30), rel=1e-3
    )  # at such a scale the whole numbers are as good as all


def test_a_rounded_answer_moves_by_a_whole_number():
    """A query of sensitivity 1/2, from 2.75 to 3.25, moves by 1 where it is rounded."""
    half, one = (noise(targets.discrete_gaussian, [3.25], 500, epsilon=0.5, sensitivity=by) for by in (0.5, 1.0))
    assert half.tolist() == one.tolist()


def test_truncated_laplace_noise_reaches_its_bound_and_has_its_delta():
    found = np.abs(noise(targets.truncated_laplace, [0.0], epsilon=1.0, delta=0.05))
    bound = math.log(1 + math.expm1(1.0) / 0.1)
    assert found.max() <= bound
    assert stats.kstest(found, lambda x: -np.expm1(-x) / -math.expm1(-bound)).pvalue > 1e-9
    assert exact.truncated_laplace_delta(1.0, scale=1.0, bound=bound) == pytest.approx(0.05, rel=1e-12)


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
def test_the_delta_of_a_sampled_step_by_quadrature(epsilon, removed):
    rate, mu = 0.3, 1.2

    def excess(x):
        mixed = (1 - rate) * stats.norm.pdf(x) + rate * stats.norm.pdf(x, mu)
        first, second = (mixed, stats.norm.pdf(x)) if removed else (stats.norm.pdf(x), mixed)
        return max(first - math.exp(epsilon) * second, 0.0)

    found = exact.subsampled_gaussian_delta(epsilon, rate=rate, mu=mu, removed=removed)
    assert found == pytest.approx(integrate.quad(excess, -12, 14, limit=400, points=[0.0, mu])[0], abs=1e-7)


def test_a_sampled_step_stands_exactly_at_its_claim():
    """The smallest noise whose δ(ε), the larger of both directions, is the δ claimed (Balle et al. 2018, Theorem 8)."""
    mu = 1 / targets.step_sigma(0.3, 1e-4, 0.25)
    both = [exact.subsampled_gaussian_delta(0.3, rate=0.25, mu=mu, removed=removed) for removed in (True, False)]
    assert max(both) == pytest.approx(1e-4, rel=1e-9)


def test_a_target_claims_the_delta_that_it_runs_with():
    for given, delta in (({}, 1e-5), ({"delta": 0.01}, 0.01), ({"parameters": {"delta": 0.02}}, 0.02)):
        statement = Statement(mechanism=targets.gaussian_mechanism, epsilon=1.0, **given)
        assert statement.stated.claim == ApproxDP(1.0, delta)
    assert Statement(mechanism=targets.gaussian_mechanism, epsilon=1.0, claim=ZCDP(0.1)).stated.claim == ZCDP(0.1)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0.5", 0.5), ("1,1e-5", ApproxDP(1.0, 1e-5)), ("dp:2", ApproxDP(2.0)), ("zcdp:0.5", ZCDP(0.5)),
        ("gdp:1", GaussianDP(1.0)), ("rdp:8,0.4", RenyiDP(8.0, 0.4)),
    ],
)  # fmt: skip
def test_claims_as_text(text, found):
    assert claim(text) == found


@pytest.mark.parametrize("text", ["zcdp", "zcdp:", "rdp:8", "1,2,3", ":1", "gdp:1,2", "other:1", "zcdp:-1", "gdp:nan"])
def test_texts_that_are_no_claim(text):
    with pytest.raises(InvalidClaim, match="must be"):
        claim(text)


def test_claims_in_files(tmp_path):
    file = tmp_path / "profile.json"
    file.write_text("[[0.5, 0.01], [1, 1e-5]]")
    assert claim(f"profile:{file}") == PrivacyProfile([(0.5, 0.01), (1, 1e-5)])
    file.write_text("[[0, 1], [0.5, 0.1], [1, 0]]")
    assert claim(f"tradeoff:{file}") == TradeOff([(0, 1), (0.5, 0.1), (1, 0)])
    for broken in ("{", "3", "[]", "[[1]]", '{"kind": "other"}', '{"a": 1}'):
        file.write_text(broken)
        with pytest.raises(BadInput, match=r"profile\.json"):
            claim(f"profile:{file}")
