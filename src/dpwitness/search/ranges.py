"""Events by one entry for a portfolio: every interval between cuts at quantiles, and what lies outside it.

They are counted together, from how many runs lie in each cell between two cuts, and made one by one when asked for.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import LARGEST, Event, Interval, Outside, widen
from dpwitness.events.encoding import LEAST_NUMBER
from dpwitness.neighbours import Pair
from dpwitness.neighbours.pair import alike
from dpwitness.search.portfolio import Family

Floats = NDArray[np.float64]
Rows = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Cells of a column between cuts at quantiles of both sides together; 8 cost a tenth more runs, 24 gain nothing.
CELLS: Final = 16
#: Columns that are looked at: those in which the sides differ most.
COLUMNS: Final = 16
#: The part of the prior that columns share which the inputs move, where there are others too: of ten columns of which
#: one moves that saves a fifth of the runs.
MOVED: Final = 0.5
#: Of more columns only intervals that are open on one side, and equal tails: the prior thins out.
WIDE: Final = 4


def cuts_of(x: Rows, y: Rows) -> dict[int, Floats]:
    """Where to cut the columns that tell most, between different values, at quantiles of both sides together."""
    width = max(x.shape[1], y.shape[1])
    x, y = widen(x, width), widen(y, width)
    found: dict[int, tuple[float, Floats]] = {}
    for column in range(width):
        values = np.sort(np.concatenate([x[:, column], y[:, column]]))
        values = values[~np.isnan(values)]
        cuts = _cuts(values)
        absent = abs(int(np.isnan(x[:, column]).sum()) - int(np.isnan(y[:, column]).sum()))
        if len(cuts) or absent:
            sides = [np.searchsorted(np.sort(side[:, column]), cuts) for side in (x, y)]
            found[column] = float(max(np.abs(sides[0] - sides[1]).max(initial=0), absent)), cuts
    columns = sorted(found, key=lambda column: -found[column][0])[:COLUMNS]
    return {column: found[column][1] for column in sorted(columns)}


def _cuts(values: Floats) -> Floats:
    """Cuts between different values of a sorted column, in the middle; below and above values that are frequent."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, np.int64)
    if len(starts) < 2:
        return np.zeros(0)
    places = starts[1:]
    if len(starts) > CELLS:
        wanted = np.arange(1, CELLS) * len(values) // CELLS
        at = np.searchsorted(starts, wanted, side="right") - 1
        ends = np.append(starts, len(values))
        frequent = at[ends[at + 1] - ends[at] >= len(values) / CELLS] + 1
        kept = np.unique(np.concatenate([at, frequent]))
        places = starts[kept[(kept > 0) & (kept < len(starts))]]
    places = places[values[places] >= LEAST_NUMBER]  # what is no number has no order
    low, high = values[places - 1], values[places]
    with np.errstate(invalid="ignore", over="ignore"):
        middle = low + (high - low) / 2
    middle[(low < LEAST_NUMBER) & (high > LEAST_NUMBER)] = LEAST_NUMBER  # what is no number, and numbers
    return np.where((middle > low) & (middle <= high), middle, high)


def moved_entries(pair: Pair, width: int) -> frozenset[int]:
    """Where two inputs of as many values as an outcome has entries differ: there an answer about each value moves."""
    if not alike(pair) or pair.data.shape != (width,):
        return frozenset()
    return frozenset(np.flatnonzero(pair.data != pair.neighbour).tolist())


