"""A function that the interpreter runs, one run a call or many runs a call, and what it returns as rows of numbers."""

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, MappingView, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief, class_and_text, exit_error, is_failure
from dpwitness.errors import (
    DPWitnessError,
    InvalidOutcome,
    InvalidParameter,
    MechanismCrashed,
    MechanismError,
    MechanismRaised,
    MixedKinds,
)
from dpwitness.events.encoding import array_rows, exception_code
from dpwitness.machine import OF_THREAD, Abandoned, end_if_abandoned
from dpwitness.mechanisms.draws import Draws, global_states_restored, repeats
from dpwitness.mechanisms.failures import always_raises, described_on_both_inputs, raised
from dpwitness.mechanisms.layout import (
    ROOT,
    FlatRow,
    FlatShape,
    KeyedRow,
    RowLayout,
    flat_names,
    keyed_row,
    settled,
)
from dpwitness.mechanisms.mechanism import (
    InputConversion,
    Mechanism,
    Order,
    OutputTraits,
    PairedRuns,
    Rows,
    Turns,
    own_seconds,
)
from dpwitness.mechanisms.outcomes import LABELS, SINGLE, SINGLE_VALUES, Row, is_sequence, row_of, uniform_rows
from dpwitness.mechanisms.shapes import FLAT, NAMES, Held, Shapes
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Data, Pair
from dpwitness.neighbours.shared_input import SharedInput, items_of, shared_input

#: What a user gives as `outcome=`: a function from an output to an outcome, or names of its attributes, as
#: "coef_,intercept_" or ("coef_", "intercept_").
Outcome = Callable[[Any], Any] | str | Sequence[str]
#: Attributes of an object of no known kind that an error message names.
NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Reads attributes of an output, such as those of a fitted model: of one name its value, of several a tuple."""

    names: tuple[str, ...]

    def __call__(self, output: object) -> object:
        """Return the values. Raises `AttributeError` for an output that lacks one."""
        return attrgetter(*self.names)(output)


def summary(given: Outcome | None) -> Callable[[object], object] | None:
    """Return the function that `outcome=` stands for. Raises `InvalidParameter` for anything but that or names."""
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


def _advice(value: object) -> str:
    """What to do about an object of a type that is no kind of outcome."""
    own = vars(value) if hasattr(value, "__dict__") and not isinstance(value, type) else ()
    released = [name for name in own if name.endswith("_") and not name.startswith("_")]
    if released:
        return f"name the attributes of it that are released, as outcome={','.join(released[:NAMED])!r}"
    if inspect.isawaitable(value):
        return "return what asyncio.run(…) gives for it"
    if isinstance(value, Iterator | MappingView):
        return "return list(…) of it"
    if hasattr(type(value), "collect"):
        return "return what its collect() gives"
    return (
        "return a number, a flag, text, bytes, a date, a dict, a set, a dataclass, an array, a table or a list of such"
    )


@dataclass(frozen=True, slots=True)
class ExceptionOutcome:
    """Stands for the output of a run that raised an exception of a class of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Written:
    """Stands for an output that the mechanism may change later: the entries of its outcome."""

    entries: list[float]


@dataclass(slots=True)
class RecentOutputs:
    """The outputs of the last runs on each input, of a mechanism whose runs no seed repeats.

    They fill wider rows where the first ones were too narrow: runs that were made again would be other runs, and long
    outcomes would be too rare.
    """

    requested: bool = False  # the same runs are asked for once more
    _last: list[tuple[Data, int, Sequence[object]]] = field(default_factory=list)

    @contextmanager
    def request(self) -> Iterator[None]:
        """While the same runs are asked for once more."""
        self.requested = True
        try:
            yield
        finally:
            self.requested = False

    def store(self, data: Data, start: int, outputs: Sequence[object]) -> None:
        """Keep the outputs of runs from number `start` on, and those of the other input before."""
        self._last = [*self._last[-1:], (data, start, outputs)]

    def find(self, data: Data, start: int, runs: int) -> Sequence[object] | None:
        """The outputs of just these runs, where they are asked for again; None where they must be made."""
        if self.requested:
            for input_, first, outputs in self._last:
                if input_ is data and first == start and len(outputs) == runs:
                    return outputs
        return None


@dataclass(frozen=True, slots=True)
class Side:
    """Runs of one input: what they draw, and the rows that they fill, by which layout."""

    data: Data
    draws: Draws
    rows: Rows
    layout: RowLayout


