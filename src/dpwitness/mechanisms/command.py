"""Programs of any language as mechanisms: a program reads requests, a line of JSON each, and writes a line a run.

`docs/command.md` describes the protocol. Neither the length nor the content of a program's output is trusted.
"""

import copy
import inspect
import json
import os
import shlex
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Final, Self

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief, flag, items, seconds, text, too_deep, whole
from dpwitness.errors import InvalidNeighbours, InvalidOutcome, InvalidParameter, MechanismCrashed, MechanismTimeout
from dpwitness.frames import frames_of
from dpwitness.mechanisms.catalog import PROGRAM_PREFIX
from dpwitness.mechanisms.child import Child, UnreadableAnswer
from dpwitness.mechanisms.draws import Draws
from dpwitness.mechanisms.failures import raised_error
from dpwitness.mechanisms.mechanism import Order, Turns
from dpwitness.mechanisms.outcomes import SINGLE_TYPES, ExceptionOutcome, RowWriter
from dpwitness.mechanisms.python import OutcomeSummary, PythonMechanism, Side, SideOutputs
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Data, Pair, shown

#: The default of `max_time`, in seconds for each further outcome: a run may train a model.
OUTCOME_SECONDS: Final = 30.0
#: The number below which seeds lie: every reader of JSON reads integers up to 2⁵³ exactly.
SEED_LIMIT: Final = 1 << 53


class ReportedError(Exception):
    """The error of a run that a program reports by an answer {"error": text}."""


class OutsideFunction(ABC):
    """A function that other processes run, which can be checked like any function.

    A copy of the object, also in another process, starts processes of its own.
    """

    #: The class of mechanisms that run a function of this class.
    kind: ClassVar[type["OutsideMechanism"]]
    #: The advice in the message about a late answer.
    advice: ClassVar[str]

    def __init__(self, max_time: float) -> None:
        self.max_time = max_time
        self.folder = os.getcwd()  # relative paths stay valid in other processes
        self._idle: list[Child] = []
        self._pid = os.getpid()

    @abstractmethod
    def _start(self) -> Child:
        """Start the program."""

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program once."""

    @abstractmethod
    def write_input(self, data: Data) -> bytes:
        """Write an input as JSON. Raises `InvalidNeighbours` for an input that cannot be sent."""

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_idle": []}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _pid=os.getpid())

    def anew(self) -> Self:
        """A copy of the function whose runs are made by new processes."""
        return copy.copy(self)

    @contextmanager
    def child(self) -> Iterator[Child]:
        """Lend a process that no other thread uses; an error in the context kills it."""
        if self._pid != os.getpid():  # after a fork, the pipes are the parent's
            self._idle, self._pid = [], os.getpid()
        child = self._idle_child() or self._start()
        try:
            yield child
        except BaseException:
            child.end()
            raise
        self._idle.append(child)

    def _idle_child(self) -> Child | None:
        with suppress(IndexError):
            while not (child := self._idle.pop()).running:
                child.end()
            return child
        return None


class OutsideMechanism(PythonMechanism):
    """A mechanism of an `OutsideFunction`, many runs a request; parameters as in `PythonMechanism`."""

    in_process = False
    timed_seconds = 0.01  # a request takes half a millisecond, which many runs share
    shares = False  # the process gets a copy of the input

    def __init__(self, signature: Signature, outcome: OutcomeSummary | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature, outcome, errors=errors)
        assert isinstance(signature.function, OutsideFunction)
        self._function = signature.function
        self._busy: set[Child] = set()
        self._releases = 0

    @override
    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_busy": set()}

    @abstractmethod
    def _answers(self, sides: Sequence[Side], order: Order, start: int) -> list[list[object]]:
        """The outcomes of each side in the order of runs."""

    @override
    def _outputs(self, sides: Sequence[Side], order: Order, start: int, row: RowWriter) -> Sequence[SideOutputs]:
        single = SINGLE_TYPES if self._outcome is None else ()
        return [
            [one if type(one) in single else self._copy_output(one, start + i, row) for i, one in enumerate(answers)]
            for answers in self._answers(sides, order, start)
        ]

    def _ask(self, request: bytes, answers: int, seconds: float, start: int) -> list[Any]:
        """The values that answer a request; see `Child.ask`. Messages of errors name the first run, `start`."""
        releases = self._releases
        try:
            with self._function.child() as child:
                self._busy.add(child)
                try:
                    if self._releases != releases:  # `release` was called while the process started
                        raise MechanismTimeout("the time was over before they began")
                    return child.ask(request, answers, seconds)
                finally:
                    self._busy.discard(child)
        except (MechanismCrashed, MechanismTimeout) as error:
            advice = f": {self._function.advice}" if isinstance(error, MechanismTimeout) else ""
            raise type(error)(f"{self.name} on runs from {start} on: {error}{advice}") from error

    def _input(self, data: Data) -> bytes:
        return self._function.write_input(self.conversion.source(data)())

    @override
    def release(self) -> None:
        self._releases += 1
        for child in tuple(self._busy):
            child.end()


class Command(OutsideFunction):
    """A program that is run as a mechanism; `command` makes the object, which can be checked like any function."""

    advice = "let it flush its output after each request, or give max_time= more"

    def __init__(self, argv: Sequence[str], *, seeded: bool, batch: int | None, max_time: float) -> None:
        super().__init__(max_time)
        self.argv, self.batch = tuple(argv), batch
        self.__name__ = self.__qualname__ = " ".join(shlex.join(argv).split())[:80]
        self.__module__ = PROGRAM_PREFIX.removesuffix(":")
        word = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = ("rng", "data") if seeded else ("data",)
        self.__signature__ = inspect.Signature([inspect.Parameter(name, word) for name in names])

    @override
    def _start(self) -> Child:
        try:
            return Child(self.argv, cwd=self.folder)
        except (OSError, ValueError) as error:
            raise InvalidParameter(
                f"the program {self.argv[0]!r} cannot be started: {getattr(error, 'strerror', None) or error}"
            ) from error

    @override
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run once; a given generator draws the seed. Raises `ReportedError`."""
        given = self.__signature__.bind(*args, **kwargs).arguments
        rng = given.get("rng") or np.random.default_rng()
        request = request_line(self.write_input(given["data"]), 1, int(rng.integers(SEED_LIMIT)))
        with self.child() as child:
            (outcome,) = child.ask(request, 1, self.max_time)
        if (error := _error(outcome)) is not None:
            raise ReportedError(error)
        return outcome

    @override
    def write_input(self, data: Data) -> bytes:
        """Write an input as JSON: arrays as lists, tables as lists of one object a row, dates as texts."""
        if too_deep(data):
            raise InvalidNeighbours(
                f"an input {brief(data)} cannot be sent to {self.__name__}: it holds itself, or is nested too deep"
            )
        try:
            return json.dumps(data, default=_plain).encode()
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            raise InvalidNeighbours(
                f"the input {shown(data)} cannot be sent to {self.__name__} as JSON ({error}): give numbers, flags, "
                "texts, None, dates, arrays, tables, or lists and dicts"
            ) from error


