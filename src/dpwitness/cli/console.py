"""Output and end of a command: messages and progress on stderr, only the result on stdout, and the exit code.

This is loaded before anything that may fail or be interrupted, so it imports the standard library alone.
"""

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import sys
import textwrap
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TextIO

from dpwitness.checks import ExitedAtOnce, class_and_text, escaped
from dpwitness.errors import DPWitnessError

if TYPE_CHECKING:
    from dpwitness.runs import Progress as RunProgress

NOT_REFUTED, VIOLATED, BAD_INPUT, UNEXPECTED, INTERRUPTED, TERMINATED = 0, 1, 2, 70, 130, 143
#: Seconds within which signals are one: `timeout`, as CI systems, sends SIGTERM to a process and then to its group.
ONE_SIGNAL = 0.5
#: Characters of one message: a hostile argument can be long, and is quoted.
LONGEST = 1_000
#: Where the values of a report's labelled lines begin.
VALUES = 15
WHOLE_LINES = ("replay:", "$")
COMMAND = "  reproduce: "
STYLES = {"VIOLATED": "red", "NOT REFUTED": "green"}


class NoResult(Exception):
    """A result could not be shown, for a reason that is neither bad input nor a defect here: the message says which."""


def printable(text: str) -> str:
    """The text with everything but line ends and printable characters escaped as in JSON.

    A witness file holds texts; a terminal would obey the control characters in them.
    """
    return escaped(text, "\n".__eq__)


def one_line(text: str) -> str:
    """A message on one line, its middle left out where it is long."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST * 2 // 3]} … {line[-LONGEST // 3 :]}"


def say(message: str) -> None:
    """Print one line on standard error; on a terminal it wraps between words."""
    line = f"dpwitness: {one_line(message)}"
    if is_terminal(sys.stderr):
        line = wrapped(line, shutil.get_terminal_size().columns)
    _to_stderr(f"{line}\n")


def annotate(command: str) -> None:
    """Give a workflow command to GitHub Actions, which reads both streams."""
    _to_stderr(f"{printable(command)}\n")


def _to_stderr(text: str) -> None:
    if sys.stderr is None:
        return  # closed: nothing can be shown, and the exit code still holds
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Let what is left in a broken stream go nowhere: Python's own attempt at exit would change the exit code."""
    with contextlib.suppress(OSError, ValueError):  # no file behind the stream: nothing is attempted either
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())
        finally:
            os.close(null)


OUT, ERR = 1, 2


class ResultStream:
    """The standard output, reserved for results while a command runs.

    What mechanisms print, the processes that they or we start, and C libraries goes to standard error: the file behind
    the stream is exchanged, which costs nothing a run.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.file: int | None = None
        self.nowhere: TextIO | None = None  # where there is no standard error
        with contextlib.suppress(OSError):  # closed, as for a process without any
            self.file = os.dup(OUT)
        self.reserve()

    def reserve(self) -> None:
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
            self.nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # closed by `reserved_stdout`
        sys.stdout = self.nowhere or sys.stderr

    def release(self) -> None:
        """Let what is printed from now on go to standard output again."""
        _flush(sys.stdout)
        if self.file is not None:
            _flush_libraries()
            os.dup2(self.file, OUT)
        sys.stdout = self.stream


_results: ResultStream | None = None


@contextlib.contextmanager
def reserved_stdout(*, for_good: bool = False) -> Iterator[None]:
    """While this lasts only `for_result` writes to standard output; `for_good`: from then on, to the end."""
    global _results
    if _results is not None or sys.stdout is None:
        yield
        return
    _results = ResultStream(sys.stdout)
    try:
        yield
    finally:
        if not for_good:
            stream, _results = _results, None
            stream.release()
            if stream.file is not None:
                os.close(stream.file)
            if stream.nowhere is not None:
                stream.nowhere.close()


@contextlib.contextmanager
def for_result() -> Iterator[None]:
    """While this lasts `sys.stdout`, and the file behind it, are the standard output."""
    if _results is None or sys.stdout is _results.stream:
        yield
        return
    _results.release()
    try:
        yield
    finally:
        _results.reserve()


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


def show(text: str, *, wrap: bool = False) -> None:
    """Print a result on standard output, at once; on a terminal its lines wrap where asked. Raises `NoResult`."""
    with for_result():
        if sys.stdout is None:
            raise NoResult("the result could not be printed: standard output is closed")
        try:
            if wrap and is_terminal(sys.stdout):
                _on_terminal(printable(text))
            else:
                print(printable(text), flush=True)
        except BrokenPipeError:  # who reads has what it wants, as `head` does
            _discard(sys.stdout)
        except (OSError, ValueError) as error:  # a full disk, a closed file
            _discard(sys.stdout)
            raise NoResult(f"the result could not be printed: {getattr(error, 'strerror', None) or error}") from error


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person watches the stream."""
    return stream is not None and not stream.closed and stream.isatty()


