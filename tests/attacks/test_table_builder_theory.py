"""How often averaging attacks succeed: formulas against enumeration, closed forms and simulation."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom, entropy

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder import theory
from dpwitness.reconstruction.table_builder.averaging import nearest
from dpwitness.reconstruction.table_builder.histogram import recover_histogram
from dpwitness.reconstruction.table_builder.noise_laws import (
    NoiseLaw,
    maximum_entropy,
    truncated_laplace,
    truncated_normal,
    uniform,
)
from dpwitness.reconstruction.table_builder.perturbation import largest_sum
from dpwitness.reconstruction.table_builder.report import theory_of
from dpwitness.reconstruction.table_builder.supply import Plan
from dpwitness.reconstruction.table_builder.systems import BoundedNoisyCounts
from dpwitness.reconstruction.table_builder.tables import Table


def agrees(hits, runs, p):
    """A two-sided limit that a right simulation breaks with probability 1e-9."""
    return binom.ppf(0.5e-9, runs, p) <= hits <= binom.isf(0.5e-9, runs, p)


@pytest.mark.parametrize("r", [1, 2, 3, 5])
def test_proposition_2_counts_the_sums_that_algorithm_3_needs(r):
    noises = range(-r, r + 1)
    right = sum(
        largest_sum(np.array([[a, b, c]])).guess == r
        for a, b, c in product(noises, repeat=3)
        if abs(a + b - c) <= 3 * r
    )
    assert right == 20
    assert theory.perturbation_found(r, 1) == pytest.approx(20 / (2 * r + 1) ** 3)


def test_a_low_sum_alone_gives_the_parameter_away():
    assert largest_sum(np.array([[-2, -1, 2]])).guess == 2  # −⌈−5/3⌉, as printed in Algorithm 3, would be 1


@pytest.mark.parametrize(("r", "m"), [(2, 10), (5, 100)])
def test_proposition_2_agrees_with_simulation(r, m):
    rng = np.random.default_rng(5)
    runs = 4_000
    noise = rng.integers(-r, r, (runs, m, 3), endpoint=True)
    hits = sum(largest_sum(noise[i]).guess == r for i in range(runs))
    assert agrees(hits, runs, theory.perturbation_found(r, m))


def exact(law, k):
    """Equation (5) in whole arithmetic: numbers of ways, by repeated convolution of integers."""
    weights = [Fraction(p).limit_denominator(10**6) for p in law.probabilities]
    ways = {0: Fraction(1)}
    for _ in range(2 * k):
        more = {}
        for total, p in ways.items():
            for e, q in zip(law.support, weights, strict=True):
                more[total + e] = more.get(total + e, 0) + p * q
        ways = more
    inside = sum(p for total, p in ways.items() if 2 * abs(total) < k)
    ties = sum(p for total, p in ways.items() if 2 * abs(total) == k)
    return float(inside), float(inside + ties / 2)


@pytest.mark.parametrize("r", [1, 2, 5])
@pytest.mark.parametrize("k", [1, 2, 7, 20])
def test_equation_5_equals_convolution_of_fractions(r, k):
    strict, half = exact(uniform(r), k)
    assert theory.noise_removed(r, k) == pytest.approx(strict, abs=1e-12)
    assert theory.noise_removed(r, k, ties="half") == pytest.approx(half, abs=1e-12)


def test_one_partition_succeeds_as_often_as_a_guess():
    for r in range(1, 11):
        assert theory.noise_removed(r, 1) == pytest.approx(1 / (2 * r + 1))  # appendix C


@pytest.mark.parametrize(
    "law", [uniform(2), maximum_entropy(3, 1.5), truncated_laplace(4, 2.0)], ids=lambda law: law.bound
)
def test_equation_5_agrees_with_simulation(law):
    rng = np.random.default_rng(7)
    k, runs = 40, 20_000
    means = law.sample(rng, runs * 2 * k).reshape(runs, -1).sum(axis=1) / k
    assert agrees(np.sum(np.abs(means) < 0.5), runs, theory.noise_removed(law, k))
    low, errors = theory.rounded_error_law(law, k)
    rounded = np.array([nearest(mean) for mean in means])
    for error in (-1, 0, 1):
        assert agrees(np.sum(rounded == error), runs, errors[error - low])


def test_union_bounds_hold():
    # Algorithm 4 twice for a value, and values + 1 times for a histogram, all from noise of their own.
    rng = np.random.default_rng(13)
    runs, k, values = 20_000, 60, 5
    failed = np.abs(rng.integers(-2, 2, (runs, values + 1, 2 * k), endpoint=True).sum(axis=2)) >= k / 2
    assert np.sum(~failed[:, :2].any(axis=1)) >= binom.ppf(1e-9, runs, theory.histogram_bound(2, k, 1))
    assert np.sum(~failed.any(axis=1)) >= binom.ppf(1e-9, runs, theory.histogram_bound(2, k, values))
    assert theory.histogram_bound(2, k, values) > 0.6


def test_union_bounds():
    failure = 1 - theory.noise_removed(2, 200)
    assert theory.histogram_bound(2, 200, 1) == pytest.approx(1 - 2 * failure)
    assert theory.histogram_bound(2, 200, 107) == pytest.approx(1 - 108 * failure)
    assert theory.histogram_bound(5, 50, 107) == 0.0


def test_expected_right_agrees_with_simulation_of_differences():
    rng = np.random.default_rng(3)
    k, first, runs = 30, 60, 40_000
    noise = uniform(3)
    a = np.floor(noise.sample(rng, runs * 2 * k).reshape(runs, -1).sum(axis=1) / k + 0.5)
    b = np.floor(noise.sample(rng, runs * 2 * first).reshape(runs, -1).sum(axis=1) / first + 0.5)
    assert agrees(np.sum(a == b), runs, theory.expected_right(noise, first, [k], [False]))
    assert agrees(np.sum(a <= b), runs, theory.expected_right(noise, first, [k], [True]))


@pytest.mark.parametrize(("support", "variance"), [(2, 1.0), (5, 3.0), ((-1, 0, 1, 3), 0.9), ((-2, -1, 1, 4), 3.0)])
def test_maximum_entropy_equals_constrained_optimisation(support, variance):
    law = maximum_entropy(support, variance)
    values = np.array(law.support, float)
    start = np.full(len(values), 1 / len(values))
    best = minimize(
        lambda p: float(np.sum(p * np.log2(np.maximum(p, 1e-300)))),
        start,
        method="SLSQP",
        bounds=[(1e-12, 1)] * len(values),
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "eq", "fun": lambda p: p @ values},
            {"type": "ineq", "fun": lambda p: variance - p @ values**2},
        ],
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert law.variance <= variance * (1 + 1e-9)
    assert entropy(law.probabilities, base=2) == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(law.probabilities, best.x, atol=2e-4)


def test_a_loose_variance_bound_gives_the_uniform_law():
    for r in (1, 2, 5):
        assert maximum_entropy(r, r * (r + 1) / 3 + 1e-9).probabilities == pytest.approx(uniform(r).probabilities)
        assert uniform(r).variance == pytest.approx(r * (r + 1) / 3)


@pytest.mark.parametrize("made", [truncated_normal, truncated_laplace])
def test_truncated_laws_equal_rounded_samples(made):
    from scipy import stats

    law = made(3, 1.5)
    rng = np.random.default_rng(11)
    family = stats.norm if made is truncated_normal else stats.laplace
    draws = family.rvs(scale=1.5, size=200_000, random_state=rng)
    draws = np.rint(draws[np.abs(draws) <= 3])
    for value, p in zip(law.support, law.probabilities, strict=True):
        assert agrees(np.sum(draws == value), len(draws), p)


@pytest.mark.parametrize(
    "call",
    [
        lambda: uniform(0),
        lambda: uniform(-3),
        lambda: uniform(2.5),
        lambda: uniform(True),
        lambda: uniform(10**9),
        lambda: maximum_entropy(2, 0.0),
        lambda: maximum_entropy(2, float("nan")),
        lambda: maximum_entropy([-2, -1, 1, 4], 0.5),
        lambda: maximum_entropy([1, 2], 1.0),
        lambda: truncated_normal(2, 0.0),
        lambda: truncated_laplace(2, float("inf")),
        lambda: NoiseLaw(support=(-1, 0, 1), probabilities=(0.5, 0.5, 0.0)),
        lambda: NoiseLaw(support=(-1, 0, 1), probabilities=(0.5, 0.5)),
        lambda: theory.noise_removed(2, 0),
    ],
)
def test_impossible_laws_and_numbers_are_refused(call):
    with pytest.raises(InvalidParameter):
        call()


@pytest.mark.parametrize(("mean", "count"), [(0.5, 1), (2.5, 3), (-0.5, 0), (2.49, 2), (-2.51, -3), (3.0, 3)])
def test_halves_go_up(mean, count):
    assert nearest(mean) == count


@pytest.mark.campaign
def test_two_removals_are_paired_without_the_table_of_all_pairs():
    law = uniform(3)
    for k, base in ((((2, 2),), ((2, 40),)), (((2, 40),), ((2, 3),)), (((2, 7), (3, 5)), ((2, 9),))):
        low, first = theory.rounded_error_law(law, k)
        base_low, second = theory.rounded_error_law(law, base)
        pairs = [(low + i - base_low - j, p * q) for i, p in enumerate(first) for j, q in enumerate(second)]
        exact, cut_off = (sum(p for d, p in pairs if d == 0), sum(p for d, p in pairs if d <= 0))
        assert theory.expected_right(law, base, [k, k], [False, True]) == pytest.approx(exact + cut_off, rel=1e-13)
    # 40,001 errors each: all pairs would take 12 GiB.
    assert 0 < theory.expected_right(uniform(10_000), ((2, 100),), [((2, 100),)], [False]) < 1e-3


def test_a_count_without_a_sum_has_no_theory():
    oracle = BoundedNoisyCounts(Table.from_counts([60 + i for i in range(9)]), noise=2, rng=np.random.default_rng(1))
    found = recover_histogram(oracle, np.random.default_rng(2), "value", Plan(partitions=5))
    assert None not in theory_of(uniform(2), found, [60] * 9)
    none = replace(found, kinds=((), *found.kinds[1:]))
    assert theory_of(uniform(2), none, [60] * 9) == (None, None)
