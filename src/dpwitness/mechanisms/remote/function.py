"""A function that another interpreter runs, called as if it were one of this."""

import inspect
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief, kind, seconds
from dpwitness.errors import DPWitnessError, InvalidOutcome, InvalidParameter, MechanismCrashed, UnknownTarget
from dpwitness.mechanisms.remote.connection import Connection
from dpwitness.mechanisms.remote.wire import packed
from dpwitness.mechanisms.signature import DATA_FREE, GENERATOR_NAMES

#: Seconds that one run may take, and that the other interpreter may take to start and to import the function.
MAX_TIME: Final = 600.0


class RemoteException(Exception):
    """What the function raised in the other interpreter, with the traceback of there; of a class of the same name."""

    run = side = 0  # of those that were asked for together


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is run: the inputs, how often, with which parameters; see `Service.run` in `server`."""

    data: tuple[bytes, ...]
    parameters: bytes
    names: tuple[str, str | None]  # of the parameters for the input and for the generator
    order: bytes  # for each run, 1 where the second input comes first
    words: tuple[bytes, ...]  # of each input 32 random bytes for each run, or for the first alone
    outcome: tuple[str, ...] = ()
    errors: bool = False
    seed_globals: bool = False


class Default:
    """The default of a parameter that is no data: it stays in the other interpreter."""

    def __repr__(self) -> str:
        """For people."""
        return "its own"


class Remote:
    """A function of another interpreter; made by `remote`, and taken for a mechanism wherever a function is.

    It can be sent to another process, which starts an interpreter of its own.
    """

    def __init__(self, python: str, place: str, name: str, max_time: float) -> None:
        self.python, self.place, self.max_time = python, place, max_time
        self.__name__ = self.__qualname__ = name
        self.__module__ = place
        self._idle: list[Connection] = []
        self._pid = os.getpid()
        connection = self._started()
        self._idle.append(connection)
        self.__signature__ = inspect.Signature([_parameter(*one) for one in self._described["parameters"]])

    def _started(self) -> Connection:
        """A new interpreter that has imported the function. Raises `InvalidParameter` and `UnknownTarget`."""
        where = f"{self.place}:{self.__name__}"
        try:
            connection = Connection(self.python)
            answer = connection.ask({"do": "load", "place": self.place, "name": self.__name__}, self.max_time)
        except OSError as error:
            raise InvalidParameter(f"python={self.python!r} cannot be started: {error.strerror or error}") from error
        except MechanismCrashed as error:
            raise InvalidParameter(f"python={self.python!r} must be a Python of 3.8 or later: {error}") from error
        if "error" in answer:
            kind, text, _ = answer["error"]
            connection.end()
            raise UnknownTarget(f"{where} cannot be loaded by {self.python}: {kind}: {text}")
        self._described = answer
        return connection

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the processes."""
        return {**self.__dict__, "_idle": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In another process, or in this one as a copy."""
        self.__dict__.update(state, _pid=os.getpid())

    def anew(self) -> "Remote":
        """Return the same function for an interpreter that has run nothing yet."""
        made = Remote.__new__(Remote)
        made.__setstate__(self.__getstate__())
        return made

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """An interpreter that nobody else is using; one that is left in the middle of a run is not used again."""
        if self._pid != os.getpid():  # a fork has the pipes of its parent
            self._idle, self._pid = [], os.getpid()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._started()
        try:
            yield connection
        except (RemoteException, InvalidOutcome):  # told by an interpreter that goes on
            self._idle.append(connection)
            raise
        except BaseException:
            connection.end()
            raise
        self._idle.append(connection)

    def asked(self, connection: Connection, call: Call) -> Any:
        """Run as a call says; what was returned on the first input run by run, then on the second, or an array of it.

        Raises what `raised_there` makes of an exception, with the number of the run in `run` and that of the input in
        `side`.
        """
        store: list[Any] = []
        forget: list[int] = []
        parameters = connection.number_of(call.parameters, store, forget)
        request = {
            "do": "run",
            "inputs": [connection.number_of(data, store, forget) for data in call.data],
            "parameters": parameters,
            "store": store,
            "forget": forget,
            "data": call.names[0],
            "generator": call.names[1],
            "order": call.order,
            "words": call.words,
            "outcome": call.outcome,
            "errors": call.errors,
            "seed_globals": call.seed_globals,
        }
        answer = connection.ask(request, self.max_time * len(call.order) * len(call.data))
        try:
            return self._read(answer, call)
        except (KeyError, TypeError, ValueError) as error:  # of a process that may be anybody's
            if isinstance(error, DPWitnessError):
                raise
            raise MechanismCrashed(f"{self.python} answered {brief(answer)}, which is no answer ({error})") from error

    def _read(self, answer: dict[str, Any], call: Call) -> Any:
        """What an answer says. Raises `KeyError`, `TypeError` or `ValueError` for what is none."""
        if "floats" in answer or "values" in answer:
            found = np.frombuffer(answer["floats"], "<f8") if "floats" in answer else answer["values"]
            runs = len(call.order) * len(call.data)
            if len(found) != runs:
                raise ValueError(f"{len(found)} outcomes of {runs} runs")
            return found
        if "raised" in answer:
            raise raised_there(*answer["raised"])
        if "error" in answer:
            raise raised_there(0, 0, *answer["error"])
        if "summary" in answer:
            raise InvalidOutcome(f"outcome={','.join(call.outcome)!r}: {answer['summary'][1]}")
        _, kind, shown = answer["unknown"]
        raise InvalidOutcome(
            f"{self.__name__} returned {shown}, a {kind}, which is nothing that can be sent: return numbers, flags, "
            "texts, arrays, tables or lists of such, or name attributes, as outcome='coef_,intercept_'"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run once, as here. A generator gives the seed of the one that the function gets."""
        bound = self.__signature__.bind(*args, **kwargs).arguments
        generator = next((key for key in bound if key in GENERATOR_NAMES), None)
        data = next((key for key in bound if key not in DATA_FREE), None)
        if data is None:
            raise InvalidParameter(f"{self.__name__} takes no data: its first parameter besides the generator is that")
        rest = {key: value for key, value in bound.items() if key not in (generator, data)}
        words = words_from(np.random.default_rng() if generator is None else bound[generator], 1)
        call = Call(
            data=(packed(bound[data]),), parameters=encoded_parameters(self.__name__, rest), names=(data, generator),
            order=bytes(1), words=(words,),
        )  # fmt: skip
        with self.connection() as connection:
            return self.asked(connection, call)[0]


def remote(python: str | os.PathLike[str], target: str, *, max_time: float | str = MAX_TIME) -> Remote:
    """Return a function that another environment's interpreter runs, to be checked as any other.

    What it needs need not be installed here, nor dpwitness there: an old library that wants NumPy 1, or none, is one
    line. Its parameters are recognised by name, as those of other functions. A generator that it takes is a
    `numpy.random.Generator` of there with a seed from here, or `random.Random` where there is no NumPy.

    Parameters
    ----------
    python
        The interpreter, of Python 3.8 or later: a path, such as "old/bin/python", or a name on the search path.
    target
        "path/file.py:function" or "package.module:object", found and imported over there.
    max_time
        Seconds that a run, or the import, may take: what takes longer is ended.

    Raises
    ------
    InvalidParameter
        For an interpreter that cannot be started.
    UnknownTarget
        Where there is no such file or function, or where it raises while it is imported.
    """
    named = os.fsdecode(kind("python", python, (str, os.PathLike), "the path of an interpreter", InvalidParameter))
    found = shutil.which(named)
    if found is None:
        raise InvalidParameter(f"python={named!r} is no program: give the path of an interpreter, as env/bin/python")
    place, _, name = target.rpartition(":") if isinstance(target, str) else ("", "", "")
    if not place or not name:
        raise UnknownTarget(f"target={brief(target)} must be path/file.py:FUNCTION or package.module:OBJECT")
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise UnknownTarget(f"there is no file {place}")
        place = str(Path(place).resolve())
    return Remote(os.path.abspath(found), place, name, seconds("max_time", max_time))


def raised_there(run: int, side: int, kind: str, text: str, told: str) -> RemoteException:
    """Return an exception of the other interpreter as one of this: of a class of the same name."""
    made: RemoteException = type(kind, (RemoteException,), {})(text)
    made.run, made.side = run, side
    made.add_note(told)
    return made


def words_from(rng: np.random.Generator, runs: int) -> bytes:
    """Draw 256 bits for each run, from which the generator of the other interpreter begins."""
    return rng.integers(0, 1 << 64, (runs, 4), np.uint64).astype("<u8").tobytes()


def encoded_parameters(name: str, values: dict[str, Any]) -> bytes:
    """Return parameters as they are sent. Raises `InvalidParameter` for one that is no data."""
    sent = {key: value for key, value in values.items() if type(value) is not Default}
    for key, value in sent.items():
        try:
            packed(value)
        except TypeError as error:
            raise InvalidParameter(
                f"the parameter {key}={brief(value)} of {name} cannot be sent to another interpreter: it takes "
                "numbers, texts, arrays, tables and lists of such"
            ) from error
    return packed(sent)


def _parameter(name: str, kind: str, has_default: bool, sent: bool, default: Any) -> inspect.Parameter:
    value = inspect.Parameter.empty if not has_default else default if sent else Default()
    return inspect.Parameter(name, getattr(inspect._ParameterKind, kind), default=value)
