"""Outcomes by several entries: in every one of several intervals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import brief, items
from dpwitness.errors import InvalidParameter
from dpwitness.events.event import Event, Label, Rows
from dpwitness.events.interval import DIGITS, Interval
from dpwitness.events.registry import register_event
from dpwitness.events.writing import list_from_json, object_from_json

__all__ = ["Box"]


@register_event
@dataclass(frozen=True, slots=True)
class Box:
    """Outcomes in every one of several intervals. Raises `InvalidParameter`."""

    kind: ClassVar[str] = "box"

    sides: tuple[Interval, ...]

    def __post_init__(self) -> None:
        sides = tuple(items("sides", self.sides))
        if not sides or not all(isinstance(side, Interval) for side in sides):
            raise InvalidParameter(f"sides={brief(self.sides)}: a box needs at least one side, each an Interval")
        object.__setattr__(self, "sides", sides)

    @property
    def width(self) -> int:
        """As in `Event`."""
        return max(side.width for side in self.sides)

    @property
    def complexity(self) -> tuple[int, int]:
        """Level 1; how many sides."""
        return 1, len(self.sides)

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """As in `Event`."""
        inside = self.sides[0].contains(rows)
        for side in self.sides[1:]:
            inside &= side.contains(rows)
        return inside

    def simpler(self) -> Sequence[Event]:
        """Each side alone."""
        return self.sides

    def rounded(self) -> Iterator[Event]:
        """With all bounds of 1, of 2 and of 3 digits."""
        for digits in DIGITS:
            sides = [rounded for side in self.sides if (rounded := side.rounded_to(digits)) is not None]
            if len(sides) == len(self.sides) and tuple(sides) != self.sides:
                yield Box(tuple(sides))

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """As in `Event`."""
        return " and ".join(side.describe(noun, label) for side in self.sides)

    def to_json(self) -> dict[str, Any]:
        """As in `Event`."""
        return {"kind": self.kind, "sides": [side.to_json() for side in self.sides]}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """As in `Event`."""
        return cls(tuple(Interval.from_json(object_from_json(side)) for side in list_from_json(value["sides"])))
