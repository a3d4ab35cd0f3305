"""The output of a command (messages and progress on stderr, only the result on stdout), signals, and exit codes."""

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from dpwitness.checks import class_and_text, escaped
from dpwitness.errors import DPWitnessError

if TYPE_CHECKING:
    from dpwitness.runs import Progress as RunProgress

#: NOT_REFUTED to TERMINATED are the exit codes of the commands.
NOT_REFUTED, VIOLATED, BAD_INPUT, UNEXPECTED, INTERRUPTED, TERMINATED = 0, 1, 2, 70, 130, 143
#: EXIT_CODES has the meaning of each exit code, for help and documentation.
EXIT_CODES: Final[Mapping[int, str]] = {
    NOT_REFUTED: "not refuted, or done",
    VIOLATED: "violated: the claim is refuted",
    BAD_INPUT: "bad input: one line on stderr says what, which value, and what to do",
    UNEXPECTED: (
        "an unexpected error, a cluster lost during the confirm runs, or a result that cannot be printed; "
        "--traceback shows where"
    ),
    INTERRUPTED: "interrupted by Ctrl-C, with the result so far",
    TERMINATED: "terminated by SIGTERM, with the result so far",
}
#: SIGNAL_SECONDS is the time in seconds within which signals count as one: `timeout` and CI systems send SIGTERM to a
#: process and then to its group.
SIGNAL_SECONDS = 0.5


class NoResult(Exception):
    """A result cannot be printed; the message gives the reason, neither bad input nor a defect of dpwitness."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM; after a plain `KeyboardInterrupt` CPython ends by SIGINT, whatever the exit code."""


class CommandRun:
    """A running command line: its words, the stream of its result, and the signal that ended it.

    The first signal ends the runs with the verdict so far, or waits while a result is written; a second signal ends the
    process. The signal is remembered: an import or a compiler may turn `KeyboardInterrupt` into another error.
    """

    def __init__(self, given: Sequence[str] = ()) -> None:
        self.given = given
        self.stdout: TextIO | None = sys.stdout
        self.signal: int | None = None
        self._since = 0.0
        self._held = False

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Take Ctrl-C and SIGTERM in the main thread, unless another handler is set or the signal is ignored."""
        defaults: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        here = threading.current_thread() is threading.main_thread()
        taken = [number for number, handler in defaults.items() if here and signal.getsignal(number) is handler]
        for number in taken:
            signal.signal(number, self._handle)
        try:
            yield
        finally:
            for number in taken:
                signal.signal(number, defaults[number])

    def _handle(self, number: int, frame: object) -> None:
        if self.signal is None:
            self.signal, self._since = number, time.monotonic()
            if not self._held:
                raise Interrupted
        elif time.monotonic() - self._since > SIGNAL_SECONDS:
            os._exit(128 + self.signal)

    def hold(self) -> None:
        """Remember signals without raising an error, while a result or the last message is printed."""
        self._held = True

    def explain(self, error: BaseException) -> int:
        """Print the error on one line, after the traceback if it is asked for; return the exit code."""
        self.hold()
        if "--traceback" in self.given:
            to_stderr("".join(traceback.format_exception(error)))
        if self.signal is not None or isinstance(error, KeyboardInterrupt):
            say("interrupted before there was a result")
            return INTERRUPTED
        match error:
            case click.UsageError():
                text, path = error.format_message().rstrip("."), "" if error.ctx is None else error.ctx.command_path
                say(f"error: {text}{' See' if text.endswith('?') else '; see'} `{path or 'dpwitness'} --help`")
            case DPWitnessError() | NoResult():
                say(f"error: {error}")
            case _:
                say(f"error: unexpected {class_and_text(error)}; --traceback shows where")
        return BAD_INPUT if isinstance(error, click.UsageError | DPWitnessError) else UNEXPECTED


def session() -> CommandRun:
    """The run of the command in this thread."""
    context = click.get_current_context(silent=True)
    return (None if context is None else context.find_object(CommandRun)) or CommandRun()


def printable(text: str) -> str:
    """The text with unprintable characters, which a terminal might obey, escaped as in JSON; line ends stay."""
    return escaped(text, "\n".__eq__)


def say(message: str) -> None:
    """Print one line on standard error, without its middle if it is long, since messages quote arguments."""
    line = printable(" ".join(message.split()))
    to_stderr(f"dpwitness: {line if len(line) <= 1_000 else f'{line[:666]} … {line[-334:]}'}\n")


def to_stderr(text: str) -> None:
    """Write a text on standard error; if the stream is closed, the exit code still tells the result."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
    except (OSError, ValueError):
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Discard the rest of a broken stream: Python's own attempt at exit would change the exit code."""
    with contextlib.suppress(OSError, ValueError):  # Python attempts nothing for a stream without a file
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())
        finally:
            os.close(null)


