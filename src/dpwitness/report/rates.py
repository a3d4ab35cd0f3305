"""What figures of an event show: how often each side was seen in it, and what the claim allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Final

from scipy.stats import beta

from dpwitness.claims import Claim
from dpwitness.evidence.counts import Counts

#: Of the intervals of figures.
LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often runs on one input were seen in an event, with the exact interval of Clopper & Pearson at 95 %.

    The interval is for the eye: it holds for a number of runs fixed beforehand. The verdict rests on the e-value.
    """

    name: str
    hits: int
    runs: int

    @property
    def share(self) -> float:
        """The share of the runs; 0 without runs."""
        return self.hits / self.runs if self.runs else 0.0

    @property
    def ends(self) -> tuple[float, float]:
        """The interval."""
        tail = (1 - LEVEL) / 2
        low = beta.ppf(tail, self.hits, self.runs - self.hits + 1) if self.hits else 0.0
        high = beta.ppf(1 - tail, self.hits + 1, self.runs - self.hits) if self.hits < self.runs else 1.0
        return float(low), float(high)


def rates(counts: Counts) -> tuple[Rate, Rate]:
    """Those of the event, on D and on D′."""
    return (
        Rate(name="D", hits=counts.hits, runs=counts.runs),
        Rate(name="D′", hits=counts.neighbour_hits, runs=counts.runs),
    )


def allowed(counts: Counts, claim: Claim) -> float | None:
    """The most that the claim allows on D at the rate seen on D′; None without runs."""
    return float(claim.largest(counts.neighbour_hits / counts.runs)) if counts.runs else None


def cell_shares(counts: Counts) -> tuple[Sequence[float], Sequence[float]]:
    """The share of the runs in each cell of the event's partition, on D and on D′; empty where there is none."""
    k = isqrt(len(counts.cells))
    rows = [counts.cells[i * k : (i + 1) * k] for i in range(k)]
    runs = max(counts.runs, 1)
    return [sum(row) / runs for row in rows], [sum(column) / runs for column in zip(*rows, strict=True)]
