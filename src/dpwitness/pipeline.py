"""The road of one check: here, and for whole figures in `curves`, search, runs and evidence meet; nowhere else.

claim → neighbours → runs → outcomes → search ‖ fresh runs → counts → evidence → verdict
"""

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dpwitness.adapters import Outcome as OutcomeFunction
from dpwitness.adapters import stated_claim
from dpwitness.claim import Claim
from dpwitness.counts import Counts
from dpwitness.errors import BudgetTooSmall, InvalidParameter, MechanismError, MechanismTimeout
from dpwitness.evidence import (
    detectable_epsilon,
    epsilon_lower_bound,
    growth_rate,
    log_e_value,
    runs_needed,
)
from dpwitness.job import (
    MAX_TIME,
    Job,
    Progress,
    check_limits,
    find,
    plain,
    prepare,
    search_budget,
    usual_search,
)
from dpwitness.learn import Found
from dpwitness.mechanism import Mechanism
from dpwitness.neighbours import Pair, Relation, require_adjacent
from dpwitness.objectives import BoundAt, GrowthAt
from dpwitness.runs import confirm
from dpwitness.shrinking import smallest
from dpwitness.verdict import Bound, NotRefuted, Verdict, Violation
from dpwitness.witness import Witness
from dpwitness.witness_job import check_parameters, job_of, relation_of, replayed_claim

__all__ = ["bound", "check", "replay", "shrink"]

CHECK_RUNS: Final = 4_000_000
BOUND_RUNS: Final = 20_000_000
SHRINK_TIME: Final = 10.0


