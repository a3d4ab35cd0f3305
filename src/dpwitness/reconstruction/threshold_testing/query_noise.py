"""Query noise as a ruler: how often a query is ⊤ measures how far it is from the noisy threshold.

With finite ε₂ the answer to a query of value q is ⊤ with probability F(ε₂(q − z)), F the Laplace distribution
function, anew for each copy. The share of ⊤'s among t copies therefore measures q − z, with standard error
√((2·exp(ε₂|q − z|) − 1)/t)/ε₂, wherever q is within a few 1/ε₂ of z. Theorem 3.5's majority throws this away: it keeps
the sign of q − z alone.

What readings with query noise say of counts: the likeliest ones, and how clearly they stand out.

Weighing through private threshold testing with query noise: the noise turns each query into a ruler.

The base need only come near the noisy threshold, the noise itself sets the scale (see `ruler`), and cells already known
bring larger ones into the ruler's reach.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.threshold_testing.oracle import Cells, Queries, Signs
from dpwitness.reconstruction.threshold_testing.relative_counts import Scales, Weights, lay_base, lightest, locate
from dpwitness.reconstruction.threshold_testing.theory import MOST_COPIES
from dpwitness.reconstruction.threshold_testing.weighing import random_sum

Floats = NDArray[np.float64]

#: Copies of each query by which the base is laid.
ROUGH: Final = 15
#: Standard error of the base's own reading, in counts: small beside the half count that rounding allows.
BASE_ERROR: Final = 0.02
#: Standard error, in counts, of the reading of the empty sum that decides the sense.
SENSE_ERROR: Final = 0.05
#: Readings further than this from z say only on which side z is: in 1/ε₂.
REACH: Final = 2.0
#: From this ε₂ on, ln 2/ε₂, by which F falls from 1/2 to 1/4, is at most a quarter of a count.
SHARP: Final = 4 * float(np.log(2))
#: With so many, shares that differ by 1/8 from the cut stand 6 standard errors from it.
SHARP_COPIES: Final = 576


class Ruler:
    """Readings of q − z, turned round where z is negative."""

    def __init__(self, oracle: Queries, rng: np.random.Generator) -> None:
        self.oracle = oracle
        self.unit = 1 / oracle.noise.epsilon2
        self.reach = REACH * self.unit
        self.copies(BASE_ERROR)  # refused before anything is asked, not after it
        # In a sense in which z is positive, or about 0; the base is kept a little below.
        negated = Scales(oracle, copies=self.copies(SENSE_ERROR)).negated
        self.sense = -1 if negated else 1
        self.laid = lay_base(Scales(oracle, copies=ROUGH, cut=0.25, negated=negated), rng)
        self.base = self.laid.signs

    def copies(self, error: float) -> int:
        """How many copies read a query at z with that standard error, in counts.

        Raises `InvalidParameter` for more than 10^12.
        """
        ratio = self.unit / error
        if not ratio * ratio <= MOST_COPIES:
            raise InvalidParameter(
                f"epsilon2={self.oracle.noise.epsilon2:g} is too small: to read a query takes {ratio * ratio:.2g} "
                "copies of it, more than 10^12; give a larger one"
            )
        return int(np.ceil(ratio * ratio))

    def hits(self, signs: Signs, cells: Cells, change: int, copies: int) -> Cells:
        """How many copies are above, for S with `change` added to the coefficient of one cell each."""
        hits = self.oracle.ask_each(self.sense * signs, cells, self.sense * change, copies)
        return hits if self.sense > 0 else copies - hits

    def distance(self, hits: Cells, copies: int) -> Floats:
        """Estimate q − z."""
        share = (hits + 0.5) / (copies + 1)
        return np.asarray(np.sign(share - 0.5) * -np.log(2 * np.minimum(share, 1 - share)) * self.unit)

    def read(self, signs: Signs) -> float:
        """The reading of a sum, to `BASE_ERROR` where it is near z."""
        copies = self.copies(BASE_ERROR)
        return float(self.distance(self.hits(signs, np.zeros(1, np.int64), 0, copies), copies)[0])

    def read_base(self) -> float:
        """The reading of S itself, to `BASE_ERROR`."""
        nowhere = np.zeros(1, np.int64)
        copies = self.copies(BASE_ERROR)
        y = self.distance(self.hits(self.base, nowhere, 0, copies), copies)[0]
        # The second time with as many copies as its distance from z asks for.
        copies = int(min(copies * (2 * np.exp(abs(y) / self.unit) - 1), MOST_COPIES))
        return float(self.distance(self.hits(self.base, nowhere, 0, copies), copies)[0])


def votings(ruler: Ruler, copies: int | None = None) -> Iterator[Scales]:
    """Scales that take the query noise away, a vote among copies of each query; one of them does.

    A query counts as above where more copies say so than would for one half-way between the whole numbers around z.
    Shares of whole-numbered queries lie clearly on either side of that, even where z is nearly whole and a majority,
    that is a cut at 1/2, would not tell. Where the base is too far from z to be read, one of two cuts half a count
    apart is at least a quarter of a count from all whole numbers. From ε₂ = 4·ln 2 on, F rises from 1/4 to 3/4 within
    half a count, and of cuts there one has a whole number nowhere between 1/8 and 1/2, or 1/2 and 7/8.

    Parameters
    ----------
    ruler
        Of the oracle.
    copies
        By default so many that whole numbers stand 6 standard errors from the cut.
    """
    epsilon2 = ruler.oracle.noise.epsilon2
    if epsilon2 >= SHARP:  # the noise is so small that copies that tell two places in it apart grow with exp(ε₂)
        for cut in (0.25, 0.75):
            yield Scales(ruler.oracle, copies=copies or SHARP_COPIES, cut=cut, negated=ruler.sense < 0)
        return
    y = ruler.read_base()
    near = abs(y) <= REACH * ruler.unit
    # The base counts as below, even where it was laid a little above.
    for shift in (y + 0.5 + max(0.0, np.floor(-y)),) if near else (0.25, -0.25):
        x = epsilon2 * shift
        cut = float(np.exp(x) / 2 if x < 0 else 1 - np.exp(-x) / 2)
        # Within a count of z, F rises by at least ε₂ exp(−ε₂)/2 a count.
        rise = epsilon2 * np.exp(-epsilon2) / 2 * (0.5 if near else 0.25)
        yield Scales(ruler.oracle, copies=copies or int(np.ceil((3 / rise) ** 2)), cut=cut, negated=ruler.sense < 0)


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
