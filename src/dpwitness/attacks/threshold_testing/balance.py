"""Cells weighed on a base by cells that are known already, and what was found tried on fresh sums."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.comparing import Base, Scales
from dpwitness.attacks.threshold_testing.localising import Located
from dpwitness.attacks.threshold_testing.questions import Cells, Signs
from dpwitness.attacks.threshold_testing.weights import Weights

__all__ = ["OPEN", "Balance", "Weighed", "in_largest_unit", "prevailing_unit", "random_sum", "widen_split"]

Floats = NDArray[np.float64]

#: No upper limit known yet.
OPEN: Final = np.iinfo(np.int64).max
#: Fresh sums next to the threshold. A cell is in one with probability 1/2, on the side that shows an error with 1/2.
TRIALS: Final = 64
#: Fewer of them say too little.
FEWEST_TRIALS: Final = 24
#: Fresh sums that tell which cells are no whole numbers of the unit: so many of one value, on top of each of so many
#: sums of cells that were set aside; and the share of them that is left unexplained in a round.
ALIKE: Final = 24
MIXTURES: Final = 12
MOST_OTHERS: Final = 12
#: Standard deviations by which a cell explains more of them than chance would have it.
CLEAR: Final = 3.5
LEFT: Final = 0.1
#: Of the cells that are not empty so many at most may be set aside.
ASIDE: Final = 0.1
#: A unit is taken for one of all cells unless so many of them are no whole numbers of it, or a quarter: fewer can lie
#: anywhere between two whole numbers without an answer that shows it.
SUPPORT: Final = 12
QUARTER: Final = 0.25
#: Counts from which a unit is made.
SAMPLED: Final = 2_000
#: How often a random sum next to the threshold is looked for, with signs for fewer and fewer cells.
SHARES: Final = (0.5, 0.5, 0.2, 0.2, 0.05, 0.05)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Weighed:
    """Counts up to a common factor.

    Parameters
    ----------
    low, high
        Limits of each cell in the common unit, shape (cells,); equal where the count was found.
    likeliest
        Each cell's count in the common unit, shape (cells,): of those that were not found the simplest that explains
        the answers.
    tried
        Fresh sums of all cells next to the threshold that were as predicted; 0 where one was not, and nothing is known.
    threshold
        ⌈z⌉ in the common unit, where the base's cells are all known; else None.
    """

    low: Cells
    high: Cells
    likeliest: Floats
    tried: int
    threshold: int | None

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which cells' counts were found."""
        return np.asarray(self.low == self.high)


