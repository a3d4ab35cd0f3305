"""Outcomes of any type: what tells two of them apart tells their rows apart, and a leak through it is refuted."""

import array
import asyncio
import collections
import dataclasses
import datetime
import itertools
import json
import math
import sqlite3
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpwitness import (
    InvalidOutcome,
    InvalidParameter,
    MechanismRaised,
    NotRefuted,
    Violation,
    check,
    pairs,
    replay,
    sql,
)
from dpwitness.errors import RunsEnded, SlowMechanism
from dpwitness.events import event_from_json
from dpwitness.events.encoding import exception_code
from dpwitness.mechanisms.columns import Columns, OutputTraits
from dpwitness.mechanisms.outcomes import RowWriter
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import MechanismFactory, as_mechanism
from dpwitness.mechanisms.signature import Signature
from running import same, sampled, stream

NEIGHBOURS = pairs(([0], [1]))


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Released:
    total: float
    label: object


@dataclasses.dataclass
class OtherReleased:
    total: float
    label: object


class Fitted:
    def __init__(self, coef, intercept=0.0):
        self.coef_, self.intercept_ = np.array(coef), intercept


DAY = datetime.datetime(2024, 1, 31, 12, 30)
ZONE = datetime.timezone(datetime.timedelta(hours=1))


def table(column, index=None, **more):
    return pd.DataFrame({"a": column, **more}, index=index)


def one_of(names):
    """A column of one row that may have each of these categories."""
    return pd.Categorical(["x"], categories=list(names))


