"""The result of a case."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from dpwitness.checks import one_line
from dpwitness.codec import JsonFields
from dpwitness.errors import InvalidWitness
from dpwitness.results.fields import read_result
from dpwitness.results.text import exceeded
from dpwitness.results.verdict import Verdict

#: The status of a case.
REFUTED: Final = "refuted"
NOT_REFUTED: Final = "not refuted"
NOT_RUN: Final = "not run"
Status = Literal["refuted", "not refuted", "not run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult(JsonFields):
    """The result of a case; `error` and `why`: the class and the message of the error of a case that was not run."""

    case: str
    status: Status
    adjacency: str = ""  # the inputs taken for neighbours, for people
    verdict: Verdict | None = None  # None if the case was not run
    error: str = ""
    why: str = ""

    @classmethod
    def of(cls, case: str, found: Mapping[str, object]) -> "CaseResult":
        """The result in the answer of a case's process; a case whose answer cannot be read was not run."""
        if found.get("error"):
            return cls(case=case, status=NOT_RUN, error=str(found["error"]), why=one_line(found.get("why")))
        try:
            result: CaseResult = read_result(cls, "answer", {**found, "case": case})
        except InvalidWitness as error:
            return cls(case=case, status=NOT_RUN, error=type(error).__name__, why=one_line(error))
        return result

    @property
    def told(self) -> str:
        """The text of the result, on one line."""
        verdict = self.verdict
        if verdict is None:
            return self.why
        if verdict.refuted:
            return f"{exceeded(verdict.claim, verdict.lower_bound, digits=3)}, claimed {verdict.claim}"
        told = f"would have caught {verdict.caught}, claimed {verdict.claim}"
        if any(other.refuted for other in verdict.others):
            told += "; refuted under another relation"
        if verdict.floating_point is not None:
            told += "; its last bits leak"
        return told
