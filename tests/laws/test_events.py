import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpwitness.errors import InvalidWitness
from dpwitness.events import (
    LARGEST_FLOAT,
    Box,
    Feature,
    FeatureEvent,
    Interval,
    OutcomeSet,
    cells_of,
    event_from_json,
    of_one_width,
    statistic_of,
)  # fmt: skip
from dpwitness.events.counting import members_of
from dpwitness.events.encoding import FALSE, TRUE
from dpwitness.runs.shards import tally_of_rows
from dpwitness.search.cuts import CutCells
from drawn import EVENTS, intervals, real_rows, rows, scores
from reference import in_set


@given(rows, rows)
def test_outcome_sets_compare_whole_rows(members, outcomes):
    expected = [in_set(row, members) for row in outcomes]
    assert OutcomeSet(members).contains(outcomes).tolist() == expected


def test_flags_in_outcomes_are_no_numbers():
    event = OutcomeSet([[True, False]])
    assert event.contains(np.array([[TRUE, FALSE], [1.0, 0.0]])).tolist() == [True, False]
    assert event.to_json()["rows"] == [[True, False]]


@example(Interval(coordinate=0, low=0.0, high=1.0), np.array([[0.0], [1.0]]))
@given(intervals, st.one_of(rows, real_rows))
def test_intervals_are_half_open_and_absent_entries_lie_outside(interval, outcomes):
    def inside(row):
        if interval.coordinate >= len(row) or np.isnan(row[interval.coordinate]):
            return False
        entry = row[interval.coordinate]
        return entry >= interval.low and (entry < interval.high or interval.high == np.inf)

    assert interval.contains(outcomes).tolist() == [inside(row) for row in outcomes]


@pytest.mark.parametrize(("end", "interval"), [(np.inf, {"low": np.inf}), (-np.inf, {"high": -LARGEST_FLOAT})])
def test_an_interval_may_be_one_infinity(end, interval):
    """[inf, inf) was refused as empty, so that a mechanism which returns infinities could not be tested."""
    event = Interval(coordinate=0, **interval)
    column = np.array([[-np.inf], [-LARGEST_FLOAT], [0.0], [LARGEST_FLOAT], [np.inf], [np.nan]])
    assert event.contains(column).tolist() == (column[:, 0] == end).tolist()
    assert event.describe("answer") == f"first answer {'−' if end < 0 else ''}∞"


@pytest.mark.campaign
@given(scores(), st.one_of(rows, real_rows))
def test_scores_add_one_weight_an_entry(event, outcomes):
    def score(row):
        total = 0.0
        for c, edges, weights in zip(event.coordinates, event.edges, event.weights, strict=True):
            x = row[c] if c < len(row) else np.nan
            total += weights[-1] if np.isnan(x) else weights[sum(edge <= x for edge in edges)]
        return total

    assert event.score(outcomes) == pytest.approx([score(row) for row in outcomes], abs=1e-12)
    assert event.contains(outcomes).tolist() == (event.score(outcomes) > event.threshold).tolist()


@pytest.mark.parametrize("kind", EVENTS)
@settings(max_examples=50)
@given(st.data(), st.one_of(rows, real_rows))
def test_events_of_every_kind_keep_the_laws(kind, data, outcomes):
    """They come back from files, look at the entries of their width alone, and have parts that are simpler."""
    event = data.draw(EVENTS[kind])
    inside = event.contains(outcomes)
    again = event_from_json(json.loads(json.dumps(event.to_json(), allow_nan=False)))
    assert again.to_json() == event.to_json()
    assert np.array_equal(again.contains(outcomes), inside)
    wider = np.hstack([outcomes, np.full((len(outcomes), 2), np.nan)])
    assert np.array_equal(event.contains(wider), inside)
    if kind != "outcomes":  # which are whole rows
        assert np.array_equal(event.contains(outcomes[:, : max(event.width, 1)]), inside)
    assert event.describe()
    assert all(part.complexity < event.complexity for part in event.simpler())
    for rounded in event.rounded():
        assert rounded.to_json() != event.to_json()
        assert rounded.complexity <= event.complexity
        assert rounded.width == event.width


