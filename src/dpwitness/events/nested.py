"""Events that lie within each other, counted together: to place a cut well where it decides."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.event import Event, Rows
from dpwitness.events.thresholds import thresholds_of

__all__ = ["Nested", "around"]


def around(event: Event, rows: Rows, factors: Sequence[float]) -> list[Event]:
    """Events like this one that hold so many times as many of the rows, each within the next; `factors` rise.

    Of the nested events that it is one of (`thresholds_of`). Fewer, perhaps none, where values repeat or are too few;
    none where it is none of nested ones.
    """
    inside = event.contains(rows)
    hits = int(np.count_nonzero(inside))
    for family in thresholds_of(event):
        values = family.value(rows)
        falling = -np.sort(-values[np.isfinite(values)])
        if not 0 < hits < len(falling) or np.any((values >= falling[hits - 1]) != inside):
            continue  # not one of these
        places = [round(factor * hits) for factor in factors if 0 < round(factor * hits) <= len(falling)]
        return [family.above(cut) for cut in dict.fromkeys(float(falling[place - 1]) for place in places)]
    return []


@dataclass(frozen=True, slots=True)
class Nested:
    """Several events, each within the next, as the partition that they make; it is counted and never written.

    Cell j holds the outcomes that lie in j of them.
    """

    events: tuple[Event, ...]

    @property
    def cells(self) -> int:
        """As in `Partition`."""
        return len(self.events) + 1

    @property
    def inside(self) -> NDArray[np.bool_]:
        """As in `Partition`: of the largest event."""
        return np.arange(self.cells) > 0

    @property
    def width(self) -> int:
        """As in `Event`."""
        return max(event.width for event in self.events)

    def cell_of(self, rows: Rows) -> NDArray[np.int64]:
        """As in `Partition`."""
        found = np.zeros(len(rows), np.int64)
        for event in self.events:
            found += event.contains(rows)
        return found

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """As in `Event`: the largest event."""
        return self.events[-1].contains(rows)
