"""Inputs of any kind: handed over as they were given, told apart, written down and read back."""

import json
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dpwitness as dpw
from dpwitness.errors import InvalidNeighbours
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.resolve import Requirements, as_mechanism
from dpwitness.neighbours import as_input, copier, input_from_json, input_key, input_to_json, pairs
from dpwitness.values import unreadable_in, value_from_json, value_to_json
from running import stream

texts = st.text(max_size=5) | st.sampled_from(["inf", "-inf", "nan"])
numpy_scalars = st.sampled_from(["bool", "int8", "uint64", "float16", "float32", "float64"]).flatmap(
    lambda name: arrays.from_dtype(np.dtype(name))
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=5) | numpy_scalars
hashables = st.recursive(
    scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4
)
frames = st.lists(st.tuples(st.floats(), st.integers(-5, 5), st.text(max_size=3)), max_size=4).map(
    lambda rows: pd.DataFrame(rows, columns=["x", "n", "name"]).astype({"x": "float64", "n": "int64"})
)
values = st.recursive(
    hashables | arrays.arrays(st.sampled_from(["float64", "int64", "bool", "float32", "uint8"]), (2, 3)) | frames,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(hashables, inner, max_size=3)
        | st.tuples(inner)
        | st.sets(hashables, max_size=3)
    ),
    max_leaves=6,
)


def kinds(value):
    """The types of a value and of all that it holds."""
    if isinstance(value, dict):
        return dict, [(kinds(name), kinds(item)) for name, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [kinds(item) for item in value]
    if isinstance(value, np.ndarray):
        return np.ndarray, value.dtype, value.shape
    if isinstance(value, pd.DataFrame):
        return pd.DataFrame, list(value.columns), [str(dtype) for dtype in value.dtypes], value.index.tolist()
    return type(value)


@settings(max_examples=50)
@given(values)
def test_an_input_comes_back_from_json_as_it_was(value):
    data = as_input(value)
    again = input_from_json(json.loads(json.dumps(input_to_json(data), allow_nan=False)))
    assert kinds(again) == kinds(data)
    assert input_key(again) == input_key(data)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1, 2], [1.0, 2.0]),
        ([1], [True]),
        ([1], (1,)),
        ([None], [float("nan")]),
        ("1", 1),
        (b"a", "a"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),  # a mechanism sees the order
        ([2**53], [2**53 + 1]),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1.0]})),
        (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 2]}, index=[1, 0])),
        ([[1], [2]], [[1, 2]]),
        ([], [[]]),
        (np.zeros(4), np.zeros((2, 2))),
    ],
)
def test_different_inputs_are_told_apart(first, second):
    assert input_key(as_input(first)) != input_key(as_input(second))
    (pair,) = pairs((first, second)).given
    assert pairs((first, second)).contains(pair)
    assert pairs((first, second)).contains(pair.swapped())
    assert not pairs(([7], [8])).contains(pair)


def test_a_list_of_numbers_is_the_same_as_the_array_and_so_is_nan():
    assert input_key(as_input([[1, 2], [3, 4]])) == input_key(np.array([[1, 2], [3, 4]]))
    assert input_key(as_input([float("nan"), -0.0])) == input_key(np.array([-np.nan, 0.0]))


def column(kind="int64", values=(1,), **more):
    """A table of one column as a file has it."""
    return {"dataframe": [["a", kind, list(values)]], "index": [0], **more}


def array(values, dtype="float64", **more):
    return {"array": values, "dtype": dtype, **more}


def categories(*names, **more):
    return {"categories": list(names), "dtype": "str", "ordered": False, **more}


def labelled(*labels, dtype="str"):
    return {"columns": {"labels": list(labels), "dtype": dtype, "name": 1}}


def counted(*steps):
    return {"index": {"range": list(steps), "name": None}}


#: By the type, what it does not have.
SCALARS = {
    "int8": (300, True, "1", None, {"float": "nan"}, {"float": "inf"}, [1]), "bool": (1,), "float64": (1, None),
    "float32": (0.1,), "float16": (1e99,), "object": (1,), ">i4": (1,),
}  # fmt: skip


