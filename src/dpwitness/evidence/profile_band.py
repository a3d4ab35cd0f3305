"""A lower band of the privacy profile and of the power of tests, simultaneous over all ε, from counts of many events.

The privacy profile of a pair is δ(ε) = sup over events S of P[M(D) ∈ S] − e^ε·P[M(D′) ∈ S], the hockey-stick divergence
(Balle & Wang 2018; Sommer, Meiser & Mohammadi 2019). For a fixed event with probabilities p and q the line s ↦ p − s·q
in s = e^ε lies below it everywhere. Each event gets three lower bounds: of p − s₀·q at the slope s₀ where the event is
to be used, of q, and of −q, at 90 %, 5 % and 5 % of the event's share of α. So
p − s·q ≥ bound + (s₀ − s)·(lower or upper bound of q) holds for all s at once, and simultaneity costs a union bound
over events only (Bonferroni; shares may differ).

`lower_means` bounds the mean payoff of the cells (1,0), (1,1), (0,1), (0,0) of paired runs by betting, so the variance
of the difference counts, not the variances of both sides. For a mean m and a bet λ < 1/(largest x − smallest x) fixed
before the runs, the wealth W(m) = ∏(1 + λ(X_i − m)) is a non-negative martingale if E[X] = m, and so is a mixture over
bets; by Ville's inequality it ever reaches 1/α with probability at most α. W falls in m, so the smallest m with
W(m) < 1/α is a lower bound of the mean with confidence 1 − α, valid at any stopping time. Waudby-Smith & Ramdas (2024),
JRSS-B 86(1), Theorem 3. For a number of runs known beforehand the best bet gives about mean − √(2·log(1/α)·Var/n).

Power: the largest true positive rate G(a) of tests of D′ against D with false positive rate a is concave, and
G(a) = inf over s ≥ 0 of δ(s) + s·a (Dong, Roth & Su 2022, Proposition 2.12). With the band in place of δ this is a
lower band of G, so 1 − G is an upper band of the trade-off function. The band of the swapped pair gives δ at s < 1:
δ(s) = 1 − s + s·δ′(1/s).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from dpwitness.arrays import Booleans, Floats
from dpwitness.candidate import Estimate
from dpwitness.claims import Claim
from dpwitness.claims.claim import Numbers
from dpwitness.evidence.counts import Counts, cell_probabilities
from dpwitness.roots import halved

#: LARGEST_BET is the largest bet, as a fraction of the largest admissible bet: no run loses all wealth.
LARGEST_BET: Final = 0.9
#: BEST_BET_SHARE is the share of the wealth on the bet for an estimate; a grid of bets has the rest, as estimates err.
BEST_BET_SHARE: Final = 0.9
#: LEVEL_SHARES has the shares of an event's α for the bounds of p − s₀·q, of q, and of −q.
LEVEL_SHARES: Final = (0.9, 0.05, 0.05)


def best_bets(expected: Floats, values: Floats, log_thresholds: Floats) -> Floats:
    """The bets of the largest lower bounds if the cells have their expected counts; arguments as in `lower_means`."""
    bets = LARGEST_BET * np.exp(-0.1 * np.arange(120)) / np.ptp(values, axis=1)[:, None]
    tried = bets.shape[1]
    found = _lower_means(
        np.repeat(expected, tried, axis=0), np.repeat(values, tried, axis=0), bets.reshape(-1, 1), np.zeros(1),
        np.repeat(log_thresholds, tried),
    )  # fmt: skip
    return np.asarray(bets[np.arange(len(bets)), found.reshape(bets.shape).argmax(axis=1)])


def lower_means(cells: Floats, values: Floats, bets: Floats, log_thresholds: Floats) -> Floats:
    """Lower bounds of k means with confidence 1 − α each, at any stopping time; shape (k,).

    `cells` has the numbers of runs in each cell and `values` the cells' payoffs, shape (k, 4); `bets`, fixed before the
    runs, get nine tenths of the wealth; `log_thresholds` are log(1/α), shape (k,).
    """
    ranges = np.ptp(values, axis=1)
    grid = LARGEST_BET * np.exp2(-1.0 * np.arange(12))
    best = np.minimum(bets, LARGEST_BET / ranges)  # with an inadmissible bet the wealth would not be a martingale
    weights = np.log([BEST_BET_SHARE, *[(1 - BEST_BET_SHARE) / len(grid)] * len(grid)])
    return _lower_means(cells, values, np.column_stack([best, grid / ranges[:, None]]), weights, log_thresholds)


def _lower_means(cells: Floats, values: Floats, bets: Floats, log_weights: Floats, log_thresholds: Floats) -> Floats:
    """The largest refuted mean m (wealth ≥ threshold) by bisection, for k means at once; shape (k,)."""

    def stands(means: Floats) -> Booleans:
        gains = np.log1p(bets[:, None, :] * (values - means[:, None])[:, :, None])
        wealth = np.logaddexp.reduce(np.einsum("kc,kcb->kb", cells, gains) + log_weights, axis=1)
        return np.asarray(~(wealth >= log_thresholds))

    low, _ = halved(stands, np.asarray(values.min(axis=1)), np.asarray(values.max(axis=1)), 48)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLine:
    """The line that an event adds to a band, fixed before the runs: slope s₀, the event's share of α, its estimate."""

    slope: float
    alpha: float
    estimate: Estimate
    swapped: bool = False  # whether D and D′ are exchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class BandLine:
    """Simultaneous bounds of an event's probabilities p and q: p − slope·q ≥ difference and q_low ≤ q ≤ q_high.

    The bounds come from confirm runs. `swapped`: whether p is the probability under D′ and q under D; else p is the
    probability under D and q under D′.
    """

    slope: float
    difference: float
    q_low: float
    q_high: float
    swapped: bool = False

    def at(self, slope: Numbers) -> Floats:
        """A lower bound of p − slope·q. Arguments broadcast."""
        ahead = self.slope - np.asarray(slope, np.float64)
        return self.difference + ahead * np.where(ahead > 0, self.q_low, self.q_high)

    def outside(self, claim: Claim) -> float:
        """A lower bound of p − s·q − t for a half-plane p ≤ s·q + t of the claim; if positive, the claim is refuted."""
        q = np.array([self.q_low, (self.q_low + self.q_high) / 2, self.q_high])
        p = np.clip(self.slope * q + self.difference, 0.0, 1.0)
        plane = claim.half_plane(p, q)
        return float(np.max(self.at(plane.slope) - plane.intercept))


