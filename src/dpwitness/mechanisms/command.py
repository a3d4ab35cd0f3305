"""A program of any language as a mechanism: it reads requests, a line of JSON each, and writes a line for each run.

The page `docs/command.md` is the protocol. Nothing that a program writes is trusted: neither how much nor what.
"""

import inspect
import json
import os
import selectors
import shlex
import shutil
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief, flag, items, json_value, seconds, text, too_deep, whole
from dpwitness.errors import InvalidNeighbours, InvalidOutcome, InvalidParameter, MechanismCrashed, MechanismTimeout
from dpwitness.mechanisms.catalog import PROGRAM
from dpwitness.mechanisms.draws import Draws
from dpwitness.mechanisms.failures import raised
from dpwitness.mechanisms.mechanism import Order, Turns
from dpwitness.mechanisms.outcomes import SINGLE_VALUES, ExceptionOutcome, Row
from dpwitness.mechanisms.process import OutsideFunction, OutsideMechanism, Process
from dpwitness.mechanisms.python import BACKWARDS, Outcome, Outputs, Side
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Data, Pair, shown
from dpwitness.tables import tables_of

#: Seconds until one outcome more must have come.
MAX_TIME: Final = 30.0
#: Bytes of a line and of all lines of one call, at most, and bytes that are read and written at once.
LONGEST_LINE: Final = 1 << 20
LONGEST_ANSWER: Final = 1 << 28
BLOCK: Final = 1 << 16
#: An input of so many bytes is sent once for two runs, one of ten times as many for eleven.
SENT: Final = 1 << 10
MOST_BATCH: Final = 1 << 20
#: Seeds are below this: a number that every reader of JSON has exactly.
SEEDS: Final = 1 << 53
#: All signs of numbers, true, false and null. Lines of these hold one value each, so that all can be read as one list.
SCALARS: Final = b"0123456789+-.eENaInfityruls \t\r\n"
#: Paired runs at most that get one seed, and about how many are asked for together: those of one call must not differ
#: where a busy machine makes a program look slower, nor must their answers fill the memory.
MOST_SHARD: Final = 4_096
TOGETHER: Final = 512
#: Inputs whose lines are kept.
KEPT: Final = 4
#: Letters of a program and its arguments that name it.
NAME: Final = 80


class ReportedError(Exception):
    """What a program answered as {"error": text}."""


