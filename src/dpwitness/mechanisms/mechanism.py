"""What a run of a mechanism costs, measured once; numbers of runs follow from it, not from the kind of mechanism.

How inputs are handed to a mechanism: exactly as they were given, as far as it can take them so.

Why numba refuses a function, on one line, and what to do about it.

What is said of a mechanism that raised: on which run, on which input, and whether on its neighbour too.

The one interface over every kind of callable: a mechanism fills rows with the outcomes of its runs.

A user writes a plain function; `signature` recognises its parameters by name, and `resolve` chooses what runs it:
machine code (`compiled`), the interpreter (`python`), or the function itself, many runs a call (`vectorised`).
"""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidNeighbours, InvalidOutcome, MechanismError, MechanismRaised
from dpwitness.mechanisms.layout import Entry, RowLayout
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Data, Pair, as_array, copier, shown

#: Seconds a run from which on 32 paired runs would make one wait: then the e-value is looked at after every 2.
SLOW: Final = 0.02
#: The same for 16,384 paired runs, which take 8 s from here on.
SLOW_IN_NUMBERS: Final = 250e-6

#: Seconds that one timed call shall take at least: where it takes less, it makes more runs, up to so many.
TIMED: Final = 250e-6
MOST_RUNS: Final = 1024
#: The same where one call makes many runs: it may take long for whatever number of them.
TIMED_BATCHED: Final = 0.1
#: Timed calls, and about how many seconds they take together.
CALLS: Final = 5
SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a run costs.

    Attributes
    ----------
    width
        Entries of the longest outcome in the trial runs, at least 1. Later outcomes may be longer.
    seconds_per_run
        Seconds of one run of one input: the least that was measured, since a busy machine must not make a fast
        mechanism look slow. 0.0 where nothing was measured.
    compiled
        Whether it is machine code, which keeps nothing from run to run.
    parallel
        Whether several threads may run it at the same time.
    batched
        Whether one call makes many runs, so that single runs cost as much as hundreds.
    """

    width: int = 1
    seconds_per_run: float = 0.0
    compiled: bool = False
    parallel: bool = False
    batched: bool = False

    @property
    def slow(self) -> bool:
        """Whether a hundred runs are too many to spend on anything but evidence."""
        return self.seconds_per_run > SLOW

    @property
    def in_numbers(self) -> bool:
        """Whether runs are cheap when they are many: of machine code, and of calls that make many."""
        return self.compiled or self.batched

    @property
    def shard(self) -> int:
        """Paired runs that get one seed.

        One of four numbers: the same seed gives the same counts though the measured seconds vary a little.
        """
        if self.slow:
            return 2
        if not self.in_numbers:
            return 32
        return 64 if self.seconds_per_run > SLOW_IN_NUMBERS else 16_384


class Runnable(Protocol):
    """What can be timed: a mechanism."""

    cost: Cost
    width: int

    def fill_pair(
        self, pair: Pair, rng: np.random.Generator, rows: NDArray[np.float64], start: int, *, coupled: bool
    ) -> int:
        """Fill rows of both inputs; return the longest length."""


def measured(mechanism: Runnable, pair: Pair) -> Cost:
    """Run a mechanism on both inputs and return its cost; it takes a few milliseconds, or a few runs of a slow one.

    The first run is not timed: it may import, compile and build what the others use. Raises `MechanismRaised` and
    `InvalidOutcome` where it fails.
    """
    rng = np.random.Generator(np.random.SFC64(0))
    widest = mechanism.fill_pair(pair, rng, np.empty((2, 1, max(mechanism.width, 8))), 0, coupled=False)
    worth = TIMED_BATCHED if mechanism.cost.batched else TIMED
    n = 1
    times: list[float] = []
    began = time.perf_counter()
    while not times or (len(times) < CALLS and time.perf_counter() - began < SECONDS):
        rows = np.empty((2, n, max(widest, 1)))
        started = time.perf_counter()
        try:
            widest = max(widest, mechanism.fill_pair(pair, rng, rows, 0, coupled=False))
        except MechanismError:  # a rare one: it is raised where it counts, with the number of the run that repeats it
            break
        seconds = time.perf_counter() - started
        if seconds < worth and n < MOST_RUNS:
            n *= 4
        else:
            times.append(seconds / (2 * n))
    return replace(mechanism.cost, width=max(widest, 1), seconds_per_run=min(times, default=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    """How a mechanism gets its inputs: both of a pair in the same way.

    Attributes
    ----------
    lists_as_arrays
        Lists of numbers as arrays: it cannot do with lists.
    empty
        The type of the array that a list without entries becomes: it must not follow from what is not there.
    """

    lists_as_arrays: bool = False
    empty: str = "float64"

    @classmethod
    def arrays(cls, pair: Pair) -> "Handing | None":
        """Lists as arrays, for pairs like this one; None where its inputs are no lists of numbers."""
        both = [as_array(side) if type(side) is list else None for side in pair.sides]
        if both[0] is None or both[1] is None:
            return None
        types = {array.dtype.name for array in both if array is not None and array.size}
        return cls(lists_as_arrays=True, empty=types.pop() if len(types) == 1 else "float64")

    def of(self, data: Data) -> Callable[[], Data]:
        """Return what hands out an input, a fresh copy each time where it could be changed.

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
        return copier(array if array.size else np.empty(array.shape, self.empty))


