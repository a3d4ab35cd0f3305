"""`dpwitness list`: the bundled targets, and those of other packages."""

import argparse
import shutil
import sys
from typing import Any

from dpwitness.cli.console import NOT_REFUTED, for_result, is_terminal, say, show
from dpwitness.cli.parser import command
from dpwitness.errors import UnknownTarget


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = command(
        subparsers,
        "list",
        summary="the bundled targets, their claims, their true ε",
        run=run,
        examples=("list", "list --json"),
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each target."""
    from dpwitness.cli.output import as_json
    from dpwitness.results.text import table

    rows = _rows()
    if arguments.json:
        show(as_json(rows))
        return NOT_REFUTED
    with for_result():
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
    show(table(("TARGET", "CLAIM", "TRUE ε", "SOURCE"), [tuple(row.values()) for row in rows], width=width))
    return NOT_REFUTED


def _rows() -> list[dict[str, str]]:
    """What each target says of itself; a warning for one that cannot be loaded."""
    from dpwitness.mechanisms.catalog import load_registered, registered
    from dpwitness.targets import target_of

    rows = []
    for name in registered():
        try:
            target = target_of(load_registered(name))
        except UnknownTarget as error:  # one broken package must not hide all others
            say(f"warning: {error}")
            continue
        except SystemExit:
            say(f"warning: target {name!r} exits on import")
            continue
        if target is not None:
            rows.append(
                {"name": name, "claim": target.claim, "true_epsilon": target.true_epsilon, "source": target.source}
            )
    return rows
