"""Reference cells: a few cells' counts relative to each other, and a unit of which all these counts are multiples.

The cells' counts are positive. Relative to one of these counts, they and the gap g between the base sum and the
threshold have a normal distribution as a prior. Each query is a signed sum of the cells that is about as likely above g
as below, and the distribution is updated by the moments of the half-space that the answer leaves (assumed-density
filtering). As soon as whole numbers explain all answers, fresh sums next to the threshold test them. Counts are found
up to a common factor, which answers without query noise do not show.
"""

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.special import log_ndtr

from dpwitness.arrays import Booleans, Floats
from dpwitness.reconstruction.threshold_testing.comparison import BaseSum, ThresholdComparison, signings
from dpwitness.reconstruction.threshold_testing.oracle import CellIntegers, Signs

#: The standard deviation of a sum, relative to the first cell's count, below which the moments are rounding errors.
LEAST_DEVIATION: Final = 1e-7
#: The number of random sums that tabulated sums complete: with 256 sums and counts of 10⁵, no question would be about
#: as likely above the gap as below.
PARTIAL_SUMS: Final = 1 << 12
#: The largest tried count of the first cell, in the unit of all cells: larger counts are within rounding errors.
LARGEST_UNIT: Final = 1 << 20
#: The number of fresh sums on each side of the gap, and the least number of both together, that test the cells' counts.
TESTED_SUMS: Final = 20


