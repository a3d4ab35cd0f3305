"""Seeded, sharded execution: the only place where search and confirm runs of mechanisms are made.

A shard is a fixed number of paired runs with a seed of its own: what it draws follows from the seed, the role, the key
and its number alone. So the same seed gives the same counts whatever the number of workers, and any executor may make
the shards, wherever it likes. Results are handed out in their order; memory does not grow with their number.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Tally
from dpwitness.checks import brief
from dpwitness.errors import InvalidParameter, MechanismRaised, MechanismTimeout
from dpwitness.events import Counted, Event, cells_of, is_partition, widen
from dpwitness.events.encoding import is_no_number
from dpwitness.evidence.counts import Counts, CountsTable
from dpwitness.machine import Deadline
from dpwitness.mechanisms.layout import RowLayout
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns, Rows, Turns
from dpwitness.neighbours import Pair
from dpwitness.runs.dispatcher import Dispatcher
from dpwitness.runs.executor import Executor, Threads, default_workers
from dpwitness.runs.streams import Role, generator, order

#: Numbers that one side of a block of rows holds: both sides fit a core's cache, and a call's 50 µs are spread thin.
BLOCK: Final = 1 << 17

Cells = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedRuns:
    """Paired runs of a mechanism on a pair, by the stream of a seed, a role and a key.

    Attributes
    ----------
    mechanism, pair
        What runs, and on which inputs.
    seed, role, key
        The stream; the number of the shard follows behind the key.
    runs, size
        Paired runs in all, and of each shard but the last.
    width
        Entries that a row has at first.
    coupled
        Whether the sides of a run share their random draws.
    layout
        Of the rows, where outcomes have keys; fixed before the runs, so that a row follows from the outcome alone.
    """

    mechanism: Mechanism
    pair: Pair
    seed: int
    role: Role
    key: tuple[int, ...] = ()
    runs: int
    size: int
    width: int
    coupled: bool = True
    layout: RowLayout | None = None

    @property
    def count(self) -> int:
        """How many shards there are."""
        return -(-self.runs // self.size)

    @property
    def seconds(self) -> float:
        """What a shard takes, by the measured cost of a run."""
        return 2 * self.size * self.mechanism.cost.seconds_per_run

    def _shard(self, number: int) -> tuple[PairedRuns, np.random.Generator]:
        """The runs of a shard, and their generator."""
        first = number * self.size
        key = (*self.key, number)
        turns = order(self.seed, self.role, *key, runs=min(self.size, self.runs - first))
        runs = PairedRuns(pair=self.pair, order=turns, coupled=self.coupled, start=first, layout=self.layout)
        return runs, generator(self.seed, self.role, *key)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRows(ShardedRuns):
    """Runs whose outcomes are looked at."""

    def __call__(self, shard: int) -> tuple[int, Rows, Turns]:
        """Return the length of the longest outcome, rows of shape (2, runs, width), as wide at least, and the turns."""
        runs, rng = self._shard(shard)
        longest, rows = self.mechanism.pair_rows(runs, rng, self.width)
        return longest, rows, self.mechanism.turns(runs.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCells(ShardedRuns):
    """Runs of which events are counted."""

    events: tuple[Counted, ...]

    def __call__(self, shard: int) -> Cells:
        """Return n10, n11, n01, n00 of every event, as an array of shape (events, 4 or more).

        Behind them stands, for events that are made of k cells, the k·k table of cells on D and on D′.
        """
        runs, rng = self._shard(shard)
        n, width = len(runs), self.width
        tables = max((event.cells**2 for event in self.events if is_partition(event)), default=0)
        totals = np.zeros((len(self.events), 4 + tables), np.int64)
        blocks = -(-n * width // BLOCK) if self.mechanism.threads else 1
        height = max(-(-n // blocks), min(n, 64))
        for first in range(0, n, height):
            part = runs.part(first, min(first + height, n))
            state = rng.bit_generator.state
            block = _block(len(part), width)
            longest = self.mechanism.fill_pair(part, rng, block)
            while longest > width:  # an event may ask for the absence of what lies behind the row
                rng.bit_generator.state = state
                width = longest
                block = _block(len(part), width)
                with self.mechanism.again():
                    longest = self.mechanism.fill_pair(part, rng, block)
            _count(self.events, block, totals)
        return totals


_OF_THREAD: Final = threading.local()


def _block(runs: int, width: int) -> Rows:
    """Memory for rows of shape (2, runs, width), one for all blocks of a thread.

    Fresh pages cost more than what is written there; and workers of Dask give freed memory back to the system at once,
    so that every block would have fresh ones.
    """
    numbers = 2 * runs * width
    memory: NDArray[np.float64] | None = getattr(_OF_THREAD, "memory", None)
    if memory is None or len(memory) < numbers:
        memory = _OF_THREAD.memory = np.empty(numbers)
    return memory[:numbers].reshape(2, runs, width)


def table_of(event: Counted, counted: Cells) -> tuple[int, ...]:
    """The table of an event's cells, of what `EventCells` counted of it; empty where it has none."""
    return tuple(counted[4 : 4 + event.cells**2].tolist()) if is_partition(event) else ()


