"""Ranges of one statistic between rising edges, and their outsides, counted in paired runs by one table.

Cell k holds the values from edge k − 1 (included) to edge k (excluded); one more cell holds the runs without a value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.events import LARGEST
from dpwitness.events.counting import cells_between
from dpwitness.search.objectives import Objective


@lru_cache(maxsize=64)
def all_ranges(cells: int) -> tuple[Integers, Integers, Booleans]:
    """All ranges of `cells` cells: the first cell, the cell behind the last, whether its outside is meant; shapes (k,).

    The outside of a half-line is another half-line, and is left out. The outside of all cells holds the runs without a
    value.
    """
    first, last = np.triu_indices(cells)
    last = last + 1
    two = ((first > 0) & (last < cells)) | ((first == 0) & (last == cells))
    outside = np.concatenate([np.zeros(len(first), np.bool_), np.ones(np.count_nonzero(two), np.bool_)])
    return np.concatenate([first, first[two]]), np.concatenate([last, last[two]]), outside


def ends_of(edges: Floats) -> tuple[Floats, Floats]:
    """The lower end of each cell, and the upper end of the cell before it.

    +inf means no end, so a cell below an edge of +inf ends at the largest finite number.
    """
    return np.concatenate([[-np.inf], edges]), np.concatenate([[-np.inf], np.minimum(edges, LARGEST), [np.inf]])


def counts_of(
    table: Integers, first: Integers, last: Integers, outside: Booleans | None = None
) -> tuple[Integers, ...]:
    """The numbers of runs with D, with D′ and with both in each range; `table[i, j]`: runs with D in cell i, D′ in j.

    `outside`: whether the outside of each range is counted instead.
    """
    below = np.pad(table, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    hits, others = below[last, -1] - below[first, -1], below[-1, last] - below[-1, first]
    both = below[last, last] - below[first, last] - below[last, first] + below[first, first]
    if outside is None:
        return hits, others, both
    total = below[-1, -1]
    hits, others, both = np.where(
        outside, [total - hits, total - others, total - hits - others + both], [hits, others, both]
    )
    return hits, others, both


#: The largest number of different values of a statistic for which each value is a range of its own.
SINGLE_VALUES: Final = 64


@dataclass(frozen=True, slots=True)
class Best:
    """The best range of a statistic, its value by an objective, and whether D′ plays D."""

    value: float
    low: float
    high: float
    swapped: bool


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """Ranges of one statistic, and the shares of the runs of D, of D′ and of both in each; shapes (k,).

    `both` is None where outcomes are not paired by run; `few`: whether each value is one of the ranges.
    """

    lows: Floats
    highs: Floats
    p: Floats
    q: Floats
    both: Floats | None
    runs: int
    few: bool

    def best(self, objective: Objective, standard_errors: float) -> Best:
        """The range of the largest value in either direction; values are lowered by `standard_errors`."""
        if not len(self.lows):
            return Best(-np.inf, -np.inf, np.inf, False)
        p, q = np.concatenate([self.p, self.q]), np.concatenate([self.q, self.p])
        both = None if self.both is None else np.concatenate([self.both, self.both])
        values = objective(p, q, self.runs, standard_errors, both)
        swapped, k = divmod(int(values.argmax()), len(self.lows))
        return Best(float(values.max()), float(self.lows[k]), float(self.highs[k]), bool(swapped))

    def proposals(self, objective: Objective, errors: Sequence[float]) -> list[Best]:
        """The best range for each number of standard errors in `errors`; each range once."""
        found = [self.best(objective, one) for one in errors]
        return list({(one.low, one.high, one.swapped): one for one in found}.values())


def scan(values: Floats, times: Integers, shares: Floats, *, paired: bool) -> Scan:
    """Count the ranges with one end of the values of k outcomes, and each value where they are few.

    `values`: one of each outcome, NaN for no value; `times`: the counts of each outcome under D and D′, shape (2, k).
    `paired`: whether the first half of the outcomes came under D and the others under D′ in the same runs. `shares`:
    the shares of the runs at which many values are cut.
    """
    runs = int(times[0].sum())
    edges, few = _edges(values, times, shares)
    n = len(edges) + 2
    cells = cells_between(edges, values, n - 1)
    places = np.arange(1, n - 1)
    first, last = np.concatenate([0 * places, places]), np.concatenate([places, 0 * places + n - 1])
    if few:
        first, last = np.append(first, places), np.append(last, places + 1)
    if paired:
        i, j = np.split(cells, 2)
        table = np.bincount(i * n + j, minlength=n * n).reshape(n, n)
        hits, others, both = counts_of(table, first, last)
        p, q, shared = hits / runs, others / runs, both / runs
    else:
        below = [np.append(0, np.cumsum(np.bincount(cells, weights=side, minlength=n))) for side in times]
        p, q = ((side[last] - side[first]) / runs for side in below)
        shared = None
    starts, ends = ends_of(edges)
    return Scan(starts[first], ends[last], p, q, shared, runs, few)


def _edges(values: Floats, times: Integers, shares: Floats) -> tuple[Floats, bool]:
    """All values and True where they are few; else the values at some shares of the runs of each input, and False."""
    order = np.argsort(values)  # NaN goes last
    ranked = values[order[: np.count_nonzero(~np.isnan(values))]]
    different = ranked[np.append(True, ranked[1:] != ranked[:-1])] if len(ranked) else ranked
    if len(different) <= SINGLE_VALUES:
        return different, True
    spots = []
    for side in times:
        cumulative = np.cumsum(side[order[: len(ranked)]])
        if cumulative[-1]:
            spots.append(ranked[np.searchsorted(cumulative, shares * (cumulative[-1] - 1), side="right")])
    return np.unique(np.concatenate(spots)), False
