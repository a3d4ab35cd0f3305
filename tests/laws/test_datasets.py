"""Datasets of records: what is proposed is adjacent, and adjacent is what the definition says."""

import copy
import json
import math
from decimal import Decimal
from itertools import islice, product

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dpwitness import InvalidNeighbours, categories, flags, integers, like, numbers, pairs, records, text
from dpwitness.codec import schema_of
from dpwitness.neighbours import (
    Pair,
    input_from_json,
    input_to_json,
    relation_from_json,
    relation_to_json,
    same_relation,
)
from dpwitness.neighbours.domains import NOT_IN_DOMAIN
from dpwitness.neighbours.fields import DescribedFields
from dpwitness.neighbours.inputs import exact_key

TWO_LEVELS = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])

booleans = st.booleans()
leaves = st.one_of(
    st.builds(
        numbers,
        st.sampled_from([0.0, -1.5, -1e300]),
        st.sampled_from([0.5, 5, 1e300]),
        clipped=booleans,
        missing=booleans,
    ),
    st.builds(integers, st.integers(-5, 0), st.integers(1, 2**40), clipped=booleans, missing=booleans),
    st.builds(categories, st.just("a"), st.just("b"), st.just("c"), other=booleans, missing=booleans),
    st.builds(categories, st.just(3), st.just(7), other=booleans),
    st.builds(flags),
    st.builds(text, st.sampled_from([1, 3, 40]), missing=booleans),
)
domains = st.one_of(
    leaves,
    st.lists(leaves, min_size=1, max_size=3).map(tuple),
    st.dictionaries(st.sampled_from(["age", "sex", "x"]), leaves, min_size=1, max_size=3),
    st.tuples(st.lists(leaves, min_size=1, max_size=2).map(tuple), leaves),
    st.lists(st.one_of(leaves, st.tuples(leaves)), min_size=1, max_size=2),
)
adjacencies = st.sampled_from(["add-remove", "replace-one", None])
sizes = st.sampled_from([None, 1, 4, (0, 3), (2, 2), (1, 12)])


@st.composite
def relations(draw):
    """A relation of any domain, in any form that such records may have."""
    domain, adjacency, size = draw(domains), draw(adjacencies), draw(sizes)
    made = records(domain, adjacency=adjacency, size=size)
    forms = [made.form]
    for form in ("list", "array", "dataframe", "columns", "xy", "record"):
        try:
            records(domain, adjacency=adjacency, size=size, form=form)
        except InvalidNeighbours:
            continue
        forms.append(form)
    return records(domain, adjacency=adjacency, size=size, form=draw(st.sampled_from(forms)))


def small(pairs, most=6):
    """The first few that are cheap to look at."""
    return list(islice(pairs, most))


@pytest.mark.campaign
@settings(max_examples=60, deadline=None)
@given(relations(), st.integers(0, 5))
def test_all_that_is_proposed_is_adjacent(relation, which):
    found = small(relation.candidates(), 12)
    assert found or (relation.size == (2, 2) and relation.adjacency == "add-remove")
    pairs = list(found)
    if found:
        chosen = found[which % len(found)]
        pairs += small(relation.variations(chosen), 20) + small(relation.smaller(chosen), 20)
        pairs += small(relation.unusual(), 20)
    for pair in pairs:
        assert relation.contains(pair)
        assert relation.contains(pair.swapped())
        assert not relation.contains(Pair(pair.data, pair.data))


@settings(max_examples=30, deadline=None)
@given(relations())
def test_pairs_come_back_from_files(relation):
    for pair in small(relation.candidates(), 3):
        sides = [input_from_json(json.loads(json.dumps(input_to_json(side)))) for side in (pair.data, pair.neighbour)]
        assert relation.contains(Pair(*sides))


def test_data_are_taken_in_any_form():
    relation = records((numbers(0, 9), integers(0, 9)))
    taken = relation.take([(0.5, 1), (2, 3)])
    assert taken.tolist() == [[0.5, 1.0], [2.0, 3.0]]
    assert not taken.flags.writeable
    with pytest.raises(InvalidNeighbours, match=r"data=.* must be a dataset of records"):
        relation.take([(0.5, 11)])


@settings(max_examples=60, deadline=None)
@given(relations())
def test_a_relation_of_records_comes_back_from_json(relation):
    again = relation_from_json(json.loads(json.dumps(relation_to_json(relation), allow_nan=False)))
    assert again == relation
    assert same_relation(again, relation)
    assert str(again) == str(relation)


@pytest.mark.campaign
@settings(max_examples=40, deadline=None)
@given(relations(), st.lists(st.integers(0, 30), max_size=12), st.integers(0, 30))
def test_shrinking_ends_and_stays_in_the_relation(relation, choices, first):
    found = small(relation.candidates(), 20)
    if not found:
        return
    pair = found[first % len(found)]
    for choice in choices:
        steps = small(relation.smaller(pair), 20)
        assert all(map(relation.contains, steps))
        if not steps:
            break
        pair = steps[choice % len(steps)]


SMALL = st.lists(st.integers(-1, 3), max_size=4)


def adjacent_by_definition(a, b, adjacency, size):
    """The definitions, by trying every place."""
    sizes = len(a), len(b)
    fits = size is None or (size in sizes if isinstance(size, int) else size[0] <= min(sizes) <= max(sizes) <= size[1])
    allowed = fits and all(0 <= x <= 2 for x in (*a, *b))
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    added = any(long[:k] + long[k + 1 :] == short for k in range(len(long)))
    replaced = len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) == 1
    found = {"add-remove": added, "replace-one": replaced, None: added or replaced}
    return allowed and found[adjacency]


