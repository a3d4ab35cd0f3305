"""Plain Python on all cores: processes of this machine, through loky.

They are started anew, not forked: a fork would repeat the state of every generator of this process.
"""

import atexit
import math
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, wait
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from dpwitness.machine import Deadline, private_folder
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.runs.elsewhere import Died, Remote
from dpwitness.runs.executor import default_workers
from dpwitness.runs.worker import Answer, Parcel, execute, read

#: Seconds after which processes that have nothing to do end.
IDLE: Final = 60.0
#: Bytes from which on something is sent as a file, which each process reads once.
LARGE: Final = 1 << 14
#: Seconds that processes are waited for where nobody wants their results any more.
PATIENCE: Final = 0.3
#: What tells libraries of linear algebra how many threads to start.
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
#: Seconds between two looks of a process at whether the one that started it is there.
ORPHANED: Final = 0.5
#: Seconds that runs go on here, while one process is ready and others are not.
OTHERS: Final = 5.0


@dataclass(slots=True)
class Reading:
    """Processes that read a mechanism: those asked to, and who has done it since when."""

    asked: list[Any] = field(default_factory=list)
    workers: set[str] = field(default_factory=set)
    since: float = math.inf
    used: float = 0.0  # when it was last asked for
    failed: bool = False  # to read it, which is told where a portion of work needs it

    def done(self, workers: int) -> bool:
        """Whether so many have, or those that have not take long."""
        for answer in [answer for answer in self.asked if answer.done()]:
            self.asked.remove(answer)
            if answer.cancelled() or answer.exception() is not None:
                self.failed = True
            else:
                self.workers.add(answer.result())
                self.since = min(self.since, time.monotonic())
        return self.failed or len(self.workers) >= workers or time.monotonic() - self.since > OTHERS


class Processes:
    """As many processes of this machine as there are workers; see `portions.Place`."""

    task_seconds = 0.2
    eager = False

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._pool: Any = None
        self._reading: dict[str, Reading] = {}  # by the digest of the mechanism

    @property
    def started(self) -> bool:
        """Whether they run."""
        return self._pool is not None

    def start(self, deadline: Deadline | None) -> None:
        """Start them with the first portion."""

    def ready(self, mechanism: Parcel) -> bool:
        """Whether all of them have read it, or one has and the others take long; see `portions.Place`."""
        now, found = time.monotonic(), self._reading.get(mechanism.digest)
        if found is None or now - found.used > IDLE / 2:  # else those that had read it may have ended
            found = self._reading[mechanism.digest] = Reading()
        found.used = now
        if found.done(self.workers):
            return True
        found.asked += [self._asked(read, mechanism) for _ in range(self.workers - len(found.asked))]
        return False

    def _running(self) -> Any:
        from loky.process_executor import ProcessPoolExecutor  # type: ignore[import-untyped]  # it has no types

        with self._lock:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    self.workers,
                    timeout=IDLE,
                    initializer=_begin,
                    initargs=(os.getpid(),),
                    env=_threads_of_each(self.workers),
                )
            return self._pool

    def stop(self) -> None:
        """End them, whatever they do."""
        with self._lock:
            pool, self._pool = self._pool, None
            self._reading.clear()
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=True)

    def kill(self) -> None:
        """End them without a lock, which may be held by whoever is being interrupted."""
        for number in tuple(getattr(self._pool, "_processes", None) or ()):
            with suppress(OSError):  # it is gone
                os.kill(number, signal.SIGKILL)

    def publish(self, content: Parcel) -> Parcel:
        """Write a large parcel to a file of this process."""
        if content.content is None or len(content.content) < LARGE:
            return content
        path = private_folder() / f"{content.digest}.parcel"
        path.write_bytes(content.content)
        return replace(content, content=None, path=str(path))

    def retract(self, published: Parcel) -> None:
        """Remove its file: who wants it has read it."""
        if published.path is not None:
            (private_folder() / f"{published.digest}.parcel").unlink(missing_ok=True)

    def submit(self, mechanism: Parcel, work: Parcel, first: int, end: int) -> Any:
        """Have a portion done, by new processes where one has ended."""
        return self._asked(execute, mechanism, work, first, end)

    def _asked(self, function: Callable[..., Any], *given: Any) -> Any:
        from loky.process_executor import BrokenProcessPool, ShutdownExecutorError

        while True:
            pool = self._running()
            try:
                return pool.submit(function, *given)
            except (BrokenProcessPool, ShutdownExecutorError):
                self._left(pool)

    def _left(self, pool: Any) -> None:
        """Take no broken pool again."""
        with self._lock:
            if self._pool is pool:
                self._pool = None

    def answer(self, handle: Any, timeout: float | None) -> Answer | None:
        """Wait for an answer; see `portions.Place`."""
        from loky.process_executor import BrokenProcessPool, ShutdownExecutorError

        try:
            found: Answer = handle.result(timeout)
        except NotYet:
            return None
        except (BrokenProcessPool, ShutdownExecutorError, CancelledError) as error:
            raise Died(_how(error)) from error
        return found

    def drop(self, handles: list[Any], *, at_once: bool) -> None:
        """Begin none of these; end those that go on although nobody may wait for them."""
        left = [handle for handle in handles if not handle.cancel()]
        if at_once and left and wait(left, PATIENCE).not_done:
            self.stop()


def _how(error: BaseException) -> str:
    """How a process ended, by what loky says at length."""
    codes = re.search(r"exit codes of the workers are \{(.*)\}", str(error))
    return f"exit code {codes[1]}" if codes else "it is gone"


def _threads_of_each(workers: int) -> dict[str, str]:
    """Environment variables by which the libraries in a process start no more threads than it has cores for itself.

    Where each of several processes starts a thread for every core, a small product of matrices may take ten times as
    long. What the user has set stays.
    """
    threads = str(max(default_workers() // workers, 1))
    return {name: threads for name in THREADS if name not in os.environ}


def _begin(parent: int) -> None:
    """In each process: Ctrl-C is for the process that started it, which ends this one, or takes it along at its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()


def end_with(parent: int) -> None:
    """End this process when the one that started it is gone: killed, it has told nobody."""
    while os.getppid() == parent:
        time.sleep(ORPHANED)
    os._exit(1)


_STARTED: Final[list[Processes]] = []


@cache
def processes(workers: int) -> Processes:
    """The processes of this process, by their number; they end with it."""
    found = Processes(workers)
    _STARTED.append(found)
    atexit.register(found.stop)
    return found


def end_at_once() -> None:
    """Kill all processes that this one has started. For a handler of signals: it waits for nothing and nobody."""
    for place in _STARTED:
        place.kill()


def on_all_cores(mechanism: Mechanism, workers: int, seed: int) -> Remote:
    """An executor of a mechanism on all cores."""
    return Remote(mechanism, processes(workers), seed=seed)
