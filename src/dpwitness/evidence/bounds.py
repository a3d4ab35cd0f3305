"""Lower bounds of a mechanism's parameter, and the parameters that a number of runs would have detected."""

import math
from bisect import bisect_left
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np

from dpwitness.candidate import MOST_NATS, Estimate
from dpwitness.claims import Claim
from dpwitness.evidence.bet import Bet, OnCells, event_bet, log_e_value
from dpwitness.evidence.counts import Counts
from dpwitness.evidence.portfolio import EProcess
from dpwitness.roots import halved

#: MOST_RUNS is a number of runs beyond any check, at which searches for a number of runs end.
MOST_RUNS: Final = 10**18
#: POWER is the probability of refutation at which a parameter is called detectable.
POWER: Final = 0.95
#: ABSENCE_PROBABILITY is the largest probability of a replay without a hit, at half of the witness's rate, at which the
#: replay needs no further runs.
ABSENCE_PROBABILITY: Final = 1e-6
#: RARE_RATE is the probability on D of the rare event for which a pass states a detectable parameter: leaks in one run
#: of a thousand are common, and a frequent event does not show them.
RARE_RATE: Final = 1e-3


def lower_bound(bet: EProcess, claim: Claim, *, alpha: float) -> float:
    """The parameter of the claim's family (ε in nats) that the mechanism exceeds with confidence 1 − alpha.

    The bound is the largest point x of a fixed grid (`Bet.parameters`) up to which every point has an e-value
    E(x) ≥ 1/α; 0.0 if no point has. It is valid at any stopping time, whether or not E falls in x: let x* be the
    smallest grid point ≥ the true parameter, so that the claim at x* is true. A bound above the true parameter is
    at least x*, so E(x*) ≥ 1/α, which has probability at most α (Ville's inequality). Events, estimates and shares of
    the wealth must have been fixed before these runs. Waudby-Smith & Ramdas (2024), JRSS-B 86(1).

    The claim's own parameter c is one more point of the grid. If c is refuted, the bound is at least c: for x ≤ c the
    region of x lies in the region of c, so whatever refutes c refutes x. Points below c get the bets against c where
    their half-planes have no larger slope s and intercept t: c's λ < 1/(s + t) is admissible for them, so E(x) is an
    e-value; and X = 1[M(D) ∈ S] − s·1[M(D′) ∈ S] − t falls in s and t, run by run, so E(x) ≥ E(c). The points below a
    curved claim have bets of their own and are all tried: rarely a point is not refuted, and the bound is less than c.

    On cells E falls in x, so the refuted parameters are an interval from 0, and the bound is its end. If the wealth is
    shared by two parts, the bound is the larger bound of the parts: a part that reaches 1/α with its share refutes
    without the other part. Both parts may refute c together where neither part refutes c; then the bound is c.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r} must lie between 0 and 1")
    threshold, c = math.log(1 / alpha), claim.parameter
    refuted = bet.log_e_value(claim) >= threshold
    if isinstance(bet, Bet) and len(bet.parts) > 1:
        most = max(lower_bound(one, claim, alpha=alpha * share) for one, share in bet.alone)
        if refuted and most < c and (not claim.curved or _refuted_up_to(bet, claim, threshold, above=False)[1]):
            most = c
        return most
    if isinstance(bet, Bet) and isinstance(bet.parts[0], OnCells):
        low, high = (c, MOST_NATS) if refuted else (0.0, c)
        if bet.log_e_value(claim.at(low)) < threshold:
            return 0.0
        return halved(lambda x: bet.log_e_value(claim.at(x)) < threshold, low, high, 60)[0]  # to the last bit
    if not claim.curved and not refuted:  # below c the bets are those against c, so E(x) falls in x: bisection
        points = bet.parameters(claim, above=False)
        first = bisect_left(points, True, key=lambda x: bet.log_e_value(claim.at(float(x)), claim) < threshold)
        return float(points[first - 1]) if first else 0.0
    if claim.curved:
        last, all_refuted = _refuted_up_to(bet, claim, threshold, above=False)
        if not (refuted and all_refuted):
            return last
    return _refuted_up_to(bet, claim, threshold, above=True)[0]


def _refuted_up_to(bet: EProcess, claim: Claim, threshold: float, *, above: bool) -> tuple[float, bool]:
    """The last grid point above (or below) the claim's parameter up to which points are refuted, and whether all are.

    The point is the claim's parameter (or 0) if the first grid point is not refuted.
    """
    points, against, last = bet.parameters(claim, above=above), None if above else claim, above * claim.parameter
    for point, log_e in zip(points.tolist(), bet.log_e_values(claim, points, against), strict=True):
        if not log_e >= threshold:
            return last, False
        last = point
    return last, True


def detectable_parameter(bet: EProcess, claim: Claim, *, alpha: float) -> float:
    """The smallest parameter that this bet, with its number of runs and α, would have refuted with power `POWER`.

    `Bet.excess` states the mechanisms that are assumed. Infinite if no parameter would be refuted, for example because
    the event was never seen.
    """
    from scipy.optimize import brentq  # takes 0.2 s to import, and only a pass needs it

    excess = bet.excess(claim, alpha=alpha, margin=NormalDist().inv_cdf(POWER))
    low, high = claim.parameter, claim.parameter + 50.0
    if excess is None or excess(high) < 0:
        return math.inf
    if excess(low) >= 0:
        return low
    return float(brentq(excess, low, high, xtol=1e-12, rtol=1e-14))


def detects(bet: EProcess, claim: Claim, parameter: float, *, alpha: float) -> bool:
    """Whether `detectable_parameter` ≤ `parameter`, without root finding, for a `parameter` ≥ the claim's parameter."""
    excess = bet.excess(claim, alpha=alpha, margin=NormalDist().inv_cdf(POWER))
    return excess is not None and excess(parameter) >= 0


