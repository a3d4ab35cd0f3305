"""A witness made as small as it will go: fewer and rounder numbers, a simpler event; confirmed like any other."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dpwitness.api.checking import confirm_candidate
from dpwitness.api.door import public
from dpwitness.api.loop import prepared
from dpwitness.api.replaying import replay
from dpwitness.api.witnessed import AnyWitness, about, as_witness, relation_of, rows_of, statement_of
from dpwitness.checks import seconds
from dpwitness.effort import CHECK_RUNS, Effort
from dpwitness.errors import InvalidWitness, MechanismError, MechanismTimeout
from dpwitness.mechanisms.catalog import load_registered
from dpwitness.mechanisms.made import given_or_made
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import Outcome
from dpwitness.neighbours import Relation, require_adjacent
from dpwitness.problem import Problem
from dpwitness.results.verdict import Verdict, Violation
from dpwitness.results.witness import Witness
from dpwitness.runs import Runner
from dpwitness.search.shrinking import smallest

SHRINK_TIME: Final = 10.0


@public
def shrink(
    violation: Violation | AnyWitness,
    mechanism: Callable[..., Any] | Mechanism | str | None = None,
    *,
    make: Callable[[], Any] | None = None,
    neighbours: Relation | Sequence[Any] | None = None,
    data: Any = None,
    outcome: Outcome | None = None,
    errors: str = "raise",
    runs: int = CHECK_RUNS,
    max_time: float | str = SHRINK_TIME,
    workers: int | None = None,
) -> Violation:
    """Make a witness as small as it will go, confirmed on fresh runs; else `violation` comes back as it is.

    Every step stays within the relation of the witness, or within `neighbours`; where the witness has `data`, or where
    they are given here, its inputs stay as they are and only the event gets simpler. Where the mechanism fails
    meanwhile, a note of the violation says so. In place of a violation a witness may be given, its file, or what a file
    holds, as for `replay`: it is replayed first, since a file proves nothing. `mechanism`, `make` as in `replay`;
    `max_time` in seconds. Raises `InvalidNeighbours` for a witness outside of `neighbours`, `InvalidWitness` for one
    that fresh runs do not refute the claim with.
    """
    if not isinstance(violation, Violation):
        violation = _seen_again(
            as_witness(violation), mechanism, make=make, neighbours=neighbours, data=data, outcome=outcome,
            errors=errors, max_time=max_time, workers=workers,
        )  # fmt: skip
    old = violation.witness
    if mechanism is None and make is None:
        mechanism = load_registered(old.mechanism)
    mechanism = given_or_made(mechanism, make)
    relation, given = relation_of(old, neighbours, data)
    require_adjacent(relation, old.pair, given, what="the witness's pair")
    seed = int(np.random.SeedSequence((violation.seed, 0x5347)).generate_state(1, np.uint64)[0])
    effort = Effort(
        alpha=violation.alpha, max_runs=runs, max_time=seconds("max_time", max_time), seed=seed, workers=workers
    )
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


def _seen_again(witness: Witness, mechanism: Any, **settings: Any) -> Violation:
    """A witness on fresh runs. Raises `InvalidWitness` where they do not refute its claim."""
    verdict = replay(witness, mechanism, **settings)
    if not isinstance(verdict, Violation):
        raise InvalidWitness(f"there is nothing to shrink: fresh runs did not refute the claim ({verdict!r})")
    return verdict
