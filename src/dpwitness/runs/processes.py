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
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import resource_tracker
from typing import Any, Final

from typing_extensions import override

from dpwitness.machine import private_folder
from dpwitness.runs.dispatcher import Pool, WorkerDied
from dpwitness.runs.threads import default_workers
from dpwitness.runs.worker import Answer, Parcel, preload

#: Seconds after which processes that have nothing to do end.
IDLE: Final = 60.0
#: Bytes from which on something is sent as a file, which each process reads once.
LARGE: Final = 1 << 14
#: Seconds to wait for processes whose results are no longer needed.
PATIENCE: Final = 0.3
#: What tells libraries of linear algebra how many threads to start.
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
#: Seconds between two looks of a process at whether the one that started it is there.
ORPHANED: Final = 0.5
#: Seconds that runs go on here, while one process is ready and others are not.
OTHERS: Final = 5.0


@dataclass(slots=True)
class Warmup:
    """Processes that import what a mechanism needs before they get work: those asked to, and who has done it."""

    asked: "list[Future[str]]" = field(default_factory=list)
    workers: set[str] = field(default_factory=set)
    since: float = math.inf  # when the first had done it
    used: float = 0.0  # when it was last asked for
    failed: bool = False  # which is told where a portion of work needs the mechanism

    def done(self, workers: int) -> bool:
        """Whether so many have, or those that have not take long."""
        for future in [future for future in self.asked if future.done()]:
            self.asked.remove(future)
            if future.cancelled() or future.exception() is not None:
                self.failed = True
            else:
                self.workers.add(future.result())
                self.since = min(self.since, time.monotonic())
        return self.failed or len(self.workers) >= workers or time.monotonic() - self.since > OTHERS


class Processes(Pool):
    """As many processes of this machine as there are workers."""

    task_seconds = 0.2
    eager = False
    gone = (RuntimeError, CancelledError)  # loky's own errors are such

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._executor: Any = None  # loky's, which has no types
        self._warmups: dict[str, Warmup] = {}  # by the digest of the mechanism

    @override
    def ready(self, mechanism: Parcel) -> bool:
        """Whether all of them have read it, or one has and the others take long."""
        now, warmup = time.monotonic(), self._warmups.get(mechanism.digest)
        if warmup is None or now - warmup.used > IDLE / 2:  # else those that had read it may have ended
            warmup = self._warmups[mechanism.digest] = Warmup()
        warmup.used = now
        if warmup.done(self.workers):
            return True
        warmup.asked += [self._submit(preload, mechanism) for _ in range(self.workers - len(warmup.asked))]
        return False

    @override
    def publish(self, content: Parcel) -> Parcel:
        """Write a large parcel to a file of this process."""
        if content.content is None or len(content.content) < LARGE:
            return content
        path = private_folder() / f"{content.digest}.parcel"
        path.write_bytes(content.content)
        return replace(content, content=None, path=str(path))

    @override
    def _submit(self, function: Callable[..., object], *arguments: object) -> "Future[Any]":
        """Have something done, by new processes where one has ended."""
        from loky.process_executor import (  # type: ignore[import-untyped]  # it has no types
            BrokenProcessPool,
            ProcessPoolExecutor,
            ShutdownExecutorError,
        )

        while True:
            with self._lock:
                if self._executor is None:
                    self._executor = ProcessPoolExecutor(
                        self.workers,
                        timeout=IDLE,
                        initializer=_begin,
                        initargs=(os.getpid(),),
                        env=_threads_of_each(self.workers),
                    )
                executor = self._executor
            try:
                # It may begin processes. An interrupt comes in the main thread and must not leave half of that done: at
                # exit Python would wait for ever for a thread of loky that nothing ends.
                with ThreadPoolExecutor(1, initializer=_hold_interrupts) as aside:
                    future: Future[Any] = aside.submit(executor.submit, function, *arguments).result()
                return future
            except (BrokenProcessPool, ShutdownExecutorError):
                with self._lock:
                    if self._executor is executor:
                        self._executor = None

    @override
    def answer(self, future: "Future[Answer]", timeout: float | None) -> Answer | None:
        try:
            return super().answer(future, timeout)
        except WorkerDied as error:  # what loky says of it is long
            codes = re.search(r"exit codes of the workers are \{(.*)\}", str(error.__cause__))
            raise WorkerDied(f"exit code {codes[1]}" if codes else "it is gone") from error

    @override
    def close(self, work: Parcel, futures: "Sequence[Future[Answer]]", *, at_once: bool) -> None:
        """Begin no further portion, end those that still run, and remove the work's file."""
        left = [future for future in futures if not future.cancel()]
        if at_once and left and wait(left, PATIENCE).not_done:
            self.stop()
        if work.path is not None:
            (private_folder() / f"{work.digest}.parcel").unlink(missing_ok=True)

    def stop(self) -> None:
        """End them, whatever they do."""
        with self._lock:
            executor, self._executor = self._executor, None
            self._warmups.clear()
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=True)

    def kill(self) -> None:
        """End them without a lock, which the interrupted code may hold."""
        for number in tuple(getattr(self._executor, "_processes", None) or ()):
            with suppress(OSError):  # it is gone
                os.kill(number, signal.SIGKILL)


def _threads_of_each(workers: int) -> dict[str, str]:
    """Environment variables by which the libraries in a process start no more threads than it has cores for itself.

    Where each of several processes starts a thread for every core, a small product of matrices may take ten times as
    long. What the user has set stays.
    """
    threads = str(max(default_workers() // workers, 1))
    return {name: threads for name in THREADS if name not in os.environ}


def _hold_interrupts() -> None:
    """In a thread that starts processes: Ctrl-C waits in these until `_begin`, which comes behind their imports."""
    if hasattr(signal, "pthread_sigmask"):
        resource_tracker.ensure_running()  # first: in some CPythons its start lets Ctrl-C through again
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))


def _begin(parent: int) -> None:
    """In each process: Ctrl-C is for the process that started it, which ends this one, or takes it along at its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()


def end_with(parent: int) -> None:
    """End this process when the one that started it is gone: a killed process sends no message."""
    while os.getppid() == parent:
        time.sleep(ORPHANED)
    os._exit(1)


_STARTED: Final[list[Processes]] = []


@cache
def local_processes(workers: int) -> Processes:
    """The processes of this process, by their number; they end with it."""
    pool = Processes(workers)
    _STARTED.append(pool)
    atexit.register(pool.stop)
    return pool


def end_at_once() -> None:
    """Kill all processes that this one has started. For a signal handler: it waits for nothing."""
    for pool in _STARTED:
        pool.kill()
