"""The number of right guesses about canaries as evidence against a claim, from one training run.

A fair coin put each canary into the training data or left it out. A claim limits the number of coins that are guessed
right (Steinke, Nasr & Jagielski 2023, "Privacy auditing with one (1) training run"). Let m be the number of canaries, k
the number of guesses, and p_c the probability that c guesses are right. Flipping the coin of a canary makes a right
guess about it wrong. So for each set U of counts c, and each half-plane p ≤ s·q + δ that contains the claim's region,

    Σ_{c ∈ U} c·p_c  ≤  s·Σ_{c ∈ U} (k − c + 1)·p_{c−1} + m·δ                                        (1)

(Mahloujifar, Melis & Chaudhuri 2025, "Auditing f-differential privacy in one run", who take the sets {c, …, k}). For
all sets U together, (1) says: the positive excesses c·p_c − s·(k − c + 1)·p_{c−1} sum to at most m·δ.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from dpwitness.arrays import Floats
from dpwitness.claims import Claim
from dpwitness.claims.claim import LARGEST_PARAMETER
from dpwitness.claims.regions import lines_of
from dpwitness.evidence.bounds import POWER
from dpwitness.roots import halved

#: Guesses is the number of guesses on the highest scores, and on the lowest scores.
Guesses: TypeAlias = tuple[int, int]

#: INTERVAL_HALVINGS is the number of halvings of a parameter's interval, to 10⁻⁶ of its length.
INTERVAL_HALVINGS: Final = 20


def excluded(claim: Claim, level: float, correct: int, guesses: int, canaries: int) -> bool:
    """Whether the claim keeps the probability of at least `correct` right guesses below `level`."""
    if correct == 0:
        return False
    slopes, intercepts = lines_of(claim)
    if _tail(slopes, intercepts, correct, guesses, canaries) < level:
        return True
    return len(slopes) > 1 and _needed(slopes, intercepts, level, correct, guesses, canaries) > 1


def _tail(slopes: Floats, intercepts: Floats, correct: int, guesses: int, canaries: int) -> float:
    """The smallest bound, over all half-planes, on the probability of at least v = `correct` right guesses C, by (1).

    Let W be binomial with k trials of probability s/(1 + s), and y_c = P[W ≥ v]·P[W < c] / (c·P[W = c]) for c ≤ v and
    P[W < v]·P[W ≥ c] / (c·P[W = c]) for c > v. Then P[C ≥ v] − P[W ≥ v] is the sum of y_c times the excess at c, and
    y_c is largest at v. A distribution of C with all excess at v attains the bound of its half-plane.
    """
    from scipy.special import betainc, betaincc, gammaln, xlog1py, xlogy

    p, right, wrong = slopes / (1 + slopes), correct, guesses - correct
    above, below = betainc(right, wrong + 1, p), betaincc(right, wrong + 1, p)
    log_at = gammaln(guesses + 1) - gammaln(right + 1) - gammaln(wrong + 1) + xlogy(right, p) + xlog1py(wrong, -p)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.exp(np.log(above) - log_at)
        largest_ratio = 1 / (1 - wrong * slopes / right)  # the sum of a geometric series, where P[W ≥ v] underflows
        more = canaries * intercepts / right * np.where(above > 0, ratio, largest_ratio) * below
    return float(np.min(np.where(intercepts > 0, np.nan_to_num(above + more, nan=1.0), above), initial=1.0))


def _needed(slopes: Floats, intercepts: Floats, level: float, correct: int, guesses: int, canaries: int) -> float:
    """The least sum of all p_c if `correct` or more right guesses have the probability `level`; above 1: impossible.

    By (1) with the sets {c, …, k}, each with its tightest half-plane (Mahloujifar et al. 2025, algorithm 1): the sums
    Σ_{i ≥ c} i·p_i and Σ_{i ≥ c − 1} (k − i)·p_i give the least p_{c−1}. The sum of all p_c is least if the whole level
    lies at `correct`.
    """
    total, right, wrong = level, correct * level, (guesses - correct) * level
    for c in range(correct, 0, -1):
        least = canaries * _smallest(slopes, intercepts, right / canaries)
        probability = max(0.0, least - wrong) / (guesses - c + 1)
        total += probability
        if total > 1 or (probability < 1e-12 * total and c < correct):
            break  # each smaller count needs at most this probability
        right += (c - 1) * probability
        wrong += (guesses - c + 1) * probability
    return total


def _smallest(slopes: Floats, intercepts: Floats, p: float) -> float:
    """The smallest q from 0 to 1 with p ≤ s·q + δ for all half-planes."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a slope near 0 bounds nothing
        return min(float(np.nanmax((p - intercepts) / slopes, initial=0.0)), 1.0)


