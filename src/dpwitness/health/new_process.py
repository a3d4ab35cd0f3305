"""Runs of a mechanism in a new process that loads it again, and so draws again noise that this process remembers.

Twenty further processes load the mechanism as well: noise of few values is often the same when it is drawn once more,
and seldom when it is drawn twenty times.
"""

import builtins
import importlib
import importlib.util
import json
import multiprocessing
import numbers
import os
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from dpwitness.checks import class_and_text
from dpwitness.errors import DPWitnessError, MechanismCrashed, MechanismTimeout
from dpwitness.events import Event, event_from_json
from dpwitness.health.findings import CHECK_SECONDS, only_outcome, outcome_keys
from dpwitness.mechanisms.catalog import load_module
from dpwitness.mechanisms.child import Child, UnreadableAnswer
from dpwitness.mechanisms.columns import Columns
from dpwitness.mechanisms.command import OutsideFunction
from dpwitness.mechanisms.compiled.reach import constants
from dpwitness.mechanisms.mechanism import InputConversion, Mechanism
from dpwitness.mechanisms.python import AttributeReader
from dpwitness.mechanisms.server import serve
from dpwitness.mechanisms.signature import LegacyGenerator, Signature
from dpwitness.mechanisms.sql import SqlFunction
from dpwitness.neighbours import Data, Pair
from dpwitness.runs import Role, default_workers, generator
from dpwitness.values import value_from_json, value_to_json

#: INSIDE_VARIABLE is the environment variable of a new process, in which a mechanism's file must not call dpwitness.
INSIDE_VARIABLE: Final = "DPWITNESS_FRESH_PROCESS"
#: FORK_CONTEXT is the context that starts further processes, as forks if the system has them.
FORK_CONTEXT: Final[Any] = multiprocessing.get_context(
    "fork" if "fork" in multiprocessing.get_all_start_methods() else None
)
#: LIBRARIES has the packages that are imported before the forks of further processes, if the mechanism imports them.
LIBRARIES: Final = frozenset({"dpwitness", "numba", "pandas", "scipy", "sklearn"})
#: _RUNNING_PROCESSES has the new processes that are answering now.
_RUNNING_PROCESSES: Final[set[Child]] = set()


class CannotLoad(Exception):
    """The mechanism cannot be loaded in a new process; the message says why."""


