"""Candidates of a search, never evidence: a directed pair, an event, and estimates of the event's probabilities."""

import math
from dataclasses import dataclass, field, replace
from typing import Final, Self

import numpy as np

from dpwitness.arrays import Booleans
from dpwitness.events import Event
from dpwitness.neighbours import Pair

#: The largest parameter, and log ratio of probabilities, in nats: beyond about 709 nats exp overflows a double.
MOST_NATS: Final = 700.0
#: The largest order of a divergence: for a larger order a file would ask for powers that no double holds.
MOST_ORDER: Final = 1e6
#: The least and the largest share of the wealth on an event beside cells: at other shares a bet's level could be 0.
EVENT_SHARES: Final = (1e-3, 0.999)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsEstimate:
    """Rough probabilities of the cells of a partition, from search runs, and the bet that follows from them.

    Attributes
    ----------
    joint
        The probability of cell i on D and cell j on D′ in one paired run, at i·k + j; shape (k²,).
    order, log_ratios
        The order of the tested divergence, and the log ratios (nats) of its tangent, a `claims.renyi.Hyperplane`.
    against
        The parameter of the claim's family against which the bet is best.
    event_share
        The share of the wealth on the event alone, 0 or within `EVENT_SHARES`: rare cells may look good by chance.

    Raises `ValueError` for numbers outside these ranges.
    """

    joint: tuple[float, ...]
    order: float
    log_ratios: tuple[float, ...]
    against: float
    event_share: float = field(default=0.0, metadata={"json": "optional"})

    def __post_init__(self) -> None:
        if len(self.joint) != len(self.log_ratios) ** 2 or not all(0 <= share <= 1 for share in self.joint):
            raise ValueError(f"joint must hold the probabilities of {len(self.log_ratios)}² pairs of cells")
        if not 0.99 <= sum(self.joint) <= 1.01:
            raise ValueError(f"the probabilities of all cells add up to {sum(self.joint)!r}, not to 1")
        if not 0 <= self.against <= MOST_NATS:
            raise ValueError(f"against={self.against!r} must lie between 0 and {MOST_NATS:g}")
        least, most = EVENT_SHARES
        if self.event_share and not least <= self.event_share <= most:
            raise ValueError(f"event_share={self.event_share!r} must be 0, or lie between {least} and {most}")
        if not 1 <= self.order <= MOST_ORDER:
            raise ValueError(f"order={self.order!r} must lie between 1 and {MOST_ORDER:g}")
        if len(self.log_ratios) < 2 or not all(abs(ratio) <= MOST_NATS for ratio in self.log_ratios):
            raise ValueError(f"log_ratios must be at least two numbers between −{MOST_NATS:g} and {MOST_NATS:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Rough probabilities of an event under D, under D′ and under both in one run, from search runs.

    Estimates place a bet and prove nothing. `both` is None for independent sides; `cells` has the estimate of all cells
    of a partition, if the bet is on cells. Raises `ValueError` for a number that is not a probability.
    """

    p: float
    q: float
    both: float | None = field(default=None, metadata={"json": "optional"})
    cells: CellsEstimate | None = field(default=None, metadata={"json": "sparse"})

    def __post_init__(self) -> None:
        for name in ("p", "q"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be a probability")
        if self.both is not None and not 0 <= self.both <= min(self.p, self.q) + 1e-12:
            raise ValueError(f"both={self.both!r} must be a probability, at most p and q")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCounts:
    """The numbers of paired runs with (M(D)∈S, M(D′)∈S) = (1,0), (1,1), (0,1), (0,0): the base of `Tally` and `Counts`.

    `cells`: for an event made of k cells of a partition, the number of runs with cell i on D and cell j on D′, at
    i·k + j; empty for any other event, and without runs.
    """

    n10: int = 0
    n11: int = 0
    n01: int = 0
    n00: int = 0
    cells: tuple[int, ...] = field(default=(), metadata={"json": "sparse"})

    @property
    def four(self) -> tuple[int, int, int, int]:
        """The counts of (1,0), (1,1), (0,1) and (0,0)."""
        return self.n10, self.n11, self.n01, self.n00

    @property
    def runs(self) -> int:
        """The number of paired runs n."""
        return self.n10 + self.n11 + self.n01 + self.n00

    @property
    def hits(self) -> int:
        """The number of runs with M(D) in the event."""
        return self.n10 + self.n11

    @property
    def neighbour_hits(self) -> int:
        """The number of runs with M(D′) in the event."""
        return self.n01 + self.n11

    def swapped(self) -> Self:
        """The counts of the same runs with D and D′ exchanged."""
        k = math.isqrt(len(self.cells))
        cells = tuple(self.cells[j * k + i] for i in range(k) for j in range(k))
        return replace(self, n10=self.n01, n01=self.n10, cells=cells)

    def __add__(self, other: Self) -> Self:
        cells = self.cells or other.cells
        if self.cells and other.cells:
            cells = tuple(map(sum, zip(self.cells, other.cells, strict=True)))
        four = {name: getattr(self, name) + getattr(other, name) for name in ("n10", "n11", "n01", "n00")}
        return replace(self, **four, cells=cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(PairedCounts):
    """The counts of an event in paired search runs: they may choose a candidate, but evidence takes `Counts` alone."""

    @property
    def estimate(self) -> Estimate:
        """The estimated probabilities of the event: its shares of the runs. Needs at least one run."""
        n = self.runs
        return Estimate(p=self.hits / n, q=self.neighbour_hits / n, both=self.n11 / n)

    def estimate_of(self, inside: Booleans) -> Estimate:
        """The estimate of an event of some cells; `inside`: whether it holds each cell, shape (k,)."""
        table, n = np.reshape(self.cells, (len(inside), len(inside))), self.runs
        p, q, both = table[inside].sum(), table[:, inside].sum(), table[np.ix_(inside, inside)].sum()
        return Estimate(p=int(p) / n, q=int(q) / n, both=int(both) / n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A pair, D first, an event that D should produce more often than the claim allows, and its estimate."""

    pair: Pair
    event: Event
    estimate: Estimate | None = None

    @property
    def coupled(self) -> bool:
        """Whether the sides of a paired run share their random draws; False if the estimate is of independent sides."""
        return self.estimate is None or self.estimate.both is not None

    def seen(self, tally: Tally) -> "Candidate":
        """The candidate with the estimate of new search runs."""
        return replace(self, estimate=tally.estimate)
