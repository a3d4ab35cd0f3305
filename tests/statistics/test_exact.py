import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

import truth
from dpwitness.exact import pattern_probability
from running import soon
from truth import target_probability


def in_40_digits(answers, queries, threshold, b, c):
    """The same integral by mpmath, split at the kinks."""
    with mpmath.workdps(40):

        def cdf(x):
            return mpmath.e**x / 2 if x < 0 else 1 - mpmath.e ** (-x) / 2

        def density(z):
            value = mpmath.e ** (-abs(z - threshold) / b) / (2 * b)
            for answer, q in zip(answers, queries, strict=False):
                value *= cdf((q - z) / c) if answer else cdf((z - q) / c)
            return value

        kinks = sorted({mpmath.mpf(float(q)) for q in queries[: len(answers)]} | {mpmath.mpf(threshold)})
        step = min(b, c)
        points = [kinks[0] - 100 * b + k * 10 * b for k in range(8)] + [kinks[0] - d * step for d in (16, 8, 4, 2, 1)]
        for left, right in pairwise(kinks):
            parts = max(int(mpmath.ceil((right - left) / step)), 1)
            points += [left + (right - left) * k / parts for k in range(parts)]
        points += [kinks[-1] + d * step for d in (0, 1, 2, 4, 8, 16)]
        points += [kinks[-1] + 100 * b - k * 10 * b for k in range(8)]
        return mpmath.quad(density, sorted(set(points)))


@pytest.mark.parametrize("seed", soon(range(12), 1, most=3))
def test_relative_error_is_below_1e_8(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 8))
    answers, queries = rng.integers(0, 2, k).tolist(), rng.integers(-3, 4, k).tolist()
    b, c = float(rng.uniform(0.5, 10)), float(rng.uniform(0.5, 10))
    truth = in_40_digits(answers, queries, 0.5, b, c)
    found = pattern_probability(answers, queries, threshold=0.5, threshold_scale=b, query_scale=c)
    assert abs(found - truth) / truth < 1e-8


def test_one_query_without_noise_is_the_laplace_distribution():
    p = pattern_probability([1], [2.0], threshold=0.5, threshold_scale=3.0, query_scale=0.0)
    assert p == pytest.approx(1 - math.exp(-0.5) / 2, rel=1e-14)
    assert pattern_probability([1, 0], [0, 1], threshold=0, threshold_scale=1, query_scale=0) == 0
    assert pattern_probability([], [], threshold=0, threshold_scale=1, query_scale=1) == 1


@pytest.mark.parametrize(
    ("target", "answers", "moved", "expected"),
    [
        ("svt", [0] * 9 + [1], [1] * 9 + [-1], 0.0982),
        ("isvt3", [0] * 9 + [1], [1] * 9 + [-1], 0.1748),
        ("isvt2", [0] * 5 + [1] * 5, [1] * 5 + [-1] * 5, 0.4198),
    ],
)
def test_known_log_ratios(target, answers, moved, expected):
    p, q = (target_probability(target, answers, d, epsilon=0.1, threshold=1.0) for d in ([0] * 10, moved))
    assert math.log(p / q) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("answers", "scale", "told"), [([2], 1, "ones"), ([1, 0], 1, "ones"), ([1], 0, "positive")])
def test_bad_input(answers, scale, told):
    with pytest.raises(ValueError, match=told):
        pattern_probability(answers, [0], threshold=0, threshold_scale=scale, query_scale=1)


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
def test_the_delta_of_a_sampled_step_by_quadrature(epsilon, removed):
    rate, mu = 0.3, 1.2

    def excess(x):
        mixed = (1 - rate) * stats.norm.pdf(x) + rate * stats.norm.pdf(x, mu)
        first, second = (mixed, stats.norm.pdf(x)) if removed else (stats.norm.pdf(x), mixed)
        return max(first - math.exp(epsilon) * second, 0.0)

    found = truth.subsampled_gaussian_delta(epsilon, rate=rate, mu=mu, removed=removed)
    assert found == pytest.approx(integrate.quad(excess, -12, 14, limit=400, points=[0.0, mu])[0], abs=1e-7)


def test_other_deltas_in_closed_form():
    bound = math.log(1 + math.expm1(1.0) / 0.1)
    assert truth.truncated_laplace_delta(1.0, scale=1.0, bound=bound) == pytest.approx(0.05, rel=1e-12)
    found = truth.discrete_gaussian_delta(0.1, sigma=30.0)  # at such a scale the whole numbers are as good as all
    assert found == pytest.approx(truth.gaussian_delta(0.1, mu=1 / 30), rel=1e-3)