@pytest.mark.parametrize(
    "damaged",
    [
        {"set": [[1]]}, {"items": [[1]]}, {"items": [[[1], 2]]}, {"bytes": "?"}, {"series": [1], "dtype": "int8"},
        {"list": 3}, {"set": [1], "list": [2]}, array(["a"], ">U4"),
        {"dataframe": [[array([]), "float64", [1.0]]], **counted(0, 1, 1)},
        *({"scalar": scalar, "dtype": dtype} for dtype, scalars in SCALARS.items() for scalar in scalars),
        {"dataframe": [], "index": [0], "more": 1}, {"dataframe": [], **counted(0, 2**70, 1)},
        column(values=[1, "x"], index=[0, 1]), column("datetime64[D]"), column("datetime64[ns]", [1.5]),
        column("datetime64[ns, ../../etc/passwd]"),
        column(**counted(0, 2, 1)), column(categories("a"), [1]), column(categories("a", "a"), [0]),
        column({"categories": ["a"]}, [0]), column(**labelled("a", "b")), column(**labelled(["a"], dtype="object")),
        array([1.0], order="X"), array([1e99], "int64"), array([10**400]), array([1], "><i8"),
        *(array([], "int64", shape=shape) for shape in ([2, 3], [0, -1], [0, 1.0], [0, 2**40], ["0"])),
    ],
)  # fmt: skip
def test_damaged_inputs_are_refused_in_one_line(damaged):
    with pytest.raises(InvalidNeighbours) as caught:
        input_from_json(damaged)
    assert "\n" not in str(caught.value)


def test_objects_that_no_file_holds_say_so():
    holds_itself = []
    holds_itself.append(holds_itself)
    for value in (
        len, {len}, 1j, {1: len}, {1j: 2}, np.array(["x"]), holds_itself, "\ud800", {"\ud800": 1},
        [date(2020, 1, 1), Decimal(1)], pd.DataFrame({"a": [date(2020, 1, 1)]}),
    ):  # fmt: skip
        written = json.loads(json.dumps(value_to_json(value), allow_nan=False))
        again = value_from_json(written)
        assert unreadable_in(again)
        assert value_to_json(again) == written
        json.dumps(written, ensure_ascii=False).encode()
    assert repr(value_from_json(value_to_json(Decimal(1)))) == "Decimal('1')"


def kind_of(rng, data):
    return f"{type(data).__name__} {data!r}"


def dtype_of(rng, data):
    return f"{type(data).__name__} {data.dtype}"


def interpreted(function, data, **settings):
    return as_mechanism(function, as_input(data), requirements=Requirements(interpreted=True), **settings)


def outcome(mechanism, data):
    """What one run on this input returns: a number, or the label of a text."""
    entry = mechanism.outcomes(as_input(data), stream(0), 1)[0, 0]
    return mechanism.label(entry) or entry


@pytest.mark.parametrize(
    "data", [[1, 2], [0.5], (1, 2), "text", b"bytes", None, {"a": [1]}, {1, 2}, [[1], [2, 3]], 5, 2**80]
)
def test_a_mechanism_gets_its_input_exactly_as_it_was_given(data):
    assert outcome(interpreted(kind_of, data), data) == f"{type(data).__name__} {data!r}"


def test_machine_code_is_not_used_where_it_gives_another_answer_than_python_on_what_was_given():
    def doubled(rng, data):
        return len(data * 2)  # a list is repeated, an array is not

    with pytest.warns(dpw.CompiledDiffers):
        mechanism = as_mechanism(doubled, as_input([1.0, 2.0]))
    assert outcome(mechanism, [1.0, 2.0]) == 4


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1.0, 2.0], [1.0, 2.0, 5.0]),
        pytest.param(np.zeros((2, 2)), np.array([[0.0], [0.0], [5.0]]) * [0, 1], marks=pytest.mark.campaign),
    ],
)
def test_a_function_of_arrays_gets_lists_of_numbers_as_arrays_and_is_compiled(first, second):
    def total(rng, data):
        return data.sum() + rng.laplace(0.0, 1.0)

    mechanism = as_mechanism(total, as_input(first), neighbour=as_input(second))
    assert isinstance(mechanism, CompiledMechanism)
    verdict = dpw.check(mechanism, claim=1.0, neighbours=[(first, second)], seed=1, runs=200_000)
    assert isinstance(verdict, dpw.Violation)  # one record more moves the sum by 5 noise scales


