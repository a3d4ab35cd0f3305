"""The entry point of the family `threshold_testing`."""

from typing import Final

from dpwitness.attacks.family import AttackFamily, Commands
from dpwitness.attacks.threshold_testing import candidates
from dpwitness.attacks.threshold_testing.own import own_mechanism
from dpwitness.neighbours import queries

__all__ = ["FAMILY"]


def _add_command(commands: Commands) -> None:
    from dpwitness.attacks.threshold_testing.command import add_command  # `check` needs no command line

    add_command(commands, FAMILY)


FAMILY: Final = AttackFamily(
    name="threshold_testing",
    summary="counts of a histogram through private threshold testing (Chen & Machanavajjhala 2015)",
    generators={
        "gptt": candidates.gptt,
        "gptt_lee_clifton": candidates.gptt_lee_clifton,
        "gptt_chen": candidates.gptt_chen,
        "gptt_stoddard": candidates.gptt_stoddard,
        "own_mechanism": own_mechanism,
    },
    default="own_mechanism",
    relation=queries(10, any_length=True),
    add_command=_add_command,
)
