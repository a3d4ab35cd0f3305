"""What must hold before the runs: that they can be enough for a violation to be proved."""

from typing import Final

from dpwitness.claims import Claim
from dpwitness.effort import Effort
from dpwitness.errors import BudgetTooSmall
from dpwitness.evidence import runs_needed

__all__ = ["require_budget"]

#: Runs that nobody makes.
MOST: Final = 10**18


def require_budget(claim: Claim, effort: Effort) -> None:
    """Raise `BudgetTooSmall` where not even the clearest violation could be refuted."""
    needed = runs_needed(claim, effort.alpha)
    if needed >= MOST:
        raise BudgetTooSmall(
            f"claim={claim}: no test can refute it: even the clearest violation at alpha={effort.alpha:g} would need "
            "more than 10^18 runs"
        )
    if effort.max_runs < needed:
        raise BudgetTooSmall(
            f"runs={effort.max_runs} is too small: even the clearest violation of {claim} at "
            f"alpha={effort.alpha:g} needs {needed} runs; give at least that many"
        )
