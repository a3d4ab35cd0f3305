"""Outcomes of one shape are laid out at once: never rows, names or texts that are not those of outcome by outcome."""

import collections
import copy
import datetime as dt
import enum
import json
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpwitness.errors import MechanismError
from dpwitness.mechanisms.layout import ROOT, keyed_row
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.python import PythonMechanism, VectorisedMechanism
from dpwitness.mechanisms.shapes import Shapes
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair


class Color(enum.StrEnum):
    RED = "a"


PAIR = Pair([1.0], [2.0])


class OneByOne(Shapes):
    """No outcome has a shape."""

    def held(self, value):
        return None

    def grouped(self, outcomes):
        return [], [*range(len(outcomes))]


#: So wide that no run is made again for wider rows, which are laid out one by one where no seed repeats it.
WIDE = 300


def laid_out(batches, base, shapes, width=WIDE, forget=False, **settings):
    """All that runs show of outcomes: rows and layouts batch by batch, and traits, or the error."""
    outcomes = iter([outcome for batch in batches for outcome in batch])

    def handed_out():
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    if base is VectorisedMechanism:

        def function(data, size):
            return [handed_out() for _ in range(size)]

    else:

        def function(data):
            return handed_out()

    class Laid(base):
        def _shapes_by(self, layout):
            if self._shapes.layout is not layout or type(self._shapes) is not shapes:
                self._shapes = shapes(layout, self._attributes)
            return self._shapes

    mechanism = Laid(Signature.of(function, {}), **settings)
    mechanism.draws_globally = False
    rng = np.random.Generator(np.random.SFC64(0))
    shown = []
    try:
        for batch in batches:
            layout = mechanism.layout
            if forget:
                mechanism.forget()
            runs = PairedRuns.d_first(PAIR, len(batch) // 2, coupled=False, layout=layout)
            _, rows = mechanism.pair_rows(runs, rng, width)
            shown.append(rows)
            shown.append(mechanism.settled(rows, layout))
            now = mechanism.layout or ROOT
            shown.append(repr(([(entry, entry.name) for entry in now.entries], now.full)))
    except MechanismError as error:  # it ends the check: which texts were seen before does not matter
        return [*shown, (type(error), str(error))], mechanism
    traits = mechanism.traits
    shown.append((traits.labels, traits.entries, traits.bare, traits.single, traits.keyed, traits.positional))
    return shown, mechanism


def same(one, other):
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and np.array_equal(one.view(np.uint64), other.view(np.uint64))
    return one == other


def require_same(batches, base=PythonMechanism, **settings):
    fast, mechanism = laid_out(copy.deepcopy(batches), base, Shapes, **settings)
    slow, _ = laid_out(copy.deepcopy(batches), base, OneByOne, **settings)
    assert len(fast) == len(slow)
    for one, other in zip(fast, slow, strict=True):
        assert same(one, other), (one, other)
    return mechanism


VALUES = {
    "float": [0.5, -0.0, 0.0, np.inf, np.nan, -3.25],
    "int": [0, 1, -7, 2**53 - 1],
    "flag": [True, False],
    "text": ["x", "y", ""],
    "none": [None],
    "large": [1, 2**53, -(2**53), 2**70, 10**400],
    "numpy": [np.float64(-0.0), np.int64(2**60), np.int64(3), np.bool_(True)],
    "other": [np.float32(0.1), np.str_("x"), Decimal("0.1"), dt.date(2020, 1, 1), b"ab", 1j, frozenset({1})],
    "wrong": [1.5, 2.5, 3.5, 4.5, 5.5, SimpleNamespace(a_=1)],
}
KEYS = ["a", "b", "c", 1, 2, True, 2.5, None, ("t", 1), np.str_("a"), Color.RED]
DTYPES = ("f8", "f4", ">f8", "i8", "u1", "?", "object", "category", "Int64", "M8[ns]", "str")
#: Labels of tables, as many as they have rows.
LABELS = {"text": ["x", "y"], "number": [7, 3], "float": [0.5, 1.5], "again": ["x", "x"], "both": ["x", 1]}


def some(rng, values):
    return values[rng.integers(len(values))]


@st.composite
def forms(draw, level=0):
    """A function from a generator to an outcome: always of one shape, or nearly."""
    kinds = ["value", "value", "dict", "dict", "list", "tuple", "any length", "array", "table", "series"]
    kind = draw(st.sampled_from(kinds if level else kinds[2:]))
    if kind == "value" or level > 2:
        values = [value for name in draw(st.lists(st.sampled_from([*VALUES]), min_size=1, max_size=2))
                  for value in VALUES[name]]  # fmt: skip
        return lambda rng: some(rng, values)
    if kind == "array":
        shape, dtype = draw(st.sampled_from([(2,), (0,), (2, 2), (2, 0), ()])), draw(st.sampled_from(DTYPES[:6]))
        return lambda rng: rng.integers(0, 2, shape).astype(dtype) if shape else np.array(rng.integers(0, 2), dtype)
    if kind in ("table", "series"):
        return draw(tables(kind))
    parts = draw(st.lists(forms(level + 1), max_size=3))
    if kind == "dict":
        keys = draw(st.lists(st.sampled_from(KEYS), min_size=len(parts), max_size=len(parts)))
        return lambda rng: {key: part(rng) for key, part in zip(keys, parts, strict=True)}
    if kind == "any length":
        return lambda rng: [part(rng) for part in parts[: rng.integers(len(parts) + 1)]]
    return lambda rng: {"list": list, "tuple": tuple}[kind](part(rng) for part in parts)


@st.composite
def tables(draw, kind):
    names = draw(st.lists(st.sampled_from(["a", "b", 0, 1.5, None]), max_size=2)) if kind == "table" else [None]
    dtypes = [draw(st.sampled_from(DTYPES)) for _ in names]
    labels = LABELS.get(draw(st.sampled_from(["count", *LABELS])))
    rows, named = draw(st.sampled_from([None, 0, 1, 2])), draw(st.booleans())

    def table(rng):
        n = int(rng.integers(3)) if rows is None else rows
        columns = [pd.Series(rng.integers(0, 2, n).tolist(), dtype="object").astype(dtype) for dtype in dtypes]
        frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(n))
        frame.columns = names
        if labels is not None:
            frame.index = pd.Index(labels[:n])
        if named:
            frame.index.name = "row"
        return frame if kind == "table" else frame.iloc[:, 0]

    return table