#: Seconds a run from which on seeding the global generators for each run (40 µs) costs less than a tenth.
SEEDING_PAYS: Final = 500e-6
#: Exceptions of which it is asked whether something is used up: each may cost runs.
ASKED: Final = 8
#: The sides of a run where D′ comes first.
BACKWARDS: Final = (1, 0)
#: Items of an input that are compared in a tenth of the time that a shard takes, and shards at most that become one.
ITEMS: Final = 50_000
MOST_SHARDS: Final = 16
#: Paired runs at least from one look at their inputs to the next: such a look takes about a twentieth of their time.
LOOKS: Final = 128
#: The runs after the first one are this part of all from one look to the next; from there on they are doubled.
GROWTH: Final = 64
#: Inputs whose shared objects are kept.
KEPT_INPUTS: Final = 4


def _put(entries: list[float], row: Rows) -> int:
    """Write the entries of an outcome as a row, cut off at its width; return how many there are."""
    length = min(len(entries), len(row))
    row[:length] = entries[:length]
    row[length:] = np.nan
    return len(entries)


def _put_all(values: Rows, rows: Rows) -> int:
    """Write rows as others, cut off at their width; return how many entries each has."""
    width = min(values.shape[1], rows.shape[1])
    rows[:, :width] = values[:, :width]
    rows[:, width:] = np.nan
    return int(values.shape[1])


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
    """

    shard = 32
    threads = False  # its own state, if it has any, may not be safe under threads
    in_process = True
    #: Whether many runs share one object as their input.
    shares = True
    #: Whether lists of numbers may have to become arrays.
    converts = True
    #: The layout of rows before any outcome was seen, where they are laid out.
    first_layout = ROOT

    def __init__(self, signature: Signature, outcome: Outcome | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature)
        #: Whether all that it draws comes from the generators of `random` and `numpy.random`, which each run seeds.
        self.draws_globally = False
        #: The first two shapes of outcomes by position that held more than single values.
        self.flat_shapes: set[FlatShape] = set()
        self.errors = errors
        self._outcome = self._summarise = summary(outcome)
        self._layout = self.first_layout
        self._shapes = Shapes(self._layout, self._attributes)
        self.copies = False
        self._recent = RecentOutputs()
        self._inputs: list[tuple[Data, InputConversion, SharedInput | None]] = []
        self._ran_well: tuple[Data] | None = None  # the input of the last run that did not raise
        self._looked_into = 0  # exceptions
        self.forget()

    @override
    def forget(self) -> None:
        self.traits = OutputTraits(keyed=isinstance(self._outcome, Attributes))

    def __getstate__(self) -> dict[str, object]:
        """Return what another process needs of it."""
        shapes = Shapes(ROOT, self._attributes)
        return {**vars(self), "_ran_well": None, "_recent": RecentOutputs(), "_inputs": [], "_shapes": shapes}

    @property
    @override
    def outcome(self) -> Callable[[object], object] | None:
        return self._outcome

    @property
    def _attributes(self) -> tuple[str, ...]:
        """Those that are outcomes, where names of such were given."""
        return self._outcome.names if isinstance(self._outcome, Attributes) else ()

    @property
    @override
    def layout(self) -> RowLayout | None:
        return self._layout if self.traits.keyed else None

    @override
    def begin(self, layout: RowLayout | None, *, keyed: bool, by_position: bool) -> None:
        if layout is not None:
            self._layout, self.width = layout, max(self.width, layout.width)
        self.by_position = by_position
        self.traits.keyed = not by_position and (self.traits.keyed or keyed or layout is not None)

    @override
    def settled(self, rows: Rows, layout: RowLayout | None) -> Rows:
        if not self.traits.keyed:
            return rows
        rows, self._layout = settled(rows, layout or self.first_layout, self._layout, self.traits.entries)
        self.width = max(self.width, self._layout.width)  # else rows would be made twice
        return rows

    @property
    @override
    def places(self) -> dict[int, str]:
        return self._layout.names if self.traits.keyed else flat_names(self.width) if self.flat_shapes else {}

    @property
    @override
    def reproducible(self) -> bool:
        """Whether a seed repeats its runs: it takes a generator, or draws from the global ones alone."""
        return super().reproducible or self.draws_globally

    def repeats_if_seeded(self, pair: Pair) -> bool:
        """Whether runs that differ are the same again where the global generators are seeded for each."""
        before, self.draws_globally = self.draws_globally, True
        runs = PairedRuns.d_first(pair, 2 if self.cost.slow else 4, coupled=False, layout=self.layout)
        try:
            return repeats(lambda rng: self.pair_outcomes(runs, rng))
        finally:
            self.draws_globally = before

    @override
    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        side = Side(data, self._draws(rng, len(rows)), rows, self._layout)
        return self._fill_sides((side,), np.zeros(len(rows), np.uint8), start)

    @override
    def fill_pair(self, runs: PairedRuns, rng: np.random.Generator, rows: Rows) -> int:
        # Coupled, each run begins from a state of its own, the same on both sides.
        shared = runs.coupled and self.reproducible
        draws = self._draws(rng, len(runs), shared=shared)
        others = draws if shared else self._draws(rng, len(runs))
        self.traits.keyed |= runs.layout is not None
        layout = runs.layout or self.first_layout
        sides = Side(runs.pair.data, draws, rows[0], layout), Side(runs.pair.neighbour, others, rows[1], layout)
        try:
            return self._fill_sides(sides, runs.order, runs.start)
        except MechanismRaised as error:
            raise described_on_both_inputs(self.fill, runs.pair, error) from error.__cause__

    @override
    def turns(self, order: Order) -> Turns:
        runs = len(order)
        numbers = self.run_count - 2 * runs + 2 * np.arange(runs)
        return np.stack([np.full(runs, os.getpid()), numbers + order, numbers + 1 - order])

    @override
    def again(self) -> AbstractContextManager[None]:
        return self._recent.request()

    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        return Draws(rng, runs, own_streams=shared, global_too=self.draws_globally)

    def _fill_sides(self, sides: Sequence[Side], order: Order, start: int) -> int:
        """Run once a row of each side; runs that no seed repeats are not made again for wider rows."""
        found = [self._recent.find(side.data, start, len(side.rows)) for side in sides]
        recent = [outputs for outputs in found if outputs is not None]
        if len(recent) == len(sides):
            return max(self._placed_singly(own, side, start) for side, own in zip(sides, recent, strict=True))
        self.run_count += sum(len(side.rows) for side in sides)
        limit = sys.getrecursionlimit()
        try:
            # What a run sets by np.seterr is not for what reads its outcomes.
            with np.errstate(), global_states_restored() if self.draws_globally else nullcontext():
                return self._run_sides(sides, order, start)
        except SystemExit as error:  # its code 0 would end a script as if all was well
            raise MechanismCrashed(str(exit_error(self.name, error))) from error
        finally:
            if sys.getrecursionlimit() < limit:  # what a run lowered may be too little for all else
                sys.setrecursionlimit(limit)

    def _run_sides(self, sides: Sequence[Side], order: Order, start: int) -> int:
        """Make run after run, each on all sides in its order; all get one object, as long as none changes it."""
        for side in sides:
            side.draws.remember()
        traits = self.traits
        before = {*traits.bare}, {*traits.single}, traits.keyed, {*traits.positional}, {*self.flat_shapes}
        with self._shared_inputs(sides) as shared:
            outputs = self._made(sides, order, start, shared)
        if outputs is None:
            # From now on each run gets a copy. These runs are made again, of the same draws: where a seed repeats them
            # they are what they would have been with copies from the first one on.
            self.copies, self._inputs = True, []
            traits.bare, traits.single, traits.keyed, traits.positional, self.flat_shapes = before
            for side in sides:
                side.draws.rewind()
            self.run_count += sum(len(side.rows) for side in sides)
            outputs = self._made(sides, order, start, None)
        assert outputs is not None  # only what many runs share is found changed
        return self._place_sides(outputs, sides, start)

    def _place_sides(self, outputs: Sequence[Sequence[object]], sides: Sequence[Side], start: int) -> int:
        """Write the outputs of each side as rows, and keep those that no seed repeats; return the longest length."""
        if not self.reproducible:
            for side, own in zip(sides, outputs, strict=True):
                self._recent.store(side.data, start, own)
        longest = max(self._place(own, side, start) for side, own in zip(sides, outputs, strict=True))
        return self.check_length(longest, start)

    @contextmanager
    def _shared_inputs(self, sides: Sequence[Side]) -> Iterator[list[SharedInput] | None]:
        """What all runs of each side get; None where each run gets a copy.

        Nothing else gets it meanwhile: a run that a deadline left behind goes on beside the next ones.
        """
        if self.copies:
            yield None
            return
        conversion = self.conversion
        taken: list[tuple[Data, InputConversion, SharedInput | None]] = []
        for side in sides:
            known = [one for one in (*taken, *self._inputs) if one[0] is side.data and one[1] == conversion]
            if not known:
                started = own_seconds()
                known = [(side.data, conversion, shared_input(conversion.source(side.data)()))]
                self.seconds_aside += own_seconds() - started
            taken.append(known[0])
        ids = set(map(id, taken))
        self._inputs = [one for one in self._inputs if id(one) not in ids]
        found = [shared for _, _, shared in taken if shared is not None]
        yield found if len(found) == len(taken) else None
        # Not where a run raised something: it may have ended anywhere.
        self._inputs = [*self._inputs, *{id(one): one for one in taken}.values()][-KEPT_INPUTS:]

    @override
    def shard_of(self, pair: Pair) -> int:
        # So many that comparing inputs of many items takes no more than a part of the time.
        if not self.shares or self.copies or self.cost.slow:
            return self.shard
        return self.shard * min(-(-max(map(items_of, pair.sides)) // ITEMS), MOST_SHARDS)

    def _made(
        self, sides: Sequence[Side], order: Order, start: int, shared: Sequence[SharedInput] | None
    ) -> list[list[object]] | None:
        """What the runs of each side return; None where a run changed what it shares with others."""
        outputs: list[list[object]] = [[] for _ in sides]
        turns = order.tolist()
        several, done = len(turns), 0
        if shared is not None:
            several = max(2 * self.shard * max(one.items for one in shared) // ITEMS, LOOKS)
        while done < len(turns):
            # What is turned round twice is as it was: the first run is looked at by itself, then twice as many a time.
            seen = several if shared is None else min(one.runs for one in shared)
            part = turns[done : done + (min(max(seen, several // GROWTH), several) if seen else 1)]
            done += len(part)
            try:
                self._make(sides, part, start, shared, outputs)
            except MechanismError:
                if shared is not None and self._changed(shared, len(part)):
                    return None
                raise
            if shared is not None and self._changed(shared, len(part)):
                return None
        return outputs

    def _changed(self, shared: Sequence[SharedInput], runs: int) -> bool:
        """Whether one of so many runs changed one of the inputs that they share."""
        started = own_seconds()
        changed = any(one.changed for one in shared)
        for one in shared:
            one.runs += runs
        self.seconds_aside += own_seconds() - started
        return changed

    def _make(
        self,
        sides: Sequence[Side],
        turns: Sequence[int],
        start: int,
        shared: Sequence[SharedInput] | None,
        outputs: list[list[object]],
    ) -> None:
        """Append what runs return, or what stands for it until all of them are done."""
        function, single = self.signature.function, SINGLE_VALUES if self._summarise is None else ()
        flat, plain, named = self.traits.keyed and self._summarise is None, SINGLE_VALUES.issuperset, NAMES.issuperset
        sources = [self.conversion.source(side.data) if shared is None else None for side in sides]
        inputs = [source and source() for source in sources] if shared is None else [one.value for one in shared]
        generators, begins = [side.draws.generator for side in sides], [side.draws.begin for side in sides]
        arguments = [*map(self.signature.arguments, inputs, generators)]
        append = [own.append for own in outputs]
        forwards, abandoned = range(len(sides)), OF_THREAD.abandoned.is_set  # `end_if_abandoned` takes twice as long
        for i, turned in enumerate(turns, len(outputs[0])):
            if abandoned():
                raise Abandoned
            for k in BACKWARDS if turned else forwards:
                if (source := sources[k]) is not None:
                    arguments[k] = self.signature.arguments(source(), generators[k])
                if (begin := begins[k]) is not None:
                    begin(i)
                first, rest = arguments[k]
                try:
                    output = function(*first, **rest)
                except BaseException as error:
                    output = self._exception(error, sides, outputs, k, start + i)
                # By themselves: a call for each would take as long as this.
                if type(output) in single:
                    append[k](output)
                elif (
                    flat
                    and type(output) is dict
                    and plain(map(type, output.values()))
                    and named(map(type, output))
                    and len(output) <= FLAT
                ):
                    append[k](output.copy())
                else:
                    append[k](self._held(output, sides[k], start + i))
        self._note_ran_well(sides, outputs)

    def _exception(
        self, error: BaseException, sides: Sequence[Side], outputs: Sequence[Sequence[object]], k: int, run: int
    ) -> ExceptionOutcome:
        """What stands for a run of side k that raised; raises `MechanismRaised` where that is no outcome.

        Raises the error itself where it is no failure of the run.
        """
        if not is_failure(error):
            raise error
        if self.errors == "outcome":
            return ExceptionOutcome(type(error).__qualname__)
        self._note_ran_well(sides, outputs)
        raise raised(self.name, error, run, sides[k].data, used_up=self._used_up(error)) from error

    def _note_ran_well(self, sides: Sequence[Side], outputs: Sequence[Sequence[object]]) -> None:
        """Keep an input on which a run did not raise."""
        for side, own in zip(sides, outputs, strict=True):
            if own and type(own[-1]) is not ExceptionOutcome:
                self._ran_well = (side.data,)

    def _held(self, output: object, side: Side, run: int) -> object:
        """What stands for an output until the runs are done: nothing that the mechanism could still change."""
        if type(output) is ExceptionOutcome:
            return output
        if self.traits.keyed:
            value = self._outcome_of(output, run)
            held = self._shapes_by(side.layout).held(value)
            return Written(self._entries(value, output, run, side.layout)) if held is None else held
        if self._summarise is None:
            if type(output) in (tuple, list) and SINGLE_VALUES.issuperset(map(type, output)):  # type: ignore[call-overload]  # a sequence
                return tuple(output)  # type: ignore[arg-type]  # as above
            if type(output) is np.ndarray and output.ndim == 1 and output.dtype.kind in "biuf":
                return output.copy()
        return Written(self._entries(self._outcome_of(output, run), output, run, side.layout))

    def _shapes_by(self, layout: RowLayout) -> Shapes:
        """The shapes of outcomes so far, by this layout."""
        if self._shapes.layout is not layout:
            self._shapes = Shapes(layout, self._attributes)
        return self._shapes

    def _place(self, outputs: Sequence[object], side: Side, start: int) -> int:
        """Write the outputs of a side as rows; return the length of the longest outcome."""
        if self.traits.keyed:
            return self._place_keyed(outputs, side, start)
        values = None
        if self._summarise is None:
            values = uniform_rows(outputs, Row(labels=self.traits.labels))
        if values is None or not self._note_kinds(type(outputs[0])):
            return self._placed_singly(outputs, side, start)
        return self.check_length(_put_all(values, side.rows), start)

    def _placed_singly(self, outputs: Sequence[object], side: Side, start: int) -> int:
        """As `_place`, one after the other."""
        return max(self._placed(output, side, i, start + i) for i, output in enumerate(outputs))

    def _place_keyed(self, outputs: Sequence[object], side: Side, start: int) -> int:
        """As `_place`, of outcomes with keys: all of one shape at once."""
        groups, alone = self._shapes_by(side.layout).grouped(outputs)
        longest = 0
        for template, runs, values in groups:
            odd = template.fill(values, side.rows, runs, self.traits)
            alone += np.array(runs)[odd].tolist()
            longest = max(longest, len(template.row))
        return max([longest, *(self._placed(outputs[i], side, i, start + i) for i in sorted(alone))])

    def _note_kinds(self, kind: type) -> bool:
        """Note that outcomes of one kind were written by position; False where others do not go with them."""
        if kind in (tuple, np.ndarray):
            self.traits.positional.add(True)
        elif not self.marked:
            self.traits.bare.add(False)
            return False not in self.traits.single
        return True

    def _used_up(self, error: BaseException) -> bool:
        """Whether it raises now on an input, too, on which it ran well before."""
        if self._ran_well is None or self._looked_into >= ASKED:
            return False
        self._looked_into += 1
        source = self.conversion.source(*self._ran_well)

        def run(number: int) -> object:
            rng = np.random.Generator(np.random.SFC64(number))
            return self.signature.call(source(), rng)

        return always_raises(run, type(error))

    def _placed(self, output: object, side: Side, i: int, run: int) -> int:
        """Write one output, or what a run raised, as row i of a side; return its length."""
        if type(output) is Written:
            return _put(output.entries, side.rows[i])
        if type(output) is ExceptionOutcome:
            return self._write_exception(output.name, side.rows[i])
        if type(output) is Held:
            return _put(self._keyed(output.outcome, run, side.layout), side.rows[i])
        return self._write(output, side.rows[i], run, side.layout)

    def _write_exception(self, name: str, row: Rows) -> int:
        code = exception_code(name)
        if len(self.traits.labels) < LABELS:
            self.traits.labels[code] = f"raises {name}"
        row[0], row[1:] = code, np.nan
        return 1

    def _write(self, output: object, row: Rows, run: int, layout: RowLayout) -> int:
        return _put(self._entries(self._outcome_of(output, run), output, run, layout), row)

    def _outcome_of(self, output: object, run: int) -> object:
        if self._summarise is None:
            return output
        try:
            return self._summarise(output)
        except BaseException as error:
            if not is_failure(error):
                raise
            raise InvalidOutcome(
                f"outcome= raised {class_and_text(error, brackets=True)} for {brief(output)}, which {self.name} "
                f"returned on run {run}: return a number, a flag, text or a list of such for every output"
            ) from error

    def _entries(self, value: Any, output: Any, run: int, layout: RowLayout) -> list[float]:
        """The entries of the outcome that an output is."""
        if is_sequence(value):
            self.check_length(len(value), run)
        try:
            keyed = self.traits.keyed
            return self._keyed(value, run, layout) if keyed else self._by_position(value, output, run, layout)
        except TypeError as error:
            if self._summarise is not None:
                raise InvalidOutcome(
                    f"outcome= returned {brief(value)} for {brief(output)}, which {self.name} returned on run {run}: "
                    f"{_advice(value)}"
                ) from error
            raise InvalidOutcome(
                f"{self.name} returned {brief(output)} on run {run}: {_advice(value)}, or pass outcome= to turn "
                "outputs into numbers"
            ) from error
        except RecursionError as error:
            raise InvalidOutcome(
                f"{self.name} returned a {type(output).__name__} on run {run} that holds itself, or is nested too "
                "deep: return numbers, flags, texts or lists of such"
            ) from error
        except (DPWitnessError, MemoryError):
            raise
        except BaseException as error:  # of the object's own code
            if not is_failure(error):
                raise
            raise InvalidOutcome(
                f"{self.name} returned a {type(output).__name__} on run {run} that cannot be read: "
                f"{class_and_text(error)}"
            ) from error

    def _by_position(self, value: Any, output: Any, run: int, layout: RowLayout) -> list[float]:
        """The entries one behind the other, for outcomes of single values; of the first with places, by these."""
        sequence = is_sequence(value)
        if self.by_position:
            flat = FlatRow(self.traits.labels, self.traits.dates)
            row_of(value, flat)
            if len(self.flat_shapes) < 2 and (flat.structured or (sequence and len(flat.entries) != len(value))):
                self.flat_shapes.add(flat.shape)
            self._note_positional(flat, sequence=sequence)
            self._note_kind(value, output, flat, run)
            return flat.entries
        row = Row(labels=self.traits.labels, dates=self.traits.dates)
        row_of(value, row)
        # A value of two entries would move those behind it.
        if row.structured or (sequence and len(row.entries) != len(value)):
            if self.traits.positional:
                raise self._mixed(output, run, "sequences of single values")
            self.traits.keyed = True
            return self._keyed(value, run, layout)
        self._note_positional(row, sequence=sequence)
        self._note_kind(value, output, row, run)
        return row.entries

    def _note_positional(self, row: Row, *, sequence: bool) -> None:
        if sequence or len(row.entries) > 1:
            self.traits.positional.add(sequence)

    def _keyed(self, value: object, run: int, layout: RowLayout) -> list[float]:
        """The entries by their places."""
        row = KeyedRow(layout, self.traits.labels, self.traits.entries, self.traits.dates)
        keyed_row(value, row, self._attributes)
        self.check_length(row.count, run)
        return row.written()

    def _note_kind(self, value: Any, output: Any, row: Row, run: int) -> None:
        """Tell a sequence of one entry from that entry alone. Raises `MixedKinds` where it was not told before."""
        sequence = is_sequence(value)
        if sequence and not (len(value) == 1 and not is_sequence(value[0])):
            return
        if self.marked:
            if sequence:
                row.put(SINGLE, None)
            return
        kind = (value[0] if sequence else value) is None
        (self.traits.single if sequence else self.traits.bare).add(kind)
        if kind in self.traits.single and kind in self.traits.bare:
            raise self._mixed(output, run, "bare values as well as sequences of one entry")

    def _mixed(self, output: object, run: int, others: str) -> MixedKinds:
        return MixedKinds(
            f"{self.name} returned {brief(output)} on run {run}, and {others}: they are told apart from the first run "
            "on"
        )


def _one_each(output: Any, n: int) -> bool:
    """Whether an output holds as many as there are runs."""
    return hasattr(output, "__len__") and getattr(output, "ndim", 1) > 0 and len(output) == n


def _by_place(output: Any) -> Any:
    """Outcomes of several runs by their places; of pandas the values of a Series or the rows, whatever their index."""
    if hasattr(output, "iloc"):
        return output.to_dict("records") if output.ndim == 2 else output.tolist()
    return output


class VectorisedMechanism(PythonMechanism):
    """A function that makes many runs a call: it takes their number and returns them along axis 0."""

    shard = 16_384
    shares = False

    @override
    def turns(self, order: Order) -> Turns:
        # The rows of a call stand beside each other.
        runs = len(order)
        first = self.run_count - 2 * runs + np.arange(runs)
        second = first + runs
        return np.stack([np.full(runs, os.getpid()), *((second, first) if order[0] else (first, second))])

    @override
    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        return super()._draws(rng, 1, shared=shared)  # a state for each run costs a third of a cheap one

    @override
    def _run_sides(self, sides: Sequence[Side], order: Order, start: int) -> int:
        """One call makes all runs of a side, which come in the order of the first run."""
        return max(self._run_all(sides[k], start) for k in (BACKWARDS if order[0] else range(len(sides))))

    def _run_all(self, side: Side, start: int) -> int:
        data, n = side.data, len(side.rows)
        if self.errors == "outcome":
            return self._run_singly(side, start)
        end_if_abandoned()
        try:
            output: Any = self.signature.call(self.conversion.source(data)(), side.draws.of_run(0), n)
        except BaseException as error:
            if not is_failure(error):
                raise
            raise raised(self.name, error, start, data) from error
        if not self.reproducible and _one_each(output, n):
            self._recent.store(data, start, output)
        masked = isinstance(output, np.ma.MaskedArray)  # below a mask lies what is not released
        if self._outcome is None and isinstance(output, np.ndarray) and output.dtype.kind in "biuf" and not masked:
            if output.ndim not in (1, 2) or len(output) != n:
                raise InvalidOutcome(
                    f"{self.name} returned an array of shape {output.shape} for {n} runs from {start} on: "
                    "return one row for each run"
                )
            values = None if self.traits.keyed and output.ndim == 2 else array_rows(output.reshape(n, -1))
            if values is not None:
                if output.ndim == 2:
                    self.traits.positional.add(True)
                return self.check_length(_put_all(values, side.rows), start)
        self._require_each(output, n, start)
        output = _by_place(output)
        outputs: list[Any] = [output[i] for i in range(n)]
        if self.traits.keyed:
            outputs = [self._held(one, side, start + i) for i, one in enumerate(outputs)]
        elif self._summarise is not None or not SINGLE_VALUES.issuperset(map(type, outputs)):
            own = [self._write(one, side.rows[i], start + i, side.layout) for i, one in enumerate(outputs)]
            return self.check_length(max(own), start)
        return self.check_length(self._place(outputs, side, start), start)

    def _run_singly(self, side: Side, start: int) -> int:
        """One run a call, where exceptions are outcomes: one of several runs would end the others."""
        data, rng, n = side.data, side.draws.of_run(0), len(side.rows)
        outputs: list[Any] = []
        for i in range(n):
            end_if_abandoned()
            own = rng if n == 1 else self._draws(rng, 1).of_run(0)
            try:
                output: Any = self.signature.call(self.conversion.source(data)(), own, 1)
            except BaseException as error:
                if not is_failure(error):
                    raise
                outputs.append(ExceptionOutcome(type(error).__qualname__))
            else:
                self._require_each(output, 1, start + i)
                outputs.append(_by_place(output)[0])
        if not self.reproducible:
            self._recent.store(data, start, outputs)
        return self.check_length(self._placed_singly(outputs, side, start), start)

    def _require_each(self, output: object, n: int, start: int) -> None:
        """Raise `InvalidOutcome` for what is not a sequence of one outcome for each run."""
        if not hasattr(output, "__getitem__") or isinstance(output, Mapping) or not _one_each(output, n):
            raise InvalidOutcome(
                f"{self.name} returned {brief(output)} for {n} runs from {start} on: return an array or a list of one "
                "outcome for each"
            )
