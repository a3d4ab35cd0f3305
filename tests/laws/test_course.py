"""How a result came about: what was tried, how the evidence grew, both output distributions; and files from before."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, laplace

import dpwitness as dpw
from dpwitness.api import outputs
from dpwitness.api.loop import MOST_POINTS, EvidenceCourse
from dpwitness.api.outputs import outputs_of
from dpwitness.claims import PureDP
from dpwitness.events import Box, Feature, FeatureEvent, Interval, OutcomeSet, Outside, ScoreThreshold
from dpwitness.events.encoding import FALSE, NEGATIVE_ZERO, TRUE
from dpwitness.events.event import Noun
from dpwitness.results.saved import result_from_json
from dpwitness.results.witness import Witness

EARLIER = Path(__file__).parents[1] / "data" / "0.1.0"
PAIR = dpw.pairs(([1, 1], [2, 1]))
EFFORT = {"runs": 20_000, "seed": 1, "neighbours": PAIR, "workers": 1}


def noisy_sum(rng, data, epsilon):
    return data.sum() + rng.laplace(0, 0.5 / epsilon)  # the defect: the scale should be 1 / epsilon


def violation():
    return dpw.check(noisy_sum, epsilon=1.0, **EFFORT)


@pytest.fixture(scope="module")
def found():
    return violation()


def rounded(value):
    """A JSON value without the last digits of its numbers: processors differ in them."""
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.13g}") if isinstance(value, float) else value


@pytest.mark.parametrize("file", sorted(EARLIER.glob("*.json")), ids=lambda file: file.stem)
def test_files_of_version_0_1_0_are_read_and_say_the_same(file):
    given = json.loads(file.read_text())
    result = Witness.load(file) if file.stem == "witness" else result_from_json(given)
    assert rounded(json.loads(json.dumps(result.to_json()))) == rounded(given)
    assert str(result)
    if file.stem != "witness":
        assert getattr(result, "course", None) is None
        assert "<svg" in result.to_html()


@pytest.mark.parametrize("looks", [1, 2, 63, 64, 65, 1_000, 4_096])
def test_a_course_is_thinned_while_it_grows_and_its_last_point_is_kept(looks):
    course = EvidenceCourse()
    for runs in range(1, looks + 1):
        course.add(runs, runs / 2)
    points = course.ending(looks, -1.0)
    assert len(points) <= MOST_POINTS
    assert len(points) >= min(looks, MOST_POINTS // 2)
    assert points[-1] == (looks, -1.0)
    assert all(log_e == runs / 2 for runs, log_e in points[:-1])
    gaps = np.diff([runs for runs, _ in points])
    assert (gaps > 0).all()
    assert len(set(gaps[:-1].tolist())) <= 1


@pytest.mark.campaign
@pytest.mark.parametrize("options", [{}, {"claim": PureDP(3)}, {"search_runs": 0}])
def test_the_course_of_a_check_ends_with_its_evidence_and_follows_from_the_seed(options):
    found, again = (dpw.check(noisy_sum, epsilon=1.0, **EFFORT, **options) for _ in range(2))
    course = found.course
    assert course.pairs == 1
    assert course.events >= 1
    assert course.evidence[-1] == (found.runs_made, found.log_e_value)
    if options:
        assert len(course.evidence) > 1
    assert (again.course, again.log_e_value, again.counts) == (course, found.log_e_value, found.counts)
    assert result_from_json(json.loads(json.dumps(found.to_json()))).course == course


@pytest.mark.campaign
def test_pairs_and_events_are_those_of_the_search():
    several = dpw.pairs(*(([1, 1], [1 + k, 1]) for k in (1, 2, 3)))
    found = dpw.check(noisy_sum, epsilon=1.0, claim=PureDP(6.5), **{**EFFORT, "neighbours": several})
    assert found.course.pairs >= 3
    assert found.course.events >= found.course.pairs
    in_epochs = dpw.check(noisy_sum, epsilon=1.0, search_runs=0, **{**EFFORT, "neighbours": several})
    assert in_epochs.course.pairs == 3
    bound = dpw.bound(noisy_sum, epsilon=1.0, **EFFORT)
    assert bound.course.pairs == 1
    assert bound.course.evidence == ()


@pytest.mark.campaign
def test_a_replay_searches_nothing_and_a_smaller_witness_keeps_what_was_tried(found):
    replayed = dpw.replay(found.witness, noisy_sum, seed=2, workers=1)
    assert (replayed.course.pairs, replayed.course.events) == (0, 0)
    assert replayed.course.outputs is not None
    small = dpw.shrink(found, noisy_sum, workers=1)
    assert small != found
    assert (small.course.pairs, small.course.events) == (found.course.pairs, found.course.events)
    assert small.course.evidence[-1][1] == small.log_e_value


def test_the_distributions_are_those_of_the_mechanism():
    found = dpw.check(noisy_sum, epsilon=1.0, claim=PureDP(3), **EFFORT)
    event, shown = found.witness.event, found.course.outputs
    edges = np.array(shown.edges)
    assert shown.statistic == "output"
    for data, counts in zip((found.witness.pair.data, found.witness.pair.neighbour),
                            (shown.on_data, shown.on_neighbour), strict=True):  # fmt: skip
        shares = np.diff(laplace.cdf(edges, sum(data), 0.5))
        for count, share in zip(counts, shares, strict=True):
            assert binom.ppf(1e-9, shown.runs, share) <= count <= binom.isf(1e-9, shown.runs, share)
    middles = (edges[:-1] + edges[1:]) / 2
    assert event.contains(middles[:, None]).tolist() == list(shown.inside)
    assert set(shown.inside) == {True, False}
    assert len(shown.inside) <= 40


class Told:
    """As much of a problem as the distributions need: texts of numbers, and what entries are called."""

    def __init__(self, noun="answer", **known):
        self.noun = Noun(noun, **known)
        self.mechanism = self

    def label(self, value):
        return None


def rows(*lists):
    width = max(map(len, lists))
    return np.array([[*one, *[np.nan] * (width - len(one))] for one in lists])


def test_outcomes_of_any_length_are_counted_as_wholes():
    x = rows(*[[FALSE, TRUE]] * 60, *[[TRUE]] * 40)
    y = rows(*[[FALSE, TRUE]] * 30, *[[TRUE]] * 50, *[[FALSE, FALSE]] * 20)
    shown = outputs_of(Told(), OutcomeSet([[FALSE, TRUE]]), x, y)
    assert shown.values == ("⊥⊥", "⊥⊤", "⊤")
    assert (shown.on_data, shown.on_neighbour) == ((0, 60, 40), (20, 30, 50))
    assert shown.inside == (False, True, False)
    x = np.repeat([0.0, 1.0, 2.0, np.nan], 25)[:, None], np.repeat([0.0, 1.0, 2.0, 3.0], 25)[:, None]
    shown = outputs_of(Told(single=True), Outside(interval=Interval(coordinate=0, low=1.0, high=3.0)), *x)
    assert (shown.values, shown.inside) == (("0", "1", "2", "3"), (True, False, False, True))
    assert (sum(shown.on_data), sum(shown.on_neighbour)) == (75, 100)  # absent ones are left out


HALF = Interval(coordinate=0, low=0.5)
ONE_OR_TWO = rows(*[[0, 1]] * 60, *[[1]] * 40)


def each(*values):
    return np.repeat(values, 50)[:, None]


@pytest.mark.parametrize(
    ("told", "event", "x", "values"),
    [
        (Told(flags=True), OutcomeSet([[1]]), ONE_OR_TWO, ("⊥⊤", "⊤")),
        (Told(single=True), HALF, each(FALSE, TRUE, 2.0, -0.5, NEGATIVE_ZERO), ("−0.5", "−0", "⊥", "⊤", "2")),
        (Told(single=True), HALF, each(0.1 + 0.2, 1 / 3, 2.0, -math.inf), ("−∞", "0.3", "0.3333", "2")),
        (Told(single=True), HALF, each(1 / 3, 0.33333), ("0.33333", "0.3333333333333333")),
        (Told(), ScoreThreshold([0], [[0.0]], [[-1.0, 1.0, 0.0]], -1.0), each(-0.5, 0.5), ("−1", "1")),
    ],
)
def test_values_are_said_so_that_they_can_be_told_apart(told, event, x, values):
    shown = outputs_of(told, event, x, x)
    assert shown.values == values
    held = [np.count_nonzero(event.contains(x)), sum(np.array(shown.on_data)[list(shown.inside)])]
    assert held[0] == held[1]


def test_dates_are_bins_of_their_own_and_edges_have_their_unit():
    event, told = Interval(coordinate=0, low=19_753.0), Told(single=True, dates={0: "D"})
    x = np.repeat([19_752.0, 19_753.0], 50)[:, None]
    for one in (event, Outside(interval=event)):
        assert outputs_of(told, one, x, x).values == ("2024-01-30", "2024-01-31")
    x = np.arange(19_700.0, 19_800.0)[:, None]
    drawn = outputs_of(told, event, x, x)
    assert (drawn.date_unit, drawn.edges[0]) == ("D", x.min())
    assert outputs_of(Told(single=True), event, x, x).date_unit is None


def test_histograms_have_edges_where_the_event_ends_and_say_nothing_of_tails():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 1_000, 2))
    x[0] = 1e300
    difference = Feature(name="difference", columns=(0, 1))
    event = FeatureEvent(feature=difference, within=Interval(coordinate=0, low=-1.0, high=1.001))
    shown = outputs_of(Told(), event, x, y)
    assert {-1.0, 1.001} <= set(shown.edges)
    assert shown.edges[-1] < 10
    held = sum(n for n, inside in zip(shown.on_data, shown.inside, strict=True) if inside)
    assert held == np.count_nonzero(event.contains(x))


def test_numbers_near_the_largest_one_and_infinite_ones_are_no_error():
    x = np.concatenate([1e307 * np.linspace(-17, 17, 98), [np.inf, -np.inf]])[:, None]
    assert outputs_of(Told(), HALF, x, x) is None  # no width can be written down
    x = np.concatenate([np.linspace(-1e307, 1e307, 98), [np.inf, -np.inf]])[:, None]
    shown = outputs_of(Told(), HALF, x, x)
    assert 0.5 in shown.edges
    assert sum(shown.on_data) >= 90
    several = Box((HALF, Interval(coordinate=1, low=0.0)))
    assert outputs_of(Told(), several, np.zeros((100, 2)), np.ones((100, 2))) is None  # no distribution of one value


def test_no_verdict_is_lost_to_an_event_that_fails_in_a_figure():
    class Failing(Outside):
        def statistic(self):
            return replace(super().statistic(), value=lambda rows: 1 / 0)

    x = np.zeros((100, 1))
    with pytest.warns(RuntimeWarning, match="no histogram of outcomes: .* raised ZeroDivisionError"):
        assert outputs_of(Told(), Failing(interval=Interval(coordinate=0, low=1.0)), x, x) is None


def test_no_runs_are_made_for_a_figure_that_take_more_than_their_share_of_the_time(found, monkeypatch):
    monkeypatch.setattr(outputs, "FIGURE_SECONDS", 0.0)
    monkeypatch.setattr(outputs, "FIGURE_SECONDS_SHARE", 0.0)
    without = violation()
    assert found.course.outputs is not None
    assert without.course == replace(found.course, outputs=None)
    assert (without.counts, without.log_e_value, without.seed) == (found.counts, found.log_e_value, found.seed)


GIVEN = {"statistic": "output", "values": ["0", "1"], "inside": [True, False], "on_data": [3, 4],
         "on_neighbour": [5, 2], "runs": 7}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [{"values": ["0"]}, {"inside": []}, {"runs": 6}, {"on_data": [-1, 4]}, {"edges": [0.0, 1.0, 2.0]}, {"runs": None},
     {"runs": 0, "on_data": [0, 0], "on_neighbour": [0, 0]},
     {"values": [], "edges": [1.0, 1.0, 2.0]}, {"on_neighbour": [5]},
     *({"date_unit": unit} for unit in ("", "x", "s s", "0D", "generic", "9" * 20 + "D", 5))],
)  # fmt: skip
def test_damaged_distributions_are_refused(found, wrong):
    good = found.to_json()
    good["course"]["outputs"] = GIVEN
    assert result_from_json(good).course.outputs.values == ("0", "1")
    good["course"]["outputs"] = {**GIVEN, **wrong}
    with pytest.raises(dpw.InvalidWitness, match="damaged"):
        result_from_json(good)
