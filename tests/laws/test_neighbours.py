import json
from itertools import islice, product

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpwitness as dpw
from dpwitness.claims import ApproxDP
from dpwitness.errors import InvalidData, InvalidNeighbours
from dpwitness.files import read_column, write_atomically
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import (
    Pair,
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
from dpwitness.neighbours.records import Records
from dpwitness.neighbours.relation import as_relation
from dpwitness.search.objectives import GrowthAt
from running import search

everything = st.builds(
    queries,
    st.integers(1, 12),
    st.sampled_from([1.0, 0.5, 3.0]),
    st.sampled_from(["all", "one"]),
    st.sampled_from(["any", "up"]),
)


@pytest.mark.campaign
@given(everything, st.sampled_from([0.0, 0.5, 100.0]), st.sampled_from([0.1, 1.0, 20.0]))
def test_all_pairs_of_queries_are_neighbours(relation, centre, scale):
    found = list(relation.candidates(centre=centre, scale=scale))
    found += [v for pair in found for v in relation.variations(pair, scale=scale)]
    found += list(relation.unusual(centre=centre, scale=scale))[::7]
    assert found
    for pair in found:
        move = pair.neighbour - pair.data
        assert pair.data.shape == pair.neighbour.shape == (relation.length,)
        assert np.max(np.abs(move)) <= relation.sensitivity + 1e-9
        assert np.any(move != 0)
        assert not pair.data.flags.writeable
        if relation.may_move == "one":
            assert np.count_nonzero(move) == 1
        if relation.direction == "up":
            assert np.all(move >= 0) or np.all(move <= 0)


def test_the_pair_that_earlier_tools_miss_is_among_the_first():
    first = [(p.neighbour - p.data).tolist() for p in list(queries(10).candidates())[:3]]
    assert [1.0] * 9 + [-1.0] in first


@pytest.mark.parametrize(
    ("relation", "shows"),
    [
        (queries(1), lambda answers: answers[0] >= 500),
        (queries(1), lambda answers: answers[0] <= -50),
        (queries(1), lambda answers: 0 < answers[0] < 0.02),
        (queries(1), lambda answers: answers[0] == 99),
        (queries(10), lambda answers: answers[0] > answers[1:].max() + 5),
        (queries(10), lambda answers: np.all(np.diff(answers) > 0.5)),
        (queries(10), lambda answers: np.all(answers == answers[0]) and answers[0] > 20),
        (queries(10), lambda answers: np.flatnonzero(answers == answers.max()).tolist() == [3]),
        (histogram(5), lambda counts: counts[0] >= 500),
        (histogram(5), lambda counts: counts[0] == 99),
        (histogram(5), lambda counts: counts.sum() == 1000),
        (histogram(5), lambda counts: counts[3] == 1 and counts.sum() == 1),
        (bits(10), lambda answers: answers[2] == 1 and answers.sum() == 1),
    ],
)
def test_an_unusual_pair_has_a_side_that_no_usual_one_has(relation, shows):
    usual, unusual = (
        [bool(shows(side)) for pair in pairs for side in pair.sides]
        for pairs in (relation.candidates(), relation.unusual())
    )
    assert any(unusual)
    assert not any(usual)
    assert all(map(relation.contains, relation.unusual()))
    assert len({pair.key for pair in relation.unusual()}) == len(list(relation.unusual())) <= 100


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_histograms_differ_by_one_person(counts):
    for pair in histogram().candidates(np.array(counts)):
        assert np.sum(np.abs(pair.neighbour - pair.data)) == 1
        assert np.all(pair.neighbour >= 0)
        assert pair.data.tolist() == counts


@given(st.lists(st.integers(0, 1), min_size=1, max_size=20))
def test_bits_differ_in_one(given_bits):
    for pair in bits().candidates(np.array(given_bits)):
        assert np.sum(pair.neighbour != pair.data) == 1


def test_given_data_stands_in_every_pair():
    data = np.array([3.0, 1.0, 4.0])
    assert all(pair.data.tolist() == [3, 1, 4] for pair in queries().candidates(data))


small_lengths = st.integers(1, 6)
flags = st.booleans()
judges = st.one_of(
    st.builds(
        queries,
        small_lengths,
        st.sampled_from([1.0, 1, 0.5, 3.0, 0.1]),
        st.sampled_from(["all", "one"]),
        st.sampled_from(["any", "up"]),
        any_length=flags,
    ),
    st.builds(histogram, small_lengths, any_length=flags),
    st.builds(bits, small_lengths, any_length=flags),
    st.sampled_from([pairs(([1, 1], [2, 0]), ([0.5], [1.5])), pairs((3, 4)), pairs(([[1, 2]], [[1, 3]]))]),
)
given_data = st.one_of(
    st.none(),
    st.lists(st.integers(0, 1), min_size=1, max_size=5),
    st.lists(st.integers(-3, 12), min_size=1, max_size=5),
    st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=5),
)