@settings(max_examples=200, deadline=None)
@given(SMALL, SMALL, adjacencies, st.sampled_from([None, 2]), st.sampled_from(["list", "array"]))
def test_contains_is_the_definition(a, b, adjacency, size, form):
    relation = records(integers(0, 2), adjacency=adjacency, size=size, form=form)
    data, neighbour = (a, b) if form == "list" else (np.array(a, np.int64), np.array(b, np.int64))
    assert relation.contains(Pair(data, neighbour)) == adjacent_by_definition(a, b, adjacency, size)


@pytest.mark.parametrize("size", [None, 2, (1, 2)], ids=str)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one", None])
def test_contains_is_the_definition_of_all_short_lists(adjacency, size):
    relation = records(integers(0, 2), adjacency=adjacency, size=size, form="list")
    lists = [list(one) for n in range(4) for one in product([0, 1], repeat=n)]
    for a, b in product(lists, lists):
        assert relation.contains(Pair(a, b)) == adjacent_by_definition(a, b, adjacency, size), (a, b)


def test_a_fixed_number_of_records_is_that_of_the_smaller_or_of_the_larger_dataset():
    sizes = {tuple(sorted(map(len, pair.sides))) for pair in records(integers(0, 9), size=3, form="list").candidates()}
    assert sizes == {(2, 3), (3, 4)}


def test_given_data_are_all_of_one_side():
    relation, pair = records(integers(0, 9), form="list"), Pair([1, 2], [1, 2, 3])
    found = [relation.contains(pair, data) for data in ([1, 2], [1, 2, 3], [1], [1, 2, 3, 4], [2, 1], [])]
    assert found == [True, True, False, False, False, False]


def test_given_data_lose_a_record_and_get_one():
    relation = records(integers(0, 9), form="list")
    assert {len(pair.neighbour) + len(pair.data) for pair in relation.candidates([3, 5, 7])} == {5, 7}


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (numbers(0, 1), [0.0, 1.0], [-1e-9, 1.5, math.nan, math.inf, None]),
        (numbers(0, 1, clipped=True), [-5.0, 0.0, 1.0, 9.0], [math.inf, math.nan]),
        (integers(0, 3), [0, 3], [-1, 4, 0.5]),
        (text(2), ["", "ab"], ["abc", 1]),
        (categories("a", "b"), ["a", "b"], ["c", 1]),
        (categories(1.5, 2.5), [1.5, 2.5], [1, 10**400, -(10**400), math.inf]),
    ],
    ids=str,
)
def test_the_ends_of_a_domain_belong_to_it(domain, inside, outside):
    """Value by value, and in a column of its own or with others."""
    for value in inside:
        assert domain.read(value) == value
        assert list(domain.read_all([value, *inside])) == [value, *inside]
    for value in outside:
        assert domain.read(value) is NOT_IN_DOMAIN
        for column in ([value], [inside[0], value], [value, inside[0]]):
            assert domain.read_all(column) is None


@pytest.mark.parametrize(
    "domain", [categories(0, 2**63), categories(2**63 - 1, 5, other=True), categories(0, 2**70)], ids=str
)
@pytest.mark.parametrize("form", [None, "list", "columns", "dataframe"])
def test_categories_that_64_bits_do_not_hold_are_objects(domain, form):
    relation = records({"a": domain}, form=form)
    pairs = list(relation.candidates())
    assert pairs
    assert all(map(relation.contains, pairs))


def test_values_outside_of_a_range_are_tried_where_they_are_clipped_and_only_there():
    def outside(**settings):
        return any(not 0 <= value <= 1 for value in numbers(0, 1, **settings).samples())

    assert outside(clipped=True)
    assert not outside()


def test_examples_with_no_missing_value_have_a_domain_without():
    for examples, missing in (([1, 2, 3], False), ([1, None, 3], True), (["a", "b"], False), ([0.5, 1.5], False)):
        assert like(examples).fields.domains[0].holds(None) == missing


def test_a_record_keeps_its_type_and_its_sign():
    relation = records(numbers(0, 9), form="list", adjacency=None)
    assert not relation.contains(Pair([5], [5.0, 1.0]))
    assert not relation.contains(Pair([0.0], [-0.0, 1.0]))
    assert relation.contains(Pair([5.0], [5.0, 1.0]))


def test_a_row_that_is_replaced_keeps_its_label():
    frame = pd.DataFrame({"x": [1, 2]}, ["a", "b"])
    other = frame.assign(x=[1, 3])
    relation = records({"x": integers(0, 9)}, adjacency="replace-one", base=frame)
    assert relation.contains(Pair(frame, other))
    assert not relation.contains(Pair(frame, other.set_axis(["a", "c"])))
    assert not relation.contains(Pair(frame, other.set_axis(["c", "b"])))


#: Datasets of these whole numbers, in each form, and the number of records of one.
SIZED = {
    "list": (list, len),
    "array": (lambda xs: np.array(xs, np.int64), len),
    "columns": (lambda xs: {"x": np.array(xs, np.int64)}, lambda data: len(data["x"])),
    "dataframe": (lambda xs: pd.DataFrame({"x": np.array(xs, np.int64)}), len),
    "polars": (lambda xs: polars.DataFrame({"x": xs}, {"x": polars.Int64}), len),
    "arrow": (lambda xs: pyarrow.table({"x": pyarrow.array(xs, pyarrow.int64())}), len),
    "xy": (lambda xs: (np.array(xs, np.int64).reshape(-1, 1), np.zeros(len(xs), bool)), lambda data: len(data[1])),
}


