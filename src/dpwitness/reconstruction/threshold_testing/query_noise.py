"""The adaptive attack with query noise: how often a query is ⊤ measures its distance from the noisy threshold.

With finite ε₂ the answer to a query of value q is ⊤ with probability F(ε₂(q − z)), F the Laplace distribution
function, anew for each copy. The share of ⊤'s among t copies therefore measures q − z, with standard error
√((2·exp(ε₂|q − z|) − 1)/t)/ε₂, wherever q is within a few 1/ε₂ of z. Theorem 3.5's majority throws this away: it keeps
the sign of q − z alone. Here the noise itself is the unit, so that counts are found in people; the base sum need only
come near the threshold; and cells known already bring larger ones near it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpwitness.errors import InvalidParameter
from dpwitness.exact import laplace_cdf
from dpwitness.reconstruction.threshold_testing.comparison import (
    FRESH_SUMS,
    Comparison,
    ReferenceSums,
    find_base_sum,
    fresh_sums,
    smallest_cells,
)
from dpwitness.reconstruction.threshold_testing.oracle import Cells, Flags, Floats, Queries, Signs
from dpwitness.reconstruction.threshold_testing.reference_cells import find_reference_cells
from dpwitness.reconstruction.threshold_testing.theory import MOST_COPIES

#: Copies of each query by which the base sum is found.
ROUGH: Final = 15
#: Standard errors, in counts: of the base sum's own distance, small beside the half count that rounding allows; of the
#: empty sum's, which decides the sense; of a cell's first measurement; and of each fresh sum.
BASE_ERROR: Final = 0.02
SENSE_ERROR: Final = 0.05
CELL_ERROR: Final = 0.2
FRESH_ERROR: Final = 0.07
#: Distances larger than this say only on which side z is: in 1/ε₂; and of fresh sums.
REACH: Final = 2.0
FRESH_REACH: Final = 0.7
#: From this ε₂ on, ln 2/ε₂, by which F falls from 1/2 to 1/4, is at most a quarter of a count.
SHARP: Final = 4 * float(np.log(2))
#: With so many, shares that differ by 1/8 from the cut stand 6 standard errors from it.
SHARP_COPIES: Final = 576
#: A count is taken for known when it is this many nats likelier than the next best.
MARGIN: Final = 9.0
ROUNDS: Final = 1000
#: Known cells with which all others are measured.
SUFFICIENT: Final = 64


class DistanceEstimator:
    """Estimates of q − z from copies of a query, with all queries negated where z is negative.

    Raises `InvalidParameter` where ε₂ is so small that a measurement takes more than 10^12 copies.
    """

    def __init__(self, oracle: Queries, rng: np.random.Generator) -> None:
        self.oracle = oracle
        self.scale = 1 / oracle.noise.epsilon2
        self.copies_for(BASE_ERROR)  # refused before anything is asked, not after it
        # In a sense in which z is positive, or about 0; the base sum is a little below it.
        self.negated = Comparison(oracle, copies=self.copies_for(SENSE_ERROR)).negated
        self.comparison = Comparison(oracle, copies=ROUGH, cut=0.25, negated=self.negated)
        self.base = find_base_sum(self.comparison, rng)

    def copies_for(self, error: float) -> int:
        """How many copies measure a query at z with that standard error, in counts."""
        ratio = self.scale / error
        if not ratio * ratio <= MOST_COPIES:
            raise InvalidParameter(
                f"epsilon2={self.oracle.noise.epsilon2:g} is too small: to read a query takes {ratio * ratio:.2g} "
                "copies of it, more than 10^12; give a larger one"
            )
        return int(np.ceil(ratio * ratio))

    def distance(self, positives: Cells, copies: int) -> Floats:
        """The estimate of q − z."""
        share = (positives + 0.5) / (copies + 1)
        return np.asarray(np.sign(share - 0.5) * -np.log(2 * np.minimum(share, 1 - share)) * self.scale)

    def measure(self, signs: Signs, copies: int) -> float:
        """The distance of one sum."""
        return float(self.distance(self.comparison.positives(signs[None], copies), copies)[0])

    def measure_base(self) -> float:
        """The distance of the base sum, to `BASE_ERROR` where any sum comes near z."""
        copies = self.copies_for(BASE_ERROR)
        y = self.measure(self.base.signs, copies)
        if not len(self.base.above) and y < -REACH * self.scale:
            return y  # the sum of all cells is far below z: no sum comes near, so that nothing can be measured
        # The second time with as many copies as its distance from z asks for.
        copies = int(min(copies * (2 * np.exp(abs(y) / self.scale) - 1), MOST_COPIES))
        return self.measure(self.base.signs, copies)


def majority_comparisons(estimator: DistanceEstimator, copies: int | None = None) -> Iterator[Comparison]:
    """Comparisons that take the query noise away, by a majority among copies of each query; one of them does.

    A query counts as above where more copies say so than would for one half-way between the whole numbers around z.
    Shares of whole-numbered queries lie clearly on either side of that, even where z is nearly whole and a majority,
    that is a cut at 1/2, would not tell. Where the base sum is too far from z to be measured, one of two cuts half a
    count apart is at least a quarter of a count from all whole numbers. From ε₂ = 4·ln 2 on, F rises from 1/4 to 3/4
    within half a count, and of cuts there one has a whole number nowhere between 1/8 and 1/2, or 1/2 and 7/8.

    `copies`: by default so many that whole numbers stand 6 standard errors from the cut.
    """
    oracle, epsilon2 = estimator.oracle, estimator.oracle.noise.epsilon2
    if epsilon2 >= SHARP:  # the noise is so small that copies that tell two places in it apart grow with exp(ε₂)
        for cut in (0.25, 0.75):
            yield Comparison(oracle, copies=copies or SHARP_COPIES, cut=cut, negated=estimator.negated)
        return
    y = estimator.measure_base()
    near = abs(y) <= REACH * estimator.scale
    # The base sum counts as below, even where it was found a little above.
    for shift in (y + 0.5 + max(0.0, np.floor(-y)),) if near else (0.25, -0.25):
        cut = float(laplace_cdf(np.array(epsilon2 * shift)))
        # Within a count of z, F rises by at least ε₂ exp(−ε₂)/2 a count.
        rise = epsilon2 * np.exp(-epsilon2) / 2 * (0.5 if near else 0.25)
        enough = copies or int(np.ceil((3 / rise) ** 2))
        yield Comparison(oracle, copies=enough, cut=cut, negated=estimator.negated)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MeasuredCounts:
    """Counts in people, measured by query noise; arrays of shape (cells,)."""

    guess: Cells  # of cells that no sum of known ones brings near z the best lower limit
    known: Flags  # which stand out from the next best
    fresh_sums: int  # that were measured as predicted; 0 where one was not


def measure_counts(oracle: Queries, rng: np.random.Generator, copies: int | None = None) -> MeasuredCounts:
    """Measure every cell's count through an oracle of ε₂ at most 1.5.

    `copies` of each query at a time, more where they do not settle it; by default 25/ε₂², a standard error of about a
    fifth of a count.
    """
    estimator = DistanceEstimator(oracle, rng)
    copies = copies or estimator.copies_for(CELL_ERROR) + 20
    cells = _Measurement(estimator, offset=estimator.measure_base(), copies=copies)
    if not cells.measure_all():
        # No cell is small enough to be measured: some are compared with each other first.
        cells.restart(*_references(estimator, rng, cells.offset))
        cells.measure_all()
    return MeasuredCounts(guess=cells.guesses(), known=cells.known, fresh_sums=cells.test(rng))


def _references(estimator: DistanceEstimator, rng: np.random.Generator, offset: float) -> tuple[Cells, Cells]:
    """Some cells and their counts, found by majorities in a unit of their own, which is then measured; or none."""
    nothing, base = np.zeros(0, np.int64), estimator.base
    if len(base.above) < 2:
        return nothing, nothing
    for comparison in majority_comparisons(estimator):
        smallest = smallest_cells(comparison, base, rng)
        references = find_reference_cells(comparison, base, smallest, rng)
        if references is not None:
            break
    else:
        return nothing, nothing
    # The two sums next to z are one unit apart, and the first is 0 or found among signed sums of the cells.
    known, counts = np.zeros(len(base.signs), np.bool_), np.zeros(len(base.signs), np.int64)
    known[references.cells], counts[references.cells] = True, references.counts
    sums = [ReferenceSums(base.signs, known, counts).nearest(references.gap - k) for k in (1, 0)]
    copies = estimator.copies_for(BASE_ERROR)
    units = [(estimator.measure(signs, copies) - offset) / value for signs, value in sums if value]
    unit = round(units[-1]) if units else 0
    return (references.cells, unit * references.counts) if unit >= 1 else (nothing, nothing)


class _Measurement:
    """What is known of each cell: measurements, a guess, whether it is settled, and limits from those far from z.

    `offset`: the distance of the base sum from z.
    """

    def __init__(self, estimator: DistanceEstimator, *, offset: float, copies: int) -> None:
        n = estimator.oracle.cells
        self._estimator, self._base, self.offset, self._copies = estimator, estimator.base.signs, offset, copies
        # Of the cell in the query: those in the base sum are taken off, the others put on.
        self._sign = np.where(self._base == 1, -1, 1)
        self._guess, self.known, self._near = np.zeros(n, np.int64), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        # Where measurements far from z place a count, to aim the next query; a count is never settled by these.
        self._lower, self._upper = np.zeros(n), np.full(n, np.inf)
        # Of each round: where the query without the cell stood, and how many copies were above; −1: not asked.
        self._rounds: list[tuple[Floats, Cells]] = []

    def restart(self, cells: Cells, counts: Cells) -> None:
        """Take these cells' counts for known, and forget where the others were looked for."""
        self._guess[~self.known] = 0
        self._lower[:], self._upper[:] = 0.0, np.inf
        self._near[:] = False
        self._guess[cells], self.known[cells] = counts, True

    def measure_all(self) -> bool:
        """Measure cells until all are known, or no known ones bring any of them nearer; whether all are known."""
        before = np.full(len(self.known), np.nan)
        for _ in range(ROUNDS):
            pending = np.flatnonzero(~self.known)
            if not len(pending):
                break
            if np.count_nonzero(self.known) < SUFFICIENT:
                pending = pending[:: len(pending) // (4 * SUFFICIENT) + 1]  # all of them wait for the first known ones
            start, positives = self._ask(pending)
            self._aim(pending, start[pending], positives[pending])
            self._rounds.append((start, positives))
            near = pending[self._near[pending]]
            self._guess[near], settled = self._likeliest(near, np.maximum(self._guess[near], 0))
            self.known[near[settled]] = True
            if not len(near) and np.array_equal(start[pending], before[pending]):
                break
            before = start
        return bool(self.known.all())

    def _ask(self, pending: Cells) -> tuple[Floats, Cells]:
        """Compare the cells with known ones: where each query stood without its cell, and how many copies were above.

        Both of shape (cells,); −1 copies for cells that are not pending.
        """
        n, comparison = len(self._guess), self._estimator.comparison
        sums = ReferenceSums(self._base, self.known, self._guess)
        # What must be added to the base sum to bring the cell to z.
        aims = np.rint(-self._sign[pending] * self._guess[pending] - self.offset).astype(np.int64)
        start, positives = np.zeros(n), np.full(n, -1)
        for inside in (0, 1):
            here = self._base[pending] == inside
            for aim in np.unique(aims[here]):
                cells = pending[here & (aims == aim)]
                signs, w = sums.nearest(int(aim))
                start[cells] = self.offset + w
                (positives[cells],) = comparison.positives_changes([(signs, cells, 1 - 2 * inside)], self._copies)
        return start, positives

    def _aim(self, pending: Cells, start: Floats, positives: Cells) -> None:
        """Guess the counts that the next queries are aimed at: by a measurement near z, else by limits."""
        sign = self._sign[pending]
        y = self._estimator.distance(positives, self._copies)
        at = -sign * start  # the count that would be measured as z itself
        close = np.abs(y) <= REACH * self._estimator.scale
        first = close & ~self._near[pending]
        self._guess[pending[first]] = np.rint(at + sign * y).astype(np.int64)[first]
        self._near[pending] |= close
        above, below = ~close & (sign * y > 0), ~close & (sign * y < 0)
        self._lower[pending[above]] = np.maximum(self._lower[pending[above]], at[above])
        self._upper[pending[below]] = np.minimum(self._upper[pending[below]], at[below])
        far = pending[~self._near[pending]]
        wide = self._upper[far] == np.inf
        open_, closed = far[wide], far[~wide]
        self._guess[open_] = np.ceil(2 * self._lower[open_] + self._estimator.scale).astype(np.int64)
        self._guess[closed] = np.maximum((self._lower[closed] + self._upper[closed]) / 2, 0).astype(np.int64)

    def _likeliest(self, cells: Cells, guess: Cells) -> tuple[Cells, Flags]:
        """The counts that the measurements make likeliest, found from a guess, and whether each is so by `MARGIN`.

        The log-likelihood of a count is concave, since F is log-concave: the likeliest stands out if it beats its two
        neighbours.
        """
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
        # A count that was reached downwards has its upper neighbour behind it.
        margin = np.minimum(margin, value - self._log_likelihood(cells, best + 1))
        return best, margin >= MARGIN

    def _log_likelihood(self, cells: Cells, counts: Cells) -> Floats:
        total, epsilon2 = np.zeros(len(cells)), self._estimator.oracle.noise.epsilon2
        for start, positives in self._rounds:
            x = epsilon2 * (start[cells] + self._sign[cells] * counts)
            tail = np.exp(-np.abs(x)) / 2
            small, large = -np.abs(x) - np.log(2), np.log1p(-tail)
            k = positives[cells]
            one = k * np.where(x < 0, small, large) + (self._copies - k) * np.where(x < 0, large, small)
            total += np.where(k >= 0, one, 0.0)
        return total

    def guesses(self) -> Cells:
        """The counts; lower limits for cells that were never measured near z."""
        never = ~self.known & ~self._near
        self._guess[never] = np.ceil(self._lower[never]).astype(np.int64)
        return self._guess

    def test(self, rng: np.random.Generator) -> int:
        """How many fresh random sums of all known cells, near z, are measured as predicted; 0 where one is not."""
        estimator, cells = self._estimator, np.arange(len(self._guess))
        unit = max(1, int(np.gcd.reduce(self._guess[self.known], initial=0)))
        # Sums on both sides of z, so that a common factor is tested too.
        targets = unit * (math.floor(-self.offset / unit) + np.arange(FRESH_SUMS) % 2)
        signs, values = fresh_sums(self._base, self.known, self._guess, cells, targets, rng)
        if not len(signs):
            return 0
        copies = estimator.copies_for(FRESH_ERROR)
        reach = FRESH_REACH * estimator.scale  # beyond it only the side is measured well
        positives = estimator.comparison.positives(signs, copies)
        measured = np.clip(estimator.distance(positives, copies), -reach, reach)
        expected = np.clip(self.offset + values, -reach, reach)
        # Answers that do not depend on the sums may come near all of them, but show no difference between them.
        upper = values == values.max()
        apart, expected_apart = (float(one[upper].mean() - one[~upper].mean()) for one in (measured, expected))
        right = bool(np.all(np.abs(measured - expected) < 0.5)) and apart > expected_apart / 2
        return len(signs) if right else 0