@dataclass(frozen=True, slots=True)
class ProfileBand:
    """The lower band of δ and of power that the events' lines give for a pair, in both directions."""

    lines: tuple[BandLine, ...]

    def delta(self, epsilon: ArrayLike) -> Any:
        """The lower band of δ at ε ≥ 0 (nats), the larger band of both directions. Arguments broadcast."""
        slopes = np.exp(np.asarray(epsilon, np.float64))
        return np.maximum(self._at_slopes(slopes, False), self._at_slopes(slopes, True))[()]

    def power(self, rate: ArrayLike) -> Any:
        """The lower band of tests' true positive rate at a false positive rate. Arguments broadcast."""
        rates, grid = np.asarray(rate, np.float64), np.exp(np.linspace(-18.0, 18.0, 12_001))
        found = np.maximum(rates, 0.0)
        for swapped in (False, True):
            # Between two slopes of the grid, δ(s) is at least δ at the larger and s·a at least s·a at the smaller.
            deltas = self._at_any_slope(grid, swapped)
            falling = np.append(np.maximum.accumulate(deltas[::-1])[::-1][1:], 0.0)
            first = np.maximum.accumulate(deltas[::-1])[-1]  # the band at slopes below the grid
            least = np.min(falling + grid * rates[..., None], axis=-1)
            found = np.maximum(found, np.minimum(least, first))
        return np.minimum(found, 1.0)[()]

    def _at_slopes(self, slopes: Floats, swapped: bool) -> Floats:
        found = np.zeros(np.shape(slopes))
        for line in self.lines:
            if line.swapped == swapped:
                found = np.maximum(found, line.at(slopes))
        return found

    def _at_any_slope(self, slopes: Floats, swapped: bool) -> Floats:
        """The band of one direction, improved at slopes below 1 by the lines of the other direction."""
        other = 1 - slopes + slopes * self._at_slopes(1 / slopes, not swapped)
        return np.maximum(self._at_slopes(slopes, swapped), other)


