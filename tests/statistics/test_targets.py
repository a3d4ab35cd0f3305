"""The bundled targets: each has the law of its paper, hides what it is said to hide, and is judged rightly."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy import integrate, stats

import dpwitness as dpw
import truth
from dpwitness import ZCDP, ApproxDP
from dpwitness.algorithms import gaussian_noise, noise_addition, randomized_response, sparse_vector, threshold_testing
from dpwitness.exact import pattern_probability
from dpwitness.mechanisms.catalog import load
from dpwitness.problem import Statement
from dpwitness.targets import target_of
from running import sampled, scaled

#: Draws of a mechanism. A Kolmogorov distance is refused that chance alone exceeds once in 10⁹; of these draws a law
#: 1.4 times as wide is told apart.
DRAWS, LEVEL = 3_000, 1e-9


def drawn(mechanism, data, n=DRAWS, **parameters):
    mechanism, rng = load(mechanism) if isinstance(mechanism, str) else mechanism, np.random.default_rng(7)
    return np.array([mechanism(rng, np.array(data), **parameters) for _ in range(n)])


def near(found, n, probability):
    """Whether so many of n runs are within six standard errors of what a probability expects."""
    return abs(found - n * probability) <= 6 * math.sqrt(n * probability * (1 - probability)) + 1e-9


def released(column):
    """One entry of what is released."""
    return lambda rows: rows[:, column] if rows.ndim > 1 else rows


def difference(rows):
    return rows[:, 1] - rows[:, 0]


def difference_of_two(x):
    """−0.5 and two independent Laplace numbers of scale 4, one less the other: the density is (1 + |u|)e^(−|u|)/16."""
    u = (np.asarray(x) + 0.5) / 4
    return np.where(u < 0, (2 - u) * np.exp(np.minimum(u, 0)) / 4, 1 - (2 + u) * np.exp(-np.maximum(u, 0)) / 4)


def sampled_sum(x):
    """A record of 1 is in half of the samples; the noise is that of ε′ = ln(1 + 2(e^ε − 1))."""
    law = stats.laplace(0, 1 / math.log(2 * math.exp(0.5) - 1))
    return (law.cdf(x) + law.cdf(np.asarray(x) - 1)) / 2


def flat_ended(scale, edge, centre=0.0):
    """Laplace noise whose tails have a level density, and end."""
    tail = math.exp(-edge / scale) / 2

    def cdf(x):
        x = np.asarray(x, float) - centre
        far = tail * np.clip(1 - (np.abs(x) - edge) / scale, 0, 1)
        below = np.where(np.abs(x) < edge, np.exp(-np.abs(x) / scale) / 2, far)
        return np.where(x < 0, below, 1 - below)

    return cdf


def truncated(x):
    """Laplace noise of scale 1 that ends where its δ is .05 at ε = 1."""
    bound = math.log(1 + math.expm1(1.0) / 0.1)
    return 0.5 + np.sign(x) * np.expm1(-np.abs(x)) / (2 * np.expm1(-bound))


#: The data, what of the outcomes is looked at, and its law at ε = .5; then other parameters.
LAWS = {
    "laplace_parallel": ([3.0], released(19), stats.laplace(3, 20 / 0.5).cdf),
    "prefix_sum": ([3.0, 4.0, 5.0], difference, stats.laplace(4, 1 / 0.5).cdf),
    "sum_of_signed": ([1.0, -0.5], released(0), stats.laplace(0.5, 2 / 0.5).cdf),
    "sum_of_signed_half_sensitivity": ([1.0, -0.5], released(0), stats.laplace(0.5, 1 / 0.5).cdf),
    "count_and_sum": ([1.0, 0.5], difference, difference_of_two),
    "count_and_sum_full_budget_each": ([1.0, 0.5], released(0), stats.laplace(2, 1 / 0.5).cdf),
    "answers_composed": ([1.0, 2.0, 3.0, 4.0], released(3), stats.laplace(4, 4 / 0.5).cdf),
    "answers_root_composed": ([1.0, 2.0, 3.0, 4.0], released(3), stats.laplace(4, 2 / 0.5).cdf),
    "two_answers": ([1.0, 2.0], released(1), stats.laplace(2, 2 / 0.5).cdf),
    "two_answers_same_noise": ([1.0, 2.0], released(1), stats.laplace(2, 2 / 0.5).cdf),
    "clipped_sum": ([-9.0, 0.5, 9.0], released(0), stats.laplace(1.5, 1 / 0.5).cdf),
    "clipped_sum_above_only": ([-9.0, 0.5, 9.0], released(0), stats.laplace(-7.5, 1 / 0.5).cdf),
    "sampled_sum": ([1.0], released(0), sampled_sum),
    "unsampled_sum": ([1.0, 9.0, 0.5], released(0), stats.laplace(1.5, 1 / math.log(2 * math.exp(0.5) - 1)).cdf),
    "one_sided_noise": ([3.0], released(0), stats.expon(3, 1 / 0.5).cdf),
    "noisy_max_laplace_value": ([3.0], released(0), stats.laplace(3, 2 / 0.5).cdf),
    "noisy_max_exponential_value": ([3.0], released(0), stats.expon(3, 2 / 0.5).cdf),
    "rarely_without_noise": ([3.0], lambda rows: rows[rows != 3], stats.laplace(3, 1 / 0.5).cdf),
    "rarely_less_noise": ([3.0], lambda rows: rows[rows < 60], stats.laplace(3, 1 / 0.5).cdf),
    "histogram_rarely_exact": ([3, 4, 5], lambda rows: rows[rows[:, 1] != 4, 1], stats.laplace(4, 1 / 0.5).cdf),
    "counts_above_zero": ([0, 9], lambda rows: rows[rows[:, 0] > 0, 0], stats.expon(0, 1 / 0.5).cdf),
    "gaussian_mechanism": ([3.0], released(0), stats.norm(3, math.sqrt(2 * math.log(1.25e5)) / 0.5).cdf),
    "gaussian_wrong_sigma": ([3.0], released(0), stats.norm(3, math.sqrt(math.log(1.25e5)) / 0.5).cdf),
    # Balle & Wang 2018, Algorithm 1
    "analytic_gaussian": ([3.0], released(0), stats.norm(3, 3.730632).cdf, {"epsilon": 1.0}),
    "truncated_laplace": ([0.0], released(0), truncated, {"epsilon": 1.0, "delta": 0.05}),
    "laplace_flat_ends": ([3.0], released(0), flat_ended(4.0, 2.0, 3.0), {"edge": 1.0}),
    "laplace_flat_ends_low_density": ([3.0], released(0), flat_ended(2.0, 2 * math.log(2.5), 3.0), {"density": 0.1}),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_noise_has_the_law_of_the_paper(name):
    """A law 1.4 times as wide, the slip that is likeliest, is refused."""
    data, part, cdf, *more = LAWS[name]
    found = part(drawn(name, data, **{"epsilon": 0.5, **dict(*more)}))
    centre = float(np.median(found))
    assert stats.kstest(found, cdf).pvalue > LEVEL
    assert stats.kstest(found, lambda x: cdf(centre + (x - centre) * 1.4)).pvalue < LEVEL
    assert np.all((cdf(found) > 0) | (cdf(found + 1e-9) > 0))  # nothing lies where the law has nothing
    assert np.all(cdf(found - 1e-9) < 1)


ANSWERS = [2.0, 0.0, 1.0]


def place_of_the_largest(law, scale):
    """The probability that each answer + noise is the largest, by quadrature."""
    found = []
    for i, answer in enumerate(ANSWERS):

        def density(x, i=i, answer=answer):
            others = [law.cdf((x - other) / scale) for j, other in enumerate(ANSWERS) if j != i]
            return law.pdf((x - answer) / scale) / scale * math.prod(others)

        found.append(integrate.quad(density, -60, 100, points=ANSWERS, limit=400)[0])
    return dict(enumerate(found))


def shares(weights, values=None):
    """Probabilities proportional to weights."""
    weights = np.asarray(weights, float)
    return dict(zip(range(len(weights)) if values is None else values, weights / weights.sum(), strict=True))


AROUND, GRID = np.arange(-60, 67), np.arange(-82, 83, 4)
#: The data, and the probabilities of outcomes at ε = .5.
OUTCOMES = {
    "geometric_mechanism": ([3], lambda: shares(np.exp(-abs(AROUND - 3) / 2), AROUND)),
    "discrete_gaussian": ([3], lambda: shares(np.exp(-((AROUND - 3) ** 2) / 8), AROUND)),
    # λ = 2 at ε = .5 rounds to multiples of 4, just above 2 of 4, too: the least power of two not below λ.
    "snapping_mechanism": ([3.0], lambda: shares(np.diff(stats.laplace(3, 2).cdf(GRID)), GRID[1:] - 2)),
    "noisy_max_laplace": (ANSWERS, lambda: place_of_the_largest(stats.laplace, 2 / 0.5)),
    "noisy_max_exponential": (ANSWERS, lambda: place_of_the_largest(stats.expon, 2 / 0.5)),
    "exponential_mechanism": (ANSWERS, lambda: shares(np.exp(0.25 * np.array(ANSWERS)))),
    "exponential_mechanism_half_scale": (ANSWERS, lambda: shares(np.exp(0.5 * np.array(ANSWERS)))),
    "randomized_response": ([1], lambda: shares([1, math.exp(0.5)])),
    "generalized_randomized_response": ([2], lambda: shares([1, 1, math.exp(0.5), 1, 1, 1])),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcomes_come_with_the_probabilities_of_the_paper(name):
    data, probabilities = OUTCOMES[name]
    found = drawn(name, data, epsilon=0.5)
    for value, probability in probabilities().items():
        assert near(np.sum(found == value), DRAWS, probability)
    assert sum(probabilities().values()) == pytest.approx(1, abs=1e-6)


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


def test_the_snapping_mechanism_stays_within_its_bound():
    assert set(drawn("snapping_mechanism", [1e9], 50, epsilon=0.5)) <= {1024.0 - 4 * k for k in range(9)}
    with pytest.raises(ValueError, match="bound"):
        drawn("snapping_mechanism", [0.0], 1, epsilon=1e-3, bound=10.0)


THREE = [1.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("mechanism", "parameters", "threshold", "b", "c"),
    [
        (sparse_vector.svt_resampled, {"epsilon": 0.7, "cutoff": 1}, 1.0, 2 / 0.7, 4 / 0.7),
        (sparse_vector.numerical_svt, {"epsilon": 0.7, "cutoff": 1}, 1.0, 3 / 0.7, 6 / 0.7),
        (sparse_vector.svt_numeric_and_flags, {"epsilon": 0.7, "cutoff": 1}, 1.0, 2 / 0.7, 2 / 0.7),
        (sparse_vector.svt_numeric_and_flags, {"epsilon": 0.7, "cutoff": 2}, 1.0, 2 / 0.7, 4 / 0.7),
        # 2/ε, 4·cutoff/ε: Lyu, Su & Li 2017, Alg. 1
        (sparse_vector.svt, {"epsilon": 4.0, "cutoff": 2}, 0.5, 0.5, 2.0),
        (sparse_vector.svt, {"epsilon": 4.0, "cutoff": 2, "sensitivity": 2.0}, 0.5, 1.0, 4.0),
        # 1/ε₁, 1/ε₂: Chen & Machanavajjhala 2015, Alg. 2
        (threshold_testing.gptt, {"epsilon1": 1.0, "epsilon2": 2.0}, 0.5, 1.0, 0.5),
        (threshold_testing.gptt, {"epsilon1": 1.0, "epsilon2": 2.0, "sensitivity": 2.0}, 0.5, 2.0, 1.0),
    ],
)
def test_sparse_vectors_have_the_scales_of_their_papers(mechanism, parameters, threshold, b, c):
    """The first answers, ⊥⊥⊤ and the like, have the probabilities of those scales."""
    rng = np.random.default_rng(3)
    rows = [mechanism(rng, np.array(THREE), **parameters)[:3] for _ in range(DRAWS)]
    for pattern in ([1], [0, 1], [0, 0, 1], [0, 0, 0]):
        seen = sum(bool(np.array_equal(row[: len(pattern)] != 0, np.array(pattern, bool))) for row in rows)
        probability = pattern_probability(pattern, THREE, threshold=threshold, threshold_scale=b, query_scale=c)
        assert near(seen, DRAWS, probability)


def test_the_second_half_of_numbers_and_flags_is_isvt3():
    rows = drawn("svt_numeric_and_flags", THREE, epsilon=0.7)
    for pattern in ([1, 1], [0, 1, 1], [0, 0, 0]):
        seen = np.sum(np.all(rows[:, 3 : 3 + len(pattern)] == pattern, axis=1))
        probability = pattern_probability(pattern, THREE, threshold=1, threshold_scale=4 / 0.7, query_scale=4 / 2.1)
        assert near(seen, DRAWS, probability)
    after_two = rows[np.all(rows[:, 3:5] == 1, axis=1)]
    assert len(after_two)
    assert np.all(np.isnan(after_two[:, 5]))


def test_a_threshold_that_is_drawn_anew():
    """With a cutoff of 2 at ε = 1.4: the scales of 1 at .7, and what follows the first ⊤ is independent of it."""
    rng = np.random.default_rng(3)
    rows = [sparse_vector.svt_resampled(rng, np.array(THREE), 1.4, cutoff=2) for _ in range(DRAWS)]
    parts = [pattern_probability([1], [a], threshold=1, threshold_scale=2 / 0.7, query_scale=4 / 0.7) for a in THREE]
    assert near(sum(row.tolist() == [1, 1] for row in rows), DRAWS, parts[0] * parts[1])


@pytest.mark.parametrize(
    ("mechanism", "low", "high", "loss"),
    [
        (randomized_response.rappor, 0.4875, 0.5125, 0.4001),
        (randomized_response.one_time_rappor, 0.475, 0.525, 0.8007),
    ],
)
def test_rappor_sends_each_bit_by_its_probability(mechanism, low, high, loss):
    """Bits are independent, so the loss is the sum of those that differ, which the target states."""
    filters = [randomized_response.bloom_filter(v, 4, 20) for v in range(randomized_response.KINDS)]
    assert all(held.sum() == 4 for held in filters)
    differing = max(np.sum(a != b) for a, b in combinations(filters, 2))
    assert differing == 8
    assert differing * max(math.log(high / low), math.log((1 - low) / (1 - high))) == pytest.approx(loss, abs=5e-5)
    assert f"{loss:.4f}".lstrip("0") in target_of(mechanism).true_epsilon
    sent = drawn(mechanism, [2])
    for held, place in zip(filters[2], range(20), strict=True):
        assert near(sent[:, place].sum(), DRAWS, (low, high)[int(held)])


def test_optimal_unary_encoding_keeps_the_true_bit_in_half_of_the_runs():
    unary = drawn("optimal_unary_encoding", [2], epsilon=0.7)
    for kind in range(6):
        assert near(unary[:, kind].sum(), DRAWS, 0.5 if kind == 2 else 1 / (1 + math.exp(0.7)))


def test_what_rare_leaks_hold_in_one_run_of_a_hundred():
    runs = 8_000
    assert near(np.sum(drawn("rarely_without_noise", [3.0], runs, epsilon=1.0) == 3), runs, 0.005)
    far = drawn("rarely_less_noise", [3.0], runs, epsilon=1.0)
    assert near(np.sum(far > 30), runs, 0.01)
    assert stats.kstest(far[far > 30], stats.laplace(53, 1 / 4).cdf).pvalue > LEVEL
    rare = drawn("rarely_truthful", [1], runs, epsilon=0.5)
    probabilities = [
        rate / (1 + math.exp(loss)) for rate, loss in ((0.99, 0.5), (0.99, -0.5), (0.01, 2.5), (0.01, -2.5))
    ]
    assert all(near(np.sum(rare == k), runs, p) for k, p in enumerate(probabilities))
    cells = drawn("histogram_rarely_exact", [3, 4], runs, epsilon=1.0)
    assert near(np.sum(cells == [3, 4]), runs, 0.01)
    tail = drawn("far_tail_without_noise", [3.0], runs, epsilon=1.0)
    assert near(np.sum(tail == 3 - math.log(0.01)), runs, 0.005)


def test_what_the_raw_answer_decides():
    """Each twin gives away by one event whether the raw answer is 0, or below the threshold; its correct twin not."""
    raw = drawn("counts_above_zero_of_raw", [0, 1], 200, epsilon=0.5)
    assert np.all(raw[:, 0] == 0)
    assert np.all(raw[:, 1] > 0)
    assert np.all(drawn("answer_if_raw_large", [9.0], 200, epsilon=0.5) == -1)
    assert np.all(drawn("answer_if_raw_large", [10.0], 200, epsilon=0.5) != -1)
    for answer in (9.0, 10.0):
        silent = drawn("answer_if_large", [answer], epsilon=0.5) == -1
        assert near(silent.sum(), DRAWS, stats.laplace(answer, 2).cdf(10))
    kept = drawn("counts_above_zero", [0, 1], epsilon=0.5) == 0
    assert near(kept[:, 0].sum(), DRAWS, 0.5)
    assert near(kept[:, 1].sum(), DRAWS, stats.laplace(1, 2).cdf(0))
    assert np.ptp(np.diff(drawn("two_answers_same_noise", [1.0, 2.0], 50, epsilon=0.5))) < 1e-9
    # All noisy answers lie below the larger of two inputs' answers on one of them alone.
    assert np.all(drawn("noisy_max_exponential_value", [1.0] * 5, 500, epsilon=0.5) >= 1)
    assert np.any(drawn("noisy_max_exponential_value", [0.0] * 2, 2_000, epsilon=4.0) < 1)


def test_gaussian_targets_claim_what_they_run_with():
    for given, delta in (({}, 1e-5), ({"delta": 0.01}, 0.01), ({"parameters": {"delta": 0.02}}, 0.02)):
        statement = Statement(mechanism="gaussian_mechanism", epsilon=1.0, **given)
        assert statement.stated.claim == ApproxDP(1.0, delta)
    assert Statement(mechanism="gaussian_mechanism", epsilon=1.0, claim=ZCDP(0.1)).stated.claim == ZCDP(0.1)
    assert Statement(mechanism="discrete_gaussian", epsilon=0.5).stated.claim == ZCDP(0.125)


def test_the_smallest_noise_is_the_one_whose_delta_is_claimed():
    """Of a sampled step the larger δ of both directions (Balle et al. 2018, Theorem 8)."""
    for epsilon in (0.01, 0.3, 1.0, 4.0, 10.0):
        for delta in (1e-10, 1e-5, 0.05):
            mu = gaussian_noise.largest_mu(epsilon, delta)
            assert truth.gaussian_delta(epsilon, mu=mu) == pytest.approx(delta, rel=1e-9)
    mu = 1 / gaussian_noise.step_sigma(0.3, 1e-4, 0.25)
    both = [truth.subsampled_gaussian_delta(0.3, rate=0.25, mu=mu, removed=removed) for removed in (True, False)]
    assert max(both) == pytest.approx(1e-4, rel=1e-9)


#: DP-Sniper looks at no event less probable than this, MPL at no density below this (Wang et al. 2024, section 10.1).
SNIPER, MPL = 0.01, 1e-4


def test_the_true_loss_of_a_low_threshold():
    """⊥ k times has the log ratio k·θ₂ on answers of 0 and 1, θ₂ = 5ε; ε = 1 and the default offset hide it."""

    def below(first, offset=1.5, rate=5.0):
        """P(⊥): the integral over the threshold."""
        return integrate.quad(lambda u: stats.laplace.cdf(rate * (1 - offset * (1 + u) - first)), 0, 1, epsabs=0)[0]

    likely, unlikely = below(0.0), below(1.0)
    assert math.log(likely / unlikely) == pytest.approx(5, rel=1e-9)
    assert unlikely < MPL  # and so is each of the densities that MPL compares
    mixed = (SNIPER - unlikely) / (1 - unlikely)  # of the outcome ⊤, to reach the least probability
    assert likely + mixed * (1 - likely) <= math.e * SNIPER  # Theorem 4, condition (11c)
    mechanism, rng, runs = load("svt_uniform_threshold"), np.random.default_rng(7), 20_000
    found = [mechanism(rng, np.zeros(10), epsilon=1.0) for _ in range(runs)]
    assert near(sum(answers[0] == 0 for answers in found), runs, likely)
    assert all(answers[-1] == 1 or len(answers) == 10 for answers in found)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("laplace_flat_ends", {}),
        ("svt_uniform_threshold", {}),
        # An event of probability 10⁻⁴ comes some 50 times in the search runs that are usual, and 400 times in these.
        ("laplace_flat_ends_low_density", {"search_runs": 4_000_000}),
    ],
)
def test_a_check_finds_what_is_hidden(name, more):
    verdict = dpw.check(name, epsilon=1.0, seed=11, **more)
    assert verdict.refuted
    assert more or verdict.log_e_value > 50


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
