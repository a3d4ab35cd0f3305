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
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dpwitness import InvalidNeighbours, categories, flags, integers, like, numbers, pairs, records, text
from dpwitness.codec import schema_of
from dpwitness.neighbours import Pair, relation_from_json, relation_to_json, same_relation
from dpwitness.neighbours.domains import NOT_IN_DOMAIN
from dpwitness.neighbours.fields import DescribedFields
from dpwitness.neighbours.inputs import exact_key
from drawn import leaves, pair_through_a_file

TWO_LEVELS = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])


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


@pytest.mark.parametrize("form", ["list", "array"])
@pytest.mark.parametrize("size", [None, 2, (1, 2)], ids=str)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one", None])
def test_contains_is_the_definition_of_all_short_lists(adjacency, size, form):
    relation = records(integers(0, 2), adjacency=adjacency, size=size, form=form)
    lists = [list(one) for n in range(4) for one in product([0, 1], repeat=n)]
    lists += [[3], [0, -1], [0, 1, 3], [0, 0, 1, 2]]
    for a, b in product(lists, lists):
        pair = Pair(a, b) if form == "list" else Pair(np.array(a, np.int64), np.array(b, np.int64))
        assert relation.contains(pair) == adjacent_by_definition(a, b, adjacency, size), (a, b)


def test_given_data_are_all_of_one_side():
    relation, pair = records(integers(0, 9), form="list"), Pair([1, 2], [1, 2, 3])
    found = [relation.contains(pair, data) for data in ([1, 2], [1, 2, 3], [1], [1, 2, 3, 4], [2, 1], [])]
    assert found == [True, True, False, False, False, False]


def test_a_fixed_number_of_records_is_that_of_the_smaller_or_of_the_larger_dataset():
    sizes = {tuple(sorted(map(len, pair.sides))) for pair in records(integers(0, 9), size=3, form="list").candidates()}
    assert sizes == {(2, 3), (3, 4)}


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (numbers(0, 1), [0.0, 1.0], [-1e-9, 1.5, math.nan, math.inf, None]),
        (numbers(0, 1, clipped=True), [-5.0, 0.0, 1.0, 9.0], [math.inf, math.nan]),
        (integers(0, 3), [0, 3], [-1, 4, 0.5]), (text(2), ["", "ab"], ["abc", 1]),
        (categories("a", "b"), ["a", "b"], ["c", 1]),
        (categories(1.5, 2.5), [1.5, 2.5], [1, 10**400, -(10**400), math.inf]),
    ],
    ids=str,
)  # fmt: skip
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
        pair = Pair(make([*range(fewer)]), make([*range(fewer), 9]))
        assert relation.contains(pair) == relation.contains(pair.swapped()) == allowed
    for same, allowed in ((1, True), (10, True), (11, False)):
        numbers_of = [k % 9 for k in range(same)]
        pair = Pair(make(numbers_of), make([*numbers_of[:-1], 9]))
        assert of_sizes(form, adjacency="replace-one").contains(pair) == allowed


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
    assert {1, 2, 3, 9, 10} <= {length(side) for pair in found for side in pair.sides} <= {*range(1, 11)}
    assert {abs(length(pair.data) - length(pair.neighbour)) for pair in found} == {int(adjacency == "add-remove")}


def test_a_missing_number_is_a_record_and_equal_to_itself():
    relation = records(numbers(0, 10, missing=True))
    assert relation.contains(Pair(np.array([math.nan]), np.array([math.nan, 1.0])))
    assert not relation.contains(Pair(np.array([math.nan]), np.array([math.nan])))
    lists = records(integers(0, 9, missing=True), form="list")
    assert lists.contains(Pair([None, 1], [1]))
    assert not lists.contains(Pair((None, 1), (1,)))  # another form


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


def test_values_to_try_lie_in_the_range_but_for_some_of_one_that_is_clipped():
    for domain in (integers(-(2**63), 2**63 - 1), numbers(-1e308, 1e308), numbers(3, 3.5), integers(5, 6)):
        assert domain.ends()[:2] == (domain.high, domain.low)
        assert all(domain.low <= value <= domain.high for value in domain.ends())
    assert all(0 <= value <= 1 for value in numbers(0, 1).samples())
    assert not all(0 <= value <= 1 for value in numbers(0, 1, clipped=True).samples())


def added_of(smaller, larger):
    """The record that the larger dataset has more."""
    place = next((k for k, (a, b) in enumerate(zip(smaller, larger, strict=False)) if a != b), -1)
    return larger[place]


def test_the_neighbours_that_break_real_code_are_among_the_first():
    def first(most, **settings):
        """The first candidates as sorted lists: the smaller dataset and the larger one."""
        pairs = islice(records(numbers(0, 10, **settings)).candidates(), most)
        return [sorted([pair.data.tolist(), pair.neighbour.tolist()], key=len) for pair in pairs]

    assert [[0.0] * 9, [0.0] * 9 + [10.0]] in first(8)  # an outlier
    assert [[], [10.0]] in first(8)
    assert [[10.0] * 9, [10.0] * 10] in first(8)  # a duplicate
    assert {len(larger) for _, larger in first(40)} >= {1, 2, 10, 100}
    assert [[10.0] * 9, [0.0] + [10.0] * 9] in first(40)  # an outlier before the others
    added = [added_of(*pair) for pair in first(40, clipped=True, missing=True)]
    assert any(math.isnan(x) for x in added)
    assert {1e308, -1e308, 20.0, -10.0} <= {x for x in added if not math.isnan(x)}


