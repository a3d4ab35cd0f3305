"""Theorem 4.7 of Chen & Machanavajjhala (2015): its inequality, its candidates, and what check makes of them."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, laplace

import dpwitness as dpw
from dpwitness.algorithms import sparse_vector, threshold_testing
from dpwitness.algorithms.sparse_vector import svt_single_noise
from dpwitness.claims import ApproxDP
from dpwitness.exact import pattern_probability
from dpwitness.files import read_column
from dpwitness.reconstruction.threshold_testing import candidates as threshold
from dpwitness.reconstruction.threshold_testing.candidates import promising_copies
from dpwitness.reconstruction.threshold_testing.theory import least_odds_ratio, mirrored_probabilities
from running import soon

INSTANCES = [(0.25, 0.75), (0.5, 0.5), (1.0, 3.0)]


@pytest.mark.parametrize(("epsilon1", "epsilon2"), INSTANCES)
def test_theorem_4_7_holds_for_every_number_of_copies(epsilon1, epsilon2):
    for t in range(1, 41):
        v, w = mirrored_probabilities(t, epsilon1, epsilon2)
        kappa = least_odds_ratio(w, epsilon1, epsilon2)
        assert kappa > 1
        assert v >= kappa**t / 2 * w


@pytest.mark.parametrize(("epsilon1", "epsilon2"), INSTANCES)
def test_kappa_is_the_least_ratio_on_a_grid(epsilon1, epsilon2):
    _, w = mirrored_probabilities(3, epsilon1, epsilon2)
    end = abs(laplace.ppf(w / 4, scale=1 / epsilon1))
    z = np.linspace(-end, end, 20_001)
    odds = [laplace.logcdf(at, scale=1 / epsilon2) - laplace.logsf(at, scale=1 / epsilon2) for at in (z, z - 1)]
    ratio = np.exp(odds[0] - odds[1])
    assert least_odds_ratio(w, epsilon1, epsilon2) == pytest.approx(ratio.min(), rel=1e-9)


@pytest.mark.parametrize(("threshold", "base"), [(0.5, 0.0), (7.25, 7.0), (-2.0, -2.0)])
def test_theorem_4_7_holds_for_other_thresholds(threshold, base):
    for t in (1, 5, 12):
        v, w = mirrored_probabilities(t, 0.5, 0.75, threshold=threshold, base=base)
        kappa = least_odds_ratio(w, 0.5, 0.75, threshold=threshold - base)
        assert kappa > 1
        assert v >= kappa**t / 2 * w


def test_the_witness_says_kappa_and_what_d_is():
    parameters = {"epsilon": 0.5, "threshold": 0.0, "sensitivity": 1.0}
    first = next(iter(threshold.gptt_lee_clifton(parameters, None, ApproxDP(epsilon=0.5), 10**5)))
    t = first.event.width // 2
    _, w = mirrored_probabilities(t, 0.125, 0.375)
    assert f"t = {t}, κ = {least_odds_ratio(w, 0.125, 0.375):.6g}: " in first.pair.label
    data = np.repeat(np.arange(10), 2)
    (on_data,) = threshold.gptt_stoddard(parameters, data, ApproxDP(epsilon=0.5), 10**5)
    cell = int(on_data.pair.label.partition("differences of cell ")[2].partition(" ")[0])
    assert f"count {data[cell - 1]}" in on_data.pair.label
    assert len(on_data.event.rows) <= 8


def test_v_is_the_integral_of_the_paper():
    epsilon1, epsilon2, t = 0.5, 1.0, 3

    def integrand(z):
        f, g = laplace.cdf(z, scale=1 / epsilon2), laplace.cdf(z - 1, scale=1 / epsilon2)
        return laplace.pdf(z, scale=1 / epsilon1) * (f - f * g) ** t

    expected = sum(quad(integrand, a, b, epsabs=1e-14)[0] for a, b in ((-60, 0), (0, 1), (1, 60)))
    assert mirrored_probabilities(t, epsilon1, epsilon2)[0] == pytest.approx(expected, rel=1e-7)


def test_without_query_noise_the_event_is_impossible_on_the_neighbour():
    v, w = mirrored_probabilities(1, 0.5, np.inf)
    assert v == pytest.approx(laplace.cdf(1, scale=2) - 0.5)
    assert w == 0


def test_larger_claims_and_budgets_ask_for_more_copies():
    settings = {"threshold": 0.5, "base": 0.0}
    few = promising_copies(0.025, 0.075, **settings, claim=ApproxDP(epsilon=0.1), runs=10**6)
    many = promising_copies(0.025, 0.075, **settings, claim=ApproxDP(epsilon=0.6), runs=10**9)
    assert max(many) > max(few)


@pytest.mark.campaign
def test_an_event_that_underflows_on_the_neighbour_is_taken_at_once():
    assert promising_copies(1.0, 800.0, threshold=0.0, base=0.0, claim=ApproxDP(epsilon=1.0), runs=10**5) == [1]
    parameters = {"epsilon1": 1.0, "epsilon2": 800.0, "threshold": 0.0, "sensitivity": 1.0}
    (found,) = threshold.gptt(parameters, None, ApproxDP(epsilon=1.0), 10**5)
    assert "all but impossible on D′" in found.pair.label


def test_the_copies_chosen_promise_most():
    claim, runs = ApproxDP(epsilon=0.3), 10**7
    drift = []
    for t in range(1, 12):
        v, w = mirrored_probabilities(t, 0.05, 0.05, threshold=0.5)
        drift.append((v - claim.ratio * w) / math.sqrt(v + claim.ratio**2 * w))
    best = 1 + int(np.argmax(drift))
    assert best in promising_copies(0.05, 0.05, threshold=0.5, base=0.0, claim=claim, runs=runs)


@pytest.mark.parametrize("name", ["gptt_lee_clifton", "gptt_chen", "gptt_stoddard"])
@pytest.mark.parametrize("at", [0.0, 0.5, 3.0])
def test_candidates_violate_the_claim_they_are_made_for(name, at):
    parameters = {"epsilon": 0.5, "threshold": at, "sensitivity": 2.0}
    split = {"gptt_lee_clifton": (0.25, 0.75), "gptt_chen": (0.5, 0.5), "gptt_stoddard": (1.0, np.inf)}[name]
    ratios = []
    for candidate in getattr(threshold, name)(parameters, None, ApproxDP(epsilon=0.5), 10**7):
        scales = {"threshold": at, "threshold_scale": 4 / split[0], "query_scale": 4 / split[1]}
        v, w = (
            pattern_probability(candidate.event.rows[0], side, **scales)
            for side in (candidate.pair.data, candidate.pair.neighbour)
        )
        ratios.append(v / w if w else math.inf)
        assert np.abs(candidate.pair.data - candidate.pair.neighbour).max() == 2.0
    assert max(ratios) > math.exp(0.5)


@pytest.mark.parametrize(
    "name",
    soon(["gptt_stoddard", "gptt_lee_clifton", "gptt_chen"], 0),
)
def test_check_refutes_the_instances_without_help(name):
    verdict = dpw.check(getattr(threshold_testing, name), epsilon=0.7, seed=1, search_runs=60_000)
    assert isinstance(verdict, dpw.Violation)


def test_check_refutes_gptt_with_parameters_of_its_own():
    verdict = dpw.check(threshold_testing.gptt, claim=1.5, parameters={"epsilon1": 0.5, "epsilon2": 2.0}, seed=2)
    assert isinstance(verdict, dpw.Violation)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("file", "claim"),
    [
        ("adult_capital_loss", 5.0),
        *(
            pytest.param(file, claim, marks=pytest.mark.campaign)
            for file, claim in (("adult_capital_loss", 1.0), ("hepth", 1.0), ("hepth", 5.0))
        ),
    ],
)
def test_reconstruction_on_real_data_refutes_any_claim(file, claim, data_folder):
    data = read_column(data_folder / f"{file}.csv")[:256]  # all 4096 take many times as long
    settings = {"epsilon": 1.0, "claim": claim, "data": data, "seed": 3, "search_runs": 20_000}
    verdict = dpw.check(threshold_testing.gptt_stoddard, **settings)
    assert isinstance(verdict, dpw.Violation)
    # On D′ the cell has another count, and the reconstruction never gives its old one.
    assert verdict.counts.neighbour_hits == 0


def test_the_reconstruction_event_has_the_probability_of_its_ladder():
    # Counts 0..9, two cells each: c is told by references at distance 0 or 1 from the threshold, and beyond.
    data = np.repeat(np.arange(10), 2)
    (candidate,) = threshold.gptt_stoddard(
        {"epsilon": 0.5, "threshold": 0.5, "sensitivity": 1.0}, data, ApproxDP(epsilon=1.0), 10**6
    )
    probability = sum(
        pattern_probability(row, candidate.pair.data, threshold=0.5, threshold_scale=2.0, query_scale=0.0)
        for row in candidate.event.rows
    )
    never = sum(
        pattern_probability(row, candidate.pair.neighbour, threshold=0.5, threshold_scale=2.0, query_scale=0.0)
        for row in candidate.event.rows
    )
    assert probability > 0.5
    assert never == 0
    n, rng = 5_000, np.random.default_rng(5)
    rows = np.array([threshold_testing.gptt_stoddard(rng, candidate.pair.data, 0.5) for _ in range(n)])
    hits = int(candidate.event.contains(rows).sum())
    assert binom.isf(1 - 1e-9, n, probability) <= hits <= binom.isf(1e-9, n, probability)


def test_data_that_are_no_counts_get_no_candidates():
    parameters = {"epsilon": 0.5, "threshold": 0.5, "sensitivity": 1.0}
    assert not list(threshold.gptt_stoddard(parameters, np.array([0.5, 1.0]), ApproxDP(epsilon=1.0), 1000))
    assert not list(threshold.gptt_chen(parameters, np.array([7, 7, 7]), ApproxDP(epsilon=1.0), 1000))


@pytest.mark.parametrize("name", ["svt", "svt_single_noise", "isvt3", "isvt4"])
def test_a_cutoff_that_leaves_queries_without_noise_is_refused(name):
    with pytest.raises(ValueError, match="cutoff must be at least 1"):
        getattr(sparse_vector, name)(np.random.default_rng(1), np.zeros(3), 1.0, cutoff=0)


#: Of both tests below: with it the one refutes, so that the other says something.
BUDGET = {"search_runs": 300_000, "runs": 1_000_000}


@pytest.mark.campaign
def test_single_noise_svt_is_refuted_where_queries_move_against_each_other():
    verdict = dpw.check(svt_single_noise, epsilon=0.1, seed=4, **BUDGET)
    assert isinstance(verdict, dpw.Violation)


@pytest.mark.campaign
def test_single_noise_svt_is_not_refuted_where_queries_move_together():
    up = dpw.queries(10, may_move="all", direction="up")
    verdict = dpw.check(svt_single_noise, epsilon=0.1, neighbours=up, seed=4, **BUDGET)
    assert isinstance(verdict, dpw.NotRefuted)