def command(
    argv: Sequence[str], *, seeded: bool = False, batch: int | None = None, max_time: float | str = OUTCOME_SECONDS
) -> Command:
    """Return a mechanism from a program of any language, which reads requests and writes outcomes.

    A request is a line such as ``{"input": [1, 1], "runs": 2, "seed": 7}``, and its answer a line of JSON for each run.
    The program goes on until its standard input ends; each worker starts the program for itself.

    Parameters
    ----------
    argv
        The program and its arguments, such as ``["./release", "--epsilon", "1"]``. No shell reads them.
    seeded
        Whether all random numbers of the program follow from the seed of the request. Then a seed repeats a check, and
        both sides of a paired run may share their draws. Otherwise the verdict says that no seed reproduces it.
    batch
        Number of runs in one request; by default 1, plus 1 for each full kilobyte of the longer input. Requests for the
        two sides follow each other in random order.
    max_time
        Seconds that the program has for each further outcome; after that the process is killed.

    Raises
    ------
    InvalidParameter
        If argv is not a program and its arguments.
    """
    words = [text("argv", word, InvalidParameter) for word in items("argv", argv)]
    if not words or not words[0] or any("\0" in word for word in words):
        raise InvalidParameter(f"argv={brief(argv)} must be a program and its arguments, as ['./release', '--epsilon']")
    if shutil.which(words[0]) is None:
        raise InvalidParameter(f"{words[0]!r} cannot be run: give the path of a program, as ./release")
    return Command(
        words,
        seeded=flag("seeded", seeded),
        batch=None if batch is None else whole("batch", batch, 1, 1 << 20),
        max_time=seconds("max_time", max_time),
    )


def _error(outcome: object) -> str | None:
    """The text of an outcome {"error": text}; None for any other outcome."""
    if type(outcome) is dict and outcome.keys() == {"error"} and type(outcome["error"]) is str:
        return outcome["error"]
    return None


