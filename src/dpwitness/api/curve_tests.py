"""Which tests a curve makes, of ε or of another family's parameter, which events they are made with, and how many runs.

Everything here is fixed before the runs that the p-values are computed from.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpwitness.candidate import Estimate
from dpwitness.claims import ApproxDP, Claim
from dpwitness.neighbours import Pair
from dpwitness.problem import Problem
from dpwitness.runs import Runner
from dpwitness.search.find import learned
from dpwitness.search.halving import search
from dpwitness.search.learners import RatedEvent, learn
from dpwitness.search.objectives import BoundAt, GrowthAt, Objective, ParameterAt, PowerAt
from dpwitness.search.ranking import playoff

__all__ = ["CURVE_RUNS", "CurveTests", "most_runs", "pool_of", "runs_to_exclude"]

CURVE_RUNS: Final = 1_500_000
CLEAR: Final = 7.5  # standard errors; a p-value of 10⁻⁶ takes 4.8
#: log(1/α) of the bounds that events are chosen by.
THRESHOLD: Final = math.log(1e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveTests:
    """The claims that a curve tests: every parameter of a `family` in `values`, or every ε at δ where that is None."""

    values: tuple[float, ...]
    delta: float = 0.0
    family: Claim | None = None

    @property
    def claims(self) -> list[Claim]:
        """The claim of each test. Raises `InvalidClaim` for a parameter that the family does not have."""
        return [self.of(value) for value in self.values]

    def of(self, value: float) -> Claim:
        """The claim with one parameter."""
        if self.family is None:
            return ApproxDP(value, self.delta)
        return self.family.at(value)

    def power(self, value: float) -> Objective:
        """What events are chosen by for one test."""
        if self.family is None:
            return PowerAt(epsilon=value, delta=self.delta)
        return GrowthAt(claim=self.of(value), planned=CURVE_RUNS, log_threshold=THRESHOLD)

    def widest(self, planned: int) -> Objective:
        """What pairs are chosen by."""
        if self.family is None:
            return BoundAt(planned=planned, log_threshold=THRESHOLD, delta=self.delta)
        return ParameterAt(claim=self.family, planned=planned, log_threshold=THRESHOLD)

    def best_of(self, pool: Sequence[RatedEvent]) -> list[int]:
        """For each test the event of largest power, by the search's estimates."""
        p, q = np.array([f.estimate.p for f in pool]), np.array([f.estimate.q for f in pool])
        return [int(np.argmax(self.power(value)(p, q, 100_000))) for value in self.values]

    def most_runs(self, epsilon: float) -> int:
        """At most so many confirm runs, for a mechanism's ε."""
        return most_runs(epsilon) if self.family is None else CURVE_RUNS

    def runs_needed(self, estimate: Estimate, runs: int, epsilon: float) -> int:
        """Confirm runs that the tests near ε ask for; of other families as many as is usual."""
        return runs_to_exclude(estimate, runs, epsilon, self.delta) if self.family is None else CURVE_RUNS


def pool_of(
    problem: Problem, runner: Runner, tests: CurveTests, planned: int, budget: int
) -> tuple[Pair, list[RatedEvent], int]:
    """A pair and a handful of events for all tests, each once, and the search runs spent.

    The event of the largest bound, and what is best at a few parameters on the way.
    """
    searching, wide = runner.searching(), tests.widest(planned)
    finalists, spent = search(problem, searching, wide, budget)
    entries = learned(searching, finalists, wide, 3)
    best, more = playoff(searching, entries, wide, budget) if len(entries) > 1 else (entries[0], 0)
    spots = np.unique(np.quantile(tests.values, (0, 0.25, 0.5, 0.75, 1), method="nearest"))
    powers = [tests.power(float(spot)) for spot in spots]
    pool = [best.found, *(found for power in powers for found in learn(finalists[best.place].sample, power, most=1))]
    different = {(str(found.event.to_json()), found.swapped): found for found in pool}
    return best.pair, list(different.values()), spent + more


def most_runs(epsilon: float) -> int:
    """At most so many confirm runs for a curve: to see the same share of ε, their number must grow as 1/ε²."""
    return int(CURVE_RUNS * min(max(1 / max(epsilon, 1e-9), 1.0) ** 2, 15.0))


def runs_to_exclude(estimate: Estimate, runs: int, epsilon: float, delta: float) -> int:
    """Confirm runs of a curve that put 80 % of ε `CLEAR` standard errors away; of the ε shown where that is less.

    `runs`: how many the estimate is from; it is lowered by one standard error.
    """
    apparent = math.log(max(estimate.p - delta, 1e-30) / max(estimate.q, 1e-30))
    if apparent <= 0:
        return CURVE_RUNS
    excluded = 0.8 * (epsilon if apparent > 0.8 * epsilon else apparent)
    p, q = np.array([estimate.p]), np.array([estimate.q])
    power = float(PowerAt(epsilon=excluded, delta=delta)(p, q, runs)[0]) - 1 / math.sqrt(runs)
    return int(min(max((CLEAR / max(power, 1e-9)) ** 2, CURVE_RUNS), most_runs(epsilon)))