def sums_near(values: Floats, target: float, rng: np.random.Generator) -> tuple[Signs, Floats]:
    """Many signed sums of the values near a target: coefficients, shape (candidates, cells), and the sums."""
    n = len(values)
    order = rng.permutation(n)
    split = min(8, (n + 1) // 2)  # number of cells whose signed sums, at most 3⁸, complete random sums of other cells
    completed, free = order[:split], order[split:]
    codes = signings(split)
    sums = codes @ values[completed]
    rank = np.argsort(sums, kind="stable")
    sums = sums[rank]
    partial = rng.integers(-1, 2, (PARTIAL_SUMS if len(free) else 1, len(free)), np.int8)
    # Sums near 0 of nearly equal cells have about as many +1 as −1, and do not show counts that are all too large by
    # the same number. Sums of large cells minus small cells need more −1, and show them.
    against = rng.random(len(partial)) < 0.5
    partial[against] = np.abs(partial[against]) * np.where(values[free] > np.median(values), -1, 1).astype(np.int8)
    partial[::2] *= -1
    part = partial @ values[free]
    place = np.searchsorted(sums, target - part)
    at = np.concatenate([np.clip(place - 1, 0, None), np.clip(place, None, len(sums) - 1)])
    signs = np.empty((len(at), n), np.int8)
    signs[:, free], signs[:, completed] = np.tile(partial, (2, 1)), codes[rank[at]]
    return signs, np.tile(part, 2) + sums[at]


def sums_equal_to(values: Floats, target: int, number: int, rng: np.random.Generator) -> Signs:
    """Coefficients of at most `number` different signed sums that equal the target, in random order."""
    signs, sums = sums_near(values, target, rng)
    return np.asarray(rng.permutation(np.unique(signs[sums == target], axis=0))[:number])


class Posterior:
    """The mean and covariance of counts and gap, cells + 1 numbers relative to the first count, which is exact.

    `root` is a matrix R, shape (cells + 1, cells + 1), of which R Rᵀ is the covariance. Its updates are Potter's
    (Battin, Astronautical Guidance, 1964): a covariance that is itself updated ceases to be positive. `asked` and
    `above`: all signed sums so far, shape (sums, cells), and whether each reached the gap.
    """

    def __init__(self, mean: Floats, deviation: Floats) -> None:
        self.mean, self.root = mean, np.diag(deviation)
        self.asked, self.above = np.zeros((0, len(mean) - 1), np.int8), np.zeros(0, np.bool_)
        self._widest = float(np.sum(self.root**2))
        self.root[0, 0] = 0

    @property
    def deviation(self) -> Floats:
        """The standard deviation of each cell's count, shape (cells,)."""
        return np.asarray(np.linalg.norm(self.root[:-1], axis=1))

    def questions(self, rng: np.random.Generator, number: int) -> Signs:
        """Signed sums that are each about as likely above the gap as below, shape (number, cells)."""
        signs, sums = sums_near(self.mean[:-1], self.mean[-1], rng)
        offset = np.abs(sums - self.mean[-1])
        best = np.argsort(offset, kind="stable")[: 4 * number + 28]
        rows = np.hstack([signs[best], -np.ones((len(best), 1))])
        deviation = np.maximum(np.linalg.norm(rows @ self.root, axis=1), LEAST_DEVIATION)
        ratio = offset[best] / deviation
        even = ratio <= 0.15  # standard deviations: an even sum is above the gap with probability 44 to 56 %
        # Even sums come first, in descending order of their standard deviation.
        chosen = np.lexsort([np.where(even, -deviation, ratio), ~even])[:number]
        return np.asarray(signs[best[chosen]])

    def learn(self, signs: Signs, above: Booleans) -> None:
        """Keep the answers to sums, and condition on them."""
        self.asked, self.above = np.vstack([self.asked, signs]), np.append(self.above, above)
        self._update(signs, above)

    def _update(self, signs: Signs, above: Booleans) -> None:
        """Condition on one answer after another, by the moments of the half-space that the answer leaves."""
        rows = np.hstack([signs, -np.ones((len(signs), 1))])
        for row, side in zip(rows, np.where(above, 1.0, -1.0).tolist(), strict=True):
            direction = row @ self.root
            deviation = math.sqrt(direction @ direction)
            if deviation < LEAST_DEVIATION:
                continue  # the sum is known up to rounding errors
            direction /= deviation
            # A mean on the wrong side counts as at most 6 standard deviations from the gap.
            a = max(side * float(row @ self.mean) / deviation, -6.0)
            ratio = math.exp(-a * a / 2 - log_ndtr(a)) / math.sqrt(2 * math.pi)
            towards = self.root @ direction
            self.mean = self.mean + side * ratio * towards
            left = max(1 - ratio * (ratio + a), 0.0)  # the share of the sum's variance that is left
            self.root = self.root - towards[:, None] * ((1 - math.sqrt(left)) * direction)

    def learn_contradicted(self) -> bool:
        """Widen the distribution and use again the answers that its mean contradicts; False if 10 rounds leave some.

        The normal distribution is sometimes too narrow, and further queries would then test impossible values.
        """
        for _ in range(10):
            offset = self.asked @ self.mean[:-1] - self.mean[-1]
            wrong = np.flatnonzero((offset >= 0) != self.above)
            if not len(wrong):
                return True
            if np.sum(self.root**2) < self._widest:
                self.root *= math.sqrt(1.5)
            self._update(self.asked[wrong], self.above[wrong])
        return False

    def whole_numbers(self) -> tuple[CellIntegers, tuple[int, int]] | None:
        """Whole counts in the largest unit that explains all answers, and the limits of the gap; else None."""
        mean, deviation = self.mean[:-1], self.deviation
        units = np.arange(1.0, 1 + int(min(0.3 / max(float(np.median(deviation)), 1e-9), LARGEST_UNIT)))
        misfit = np.zeros(len(units))
        # The first cell is exact. A right unit has a misfit of about 1 a cell, a wrong one of up to 33.
        for number, cell in enumerate(np.argsort(deviation, kind="stable")[1:], 1):
            scaled = units * mean[cell]
            misfit += ((scaled - np.rint(scaled)) / (units * deviation[cell] + 0.05)) ** 2
            kept = (misfit < min(9 + 3 * number, 3 * len(mean))) & (scaled > 0.5)
            units, misfit = units[kept], misfit[kept]
        for unit in units[:20]:
            counts = np.rint(unit * mean).astype(np.int64)
            sums = self.asked.astype(np.int64) @ counts
            low, high = max(0, sums[~self.above].max(initial=0)), sums[self.above].min(initial=np.iinfo(np.int64).max)
            if low < high:
                return counts, (int(low), int(high))
        return None


def find_reference_cells(
    comparison: ThresholdComparison, base: BaseSum, cells: CellIntegers, rng: np.random.Generator
) -> tuple[CellIntegers, int] | None:
    """The counts of `cells`, shape (k,), in their common unit, and the gap between base sum and threshold, rounded up.

    The base sum plus a signed sum s of the cells, all from `base.above`, is ⊤ exactly if s ≥ gap. None where the
    answers do not determine the counts.
    """
    k = len(cells)
    posterior = Posterior(np.append(np.ones(k), 0.5), np.append(np.full(k, 0.6), 0.4))

    def ask(signs: Signs) -> Booleans:
        questions = np.repeat(base.signs[None], len(signs), axis=0)
        questions[:, cells] = signs
        above = comparison.above(questions)
        posterior.learn(signs, above)
        return above

    together = min(comparison.oracle.together, k)
    for asked in range(together, 60 * k + 200, together):
        ask(posterior.questions(rng, together))
        if asked % 16 < together and posterior.learn_contradicted():  # every 16 queries
            found = posterior.whole_numbers()
            if found is not None and (gap := _confirmed_gap(ask, *found, rng)) is not None:
                return found[0], gap
    return None


def _confirmed_gap(
    ask: Callable[[Signs], Booleans], counts: CellIntegers, limits: tuple[int, int], rng: np.random.Generator
) -> int | None:
    """Find the whole gap within its limits, then test sums next to it; None where an answer is not as predicted."""
    values, (low, high) = counts.astype(np.float64), limits
    while high - low > 1:
        target = (low + high) // 2
        signs, sums = sums_near(values, target, rng)
        inside = np.flatnonzero((sums > low) & (sums < high))
        if not len(inside):
            return None
        at = inside[np.argmin(np.abs(sums[inside] - target))]
        low, high = (low, int(sums[at])) if ask(signs[at : at + 1])[0] else (int(sums[at]), high)
    fresh = np.vstack([sums_equal_to(values, target, TESTED_SUMS, rng) for target in (low, high)])
    predicted = np.array_equal(ask(fresh), fresh.astype(np.int64) @ counts == high)
    return high if predicted and len(fresh) >= TESTED_SUMS else None
