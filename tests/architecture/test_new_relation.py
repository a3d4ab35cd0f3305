"""A relation is one new file: "replace one of the largest" takes the 40 lines of the class here."""

from dataclasses import dataclass

import numpy as np
import pytest

from dpwitness import NotRefuted, Violation, Witness, check, replay, shrink
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours import (
    Pair,
    Relation,
    adjacent,
    adjacent_candidates,
    as_finite_numbers,
    register_relation,
    relation_from_json,
)
from dpwitness.testing import check_relation


@dataclass(frozen=True, slots=True)
class ReplaceLargest(Relation):
    """Lists of a length in 0 … `top`; neighbours differ in one value, which is the largest of one of them."""

    length: int
    top: int
    noun = "value"

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        for base in (0, self.top // 2):
            yield self._pair(base, self.top)

    def variations(self, pair, *, scale=1.0):
        yield self._pair(int(pair.data.min()), self.top // 2 + 1)

    def smaller(self, pair):
        base, top = int(pair.data.min()), int(pair.data.max())
        for low, high in ((0, top), (base, base + 1), (base, (base + top) // 2)):
            if low < high < top or low < base:
                yield self._pair(low, high)

    def contains(self, pair, data=None):
        both = np.stack([pair.data, pair.neighbour])
        moved = np.flatnonzero(pair.data != pair.neighbour)
        inside = both.shape == (2, self.length) and both.min() >= 0 and both.max() <= self.top and len(moved) == 1
        return bool(inside) and bool(np.any(both[:, moved[0]] == both.max()))

    def to_json(self):
        return {"kind": "replace-largest", "length": self.length, "top": self.top}

    def _pair(self, low, high):
        same = [low] * (self.length - 1)
        return Pair(as_finite_numbers([high, *same]), as_finite_numbers([low, *same]), f"one {high} among {low}")


register_relation("replace-largest", lambda value: ReplaceLargest(**value))


def test_its_author_tests_it():
    check_relation(ReplaceLargest(4, 8))


def noisy_maximum(rng, data):
    return data.max() + rng.laplace(0.0, 2.0)  # the defect: the sensitivity is 8, not 2


def private_maximum(rng, data):
    return data.max() + rng.laplace(0.0, 8.0)


def test_a_new_relation_finds_its_pair_which_is_shrunk_saved_and_replayed(tmp_path):
    limits = {"neighbours": ReplaceLargest(4, 8), "search_runs": 40_000, "runs": 200_000, "seed": 1}
    found = check(noisy_maximum, claim=1.0, **limits)
    assert isinstance(found, Violation)
    small = shrink(found, noisy_maximum, max_time=3.0)
    assert small.witness.pair.data.sum() <= found.witness.pair.data.sum()
    assert small.witness.relation.contains(small.witness.pair)
    small.witness.save(tmp_path / "witness.json")
    again = Witness.load(tmp_path / "witness.json")
    assert again.relation == ReplaceLargest(4, 8)
    assert isinstance(replay(again, noisy_maximum, seed=3), Violation)
    assert isinstance(check(private_maximum, claim=1.0, **limits), NotRefuted)


def test_a_reader_is_a_function_for_a_name_of_its_own():
    for kind, reader, said in (
        (3, ReplaceLargest, "kind=3 must be a text"),
        ("three", 3, "reader=3 must be a function"),
        ("queries", ReplaceLargest, r"kind='queries' is taken by dpwitness\..*Queries: give another name"),
    ):
        with pytest.raises(ValueError, match=said):
            register_relation(kind, reader)
    for number in (6, 7):  # the same cell of a notebook, run again
        register_relation("a number", lambda value, number=number: number)
    with pytest.raises(InvalidNeighbours, match=r"of kind 'a number' gave 7, which must be a .*Relation$"):
        relation_from_json({"kind": "a number"})


class OneMore(Relation):
    """The least that a relation may be."""

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        yield Pair(as_finite_numbers([1.0, 0.0]), as_finite_numbers([0.0, 0.0]))


@pytest.mark.campaign
def test_a_relation_needs_nothing_but_candidates():
    found = check(noisy_maximum, claim=0.1, neighbours=OneMore(), search_runs=40_000, runs=200_000, seed=1)
    assert isinstance(found, Violation)
    assert found.to_json()["witness"]["relation"] is None
    (pair,) = OneMore().candidates()
    assert OneMore().contains(pair.swapped())
    assert not OneMore().contains(Pair(pair.data, as_finite_numbers([2.0, 0.0])))


def test_a_class_that_is_no_relation_is_told_what_to_inherit():
    class Duck:
        def candidates(self, data=None, *, centre=0.0, scale=1.0):
            return iter(())

    with pytest.raises(InvalidNeighbours, match=r"inherits dpwitness\.neighbours\.Relation"):
        check(noisy_maximum, claim=1.0, neighbours=Duck())


class Scaled(Relation):
    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        yield Pair(np.array([0.0]), np.array([scale]))


def test_candidates_of_a_scale_are_told_to_define_contains():
    with pytest.raises(InvalidNeighbours, match=r"it has no `contains` of its own, .* and scale 1 alone, .*: define"):
        check(noisy_maximum, claim=0.5, neighbours=Scaled(), runs=500)


class Box:
    """An object that no file can hold."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Box({self.value})"


class Held(Relation):
    """Adjacent: its two objects, which it has no other word for."""

    def __init__(self):
        self.inputs = Box(0.0), {"box": Box(1.0)}

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        yield Pair(*self.inputs)


def test_objects_that_a_relation_gives_each_time_are_its_candidates():
    relation = Held()
    (pair,) = adjacent_candidates(relation)
    assert adjacent(relation, pair.swapped())
    assert not adjacent(relation, Pair(Box(0.0), {"box": Box(1.0)}))


class OneWay(OneMore):
    def contains(self, pair, data=None):
        return pair.data.sum() > pair.neighbour.sum()


def test_a_relation_that_tells_directions_apart_is_refused():
    with pytest.raises(InvalidNeighbours, match=r"the candidate \[0\., 0\.\] and \[1\., 0\.\] is not one that .*Way"):
        check(noisy_maximum, claim=1.0, neighbours=OneWay(), runs=500)


class GeneratorOnce(OneMore):
    def __init__(self):
        self.pairs = super().candidates()

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        return self.pairs

    def contains(self, pair, data=None):
        return True


class Failing(OneMore):
    def fails(self, *given):
        raise ZeroDivisionError("of no records")


class FailingAlternatives(Failing):
    alternatives = Failing.fails


class FailingTake(Failing):
    take = Failing.fails


class FailingAdjacency(Failing):
    adjacency = property(Failing.fails)


class NumberForRelation(OneMore):
    def alternatives(self):
        return (3,)


class NumberForName(OneMore):
    adjacency = 7


@pytest.mark.parametrize(
    ("relation", "said"),
    [
        (GeneratorOnce, "candidates gave no pair the second time: let each call make all of them"),
        (FailingAlternatives, "alternatives raised ZeroDivisionError: of no records"),
        (FailingTake, "take raised ZeroDivisionError: of no records"),
        (FailingAdjacency, "adjacency raised ZeroDivisionError: of no records"),
        (NumberForRelation, "alternatives gave 3, which must be a dpwitness.neighbours.Relation"),
        (NumberForName, "adjacency is 7, which must be a text or None"),
    ],
)
def test_what_is_wrong_with_a_relation_is_one_line_that_names_it(relation, said):
    given = {"data": [1.0, 0.0]} if relation is FailingTake else {}
    with pytest.raises(InvalidNeighbours) as caught:
        check(noisy_maximum, claim=1.0, neighbours=relation(), runs=500, search_runs=500, **given)
    assert str(caught.value) == f"neighbours=<{__name__}.{relation.__name__} object>: its {said}"


class Closing(OneMore):
    """It calls nothing adjacent once it is closed."""

    open = True

    def contains(self, pair, data=None):
        return self.open


def test_no_verdict_is_about_a_pair_that_the_relation_does_not_contain():
    relation = Closing()

    def progress(stage, *counts):
        relation.open &= stage != "confirm"

    limits = {"search_runs": 1_000, "runs": 1_000, "seed": 1, "bits": False, "progress": progress}
    with pytest.raises(InvalidNeighbours, match=r"is not one that .* calls neighbouring"):
        check(noisy_maximum, claim=1.0, neighbours=relation, **limits)
