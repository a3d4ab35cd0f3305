"""Compiled kernels of the search and of events. Importing this file imports numba: import it where a kernel is called.

The kernels take arrays and numbers only and check nothing; the events own shapes and types. The kernels read no
constant of another file, because numba's cache notices a change of this file only.
"""

import numpy as np
from numpy.typing import NDArray

from dpwitness.arrays import Floats, Integers, Rows
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
        word += (mixed ^ (mixed >> np.uint64(32))) * power  # a sum: no column waits for the column before it
        power *= factor
    return word ^ (word >> np.uint64(32))  # type: ignore[return-value]  # an integer to numba


@inlined
def _same(rows: Rows, i: int, members: Rows, k: int) -> bool:
    """Whether row i equals member k, with NaN = NaN; no branches, as random outcomes make them unpredictable."""
    different = 0
    for j in range(members.shape[1]):
        a, b = rows[i, j], members[k, j]
        different += (a != b) & ((a == a) | (b == b))
    return different == 0


@inlined
def _edges_upto(edges: Floats, x: float) -> int:
    """The number of edges ≤ x; the edges must rise.

    Bisection leaves at most 128 edges, which are counted one by one: among 60 edges counting takes 8 ns, bisection
    with its unpredictable branches 40 ns.
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
def fill_table(members: Rows, table: Integers) -> None:
    """Enter distinct members in an open hash table of 2^k places; a free place holds −1."""
    mask = np.uint64(len(table) - 1)
    for k in range(members.shape[0]):
        place = _word(members, k) & mask
        while table[place] >= 0:
            place = (place + np.uint64(1)) & mask
        table[place] = k


@kernel
def places_in_set(rows: Rows, members: Rows, table: Integers, found: Integers) -> None:
    """Set found[i] to the number of the member that equals row i, else −1; `fill_table` fills `table`."""
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
def fill_cells(values: Floats, edges: Floats, absent: int, cells: Integers) -> None:
    """cells[i]: the number of edges ≤ values[i], `absent` for NaN; the edges must rise."""
    for i in range(len(values)):
        x = values[i]
        place = _edges_upto(edges, x)
        cells[i] = absent if x != x else place


@kernel
def additive_score(
    rows: Rows, coordinates: Integers, starts: Integers, edges: Floats, weights: Floats, scores: Floats
) -> None:
    """Set scores[i] to the sum over the coordinates of the weight of the bin that holds row i's entry."""
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
    numbers: Integers,
    codes: Integers,
    first: Integers,
    distinct: int,
) -> int:
    """codes[i]: the number of row i's outcome, numbered by first appearance; first[k]: where outcome k appeared.

    `hashes` and `numbers` (−1 for a free place) are an open hash table of 2^k places that is kept between calls and
    holds `distinct` outcomes. Returns the number of outcomes afterwards, or −1 if they outgrow `first`: the table is
    then useless. Two outcomes share a hash with probability 2^−64: search tolerates it, evidence uses no codes.
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
