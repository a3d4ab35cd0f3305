"""Where the random draws of single runs of plain Python come from, so that both sides of a run can share them.

Outputs that are kept until it is known that the rows were wide enough, of mechanisms whose runs no seed repeats.

Runs that were made again would be other runs: long outcomes, for which wider rows are made, would be too rare.

`outcome=`: what a user has an output summarised by, a function or the names of its attributes.

A function that runs as plain Python, and what it returns as rows of numbers.
"""

import ctypes
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import brief
from dpwitness.errors import InvalidOutcome, InvalidParameter, MechanismRaised, MixedKinds
from dpwitness.events.encoding import exception_code
from dpwitness.mechanisms.layout import ROOT, Entry, KeyedRow, RowLayout, flat_names, keyed_row, settled
from dpwitness.mechanisms.mechanism import Learned, Mechanism, Order, Rows, Turns, always_raises, of_both, raised
from dpwitness.mechanisms.outcomes import LABELS, SINGLE, Row, is_sequence, row_of
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Data, Pair

#: Seconds a run from which on seeding the global generators for each run (40 µs) costs less than a tenth.
WORTH: Final = 500e-6


def sfc64_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """The living state of an SFC64 generator as five words: four, of which the last counts draws, and a 32-bit rest."""
    bits = rng.bit_generator
    if not isinstance(bits, np.random.SFC64):
        raise TypeError(f"coupled runs need an SFC64 generator, not {type(bits).__name__}")
    memory = (ctypes.c_uint64 * 5).from_address(bits.ctypes.state_address)
    return np.ctypeslib.as_array(memory)


class Draws:
    """The draws of runs one by one: those of one stream in turn, or of a stream of its own for each run.

    Streams of their own begin from 256 random bits each: runs are independent of each other, and a run that is made
    twice, once on each input, draws the same both times.
    """

    def __init__(self, rng: np.random.Generator, runs: int, *, own_streams: bool, global_too: bool) -> None:
        """For so many runs. `global_too`: seed the generators of `random` and `numpy.random` for each run."""
        self._rng = rng
        self._global_too = global_too
        self._words = None
        if own_streams or global_too:
            self._words = rng.integers(0, 1 << 64, (runs, 4), np.uint64)
            self._rng = np.random.Generator(np.random.SFC64(0))
            self._state = sfc64_state(self._rng)

    def of_run(self, run: int) -> np.random.Generator:
        """The generator for a run, ready to draw from."""
        if self._words is not None:
            words = self._words[run]
            self._state[:4], self._state[4] = words, 0
            if self._global_too:
                random.seed(int(words[0]) << 64 | int(words[1]))
                np.random.seed(words.view(np.uint32))  # noqa: NPY002  # what the mechanism draws from
        return self._rng


@contextmanager
def global_generators_kept() -> Iterator[None]:
    """Put the states of the generators of `random` and `numpy.random` back in the end."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002


def repeats(outcomes: Callable[[np.random.Generator], NDArray[np.float64]]) -> bool:
    """Whether outcomes on both inputs, of shape (2, runs, width), vary, and are the same again from the same seed."""
    first, again = (outcomes(np.random.Generator(np.random.SFC64(0))) for _ in range(2))
    varies = any(not np.array_equal(side, np.broadcast_to(side[:1], side.shape), equal_nan=True) for side in first)
    return varies and first.shape == again.shape and np.array_equal(first, again, equal_nan=True)


@dataclass(frozen=True, slots=True)
class Raised:
    """Stands for the output of a run that raised an exception of a class of this name."""

    name: str


@dataclass(slots=True)
class Kept:
    """The outputs of the last runs on each input.

    `again`: the same runs are asked for once more, for wider rows.
    """

    again: bool = False
    _last: list[tuple[Data, int, Sequence[Any]]] = field(default_factory=list)

    @contextmanager
    def asked_again(self) -> Iterator[None]:
        """While the same runs are asked for once more."""
        self.again = True
        try:
            yield
        finally:
            self.again = False

    def keep(self, data: Data, start: int, outputs: Sequence[Any]) -> None:
        """Keep the outputs of runs from number `start` on, and those of the other input before."""
        self._last = [*self._last[-1:], (data, start, outputs)]

    def taken(self, data: Data, start: int, rows: NDArray[np.float64]) -> Sequence[Any] | None:
        """The outputs of just these runs, where they are asked for again; None where they must be made."""
        if self.again:
            for kept, first, outputs in self._last:
                if kept is data and first == start and len(outputs) == len(rows):
                    return outputs
        return None


#: Attributes of an object of no known kind that an error message names.
NAMED: Final = 5
#: What a user gives as `outcome=`: a function from an output to an outcome, or names of its attributes, as
#: "coef_,intercept_" or ("coef_", "intercept_").
Outcome = Callable[[Any], Any] | str | Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Reads attributes of an output, such as those of a fitted model: of one name its value, of several a tuple."""

    names: tuple[str, ...]

    def __call__(self, output: Any) -> Any:
        """Return the values. Raises `AttributeError` for an output that lacks one."""
        return attrgetter(*self.names)(output)


