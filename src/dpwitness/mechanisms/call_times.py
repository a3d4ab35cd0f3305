"""How long a call takes, as the last entry of its outcome: `observe="time"`.

The time of a call depends on much besides its input. What could differ between D and D′ although the mechanism does the
same on both is made alike, or drawn by a coin that nothing else depends on:

- Every call gets an input of its own, made in one way on both sides: objects that stand at fixed addresses, and a dict
  with a history, would make one of two inputs the faster one for as long as they live.
- Before each timed call both inputs are made, in an order drawn by a coin, and it gets one of them. To make only the
  one that it gets leaves memory in a state that tells which it was: of 70 and 71 numbers the 71 were 10 ns faster in a
  function that does not look at them.
- Then comes a call that is not timed, on D or D′ as another coin says. So what calls leave behind in caches and branch
  predictors does not tell which input the timed call before was given; and no timed call is a first.
- Runs stay on one core, without the garbage collector. Which side of a paired run comes first is drawn, as ever
  (`runs.streams.order`): see `evidence.bet` for what that is good for.

The clock is read just before and just after the call: neither making inputs nor reading outcomes counts.
"""

import gc
import io
import os
import pickle
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, cast

import numpy as np
from typing_extensions import override

from dpwitness.checks import is_failure
from dpwitness.errors import InvalidParameter
from dpwitness.events.encoding import NONE
from dpwitness.machine import end_if_abandoned
from dpwitness.mechanisms.layout import MOST, ROOT, RowLayout
from dpwitness.mechanisms.mechanism import InputConversion, Mechanism, Order, OutputTraits
from dpwitness.mechanisms.outcomes import Entry
from dpwitness.mechanisms.process import OutsideFunction
from dpwitness.mechanisms.python import BACKWARDS, Outcome, PythonMechanism, Side
from dpwitness.mechanisms.signature import Signature
from dpwitness.mechanisms.sql import SqlFunction
from dpwitness.neighbours import Data, Pair
from dpwitness.neighbours.inputs import ATOMS
from dpwitness.neighbours.shared_input import CONTAINERS, SharedInput

#: Paired runs of a shard at most. On a core that others use, too, they take many times what was measured, and what is
#: made of a shard at the deadline is lost.
SHARD: Final = 512
#: The entry for the time, in seconds. Outcomes are of any length: behind the entry for the outcome as a whole it has
#: the same coordinate in all of them.
TIME: Final = Entry((("time", (NONE,)),), 0, "time in s")
TIMED: Final = ROOT.extended([TIME], MOST)


@dataclass(frozen=True, slots=True)
class Timed:
    """What stands for the output of a run, and the seconds that the call took."""

    held: object
    seconds: float


class TimedMechanism(PythonMechanism):
    """A function that runs as it was given, one run a call, each of which is timed; parameters as in `PythonMechanism`.

    `ready`: what returns the function for one call, of mechanisms that are made for each run.
    """

    shares = False
    first_layout = TIMED
    #: A clock in nanoseconds.
    clock = staticmethod(time.perf_counter_ns)

    def __init__(
        self,
        signature: Signature,
        outcome: Outcome | None = None,
        *,
        errors: str = "raise",
        ready: Callable[[], Callable[..., object]] | None = None,
    ) -> None:
        super().__init__(signature, outcome, errors=errors)
        self.copies = True
        self._ready = ready
        self.begin(None, keyed=True, by_position=False)

    @override
    def forget(self) -> None:
        self.traits = OutputTraits(keyed=True)

    @override
    def begin(self, layout: RowLayout | None, *, keyed: bool, by_position: bool) -> None:
        # Of a witness whose event does not look at the time, the layout may end before it.
        timed = (layout or self._layout).extended([TIME], MOST)
        super().begin(timed, keyed=True, by_position=False)

    @property
    @override
    def time_at(self) -> int | None:
        return self._layout.coordinate(TIME)

    @override
    def shard_of(self, pair: Pair) -> int:
        return min(self.shard, SHARD)

    @property
    @override
    def repeatable(self) -> bool:
        return False

    @property
    @override
    def notes(self) -> tuple[str, ...]:
        machine = f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
        nanoseconds = time.get_clock_info("perf_counter").resolution * 1e9
        return (
            f"the time is part of the outcome: this speaks of this machine ({machine}, a clock of {nanoseconds:.3g} "
            "ns) and its load; elsewhere calls may tell more, or less",
        )

    @override
    def _fill_sides(self, sides: Sequence[Side], order: Order, start: int) -> int:
        with on_one_core():
            return super()._fill_sides(sides, order, start)

    @override
    def _make(
        self,
        sides: Sequence[Side],
        turns: Sequence[int],
        start: int,
        shared: Sequence[SharedInput] | None,
        outputs: list[list[object]],
    ) -> None:
        signature, ready = self.signature, self._ready or (lambda: self.signature.function)
        sources = [new_each_time(self.conversion, side.data) for side in sides]
        generators, begins = [side.draws.generator for side in sides], [side.draws.begin for side in sides]
        if sides[0].draws is sides[-1].draws:
            begins = begins[:1] * len(sides)  # one object, too
        # Coins and draws of calls that are not timed: neither the order of runs nor their noise may follow from them.
        untimed_draws = np.random.Generator(np.random.SFC64())
        coins = np.random.default_rng().integers(2, size=(len(turns), len(sides), 2)).tolist()
        collecting, forwards = gc.isenabled(), range(len(sides))
        try:
            for i, (turned, drawn) in enumerate(zip(turns, coins, strict=True), len(outputs[0])):
                end_if_abandoned()
                for k, (first_made, other) in zip(BACKWARDS if turned else forwards, drawn, strict=True):
                    inputs = {j: sources[j]() for j in (forwards[::-1] if first_made else forwards)}
                    function, arguments = ready(), signature.arguments(inputs[k], generators[k])
                    another = sources[other % len(sides)]()
                    untimed, untimed_arguments, begin = ready(), signature.arguments(another, untimed_draws), begins[k]
                    gc.disable()
                    timed(self.clock, untimed, *untimed_arguments)  # what it raises timed calls raise as well
                    if begin is not None:
                        begin(i)
                    nanoseconds, output, error = timed(self.clock, function, *arguments)
                    if collecting:
                        gc.enable()
                    if error is None:
                        held = self._held(output, sides[k], start + i)
                    else:
                        held = self._exception(error, sides, outputs, k, start + i)
                    outputs[k].append(Timed(held, nanoseconds / 1e9))
                    del inputs, function, arguments, another, untimed, untimed_arguments, output, error
        finally:
            if collecting:
                gc.enable()
        self._note_ran_well(sides, outputs)

    @override
    def _note_ran_well(self, sides: Sequence[Side], outputs: Sequence[Sequence[object]]) -> None:
        super()._note_ran_well(sides, [_held(own[-1:]) for own in outputs])

    @override
    def _place(self, outputs: Sequence[object], side: Side, start: int) -> int:
        longest = super()._place(_held(outputs), side, start)
        return max(longest, _put_times(outputs, side, slice(None)))

    @override
    def _placed(self, output: object, side: Side, i: int, run: int) -> int:
        if not isinstance(output, Timed):
            return super()._placed(output, side, i, run)
        return max(super()._placed(output.held, side, i, run), _put_times([output], side, slice(i, i + 1)))


