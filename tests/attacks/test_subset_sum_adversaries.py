"""Subset sums (Dinur & Nissim 2003): the adversaries, and how many queries may be allowed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import binom, norm

from dpwitness.algorithms.subset_sum import binomial_subset_sums, bounded_subset_sums
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.subset_sum.exponential import exponential_adversary
from dpwitness.reconstruction.subset_sum.linear_decoding import (
    Subsets,
    choose_adversary,
    clip_answers,
    least_absolute_adversary,
    least_squares_adversary,
    polynomial_adversary,
)
from dpwitness.reconstruction.subset_sum.oracle import (
    ask,
    query_count,
    subset_family,
)
from dpwitness.reconstruction.subset_sum.theory import (
    allowed_queries,
    chernoff_bound,
    steps,
    threshold,
)
from reference import packed
from running import soon


def simulate_confidence(rng, fair_bits, answers, walks):
    """Walks of the confidence in a bit that is 1, after each answer: shape (walks, answers), nats."""
    return np.cumsum(steps(fair_bits)[rng.binomial(fair_bits, 0.5, (walks, answers))], axis=1)


def simulate_normal_confidence(rng, deviation, answers, walks):
    """Such walks for normal errors."""
    return np.cumsum(rng.normal(1 / (2 * deviation**2), 1 / deviation, (walks, answers)), axis=1)


def every_subset(size):
    return (np.arange(1 << size)[:, None] >> np.arange(size)) & 1


def weeded_slowly(answers, error):
    """The weeding phase as it is written, for a few people."""
    size = len(answers).bit_length() - 1
    subsets = every_subset(size)
    for candidate in subsets:  # row j is also the list of bits whose number is j
        if np.all(np.abs(subsets @ candidate - answers) <= error + 1e-6):
            return candidate
    raise AssertionError("the secret itself is never weeded out")


@st.composite
def attacked(draw):
    """A secret, and answers to all subsets with errors of any shape up to a bound."""
    size = draw(st.integers(1, 9))
    secret = np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    error = draw(st.floats(0, size / 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sums = every_subset(size) @ secret
    kind = draw(st.sampled_from(["uniform", "extreme", "towards another", "rounded"]))
    if kind == "uniform":
        errors = rng.uniform(-error, error, len(sums))
    elif kind == "extreme":
        errors = error * rng.choice([-1.0, 1.0], len(sums))
    elif kind == "towards another":  # the worst case: answers that suit another list of bits as well as may be
        other = rng.integers(0, 2, size)
        errors = np.clip(every_subset(size) @ other - sums, -error, error)
    else:
        errors = (np.round(sums / (2 * error)) * 2 * error if error > 1e-3 else sums) - sums
    return secret, sums + errors, error


@given(attacked())
@settings(max_examples=100, deadline=None)
def test_the_kernel_weeds_as_the_paper_does_and_stays_within_four_times_the_error(case):
    secret, answers, error = case
    found = exponential_adversary(answers, error)
    assert found.tolist() == weeded_slowly(answers, error).tolist()
    assert np.sum(found != secret) <= 4 * error + 1e-5


@pytest.mark.parametrize("size", [16, 17, 18, 19, 20, 21, pytest.param(24, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("law", ["uniform", "adversarial", "rounding"])
def test_errors_of_a_fortieth_leave_nine_tenths_to_be_recovered(size, law):
    rng = np.random.default_rng(size)
    secret = rng.integers(0, 2, size)
    answers = ask(secret, size / 40, 1 << size, law, -1, rng)
    assert np.mean(exponential_adversary(answers, size / 40) == secret) >= 0.9


@pytest.mark.parametrize("error", [1, 2])
def test_four_times_the_error_is_reached_and_never_passed(error):
    # Answers pulled from the secret towards a list with up to 2E ones dropped and 2E zeros raised: both fit.
    size, rng = 12, np.random.default_rng(10)
    subsets = every_subset(size)
    distances = []
    for _ in range(200):
        secret = rng.integers(0, 2, size)
        other = secret.copy()
        other[np.flatnonzero(secret)[: 2 * error]] = 0
        other[np.flatnonzero(secret == 0)[: 2 * error]] = 1
        answers = subsets @ secret + np.clip(subsets @ (other - secret), -error, error)
        distances.append(int(np.sum(exponential_adversary(answers, error) != secret)))
    assert max(distances) == 4 * error


def test_answers_that_no_list_of_bits_agrees_with_are_refused():
    answers = every_subset(8) @ np.array([1, 1, 1, 1, 0, 0, 0, 0]) / 2
    assert exponential_adversary(answers, 2).sum() == 0  # all zeros err by 2 at most
    with pytest.raises(InvalidParameter, match="no list of 8 bits agrees"):
        exponential_adversary(answers, 0.9)  # two of the four give 2 for an answer of 1, any other number worse


def test_the_target_asks_the_subsets_that_the_family_says():
    rng = np.random.default_rng(3)
    for size, queries, family in ((1, 5, 0), (16, 32, 0), (60, 200, 12_345), (120, 50, 1 << 29), (10, 1024, -1)):
        subsets = subset_family(size, queries, family).rows(slice(None))
        bits = rng.integers(0, 2, size)
        assert np.array_equal(bounded_subset_sums(rng, bits, 0.0, queries, "uniform", family), subsets @ bits)
        assert np.array_equal(binomial_subset_sums(rng, bits, 0, queries, family), subsets @ bits)
    assert np.array_equal(subset_family(10, 1024, -1).rows(slice(None)), every_subset(10))


@pytest.mark.parametrize("law", ["uniform", "adversarial", "rounding"])
@pytest.mark.parametrize("error", [0.0, 0.5, 2.0, 7.5])
def test_no_bounded_answer_is_wrong_by_more_than_the_error(law, error):
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2, 40)
    answers = ask(bits, error, 3000, law, 9, rng)
    errors = answers - subset_family(40, 3000, 9).sums(bits)
    assert np.abs(errors).max() <= error + 1e-9
    if law == "rounding" and error > 0:
        assert np.allclose(answers / (2 * error), np.round(answers / (2 * error)))
    if law == "uniform" and error > 0:  # mean 0 and variance E²/3, both within 6 standard errors
        assert abs(errors.mean()) <= 6 * error / math.sqrt(3 * 3000)
        assert abs(errors.var() / error**2 - 1 / 3) <= 6 * math.sqrt((1 / 5 - 1 / 9) / 3000)


@pytest.mark.parametrize("law", soon(["uniform", "adversarial", "rounding", "gaussian", "binomial"], 4))
def test_cutting_planes_solve_the_whole_program(law):
    rng = np.random.default_rng(6)
    size = 24
    queries = query_count(size)
    secret = rng.integers(0, 2, size)
    subsets = subset_family(size, queries, 11).rows(slice(None))
    answers = ask(secret, 5.0, queries, law, 11, rng)
    found = polynomial_adversary(packed(subsets), answers)
    matrix = np.hstack([np.vstack([subsets, ~subsets]).astype(float), -np.ones((2 * queries, 1))])
    matrix[queries:, :size] = -matrix[:queries, :size]
    whole = linprog(
        np.append(np.zeros(size), 1.0),
        A_ub=matrix,
        b_ub=np.concatenate([answers, -answers]),
        bounds=[*[(0, 1)] * size, (0, None)],
        method="highs-ds",
    )
    assert found.largest_residual == pytest.approx(whole.fun, abs=1e-5)
    assert np.abs(subsets @ found.fractions - answers).max() == pytest.approx(found.largest_residual, abs=1e-9)
    assert 0 <= found.fractions.min() <= found.fractions.max() <= 1
    if law not in ("binomial", "gaussian"):  # the secret is a solution for E = 5, so the best is none for more
        assert found.largest_residual <= 5.0 + 1e-5


@given(st.integers(1, 24), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_exact_answers_give_everything_away(size, seed):
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, size)
    subsets = np.vstack([np.eye(size, dtype=bool), rng.integers(0, 2, (query_count(size), size)).astype(bool)])
    assert np.array_equal(polynomial_adversary(packed(subsets), (subsets @ secret).astype(float)).bits, secret)


def test_queries_are_as_many_as_theorem_3_asks():
    assert [query_count(n) for n in (64, 512)] == [math.ceil(n * math.log(n) ** 2) for n in (64, 512)]
    assert all(query_count(n) > n for n in range(1, 30))


def test_a_step_is_the_log_ratio_of_the_binomial_law():
    # An answer that needs the error k − R/2 if the bit is 1 needs one more if it is 0.
    for fair_bits in (1, 5, 64):
        k = np.arange(fair_bits)
        expected = binom.logpmf(k, fair_bits, 0.5) - binom.logpmf(k + 1, fair_bits, 0.5)
        assert np.allclose(steps(fair_bits)[:-1], expected, atol=1e-9)
        assert steps(fair_bits)[-1] == math.inf


@pytest.mark.parametrize(("fair_bits", "answers"), [(256, 1), (256, 4), (1024, 4), (1024, 16), (4096, 16)])
@pytest.mark.parametrize("delta", [0.1, 0.25, 0.4])
def test_the_walk_reaches_the_threshold_no_more_often_than_the_bound_says(fair_bits, answers, delta):
    walks = 20_000
    peaks = np.abs(simulate_confidence(np.random.default_rng(fair_bits), fair_bits, answers, walks)).max(axis=1)
    bound = chernoff_bound(fair_bits, threshold(delta))(answers)
    assert np.sum(peaks >= threshold(delta)) <= binom.isf(1e-9, walks, min(bound, 1.0))


def test_a_confidence_is_calibrated():
    # Averaged over the secret bit, a confidence of c means that the bit is 1 with probability 1/(1 + e^−c): the mean of
    # 1/(1 + e^c) over walks for a 1 equals that of 1/(1 + e^−c) over walks for a 0, whose steps come from k + 1.
    rng = np.random.default_rng(9)
    fair_bits, walks = 64, 40_000
    ones = simulate_confidence(rng, fair_bits, 8, walks)[:, -1]
    noise = rng.binomial(fair_bits, 0.5, (walks, 8)) - 1
    zeros = np.append(steps(fair_bits), -np.inf)[noise].sum(axis=1)  # index −1: the error 0 cannot come from a 1
    wrong_one, wrong_zero = 1 / (1 + np.exp(ones)), 1 / (1 + np.exp(-zeros))
    spread = math.sqrt((wrong_one.var() + wrong_zero.var()) / walks)
    assert abs(wrong_one.mean() - wrong_zero.mean()) <= 6 * spread


@pytest.mark.parametrize("law", soon(["gaussian", "binomial"], 0))
def test_least_squares_recover_what_the_linear_program_does_not(law):
    # The figure of n = 256, E/√n = 1, at a quarter of the people and 3 secrets; each bit of a fit is wrong with
    # probability Φ(−½·√(t/4)/(E/2)) = Φ(−√t/(2E)) = Φ(−2.08) = 0.019.
    rng, size, right, expected, program = np.random.default_rng(3), 64, 0, 0.0, 0
    for family in range(3):
        secret = rng.integers(0, 2, size)
        subsets = subset_family(size, query_count(size), family)
        answers = ask(secret, 8.0, query_count(size), law, family, rng)
        found = least_squares_adversary(subsets, answers)
        right += int(np.sum(found.bits == secret))
        expected += found.expected_right
        program += int(np.sum(polynomial_adversary(subsets, answers).bits == secret))
        assert found.spread == pytest.approx(4.0, rel=6 * math.sqrt(0.5 / query_count(size)))
    wrong = norm.sf(math.sqrt(query_count(size)) / 16)
    assert binom.ppf(1e-6, 3 * size, 1 - 1.5 * wrong) <= right  # the fit of n bits costs a little
    assert abs(expected - right) <= 6 * math.sqrt(3 * size * wrong)
    assert program < 0.9 * 3 * size < right
    assert choose_adversary(law) == "least-squares"
    assert choose_adversary("uniform") == "polynomial"


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_probabilities_are_those_of_bayes(size):
    # All subsets, asked 9 times: then QᵀQ is so regular that what expectation propagation leaves out is small.
    rng = np.random.default_rng(size)
    lists = every_subset(size)
    every = np.tile(lists == 1, (9, 1))
    secret, variance = rng.integers(0, 2, size), 4.0 * (1 << size)
    answers = every @ secret + rng.normal(0, math.sqrt(variance), len(every))
    logs = -((every @ lists.T - answers[:, None]) ** 2).sum(axis=0) / (2 * variance)
    posterior = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum() @ lists
    found = least_squares_adversary(packed(every), answers, variance=variance)
    assert found.expected_right is not None
    assert found.fractions == pytest.approx(posterior, abs=0.02)
    if size == 1:  # one bit: the log-odds are known in closed form
        ones = every[:, 0]
        odds = (answers[ones].sum() - ones.sum() / 2) / variance
        assert found.fractions[0] == pytest.approx(expit(odds), abs=1e-9)


def test_least_squares_see_that_answers_are_no_noisy_sums():
    rng, size = np.random.default_rng(4), 32
    secret = rng.integers(0, 2, size)
    subsets = subset_family(size, query_count(size), 1)
    found = least_squares_adversary(subsets, ask(secret, 1.5, query_count(size), "adversarial", 1, rng))
    assert found.expected_right is None  # pulled to half of each subset's size: fitted values are near 1/2
    assert np.mean(found.bits == secret) > 0.9
    exact = least_squares_adversary(subsets, subsets.sums(secret.astype(float)))
    assert exact.expected_right == pytest.approx(size)
    assert np.array_equal(exact.bits, secret)
    with pytest.raises(InvalidParameter, match="16 answers about 32 people do not tell how wrong they are"):
        least_squares_adversary(subsets.part(slice(0, 16)), np.zeros(16))


@pytest.mark.parametrize("offset", [False, True])
def test_a_fifth_of_the_answers_may_be_anything(offset):
    """Of exact sums with garbage among them all bits come back, and with them the sums (Dwork et al. 2007)."""
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 2, 40)
    subsets = Subsets.drawn(rng, query_count(40), 40)
    sums = subsets.sums(bits.astype(float)) + 5.0 * offset
    garbage = rng.random(len(sums)) < 0.2
    answers = np.where(garbage, rng.integers(0, 400, len(sums)), sums)
    found = least_absolute_adversary(subsets, answers, offset=offset)
    assert np.array_equal(found.bits, bits)
    assert found.offset == pytest.approx(5.0 * offset, abs=0.01)
    assert np.abs(subsets.sums(found.fractions) + found.offset - sums)[~garbage].max() < 0.01
    assert np.sum(least_squares_adversary(subsets, answers, offset=offset).bits == bits) < 36


@pytest.mark.parametrize("people", [1, 2, 30])
@pytest.mark.parametrize("answers", ["constant", "two values", "huge", "tiny", "noise"])
def test_answers_of_any_kind_give_finite_numbers(people, answers):
    rng = np.random.default_rng(10)
    subsets = Subsets.drawn(rng, 100, people)
    given = {
        "constant": np.full(100, 7.0),
        "two values": np.where(rng.random(100) < 0.5, 0.0, 1e9),
        "huge": rng.normal(0, 1e150, 100),
        "tiny": rng.normal(0, 1e-300, 100),
        "noise": rng.normal(0, 50, 100),
    }[answers]
    found = least_squares_adversary(subsets, clip_answers(given, people), offset=True)
    assert set(found.bits) <= {0, 1}
    assert np.isfinite(found.fractions).all()
    assert np.isfinite(found.means).all()
    assert not np.isnan(found.variances).any()


@pytest.mark.parametrize("law", ["uniform", "adversarial", "rounding"])
def test_the_program_is_solved_for_each_of_many_secrets(law):
    # Some programs have many solutions and some one: rounding errors must stop none of them.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        secret = rng.integers(0, 2, 20)
        answers = ask(secret, 4.0, 80, law, seed, rng)
        found = polynomial_adversary(subset_family(20, 80, seed), answers)
        assert found.largest_residual <= 4.0 + 1e-5  # the secret itself is no further away


@pytest.mark.parametrize("delta", [0.1, 0.25, 0.4])
@pytest.mark.parametrize(("law", "error"), [("binomial", 32.0), ("gaussian", 32.0), ("gaussian", 5.0)])
def test_no_more_walks_tell_the_bit_than_allowed(law, error, delta):
    allowed, walks = allowed_queries(law, error, delta, 0.05), 4000
    rng = np.random.default_rng(7)
    if allowed == 0:
        assert law == "gaussian"
        assert error < 10
        return
    if law == "binomial":
        paths = simulate_confidence(rng, round(error**2), 4 * allowed, walks)
    else:
        paths = simulate_normal_confidence(rng, error / 2, 4 * allowed, walks)
    told = np.maximum.accumulate(np.abs(paths), axis=1) >= threshold(delta)
    assert told[:, allowed - 1].sum() <= binom.isf(1e-9, walks, 0.05)
    assert told[:, -1].sum() > 0.05 * walks  # four times as many are too many: the bound is no idle one
