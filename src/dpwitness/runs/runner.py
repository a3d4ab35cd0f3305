"""Seeded runs in shards: search and confirm runs are made here alone.

Results of shards come in the order of shards; memory does not grow with their number.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import add
from typing import Any, Final, TypeVar

import numpy as np

from dpwitness.arrays import Rows
from dpwitness.candidate import Tally
from dpwitness.checks import brief, class_and_text
from dpwitness.errors import InvalidParameter, MechanismRaised, MechanismTimeout
from dpwitness.events import Counted, Event, cells_of, stack, widen
from dpwitness.events.encoding import LEAST_NUMBER, is_exception, is_no_number
from dpwitness.evidence.counts import Counts, CountsTable
from dpwitness.machine import Deadline
from dpwitness.mechanisms.compiled.compare import Agreement
from dpwitness.mechanisms.mechanism import Mechanism, Turns
from dpwitness.neighbours import Pair
from dpwitness.runs.elsewhere import Dispatcher
from dpwitness.runs.executors import Threads, default_workers
from dpwitness.runs.shards import EventCells, OutcomeRows, RunCells, ShardedRuns, numbers_of
from dpwitness.runs.streams import Role

T = TypeVar("T")

#: A user's function of a stage ("search", "confirm"), its number of finished runs and of all runs, and a note.
Progress = Callable[[str, int, int, str], None]

#: The seconds after `max_time` in which a check must have its result, so that it returns within 10 s of `max_time`.
OVERRUN_SECONDS: Final = 9.0


@dataclass(slots=True)
class Tried:
    """The numbers of pairs and of events that a search has compared, for people."""

    pairs: int = 0
    events: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """A mechanism with the seed, the workers and the deadline of its runs."""

    mechanism: Mechanism
    seed: int
    workers: int = field(default_factory=default_workers)
    deadline: Deadline | None = None
    max_time: float = 60.0  # seconds, from which the deadline was made
    began: float = field(default_factory=time.monotonic)  # the time at which the preparation began
    due: float = math.inf  # the time by `time.monotonic` at which the result is due
    progress: Progress | None = None
    pool: Dispatcher | None = None  # the dispatcher to other processes; None: all runs are made in this process
    left_out: list[MechanismRaised] = field(default_factory=list)  # the error of each pair that was left out
    tried: Tried = field(default_factory=Tried)  # the pairs and events of one search
    agreement: Agreement = field(default_factory=Agreement)  # comparisons of compiled code with Python

    @property
    def seconds(self) -> float:
        """The seconds since the beginning, preparing and compiling included."""
        return time.monotonic() - self.began

    @property
    def seconds_until_due(self) -> float:
        """The seconds left for health checks of a result, at least 1: runs may have taken all of the time."""
        return max(self.due - time.monotonic(), 1.0)

    def _results(self, work: ShardedRuns[T]) -> Iterator[T | None]:
        """The results of all shards in the order of shards; the last result is None if the deadline passes first."""
        if self.pool is not None:
            return self.pool.map(work, self.deadline)
        threads = Threads(self.workers if self.mechanism.threads else 1)
        return threads.ordered((partial(work, shard) for shard in range(work.count)), self.deadline)

    @property
    def beside(self) -> int:
        """The number of samples that may be drawn at the same time, each in a task of its own."""
        if self.pool is not None:
            return self.pool.workers if self.pool.away else 1
        return self.workers if self.mechanism.threads else 1

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people on runs that stayed in this process, and on pairs that were left out."""
        stayed = () if self.pool is None else self.pool.notes
        if not self.left_out:
            return stayed
        pairs = "1 pair of inputs was" if len(self.left_out) == 1 else f"{len(self.left_out)} pairs of inputs were"
        advice = "if the claim leaves such inputs out, say so by size= or a narrower domain in records(…)"
        return (*stayed, f"{pairs} left out, since no run on either input ends well; {advice}: {self.left_out[0]}")

    def leave_out(self, error: MechanismRaised) -> None:
        """Note the error of a pair on which the mechanism raises on both sides; raise any other error."""
        if not error.on_both_inputs:
            raise error
        self.left_out.append(error)

    def restarted(self) -> "Runner":
        """A runner whose time begins now."""
        now = time.monotonic()
        return replace(
            self, began=now, deadline=Deadline(now + self.max_time), due=now + self.max_time + OVERRUN_SECONDS
        )

    def searching(self, left: float = 0.5) -> "Runner":
        """A runner for a search, whose deadline leaves the share `left` of `max_time` to the confirm runs."""
        return self.until(self.max_time * left)

    def until(self, seconds: float) -> "Runner":
        """A runner with a deadline that is `seconds` earlier."""
        return replace(self, deadline=None if self.deadline is None else self.deadline.earlier(seconds))

    def betting(self, left: float) -> "Runner":
        """A runner for an epoch before the last epoch.

        Runs begin until the share `left` of `max_time` is left; runs that have begun by then are waited for.
        """
        if self.deadline is None:
            return self
        seconds = self.max_time * left
        return replace(self, deadline=replace(self.deadline.earlier(seconds), patience=seconds))

    def alone(self) -> "Runner":
        """A runner for one of several tasks at a time: one thread without a deadline, or the shared processes."""
        return self if self.pool is not None else replace(self, workers=1, deadline=None)

    def report(self, stage: str, done: int, size: int, note: str = "") -> None:
        """Call the user's progress function, if any. Raises `InvalidParameter` if the function raises."""
        if self.progress is not None:
            notes = self.pool.notes if self.pool is not None else ()
            try:
                self.progress(stage, done, size, "; ".join(filter(None, (note, *notes))))
            except Exception as error:
                raise InvalidParameter(f"progress={brief(self.progress)} raised {class_and_text(error)}") from error

    def each(self, tasks: Iterable[Callable[[], T]], *, workers: int | None = None) -> Iterator[T | None]:
        """The results, in order, of tasks that do not run the mechanism; the last result is None at the deadline."""
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
        """The outcomes of n paired search runs, as rows of D and rows of D′ of shape (n, width).

        `role` and `key` name the streams; `size`: the runs of a shard, by default from the cost. If entries have no
        columns, they get columns, and the runs are made once more, with the same streams. Raises `MechanismTimeout` if
        the deadline passes first; with `partial_too` the finished shards are returned then, if there are any. Raises
        `CompiledDisagrees` as `Agreement.require` does.
        """
        self.agreement.require(self.mechanism, pair)
        rows, _ = self._draw(pair, n, role, key, coupled=coupled, size=size)
        if self.mechanism.grow():
            rows, _ = self._draw(pair, n, role, key, coupled=coupled, size=size)
        if rows.shape[1] < (1 if partial_too else n):
            name = self.mechanism.name
            raise MechanismTimeout(f"{name} did not finish {n} search runs in time: give more time, or fewer runs")
        return self._note_kinds(rows)

    def _note_kinds(self, rows: Rows) -> tuple[Rows, Rows]:
        """The rows of each side; columns with entries that are not numbers are noted, for the texts of events."""
        columns = self.mechanism.columns
        if columns is not None and not columns.full:  # numbers behind the columns stand for entries without a column
            rows = widen(rows[:, :, : len(columns.entries)], 1)
        x, y = rows
        for side in (x, y):
            if np.any(side < LEAST_NUMBER):  # usually all entries are numbers
                others = is_no_number(side)
                for c in np.flatnonzero(np.any(others, axis=0)).tolist():
                    entries = side[others[:, c], c]
                    exceptions = is_exception(entries)
                    kinds = self.mechanism.mixed.setdefault(c, set())
                    kinds.update(np.unique(entries[exceptions]).tolist(), () if exceptions.all() else (None,))
        return x, y

    def _draw(
        self, pair: Pair, n: int, role: Role, key: tuple[int, ...], *, coupled: bool, size: int | None
    ) -> tuple[Rows, Turns]:
        """The rows, of shape (2, runs, width), and the turns of the runs that end before the deadline."""
        mechanism, needed = self.mechanism, 1
        parts: list[Rows] = []
        turns: list[Turns] = []
        shards = self._shards(pair, role, key, n, coupled, size)
        work = OutcomeRows(**shards, width=max(mechanism.width, 1))
        mechanism.traits.entries.clear()  # new columns follow from these runs alone, not from runs cut off by the clock
        for part in self._results(work):
            if part is None:
                break
            needed = max(needed, part[0])
            parts.append(part[1])
            turns.append(part[2])
        if not parts:
            return np.empty((2, 0, 1)), np.empty((3, 0), np.int64)
        mechanism.width = max(mechanism.width, needed)
        return stack(parts)[:, :, :needed], np.concatenate(turns, axis=1)

    def _shards(
        self, pair: Pair, role: Role, key: tuple[int, ...], n: int, coupled: bool, size: int | None = None
    ) -> dict[str, Any]:
        """The arguments that all `ShardedRuns` of this runner have in common."""
        return {
            "mechanism": self.mechanism, "pair": pair, "seed": self.seed, "role": role, "key": key, "runs": n,
            "size": size or self.mechanism.shard, "coupled": coupled, "columns": self.mechanism.columns,
        }  # fmt: skip

    def tallies(
        self, pair: Pair, events: Sequence[Counted], n: int, role: Role, *key: int, partial_too: bool = False
    ) -> list[Tally]:
        """The tallies of events in the same n paired search runs; `partial_too` as in `sample`.

        Raises `MechanismTimeout` at the deadline.
        """
        mechanism, events = self.mechanism, tuple(events)
        width = EventCells.width_for(mechanism, events)
        work = EventCells(**self._shards(pair, role, key, n, True), width=width, events=events)
        total: RunCells | None = None
        for cells in self._results(work):
            if cells is None:
                if partial_too and total is not None:
                    break
                raise MechanismTimeout(
                    f"{mechanism.name} did not finish the search in time: give more time, or fewer runs"
                )
            total = cells if total is None else total + cells
        assert total is not None  # n is positive
        return [Tally(**numbers_of(event, counted)) for event, counted in zip(events, total, strict=True)]

    def epoch(self, pair: Pair, events: Sequence[Event], n: int, *key: int) -> tuple[CountsTable, Rows, Rows, Turns]:
        """Counts of each event in n fresh paired runs, the outcomes on D and on D′, and the turns of the runs.

        Pair and events are fixed here, before the first run is drawn. `key`: numbers that no earlier epoch had. The
        sides of a run share their draws, see `confirm`. There are fewer runs, or no runs, if the deadline passes first.
        A run that fails, or exceeds the mechanism's own time limit, raises: if its epoch were left out and another bet
        placed, outcomes would decide which runs count.
        """
        size = self.part_of(n)
        rows, turns = self._draw(pair, n, Role.EPOCH, key, coupled=True, size=size)
        counts = CountsTable(cells_of(events, *rows))
        noted = self._note_kinds(rows)
        self.mechanism.grow()  # from the next epoch on
        return counts, *noted, turns

    def part_of(self, n: int) -> int | None:
        """The runs of each shard of n runs of plain Python; None for runs in bulk, whose shards follow from the cost.

        There are 32 shards, so that most of them end before the deadline and count, or fewer shards of 1/16 of the
        usual size, since a shard of under a millisecond costs more than its runs.
        """
        cost = self.mechanism.cost
        return None if cost.cheap_in_bulk else max(n // 32, cost.shard // 16, 1)

    def confirm(
        self, pair: Pair, events: Sequence[Event], max_runs: int, *, coupled: bool = True
    ) -> Iterator[tuple[Counts, ...]]:
        """The counts of each event so far, after every shard of fresh paired runs, up to `max_runs` runs.

        The pair and the events are fixed here, before the first run is drawn; only `confirm` and `epoch` make `Counts`.
        With `coupled` the sides of a run share their random draws: the e-value needs independent runs, not independent
        sides. Ends at the deadline; raises `MechanismTimeout` if no shard has ended by then.
        """
        mechanism, events = self.mechanism, tuple(events)
        width = EventCells.width_for(mechanism, events)
        size = mechanism.shard * mechanism.cost.shards_larger(mechanism.shard, max_runs)
        work = EventCells(**self._shards(pair, Role.CONFIRM, (), max_runs, coupled, size), width=width, events=events)
        totals = tuple(Counts() for _ in events)
        for part in self._results(work):
            if part is None:
                if not totals[0].runs:
                    raise MechanismTimeout(
                        f"{mechanism.name} did not finish its first {min(work.size, max_runs)} runs in time: give a "
                        "larger max_time"
                    )
                return
            counted = (Counts(**numbers_of(event, cells)) for event, cells in zip(events, part, strict=True))
            totals = tuple(map(add, totals, counted))
            yield totals
