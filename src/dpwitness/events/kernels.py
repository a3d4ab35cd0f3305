"""Compiled kernels of the search and of events. Importing this file imports numba: import it where a kernel is called.

The kernels take arrays and numbers only and check nothing; the events own shapes and types. All constants that they use
stand here: numba compiles anew when this file has changed, and looks at no other.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.jit import inlined, kernel

Rows = NDArray[np.float64]

#: The bits of an absent entry (NaN) in the hash of a row, the factor of the hash, and its power for the first entry.
ABSENT_BITS: Final = 0x7FF8000000000001
FACTOR: Final = 0xBF58476D1CE4E5B9
FIRST_POWER: Final = 0x9E3779B97F4A7C15
#: Edges that are counted one by one; of more, half are left out at a time before.
COUNTED_EDGES: Final = 128


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


@kernel
def fill_table(members: Rows, table: NDArray[np.int64]) -> None:
    """Enter different members in an open hash table, a power of two of places, −1 where free."""
    mask = np.uint64(len(table) - 1)
    for k in range(members.shape[0]):
        place = _word(members, k) & mask
        while table[place] >= 0:
            place = (place + np.uint64(1)) & mask
        table[place] = k


@kernel
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


@kernel
def fill_cells(values: NDArray[np.float64], edges: NDArray[np.float64], absent: int, cells: NDArray[np.int64]) -> None:
    """cells[i]: how many of the rising edges are values[i] at most; `absent` for NaN."""
    for i in range(len(values)):
        x = values[i]
        place = _edges_upto(edges, x)
        cells[i] = absent if x != x else place


@kernel
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


@kernel
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
