"""Compiled membership kernels: arrays and numbers only, no checks; `events` owns shapes and types."""

import numpy as np
from numpy.typing import NDArray

from dpwitness.jit import compiled, inlined

Rows = NDArray[np.float64]


@inlined
def _word(rows: Rows, i: int) -> int:
    """A hash of row i; NaN is one value, and so is 0."""
    factor = np.uint64(0xBF58476D1CE4E5B9)
    word, power = np.uint64(0), np.uint64(0x9E3779B97F4A7C15)
    for j in range(rows.shape[1]):
        x = rows[i, j]
        bits = np.uint64(0x7FF8000000000001) if x != x else np.float64(x + 0.0).view(np.uint64)
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


@compiled
def rows_equal(rows: Rows, members: Rows, k: int, hits: NDArray[np.bool_]) -> None:
    """hits[i]: whether row i equals member k, of the same width; 5 ns a row, looking it up in a table takes 25."""
    for i in range(rows.shape[0]):
        hits[i] = _same(rows, i, members, k)


@compiled
def fill_table(members: Rows, table: NDArray[np.int64]) -> None:
    """Enter different members in an open hash table, a power of two of places, −1 where free."""
    mask = np.uint64(len(table) - 1)
    for k in range(members.shape[0]):
        place = _word(members, k) & mask
        while table[place] >= 0:
            place = (place + np.uint64(1)) & mask
        table[place] = k


@compiled
def rows_in_set(rows: Rows, members: Rows, table: NDArray[np.int64], hits: NDArray[np.bool_]) -> None:
    """hits[i]: whether row i equals one of the members, of the same width, that `fill_table` has entered."""
    mask = np.uint64(len(table) - 1)
    for i in range(rows.shape[0]):
        found = False
        place = _word(rows, i) & mask
        while table[place] >= 0 and not found:
            found = _same(rows, i, members, table[place])
            place = (place + np.uint64(1)) & mask
        hits[i] = found


@compiled
def additive_score(
    rows: Rows, coordinates: NDArray[np.int64], starts: NDArray[np.int64], edges: Rows, weights: Rows, scores: Rows
) -> None:
    """scores[i]: sum over the coordinates of the weight of the bin that the entry falls into."""
    for i in range(rows.shape[0]):
        score = 0.0
        for c in range(len(coordinates)):
            x = rows[i, coordinates[c]]
            low, high = starts[c], starts[c + 1]
            offset = 2 * c  # each coordinate has two weights more than edges
            if x != x:
                score += weights[high + offset + 1]
                continue
            while low < high:
                middle = (low + high) // 2
                if edges[middle] <= x:
                    low = middle + 1
                else:
                    high = middle
            score += weights[low + offset]
        scores[i] = score


@compiled
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
    calls; `distinct` outcomes are in it. Returns how many there are now, or −1 if they outgrow `first`. Two outcomes
    share a hash with probability 2^−64; search may live with that, evidence never sees it.
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
