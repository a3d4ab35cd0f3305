"""A claim is one new file: a bound of the total variation takes the 45 lines of the class here."""

import json
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import norm

from dpwitness import NotRefuted, Violation, Witness, bound, check, pairs, replay, shrink
from dpwitness.claims import Claim, HalfPlane, claim_from_json, register_claim, require_region
from dpwitness.errors import InvalidClaim
from dpwitness.evidence import Counts, Estimate, bet_on, log_e_value, lower_bound
from dpwitness.evidence.bounds import detectable_probability
from dpwitness.evidence.counts import CountsTable
from dpwitness.evidence.portfolio import Epoch, Stakes, log_e_values_of


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


def of(**members):
    """A claim as the one above, but for some members."""
    return type("Own", (TotalVariation,), {"__slots__": (), **members})(0.4)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"half_plane": lambda claim, p=None, q=None: HalfPlane(0.5, 0.0)},
            r"its half-plane p ≤ 0.5·q \+ 0 must rise",
        ),
        ({"half_plane": lambda claim, p=None, q=None: HalfPlane(-1.0, 1.5)}, r"its half-plane p ≤ -1·q \+ 1.5 must"),
        (
            {"half_plane": lambda claim, p=None, q=None: HalfPlane(math.nan)},
            r"the slope of half_plane\(p, q\) is nan: it must be a number",
        ),
        (
            {
                "largest": lambda claim, q: min(1.0, q + 0.5 if q < 0.35 else max(0.85, q + 0.05)),
                "half_plane": lambda claim, p=None, q=None: HalfPlane(1.0, 0.05),
            },
            r"largest\(.*: only a convex region has such half-planes",
        ),
        ({"largest": lambda claim, q: q / 2}, r"largest\(q\) must not fall in q, and be at least q"),
        (
            {"largest": lambda claim, q: min(1.0, q + (claim.distance if q < 0.5 else 0.1))},
            r"largest\(q\) must not fall in q, and be at least q",
        ),
        ({"largest": lambda claim, q: 1 / 0}, r"the claim Own: largest\(q\) raised ZeroDivisionError: "),
    ],
)
def test_half_planes_that_cut_the_region_are_refused(members, message):
    """They accused a mechanism that ignores its input."""
    with pytest.raises(InvalidClaim, match=message):
        check(gaussian, claim=of(**members), **LIMITS)


def test_a_name_is_given_once():
    class Other:
        kind = "approx-dp"

    with pytest.raises(ValueError, match=r"kind='approx-dp' is taken by dpwitness\..*ApproxDP: give another name"):
        register_claim(Other)


def parallel_inside(claim, p=None, q=None):
    """Right for all estimates outside the region; for those inside the parallel line through the estimate."""
    gap = 0.0 if p is None else np.asarray(p) - q
    inside = p is not None and np.ndim(p) == 0 and gap < claim.distance
    return HalfPlane(1.0, max(float(gap), 0.0) if inside else claim.distance)


