"""Reconstruction from subset sums: Dinur & Nissim (2003)."""

from typing import TYPE_CHECKING, Final

from dpwitness.attacks.family import AttackFamily
from dpwitness.attacks.subset_sum.candidates import flipped_bit

if TYPE_CHECKING:
    from dpwitness.attacks.family import Commands

__all__ = ["FAMILY"]


def _add_command(commands: "Commands") -> None:
    from dpwitness.attacks.subset_sum.command import add_command  # `check` needs no command line

    add_command(commands, FAMILY)


FAMILY: Final = AttackFamily(
    name="subset_sum",
    summary="reconstruct secret bits from noisy subset sums (Dinur & Nissim 2003)",
    generators={"flipped_bit": flipped_bit},
    add_command=_add_command,
)
