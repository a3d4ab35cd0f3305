"""The interface of every kind of mechanism: it fills rows with the outcomes of its runs.

A user writes a plain function; `signature` recognises its parameters by name, and `resolve` chooses how it runs:
machine code (`compiled`), the interpreter, or the function itself, many runs a call (both in `python`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidNeighbours, InvalidOutcome, MechanismError
from dpwitness.events.event import Noun, outcome_text
from dpwitness.mechanisms.columns import Columns, OutputTraits
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Data, Pair, as_array, copier, shown

#: Seconds of a run above which a mechanism is slow: a hundred runs then take noticeable time, and a shard has 2 runs.
SLOW_RUN_SECONDS: Final = 0.02
#: The longest time (s) of one input in a shard of over two runs: a shard unfinished at the deadline is lost.
SHARD_SECONDS: Final = 0.131_072
#: Seconds of a run up to which shards of many confirm runs are larger: between two shards 0.2 ms pass, a tenth to a
#: third of the time of a shard of the usual size.
QUICK_RUN_SECONDS: Final = 0.25e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a run."""

    #: Entries of the longest outcome in the trial runs, at least 1. Later outcomes may be longer.
    width: int = 1
    #: Seconds of one run of one input: the least measured value, since a busy machine must not make a fast mechanism
    #: look slow. 0.0 without a measurement.
    seconds_per_run: float = 0.0
    #: Whether it is machine code, which keeps nothing from run to run.
    compiled: bool = False
    #: Whether one call makes many runs, so that single runs cost as much as hundreds.
    batched: bool = False

    @property
    def slow(self) -> bool:
        """Whether a hundred runs are too many to spend, except on evidence."""
        return self.seconds_per_run > SLOW_RUN_SECONDS

    @property
    def cheap_in_bulk(self) -> bool:
        """Whether many runs are cheap: of machine code, and of calls that make many."""
        return self.compiled or self.batched

    @property
    def shard(self) -> int:
        """Paired runs that get one seed: 2, or a power of 16 that takes up to `SHARD_SECONDS`, or the largest shard.

        Few values are possible, so that the same seed gives the same counts though the measured seconds vary a little.
        """
        if self.slow:
            return 2
        runs = SHARD_SECONDS / max(self.seconds_per_run, 1e-9)
        if self.batched:
            runs = min(runs, (1 << 22) / self.width)  # numbers that one call returns
        power = 1 << 4 * int(math.log2(max(runs, 1)) // 4)
        return min(max(power, 2), 16_384 if self.cheap_in_bulk else 65_536)

    def shards_larger(self, shard: int, runs: int) -> int:
        """The factor, 1, 2, 4 or 8, by which the shards of `runs` confirm runs are larger than `shard`.

        Fewer than 16 of the larger shards would leave cores without work.
        """
        if not self.compiled or self.seconds_per_run > QUICK_RUN_SECONDS:
            return 1
        return 1 << min(max(runs // (16 * shard), 1), 8).bit_length() - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InputConversion:
    """The conversion of a mechanism's inputs, the same for both inputs of a pair."""

    #: Whether lists of numbers become arrays, for a mechanism that cannot use lists.
    lists_as_arrays: bool = False
    #: The type of the array of a list without entries.
    dtype: str = "float64"
    #: Whether all arrays have that type, if one side holds whole numbers and the other does not: by itself each list
    #: would become an array of another type, in which noise may be cut off.
    mixed: bool = False

    @classmethod
    def to_arrays(cls, pair: Pair) -> "InputConversion | None":
        """The conversion of lists to arrays for pairs like this one; None if an input is not a list of numbers."""
        both = [as_array(side) if type(side) is list else None for side in pair.sides]
        if both[0] is None or both[1] is None:
            return None
        types = {array.dtype.name for array in both if array is not None and array.size}
        dtype = np.result_type(*types).name if types else "float64"
        return cls(lists_as_arrays=True, dtype=dtype, mixed=len(types) > 1)

    def source(self, data: Data) -> Callable[[], Data]:
        """A function that hands out an input, as a fresh copy each time if it could be changed.

        Raises `InvalidNeighbours` for a list that no array holds, where lists are handed over as arrays.
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


#: Outcomes, one a row, in the encoding of `dpwitness.events.encoding`; NaN behind the end of each.
Rows = NDArray[np.float64]
#: For each paired run, 1 where D′ runs first, else 0.
Order = NDArray[np.uint8]
#: The turns of paired runs, of shape (3, runs): the process, and the numbers of the run on D and of the run on D′ among
#: all runs of that process.
Turns = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRuns:
    """Runs on both inputs of a pair."""

    #: D and D′.
    pair: Pair
    #: Which side of each run comes first. If one call makes many runs, the first entry decides for all.
    order: Order
    #: Whether the two sides of a run share their random draws, where the mechanism can; different runs never share
    #: any. The sides are independent otherwise.
    coupled: bool = True
    #: The number of the first run, for messages.
    start: int = 0
    #: The columns of rows of plain Python, fixed before the runs, so that a row follows from the outcome alone. None
    #: before the first outcome, and for rows by position.
    columns: Columns | None = None

    @classmethod
    def d_first(cls, pair: Pair, runs: int, *, coupled: bool, columns: Columns | None = None) -> "PairedRuns":
        """Paired runs with D before D′, for purposes that no order can bias."""
        return cls(pair=pair, order=np.zeros(runs, np.uint8), coupled=coupled, columns=columns)

    def __len__(self) -> int:
        return len(self.order)

    def part(self, first: int, end: int) -> "PairedRuns":
        """The runs from `first` to before `end`."""
        return replace(self, order=self.order[first:end], start=self.start + first)


#: Entries of an outcome at most: a longer outcome is taken for a list that grows without end.
LONGEST_ROW: Final = 10_000


class Mechanism(ABC):
    """A mechanism that can be run on an input."""

    #: Paired runs of a shard, which has a seed of its own; they follow from the cost.
    shard: int
    #: Whether several threads may run it at the same time.
    threads: bool
    #: Whether it is machine code.
    compiled = False
    #: The function as plain Python, if compiled outcomes must be compared with it.
    plain: "Mechanism | None" = None
    #: "outcome" where a run that raises is an outcome; "raise" where it ends everything.
    errors = "raise"
    #: Whether rows of all outcomes stand by position, as rows of compiled code, and of files without a layout.
    by_position = False
    #: Whether each run gets a copy of its input, since a run has changed it.
    copies = False
    #: Whether a run is Python code of this process, whose lines and draws can be followed.
    in_process = False
    #: Seconds of a timed call at least; a faster call makes up to 1,024 runs. A comparison of large inputs empties
    #: the caches of the processor, which costs the next run 0.3 ms.
    timed_seconds = 1e-3
    #: Seconds spent so far on the comparison of inputs before and after runs, once for each batch of runs.
    seconds_aside = 0.0

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        #: The cost of a run: measured by `measure`, before that a guess by kind.
        self.cost = Cost(compiled=self.compiled, batched=signature.size is not None)
        #: Entries of the longest outcome so far, and so the width of rows at first. It saves time and decides nothing.
        self.width = 0
        #: Runs so far in this process, if the interpreter makes them.
        self.run_count = 0
        #: The entries of samples besides numbers, by coordinate: codes of exceptions, and None for any other entry.
        self.mixed: dict[int, set[float | None]] = {}
        #: The traits of its outputs so far; empty for machine code.
        self.traits = OutputTraits()
        #: The conversion of its inputs.
        self.conversion = InputConversion()

    def measure(self, pair: Pair) -> None:
        """Run both inputs of a pair, and set the cost, the shard and the width. Raises as `fill` does."""
        seconds, widest = self.timed(pair)
        self.cost = replace(self.cost, width=max(widest, self.traits.longest, 1), seconds_per_run=seconds)
        self.shard, self.width = self.cost.shard, max(self.width, self.cost.width)

    def timed(self, pair: Pair) -> tuple[float, int]:
        """Seconds of one run of one input of a pair, the least of several calls, and the length of the longest outcome.

        It takes a few milliseconds, or a few runs of a slow mechanism. The first run counts only where nothing else is
        timed: it may import, compile and build objects for later runs. Raises as `fill` does.
        """
        rng = np.random.Generator(np.random.SFC64(0))
        worth = 0.1 if self.cost.batched else self.timed_seconds  # a call of many runs may take long for any number
        n, widest, first, times = 1, 0, math.inf, list[float]()
        began = perf_counter()
        self.traits.entries.clear()
        # Five calls, or single runs for 0.2 s. Calls of several runs are short unless the machine is busy, and one that
        # it was busy in must not be the only one.
        while len(times) < 5 and (not times or n > 1 or perf_counter() - began < 0.2):
            runs = PairedRuns.d_first(pair, n, coupled=False, columns=self.columns)
            started, aside = perf_counter(), self.seconds_aside
            try:
                widest = max(widest, self.pair_rows(runs, rng, max(widest, self.width, 8))[0])
            except MechanismError:  # a rare one: it is raised where it counts, with the run's number
                if first == math.inf:
                    raise
                break
            seconds = perf_counter() - started - (self.seconds_aside - aside)
            if first == math.inf:
                # By this call alone: how many follow is for the clock to say.
                if self.grow() and self.columns is not None:
                    widest = len(self.columns.entries)
                first, began = seconds / 2, perf_counter()
            elif seconds < worth and n < 1024:
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
        """The user's function from an output to an outcome; None without one."""
        return None

    @abstractmethod
    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        """Run once for every row, write the outcomes, and return the length of the longest one.

        `rng`: the generator of the mechanism, if it takes one. `rows`: of shape (runs, width); a longer outcome is cut
        off, and the rest of a row becomes NaN. `start`: the number of the first run, for messages. Raises
        `MechanismRaised` when the mechanism raises, with the run's number and the input, and
        `InvalidOutcome` for an output that is not a number, a flag, a text, or a sequence of them.
        """

    @abstractmethod
    def fill_pair(self, runs: PairedRuns, rng: np.random.Generator, rows: Rows) -> int:
        """Fill rows[0] with runs of D and rows[1] with runs of D′, as `fill` does; rows of shape (2, runs, width)."""

    def turns(self, order: Order) -> Turns:
        """The turns of the last paired runs in their order; of no runs if nothing can be kept from run to run."""
        return np.empty((3, 0), np.int64)

    def outcomes(self, data: Data, rng: np.random.Generator, n: int, *, start: int = 0, least: int = 1) -> Rows:
        """Run n times on one input and cut nothing off; raises as `fill` does.

        The rows have the shape (n, width): as wide as the longest outcome seen so far, and as `least`.
        """
        longest, rows = _uncut(lambda rows: self.fill(data, rng, rows, start), rng, (n,), max(self.width, least))
        self.width = max(self.width, longest)
        return rows

    def pair_outcomes(self, runs: PairedRuns, rng: np.random.Generator) -> Rows:
        """Run on both inputs and cut nothing off; rows of shape (2, runs, width). Raises as `fill` does."""
        longest, rows = self.pair_rows(runs, rng, self.width)
        self.width = max(self.width, longest)
        return rows

    def pair_rows(self, runs: PairedRuns, rng: np.random.Generator, width: int) -> tuple[int, Rows]:
        """The length of the longest outcome, and the rows of `pair_outcomes`, at least `width` wide."""
        return _uncut(lambda rows: self.fill_pair(runs, rng, rows), rng, (2, len(runs)), width)

    def label(self, value: float) -> str | None:
        """The text that a number encodes, in a form that a file can hold; None for other numbers."""
        text = self.traits.labels.get(value)
        return None if text is None else text.encode(errors="backslashreplace").decode()

    @property
    def dates(self) -> dict[int, str]:
        """The units of entries that are dates, by coordinate; "" for entries of several units."""
        columns = self.columns or Columns()
        found = {columns.coordinate(path, 0): unit for path, unit in self.traits.dates.items()}
        return {coordinate: unit for coordinate, unit in found.items() if coordinate is not None}

    @property
    def parts(self) -> Mapping[int, int]:
        """The coordinate of a value's first entry, by the coordinates of its further entries."""
        return {} if self.columns is None else self.columns.parts

    def outcome_text(self, outcome: Sequence[float]) -> str:
        """The text of a row for people, each value once."""
        return outcome_text(outcome, self.label, Noun("value", dates=self.dates, parts=self.parts))

    def shard_of(self, pair: Pair) -> int:
        """Paired runs of a shard on this pair."""
        return self.shard

    def forget(self) -> None:
        """Reset `traits`."""
        self.traits = OutputTraits()

    def release(self) -> None:  # noqa: B027  # for most there is nothing to do
        """End running runs, such as a run that hangs after a deadline, if the mechanism can."""

    @property
    def columns(self) -> Columns | None:
        """The columns of the rows of the next runs; None for rows by position."""
        return None

    @property
    def layout(self) -> Columns | None:
        """The columns, if a position does not say which entry it is; else None."""
        return None if self.columns is None or self.columns.plain else self.columns

    def begin(self, columns: Columns | None, *, by_position: bool) -> None:  # noqa: B027  # as above
        """Set the columns of rows, or rows by position, before the first run."""

    def grow(self) -> bool:
        """Add columns for entries that lack one, from the next runs on; return whether there were any."""
        return False

    @property
    def places(self) -> Mapping[int, str]:
        """The names of entries by coordinate, for outputs whose entries have names."""
        return {}

    def check_length(self, length: int, start: int) -> int:
        """The length of an outcome. Raises `InvalidOutcome` for more than `LONGEST_ROW` entries."""
        if length > LONGEST_ROW:
            raise InvalidOutcome(
                f"{self.name} returned {length} values on a run from {start} on: more than {LONGEST_ROW} are taken for "
                "a list that grows without end; return less, or pass outcome= to summarise it"
            )
        return length


def _uncut(
    fill: Callable[[Rows], int], rng: np.random.Generator, runs: tuple[int, ...], width: int
) -> tuple[int, Rows]:
    """The length of the longest outcome, and rows that hold all outcomes, at least `width` wide.

    Rows that are too narrow are filled once more with the same runs.
    """
    state = rng.bit_generator.state
    while (longest := fill(rows := np.empty((*runs, max(width, 1))))) > rows.shape[-1]:
        rng.bit_generator.state, width = state, longest
    return longest, rows