def critical_number(claim: Claim, level: float, guesses: int, canaries: int) -> int:
    """The least number of right guesses that refutes a claim at a level; `guesses` + 1 if no number does."""
    return bisect_left(range(guesses + 1), True, key=lambda correct: excluded(claim, level, correct, guesses, canaries))


def p_value_of(claim: Claim, correct: int, guesses: int, canaries: int) -> float:
    """The p-value of a number of right guesses, at least 10⁻³⁰⁰, rounded up."""
    slopes, intercepts = lines_of(claim)
    if correct and len(slopes) == 1:
        return max(_tail(slopes, intercepts, correct, guesses, canaries), 1e-300)
    log_p = halved(
        lambda x: excluded(claim, math.exp(x), correct, guesses, canaries), math.log(1e-300), 0.0, 2 * INTERVAL_HALVINGS
    )[1]
    return math.exp(log_p)


def lower_bound_of(claim: Claim, level: float, correct: int, guesses: int, canaries: int) -> float:
    """The largest parameter of a claim's family that is refuted at a level; 0 if no parameter is."""

    def kept(parameter: float) -> bool:
        return not excluded(claim.at(parameter), level, correct, guesses, canaries)

    least = 1e-6  # nats, or standard deviations: claims of a parameter 0 may not exist
    if kept(least):
        return 0.0
    high = 1.0
    while high < LARGEST_PARAMETER and not kept(high):
        least, high = high, min(2 * high, LARGEST_PARAMETER)
    return halved(kept, least, high, INTERVAL_HALVINGS)[0]


def detectable_of(claim: Claim, critical: Sequence[int], tried: Sequence[Guesses], canaries: int) -> float:
    """The smallest parameter from the claim's own on that one of the tried numbers of guesses refutes with `POWER`.

    Infinite if no parameter is refuted. The canaries are taken as independent, with likelihood ratios as scores, whose
    trade-off function is the boundary of the claim of the parameter, in both directions.
    """
    from scipy.special import bdtrc

    # The share of scores above a quantile has at most this standard deviation, by which the share is raised.
    deviation = 0.5 / math.sqrt(canaries)

    def caught(parameter: float) -> bool:
        slopes, intercepts = lines_of(claim.at(parameter))
        return any(
            value <= sum(ends)
            and bdtrc(value - 1, sum(ends), _accuracy(slopes, intercepts, ends[0] / canaries + deviation)) >= POWER
            for value, ends in zip(critical, tried, strict=True)
        )

    low = high = max(claim.parameter, 1e-3)
    while not caught(high):
        if high >= LARGEST_PARAMETER:
            return math.inf
        low, high = high, min(2 * high, LARGEST_PARAMETER)
    return halved(caught, low, high, INTERVAL_HALVINGS)[1]


def _accuracy(slopes: Floats, intercepts: Floats, share: float) -> float:
    """The probability that a guess on a share of the highest scores is right, if the claim holds with equality."""

    def largest(q: float) -> float:
        # The last term is by the half-planes with 1 − q and 1 − p in place of p and q.
        return min(1.0, float(np.min(slopes * q + intercepts)), 1 - _smallest(slopes, intercepts, 1 - q))

    q = halved(lambda q: q + largest(q) >= 2 * share, 0.0, 1.0, 2 * INTERVAL_HALVINGS)[1]
    return largest(q) / (q + largest(q))
