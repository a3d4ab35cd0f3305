"""The differencing attack: counts of a system that suppresses alone, and what is claimed of systems that do more."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import table_builder_systems as calibration
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.differencing import recover_suppressed
from dpwitness.reconstruction.table_builder.systems import MISSING_ANSWER, ExactCounts
from dpwitness.reconstruction.table_builder.tables import Table
from running import scaled
from table_builder_systems import WithoutTotals

EXACT = tuple(calibration.EXACT)
BROKEN = tuple(calibration.KEPT | calibration.BROKEN | calibration.UNTOLD | calibration.INEXACT)
ONE = Table.from_counts([60 + 7 * i for i in range(18)] + [0, 1, 3])


def made(kind=ExactCounts, table=ONE):
    return kind(table, noise=2, suppression=4, rng=np.random.default_rng(0))


def recovered(system, targets=None, **more):
    return recover_suppressed(system, np.random.default_rng(0), system.attributes[0], targets, **more)


def test_suppressed_counts_are_recovered():
    system = made()
    found = recovered(system)
    assert found.counts.tolist() == ONE.histogram("value").tolist()
    assert found.published.tolist()[-3:] == [0, 0, 0]
    # 21 values, everybody, everybody without each value, and 100 sets; shown values, the sets and all counts agree.
    assert found.queries == system.asked == 21 + 1 + 21 + 100
    assert found.checks == 18 + 100 + 1
    assert found.finding.probability.tolist() == [pytest.approx(120 / 121)] * 21


@settings(deadline=None, max_examples=40)
@given(counts=st.lists(st.integers(0, 60), min_size=2, max_size=9), seed=st.integers(0, 100))
def test_without_noise_every_difference_is_exact(counts, seed):
    table = Table.from_counts([20, 31, 25, *counts])
    found = recover_suppressed(made(table=table), np.random.default_rng(seed), "value", (4, 1))
    assert found.counts.tolist() == [counts[1], 31]
    assert found.contradicted == ()


def test_a_sub_population_and_a_budget():
    table = Table.from_columns({"a": [0] * 30 + [1] * 25 + [2] * 21 + [0] * 9, "b": ["x"] * 74 + ["y"] * 11})
    found = recovered(made(table=table), where={"b": ("y",)})
    assert (found.counts.tolist(), found.published.tolist()) == ([9, 0, 2], [9, 0, 0])
    assert recovered(made(), questions=60).queries == 60
    with pytest.raises(InvalidParameter, match="questions=42 are too few: 21 values need 43"):
        recovered(made(), questions=42)


def test_an_attribute_needs_two_values():
    with pytest.raises(InvalidParameter, match="has 1 value: differences need at least 2"):
        recovered(made(table=Table.from_counts([30])))
    found = recovered(made(table=Table.from_counts([31, 2])))  # without the first value the answer is suppressed
    assert (found.counts.tolist(), found.told.tolist()) == ([31, 2], [True, True])


@pytest.mark.parametrize(
    ("system", "asked", "why"),
    [
        (made(WithoutTotals), {}, "no suppressed count is above 0"),  # totals may be sums of published answers
        (made(table=Table.from_counts([30, 0, 41, 35])), {}, "no suppressed count is above 0"),  # nobody is hidden
        (made(table=Table.from_counts([30, 5, 40, 35, 0])), {}, "multiples of 5"),  # they may be rounded
        (made(), {"targets": (20,), "questions": 23}, "no answer is left to compare"),
    ],
)
def test_nothing_is_claimed_where_nothing_shows_that_answers_are_exact(system, asked, why):
    found = recovered(system, **asked)
    assert why in found.note
    assert not found.finding.claimed.any()


class Replaced(ExactCounts):
    """Exact counts, but for some of the first questions."""

    replaced: dict[int, int]

    def ask(self, attribute, selections, where=None):
        before = self.asked
        answers = super().ask(attribute, selections, where)
        for question, answer in self.replaced.items():
            if 0 <= question - before < len(answers):
                answers[question - before] = answer
        return answers


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({0: 61}, "not exact sums"),
        ({50: 61}, "not exact sums"),  # a set of several values
        ({42: 3000}, "a count is negative"),
        ({17: 0}, "as large as a published count"),
    ],
)
def test_contradictions(answers, why):
    system = made(Replaced)
    system.replaced = answers
    found = recovered(system)
    assert any(why in text for text in found.contradicted)
    assert not found.finding.claimed.any()


def test_missing_answers_leave_their_counts_out():
    system = made(Replaced)
    system.replaced = {3: MISSING_ANSWER, 41: MISSING_ANSWER, 50: MISSING_ANSWER}
    found = recovered(system)
    assert found.counts.tolist() == [*ONE.histogram("value").tolist()[:19], 0, 3]  # the difference of value 19 is lost
    assert found.told.tolist() == [True] * 19 + [False, True]
    assert found.contradicted == ()
    system.asked, system.replaced = 0, {21: 0}
    with pytest.raises(InvalidParameter, match="the answer for all people is suppressed or missing"):
        recovered(system)


def check_claims(name, seeds):
    """The sum of claims must not exceed the number of right ones by more than two standard errors."""
    runs = [calibration.one_run(name, seed, goal="suppressed") for seed in range(seeds)]
    said = sum(sure.sum() for sure, _ in runs)
    right = sum(right[sure > 0].sum() for sure, right in runs)
    # All claims of a run are right or wrong together.
    error = np.sqrt(sum((sure > 0).sum() ** 2 * sure.max() * (1 - sure.max()) for sure, _ in runs))
    assert said <= right + 2 * error
    return said, right


@pytest.mark.parametrize("name", EXACT)
def test_claims_of_systems_that_keep_the_assumptions_are_right(name):
    said, right = check_claims(name, scaled(25))
    assert 0.95 * right < said <= right


def test_claims_of_systems_that_break_the_assumptions_are_right_or_not_made():
    for name in BROKEN:
        check_claims(name, scaled(3))
