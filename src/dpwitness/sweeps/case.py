"""A case of a sweep, which is checked in a process of its own, and its result."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from dpwitness import errors
from dpwitness.checks import one_line
from dpwitness.codec import JsonFields
from dpwitness.errors import InvalidParameter, InvalidWitness, MechanismCrashed, MechanismError, MechanismTimeout
from dpwitness.mechanisms.child import Child, Unreadable
from dpwitness.results.fields import Alpha, Count, read_result
from dpwitness.results.text import exceeded
from dpwitness.results.verdict import Verdict
from dpwitness.sweeps.describers import Recipe

#: The statuses of cases, in their order in the table.
REFUTED, NOT_REFUTED, NOT_RUN = STATUSES = ("refuted", "not refuted", "not run")
#: Seconds beside its own that the process of a case has: to start, to import and to compile.
GRACE: Final = 60.0
#: Each case has one core: libraries of linear algebra take all that they find, and cases run side by side.
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


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
        """The status, as the table names it."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Recipe, JsonFields):
    """A recipe to be checked in a process of its own; its text is its name."""

    name: str  # the module, the name in it, and the label
    place: str  # package.module:name, from which the thing is loaded
    describer: str  # which makes the mechanism
    alpha: Alpha  # its share of the sweep's α: the probability of a false alarm of this case
    max_time: float
    seed: Count
    records: str | None = None  # a CSV file of records to start from

    def __str__(self) -> str:
        return self.name

    def check(self, *, grace: float = GRACE) -> Verdict:
        """Check the case in a new process, and return the verdict at its share of α.

        `grace`: seconds that the process has in addition, to start, to import and to compile. Raises the
        `DPWitnessError` that says why a case cannot be run; `MechanismCrashed` for a case that ended its process.
        """
        found = self.run(grace=grace)
        if found.verdict is None:
            kind, text = getattr(errors, found.error, None), f"{self.name}: {found.why}"
            if isinstance(kind, type) and issubclass(kind, errors.DPWitnessError):
                raise kind(text)
            raise MechanismError(text)
        return found.verdict

    def run(self, *, grace: float = GRACE, stop: Callable[[], bool] = lambda: False) -> CaseResult:
        """As `check`, but return a result also for a case that cannot be run.

        `stop` is called repeatedly; once it returns True the process is killed, and `KeyboardInterrupt` is raised.
        """
        if self.refused:
            return CaseResult(case=self.name, error=InvalidParameter.__name__, why=self.refused)
        path = os.pathsep.join([os.getcwd(), *filter(None, sys.path)])
        environment = {**dict.fromkeys(THREADS, "1"), **os.environ, "PYTHONPATH": path}
        child = Child([sys.executable, "-m", "dpwitness.sweeps.worker"], env=environment)
        try:
            (answer,) = child.ask(json.dumps(self.to_json()).encode() + b"\n", 1, self.max_time + grace, stop)
            result: CaseResult = read_result(CaseResult, "answer", answer)
            return replace(result, case=self.name)
        except (MechanismCrashed, MechanismTimeout, InvalidWitness) as error:
            return CaseResult(case=self.name, error=type(error).__name__, why=one_line(error))
        except Unreadable as error:
            return CaseResult(case=self.name, error=MechanismCrashed.__name__, why=f"its process wrote {error}")
        finally:
            child.end()
