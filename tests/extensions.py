"""A claim, an event and a relation, as other packages define them."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpwitness.claims import Claim, HalfPlane, register_claim
from dpwitness.events import Event, register_event
from dpwitness.neighbours import Pair, Relation, as_finite_numbers, register_relation


@register_claim
@dataclass(frozen=True, slots=True)
class TotalVariation(Claim):
    """Privacy by the total variation distance: P[M(D) ∈ S] ≤ P[M(D′) ∈ S] + δ."""

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


@register_event
@dataclass(frozen=True, slots=True, kw_only=True)
class SumAbove(Event):
    """Outcomes whose first `terms` entries, entry k multiplied by k, add up to `threshold` at least."""

    kind: ClassVar[str] = "weighted sum"
    terms: int
    threshold: float

    @property
    def width(self):
        return self.terms

    @property
    def complexity(self):
        return 1, self.terms

    def contains(self, rows):
        if rows.shape[1] < self.terms:
            return np.zeros(len(rows), np.bool_)
        return rows[:, : self.terms] @ np.arange(1, self.terms + 1) >= self.threshold

    def describe(self, noun="value", label=None):
        return f"weighted sum of {self.terms} {noun}s at least {self.threshold:.4g}"


@dataclass(frozen=True, slots=True)
class ReplaceLargest(Relation):
    """Lists of numbers in 0 … `top`; neighbours differ in one value, which is the largest of one of them."""

    length: int
    top: int
    noun = "value"

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        for base in (0, self.top // 2):
            yield self._pair(base, self.top)

    def variations(self, pair, *, scale=1.0):
        yield self._pair(int(pair.data.min()), self.top // 2 + 1)

    def smaller(self, pair):
        base, top = int(pair.data.min()), int(pair.data.max())
        for low, high in ((0, top), (base, base + 1), (base, (base + top) // 2)):
            if low < high < top or low < base:
                yield self._pair(low, high)

    def contains(self, pair, data=None):
        both = np.stack([pair.data, pair.neighbour])
        moved = np.flatnonzero(pair.data != pair.neighbour)
        inside = both.shape == (2, self.length) and both.min() >= 0 and both.max() <= self.top and len(moved) == 1
        return bool(inside) and bool(np.any(both[:, moved[0]] == both.max()))

    def to_json(self):
        return {"kind": "replace-largest", "length": self.length, "top": self.top}

    def _pair(self, low, high):
        same = [low] * (self.length - 1)
        return Pair(as_finite_numbers([high, *same]), as_finite_numbers([low, *same]), f"one {high} among {low}")


register_relation("replace-largest", lambda value: ReplaceLargest(**value))
