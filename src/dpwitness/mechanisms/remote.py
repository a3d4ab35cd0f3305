"""Functions that the interpreter of another environment runs: commands whose program is the file `server.py`."""

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
from dpwitness.mechanisms.child import Child, Unreadable
from dpwitness.mechanisms.command import Command, CommandMechanism, ReportedError, Seeds
from dpwitness.mechanisms.draws import Draws
from dpwitness.mechanisms.outcomes import SINGLE_TYPES, ExceptionOutcome
from dpwitness.mechanisms.python import Attributes, Outcome
from dpwitness.mechanisms.signature import GENERATOR_NAMES, RESERVED_NAMES, Signature
from dpwitness.neighbours import Data
from dpwitness.values import Unreadable as UnreadableValue
from dpwitness.values import value_from_json, value_to_json

#: The default of `max_time` in seconds; long, since libraries may be slow to import.
REMOTE_SECONDS: Final = 600.0
#: The runs of a request, which share the time of an exchange.
REQUEST_RUNS: Final = 32
#: The types of values that two interpreters can exchange, for messages.
SENDABLE_TYPES: Final = (
    "numbers, flags, texts, bytes, None, arrays, DataFrames of pandas, or lists, tuples, sets or dicts"
)


class RemoteException(ReportedError):
    """An exception of the function in the other interpreter, with its class name, and its traceback as a note."""

    @property
    @override
    def outcome(self) -> ExceptionOutcome:
        return ExceptionOutcome(type(self).__name__)


