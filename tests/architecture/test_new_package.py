"""Whoever brings a claim, an event, a relation, a learner, a library or an attack family writes one class of it.

The classes of this file are all that there is to write: they are registered by one call, or found by an entry point,
and then tested by their author, searched with, refuted, saved, replayed and shrunk as those of the house are.
"""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

import dpwitness as dpw
from dpwitness import proposals
from dpwitness.claims import HalfPlane, register_claim
from dpwitness.cli import main
from dpwitness.errors import InvalidClaim, InvalidNeighbours
from dpwitness.events import Interval, register_event
from dpwitness.mechanisms.libraries import library_of
from dpwitness.mechanisms.libraries import registered as libraries
from dpwitness.neighbours import (
    Pair,
    Relation,
    adjacent,
    adjacent_candidates,
    as_finite_numbers,
    register_relation,
)
from dpwitness.search.learners import Proposal, register_learner, selection
from dpwitness.testing import check_attack, check_claim, check_event, check_learner, check_relation
from extensions import ReplaceLargest, SumAbove, TotalVariation


class Sums:
    """Learns the best weighted sum, in both directions."""

    def propose(self, sample, objective, *, thorough):
        sums = sample.outcomes @ np.arange(1, sample.width + 1)
        cuts = np.unique(np.quantile(sums, np.arange(1, 32) / 32))
        events = [SumAbove(terms=sample.width, threshold=float(cut)) for cut in cuts]
        p, q = (np.array([sums[times > 0] >= cut for cut in cuts]).mean(axis=1) for times in sample.times)
        for swapped, rates in enumerate(((p, q), (q, p))):
            best = int(objective(*rates, sample.training_runs).argmax())
            yield Proposal(event=events[best], swapped=bool(swapped))


