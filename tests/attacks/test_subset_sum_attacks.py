import inspect
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from dpwitness.algorithms.subset_sum import binomial_subset_sums, bounded_subset_sums
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.subset_sum.exponential import exponential_adversary
from dpwitness.reconstruction.subset_sum.linear_decoding import polynomial_adversary
from dpwitness.reconstruction.subset_sum.oracle import (
    all_subsets,
    ask,
    check_error,
    check_queries,
    query_count,
    subset_family,
)
from dpwitness.reconstruction.subset_sum.theory import chernoff_bound, simulate_confidence, steps, threshold
from reference import packed
from running import soon


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


@pytest.mark.campaign
@given(attacked())
@settings(max_examples=300, deadline=None)
def test_the_candidate_is_within_four_times_the_error_of_the_secret(case):
    secret, answers, error = case
    assert np.sum(exponential_adversary(answers, error) != secret) <= 4 * error + 1e-5


@given(attacked())
@settings(max_examples=60, deadline=None)
def test_the_kernel_weeds_as_the_paper_does(case):
    _, answers, error = case
    assert exponential_adversary(answers, error).tolist() == weeded_slowly(answers, error).tolist()


@pytest.mark.parametrize("size", [16, 17, 18, 19, 20])
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


def test_half_of_all_people_are_in_a_random_subset_and_pairs_are_independent():
    queries, size = 4000, 60
    subsets = subset_family(size, queries, 77).rows(slice(None))
    low, high = binom.ppf([1e-9, 1 - 1e-9], queries * size, 0.5)
    assert low <= subsets.sum() <= high
    both = (subsets.T.astype(int) @ subsets)[np.triu_indices(size, 1)]
    low, high = binom.ppf([1e-9, 1 - 1e-9], queries, 0.25)
    assert both.min() >= low
    assert both.max() <= high
    assert not np.array_equal(subsets, subset_family(size, queries, 78).rows(slice(None)))


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


@pytest.mark.campaign
def test_binomial_errors_have_the_binomial_law():
    rng = np.random.default_rng(5)
    bits = np.zeros(4, np.int64)
    k = ask(bits, 3.0, 20_000, "binomial", 1, rng) + 4.5  # R = 9
    counts = np.bincount(k.astype(int), minlength=10)
    expected = binom.pmf(np.arange(10), 9, 0.5) * 20_000
    assert ((counts - expected) ** 2 / expected).sum() <= 44.8  # chi-square with 9 degrees of freedom, 1e-6


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


@pytest.mark.campaign
def test_small_errors_let_the_polynomial_adversary_recover_nearly_all():
    # E = √n/8 moves an answer by less than one person: theorem 3's "all but o(n)" leaves at most a tenth here.
    rng = np.random.default_rng(7)
    secret = rng.integers(0, 2, 64)
    for law in ("uniform", "adversarial", "rounding"):
        answers = ask(secret, 1.0, query_count(64), law, 5, rng)
        assert np.mean(polynomial_adversary(subset_family(64, query_count(64), 5), answers).bits == secret) >= 0.9


def test_answers_that_say_nothing_recover_nothing():
    # Errors so large that every answer is half of its subset's size: the same answers for any secret.
    rng = np.random.default_rng(8)
    one, other = rng.integers(0, 2, (2, 40))
    subsets = subset_family(40, query_count(40), 2)
    made = [polynomial_adversary(subsets, ask(d, 20.0, query_count(40), "adversarial", 2, rng)) for d in (one, other)]
    assert np.array_equal(made[0].fractions, made[1].fractions)


