"""What evidence is made of: four integers, of one event or of each of several."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many of n paired runs of evidence had (M(D)∈S, M(D′)∈S) = (1,0), (1,1), (0,1), (0,0).

    Only `confirm` and `epoch` of a `Runner` make them (and `witness` reads them back): the pair and the event were
    fixed before the first of these runs was drawn. Estimates from search runs have another type, `evidence.Estimate`.

    `cells`: where the event is made of k cells of a partition, how many runs had cell i on D and cell j on D′, at
    i·k + j; empty where not, or where there were no runs. Raises `ValueError` for counts that cannot be.
    """

    n10: int = 0
    n11: int = 0
    n01: int = 0
    n00: int = 0
    cells: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.cells and (sum(self.cells) != self.runs or min(self.cells) < 0):
            raise ValueError(f"the counts of {len(self.cells)} cells must add up to the {self.runs} runs")
        if math.isqrt(len(self.cells)) ** 2 != len(self.cells):
            raise ValueError(f"{len(self.cells)} counts of cells are not as many for D as for D′")
        for name in ("n10", "n11", "n01", "n00"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)!r} must not be negative")

    @property
    def runs(self) -> int:
        """The number of paired runs n."""
        return self.n10 + self.n11 + self.n01 + self.n00

    @property
    def hits(self) -> int:
        """How often M(D) fell into the event."""
        return self.n10 + self.n11

    @property
    def neighbour_hits(self) -> int:
        """How often M(D′) fell into the event."""
        return self.n01 + self.n11

    def __add__(self, other: "Counts") -> "Counts":
        cells = self.cells or other.cells
        if self.cells and other.cells:
            cells = tuple(map(sum, zip(self.cells, other.cells, strict=True)))
        return Counts(
            n10=self.n10 + other.n10, n11=self.n11 + other.n11, n01=self.n01 + other.n01, n00=self.n00 + other.n00,
            cells=cells,
        )  # fmt: skip

    def swapped(self) -> "Counts":
        """The same runs with D and D′ exchanged."""
        k = math.isqrt(len(self.cells))
        cells = tuple(self.cells[j * k + i] for i in range(k) for j in range(k))
        return Counts(n10=self.n01, n11=self.n11, n01=self.n10, n00=self.n00, cells=cells)


@dataclass(frozen=True, slots=True, eq=False)
class CountsTable:
    """Counts of k events in the same runs; `cells` has the shape (4, k): n10, n11, n01 and n00 of each."""

    cells: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.cells.ndim != 2 or len(self.cells) != 4 or (self.cells < 0).any():
            raise ValueError(f"cells of shape {self.cells.shape} must have the shape (4, k) and not be negative")

    def __len__(self) -> int:
        return int(self.cells.shape[1])

    def of(self, event: int) -> Counts:
        """The counts of one event, by its number."""
        n10, n11, n01, n00 = self.cells[:, event].tolist()
        return Counts(n10=n10, n11=n11, n01=n01, n00=n00)

    def directed(self, events: NDArray[np.int64], swapped: NDArray[np.bool_]) -> "CountsTable":
        """Those of some events, by their numbers, with D and D′ exchanged where `swapped`; both of shape (m,)."""
        chosen = self.cells[:, events]
        return CountsTable(np.where(swapped, chosen[[2, 1, 0, 3]], chosen))

    def plus(self, earlier: "CountsTable", places: NDArray[np.int64]) -> "CountsTable":
        """The same with earlier runs added; `places`: the numbers of the events there, −1 where there is none."""
        none = np.zeros((4, 1), np.int64)
        return CountsTable(self.cells + np.hstack([earlier.cells, none])[:, places])


NO_COUNTS = CountsTable(np.zeros((4, 0), np.int64))