LONGEST: Final = 160
#: Lines of numba's messages that say where, not why.
_NOT_TELLING: Final = (
    "Failed in", "During", "File ", "raised from", "There are", "- Of which", ">>>", "^", "- Resolution failure",
)  # fmt: skip
#: Colours and weights of letters, which numba writes wherever colorama is installed.
_STYLE: Final = re.compile(r"\x1b\[[0-9;]*m")
_USUAL: Final = "use loops, numbers, NumPy arrays and dpwitness.noise"

#: What numba says, and what to do about it; the first that fits. Groups of the pattern go into the advice.
_MENDS: Final[tuple[tuple[str, str], ...]] = (
    (r"Untyped global name '(\w+)'.*<class 'function'>", r"decorate \1 with @numba.njit"),
    (r"Untyped global name '(\w+)'.*<class 'type'>", r"\1 is a class: use numbers, tuples and arrays in its place"),
    (r"Untyped global name '(\w+)'.*<class '[^']*\bdict'>", r"\1 is a dict: give its values as parameters or an array"),
    (r"Untyped global name '(\w+)'.*<class '([^']*)'>", r"\1 is a \2: pass what it holds as numbers or arrays"),
    (r"Untyped global name '(\w+)'", r"give what \1 stands for as a parameter, or define it before the function"),
    (r"name '(\w+)' is not defined|NameError: .*'(\w+)'", "define it at the top of the file"),
    (r"IMPORT_NAME|IMPORT_FROM", "move the import to the top of the file"),
    (r"STORE_GLOBAL|DELETE_GLOBAL", "return what it computes in place of setting a global variable"),
    (r"[Uu]nsupported context manager|WITH|BEFORE_WITH", "leave out the with statement"),
    (r"yield in a closure", "write the generator expression as a loop"),
    (r"Unknown attribute '(\w+)' of type NumPyRandomGeneratorType", r"numba has no rng.\1: draw it from what it has, "
     "such as rng.random and rng.normal, or with dpwitness.noise"),
    (r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'", r"numba does not know \2.\1: use NumPy, or "
     "dpwitness.noise for noise"),
    (r"No implementation of function Function\(<(?:built-in )?function (?:array_)?(\w+)",
     r"numba has no \1 with such arguments: write it as a loop"),
    (r"returns something else", "return numbers, flags or arrays of such"),
    (r"non-precise type|Cannot unify", "keep each variable of one type"),
)  # fmt: skip


def refusal(message: str) -> str:
    """The one line of numba's message that says why, and what to do, with a semicolon between them."""
    why = _why(message)
    for pattern, mend in _MENDS:
        found = re.search(pattern, why)
        if found:
            return f"{why}; to make it fast: {found.expand(mend)}"
    return f"{why}; to make it fast: {_USUAL}"


def reason(message: str) -> str:
    """Why alone, on one line, with the call that numba has no code for."""
    why = _why(message)
    call = re.search(r"^\s*>>> (.+)$", message, re.MULTILINE)
    return f"{why} {call[1]}" if call and why.endswith(":") else why


