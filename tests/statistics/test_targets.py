"""The bundled targets of pure DP: each has the law of its paper, and the true ε that it states."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy import integrate, stats

import dpwitness as dpw
from dpwitness.algorithms import noise_addition, randomized_response, rare_leaks, selection, slips, sparse_vector
from dpwitness.exact import pattern_probability
from dpwitness.mechanisms.catalog import load, registered
from dpwitness.targets import target_of
from running import sampled, scaled

#: Draws of a mechanism. A Kolmogorov distance is refused that chance alone exceeds once in 10⁹.
DRAWS, LEVEL = 1_500, 1e-9
#: Of these a law 1.4 times as wide is told apart.
MANY = 3_000


def drawn(mechanism, data, n=DRAWS, **parameters):
    rng = np.random.default_rng(7)
    return np.array([mechanism(rng, np.array(data), **parameters) for _ in range(n)])


def near(found, n, probability):
    """Whether so many of n runs are within six standard errors of what a probability expects."""
    return abs(found - n * probability) <= 6 * math.sqrt(n * probability * (1 - probability)) + 1e-9


def test_all_targets_of_the_benchmark_are_bundled():
    benchmark = """laplace_mechanism truncated_geometric histogram histogram_wrong_scale noisy_max_laplace
        noisy_max_exponential noisy_max_laplace_value noisy_max_exponential_value svt svt_resampled isvt4 isvt3 isvt1
        isvt2 rappor one_time_rappor laplace_parallel svt_numeric_and_flags prefix_sum numerical_svt randomized_response
        geometric_mechanism gaussian_mechanism discrete_gaussian exponential_mechanism snapping_mechanism
        generalized_randomized_response optimal_unary_encoding"""
    assert set(benchmark.split()) <= registered().keys()
    for name in benchmark.split():
        known = target_of(load(name))
        assert known.source
        assert known.true_epsilon != "unknown"


def released(column):
    """One entry of what is released."""
    return lambda rows: rows[:, column] if rows.ndim > 1 else rows


def difference(rows):
    return rows[:, 1] - rows[:, 0]


#: The data, ε = .5, what of the outcomes is looked at, and its law.
LAWS = {
    "laplace_parallel": ([3.0], released(19), stats.laplace(3, 20 / 0.5)),
    "prefix_sum": ([3.0, 4.0, 5.0], difference, stats.laplace(4, 1 / 0.5)),
    "sum_of_signed": ([1.0, -0.5], released(0), stats.laplace(0.5, 2 / 0.5)),
    "sum_of_signed_half_sensitivity": ([1.0, -0.5], released(0), stats.laplace(0.5, 1 / 0.5)),
    "count_and_sum": ([1.0, 0.5], difference, None),
    "count_and_sum_full_budget_each": ([1.0, 0.5], released(0), stats.laplace(2, 1 / 0.5)),
    "answers_composed": ([1.0, 2.0, 3.0, 4.0], released(3), stats.laplace(4, 4 / 0.5)),
    "answers_root_composed": ([1.0, 2.0, 3.0, 4.0], released(3), stats.laplace(4, 2 / 0.5)),
    "two_answers": ([1.0, 2.0], released(1), stats.laplace(2, 2 / 0.5)),
    "two_answers_same_noise": ([1.0, 2.0], released(1), stats.laplace(2, 2 / 0.5)),
    "clipped_sum": ([-9.0, 0.5, 9.0], released(0), stats.laplace(1.5, 1 / 0.5)),
    "clipped_sum_above_only": ([-9.0, 0.5, 9.0], released(0), stats.laplace(-7.5, 1 / 0.5)),
    "unsampled_sum": ([1.0, 9.0, 0.5], released(0), stats.laplace(1.5, 1 / math.log(2 * math.exp(0.5) - 1))),
    "one_sided_noise": ([3.0], released(0), stats.expon(3, 1 / 0.5)),
    "noisy_max_laplace_value": ([3.0], released(0), stats.laplace(3, 2 / 0.5)),
    "noisy_max_exponential_value": ([3.0], released(0), stats.expon(3, 2 / 0.5)),
    "rarely_without_noise": ([3.0], lambda rows: rows[rows != 3], stats.laplace(3, 1 / 0.5)),
    "rarely_less_noise": ([3.0], lambda rows: rows[rows < 60], stats.laplace(3, 1 / 0.5)),
    "histogram_rarely_exact": ([3, 4, 5], lambda rows: rows[rows[:, 1] != 4, 1], stats.laplace(4, 1 / 0.5)),
    "counts_above_zero": ([0, 9], lambda rows: rows[rows[:, 0] > 0, 0], stats.expon(0, 1 / 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAWS)
def test_the_noise_has_the_law_of_the_paper(name):
    """A law 1.4 times as wide, the slip that is likeliest, is refused."""
    data, part, law = LAWS[name]
    found = part(drawn(load(name), data, MANY, epsilon=0.5))
    if law is None:  # the difference of two independent Laplace numbers of scale b has the density (1 + x/b)e^(−x/b)/4b
        law = stats.rv_continuous()
        law.cdf = lambda x: np.where(
            (u := (x + 0.5) / 4) < 0,
            (2 - u) * np.exp(np.minimum(u, 0)) / 4,
            1 - (2 + u) * np.exp(-np.maximum(u, 0)) / 4,
        )
    centre = float(np.median(found))
    assert stats.kstest(found, law.cdf).pvalue > LEVEL
    assert stats.kstest(found, lambda x: law.cdf(centre + (x - centre) * 1.4)).pvalue < LEVEL


class Counter:
    """A generator that gives each whole number of a range in turn."""

    def __init__(self):
        self.next = 0

    def integers(self, low, high):
        self.next += 1
        assert low + self.next - 1 < high
        return low + self.next - 1


@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 1), (0.5, 2)])
def test_all_draws_of_the_truncated_geometric_mechanism(epsilon, k):
    """P(Z = c) of each count, and the privacy loss that Balcer & Vadhan state."""
    total = (2 ** (k + 1) + 1) * (2**k + 1) ** 4
    laws = []
    for c in range(6):
        every = Counter()
        outcomes = [noise_addition.truncated_geometric(every, np.array([c]), epsilon) for _ in range(total)]
        laws.append(np.bincount(np.array(outcomes, int), minlength=6))
    loss = max(float(np.max(np.abs(np.log(a / b)))) for a, b in pairwise(laws))
    assert loss == pytest.approx(math.log(1 + 2.0**-k), rel=1e-12)
    assert noise_addition.geometric_bits(epsilon) == k
    assert noise_addition.geometric_bits(0.1) == 3  # ln(1 + 1/8) = .1178 is above .1


def test_the_geometric_mechanism_has_its_law():
    found = drawn(noise_addition.geometric_mechanism, [3], epsilon=0.5)
    ratio = math.exp(-0.5)
    for k in range(-6, 7):
        assert near(np.sum(found == 3 + k), DRAWS, (1 - ratio) / (1 + ratio) * ratio ** abs(k))


def test_the_snapping_mechanism_is_laplace_noise_on_a_grid():
    """λ = 2 at ε = .5 rounds to multiples of 4, just above 2 of 4, too: the least power of two not below λ."""
    found = drawn(noise_addition.snapping_mechanism, [3.0], epsilon=0.5)
    assert np.all(found % 4 == 0)
    for value in (-4, 0, 4, 8):
        between = stats.laplace(3, 2).cdf(value + 2) - stats.laplace(3, 2).cdf(value - 2)
        assert near(np.sum(found == value), DRAWS, between)
    assert set(drawn(noise_addition.snapping_mechanism, [1e9], 50, epsilon=0.5)) <= {1024.0 - 4 * k for k in range(9)}
    with pytest.raises(ValueError, match="bound must lie"):
        drawn(noise_addition.snapping_mechanism, [0.0], 1, epsilon=1e-3, bound=10.0)


ANSWERS = [2.0, 0.0, 1.0]


def place_of_the_largest(law, scale):
    """The probability that each answer + noise is the largest, by quadrature."""
    found = []
    for i, answer in enumerate(ANSWERS):

        def density(x, i=i, answer=answer):
            others = [law.cdf((x - other) / scale) for j, other in enumerate(ANSWERS) if j != i]
            return law.pdf((x - answer) / scale) / scale * math.prod(others)

        found.append(integrate.quad(density, -60, 100, points=ANSWERS, limit=400)[0])
    return found


SELECTIONS = {
    "noisy_max_laplace": lambda: place_of_the_largest(stats.laplace, 2 / 0.7),
    "noisy_max_exponential": lambda: place_of_the_largest(stats.expon, 2 / 0.7),
    "exponential_mechanism": lambda: np.exp(0.35 * np.array(ANSWERS)) / np.exp(0.35 * np.array(ANSWERS)).sum(),
    "exponential_mechanism_half_scale": lambda: np.exp(0.7 * np.array(ANSWERS)) / np.exp(0.7 * np.array(ANSWERS)).sum(),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_places_are_selected_with_the_probabilities_of_the_paper(name):
    found = drawn(load(name), ANSWERS, epsilon=0.7)
    probabilities = SELECTIONS[name]()
    assert sum(probabilities) == pytest.approx(1, abs=1e-6)
    for place, probability in enumerate(probabilities):
        assert near(np.sum(found == place), DRAWS, probability)


def test_the_losses_of_selections():
    """What they state: of scores far apart where two move towards each other; of five maxima where all move."""
    score = np.array([0.0, 60.0])
    for factor, loss in ((0.5, 1.0), (1.0, 2.0)):  # of the exponential mechanism at ε = 1, and without its 2
        law, other = (np.exp(factor * s) / np.exp(factor * s).sum() for s in (score, score + np.array([1, -1])))
        assert math.log(other[0] / law[0]) == pytest.approx(loss, abs=1e-9)
    low = -30.0  # P(all five are below x) is the fifth power: each moves by ε/2
    assert 5 * (stats.laplace.logcdf(low / 2) - stats.laplace.logcdf((low - 1) / 2)) == pytest.approx(2.5, abs=1e-9)


@pytest.mark.parametrize(
    ("mechanism", "parameters", "b", "c"),
    [
        (sparse_vector.svt_resampled, {"cutoff": 1}, 2 / 0.7, 4 / 0.7),
        (sparse_vector.numerical_svt, {"cutoff": 1}, 3 / 0.7, 6 / 0.7),
        (sparse_vector.svt_numeric_and_flags, {"cutoff": 1}, 2 / 0.7, 2 / 0.7),
        (sparse_vector.svt_numeric_and_flags, {"cutoff": 2}, 2 / 0.7, 4 / 0.7),
    ],
)
def test_sparse_vectors_have_the_scales_of_their_papers(mechanism, parameters, b, c):
    """The first three answers, ⊥⊥⊤ and the like, have the probabilities of those scales."""
    data, rng = [1.0, 0.0, 2.0], np.random.default_rng(3)
    rows = [mechanism(rng, np.array(data), 0.7, **parameters)[:3] for _ in range(DRAWS)]
    for pattern in ([1], [0, 1], [0, 0, 1], [0, 0, 0]):
        seen = sum(bool(np.array_equal(row[: len(pattern)] != 0, np.array(pattern, bool))) for row in rows)
        exact = pattern_probability(pattern, data, threshold=1.0, threshold_scale=b, query_scale=c)
        assert near(seen, DRAWS, exact)


def test_the_second_half_of_numbers_and_flags_is_isvt3():
    rows = drawn(sparse_vector.svt_numeric_and_flags, [1.0, 0.0, 2.0], epsilon=0.7)
    for pattern in ([1, 1], [0, 1, 1], [0, 0, 0]):
        seen = np.sum(np.all(rows[:, 3 : 3 + len(pattern)] == pattern, axis=1))
        exact = pattern_probability(pattern, [1.0, 0, 2], threshold=1, threshold_scale=4 / 0.7, query_scale=4 / 2.1)
        assert near(seen, DRAWS, exact)
    after_two = rows[np.all(rows[:, 3:5] == 1, axis=1)]
    assert len(after_two)
    assert np.all(np.isnan(after_two[:, 5]))


def test_a_threshold_that_is_drawn_anew():
    """With a cutoff of 2 at ε = 1.4: the scales of 1 at .7, and what follows the first ⊤ is independent of it."""
    data, rng = [1.0, 0.0, 2.0], np.random.default_rng(3)
    rows = [sparse_vector.svt_resampled(rng, np.array(data), 1.4, cutoff=2) for _ in range(DRAWS)]
    parts = [
        pattern_probability([1], [answer], threshold=1, threshold_scale=2 / 0.7, query_scale=4 / 0.7) for answer in data
    ]
    assert near(sum(row.tolist() == [1, 1] for row in rows), DRAWS, parts[0] * parts[1])


def loss_of_bits(law, differing):
    """Of bits that are independent: the sum of those that differ."""
    return differing * max(abs(math.log(law[1] / law[0])), abs(math.log((1 - law[0]) / (1 - law[1]))))


@pytest.mark.parametrize(
    ("mechanism", "law", "loss"),
    [
        (randomized_response.rappor, (0.4875, 0.5125), 0.4001),
        (randomized_response.one_time_rappor, (0.475, 0.525), 0.8007),
    ],
)
def test_rappor_sends_each_bit_by_its_probability(mechanism, law, loss):
    filters = [randomized_response.bloom_filter(v, 4, 20) for v in range(randomized_response.KINDS)]
    assert all(held.sum() == 4 for held in filters)
    assert max(np.sum(a != b) for a, b in combinations(filters, 2)) == 8
    assert loss_of_bits(law, 8) == pytest.approx(loss, abs=5e-5)
    sent = drawn(mechanism, [2])
    for held, place in zip(filters[2], range(20), strict=True):
        assert near(sent[:, place].sum(), DRAWS, law[int(held)])
    assert near(sent.sum() - sent[:, 0].sum(), 19 * DRAWS, (4 * law[1] + 15 * law[0]) / 19)


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "least", "truth"), [("rappor", 0.25, 0.4001), ("one_time_rappor", 0.55, 0.8007)])
def test_a_bound_of_a_filter_uses_all_bits_that_differ(name, least, truth):
    """One bit alone shows .05 and .1."""
    found = dpw.bound(name, epsilon=0.01, neighbours=dpw.pairs(([0], [2])), seed=1, runs=200_000, alpha=0.1)
    assert least <= found.epsilon_lower_bound <= truth


def test_local_mechanisms_have_the_loss_of_their_claim():
    """The probabilities of the true and of another answer, whose log ratio is ε = .7."""
    e = math.exp(0.7)
    one = drawn(randomized_response.randomized_response, [1], epsilon=0.7)
    assert near(one.sum(), DRAWS, e / (1 + e))
    kinds = drawn(randomized_response.generalized_randomized_response, [2], epsilon=0.7)
    for kind in range(6):
        assert near(np.sum(kinds == kind), DRAWS, (e if kind == 2 else 1) / (e + 5))
    unary = drawn(randomized_response.optimal_unary_encoding, [2], epsilon=0.7)
    for kind in range(6):
        assert near(unary[:, kind].sum(), DRAWS, 0.5 if kind == 2 else 1 / (1 + e))
    assert math.log(0.5 / (1 / (1 + e))) + math.log((1 - 1 / (1 + e)) / 0.5) == pytest.approx(0.7, abs=1e-12)


def test_what_rare_leaks_hold_in_one_run_of_a_hundred():
    runs = 8_000
    near_exact = drawn(rare_leaks.rarely_without_noise, [3.0], runs, epsilon=1.0)
    assert near(np.sum(near_exact == 3), runs, 0.005)
    far = drawn(rare_leaks.rarely_less_noise, [3.0], runs, epsilon=1.0)
    assert near(np.sum(far > 30), runs, 0.01)
    assert stats.kstest(far[far > 30], stats.laplace(53, 1 / 4).cdf).pvalue > LEVEL
    rare = drawn(rare_leaks.rarely_truthful, [1], runs, epsilon=0.5)
    probabilities = [
        rate / (1 + math.exp(loss)) for rate, loss in ((0.99, 0.5), (0.99, -0.5), (0.01, 2.5), (0.01, -2.5))
    ]
    assert all(near(np.sum(rare == k), runs, p) for k, p in enumerate(probabilities))
    assert math.log(probabilities[3] / probabilities[2]) == pytest.approx(2.5)
    cells = drawn(rare_leaks.histogram_rarely_exact, [3, 4], runs, epsilon=1.0)
    assert near(np.sum(cells == [3, 4]), runs, 0.01)
    tail = drawn(rare_leaks.far_tail_without_noise, [3.0], runs, epsilon=1.0)
    assert near(np.sum(tail == 3 - math.log(0.01)), runs, 0.005)


def test_the_loss_of_less_noise_far_away():
    """sup |log p(x)/p(x − 1)|, on a grid: 4 where the far answers are, 1 elsewhere."""

    def log_density(x):
        return np.logaddexp(math.log(0.99 / 2) - np.abs(x), math.log(0.01 * 4 / 2) - 4 * np.abs(x - 50))

    x = np.linspace(-20, 120, 140_001)
    assert np.max(np.abs(log_density(x) - log_density(x - 1))) == pytest.approx(4, abs=1e-3)
    assert np.max(np.abs(log_density(x) - log_density(x - 1))[np.abs(x) < 30]) == pytest.approx(1, abs=1e-6)


def test_the_loss_of_sums_of_a_sample_and_of_its_twin():
    """With the record 1 − r + r·e^ε′ is the largest ratio, at the far end; without a sample it is ε′."""
    epsilon, rate = 0.7, 0.5
    inner = math.log(1 + math.expm1(epsilon) / rate)
    x = 40.0
    with_record = (1 - rate) * stats.laplace.pdf(x, 0, 1 / inner) + rate * stats.laplace.pdf(x, 1, 1 / inner)
    assert math.log(with_record / stats.laplace.pdf(x, 0, 1 / inner)) == pytest.approx(epsilon, abs=1e-9)
    found = drawn(slips.sampled_sum, [1.0], epsilon=epsilon)
    law = stats.laplace(0, 1 / inner).cdf
    assert stats.kstest(found, lambda y: (1 - rate) * law(y) + rate * law(y - 1)).pvalue > LEVEL
    assert stats.kstest(found, law).pvalue < LEVEL


def test_what_the_raw_answer_decides():
    """Each twin gives away by one event whether the raw answer is 0, or below the threshold; its correct twin not."""
    assert np.all(drawn(slips.counts_above_zero_of_raw, [0, 1], 200, epsilon=0.5)[:, 0] == 0)
    assert np.all(drawn(slips.counts_above_zero_of_raw, [0, 1], 200, epsilon=0.5)[:, 1] > 0)
    assert np.all(drawn(slips.answer_if_raw_large, [9.0], 200, epsilon=0.5) == -1)
    assert np.all(drawn(slips.answer_if_raw_large, [10.0], 200, epsilon=0.5) != -1)
    for answer in (9.0, 10.0):
        silent = drawn(slips.answer_if_large, [answer], epsilon=0.5) == -1
        assert near(silent.sum(), DRAWS, stats.laplace(answer, 2).cdf(10))
    kept = drawn(slips.counts_above_zero, [0, 1], epsilon=0.5) == 0
    assert near(kept[:, 0].sum(), DRAWS, 0.5)
    assert near(kept[:, 1].sum(), DRAWS, stats.laplace(1, 2).cdf(0))
    assert np.ptp(np.diff(drawn(slips.two_answers_same_noise, [1.0, 2.0], 50, epsilon=0.5))) < 1e-9


@pytest.mark.parametrize("mechanism", [selection.noisy_max_exponential_value])
def test_below_the_largest_answer_is_nothing(mechanism):
    """So the event that all noisy answers are below the larger of two inputs' answers happens on one of them alone."""
    assert np.all(drawn(mechanism, [1.0] * 5, 500, epsilon=0.5) >= 1)
    assert np.any(drawn(mechanism, [0.0] * 2, 2_000, epsilon=4.0) < 1)


