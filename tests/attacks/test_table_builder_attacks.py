"""The averaging attacks: what they recover, at which rate, and with how many queries."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.table_builder_systems import GrowingNoisyCounts, LayeredNoisyCounts, ValueLayeredNoisyCounts
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder import averaging, histogram, perturbation
from dpwitness.reconstruction.table_builder import averaging as partitions
from dpwitness.reconstruction.table_builder.noise_laws import NoiseLaw
from dpwitness.reconstruction.table_builder.supply import Plan, Supply
from dpwitness.reconstruction.table_builder.systems import (
    BoundedNoisyCounts,
    KeyedNoisyCounts,
    System,
)
from dpwitness.reconstruction.table_builder.tables import Table, read_table
from dpwitness.reconstruction.table_builder.theory import (
    expected_right,
    noise_removed,
    perturbation_found,
    rounded_error_law,
)
from running import soon

FOLDER = Path(__file__).resolve().parents[2]
#: Of the slow attacks: right or wrong they are many standard errors apart.
RUNS = 100


def agrees(hits, runs, p):
    """A two-sided limit that a right attack breaks with probability 1e-9."""
    return binom.ppf(0.5e-9, runs, p) <= hits <= binom.isf(0.5e-9, runs, p)


def data(name):
    return read_table(FOLDER / "data" / name)


class Exact(System):
    """An oracle without noise: answers above the suppression are true."""

    def __init__(self, table, suppression=0):
        super().__init__(table.values)
        self.table, self.suppression = table, suppression

    def ask(self, attribute, selections, where=None):
        self.asked += len(selections)
        counts = selections.astype(int) @ self.table.histogram(attribute, where)
        return np.where(counts > self.suppression, counts, 0)


@given(size=st.integers(2, 9), data=st.data())
@settings(max_examples=80, deadline=None)
def test_two_partitions_are_different_and_never_too_many(size, data):
    total = 2 ** (size - 1) - 1  # Lemma 4
    k = data.draw(st.none() | st.integers(1, 2 * total))
    sides = partitions.two_partitions(np.random.default_rng(0), size, k)
    assert len(sides) == (total if k is None else min(k, total))
    both = {frozenset((row.tobytes(), (~row).tobytes())) for row in sides}
    assert len(both) == len(sides)
    assert np.all(sides.any(axis=1))
    assert not np.any(sides.all(axis=1))


@pytest.mark.parametrize("size", [25, 62, 63, 200])
def test_two_partitions_of_many_values(size):
    sides = partitions.two_partitions(np.random.default_rng(0), size, 500)
    assert sides.shape == (500, size)
    assert len(np.unique(sides, axis=0)) == 500
    assert not sides[:, -1].any()
    assert np.all(sides.any(axis=1))


@pytest.mark.campaign
@given(counts=st.lists(st.integers(0, 60), min_size=4, max_size=9), seed=st.integers(0, 100))
@settings(max_examples=60, deadline=None)
def test_without_noise_everything_is_exact(counts, seed):
    table = Table.from_counts([20, 30, 25, *counts])
    oracle = Exact(table, suppression=4)
    rng = np.random.default_rng(seed)
    found = histogram.recover_histogram(oracle, rng, "value", Plan(base=(0, 1, 2), partitions=3))
    assert found.counts == (20, 30, 25, *counts)
    assert found.queries == oracle.asked
    two = histogram.recover_histogram(oracle, rng, "value", Plan(targets=(4, 1), base=(0, 1, 2), partitions=3))
    assert two.counts == (counts[1], 30)


def remove_noise(oracle, rng, attribute, base, k, *, beside=(), where=None):
    """Algorithm 4 for one set of values."""
    sides = averaging.two_partitions(rng, len(base), k)
    selections = averaging.both_sides(len(oracle.values(attribute)), base, sides, np.array(beside, int))
    answers = oracle.ask(attribute, selections, where)
    return averaging.average([averaging.Sums.of(answers.reshape(2, -1))])


@pytest.mark.parametrize("system", [BoundedNoisyCounts, KeyedNoisyCounts])
@pytest.mark.parametrize(("r", "size", "k"), soon([(2, 6, None), (5, 9, 100)], 1))
def test_noise_remover_succeeds_as_often_as_equation_5_says(system, r, size, k):
    table = Table.from_counts([50] * size + [3, 0, 1])
    runs, hits, shifted = 500, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        oracle = system(table, noise=r, suppression=r, rng=rng)
        found = remove_noise(oracle, rng, "value", np.arange(size), k, beside=size + np.arange(3))
        hits += abs(found.mean - 50 * size - 4) < 0.5
        shifted += found.count == 50 * size + 5
        assert oracle.asked == 2 * found.partitions
    assert found.partitions == (31 if k is None else k)
    assert agrees(hits, runs, noise_removed(r, found.partitions))
    low, law = rounded_error_law(r, found.partitions)
    assert agrees(shifted, runs, law[1 - low])


@pytest.mark.campaign
def test_histogram_gets_each_value_right_as_often_as_expected():
    # The base set is counted so well (wrong once in 10⁶ runs) that the noise it shares with the values cannot matter.
    counts = [200 + i for i in range(8)] + [1, 4, 60, 0]
    table = Table.from_counts(counts)
    runs = 250
    right = np.zeros(12, int)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        oracle = BoundedNoisyCounts(table, noise=1, suppression=4, rng=rng)
        found = histogram.recover_histogram(
            oracle, rng, "value", Plan(base=tuple(range(8)), partitions=10, base_partitions=127, fitted=False)
        )
        right += np.array(found.counts) == counts
        assert found.queries == 12 + 2 * 127 + 12 * 20
    for value in range(12):
        assert agrees(right[value], runs, expected_right(1, 127, [10], [counts[value] == 0]))


def test_table_3_of_the_paper_in_small():
    table = data("adult_age.csv")
    true = table.histogram("age")
    assert table.people == 32561
    rng = np.random.default_rng(1)
    oracle = KeyedNoisyCounts(table, noise=2, suppression=4, rng=rng)
    base = tuple(table.positions("age", range(17, 28)).tolist())
    found = histogram.recover_histogram(oracle, rng, "age", Plan(base=base, partitions=250, base_partitions=1000))
    # Expected 110.99 of 111 (exact law): two or more wrong has probability below 1e-3.
    assert np.sum(np.array(found.counts) == true) >= 110
    assert found.queries == 111 + 2 * 1000 + 111 * 500
    assert np.sum(np.array(found.published) == true) < 80


def find_perturbation(system, attribute, pair, conditions):
    return perturbation.largest_sum(
        perturbation.in_sub_populations(system, attribute, pair, conditions, len(conditions))[1]
    )


@pytest.mark.parametrize("r", soon([1, 2, 3], 2))
def test_perturbation_finder_succeeds_as_often_as_proposition_2_says(r):
    rng = np.random.default_rng(0)
    rows = 4000
    people = {"a": rng.integers(0, 3, rows).tolist(), "b": rng.integers(0, 25, rows).tolist()}
    table = Table.from_columns(people)
    conditions = [{"b": [b]} for b in range(25)]
    m, runs, hits = {1: 2, 2: 5, 3: 12}[r], 500, 0
    for seed in range(runs):
        oracle = BoundedNoisyCounts(table, noise=r, suppression=4, rng=np.random.default_rng(seed))
        found = find_perturbation(oracle, "a", (0, 2), conditions[:m])
        assert found.guess <= r
        assert oracle.asked == found.queries == 3 * m
        hits += found.guess == r
    assert agrees(hits, runs, perturbation_found(r, m))


@pytest.mark.campaign
def test_perturbation_finder_within_one_attribute():
    table = Table.from_counts([40] * 10 + [0, 2])
    runs, hits = 500, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        oracle = KeyedNoisyCounts(table, noise=2, suppression=4, rng=rng)
        found = perturbation.largest_sum(perturbation.pairs_within(oracle, rng, "value", range(10), 6))
        assert len(found.sums) == 6
        hits += found.guess == 2
    assert agrees(hits, runs, perturbation_found(2, 6))
    few = perturbation.pairs_within(oracle, rng, "value", [0, 1], 6)
    assert len(few) == 1  # two values allow one sum only


def test_usable_conditions_have_answers_and_different_people():
    table = Table.from_columns({"a": [0, 1] * 30, "b": [0] * 20 + [1] * 36 + [2] * 4, "c": [5] * 20 + [6] * 40})
    oracle = Exact(table, suppression=4)
    conditions = [{"b": [0]}, {"c": [5]}, {"b": [1]}, {"b": [2]}, {"b": [0], "c": [6]}]
    # c = 5 are the people of b = 0; b = 2 is too small; nobody has b = 0 and c = 6.
    assert perturbation.in_sub_populations(oracle, "a", (0, 1), conditions, 9)[0] == [{"b": [0]}, {"b": [1]}]
    found, answers = perturbation.in_sub_populations(oracle, "a", (0, 1), conditions, 1)
    assert found == [{"b": [0]}]
    assert answers.tolist() == [[10, 10, 20]]


def supply_of(system, rng=None):
    attribute = system.attributes[0]
    noisy = system.ask(attribute, np.eye(len(system.values(attribute)), dtype=bool))
    return Supply(system, rng or np.random.default_rng(0), attribute, noisy)


@pytest.mark.campaign
def test_two_values_with_answers_are_enough():
    counts = [60, 80, 1, 2, 3, 4, 1, 2, 3, 0, 0]
    table = Table.from_counts(counts)
    runs, hits = 600, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        oracle = BoundedNoisyCounts(table, noise=2, suppression=4, rng=rng)
        supply = supply_of(oracle, rng)
        supply.base(20, 200)
        (found,) = supply.count([np.arange(11)], 200)
        assert found.partitions <= 2**7
        assert oracle.asked - 11 - 2 * 9 == 2 * found.partitions
        hits += found.count == sum(counts)
    # Almost always 6 or 7 of the 7 values are sure: at least 64 partitions, at most 128.
    low, high = noise_removed(2, 64) - 0.03, noise_removed(2, 128) + 0.01
    assert binom.ppf(1e-9, runs, low) <= hits <= binom.isf(1e-9, runs, min(high, 1))


@pytest.mark.campaign
def test_suppressed_people_show_in_a_helpers_answer():
    table = Table.from_counts([50, 60, 1, 0])
    seen = 0
    for seed in range(2000):
        oracle = BoundedNoisyCounts(table, noise=2, suppression=4, rng=np.random.default_rng(seed))
        supply = supply_of(oracle)
        supply.base(20, 200)
        seen += supply.not_empty[2]
        assert not supply.not_empty[3]
    # Equal answers: two uniform noises that differ by exactly one, 4 of 25 pairs, for both helpers.
    assert agrees(seen, 2000, 1 - (4 / 25) ** 2)


@pytest.mark.campaign
def test_another_attribute_serves_for_a_lonely_value():
    rng = np.random.default_rng(2)
    table = Table.from_columns({"a": [0] * 300 + [1] * 300, "b": rng.integers(0, 9, 600).tolist()})
    runs, hits = 600, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        oracle = KeyedNoisyCounts(table, noise=2, suppression=4, rng=rng)
        (found,) = supply_of(oracle, rng).count([np.array([0])], 60)
        assert oracle.asked - 2 == 9 + 120
        hits += abs(found.mean - 300) < 0.5
    assert agrees(hits, runs, noise_removed(2, 60))


def success(system, k, runs=RUNS):
    """How often a sub-population is counted right."""
    table = Table.from_columns({"g": [1] * 400 + [2] * 400, "a": [i % 10 for i in range(800)]})
    hits = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        oracle = system(table, noise=2, suppression=4, rng=rng)
        hits += remove_noise(oracle, rng, "a", np.arange(10), k, where={"g": [1]}).count == 400
    return hits


@pytest.mark.campaign
def test_layers_and_growing_noise_stop_the_noise_remover():
    assert success(BoundedNoisyCounts, 400) >= binom.ppf(1e-9, RUNS, noise_removed(2, 400) - 1e-9)
    # Twice the layer of the sub-population stays: right only where that is 0, and where averages are off by 2 or more.
    assert success(LayeredNoisyCounts, 400) <= binom.isf(1e-9, RUNS, 1 / 5 + 0.01)
    # The i-th noise has variance close to b(b + 1)/3 for b = 2√i: a mean of 2k of them is almost normal.
    k = 400
    bound = np.ceil(2 * np.sqrt(np.arange(1, 2 * k + 1)))
    from scipy.stats import norm

    p = 1 - 2 * norm.sf(0.5, scale=np.sqrt(np.sum(bound * (bound + 1) / 3)) / k)
    assert p < 0.26
    assert agrees(success(GrowingNoisyCounts, k), RUNS, p)


@pytest.mark.campaign
def test_a_layer_a_value_stays_in_differences_and_a_layer_a_query_does_not():
    table = Table.from_columns({"g": [1] * 460 + [2] * 400, "a": [i % 10 for i in range(400)] + [10] * 60 + [0] * 400})
    hits = {LayeredNoisyCounts: 0, ValueLayeredNoisyCounts: 0}
    plan = Plan(targets=(10,), base=tuple(range(10)), partitions=500, fitted=False)
    for seed in range(RUNS):
        for system in hits:
            rng = np.random.default_rng(seed)
            oracle = system(table, noise=1, suppression=4, rng=rng)
            hits[system] += histogram.recover_histogram(oracle, rng, "a", plan, where={"g": [1]}).counts == (60,)
    two_layers = NoiseLaw(support=(-2, -1, 0, 1, 2), probabilities=(1 / 9, 2 / 9, 3 / 9, 2 / 9, 1 / 9))
    assert hits[LayeredNoisyCounts] >= binom.ppf(1e-9, RUNS, 1 - 2 * (1 - noise_removed(two_layers, 500)))
    assert hits[ValueLayeredNoisyCounts] <= binom.isf(1e-9, RUNS, 1 / 3 + 0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda o, rng: partitions.two_partitions(rng, 1), "at least 2"),
        (lambda o, rng: partitions.two_partitions(rng, 5, 0), "partitions=0"),
        (lambda o, rng: partitions.two_partitions(rng, 40), "use at most 1048576 of them, not all"),
        (lambda o, rng: partitions.two_partitions(rng, 40, 10**12), "not 1000000000000"),
        (lambda o, rng: averaging.value_positions(o, "height", [0, 1]), "no attribute 'height'"),
        (lambda o, rng: averaging.value_positions(o, "value", [0, 7]), "below 5"),
        (lambda o, rng: averaging.value_positions(o, "value", [0, 0]), "different"),
        (lambda o, rng: histogram.recover_histogram(o, rng, "value", Plan(base=())), "0 of the 0 base values"),
        (lambda o, rng: histogram.recover_histogram(o, rng, "value", Plan(base=(0, 1, 4))), "above 0; all of them"),
        (
            lambda o, rng: histogram.recover_histogram(o, rng, "value", Plan(questions=20)),
            "questions=20 are too few",
        ),
        (lambda o, rng: Plan(partitions=0), "partitions=0"),
        (lambda o, rng: Plan(base=0), "base=0"),
        (lambda o, rng: find_perturbation(o, "value", (0, 1), []), "no sub-population"),
        (lambda o, rng: perturbation.pairs_within(o, rng, "value", [0], 3), "at least 2"),
    ],
)
def test_impossible_attacks_say_why(call, message):
    rng = np.random.default_rng(0)
    oracle = BoundedNoisyCounts(Table.from_counts([40, 50, 60, 2, 0]), noise=2, suppression=4, rng=rng)
    with pytest.raises(InvalidParameter, match=message):
        call(oracle, rng)
