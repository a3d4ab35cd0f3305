"""(ε, δ)-differential privacy (Dwork & Roth 2014, Definition 2.4), its case δ = 0, and profiles of pairs (ε, δ)."""

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np

from dpwitness.arrays import Floats
from dpwitness.checks import brief, number
from dpwitness.claims.claim import LARGEST_PARAMETER, Claim, HalfPlane, Numbers, in_range, points_of, shown
from dpwitness.claims.regions import Points, PolygonClaim
from dpwitness.codec import JsonFields
from dpwitness.errors import InvalidClaim


@dataclass(frozen=True, slots=True)
class ApproxDP(JsonFields, Claim):
    """(ε, δ)-differential privacy: P[M(D) ∈ S] ≤ e^ε·P[M(D′) ∈ S] + δ for all neighbours and all events S.

    Dwork & Roth 2014, Definition 2.4; ε in nats, δ a probability. The claim is tested directly, without a conversion.
    Refuted means that some event has a probability on D that exceeds e^ε times its probability on D′ plus δ. A
    refutation at δ says nothing about larger δ. It also refutes the claim from which (ε, δ) was converted, such as a ρ
    or a μ. The family's parameter is ε, at a fixed δ. Raises `InvalidClaim` unless 0 ≤ ε ≤ 700 and 0 ≤ δ < 1.
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
            # A NumPy scalar is no JSON value; −0.0 + 0.0 is 0.0.
            object.__setattr__(self, name, number(name, value, InvalidClaim) + 0.0)
        in_range(self, "epsilon", 0.0, LARGEST_PARAMETER)
        if not 0 <= self.delta < 1:
            raise InvalidClaim(f"delta={self.delta!r} must be at least 0 and below 1")

    @property
    def ratio(self) -> float:
        """The slope e^ε of the half-plane p ≤ e^ε·q + δ."""
        return math.exp(self.epsilon)

    @property
    def parameter(self) -> float:
        """The claim's ε, in nats."""
        return self.epsilon

    def at(self, parameter: float) -> "ApproxDP":
        """The claim of another ε at the same δ."""
        return replace(self, epsilon=parameter)

    def largest(self, q: float) -> float:
        """The largest p, min(1, e^ε·q + δ)."""
        return min(1.0, self.ratio * q + self.delta)

    def smallest(self, p: float, parameter: float) -> float:
        """The smallest q, (p − δ)·e^−ε or 0 if this is negative, for the parameter ε."""
        return max(p - self.delta, 0.0) * math.exp(-parameter)

    def reached(self, p: Numbers, q: Numbers) -> Numbers:
        """The smallest ε (nats) that allows (p, q) at the same δ: log((p − δ)/q), at least 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(np.asarray(p) > self.delta, np.log((np.asarray(p) - self.delta) / np.asarray(q)), 0.0)
        reached: Numbers = np.maximum(np.nan_to_num(ratio, nan=0.0, posinf=np.inf), 0.0)[()]
        return reached

    def half_plane(self, p: Numbers | None = None, q: Numbers | None = None) -> HalfPlane:
        """The half-plane of slope e^ε and intercept δ, which is the region, for every estimate."""
        return HalfPlane(self.ratio, self.delta)

    def half_planes(self, parameters: Floats, p: float | None = None, q: float | None = None) -> HalfPlane:
        """The half-planes of slopes e^x and intercept δ."""
        return HalfPlane(np.exp(parameters), self.delta)

    def __str__(self) -> str:
        epsilon = f"ε = {shown(self.epsilon)}"
        return epsilon if self.delta == 0 else f"({epsilon}, δ = {shown(self.delta)})"

    @property
    def short(self) -> str:
        """The claim as "0.7-DP" or "(0.7, 1e-05)-DP"."""
        return f"{shown(self.epsilon)}-DP" if self.delta == 0 else f"({shown(self.epsilon)}, {shown(self.delta)})-DP"

    @property
    def variant(self) -> str:
        """The variant by its kind, or "pure ε-DP" if δ = 0."""
        return f"of the kind {self.kind}" if self.delta else "pure ε-DP"

    @property
    def condition(self) -> str:
        """The δ that the family holds fixed."""
        return f" at δ = {shown(self.delta)}" if self.delta else ""

    @property
    def shown_by_one_event(self) -> bool:
        """Whether δ = 0."""
        return self.delta == 0

    def tail(self, probability: float) -> str:
        """A sentence on the smallest δ(ε) that the runs can show, by an event that never happens on D′."""
        if not self.delta:
            return Claim.tail(self, probability)
        return f"no single event could have shown a δ below {probability:.3g} at ε = {shown(self.epsilon)}"


def PureDP(epsilon: float) -> ApproxDP:  # noqa: N802  # named like the classes of claims
    """ε-differential privacy: `ApproxDP` with δ = 0. ε in nats. Raises `InvalidClaim`."""
    return ApproxDP(epsilon)


@dataclass(frozen=True, slots=True, init=False)
class PrivacyProfile(PolygonClaim):
    """(ε, δ)-differential privacy for every pair of a list: P[M(D) ∈ S] ≤ e^ε·P[M(D′) ∈ S] + δ for each pair.

    An accountant states the list, δ(ε), for a mechanism (Balle & Wang 2018, ICML; ε in nats, δ a probability). An
    accountant of dp-accounting or Opacus may be given in place of the list. No conversion is made: each pair is a
    half-plane. All pairs are tested together, with one false-alarm probability. Refuted means that some pair does not
    hold, so the accountant is wrong about the mechanism; the pair need not be named beforehand. `points` are the pairs,
    ascending in ε. The family's parameter is the excess x, in nats: all pairs (ε + x, δ) are claimed, and x = 0 is the
    claim itself. Raises `InvalidClaim` for an empty list, and unless 0 ≤ ε ≤ 700, 0 ≤ δ < 1 and δ falls in ε.
    """

    kind: ClassVar[str] = "privacy-profile"

    def __init__(self, points: Iterable[tuple[float, float]], excess: float = 0.0) -> None:
        PolygonClaim.__init__(self, tuple(sorted(points_of(points))), excess)
        for epsilon, delta in self.points:
            if not (0 <= epsilon <= LARGEST_PARAMETER and 0 <= delta < 1):
                raise InvalidClaim(
                    f"points: ({epsilon!r}, {delta!r}) must have ε from 0 to 700 and δ from 0 to below 1"
                )
        for (_, before), (epsilon, delta) in pairwise(self.points):
            if delta > before:
                raise InvalidClaim(
                    f"points: δ={delta!r} at ε={epsilon!r} is larger than at a smaller ε: δ(ε) must fall"
                )

    @staticmethod
    @lru_cache(maxsize=64)
    def sides(points: Points) -> tuple[Floats, Floats]:
        """The slope e^ε and the intercept δ of each pair."""
        epsilons, deltas = np.array(points).T
        return np.exp(epsilons), deltas

    def __str__(self) -> str:
        return f"the profile {self._listed}"

    @property
    def _listed(self) -> str:
        shown = [f"({epsilon + self.excess:g}, {delta:g})" for epsilon, delta in self.points]
        if len(shown) > 3:
            return f"{shown[0]}, {shown[1]}, … {shown[-1]} of {len(shown)} pairs"
        return ", ".join(shown)

    def tail(self, probability: float) -> str:
        """A sentence on the smallest δ(ε) that the runs can show, and the number of smaller δ claimed."""
        smaller = sum(delta < probability for _, delta in self.points)
        claimed = f"; {smaller} of the {len(self.points)} claimed are smaller" if smaller else ""
        return f"no single event could have shown a δ below {probability:.3g}{claimed}"

    @property
    def short(self) -> str:
        """The claim as "private by the profile (0.5, 0.01), (1, 1e-05)"."""
        return f"private by the profile {self._listed}"
