"""Mechanisms that the interpreter runs, one run or many runs a call, with their outcomes as rows of numbers."""

import os
import sys
import time
from collections.abc import Callable, Iterator, MappingView, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Final

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Rows
from dpwitness.checks import brief, class_and_text, exit_error, is_failure
from dpwitness.errors import (
    DPWitnessError,
    InvalidNeighbours,
    InvalidOutcome,
    InvalidParameter,
    MechanismCrashed,
    MechanismError,
    MechanismRaised,
)
from dpwitness.events import of_one_width, widen
from dpwitness.events.encoding import array_rows
from dpwitness.machine import THREAD_STATE, Abandoned, end_if_abandoned
from dpwitness.mechanisms.columns import Columns
from dpwitness.mechanisms.draws import Draws, global_states_restored, repeats
from dpwitness.mechanisms.failures import describe_both_inputs, raised_error
from dpwitness.mechanisms.mechanism import LONGEST_ROW, InputConversion, Mechanism, Order, PairedRuns, Turns
from dpwitness.mechanisms.outcomes import (
    SINGLE_TYPES,
    ExceptionOutcome,
    FlatRow,
    RowWriter,
    flat_names,
    is_plain_list,
    is_sequence,
)
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Data, Pair
from dpwitness.neighbours.inputs import SharedInput, shared_input

#: The values of `outcome=`: a function from an output to an outcome, or names of attributes of the output, such as
#: "coef_,intercept_" or ("coef_", "intercept_").
OutcomeSummary = Callable[[Any], Any] | str | Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeReader:
    """A function that reads attributes of an output, such as a fitted model: one value, or a tuple of several."""

    names: tuple[str, ...]

    def __call__(self, output: object) -> object:
        """Read the attributes. Raises `AttributeError` for an output that lacks one of them."""
        return attrgetter(*self.names)(output)


def summary(given: OutcomeSummary | None) -> Callable[[object], object] | None:
    """The function given by `outcome=`; None for None. Raises `InvalidParameter` for other values."""
    if given is None or callable(given):
        return given
    names = given.split(",") if isinstance(given, str) else [*given] if isinstance(given, Sequence) else []
    plain = [name.strip() if isinstance(name, str) else "" for name in names]
    if not plain or not all(part.isidentifier() for name in plain for part in name.split(".")):
        raise InvalidParameter(
            f"outcome={brief(given)} must be a function of what the mechanism returns, or names of its attributes, as "
            "'coef_,intercept_'"
        )
    return AttributeReader(names=tuple(plain))


def _advice(value: object) -> str:
    """The advice in a message about an output of a type that has no encoding."""
    own = vars(value) if hasattr(value, "__dict__") and not isinstance(value, type) else ()
    released = [name for name in own if name.endswith("_") and not name.startswith("_")]
    if released:
        return f"name the attributes of it that are released, as outcome={','.join(released[:5])!r}"
    if isinstance(value, complex | np.complexfloating):
        return "return its real part and its imaginary part"
    if isinstance(value, Iterator | MappingView):
        return "return list(…) of it"
    return (
        "return a number, a flag, text, bytes, a date, a dict, a set, a dataclass, an array, a table or a list of them"
    )


@dataclass(frozen=True, slots=True)
class Side:
    """The runs on one input: their number, and their draws."""

    data: Data
    draws: Draws
    runs: int


#: The outputs of one side before they become rows: an array of rows; or for each run a single value, a tuple or an
#: array of single values, or the row itself as a list.
SideOutputs = Sequence[Any] | Rows
#: The number of paired runs between two comparisons of shared inputs: a comparison takes a twentieth of the time of
#: these runs. Two runs between two comparisons may change an input and change it back.
COMPARISON_RUNS: Final = 128