def check(
    mechanism: Callable[..., Any] | Mechanism,
    *,
    epsilon: float | None = None,
    claim: float | None = None,
    delta: float | None = None,
    d_in: Any = None,
    neighbours: Relation | None = None,
    data: Any = None,
    parameters: Mapping[str, Any] | None = None,
    outcome: OutcomeFunction | None = None,
    alpha: float = 1e-6,
    max_runs: int = CHECK_RUNS,
    max_time: float = MAX_TIME,
    search_runs: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    reference: str | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Look for a witness against (claim, delta)-differential privacy and prove it on fresh runs.

    Parameters
    ----------
    mechanism
        A function of a generator, data and parameters; see `dpwitness.mechanism`.
    epsilon
        The mechanism's own parameter, where it has one of that name; and the claim, unless `claim` says another. Nats.
        By default what the object itself claims: diffprivlib's `.epsilon`, OpenDP's `map(d_in)`.
    neighbours
        A relation, such as `queries(10)` or `pairs(([1, 1], [2, 0]))`; by default that of a target.
    data
        D, around which the relation makes the neighbours.
    alpha
        The probability of a false alarm: at most this, however often one looks.
    max_runs, max_time
        Paired confirm runs, and seconds for everything together.
    search_runs
        Paired search runs; they find the event and are then thrown away.

    Raises `BadInput` for what cannot be used, `MechanismError` when the mechanism misbehaves.
    """
    own = stated_claim(mechanism, epsilon=epsilon, delta=delta, claim=claim, d_in=d_in)
    epsilon, delta = own.epsilon, own.delta
    stated = own if claim is None else Claim(epsilon=claim, delta=delta)
    check_limits(alpha, max_runs, max_time)
    needed = runs_needed(stated, alpha)
    if max_runs < needed:
        raise BudgetTooSmall(
            f"max_runs={max_runs} is too small: even the clearest violation of {stated} at alpha={alpha:g} needs "
            f"{needed} runs; give at least that many"
        )
    job = prepare(mechanism, epsilon, neighbours, data, parameters, outcome, seed, workers, max_time, reference)
    budget = search_budget(job, search_runs, min(usual_search(stated.epsilon), max_runs))
    objective = GrowthAt(epsilon=stated.epsilon, delta=delta)
    # A pair so good is proved in a twentieth of the search; and none grows faster than D always in, D′ never.
    enough = min(20 * math.log(1 / alpha) / budget, float(growth_rate(1.0, 0.0, stated.epsilon, delta)) / 2)
    pair, found, spent = find(
        job,
        function=mechanism,
        claim=stated,
        runs=max_runs,
        objective=objective,
        budget=budget,
        enough=enough,
        progress=progress,
    )
    return _confirm(job, stated, alpha, pair, found, max_runs, spent, progress)


def _confirm(
    job: Job,
    claim: Claim,
    alpha: float,
    pair: Pair,
    found: Found,
    max_runs: int,
    spent: int,
    progress: Progress | None,
) -> Verdict:
    """Right of ‖: fresh runs of a fixed pair and a fixed event until the claim is refuted or the runs are over."""
    bar = math.log(1 / alpha)
    counts, log_e, ended = Counts(), 0.0, "runs"
    try:
        for (counts,) in confirm(
            job.mechanism,
            pair,
            [found.event],
            seed=job.seed,
            max_runs=max_runs,
            workers=job.workers,
            deadline=job.deadline,
        ):
            log_e = log_e_value(counts, claim, found.estimate)
            if progress is not None:
                progress("confirm", counts.runs, max_runs, f"log e-value {log_e:.1f} of {bar:.1f}")
            if log_e >= bar:
                ended = "refuted"
                break
        else:
            ended = "runs" if counts.runs >= max_runs else "time"
    except KeyboardInterrupt:
        ended = "interrupted"  # what was counted is kept: the e-value is valid at any time
    common: dict[str, Any] = {
        "mechanism": job.mechanism.name,
        "parameters": {k: plain(v) for k, v in job.mechanism.signature.parameters.items()},
        "claim": claim,
        "alpha": alpha,
        "log_e_value": log_e,
        "epsilon_lower_bound": epsilon_lower_bound(counts, delta=claim.delta, alpha=alpha, hint=found.estimate),
        "witness": job.witness(claim, alpha, pair, found, counts),
        "search_runs": spent,
        "seed": job.seed,
        "reproducible": job.mechanism.reproducible,
        "ended": ended,
    }
    if log_e >= bar:
        return Violation(**common, seconds=job.seconds)
    detectable = detectable_epsilon(counts, claim, alpha=alpha, hint=found.estimate)
    return NotRefuted(**common, detectable_epsilon=detectable, seconds=job.seconds)


def bound(
    mechanism: Callable[..., Any] | Mechanism,
    *,
    epsilon: float,
    delta: float = 0.0,
    confidence: float = 0.999,
    runs: int = BOUND_RUNS,
    neighbours: Relation | None = None,
    data: Any = None,
    parameters: Mapping[str, Any] | None = None,
    outcome: OutcomeFunction | None = None,
    max_time: float = 600.0,
    search_runs: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    reference: str | None = None,
    progress: Progress | None = None,
) -> Bound:
    """Find the largest ε that the mechanism can be shown to exceed, with the given confidence.

    Searches for the event whose lower bound promises most at `runs` paired confirm runs, then spends all of them on it.
    Other parameters and errors as in `check`.
    """
    claim = Claim(epsilon=0.0, delta=delta)
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence={confidence!r} must lie between 0 and 1")
    alpha = 1 - confidence
    check_limits(alpha, runs, max_time)
    job = prepare(mechanism, epsilon, neighbours, data, parameters, outcome, seed, workers, max_time, reference)
    budget = search_budget(job, search_runs, min(max(runs // 4, 100_000), 8_000_000))
    planned = runs if job.mechanism.threads else min(runs, 4 * budget)  # of slow code what fits in the time
    objective = BoundAt(planned=planned, log_bar=math.log(1 / alpha), delta=delta)
    pair, found, spent = find(
        job, function=mechanism, claim=claim, runs=runs, objective=objective, budget=budget, progress=progress
    )
    counts, ended = Counts(), "runs"
    try:
        for (counts,) in confirm(
            job.mechanism, pair, [found.event], seed=job.seed, max_runs=runs, workers=job.workers, deadline=job.deadline
        ):
            if progress is not None:
                progress("confirm", counts.runs, runs, "")
        ended = "runs" if counts.runs >= runs else "time"
    except KeyboardInterrupt:
        ended = "interrupted"  # the bound is valid at any time
    lower = epsilon_lower_bound(counts, delta=delta, alpha=alpha, hint=found.estimate)
    return Bound(
        mechanism=job.mechanism.name,
        parameters={k: plain(v) for k, v in job.mechanism.signature.parameters.items()},
        delta=delta,
        confidence=confidence,
        epsilon_lower_bound=lower,
        witness=job.witness(claim, alpha, pair, found, counts),
        search_runs=spent,
        seed=job.seed,
        reproducible=job.mechanism.reproducible,
        seconds=job.seconds,
        ended=ended,
    )


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
    stated = replayed_claim(witness.claim, claim, delta)
    needed = runs_needed(stated, alpha)
    limit = max(10 * witness.counts.runs, 100_000, needed) if max_runs is None else max_runs
    relation, given = relation_of(witness, neighbours, data)
    require_adjacent(relation, witness.pair, given, what="the witness's pair")
    if seed == witness.seed:
        raise InvalidParameter(f"seed={seed} made this witness: its runs are not fresh; give another seed, or none")
    while seed is None or seed == witness.seed:
        seed = secrets.randbits(32)
    reference = witness.mechanism if mechanism is None else mechanism if isinstance(mechanism, str) else None
    if reference is not None:
        from dpwitness.catalog import load_registered

        mechanism = load_registered(reference)
    own = witness.parameters | dict(parameters or {})
    check_parameters(witness, mechanism, own, parameters or {})
    job = job_of(
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
    )
    found = Found(event=witness.event, swapped=False, estimate=witness.estimate, value=0.0)
    return _confirm(job, stated, alpha, witness.pair, found, limit, 0, progress)


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
    relation, given = relation_of(old, neighbours, data)
    require_adjacent(relation, old.pair, given, what="the witness's pair")
    seed = int(np.random.SeedSequence((violation.seed, 0x5347)).generate_state(1, np.uint64)[0])
    try:
        job = job_of(
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
        verdict = _confirm(job, claim, alpha, small.pair, found, max_runs, small.search_runs, None)
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