#: Members of `TotalVariation` that are wrong, and what is said of them.
WRONG = {
    "half_plane inside": ({"half_plane": parallel_inside}, r"its half-plane p ≤ 1·q \+ 0 must rise and contain"),
    "half_plane at 0": (
        {"half_plane": lambda claim, p=None, q=None: HalfPlane(1.0, claim.distance + 0 / (1 if q is None else q))},
        r"half_plane\(0, 0\) raised ZeroDivisionError: ",
    ),
    "half_plane of arrays": (
        {"half_plane": lambda claim, p=None, q=None: HalfPlane(1.0, 0.4 if p is None or p > q else 0.5)},
        r"half_plane\(p, q\) of arrays raised ValueError: ",
    ),
    "half_planes of one": (
        {"half_planes": lambda claim, x, p=None, q=None: HalfPlane(np.ones_like(x), np.full_like(x, claim.distance))},
        "its half-plane p ≤ 1·q .* must rise and contain",
    ),
    "half_planes through 0": (
        {"half_planes": lambda claim, x, p=None, q=None: HalfPlane(np.ones_like(x), np.zeros_like(x))},
        r"its half-plane p ≤ 1·q \+ 0 must rise and contain",
    ),
    "half_planes falling": (
        {"half_planes": lambda claim, x, p=None, q=None: HalfPlane(-np.ones_like(x), x + 2)},
        "its half-plane p ≤ -1·q .* must rise and contain",
    ),
    "half_planes NaN": (
        {"half_planes": lambda claim, x, p=None, q=None: HalfPlane(np.ones_like(x), math.nan * x)},
        r"the intercept of half_planes\(x\) is array\(\[nan",
    ),
    "half_planes too few": (
        {"half_planes": lambda claim, x, p=None, q=None: HalfPlane(np.ones(2), x)},
        r"the slope of half_planes\(x\) is array\(\[1\., 1\.\]\): it must be numbers of the shape",
    ),
    "half_planes None": (
        {"half_planes": lambda claim, x, p=None, q=None: None},
        r"the slope of half_planes\(x\) raised AttributeError: ",
    ),
    "at": ({"at": lambda claim, x: claim}, r"the parameter of at\(0\) is 0\.4: it must be the one given"),
    "at of less": ({"at": lambda claim, x: Other(x, claim.distance)}, r"at\(x\) must allow more|at\(0\.4\) must allow"),
    "parameter NaN": ({"parameter": math.nan}, "parameter is nan: it must be a number"),
    "parameter None": ({"parameter": None}, "parameter is None: it must be a number"),
    "parameter text": ({"parameter": "0.4"}, "parameter is '0.4': it must be a number"),
    "parameter negative": ({"parameter": -1.0}, "parameter=-1.0 must be finite and not negative"),
    "smallest too small": (
        {"smallest": lambda claim, p, x: max(p - 10 * x, 0.0)},
        r"smallest\(.* is .*: it must be the least q at which at\(",
    ),
    "smallest too large": (
        {"smallest": lambda claim, p, x: max(p - x / 10, 0.0)},
        r"smallest\(.* is .*: it must be the least q at which at\(",
    ),
    "smallest None": ({"smallest": lambda claim, p, x: None}, r"smallest\(8.32e-07, 0\) is None: it must be a number"),
    "smallest NaN": ({"smallest": lambda claim, p, x: math.nan}, r"smallest\(8.32e-07, 0\) is nan: it must be"),
    "reached None": ({"reached": lambda claim, p, q: None}, r"reached\(p, q\) of arrays is None"),
    "reached of numbers": (
        {"reached": lambda claim, p, q: max(p - q, 0.0)}, r"reached\(p, q\) of arrays raised ValueError: "
    ),
    "reached too little": (
        {"reached": lambda claim, p, q: np.maximum(np.asarray(p) - q, 0.0) / 2},
        r"reached\(.* allows less",
    ),
    "short": ({"short": None}, "short=None must be text"),
    "text": ({"__str__": lambda claim: 1 / 0}, r"str\(\) raised ZeroDivisionError: "),
    "JSON": ({"to_json": lambda claim: {"kind": "tv", "distance": {0.4}}}, r"to_json\(\) raised TypeError: "),
}  # fmt: skip


class Other(TotalVariation):
    """Of another parameter than its distance."""

    __slots__ = ("given",)

    def __init__(self, given, distance):
        object.__setattr__(self, "distance", distance / 2)
        object.__setattr__(self, "given", given)

    @property
    def parameter(self):
        return self.given


@pytest.mark.parametrize("wrong", WRONG)
def test_a_claim_that_contradicts_itself_is_refused_before_runs_are_made(wrong):
    """Such claims accused correct mechanisms, gave bounds that do not hold, or lost a verdict to a traceback."""
    members, message = WRONG[wrong]
    with pytest.raises(InvalidClaim, match=f"the claim Own: {message}"):
        check(must_not_run, claim=of(**members), **LIMITS)


