"""Intervals of one entry: which of many cuts of a column tells D from D′ best."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.events import LARGEST, Event, Interval
from dpwitness.events.encoding import LEAST_NUMBER
from dpwitness.search.learners.learner import Learner, Proposal
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, SortedColumn

Floats = NDArray[np.float64]

#: Where one-sided cuts are tried, as shares of the values seen: dense in the tails, where rare clear events live.
SHARES = np.concatenate([[1e-4, 3e-4, 1e-3, 3e-3, 0.01], np.arange(1, 64) / 64])
SHARES = np.unique(np.concatenate([SHARES, 1 - SHARES]))
COARSE = np.concatenate([[1e-3, 0.01], np.arange(1, 16) / 16, [0.99, 0.999]])
#: How many columns' best intervals are proposed.
COLUMNS = 3
#: Columns with at most this many different values are taken value by value.
FEW = 40
#: Of other columns, the values that at least this share of the runs of an input return.
ATOM = 1 / 64


@dataclass(frozen=True, slots=True)
class RankedInterval:
    """The best interval of a column, its value, and whether D′ plays D."""

    value: float
    interval: Interval
    swapped: bool


class Intervals(Learner):
    """The best interval of each of the best columns."""

    @override
    def propose(self, sample: Sample, objective: Objective, *, thorough: bool) -> Iterator[Proposal]:
        ranked = best_intervals(sample, objective, thorough=thorough)[:COLUMNS]
        if thorough:
            # The best of some hundred intervals is the luckiest; so also the best three standard errors lower.
            tried = [item.interval for item in ranked]
            lower = best_intervals(sample, objective, thorough=thorough, standard_errors=3.0)[:COLUMNS]
            ranked = ranked + [item for item in lower if item.interval not in tried]
        for item in ranked:
            yield Proposal(event=item.interval, swapped=item.swapped)


def best_intervals(
    sample: Sample, objective: Objective, *, thorough: bool, standard_errors: float = 1.0
) -> list[RankedInterval]:
    """The best interval of each column, best column first."""
    return _best(sample.once(_all_intervals, thorough), objective, sample.training_runs, standard_errors)


def intervals_within(sample: Sample, objective: Objective, event: Event) -> list[RankedInterval]:
    """The best interval of each column among the runs in an event, best column first; rates are of all runs."""
    return _best(_column_intervals(sample, event, SHARES), objective, sample.training_runs, 1.0)


@dataclass(frozen=True, slots=True)
class ColumnIntervals:
    """k intervals of one column, and the share of the runs of D and of D′ that fall into each; shapes (k,)."""

    coordinate: int
    lows: Floats
    highs: Floats
    p: Floats
    q: Floats


def _all_intervals(sample: Sample, thorough: bool) -> list[ColumnIntervals]:
    return _column_intervals(sample, None, SHARES if thorough else COARSE)


def _column_intervals(sample: Sample, event: Event | None, shares: Floats) -> list[ColumnIntervals]:
    """The intervals to try in each column, among the runs in an event.

    Below and above every cut, and single values: of a column of few different ones all of them, else the frequent ones.
    """
    found = []
    columns = sample.sorted_columns if event is None else sample.columns(event)
    for j, both in enumerate(zip(*columns, strict=True)):
        present = [column for column in both if len(column.values)]
        if not present:
            continue
        values = _few_values(present)
        cuts, atoms = _cuts(present, shares) if values is None else (values, values)
        ordered = (cuts >= LEAST_NUMBER) | (cuts < -LARGEST)  # codes of texts have no order
        lows, highs = _intervals(cuts[ordered], atoms, present)
        if not len(lows):
            continue
        p, q = (_runs_between(column, lows, highs) / sample.training_runs for column in both)
        found.append(ColumnIntervals(j, lows, highs, p, q))
    return found


def _few_values(columns: Sequence[SortedColumn]) -> Floats | None:
    """The different values of a column, sorted; None if there are more than `FEW`."""
    different = [column.values[np.append(True, column.values[1:] != column.values[:-1])] for column in columns]
    if max(len(values) for values in different) > FEW:
        return None
    values = np.unique(np.concatenate(different))
    return values if len(values) <= FEW else None


def _cuts(columns: Sequence[SortedColumn], shares: Floats) -> tuple[Floats, Floats]:
    """The quantiles of a column of many values, and those of them that are frequent values."""
    spots = [
        column.values[np.searchsorted(column.cumulative, shares * (column.cumulative[-1] - 1), side="right") - 1]
        for column in columns
    ]
    # The least too: it may be an atom that no share meets.
    cuts = np.unique(np.concatenate([*spots, *(column.values[:1] for column in columns)]))
    ends = [np.searchsorted(column.values, [-LARGEST, LEAST_NUMBER]) for column in columns]
    if any(first < last for first, last in ends):
        cuts = np.union1d(cuts, [LEAST_NUMBER])  # between what is no number, and numbers
    # A quantile of a continuous column is no atom: around it there is nothing but a sliver, and luck.
    frequent = [
        _runs_between(column, cuts, np.nextafter(cuts, np.inf)) >= ATOM * column.cumulative[-1] for column in columns
    ]
    return cuts, cuts[np.logical_or.reduce(frequent)]


def _intervals(cuts: Floats, atoms: Floats, columns: Sequence[SortedColumn]) -> tuple[Floats, Floats]:
    """Ends of the intervals below and above every cut, and from every atom to the next value; no interval is empty.

    The end +inf of an interval is no end at all: to leave the value +inf out, it ends at the largest finite number.
    """
    after = [
        np.append(column.values, np.inf)[np.searchsorted(column.values, atoms, side="right")] for column in columns
    ]
    following = np.minimum.reduce(after)
    # An atom with nothing above it is the interval above its cut.
    codes = (atoms < LEAST_NUMBER) & (atoms > -np.inf)
    following[codes] = np.nextafter(atoms[codes], np.inf)
    single = (following < np.inf) | any(column.values[-1] == np.inf for column in columns)
    lows = np.concatenate([np.full(len(cuts), -np.inf), cuts, atoms[single]])
    ends = np.clip(np.concatenate([cuts, following[single]]), -LARGEST, LARGEST)
    highs = np.concatenate([ends[: len(cuts)], np.full(len(cuts), np.inf), ends[len(cuts) :]])
    proper = (lows < highs) | (lows == np.inf) & (highs == np.inf)
    return lows[proper], highs[proper]


def _runs_between(column: SortedColumn, lows: Floats, highs: Floats) -> NDArray[np.int64]:
    """How many runs of an input lie in each of the intervals; shape (k,)."""
    before = np.searchsorted(column.values, lows)
    behind = np.where(highs == np.inf, len(column.values), np.searchsorted(column.values, highs))
    return np.asarray(column.cumulative[behind] - column.cumulative[before])


def _best(
    columns: Sequence[ColumnIntervals], objective: Objective, runs: int, standard_errors: float
) -> list[RankedInterval]:
    """The best interval of each column, in its better direction, best column first."""
    if not columns:
        return []
    p, q = np.concatenate([column.p for column in columns]), np.concatenate([column.q for column in columns])
    values = objective(np.concatenate([p, q]), np.concatenate([q, p]), runs, standard_errors)
    straight, swapped = np.split(values, 2)
    found = []
    start = 0
    for column in columns:
        here = slice(start, start + len(column.lows))
        start += len(column.lows)
        k = int(np.maximum(straight[here], swapped[here]).argmax())
        turned = bool(swapped[here][k] > straight[here][k])
        interval = Interval(coordinate=column.coordinate, low=float(column.lows[k]), high=float(column.highs[k]))
        found.append(RankedInterval(float(max(straight[here][k], swapped[here][k])), interval, turned))
    return sorted(found, key=lambda item: -item.value)
