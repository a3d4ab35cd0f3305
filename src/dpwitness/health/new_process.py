"""Runs of a mechanism in a new process, which loads it again: noise that this process remembers is drawn again there.

The process is one of those that run remote mechanisms. It calls `answered` once, with a pickled `Request` of this one.
"""

import numbers
import os
import pickle
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpwitness.errors import DPWitnessError, MechanismCrashed, MechanismTimeout
from dpwitness.events import Event, event_from_json
from dpwitness.health.findings import SECONDS, Outcomes, outcome_keys
from dpwitness.health.loading import CannotLoad, Place, load, place_of
from dpwitness.mechanisms.compiled.reach import constants
from dpwitness.mechanisms.layout import RowLayout
from dpwitness.mechanisms.mechanism import InputConversion, Mechanism
from dpwitness.mechanisms.python import Attributes, PythonMechanism, VectorisedMechanism
from dpwitness.mechanisms.remote import Connection, RemoteFunction, RemoteMechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Data, Pair
from dpwitness.runs import Role, generator

#: Set in the new process: a file that calls dpwitness while it is imported must not start another one.
INSIDE: Final = "DPWITNESS_FRESH_PROCESS"
#: Runs on each input at most, and seconds for the new process to start and to import what it needs.
VECTORISED_RUNS: Final = 1 << 16
PLAIN_RUNS: Final = 1 << 10
START: Final = 60.0
CHUNK: Final = 1024
#: Processes that are asked just now.
_RUNNING: Final[set[Connection]] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the new process is asked: which function, on which inputs, and which events to count."""

    function: Place | RemoteFunction
    outcome: Place | Attributes | None
    errors: str
    marked: bool
    layout: RowLayout | None
    by_position: bool
    conversion: InputConversion
    parameters: dict[str, Any]
    vectorised: bool
    interpreted: bool
    inputs: tuple[Data, Data]
    events: tuple[dict[str, Any], ...]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Runs on one input: how many, how many in each event, and what all of them returned if it was always the same.

    `outcomes`: the first of them, as `outcome_keys` writes them.
    """

    runs: int
    hits: tuple[int, ...]
    always: tuple[float, ...] | None
    outcomes: tuple[bytes, ...] = ()


def request(mechanism: Mechanism, pair: Pair, events: Sequence[Event], seed: int) -> Request:
    """Return what to ask a new process of a mechanism: whether events are as frequent there.

    Raises `CannotLoad` for a function that cannot be loaded, and for parameters that may hold memory.
    """
    signature, outcome = mechanism.signature, mechanism.outcome
    function = signature.original or signature.function
    if not isinstance(function, RemoteFunction):  # what is sent to another interpreter is data
        _check_plain(signature.given)
    return Request(
        function=function.anew() if isinstance(function, RemoteFunction) else place_of(function),
        outcome=outcome if outcome is None or isinstance(outcome, Attributes) else place_of(outcome),
        errors=mechanism.errors,
        marked=mechanism.marked,
        layout=mechanism.layout,
        by_position=mechanism.by_position,
        conversion=mechanism.conversion,
        parameters=dict(signature.given),
        vectorised=signature.size is not None,
        interpreted=signature.original is not None,
        inputs=pair.sides,
        events=tuple(event.to_json() for event in events),
        seed=seed,
    )


def _check_plain(parameters: Mapping[str, object]) -> None:
    """Raise `CannotLoad` for a parameter that is not data alone."""
    for name, value in parameters.items():
        if not _is_plain(value):
            raise CannotLoad(
                f"parameter {name!r} is {type(value).__name__}, which may hold what this process remembers"
            )


