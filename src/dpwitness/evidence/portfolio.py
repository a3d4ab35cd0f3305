"""Wealth that is spread over many events at once, or bet on one graded event made of them, epoch by epoch.

Before an epoch each member k of the portfolio is an event with an estimate, from which its bet λ_k follows, and a share
w_k of the wealth, all of them fixed by earlier runs. With X_k = 1[M(D)∈S_k] − s·1[M(D′)∈S_k] − t (see `evidence.bet`)
the epoch multiplies the wealth by Σ_k w_k ∏(1 + λ_k X_k), whose expectation given the earlier runs is at most 1 under
the claim, whatever the shares are. So the product over the epochs is a non-negative supermartingale, valid at any time.
No run is wasted: the runs of an epoch are evidence first, and then choose the next portfolio.

Alternatively the members make up one graded event, which gives each outcome a number in [0, 1]: every run multiplies
the wealth by 1 + Σ_k φ_k λ̄_k X_k, where λ̄_k = 0.999/(s + t) is the largest bet on S_k and the fractions φ_k add up to
at most 1. Each factor is positive and has an expectation of at most 1 under the claim. If likelihood ratios vary among
outcomes, the graded bet grows faster than any one event, a quarter faster for Gaussian noise against pure ε.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from dpwitness.arrays import Booleans, Floats
from dpwitness.claims import Claim, HalfPlane
from dpwitness.evidence.bet import Bet
from dpwitness.evidence.counts import CountsTable, best_bet, payoffs

#: COARSE_PARAMETERS has the parameters at which a portfolio's lower bound is evaluated: 1 % apart, absolute 10⁻³ near
#: zero, as each evaluation takes many events.
COARSE_PARAMETERS: Final = np.concatenate([np.arange(0.0, 0.1, 1e-3), 0.1 * 1.01 ** np.arange(890)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stakes:
    """Stakes on k events, each of shape (k,): estimated probabilities on D, on D′, and on both sides of one run.

    `log_shares`: logarithms of the events' shares of the wealth, which add up to at most 1. `fractions`: for a bet of
    all wealth on the graded event that the k events make up, fractions of the largest bet on each event, which add up
    to at most 1; None if each event has its own share.
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
    """Whether paired runs fell into each of k events, on D (`hits`) and on D′ (`others`); shape (m, k) each.

    `times`: the number of runs that each of the m rows stands for, shape (m,).
    """

    hits: Booleans
    others: Booleans
    times: Floats

    def payoffs(self, plane: HalfPlane) -> Floats:
        """The payoff X for every row and event, shape (m, k)."""
        paid: Floats = self.hits - plane.slope * self.others - plane.intercept
        return paid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Epoch:
    """Stakes, and the counts of each event in the later runs of the epoch; `flags` only for a graded event."""

    stakes: Stakes
    counts: CountsTable
    flags: Flags | None = None

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.stakes.log_shares):
            raise ValueError(f"{len(self.counts)} counts must be as many as the stakes, {len(self.stakes.log_shares)}")
        if (self.flags is None) != (self.stakes.fractions is None):
            raise ValueError("a graded event, and nothing else, needs to know which runs fell into which events")


def log_e_values_of(epochs: Sequence[Epoch], claim: Claim, against: Claim | None = None) -> Floats:
    """The log factor by which each epoch multiplies the wealth, shape (epochs,); `against` as in `Bet.log_e_values`."""
    found = np.array([_graded_growth(epoch.stakes, epoch.flags, claim, against) for epoch in epochs])
    staked = [k for k, epoch in enumerate(epochs) if len(epoch.counts) and epoch.flags is None]
    if not staked:
        return found
    epochs = [epochs[k] for k in staked]
    p, q, both, log_shares = (
        np.concatenate([getattr(epoch.stakes, name) for epoch in epochs]) for name in ("p", "q", "both", "log_shares")
    )
    cells = np.hstack([epoch.counts.cells for epoch in epochs])
    plane = claim.half_plane(p, q)
    bets = best_bet(p, q, _larger_planes(plane, p, q, against), both)
    grown = log_shares + sum(n * np.log1p(bets * x) for n, x in zip(cells, payoffs(plane), strict=True))
    starts = np.cumsum([0, *(len(epoch.counts) for epoch in epochs)])[:-1]
    # Wealth that is not staked is kept; rounding may leave the shares 10⁻¹⁶ too large.
    kept = np.maximum(1 - np.exp(np.logaddexp.reduceat(log_shares, starts)), 0.0)
    with np.errstate(divide="ignore"):
        found[staked] = np.logaddexp(np.logaddexp.reduceat(grown, starts), np.log(kept))
    return found


