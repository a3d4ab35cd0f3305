"""Progress on stderr: a live bar on a terminal, nothing elsewhere."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from dpwitness.cli.console import Interrupts
from dpwitness.runs import Progress


@contextmanager
def live(arguments: argparse.Namespace) -> Iterator[Progress | None]:
    """A callback that draws a bar a stage; None where stderr is no terminal or --quiet was given.

    Behind it there is a result: an interruption waits until that is handed over, and a bar that cannot be drawn any
    more, as on a terminal that was closed, costs no result.
    """
    with ExitStack() as drawn:
        if arguments.quiet or sys.stderr is None or sys.stderr.closed or not sys.stderr.isatty():
            yield None
        else:
            yield _bars(drawn)
        if Interrupts.active is not None:
            Interrupts.active.hold()
        with suppress(OSError, ValueError):
            drawn.close()


def _bars(drawn: ExitStack) -> Progress:
    """A callback that draws, until the stack is closed."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<8}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    bars = drawn.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
    tasks: dict[str, object] = {}

    def report(stage: str, done: int, total: int, note: str) -> None:
        with suppress(OSError, ValueError):
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, note=note)
            bars.update(tasks[stage], completed=done, total=total, note=note)  # type: ignore[arg-type]  # rich's own id

    return report
