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
from dpwitness import NotRefuted, PureDP, Violation, Witness, check, pairs, queries, replay, shrink
from dpwitness.claims import register_claim
from dpwitness.codec import Family
from dpwitness.errors import InvalidParameter, InvalidWitness
from dpwitness.events import Event, Interval, event_from_json, in_event, members_of, register_event
from dpwitness.runs.shards import tally_of_rows
from dpwitness.search.learners import Proposal, learn_events, register_learner, selection
from dpwitness.search.objectives import GrowthAt


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
        return (SumAbove(terms=self.terms, threshold=float(f"{self.threshold:.{d}g}")) for d in (1, 2))

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
    kinds = {"Interval", "Box", "OutcomeSet", "ScoreThreshold", "FeatureEvent", "TreeScore"}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsFraction(AllBelow):
    """Outcomes by the fraction of their total; it says that it looks at the first entry, and looks at all."""

    kind: ClassVar[str] = "fraction of the total"

    def contains(self, rows):
        return np.nansum(rows, axis=1) % 1 > 0.5


class Totals:
    def propose(self, sample, objective, *, thorough):
        yield Proposal(event=TotalsFraction(limits=(1.5,)), swapped=False)


def test_an_event_that_looks_further_than_its_width_is_refused(monkeypatch):
    """Compiled runs that are counted write no more: it would be another event there."""
    monkeypatch.setattr(selection, "LEARNERS", [Totals()])
    with pytest.raises(InvalidParameter, match="width=1 of an event of kind 'fraction of the total' is too small"):
        check("histogram", epsilon=0.5, search_runs=2_000, runs=2_000, seed=1)


class FirstHalf(SumAbove):
    def contains(self, rows):
        return np.arange(len(rows)) < len(rows) // 2


class AboveMean(SumAbove):
    def contains(self, rows):
        return rows[:, 0] > rows[:, 0].mean()


@pytest.mark.parametrize("event", [FirstHalf, AboveMean])
def test_an_event_that_does_not_look_at_each_row_alone_is_refused(event):
    x, y = np.random.default_rng(1).laplace(size=(2, 500, 1))
    with pytest.raises(InvalidParameter, match="must look at each row alone, and give the same"):
        tally_of_rows(event(terms=1, threshold=0.0), x, y)
    with pytest.raises(InvalidParameter, match="must look at each row alone, and give the same"):
        members_of([event(terms=1, threshold=0.0)], x)


class Numbers(SumAbove):
    def contains(self, rows):
        return 2 * (rows[:, 0] > 0)


class Changes(SumAbove):
    def contains(self, rows):
        rows[:] = 0
        return rows[:, 0] > 0


class Fails(SumAbove):
    def contains(self, rows):
        return rows["sum"] > 0


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (Numbers, r"`contains` of Numbers returned .*: it must be an array with one bool for each row"),
        (Changes, "`contains` of Changes raised ValueError: assignment destination is read-only"),
        (Fails, "`contains` of Fails raised IndexError: only integers"),
    ],
)
def test_what_an_event_does_wrong_is_one_line_that_names_it(event, message):
    with pytest.raises(InvalidParameter, match=message):
        members_of([event(terms=1, threshold=0.0)], np.ones((4, 1)))


class Undescribed(SumAbove):
    def describe(self, noun="value", label=None):
        return 1 / 0


class WithoutText(SumAbove):
    def describe(self, noun="value", label=None):
        return None


class Unwritten(SumAbove):
    def to_json(self):
        return {"kind": self.kind, "terms": {self.terms}}


class Proposing:
    """Proposes one event."""

    def __init__(self, event):
        self.event = event

    def propose(self, sample, objective, *, thorough):
        yield Proposal(event=self.event)


def shifted(*, alone):
    """Laplace noise, of many runs at once or of one: a check bets on the latter in epochs."""

    def of_one(rng, data):
        return float(data[0]) + rng.laplace()

    def of_many(rng, data, size):
        return data[0] + rng.laplace(size=size)

    return of_one if alone else of_many


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(
    ("event", "message"),
    [
        (Undescribed, r"the event Undescribed: describe\(\) raised ZeroDivisionError: division by zero"),
        (WithoutText, r"the event WithoutText: describe\(\)=None must be text"),
        (Unwritten, r"the event Unwritten: to_json\(\) raised TypeError: Object of type set"),
    ],
)
def test_an_event_without_a_text_is_refused_before_runs_are_counted(monkeypatch, alone, event, message):
    """A verdict that was proved ended as a traceback."""
    monkeypatch.setattr(selection, "LEARNERS", [Proposing(event(terms=1, threshold=0.5))])
    monkeypatch.setattr(selection, "SLOW_LEARNERS", [])
    with pytest.raises(InvalidParameter, match=message):
        check(shifted(alone=alone), claim=0.3, neighbours=pairs(([1.0], [0.0])), search_runs=4000, runs=20_000, seed=1)


