"""What is thought of the counts of a few cells, relative to one of them, while signed sums of them are compared.

A normal distribution, brought up to date by the moments of the half-space that each answer leaves (assumed-density
filtering).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from dpwitness.attacks.threshold_testing.questions import Cells, Signs
from dpwitness.attacks.threshold_testing.sums import Sums, near

__all__ = ["Belief"]

Floats = NDArray[np.float64]

MOST_UNITS: Final = 20_000
#: Of a sum's standard deviation, and how many of them its mean may lie on the wrong side: beyond, the moments are
#: those of rounding errors.
NARROW: Final = 1e-6
SURPRISE: Final = 6.0
#: So many standard deviations from the gap a sum is about as likely above it as below.
EVEN: Final = 0.15
#: By how much the covariance is widened before answers are learnt again, and how often at a time.
WIDER: Final = 1.5
PASSES: Final = 10


class Belief:
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

    def relearn(self, sums: Sums) -> None:
        """Widen, and learn the answers again that the mean contradicts, until there is none, or a few rounds are over.

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

    def whole(self, sums: Sums) -> tuple[Cells, tuple[int, int]] | None:
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