class PythonMechanism(Mechanism):
    """A function that runs as plain Python, one run a call.

    Parameters
    ----------
    signature
        The function and its parameters.
    outcome
        The function that summarises outputs, or names of their attributes.
    errors
        "outcome": the class of an exception is the outcome of its run; "raise": an exception becomes `MechanismRaised`.
    """

    shard = 32
    threads = False  # the function may keep a state that is not safe under threads
    in_process = True
    #: Whether many runs share one object as their input.
    shares = True
    #: Whether inputs that are lists of numbers may be passed as arrays.
    converts = True

    def __init__(self, signature: Signature, outcome: OutcomeSummary | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature)
        #: Whether all draws come from the generators of `random` and `numpy.random`, which are seeded for each run.
        self.draws_globally = False
        #: Whether an outcome in rows by position was a list that is no plain list, see `is_plain_list`.
        self.nested = False
        self.errors = errors
        self._outcome = self._summarise = summary(outcome)
        self._attributes = self._outcome.names if isinstance(self._outcome, AttributeReader) else ()
        self._columns = Columns()
        self.copies = False
        self._inputs: list[tuple[Data, InputConversion, SharedInput | None]] = []

    def __getstate__(self) -> dict[str, object]:
        # Inputs stay here: another process does not need them.
        return {**vars(self), "_inputs": []}

    @property
    @override
    def outcome(self) -> Callable[[object], object] | None:
        return self._outcome

    @property
    @override
    def columns(self) -> Columns | None:
        return None if self.by_position else self._columns

    @override
    def begin(self, columns: Columns | None, *, by_position: bool) -> None:
        if columns is not None:
            self._columns = columns
        self.by_position = by_position

    @override
    def grow(self) -> bool:
        before, traits = self._columns, self.traits
        self._columns = before.extended([*traits.entries.values()], traits.longest)
        traits.entries.clear()
        return self._columns is not before

    @property
    @override
    def places(self) -> dict[int, str]:
        if self.by_position:
            return flat_names(self.width) if self.nested else {}
        return {} if self._columns.plain else self._columns.names

    @property
    @override
    def reproducible(self) -> bool:
        """Whether a seed repeats the runs: the function takes a generator, or draws from the global ones alone."""
        return super().reproducible or self.draws_globally

    def repeats_if_seeded(self, pair: Pair) -> bool:
        """Whether outcomes vary among runs, and repeat if the global generators are seeded for each run."""
        before, self.draws_globally = self.draws_globally, True
        runs = PairedRuns.d_first(pair, 2 if self.cost.slow else 4, coupled=False, columns=self.columns)
        try:
            return repeats(lambda rng: self.pair_outcomes(runs, rng))
        finally:
            self.draws_globally = before

    @override
    def outcomes(self, data: Data, rng: np.random.Generator, n: int, *, start: int = 0, least: int = 1) -> Rows:
        side = Side(data, self._draws(rng, n), n)
        (rows,) = self._rows((side,), np.zeros(n, np.uint8), start, self._columns if self._columns.entries else None)
        return widen(rows, least)

    @override
    def pair_rows(self, runs: PairedRuns, rng: np.random.Generator, width: int) -> tuple[int, Rows]:
        # Each coupled run has a stream, which is the same on both sides.
        n, shared = len(runs), runs.coupled and self.reproducible
        draws = self._draws(rng, n, shared=shared)
        others = draws if shared else self._draws(rng, n)
        sides = Side(runs.pair.data, draws, n), Side(runs.pair.neighbour, others, n)
        try:
            rows = self._rows(sides, runs.order, runs.start, runs.columns)
        except MechanismRaised as error:
            raise describe_both_inputs(self, runs.pair, error) from error.__cause__
        return max(one.shape[1] for one in rows), np.stack(of_one_width(rows[0], rows[1], width))

    @override
    def turns(self, order: Order) -> Turns:
        runs = len(order)
        numbers = self.run_count - 2 * runs + 2 * np.arange(runs)
        return np.stack([np.full(runs, os.getpid()), numbers + order, numbers + 1 - order])

    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        return Draws(rng, runs, own_streams=shared, global_too=self.draws_globally)

    def _rows(self, sides: Sequence[Side], order: Order, start: int, columns: Columns | None) -> list[Rows]:
        """The rows of each side's outcomes; `columns` None: the columns of the first outcome."""
        row = FlatRow(self.traits) if self.by_position else RowWriter(columns, self.traits)
        self.run_count += sum(side.runs for side in sides)
        limit = sys.getrecursionlimit()
        try:
            # The settings of a run by np.seterr must not reach the code that reads its outcomes.
            with np.errstate(), global_states_restored() if self.draws_globally else nullcontext():
                outputs = self._outputs(sides, order, start, row)
                rows = [self._write_rows(own, row, start) for own in outputs]
        except SystemExit as error:  # with exit code 0 a script would end as after a success
            raise MechanismCrashed(str(exit_error(self.name, error))) from error
        finally:
            if sys.getrecursionlimit() < limit:  # a limit that a run lowered may be too low for other code
                sys.setrecursionlimit(limit)
        if not self._columns.entries:
            self._columns = row.columns
        return rows

    def _outputs(self, sides: Sequence[Side], order: Order, start: int, row: RowWriter) -> Sequence[SideOutputs]:
        """The outputs of each side; all runs on a side share one input object, as long as no run changes it."""
        for side in sides:
            side.draws.remember()
        with self._shared_inputs(sides) as shared:
            outputs = self._make_all_runs(sides, order, start, shared, row)
        if outputs is None:
            # From now on each run gets a copy. These runs are made again with the same draws: if a seed repeats them,
            # they have the outcomes of runs that got copies from the first one on.
            self.copies, self._inputs = True, []
            for side in sides:
                side.draws.rewind()
            self.run_count += sum(side.runs for side in sides)
            outputs = self._make_all_runs(sides, order, start, None, row)
        assert outputs is not None  # only shared inputs are found changed
        return outputs

    @contextmanager
    def _shared_inputs(self, sides: Sequence[Side]) -> Iterator[list[SharedInput] | None]:
        """The shared input of each side; None if each run gets a copy.

        No other runs get these inputs meanwhile: a run that a deadline abandoned may go on beside the next runs.
        """
        if self.copies:
            yield None
            return
        conversion = self.conversion
        taken: list[tuple[Data, InputConversion, SharedInput | None]] = []
        for side in sides:
            known = [one for one in (*taken, *self._inputs) if one[0] is side.data and one[1] == conversion]
            if not known:
                started = time.perf_counter()
                known = [(side.data, conversion, shared_input(conversion.source(side.data)()))]
                self.seconds_aside += time.perf_counter() - started
            taken.append(known[0])
        ids = set(map(id, taken))
        self._inputs = [one for one in self._inputs if id(one) not in ids]
        found = [shared for _, _, shared in taken if shared is not None]
        yield found if len(found) == len(taken) else None
        # Not reached after an exception: the run that raised it may have left its input half changed.
        self._inputs = [*self._inputs, *{id(one): one for one in taken}.values()][-4:]

    def _make_all_runs(
        self, sides: Sequence[Side], order: Order, start: int, shared: Sequence[SharedInput] | None, row: RowWriter
    ) -> list[list[object]] | None:
        """The outputs of the runs of each side; None if a run changed a shared input."""
        outputs: list[list[object]] = [[] for _ in sides]
        swaps = order.tolist()
        if shared is None:
            self._make_runs(sides, swaps, start, None, outputs, row)
            return outputs
        done = 0
        while done < len(swaps):
            # Two runs may change an input and change it back, as reversing does: the first run is compared alone.
            part = swaps[done : done + (COMPARISON_RUNS if all(one.compared for one in shared) else 1)]
            done += len(part)
            try:
                self._make_runs(sides, part, start, shared, outputs, row)
            except MechanismError:
                if self._changed(shared):
                    return None
                raise
            if self._changed(shared):
                return None
        return outputs

    def _changed(self, shared: Sequence[SharedInput]) -> bool:
        """Whether a run changed one of its shared inputs."""
        started = time.perf_counter()
        changed = any(one.changed for one in shared)
        for one in shared:
            one.compared = True
        self.seconds_aside += time.perf_counter() - started
        return changed

    def _make_runs(
        self,
        sides: Sequence[Side],
        swaps: Sequence[int],
        start: int,
        shared: Sequence[SharedInput] | None,
        outputs: list[list[object]],
        row: RowWriter,
    ) -> None:
        """Append the outputs of runs, or their copies, see `_copy_output`; `swaps`: 1 where D′ runs first."""
        function, single = self.signature.function, SINGLE_TYPES if self._outcome is None else ()
        sources = [self.conversion.source(side.data) if shared is None else None for side in sides]
        inputs = [source and source() for source in sources] if shared is None else [one.value for one in shared]
        generators, begins = [side.draws.generator for side in sides], [side.draws.begin for side in sides]
        arguments = [*map(self.signature.arguments, inputs, generators)]
        append = [own.append for own in outputs]
        forwards, abandoned = range(len(sides)), THREAD_STATE.abandoned.is_set  # `end_if_abandoned` takes twice as long
        for i, swapped in enumerate(swaps, len(outputs[0])):
            if abandoned():
                raise Abandoned
            for k in (1, 0) if swapped else forwards:
                if (source := sources[k]) is not None:
                    arguments[k] = self.signature.arguments(source(), generators[k])
                if (begin := begins[k]) is not None:
                    begin(i)
                first, rest = arguments[k]
                try:
                    output = function(*first, **rest)
                except BaseException as error:
                    output = self._exception(error, sides[k].data, start + i)
                # Without a call: a call for each output would take as long as this line.
                append[k](output if type(output) in single else self._copy_output(output, start + i, row))

    def _exception(self, error: BaseException, data: Data, run: int) -> ExceptionOutcome:
        """The outcome of a run that raised. Raises `MechanismRaised` if exceptions are not outcomes.

        Raises an error that is not a failure of the run, such as `KeyboardInterrupt`, as it is.
        """
        if not is_failure(error):
            raise error
        if self.errors == "outcome":
            return ExceptionOutcome(type(error).__qualname__)
        raise raised_error(self.name, error, run, data) from error

    def _copy_output(self, output: Any, run: int, row: RowWriter) -> object:
        """A copy of an output, or its entries, safe from later changes by the mechanism."""
        if type(output) is ExceptionOutcome:
            return row.write(output)
        if self._outcome is None:
            plain = type(output) in (tuple, list) and SINGLE_TYPES.issuperset(map(type, output))
            if plain or (type(output) is np.ndarray and output.ndim == 1 and output.dtype.kind in "biuf"):
                self.check_length(len(output), run)
                return tuple(output) if plain else output.copy()
        return self._entries(self._outcome_of(output, run), output, run, row)

    def _write_rows(self, outputs: SideOutputs, row: RowWriter, start: int) -> Rows:
        rows = outputs if isinstance(outputs, np.ndarray) else row.rows(outputs)
        if rows is None:
            written = [
                one if type(one) is list else self._entries(one, one, start + i, row) for i, one in enumerate(outputs)
            ]
            columns = np.array([*zip_longest(*written, fillvalue=np.nan)], np.float64)
            rows = np.ascontiguousarray(columns.reshape(-1, len(written)).T)
        return rows

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
                f"returned on run {run}: return a number, a flag, text or a list of them for every output"
            ) from error

    def _entries(self, value: Any, output: Any, run: int, row: RowWriter) -> list[float]:
        """The entries of an outcome; `output`: the mechanism's output, for messages."""
        if is_sequence(value):
            self.check_length(len(value), run)
            self.nested = self.nested or (self.by_position and not is_plain_list(value))
        try:
            values = row.write(value, self._attributes)
            if len(values) > LONGEST_ROW:
                self.check_length(row.count, run)
            return values
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
                "deep: return numbers, flags, texts or lists of them"
            ) from error
        except InvalidNeighbours as error:  # a frame that no reader takes
            raise InvalidOutcome(f"{self.name} returned a {type(output).__name__} on run {run}: {error}") from error
        except (DPWitnessError, MemoryError):
            raise
        except BaseException as error:  # raised by the object's own methods
            if not is_failure(error):
                raise
            raise InvalidOutcome(
                f"{self.name} returned a {type(output).__name__} on run {run} that cannot be read: "
                f"{class_and_text(error)}"
            ) from error


