"""Deadlines that compiling does not use up: its time is not the mechanism's, and a second check needs none of it."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

#: Seconds of compiling at most that a deadline waits for: a mechanism that compiles in every run must end too.
MOST_COMPILING: Final = 300.0


class Stopwatch:
    """Seconds during which at least one of several overlapping activities was going on, on any thread.

    `now` is a clock in seconds, for tests.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._running = 0
        self._since = 0.0
        self._total = 0.0

    def start(self) -> None:
        """One activity begins; those that begin within another add nothing."""
        with self._lock:
            if self._running == 0:
                self._since = self._now()
            self._running += 1

    def stop(self) -> None:
        """One activity ends."""
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self._total += self._now() - self._since

    @property
    def seconds(self) -> float:
        """The time so far, the one that is going on included."""
        with self._lock:
            return self._total + (self._now() - self._since if self._running else 0.0)


#: The seconds that numba has compiled in this process; `jit`, where numba is imported, starts and stops it.
COMPILING: Final = Stopwatch()


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time by `time.monotonic` that moves by the seconds spent compiling from the making of this value on."""

    at: float
    compiled: float = field(default_factory=lambda: COMPILING.seconds)

    @property
    def left(self) -> float:
        """Seconds until then, at least 0."""
        compiling = min(COMPILING.seconds - self.compiled, MOST_COMPILING)
        return max(self.at + compiling - time.monotonic(), 0.0)

    def earlier(self, seconds: float) -> "Deadline":
        """The same, so many seconds before."""
        return Deadline(self.at - seconds, self.compiled)
