"""Wrong types at every public door: an error of ours, on one line, or a result; never a raw error of ours.

Seeded: case k is always the same, and `DPWITNESS_FUZZ_CASE=k` runs it alone.
`DPWITNESS_FUZZ=3000 pytest -m campaign tests/doors/test_wrong_types.py` runs a campaign, `DPWITNESS_FUZZ_FIRST=100000`
one of other cases.
"""

import decimal
import fractions
import math
import os
import random
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpwitness as dpw
from dpwitness.errors import DPWitnessError
from dpwitness.events import Cells, Feature, FeatureEvent, Outside

CASES = int(os.environ.get("DPWITNESS_FUZZ", "3000"))
FIRST = int(os.environ.get("DPWITNESS_FUZZ_FIRST", "0"))
ONLY = os.environ.get("DPWITNESS_FUZZ_CASE")

pytestmark = pytest.mark.filterwarnings("ignore")


def noisy(rng, data, size, epsilon=1.0):
    return np.sum(data) + rng.laplace(0, 1 / epsilon, size)


class Unprintable:
    """Nothing of it works."""

    def __repr__(self):
        raise RuntimeError("no text")

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    __hash__ = None


class Plain:
    """An object without any text of its own."""


def itself():
    """A list that holds itself."""
    held = [1]
    held.append(held)
    return held


INTERVAL = dpw.Interval(coordinate=0, low=0.5)
SCORE = dpw.ScoreThreshold([0], [[0.0, 1.0]], [[0.0, 1.0, 2.0, 0.0]], 0.5)
ONE = [([0.0], [1.0])]
#: What is given in place of what should be; made anew for each case, since some are used up.
WRONG = (
    lambda: None, lambda: True, lambda: 0, lambda: -1, lambda: 3, lambda: 2.5, lambda: float("nan"),
    lambda: float("inf"), lambda: 10**400, lambda: -(2**64), lambda: 1e300, lambda: 1j, lambda: "", lambda: "x",
    lambda: "1", lambda: "\ud800", lambda: "a\nb", lambda: b"x", list, lambda: [1, "a"], lambda: [[1], [1, 2]],
    lambda: [None], lambda: (), lambda: (1, 2), dict, lambda: {"a": 1}, lambda: {1: [2]}, set, lambda: {1, 2},
    object, Plain, Unprintable, itself, lambda: ..., lambda: NotImplemented, lambda: int, lambda: Plain,
    lambda: lambda: 0, lambda: lambda *given: 1, lambda: len, lambda: np.array([]), lambda: np.array(["a"]),
    lambda: np.array(1.0), lambda: np.zeros((2, 2)), lambda: np.float64(0.5), lambda: np.int64(3), lambda: np.bool_(1),
    lambda: np.array([None, 1]), lambda: range(3), lambda: iter([1]), lambda: (i for i in (1, 2)),
    lambda: decimal.Decimal("0.5"), lambda: fractions.Fraction(1, 2), lambda: Path("x"), lambda: os,
    lambda: pd.DataFrame({"a": [1]}), lambda: pd.Series([1.0]), lambda: np.datetime64("2020-01-01"),
    lambda: dpw.check, lambda: dpw.ZCDP, lambda: dpw.ZCDP(0.5), lambda: dpw.queries(2), lambda: dpw.queries,
    lambda: INTERVAL, lambda: SCORE, lambda: dpw.numbers(0, 1), lambda: noisy, lambda: ONE,
    lambda: np.random.default_rng(1), lambda: slice(1), lambda: memoryview(b"ab"), lambda: Exception("x"),
)  # fmt: skip


@pytest.fixture(scope="module")
def violation():
    found = dpw.check(noisy, claim=0.1, neighbours=ONE, seed=1, runs=20_000, search_runs=5_000, workers=1)
    assert found.refuted
    return found


LIMITS = {"seed": 1, "workers": 1, "max_time": 1.0}
FEW_RUNS = {**LIMITS, "runs": 200, "search_runs": 200}
TESTED = {"neighbours": ONE, "data": None, "parameters": None, "outcome": None, "errors": "raise", "delta": None}
MORE = {"make": None, "d_in": None, "cluster": None, "executor": None, "reference": None, "progress": None}