def of_sizes(form, **settings):
    """Datasets of 1 to 10 whole numbers."""
    x = integers(0, 9)
    domain = {"list": x, "array": x, "xy": ((x,), flags())}.get(form, {"x": x})
    return records(domain, form=form, size=(1, 10), **settings)


@pytest.mark.parametrize("form", SIZED)
def test_both_datasets_of_a_pair_have_an_allowed_size(form):
    """A pair of 0 and 1 records, or of 10 and 11, would convict a function that keeps its claim for 1 to 10."""
    make, _ = SIZED[form]
    relation = of_sizes(form)
    for fewer, allowed in ((0, False), (1, True), (9, True), (10, False)):
        numbers_of = [k % 9 for k in range(fewer)]
        pair = Pair(make(numbers_of), make([*numbers_of, 9]))
        assert relation.contains(pair) == relation.contains(pair.swapped()) == allowed
    for same, allowed in ((0, False), (1, True), (10, True), (11, False)):
        numbers_of = [k % 9 for k in range(same)]
        replaced = [*numbers_of[:-1], 9] if same else []
        assert of_sizes(form, adjacency="replace-one").contains(Pair(make(numbers_of), make(replaced))) == allowed


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("form", SIZED)
def test_no_pair_of_other_sizes_is_proposed(form, adjacency):
    make, length = SIZED[form]
    found = []
    for base in (None, make([4]), make([*range(10)])):
        relation = of_sizes(form, adjacency=adjacency, base=base)
        proposed = [*relation.candidates(), *relation.unusual()]
        if base is not None:
            proposed += relation.candidates(base)
        ends = [pair for pair in proposed if {1, 10} & set(map(length, pair.sides))]
        assert {1, 10} <= {length(side) for pair in ends for side in pair.sides}
        for pair in (*ends[:3], *ends[-3:]):
            proposed += [*relation.variations(pair), *relation.smaller(pair)]
        found += proposed
    assert {length(side) for pair in found for side in pair.sides} == {*range(1, 11)}
    assert {abs(length(pair.data) - length(pair.neighbour)) for pair in found} == {int(adjacency == "add-remove")}


@pytest.mark.parametrize(
    ("data", "neighbour"),
    [
        ([1.0, 2.0], [1.0, 2.0]),  # equal
        ([1.0, 2.0], [3.0, 4.0]),  # two replaced
        ([1.0], [1.0, 2.0, 3.0]),  # two added
        ([1.0, 2.0], [2.0, 1.0, 3.0]),  # the order of the others changed
        ([1.0, 2.0], [2.0, 1.0]),  # another order of the same records is another dataset
        ([1.0], [1.0, 10.5]),  # outside of the domain
        ([1.0], [1.0, math.nan]),
        ([1.0], [1.0, "2"]),
        ([1.0], [1.0, True]),
        ((1.0,), (1.0, 2.0)),  # another form
    ],
)
def test_what_is_not_adjacent(data, neighbour):
    relation = records(numbers(0, 10), adjacency=None, form="list")
    assert not relation.contains(Pair(data, neighbour))
    assert relation.contains(Pair([1.0, 2.0], [1.0, 7.0, 2.0]))


def test_a_missing_number_is_a_record_and_equal_to_itself():
    relation = records(numbers(0, 10, missing=True))
    assert relation.contains(Pair(np.array([math.nan]), np.array([math.nan, 1.0])))
    assert not relation.contains(Pair(np.array([math.nan]), np.array([math.nan])))
    assert records(integers(0, 9, missing=True), form="list").contains(Pair([None, 1], [1]))


def test_none_and_nan_are_two_values_where_records_are_objects():
    relation = records({"x": numbers(0, 10, missing=True)}, adjacency="replace-one")
    assert relation.contains(Pair([{"x": None}], [{"x": math.nan}]))
    assert not relation.contains(Pair([{"x": None}], [{"x": None}]))
    values = [record["x"] for pair in relation.candidates() for side in pair.sides for record in side]
    assert None in values
    assert any(x is not None and math.isnan(x) for x in values)
    assert records({"x": numbers(0, 10)}).fields.read_all([{"x": None}]) is None  # no record of the domain
    assert not records({"x": numbers(0, 10)}).contains(Pair([], [{"x": None}]))


VALUES = st.one_of(
    st.floats(), st.sampled_from([0.0, 0.5, 1.0, np.float64(0.5), -0.0]), st.integers(-9, 9), st.booleans(), st.none(),
    st.sampled_from(["a", "b", "", "long" * 9]),
)  # fmt: skip


@given(leaves, st.data())
def test_a_column_is_read_as_its_values_are(domain, data):
    own = st.sampled_from(domain.samples())
    column = data.draw(st.one_of(st.lists(own, max_size=5), st.lists(VALUES, max_size=3), st.lists(own | VALUES)))
    one_by_one = [domain.read(value) for value in column]
    if any(value is NOT_IN_DOMAIN for value in one_by_one):
        assert domain.read_all(column) is None
    else:
        assert list(map(exact_key, domain.read_all(column))) == list(map(exact_key, one_by_one))


@pytest.mark.parametrize("form", ["array", "dataframe", "columns", "list"])
@pytest.mark.parametrize("domain", [numbers(0, 10, missing=True), integers(0, 9, missing=True)])
def test_no_pair_is_tried_twice_where_none_is_nan(form, domain):
    relation = records(domain if form == "array" else {"x": domain}, form=form, adjacency=None)
    found = list(relation.candidates())
    assert len({pair.key for pair in found}) == len(found)
    assert all(len(pair.key) == 2 for pair in found)


