"""The process of a sweep: `python -m dpwitness.sweeps.worker` answers a request, a line of JSON, and is then killed.

The request is a case, which is checked, or a list of modules, whose cases are listed.
"""

import inspect
import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import packages_distributions, version
from itertools import islice
from types import ModuleType
from typing import Any, ClassVar, Final

import numpy as np

from dpwitness.checks import on_one_line, one_line
from dpwitness.codec import JsonFields
from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.catalog import load_module, load_object
from dpwitness.mechanisms.server import serve
from dpwitness.mechanisms.signature import GENERATOR_NAMES, Signature
from dpwitness.results.text import exceeded
from dpwitness.results.verdict import Verdict
from dpwitness.sweeps.describers import Attempt, Recipe, describer_of, registered

#: CASE_STATUSES has the statuses of cases, in their order in the table.
REFUTED, NOT_REFUTED, NOT_RUN = CASE_STATUSES = ("refuted", "not refuted", "not run")
#: LOCAL_MECHANISM_REASON is the reason why a local mechanism is not run on records of several people.
LOCAL_MECHANISM_REASON: Final = (
    "it returns an entry for each record: its claim is about one record, and not about a dataset"
)
#: MOST_REPEATS is the number of further runs, on all inputs of an attempt, in which an output may differ from the first
#: output of its input: with answers that are flipped with probability .05, an output differs in 96 of 100 attempts.
MOST_REPEATS: Final = 64
#: CASE_VARIABLE is the environment variable that holds the case as JSON, and the number of the attempt that is run.
CASE_VARIABLE: Final = "DPWITNESS_SWEEP_CASE"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult(JsonFields):
    """The result of a case. A case that was not run has the class and the message of an error instead of a verdict."""

    json_keys: ClassVar[tuple[str, ...]] = ("case", "status", "adjacency", "verdict", "error", "why")

    case: str
    adjacency: str = ""  # the inputs taken for neighbours, in words
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


#: NO_CLAIM is the reason why a module has no case.
NO_CLAIM: Final = "no name that it defines carries a claim or has a parameter epsilon"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The recipes in modules, as one interpreter imports them."""

    recipes: Sequence[tuple[str, str, Recipe]]  # recipes, each with its place and the name of its describer
    without: Mapping[str, str]  # the reason why a module has no recipe, by module
    code: Mapping[str, str]  # the versions of dpwitness and of the modules' packages, by name

    @classmethod
    def of(cls, modules: Sequence[str]) -> "Listing":
        """Import modules and list their recipes. Raises `UnknownTarget`."""
        found = {name: [*recipes_of(name)] for name in modules}
        return cls(
            recipes=[one for recipes in found.values() for one in recipes],
            without={name: NO_CLAIM for name, recipes in found.items() if not recipes},
            code=versions_of(modules),
        )


def versions_of(modules: Sequence[str]) -> dict[str, str]:
    """The versions of dpwitness and of the packages that modules belong to, by name."""
    known = packages_distributions()
    packages = {package for name in modules for package in known.get(name.partition(".")[0], ())}
    return {name: version(name) for name in sorted({"dpwitness", *packages})}


def recipes_of(module: str) -> Iterator[tuple[str, str, Recipe]]:
    """The recipes of a module, each with its place and its describer. Raises `UnknownTarget`."""
    for name, thing in names_of(load_module(module)):
        place = f"{module}:{name}"
        if (found := describer_of(thing, place)) is None:
            continue
        try:  # settings become JSON values, as in the file of the sweep
            recipes = [
                replace(one, settings=json.loads(json.dumps(dict(one.settings), default=str)))
                for one in found[1].recipes(thing, place)
            ] or [Recipe(refused="it cannot be described: there is no recipe")]
        except Exception as error:  # for an unexpected signature the case is listed, and not run
            recipes = [Recipe(refused=f"it cannot be described: {on_one_line(error)}")]
        yield from ((place, found[0], one) for one in recipes)


def names_of(module: ModuleType) -> Iterator[tuple[str, object]]:
    """The names in a module's `__all__`; without `__all__` the public names that it or its own submodules define."""
    listed = getattr(module, "__all__", None)
    seen: set[int] = set()
    for name in sorted({name for name in (vars(module) if listed is None else listed) if isinstance(name, str)}):
        with suppress(Exception):  # a listed name may be missing, and a thing may fail when it is inspected
            thing = getattr(module, name)
            home = (getattr(thing, "__module__", None) if callable(thing) else None) or module.__name__
            own = not name.startswith("_") and f"{home}.".startswith(f"{module.__name__}.")
            if (own or listed is not None) and not inspect.ismodule(thing) and id(thing) not in seen:
                seen.add(id(thing))  # a second name of it is left out
                yield name, thing


