"""A kind of event of somebody else's: one class, registered by one call, is learned, confirmed, saved and replayed.

The class of 35 lines and its learner of 10 are all that it takes.
"""

import ast
import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import dpwitness
from dpwitness import NotRefuted, Violation, Witness, check, queries, replay
from dpwitness.claims import register_claim
from dpwitness.codec import Family
from dpwitness.errors import InvalidParameter, InvalidWitness
from dpwitness.events import Event, Interval, event_from_json, register_event
from dpwitness.search.learners import Proposal, register_learner, selection
from dpwitness.testing import check_event, check_learner


@register_event
@dataclass(frozen=True, slots=True, kw_only=True)
class SumAbove:
    """Outcomes whose first `terms` entries, entry k multiplied by k, add up to `threshold` at least."""

    kind: ClassVar[str] = "weighted sum"

    terms: int
    threshold: float

    @property
    def width(self):
        return self.terms

    @property
    def complexity(self):
        return 1, self.terms

    def contains(self, rows):
        if rows.shape[1] < self.terms:
            return np.zeros(len(rows), np.bool_)
        return rows[:, : self.terms] @ np.arange(1, self.terms + 1) >= self.threshold

    def simpler(self):
        return ()

    def rounded(self):
        cuts = dict.fromkeys(float(f"{self.threshold:.{digits}g}") for digits in (1, 2))
        return (SumAbove(terms=self.terms, threshold=cut) for cut in cuts if cut != self.threshold)

    def describe(self, noun="value", label=None):
        return f"weighted sum of {self.terms} {noun}s at least {self.threshold:.4g}"

    def to_json(self):
        return {"kind": self.kind, "terms": self.terms, "threshold": self.threshold}

    @classmethod
    def from_json(cls, value):
        return cls(terms=int(value["terms"]), threshold=float(value["threshold"]))


@register_event
@dataclass(frozen=True, slots=True, kw_only=True)
class AllBelow(Event):
    """Outcomes whose first entries are below a limit; a dataclass needs no JSON of its own."""

    kind: ClassVar[str] = "all below"

    limits: tuple[float, ...]
    strict: bool = True

    @property
    def width(self):
        return len(self.limits)

    @property
    def complexity(self):
        return 1, self.width

    def contains(self, rows):
        return (rows[:, : self.width] < self.limits).all(axis=1)

    def describe(self, noun="value", label=None):
        return f"{noun}s below {self.limits}"


def test_the_json_of_a_dataclass_is_derived():
    event = AllBelow(limits=(1.0, 2.0))
    written = json.loads(json.dumps(event.to_json()))
    assert written == {"kind": "all below", "limits": [1.0, 2.0], "strict": True}
    assert event_from_json({**written, "description": "text beside it"}) == event
    assert list(event.simpler()) == list(event.rounded()) == []
    for damaged, message in (
        ({**written, "limits": 3}, "limits=3 must be a list"),
        ({**written, "strict": 1}, "strict=1 must be true or false"),
        ({"kind": "all below", "limits": []}, "'strict' is missing"),
    ):
        with pytest.raises(InvalidWitness, match=f"event of kind 'all below' is damaged: {message}"):
            event_from_json(damaged)


def test_their_author_tests_them():
    check_event(SumAbove(terms=2, threshold=0.5))
    check_event(AllBelow(limits=(1.0, 2.0)))
    check_learner(Sums())


class Sums:
    def propose(self, sample, objective, *, thorough):
        sums = sample.outcomes @ np.arange(1, sample.width + 1)
        cuts = np.unique(np.quantile(sums, np.arange(1, 32) / 32))
        events = [SumAbove(terms=sample.width, threshold=float(cut)) for cut in cuts]
        p, q = (np.array([sums[times > 0] >= cut for cut in cuts]).mean(axis=1) for times in sample.times)
        for swapped, values in enumerate(
            (objective(p, q, sample.training_runs), objective(q, p, sample.training_runs))
        ):
            yield Proposal(event=events[int(values.argmax())], swapped=bool(swapped))


def masked():
    """A function inside another one: no new process is started for it, which takes seconds."""

    def masked_answer(rng, data, size):
        """A number hides the answer under a mask; with twice the second it has Laplace noise of scale 1."""
        mask = rng.normal(0, 1_000, size)
        return np.column_stack([data[0] + rng.laplace(0, 1, size) + mask, -mask / 2])

    return masked_answer


SETTINGS = {"claim": 0.5, "neighbours": queries(1), "search_runs": 100_000, "runs": 100_000, "seed": 1}


def test_a_new_event_finds_what_no_other_kind_expresses(monkeypatch):
    """The weighted sum is 1-DP and no better.

    Neither number alone, nor a box of both, nor their sum tells 0 from 1 under a mask of 1,000.
    """
    mechanism = masked()
    assert isinstance(check(mechanism, **SETTINGS), NotRefuted)
    monkeypatch.setattr(selection, "LEARNERS", list(selection.LEARNERS))
    register_learner(Sums())
    found = check(mechanism, **SETTINGS)
    assert isinstance(found, Violation)
    assert isinstance(found.witness.event, SumAbove)
    assert "weighted sum of 2 answers" in str(found.witness.description)
    again = Witness.from_json(json.loads(json.dumps(found.witness.to_json(), allow_nan=False)))
    assert again.event == found.witness.event
    assert isinstance(replay(again, mechanism, seed=2), Violation)


def test_a_name_is_given_once():
    assert event_from_json({"kind": "weighted sum", "terms": 1, "threshold": 0}) == SumAbove(terms=1, threshold=0.0)

    class Other(Interval):
        kind = "weighted sum"

    with pytest.raises(ValueError, match=r"kind='weighted sum' is taken by .*SumAbove"):
        register_event(Other)


@pytest.mark.parametrize("register", [register_event, register_claim])
def test_a_class_of_events_or_claims_has_a_kind(register):
    class Nameless:
        pass

    class Numbered:
        kind = 3

    for given in (Nameless, Numbered, 3, SumAbove(terms=1, threshold=0.0)):
        with pytest.raises(ValueError, match="must be a class whose kind is a text"):
            register(given)


def test_a_module_may_be_loaded_twice_and_under_another_name(tmp_path, monkeypatch):
    family, file = Family(), tmp_path / "own.py"
    file.write_text("class Own:\n    kind = 'own'\n")
    for name in ("own", "own", "also_own"):
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        family.register(module.Own)
        assert family.kinds == {"own": module.Own}


def test_nobody_else_asks_of_which_kind_an_event_is():
    """Each kind answers for itself, or a new one would be treated as none."""
    kinds = {"Interval", "Box", "OutcomeSet", "ScoreThreshold", "FeatureEvent"}
    for path in Path(dpwitness.__file__).parent.rglob("*.py"):
        if path.parent.name == "events":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            asked = []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = [name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)]
            elif isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Name):
                asked = [node.cls.id]
            assert not kinds & set(asked), f"{path}:{node.lineno}"


def test_an_event_of_a_file_asks_for_so_many_columns_as_rows_may_have():
    for terms in (-1, 10**9):
        with pytest.raises(
            InvalidWitness, match=f"event of kind 'weighted sum' is damaged: width={terms} must be a whole"
        ):
            event_from_json({"kind": "weighted sum", "terms": terms, "threshold": 0})


@pytest.mark.parametrize("learner", [Sums, 3])
def test_a_learner_without_propose_is_refused(learner):
    with pytest.raises(InvalidParameter, match="must be an object with a method `propose`"):
        register_learner(learner)