class RemoteFunction(Command):
    """A function of another interpreter, made by `remote`."""

    advice = "give remote(…, max_time=…) more"

    def __init__(self, python: str, place: str, name: str, max_time: float) -> None:
        argv = (python, str(Path(__file__).with_name("server.py")))
        super().__init__(argv, seeded=True, batch=REQUEST_RUNS, max_time=max_time)
        self.python, self.place = python, place
        self.__name__ = self.__qualname__ = name
        self.__module__ = place
        child, self.__signature__ = self._load()
        self._idle.append(child)
        names = self.__signature__.parameters
        self._generator = next((key for key in names if key in GENERATOR_NAMES), None)
        self._data = next((key for key in names if key not in RESERVED_NAMES), "")

    @override
    def start(self) -> Child:
        return self._load()[0]

    def _load(self) -> tuple[Child, inspect.Signature]:
        """A process that has imported the function, and the function's signature.

        Raises `InvalidParameter`, `UnknownTarget` and `MechanismTimeout`.
        """
        child, answer = super().start(), None
        try:
            (answer,) = child.ask(_line(load=[self.place, self.__name__]), 1, self.max_time)
            found: Any = answer
            return child, inspect.Signature([_parameter(*one) for one in found["parameters"]])
        except MechanismTimeout as error:
            raise MechanismTimeout(f"{self.python}: {error}: {self.advice}") from error
        except (MechanismCrashed, Unreadable, TypeError, ValueError, LookupError) as error:
            child.end()
            match answer:
                case {"raised": [str(kind), str(text), str()]}:
                    where = f"{self.place}:{self.__name__} cannot be loaded by {self.python}"
                    raise UnknownTarget(f"{where}: {kind}: {text}") from error
            why = error if answer is None else f"it answered {brief(answer)}"
            raise InvalidParameter(f"python={self.python!r} must be a Python of 3.8 or later: {why}") from error

    @override
    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Run once; a given generator seeds the generator of the other interpreter."""
        parameters = self.__signature__.bind(*args, **kwargs).arguments
        if self._data not in parameters:
            raise InvalidParameter(f"{self.__name__} takes no data, which is the first parameter besides the generator")
        rng: Any = parameters.pop(self._generator or "", None) or np.random.default_rng()
        written = self.write_input(parameters.pop(self._data), parameters)
        return self.run_once(written, Words(rng, 1).of_side(0, 1)[0])

    @override
    def write_input(
        self, data: Data, parameters: dict[str, object] | None = None, attributes: Sequence[str] = ()
    ) -> bytes:
        """Write an input and parameters in the JSON of `dpwitness.values`, with the attributes to read of an output."""
        return json.dumps(
            {
                "input": json.dumps(value_to_json(data)), "parameters": json.dumps(value_to_json(parameters or {})),
                "data": self._data, "generator": self._generator, "attributes": attributes,
            }
        ).encode()  # fmt: skip

    @override
    def request(self, written: bytes, seeds: Sequence[Any]) -> bytes:
        """A request with 256 random bits for each run, as in `Draws`."""
        return b'%b, "seeds": %b}\n' % (written[:-1], json.dumps(seeds).encode())

    @override
    def outcome_of(self, answer: Any) -> Any:
        """The outcome in an answer.

        Raises `RemoteException` or `SystemExit` if the function raised, `InvalidParameter` and `InvalidOutcome` for
        values that cannot be sent, and `MechanismCrashed` for an answer of unknown form.
        """
        match answer:
            case {"outcome": value}:
                if type(value) in SINGLE_TYPES:
                    return value
                try:
                    return value_from_json(value)
                except (TypeError, OverflowError, LookupError, ValueError):
                    pass
            case {"raised": [str(kind), str(text), str(trace)]}:
                raised: RemoteException = type(kind, (RemoteException,), {})(text)
                raised.add_note(trace)
                raise raised
            case {"exit": int() | str() | None as code}:
                raise SystemExit(code)
            case {"unsendable": str(what)}:
                raise InvalidParameter(
                    f"an input or a parameter of {self.__name__} holds {what}, which cannot be sent to another "
                    f"interpreter: give {SENDABLE_TYPES} of them"
                )
            case {"invalid": [str(text), str(what)]}:
                raise InvalidOutcome(
                    f"{self.__name__} returned {' '.join(text.split())}, and {what} cannot be sent from another "
                    f"interpreter: return {SENDABLE_TYPES} of them, or name attributes, as outcome='coef_,intercept_'"
                )
            case {"attribute": str(text)}:
                raise InvalidOutcome(f"outcome= names attributes of what {self.__name__} returns: {text}")
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
        Seconds that the import may take, and each further outcome; after that the process is killed. A `max_time` of
        the check ends a run that hangs, too.

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


def _line(**request: object) -> bytes:
    return json.dumps(request).encode() + b"\n"


def _parameter(name: str, kind: str, default: list[object]) -> inspect.Parameter:
    value = value_from_json(default[0]) if default else inspect.Parameter.empty
    return inspect.Parameter(name, inspect._ParameterKind[kind], default=value)


class Words(Seeds):
    """Seeds for the other interpreter: 256 random bits for each run, in hexadecimal digits."""

    def __init__(self, rng: np.random.Generator, runs: int) -> None:
        self._hex = [bits.tobytes().hex() for bits in rng.integers(0, 1 << 64, (runs, 4), np.uint64).astype("<u8")]

    @override
    def of_side(self, side: int, batch: int) -> Sequence[Any]:
        """The seeds of one side; both sides share seeds, since each run has its own."""
        return self._hex


class RemoteMechanism(CommandMechanism):
    """A mechanism of a `RemoteFunction`; the other interpreter reads the attributes of an output, and sends these."""

    converts = True

    def __init__(self, signature: Signature, outcome: Outcome | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature, outcome, errors=errors)
        assert isinstance(signature.function, RemoteFunction)
        self._remote = signature.function
        if isinstance(self._outcome, Attributes):
            self._summarise = None  # attributes are read in the other interpreter
        # A default that cannot be sent stays in the other interpreter.
        values = signature.parameters.items()
        self._sent = {name: value for name, value in values if type(value) is not UnreadableValue}

    @override
    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        return Words(rng, runs)

    @override
    def _input(self, data: Data) -> bytes:
        return self._remote.write_input(self.conversion.source(data)(), self._sent, self._attributes)


RemoteFunction.kind = RemoteMechanism
