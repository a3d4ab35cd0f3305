"""Rényi divergences of events, and half-planes that contain all events whose divergence is at most ε.

For p = P[M(D) ∈ S] and q = P[M(D′) ∈ S] the divergence of order α of the two Bernoulli laws is
D_α(p ‖ q) = log h(p, q)/(α − 1) with h(p, q) = p^α·q^(1−α) + (1 − p)^α·(1 − q)^(1−α) (van Erven & Harremoës 2014,
IEEE Trans. Inf. Theory 60(7)). By data processing it is at most that of M(D) and M(D′).

h is jointly convex, so its tangent plane at any point lies below it. With r = p₀/q₀ > 1 > r̄ = (1 − p₀)/(1 − q₀) at that
point, h(p, q) ≤ e^((α−1)ε) implies
    α(r^(α−1) − r̄^(α−1))·p ≤ (α−1)(r^α − r̄^α)·q + e^((α−1)ε) − α·r̄^(α−1) + (α−1)·r̄^α,
whatever r and r̄ are: how well a contact is computed decides power, never validity.
"""

from typing import Any, Final

import numpy as np

from dpwitness.claims.boundary import LEAST_LOG_ODDS, TINY
from dpwitness.claims.claim import Floats, HalfPlane

#: Halvings of the interval in which the log-odds of a contact's p lie.
STEPS: Final = 52
#: Log-odds beyond which a probability is 1 for a double.
HIGHEST: Final = 37.0


def divergence(order: Any, p: Any, q: Any) -> Any:
    """D_α(p ‖ q) in nats of two events' probabilities; 0 where p ≤ q. Broadcasts."""
    q = np.clip(np.asarray(q, np.float64), TINY, 1.0)
    p = np.clip(np.asarray(p, np.float64), q, 1.0)
    with np.errstate(divide="ignore"):
        return _divergence(order, np.log(q), np.log1p(-q), np.log(p), np.log1p(-p))


def _divergence(order: Any, log_q: Any, log_not_q: Any, log_p: Any, log_not_p: Any) -> Any:
    """D_α from logarithms of probabilities and of their complements; these may be −∞."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        x = log_p - log_q
        y = np.where(np.isneginf(log_not_q), 0.0, log_not_p - log_not_q)
        near = np.log1p(np.exp(log_q) * np.expm1(order * x) + np.exp(log_not_q) * np.expm1(order * y))
        far = np.logaddexp(log_q + order * x, log_not_q + order * y)
        return np.maximum(np.where(order * x < 30, near, far), 0.0) / (order - 1)


def contacts_at(order: Any, epsilon: Any, q_log_odds: Floats) -> tuple[Floats, Floats, Floats]:
    """Contacts of the boundary D_α(p ‖ q) = ε: p, log log(p/q) and log −log((1−p)/(1−q)), each of the shape of the q.

    Every eighth and the last are computed, those between them interpolated.
    """
    coarse = np.unique(np.append(np.arange(0, len(q_log_odds), 8), len(q_log_odds) - 1))
    at, order, epsilon = (np.broadcast_to(part, q_log_odds.shape)[coarse] for part in (q_log_odds, order, epsilon))
    log_q, log_not_q = -np.logaddexp(0, -at), -np.logaddexp(0, at)
    low, high = at, np.full_like(at, HIGHEST)
    for _ in range(STEPS):
        middle = (low + high) / 2
        beyond = _divergence(order, log_q, log_not_q, -np.logaddexp(0, -middle), -np.logaddexp(0, middle)) > epsilon
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    log_p, log_not_p = -np.logaddexp(0, -high), -np.logaddexp(0, high)
    parts = (log_p - log_q, log_not_q - log_not_p)
    x, minus_y = (np.interp(q_log_odds, at, np.log(np.maximum(part, 1e-300))) for part in parts)
    return np.minimum(np.exp(np.exp(x) - np.logaddexp(0, -q_log_odds)), 1.0), x, minus_y


def log_odds_below(epsilon: float, points: int) -> Floats:
    """Log-odds of q at which D_α can reach ε at all, that is q < e^−ε; ascending."""
    highest = -np.log(np.expm1(np.maximum(epsilon, 1e-12)))  # of e^−ε
    top = min(float(highest), HIGHEST - 2) - 1e-6
    return np.linspace(min(LEAST_LOG_ODDS, top - 30), top, points)


def planes_of(order: Any, epsilon: Any, x: Any, y: Any) -> HalfPlane:
    """The half-planes of log r = x > 0 and log r̄ = y < 0, rounded outwards; p ≤ q where ε = 0. Broadcasts."""
    order, epsilon, x, y = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in (order, epsilon, x, y)))
    less = order - 1
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        steps = -np.expm1(less * (y - x))  # 1 − (r̄/r)^(α−1)
        slope = less / order * np.exp(x) * -np.expm1(order * (y - x)) / steps
        # e^((α−1)ε) − 1, and 1 − α·r̄^(α−1) + (α−1)·r̄^α, which is not negative, each over r^(α−1).
        risen = np.where(
            less * epsilon < 30, np.expm1(less * epsilon) * np.exp(-less * x), np.exp(less * (epsilon - x))
        )
        bent = -order * np.expm1(less * y) + less * np.expm1(order * y)
        intercept = (risen + np.maximum(bent, 0.0) * np.exp(-less * x)) / (order * steps)
        # Exponents of this size have lost so many digits; the difference `bent` loses those of its terms.
        size = 1e-15 * (8 + order * (x - y) + less * epsilon)
        lost = 1e-15 * order * less * np.minimum(-y, 1 / np.maximum(less, 1e-300)) * np.exp(-less * x) / (order * steps)
    intercept = intercept * (1 + size) + lost
    slope = slope * (1 + size)
    trivial = epsilon <= 0
    # Beyond the largest double nothing can be told: the half-plane of everything.
    everything = ~trivial & ~(np.isfinite(slope) & np.isfinite(intercept))
    return HalfPlane(
        np.where(trivial | everything, 1.0, slope), np.where(trivial, 0.0, np.where(everything, 1.0, intercept))
    )
