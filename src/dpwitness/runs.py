"""Seeded, sharded, threaded execution: the only place where mechanisms run.

A shard is a fixed number of paired runs with a seed of its own, so that the same seed gives the same counts whatever
the number of workers. Results are handed out in the order of the shards; memory does not grow with their number.
"""

import math
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpwitness.clock import Deadline
from dpwitness.counts import Counts
from dpwitness.errors import MechanismTimeout
from dpwitness.events import Event, widen
from dpwitness.mechanisms.mechanism import Mechanism, Rows
from dpwitness.neighbours import Pair

T = TypeVar("T")

#: Seconds that threads are waited for after Ctrl-C: a shard of almost any mechanism ends in that time.
INTERRUPTED = 0.5

# Each role draws from streams of its own: (role, …). The search's own keys begin with the number of a pair.
SEARCH, CONFIRM, HEALTH = 0, 1, 2
PLAYOFF, CERTAIN = 1 << 20, 1 << 21  # within the search, apart from the numbers of its pairs
#: Numbers that one side of a block of rows holds: both sides fit a core's cache, and a call's 50 µs are spread thin.
BLOCK = 1 << 17


def default_workers() -> int:
    """As many as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def generator(seed: int, *key: int) -> np.random.Generator:
    """The stream of one role and shard."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))