def proposals(relation, data, centre, scale):
    """All that a relation proposes; nothing where it takes no such data."""
    try:
        return list(relation.candidates(data, centre=centre, scale=scale))
    except InvalidNeighbours:
        return []


@pytest.mark.campaign
@given(judges, given_data, st.sampled_from([0.0, 0.5, 1e6]), st.sampled_from([0.1, 1.0, 20.0]))
def test_what_a_relation_proposes_is_adjacent_and_holds_the_data(relation, values, centre, scale):
    data = None if values is None else as_finite_numbers(values)
    found = proposals(relation, data, centre, scale)
    assert found or data is not None
    found += [varied for pair in found[:6] for varied in adjacent_variations(relation, pair, data, scale=scale)]
    for pair in found:
        assert relation.contains(pair, data)
        assert relation.contains(pair.swapped(), data)
        if data is None:
            assert np.size(pair.data) == getattr(relation, "length", np.size(pair.data))
        else:
            assert any(side.tolist() == data.tolist() for side in (pair.data, pair.neighbour))


@pytest.mark.campaign
@given(everything, st.sampled_from([0.0, 0.5, 1e6]), st.sampled_from([0.1, 1.0, 20.0]))
def test_without_data_every_variation_of_queries_is_adjacent(relation, centre, scale):
    for pair in relation.candidates(centre=centre, scale=scale):
        varied = list(relation.variations(pair, scale=scale))
        assert len(varied) >= 4
        assert all(map(relation.contains, varied))


@given(judges, st.integers(0, 40), st.lists(st.integers(0, 30), max_size=15), st.floats(-1e5, 1e5))
def test_a_chain_of_shrinking_steps_stays_in_the_relation(relation, first, choices, centre):
    found = list(relation.candidates(centre=centre))
    pair = found[first % len(found)]
    kind, length = np.asarray(pair.data).dtype.kind, np.size(pair.data)
    for choice in choices:
        steps = list(relation.smaller(pair))
        for step in steps:
            assert relation.contains(step)
            assert step.data.dtype.kind == step.neighbour.dtype.kind == kind
            assert np.any(step.data != step.neighbour)
            if not getattr(relation, "any_length", False):
                assert step.data.size == length
        if not steps:
            break
        pair = steps[choice % len(steps)]


#: Small numbers of either kind, so that adjacent pairs are not rare.
entries = st.one_of(
    st.lists(st.integers(-1, 3), min_size=1, max_size=3),
    st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.1, 2.0, 3.0]), min_size=1, max_size=3),
)


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


@given(judges.filter(lambda relation: hasattr(relation, "length")), entries, entries)
def test_contains_is_the_definition(relation, a, b):
    pair = Pair(as_finite_numbers(a), as_finite_numbers(b))
    assert relation.contains(pair) == relation.contains(pair.swapped()) == adjacent_by_definition(relation, a, b)


