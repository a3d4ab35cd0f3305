"""A sweep: the cases of some modules, their shares of α, their processes, the file of results, and the table."""

import hashlib
import json
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

from dpwitness import checks, errors
from dpwitness.checks import brief, json_value, one_line
from dpwitness.codec import JsonFields
from dpwitness.errors import InvalidData, InvalidParameter, UnknownTarget
from dpwitness.files import check_writable, read_text, shown, write_atomically
from dpwitness.mechanisms.child import UnreadableAnswer
from dpwitness.mechanisms.remote import REMOTE_SECONDS, program_of
from dpwitness.problem import Effort
from dpwitness.results.fields import Alpha, Count, Seed, read_result
from dpwitness.results.text import table
from dpwitness.results.verdict import Verdict
from dpwitness.sweeps.describers import NO_DATA, Recipe
from dpwitness.sweeps.interpreter import start_worker
from dpwitness.sweeps.worker import (
    CASE_STATUSES,
    NOT_REFUTED,
    NOT_RUN,
    REFUTED,
    CaseResult,
    Listing,
)

#: CASE_GRACE_SECONDS is the time that a case's process has beside `max_time`, to start, to import and to compile.
CASE_GRACE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Recipe, JsonFields):
    """A recipe to be checked in a process of its own; its text is its name."""

    name: str  # the module, the name in it, and the label
    place: str  # package.module:name, from which the thing is loaded
    describer: str  # the name of the describer that makes the mechanism
    alpha: Alpha  # the probability of a false alarm of this case, its share of the sweep's α
    max_time: float  # the time limit of the check, in seconds
    seed: Count
    # The interpreter that runs the case; None for the interpreter of the sweep, and in files of earlier versions.
    python: str | None = field(default=None, metadata={"json": "sparse"})

    def __str__(self) -> str:
        return self.name

    def check(self, *, grace: float = CASE_GRACE_SECONDS) -> Verdict:
        """Check the case in a new process, and return the verdict at its share of α.

        `grace`: seconds that the process has in addition, to start, to import and to compile. Raises the
        `DPWitnessError` that says why a case cannot be run; `MechanismCrashed` for a case that ended its process.
        """
        found = self.run(grace=grace)
        if found.verdict is None:
            kind, text = getattr(errors, found.error, None), f"{self.name}: {found.why}"
            if isinstance(kind, type) and issubclass(kind, errors.DPWitnessError):
                raise kind(text)
            raise errors.MechanismError(text)  # the process wrote the name of another class
        return found.verdict

    def run(self, *, grace: float = CASE_GRACE_SECONDS, stop: Callable[[], bool] = lambda: False) -> CaseResult:
        """Check the case in a new process, and return its result, with an error for a case that cannot be run.

        `stop` is called repeatedly; once it returns True the process is killed, and `KeyboardInterrupt` is raised.
        """
        if self.refused:
            return CaseResult(case=self.name, error="InvalidParameter", why=self.refused)
        child = start_worker(self.python)
        try:
            (answer,) = child.ask(json.dumps(self.to_json()).encode() + b"\n", 1, self.max_time + grace, stop)
            result = read_result(CaseResult, "answer", answer)
            return replace(result, case=self.name)
        except errors.DPWitnessError as error:
            return CaseResult(case=self.name, error=type(error).__name__, why=one_line(error))
        except UnreadableAnswer as error:
            return CaseResult(case=self.name, error="MechanismCrashed", why=f"its process wrote {error}")
        finally:
            child.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep(JsonFields):
    """The cases of a sweep, fixed before the first run; each has an equal share of α."""

    modules: tuple[str, ...]  # the names that the user gave
    alpha: Alpha  # the probability that any case is refuted although it satisfies its claim
    max_time: float  # the time limit of each case, in seconds
    seed: Seed
    cases: tuple[Case, ...]  # the cases, in the order of the modules and of their names
    # Versions of dpwitness and of the packages swept, by name. Files of earlier versions lack them and `without`.
    code: Mapping[str, str] = field(default_factory=dict, metadata={"json": "optional"})
    # The reason why a module has no case, by module.
    without: Mapping[str, str] = field(default_factory=dict, metadata={"json": "optional"})

    @classmethod
    def of(cls, modules: Sequence[str], effort: Effort, python: str | None = None) -> "Sweep":
        """List the cases of modules, as `sweep` does."""
        seed = cast("int", effort.seed)  # `Effort` has chosen one
        names = tuple(dict.fromkeys(checks.text("module", name) for name in checks.items("modules", modules)))
        if not names:
            raise InvalidParameter("give at least one module, such as package.module or path/file.py")
        python = None if python is None else program_of(python)
        found = Listing.of(names) if python is None else listing_in(python, names)
        if not found.recipes:
            raise InvalidParameter("; ".join(f"{name}: {why}" for name, why in found.without.items()))
        number: Counter[str] = Counter()  # names identify results, so the second case of a name gets a number
        cases = []
        for place, describer, recipe in found.recipes:
            module, _, name = place.rpartition(":")
            name = f"{stem_of(module)}.{name}" + (f"({recipe.label})" if recipe.label else "")
            number[name] += 1
            name += f" #{number[name]}" if number[name] > 1 else ""
            case = Case(
                name=name,
                place=place,
                describer=describer,
                alpha=effort.alpha / len(found.recipes),
                max_time=effort.max_time,
                seed=seed_of(seed, name),
                python=python,
                **asdict(recipe),
            )
            cases.append(case)
        return cls(
            modules=names, alpha=effort.alpha, max_time=effort.max_time, seed=seed, cases=tuple(cases),
            code=found.code, without=found.without,
        )  # fmt: skip