def _on_terminal(text: str) -> None:
    """Print with lines wrapped below their own beginnings, and the verdict in colour unless NO_COLOR is set."""
    from rich.console import Console
    from rich.text import Text

    fitted = Text(wrapped(text, shutil.get_terminal_size().columns))
    for word, style in STYLES.items():
        fitted.highlight_regex(rf"(?m)^{word}(?=:)", style)
    # The text is data: nothing in it is markup, a number to be coloured, or an emoji.
    Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True).print(fitted)
    sys.stdout.flush()


def wrapped(text: str, width: int) -> str:
    """Lines of at most `width` columns where words allow it; a command of several lines can be copied as it is."""
    lines = []
    for line in text.splitlines():
        if len(line) <= width or line.lstrip().startswith(WHOLE_LINES):
            lines.append(line)
            continue
        if line.startswith(COMMAND):
            lines += _folded(line, width)
            continue
        labelled = line.startswith("  ") and line[2:3] != " " and line[VALUES - 1 : VALUES] == " "
        own = len(line) - len(line.lstrip())
        indent = " " * (max(VALUES if labelled else 4, own) if width > 2 * VALUES else 4)
        lines += textwrap.wrap(
            line, max(width, 20), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(lines)


def _folded(line: str, width: int) -> list[str]:
    """A command in lines that a shell reads as one; it breaks between its words alone."""
    try:
        first, *words = map(shlex.quote, shlex.split(line.removeprefix(COMMAND)))
    except ValueError:  # a word of it has a line break
        return [line]
    lines = [COMMAND + first]
    for word in words:
        if len(lines[-1]) + len(word) + 3 > width:  # a space, and what says that the line goes on
            lines[-1] += " \\"
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {word}"
    return lines


@contextlib.contextmanager
def streams() -> Iterator[None]:
    """Print ⊤ and ε on any terminal, and each warning on one line, as long as a command runs."""
    before: list[tuple[Any, str, str]] = []
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # not a file, or a closed one
            # Arguments that are no UTF-8 come as half surrogate pairs, which nothing can encode.
            encoding, errors = stream.encoding, stream.errors
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]  # see above
            before.append((stream, encoding, errors or "strict"))
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    finally:
        for stream, encoding, errors in before:
            with contextlib.suppress(OSError, ValueError):  # it was closed, or its disk is full
                stream.reconfigure(encoding=encoding, errors=errors)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    say(f"warning: {message}")


#: What ends a process at once, also while `exit_at_once_refused` lasts.
_EXIT: Final = os._exit


@contextlib.contextmanager
def exit_at_once_refused() -> Iterator[None]:
    """While this lasts `os._exit` raises `ExitedAtOnce`: by code 0 a mechanism would say that nothing was refuted.

    In this process alone: others that are forked from it end by the function itself.
    """
    process, before = os.getpid(), os._exit

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process:
            _EXIT(status)
        raise ExitedAtOnce(status)

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = before


class Interrupts:
    """Ctrl-C and SIGTERM while a command runs: the first ends the runs, with the verdict so far; the second all.

    It remembers that one came: an import or a compiler may make another error of `KeyboardInterrupt`. With `last` the
    process ends behind the command, and what comes while it does ends it at once.
    """

    #: That of the command which runs in the main thread.
    active: "Interrupts | None" = None

    def __init__(self, *, last: bool = False) -> None:
        self._number: int | None = None  # of the first signal
        self._since = 0.0
        self._held = False
        self._last = last
        self._before: dict[int, Any] = {}

    @property
    def came(self) -> bool:
        """Whether there was a signal."""
        return self._number is not None

    @property
    def code(self) -> int:
        """The exit code of a command that a signal ended."""
        return INTERRUPTED if self._number is None else 128 + self._number

    def __enter__(self) -> "Interrupts":
        # Outside the main thread, or if another handler is set or the signal is ignored, nothing is changed.
        if threading.current_thread() is threading.main_thread():
            for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
                if signal.getsignal(number) is usual:
                    self._before[number] = usual
                    signal.signal(number, self._handle)
            Interrupts.active = self
        return self

    def __exit__(self, *_: object) -> None:
        self._held = True
        if self._last:
            return
        for number, usual in self._before.items():
            signal.signal(number, usual)
        if Interrupts.active is self:
            Interrupts.active = None

    def _handle(self, number: int, frame: object) -> None:
        if self.came and time.monotonic() - self._since > ONE_SIGNAL:
            self._end()
        elif not self.came:
            self._number, self._since = number, time.monotonic()
            if not self._held:
                raise KeyboardInterrupt

    def _end(self) -> None:
        """End the process at once; those that it has started see that it is gone, and end."""
        if is_terminal(sys.stderr):
            os.write(2, b"\x1b[?25h")  # a progress bar has hidden the cursor
        _EXIT(self.code)

    def hold(self) -> None:
        """From now on only remember: a result, or the last message, is being printed."""
        self._held = True


