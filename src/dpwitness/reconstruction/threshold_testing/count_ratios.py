"""Histograms of a few different counts, each of many cells: ratios of counts, by sums of many cells of equal count.

Seventeen cells of 7 are less than three of 40, and eighteen are more; so a count's ratio r to that of a first group of
cells, and the gap t between the base sum and the threshold, both in units of the first count, lie in a polygon that
each answer cuts: a cells of the one group and b of the other are ⊤ exactly if a·r + b ≥ t.
"""

from typing import Final

import numpy as np

from dpwitness.reconstruction.threshold_testing.bisection import Bisection
from dpwitness.reconstruction.threshold_testing.comparison import BaseSum, Comparison, ReferenceSums
from dpwitness.reconstruction.threshold_testing.oracle import Cells, Floats

#: So few different counts are compared, of so many cells each.
MOST_GROUPS: Final = 6
FEWEST_CELLS: Final = 8
#: Of so few different counts sums of all cells hardly tell the ratios, however few cells there are of one.
FEW_GROUPS: Final = 3
#: Questions for each ratio, and how even a question cuts the polygon at least.
QUESTIONS: Final = 60
EVEN: Final = 0.05
#: A fraction in units of 1/q is taken for the ratio where so many times 1/q² limits it; and for rounding errors.
CLOSE: Final = 0.25
ROUNDING: Final = 1e-9
#: Sums that look for the gap.
GAP_QUESTIONS: Final = 60
#: Units of the first count.
MOST_UNITS: Final = 2_000