#: Two outcomes that differ in one thing, given noise that both have.
DIFFERENT = {
    "dict: a missing key": lambda r: ({"a": r, "b": 1}, {"a": r}),
    "dict: the order of keys": lambda r: ({"a": r, "b": 1}, {"b": 1, "a": r}),
    "dict: keys that are no texts": lambda r: ({1: r, (2, "x"): 1}, {1: r, (2, "y"): 1}),
    "dict and its items": lambda r: ({"a": r}, ["a", r]),
    "set: a flag and a number": lambda r: ({True, "a"}, {1, "a"}),
    "set: the sign of a zero": lambda r: ({-0.0}, {0.0}),
    "set of tuples": lambda r: ({(1, r), (2, r)}, {(1, r), (3, r)}),
    "set of tuples: a flag": lambda r: ({(1,)}, {(True,)}),
    "set of drawn numbers": lambda r: ({r, r + 0.5}, {r, r + 0.25}),
    "index of several levels: labels of removed rows": lambda r: (
        pd.MultiIndex.from_tuples([(1, "a"), (2, "b"), (3, "c")])[:2], pd.MultiIndex.from_tuples([(1, "a"), (2, "b")]),
    ),
    "series: the name 0 and none": lambda r: (pd.Series([r]), pd.Series([r], name=0)),
    "bytes": lambda r: (b"ab\x00", b"ab"),
    "decimal beyond a float": lambda r: (Decimal(1), Decimal(1) + Decimal("1e-30")),
    "decimal and float": lambda r: (Decimal("0.5"), 0.5),
    "decimal: not a number": lambda r: (Decimal("sNaN"), Decimal("NaN")),
    "fraction beyond a float": lambda r: (Fraction(1, 3), Fraction(10**30 + 1, 3 * 10**30)),
    "date and time": lambda r: (DAY, DAY + datetime.timedelta(microseconds=1)),
    "midnight and its date": lambda r: (DAY.date(), datetime.datetime(2024, 1, 31)),
    "time zone": lambda r: (DAY.replace(tzinfo=ZONE), DAY),
    "keys that are not a number": lambda r: ({math.nan * r: 1, math.nan: r}, {math.nan * r: 2, math.nan: r}),
    "labels that are not a number": lambda r: tuple(pd.Series([n, r], index=np.full(2, np.nan)) for n in (1, 2)),
    "exact keys that are equal": lambda r: ({Decimal("1.0"): r}, {Decimal("1.00"): r}),
    "dates of two zones that are equal": lambda r: (
        {DAY.replace(tzinfo=ZONE): r}, {DAY.replace(tzinfo=ZONE).astimezone(datetime.UTC): r},
    ),
    "duration": lambda r: ([r, datetime.timedelta(1)], [r, datetime.timedelta(2)]),
    "timestamp: nanoseconds": lambda r: (pd.Timestamp(1_000_000_001), pd.Timestamp(1_000_000_002)),
    "NaT and NaN": lambda r: (pd.NaT, math.nan),
    "NA and NaT": lambda r: (pd.NA, pd.NaT),
    "numpy time: unit": lambda r: (np.datetime64(0, "s"), np.datetime64(0, "ms")),
    "numpy time and NaT": lambda r: (np.datetime64(0, "s"), np.datetime64("NaT", "s")),
    "time of day": lambda r: (DAY.time(), datetime.time(12, 31)),
    "deque": lambda r: (collections.deque([r, 1]), collections.deque([r, 2])),
    "range": lambda r: (range(3), range(4)),
    "series: a value": lambda r: (pd.Series([r, 1.0]), pd.Series([r, 2.0])),
    "Polars: a series": lambda r: (pl.Series([r, 1.0]), pl.Series([r, 2.0])),
    "Arrow: an array": lambda r: (pa.array([r, 1.0]), pa.array([r, 2.0])),
    "dataclass: a field": lambda r: (Released(r, "a"), Released(r, "b")),
    "dataclass: the class": lambda r: (Released(r, "a"), OtherReleased(r, "a")),
    "masked array": lambda r: (np.ma.array([r, 1.0], mask=[0, 1]), np.ma.array([r, 1.0])),
    "array of objects": lambda r: (np.array([None, {"a": r}]), np.array([None, {"b": r}])),
    "matrix": lambda r: (np.array([[r, 1], [2, 3]]), np.array([[r, 1, 2, 3]])),
    "nested arrays without entries": lambda r: ({"n": r, "X": np.zeros((0, 2))}, {"n": r, "X": np.zeros((0, 3))}),
    "frame: a value": lambda r: (table([r, 1], b="x"), table([r, 2], b="x")),
    "frame: a column": lambda r: (table([r]), table([r]).rename(columns={"a": "b"})),
    "frame: rows without columns": lambda r: (pd.DataFrame(index=range(2)), pd.DataFrame(index=range(3))),
    "frame: the order of labels": lambda r: (table([r, 1], index=["x", "y"]), table([1, r], index=["y", "x"])),
    "frame: the type of a column": lambda r: (table([1]), table([1.0])),
    "frame: categories that no row has": lambda r: (table(one_of("xy")), table(one_of("xz"))),
    "frame: levels that no row has": lambda r: tuple(
        table([r, 1], index=pd.MultiIndex.from_tuples([("x", 1), (name, 1)])).iloc[:1] for name in "yz"
    ),
    "frame: the name of the index": lambda r: tuple(table([r]).rename_axis(f"of {k}") for k in (1, 2)),
    "categories that no entry has": lambda r: (one_of("xy"), one_of("x")),
    "Arrow: values of a dictionary": lambda r: tuple(
        pa.table({"a": pa.DictionaryArray.from_arrays([0], list(names))}) for names in ("xy", "xz")
    ),
    "Arrow: metadata": lambda r: (pa.table({"a": [r]}).replace_schema_metadata({"n": "1"}), pa.table({"a": [r]})),
    "Polars: a value": lambda r: (pl.DataFrame({"a": [r], "n": [1]}), pl.DataFrame({"a": [r], "n": [2]})),
    "Arrow: a value": lambda r: (pa.table({"a": [r], "n": [1]}), pa.table({"a": [r], "n": [2]})),
    "Arrow: a scalar": lambda r: ([r, pa.scalar(1)], [r, pa.scalar(2)]),
    "series: the name": lambda r: (pd.Series([r]), pd.Series([r], name="a")),
    "index": lambda r: (pd.Index([1, 2]), pd.Index([1, 3])),
    "text that is a large whole number's": lambda r: ([1e40, hex(10**40)], [10**40]),
    "a number or a sequence of it": lambda r: (r, [r]),
    "a dict or a sequence of it": lambda r: ({"a": r}, [{"a": r}]),
    "None or a sequence of it": lambda r: (None, [None]),
    "a sequence, and a sequence of it": lambda r: ([r, 1], [[r, 1]]),
    "a NaN behind a number": lambda r: ([r], [r, math.nan]),
    "None and NaN": lambda r: ([r, math.nan], [r, None]),
    "a nested list": lambda r: ([r, 1, 1, 2], [r, [1], 2]),
    "the sign of zero alone": lambda r: (0.0, -0.0),
    "True and 1": lambda r: (1, True),
    "whole numbers beyond 2^53": lambda r: (2**53, 2**53 + 1),
    "whole numbers beyond 64 bits": lambda r: ([r, 10**40], [r, 10**40 + 1]),
    "the sign of infinity": lambda r: (-math.inf, math.inf),
}  # fmt: skip