FRAME = pd.DataFrame({"age": [30, 41, 25], "sex": ["f", "m", "f"], "income": [1.5, np.nan, 2.5]})


def test_given_data_stand_in_every_pair():
    data = np.array([3.0, 1.0, 4.0])
    for adjacency, sizes in (("add-remove", {2, 4}), ("replace-one", {3})):
        relation = records(numbers(0, 9), adjacency=adjacency)
        found = list(relation.candidates(data))
        assert len(found) >= 6
        for pair in found:
            assert any(np.array_equal(side, data) for side in pair.sides)
            assert relation.contains(pair, data)
            assert not relation.contains(pair, np.array([9.0, 9.0]))
        assert {len(pair.data) + len(pair.neighbour) - 3 for pair in found} == sizes
    with pytest.raises(InvalidNeighbours, match=r"data=.* must be a dataset of records"):
        list(records(numbers(0, 3)).candidates(data))


@pytest.mark.parametrize(
    ("examples", "domain"),
    [
        ([1, 5, 3], "integers(1, 5)"), ([1, 5.5], "numbers(1, 5.5)"), ([2, 2], "integers(2, 3)"),
        ([True, False], "categories(False, True)"), (["f", "m", None], "categories('f', 'm', missing=True)"),
        ([1.0, math.nan, 3.0], "numbers(1, 3, missing=True)"), ([f"name {k}" for k in range(50)], "text(7)"),
        ([(1, "x"), (2, "y")], "(integers(1, 2), categories('x', 'y'))"),
        ([{"a": 1.5}, {"a": 2.5}], "{'a': numbers(1.5, 2.5)}"),
        (np.array([[1, 2], [3, 4]]), "(integers(1, 3), integers(2, 4))"),
        (FRAME, "{'age': integers(25, 41), 'sex': categories('f', 'm'), 'income': numbers(1.5, 2.5, missing=True)}"),
        ((np.array([[0.5], [2.0]]), np.array([0, 1])), "((numbers(0.5, 2),), integers(0, 1))"),
    ],
)  # fmt: skip
def test_the_domain_is_read_from_records_like_these(examples, domain):
    assert str(like(examples)) == domain
    assert type(next(iter(records(like(examples)).candidates())).data) is type(examples)


def test_records_are_drawn_from_a_hypothesis_strategy_the_same_ones_every_time():
    strategy = st.lists(st.integers(0, 3), max_size=3)
    relation, again = ([*islice(records(strategy).candidates(), 6)] for _ in range(2))
    assert [pair.sides for pair in relation] == [pair.sides for pair in again]
    assert relation_to_json(records(strategy)) is None
    assert all(map(records(strategy).contains, relation))
    assert not records(strategy).contains(Pair([], [[9]]))


#: By what is named of it.
SENSELESS = {
    "low must be below": lambda: numbers(1, 0), "high=inf": lambda: numbers(0, math.inf),
    "64 bits": lambda: integers(0, 2**63), "at least two values": lambda: records({"x": categories("a")}),
    "all of one type": lambda: categories("a", 1), "must differ": lambda: categories("a", "a"),
    "max_length=0": lambda: text(0), "no value": lambda: like([]), "infinite": lambda: like([1.0, math.inf]),
    "needs a domain": lambda: records(), "from 1 to": lambda: records(()),
    "frame.set_axis": lambda: like(pd.DataFrame([[1, 2], [3, 4]], columns=TWO_LEVELS)),
    "are called 'a'": lambda: like(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])),
    "data.filled": lambda: like(MASKED), "masked array": lambda: pairs((MASKED, np.zeros(2))),
    "form='polars'": lambda: records({1: flags()}, form="polars"),
    "adjacency='replace'": lambda: records(flags(), adjacency="replace"),
    "at least 1": lambda: records(flags(), size=0), "size=.3, 2.": lambda: records(flags(), size=(3, 2)),
    "form='array'": lambda: records(text(3), form="array"),
    "form='dataframe'": lambda: records((flags(), flags()), form="dataframe"),
    "adjacency='replace-one' and size=1": lambda: records(integers(0, 9), form="record"),
    r"record 2, 3\.0": lambda: records(numbers(0, 1), base=[0.5, 3.0]),
    r"record 2, where x is 9\.0": lambda: records({"x": numbers(0, 1)}, base=pd.DataFrame({"x": [0.0, 9.0]})),
    "^base='people.csv'": lambda: records(numbers(0, 1), base="people.csv"), "^examples='a.csv'": lambda: like("a.csv"),
    "^data='a.csv'": lambda: records(numbers(0, 1)).take("a.csv"), "two records": lambda: records(st.just(1)),
}  # fmt: skip


