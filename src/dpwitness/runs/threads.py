"""Work done in parts, on threads of this process."""

import math
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from dpwitness.errors import MechanismTimeout
from dpwitness.machine import OF_THREAD, Deadline
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.runs.shards import ShardedRuns

T = TypeVar("T")
Boxed = tuple[T | None, BaseException | None]

#: Seconds that threads are waited for after Ctrl-C: a run of almost any mechanism ends in that time.
INTERRUPTED = 0.5
#: The same at a deadline, of a mechanism that threads cannot share: so many calls, and a little for a busy machine.
CALLS: Final = 4
BUSY: Final = 0.05


def default_workers() -> int:
    """As many as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of this process; one without a deadline is the caller's own.

    They are daemons: a mechanism that hangs in compiled code can't be stopped, but it can't keep the process alive
    either. All others are waited for: a thread that is still in a library's code when the interpreter ends can take
    the process down with it.

    Attributes
    ----------
    workers
        How many there are.
    grace
        For so many seconds behind the deadline a call that has begun is waited for: the next one must not run beside
        it. Its thread ends before its next run.
    """

    workers: int = 1
    grace: float = 0.0

    @classmethod
    def running(cls, mechanism: Mechanism, workers: int) -> "Threads":
        """So many for runs of a mechanism that threads can share; else one, and time for a call to end."""
        if mechanism.threads:
            return cls(workers)
        return cls(1, min(CALLS * mechanism.cost.seconds_per_call + BUSY, INTERRUPTED))

    def map(self, work: ShardedRuns[T], deadline: Deadline | None = None) -> Iterator[T | None]:
        """Yield work(0), …, work(count − 1) in this order; None, once, as the last, when the deadline passes first.

        What a shard raises is raised here, behind the results of all shards before it.
        """
        return self.ordered((partial(work, part) for part in range(work.count)), deadline)

    def ordered(self, tasks: Iterable[Callable[[], T]], deadline: Deadline | None = None) -> Iterator[T | None]:
        """Yield the results of tasks in their order, None as the last at the deadline, as `map` does.

        Where the deadline has patience, the last one is that of the last task that had begun when it was closed.
        """
        if self.workers <= 1 and deadline is None:
            return (task() for task in tasks)
        return _in_threads(iter(tasks), max(self.workers, 1), deadline, self.grace)


def in_time(task: Callable[[], T], seconds: float, *, what: str) -> T:
    """Return what a task does, compiling left out of its time. Raises `MechanismTimeout`, saying `what`, at its end."""
    for result in Threads().ordered([lambda: (task(),)], Deadline(time.monotonic() + seconds)):
        if result is not None:
            return result[0]
    raise MechanismTimeout(f"{what} in {seconds:g} s: give more time, as max_time, or make it faster")


class _Pool:
    """Daemon threads that put the result of each task into the box handed in with it."""

    def __init__(self, workers: int) -> None:
        self._waiting: queue.SimpleQueue[tuple[Callable[[], object], queue.SimpleQueue[Boxed[object]]] | None]
        self._waiting = queue.SimpleQueue()
        self._over, self._abandoned = threading.Event(), threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        OF_THREAD.abandoned = self._abandoned
        while (job := self._waiting.get()) is not None and not self._over.is_set():
            task, box = job
            try:
                box.put((task(), None))
            except BaseException as error:  # handed to the caller, who raises it
                box.put((None, error))

    def submit(self, task: Callable[[], T]) -> queue.SimpleQueue[Boxed[T]]:
        """Return the box into which the result will be put."""
        box: queue.SimpleQueue[Boxed[T]] = queue.SimpleQueue()
        self._waiting.put((task, box))  # type: ignore[arg-type]  # a box of T takes a task's T
        return box

    def end(self, patience: float, grace: float) -> None:
        """Begin no further task, and wait so many seconds for those that run.

        Those that still run then end before their next run, for which they have so many seconds more of `grace`.
        """
        self._over.set()
        for _ in self._threads:
            self._waiting.put(None)
        self._wait(patience)
        self._abandoned.set()  # such a task must not go on: it would run beside the next one
        self._wait(grace)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for thread in self._threads if seconds else []:
            thread.join(None if seconds == math.inf else max(end - time.monotonic(), 0.0))


def _in_threads(
    tasks: Iterator[Callable[[], T]], workers: int, deadline: Deadline | None, grace: float
) -> Iterator[T | None]:
    pool = _Pool(workers)
    patience = math.inf  # seconds that are waited for threads in the end, before they are abandoned
    boxes: deque[queue.SimpleQueue[Boxed[T]]] = deque()
    closing = deadline if deadline is not None and deadline.patience else None
    most = workers if closing else 2 * workers  # what has been handed to a thread has begun, where that decides
    try:
        while True:
            while len(boxes) < most and not (closing and closing.closed) and (task := next(tasks, None)) is not None:
                boxes.append(pool.submit(task))
            if not boxes:
                return
            try:
                result, error = boxes[0].get(timeout=None if deadline is None else deadline.left)
            except queue.Empty:
                if deadline is not None and deadline.left > 0:  # compiling has moved it
                    continue
                patience = 0.0
                break
            boxes.popleft()
            if error is not None:
                patience = math.inf if deadline is None else deadline.left
                raise error
            yield result
    except KeyboardInterrupt:
        patience, grace = 0.0, INTERRUPTED  # a mechanism that hangs must not delay Ctrl-C
        raise
    except GeneratorExit:
        # No result is needed any more. A thread that hangs is left behind at the deadline, as usual.
        patience = math.inf if deadline is None else deadline.left
        raise
    finally:
        pool.end(patience, grace)
    yield None  # once nothing runs any more