#: A distribution of one file with a library and an attack family, as pip installs it.
FILE = '''
import random

import click
import numpy as np

from dpwitness import OutcomeSet, target
from dpwitness.claims import ApproxDP
from dpwitness.mechanisms.libraries import Library
from dpwitness.neighbours import Pair, as_finite_numbers, queries
from dpwitness.proposals import AttackFamily, Candidate


class Query:
    """Laplace noise of scale 1, whose ε is 1 for a number that moves by 1."""

    def __init__(self, privacy_loss):
        self.privacy_loss = privacy_loss
        self._draw = random.Random(5)

    def answer(self, x):
        return x + self._draw.expovariate(1.0) - self._draw.expovariate(1.0)


class Noiseworks(Library):
    def recognises(self, thing):
        return type(thing).__module__ == "noiseworks"

    def function(self, thing):
        return lambda value: thing.answer(float(value))

    def claim(self, thing, d_in=None):
        return ApproxDP(epsilon=thing.privacy_loss)

    def neighbours(self, thing):
        return [(0.0, 1.0)]


LIBRARY = Noiseworks()


def magic_value(parameters, data, claim, runs):
    """One value of a million gives itself away: no search over inputs finds it."""
    pair = Pair(as_finite_numbers([777_777.0]), as_finite_numbers([777_778.0]), "the magic value, and its neighbour")
    yield Candidate(pair=pair, event=OutcomeSet([[2.0]]))


@target(claim="none", neighbours=queries(1), source="made up", true_epsilon="∞", attack="magic_values.magic_value")
def remembering(rng, answers):
    return 2.0 if answers[0] == 777_777.0 else np.floor(2 * rng.random())


def add_command(commands):
    @commands.command("magic_values", short_help=FAMILY.summary)
    @click.option("--value", default=777_777.0)
    def run(value):
        print(remembering(np.random.default_rng(0), np.array([value])))


FAMILY = AttackFamily(
    name="magic_values", summary="finds a value that a mechanism remembers", generators={"magic_value": magic_value},
    add_command=add_command,
)
'''
ENTRY_POINTS = {"libraries": "noiseworks = noiseworks:LIBRARY", "attacks": "magic_values = noiseworks:FAMILY"}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs a distribution of one file, `noiseworks.py`, with entry points by group."""

    def install(text=FILE, **points):
        (tmp_path / "noiseworks.py").write_text(text)
        about = tmp_path / "noiseworks-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: noiseworks\nVersion: 1.0\n")
        groups = [f"[dpwitness.{group}]\n{lines}\n" for group, lines in (points or ENTRY_POINTS).items()]
        (about / "entry_points.txt").write_text("\n".join(groups))
        libraries.cache_clear()
        return __import__("noiseworks") if not points else None

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    libraries.cache_clear()
    sys.modules.pop("noiseworks", None)


#: The total variation of N(0, 1) and N(1, 1).
TRUE = float(2 * norm.cdf(0.5) - 1)
PAIR = dpw.pairs(([0.0], [1.0]))


def gaussian(rng, data):
    return data[0] + rng.standard_normal()


def noisy_maximum(rng, data):
    return data.max() + rng.laplace(0.0, 2.0)  # the defect: the sensitivity is 8, not 2


def masked(rng, data, size):
    """A number hides the answer under a mask; with twice the second it has Laplace noise of scale 1."""
    mask = rng.normal(0, 1_000, size)
    return np.column_stack([data[0] + rng.laplace(0, 1, size) + mask, -mask / 2])


#: What each package brings: the mechanism that it refutes, how it is checked, and what its witness is then.
ROADS = {
    "claim": (gaussian, {"claim": TotalVariation(0.3), "neighbours": PAIR}, "claim", TotalVariation(0.3)),
    "relation": (noisy_maximum, {"claim": 1.0, "neighbours": ReplaceLargest(4, 8)}, "relation", ReplaceLargest(4, 8)),
    "event and learner": (masked, {"claim": 0.5, "neighbours": dpw.queries(1)}, "event", None),
}


@pytest.mark.usefixtures("asked_here")  # each is refuted three times
@pytest.mark.parametrize("what", ROADS)
def test_what_is_new_is_refuted_saved_replayed_and_shrunk(what, tmp_path, monkeypatch):
    mechanism, settings, part, expected = ROADS[what]
    monkeypatch.setattr(selection, "LEARNERS", list(selection.LEARNERS))
    register_learner(Sums())
    found = dpw.check(mechanism, search_runs=40_000, runs=100_000, seed=1, **settings)
    assert isinstance(found, dpw.Violation)
    found.witness.save(tmp_path / "witness.json")
    again = dpw.Witness.load(tmp_path / "witness.json")
    assert getattr(again, part) == getattr(found.witness, part)
    if expected is None:
        assert isinstance(again.event, SumAbove)
        assert "weighted sum of 2 answers" in again.description
    else:
        assert getattr(again, part) == expected
    assert isinstance(dpw.replay(again, mechanism, seed=3, runs=100_000), dpw.Violation)
    small = dpw.shrink(found, mechanism, max_time=1.0, runs=100_000)
    assert isinstance(small, dpw.Violation)
    assert small.witness.relation.contains(small.witness.pair)


def test_a_new_event_finds_what_no_other_kind_expresses():
    """Neither number alone, nor a box of both, nor their sum tells 0 from 1 under a mask of 1,000."""
    mechanism, settings, *_ = ROADS["event and learner"]
    assert isinstance(dpw.check(mechanism, search_runs=40_000, runs=100_000, seed=1, **settings), dpw.NotRefuted)


def test_a_new_claim_that_holds_is_not_refuted_and_its_parameter_is_bounded():
    limits = {"neighbours": PAIR, "search_runs": 40_000, "seed": 1}
    passed = dpw.check(gaussian, claim=TotalVariation(TRUE), runs=100_000, **limits)
    assert isinstance(passed, dpw.NotRefuted)
    assert passed.lower_bound <= TRUE < passed.detectable < 2 * TRUE
    assert passed.to_json()["claim"] == {"kind": "total-variation", "distance": TRUE}
    found = dpw.bound(gaussian, claim=TotalVariation(0.0), runs=400_000, **limits)
    assert 0.95 * TRUE <= found.lower_bound <= TRUE
    assert str(found).startswith("δ ≥ 0.3")


def test_a_library_and_an_attack_of_another_package_come_in_by_the_same_door(installed, capsys):
    package = installed()
    correct, wrong = package.Query(1.0), package.Query(0.5)
    assert library_of(wrong).claim(wrong) == dpw.ApproxDP(epsilon=0.5)
    limits = {"seed": 1, "search_runs": 2_000, "runs": 20_000}
    assert isinstance(dpw.check(correct, **limits), dpw.NotRefuted)
    refuted = dpw.check(wrong, **limits)
    assert isinstance(refuted, dpw.Violation)
    assert (refuted.mechanism, refuted.claim) == ("Query", dpw.ApproxDP(epsilon=0.5))

    assert set(proposals.registered()) == {"magic_values", "subset_sum", "table_builder", "threshold_testing"}
    verdict = dpw.check(package.remembering, epsilon=1, claim=1, seed=1, runs=20_000)
    assert isinstance(verdict, dpw.Violation)
    assert verdict.witness.pair.data.tolist() == [777_777.0]
    other = dpw.check(package.remembering, epsilon=1, claim=1, neighbours=dpw.queries(1), **limits)
    assert isinstance(other, dpw.NotRefuted)  # another relation than the target's own: the attack is not asked
    assert main(["attack", "magic_values"]) == 0
    assert capsys.readouterr().out == "2.0\n"
    assert main(["attack", "--help"]) == 0
    printed = capsys.readouterr()
    assert "finds a value that a mechanism remembers" in printed.out
    assert printed.err == ""


def test_their_authors_test_them(installed):
    check_claim(TotalVariation(0.3))
    check_event(SumAbove(terms=2, threshold=0.5))
    check_learner(Sums())
    check_relation(ReplaceLargest(4, 8))
    check_attack(installed().FAMILY)


BROKEN = [
    *((group, "import not_installed", "noiseworks:X", "cannot be loaded: Module") for group in ENTRY_POINTS),
    *((group, "import sys; sys.exit(1)", "noiseworks:X", "cannot be loaded: SystemExit: 1") for group in ENTRY_POINTS),
    ("libraries", "", "json:loads", "must be an object of a class derived from Library"),
    ("attacks", "", "json:loads", "is function: register an AttackFamily"),
    ("libraries", FILE.replace("type(thing).__module__", "1 / 0"), "noiseworks:LIBRARY", "its recognises raised Zero"),
    ("attacks", FILE.replace('command("m', 'no("m'), "noiseworks:FAMILY", "has a command that cannot be declared: At"),
    ("attacks", "", "dpwitness.reconstruction.subset_sum.candidates:FAMILY", "calls itself 'subset_sum': give"),
]


@pytest.mark.parametrize(("group", "text", "point", "warning"), BROKEN)
def test_a_broken_package_hides_nothing(installed, capsys, group, text, point, warning):
    name = "magic_values" if "declared" in warning else "broken"
    installed(text, **{group: f"{name} = {point}"})
    if group == "attacks":
        assert main(["attack"]) == 0
        printed = capsys.readouterr()
        assert re.search(f"dpwitness: warning: attack family '{name}'.* {warning}", printed.err)
        assert "threshold_testing" in printed.out
        return
    given = type("Other", (), {"epsilon": 1.0, "__call__": fails})()
    with pytest.warns(UserWarning, match=f"the library '.*' ?.*{warning}"):
        assert library_of(given).claim(given) == dpw.ApproxDP(epsilon=1.0)


def test_a_name_is_given_once_to_a_class_that_has_one():
    class Other(Interval):
        kind = "weighted sum"

    class Nameless:
        pass

    for register, given, said in (
        (register_event, Other, r"kind='weighted sum' is taken by .*SumAbove"),
        (register_event, Nameless, "must be a class whose kind is a text"),
        (register_claim, SumAbove(terms=1, threshold=0.0), "must be a class whose kind is a text"),
        (lambda kind: register_relation(kind, ReplaceLargest), "queries", r"kind='queries' is taken by .*Queries"),
        (lambda reader: register_relation("three", reader), 3, "reader=3 must be a function"),
        (register_learner, Sums, "must be an object with a method `propose`"),
    ):
        with pytest.raises(ValueError, match=said):
            register(given)


class OneMore(Relation):
    """The least that a relation may be."""

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        yield Pair(as_finite_numbers([1.0, 0.0]), as_finite_numbers([0.0, 0.0]))


@pytest.mark.usefixtures("asked_here")  # the subject is the relation
def test_a_relation_needs_nothing_but_candidates():
    found = dpw.check(noisy_maximum, claim=0.1, neighbours=OneMore(), search_runs=2_000, runs=50_000, seed=1)
    assert isinstance(found, dpw.Violation)
    assert found.to_json()["witness"]["relation"] is None
    (pair,) = OneMore().candidates()
    assert OneMore().contains(pair.swapped())
    assert not OneMore().contains(Pair(pair.data, as_finite_numbers([2.0, 0.0])))


def test_objects_that_a_relation_gives_each_time_are_its_candidates():
    """Its two objects, which no file can hold, are adjacent; other ones are not."""

    class Held(Relation):
        inputs = object(), {"box": object()}

        def candidates(self, data=None, *, centre=0.0, scale=1.0):
            yield Pair(*self.inputs)

    (pair,) = adjacent_candidates(Held())
    assert adjacent(Held(), pair.swapped())
    assert not adjacent(Held(), Pair(object(), {"box": object()}))


def fails(*given):
    raise ZeroDivisionError("of no records")


ONCE = iter(OneMore().candidates())
SCALED = {"candidates": lambda self, data=None, *, centre=0.0, scale=1.0: iter([Pair(np.zeros(1), np.array([scale]))])}
#: What a relation may get wrong, and what is said of it.
WRONG = {
    "direction": (
        {"contains": lambda self, pair, data=None: pair.data[0] > 0},
        "is not one that .* calls neighbouring",
    ),
    "scale": (SCALED, "it has no `contains` of its own, .* and scale 1 alone, .*: define"),
    "once": (
        {"candidates": lambda self, *_, **__: ONCE, "contains": lambda self, pair, data=None: True},
        "its candidates gave no pair the second time: let each call make all pairs",
    ),
    "alternatives": ({"alternatives": fails}, "its alternatives raised ZeroDivisionError: of no records"),
    "take": ({"take": fails}, "its take raised ZeroDivisionError: of no records"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_relation_is_one_line_that_names_it(what):
    members, said = WRONG[what]
    relation = type("Mine", (OneMore,), members)()
    given = {"data": [1.0, 0.0]} if what == "take" else {}
    with pytest.raises(InvalidNeighbours, match=said) as caught:
        dpw.check(noisy_maximum, claim=0.5, neighbours=relation, runs=500, **given)
    assert "\n" not in str(caught.value)


def test_a_class_that_lacks_members_is_told_what_to_inherit():
    class Bare:
        def half_plane(self, p=None, q=None):
            return HalfPlane(1.0, 0.4)

    class Unhashed(TotalVariation):
        """As a dataclass that is not frozen."""

        __slots__ = ()
        __hash__ = None

    for given, said in (
        ({"claim": Bare()}, r"the claim Bare lacks .*largest.*: let its class inherit dpwitness"),
        ({"claim": Unhashed(0.4)}, r"the claim Unhashed lacks __hash__: .*, and be a frozen dataclass"),
        ({"claim": 1.0, "neighbours": SimpleNamespace(candidates=list)}, r"inherits dpwitness\.neighbours\.Relation"),
    ):
        with pytest.raises((InvalidClaim, InvalidNeighbours), match=said):
            dpw.check(gaussian, **{"neighbours": PAIR} | given)


def test_no_verdict_is_about_a_pair_that_the_relation_does_not_contain():
    class Closing(OneMore):
        """It calls nothing adjacent once it is closed."""

        open = True

        def contains(self, pair, data=None):
            return self.open

    relation = Closing()

    def progress(stage, *counts):
        relation.open &= stage != "confirm"

    limits = {"search_runs": 1_000, "runs": 1_000, "seed": 1, "bits": False, "progress": progress}
    with pytest.raises(InvalidNeighbours, match=r"is not one that .* calls neighbouring"):
        dpw.check(noisy_maximum, claim=1.0, neighbours=relation, **limits)