def _larger_planes(plane: HalfPlane, p: Floats, q: Floats, against: Claim | None) -> HalfPlane:
    """The half-planes of `against` where neither slope nor intercept is smaller than in `plane`, else `plane`."""
    if against is None:
        return plane
    other = against.half_plane(p, q)
    inside = (plane.slope <= other.slope) & (plane.intercept <= other.intercept)
    return HalfPlane(np.where(inside, other.slope, plane.slope), np.where(inside, other.intercept, plane.intercept))


def largest_bet(plane: HalfPlane) -> Floats:
    """The bets at which one run can lose 99.9 % of the wealth."""
    return np.asarray(0.999 / (plane.slope + plane.intercept))


def _graded_growth(stakes: Stakes, flags: Flags | None, claim: Claim, against: Claim | None) -> float:
    """The logarithm of the factor of an epoch's bet on its graded event; 0.0 without a graded event."""
    if flags is None or stakes.fractions is None:
        return 0.0
    plane = claim.half_plane(stakes.p, stakes.q)
    most = largest_bet(_larger_planes(plane, stakes.p, stakes.q, against))
    return float(flags.times @ np.log1p(flags.payoffs(plane) @ (stakes.fractions * most)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wealth:
    """The wealth of a check after its epochs so far, an e-value at any time.

    `accounts`: the epochs of each account in their order; all accounts began with equal shares of the wealth. `unused`:
    the number of further equal shares, which were never bet. `last`: the final bet of all wealth, on one event or on
    cells; None before it is made.
    """

    accounts: tuple[tuple[Epoch, ...], ...]
    unused: int = 0
    last: Bet | None = None

    def log_e_value(self, claim: Claim, against: Claim | None = None) -> float:
        """The logarithm of the accounts' mean e-value, plus the log e-value of the last bet."""
        logs = [float(log_e_values_of(epochs, claim, against).sum()) for epochs in self.accounts] + [0.0] * self.unused
        mean = float(np.logaddexp.reduce(logs)) - math.log(len(logs))
        return mean if self.last is None else mean + self.last.log_e_value(claim, against)

    def log_e_values(self, claim: Claim, parameters: Floats, against: Claim | None = None) -> Iterator[float]:
        """The logarithms of the e-values against `claim.at(x)` for every x of an array, one after the other."""
        return (self.log_e_value(claim.at(float(x)), against) for x in parameters)

    def parameters(self, claim: Claim, *, above: bool) -> Floats:
        """The rising grid of the lower bound, above the claim's own parameter or below it."""
        if above:
            return COARSE_PARAMETERS[claim.parameter < COARSE_PARAMETERS]
        # Below a curved claim the grid has every fifth point, as all points are tried, in a tenth of a second each.
        return COARSE_PARAMETERS[claim.parameter > COARSE_PARAMETERS][:: 5 if claim.curved else 1]

    def excess(self, claim: Claim, *, alpha: float, margin: float) -> Callable[[float], float] | None:
        """`Bet.excess` of the last bet, at the level that the wealth before it leaves; None without a last bet."""
        if self.last is None:
            return None
        left = level_left(alpha, replace(self, last=None).log_e_value(claim))
        return self.last.excess(claim, alpha=left, margin=margin)


#: EProcess is evidence with e-values that are valid at any stopping time.
EProcess: TypeAlias = Bet | Wealth


def level_left(alpha: float, before: float) -> float:
    """The level, at most 0.5, at which one more bet must refute after bets with the log e-value `before`."""
    return min(math.exp(min(math.log(alpha) + before, 0.0)), 0.5)
