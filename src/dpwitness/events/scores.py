"""Outcomes by a learned score of all entries.

A partition of all outcomes into cells by a learned score: what shows more of a divergence than one event does.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import brief, items, kind
from dpwitness.errors import InvalidParameter
from dpwitness.events.event import (
    Counted,
    Event,
    Label,
    Rows,
    Thresholds,
    as_noun,
    column,
    column_from_json,
    edge,
    finite_from_json,
    list_from_json,
    number_from_json,
    number_text,
    number_to_json,
    object_from_json,
    place_text,
    register_event,
    row_of_numbers,
    widen,
)


@register_event
class ScoreThreshold:
    """Outcomes whose score, a sum of one step function per entry, exceeds a threshold.

    `coordinates`: the entries used; `edges`: for each, sorted inner bin edges; `weights`: for each, one weight a bin
    (bins are half-open, [edge, next edge)) and one more, the last, for an absent entry. Raises `InvalidParameter`.
    """

    kind: ClassVar[str] = "score"

    __slots__ = ("coordinates", "edges", "threshold", "weights")

    def __init__(
        self,
        coordinates: Sequence[int],
        edges: Sequence[Sequence[float] | Rows],
        weights: Sequence[Sequence[float] | Rows],
        threshold: float,
    ) -> None:
        self.coordinates = tuple(map(column, items("coordinates", coordinates)))
        self.edges = tuple(row_of_numbers("edges", one) for one in items("edges", edges))
        self.weights = tuple(row_of_numbers("weights", one) for one in items("weights", weights))
        self.threshold = float(edge("threshold", threshold))
        if not len(self.coordinates) == len(self.edges) == len(self.weights) >= 1:
            raise InvalidParameter(
                f"coordinates={brief(coordinates)}: a score needs edges and weights for each of its coordinates"
            )
        for e, w in zip(self.edges, self.weights, strict=True):
            if len(w) != len(e) + 2 or not np.all(e[1:] > e[:-1]) or np.isnan(e).any():
                raise InvalidParameter(f"edges={brief(e.tolist())} must rise, and have two weights more than edges")

    @property
    def width(self) -> int:
        """As in `Event`."""
        return max(self.coordinates) + 1

    @property
    def complexity(self) -> tuple[int, int]:
        """Level 3; how many columns may count."""
        return 3, self.width

    def score(self, rows: Rows) -> Rows:
        """The score of each row; shape (n,)."""
        from dpwitness.events.counting import additive_score  # numba is imported when first used

        rows = widen(rows, self.width)
        starts = np.cumsum([0] + [len(e) for e in self.edges])
        scores = np.empty(len(rows))
        additive_score(
            rows, np.array(self.coordinates), starts, np.concatenate(self.edges), np.concatenate(self.weights), scores
        )
        return scores

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """As in `Event`."""
        return self.score(rows) > self.threshold

    def thresholds(self) -> "Sequence[Thresholds[ScoreThreshold]]":
        """Scores at least t, and scores at most −t."""
        opposite = ScoreThreshold(self.coordinates, self.edges, [-w for w in self.weights], 0.0)
        return self._cut(), opposite._cut()

    def _cut(self) -> "Thresholds[ScoreThreshold]":
        return Thresholds(
            value=self.score,
            above=lambda t: ScoreThreshold(self.coordinates, self.edges, self.weights, float(np.nextafter(t, -np.inf))),
        )

    def simpler(self) -> Sequence[Event]:
        """None: a term of a sum decides nothing alone."""
        return ()

    def rounded(self) -> Iterator[Event]:
        """Nothing: nobody reads its numbers."""
        return iter(())

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """As in `Event`."""
        named = bool(as_noun(noun).places)
        places = ", ".join(place_text(c, noun) if named else str(c + 1) for c in self.coordinates[:8])
        more = ", …" if len(self.coordinates) > 8 else ""
        return f"learned score of {'' if named else f'{noun}s '}{places}{more} above {number_text(self.threshold)}"

    def to_json(self) -> dict[str, Any]:
        """As in `Event`."""
        return {
            "kind": self.kind,
            "coordinates": list(self.coordinates),
            "edges": [[number_to_json(edge) for edge in e.tolist()] for e in self.edges],
            "weights": [w.tolist() for w in self.weights],
            "threshold": self.threshold,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """As in `Event`."""
        return cls(
            [column_from_json(c) for c in list_from_json(value["coordinates"])],
            [[number_from_json(e) for e in list_from_json(edges)] for edges in list_from_json(value["edges"])],
            [[finite_from_json(w) for w in list_from_json(weights)] for weights in list_from_json(value["weights"])],
            finite_from_json(value["threshold"]),
        )


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
