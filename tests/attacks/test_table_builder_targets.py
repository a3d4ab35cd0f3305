"""The targets with bounded noisy counts: their noise, the attack that their runs end with, the witnesses they yield."""

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpwitness as dpw
from dpwitness.algorithms import table_builder
from dpwitness.claims import ApproxDP
from dpwitness.errors import MechanismError
from dpwitness.events.encoding import NOT_A_NUMBER
from dpwitness.mechanisms.resolve import Requirements, as_mechanism
from dpwitness.neighbours import as_finite_numbers
from dpwitness.reconstruction.table_builder.candidates import whole_count
from dpwitness.reconstruction.table_builder.noise_laws import NoiseLaw, maximum_entropy, uniform
from dpwitness.reconstruction.table_builder.theory import rounded_error_law
from running import sampled

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
    rows = np.empty((n, width))
    with np.errstate(over="ignore"):  # keys are multiplied modulo 2⁶⁴, which NumPy's scalars warn of
        mechanism = as_mechanism(function, data, parameters=parameters, requirements=Requirements(interpreted=True))
        assert mechanism.fill(data, np.random.default_rng(seed), rows, 0) == width
    return rows


def agrees(hits, runs, p):
    """A two-sided limit that a right target breaks with probability 1e-9."""
    return binom.ppf(0.5e-9, runs, p) <= hits <= binom.isf(0.5e-9, runs, p)


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


def test_bell_shaped_noise_has_the_largest_entropy_for_its_variance():
    law = maximum_entropy(2, spread_variance(2))
    e = np.array(law.support)
    assert law.probabilities == pytest.approx(np.exp(-(e**2) / 2) / np.exp(-(e**2) / 2).sum())


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


@pytest.mark.campaign
def test_mitigations_stop_the_count():
    n, k = 1500, 15
    rows = runs_of(table_builder.layered_noisy_counts, [40] * 5, n, base=5, partitions=k)
    # Two layers average out, that of the sub-population comes twice: right where it is 0, or 1 with an average of 2.
    layers = NoiseLaw(support=tuple(range(-4, 5)), probabilities=tuple(np.array([1, 2, 3, 4, 5, 4, 3, 2, 1]) / 25))
    low, law = rounded_error_law(layers, k)
    # "Average + 2·layer" is rounded: the layer shifts it by whole people.
    p = sum(law[-2 * e - low] for e in (-2, -1, 0, 1, 2) if 0 <= -2 * e - low < len(law)) / 5
    assert p < 0.2
    assert agrees(np.sum(rows[:, -1] == 200), n, p)
    for base, partitions in ((4, 7), (5, 15)):
        counts = [40] * base
        rows = runs_of(table_builder.growing_noisy_counts, counts, n, base=base, partitions=partitions)
        bound = int(np.ceil(2 * np.sqrt(base + 2 * partitions)))
        low, law = rounded_error_law(bound, partitions)
        assert law[-low] < 0.2
        assert agrees(np.sum(rows[:, -1] == sum(counts)), n, law[-low])
        # However many queries gain nothing: with t ≈ 2k the variance of the average tends to 2/k · r²t/3 = 4r²/3.
        assert law[-low] < 1 - 2 * norm.sf(0.5, scale=2 * np.sqrt(4 / 3))


def test_growing_noise_counts_the_questions_that_there_are():
    rows = runs_of(table_builder.growing_noisy_counts, [40, 40], 300, base=2, partitions=63)
    assert np.abs(rows[:, :2] - 40).max() == 4  # two values and one two-partition of them: 4 questions, ±2·√4


@pytest.mark.campaign
@pytest.mark.parametrize("function", sampled(TARGETS, 3))
def test_check_refutes(function):
    # Few search runs do where the attack's own candidate is what refutes; growing noise leaves less to see.
    search_runs = 10_000 if function is table_builder.growing_noisy_counts else 2_000
    verdict = dpw.check(function, epsilon=1, claim=1, seed=3, search_runs=search_runs)
    assert isinstance(verdict, dpw.Violation)
    pair = verdict.witness.pair
    assert abs(pair.data - pair.neighbour).sum() == 1
    if function in BOUNDED:  # elsewhere what the search finds promises more
        assert verdict.witness.event.describe("answer").startswith("answer 134 from")  # the attack's count


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
    ("parameters", "message"),
    [
        ({"perturbation": 0}, "perturbation must be at least 1"),
        ({"perturbation": 5}, "suppression must be at least perturbation"),
        ({"base": 1}, "base must lie"),
        ({"partitions": 0}, "partitions must be at least 1"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(MechanismError, match=message):
        runs_of(table_builder.bounded_noisy_counts, [40] * 7, 10, **parameters)