#: Every public door with arguments that it takes: by position, then by name.
CHEAP = {
    "ApproxDP": ((1.0, 0.0), {}),
    "PureDP": ((1.0,), {}),
    "GaussianDP": ((1.0,), {}),
    "RenyiDP": ((2.0, 1.0), {}),
    "ZCDP": ((0.5,), {}),
    "PrivacyProfile": (([(0.5, 0.1)], 0.0), {}),
    "TradeOff": (([(0.0, 1.0), (1.0, 0.0)], 0.0), {}),
    "Box": (((INTERVAL,),), {}),
    "Interval": ((), {"coordinate": 0, "low": 0.0, "high": 1.0}),
    "OutcomeSet": (([[1.0]],), {}),
    "ScoreThreshold": (([0], [[0.0]], [[0.0, 1.0, 2.0]], 0.5), {}),
    "Cells": ((SCORE, [0.5]), {}),
    "Outside": ((), {"interval": INTERVAL}),
    "Feature": ((), {"name": "low bits", "columns": (0,), "number": 3.0}),
    "FeatureEvent": ((), {"feature": Feature(name="sum", columns=(1,)), "within": INTERVAL}),
    "bits": ((3,), {"any_length": False}),
    "histogram": ((3,), {"any_length": False}),
    "queries": ((3, 1.0, "all", "any"), {"any_length": False}),
    "pairs": ((([0.0], [1.0]), ([1], [2])), {}),
    "records": (
        (dpw.numbers(0, 1),),
        {"adjacency": "add-remove", "size": None, "base": [0.5], "form": "list"},
    ),
    "categories": (("a", "b"), {"other": False, "missing": False}),
    "flags": ((), {"missing": False}),
    "integers": ((0, 5), {"clipped": False, "missing": False}),
    "numbers": ((0.0, 5.0), {"clipped": False, "missing": False}),
    "text": ((5,), {"missing": False}),
    "like": (([1.0, 2.0],), {}),
    "target": (
        (),
        {"claim": "epsilon", "neighbours": ONE, "source": "x", "true_epsilon": "x", "attack": None, "delta": 0.0,
         "states": None},
    ),
    "command": ((["no/such/program", "1"],), {"seeded": False, "batch": 1, "max_time": 1.0}),
    "remote": (("no/such/python", "file.py:f"), {"max_time": 1.0}),
    "sql": (
        (dict, "SELECT count(*) FROM people"),
        {"table": "people"},
    ),
    "sweep": (("colorsys",), {"alpha": 1e-3, "max_time": 1.0, "seed": 1, "records": None}),
    "Witness.load": (("no.json",), {}),
    "Witness.from_json": (({},), {}),
    "save": (("/no/such/folder/x.json",), {}),
}  # fmt: skip
RUNNING = {
    "check": (
        (noisy,),
        {"epsilon": 1.0, "claim": 1.0, "alpha": 1e-6, "attack": None, **TESTED, **MORE, **FEW_RUNS},
    ),
    "bound": ((noisy,), {"epsilon": 1.0, "claim": None, "alpha": 0.001, **TESTED, **MORE, **FEW_RUNS}),
    "profile": ((noisy,), {"epsilon": 1.0, "claim": None, "alpha": 0.001, **TESTED, **MORE, **FEW_RUNS}),
    "curve": (
        (noisy,),
        {"epsilon": [1.0], "claims": [0.5], "claim": None, "method": "exact", **TESTED,
         **{name: MORE[name] for name in MORE if name != "d_in"}, **FEW_RUNS},
    ),
    "replay": (
        (None, noisy),
        {"claim": None, "alpha": None, **TESTED, "neighbours": None, "make": None, "cluster": None, "executor": None,
         "progress": None,
         **LIMITS, "seed": 2, "runs": 200},
    ),
    "shrink": (
        (None, noisy),
        {"neighbours": None, "data": None, "outcome": None, "errors": "raise", "make": None, "runs": 2_000,
         "max_time": 0.3, "workers": 1},
    ),
}  # fmt: skip
DOORS = {**CHEAP, **RUNNING}
OTHERS = {
    "Cells": Cells,
    "Feature": Feature,
    "FeatureEvent": FeatureEvent,
    "Outside": Outside,
}
#: Public names that are no doors: results, which the doors return, errors and warnings, a protocol, and a module.
RETURNED = {
    "testing",
    "Bound",
    "Curve",
    "NotRefuted",
    "Profile",
    "Violation",
    "Witness",
    "Claim",
    "CompiledDiffers",
    "SlowMechanism",
}


