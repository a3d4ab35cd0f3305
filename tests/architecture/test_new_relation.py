"""A relation is one new file: "replace one of the largest" takes the 40 lines of the class here."""

from dataclasses import dataclass

import numpy as np
import pytest

from dpwitness import NotRefuted, Violation, Witness, check, replay, shrink
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours import Pair, Relation, as_finite_numbers, proposed_pairs, register_relation


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


class OneBuffer(Relation):
    """Adjacent: 0 and 1. It fills one array again and again."""

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        buffer = np.zeros(1)
        for value in (1.0, 0.0):
            buffer[0] = value
            yield Pair(buffer, np.array([1.0 - value]))

    def contains(self, pair, data=None):
        return sorted(float(side[0]) for side in pair.sides) == [0.0, 1.0]


def test_an_array_that_a_relation_fills_again_is_the_pair_that_it_was():
    first, second = proposed_pairs(OneBuffer())
    assert [side.tolist() for side in first.sides] == [[1.0], [0.0]]
    assert [side.tolist() for side in second.sides] == [[0.0], [1.0]]
