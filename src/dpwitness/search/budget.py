"""How many search runs: as given, as usual for compiled code, or what fits in a share of the time."""

import math
from typing import Final

from dpwitness.claims import Claim
from dpwitness.errors import BudgetTooSmall
from dpwitness.problem import Problem
from dpwitness.runs import Runner

SEARCH_RUNS: Final = 600_000
FEWEST: Final = 64


def usual_runs(claim: Claim) -> int:
    """Search runs for a claim: a violation by a given share of ε is the harder to see, the smaller ε is."""
    return int(SEARCH_RUNS * min(max(0.7 / max(claim.parameter, 1e-9), 1.0), 4.0))


def search_budget(problem: Problem, runner: Runner, given: int | None, usual: int) -> int:
    """Paired search runs: as given; as usual for compiled code; for slow code what fits in a part of the time."""
    if given == 0:
        raise BudgetTooSmall("search_runs=0 is for check alone, which can bet from the first run on: give at least 1")
    if given is not None:
        return given
    cost = problem.mechanism.cost
    if cost.compiled:
        return usual
    # Rounded to a power of ten, so that a small change of speed does not change the search.
    share = 4 if cost.batched else 8  # plain Python slows down most when the machine is busy
    fits = 10 ** math.floor(math.log10(max(runner.max_time / share / (2 * max(cost.seconds_per_run, 1e-9)), 1)))
    return int(min(usual, max(fits, FEWEST)))
