"""A witness again: counted on fresh runs, or made smaller first; judged by a claim, a relation and a mechanism."""

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from typing import Any, Final

import numpy as np

from dpwitness.claim import Claim
from dpwitness.errors import InvalidParameter, MechanismError, MechanismTimeout
from dpwitness.evidence import runs_needed
from dpwitness.job import MAX_TIME, Job, Progress, plain_function
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import Outcome as OutcomeFunction
from dpwitness.mechanisms.signature import takes
from dpwitness.neighbours import Data, Pairs, Relation, as_input, require_adjacent
from dpwitness.pipeline import CHECK_RUNS, confirm_job
from dpwitness.preparation import check_limits, compiled_first, prepare
from dpwitness.results.verdict import Verdict, Violation
from dpwitness.results.witness import Witness
from dpwitness.search.learners.learn import Found
from dpwitness.search.shrinking import smallest
from dpwitness.targets import target_of

__all__ = ["replay", "shrink"]

SHRINK_TIME: Final = 10.0


def replay(
    witness: Witness,
    mechanism: Callable[..., Any] | Mechanism | str | None = None,
    *,
    neighbours: Relation | None = None,
    data: Any = None,
    claim: Claim | float | None = None,
    delta: float | None = None,
    alpha: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    outcome: OutcomeFunction | None = None,
    max_runs: int | None = None,
    max_time: float = MAX_TIME,
    seed: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Count a witness's event on fresh runs of its pair: no search, a new seed.

    Parameters
    ----------
    mechanism
        A callable, or the name of a bundled target; by default the bundled target that the witness names. A witness
        file is data from somewhere, and never decides which code runs.
    neighbours, data
        The relation of the claim, and D, that the pair must belong to; by default those of the witness.
    claim, delta, alpha
        What is tested, and the probability of a false alarm; by default those of the witness. The verdict shows them.
    parameters
        Of the mechanism, in place of the witness's of the same names.
    max_runs
        Paired runs; by default ten times those that the witness took, and at least 100,000.
    seed
        Not the witness's own, whose runs would only be repeated.

    Raises `InvalidNeighbours` for a pair that is not adjacent under the relation, `InvalidParameter` for a mechanism
    that does not take the witness's parameters; else as `check`.
    """
    alpha = witness.alpha if alpha is None else alpha
    check_limits(alpha, 1 if max_runs is None else max_runs, max_time)
    stated = _replayed_claim(witness.claim, claim, delta)
    needed = runs_needed(stated, alpha)
    limit = max(10 * witness.counts.runs, 100_000, needed) if max_runs is None else max_runs
    relation, given = _relation_of(witness, neighbours, data)
    require_adjacent(relation, witness.pair, given, what="the witness's pair")
    if seed == witness.seed:
        raise InvalidParameter(f"seed={seed} made this witness: its runs are not fresh; give another seed, or none")
    while seed is None or seed == witness.seed:
        seed = secrets.randbits(32)
    reference = witness.mechanism if mechanism is None else mechanism if isinstance(mechanism, str) else None
    if reference is not None:
        from dpwitness.mechanisms.catalog import load_registered

        mechanism = load_registered(reference)
    own = witness.parameters | dict(parameters or {})
    _check_parameters(witness, mechanism, own, parameters or {})
    if neighbours is None:
        _require_targets_own(witness, mechanism, own)
    found = Found(event=witness.event, swapped=False, estimate=witness.estimate, value=0.0)

    def ready(interpreted: bool) -> Job:
        return _job_of(
            witness,
            mechanism,
            relation,
            given,
            parameters=own,
            outcome=outcome,
            seed=seed,
            workers=workers,
            time=max_time,
            reference=reference,
            interpreted=interpreted,
        )

    def work(job: Job) -> Verdict:
        return confirm_job(job, stated, alpha, witness.pair, found, limit, 0, progress)

    return compiled_first(ready, work)


def shrink(
    violation: Violation,
    mechanism: Callable[..., Any] | Mechanism,
    *,
    neighbours: Relation | None = None,
    data: Any = None,
    outcome: OutcomeFunction | None = None,
    max_runs: int = CHECK_RUNS,
    max_time: float = SHRINK_TIME,
    workers: int | None = None,
) -> Violation:
    """Make a witness as small as it will go, confirmed on fresh runs; else `violation` comes back as it is.

    Every step stays within the relation of the witness, or within `neighbours`; where the witness has `data`, or where
    they are given here, its inputs stay as they are and only the event gets simpler. Where the mechanism fails
    meanwhile, a note of the violation says so. Raises `InvalidNeighbours` for a witness outside of `neighbours`.
    """
    old, claim, alpha = violation.witness, violation.claim, violation.alpha
    relation, given = _relation_of(old, neighbours, data)
    require_adjacent(relation, old.pair, given, what="the witness's pair")
    seed = int(np.random.SeedSequence((violation.seed, 0x5347)).generate_state(1, np.uint64)[0])
    try:
        job = _job_of(
            old,
            mechanism,
            relation,
            given,
            parameters=old.parameters,
            outcome=outcome,
            seed=seed,
            workers=workers,
            time=max_time,
        )
        small = smallest(
            job.mechanism,
            relation,
            old.pair,
            old.event,
            data=given,
            claim=claim,
            alpha=alpha,
            seed=seed,
            max_runs=max_runs,
            max_time=max_time,
            workers=job.workers,
        )
        if small is None:
            return violation
        found = Found(event=small.event, swapped=False, estimate=small.estimate, value=math.nan)
        verdict = confirm_job(job, claim, alpha, small.pair, found, max_runs, small.search_runs, None)
    except MechanismTimeout:
        return violation  # what was proved stands, whatever the time for making it smaller was
    except MechanismError as error:
        return replace(violation, notes=(*violation.notes, f"it could not be made smaller: {error}"))
    if verdict.ended == "interrupted":
        raise KeyboardInterrupt
    if not isinstance(verdict, Violation):
        return violation
    return replace(
        verdict,
        search_runs=violation.search_runs + violation.counts.runs + small.search_runs,
        seconds=violation.seconds + verdict.seconds,
        notes=violation.notes,
    )


def _replayed_claim(stated: Claim, claim: Claim | float | None, delta: float | None) -> Claim:
    """The claim of a witness, with what is given in its place."""
    if isinstance(claim, Claim):
        if delta is not None and delta != claim.delta:
            raise InvalidParameter(f"delta={delta!r} is not the δ of claim={claim}: give one of the two")
        return claim
    return Claim(epsilon=stated.epsilon if claim is None else claim, delta=stated.delta if delta is None else delta)


def _relation_of(witness: Witness, neighbours: Relation | None, data: Any) -> tuple[Relation, Data | None]:
    """The relation and D that a witness is judged by: those given, else its own, else its pair alone.

    With a relation given, the witness's own data count for nothing: they would decide which lengths are adjacent.
    """
    given = None if data is None else as_input(data)
    if neighbours is not None:
        return neighbours, given
    if witness.relation is not None:
        return witness.relation, witness.data if given is None else given
    return Pairs((witness.pair,)), given


def _require_targets_own(witness: Witness, mechanism: Any, parameters: Mapping[str, Any]) -> None:
    """Raise `InvalidNeighbours` for a pair that the relation of a target does not call adjacent.

    A file must not say by itself which inputs a claim calls adjacent: only the user may.
    """
    target = target_of(plain_function(mechanism))
    if target is None:
        return
    relation = target.neighbours
    sensitivity = parameters.get("sensitivity")
    if isinstance(sensitivity, int | float) and hasattr(relation, "sensitivity") and is_dataclass(relation):
        relation = replace(relation, sensitivity=float(sensitivity))
    require_adjacent(
        relation, witness.pair, what="the witness's pair, unless you give its relation (neighbours=, --pair),"
    )


def _job_of(
    witness: Witness,
    mechanism: Any,
    relation: Relation,
    data: Data | None,
    *,
    parameters: Mapping[str, Any],
    outcome: OutcomeFunction | None,
    seed: int,
    workers: int | None,
    time: float,
    reference: str | None = None,
    interpreted: bool = False,
) -> Job:
    """A job about a witness's pair: the mechanism is made ready on the pair, not on a candidate of another shape.

    `reference`: the name under which the mechanism was found; by default the witness's where the function is called so.
    """
    name = getattr(mechanism, "name", None) or getattr(mechanism, "__name__", None)
    named = witness.mechanism.rpartition(":")[2].rpartition(".")[2] == name
    reference = reference or (witness.mechanism if named else None)
    pair = Pairs((witness.pair,), relation.noun)
    job = prepare(
        mechanism, None, pair, None, parameters, outcome, seed, workers, time, reference, interpreted=interpreted
    )
    return replace(job, relation=relation, data=data)


def _check_parameters(witness: Witness, mechanism: Any, own: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise `InvalidParameter` where a mechanism cannot be the one that a witness is about."""
    if isinstance(mechanism, Mechanism):
        return  # made ready elsewhere, with its parameters
    for name in witness.unreadable:
        if name not in given:
            raise InvalidParameter(
                f"the parameter {name}={own[name]!r:.80} of {witness.mechanism} is nothing that a file can hold: give "
                f"parameters={{{name!r}: …}}"
            )
    for name in own:
        if not takes(mechanism, name):
            shown = getattr(mechanism, "__name__", type(mechanism).__name__)
            raise InvalidParameter(
                f"{shown} has no parameter {name!r}, which the witness gives to {witness.mechanism}: replay it against "
                "a mechanism with the same parameters"
            )