@st.composite
def moved_lists(draw):
    """A list and one that lies a small move away in a few entries: two lists drawn by themselves rarely do."""
    a = draw(entries)
    steps = st.sampled_from([-1, 0, 1, 2] if isinstance(a[0], int) else [-1.0, -0.5, 0.0, 0.5, 1.0, 1.1])
    return a, [x + draw(steps) for x in a]


@pytest.mark.parametrize("values", [(-1, 0, 1, 2), (0.0, 0.5, 1.0, 1.1)], ids=["whole", "floats"])
@pytest.mark.parametrize(
    "relation",
    [
        queries(2), queries(2, 0.5), queries(2, may_move="one"), queries(2, direction="up"),
        queries(1, any_length=True), histogram(2), histogram(2, any_length=True), bits(2), bits(1, any_length=True),
    ],
    ids=str,
)  # fmt: skip
def test_contains_is_the_definition_of_all_short_lists(relation, values):
    lists = [list(one) for n in (1, 2) for one in product(values, repeat=n)]
    for a, b in product(lists, lists):
        assert relation.contains(pair_of(a, b)) == adjacent_by_definition(relation, a, b), (a, b)
    assert not any(relation.contains(pair_of([0] * n, [1.0] * n)) for n in (1, 2))  # integers are no floats


@pytest.mark.campaign
@given(judges.filter(lambda relation: hasattr(relation, "length")), moved_lists())
def test_contains_is_the_definition_near_its_borders(relation, lists):
    a, b = lists
    pair = Pair(as_finite_numbers(a), as_finite_numbers(b))
    assert relation.contains(pair) == relation.contains(pair.swapped()) == adjacent_by_definition(relation, a, b)


@pytest.mark.parametrize(
    ("relation", "a", "b"),
    [
        (histogram(3), [1, 2, 3], [2, 3, 3]),  # one person more in each of two cells
        (histogram(3), [1, 2, 3], [2, 1, 3]),
        (histogram(3), [1, 2, 3], [3, 2, 3]),
        (queries(2, direction="up"), [1.0, 1.0], [2.0, 0.5]),
        (queries(3, direction="up"), [1.0, 1.0, 1.0], [2.0, 1.0, 0.5]),
        (queries(2, may_move="one"), [1.0, 1.0], [2.0, 1.5]),
        (bits(3), [0, 1, 1], [1, 0, 1]),
    ],
)
def test_nearly_adjacent_is_not_adjacent(relation, a, b):
    pair = Pair(as_finite_numbers(a), as_finite_numbers(b))
    assert not relation.contains(pair)
    assert not relation.contains(pair.swapped())


@given(judges)
def test_a_relation_comes_back_from_json(relation):
    written = json.loads(json.dumps(relation.to_json(), allow_nan=False))
    again = relation_from_json(written)
    assert type(again) is type(relation)
    assert again.to_json() == relation.to_json()
    assert same_relation(again, relation)
    assert str(again) == str(relation)
    assert all(map(again.contains, relation.candidates()))


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


def pair_of(data, neighbour):
    return Pair(as_finite_numbers(data), as_finite_numbers(neighbour))


