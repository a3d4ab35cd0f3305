"""Gaussian differential privacy (Dong, Roth & Su 2022, JRSS-B 84(1))."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from dpwitness.claims.boundary import POINTS, Contacts, CurvedClaim
from dpwitness.claims.claim import Floats, HalfPlane
from dpwitness.claims.fields import from_fields, in_range

__all__ = ["GaussianDP"]

#: Two Gaussians 700 standard deviations apart are told apart by one run.
LARGEST: Final = 700.0
#: Contacts lie between Φ(−7 − μ) and Φ(7).
FARTHEST: Final = 7.0
#: Logarithms of slopes at most: beyond them a double overflows.
STEEPEST: Final = 600.0


@dataclass(frozen=True, slots=True)
class GaussianDP(CurvedClaim):
    """μ-Gaussian differential privacy: P[M(D) ∈ S] ≤ Φ(Φ⁻¹(P[M(D′) ∈ S]) + μ) for all neighbours and all events S.

    That is: telling D from D′ by an outcome is at least as hard as telling N(0, 1) from N(μ, 1) (Dong, Roth & Su 2022,
    Definition 4). N(f(D), σ²) with a sensitivity Δ of f is exactly Δ/σ-GDP. μ has no unit. Refuted means: some event
    tells D from D′ better than any test tells these two Gaussians apart. That is more than a refutation of the (ε, δ)
    that follow from μ, δ = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2) for every ε (their Corollary 1): it refutes one of these
    pairs without saying beforehand which. Raises `InvalidClaim` unless 0 ≤ μ ≤ 700.
    """

    kind: ClassVar[str] = "gaussian-dp"
    symbol: ClassVar[str] = "μ"

    mu: float

    def __post_init__(self) -> None:
        in_range(self, "mu", 0.0, LARGEST)

    @property
    def parameter(self) -> float:
        """μ."""
        return self.mu

    def at(self, parameter: float) -> "GaussianDP":
        """The claim of another μ."""
        return replace(self, mu=parameter)

    def reached(self, p: Any, q: Any) -> Any:
        """Φ⁻¹(p) − Φ⁻¹(q), at least 0."""
        from scipy.special import ndtri

        with np.errstate(invalid="ignore"):
            return np.maximum(np.nan_to_num(ndtri(p) - ndtri(q), posinf=np.inf, neginf=0.0), 0.0)

    def largest(self, q: float) -> float:
        """Φ(Φ⁻¹(q) + μ)."""
        from scipy.special import ndtr, ndtri

        return float(ndtr(ndtri(q) + self.mu))

    def smallest(self, p: float, parameter: float) -> float:
        """Φ(Φ⁻¹(p) − μ), for the μ given."""
        from scipy.special import ndtr, ndtri

        return float(ndtr(ndtri(p) - parameter))

    def contacts(self) -> Contacts:
        """Points Φ(z), Φ(z + μ); the hints are z."""
        from scipy.special import ndtr

        # Equally spaced from the far tail of one side to that of the other; near the diagonal all of them are of use.
        z = np.linspace(-FARTHEST - self.mu, FARTHEST, POINTS)
        return Contacts(ndtr(z), ndtr(z + self.mu), z[None])

    def planes(self, parameters: Any, hints: Floats) -> HalfPlane:
        """Tangents at q = Φ(z): slope e^(−zμ − μ²/2), intercept Φ(z + μ) − slope·Φ(z), rounded outwards."""
        from scipy.special import log_ndtr, ndtr

        mu = np.asarray(parameters, np.float64)
        z = np.maximum(hints[0], -(STEEPEST + mu**2 / 2) / np.maximum(mu, 1e-9))
        log_slope, allowed = -z * mu - mu**2 / 2, ndtr(z + mu)
        # The errors of an exponential and of Φ are relative, and grow with the size of what is exponentiated.
        error = 1e-14 * (4 + np.abs(log_slope) + (z + mu) ** 2 / 2 * (z + mu < 0) + z**2 / 2 * (z < 0))
        below = np.exp(np.minimum(log_slope + log_ndtr(z), 0.0))
        intercept = np.maximum(allowed - below, 0.0) + error * allowed
        return HalfPlane(np.exp(log_slope) * (1 + error), intercept)

    def __str__(self) -> str:
        """The claim in the signs of the field."""
        return f"μ = {self.mu:g}"

    @property
    def short(self) -> str:
        """Such as "0.5-GDP"."""
        return f"{self.mu:g}-GDP"

    def to_json(self) -> dict[str, Any]:
        """The kind and μ."""
        return {"kind": self.kind, "mu": self.mu}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "GaussianDP":
        """Read what `to_json` wrote, its kind left out. Raises `InvalidClaim`."""
        return cls(*from_fields(value, "mu"))