def listing_in(python: str, modules: Sequence[str]) -> Listing:
    """The listing of modules that another interpreter imports.

    Raises `UnknownTarget` for a module that cannot be imported, and `InvalidParameter` if the interpreter gives no
    answer or cannot run a sweep.
    """
    child = start_worker(python)
    try:
        (answer,) = child.ask(json.dumps({"modules": modules}).encode() + b"\n", 1, REMOTE_SECONDS)
    except (errors.MechanismError, UnreadableAnswer) as error:
        raise InvalidParameter(f"python={python!r} cannot list the cases of {', '.join(modules)}: {error}") from error
    finally:
        child.end()
    found = cast("dict[str, Any]", answer)
    if raised := found.get("raised"):
        kind, text = raised[2:4]
        raise UnknownTarget(text if kind == "UnknownTarget" else f"{python}: {kind}: {text}")
    recipes = [(place, describer, Recipe(**recipe)) for place, describer, recipe in found["recipes"]]
    return Listing(recipes=recipes, without=found["without"], code=found["code"])


def seed_of(seed: int, name: str) -> int:
    """The seed of a case by its name, below 2^62; other cases do not change it."""
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % (1 << 62)


def stem_of(module: str) -> str:
    """The name of a module; of a path, the file's name without .py."""
    return Path(module).stem if module.endswith(".py") else module


def sweep(
    *modules: str,
    alpha: float = 1e-3,
    max_time: float | str = 20.0,
    seed: int | None = None,
    python: str | None = None,
) -> list[Case]:
    """List the names in modules that claim privacy, as cases: `@pytest.mark.parametrize("case", …, ids=str)`.

    This imports the modules, which runs their code.

    Parameters
    ----------
    modules
        Names of modules, as package.module, or paths of files. The sweep covers the names in a module's `__all__`, else
        the public names that it defines itself.
    alpha
        The probability that any case is refuted although it satisfies its claim. Each case has an equal share.
    max_time
        The time limit of each case, such as 20 or "20s".
    seed
        The seed of all runs; by default a new seed.
    python
        The interpreter of another environment, which imports the modules and runs the cases. dpwitness need not be
        installed there if both interpreters have the same minor version.

    Returns
    -------
        The cases. `str(case)` is the name; `case.check()` runs the case in a process of its own, and returns a verdict,
        or raises an error if the case cannot be run.

    Raises
    ------
    UnknownTarget
        For a module that cannot be imported.
    InvalidParameter
        For settings that make no sense, and if no name in the modules states a claim.
    """
    effort = Effort(alpha=alpha, max_time=checks.seconds("max_time", max_time), seed=seed)
    return list(Sweep.of(modules, effort, python).cases)


def results_in(path: str, wanted: Sweep, *, seed_given: bool) -> tuple[Sweep, dict[str, CaseResult]]:
    """The sweep that a file holds, and its results by name. Raises `InvalidData` for the file of another sweep.

    Without a given seed the file's seed is used, so that interrupted cases draw the runs that they would have drawn.
    """
    try:
        first, *lines = map(json_value, filter(str.strip, read_text(path).splitlines()))
        given = first["sweep"]  # type: ignore[index]  # another type raises
    except (ValueError, LookupError, TypeError) as error:
        raise InvalidData(f"{shown(path)} is not the file of a sweep; choose another --output") from error
    before = read_result(Sweep, "sweep", given)
    if not seed_given:
        cases = (replace(case, seed=seed_of(before.seed, case.name)) for case in wanted.cases)
        wanted = replace(wanted, seed=before.seed, cases=tuple(cases))
    for name in ("modules", "alpha", "max_time", "seed", "code", "cases"):
        then, now = getattr(before, name), getattr(wanted, name)
        if then != now:
            said = "other cases" if name == "cases" else f"{name}={brief(then)}, and not {brief(now)}"
            raise InvalidData(f"{shown(path)} is of a sweep with {said}: give the same, or choose another --output")
    results = [read_result(CaseResult, "result", line) for line in lines]
    return wanted, {one.case: one for one in results}


