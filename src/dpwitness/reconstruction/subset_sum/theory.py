"""An adversary's confidence in one bit under binomial or normal errors: the random walk of Theorem 5 and its bound.

Dinur & Nissim, PODS 2003, Theorem 5. An adversary who knows all other bits takes the answers one by one; the error of
each is (sum of R fair bits) − R/2. If the bit is 1, an answer with k of the fair bits at 1 moves the confidence
log(Pr[bit is 1 | answers] / Pr[bit is 0 | answers]), which starts at 0, by log((k + 1) / (R − k)). Only answers whose
subset holds the bit move it; here all subsets do. Normal errors of standard deviation σ move it by normal steps of mean
1/(2σ²) and variance 1/σ².
"""

import functools
import math
from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from dpwitness.arrays import Floats
from dpwitness.checks import probability
from dpwitness.errors import InvalidParameter


def steps(fair_bits: int) -> Floats:
    """The step of the confidence for each k = 0 … R, in nats, shape (R + 1,); +∞ for k = R, which proves a 1."""
    k = np.arange(fair_bits, dtype=np.float64)
    return np.append(np.log((k + 1) / (fair_bits - k)), np.inf)


def threshold(delta: float) -> float:
    """The confidence δ′ = log((1/2 + δ)/(1/2 − δ)), in nats, at which the bit is 1 with probability 1/2 + δ."""
    if not 0 < delta < 0.5:
        raise InvalidParameter(f"delta={delta!r} must lie between 0 and 0.5")
    return math.log((0.5 + delta) / (0.5 - delta))


def normal_confidence_bound(deviation: float, answers: int, limit: float) -> float:
    """Bound the probability that |confidence| reaches `limit` within `answers` answers with normal errors.

    The walk is a Brownian motion with drift, observed after every answer; the probability that the motion reaches a
    limit is known exactly (Karatzas & Shreve 1991, 3.5.C). `deviation`: standard deviation of the errors in counts;
    `limit` is in nats.
    """
    from scipy.stats import norm

    drift, spread = answers / (2 * deviation**2), math.sqrt(answers) / deviation
    near, far = (limit - drift) / spread, (limit + drift) / spread
    # With a drift of half the variance the factor of the reflected part is exp(±limit).
    up = norm.sf(near) + math.exp(limit + float(norm.logsf(far)))
    down = norm.sf(far) + math.exp(-limit) * norm.sf(near)
    return min(float(up + down), 1.0)


def chernoff_bound(fair_bits: int, limit: float) -> Callable[[int], float]:
    """A function from the number of answers to a bound of the probability that |confidence| reaches `limit` (nats).

    The bound uses the exact moments of a step and is far below Hoeffding's inequality of the proof. With M the mean of
    exp(θ·step), exp(θ·confidence)/M^k is a martingale after k answers, so that by Ville's inequality the confidence
    reaches a limit with probability at most exp(−θ·limit)·max(M, 1)^answers, for every θ. Answers that prove a 1, of
    probability 2^−R each, are counted apart.
    """
    from scipy.special import logsumexp
    from scipy.stats import binom

    logs = binom.logpmf(np.arange(fair_bits), fair_bits, 0.5)
    size = steps(fair_bits)[:-1]
    # The best θ is about limit·R/(4·answers), and the bound holds for every θ. For θ = −1, M is 1.
    up = np.geomspace(1e-3, 1e3 * max(limit, 1.0) * math.sqrt(fair_bits), 400)
    down = np.append(-1.0, -1.0 - up)
    of_up, of_down = (np.array([logsumexp(logs + theta * size) for theta in thetas]) for thetas in (up, down))

    def bound(answers: int) -> float:
        above = float(np.min(answers * np.maximum(of_up, 0.0) - up * limit))
        below = float(np.min(answers * np.maximum(of_down, 0.0) + down * limit))
        lost = -math.expm1(answers * math.log1p(-(0.5**fair_bits)))
        return min(math.exp(min(above, 0.0)) + math.exp(min(below, 0.0)) + lost, 1.0)

    return bound


def allowed_queries(law: str, error: float, delta: float, failure: float) -> int:
    """The number of queries that hold one bit and may be answered before the bit can be told (Theorem 5).

    With probability 1 − `failure` or more over the errors, an adversary who knows all other bits gives both values of
    the bit a probability below 1/2 + δ after each of these answers. The number is a proved lower bound.

    `law`: "binomial" errors of R = E² fair bits, or "gaussian" errors of standard deviation E/2, with E = `error` in
    counts. `delta` lies between 0 and 1/2, `failure` between 0 and 1. Raises `InvalidParameter`.
    """
    limit = threshold(delta)
    probability("failure", failure)
    # The bound of binomial errors takes 800 sums over all E² fair bits: half a minute for E = 1,000.
    most = 10**6 if law == "gaussian" else 1000
    if not (0 < error <= most and round(error**2) >= 1):
        more = "" if law == "gaussian" else "; gaussian errors of the same deviation may be larger"
        raise InvalidParameter(f"error={error!r} must be at least 1 and at most {most}{more}")

    normal = functools.partial(normal_confidence_bound, error / 2, limit=limit)
    bound = normal if law == "gaussian" else chernoff_bound(round(error**2), limit)
    # No more than 2⁴⁰ − 1 queries are reported.
    return bisect_left(range(1, 1 << 40), True, key=lambda answers: bound(answers) > failure)
