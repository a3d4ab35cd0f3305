"""The command `compare`: what changed from one saved result to another."""

import argparse

from dpwitness.cli.console import NOT_REFUTED, VIOLATED
from dpwitness.cli.options import import_modules, importing, printing
from dpwitness.cli.parser import READ, command


def add(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]  # generic for type checkers only
    """Declare it."""
    below = command(
        commands,
        "compare",
        summary="show what changed between two saved results or two reports of pytest",
        run=run,
        examples=("compare old.json new.json", "compare --json dp-of-main.json dp.json"),
        exits=(0, 1, 2),
    )
    kinds = "a file of --save or --dp-report"
    below.add_argument("old", type=READ, metavar="OLD.json", help=kinds)
    below.add_argument("new", type=READ, metavar="NEW.json", help=f"{kinds}, of the same kind (-: standard input)")
    importing(below)
    printing(below, quiet=False)


def run(arguments: argparse.Namespace) -> int:
    """Compare two files; 1 where the new one refutes what the old one did not."""
    from dpwitness.cli.output import check_places, hand_over
    from dpwitness.report.comparison import compare
    from dpwitness.results.fields import read_json

    check_places(arguments)
    import_modules(arguments)
    found = compare(read_json(arguments.old), read_json(arguments.new))
    code = VIOLATED if found.newly_refuted else NOT_REFUTED
    return hand_over(arguments, code, found.to_json, lambda: str(found))
