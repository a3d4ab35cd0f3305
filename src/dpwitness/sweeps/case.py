"""The result of a case."""

from dataclasses import dataclass
from typing import ClassVar

from dpwitness.checks import one_line
from dpwitness.codec import JsonFields
from dpwitness.results.text import exceeded
from dpwitness.results.verdict import Verdict

#: STATUSES has the statuses of cases, in their order in the table.
REFUTED, NOT_REFUTED, NOT_RUN = STATUSES = ("refuted", "not refuted", "not run")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult(JsonFields):
    """The result of a case. A case that was not run has the class and the message of an error instead of a verdict."""

    json_keys: ClassVar[tuple[str, ...]] = ("case", "status", "adjacency", "verdict", "error", "why")

    case: str
    adjacency: str = ""  # the inputs taken for neighbours, for people
    verdict: Verdict | None = None
    error: str = ""
    why: str = ""

    @property
    def status(self) -> str:
        """The status of the case, as the table names it."""
        return NOT_RUN if self.verdict is None else REFUTED if self.verdict.refuted else NOT_REFUTED

    @property
    def told(self) -> str:
        """The text of the result, on one line."""
        verdict = self.verdict
        if verdict is None:
            return one_line(self.why)
        if verdict.refuted:
            return f"{exceeded(verdict.claim, verdict.lower_bound, digits=3)}, claimed {verdict.claim}"
        told = f"would have caught {verdict.caught}, claimed {verdict.claim}"
        if any(other.refuted for other in verdict.others):
            told += "; refuted under another relation"
        if verdict.floating_point is not None:
            told += "; its last bits leak"
        return told