@pytest.mark.parametrize("named", SENSELESS)
def test_what_makes_no_sense_is_refused_by_name(named):
    with pytest.raises(InvalidNeighbours, match=named):
        SENSELESS[named]()


@pytest.mark.parametrize("names", [range(2), ["a", 1], [7, "7"]])
def test_columns_may_be_called_by_whole_numbers(names):
    relation = records(base=pd.DataFrame([[1, 2.5], [3, 4.5], [5, 0.5]], columns=names))
    again = relation_from_json(json.loads(json.dumps(relation_to_json(relation))))
    assert same_relation(relation, again)
    pair = pair_through_a_file(next(iter(relation.candidates(None))))
    assert again.contains(pair, None)
    assert list(pair.data.columns) == list(names)


WRITTEN = {"kind": "records", **records(numbers(0, 1)).to_json()}
TEXT = {"text": 3, "missing": True}


@pytest.mark.parametrize(
    ("domain", "written"),
    [
        (numbers(0, 1, clipped=True), {"numbers": [0.0, 1.0], "clipped": True, "missing": False}),
        (integers(-1, 9, missing=True), {"integers": [-1, 9], "clipped": False, "missing": True}),
        (categories("a", "b", other=True), {"categories": ["a", "b"], "other": True, "missing": False}),
        (flags(), {"categories": [False, True], "other": False, "missing": False}), (text(3, missing=True), TEXT),
        ((text(3, missing=True),), {"tuple": [TEXT]}), ([text(3, missing=True)], {"list": [TEXT]}),
        ({"a": text(3, missing=True)}, {"dict": {"a": TEXT}}),
        ({1: text(3, missing=True)}, {"dict": [TEXT], "names": [1]}),
        ([({"a": text(3, missing=True)},)], {"list": [{"tuple": [{"dict": {"a": TEXT}}]}]}),
    ],
    ids=str,
)  # fmt: skip
def test_a_domain_has_the_form_in_files_that_its_schema_says(domain, written):
    relation = records(domain)
    assert relation.to_json()["domain"] == written
    assert relation_from_json({**relation.to_json(), "domain": written}) == relation
    schema = Draft202012Validator(schema_of(DescribedFields, "domain"))
    schema.validate(json.loads(json.dumps(written)))
    assert not any(map(schema.is_valid, (None, {}, [], {"number": [0.0, 1.0]})))


def range_of(*ends, clipped=False, kind="numbers", **more):
    """A domain as a file has it."""
    return {kind: list(ends), "clipped": clipped, "missing": False, **more}


def nested_tuples(depth):
    domain = range_of(0.0, 1.0)
    for _ in range(depth):
        domain = {"tuple": [domain]}
    return domain


@pytest.mark.parametrize(
    ("domain", "named"),
    [
        (nested_tuples(100), "nested too deep"),
        (range_of(0.0, "1"), "numbers='1'"), (range_of(0.0, 1e999), "finite"),
        (range_of(0.0, 1.0, clipped=0), "clipped=0"), (range_of(1.0, 0.0), "low must be below high"),
        (range_of(0, 2**63, kind="integers"), "whole number"), (range_of(False, 1, kind="integers"), "integers=False"),
        ({"text": 0, "missing": False}, "max_length=0"), ({"text": "3", "missing": False}, "text='3'"),
        ({"dict": {}}, "from 1 to"), ({"dict": [range_of(0.0, 1.0)] * 2, "names": [1, 1]}, "one of tuple"),
    ],
)  # fmt: skip
def test_a_domain_in_a_file_is_checked(domain, named):
    with pytest.raises(InvalidNeighbours, match=named):
        relation_from_json({**WRITTEN, "domain": domain})


def test_a_relation_in_a_file_is_checked():
    for change, named in (
        ({"adjacency": []}, r"adjacency=\[\]"), ({"size": [1, 2, 3]}, "size"), ({"size": 1.0}, "size=1.0"),
        ({"form": "lists"}, "form='lists'"), ({"form": ["list"]}, r"form=\['list'\]"), ({"base": []}, "domain, adj"),
    ):  # fmt: skip
        with pytest.raises(InvalidNeighbours, match=named):
            relation_from_json({**WRITTEN, **change})


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
        lambda *xs: list(xs), lambda *xs: np.array(xs), lambda *xs: {"x": np.array(xs)},
        lambda *xs: pd.DataFrame({"x": np.array(xs)}),
        lambda *xs: polars.DataFrame({"x": xs}), lambda *xs: pyarrow.table({"x": xs}),
        lambda *xs: (np.array([xs]).T, np.zeros(len(xs))),
    ],
)  # fmt: skip
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
    assert relation_from_json(json.loads(json.dumps(relation_to_json(relation)))) == relation
    found = list(relation.candidates())
    assert len(found) > 30
    assert all(map(relation.contains, (*found, *relation.unusual(), *relation.variations(found[1]))))


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
