"""The entry point of the family `subset_sum`."""

from typing import Final

from dpwitness.attacks.family import AttackFamily, Commands
from dpwitness.attacks.subset_sum.candidates import flipped_bit
from dpwitness.attacks.subset_sum.own import own_mechanism
from dpwitness.neighbours import bits

__all__ = ["FAMILY"]


def _add_command(commands: Commands) -> None:
    from dpwitness.attacks.subset_sum.command import add_command  # `check` needs no command line

    add_command(commands, FAMILY)


FAMILY: Final = AttackFamily(
    name="subset_sum",
    summary="reconstruct secret bits from noisy subset sums (Dinur & Nissim 2003)",
    generators={"flipped_bit": flipped_bit, "own_mechanism": own_mechanism},
    default="own_mechanism",
    relation=bits(48, any_length=True),
    add_command=_add_command,
)
