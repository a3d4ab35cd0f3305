"""Two inputs never look alike where they differ, and what differs is said first, with lengths."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpwitness.neighbours.difference import both, difference
from dpwitness.values import value_to_json

PEOPLE = [{"age": 30 + k % 7, "name": "x"} for k in range(100)]
XY = np.arange(600.0).reshape(300, 2), np.array([0, 1] * 150)
FRAME = pd.DataFrame({"age": range(40), "name": "x"})
LABELLED = FRAME.set_axis([f"c{k}" for k in range(40)])
CATEGORIES = pd.Series(pd.Categorical(["x", "y"], ["x", "y"]))


def with_attributes(frame, **attributes):
    frame = frame.copy()
    frame.attrs = attributes
    return frame


def without(items, place):
    return [*items[:place], *items[place + 1 :]]


@pytest.mark.parametrize(
    ("data", "neighbour", "said"),
    [
        (PEOPLE, without(PEOPLE, 56), "D without entry 57: {'age': 30, 'name': 'x'}"),
        (PEOPLE, [*PEOPLE[:2], *PEOPLE[3:60], {"age": 99, "name": "x"}, *PEOPLE[61:]],
         "D without entry 3: {'age': 32, 'name': 'x'}; "
         "but for entry 61: {'age': 34, 'name': 'x'} → {'age': 99, 'name': 'x'}"),
        (np.zeros(100), np.zeros(99), "D without entry 100: 0.0"),
        (np.arange(200), np.arange(200.0), "type float64, where D has type int64"),
        (LABELLED, LABELLED.drop("c3"), "D without entry 4: 'c3': {'age': 3, 'name': 'x'}"),
    ],
)  # fmt: skip
def test_what_differs_is_said(data, neighbour, said):
    first, second = both(data, neighbour)
    assert second == said
    assert first != said


@pytest.mark.parametrize(
    ("data", "neighbour"),
    [
        (1, 1.0), (0.0, -0.0), (None, math.nan), ((1, 2), [1, 2]), ([1, 2], np.array([1, 2])), ({1: 2}, {1.0: 2}),
        ({1, 2}, {1, 2, 3}), (datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1)), (object(), object()),
        (pd.Series([1, 2]), pd.Series([1.0, 2.0])), (pd.Series([1, 2]), pd.Series([1, 2], index=[0, 5])),
        (pd.Series(["a"], dtype="category"), pd.Series(["a"], dtype=pd.CategoricalDtype(["a", "b"]))),
        (CATEGORIES, CATEGORIES.cat.set_categories(["y", "x"])), (FRAME, with_attributes(FRAME, n=1)),
        (CATEGORIES.to_frame(), CATEGORIES.cat.set_categories(["y", "x"]).to_frame()),
        (FRAME[:2].set_axis(CATEGORIES), FRAME[:2].set_axis(CATEGORIES.cat.set_categories(["y", "x"]))),
        (XY, (XY[0].astype(int), XY[1])), (XY, (XY[0], XY[1].tolist())), (FRAME, FRAME[["name", "age"]]),
        (np.zeros((4, 5)), np.zeros((5, 4))), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (b"x" * 80, b"x" * 79),
    ],
)  # fmt: skip
def test_inputs_that_differ_look_different(data, neighbour):
    for one, other in ((data, neighbour), (neighbour, data)):
        first, second = both(one, other)
        assert first != second
        assert " at 0x" not in first + second
        assert difference(one, other) != "the same as D"
        assert difference(one, one) == "the same as D"


values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.floats(), st.integers(-3, 3), st.text("ab", max_size=90), st.dates(),
        st.lists(st.integers(0, 1), min_size=10, max_size=20).map(np.array),
        st.lists(st.floats(0, 1), max_size=20).map(lambda x: np.array(x, float)),
        st.lists(st.sampled_from([0.5, 1.0]), max_size=3).map(lambda x: pd.DataFrame({"a": x}, dtype=float)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=20), st.dictionaries(st.sampled_from("abc"), inner), st.tuples(inner, inner)
    ),
    max_leaves=20,
)  # fmt: skip


@pytest.mark.campaign
@settings(max_examples=60)
@given(values, values)
def test_no_two_values_that_differ_look_alike(data, neighbour):
    first, second = both(data, neighbour)
    if repr(value_to_json(data)) != repr(value_to_json(neighbour)):
        assert first != second
        assert difference(data, neighbour) != "the same as D"