def leaking(rng, data, kind):
    return DIFFERENT[kind](rng.random())[int(data[0])]


def responding(rng, data, kind):
    """Randomised response over the two outcomes: ln(0.6 / 0.4) = 0.405."""
    return DIFFERENT[kind](rng.random())[int((rng.random() < 0.6) == (data[0] == 1))]


def checked(function, claim, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowMechanism)
        given = {"neighbours": NEIGHBOURS, "alpha": 1e-6, "seed": 4, "search_runs": 256, "runs": 256, **more}
        return check(function, claim=claim, **given)


#: Those that only a new run with other rows tells apart.
MIXED = ("a number or a sequence of it", "a dict or a sequence of it", "None or a sequence of it")
#: One of each way that a difference shows in.
SOME = ("dict: a missing key", "date and time", "a NaN behind a number", *MIXED)


def some(kinds):
    others = sampled([kind for kind in kinds if kind not in SOME], 8)
    return [
        *(kind for kind in kinds if kind in SOME),
        *(pytest.param(kind, marks=pytest.mark.campaign) for kind in others),
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({5}, {np.int64(5)}), ({5}, {5.0}), ({True}, {np.bool_(True)}), ({"a"}, {np.str_("a")}),
        (np.array([1], "M8[ns]"), [np.datetime64(1, "ns")]), (np.array([1], "m8[s]"), [np.timedelta64(1, "s")]),
        (datetime.timedelta(hours=1), pd.Timedelta(hours=1)), ({"at": datetime.timedelta(0)}, {"at": pd.Timedelta(0)}),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_equal_is_one_outcome(one, other):
    assert row(one) == row(other)


@pytest.mark.usefixtures("asked_here")  # dozens of kinds are refuted
@pytest.mark.parametrize("kind", some(DIFFERENT))
def test_a_full_leak_is_refuted(kind):
    verdict = checked(leaking, 1.0, parameters={"kind": kind}, outcome=same)
    assert isinstance(verdict, Violation)
    written = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    assert event_from_json(written["witness"]["event"]).to_json() == verdict.witness.event.to_json()


@pytest.mark.parametrize("kind", some(DIFFERENT))
def test_randomised_response_is_not(kind):
    assert isinstance(checked(responding, 0.5, parameters={"kind": kind}, outcome=same), NotRefuted)


@pytest.mark.parametrize("kind", DIFFERENT)
def test_what_differs_has_rows_that_differ(kind):
    for noise in (0.25, 0.75):
        first, second = map(row, DIFFERENT[kind](noise))
        assert first != second
        assert [first, second] == [row(value) for value in DIFFERENT[kind](noise)]  # of objects of their own


def rows_of(function, n=8, **more):
    made = PythonMechanism(Signature.of(function, {}), **more)
    for _ in range(2):  # the second time all entries have columns
        rows = made.outcomes(np.array([0.5]), stream(1), n, least=64)
        made.grow()
    return made, rows


def row(value):
    """What stands at each node."""
    made = RowWriter(None, OutputTraits())
    made.write(value)
    return {(node.path, part): entry for node, part, entry in made.others}


keys = st.one_of(st.text(max_size=2), st.integers(-2, 2), st.tuples(st.booleans()))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=2), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3), st.frozensets(keys, max_size=3)
    ),
    max_leaves=6,
)


