"""An alarm interrupts a call of the system under attack at a deadline."""

import signal
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from dpwitness.machine import Deadline, Overdue

T = TypeVar("T")

#: The longest timer, in seconds (`setitimer` takes no infinite time); for a later deadline the timer is set again.
LONGEST_ALARM: Final = 86_400.0


class Alarm:
    """A context manager whose method `call` calls a function, and interrupts it by `Overdue` at a deadline.

    The signal SIGALRM keeps the call on its thread, to which a connection may be bound. As with Ctrl-C, machine code
    may have to end first. Without a deadline, in other threads than the main one, on Windows, and if other code uses
    the signal, no call is interrupted.
    """

    def __init__(self, deadline: Deadline | None) -> None:
        self._deadline = deadline
        self._set = self._calling = False

    def __enter__(self) -> "Alarm":
        if self._deadline is not None and _alarm_is_free():
            self._set = True
            signal.signal(signal.SIGALRM, self._handle)
            self._set_timer(self._deadline.left)
        return self

    def __exit__(self, *_: object) -> None:
        if self._set and signal.getsignal(signal.SIGALRM) == self._handle:  # else the called code has its own handler
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

    def _set_timer(self, seconds: float) -> None:
        seconds = min(max(seconds, 1e-6), LONGEST_ALARM)  # 0 seconds would switch the timer off
        # A call that catches `Overdue` and goes on gets it again every 5 seconds.
        signal.setitimer(signal.ITIMER_REAL, seconds, 5.0)

    def _handle(self, number: int, frame: object) -> None:
        left = 0.0 if self._deadline is None else self._deadline.left
        if left:
            self._set_timer(left)  # compiling has moved the deadline, or it is beyond the longest timer
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
