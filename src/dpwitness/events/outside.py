"""Outcomes by one entry: not between two ends."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.event import Event, Label, Rows
from dpwitness.events.interval import Interval
from dpwitness.events.registry import register_event
from dpwitness.events.writing import place_text

__all__ = ["Outside"]


@register_event
@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Outcomes that are not in an interval: their entry is below it, above it, or absent."""

    kind: ClassVar[str] = "outside"

    interval: Interval

    @property
    def width(self) -> int:
        """As in `Event`."""
        return self.interval.width

    @property
    def complexity(self) -> tuple[int, int]:
        """Level 1; as many bounds as the interval has."""
        return 1, self.interval.complexity[1]

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """As in `Event`."""
        return ~self.interval.contains(rows)

    def simpler(self) -> Sequence[Event]:
        """Below the interval, and above it."""
        j, low, high = self.interval.coordinate, self.interval.low, self.interval.high
        below = [Interval(coordinate=j, high=low)] if -np.inf < low < np.inf else []
        return below + ([Interval(coordinate=j, low=high)] if high < np.inf else [])

    def rounded(self) -> Iterator[Event]:
        """As in `Event`: outside the rounded intervals."""
        return (Outside(interval=event) for event in self.interval.rounded() if isinstance(event, Interval))

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """As in `Event`."""
        if self.interval.low == -np.inf and self.interval.high == np.inf:
            return f"{place_text(self.interval.coordinate, noun)} absent"
        return f"not: {self.interval.describe(noun, label)}"

    def to_json(self) -> dict[str, Any]:
        """As in `Event`."""
        return {"kind": self.kind, "interval": self.interval.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """As in `Event`."""
        inner = value["interval"]
        if not isinstance(inner, Mapping) or inner.get("kind") != Interval.kind:
            raise ValueError(f"interval={inner!r:.80} must be an interval")
        return cls(interval=Interval.from_json(inner))
