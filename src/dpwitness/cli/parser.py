"""What the parser of any command does: help that wraps, errors of one line, and the overview of commands below it."""

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, cast

from dpwitness.checks import near
from dpwitness.cli.console import NOT_REFUTED, show
from dpwitness.errors import BadInput

__all__ = ["EXIT_CODES", "Parser", "command", "overview"]

EXIT_CODES: Final[Mapping[int, str]] = {
    0: "not refuted, or done",
    1: "violated: the claim is refuted",
    2: "bad input: one line on stderr says what, which value, and what to do",
    70: "an unexpected error, a lost cluster, or a result that cannot be printed; --traceback shows where",
    130: "interrupted by Ctrl-C, with the result so far",
    143: "terminated by SIGTERM, with the result so far",
}


class Formatter(argparse.HelpFormatter):
    """Wraps prose at the terminal's width, and leaves examples, which are to be copied, as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(
            line
            if line.startswith("  $")
            else textwrap.fill(line, width, subsequent_indent=" " * 7 * line.startswith(" "), break_on_hyphens=False)
            for line in text.splitlines()
        )


class Commands(argparse._SubParsersAction):  # type: ignore[type-arg]  # generic for type checkers only
    """Commands below a parser; each keeps the line that its parent's help has of it."""

    def add_parser(self, name: str, **settings: Any) -> Any:
        """Declare a command."""
        made = super().add_parser(name, **settings)
        made.summary = settings.get("help") or ""
        return made


class Parser(argparse.ArgumentParser):
    """Says what is wrong on one line; every command has `--traceback`."""

    #: A line about the command, for lists of commands.
    summary: str = ""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{"formatter_class": Formatter, **settings})
        self.set_defaults(parser=self)
        # Suppressed: else the default of the inner parser would overwrite what stands before the command.
        self.add_argument(
            "--traceback", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
        )

    def add_commands(self, dest: str, metavar: str) -> Commands:
        """Commands below this one; without any of them the overview is printed."""
        commands = cast(Commands, self.add_subparsers(action=Commands, dest=dest, metavar=metavar, parser_class=Parser))
        self.set_defaults(run=lambda _: overview(self, commands.choices))
        return commands

    @property
    def options(self) -> list[str]:
        """The names of its options."""
        return [*self._option_string_actions]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is no choice, with the one that is near."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += near(value, action.choices or ())
            raise

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help and version so that a failure shows; argparse keeps it to itself."""
        show(message.rstrip("\n"))

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage; `main` prints one line and exits with 2."""
        raise BadInput(f"{message}; see `{self.prog} --help`")


def command(
    subparsers: Any, name: str, *, summary: str, run: Any, examples: Sequence[str], exits: Sequence[int] = (0, 2)
) -> Parser:
    """A command's parser, with examples and exit codes in its help.

    Parameters
    ----------
    subparsers
        What `add_subparsers` gave: of all commands, or of the attacks.
    summary
        One line, for lists of commands and for the top of the help.
    run
        Called with the parsed arguments; returns the exit code.
    examples
        Command lines without their first word.
    exits
        The exit codes that the command has besides 70, 130 and 143.
    """
    codes = [f"  {code:<4} {EXIT_CODES[code]}" for code in (*exits, 70, 130, 143)]
    epilog = "\n".join(["examples:", *(f"  $ dpwitness {line}" for line in examples), "", "exit codes:", *codes])
    add: Parser = subparsers.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=epilog
    )
    add.set_defaults(run=run)
    return add


def overview(above: Parser, below: Mapping[str, Parser]) -> int:
    """Print the commands below a parser, a line each."""
    width = max(map(len, below))
    lines = [f"  {name:<{width}}  {inner.summary}".rstrip() for name, inner in below.items()]
    show(
        "\n".join(
            [
                f"{above.description}",
                "",
                f"usage: {above.prog} COMMAND …",
                "",
                *lines,
                "",
                f"`{above.prog} COMMAND --help` has the options of a command, examples and exit codes.",
            ]
        ),
        wrap=True,
    )
    return NOT_REFUTED
