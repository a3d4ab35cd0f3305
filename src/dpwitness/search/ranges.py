"""Ranges of one value between rising edges, and what lies outside of them, counted in paired runs by one table.

Cell k of a value holds what lies from edge k − 1 up to, and without, edge k; one more cell holds the runs that have no
value.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import LARGEST

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@lru_cache(maxsize=64)
def all_ranges(cells: int) -> tuple[Whole, Whole, NDArray[np.bool_]]:
    """The first cell of each range and the one behind its last, of so many cells; then whether its outside is meant.

    The outside of a range that is open on one side is another one, and is left out; that of all cells holds the runs
    without the value. Shapes (k,).
    """
    first, last = np.triu_indices(cells)
    last = last + 1
    two = ((first > 0) & (last < cells)) | ((first == 0) & (last == cells))
    outside = np.concatenate([np.zeros(len(first), np.bool_), np.ones(np.count_nonzero(two), np.bool_)])
    return np.concatenate([first, first[two]]), np.concatenate([last, last[two]]), outside


def ends_of(edges: Floats) -> tuple[Floats, Floats]:
    """Where each cell begins, and where the one before it ends.

    An end of +inf is none: what ends at an edge of +inf ends at the largest finite number.
    """
    return np.concatenate([[-np.inf], edges]), np.concatenate([[-np.inf], np.minimum(edges, LARGEST), [np.inf]])


def counts_of(table: NDArray[np.int64], first: Whole, last: Whole, outside: NDArray[np.bool_]) -> tuple[Whole, ...]:
    """In how many runs D, D′ and both lie in each range; `table[i, j]`: runs with D in cell i and D′ in cell j."""
    below = np.pad(table, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    total = below[-1, -1]
    hits, others = below[last, -1] - below[first, -1], below[-1, last] - below[-1, first]
    both = below[last, last] - below[first, last] - below[last, first] + below[first, first]
    hits, others, both = np.where(
        outside, [total - hits, total - others, total - hits - others + both], [hits, others, both]
    )
    return hits, others, both
