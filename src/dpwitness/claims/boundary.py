"""Claims whose region has a curved or many-sided boundary p = G(q): which of its supporting half-planes to bet on.

A curved region is the intersection of infinitely many half-planes. A test of any of them is a test of the claim, so
which one is taken is a matter of power alone; that each contains the region is a matter of validity, and is seen to
where a claim computes it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from dpwitness.claims.claim import Floats, HalfPlane

C = TypeVar("C", bound="CurvedClaim")

#: Points of a boundary at which half-planes are computed: in log-odds of q they are 0.05 apart or closer.
POINTS: Final = 1024
#: Log-odds of the smallest q of a contact, 10⁻¹²: what is rarer no number of runs shows.
LEAST_LOG_ODDS: Final = -27.6
#: Parameters of a family at which contacts are computed; those between them are interpolated.
NODES: Final = 25
#: Probabilities below this are taken for it, where a logarithm is needed.
TINY: Final = 1e-305


@dataclass(frozen=True, slots=True, eq=False)
class Contacts:
    """Points of a boundary, ascending in q and p, of shape (k,), and what their half-planes are computed from.

    `hints` has shape (m, k). Any convex combination of columns must give a half-plane that contains the region.
    """

    q: Floats
    p: Floats
    hints: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Boundary:
    """Contacts of a boundary and their half-planes."""

    contacts: Contacts
    planes: HalfPlane

    def nearest(self, p: Any, q: Any) -> Any:
        """The places of the contacts whose half-planes an estimate (p, q) exceeds most clearly. Broadcasts.

        For an estimate outside the region: where KL(p ‖ p₀) + KL(q ‖ q₀) is least over the boundary (p₀, q₀), the law
        of two independent sides that hides best behind the claim. It has one minimum, between q and the q₀ that the
        boundary has at p, since KL is convex; bisection by the sign of its derivative finds it.
        """
        at, slopes = self.contacts, self.planes.slope
        last = len(at.q) - 1
        p, q = (np.nan_to_num(np.asarray(value, np.float64)) for value in (p, q))
        low, high = np.searchsorted(at.q, q), np.searchsorted(at.p, p)
        low, high = np.broadcast_arrays(np.clip(low, 0, last), np.clip(high, 0, last))
        outside = low < high
        middle = (low + high) // 2  # within the region: a half-plane that is near
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            pull, push = slopes / (at.p * (1 - at.p)), 1 / (at.q * (1 - at.q))
            low, high = np.where(outside, low, middle), np.where(outside, high, middle)
            for _ in range(math.ceil(math.log2(last + 1)) if last else 0):
                half = (low + high) // 2
                rises = (at.q[half] - q) * push[half] > (p - at.p[half]) * pull[half]
                low, high = np.where(rises, low, half), np.where(rises, half, high)
        return high

    def usual(self) -> int:
        """The place where p + q is nearest to 1, for bets without an estimate."""
        return int(np.argmin(np.abs(self.contacts.p + self.contacts.q - 1)))


class CurvedClaim(ABC):
    """What claims with a curved boundary share; a claim says how its contacts and half-planes are computed."""

    __slots__ = ()

    curved: ClassVar[bool] = True

    @property
    @abstractmethod
    def parameter(self) -> float:
        """As in `Claim`."""

    @property
    def condition(self) -> str:
        """Nothing is held fixed."""
        return ""

    @abstractmethod
    def at(self: C, parameter: float) -> C:
        """As in `Claim`."""

    @abstractmethod
    def reached(self, p: Any, q: Any) -> Any:
        """The least parameter of the family that allows (p, q); 0 where all do. Broadcasts."""

    @abstractmethod
    def contacts(self) -> Contacts:
        """Points of the boundary."""

    @abstractmethod
    def planes(self, parameters: Any, hints: Floats) -> HalfPlane:
        """The half-planes of `at(x)` for parameters x of shape (k,), or one, and hints of shape (m, k)."""

    def largest(self, q: float) -> float:
        """G(q): the largest probability under D that the claim allows where D′ has q."""
        if q <= 0:
            return 0.0
        if self.reached(1.0, q) <= self.parameter:
            return 1.0
        return _root(lambda p: float(self.reached(p, q)) - self.parameter, q, 1.0)

    def smallest(self, p: float, parameter: float) -> float:
        """The smallest probability under D′ that `at(parameter)` allows where D has p: the inverse of G."""
        if p <= TINY or self.reached(p, TINY) <= parameter:
            return 0.0
        return _root(lambda q: parameter - float(self.reached(p, q)), TINY, p)

    def half_plane(self, p: Any = None, q: Any = None) -> HalfPlane:
        """The half-plane that an estimate exceeds most clearly, see `Boundary.nearest`; without one, some half-plane.

        Broadcasts; independent sides are assumed.
        """
        boundary = boundary_of(self)
        place = boundary.usual() if p is None or q is None else boundary.nearest(p, q)
        slope, intercept = boundary.planes.slope[place], boundary.planes.intercept[place]
        if np.ndim(slope) == 0:
            return HalfPlane(float(slope), float(intercept))
        return HalfPlane(slope, intercept)

    def half_planes(self, parameters: Floats, p: float | None = None, q: float | None = None) -> HalfPlane:
        """The half-planes of `at(x)` for every x of an array, as arrays of that shape."""
        values = np.asarray(parameters, np.float64)
        if not values.size:
            return HalfPlane(np.empty(0), np.empty(0))
        positive = values[values > 0]
        low, high = (positive.min(), positive.max()) if positive.size else (1.0, 1.0)
        nodes = np.geomspace(low, high, NODES) if low < high else np.array([low])
        chosen = []
        for node in nodes:
            boundary = boundary_of(self.at(float(node)))
            place = boundary.usual() if p is None or q is None else int(boundary.nearest(p, q))
            chosen.append(boundary.contacts.hints[:, place])
        at = np.log(np.maximum(values, low))
        hints = np.array([np.interp(at, np.log(nodes), row) for row in np.array(chosen).T])
        return self.planes(values, hints)


@lru_cache(maxsize=512)
def boundary_of(claim: CurvedClaim) -> Boundary:
    """The boundary of a claim, with a half-plane for each point of it."""
    found = claim.contacts()
    planes = claim.planes(claim.parameter, found.hints)
    slope, intercept = np.broadcast_arrays(planes.slope, planes.intercept)
    return Boundary(found, HalfPlane(slope, intercept))


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function of a probability between `low` and `high` is 0, to a relative 10⁻¹² of both tails."""
    from scipy.optimize import brentq  # 0.2 s, needed for few claims

    if high > 0.5 and rising(0.5) < 0:  # in the upper tail 1 − p counts
        rest = brentq(lambda u: -rising(-math.expm1(u)), math.log(max(1 - high, 1e-17)), math.log(0.5), xtol=1e-12)
        return float(-math.expm1(rest))
    if rising(high) <= 0:
        return high
    if rising(low) >= 0:
        return low
    return float(math.exp(brentq(lambda u: rising(math.exp(u)), math.log(low), math.log(high), xtol=1e-12)))