def test_every_value_of_a_small_range_and_round_numbers_of_a_large_one_are_values_to_try():
    assert set(integers(-3, 12).ends()) == set(range(-3, 13))
    assert {512, 1000, 99, 999, 256, 100} <= set(integers(0, 1200).ends())
    assert {-64.0, 64.0, -10.0} <= set(numbers(-100, 100).ends())
    for domain in (integers(-(2**63), 2**63 - 1), numbers(-1e308, 1e308), numbers(3, 3.5), integers(5, 6)):
        assert domain.ends()[:2] == (domain.high, domain.low)
        assert all(domain.low <= value <= domain.high for value in domain.ends())


def test_the_orders_of_a_base_are_tried():
    relation = records(numbers(0, 9), base=[4.0, 1.0, 7.0, 2.0, 5.0], form="list")
    both = [sorted(pair.sides, key=len)[0] for pair in relation.candidates()]
    assert [1.0, 2.0, 5.0, 7.0] in both
    assert [7.0, 5.0, 2.0, 1.0] in both


def kinds_of(relation, most):
    """The first candidates as sorted lists: the smaller dataset and the larger one."""
    return [sorted([p.data.tolist(), p.neighbour.tolist()], key=len) for p in islice(relation.candidates(), most)]


def added_of(smaller, larger):
    """The record that the larger dataset has more."""
    place = next((k for k, (a, b) in enumerate(zip(smaller, larger, strict=False)) if a != b), -1)
    return larger[place]


def test_the_neighbours_that_break_real_code_are_among_the_first():
    first = kinds_of(records(numbers(0, 10)), 8)
    assert [[0.0] * 9, [0.0] * 9 + [10.0]] in first  # an outlier
    assert [[], [10.0]] in first
    assert [[10.0] * 9, [10.0] * 10] in first  # a duplicate
    more = kinds_of(records(numbers(0, 10)), 40)
    assert {len(larger) for _, larger in more} >= {1, 2, 10, 100}
    assert [[10.0] * 9, [0.0] + [10.0] * 9] in more  # an outlier before the others
    odd = kinds_of(records(numbers(0, 10, clipped=True, missing=True)), 40)
    added = [added_of(*pair) for pair in odd]
    assert any(math.isnan(x) for x in added)
    assert {1e308, -1e308, 20.0, -10.0} <= {x for x in added if not math.isnan(x)}


def test_only_what_the_domain_declares_is_proposed():
    for pair in records(numbers(0, 10)).candidates():
        for side in (pair.data, pair.neighbour):
            assert np.all((side >= 0) & (side <= 10))


def test_an_emptied_class_and_a_new_one_are_proposed():
    relation = records({"x": numbers(0, 1), "label": categories("no", "yes", other=True)})
    emptied, new = False, False
    for pair in islice(relation.candidates(), 30):
        before, after = sorted((pair.data, pair.neighbour), key=len)
        labels, added = [record["label"] for record in before], added_of(before, after)["label"]
        emptied |= len(labels) > 1 and added not in labels and added in ("no", "yes")
        new |= added == "other"
    assert emptied
    assert new


def test_a_flipped_label_is_proposed():
    relation = records(((numbers(0, 1), numbers(0, 1)), flags()), adjacency="replace-one")
    flipped = 0
    for pair in relation.candidates():
        (x, y), (x_, y_) = pair.data, pair.neighbour
        flipped += len(x) > 1 and np.array_equal(x, x_) and np.sum(y != y_) == 1
    assert flipped


FRAME = pd.DataFrame({"age": [30, 41, 25], "sex": ["f", "m", "f"], "income": [1.5, np.nan, 2.5]})


def test_a_base_is_what_the_search_starts_from():
    relation = records(base=FRAME, adjacency="replace-one")
    assert relation.form == "dataframe"
    (first, second) = islice(relation.candidates(), 2)
    for pair in (first, second):
        assert pair.data.shape == pair.neighbour.shape == (3, 3)
        assert any(side.equals(FRAME) for side in (pair.data, pair.neighbour))
        assert list(pair.data.columns) == list(FRAME.columns)
        assert list(pair.data.dtypes) == list(FRAME.dtypes)
    outside = FRAME.assign(age=[30, 42, 25])
    assert not relation.contains(Pair(FRAME, outside))


def test_given_data_stand_in_every_pair():
    data = np.array([3.0, 1.0, 4.0])
    for adjacency in ("add-remove", "replace-one"):
        relation = records(numbers(0, 9), adjacency=adjacency)
        found = list(relation.candidates(data))
        assert len(found) >= 6
        for pair in found:
            assert any(np.array_equal(side, data) for side in (pair.data, pair.neighbour))
            assert relation.contains(pair, data)
            assert not relation.contains(pair, np.array([9.0, 9.0]))
    with pytest.raises(InvalidNeighbours, match=r"data=.* must be a dataset of records"):
        list(records(numbers(0, 3)).candidates(data))