def answer(request: dict[str, Any]) -> dict[str, object]:
    """The result of a `Case`, or the `Listing` of modules, as JSON values. Raises `UnknownTarget` for a listing."""
    return asdict(Listing.of(request["modules"])) if "modules" in request else answer_case(request)


def answer_case(case: dict[str, Any]) -> dict[str, object]:
    """The result of a `Case`, both as JSON values."""
    warnings.simplefilter("ignore")
    try:
        return check_case(case).to_json()
    except BaseException as error:  # panics of Rust and exits are not an `Exception`
        return CaseResult(case=case["name"], error=type(error).__name__, why=on_one_line(error)).to_json()


def check_case(case: dict[str, Any]) -> CaseResult:
    """The result of a case: its first attempt that runs is checked under each relation that the claim may mean.

    Raises every error of the module, its describer and the mechanism.
    """
    from dpwitness.api.check import check  # not above: each new process that loads the mechanism would import it
    from dpwitness.sweeps import worker  # not as __main__: a new process loads functions by this module's name

    # Attempts are tried in a quarter of the time of the case.
    number, attempt = first_that_runs(attempts_of(case), time.monotonic() + 0.25 * case["max_time"])
    mechanism, outcome = (own := attempt.mechanism), None
    if "<locals>" in getattr(own, "__qualname__", "<locals>"):  # a new process cannot load it by its name
        os.environ[CASE_VARIABLE] = json.dumps({"case": case, "attempt": number})
        worker.chosen_attempt.cache_clear()
        outcome = worker.whole_output
        draws = bool(GENERATOR_NAMES & set(inspect.signature(own).parameters))
        mechanism = worker.run_with_generator if draws else worker.run_without_generator
        mechanism.__name__ = own.__name__  # for messages; a new process finds it by __qualname__
        vars(mechanism)["of_module"] = own.__module__  # for the explanation, which shows the package's own lines
    # A claim is refuted only if it is refuted under each relation, so each is tested at the whole share of α.
    verdicts = [
        check(
            mechanism,
            claim=attempt.claim,
            neighbours=relation,
            outcome=outcome,
            parameters=dict(attempt.parameters),
            alpha=case["alpha"],
            seed=case["seed"],
            max_time=case["max_time"] / len(attempt.relations),
            workers=1,
            reference=case["place"],
        )
        for relation in attempt.relations
    ]
    verdict = min(verdicts, key=lambda one: (one.refuted, one.log_e_value))
    verdict = replace(verdict, others=(*verdict.others, *(one for one in verdicts if one is not verdict)))
    return CaseResult(case=case["name"], adjacency=attempt.adjacency, verdict=verdict)


# The mechanism of the case, as functions at the top of a module: the health check of a violation loads them in a new
# process, where stored noise would differ.


def attempts_of(case: dict[str, Any]) -> Iterator[Attempt]:
    """The attempts at a case. Raises every error of loading the named object and of making the mechanism."""
    thing, describer = load_object(case["place"]), registered()[case["describer"]]
    return describer.attempts(thing, Recipe(label=case["label"], settings=case["settings"]))