def sample(
    mechanism: Mechanism,
    pair: Pair,
    n: int,
    *,
    seed: int,
    key: tuple[int, ...],
    coupled: bool = True,
    workers: int = 1,
    deadline: Deadline | float | None = None,
    partial_too: bool = False,
) -> tuple[Rows, Rows]:
    """Outcomes of n paired search runs as rows of one width for each side, NaN behind the end of each.

    `key` names the stream. Raises `MechanismTimeout` when the deadline (a number is one of `time.monotonic`) passes
    first; with `partial_too` only if no shard was done by then, else the rows of those that were come back.
    """
    size = mechanism.shard
    width = max(mechanism.width, 1)
    while True:
        needed = 1
        parts: list[Rows] = []
        tasks = (
            partial(_rows, mechanism, pair, (seed, SEARCH, *key, k), min(size, n - k * size), width, k * size, coupled)
            for k in range(-(-n // size))
        )
        for part in ordered(tasks, workers if mechanism.threads else 1, deadline):
            if part is None:
                if partial_too and parts:
                    break
                raise MechanismTimeout(
                    f"{mechanism.name} did not finish {n} search runs in time: give more time, or fewer runs"
                )
            needed = max(needed, part[0])
            parts.append(part[1])
        mechanism.width = max(mechanism.width, needed)
        if needed <= width:
            both = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
            return both[0, :, :needed], both[1, :, :needed]
        width = needed  # the first guess was too narrow: once more, from the same seeds


def _rows(
    mechanism: Mechanism, pair: Pair, stream: tuple[int, ...], n: int, width: int, first: int, coupled: bool
) -> tuple[int, Rows]:
    """One shard of search runs: its longest output, and rows of the given width."""
    rows = np.empty((2, n, width))
    return mechanism.fill_pair(pair, generator(*stream), rows, first, coupled=coupled), rows


def stack(parts: Sequence[Rows]) -> Rows:
    """Rows of several widths as one array."""
    parts = [part for part in parts if len(part)]
    width = max(part.shape[1] for part in parts)
    return parts[0] if len(parts) == 1 else np.concatenate([widen(part, width) for part in parts])


def confirm(
    mechanism: Mechanism,
    pair: Pair,
    events: Sequence[Event],
    *,
    seed: int,
    max_runs: int,
    coupled: bool = True,
    workers: int = 1,
    deadline: Deadline | float | None = None,
) -> Iterator[tuple[Counts, ...]]:
    """Counts of each event so far, after every shard of fresh paired runs, up to `max_runs`.

    The pair and the events are fixed here, before the first run is drawn; this is the only maker of `Counts`. With
    `coupled` the sides of a run share their random draws: the e-value needs runs independent of each other, not sides.
    Ends early when the deadline (a number is one of `time.monotonic`) passes; raises `MechanismTimeout` if no shard was
    done by then.
    """
    size = mechanism.shard
    shards = -(-max_runs // size)
    tasks = (
        partial(_count, mechanism, pair, events, seed, k, min(size, max_runs - k * size), coupled)
        for k in range(shards)
    )
    totals = tuple(Counts() for _ in events)
    for part in ordered(tasks, workers if mechanism.threads else 1, deadline):
        if part is None:
            if not totals[0].runs:
                raise MechanismTimeout(
                    f"{mechanism.name} did not finish its first {min(size, max_runs)} runs in time: give more time"
                )
            return
        totals = tuple(total + more for total, more in zip(totals, part, strict=True))
        yield totals


def tally(
    mechanism: Mechanism,
    pair: Pair,
    event: Event,
    n: int,
    *,
    seed: int,
    key: tuple[int, ...],
    workers: int = 1,
    deadline: Deadline | float | None = None,
) -> NDArray[np.int64]:
    """The four cells (1,0), (1,1), (0,1), (0,0) of an event in n paired search runs.

    Raises `MechanismTimeout` at the deadline.
    """
    size = mechanism.shard
    tasks = (
        partial(_cells, mechanism, pair, [event], (seed, SEARCH, *key, k), min(size, n - k * size), k * size, True)
        for k in range(-(-n // size))
    )
    total = np.zeros(4, np.int64)
    for cells in ordered(tasks, workers if mechanism.threads else 1, deadline):
        if cells is None:
            raise MechanismTimeout(f"{mechanism.name} did not finish the search in time: give more time, or fewer runs")
        total += cells[0]
    return total


def _count(
    mechanism: Mechanism, pair: Pair, events: Sequence[Event], seed: int, shard: int, n: int, coupled: bool
) -> tuple[Counts, ...]:
    """Run one shard of n paired confirm runs and count every event."""
    cells = _cells(mechanism, pair, events, (seed, CONFIRM, shard), n, shard * mechanism.shard, coupled)
    return tuple(Counts(n10=int(c[0]), n11=int(c[1]), n01=int(c[2]), n00=int(c[3])) for c in cells)


def _cells(
    mechanism: Mechanism,
    pair: Pair,
    events: Sequence[Event],
    stream: tuple[int, ...],
    n: int,
    first: int,
    coupled: bool,
) -> list[NDArray[np.int64]]:
    """Run n paired runs, of which `first` is the number of the first, and count the four cells of every event."""
    rng = generator(*stream)
    width = max(mechanism.width, *(event.width for event in events), 1)
    totals = [np.zeros(4, np.int64) for _ in events]
    blocks = -(-n * width // BLOCK) if mechanism.threads else 1
    height = max(-(-n // blocks), min(n, 64))
    memory = np.empty(2 * height * width)  # one for all blocks: fresh pages cost more than what is written there
    start = 0
    while start < n:
        rows = min(n - start, height)
        state = rng.bit_generator.state
        block = memory[: 2 * rows * width].reshape(2, rows, width)
        longest = mechanism.fill_pair(pair, rng, block, first + start, coupled=coupled)
        if longest > width:  # an event may ask for the absence of what lies behind the row: these runs once more
            rng.bit_generator.state = state
            mechanism.width = max(mechanism.width, longest)
            width = longest
            if mechanism.threads and height * width > 8 * BLOCK:
                height = max(BLOCK // width, 64)
            memory = np.empty(2 * height * width)
            continue
        for event, total in zip(events, totals, strict=True):
            a, b = event.contains(block.reshape(2 * rows, width)).reshape(2, rows)
            both, hits, others = np.count_nonzero(a & b), np.count_nonzero(a), np.count_nonzero(b)
            total += (hits - both, both, others - both, rows - hits - others + both)
        start += rows
    return totals


def ordered(
    tasks: Iterable[Callable[[], T]], workers: int, deadline: Deadline | float | None = None
) -> Iterator[T | None]:
    """Run tasks on `workers` threads and yield their results in order; None, once, when the deadline passes.

    The threads are daemons: a mechanism that hangs in compiled code can't be stopped, but it can't keep the process
    alive either. All others are waited for: a thread that is still in a library's code when the interpreter ends can
    take the process down with it.
    """
    until = Deadline(deadline) if isinstance(deadline, int | float) else deadline
    patience = math.inf  # seconds that are waited for threads in the end
    if workers <= 1 and until is None:
        for task in tasks:
            yield task()
        return
    waiting: queue.SimpleQueue[tuple[Callable[[], T], queue.SimpleQueue[tuple[T | None, BaseException | None]]] | None]
    waiting = queue.SimpleQueue()
    over = threading.Event()

    def work() -> None:
        while (job := waiting.get()) is not None and not over.is_set():
            task, box = job
            try:
                box.put((task(), None))
            except BaseException as error:  # handed to the caller, who raises it
                box.put((None, error))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(max(workers, 1))]
    for thread in threads:
        thread.start()
    boxes: deque[queue.SimpleQueue[tuple[T | None, BaseException | None]]] = deque()
    try:
        remaining = iter(tasks)
        exhausted = False
        while True:
            while not exhausted and len(boxes) < 2 * len(threads):
                following = next(remaining, None)
                if following is None:
                    exhausted = True
                    break
                box: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
                boxes.append(box)
                waiting.put((following, box))
            if not boxes:
                return
            try:
                result, error = boxes[0].get(timeout=None if until is None else until.left)
            except queue.Empty:
                if until is not None and until.left > 0:  # compiling has moved it
                    continue
                patience = 0.0
                yield None
                return
            boxes.popleft()
            if error is not None:
                raise error
            yield result
    except KeyboardInterrupt:
        patience = INTERRUPTED  # a mechanism that hangs must not keep whoever interrupted it
        raise
    except GeneratorExit:
        # Nobody wants more. What hangs is left behind when its time is over, as it would have been.
        patience = math.inf if until is None else until.left
        raise
    finally:
        over.set()  # what nobody waits for any more must not go on: a slow mechanism would run beside the next one
        for _ in threads:
            waiting.put(None)
        end = time.monotonic() + patience
        for thread in threads if patience else []:
            thread.join(None if patience == math.inf else max(end - time.monotonic(), 0.0))