def request_line(written: bytes, runs: int, seed: int) -> bytes:
    """A request for `runs` runs on one input; `written`: the input in JSON."""
    return b'{"input": %b, "runs": %d, "seed": %d}\n' % (written, runs, seed)


def _plain(value: Any) -> object:
    """The JSON value of an object that `json` cannot write. Raises `TypeError`."""
    frames = frames_of(value)
    if frames is not None:
        records = frames.records(value)
        if records and len(set(map(str, records[0]))) < len(records[0]):
            raise TypeError("two columns of one name")
        return records
    family = type(value).__module__.partition(".")[0]
    if family == "pandas" and str(value) in ("<NA>", "NaT"):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if family in ("numpy", "pandas") and hasattr(value, "tolist"):
        plain = value.tolist()
        if type(plain) is not type(value):
            return plain
    raise TypeError(f"{type(value).__name__} has no form in JSON")


class Seeds(Draws):
    """The seeds of a program's requests, one for each run."""

    def __init__(self, rng: np.random.Generator | None, runs: int) -> None:
        """Draw `runs` seeds for each of two sides, from the operating system if there is no generator.

        A program that states no seed may still read the seeds: two processes must not send it the same seeds.
        """
        if rng is None:
            drawn = (np.frombuffer(os.urandom(16 * runs), np.uint64) % SEED_LIMIT).reshape(2, runs)
        else:
            drawn = rng.integers(0, SEED_LIMIT, (2, runs), np.uint64)
        self._seeds: list[list[int]] = drawn.tolist()

    def of_side(self, side: int, batch: int) -> list[int]:
        """The seeds of one side; both sides share seeds at one run a request, since then they draw in one order."""
        return self._seeds[side if batch > 1 else 0]


class CommandMechanism(OutsideMechanism):
    """A mechanism of a `Command`."""

    converts = False  # a list and an array have the same JSON

    def __init__(self, signature: Signature, outcome: OutcomeSummary | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature, outcome, errors=errors)
        assert isinstance(signature.function, Command)
        self._given_batch = signature.function.batch
        self._batch = 1  # runs in one request, in the last runs

    @override
    def measure(self, pair: Pair) -> None:
        super().measure(pair)
        self.shard = min(self.shard, 4_096)  # the shards, and so the seeds, of runs of 2 µs must not vary

    @override
    def repeats_if_seeded(self, pair: Pair) -> bool:
        return False  # the generators of this process are not the program's

    def _requests(self, order: Order, sides: int) -> Iterator[tuple[int, slice]]:
        """The side and the runs of each request, in the order of requests."""
        for first in range(0, len(order), self._batch):
            for side in (1, 0) if order[first] else range(sides):
                yield side, slice(first, min(first + self._batch, len(order)))

    @override
    def turns(self, order: Order) -> Turns:
        turns = np.full((3, len(order)), os.getpid())
        made = self.run_count - 2 * len(order)
        for side, runs in self._requests(order, 2):
            turns[1 + side, runs] = np.arange(made, made + runs.stop - runs.start)
            made += runs.stop - runs.start
        return turns

    @override
    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        return Seeds(rng if self.reproducible else None, runs)

    @override
    def _answers(self, sides: Sequence[Side], order: Order, start: int) -> list[list[object]]:
        inputs = [self._input(side.data) for side in sides]
        self._batch = self._given_batch or 1 + max(map(len, inputs)) // 1024  # a kilobyte is sent once for two runs
        seeds = [side.draws.of_side(k, self._batch) for k, side in enumerate(sides) if isinstance(side.draws, Seeds)]
        requests = list(self._requests(order, len(sides)))
        lines = [request_line(inputs[k], runs.stop - runs.start, seeds[k][runs.start]) for k, runs in requests]
        made = [(k, run) for k, runs in requests for run in range(runs.start, runs.stop)]
        try:
            answers = self._ask(b"".join(lines), len(made), self._function.max_time * self._batch, start)
        except UnreadableAnswer as error:
            raise InvalidOutcome(
                f"{self.name} wrote {error}, on run {start + made[error.number][1]}: write one line of JSON a run"
            ) from error
        outputs: list[list[object]] = [[] for _ in sides]
        for (k, run), answer in zip(made, answers, strict=True):
            reported = _error(answer)
            if reported is not None and self.errors != "outcome":
                raise raised_error(self.name, ReportedError(reported), start + run, sides[k].data)
            outputs[k].append(answer if reported is None else ExceptionOutcome(reported))
        return outputs


Command.kind = CommandMechanism