def why_enough(bet: Bet, claim: Claim, log_e: float, *, alpha: float, ratio: float | None) -> str:
    """The reason to end a pass after the runs of its bet: "detectable", "converged", or "" for further runs.

    "detectable": the runs would have refuted a mechanism for which the event shows `ratio` times the claim's parameter;
    more runs do not make the event show more. "converged", if `ratio` is None: twice the runs at the same rates would
    lower the detectable parameter by less than 1 %. `log_e`: the logarithm of the whole e-value. If it is positive, or
    the runs exceed the claim by more than a standard error, the next runs may refute, so the check goes on. The reason
    depends on the counts alone and an e-value is valid at any stopping time, so the level is kept.
    """
    if may_refute(bet, claim, log_e):
        return ""
    if ratio is not None:
        share = bet.parts[0].share_shown(bet.counts, claim)
        caught = ratio > 1 and share > 0 and detects(bet, claim, ratio * claim.parameter / share, alpha=alpha)
        return "detectable" if caught else ""
    now = detectable_parameter(bet, claim, alpha=alpha)
    twice = replace(bet, counts=bet.counts + bet.counts)
    gains = math.isinf(now) or detects(twice, claim, max(0.99 * now, claim.parameter), alpha=alpha)
    return "" if gains else "converged"


def why_excluded(bet: Bet, claim: Claim, log_e: float, *, alpha: float, witness: Counts) -> str:
    """The text "excluded" if a replay's runs would have refuted half of the witness's excess; "" if more are needed.

    The excess is the parameter that the rates of the `witness` show, less the claim's parameter. If the event never
    happened on D, the runs suffice if the event's absence has a probability of at most `ABSENCE_PROBABILITY` at half of
    the witness's rate.
    """
    if may_refute(bet, claim, log_e):
        return ""
    if not bet.counts.hits:
        expected = bet.counts.runs * witness.hits / (2 * max(witness.runs, 1))
        return "excluded" if expected >= -math.log(ABSENCE_PROBABILITY) else ""
    least = half_of_excess(witness, claim)
    return "excluded" if least > claim.parameter and detects(bet, claim, least, alpha=alpha) else ""


def may_refute(bet: Bet, claim: Claim, log_e: float) -> bool:
    """Whether the next runs may refute: the e-value exceeds 1, or the runs exceed the claim by a standard error.

    A mechanism that exactly meets the claim, such as randomised response, exceeds one standard error in one check of
    six; a mechanism beyond the claim by half of the detectable excess does in 99 of 100.
    """
    return log_e > 0 or bet.standard_errors(claim) > 1.0


def half_of_excess(witness: Counts, claim: Claim) -> float:
    """The claim's parameter plus half of the excess that a witness's rates show, with one more hit on D′ imagined."""
    runs = max(witness.runs, 1)
    shown = float(claim.reached(witness.hits / runs, (witness.neighbour_hits + 1) / (runs + 1)))
    return claim.parameter + max(shown - claim.parameter, 0.0) / 2


def runs_to_detect(claim: Claim, parameter: float, *, alpha: float) -> int:
    """The number of runs in which an event of probability 1/2 on D detects a parameter above the claim's own."""
    return bisect_left(
        range(MOST_RUNS), True, 1, key=lambda n: detects(_even_bet(n, claim), claim, parameter, alpha=alpha)
    )


