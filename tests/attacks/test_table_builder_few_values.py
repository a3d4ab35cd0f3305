"""The histogram attack where an attribute has few usable values, what it says of itself, and how much it asks."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from dpwitness.reconstruction.table_builder.averaging import number_of_partitions, two_partitions
from dpwitness.reconstruction.table_builder.confidence import difference_right, probability_right
from dpwitness.reconstruction.table_builder.histogram import recover_histogram
from dpwitness.reconstruction.table_builder.supply import Plan, Supply
from dpwitness.reconstruction.table_builder.systems import BoundedNoisyCounts, KeyedNoisyCounts, System
from dpwitness.reconstruction.table_builder.tables import Table
from dpwitness.reconstruction.table_builder.theory import expected_right

DEFENCES = Path(__file__).resolve().parents[2] / "benchmarks" / "table_builder_defences.py"
SEVERAL_PARTITIONS = runpy.run_path(str(DEFENCES))["several_partitions"]


def agrees(hits, runs, p):
    """A two-sided limit that a right attack breaks with probability 1e-9."""
    return binom.ppf(0.5e-9, runs, p) <= hits <= binom.isf(0.5e-9, runs, p)


def crowd(people=1200, seed=0, **sizes):
    """People who have each of some attributes' values at random."""
    rng = np.random.default_rng(seed)
    return Table.from_columns({name: rng.integers(0, size, people).tolist() for name, size in sizes.items()})


def attack(table, r=2, seed=0, plan=None, system=BoundedNoisyCounts, attribute=None):
    rng = np.random.default_rng(seed)
    oracle = system(table, noise=r, suppression=max(r, 4), rng=rng)
    attribute = attribute or next(iter(table.values))
    return recover_histogram(oracle, rng, attribute, plan), table.histogram(attribute)


class Recording(System):
    """A system that keeps the people of each question, and answers them all without noise."""

    def __init__(self, table):
        super().__init__(table.values)
        self.table, self.questions = table, []
        self.alone = 0  # questions about single values, to learn which are shown: these come again in partitions

    def ask(self, attribute, selections, where=None):
        self.asked += len(selections)
        self.alone += len(selections) * np.array_equal(selections, np.eye(selections.shape[1]))
        inside, codes = self.table.profiles(where or {}), self.table.codes[:, self.table.column(attribute)]
        people = [inside & row[codes] for row in selections]
        self.questions += [one.tobytes() for one in people]
        counts = np.array([self.table.counts[one].sum() for one in people], np.int64)
        return np.where(counts > 4, counts, 0)


@pytest.mark.parametrize("r", [2, 5])
def test_the_number_of_questions_follows_the_noise(r):
    table = Table.from_counts([60 + i for i in range(20)] + [0, 1, 3])
    found, true = attack(table, r)
    variance = r * (r + 1) / 3
    assert found.variance == pytest.approx(variance, rel=0.1)
    # The estimate from 200 sums is off by a factor of √(1.4/200) = 0.084: six of these.
    assert found.partitions == pytest.approx(100 * variance, rel=0.5)
    assert found.base_kinds == ((2, int(np.ceil(2.5 * found.partitions))),)
    assert found.counts == tuple(true)
    assert sum(found.confidence) > len(true) - 0.2
    assert found.workarounds == ()


def test_questions_that_do_not_fit_into_memory_are_asked_in_turns(monkeypatch):
    from dpwitness.reconstruction.table_builder import supply

    table = Table.from_counts([60 + i for i in range(12)] + [0, 1, 3])
    whole, true = attack(table, plan=Plan(partitions=200))
    monkeypatch.setattr(supply, "MAX_FLAGS", 15 * 2 * 70)
    parts, _ = attack(table, plan=Plan(partitions=200))
    assert parts.counts == whole.counts == tuple(true)
    assert parts.queries == whole.queries
    assert parts.kinds == whole.kinds


def test_a_cap_on_questions_is_kept():
    table = Table.from_counts([60 + i for i in range(12)] + [0, 1, 3])
    for cap in (60, 200, 1000):
        found, _ = attack(table, plan=Plan(questions=cap))
        assert 0.6 * cap < found.queries <= cap


def test_a_cap_is_kept_where_other_attributes_help():
    table = crowd(sex=2, age=14)
    sure = []
    for cap in (80, 150, 300, 1200):
        found, _ = attack(table, plan=Plan(questions=cap))
        assert found.queries <= cap
        sure.append(sum(found.confidence))
    assert sure[-1] > 1.9
    assert sure[-1] > sure[1]


def test_one_value_costs_two_noise_removals():
    table = Table.from_counts([60 + i for i in range(12)] + [0, 1, 3])
    found, _ = attack(table, plan=Plan(targets=(14,), partitions=200))
    assert found.values == (14,)
    assert found.counts == (3,)
    assert found.queries == 15 + 2 * 400  # section 4.2.2: 4k