@pytest.mark.parametrize(
    ("examples", "domain"),
    [
        ([1, 5, 3], "integers(1, 5)"),
        ([1, 5.5], "numbers(1, 5.5)"),
        ([2, 2], "integers(2, 3)"),
        ([True, False], "categories(False, True)"),
        (["f", "m", None], "categories('f', 'm', missing=True)"),
        ([1.0, math.nan, 3.0], "numbers(1, 3, missing=True)"),
        ([f"name {k}" for k in range(50)], "text(7)"),
        ([(1, "x"), (2, "y")], "(integers(1, 2), categories('x', 'y'))"),
        ([{"a": 1.5}, {"a": 2.5}], "{'a': numbers(1.5, 2.5)}"),
        (np.array([[1, 2], [3, 4]]), "(integers(1, 3), integers(2, 4))"),
        (FRAME, "{'age': integers(25, 41), 'sex': categories('f', 'm'), 'income': numbers(1.5, 2.5, missing=True)}"),
        ((np.array([[0.5], [2.0]]), np.array([0, 1])), "((numbers(0.5, 2),), integers(0, 1))"),
    ],
)
def test_the_domain_is_read_from_records_like_these(examples, domain):
    assert str(like(examples)) == domain
    relation = records(like(examples))
    assert next(iter(relation.candidates()))
    assert type(next(iter(relation.candidates())).data) is type(examples)


@pytest.mark.parametrize(
    ("domain", "form", "kind", "shape"),
    [
        (numbers(0, 1), None, np.ndarray, 1),
        ((numbers(0, 1), integers(0, 3)), None, np.ndarray, 2),
        (((numbers(0, 1),), flags()), None, tuple, None),
        ({"a": integers(0, 1)}, None, list, None),
        ({"a": integers(0, 1)}, "dataframe", pd.DataFrame, 2),
        ({"a": integers(0, 1)}, "columns", dict, None),
        (text(3), None, list, None),
    ],
)
def test_the_form_in_which_a_dataset_is_handed_over(domain, form, kind, shape):
    for pair in islice(records(domain, form=form).candidates(), 10):  # the empty dataset among them
        for side in (pair.data, pair.neighbour):
            assert type(side) is kind
            assert shape is None or side.ndim == shape


def test_features_and_labels_come_apart():
    pair = next(
        iter(records(((numbers(0, 1), numbers(0, 1)), categories("n", "y")), adjacency="replace-one").candidates())
    )
    features, labels = pair.data
    assert features.shape == (len(labels), 2)
    assert features.dtype == np.float64
    assert set(labels) <= {"n", "y"}


def test_one_record_alone_is_the_local_model():
    relation = records(integers(0, 9), adjacency="replace-one", size=1, form="record")
    assert all(pair.data.shape == () and pair.data != pair.neighbour for pair in relation.candidates())
    with pytest.raises(InvalidNeighbours, match=r"give adjacency='replace-one' and size=1"):
        records(integers(0, 9), form="record")


def test_records_are_drawn_from_a_hypothesis_strategy_the_same_ones_every_time():
    strategy = st.lists(st.integers(0, 3), max_size=3)
    relation, again = records(strategy), records(strategy)
    assert [(p.data, p.neighbour) for p in small(relation.candidates())] == [
        (p.data, p.neighbour) for p in small(again.candidates())
    ]
    assert relation_to_json(relation) is None
    assert all(map(relation.contains, small(relation.candidates())))
    assert not relation.contains(Pair([], [[9]]))


def test_drawn_numbers_are_tried_from_end_to_end():
    relation = records(st.integers(-50, 70), adjacency="replace-one", size=1)
    (domain,) = relation.fields.domains
    first = [{*pair.data.tolist(), *pair.neighbour.tolist()} for pair in islice(relation.candidates(), 3)]
    assert {min(domain.values), max(domain.values)} in first