def written(value):
    """An obvious text of a value; equal for equal numbers, whatever their type."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{written(key)}:{written(held)}" for key, held in value.items()) + "}"
    if isinstance(value, frozenset):
        return "<" + ",".join(sorted(map(written, value))) + ">"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, float) and value.is_integer() and not (value == 0 and math.copysign(1, value) < 0):
        return repr(int(value))
    return repr(value)


@settings(max_examples=100)
@given(values, values, st.lists(values, max_size=2))
def test_rows_are_equal_where_the_outcomes_are_whatever_the_columns(a, b, seen):
    """What the columns lack is one code."""
    columns = Columns()
    for outcome in seen:
        traits = OutputTraits()
        RowWriter(columns, traits).write(outcome)
        columns = columns.extended(traits.entries.values())
    rows = [[None if x != x else x for x in RowWriter(columns, OutputTraits()).write(outcome)] for outcome in (a, b)]
    assert (rows[0] == rows[1]) == (row([0, a]) == row([0, b])) == (written(a) == written(b))


def test_a_set_has_one_row_in_any_order_and_a_dict_another_in_its_order_alone():
    assert row(dict.fromkeys("abc").keys()) == row({"c": 0, "b": 0, "a": 0}.keys()) == row({"a", "b", "c"})
    assert row({0.5, 0.25}) == row({0.25, 0.5})  # their hashes collide, so that the first stays first
    order = pd.Series([4, 6], index=["a", "b"])
    for pair in (({"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}), (order, order.sort_values(ascending=False))):
        first, second = map(row, pair)
        assert {path[0][0] for path, part in first if first[path, part] != second[path, part]} == {"order of"}


ENDLESS = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        *((value, "on run 0.*outcome=") for value in (object(), Fitted, [1, object()], array.array("d", [1.0]))),
        (ENDLESS, "on run 0.*holds itself"),
        ([0.0] * 20_000, "20000 values on a run from 0 on"),
        (Fitted([1.0, 2.0]), "on run 0.*outcome='coef_,intercept_'"),
        (np.complex64(1j), "on run 0: return its real part and its imaginary part"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "a DataFrame on run 0: several columns are called 'a'"),
    ],
)
def test_other_objects_are_no_outcomes(value, named):
    with pytest.raises(InvalidOutcome, match=named):
        rows_of(lambda rng, data: value)


@pytest.mark.parametrize(
    ("outcome", "values"), [("coef_", [1, 2]), ("coef_, intercept_", [1, 2, 3]), (("coef_", "intercept_"), [1, 2, 3])]
)
def test_attributes_are_outcomes(outcome, values):
    mechanism, rows = rows_of(lambda rng, data: Fitted([1.0, 2.0], 3.0), outcome=outcome)
    assert rows[0, 2 : 2 + len(values)].tolist() == values
    names = {3: "attribute 'coef_', value 2", 4: "attribute 'intercept_'"}
    assert {place: mechanism.places[place] for place in range(3, 2 + len(values))}.items() <= names.items()


@pytest.mark.parametrize(
    "made", [iter, reversed, lambda x: map(float, x), lambda x: (v for v in x), lambda x: {1: x[0]}.values()]
)
def test_what_can_be_read_but_once_or_is_a_view_is_to_be_a_list(made):
    with pytest.raises(InvalidOutcome, match=r"on run 0: return list\(…\) of it, or pass outcome="):
        rows_of(lambda rng, data: made([rng.random()]))
    assert rows_of(lambda rng, data: made([3.0]), outcome=list)[1][0, 0] == 3.0


def test_what_names_no_attribute_and_what_says_no_errors_is_refused():
    for outcome in ("", "coef_,", "a b", (), (1,), 3, b"coef_", "a:b"):
        with pytest.raises(InvalidParameter, match="must be a function of what the mechanism returns, or names"):
            checked(leaking, 1.0, outcome=outcome)
    for errors in ("ignore", None, 1):
        with pytest.raises(InvalidParameter, match="errors="):
            checked(leaking, 1.0, errors=errors)
    with pytest.raises(InvalidOutcome, match="outcome= raised AttributeError"):
        rows_of(lambda rng, data: Fitted([1.0]), outcome="weights_")
    with pytest.raises(InvalidOutcome, match=r"^outcome= returned <built-in .*> for 7, which <lambda> "):
        rows_of(lambda rng, data: 7, outcome="bit_length")


@pytest.mark.parametrize(
    ("output", "places"),
    [
        ({"a": 1.0}, {0: "outcome", 1: "key 'a'", 2: "order of keys"}),
        (table([1, 2]), {1: "number of rows", 2: "column 'a', row 1", 3: "column 'a', row 2"}),
        (table([1, 2], index=["x", "y"]), {3: "column 'a', index 'y'", 4: "order of columns"}),
        (pd.Series([1, 2], index=["x", "y"]), {1: "number of rows", 2: "index 'x'", 3: "index 'y'"}),
        ({"a", "b"}, {1: "number of elements"}),
        (np.array([[1.0, 2.0], [3.0, 4.0]]), {3: "row 1, number of values", 9: "row 2, value 2"}),
        (Point(1, 2), {1: "number of values", 2: "field 'x'", 3: "field 'y'"}),
        ([1, [2]], {2: "value 1", 4: "value 2, number of values", 5: "value 2, value 1"}),
        ([1.0, "a"], {}), (np.arange(3.0), {}), (None, {}),
    ],
)  # fmt: skip
def test_entries_are_named_for_people(output, places):
    named = rows_of(lambda rng, data: output)[0].places
    assert {place: named[place] for place in places} == places
    assert bool(named) == bool(places)


def raising(*probabilities):
    """A mechanism that raises an error with this probability on the data 0, and with that on the data 1."""

    def may_raise(rng, data):
        if rng.random() < probabilities[int(data[0])]:
            raise ValueError("no such record")
        return 1.0

    return may_raise


@pytest.mark.campaign
def test_exceptions_can_be_outcomes():
    """ln(0.9 / 0.1) = 2.197."""
    mechanism = raising(0.1, 0.9)
    verdict = checked(mechanism, 1.0, errors="outcome", runs=2_000)
    assert isinstance(verdict, Violation)
    assert verdict.witness.description in ("raises ValueError", "value 1", "output 1")
    assert replay(verdict.witness, mechanism, runs=2_000).refuted  # a witness says what an exception is
    assert isinstance(checked(mechanism, 2.2, errors="outcome", runs=1_000), NotRefuted)


class Panic(BaseException):
    """As Rust's, which Polars raises: no `Exception`."""


