"""What averaging attacks claim of systems that keep their assumptions, and of systems that break them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import table_builder_systems as calibration
from dpwitness.reconstruction.table_builder import averaging, confidence, histogram
from dpwitness.reconstruction.table_builder.averaging import AnsweredBlock
from dpwitness.reconstruction.table_builder.perturbation import parameter_right
from dpwitness.reconstruction.table_builder.supply import Plan
from dpwitness.reconstruction.table_builder.systems import MISSING_ANSWER, BoundedNoisyCounts, System
from dpwitness.reconstruction.table_builder.tables import Table
from running import scaled

ONE = Table.from_counts([60 + 7 * i for i in range(18)] + [0, 1, 3])


def claims(names, seeds, **more):
    """The summary of all runs: how many cells are claimed at each level, and how many of these are right."""
    return calibration.summary("", [calibration.one_run(name, seed, **more) for name in names for seed in seeds])


class Changing(System):
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


def fitted(selections, answers):
    return confidence.fit_counts([AnsweredBlock(attribute="a", selections=selections, answers=answers)])


@pytest.mark.parametrize("on", ["nothing", "order", "neighbours", "size", "first", "people"])
def test_noise_that_hangs_on_something_shows(on):
    rng = np.random.default_rng(4)
    true = 10 * rng.integers(1, 20, 10)  # many sets have as many people
    sides = rng.random((400, 10)) < 0.5
    selections = np.unique(np.vstack([sides, ~sides]), axis=0)
    selections = selections[rng.permutation(len(selections))]
    n, entries = len(selections), rng.integers(-3, 4, 2000)
    noise = {
        "nothing": rng.integers(-3, 4, n),
        "order": np.where(np.arange(n) < n // 2, -1, 1) + rng.integers(-1, 2, n),
        "neighbours": np.repeat(rng.integers(-3, 4, n), 3)[:n],
        "size": np.array([3, -3, 1, -2, 3, -1, -3, 2, 3, -3, 2])[selections.sum(axis=1)],
        "first": np.array([3, -3, 3, -3, 3, -3, 3, -3, 3, -3])[selections.argmax(axis=1)],
        "people": entries[selections @ true],
    }[on]
    answers = selections @ true + 50 + noise
    found = fitted(selections, answers)
    assert (found.chance < 1e-3) == (on != "nothing")


@pytest.mark.parametrize(
    "name",
    ["16 noises", "keyed by the size", "drifting", "garbage 5 %", "5 % 15 too large", "rounded to 10", "a constant"],
)
def test_claims_of_systems_that_break_them_are_right_or_not_made(name):
    row = claims((name,), range(2))
    assert row["right_0.5"] == row["at_0.5"]


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
@pytest.mark.parametrize("name", calibration.BROKEN)
def test_calibration_over_systems_that_break_the_assumptions(name):
    assert claims((name,), range(scaled(20)))["kept"]


def test_a_layer_a_value_shows_where_there_is_another_attribute():
    rng = np.random.default_rng(3)
    table = Table.from_columns({name: rng.integers(0, size, 1500).tolist() for name, size in (("a", 12), ("b", 9))})
    for seed in range(3):
        found = recovered(calibration.SYSTEMS["a layer a value"](table, np.random.default_rng(seed), 3), seed=seed)
        # Each of two sums of counts is off by a sum of many layers: of standard deviation 9 and 7.
        assert confidence.FRACTIONAL_COUNTS in found.failed_checks
        assert not found.finding.claimed.any()
    found = recovered(bounded(table))
    assert found.failed_checks == ()
    assert found.counts == tuple(table.histogram("a"))


@pytest.mark.parametrize("name", ["drifting", "keyed by the number", "autoregressive"])
def test_noise_that_hangs_on_the_order_of_questions_is_said(name):
    found = recovered(calibration.SYSTEMS[name](ONE, np.random.default_rng(3), 3))
    assert confidence.DEPENDENT_NOISE in found.failed_checks


def without_one(table, seed):
    """A table that a person has left."""
    rows = np.repeat(np.arange(len(table.counts)), table.counts)
    left = np.delete(rows, np.random.default_rng(seed).integers(len(rows)))
    return Table(table.values, table.codes, np.bincount(left, minlength=len(table.counts)))


C, A = np.arange(1501) % 2, np.random.default_rng(2).integers(0, 14, 1501)
MANY, TWO = Table.from_counts([60 + 7 * i for i in range(25)]), Table.from_columns({"c": C.tolist(), "a": A.tolist()})


@pytest.mark.parametrize(("table", "plan"), [(MANY, Plan(partitions=60)), (TWO, None)])
def test_a_person_who_leaves_during_the_questions_is_noticed(table, plan):
    for seed in range(3):
        stays = recovered(bounded(table, seed=seed), plan, seed)
        assert stays.failed_checks == ()
        after = bounded(without_one(table, seed), seed=9)
        leaving = recovered(Changing(bounded(table, seed=seed), stays.queries // 2, after), plan, seed)
        assert confidence.CHANGED_PEOPLE in leaving.failed_checks
        assert not leaving.finding.claimed.any()


def test_few_sums_show_no_change_of_counts_that_stay():
    """Of three values there are three sums of two answers each: by chance they lie near each other, or agree."""
    table = Table.from_counts([60, 67, 74])
    for seed in range(60):
        assert confidence.CHANGED_PEOPLE not in recovered(bounded(table, 1 + seed % 5, seed), seed=seed).failed_checks


def test_a_value_beside_two_base_values_is_no_change():
    table = Table.from_columns({"c": [*C.tolist(), 2, 2], "a": [*A.tolist(), *A[:2].tolist()]})
    found = recovered(bounded(table), Plan(targets=(2,), base=2))
    assert (found.counts, found.failed_checks) == ((2,), ())


def test_noise_with_a_mean_is_no_change_of_two_counts():
    class Floored(BoundedNoisyCounts):
        def _fresh_noise(self, n):
            return np.floor(self.law.sample(self._rng, n) - self._rng.random(n)).astype(int)

    found = recovered(Floored(TWO, noise=1, suppression=4, rng=np.random.default_rng(4)))
    assert (found.counts, found.failed_checks) == (tuple(TWO.histogram("c")), ())


@given(seed=st.integers(0, 1000), missing=st.integers(0, 60))
def test_sums_with_missing_answers_are_those_of_the_rest(seed, missing):
    answers = np.random.default_rng(seed).integers(1, 50, (2, 30))
    holes = answers.copy()
    holes.ravel()[:missing] = MISSING_ANSWER
    rest = answers[:, np.all(holes != MISSING_ANSWER, axis=0)]
    assert averaging.Sums.of(holes).totals.tolist() == rest.sum(axis=0).tolist()


def right_share(plan, seeds, table=ONE, r=3):
    true = np.array(table.histogram(next(iter(table.values))))
    return np.mean([np.array(recovered(bounded(table, r, seed), plan, seed).counts) == true for seed in seeds])


@pytest.mark.parametrize("runs", [4, pytest.param(40, marks=pytest.mark.campaign)])
def test_more_questions_and_more_attributes_find_no_less(runs):
    # Of the first a third is wrong, of the second next to nothing.
    shares = [right_share(Plan(partitions=k), range(runs)) for k in (10, 100)]
    assert shares[0] < shares[1]
    assert shares[1] > 0.97
    rng = np.random.default_rng(5)
    columns = {"a": rng.integers(0, 14, 900).tolist(), "b": rng.integers(0, 6, 900).tolist()}
    alone = right_share(Plan(partitions=60), range(runs), Table.from_columns({"a": columns["a"]}))
    both = right_share(Plan(partitions=60), range(runs), Table.from_columns(columns))
    # Two samples of runs·14 counts: six standard deviations of their difference at most.
    assert both > alone - 6 * np.sqrt(2 * max(alone * (1 - alone), 0.01) / (14 * runs))


def test_of_noise_that_is_wider_than_any_law_nothing_is_claimed():
    assert parameter_right((40_000, -40_000, 12_345), 13_334, 2, 1) is None


def test_the_probability_of_a_parameter():
    rng = np.random.default_rng(2)

    def sums(law, number):
        return tuple((law(number) + law(number) - law(number)).tolist())

    def uniform(n):
        return rng.integers(-2, 3, n)

    found = [parameter_right(sums(uniform, n), 2, 2, 1) for n in (30, 200, 3000)]
    assert found[0] < found[2]
    assert found[2] > 0.99
    # Normal noise of a large r, of which 60 sums show hardly more than uniform noise within ±2 would.
    said = []
    for _ in range(20):
        normal = sums(lambda n: np.round(rng.normal(size=n) * 1.1).astype(int), 60)
        guess = max(-(min(normal) // 3), -(-max(normal) // 3))
        said.append(parameter_right(normal, guess, 2, 1) or 0.0)
    assert max(said) < 0.5  # were all noise uniform, these would be near 1; in four of five systems, up to .64
    shifted = tuple(x + 1 for x in sums(uniform, 200))
    assert parameter_right(shifted, 3, 2, 1) is None
    assert parameter_right((*sums(uniform, 200), 30), 10, 2, 1) is None
    # The right law, but each sum hangs on the one before.
    assert parameter_right(tuple(sorted(sums(uniform, 200))), 2, 2, 1) is None
    assert parameter_right((0,) * 30, 0, 2, 1) is None
    assert 0 < parameter_right((3,), 1, 2, 1) < 0.5  # one sum says little, and contradicts nothing


def test_round_off_of_exact_answers_is_no_dependent_noise():
    rng = np.random.default_rng(1)
    selections, people = rng.random((400, 12)) < 0.5, rng.integers(10, 90_000, 400).astype(float)
    trend = np.linspace(-1, 1, 400)  # in the order of the questions
    assert confidence._dependence_p_value(selections, people, 1e-11 * trend) == 1
    assert confidence._dependence_p_value(selections, people, trend) < 1e-9
