"""Relative counts of a few cells, from signed sums that are likely to lie near the threshold, and their common unit.

Nothing is known of the cells but that each is positive. Their counts and the gap g between the base and the threshold,
relative to one of the cells, have a normal distribution as a prior; each query is a signed sum of the cells that the
distribution puts about as likely above g as below, so that each answer halves what is possible, and the distribution is
brought up to date by the moments of the half that is left (assumed-density filtering). As soon as whole numbers
explain all answers they are tried on fresh sums next to the threshold. They are known up to a common factor: answers
say nothing of it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from dpwitness.attacks.threshold_testing.comparing import TOGETHER, Base, Scales
from dpwitness.attacks.threshold_testing.questions import Cells, Signs
from dpwitness.attacks.threshold_testing.weights import signings

__all__ = ["Located", "locate"]

Floats = NDArray[np.float64]

#: Cells of which all 3^k signed sums are made, to complete random ones.
COMPLETED: Final = 8
PARTIALS: Final = 256
#: Fresh sums next to the threshold, all of which whole numbers must predict.
FRESH: Final = 40
#: Queries between two attempts at whole numbers.
EACH: Final = 16
MOST_UNITS: Final = 20_000
#: Of a sum's standard deviation, and how many of them its mean may lie on the wrong side: beyond, the moments are
#: those of rounding errors.
NARROW: Final = 1e-6
#: So many standard deviations from the gap a sum is about as likely above it as below.
EVEN: Final = 0.15
SURPRISE: Final = 6.0
#: By how much the covariance is widened before answers are learnt again, and how often at a time.
WIDER: Final = 1.5
PASSES: Final = 10


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Located:
    """Counts of some cells in their common unit, and what the base lacks of the threshold, rounded up.

    The base plus a signed sum of value s of the cells is ⊤ exactly if s ≥ `gap`.
    """

    cells: Cells
    counts: Cells
    gap: int


class _Sums:
    """Signed sums of the cells on top of the base, and all answers so far."""

    def __init__(self, scales: Scales, base: Base, cells: Cells) -> None:
        self._scales, self._base, self.cells = scales, base, cells
        self.asked = np.zeros((0, len(cells)), np.int8)
        self.above = np.zeros(0, np.bool_)

    def ask(self, signs: Signs) -> NDArray[np.bool_]:
        """Which of the sums, coefficients of shape (sums, cells), are above."""
        questions = np.repeat(self._base.signs[None], len(signs), axis=0)
        questions[:, self.cells] = signs
        answers = self._scales.above(questions)
        self.asked, self.above = np.vstack([self.asked, signs]), np.append(self.above, answers)
        return answers

    def separated(self, counts: Cells) -> tuple[int, int] | None:
        """The largest sum below and the least above, if these counts explain all answers."""
        sums = self.asked.astype(np.int64) @ counts
        low, high = max(0, sums[~self.above].max(initial=0)), sums[self.above].min(initial=np.iinfo(np.int64).max)
        return (int(low), int(high)) if low < high else None


def near(values: Floats, target: float, rng: np.random.Generator) -> tuple[Signs, Floats]:
    """Many signed sums of the values near a target: coefficients, shape (candidates, cells), and the sums."""
    n = len(values)
    order = rng.permutation(n)
    done, free = order[:COMPLETED], order[COMPLETED:]
    codes = signings(len(done))
    sums = codes @ values[done]
    rank = np.argsort(sums, kind="stable")
    sums = sums[rank]
    partial = rng.integers(-1, 2, (PARTIALS if len(free) else 1, len(free)), np.int8)
    # Sums near 0 of cells that are nearly alike have about as many +1 as −1, and do not tell counts that are all too
    # large by as much. Heavy cells against light ones need more of these, and do.
    against = rng.random(len(partial)) < 0.5
    partial[against] = np.abs(partial[against]) * np.where(values[free] > np.median(values), -1, 1).astype(np.int8)
    partial[::2] *= -1
    part = partial @ values[free]
    place = np.searchsorted(sums, target - part)
    signs, found = [], []
    for at in (place - 1, place):
        at = np.clip(at, 0, len(sums) - 1)
        # Among equal sums any.
        row = np.empty((len(part), n), np.int8)
        row[:, free], row[:, done] = partial, codes[rank[at]]
        signs.append(row)
        found.append(part + sums[at])
    return np.vstack(signs), np.concatenate(found)


class _Belief:
    """Mean and covariance of the counts and the gap, shape (cells + 1,), relative to a cell whose count is exact."""

    def __init__(self, mean: Floats, spread: Floats) -> None:
        self.mean, self.covariance = mean, np.diag(spread**2)
        self._widest = float(np.trace(self.covariance))

    def questions(self, rng: np.random.Generator, number: int) -> Signs:
        """Signed sums that are each about as likely above the gap as below, shape (number, cells)."""
        signs, sums = near(self.mean[:-1], self.mean[-1], rng)
        offset = np.abs(sums - self.mean[-1])
        best = np.argsort(offset)[: 4 * number + 28]
        rows = np.hstack([signs[best], -np.ones((len(best), 1))])
        spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, self.covariance, rows), NARROW**2))
        ratio = offset[best] / spread
        # Those that are about even, the widest first; then the others.
        chosen = np.lexsort([np.where(ratio <= EVEN, -spread, ratio), ratio > EVEN])[:number]
        return np.asarray(signs[best[chosen]])

    def learn(self, signs: Signs, above: bool) -> None:
        """The moments of the half-space that the answer leaves."""
        row = np.append(signs.astype(np.float64), -1.0)
        side = self.covariance @ row
        variance = float(row @ side)
        if not variance > NARROW**2:
            return  # as good as known, or a rounding error
        s = np.sqrt(variance)
        y = 1.0 if above else -1.0
        a = max(y * float(row @ self.mean) / s, -SURPRISE)
        ratio = float(np.exp(-a * a / 2 - log_ndtr(a))) / np.sqrt(2 * np.pi)
        self.mean = self.mean + y * ratio * side / s
        self.covariance = self.covariance - np.outer(side, side) * (ratio * (ratio + a) / s**2)

    def learn_all(self, signs: Signs, above: NDArray[np.bool_]) -> None:
        """One answer after the other."""
        for row, answer in zip(signs, above, strict=True):
            self.learn(row, bool(answer))

    def relearn(self, sums: "_Sums") -> None:
        """Widen, and learn the answers again that the mean contradicts, until it contradicts none or few rounds are left.

        The normal distribution comes out too narrow now and then, and further queries would cut where nothing is.
        """
        for _ in range(PASSES):
            offset = sums.asked @ self.mean[:-1] - self.mean[-1]
            wrong = np.flatnonzero((offset >= 0) != sums.above)
            if not len(wrong):
                return
            if np.trace(self.covariance) < self._widest:
                self.covariance *= WIDER
            self.learn_all(sums.asked[wrong], sums.above[wrong])

    def whole(self, sums: _Sums) -> tuple[Cells, tuple[int, int]] | None:
        """Whole numbers that explain all answers, in the largest unit that does."""
        mean, spread = self.mean[:-1], np.sqrt(np.maximum(np.diag(self.covariance)[:-1], 0))
        most = int(min(0.3 / max(float(np.median(spread)), 1e-9), MOST_UNITS))
        units = np.arange(1, most + 1)[:, None]
        scaled = units * mean
        counts = np.rint(scaled)
        misfit = np.mean(((scaled - counts) / (units * spread + 0.05)) ** 2, axis=1)
        good = np.flatnonzero((misfit < 3) & (counts > 0).all(axis=1))
        for k in good[:20]:
            found = counts[k].astype(np.int64)
            limits = sums.separated(found)
            if limits:
                return found, limits
        return None


def locate(
    scales: Scales, base: Base, cells: Cells, rng: np.random.Generator, guess: Floats | None = None
) -> Located | None:
    """Counts of the cells, shape (k,), all of `base.above`; None where the answers do not determine them.

    `guess`: about what the counts are, in any unit; the first one is taken for exact. By default all are alike.
    """
    k = len(cells)
    sums = _Sums(scales, base, cells)
    if guess is None:
        belief = _Belief(np.append(np.ones(k), 0.5), np.append(np.full(k, 0.6), 0.4))
    else:
        belief = _Belief(
            np.append(guess / guess[0], 0.5 / guess[0]), np.append(0.7 + 0.1 * guess, 0.6) / guess[0]
        )
    belief.covariance[0, 0] = 0
    for asked in range(TOGETHER, 40 * k + 200, TOGETHER):
        signs = belief.questions(rng, TOGETHER)
        belief.learn_all(signs, sums.ask(signs))
        if asked % EACH == 0:
            belief.relearn(sums)
            found = belief.whole(sums)
            if found is not None:
                gap = _confirmed(sums, belief, found, rng)
                if gap is not None:
                    return Located(cells=cells, counts=found[0], gap=gap)
    return None


def _confirmed(
    sums: _Sums, belief: _Belief, found: tuple[Cells, tuple[int, int]], rng: np.random.Generator
) -> int | None:
    """Find the gap among whole numbers, then try sums next to it; None where one is not as predicted."""
    counts, (low, high) = found
    values = counts.astype(np.float64)
    while high - low > 1:
        target = (low + high) // 2
        signs, made = near(values, target, rng)
        inside = np.flatnonzero((made > low) & (made < high))
        if not len(inside):
            return None
        at = inside[np.argmin(np.abs(made[inside] - target))]
        above = sums.ask(signs[at : at + 1])
        belief.learn_all(signs[at : at + 1], above)
        low, high = (low, int(made[at])) if above[0] else (int(made[at]), high)
    fresh = np.vstack([_exact(values, target, FRESH // 2, rng) for target in (low, high)])
    above = sums.ask(fresh)
    if np.array_equal(above, fresh.astype(np.int64) @ counts == high) and len(fresh) >= FRESH // 2:
        return high
    belief.learn_all(fresh, above)
    return None


def _exact(values: Floats, target: int, number: int, rng: np.random.Generator) -> Signs:
    """Signed sums of exactly that value, as different as they come."""
    rows = []
    for _ in range(4):
        signs, made = near(values, target, rng)
        rows.append(signs[made == target])
    found = np.unique(np.vstack(rows), axis=0)
    return np.asarray(rng.permutation(found)[:number])