def summary(given: Outcome | None) -> Callable[[Any], Any] | None:
    """Return the function that `outcome=` stands for. Raises `InvalidParameter` where it is none and no names."""
    if given is None or callable(given):
        return given
    names = given.split(",") if isinstance(given, str) else [*given] if isinstance(given, Sequence) else []
    plain = [name.strip() if isinstance(name, str) else "" for name in names]
    if not plain or not all(part.isidentifier() for name in plain for part in name.split(".")):
        raise InvalidParameter(
            f"outcome={brief(given)} must be a function of what the mechanism returns, or names of its attributes, as "
            "'coef_,intercept_'"
        )
    return Attributes(names=tuple(plain))


def advice(value: Any) -> str:
    """What to do about an object of a type that is no kind of outcome."""
    kept = [name for name in vars(value) if name.endswith("_") and not name.startswith("_")] if _has_vars(value) else []
    if kept:
        return f"name the attributes of it that are released, as outcome={','.join(kept[:NAMED])!r}"
    return (
        "return a number, a flag, text, bytes, a date, a dict, a set, a dataclass, an array, a table or a list of such"
    )


def _has_vars(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, type)


def summarised(outcome: Callable[[Any], Any], output: Any, name: str, run: int) -> Any:
    """What the user's `outcome` makes of an output of a mechanism. Raises `InvalidOutcome` where that raises."""
    try:
        return outcome(output)
    except Exception as error:
        raise InvalidOutcome(
            f"outcome= raised {type(error).__name__} ({error}) for {brief(output)}, which {name} returned on run "
            f"{run}: return a number, a flag, text or a list of such for every output"
        ) from error


#: Types of most outcomes.
FLOATS: Final = (float, np.float64)
#: Exceptions of which it is asked whether something is used up: each may cost runs.
ASKED: Final = 8
#: The sides of a run where D′ comes first.
BACKWARDS: Final = (1, 0)
#: In `of`, the mechanism and the layout of the runs that this thread makes: a thread that is left behind at a deadline
#: keeps its own.
_LAID: Final = threading.local()


@dataclass(frozen=True, slots=True)
class Side:
    """Runs of one input: what they draw, and the rows that they fill."""

    data: Data
    draws: Draws
    rows: Rows


