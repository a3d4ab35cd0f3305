"""Outcomes counted in events: compiled kernels of membership, many events together, and events within each other.

The kernels take arrays and numbers only and check nothing; the events own shapes and types.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.checks import is_ours
from dpwitness.events.encoding import Rows
from dpwitness.events.event import LARGEST, Event, Partition, in_event, thresholds_of
from dpwitness.events.intervals import Interval, Outside
from dpwitness.jit import compiled_late, inlined

#: What rows are hashed by: NaN, the factor, and the power of it for the first entry.
ABSENT_BITS: Final = 0x7FF8000000000001
FACTOR: Final = 0xBF58476D1CE4E5B9
FIRST_POWER: Final = 0x9E3779B97F4A7C15


@inlined
def _word(rows: Rows, i: int) -> int:
    """A hash of row i; NaN is one value, and so is 0."""
    factor = np.uint64(FACTOR)
    word, power = np.uint64(0), np.uint64(FIRST_POWER)
    for j in range(rows.shape[1]):
        x = rows[i, j]
        bits = np.uint64(ABSENT_BITS) if x != x else np.float64(x + 0.0).view(np.uint64)
        mixed = (bits ^ (bits >> np.uint64(32))) * factor
        word += (mixed ^ (mixed >> np.uint64(32))) * power  # no column waits for the one before
        power *= factor
    return word ^ (word >> np.uint64(32))  # type: ignore[return-value]  # an integer to numba


@inlined
def _same(rows: Rows, i: int, members: Rows, k: int) -> bool:
    """Whether row i equals member k, NaN equal to NaN; without branches, which random outcomes make unpredictable."""
    different = 0
    for j in range(members.shape[1]):
        a, b = rows[i, j], members[k, j]
        different += (a != b) & ((a == a) | (b == b))
    return different == 0


# What a first process runs of the kernels as long as it is little: each takes 0.2 to 0.4 s to compile.
def _words(rows: Rows) -> NDArray[np.uint64]:
    """The hash of each row."""
    bits = np.where(np.isnan(rows), np.uint64(ABSENT_BITS), (rows + 0.0).view(np.uint64))
    mixed = (bits ^ (bits >> np.uint64(32))) * np.uint64(FACTOR)
    powers = [FIRST_POWER * pow(FACTOR, j, 1 << 64) % (1 << 64) for j in range(rows.shape[1])]
    words = ((mixed ^ (mixed >> np.uint64(32))) * np.array(powers, np.uint64)).sum(axis=1, dtype=np.uint64)
    hashed: NDArray[np.uint64] = words ^ (words >> np.uint64(32))
    return hashed


def equal_rows(rows: Rows, others: Rows) -> NDArray[np.bool_]:
    """Which rows are equal throughout, absent entries included; shape (n,)."""
    same: NDArray[np.bool_] = ((rows == others) | (np.isnan(rows) & np.isnan(others))).all(axis=1)
    return same


def _rows_equal(rows: Rows, members: Rows, k: int, hits: NDArray[np.bool_]) -> None:
    # Entry by entry, and of few rows these alone: most rows differ from a member early.
    left: Any = slice(None)
    hits[:] = False
    for column, value in zip(rows.T, members[k].tolist(), strict=True):
        entries = column[left]
        same = entries != entries if math.isnan(value) else entries == value
        left = np.flatnonzero(same) if isinstance(left, slice) else left[same]
    hits[left] = True


def _free(word: int, table: NDArray[np.int64]) -> int:
    """The place in an open hash table where a word that is not there belongs."""
    mask = len(table) - 1
    place = word & mask
    while table[place] >= 0:
        place = (place + 1) & mask
    return place


def _fill_table(members: Rows, table: NDArray[np.int64]) -> None:
    for k, word in enumerate(_words(members).tolist()):
        table[_free(word, table)] = k


def _places_in_set(rows: Rows, members: Rows, table: NDArray[np.int64], found: NDArray[np.int64]) -> None:
    words, known = _words(rows), _words(members)
    order = np.argsort(known)
    at = order[np.minimum(np.searchsorted(known, words, sorter=order), len(order) - 1)]
    alike = np.flatnonzero(known[at] == words)
    found[:] = -1
    equal = equal_rows(rows[alike], members[at[alike]])
    found[alike[equal]] = at[alike[equal]]
    for i in alike[~equal]:  # another member may have the same hash
        found[i] = next(iter(np.flatnonzero(equal_rows(members, rows[i]))), -1)


@compiled_late(_rows_equal)
def rows_equal(rows: Rows, members: Rows, k: int, hits: NDArray[np.bool_]) -> None:
    """hits[i]: whether row i equals member k, of the same width; 5 ns a row, looking it up in a table takes 25."""
    for i in range(rows.shape[0]):
        hits[i] = _same(rows, i, members, k)


@compiled_late(_fill_table)
def fill_table(members: Rows, table: NDArray[np.int64]) -> None:
    """Enter different members in an open hash table, a power of two of places, −1 where free."""
    mask = np.uint64(len(table) - 1)
    for k in range(members.shape[0]):
        place = _word(members, k) & mask
        while table[place] >= 0:
            place = (place + np.uint64(1)) & mask
        table[place] = k


@compiled_late(_places_in_set)
def places_in_set(rows: Rows, members: Rows, table: NDArray[np.int64], found: NDArray[np.int64]) -> None:
    """found[i]: which of the members, of the same width, that `fill_table` has entered equals row i; −1 if none."""
    mask = np.uint64(len(table) - 1)
    for i in range(rows.shape[0]):
        member = -1
        place = _word(rows, i) & mask
        while table[place] >= 0 and member < 0:
            if _same(rows, i, members, table[place]):
                member = table[place]
            place = (place + np.uint64(1)) & mask
        found[i] = member


#: Among so many edges those that are at most a value are counted.
COUNTED_EDGES: Final = 128


@inlined
def _edges_upto(edges: NDArray[np.float64], x: float) -> int:
    """How many of the rising edges are x at most.

    Few are counted, several at once: a search has branches that nobody can predict, 40 ns among 60 edges instead of 8.
    """
    place, left = 0, len(edges)
    while left > COUNTED_EDGES:
        half = left // 2
        if edges[place + half - 1] <= x:
            place += half
        left -= half
    few = edges[place : place + left]
    for k in range(len(few)):
        place += few[k] <= x
    return place


def _fill_cells(values: NDArray[np.float64], edges: NDArray[np.float64], absent: int, cells: NDArray[np.int64]) -> None:
    cells[:] = np.where(np.isnan(values), absent, np.searchsorted(edges, values, side="right"))


@compiled_late(_fill_cells)
def fill_cells(values: NDArray[np.float64], edges: NDArray[np.float64], absent: int, cells: NDArray[np.int64]) -> None:
    """cells[i]: how many of the rising edges are values[i] at most; `absent` for NaN."""
    for i in range(len(values)):
        x = values[i]
        place = _edges_upto(edges, x)
        cells[i] = absent if x != x else place


def cells_between(edges: NDArray[np.float64], values: NDArray[np.float64], absent: int) -> NDArray[np.int64]:
    """How many of the rising edges are each value at most, and `absent` for NaN; shape (n,)."""
    cells = np.empty(len(values), np.int64)
    fill_cells(values, edges, absent, cells)
    return cells


def _additive_score(
    rows: Rows, coordinates: NDArray[np.int64], starts: NDArray[np.int64], edges: Rows, weights: Rows, scores: Rows
) -> None:
    scores[:] = 0.0
    for c, coordinate in enumerate(coordinates.tolist()):
        low, high = starts[c : c + 2].tolist()
        bins = np.empty(len(rows), np.int64)
        _fill_cells(rows[:, coordinate], edges[low:high], high - low + 1, bins)
        scores += weights[low + 2 * c : high + 2 * c + 2][bins]


@compiled_late(_additive_score)
def additive_score(
    rows: Rows, coordinates: NDArray[np.int64], starts: NDArray[np.int64], edges: Rows, weights: Rows, scores: Rows
) -> None:
    """scores[i]: sum over the coordinates of the weight of the bin that the entry falls into."""
    scores[:] = 0.0
    for c in range(len(coordinates)):
        low, high = starts[c], starts[c + 1]
        own, absent = edges[low:high], high - low + 1
        part = weights[low + 2 * c : high + 2 * c + 2]  # each coordinate has two weights more than edges
        for i in range(rows.shape[0]):
            x = rows[i, coordinates[c]]
            place = _edges_upto(own, x)
            scores[i] += part[absent if x != x else place]


def _outcome_codes(
    rows: Rows,
    hashes: NDArray[np.uint64],
    numbers: NDArray[np.int64],
    codes: NDArray[np.int64],
    first: NDArray[np.int64],
    distinct: int,
) -> int:
    words, at, inverse = np.unique(_words(rows), return_index=True, return_inverse=True)
    taken = np.flatnonzero(numbers >= 0)
    taken = taken[np.argsort(hashes[taken])]
    known = np.isin(words, hashes[taken])
    new = np.flatnonzero(~known)
    new = new[np.argsort(at[new])]
    first[distinct : distinct + len(new)] = at[new[: len(first) - distinct]]
    if len(new) > len(first) - distinct:
        return -1
    own = np.empty(len(words), np.int64)
    own[known] = numbers[taken[np.searchsorted(hashes[taken], words[known])]]
    own[new] = distinct + np.arange(len(new))
    for word, number in zip(words[new].tolist(), own[new].tolist(), strict=True):
        place = _free(word, numbers)
        hashes[place], numbers[place] = word, number
    codes[:] = own[inverse]
    return distinct + len(new)


@compiled_late(_outcome_codes)
def outcome_codes(
    rows: Rows,
    hashes: NDArray[np.uint64],
    numbers: NDArray[np.int64],
    codes: NDArray[np.int64],
    first: NDArray[np.int64],
    distinct: int,
) -> int:
    """codes[i]: the number of row i's outcome, numbered by first appearance; first[k]: where outcome k appeared.

    `hashes` and `numbers` are an open hash table with a power of two of places, numbers −1 where free, kept between
    calls; `distinct` outcomes are in it. Returns how many there are now, or −1 if they outgrow `first`: the table is
    then of no more use. Two outcomes share a hash with probability 2^−64; search may live with that, evidence never
    sees it.
    """
    mask = np.uint64(len(hashes) - 1)
    for i in range(rows.shape[0]):
        word = _word(rows, i)
        place = word & mask
        while numbers[place] >= 0 and hashes[place] != word:
            place = (place + np.uint64(1)) & mask
        if numbers[place] < 0:
            if distinct >= len(first):
                return -1
            hashes[place], numbers[place] = word, distinct
            first[distinct] = i
            distinct += 1
        codes[i] = numbers[place]
    return distinct


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
            members[k] = in_event(event, rows)
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
    inside = in_event(event, rows)
    hits = int(np.count_nonzero(inside))
    for family in thresholds_of(event):
        values = family.value(rows)
        falling = -np.sort(-values[np.isfinite(values)])
        if not 0 < hits < len(falling) or np.any((values >= falling[hits - 1]) != inside):
            continue  # not one of these
        places = [round(factor * hits) for factor in factors if 0 < round(factor * hits) <= len(falling)]
        cuts = dict.fromkeys(float(falling[place - 1]) for place in places)
        events = [family.above(cut) for cut in cuts]
        # Ours are {value ≥ cut}; those of another package should be. At the largest number an interval has no end.
        known = is_ours(event) and all(abs(cut) < LARGEST for cut in cuts)
        members = [values >= cut for cut in cuts] if known else [in_event(one, rows) for one in events]
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
            cells += in_event(event, rows)
        return cells

    def _cells(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        return cells_between(np.array(self.cuts), values, 0)

    @override
    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        return in_event(self.events[-1], rows)
