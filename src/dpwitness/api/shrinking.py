"""A witness made as small as it will go: fewer and rounder numbers, a simpler event; confirmed like any other."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dpwitness.api.checking import confirm_candidate
from dpwitness.api.loop import prepared
from dpwitness.api.witnessed import about, relation_of, rows_of, statement_of
from dpwitness.effort import CHECK_RUNS, Effort
from dpwitness.errors import MechanismError, MechanismTimeout
from dpwitness.mechanisms.made import given_or_made
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import Outcome
from dpwitness.neighbours import Relation, require_adjacent
from dpwitness.problem import Problem
from dpwitness.results.verdict import Verdict, Violation
from dpwitness.runs import Runner
from dpwitness.search.shrinking import smallest

SHRINK_TIME: Final = 10.0


def shrink(
    violation: Violation,
    mechanism: Callable[..., Any] | Mechanism | None = None,
    *,
    make: Callable[[], Any] | None = None,
    neighbours: Relation | None = None,
    data: Any = None,
    outcome: Outcome | None = None,
    errors: str = "raise",
    max_runs: int = CHECK_RUNS,
    max_time: float = SHRINK_TIME,
    workers: int | None = None,
) -> Violation:
    """Make a witness as small as it will go, confirmed on fresh runs; else `violation` comes back as it is.

    Every step stays within the relation of the witness, or within `neighbours`; where the witness has `data`, or where
    they are given here, its inputs stay as they are and only the event gets simpler. Where the mechanism fails
    meanwhile, a note of the violation says so. `make` as in `check`; `max_time` in seconds. Raises `InvalidNeighbours`
    for a witness outside of `neighbours`.
    """
    mechanism, old = given_or_made(mechanism, make), violation.witness
    relation, given = relation_of(old, neighbours, data)
    require_adjacent(relation, old.pair, given, what="the witness's pair")
    seed = int(np.random.SeedSequence((violation.seed, 0x5347)).generate_state(1, np.uint64)[0])
    effort = Effort(alpha=violation.alpha, max_runs=max_runs, max_time=max_time, seed=seed, workers=workers)
    statement = statement_of(
        old, mechanism, claim=violation.claim, parameters=old.parameters, reference=None, outcome=outcome, errors=errors
    )

    def work(problem: Problem, runner: Runner) -> Verdict | None:
        problem = about(problem, relation, given)
        small, spent = smallest(problem, runner, effort, old.pair, old.event)
        return None if small is None else confirm_candidate(problem, runner, effort, small, spent=spent)

    try:
        verdict = prepared(statement, effort, work, rows_of(old))
    except MechanismTimeout:
        return violation  # what was proved stands, whatever the time for making it smaller was
    except MechanismError as error:
        return replace(violation, notes=(*violation.notes, f"it could not be made smaller: {error}"))
    if verdict is not None and verdict.ended == "interrupted":
        raise KeyboardInterrupt
    if not isinstance(verdict, Violation):
        return violation
    return replace(
        verdict,
        search_runs=violation.search_runs + violation.counts.runs + verdict.search_runs,
        seconds=violation.seconds + verdict.seconds,
        notes=violation.notes,
        others=violation.others,
    )
