"""Private threshold testing (Chen & Machanavajjhala 2015): Algorithms 3 and 4, and the adaptive attack."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, laplace

from dpwitness.errors import InvalidParameter
from dpwitness.files import read_column
from dpwitness.reconstruction.report import Finding
from dpwitness.reconstruction.threshold_testing.attack import (
    adaptive_attack,
    ordered_partition,
    reconstruct,
    reconstruct_supported,
    right_claims,
    score,
)
from dpwitness.reconstruction.threshold_testing.comparison import ThresholdComparison, find_base_sum
from dpwitness.reconstruction.threshold_testing.oracle import Noise, QueryAccess, ThresholdOracle
from dpwitness.reconstruction.threshold_testing.reference_cells import Posterior
from dpwitness.reconstruction.threshold_testing.relative_counts import Bisection
from dpwitness.reconstruction.threshold_testing.theory import attack_threshold
from reference_gptt import paper_oracle, partition_by_comparing, reconstruct_by_comparing, threshold_answers
from running import sampled, soon

small_histograms = st.lists(st.integers(0, 12), min_size=2, max_size=14)
SMALL = np.array([0, 0, 2, 2, 3, 3, 5, 5, 7, 9, 12, 30] * 5)


def oracle_at(counts, z, epsilon2=np.inf, totals=None, seed=0):
    """An oracle whose noisy threshold is z: noise of scale 10⁻³⁰⁰ around it."""
    return ThresholdOracle(
        np.asarray(counts), np.random.default_rng(seed), epsilon1=1e300, epsilon2=epsilon2, threshold=z,
        epsilon_totals=totals,
    )  # fmt: skip


def queries_of(answer, cells, **known):
    """The access to a system that answers one question at a time."""

    def answers(questions):
        asked = list(questions)
        assert all(np.abs(signs).max(initial=0) <= 1 for signs in asked)  # the sensitivity is at most 1
        return np.array([answer(signs) for signs in asked], float)

    return QueryAccess(answers, cells, **known)


def check_claims(found, counts):
    """All claims are right up to one whole factor."""
    assert right_claims(found, np.asarray(counts)).tolist() == found.claimed.tolist()


@given(small_histograms, st.floats(-15, 15))
def test_the_partition_is_that_of_all_comparisons(counts, z):
    assert ordered_partition(oracle_at(counts, z))[0].tolist() == partition_by_comparing(counts, z)


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
    for epsilon, delta in ((0.5, 0.05), (0.03, 1e-6), (3.0, 0.3)):
        assert laplace.cdf(0.0, attack_threshold(epsilon, delta), 1 / epsilon) <= delta / 2


def test_many_copies_come_to_the_partition_without_noise():
    counts = np.array([0, 0, 1, 2, 2, 3, 4, 5, 9, 9])
    z = 1.5
    part, _ = ordered_partition(oracle_at(counts, z, epsilon2=1.0, seed=3), copies=4001)
    assert part.tolist() == ordered_partition(oracle_at(counts, z))[0].tolist()


@pytest.mark.parametrize(
    ("name", "paper"), [("adult_capital_loss", 0.994), ("medical_cost", 0.985), ("income", 0.798), ("hepth", 0.904)]
)
def test_the_partition_attack_on_real_data(name, paper, data_folder):
    counts = read_column(data_folder / f"{name}.csv")
    rngs = (np.random.default_rng(k) for k in range(20))
    found = [score(counts, reconstruct(paper_oracle(counts, rng, epsilon=1.0)).guess)[0] for rng in rngs]
    assert np.mean(found) == pytest.approx(paper, abs=0.02)


@given(st.data())
def test_the_oracle_answers_as_gptt_does(data):
    counts = data.draw(small_histograms)
    signs = data.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=len(counts), max_size=len(counts)))
    z = data.draw(st.integers(-80, 80)) / 4 + 1 / 8
    oracle = oracle_at(counts, z)
    assert oracle.ask_all(np.array([signs], np.int8))[0] == threshold_answers(counts, z, signs)
    assert oracle.queries == 1


def test_without_totals_the_parts_are_lower_limits():
    found = reconstruct(oracle_at([0, 2, 2, 7, 3], 0.5))
    assert found.guess.tolist() == [0, 1, 1, 3, 2]
    assert not found.claimed.any()


def test_with_the_support_known_the_small_parts_are_their_counts():
    # θ = α = 3, so all z ≤ 2α = 6 leave the counts 0..k − 6 apart (Theorem 5.12).
    counts = np.array([*range(11), 40, 40, 25])
    hits = 0
    for k in range(200):
        oracle = ThresholdOracle(counts, np.random.default_rng(k), epsilon1=1.0, threshold=3)
        found = reconstruct_supported(oracle, 10, delta=0.05)
        claimed = np.flatnonzero(found.claimed)
        hits += set(claimed) == set(range(5)) and found.guess[:5].tolist() == list(range(5))
    assert hits >= binom.isf(1 - 1e-9, 200, 0.95)


CONTRADICTIONS = (
    "always", "never", "coin", "coin a question", "drift", "drawn anew", "people leave", "below 3 suppressed",
    "z too high", "z too low",
)  # fmt: skip


@pytest.mark.parametrize("answers", CONTRADICTIONS)
def test_with_the_support_known_nothing_is_claimed_unless_one_threshold_explains_the_answers(answers):
    rng = np.random.default_rng(3)
    counts = rng.permutation([*range(21), *rng.integers(0, 30, 40)])
    fewer = counts - (rng.random(61) < 0.3) * (counts > 0)
    thresholds, asked, kept = rng.choice([0.5, 3.5, 5.5], 100), itertools.count(), {}
    system = {
        "always": lambda signs, number: True,
        "never": lambda signs, number: False,
        "coin": lambda signs, number: rng.random() < 0.5,
        "coin a question": lambda signs, number: kept.setdefault(signs.tobytes(), rng.random() < 0.5),
        "drift": lambda signs, number: signs @ counts >= 1.5 + number / 1000,
        "drawn anew": lambda signs, number: signs @ counts >= thresholds[number // 200],
        "people leave": lambda signs, number: signs @ (counts if number < 2000 else fewer) >= 3.5,
        "below 3 suppressed": lambda signs, number: signs @ np.where(counts < 3, 0, counts) >= 2.5,
        "z too high": lambda signs, number: signs @ counts >= 8.5,
        "z too low": lambda signs, number: signs @ counts >= -1.5,
    }[answers]
    noise = Noise(epsilon1=1.0, threshold=3)
    found = reconstruct_supported(queries_of(lambda signs: system(signs, next(asked)), 61, noise=noise), 20)
    assert not found.claimed.any()
    assert (
        reconstruct_supported(queries_of(lambda signs: signs @ counts >= 3.5, 61, noise=noise), 20).claimed.sum() > 30
    )


def test_with_the_support_known_single_copies_of_noisy_answers_claim_nothing():
    for seed in range(5):
        oracle = ThresholdOracle(
            np.repeat(np.arange(41), 4), np.random.default_rng(seed), epsilon1=1.0, epsilon2=2.0, threshold=3
        )
        assert not reconstruct_supported(oracle, 40).claimed.any()


@pytest.mark.parametrize("z", [0.0, 0.4, 5.9, 6.0])
def test_with_the_support_known_a_system_of_ones_own_is_read(z):
    counts = np.array([*range(11), 4, 4])
    noise = Noise(epsilon1=1.0, threshold=3)
    found = reconstruct_supported(queries_of(lambda signs: signs @ counts >= z, 13, noise=noise), 10)
    assert found.claimed.tolist() == [*[True] * 5, *[False] * 6, True, True]
    check_claims(found, counts)


@pytest.mark.parametrize("z", [-9.5, 0.3, 9.5])
@pytest.mark.parametrize("change", [lambda x: x, lambda x: x + 5, lambda x: 2 * x + 1, lambda x: 3 * x])
def test_counts_without_a_cell_of_one_are_read_up_to_a_factor(z, change):
    counts = change(SMALL)
    found = adaptive_attack(oracle_at(counts, z), np.random.default_rng(1))
    assert found.claimed.all()
    assert found.up_to_factor
    assert (found.guess * np.gcd.reduce(counts)).tolist() == counts.tolist()
    # One more cell may be no multiple of the unit of n cells.
    n = np.count_nonzero(counts)
    assert 0.99 < found.probability.min() <= found.probability.max() <= (n + 0.5) / (n + 1)


def test_real_data_without_ones_are_read_in_few_queries(data_folder):
    counts = read_column(data_folder / "medical_cost.csv")
    counts = np.where(counts == 1, 0, counts)
    oracle = ThresholdOracle(counts, np.random.default_rng(2), epsilon1=0.45)
    assert np.array_equal(adaptive_attack(oracle, np.random.default_rng(3)).guess, counts)
    assert oracle.queries < 12 * len(counts)


@pytest.mark.campaign
@given(
    small_histograms
    | st.builds(
        lambda x, shift: [n + shift for n in (2, 2, 3, 4, 4, 5, 6, 9, *x)], small_histograms, st.integers(0, 3)
    ),
    st.floats(-15, 15),
    st.integers(0, 1000),
)
@settings(max_examples=33, deadline=None)
def test_what_is_claimed_of_any_histogram_is_right_up_to_a_factor(counts, z, seed):
    oracle, counts = oracle_at(counts, z), np.array(counts)
    found = adaptive_attack(oracle, np.random.default_rng(seed))
    assert found.guess.shape == counts.shape
    check_claims(found, counts)


SIXTEENS = np.concatenate([16 * np.random.default_rng(1).poisson(3, 150), [17, 35, 59, 101], np.zeros(400, np.int64)])
#: Histograms of which answers leave a ratio open, thresholds and seeds.
OPEN = [
    # Cells that lie between two whole numbers of the others' unit.
    (SIXTEENS, -0.3, 1),
    # Two counts whose ratio sums of cells alike must tell.
    *(([*cells, 0, 0], z, seed) for cells, z in (([3] * 8 + [7], 4.6), ([9] * 5 + [17] * 3, 0.7),
      ([5] * 3 + [13] * 3, -1.1)) for seed in range(4)),
    *((SIXTEENS, z, 1) for z in (-5.82, -2.24, 5.26)),
    # A solution in units of a twelfth explained 60 answers, and all of 40 fresh ones.
    ([3, 3, 4, 5, 5, 6, 7, 10], -2.5, 181),
    # In units of 2 and of 10 people the last count is nearly 100.
    *((np.repeat(counts, [106, 109, 97, 105, 95]), -1.2, seed) for seed in range(2)
      for counts in ([0, 6, 10, 48, 199], [0, 30, 50, 240, 1001])),
]  # fmt: skip


@pytest.mark.parametrize(("counts", "z", "seed"), soon(OPEN, 5, most=4))
def test_what_the_answers_leave_open_is_not_claimed(counts, z, seed):
    found = adaptive_attack(oracle_at(counts, z), np.random.default_rng(seed))
    check_claims(found, counts)
    assert found.probability.max() < 0.999  # a single cell between two multiples need not show


@pytest.mark.campaign
@pytest.mark.parametrize("seed", sampled(range(5, -1, -1), 2))
def test_a_ratio_that_so_few_cells_leave_open_is_not_claimed(seed):
    # 17 times 3 for 40 times 7 passed 64 fresh sums of 60 cells; of seed 5 where a unit of nearly all is looked for.
    rng = np.random.default_rng(seed)
    counts = rng.choice([0, 7, 40], 120, p=[0.5, 0.3, 0.2])
    check_claims(adaptive_attack(oracle_at(counts, -1.16), rng), counts)


@pytest.mark.parametrize(("between", "known"), [(0, True), (3, False)])
def test_counts_are_not_known_where_a_few_lie_between_multiples_of_all_others(between, known):
    counts = 6 * np.arange(1, 121)
    counts[:between] += 1
    comparison = ThresholdComparison(oracle_at(counts, 3.5))
    bisection = Bisection(comparison, find_base_sum(comparison, np.random.default_rng(0)))
    bisection.restart(np.arange(len(counts)), counts, 4)
    assert bisection.result(64).known.tolist() == [known] * len(counts)


def test_only_one_whole_factor_makes_counts_right():
    found = Finding(guess=np.array([10, 10, 20, 5]), probability=np.full(4, 0.9), up_to_factor=True)
    for truth, right in (([16, 16, 32, 8], 0), ([20, 20, 40, 11], 3), ([10, 10, 20, 5], 4), ([5, 5, 10, 3], 0)):
        assert right_claims(found, np.array(truth)).sum() == right


def test_a_cell_that_outweighs_all_others_is_not_claimed():
    found = adaptive_attack(oracle_at(np.append(SMALL, 100_000), 3.5), np.random.default_rng(1))
    assert found.claimed.tolist() == [True] * len(SMALL) + [False]
    assert found.guess[:-1].tolist() == SMALL.tolist()


@pytest.mark.parametrize("counts", [[0, 7, 40], [3, 5, 24, 100]])
def test_of_a_few_different_counts_or_of_a_few_cells_nothing_is_claimed(counts):
    rng = np.random.default_rng(2)
    assert not adaptive_attack(oracle_at(rng.choice(counts, 200), 2.3), rng).claimed.any()
    assert not adaptive_attack(oracle_at(rng.integers(0, 60, 30), 2.3), rng).claimed.any()


def test_a_wrong_count_does_not_pass_the_test_of_fresh_sums():
    # One cell of 60 counted as one more: an error passes each of 64 sums with probability 3/4 at most.
    comparison = ThresholdComparison(oracle_at(SMALL, 3.5))
    rng = np.random.default_rng(4)
    bisection = Bisection(comparison, find_base_sum(comparison, rng))
    bisection.gap = 4 - int(bisection.base.signs @ SMALL)
    bisection.low[:] = bisection.high[:] = SMALL
    everything = np.arange(len(SMALL))
    assert bisection.test(everything, rng) >= 24
    wrong = int(bisection.base.above[0])
    bisection.low[wrong] = bisection.high[wrong] = SMALL[wrong] + 1
    assert bisection.test(everything, rng) == 0


def test_a_threshold_beyond_all_cells_gives_nothing_away():
    assert not adaptive_attack(oracle_at([1, 2, 3], 100.0), np.random.default_rng(0)).claimed.any()


LIGHT = [0, 0, 2, 2, 2, 3, 3, 4, 5, 7, 9, 12] * 6
#: Counts, the ε of a query's noise and the threshold, and queries a cell at most.
NOISY = [
    *((LIGHT, epsilon2, z, np.inf) for epsilon2, z in ((0.5, 9.2), (0.5, -3.0), (1.0, 0.1), (2.5, 4.2))),
    *((LIGHT, epsilon2, z, 57_600) for epsilon2, z in ((5.0, 3.0), (50.0, 4.9999), (1000.0, 7.5), (1e9, 2.0))),
    (np.random.default_rng(7).integers(300, 900, 60).tolist(), 0.5, 2.3, np.inf),
]


@pytest.mark.parametrize(("counts", "epsilon2", "z", "most"), NOISY)
def test_query_noise_is_read_through(counts, epsilon2, z, most):
    oracle = oracle_at(counts, z, epsilon2=epsilon2)
    found = adaptive_attack(oracle, np.random.default_rng(6))
    assert found.claimed.all()
    assert found.guess.tolist() == counts
    assert oracle.queries < most * len(counts)


@pytest.mark.parametrize("share", [0.0, 0.45, 1.0])
def test_answers_that_do_not_depend_on_the_question_claim_nothing(share):
    class Coin(QueryAccess):
        def ask_all(self, questions, copies=1):
            return self._tossed(len(questions), copies)

        def ask_changes(self, changes, copies=1):
            return [self._tossed(len(cells), copies) for _, cells, _ in changes]

        def _tossed(self, number, copies):
            self.queries += number * copies
            return rng.binomial(copies, share, number)

    rng = np.random.default_rng(1)
    oracle = Coin(None, 30, Noise(epsilon2=1.45))
    assert not adaptive_attack(oracle, rng).claimed.any()
    assert oracle.queries < 100_000_000


def test_the_generic_way_of_asking_is_that_of_the_simulation():
    counts, signs, cells = np.array([3, 0, 5, 2, 2]), np.array([1, 0, -1, 0, 0], np.int8), np.array([1, 3])
    fast = oracle_at(counts, 0.5)
    slow = queries_of(
        lambda signs: signs @ counts >= 0.5, len(counts), totals=lambda parts: np.bincount(parts, weights=counts)
    )
    changes = [(signs, cells, 1), (np.zeros(5, np.int8), np.arange(5), -1)]
    for one, other in zip(fast.ask_changes(changes, 3), slow.ask_changes(changes, 3), strict=True):
        assert one.tolist() == other.tolist()
    assert fast.ask_all(signs[None], 7) == slow.ask_all(signs[None], 7)
    assert fast.queries == slow.queries == 3 * 7 + 7
    assert reconstruct(slow).guess.tolist() == counts.tolist()
    assert slow.queries == 28 + 25


@pytest.mark.parametrize(("epsilon2", "copies"), [(1e-9, None), (1e-300, None), (5e-324, 3)])
def test_noise_that_takes_too_many_copies_is_refused_before_anything_is_asked(epsilon2, copies):
    oracle = oracle_at([1, 2, 3], 0.5, epsilon2=epsilon2)
    with pytest.raises(InvalidParameter, match=f"epsilon2={epsilon2:g}"):
        adaptive_attack(oracle, np.random.default_rng(0), copies=copies)
    assert oracle.queries == 0


def test_answers_that_contradict_each_other_leave_a_finite_posterior():
    """Noise that is drawn once contradicts any counts; a covariance that is itself updated diverges at this seed."""
    rng = np.random.default_rng(4)
    counts = np.repeat([7, 0, 7, 0, 7, 40], [3, 3, 2, 3, 6, 7])
    guess = np.array([6.0, 7, 4, 6, 2, 3, 6, 4, 2, 2, 3, 6, 6, 7, 7, 9, 10, 36, 38, 38, 39, 39, 40, 40])
    posterior = Posterior(np.append(guess, 0.5) / 6, np.append(0.7 + 0.1 * guess, 0.6) / 6)
    noise = {}
    for asked in range(0, 1640, 4):
        signs = posterior.questions(rng, 4)
        sums = [row @ counts + noise.setdefault(row.tobytes(), rng.normal()) for row in signs]
        posterior.learn(signs, np.array(sums) >= 3)
        if asked % 16 == 0:
            posterior.learn_contradicted()
    assert np.abs(posterior.mean).max() < 100


@pytest.mark.campaign
@pytest.mark.parametrize("seed", sampled(range(3), 1))
def test_cells_of_many_thousand_people_are_claimed_and_right(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(5_000, 900_000, 500)
    found = adaptive_attack(ThresholdOracle(counts, rng, epsilon1=0.5), rng)
    assert found.claimed.mean() >= 0.98
    check_claims(found, counts)
