"""Cells weighed on a base by cells that are known already, and what was found tried on fresh sums.

Histograms of a few different counts, each of many cells: ratios of counts, by sums of many cells alike.

Seventeen cells of 7 are less than three of 40, and eighteen are more; so a count's ratio r to that of a first kind of
cell, and the gap t between the base and the threshold, both in units of the first count, lie in a polygon that each
answer cuts: a cells of the one kind and b of the other are ⊤ exactly if a·r + b ≥ t.

A stronger attack on private threshold testing than differences of two cells: weigh cells by known ones.

The noisy threshold z is drawn once, and any signed sum of cells is a query of sensitivity 1. A base, a sum of cells
just below z, turns every query into a balance: without query noise the base plus cell v minus known cells of sum w is ⊤
exactly if x_v ≥ w + the gap between the base and z. What makes a few cells known is `locate`: their counts relative
to each other, and the unit that makes whole numbers of them. Every cell found is one more weight.

Answers to such queries cannot tell (x, z) from a multiple of it, so counts are found up to a common factor; and a unit
of a few cells need not be one of all, so sums of all cells that lie next to the threshold try what was found, and a
finer unit is looked for where they are not as predicted. (With constants as queries, which have sensitivity 0, all
this would be easy; nothing but sums of cells is used here.)
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.reconstruction.threshold_testing.oracle import Cells, Signs
from dpwitness.reconstruction.threshold_testing.relative_counts import (
    Base,
    Located,
    Scales,
    Weights,
    lay_base,
    lightest,
    locate,
)

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


#: So few different counts are compared, of so many cells each.
MOST_KINDS: Final = 6
FEWEST_CELLS: Final = 8
#: Of so few different counts sums of all cells hardly tell the ratios, however few cells there are of one.
FEW_KINDS: Final = 3
#: Questions for each ratio, and how even a question cuts the polygon at least.
QUESTIONS: Final = 60
EVEN: Final = 0.05
#: A fraction in units of 1/q is taken for the ratio where so many times 1/q² limits it; and for rounding errors.
CLOSE: Final = 0.25
ROUNDING: Final = 1e-9
#: Sums that look for the gap.
GAP_TRIES: Final = 60
#: Units of the first count.
MOST_UNITS: Final = 2_000


def weigh_kinds(balance: Balance, cells: Cells, rng: np.random.Generator) -> bool:
    """Weigh the cells in a unit that the ratios of their counts have in common; False where there is none.

    Cells that were found to have about the same count are taken for one kind. Whether they are, fresh sums must show.
    """
    counts, kinds = _kinds(balance, cells)
    if not counts.size or min(len(kind) for kind in kinds) < FEWEST_CELLS:
        return False
    first = int(np.argmax([len(kind) for kind in kinds]))
    box = balance.gap / counts[first] - np.array([1 / counts[first], 0.0])
    limits = [
        np.ones(2) if k == first else _ratio(balance, kinds[first], kinds[k], counts[k] / counts[first], box)
        for k in range(len(kinds))
    ]
    units = np.arange(1, MOST_UNITS + 1)
    low, high = (units[:, None] * np.array(limits)[:, side] for side in (0, 1))
    # Strictly inside: on the border of the polygon lie counts that an answer rules out.
    low, high = np.ceil(low + ROUNDING), np.floor(high - ROUNDING)
    low[:, first] = high[:, first] = units
    whole = np.flatnonzero((high >= low).all(axis=1))
    if not len(whole):
        return False
    found = low[whole[0]].astype(np.int64)
    unit = int(units[whole[0]])
    balance.take(np.concatenate(kinds), np.repeat(found, [len(kind) for kind in kinds]))
    if not _find_gap(balance, int(np.floor(unit * box[0])) - unit, int(np.ceil(unit * box[1])) + unit, rng):
        return False
    balance.weigh(cells, rng)
    return True


def kinds_stand(balance: Balance, cells: Cells) -> bool:
    """Whether sums of many cells alike bear the ratios of the known counts out; True also where there are many counts.

    Kinds whose ratio a wrong fraction would meet as well, as likely as not, are forgotten: known no longer.
    """
    counts, kinds = _kinds(balance, cells[(balance.low == balance.high)[cells]])
    if not counts.size:
        return True
    first = int(np.argmax([len(kind) for kind in kinds]))
    box = balance.gap / counts[first] - np.array([1 / counts[first], 0.0])
    for count, kind in zip(counts.tolist(), kinds, strict=True):
        if count == counts[first] or (len(kind) < FEWEST_CELLS and len(counts) > FEW_KINDS):
            continue
        low, high = _ratio(balance, kinds[first], kind, count / counts[first], box)
        if not low + ROUNDING < count / counts[first] < high - ROUNDING:
            return False
        if (high - low) * (counts[first] // np.gcd(count, counts[first])) ** 2 > CLOSE:
            balance.set_aside(np.flatnonzero((balance.low == count) & (balance.high == count)))
    return True


def _kinds(balance: Balance, cells: Cells) -> tuple[Cells, list[Cells]]:
    """The counts of the cells outside the base, and the cells of each; nothing unless they are a few."""
    free = cells[(balance.base.signs[cells] == 0) & (balance.low[cells] > 0)]
    counts = np.unique(balance.low[free])
    if not 2 <= len(counts) <= MOST_KINDS:
        counts = counts[:0]
    return counts, [free[balance.low[free] == count] for count in counts]


def _ratio(balance: Balance, ones: Cells, others: Cells, guess: float, box: Floats) -> Floats:
    """The limits of how many times the count of `ones` that of `others` is, shape (2,)."""
    r, t = np.array([0.5, 1.5]) * guess, box + np.array([-1.0, 1.0])
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
        signs = balance.base.signs.copy()
        for kind, number in ((others, int(a[best])), (ones, int(b[best]))):
            signs[kind[: abs(number)]] = np.sign(number)
        above = bool(balance.scales.above(signs[None])[0])
        corners = _cut(corners, np.array([a[best], -1.0]) * (1 if above else -1), float(b[best]) * (1 if above else -1))
        if len(corners) < 3:  # answers that contradict each other
            return np.array([1.0, 0.0])
    return np.array([corners[:, 0].min(), corners[:, 0].max()])


def _cut(corners: Floats, normal: Floats, offset: float) -> Floats:
    """The part of a convex polygon, corners of shape (n, 2), in which normal · x + offset ≥ 0."""
    value = corners @ normal + offset
    kept = []
    for here, there, v, w in zip(corners, np.roll(corners, -1, axis=0), value, np.roll(value, -1), strict=True):
        if v >= 0:
            kept.append(here)
        if v * w < 0:
            kept.append(here + (there - here) * (v / (v - w)))
    return np.array(kept).reshape(-1, 2)


def _find_gap(balance: Balance, low: int, high: int, rng: np.random.Generator) -> bool:
    """Find the least value above low, and at most high, that a sum of known cells reaches the threshold with."""
    weights = Weights(balance.base.signs, balance.low == balance.high, balance.low)
    tries = 0
    while high - low > 1 and tries < GAP_TRIES:
        tries += 1
        found = weights.between(low + 1, high - 1, (low + high) // 2, rng)
        if found is None:
            continue
        if balance.scales.above(found[0][None])[0]:
            high = found[1]
        else:
            low = found[1]
    balance.gap = high
    return high - low == 1


#: Cells that are located first, and when their unit is not one of all.
FIRST: Final = 24
#: Cells that are weighed and tried before all the others are.
PILOT: Final = 96
ATTEMPTS: Final = 6
BASES: Final = 3
#: Of so few cells that are not empty other counts may explain all answers as well.
FEW: Final = 40
#: Where fewer of the cells are known, those that share no unit with the others are looked for.
NEARLY_ALL: Final = 0.98
#: How often such cells are set aside.
ROUNDS: Final = 8
#: Of each count so many cells, when a unit is looked for again: where most hold one and the same, others tell more.
EACH_COUNT: Final = (5, 2, 1)


def weigh(scales: Scales, rng: np.random.Generator) -> Weighed:
    """Read every cell's count, up to a common factor; see the module.

    Cells that no known weight can balance (one that outweighs all others together) keep their limits.

    Parameters
    ----------
    scales
        Without query noise, or with enough copies against it.
    rng
        For the orders in which cells are tried.
    """
    n = scales.oracle.cells
    everything = rng.permutation(n)
    nothing = np.zeros(n, np.int64)
    best = Weighed(low=nothing, high=nothing + 1, likeliest=np.zeros(n), tried=0, threshold=None)
    for _ in range(BASES):
        balance = Balance(scales, lay_base(scales, rng))
        if not len(balance.base.above):
            break
        tuned = _tune(balance, rng)
        for _ in range(BASES):
            if not tuned:
                break
            balance.weigh(everything, rng)
            tried = balance.tried(everything, rng)
            if not tried:
                tuned = _tune(balance, rng, everything)
                continue
            if not kinds_stand(balance, everything):
                tuned = weigh_kinds(balance, everything, rng)
                continue
            if len(balance.base.above) <= FEW and not balance.alone(rng):
                break
            best = max(best, balance.weighed(tried), key=lambda found: int(found.known.sum()))
            # Weights that are all even, say, leave two counts open: cells of such counts are located next.
            rest = balance.undetermined(everything)
            if not len(rest):
                break
            tuned = _tune(balance, rng, rest)
        if best.tried:
            break
    if best.known.mean() < NEARLY_ALL:
        best = max([best, *_weigh_most(scales, everything, rng)], key=lambda found: int(found.known.sum()))
    return best


def _weigh_most(scales: Scales, everything: Cells, rng: np.random.Generator) -> list[Weighed]:
    """Weigh in a unit that nearly all cells share, and set the others aside; nothing where there is no such unit."""
    for _ in range(BASES):
        balance = Balance(scales, lay_base(scales, rng))
        if len(balance.base.above) <= FEW:
            break
        located = locate(scales, balance.base, lightest(scales, balance.base, rng, FIRST), rng)
        if located is None:
            continue
        balance.restart_coarse(located)
        balance.weigh(everything, rng)
        again = True
        for _ in range(ROUNDS):
            misfits = balance.misfits(everything, rng)
            if len(misfits):
                if not balance.set_aside(misfits):
                    break
            elif tried := balance.tried(everything, rng):
                return [balance.weighed(tried)]
            elif again:  # others were weighed by them
                balance.weigh_again(everything, rng)
                again = False
            else:
                break
    return []


def _tune(balance: Balance, rng: np.random.Generator, weighed: Cells | None = None) -> bool:
    """Find a unit that whole numbers of a sample of cells have in common; False where there is none.

    `weighed`: cells that are no whole numbers of the unit so far; the sample is chosen from among them.
    """
    scales, base = balance.scales, balance.base
    first = lightest(scales, base, rng, FIRST)
    pilot = np.union1d(first, rng.permutation(base.above)[:PILOT])
    cells, guess = first, None
    for attempt in range(ATTEMPTS):
        if weighed is not None:
            if attempt < 2 and weigh_kinds(balance, weighed, rng) and balance.tried(weighed, rng):
                return True
            pilot = np.union1d(pilot, rng.permutation(base.above)[: 2 * len(pilot)])
            cells = _varied(balance, first, weighed, rng, EACH_COUNT[attempt % len(EACH_COUNT)])
            guess = np.maximum(balance.low[cells], 1).astype(np.float64)
        located = locate(scales, base, cells, rng, guess)
        if located is None:
            if weighed is None:
                return False
            continue
        balance.restart(located)
        balance.weigh(pilot, rng)
        if balance.tried(pilot, rng):
            return True
        weighed = pilot
    return False


def _varied(balance: Balance, first: Cells, weighed: Cells, rng: np.random.Generator, each: int) -> Cells:
    """Some of the first cells, and the lightest of the others, at most `each` of a count as long as there are more."""
    mine = weighed[(balance.low[weighed] > 0) & (balance.base.signs[weighed] == 0)]
    others = rng.permutation(np.setdiff1d(mine, first))
    order = np.argsort(balance.low[others], kind="stable")
    counts = balance.low[others][order]
    turn = np.empty(len(others), np.int64)
    turn[order] = np.arange(len(others)) - np.searchsorted(counts, counts)
    some = others[np.lexsort([balance.low[others], turn // each])][: FIRST - FIRST // 3]
    return np.concatenate([rng.permutation(first)[: FIRST // 3], some])
