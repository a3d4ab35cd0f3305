"""Weighing through private threshold testing with query noise: the noise turns each query into a ruler.

With finite ε₂ the answer to a query of value q is ⊤ with probability F(ε₂(q − z)), F the Laplace distribution
function, anew for each copy. The share of ⊤'s among t copies therefore measures q − z, with standard error
√((2·exp(ε₂|q − z|) − 1)/t)/ε₂, wherever q is within a few 1/ε₂ of z. So S need only come near the noisy threshold, the
noise itself sets the scale, and cells already known bring larger ones into the ruler's reach. Theorem 3.5's majority
throws this away: it keeps the sign of q − z alone.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.oracle import ThresholdOracle
from dpwitness.attacks.threshold_testing.reconstruction import Reconstruction
from dpwitness.attacks.threshold_testing.weighing import Weights

__all__ = ["even_cut", "weigh_noisy"]

Cells = NDArray[np.int64]
Floats = NDArray[np.float64]
Signs = NDArray[np.int8]

#: Copies of each query of the greedy pass.
ROUGH: Final = 15
#: Standard error of the base's own reading, in counts: small beside the half count that rounding allows.
BASE_ERROR: Final = 0.02
#: A count is taken for known when it is this many nats likelier than the next best.
MARGIN: Final = 9.0
#: Readings further than this from z say only on which side z is: in 1/ε₂.
REACH: Final = 2.0
ROUNDS: Final = 1000


class _Ruler:
    """Readings of q − z, turned round where z is negative."""

    def __init__(self, oracle: ThresholdOracle) -> None:
        self.oracle = oracle
        self.unit = 1 / oracle.epsilon2
        self.reach = REACH * self.unit
        empty = np.zeros(oracle.cells, np.int8)
        self.sense = -1 if 2 * oracle.ask(empty, ROUGH) > ROUGH else 1

    def share(self, signs: Signs, copies: int) -> float:
        """The share of copies that say that q is above."""
        hits = self.oracle.ask(self.sense * signs, copies)
        return (hits if self.sense > 0 else copies - hits) / copies

    def hits(self, signs: Signs, cells: Cells, change: int, copies: int) -> Cells:
        """How many copies are above, for S with `change` added to the coefficient of one cell each."""
        hits = self.oracle.ask_each(self.sense * signs, cells, self.sense * change, copies)
        return hits if self.sense > 0 else copies - hits

    def distance(self, hits: Cells, copies: int) -> Floats:
        """Estimate q − z."""
        share = (hits + 0.5) / (copies + 1)
        return np.asarray(np.sign(share - 0.5) * -np.log(2 * np.minimum(share, 1 - share)) * self.unit)

    def read_base(self, signs: Signs) -> float:
        """The reading of S itself, to `BASE_ERROR`."""
        nowhere = np.zeros(1, np.int64)
        copies = int(np.ceil((self.unit / BASE_ERROR) ** 2))
        y = self.distance(self.hits(signs, nowhere, 0, copies), copies)[0]
        # The second time with as many copies as its distance from z asks for.
        copies = int(min(copies * (2 * np.exp(abs(y) / self.unit) - 1), 1e12))
        return float(self.distance(self.hits(signs, nowhere, 0, copies), copies)[0])


def even_cut(oracle: ThresholdOracle, rng: np.random.Generator) -> float:
    """The share of ⊤'s that a query half-way between the whole numbers around z would get.

    Shares of whole-numbered queries lie clearly on either side of it, even where z is nearly whole and a majority, that
    is a cut at 1/2, would not tell.
    """
    ruler = _Ruler(oracle)
    y = ruler.sense * ruler.read_base(_near(ruler, rng))
    shift = 0.5 - (-y) % 1.0
    x = oracle.epsilon2 * np.clip(shift, -REACH * ruler.unit, REACH * ruler.unit)
    return float(np.exp(x) / 2 if x < 0 else 1 - np.exp(-x) / 2)


def weigh_noisy(oracle: ThresholdOracle, rng: np.random.Generator, copies: int | None = None) -> Reconstruction:
    """Read every cell's count through an oracle with query noise; see the module.

    Parameters
    ----------
    oracle
        Of ε₂ at most 1.5: with more the ruler is too short for whole numbers.
    rng
        For the order of the greedy pass.
    copies
        Of each query at a time, more where they do not settle it; by default 25/ε₂², a standard error of about a fifth
        of a count.

    Returns
    -------
    Reconstruction
        Cells beyond the reach of all weights get the best lower limit as a guess.
    """
    ruler = _Ruler(oracle)
    t = copies or int(np.ceil(25 * ruler.unit**2)) + 20
    base = _near(ruler, rng)
    cells = _Weighed(ruler, base, zero=ruler.read_base(base), copies=t)
    before = np.full(oracle.cells, np.nan)
    for _ in range(ROUNDS):
        pending = np.flatnonzero(~cells.known)
        if not len(pending):
            break
        start, hits = cells.ask(pending)
        cells.place(pending, start[pending], hits[pending])
        read = cells.settle(pending, start, hits)
        if not len(read) and np.array_equal(start[pending], before[pending]):
            break  # no weight brings any of them nearer
        before = start
    return Reconstruction(cells.guesses(), oracle.queries)


class _Weighed:
    """What is known of each cell: a guess, whether it is settled, and limits from readings far from z."""

    def __init__(self, ruler: _Ruler, base: Signs, *, zero: float, copies: int) -> None:
        n = ruler.oracle.cells
        self._ruler, self._base, self._zero, self._copies = ruler, base, zero, copies
        # Of the cell in the query: those in S are taken off, the others put on.
        self._sign = np.where(base == 1, -1, 1)
        self._guess, self.known, self._near = np.zeros(n, np.int64), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        # Where readings far from z place a count, to aim the next query; a count is never settled by these.
        self._lower, self._upper = np.zeros(n), np.full(n, np.inf)
        self._readings = _Readings(self._sign, ruler.oracle.epsilon2, copies)

    def ask(self, pending: Cells) -> tuple[Floats, Cells]:
        """Weigh the cells against known ones: where each query stood without its cell, and how many copies were above.

        Both of shape (cells,), 0 for cells that are not pending.
        """
        n = len(self._guess)
        weights = Weights(self._base, self.known, self._guess)
        # What must be added to S to bring the cell to z.
        aims = np.rint(-self._sign[pending] * self._guess[pending] - self._zero).astype(np.int64)
        start, hits = np.zeros(n), np.zeros(n, np.int64)
        for inside in (0, 1):
            here = self._base[pending] == inside
            for aim in np.unique(aims[here]):
                cells = pending[here & (aims == aim)]
                direction = 1 if aim > 0 else -1
                signs, w = weights.offset(direction, min(abs(int(aim)), weights.most(direction)))
                start[cells] = self._zero + direction * w
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


class _Readings:
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
            total += k * np.where(x < 0, small, large) + (self._copies - k) * np.where(x < 0, large, small)
        return total


def _near(ruler: _Ruler, rng: np.random.Generator) -> Signs:
    """S by a greedy pass, kept a little below z."""
    base = np.zeros(ruler.oracle.cells, np.int8)
    for cell in rng.permutation(len(base)):
        base[cell] = 1
        if ruler.share(base, ROUGH) > 0.25:
            base[cell] = 0
    return base
