"""Claims with a curved or many-sided boundary p = G(q), and the choice of the supporting half-plane to bet on.

A curved region is the intersection of infinitely many half-planes, a polygon of finitely many. A test of any of them
tests the claim, so the choice decides power alone. Validity needs half-planes that contain the region, which each claim
ensures by rounding outwards.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Final, Self

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Floats
from dpwitness.claims.claim import LARGEST_PARAMETER, Claim, HalfPlane, Numbers, in_range
from dpwitness.codec import JsonFields

#: BOUNDARY_POINTS is the number of contacts of the boundary of a Rényi, zCDP or Gaussian claim.
BOUNDARY_POINTS: Final = 1024
#: LEAST_LOG_ODDS is the log-odds of q = 10⁻¹², at or below which contacts begin: no number of runs shows rarer events.
LEAST_LOG_ODDS: Final = -27.6
#: LEAST_PROBABILITY replaces every smaller probability before its logarithm is taken.
LEAST_PROBABILITY: Final = 1e-305


@dataclass(frozen=True, slots=True, eq=False)
class Contacts:
    """Points of a boundary, ascending in q and p, of shape (k,), and hints: the numbers that give their half-planes.

    `hints` has the shape (m, k). Any convex combination of columns must give a half-plane that contains the region.
    """

    q: Floats
    p: Floats
    hints: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Boundary:
    """Contacts of a boundary and their half-planes, as arrays of shape (k,)."""

    contacts: Contacts
    planes: HalfPlane

    def nearest(self, p: Numbers, q: Numbers) -> Any:
        """The index of the contact whose half-plane an estimate (p, q) exceeds most clearly. Arguments broadcast.

        For an estimate outside the region this is the boundary's point (p₀, q₀) of the least KL(p ‖ p₀) + KL(q ‖ q₀),
        the allowed law of two independent sides that is hardest to tell from the estimate. As KL is convex, the sum has
        one minimum, between q and the boundary's q₀ at p; bisection by the sign of the derivative finds it.
        """
        at, slopes = self.contacts, self.planes.slope
        last = len(at.q) - 1
        p, q = (np.nan_to_num(np.asarray(value, np.float64)) for value in (p, q))
        low, high = np.searchsorted(at.q, q), np.searchsorted(at.p, p)
        low, high = np.broadcast_arrays(np.clip(low, 0, last), np.clip(high, 0, last))
        low = np.minimum(low, high)  # `low` > `high` for an estimate within the region
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            p_weight, q_weight = slopes / (at.p * (1 - at.p)), 1 / (at.q * (1 - at.q))
            for _ in range(math.ceil(math.log2(last + 1)) if last else 0):
                half = (low + high) // 2
                rises = (at.q[half] - q) * q_weight[half] > (p - at.p[half]) * p_weight[half]
                low, high = np.where(rises, low, half), np.where(rises, half, high)
            # At a corner the half-planes of neighbouring contacts differ, and either may be exceeded more clearly.
            before = np.maximum(high - 1, 0)
            clearer = self._standard_errors(before, p, q) > self._standard_errors(high, p, q)
        return np.where(clearer, before, high)

    def _standard_errors(self, place: Any, p: Floats, q: Floats) -> Floats:
        """The excess of (p, q) over the half-planes, in standard errors of one run with independent sides."""
        slope, intercept = self.planes.slope[place], self.planes.intercept[place]
        return np.asarray((p - slope * q - intercept) / np.sqrt(p * (1 - p) + slope**2 * q * (1 - q)))

    def central(self) -> int:
        """The index of the contact where p + q is nearest to 1, for bets without an estimate."""
        return int(np.argmin(np.abs(self.contacts.p + self.contacts.q - 1)))


class CurvedClaim(JsonFields, Claim, ABC):
    """Base class of claims with a curved boundary; subclasses compute the contacts and half-planes."""

    __slots__ = ()

    curved: ClassVar[bool] = True

    @abstractmethod
    def at(self, parameter: float) -> Self:
        """The claim of the same family with another parameter."""

    @abstractmethod
    def contacts(self) -> Contacts:
        """Points of the boundary, with the hints for `planes`."""

    @abstractmethod
    def planes(self, parameters: Numbers, hints: Floats) -> HalfPlane:
        """The half-planes of `at(x)` for parameters x of shape (k,), or a number, and hints of shape (m, k)."""

    @override
    def largest(self, q: float) -> float:
        if q <= 0:
            return 0.0
        if self.reached(1.0, q) <= self.parameter:
            return 1.0
        return _root(lambda p: float(self.reached(p, q)) - self.parameter, q, 1.0)

    @override
    def smallest(self, p: float, parameter: float) -> float:
        if p <= LEAST_PROBABILITY or self.reached(p, LEAST_PROBABILITY) <= parameter:
            return 0.0
        return _root(lambda q: parameter - float(self.reached(p, q)), LEAST_PROBABILITY, p)

    def half_plane(self, p: Numbers | None = None, q: Numbers | None = None) -> HalfPlane:
        """The half-plane of `Boundary.nearest`, for independent sides, or of `Boundary.central` without an estimate."""
        boundary = boundary_of(self)
        place = boundary.central() if p is None or q is None else boundary.nearest(p, q)
        slope, intercept = boundary.planes.slope[place], boundary.planes.intercept[place]
        if np.ndim(slope) == 0:
            return HalfPlane(float(slope), float(intercept))
        return HalfPlane(slope, intercept)

    @override
    def half_planes(self, parameters: Floats, p: float | None = None, q: float | None = None) -> HalfPlane:
        values = np.asarray(parameters, np.float64)
        if not values.size:
            return HalfPlane(np.empty(0), np.empty(0))
        positive = values[values > 0]
        low, high = (positive.min(), positive.max()) if positive.size else (1.0, 1.0)
        # Hints are computed at 25 parameters and interpolated between them.
        nodes = np.geomspace(low, high, 25) if low < high else np.array([low])
        chosen = []
        for node in nodes:
            boundary = boundary_of(self.at(float(node)))
            place = boundary.central() if p is None or q is None else int(boundary.nearest(p, q))
            chosen.append(boundary.contacts.hints[:, place])
        at = np.log(np.maximum(values, low))
        hints = np.array([np.interp(at, np.log(nodes), row) for row in np.array(chosen).T])
        return self.planes(values, hints)


@lru_cache(maxsize=512)
def boundary_of(claim: CurvedClaim) -> Boundary:
    """The boundary of a claim: its contacts, each with a half-plane."""
    contacts = claim.contacts()
    planes = claim.planes(claim.parameter, contacts.hints)
    slope, intercept = np.broadcast_arrays(planes.slope, planes.intercept)
    return Boundary(contacts, HalfPlane(slope, intercept))


def lines_of(claim: Claim) -> tuple[Floats, Floats]:
    """The slopes and the intercepts of half-planes whose intersection contains a claim's region, shape (n,) each."""
    planes = boundary_of(claim).planes if isinstance(claim, CurvedClaim) else claim.half_plane()
    return np.atleast_1d(np.asarray(planes.slope, np.float64)), np.atleast_1d(np.asarray(planes.intercept, np.float64))


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """The root p in [low, high] of a rising function of a probability, to a relative 10⁻¹² of both p and 1 − p."""
    from scipy.optimize import brentq  # takes 0.2 s to import, and few claims need it

    if high > 0.5 and rising(0.5) < 0:  # the unknown is log(1 − p) in the upper half, else log p
        rest = brentq(lambda u: -rising(-math.expm1(u)), math.log(max(1 - high, 1e-17)), math.log(0.5), xtol=1e-12)
        return float(-math.expm1(rest))
    if rising(high) <= 0:
        return high
    if rising(low) >= 0:
        return low
    return float(math.exp(brentq(lambda u: rising(math.exp(u)), math.log(low), math.log(high), xtol=1e-12)))


