"""Events of a learned score of the entries: outcomes above a threshold, and cells between several cuts of the score."""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Booleans, Floats, Integers, Rows
from dpwitness.checks import brief, items, kind
from dpwitness.errors import InvalidParameter
from dpwitness.events.counting import cells_between
from dpwitness.events.event import (
    LISTED_ITEMS,
    NUMBERS_CODEC,
    ColumnNumber,
    Event,
    Label,
    Number,
    Partition,
    Statistic,
    array_of,
    as_noun,
    column,
    join_texts,
    number_text,
    place_text,
    read_end,
    register_event,
    row_of_numbers,
    widen,
)


@register_event
class ScoreThreshold(Event):
    """Outcomes whose score, a sum of one step function per entry, exceeds a threshold.

    `coordinates`: the entries used; `edges`: for each entry, rising inner bin edges; `weights`: for each entry, the
    weights of its half-open bins [edge, next edge), then the weight of an absent entry. Raises `InvalidParameter`.
    """

    kind: ClassVar[str] = "score"
    json_keys: ClassVar[tuple[str, ...]] = ("kind", "coordinates", "edges", "weights", "threshold")

    __slots__ = ("coordinates", "edges", "threshold", "weights")
    coordinates: tuple[ColumnNumber, ...]
    edges: tuple[Annotated[Floats, array_of(list[Number])], ...]
    weights: tuple[Annotated[Floats, NUMBERS_CODEC], ...]
    threshold: float

    def __init__(
        self,
        coordinates: Sequence[int],
        edges: Sequence[Sequence[float] | Floats],
        weights: Sequence[Sequence[float] | Floats],
        threshold: float,
    ) -> None:
        self.coordinates = tuple(map(column, items("coordinates", coordinates)))
        self.edges = tuple(row_of_numbers("edges", one) for one in items("edges", edges))
        self.weights = tuple(row_of_numbers("weights", one) for one in items("weights", weights))
        self.threshold = read_end("threshold", threshold)
        if not len(self.coordinates) == len(self.edges) == len(self.weights) >= 1:
            raise InvalidParameter(
                f"coordinates={brief(coordinates)}: a score needs edges and weights for each of its coordinates"
            )
        for e, w in zip(self.edges, self.weights, strict=True):
            if len(w) != len(e) + 2 or not np.all(e[1:] > e[:-1]) or np.isnan(e).any():
                raise InvalidParameter(f"edges={brief(e.tolist())} must rise, and have two weights more than edges")

    @property
    @override
    def width(self) -> int:
        return max(self.coordinates) + 1

    @property
    def complexity(self) -> tuple[int, int]:
        """The complexity (level, size): level 3, and the number of columns up to the last column of the score."""
        return 3, self.width

    def score(self, rows: Rows) -> Floats:
        """The score of each row; shape (n,)."""
        rows, scores = widen(rows, self.width), np.zeros(len(rows))
        for coordinate, edges, weights in zip(self.coordinates, self.edges, self.weights, strict=True):
            scores += weights[cells_between(edges, rows[:, coordinate], len(edges) + 1)]
        return scores

    @override
    def contains(self, rows: Rows) -> Booleans:
        return self.score(rows) > self.threshold

    def exceeding(self, threshold: float) -> "ScoreThreshold":
        """The same score with another threshold."""
        return ScoreThreshold(self.coordinates, self.edges, self.weights, threshold)

    def statistic(self) -> Statistic:
        """The score as a statistic; the event is the range of scores from the next float above the threshold on."""
        low = math.nextafter(self.threshold, math.inf)
        return Statistic(
            key=(self.kind, self.coordinates, tuple(part.tobytes() for part in (*self.edges, *self.weights))),
            value=self.score,
            describe=self._score_text,
            low=low,
            high=np.inf,
            between=self.between,
            two_ended=False,
        )

    def between(self, low: float, high: float) -> "ScoreThreshold":
        """The event {score < high} if `high` is finite, else {score ≥ low}."""
        if high < np.inf:
            return ScoreThreshold(self.coordinates, self.edges, [-w for w in self.weights], -high)
        return self.exceeding(math.nextafter(low, -math.inf))

    @override
    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        return f"{self._score_text(noun)} above {number_text(self.threshold)}"

    def _score_text(self, noun: str, label: Label | None = None) -> str:
        named = bool(as_noun(noun).places or as_noun(noun).parts)
        places = [place_text(c, noun) if named else str(c + 1) for c in self.coordinates[:LISTED_ITEMS]]
        several = join_texts(places, more=len(self.coordinates) > LISTED_ITEMS)
        return f"learned score of {'' if named else f'{noun}s '}{several}"


#: MOST_CELLS is the largest number of cells: a table of counts has 64 × 64 entries.
MOST_CELLS: Final = 64


@register_event
class Cells(Event, Partition):
    """Cells of outcomes between rising cuts of a score; the event is the cells above the score's own threshold.

    Cell k holds the scores above `cuts[k − 1]` and up to `cuts[k]`. Raises `InvalidParameter` unless the cuts rise and
    the score's threshold is one of them.
    """

    kind: ClassVar[str] = "cells"
    json_keys: ClassVar[tuple[str, ...]] = ("kind", "score", "cuts")

    __slots__ = ("cuts", "score")
    score: ScoreThreshold
    cuts: Annotated[Floats, NUMBERS_CODEC]

    def __init__(self, score: ScoreThreshold, cuts: Sequence[float] | Floats) -> None:
        self.score = kind("score", score, ScoreThreshold, "a ScoreThreshold", InvalidParameter)
        self.cuts = row_of_numbers("cuts", cuts)
        if not 1 <= len(self.cuts) < MOST_CELLS or not np.all(self.cuts[1:] > self.cuts[:-1]):
            raise InvalidParameter(f"cuts={brief(cuts)} must be from 1 to {MOST_CELLS - 1} rising numbers")
        if score.threshold not in self.cuts:
            raise InvalidParameter(f"cuts={brief(cuts)}: the score's threshold {score.threshold!r} must be one of them")

    @property
    @override
    def cells(self) -> int:
        return len(self.cuts) + 1

    @property
    @override
    def inside(self) -> Booleans:
        return np.append(self.cuts, np.inf) > self.score.threshold

    @property
    @override
    def width(self) -> int:
        return self.score.width

    @property
    def complexity(self) -> tuple[int, int]:
        """The complexity (level, size): level 3, and one more than the size of the score."""
        return 3, self.score.width + 1

    @override
    def cell_of(self, rows: Rows) -> Integers:
        return np.searchsorted(self.cuts, self.score.score(rows))

    @override
    def contains(self, rows: Rows) -> Booleans:
        return self.score.contains(rows)

    def simpler(self) -> Sequence[Event]:
        """The event {score > threshold}, without the other cuts."""
        return (self.score,)

    @override
    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        above = int(np.count_nonzero(self.cuts >= self.score.threshold))
        return f"the upper {above} of {self.cells} cells: {self.score.describe(noun, label)}"
