"""Events of entries: an interval of one entry, its complement, and a box of several intervals."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Booleans, Rows
from dpwitness.checks import brief, items, kind
from dpwitness.codec import or_infinite
from dpwitness.errors import InvalidParameter
from dpwitness.events.encoding import LEAST_NUMBER, NESTED_SEQUENCE, is_code, is_exception, is_length
from dpwitness.events.event import (
    LARGEST_FLOAT,
    LONGEST_TEXT,
    NO_NUMBER,
    ColumnNumber,
    Event,
    Label,
    Number,
    Statistic,
    as_noun,
    code_text,
    column,
    number_text,
    place_text,
    read_end,
    register_event,
    widen,
)


@register_event
@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(Event):
    """Outcomes whose entry `coordinate` (from 0) is present and lies in [low, high).

    `low` = −inf means no lower end and `high` = +inf no upper end: the infinity lies in the interval. So [+inf, +inf]
    contains only +inf, and [−inf, −`LARGEST_FLOAT`) only −inf. Raises `InvalidParameter`.
    """

    kind: ClassVar[str] = "interval"

    coordinate: ColumnNumber
    low: Annotated[float, or_infinite(-np.inf, Number)] = -np.inf
    high: Annotated[float, or_infinite(np.inf)] = np.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "coordinate", column(self.coordinate))
        object.__setattr__(self, "low", read_end("low", self.low))
        object.__setattr__(self, "high", read_end("high", self.high))
        if not (self.low < self.high or self.low == self.high == np.inf):
            raise InvalidParameter(f"low={self.low!r}, high={self.high!r}: need low < high")

    @property
    @override
    def width(self) -> int:
        return self.coordinate + 1

    @property
    def complexity(self) -> tuple[int, int]:
        """The complexity (level, size): level 0, or 2 for a range of codes, and 1 plus the number of finite ends."""
        level = 2 if (is_code(self.low) or is_code(self.high)) and not self._single_code else 0
        return level, 1 + (math.isfinite(self.low) and math.isfinite(self.high))

    @property
    def _single_code(self) -> bool:
        """Whether the interval holds a single code, such as one text."""
        return is_code(self.low) and self.high <= math.nextafter(self.low, math.inf)

    @override
    def contains(self, rows: Rows) -> Booleans:
        if self.coordinate >= rows.shape[1]:
            return np.zeros(len(rows), np.bool_)
        column = rows[:, self.coordinate]
        # Intervals are half-open: an atom on a shared edge must count once. NaN compares false, so absent entries lie
        # outside.
        if self.high == np.inf:
            return column >= self.low
        if self.low == -np.inf:
            return column < self.high
        return (column >= self.low) & (column < self.high)

    def statistic(self) -> Statistic:
        """The entry as a statistic; the interval of a single code is not a range, as codes have no order."""
        low, high = (math.nan, math.nan) if self._single_code else (self.low, self.high)
        return Statistic(
            key=self.coordinate,
            value=lambda rows: widen(rows, self.width)[:, self.coordinate],
            describe=lambda noun, label: self._place(noun),
            low=low,
            high=high,
            between=None if self._single_code else self.between,
            coordinate=self.coordinate,
        )

    def between(self, low: float, high: float) -> "Interval":
        """Another interval of the same entry."""
        return Interval(coordinate=self.coordinate, low=low, high=high)

    def intersection(self, other: "Interval") -> "Interval | None":
        """The intersection with another interval of the same entry; None if it is empty."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        if not (low < high or low == high == np.inf):
            return None
        return Interval(coordinate=self.coordinate, low=low, high=high)

    def simpler(self) -> Sequence[Event]:
        """The half-lines from `low` and up to `high`, if both ends are finite."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return ()
        return Interval(coordinate=self.coordinate, low=self.low), Interval(coordinate=self.coordinate, high=self.high)

    def rounded(self) -> Iterator[Event]:
        """Intervals with bounds of 1, 2 and 3 significant digits."""
        for digits in (1, 2, 3):
            rounded = self.rounded_to(digits)
            if rounded is not None and rounded != self:
                yield rounded

    def rounded_to(self, digits: int) -> "Interval | None":
        """The interval with bounds of `digits` significant digits; None if it is empty."""
        low, high = (float(f"{bound:.{digits}g}") for bound in (self.low, self.high))
        return Interval(coordinate=self.coordinate, low=low, high=high) if low < high else None

    @override
    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        place, text = self._place(noun), number_text
        if self._single_code and is_exception(self.low):
            return (label and label(self.low)) or f"{place} {number_text(self.low)}"
        if self.low == np.inf:
            return f"{place} ∞"
        if self._single_code:
            return f"{place} {code_text(self.coordinate, self.low, as_noun(noun), label) or number_text(self.low)}"
        if np.isfinite(self.low) and self.high == math.nextafter(self.low, math.inf):
            return f"{place} equal to {text(self.low)}"
        other = as_noun(noun).mixed.get(self.coordinate)
        lengths = self._lengths()
        if lengths is not None:
            return f"{place} {lengths}"
        if self.low == -np.inf and self.high == -LARGEST_FLOAT:
            return f"{place} −∞"
        if self.low == -np.inf and self.high == LEAST_NUMBER:
            return f"{place} no number, or −∞" if other in (None, NO_NUMBER) else f"{other}, or {place} −∞"
        if self.low == LEAST_NUMBER:
            return f"{place} a number above −∞" + (f" and below {number_text(self.high)}" if self.high < np.inf else "")
        if self.low == -np.inf and self.high == np.inf:
            return f"{place} present"
        if as_noun(noun).flags and other is None and (self.low, self.high) in ((1.0, np.inf), (-np.inf, 1.0)):
            return f"{place} {'⊤' if self.low == 1 else '⊥'}"
        if self.low == -np.inf:
            others = f", or {other}" if other and self.high > LEAST_NUMBER else ""
            return f"{place} below {text(self.high)}{others}"
        if self.high == np.inf:
            return f"{place} at least {text(self.low)}"
        return f"{place} from {text(self.low)} to below {text(self.high)}"

    def _place(self, noun: str) -> str:
        """The name of the entry; for a code that is part of a longer value, the name of the whole value."""
        whole = as_noun(noun).parts.get(self.coordinate) if self._single_code else None
        return place_text(self.coordinate if whole is None else whole, noun)

    def _lengths(self) -> str | None:
        """The text of a range of list lengths, None if neither end is a length; longer lists have smaller entries."""
        ends = [_length(end) if is_length(end) else None for end in (self.low, self.high)]
        if ends == [None, None]:
            return None
        most, above = ends
        least = "" if above is None else f"at least {above + 1}"
        text = " and ".join(filter(None, (least, "" if most is None else f"at most {most}")))
        other = ", or no number" if self.low == -np.inf else ", or a number" if self.high == np.inf else ""
        if above is None and LEAST_NUMBER < self.high < np.inf:
            other = f", or a number below {number_text(self.high)}"
        return f"a list of {text} values{other}"


def _length(end: float) -> int:
    """The length of the longest list whose entry is at least `end`."""
    return math.floor((end / NESTED_SEQUENCE - 1) * 2**32)


@register_event
@dataclass(frozen=True, slots=True, kw_only=True)
class Outside(Event):
    """Outcomes outside an interval: the entry is below it, above it, or absent."""

    kind: ClassVar[str] = "outside"

    interval: Interval

    def __post_init__(self) -> None:
        kind("interval", self.interval, Interval, "an Interval", InvalidParameter)

    @property
    @override
    def width(self) -> int:
        return self.interval.width

    @property
    def complexity(self) -> tuple[int, int]:
        """The complexity (level, size): level 1 and the interval's size."""
        return 1, self.interval.complexity[1]

    @override
    def contains(self, rows: Rows) -> Booleans:
        return ~self.interval.contains(rows)

    def statistic(self) -> Statistic:
        """The statistic of the interval, whose values outside the interval decide the event."""
        return replace(self.interval.statistic(), outside=True)

    def simpler(self) -> Sequence[Event]:
        """The half-lines below and above the interval."""
        j, low, high = self.interval.coordinate, self.interval.low, self.interval.high
        below = [Interval(coordinate=j, high=low)] if -np.inf < low < np.inf else []
        return below + ([Interval(coordinate=j, low=high)] if high < np.inf else [])

    @override
    def rounded(self) -> Iterator[Event]:
        return (Outside(interval=event) for event in self.interval.rounded() if isinstance(event, Interval))

    @override
    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        if self.interval.low == -np.inf and self.interval.high == np.inf:
            return f"{place_text(self.interval.coordinate, noun)} absent"
        return f"not: {self.interval.describe(noun, label)}"