#: Points is the type of the pairs of numbers that define a polygon.
Points = tuple[tuple[float, float], ...]

#: STEEPEST_SLOPE is the largest slope of a polygon's side, below the overflow of doubles.
STEEPEST_SLOPE: Final = 1e300


@dataclass(frozen=True, slots=True, init=False)
class PolygonClaim(CurvedClaim):
    """A claim of finitely many half-planes, defined by `points`, and its family of excess ε.

    The family's parameter is the excess x, in nats: it makes the slope of every side e^x times as large, and x = 0 is
    the claim itself. Subclasses check their points and compute the sides. Raises `InvalidClaim` for an excess that is
    not from 0 to 700.
    """

    kind: ClassVar[str]
    symbol: ClassVar[str] = "excess ε"

    points: Points
    excess: float = field(default=0.0, metadata={"json": "optional"})  # nats

    def __init__(self, points: Points, excess: float = 0.0) -> None:
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "excess", excess)
        in_range(self, "excess", 0.0, LARGEST_PARAMETER)

    @classmethod
    def from_keys(cls, points: Points, excess: float) -> Self:
        """The claim from the keys of its JSON; constructors may take other arguments."""
        return cls(points, excess)

    @staticmethod
    @abstractmethod
    def sides(points: Points) -> tuple[Floats, Floats]:
        """The slope and the intercept of each side at an excess of 0; shape (k,) each."""

    @property
    def parameter(self) -> float:
        """The excess over every ε, in nats."""
        return self.excess

    def at(self, parameter: float) -> Self:
        """The claim with every slope e^parameter times as large."""
        other = object.__new__(type(self))  # without a second check of the points
        object.__setattr__(other, "points", self.points)
        object.__setattr__(other, "excess", float(parameter))
        return other

    def reached(self, p: Numbers, q: Numbers) -> Numbers:
        """The smallest x ≥ 0 for which slope·e^x·q + intercept ≥ p on all sides."""
        p, q = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(q, np.float64))
        excess = np.zeros(p.shape)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for slope, intercept in zip(*self.sides(self.points), strict=True):
                over = np.where(p > intercept, np.log((p - intercept) / (slope * q)), 0.0)
                excess = np.maximum(excess, np.nan_to_num(over, nan=0.0, posinf=np.inf))
        return excess[()]

    def largest(self, q: float) -> float:
        """The largest p, the minimum of 1 and slope·e^excess·q + intercept over all sides."""
        slopes, intercepts = self.sides(self.points)
        return float(min(np.min(slopes * math.exp(self.excess) * q + intercepts), 1.0))

    def smallest(self, p: float, parameter: float) -> float:
        """The smallest q at which every side allows p, at the excess `parameter`."""
        slopes, intercepts = self.sides(self.points)
        with np.errstate(over="ignore"):  # an infinite slope gives q = 0, a slope near 0 gives q > 1
            steeper = slopes * math.exp(parameter)
            rising = steeper > 0
            return float(min(np.max((p - intercepts[rising]) / steeper[rising], initial=0.0), 1.0))

    def contacts(self) -> Contacts:
        """Points along the sides; the hints are the sides' slopes and intercepts at an excess of 0."""
        contacts = _contacts(type(self), self.points)
        return replace(contacts, q=contacts.q * math.exp(-self.excess))  # G(e^x·q) is the boundary at an excess of x

    def planes(self, parameters: Numbers, hints: Floats) -> HalfPlane:
        """The half-planes of the slope slope·e^x and the same intercept, for every excess x. Arguments broadcast."""
        slope, intercept = hints
        with np.errstate(over="ignore"):
            factor = np.exp(np.minimum(np.asarray(parameters, np.float64), LARGEST_PARAMETER))
            steeper = np.minimum(slope * factor, STEEPEST_SLOPE)
        return HalfPlane(steeper * (1 + 4e-16), intercept + np.zeros_like(steeper))


