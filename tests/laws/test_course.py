"""How a result came about: what was tried, how the evidence grew, both output distributions; and files from before."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, laplace

import dpwitness as dpw
from dpwitness.api.outputs import outputs_of
from dpwitness.claims import PureDP
from dpwitness.events import Interval, Outside
from dpwitness.events.event import Noun
from dpwitness.results.saved import result_from_json
from dpwitness.results.witness import Witness

EARLIER = Path(__file__).parents[1] / "data" / "0.1.0"
PAIR = dpw.pairs(([1, 1], [2, 1]))
EFFORT = {"runs": 20_000, "seed": 1, "neighbours": PAIR, "workers": 1}


def noisy_sum(rng, data, epsilon):
    return data.sum() + rng.laplace(0, 0.5 / epsilon)  # the defect: the scale should be 1 / epsilon


@pytest.fixture(scope="module")
def found():
    return dpw.check(noisy_sum, epsilon=1.0, **EFFORT)


def rounded(value):
    """A JSON value without the last digits of its numbers, in which processors differ, and without former keys."""
    if isinstance(value, dict):
        gone = ("detectable_epsilon_reason", "detectable_order", "trade_off")
        return {name: rounded(item) for name, item in value.items() if name not in gone}
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


#: As much of a problem as the distributions need: what entries are called, and no texts of numbers.
TOLD = SimpleNamespace(noun=Noun("answer"), mechanism=SimpleNamespace(label=lambda value: None))


def test_no_verdict_is_lost_to_an_event_that_fails_in_a_figure():
    class Failing(Outside):
        def statistic(self):
            return replace(super().statistic(), value=lambda rows: 1 / 0)

    x = np.zeros((100, 1))
    with pytest.warns(RuntimeWarning, match="no histogram of outcomes: .* raised ZeroDivisionError"):
        assert outputs_of(TOLD, Failing(interval=Interval(coordinate=0, low=1.0)), x, x) is None


GIVEN = {"statistic": "output", "values": ["0", "1"], "inside": [True, False], "on_data": [3, 4],
         "on_neighbour": [5, 2], "runs": 7}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [{"values": ["0"]}, {"inside": []}, {"runs": 6}, {"on_data": [-1, 4]}, {"edges": [0.0, 1.0, 2.0]}, {"runs": None},
     {"runs": 0, "on_data": [0, 0], "on_neighbour": [0, 0]},
     {"values": [], "edges": [1.0, 1.0, 2.0]}, {"on_neighbour": [5]}],
)  # fmt: skip
def test_damaged_distributions_are_refused(found, wrong):
    good = found.to_json()
    good["course"]["outputs"] = GIVEN
    assert result_from_json(good).course.outputs.values == ("0", "1")
    good["course"]["outputs"] = {**GIVEN, **wrong}
    with pytest.raises(dpw.InvalidWitness, match="damaged"):
        result_from_json(good)
