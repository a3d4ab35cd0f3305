"""A claim is one new file: Gaussian DP (Dong, Roth & Su 2022) takes the 45 lines of the class here."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import norm

from dpwitness import NotRefuted, Violation, Witness, check, pairs, replay, shrink
from dpwitness.claims import HalfPlane, claim_from_json, register_claim

#: Tangents are taken at probabilities within these.
LEAST = 1e-6


@register_claim
@dataclass(frozen=True, slots=True)
class GaussianDP:
    """P[M(D) ∈ S] ≤ Φ(Φ⁻¹(P[M(D′) ∈ S]) + μ)."""

    kind: ClassVar[str] = "gaussian-dp"
    symbol: ClassVar[str] = "μ"
    mu: float

    @property
    def parameter(self):
        return self.mu

    def at(self, parameter):
        return replace(self, mu=parameter)

    def largest(self, q):
        return float(norm.cdf(norm.ppf(q) + self.mu))

    def smallest(self, p, parameter):
        return float(norm.cdf(norm.ppf(p) - parameter))

    def half_plane(self, p=None, q=None):
        return self._tangent(self.mu, 0.5 if q is None else q)

    def half_planes(self, parameters, p=None, q=None):
        return self._tangent(parameters, 0.5 if q is None else q)

    def _tangent(self, mu, q):
        z = norm.ppf(np.clip(q, LEAST, 1 - LEAST))
        slope = np.exp(-z * mu - mu**2 / 2)
        return HalfPlane(slope, np.clip(norm.cdf(z + mu) - slope * norm.cdf(z), 0.0, None))

    def __str__(self):
        return f"μ = {self.mu:g}"

    @property
    def short(self):
        return f"{self.mu:g}-GDP"

    def to_json(self):
        return {"kind": self.kind, "mu": self.mu}

    @classmethod
    def from_json(cls, value):
        return cls(**value)


def gaussian(rng, data):
    return data[0] + rng.standard_normal()


LIMITS = {"neighbours": pairs(([0.0], [1.0])), "search_runs": 60_000, "max_runs": 400_000, "seed": 1}


def test_a_new_claim_is_refuted_saved_and_replayed(tmp_path):
    found = check(gaussian, claim=GaussianDP(0.7), **LIMITS)
    assert isinstance(found, Violation)
    assert 0.7 <= found.epsilon_lower_bound <= 1.0
    assert "gaussian() is not 0.7-GDP" in str(found)
    assert "so μ ≥ 0." in str(found)
    found.witness.save(tmp_path / "witness.json")
    again = replay(Witness.load(tmp_path / "witness.json"), gaussian, seed=3)
    assert isinstance(again, Violation)
    assert again.claim == GaussianDP(0.7)
    assert isinstance(shrink(found, gaussian, max_time=3.0), Violation)


def test_a_new_claim_that_holds_is_not_refuted():
    verdict = check(gaussian, claim=GaussianDP(1.0), **LIMITS)
    assert isinstance(verdict, NotRefuted)
    assert verdict.epsilon_lower_bound <= 1.0
    assert 1.0 < verdict.detectable_epsilon < 2.0


@pytest.mark.parametrize("mu", [0.2, 1.0, 2.5])
def test_its_half_planes_touch_the_region(mu):
    """A tangent lies on or above a concave boundary, and meets it at its own q."""
    claim = GaussianDP(mu)
    q = np.linspace(0.01, 0.99, 99)
    boundary = np.array([claim.largest(one) for one in q])
    for at in (0.02, 0.3, 0.9):
        plane = claim.half_plane(None, at)
        assert np.all(plane.slope * q + plane.intercept >= boundary - 1e-12)
        assert plane.slope * at + plane.intercept == pytest.approx(claim.largest(at))
    assert claim_from_json(claim.to_json()) == claim
