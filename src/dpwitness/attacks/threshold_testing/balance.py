"""Cells weighed on a base by cells that are known already, and what was found tried on fresh sums."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.comparing import Base, Scales
from dpwitness.attacks.threshold_testing.localising import Located
from dpwitness.attacks.threshold_testing.questions import Cells, Signs
from dpwitness.attacks.threshold_testing.weights import Weights

__all__ = ["OPEN", "Balance", "Weighed", "in_largest_unit", "random_sum", "widen_split"]

#: No upper limit known yet.
OPEN: Final = np.iinfo(np.int64).max
#: Fresh sums next to the threshold. A cell is in one with probability 1/2, on the side that shows an error with 1/2.
TRIALS: Final = 64
#: Fewer of them say too little.
FEWEST_TRIALS: Final = 24
#: How often a random sum next to the threshold is looked for, with signs for fewer and fewer cells.
SHARES: Final = (0.5, 0.5, 0.2, 0.2, 0.05, 0.05)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Weighed:
    """Counts up to a common factor.

    Parameters
    ----------
    low, high
        Limits of each cell in the common unit, shape (cells,); equal where the count was found.
    tried
        Fresh sums of all cells next to the threshold that were as predicted; 0 where one was not, and nothing is known.
    threshold
        ⌈z⌉ in the common unit, where the base's cells are all known; else None.
    """

    low: Cells
    high: Cells
    tried: int
    threshold: int | None

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which cells' counts were found."""
        return np.asarray(self.low == self.high)


def in_largest_unit(low: Cells, high: Cells, tried: int, threshold: int | None) -> Weighed:
    """Known counts without a common divisor: sums next to the threshold do not see it, and a factor is whole.

    What is not known need not be a whole number of the larger unit: its limits are rounded outwards.
    """
    divisor = max(1, int(np.gcd.reduce(low[low == high], initial=0)))
    if threshold is not None:
        threshold = (threshold - 1) // divisor + 1  # z is above threshold − 1
    high = np.where(high == OPEN, OPEN, -(-high // divisor))
    return Weighed(low=low // divisor, high=high, tried=tried, threshold=threshold)


class Balance:
    """The base, the gap above it, and limits of each cell's count in the unit of the located cells, shape (cells,)."""

    def __init__(self, scales: Scales, base: Base) -> None:
        n = scales.oracle.cells
        self.scales, self.base, self.gap = scales, base, 0
        self._located: Located | None = None
        self.low, self.high = np.zeros(n, np.int64), np.full(n, OPEN)

    def restart(self, located: Located) -> None:
        """Nothing is known but these cells' counts and the gap."""
        self.low[:], self.high[:], self.gap, self._located = 0, OPEN, located.gap, located
        self.low[located.cells] = self.high[located.cells] = located.counts

    def alone(self, rng: np.random.Generator) -> bool:
        """Whether no other counts of the located cells explain their answers."""
        return self._located is not None and self._located.alone(rng)

    def threshold(self) -> int | None:
        """⌈z⌉: the sum of the base and the gap; None where a cell of the base is not known."""
        inside = np.flatnonzero(self.base.signs)
        known = np.array_equal(self.low[inside], self.high[inside])
        return int(self.low[inside].sum()) + self.gap if known else None

    def weighed(self, tried: int) -> Weighed:
        """What is known by now, after so many fresh sums that were as predicted."""
        return in_largest_unit(self.low, self.high, tried, self.threshold())

    def undetermined(self, cells: Cells) -> Cells:
        """Those of the cells whose counts have limits that no sum of known cells lies between."""
        return cells[(self.low[cells] < self.high[cells]) & (self.high[cells] < OPEN)]

    def weigh(self, cells: Cells, rng: np.random.Generator) -> None:
        """Weigh the cells until each is known, or until no weight can tell more."""
        while True:
            pending = cells[self.low[cells] < self.high[cells]]
            if not len(pending) or not self._round(pending, rng):
                return

    def _round(self, pending: Cells, rng: np.random.Generator) -> bool:
        """One query a cell, all asked at once; False where there is none that tells anything."""
        known = self.low == self.high
        weights, counts = Weights(self.base.signs, known, self.low), np.sort(self.low[known])
        keys = np.stack([self.base.signs[pending], self.low[pending], self.high[pending]])
        keys, group = np.unique(keys, axis=1, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        parts = np.split(pending[order], np.cumsum(np.bincount(group.ravel()))[:-1])
        asked = []
        for (inside, least, most), cells in zip(keys.T.tolist(), parts, strict=True):
            # Base + cell + w is ⊤ exactly if x ≥ gap − w; base − cell + w exactly if x ≤ w − gap.
            split = widen_split(least, most, counts)
            if inside:
                found = weights.between(self.gap + least, self.gap + most - 1, self.gap + split - 1, rng)
            else:
                found = weights.between(self.gap - most, self.gap - least - 1, self.gap - split, rng)
            if found is not None:
                signs, w = found
                asked.append((inside, w - self.gap + 1 if inside else self.gap - w, signs, cells))
        answers = self.scales.above_changes([(signs, cells, 1 - 2 * inside) for inside, _, signs, cells in asked])
        for (inside, split, _, cells), above in zip(asked, answers, strict=True):
            at_least = above != bool(inside)
            self.low[cells[at_least]] = split
            self.high[cells[~at_least]] = split - 1
        return bool(asked)

    def tried(self, cells: Cells, rng: np.random.Generator) -> int:
        """How many fresh random sums of the cells next to the threshold were as predicted; 0 where one was not."""
        rows, wanted = [], []
        for trial in range(TRIALS):
            target = self.gap - trial % 2
            found = random_sum(self.base.signs, self.low == self.high, self.low, cells, target, rng)
            if found is not None:
                rows.append(found)
                wanted.append(trial % 2 == 0)
        if len(rows) < FEWEST_TRIALS or not np.array_equal(self.scales.above(np.array(rows)), wanted):
            return 0
        return len(rows)


def random_sum(
    base: Signs, known: NDArray[np.bool_], counts: Cells, cells: Cells, target: int, rng: np.random.Generator
) -> Signs | None:
    """Coefficients that add a given value to the base's sum, random for about half of the known ones of the cells.

    None where none were found.
    """
    mine = cells[known[cells]]
    for share in SHARES:
        signs, free = base.copy(), known & (base == 0)
        chosen = mine[rng.random(len(mine)) < share]
        inside, outside = chosen[base[chosen] == 1], chosen[base[chosen] == 0]
        signs[inside] = 0
        # All of one sign now and then: the heaviest cells make up for them, fewer of which it takes, so that counts
        # that are all too large by as much are found out.
        alike = rng.random() < 0.5
        signs[outside] = rng.choice([-1, 1]) if alike else 2 * rng.integers(0, 2, len(outside), np.int8) - 1
        free[outside] = False
        value = int((signs - base).astype(np.int64) @ counts)
        # Weights take only cells that are known and have no coefficient yet.
        found = Weights(signs, free & (signs == 0), counts).between(target - value, target - value, target - value, rng)
        if found is not None:
            return found[0]
    return None


def widen_split(low: int, high: int, known: Cells) -> int:
    """Where to split low..high (inclusive): at the median of the sorted counts known in between, else in the middle.

    Doubles where there is no upper limit.
    """
    if high == OPEN:
        return max(2 * low, low + 1)
    first, last = np.searchsorted(known, [low, high + 1])
    if last - first < 8:
        return (low + high + 1) // 2
    return int(np.clip(known[(first + last) // 2], low + 1, high))
