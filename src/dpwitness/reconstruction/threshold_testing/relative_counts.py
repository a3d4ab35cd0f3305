"""The adaptive attack finds every count up to a common factor, without query noise or by majorities of enough copies.

The attack asks sums of cells around a base sum just below the noisy threshold. It finds the counts of a few reference
cells first, and compares every other cell with sums of known cells, by bisection. Answers are the same for counts and
threshold (x, z) and for a multiple of both, so counts are found up to a common factor. The unit of the reference cells
need not divide all counts, so fresh sums of all cells next to the threshold test the counts; if their answers are not
as predicted, the attack looks for a finer unit. With few cells, or few different counts, other counts may explain all
answers as well.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpwitness.arrays import Booleans, Floats
from dpwitness.reconstruction.threshold_testing.comparison import (
    FRESH_SUMS,
    REFERENCE_CELLS,
    BaseSum,
    Comparison,
    ReferenceSums,
    find_base_sum,
    fresh_sums,
    smallest_cells,
)
from dpwitness.reconstruction.threshold_testing.oracle import Cells
from dpwitness.reconstruction.threshold_testing.reference_cells import find_reference_cells

#: The upper limit of a count while no answer bounds it.
OPEN_LIMIT: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RelativeCounts:
    """Limits of counts, up to a common factor, in a common unit; arrays of shape (cells,)."""

    low: Cells
    high: Cells  # equal to `low` where the count was found
    likeliest: Floats  # the count if it was found, else its lower limit, not rounded to the unit
    fresh_sums: int  # the number of fresh sums, all as predicted; 0 if a sum was not, and the counts are refuted
    threshold: int | None  # ⌈z⌉ in the unit, if all cells of the base sum are known
    unique: bool = True  # False: other counts may explain all answers as well

    @property
    def known(self) -> Booleans:
        """Whether each cell's count was found, shape (cells,)."""
        return np.asarray(self.low == self.high)


