"""What a search proposes: a directed pair, an event, and how often each side fell into the event. Never evidence."""

import math
from dataclasses import dataclass, field, replace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import Event
from dpwitness.neighbours import Pair

#: Logarithms of ratios of probabilities, and parameters in nats, beyond which a double overflows; the largest order of
#: a divergence that a claim is about.
MOST_NATS: Final = 700.0
MOST_ORDER: Final = 1e6
#: Shares of the wealth on an event beside cells: of less, or of more, a level of either part might be 0 in a double.
SHARES: Final = (1e-3, 0.999)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsEstimate:
    """Rough probabilities of the cells of a partition, from search runs, and the bet that follows from them.

    Attributes
    ----------
    joint
        The probability of cell i on D and cell j on D′ in one paired run, at i·k + j; shape (k²,).
    order, log_ratios
        Of the divergence that is tested, and of the hyperplane that touches it; see `claims.renyi.Hyperplane`.
    against
        The parameter of the claim's family that the bet is best against.
    event_share
        The share of the wealth that is bet on the event alone, 0 or `SHARES`: what rare cells promised may not come.

    Raises `ValueError` for numbers that cannot be these.
    """

    joint: tuple[float, ...]
    order: float
    log_ratios: tuple[float, ...]
    against: float
    event_share: float = field(default=0.0, metadata={"json": "optional"})

    def __post_init__(self) -> None:
        if len(self.joint) != len(self.log_ratios) ** 2 or not all(0 <= share <= 1 for share in self.joint):
            raise ValueError(f"a joint law of {len(self.log_ratios)} cells needs the square of it in probabilities")
        if not 0.99 <= sum(self.joint) <= 1.01:
            raise ValueError(f"the probabilities of all cells add up to {sum(self.joint)!r}, not to 1")
        if not 0 <= self.against <= MOST_NATS:
            raise ValueError(f"against={self.against!r} must lie between 0 and {MOST_NATS:g}")
        if self.event_share and not SHARES[0] <= self.event_share <= SHARES[1]:
            raise ValueError(f"event_share={self.event_share!r} must be 0, or lie between {SHARES[0]} and {SHARES[1]}")
        if not 1 <= self.order <= MOST_ORDER:
            raise ValueError(f"order={self.order!r} must lie between 1 and {MOST_ORDER:g}")
        if len(self.log_ratios) < 2 or not all(abs(ratio) <= MOST_NATS for ratio in self.log_ratios):
            raise ValueError(f"log_ratios must be at least two numbers between −{MOST_NATS:g} and {MOST_NATS:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Rough probabilities of an event under D, under D′ and under both in one run, from search runs.

    Good enough to place a bet on. `both` None: the sides are independent. `cells`: what was seen of all the cells of a
    partition, where the bet is on them. Raises `ValueError` for a number that is no probability.
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
    """How many of n paired runs had (M(D)∈S, M(D′)∈S) = (1,0), (1,1), (0,1), (0,0); two types, which never mix.

    `cells`: where the event is made of k cells of a partition, how many runs had cell i on D and cell j on D′, at
    i·k + j; empty where not, or where there were no runs.
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
        """How often M(D) fell into the event."""
        return self.n10 + self.n11

    @property
    def neighbour_hits(self) -> int:
        """How often M(D′) fell into the event."""
        return self.n01 + self.n11

    def __add__(self, other: Self) -> Self:
        cells = self.cells or other.cells
        if self.cells and other.cells:
            cells = tuple(map(sum, zip(self.cells, other.cells, strict=True)))
        four = {name: getattr(self, name) + getattr(other, name) for name in ("n10", "n11", "n01", "n00")}
        return replace(self, **four, cells=cells)

    def _exchanged(self) -> Self:
        """The same runs with D and D′ in each other's place."""
        k = math.isqrt(len(self.cells))
        cells = tuple(self.cells[j * k + i] for i in range(k) for j in range(k))
        return replace(self, n10=self.n01, n01=self.n10, cells=cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(PairedCounts):
    """What n paired search runs showed of an event.

    It may choose a candidate and never proves one: evidence takes `Counts`, which `confirm` and `epoch` alone make.
    """

    @property
    def estimate(self) -> Estimate:
        """The shares of the runs, of which there must be at least one."""
        n = self.runs
        return Estimate(p=self.hits / n, q=self.neighbour_hits / n, both=self.n11 / n)

    def estimate_of(self, inside: NDArray[np.bool_]) -> Estimate:
        """The shares of the runs in a set that is made of some of the k cells; shape (k,)."""
        table, n = np.reshape(self.cells, (len(inside), len(inside))), self.runs
        p, q, both = table[inside].sum(), table[:, inside].sum(), table[np.ix_(inside, inside)].sum()
        return Estimate(p=int(p) / n, q=int(q) / n, both=int(both) / n)

    @property
    def swapped(self) -> "Tally":
        """The same runs with D and D′ in each other's place."""
        return self._exchanged()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A pair, D first, an event that D should produce more often than the claim allows, and what was seen of it."""

    pair: Pair
    event: Event
    estimate: Estimate | None = None

    @property
    def coupled(self) -> bool:
        """Whether the sides of its runs share their random draws: unless its estimate is of independent sides."""
        return self.estimate is None or self.estimate.both is not None

    def seen(self, tally: Tally) -> "Candidate":
        """The same with the estimate of new search runs."""
        return replace(self, estimate=tally.estimate)