TWINS = {
    "sum_of_signed_half_sensitivity": "sum_of_signed",
    "count_and_sum_full_budget_each": "count_and_sum",
    "answers_root_composed": "answers_composed",
    "two_answers_same_noise": "two_answers",
    "counts_above_zero_of_raw": "counts_above_zero",
    "answer_if_raw_large": "answer_if_large",
    "unsampled_sum": "sampled_sum",
    "clipped_sum_above_only": "clipped_sum",
    "one_sided_noise": "laplace_mechanism",
    "exponential_mechanism_half_scale": "exponential_mechanism",
}


@pytest.mark.campaign
@pytest.mark.parametrize("name", sampled([*TWINS, "rarely_without_noise", "rarely_less_noise", "rarely_truthful"], 7))
def test_a_slip_is_refuted_at_default_settings(name):
    verdicts = [dpw.check(load(name), epsilon=1.0, seed=seed, workers=1) for seed in range(scaled(20))]
    assert all(verdict.refuted for verdict in verdicts)


@pytest.mark.campaign
@pytest.mark.parametrize("name", sampled(TWINS.values(), 3))
def test_its_correct_twin_is_not(name):
    verdicts = [dpw.check(load(name), epsilon=1.0, seed=seed, workers=1) for seed in range(scaled(20))]
    assert not any(verdict.refuted for verdict in verdicts)
