"""What a check says in the end: `Violation` or `NotRefuted`. Never "private": a test cannot prove privacy."""

import math
from dataclasses import dataclass
from typing import Any

from dpwitness.claims import Claim
from dpwitness.evidence import Counts
from dpwitness.results.witness import Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What both verdicts know."""

    mechanism: str
    parameters: dict[str, Any]
    claim: Claim
    alpha: float
    log_e_value: float
    epsilon_lower_bound: float  # at confidence 1 − alpha; nats
    witness: Witness  # in `NotRefuted`: the best candidate, which did not refute
    search_runs: int
    seed: int
    reproducible: bool
    seconds: float
    ended: str  # why the confirm runs ended: "refuted", "runs", "time" or "interrupted"
    notes: tuple[str, ...] = ()  # what a reader should know before trusting it

    @property
    def counts(self) -> Counts:
        """The confirm runs."""
        return self.witness.counts

    @property
    def p_value(self) -> float:
        """min(1, 1/E): valid at any stopping time."""
        return math.exp(min(0.0, -self.log_e_value))

    def _common(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "claim": self.claim.to_json(),
            "alpha": self.alpha,
            "log_e_value": self.log_e_value,
            "p_value": self.p_value,
            "epsilon_lower_bound": self.epsilon_lower_bound,
            "witness": self.witness.to_json(),
            "runs": {"search": self.search_runs, "confirm": self.counts.runs},
            "ended": self.ended,
            "seed": self.seed,
            "reproducible": self.reproducible,
            "seconds": round(self.seconds, 3),
            "versions": self.witness.versions,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation(Outcome):
    """The claim is refuted, with false-alarm probability at most alpha."""

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        reason = "the claim is refuted: there is no question what would have been caught"
        return {
            "verdict": "violated",
            **self._common(),
            "detectable_epsilon": None,
            "detectable_epsilon_reason": reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRefuted(Outcome):
    """The claim was not refuted: no proof of privacy.

    `detectable_epsilon`: what this event would have caught with 95 % power, infinite if nothing.
    """

    detectable_epsilon: float

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        value: dict[str, Any] = {"verdict": "not-refuted", **self._common()}
        if math.isfinite(self.detectable_epsilon):
            return {**value, "detectable_epsilon": self.detectable_epsilon}
        reason = "so few runs fell into the event that no ε would have been refuted"
        return {**value, "detectable_epsilon": None, "detectable_epsilon_reason": reason}


Verdict = Violation | NotRefuted


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A lower bound of the true ε of a mechanism: exceeded with the given confidence."""

    mechanism: str
    parameters: dict[str, Any]
    delta: float
    confidence: float
    epsilon_lower_bound: float
    witness: Witness
    search_runs: int
    seed: int
    reproducible: bool
    seconds: float
    ended: str
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return {
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "delta": self.delta,
            "confidence": self.confidence,
            "epsilon_lower_bound": self.epsilon_lower_bound,
            "witness": self.witness.to_json(),
            "runs": {"search": self.search_runs, "confirm": self.witness.counts.runs},
            "ended": self.ended,
            "seed": self.seed,
            "reproducible": self.reproducible,
            "seconds": round(self.seconds, 3),
            "versions": self.witness.versions,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """p-values of one mechanism with one ε, against the test ε's."""

    epsilon: float
    test_epsilons: tuple[float, ...]
    p_values: tuple[float, ...]
    adjusted: tuple[float, ...]  # Holm, over all test ε of this line
    events: tuple[str, ...]
    counts: tuple[Counts, ...]
    pair_label: str
    search_runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The figure of the StatDP paper: p-value against test ε, one line a claimed ε."""

    mechanism: str
    parameters: dict[str, Any]
    delta: float
    method: str
    lines: tuple[Line, ...]
    seed: int
    reproducible: bool
    seconds: float
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        lines = [
            {
                "epsilon": line.epsilon,
                "neighbours": line.pair_label,
                "runs": {"search": line.search_runs, "confirm": line.counts[0].runs},
                "tests": [
                    {
                        "epsilon": e,
                        "p_value": p,
                        "holm": h,
                        "event": text,
                        "counts": {"n10": c.n10, "n11": c.n11, "n01": c.n01, "n00": c.n00},
                    }
                    for e, p, h, text, c in zip(
                        line.test_epsilons, line.p_values, line.adjusted, line.events, line.counts, strict=True
                    )
                ],
            }
            for line in self.lines
        ]
        return {
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "delta": self.delta,
            "method": self.method,
            "lines": lines,
            "seed": self.seed,
            "reproducible": self.reproducible,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }
