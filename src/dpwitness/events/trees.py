"""Outcomes by a score that decision trees add up: boosted trees, or a logistic model of binned entries.

Trees look at entries, and at differences of two. All trees of a score are complete and of one depth, so that a split
has no pointers to others: nothing that a file says can lead anywhere else.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.checks import brief, items, number
from dpwitness.codec import JsonFields
from dpwitness.errors import InvalidParameter
from dpwitness.events.encoding import Rows
from dpwitness.events.event import (
    DIGITS,
    Column,
    Event,
    Label,
    Number,
    Thresholds,
    as_noun,
    column,
    edge,
    joined,
    number_text,
    place_text,
    register_event,
    widen,
)
from dpwitness.events.features import numbers

#: How many trees, splits on the way to a leaf, and different inputs a score has at most.
MOST_TREES: Final = 64
MOST_DEPTH: Final = 4
MOST_INPUTS: Final = 64
#: How many inputs a text names, those that matter most.
NAMED: Final = 4

#: What a split looks at: an entry, or the difference of two.
Input = tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree(JsonFields):
    """A complete binary tree: 2^depth − 1 splits, the root first, then level by level, and 2^depth leaves.

    At split k a row goes left, to split 2k + 1, where input number `inputs[k]` is at most `cuts[k]` (or is no number,
    and `absent_left[k]`), else right, to split 2k + 2. Leaves follow the splits from left to right.
    """

    inputs: tuple[Column, ...]
    cuts: tuple[Number, ...]
    absent_left: tuple[bool, ...]
    leaves: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise `InvalidParameter` for what is no such tree."""
        leaves = [number("a leaf", value) for value in items("leaves", self.leaves)]
        if len(leaves) not in {2**depth for depth in range(1, MOST_DEPTH + 1)} or not np.all(np.isfinite(leaves)):
            raise InvalidParameter(f"leaves={brief(self.leaves)} must be 2, 4, 8 or 16 finite numbers")
        flags = items("absent_left", self.absent_left)
        if not all(isinstance(flag, bool) for flag in flags):
            raise InvalidParameter(f"absent_left={brief(self.absent_left)} must be a list of true and false")
        splits = (
            tuple(column(value) for value in items("inputs", self.inputs)),
            tuple(float(edge("a cut", value)) for value in items("cuts", self.cuts)),
            tuple(flags),
        )
        for name, values in zip(("inputs", "cuts", "absent_left"), splits, strict=True):
            if len(values) != len(leaves) - 1:
                raise InvalidParameter(f"{name}={brief(values)}: a tree of {len(leaves)} leaves has one split fewer")
            object.__setattr__(self, name, values)
        object.__setattr__(self, "leaves", tuple(map(float, leaves)))


