"""A function that another interpreter runs: the process and its messages, the function, the mechanism made of it."""

import collections
import hashlib
import inspect
import os
import queue
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief, kind, seconds
from dpwitness.errors import (
    DPWitnessError,
    InvalidOutcome,
    InvalidParameter,
    MechanismCrashed,
    MechanismTimeout,
    UnknownTarget,
)
from dpwitness.events.encoding import symbol
from dpwitness.mechanisms.columns import Node
from dpwitness.mechanisms.draws import Draws
from dpwitness.mechanisms.failures import raised
from dpwitness.mechanisms.mechanism import Order
from dpwitness.mechanisms.outcomes import ExceptionOutcome, Row, flatten
from dpwitness.mechanisms.process import OutsideFunction, OutsideMechanism, Process
from dpwitness.mechanisms.python import Attributes, Outcome, Outputs, Side
from dpwitness.mechanisms.remote import wire
from dpwitness.mechanisms.remote.wire import RAISES, Tagged, packed
from dpwitness.mechanisms.signature import DATA_FREE, GENERATOR_NAMES, Signature

SERVER: Final = Path(__file__).with_name("server.py")
#: Inputs and parameters that the other side keeps.
STORED: Final = 32
ARRAY: Final = re.compile(r"[<|=]?[biufc]\d{1,2}")


class Connection(Process):
    """A process of another interpreter that answers one message at a time."""

    def __init__(self, python: str, folder: str | None = None) -> None:
        super().__init__([python, str(SERVER)], folder)
        self.python = python
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._beside(_read, self._output, self._answers.put)
        self._stored: collections.OrderedDict[bytes, int] = collections.OrderedDict()
        self._count = 0

    def ask(self, request: dict[str, object], seconds: float) -> dict[str, Any]:
        """Send a message and return what is answered.

        Raises `MechanismCrashed` where the process has ended, `MechanismTimeout` where it does not answer in time, and
        is ended for that.
        """
        try:
            wire.send(self._input, wire.packed(request))
            held = self._answers.get(timeout=seconds)
        except queue.Empty:
            self.end()
            raise MechanismTimeout(
                f"{self.python} did not answer within {seconds:g} s and was ended: give remote(…, max_time=…) more"
            ) from None
        except OSError:  # a broken pipe
            held = None
        if held is None:
            raise MechanismCrashed(f"{self.python} ended {self._ending()}")
        answer = unpacked(held)
        if not isinstance(answer, dict):
            raise MechanismCrashed(f"{self.python} answered {brief(answer)}, which is no answer")
        return answer

    def number_of(self, held: bytes, store: list[object], forget: list[int]) -> int:
        """Return the number by which the other side knows an encoded value; what to send for it goes to the lists."""
        key = hashlib.blake2b(held, digest_size=16).digest()
        if key not in self._stored:
            self._count += 1
            self._stored[key] = self._count
            store.append((self._count, held))
            if len(self._stored) > STORED:
                forget.append(self._stored.popitem(last=False)[1])
        self._stored.move_to_end(key)
        return self._stored[key]


def unpacked(held: bytes) -> object:
    """Return the value of a message from the other side: data alone. Raises `MechanismCrashed` for a damaged one."""
    try:
        return wire.Reader(held, _object_of, _array_of).value()
    except (ValueError, TypeError, OverflowError, MemoryError, RecursionError, LookupError, ImportError) as error:
        raise MechanismCrashed(f"the other interpreter answered what cannot be read ({error})") from error


def _array_of(dtype: Any, shape: object, held: Any, order: object = "C") -> Any:
    if not ARRAY.fullmatch(dtype):
        raise ValueError(f"{brief(dtype)} is no type of numbers")
    return np.frombuffer(held, dtype).reshape(shape, order="F" if order == "F" else "C")


def _object_of(kind: str, content: Any) -> Any:
    if kind in wire.FILES:
        return wire.table_of(kind, content)
    if kind != wire.TABLE:
        return wire.Tagged(kind, content)
    import pandas as pd  # type: ignore[import-untyped]  # only where a table comes

    names, columns, index = content[:3]
    frame = pd.DataFrame(dict(enumerate(columns)), index=index, dtype=object)
    frame.columns = names
    frame.attrs["sent besides"] = repr(content[3:])  # the columns are objects here, whatever they were
    return frame


def _read(stream: IO[bytes], put: Callable[[bytes | None], None]) -> None:
    """Pass on every message; None at the end, and an unreadable one in place of a damaged one."""
    held: bytes | None = b""
    while held is not None:
        try:
            held = wire.receive(stream)
        except ValueError:  # a length that is none: nothing that follows can be read
            put(b"")
            return
        put(held)


#: Seconds that runs may take on average, and that the other interpreter may take to start and to import the function.
MAX_TIME: Final = 600.0