@pytest.mark.parametrize(
    ("relation", "data", "pair", "expected"),
    [
        (queries(3), [10.0, 2.0], ([10.0, 2.0], [11.0, 2.0]), True),  # the length is that of the data
        (queries(3), [10.0, 2.0], ([11.0, 2.0], [10.0, 2.0]), True),
        (queries(3), [10.0, 2.0], ([9.0, 2.0], [8.0, 2.0]), False),
        (queries(3), [10, 2], ([10, 2], [11, 2]), True),
        (queries(3), [10, 2], ([10.0, 2.0], [11.0, 2.0]), False),  # integers are no floats
        (queries(3, 0.5), [10, 2], ([10.0, 2.0], [10.5, 2.0]), True),  # half a step from whole numbers
        (queries(1, any_length=True), [10.0, 2.0], ([10.0], [11.0]), False),
        (histogram(2), [10, 10, 0], ([10, 10, 0], [10, 10, 1]), True),
        (histogram(2), [10.0, 10.0, 0.0], ([10, 10, 0], [10, 10, 1]), True),
        (histogram(2), [10.5, 10.0, 0.0], ([10, 10, 0], [10, 10, 1]), False),
        (histogram(2), [10, 10, 0], ([9, 10, 0], [9, 10, 1]), False),
        (bits(2), [1, 1, 1], ([1, 1, 1], [0, 1, 1]), True),
        (bits(2), [1, 1, 1], ([1, 1], [0, 1]), False),
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


def test_of_a_foreign_relation_only_its_own_candidates_are_known_to_be_adjacent():
    relation = Foreign()
    (only,) = adjacent_candidates(relation)
    assert adjacent(relation, only.swapped())
    assert not list(adjacent_variations(relation, only))
    assert not list(smaller(relation, only))
    assert relation_to_json(relation) is None


class Straying(Foreign):
    """Says that only pairs one apart are adjacent, and proposes others."""

    def __init__(self, first):
        self.first = first

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        yield pair_of([0.0], [1.0])
        yield pair_of([0.0], self.first)

    def variations(self, pair, *, scale=1.0):
        yield pair_of([0.0], [20.0])

    def smaller(self, pair):
        yield pair_of([0.0], [0.5])
        yield pair_of([0.0], [1.0])

    def contains(self, pair, data=None):
        return abs(float(pair.data[0] - pair.neighbour[0])) == 1


@pytest.mark.parametrize("first", ["smaller", "larger"])
def test_a_relation_of_one_direction_is_not_believed(first):
    class OneWay(Foreign):
        def contains(self, pair, data=None):
            return bool(pair.data[0] < pair.neighbour[0])

    pair = pair_of([0.0], [1.0]) if first == "smaller" else pair_of([1.0], [0.0])
    with pytest.raises(InvalidNeighbours, match=r"the pair \[1.\] and \[0.\] is not one that"):
        require_adjacent(OneWay(), pair)


def test_unusual_pairs_of_a_foreign_relation_that_leave_it_are_not_tried():
    class Unusual(Straying):
        def unusual(self, *, centre=0.0, scale=1.0):
            yield pair_of([0.0], [50.0])
            yield pair_of([7.0], [8.0])

    assert [pair.data.tolist() for pair in adjacent_unusual(Unusual([1.0]))] == [[7.0]]


def test_numbers_in_another_shape_are_another_input():
    assert len(Pair(np.zeros(4), np.zeros((2, 2))).key) == 2
    assert len(Pair(np.zeros(4), np.zeros(4)).key) == 1


def test_steps_of_a_foreign_relation_that_leave_it_are_not_taken():
    relation, pair = Straying([1.0]), pair_of([3.0], [4.0])
    assert [step.neighbour.tolist() for step in smaller(relation, pair)] == [[1.0]]
    assert not list(smaller(relation, pair, pair.data))


def test_pairs_of_records_are_not_judged_again(monkeypatch):
    judged, contains = [], Records.contains
    monkeypatch.setattr(Records, "contains", lambda self, pair, data=None: judged.append(pair) or contains(self, pair))

    relation = dpw.records(dpw.numbers(0, 1), form="list")
    pair = max(adjacent_candidates(relation), key=lambda pair: len(pair.data))
    steps = [*adjacent_variations(relation, pair), *smaller(relation, pair)]
    assert not judged
    assert {step.label for step in steps} > {"shrunk", "as the first record"}
    assert all(contains(relation, step) for step in steps)


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
def test_what_a_foreign_relation_raises_is_told_with_its_method(method):
    relation = with_method(method, lambda: {}["age"])
    with pytest.raises(InvalidNeighbours, match=rf"^neighbours=<.*Mine object>: its {method} raised KeyError: 'age'$"):
        list(CALLS[method](relation))


@pytest.mark.parametrize("method", [name for name in CALLS if name != "contains"])
@pytest.mark.parametrize(
    ("given", "told"), [(([0.0], [1.0]), r"gave \[0.0\], which must be a "), (None, "raised TypeError: 'NoneType'")]
)
def test_what_a_foreign_relation_gives_must_be_pairs(method, given, told):
    with pytest.raises(InvalidNeighbours, match=rf"its {method} {told}"):
        list(CALLS[method](with_method(method, lambda: given)))


@pytest.mark.parametrize("method", ["candidates", "contains"])
def test_a_check_with_a_relation_that_raises_ends_in_one_line(method):
    relation = with_method(method, lambda: 1 / 0)
    with pytest.raises(InvalidNeighbours, match=f"its {method} raised ZeroDivisionError: division by zero"):
        dpw.check(leak, claim=1.0, neighbours=relation, search_runs=2_000, runs=200, seed=1)


def leak(rng, value, size):
    """Whether the numbers are far apart shows at once; one apart shows nothing."""
    return np.trunc(value[0] / 10) + 10 * (rng.random(size) < 0.5)


def searched(relation):
    mechanism = as_mechanism(leak, as_finite_numbers([0.0]))
    return search(mechanism, relation, GrowthAt(claim=ApproxDP(1.0)), seed=1, budget=2_000)


def test_candidates_outside_a_relation_are_an_error_and_variations_are_not_tried():
    found, _ = searched(Straying([-1.0]))
    assert {arm.pair.neighbour.tolist()[0] for arm in found} <= {1.0, -1.0}
    with pytest.raises(InvalidNeighbours, match=r"the candidate \[0.\] and \[30.\] is not one"):
        searched(Straying([30.0]))


def test_an_attack_stays_in_the_relation_of_its_target():
    from dpwitness.claims import ApproxDP
    from dpwitness.neighbours import Queries
    from dpwitness.reconstruction.threshold_testing import candidates as threshold
    from dpwitness.targets import target

    relation = queries(10, may_move="one", any_length=True)

    @target(claim="epsilon", neighbours=relation, source="made up", attack="threshold_testing.gptt_chen")
    def thresholds(rng, queries, epsilon, threshold=0.5, sensitivity=1.0):
        return 1.0 * (queries[0] + rng.laplace(0, 2 / epsilon) >= threshold)

    with pytest.raises(InvalidNeighbours, match=r"the attack's candidate .* calls neighbouring"):
        dpw.check(thresholds, epsilon=1.0, seed=1, runs=50_000)
    (first, *_) = threshold.gptt_chen(
        {"epsilon": 1.0, "threshold": 0.5, "sensitivity": 1.0}, None, ApproxDP(epsilon=1.0), 1000
    )
    assert Queries(10, any_length=True).contains(first.pair)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "an object whose kind is one of"),
        ({"kind": ["queries"]}, "an object whose kind is one of"),
        ({"kind": "os:system"}, "relation kind 'os:system' is unknown: import the module that registers it"),
        ({**queries(3).to_json(), "length": 0}, "length=0 must be"),
        ({**queries(3).to_json(), "length": True}, "length=True must be"),
        ({**queries(3).to_json(), "length": 3.0}, "length=3.0 must be"),
        ({**queries(3).to_json(), "sensitivity": "1"}, "sensitivity='1' must be"),
        ({**queries(3).to_json(), "sensitivity": 1e999}, "sensitivity=inf must be"),
        ({**queries(3).to_json(), "may_move": []}, "may_move="),
        ({**queries(3).to_json(), "direction": None}, "direction=None"),
        ({**queries(3).to_json(), "any_length": 1}, "any_length=1 must be true or false"),
        ({**queries(3).to_json(), "noun": 3}, "noun=3 must be a text"),
        ({**queries(3).to_json(), "more": 3}, "a relation of kind queries holds length"),
        ({"kind": "queries"}, "a relation of kind queries holds length"),
        ({**histogram(3).to_json(), "any_length": None}, "any_length=None"),
        ({**bits(3).to_json(), "length": 10**16}, "length=1000.* is too large for .* of memory: give at most"),
        ({**bits(3).to_json(), "length": 10**400}, r"length=1000.* must be a whole number below 2\^63"),
        ({**bits(3).to_json(), "length": {}}, "length={} must be"),
        ({"kind": "pairs", "given": {}, "noun": "value"}, "given={} must be a list"),
        ({"kind": "pairs", "given": [[1, 2], 3], "noun": "value"}, "given=3 must be a list"),
        ({"kind": "pairs", "given": [[[1], ["2"]]], "noun": "value"}, "must hold numbers only"),
        ({"kind": "pairs", "given": [[1, {"bytes": "?"}]], "noun": "value"}, "bytes"),
        ({"kind": "pairs", "given": [], "noun": "value"}, "no pair"),
        ({"kind": "pairs", "given": [[1, 2]], "noun": {}}, "noun={} must be a text"),
    ],
)
def test_relations_in_a_file_are_not_trusted(value, message):
    with pytest.raises(InvalidNeighbours, match=message):
        relation_from_json(value)


