"""Outputs that are kept until it is known that the rows were wide enough, of mechanisms whose runs no seed repeats.

Runs that were made again would be other runs: long outcomes, for which wider rows are made, would be too rare.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.neighbours import Data


@dataclass(frozen=True, slots=True)
class Raised:
    """Stands for the output of a run that raised an exception of a class of this name."""

    name: str


@dataclass(slots=True)
class Kept:
    """The outputs of the last runs on each input.

    `again`: the same runs are asked for once more, for wider rows.
    """

    again: bool = False
    _last: list[tuple[Data, int, Sequence[Any]]] = field(default_factory=list)

    @contextmanager
    def asked_again(self) -> Iterator[None]:
        """While the same runs are asked for once more."""
        self.again = True
        try:
            yield
        finally:
            self.again = False

    def keep(self, data: Data, start: int, outputs: Sequence[Any]) -> None:
        """Keep the outputs of runs from number `start` on, and those of the other input before."""
        self._last = [*self._last[-1:], (data, start, outputs)]

    def taken(self, data: Data, start: int, rows: NDArray[np.float64]) -> Sequence[Any] | None:
        """The outputs of just these runs, where they are asked for again; None where they must be made."""
        if self.again:
            for kept, first, outputs in self._last:
                if kept is data and first == start and len(outputs) == len(rows):
                    return outputs
        return None