def test_queries_are_as_many_as_theorem_3_asks():
    assert [query_count(n) for n in (64, 512)] == [math.ceil(n * math.log(n) ** 2) for n in (64, 512)]
    assert all(query_count(n) > n for n in range(1, 30))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: all_subsets(0, None), "at least 1 person"),
        (lambda: check_error(-1.0), "error=-1.0 must be"),
        (lambda: check_error(math.nan), "error=nan must be"),
        (lambda: query_count(0), "size=0 must be"),
        (lambda: check_queries(5000, 3), "at most 4096 people fit"),
        (lambda: threshold(0.5), "delta=0.5 must"),
    ],
)
def test_bad_input_says_what_and_what_to_do(call, message):
    with pytest.raises(InvalidParameter, match=message):
        call()


@pytest.mark.parametrize("values", [{"error": -1.0}, {"error": math.inf}, {"queries": 0}, {"law": "gauss"}])
def test_targets_reject_bad_parameters(values):
    with pytest.raises(ValueError, match="must be"):
        bounded_subset_sums(np.random.default_rng(0), np.zeros(3, np.int64), **values)


def test_a_step_is_the_log_ratio_of_the_binomial_law():
    # An answer that needs the error k − R/2 if the bit is 1 needs one more if it is 0.
    for fair_bits in (1, 5, 64):
        k = np.arange(fair_bits)
        expected = binom.logpmf(k, fair_bits, 0.5) - binom.logpmf(k + 1, fair_bits, 0.5)
        assert np.allclose(steps(fair_bits)[:-1], expected, atol=1e-9)
        assert steps(fair_bits)[-1] == math.inf


def test_the_mean_step_is_about_two_over_r():
    for fair_bits in (64, 1024):
        weights = binom.pmf(np.arange(fair_bits), fair_bits, 0.5)
        assert weights @ steps(fair_bits)[:-1] == pytest.approx(2 / fair_bits, rel=4 / fair_bits)


@pytest.mark.parametrize(("fair_bits", "answers"), [(256, 1), (256, 4), (1024, 4), (1024, 16), (4096, 16)])
@pytest.mark.parametrize("delta", [0.1, 0.25, 0.4])
def test_the_walk_reaches_the_threshold_no_more_often_than_the_bound_says(fair_bits, answers, delta):
    walks = 20_000
    peaks = np.abs(simulate_confidence(np.random.default_rng(fair_bits), fair_bits, answers, walks)).max(axis=1)
    bound = chernoff_bound(fair_bits, threshold(delta))(answers)
    assert np.sum(peaks >= threshold(delta)) <= binom.isf(1e-9, walks, min(bound, 1.0))


def test_the_bound_means_something_where_answers_are_few_and_not_where_they_are_many():
    bound = chernoff_bound(4096, threshold(0.25))
    assert bound(4) < 1e-3
    assert bound(4096) == 1.0


def test_a_confidence_is_calibrated():
    # Averaged over the secret bit, a confidence of c means that the bit is 1 with probability 1/(1 + e^−c): the mean of
    # 1/(1 + e^c) over walks for a 1 equals that of 1/(1 + e^−c) over walks for a 0, whose steps come from k + 1.
    rng = np.random.default_rng(9)
    fair_bits, walks = 64, 40_000
    ones = simulate_confidence(rng, fair_bits, 8, walks)[:, -1]
    noise = rng.binomial(fair_bits, 0.5, (walks, 8)) - 1
    table = np.append(steps(fair_bits), -np.inf)  # index −1: the error 0 cannot come from a 1
    zeros = table[noise].sum(axis=1)
    wrong_one, wrong_zero = 1 / (1 + np.exp(ones)), 1 / (1 + np.exp(-zeros))
    spread = math.sqrt((wrong_one.var() + wrong_zero.var()) / walks)
    assert abs(wrong_one.mean() - wrong_zero.mean()) <= 6 * spread


def test_targets_take_the_parameters_that_the_attack_gives():
    assert list(inspect.signature(bounded_subset_sums).parameters)[2:] == ["error", "queries", "law", "family"]
    assert list(inspect.signature(binomial_subset_sums).parameters)[2:] == ["fair_bits", "queries", "family"]
