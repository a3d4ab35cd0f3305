"""True output probabilities of threshold mechanisms.

A threshold mechanism draws z = T + Lap(b) once and answers ⊤ to query i if q_i + Lap(c) ≥ z, else ⊥; given z the
answers are independent. So a pattern has the probability ∫ f_b(z − T) ∏_⊥ F_c(z − q_i) ∏_⊤ (1 − F_c(z − q_i)) dz.
Between the kinks (T and the q_i) the integrand is smooth; Gauss–Legendre panels there give a relative error well below
10⁻⁸ (tests compare with 40-digit arithmetic).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dpwitness.arrays import Floats

#: The nodes and weights of Gauss–Legendre quadrature with 32 points.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)


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

    `queries`: true answers, shape (k,) with k ≥ len(answers), of which the first len(answers) count. The scales belong
    to the Laplace noise; `query_scale` may be 0. Relative error at most 10⁻⁸. Raises `ValueError`.
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
    # The panels are summed in parts of 4,096, since a narrow query noise needs many panels.
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
