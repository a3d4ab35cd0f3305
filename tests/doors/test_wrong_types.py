"""Wrong types at every public door: an error of ours, on one line, or a result; never a raw error of ours.

Seeded: case k is always the same, and `DPWITNESS_FUZZ_CASE=k` runs it alone.
`DPWITNESS_FUZZ=3000 pytest -m campaign tests/doors/test_wrong_types.py` runs a campaign, `DPWITNESS_FUZZ_FIRST=100000`
one of other cases.
"""

import decimal
import fractions
import inspect
import os
import random
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpwitness as dpw
from dpwitness.errors import DPWitnessError
from dpwitness.events import Cells, Feature, FeatureEvent, Outside
from running import scaled

CASES = int(os.environ.get("DPWITNESS_FUZZ", max(scaled(3000), 500)))
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
LAW = stats.laplace()
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

#: Every public door with what it needs, by position and by name; the other parameters are those of its signature.
CHEAP = {
    "ApproxDP": ((1.0,), {}), "PureDP": ((1.0,), {}), "GaussianDP": ((1.0,), {}), "RenyiDP": ((2.0, 1.0), {}),
    "ZCDP": ((0.5,), {}), "PrivacyProfile": (([(0.5, 0.1)],), {}), "TradeOff": (([(0.0, 1.0), (1.0, 0.0)],), {}),
    "Box": (((INTERVAL,),), {}), "Interval": ((), {"coordinate": 0, "low": 0.0}), "OutcomeSet": (([[1.0]],), {}),
    "ScoreThreshold": (([0], [[0.0]], [[0.0, 1.0, 2.0]], 0.5), {}), "Cells": ((SCORE, [0.5]), {}),
    "Outside": ((), {"interval": INTERVAL}), "Feature": ((), {"name": "low bits", "columns": (0,), "number": 3.0}),
    "FeatureEvent": ((), {"feature": Feature(name="sum", columns=(1,)), "within": INTERVAL}),
    "bits": ((3,), {}), "histogram": ((3,), {}), "queries": ((3,), {}), "pairs": ((([0.0], [1.0]), ([1], [2])), {}),
    "records": ((dpw.numbers(0, 1),), {"adjacency": "add-remove"}), "categories": (("a", "b"), {}), "flags": ((), {}),
    "integers": ((0, 5), {}), "numbers": ((0.0, 5.0), {}), "text": ((5,), {}), "like": (([1.0, 2.0],), {}),
    "target": ((), {"claim": "epsilon", "neighbours": ONE, "source": "x"}), "command": ((["no/such"],), {}),
    "remote": (("no/such/python", "file.py:f"), {}), "sweep": (("colorsys",), {}), "Witness.load": (("no.json",), {}),
    "sql": ((dict, "SELECT count(*) FROM people"), {"table": "people"}), "Witness.from_json": (({},), {}),
    "one_run": ((np.arange(20.0), np.arange(20.0), 0.1), {}),
    "save": (("/no/such/folder/x.json",), {}), "follows": ((lambda rng: rng.laplace(), LAW), {"draws": 16, "seed": 1}),
}  # fmt: skip
RUNNING = {
    **{name: ((noisy,), {"epsilon": 1.0, "neighbours": ONE, **FEW_RUNS}) for name in ("check", "bound", "profile")},
    "curve": ((noisy,), {"epsilon": [1.0], "claims": [0.5], "neighbours": ONE, **FEW_RUNS}),
    "replay": ((None, noisy), {**LIMITS, "seed": 2, "runs": 200}),
    "shrink": ((None, noisy), {"runs": 2_000, "max_time": 0.3, "workers": 1}),
}
DOORS = {**CHEAP, **RUNNING}
OTHERS = {"Cells": Cells, "Feature": Feature, "FeatureEvent": FeatureEvent, "Outside": Outside}
RETURNED = {
    "testing", "Bound", "Curve", "GoodnessOfFit", "NotRefuted", "OneRun", "Profile", "Violation", "Witness", "Claim",
    "CompiledDiffers", "SlowMechanism",
}  # fmt: skip


def test_every_public_name_is_tried():
    public = {name: getattr(dpw, name) for name in dpw.__all__}
    errors = {name for name, found in public.items() if isinstance(found, type) and issubclass(found, BaseException)}
    assert set(dpw.__all__) - errors - RETURNED == {name for name in DOORS if hasattr(dpw, name)}


def called(name, violation):
    if name == "save":
        return violation.witness.save
    if name.startswith("Witness."):
        return getattr(dpw.Witness, name.partition(".")[2])
    return OTHERS.get(name) or getattr(dpw, name)


def parameters_of(function, given):
    """The names of the parameters that are not given by their places."""
    known = [one for one in inspect.signature(function).parameters.values() if one.kind not in (one.VAR_KEYWORD,)]
    rest = known[len(given) :] if not any(one.kind == one.VAR_POSITIONAL for one in known) else known[1:]
    return [one.name for one in rest if one.kind != one.VAR_POSITIONAL]


def tried(case, doors, violation):
    """One call with one to three wrong values; what it raised, if anything, and the call for messages."""
    rng = random.Random(f"wrong types {case}")
    name = rng.choice(sorted(doors))
    given, named = doors[name]
    given, named = list(given), dict(named)
    if name in ("replay", "shrink"):
        given[0] = violation if name == "shrink" else violation.witness
    function = called(name, violation)
    places = [*range(len(given)), *parameters_of(function, given)]
    wrong = {}
    for place in rng.sample(places, min(rng.choice((1, 1, 1, 2, 3)), len(places))):
        number = rng.randrange(len(WRONG))
        wrong[place] = number
        (given if isinstance(place, int) else named)[place] = WRONG[number]()
    shown = f"case {case}: {name} with {wrong}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*given, **named)
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
