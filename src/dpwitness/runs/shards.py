"""Work cut into shards, which are plain values and can be sent to other processes.

A shard is a fixed number of paired runs with a seed of its own: its draws follow from the seed, the role, the key
and its number alone, wherever and whenever it is made. So the same seed gives the same counts whatever the number of
workers.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.candidate import Tally
from dpwitness.errors import DependentRuns
from dpwitness.events import Counted, is_partition
from dpwitness.mechanisms.columns import Columns
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns, Rows, Turns
from dpwitness.neighbours import Pair
from dpwitness.runs.streams import Role, generator, order

#: Numbers of one side of a block of rows: both sides fit the cache of a core, and a call's 50 µs hardly count.
BLOCK_NUMBERS: Final = 1 << 17

#: Counts of events in paired runs, one event a row: n10, n11, n01, n00, and a table of cells.
Cells = NDArray[np.int64]
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedRuns(ABC, Generic[T_co]):
    """Paired runs of a mechanism on a pair, by the stream of a seed, a role and a key.

    They are cut into shards: parts that do not depend on each other. It is a plain value, which may be sent to where
    the runs are made, and gives the same there.

    Attributes
    ----------
    mechanism, pair
        The mechanism, and its inputs.
    seed, role, key
        The stream; the number of the shard follows behind the key.
    runs, size
        Paired runs in all, and of each shard but the last.
    width
        Entries that a row has at first.
    coupled
        Whether the sides of a run share their random draws.
    columns
        Of the rows of plain Python; fixed before the runs, so that a row follows from the outcome alone.
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
    columns: Columns | None = None

    @property
    def count(self) -> int:
        """The number of shards."""
        return -(-self.runs // self.size)

    @property
    def seconds(self) -> float:
        """Seconds of a shard, by the measured cost of a run."""
        return 2 * self.size * self.mechanism.cost.seconds_per_run

    def __call__(self, shard: int, /) -> T_co:
        """The result of one shard. Raises `DependentRuns` if other runs replaced runs that are evidence.

        A mechanism makes runs again where one of them changed its input. Where no seed repeats them, which runs count
        would depend on what they drew: up to twice α of the claims that hold could be refuted.
        """
        mechanism, first, key = self.mechanism, shard * self.size, (*self.key, shard)
        turns = order(self.seed, self.role, *key, runs=min(self.size, self.runs - first))
        runs = PairedRuns(pair=self.pair, order=turns, coupled=self.coupled, start=first, columns=self.columns)
        before = mechanism.copies
        made = self._make(runs, generator(self.seed, self.role, *key))
        if self.role.evidence and mechanism.copies and not before and not mechanism.reproducible:
            raise DependentRuns(
                f"{mechanism.name} changed its input in place, for the first time in runs that are evidence: let it "
                "change a copy, or take a generator, so that a seed repeats its runs"
            )
        return made

    @abstractmethod
    def _make(self, runs: PairedRuns, rng: np.random.Generator) -> T_co:
        """Make the runs of one shard from its generator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRows(ShardedRuns[tuple[int, Rows, Turns]]):
    """Runs whose outcomes are returned as rows."""

    @override
    def _make(self, runs: PairedRuns, rng: np.random.Generator) -> tuple[int, Rows, Turns]:
        """Return the length of the longest outcome, rows of shape (2, runs, width), as wide at least, and the turns."""
        longest, rows = self.mechanism.pair_rows(runs, rng, self.width)
        return longest, rows, self.mechanism.turns(runs.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCells(ShardedRuns[NDArray[np.int64]]):
    """Runs in which events are counted."""

    events: tuple[Counted, ...]

    @staticmethod
    def width_for(mechanism: Mechanism, events: Sequence[Counted]) -> int:
        """The width of rows at first, in entries, one number for all shards.

        Machine code writes only the entries that the events look at, and one more: its outcomes have no gaps, so that
        entry tells whether there are more. With one of 4,096 cells looked at, that saves a quarter of the time.
        """
        asked = max((event.width for event in events), default=0) + 1
        return asked if mechanism.compiled else max(mechanism.width, asked - 1, 1)

    @override
    def _make(self, runs: PairedRuns, rng: np.random.Generator) -> Cells:
        """Return n10, n11, n01, n00 of every event, as an array of shape (events, 4 or more).

        For events made of k cells, the k·k table of cells on D and on D′ follows.
        """
        n, width = len(runs), self.width
        tables = max((event.cells**2 for event in self.events if is_partition(event)), default=0)
        totals = np.zeros((len(self.events), 4 + tables), np.int64)
        blocks = -(-n * width // BLOCK_NUMBERS) if self.mechanism.threads else 1
        height = max(-(-n // blocks), min(n, 64))
        for first in range(0, n, height):
            part = runs.part(first, min(first + height, n))
            if self.mechanism.compiled:
                block = _block(len(part), width)
                self.mechanism.fill_pair(part, rng, block)
            else:  # an event may ask for the absence of entries behind the row
                longest, block = self.mechanism.pair_rows(part, rng, width)
                width = max(width, longest)
            _count(self.events, block, totals)
        return totals


#: The memory of each thread for blocks of rows.
_THREAD_MEMORY: Final = threading.local()


def _block(runs: int, width: int) -> Rows:
    """Memory for rows of shape (2, runs, width), shared by all blocks of a thread.

    Fresh pages cost more than the writes to them; and workers of Dask give freed memory back to the system at once, so
    that every block would have fresh pages.
    """
    numbers = 2 * runs * width
    memory: NDArray[np.float64] | None = getattr(_THREAD_MEMORY, "memory", None)
    if memory is None or len(memory) < numbers:
        memory = _THREAD_MEMORY.memory = np.empty(numbers)
    return memory[:numbers].reshape(2, runs, width)


def table_of(event: Counted, counted: Cells) -> tuple[int, ...]:
    """The k·k table of an event's cells in its counts by `EventCells`; empty for an event without cells."""
    return tuple(counted[4 : 4 + event.cells**2].tolist()) if is_partition(event) else ()


def tally_of(event: Counted, counted: Cells) -> Tally:
    """The tally of an event in search runs, from its counts by `EventCells`."""
    n10, n11, n01, n00 = map(int, counted[:4])
    return Tally(n10=n10, n11=n11, n01=n01, n00=n00, cells=table_of(event, counted))


def tally_of_rows(event: Counted, x: Rows, y: Rows) -> Tally:
    """The tally of an event in n known outcomes of each side, rows i of one paired run; both of shape (n, width)."""
    total = np.zeros((1, 4 + (event.cells**2 if is_partition(event) else 0)), np.int64)
    _count([event], np.stack([x, y]), total)
    return tally_of(event, total[0])


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
