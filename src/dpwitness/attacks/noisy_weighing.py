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

from dpwitness.attacks.reconstruction import Reconstruction
from dpwitness.attacks.threshold_oracle import ThresholdOracle
from dpwitness.attacks.weighing import OPEN, Weights, widen_split

__all__ = ["even_cut", "weigh_noisy"]

Cells = NDArray[np.int64]
Floats = NDArray[np.float64]
Signs = NDArray[np.int8]

#: Copies of each query of the greedy pass.
ROUGH: Final = 15
#: Standard error of the base's own reading, in counts: small beside the half count that rounding allows.
BASE_ERROR: Final = 0.02
#: A count is taken for known when this many standard errors fit between its estimate and the next half count.
SURE: Final = 4.0
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

    def read(self, signs: Signs, cells: Cells, change: int, copies: int) -> tuple[Floats, Floats]:
        """Give q − z and its standard error, for S with `change` added to the coefficient of one cell each."""
        hits = self.oracle.ask_each(self.sense * signs, cells, self.sense * change, copies)
        return self._measure(hits if self.sense > 0 else copies - hits, copies)

    def read_base(self, signs: Signs) -> float:
        """The reading of S itself, to `BASE_ERROR`."""
        nowhere = np.zeros(1, np.int64)
        copies = int(np.ceil((self.unit / BASE_ERROR) ** 2))
        for _ in range(2):  # the second time with as many copies as its distance from z asks for
            y, error = self.read(signs, nowhere, 0, copies)
            if error[0] <= 1.1 * BASE_ERROR:
                break
            copies = int(min(copies * (error[0] / BASE_ERROR) ** 2, 1e12))
        return float(y[0])

    def _measure(self, hits: Cells, copies: int) -> tuple[Floats, Floats]:
        share = (hits + 0.5) / (copies + 1)
        tail = 2 * np.minimum(share, 1 - share)
        y = np.sign(share - 0.5) * -np.log(tail) * self.unit
        return y, np.sqrt((2 / tail - 1) / copies) * self.unit


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
    low, high = np.zeros(n, np.int64), np.full(n, OPEN)
    precision, weighted = np.zeros(n), np.zeros(n)
    for _ in range(ROUNDS):
        pending = np.flatnonzero(low != high)
        if not len(pending):
            break
        known = low == high
        weights = Weights(base, known, low)
        middle = _middles(low[pending], high[pending], precision[pending], weighted[pending], np.sort(low[known]))
        progress = False
        for inside in (0, 1):
            sign = -1 if inside else 1  # of the cell in the query
            here = base[pending] == inside
            # What must be added to S to bring the cell to z.
            aims = np.rint(-sign * middle - zero).astype(np.int64)
            for aim in np.unique(aims[here]):
                cells = pending[here & (aims == aim)]
                direction = 1 if aim > 0 else -1
                signs, w = weights.offset(direction, min(abs(int(aim)), weights.most(direction)))
                start = zero + direction * w
                y, error = ruler.read(signs, cells, sign, t)
                near = np.abs(y) <= ruler.reach
                precision[cells[near]] += error[near] ** -2
                weighted[cells[near]] += sign * (y[near] - start) * error[near] ** -2
                # Of far readings no more is believed than a quarter of the reach: 5 standard errors.
                least = np.maximum(low[cells], int(np.ceil(ruler.reach / 4 - sign * start)))
                most = np.minimum(high[cells], int(np.floor(-ruler.reach / 4 - sign * start)))
                above, below = ~near & (sign * y > 0), ~near & (sign * y < 0) & (most >= low[cells])
                progress |= bool(near.any() or np.any(least[above] > low[cells[above]]))
                progress |= bool(np.any(most[below] < high[cells[below]]))
                low[cells[above]], high[cells[below]] = least[above], most[below]
        _settle(pending, low, high, precision, weighted)
        if not progress:
            break
    return Reconstruction(low, oracle.queries)


def _near(ruler: _Ruler, rng: np.random.Generator) -> Signs:
    """S by a greedy pass, kept a little below z."""
    base = np.zeros(ruler.oracle.cells, np.int8)
    for cell in rng.permutation(len(base)):
        base[cell] = 1
        if ruler.share(base, ROUGH) > 0.25:
            base[cell] = 0
    return base


def _middles(low: Cells, high: Cells, precision: Floats, weighted: Floats, known: Cells) -> Floats:
    """The estimate of each cell's count where there is one, else a split of its limits."""
    middle = np.zeros(len(low))
    for i in range(len(low)):
        if precision[i]:
            middle[i] = weighted[i] / precision[i]
        elif high[i] != OPEN or low[i]:
            middle[i] = widen_split(int(low[i]), int(high[i]), known)
    return middle


def _settle(pending: Cells, low: Cells, high: Cells, precision: Floats, weighted: Floats) -> None:
    """Take a count for known where the estimate is sure."""
    read = pending[precision[pending] > 0]
    mean = weighted[read] / precision[read]
    nearest = np.maximum(np.rint(mean), 0)
    # Below 0 there is nothing to mistake a 0 for.
    off = np.where(nearest == 0, np.maximum(mean, -0.5), np.abs(mean - nearest))
    sure = SURE / np.sqrt(precision[read]) <= 0.5 - off
    low[read[sure]] = high[read[sure]] = nearest[sure].astype(np.int64)