class RemoteException(Exception):
    """What the function raised in the other interpreter, with the traceback of there; of a class of the same name."""

    run = side = 0  # of those that were asked for together


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is run: the inputs, how often, with which parameters; see `Service.run` in `server`."""

    inputs: tuple[bytes, ...]
    parameters: bytes
    data: str  # the name of the parameter for the input
    generator: str | None  # and of that for the generator
    order: bytes  # for each run, 1 where the second input comes first
    words: tuple[bytes, ...]  # of each input 32 random bytes for each run, or for the first alone
    outcome: tuple[str, ...] = ()
    errors: bool = False
    seed_globals: bool = False
    copies: bool = False  # whether each run gets a copy of what is sent


class Default:
    """The default of a parameter that is no data: it stays in the other interpreter."""

    def __repr__(self) -> str:
        """For people."""
        return "its own"


class RemoteFunction(OutsideFunction[Connection]):
    """A function of another interpreter, made by `remote`."""

    passing = (RemoteException, InvalidOutcome)

    def __init__(self, python: str, place: str, name: str, max_time: float) -> None:
        super().__init__()
        self.python, self.place, self.max_time = python, place, max_time
        self.folder = os.getcwd()  # where modules are found, in later interpreters, too
        self.__name__ = self.__qualname__ = name
        self.__module__ = place
        connection = self._started()
        self._idle.append(connection)
        self.__signature__ = inspect.Signature([_parameter(*one) for one in self._described["parameters"]])

    def _started(self) -> Connection:
        """A new interpreter that has imported the function. Raises `InvalidParameter` and `UnknownTarget`."""
        where = f"{self.place}:{self.__name__}"
        try:
            connection = Connection(self.python, self.folder)
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

    def asked(self, connection: Connection, call: Call) -> tuple[Any, bool]:
        """Run as a call says; what was returned on the first input run by run, then on the second, or an array of it.

        And whether these runs were made again, since one of them changed what it had been given.

        Raises what `raised_there` makes of an exception, with the number of the run in `run` and that of the input in
        `side`; and `SystemExit` as the function did.
        """
        store: list[object] = []
        forget: list[int] = []
        parameters = connection.number_of(call.parameters, store, forget)
        inputs = [connection.number_of(data, store, forget) for data in call.inputs]
        sent = {"do": "run", "parameters": parameters, "inputs": inputs, "store": store, "forget": forget}
        answer = connection.ask({**asdict(call), **sent}, self.max_time * len(call.order) * len(call.inputs))
        try:
            return self._read(answer, call), answer.get("again") is True
        except (KeyError, TypeError, ValueError) as error:  # the other process is not ours: its answer is unchecked
            if isinstance(error, DPWitnessError):
                raise
            raise MechanismCrashed(f"{self.python} answered {brief(answer)}, which is no answer ({error})") from error

    def _read(self, answer: dict[str, Any], call: Call) -> object:
        """What an answer says. Raises `KeyError`, `TypeError` or `ValueError` for what is none."""
        if "floats" in answer or "values" in answer:
            outcomes = np.frombuffer(answer["floats"], "<f8") if "floats" in answer else answer["values"]
            runs = len(call.order) * len(call.inputs)
            if len(outcomes) != runs:
                raise ValueError(f"{len(outcomes)} outcomes of {runs} runs")
            return outcomes
        if "raised" in answer:
            raise raised_there(*answer["raised"])
        if "exit" in answer:
            raise SystemExit(answer["exit"])
        if "error" in answer:
            raise raised_there(0, 0, *answer["error"])
        if "summary" in answer:
            raise InvalidOutcome(f"outcome={','.join(call.outcome)!r}: {answer['summary'][1]}")
        _, kind, shown = answer["unknown"]
        shown = " ".join(shown.split())
        raise InvalidOutcome(
            f"{self.__name__} returned {shown}, a {kind}, which cannot be sent: return numbers, flags, "
            "texts, arrays, tables or lists of such, or name attributes, as outcome='coef_,intercept_'"
        )

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Run once, as here. A generator gives the seed of the one that the function gets."""
        bound = self.__signature__.bind(*args, **kwargs).arguments
        generator = next((key for key in bound if key in GENERATOR_NAMES), None)
        data = next((key for key in bound if key not in DATA_FREE), None)
        if data is None:
            raise InvalidParameter(f"{self.__name__} takes no data: its first parameter besides the generator is that")
        rest = {key: value for key, value in bound.items() if key not in (generator, data)}
        words = words_from(np.random.default_rng() if generator is None else bound[generator], 1)
        call = Call(
            inputs=(packed(bound[data]),), parameters=encoded_parameters(self.__name__, rest), data=data,
            generator=generator, order=bytes(1), words=(words,),
        )  # fmt: skip
        with self.connection() as connection:
            return self.asked(connection, call)[0][0]


