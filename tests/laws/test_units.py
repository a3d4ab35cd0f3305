"""Datasets of which neighbours differ in all records of one unit: what is proposed is adjacent, by the definition."""

import json
from collections import Counter
from itertools import islice, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpwitness import InvalidNeighbours, categories, flags, integers, numbers, records, text
from dpwitness.neighbours import (
    Pair,
    input_from_json,
    input_to_json,
    relation_from_json,
    relation_to_json,
    same_relation,
)
from dpwitness.neighbours.groups import Groups

ids = st.sampled_from([integers(1, 1000), integers(0, 3), categories("ann", "bob", "cid", "dan"), text(4)])
rest = st.dictionaries(
    st.sampled_from(["age", "member", "x"]),
    st.sampled_from([integers(0, 120), flags(), numbers(0.0, 1.0, missing=True), categories("a", "b", other=True)]),
    max_size=2,
)
adjacencies = st.sampled_from(["add-remove", "replace-one", None])
sizes = st.sampled_from([None, 4, (0, 3), (1, 12)])
bounds = st.sampled_from([None, 1, 2, 3])


@st.composite
def relations(draw):
    """A relation of units in any form that such records may have; the field of the unit stands anywhere."""
    fields = list(draw(rest).items())
    place = draw(st.integers(0, len(fields)))
    domain = dict([*fields[:place], ("person", draw(ids)), *fields[place:]])
    form = draw(st.sampled_from(["list", "dataframe", "columns", "tuples", "array"]))
    settings = {"adjacency": draw(adjacencies), "size": draw(sizes), "at_most": draw(bounds)}
    if form in ("tuples", "array"):
        numeric = all(part.dtype in ("int64", "float64", "bool") for part in domain.values())
        own = "array" if form == "array" and numeric else "list"
        return records(tuple(domain.values()), unit=place, form=own, **settings)
    return records(domain, unit="person", form=form, **settings)


def rows(relation, data):
    """Records of any form as tuples, and the place of the unit in them."""
    if isinstance(data, pd.DataFrame):
        data = data.to_dict("records")
    elif isinstance(data, dict):
        data = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
    elif isinstance(data, np.ndarray):
        data = data.tolist()
    if isinstance(relation.unit, str):
        return [tuple(record.values()) for record in data], relation.fields.names.index(relation.unit)
    return [tuple(record) for record in data], relation.unit


def keyed(found, place):
    """Records as texts, so that NaN is NaN; and their units."""
    return [repr(record) for record in found], [record[place] for record in found]


def adjacent_by_definition(first, second, place, adjacency, at_most, size=None):
    """Remove each unit of the one, and each of the other, or none: what is left is the same."""
    sides = []
    for side in (first, second):
        texts, owners = keyed(side, place)
        if at_most is not None and any(count > at_most for count in Counter(owners).values()):
            return False
        sides.append((texts, owners, {u: [t for t, o in zip(texts, owners, strict=True) if o != u] for u in owners}))
    (a, _owners_a, without_a), (b, _owners_b, without_b) = sides
    lengths = (len(a), len(b))
    if isinstance(size, tuple):
        allowed = size[0] <= min(lengths) and max(lengths) <= size[1]
    else:
        allowed = size is None or size in lengths
    if a == b or not allowed:
        return False
    added = any(left == a for left in without_b.values()) or any(left == b for left in without_a.values())
    replaced = any(left == other for left in without_a.values() for other in without_b.values())
    return {"add-remove": added, "replace-one": replaced, None: added or replaced}[adjacency]


def small(pairs, most=6):
    return list(islice(pairs, most))


