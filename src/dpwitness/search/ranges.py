"""Ranges of one entry or statistic: the scan for the best range, and tables of all ranges in paired runs.

Cell k of a table holds the values from edge k − 1 (included) to edge k (excluded); one more cell holds the runs without
a value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.events import LARGEST_FLOAT, Interval
from dpwitness.events.counting import cells_between
from dpwitness.events.encoding import LEAST_NUMBER
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import SortedColumn, counted_columns


@lru_cache(maxsize=64)
def all_ranges(cells: int) -> tuple[Integers, Integers, Booleans]:
    """All ranges of `cells` cells: first cells, cells after the last, and whether the outside is meant; shapes (k,).

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
    return np.concatenate([[-np.inf], edges]), np.concatenate([[-np.inf], np.minimum(edges, LARGEST_FLOAT), [np.inf]])


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


#: Shares of the values of a column below which it is cut in the tails, which hold rare clear events.
CUT_TAIL_SHARES = np.array([1e-4, 3e-4, 1e-3, 3e-3, 0.01])
#: Shares of the values of a column at which it is cut.
FINE_SHARES = np.unique(np.concatenate([CUT_TAIL_SHARES, np.arange(1, 64) / 64, 1 - CUT_TAIL_SHARES]))
#: Shares of the values of a column at which it is cut in a quick look.
COARSE_SHARES = np.concatenate([[1e-3, 0.01], np.arange(1, 16) / 16, [0.99, 0.999]])
#: The largest number of different values of a column for which each value is a range of its own.
SINGLE_VALUES: Final = 64
#: The least share of the runs of an input that return one value for which that value is a range of its own.
ATOM_SHARE: Final = 1 / 64


@dataclass(frozen=True, slots=True)
class Best:
    """The best range of a column, its value by an objective, and whether D and D′ are exchanged."""

    value: float
    interval: Interval
    swapped: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Scan:
    """Ranges of one column, and the shares of the `runs` runs of D, of D′ and of both in each range; shapes (k,).

    `both` is None where outcomes are not paired by run; `single_values`: whether each value is one of the ranges.
    """

    coordinate: int = 0
    lows: Floats
    highs: Floats
    p: Floats
    q: Floats
    both: Floats | None
    runs: int
    single_values: bool

    def best(self, objective: Objective, standard_errors: float) -> Best:
        """The range of the largest value in either direction; values are lowered by `standard_errors`."""
        return best_of([self], objective, standard_errors)[0]

    def proposals(self, objective: Objective, errors: Sequence[float]) -> list[Best]:
        """The best range for each number of standard errors in `errors`, without repetitions of a range."""
        found = [self.best(objective, one) for one in errors]
        return list({(one.interval, one.swapped): one for one in found}.values())


def best_of(scans: Sequence[Scan], objective: Objective, standard_errors: float) -> list[Best]:
    """The best range of each of some scans of equally many runs, in the direction of the larger value."""
    if not scans:
        return []
    p, q = np.concatenate([one.p for one in scans]), np.concatenate([one.q for one in scans])
    both = None if scans[0].both is None else np.concatenate([one.both for one in scans if one.both is not None] * 2)
    values = objective(np.append(p, q), np.append(q, p), scans[0].runs, standard_errors, both)
    straight, swapped = np.split(values, 2)
    better = np.maximum(straight, swapped)
    found, start = [], 0
    for one in scans:
        if not len(one.lows):
            found.append(Best(-np.inf, Interval(coordinate=one.coordinate), False))
            continue
        k = int(better[start : start + len(one.lows)].argmax())
        interval = Interval(coordinate=one.coordinate, low=float(one.lows[k]), high=float(one.highs[k]))
        found.append(Best(float(better[start + k]), interval, bool(swapped[start + k] > straight[start + k])))
        start += len(one.lows)
    return found


