"""Functions that the interpreter of another environment runs, by the program `server.py`."""

import inspect
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief, kind, seconds
from dpwitness.errors import InvalidOutcome, InvalidParameter, MechanismCrashed, MechanismTimeout, UnknownTarget
from dpwitness.mechanisms.child import Child, UnreadableAnswer
from dpwitness.mechanisms.command import OutsideFunction, OutsideMechanism
from dpwitness.mechanisms.draws import Draws
from dpwitness.mechanisms.failures import raised_error
from dpwitness.mechanisms.mechanism import Order
from dpwitness.mechanisms.outcomes import ExceptionOutcome
from dpwitness.mechanisms.python import AttributeReader, OutcomeSummary, Side
from dpwitness.mechanisms.signature import GENERATOR_NAMES, RESERVED_NAMES, Signature
from dpwitness.neighbours import Data
from dpwitness.values import UnreadableValue, value_from_json, value_to_json

#: The default of `max_time`, in seconds; it is long, since libraries may be slow to import.
REMOTE_SECONDS: Final = 600.0
#: The types of values that two interpreters can exchange, for messages; tables of Polars are sent but not returned.
SENDABLE_TYPES: Final = (
    "numbers, flags, texts, bytes, None, arrays, DataFrames of pandas, or lists, tuples, sets or dicts"
)


class RemoteException(Exception):
    """An exception of the function in the other interpreter, with its class name, and its traceback as a note."""

    run = side = 0  # in the request


