"""`dpwitness attack`: run an attack on data and report what it recovers; each family brings its own commands."""

from importlib import import_module
from typing import Any, Final

#: Modules with an `add(subparsers)` each, one a family.
ATTACKS: Final = (
    "dpwitness.attacks.threshold_testing.command",
    "dpwitness.attacks.subset_sum.command",
    "dpwitness.attacks.table_builder.command",
)


def add(subparsers: Any, *, families: bool) -> None:
    """Declare the command, and below it those of the families."""
    summary = "run an attack on data and report what it recovers"
    parser = subparsers.add_parser("attack", help=summary, description=f"{summary.capitalize()}.")
    attacks = parser.add_commands("attack", "NAME")
    if families:
        for module in ATTACKS:
            import_module(module).add(attacks)