class TooLate(CannotLoad):
    """No new process answered in time, so it is not known whether noise is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPlace:
    """The place of a function: a module, its file, and the name in it."""

    module: str
    file: str | None
    name: str


def place_of(function: object) -> FunctionPlace:
    """The place to load a function from. Raises `CannotLoad` for a function that only this process has."""
    plain = getattr(function, "py_func", function)
    name = str(getattr(plain, "__qualname__", type(plain).__qualname__))
    known = getattr(builtins, name, None) is plain
    if not known and not isinstance(plain, FunctionType):
        raise CannotLoad(f"{name} must be a plain function")
    if "<" in name:
        inside = "<locals>" in name
        raise CannotLoad(f"{name} is {'defined inside another function' if inside else 'a lambda, found by no name'}")
    module = sys.modules.get(plain.__module__)
    if module is None:
        raise CannotLoad(f"{name} is not in a module that can be imported, such as code that `exec` ran")
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function and found is not plain:
        raise CannotLoad(f"{plain.__module__}.{name} is another object")
    file = getattr(module, "__file__", None)
    if plain.__module__ == "__main__" and not (file and Path(file).is_file()):  # a pipe has the file "<stdin>"
        raise CannotLoad(f"{name} was written in an interactive session")
    return FunctionPlace(module=plain.__module__, file=None if file is None else str(Path(file).resolve()), name=name)


def load(place: FunctionPlace) -> Callable[..., object]:
    """The function at a place, in a process that has not imported its module before."""
    return attrgetter(place.name)(_module(place.module, place.file))  # type: ignore[no-any-return]


@cache
def _module(name: str, file: str | None) -> ModuleType:
    """The module, imported by its name if that leads to the same file, else loaded from its file under another name.

    A script does not get the name `__main__`: code under `if __name__ == "__main__"` must not run.
    """
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    same = spec is not None and (file is None or str(Path(spec.origin or "").resolve()) == file)
    return load_module(name if same or file is None else file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a new process: the mechanism, both inputs, the events to count, and the number of the process."""

    kind: type[Any]  # the class of the mechanism
    function: FunctionPlace | OutsideFunction | SqlFunction | LegacyGenerator  # the last two hold places
    outcome: FunctionPlace | AttributeReader | None
    errors: str
    columns: Columns | None
    by_position: bool
    conversion: InputConversion
    parameters: dict[str, object]
    interpreted: bool
    inputs: tuple[Data, Data]
    events: tuple[dict[str, object], ...]
    seed: int
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """The number of further processes that load the mechanism, and the runs and seconds of each on an input.

    `seconds`: the time in seconds for their answers, or longer if the first new process takes longer. `limit`: the time
    in seconds for all answers, with the start of Python and all imports.
    """

    processes: int = 20
    seconds: float = 2 * CHECK_SECONDS
    runs: int = 32
    runs_seconds: float = 0.1 * CHECK_SECONDS
    limit: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAnswer:
    """Runs on one input; `always`: their outcome if all agree; `outcomes`: keys of outcomes of the first process."""

    runs: int
    hits: tuple[int, ...]
    always: tuple[float, ...] | None
    outcomes: tuple[bytes, ...] = ()


def request(mechanism: Mechanism, pair: Pair, events: Sequence[Event], seed: int) -> Request:
    """The request to count events in a new process. Raises `CannotLoad` for code or parameters that it cannot load."""
    signature, outcome = mechanism.signature, mechanism.outcome
    function = signature.given_function
    for name, value in () if isinstance(function, OutsideFunction) else signature.given.items():
        if not _is_plain(value):  # unlike here, an `OutsideFunction` gets nothing but data
            raise CannotLoad(f"parameter {name!r} is {type(value).__name__}, which may hold memory of this process")
    return Request(
        kind=type(mechanism),
        function=_map_functions(function, place_of),
        outcome=outcome if outcome is None or isinstance(outcome, AttributeReader) else place_of(outcome),
        errors=mechanism.errors,
        columns=mechanism.columns,
        by_position=mechanism.by_position,
        conversion=mechanism.conversion,
        parameters=dict(signature.given),
        interpreted=signature.plain,
        inputs=pair.sides,
        events=tuple(event.to_json() for event in events),
        seed=seed,
    )


def _map_functions(function: Any, change: Callable[[Any], Any]) -> Any:
    """A mechanism's function after `change` was applied to it, or to the functions that it holds."""
    match function:
        case OutsideFunction():
            return function.anew()
        case SqlFunction():
            return function.mapped(change)
        case LegacyGenerator():
            return LegacyGenerator(change(function.function))
    return change(function)