def test_every_public_name_is_tried():
    public = {name: getattr(dpw, name) for name in dpw.__all__}
    errors = {name for name, found in public.items() if isinstance(found, type) and issubclass(found, BaseException)}
    assert set(dpw.__all__) - errors - RETURNED == set(DOORS) - set(OTHERS) - {
        "Witness.load",
        "Witness.from_json",
        "save",
    }


def called(name, violation):
    if name == "save":
        return violation.witness.save
    if name.startswith("Witness."):
        return getattr(dpw.Witness, name.partition(".")[2])
    return OTHERS.get(name) or getattr(dpw, name)


def tried(case, doors, violation):
    """One call with one to three wrong values; what it raised, if anything, and the call for messages."""
    rng = random.Random(f"wrong types {case}")
    name = rng.choice(sorted(doors))
    given, named = doors[name]
    given, named = list(given), dict(named)
    if name in ("replay", "shrink"):
        given[0] = violation if name == "shrink" else violation.witness
    places = [*range(len(given)), *named]
    wrong = {}
    for place in rng.sample(places, min(rng.choice((1, 1, 1, 2, 3)), len(places))):
        number = rng.randrange(len(WRONG))
        wrong[place] = number
        (given if isinstance(place, int) else named)[place] = WRONG[number]()
    shown = f"case {case}: {name} with {wrong}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            called(name, violation)(*given, **named)
    except DPWitnessError as error:
        text = str(error)
        if not text or "\n" in text or re.search(r" at 0x[0-9a-fA-F]{6}", text):
            raise AssertionError(f"{shown}: {type(error).__name__}: {text!r}") from error
    except Exception as error:
        raise AssertionError(f"{shown}: {type(error).__name__}: {error}") from error


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """What is saved under a name that is tried is not saved among the user's files."""
    monkeypatch.chdir(tmp_path)


NO_NUMBER = ("one", "", b"one", {"a": 1}, object(), math.nan, 1j, np.array([1.0, 2.0]), int)
#: The numbers of each door.
NUMBERS = {
    **dict.fromkeys(("check", "bound", "profile"), ("epsilon", "delta", "alpha", "runs", "search_runs", "max_time",
                                                    "seed", "workers")),
    "curve": ("delta", "runs", "search_runs", "max_time", "seed", "workers"),
    "queries": ("length", "sensitivity"), "histogram": ("length",), "bits": ("length",),
    "ApproxDP": ("epsilon", "delta"), "GaussianDP": ("mu",), "ZCDP": ("rho",),
}  # fmt: skip


@pytest.mark.parametrize(("door", "name"), [(door, name) for door, names in NUMBERS.items() for name in names])
def test_what_is_no_number_is_refused_in_one_line(door, name):
    given, named = RUNNING.get(door, ((), {}))
    required = {"ApproxDP": {"epsilon": 1.0}, "queries": {"length": 3}}
    named = {key: value for key, value in named.items() if value is not None} | required.get(door, {})
    for value in NO_NUMBER:
        with pytest.raises(DPWitnessError) as caught:
            getattr(dpw, door)(*given, **(named | {name: value}))
        assert str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.campaign
def test_wrong_types_are_errors_of_one_line_or_results(violation):
    numbers = [int(ONLY)] if ONLY else range(FIRST, FIRST + CASES)
    failures = []
    for case in numbers:
        try:
            tried(case, DOORS, violation)
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, f"{len(failures)} of {len(numbers)}:\n" + "\n".join(failures)