@pytest.mark.parametrize("pair", [([], [1, 2]), ([1, 2], [])])
def test_lists_are_handed_over_as_arrays_on_both_sides_or_on_neither(pair):
    """A function that returns before it comes to what it cannot do with a list is tried on the other input, too."""

    def early(rng, data):
        return 0.0 if len(data) == 0 else data.sum() + rng.laplace(0.0, 1.0)

    assert interpreted(early, pair[0], neighbour=as_input(pair[1])).conversion.lists_as_arrays
    mechanism = interpreted(dtype_of, pair[0], neighbour=as_input(pair[1]))
    for side in (*pair, [5]):
        assert outcome(mechanism, side) == "ndarray int64"
    with pytest.raises(InvalidNeighbours, match=r"input \[1, None\] is a list that no array of numbers holds"):
        outcome(mechanism, [1, None])


def test_lists_of_whole_and_of_other_numbers_become_arrays_of_one_type():
    """In an array of whole numbers a function would cut its noise off, on that side alone."""
    mechanism = interpreted(dtype_of, [1, 2, 3], neighbour=as_input([1, 2.5, 3]))
    assert outcome(mechanism, [1, 2, 3]) == outcome(mechanism, [1, 2.5, 3]) == "ndarray float64"


@pytest.mark.parametrize("errors", ["raise", "outcome"])
def test_a_list_is_a_list_where_the_function_takes_it(errors):
    lists = interpreted(kind_of, [1], neighbour=as_input([]), errors=errors)
    assert not lists.conversion.lists_as_arrays
    assert interpreted(dtype_of, [1], errors=errors).conversion.lists_as_arrays


@pytest.mark.parametrize("data", [np.ones((3, 2)), np.arange(6).reshape(3, 2), np.ones((3, 2), "f4")])
def test_arrays_keep_their_order_in_memory(data):
    for given_as in (data, np.asfortranarray(data)):
        held = as_input(given_as)
        for found in (held, copier(held)(), copier([held])()[0], copier({"a": held})()["a"]):
            assert found.flags.f_contiguous == given_as.flags.f_contiguous
            assert found.dtype == given_as.dtype


def test_what_earlier_files_hold_is_read():
    index = {"labels": [0, 86_400], "dtype": "datetime64[s]", "name": None, "freq": "D"}
    frame = input_from_json({"dataframe": [["a", "int64", [1, 2]]], "index": index, "attrs": {"dict": {"n": 1}}})
    assert (frame.index.freq, frame.attrs, frame["a"].tolist()) == (None, {}, [1, 2])
    again = value_from_json({"array": [[1, 2], [3, 4]], "dtype": ">i4", "order": "F"})
    assert (again.dtype, again.flags.f_contiguous, again.tolist()) == (np.dtype(">i4"), True, [[1, 2], [3, 4]])


@pytest.mark.parametrize("depth", [0, 30_000])
def test_what_holds_itself_or_is_nested_deep_is_refused(depth):
    held = [1]
    held.append(held)
    if depth:
        held = []
        for _ in range(depth):
            held = [held]
    few = {"claim": 1.0, "neighbours": [([0.0], [1.0])], "runs": 100, "search_runs": 100}
    for refused in (
        lambda: dpw.pairs((held, [1])), lambda: dpw.like([held]), lambda: dpw.records(held),
        lambda: dpw.queries(2).take(held), lambda: input_from_json({"list": [held]}),
        lambda: dpw.check(kind_of, parameters={"x": held}, **few), lambda: dpw.check(lambda rng, data: held, **few),
    ):  # fmt: skip
        with pytest.raises(dpw.DPWitnessError) as caught:
            refused()
        assert "\n" not in str(caught.value)
    assert unreadable_in(value_from_json(value_to_json(held)))