def test_an_open_adjacency_is_two_relations():
    relation = records(numbers(0, 1), adjacency=None)
    assert [one.adjacency for one in relation.alternatives()] == ["add-remove", "replace-one"]
    assert records(numbers(0, 1)).alternatives() == (records(numbers(0, 1)),)
    lengths = {len(pair.data) == len(pair.neighbour) for pair in islice(relation.candidates(), 8)}
    assert lengths == {True, False}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: numbers(1, 0), "low must be below high"),
        (lambda: numbers(0, math.inf), "high=inf must be a finite number"),
        (lambda: numbers("0", 1), "low='0' must be a finite number"),
        (lambda: numbers(0, 1, missing=1), "missing=1 must be a bool"),
        (lambda: integers(0, 2**63), "must be a whole number of 64 bits"),
        (lambda: integers(0.5, 2), "low=0.5 must be a whole number"),
        (lambda: records(categories("a")), r"categories\('a'\): give one field at least two values"),
        (lambda: records({"x": categories("a"), "y": categories(3)}), "give one field at least two values"),
        (lambda: categories("a", 1), "all of one type"),
        (lambda: categories("a", "a"), "must differ"),
        (lambda: text(0), "max_length=0 must be"),
        (lambda: like([]), "there is no value"),
        (lambda: like([1.0, math.inf]), "infinite"),
        (lambda: records(), "needs a domain"),
        (lambda: records(3), "domain 3 must be numbers"),
        (lambda: records(()), "must have from 1 to"),
        (lambda: records({("a", 1): flags()}), "the name .'a', 1. of a field must be a text or a whole number"),
        (lambda: like(pd.DataFrame([[1, 2], [3, 4]], columns=TWO_LEVELS)), "give frame.set_axis.frame.columns.map"),
        (lambda: like(MASKED), "is a masked array, whose mask would be lost: give data.filled"),
        (lambda: pairs((MASKED, np.zeros(2))), "is a masked array"),
        (lambda: records({1: flags()}, form="polars"), "form='polars' needs names of columns that are texts"),
        (lambda: records(flags(), adjacency="replace"), "adjacency='replace' must be"),
        (lambda: records(flags(), size=0), "give at least 1"),
        (lambda: records(flags(), size=(3, 2)), "size=.3, 2. must be"),
        (lambda: records(flags(), size=True), "size=True must be"),
        (lambda: records(text(3), form="array"), "form='array' needs records that are numbers"),
        (lambda: records(flags(), form="frame"), "form='frame' must be one of array, list"),
        (lambda: records(flags(), form=np.array(["list"])), "must be the name of a form"),
        (lambda: like(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])), "several columns are called 'a'"),
        (lambda: records((flags(), flags()), form="dataframe"), "form='dataframe' needs records that are dicts"),
        (lambda: records(numbers(0, 1), base=[0.5, 3.0]), r"record 2, 3\.0, is not of the domain numbers"),
        (
            lambda: records({"x": numbers(0, 1), "y": flags()}, base=pd.DataFrame({"x": [0.0, 9.0], "y": [True] * 2})),
            r"record 2, where x is 9\.0, is not of the domain",
        ),
        (lambda: records((numbers(0, 1),) * 2, base=np.array([[0.0, 2.0]])), r"record 1, where 1 is 2\.0, is not of"),
        (lambda: records(numbers(0, 1), base="people.csv"), "^base='people.csv' must be a list of records"),
        (lambda: records(base="people.csv"), "^base='people.csv' must be a list of records"),
        (lambda: like("people.csv"), "^examples='people.csv' must be a list of records"),
        (lambda: records(numbers(0, 1)).take("people.csv"), "^data='people.csv' must be a list of records"),
        (lambda: records(st.nothing()), "hypothesis cannot draw from it"),
        (lambda: records(st.just(1)), "at least two records that differ"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(InvalidNeighbours, match=message):
        make()


@pytest.mark.parametrize("names", [range(2), ["a", 1], [7, "7"]])
def test_columns_may_be_called_by_whole_numbers(names):
    frame = pd.DataFrame([[1, 2.5], [3, 4.5], [5, 0.5]], columns=names)
    relation = records(base=frame)
    again = relation_from_json(json.loads(json.dumps(relation_to_json(relation))))
    assert same_relation(relation, again)
    pair = next(iter(relation.candidates(None)))
    assert list(pair.data.columns) == list(names)
    left, right = (input_from_json(json.loads(json.dumps(input_to_json(side)))) for side in pair.sides)
    assert again.contains(Pair(left, right), None)
    assert list(left.columns) == list(names)
    assert records({1: flags()}).fields.build((True,)) == {1: True}


WRITTEN = {"kind": "records", **records(numbers(0, 1)).to_json()}
TEXT = {"text": 3, "missing": True}


@pytest.mark.parametrize(
    ("domain", "written"),
    [
        (numbers(0, 1, clipped=True), {"numbers": [0.0, 1.0], "clipped": True, "missing": False}),
        (integers(-1, 9, missing=True), {"integers": [-1, 9], "clipped": False, "missing": True}),
        (categories("a", "b", other=True), {"categories": ["a", "b"], "other": True, "missing": False}),
        (flags(), {"categories": [False, True], "other": False, "missing": False}),
        (text(3, missing=True), TEXT),
        ((text(3, missing=True),), {"tuple": [TEXT]}),
        ([text(3, missing=True)], {"list": [TEXT]}),
        ({"a": text(3, missing=True)}, {"dict": {"a": TEXT}}),
        ({1: text(3, missing=True)}, {"dict": [TEXT], "names": [1]}),
        ([({"a": text(3, missing=True)},)], {"list": [{"tuple": [{"dict": {"a": TEXT}}]}]}),
    ],
    ids=str,
)
def test_a_domain_has_the_form_in_files_that_its_schema_says(domain, written):
    relation = records(domain)
    assert relation.to_json()["domain"] == written
    assert relation_from_json({**relation.to_json(), "domain": written}) == relation
    schema = Draft202012Validator(schema_of(DescribedFields, "domain"))
    schema.validate(json.loads(json.dumps(written)))
    assert not any(map(schema.is_valid, (None, {}, [], {"tuple": [{}]}, {"numbers": [0.0, 1.0]})))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({**WRITTEN, "domain": None}, "domain None must be an object"),
        ({**WRITTEN, "domain": {"numbers": [0.0]}}, "must hold one of tuple"),
        (
            {**WRITTEN, "domain": {"numbers": [0.0], "clipped": False, "missing": False}},
            "numbers=.* must be a list of 2 entries",
        ),
        (
            {**WRITTEN, "domain": {"numbers": [0.0, "1"], "clipped": False, "missing": False}},
            "numbers='1' must be a finite number",
        ),
        (
            {**WRITTEN, "domain": {"numbers": [0.0, 1e999], "clipped": False, "missing": False}},
            "must be a finite number",
        ),
        ({**WRITTEN, "domain": {"numbers": [0.0, 1.0], "clipped": 0, "missing": False}}, "clipped=0 must be true or"),
        ({**WRITTEN, "domain": {"numbers": [1.0, 0.0], "clipped": False, "missing": False}}, "low must be below high"),
        ({**WRITTEN, "domain": {"numbers": [0.0, 1.0], "clipped": False, "missing": False, "x": 1}}, "must hold one"),
        ({**WRITTEN, "domain": {"integers": [0, 1.0], "clipped": False, "missing": False}}, "integers=1.0 must be a w"),
        ({**WRITTEN, "domain": {"integers": [0, 2**63], "clipped": False, "missing": False}}, "must be a whole number"),
        ({**WRITTEN, "domain": {"integers": [False, 1], "clipped": False, "missing": False}}, "integers=False must be"),
        ({**WRITTEN, "domain": {"categories": {}, "other": False, "missing": False}}, "categories={} must be a list"),
        ({**WRITTEN, "domain": {"categories": [], "other": False, "missing": False}}, "all of one type"),
        ({**WRITTEN, "domain": {"text": 0, "missing": False}}, "max_length=0 must be"),
        ({**WRITTEN, "domain": {"text": "3", "missing": False}}, "text='3' must be a whole number"),
        ({**WRITTEN, "domain": {"categories": [[], 1], "other": False, "missing": False}}, "all of one type"),
        ({**WRITTEN, "domain": {"dict": {}}}, "must have from 1 to"),
        ({**WRITTEN, "domain": {"dict": [WRITTEN["domain"]] * 2, "names": [1, 1]}}, "must hold one of tuple"),
        ({**WRITTEN, "domain": {"dict": [WRITTEN["domain"]], "names": [1.5]}}, "must hold one of tuple"),
        ({**WRITTEN, "adjacency": []}, r"adjacency=\[\] must be"),
        ({**WRITTEN, "size": [1, 2, 3]}, "must be a number of records"),
        ({**WRITTEN, "size": 1.0}, "size=1.0 must be"),
        ({**WRITTEN, "form": "lists"}, "form='lists' must be one of array, list"),
        ({**WRITTEN, "form": ["list"]}, r"form=\['list'\] must be a text"),
        ({**WRITTEN, "base": []}, "holds domain, adjacency, size, form"),
    ],
)
def test_what_a_file_says_is_checked(value, message):
    with pytest.raises(InvalidNeighbours, match=message):
        relation_from_json(value)


