"""Events that lie within each other, counted together: to place a cut well where it decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.event import Event, Rows

__all__ = ["Cut", "Nested", "is_cut"]


class Cut(Event, Protocol):
    """An event that one number decides, such as the end of an interval: so there are smaller and larger ones."""

    def around(self, rows: Rows, factors: Sequence[float]) -> Sequence[Event]:
        """Events of this kind that hold so many times as many of the rows, each within the next.

        `factors` rise. Fewer events, perhaps none, where rows repeat or are too few.
        """


def is_cut(event: Event) -> TypeGuard[Cut]:
    """Whether an event has smaller and larger ones of its kind."""
    return callable(getattr(event, "around", None))


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
