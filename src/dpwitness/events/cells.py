"""A partition of all outcomes into cells by a learned score: what shows more of a divergence than one event does."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import brief, kind
from dpwitness.errors import InvalidParameter
from dpwitness.events.event import Counted, Event, Label, Rows
from dpwitness.events.registry import register_event
from dpwitness.events.score_threshold import ScoreThreshold
from dpwitness.events.writing import finite_from_json, list_from_json, object_from_json, row_of_numbers

__all__ = ["Cells", "Partition", "is_partition"]

#: Cells at most: a table of counts has the square of it.
MOST: Final = 64


class Partition(Counted, Protocol):
    """A set that is made of some of the cells of a partition, of which all are counted."""

    @property
    def cells(self) -> int:
        """How many cells there are."""

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which of the cells the set is made of; shape (cells,)."""

    def cell_of(self, rows: Rows) -> NDArray[np.int64]:
        """The number of the cell that each outcome lies in, from 0; shape (n,)."""


def is_partition(event: Counted) -> TypeGuard[Partition]:
    """Whether a set is made of cells that are counted."""
    return callable(getattr(event, "cell_of", None))


@register_event
class Cells:
    """Cells of outcomes between rising cuts of a score; the event is those above the score's own threshold.

    Cell k holds the scores above `cuts[k − 1]` and up to `cuts[k]`. Raises `InvalidParameter` unless the cuts rise and
    the score's threshold is one of them.
    """

    kind: ClassVar[str] = "cells"

    __slots__ = ("cuts", "score")

    def __init__(self, score: ScoreThreshold, cuts: Sequence[float] | Rows) -> None:
        self.score: ScoreThreshold = kind("score", score, ScoreThreshold, "a ScoreThreshold", InvalidParameter)
        self.cuts = row_of_numbers("cuts", cuts)
        if not 1 <= len(self.cuts) < MOST or not np.all(self.cuts[1:] > self.cuts[:-1]):
            raise InvalidParameter(f"cuts={brief(cuts)} must be from 1 to {MOST - 1} rising numbers")
        if score.threshold not in self.cuts:
            raise InvalidParameter(f"cuts={brief(cuts)}: the score's threshold {score.threshold!r} must be one of them")

    @property
    def cells(self) -> int:
        """As in `Partition`."""
        return len(self.cuts) + 1

    @property
    def inside(self) -> NDArray[np.bool_]:
        """As in `Partition`."""
        return np.append(self.cuts, np.inf) > self.score.threshold

    @property
    def width(self) -> int:
        """As in `Event`."""
        return self.score.width

    @property
    def complexity(self) -> tuple[int, int]:
        """Level 3; one more than the score's."""
        return 3, self.score.width + 1

    def cell_of(self, rows: Rows) -> NDArray[np.int64]:
        """As in `Partition`."""
        return np.searchsorted(self.cuts, self.score.score(rows))

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """As in `Event`: the cells above the threshold."""
        return self.score.contains(rows)

    def simpler(self) -> Sequence[Event]:
        """The event without the other cells."""
        return (self.score,)

    def rounded(self) -> Iterator[Event]:
        """Nothing: nobody reads its numbers."""
        return iter(())

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """As in `Event`."""
        above = int(np.count_nonzero(self.cuts >= self.score.threshold))
        return f"the upper {above} of {self.cells} cells: {self.score.describe(noun, label)}"

    def to_json(self) -> dict[str, Any]:
        """As in `Event`."""
        return {"kind": self.kind, "score": self.score.to_json(), "cuts": self.cuts.tolist()}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """As in `Event`."""
        score = ScoreThreshold.from_json(object_from_json(value["score"]))
        return cls(score, [finite_from_json(cut) for cut in list_from_json(value["cuts"])])