class RemoteFunction(OutsideFunction):
    """A function of another interpreter, made by `remote`."""

    advice = "give remote(…, max_time=…) more"

    def __init__(self, python: str, place: str, name: str, max_time: float) -> None:
        super().__init__(max_time)
        self.python, self.place = python, place
        self.__name__ = self.__qualname__ = name
        self.__module__ = place
        child, self.__signature__ = self._load()
        self._idle.append(child)

    @override
    def _start(self) -> Child:
        return self._load()[0]

    def _load(self) -> tuple[Child, inspect.Signature]:
        """A process that has imported the function, and the function's signature.

        Raises `InvalidParameter`, `UnknownTarget` and `MechanismTimeout`.
        """
        try:
            child = Child([self.python, str(Path(__file__).with_name("server.py"))], cwd=self.folder)
        except OSError as error:
            raise InvalidParameter(f"python={self.python!r} cannot be started: {error.strerror or error}") from error
        answer: Any = None
        try:
            (answer,) = child.ask(_line(load=[self.place, self.__name__]), 1, self.max_time)
            return child, inspect.Signature([_parameter(*one) for one in answer["parameters"]])
        except MechanismTimeout as error:
            raise MechanismTimeout(f"{self.python}: {error}: {self.advice}") from error
        except (MechanismCrashed, UnreadableAnswer, TypeError, ValueError, LookupError) as error:
            child.end()
            match answer:
                case {"raised": [*_, str(kind), str(text), str()]}:
                    where = f"{self.place}:{self.__name__} cannot be loaded by {self.python}"
                    raise UnknownTarget(f"{where}: {kind}: {text}") from error
            why = error if answer is None else f"it answered {brief(answer)}"
            raise InvalidParameter(f"python={self.python!r} must be a Python of 3.8 or later: {why}") from error

    @override
    def write_input(self, data: Data) -> bytes:
        """Write an input in the JSON of `dpwitness.values`."""
        return json.dumps(value_to_json(data)).encode()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Run once; a given generator seeds the generator of the other interpreter."""
        bound = self.__signature__.bind(*args, **kwargs).arguments
        generator = next((key for key in bound if key in GENERATOR_NAMES), None)
        data = next((key for key in bound if key not in RESERVED_NAMES), None)
        if data is None:
            raise InvalidParameter(f"{self.__name__} takes no data, which is the first parameter besides the generator")
        parameters = {key: value for key, value in bound.items() if key not in (generator, data)}
        words = Words(np.random.default_rng() if generator is None else bound[generator], 1)
        request = _line(
            inputs=[self.write_input(bound[data]).decode()], parameters=json.dumps(value_to_json(parameters)),
            data=data, generator=generator, order="0", words=[words.hex], attributes=(), errors=False,
            seed_globals=False,
        )  # fmt: skip
        with self.child() as child:
            (answer,) = child.ask(request, 1, self.max_time)
        return self.outcomes(answer, 1, 1)[0][0]

    def outcomes(self, answer: Any, sides: int, runs: int) -> list[list[object]]:
        """Return the outcomes in an answer, side by side and run by run.

        Raises `RemoteException` or `SystemExit` if the function raised, `InvalidParameter` and `InvalidOutcome` for
        values that cannot be sent, and `MechanismCrashed` for an answer of unknown form.
        """
        try:
            match answer:
                case {"outcomes": list(found), "raises": list(raises)} if _shaped(found, sides, runs):
                    outputs: list[list[object]] = value_from_json(found)  # type: ignore[assignment]  # as `_shaped` saw
                    for side, run, name in raises:
                        outputs[side][run] = ExceptionOutcome(str(name))
                    return outputs
                case {"raised": [int(run), int(side), str(kind), str(text), str(trace)]} if side in range(sides):
                    raised_there: RemoteException = type(kind, (RemoteException,), {"run": run, "side": side})(text)
                    raised_there.add_note(trace)
                    raise raised_there
                case {"exit": int() | str() | None as code}:
                    raise SystemExit(code)
                case {"unsendable": str(what)}:
                    what = " ".join(what.split())
                    raise InvalidParameter(
                        f"an input or a parameter of {self.__name__} holds {what}, which cannot be sent to another "
                        f"interpreter: give {SENDABLE_TYPES} of them"
                    )
                case {"outcome": [str(shown), str(what)]}:
                    raise InvalidOutcome(
                        f"{self.__name__} returned {' '.join(shown.split())}, and {what} cannot be sent from another "
                        f"interpreter: return {SENDABLE_TYPES} of them, or name attributes, as "
                        "outcome='coef_,intercept_'"
                    )
                case {"attribute": [str(names), str(text)]}:
                    raise InvalidOutcome(f"outcome={names!r}: {text}")
        except (TypeError, OverflowError, LookupError, ValueError) as error:
            if isinstance(error, InvalidOutcome | InvalidParameter):
                raise
        raise MechanismCrashed(f"{self.python} answered {brief(answer)}, which dpwitness cannot read")


def program_of(python: str | os.PathLike[str]) -> str:
    """The absolute path of an interpreter, given by its path or name. Raises `InvalidParameter`."""
    named = os.fsdecode(kind("python", python, (str, os.PathLike), "the path of an interpreter", InvalidParameter))
    program = shutil.which(named)
    if program is None:
        raise InvalidParameter(f"python={named!r} is not a program: give the path of an interpreter, as env/bin/python")
    return os.path.abspath(program)


def remote(python: str | os.PathLike[str], target: str, *, max_time: float | str = REMOTE_SECONDS) -> RemoteFunction:
    """Return a function that the interpreter of another environment runs; it is checked like any other function.

    The function's libraries, such as an old library that needs NumPy 1, need not be installed in this environment, nor
    dpwitness in the other environment. Its parameters are recognised by name. Its generator is a
    `numpy.random.Generator` of the other environment, or a `random.Random` if NumPy is not installed there; dpwitness
    seeds it.

    Parameters
    ----------
    python
        The interpreter, of Python 3.8 or later: a path, such as "old/bin/python", or a name on the search path.
    target
        "path/file.py:function" or "package.module:object", imported by that interpreter.
    max_time
        Seconds that the import may take, and a run on average; runs that are requested together share their time.
        After that the process is killed. A `max_time` of the check ends a run that hangs, too.

    Raises
    ------
    InvalidParameter
        If the interpreter cannot be started.
    UnknownTarget
        If there is no such file or function, or the import raises an exception.
    """
    program = program_of(python)
    place, _, name = target.rpartition(":") if isinstance(target, str) else ("", "", "")
    if not place or not name:
        raise UnknownTarget(f"target={brief(target)} must be path/file.py:FUNCTION or package.module:OBJECT")
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise UnknownTarget(f"there is no file {place}")
        place = str(Path(place).resolve())
    return RemoteFunction(program, place, name, seconds("max_time", max_time))


def _shaped(found: list[object], sides: int, runs: int) -> bool:
    return len(found) == sides and all(isinstance(own, list) and len(own) == runs for own in found)


def _line(**request: object) -> bytes:
    return json.dumps(request).encode() + b"\n"


def _parameter(name: str, kind: str, default: list[object]) -> inspect.Parameter:
    value = value_from_json(default[0]) if default else inspect.Parameter.empty
    return inspect.Parameter(name, inspect._ParameterKind[kind], default=value)


class Words(Draws):
    """Seeds for the other interpreter: 256 random bits for each run or for the first run alone, as in `Draws`."""

    def __init__(self, rng: np.random.Generator, runs: int) -> None:
        self.hex = rng.integers(0, 1 << 64, (runs, 4), np.uint64).astype("<u8").tobytes().hex()


class RemoteMechanism(OutsideMechanism):
    """A mechanism of a `RemoteFunction`; the other interpreter reads and sends the attributes of an output."""

    def __init__(self, signature: Signature, outcome: OutcomeSummary | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature, outcome, errors=errors)
        assert isinstance(signature.function, RemoteFunction)
        self._remote = signature.function
        if isinstance(self._outcome, AttributeReader):
            self._summarise = None  # attributes are read in the other interpreter
        # A default that cannot be sent stays in the other interpreter.
        sent = {name: value for name, value in signature.parameters.items() if type(value) is not UnreadableValue}
        self._parameters = json.dumps(value_to_json(sent))

    @override
    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        return Words(rng, runs if shared or self.draws_globally else 1)

    @override
    def _answers(self, sides: Sequence[Side], order: Order, start: int) -> list[list[object]]:
        request = _line(
            inputs=[self._input(side.data).decode() for side in sides], parameters=self._parameters,
            data=self.signature.data, generator=self.signature.generator, order="".join(map(str, order.tolist())),
            words=[side.draws.hex for side in sides if isinstance(side.draws, Words)],
            attributes=self._attributes, errors=self.errors == "outcome", seed_globals=self.draws_globally,
        )  # fmt: skip
        runs = len(order)
        try:
            (answer,) = self._ask(request, 1, self._remote.max_time * runs * len(sides), start)
            return self._remote.outcomes(answer, len(sides), runs)
        except RemoteException as error:
            raise raised_error(self.name, error, start + error.run, sides[error.side].data) from error
        except UnreadableAnswer as error:
            raise MechanismCrashed(
                f"{self.name} on runs from {start} on: {self._remote.python} wrote {error}"
            ) from error


RemoteFunction.kind = RemoteMechanism
