"""The road of one check: here, and for whole figures in `curves`, search, runs and evidence meet; nowhere else.

claim → neighbours → runs → outcomes → search ‖ fresh runs → counts → evidence → verdict
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dpwitness.claim import Claim
from dpwitness.counts import Counts
from dpwitness.errors import BudgetTooSmall, InvalidParameter
from dpwitness.evidence import (
    detectable_epsilon,
    epsilon_lower_bound,
    growth_rate,
    log_e_value,
    rare_event,
    runs_needed,
)
from dpwitness.health import early as health
from dpwitness.health.conviction import Shards, examine, examine_pass
from dpwitness.job import MAX_TIME, Job, Progress, find, plain
from dpwitness.mechanisms.carried import stated_claim
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import Outcome as OutcomeFunction
from dpwitness.neighbours import Pair, Relation
from dpwitness.preparation import check_limits, compiled_first, number, prepare, search_budget, usual_search
from dpwitness.results.bound import Bound
from dpwitness.results.verdict import NotRefuted, Verdict, Violation
from dpwitness.runs import confirm
from dpwitness.search.learners.learn import Found
from dpwitness.search.objectives import BoundAt, GrowthAt

__all__ = ["bound", "check"]

CHECK_RUNS: Final = 4_000_000
BOUND_RUNS: Final = 20_000_000


def check(
    mechanism: Callable[..., Any] | Mechanism,
    *,
    epsilon: float | None = None,
    claim: float | None = None,
    delta: float | None = None,
    d_in: Any = None,
    neighbours: Relation | Sequence[Any] | None = None,
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
        A function of a generator, data and parameters; see `dpwitness.mechanisms.mechanism`.
    epsilon
        The mechanism's own parameter, where it has one of that name; and the claim, unless `claim` says another. Nats.
        By default what the object itself claims: diffprivlib's `.epsilon`, OpenDP's `map(d_in)`.
    claim
        The claimed ε where it is not the mechanism's parameter: the mechanism keeps the ε that it has. Nats.
    delta
        The claimed δ, and the mechanism's parameter of that name; by default what the object itself claims, else 0.
    d_in
        The distance between neighbours that an OpenDP measurement's claim is for.
    neighbours
        A relation, such as `queries(10)`, or a list of pairs, as `[([1, 1], [2, 0])]`; by default that of a target.
    data
        D, around which the relation makes the neighbours.
    alpha
        The probability of a false alarm: at most this, however often one looks.
    max_runs, max_time
        Paired confirm runs, and seconds for everything together.
    search_runs
        Paired search runs; they find the event and are then thrown away.

    Raises `BadInput` for what cannot be used, `MechanismError` when the mechanism misbehaves: `DependentRuns` where its
    runs are not independent, so that counts of them are no evidence.
    """
    stated = stated_claim(mechanism, epsilon=epsilon, delta=delta, claim=claim, d_in=d_in)
    max_runs = check_limits(alpha, max_runs, max_time, progress=progress)
    enough_runs(stated.claim, alpha, max_runs)

    def ready(interpreted: bool) -> Job:
        return prepare(
            mechanism,
            stated.epsilon,
            neighbours,
            data,
            parameters,
            outcome,
            seed,
            workers,
            max_time,
            reference,
            delta=stated.delta,
            claim=stated.claim,
            interpreted=interpreted,
        )

    def work(job: Job) -> Verdict:
        return check_job(
            job, mechanism, stated.claim, alpha=alpha, max_runs=max_runs, search_runs=search_runs, progress=progress
        )

    return compiled_first(ready, work)


def enough_runs(claim: Claim, alpha: float, max_runs: int) -> None:
    """Raise `BudgetTooSmall` where not even the clearest violation could be refuted."""
    needed = runs_needed(claim, alpha)
    if max_runs < needed:
        raise BudgetTooSmall(
            f"max_runs={max_runs} is too small: even the clearest violation of {claim} at alpha={alpha:g} needs "
            f"{needed} runs; give at least that many"
        )


def check_job(
    job: Job,
    function: Callable[..., Any] | Mechanism,
    claim: Claim,
    *,
    alpha: float,
    max_runs: int,
    search_runs: int | None = None,
    progress: Progress | None = None,
    notes: tuple[str, ...] | None = None,
) -> Verdict:
    """What is left of a check when it is prepared. `function`: the user's own, which may name an attack.

    `notes`: those of health checks that were done already; None does them here.
    """
    notes = health.required(job) if notes is None else notes
    budget = search_budget(job, search_runs, min(usual_search(claim.epsilon), max_runs))
    objective = GrowthAt(epsilon=claim.epsilon, delta=claim.delta, planned=max_runs, log_bar=math.log(1 / alpha))
    # A pair so good is proved in a twentieth of the search; and none grows faster than D always in, D′ never.
    stop_value = min(20 * math.log(1 / alpha) / budget, float(growth_rate(1.0, 0.0, claim.epsilon, claim.delta)) / 2)
    pair, found, spent = find(
        job,
        function=function,
        claim=claim,
        runs=max_runs,
        objective=objective,
        budget=budget,
        stop_value=stop_value,
        progress=progress,
    )
    return confirm_job(job, claim, alpha, pair, found, max_runs, spent, progress, notes)


