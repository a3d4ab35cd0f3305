"""The command line: arguments → api → report → exit code (see `console.EXIT_CODES`)."""

import os
import sys
from collections.abc import Sequence

import click

from dpwitness.cli.console import CommandRun, streams

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code. An error prints one line, and with `--traceback` its traceback."""
    given = list(sys.argv[1:] if argv is None else argv)
    session = CommandRun(tuple(given))  # click takes words out of the list
    with session.signals(), streams():
        try:
            code = _run(given, session)
        except BaseException as error:
            code = session.explain(error)
        return code if session.signal is None else 128 + session.signal


def _run(given: list[str], session: CommandRun) -> int:
    """Parse the arguments and run the command; click's own `main` would exit with 1, a violation, for a closed pipe."""
    from dpwitness.cli.commands import program  # here, where Ctrl-C already has its exit code

    if instruction := os.environ.get("_DPWITNESS_COMPLETE"):  # click's variable for completion in a shell
        from click.shell_completion import shell_complete

        return shell_complete(program(), {}, "dpwitness", "_DPWITNESS_COMPLETE", instruction)
    try:
        with program().make_context("dpwitness", given, obj=session) as context:
            return context.command.invoke(context) or 0
    except click.exceptions.Exit as done:  # raised by --help and --version
        return done.exit_code