def scan(
    both: Sequence[SortedColumn], shares: Floats, runs: int, paired: Sequence[Floats] = (), coordinate: int = 0
) -> Scan:
    """Count the ranges of a column below and above every cut, and from single values to the next value.

    `both`: the column of D and the column of D′. The cuts are all values if few differ, else the values at `shares` of
    the runs of each input; the single values are all values, else the frequent values among the cuts. `paired`: the
    values of D and of D′ in the same runs, NaN for no value, shape (2, runs). A range without the value +inf ends at
    the largest finite number, since the end +inf means no end.
    """
    present = [column for column in both if len(column.values)]
    values = _few_values(present)
    cuts = _cuts(present, shares) if values is None else values
    single = cuts[_frequent(both, cuts)] if values is None else cuts
    following = _following(present, single)
    # A single value without a value above it is the range above its cut.
    infinite = any(column.values[-1] == np.inf for column in present)
    proper = single < LARGEST_FLOAT if infinite else following < np.inf
    single, following = single[proper], np.minimum(following[proper], LARGEST_FLOAT)
    starts = cuts[(cuts >= LEAST_NUMBER) | (cuts < -LARGEST_FLOAT)]  # codes of texts have no order
    ends = np.clip(starts, -LARGEST_FLOAT, LARGEST_FLOAT)
    edges = np.unique(np.concatenate([starts[starts > -np.inf], ends, single, following]))
    # The cell above each start, behind each end, and from each single value to the following one.
    above, below, left, right = (np.searchsorted(edges, some, "right") for some in (starts, ends, single, following))
    infinity, end = np.full(len(starts), np.inf), len(edges) + 1
    lows, first = np.concatenate([-infinity, starts, single]), np.concatenate([0 * above, above, left])
    highs, last = np.concatenate([ends, infinity, following]), np.concatenate([below, 0 * above + end, right])
    if paired:
        x, y = (cells_between(edges, side, end) for side in paired)
        table = np.bincount(x * (end + 1) + y, minlength=(end + 1) ** 2).reshape(end + 1, end + 1)
        hits, others, shared = counts_of(table, first, last)
    else:
        places = (np.searchsorted(column.values, edges) for column in both)
        under = [np.concatenate([[0], c.cumulative[at], c.cumulative[-1:]]) for c, at in zip(both, places, strict=True)]
        (hits, others), shared = (runs_under[last] - runs_under[first] for runs_under in under), None
    return Scan(
        coordinate=coordinate,
        lows=lows,
        highs=highs,
        p=hits / runs,
        q=others / runs,
        both=None if shared is None else shared / runs,
        runs=runs,
        single_values=values is not None,
    )


def scan_of(values: Floats, times: Integers, shares: Floats, *, paired: bool) -> Scan:
    """The scan of the values of k outcomes, NaN for no value, whose counts under D and D′ have the shape (2, k).

    `paired`: whether the first half of the outcomes came under D and the others under D′ in the same runs.
    """
    (first,), (second,) = counted_columns(values[None], times)
    return scan((first, second), shares, int(times[0].sum()), np.split(values, 2) if paired else ())


def _few_values(columns: Sequence[SortedColumn]) -> Floats | None:
    """The different values of a column, sorted; None if there are more than `SINGLE_VALUES`."""
    different = [np.empty(0)]
    for values in (column.values for column in columns):
        some = values[:: max(len(values) // (2 * SINGLE_VALUES), 1)]  # in most cases these show that many values differ
        if np.count_nonzero(some[1:] != some[:-1]) >= SINGLE_VALUES:
            return None
        different.append(_without_repetitions(values))
    if max(map(len, different)) > SINGLE_VALUES:
        return None
    values = _without_repetitions(np.sort(np.concatenate(different)))
    return values if len(values) <= SINGLE_VALUES else None


def _without_repetitions(values: Floats) -> Floats:
    """Sorted values without repetitions."""
    first = np.empty(len(values), np.bool_)
    first[:1] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]


def _cuts(columns: Sequence[SortedColumn], shares: Floats) -> Floats:
    """The quantiles of a column of many values, rising."""
    # The least value is a cut too: it may be an atom that no share meets.
    spots = [column.values[:1] for column in columns]
    for values, cumulative in columns:
        spots.append(values[cumulative.searchsorted(shares * (cumulative[-1] - 1), "right") - 1])
    cuts = np.concatenate(spots)
    cuts.sort()
    cuts = _without_repetitions(cuts)
    if min(column.values[0] for column in columns) < LEAST_NUMBER:
        ends = [column.values.searchsorted([-LARGEST_FLOAT, LEAST_NUMBER]) for column in columns]
        if any(first < last for first, last in ends):
            cuts = np.union1d(cuts, [LEAST_NUMBER])  # between codes and numbers
    return cuts


def _frequent(columns: Sequence[SortedColumn], cuts: Floats) -> Booleans:
    """Whether each cut is a frequent value, unlike a quantile of a continuous column, whose counts differ by chance."""
    frequent = np.zeros(len(cuts), np.bool_)
    for values, cumulative in columns:
        first, last = (np.searchsorted(values, cuts, side) for side in ("left", "right"))
        frequent |= cumulative[last] - cumulative[first] >= max(ATOM_SHARE * cumulative[-1], 1)
    return frequent


def _following(columns: Sequence[SortedColumn], single: Floats) -> Floats:
    """The least value above each single value on D or on D′, ∞ if no value is larger; above a code, the next float."""
    following = np.full(len(single), np.inf)
    for column in columns:
        after = np.searchsorted(column.values, single, side="right")
        inside = after < len(column.values)
        following[inside] = np.minimum(following[inside], column.values[after[inside]])
    codes = (single < LEAST_NUMBER) & (single > -np.inf)
    following[codes] = np.nextafter(single[codes], np.inf)
    return following
