"""Outcomes with keys: what an event says is what a person finds who looks it up in the outcome."""

import datetime
import math
import re
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpwitness as dpw
import elsewhere
from dpwitness.errors import InvalidOutcome, InvalidWitness
from dpwitness.events import Interval, Noun, OutcomeSet, Outside
from dpwitness.events.encoding import CODE_TEXTS, is_code
from dpwitness.events.event import NO_NUMBER
from dpwitness.mechanisms.columns import MOST_COLUMNS, Columns, OutputTraits
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.outcomes import FlatRow, RowWriter
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import pairs
from dpwitness.runs import Role
from dpwitness.search.learners import learn_events
from dpwitness.search.objectives import GrowthAt
from elsewhere import Elsewhere, away
from running import interpreted, runner, same

ABSENT = object()
PAIR = pairs((np.array([0.0]), np.array([1.0]))).given[0]


def returning(outcomes, **more):
    """A mechanism that returns these outcomes in turn."""
    waiting = iter(outcomes)
    return PythonMechanism(Signature.of(lambda rng, data: next(waiting), {}), **more)


DAY = datetime.date(2024, 1, 31)


NOON = datetime.datetime(2024, 1, 31, 12)


@pytest.mark.parametrize("inside", [lambda value: value, lambda value: {"a": value}], ids=["alone", "in a dict"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Decimal("0.1"), 0.1), (Decimal(5), 5), (Decimal(5), Fraction(5)), (Decimal("0.1"), "0.1"),
        (Fraction(1, 2), "1/2"), (DAY, "2024-01-31"), (np.datetime64(DAY), "2024-01-31"), (NOON.time(), "12:00:00"),
        (NOON, np.datetime64(NOON, "s")), (NOON, np.datetime64(NOON, "us")), (DAY, np.datetime64(DAY)),
        (DAY, datetime.datetime.combine(DAY, datetime.time())), (DAY, 1_706_659_200.0),
        (datetime.timedelta(1), np.timedelta64(86_400, "s")),
    ],
    ids=str,
)  # fmt: skip
def test_two_outcomes_are_not_told_alike(one, other, inside):
    """An event that holds one of them alone names it: the same text for both would say what is not so."""
    outcomes = [inside(one), inside(other)]
    mechanism = returning(outcomes * 2)
    seen(mechanism, outcomes)
    rows = laid(mechanism, outcomes)
    assert len({mechanism.outcome_text(row.tolist()) for row in rows}) == 2
    noun = Noun("output", mechanism.places, single=not mechanism.places, parts=mechanism.parts)
    assert len({OutcomeSet([row]).describe(noun, mechanism.label) for row in rows}) == 2
    told = [set(), set()]
    for c, code in {(c, row[c]) for row in rows for c in range(rows.shape[1]) if is_code(row[c])}:
        event = Interval(coordinate=c, low=code, high=float(np.nextafter(code, np.inf)))
        held = event.contains(rows)
        if held.sum() == 1:
            told[int(held[1])].add(event.describe(noun, mechanism.label))
    assert not told[0] & told[1]


def laid(mechanism, outcomes):
    """Rows of outcomes by the columns of a mechanism, which stay what they are."""
    row = FlatRow(mechanism.traits) if mechanism.by_position else RowWriter(mechanism.columns, OutputTraits())
    rows = [row.write(outcome) for outcome in outcomes]
    width = max(map(len, rows))
    return np.array([[*values, *[np.nan] * (width - len(values))] for values in rows])


def seen(mechanism, outcomes):
    """Give the entries of outcomes columns."""
    for outcome in outcomes:
        row = RowWriter(mechanism.columns, mechanism.traits)
        row.write(outcome)
        mechanism.begin(row.columns, by_position=False)
        mechanism.grow()


def found(outcome, name):
    """What a person finds in an outcome at a place that an event names; ABSENT where there is nothing."""
    value = outcome
    for step in re.findall(r"(?:[a-z]+ of [a-z]+|[a-z]+ (?:'[^']*'|[-\d.]+)|outcome)", name):
        try:
            if step.startswith("number of "):
                value = float(len(value)) if not np.isscalar(value) and value is not None else ABSENT
            elif step != "outcome":
                word, text = step.split(" ", 1)
                key = text[1:-1] if text.startswith("'") else int(text)
                value = looked_up(value, word, key)
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value


def looked_up(value, word, key):
    if word == "element":
        return "present" if isinstance(value, set) and key in value else ABSENT
    if word == "key":
        return value[key] if isinstance(value, dict) else ABSENT
    if word == "index":
        return value.loc[key] if isinstance(value, pd.Series) else ABSENT
    return value[key - 1] if isinstance(value, list) and 0 < key <= len(value) else ABSENT


