"""What the health checks share: their time, and outcomes that never vary."""

from typing import Final

import numpy as np

from dpwitness.events import widen
from dpwitness.events.encoding import LEAST_NUMBER
from dpwitness.events.writing import number_text
from dpwitness.mechanisms.mechanism import Rows

#: Seconds of runs on each input that one health check may take.
SECONDS: Final = 1.0

ADVICE: Final = "draw fresh noise for every run from the generator given (in a vectorised mechanism: one draw a row)"


class Outcomes:
    """Outcomes of one input that come block by block, and whether they were all the same."""

    def __init__(self) -> None:
        self._first: Rows | None = None
        self._same = True

    def add(self, rows: Rows) -> None:
        """Take a block of the shape (runs, width), NaN behind the end of each outcome."""
        if self._first is None:
            self._first = rows[:1, ~np.isnan(rows[0])]
        expected = widen(self._first, rows.shape[1])
        self._same = self._same and expected.shape[1] == rows.shape[1]
        self._same = self._same and np.array_equal(rows, np.broadcast_to(expected, rows.shape), equal_nan=True)

    @property
    def always(self) -> tuple[float, ...] | None:
        """The outcome that all of them were; None where they vary, or where there is none."""
        return tuple(self._first[0].tolist()) if self._same and self._first is not None else None


def outcome_key(row: Rows) -> bytes:
    """An outcome without what is absent behind its end; equal ones are the same bytes in every process."""
    present = np.flatnonzero(~np.isnan(row))
    return row[: present[-1] + 1 if len(present) else 0].tobytes()


def shown(outcome: tuple[float, ...] | None) -> str:
    """Write an outcome on one line."""
    entries = [number_text(value) if value < LEAST_NUMBER else f"{value:.6g}" for value in (outcome or ())[:6]]
    return f"[{', '.join(entries)}{', …' if outcome and len(outcome) > 6 else ''}]"
