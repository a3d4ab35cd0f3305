"""Rényi differential privacy (Mironov 2017, CSF)."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from dpwitness.claims.boundary import POINTS, Contacts, CurvedClaim
from dpwitness.claims.claim import Floats, HalfPlane
from dpwitness.claims.divergence import contacts_at, divergence, log_odds_below, planes_of
from dpwitness.claims.fields import from_fields, in_range, shown

__all__ = ["RenyiDP"]

#: Orders of divergences that are tried on cells.
ORDERS: Final = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)
LARGEST_ORDER: Final = 1e6
LARGEST_EPSILON: Final = 700.0


@dataclass(frozen=True, slots=True)
class RenyiDP(CurvedClaim):
    """(α, ε)-Rényi differential privacy: D_α(M(D) ‖ M(D′)) ≤ ε for all neighbours, in both directions (Mironov 2017).

    D_α(P ‖ Q) = log E_Q[(P/Q)^α]/(α − 1), ε in nats. The family's parameter is ε at a fixed α. By data processing D_α
    of any partition of the outcomes is at most ε (van Erven & Harremoës 2014, Theorem 9); that is what is tested: of an
    event S and its complement, by the Bernoulli laws of P[M(D) ∈ S] and P[M(D′) ∈ S], or of up to 24 cells, where these
    show more. No conversion to (ε′, δ) is made. Refuted means that the divergence of order α exceeds ε. It is more than
    to refute the (ε′, δ) that follow, ε′ = ε + log(1/δ)/(α − 1) for every δ (Mironov 2017, Proposition 3): those are
    weaker claims, which may hold where this one does not. One event shows a part of the divergence alone: 0.66 of D₂
    and 0.80 of D₄ for two Gaussians one standard deviation apart, and a lower bound by it falls short by as much; cells
    show 0.98 of D₂ and 0.95 of D₃ in 2·10⁷ runs. Raises `InvalidClaim` unless 1 < α ≤ 10⁶ and 0 ≤ ε ≤ 700; the limit α
    = ∞ is `PureDP`.
    """

    kind: ClassVar[str] = "renyi-dp"
    symbol: ClassVar[str] = "Rényi ε"

    alpha: float
    epsilon: float  # nats

    def __post_init__(self) -> None:
        in_range(self, "alpha", 1.0, LARGEST_ORDER, above=True)
        in_range(self, "epsilon", 0.0, LARGEST_EPSILON)

    @property
    def parameter(self) -> float:
        """ε in nats."""
        return self.epsilon

    def at(self, parameter: float) -> "RenyiDP":
        """The claim of another ε at the same α."""
        return replace(self, epsilon=parameter)

    def reached(self, p: Any, q: Any) -> Any:
        """D_α(p ‖ q)."""
        return divergence(self.alpha, p, q)

    @property
    def orders(self) -> tuple[float, ...]:
        """α, and smaller ones: D_α does not fall in α (van Erven & Harremoës 2014, Theorem 3)."""
        return (self.alpha, *(order for order in ORDERS if order < self.alpha))

    def largest_divergence(self, order: float, parameter: float) -> float:
        """ε up to the order α; nothing is said of larger ones. As in `claims.hyperplane.DivergenceClaim`."""
        return parameter if order <= self.alpha else math.inf

    def contacts(self) -> Contacts:
        """Points of D_α(p ‖ q) = ε; the hints are logarithms of log(p/q) and −log((1−p)/(1−q))."""
        at = log_odds_below(self.epsilon, POINTS)
        p, *hints = contacts_at(self.alpha, self.epsilon, at)
        return Contacts(np.exp(-np.logaddexp(0, -at)), p, np.array(hints))

    def planes(self, parameters: Any, hints: Floats) -> HalfPlane:
        """See `dpwitness.claims.divergence`."""
        x, minus_y = np.exp(hints)
        return planes_of(self.alpha, parameters, x, -minus_y)

    def __str__(self) -> str:
        """The claim in the signs of the field."""
        return f"Rényi ε = {shown(self.epsilon)} at α = {shown(self.alpha)}"

    @property
    def short(self) -> str:
        """Such as "(8, 0.4)-RDP"."""
        return f"({shown(self.alpha)}, {shown(self.epsilon)})-RDP"

    @property
    def condition(self) -> str:
        """What the family holds fixed."""
        return f" at α = {shown(self.alpha)}"

    def to_json(self) -> dict[str, Any]:
        """The kind, α and ε."""
        return {"kind": self.kind, "alpha": self.alpha, "epsilon": self.epsilon}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "RenyiDP":
        """Read what `to_json` wrote, its kind left out. Raises `InvalidClaim`."""
        return cls(*from_fields(value, "alpha", "epsilon"))
