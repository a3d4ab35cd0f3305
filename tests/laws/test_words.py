"""What an event says of numbers, texts, flags and exceptions is what it holds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpwitness as dpw
from dpwitness.events import FeatureEvent, Interval, Noun, OutcomeSet, Outside, ScoreThreshold, statistic_of
from dpwitness.events.encoding import LEAST_NUMBER, NESTED, NONE, exception_code, nested, symbol, text_code
from dpwitness.events.event import date_text, number_text
from dpwitness.events.features import Feature
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.search.epochs import PairWealth, cuts_of
from running import problem, sample, soon

PAIR = dpw.pairs(([0], [1]))


def same(output):
    """It keeps numba from being asked."""
    return output


@given(st.floats(allow_nan=False, min_value=-1e300))
def test_a_number_has_the_digits_that_it_takes(value):
    text = number_text(value).replace("−", "-").replace("∞", "inf")
    assert value in (-0.0, 2.2250738585072014e-308, -2.2250738585072014e-308) or float(text) == value


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=5), st.integers(0, 30), st.integers(1, 5))
def test_lengths_of_lists_are_said_by_their_numbers(lengths, low, more):
    rows = np.array([[nested(length)] for length in lengths])
    event = Interval(coordinate=0, low=nested(low + more), high=nested(low))
    assert event.describe() == f"first value a list of at least {low + 1} and at most {low + more} values"
    assert event.contains(rows).tolist() == [low < length <= low + more for length in lengths]
    longer = Interval(coordinate=0, high=nested(low))
    assert longer.describe() == f"first value a list of at least {low + 1} values, or no number"
    assert NESTED < LEAST_NUMBER


def test_an_interval_of_flags_is_one_of_them():
    answers = Noun("answer", flags=True)
    assert Interval(coordinate=1, low=1.0).describe(answers) == "second answer ⊤"
    assert Interval(coordinate=1, high=1.0).describe(answers) == "second answer ⊥"
    assert Interval(coordinate=1, low=1.0).describe("answer") == "second answer at least 1"


def test_whole_numbers_are_no_flags():
    zeros = OutcomeSet([[0, 0, 1]])
    assert zeros.describe("answer") == "answers (0, 0, 1)"
    assert zeros.describe(Noun("answer", flags=True)) == "answers ⊥⊥ then ⊤"
    assert OutcomeSet([[1]]).describe("answer") == "answer 1"
    assert OutcomeSet([[1]]).describe(Noun("answer", flags=True)) == "answer ⊤"
    assert OutcomeSet([[False, False, True]]).describe("answer") == "answers ⊥⊥ then ⊤"


def counting(rng, data):
    return [int(rng.random() < 0.5), int(data[0] == 1 and rng.random() < 0.9)]


@pytest.mark.campaign
@pytest.mark.parametrize("relation", [PAIR, dpw.queries(1)])
def test_a_mechanism_of_whole_numbers_is_told_in_numbers(relation):
    verdict = dpw.check(counting, claim=1.0, neighbours=relation, seed=1, workers=1, outcome=same, search_runs=0)
    assert isinstance(verdict, dpw.Violation)
    assert not set("⊤⊥") & set(verdict.witness.description)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_706_659_200.0, "s", "2024-01-31"),
        (1_706_704_200.5, "s", "2024-01-31 12:30:00.5"),
        (-0.25, "s", "1969-12-31 23:59:59.75"),
        (19_753.0, "D", "2024-01-31"),
        (19_752.5, "D", "2024-01-31"),
        (54.0, "Y", "2024"),
        (1_706_704_200_500_000_000.0, "ns", "2024-01-31 12:30:00.5"),
        (3.0, "12h", "1970-01-02 12"),
        (1e300, "s", "1e+300"),
        (1e20, "D", "1e+20"),
        (math.inf, "s", "∞"),
        (NONE, "s", "None"),
    ],
)
def test_dates_are_said_as_dates(value, unit, text):
    assert date_text(value, unit) == text


def test_events_of_dates_are_told_in_dates():
    noun = Noun("answer", dates={0: "D"})
    assert Interval(coordinate=0, low=19_753.0).describe(noun) == "first answer at least 2024-01-31"
    ends = Interval(coordinate=0, low=19_752.5, high=19_754.0)
    assert ends.describe(noun) == "first answer from 2024-01-31 to below 2024-02-01"
    assert Outside(interval=ends).describe(noun) == f"not: {ends.describe(noun)}"
    assert Interval(coordinate=1, low=19_753.0).describe(noun) == "second answer at least 19753"
    assert OutcomeSet([[19_753, 19_753]]).describe(noun) == "answers (2024-01-31, 19753)"
    keyed = Noun("answer", {0: "key 'a'", 1: "key 'b'"}, dates={1: "D"})
    assert OutcomeSet([[7, 19_753]]).describe(keyed) == "exactly key 'a' 7, key 'b' 2024-01-31"


DAY, SECONDS, ZONE, OF_DAYS = symbol("time", "day"), 1_706_659_200.0, symbol("time", "zone"), symbol("time", "M8[D]")
LABEL = {DAY: "2024-01-31", ZONE: "2024-01-31 00:00:00+01:00", OF_DAYS: "datetime64[D]"}.get


@pytest.mark.parametrize(
    ("entries", "unit", "text"),
    [
        ((SECONDS, DAY), "s", "2024-01-31"),
        ((SECONDS, ZONE), "s", "2024-01-31 00:00:00+01:00"),
        ((SECONDS, symbol("time", "never kept")), "s", "2024-01-31"),
        ((19_753.0, OF_DAYS), "D", "2024-01-31"),
        ((19_753.0, OF_DAYS), "", "19753 datetime64[D]"),
        ((1_706_704_200_500_000_256.0, 1_244.0, OF_DAYS), "ns", "2024-01-31 12:30:00.5000015"),
        ((SECONDS, 5.0), "s", "(1706659200, 5)"),
        ((SECONDS, text_code("2024-01-31")), "", "(1706659200, another text)"),
        ((SECONDS,), "s", "1706659200"),
    ],
)
def test_a_value_of_several_entries_is_told_once(entries, unit, text):
    noun = Noun("output", single=True, dates={0: unit}, parts={1: 0, 2: 0})
    assert OutcomeSet([entries]).describe(noun, LABEL) == f"output {text}"
    keyed = Noun("output", {0: "key 'n'", 1: "key 'a'", 2: "key 'a' (part 2)", 3: "key 'a' (part 3)"},
                 dates={1: unit}, parts={2: 1, 3: 1})  # fmt: skip
    if not text.startswith("("):
        assert OutcomeSet([[7, *entries]]).describe(keyed, LABEL) == f"exactly key 'n' 7, key 'a' {text}"
        assert OutcomeSet([[np.nan, *entries]]).describe(keyed, LABEL) == f"exactly key 'a' {text}"


def test_events_of_further_entries_of_a_value_name_it():
    noun = Noun("output", single=True, dates={0: "s"}, parts={1: 0})
    exact = Interval(coordinate=1, low=DAY, high=float(np.nextafter(DAY, np.inf)))
    assert exact.describe(noun, LABEL) == exact.statistic().describe(noun, LABEL) + " 2024-01-31" == "output 2024-01-31"
    assert Interval(coordinate=1).describe(noun) == "output (part 2) present"
    keyed = Noun("output", {0: "key 'a'", 1: "key 'a' (part 2)"}, dates={0: "s"}, parts={1: 0})
    assert exact.describe(keyed, LABEL) == "key 'a' 2024-01-31"
    assert exact.describe("answer", LABEL) == "second answer 2024-01-31"


def test_an_exception_reads_as_one():
    code = exception_code("ValueError")
    event = Interval(coordinate=0, low=code, high=float(np.nextafter(code, np.inf)))
    assert event.describe("value", {code: "raises ValueError"}.get) == "raises ValueError"


def test_values_below_an_end_are_not_all_numbers():
    """NaN, None and texts come before all numbers."""
    event = Interval(coordinate=0, high=3.0)
    assert event.describe("value") == "first value below 3"
    assert event.describe(Noun("value", mixed={0: "no number"})) == "first value below 3, or no number"
    mixed = Noun("value", mixed={0: "raises ValueError"})
    assert event.describe(mixed) == "first value below 3, or raises ValueError"
    assert Interval(coordinate=0, high=LEAST_NUMBER).describe(mixed) == "raises ValueError, or first value −∞"
    assert Interval(coordinate=0, low=LEAST_NUMBER, high=3.0).describe() == "first value a number above −∞ and below 3"


def test_codes_of_texts_have_no_order():
    """A range of them would be "another text" to whoever reads it."""
    texts = np.array([[text_code(name)] for name in "abcdefgh"] * 4)
    numbers = np.array([[float(k)] for k in range(32)])
    assert cuts_of(texts, numbers)[0].min() >= LEAST_NUMBER
    code = text_code("a")
    assert statistic_of(Interval(coordinate=0, low=code, high=float(np.nextafter(code, np.inf)))).between is None


def test_places_are_said_by_the_names_of_their_entries():
    noun = Noun("value", {0: "key 'a'", 1: "key 'b'", 2: "key 'c'"})
    event = FeatureEvent(feature=Feature(name="place of largest", columns=(2,)), within=Interval(coordinate=0, low=2))
    assert event.describe(noun) == "the largest of (key 'a', key 'b', key 'c') is key 'b' or key 'c'"
    total = FeatureEvent(feature=Feature(name="sum", columns=(1,)), within=Interval(coordinate=0, low=2))
    assert total.describe(noun) == "sum of (key 'a', key 'b') at least 2"
    assert OutcomeSet([[1.0, math.nan, 2.0]]).describe(noun) == "exactly key 'a' 1, key 'c' 2"


def test_names_with_commas_stand_between_semicolons():
    noun = Noun("value", {c: f"a {c // 2 + 1}, b {c % 2 + 1}" for c in range(4)})
    score = ScoreThreshold((2, 3, 0), [[0.0]] * 3, [[0.0, 1.0, 0.0]] * 3, 0.5)
    assert score.describe(noun) == "learned score of a 2, b 1; a 2, b 2; a 1, b 1 above 0.5"
    outcomes = OutcomeSet([[1.0, 2.0], [1.0, 3.0]])
    assert outcomes.describe(noun) == (
        "one of 2 outcomes: exactly a 1, b 1 1; a 1, b 2 2 or exactly a 1, b 1 1; a 1, b 2 3"
    )
    total = FeatureEvent(feature=Feature(name="sum", columns=(1,)), within=Interval(coordinate=0, low=2))
    assert total.describe(noun) == "sum of (a 1, b 1; a 1, b 2) at least 2"


@pytest.mark.parametrize(
    ("errors", "said"), [([ValueError], "raises ValueError"), ([ValueError, KeyError], "raises KeyError or raises ")]
)
def test_a_range_with_exceptions_names_their_classes(errors, said):
    def answer(rng, data):
        if rng.random() < 0.5:
            raise errors[rng.integers(len(errors))]("no answer")
        return rng.normal(data[0])

    mechanism = as_mechanism(answer, [0], errors="outcome")
    sample(mechanism, PAIR.given[0], 100, seed=1, key=(0,))
    described = problem(mechanism, PAIR).described
    below, least = (described(Interval(coordinate=0, high=high)) for high in (3.0, LEAST_NUMBER))
    assert below.startswith(f"output below 3, or {said}")
    assert least.startswith(said)


def flag_and_constant(rng, data):
    return [7.0, rng.random() < 0.5]


def number_or_error(rng, data):
    if rng.random() < 0.3:
        raise ValueError("no answer")
    return ["yes" if rng.random() < 0.5 else None, rng.random()]


@pytest.mark.parametrize("mechanism", [flag_and_constant, number_or_error])
@pytest.mark.parametrize("runs", soon([47, 100, 1200], 1))
def test_a_pass_of_few_runs_on_many_pairs_rests_on_what_happens(mechanism, runs):
    """Of each of 32 pairs there are a few runs, and none is worth a bet."""
    relation = dpw.records(dpw.categories(*"abcde"), adjacency="replace-one", form="list")
    verdict = dpw.check(
        mechanism, claim=1.0, neighbours=relation, seed=2, workers=1, outcome=same, search_runs=0, runs=runs,
        errors="outcome",
    )  # fmt: skip
    assert isinstance(verdict, dpw.NotRefuted)
    assert verdict.ended == "runs"
    assert "the time was over" not in str(verdict)
    if runs > 47 and mechanism is flag_and_constant:  # else one or two runs of the pair were all that was known
        assert 0 < verdict.counts.hits + verdict.counts.neighbour_hits < 2 * verdict.counts.runs


def test_the_event_of_a_pass_is_one_that_some_runs_are_in():
    rng = np.random.default_rng(1)
    x, y = (np.column_stack([np.ones(50), rng.random(50)]) for _ in range(2))
    course = PairWealth(pair=PAIR.given[0], index=0, x=x, y=y)
    found = course.ordinary()
    assert 40 <= found.event.contains(np.concatenate([x, y])).sum() <= 60
    for side in (x, y):
        side[:, 1] = 1.0
    assert course.ordinary() is None


@pytest.mark.parametrize("search_runs", [0, 300])
def test_a_pass_never_rests_on_an_event_of_all_runs_or_of_none(search_runs):
    def rounded(rng, data):
        return [7.0, round(rng.random() * 3)]

    verdict = dpw.check(
        rounded, claim=2.0, neighbours=PAIR, seed=3, workers=1, outcome=same, search_runs=search_runs, runs=400
    )
    assert isinstance(verdict, dpw.NotRefuted)
    assert 0 < verdict.counts.hits + verdict.counts.neighbour_hits < 2 * verdict.counts.runs