def _why(message: str) -> str:
    lines = [line.strip() for line in _STYLE.sub("", message).splitlines()]
    telling = [line for line in lines if line and not line.startswith(_NOT_TELLING)]
    line = telling[0] if telling else "no reason given"
    if line.startswith("No implementation of function") and "place" in line:
        return "it returns something else than numbers and flags"
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


#: Runs of each input, and seconds for them, to see whether only one of the two raises.
TRIED: Final = 32
AGAIN_SECONDS: Final = 0.25
#: Exceptions on one input alone that are more than chance: so many fall on one of two equal sides in 1 of 16 cases.
CLEAR: Final = 5
#: Runs that all raise, on an input on which one ran well, before something is said to be used up.
AGAIN: Final = 8

Fill = Callable[[Data, np.random.Generator, NDArray[np.float64], int], int]


def raised(name: str, error: Exception, run: int, data: Data, *, used_up: bool = False) -> MechanismRaised:
    """Make the error for a mechanism of that name that raised, with the run's number and the input."""
    text = str(error).splitlines()[0] if str(error) else "no message"
    if type(error).__module__.partition(".")[0] == "numba":  # whose first line says in which step of numba's, not why
        text = reason(str(error))
    told = f"{name} raised {type(error).__name__} ({text}) on run {run}, on the input {shown(data)}"
    if used_up:
        told += (
            ", and raises now on inputs, too, on which it ran well before: something that it holds is used up; make a "
            "new one for each run: make=, or within the function"
        )
    made = MechanismRaised(told)
    made.used_up = used_up
    return made


def always_raises(run: Callable[[int], object], kind: type[Exception]) -> bool:
    """Whether each of a few runs raises an exception of that kind; `run` takes their number."""
    for number in range(AGAIN):
        try:
            run(number)
        except kind:
            continue
        except Exception:
            return False
        return False
    return True


def of_both(fill: Fill, pair: Pair, error: MechanismRaised) -> MechanismRaised:
    """Return the error with what both inputs of the pair do: an exception on one side alone tells them apart.

    `fill` writes runs of one input into rows, as that of a `Mechanism`; it is called for single runs.
    """
    if pair.data is pair.neighbour or error.used_up:
        return error
    try:
        raised, runs = _counted(fill, pair)
    except MechanismError:  # of another kind: what was raised first is what is told
        return error
    side = int(raised[1] > raised[0])
    often, here, there = raised[side], ("D", "D′")[side], ("D′", "D")[side]
    if not often or raised[1 - side]:
        made = MechanismRaised(f"{error}; errors='outcome' takes exceptions for outcomes")
        made.on_both_inputs = raised == [runs, runs]
        return made
    told = f"{error}: it raised in {often} of {runs} runs on {here} but in none of {runs} on {there}"
    if often < CLEAR:
        return MechanismRaised(f"{told}; errors='outcome' tests whether that is chance")
    return MechanismRaised(f"{told}, which is a difference between neighbours; errors='outcome' tests it")


def _counted(fill: Fill, pair: Pair) -> tuple[list[int], int]:
    """How many runs of each input raised, in a random order of the sides, and how many there were of each."""
    rngs = [np.random.Generator(np.random.SFC64(side)) for side in (0, 1)]
    row, order = np.empty((1, 1)), np.random.Generator(np.random.SFC64(2)).integers(0, 2, TRIED)
    found, runs = [0, 0], 0
    end = time.monotonic() + 2 * AGAIN_SECONDS
    while runs < TRIED and (not runs or time.monotonic() < end):
        for side in (1, 0) if order[runs] else (0, 1):
            try:
                fill(pair.sides[side], rngs[side], row, runs)
            except MechanismRaised:
                found[side] += 1
        runs += 1
    return found, runs


#: A longer output is taken for a list that grows without end.
LONGEST_ROW: Final = 10_000

#: Outcomes, one a row, in the encoding of `dpwitness.events.encoding`; NaN behind the end of each.
Rows = NDArray[np.float64]

