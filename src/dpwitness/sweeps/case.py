"""What the process of a case is asked, frozen before anything runs, and what became of the case."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from dpwitness.checks import one_line
from dpwitness.codec import JsonFields
from dpwitness.errors import InvalidWitness
from dpwitness.results.fields import Alpha, Count, read_result
from dpwitness.results.text import exceeded
from dpwitness.results.verdict import Verdict

#: What became of a case.
REFUTED: Final = "refuted"
NOT_REFUTED: Final = "not refuted"
NOT_RUN: Final = "not run"
Status = Literal["refuted", "not refuted", "not run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(JsonFields):
    """One mechanism with its parameters, to be checked in a process of its own: what that process is asked.

    `describer` makes a mechanism of it, from `label`, `settings` and `refused`; see `describers.Recipe`.
    """

    name: str  # the module and the name, and what tells it from other cases of the same name
    place: str  # where it is loaded from, as package.module:name
    describer: str
    label: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    refused: str = ""
    alpha: Alpha  # its share of the sweep's α: the probability of a false alarm of this case
    max_time: float
    seed: Count
    records: str | None = None  # a CSV file of records to start from

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult(JsonFields):
    """What became of a case, by its name; `error` and `why`: the class of an error and its message."""

    case: str
    status: Status
    adjacency: str = ""  # which inputs were taken for neighbours, for people
    verdict: Verdict | None = None  # None where it was not run
    error: str = ""
    why: str = ""

    @classmethod
    def of(cls, case: str, found: Mapping[str, object]) -> "CaseResult":
        """What the process of a case answered. One that cannot be read is that of a case that was not run."""
        if found.get("error"):
            return cls(case=case, status=NOT_RUN, error=str(found["error"]), why=one_line(found.get("why")))
        try:
            result: CaseResult = read_result(cls, "answer", {**found, "case": case})
        except InvalidWitness as error:
            return cls(case=case, status=NOT_RUN, error=type(error).__name__, why=one_line(error))
        return result

    @property
    def told(self) -> str:
        """What it shows, on one line."""
        verdict = self.verdict
        if verdict is None:
            return f"{self.why}"
        if verdict.refuted:
            return f"{exceeded(verdict.claim, verdict.lower_bound, digits=3)}, claimed {verdict.claim}"
        told = f"would have caught {verdict.caught}, claimed {verdict.claim}"
        if any(other.refuted for other in verdict.others):
            told += "; refuted under another relation"
        if verdict.floating_point is not None:
            told += "; its last bits leak"
        return told
