"""Which outcomes lie in each of many events, counted together: single entries between ends are most of a portfolio."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.event import Event, Rows
from dpwitness.events.interval import Interval
from dpwitness.events.outside import Outside

__all__ = ["cells_of", "members_of"]

#: Numbers that are compared at once; the memory of a count does not grow with the runs.
BLOCK: Final = 1 << 18


def cells_of(events: Sequence[Event], x: Rows, y: Rows) -> NDArray[np.int64]:
    """How many paired runs had (D in the event, D′ in it) = (1,0), (1,1), (0,1), (0,0): shape (4, events).

    `x` and `y` have the shapes (n, any width): row i of both is one paired run.
    """
    total = np.zeros((4, len(events)), np.int64)
    if not events:
        return total
    height = max(BLOCK // len(events), 1)
    for start in range(0, len(x), height):
        a, b = (members_of(events, rows[start : start + height]) for rows in (x, y))
        both, hits, others = (np.count_nonzero(flags, axis=1) for flags in (a & b, a, b))
        total += [hits - both, both, others - both, a.shape[1] - hits - others + both]
    return total


def members_of(events: Sequence[Event], rows: Rows) -> NDArray[np.bool_]:
    """Whether each row lies in each event; shape (events, rows)."""
    found = np.empty((len(events), len(rows)), np.bool_)
    single: list[int] = []
    ends: list[tuple[int, float, float, bool]] = []
    for k, (event, interval) in enumerate(_intervals(events)):
        if interval is None:
            found[k] = event.contains(rows)
        else:
            single.append(k)
            ends.append((interval.coordinate, interval.low, interval.high, interval is not event))
    if single:
        columns, low, high, outside = (np.array(part)[:, None] for part in zip(*ends, strict=True))
        absent = np.full((len(rows), 1), np.nan)  # what an entry behind the row is
        values = np.hstack([rows, absent]).T[np.minimum(columns[:, 0], rows.shape[1])]
        # As `Interval.contains`: half-open, and an end of +inf is no end. NaN compares false.
        found[single] = ((values >= low) & ((values < high) | (high == np.inf))) ^ outside
    return found


def _intervals(events: Sequence[Event]) -> Iterator[tuple[Event, Interval | None]]:
    """Each event, and the interval that it is, or that it is the outside of."""
    for event in events:
        if isinstance(event, Outside):
            yield event, event.interval
        else:
            yield event, event if isinstance(event, Interval) else None
