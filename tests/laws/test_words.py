"""What an event says of numbers, texts, flags and exceptions is what it holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpwitness as dpw
from dpwitness.events import FeatureEvent, Interval, Noun, OutcomeSet, ScoreThreshold, statistic_of
from dpwitness.events.encoding import LEAST_NUMBER, NESTED_SEQUENCE, exception_code, nested, symbol, text_code
from dpwitness.events.features import Feature
from dpwitness.search.epochs import cuts_of
from running import same

PAIR = dpw.pairs(([0], [1]))


FLAGS, MIXED = Noun("answer", flags=True), Noun("value", mixed={0: "no number"})
NAMED = Noun("value", {0: "key 'a'", 1: "key 'b'", 2: "key 'c'"})
COMMAS = Noun("value", {c: f"a {c // 2 + 1}, b {c % 2 + 1}" for c in range(4)})
RAISES, TWO_ENTRIES = (
    Noun("value", mixed={0: "raises ValueError"}),
    Noun("output", single=True, parts={1: 0}),
)
KEYED = Noun("output", {0: "key 'a'", 1: "key 'a' (part 2)"}, parts={1: 0})
DAY, SECONDS, ZONE, OF_DAYS = symbol("time", "day"), 1_706_659_200.0, symbol("time", "zone"), symbol("time", "M8[D]")
ERROR = exception_code("ValueError")
LABEL = {
    DAY: "2024-01-31", ZONE: "2024-01-31 00:00:00+01:00", OF_DAYS: "datetime64[D]", ERROR: "raises ValueError",
}.get  # fmt: skip


def interval(coordinate=0, **ends):
    return Interval(coordinate=coordinate, **ends)


def only(code, coordinate=0):
    return interval(coordinate, low=code, high=float(np.nextafter(code, np.inf)))


def feature(name, *columns, **ends):
    return FeatureEvent(feature=Feature(name=name, columns=columns), within=interval(**ends))


@pytest.mark.parametrize(
    ("event", "noun", "text"),
    [
        # Flags are no whole numbers.
        (interval(1, high=1.0), FLAGS, "second answer ⊥"),
        (OutcomeSet([[0, 0, 1]]), FLAGS, "answers ⊥⊥ then ⊤"),
        # Values of two entries.
        (only(DAY, 1), TWO_ENTRIES, "output 2024-01-31"),
        (only(DAY, 1), KEYED, "key 'a' 2024-01-31"),
        # Exceptions; NaN, None and texts come before all numbers.
        (only(ERROR), "value", "raises ValueError"),
        (interval(high=3.0), MIXED, "first value below 3, or no number"),
        (interval(high=3.0), RAISES, "first value below 3, or raises ValueError"),
        (interval(high=LEAST_NUMBER), RAISES, "raises ValueError, or first value −∞"),
        (interval(low=LEAST_NUMBER, high=3.0), "value", "first value a number above −∞ and below 3"),
        # Names of entries.
        (feature("place of largest", 2, low=2), NAMED,
         "the largest of (key 'a', key 'b', key 'c') is key 'b' or key 'c'"),
        (feature("sum", 1, low=2), COMMAS, "sum of (a 1, b 1; a 1, b 2) at least 2"),
        (OutcomeSet([[1.0, 2.0], [1.0, 3.0]]), COMMAS,
         "one of 2 outcomes: exactly a 1, b 1 1; a 1, b 2 2 or exactly a 1, b 1 1; a 1, b 2 3"),
        (ScoreThreshold((2, 3, 0), [[0.0]] * 3, [[0.0, 1.0, 0.0]] * 3, 0.5), COMMAS,
         "learned score of a 2, b 1; a 2, b 2; a 1, b 1 above 0.5"),
    ],
)  # fmt: skip
def test_an_event_is_said_in_the_words_of_its_outcomes(event, noun, text):
    assert event.describe(noun, LABEL) == text


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=5), st.integers(0, 30), st.integers(1, 5))
def test_lengths_of_lists_are_said_by_their_numbers(lengths, low, more):
    rows = np.array([[nested(length)] for length in lengths])
    event = interval(low=nested(low + more), high=nested(low))
    assert event.describe() == f"first value a list of at least {low + 1} and at most {low + more} values"
    assert event.contains(rows).tolist() == [low < length <= low + more for length in lengths]
    assert interval(high=nested(low)).describe() == f"first value a list of at least {low + 1} values, or no number"
    assert NESTED_SEQUENCE < LEAST_NUMBER


def test_codes_of_texts_have_no_order():
    """A range of them would be "another text" to whoever reads it."""
    texts = np.array([[text_code(name)] for name in "abcdefgh"] * 4)
    numbers = np.array([[float(k)] for k in range(32)])
    assert cuts_of(texts, numbers)[0].min() >= LEAST_NUMBER
    assert statistic_of(only(text_code("a"))).between is None


@pytest.mark.parametrize("search_runs", [0, 300])
def test_a_pass_never_rests_on_an_event_of_all_runs_or_of_none(search_runs):
    def rounded(rng, data):
        return [7.0, round(rng.random() * 3)]

    verdict = dpw.check(
        rounded, claim=2.0, neighbours=PAIR, seed=3, workers=1, outcome=same, search_runs=search_runs, runs=400
    )
    assert isinstance(verdict, dpw.NotRefuted)
    assert 0 < verdict.counts.hits + verdict.counts.neighbour_hits < 2 * verdict.counts.runs