@pytest.mark.campaign
@settings(max_examples=40, deadline=None)
@given(relations(), st.integers(0, 11))
def test_all_that_is_proposed_is_adjacent(relation, which):
    found = small(relation.candidates(), 12)
    pairs = list(found)
    if found:
        chosen = found[which % len(found)]
        pairs += small(relation.variations(chosen), 30) + small(relation.smaller(chosen), 30)
        pairs += small(relation.unusual(), 20)
    for pair in pairs:
        (first, place), (second, _) = (rows(relation, side) for side in pair.sides)
        if len(first) <= 60:  # of many records it takes long
            assert adjacent_by_definition(first, second, place, relation.adjacency, relation.at_most, relation.size)
        assert relation.contains(pair)
        assert relation.contains(pair.swapped())
        assert not relation.contains(Pair(pair.data, pair.data))


@settings(max_examples=30, deadline=None)
@given(relations())
def test_relations_and_pairs_come_back_from_files(relation):
    again = relation_from_json(json.loads(json.dumps(relation_to_json(relation), allow_nan=False)))
    assert again == relation
    assert same_relation(again, relation)
    assert str(again) == str(relation)
    for pair in small(relation.candidates(), 3):
        sides = [input_from_json(json.loads(json.dumps(input_to_json(side)))) for side in pair.sides]
        assert again.contains(Pair(*sides))


def test_files_without_units_are_read_and_written_as_before():
    written = relation_to_json(records({"person": integers(0, 9)}))
    assert not {"unit", "at_most"} & set(written)
    assert relation_from_json(written).unit is None
    other = records({"person": integers(0, 9)}, unit="person")
    assert not same_relation(relation_from_json(written), other)
    with pytest.raises(InvalidNeighbours, match="unit=True must be the field that says whose a record is"):
        relation_from_json({**written, "unit": True})
    with pytest.raises(InvalidNeighbours, match="unit='age' must be the field that says whose a record is"):
        relation_from_json({**written, "unit": "age"})


@pytest.mark.campaign
@settings(max_examples=25, deadline=None)
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


def test_shrinking_to_the_end_leaves_one_record_of_one_unit():
    relation = records({"person": integers(1, 50), "age": integers(0, 9)}, unit="person", at_most=3)
    pair = next(iter(relation.candidates()))
    for _ in range(500):
        step = next(relation.smaller(pair), None)
        if step is None:
            break
        pair = step
    assert sorted(map(len, pair.sides)) == [0, 1]


SMALL = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=5)


@pytest.mark.campaign
@settings(max_examples=150, deadline=None)
@given(SMALL, SMALL, st.integers(0, 2), adjacencies, bounds, st.sampled_from(["list", "array", "dataframe"]))
def test_contains_is_the_definition(a, b, removed, adjacency, at_most, form):
    """Of any two datasets, and of one and the same without a unit, and with the others' records of it."""
    own = [record for record in b if record[0] == removed]
    without = [record for record in a if record[0] != removed]
    for first, second in ((a, b), (a, without), (a, [*without, *own]), (a, [*own, *without])):
        domain = (integers(0, 2), integers(0, 1))
        if form == "dataframe":
            relation = records(
                {"p": domain[0], "x": domain[1]}, unit="p", adjacency=adjacency, at_most=at_most, form=form
            )
            sides = [pd.DataFrame(side, columns=["p", "x"], dtype="int64") for side in (first, second)]
        else:
            relation = records(domain, unit=0, adjacency=adjacency, at_most=at_most, form=form)
            sides = [np.array(side, np.int64).reshape(-1, 2) if form == "array" else side for side in (first, second)]
        expected = adjacent_by_definition(first, second, 0, adjacency, at_most)
        assert relation.contains(Pair(*sides)) == expected
        assert relation.contains(Pair(*sides[::-1])) == expected


@pytest.mark.parametrize("at_most", [None, 1])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_contains_is_the_definition_of_all_short_lists(adjacency, at_most):
    relation = records((integers(0, 2), integers(0, 1)), unit=0, adjacency=adjacency, at_most=at_most, form="list")
    lists = [list(one) for n in range(3) for one in product([(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)], repeat=n)]
    for a, b in product(lists, lists):
        assert relation.contains(Pair(a, b)) == adjacent_by_definition(a, b, 0, adjacency, at_most), (a, b)
    more = [(0, 1), (1, 0), (1, 1)]
    for end in ([(1, 0)], [(1, 0), (1, 1)], [(2, 0)]):
        a, b = [*more, *end], [more[0], *more[:1], *more[1:]]
        assert relation.contains(Pair(a, b)) == adjacent_by_definition(a, b, 0, adjacency, at_most), (a, b)


