"""Membership of outcomes in many events at once, counts of paired runs in events, and bins of numbers between edges."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.arrays import Booleans, Floats, Integers, Rows
from dpwitness.events.event import Event
from dpwitness.events.intervals import Interval, Outside


def rows_equal(rows: Rows, member: Rows) -> Booleans:
    """Whether each row equals `member`, a row of the same width; shape (n,)."""
    # Columns are compared one by one, on the rows that are equal so far: most rows differ from a member early.
    equal: Any = slice(None)
    hits = np.zeros(len(rows), np.bool_)
    for column, value in zip(rows.T, member.tolist(), strict=True):
        entries = column[equal]
        same = entries != entries if math.isnan(value) else entries == value
        equal = np.flatnonzero(same) if isinstance(equal, slice) else equal[same]
    hits[equal] = True
    return hits


def cells_between(edges: Floats, values: Floats, absent: int) -> Integers:
    """The bin of each value: the number of edges ≤ the value, or `absent` for NaN; shape (n,). The edges must rise."""
    cells = np.searchsorted(edges, values, side="right")
    cells[np.isnan(values)] = absent
    return cells


#: The number of entries that are hashed at a time, so that they stay in the processor's cache.
HASHED_ENTRIES: Final = 1 << 14


def row_hashes(rows: Rows) -> NDArray[np.uint64]:
    """A 64-bit hash of each row, the same for every NaN, and for 0 and −0; shape (n,)."""
    factor, shift = np.uint64(0xBF58476D1CE4E5B9), np.uint64(32)
    powers = np.cumprod(np.full(max(rows.shape[1], 1), np.uint64(0x9E3779B97F4A7C15)), dtype=np.uint64)[: rows.shape[1]]
    hashes = np.empty(len(rows), np.uint64)
    height = max(HASHED_ENTRIES // max(rows.shape[1], 1), 1)
    for start in range(0, len(rows), height):
        block = rows[start : start + height] + 0.0  # no negative zeros
        block[np.isnan(block)] = np.nan
        words = block.view(np.uint64)
        words ^= words >> shift
        words *= factor
        words ^= words >> shift
        hashes[start : start + height] = words @ powers
    return hashes


def cells_of(events: Sequence[Event], x: Rows, y: Rows) -> Integers:
    """The numbers of paired runs (rows i of x and y) with (D, D′) in each event as (1,0), (1,1), (0,1), (0,0).

    The result has the shape (4, events); `x` and `y` have the shapes (n, any width).
    """
    total = np.zeros((4, len(events)), np.int64)
    if not events:
        return total
    height = max((1 << 18) // len(events), 1)  # blocks of 2^18 flags: memory does not grow with the runs
    for start in range(0, len(x), height):
        a, b = (members_of(events, rows[start : start + height]) for rows in (x, y))
        both, in_x, in_y = (np.count_nonzero(flags, axis=1) for flags in (a & b, a, b))
        total += [in_x - both, both, in_y - both, a.shape[1] - in_x - in_y + both]
    return total


def members_of(events: Sequence[Event], rows: Rows) -> Booleans:
    """Whether each row lies in each event; shape (events, rows)."""
    members = np.empty((len(events), len(rows)), np.bool_)
    single: list[int] = []
    ends: list[tuple[int, float, float, bool]] = []
    for k, event in enumerate(events):
        # `isinstance` takes a microsecond for a subclass of a protocol, and there are thousands of events.
        interval = event.interval if type(event) is Outside else event
        if type(interval) is Interval:
            single.append(k)
            ends.append((interval.coordinate, interval.low, interval.high, interval is not event))
        else:
            members[k] = event.contains(rows)
    if single:
        columns, low, high, outside = (np.array(part)[:, None] for part in zip(*ends, strict=True))
        absent = np.full((len(rows), 1), np.nan)  # stands for every entry behind the end of its row
        values = np.hstack([rows, absent]).T[np.minimum(columns[:, 0], rows.shape[1])]
        # As in `Interval.contains`, intervals are half-open, but hold +inf if they end there. NaN compares false.
        members[single] = ((values >= low) & ((values < high) | (high == np.inf))) ^ outside
    return members