class _Groups:
    """Cells outside the base sum by their counts, none unless the counts are a few; `first` is the largest group."""

    def __init__(self, bisection: Bisection, cells: Cells) -> None:
        self._comparison, self._base, self._gap = bisection.comparison, bisection.base, bisection.gap
        free = cells[(bisection.base.signs[cells] == 0) & (bisection.low[cells] > 0)]
        counts = np.unique(bisection.low[free])
        self.counts = counts if 2 <= len(counts) <= MOST_GROUPS else counts[:0]
        self.cells = [free[bisection.low[free] == count] for count in self.counts]
        if len(self.counts):
            self.first = int(np.argmax([len(group) for group in self.cells]))

    def gap(self, k: int) -> Floats:
        """The limits of the gap in units of the count of group `k`, shape (2,)."""
        return np.array([self._gap - 1, self._gap]) / float(self.counts[k])

    def ratio_limits(self, k: int, one: int) -> Floats:
        """The limits of how many times the count of group `one` that of group `k` is, shape (2,)."""
        return ratio_limits(
            self._comparison, self._base, self.cells[one], self.cells[k], self.counts[k] / self.counts[one],
            self.gap(one),
        )  # fmt: skip

    def compare(self, k: int, one: int) -> tuple[bool, bool]:
        """Whether the ratio of two groups lies in its limits; and whether few wrong fractions lie there, too."""
        low, high = self.ratio_limits(k, one)
        first, other = self.counts[one], self.counts[k]
        holds = low + ROUNDING < other / first < high - ROUNDING
        return bool(holds), bool((high - low) * (first // np.gcd(first, other)) ** 2 <= CLOSE)


def counts_by_ratios(bisection: Bisection, cells: Cells, rng: np.random.Generator) -> bool:
    """Find the cells' counts in a unit that the ratios of their counts have in common; False where there is none.

    Cells that were found to have about the same count are taken for one group. Whether they are, fresh sums must show.
    """
    groups = _Groups(bisection, cells)
    if not len(groups.counts) or min(len(group) for group in groups.cells) < FEWEST_CELLS:
        return False
    number, first = len(groups.counts), groups.first
    limits = np.array([np.ones(2) if k == first else groups.ratio_limits(k, first) for k in range(number)])
    units = np.arange(1, MOST_UNITS + 1)
    # Strictly inside: on the border of the polygon lie counts that an answer rules out.
    low = np.ceil(units[:, None] * limits[:, 0] + ROUNDING)
    high = np.floor(units[:, None] * limits[:, 1] - ROUNDING)
    low[:, first] = high[:, first] = units
    whole = np.flatnonzero((high >= low).all(axis=1))
    if not len(whole):
        return False
    unit, counts = int(units[whole[0]]), low[whole[0]].astype(np.int64)
    bisection.restart(np.concatenate(groups.cells), np.repeat(counts, [len(group) for group in groups.cells]))
    gap = unit * groups.gap(first)
    lowest, highest = int(np.floor(gap[0])) - unit, int(np.ceil(gap[1])) + unit
    if not _find_gap(bisection, lowest, highest, rng):
        return False
    bisection.refine(cells, rng)
    return True


def ratios_hold(bisection: Bisection, cells: Cells, *, reopen: bool = True) -> bool:
    """Whether sums of many cells alike bear the ratios of the known counts out; True also where there are many counts.

    With `reopen` groups whose ratio a wrong fraction would meet as well, as likely as not, are known no longer. What
    the largest group does not tell of a count another may: 100 is 33⅓ times 3, but 20 times 5.
    """
    groups = _Groups(bisection, cells[bisection.known[cells]])
    told, left_open = list[int](), list[int]()
    for k, group in enumerate(groups.cells):
        if k == groups.first:
            told.append(k)
        elif len(group) >= FEWEST_CELLS or len(groups.counts) <= FEW_GROUPS:
            holds, tells = groups.compare(k, groups.first)
            if not holds:
                return False
            (told if tells else left_open).append(k)
    for k in left_open if reopen else ():
        for holds, tells in (groups.compare(k, one) for one in told if one != groups.first):
            if not holds:
                return False
            if tells:
                told.append(k)
                break
        else:
            count = groups.counts[k]
            bisection.reopen(np.flatnonzero((bisection.low == count) & (bisection.high == count)))
    return True


def ratio_limits(
    comparison: Comparison, base: BaseSum, ones: Cells, others: Cells, guess: float, gap: Floats
) -> Floats:  # fmt: skip
    """The limits of how many times the count of `ones` that of `others` is, shape (2,), from those of the gap."""
    r, t = np.array([0.5, 1.5]) * guess, gap + np.array([-1.0, 1.0])
    corners = np.array([[r[0], t[0]], [r[1], t[0]], [r[1], t[1]], [r[0], t[1]]])
    a = np.arange(-len(others), len(others) + 1)
    for _ in range(QUESTIONS):
        middle = corners.mean(axis=0)
        b = np.rint(middle[1] - a * middle[0]).astype(np.int64)
        here = np.abs(b) <= len(ones)
        side = np.outer(a[here], corners[:, 0]) + b[here][:, None] - corners[:, 1]
        most, least = side.max(axis=1), -side.min(axis=1)
        even = np.minimum(most, least) / np.maximum(np.maximum(most, least), 1e-12)
        if not here.any() or even.max() < EVEN:
            break
        best = np.flatnonzero(here)[np.argmax(even)]
        signs = base.signs.copy()
        for group, number in ((others, int(a[best])), (ones, int(b[best]))):
            signs[group[: abs(number)]] = np.sign(number)
        above = 1 if comparison.above(signs[None])[0] else -1
        corners = _cut(corners, above * np.array([a[best], -1.0]), above * float(b[best]))
        if len(corners) < 3:  # answers that contradict each other
            return np.array([1.0, 0.0])
    return np.array([corners[:, 0].min(), corners[:, 0].max()])


def _cut(corners: Floats, normal: Floats, offset: float) -> Floats:
    """The part of a convex polygon, corners of shape (n, 2), in which normal · x + offset ≥ 0."""
    value = corners @ normal + offset
    part = []
    for here, there, v, w in zip(corners, np.roll(corners, -1, axis=0), value, np.roll(value, -1), strict=True):
        if v >= 0:
            part.append(here)
        if v * w < 0:
            part.append(here + (there - here) * (v / (v - w)))
    return np.array(part).reshape(-1, 2)


def _find_gap(bisection: Bisection, low: int, high: int, rng: np.random.Generator) -> bool:
    """Find the least value above low, and at most high, that a sum of known cells reaches the threshold with."""
    sums = ReferenceSums(bisection.base.signs, bisection.known, bisection.low)
    for _ in range(GAP_QUESTIONS):
        if high - low <= 1:
            break
        found = sums.between(low + 1, high - 1, (low + high) // 2, rng)
        if found is not None:
            above = bisection.comparison.above(found[0][None])[0]
            low, high = (low, found[1]) if above else (found[1], high)
    bisection.gap = high
    return high - low == 1