@cache
def chosen_attempt() -> Attempt:
    """The attempt that this process runs, which the environment variable `CASE_VARIABLE` holds."""
    asked = json.loads(os.environ[CASE_VARIABLE])
    return next(islice(attempts_of(asked["case"]), asked["attempt"], None))


def run_without_generator(data: object) -> Any:
    """Run the mechanism, which draws its own randomness."""
    return chosen_attempt().mechanism(data)


def run_with_generator(rng: object, data: object) -> object:
    """Run the mechanism, which draws from a generator."""
    return chosen_attempt().mechanism(rng, data)


def whole_output(output: object) -> object:
    """The whole output; as `outcome=` it prevents compilation, which fails for the functions above."""
    return output


def first_that_runs(attempts: Iterator[Attempt], until: float) -> tuple[int, Attempt]:
    """The first attempt that runs on some of its own pairs, and its number. Raises `InvalidParameter`.

    An attempt that runs is refused only if its outcomes have an entry for each record, or if no two runs on an input
    differ and the parameter taken for the data has an unusual name. A form of records for which one attempt returned an
    entry for each record is not tried again.
    """
    said, each = "", set[object]()  # the forms of records for which an attempt returned an entry for each record
    for number, attempt in enumerate(attempts):
        form = getattr(attempt.relations[0], "form", None) if attempt.of_records else None
        if form in each:
            continue
        why = try_attempt(attempt)
        each |= {form} if why == LOCAL_MECHANISM_REASON else set()
        if not why:
            return number, attempt
        said = said or why
        if time.monotonic() > until:
            break
    raise InvalidParameter(LOCAL_MECHANISM_REASON if each else said or "no known input fits its parameters")


def try_attempt(attempt: Attempt) -> str:
    """The reason why an attempt is not checked; empty if it runs on half of the first inputs of its relation."""
    signature, rng = Signature.of(attempt.mechanism, attempt.parameters), np.random.default_rng(0)
    candidates = iter(attempt.relations[0].candidates())
    first = [*islice(candidates, 6)]
    said, lengths, random, failed = "", [], not attempt.unknown, 0

    def run(side: Any) -> Any:
        with warnings.catch_warnings(record=True, action="always") as warned:
            output = signature.call(side, rng, 1)
        # diffprivlib warns where a default comes from the data: it then claims no privacy.
        if leaks := [one.message for one in warned if one.category.__name__ == "PrivacyLeakWarning"]:
            raise InvalidParameter(f"it warns that it leaks: {leaks[0]}")
        if output is None:
            raise TypeError("it returned nothing")
        return output

    sides = [side for pair in first for side in pair.sides]
    for side in sides:
        try:
            output = run(side)
            lengths.append((count_entries(side), count_entries(output)))
            random = random or any(repr(run(side)) != repr(output) for _ in range(MOST_REPEATS // len(sides)))
        except Exception as error:
            said, failed = said or on_one_line(error), failed + 1
            if attempt.strict or failed > len(first):  # more than half of the inputs
                return said
    if attempt.strict:
        smallest = min([*first, *islice(candidates, 34)], key=lambda pair: sum(map(count_entries, pair.sides)))
        try:
            _ = [run(side) for side in smallest.sides]
        except Exception as error:
            return on_one_line(error)
    if lengths and not random:
        return f"it returns the same again and again, and its parameter {attempt.unknown!r} is not known as data"
    several = {records for records, _ in lengths} - {1}
    if attempt.of_records and len(several) > 1 and all(one == other for one, other in lengths):
        return LOCAL_MECHANISM_REASON
    return "" if lengths else said or "no known input fits its parameters"


def count_entries(value: Any) -> int:
    """The number of entries of a value; 1 for a number."""
    value = value[0] if isinstance(value, tuple) and hasattr(value[0], "shape") else value  # features and labels
    return len(value) if isinstance(value, list | tuple) or np.ndim(value) else 1


if __name__ == "__main__":
    serve(answer)