class Unreadable(Exception):
    """A line that is no JSON, by its number among those asked for; the message shows it."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class Server(Process):
    """A program that answers requests, in order."""

    @property
    @override
    def usable(self) -> bool:
        return self._process.poll() is None

    def ask(self, requests: bytes, runs: int, seconds: float) -> list[Any]:
        """Send requests for so many runs together, and return their outcomes.

        Raises `MechanismCrashed` where the program ends, or writes something else than so many lines, `Unreadable` for
        a line that is no JSON, and `MechanismTimeout` where no further outcome comes within so many seconds.
        """
        try:  # descriptors of our own: `release` may close the pipes meanwhile
            source, sink = os.dup(self._output.fileno()), os.dup(self._input.fileno())
        except (OSError, ValueError):
            raise MechanismCrashed(f"it ended {self._ending()}") from None
        try:
            return self._asked(source, sink, memoryview(requests), runs, seconds)
        finally:
            os.close(source)
            os.close(sink)

    def _asked(self, source: int, sink: int, unsent: memoryview, runs: int, seconds: float) -> list[object]:
        os.set_blocking(sink, False)
        outcomes: list[Any] = []
        rest, read, end = b"", 0, time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            if selector.select(0) and (early := os.read(source, BLOCK)):
                raise MechanismCrashed(f"it wrote {_shown(early)} before it was asked: write one line for each run")
            selector.register(sink, selectors.EVENT_WRITE)
            while len(outcomes) < runs:
                ready = [key.fd for key, _ in selector.select(max(0.0, end - time.monotonic()))]
                if sink in ready:
                    unsent = self._sent(sink, unsent, len(outcomes), runs)
                    if not unsent:
                        selector.unregister(sink)
                if source in ready:
                    block = os.read(source, BLOCK)
                    if not block:
                        raise self._ended(len(outcomes), runs)
                    read += len(block)
                    cut = block.rfind(b"\n") + 1
                    if cut:
                        outcomes += _values(rest + block[:cut], len(outcomes), runs)
                        rest, end = block[cut:], time.monotonic() + seconds
                    else:
                        rest += block
                    if len(rest) > LONGEST_LINE:
                        raise MechanismCrashed(
                            f"it wrote more than {LONGEST_LINE:,} bytes without the end of a line, beginning with "
                            f"{_shown(rest)}"
                        )
                    if read > LONGEST_ANSWER:
                        raise MechanismCrashed(f"it wrote more than {LONGEST_ANSWER:,} bytes for {runs} runs")
                if len(outcomes) < runs and time.monotonic() >= end:
                    self.end()
                    raise MechanismTimeout(
                        f"it wrote {len(outcomes)} of {runs} outcomes, then none for {seconds:g} s, and was ended"
                        f"{self._last_words()}: let it flush its output after each request, or give max_time= more"
                    )
            # What comes later is found when the program is asked next. Outcomes that are taken for those of other runs
            # until then show less, never more: the order of the sides is random.
            if not rest and not unsent and selector.select(0):
                rest = os.read(source, BLOCK)
        if rest or unsent:
            raise _too_many(runs, rest)
        return outcomes

    def _sent(self, sink: int, unsent: memoryview, done: int, runs: int) -> memoryview:
        """Send some; return the rest."""
        try:
            return unsent[os.write(sink, unsent[:BLOCK]) :]
        except BlockingIOError:
            return unsent
        except OSError:
            raise self._ended(done, runs) from None

    def _ended(self, done: int, runs: int) -> MechanismCrashed:
        return MechanismCrashed(f"it ended {self._ending()} after {done} of {runs} outcomes")


def _values(held: bytes, before: int, runs: int) -> list[object]:
    """The values of whole lines. Raises `Unreadable`, and `MechanismCrashed` for more lines than runs."""
    lines = held.count(b"\n")
    if before + lines > runs:
        raise _too_many(runs, held.split(b"\n")[runs - before])
    if not held.translate(None, SCALARS):
        try:
            values: list[Any] = json.loads(f"[{held[:-1].decode('ascii').replace(chr(10), ',')}]", parse_int=_whole)
        except ValueError:  # one by one, to see which
            pass
        else:
            if len(values) == lines:  # an empty line alone makes an empty list
                return values
    return [_value(line, number) for number, line in enumerate(held[:-1].split(b"\n"), before)]


def _value(line: bytes, number: int) -> object:
    try:
        return json_value(line.decode(), parse_int=_whole)
    except UnicodeDecodeError as error:
        raise Unreadable(number, f"{_shown(line)}, which is no UTF-8") from error
    except json.JSONDecodeError as error:
        raise Unreadable(number, f"{_shown(line)}, which is no JSON") from error
    except ValueError as error:
        raise Unreadable(number, f"{_shown(line)}, which is not read: {error}") from error


def _whole(digits: str) -> float:
    """A number without a point: "-0" is what programs make of the float that other languages write as "-0.0".

    Raises `ValueError` for one of too many digits.
    """
    try:
        return -0.0 if digits == "-0" else int(digits)
    except ValueError as error:  # Python's own limit
        raise ValueError(f"an integer has {len(digits.lstrip('-')):,} digits, give it as a text") from error


def _shown(held: bytes) -> str:
    """The beginning of what was written, in quotes."""
    return brief(held[:NAME].rstrip().decode(errors="replace"))


def _too_many(runs: int, more: bytes) -> MechanismCrashed:
    return MechanismCrashed(f"it wrote more than the {runs} lines asked for, as {_shown(more)}: one line for each run")


class Command(OutsideFunction[Server]):
    """A program that is run as a mechanism, made by `command`; accepted wherever a function is."""

    def __init__(self, argv: Sequence[str], *, seeded: bool, batch: int | None, max_time: float) -> None:
        super().__init__()
        self.argv, self.batch, self.max_time = tuple(argv), batch, max_time
        self.folder = os.getcwd()  # what is relative stays so in other processes
        self.__name__ = self.__qualname__ = " ".join(shlex.join(argv).split())[:NAME]
        self.__module__ = PROGRAM.removesuffix(":")
        word = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = ("rng", "data") if seeded else ("data",)
        self.__signature__ = inspect.Signature([inspect.Parameter(name, word) for name in names])

    @override
    def _started(self) -> Server:
        try:
            return Server(self.argv, self.folder)
        except (OSError, ValueError) as error:
            raise InvalidParameter(
                f"the program {self.argv[0]!r} cannot be started: {getattr(error, 'strerror', None) or error}"
            ) from error

    @override
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run once. A generator gives the seed."""
        given = self.__signature__.bind(*args, **kwargs).arguments
        rng = given.get("rng") or np.random.default_rng()
        line = request_line(as_json(self.__name__, given["data"]), 1, int(rng.integers(SEEDS)))
        with self.connection() as server:
            outcome = server.ask(line, 1, self.max_time)[0]
        if _is_error(outcome):
            raise ReportedError(outcome["error"])
        return outcome


