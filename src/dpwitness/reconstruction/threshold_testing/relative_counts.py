"""The adaptive attack without query noise, or with the majority of enough copies: every count, up to a common factor.

A stronger attack on private threshold testing than differences of two cells. It asks sums of cells around a base sum
just below the noisy threshold; a few reference cells come first, all others are bisected by sums of known ones, and
fresh sums of all cells next to the threshold test the result. If these are not as predicted, the attack looks for a
finer unit. If no unit suits all cells, it takes one that suits nearly all, and does not claim the others.

Then histograms of a few different counts, each of many cells: ratios of counts, by sums of many cells of equal count.
Seventeen cells of 7 are less than three of 40, and eighteen are more; so a count's ratio r to that of a first group of
cells, and the gap t between the base sum and the threshold, both in units of the first count, lie in a polygon that
each answer cuts: a cells of the one group and b of the other are ⊤ exactly if a·r + b ≥ t.
"""

from typing import Final

import numpy as np

from dpwitness.reconstruction.threshold_testing.bisection import OPEN, Bisection, RelativeCounts, prevailing_unit
from dpwitness.reconstruction.threshold_testing.comparison import (
    Comparison,
    ReferenceSums,
    find_base_sum,
    smallest_cells,
)
from dpwitness.reconstruction.threshold_testing.oracle import Cells, Floats
from dpwitness.reconstruction.threshold_testing.reference_cells import find_reference_cells

#: Reference cells, at first and when their unit is not one of all.
REFERENCES: Final = 24
#: Cells that are bisected and tested before all the others are.
PILOT: Final = 96
#: Attempts at a unit, base sums, and units on one of them.
ATTEMPTS: Final = 6
BASES: Final = 3
#: Of so few cells that are not empty other counts may explain all answers as well.
FEW: Final = 40
#: Where fewer of the cells are known, those that share no unit with the others are looked for.
NEARLY_ALL: Final = 0.98
#: How often such cells are reopened.
ROUNDS: Final = 8
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
            if not ratios_hold(bisection, cells):
                has_unit = counts_by_ratios(bisection, cells, rng)
                continue
            if len(bisection.base.above) <= FEW and not (bisection.reference and bisection.reference.unique(rng)):
                break
            best = max(best, bisection.result(fresh_sums), key=_number_known)
            # Sums that are all even, say, leave two counts open: cells of such counts are the next references.
            rest = cells[~bisection.known[cells] & (bisection.high[cells] < OPEN)]
            if not len(rest):
                break
            has_unit = _find_unit(bisection, rng, rest)
        if best.fresh_sums:
            break
    if best.known.mean() < NEARLY_ALL:
        most = _find_prevailing(comparison, cells, rng)
        best = best if most is None else max(best, most, key=_number_known)
    return best


def _number_known(counts: RelativeCounts) -> int:
    return int(counts.known.sum())


def _find_unit(bisection: Bisection, rng: np.random.Generator, cells: Cells | None = None) -> bool:
    """Find a unit of which a sample of cells are whole multiples; False where there is none.

    `cells`: those that are no multiples of the unit so far; the sample is chosen from among them.
    """
    comparison, base = bisection.comparison, bisection.base
    smallest = smallest_cells(comparison, base, rng, REFERENCES)
    pilot = np.union1d(smallest, rng.permutation(base.above)[:PILOT])
    references, guess = smallest, None
    for attempt in range(ATTEMPTS):
        if cells is not None:
            if attempt < 2 and counts_by_ratios(bisection, cells, rng) and bisection.test(cells, rng):
                return True
            pilot = np.union1d(pilot, rng.permutation(base.above)[: 2 * len(pilot)])
            references = _varied(bisection, smallest, cells, rng, EACH_COUNT[attempt % len(EACH_COUNT)])
            guess = np.maximum(bisection.low[references], 1).astype(np.float64)
        found = find_reference_cells(comparison, base, references, rng, guess)
        if found is None:
            if cells is None:
                return False
            continue
        bisection.restart(found.cells, found.counts, found.gap, found)
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


def _find_prevailing(comparison: Comparison, cells: Cells, rng: np.random.Generator) -> RelativeCounts | None:
    """Find counts in a unit that nearly all cells share, and reopen the others; None where there is no such unit."""
    for _ in range(BASES):
        bisection = Bisection(comparison, find_base_sum(comparison, rng))
        if len(bisection.base.above) <= FEW:
            break
        smallest = smallest_cells(comparison, bisection.base, rng, REFERENCES)
        found = find_reference_cells(comparison, bisection.base, smallest, rng)
        if found is None:
            continue
        unit = prevailing_unit(found.counts)
        multiple = found.counts % unit == 0
        bisection.restart(found.cells[multiple], found.counts[multiple] // unit, -(-found.gap // unit))
        bisection.refine(cells, rng)
        again = True
        for _ in range(ROUNDS):
            others = bisection.non_multiples(cells, rng)
            if len(others):
                if not bisection.reopen(others):
                    break
            elif fresh_sums := bisection.test(cells, rng):
                if ratios_hold(bisection, cells, reopen=False):
                    return bisection.result(fresh_sums)
                break
            elif again:  # cells were bisected by those that are reopened now: once more, by the references alone
                anew = np.setdiff1d(cells[bisection.known[cells]], found.cells)
                bisection.low[anew], bisection.high[anew] = 0, OPEN
                bisection.refine(anew, rng)
                again = False
            else:
                break
    return None


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


class Groups:
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
        ones, others = self.cells[one], self.cells[k]
        r = np.array([0.5, 1.5]) * (self.counts[k] / self.counts[one])
        t = self.gap(one) + np.array([-1.0, 1.0])
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
            signs = self._base.signs.copy()
            for group, number in ((others, int(a[best])), (ones, int(b[best]))):
                signs[group[: abs(number)]] = np.sign(number)
            above = 1 if self._comparison.above(signs[None])[0] else -1
            corners = _cut(corners, above * np.array([a[best], -1.0]), above * float(b[best]))
            if len(corners) < 3:  # answers that contradict each other
                return np.array([1.0, 0.0])
        return np.array([corners[:, 0].min(), corners[:, 0].max()])

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
    groups = Groups(bisection, cells)
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
    groups = Groups(bisection, cells[bisection.known[cells]])
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
