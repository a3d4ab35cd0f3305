"""The entry point of the family `table_builder`."""

from typing import Final

from dpwitness.attacks.family import AttackFamily, Commands
from dpwitness.attacks.table_builder.candidates import whole_count
from dpwitness.attacks.table_builder.own import own_mechanism
from dpwitness.neighbours import histogram

__all__ = ["FAMILY"]


def _add_command(commands: Commands) -> None:
    from dpwitness.attacks.table_builder.command import add_command  # `check` needs no command line

    add_command(commands, FAMILY)


FAMILY: Final = AttackFamily(
    name="table_builder",
    summary="counts behind bounded noise, or how large that noise is (TableBuilder; Asghar & Kaafar 2020)",
    generators={"whole_count": whole_count, "own_mechanism": own_mechanism},
    default="own_mechanism",
    relation=histogram(7, any_length=True),
    add_command=_add_command,
)
