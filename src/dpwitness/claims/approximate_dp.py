"""(ε, δ)-differential privacy, and its case δ = 0 (Dwork & Roth 2014, Definition 2.4)."""

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpwitness.checks import brief, number
from dpwitness.claims.claim import Floats, HalfPlane
from dpwitness.claims.fields import shown
from dpwitness.errors import InvalidClaim

__all__ = ["ApproxDP", "PureDP"]

#: Beyond e^700 a double overflows; no claim of that size says anything.
LARGEST_EPSILON = 700.0


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """(ε, δ)-differential privacy: P[M(D) ∈ S] ≤ e^ε·P[M(D′) ∈ S] + δ for all neighbours and all events S.

    Dwork & Roth 2014, Definition 2.4; ε in nats, δ a probability. An event is tested as it is, so no conversion is
    made. Refuted means: some event is more frequent on D than e^ε times its frequency on D′ plus δ. Refuting it at δ
    says nothing of larger δ; it refutes whatever (ε, δ) was converted from, such as a ρ or a μ, too. The family's
    parameter is ε, at a fixed δ. Raises `InvalidClaim` unless both are numbers, 0 ≤ ε ≤ 700 and 0 ≤ δ < 1.
    """

    kind: ClassVar[str] = "approx-dp"
    symbol: ClassVar[str] = "ε"
    curved: ClassVar[bool] = False

    epsilon: float  # nats
    delta: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real):
                raise InvalidClaim(f"{name}={brief(value)} must be a number; other claims are objects, as ZCDP(0.5)")
            object.__setattr__(self, name, number(name, value, InvalidClaim))  # a NumPy scalar is no JSON value
        if not 0 <= self.epsilon <= LARGEST_EPSILON:
            raise InvalidClaim(f"epsilon={self.epsilon!r} must be a number from 0 to 700")
        if not 0 <= self.delta < 1:
            raise InvalidClaim(f"delta={self.delta!r} must be at least 0 and below 1")

    @property
    def ratio(self) -> float:
        """e^ε."""
        return math.exp(self.epsilon)

    @property
    def parameter(self) -> float:
        """ε in nats."""
        return self.epsilon

    def at(self, parameter: float) -> "ApproxDP":
        """The claim of another ε at the same δ."""
        return replace(self, epsilon=parameter)

    def largest(self, q: float) -> float:
        """min(1, e^ε·q + δ)."""
        return min(1.0, self.ratio * q + self.delta)

    def smallest(self, p: float, parameter: float) -> float:
        """(p − δ)·e^−ε, at least 0, for the ε given."""
        return max(p - self.delta, 0.0) * math.exp(-parameter)

    def reached(self, p: Any, q: Any) -> Any:
        """log((p − δ)/q), at least 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(np.asarray(p) > self.delta, np.log((np.asarray(p) - self.delta) / np.asarray(q)), 0.0)
        return np.maximum(np.nan_to_num(ratio, nan=0.0, posinf=np.inf), 0.0)[()]

    def half_plane(self, p: Any = None, q: Any = None) -> HalfPlane:
        """Slope e^ε, intercept δ, whatever the estimate: the region is one half-plane."""
        return HalfPlane(self.ratio, self.delta)

    def half_planes(self, parameters: Floats, p: float | None = None, q: float | None = None) -> HalfPlane:
        """Slopes e^x, intercept δ."""
        return HalfPlane(np.exp(parameters), self.delta)

    def __str__(self) -> str:
        """The claim in the signs of the field."""
        epsilon = f"ε = {shown(self.epsilon)}"
        return epsilon if self.delta == 0 else f"({epsilon}, δ = {shown(self.delta)})"

    @property
    def short(self) -> str:
        """Such as "0.7-DP" or "(0.7, 1e-05)-DP"."""
        return f"{shown(self.epsilon)}-DP" if self.delta == 0 else f"({shown(self.epsilon)}, {shown(self.delta)})-DP"

    @property
    def condition(self) -> str:
        """What the family holds fixed."""
        return f" at δ = {shown(self.delta)}" if self.delta else ""

    def to_json(self) -> dict[str, Any]:
        """The kind, ε and δ."""
        return {"kind": self.kind, "epsilon": self.epsilon, "delta": self.delta}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "ApproxDP":
        """Read what `to_json` wrote, its kind left out. Raises `InvalidClaim`."""
        missing = {"epsilon", "delta"} - set(value)
        if missing:
            raise InvalidClaim(f"the claim lacks {sorted(missing)[0]!r}")
        return cls(value["epsilon"], value["delta"])


def PureDP(epsilon: float) -> ApproxDP:  # noqa: N802  # named as the claim that it makes
    """ε-differential privacy: `ApproxDP` with δ = 0. ε in nats. Raises `InvalidClaim`."""
    return ApproxDP(epsilon)