def test_what_changes_between_two_datasets_makes_them_again():
    """The others, and the records of the unit in the gaps in which they stood."""
    domain = (integers(0, 2), integers(0, 9))
    groups = Groups.of(records(domain, unit=0, form="list").fields, 0, None)
    others = [(0, 1), (2, 2), (0, 3)]
    for places in product(range(4), repeat=2):
        first, second = list(others), list(others)
        for number, place in enumerate(sorted(places, reverse=True)):
            second.insert(place, (1, number))
        first.insert(places[0], (1, 7))
        assert groups.change_between(others, second).datasets == (tuple(others), tuple(second))
        assert groups.change_between(first, second).datasets == (tuple(first), tuple(second))


def test_behind_nested_fields_the_unit_is_the_field_that_is_named():
    relation = records(((integers(0, 9), integers(0, 9)), integers(0, 9)), unit=1, form="list")
    own, other = [((1, 2), 3), ((4, 5), 3)], ((1, 2), 6)
    assert relation.contains(Pair([other], [*own, other]))
    assert not relation.contains(Pair([], [own[0], other]))  # alike in all but the unit


def of_unit(pair):
    """The records of the unit in the larger and in the smaller dataset, of lists of (person, age)."""
    smaller, larger = sorted(pair.sides, key=len)
    common = Counter(smaller) & Counter(larger)
    return list((Counter(larger) - common).elements())


@pytest.mark.parametrize("at_most", [3, 5])
def test_units_of_one_record_of_the_bound_all_alike_and_all_different_are_tried_early(at_most):
    relation = records((integers(1, 1000), integers(0, 99)), unit=0, at_most=at_most, form="list")
    found = [of_unit(pair) for pair in islice(relation.candidates(), 12)]
    assert all(len({person for person, _ in unit}) == 1 for unit in found)
    counts = [(len(unit), len(set(unit))) for unit in found]
    assert counts[0] == (at_most, 1)
    assert (1, 1) in counts
    assert any(count == at_most and kinds >= 3 for count, kinds in counts)
    for pair in relation.candidates():
        for side in pair.sides:
            assert max(Counter(person for person, _ in side).values(), default=0) <= at_most


def test_without_a_bound_many_records_of_a_unit_are_tried():
    relation = records((integers(1, 1000), integers(0, 99)), unit=0, form="list")
    assert {1, 2, 3, 10, 100} <= {len(of_unit(pair)) for pair in relation.candidates()}


def test_replaced_units_have_other_records_other_names_and_other_numbers_of_records():
    relation = records((integers(1, 1000), integers(0, 99)), unit=0, at_most=3, adjacency="replace-one", form="list")
    renamed = kept = fewer = False
    for pair in relation.candidates():
        people = [{person for person, _ in side} for side in pair.sides]
        renamed |= people[0] != people[1]
        kept |= people[0] == people[1]
        fewer |= len(pair.data) != len(pair.neighbour)
    assert renamed
    assert kept
    assert fewer


PEOPLE = pd.DataFrame(
    {"person": [7, 8, 7, 9, 7, 8], "age": [30, 41, 31, 25, 30, 42]}, index=["a", "b", "c", "d", "e", "f"]
)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_given_data_keep_their_units_and_labels(adjacency):
    domain = {"person": integers(1, 99), "age": integers(0, 99)}
    relation = records(domain, unit="person", at_most=3, adjacency=adjacency, base=PEOPLE)
    found = list(relation.candidates(PEOPLE))
    assert len(found) >= 4
    for pair in found:
        assert relation.contains(pair, PEOPLE)
        assert any(side.equals(PEOPLE) for side in pair.sides)
    sizes = {abs(len(pair.data) - len(pair.neighbour)) for pair in found}
    assert 3 in sizes if adjacency == "add-remove" else 0 in sizes
    if adjacency == "add-remove":
        without = PEOPLE[PEOPLE.person != 7]
        assert any(without.equals(side) for pair in found for side in pair.sides)
        assert not relation.contains(Pair(PEOPLE, PEOPLE.iloc[1:]))  # one record of three
        relabelled = without.set_axis(["x", "y", "z"])
        assert not relation.contains(Pair(PEOPLE, relabelled))