def raises(error):
    def act(*_):
        raise error

    return act


def roads(act):
    """A mechanism that does something before it returns a number, as each kind of mechanism that runs it here."""

    def plain(rng, data):
        return (act(), rng.random())[1]

    def people():
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.execute("CREATE TABLE people (a)")
        return connection

    yield plain, {}
    yield MechanismFactory(lambda: lambda rng, data: plain(rng, data)), {}
    yield sql(people, lambda connection: plain(np.random, None), table="people"), {}


@pytest.mark.parametrize("road", range(3))
def test_what_is_no_exception_is_the_mechanisms_too(road):
    function, how = [*roads(raises(Panic("no luck")))][road]
    data = [{"a": 1}]
    with pytest.raises(MechanismRaised, match=r"raised Panic \(no luck\) on run 0, on the input"):
        as_mechanism(function, data, **how)
    mechanism = as_mechanism(function, data, errors="outcome", **how)
    rows = mechanism.outcomes(data, stream(0), 3)
    assert rows[:, 0].tolist() == [exception_code("Panic")] * 3
    assert mechanism.label(rows[0, 0]) == "raises Panic"


@pytest.mark.parametrize("road", range(3))
@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), GeneratorExit(), RunsEnded(), asyncio.CancelledError(), pytest.skip.Exception("not here")],
    ids=lambda error: type(error).__name__,
)
def test_what_ends_more_than_a_run_is_no_outcome(road, error):
    function, how = [*roads(raises(error))][road]
    with pytest.raises(type(error)):
        as_mechanism(function, [{"a": 1}], errors="outcome", **how)