@lru_cache(maxsize=64)
def _contacts(kind: type[PolygonClaim], points: Points) -> Contacts:
    """Contacts along the boundary below p = 1; the hints are the slope and the intercept of the contact's side."""
    slopes, intercepts = kind.sides(points)
    sides = _sides(np.minimum(slopes, STEEPEST_SLOPE), intercepts)
    if not sides:  # the claim allows all pairs
        sides = [(1.0, 1.0, 0.0, 1.0)]
    q, hints = [], []
    for slope, intercept, low, high in sides:
        low = max(low, high * 1e-12, 1e-305)
        ends = np.array([low, max(min(high, 1 - 1e-12), low)])  # a side may end before its least contact
        first, last = np.log(ends) - np.log1p(-ends)
        each = math.ceil((last - first) / 0.05) or 1  # contacts, at most 0.05 apart in log-odds
        q.append(1 / (1 + np.exp(-(first + (last - first) * (np.arange(each) + 0.5) / each))))
        hints.append(np.tile([[slope], [intercept]], each))
    at, side = np.concatenate(q), np.concatenate(hints, axis=1)
    p = np.minimum(side[0] * at + side[1], 1 - 1e-15)
    return Contacts(at, p, side)


def _sides(slopes: Floats, intercepts: Floats) -> list[tuple[float, float, float, float]]:
    """The sides of the lower envelope below p = 1, in rising q: slope, intercept, and both ends in q."""
    order = np.lexsort((slopes, intercepts))
    below = order[intercepts[order] < 1]
    # A line is a side of the envelope if its point (intercept, slope) is a corner of the lower hull, and slopes fall.
    corners = lower_hull(zip(intercepts[below].tolist(), slopes[below].tolist(), strict=True))
    ends = [(t - first) / (steep - s) for (first, steep), (t, s) in pairwise(corners) if s < steep]
    # The sides end where p reaches 1: no event exceeds the boundary there.
    sides = [
        (s, t, low, min(high, (1 - t) / s))
        for (t, s), low, high in zip(corners, [0.0, *ends], [*ends, 1.0], strict=False)
        if s > 0
    ]
    return [side for side in sides if side[2] < side[3]]


def lower_hull(points: Iterable[tuple[float, float]]) -> Points:
    """The lower convex hull of points sorted by their first coordinate."""
    hull: list[tuple[float, float]] = []
    for x, y in points:
        if hull and x <= hull[-1][0]:
            if y >= hull[-1][1]:
                continue
            hull.pop()
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (x - hull[-2][0]) >= (y - hull[-2][1]) * (
            hull[-1][0] - hull[-2][0]
        ):
            hull.pop()
        hull.append((x, y))
    return tuple(hull)
