import json
from dataclasses import replace
from itertools import islice, product

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpwitness as dpw
from dpwitness.claims import ApproxDP
from dpwitness.errors import InvalidNeighbours
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import (
    Bits,
    Pair,
    Queries,
    Relation,
    adjacent,
    adjacent_candidates,
    adjacent_unusual,
    adjacent_variations,
    as_finite_numbers,
    bits,
    histogram,
    pairs,
    proposed_pairs,
    queries,
    relation_from_json,
    relation_to_json,
    require_adjacent,
    same_relation,
    smaller,
)
from dpwitness.neighbours.relation import as_relation
from dpwitness.search.objectives import GrowthAt
from dpwitness.targets import target
from drawn import RELATIONS, pair_through_a_file, small
from running import search


def pair_of(data, neighbour):
    return Pair(as_finite_numbers(data), as_finite_numbers(neighbour))


every_kind = pytest.mark.parametrize("kind", RELATIONS)
soon = pytest.mark.parametrize(
    "kind", [kind if kind == "numbers" else pytest.param(kind, marks=pytest.mark.campaign) for kind in RELATIONS]
)


@pytest.mark.campaign
@every_kind
@settings(max_examples=60)
@given(st.data(), st.integers(0, 11), st.sampled_from([0.0, 0.5, 1e6]), st.sampled_from([0.1, 1.0, 20.0]))
def test_all_that_is_proposed_is_adjacent_in_either_direction(kind, data, which, centre, scale):
    relation = data.draw(RELATIONS[kind])
    found = small(relation.candidates(centre=centre, scale=scale))
    assert found or (relation.size == (2, 2) and relation.adjacency == "add-remove")
    pairs = [*found, *small(relation.unusual(centre=centre, scale=scale))]
    if found:
        chosen = found[which % len(found)]
        varied = small(relation.variations(chosen, scale=scale))
        assert len(varied) >= 4 or not isinstance(relation, Queries)
        pairs += varied + small(relation.smaller(chosen))
    for pair in pairs:
        assert relation.contains(pair)
        assert relation.contains(pair.swapped())
        assert not relation.contains(Pair(pair.data, pair.data))


@every_kind
@settings(max_examples=40)
@given(st.data())
def test_relations_and_their_pairs_come_back_from_files(kind, data):
    relation = data.draw(RELATIONS[kind])
    again = relation_from_json(json.loads(json.dumps(relation_to_json(relation), allow_nan=False)))
    assert type(again) is type(relation)
    assert again.to_json() == relation.to_json()
    assert same_relation(again, relation)
    assert str(again) == str(relation)
    assert all(again.contains(pair_through_a_file(pair)) for pair in small(relation.candidates(), 3))


@soon
@settings(max_examples=40)
@given(st.data(), st.integers(0, 30), st.lists(st.integers(0, 30), max_size=15), st.floats(-1e5, 1e5))
def test_a_chain_of_shrinking_steps_ends_and_stays_in_the_relation(kind, data, first, choices, centre):
    relation = data.draw(RELATIONS[kind])
    found = small(relation.candidates(centre=centre))
    if not found:
        return
    pair = found[first % len(found)]
    for choice in choices:
        steps = small(relation.smaller(pair), 30)
        for step in steps:
            assert relation.contains(step)
            if kind == "numbers":
                assert step.data.dtype.kind == step.neighbour.dtype.kind == pair.data.dtype.kind
                assert np.any(step.data != step.neighbour)
                assert getattr(relation, "any_length", False) or step.data.size == pair.data.size
        if not steps:
            break
        pair = steps[choice % len(steps)]


