"""Boundaries that are polygons: a region given by finitely many half-planes, and its family of excess ε."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Final, Self

import numpy as np

from dpwitness.claims.boundary import Contacts, CurvedClaim
from dpwitness.claims.claim import Floats, HalfPlane
from dpwitness.claims.fields import from_fields, in_range

Points = tuple[tuple[float, float], ...]

LARGEST: Final = 700.0

#: Contacts on each side of the polygon.
PER_SIDE: Final = 48
#: Sides from which on fewer contacts are taken of each.
MANY: Final = 64
#: The smallest q of a contact, as a share of the largest of its side.
LEAST: Final = 1e-12
#: Slopes at most: beyond them a double overflows.
STEEPEST: Final = 1e300


@dataclass(frozen=True, slots=True, init=False)
class PolygonClaim(CurvedClaim):
    """A claim of finitely many half-planes, stated by `points`, and its family of excess ε.

    The family's parameter is the excess x, in nats: the claim in which the slope of every side is e^x times as large,
    so that x = 0 is the claim itself. A claim says which points it takes, and how their sides are computed. Raises
    `InvalidClaim` for an excess that is not from 0 to 700.
    """

    kind: ClassVar[str]
    symbol: ClassVar[str] = "excess ε"

    points: Points
    excess: float  # nats

    def __init__(self, points: Points, excess: float = 0.0) -> None:
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "excess", excess)
        in_range(self, "excess", 0.0, LARGEST)

    @staticmethod
    @abstractmethod
    def sides(points: Points) -> tuple[Floats, Floats]:
        """Slope and intercept of each side at no excess, of shape (k,)."""

    @property
    def parameter(self) -> float:
        """The excess over every ε, in nats."""
        return self.excess

    def at(self, parameter: float) -> Self:
        """The claim with every slope e^parameter times as large."""
        found = object.__new__(type(self))  # the points were checked
        object.__setattr__(found, "points", self.points)
        object.__setattr__(found, "excess", float(parameter))
        return found

    def reached(self, p: Any, q: Any) -> Any:
        """The least excess that allows (p, q)."""
        return least_excess(*self.sides(self.points), p, q)

    def largest(self, q: float) -> float:
        """min(1, slope·e^excess·q + intercept) over all sides."""
        slopes, intercepts = self.sides(self.points)
        return float(smallest_of(slopes * math.exp(self.excess), intercepts, q))

    def smallest(self, p: float, parameter: float) -> float:
        """The least q at which every side allows p, at the excess given."""
        slopes, intercepts = self.sides(self.points)
        return least_allowed(slopes * math.exp(parameter), intercepts, p)

    def contacts(self) -> Contacts:
        """Points of the boundary; the hints are slopes and intercepts at no excess."""
        found = _contacts(type(self), self.points)
        return replace(found, q=found.q * math.exp(-self.excess))  # G(e^x·q) is the boundary at an excess of x

    def planes(self, parameters: Any, hints: Floats) -> HalfPlane:
        """Slope·e^x, the same intercept: the half-planes where every ε may be exceeded by x. Broadcasts."""
        slope, intercept = hints
        with np.errstate(over="ignore"):
            steeper = np.minimum(slope * np.exp(np.minimum(np.asarray(parameters, np.float64), LARGEST)), STEEPEST)
        return HalfPlane(steeper * (1 + 4e-16), intercept + np.zeros_like(steeper))

    def to_json(self) -> dict[str, Any]:
        """The kind, the points and the excess."""
        return {"kind": self.kind, "points": [list(point) for point in self.points], "excess": self.excess}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote, its kind left out; the excess may lack. Raises `InvalidClaim`."""
        (points,) = from_fields(value, "points")
        return cls(points, excess=value.get("excess", 0.0))


@lru_cache(maxsize=64)
def _contacts(kind: type[PolygonClaim], points: Points) -> Contacts:
    return contacts_of(*kind.sides(points))


def smallest_of(slopes: Floats, intercepts: Floats, q: Any) -> Any:
    """min(1, min over the sides of slope·q + intercept). Broadcasts over q."""
    q = np.asarray(q, np.float64)
    return np.minimum(np.min(slopes * q[..., None] + intercepts, axis=-1), 1.0)


def least_excess(slopes: Floats, intercepts: Floats, p: Any, q: Any) -> Any:
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
    """The sides of the lower envelope below p = 1, from q = 0 on: slope, intercept, and both ends in q."""
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
