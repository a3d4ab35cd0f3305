"""The adaptive attack without query noise, or with the majority of enough copies: every count, up to a common factor.

A stronger attack on private threshold testing than differences of two cells. It asks sums of cells around a base sum
just below the noisy threshold. A few reference cells come first; all others are bisected, that is, compared with sums
of known cells, and every count found makes further sums. Answers to such queries cannot tell (x, z) from a multiple of
it, so counts are found up to a common factor; and the unit of a few reference cells need not be one of all, so fresh
sums of all cells next to the threshold test what was found. If these are not as predicted, the attack looks for a finer
unit. Of few cells, and of few different counts, other counts may explain all answers as well.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpwitness.reconstruction.threshold_testing.comparison import (
    FRESH_SUMS,
    REFERENCES,
    BaseSum,
    Comparison,
    ReferenceSums,
    find_base_sum,
    fresh_sums,
    smallest_cells,
)
from dpwitness.reconstruction.threshold_testing.oracle import Cells, Flags, Floats
from dpwitness.reconstruction.threshold_testing.reference_cells import find_reference_cells

#: No upper limit known yet.
OPEN: Final = np.iinfo(np.int64).max
#: A unit is taken for one of all cells unless so many of them are no multiples of it, or a quarter: fewer can lie
#: anywhere between two multiples without an answer that shows it.
SUPPORT: Final = 12
QUARTER: Final = 0.25
#: Number of cells that are not empty up to which other counts may explain all answers as well.
FEW_CELLS: Final = 40
#: Number of different counts up to which sums next to the threshold may not tell their ratios.
FEW_COUNTS: Final = 6
#: Counts from which a unit is made.
SAMPLED: Final = 2_000


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RelativeCounts:
    """Counts up to a common factor, in a common unit; arrays of shape (cells,)."""

    low: Cells
    high: Cells  # equal to `low` where the count was found
    likeliest: Floats  # of a count that was not found the simplest one that explains the answers
    fresh_sums: int  # that were as predicted; 0 where one was not, and nothing is known
    threshold: int | None  # ⌈z⌉, where the base sum's cells are all known
    unique: bool = True  # False: other counts may explain all answers as well

    @property
    def known(self) -> Flags:
        """Which cells' counts were found."""
        return np.asarray(self.low == self.high)