def in_largest_unit(low: Cells, high: Cells, fresh_sums: int, threshold: int | None) -> RelativeCounts:
    """Convert counts to the largest unit that nearly all share, since sums next to the threshold do not show the unit.

    The few counts that are not multiples of the unit become unknown: other counts between the same two multiples
    explain the answers as well. A cell that was not found need not be a multiple, so its limits are rounded outwards.
    """
    known = low[low == high]
    unit = prevailing_unit(known)
    if threshold is not None:
        # z is above threshold − 1. If a count becomes unknown, z does: the base sum may hold the cell.
        threshold = None if np.any(known % unit != 0) else (threshold - 1) // unit + 1
    high = np.where(high == OPEN_LIMIT, OPEN_LIMIT, -(-high // unit))
    return RelativeCounts(low=low // unit, high=high, likeliest=low / unit, fresh_sums=fresh_sums, threshold=threshold)


def prevailing_unit(counts: Cells, most: int = 11) -> int:
    """The largest unit of which all counts but at most `most`, and a quarter, are multiples; 1 where all are 0."""
    some = counts[counts > 0]
    # Up to 11 cells, and up to a quarter of them, can lie between two multiples although no answer shows it.
    exceptions = min(most, int(0.25 * len(some)))
    sample = some[:2_000]
    units = np.unique(np.gcd(sample[1:], sample[:-1]))
    for unit in units[::-1].tolist():
        if np.count_nonzero(some % unit) <= exceptions:
            return int(unit)
    return max(1, int(np.gcd.reduce(some, initial=0)))


class Bisection:
    """Limits of each cell's count x, shape (cells,), and the gap from base sum to threshold, in the references' unit.

    With w the value of a sum of known cells, base + cell + w is ⊤ exactly if x ≥ gap − w; and for a cell of the base
    sum, base − cell + w is ⊤ exactly if x ≤ w − gap.
    """

    def __init__(self, comparison: Comparison, base: BaseSum) -> None:
        n = comparison.oracle.cells
        self.comparison, self.base, self.gap = comparison, base, 0
        self.low, self.high = np.zeros(n, np.int64), np.full(n, OPEN_LIMIT)

    @property
    def known(self) -> Booleans:
        """Whether each cell's limits are equal."""
        return np.asarray(self.low == self.high)

    def restart(self, cells: Cells, counts: Cells, gap: int) -> None:
        """Reset all limits except the counts of `cells`, and set the gap."""
        self.low[:], self.high[:], self.gap = 0, OPEN_LIMIT, gap
        self.low[cells] = self.high[cells] = counts

    def result(self, fresh_sums: int) -> RelativeCounts:
        """The counts so far, after `fresh_sums` sums that were as predicted."""
        inside = self.base.signs != 0
        threshold = int(self.low[inside].sum()) + self.gap if self.known[inside].all() else None
        different = len(np.unique(self.low[self.known & (self.low > 0)]))
        # Other counts may explain all answers as well if at most 40 cells are not empty, or at most 6 counts are
        # different: sums next to the threshold may not determine their ratios.
        unique = len(self.base.above) > 40 and not 2 <= different <= 6
        return replace(in_largest_unit(self.low, self.high, fresh_sums, threshold), unique=unique)

    def refine(self, cells: Cells, rng: np.random.Generator) -> None:
        """Bisect the cells' limits until each count is known, or no sum of known cells lies between its limits."""
        pending = cells[~self.known[cells]]
        while len(pending) and self._halve(pending, rng):
            pending = cells[~self.known[cells]]

    def _halve(self, pending: Cells, rng: np.random.Generator) -> bool:
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

    def test(self, cells: Cells, rng: np.random.Generator) -> int:
        """The number of fresh random sums of the cells next to the threshold; 0 if an answer is not as predicted."""
        targets = self.gap - np.arange(FRESH_SUMS) % 2
        signs, values = fresh_sums(self.base.signs, self.known, self.low, cells, targets, rng)
        predicted = bool(len(signs)) and np.array_equal(self.comparison.above(signs), values == self.gap)
        return len(signs) if predicted else 0


def _split(low: int, high: int, known: Cells) -> int:
    """The count that splits low..high (inclusive): the median of at least 8 known counts between, else the middle.

    Without an upper limit the split is twice `low`. `known`: counts in ascending order.
    """
    if high == OPEN_LIMIT:
        return max(2 * low, low + 1)
    first, last = np.searchsorted(known, [low, high + 1])
    if last - first < 8:
        return (low + high + 1) // 2
    return int(np.clip(known[(first + last) // 2], low + 1, high))


def find_relative_counts(comparison: Comparison, rng: np.random.Generator) -> RelativeCounts:
    """Find every cell's count, up to a common factor, by a comparison that is free of query noise.

    A cell that no sum of known cells reaches, because its count exceeds all others together, keeps its limits.
    """
    n = comparison.oracle.cells
    cells = rng.permutation(n)
    nothing = np.zeros(n, np.int64)
    best = RelativeCounts(low=nothing, high=nothing + 1, likeliest=np.zeros(n), fresh_sums=0, threshold=None)
    for _ in range(3):  # different base sums
        bisection = Bisection(comparison, find_base_sum(comparison, rng))
        if not len(bisection.base.above):
            break
        has_unit = _find_unit(bisection, rng)
        for _ in range(3):  # different units with one base sum
            if not has_unit:
                break
            bisection.refine(cells, rng)
            fresh_sums = bisection.test(cells, rng)
            if not fresh_sums:
                has_unit = _find_unit(bisection, rng, cells)
                continue
            best = max(best, bisection.result(fresh_sums), key=lambda counts: int(counts.known.sum()))
            # If all sums are even, say, two counts remain possible: cells of such counts are the next references.
            rest = cells[~bisection.known[cells] & (bisection.high[cells] < OPEN_LIMIT)]
            if not len(rest):
                break
            has_unit = _find_unit(bisection, rng, rest)
        if best.fresh_sums:
            break
    return best


def _find_unit(bisection: Bisection, rng: np.random.Generator, cells: Cells | None = None) -> bool:
    """Find a unit of which a pilot sample of cells are multiples, and put it into the bisection; False without a unit.

    `cells`: cells that were not multiples of the last unit, from which further reference cells are chosen.
    """
    comparison, base = bisection.comparison, bisection.base
    smallest = smallest_cells(comparison, base, rng)
    # The cells of the pilot are bisected and tested before all others.
    pilot = np.union1d(smallest, rng.permutation(base.above)[:96])
    references, guess = smallest, None
    for attempt in range(6):
        if cells is not None:
            pilot = np.union1d(pilot, rng.permutation(base.above)[: 2 * len(pilot)])
            # Where most cells have the same count, cells of more different counts determine more ratios.
            references = _choose_varied(bisection, smallest, cells, rng, (5, 2, 1)[attempt % 3])
            guess = np.maximum(bisection.low[references], 1).astype(np.float64)
        found = find_reference_cells(comparison, base, references, rng, guess)
        if found is None:
            if cells is None:
                return False
            continue
        bisection.restart(references, *found)
        bisection.refine(pilot, rng)
        if bisection.test(pilot, rng):
            return True
        cells = pilot
    return False


def _choose_varied(bisection: Bisection, smallest: Cells, cells: Cells, rng: np.random.Generator, each: int) -> Cells:
    """Some of the smallest cells, and the smallest of `cells`, at most `each` of a count if the counts suffice."""
    mine = cells[(bisection.low[cells] > 0) & (bisection.base.signs[cells] == 0)]
    others = rng.permutation(np.setdiff1d(mine, smallest))
    order = np.argsort(bisection.low[others], kind="stable")
    counts = bisection.low[others][order]
    turn = np.empty(len(others), np.int64)
    turn[order] = np.arange(len(others)) - np.searchsorted(counts, counts)
    some = others[np.lexsort([bisection.low[others], turn // each])][: REFERENCE_CELLS - REFERENCE_CELLS // 3]
    return np.concatenate([rng.permutation(smallest)[: REFERENCE_CELLS // 3], some])
