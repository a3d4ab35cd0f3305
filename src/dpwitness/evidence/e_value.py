"""e-values: how much evidence against a claim the counts of confirm runs are, at any stopping time.

A claim allows p ≤ s·q + t for the probabilities p and q of an event under D and D′ (`dpwitness.claims`). For paired
runs i let X_i = 1[M(D)_i ∈ S] − s·1[M(D′)_i ∈ S] − t. Under the claim E[X_i] ≤ 0 and
X_i ≥ −(s + t), so for a fixed λ in [0, 1/(s + t)) the wealth ∏(1+λX_i) is a non-negative supermartingale, and so is a
mixture over λ. It depends on the four counts alone. By Ville's inequality P(it ever reaches 1/α) ≤ α: one may look
after every batch and stop when one likes (Waudby-Smith & Ramdas 2024, JRSS-B 86(1); Shekhar & Ramdas 2023). E[X_i] does
not ask whether the two sides of a run are independent of each other: where they share their random draws X_i varies
less, and the evidence of a small difference is many times stronger.

Nor does it ask for independent runs: E[X_i | past] ≤ 0 is enough, the past being all that happened before run i. It
holds for a mechanism with a state, if each call keeps the claim in whatever state it finds, and the state moves by the
calls alone, whichever input they were given. Proof: let run i find the state u, and let v be the state after one more
call. Which side comes first is drawn by a fair coin that nothing else depends on (`runs.streams.order`). So
P[M(D)_i ∈ S | past] = (p_u + E p_v)/2 and P[M(D′)_i ∈ S | past] = (q_u + E q_v)/2: the same mixture of points (p, q)
each of which the claim allows, and p ≤ s·q + t is kept by mixtures. With sides in a fixed order D would find u and D′
v, and a state of period two would convict. A state that moves by the inputs, or calls that keep the claim only on
average over a state (a pool of noise, AR(1) noise), are not covered: `health.dependence` looks for them.
"""

import math
from bisect import bisect_left
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Estimate
from dpwitness.claims import Claim, HalfPlane
from dpwitness.evidence.cells import bet_on_cells, log_e_value_of_cells
from dpwitness.evidence.counts import Counts
from dpwitness.evidence.growth import best_bet, payoffs

Floats = NDArray[np.float64]

#: Bets as fractions of the largest admissible λ, log-spaced: half of the wealth is spread over them.
GRID: Final = 0.95 * np.exp2(-0.75 * np.arange(16))


def log_e_value(counts: Counts, claim: Claim, estimate: Estimate | None = None) -> float:
    """Log of the e-value against the claim; the claim is refuted at level α when it reaches log(1/α).

    Half of the wealth is bet as is best for `estimate`, which must be fixed before these runs, half over a log-spaced
    grid. Valid at any stopping time. Of counts of cells, where claim and estimate are of them too: see `cells`.
    """
    on_cells = bet_on_cells(counts, claim, estimate)
    if on_cells is not None:
        return log_e_value_of_cells(counts, *on_cells)
    values, log_weights = bets_and_weights(claim, estimate)
    terms = np.array([counts.n10, counts.n11, counts.n01, counts.n00]) @ values + log_weights
    top = terms.max()
    return float(top + math.log(np.exp(terms - top).sum()))


@lru_cache(maxsize=256)
def bets_and_weights(claim: Claim, estimate: Estimate | None) -> tuple[Floats, Floats]:
    """Log payoffs of every bet for the four outcomes, shape (4, bets), and the log weights of the bets, (bets,)."""
    plane = half_plane_of(claim, estimate)
    bets = GRID / (plane.slope + plane.intercept)
    weights = np.full(len(GRID), 1 / len(GRID))
    if estimate is not None:
        bets = np.append(bets, best_bet(estimate.p, estimate.q, plane, estimate.both))
        weights = np.append(weights / 2, 1 / 2)
    return np.log1p(np.outer(payoffs(plane), bets)), np.log(weights)


def half_plane_of(claim: Claim, estimate: Estimate | None) -> HalfPlane:
    """The half-plane of a claim that an estimate chooses."""
    return claim.half_plane() if estimate is None else claim.half_plane(estimate.p, estimate.q)


def log_e_values(
    counts: Counts, planes: HalfPlane, estimate: Estimate | None, betting: HalfPlane | None = None
) -> Floats:
    """Log e-values against many half-planes at once, shape (n,).

    The bets are those of each half-plane, or all those of `betting`, which must be admissible for each.
    """
    at = planes if betting is None else betting
    bets = GRID[:, None] / np.atleast_1d(at.slope + at.intercept)
    spread = np.broadcast_to(_log_wealth(counts, bets, planes), (len(GRID), len(planes.slope)))  # no runs: a plain 0
    mixture = np.logaddexp.reduce(spread, axis=0) - math.log(len(GRID))
    if estimate is None:
        return np.asarray(mixture)
    favourite = _log_wealth(counts, best_bet(estimate.p, estimate.q, at, estimate.both), planes)
    return np.asarray(np.logaddexp(mixture, favourite) - math.log(2))


def _log_wealth(counts: Counts, bets: Floats, planes: HalfPlane) -> Floats:
    """Log ∏(1+λX_i) for each bet."""
    cells = (counts.n10, counts.n11, counts.n01, counts.n00)
    return np.asarray(sum(n * np.log1p(bets * x) for n, x in zip(cells, payoffs(planes), strict=True) if n))


def runs_needed(claim: Claim, alpha: float) -> int:
    """How many paired runs it takes to refute the claim even if M(D) always lies in the event and M(D′) never does."""
    estimate = Estimate(p=1.0, q=0.0)
    return bisect_left(
        range(1 << 60), math.log(1 / alpha), 1, key=lambda n: log_e_value(Counts(n10=n), claim, estimate)
    )