def test_a_domain_in_a_file_is_not_nested_without_end():
    domain = {"numbers": [0.0, 1.0], "clipped": False, "missing": False}
    for _ in range(100):
        domain = {"tuple": [domain]}
    with pytest.raises(InvalidNeighbours, match="a relation holds itself, or is nested too deep"):
        relation_from_json({**WRITTEN, "domain": domain})


#: Values that domains read alike, or not at all.
ALIKE = (
    1, 1.0, True, np.int64(1), np.float32(1), np.float64(1), np.bool_(True), "1", np.str_("1"),
    0, 0.0, -0.0, False, "0", None, math.nan, np.float64(math.nan), pd.NA,
)  # fmt: skip
OF_ALIKE = [
    numbers(0, 9, missing=True), integers(0, 9, missing=True), categories(0, 1, missing=True),
    categories(0.0, 1.0, missing=True), categories("0", "1", missing=True), flags(missing=True), text(3, missing=True),
]  # fmt: skip
#: Datasets of records (k, value), in each form that holds values of any type.
FORMS_OF_ANY = {
    "list": lambda rows: [{"k": k, "value": value} for k, value in rows],
    "columns": lambda rows: {"k": [k for k, _ in rows], "value": [value for _, value in rows]},
    "dataframe": lambda rows: pd.DataFrame(
        {"k": [k for k, _ in rows], "value": pd.Series([value for _, value in rows], dtype=object)}
    ).astype({"k": int}),
    "xy": lambda rows: (np.array([[float(k)] for k, _ in rows]).reshape(-1, 1), [value for _, value in rows]),
}


@pytest.mark.parametrize("form", FORMS_OF_ANY)
@pytest.mark.parametrize("domain", OF_ALIKE, ids=str)
def test_equal_records_are_equal_in_type_in_every_form(form, domain):
    """A pair of a file that anybody may have edited: a domain reads 1 and 1.0 as one value, a mechanism may not."""
    k = integers(0, 9)
    relation = records(((k,), domain) if form == "xy" else {"k": k, "value": domain}, form=form, adjacency=None)
    make, more = FORMS_OF_ANY[form], (9, domain.middle())
    belong = [value for value in ALIKE if relation.contains(Pair(make([]), make([(5, value)])))]
    assert len(belong) >= 4
    single, longer = ([make([(5, value), *rest]) for value in belong] for rest in ((), (more,)))
    for (i, value), (j, other) in product(enumerate(belong), repeat=2):
        same = type(value) is type(other) and repr(value) == repr(other)
        assert relation.contains(Pair(single[i], longer[j])) == same
        assert relation.contains(Pair(longer[j], single[i])) == same
        assert relation.contains(Pair(single[i], longer[i]), single[j]) == same
        assert not same or not relation.contains(Pair(single[i], single[j]))


@pytest.mark.parametrize(
    "make",
    [
        lambda *xs: list(xs),
        lambda *xs: np.array(xs),
        lambda *xs: {"x": np.array(xs)},
        lambda *xs: pd.DataFrame({"x": np.array(xs)}),
        lambda *xs: pd.DataFrame({"x": [9.0] * len(xs)}, index=list(xs)),
        lambda *xs: polars.DataFrame({"x": xs}),
        lambda *xs: pyarrow.table({"x": xs}),
        lambda *xs: (np.array([xs]).T, np.zeros(len(xs))),
    ],
)
def test_equal_records_are_equal_in_the_sign_of_zero(make):
    relation = records(base=make(0.0, 5.0, 9.0), adjacency=None)
    assert relation.contains(Pair(make(0.0, 5.0), make(0.0, 5.0, 9.0)))
    assert not relation.contains(Pair(make(0.0, 5.0), make(-0.0, 5.0, 9.0)))


