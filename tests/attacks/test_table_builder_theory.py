"""Systems with bounded noise (Algorithms 1 and 2), and how often averaging succeeds: formulas against enumeration."""

from fractions import Fraction

import numpy as np
import pytest
from attacking import agrees
from scipy.optimize import minimize
from scipy.stats import binom, chi2, entropy

from dpwitness.reconstruction.table_builder import theory
from dpwitness.reconstruction.table_builder.averaging import nearest
from dpwitness.reconstruction.table_builder.noise_laws import (
    maximum_entropy,
    truncated_normal,
    uniform,
)
from dpwitness.reconstruction.table_builder.systems import (
    BoundedNoisyCounts,
    FreshNoisyCounts,
    KeyedNoisyCounts,
)
from dpwitness.reconstruction.table_builder.tables import Table, read_table

STICKY = [BoundedNoisyCounts, KeyedNoisyCounts]
SYSTEMS = [*STICKY, FreshNoisyCounts]
# Table 1 of the paper.
PEOPLE = {
    "suburb": ["Redfern", "Redfern", "Newtown", "Redfern", "Surry Hills", "Darlinghurst"],
    "age": ["20-29", "20-29", "30-39", "20-29", "40-49", "70-79"],
    "gender": ["M", "M", "F", "F", "M", "F"],
}


def six(times=1):
    return Table.from_columns({name: values * times for name, values in PEOPLE.items()})


def select(oracle, attribute, *values):
    known = oracle.values(attribute)
    row = np.zeros((1, len(known)), bool)
    row[0, [known.index(value) for value in values]] = True
    return row


@pytest.mark.parametrize("system", SYSTEMS)
def test_at_most_s_people_are_answered_by_0(system):
    for seed in range(50):
        oracle = system(Table.from_counts([0, 1, 4, 5, 6]), noise=2, suppression=4, rng=np.random.default_rng(seed))
        answers = oracle.ask("value", np.eye(5, dtype=bool))
        assert answers[:3].tolist() == [0, 0, 0]
        assert np.all(np.abs(answers[3:] - [5, 6]) <= 2)
        assert np.all(answers[3:] > 0)  # Proposition 1 (c), as s ≥ r


@pytest.mark.parametrize("system", SYSTEMS)
def test_same_contributors_get_the_same_noise_and_others_do_not(system):
    """But for fresh noise, of which two of five values agree by chance."""
    same = different = 0
    for seed in range(400):
        oracle = system(six(10), noise=2, suppression=2, rng=np.random.default_rng(seed))
        redfern = oracle.ask("suburb", select(oracle, "suburb", "Redfern"))[0]
        twenties = oracle.ask("age", select(oracle, "age", "20-29"))[0]  # the same people (Example 1)
        again = oracle.ask("suburb", select(oracle, "suburb", "Redfern"), {"age": ["20-29", "70-79"]})[0]
        men = oracle.ask("gender", select(oracle, "gender", "M"))[0]  # as many, but others
        same += redfern == twenties == again
        different += redfern != men
    assert same == 400 if system in STICKY else agrees(same, 400, 1 / 25)
    assert different >= binom.ppf(1e-9, 400, 4 / 5)


@pytest.mark.parametrize("system", STICKY)
@pytest.mark.parametrize("law", [2, maximum_entropy(3, 1.0)], ids=["uniform", "maximum entropy"])
def test_noise_follows_its_law_and_differs_between_sets(system, law):
    table = Table.from_counts([100] * 10)
    oracles = [system(table, noise=law, suppression=4, rng=np.random.default_rng(seed)) for seed in range(40)]
    subsets = ((np.arange(1, 1024)[:, None] >> np.arange(10)) & 1).astype(bool)
    noise = np.array([o.ask("value", subsets) - 100 * subsets.sum(axis=1) for o in oracles])
    support, p = oracles[0].law.support, np.array(oracles[0].law.probabilities)
    observed = np.array([np.sum(noise == value) for value in support])
    assert observed.sum() == noise.size
    assert np.sum((observed - noise.size * p) ** 2 / (noise.size * p)) < chi2.isf(1e-9, len(p) - 1)
    # Sets that share people, and complements whose keys are related, have uncorrelated noise: z of a sum of products.
    for i, j in ((1, 2), (1, 3), (511, 512), (340, 683)):
        left, right = noise[:, i - 1].astype(float), noise[:, j - 1].astype(float)
        assert abs(left @ right) < 6.2 * np.sqrt(len(left)) * oracles[0].law.variance
    complements = noise[:, :511] * noise[:, 1021 - np.arange(511)]
    assert abs(complements.sum()) < 6.2 * np.sqrt(complements.size) * oracles[0].law.variance


def test_files_of_people_and_of_counts_give_the_same_table(tmp_path):
    (tmp_path / "people.csv").write_text("age,sex\n17,F\n17,F\n18,M\n")
    (tmp_path / "counts.csv").write_text("age,sex,count\n17,F,2\n18,M,1\n18,F,0\n")
    people, counts = (read_table(tmp_path / name) for name in ("people.csv", "counts.csv"))
    assert people.values == counts.values == {"age": (17, 18), "sex": ("F", "M")}
    assert people.codes.tolist() == counts.codes.tolist()
    assert people.counts.tolist() == counts.counts.tolist()


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


@pytest.mark.parametrize(
    ("law", "kinds"),
    [
        *((law, ((2, 40),)) for law in (uniform(2), maximum_entropy(3, 1.5), truncated_normal(4, 2.0))),
        *((truncated_normal(3, 1.5), kinds) for kinds in (((1, 1), (2, 5)), ((2, 6), (4, 9)), ((3, 7),))),
    ],
)
def test_equation_5_agrees_with_simulation_of_sums_of_any_kinds(law, kinds):
    rng, runs = np.random.default_rng(7), 20_000
    sums = [law.sample(rng, runs * parts * k).reshape(runs, -1).sum(axis=1) / parts for parts, k in kinds]
    means = sum(sums) / sum(k / parts for parts, k in kinds)
    assert agrees(np.sum(np.abs(means) < 0.5 - 1e-9), runs, theory.noise_removed(law, kinds))
    low, errors = theory.rounded_error_law(law, kinds)
    rounded = np.array([nearest(mean + 1e-9) for mean in means])
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


def test_a_truncated_law_equals_rounded_samples():
    law = truncated_normal(3, 1.5)
    draws = np.random.default_rng(11).normal(scale=1.5, size=200_000)
    draws = np.rint(draws[np.abs(draws) <= 3])
    for value, p in zip(law.support, law.probabilities, strict=True):
        assert agrees(np.sum(draws == value), len(draws), p)


def test_the_theory_of_large_noise_fits_into_memory():
    """Of 40,001 errors each: all pairs would take 12 GiB."""
    assert 0 < theory.expected_right(uniform(10_000), ((2, 100),), [((2, 100),)], [False]) < 1e-3