def band_of(planned: Sequence[PlannedLine], counts: Sequence[Counts], runs: int) -> ProfileBand:
    """The band that the counts give: one `Counts` for each planned line, in the line's direction.

    `runs`: the planned number of runs.
    """
    if not planned:
        return ProfileBand(())
    if len(planned) != len(counts):
        raise ValueError(f"{len(planned)} events were planned, {len(counts)} counted")
    cells = np.array([one.four for one in counts], np.float64)
    expected = np.array([expected_cells(line.estimate, runs) for line in planned])
    alphas, slopes = (np.array([getattr(line, name) for line in planned]) for name in ("alpha", "slope"))
    bounds = []
    for share, values in zip(LEVEL_SHARES, _payoffs(slopes), strict=True):
        thresholds = -np.log(share * alphas)
        bounds.append(lower_means(cells, values, best_bets(expected, values, thresholds), thresholds))
    difference, low, negative = bounds
    return ProfileBand(
        tuple(
            BandLine(
                slope=line.slope,
                difference=float(difference[k]),
                q_low=max(float(low[k]), 0.0),
                q_high=min(-float(negative[k]), 1.0),
                swapped=line.swapped,
            )
            for k, line in enumerate(planned)
        )
    )


def detectable_delta(epsilon: float, runs: int, *, alpha: float, power: float) -> float:
    """The smallest δ(ε) at which a band of `runs` runs is positive at ε with the given power, in the best case.

    The best case is an event with probability δ(ε) on D and 0 on D′ that has the whole of α: each hit multiplies the
    wealth by at most 1 + 0.9/(1 + e^ε), and outcomes added to the event on both D and D′ are at most a fair bet. The
    fewest hits that suffice are computed as in `lower_means`, their probability exactly. Infinite if even an event that
    always happens is not enough.
    """
    from scipy.special import betaincinv  # takes 0.2 s to import, and few bands need it

    needed = -math.log(LEVEL_SHARES[0] * alpha) - math.log(BEST_BET_SHARE)
    hits = math.ceil(needed / math.log1p(LARGEST_BET / (1 + math.exp(epsilon))))
    return float(betaincinv(hits, runs - hits + 1, power)) if hits <= runs else math.inf


def expected_cells(estimate: Estimate, runs: int) -> Floats:
    """The expected counts of the four cells in `runs` runs, at least 1/2 each; shape (4,)."""
    cells = np.array(cell_probabilities(estimate.p, estimate.q, estimate.both))
    return np.asarray(runs * cells / cells.sum() + 0.5)


def expected_differences(expected: Floats, slopes: Floats, log_threshold: float) -> tuple[Floats, Floats]:
    """The differences p − s·q and the expected distances of their lower bounds, shape (k,) each.

    `expected`: the expected counts of the four cells, shape (k, 4).
    """
    values = _payoffs(slopes)[0]
    runs = expected.sum(axis=1)
    means = (expected * values).sum(axis=1) / runs
    variance = (expected * values**2).sum(axis=1) / runs - means**2
    return means, np.sqrt(2 * log_threshold * np.maximum(variance, 0.0) / runs) + log_threshold / (3 * runs)


def _payoffs(slopes: Floats) -> tuple[Floats, Floats, Floats]:
    """The payoffs of the cells (1,0), (1,1), (0,1), (0,0) with the means p − s·q, q and −q; shape (k, 4) each."""
    ones, zeros = np.ones(len(slopes)), np.zeros(len(slopes))
    q = np.column_stack([zeros, ones, ones, zeros])
    return np.column_stack([ones, 1 - slopes, -slopes, zeros]), q, -q
