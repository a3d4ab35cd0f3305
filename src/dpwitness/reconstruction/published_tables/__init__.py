"""Reconstruction from tables already published: Garfinkel, Abowd & Martindale (2018), Dick et al. (2023)."""

from typing import Final

from dpwitness.proposals import AttackFamily, Commands


def _add_command(commands: Commands) -> None:
    from dpwitness.reconstruction.published_tables.command import add_command  # `check` needs no command line

    add_command(commands, FAMILY)


#: It proposes no candidates: what it attacks is a publication, which no mechanism is run for.
FAMILY: Final = AttackFamily(
    name="published_tables",
    summary="reconstruct rows from tables already published (Garfinkel et al. 2018, Dick et al. 2023)",
    add_command=_add_command,
)
