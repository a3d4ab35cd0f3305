"""True probabilities of patterns of bundled targets, and true curves δ(ε): the ground truth of tests and benchmarks."""

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dpwitness.arrays import Floats
from dpwitness.exact import pattern_probability

#: The scales of threshold noise and query noise of a bundled target, as functions of (ε, cutoff, sensitivity).
NOISE_SCALES: Final[dict[str, Callable[[float, int, float], tuple[float, float]]]] = {
    "svt": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 4 * cutoff * delta / epsilon),
    "isvt1": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 0.0),
    "isvt2": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 2 * delta / epsilon),
    "isvt3": lambda epsilon, cutoff, delta: (4 * delta / epsilon, 4 * delta / (3 * epsilon)),
    "isvt4": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 2 * cutoff * delta / epsilon),
}


def target_probability(
    target: str,
    answers: Sequence[int | bool] | Floats,
    queries: ArrayLike,
    *,
    epsilon: float,
    threshold: float = 0.5,
    cutoff: int = 1,
    sensitivity: float = 1.0,
) -> float:
    """The probability of a pattern of a bundled target (for `isvt4`: with ⊤ for the released number).

    For targets that stop after `cutoff` ⊤'s, the pattern ends with the last answer given.
    """
    b, c = NOISE_SCALES[target](epsilon, cutoff, sensitivity)
    return pattern_probability(answers, queries, threshold=threshold, threshold_scale=b, query_scale=c)


def _upper_tail(z: float) -> float:
    """P(N(0, 1) > z)."""
    return math.erfc(z / math.sqrt(2)) / 2


def gaussian_delta(epsilon: float, *, mu: float) -> float:
    """δ(ε) of N(0, σ²) against N(Δ, σ²), μ = Δ/σ: Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ). Balle & Wang 2018, Theorem 8."""
    return _upper_tail(epsilon / mu - mu / 2) - math.exp(epsilon) * _upper_tail(epsilon / mu + mu / 2)


def subsampled_gaussian_delta(epsilon: float, *, rate: float, mu: float, removed: bool = True) -> float:
    """δ(ε) of a sum with Gaussian noise over a batch that each record joins with probability `rate`.

    `removed`: D holds the record that D′ lacks, else D′ holds it; `mu`: the record's norm over σ. Outcomes with the
    record follow (1 − rate)·N(0, 1) + rate·N(μ, 1), else N(0, 1); their ratio rises, so the event is x > t, or x < t.
    """
    share = math.exp(epsilon if removed else -epsilon) - (1 - rate)
    if share <= 0:  # below the least likelihood ratio, 1 − rate
        return 0.0 if not removed else 1 - math.exp(epsilon)
    t = math.log(share / rate) / mu + mu / 2
    if removed:
        with_record = (1 - rate) * _upper_tail(t) + rate * _upper_tail(t - mu)
        return with_record - math.exp(epsilon) * _upper_tail(t)
    with_record = (1 - rate) * _upper_tail(-t) + rate * _upper_tail(mu - t)
    return _upper_tail(-t) - math.exp(epsilon) * with_record


def truncated_laplace_delta(epsilon: float, *, scale: float, bound: float, shift: float = 1.0) -> float:
    """δ(ε) for ε ≥ shift/scale of Laplace noise cut off beyond ± bound: the mass of outcomes that D′ never has.

    `scale`, `bound` and `shift` are in the unit of the answers, 0 ≤ shift ≤ bound. Geng, Ding, Guo & Kumar 2020,
    Theorem 1. Raises `ValueError` for a smaller ε, at which other outcomes count too.
    """
    if epsilon < shift / scale * (1 - 1e-12):
        raise ValueError(f"epsilon={epsilon!r} must be at least shift/scale = {shift / scale!r}")
    return math.exp(-bound / scale) * math.expm1(shift / scale) / (2 * -math.expm1(-bound / scale))


def discrete_gaussian_delta(epsilon: float, *, sigma: float, shift: int = 1) -> float:
    """δ(ε) of the discrete Gaussian P(k) ∝ e^(−k²/2σ²) against the same distribution moved by `shift`."""
    k = np.arange(-math.ceil(40 * sigma) - shift, math.ceil(40 * sigma) + shift + 1)
    weights = np.exp(-(k**2) / (2 * sigma**2))
    moved = np.exp(-((k - shift) ** 2) / (2 * sigma**2))
    return float(np.maximum(moved - math.exp(epsilon) * weights, 0.0).sum() / weights.sum())