class PythonMechanism(Mechanism):
    """A function that runs as plain Python, one run a call.

    Parameters
    ----------
    signature
        The function and its parameters.
    outcome
        What outputs are summarised by.
    errors
        "outcome": a run that raises an exception has its class for an outcome; "raise": it ends everything.

    Attributes
    ----------
    draws_globally
        Whether all that it draws comes from the generators of `random` and `numpy.random`, which each run seeds.
    keyed
        Whether rows are laid out by the places of entries: from the first output on that holds more than single values.
    by_position
        Keep to rows by position whatever it returns, as files without a layout have them.
    """

    shard = 32
    threads = False  # its own state, if it has any, may not be safe under threads

    def __init__(self, signature: Signature, outcome: Outcome | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature)
        self.draws_globally = False
        self.errors = errors
        self._outcome = summary(outcome)
        self._labels: dict[float, str] = {}
        self.keyed = isinstance(self._outcome, Attributes)
        self._layout = ROOT
        self._found: dict[float, Entry] = {}  # entries behind the layout, by their codes
        self._positional = False  # whether an outcome of several entries stood by position
        self._looked_into = 0
        self._kept = Kept()
        self._ran_well: tuple[Data] | None = None  # the input of the last run that did not raise
        self._bare: set[bool] = set()  # whether bare values were None, and the same of sequences of one entry
        self._single: set[bool] = set()

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs of it."""
        return {**vars(self), "_ran_well": None, "_kept": Kept()}

    @property
    def outcome(self) -> Callable[[Any], Any] | None:
        """What turns an output into an outcome, where the user gave it."""
        return self._outcome

    def label(self, value: float) -> str | None:
        """Return the text that an outcome's entry stands for."""
        return self._labels.get(value)

    def learned(self) -> Learned:
        """Return what its outputs showed so far."""
        return Learned(
            labels=dict(self._labels), bare=frozenset(self._bare), single=frozenset(self._single),
            entries=dict(self._found), keyed=self.keyed, positional=self._positional,
        )  # fmt: skip

    def learn(self, other: Learned) -> None:
        """Take over what it returned in another process."""
        if self.learned().agrees(other):
            self._labels.update(other.labels)
            self._bare.update(other.bare)
            self._single.update(other.single)
            self._found.update(other.entries)
            self.keyed |= other.keyed
            self._positional |= other.positional

    def forget(self) -> None:
        """Begin anew with what `learned` returns."""
        self._labels, self._bare, self._single, self._found = {}, set(), set(), {}
        self.keyed, self._positional = isinstance(self._outcome, Attributes), False

    @property
    def layout(self) -> RowLayout | None:
        """As in `Mechanism`."""
        return self._layout if self.keyed else None

    def begin(self, layout: RowLayout | None, *, keyed: bool, by_position: bool) -> None:
        """As in `Mechanism`."""
        if layout is not None:
            self._layout, self.keyed, self.width = layout, True, max(self.width, layout.width)
        self.keyed |= keyed
        self.by_position = by_position
        if by_position:
            self.keyed = False

    @contextmanager
    def laid_out(self, layout: RowLayout | None) -> Iterator[None]:
        """As in `Mechanism`."""
        self.keyed |= layout is not None
        before = getattr(_LAID, "of", None)
        _LAID.of = (self, layout or ROOT)
        try:
            yield
        finally:
            _LAID.of = before

    def settled(self, rows: Rows, layout: RowLayout | None) -> Rows:
        """As in `Mechanism`."""
        if not self.keyed:
            return rows
        made, self._layout = settled(rows, layout or ROOT, self._layout, self._found)
        self.width = max(self.width, self._layout.width)  # else rows would be made twice
        return made

    @property
    def places(self) -> dict[int, str]:
        """Names of entries by coordinate, where outcomes are laid out by keys."""
        return self._layout.names if self.keyed else flat_names(self.width) if self.flat else {}

    @property
    def reproducible(self) -> bool:
        """Whether a seed repeats its runs: it takes a generator, or draws from the global ones alone."""
        return super().reproducible or self.draws_globally

    def repeats_if_seeded(self, pair: Pair) -> bool:
        """Whether runs that differ are the same again where the global generators are seeded for each."""
        before, self.draws_globally = self.draws_globally, True
        runs = 2 if self.cost.slow else 4
        try:
            return repeats(lambda rng: self.pair_outcomes(pair, rng, runs, coupled=False))
        finally:
            self.draws_globally = before

    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        """Run once a row; as in `Mechanism`."""
        return self._fill_sides((Side(data, self._draws(rng, len(rows)), rows),), start, None)

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
        """As in `Mechanism`; coupled, each run begins from a state of its own, the same on both sides."""
        shared = coupled and self.reproducible
        draws = self._draws(rng, rows.shape[1], shared=shared)
        others = draws if shared else self._draws(rng, rows.shape[1])
        sides = Side(pair.data, draws, rows[0]), Side(pair.neighbour, others, rows[1])
        try:
            return self._fill_sides(sides, start, order)
        except MechanismRaised as error:
            raise of_both(self.fill, pair, error) from error.__cause__

    def turns(self, order: Order) -> Turns:
        """As in `Mechanism`."""
        runs = len(order)
        places = self.made - 2 * runs + 2 * np.arange(runs)
        return np.stack([np.full(runs, os.getpid()), places + order, places + 1 - order])

    def again(self) -> AbstractContextManager[None]:
        """As in `Mechanism`; where a seed repeats nothing, rows are filled from the outputs that were kept."""
        return self._kept.asked_again()

    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        return Draws(rng, runs, own_streams=shared, global_too=self.draws_globally)

    def _fill_sides(self, sides: Sequence[Side], start: int, order: Order | None) -> int:
        """Run once a row of each side; runs that no seed repeats are not made again for wider rows."""
        kept = [self._kept.taken(side.data, start, side.rows) for side in sides]
        if all(outputs is not None for outputs in kept):
            return max(
                self._placed(output, side.rows[i], start + i)
                for side, outputs in zip(sides, kept, strict=True)
                for i, output in enumerate(outputs or ())
            )
        self.made += sum(len(side.rows) for side in sides)
        if not self.draws_globally:
            return self._run_sides(sides, start, order)
        with global_generators_kept():
            return self._run_sides(sides, start, order)

    def _run_sides(self, sides: Sequence[Side], start: int, order: Order | None) -> int:
        """Make run after run, each on all sides in its order."""
        given = [self.handing.of(side.data) for side in sides]
        outputs: list[list[Any]] = [[] for _ in sides]
        repeated, longest = self.reproducible, 0
        for i, turned in enumerate([0] * len(sides[0].rows) if order is None else order.tolist()):
            for k in BACKWARDS if turned else range(len(sides)):
                side = sides[k]
                output = self._run(side, given[k], i, start)
                longest = max(longest, self._placed(output, side.rows[i], start + i))
                if not repeated:
                    outputs[k].append(output)
        if not repeated:
            for side, made in zip(sides, outputs, strict=True):
                self._kept.keep(side.data, start, made)
        return self.check_length(longest, start)

    def _run(self, side: Side, given: Callable[[], Data], i: int, start: int) -> Any:
        """What one run returns, or what it raised where that is an outcome."""
        rng = side.draws.of_run(i)
        try:
            output = self.signature.call(given(), rng)
        except Exception as error:
            if self.errors != "outcome":
                raise raised(self.name, error, start + i, side.data, used_up=self._used_up(error)) from error
            return Raised(type(error).__qualname__)
        self._ran_well = (side.data,)
        return output

    def _placed(self, output: Any, row: Rows, run: int) -> int:
        """One output, or what a run raised, as a row of numbers."""
        if isinstance(output, Raised):
            return self._write_exception(output.name, row)
        return self._write(output, row, run)

    def _used_up(self, error: Exception) -> bool:
        """Whether it raises now on an input, too, on which it ran well before."""
        if self._ran_well is None or self._looked_into >= ASKED:
            return False
        self._looked_into += 1
        given = self.handing.of(*self._ran_well)

        def run(number: int) -> object:
            rng = np.random.Generator(np.random.SFC64(number))
            return self.signature.call(given(), rng)

        return always_raises(run, type(error))

    def _write_exception(self, name: str, row: Rows) -> int:
        """The row of a run that raised an exception of a class of that name."""
        code = exception_code(name)
        if len(self._labels) < LABELS:
            self._labels[code] = f"raises {name}"
        row[0], row[1:] = code, np.nan
        return 1

    def _write(self, output: Any, row: Rows, run: int) -> int:
        """One output as a row of numbers."""
        summarise = self._summary()
        value = output if summarise is None else summarised(summarise, output, self.name, run)
        # The common case by itself: a number after another one.
        if type(value) in FLOATS and False in self._bare and not self.keyed:
            number = float(value)
            if number < 0 or number > 0:
                row[0], row[1:] = number, np.nan
                return 1
        if is_sequence(value):
            self.check_length(len(value), run)
        try:
            written = self._keyed(value, output, run) if self.keyed else self._by_position(value, output, run)
        except TypeError as error:
            raise InvalidOutcome(
                f"{self.name} returned {brief(output)} on run {run}: {advice(value)}, or pass outcome= to turn outputs "
                "into numbers"
            ) from error
        except RecursionError as error:
            raise InvalidOutcome(
                f"{self.name} returned a {type(output).__name__} on run {run} that holds itself, or is nested too "
                "deep: return numbers, flags, texts or lists of such"
            ) from error
        length = min(len(written), len(row))
        row[:length] = written[:length]
        row[length:] = np.nan
        return len(written)

    def _by_position(self, value: Any, output: Any, run: int) -> list[float]:
        """The entries one behind the other, for outcomes of single values; of the first with places, by these."""
        made = Row(labels=self._labels)
        row_of(value, made)
        if self.by_position:
            self.flat |= made.structured
            self._note_kind(value, output, made, run)
            return made.entries
        sequence = is_sequence(value)
        # A value of two entries would move those behind it.
        if made.structured or (sequence and len(made.entries) != len(value)):
            if self._positional:
                raise self._mixed(output, run, "sequences of single values")
            self.keyed = True
            return self._keyed(value, output, run)
        self._positional |= sequence or len(made.entries) > 1
        self._note_kind(value, output, made, run)
        return made.entries

    def _keyed(self, value: Any, output: Any, run: int) -> list[float]:
        """The entries by their places."""
        own, layout = getattr(_LAID, "of", None) or (self, self._layout)
        made = KeyedRow(layout if own is self else self._layout, self._labels, self._found)
        keyed_row(value, made, self._outcome.names if isinstance(self._outcome, Attributes) else ())
        self.check_length(made.count, run)
        return made.written()

    def _note_kind(self, value: Any, output: Any, made: Row, run: int) -> None:
        """Tell a sequence of one entry from that entry alone. Raises `MixedKinds` where it was not told before."""
        sequence = is_sequence(value)
        if sequence and not (len(value) == 1 and not is_sequence(value[0])):
            return
        if self.marked:
            if sequence:
                made.put(SINGLE, None)
            return
        kind = (value[0] if sequence else value) is None
        (self._single if sequence else self._bare).add(kind)
        if kind in self._single and kind in self._bare:
            raise self._mixed(output, run, "bare values as well as sequences of one entry")

    def _mixed(self, output: Any, run: int, others: str) -> MixedKinds:
        return MixedKinds(
            f"{self.name} returned {brief(output)} on run {run}, and {others}: they are told apart from the first run "
            "on"
        )

    def _summary(self) -> Callable[[Any], Any] | None:
        """What outputs are still to be summarised by here."""
        return self._outcome
