"""Algorithms 3 and 4 of Chen & Machanavajjhala (2015), their lemma and theorem, and the weighing attacks."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dpwitness.attacks.threshold_testing.adaptive import adaptive_attack
from dpwitness.attacks.threshold_testing.noisy_weighing import weigh_noisy
from dpwitness.attacks.threshold_testing.oracle import ThresholdOracle, check_histogram
from dpwitness.attacks.threshold_testing.reconstruction import ordered_partition, reconstruct, score
from dpwitness.attacks.threshold_testing.theory import attack_threshold
from dpwitness.attacks.threshold_testing.weighing import Weights, weigh
from dpwitness.errors import InvalidData, InvalidParameter
from reference_gptt import partition_by_comparing, reconstruct_by_comparing, threshold_answers

HISTOGRAMS = ("adult_capital_loss", "medical_cost", "income", "hepth")

small_histograms = st.lists(st.integers(0, 12), min_size=2, max_size=14)


def load(folder, name):
    return np.loadtxt(folder / f"{name}.csv", skiprows=1).astype(np.int64)


def oracle_at(counts, z, epsilon2=np.inf, seed=0):
    """An oracle whose noisy threshold is z: noise of scale 10⁻³⁰⁰ around it."""
    return ThresholdOracle(
        np.asarray(counts), np.random.default_rng(seed), epsilon1=1e300, epsilon2=epsilon2, threshold=z
    )


@given(small_histograms, st.floats(-15, 15))
def test_the_partition_is_that_of_all_comparisons(counts, z):
    assert ordered_partition(np.array(counts), z).tolist() == partition_by_comparing(counts, z)


@given(small_histograms, st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 3.0]), st.integers(-3, 10))
def test_the_reconstruction_is_that_of_all_comparisons(counts, seed, epsilon, theta):
    fast = reconstruct(np.array(counts), np.random.default_rng(seed), epsilon=epsilon, threshold=theta)
    slow = reconstruct_by_comparing(counts, np.random.default_rng(seed), epsilon=epsilon, theta=theta)
    assert fast.guess.tolist() == slow


@given(small_histograms, st.floats(1e-6, 20))
def test_lemma_5_10_parts_stand_in_the_order_of_counts(counts, z):
    # The lemma's probability 1 − δ is that of z > 0.
    part = ordered_partition(np.array(counts), z)
    for u, v in itertools.combinations(range(len(counts)), 2):
        if part[u] != part[v]:
            assert (part[u] < part[v]) == (counts[u] < counts[v])


@given(st.integers(1, 6), st.integers(0, 8), st.lists(st.integers(0, 60), max_size=20), st.floats(0.0, 1.0))
def test_theorem_5_12_small_counts_get_a_part_of_their_own(alpha, extra, others, position):
    k = 2 * alpha + 1 + extra
    counts = np.array([*range(k + 1), *others])
    # The theorem's probability 1 − δ is that of 0 ≤ z ≤ 2α; at z = 0 larger(v) still tells all counts apart.
    part = ordered_partition(counts, 2 * alpha * position)
    for i in range(k - 2 * alpha + 1):
        assert np.flatnonzero(part == i).tolist() == np.flatnonzero(counts == i).tolist()


def test_the_noisy_threshold_is_positive_as_often_as_lemma_5_10_says():
    epsilon, delta, n = 0.5, 0.05, 20_000
    z = attack_threshold(epsilon, delta) + np.random.default_rng(1).laplace(0.0, 1 / epsilon, n)
    # P(z ≤ 0) = exp(−εθ)/2 ≤ δ/2.
    assert np.count_nonzero(z <= 0) <= binom.isf(1e-9, n, delta / 2)


@pytest.mark.parametrize("copies", [1, 5])
def test_majorities_have_their_probability(copies):
    # Two cells, one pair of different ones: u in larger(v) has the probability of the majority.
    epsilon2, z, n = 0.7, 0.4, 3000
    rng = np.random.default_rng(2)
    counts = np.repeat([0, 1], [1, n])
    p = 1 - np.exp(-epsilon2 * (1 - z)) / 2
    expected = binom.sf(copies // 2, copies, p)
    same = binom.sf(copies // 2, copies, np.exp(-epsilon2 * z) / 2)
    from dpwitness.attacks.threshold_testing.reconstruction import _noisy_sizes

    size = _noisy_sizes(np.array([0, 1]), np.array([1, n]), z, epsilon2, copies, rng, (counts > 0) * 1)[0]
    low, high = binom.isf(1 - 1e-9, n, expected), binom.isf(1e-9, n, expected) + 1
    assert low <= size <= high
    assert expected - same > 0.05  # the test could tell the two apart


def test_many_copies_come_to_the_partition_without_noise():
    counts = np.array([0, 0, 1, 2, 2, 3, 4, 5, 9, 9])
    z = 1.5
    part = ordered_partition(counts, z, epsilon2=1.0, copies=4001, rng=np.random.default_rng(3))
    assert part.tolist() == ordered_partition(counts, z).tolist()


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_the_partition_attack_on_real_data(name, data_folder):
    counts = load(data_folder, name)
    paper = {"adult_capital_loss": 0.994, "medical_cost": 0.985, "income": 0.798, "hepth": 0.904}[name]
    found = [score(counts, reconstruct(counts, np.random.default_rng(k), epsilon=1.0).guess)[0] for k in range(20)]
    assert np.mean(found) == pytest.approx(paper, abs=0.02)


@given(st.data())
def test_the_oracle_answers_as_gptt_does(data):
    counts = data.draw(small_histograms)
    signs = data.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=len(counts), max_size=len(counts)))
    z = data.draw(st.integers(-80, 80)) / 4 + 1 / 8
    oracle = oracle_at(counts, z)
    assert oracle.ask(np.array(signs, np.int8)) == threshold_answers(counts, z, signs)
    assert oracle.queries == 1


def test_the_oracle_refuses_queries_of_larger_sensitivity():
    oracle = oracle_at([1, 2], 0.0)
    with pytest.raises(ValueError, match="sensitivity"):
        oracle.ask_each(np.ones(2, np.int8), np.array([0]), 1)


def test_the_oracle_repeats_with_query_noise():
    oracle = oracle_at([3, 0], 2.0, epsilon2=0.5)
    n = 100_000
    hits = oracle.ask(np.array([1, 0], np.int8), n)
    p = 1 - np.exp(-0.5) / 2
    assert binom.isf(1 - 1e-9, n, p) <= hits <= binom.isf(1e-9, n, p)
    assert oracle.queries == n


# Enough small counts to fill S below |z| ≤ 6 and to weigh the rest.
histograms = st.lists(st.integers(0, 12), max_size=30).map(lambda x: [0, 0, *[1] * 12, 2, 2, 2, 3, 3, *x])


@given(histograms, st.integers(-5, 6), st.integers(0, 1000))
def test_weighing_is_exact_where_weights_reach(counts, z, seed):
    counts = np.array(counts)
    found = weigh(oracle_at(counts, z - 0.5), np.random.default_rng(seed))
    assert found.guess.tolist() == counts.tolist()


@given(small_histograms, st.floats(-15, 15), st.integers(0, 1000))
def test_weighing_ends_on_any_histogram(counts, z, seed):
    oracle = oracle_at(counts, z)
    found = weigh(oracle, np.random.default_rng(seed))
    assert found.guess.shape == (len(counts),)
    assert found.queries == oracle.queries <= 200 * len(counts) + 500


@given(st.data())
def test_weights_make_the_offset_that_they_say(data):
    counts = np.array(data.draw(st.lists(st.integers(0, 30), min_size=3, max_size=25)))
    signs = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(counts), max_size=len(counts))), np.int8)
    known = np.array(data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts))))
    weights = Weights(signs, known, counts)
    for direction in (1, -1):
        amount = data.draw(st.integers(0, 200))
        made, w = weights.offset(direction, amount)
        assert np.abs(made).max() <= 1
        assert 0 <= w <= amount
        assert int(counts @ made) == int(counts @ signs) + direction * w
        assert not np.any(made[~known] != signs[~known])
        assert weights.offset(direction, weights.most(direction))[1] == weights.most(direction)


@pytest.mark.parametrize("name", HISTOGRAMS)
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_weighing_reads_real_data(name, epsilon, data_folder):
    counts = load(data_folder, name)
    found = adaptive_attack(counts, np.random.default_rng(7), epsilon1=epsilon)
    assert score(counts, found.guess)[0] >= 0.99
    assert found.queries < 20 * len(counts)


@pytest.mark.parametrize(("epsilon1", "epsilon2"), [(0.25, 0.75), (0.05, 0.05), (1.0, 2.0)])
def test_weighing_reads_real_data_through_query_noise(epsilon1, epsilon2, data_folder):
    counts = load(data_folder, "medical_cost")
    found = adaptive_attack(counts, np.random.default_rng(8), epsilon1=epsilon1, epsilon2=epsilon2)
    assert score(counts, found.guess)[0] >= 0.99


def test_the_ruler_reads_small_histograms():
    counts = np.array([0, 0, 1, 2, 2, 3, 4, 5, 7, 9, 12] * 6)
    right = [
        score(counts, weigh_noisy(oracle_at(counts, 9.2, epsilon2=0.5, seed=k), np.random.default_rng(k)).guess)[0]
        for k in range(20)
    ]
    assert np.mean(right) >= 0.99


def test_a_threshold_beyond_all_cells_gives_nothing_away():
    found = weigh(oracle_at([1, 2, 3], 100.0), np.random.default_rng(0))
    assert found.guess.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("counts", "message"),
    [([3], "at least 2 cells"), ([], "at least 2 cells"), ([1, -1], "cell 2 holds -1"), ([1, 0.5], "cell 2 holds 0.5")],
)
def test_what_is_no_histogram_is_refused(counts, message):
    with pytest.raises(InvalidData, match=message):
        check_histogram(np.array(counts, float if 0.5 in counts or not counts else int))


@pytest.mark.parametrize("settings", [{"epsilon": 0.0}, {"epsilon": 1.0, "delta": 1.0}, {"epsilon": 1.0, "copies": 0}])
def test_parameters_out_of_range_are_refused(settings):
    with pytest.raises(InvalidParameter):
        reconstruct(np.array([1, 2]), np.random.default_rng(0), **settings)


@pytest.mark.parametrize("settings", [{"epsilon1": 0.0}, {"epsilon1": 1.0, "epsilon2": 0.0}])
def test_the_adaptive_attack_refuses_them_too(settings):
    with pytest.raises(InvalidParameter):
        adaptive_attack(np.array([1, 2]), np.random.default_rng(0), **settings)


def test_the_threshold_of_the_smallest_deltas_and_epsilons():
    assert attack_threshold(1.0, 1e-320) == math.ceil(320 * math.log(10))
    with pytest.raises(InvalidParameter, match="epsilon=1e-320 is too small"):
        attack_threshold(1e-320, 0.1)