@pytest.mark.parametrize("relation", [queries(), histogram(), bits()], ids=str)
@given(st.lists(st.integers(0, 1), min_size=1, max_size=20) | st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_given_numbers_stand_in_every_pair(relation, values):
    if isinstance(relation, Bits):
        values = [value % 2 for value in values]
    data = as_finite_numbers(values)
    for pair in relation.candidates(data):
        assert relation.contains(pair, data)
        assert pair.data.tolist() == values
        assert not pair.data.flags.writeable
        for one in adjacent_variations(replace(relation, length=len(values)), pair, data):
            assert values in [side.tolist() for side in one.sides]


def test_the_pair_that_earlier_tools_miss_is_among_the_first():
    first = [(p.neighbour - p.data).tolist() for p in list(queries(10).candidates())[:3]]
    assert [1.0] * 9 + [-1.0] in first


@pytest.mark.parametrize(
    ("relation", "shows"),
    [
        (queries(1), lambda answers: answers[0] >= 500), (queries(1), lambda answers: answers[0] <= -50),
        (queries(10), lambda answers: answers[0] > answers[1:].max() + 5),
        (queries(10), lambda answers: np.all(answers == answers[0]) and answers[0] > 20),
        (queries(10), lambda answers: np.flatnonzero(answers == answers.max()).tolist() == [3]),
        (histogram(5), lambda counts: counts[3] == 1 and counts.sum() == 1),
        (bits(10), lambda answers: answers[2] == 1 and answers.sum() == 1),
    ],
)  # fmt: skip
def test_an_unusual_pair_has_a_side_that_no_usual_one_has(relation, shows):
    usual, unusual = (
        [bool(shows(side)) for pair in pairs for side in pair.sides]
        for pairs in (relation.candidates(), relation.unusual())
    )
    assert any(unusual)
    assert not any(usual)
    assert all(map(relation.contains, relation.unusual()))
    assert len({pair.key for pair in relation.unusual()}) == len(list(relation.unusual())) <= 100


def adjacent_by_definition(relation, a, b):
    """The definitions, one number at a time."""
    kinds = {type(x) for x in (*a, *b)}
    if len(a) != len(b) or len(kinds) != 1 or not (relation.any_length or len(a) == relation.length):
        return False
    moves = [y - x for x, y in zip(a, b, strict=True) if x != y]
    kind = relation.to_json()["kind"]
    if kind == "bits":
        return kinds == {int} and len(moves) == 1 and all(x in (0, 1) for x in (*a, *b))
    if kind == "histogram":
        return kinds == {int} and len(moves) == 1 and abs(moves[0]) == 1 and all(x >= 0 for x in (*a, *b))
    return (
        bool(moves)
        and all(abs(move) <= relation.sensitivity + 1e-9 for move in moves)
        and (relation.may_move == "all" or len(moves) == 1)
        and (relation.direction == "any" or len({move > 0 for move in moves}) == 1)
    )


@pytest.mark.parametrize("values", [(-1, 0, 1, 2), (0.0, 0.5, 1.0, 1.1)], ids=["whole", "floats"])
@pytest.mark.parametrize(
    "relation",
    [
        queries(2), queries(2, 0.5), queries(2, 0.1), queries(2, 2), queries(2, may_move="one"),
        queries(2, direction="up"), queries(1, any_length=True), histogram(2), histogram(2, any_length=True), bits(2),
        bits(1, any_length=True),
    ],
    ids=str,
)  # fmt: skip
def test_contains_is_the_definition_of_all_short_lists(relation, values):
    lists = [list(one) for n in (1, 2) for one in product(values, repeat=n)]
    for a, b in product(lists, lists):
        assert relation.contains(pair_of(a, b)) == adjacent_by_definition(relation, a, b), (a, b)
    assert not any(relation.contains(pair_of([0] * n, [1.0] * n)) for n in (1, 2))  # integers are no floats


def test_relations_that_differ_are_not_the_same():
    different = [
        queries(3), queries(4), queries(3, 0.5), queries(3, may_move="one"), queries(3, direction="up"),
        queries(3, any_length=True), bits(3), histogram(3), histogram(3, any_length=True), pairs((0, 1)),
        pairs((0.0, 1.0)),
    ]  # fmt: skip
    for i, first in enumerate(different):
        for k, second in enumerate(different):
            assert same_relation(first, second) == (i == k)
    assert not same_relation(None, queries(3))


@pytest.mark.parametrize(
    ("relation", "data", "pair", "expected"),
    [
        (queries(3), [10.0, 2.0], ([10.0, 2.0], [11.0, 2.0]), True),  # the length is that of the data
        (queries(3), [10.0, 2.0], ([9.0, 2.0], [8.0, 2.0]), False),
        (queries(3), [10, 2], ([10.0, 2.0], [11.0, 2.0]), False),  # integers are no floats
        (queries(3, 0.5), [10, 2], ([10.0, 2.0], [10.5, 2.0]), True),  # half a step from whole numbers
        (queries(1, any_length=True), [10.0, 2.0], ([10.0], [11.0]), False),
        (histogram(2), [10.0, 10.0, 0.0], ([10, 10, 0], [10, 10, 1]), True),
        (histogram(2), [10.5, 10.0, 0.0], ([10, 10, 0], [10, 10, 1]), False),
        (bits(2), [1, 1, 1], ([1, 1, 1], [0, 1, 1]), True),
        (bits(2), [1, 2], ([1, 1], [0, 1]), False),
        (pairs(([1, 2], [1, 3])), [1, 3], ([1, 2], [1, 3]), True),
        (pairs(([1, 2], [1, 3])), [1, 4], ([1, 2], [1, 3]), False),
    ],
)
def test_a_pair_holds_the_given_data(relation, data, pair, expected):
    assert relation.contains(pair_of(*pair), as_finite_numbers(data)) is expected


@pytest.mark.parametrize(
    ("relation", "pair"),
    [
        (bits(3), ([0, 0, 0], [-1, 0, 0])),
        (histogram(3), ([0, 0, -10], [0, 0, -9])),
        (histogram(1), ([2**62], [2**62 + 2])),  # apart by two, which doubles of that size do not show
        (queries(1), ([1e17], [1e17 + 16])),  # the next double is sixteen sensitivities away
        (queries(1), ([-(2**63)], [2**63 - 1])),
        (queries(2), ([[0.0, 1.0]], [[1.0, 1.0]])),
        (queries(1), ([0.0], [1 + 1e-8])),
        (pairs(([1], [2])), ([1.0], [2.0])),
    ],
)
def test_what_no_claim_calls_adjacent(relation, pair):
    pair = pair_of(*pair)
    assert not relation.contains(pair)
    with pytest.raises(InvalidNeighbours, match="calls neighbouring"):
        require_adjacent(relation, pair)


def test_rounding_moves_no_pair_out_of_a_relation():
    assert queries(1).contains(pair_of([0.1], [0.1 + 1.0]))
    coarse = pair_of([1e8], [1e8 + 0.2])
    assert float(coarse.neighbour[0] - coarse.data[0]) > 0.2 * (1 + 1e-9)  # doubles of that size are 1.5e-8 apart
    assert queries(1, 0.2).contains(coarse)
    # Nearer to zero doubles hold the difference exactly, and it is too large.
    assert all(map(queries(1, 0.2).contains, queries(1, 0.2).smaller(coarse)))
    assert queries(1).contains(pair_of([1e15], [1e15 + 1]))
    with_nan = Pair(np.array([np.nan]), np.array([0.0]))
    assert not queries(1).contains(with_nan)


def test_whole_data_stay_whole_for_queries():
    for pair in queries(2).candidates(as_finite_numbers([10, 3])):
        assert pair.data.dtype.kind == pair.neighbour.dtype.kind == "i"
    assert all(pair.data.dtype.kind == "f" for pair in queries(2, 0.5).candidates(as_finite_numbers([10, 3])))


class Foreign(Relation):
    """A relation as another package may write it, without a word on what is adjacent."""

    noun = "value"

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        yield pair_of([0.0], [1.0])

    def variations(self, pair, *, scale=1.0):
        yield pair_of([5.0], [6.0])


class Straying(Foreign):
    """Says that only pairs one apart are adjacent, and proposes others."""

    def __init__(self, first):
        self.first = first

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        return iter([pair_of([0.0], [1.0]), pair_of([0.0], self.first)])

    def variations(self, pair, *, scale=1.0):
        return iter([pair_of([0.0], [20.0])])

    def unusual(self, *, centre=0.0, scale=1.0):
        return iter([pair_of([0.0], [50.0]), pair_of([7.0], [8.0])])

    def smaller(self, pair):
        return iter([pair_of([0.0], [0.5]), pair_of([0.0], [1.0])])

    def contains(self, pair, data=None):
        return abs(float(pair.data[0] - pair.neighbour[0])) == 1


def test_two_relations_without_json_are_not_taken_for_the_same():
    relation = Foreign()
    assert same_relation(relation, relation)
    assert not same_relation(relation, Straying([1.0]))


def test_pairs_of_a_foreign_relation_that_leave_it_are_not_tried():
    relation = Foreign()  # of which only its own candidates are known to be adjacent
    (only,) = adjacent_candidates(relation)
    assert adjacent(relation, only.swapped())
    assert not [*adjacent_variations(relation, only), *smaller(relation, only)]
    assert relation_to_json(relation) is None
    relation, pair = Straying([1.0]), pair_of([3.0], [4.0])
    assert [pair.data.tolist() for pair in adjacent_unusual(relation)] == [[7.0]]
    assert not list(adjacent_variations(relation, pair))
    assert [step.neighbour.tolist() for step in smaller(relation, pair)] == [[1.0]]
    assert not list(smaller(relation, pair, pair.data))


@pytest.mark.parametrize("first", ["smaller", "larger"])
def test_a_relation_of_one_direction_is_not_believed(first):
    class OneWay(Foreign):
        def contains(self, pair, data=None):
            return bool(pair.data[0] < pair.neighbour[0])

    pair = pair_of([0.0], [1.0]) if first == "smaller" else pair_of([1.0], [0.0])
    with pytest.raises(InvalidNeighbours, match=r"the pair \[1.\] and \[0.\] is not one that"):
        require_adjacent(OneWay(), pair)


PAIR = pair_of([0.0], [1.0])
CALLS = {
    "candidates": proposed_pairs,
    "contains": lambda relation: [adjacent(relation, PAIR)],
    "variations": lambda relation: adjacent_variations(relation, PAIR),
    "smaller": lambda relation: smaller(relation, PAIR),
}


def with_method(name, function):
    """A relation of another package of which one method is this one, whatever it is given."""
    return type("Mine", (Foreign,), {name: lambda self, *given, **settings: function()})()


@pytest.mark.parametrize("method", CALLS)
def test_what_a_foreign_relation_raises_or_gives_is_told_with_its_method(method):
    wrong = {"raised KeyError: 'age'$": lambda: {}["age"]}
    if method != "contains":  # which gives no pairs
        wrong[r"gave \[0.0\], which must be a "] = lambda: ([0.0], [1.0])
        wrong["raised TypeError: 'NoneType'"] = lambda: None
    for told, give in wrong.items():
        with pytest.raises(InvalidNeighbours, match=rf"^neighbours=<.*Mine object>: its {method} {told}"):
            list(CALLS[method](with_method(method, give)))
    if method in ("candidates", "contains"):
        relation = with_method(method, lambda: {}["age"])
        with pytest.raises(InvalidNeighbours, match=f"its {method} raised KeyError"):
            dpw.check(leak, claim=1.0, neighbours=relation, search_runs=2_000, runs=200, seed=1)


def leak(rng, value, size):
    """Whether the numbers are far apart shows at once; one apart shows nothing."""
    return np.trunc(value[0] / 10) + 10 * (rng.random(size) < 0.5)


def test_candidates_outside_a_relation_are_an_error_and_variations_are_not_tried():
    def searched(relation):
        mechanism = as_mechanism(leak, as_finite_numbers([0.0]))
        return search(mechanism, relation, GrowthAt(claim=ApproxDP(1.0)), seed=1, budget=2_000)

    found, _ = searched(Straying([-1.0]))
    assert {arm.pair.neighbour.tolist()[0] for arm in found} <= {1.0, -1.0, 8.0}
    with pytest.raises(InvalidNeighbours, match=r"the candidate \[0.\] and \[30.\] is not one"):
        searched(Straying([30.0]))


def test_an_attack_stays_in_the_relation_of_its_target():
    relation = queries(10, may_move="one", any_length=True)

    @target(claim="epsilon", neighbours=relation, source="made up", attack="threshold_testing.gptt_chen")
    def thresholds(rng, queries, epsilon, threshold=0.5, sensitivity=1.0):
        return 1.0 * (queries[0] + rng.laplace(0, 2 / epsilon) >= threshold)

    with pytest.raises(InvalidNeighbours, match=r"the attack's candidate .* calls neighbouring"):
        dpw.check(thresholds, epsilon=1.0, seed=1, runs=50_000)


THREE = queries(3).to_json()


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (None, "kind"), ({"kind": ["queries"]}, "kind"), ({"kind": "os:system"}, "'os:system' is unknown"),
        ({"kind": "queries"}, "length"), (THREE | {"length": 0}, "length=0"), (THREE | {"length": 3.0}, "length=3.0"),
        (THREE | {"sensitivity": "1"}, "sensitivity='1'"), (THREE | {"sensitivity": 1e999}, "sensitivity=inf"),
        (THREE | {"may_move": []}, "may_move="), (THREE | {"direction": None}, "direction=None"),
        (THREE | {"any_length": 1}, "any_length=1"), (THREE | {"more": 3}, "length"),
        (bits(3).to_json() | {"length": 10**16}, "length=1000.* is too large for .* of memory"),
        *(({"kind": "pairs", "noun": "value", "given": given}, named) for given, named in (
            ({}, "given={}"), ([[1, 2], 3], "given=3"), ([[[1], ["2"]]], "numbers only"), ([], "no pair"),
            ([[1, {"bytes": "?"}]], "bytes"))),
        ({"kind": "pairs", "given": [[1, 2]], "noun": {}}, "noun={}"),
    ],
)  # fmt: skip
def test_relations_in_a_file_are_not_trusted(value, named):
    with pytest.raises(InvalidNeighbours, match=named):
        relation_from_json(value)