def test_data_beyond_the_bound_are_refused_in_one_line():
    match = r"holds 3 records of person 7, and at_most=2: give data within the bound"
    domain = {"person": integers(1, 9), "age": integers(0, 99)}
    with pytest.raises(InvalidNeighbours, match=f"base {match}"):
        records(domain, unit="person", at_most=2, base=PEOPLE)
    relation = records(domain, unit="person", at_most=2, form="dataframe")
    with pytest.raises(InvalidNeighbours, match=f"data {match}"):
        relation.take(PEOPLE)
    with pytest.raises(InvalidNeighbours, match=f"data {match}"):
        list(relation.candidates(PEOPLE))
    assert not relation.contains(Pair(PEOPLE, PEOPLE[PEOPLE.person != 7]))


@pytest.mark.parametrize(
    ("domain", "settings", "message"),
    [
        ({"person": integers(0, 9)}, {"unit": "name"}, r"unit='name' must be .*; fields: 'person'$"),
        ({"person": integers(0, 9)}, {"unit": 0}, "unit=0 must be the field"),
        ({"person": integers(0, 9)}, {"unit": ["person"]}, r"unit=\['person'\] must be the field"),
        ((integers(0, 9),), {"unit": 1}, "unit=1 must be the field that says whose a record is; fields: 0$"),
        ((integers(0, 9),), {"unit": True}, "unit=True must be the field"),
        (integers(0, 9), {"unit": 0}, "no fields, as a record is one value"),
        ({"person": integers(0, 9, missing=True)}, {"unit": "person"}, "may be missing in its domain"),
        ({"person": (integers(0, 9), flags())}, {"unit": "person"}, "must be a field of single values"),
        ({"person": integers(0, 9)}, {"unit": "person", "at_most": 0}, "at_most=0 must be a whole number"),
        ({"person": integers(0, 9)}, {"unit": "person", "at_most": 1.5}, r"at_most=1\.5 must be"),
        ({"person": integers(0, 9)}, {"unit": "person", "at_most": True}, "at_most=True must be"),
        ({"person": integers(0, 9)}, {"at_most": 3}, "at_most=3 is how many records a unit may have: give unit="),
        ({"person": integers(0, 9)}, {"unit": "person", "form": "record", "adjacency": "replace-one", "size": 1},
         "leave out unit="),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said_in_one_line(domain, settings, message):
    with pytest.raises(InvalidNeighbours, match=message) as caught:
        records(domain, **settings)
    assert "\n" not in str(caught.value)


def test_few_units_have_several_records_each_and_a_domain_of_too_few_gives_what_it_can():
    few = records({"person": categories("a", "b"), "x": flags()}, unit="person", at_most=2, size=(0, 1000))
    found = list(few.candidates())
    assert found
    assert max(len(side) for pair in found for side in pair.sides) <= 4
    alone = records({"person": integers(0, 99)}, unit="person", at_most=2)  # a record is its unit
    assert len(list(alone.candidates())) >= 4


def test_other_numbers_of_records_of_a_unit_are_variations_and_lie_apart():
    relation = records((integers(1, 1000), integers(0, 99)), unit=0, at_most=3, form="list")
    others = [(k, k % 90) for k in range(1, 10)]
    pair = Pair(others, [*others, (50, 5)])
    found = [max(varied.sides, key=len) for varied in relation.variations(pair)]
    places = [[k for k, (person, _) in enumerate(side) if person == 50] for side in found]
    assert {1, 2, 3} <= set(map(len, places))
    assert [0, 5, 11] in places
