"""Cases that can be checked: each in a process of its own."""

from collections.abc import Callable
from dataclasses import dataclass

from dpwitness import errors
from dpwitness.checks import brief
from dpwitness.errors import InvalidParameter, MechanismError
from dpwitness.results.verdict import Verdict
from dpwitness.sweeps.case import NOT_RUN, CaseResult, Plan
from dpwitness.sweeps.process import GRACE, answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Plan):
    """A case of a sweep: a mechanism with its parameters and its share of α. `str` of one is its name."""

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash((self.name, self.alpha, self.seed))

    def check(self, *, grace: float = GRACE) -> Verdict:
        """Check it in a process of its own, and return the verdict at its share of α.

        Parameters
        ----------
        grace
            Seconds beside its own that the process has to start, to import and to compile.

        Raises
        ------
        DPWitnessError
            Where it cannot be run: of the class that says why, `MechanismCrashed` where it ended its process.
        """
        found = self.run(grace=grace)
        if found.verdict is None:
            raise _error(found.error, f"{self.name}: {found.why}")
        return found.verdict

    def run(self, *, grace: float = GRACE, stop: Callable[[], bool] = lambda: False) -> CaseResult:
        """The same, and what became of it where it cannot be run.

        `stop` is asked again and again; once it says True the process is killed, and `KeyboardInterrupt` is raised.
        """
        if self.refused:
            return CaseResult(case=self.name, status=NOT_RUN, error=InvalidParameter.__name__, why=self.refused)
        found = answer({"case": self.to_json()}, seconds=self.max_time, grace=grace, stop=stop)
        return CaseResult.of(self.name, found)


def _error(name: str, message: str) -> errors.DPWitnessError:
    """An error of ours by its class; a `MechanismError` where it is none."""
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.DPWitnessError):
        return kind(message)
    return MechanismError(f"{message} ({brief(name)})" if name else message)
