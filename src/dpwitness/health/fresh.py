"""A mechanism loaded anew in a process of its own: noise that this process remembers is drawn again there.

`python -m dpwitness.health.fresh` reads one line of JSON (the module search path) and a pickled `Request` from stdin,
both written by the process that started it, and writes what the mechanism returned as one line of JSON.
"""

import builtins
import hashlib
import importlib
import importlib.util
import json
import numbers
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from dpwitness.errors import DPWitnessError
from dpwitness.events import event_from_json
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.mechanisms.vectorised import VectorisedMechanism
from dpwitness.neighbours import Data, Pair
from dpwitness.runs import HEALTH, generator

#: Set in the new process: a file that calls dpwitness while it is imported must not start another one.
INSIDE: Final = "DPWITNESS_FRESH_PROCESS"
#: Seconds of runs on each input, runs at most, and seconds for the new process to start and to import what it needs.
SECONDS: Final = 1.0
VECTORISED_RUNS: Final = 1 << 16
PLAIN_RUNS: Final = 1 << 10
START: Final = 60.0
CHUNK: Final = 1024
#: A stream of its own among those of the health checks.
FRESH: Final = 3


class CannotLoad(Exception):
    """The mechanism cannot be loaded anew; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a function can be loaded from: a module, its file, and the name in it."""

    module: str
    file: str | None
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the new process is asked: which function, on which inputs, and which events to count."""

    function: Place
    outcome: Place | None
    parameters: dict[str, Any]
    vectorised: bool
    interpreted: bool
    inputs: tuple[Data, Data]
    events: tuple[dict[str, Any], ...]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Runs on one input: how many, how many in each event, and what all of them returned if it was always the same."""

    runs: int
    hits: tuple[int, ...]
    always: tuple[float, ...] | None


def place_of(function: Any) -> Place:
    """Where a function can be loaded from. Raises `CannotLoad` for what only this process has."""
    plain = getattr(function, "py_func", function)
    name = getattr(plain, "__qualname__", type(plain).__qualname__)
    known = getattr(builtins, name, None) is plain
    if not known and not isinstance(plain, FunctionType):
        raise CannotLoad(f"{name} is no plain function")
    if "<" in name:
        raise CannotLoad(f"{name} is defined inside another function")
    module = sys.modules.get(plain.__module__)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function and found is not plain:
        raise CannotLoad(f"{plain.__module__} has no {name} that is this function")
    file = getattr(module, "__file__", None)
    if plain.__module__ == "__main__" and not file:
        raise CannotLoad(f"{name} was written in an interactive session")
    return Place(module=plain.__module__, file=None if file is None else str(Path(file).resolve()), name=name)


def request(
    function: Any,
    outcome: Any,
    parameters: Mapping[str, Any],
    pair: Pair,
    events: Sequence[dict[str, Any]],
    *,
    vectorised: bool,
    seed: int,
    interpreted: bool = False,
) -> Request:
    """What to ask a new process of a mechanism. Raises `CannotLoad`.

    `interpreted`: the interpreter is to run the functions that numba compiles, too.
    """
    for name, value in parameters.items():
        if not _is_plain(value):
            raise CannotLoad(
                f"parameter {name!r} is {type(value).__name__}, which may hold what this process remembers"
            )
    return Request(
        function=place_of(function),
        outcome=None if outcome is None else place_of(outcome),
        parameters=dict(parameters),
        vectorised=vectorised,
        interpreted=interpreted,
        inputs=(np.asarray(pair.data), np.asarray(pair.neighbour)),
        events=tuple(events),
        seed=seed,
    )


def _is_plain(value: Any) -> bool:
    """Whether a value is data alone, and the same in any process."""
    if isinstance(value, tuple | list):
        return all(_is_plain(item) for item in value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    return value is None or isinstance(value, str | bytes | numbers.Number)


def ask(question: Request) -> tuple[Side, Side]:
    """Run the mechanism in a new process. Raises `CannotLoad` where that fails."""
    left, right = (
        Side(runs=one["runs"], hits=tuple(one["hits"]), always=None if one["always"] is None else tuple(one["always"]))
        for one in _told(question)
    )
    return left, right


def same_constants(function: Any) -> bool:
    """Whether the module-level numbers and arrays that a function uses are the same in a new process.

    They are compiled into it: noise among them would be the same in every run. True where it uses none. Raises
    `CannotLoad` where they cannot be read.
    """
    here = constants(function)
    return here is None or _told(place_of(function)) == here


def constants(function: Any) -> str | None:
    """A digest of the module-level numbers and arrays that a function and those it calls use; None without any."""
    found: dict[str, bytes] = {}
    seen: set[int] = set()

    def visit(function: FunctionType) -> None:
        if id(function) in seen or function.__module__.partition(".")[0] == __package__:
            return  # our own files draw nothing when they are imported
        seen.add(id(function))
        for name in _names(function.__code__):
            value = function.__globals__.get(name)
            value = getattr(value, "py_func", value)
            if isinstance(value, FunctionType):
                visit(value)
            elif isinstance(value, np.ndarray):
                found[f"{function.__qualname__} {name}"] = value.tobytes()
            elif isinstance(value, numbers.Number):
                found[f"{function.__qualname__} {name}"] = repr(value).encode()

    plain = getattr(function, "py_func", function)
    if isinstance(plain, FunctionType):
        visit(plain)
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest() if found else None


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*(_names(part) for part in inner))


