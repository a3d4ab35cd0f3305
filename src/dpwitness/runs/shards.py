"""Work that is cut into shards: plain values, so that any executor can send them to where they are done.

A shard is a number of paired runs with a seed of its own. `work(k)` makes shard k, wherever and whenever it is called:
what it draws follows from the seed, the role, the key and k alone.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import Counted, is_partition
from dpwitness.mechanisms.mechanism import Mechanism, Rows, Turns
from dpwitness.mechanisms.outcomes.layout import RowLayout
from dpwitness.neighbours import Pair
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

    def _of(self, shard: int) -> tuple[np.random.Generator, NDArray[np.uint8], int]:
        """The generator of a shard, which side of each of its runs comes first, and the number of its first run."""
        first = shard * self.size
        key = (*self.key, shard)
        turns = order(self.seed, self.role, *key, runs=min(self.size, self.runs - first))
        return generator(self.seed, self.role, *key), turns, first


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRows(ShardedRuns):
    """Runs whose outcomes are looked at."""

    def __call__(self, shard: int) -> tuple[int, Rows, Turns]:
        """Return the length of the longest outcome, rows of shape (2, runs, width), as wide at least, and the turns."""
        rng, turns, first = self._of(shard)
        with self.mechanism.laid_out(self.layout):
            longest, rows = self.mechanism.pair_rows(
                self.pair, rng, (len(turns), self.width), first, coupled=self.coupled, order=turns
            )
        return longest, rows, self.mechanism.turns(turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCells(ShardedRuns):
    """Runs of which events are counted."""

    events: tuple[Counted, ...]

    def __call__(self, shard: int) -> Cells:
        """Return n10, n11, n01, n00 of every event, as an array of shape (events, 4 or more).

        Behind them stands, for events that are made of k cells, the k·k table of cells on D and on D′.
        """
        with self.mechanism.laid_out(self.layout):
            return self._counted(shard)

    def _counted(self, shard: int) -> Cells:
        rng, turns, first = self._of(shard)
        n, width = len(turns), self.width
        tables = max((event.cells**2 for event in self.events if is_partition(event)), default=0)
        totals = np.zeros((len(self.events), 4 + tables), np.int64)
        blocks = -(-n * width // BLOCK) if self.mechanism.threads else 1
        height = max(-(-n // blocks), min(n, 64))
        memory = _memory(2 * height * width)
        for start in range(0, n, height):
            rows = min(n - start, height)
            state = rng.bit_generator.state
            block = memory[: 2 * rows * width].reshape(2, rows, width)
            coming = turns[start : start + rows]
            longest = self.mechanism.fill_pair(self.pair, rng, block, first + start, coupled=self.coupled, order=coming)
            while longest > width:  # an event may ask for the absence of what lies behind the row
                rng.bit_generator.state = state
                width = longest
                memory = _memory(2 * height * width)
                block = memory[: 2 * rows * width].reshape(2, rows, width)
                with self.mechanism.again():
                    longest = self.mechanism.fill_pair(
                        self.pair, rng, block, first + start, coupled=self.coupled, order=coming
                    )
            _count(self.events, block, totals)
        return totals


_OF_THREAD: Final = threading.local()


def _memory(numbers: int) -> NDArray[np.float64]:
    """Memory for so many numbers, one for all blocks of a thread: fresh pages cost more than what is written there.

    Workers of Dask give freed memory back to the system at once, so that every block would have fresh ones.
    """
    kept: NDArray[np.float64] | None = getattr(_OF_THREAD, "memory", None)
    if kept is None or len(kept) < numbers:
        kept = _OF_THREAD.memory = np.empty(numbers)
    return kept


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
