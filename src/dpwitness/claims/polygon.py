"""Boundaries that are polygons: a region given by finitely many half-planes, and its family of excess ε."""

from typing import Any, Final

import numpy as np

from dpwitness.claims.boundary import Contacts
from dpwitness.claims.claim import Floats, HalfPlane

#: Contacts on each side of the polygon.
PER_SIDE: Final = 48
#: Sides from which on fewer contacts are taken of each.
MANY: Final = 64
#: The smallest q of a contact, as a share of the largest of its side.
LEAST: Final = 1e-12
#: Slopes at most: beyond them a double overflows.
STEEPEST: Final = 1e300


def smallest_of(slopes: Floats, intercepts: Floats, q: Any) -> Any:
    """min(1, min over the sides of slope·q + intercept). Broadcasts over q."""
    q = np.asarray(q, np.float64)
    return np.minimum(np.min(slopes * q[..., None] + intercepts, axis=-1), 1.0)


def excess(slopes: Floats, intercepts: Floats, p: Any, q: Any) -> Any:
    """The least x for which slope·e^x·q + intercept ≥ p on all sides; 0 where the sides allow (p, q). Broadcasts."""
    p, q = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(q, np.float64))
    found = np.zeros(p.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for slope, intercept in zip(slopes, intercepts, strict=True):
            over = np.where(p > intercept, np.log((p - intercept) / (slope * q)), 0.0)
            found = np.maximum(found, np.nan_to_num(over, nan=0.0, posinf=np.inf))
    return found[()]


def least_allowed(slopes: Floats, intercepts: Floats, p: float) -> float:
    """The least q that all sides allow at p."""
    rising = slopes > 0
    return float(min(np.max((p - intercepts[rising]) / slopes[rising], initial=0.0), 1.0))


def contacts_of(slopes: Floats, intercepts: Floats) -> Contacts:
    """Contacts along the boundary min(1, …), with the side of each as hints: its slope and its intercept."""
    sides = _sides(np.minimum(slopes, STEEPEST), intercepts)
    if not sides:  # nothing is claimed
        sides = [(1.0, 1.0, 0.0, 1.0)]
    each = PER_SIDE if len(sides) <= MANY else 4
    q, hints = [], []
    for slope, intercept, low, high in sides:
        low = max(low, high * LEAST, 1e-305)
        odds = np.linspace(_log_odds(low), _log_odds(min(high, 1 - 1e-12)), each + 2)[1:-1]
        q.append(1 / (1 + np.exp(-odds)))
        hints.append(np.tile([[slope], [intercept]], each))
    at, side = np.concatenate(q), np.concatenate(hints, axis=1)
    p = np.minimum(side[0] * at + side[1], 1 - 1e-15)
    return Contacts(at, p, side)


def _log_odds(q: float) -> float:
    return float(np.log(q) - np.log1p(-q))


def _sides(slopes: Floats, intercepts: Floats) -> list[tuple[float, float, float, float]]:
    """The sides of the lower envelope below p = 1, from q = 0 on: slope, intercept, and the q from which and to which."""
    order = np.lexsort((slopes, intercepts))
    sides: list[tuple[float, float, float, float]] = []
    for slope, intercept in zip(slopes[order], intercepts[order], strict=True):
        if (sides and slope >= sides[-1][0]) or intercept >= 1:
            continue  # above another side everywhere
        meets = 0.0
        while sides:
            before = sides[-1]
            meets = (intercept - before[1]) / (before[0] - slope)
            if meets > before[2]:
                break
            sides.pop()
            meets = 0.0
        if sides:
            sides[-1] = (*sides[-1][:3], meets)
        sides.append((float(slope), float(intercept), float(meets), 1.0))
    # Where p reaches 1 nothing can exceed the boundary any more.
    return [(s, t, low, min(high, (1 - t) / s)) for s, t, low, high in sides if s > 0 and low < min(high, (1 - t) / s)]


def planes_of(excesses: Any, hints: Floats) -> HalfPlane:
    """Slope·e^x, the same intercept: the half-planes where every ε may be exceeded by x. Broadcasts."""
    slope, intercept = hints
    with np.errstate(over="ignore"):
        steeper = np.minimum(slope * np.exp(np.minimum(np.asarray(excesses, np.float64), 700.0)), STEEPEST)
    return HalfPlane(steeper * (1 + 4e-16), intercept + np.zeros_like(steeper))
