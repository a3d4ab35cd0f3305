"""The command `compare`: the changes from one saved file to another."""

from types import SimpleNamespace
from typing import Final

from dpwitness.cli.command import READ_FILE, Argument, Subcommand
from dpwitness.cli.console import NOT_REFUTED, VIOLATED
from dpwitness.cli.options import IMPORT, printing


def run(arguments: SimpleNamespace) -> int:
    """Compare two files; the exit code is 1 if the new file refutes a claim that the old file does not refute."""
    from dpwitness.cli.output import hand_over
    from dpwitness.report.comparison import compare
    from dpwitness.results.fields import read_json

    found = compare(read_json(arguments.old), read_json(arguments.new))
    code = VIOLATED if found.newly_refuted else NOT_REFUTED
    return hand_over(arguments, code, found.to_json, lambda: str(found))


#: FILE_HELP is the help of each argument that names a file.
FILE_HELP: Final = "a file of --save or --dp-report"
#: COMMAND is the command `compare`.
COMMAND: Final = Subcommand(
    "compare",
    summary="show what changed between two saved verdicts or two reports of pytest",
    run=run,
    parameters=[
        Argument("old", "OLD.json", FILE_HELP, type=READ_FILE),
        Argument("new", "NEW.json", f"{FILE_HELP}, of the same kind (-: standard input)", type=READ_FILE),
        IMPORT,
        *printing(quiet=False),
    ],
    examples=("compare old.json new.json", "compare --json dp-of-main.json dp.json"),
    exits=(0, 1, 2),
)
