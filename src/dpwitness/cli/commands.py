"""The parser of all commands.

A command's module imports what takes time when it runs, so that help, and errors in options, come at once.
"""

import argparse
from typing import Final

from dpwitness.checks import near
from dpwitness.cli import attack, bound, check, curve, profile, replay, targets
from dpwitness.cli.parser import Parser

#: What options were called, and are not any more.
EARLIER: Final = {"--max-runs": "--runs", "--confidence": "--alpha, which is 1 − confidence"}
#: In the order in which they are listed.
COMMANDS: Final = (targets, check, bound, profile, curve, replay)


def parser(*, attacks: bool = True) -> Parser:
    """Build the parser of all commands, without those of the attack families unless `attacks`.

    Each sets `run`, which takes the parsed arguments and returns the exit code, and `parser`, itself.
    """
    top = Parser(prog="dpwitness", description="Finds and proves violations of differential privacy.")
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_commands("command", "COMMAND")
    for module in COMMANDS:
        module.add(commands)
    attack.add(commands, families=attacks)
    return top


def parse(given: list[str]) -> argparse.Namespace:
    """Parse a command line; a parsed one has `run`. Raises `BadInput`."""
    top = parser(attacks="attack" in given)  # families take time to import, and may be other packages'
    for text in given:
        if text.startswith("--") and text.endswith("=--"):  # argparse takes this for an option without a value
            top.error(f"{text!r} has no value")
    arguments, unknown = top.parse_known_args(given)
    if unknown:
        name = unknown[0].partition("=")[0]
        meant = f"; give {EARLIER[name]}" if name in EARLIER else near(name, arguments.parser.options)
        arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}{meant if name.startswith('-') else ''}")
    return arguments


def _version() -> str:
    from importlib.metadata import version

    return f"dpwitness {version('dpwitness')}"
