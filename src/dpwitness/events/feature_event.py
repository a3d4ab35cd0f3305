"""Outcomes by a feature: its value lies in an interval, or is one of a few."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.event import Event, Label, Rows
from dpwitness.events.features import Feature
from dpwitness.events.interval import Interval
from dpwitness.events.outcome_set import LISTED, OutcomeSet
from dpwitness.events.registry import register_event
from dpwitness.events.thresholds import Thresholds
from dpwitness.events.writing import as_noun, number_text, object_from_json, place_text, places_text

__all__ = ["FeatureEvent"]

#: How an order is said, by its smallest and largest value.
ORDERS: Final[dict[tuple[float, float], str]] = {
    (-1, -1): "below",
    (-1, 0): "at most",
    (0, 0): "equal to",
    (0, 1): "at least",
    (1, 1): "above",
}


@register_event
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureEvent:
    """Outcomes of which a feature has a value in a set: an interval, or outcomes of one entry, of rows (value,)."""

    kind: ClassVar[str] = "feature"

    feature: Feature
    within: Interval | OutcomeSet

    def __post_init__(self) -> None:
        if self.within.width != 1 or (isinstance(self.within, OutcomeSet) and np.isnan(self.within.rows).any()):
            raise ValueError(f"within={self.within!r} must be a set of values, in the first column")

    @property
    def width(self) -> int:
        """As in `Event`."""
        return self.feature.width

    @property
    def complexity(self) -> tuple[int, int]:
        """Level 1; the columns of the feature, and what there is to say of its values."""
        return 1, len(self.feature.columns) + self.within.complexity[1]

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """As in `Event`; an outcome of which the feature has no value is never inside."""
        return self.within.contains(self.feature.values(rows)[:, None])

    def thresholds(self) -> "Sequence[Thresholds[FeatureEvent]]":
        """Values of the feature at least t, and at most −t; none for a list of values."""
        if not isinstance(self.within, Interval):
            return ()
        return tuple(self._cut(lower) for lower in (True, False))

    def _cut(self, lower: bool) -> "Thresholds[FeatureEvent]":
        """Values at least t, unless `lower` values at most −t."""
        part = Interval(coordinate=0).thresholds()[0 if lower else 1]
        return Thresholds(
            value=lambda rows: part.value(self.feature.values(rows)[:, None]),
            above=lambda t: FeatureEvent(feature=self.feature, within=part.above(t)),
        )

    def simpler(self) -> Sequence[Event]:
        """With one of two bounds each, or with one of several values each."""
        parts = [part for part in self.within.simpler() if isinstance(part, Interval | OutcomeSet)]
        return [FeatureEvent(feature=self.feature, within=part) for part in parts]

    def rounded(self) -> Iterator[Event]:
        """With bounds of 1, 2 and 3 digits."""
        for part in self.within.rounded():
            if isinstance(part, Interval):
                yield FeatureEvent(feature=self.feature, within=part)

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """As in `Event`."""
        low, high, whole = self._ends()
        said = self._said(low, high, noun) if not math.isnan(low) else None
        if said is not None:
            return said
        named = self._named(noun, label)
        if named is not None:
            return named
        subject = self.feature.describe(noun, label)
        if math.isnan(low):
            values = self.within.rows[:, 0].tolist() if isinstance(self.within, OutcomeSet) else []
            more = ", …" if len(values) > LISTED else ""
            return f"{subject} one of {', '.join(map(number_text, values[:LISTED]))}{more}"
        if low == high:
            return f"{subject} is {number_text(low)}"
        if high == np.inf:
            return f"{subject} at least {number_text(low)}" if low > -np.inf else f"{subject} present"
        least, most = number_text(low), ("up to " if whole else "below ") + number_text(high)
        return f"{subject} {most}" if low == -np.inf else f"{subject} from {least} to {most.removeprefix('up to ')}"

    def _named(self, noun: str, label: Label | None) -> str | None:
        """A place that the feature finds, by the name of the entry there; None for other features."""
        kind, names = self.feature.name, as_noun(noun).places
        if not names or "place" not in kind:
            return None
        found = np.flatnonzero(self.within.contains(np.arange(1.0, self.width + 1)[:, None])).tolist()
        listed = " or ".join(place_text(c, noun) for c in found)
        what = (
            kind.removeprefix("place of ")
            if kind != "first place"
            else f"first equal to {self.feature.number_text(label)}"
        )
        return f"the {what} of {places_text(self.width, noun)} is {listed or 'none'}"

    def _ends(self) -> tuple[float, float, bool]:
        """The smallest and largest value, NaN for a list of several, and whether the largest is inside the set.

        Of a feature of whole numbers the half-open interval [3, 5) holds 3 and 4.
        """
        if isinstance(self.within, OutcomeSet):
            value = float(self.within.rows[0, 0]) if len(self.within.rows) == 1 else math.nan
            return value, value, True
        low, high = self.within.low, self.within.high
        if not self.feature.kind.whole:
            return low, high, low == high
        return np.ceil(low), np.ceil(high) - 1, True

    def _said(self, low: float, high: float, noun: str) -> str | None:
        """Orders, presence and divisibility have words of their own; None for all others."""
        places = [place_text(column, noun) for column in self.feature.columns]
        match self.feature.name:
            case "order" if max(low, -1) == -1 and min(high, 1) == 1:
                return f"{places[0]} and {places[1]} present"
            case "order" if (max(low, -1), min(high, 1)) in ORDERS:
                return f"{places[0]} {ORDERS[max(low, -1), min(high, 1)]} {places[1]}"
            case "present" if low == high or low > 0 or high < 1:
                return f"{places[0]} {'present' if low > 0 else 'absent'}"
            case "residue" if low == high == 0:
                return f"{places[0]} is a multiple of {self.feature.number_text()}"
            case "power of two" if high == np.inf and low > -np.inf:
                return f"{places[0]} is a multiple of 2^{number_text(low)}"
            case "power of two" if low == -np.inf and high < np.inf:
                return f"{places[0]} is no multiple of 2^{number_text(high + 1)}"
        return None

    def to_json(self) -> dict[str, Any]:
        """As in `Event`."""
        return {"kind": self.kind, "feature": self.feature.to_json(), "within": self.within.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """As in `Event`."""
        feature, within = Feature.from_json(object_from_json(value["feature"])), object_from_json(value["within"])
        inside: dict[object, type[Interval] | type[OutcomeSet]] = {
            Interval.kind: Interval, OutcomeSet.kind: OutcomeSet
        }  # fmt: skip
        name = within["kind"]
        if not isinstance(name, str) or name not in inside:
            raise ValueError(f"within a feature there is an interval or a set of outcomes, not {name!r:.40}")
        return cls(feature=feature, within=inside[name].from_json(within))