def _told(question: "Request | Place") -> Any:
    """What a new process answers. Raises `CannotLoad`."""
    head = json.dumps([str(Path(entry or ".").resolve()) for entry in sys.path]).encode()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dpwitness.health.fresh"],
            input=head + b"\n" + pickle.dumps(question),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=START + 4 * SECONDS,
            env={**os.environ, INSIDE: "1"},
            check=False,
        )
        said: dict[str, Any] = {"error": f"it ended with exit code {done.returncode}"}
        if done.stdout:
            said = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise CannotLoad(f"a new process did not answer within {error.timeout:g} s") from error
    except (OSError, ValueError) as error:
        raise CannotLoad(f"no new process could be asked ({error})") from error
    if "error" in said:
        raise CannotLoad(f"in a new process: {said['error']}")
    return said["answer"]


def answer(question: Request | Place) -> Any:
    """What the new process does: load the function, run it on both inputs and count; or read its constants."""
    if isinstance(question, Place):
        return constants(_loaded(question))
    function = _loaded(question.function)
    outcome = None if question.outcome is None else _loaded(question.outcome)
    kind = VectorisedMechanism if question.vectorised else PythonMechanism
    signature = Signature.of(function, question.parameters)
    mechanism = kind(signature.interpreted() if question.interpreted else signature, outcome)
    events = [event_from_json(event) for event in question.events]
    return [_side(mechanism, data, events, question.seed, side) for side, data in enumerate(question.inputs)]


def _side(mechanism: PythonMechanism, data: Data, events: Sequence[Any], seed: int, side: int) -> dict[str, Any]:
    most, chunk = (VECTORISED_RUNS, CHUNK) if mechanism.signature.size is not None else (PLAIN_RUNS, 1)
    width = max(1, *(event.width for event in events))
    hits, runs, first, same = [0] * len(events), 0, None, True
    rng = generator(seed, HEALTH, FRESH, side)
    for event in events:
        event.contains(np.full((1, width), np.nan))  # what it compiles or loads is not the mechanism's time
    end = time.monotonic() + SECONDS
    while runs < most and (runs == 0 or time.monotonic() < end):
        rows = np.full((chunk, width), np.nan)
        width = max(mechanism.fill(data, rng, rows, runs), width)
        if width > rows.shape[1]:
            continue  # an outcome longer than the rows: once more, with room for it
        first = rows[0] if first is None else first
        known = np.concatenate([first, np.full(rows.shape[1] - len(first), np.nan)])
        same = same and np.array_equal(rows, np.broadcast_to(known, rows.shape), equal_nan=True)
        hits = [count + int(event.contains(rows).sum()) for count, event in zip(hits, events, strict=True)]
        runs += chunk
    always = [float(value) for value in first if not np.isnan(value)] if same and first is not None else None
    return {"runs": runs, "hits": hits, "always": always}


def _loaded(place: Place) -> Callable[..., Any]:
    """The function at a place, of a module that is imported here for the first time."""
    if place.module == "builtins":
        return getattr(builtins, place.name)  # type: ignore[no-any-return]
    found: Any = sys.modules.get(_name(place)) or _module(place)
    for part in place.name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def _name(place: Place) -> str:
    # As in multiprocessing: what stands under `if __name__ == "__main__"` must not run.
    return "__dpwitness_main__" if place.module == "__main__" else place.module


def _module(place: Place) -> ModuleType:
    """Import a module by its name where that leads to the same file, else from its file under its name."""
    name = _name(place)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is not None and (place.file is None or (spec.origin and str(Path(spec.origin).resolve()) == place.file)):
        return importlib.import_module(name)
    if place.file is None:
        raise ImportError(f"there is no module {name}")
    sys.path.insert(0, str(Path(place.file).parent))
    spec = importlib.util.spec_from_file_location(name, place.file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{place.file} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def refuse_inside() -> None:
    """Raise where a file that is loaded anew calls dpwitness while it is imported."""
    if os.environ.get(INSIDE):
        raise DPWitnessError(
            "the mechanism's file calls dpwitness when it is imported: put that under if __name__ == '__main__'"
        )


def main() -> None:
    """Answer the question on stdin; stdout belongs to the answer, whatever the mechanism prints."""
    out = os.dup(1)
    os.dup2(2, 1)
    sys.path[:] = json.loads(sys.stdin.buffer.readline())
    try:
        said: dict[str, Any] = {"answer": answer(pickle.load(sys.stdin.buffer))}
    except BaseException as error:  # whatever the user's code raises is told, SystemExit included
        said = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    with os.fdopen(out, "w") as stream:
        stream.write(json.dumps(said))


if __name__ == "__main__":
    # The requests are of the module's own class, not of this script's.
    from dpwitness.health.fresh import main as _main

    _main()