@register_event
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeScore(Event):
    """Outcomes whose score, `start` and one leaf of each tree added up in order, exceeds a threshold.

    `inputs`: what the trees look at: (j,) is entry j, (i, j) is entry i minus entry j. Flags count as 1 and 0; an entry
    that is absent or no number is no number, and so are its differences. Raises `InvalidParameter`.
    """

    kind: ClassVar[str] = "trees"

    inputs: tuple[tuple[Column, ...], ...]
    trees: tuple[Tree, ...]
    start: float
    threshold: float

    def __post_init__(self) -> None:
        inputs = [tuple(map(column, items("an input", one))) for one in items("inputs", self.inputs)]
        if not 1 <= len(inputs) <= MOST_INPUTS or any(len(one) not in (1, 2) for one in inputs):
            raise InvalidParameter(
                f"inputs={brief(self.inputs)} must be 1 to {MOST_INPUTS} lists of one or two columns"
            )
        trees = items("trees", self.trees)
        if not 1 <= len(trees) <= MOST_TREES or not all(isinstance(tree, Tree) for tree in trees):
            raise InvalidParameter(f"trees={brief(self.trees)} must be 1 to {MOST_TREES} Trees")
        object.__setattr__(self, "inputs", tuple(inputs))
        object.__setattr__(self, "trees", tuple(trees))
        if len({len(tree.leaves) for tree in self.trees}) > 1:
            raise InvalidParameter("trees must all have as many leaves")
        if any(place >= len(inputs) for tree in self.trees for place in tree.inputs):
            raise InvalidParameter(f"a tree has a split of an input that there is not: there are {len(inputs)}")
        for name in ("start", "threshold"):
            value = number(name, getattr(self, name))
            if not math.isfinite(value):
                raise InvalidParameter(f"{name}={value!r} must be finite")
            object.__setattr__(self, name, float(value))

    @property
    @override
    def width(self) -> int:
        return max(map(max, self.inputs)) + 1

    @property
    def complexity(self) -> tuple[int, int]:
        """Level 3; how many splits there are."""
        return 3, sum(len(tree.cuts) for tree in self.trees)

    def score(self, rows: Rows) -> Rows:
        """The score of each row; shape (n,)."""
        from dpwitness.events.kernels import trees_score  # numba takes half a second to import

        rows = np.ascontiguousarray(numbers(widen(rows, self.width)))
        first = np.array([one[0] for one in self.inputs])
        second = np.array([one[1] if len(one) == 2 else -1 for one in self.inputs])
        scores = np.empty(len(rows))
        trees_score(
            rows, first, second, np.array([tree.inputs for tree in self.trees]),
            np.array([tree.cuts for tree in self.trees]), np.array([tree.absent_left for tree in self.trees]),
            np.array([tree.leaves for tree in self.trees]), self.start, scores,
        )  # fmt: skip
        return scores

    @override
    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        return self.score(rows) > self.threshold

    def exceeding(self, threshold: float) -> "TreeScore":
        """The same score with another threshold."""
        return replace(self, threshold=threshold)

    def opposite(self) -> "TreeScore":
        """The same trees with the negative score; the threshold is that of this event, negated."""
        trees = tuple(replace(tree, leaves=tuple(-value for value in tree.leaves)) for tree in self.trees)
        return TreeScore(inputs=self.inputs, trees=trees, start=-self.start, threshold=-self.threshold)

    def thresholds(self) -> "Sequence[Thresholds[TreeScore]]":
        """Scores at least t, and scores at most −t."""
        return self._cut(), self.opposite()._cut()

    def _cut(self) -> "Thresholds[TreeScore]":
        return Thresholds(value=self.score, above=lambda t: self.exceeding(float(np.nextafter(t, -np.inf))))

    def simpler(self) -> "Sequence[TreeScore]":
        """With the first half of the trees, and the threshold nearer to the start in proportion."""
        half = len(self.trees) // 2
        if not half:
            return ()
        threshold = self.start + (self.threshold - self.start) * half / len(self.trees)
        return (replace(self, trees=self.trees[:half], threshold=threshold),)

    def rounded(self) -> "Iterator[TreeScore]":
        """With a threshold of 1, 2 and 3 digits."""
        for digits in DIGITS:
            threshold = float(f"{self.threshold:.{digits}g}")
            if threshold != self.threshold:
                yield replace(self, threshold=threshold)

    def importance(self) -> Rows:
        """How much each input moves the score: over its splits, the difference of the mean leaves on both sides."""
        found = np.zeros(len(self.inputs))
        leaves = np.array([tree.leaves for tree in self.trees])
        places = np.array([tree.inputs for tree in self.trees])
        start, size = 0, 1
        while size < leaves.shape[1]:  # level by level
            means = leaves.reshape(len(leaves), size, 2, -1).mean(axis=3)
            np.add.at(found, places[:, start : start + size], np.abs(means[:, :, 0] - means[:, :, 1]) / size)
            start, size = start + size, 2 * size
        return found

    @override
    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        importance = self.importance()
        used = [k for k in np.argsort(-importance, kind="stable").tolist() if importance[k] > 0]
        named = bool(as_noun(noun).places or as_noun(noun).parts) or any(len(self.inputs[k]) == 2 for k in used)
        places = [
            " − ".join(place_text(c, noun) for c in self.inputs[k]) if named else str(self.inputs[k][0] + 1)
            for k in used[:NAMED]
        ]
        several = "1 tree" if len(self.trees) == 1 else f"{len(self.trees)} trees"
        over = f" over {'' if named else f'{noun}s '}{joined(places, more=len(used) > NAMED)}" if used else ""
        return f"score of {several}{over} above {number_text(self.threshold)}"