def confirm_job(
    job: Job,
    claim: Claim,
    alpha: float,
    pair: Pair,
    found: Found,
    max_runs: int,
    spent: int,
    progress: Progress | None,
    notes: tuple[str, ...] = (),
) -> Verdict:
    """Right of ‖: fresh runs of a fixed pair and a fixed event until the claim is refuted or the runs are over.

    Raises `DependentRuns` where the claim would be refuted by runs that are not independent.
    """
    bar = math.log(1 / alpha)
    counts, log_e, ended = Counts(), 0.0, "runs"
    shards = Shards()
    job.require_agreement(pair)
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
            shards.add((counts,))
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
    if log_e >= bar:
        notes += examine(job, pair, [found.event], shards)
    common: dict[str, Any] = {
        "mechanism": job.mechanism.name,
        "parameters": {k: plain(v) for k, v in job.mechanism.signature.parameters.items()},
        "claim": claim,
        "alpha": alpha,
        "log_e_value": log_e,
        "epsilon_lower_bound": epsilon_lower_bound(
            counts, delta=claim.delta, alpha=alpha, hint=found.estimate, claim_epsilon=claim.epsilon
        ),
        "witness": job.witness(claim, alpha, pair, found, counts),
        "search_runs": spent,
        "seed": job.seed,
        "reproducible": job.mechanism.reproducible,
        "ended": ended,
        "notes": (*notes, *health.of_counts(counts)),
    }
    if log_e >= bar:
        job.require_agreement(pair, found.event)
        return Violation(**common, seconds=job.seconds)
    examine_pass(job, shards)
    job.require_agreement(pair, longer=True)
    detectable = detectable_epsilon(counts, claim, alpha=alpha, hint=found.estimate)
    verdict = NotRefuted(**common, detectable_epsilon=detectable, seconds=job.seconds)
    weak = tuple(finding.text for finding in health.of_verdict(verdict))
    if counts.runs and rare_event(counts):
        seen = f"{counts.hits} of {counts.runs} runs on D"
        weak += (f"the event is a rare tail ({seen}): a violation that shows in other outcomes is not ruled out",)
    return replace(verdict, notes=(*verdict.notes, *weak))


def bound(
    mechanism: Callable[..., Any] | Mechanism,
    *,
    epsilon: float,
    delta: float | None = None,
    confidence: float = 0.999,
    runs: int = BOUND_RUNS,
    neighbours: Relation | Sequence[Any] | None = None,
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
    stated = stated_claim(mechanism, epsilon=epsilon, delta=delta)
    delta = stated.claim.delta
    claim = Claim(epsilon=0.0, delta=delta)
    if not 0 < number("confidence", confidence) < 1:
        raise InvalidParameter(f"confidence={confidence!r} must lie between 0 and 1")
    alpha = 1 - confidence
    runs = check_limits(alpha, runs, max_time, "runs", progress)

    def ready(interpreted: bool) -> Job:
        return prepare(
            mechanism,
            epsilon,
            neighbours,
            data,
            parameters,
            outcome,
            seed,
            workers,
            max_time,
            reference,
            delta=stated.delta,
            claim=stated.claim,
            interpreted=interpreted,
        )

    def work(job: Job) -> Bound:
        return _bound_job(job, mechanism, claim, confidence, runs, search_runs, progress)

    return compiled_first(ready, work)


def _bound_job(
    job: Job,
    function: Callable[..., Any] | Mechanism,
    claim: Claim,
    confidence: float,
    runs: int,
    search_runs: int | None,
    progress: Progress | None,
) -> Bound:
    """What is left of a bound when it is prepared; `claim`: ε = 0 and the δ."""
    alpha, delta = 1 - confidence, claim.delta
    notes = health.required(job)
    budget = search_budget(job, search_runs, min(max(runs // 4, 100_000), 8_000_000))
    planned = runs if job.mechanism.threads else min(runs, 4 * budget)  # of slow code what fits in the time
    objective = BoundAt(planned=planned, log_bar=math.log(1 / alpha), delta=delta)
    pair, found, spent = find(
        job, function=function, claim=claim, runs=runs, objective=objective, budget=budget, progress=progress
    )
    job.require_agreement(pair)
    counts, ended = Counts(), "runs"
    shards = Shards()
    try:
        for (counts,) in confirm(
            job.mechanism, pair, [found.event], seed=job.seed, max_runs=runs, workers=job.workers, deadline=job.deadline
        ):
            shards.add((counts,))
            if progress is not None:
                progress("confirm", counts.runs, runs, "")
        ended = "runs" if counts.runs >= runs else "time"
    except KeyboardInterrupt:
        ended = "interrupted"  # the bound is valid at any time
    lower = epsilon_lower_bound(counts, delta=delta, alpha=alpha, hint=found.estimate)
    if lower > 0:
        job.require_agreement(pair, found.event)
        notes += examine(job, pair, [found.event], shards)
    else:
        examine_pass(job, shards)
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
        notes=(*notes, *health.of_counts(counts)),
    )
