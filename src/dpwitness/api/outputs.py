"""Histograms of an event's statistic on D and on D′, for people, from runs that add no evidence."""

import math
import time
import warnings
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dpwitness.arrays import Floats, Integers, Rows
from dpwitness.candidate import Candidate
from dpwitness.checks import class_and_text
from dpwitness.errors import DPWitnessError
from dpwitness.events import Event, OutcomeSet, Statistic, outcomes_of, statistic_of, widen
from dpwitness.events.encoding import LEAST_NUMBER
from dpwitness.events.event import number_text
from dpwitness.machine import Deadline
from dpwitness.problem import Problem
from dpwitness.results.verdict import Outputs
from dpwitness.runs import Role, Runner

#: The number of bins of a histogram; an end of the event takes the place of the edge beside it.
HISTOGRAM_BINS: Final = 36
#: The largest number of most frequent values that a figure shows; more different numbers are drawn as a histogram.
FREQUENT_VALUES: Final = 16
#: The share of the numbers that a histogram leaves out at either end.
LEFT_OUT_SHARE: Final = 0.005
#: The number of further paired runs of a figure.
FIGURE_RUNS: Final = 1_000
#: The largest number of entries in the outcomes of a figure, both sides together: 16 MiB.
FIGURE_ENTRIES: Final = 1 << 21
#: The seconds that the runs of a figure may take in every check, even a short one.
FIGURE_SECONDS: Final = 0.05
#: The share of the seconds of the check so far that the runs of a figure may take.
FIGURE_SECONDS_SHARE: Final = 0.03
#: The least number of paired runs of a figure.
LEAST_FIGURE_RUNS: Final = 50


def drawn_outputs(problem: Problem, runner: Runner, candidate: Candidate) -> Outputs | None:
    """The distributions of the event's statistic in further runs; None if the runs would take too much of the time."""
    n = min(FIGURE_RUNS, FIGURE_ENTRIES // (2 * max(problem.mechanism.width, 1)))
    seconds = max(FIGURE_SECONDS, FIGURE_SECONDS_SHARE * runner.seconds)
    if not _of_one_value(candidate.event) or 2 * n * problem.mechanism.cost.seconds_per_run > seconds:
        return None
    late = replace(runner, deadline=Deadline(time.monotonic() + 2 * seconds))
    try:
        x, y = late.sample(candidate.pair, n, Role.OUTPUTS, coupled=candidate.coupled)
    except DPWitnessError:  # the verdict needs no figure
        return None
    return outputs_of(problem, candidate.event, x, y)


def outputs_of(problem: Problem, event: Event, x: Rows, y: Rows) -> Outputs | None:
    """The distributions of the event's statistic in outcomes `x` of D and `y` of D′, shapes (n, any width).

    None for few runs, or an event of several values.
    """
    width = max(x.shape[1], y.shape[1], event.width, 1)
    try:
        if len(x) < LEAST_FIGURE_RUNS or not _of_one_value(event):
            return None
        with np.errstate(all="ignore"):  # numbers near the largest float overflow
            return _outputs_of(problem, event, np.concatenate([widen(x, width), widen(y, width)]))
    except Exception as error:  # of another package's event: no verdict is lost to a figure
        message = f"the report has no histogram of outcomes: {event} raised {class_and_text(error)}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return None


def _of_one_value(event: Event) -> bool:
    """Whether an event is a set of whole outcomes or a range of one statistic, which one histogram shows."""
    return outcomes_of(event) is not None or statistic_of(event) is not None


def _outputs_of(problem: Problem, event: Event, rows: Rows) -> Outputs | None:
    statistic, noun, label = statistic_of(event), problem.noun, problem.mechanism.label
    values = rows if statistic is None else statistic.value(rows)
    known: dict[str, Any] = {}
    if statistic is not None and not math.isnan(statistic.low) and len(np.unique(_numbers(values))) > FREQUENT_VALUES:
        edges = _edges(statistic, values)
        if edges is None:
            return None
        middles = (edges[:-1] + edges[1:]) / 2
        inside = ((middles >= statistic.low) & (middles < statistic.high)) != statistic.outside
        bins = np.searchsorted(edges, values, side="right") - 1
        bins[~(values < edges[-1])] = -1
        known = {"edges": tuple(edges.tolist())}
    else:
        examples, bins = _most_frequent(values)
        if not len(examples):
            return None
        inside, shown = event.contains(rows[examples]), values[examples]
        if statistic is None:
            texts = [OutcomeSet(outcome[None]).texts(noun, label)[0] for outcome in shown]
        else:
            texts = [label(value) or number_text(value) for value in shown.tolist()]
        known = {"values": tuple(texts)}
    left, right = (np.bincount(one[one >= 0], minlength=len(inside)).tolist() for one in np.split(bins, 2))
    return Outputs(
        statistic="outcome" if statistic is None else statistic.describe(noun, label),
        inside=tuple(inside.tolist()),
        on_data=tuple(left),
        on_neighbour=tuple(right),
        runs=len(rows) // 2,
        **known,
    )


def _numbers(values: Floats) -> Floats:
    return values[(values >= LEAST_NUMBER) & (values < math.inf)]


def _edges(statistic: Statistic, values: Floats) -> Floats | None:
    """Edges of bins of one width, except at the ends of the event; None where the numbers have no width."""
    low, high = np.quantile(_numbers(values), [LEFT_OUT_SHARE, 1 - LEFT_OUT_SHARE])
    if not 0 < high - low < math.inf:
        return None
    ends = [end for end in (statistic.low, statistic.high) if 2 * low - high <= end <= 2 * high - low]
    grid = np.linspace(min([low, *ends]), max([high, *ends]), HISTOGRAM_BINS + 1)
    # No bin beside an end of the event is narrow, as a few runs would decide its height.
    inner = [edge for edge in grid[1:-1].tolist() if all(abs(edge - end) > (grid[1] - grid[0]) / 2 for end in ends)]
    return np.unique([grid[0], *inner, grid[-1], *ends])


def _most_frequent(values: Floats) -> tuple[Integers, Integers]:
    """Places of examples of the most frequent values, in rising order, and the bin of each value; −1: in no bin.

    If `values` has the shape (n,), absent values are in no bin; outcomes, shape (n, width), may have absent entries.
    """
    same = np.where(np.isnan(values), np.nan, values + 0.0)  # gives NaN and 0 one pattern of bits each
    _, first, places = np.unique(same.view(np.int64), axis=0, return_index=True, return_inverse=True)
    places = places.ravel()
    times = np.bincount(places)
    if values.ndim == 1:
        times[np.isnan(values[first])] = 0
    shown = np.argsort(-times, kind="stable")[:FREQUENT_VALUES]
    shown = shown[times[shown] > 0]
    shown = shown[np.lexsort(np.atleast_2d(values[first[shown]].T)[::-1])]
    bins = np.full(len(first), -1)
    bins[shown] = np.arange(len(shown))
    return first[shown], bins[places]
