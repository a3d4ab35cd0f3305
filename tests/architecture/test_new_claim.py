"""A claim is one new file: a bound of the total variation takes the 45 lines of the class here."""

import json
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import norm

from dpwitness import NotRefuted, Violation, Witness, bound, check, pairs, replay, shrink
from dpwitness.claims import Claim, HalfPlane, claim_from_json, register_claim
from dpwitness.errors import InvalidClaim
from dpwitness.testing import check_claim


@register_claim
@dataclass(frozen=True, slots=True)
class TotalVariation(Claim):
    """P[M(D) ∈ S] ≤ P[M(D′) ∈ S] + δ."""

    kind: ClassVar[str] = "total-variation"
    symbol: ClassVar[str] = "δ"
    curved: ClassVar[bool] = False
    distance: float
    condition: ClassVar[str] = ""

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

    def to_json(self):
        return {"kind": self.kind, "distance": self.distance}

    @classmethod
    def from_json(cls, value):
        return cls(**value)


def gaussian(rng, data):
    return data[0] + rng.standard_normal()


@register_claim
@dataclass(frozen=True, slots=True)
class Plain:
    """A dataclass needs no JSON of its own."""

    kind: ClassVar[str] = "plain"
    distance: float
    times: tuple[int, ...] = ()


def test_the_json_of_a_dataclass_is_derived():
    written = Plain(0.5, (1, 2)).to_json()
    assert written == {"kind": "plain", "distance": 0.5, "times": [1, 2]}
    assert claim_from_json(json.loads(json.dumps(written))) == Plain(0.5, (1, 2))
    for damaged, message in (
        ({**written, "distance": "x"}, "distance='x' must be a finite number"),
        ({**written, "times": [1.5]}, r"times=1.5 must be a whole number below 2\^63"),
        ({"kind": "plain", "distance": 0.5}, "the claim lacks 'times'"),
    ):
        with pytest.raises(InvalidClaim, match=message):
            claim_from_json(damaged)


LIMITS = {"neighbours": pairs(([0.0], [1.0])), "search_runs": 60_000, "runs": 400_000, "seed": 1}


#: The total variation of N(0, 1) and N(1, 1).
TRUE = float(2 * norm.cdf(0.5) - 1)


def test_a_new_claim_is_refuted_saved_and_replayed(tmp_path):
    found = check(gaussian, claim=TotalVariation(0.3), **LIMITS)
    assert isinstance(found, Violation)
    assert 0.3 <= found.lower_bound <= TRUE
    assert found.to_json()["parameter"] == "δ"
    assert found.to_json()["lower_bound"] == found.lower_bound
    assert "gaussian() is not within 0.3 in total variation" in str(found)
    assert "so δ ≥ 0.3" in str(found)
    found.witness.save(tmp_path / "witness.json")
    again = replay(Witness.load(tmp_path / "witness.json"), gaussian, seed=3)
    assert isinstance(again, Violation)
    assert again.claim == TotalVariation(0.3)
    assert isinstance(shrink(found, gaussian, max_time=3.0), Violation)


def test_a_new_claim_that_holds_is_not_refuted():
    verdict = check(gaussian, claim=TotalVariation(TRUE), **LIMITS)
    assert isinstance(verdict, NotRefuted)
    assert verdict.lower_bound <= TRUE < verdict.detectable < 2 * TRUE


def test_its_parameter_is_bounded():
    found = bound(gaussian, claim=TotalVariation(0.0), neighbours=LIMITS["neighbours"], runs=400_000, seed=1)
    assert 0.95 * TRUE <= found.lower_bound <= TRUE
    assert str(found).startswith("δ ≥ 0.3")


def test_a_pass_is_printed_and_written():
    passed = check(gaussian, claim=TotalVariation(TRUE), **LIMITS)
    assert isinstance(passed, NotRefuted)
    assert "rarer than" in str(passed)
    assert passed.to_json()["claim"]["kind"] == "total-variation"


def test_its_author_tests_it():
    check_claim(TotalVariation(0.3))


def test_a_name_is_given_once():
    class Other:
        kind = "approx-dp"

    with pytest.raises(ValueError, match=r"kind='approx-dp' is taken by dpwitness\..*ApproxDP: give another name"):
        register_claim(Other)


class Unhashed(TotalVariation):
    """As a dataclass that is not frozen."""

    __slots__ = ()
    __hash__ = None


class Bare:
    def half_plane(self, p=None, q=None):
        return HalfPlane(1.0, 0.4)


def test_a_claim_that_lacks_members_is_refused():
    with pytest.raises(InvalidClaim, match=r"the claim Bare lacks .*largest.*: let its class inherit dpwitness"):
        check(gaussian, claim=Bare(), **LIMITS)
    with pytest.raises(InvalidClaim, match=r"the claim Unhashed lacks __hash__: .*, and be a frozen dataclass"):
        check(gaussian, claim=Unhashed(0.4), **LIMITS)