class Ranges(Sequence[Event]):
    """Every interval between the cuts of columns, and what lies outside it; an event is made when it is asked for."""

    def __init__(self, cuts: dict[int, Floats], moved: frozenset[int] = frozenset()) -> None:
        """`cuts`: of each column, rising; `moved`: columns whose prior is larger."""
        self._cuts = cuts
        self._made: dict[int, Event] = {}
        found = [(column, _kept_ranges(places, wide=len(cuts) > WIDE)) for column, places in cuts.items()]
        self._parts = [(column, first, last, outside) for column, (first, last, outside, _) in found]
        self._starts = np.cumsum([0, *(len(first) for _, first, _, _ in self._parts)])
        here = moved & cuts.keys()
        rest = 1 - MOVED if 0 < len(here) < len(cuts) else 1.0
        shares = [
            share * (rest / len(cuts) + (1 - rest) * (column in here) / max(len(here), 1))
            for column, (_, _, _, share) in found
        ]
        self.log_prior = np.log(np.concatenate([np.zeros(0), *shares]))

    def __len__(self) -> int:
        return int(self._starts[-1])

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        """The event of a number from 0."""
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        if index not in self._made:
            self._made[index] = self._event(index)
        return self._made[index]

    def _event(self, index: int) -> Event:
        part = int(np.searchsorted(self._starts, index, side="right")) - 1
        column, first, last, outside = self._parts[part]
        k = index - self._starts[part]
        starts, ends = _ends(self._cuts[column])
        inside = Interval(coordinate=column, low=float(starts[first[k]]), high=float(ends[last[k]]))
        return Outside(interval=inside) if outside[k] else inside

    def seen(self, x: Rows, y: Rows) -> Family:
        """All of them, as paired runs show them."""
        width = max(x.shape[1], y.shape[1], *(column + 1 for column in self._cuts), 1)
        x, y = widen(x, width), widen(y, width)
        cells = [np.zeros((4, 0))]
        for column, first, last, outside in self._parts:
            table = _together(x[:, column], y[:, column], self._cuts[column])
            total = table[-1, -1]
            hits, others = table[last, -1] - table[first, -1], table[-1, last] - table[-1, first]
            both = table[last, last] - table[first, last] - table[last, first] + table[first, first]
            hits, others, both = np.where(
                outside, [total - hits, total - others, total - hits - others + both], [hits, others, both]
            )
            cells.append(np.array([hits - both, both, others - both, total - hits - others + both], np.float64))
        return Family(events=self, cells=np.hstack(cells), log_prior=self.log_prior)


def _ends(cuts: Floats) -> tuple[Floats, Floats]:
    """Where each cell of a column starts, and where the one before it ends."""
    starts = np.concatenate([[-np.inf], cuts])
    return starts, np.concatenate([[-np.inf], np.minimum(cuts, LARGEST), [np.inf]])


def _kept_ranges(cuts: Floats, *, wide: bool) -> tuple[Whole, Whole, NDArray[np.bool_], Floats]:
    """Of each event between the cuts of a column: first cell, last cell, whether the outside; the share of the prior.

    Without intervals that would be empty: between the largest number and +inf.
    """
    first, last, outside, share = _all_ranges(len(cuts) + 1, wide)
    starts, ends = _ends(cuts)
    low, high = starts[first], ends[last]
    kept = (low < high) | ((low == np.inf) & (high == np.inf))
    return first[kept], last[kept], outside[kept], share[kept]


@lru_cache(maxsize=64)
def _all_ranges(cells: int, wide: bool) -> tuple[Whole, Whole, NDArray[np.bool_], Floats]:
    """As `_kept_ranges`, of so many cells.

    A third of the prior each: open on one side; central, and the tails of equal rank; all others.
    """
    first, last = np.triu_indices(cells)
    last = last + 1  # the first cell behind the range
    everything = (first == 0) & (last == cells)
    kind = np.where((first == 0) | (last == cells), 0, np.where(first == cells - last, 1, 2))
    two = (kind > 0) | everything  # the outside of a range that is open on one side is one, too
    kinds = np.bincount(kind, weights=1 + two, minlength=3) * [1, 1, not wide]
    share = np.divide(1 / np.count_nonzero(kinds), kinds, where=kinds > 0, out=np.zeros(3))[kind]
    outside = np.concatenate([np.zeros(len(first), np.bool_), np.ones(np.count_nonzero(two), np.bool_)])
    first, last, share = (np.concatenate([part, part[two]]) for part in (first, last, share))
    kept = share > 0
    return first[kept], last[kept], outside[kept], share[kept]


def _together(x: Floats, y: Floats, cuts: Floats) -> Whole:
    """How many runs lie in cells before a on D and before b on D′; shape (cells + 2, cells + 2), absent last."""
    n = len(cuts) + 2
    i, j = (np.where(np.isnan(side), n - 1, np.searchsorted(cuts, side, side="right")) for side in (x, y))
    table = np.zeros((n + 1, n + 1), np.int64)
    table[1:, 1:] = np.bincount(i * n + j, minlength=n * n).reshape(n, n)
    return table.cumsum(axis=0).cumsum(axis=1)
