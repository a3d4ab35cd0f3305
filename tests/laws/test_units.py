"""Datasets of which neighbours differ in all records of one unit: what is proposed is adjacent, by the definition."""

from collections import Counter
from itertools import islice, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpwitness import InvalidNeighbours, categories, flags, integers, records
from dpwitness.neighbours import Pair, relation_from_json, relation_to_json, same_relation
from drawn import small, unit_relations


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


def adjacent_by_definition(first, second, place, adjacency, at_most, size=None):
    """Remove each unit of the one, and each of the other, or none: what is left is the same."""
    sides = [[(repr(record), record[place]) for record in side] for side in (first, second)]  # NaN is NaN
    lengths = tuple(map(len, sides))
    counts = [Counter(owner for _, owner in side) for side in sides]
    if isinstance(size, tuple):
        allowed = size[0] <= min(lengths) and max(lengths) <= size[1]
    else:
        allowed = size is None or size in lengths
    bounded = at_most is None or all(max(count.values(), default=0) <= at_most for count in counts)
    a, b = sides
    if a == b or not (allowed and bounded):
        return False
    without_a, without_b = (
        [[one for one in side if one[1] != unit] for unit in count] for side, count in zip(sides, counts, strict=True)
    )
    added = a in without_b or b in without_a
    replaced = any(left in without_b for left in without_a)
    return {"add-remove": added, "replace-one": replaced, None: added or replaced}[adjacency]


@pytest.mark.campaign
@settings(max_examples=40, deadline=None)
@given(unit_relations(), st.integers(0, 11))
def test_all_that_is_proposed_is_adjacent_by_the_definition(relation, which):
    pairs = found = small(relation.candidates(), 12)
    if found:
        chosen = found[which % len(found)]
        pairs = [*found, *small(relation.variations(chosen)), *small(relation.smaller(chosen))]
    for pair in pairs:
        (first, place), (second, _) = (rows(relation, side) for side in pair.sides)
        if len(first) <= 60:  # of many records it takes long
            assert adjacent_by_definition(first, second, place, relation.adjacency, relation.at_most, relation.size)


def test_files_without_units_are_read_and_written_as_before():
    written = relation_to_json(records({"person": integers(0, 9)}))
    assert not {"unit", "at_most"} & set(written)
    assert relation_from_json(written).unit is None
    assert not same_relation(relation_from_json(written), records({"person": integers(0, 9)}, unit="person"))
    for unit in (True, "age"):
        with pytest.raises(InvalidNeighbours, match=f"unit={unit!r}"):
            relation_from_json({**written, "unit": unit})


@pytest.mark.parametrize("form", ["list", "array", "dataframe"])
@pytest.mark.parametrize("at_most", [None, 1])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one", None])
def test_contains_is_the_definition_of_all_short_lists(adjacency, at_most, form):
    domain = {"p": integers(0, 2), "x": integers(0, 1)}
    unit, domain = ("p", domain) if form == "dataframe" else (0, tuple(domain.values()))
    relation = records(domain, unit=unit, adjacency=adjacency, at_most=at_most, form=form)
    make = {
        "list": list,
        "array": lambda side: np.array(side, np.int64).reshape(-1, 2),
        "dataframe": lambda side: pd.DataFrame(side, columns=["p", "x"], dtype="int64"),
    }[form]
    lists = [list(one) for n in range(3) for one in product([(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)], repeat=n)]
    more = [(0, 1), (1, 0), (1, 1)]
    longer = [([*more, *end], [more[0], *more]) for end in ([(1, 0)], [(1, 0), (1, 1)], [(2, 0)])]
    for a, b in [*product(lists if form == "list" else lists[::4], lists), *longer]:
        expected = adjacent_by_definition(a, b, 0, adjacency, at_most)
        assert relation.contains(Pair(make(a), make(b))) == expected, (a, b)
        assert relation.contains(Pair(make(b), make(a))) == expected, (a, b)


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
    free = records((integers(1, 1000), integers(0, 99)), unit=0, form="list")
    assert {1, 2, 3, 10, 100} <= {len(of_unit(pair)) for pair in free.candidates()}
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


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("unit", [categories("a"), flags(), integers(0, 3)], ids=str)
def test_pairs_are_proposed_of_few_units(unit, adjacency):
    relation = records({"person": unit, "age": integers(0, 9)}, unit="person", adjacency=adjacency)
    found = list(relation.candidates())
    assert len(found) >= 20
    assert all(map(relation.contains, found))


def test_replaced_units_have_other_records_other_names_and_other_numbers_of_records():
    relation = records((integers(1, 1000), integers(0, 99)), unit=0, at_most=3, adjacency="replace-one", form="list")
    pairs = list(relation.candidates())
    assert {{*dict(pair.data)} == {*dict(pair.neighbour)} for pair in pairs} == {True, False}
    assert any(len(pair.data) != len(pair.neighbour) for pair in pairs)


PEOPLE = pd.DataFrame({"person": [7, 8, 7, 9, 7, 8], "age": [30, 41, 31, 25, 30, 42]})


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_given_data_keep_their_units(adjacency):
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
        without = PEOPLE[PEOPLE.person != 7].reset_index(drop=True)
        assert any(without.equals(side) for pair in found for side in pair.sides)
        assert not relation.contains(Pair(PEOPLE, PEOPLE.iloc[1:]))  # one record of three


def test_data_beyond_the_bound_are_refused():
    domain = {"person": integers(1, 9), "age": integers(0, 99)}
    relation = records(domain, unit="person", at_most=2, form="dataframe")
    for what, do in (
        ("base", lambda: records(domain, unit="person", at_most=2, base=PEOPLE)),
        ("data", lambda: relation.take(PEOPLE)),
        ("data", lambda: list(relation.candidates(PEOPLE))),
    ):
        with pytest.raises(InvalidNeighbours, match=f"{what} holds 3 records of person 7, and at_most=2"):
            do()
    assert not relation.contains(Pair(PEOPLE, PEOPLE[PEOPLE.person != 7].reset_index(drop=True)))


PERSON = {"person": integers(0, 9)}
LOCAL = {"unit": "person", "form": "record", "adjacency": "replace-one", "size": 1}


@pytest.mark.parametrize(
    ("domain", "settings", "named"),
    [
        (PERSON, {"unit": "name"}, r"unit='name' .*; fields: 'person'$"), (PERSON, {"unit": 0}, "unit=0"),
        ((integers(0, 9),), {"unit": 1}, "unit=1 .*; fields: 0$"), ((integers(0, 9),), {"unit": True}, "unit=True"),
        ({"person": integers(0, 9, missing=True)}, {"unit": "person"}, "may be missing"),
        ({"person": (integers(0, 9), flags())}, {"unit": "person"}, "single values"),
        (PERSON, {"unit": "person", "at_most": 0}, "at_most=0"),
        (PERSON, {"unit": "person", "at_most": True}, "at_most=True"), (PERSON, {"at_most": 3}, "at_most=3 .* unit="),
        (PERSON, LOCAL, "leave out unit="),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said_in_one_line(domain, settings, named):
    with pytest.raises(InvalidNeighbours, match=named) as caught:
        records(domain, **settings)
    assert "\n" not in str(caught.value)
