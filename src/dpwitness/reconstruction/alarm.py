"""The end of a call of an asked system at a deadline."""

import signal
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from dpwitness.machine import Deadline, Overdue

T = TypeVar("T")

#: The longest time to an alarm, in seconds; for a later deadline the alarm is set again.
LONGEST_ALARM: Final = 86_400.0


class Alarm:
    """A context whose method `call` calls a function, which `Overdue` interrupts once a deadline is over.

    The signal is SIGALRM, so that calls stay on the thread that their connections are bound to. As with Ctrl-C, machine
    code may have to end first. Without a deadline, in other threads, on Windows, and if other code uses the signal, no
    call is interrupted.
    """

    def __init__(self, deadline: Deadline | None) -> None:
        self._deadline = deadline
        self._set = self._calling = False

    def __enter__(self) -> "Alarm":
        if self._deadline is not None and _alarm_is_free():
            self._set = True
            signal.signal(signal.SIGALRM, self._ring)
            self._wind(self._deadline.left)
        return self

    def __exit__(self, *_: object) -> None:
        if self._set and signal.getsignal(signal.SIGALRM) == self._ring:  # else a call uses it from now on
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        self._set = False

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function and return its result. Raises `Overdue`."""
        self._calling = True
        try:
            return function(*arguments)
        finally:
            self._calling = False

    def _wind(self, seconds: float) -> None:
        seconds = min(max(seconds, 1e-6), LONGEST_ALARM)  # 0 would be never
        # A call that goes on after its alarm gets another one every 5 seconds.
        signal.setitimer(signal.ITIMER_REAL, seconds, 5.0)

    def _ring(self, number: int, frame: object) -> None:
        left = 0.0 if self._deadline is None else self._deadline.left
        if left:
            self._wind(left)  # compiling has moved it, or it is far away
        elif self._calling:
            raise Overdue


def _alarm_is_free() -> bool:
    """Whether this thread may use SIGALRM, and no other code does."""
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        and not signal.getitimer(signal.ITIMER_REAL)[0]
    )
