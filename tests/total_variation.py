"""A claim of another package: privacy by the total variation distance."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpwitness.claims import Claim, HalfPlane, register_claim


@register_claim
@dataclass(frozen=True, slots=True)
class TotalVariation(Claim):
    """P[M(D) ∈ S] ≤ P[M(D′) ∈ S] + δ."""

    kind: ClassVar[str] = "total-variation"
    symbol: ClassVar[str] = "δ"
    curved: ClassVar[bool] = False
    distance: float

    @property
    def parameter(self):
        return self.distance

    def at(self, parameter):
        return replace(self, distance=parameter)

    def largest(self, q):
        return min(q + self.distance, 1.0)

    def smallest(self, p, parameter):
        return max(p - parameter, 0.0)

    def reached(self, p, q):
        return np.maximum(np.asarray(p) - q, 0.0)

    def half_plane(self, p=None, q=None):
        return HalfPlane(1.0, self.distance)

    def half_planes(self, parameters, p=None, q=None):
        return HalfPlane(np.ones_like(parameters), parameters)

    def __str__(self):
        return f"δ = {self.distance:g}"

    @property
    def short(self):
        return f"within {self.distance:g} in total variation"
