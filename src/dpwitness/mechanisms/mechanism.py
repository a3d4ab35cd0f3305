"""The interface of mechanisms, which fill rows with the outcomes of their runs.

A user writes a plain function; `signature` recognises its parameters by name, and `resolve` chooses how it runs: as
machine code (`compiled`), or by the interpreter with one run or many runs a call (`python`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.arrays import Integers, Rows
from dpwitness.errors import InvalidNeighbours, InvalidOutcome, MechanismError
from dpwitness.events.event import Noun, outcome_text
from dpwitness.mechanisms.columns import Columns, OutputTraits
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Data, Pair, as_array, copier, shown

#: The seconds of a run above which a mechanism is slow: a hundred runs then take over 2 s, and a shard has 2 runs.
SLOW_RUN_SECONDS: Final = 0.02
#: The time limit in seconds of the runs on one input in a shard of over two runs: a shard unfinished at the deadline is
#: lost.
SHARD_SECONDS: Final = 0.131_072
#: The seconds of a run up to which shards of many confirm runs are larger: 0.2 ms pass between two shards, which is a
#: tenth to a third of the time of a shard.
QUICK_RUN_SECONDS: Final = 0.25e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a run, and the sizes of shards that follow from it."""

    #: The number of entries of the longest outcome in the measured runs, at least 1. Later outcomes may be longer.
    width: int = 1
    #: Seconds of one run on one input: the least measured value, since a busy machine must not make a fast mechanism
    #: look slow; 0.0 before a measurement.
    seconds_per_run: float = 0.0
    #: Whether the mechanism is machine code, which keeps nothing from run to run.
    compiled: bool = False
    #: Whether one call makes many runs, so that a single run costs as much as hundreds.
    batched: bool = False

    @property
    def slow(self) -> bool:
        """Whether a run takes more than `SLOW_RUN_SECONDS`: then only runs that are evidence are worth their time."""
        return self.seconds_per_run > SLOW_RUN_SECONDS

    @property
    def cheap_in_bulk(self) -> bool:
        """Whether many runs are cheap: machine code, or many runs a call."""
        return self.compiled or self.batched

    @property
    def shard(self) -> int:
        """The number of paired runs with one seed: 2, or a power of 16 within `SHARD_SECONDS`, up to 16,384 or 65,536.

        There are few possible values, so that one seed gives the same counts though measured seconds vary a little.
        """
        if self.slow:
            return 2
        runs = SHARD_SECONDS / max(self.seconds_per_run, 1e-9)
        if self.batched:
            runs = min(runs, (1 << 22) / self.width)  # at most 2²² numbers a call
        power = 1 << 4 * int(math.log2(max(runs, 1)) // 4)
        return min(max(power, 2), 16_384 if self.cheap_in_bulk else 65_536)

    def shards_larger(self, shard: int, runs: int) -> int:
        """The factor, 1, 2, 4 or 8, by which shards of `runs` confirm runs are larger than `shard` runs.

        There are at least 16 larger shards, so that all cores have work.
        """
        if not self.compiled or self.seconds_per_run > QUICK_RUN_SECONDS:
            return 1
        return 1 << min(max(runs // (16 * shard), 1), 8).bit_length() - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InputConversion:
    """The conversion of a mechanism's inputs, the same for both inputs of a pair."""

    #: Whether lists of numbers become arrays, for a mechanism that cannot use lists.
    lists_as_arrays: bool = False
    #: The type of the array for an empty list.
    dtype: str = "float64"
    #: Whether all arrays get the type `dtype`, since one side holds integers and the other floats: in an array of
    #: integers noise may be cut off.
    mixed: bool = False

    @classmethod
    def to_arrays(cls, pair: Pair) -> "InputConversion | None":
        """The conversion of lists to arrays for pairs like `pair`; None if an input is not a list of numbers."""
        both = [as_array(side) if type(side) is list else None for side in pair.sides]
        if both[0] is None or both[1] is None:
            return None
        types = {array.dtype.name for array in both if array is not None and array.size}
        dtype = np.result_type(*types).name if types else "float64"
        return cls(lists_as_arrays=True, dtype=dtype, mixed=len(types) > 1)

    def source(self, data: Data) -> Callable[[], Data]:
        """A function that returns the converted input: for each call a new copy, if the input is mutable.

        Raises `InvalidNeighbours` for a list that should become an array and holds other values than numbers.
        """
        if not self.lists_as_arrays or type(data) is not list:
            return copier(data)
        array = as_array(data)
        if array is None:
            raise InvalidNeighbours(
                f"input {shown(data)} is a list that no array of numbers holds, and the mechanism takes arrays only: "
                "give arrays, or form='array'"
            )
        if not array.size:
            array = np.empty(array.shape, self.dtype)
        return copier(array.astype(self.dtype) if self.mixed else array)


#: The order of the sides in each paired run: 1 where D′ runs first, else 0.
Order = NDArray[np.uint8]
#: The turns of paired runs, of shape (3, runs): the id of the process, and the numbers of the run on D and of the run
#: on D′ among all runs of this process.
Turns = Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRuns:
    """Runs on both inputs of a pair."""

    #: The two inputs, D and D′.
    pair: Pair
    #: The side of each run that comes first. If one call makes many runs, the first entry holds for all runs.
    order: Order
    #: Whether the two sides of a run share their random draws, if the mechanism can; different runs share no draws.
    coupled: bool = True
    #: The number of the first run, for messages.
    start: int = 0
    #: The columns of rows, fixed before the runs, so that a row follows from the outcome alone; None before the first
    #: outcome, and for rows by position.
    columns: Columns | None = None

    @classmethod
    def d_first(cls, pair: Pair, runs: int, *, coupled: bool, columns: Columns | None = None) -> "PairedRuns":
        """Paired runs with D before D′, for runs that are not evidence."""
        return cls(pair=pair, order=np.zeros(runs, np.uint8), coupled=coupled, columns=columns)

    def __len__(self) -> int:
        return len(self.order)

    def part(self, first: int, end: int) -> "PairedRuns":
        """The runs from `first` to before `end`."""
        return replace(self, order=self.order[first:end], start=self.start + first)


#: The largest number of entries of an outcome: a longer outcome is taken for a list that grows without end.
LONGEST_ROW: Final = 10_000


class Mechanism(ABC):
    """A mechanism that can be run on an input."""

    #: The number of paired runs of a shard, which have one seed; it follows from the cost.
    shard: int
    #: Whether several threads may run the mechanism at the same time.
    threads: bool
    #: Whether the mechanism is machine code.
    compiled = False
    #: The function as plain Python, with which compiled outcomes are compared; None for other mechanisms.
    plain: "Mechanism | None" = None
    #: "outcome" if an exception is the outcome of its run; "raise" if it is raised as `MechanismRaised`.
    errors = "raise"
    #: Whether rows are by position, as rows of compiled code, and of witness files without columns.
    by_position = False
    #: Whether each run gets a copy of its input, since a run has changed its input.
    copies = False
    #: Whether runs are Python code of this process, whose lines and draws can be recorded.
    in_process = False
    #: The least time of a timed call in seconds; faster calls make up to 1,024 runs.
    timed_seconds = 1e-3
    #: The seconds spent so far on comparing inputs before and after runs.
    seconds_aside = 0.0

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        #: The cost of a run, without seconds before `measure`.
        self.cost = Cost(compiled=self.compiled, batched=signature.size is not None)
        #: The number of entries of the longest outcome so far, which is the first width of rows, to save time.
        self.width = 0
        #: The number of runs so far in this process, if the interpreter makes them.
        self.run_count = 0
        #: The entries of samples that are not numbers, by coordinate: codes of exceptions, and None for other entries.
        self.mixed: dict[int, set[float | None]] = {}
        #: The traits of outcomes so far; empty for machine code.
        self.traits = OutputTraits()
        #: The conversion of inputs.
        self.conversion = InputConversion()

    def measure(self, pair: Pair) -> None:
        """Run on both inputs of a pair, and set the cost, the shard and the width. Raises the errors of `outcomes`."""
        seconds, widest = self.timed(pair)
        self.cost = replace(self.cost, width=max(widest, self.traits.longest, 1), seconds_per_run=seconds)
        self.shard, self.width = self.cost.shard, max(self.width, self.cost.width)

    def timed(self, pair: Pair) -> tuple[float, int]:
        """Seconds of one run on one input of a pair, the least of several calls, and the length of the longest outcome.

        The measurement takes a few milliseconds, or a few runs of a slow mechanism. The first run counts only if no
        other run is timed: it may import, compile and build objects for later runs. Raises the errors of `outcomes`.
        """
        rng = np.random.Generator(np.random.SFC64(0))
        least = 0.1 if self.cost.batched else self.timed_seconds  # a call may take long for any number of runs
        n, widest, first, times = 1, 0, math.inf, list[float]()
        began = perf_counter()
        self.traits.entries.clear()
        # Five calls, or single runs for 0.2 s. Calls of several runs are always five: the machine may be busy in one.
        while len(times) < 5 and (not times or n > 1 or perf_counter() - began < 0.2):
            runs = PairedRuns.d_first(pair, n, coupled=False, columns=self.columns)
            started, aside = perf_counter(), self.seconds_aside
            try:
                widest = max(widest, self.pair_rows(runs, rng, max(widest, self.width, 8))[0])
            except MechanismError:  # a rare error: a run that counts will raise it, with the run's number
                if first == math.inf:
                    raise
                break
            seconds = perf_counter() - started - (self.seconds_aside - aside)
            if first == math.inf:
                # Columns follow from this call alone: the clock decides how many calls follow.
                if self.grow() and self.columns is not None:
                    widest = len(self.columns.entries)
                first, began = seconds / 2, perf_counter()
            elif seconds < least and n < 1024:
                first, n = min(first, seconds / (2 * n)), 4 * n
            else:
                times.append(seconds / (2 * n))
        return min(times, default=first), widest

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.signature.name

    @property
    def reproducible(self) -> bool:
        """Whether the mechanism takes a generator, so that a seed repeats its runs."""
        return self.signature.generator is not None

    @property
    def outcome(self) -> Callable[[object], object] | None:
        """The user's function from an output to an outcome; None if the user gave no function."""
        return None

    @abstractmethod
    def outcomes(self, data: Data, rng: np.random.Generator, n: int, *, start: int = 0, least: int = 1) -> Rows:
        """The rows of n runs on one input, of shape (n, width ≥ `least`); a shorter outcome is followed by NaN.

        `rng`: the mechanism's generator, if it takes one. `start`: the number of the first run, for messages. Raises
        `MechanismRaised` if the mechanism raises, and `InvalidOutcome` for an output without an encoding.
        """

    @abstractmethod
    def pair_rows(self, runs: PairedRuns, rng: np.random.Generator, width: int) -> tuple[int, Rows]:
        """The length of the longest outcome, and the rows of `pair_outcomes`, at least `width` wide."""

    def turns(self, order: Order) -> Turns:
        """The turns of the last paired runs, whose order is `order`; of shape (3, 0) if runs cannot keep state."""
        return np.empty((3, 0), np.int64)

    def pair_outcomes(self, runs: PairedRuns, rng: np.random.Generator) -> Rows:
        """The rows of runs on D and on D′, of shape (2, runs, width). Raises the errors of `outcomes`."""
        longest, rows = self.pair_rows(runs, rng, self.width)
        self.width = max(self.width, longest)
        return rows

    def label(self, value: float) -> str | None:
        """The text that a number encodes, without surrogates, which no file holds; None for other numbers."""
        text = self.traits.labels.get(value)
        return None if text is None else text.encode(errors="backslashreplace").decode()

    @property
    def parts(self) -> Mapping[int, int]:
        """The coordinate of a value's first entry, by the coordinate of each further entry of the value."""
        return {} if self.columns is None else self.columns.parts

    def outcome_text(self, outcome: Sequence[float]) -> str:
        """The text of a row for people; a value of several entries is named once."""
        return outcome_text(outcome, self.label, Noun("value", parts=self.parts))

    def forget(self) -> None:
        """Reset the mechanism's `traits`."""
        self.traits = OutputTraits()

    def release(self) -> None:  # noqa: B027  # most mechanisms cannot end a run
        """End the runs in progress, such as a run that hangs after a deadline, if the mechanism can end runs."""

    @property
    def columns(self) -> Columns | None:
        """The columns of the rows of the next runs; None for rows by position."""
        return None

    @property
    def layout(self) -> Columns | None:
        """The columns; None if they are plain, so that a coordinate is the position of a value."""
        return None if self.columns is None or self.columns.plain else self.columns

    def begin(self, columns: Columns | None, *, by_position: bool) -> None:  # noqa: B027  # some mechanisms have no columns
        """Set the columns of rows, or rows by position, before the first run."""

    def grow(self) -> bool:
        """Add columns, from the next run on, for entries without a column; return whether any column was added."""
        return False

    @property
    def places(self) -> Mapping[int, str]:
        """The names of entries by coordinate; empty if entries have no names."""
        return {}

    def check_length(self, length: int, start: int) -> int:
        """The length of an outcome. Raises `InvalidOutcome` for more than `LONGEST_ROW` entries."""
        if length > LONGEST_ROW:
            raise InvalidOutcome(
                f"{self.name} returned {length} values on a run from {start} on: more than {LONGEST_ROW} are taken for "
                "a list that grows without end; return less, or pass outcome= to summarise it"
            )
        return length