def must_not_run(rng, data):
    raise AssertionError


def test_half_planes_are_compared_with_the_region_where_a_bet_uses_them():
    counts, estimate = Counts(n10=500, n01=100, n00=400), Estimate(p=0.51234, q=0.1)

    def cut(claim, p=None, q=None):
        return HalfPlane(1.0, 0.4 if np.size(p) > 1 or p != estimate.p else 0.0)

    def all_cut(claim, x, p=None, q=None):
        return HalfPlane(np.ones_like(x), x if p != estimate.p else 0 * x)

    one, family = of(half_plane=cut), of(half_planes=all_cut)
    require_region(one)
    require_region(family)
    with pytest.raises(InvalidClaim, match=r"its half-plane p ≤ 1·q \+ 0 must rise"):
        log_e_value(counts, one, estimate)
    with pytest.raises(InvalidClaim, match=r"its half-plane p ≤ 1·q \+ 0 must rise"):
        bet_on(counts, family, estimate).log_e_values(family, np.array([0.1, 0.4]))
    table = CountsTable(np.array([[500], [0], [100], [400]]))
    stakes = Stakes(p=np.array([estimate.p]), q=np.array([0.1]), both=np.array([0.0]), log_shares=np.zeros(1))
    arrays = of(half_plane=lambda claim, p=None, q=None: HalfPlane(1.0, 0.0 if np.shape(p) == (1,) else 0.4))
    require_region(arrays)
    with pytest.raises(InvalidClaim, match=r"its half-plane p ≤ 1·q \+ 0 must rise"):
        log_e_values_of([Epoch(stakes=stakes, counts=table)], arrays)


def test_a_family_may_have_a_largest_parameter():
    """The grid of the lower bound goes on beyond it."""

    def at(claim, x):
        if x > 0.45:
            raise InvalidClaim("beyond")
        return type(claim)(x)

    def reached(claim, p, q):
        gap = np.maximum(np.asarray(p) - q, 0.0)
        return np.where(gap <= 0.45, gap, np.inf)

    limited = of(at=at, reached=reached)
    require_region(limited)
    counts = Counts(n10=900, n01=100)
    assert lower_bound(bet_on(counts, limited), limited, alpha=1e-6) > 0.45


class Changeable(TotalVariation):
    """A claim that may be changed, with the hash of an object."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


class Unhashable(TotalVariation):
    """As a dataclass that is not frozen."""

    __slots__ = ()
    __hash__ = None


def test_a_claim_needs_no_hash():
    verdict = check(
        gaussian, claim=Unhashable(0.1), neighbours=LIMITS["neighbours"], search_runs=2_000, runs=4_000, seed=1
    )
    assert isinstance(verdict, Violation)
    assert "0.1" in str(verdict)


def test_a_claim_that_was_changed_is_bet_against_as_it_is_now():
    """Bets were those of the first claim: a replay accused a mechanism that keeps the second."""
    claim, counts, estimate = Changeable(0.1), Counts(n10=350, n01=50, n00=600), Estimate(p=0.35, q=0.05)
    assert log_e_value(counts, claim, estimate) > 20
    object.__setattr__(claim, "distance", 0.35)
    assert log_e_value(counts, claim, estimate) == log_e_value(counts, TotalVariation(0.35), estimate) < 0
    assert detectable_probability(1000, claim, alpha=0.01) == detectable_probability(1000, Changeable(0.35), alpha=0.01)


class Bare:
    def half_plane(self, p=None, q=None):
        return HalfPlane(1.0, 0.4)


def test_a_claim_that_lacks_members_is_refused():
    with pytest.raises(InvalidClaim, match=r"the claim Bare lacks .*largest.*: let its class inherit dpwitness"):
        check(gaussian, claim=Bare(), **LIMITS)
