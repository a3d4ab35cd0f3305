"""Counts up to a common factor, by bisection: each cell is compared with sums of cells that are known already.

Every count found makes further sums of known cells. Answers to such queries cannot tell (x, z) from a multiple of it,
so counts are found up to a common factor; and the unit of a few reference cells need not be one of all, so sums of all
cells that lie next to the threshold test what was found.
"""

from typing import Final

import numpy as np

from dpwitness.dataclass import dataclass
from dpwitness.reconstruction.threshold_testing.comparison import (
    FRESH_SUMS,
    BaseSum,
    Comparison,
    ReferenceSums,
    fresh_sums,
)
from dpwitness.reconstruction.threshold_testing.oracle import Cells, Flags, Floats, Signs
from dpwitness.reconstruction.threshold_testing.reference_cells import ReferenceCells

#: No upper limit known yet.
OPEN: Final = np.iinfo(np.int64).max
#: Fresh sums that tell which cells are no multiples of the unit: so many of one value, on top of each of so many sums
#: of at most so many cells that are not known.
ALIKE: Final = 24
MIXTURES: Final = 12
MOST_OTHERS: Final = 12
#: Standard deviations by which a cell explains more of their odd answers than chance would have it, and the share of
#: these that is left unexplained in a round.
CLEAR: Final = 3.5
UNEXPLAINED: Final = 0.1
#: Of the cells that are not empty so many at most may be reopened.
MOST_REOPENED: Final = 0.1
#: A unit is taken for one of all cells unless so many of them are no multiples of it, or a quarter: fewer can lie
#: anywhere between two multiples without an answer that shows it.
SUPPORT: Final = 12
QUARTER: Final = 0.25
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
        self.reference: ReferenceCells | None = None
        self.low, self.high = np.zeros(n, np.int64), np.full(n, OPEN)

    @property
    def known(self) -> Flags:
        """Which cells' limits are equal."""
        return np.asarray(self.low == self.high)

    def restart(self, cells: Cells, counts: Cells, gap: int = 0, reference: ReferenceCells | None = None) -> None:
        """Forget all but these cells' counts and the gap."""
        self.low[:], self.high[:], self.gap, self.reference = 0, OPEN, gap, reference
        self.low[cells] = self.high[cells] = counts

    def result(self, fresh_sums: int) -> RelativeCounts:
        """What is known so far, after so many fresh sums that were as predicted."""
        inside = self.base.signs != 0
        threshold = int(self.low[inside].sum()) + self.gap if self.known[inside].all() else None
        return in_largest_unit(self.low, self.high, fresh_sums, threshold)

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

    def non_multiples(self, cells: Cells, rng: np.random.Generator) -> Cells:
        """Known cells that are no multiples of the unit, as far as sums show it; the most telling first.

        Sums of the known cells of one value, on top of one sum of the others, must be answered alike. A cell that lies
        between two multiples pushes the sums that it is in to one side.
        """
        known = self.known
        others = rng.permutation(cells[~known[cells] & (self.high[cells] < OPEN)])[:MOST_OTHERS]
        rows, swaps = [], []
        for mixture in range(MIXTURES):
            base = self.base.signs.copy()
            if mixture:
                base[others] = rng.integers(-1, 2, len(others))
            middle = (self.low[others] + self.high[others]) // 2
            gap = self.gap - int((base - self.base.signs)[others].astype(np.int64) @ middle)
            sums = ReferenceSums(base, known, self.low)
            for target in range(gap - 2, gap + 2):
                start = sums.between(target, target, target, rng)
                if start is not None:
                    swaps.append(_swaps(self.low, np.flatnonzero(known & (start[0] == 0)), rng))
                    rows.append(start[0] + swaps[-1])
        if not rows:
            return np.zeros(0, np.int64)
        above = self.comparison.above(np.concatenate(rows)).reshape(-1, ALIKE)
        odd = above != (above.mean(axis=1) >= 0.5)[:, None]
        side = np.where(above, 1, -1).astype(np.int8)
        return _explaining_cells(np.concatenate(swaps)[odd.ravel()] * side[odd][:, None])

    def reopen(self, cells: Cells) -> bool:
        """Take these cells for unknown, a unit about what they were found to be; False where that would be too many."""
        self.low[cells] = np.maximum(self.low[cells] - 1, 0)
        self.high[cells] += 1
        return bool(np.count_nonzero(~self.known) <= MOST_REOPENED * np.count_nonzero(self.high))


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


def _swaps(counts: Cells, cells: Cells, rng: np.random.Generator) -> Signs:
    """Sums of 0, shape (ALIKE, cells): of pairs of the cells that have the same count."""
    rows = np.zeros((ALIKE, len(counts)), np.int8)
    for row in rows:
        order = cells[np.lexsort([rng.random(len(cells)), counts[cells]])][rng.integers(2) :]
        first, second = order[: len(order) // 2 * 2 : 2], order[1::2]
        same = counts[first] == counts[second]
        row[first[same]], row[second[same]] = 1, -1
    return rows


def _explaining_cells(push: Signs) -> Cells:
    """The cells that explain most of some odd answers; `push`, shape (sums, cells): to which side each moves a sum."""
    chosen: list[int] = []
    left = UNEXPLAINED * len(push)
    while len(push) > left:
        score = push.sum(axis=0, dtype=np.int64)
        worst = int(np.argmax(np.abs(score)))
        clear = score[worst] ** 2 >= CLEAR**2 * np.count_nonzero(push[:, worst])
        if not score[worst] or (chosen and not clear):
            break
        chosen.append(worst)
        push = push[push[:, worst] != np.sign(score[worst])]
    return np.array(chosen, np.int64)
