"""The adaptive attack finds every count up to a common factor, by a comparison that is free of query noise.

The attack asks sums of cells around a base sum just below the noisy threshold. It finds the counts of a few reference
cells first, and compares every other cell with sums of known cells, by bisection. Answers are the same for counts and
threshold (x, z) and for a multiple of both, so counts are found up to a common factor. The unit of the reference cells
need not divide all counts, so fresh sums of all cells next to the threshold test the counts; if their answers are not
as predicted, other reference cells give a finer unit.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from dpwitness.arrays import Booleans
from dpwitness.reconstruction.threshold_testing.comparison import (
    BaseSum,
    ReferenceSums,
    ThresholdComparison,
    find_base_sum,
    fresh_sums,
    smallest_cells,
)
from dpwitness.reconstruction.threshold_testing.oracle import CellIntegers
from dpwitness.reconstruction.threshold_testing.reference_cells import find_reference_cells

#: The upper limit of a count while no answer bounds it.
OPEN_LIMIT: Final = 1 << 62
#: The number of base sums that are tried.
BASE_SUMS: Final = 3
#: The number of choices of reference cells that are tried for each base sum.
REFERENCE_CHOICES: Final = 8
#: The number of cells, besides the reference cells, that are bisected and tested before all other cells.
PILOT_CELLS: Final = 96
#: The least share of the pilot cells whose counts a right unit determines: a unit that is too fine leaves many
#: counts unknown.
LEAST_KNOWN: Final = 0.9


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RelativeCounts:
    """Counts up to a common factor, in their largest common unit; arrays of shape (cells,)."""

    counts: CellIntegers  # a lower limit where the count was not found
    known: Booleans  # the counts that were found, if no other counts explain all answers as well
    fresh_sums: int  # the number of fresh sums, all as predicted; 0 if a sum was not, and the counts are refuted


class Bisection:
    """Limits of each cell's count x, shape (cells,), and the gap from base sum to threshold, in the references' unit.

    With w the value of a sum of known cells, base + cell + w is ⊤ exactly if x ≥ gap − w; and for a cell of the base
    sum, base − cell + w is ⊤ exactly if x ≤ w − gap.
    """

    def __init__(self, comparison: ThresholdComparison, base: BaseSum) -> None:
        n = comparison.oracle.cells
        self.comparison, self.base, self.gap = comparison, base, 0
        self.low, self.high = np.zeros(n, np.int64), np.full(n, OPEN_LIMIT)

    @property
    def known(self) -> Booleans:
        """Whether each cell's limits are equal."""
        return np.asarray(self.low == self.high)

    def restart(self, cells: CellIntegers, counts: CellIntegers, gap: int) -> None:
        """Reset all limits except the counts of `cells`, and set the gap."""
        self.low[:], self.high[:], self.gap = 0, OPEN_LIMIT, gap
        self.low[cells] = self.high[cells] = counts

    def result(self, fresh_sums: int) -> RelativeCounts:
        """The counts so far, after `fresh_sums` sums that were as predicted."""
        some = self.low[self.known & (self.low > 0)]
        unit, different = max(1, int(np.gcd.reduce(some, initial=0))), len(np.unique(some))
        # Other counts may explain all answers as well if at most 40 cells are not empty, or at most 6 counts are
        # different: sums next to the threshold may not determine their ratios.
        unique = len(self.base.above) > 40 and not 2 <= different <= 6 and not has_exceptions(some // unit)
        return RelativeCounts(counts=self.low // unit, known=self.known & unique, fresh_sums=fresh_sums)

    def refine(self, cells: CellIntegers, rng: np.random.Generator) -> None:
        """Bisect the cells' limits until each count is known, or no sum of known cells lies between its limits."""
        pending = cells[~self.known[cells]]
        while len(pending) and self._halve(pending, rng):
            pending = cells[~self.known[cells]]

    def _halve(self, pending: CellIntegers, rng: np.random.Generator) -> bool:
        """Ask one query for each pending cell, all at once; False if no query can narrow any cell's limits."""
        known = self.known
        sums, counts = ReferenceSums(self.base.signs, known, self.low), np.sort(self.low[known])
        keys = np.stack([self.base.signs[pending], self.low[pending], self.high[pending]])
        keys, group = np.unique(keys, axis=1, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        parts = np.split(pending[order], np.cumsum(np.bincount(group.ravel()))[:-1])
        asked = []
        for (inside, low, high), cells in zip(keys.T.tolist(), parts, strict=True):
            split = _split(low, high, counts)
            if inside:
                found = sums.between(self.gap + low, self.gap + high - 1, self.gap + split - 1, rng)
            else:
                found = sums.between(self.gap - high, self.gap - low - 1, self.gap - split, rng)
            if found is not None:
                signs, w = found
                asked.append((inside, w - self.gap + 1 if inside else self.gap - w, signs, cells))
        answers = self.comparison.above_changes([(signs, cells, 1 - 2 * inside) for inside, _, signs, cells in asked])
        for (inside, split, _, cells), above in zip(asked, answers, strict=True):
            at_least = above != bool(inside)
            self.low[cells[at_least]] = split
            self.high[cells[~at_least]] = split - 1
        return bool(asked)

    def test(self, cells: CellIntegers, rng: np.random.Generator) -> int:
        """The number of fresh random sums of the cells next to the threshold; 0 if an answer is not as predicted."""
        signs, reach = fresh_sums(self.base.signs, self.known, self.low, cells, self.gap, rng)
        predicted = bool(len(signs)) and np.array_equal(self.comparison.above(signs), reach)
        return len(signs) if predicted else 0


def has_exceptions(counts: CellIntegers) -> bool:
    """Whether all positive counts but a few, at most 11 and at most a quarter, are multiples of a number above 1.

    A few cells can lie between two multiples although no answer shows where.
    """
    units = np.unique(np.gcd(counts[1:2_000], counts[: len(counts[1:2_000])]))
    exceptions = min(11, len(counts) // 4)
    return any(0 < np.count_nonzero(counts % unit) <= exceptions for unit in units[units > 1])


def _split(low: int, high: int, known: CellIntegers) -> int:
    """The count that splits low..high (inclusive): the median of at least 8 known counts between, else the middle.

    Without an upper limit the split is twice `low`. `known`: counts in ascending order.
    """
    if high == OPEN_LIMIT:
        return max(2 * low, low + 1)
    first, last = np.searchsorted(known, [low, high + 1])
    if last - first < 8:
        return (low + high + 1) // 2
    return int(np.clip(known[(first + last) // 2], low + 1, high))


def find_relative_counts(comparison: ThresholdComparison, rng: np.random.Generator) -> RelativeCounts:
    """Find every cell's count, up to a common factor, by a comparison that is free of query noise.

    A cell that no sum of known cells reaches, because its count exceeds all others together, is not found.
    """
    n = comparison.oracle.cells
    for _ in range(BASE_SUMS):
        bisection = Bisection(comparison, find_base_sum(comparison, rng))
        if not len(bisection.base.above):
            break
        if fresh := _find_all(bisection, rng):
            return bisection.result(fresh)
    return RelativeCounts(counts=np.zeros(n, np.int64), known=np.zeros(n, np.bool_), fresh_sums=0)


def _find_all(bisection: Bisection, rng: np.random.Generator) -> int:
    """Find a unit of the reference cells, then all counts; the number of fresh sums as predicted, or 0."""
    comparison, base = bisection.comparison, bisection.base
    all_cells = rng.permutation(comparison.oracle.cells)
    references = smallest_cells(comparison, base, rng)
    pilot = np.union1d(references, rng.permutation(base.above)[:PILOT_CELLS])
    for _ in range(REFERENCE_CHOICES):
        found = find_reference_cells(comparison, base, references, rng)
        if found is None:
            break
        bisection.restart(references, *found)
        bisection.refine(pilot, rng)
        if bisection.known[pilot].mean() >= LEAST_KNOWN and bisection.test(pilot, rng):
            bisection.refine(all_cells, rng)
            if fresh := bisection.test(all_cells, rng):
                return fresh
        references = smallest_cells(comparison, base, rng)
    return 0