def show(text: str) -> None:
    """Print a result on standard output at once. Raises `NoResult`."""
    stream, text = session().stdout, printable(text)
    if stream is None:
        raise NoResult("the result could not be printed: standard output is closed")
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has read enough
        _discard(stream)
    except (OSError, ValueError) as error:  # a full disk, a closed file
        _discard(stream)
        raise NoResult(f"the result could not be printed: {getattr(error, 'strerror', None) or error}") from error


@contextlib.contextmanager
def streams() -> Iterator[None]:
    """The context of a command, in which any terminal shows ⊤ and ε, and each warning takes one line."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # not a file, or a closed one
            # Arguments that are not UTF-8 have lone surrogates, which no encoding has.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]  # see above
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
        yield


def deliver(code: int, *steps: Callable[[], object]) -> int:
    """Print a result and write its files, each step even if an earlier one failed; return the exit code.

    `code` is the exit code of the result. A proved violation stays 1 and an interruption 130; otherwise a failure
    shows: `BAD_INPUT` for a file that could not be written, `UNEXPECTED` for a result that could not be printed. Ctrl-C
    and SIGTERM wait until everything is written.
    """
    here = session()
    here.hold()
    failures = []
    for step in steps:
        try:
            step()
        except KeyboardInterrupt:
            say("interrupted while the result was being written")
            return INTERRUPTED
        except BaseException as error:
            failures.append(here.explain(error))
    return code if code in (VIOLATED, INTERRUPTED) else max([code, *failures])


@contextlib.contextmanager
def live(*, quiet: bool, seconds: float | None) -> "Iterator[RunProgress | None]":
    """The context of the runs: a callback that draws a bar for each stage; None without a terminal, or with `quiet`.

    After the context there is a result: an interruption waits until the result is printed, and a bar that can no longer
    be drawn, as on a closed terminal, does not lose it. `seconds`: the time limit, half of which the search has; the
    bars show the share of runs or of time, whichever is larger.
    """
    with contextlib.ExitStack() as drawn:
        shown = not quiet and sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
        yield _bars(drawn, seconds or float("inf")) if shown else None
        session().hold()
        with contextlib.suppress(OSError, ValueError):
            drawn.close()


def _bars(drawn: contextlib.ExitStack, seconds: float) -> "RunProgress":
    """A callback that draws progress until `drawn` is closed."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TimeElapsedColumn

    columns = ("{task.description:<8}", BarColumn(bar_width=16), "{task.fields[runs]} {task.fields[note]}")
    began, tasks = time.monotonic(), dict[str, TaskID]()
    bars = drawn.enter_context(Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True))

    def report(stage: str, done: int, total: int, note: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            limit = seconds / 2 if stage == "search" else seconds
            share = max(done / max(total, 1), (time.monotonic() - began) / limit)
            shown: dict[str, Any] = {"note": note, "runs": f"{done:,} of {total:,}"}
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=1.0, **shown)
            bars.update(tasks[stage], completed=min(share, 1.0), **shown)

    return report
