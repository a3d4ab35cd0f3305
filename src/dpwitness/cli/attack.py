"""`dpwitness attack`: run an attack on data and report what it recovers; each family brings its own command."""

from typing import Any

from dpwitness.cli.console import say


def add(subparsers: Any, *, families: bool) -> None:
    """Declare the command, and below it those of the registered families where they are asked for."""
    summary = "run an attack on data and report what it recovers"
    parser = subparsers.add_parser("attack", help=summary, description=f"{summary.capitalize()}.")
    attacks = parser.add_commands("attack", "NAME")
    if families:
        from dpwitness.proposals import add_commands

        add_commands(attacks, warn=lambda message: say(f"warning: {message}"))
