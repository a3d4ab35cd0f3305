"""The bundled systems as mechanisms: their noise, what an attack proposes of them, and what check makes of that."""

import math

import numpy as np
import pytest
from attacking import agrees
from scipy.integrate import quad
from scipy.stats import laplace

import dpwitness as dpw
from dpwitness.algorithms import sparse_vector, table_builder, threshold_testing
from dpwitness.algorithms.subset_sum import binomial_subset_sums, bounded_subset_sums
from dpwitness.claims import ApproxDP
from dpwitness.errors import InvalidParameter, MechanismRaised
from dpwitness.events.encoding import NOT_A_NUMBER
from dpwitness.exact import pattern_probability
from dpwitness.files import read_column
from dpwitness.health import before_search, new_process
from dpwitness.mechanisms.resolve import Requirements, as_mechanism
from dpwitness.neighbours import as_finite_numbers
from dpwitness.reconstruction.subset_sum.candidates import flipped_bit
from dpwitness.reconstruction.subset_sum.mechanism import subset_sum_reconstruction
from dpwitness.reconstruction.table_builder.candidates import whole_count
from dpwitness.reconstruction.table_builder.noise_laws import maximum_entropy, uniform
from dpwitness.reconstruction.table_builder.theory import rounded_error_law
from dpwitness.reconstruction.threshold_testing import candidates as threshold
from dpwitness.reconstruction.threshold_testing.candidates import promising_copies
from dpwitness.reconstruction.threshold_testing.theory import mirrored_probabilities
from running import sampled, soon

TARGETS = [
    table_builder.bounded_noisy_counts,
    table_builder.keyed_noisy_counts,
    table_builder.entropic_noisy_counts,
    table_builder.growing_noisy_counts,
    table_builder.layered_noisy_counts,
]
BOUNDED = TARGETS[:3]
#: In plain Python a run draws noise for every set of contributors: few values make it quick, as keys do not.
FEW = {"base": 4, "partitions": 7}


def runs_of(function, counts, n, seed=0, **parameters):
    """Runs in plain Python: compiling a target takes seconds, and a check compares what it compiled with this."""
    data = as_finite_numbers(counts)
    width = len(counts) + 2 * parameters.get("partitions", 63) + 1
    with np.errstate(over="ignore"):  # keys are multiplied modulo 2⁶⁴, which NumPy's scalars warn of
        mechanism = as_mechanism(function, data, parameters=parameters, requirements=Requirements(interpreted=True))
        rows = mechanism.outcomes(data, np.random.default_rng(seed), n)
    assert rows.shape == (n, width)
    return rows


def law_of(function, r=2):
    return maximum_entropy(r, spread_variance(r)) if function is table_builder.entropic_noisy_counts else uniform(r)


def spread_variance(r):
    e = np.arange(-r, r + 1)
    p = np.exp(-(e**2) / 2)
    return float(p @ e**2 / p.sum())


@pytest.mark.parametrize("function", BOUNDED)
def test_noise_follows_its_law(function):
    rows = runs_of(function, [40] * 4, 2000, **FEW)
    law = law_of(function)
    for column in (0, 3, 4, 5, 12, 17):
        true = 40 if column < 4 else None
        values = rows[:, column]
        noise = values - (np.round(np.median(values) / 40) * 40 if true is None else true)
        for value, p in zip(law.support, law.probabilities, strict=True):
            assert agrees(np.sum(noise == value), 2000, p)


@pytest.mark.parametrize("function", TARGETS)
def test_same_contributors_get_the_same_noise(function):
    # Three base values, an empty one, no other people: side {1} of the first partition is value 1 by itself.
    rows = runs_of(function, [30, 40, 50, 0], 300, base=3, partitions=3)
    assert np.array_equal(rows[:, 0], rows[:, 4])  # code 1: {1} | {2, 3}
    assert np.array_equal(rows[:, 1], rows[:, 6])  # code 2: {2} | {1, 3}
    if function is not table_builder.layered_noisy_counts:  # there, the empty value is one more condition
        assert np.array_equal(rows[:, 2], rows[:, 9])  # code 3: {1, 2} | {3}
    assert np.any(rows[:, 5] - 90 != rows[:, 7] - 80)
    # With one more person, suppressed, the second side has other contributors.
    rows = runs_of(function, [30, 40, 50, 1], 300, base=3, partitions=3)
    assert np.array_equal(rows[:, 0], rows[:, 4])
    assert np.any(rows[:, 2] + 1 != rows[:, 9])
    assert np.all(rows[:, 3] == 0)


@pytest.mark.parametrize("function", BOUNDED)
def test_runs_end_with_the_attacks_count(function):
    counts = [40, 0, 50, 3, 60, 70]
    rows = runs_of(function, counts, 1500, **FEW)
    sums = rows[:, 6:20].sum(axis=1) / 7
    assert np.array_equal(rows[:, -1], np.floor(sums + 0.5))
    low, law = rounded_error_law(law_of(function), 7)
    for error in (-1, 0, 1):
        assert agrees(np.sum(rows[:, -1] == sum(counts) + error), 1500, law[error - low])