def command(
    argv: Sequence[str], *, seeded: bool = False, batch: int | None = None, max_time: float | str = MAX_TIME
) -> Command:
    """Return a mechanism from a program of any language, which reads requests and writes outcomes.

    A request is a line such as ``{"input": [1, 1], "runs": 2, "seed": 7}``, and its answer a line of JSON for each run.
    The program goes on until its standard input ends; each worker starts its own.

    Parameters
    ----------
    argv
        The program and its arguments, such as ``["./release", "--epsilon", "1"]``. No shell reads them.
    seeded
        Whether all its random numbers follow from the seed of the request. Then a seed repeats a check, and both sides
        of a paired run may share their draws. Otherwise the verdict says that it can't be reproduced by seed.
    batch
        Number of runs in one request; by default 1, and more for inputs of at least a kilobyte, the longer they are.
        The two sides of a paired run follow each other in a random order, in blocks of this size.
    max_time
        Seconds that the program has for each further outcome; after that the process is killed.

    Raises
    ------
    InvalidParameter
        If it is no program.
    """
    words = [text("argv", word, InvalidParameter) for word in items("argv", argv)]
    if not words or not words[0] or any("\0" in word for word in words):
        raise InvalidParameter(f"argv={brief(argv)} must be a program and its arguments, as ['./release', '--epsilon']")
    if shutil.which(words[0]) is None:
        raise InvalidParameter(f"{words[0]!r} is no program that can be run: give the path of one, as ./release")
    return Command(
        words,
        seeded=flag("seeded", seeded),
        batch=None if batch is None else whole("batch", batch, 1, MOST_BATCH),
        max_time=seconds("max_time", max_time),
    )


def _is_error(outcome: object) -> bool:
    """Whether it is an object of the key "error" alone, with a text."""
    return type(outcome) is dict and outcome.keys() == {"error"} and type(outcome["error"]) is str


def request_line(written: bytes, runs: int, seed: int) -> bytes:
    """A request for runs of one input, which is written in JSON."""
    return b'{"input": %b, "runs": %d, "seed": %d}\n' % (written, runs, seed)


def as_json(name: str, data: Data) -> bytes:
    """An input in JSON: arrays as lists, tables as lists of an object for each row, dates as text.

    Raises `InvalidNeighbours` for an input that JSON has no form of.
    """
    if too_deep(data):
        raise InvalidNeighbours(
            f"an input {brief(data)} cannot be sent to {name}: it holds itself, or is nested too deep"
        )
    try:
        return json.dumps(data, default=_plain).encode()
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidNeighbours(
            f"the input {shown(data)} cannot be sent to {name} as JSON ({error}): give numbers, flags, texts, None, "
            "dates, arrays, tables, or lists and dicts of such"
        ) from error


def _plain(value: Any) -> object:
    """What stands in JSON for an object of another type. Raises `TypeError`."""
    tables = tables_of(value)
    if tables is not None:
        _refuse_equal_names(tables.schema(tables.eager(value)).names)
        return tables.rows(value)
    family = type(value).__module__.partition(".")[0]
    if family == "pandas" and str(value) in ("<NA>", "NaT"):
        return None
    if family == "pandas" and hasattr(value, "itertuples"):
        names = list(value.columns)
        _refuse_equal_names(names)
        if not names:
            return [{} for _ in range(len(value))]
        return [dict(zip(names, row, strict=True)) for row in value.itertuples(index=False, name=None)]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if family in ("numpy", "pandas") and hasattr(value, "tolist"):
        plain = value.tolist()
        if type(plain) is not type(value):
            return plain
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _refuse_equal_names(names: Sequence[object]) -> None:
    if len({str(name) for name in names}) < len(names):
        raise TypeError("two columns of one name")


class Seeds(Draws):
    """A seed for each run."""

    def __init__(self, rng: np.random.Generator | None, runs: int) -> None:
        """For so many runs, and so many others where the two sides must not share any: see `of_side`.

        Without a generator, which no seed repeats: several processes must not draw the same where nobody expects it.
        """
        if rng is None:
            drawn = (np.frombuffer(os.urandom(16 * runs), np.uint64) % SEEDS).reshape(2, runs)
        else:
            drawn = rng.integers(0, SEEDS, (2, runs), np.uint64)
        self._seeds: list[list[int]] = drawn.tolist()

    def of_side(self, side: int, batch: int) -> list[int]:
        """Those of one side; of requests for several runs, which may draw in another order, its own."""
        return self._seeds[side if batch > 1 else 0]


