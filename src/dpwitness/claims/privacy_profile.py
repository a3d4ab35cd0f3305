"""Privacy profiles: many pairs (ε, δ) claimed at once (Balle & Wang 2018; Sommer, Meiser & Mohammadi 2019)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np

from dpwitness.claims.boundary import Contacts, CurvedClaim
from dpwitness.claims.claim import Floats, HalfPlane
from dpwitness.claims.fields import from_fields, in_range, points_of
from dpwitness.claims.polygon import contacts_of, excess, least_allowed, planes_of, smallest_of
from dpwitness.errors import InvalidClaim

__all__ = ["PrivacyProfile"]

LARGEST: Final = 700.0

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, init=False)
class PrivacyProfile(CurvedClaim):
    """(ε, δ)-differential privacy for every pair of a list: P[M(D) ∈ S] ≤ e^ε·P[M(D′) ∈ S] + δ for each of them.

    What an accountant says of a mechanism is such a list, δ(ε) (Balle & Wang 2018, ICML). Its pairs are tested
    together, with one false-alarm probability for all: refuted means that one of them, which need not be named before,
    does not hold. The family's parameter is the excess x, in nats: the claim that all pairs (ε + x, δ) hold, so that
    x = 0 is the claim itself. Raises `InvalidClaim` unless there is a pair, each with 0 ≤ ε ≤ 700 and 0 ≤ δ < 1, and δ
    falls in ε.
    """

    kind: ClassVar[str] = "privacy-profile"
    symbol: ClassVar[str] = "excess ε"

    points: Points  # (ε in nats, δ), ascending in ε
    excess: float  # nats

    def __init__(self, points: Iterable[tuple[float, float]], excess: float = 0.0) -> None:
        object.__setattr__(self, "points", tuple(sorted(points_of("points", points))))
        object.__setattr__(self, "excess", excess)
        in_range(self, "excess", 0.0, LARGEST)
        for epsilon, delta in self.points:
            if not (0 <= epsilon <= LARGEST and 0 <= delta < 1):
                raise InvalidClaim(
                    f"points: ({epsilon!r}, {delta!r}) must have ε from 0 to 700 and δ from 0 to below 1"
                )
        for (_, before), (epsilon, delta) in zip(self.points, self.points[1:], strict=False):
            if delta > before:
                raise InvalidClaim(
                    f"points: δ={delta!r} at ε={epsilon!r} is larger than at a smaller ε: δ(ε) must fall"
                )

    @property
    def parameter(self) -> float:
        """The excess over every ε, in nats."""
        return self.excess

    def at(self, parameter: float) -> "PrivacyProfile":
        """The claim that every pair (ε + parameter, δ) holds."""
        found = object.__new__(PrivacyProfile)  # the points were checked
        object.__setattr__(found, "points", self.points)
        object.__setattr__(found, "excess", float(parameter))
        return found

    def reached(self, p: Any, q: Any) -> Any:
        """The least excess that allows (p, q)."""
        return excess(*_sides(self.points), p, q)

    def largest(self, q: float) -> float:
        """min(1, e^(ε + excess)·q + δ) over all pairs."""
        slopes, deltas = _sides(self.points)
        return float(smallest_of(slopes * math.exp(self.excess), deltas, q))

    def smallest(self, p: float, parameter: float) -> float:
        """The least q at which every side allows p, at the excess given."""
        slopes, intercepts = _sides(self.points)
        return least_allowed(slopes * math.exp(parameter), intercepts, p)

    def contacts(self) -> Contacts:
        """Points of the boundary; the hints are slopes and intercepts at no excess."""
        found = _contacts(self.points)
        return replace(found, q=found.q * math.exp(-self.excess))  # G(e^x·q) is the boundary at an excess of x

    def planes(self, parameters: Any, hints: Floats) -> HalfPlane:
        """Slope e^(ε + x), intercept δ."""
        return planes_of(parameters, hints)

    def __str__(self) -> str:
        """The claim in the signs of the field."""
        return f"the profile {self._listed}"

    @property
    def _listed(self) -> str:
        shown = [f"({epsilon + self.excess:g}, {delta:g})" for epsilon, delta in self.points]
        if len(shown) > 3:
            shown = [*shown[:2], "…", shown[-1], f"of {len(self.points)} pairs"]
        return ", ".join(shown).replace("…,", "…").replace(", of", " of")

    @property
    def short(self) -> str:
        """Such as "private by the profile (0.5, 0.01), (1, 1e-05)"."""
        return f"private by the profile {self._listed}"

    def to_json(self) -> dict[str, Any]:
        """The kind, the pairs and the excess."""
        return {"kind": self.kind, "points": [list(point) for point in self.points], "excess": self.excess}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "PrivacyProfile":
        """Read what `to_json` wrote, its kind left out; the excess may lack. Raises `InvalidClaim`."""
        return cls(*from_fields(value, "points"), excess=value.get("excess", 0.0))


@lru_cache(maxsize=64)
def _sides(points: Points) -> tuple[Floats, Floats]:
    """Slope and intercept of each pair."""
    epsilons, deltas = np.array(points).T
    return np.exp(epsilons), deltas


@lru_cache(maxsize=64)
def _contacts(points: Points) -> Contacts:
    return contacts_of(*_sides(points))
