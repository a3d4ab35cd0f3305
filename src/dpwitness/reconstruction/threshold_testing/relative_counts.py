"""The adaptive attack without query noise, or with the majority of enough copies: every count, up to a common factor.

A stronger attack on private threshold testing than differences of two cells. It asks sums of cells around a base sum
just below the noisy threshold. A few reference cells come first; all others are bisected, that is, compared with sums
of known cells, and every count found makes further sums. Answers to such queries cannot tell (x, z) from a multiple of
it, so counts are found up to a common factor; and the unit of a few reference cells need not be one of all, so fresh
sums of all cells next to the threshold test what was found. If these are not as predicted, the attack looks for a finer
unit. If no unit suits all cells, it takes one that suits nearly all, and does not claim the others.

Then histograms of a few different counts, each of many cells: ratios of counts, by sums of many cells of equal count.
Seventeen cells of 7 are less than three of 40, and eighteen are more; so a count's ratio r to that of a first group of
cells, and the gap t between the base sum and the threshold, both in units of the first count, lie in a polygon that
each answer cuts: a cells of the one group and b of the other are ⊤ exactly if a·r + b ≥ t.
"""

from dataclasses import dataclass
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
from dpwitness.reconstruction.threshold_testing.oracle import Cells, Flags, Floats, Signs
from dpwitness.reconstruction.threshold_testing.reference_cells import ReferenceCells, find_reference_cells

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
    smallest = smallest_cells(comparison, base, rng)
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
        smallest = smallest_cells(comparison, bisection.base, rng)
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
