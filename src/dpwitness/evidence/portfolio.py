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
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Estimate
from dpwitness.claims import Claim
from dpwitness.evidence.counts import Counts
from dpwitness.evidence.e_value import log_e_value
from dpwitness.evidence.growth import best_bet, payoffs

Floats = NDArray[np.float64]

#: Parameters at which the lower bound is evaluated: 1 % apart, absolute 10⁻³ near zero.
PARAMETERS: Final = np.concatenate([np.arange(0.0, 0.1, 1e-3), 0.1 * 1.01 ** np.arange(890)])


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
        return _log_e_value_of([self], claim)


def _log_e_value_of(epochs: Sequence[Epoch], claim: Claim) -> float:
    """The logarithm of what epochs one after the other multiply the wealth by."""
    epochs = [epoch for epoch in epochs if len(epoch.counts)]
    if not epochs:
        return 0.0
    p, q, both, log_shares = (
        np.concatenate([getattr(epoch.stakes, name) for epoch in epochs]) for name in ("p", "q", "both", "log_shares")
    )
    cells = np.hstack([epoch.cells for epoch in epochs])
    plane = claim.half_plane(p, q)
    bets = best_bet(p, q, plane, both)
    grown = log_shares + sum(n * np.log1p(bets * x) for n, x in zip(cells, payoffs(plane), strict=True))
    starts = np.concatenate([[0], np.cumsum([len(epoch.counts) for epoch in epochs])[:-1]])
    # What is not staked stays as it is; rounding may leave a share of 10⁻¹⁶ too many.
    kept = np.maximum(1 - np.exp(np.logaddexp.reduceat(log_shares, starts)), 0.0)
    with np.errstate(divide="ignore"):
        return float(np.logaddexp(np.logaddexp.reduceat(grown, starts), np.log(kept)).sum())


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

    def log_e_value(self, claim: Claim) -> float:
        """The logarithm of the e-value against a claim: of the mean of the courses, times that of the last event."""
        logs = [_log_e_value_of(course, claim) for course in self.courses] + [0.0] * self.unused
        mean = float(np.logaddexp.reduce(logs)) - math.log(len(logs))
        return mean if self.last is None else mean + log_e_value(self.last, claim, self.estimate)


def lower_bound_of(wealth: Wealth, claim: Claim, *, alpha: float) -> float:
    """Return the parameter of the claim's family that the mechanism exceeds with confidence 1 − alpha.

    The largest point of a fixed grid up to which every point is refuted, as in `lower_bound`. The bets against another
    parameter follow from the same estimates, and the shares are those of the claim: both are fixed before the runs.
    Where the claim's own parameter is refuted the bound is at least that.
    """
    threshold, c = math.log(1 / alpha), claim.parameter
    refuted = wealth.log_e_value(claim) >= threshold
    last = c if refuted else 0.0
    for x in PARAMETERS[c < PARAMETERS] if refuted else PARAMETERS[c > PARAMETERS]:
        if wealth.log_e_value(claim.at(float(x))) < threshold:
            return last
        last = float(x)
    return last
