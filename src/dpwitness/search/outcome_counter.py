"""Which outcomes there are among many runs, and how often each came; memory grows with the outcomes, not the runs."""

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.kernels import outcome_codes

__all__ = ["OutcomeCounter"]

Rows = NDArray[np.float64]
Whole = NDArray[np.int64]

#: A table holds at most this many outcomes, and at most one in so many runs may be an outcome of its own.
MOST = 1 << 16
REPEAT = 4


class OutcomeCounter:
    """Numbers outcomes by first appearance, and counts the numbers."""

    def __init__(self, width: int, runs: int) -> None:
        """For at most `runs` paired runs, of rows of that width."""
        self._most = min(max(runs // (2 * REPEAT), 64), MOST)
        places = 1 << (2 * self._most - 1).bit_length()
        self._hashes, self._numbers = np.zeros(places, np.uint64), np.full(places, -1, np.int64)
        self._first, self._distinct = np.zeros(self._most, np.int64), 0
        self._parts: list[Rows] = [np.empty((0, width))]

    @property
    def outcomes(self) -> Rows:
        """The different outcomes so far, by number; shape (k, width)."""
        return np.concatenate(self._parts)

    def codes(self, rows: Rows) -> Whole | None:
        """The number of each row's outcome, shape (n,); None when there are too many to be worth counting."""
        codes, before = np.empty(len(rows), np.int64), self._distinct
        distinct = outcome_codes(rows, self._hashes, self._numbers, codes, self._first, before)
        if distinct < 0:
            return None
        self._distinct = distinct
        self._parts.append(rows[self._first[before:distinct]])
        return codes

    def times(self, a: Whole, b: Whole) -> Whole:
        """How often each outcome so far occurs among the numbers of D, and of D′; shape (2, k)."""
        return np.stack([np.bincount(codes, minlength=self._distinct) for codes in (a, b)])

    def together(self, a: Whole, b: Whole) -> Whole:
        """Which numbers of D and of D′ occur together, and how often; shape (3, m)."""
        keys = a * self._distinct + b
        if self._distinct**2 <= 8 * len(keys):
            times = np.bincount(keys)
            keys = np.flatnonzero(times)
            times = times[keys]
        else:
            keys, times = np.unique(keys, return_counts=True)
        return np.stack([keys // self._distinct, keys % self._distinct, times])