#: For each paired run, 1 where D′ runs first, else 0.
Order = NDArray[np.uint8]
#: When paired runs were made, of shape (3, runs): the process, and the numbers that the run on D and the run on D′ have
#: among all runs there.
Turns = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a mechanism's outputs have shown so far: the texts among them by their numbers, and kinds of outputs.

    `bare`: whether bare values were None; `single`: whether the only entries of sequences were. `entries`: those behind
    the layout, by their codes; `keyed`: whether outcomes have places, `positional`: whether some were several entries
    without.
    """

    labels: Mapping[float, str] = field(default_factory=dict)
    bare: frozenset[bool] = frozenset()
    single: frozenset[bool] = frozenset()
    entries: Mapping[float, Entry] = field(default_factory=dict)
    keyed: bool = False
    positional: bool = False

    def agrees(self, other: "Learned") -> bool:
        """Whether rows that do not tell a sequence of one entry from that entry alone can hold both.

        And whether none has places while another has several entries without.
        """
        mixed = (self.keyed or other.keyed) and (self.positional or other.positional)
        return not mixed and not (self.bare | other.bare) & (self.single | other.single)


class Mechanism(ABC):
    """Something that can be run on an input.

    Attributes
    ----------
    signature
        The user's function and its parameters.
    cost
        What a run costs: measured by `measure`, before that what is known of its kind.
    shard
        Paired runs with one seed of their own; it follows from the cost.
    width
        Entries of the longest outcome seen so far: how wide to make rows at first. It saves time and decides nothing.
    plain
        The same function as the interpreter runs it, where compiled outcomes must be compared with it.
    """

    shard: int
    #: Whether several threads may run it at the same time.
    threads: bool
    #: Whether it is machine code.
    compiled = False
    plain: "Mechanism | None" = None
    #: "outcome" where a run that raises is an outcome; "raise" where it ends everything.
    errors = "raise"
    #: Whether a sequence of one entry is told from that entry alone: only where a mechanism returns both.
    marked = False
    #: Whether rows stand by position whatever outcomes hold: those of compiled code, and of files without a layout.
    by_position = False
    #: Whether an outcome by position held more than single values.
    flat = False

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.cost = Cost(compiled=self.compiled, parallel=self.threads, batched=signature.size is not None)
        self.width = 0
        self.made = 0  # runs so far, in this process, where the interpreter makes them
        self.mixed: set[int] = set()  # coordinates at which samples had more than numbers
        self.handing = Handing()

    def measure(self, pair: Pair) -> None:
        """Run both inputs of a pair and set the cost, and what follows from it. Raises as `fill` does."""
        self.cost = measured(self, pair)
        self.shard, self.width = self.cost.shard, max(self.width, self.cost.width)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.signature.name

    @property
    def reproducible(self) -> bool:
        """Whether it takes a generator, so that a seed repeats its runs."""
        return self.signature.generator is not None

    @property
    def outcome(self) -> Callable[[Any], Any] | None:
        """What turns an output into an outcome, where the user gave it."""
        return None

    @abstractmethod
    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        """Run once for every row and write the outcomes.

        Parameters
        ----------
        data
            The input.
        rng
            The generator that the mechanism draws from, where it takes one.
        rows
            Of shape (runs, width); what does not fit into a row is cut off, what is behind an outcome becomes NaN.
        start
            The number of the first run, for messages.

        Returns
        -------
        int
            The length of the longest outcome, which may exceed the width.

        Raises
        ------
        MechanismRaised
            When the mechanism raises, with the run's number and the input.
        InvalidOutcome
            For an output that is no number, flag, text or sequence of such.
        """

    @abstractmethod
    def fill_pair(
        self,
        pair: Pair,
        rng: np.random.Generator,
        rows: Rows,
        start: int,
        *,
        coupled: bool,
        order: Order | None = None,
    ) -> int:
        """Fill rows[0] with runs of D and rows[1] with runs of D′, as `fill` does.

        Parameters
        ----------
        rows
            Of shape (2, runs, width).
        coupled
            Let the two sides of a run share their random draws, where the mechanism can; different runs never share
            any. The sides are independent otherwise.
        order
            Which side of each run comes first; D where it is not given. Where one call makes many runs the first entry
            decides for all.
        """

    def turns(self, order: Order) -> Turns:
        """When the last paired runs were made, in that order; of no runs where nothing is kept from run to run."""
        return np.empty((3, 0), np.int64)

    def again(self) -> AbstractContextManager[None]:
        """While the very runs that were just made are asked for once more, for wider rows.

        The caller puts the generator back into its state before them, which is enough where it repeats them.
        """
        return nullcontext()

    def outcomes(self, data: Data, rng: np.random.Generator, n: int, *, start: int = 0, least: int = 1) -> Rows:
        """Run n times and cut nothing off.

        Parameters
        ----------
        data, rng, start
            As in `fill`; rows that are too narrow for an outcome are filled once more with the same runs.
        n
            The number of runs.
        least
            Entries that the rows have at least.

        Returns
        -------
        Rows
            Of shape (n, width), as wide as the longest outcome seen so far. Raises as `fill` does.
        """
        state = rng.bit_generator.state
        rows = np.empty((n, max(self.width, least)))
        longest = self.fill(data, rng, rows, start)
        while longest > rows.shape[1]:
            rng.bit_generator.state, self.width = state, longest
            rows = np.empty((n, longest))
            with self.again():
                longest = self.fill(data, rng, rows, start)
        return rows

    def pair_outcomes(
        self, pair: Pair, rng: np.random.Generator, n: int, *, coupled: bool, order: Order | None = None
    ) -> Rows:
        """Run n times on D and n times on D′ and cut nothing off; an array of shape (2, n, width).

        Parameters and errors as in `outcomes` and `fill_pair`.
        """
        longest, rows = self.pair_rows(pair, rng, (n, self.width), 0, coupled=coupled, order=order)
        self.width = max(self.width, longest)
        return rows

    def pair_rows(
        self,
        pair: Pair,
        rng: np.random.Generator,
        size: tuple[int, int],
        start: int,
        *,
        coupled: bool,
        order: Order | None = None,
    ) -> tuple[int, Rows]:
        """As `pair_outcomes`, with the length of the longest outcome; `size`: runs, and how wide rows are at first."""
        n, width = size
        state, rows = rng.bit_generator.state, np.empty((2, n, max(width, 1)))
        longest = self.fill_pair(pair, rng, rows, start, coupled=coupled, order=order)
        while longest > rows.shape[2]:
            rng.bit_generator.state, rows = state, np.empty((2, n, longest))
            with self.again():
                longest = self.fill_pair(pair, rng, rows, start, coupled=coupled, order=order)
        return longest, rows

    def label(self, value: float) -> str | None:
        """Return the text that stands behind a number, for mechanisms that return text."""
        return None

    def learned(self) -> Learned:
        """Return what its outputs showed so far, for another process to `learn`."""
        return Learned()

    def learn(self, other: Learned) -> None:
        """Take over what it returned in another process; nothing of what does not agree with its own."""
        return

    def forget(self) -> None:
        """Begin anew with what `learned` returns."""
        return

    def release(self) -> None:  # noqa: B027  # for most there is nothing to do
        """End runs that are still going on, as one that hangs after a deadline, where the mechanism can."""

    @property
    def layout(self) -> RowLayout | None:
        """Which entries rows have at which coordinates, where outcomes have keys; what is not there stands behind."""
        return None

    def begin(self, layout: RowLayout | None, *, keyed: bool, by_position: bool) -> None:  # noqa: B027  # as above
        """Lay rows out from the first run on: as a layout says, by the places of entries, or in any case without."""

    def laid_out(self, layout: RowLayout | None) -> AbstractContextManager[None]:
        """While this thread makes runs whose rows have an earlier layout; `None`: of before there was one."""
        return nullcontext()

    def settled(self, rows: Rows, layout: RowLayout | None) -> Rows:
        """Rows of shape (2, n, any width) of this earlier layout by a new one, with what stood behind it."""
        return rows

    @property
    def places(self) -> Mapping[int, str]:
        """Names of entries by coordinate, for outputs whose entries have any, such as columns."""
        return {}

    def check_length(self, length: int, start: int) -> int:
        """Return the length of an outcome; raise `InvalidOutcome` for one that grows without end."""
        if length > LONGEST_ROW:
            raise InvalidOutcome(
                f"{self.name} returned {length} values on a run from {start} on: more than {LONGEST_ROW} are taken for "
                "a list that grows without end; return less, or pass outcome= to summarise it"
            )
        return length
