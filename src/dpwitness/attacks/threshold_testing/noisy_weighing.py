"""Weighing through private threshold testing with query noise: the noise turns each query into a ruler.

The base need only come near the noisy threshold, the noise itself sets the scale (see `ruler`), and cells already known
bring larger ones into the ruler's reach.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.balance import random_sum
from dpwitness.attacks.threshold_testing.comparing import lightest
from dpwitness.attacks.threshold_testing.localising import locate
from dpwitness.attacks.threshold_testing.oracle import Queries
from dpwitness.attacks.threshold_testing.questions import Cells, Signs
from dpwitness.attacks.threshold_testing.readings import Readings
from dpwitness.attacks.threshold_testing.ruler import Ruler, votings
from dpwitness.attacks.threshold_testing.weights import Weights

__all__ = ["NoisyWeighed", "weigh_noisy"]

Floats = NDArray[np.float64]

ROUNDS: Final = 1000
#: Known cells with which all others are read.
ENOUGH: Final = 64
#: Cells that are weighed against each other where none is light enough for the ruler.
FIRST: Final = 24
#: Fresh sums that try what was found, fewer of which say too little, and the standard error of each, in counts.
TRIALS: Final = 64
FEWEST_TRIALS: Final = 24
TRIAL_ERROR: Final = 0.07
#: Standard error of a cell's first reading.
WEIGHED_ERROR: Final = 0.2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NoisyWeighed:
    """Counts read with query noise.

    Parameters
    ----------
    guess
        Of each cell, shape (cells,); of those beyond the reach of all weights the best lower limit.
    known
        Which stand out from the next best.
    tried
        Fresh sums of all known cells near the threshold that were read as predicted; 0 where one was not.
    """

    guess: Cells
    known: NDArray[np.bool_]
    tried: int


def weigh_noisy(oracle: Queries, rng: np.random.Generator, copies: int | None = None) -> NoisyWeighed:
    """Read every cell's count through an oracle with query noise; see the module.

    Parameters
    ----------
    oracle
        Of ε₂ at most 1.5: with more the ruler is too short for whole numbers.
    rng
        For the order in which the base is laid, and for the sums that try what was found.
    copies
        Of each query at a time, more where they do not settle it; by default 25/ε₂², a standard error of about a fifth
        of a count.
    """
    ruler = Ruler(oracle, rng)
    t = copies or ruler.copies(WEIGHED_ERROR) + 20
    cells = _Weighed(ruler, ruler.base, zero=ruler.read_base(), copies=t)
    if not cells.read_all():
        # No cell is light enough for the ruler: some are weighed against each other first.
        cells.learn(*_first(ruler, rng, cells.zero))
        cells.read_all()
    guess = cells.guesses()
    return NoisyWeighed(guess=guess, known=cells.known, tried=cells.tried(rng))


def _first(ruler: Ruler, rng: np.random.Generator, zero: float) -> tuple[Cells, Cells]:
    """Some cells and their counts, found by votes in a unit of their own, which the ruler then reads; or none."""
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(ruler.laid.above) < 2:
        return nothing
    for scales in votings(ruler):
        located = locate(scales, ruler.laid, lightest(scales, ruler.laid, rng, FIRST), rng)
        if located is not None:
            break
    else:
        return nothing
    # The two sums next to z are one unit apart, and the first is 0 or found among signed sums of the cells.
    known, counts = np.zeros(len(ruler.base), np.bool_), np.zeros(len(ruler.base), np.int64)
    known[located.cells], counts[located.cells] = True, located.counts
    sums = [Weights(ruler.base, known, counts).nearest(located.gap - k) for k in (1, 0)]
    units = [(ruler.read(signs) - zero) / value for signs, value in sums if value]
    unit = round(units[-1]) if units else 0
    return (located.cells, unit * located.counts) if unit >= 1 else nothing


class _Weighed:
    """What is known of each cell: a guess, whether it is settled, and limits from readings far from z."""

    def __init__(self, ruler: Ruler, base: Signs, *, zero: float, copies: int) -> None:
        n = ruler.oracle.cells
        self._ruler, self._base, self.zero, self._copies = ruler, base, zero, copies
        # Of the cell in the query: those in S are taken off, the others put on.
        self._sign = np.where(base == 1, -1, 1)
        self._guess, self.known, self._near = np.zeros(n, np.int64), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        # Where readings far from z place a count, to aim the next query; a count is never settled by these.
        self._lower, self._upper = np.zeros(n), np.full(n, np.inf)
        self._readings = Readings(self._sign, ruler.oracle.noise.epsilon2, copies)

    def learn(self, cells: Cells, counts: Cells) -> None:
        """Take these cells' counts for known, and forget where the others were looked for."""
        self._guess[~self.known] = 0
        self._lower[:], self._upper[:] = 0.0, np.inf
        self._near[:] = False
        self._guess[cells], self.known[cells] = counts, True

    def read_all(self) -> bool:
        """Read cells until all are known, or no weight brings any of them nearer; whether all are known."""
        before = np.full(len(self.known), np.nan)
        for _ in range(ROUNDS):
            pending = np.flatnonzero(~self.known)
            if not len(pending):
                break
            if np.count_nonzero(self.known) < ENOUGH:
                pending = pending[:: len(pending) // (4 * ENOUGH) + 1]  # all of them wait for the first weights
            start, hits = self.ask(pending)
            self.place(pending, start[pending], hits[pending])
            read = self.settle(pending, start, hits)
            if not len(read) and np.array_equal(start[pending], before[pending]):
                break
            before = start
        return bool(self.known.all())

    def ask(self, pending: Cells) -> tuple[Floats, Cells]:
        """Weigh the cells against known ones: where each query stood without its cell, and how many copies were above.

        Both of shape (cells,); −1 copies for cells that are not pending.
        """
        n = len(self._guess)
        weights = Weights(self._base, self.known, self._guess)
        # What must be added to S to bring the cell to z.
        aims = np.rint(-self._sign[pending] * self._guess[pending] - self.zero).astype(np.int64)
        start, hits = np.zeros(n), np.full(n, -1)
        for inside in (0, 1):
            here = self._base[pending] == inside
            for aim in np.unique(aims[here]):
                cells = pending[here & (aims == aim)]
                signs, w = weights.nearest(int(aim))
                start[cells] = self.zero + w
                hits[cells] = self._ruler.hits(signs, cells, 1 - 2 * inside, self._copies)
        return start, hits

    def place(self, pending: Cells, start: Floats, hits: Cells) -> None:
        """Aim the next queries: from a reading near z, else from limits; `start`, `hits`: of the pending cells."""
        sign = self._sign[pending]
        y = self._ruler.distance(hits, self._copies)
        at = -sign * start  # the count that would be read as z itself
        close = np.abs(y) <= self._ruler.reach
        first = close & ~self._near[pending]
        self._guess[pending[first]] = np.rint(at + sign * y).astype(np.int64)[first]
        self._near[pending] |= close
        above, below = ~close & (sign * y > 0), ~close & (sign * y < 0)
        self._lower[pending[above]] = np.maximum(self._lower[pending[above]], at[above])
        self._upper[pending[below]] = np.minimum(self._upper[pending[below]], at[below])
        far = pending[~self._near[pending]]
        wide = self._upper[far] == np.inf
        open_, closed = far[wide], far[~wide]
        self._guess[open_] = np.ceil(2 * self._lower[open_] + self._ruler.unit).astype(np.int64)
        self._guess[closed] = np.maximum((self._lower[closed] + self._upper[closed]) / 2, 0).astype(np.int64)

    def settle(self, pending: Cells, start: Floats, hits: Cells) -> Cells:
        """Take the likeliest counts of the cells read near z; what stands out is known. Returns the cells read."""
        self._readings.add(start, hits)
        read = pending[self._near[pending]]
        self._guess[read], settled = self._readings.likeliest(read, np.maximum(self._guess[read], 0))
        self.known[read[settled]] = True
        return read

    def guesses(self) -> Cells:
        """The counts; lower limits for cells that were never read near z."""
        never = ~self.known & ~self._near
        self._guess[never] = np.ceil(self._lower[never]).astype(np.int64)
        return self._guess

    def tried(self, rng: np.random.Generator) -> int:
        """How many fresh random sums of all known cells, near z, are read as predicted; 0 where one is not."""
        ruler, everything = self._ruler, np.arange(len(self._guess))
        unit = max(1, int(np.gcd.reduce(self._guess[self.known], initial=0)))
        copies = ruler.copies(TRIAL_ERROR)
        rows, expected = [], []
        for trial in range(TRIALS):
            # Sums on both sides of z, so that a common factor is tried too.
            aim = unit * (math.floor(-self.zero / unit) + trial % 2)
            found = random_sum(self._base, self.known, self._guess, everything, aim, rng)
            if found is not None:
                rows.append(found)
                expected.append(self.zero + aim)
        if len(rows) < FEWEST_TRIALS:
            return 0
        hits = ruler.oracle.ask_all(ruler.sense * np.array(rows), copies)
        read = ruler.distance(hits if ruler.sense > 0 else copies - hits, copies)
        # Beyond that only the side is read well.
        reach = 0.7 * ruler.unit
        right = np.abs(np.clip(read, -reach, reach) - np.clip(expected, -reach, reach)) < 0.5
        return len(rows) if right.all() else 0