def _held(outputs: Sequence[object]) -> list[object]:
    return [cast("Timed", one).held for one in outputs]


def _put_times(outputs: Sequence[object], side: Side, runs: slice) -> int:
    """Write the times of some runs into their rows; return the number of entries up to there."""
    at = side.layout.coordinate(TIME)
    if at is None:  # of a file whose layout is full
        return 0
    if at < side.rows.shape[1]:
        side.rows[runs, at] = [cast("Timed", one).seconds for one in outputs]
    return at + 1


def timed(
    clock: Callable[[], int], function: Callable[..., object], first: Sequence[object], rest: dict[str, object]
) -> tuple[int, object, BaseException | None]:
    """Call a function; return the nanoseconds, and what it returned or raised.

    In a frame of its own: where the last output stood, it would be taken apart before the clock is read.
    """
    began = clock()
    try:
        output = function(*first, **rest)
    except BaseException as error:
        nanoseconds = clock() - began
        if not is_failure(error):
            raise
        return nanoseconds, None, error
    nanoseconds = clock() - began
    return nanoseconds, output, None


def new_each_time(conversion: InputConversion, data: Data) -> Callable[[], Data]:
    """What hands out an input, new throughout: the numbers and texts in it are other objects each time, too."""
    if isinstance(data, np.ndarray) and not data.ndim and data.dtype.kind != "O":
        return data.item
    if conversion.lists_as_arrays or not _is_plain(data):
        return conversion.source(data)
    written = io.BytesIO()
    pickler = pickle.Pickler(written, pickle.HIGHEST_PROTOCOL)
    # Without a memory: else texts that are one object in D would be one in each copy, and two where they are two in D′.
    pickler.fast = True
    pickler.dump(data)
    return partial(pickle.loads, written.getvalue())


def _is_plain(data: Data) -> bool:
    """Whether an input is made of Python's own containers, numbers, texts and dates alone."""
    if type(data) in CONTAINERS:
        return all(map(_is_plain, chain(data, data.values()) if type(data) is dict else data))
    return type(data) in ATOMS


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this thread on one core, where the system can; in the end it may use those again that it could before."""
    before: set[int] = set()
    with suppress(AttributeError, OSError):  # macOS and Windows have no such call; a container may forbid it
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {sorted(allowed)[os.getpid() % len(allowed)]})  # several processes do not share one
        before = allowed
    try:
        yield
    finally:
        if before:
            os.sched_setaffinity(0, before)


def timed_mechanism(
    function: Any, signature: Signature, outcome: Outcome | None, errors: str, ready: Callable[[], Any] | None
) -> TimedMechanism:
    """The mechanism of a function whose time is looked at. Raises `InvalidParameter` for what cannot be timed."""
    why = ""
    if signature.size is not None:
        why = f"one call makes many runs ({signature.size}=); give a function that makes one"
    elif isinstance(function, SqlFunction):
        why = "its runs are queries of a database; give a Python function that makes the query"
    elif isinstance(function, OutsideFunction):
        why = "it runs in a process of its own; give a function of this one"
    if why:
        raise InvalidParameter(f"observe='time': {signature.name} cannot be timed run by run: {why}")
    return TimedMechanism(signature, outcome, errors=errors, ready=ready)


def require_as_observed(mechanism: Mechanism, observe: str | None) -> None:
    """Raise `InvalidParameter` for a mechanism that was made ready to be observed otherwise."""
    if (mechanism.time_at is not None) != (observe == "time"):
        raise InvalidParameter(
            f"observe={observe!r}: {mechanism.name} was made ready with{'' if observe is None else 'out'} its time: "
            "give the function itself"
        )
