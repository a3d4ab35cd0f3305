"""Outcomes by a learned score of all entries."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.event import Event, Label, Rows, widen
from dpwitness.events.registry import register_event
from dpwitness.events.thresholds import Thresholds
from dpwitness.events.writing import (
    as_noun,
    column_from_json,
    finite_from_json,
    list_from_json,
    number_from_json,
    number_text,
    number_to_json,
    place_text,
)

__all__ = ["ScoreThreshold"]


@register_event
class ScoreThreshold:
    """Outcomes whose score, a sum of one step function per entry, exceeds a threshold.

    `coordinates`: the entries used; `edges`: for each, sorted inner bin edges; `weights`: for each, one weight a bin
    (bins are half-open, [edge, next edge)) and one more, the last, for an absent entry.
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
        self.coordinates = tuple(int(c) for c in coordinates)
        self.edges = tuple(np.asarray(e, np.float64) for e in edges)
        self.weights = tuple(np.asarray(w, np.float64) for w in weights)
        self.threshold = float(threshold)
        if not len(self.coordinates) == len(self.edges) == len(self.weights) >= 1:
            raise ValueError("a score needs edges and weights for each of its coordinates")
        for e, w in zip(self.edges, self.weights, strict=True):
            if len(w) != len(e) + 2 or not np.all(e[1:] > e[:-1]) or np.isnan(e).any():
                raise ValueError("a score needs increasing edges and two weights more than edges")

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
        from dpwitness.events.kernels import additive_score  # numba is imported when first used

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
