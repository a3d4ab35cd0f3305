"""What a search proposes: a directed pair and an event, and how often each side was seen in it. Never evidence."""

from dataclasses import dataclass, replace

from dpwitness.events import Event
from dpwitness.neighbours import Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Rough probabilities of an event under D, under D′ and under both in one run, from search runs.

    Good enough to place a bet on. `both` None: the sides are independent. Raises `ValueError` for what is no
    probability.
    """

    p: float
    q: float
    both: float | None = None

    def __post_init__(self) -> None:
        for name in ("p", "q"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be a probability")
        if self.both is not None and not 0 <= self.both <= min(self.p, self.q) + 1e-12:
            raise ValueError(f"both={self.both!r} must be a probability, at most p and q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many of n paired search runs had (M(D)∈S, M(D′)∈S) = (1,0), (1,1), (0,1), (0,0).

    It may choose a candidate and never proves one: evidence takes `Counts`, which confirm runs alone make.
    """

    n10: int = 0
    n11: int = 0
    n01: int = 0
    n00: int = 0

    @property
    def runs(self) -> int:
        """The number of paired runs n."""
        return self.n10 + self.n11 + self.n01 + self.n00

    @property
    def estimate(self) -> Estimate:
        """The shares of the runs, of which there must be at least one."""
        n = self.runs
        return Estimate(p=(self.n10 + self.n11) / n, q=(self.n01 + self.n11) / n, both=self.n11 / n)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            n10=self.n10 + other.n10, n11=self.n11 + other.n11, n01=self.n01 + other.n01, n00=self.n00 + other.n00
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A pair, D first, an event that D should produce more often than the claim allows, and what was seen of it."""

    pair: Pair
    event: Event
    estimate: Estimate | None = None

    def seen(self, tally: Tally) -> "Candidate":
        """The same with the estimate of new search runs."""
        return replace(self, estimate=tally.estimate)
