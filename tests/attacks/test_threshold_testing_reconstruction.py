"""Algorithms 3 and 4 of Chen & Machanavajjhala (2015), their lemma and theorems, and the simulated oracle."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.reconstruction.threshold_testing.attack import (
    ordered_partition,
    reconstruct,
    reconstruct_supported,
    score,
)
from dpwitness.reconstruction.threshold_testing.oracle import (
    Noise,
    ThresholdOracle,
    check_histogram,
    queries_of,
)
from dpwitness.reconstruction.threshold_testing.theory import attack_threshold, copies_for
from reference_gptt import paper_oracle, partition_by_comparing, reconstruct_by_comparing, threshold_answers

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
    assert ordered_partition(oracle_at(counts, z))[0].tolist() == partition_by_comparing(counts, z)


@given(small_histograms, st.integers(-15, 15), st.sampled_from([np.inf, 200.0]))
def test_how_many_sets_a_cell_is_in_is_that_of_all_comparisons(counts, above, epsilon2):
    _, inside = ordered_partition(oracle_at(counts, above + 0.5, epsilon2=epsilon2))
    assert inside.tolist() == [sum(u - v > above for v in counts) for u in counts]


def test_sets_that_are_not_nested_are_told_by_how_many_hold_each_cell():
    answers = {(1, 0): 1, (2, 1): 1}  # larger(0) is {1}, and larger(1) is {2}
    system = lambda signs: answers.get((int(signs.argmax()), int(signs.argmin())), 0) if signs.any() else 0  # noqa: E731
    assert ordered_partition(queries_of(system, 3))[1] is None
    answers[2, 0] = 1
    assert ordered_partition(queries_of(system, 3))[1].tolist() == [0, 1, 2]


@given(small_histograms, st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 3.0]), st.integers(-3, 10))
def test_the_reconstruction_is_that_of_all_comparisons(counts, seed, epsilon, theta):
    fast = reconstruct(paper_oracle(np.array(counts), np.random.default_rng(seed), epsilon=epsilon, threshold=theta))
    slow = reconstruct_by_comparing(counts, np.random.default_rng(seed), epsilon=epsilon, theta=theta)
    assert fast.guess.tolist() == slow


@given(small_histograms, st.floats(1e-6, 20))
def test_lemma_5_10_parts_stand_in_the_order_of_counts(counts, z):
    # The lemma's probability 1 − δ is that of z > 0.
    part, _ = ordered_partition(oracle_at(counts, z))
    for u, v in itertools.combinations(range(len(counts)), 2):
        if part[u] != part[v]:
            assert (part[u] < part[v]) == (counts[u] < counts[v])


@given(st.integers(1, 6), st.integers(0, 8), st.lists(st.integers(0, 60), max_size=20), st.floats(0.0, 1.0))
def test_theorem_5_12_small_counts_get_a_part_of_their_own(alpha, extra, others, position):
    k = 2 * alpha + 1 + extra
    counts = np.array([*range(k + 1), *others])
    # The theorem's probability 1 − δ is that of 0 ≤ z ≤ 2α; at z = 0 larger(v) still tells all counts apart.
    part, _ = ordered_partition(oracle_at(counts, 2 * alpha * position))
    for i in range(k - 2 * alpha + 1):
        assert np.flatnonzero(part == i).tolist() == np.flatnonzero(counts == i).tolist()


def test_the_noisy_threshold_is_positive_as_often_as_lemma_5_10_says():
    epsilon, delta, n = 0.5, 0.05, 20_000
    z = attack_threshold(epsilon, delta) + np.random.default_rng(1).laplace(0.0, 1 / epsilon, n)
    # P(z ≤ 0) = exp(−εθ)/2 ≤ δ/2.
    assert np.count_nonzero(z <= 0) <= binom.isf(1e-9, n, delta / 2)


@pytest.mark.parametrize("copies", [1, 5])
def test_majorities_have_their_probability(copies):
    # n cells of one person: how many of them are larger than a cell of nobody has the probability of the majority.
    epsilon2, z, n = 0.7, 0.4, 3000
    counts = np.repeat([0, 1], [1, n])
    p = 1 - np.exp(-epsilon2 * (1 - z)) / 2
    expected = binom.sf(copies // 2, copies, p)
    same = binom.sf(copies // 2, copies, np.exp(-epsilon2 * z) / 2)
    size = oracle_at(counts, z, epsilon2=epsilon2, seed=2).larger(copies)[0][0]
    low, high = binom.isf(1 - 1e-9, n, expected), binom.isf(1e-9, n, expected) + 1
    assert low <= size <= high
    assert expected - same > 0.05  # the test could tell the two apart


def test_many_copies_come_to_the_partition_without_noise():
    counts = np.array([0, 0, 1, 2, 2, 3, 4, 5, 9, 9])
    z = 1.5
    part, _ = ordered_partition(oracle_at(counts, z, epsilon2=1.0, seed=3), copies=4001)
    assert part.tolist() == ordered_partition(oracle_at(counts, z))[0].tolist()


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_the_partition_attack_on_real_data(name, data_folder):
    counts = load(data_folder, name)
    paper = {"adult_capital_loss": 0.994, "medical_cost": 0.985, "income": 0.798, "hepth": 0.904}[name]
    rngs = (np.random.default_rng(k) for k in range(20))
    found = [score(counts, reconstruct(paper_oracle(counts, rng, epsilon=1.0)).guess)[0] for rng in rngs]
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
        oracle.ask_changes([(np.ones(2, np.int8), np.array([0]), 1)])


def test_the_oracle_repeats_with_query_noise():
    oracle = oracle_at([3, 0], 2.0, epsilon2=0.5)
    n = 100_000
    hits = oracle.ask(np.array([1, 0], np.int8), n)
    p = 1 - np.exp(-0.5) / 2
    assert binom.isf(1 - 1e-9, n, p) <= hits <= binom.isf(1e-9, n, p)
    assert oracle.queries == n


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([3], "at least 2 cells"),
        ([], "at least 2 cells"),
        ([1, -1], "cell 2 holds -1"),
        ([1, 0.5], "cell 2 holds 0.5"),
        ([1, 1 << 41], "cell 2 holds 2.19902e.12: a count must be a whole number from 0 to 1,099,511,627,776"),
    ],
)
def test_what_is_no_histogram_is_refused(counts, message):
    with pytest.raises(InvalidData, match=message):
        check_histogram(np.array(counts, float if 0.5 in counts or not counts else int))


def test_copies_out_of_range_are_refused():
    with pytest.raises(InvalidParameter, match="copies=0"):
        reconstruct(oracle_at([1, 2], 0.0), copies=0)


def test_the_share_of_the_budget_is_where_the_noise_says():
    # z = θ + Lap(1/(share·ε)), totals + Lap(1/((1 − share)·ε)), drawn in this order.
    oracle = paper_oracle(np.array([4, 9]), np.random.default_rng(6), epsilon=2.0, share=0.25, threshold=3.0)
    rng = np.random.default_rng(6)
    z = 3.0 + rng.laplace(0.0, 1 / 0.5)
    assert oracle.ask_all(np.eye(2, dtype=np.int8)).tolist() == [z <= 4, z <= 9]
    assert oracle.totals(np.array([0, 1])).tolist() == (np.array([4, 9]) + rng.laplace(0.0, 1 / 1.5, 2)).tolist()


def test_without_totals_the_parts_are_lower_limits():
    found = reconstruct(oracle_at([0, 2, 2, 7, 3], 0.5))
    assert found.method == "partition"
    assert found.guess.tolist() == [0, 1, 1, 3, 2]
    assert not found.known.any()


def test_with_the_support_known_the_small_parts_are_their_counts():
    # θ = α = 3, so all z ≤ 2α = 6 leave the counts 0..k − 6 apart (Theorem 5.12).
    counts = np.array([*range(11), 40, 40, 25])
    hits = 0
    for k in range(200):
        oracle = ThresholdOracle(counts, np.random.default_rng(k), epsilon1=1.0, threshold=3)
        found = reconstruct_supported(oracle, 10, delta=0.05)
        claimed = np.flatnonzero(found.known)
        hits += set(claimed) == set(range(5)) and found.guess[:5].tolist() == list(range(5))
    assert hits >= binom.isf(1 - 1e-9, 200, 0.95)


@pytest.mark.parametrize("answers", ["always", "never", "coin", "coin a question"])
def test_with_the_support_known_answers_that_contradict_it_claim_nothing(answers):
    rng, kept = np.random.default_rng(1), {}
    system = {
        "always": lambda signs: True,
        "never": lambda signs: False,
        "coin": lambda signs: rng.random() < 0.5,
        "coin a question": lambda signs: kept.setdefault(signs.tobytes(), rng.random() < 0.5),
    }[answers]
    found = reconstruct_supported(queries_of(system, 60, noise=Noise(epsilon1=1.0, threshold=3)), 10)
    assert not found.known.any()
    assert found.confidence == 0


@pytest.mark.parametrize(
    "change", ["drift", "drawn anew", "people leave", "below 3 suppressed", "z too high", "z too low"]
)
def test_with_the_support_known_nothing_is_claimed_unless_one_threshold_explains_the_answers(change):
    rng = np.random.default_rng(3)
    counts = rng.permutation([*range(21), *rng.integers(0, 30, 40)])
    fewer = counts - (rng.random(61) < 0.3) * (counts > 0)
    thresholds, asked = rng.choice([0.5, 3.5, 5.5], 100), itertools.count()
    system = {
        "drift": lambda signs, number: signs @ counts >= 1.5 + number / 1000,
        "drawn anew": lambda signs, number: signs @ counts >= thresholds[number // 200],
        "people leave": lambda signs, number: signs @ (counts if number < 2000 else fewer) >= 3.5,
        "below 3 suppressed": lambda signs, number: signs @ np.where(counts < 3, 0, counts) >= 2.5,
        "z too high": lambda signs, number: signs @ counts >= 8.5,
        "z too low": lambda signs, number: signs @ counts >= -1.5,
    }[change]
    noise = Noise(epsilon1=1.0, threshold=3)
    found = reconstruct_supported(queries_of(lambda signs: system(signs, next(asked)), 61, noise=noise), 20)
    assert not found.known.any()
    assert found.confidence == 0
    assert reconstruct_supported(queries_of(lambda signs: signs @ counts >= 3.5, 61, noise=noise), 20).known.sum() > 30


def test_with_the_support_known_single_copies_of_noisy_answers_claim_nothing():
    for seed in range(5):
        oracle = ThresholdOracle(
            np.repeat(np.arange(41), 4), np.random.default_rng(seed), epsilon1=1.0, epsilon2=2.0, threshold=3
        )
        assert not reconstruct_supported(oracle, 40).known.any()


@pytest.mark.parametrize("z", [0.0, 0.4, 5.9, 6.0])
def test_with_the_support_known_a_system_of_ones_own_is_read(z):
    counts = np.array([*range(11), 4, 4])
    noise = Noise(epsilon1=1.0, threshold=3)
    found = reconstruct_supported(queries_of(lambda signs: signs @ counts >= z, 13, noise=noise), 10)
    assert found.known.tolist() == [*[True] * 5, *[False] * 6, True, True]
    assert found.guess[found.known].tolist() == counts[found.known].tolist()


@pytest.mark.parametrize(
    ("threshold", "support", "message"), [(3, 6, "must exceed 2α = 6"), (2, 10, "threshold=2 of the oracle must be")]
)
def test_the_support_must_be_what_the_theorem_says(threshold, support, message):
    oracle = ThresholdOracle(np.arange(9), np.random.default_rng(0), epsilon1=1.0, threshold=threshold)
    with pytest.raises(InvalidParameter, match=message):
        reconstruct_supported(oracle, support)


@pytest.mark.parametrize(("epsilon2", "distance", "queries"), [(0.5, 0.25, 1), (0.05, 0.5, 10_000), (3.0, 0.1, 7)])
def test_copies_for_beta_are_the_fewest_that_do(epsilon2, distance, queries):
    beta = 0.01
    t = copies_for(beta, queries, epsilon2=epsilon2, distance=distance)
    wrong = np.exp(-epsilon2 * distance) / 2  # of one copy: below z by the distance, and answered ⊤
    assert t % 2 == 1
    assert binom.sf(t // 2, t, wrong) <= beta / queries
    assert t == 1 or binom.sf((t - 2) // 2, t - 2, wrong) > beta / queries


def test_the_threshold_of_the_smallest_deltas_and_epsilons():
    assert attack_threshold(1.0, 1e-320) == math.ceil(320 * math.log(10))
    with pytest.raises(InvalidParameter, match="epsilon=1e-320 is too small"):
        attack_threshold(1e-320, 0.1)
