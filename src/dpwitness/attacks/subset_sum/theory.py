"""An adversary's confidence in one bit behind binomial errors: the random walk of Theorem 5 and its bound.

Dinur & Nissim, PODS 2003, Theorem 5. An adversary who knows all other bits takes the answers one by one; the error of
each is (sum of R fair bits) − R/2. If the bit is 1, an answer with k of these bits at 1 moves his confidence
log(Pr[bit is 1 | answers] / Pr[bit is 0 | answers]), which starts at 0, by log((k + 1) / (R − k)). Only answers whose
subset holds the bit move it; here all of them do.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter

__all__ = ["ConfidenceBound", "confidence_bound", "simulate_confidence", "steps", "threshold"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceBound:
    """A bound of the probability that the confidence reaches a threshold, and the width that gives it.

    `probability`: at most this; `width`: errors beyond it are counted as lost, in counts; `largest_step` and
    `mean_step`: of the walk within that width, in nats.
    """

    probability: float
    width: float
    largest_step: float
    mean_step: float


def steps(fair_bits: int) -> Floats:
    """The step of the confidence for each k = 0 … R, in nats, shape (R + 1,); +∞ for k = R, which only a 1 can give."""
    _check(fair_bits=fair_bits)
    k = np.arange(fair_bits, dtype=np.float64)
    return np.append(np.log((k + 1) / (fair_bits - k)), np.inf)


def threshold(delta: float) -> float:
    """The confidence δ′ = log((1/2 + δ)/(1/2 − δ)), in nats: there the bit is 1 with probability 1/2 + δ."""
    if not 0 < delta < 0.5:
        raise InvalidParameter(f"delta={delta!r} must lie between 0 and 0.5")
    return math.log((0.5 + delta) / (0.5 - delta))


def simulate_confidence(rng: np.random.Generator, fair_bits: int, answers: int, walks: int) -> Floats:
    """Draw walks of the confidence in a bit that is 1, after 1 … `answers` answers: shape (walks, answers), nats."""
    _check(fair_bits=fair_bits, answers=answers, walks=walks)
    return np.cumsum(steps(fair_bits)[rng.binomial(fair_bits, 0.5, (walks, answers))], axis=1)


def confidence_bound(fair_bits: int, answers: int, limit: float) -> ConfidenceBound:
    """Bound the probability that |confidence| reaches `limit` (nats, δ′ of the lecture) within `answers` answers.

    As in the proof: errors stay within a width but for a small probability; within it the steps are bounded, their
    mean is small, and Hoeffding's inequality bounds their sum, for the largest of all partial sums as for the last.
    Tails and mean are exact here. The proof's width of log²n·√R exceeds R/2, and so says nothing, unless R is in the
    thousands; this takes, of 200 widths up to 8·√R, the one that gives the smallest bound.
    """
    from scipy.stats import binom  # 0.4 s

    _check(fair_bits=fair_bits, answers=answers)
    if not limit > 0:
        raise InvalidParameter(f"limit={limit!r} must be positive")
    weights = binom.pmf(np.arange(fair_bits + 1), fair_bits, 0.5)
    size = steps(fair_bits)
    best = ConfidenceBound(probability=1.0, width=fair_bits / 2, largest_step=math.inf, mean_step=math.inf)
    first = max(math.floor(fair_bits / 2 - 8 * math.sqrt(fair_bits)), 0)
    for lost in np.unique(np.linspace(first, (fair_bits - 1) // 2, 200).astype(np.int64)).tolist():
        low, high = lost + 1, fair_bits - lost - 1  # these k and all between are within the width
        if low > high:
            break
        inside = slice(low, high + 1)
        tail = 2 * float(binom.cdf(lost, fair_bits, 0.5))
        mean = float(weights[inside] @ size[inside]) / (1 - tail)
        largest = float(np.abs(size[inside]).max())
        variation = 2 * answers * largest**2
        up, down = limit - answers * mean, limit + answers * mean
        above = math.exp(-(up**2) / variation) if up > 0 else 1.0
        below = math.exp(-(down**2) / variation) if down > 0 else 1.0
        # Leaving the width once in t answers; else the walk has bounded steps.
        probability = -math.expm1(answers * math.log1p(-tail)) + above + below if tail < 1 else 1.0
        if probability < best.probability:
            best = ConfidenceBound(
                probability=probability, width=fair_bits / 2 - lost - 1, largest_step=largest, mean_step=mean
            )
    return best


def _check(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise InvalidParameter(f"{name}={value!r} must be at least 1")
