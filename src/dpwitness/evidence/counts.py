"""What evidence is made of: four integers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many of n paired confirm runs had (M(D)∈S, M(D′)∈S) = (1,0), (1,1), (0,1), (0,0).

    Only `runs.confirm` makes them (and `witness` reads them back): the pair and the event were fixed before the
    first of these runs was drawn. Estimates from search runs have another type, `evidence.Estimate`.
    """

    n10: int = 0
    n11: int = 0
    n01: int = 0
    n00: int = 0

    def __post_init__(self) -> None:
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
        return Counts(
            n10=self.n10 + other.n10, n11=self.n11 + other.n11, n01=self.n01 + other.n01, n00=self.n00 + other.n00
        )

    def swapped(self) -> "Counts":
        """The same runs with D and D′ exchanged."""
        return Counts(n10=self.n01, n11=self.n11, n01=self.n10, n00=self.n00)
