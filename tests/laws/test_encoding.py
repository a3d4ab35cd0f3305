"""Whatever distinguishes two outcomes distinguishes their rows: a mechanism that leaks through it is refuted."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwitness import NotRefuted, Violation, check, pairs
from dpwitness.events.encoding import (
    CODE_STEP,
    FALSE,
    NEGATIVE_ZERO,
    NONE,
    NOT_A_NUMBER,
    TEXT,
    TRUE,
    array_rows,
    entries,
    entry_from_json,
    entry_to_json,
    text_code,
)
from dpwitness.mechanisms.columns import OutputTraits
from dpwitness.mechanisms.outcomes import FlatRow


def infinite_response(rng, data):
    return np.inf if (rng.random() < 0.7) == (data[0] == 1) else 0.0


@pytest.mark.parametrize("seed", range(2))
def test_compiled_randomised_response_over_infinity(seed):
    """ln(0.7 / 0.3) = 0.847."""
    settings = {"neighbours": pairs(([0], [1])), "seed": seed, "search_runs": 20_000, "runs": 100_000}
    assert isinstance(check(infinite_response, claim=0.85, **settings), NotRefuted)
    assert isinstance(check(infinite_response, claim=0.6, **settings), Violation)


scalars = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(), st.integers(-(2**66), 2**66), st.sampled_from([0, 1, -0.0])
)


def alike(a, b):
    """Whether two outcomes are one to a user: numbers of one value are, whatever their type."""
    if isinstance(a, list) or isinstance(b, list):
        return isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and all(map(alike, a, b))
    if a is None or b is None or isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b and math.copysign(1, a) == math.copysign(1, b)


def by_position(value):
    return FlatRow(OutputTraits()).write(value)


NESTED_LISTS = st.lists(st.lists(scalars, max_size=3), max_size=3)


@pytest.mark.parametrize("lists", [st.lists(scalars, max_size=4), NESTED_LISTS], ids=["flat", "nested"])
@given(st.data())
def test_lists_that_differ_have_rows_that_differ(lists, data):
    a, b = data.draw(lists), data.draw(lists)
    assert (by_position(a) == by_position(b)) == alike(a, b)


@given(st.one_of(st.lists(st.booleans()), st.lists(st.floats()), st.lists(st.integers(-(2**63), 2**63 - 1))))
def test_arrays_have_the_rows_of_their_entries(values):
    array = np.array(values).reshape(-1, 1)
    made = array_rows(array)
    one_by_one = [entries(value) for value in array[:, 0].tolist()]
    if made is None:
        assert any(len(entry) == 2 for entry in one_by_one)
    else:
        assert made.tolist() == one_by_one


@given(st.one_of(st.sampled_from([TRUE, FALSE, NONE, NOT_A_NUMBER, NEGATIVE_ZERO, math.inf, -math.inf]), st.floats()))
def test_an_entry_survives_json(entry):
    again = entry_from_json(json.loads(json.dumps(entry_to_json(entry), allow_nan=False)))
    assert again == entry or (math.isnan(again) and math.isnan(entry))
    for value in ("infinity", "yes", [], {}, math.nan, math.inf):
        with pytest.raises(ValueError, match="must be"):
            entry_from_json(value)


def test_texts_have_one_number_in_every_process():
    assert text_code("yes") == TEXT - 65_527_842_639_518 * CODE_STEP
    assert text_code("\ud800") != text_code("\ud801")
    assert by_position("yes") == [text_code("yes")]