def in_largest_unit(low: Cells, high: Cells, tried: int, threshold: int | None) -> Weighed:
    """Known counts in the largest unit that nearly all of them share: sums next to the threshold do not see it.

    The few that are no whole numbers of it are not known: other counts between the same two whole numbers explain the
    answers as well. Nor need a cell that was not found be a whole number of it: limits are rounded outwards.
    """
    unit = prevailing_unit(low[low == high])
    if threshold is not None:
        # z is above threshold − 1; where the base may hold a cell that is not known nothing is said.
        aside = np.any(low[low == high] % unit != 0)
        threshold = None if aside else (threshold - 1) // unit + 1
    high = np.where(high == OPEN, OPEN, -(-high // unit))
    return Weighed(low=low // unit, high=high, likeliest=low / unit, tried=tried, threshold=threshold)


def prevailing_unit(counts: Cells) -> int:
    """The largest unit of which nearly all counts are whole numbers; 1 where they are all 0."""
    some = counts[counts > 0]
    allowed = min(SUPPORT - 1, int(QUARTER * len(some)))
    sample = some[:SAMPLED]
    units = np.unique(np.gcd(sample[1:], sample[:-1]))
    for unit in units[::-1].tolist():
        if np.count_nonzero(some % unit) <= allowed:
            return int(unit)
    return max(1, int(np.gcd.reduce(some, initial=0)))


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

    def restart_coarse(self, located: Located) -> None:
        """The same in the largest unit that nearly all of these cells share, without the others."""
        unit = prevailing_unit(located.counts)
        self.restart(located)
        others = located.cells[located.counts % unit != 0]
        self.low //= unit
        self.high[located.cells] = self.low[located.cells]
        self.low[others], self.high[others] = 0, OPEN
        self.gap = -(-self.gap // unit)

    def take(self, cells: Cells, counts: Cells) -> None:
        """Nothing is known but these cells' counts, not even the gap."""
        self.low[:], self.high[:], self._located = 0, OPEN, None
        self.low[cells] = self.high[cells] = counts

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

    def weigh_again(self, cells: Cells, rng: np.random.Generator) -> None:
        """Weigh the known cells anew, by the located ones that were not set aside."""
        assert self._located is not None
        known = self.low == self.high
        anew = np.setdiff1d(cells[known[cells]], self._located.cells)
        self.low[anew], self.high[anew] = 0, OPEN
        self.weigh(anew, rng)

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
        rows, wanted = self._fresh(cells, TRIALS, rng)
        if len(rows) < FEWEST_TRIALS or not np.array_equal(self.scales.above(rows), wanted):
            return 0
        return len(rows)

    def misfits(self, cells: Cells, rng: np.random.Generator) -> Cells:
        """Known cells that are no whole numbers of the unit, as far as sums show it; the most telling first.

        Sums of the known cells of one value, on top of one sum of the others, must be answered alike. A cell that lies
        between two whole numbers pushes the sums that it is in to one side.
        """
        known = self.low == self.high
        others = rng.permutation(cells[~known[cells] & (self.high[cells] < OPEN)])[:MOST_OTHERS]
        rows, swaps, groups = [], [], []
        for mixture in range(MIXTURES):
            base = self.base.signs.copy()
            if mixture:
                base[others] = rng.integers(-1, 2, len(others))
            middle = (self.low[others] + self.high[others]) // 2
            gap = self.gap - int((base - self.base.signs)[others].astype(np.int64) @ middle)
            weights = Weights(base, known, self.low)
            for target in range(gap - 2, gap + 2):
                start = weights.between(target, target, target, rng)
                if start is not None:
                    swaps.append(_swaps(self.low, np.flatnonzero(known & (start[0] == 0)), ALIKE, rng))
                    rows.append(start[0] + swaps[-1])
                    groups += [len(rows)] * ALIKE
        if not rows:
            return np.zeros(0, np.int64)
        above, group = self.scales.above(np.concatenate(rows)), np.array(groups)
        share = np.bincount(group, weights=above) / np.maximum(np.bincount(group), 1)
        odd = above != (share >= 0.5)[group]
        return self._blamed(np.concatenate(swaps)[odd] * np.where(above[odd], 1, -1)[:, None].astype(np.int8))

    def _blamed(self, push: Signs) -> Cells:
        """The cells that explain most of these sums; `push`, shape (sums, cells): on which side each would."""
        blamed: list[int] = []
        left = LEFT * len(push)
        while len(push) > left:
            score = push.sum(axis=0, dtype=np.int64)
            worst = int(np.argmax(np.abs(score)))
            clear = score[worst] ** 2 >= CLEAR**2 * np.count_nonzero(push[:, worst])
            if not score[worst] or (blamed and not clear):
                break
            blamed.append(worst)
            push = push[push[:, worst] != np.sign(score[worst])]
        return np.array(blamed, np.int64)

    def set_aside(self, misfits: Cells) -> bool:
        """Take these cells for unknown, a unit about what they were found to be; False where that would be too many."""
        self.low[misfits] = np.maximum(self.low[misfits] - 1, 0)
        self.high[misfits] += 1
        return bool(np.count_nonzero(self.low != self.high) <= ASIDE * np.count_nonzero(self.high))

    def _fresh(self, cells: Cells, number: int, rng: np.random.Generator) -> tuple[Signs, NDArray[np.bool_]]:
        """Random sums of the cells next to the threshold, at most so many, and whether each should reach it."""
        rows, wanted = [np.zeros((0, len(self.low)), np.int8)], []
        for trial in range(number):
            target = self.gap - trial % 2
            found = random_sum(self.base.signs, self.low == self.high, self.low, cells, target, rng)
            if found is not None:
                rows.append(found[None])
                wanted.append(trial % 2 == 0)
        return np.concatenate(rows), np.array(wanted, np.bool_)


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


def _swaps(counts: Cells, cells: Cells, number: int, rng: np.random.Generator) -> Signs:
    """Sums of 0, shape (number, cells): of pairs of the cells that have the same count."""
    rows = np.zeros((number, len(counts)), np.int8)
    for row in rows:
        order = cells[np.lexsort([rng.random(len(cells)), counts[cells]])][rng.integers(2) :]
        first, second = order[: len(order) // 2 * 2 : 2], order[1::2]
        same = counts[first] == counts[second]
        row[first[same]], row[second[same]] = 1, -1
    return rows


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
