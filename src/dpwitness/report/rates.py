"""What figures of an event show: how often each side was seen in it, and what the claim allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from statistics import NormalDist
from typing import Final

from dpwitness.evidence.bet import weighted_errors, weighted_rates
from dpwitness.evidence.counts import Counts
from dpwitness.results.witness import Witness

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
    def text(self) -> str:
        """How many of the runs."""
        return f"{self.hits:,} of {self.runs:,} runs"

    @property
    def ends(self) -> tuple[float, float]:
        """The interval."""
        from scipy.special import betaincinv  # only figures need it

        tail = (1 - LEVEL) / 2
        low = betaincinv(self.hits, self.runs - self.hits + 1, tail) if self.hits else 0.0
        high = betaincinv(self.hits + 1, self.runs - self.hits, 1 - tail) if self.hits < self.runs else 1.0
        return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedRate:
    """What weighted runs on one input show of an event, with the interval of the normal approximation at 95 %."""

    name: str
    runs: int
    share: float
    standard_error: float

    @property
    def text(self) -> str:
        """The share, of how many runs."""
        return f"{self.share:.4g} by {self.runs:,} weighted runs"

    @property
    def ends(self) -> tuple[float, float]:
        """The interval."""
        wide = NormalDist().inv_cdf((1 + LEVEL) / 2) * self.standard_error
        return max(self.share - wide, 0.0), min(self.share + wide, 1.0)


def rates(witness: Witness) -> tuple[Rate | WeightedRate, Rate | WeightedRate]:
    """Those of its event, on D and on D′."""
    counts = witness.counts
    if witness.weighted and counts.runs:
        shares, errors = weighted_rates(counts), weighted_errors(counts)
        one, other = (
            WeightedRate(name=name, runs=counts.runs, share=share, standard_error=error)
            for name, share, error in zip(("D", "D′"), shares, errors, strict=True)
        )
        return one, other
    return (
        Rate(name="D", hits=counts.hits, runs=counts.runs),
        Rate(name="D′", hits=counts.neighbour_hits, runs=counts.runs),
    )


def allowed(witness: Witness) -> float | None:
    """The most that the claim allows on D at the rate seen on D′; None without runs."""
    return float(witness.claim.largest(rates(witness)[1].share)) if witness.counts.runs else None


def cell_shares(counts: Counts) -> tuple[Sequence[float], Sequence[float]]:
    """The share of the runs in each cell of the event's partition, on D and on D′; empty where there is none."""
    k = isqrt(len(counts.cells))
    rows = [counts.cells[i * k : (i + 1) * k] for i in range(k)]
    runs = max(counts.runs, 1)
    return [sum(row) / runs for row in rows], [sum(column) / runs for column in zip(*rows, strict=True)]
