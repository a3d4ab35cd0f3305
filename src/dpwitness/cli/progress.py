"""Progress on stderr: a live bar on a terminal, nothing elsewhere."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dpwitness.runs import Progress


@contextmanager
def live(arguments: argparse.Namespace) -> Iterator[Progress | None]:
    """A callback that draws a bar a stage; None where stderr is no terminal or --quiet was given."""
    if arguments.quiet or sys.stderr is None or sys.stderr.closed or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<8}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, object] = {}

        def report(stage: str, done: int, total: int, note: str) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, note=note)
            bars.update(tasks[stage], completed=done, total=total, note=note)  # type: ignore[arg-type]  # rich's own id

        yield report
