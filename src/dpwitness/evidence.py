"""Pure functions of counts: e-value, ε lower bound, p-values, detectable ε, multiplicity.

For paired runs i, independent of each other, let X_i = 1[M(D)_i ∈ S] − e^ε·1[M(D′)_i ∈ S] − δ. Under the claim
E[X_i] ≤ 0 and X_i ≥ −(e^ε+δ), so for a fixed λ in [0, 1/(e^ε+δ)) the wealth ∏(1+λX_i) is a non-negative
supermartingale, and so is a mixture over λ. It depends on the four counts alone. By Ville's inequality P(it ever
reaches 1/α) ≤ α: one may look after every batch and stop when one likes (Waudby-Smith & Ramdas 2024, JRSS-B 86(1);
Shekhar & Ramdas 2023). E[X_i] does not ask whether the two sides of a run are independent of each other: where they
share their random draws X_i varies less, and the evidence of a small difference is many times stronger.

Only `Counts` go in, which confirm runs alone make. What search runs suggest has the type `Estimate`; it may place a
bet, it is never evidence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpwitness.claim import Claim
from dpwitness.counts import Counts

__all__ = [
    "Estimate",
    "best_bet",
    "detectable_at_best",
    "detectable_epsilon",
    "epsilon_lower_bound",
    "growth_rate",
    "holm",
    "log_e_value",
    "log_mean_e_value",
    "p_value",
    "rare_event",
    "runs_needed",
]

Floats = NDArray[np.float64]

#: Bets as fractions of the largest admissible λ, log-spaced: half of the wealth is spread over them.
GRID: Final = 0.95 * np.exp2(-0.75 * np.arange(16))
#: Test ε at which the lower bound is evaluated: 0.1 % apart, absolute 10⁻⁴ near zero.
EPSILONS: Final = np.concatenate([np.arange(0.0, 0.1, 1e-4), 0.1 * 1.001 ** np.arange(8_850)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Rough probabilities of an event under D, under D′ and under both in one run, from search runs.

    Good enough to place a bet on. `both` None: the sides are independent.
    """

    p: float
    q: float
    both: float | None = None

    def __post_init__(self) -> None:
        for name in ("p", "q"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be a probability")
        if self.both is not None and not 0 <= self.both <= min(self.p, self.q) + 1e-12:
            raise ValueError(f"both={self.both!r} must be a probability, at most p and q")


def _cells(p: Any, q: Any, both: Any = None) -> tuple[Any, Any, Any, Any]:
    """Probabilities of (1,0), (1,1), (0,1), (0,0); of independent sides where `both` is None."""
    if both is None:
        return p * (1 - q), p * q, (1 - p) * q, (1 - p) * (1 - q)
    return np.maximum(p - both, 0.0), both, np.maximum(q - both, 0.0), np.maximum(1 - p - q + both, 0.0)


def _payoffs(ratio: Any, delta: float) -> tuple[Any, Any, Any, float]:
    """X for the four outcomes of a pair of runs."""
    return 1 - delta, 1 - ratio - delta, -ratio - delta, -delta


def best_bet(
    p: ArrayLike, q: ArrayLike, epsilon: ArrayLike, delta: float = 0.0, both: ArrayLike | None = None
) -> Floats:
    """Return the λ of largest growth rate E[log(1+λX)] for event probabilities p and q; 0 where nothing grows.

    `both`: the probability that a paired run has both sides in the event; None: independent sides.

    Broadcasts. λ stays below 0.999 of the largest admissible value: wealth never falls to 0 by rounding.
    """
    p, q, ratio = np.broadcast_arrays(
        np.asarray(p, np.float64), np.asarray(q, np.float64), np.exp(np.asarray(epsilon, np.float64))
    )
    cells, payoffs = _cells(p, q, both), _payoffs(ratio, delta)
    low, high = np.zeros(p.shape), 0.999 / (ratio + delta)
    drift = sum(c * x for c, x in zip(cells, payoffs, strict=True))
    # The zero of a falling slope: from the solution without (1,1) and δ, Newton's steps in a shrinking bracket.
    bet = np.clip((cells[0] - ratio * cells[2]) / np.maximum(ratio * (cells[0] + cells[2]), 1e-300), low, high)
    for _ in range(6 if delta == 0 else 30):
        terms = [x / (1 + bet * x) for x in payoffs]
        slope = sum(c * t for c, t in zip(cells, terms, strict=True))
        low, high = np.where(slope > 0, bet, low), np.where(slope > 0, high, bet)
        step = bet + slope / np.maximum(sum(c * t * t for c, t in zip(cells, terms, strict=True)), 1e-300)
        bet = np.where((step >= low) & (step <= high), step, (low + high) / 2)
    return np.where(drift > 0, bet, 0.0)


def growth_rate(
    p: ArrayLike, q: ArrayLike, epsilon: ArrayLike, delta: float = 0.0, both: ArrayLike | None = None
) -> Floats:
    """Nats of evidence a paired run, at the best bet, for event probabilities p under D and q under D′; 0 if none.

    log(1/α) divided by this is the number of runs that an oracle needs to refute (ε, δ). Broadcasts.
    """
    bet = best_bet(p, q, epsilon, delta, both)
    cells = _cells(np.asarray(p, np.float64), np.asarray(q, np.float64), both)
    payoffs = _payoffs(np.exp(np.asarray(epsilon, np.float64)), delta)
    total = sum(c * np.log1p(bet * x) for c, x in zip(cells, payoffs, strict=True))
    return np.asarray(np.maximum(total, 0.0))


def _log_wealth(counts: Counts, bets: Floats, ratio: Any, delta: float) -> Floats:
    """Log ∏(1+λX_i) for each bet."""
    cells = (counts.n10, counts.n11, counts.n01, counts.n00)
    payoffs = _payoffs(ratio, delta)
    return np.asarray(sum(n * np.log1p(bets * x) for n, x in zip(cells, payoffs, strict=True) if n))


def _log_e_values(
    counts: Counts, epsilons: Floats, delta: float, hint: Estimate | None, bet_against: float | None = None
) -> Floats:
    """Log e-values against every ε at once, at the bets of each ε, or all at those of the ε `bet_against`."""
    ratio = np.exp(epsilons)
    betting = epsilons if bet_against is None else np.array([bet_against])
    largest = 1 / (np.exp(betting) + delta)
    spread = _log_wealth(counts, GRID[:, None] * largest, ratio, delta)
    spread = np.broadcast_to(spread, (len(GRID), len(epsilons)))  # no runs: a plain 0
    mixture = np.logaddexp.reduce(spread, axis=0) - math.log(len(GRID))
    if hint is None:
        return np.asarray(mixture)
    favourite = _log_wealth(counts, best_bet(hint.p, hint.q, betting, delta, hint.both), ratio, delta)
    return np.asarray(np.logaddexp(mixture, favourite) - math.log(2))


@lru_cache(maxsize=256)
def _book(claim: Claim, hint: Estimate | None) -> tuple[Floats, Floats]:
    """Log payoffs of every bet for the four outcomes, shape (4, bets), and the log weights of the bets."""
    bets = GRID / (claim.ratio + claim.delta)
    weights = np.full(len(GRID), 1 / len(GRID))
    if hint is not None:
        bets = np.append(bets, best_bet(hint.p, hint.q, claim.epsilon, claim.delta, hint.both))
        weights = np.append(weights / 2, 1 / 2)
    return np.log1p(np.outer(_payoffs(claim.ratio, claim.delta), bets)), np.log(weights)


def log_e_value(counts: Counts, claim: Claim, hint: Estimate | None = None) -> float:
    """Log of the e-value against the claim; the claim is refuted at level α when it reaches log(1/α).

    Half of the wealth is bet as is best for `hint`, which must be fixed before these runs, half over a log-spaced
    grid. Valid at any stopping time.
    """
    payoffs, log_weights = _book(claim, hint)
    terms = np.array([counts.n10, counts.n11, counts.n01, counts.n00]) @ payoffs + log_weights
    top = terms.max()
    return float(top + math.log(np.exp(terms - top).sum()))


def log_mean_e_value(log_e_values: Sequence[float]) -> float:
    """Log of the average of e-values, itself an e-value: several candidates confirmed together, no correction."""
    if not len(log_e_values):
        raise ValueError("an average needs at least one e-value")
    return float(np.logaddexp.reduce(np.asarray(log_e_values, np.float64)) - math.log(len(log_e_values)))


def epsilon_lower_bound(
    counts: Counts,
    *,
    delta: float = 0.0,
    alpha: float,
    hint: Estimate | None = None,
    claim_epsilon: float | None = None,
) -> float:
    """Return the ε (nats) that the mechanism exceeds, with confidence 1 − alpha; 0.0 if none.

    The largest point of a fixed grid of ε (0.1 % apart, up to about 700) up to which every point has E(ε) ≥ 1/α, so it
    is valid at any stopping time and whether or not E falls in ε. Let ε* be the least grid point that is at least the
    true ε, where the claim is true. To exceed the true ε the bound must be at least ε*, so that E(ε*) ≥ 1/α, which has
    probability at most α (Ville's inequality). The event and `hint` must have been fixed before these runs.
    Waudby-Smith & Ramdas (2024), JRSS-B 86(1).

    `claim_epsilon` = c, the ε of a claim that is tested on the same runs and also fixed before them: where c is refuted
    (`log_e_value` at δ), the bound is at least c. c becomes a point of the grid, and points below it are bet against as
    c is: λ < 1/(e^c + δ) is admissible for every ε ≤ c, so their E(ε) are e-values all the same; and as
    X = 1[M(D) ∈ S] − e^ε·1[M(D′) ∈ S] − δ falls in ε, run by run, E(ε) ≥ E(c) for every ε ≤ c, whatever the runs.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r} must lie between 0 and 1")
    bar = math.log(1 / alpha)
    grid, last, bet_against = EPSILONS, 0.0, None
    if claim_epsilon is not None:
        if log_e_value(counts, Claim(epsilon=claim_epsilon, delta=delta), hint) >= bar:
            grid, last = grid[grid > claim_epsilon], claim_epsilon  # and with it every point below
        else:
            grid, bet_against = grid[grid < claim_epsilon], claim_epsilon
    # In pieces: the first failure is usually early, and the grid is long.
    for piece in np.array_split(grid, 20):
        refuted = _log_e_values(counts, piece, delta, hint, bet_against) >= bar
        if not refuted.all():
            first = int(np.argmin(refuted))
            return float(piece[first - 1]) if first else last
        last = float(piece[-1]) if len(piece) else last
    return last


def runs_needed(claim: Claim, alpha: float) -> int:
    """How many paired runs it takes to refute the claim even if M(D) always lies in the event and M(D′) never does."""
    low, high = 1, 1
    hint = Estimate(p=1.0, q=0.0)
    while log_e_value(Counts(n10=high), claim, hint) < math.log(1 / alpha) and high < 1 << 60:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if log_e_value(Counts(n10=middle), claim, hint) >= math.log(1 / alpha):
            high = middle
        else:
            low = middle + 1
    return high


def detectable_epsilon(
    counts: Counts, claim: Claim, *, alpha: float, hint: Estimate | None = None, power: float = 0.95
) -> float:
    """Return the smallest ε′ (nats) that this event, this many runs and this α would have refuted with the given power.

    It is meant for every mechanism that falls into the event under D as often as observed and under D′ at the rate
    q = (p − δ)e^−ε′ or less, however its two sides hang together in a paired run: it is computed for the smallest
    possible share of runs with both sides in the event, max(0, p + q − 1). The log e-value is taken as normal around
    its mean, at the bets that were in force. Infinite if no ε′ would do (the event was never seen, say).

    Why that share P11 is the worst: for a bet λ the payoffs of the cells are x10 = 1 − δ, x11 = 1 − e^ε − δ,
    x01 = −e^ε − δ and x00 = −δ, and p and q fix P10 = p − P11, P01 = q − P11 and P00 = 1 − p − q + P11. So with
    f(x) = log(1 + λx) the derivative of the mean by P11 is f(x11) + f(x00) − f(x10) − f(x01). As x11 + x00 = x10 + x01
    and x01 ≤ x11, x00 ≤ x10, and f is concave, it is not negative. That of E[f(X)²] is not positive, as f² is convex
    where 1 + λx ≤ e, which λ ≤ 1/(e^ε + δ) ensures; so where the mean is positive the variance falls in P11, too. A
    smaller q at the smallest P11 moves runs from (0,1) to (0,0) or from (1,1) to (1,0), where f is larger.
    """
    n = counts.runs
    p = counts.hits / max(n, 1)
    if n == 0 or p <= claim.delta:
        return math.inf
    bar = math.log(1 / alpha)
    payoffs, log_weights = _book(claim, hint)
    from scipy.special import ndtri  # 0.1 s, needed once a check

    margin = float(ndtri(power))

    def refuted(epsilon: float) -> bool:
        q = (p - claim.delta) * math.exp(-epsilon)
        cells = np.array(_cells(p, q, max(p + q - 1, 0.0)))
        mean, square = cells @ payoffs, cells @ payoffs**2
        spread = np.sqrt(np.maximum(square - mean**2, 0.0) * n)
        return bool(np.any(n * mean - margin * spread + log_weights >= bar))

    low, high = claim.epsilon, claim.epsilon + 50.0
    if not refuted(high):
        return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high


#: An event seen under D less often than this share of the runs, or this number of times, is a rare tail.
RARE_SHARE: Final = 0.01
RARE_HITS: Final = 100


def rare_event(counts: Counts) -> bool:
    """Whether D fell into the event in fewer than 1 % of the runs or fewer than 100 times.

    What a pass says of a rare event it says of a tail of the outcomes; most of them it has not looked at.
    """
    return counts.hits < max(RARE_SHARE * counts.runs, RARE_HITS)


def detectable_at_best(runs: int, claim: Claim, *, alpha: float) -> float:
    """`detectable_epsilon` of an event that happens half of the time: what so many runs can catch at all."""
    return detectable_epsilon(Counts(n10=runs - runs // 2, n00=runs // 2), claim, alpha=alpha)


def p_value(counts: Counts, claim: Claim, *, method: str = "exact", seed: int = 0) -> float:
    """p-value of the claim for a number of runs that was fixed beforehand, with independent sides.

    "exact", δ = 0: the D side is thinned once by Binomial(hits, e^−ε), seeded, then Fisher's exact test, one-sided
    (Ding et al. 2018, section 4). "exact", δ > 0: the smallest level at which two one-sided Clopper–Pearson bounds,
    half of it each, refute the claim. "score": statsmodels' score test, a quick look, not exact; for δ > 0 on the
    difference of the thinned rates.
    """
    from scipy import stats  # 0.5 s

    n, hits, neighbour_hits = counts.runs, counts.hits, counts.neighbour_hits
    if method not in ("exact", "score"):
        raise ValueError(f"method={method!r} must be 'exact' or 'score'")
    if n == 0:
        return 1.0
    if method == "score":
        return _score_p_value(counts, claim, seed)
    if claim.delta == 0:
        thinned = int(np.random.default_rng(seed).binomial(hits, math.exp(-claim.epsilon)))
        return float(stats.hypergeom.sf(thinned - 1, 2 * n, n, thinned + neighbour_hits))

    def refuted(level: float) -> bool:
        lower = stats.beta.ppf(level / 2, hits, n - hits + 1) if hits else 0.0
        upper = stats.beta.isf(level / 2, neighbour_hits + 1, n - neighbour_hits) if neighbour_hits < n else 1.0
        return bool(lower > claim.ratio * upper + claim.delta)

    low, high = -700.0, 0.0  # log of the level
    if not refuted(1.0):
        return 1.0
    if refuted(math.exp(low)):
        return math.exp(low)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _score_p_value(counts: Counts, claim: Claim, seed: int) -> float:
    from statsmodels.stats.proportion import (  # type: ignore[import-untyped]  # 0.6 s, and no types
        test_proportions_2indep,
    )

    n, hits, other = counts.runs, counts.hits, counts.neighbour_hits
    if claim.delta == 0:
        if hits == 0 or other == 0:  # the score statistic of a ratio needs both
            hits, other, n = hits + 1, other + 1, n + 2
        result = test_proportions_2indep(
            hits, n, other, n, value=claim.ratio, compare="ratio", method="score", alternative="larger"
        )
    else:
        thinned = int(np.random.default_rng(seed).binomial(hits, math.exp(-claim.epsilon)))
        least = claim.delta * math.exp(-claim.epsilon)
        with np.errstate(divide="ignore", invalid="ignore"):  # it reports the ratio, too, which other = 0 does not have
            result = test_proportions_2indep(
                thinned, n, other, n, value=least, compare="diff", method="score", alternative="larger"
            )
    return float(result.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of several claims tested in one run: Holm's step-down method, any dependence."""
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]  # 0.6 s, and no types

    return [float(p) for p in multipletests(list(p_values), method="holm")[1]]
