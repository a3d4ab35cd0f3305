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
SURE: Final = 9.0
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

    `copies` of each query at a time, more where they do not settle it; by default 25/ε₂², a standard error of about a
    fifth of a count. ε₂ should not be above 1.5: the ruler then is too short for whole numbers. Cells beyond the reach
    of all weights get the best lower limit as a guess.
    """
    n = oracle.cells
    ruler = _Ruler(oracle)
    t = copies or int(np.ceil(25 * ruler.unit**2)) + 20
    base = _near(ruler, rng)
    zero = ruler.read_base(base)
    # Of the cell in the query: those in S are taken off, the others put on.
    sign = np.where(base == 1, -1, 1)
    guess, known, near = np.zeros(n, np.int64), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    # Where readings far from z place a count, to aim the next query; a count is never settled by these.
    lower, upper = np.zeros(n), np.full(n, np.inf)
    readings = _Readings(sign, oracle.epsilon2, t)
    before = np.full(n, np.nan)
    for _ in range(ROUNDS):
        pending = np.flatnonzero(~known)
        if not len(pending):
            break
        weights = Weights(base, known, guess)
        # What must be added to S to bring the cell to z.
        aims = np.rint(-sign[pending] * guess[pending] - zero).astype(np.int64)
        start, hits = np.zeros(n), np.zeros(n, np.int64)
        for inside in (0, 1):
            here = base[pending] == inside
            for aim in np.unique(aims[here]):
                cells = pending[here & (aims == aim)]
                direction = 1 if aim > 0 else -1
                signs, w = weights.offset(direction, min(abs(int(aim)), weights.most(direction)))
                start[cells] = zero + direction * w
                hits[cells] = ruler.hits(signs, cells, 1 - 2 * inside, t)
        readings.add(start, hits)
        y = ruler.distance(hits[pending], t)
        at = -sign[pending] * start[pending]  # the count that would be read as z itself
        close = np.abs(y) <= ruler.reach
        guess[pending[close & ~near[pending]]] = np.rint(at + sign[pending] * y).astype(np.int64)[
            close & ~near[pending]
        ]
        near[pending] |= close
        above, below = ~close & (sign[pending] * y > 0), ~close & (sign[pending] * y < 0)
        lower[pending[above]] = np.maximum(lower[pending[above]], at[above])
        upper[pending[below]] = np.minimum(upper[pending[below]], at[below])
        far = pending[~near[pending]]
        wide = upper[far] == np.inf
        guess[far[wide]] = np.ceil(2 * lower[far[wide]] + ruler.unit).astype(np.int64)
        guess[far[~wide]] = np.maximum((lower[far[~wide]] + upper[far[~wide]]) / 2, 0).astype(np.int64)
        read = pending[near[pending]]
        guess[read], sure = readings.likeliest(read, np.maximum(guess[read], 0))
        known[read[sure]] = True
        if not len(read) and np.array_equal(start[pending], before[pending]):
            break  # no weight brings any of them nearer
        before = start
    guess[~known & ~near] = np.ceil(lower[~known & ~near]).astype(np.int64)
    return Reconstruction(guess, oracle.queries)


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
        """The likeliest counts, found from a guess, and whether each is `SURE`."""
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
        return best, margin >= SURE

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
