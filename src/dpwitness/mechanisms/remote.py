"""Functions that the interpreter of another environment runs: the program of a `Command` is `server.py`."""

import inspect
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from dpwitness.checks import brief, kind, seconds
from dpwitness.errors import InvalidOutcome, InvalidParameter, MechanismCrashed, MechanismTimeout, UnknownTarget
from dpwitness.mechanisms.child import Child, Unreadable
from dpwitness.mechanisms.command import Command, CommandMechanism, ReportedError
from dpwitness.mechanisms.python import Attributes, Outcome
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Data
from dpwitness.values import Unreadable as UnreadableValue
from dpwitness.values import value_from_json, value_to_json

#: The default of `max_time` in seconds; long, since libraries may be slow to import.
REMOTE_SECONDS: Final = 600.0
#: The types of values that two interpreters can exchange, for messages.
SENDABLE_TYPES: Final = "numbers, flags, texts, bytes, None, arrays, or lists, tuples, sets or dicts"


class RemoteFunction(Command):
    """A function of another interpreter, made by `remote`; each run is a request of its own."""

    advice = "give remote(…, max_time=…) more"

    def __init__(self, python: str, place: str, name: str, max_time: float) -> None:
        server = str(Path(__file__).with_name("server.py"))
        super().__init__([python, server], seeded=True, batch=1, max_time=max_time)
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
        child = super()._start()
        answer: Any = None
        try:
            load = json.dumps({"load": [self.place, self.__name__]}).encode() + b"\n"
            (answer,) = child.ask(load, 1, self.max_time)
            return child, inspect.Signature([_parameter(*one) for one in answer["parameters"]])
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
    def write_arguments(
        self, arguments: Mapping[str, Data], generator: str, attributes: Sequence[str] = (), side: int = 0
    ) -> bytes:
        """Write arguments in the JSON of `dpwitness.values`, as a text that the other interpreter keeps.

        `attributes`: the names of attributes of the output that are read there; `side`: the number of the input.
        """
        known = self.__signature__.parameters.values()
        first = [one.name for one in known if one.kind is inspect.Parameter.POSITIONAL_ONLY]
        given = {"arguments": value_to_json(dict(arguments)), "first": first, "generator": generator}
        return json.dumps({"side": side, "text": json.dumps({**given, "attributes": list(attributes)})}).encode()

    @override
    def write_again(self, written: bytes, side: int) -> bytes:
        return b'{"side": %d}' % side

    @override
    def outcome(self, answer: Any) -> object:
        """The outcome in an answer.

        Raises `ReportedError` if the function raised, `InvalidParameter` and `InvalidOutcome` for values that cannot be
        sent, and `MechanismCrashed` for an answer of unknown form.
        """
        try:
            match answer:
                case {"outcome": value}:
                    return value_from_json(value)
                case {"raised": [str(kind), str(text), str(trace)]}:
                    error: ReportedError = type(kind, (ReportedError,), {})(text)
                    error.add_note(trace)
                    raise error
                case {"unsendable": str(what)}:
                    raise InvalidParameter(
                        f"an input or a parameter of {self.__name__} holds {' '.join(what.split())}, which cannot be "
                        f"sent to another interpreter: give {SENDABLE_TYPES} of them, or DataFrames of pandas"
                    )
                case {"output": [str(shown), str(what)]}:
                    raise InvalidOutcome(
                        f"{self.__name__} returned {' '.join(shown.split())}, of which another interpreter cannot send "
                        f"its outcome ({what}): return {SENDABLE_TYPES} of them, or name attributes, as "
                        "outcome='coef_,intercept_'"
                    )
        except (TypeError, OverflowError, ValueError) as error:
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


def _parameter(name: str, kind: str, default: list[object]) -> inspect.Parameter:
    value = value_from_json(default[0]) if default else inspect.Parameter.empty
    return inspect.Parameter(name, inspect._ParameterKind[kind], default=value)


class RemoteMechanism(CommandMechanism):
    """A mechanism of a `RemoteFunction`; the other interpreter reads and sends the attributes of an output."""

    converts = True

    def __init__(self, signature: Signature, outcome: Outcome | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature, outcome, errors=errors)
        assert isinstance(signature.function, RemoteFunction)
        self._remote = signature.function
        if isinstance(self._outcome, Attributes):
            self._summarise = None  # attributes are read in the other interpreter

    @override
    def _input(self, data: Data, side: int) -> bytes:
        # A default that cannot be sent stays in the other interpreter.
        own = {key: value for key, value in self.signature.parameters.items() if type(value) is not UnreadableValue}
        arguments = {self.signature.data: self.conversion.source(data)(), **own}
        return self._remote.write_arguments(arguments, self.signature.generator or "", self._attributes, side)


RemoteFunction.kind = RemoteMechanism
