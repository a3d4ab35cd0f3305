"""Options of `dpwitness attack threshold_testing` that are out of range, or say nothing of what is attacked."""

import argparse
import math
from typing import Final

from dpwitness.attacks.threshold_testing.theory import MOST_COPIES
from dpwitness.errors import InvalidParameter

__all__ = ["check_own", "check_simulated"]

SMALLEST_EPSILON: Final = 1e-12  # the noise of a smaller one does not fit into whole numbers of 64 bits
LARGEST_CELLS: Final = 10**7  # a question takes a byte a cell
#: Options of the simulated system alone, and of the user's own.
SIMULATED: Final = ("epsilon", "share", "beta", "repeat")
OWN: Final = ("cells", "epsilon1")
#: What --repeat and --delta are where they are not given.
REPEAT: Final = 10
DELTA: Final = 0.05


def check_simulated(arguments: argparse.Namespace) -> None:
    """Raise `InvalidParameter` for what an attack on a simulated system cannot take; then fill in the defaults."""
    if arguments.epsilon is None:
        raise InvalidParameter("--epsilon is needed: the budget of the simulated system (or give --oracle)")
    for name in OWN:
        if getattr(arguments, name) is not None:
            raise InvalidParameter(f"--{name} is of your own system: give --oracle, or --ask FILE, too")
    if not arguments.epsilon >= SMALLEST_EPSILON:
        raise InvalidParameter(f"--epsilon {arguments.epsilon:g} must be at least {SMALLEST_EPSILON:g}")
    if arguments.repeat is not None and not 1 <= arguments.repeat <= 1_000_000:
        raise InvalidParameter(f"--repeat {arguments.repeat} must be from 1 to 1000000")
    if arguments.share is not None and not 0 < arguments.share < 1:
        raise InvalidParameter(f"--share {arguments.share:g} must lie between 0 and 1")
    if arguments.share is not None and arguments.support is not None:
        raise InvalidParameter("--share has no meaning with --support, which buys no totals: leave it out")
    if arguments.adaptive and arguments.beta is not None:
        raise InvalidParameter("--beta is of Algorithms 3 and 4: the adaptive attack chooses its copies by ε₂")
    _check_both(arguments, adaptive=arguments.adaptive)
    arguments.repeat = REPEAT if arguments.repeat is None else arguments.repeat


def check_own(arguments: argparse.Namespace) -> None:
    """Raise `InvalidParameter` for what an attack on the user's system cannot take; then fill in the defaults."""
    for name in SIMULATED:
        if getattr(arguments, name) is not None:
            raise InvalidParameter(f"--{name} is of the simulated system: leave it out where you attack your own")
    if arguments.cells is not None and not 2 <= arguments.cells <= LARGEST_CELLS:
        raise InvalidParameter(f"--cells {arguments.cells} must be from 2 to {LARGEST_CELLS}")
    _check_both(arguments, adaptive=arguments.support is None)


def _check_both(arguments: argparse.Namespace, *, adaptive: bool) -> None:
    """What both have in common."""
    if not arguments.epsilon2 >= SMALLEST_EPSILON:
        raise InvalidParameter(
            f"--epsilon2 {arguments.epsilon2:g} must be at least {SMALLEST_EPSILON:g}, "
            "or inf for no noise on the queries"
        )
    if arguments.copies is not None and not 1 <= arguments.copies <= MOST_COPIES:
        raise InvalidParameter(f"--copies {arguments.copies} must be from 1 to 10^12")
    if adaptive and arguments.copies is not None and math.isinf(arguments.epsilon2):
        raise InvalidParameter("--copies says nothing where queries have no noise: give --epsilon2, or leave it out")
    if adaptive and arguments.delta is not None:
        raise InvalidParameter("--delta is of Algorithms 3 and 4, not of the adaptive attack: leave it out")
    arguments.delta = DELTA if arguments.delta is None else arguments.delta
