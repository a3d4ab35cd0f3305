"""The cut of a candidate placed anew, on as many runs as it takes: what no memory holds can still be counted.

Where many more confirm runs are planned than the search had, the best event may be too rare for the search to have seen
what it shows. Everything here is made of search runs and is never evidence.
"""

import math
from dataclasses import replace
from typing import Final

import numpy as np

from dpwitness.candidate import Candidate, Estimate, Tally
from dpwitness.errors import MechanismTimeout
from dpwitness.events import Nested, around, thresholds_of
from dpwitness.runs import Role, Runner
from dpwitness.search.objectives import Objective, value_of

__all__ = ["refined"]

#: Confirm runs for each search run from which on the cut is placed anew, what part of them it takes, and at most.
MANY: Final = 20
PART: Final = 10
MOST_RUNS: Final = 20_000_000
#: Runs whose outcomes are held to find the places of cuts.
SEEN: Final = 1_000_000
#: How much rarer and more frequent events are tried.
FACTORS: Final = tuple(float(factor) for factor in np.geomspace(1 / 24, 6, 24))


def refined(
    runner: Runner, candidate: Candidate, objective: Objective, *, planned: int, budget: int
) -> tuple[Candidate, int]:
    """The candidate with the cut that promises most, of rarer and more frequent ones, and the paired runs spent.

    `planned`: confirm runs; `budget`: search runs so far. Nothing is tried where these are not many fewer, where runs
    are not cheap, or where the candidate is good enough.
    """
    estimate, event = candidate.estimate, candidate.event
    assert estimate is not None  # of a search
    if planned < MANY * budget or not runner.mechanism.cost.compiled or not thresholds_of(event):
        return candidate, 0
    if value_of(estimate, objective, budget) >= objective.stop_value:
        return candidate, 0
    runs, spent = min(planned // PART, MOST_RUNS), 0
    try:
        rows, _ = runner.sample(candidate.pair, SEEN, Role.REFINEMENT, 0)
        spent = SEEN
        nested = Nested(tuple(around(event, rows, FACTORS)))
        if not nested.events:
            return candidate, spent
        tally = runner.tally(candidate.pair, nested, runs, Role.REFINEMENT, 1)
    except MechanismTimeout:
        return candidate, spent
    estimates = _estimates(tally, len(nested.events))
    values = [value_of(found, objective, runs) for found in estimates]
    best = int(np.argmax(values))
    if values[best] <= value_of(estimate, objective, budget):
        return candidate, SEEN + runs
    return replace(candidate, event=nested.events[best], estimate=estimates[best]), SEEN + runs


def _estimates(tally: Tally, events: int) -> list[Estimate]:
    """The rates of each of the nested events, by the table of how many of them hold the outcome."""
    k = math.isqrt(len(tally.cells))
    table = np.array(tally.cells, np.float64).reshape(k, k) / tally.runs
    found = []
    for number in range(events):
        least = events - number  # what lies in the smallest event lies in all of them
        p, q, both = table[least:].sum(), table[:, least:].sum(), table[least:, least:].sum()
        found.append(Estimate(p=min(float(p), 1.0), q=min(float(q), 1.0), both=min(float(both), float(p), float(q))))
    return found
