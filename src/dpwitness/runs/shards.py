"""Paired runs cut into shards, which threads and other processes can make.

A shard is a fixed number of paired runs with a stream of its own, which follows from the seed, the role, the key and
the shard's number alone. So the same seed gives the same counts for any number of workers.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Integers, Rows
from dpwitness.candidate import Tally
from dpwitness.errors import DependentRuns
from dpwitness.events import Counted, is_partition
from dpwitness.mechanisms.columns import Columns
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns, Turns
from dpwitness.neighbours import Pair
from dpwitness.runs.streams import Role, generator, order

#: The number of entries in one side of a block of rows: both sides fit in a core's cache, and a call of a block takes
#: far longer than its overhead of 50 µs.
BLOCK_NUMBERS: Final = 1 << 17

#: Counts of events in paired runs, one event a row: n10, n11, n01, n00, and the table of an event's cells, if any.
RunCells = Integers
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedRuns(ABC, Generic[T_co]):
    """Paired runs of a mechanism on a pair, cut into independent shards; a value that other processes can execute.

    Attributes
    ----------
    mechanism, pair
        The mechanism, and its inputs.
    seed, role, key
        The streams; the number of a shard is added to the key.
    runs, size
        The number of paired runs in all, and in each shard but the last.
    width
        The first width of rows, in entries.
    coupled
        Whether the sides of a run share their random draws.
    columns
        The columns of rows, as in `PairedRuns`.
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
        """The seconds of a shard, by the measured cost of a run."""
        return 2 * self.size * self.mechanism.cost.seconds_per_run

    def __call__(self, shard: int, /) -> T_co:
        """The result of one shard. Raises `DependentRuns` if other runs replaced runs that are evidence.

        Runs are made again if one of them changed its input. If no seed repeats them, their outcomes decide which runs
        count: claims that hold could be refuted with a probability of up to 2α.
        """
        mechanism, first, key = self.mechanism, shard * self.size, (*self.key, shard)
        sides = order(self.seed, self.role, *key, runs=min(self.size, self.runs - first))
        runs = PairedRuns(pair=self.pair, order=sides, coupled=self.coupled, start=first, columns=self.columns)
        copied_before = mechanism.copies
        made = self._make(runs, generator(self.seed, self.role, *key))
        if self.role.evidence and mechanism.copies and not copied_before and not mechanism.reproducible:
            raise DependentRuns(
                f"{mechanism.name} changed its input in place, for the first time in runs that are evidence: let it "
                "change a copy, or take a generator, so that a seed repeats its runs"
            )
        return made

    @abstractmethod
    def _make(self, runs: PairedRuns, rng: np.random.Generator) -> T_co:
        """Make the runs of one shard; `rng`: the shard's generator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRows(ShardedRuns[tuple[int, Rows, Turns]]):
    """Runs whose outcomes are returned as rows."""

    @override
    def _make(self, runs: PairedRuns, rng: np.random.Generator) -> tuple[int, Rows, Turns]:
        """Return the length of the longest outcome, rows of shape (2, runs, ≥ `width`), and the turns."""
        longest, rows = self.mechanism.pair_rows(runs, rng, self.width)
        return longest, rows, self.mechanism.turns(runs.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCells(ShardedRuns[Integers]):
    """Runs in which events are counted."""

    events: tuple[Counted, ...]

    @staticmethod
    def width_for(mechanism: Mechanism, events: Sequence[Counted]) -> int:
        """The first width of rows, in entries, the same for all shards.

        Machine code writes only the entries that the events use, and one more, which says whether there are more: its
        outcomes have no gaps. For an event on one of 4,096 cells this saves a quarter of the time.
        """
        asked = max((event.width for event in events), default=0) + 1
        return asked if mechanism.compiled else max(mechanism.width, asked - 1, 1)

    @override
    def _make(self, runs: PairedRuns, rng: np.random.Generator) -> RunCells:
        """Return `RunCells` of shape (events, 4 + k²): n10, n11, n01, n00, and the table of k cells on D and on D′."""
        n, width = len(runs), self.width
        tables = max((event.cells**2 for event in self.events if is_partition(event)), default=0)
        totals = np.zeros((len(self.events), 4 + tables), np.int64)
        blocks = -(-n * width // BLOCK_NUMBERS) if self.mechanism.threads else 1
        height = max(-(-n // blocks), min(n, 64))
        for first in range(0, n, height):
            part = runs.part(first, min(first + height, n))
            if isinstance(self.mechanism, CompiledMechanism):
                block = np.empty((2, len(part), width))
                self.mechanism.fill_pair(part, rng, block)
            else:  # uncut rows, since an event may be the absence of a further entry
                longest, block = self.mechanism.pair_rows(part, rng, width)
                width = max(width, longest)
            _count(self.events, block, totals)
        return totals


def numbers_of(event: Counted, counted: RunCells) -> dict[str, Any]:
    """The fields of `Tally` and `Counts` of an event, from its row of `RunCells`."""
    n10, n11, n01, n00 = counted[:4].tolist()
    table = counted[4 : 4 + event.cells**2].tolist() if is_partition(event) else ()
    return {"n10": n10, "n11": n11, "n01": n01, "n00": n00, "cells": tuple(table)}


def tally_of_rows(event: Counted, x: Rows, y: Rows) -> Tally:
    """The tally of an event in the outcomes of n paired runs: rows `x` on D and `y` on D′, of shape (n, width)."""
    total = np.zeros((1, 4 + (event.cells**2 if is_partition(event) else 0)), np.int64)
    _count([event], np.stack([x, y]), total)
    return Tally(**numbers_of(event, total[0]))


def _count(events: Sequence[Counted], block: Rows, totals: RunCells) -> None:
    """Add the counts of every event in a block of shape (2, rows, width) to `totals`."""
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