def remote(python: str | os.PathLike[str], target: str, *, max_time: float | str = MAX_TIME) -> RemoteFunction:
    """Return a function that the interpreter of another environment runs; it is checked like any other function.

    Its libraries, such as an old one that needs NumPy 1, need not be installed here, nor dpwitness there. Its
    parameters are recognised by name. Its generator is a `numpy.random.Generator` of that environment, or a
    `random.Random` if NumPy is not installed there; dpwitness seeds it.

    Parameters
    ----------
    python
        The interpreter, of Python 3.8 or later: a path, such as "old/bin/python", or a name on the search path.
    target
        "path/file.py:function" or "package.module:object", imported by that interpreter.
    max_time
        Seconds that the import may take, and that runs may take on average: many are one message, which gets so many
        seconds for each. After that the process is killed. A `max_time` of the check ends a run that hangs, too.

    Raises
    ------
    InvalidParameter
        If the interpreter cannot be started.
    UnknownTarget
        If there is no such file or function, or the import raises an exception.
    """
    named = os.fsdecode(kind("python", python, (str, os.PathLike), "the path of an interpreter", InvalidParameter))
    program = shutil.which(named)
    if program is None:
        raise InvalidParameter(f"python={named!r} is no program: give the path of an interpreter, as env/bin/python")
    place, _, name = target.rpartition(":") if isinstance(target, str) else ("", "", "")
    if not place or not name:
        raise UnknownTarget(f"target={brief(target)} must be path/file.py:FUNCTION or package.module:OBJECT")
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise UnknownTarget(f"there is no file {place}")
        place = str(Path(place).resolve())
    return RemoteFunction(os.path.abspath(program), place, name, seconds("max_time", max_time))


def raised_there(run: int, side: int, kind: str, text: str, trace: str) -> RemoteException:
    """Return an exception of the other interpreter as one of this: of a class of the same name."""
    error: RemoteException = type(kind, (RemoteException,), {})(text)
    error.run, error.side = run, side
    error.add_note(trace)
    return error


def words_from(rng: np.random.Generator, runs: int) -> bytes:
    """Draw 256 bits for each run, from which the generator of the other interpreter begins."""
    return rng.integers(0, 1 << 64, (runs, 4), np.uint64).astype("<u8").tobytes()


def encoded_parameters(name: str, values: dict[str, object]) -> bytes:
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


def _parameter(name: str, kind: str, has_default: bool, sent: bool, default: object) -> inspect.Parameter:
    value = inspect.Parameter.empty if not has_default else default if sent else Default()
    return inspect.Parameter(name, getattr(inspect._ParameterKind, kind), default=value)


class RemoteDraws(Draws):
    """The random words that runs in another interpreter begin from: those of `Draws`, so that they draw the same."""

    def __init__(self, rng: np.random.Generator, runs: int, *, own_streams: bool, global_too: bool) -> None:
        """For so many runs; without streams of their own, words for the first alone."""
        self.words = words_from(rng, runs if own_streams or global_too else 1)


class RemoteMechanism(OutsideMechanism[Connection]):
    """A function of another interpreter; the function of the signature is a `RemoteFunction`.

    Attributes of an output are read over there: only they are sent.
    """

    def __init__(self, signature: Signature, outcome: Outcome | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature, outcome, errors=errors)
        assert isinstance(signature.function, RemoteFunction)
        self._remote = signature.function
        if isinstance(self._outcome, Attributes):
            self._summarise = None  # they are read over there
        self._parameters = encoded_parameters(self.name, signature.parameters)

    @override
    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        return RemoteDraws(rng, runs, own_streams=shared, global_too=self.draws_globally)

    @override
    def _outputs(self, sides: Sequence[Side], order: Order, start: int, row: Row) -> Sequence[Outputs]:
        """Make all runs of all sides in one message."""
        runs = len(order)
        call = Call(
            inputs=tuple(packed(self.conversion.source(side.data)()) for side in sides),
            parameters=self._parameters,
            data=self.signature.data,
            generator=self.signature.generator,
            order=order.tobytes(),
            words=tuple(side.draws.words for side in sides if isinstance(side.draws, RemoteDraws)),
            outcome=self._attributes,
            errors=self.errors == "outcome",
            seed_globals=self.draws_globally,
            copies=self.copies,
        )
        try:
            with self._connection(self._remote) as connection:
                outputs, again = self._remote.asked(connection, call)
            self.copies |= again
        except RemoteException as error:
            raise raised(self.name, error, start + error.run, sides[error.side].data) from error
        except (MechanismCrashed, MechanismTimeout) as error:
            raise type(error)(f"{self.name} on runs from {start} on: {error}") from error
        listed = outputs.tolist() if isinstance(outputs, np.ndarray) else outputs
        return [
            [self._held(_outcome(one), start + i, row) for i, one in enumerate(listed[k * runs : (k + 1) * runs])]
            for k in range(len(sides))
        ]


def _outcome(output: Any) -> object:
    raised = type(output) is Tagged and output.kind == RAISES
    return ExceptionOutcome(str(output.content)) if raised else output


RemoteFunction.kind = RemoteMechanism


@flatten.register
def _(value: Tagged, row: Row, node: Node) -> None:
    row.mark(node, symbol("tagged", value.kind), value.kind)
    row.add(value.content, row.at(node, "field", "content"))