def run(
    wanted: Sweep,
    *,
    workers: int = 2,
    output: str | None = None,
    seed_given: bool = True,
    told: Callable[[CaseResult, int, int], None] = lambda result, done, size: None,
) -> tuple[Sweep, list[CaseResult]]:
    """Run the cases without a result in a file; return the sweep and all results in its order, fewer after Ctrl-C.

    `workers`: cases at a time; `output`: the file, written whole after each case; `seed_given`: whether the user gave
    the seed, otherwise the file's seed is used. `told` is called with each result, the number of results and the
    number of cases.
    """
    results: dict[str, CaseResult] = {}
    if output is not None:
        check_writable(output)
        if Path(output).is_file() and Path(output).stat().st_size:
            wanted, results = results_in(output, wanted, seed_given=seed_given)

    def save() -> None:
        if output is not None:
            done = [results[case.name].to_json() for case in wanted.cases if case.name in results]
            lines = [{"sweep": wanted.to_json()}, *done]
            write_atomically(output, "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines))

    save()
    stopped = threading.Event()
    left = [case for case in wanted.cases if case.name not in results]
    with ThreadPoolExecutor(workers) as pool, suppress(KeyboardInterrupt):
        try:
            for one in as_completed([pool.submit(case.run, stop=stopped.is_set) for case in left]):
                result = one.result()
                results[result.case] = result
                save()
                told(result, len(results), len(wanted.cases))
        finally:
            stopped.set()  # their processes are killed
            pool.shutdown(cancel_futures=True)
    return wanted, [results[case.name] for case in wanted.cases if case.name in results]


def text_of(sweep: Sweep, results: Sequence[CaseResult]) -> str:
    """The text of a sweep, 80 columns wide: a line of numbers, the table, and the report of each violation."""
    width, size, left = 80, len(sweep.cases), len(sweep.cases) - len(results)
    ordered = sorted(results, key=lambda one: CASE_STATUSES.index(one.status))
    counted = Counter(one.status for one in results)
    without_data = sum(one.why == NO_DATA for one in results)
    numbers = [f"{counted[status]} {status}" for status in CASE_STATUSES]
    numbers[-1] += f" ({without_data} without data)" if without_data else ""
    numbers += [f"{left} left"] if left else []
    common = f"{stem_of(sweep.modules[0])}." if len(sweep.modules) == 1 else ""
    rows = []
    for one in ordered:
        shown = textwrap.shorten(one.told, 160, placeholder=" …")  # errors of libraries may have pages
        rows.append((one.case.removeprefix(common), one.status, "; ".join(filter(None, (shown, one.adjacency)))))
    lines = [
        f"{size} {'case' if size == 1 else 'cases'} of {', '.join(sweep.modules)}: {', '.join(numbers)}",
        f"α = {sweep.alpha:g} for all of them, {sweep.alpha / size:.3g} a case; seed {sweep.seed}",
        *(["interrupted: the same command with the same --output goes on"] if left else []),
        "",
        table(("CASE", "RESULT", "WHAT IT SHOWS"), rows, width=width),
        *([""] if sweep.without else []),
        *(f"no case in {name}: {why}" for name, why in sweep.without.items()),
    ]
    given = {case.name: case.settings.get("parameters", {}) for case in sweep.cases}
    for one in ordered[: counted[REFUTED]]:
        values = ", ".join(f"{name}={brief(value)}" for name, value in given[one.case].items())
        head = f"{one.case}; neighbours: {one.adjacency}" + (f"; parameters: {values}" if values else "")
        lines += ["", *textwrap.wrap(head, width, subsequent_indent="  "), str(one.verdict)]
    if counted[NOT_REFUTED]:
        lines += ["", "Not refuted is no proof of privacy."]
    if counted[NOT_RUN]:
        lines += ["", "To run the others, sweep a file of functions of data and epsilon that call them."]
    return "\n".join(lines)
