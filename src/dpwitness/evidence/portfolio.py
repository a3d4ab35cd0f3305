"""e-values of a portfolio: wealth spread over many events at once, chosen anew before every epoch.

Before an epoch each member k of the portfolio is an event with an estimate, from which its bet λ_k follows, and a share
w_k of the wealth, all of them fixed by earlier runs. With X_k = 1[M(D)∈S_k] − s·1[M(D′)∈S_k] − t (see `e_value`) the
epoch multiplies the wealth by Σ_k w_k ∏(1 + λ_k X_k), whose expectation given the earlier runs is at most 1 under the
claim, whatever the shares are. So the product over the epochs is a non-negative supermartingale: one may look at any
time. No run is thrown away: runs of an epoch are evidence first, and choose the next portfolio then.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpwitness.claims import Claim, HalfPlane
from dpwitness.evidence.counts import Counts
from dpwitness.evidence.growth import best_bet, payoffs

Floats = NDArray[np.float64]

#: Step between the parameters at which the lower bound is evaluated: 0.5 % apart, absolute 5·10⁻⁴ near zero.
PARAMETERS = np.concatenate([np.arange(0.0, 0.1, 5e-4), 0.1 * 1.005 ** np.arange(1_775)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stakes:
    """What is bet on k events: estimates of their probabilities, and shares of the wealth; each of shape (k,).

    Attributes
    ----------
    p, q, both
        Under D, under D′, and under both in one run.
    log_shares
        Logarithms of the shares; their sum is at most 1.
    """

    p: Floats
    q: Floats
    both: Floats
    log_shares: Floats

    def __post_init__(self) -> None:
        if len(self.log_shares) and np.logaddexp.reduce(self.log_shares) > 1e-9:
            raise ValueError("the shares of a portfolio are more than its wealth")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Epoch:
    """Stakes, and what the runs made after they were fixed showed of each event."""

    stakes: Stakes
    counts: tuple[Counts, ...]
    cells: Floats = field(init=False)  # n10, n11, n01, n00 of every event; shape (4, k)

    def __post_init__(self) -> None:
        cells = [(c.n10, c.n11, c.n01, c.n00) for c in self.counts]
        object.__setattr__(self, "cells", np.array(cells, np.float64).reshape(len(cells), 4).T)

    def log_e_value(self, claim: Claim) -> float:
        """The logarithm of what the epoch multiplies the wealth by; 0.0 where nothing was bet."""
        stakes = self.stakes
        if not len(stakes.log_shares):
            return 0.0
        plane = claim.half_plane(stakes.p, stakes.q)
        return _mixed(stakes, self.cells, plane)


def _mixed(stakes: Stakes, cells: Floats, plane: HalfPlane) -> float:
    bets = best_bet(stakes.p, stakes.q, plane, stakes.both)
    wealth = sum(n * np.log1p(bets * x) for n, x in zip(cells, payoffs(plane), strict=True))
    kept = stakes.log_shares + wealth
    rest = -math.expm1(min(np.logaddexp.reduce(stakes.log_shares), 0.0))  # what is not staked stays as it is
    total = np.logaddexp.reduce(kept)
    return float(np.logaddexp(total, math.log(rest)) if rest > 1e-12 else total)


def log_e_value_of(epochs: Sequence[Epoch], claim: Claim) -> float:
    """Log of the e-value of all epochs together: of one course of wealth, which is never started anew."""
    return sum(epoch.log_e_value(claim) for epoch in epochs)


def log_mean_of(courses: Sequence[Sequence[Epoch]], claim: Claim) -> float:
    """Log of the mean wealth of several courses, each with its share from the start: an e-value, too."""
    logs = [log_e_value_of(course, claim) for course in courses]
    return float(np.logaddexp.reduce(logs) - math.log(len(logs)))


def lower_bound_of(courses: Sequence[Sequence[Epoch]], claim: Claim, *, alpha: float) -> float:
    """Return the parameter of the claim's family that the mechanism exceeds with confidence 1 − alpha.

    The largest point of a fixed grid up to which every point is refuted, as in `lower_bound`. The bets against another
    parameter follow from the same estimates, and the shares are those of the claim: both are fixed before the runs.
    Where the claim's own parameter is refuted the bound is at least that.
    """
    threshold, c = math.log(1 / alpha), claim.parameter
    refuted = log_mean_of(courses, claim) >= threshold
    last = c if refuted else 0.0
    for x in PARAMETERS[c < PARAMETERS] if refuted else PARAMETERS[c > PARAMETERS]:
        if log_mean_of(courses, claim.at(float(x))) < threshold:
            return last
        last = float(x)
    return last