def _is_plain(value: object) -> bool:
    """Whether a value is data without state: numbers, texts, bytes, numeric arrays, and lists of them."""
    if isinstance(value, tuple | list):
        return all(_is_plain(item) for item in value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    return value is None or isinstance(value, str | bytes | numbers.Number)


def ask(question: Request, further: Further) -> list[tuple[InputAnswer, InputAnswer]]:
    """The answers of a new process, and of further processes that answer. Raises `CannotLoad` if the first fails."""
    return [(InputAnswer(**left), InputAnswer(**right)) for left, right in _ask_processes(question, further)]


def same_constants(function: Callable[..., object], further: Further = Further()) -> bool:
    """Whether the module-level numbers and arrays that a function uses are the same in new processes.

    These values are compiled into the function: noise among them would be the same in every run. True for a function
    without them. Raises `CannotLoad` if they cannot be read.
    """
    here = constants(function)
    return here is None or all(there == here for there in _ask_processes(place_of(function), further))


def _ask_processes(question: Request | FunctionPlace, further: Further) -> list[Any]:
    """The values that new processes answer to `question`. Raises `CannotLoad` if the first process fails."""
    command = [sys.executable, "-c", f"import {__name__} as new_process; new_process.main()"]
    path = [str(Path(entry or ".").resolve()) for entry in sys.path]
    with NamedTemporaryFile() as file:  # inputs may be too large for a line of JSON
        try:
            pickle.dump(question, file, pickle.HIGHEST_PROTOCOL)
            file.flush()
        except Exception as error:  # raised by an object of the user
            raise CannotLoad(f"it cannot be written for a new process ({class_and_text(error)})") from error
        try:
            child = Child(command)
        except OSError as error:
            raise CannotLoad(f"no new process could be asked ({error})") from error
        _RUNNING_PROCESSES.add(child)
        request = json.dumps({"path": path, "question": file.name, "further": asdict(further)}).encode() + b"\n"
        try:
            (reply,) = child.ask(request, 1, further.limit)
            if isinstance(reply, list):
                return [value_from_json(answer) for answer in reply]
            kind, text = reply["raised"][2:4]  # type: ignore[index]  # another type raises
            raise CannotLoad(f"in a new process: {kind}: {text}".splitlines()[0])
        except MechanismTimeout as error:
            late = f"a new process did not answer within {further.limit:.3g} s: give a larger max_time"
            raise TooLate(late) from error
        except MechanismCrashed as error:
            raise CannotLoad(f"in a new process: {error}") from error
        except (UnreadableAnswer, TypeError, ValueError, LookupError) as error:
            raise CannotLoad(f"the answer of a new process cannot be read ({error})") from error
        finally:
            _RUNNING_PROCESSES.discard(child)
            child.end()


def end() -> None:
    """End the new processes that are answering now; callers that wait for an answer get `CannotLoad`."""
    for child in tuple(_RUNNING_PROCESSES):
        child.end()


def main() -> None:
    """Answer requests; the main function of the new process."""
    os.environ[INSIDE_VARIABLE] = "1"
    serve(answers)


def answers(request: dict[str, Any]) -> list[object]:
    """The answers of this process and of its further processes, which start without the mechanism's own modules."""
    sys.path[:], question, further = request["path"], Path(request["question"]), Further(**request["further"])
    end = time.monotonic() + further.seconds
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks beside the thread that reads requests
    here, there = FORK_CONTEXT.Pipe()
    FORK_CONTEXT.Process(target=_ask_further, args=(here, there, question, further)).start()
    there.close()
    asked = pickle.loads(question.read_bytes())
    loaded = load_anew(asked)
    with suppress(OSError):  # raised if the process that asks further processes has ended: this one answers alone
        here.send([name for name in tuple(sys.modules) if name.partition(".")[0] in LIBRARIES])
    found = [_answer_from(loaded, asked)]
    with suppress(EOFError):  # raised when all further processes have answered
        while here.poll(max(end - time.monotonic(), 0.0)):
            found.append(here.recv())
    return [value_to_json(one) for one in found]


def _ask_further(asking: Connection, pipe: Connection, question: Path, further: Further) -> None:
    """Send the answers of further processes as they come; a process that fails or hangs sends no answer.

    `asking`: the other end of `pipe`, which first sends the names of the modules to import.
    """
    asking.close()  # else no end of the asking process is seen
    with suppress(EOFError):  # raised if the mechanism could not be loaded
        # The forks inherit these imports, as twenty imports take up to a minute. The imports draw no noise, and
        # `_answer_of` seeds NumPy's generator in each fork.
        for name in pipe.recv():
            with suppress(Exception):  # a mechanism may import a part of a library in a way of its own
                importlib.import_module(name)
        with FORK_CONTEXT.Pool(default_workers(), maxtasksperchild=1) as pool:
            for found in pool.imap_unordered(partial(_answer_of, question, further), range(1, 1 + further.processes)):
                if found is not None:
                    pipe.send(found)


def _answer_of(question: Path, further: Further, number: int) -> object:
    """The answer of a further process; None if the mechanism fails there."""
    np.random.seed()  # noqa: NPY002  # NumPy's global generator, which all forks would share
    with suppress(Exception, SystemExit):
        asked = pickle.loads(question.read_bytes())
        return answer(replace(asked, number=number) if isinstance(asked, Request) else asked, further)
    return None


def load_anew(question: Request | FunctionPlace) -> Any:
    """The mechanism of a request, or the function at a place, in a process that has not loaded it before."""
    if isinstance(question, FunctionPlace):
        return load(question)
    signature = Signature.of(_map_functions(question.function, load), question.parameters)
    outcome = load(question.outcome) if isinstance(question.outcome, FunctionPlace) else question.outcome
    signature = signature.interpreted() if question.interpreted else signature
    mechanism = question.kind(signature, outcome, errors=question.errors)
    mechanism.conversion = question.conversion
    mechanism.begin(question.columns, by_position=question.by_position)
    return mechanism


def answer(question: Request | FunctionPlace, further: Further | None = None) -> object:
    """The counts of a mechanism's runs on both inputs, fewer in a `further` process, or the constants of a place."""
    return _answer_from(load_anew(question), question, further)


def _answer_from(loaded: Any, question: Request | FunctionPlace, further: Further | None = None) -> object:
    """The answer of a mechanism or a function that `load_anew` returned."""
    if isinstance(question, FunctionPlace):
        return constants(loaded)
    events = [event_from_json(event) for event in question.events]
    streams = [generator(question.seed, Role.HEALTH_NEW_PROCESS, side, question.number) for side in range(2)]
    sides = zip(question.inputs, streams, strict=True)
    return [_count_runs(loaded, data, events, rng, further) for data, rng in sides]


def _count_runs(
    mechanism: Mechanism, data: Data, events: Sequence[Event], rng: np.random.Generator, further: Further | None
) -> dict[str, object]:
    """The fields of the `InputAnswer` on one input."""
    kept = 1 << 10  # the outcomes that the first process sends, and its runs if a call makes one run
    most, chunk = (1 << 16, 1 << 10) if mechanism.cost.batched else (kept, 1)
    most, seconds = (most, CHECK_SECONDS) if further is None else (further.runs, further.runs_seconds)
    width = max(1, *(event.width for event in events))
    hits, runs = [0] * len(events), 0
    first: list[bytes] = []
    only: set[tuple[float, ...] | None] = set()
    for event in events:
        event.contains(np.full((1, width), np.nan))  # compiles the events before the mechanism's time starts
    if further is not None:  # the first call is dropped: unlike later calls it may connect to a server, for example
        mechanism.outcomes(data, rng, 1, start=0, least=width)
    end = time.monotonic() + seconds
    while runs < most and (runs == 0 or time.monotonic() < end):
        rows = mechanism.outcomes(data, rng, chunk, start=runs, least=width)
        only.add(only_outcome(rows))
        if further is None:
            first += outcome_keys(rows[: kept - len(first)])
        hits = [count + int(event.contains(rows).sum()) for count, event in zip(hits, events, strict=True)]
        runs += chunk
    always = only.pop() if len(only) == 1 else None
    return {"runs": runs, "hits": tuple(hits), "always": always, "outcomes": tuple(first)}


def refuse_inside() -> None:
    """Raise `DPWitnessError` in a new process, where a mechanism's file called dpwitness while it was imported."""
    if os.environ.get(INSIDE_VARIABLE):
        raise DPWitnessError(
            "the mechanism's file calls dpwitness when it is imported: put the call under if __name__ == '__main__'"
        )