def proposed(monkeypatch, event):
    """What is learned where this event alone is proposed."""
    monkeypatch.setattr(selection, "LEARNERS", [Proposing(event)])
    x, y = np.random.default_rng(1).laplace(size=(2, 200, 1))
    return learn_events(x, y, GrowthAt(claim=PureDP(1.0)), thorough=False)


class Exits(SumAbove):
    def contains(self, rows):
        sys.exit("no")


class Simple(SumAbove):
    complexity = 1


class Broken(SumAbove):
    @property
    def complexity(self):
        return 1 / 0


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (Numbers(terms=1, threshold=0.0), "`contains` of Numbers returned .*: it must be an array with one bool"),
        (Fails(terms=1, threshold=0.0), "`contains` of Fails raised IndexError: only integers"),
        (FirstHalf(terms=1, threshold=0.0), "`contains` of FirstHalf must look at each row alone"),
        (Exits(terms=1, threshold=0.0), r"`contains` of Exits called sys.exit\('no'\)"),
        (SumAbove(terms=None, threshold=0.0), "`width` of SumAbove is None: it must be a whole number from 0 to 16384"),
        (SumAbove(terms=1.0, threshold=0.0), "`width` of SumAbove is 1.0"),
        (SumAbove(terms=10**9, threshold=0.0), "`width` of SumAbove is 1000000000"),
        (Simple(terms=1, threshold=0.0), "`complexity` of Simple is 1: it must be a tuple of two whole numbers"),
        (Broken(terms=1, threshold=0.0), "`complexity` of Broken raised ZeroDivisionError"),
        (None, "event=None must be an event: let its class inherit dpwitness.events.Event"),
    ],
)
def test_an_event_of_others_is_asked_where_it_is_proposed(monkeypatch, event, message):
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        proposed(monkeypatch, event)


def test_an_event_may_be_asked_of_one_row_and_of_none():
    """A list of the answers for no row is no array of bools."""

    class Listed(SumAbove):
        def contains(self, rows):
            return np.array([row[0] > 0 for row in rows])

    event = Listed(terms=1, threshold=0.0)
    assert [in_event(event, np.ones((n, 1))).tolist() for n in (0, 1, 3)] == [[], [True], [True] * 3]


class OwnCells(SumAbove):
    """Cells that depend on the place of a row: D stands first."""

    cells = 2
    inside = np.array([False, True])

    def cell_of(self, rows):
        return (np.arange(len(rows)) < len(rows) // 2).astype(np.int64)


def test_cells_of_other_packages_are_not_counted():
    """They are not compared with each other row by row, as `contains` is: they accused a correct mechanism."""
    x, y = np.random.default_rng(1).laplace(size=(2, 500, 1))
    event = OwnCells(terms=1, threshold=0.0)
    assert tally_of_rows(event, x, y) == tally_of_rows(SumAbove(terms=1, threshold=0.0), x, y)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"simpler": lambda self: None}, "`simpler` of Mine returned None: it must return a list"),
        ({"simpler": lambda self: 1 / 0}, "`simpler` of Mine raised ZeroDivisionError"),
        ({"rounded": lambda self: None}, "`rounded` of Mine returned None: it must return a list"),
        ({"rounded": lambda self: (1 / n for n in (0,))}, "`rounded` of Mine raised ZeroDivisionError"),
        ({"rounded": lambda self: [3]}, "event=3 must be an event"),
    ],
)
def test_what_an_event_does_wrong_in_shrink_is_one_line_that_names_it(monkeypatch, members, message):
    event = type("Mine", (SumAbove,), members)(terms=1, threshold=0.5)
    monkeypatch.setattr(selection, "LEARNERS", [Proposing(event)])
    monkeypatch.setattr(selection, "SLOW_LEARNERS", [])

    def noisy(rng, data):
        return data[0] + rng.laplace(0, 1)

    settings = {"search_runs": 2_000, "runs": 20_000, "seed": 1}
    found = check(noisy, claim=0.1, neighbours=pairs(([1.0], [0.0])), **settings)
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        shrink(found, noisy)


def test_an_event_of_a_file_is_asked_too():
    with pytest.raises(InvalidWitness, match="event of kind 'weighted sum' is damaged: `width` of SumAbove is -1"):
        event_from_json({"kind": "weighted sum", "terms": -1, "threshold": 0})


@pytest.mark.parametrize("learner", [Sums, 3])
def test_a_learner_without_propose_is_refused(learner):
    with pytest.raises(InvalidParameter, match="must be an object with a method `propose`"):
        register_learner(learner)
