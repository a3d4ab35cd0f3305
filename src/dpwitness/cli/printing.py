"""Standard output belongs to the result: while a command runs, whatever else is printed goes to standard error.

That is done with the file behind it, so that it holds for mechanisms that print, the processes that they or we start,
and C libraries. It costs nothing a run. Standard library only: this is loaded before anything that may fail.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

__all__ = ["apart", "for_result", "of_command"]

OUT, ERR = 1, 2


class Held:
    """The standard output that results are written to, while it is taken from everybody else."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.file: int | None = None
        self.nowhere: TextIO | None = None  # where there is no standard error
        with contextlib.suppress(OSError):  # closed, as for a process without any
            self.file = os.dup(OUT)
        self.take()

    def take(self) -> None:
        """Let what is printed from now on go to standard error."""
        _flush(self.stream)
        if self.file is not None:
            try:
                os.dup2(ERR, OUT)
            except OSError:  # there is no standard error: it goes nowhere
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, OUT)
                os.close(null)
        if self.nowhere is None and (sys.stderr is None or sys.stderr.closed):
            self.nowhere = open(os.devnull, "w")  # noqa: SIM115  # closed by `apart`
        sys.stdout = self.nowhere or sys.stderr

    def give(self) -> None:
        """Let it go to standard output again."""
        _flush(sys.stdout)
        if self.file is not None:
            _flush_libraries()
            os.dup2(self.file, OUT)
        sys.stdout = self.stream


_held: Held | None = None


@contextlib.contextmanager
def apart(*, for_good: bool = False) -> Iterator[None]:
    """While this lasts only `for_result` writes to standard output; `for_good`: from then on, to the end."""
    global _held
    if _held is not None or sys.stdout is None:
        yield
        return
    _held = Held(sys.stdout)
    try:
        yield
    finally:
        if not for_good:
            held, _held = _held, None
            held.give()
            if held.file is not None:
                os.close(held.file)
            if held.nowhere is not None:
                held.nowhere.close()


@contextlib.contextmanager
def for_result() -> Iterator[None]:
    """While this lasts `sys.stdout`, and the file behind it, are the standard output."""
    if _held is None or sys.stdout is _held.stream:
        yield
        return
    _held.give()
    try:
        yield
    finally:
        _held.take()


def of_command(run: Callable[..., int]) -> contextlib.AbstractContextManager[None]:
    """Where a command prints while it runs: one of another package prints its result, ours have `for_result`."""
    ours = str(getattr(run, "__module__", "")).startswith("dpwitness.")
    return contextlib.nullcontext() if ours else for_result()


def _flush(stream: Any) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a full disk, a closed stream, or none
        stream.flush()


def _flush_libraries() -> None:
    """Write out what C libraries have printed and hold back, to where it was printed."""
    if "numpy" not in sys.modules:
        return  # nothing has run yet
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):  # a system whose C library is not found like this
        ctypes.CDLL(None).fflush(None)
