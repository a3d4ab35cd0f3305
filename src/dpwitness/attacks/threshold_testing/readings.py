"""What readings with query noise say of counts: the likeliest ones, and how clearly they stand out."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.questions import Cells

__all__ = ["Readings"]

Floats = NDArray[np.float64]

#: A count is taken for known when it is this many nats likelier than the next best.
MARGIN: Final = 9.0


class Readings:
    """All readings of the cells not known yet, and the counts that they make likeliest.

    The log-likelihood of a count is concave, since F is log-concave: the likeliest count stands out if it beats its two
    neighbours.
    """

    def __init__(self, sign: Cells, epsilon2: float, copies: int) -> None:
        self._sign, self._epsilon2, self._copies = sign, epsilon2, copies
        self._rounds: list[tuple[Floats, Cells]] = []

    def add(self, start: Floats, hits: Cells) -> None:
        """One round: where the query without the cell stood, and how many copies were above."""
        self._rounds.append((start, hits))

    def likeliest(self, cells: Cells, guess: Cells) -> tuple[Cells, NDArray[np.bool_]]:
        """The likeliest counts, found from a guess, and whether each is likelier by `MARGIN`."""
        best = guess.copy()
        value = self._log_likelihood(cells, best)
        margin = np.full(len(cells), np.inf)
        for step in (1, -1):
            moving = np.arange(len(cells))
            while len(moving):
                moved = best[moving] + step
                there = np.where(moved < 0, -np.inf, self._log_likelihood(cells[moving], moved))
                better = there > value[moving]
                stopped = moving[~better]
                margin[stopped] = np.minimum(margin[stopped], value[stopped] - there[~better])
                moving = moving[better]
                best[moving], value[moving] = moved[better], there[better]
                margin[moving] = np.inf
        # A count that was walked down to has its upper neighbour behind it.
        margin = np.minimum(margin, value - self._log_likelihood(cells, best + 1))
        return best, margin >= MARGIN

    def _log_likelihood(self, cells: Cells, counts: Cells) -> Floats:
        total = np.zeros(len(cells))
        for start, hits in self._rounds:
            x = self._epsilon2 * (start[cells] + self._sign[cells] * counts)
            tail = np.exp(-np.abs(x)) / 2
            small, large = -np.abs(x) - np.log(2), np.log1p(-tail)
            k = hits[cells]
            reading = k * np.where(x < 0, small, large) + (self._copies - k) * np.where(x < 0, large, small)
            total += np.where(k >= 0, reading, 0.0)  # of the cells that were read in this round
        return total