def test_a_summary_an_output_and_a_maker_that_panic_are_named():
    panics = raises(Panic("no luck"))

    class Unreadable(list):
        __iter__ = panics

    with pytest.raises(InvalidOutcome, match=r"outcome= raised Panic \(no luck\) for 1, which"):
        as_mechanism(lambda data: 1, [0], outcome=panics)
    with pytest.raises(InvalidOutcome, match=r"on run 0 that cannot be read: Panic: no luck"):
        as_mechanism(lambda data: 1, [0], outcome=lambda output: Unreadable([1]))
    with pytest.raises(InvalidParameter, match=r"make= raised Panic \(no luck\)"):
        MechanismFactory(panics)


def test_a_vectorised_mechanism_has_no_exceptions_as_outcomes():
    with pytest.raises(InvalidParameter, match="makes size runs a call: take the parameter 'size' away"):
        as_mechanism(lambda rng, data, size: rng.random(size), np.array([0]), errors="outcome")


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [
        (
            (0, 1),
            r"\(no such record\) on run 0, on the input \[1\]: .*; errors='outcome' tests .* a difference between",
        ),
        ((1, 1), r"\[0\]$"),
        ((0.5, 0.5), r"\[[01]\]; errors='outcome' counts exceptions as outcomes"),
    ],
)
def test_an_exception_on_one_side_is_reported_as_a_difference(probabilities, said):
    with pytest.raises(MechanismRaised, match=f"may_raise raised ValueError .*{said}") as caught:
        checked(raising(*probabilities), 1.0, outcome=same)
    assert isinstance(caught.value.__cause__, ValueError)


HANDED_OUT = {
    "list": ([], lambda out, n: out.__setitem__(slice(None), [float(n), 2.0])),
    "list in a list": ([[0.0]], lambda out, n: out[0].__setitem__(0, float(n))),
    "array": (np.zeros(2), lambda out, n: out.fill(n)),
    "dict": ({}, lambda out, n: out.update(a=float(n), b=2)),
    "array in a dict": ({"a": np.zeros(2)}, lambda out, n: out["a"].fill(n)),
    "DataFrame": (pd.DataFrame({"a": [0.5, 1.5]}), lambda out, n: out.__setitem__("a", [float(n), 2.0])),
    "Series": (pd.Series([0.5, 1.5]), lambda out, n: out.__setitem__(0, float(n))),
    "set": (set(), lambda out, n: (out.clear(), out.update({n, 1000}))),
    "dataclass": (Released(0, 1), lambda out, n: setattr(out, "total", float(n))),
}  # fmt: skip


def rows_of_runs(function, runs):
    mechanism = PythonMechanism(Signature.of(function, {}))
    return mechanism.outcomes([1.0], stream(0), runs), mechanism


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize("kind", HANDED_OUT)
def test_one_object_handed_out_again_and_again(kind, seeded):
    """An outcome is what it was when its run ended, in wider rows, too, than the first ones."""
    out, change = HANDED_OUT[kind]
    calls = itertools.count(1)

    def unseeded(data):
        change(out, next(calls))
        return out

    rows, _ = rows_of_runs((lambda data, rng: unseeded(data)) if seeded else unseeded, 40)
    assert len(np.unique(rows, axis=0)) == 40


