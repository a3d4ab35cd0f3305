"""What `dpwitness.testing` tells authors: our own extensions keep every law, and classes that break one are named."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import dpwitness as dpw
from dpwitness.claims import HalfPlane
from dpwitness.errors import InvalidClaim, InvalidNeighbours, InvalidParameter
from dpwitness.neighbours import Pair, Records, as_finite_numbers
from dpwitness.proposals import AttackFamily, Candidate, family_named, registered
from dpwitness.search.learners import Proposal, selection
from dpwitness.testing import check_attack, check_claim, check_event, check_learner, check_relation
from extensions import ReplaceLargest, SumAbove, TotalVariation

CLAIMS = [
    dpw.PureDP(0.0), dpw.ApproxDP(0.7), dpw.ApproxDP(1.0, 1e-5), dpw.ApproxDP(30.0, 0.1), dpw.ApproxDP(700.0),
    dpw.GaussianDP(0.0), dpw.GaussianDP(0.5), dpw.GaussianDP(30.0).at(1.0), dpw.RenyiDP(1.01, 0.1), dpw.RenyiDP(8, 0.4),
    dpw.PrivacyProfile([(0.0, 0.3), (0.5, 0.01), (1, 1e-3)]), dpw.TradeOff([(0, 1), (0.1, 0.7), (0.5, 0.2), (1, 0)]),
    dpw.TradeOff(lambda a: ndtr(-ndtri(a) - 1)),
]  # fmt: skip
LARGE_CLAIMS = [dpw.ZCDP(0.5), dpw.RenyiDP(1e6, 10.0), dpw.RenyiDP(2, 700.0)]
EVENTS = [
    dpw.Interval(coordinate=0, low=0.5), dpw.Interval(coordinate=2, low=-1.0, high=math.inf),
    dpw.Interval(coordinate=1), dpw.OutcomeSet([[1.0]]), dpw.OutcomeSet([[1.0, 2.0], [0.0, math.nan]]),
]  # fmt: skip
RELATIONS = [
    dpw.queries(1), dpw.queries(2, 0.5), dpw.histogram(7), dpw.histogram(7, any_length=True), dpw.bits(5),
    dpw.pairs(([1.0], [2.0]), ("a", "b")), dpw.records(dpw.numbers(0, 1)),
    dpw.records({"age": dpw.integers(0, 120), "group": dpw.categories("a", "b")}, adjacency="replace-one"),
    dpw.records({"age": dpw.integers(0, 120)}, adjacency="add-remove", form="dataframe"),
]  # fmt: skip
#: Parameters that our attacks ask for.
PARAMETERS = {
    "epsilon": 1.0, "epsilon1": 0.5, "epsilon2": 0.5, "threshold": 3.0, "sensitivity": 1.0, "position": 1,
    "perturbation": 2, "suppression": 2, "base": 0, "partitions": 2,
}  # fmt: skip


def broken(law):
    """The error of a check of an extension, whose text says this."""
    return pytest.raises((AssertionError, InvalidParameter, InvalidClaim, InvalidNeighbours), match=law)


# Claims that break a law.


def claim_with(**members):
    return type("Own", (TotalVariation,), {"__slots__": (), **members})(0.4)


def parallel_inside(claim, p=None, q=None):
    """Right for all estimates outside the region; for those inside the parallel line through the estimate."""
    gap = 0.0 if p is None else np.asarray(p) - q
    inside = p is not None and np.ndim(p) == 0 and gap < claim.distance
    return HalfPlane(1.0, max(float(gap), 0.0) if inside else claim.distance)


def plane(slope, intercept=0.0):
    """A `half_plane` that is the same for all estimates."""
    return {"half_plane": lambda claim, p=None, q=None: HalfPlane(slope, intercept)}


def planes(make):
    """`half_planes` of lists of parameters."""
    return {"half_planes": lambda claim, x, p=None, q=None: make(claim, x)}


#: Members of `TotalVariation` that are wrong, and what is said of them. As claims of a check such classes accused
#: mechanisms that ignore their input, gave bounds that do not hold, or lost a verdict to a traceback.
WRONG_CLAIMS = {
    "half_plane cuts": (plane(0.5), r"half_plane\(\) is p ≤ 0.5·q \+ 0, .* contain the region"),
    "half_plane inside": ({"half_plane": parallel_inside}, r"half_plane\(0, 0\) is p ≤ 1·q \+ 0, .* contain"),
    "half_plane that never refutes": (plane(1.0, 1.0), r"half_plane\(p, q\) must exclude estimates beyond largest"),
    "not convex": (
        {"largest": lambda claim, q: min(1.0, q + 0.5 if q < 0.35 else max(0.85, q + 0.05))} | plane(1.0, 0.05),
        r"largest\(.*: only a convex region",
    ),
    "largest falls": (
        {"largest": lambda claim, q: min(1.0, q + (claim.distance if q < 0.5 else 0.1))},
        r"largest\(q\) must not fall in q",
    ),
    "half_planes through 0": (planes(lambda _, x: HalfPlane(np.ones_like(x), np.zeros_like(x))), r"≤ 1·q \+ 0, "),
    "at": ({"at": lambda claim, x: claim}, r"the parameter of at\(0\) is 0\.4"),
    "parameter text": ({"parameter": "0.4"}, "parameter is '0.4'"),
    "smallest too small": ({"smallest": lambda claim, p, x: max(p - 10 * x, 0.0)}, r"smallest\(.* the least q"),
    "reached too little": (
        {"reached": lambda claim, p, q: np.maximum(np.asarray(p) - q, 0.0) / 2}, r"reached\(.* allows less",
    ),
    "short": ({"short": None}, "short is None"),
    "text": ({"__str__": lambda claim: 1 / 0}, r"str\(\) raised ZeroDivisionError"),
    "JSON": ({"to_json": lambda claim: {"kind": "tv", "distance": {0.4}}}, r"to_json raised TypeError"),
    "JSON of another": ({"to_json": lambda claim: {"kind": claim.kind, "distance": 0.3}}, "which must be equal"),
    "changes": ({"__eq__": object.__eq__, "__hash__": object.__hash__}, "read back as δ = 0.4, which must be equal"),
}  # fmt: skip


def test_what_is_no_claim_is_told_what_it_lacks():
    with broken("the claim dict lacks"):
        check_claim({})


def test_a_family_of_claims_may_have_a_largest_parameter():
    class Limited(TotalVariation):
        __slots__ = ()

        def at(self, parameter):
            if parameter > 0.45:
                raise InvalidClaim("beyond")
            return replace(self, distance=parameter)

        def reached(self, p, q):
            gap = np.maximum(np.asarray(p) - q, 0.0)
            return np.where(gap <= 0.45, gap, np.inf)

    with broken("the claim Limited: its JSON is read back as δ = 0.4, which must be equal"):  # as a `TotalVariation`
        check_claim(Limited(0.4))


# Events.


def event_with(**members):
    return type("Mine", (SumAbove,), members)(terms=1, threshold=0.0)


def changes(event, rows):
    rows[:] = 0
    return rows[:, 0] > 0


def remembers():
    calls = itertools.count()
    return lambda event, rows: np.full(len(rows), next(calls) % 2 == 0)


def contains(judge):
    return {"contains": lambda event, rows: judge(rows)}


WRONG_EVENTS = {
    "first half": (contains(lambda rows: np.arange(len(rows)) < len(rows) // 2), "contains .* row alone"),
    "memory": ({"contains": remembers()}, "contains .* give the same each time"),
    "too few": (contains(lambda rows: rows[1:, 0] > 0), "contains gave array.* of one bool a row"),
    "changes rows": ({"contains": changes}, "contains raised ValueError: .*read-only"),
    "looks further": (contains(lambda rows: np.nansum(rows, axis=1) % 1 > 0.5), "width=1 is too small"),
    "cells by place": (
        {
            "cells": 2,
            "inside": np.array([False, True]),
            "cell_of": lambda event, rows: (np.arange(len(rows)) < len(rows) // 2).astype(np.int64),
        },
        "cell_of must look at each row alone",
    ),
    "width large": ({"width": 10**9}, "width=1000000000"),
    "describe None": ({"describe": lambda event, *_: None}, r"describe\(\) is None"),
    "JSON": ({"to_json": lambda event: {"kind": event.kind, "terms": {1}}}, "to_json raised TypeError"),
    "JSON of another": (
        {"to_json": lambda event: {"kind": event.kind, "terms": 1, "threshold": 1.0}}, "read back .* the same rows",
    ),
    "rounded itself": ({"rounded": lambda event: [event]}, "rounded gave .*: it must give other events"),
}  # fmt: skip


def test_what_is_no_event_is_told_what_it_lacks():
    with broken("the event NoneType: it lacks width, contains, "):
        check_event(None)


# Relations.


def relation_with(**members):
    return type("Mine", (ReplaceLargest,), {"__slots__": (), **members})(4, 8)


def one_pair(*sides):
    """A method that gives one pair, whatever it is asked."""
    return lambda *given, **settings: iter([Pair(*map(as_finite_numbers, sides))])


def giving(method, pairs):
    """A method that gives these pairs, whatever it is asked."""
    return {method: lambda *given, **settings: pairs}


WRONG_RELATIONS = {
    "no candidates": (giving("candidates", ()), "candidates gave no pair"),
    "candidates outside": ({"candidates": one_pair([0.0], [30.0])}, r"yes to \[0.\] and \[30.\], of its candidates"),
    "no pairs": (giving("candidates", ([0.0], [1.0])), "candidates gave list"),
    "smaller outside": ({"smaller": one_pair([5.0], [6.0])}, r"yes to \[5.\] and \[6.\], of its smaller"),
    "smaller and larger": (
        {"smaller": lambda relation, pair: iter([relation._pair(0, 4 if pair.data.max() == 8 else 8)])},
        "smaller must end: it comes to",
    ),
    "one direction": (
        {"contains": lambda relation, pair, *data: pair.data.sum() > pair.neighbour.sum()},
        "yes to .*, of its candidates, in either direction",
    ),
    "equal inputs": ({"contains": lambda relation, pair, *data: True}, "contains must say no to .*, twice"),
    "contains raises": ({"contains": lambda relation, pair, *data: {}["age"]}, "contains raised KeyError: 'age'"),
    "alternatives": ({"alternatives": lambda relation: (3,)}, "alternatives gave 3"),
    "adjacency": ({"adjacency": 7}, "adjacency is 7"), "noun": ({"noun": None}, "noun is None"),
    "JSON of another": ({"to_json": lambda relation: dpw.queries(3).to_json()}, "its JSON is read back as queries"),
}  # fmt: skip


def test_what_is_no_relation_is_told_what_to_inherit():
    with broken("inherits dpwitness.neighbours.Relation"):
        check_relation(type("Duck", (), {"candidates": ReplaceLargest.candidates})())


def test_a_relation_that_is_made_of_ours_is_held_to_its_own_candidates():
    class Wider(Records):
        def candidates(self, data=None, *, centre=0.0, scale=1.0):
            yield Pair([0.0], [0.5, 2.0])

    records = dpw.records(dpw.numbers(0, 1), form="list")
    with broken("contains must say yes to"):
        check_relation(Wider(fields=records.fields, form="list", layout=records.layout))


# Learners.

ABOVE = Proposal(event=dpw.Interval(coordinate=0, low=0.5))
DRAWN = np.random.default_rng(1)


def proposing(proposals):
    """A `propose` that gives these, whatever it is asked; of a function what it returns each time."""
    return lambda *given, **settings: proposals() if callable(proposals) else proposals


def drawn():
    return [Proposal(event=dpw.Interval(coordinate=0, low=DRAWN.random()))]


WRONG_LEARNERS = {
    "None": (proposing(None), "propose gave None"),
    "raises late": (proposing(lambda: (1 / n for n in (0,))), "raised ZeroDivisionError"),
    "endless": (proposing(lambda: itertools.repeat(ABOVE)), "propose gave more than 1,000"),
    "at random": (proposing(drawn), "propose must give the same events of the same outcomes"),
    "bad event": (proposing([Proposal(event=event_with(width=None))]), "the event Mine: width raised TypeError"),
}  # fmt: skip


def test_a_learner_may_propose_nothing():
    check_learner(learner_with(lambda *given, **settings: iter(())))
    with broken("must be an object with a method `propose`, not a class"):
        check_learner(learner_with)


# Attacks.

CANDIDATE = Candidate(pair=Pair(*map(as_finite_numbers, ([0.0], [1.0]))), event=ABOVE.event)


def family(**settings):
    return AttackFamily(name="mine", summary="x", **settings)


WRONG_ATTACKS = {
    "None": (proposing(None), "it gave None"),
    "equal inputs": (proposing([replace(CANDIDATE, pair=Pair([1.0], [1.0]))]), "the inputs of a pair must differ"),
    "at random": (
        proposing(lambda: [replace(CANDIDATE, pair=Pair([0.0], [DRAWN.random()]))]),
        "it must give the same candidates each time",
    ),
    "bad event": (
        proposing([replace(CANDIDATE, event=event_with(width=None))]),
        "the event Mine: width raised",
    ),
    "family without anything": (family(), "it must have a generator or a command"),
    "family of a generator": (family(generators={"one": lambda *_: None}), "it gave None"),
}  # fmt: skip


def test_an_attack_that_keeps_the_laws_passes():
    check_attack(lambda *given, **settings: iter([CANDIDATE]))
    check_attack(family(generators={"one": lambda *_: [CANDIDATE]}))


def learner_with(propose):
    return type("Mine", (), {"propose": propose})()


#: Of each kind what is wrong, and its check.
WRONG = {
    "claim Own": (WRONG_CLAIMS, lambda members: check_claim(claim_with(**members))),
    "event Mine": (WRONG_EVENTS, lambda members: check_event(event_with(**members))),
    "relation": (WRONG_RELATIONS, lambda members: check_relation(relation_with(**members))),
    "learner Mine": (WRONG_LEARNERS, lambda propose: check_learner(learner_with(propose))),
    "attack": (WRONG_ATTACKS, check_attack),
}


@pytest.mark.parametrize(("kind", "wrong"), [(kind, wrong) for kind in WRONG for wrong in WRONG[kind][0]])
def test_what_breaks_a_law_is_named(kind, wrong):
    table, check = WRONG[kind]
    thing, law = table[wrong]
    with broken(law if kind == "relation" else f"^the {kind}.*{law}") as caught:
        check(thing)
    assert "\n" not in str(caught.value) or kind == "claim Own"


@pytest.mark.parametrize(
    ("check", "ours"),
    [
        *((check_claim, claim) for claim in CLAIMS),
        *(pytest.param(check_claim, claim, marks=pytest.mark.campaign) for claim in LARGE_CLAIMS),
        *((check_event, event) for event in EVENTS),
        *((check_relation, relation) for relation in RELATIONS),
        *((check_learner, learner) for learner in selection.LEARNERS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_ours_keep_the_laws(check, ours):
    check(ours)


def test_ours_keep_the_laws_on_given_rows_and_data():
    for event in EVENTS:
        check_event(event, np.random.default_rng(1).laplace(size=(50, 2)))
    check_relation(dpw.queries(1), [1.0, 2.0])
    check_relation(dpw.records(dpw.numbers(0, 1)), [0.5, 0.2])


@pytest.mark.parametrize("name", registered())
def test_our_attacks_keep_the_laws(name):
    check_attack(family_named(name), PARAMETERS)
