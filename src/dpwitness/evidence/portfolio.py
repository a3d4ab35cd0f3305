"""e-values of a portfolio: wealth spread over many events at once, chosen anew before every epoch.

Before an epoch each member k of the portfolio is an event with an estimate, from which its bet λ_k follows, and a share
w_k of the wealth, all of them fixed by earlier runs. With X_k = 1[M(D)∈S_k] − s·1[M(D′)∈S_k] − t (see `e_value`) the
epoch multiplies the wealth by Σ_k w_k ∏(1 + λ_k X_k), whose expectation given the earlier runs is at most 1 under the
claim, whatever the shares are. So the product over the epochs is a non-negative supermartingale: one may look at any
time. No run is thrown away: runs of an epoch are evidence first, and choose the next portfolio then.

Or the members make up one graded event, which gives each outcome a number in [0, 1]: every run then multiplies the
wealth by 1 + Σ_k φ_k λ̄_k X_k, where λ̄_k = 0.999/(s + t) is the largest bet on S_k and the fractions φ_k add up to 1
at most. Each factor is positive and has an expectation of at most 1 under the claim. Where likelihood ratios differ
from outcome to outcome this grows faster than any one event: by a quarter for Gaussian noise against a claim of pure ε.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Estimate
from dpwitness.claims import Claim, HalfPlane
from dpwitness.evidence.cells import bet_on_cells, log_e_value_of_cells
from dpwitness.evidence.counts import Counts, CountsTable
from dpwitness.evidence.e_value import half_plane_of, log_e_values
from dpwitness.evidence.growth import best_bet, payoffs

Floats = NDArray[np.float64]

#: Parameters at which the lower bound is evaluated: 1 % apart, absolute 10⁻³ near zero.
PARAMETERS: Final = np.concatenate([np.arange(0.0, 0.1, 1e-3), 0.1 * 1.01 ** np.arange(890)])
#: Of these every so many, where all that are below a claim have to be tried: each may take a tenth of a second.
COARSER: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stakes:
    """What is bet on k events: estimates of their probabilities, and shares of the wealth; each of shape (k,).

    Attributes
    ----------
    p, q, both
        Under D, under D′, and under both in one run.
    log_shares
        Logarithms of the shares; their sum is at most 1.
    fractions
        Where all of it is bet on the graded event that the k events make up: what part of the largest bet on each;
        their sum is at most 1. None where each event has its share.
    """

    p: Floats
    q: Floats
    both: Floats
    log_shares: Floats
    fractions: Floats | None = None

    def __post_init__(self) -> None:
        if len(self.log_shares) and not np.logaddexp.reduce(self.log_shares) <= 1e-9:
            raise ValueError("the shares of a portfolio are more than its wealth")
        fractions = np.zeros(0) if self.fractions is None else self.fractions
        if not (fractions >= 0).all() or not fractions.sum() <= 1 + 1e-9:
            raise ValueError("a run might lose more than a graded event can bet")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flags:
    """In which of k events paired runs fell, on D and on D′; shape (m, k) each.

    `times`: how many runs each of the m rows stands for.
    """

    hits: NDArray[np.bool_]
    others: NDArray[np.bool_]
    times: Floats

    def payoffs(self, plane: HalfPlane) -> Floats:
        """X of every row and event, shape (m, k)."""
        paid: Floats = self.hits - plane.slope * self.others - plane.intercept
        return paid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Epoch:
    """Stakes, and what the runs made after they were fixed showed of each event; `flags` for a graded event alone."""

    stakes: Stakes
    counts: CountsTable
    flags: Flags | None = None

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.stakes.log_shares):
            raise ValueError(f"counts of {len(self.counts)} events for stakes on {len(self.stakes.log_shares)}")
        if (self.flags is None) != (self.stakes.fractions is None):
            raise ValueError("a graded event, and nothing else, needs to know which runs fell into which events")


def log_e_values_of(epochs: Sequence[Epoch], claim: Claim, betting: Claim | None = None) -> Floats:
    """The logarithm of what each epoch multiplies the wealth by, shape (epochs,); 0.0 where nothing was bet.

    With `betting` the bets are those against that claim, wherever its half-plane has no smaller slope and intercept:
    they are admissible there, and no run pays less.
    """
    found = np.array([_graded(epoch.stakes, epoch.flags, claim, betting) for epoch in epochs])
    staked = [k for k, epoch in enumerate(epochs) if len(epoch.counts) and epoch.flags is None]
    if not staked:
        return found
    epochs = [epochs[k] for k in staked]
    p, q, both, log_shares = (
        np.concatenate([getattr(epoch.stakes, name) for epoch in epochs]) for name in ("p", "q", "both", "log_shares")
    )
    cells = np.hstack([epoch.counts.cells for epoch in epochs])
    plane = claim.half_plane(p, q)
    bets = best_bet(p, q, plane if betting is None else _betting(plane, betting.half_plane(p, q)), both)
    grown = log_shares + sum(n * np.log1p(bets * x) for n, x in zip(cells, payoffs(plane), strict=True))
    starts = np.cumsum([0, *(len(epoch.counts) for epoch in epochs)])[:-1]
    # What is not staked stays as it is; rounding may leave a share of 10⁻¹⁶ too many.
    kept = np.maximum(1 - np.exp(np.logaddexp.reduceat(log_shares, starts)), 0.0)
    with np.errstate(divide="ignore"):
        found[staked] = np.logaddexp(np.logaddexp.reduceat(grown, starts), np.log(kept))
    return found


def largest_bet(plane: HalfPlane) -> Floats:
    """The bets at which one run loses nearly everything."""
    return np.asarray(0.999 / (plane.slope + plane.intercept))


def _graded(stakes: Stakes, flags: Flags | None, claim: Claim, betting: Claim | None) -> float:
    """The logarithm of what an epoch multiplies a wealth by that is bet on a graded event; 0.0 where none is."""
    if flags is None or stakes.fractions is None:
        return 0.0
    plane = claim.half_plane(stakes.p, stakes.q)
    most = largest_bet(plane if betting is None else _betting(plane, betting.half_plane(stakes.p, stakes.q)))
    return float(flags.times @ np.log1p(flags.payoffs(plane) @ (stakes.fractions * most)))


def _betting(plane: HalfPlane, other: HalfPlane) -> HalfPlane:
    """The other half-plane where all that it allows is more, else the first; arrays of any shape."""
    inside = (plane.slope <= other.slope) & (plane.intercept <= other.intercept)
    return HalfPlane(np.where(inside, other.slope, plane.slope), np.where(inside, other.intercept, plane.intercept))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wealth:
    """What became of the wealth of a check: an e-value at any time.

    Attributes
    ----------
    courses
        Epochs one after the other, of each course; every course began with the same share.
    unused
        How many more shares there are, on which nothing was bet.
    last, estimate
        Counts of one event that all of the wealth was bet on in the end, and the estimate that the bets followed from;
        None where it did not come to that.
    """

    courses: tuple[tuple[Epoch, ...], ...]
    unused: int = 0
    last: Counts | None = None
    estimate: Estimate | None = None

    def log_e_value(self, claim: Claim, betting: Claim | None = None) -> float:
        """The logarithm of the e-value against a claim: of the mean of the courses, times that of the last event.

        `betting`: as in `log_e_values_of`.
        """
        logs = [float(log_e_values_of(course, claim, betting).sum()) for course in self.courses] + [0.0] * self.unused
        mean = float(np.logaddexp.reduce(logs)) - math.log(len(logs))
        if self.last is None:
            return mean
        on_cells = bet_on_cells(self.last, claim, self.estimate)
        if on_cells is not None:
            return mean + log_e_value_of_cells(self.last, *on_cells)
        plane = half_plane_of(claim, self.estimate)
        bets = plane if betting is None else _betting(plane, half_plane_of(betting, self.estimate))
        plane, bets = (HalfPlane(np.atleast_1d(at.slope), np.atleast_1d(at.intercept)) for at in (plane, bets))
        return mean + float(log_e_values(self.last, plane, self.estimate, bets)[0])


def lower_bound_of(wealth: Wealth, claim: Claim, *, alpha: float) -> float:
    """Return the parameter of the claim's family that the mechanism exceeds with confidence 1 − alpha.

    The largest point of a fixed grid up to which every point is refuted, as in `lower_bound`; at least the claim's own
    parameter c where that is refuted. The bets against another parameter follow from the same estimates, and the
    shares are those of the claim: both are fixed before the runs. Points below c are bet against as c is, so that in
    families whose half-planes grow with the parameter whatever refutes c refutes them, too: c is one more point of the
    grid. In others the bound is above the true parameter with probability alpha at most where c is, and again where
    c is not refuted.
    """
    threshold, c = math.log(1 / alpha), claim.parameter
    above = wealth.log_e_value(claim) >= threshold
    last = c if above else 0.0

    def stands(x: float) -> bool:
        return wealth.log_e_value(claim.at(float(x)), None if above else claim) < threshold

    if above:
        points = PARAMETERS[c < PARAMETERS]
    elif claim.curved:
        points = PARAMETERS[c > PARAMETERS][::COARSER]
    else:  # the bets are the same for all points and each run pays less for a larger one: no need to try them all
        points = PARAMETERS[c > PARAMETERS]
        refuted = bisect_left(points, True, key=stands)
        return float(points[refuted - 1]) if refuted else last
    for x in points:
        if stands(x):
            return last
        last = float(x)
    return last