@pytest.mark.parametrize("function", TARGETS)
def test_tables_without_answers_are_not_attacked(function):
    rows = runs_of(function, [0, 1, 2, 3, 4, 30], 20, **FEW)
    assert np.all(rows[:, :5] == 0)
    assert np.all(rows[:, 5] > 0)
    assert np.all(rows[:, 6:] == NOT_A_NUMBER)


def test_growing_noise_counts_the_questions_that_there_are():
    rows = runs_of(table_builder.growing_noisy_counts, [40, 40], 300, base=2, partitions=63)
    assert np.abs(rows[:, :2] - 40).max() == 4  # two values and one two-partition of them: 4 questions, ±2·√4


def test_the_attack_proposes_the_users_table():
    (candidate,) = whole_count(
        {"suppression": 4, "base": 7, "partitions": 5}, np.array([9, 0, 30]), ApproxDP(epsilon=1), 10
    )
    assert candidate.pair.neighbour.tolist() == [9, 0, 29]
    row = np.full((2, 14), np.nan)
    row[:, 13] = 39, 38
    assert candidate.event.contains(row).tolist() == [True, False]
    assert not list(
        whole_count({"suppression": 4, "base": 7, "partitions": 5}, np.array([9, 0, 3]), ApproxDP(epsilon=1), 10)
    )


@pytest.mark.parametrize(
    ("epsilon1", "epsilon2", "threshold", "base"),
    [
        (0.25, 0.75, 0, 0), (0.5, 0.5, 0, 0), (1, 3, 0, 0), (0.5, 0.75, 0.5, 0), (0.5, 0.75, 7.25, 7),
        (0.5, 0.75, -2, -2),
    ],
)  # fmt: skip
def test_theorem_4_7_holds_for_every_number_of_copies(epsilon1, epsilon2, threshold, base):
    for t in range(1, 41):
        v, w = mirrored_probabilities(t, epsilon1, epsilon2, threshold=threshold, base=base)
        # κ is the least ratio of the odds of F(z) and F(z − 1) for |z − θ| ≤ |F₁⁻¹(V′/4)|.
        z = threshold - base + np.linspace(-1, 1, 2_001) * laplace.ppf(w / 4, scale=1 / epsilon1)
        odds = [laplace.logcdf(at, scale=1 / epsilon2) - laplace.logsf(at, scale=1 / epsilon2) for at in (z, z - 1)]
        kappa = np.exp(np.min(odds[0] - odds[1]))
        assert kappa > 1
        assert v >= kappa**t / 2 * w


def test_v_is_the_integral_of_the_paper():
    epsilon1, epsilon2, t = 0.5, 1.0, 3

    def integrand(z):
        f, g = laplace.cdf(z, scale=1 / epsilon2), laplace.cdf(z - 1, scale=1 / epsilon2)
        return laplace.pdf(z, scale=1 / epsilon1) * (f - f * g) ** t

    expected = sum(quad(integrand, a, b, epsabs=1e-14)[0] for a, b in ((-60, 0), (0, 1), (1, 60)))
    assert mirrored_probabilities(t, epsilon1, epsilon2)[0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.campaign
def test_an_event_that_underflows_on_the_neighbour_is_taken_at_once():
    assert promising_copies(1.0, 800.0, threshold=0.0, base=0.0, claim=ApproxDP(epsilon=1.0), runs=10**5) == [1]
    parameters = {"epsilon1": 1.0, "epsilon2": 800.0, "threshold": 0.0, "sensitivity": 1.0}
    (found,) = threshold.gptt(parameters, None, ApproxDP(epsilon=1.0), 10**5)
    assert "Theorem 4.7" in found.pair.label


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


@pytest.mark.parametrize("name", ["svt", "svt_single_noise", "isvt3", "isvt4"])
def test_a_cutoff_that_leaves_queries_without_noise_is_refused(name):
    with pytest.raises(ValueError, match="cutoff must be at least 1"):
        getattr(sparse_vector, name)(np.random.default_rng(1), np.zeros(3), 1.0, cutoff=0)


@pytest.mark.parametrize("outcome", soon([list, None], 1))  # to compile it takes seconds
def test_a_bad_parameter_of_a_target_is_a_named_error(outcome):
    with pytest.raises(MechanismRaised, match="error must be a finite number"):
        dpw.check(bounded_subset_sums, epsilon=1, parameters={"error": -2.0}, seed=1, outcome=outcome)


@pytest.mark.campaign
def test_the_slow_reconstruction_is_refuted_after_tens_of_runs(monkeypatch):
    for check in (before_search, new_process):
        monkeypatch.setattr(check, "CHECK_SECONDS", 0.2)  # each takes all of its time where runs are slow
    options = {"outcome": float, "search_runs": 32, "max_time": 300}  # numba takes seconds to refuse this
    data, error = np.arange(10) % 2, {"error": 1.0}
    verdict = dpw.check(subset_sum_reconstruction, data=data, parameters=error, **{**SUMS, **options})
    assert isinstance(verdict, dpw.Violation)
    assert verdict.witness.counts.runs <= 96  # shards of 32; 44 runs are the least that could do


def test_the_attack_proposes_the_bit_that_the_mechanism_returns():
    (candidate,) = flipped_bit({"position": 3}, np.zeros(6, np.int64), ApproxDP(epsilon=1.0), 100)
    assert candidate.pair.data.tolist() == [0, 0, 0, 1, 0, 0]
    assert candidate.pair.neighbour.tolist() == [0, 0, 0, 0, 0, 0]
    assert candidate.event.contains(np.array([[1.0], [0.0]])).tolist() == [True, False]
    with pytest.raises(InvalidParameter, match="position=6 must be one of the 6 bits"):
        list(flipped_bit({"position": 6}, np.zeros(6, np.int64), ApproxDP(epsilon=1.0), 100))


def test_exact_sums_return_the_very_bit():
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2, 10)
    assert [subset_sum_reconstruction(rng, bits, 0.0, i) for i in range(10)] == bits.tolist()