def holds(said, outcome):
    """Whether the words of an event are true of an outcome; None for words that this does not know."""
    if said.startswith("not: "):
        inner = holds(said.removeprefix("not: "), outcome)
        return None if inner is None else not inner
    if " and " in said and not said.startswith("the "):
        parts = [holds(part, outcome) for part in said.split(" and ")]
        return None if None in parts else all(parts)
    match = re.fullmatch(
        r"(?P<name>.*?) (?:(?P<there>present|absent)|at least (?P<least>\S+)"
        r"|below (?P<most>[^ ,]+)(?P<other>, or no number)?|from (?P<from>\S+) to below (?P<to>\S+))",
        said,
    )  # fmt: skip
    if match is None or re.search(r" [−+/] |sum|largest|smallest|order of|one of|exactly|outcomes:", match["name"]):
        return None
    value = found(outcome, match["name"])
    if match["there"]:
        return (value is not ABSENT) == (match["there"] == "present")
    number = isinstance(value, int | float) and not math.isnan(value)
    if match["most"] and not number:
        return value is not ABSENT and bool(match["other"])
    ends = [
        float(text.replace("−", "-").replace("∞", "inf")) if text else end
        for text, end in ((match["least"] or match["from"], -math.inf), (match["most"] or match["to"], math.inf))
    ]
    return number and (ends[0] <= value < ends[1] or value == ends[1] == math.inf)


def floats(bound):
    """Numbers but for -0.0, and for the few whose rows are those of True, False and -0.0 (`events.encoding`)."""
    return st.floats(-bound, bound).map(lambda x: x + 0.0).filter(lambda x: x not in CODE_TEXTS)


scalars = st.one_of(floats(4), st.integers(-3, 3), st.sampled_from([None, math.nan, 0.1, 1e-9, math.inf]))
held = st.one_of(scalars, st.lists(floats(2), max_size=3))
names = st.sampled_from(["a", "b", "c", "flu", "cold"])
OUTCOMES = {
    "dicts": st.dictionaries(names, held, max_size=4),
    "nested": st.dictionaries(names, st.dictionaries(names, scalars, max_size=2), max_size=3),
    "series": st.dictionaries(names, floats(4), max_size=4).map(
        lambda items: pd.Series(list(items.values()), index=list(items), dtype=float)
    ),
    "ragged": st.lists(st.lists(floats(2), max_size=3), min_size=1, max_size=3),
    "sets": st.sets(names),
    "or None": st.one_of(st.none(), st.dictionaries(names, scalars, max_size=2)),
}


@pytest.mark.parametrize("kind", OUTCOMES)
@settings(max_examples=10)
@given(data=st.data())
def test_the_words_of_an_event_are_true_of_just_the_outcomes_in_it(kind, data):
    several = st.lists(OUTCOMES[kind], min_size=12, max_size=12)
    sides, later = (data.draw(several), data.draw(several)), (data.draw(several), data.draw(several))
    mechanism = returning([])
    seen(mechanism, [*sides[0], *sides[1]])
    x, y = np.split(laid(mechanism, [*sides[0], *sides[1]]), 2)
    no_numbers = set(np.flatnonzero(np.any((x < -1e308) | (y < -1e308), axis=0)).tolist())
    after = np.split(laid(mechanism, [*later[0], *later[1]]), 2)
    objective = GrowthAt(claim=dpw.PureDP(0.5))
    learned = [rated.event for rated in learn_events(x, y, objective, thorough=False, most=8)]
    single = [Interval(coordinate=c) for c in range(x.shape[1])]
    cuts = [Interval(coordinate=c, low=float(v)) for c in range(x.shape[1]) for v in x[:2, c] if abs(v) < 100]
    for event in [*learned, *single, *cuts, *(Outside(interval=event) for event in single)]:
        said = event.describe(
            Noun("value", mechanism.places, mixed=dict.fromkeys([*no_numbers, *range(300)], NO_NUMBER)), mechanism.label
        )
        for rows, outcomes in zip((x, y, *after), (*sides, *later), strict=True):
            told = [holds(said, outcome) for outcome in outcomes]
            if None not in told:
                assert event.contains(rows).tolist() == told, said