def _is_plain(value: object) -> bool:
    """Whether a value is data alone, and the same in any process."""
    if isinstance(value, tuple | list):
        return all(_is_plain(item) for item in value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    return value is None or isinstance(value, str | bytes | numbers.Number)


def ask(question: Request) -> tuple[Answer, Answer]:
    """Run the mechanism in a new process. Raises `CannotLoad` where that fails."""
    left, right = (Answer(**one) for one in _told(question))
    return left, right


def same_constants(function: Any) -> bool:
    """Whether the module-level numbers and arrays that a function uses are the same in a new process.

    They are compiled into it: noise among them would be the same in every run. True where it uses none. Raises
    `CannotLoad` where they cannot be read.
    """
    here = constants(function)
    return here is None or _told(place_of(function)) == here


def _told(question: Request | Place) -> Any:
    """What a new process answers: data alone. Raises `CannotLoad`."""
    path = [str(Path(entry or ".").resolve()) for entry in sys.path]
    try:
        asked = pickle.dumps(question)
    except Exception as error:  # whatever an object of the user's raises when it is written
        raise CannotLoad(f"it cannot be written for a new process ({type(error).__name__}: {error})") from error
    request: dict[str, object] = {
        "do": "call",
        "place": __name__,
        "name": answered.__name__,
        "arguments": [path, asked],
    }
    try:
        connection = Connection(sys.executable)
    except OSError as error:
        raise CannotLoad(f"no new process could be asked ({error})") from error
    _RUNNING.add(connection)
    try:
        said = connection.ask(request, START + 4 * SECONDS)
    except MechanismTimeout as error:
        raise CannotLoad(f"a new process did not answer within {START + 4 * SECONDS:g} s") from error
    except (MechanismCrashed, ValueError) as error:
        raise CannotLoad(f"no new process could be asked ({error})") from error
    finally:
        _RUNNING.discard(connection)
        connection.end()
    if "error" in said:
        kind, text, _ = said["error"]
        raise CannotLoad(f"in a new process: {kind}: {text}".splitlines()[0])
    return said["value"]


def end() -> None:
    """End the new processes that are asked just now: whoever waits for one gets `CannotLoad`."""
    for connection in tuple(_RUNNING):
        connection.end()


def answered(path: list[str], question: bytes) -> Any:
    """Answer a pickled question, in the new process."""
    os.environ[INSIDE] = "1"
    sys.path[:] = path
    return answer(pickle.loads(question))


def answer(question: Request | Place) -> Any:
    """Do what the new process is for: load the function, run it on both inputs and count; or read its constants."""
    if isinstance(question, Place):
        return constants(load(question))
    place = question.function
    function, kind = (place, RemoteMechanism) if isinstance(place, RemoteFunction) else (load(place), PythonMechanism)
    signature = Signature.of(function, question.parameters)
    outcome = load(question.outcome) if isinstance(question.outcome, Place) else question.outcome
    kind = VectorisedMechanism if question.vectorised else kind
    mechanism = kind(signature.interpreted() if question.interpreted else signature, outcome, errors=question.errors)
    mechanism.marked, mechanism.conversion = question.marked, question.conversion
    mechanism.begin(question.layout, keyed=False, by_position=question.by_position)
    events = [event_from_json(event) for event in question.events]
    return [_counted(mechanism, data, events, question.seed, side) for side, data in enumerate(question.inputs)]


def _counted(mechanism: Mechanism, data: Data, events: Sequence[Event], seed: int, side: int) -> dict[str, object]:
    """Runs on one input: the fields of an `Answer`."""
    most, chunk = (VECTORISED_RUNS, CHUNK) if mechanism.cost.batched else (PLAIN_RUNS, 1)
    width = max(1, *(event.width for event in events))
    hits, runs, outcomes = [0] * len(events), 0, Outcomes()
    first: list[bytes] = []
    rng = generator(seed, Role.HEALTH_NEW_PROCESS, side)
    for event in events:
        event.contains(np.full((1, width), np.nan))  # what it compiles or loads is not the mechanism's time
    end = time.monotonic() + SECONDS
    while runs < most and (runs == 0 or time.monotonic() < end):
        rows = mechanism.outcomes(data, rng, chunk, start=runs, least=width)
        outcomes.add(rows)
        first += outcome_keys(rows[: PLAIN_RUNS - len(first)])
        hits = [count + int(event.contains(rows).sum()) for count, event in zip(hits, events, strict=True)]
        runs += chunk
    return {"runs": runs, "hits": tuple(hits), "always": outcomes.always, "outcomes": tuple(first)}


def refuse_inside() -> None:
    """Raise where a file that is loaded anew calls dpwitness while it is imported."""
    if os.environ.get(INSIDE):
        raise DPWitnessError(
            "the mechanism's file calls dpwitness when it is imported: put that under if __name__ == '__main__'"
        )