UP = dpw.queries(10, may_move="all", direction="up")
SUMS = {"claim": 1, "epsilon": 1, "seed": 1, "workers": 1, "search_runs": 2_000}
MANY = {"claim": 1, "epsilon": 1, "seed": 1, "workers": 1, "runs": 100_000}
COUNTED = {"claim": 1, "epsilon": 1, "seed": 3}
SPARSE = {"epsilon": 0.1, "seed": 4, "search_runs": 300_000, "runs": 1_000_000}
THRESHOLDS = {"epsilon": 1.0, "seed": 3, "search_runs": 20_000}
#: What check makes of a bundled target with these options, without help.
CHECKS = [
    (threshold_testing.gptt, {"claim": 1.5, "parameters": {"epsilon1": 0.5, "epsilon2": 2.0}, "seed": 2}, True),
    *((function, {"epsilon": 0.7, "seed": 1, "search_runs": 60_000}, True) for function in (
        threshold_testing.gptt_stoddard, threshold_testing.gptt_lee_clifton, threshold_testing.gptt_chen)),
    (bounded_subset_sums, {**SUMS, "parameters": {"law": "uniform"}}, True),
    (bounded_subset_sums, {**SUMS, "parameters": {"law": "rounding"}}, True),
    (binomial_subset_sums, {**SUMS, "parameters": {"fair_bits": 4, "queries": 8}}, True),
    # One answer with R = 4096 has ε ≤ log((R/2 + w + 1)/(R/2 − w)), 0.19 for w = 3√R, but for 2e-8 of the answers.
    (binomial_subset_sums, {**MANY, "parameters": {"fair_bits": 4096, "queries": 1}}, False),
    # Few search runs do where the attack's own candidate is what refutes; growing noise leaves less to see.
    *((function, {**COUNTED, "search_runs": 10_000 if function is TARGETS[3] else 2_000}, True)
      for function in TARGETS),
    # Single noise is seen only where queries move against each other.
    (sparse_vector.svt_single_noise, SPARSE, True),
    (sparse_vector.svt_single_noise, {**SPARSE, "neighbours": UP}, False),
    *((threshold_testing.gptt_stoddard, {**THRESHOLDS, "claim": claim, "data": file}, True)
      for file, claim in (("adult_capital_loss", 1.0), ("adult_capital_loss", 5.0), ("hepth", 1.0), ("hepth", 5.0))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "options", "refuted"),
    [CHECKS[0], *(pytest.param(*case, marks=pytest.mark.campaign) for case in sampled(CHECKS[1:], 9))],
)
def test_check_refutes_a_bundled_target_that_an_attack_breaks(data_folder, function, options, refuted):
    on_data = "data" in options
    if on_data:
        counts = read_column(data_folder / f"{options['data']}.csv")[:256]  # all 4096 take many times as long
        options = {**options, "data": counts}
    verdict = dpw.check(function, max_time=600, **options)  # a quarter of it is numba's, however busy the machine is
    assert verdict.refuted is refuted
    if function is binomial_subset_sums and not refuted:
        assert verdict.epsilon_lower_bound < 1
    if on_data:  # on D′ the cell has another count, and the reconstruction never gives its old one
        assert verdict.counts.neighbour_hits == 0
    if function in TARGETS:
        assert abs(verdict.witness.pair.data - verdict.witness.pair.neighbour).sum() == 1
    if function in BOUNDED:  # elsewhere what the search finds promises more
        assert verdict.witness.event.describe("answer").startswith("answer 134 from")  # the attack's count