def test_a_row_follows_from_the_outcome_alone_where_nothing_has_columns_yet():
    """The first outcomes hold nothing, so that they say of no entry where it stands."""
    mechanism = returning([[], [{"a": 1.0}], [0.5], [0.5], [{"a": 1.0}], []])
    runs = PairedRuns(pair=PAIR, order=np.zeros(3, np.uint8), columns=Columns(), coupled=False)
    _, (x, y) = mechanism.pair_rows(runs, np.random.default_rng(0), 1)
    assert np.array_equal(x, y[::-1], equal_nan=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_wider_outcome_among_the_first_ones_ends_no_check(seed):
    def rarely_a_token(rng, data):
        token = {str(rng.integers(0, 1 << 60)): 1.0} if rng.random() < 0.02 else {}
        return {"count": rng.random()} | token

    limits = {"runs": 100, "search_runs": 64, "workers": 1, "seed": seed, "outcome": same}
    verdict = dpw.check(rarely_a_token, claim=1, neighbours=dpw.pairs(([0], [1])), **limits)
    assert isinstance(verdict, dpw.NotRefuted)


@pytest.mark.campaign
def test_counts_and_rows_are_those_of_one_process():
    """Each process sees other keys first."""
    mechanism, other = interpreted(elsewhere.tokens, PAIR), interpreted(elsewhere.tokens, PAIR)
    other.cost, other.shard = mechanism.cost, mechanism.shard  # measured: runs of a shard share a seed
    there, here = away(mechanism, Elsewhere(), seed=5), runner(other, 5)
    for turn in range(3):
        rows = [running.sample(PAIR, 200, Role.SEARCH, turn) for running in (there, here)]
        for a, b in zip(*rows, strict=True):
            assert np.array_equal(a, b, equal_nan=True)
        assert mechanism.layout == other.layout
    events = [Interval(coordinate=c) for c in range(5)]
    assert list(there.confirm(PAIR, events, 500)) == list(here.confirm(PAIR, events, 500))
    assert there.notes == ()


@pytest.mark.campaign
def test_keys_that_never_come_again_fill_no_memory_and_convict_nobody():
    def random_tokens(rng, data):
        return {str(token): 1.0 for token in rng.integers(0, 1 << 60, 3)} | {"count": rng.random()}

    mechanism = interpreted(random_tokens, PAIR)
    running = runner(mechanism, 3)
    for turn in range(3):
        x, y = running.sample(PAIR, 200, Role.SEARCH, turn)
    assert mechanism.layout.full
    assert x.shape[1] == y.shape[1] == MOST_COLUMNS + 2
    assert mechanism.places[MOST_COLUMNS] == "number of other entries"
    assert set(x[:, MOST_COLUMNS]) == {3.0}  # none of the last tokens has a coordinate
    # What the side that ran first showed takes no place from the other: both are laid out by what was there before.
    limits = {"runs": 300, "workers": 1, "seed": 1, "outcome": same}
    verdict = dpw.check(random_tokens, claim=0.1, neighbours=dpw.pairs(([0], [1])), **limits)
    assert isinstance(verdict, dpw.NotRefuted)


def histogram(rng, data):
    return {key: count + rng.laplace() for key, count in Counter(data).items()}


@pytest.fixture(scope="module")
def refuted():
    neighbours = [(["flu"], ["flu", "hiv"])]
    return dpw.check(histogram, claim=1.0, neighbours=neighbours, seed=1, workers=1, max_time=20)


def test_a_file_that_names_no_entries_is_not_replayed_on_outcomes_with_keys(refuted):
    """By position a dict had entries for its keys: dpwitness 0.2 wrote and reads such rows."""
    written = refuted.witness.to_json()
    del written["entries"]
    with pytest.raises(InvalidOutcome, match=r"hold no keys: dpwitness 0\.2 replays"):
        dpw.replay(dpw.Witness.from_json(written), histogram, seed=2, workers=1, runs=500)


def test_a_damaged_layout_is_refused(refuted):
    for entries in (3, [3], [{"name": "a", "at": 3, "part": 0}], [{"name": "a", "at": [["key"]], "part": 0}]):
        with pytest.raises(InvalidWitness, match=r"must be|lacks"):
            dpw.Witness.from_json({**refuted.witness.to_json(), "entries": entries})


def test_runs_that_count_give_no_columns():
    """A row by columns that the first of these runs gave would depend on that run: here all runs before were empty."""
    mechanism = returning([[]] * 8 + [[5.0], 5.0] * 40)
    mechanism.outcomes(PAIR.data, np.random.default_rng(0), 8)
    assert mechanism.columns == Columns()
    *_, (five,) = runner(mechanism).confirm(PAIR, [OutcomeSet([[5.0]])], 8)
    assert five.n00 == five.runs == 8
    x, y = runner(mechanism).sample(PAIR, 8, Role.SEARCH)  # after which there are columns
    assert {entry.name for entry in mechanism.columns.entries} == {"outcome", "value 1"}
    assert x.shape[1] == y.shape[1] == 2
