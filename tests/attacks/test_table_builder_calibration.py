"""What averaging attacks claim of systems that keep their assumptions, and of systems that break them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import table_builder_systems as calibration
from dpwitness.reconstruction.table_builder import averaging, confidence, histogram
from dpwitness.reconstruction.table_builder.averaging import PartitionAnswers, Partitions
from dpwitness.reconstruction.table_builder.perturbation import parameter_right
from dpwitness.reconstruction.table_builder.supply import CountingPlan
from dpwitness.reconstruction.table_builder.systems import MISSING_ANSWER, BoundedNoisyCounts, QuerySystem
from dpwitness.reconstruction.table_builder.tables import Table
from running import scaled

ONE = Table.from_counts([60 + 7 * i for i in range(18)] + [0, 1, 3])


def claims(names, seeds, **more):
    """The summary of all runs: how many cells are claimed at each level, and how many of these are right."""
    return calibration.summary("", [calibration.one_run(name, seed, **more) for name in names for seed in seeds])


class Changing(QuerySystem):
    """A system that answers from a second table after so many questions."""

    def __init__(self, inner, number, after):
        super().__init__({name: inner.values(name) for name in inner.attributes})
        self.inner, self.number, self.after = inner, number, after

    def ask(self, attribute, selections, where=None):
        left = min(max(self.number - self.asked, 0), len(selections))
        self.asked += len(selections)
        parts = [(self.inner, selections[:left]), (self.after, selections[left:])]
        return np.concatenate([system.ask(attribute, some, where) for system, some in parts if len(some)])


def bounded(table=ONE, r=2, seed=0):
    return BoundedNoisyCounts(table, noise=r, suppression=max(r, 4), rng=np.random.default_rng(seed))


def recovered(system, plan=None, seed=0):
    return histogram.recover_histogram(system, np.random.default_rng(seed), system.attributes[0], plan)


def test_no_sum_of_bounded_noise_is_an_outlier_and_garbled_ones_are():
    rng = np.random.default_rng(0)
    for r in (1, 2, 5, 30):
        sums = rng.integers(-r, r + 1, (2, 400)).sum(axis=0) + 1000
        assert not averaging.outliers(sums).any()
        sums[:80] = rng.integers(0, 600, 80)
        assert averaging.outliers(sums).tolist() == [True] * 80 + [False] * 320
    assert not averaging.outliers(np.array([0, 0, 0, 99])).any()  # of four values none is judged
    assert not averaging.outliers(np.array([100] * 70 + [110] * 15 + [90] * 15)).any()  # rounded to tens


@pytest.mark.parametrize("on", ["nothing", "order", "size"])
def test_noise_that_hangs_on_something_shows(on):
    rng = np.random.default_rng(4)
    true = 10 * rng.integers(1, 20, 10)
    none = np.arange(0)
    partitions = Partitions(base=np.arange(10), beside=none, sides=averaging.two_partitions(rng, 10, 400))
    selections = partitions.selections(10)
    noise = (
        rng.integers(-3, 4, 800)
        + {
            "nothing": 0,
            # Four people leave after half of the questions.
            "order": -4 * (np.arange(800) >= 400) * selections[:, 3],
            "size": np.array([3, -3, 1, -2, 3, -1, -3, 2, 3, -3, 2])[selections.sum(axis=1)],
        }[on]
    )
    found = confidence.estimate_counts(PartitionAnswers.of(partitions, selections @ true + 50 + noise), (), 10)
    assert any("on average" in text for text in found.failed)  # by 50
    assert (len(found.failed) > 1) == (on != "nothing")
    if on == "nothing":
        assert np.abs(found.counts - true).max() < 5 * found.errors.max() < 2


def test_answers_with_fewer_than_no_people_contradict():
    rng = np.random.default_rng(4)
    true = np.append(10 * rng.integers(1, 20, 9), -30)
    partitions = Partitions(base=np.arange(10), beside=np.arange(0), sides=averaging.two_partitions(rng, 10, 400))
    answers = partitions.selections(10) @ true + rng.integers(-3, 4, 800)
    found = confidence.estimate_counts(PartitionAnswers.of(partitions, answers), (), 10)
    assert any("negative" in text for text in found.failed)


@pytest.mark.parametrize(
    "name",
    [
        "16 noises",
        "a layer a value",
        "keyed by the size",
        "drifting",
        "garbage 5 %",
        "5 % 15 too large",
        "rounded to 10",
        "a constant",
    ],
)
def test_claims_of_systems_that_break_them_are_right_or_not_made(name):
    row = claims((name,), range(2))
    assert row["right_0.9"] == row["at_0.9"]


@pytest.mark.campaign
def test_calibration_over_systems_that_keep_the_assumptions():
    for more in ({}, {"one_value": True}):
        row = claims(calibration.KEPT, range(scaled(60)), **more)
        assert row["kept"]
        assert row["said"] <= row["claimed_right"] + 5 * np.sqrt(row["claimed"])
        assert row["withheld"] <= binom.isf(1e-6, scaled(60) * len(calibration.KEPT), 0.02)
    row = claims(("uniform", "keyed"), range(scaled(200)), goal="perturbation")
    assert row["kept"]


@pytest.mark.campaign
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[pytest.mark.xfail(reason="scaled counts near whole numbers by chance; see RESULTS.md")]
        )
        if name == "scaled 1.01"
        else name
        for name in calibration.BROKEN
    ],
)
def test_calibration_over_systems_that_break_the_assumptions(name):
    assert claims((name,), range(scaled(20)))["kept"]


def without_one(table, seed):
    """A table that a person has left."""
    rows = np.repeat(np.arange(len(table.counts)), table.counts)
    left = np.delete(rows, np.random.default_rng(seed).integers(len(rows)))
    return Table(table.values, table.codes, np.bincount(left, minlength=len(table.counts)))


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_a_person_who_leaves_during_the_questions_is_noticed(share):
    """By most of the persons, as the first counts are still vague."""
    table, plan = Table.from_counts([60 + 7 * i for i in range(25)]), CountingPlan(partitions=60)
    noticed = 0
    for seed in range(4):
        stays = recovered(bounded(table, seed=seed), plan, seed)
        assert stays.failed_checks == ()
        after = bounded(without_one(table, seed), seed=9)
        leaving = recovered(Changing(bounded(table, seed=seed), int(share * stays.queries), after), plan, seed)
        noticed += confidence.PARTS_DISAGREE in leaving.failed_checks
    assert noticed >= 2


@pytest.mark.parametrize("added", [0, 1])
def test_parts_of_the_people_add_up_unless_values_add_something(added):
    """The listed values of the second attribute are not all, so that people are left out."""
    table = Table(
        {"a": range(12), "b": range(9)}, np.indices((12, 9)).reshape(2, -1).T, np.arange(108) % 17 + np.arange(108) // 9
    )

    class QuerySystem(BoundedNoisyCounts):
        def values(self, attribute):
            return super().values(attribute)[: 5 if attribute == "b" else None]

        def ask(self, attribute, selections, where=None):
            return super().ask(attribute, selections, where) + added * selections[:, 3:8].sum(axis=1)

    for seed in range(3):
        system = QuerySystem(table, noise=2, suppression=4, rng=np.random.default_rng(seed))
        found = recovered(system, CountingPlan(partitions=100), seed)
        right = np.array(found.counts) == table.histogram("a")
        assert found.failed_checks == ((confidence.PARTS_DO_NOT_ADD_UP,) if added else ())
        assert right.mean() > 0.9 or added


@given(seed=st.integers(0, 1000), missing=st.integers(0, 60))
def test_sums_with_missing_answers_are_those_of_the_rest(seed, missing):
    answers = np.random.default_rng(seed).integers(1, 50, (2, 30))
    holes = answers.copy()
    holes.ravel()[:missing] = MISSING_ANSWER
    partitions = Partitions(
        base=np.arange(6), beside=np.arange(0), sides=averaging.two_partitions(np.random.default_rng(seed), 6, 30)
    )
    rest = answers[:, np.all(holes != MISSING_ANSWER, axis=0)]
    assert PartitionAnswers.of(partitions, holes.ravel()).answers.tolist() == rest.tolist()


def right_share(plan, seeds, table=ONE, r=3):
    true = np.array(table.histogram(next(iter(table.values))))
    return np.mean([np.array(recovered(bounded(table, r, seed), plan, seed).counts) == true for seed in seeds])


def test_more_questions_find_no_less():
    # Of the first a third is wrong by Algorithm 4, of the second next to nothing.
    for fitted in (True, False):
        shares = [right_share(CountingPlan(partitions=k, fitted=fitted), range(4)) for k in (10, 100)]
        assert shares[0] <= shares[1]
        assert shares[1] > 0.9


def test_least_squares_finds_more_than_algorithm_4():
    plans = [CountingPlan(partitions=20, fitted=fitted) for fitted in (True, False)]
    by_fit, by_sums = (right_share(plan, range(8)) for plan in plans)
    assert by_fit > by_sums + 0.1


def test_of_noise_that_is_wider_than_any_law_nothing_is_claimed():
    assert parameter_right((40_000, -40_000, 12_345), 13_334) is None


def test_the_probability_of_a_parameter():
    rng = np.random.default_rng(2)

    def sums(law, number):
        return tuple((law(number) + law(number) - law(number)).tolist())

    def uniform(n):
        return rng.integers(-2, 3, n)

    found = [parameter_right(sums(uniform, n), 2) for n in (30, 200, 3000)]
    assert found[0] < found[2]
    assert found[2] > 0.99
    # Normal noise of a large r, of which 60 sums show hardly more than uniform noise within ±2 would.
    said = []
    for _ in range(20):
        normal = sums(lambda n: np.round(rng.normal(size=n) * 1.1).astype(int), 60)
        guess = max(-(min(normal) // 3), -(-max(normal) // 3))
        said.append(parameter_right(normal, guess) or 0.0)
    assert max(said) < 0.5  # were all noise uniform, these would be near 1; in four of five systems, up to .64
    shifted = tuple(x + 1 for x in sums(uniform, 200))
    assert parameter_right(shifted, 3) is None
    assert parameter_right((*sums(uniform, 200), 30), 10) is None
    # The right law, but each sum hangs on the one before.
    assert parameter_right(tuple(sorted(sums(uniform, 200))), 2) is None
    assert parameter_right((0,) * 30, 0) is None
    assert 0 < parameter_right((3,), 1) < 0.1  # one sum, of 3, is likelier for larger bounds, and contradicts nothing