@pytest.mark.parametrize("values", [[2**63], [2**63, -1], [2**64], [1, [2**70]], 2**63, np.array([2**63], np.uint64)])
def test_whole_numbers_beyond_64_bits_are_refused(values):
    with pytest.raises(InvalidNeighbours, match="must"):
        as_finite_numbers(values)


def test_messages_are_one_short_line_whatever_was_given():
    deep = []
    for _ in range(3_000):
        deep = [deep]
    for values in (deep, np.full((50, 50), np.nan), "long" * 1000, 10**5000):
        with pytest.raises(InvalidNeighbours) as caught:
            as_finite_numbers(values)
        assert len(str(caught.value)) < 200
        assert "\n" not in str(caught.value)


def test_the_largest_whole_numbers_are_kept():
    assert as_finite_numbers([2**63 - 1, -(2**63)]).tolist() == [2**63 - 1, -(2**63)]
    assert as_finite_numbers([2.0**63]).tolist() == [2.0**63]
    for pair in islice(histogram().candidates(as_finite_numbers([2**63 - 1])), 3):
        assert pair.neighbour.tolist() == [2**63 - 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: queries(0), "length=0 must be a whole number"),
        (lambda: queries(3, 0.0), "sensitivity=0.0 must be positive"),
        (lambda: queries(3, float("nan")), "sensitivity=nan must be positive"),
        (lambda: queries(3, may_move="some"), "may_move='some'"),
        (lambda: queries(3, direction="down"), "direction='down'"),
        (lambda: histogram(-1), "length=-1"),
        (lambda: bits(1.5), "length=1.5"),
        (lambda: queries("3"), "length='3'"),
        (lambda: queries(3, "1"), "sensitivity='1' must be positive"),
        (lambda: queries(3, 10**400), "sensitivity=1000"),
        (lambda: queries(3, True), "sensitivity=True must be positive"),
        (lambda: queries(3, any_length="no"), "any_length='no' must be True or False"),
        (lambda: histogram(True), "length=True"),
        (lambda: bits(None), "length=None"),
        (lambda: pairs(), "no pair"),
        (lambda: pairs(5), "a pair is two inputs, not 5"),
        (lambda: pairs("ab"), "a pair is two inputs, not 'ab'"),
        (lambda: pairs(None), "a pair is two inputs, not None"),
        (lambda: pairs({"a": 1}), "a pair is two inputs, not {'a': 1}"),
        (lambda: pairs((iter([1]), (value for value in [1]))), "cannot be copied"),
        (lambda: pairs((["a", None], ["a", None])), "both inputs are the same"),
        (lambda: pairs(([1], np.array([1]))), "both inputs are the same"),
        (lambda: pairs((np.array([1]), np.array([1.0]))), "both inputs are the same"),
        (lambda: pairs(([1, 1], [1, 1])), "both inputs are the same"),
        (lambda: pairs(([1], [2], [3])), "a pair is two inputs, not 3"),
        (lambda: queries().take([1, "a"]), "must hold numbers only"),
        (lambda: queries().take([1, [2]]), "a list of numbers of one depth"),
        (lambda: as_finite_numbers([1.0, float("nan")]), "finite numbers only"),
        (lambda: list(histogram().candidates(np.array([1.5]))), "whole counts of at least 0, not 1.5"),
        (lambda: list(histogram().candidates(np.array([-1]))), "whole counts of at least 0, not -1"),
        (lambda: list(bits().candidates(np.array([2]))), "zeros and ones"),
        (lambda: list(queries().candidates(np.zeros((2, 2)))), "list of at least one answer"),
        (lambda: list(pairs(([1], [2])).candidates(np.array([1]))), "either pairs or data"),
    ],
)
def test_bad_relations(make, message):
    with pytest.raises(InvalidNeighbours, match=message):
        make()


