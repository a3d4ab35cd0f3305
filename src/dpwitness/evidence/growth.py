"""How fast evidence grows where an estimate is true, and the bet that makes it grow fastest."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpwitness.claims import HalfPlane

Floats = NDArray[np.float64]


def cell_probabilities(p: Any, q: Any, both: Any = None) -> tuple[Any, Any, Any, Any]:
    """Probabilities of (1,0), (1,1), (0,1), (0,0); of independent sides where `both` is None. Broadcasts."""
    if both is None:
        return p * (1 - q), p * q, (1 - p) * q, (1 - p) * (1 - q)
    return np.maximum(p - both, 0.0), both, np.maximum(q - both, 0.0), np.maximum(1 - p - q + both, 0.0)


def payoffs(plane: HalfPlane) -> tuple[Any, Any, Any, Any]:
    """X = 1[M(D) ∈ S] − slope·1[M(D′) ∈ S] − intercept for (1,0), (1,1), (0,1), (0,0). Broadcasts."""
    s, t = plane.slope, plane.intercept
    return 1 - t, 1 - s - t, -s - t, -t


def best_bet(p: ArrayLike, q: ArrayLike, plane: HalfPlane, both: ArrayLike | None = None) -> Floats:
    """Return the λ of largest growth rate E[log(1+λX)] for event probabilities p and q; 0 where nothing grows.

    `both`: the probability that a paired run has both sides in the event; None: independent sides.

    Broadcasts. λ stays below 0.999 of the largest admissible value: wealth never falls to 0 by rounding.
    """
    p, q, slope, intercept = np.broadcast_arrays(
        *(np.asarray(value, np.float64) for value in (p, q, plane.slope, plane.intercept))
    )
    cells, values = cell_probabilities(p, q, both), payoffs(HalfPlane(slope, intercept))
    low, high = np.zeros(p.shape), 0.999 / (slope + intercept)
    drift = sum(c * x for c, x in zip(cells, values, strict=True))
    # The zero of a falling slope, by Newton's steps in a shrinking bracket. Without intercept it is at most the
    # solution without (1,1), and that without (0,1): they start from the smaller one.
    starts = [
        (cells[0] - loss * cell) / np.maximum(loss * (cells[0] + cell), 1e-300)
        for loss, cell in ((slope, cells[2]), (slope - 1, cells[1]))
    ]
    bet = np.clip(np.minimum(*starts), low, high)
    if np.any(intercept):
        ends = drift <= 0  # nothing grows: no bet
        low = np.where(sum(c * x / (1 + high * x) for c, x in zip(cells, values, strict=True)) > 0, high, low)
        bet, high = np.where(ends, 0.0, np.maximum(bet, low)), np.where(ends, 0.0, high)
    for _ in range(6 if not np.any(intercept) else 30):
        terms = [x / (1 + bet * x) for x in values]
        rise = sum(c * t for c, t in zip(cells, terms, strict=True))
        low, high = np.where(rise > 0, bet, low), np.where(rise > 0, high, bet)
        with np.errstate(over="ignore"):  # of slopes from e³⁵⁰ on, where nothing grows
            fall = sum(c * t * t for c, t in zip(cells, terms, strict=True))
        step = bet + rise / np.maximum(fall, 1e-300)
        before, bet = bet, np.where((step >= low) & (step <= high), step, (low + high) / 2)
        if np.all(np.abs(bet - before) * (slope + intercept) <= 1e-13):
            break
    return np.where(drift > 0, bet, 0.0)


def growth_rate(p: ArrayLike, q: ArrayLike, plane: HalfPlane, both: ArrayLike | None = None) -> Floats:
    """Nats of evidence a paired run, at the best bet, for event probabilities p under D and q under D′; 0 if none.

    log(1/α) divided by this is the number of runs that an oracle needs to refute p ≤ slope·q + intercept. Broadcasts.
    """
    bet = best_bet(p, q, plane, both)
    cells = cell_probabilities(np.asarray(p, np.float64), np.asarray(q, np.float64), both)
    total = sum(c * np.log1p(bet * x) for c, x in zip(cells, payoffs(plane), strict=True))
    return np.asarray(np.maximum(total, 0.0))
