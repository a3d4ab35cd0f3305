"""Least squares beside the linear program, subsets as bits, and how many queries may be allowed."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import binom, norm

from dpwitness.cli import main
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.subset_sum.exponential import exponential_adversary
from dpwitness.reconstruction.subset_sum.linear_decoding import (
    Subsets,
    choose_adversary,
    clip_answers,
    least_absolute_adversary,
    least_squares_adversary,
    polynomial_adversary,
    smallest_error,
)
from dpwitness.reconstruction.subset_sum.oracle import ask, query_count, subset_family
from dpwitness.reconstruction.subset_sum.theory import (
    allowed_queries,
    chernoff_bound,
    normal_confidence_bound,
    simulate_confidence,
    simulate_normal_confidence,
    threshold,
)
from reference import packed
from running import soon


@given(st.integers(1, 40), st.integers(1, 30), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_subsets_as_bits_are_the_matrix(people, number, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.random((number, people)) < 0.5
    subsets = packed(matrix)
    x, a = rng.normal(size=people), rng.normal(size=number)
    assert np.array_equal(subsets.rows(slice(None)), matrix)
    assert np.array_equal(list(subsets), matrix)
    assert np.allclose(subsets.sums(x), matrix @ x)
    assert np.allclose(subsets.moments(a), matrix.T @ a)
    assert np.array_equal(subsets.gram(), matrix.T.astype(int) @ matrix)
    assert np.array_equal(subsets.part(slice(0, 2)).rows(slice(None)), matrix[:2])


def test_blocks_are_put_together(monkeypatch):
    monkeypatch.setattr("dpwitness.reconstruction.subset_sum.linear_decoding.BLOCK_ENTRIES", 30)
    test_subsets_as_bits_are_the_matrix()
    assert Subsets.drawn(np.random.default_rng(1), 50, 11).rows(slice(None)).mean() == pytest.approx(0.5, abs=0.15)


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
    every = np.tile((np.arange(1 << size)[:, None] >> np.arange(size)) & 1 == 1, (9, 1))
    secret, variance = rng.integers(0, 2, size), 4.0 * (1 << size)
    answers = every @ secret + rng.normal(0, math.sqrt(variance), len(every))
    lists = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1
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


def test_the_sum_of_absolute_errors_is_nearly_the_least():
    """Of values that lie well within [0, 1], where limits of the program do not bind."""
    rng = np.random.default_rng(9)
    subsets = Subsets.drawn(rng, 120, 16)
    answers = subsets.sums(rng.uniform(0.3, 0.7, 16)) + 0.1 * rng.standard_cauchy(120)
    matrix, one = subsets.rows(slice(None)).astype(float), np.eye(120)
    least = linprog(
        np.r_[np.zeros(16), np.ones(120)], np.block([[matrix, -one], [-matrix, -one]]), np.r_[answers, -answers],
        bounds=[(0, 1)] * 16 + [(0, None)] * 120,
    )  # fmt: skip
    found = least_absolute_adversary(subsets, answers)
    assert np.abs(subsets.sums(found.fractions) - answers).sum() < 1.02 * least.fun


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


def test_few_answers_do_where_their_errors_are_known():
    # Fewer answers than people: linear algebra alone determines nothing, but a bit is 0 or 1.
    rng, size = np.random.default_rng(5), 40
    secret = rng.integers(0, 2, size)
    subsets = Subsets.drawn(rng, 36, size)
    found = least_squares_adversary(subsets, subsets.sums(secret.astype(float)), variance=0.01)
    assert np.mean(found.bits == secret) > 0.9


@pytest.mark.parametrize("law", ["uniform", "adversarial", "rounding"])
def test_the_program_is_solved_for_each_of_many_secrets(law):
    # Some programs have many solutions and some one: rounding errors must stop none of them.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        secret = rng.integers(0, 2, 20)
        answers = ask(secret, 4.0, 80, law, seed, rng)
        found = polynomial_adversary(subset_family(20, 80, seed), answers)
        assert found.largest_residual <= 4.0 + 1e-5  # the secret itself is no further away


def test_the_program_of_one_person_and_of_one_answer():
    for answers in ([0.25], [-3.0], [7.0], [0.0, 1.0]):
        x, error = smallest_error(np.ones((len(answers), 1)), np.array(answers))
        best = min(max(abs(v - a) for a in answers) for v in np.linspace(0, 1, 1001))
        assert error == pytest.approx(best, abs=1e-3)
        assert 0 <= x[0] <= 1


@pytest.mark.parametrize(
    ("size", "law"), [(21, "uniform"), pytest.param(24, "adversarial", marks=pytest.mark.campaign)]
)
def test_more_people_are_weeded(size, law):
    rng = np.random.default_rng(6)
    secret = rng.integers(0, 2, size)
    answers = ask(secret, size / 40, 1 << size, law, -1, rng)
    assert np.sum(exponential_adversary(answers, size / 40) != secret) <= size / 10


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


def test_the_bounds_grow_with_the_answers():
    limit = threshold(0.25)
    bound = chernoff_bound(4096, limit)
    bounds = [bound(t) for t in (1, 4, 16, 64, 256, 1024)]
    assert bounds == sorted(bounds)
    normal = [normal_confidence_bound(32.0, t, limit) for t in (1, 16, 256, 4096)]
    assert normal == sorted(normal)
    assert allowed_queries("gaussian", 128.0, 0.25, 0.05) == pytest.approx(
        4 * allowed_queries("gaussian", 64.0, 0.25, 0.05), abs=4
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: allowed_queries("gaussian", 0.1, 0.1, 0.05), "error=0.1 must be at least 1"),
        (lambda: allowed_queries("gaussian", 4, 0.1, 1.0), "failure=1.0 must lie"),
    ],
)
def test_bad_input_says_what(call, message):
    with pytest.raises(InvalidParameter, match=message):
        call()


@pytest.mark.campaign
def test_allowed_queries_on_the_command_line(capsys, tmp_path):
    plot = tmp_path / "walk.svg"
    arguments = ["attack", "subset_sum", "--allowed-queries", "0.25", "--error", "64", "--seed", "1"]
    assert main([*arguments, "--json", "--plot", str(plot)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["allowed_queries"] == allowed_queries("binomial", 64.0, 0.25, 0.05)
    assert result["told"] <= 0.05 < result["walk_allows"]
    assert plot.read_text().lstrip().startswith("<?xml")
    assert main([*arguments, "--law", "gaussian"]) == 0
    assert "ALLOWED 236 queries that hold one bit" in capsys.readouterr().out
    assert main([*arguments, "--law", "uniform"]) == 2
    assert "bounded errors protect no number of queries" in capsys.readouterr().err


@pytest.mark.campaign
def test_the_report_says_how_far_walks_were_simulated_and_of_how_many_fair_bits(capsys):
    line = ["attack", "subset_sum", "--seed", "1", "--quiet"]
    assert main([*line, "--allowed-queries", "0.25", "--error", "5000", "--law", "gaussian"]) == 0
    assert " of them reach it within 262,144 queries; more than 262,144 queries" in capsys.readouterr().out
    assert main([*line, "--error", "0.7", "--law", "binomial", "--size", "16"]) == 0  # round(0.49) fair bits: none
    assert "binomial errors of standard deviation 0;" in capsys.readouterr().out
