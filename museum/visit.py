"""One exhibit: its environment, its checks, the witness and its replay, whose results are a row of the table."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import dpwitness as dpw
from dpwitness.neighbours.difference import both
from museum.environments import EnvironmentFailed, interpreter
from museum.exhibit import Exhibit

#: The verdict of a check that refutes the claim.
REFUTED: Final = "refuted"
#: The verdict of a check that does not refute the claim.
PASSED: Final = "not refuted"
#: The number of processes of one check.
WORKERS: Final = 1
#: The names of the facts of an exhibit that its row repeats.
FACTS: Final = ("name", "release", "kind", "fault", "promised", "source", "fixed")
#: The names of the options of a check that define an outcome, and that its replay therefore gets too.
REPLAYED: Final = ("errors", "outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check of one release, and the replay of its witness."""

    release: str
    seed: int
    expected: str
    verdict: str  # "refuted", "not refuted", or an error
    lower_bound: float | None = None  # the lower bound of the claim's parameter, with confidence 1 − alpha
    alpha: float | None = None
    pair: str = ""  # the witness's pair in words
    event: str = ""
    replayed: str | None = None  # the verdict on fresh runs of the witness; None without a witness
    detectable: float | None = None  # for a pass, the smallest ε that the check would have refuted
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Whether the verdict, and that of the replay, is the expected one."""
        return self.verdict == self.expected and self.replayed in (None, self.expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """All checks of one exhibit."""

    name: str
    release: str
    kind: str
    claim: str
    fault: str
    promised: str
    source: str
    fixed: str | None
    checks: tuple[Check, ...]

    @property
    def right(self) -> int:
        """The number of checks with the expected verdict."""
        return sum(check.right for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """The fields and the number of right checks as JSON values."""
        return asdict(self) | {"right": self.right}


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """The settings of a visit, the same for every exhibit."""

    environments: Path
    witnesses: Path  # the folder in which witnesses are saved
    seeds: int = 1

    def row(self, exhibit: Exhibit) -> Row:
        """Check an exhibit, and its fixed release, once for each seed."""
        facts = {name: getattr(exhibit, name) for name in FACTS}
        checks = (self._check(exhibit, release, seed) for release in exhibit.releases for seed in range(self.seeds))
        return Row(**facts, claim=str(exhibit.claim), checks=tuple(checks))

    def _check(self, exhibit: Exhibit, release: str, seed: int) -> Check:
        expected = PASSED if exhibit.kind == "control" or release != exhibit.release else REFUTED
        facts: dict[str, Any] = {"release": release, "seed": seed, "expected": expected}
        started = time.perf_counter()
        try:
            function = dpw.remote(interpreter(release, self.environments), exhibit.target)
            started = time.perf_counter()  # the seconds leave out making the environment, which is made once
            verdict = dpw.check(
                function,
                claim=exhibit.claim,
                neighbours=exhibit.neighbours,
                max_time=exhibit.max_time,
                seed=seed,
                workers=WORKERS,
                **exhibit.options,
            )
        except (dpw.DPWitnessError, EnvironmentFailed) as error:
            seconds = time.perf_counter() - started
            return Check(verdict=f"{type(error).__name__}: {error}", seconds=seconds, **facts)
        seconds = time.perf_counter() - started
        if not isinstance(verdict, dpw.Violation):
            return Check(verdict=PASSED, detectable=verdict.detectable_epsilon, seconds=seconds, **facts)
        witness = verdict.witness
        file = self.witnesses / f"{exhibit.name}-{release}-{seed}.json"
        witness.save(file)
        return Check(
            verdict=REFUTED,
            lower_bound=verdict.lower_bound,
            alpha=verdict.alpha,
            pair=" against ".join(both(witness.pair.data, witness.pair.neighbour)),
            event=witness.description,
            replayed=_replayed(file, function, exhibit),
            seconds=seconds,
            **facts,
        )


def _replayed(file: Path, function: Callable[..., Any], exhibit: Exhibit) -> str:
    """The verdict on fresh runs of a saved witness."""
    same = {name: exhibit.options[name] for name in REPLAYED if name in exhibit.options}
    try:
        again = dpw.replay(str(file), function, max_time=exhibit.max_time, workers=WORKERS, **same)
    except dpw.DPWitnessError as error:
        return f"{type(error).__name__}: {error}"
    return REFUTED if again.refuted else PASSED