def test_sizes_of_partitions_with_values_on_either_side():
    rng = np.random.default_rng(0)
    sides = two_partitions(rng, 3, None, 2)
    assert len(sides) == number_of_partitions(3, 2) == 3 * 4
    assert len(np.unique(sides, axis=0)) == 12
    assert not np.any(sides[:, :3].all(axis=1))
    assert np.all(sides[:, :3].any(axis=1))
    for size, parts, number in ((4, 3, 6), (5, 3, 25), (4, 2, 7)):  # Stirling numbers of the second kind
        labels = SEVERAL_PARTITIONS(rng, size, 100, parts)
        assert len(labels) == len(np.unique(labels, axis=0)) == number
        assert np.all([len(set(row)) == parts for row in labels.tolist()])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (Table.from_counts([90, 70, 50, 3, 2, 4, 1, 3, 2, 4, 3]), "suppressed values that have people"),
        (crowd(sex=2, age=14), "other attributes were partitioned too (appendix C): age"),
    ],
)
def test_workarounds_are_used_and_said(table, words):
    right = sure = values = 0
    expected = 0.0
    for seed in range(4):
        found, true = attack(table, seed=seed)
        right += int(np.sum(np.array(found.counts) == true))
        sure += sum(found.confidence)
        values += len(true)
        expected += expected_right(2, found.base_kinds, found.kinds, (true == 0).tolist())
        assert any(text.startswith(words) for text in found.workarounds)
    # Values share the base set's count: a run is the unit, so that the limit is a wide one.
    assert right >= binom.ppf(1e-9, values, min(expected / values, 1 - 1e-12)) - len(true)
    assert right / values > 0.9
    # Few values are few whole numbers to check the assumptions by: some of the confidence is withheld.
    assert 0.75 * values < sure < expected + 0.1 * values


@pytest.mark.parametrize("sizes", [{"sex": 2, "age": 9, "area": 8}])
def test_no_two_questions_of_a_count_have_the_same_people(sizes):
    """What makes the noises independent (Lemma 5), where other attributes are partitioned and some cells are empty."""
    system = Recording(crowd(people=150, **sizes))
    supply_of(system).count([np.arange(len(system.values(system.attributes[0])))], 300)
    asked = [people for people in system.questions if any(people)]
    assert len(asked) > 500
    assert len(asked) - len(set(asked)) <= system.alone


def supply_of(system):
    attribute = system.attributes[0]
    noisy = system.ask(attribute, np.eye(len(system.values(attribute)), dtype=bool))
    return Supply(system, np.random.default_rng(0), attribute, noisy)


@pytest.mark.campaign
@pytest.mark.parametrize("k", [1000, 60])
def test_confidence_is_at_most_the_share_of_right_counts(k):
    table = Table.from_counts([60 + i for i in range(12)] + [1, 2, 3, 4])
    runs, right, sure = 40, [], []
    for seed in range(runs):
        found, true = attack(table, 3, seed, Plan(partitions=20, base_partitions=k), KeyedNoisyCounts)
        assert found.failed_checks == ()
        right += (np.array(found.counts) == true).tolist()
        sure += found.confidence
    # Trials with these probabilities: the sum of the differences has variance Σ p(1 − p), and as the counts of a run
    # share the base set's, no more than 16 times as much. Their standard deviation, six times.
    sure, right = np.array(sure), np.array(right)
    assert (0.85 if k > 60 else 0.2) < sure.mean() < 0.98
    shared = 1 if k > 60 else 4
    half = np.median(sure)
    for part in (sure > 0, sure <= half, sure > half):
        p = sure[part]
        assert np.sum(right[part]) > p.sum() - 6.1 * shared * np.sqrt(np.sum(p * (1 - p))) - 1


def test_probabilities_of_rounding():
    assert probability_right(3.0, 3, 0.0) == 1.0
    assert probability_right(3.5, 3, 0.0) == 0.0
    assert probability_right(2.0, 2, np.inf) == 0.0
    assert probability_right(2.5, 2, 0.1) == pytest.approx(0.5)
    weights = np.exp(-np.square(np.arange(-60, 61) - 0.3) / (2 * 4.0))
    assert probability_right(0.3, 1, 2.0) == pytest.approx(weights[61] / weights.sum())
    assert probability_right(0.3, 1, 2.0, 0) == pytest.approx(weights[61] / weights[60:].sum())
    assert probability_right(-5.0, 0, 0.5, 0) == pytest.approx(1.0)


def test_probabilities_of_differences():
    # By enumeration: of the base set's count, and of the other one, all pairs.
    (mean, error), (more, spread) = (100.3, 0.4), (107.6, 0.7)
    joint = {}
    for base in range(90, 111):
        for count in range(31):
            weight = np.exp(-(((base - mean) / error) ** 2 + ((base + count - more) / spread) ** 2) / 2)
            joint[count] = joint.get(count, 0.0) + weight
    for count in (6, 7, 8):
        expected = joint[count] / sum(joint.values())
        assert difference_right((mean, error), (more, spread), 1, count) == pytest.approx(expected)
        assert difference_right((-mean, error), (-more, spread), -1, count) == pytest.approx(expected)
    assert difference_right((10.0, 0.0), (13.0, 0.0), 1, 3) == 1.0
    assert difference_right((10.0, 1.0), (13.0, np.inf), 1, 3) == 0.0


def test_two_values_alone_are_taken_as_published():
    found, _ = attack(Table.from_counts([40, 50]))
    assert any("as published" in text for text in found.workarounds)
    assert max(found.confidence) < 0.6