def changed(outcome, how):
    """An outcome as it may come now and then."""
    if how in ("one", "raises"):
        return ValueError("rare") if how == "raises" else 0.5
    if type(outcome) is dict:
        items = [*outcome.items()]
        new = {"less": items[1:], "late": [*items, ("late", 1.5)], "order": items[::-1]}
        return collections.OrderedDict(items) if how == "class" else dict(new.get(how, items))
    if isinstance(outcome, pd.DataFrame):
        return {"less": outcome.iloc[1:], "late": outcome.assign(late=1.0), "order": outcome.iloc[:, ::-1]}.get(
            how, outcome
        )
    return (*outcome, 1.5) if how == "late" and type(outcome) is tuple else outcome


@st.composite
def batches(draw):
    """Outcomes of a mechanism, of one form or two, and now and then another."""
    own = draw(st.lists(forms(), min_size=1, max_size=2))
    hows = draw(st.sampled_from([(), ("less", "late", "order", "class", "one"), ("raises",), ("late", "order")]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def outcome():
        value = some(rng, own)(rng)
        return changed(value, some(rng, hows)) if hows and rng.random() < 0.1 else value

    return [[outcome() for _ in range(n)] for n in draw(st.lists(st.sampled_from([2, 8, 40]), min_size=1, max_size=4))]


ERRORS = st.sampled_from(["raise", "outcome"])
WIDTHS = st.sampled_from([WIDE, WIDE, WIDE, 3])


@pytest.mark.campaign
@settings(max_examples=80, deadline=None)
@given(batches(), ERRORS, st.booleans(), WIDTHS)
def test_rows_are_those_of_outcome_by_outcome(outcomes, errors, vectorised, width):
    base = VectorisedMechanism if vectorised and errors == "raise" else PythonMechanism
    require_same(outcomes, base, errors=errors, width=width)


def test_rows_of_a_full_layout_are_those_of_outcome_by_outcome():
    """So many keys that further ones are only counted: what has no other ones is still laid out at once."""
    keys = [{f"key {k}": float(k)} for k in range(600)]
    own = [[{"key 3": 1.5, "late": float(k % 3)} if k % 9 else {"key 1": 2**60} for k in range(40)] for _ in range(3)]
    mechanism = require_same([keys, *own, [{"key 3": float(k)} for k in range(40)]])
    assert mechanism.layout.full


FRAME = pd.DataFrame({"a": [0.5, 1.5], "b": ["x", "y"]}, index=["p", "q"])
PLAIN = {
    "dict": lambda n: {"a": n / 2, "b": "xy"[n % 2], "c": n, "d": None if n % 3 else True},
    "dict of lists": lambda n: {"a": [n / 2, n], "b": (n % 2 == 0, {"c": n})},
    "dict of arrays": lambda n: {"a": np.array([n / 2, n]), "b": np.full((2, 2), n)},
    "list of dicts": lambda n: [{"a": n / 2}, {"a": n}],
    "rows": lambda n: [[n, "x"], [n / 2, "y"]],
    "table": lambda n: FRAME.assign(n=n),
    "series": lambda n: pd.Series([n, n / 2], name="n"),
    "dict of tables": lambda n: {"table": FRAME.assign(n=n), "n": n},
    "dict, or nothing": lambda n: {"a": n / 2} if n % 3 else None,
    "of two shapes": lambda n: {"a": n / 2} if n % 3 else {"a": n, "b": 1},
}


@pytest.mark.parametrize("vectorised", [False, True])
@pytest.mark.parametrize("kind", PLAIN)
def test_outcomes_of_one_shape_are_laid_out_at_once(kind, vectorised, monkeypatch):
    """Of many outcomes only those that come first are laid out one by one, whatever their values."""
    alone = []
    monkeypatch.setattr("dpwitness.mechanisms.python.keyed_row", lambda *given: alone.append(keyed_row(*given)))
    outcomes = [PLAIN[kind](n) for n in range(410)]
    base = VectorisedMechanism if vectorised else PythonMechanism
    shown, _ = laid_out([outcomes[:10], outcomes[10:]], base, Shapes)
    assert len(shown) == 7
    assert len(alone) <= 10 + 2 * 2  # on both sides, of two shapes
    assert len(np.unique(shown[3], axis=1)[0]) > 1


LIKE_OTHERS = {
    "values of two entries": [{"a": 2**60 + k} if k % 3 else {"a": k} for k in range(20)],
    "all of two entries": [{"a": [10**400 + k, -0.0]} for k in range(20)],
    "keys that are equal": [{True: 0.5} if k % 3 else {1: 0.5} for k in range(20)],
    "keys of another class": [{Color.RED: k} if k % 3 else {"a": k} for k in range(20)],
    "flags and numbers": [{"a": k % 4 == 0, "b": k % 3, "c": 0.0 if k % 2 else -0.0} for k in range(20)],
    "labels that are equal": [pd.Series([k, 0], index=[True, 2] if k % 3 else [1, 2]) for k in range(20)],
    "other types of columns": [pd.DataFrame({"a": [k if k % 3 else float(k)]}) for k in range(20)],
    "names of an index": [pd.Series([k], index=pd.RangeIndex(1, name="n" if k % 3 else None)) for k in range(20)],
    "an array and a list": [{"a": np.arange(2) if k % 3 else [0, 1]} for k in range(20)],
    "one value and none": [{"a": k} if k % 3 else (k if k % 2 else {}) for k in range(20)],
    "exceptions": [{"a": k} if k % 3 else ValueError(str(k)) for k in range(20)],
    "deep": [{"a": json.loads("[" * 12 + str(k) + "]" * 12)} for k in range(20)],
    "long": [{f"key {j}": k for j in range(1_100)} for k in range(8)],
    "too long": [[0.5] * 10_001 if k == 7 else {"a": [k]} for k in range(20)],
}


@pytest.mark.parametrize("name", LIKE_OTHERS)
def test_what_is_like_another_shape_has_rows_of_its_own(name):
    outcomes = LIKE_OTHERS[name]
    require_same([outcomes[:4], outcomes[4:], outcomes], errors="outcome", width=1_200)


@pytest.mark.parametrize("kind", ["dict", "dict of lists", "of two shapes"])
def test_what_was_forgotten_is_shown_again(kind):
    """As in another process, which begins anew with each piece of work."""
    outcomes = [PLAIN[kind](n) for n in range(60)]
    batches = [outcomes[:20], outcomes[20:40], outcomes[40:]]
    (*_, fast), (*_, slow) = (
        laid_out(batches, PythonMechanism, shapes, forget=True)[0] for shapes in (Shapes, OneByOne)
    )
    assert fast[0].items() >= slow[0].items()  # names within a layout are told once to the mechanism, not to its traits
    assert fast[1:] == slow[1:]


def test_attributes_of_one_shape_are_laid_out_at_once():
    outcomes = [SimpleNamespace(coef_=np.full((1, 3), k), intercept_=[k / 2]) for k in range(40)]
    for names in ("coef_", "coef_,intercept_"):
        require_same([outcomes[:10], outcomes[10:]], outcome=names)


@pytest.mark.campaign
@settings(max_examples=500, deadline=None)
@given(batches(), ERRORS, st.booleans(), WIDTHS)
def test_rows_of_many_mechanisms_are_those_of_outcome_by_outcome(outcomes, errors, vectorised, width):
    base = VectorisedMechanism if vectorised and errors == "raise" else PythonMechanism
    require_same(outcomes, base, errors=errors, width=width)
