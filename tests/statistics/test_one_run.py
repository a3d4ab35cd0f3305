"""Audits of one training run: bounds against linear programs, level at the boundary, and inputs that are refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom, norm

import dpwitness as dpw
from dpwitness.api.one_run import COIN_TEST_LEVEL, by_score, choices_tried, right_guesses
from dpwitness.evidence import guesses as evidence

CLAIMS = [dpw.PureDP(1.0), dpw.ApproxDP(1.0, 1e-3), dpw.GaussianDP(1.0)]


def scores(rng, m, mu):
    """Scores of m canaries, of N(μ, 1) if in and N(0, 1) if out: the canaries in, and those out."""
    inside = rng.random(m) < 0.5
    values = rng.standard_normal(m) + mu * inside
    return values[inside], values[~inside]


def greatest_tail(lines, correct, k, m, *, tails_only):
    """The largest P[C ≥ correct] under the inequalities of counts, by linear programming.

    All sets of counts, or only the sets {c, …, k} with c ≤ correct.
    """
    counts = np.arange(1, k + 1)
    rows, limits = [], []
    if tails_only:
        for slope, intercept in lines:
            for c in range(1, correct + 1):
                row = np.zeros(k + 1)
                row[c:] += np.arange(c, k + 1)
                row[c - 1 : k] -= slope * (k - np.arange(c - 1, k))
                rows.append(row)
                limits.append(m * intercept)
        extra = 0
    else:
        extra = k * len(lines)
        for j, (slope, intercept) in enumerate(lines):
            for c in counts:
                row = np.zeros(k + 1 + extra)
                row[c], row[c - 1], row[k + j * k + c] = c, -slope * (k - c + 1), -1
                rows.append(row)
                limits.append(0.0)
            row = np.zeros(k + 1 + extra)
            row[k + 1 + j * k : k + 1 + (j + 1) * k] = 1
            rows.append(row)
            limits.append(m * intercept)
    goal = np.zeros(k + 1 + extra)
    goal[correct : k + 1] = -1
    sums = np.zeros((1, k + 1 + extra))
    sums[0, : k + 1] = 1
    return -linprog(goal, np.array(rows), limits, sums, [1.0], bounds=(0, None), method="highs").fun


@given(st.integers(1, 12), st.data())
@settings(deadline=None, max_examples=30)
def test_the_bound_of_one_line_is_that_of_the_linear_program(k, data):
    correct, m = data.draw(st.integers(1, k)), data.draw(st.integers(k, 3 * k))
    slope, intercept = math.exp(data.draw(st.floats(0, 3))), data.draw(st.sampled_from([0.0, 1e-3, 0.02]))
    bound = evidence._tail(np.array([slope]), np.array([intercept]), correct, k, m)
    least = greatest_tail([(slope, intercept)], correct, k, m, tails_only=False)
    assert bound == pytest.approx(least, rel=1e-6) or (bound >= least and m * intercept > 0.05)  # all excess at v: ≤ 1


@given(st.integers(2, 12), st.data())
@settings(deadline=None, max_examples=30)
def test_the_bound_of_several_lines_is_that_of_the_linear_program(k, data):
    correct, m = data.draw(st.integers(1, k)), data.draw(st.integers(k, 2 * k))
    mu = data.draw(st.floats(0.2, 2))
    z = np.linspace(-3, 3, 9)
    slopes = np.exp(-z * mu - mu**2 / 2)
    intercepts = norm.cdf(z + mu) - slopes * norm.cdf(z)
    largest = greatest_tail([*zip(slopes, intercepts, strict=True)], correct, k, m, tails_only=True)
    for level, impossible in ((largest * 1.001, True), (largest * 0.999, False)):
        if level < 1:
            assert (evidence._needed(slopes, intercepts, level, correct, k, m) > 1) == impossible


def test_without_delta_the_bound_is_the_binomial_tail_of_steinke_et_al():
    slopes, intercepts = evidence.lines_of(dpw.PureDP(1.2))
    assert evidence._tail(slopes, intercepts, 70, 90, 400) == pytest.approx(
        binom.sf(69, 90, math.exp(1.2) / (1 + math.exp(1.2))), rel=1e-9
    )


@pytest.mark.parametrize("claim", [dpw.ApproxDP(0.01, 1e-6), dpw.GaussianDP(0.01)], ids=str)
def test_probabilities_that_underflow_refute_no_more_than_others(claim):
    # P[W ≥ 4,990] underflows; a leak of one canary in 10⁶ runs remains possible.
    values = [evidence.p_value_of(claim, correct, 5_000, 5_000) for correct in (3_500, 4_000, 4_990, 5_000)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > (1e-9 if claim.symbol == "ε" else 1e-20)


@pytest.mark.parametrize("claim", [*CLAIMS, pytest.param(dpw.ZCDP(0.3), marks=pytest.mark.campaign)], ids=str)
@pytest.mark.parametrize("m", [40, pytest.param(300, marks=pytest.mark.campaign)])
def test_critical_numbers_bounds_and_p_values_agree(claim, m):
    for k in (m // 2, m):
        critical = evidence.critical_number(claim, 0.02, k, m)
        for correct in (critical - 1, critical):
            if correct <= k:
                refuted = correct == critical
                assert (evidence.p_value_of(claim, correct, k, m) <= 0.02) == refuted
                assert (evidence.lower_bound_of(claim, 0.02, correct, k, m) >= claim.parameter * (1 - 1e-5)) == refuted


@pytest.mark.parametrize("m", [60, 400])
@pytest.mark.parametrize("repetitions", [200, pytest.param(2_000, marks=pytest.mark.campaign)])
def test_level_at_the_boundary(m, repetitions):
    """The canaries are independent, and the scores tell as much of the coins as the claim allows."""
    claims = {
        dpw.GaussianDP(1.0): lambda rng, inside: rng.standard_normal(m) + inside,
        dpw.PureDP(1.0): lambda rng, inside: rng.laplace(size=m) + inside,  # ranks of the likelihood ratio
        dpw.ApproxDP(0.5, 0.01): lambda rng, inside: np.where(
            rng.random(m) < 0.01, np.where(inside, 9, -9), (rng.random(m) < 1 / (1 + math.exp(-0.5))) == inside
        ),
    }
    for claim, drawn in claims.items():
        rng, refuted, above = np.random.default_rng(m), 0, 0
        tried = _numbers_tried(m, claim)
        critical = [evidence.critical_number(claim, 0.05 / len(tried), sum(ends), m) for ends in tried]
        for _ in range(repetitions):
            inside = rng.random(m) < 0.5
            refuted += _refutes(drawn(rng, inside), inside, tried, critical, above)
            above += 1
        assert binom.sf(refuted - 1, above, 0.05) > 1e-4, claim


def _numbers_tried(m, claim):
    return choices_tried(m, curved=claim.curved)


def _refutes(values, inside, tried, critical, seed=0):
    values = np.asarray(values, float)
    ordered = by_score(values[inside], values[~inside], seed)
    return any(right_guesses(ordered, ends) >= least for ends, least in zip(tried, critical, strict=True))


@pytest.mark.parametrize(("claim", "m"), [(dpw.GaussianDP(0.5), 600), (dpw.PureDP(0.7), 600)], ids=str)
def test_a_pass_would_have_caught_what_it_names(claim, m):
    rng = np.random.default_rng(3)
    passed = dpw.one_run(*scores(rng, m, 0.0), claim)
    assert not passed.refuted
    caught, wanted = passed.detectable, 0
    tried = _numbers_tried(m, claim)
    critical = [evidence.critical_number(claim, 0.05 / len(tried), sum(ends), m) for ends in tried]
    for _ in range(300):
        inside = rng.random(m) < 0.5
        right = rng.random(m) < 1 / (1 + math.exp(-caught))  # randomized response
        values = rng.standard_normal(m) + inside * caught if claim.curved else right == inside
        wanted += _refutes(values, inside, tried, critical, int(rng.integers(1 << 32)))
    assert binom.cdf(wanted, 300, 0.95) > 1e-4
    assert str(passed).startswith(f"NOT REFUTED: {claim.short}")
    assert "would have been refuted with 95 % power" in " ".join(str(passed).split())


def test_what_an_audit_finds():
    found = dpw.one_run(*scores(np.random.default_rng(1), 1_000, 3.0), 1.0)
    assert [replace(found, alpha=share * found.p_value).refuted for share in (1, 0.9)] == [True, False]
    assert found.p_value < 1e-30
    assert 3 < found.lower_bound < 5
    for more, refuted in ((-1e-3, True), (1e-3, False)):
        claim = found.lower_bound + more
        assert dpw.one_run(*scores(np.random.default_rng(1), 1_000, 3.0), claim, seed=found.seed).refuted == refuted
    assert found.correct <= found.guesses == found.highest + found.lowest
    assert str(found).startswith("VIOLATED: not 1-DP\n")
    assert f"ε ≥ {math.floor(found.lower_bound * 1000) / 1000:.4g}" in str(found)
    fixed = dpw.one_run(*scores(np.random.default_rng(1), 1_000, 3.0), 1.0, guesses=301)
    assert (fixed.highest, fixed.lowest) == (151, 150)
    assert dpw.one_run(*scores(np.random.default_rng(1), 1_000, 3.0), 1.0, seed=found.seed) == found
    with pytest.raises(TypeError, match="refuted"):
        bool(found)


@pytest.mark.parametrize("claim", [dpw.ApproxDP(8, 1e-5), dpw.GaussianDP(38.0), dpw.ApproxDP(1, 0.5)], ids=str)
def test_a_pass_says_that_the_claim_could_not_have_been_refuted(claim):
    found = dpw.one_run(*scores(np.random.default_rng(1), 300, 3.0), claim)
    assert not found.refuted
    assert not found.refutable
    assert str(found).startswith(f"NOT REFUTED: {claim.short}; no number of right guesses would have refuted it\n")
    assert "would have been refuted with 95 % power" in " ".join(str(found).split())


def test_equal_scores_are_no_information():
    """Without random order, the canaries that were in would come first among equal scores."""
    claim, tried, rng = dpw.PureDP(0.1), _numbers_tried(400, dpw.PureDP(0.1)), np.random.default_rng(0)
    critical = [evidence.critical_number(claim, 0.05 / len(tried), sum(ends), 400) for ends in tried]
    assert sum(_refutes(np.zeros(400), rng.random(400) < 0.5, tried, critical, seed) for seed in range(40)) <= 6


def test_coins_that_are_not_fair_are_refused():
    """If most canaries are in, the guess that a canary was in is right more often than the claim allows."""
    uneven = int(binom.ppf(COIN_TEST_LEVEL / 4, 1_000, 0.5))
    with pytest.raises(dpw.InvalidData, match="fair coin"):
        dpw.one_run(np.zeros(1_000 - uneven), np.zeros(uneven), 1.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([[1.0]], [0.0], 1.0), "scores_in has the shape"),
        ((["a"], [0.0], 1.0), "scores_in="),
        (([0.0], [math.nan], 1.0), "scores_out[0] is NaN"),
        (([0.0, 1.0], [1.0], 1.0), "too few canaries, 3: give at least 8"),
        (([1j], [0.0], 1.0), "scores_in="),
        (([0.0], [1.0], "1"), "claim='1' must be a claim"),
        (([0.0], [1.0], True), "claim=True must be a claim"),
        (([0.0], [1.0], dpw.GaussianDP), "must be a claim, such as GaussianDP(1.0)"),
    ],
)
def test_inputs_that_are_refused(given, said):
    with pytest.raises(dpw.BadInput) as error:
        dpw.one_run(*given)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "value"), [("alpha", 0), ("alpha", "x"), ("guesses", 0), ("guesses", 1.5), ("guesses", 41), ("seed", -1)]
)
def test_arguments_that_are_refused(name, value):
    with pytest.raises(dpw.InvalidParameter, match=f"{name}="):
        dpw.one_run(np.arange(20), np.arange(20), 0.1, **{name: value})