def test_what_are_no_numbers_of_64_bits_is_refused_in_one_short_line():
    deep = []
    for _ in range(3_000):
        deep = [deep]
    beyond = [2**63], [2**63, -1], [2**64], [1, [2**70]], 2**63, np.array([2**63], np.uint64), 10**5000
    for values in (*beyond, [1.0, float("nan")], np.full((50, 50), np.nan), "long" * 1000, deep):
        with pytest.raises(InvalidNeighbours, match="must") as caught:
            as_finite_numbers(values)
        assert len(str(caught.value)) < 200
        assert "\n" not in str(caught.value)


def test_the_largest_whole_numbers_are_kept():
    assert as_finite_numbers([2**63 - 1, -(2**63)]).tolist() == [2**63 - 1, -(2**63)]
    assert as_finite_numbers([2.0**63]).tolist() == [2.0**63]
    for pair in islice(histogram().candidates(as_finite_numbers([2**63 - 1])), 3):
        assert pair.neighbour.tolist() == [2**63 - 2]


#: By what is named of it.
SENSELESS = {
    "length=0": lambda: queries(0), "length=-1": lambda: histogram(-1), "sensitivity=0.0": lambda: queries(3, 0.0),
    "may_move='some'": lambda: queries(3, may_move="some"), "direction='down'": lambda: queries(3, direction="down"),
    "any_length='no'": lambda: queries(3, any_length="no"), "no pair": lambda: pairs(),
    "inputs, not 'ab'": lambda: pairs("ab"), "inputs, not {'a': 1}": lambda: pairs({"a": 1}),
    "inputs, not 3": lambda: pairs(([1], [2], [3])), "cannot be copied": lambda: pairs((iter([1]), (x for x in [1]))),
    "are the same": lambda: pairs(([1], np.array([1]))),
    "numbers only": lambda: queries().take([1, "a"]), "of one depth": lambda: queries().take([1, [2]]),
    "not 1.5": lambda: list(histogram().candidates(np.array([1.5]))),
    "not -1": lambda: list(histogram().candidates(np.array([-1]))),
    r"not 9.22337e\+18": lambda: list(histogram().candidates(np.array([2.0**63]))),
    "zeros and ones": lambda: list(bits().candidates(np.array([2]))),
    "one answer": lambda: list(queries().candidates(np.zeros((2, 2)))),
    "either pairs or data": lambda: list(pairs(([1], [2])).candidates(np.array([1]))),
    r"give pairs\(\(\[1, 1\], \[1\]\)\)": lambda: as_relation(([1, 1], [1])),
    r"give dpw\.records\(dpw\.like\(frame\)\)": lambda: as_relation(pandas.DataFrame({"age": [1, 2]})),
}  # fmt: skip


@pytest.mark.parametrize("named", SENSELESS)
def test_what_makes_no_sense_is_refused_by_name(named):
    with pytest.raises(InvalidNeighbours, match=named):
        SENSELESS[named]()
