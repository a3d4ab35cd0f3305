"""Privacy profiles: many pairs (ε, δ) claimed at once (Balle & Wang 2018; Sommer, Meiser & Mohammadi 2019)."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpwitness.claims.claim import Floats
from dpwitness.claims.fields import points_of
from dpwitness.claims.polygon import LARGEST, Points, PolygonClaim
from dpwitness.errors import InvalidClaim

__all__ = ["PrivacyProfile"]


@dataclass(frozen=True, slots=True, init=False)
class PrivacyProfile(PolygonClaim):
    """(ε, δ)-differential privacy for every pair of a list: P[M(D) ∈ S] ≤ e^ε·P[M(D′) ∈ S] + δ for each of them.

    What an accountant says of a mechanism is such a list, δ(ε) (Balle & Wang 2018, ICML; ε in nats, δ a probability),
    and an accountant of dp-accounting or Opacus may be given in its place. No conversion is made: each pair is a
    half-plane. They are tested together, with one false-alarm probability for all: refuted means that one of them,
    which need not be named before, does not hold, so that the accountant is wrong about the mechanism. `points` are the
    pairs, ascending in ε. The family's parameter is the excess x, in nats: the claim that all pairs (ε + x, δ) hold, so
    that x = 0 is the claim itself. Raises `InvalidClaim` unless there is a pair, each with 0 ≤ ε ≤ 700 and 0 ≤ δ < 1,
    and δ falls in ε.
    """

    kind: ClassVar[str] = "privacy-profile"

    def __init__(self, points: Iterable[tuple[float, float]], excess: float = 0.0) -> None:
        PolygonClaim.__init__(self, tuple(sorted(points_of("points", points))), excess)
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

    @staticmethod
    @lru_cache(maxsize=64)
    def sides(points: Points) -> tuple[Floats, Floats]:
        """Slope e^ε and intercept δ of each pair."""
        epsilons, deltas = np.array(points).T
        return np.exp(epsilons), deltas

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
