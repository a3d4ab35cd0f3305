"""A lower band of a privacy profile and of the power of tests, and the verdict on a claim by this band."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from dpwitness.claims import Claim
from dpwitness.codec import JsonFields
from dpwitness.events import Event
from dpwitness.evidence.bounds import POWER
from dpwitness.evidence.counts import Counts
from dpwitness.evidence.profile_band import BandLine, ProfileBand, detectable_delta
from dpwitness.neighbours import Pair
from dpwitness.neighbours.difference import both
from dpwitness.results.fields import Alpha, Detectable, RunCounts
from dpwitness.results.text import at_least, confidence, label, table
from dpwitness.results.verdict import Result, remarks, spent
from dpwitness.results.witness import DescribedEvent, Witness, versions

#: EPSILON_STEP is the distance in nats between the values of ε in a file's band.
EPSILON_STEP: Final = 0.05
#: SHOWN_RATES has the false positive rates in a report.
SHOWN_RATES: Final = (0.001, 0.01, 0.1, 0.5)
#: LARGEST_BAND_EPSILON is the largest ε of a band, in nats: beyond it e^ε exceeds any number of runs.
LARGEST_BAND_EPSILON: Final = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BandEvent(JsonFields):
    """An event of a band, the counts of the pair in its direction, and the bounds from these counts."""

    json_keys: ClassVar[tuple[str, ...]] = ("event: described", "counts", "line")

    event: Event
    description: str
    counts: Counts
    line: BandLine = field(metadata={"json": "flat"})

    @property
    def described(self) -> DescribedEvent:
        """The event with its text."""
        return DescribedEvent(self.event, self.description)

    @classmethod
    def from_keys(cls, *, event: DescribedEvent, counts: Counts, line: BandLine) -> "BandEvent":
        """The event from the keys of its JSON. Raises `ValueError` for bounds that no probabilities can have."""
        if not (0 <= line.slope <= math.exp(LARGEST_BAND_EPSILON) and abs(line.difference) <= 1 + line.slope):
            raise ValueError(f"slope={line.slope!r} and difference={line.difference!r} must bound probabilities")
        if not (0 <= line.q_low <= 1 and 0 <= line.q_high <= 1):
            raise ValueError(f"q_low={line.q_low!r} and q_high={line.q_high!r} must lie between 0 and 1")
        return cls(event=event.event, description=event.description, counts=counts, line=line)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Profile(Result):
    """A lower band of the privacy profile δ(ε), all ε at once, with confidence 1 − alpha.

    δ(ε) is the largest P[M(D) ∈ S] − e^ε·P[M(D′) ∈ S] over events S, ε in nats, for the tested pair in the direction of
    the larger δ. The mechanism's profile is the largest over all pairs, so the band is below it too. A given claim
    whose profile is below the band somewhere is refuted, with false-alarm probability at most alpha, and `witness` can
    be replayed; else `witness` is None.
    """

    json_keys: ClassVar[tuple[str, ...]] = (
        *("verdict: _verdict", "mechanism", "parameters", "claim", "alpha", "pair", "band: _points"),
        *("detectable_delta", "events", "witness", "runs: run_counts", "ended"),
        *("seed", "reproducible", "seconds", "versions", "notes"),
    )

    pair: Pair
    alpha: Alpha
    events: tuple[BandEvent, ...]
    claim: Claim | None = None
    witness: Witness | None = None
    search_runs: int
    ended: str  # the reason for the end of the confirm runs: "runs", "time", "interrupted", "cluster lost", "failed"
    versions: dict[str, str] = field(default_factory=versions)  # the versions of packages on which numbers depend

    @property
    def band(self) -> ProfileBand:
        """The bounds of all events."""
        return ProfileBand(tuple(event.line for event in self.events))

    @property
    def runs(self) -> int:
        """The number of paired confirm runs."""
        return self.events[0].counts.runs if self.events else 0

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted: its profile lies below the band at some ε."""
        return self.witness is not None

    def __bool__(self) -> bool:
        """True without a claim; with a claim it raises `TypeError`, since "true" could mean refuted or passed."""
        if self.claim is None:
            return True
        raise TypeError("a Profile of a claim is neither true nor false: ask profile.refuted")

    def delta(self, epsilon: ArrayLike) -> Any:
        """The lower band of δ at ε ≥ 0 (nats), a number or an array; 0 where no event shows a difference."""
        return self.band.delta(epsilon)

    def power(self, false_positive_rate: ArrayLike) -> Any:
        """The lower band of the true positive rate, at given false positive rates, of the best test of D′ against D."""
        return self.band.power(false_positive_rate)

    def trade_off(self, false_positive_rate: ArrayLike) -> Any:
        """The upper band of the trade-off function: 1 − `power`. Dong, Roth & Su 2022, Definition 1."""
        return 1 - self.power(false_positive_rate)

    @property
    def largest_epsilon(self) -> float:
        """The largest ε (nats, a multiple of 0.05) at which the band is positive; 0.0 if it is positive nowhere."""
        epsilons = np.arange(0.0, LARGEST_BAND_EPSILON, EPSILON_STEP)
        positive = np.flatnonzero(self.delta(epsilons) > 0)
        return float(epsilons[positive[-1]]) if len(positive) else 0.0

    @property
    def detectable_delta(self) -> Detectable:
        """The smallest δ(ε) that these runs could have shown where the band ends, with 95 % power; may be infinite.

        The ε is the first above `largest_epsilon`, and the event never happens on one side, the best case. For a larger
        ε the δ is larger.
        """
        return detectable_delta(self._end, self.runs, alpha=self.alpha, power=POWER)

    @property
    def tail(self) -> str:
        """A sentence on the smallest δ(ε) that the runs could have shown where the band ends; may be empty."""
        least = self.detectable_delta
        if not least < 1:
            return ""
        return (
            f"from ε = {self._end:.4g} on no δ(ε) below {least:.3g} could have been shown in as many runs "
            "with 95 % power"
        )

    @property
    def _end(self) -> float:
        """The first ε (nats) of the grid at which the band is 0."""
        return self.largest_epsilon + EPSILON_STEP if self.delta(0.0) > 0 else 0.0

    @property
    def run_counts(self) -> RunCounts:
        """The numbers of paired runs of each stage."""
        return RunCounts(search=self.search_runs, confirm=self.runs)

    @property
    def _verdict(self) -> str | None:
        if self.claim is None:
            return None
        return "violated" if self.refuted else "not-refuted"

    @property
    def _points(self) -> list[dict[str, float]]:
        epsilons = np.arange(0.0, self.largest_epsilon + EPSILON_STEP / 2, EPSILON_STEP)
        return [
            {"epsilon": round(float(epsilon), 10), "delta": float(delta)}
            for epsilon, delta in zip(epsilons, np.atleast_1d(self.delta(epsilons)), strict=True)
        ]

    @classmethod
    def from_keys(cls, *, runs: RunCounts, **fields: Any) -> "Profile":
        """The profile from the keys of its JSON."""
        return cls(search_runs=runs.search, **fields)

    @property
    def _headline(self) -> str:
        level = f"with confidence {confidence(self.alpha)}"
        if self.witness is not None and self.claim is not None:
            return f"VIOLATED: {self.call} is not {self.claim.short}: its profile lies above the claim's, {level}"
        if self.claim is not None:
            return f"NOT REFUTED: {self.call} at the claim {self.claim}; this is no proof of privacy"
        return f"privacy profile of {self.call}: δ(ε) is at least this for all ε at once, {level}"

    def __str__(self) -> str:
        first, second = both(self.pair.data, self.pair.neighbour)
        pair = [label("input D", first), label("neighbour D′", second)]
        # A witness may have the pair in the other direction.
        lines = [
            self._headline,
            *self._tables(),
            *([f"  {tail}"] if (tail := self.tail) else []),
            *(pair if self.witness is None else self.witness.lines()),
        ]
        return "\n".join([*lines, *remarks(self, self.ended), spent(self, self.run_counts)])

    def _tables(self) -> list[str]:
        top = self.largest_epsilon
        step = next((step for step in (0.05, 0.1, 0.25, 0.5, 1.0, 2.0) if top / step <= 9), 5.0)  # ten columns at most
        epsilons = np.arange(0.0, top + 1e-9, step)
        head = ["ε", *(f"{epsilon:g}" for epsilon in epsilons)]
        rows = [["δ(ε) ≥", *(at_least(self.delta(epsilon), 3) for epsilon in epsilons)]]
        rates = ["false positive rate", *(f"{rate:g}" for rate in SHOWN_RATES)]
        powers = ["true positive rate ≥", *(at_least(self.power(rate), 3) for rate in SHOWN_RATES)]
        return [f"  {line}" for text in (table(head, rows), table(rates, [powers])) for line in text.splitlines()]

    def __repr__(self) -> str:
        return f"<Profile: {self._headline}>"
