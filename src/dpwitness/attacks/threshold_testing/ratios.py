"""Histograms of a few different counts, each of many cells: ratios of counts, by sums of many cells alike.

Seventeen cells of 7 are less than three of 40, and eighteen are more; so a count's ratio r to that of a first kind of
cell, and the gap t between the base and the threshold, both in units of the first count, lie in a polygon that each
answer cuts: a cells of the one kind and b of the other are ⊤ exactly if a·r + b ≥ t.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.balance import Balance
from dpwitness.attacks.threshold_testing.questions import Cells
from dpwitness.attacks.threshold_testing.weights import Weights

__all__ = ["kinds_stand", "weigh_kinds"]

Floats = NDArray[np.float64]

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