def _count(events: Sequence[Counted], block: Rows, totals: Cells) -> None:
    """Add the cells of every event in a block of shape (2, rows, width)."""
    _, rows, width = block.shape
    for event, total in zip(events, totals, strict=True):
        if is_partition(event):
            i, j = event.cell_of(block.reshape(2 * rows, width)).reshape(2, rows)
            total[4 : 4 + event.cells**2] += np.bincount(i * event.cells + j, minlength=event.cells**2)
            a, b = event.inside[i], event.inside[j]
        else:
            a, b = event.contains(block.reshape(2 * rows, width)).reshape(2, rows)
        both, hits, others = np.count_nonzero(a & b), np.count_nonzero(a), np.count_nonzero(b)
        total[:4] += (hits - both, both, others - both, rows - hits - others + both)


T = TypeVar("T")

#: Called with a stage ("search", "confirm"), what is done of it, its size, and a note for people.
Progress = Callable[[str, int, int, str], None]

#: Parts of an epoch of plain Python, which may be made beside each other.
EPOCH_PARTS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """A mechanism, the seed of its streams, where it runs, and until when."""

    mechanism: Mechanism
    seed: int
    workers: int = field(default_factory=default_workers)
    deadline: Deadline | None = None
    max_time: float = 60.0  # seconds, from which the deadline was made
    began: float = field(default_factory=time.monotonic)  # when the preparation began
    progress: Progress | None = None
    pool: Dispatcher | None = None  # other processes than this one, where runs may be made
    left_out: list[MechanismRaised] = field(default_factory=list)  # of each pair of inputs that cannot be run

    @property
    def seconds(self) -> float:
        """The time spent, preparing and compiling included."""
        return time.monotonic() - self.began

    @property
    def executor(self) -> Executor:
        """Where runs of this mechanism are made: beside each other where it allows that."""
        return self.pool or Threads(self.workers if self.mechanism.threads else 1)

    @property
    def beside(self) -> int:
        """How many samples may be drawn at the same time, each as a task of its own."""
        if self.pool is not None:
            return self.pool.workers if self.pool.away else 1
        return self.workers if self.mechanism.threads else 1

    @property
    def notes(self) -> tuple[str, ...]:
        """What to tell people about where the runs were made, and of which inputs there are none."""
        where = () if self.pool is None else self.pool.notes
        if not self.left_out:
            return where
        pairs = "1 pair of inputs was" if len(self.left_out) == 1 else f"{len(self.left_out)} pairs of inputs were"
        advice = "if the claim leaves such inputs out, say so by size= or a narrower domain in records(…)"
        return (*where, f"{pairs} left out, since no run on either input ends well; {advice}: {self.left_out[0]}")

    def leave_out(self, error: MechanismRaised) -> None:
        """Go on without a pair of inputs of which the mechanism takes neither; raise the error where it takes one."""
        if not error.on_both_inputs:
            raise error
        self.left_out.append(error)

    def restarted(self) -> "Runner":
        """The same, with all of its time to spend."""
        now = time.monotonic()
        return replace(self, began=now, deadline=Deadline(now + self.max_time))

    def searching(self) -> "Runner":
        """The same with half of its time: the other half belongs to the confirm runs."""
        return replace(self, deadline=None if self.deadline is None else self.deadline.earlier(self.max_time / 2))

    def alone(self) -> "Runner":
        """The same as one task of several: on one thread without a deadline, or in the processes that all use."""
        return self if self.pool is not None else replace(self, workers=1, deadline=None)

    def expect(self, seconds: float) -> None:
        """So many seconds of runs on one core will come at least: that decides where they are made."""
        if self.pool is not None:
            self.pool.expect(min(seconds, self.max_time))

    def report(self, stage: str, done: int, size: int, note: str = "") -> None:
        """Tell the user's progress function, if there is one."""
        if self.progress is not None:
            notes = self.pool.notes if self.pool is not None else ()
            try:
                self.progress(stage, done, size, "; ".join(filter(None, (note, *notes))))
            except Exception as error:
                raise InvalidParameter(
                    f"progress={brief(self.progress)} raised {type(error).__name__}: {error}"
                ) from error

    def each(self, tasks: Iterable[Callable[[], T]], *, workers: int | None = None) -> Iterator[T | None]:
        """Results of tasks that are no runs of the mechanism, in order; None, once, at the deadline."""
        return Threads(self.workers if workers is None else workers).ordered(tasks, self.deadline)

    def sample(
        self,
        pair: Pair,
        n: int,
        role: Role,
        *key: int,
        coupled: bool = True,
        partial_too: bool = False,
        size: int | None = None,
    ) -> tuple[Rows, Rows]:
        """Outcomes of n paired search runs as rows of one width for each side, NaN behind the end of each.

        `role` and `key` name the stream; `size`: runs of a shard, by default as the cost says. What stands behind the
        layout of outcomes with keys gets coordinates of its own: samples of such are drawn one after the other. Raises
        `MechanismTimeout` when the deadline passes first; with `partial_too` only if no shard was done by then, else
        the rows of those that were come back.
        """
        layout = self.mechanism.layout
        rows, _ = self._drawn(pair, n, role, key, coupled=coupled, partial_too=partial_too, size=size)
        return self._settled(rows, layout)

    def _settled(self, rows: Rows, layout: RowLayout | None) -> tuple[Rows, Rows]:
        """Rows as they are learned from; what they show of entries that are no numbers is for words of events."""
        x, y = self.mechanism.settled(rows, layout)
        for side in (x, y):
            self.mechanism.mixed.update(np.flatnonzero(np.any(is_no_number(side), axis=0)).tolist())
        return x, y

    def _drawn(
        self, pair: Pair, n: int, role: Role, key: tuple[int, ...], *, coupled: bool, partial_too: bool,
        size: int | None,
    ) -> tuple[Rows, Turns]:  # fmt: skip
        """As `sample`, by the layout that there is: rows of shape (2, n, width), and their turns."""
        mechanism, needed = self.mechanism, 1
        parts: list[Rows] = []
        turns: list[Turns] = []
        shards = self._shards(pair, role, key, n, coupled, size)
        work = OutcomeRows(**shards, width=max(mechanism.width, 1))
        for part in self.executor.map(work, work.count, self.deadline):
            if part is None:
                if partial_too and parts:
                    break
                raise MechanismTimeout(
                    f"{mechanism.name} did not finish {n} search runs in time: give more time, or fewer runs"
                )
            needed = max(needed, part[0])
            parts.append(part[1])
            turns.append(part[2])
        mechanism.width = max(mechanism.width, needed)
        width = max(part.shape[2] for part in parts)  # a shard with a long outcome has wider rows
        both = parts[0] if len(parts) == 1 else np.concatenate([widen(part, width) for part in parts], axis=1)
        return both[:, :, :needed], np.concatenate(turns, axis=1)

    def _shards(
        self, pair: Pair, role: Role, key: tuple[int, ...], n: int, coupled: bool, size: int | None = None
    ) -> dict[str, Any]:
        """What all work of this runner has."""
        return {
            "mechanism": self.mechanism, "pair": pair, "seed": self.seed, "role": role, "key": key, "runs": n,
            "size": size or self.mechanism.shard, "coupled": coupled, "layout": self.mechanism.layout,
        }  # fmt: skip

    def tally(self, pair: Pair, event: Counted, n: int, role: Role, *key: int) -> Tally:
        """The four cells of an event in n paired search runs. Raises `MechanismTimeout` at the deadline."""
        mechanism = self.mechanism
        width = max(mechanism.width, event.width, 1)  # once for all: the blocks of a shard hang on it
        work = EventCells(**self._shards(pair, role, key, n, True), width=width, events=(event,))
        total: Cells = np.zeros(1, np.int64)
        for cells in self.executor.map(work, work.count, self.deadline):
            if cells is None:
                raise MechanismTimeout(
                    f"{mechanism.name} did not finish the search in time: give more time, or fewer runs"
                )
            total = total + cells[0]
        n10, n11, n01, n00 = map(int, total[:4])
        return Tally(n10=n10, n11=n11, n01=n01, n00=n00, cells=table_of(event, total))

    def epoch(
        self, pair: Pair, events: Sequence[Event], n: int, *key: int, coupled: bool = True
    ) -> tuple[CountsTable, Rows, Rows, Turns]:
        """Counts of each event in n fresh paired runs, and their outcomes, for what is chosen next, and turns.

        Pair and events are fixed here, before the first run is drawn. `key`: numbers that no earlier epoch had.
        `coupled`: as in `confirm`. Fewer runs, perhaps none, where the deadline passes first.
        """
        try:
            # In so many parts that few runs, too, are made beside each other.
            size = None if self.mechanism.cost.in_numbers else max(n // EPOCH_PARTS, 1)
            layout = self.mechanism.layout
            rows, turns = self._drawn(pair, n, Role.EPOCH, key, coupled=coupled, partial_too=True, size=size)
        except MechanismTimeout:
            none = np.empty((0, 1))
            return CountsTable(cells_of(events, none, none)), none, none, np.empty((3, 0), np.int64)
        # Evidence is of rows as they were laid out before the runs; what new keys showed is for the next epoch.
        counts = CountsTable(cells_of(events, *rows))
        return counts, *self._settled(rows, layout), turns

    def confirm(
        self, pair: Pair, events: Sequence[Event], max_runs: int, *, coupled: bool = True
    ) -> Iterator[tuple[Counts, ...]]:
        """Counts of each event so far, after every shard of fresh paired runs, up to `max_runs`.

        The pair and the events are fixed here, before the first run is drawn; this and `epoch` are the only makers of
        `Counts`. With `coupled` the sides of a run share their random draws: the e-value needs runs independent of each
        other, not sides. Ends early when the deadline passes; raises `MechanismTimeout` if no shard was done by then.
        """
        mechanism, events = self.mechanism, tuple(events)
        width = max(mechanism.width, *(event.width for event in events), 1)
        work = EventCells(**self._shards(pair, Role.CONFIRM, (), max_runs, coupled), width=width, events=events)
        totals = tuple(Counts() for _ in events)
        for part in self.executor.map(work, work.count, self.deadline):
            if part is None:
                if not totals[0].runs:
                    raise MechanismTimeout(
                        f"{mechanism.name} did not finish its first {min(work.size, max_runs)} runs in time: give more "
                        "time"
                    )
                return
            totals = tuple(
                total + _counts(event, cells) for total, event, cells in zip(totals, events, part, strict=True)
            )
            yield totals


def _counts(event: Event, cells: Cells) -> Counts:
    n10, n11, n01, n00 = map(int, cells[:4])
    return Counts(n10=n10, n11=n11, n01=n01, n00=n00, cells=table_of(event, cells))


def stack(parts: Sequence[Rows]) -> Rows:
    """Rows of several widths as one array."""
    parts = [part for part in parts if len(part)]
    width = max(part.shape[1] for part in parts)
    return parts[0] if len(parts) == 1 else np.concatenate([widen(part, width) for part in parts])