@pytest.mark.parametrize(
    "late", ["late", None, (1.0, 2.0, 3.0), 2**60 + 1, np.float32(0.1), -0.0, Decimal("0.1")], ids=repr
)
def test_another_kind_in_the_middle_of_a_batch(late):
    """The outcomes before and after it stay what they are."""

    def mechanism(data, rng):
        noise = rng.random()
        return late if noise < 0.05 else noise

    rows, made = rows_of_runs(mechanism, 200)
    one = RowWriter(made.columns, OutputTraits()).write(late)
    for row, noise in zip(rows, stream(0).random(200), strict=True):
        expected = one if noise < 0.05 else [noise]
        assert row[~np.isnan(row)].tolist() == [entry for entry in expected if not math.isnan(entry)]


@st.composite
def batches(draw):
    """Outcomes as they come out of runs: of one kind or of several, bare, as sequences or as arrays."""
    value = st.one_of(draw(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=2)))
    least, most = draw(st.sampled_from([(0, 0), (1, 1), (2, 2), (3, 3), (0, 3)]))
    tuples = st.lists(value, min_size=least, max_size=most).map(tuple)
    return draw(st.lists(draw(st.sampled_from([value, tuples, arrays_of(most)])), min_size=1, max_size=6))


PLAIN = [
    st.floats() | st.sampled_from([-0.0, math.inf, math.nan, 1e308]),
    st.integers(-(2**70), 2**70) | st.sampled_from([2**53 - 1, 2**53, -(2**53), 2**63, 2**64, 10**309, -(10**400)]),
    st.integers(-5, 5), st.booleans(), st.text(max_size=3), st.none(), st.floats().map(np.float64),
    st.integers(-(2**63), 2**63 - 1).map(np.int64), st.booleans().map(np.bool_),
]  # fmt: skip


def arrays_of(length):
    """Arrays of this length, of any type of numbers."""
    dtypes = st.sampled_from(["?", "i1", "u1", "i8", "u8", "f2", "f4", "f8", ">f8", ">i4"])
    small = st.lists(st.integers(0, 1), min_size=length, max_size=length)
    thirds = small.map(lambda numbers: np.array(numbers, "g") / np.array(3, "g"))
    large = st.integers(2**53 - 1, 2**64 - 1).map(lambda number: np.full(length, number, np.uint64))
    return st.builds(np.array, small, dtypes) | thirds | large


@pytest.mark.campaign
@settings(max_examples=200, deadline=None)
@given(batches())
def test_rows_of_many_outcomes_are_those_of_each(outcomes):
    """One array operation, or none: never rows, or texts behind them, that are not those of outcome by outcome."""
    together, alone = RowWriter(None, OutputTraits()), RowWriter(None, OutputTraits())
    rows = together.rows(outcomes)
    if rows is None:
        return
    one_by_one = [alone.write(outcome) for outcome in outcomes]
    assert rows.tolist() == one_by_one
    assert np.array_equal(np.signbit(rows), np.signbit(one_by_one))
    assert together.traits == alone.traits
    assert together.columns == alone.columns


@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
@pytest.mark.parametrize("element", [float, lambda value: ("a", value)], ids=["numbers", "tuples"])
def test_sets_of_drawn_elements_are_compared_run_by_run(element):
    """An entry for each drawn number would be present in one run alone, and look like a repetition."""

    def noisy(data, rng, scale):
        return {element(data[0] + scale * rng.laplace()), element(100 + rng.laplace())}

    settings = {"epsilon": 1.0, "neighbours": NEIGHBOURS, "seed": 1, "workers": 1, "runs": 3_000, "search_runs": 1_000}
    assert not check(noisy, parameters={"scale": 1.0}, **settings).refuted
    assert check(noisy, parameters={"scale": 0.1}, **settings).refuted