class VectorisedMechanism(PythonMechanism):
    """A function that makes many runs a call: it takes the number of runs, and returns outcomes along axis 0."""

    shard = 16_384
    shares = False

    @override
    def turns(self, order: Order) -> Turns:
        # One call makes all runs of one side, another call all runs of the other side.
        runs = len(order)
        first = self.run_count - 2 * runs + np.arange(runs)
        second = first + runs
        return np.stack([np.full(runs, os.getpid()), *((second, first) if order[0] else (first, second))])

    @override
    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        return super()._draws(rng, 1, shared=shared)  # a state for each run would cost a third of a cheap run

    @override
    def _outputs(self, sides: Sequence[Side], order: Order, start: int, row: RowWriter) -> Sequence[SideOutputs]:
        """Make all runs of a side in one call; the order of the first run decides which side comes first."""
        numbers = (1, 0) if order[0] else range(len(sides))
        made = {k: self._run_all(sides[k], start, row) for k in numbers}
        return [made[k] for k in range(len(sides))]

    def _run_all(self, side: Side, start: int, row: RowWriter) -> SideOutputs:
        data, n = side.data, side.runs
        end_if_abandoned()
        try:
            output: Any = self.signature.call(self.conversion.source(data)(), side.draws.of_run(0), n)
        except BaseException as error:
            if not is_failure(error):
                raise
            raise raised_error(self.name, error, start, data) from error
        masked = isinstance(output, np.ma.MaskedArray)  # masked entries are not released
        if self._outcome is None and isinstance(output, np.ndarray) and output.dtype.kind in "biuf" and not masked:
            if output.ndim not in (1, 2) or len(output) != n:
                raise InvalidOutcome(
                    f"{self.name} returned an array of shape {output.shape} for {n} runs from {start} on: "
                    "return one row for each run"
                )
            values = array_rows(output.reshape(n, -1))
            placed = None if values is None else row.place_entries(values, several=output.ndim == 2)
            if placed is not None:
                self.check_length(placed.shape[1], start)
                return placed
        self._require_each(output, n, start)
        return [self._copy_output(output[i], start + i, row) for i in range(n)]

    def _require_each(self, output: Any, n: int, start: int) -> None:
        """Raise `InvalidOutcome` unless the output is an array or a list of one outcome for each run."""
        sequence = isinstance(output, list | tuple) or (isinstance(output, np.ndarray) and output.ndim > 0)
        if not sequence or len(output) != n:
            raise InvalidOutcome(
                f"{self.name} returned {brief(output)} for {n} runs from {start} on: return an array or a list of one "
                "outcome for each"
            )