HALF = Interval(coordinate=0, low=0.5)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (OutcomeSet([[0, 1], [1]]), "one of 2 outcomes: (0, 1), 1"),
        (OutcomeSet([[np.nan]]), "answer nothing"),
        (OutcomeSet([[0.0, 2.5, np.nan]]), "answers (0, 2.5)"),
        (Interval(coordinate=0, high=-0.512345), "first answer below −0.512345"),
        (Interval(coordinate=11, low=0, high=1), "answer 12 from 0 to below 1"),
        (Interval(coordinate=0, low=0.25, high=np.nextafter(0.25, 1)), "first answer equal to 0.25"),
        (Interval(coordinate=1), "second answer present"),
        (Box((HALF, Interval(coordinate=1, high=0))), "first answer at least 0.5 and second answer below 0"),
    ],
)
def test_events_in_plain_english(event, text):
    assert event.describe("answer") == text


def interval(low, high, coordinate=0):
    return {"kind": "interval", "coordinate": coordinate, "low": low, "high": high}


def score(edges, weights):
    return {"kind": "score", "coordinates": [0], "edges": [edges], "weights": [weights], "threshold": 0}


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (3, "object"), ({"kind": "pickle"}, "'pickle' is unknown"), (interval(0, 1, coordinate=-1), "damaged"),
        (interval(1, 1), "low < high"), (interval("0", 1), "finite number"), (interval("inf", 1), "low < high"),
        (interval(0, "-inf"), "finite number"), (interval(["inf"], None), "finite number"),
        (interval(10**400, None), "damaged"), ({"kind": "box", "sides": []}, "at least one side"),
        ({"kind": "outcomes", "rows": []}, "at least one outcome"), ({"kind": "outcomes"}, "damaged"),
        (score(["inf"] * 2, [0] * 4), "edges"), (score([1, 1], [0] * 4), "edges"), (score([1], [0]), "edges"),
        *(({"kind": "outside", "interval": inner}, "'outside' is damaged") for inner in (
            None, 3, [], {}, {"kind": "outside", "interval": {}}, {"kind": "interval"})),
    ],
)  # fmt: skip
def test_damaged_events_are_refused(value, named):
    with pytest.raises(InvalidWitness, match=named):
        event_from_json(value)


@given(EVENTS["outside"], st.one_of(rows, real_rows))
def test_the_outside_of_an_interval_is_all_else_absent_entries_too(event, outcomes):
    inside = event.interval.contains(outcomes)
    assert event.contains(outcomes).tolist() == [not flag for flag in inside]
    for simpler in event.simpler():
        assert not np.any(simpler.contains(outcomes) & inside)
    assert event.complexity == (1, event.interval.complexity[1])
    said = event.interval.describe()
    assert event.describe() == (f"not: {said}" if not said.endswith(" present") else said.replace("present", "absent"))


@given(st.lists(st.one_of(intervals, EVENTS["outside"]), min_size=1), real_rows)
def test_many_intervals_hold_what_each_one_does(events, outcomes):
    found = members_of(events, outcomes)
    assert [flags.tolist() for flags in found] == [event.contains(outcomes).tolist() for event in events]


FEATURE = FeatureEvent(feature=Feature(name="difference", columns=(0, 1)), within=Interval(coordinate=0, low=0.0))


@given(st.one_of(intervals, scores(), st.just(FEATURE)), real_rows, st.sets(st.floats(-3, 3), min_size=1, max_size=4))
def test_one_table_counts_all_half_lines_of_a_statistic(event, rows, edges):
    x, y = of_one_width(rows, rows[::-1], event.width)
    cuts = CutCells(event, statistic_of(event), np.array(sorted(edges)))
    expected = cells_of(cuts.half_lines(), x, y)
    assert np.array_equal(cuts.four_cells(tally_of_rows(cuts, x, y)), expected.T)
