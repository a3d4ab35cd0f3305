"""Compiled membership kernels: arrays and numbers only, no checks; `events` owns shapes and types."""

import numpy as np
from numpy.typing import NDArray

from dpwitness.jit import compiled

Rows = NDArray[np.float64]


@compiled
def rows_in_set(rows: Rows, members: Rows, hits: NDArray[np.bool_]) -> None:
    """hits[i]: whether row i equals a member. One width; members sorted by columns, NaN last; NaN equals NaN."""
    width = members.shape[1]
    if members.shape[0] == 1:  # by far the most frequent; without a branch that random outcomes make unpredictable
        for i in range(rows.shape[0]):
            different = 0
            for j in range(width):
                a, b = rows[i, j], members[0, j]
                different += (a != b) & ((a == a) | (b == b))
            hits[i] = different == 0
        return
    for i in range(rows.shape[0]):
        low, high = 0, members.shape[0]
        found = False
        while low < high and not found:
            middle = (low + high) // 2
            order = 0  # −1: the row comes before the member
            for j in range(width):
                a, b = rows[i, j], members[middle, j]
                if a == b or (a != a and b != b):
                    continue
                order = -1 if (a < b or b != b) else 1
                break
            if order == 0:
                found = True
            elif order < 0:
                high = middle
            else:
                low = middle + 1
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
    known: int,
) -> int:
    """codes[i]: the number of row i's outcome, numbered by first appearance; first[k]: where outcome k appeared.

    `hashes` and `numbers` are an open hash table with a power of two of places, numbers −1 where free, kept between
    calls; `known` outcomes are in it. Returns how many there are now, or −1 if they outgrow `first`. Two outcomes share
    a hash with probability 2^−64; search may live with that, evidence never sees it.
    """
    mask = np.uint64(len(hashes) - 1)
    for i in range(rows.shape[0]):
        word = np.uint64(0x9E3779B97F4A7C15)
        for j in range(rows.shape[1]):
            x = rows[i, j]
            bits = np.uint64(0x7FF8000000000001) if x != x else np.float64(x + 0.0).view(np.uint64)
            word = (word ^ bits) * np.uint64(0xBF58476D1CE4E5B9)
            word ^= word >> np.uint64(29)
        place = word & mask
        while numbers[place] >= 0 and hashes[place] != word:
            place = (place + np.uint64(1)) & mask
        if numbers[place] < 0:
            if known >= len(first):
                return -1
            hashes[place], numbers[place] = word, known
            first[known] = i
            known += 1
        codes[i] = numbers[place]
    return known


@compiled
def bin_counts(rows: Rows, starts: NDArray[np.int64], cuts: Rows, counts: NDArray[np.int64]) -> None:
    """Add to counts how many entries of each column fall below its first cut, between two, at least its last.

    Column j has the cuts starts[j]:starts[j+1], sorted, and the counts from starts[j]+j on, one more than cuts.
    """
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            x = rows[i, j]
            if x != x:
                continue
            low, high = starts[j], starts[j + 1]
            while low < high:
                middle = (low + high) // 2
                if cuts[middle] <= x:
                    low = middle + 1
                else:
                    high = middle
            counts[low + j] += 1