@pytest.mark.parametrize(
    ("content", "column", "expected"),
    [
        ("1\n2\n3\n", None, [1, 2, 3]),
        ("count\n1\n2.5\n", None, [1.0, 2.5]),
        ("age,count\n10,4\n11,0\n", None, [4, 0]),
        ("age,count\n10,4\n11,0\n", "age", [10, 11]),
        ("a;b\n1\n", None, [1]),
        ("\ufeffvalue\n1\n\n2\n", None, [1, 2]),
        ("a,b\n1,2\n", None, [2]),
    ],
)
def test_columns(tmp_path, content, column, expected):
    path = tmp_path / "d.csv"
    path.write_text(content, encoding="utf-8")
    found = read_column(path, column)
    assert found.tolist() == expected
    assert found.dtype.kind == ("i" if all(isinstance(x, int) for x in expected) else "f")


@pytest.mark.parametrize(
    ("content", "column", "message"),
    [
        ("", None, "is empty"),
        ("count\n", None, "no number below the header"),
        ("count\n1\nmany\n", None, "line 3: 'many' is not a finite number"),
        ("count\n1\nnan\n", None, "line 3: 'nan' is not a finite number"),
        ("a,count\n1,\n", None, "line 2: there is no value"),
        ("a,count\n1\n", "count", "line 2: there is no value"),
        ("a,b\n1,2\n", "c", "no column 'c'; its columns: a, b"),
        ("1\n2\n", "c", "the file has no header line"),
    ],
)
def test_bad_columns(tmp_path, content, column, message):
    path = tmp_path / "d.csv"
    path.write_text(content)
    with pytest.raises(InvalidData, match=message):
        read_column(path, column)


def test_writing_leaves_the_old_file_when_it_fails(tmp_path):
    path = tmp_path / "out.txt"
    write_atomically(path, "old")
    with pytest.raises(TypeError):
        write_atomically(path, object())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InvalidData, match="cannot write"):
        write_atomically(tmp_path / "nowhere" / "out.txt", "x")


@pytest.mark.parametrize(
    ("relation", "meant"),
    [
        (([1, 1], [1]), r"give pairs\(\(\[1, 1\], \[1\]\)\)"),
        (pandas.DataFrame({"age": [1, 2]}), r"give dpw\.records\(dpw\.like\(frame\)\)"),
    ],
)
def test_what_is_no_relation_is_refused_with_the_one_that_is_meant(relation, meant):
    with pytest.raises(InvalidNeighbours, match=meant):
        as_relation(relation)