class CommandMechanism(OutsideMechanism[Server]):
    """A program that runs as a mechanism; the function of the signature is a `Command`."""

    converts = False  # a list and an array are written alike

    def __init__(self, signature: Signature, outcome: Outcome | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature, outcome, errors=errors)
        assert isinstance(signature.function, Command)
        self._command = signature.function
        self._batch = 1  # of the last runs
        self._lines: list[tuple[Data, bytes]] = []

    @override
    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_lines": []}

    @override
    def measure(self, pair: Pair) -> None:
        super().measure(pair)
        self.shard = min(self.shard, MOST_SHARD)

    @override
    def repeats_if_seeded(self, pair: Pair) -> bool:
        return False  # the generators of this process are not the program's

    @override
    def turns(self, order: Order) -> Turns:
        runs, batch = len(order), self._batch
        first = np.arange(runs) // batch * batch
        within, size = np.arange(runs) - first, np.minimum(runs - first, batch)
        start, later = self.run_count - 2 * runs + 2 * first + within, order[first]
        return np.stack([np.full(runs, os.getpid()), start + size * later, start + size * (1 - later)])

    @override
    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        return Seeds(rng if self.reproducible else None, runs)

    @override
    def _outputs(self, sides: Sequence[Side], order: Order, start: int, row: Row) -> Sequence[Outputs]:
        """Send requests for many runs at once, in the order of the sides."""
        outputs = self._made_there(sides, order, start)
        single = SINGLE_VALUES if self._summarise is None else frozenset[type]()
        for k in range(len(sides)):
            if not single.issuperset(map(type, outputs[k])):
                outputs[k] = [
                    one if type(one) in single else self._held(one, start + i, row) for i, one in enumerate(outputs[k])
                ]
        return outputs

    def _made_there(self, sides: Sequence[Side], order: Order, start: int) -> list[list[object]]:
        """What the program answers, for each side run by run."""
        lines = [self._line(side.data) for side in sides]
        batch = self._batch = self._command.batch or 1 + max(map(len, lines)) // SENT
        seeds = [side.draws.of_side(k, batch) for k, side in enumerate(sides) if isinstance(side.draws, Seeds)]
        turns, forwards = order.tolist(), range(len(sides))
        outputs: list[list[Any]] = [[] for _ in sides]
        several = max(TOGETHER // batch, 1) * batch
        for begin in range(0, len(turns), several):
            end = min(begin + several, len(turns))
            # Of each request: the side, the first run, and how many.
            blocks = [
                (k, first, min(batch, end - first))
                for first in range(begin, end, batch)
                for k in (BACKWARDS if turns[first] else forwards)
            ]
            requests = b"".join([request_line(lines[k], count, seeds[k][first]) for k, first, count in blocks])
            answered, done = self._answered(requests, blocks, (end - begin) * len(sides), start), 0
            for k, _, count in blocks:
                outputs[k] += answered[done : done + count]
                done += count
        return [self._without_errors(own, side, start) for own, side in zip(outputs, sides, strict=True)]

    def _answered(self, requests: bytes, blocks: Sequence[tuple[int, int, int]], runs: int, start: int) -> list[object]:
        """The outcomes in the order of the requests."""
        try:
            with self._connection(self._command) as server:
                return server.ask(requests, runs, self._command.max_time * self._batch)
        except Unreadable as error:
            run = start + [first + i for _, first, count in blocks for i in range(count)][error.number]
            raise InvalidOutcome(
                f"{self.name} wrote {error}, on run {run}: write one line of JSON for each run"
            ) from error
        except (MechanismCrashed, MechanismTimeout) as error:
            raise type(error)(f"{self.name} on runs from {start + blocks[0][1]} on: {error}") from error

    def _without_errors(self, outputs: list[Any], side: Side, start: int) -> list[object]:
        """Reported errors as outcomes. Raises `MechanismRaised` for the first where they are none."""
        if dict not in set(map(type, outputs)):
            return outputs
        for i, one in enumerate(outputs):
            if _is_error(one):
                if self.errors != "outcome":
                    raise raised(self.name, ReportedError(one["error"]), start + i, side.data)
                outputs[i] = ExceptionOutcome(one["error"])
        return outputs

    def _line(self, data: Data) -> bytes:
        """An input in JSON."""
        for known, line in self._lines:
            if known is data:
                return line
        line = as_json(self.name, data)
        self._lines = [*self._lines[1 - KEPT :], (data, line)]
        return line


Command.kind = CommandMechanism
