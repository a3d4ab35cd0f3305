"""Outcomes counted in events: many events together, and events within each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.events.encoding import Rows
from dpwitness.events.event import LARGEST, Event, Partition, thresholds_of
from dpwitness.events.intervals import Interval, Outside


def equal_rows(rows: Rows, others: Rows) -> NDArray[np.bool_]:
    """Which rows are equal throughout, absent entries included; shape (n,)."""
    same: NDArray[np.bool_] = ((rows == others) | (np.isnan(rows) & np.isnan(others))).all(axis=1)
    return same


def rows_equal(rows: Rows, member: Rows) -> NDArray[np.bool_]:
    """Which rows equal one member of the same width; shape (n,)."""
    # Entry by entry, and of few rows these alone: most rows differ from a member early.
    left: Any = slice(None)
    hits = np.zeros(len(rows), np.bool_)
    for column, value in zip(rows.T, member.tolist(), strict=True):
        entries = column[left]
        same = entries != entries if math.isnan(value) else entries == value
        left = np.flatnonzero(same) if isinstance(left, slice) else left[same]
    hits[left] = True
    return hits


def cells_between(edges: NDArray[np.float64], values: NDArray[np.float64], absent: int) -> NDArray[np.int64]:
    """How many of the rising edges are each value at most, and `absent` for NaN; shape (n,)."""
    cells = np.empty(len(values), np.int64)
    from dpwitness.events.kernels import fill_cells  # numba takes half a second to import

    fill_cells(values, edges, absent, cells)
    return cells


#: Numbers that are compared at once; the memory of a count does not grow with the runs.
BLOCK: Final = 1 << 18


def cells_of(events: Sequence[Event], x: Rows, y: Rows) -> NDArray[np.int64]:
    """How many paired runs had (D in the event, D′ in it) = (1,0), (1,1), (0,1), (0,0): shape (4, events).

    `x` and `y` have the shapes (n, any width): row i of both is one paired run.
    """
    total = np.zeros((4, len(events)), np.int64)
    if not events:
        return total
    height = max(BLOCK // len(events), 1)
    for start in range(0, len(x), height):
        a, b = (members_of(events, rows[start : start + height]) for rows in (x, y))
        both, hits, others = (np.count_nonzero(flags, axis=1) for flags in (a & b, a, b))
        total += [hits - both, both, others - both, a.shape[1] - hits - others + both]
    return total


def members_of(events: Sequence[Event], rows: Rows) -> NDArray[np.bool_]:
    """Whether each row lies in each event; shape (events, rows)."""
    members = np.empty((len(events), len(rows)), np.bool_)
    single: list[int] = []
    ends: list[tuple[int, float, float, bool]] = []
    for k, event in enumerate(events):
        # By type: `isinstance` takes a microsecond for a class with a protocol, and there are thousands of events.
        interval = event.interval if type(event) is Outside else event
        if type(interval) is Interval:
            single.append(k)
            ends.append((interval.coordinate, interval.low, interval.high, interval is not event))
        else:
            members[k] = event.contains(rows)
    if single:
        columns, low, high, outside = (np.array(part)[:, None] for part in zip(*ends, strict=True))
        absent = np.full((len(rows), 1), np.nan)  # what an entry behind the row is
        values = np.hstack([rows, absent]).T[np.minimum(columns[:, 0], rows.shape[1])]
        # As `Interval.contains`: half-open, and an end of +inf is no end. NaN compares false.
        members[single] = ((values >= low) & ((values < high) | (high == np.inf))) ^ outside
    return members


def around(event: Event, rows: Rows, factors: Sequence[float]) -> list[Event]:
    """Events like this one that hold so many times as many of the rows, each within the next; `factors` rise.

    Fewer, perhaps none, where values repeat or are too few; none where it is none of nested events (`thresholds_of`).
    """
    return [event for event, _ in _around(event, rows, factors)]


def _around(event: Event, rows: Rows, factors: Sequence[float]) -> list[tuple[Event, NDArray[np.bool_]]]:
    """The events `around` one, and which of the rows lie in each; shape (n,)."""
    inside = event.contains(rows)
    hits = int(np.count_nonzero(inside))
    for family in thresholds_of(event):
        values = family.value(rows)
        falling = -np.sort(-values[np.isfinite(values)])
        if not 0 < hits < len(falling) or np.any((values >= falling[hits - 1]) != inside):
            continue  # not one of these
        places = [round(factor * hits) for factor in factors if 0 < round(factor * hits) <= len(falling)]
        cuts = dict.fromkeys(float(falling[place - 1]) for place in places)
        events = [family.above(cut) for cut in cuts]
        # Each is {value ≥ cut}, but that at the largest number an interval has no end.
        known = all(abs(cut) < LARGEST for cut in cuts)
        members = [values >= cut for cut in cuts] if known else [one.contains(rows) for one in events]
        return list(zip(events, members, strict=True))
    return []


@dataclass(frozen=True, slots=True)
class Nested(Partition):
    """Several events, each within the next, as the partition that they make; it is counted and never written.

    Cell j holds the outcomes that lie in j of them.
    """

    events: tuple[Event, ...]
    #: Of which of the families of the largest event (`thresholds_of`) they are, and their cuts, which rise; if known.
    family: int = 0
    cuts: tuple[float, ...] = ()

    @classmethod
    def around(cls, event: Event, rows: Rows, factors: Sequence[float]) -> "Nested":
        """The events `around` one, with their cuts: one value of an outcome then tells in how many of them it lies."""
        found = _around(event, rows, factors)
        slow, members = cls(tuple(one for one, _ in found)), [inside for _, inside in found]
        cells = np.sum(members, axis=0)
        for number, family in enumerate(thresholds_of(slow.events[-1]) if slow.events else ()):
            values = family.value(rows)
            smallest = [float(np.min(values[inside], initial=np.inf)) for inside in members]
            fast = cls(slow.events, number, tuple(smallest[::-1]))
            if np.all(np.isfinite(smallest)) and np.array_equal(fast._cells(values), cells):
                return fast
        return slow

    @property
    @override
    def cells(self) -> int:
        return len(self.events) + 1

    @property
    def inside(self) -> NDArray[np.bool_]:
        """The cells of the largest event."""
        return np.arange(self.cells) > 0

    @property
    @override
    def width(self) -> int:
        return max(event.width for event in self.events)

    @override
    def cell_of(self, rows: Rows) -> NDArray[np.int64]:
        if self.cuts:
            return self._cells(thresholds_of(self.events[-1])[self.family].value(rows))
        cells = np.zeros(len(rows), np.int64)
        for event in self.events:
            cells += event.contains(rows)
        return cells

    def _cells(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        return cells_between(np.array(self.cuts), values, 0)

    @override
    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        return self.events[-1].contains(rows)
