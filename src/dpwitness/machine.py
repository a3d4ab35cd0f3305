"""The folder for machine code, the time of compilation, deadlines, and abandoned runs."""

import atexit
import ctypes
import os
import queue
import shutil
import stat
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from platformdirs import user_cache_path

from dpwitness.errors import RunsEnded

T = TypeVar("T")


def cache_folder() -> Path:
    """The folder of driver modules and machine code; it is made if it does not exist yet.

    Its files are executed, so a folder is used only if it is the user's own and nobody else may write to it or replace
    it. Of $DPWITNESS_CACHE_DIR, the user's cache folder and a folder of this process alone, the first usable folder is
    returned; with the last folder every process compiles anew. Warns if $DPWITNESS_CACHE_DIR is set but not used, and
    if only the last folder is left.
    """
    given = os.environ.get("DPWITNESS_CACHE_DIR")
    if given:
        refused = _refusal(Path(given))
        if refused is None:
            return Path(given)
        warn_once(f"DPWITNESS_CACHE_DIR={given} is not used: {refused}")
    usual = user_cache_path("dpwitness", appauthor=False)
    refused = _refusal(usual)
    if refused is None:
        return usual
    warn_once(
        f"every process compiles anew, since {usual} is not used for machine code ({refused}): set DPWITNESS_CACHE_DIR "
        "to a folder of your own"
    )
    return private_folder()


def _refusal(folder: Path) -> str | None:
    """The reason not to use a folder, which is made if it does not exist; None if it can be used."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_user_owned(folder):
            return f"others can write to it, or to a folder above it; use a folder of your own (chmod go-w {folder})"
        return None if os.access(folder, os.W_OK) else "it is read-only; use a folder that you can write to"
    except OSError as error:
        return f"it cannot be made ({error.strerror or error}); use a folder that you can write to"


@cache
def warn_once(message: str) -> None:
    """Give a warning, at most once a process."""
    warnings.warn(message, UserWarning, stacklevel=4)


@contextmanager
def numba_writes_to(folder: Path) -> Iterator[None]:
    """Let numba keep compiled code in a folder, within the context."""
    import numba

    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]  # set at run time
    numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before  # type: ignore[attr-defined]


def is_user_owned(folder: Path) -> bool:
    """Whether a folder is the user's own, and only the user and root can change it or the folders above it."""
    if not hasattr(os, "getuid"):
        return True  # Windows has access lists in place of owners and modes
    own = os.getuid()
    inner = folder.resolve()
    status = inner.stat()
    if status.st_uid != own or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    for outer in inner.parents:
        status = outer.stat()
        shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in (own, 0) or shared:
            return False
    return True


@cache
def private_folder() -> Path:
    """A folder for this process alone, removed at its end."""
    folder = tempfile.mkdtemp(prefix="dpwitness-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


#: The largest number of seconds by which compilation moves a deadline, so that a check returns within 10 s of its
#: `max_time`.
MOST_COMPILING_SECONDS: Final = 5.0


class Stopwatch:
    """The seconds for which at least one activity was going on, on any thread; `now` is a clock in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._running = 0
        self._since = 0.0
        self._total = 0.0

    def start(self) -> None:
        """Begin an activity; overlapping activities count once."""
        with self._lock:
            if self._running == 0:
                self._since = self._now()
            self._running += 1

    def stop(self) -> None:
        """End an activity that the stopwatch measures."""
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self._total += self._now() - self._since

    @property
    def seconds(self) -> float:
        """The seconds so far, present activities included."""
        with self._lock:
            return self._total + (self._now() - self._since if self._running else 0.0)


#: The stopwatch of numba's compilation in this process, which `jit` starts and stops.
COMPILATION_STOPWATCH: Final = Stopwatch()


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time by `time.monotonic` (seconds), moved by the seconds of compilation since this value was made.

    The time moves by at most `MOST_COMPILING_SECONDS`. Compilation is not the mechanism's time, and a second check
    compiles nothing.

    `patience`: the seconds after the deadline in which runs that have begun may still end. If bets follow, these runs
    must end: the time of a run may depend on its outcome, so counts without the long runs would be biased.
    """

    at: float
    compiled: float = field(default_factory=lambda: COMPILATION_STOPWATCH.seconds)
    patience: float = 0.0

    @property
    def left(self) -> float:
        """The seconds until the end of the patience, at least 0."""
        return max(self._open + self.patience, 0.0)

    @property
    def closed(self) -> bool:
        """Whether no run may begin any more, while runs that have begun may still end."""
        return self.patience > 0 and self._open <= 0

    @property
    def _open(self) -> float:
        """The seconds in which runs may still begin; negative after the deadline."""
        return self.at + min(COMPILATION_STOPWATCH.seconds - self.compiled, MOST_COMPILING_SECONDS) - time.monotonic()

    def earlier(self, seconds: float) -> "Deadline":
        """The same deadline, `seconds` earlier."""
        return replace(self, at=self.at - seconds)


class Overdue(RunsEnded):
    """The time of a call is over. Raised within the call."""


def compiled_within(seconds: float, task: Callable[[], T]) -> T:
    """The result of a task that compiles, on a thread of its own. Raises the task's error.

    Raises `Overdue` once the task has compiled for `seconds`, in the task too, so that the compiler, which is mostly
    Python, ends and releases its lock.
    """
    results: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def make() -> None:
        try:
            results.put((task(), None))
        except BaseException as error:  # raised below
            results.put((None, error))

    thread = threading.Thread(target=make, daemon=True)
    before = COMPILATION_STOPWATCH.seconds
    thread.start()
    while thread.is_alive() and COMPILATION_STOPWATCH.seconds - before < seconds:
        thread.join(0.1)
    end = time.monotonic() + 5.0  # the task may catch the exception, which is then raised again
    while thread.is_alive() and time.monotonic() < end:
        if not _loses_exceptions(thread):
            set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
            set_exception(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Overdue))
        thread.join(0.1)
    try:
        result, error = results.get_nowait()
    except queue.Empty:
        raise Overdue from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # a T where there is no error


def _loses_exceptions(thread: threading.Thread) -> bool:
    """Whether a thread would lose an exception: LLVM's callbacks drop it, and finalizers of objects only print it."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module == "weakref" or module.startswith("llvmlite.") or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


class Abandoned(RunsEnded):
    """The runs of this thread are no longer needed. Raised between two runs, never within a run."""


class _ThreadState(threading.local):
    abandoned = threading.Event()  # never set for a thread that no pool has started


#: The state of each thread: `abandoned` is set once its runs are no longer needed; its next run raises `Abandoned`.
THREAD_STATE: Final = _ThreadState()


def end_if_abandoned() -> None:
    """Raise `Abandoned` if the runs of this thread are no longer needed: they would slow down the next runs."""
    if THREAD_STATE.abandoned.is_set():
        raise Abandoned