def detectable_at_best(runs: int, claim: Claim, *, alpha: float) -> float:
    """`detectable_parameter` of an event of probability 1/2 on D: the least parameter that `runs` runs can detect.

    If the claim allows p ≥ 1/4 at q = 0 (a large δ), the event's p lies half-way between the allowed p and 1. A curved
    claim has another half-plane for each event, and perhaps no event with p = 1/2 exceeds its default half-plane: the
    bets are for an event that exactly meets twice the claim's parameter, or the parameter plus 1 if this is larger.
    """
    return detectable_parameter(_even_bet(runs, claim), claim, alpha=alpha)


def detectable_at_rate(rate: float, runs: int, claim: Claim, *, alpha: float) -> float:
    """`detectable_parameter` of an event with the probability `rate` on D, after `runs` runs."""
    with np.errstate(under="ignore"):  # a result may be printed while the user's setting raises errors
        return detectable_parameter(_bet_at_rate(rate, runs, claim), claim, alpha=alpha)


@lru_cache(maxsize=256)
def detectable_probability(runs: int, claim: Claim, *, alpha: float) -> float:
    """The smallest P[M(D) ∈ S] of a single event S by which `runs` runs refute the claim with power `POWER`.

    This is the best case: D′ never falls into S, and the bet was made for these probabilities. The value follows from
    the bet's e-values and the binomial law of the hits; for δ > 0 bets made for a rarer event reach the same power at a
    P[M(D) ∈ S] that is 2 to 3 % smaller. Infinite if not even an event that always happens refutes the claim.

    No single event does better with the same bets. If D′ falls into S in some runs, X is smaller in these runs, so an
    event with the same p and any q needs at least as many hits. Of the events with p − s·q = δ the event with q = 0 and
    p = δ has the fastest mean growth: another event adds to it outcomes with p′ = s·q′, which are a fair bet, and
    log(1 + λX) is concave. So against (ε, δ) the value is the smallest δ(ε) that the runs could have shown by a bet on
    any one event.

    A graded event may show a smaller δ(ε), as it wins on both sides: at best one event never happens on D′, and another
    never on D, and each of twice as many hits pays log(1 + λ/2), more than half of log(1 + λ). A graded bet of half of
    the wealth, as in epochs, reached 0.63 of this probability near ε = 0 (the smallest of ten claims, 10 to 10⁶ runs, α
    from 10⁻⁶ to 0.05), 0.8 with α = 10⁻⁶.
    """
    from scipy.special import betainc  # takes 0.2 s to import, and only a pass needs it

    runs, threshold = min(runs, MOST_RUNS), math.log(1 / alpha)

    def refutes(hits: int, p: float) -> bool:
        counts = Counts(n10=hits, n00=runs - hits)
        return log_e_value(counts, claim, Estimate(p=p, q=0.0)) >= threshold

    def has_power(log_p: float) -> bool:
        p = math.exp(log_p)
        # Bisection finds the fewest hits, as more hits never pay less.
        hits = bisect_left(range(runs + 1), True, key=lambda hits: refutes(hits, p))
        return hits <= runs and float(betainc(hits, runs - hits + 1, p)) >= POWER  # P[Bin(runs, p) ≥ hits]

    low, high = math.log(max(1 / max(runs, 1), claim.largest(0.0))), 0.0
    if not runs or not refutes(runs, 1.0):
        return math.inf
    steps = max(math.ceil(math.log2((high - low) / 1e-3)), 0) if high > low else 0  # to 0.1 %
    return math.exp(halved(has_power, low, high, steps)[1])


def _even_bet(runs: int, claim: Claim) -> Bet:
    """The bet on an event with the rate 1/2 on D, or a larger rate where the claim allows p ≥ 1/4 at q = 0."""
    allowed = claim.largest(0.0)
    return _bet_at_rate(0.5 if allowed < 0.25 else (1 + allowed) / 2, runs, claim)


def _bet_at_rate(rate: float, runs: int, claim: Claim) -> Bet:
    """The bet on an event with this rate on D, for counts without a hit on D′."""
    hits, estimate = runs - int(runs * (1 - rate)), None
    if claim.curved:
        exceeded = max(2 * claim.parameter, claim.parameter + 1)
        estimate = Estimate(p=rate, q=min(claim.smallest(rate, exceeded), rate))
    return event_bet(Counts(n10=hits, n00=runs - hits), estimate)


def rare_event(counts: Counts) -> bool:
    """Whether D fell into the event in under 1 % of the runs or under 100 times: a pass then concerns only a tail."""
    return counts.hits < max(0.01 * counts.runs, 100)