def explain(error: BaseException, *, trace: bool) -> int:
    """Say on one line what went wrong, after the traceback if `trace`; return the exit code."""
    if trace:
        _to_stderr("".join(traceback.format_exception(error)))
    match error:
        case KeyboardInterrupt():
            say("interrupted before there was a result")
            return INTERRUPTED
        case DPWitnessError():
            say(f"error: {error}")
            return BAD_INPUT
        case NoResult():
            say(f"error: {error}")
        case _:
            say(f"error: unexpected {class_and_text(error)}; --traceback shows where")
    return UNEXPECTED


def deliver(code: int, *steps: Callable[[], object], trace: bool) -> int:
    """Print a result and write its files, each step even if an earlier one failed; return the exit code.

    `code` is that of the result. A proved violation stays exit 1 and an interruption 130; of anything else a failure
    shows: `BAD_INPUT` for a file that could not be written, `UNEXPECTED` for a result that could not be printed. Ctrl-C
    and SIGTERM wait until it is all written.
    """
    if Interrupts.active is not None:
        Interrupts.active.hold()
    failures = []
    for step in steps:
        try:
            step()
        except KeyboardInterrupt:
            say("interrupted while the result was being written")
            return INTERRUPTED
        except BaseException as error:
            failures.append(explain(error, trace=trace))
    return code if code in (VIOLATED, INTERRUPTED) else max([code, *failures])


class Quiet(Protocol):
    """What says whether progress is shown: parsed arguments, or settings made of them."""

    @property
    def quiet(self) -> bool:
        """Whether none is."""


@contextlib.contextmanager
def live(arguments: argparse.Namespace | Quiet) -> "Iterator[RunProgress | None]":
    """A callback that draws a bar a stage; None where stderr is no terminal or --quiet was given.

    Behind it there is a result: an interruption waits until that is handed over, and a bar that cannot be drawn any
    more, as on a terminal that was closed, costs no result.
    """
    with contextlib.ExitStack() as drawn:
        if arguments.quiet or sys.stderr is None or sys.stderr.closed or not sys.stderr.isatty():
            yield None
        else:
            yield _bars(drawn, _seconds(arguments))
        if Interrupts.active is not None:
            Interrupts.active.hold()
        with contextlib.suppress(OSError, ValueError):
            drawn.close()


def _seconds(arguments: argparse.Namespace | Quiet) -> float | None:
    """The time of a command; None where it is of a part of it, as a line of a curve."""
    command, given = getattr(arguments, "command", None), getattr(arguments, "max_time", None)
    if command == "curve":
        return None
    if given is None and command is not None:
        from dpwitness.options import FUNCTIONS, options_of

        given = options_of(command)["max_time"].default if command in FUNCTIONS else None
    return None if given is None else float(given)


def share_done(done: int, size: int, spent: float, limit: float | None) -> tuple[float, str]:
    """How much of a stage is done by the limit that will end it, runs or seconds, from 0 to 1; the limit as text."""
    of_runs = done / size if size else 0.0
    if limit is None or of_runs >= spent / limit:
        return min(of_runs, 1.0), f"{done:,} of {size:,}"
    return min(spent / limit, 1.0), f"{min(spent, limit):.0f} of {limit:g} s"


def _bars(drawn: contextlib.ExitStack, seconds: float | None) -> "RunProgress":
    """A callback that draws, until the stack is closed; `seconds`: the time of all, half of it for the search."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[limit]}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    began = time.monotonic()
    bars = drawn.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
    tasks: dict[str, object] = {}

    def report(stage: str, done: int, total: int, note: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            of_stage = None if seconds is None else seconds / 2 if stage == "search" else seconds
            share, limit = share_done(done, total, time.monotonic() - began, of_stage)
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=1.0, note=note, limit=limit)
            bars.update(tasks[stage], completed=share, note=note, limit=limit)  # type: ignore[arg-type]  # rich's own id

    return report
