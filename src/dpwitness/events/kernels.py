"""Compiled kernels of the search and of events. Importing this file imports numba: import it where a kernel is called.

The kernels take arrays and numbers only and check nothing; the events own shapes and types. The kernels read no
constant of another file: numba compiles anew when this file has changed, and looks at no other.
"""

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.encoding import Rows
from dpwitness.jit import inlined, kernel


@inlined
def _word(rows: Rows, i: int) -> int:
    """A 64-bit hash of row i, the same for every NaN, and for 0 and −0."""
    factor, absent = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x7FF8000000000001)
    word, power = np.uint64(0), np.uint64(0x9E3779B97F4A7C15)
    for j in range(rows.shape[1]):
        x = rows[i, j]
        bits = absent if x != x else np.float64(x + 0.0).view(np.uint64)
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
    """The number of edges that are at most x; the edges rise.

    Up to 128 edges are counted one by one: a binary search has branches that nobody can predict and takes 40 ns among
    60 edges, counting 8 ns. Of more edges, half are left out at a time before.
    """
    place, left = 0, len(edges)
    while left > 128:
        half = left // 2
        if edges[place + half - 1] <= x:
            place += half
        left -= half
    rest = edges[place : place + left]
    for k in range(len(rest)):
        place += rest[k] <= x
    return place


@kernel
def fill_table(members: Rows, table: NDArray[np.int64]) -> None:
    """Enter distinct members in an open hash table of 2^k places; a free place holds −1."""
    mask = np.uint64(len(table) - 1)
    for k in range(members.shape[0]):
        place = _word(members, k) & mask
        while table[place] >= 0:
            place = (place + np.uint64(1)) & mask
        table[place] = k


@kernel
def places_in_set(rows: Rows, members: Rows, table: NDArray[np.int64], found: NDArray[np.int64]) -> None:
    """found[i]: the number of the member that equals row i, −1 where no member does; `fill_table` filled the table."""
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
    """cells[i]: the number of edges that are at most values[i], `absent` for NaN; the edges rise."""
    for i in range(len(values)):
        x = values[i]
        place = _edges_upto(edges, x)
        cells[i] = absent if x != x else place


@kernel
def additive_score(
    rows: Rows, coordinates: NDArray[np.int64], starts: NDArray[np.int64], edges: Rows, weights: Rows, scores: Rows
) -> None:
    """scores[i]: the sum over the coordinates of the weight of the bin that the entry falls into."""
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

    `hashes` and `numbers` are an open hash table of 2^k places, numbers −1 where free, kept between calls; it holds
    `distinct` outcomes. Returns the number of outcomes that it holds afterwards, or −1 if they outgrow `first`: the
    table is then of no more use. Two outcomes share a hash with probability 2^−64; search may live with that, evidence
    never sees it.
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