def in_largest_unit(low: Cells, high: Cells, fresh_sums: int, threshold: int | None) -> RelativeCounts:
    """Known counts in the largest unit that nearly all of them share: sums next to the threshold do not see it.

    The few that are no multiples of it are not known: other counts between the same two multiples explain the answers
    as well. Nor need a cell that was not found be a multiple of it: limits are rounded outwards.
    """
    known = low[low == high]
    unit = prevailing_unit(known)
    if threshold is not None:
        # z is above threshold − 1; where the base sum may hold a cell that is not known nothing is said.
        threshold = None if np.any(known % unit != 0) else (threshold - 1) // unit + 1
    high = np.where(high == OPEN, OPEN, -(-high // unit))
    return RelativeCounts(
        low=low // unit, high=high, likeliest=low / unit, fresh_sums=fresh_sums, threshold=threshold
    )  # fmt: skip


def prevailing_unit(counts: Cells) -> int:
    """The largest unit of which nearly all counts are multiples; 1 where they are all 0."""
    some = counts[counts > 0]
    exceptions = min(SUPPORT - 1, int(QUARTER * len(some)))
    sample = some[:SAMPLED]
    units = np.unique(np.gcd(sample[1:], sample[:-1]))
    for unit in units[::-1].tolist():
        if np.count_nonzero(some % unit) <= exceptions:
            return int(unit)
    return max(1, int(np.gcd.reduce(some, initial=0)))


class Bisection:
    """Limits of each cell's count, shape (cells,), and the gap above the base sum, in the unit of some reference cells.

    The answers place a cell by comparing it with the gap: base + cell + w is ⊤ exactly if x ≥ gap − w, and for a cell
    of the base sum base − cell + w exactly if x ≤ w − gap.
    """

    def __init__(self, comparison: Comparison, base: BaseSum) -> None:
        n = comparison.oracle.cells
        self.comparison, self.base, self.gap = comparison, base, 0
        self.low, self.high = np.zeros(n, np.int64), np.full(n, OPEN)

    @property
    def known(self) -> Flags:
        """Which cells' limits are equal."""
        return np.asarray(self.low == self.high)

    def restart(self, cells: Cells, counts: Cells, gap: int) -> None:
        """Forget all but these cells' counts and the gap."""
        self.low[:], self.high[:], self.gap = 0, OPEN, gap
        self.low[cells] = self.high[cells] = counts

    def result(self, fresh_sums: int) -> RelativeCounts:
        """What is known so far, after so many fresh sums that were as predicted."""
        inside = self.base.signs != 0
        threshold = int(self.low[inside].sum()) + self.gap if self.known[inside].all() else None
        different = len(np.unique(self.low[self.known & (self.low > 0)]))
        unique = len(self.base.above) > FEW_CELLS and not 2 <= different <= FEW_COUNTS
        return replace(in_largest_unit(self.low, self.high, fresh_sums, threshold), unique=unique)

    def refine(self, cells: Cells, rng: np.random.Generator) -> None:
        """Bisect the cells' limits until each is known, or until no sum of known cells can tell more."""
        pending = cells[~self.known[cells]]
        while len(pending) and self._halve(pending, rng):
            pending = cells[~self.known[cells]]

    def _halve(self, pending: Cells, rng: np.random.Generator) -> bool:
        """One query a cell, all asked at once; False where there is none that tells anything."""
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
        """How many fresh random sums of the cells next to the threshold were as predicted; 0 where one was not."""
        targets = self.gap - np.arange(FRESH_SUMS) % 2
        signs, values = fresh_sums(self.base.signs, self.known, self.low, cells, targets, rng)
        predicted = bool(len(signs)) and np.array_equal(self.comparison.above(signs), values == self.gap)
        return len(signs) if predicted else 0


def _split(low: int, high: int, known: Cells) -> int:
    """Where to split low..high (inclusive): at the median of the sorted counts known in between, else in the middle.

    Doubles where there is no upper limit.
    """
    if high == OPEN:
        return max(2 * low, low + 1)
    first, last = np.searchsorted(known, [low, high + 1])
    if last - first < 8:
        return (low + high + 1) // 2
    return int(np.clip(known[(first + last) // 2], low + 1, high))


#: Cells that are bisected and tested before all the others are.
PILOT: Final = 96
#: Attempts at a unit, base sums, and units on one of them.
ATTEMPTS: Final = 6
BASES: Final = 3
#: Of each count so many cells, when a unit is looked for again: where most hold one and the same, others tell more.
EACH_COUNT: Final = (5, 2, 1)


def find_relative_counts(comparison: Comparison, rng: np.random.Generator) -> RelativeCounts:
    """Find every cell's count, up to a common factor.

    `comparison` is without query noise, or with enough copies against it. Cells that no sum of known cells reaches (one
    that outweighs all others together) keep their limits.
    """
    n = comparison.oracle.cells
    cells = rng.permutation(n)
    nothing = np.zeros(n, np.int64)
    best = RelativeCounts(low=nothing, high=nothing + 1, likeliest=np.zeros(n), fresh_sums=0, threshold=None)
    for _ in range(BASES):
        bisection = Bisection(comparison, find_base_sum(comparison, rng))
        if not len(bisection.base.above):
            break
        has_unit = _find_unit(bisection, rng)
        for _ in range(BASES):
            if not has_unit:
                break
            bisection.refine(cells, rng)
            fresh_sums = bisection.test(cells, rng)
            if not fresh_sums:
                has_unit = _find_unit(bisection, rng, cells)
                continue
            best = max(best, bisection.result(fresh_sums), key=_number_known)
            # Sums that are all even, say, leave two counts open: cells of such counts are the next references.
            rest = cells[~bisection.known[cells] & (bisection.high[cells] < OPEN)]
            if not len(rest):
                break
            has_unit = _find_unit(bisection, rng, rest)
        if best.fresh_sums:
            break
    return best


def _number_known(counts: RelativeCounts) -> int:
    return int(counts.known.sum())


def _find_unit(bisection: Bisection, rng: np.random.Generator, cells: Cells | None = None) -> bool:
    """Find a unit of which a sample of cells are whole multiples; False where there is none.

    `cells`: those that are no multiples of the unit so far; the sample is chosen from among them.
    """
    comparison, base = bisection.comparison, bisection.base
    smallest = smallest_cells(comparison, base, rng)
    pilot = np.union1d(smallest, rng.permutation(base.above)[:PILOT])
    references, guess = smallest, None
    for attempt in range(ATTEMPTS):
        if cells is not None:
            pilot = np.union1d(pilot, rng.permutation(base.above)[: 2 * len(pilot)])
            references = _varied(bisection, smallest, cells, rng, EACH_COUNT[attempt % len(EACH_COUNT)])
            guess = np.maximum(bisection.low[references], 1).astype(np.float64)
        found = find_reference_cells(comparison, base, references, rng, guess)
        if found is None:
            if cells is None:
                return False
            continue
        bisection.restart(found.cells, found.counts, found.gap)
        bisection.refine(pilot, rng)
        if bisection.test(pilot, rng):
            return True
        cells = pilot
    return False


def _varied(bisection: Bisection, smallest: Cells, cells: Cells, rng: np.random.Generator, each: int) -> Cells:
    """Some of the smallest cells, and the smallest of the others, at most `each` of a count while there are more."""
    mine = cells[(bisection.low[cells] > 0) & (bisection.base.signs[cells] == 0)]
    others = rng.permutation(np.setdiff1d(mine, smallest))
    order = np.argsort(bisection.low[others], kind="stable")
    counts = bisection.low[others][order]
    turn = np.empty(len(others), np.int64)
    turn[order] = np.arange(len(others)) - np.searchsorted(counts, counts)
    some = others[np.lexsort([bisection.low[others], turn // each])][: REFERENCES - REFERENCES // 3]
    return np.concatenate([rng.permutation(smallest)[: REFERENCES // 3], some])