@register_event
@dataclass(frozen=True, slots=True)
class Box(Event):
    """Outcomes that lie in each of several intervals. Raises `InvalidParameter`."""

    kind: ClassVar[str] = "box"

    sides: tuple[Interval, ...]

    def __post_init__(self) -> None:
        sides = tuple(items("sides", self.sides))
        if not sides or not all(isinstance(side, Interval) for side in sides):
            raise InvalidParameter(f"sides={brief(self.sides)}: a box needs at least one side, each an Interval")
        object.__setattr__(self, "sides", sides)

    @property
    @override
    def width(self) -> int:
        return max(side.width for side in self.sides)

    @property
    def complexity(self) -> tuple[int, int]:
        """The complexity (level, size): level 1 and the number of sides."""
        return 1, len(self.sides)

    @override
    def contains(self, rows: Rows) -> Booleans:
        return np.asarray(np.logical_and.reduce([side.contains(rows) for side in self.sides]))

    def simpler(self) -> Sequence[Event]:
        """An event for each side of the box: the interval of the side."""
        return self.sides

    def rounded(self) -> Iterator[Event]:
        """Boxes whose bounds have 1, 2 and 3 significant digits."""
        for digits in (1, 2, 3):
            sides = [rounded for side in self.sides if (rounded := side.rounded_to(digits)) is not None]
            if len(sides) == len(self.sides) and tuple(sides) != self.sides:
                yield Box(tuple(sides))

    @override
    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        texts = [side.describe(noun, label) for side in self.sides]
        every, more = " and ".join(texts), len(texts) - 1
        if len(every) <= LONGEST_TEXT or not more:
            return every
        return f"{texts[0]} and {more} more {'entry' if more == 1 else 'entries'} in a range"