@pytest.mark.parametrize("form", ["list", "columns"])
def test_names_of_fields_are_equal_in_type(form):
    """A file may hold any: True is found where the name 1 is looked for."""
    relation = records({1: integers(0, 9)}, form=form)
    one, two = ({name: [3]} if form == "columns" else [{name: 3}] for name in (1, True))
    more = {1: [3, 4]} if form == "columns" else [{1: 3}, {1: 4}]
    assert relation.contains(Pair(one, more))
    assert not relation.contains(Pair(two, more))
    assert not relation.contains(Pair(one, {True: [3, 4]} if form == "columns" else [{1: 3}, {True: 4}]))


@pytest.mark.parametrize(("value", "other"), [(5, 5.0), (0.0, -0.0), (5, np.int64(5))])
@pytest.mark.parametrize("form", FORMS_OF_ANY)
def test_copies_of_a_record_are_told_from_those_of_another_type(form, value, other):
    k, domain, make = integers(0, 9), numbers(0, 100), FORMS_OF_ANY[form]
    relation = records(((k,), domain) if form == "xy" else {"k": k, "value": domain}, form=form)
    kept, changed, more = (1, value), (1, other), (2, 7.5)
    assert relation.contains(Pair(make([kept, kept]), make([kept, kept, kept])))
    assert relation.contains(Pair(make([kept, kept]), make([kept, changed, kept])))
    assert not relation.contains(Pair(make([kept, more]), make([more, changed, more])))
    assert not relation.contains(Pair(make([kept, changed]), make([changed, kept, more])))


#: Values that belong to no domain of single values; comparing some raises an error, or gives no flag.
FOREIGN = (
    np.array([1.0, 2.0]), np.array([math.nan]), np.array(["a", None], object), np.array(math.nan),
    pd.Series(["a", "b"]), pd.DataFrame({"x": [1]}), polars.Series(["a"]), ["a"], {"a": 1},
    Decimal("sNaN"), Decimal(1), b"a", 1j, math,
)  # fmt: skip


@pytest.mark.parametrize("domain", [*OF_ALIKE, text(3), categories("a", "b"), numbers(0, 9), integers(0, 9)], ids=str)
def test_what_belongs_to_no_domain_is_refused_by_name(domain):
    relation = records({"k": integers(0, 9), "value": domain}, form="list")
    for value in FOREIGN:
        assert domain.read(value) is NOT_IN_DOMAIN
        assert not relation.contains(Pair([], [{"k": 5, "value": value}]))
        with pytest.raises(InvalidNeighbours, match=r"data=.* must be a dataset of records\(\{'k'"):
            relation.take([{"k": 5, "value": value}])


@pytest.mark.parametrize("mark", [pd.NA, pd.NaT, np.datetime64("NaT")], ids=repr)
@pytest.mark.parametrize("of", [numbers, integers, lambda *ends, missing: categories(*map(str, ends), missing=missing)])
def test_the_marks_of_a_missing_value_are_none_in_every_form(of, mark):
    with_missing, without = (of(0, 9, missing=missing) for missing in (True, False))
    assert with_missing.read(mark) is None
    assert without.read(mark) is NOT_IN_DOMAIN
    for form in ("list", "columns", "dataframe"):
        data = FORMS_OF_ANY[form]([(1, mark)])
        k = integers(0, 9)
        taken = records({"k": k, "value": with_missing}, form="list").take(data)
        assert taken == [{"k": 1, "value": None}]
        with pytest.raises(InvalidNeighbours, match=r"data=.* must be a dataset of records"):
            records({"k": k, "value": without}, form="list").take(data)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("form", ["list", "columns", "dataframe", "polars", "arrow", "xy"])
def test_a_field_may_have_a_single_value_beside_fields_of_more(form, adjacency):
    one, more = categories("a"), integers(0, 9)
    domain = ((more,), one) if form == "xy" else {"site": one, "x": more}
    relation = records(domain, form=form, adjacency=adjacency)
    again = relation_from_json(json.loads(json.dumps(relation_to_json(relation))))
    assert (again, str(again)) == (relation, str(relation))
    found = list(relation.candidates())
    assert len(found) > 30
    for pair in (*found, *relation.unusual(), *relation.variations(found[1]), *relation.smaller(found[1])):
        assert relation.contains(pair)
        assert not relation.contains(Pair(pair.data, pair.data))


def test_a_unit_may_be_the_only_one():
    relation = records({"site": categories("a"), "x": integers(0, 9)}, unit="site")
    found = list(relation.candidates())
    assert all(map(relation.contains, found))
    assert {min(len(pair.data), len(pair.neighbour)) for pair in found} == {0}


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_records_that_are_arrays_are_compared_varied_and_shrunk(adjacency):
    images = [np.full((2, 2), k, float) for k in range(5)]
    relation = records(base=images, form="list", adjacency=adjacency, size=(0, 6))
    found = list(relation.candidates())
    assert len(found) > 10
    for pair in (*found, *relation.variations(found[0]), *relation.smaller(found[0])):
        assert relation.contains(pair)
        assert relation.contains(Pair(*copy.deepcopy(pair.sides)))
    assert relation.contains(Pair(images[:2], images[:3] if adjacency == "add-remove" else [images[0], images[2]]))
    forged = images[0].astype(int)
    assert not relation.contains(Pair(images[:2], [forged, images[1], images[2]]))
    assert not relation.contains(Pair(images[:2], [forged, images[2]]))
