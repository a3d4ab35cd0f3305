"""True output probabilities of threshold mechanisms, and true curves δ(ε): the ground truth of tests and benchmarks.

A threshold mechanism draws z = T + Lap(b) once and answers ⊤ to query i if q_i + Lap(c) ≥ z, else ⊥; given z the
answers are independent. So a pattern has the probability ∫ f_b(z − T) ∏_⊥ F_c(z − q_i) ∏_⊤ (1 − F_c(z − q_i)) dz.
Between the kinks (T and the q_i) the integrand is smooth; Gauss–Legendre panels there give a relative error well below
10⁻⁸ (tests compare with 40-digit arithmetic).
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dpwitness.arrays import Floats

#: The nodes and weights of Gauss–Legendre quadrature with 32 points.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)

#: The scales of threshold noise and query noise of a bundled target, as functions of (ε, cutoff, sensitivity).
NOISE_SCALES: Final[dict[str, Callable[[float, int, float], tuple[float, float]]]] = {
    "svt": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 4 * cutoff * delta / epsilon),
    "isvt1": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 0.0),
    "isvt2": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 2 * delta / epsilon),
    "isvt3": lambda epsilon, cutoff, delta: (4 * delta / epsilon, 4 * delta / (3 * epsilon)),
    "isvt4": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 2 * cutoff * delta / epsilon),
}


def laplace_cdf(x: Floats) -> Floats:
    """P(Lap(1) ≤ x), with full relative accuracy in the lower tail."""
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x < 0, tail, 1 - tail)


def pattern_probability(
    answers: Sequence[int | bool] | Floats,
    queries: ArrayLike,
    *,
    threshold: float,
    threshold_scale: float,
    query_scale: float,
) -> float:
    """The probability that a threshold mechanism's first answers are `answers` (1 for ⊤, 0 for ⊥).

    `queries`: true answers, shape (k,) with k ≥ len(answers), of which the first len(answers) count. The scales are
    those of the Laplace noise; `query_scale` may be 0. Relative error at most 10⁻⁸. Raises `ValueError`.
    """
    top = np.asarray(answers, np.float64)
    values = np.asarray(queries, np.float64)[: len(top)]
    if top.ndim != 1 or len(values) != len(top) or not np.all((top == 0) | (top == 1)):
        raise ValueError(f"answers={answers!r} must be zeros and ones, one for each of the first queries")
    if not (threshold_scale > 0 and query_scale >= 0):
        raise ValueError(
            f"threshold_scale={threshold_scale!r} must be positive, query_scale={query_scale!r} not negative"
        )
    if len(top) == 0:
        return 1.0
    b, c = threshold_scale, query_scale
    yes, no = values[top == 1], values[top == 0]
    if c == 0:
        low, high = np.max(no, initial=-np.inf), np.min(yes, initial=np.inf)
        return _laplace_between((low - threshold) / b, (high - threshold) / b)
    kinks = np.unique(np.append(values, threshold))
    step = min(b, c) / 2
    edges = [np.linspace(u, v, int(np.ceil((v - u) / step)) + 1)[:-1] for u, v in pairwise(kinks)]
    length = 60.0 * b  # from the outermost kinks outwards: e⁻⁶⁰ of the mass lies further out
    tail = np.linspace(0, length, int(np.ceil(length / step)) + 1)
    grid = np.concatenate([kinks[0] - tail[:0:-1], *edges, kinks[-1] + tail])
    total = 0.0
    # In parts of 4,096 panels, since a narrow query noise needs many panels.
    for part in np.array_split(np.arange(len(grid) - 1), max(len(grid) // 4096, 1)):
        half = (grid[part + 1] - grid[part]) / 2
        z = grid[part][:, None] + half[:, None] * (NODES + 1)
        density = np.exp(-np.abs(z - threshold) / b) / (2 * b)
        for q, count in zip(*np.unique(no, return_counts=True), strict=True):
            density *= laplace_cdf((z - q) / c) ** count
        for q, count in zip(*np.unique(yes, return_counts=True), strict=True):
            density *= laplace_cdf((q - z) / c) ** count
        total += float(np.sum(half * (density @ WEIGHTS)))
    return total


def _laplace_between(low: float, high: float) -> float:
    """P(low < Lap(1) < high), accurate if both ends lie in one tail; 0 unless low < high."""
    if not low < high:
        return 0.0
    if low >= 0 or high <= 0:
        near, far = (low, high) if low >= 0 else (-high, -low)
        return float(-np.exp(-near) * np.expm1(near - far) / 2)
    return float(1 - np.exp(low) / 2 - np.exp(-high) / 2)


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
