"""Lower bounds of the parameter of a claim's family, and what a number of runs would have detected."""

import math
from typing import Final

import numpy as np

from dpwitness.candidate import Estimate
from dpwitness.claims import Claim
from dpwitness.evidence.bet import (
    bet_on_cells,
    bets_and_weights,
    detectable_of_cells,
    half_plane_of,
    log_e_value,
    log_e_values,
    lower_bound_of_cells,
)
from dpwitness.evidence.counts import Counts, cell_probabilities

#: Parameters at which the lower bound is evaluated: 0.1 % apart, absolute 10⁻⁴ near zero.
PARAMETERS: Final = np.concatenate([np.arange(0.0, 0.1, 1e-4), 0.1 * 1.001 ** np.arange(8_850)])
#: By so much at most is the detectable parameter looked for above the claim's.
FARTHEST: Final = 50.0
#: An event seen under D less often than this share of the runs, or this number of times, is a rare tail.
RARE_SHARE: Final = 0.01
RARE_HITS: Final = 100


def lower_bound(counts: Counts, claim: Claim, *, alpha: float, estimate: Estimate | None = None) -> float:
    """Return the parameter of the claim's family (ε in nats) that the mechanism exceeds with confidence 1 − alpha.

    0.0 where it exceeds none. The largest point x of a fixed grid (0.1 % apart, up to about 700) up to which every
    point has E(x) ≥ 1/α, so it is valid at any stopping time and whether or not E falls in x. Let x* be the least grid
    point that is at least the true parameter, where the claim is true. To exceed the true parameter the bound must be
    at least x*, so that E(x*) ≥ 1/α, which has probability at most α (Ville's inequality). The event and the estimate
    must have been fixed before these runs. Waudby-Smith & Ramdas (2024), JRSS-B 86(1).

    Where the claim's own parameter c is refuted (`log_e_value`), the bound is at least c, which is one more point of
    the grid: for x ≤ c the region of x lies in that of c, so whatever refutes c refutes x. Points below c are bet
    against as c is, where their half-planes have no larger slope and intercept: λ < 1/(s + t) of c's half-plane is then
    admissible for them, so their E(x) are e-values all the same; and as X = 1[M(D) ∈ S] − s·1[M(D′) ∈ S] − t falls in s
    and t, run by run, E(x) ≥ E(c), whatever the runs. Other families are bet against point by point.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r} must lie between 0 and 1")
    on_cells = bet_on_cells(counts, claim, estimate)
    if on_cells is not None:
        return lower_bound_of_cells(counts, *on_cells, alpha=alpha)
    threshold, c = math.log(1 / alpha), claim.parameter
    refuted = log_e_value(counts, claim, estimate) >= threshold
    grid = PARAMETERS[c < PARAMETERS] if refuted else PARAMETERS[c > PARAMETERS]
    last, own = (c if refuted else 0.0), half_plane_of(claim, estimate)
    p, q = (None, None) if estimate is None else (estimate.p, estimate.q)
    # In pieces: the first failure is usually early, and the grid is long.
    for piece in np.array_split(grid, 20):
        planes = claim.half_planes(piece, p, q)
        below = not refuted and np.all(planes.slope <= own.slope) and np.all(planes.intercept <= own.intercept)
        passed = log_e_values(counts, planes, estimate, own if below else None) >= threshold
        if not passed.all():
            first = int(np.argmin(passed))
            return float(piece[first - 1]) if first else last
        last = float(piece[-1]) if len(piece) else last
    return last


def detectable_parameter(
    counts: Counts, claim: Claim, *, alpha: float, estimate: Estimate | None = None, power: float = 0.95
) -> float:
    """Return the smallest parameter that this event, this many runs and this α would have refuted with the given power.

    It is meant for every mechanism that falls into the event under D as often as observed (p) and under D′ at the rate
    q that a claim of this parameter just allows, or less, however its two sides hang together in a paired run: it is
    computed for the smallest possible share of runs with both sides in the event, max(0, p + q − 1). The log e-value is
    taken as normal around its mean, at the bets that were in force. Infinite if no parameter would do (the event was
    never seen, say).

    Why that share P11 is the worst: for a bet λ the payoffs of the cells are x10 = 1 − t, x11 = 1 − s − t,
    x01 = −s − t and x00 = −t, and p and q fix P10 = p − P11, P01 = q − P11 and P00 = 1 − p − q + P11. So with
    f(x) = log(1 + λx) the derivative of the mean by P11 is f(x11) + f(x00) − f(x10) − f(x01). As x11 + x00 = x10 + x01
    and x01 ≤ x11, x00 ≤ x10, and f is concave, it is not negative. That of E[f(X)²] is not positive, as f² is convex
    where 1 + λx ≤ e, which λ ≤ 1/(s + t) ensures; so where the mean is positive the variance falls in P11, too. A
    smaller q at the smallest P11 moves runs from (0,1) to (0,0) or from (1,1) to (1,0), where f is larger.
    """
    from scipy.optimize import brentq  # 0.2 s, needed for a pass alone
    from scipy.special import ndtri

    n = counts.runs
    p = counts.hits / max(n, 1)
    on_cells = bet_on_cells(counts, claim, estimate)
    if on_cells is not None:
        return detectable_of_cells(counts, *on_cells, alpha=alpha, margin=float(ndtri(power)))
    if n == 0 or p <= claim.largest(0.0):
        return math.inf
    values, log_weights = bets_and_weights(claim, estimate)
    threshold, margin = math.log(1 / alpha), float(ndtri(power))

    def excess(parameter: float) -> float:
        q = claim.smallest(p, parameter)
        cells = np.array(cell_probabilities(p, q, max(p + q - 1, 0.0)))
        mean, square = cells @ values, cells @ values**2
        spread = np.sqrt(np.maximum(square - mean**2, 0.0) * n)
        return float(np.max(n * mean - margin * spread + log_weights)) - threshold

    low, high = claim.parameter, claim.parameter + FARTHEST
    if excess(high) < 0:
        return math.inf
    if excess(low) >= 0:
        return low
    return float(brentq(excess, low, high, xtol=1e-12, rtol=1e-14))


def detectable_at_best(runs: int, claim: Claim, *, alpha: float) -> float:
    """`detectable_parameter` of an event that happens half of the time: what so many runs can detect at all.

    Where the claim allows much of what D′ never does, of one half-way between that and certain. The bets are those
    against an event that just exceeds twice the claim, or one nat more: a curved claim has another half-plane for each
    event, and the usual one may lie above all with p = 1/2.
    """
    allowed = claim.largest(0.0)
    share = 0.5 if allowed < 0.25 else (1 + allowed) / 2
    hits, estimate = runs - int(runs * (1 - share)), None
    if claim.curved:
        exceeded = max(2 * claim.parameter, claim.parameter + 1)
        estimate = Estimate(p=share, q=min(claim.smallest(share, exceeded), share))
    return detectable_parameter(Counts(n10=hits, n00=runs - hits), claim, alpha=alpha, estimate=estimate)


def rare_event(counts: Counts) -> bool:
    """Whether D fell into the event in fewer than 1 % of the runs or fewer than 100 times.

    What a pass says of a rare event it says of a tail of the outcomes; most of them it has not looked at.
    """
    return counts.hits < max(RARE_SHARE * counts.runs, RARE_HITS)
