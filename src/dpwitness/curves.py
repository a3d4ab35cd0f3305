"""The road of a whole figure: p-values of many test ε, as in the figures of Ding et al. 2018."""

import math
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dpwitness.claim import Claim
from dpwitness.counts import Counts
from dpwitness.errors import InvalidParameter, MechanismTimeout
from dpwitness.evidence import Estimate, holm, p_value
from dpwitness.health import early as health
from dpwitness.health.conviction import Shards, examine
from dpwitness.job import Job, Progress, plain
from dpwitness.mechanisms.carried import Stated, stated_claim
from dpwitness.mechanisms.mechanism import EPSILON_NAMES, Mechanism
from dpwitness.mechanisms.resolve import Outcome as OutcomeFunction
from dpwitness.neighbours import Relation
from dpwitness.preparation import check_limits, compiled_first, number, prepare, search_budget, usual_search, whole
from dpwitness.results.curve import Curve, PValueCurve
from dpwitness.runs import confirm
from dpwitness.search.learners.learn import Found, Learner
from dpwitness.search.objectives import BoundAt, PowerAt

CURVE_RUNS: Final = 1_500_000
METHODS: Final = ("exact", "score")
SUSPICIOUS: Final = 0.01  # a p-value that someone may take for evidence
CLEAR: Final = 7.5  # standard errors; a p-value of 10⁻⁶ takes 4.8


def curve(
    mechanism: Callable[..., Any] | Mechanism,
    *,
    epsilons: Sequence[float],
    claims: Sequence[float],
    delta: float | None = None,
    method: str = "exact",
    runs: int | None = None,
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
) -> Curve:
    """p-values of every test ε in `claims`, for the mechanism run with each ε of `epsilons`.

    These are the figures of Ding et al. 2018.

    One search serves every test ε of a line, and one fresh sample of `runs` paired runs (by default as many as 80 % of
    ε takes to exclude) tests each event chosen: the p-values of a line depend on each other, as Holm's adjustment
    allows. Raises `MechanismTimeout` if the runs cannot be done in `max_time`: a p-value for a fixed number of runs
    cannot be had from fewer.
    """
    started = time.monotonic()
    given = check_limits(0.5, 1 if runs is None else runs, max_time, "runs", progress)
    runs = None if runs is None else given
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidParameter(f"method={method!r} must be one of {', '.join(METHODS)}")
    # Before the first line is run: a mistake in the last ε must not cost the others.
    stated = [stated_claim(mechanism, epsilon=e, delta=delta) for e in _several("epsilons", epsilons)]
    delta = stated[0].claim.delta
    tests = [Claim(epsilon=e, delta=delta) for e in _several("claims", claims)]
    lines = []
    notes: tuple[str, ...] = ()
    seed = secrets.randbits(32) if seed is None else whole("seed", seed, 0, (1 << 128) - 1)
    for one in stated:

        def ready(interpreted: bool, one: Stated = one) -> Job:
            return prepare(
                mechanism,
                one.claim.epsilon,
                neighbours,
                data,
                parameters,
                outcome,
                seed,
                workers,
                max_time,
                reference,
                delta=one.delta,
                claim=one.claim,
                interpreted=interpreted,
            )

        def work(job: Job, one: Stated = one) -> tuple[PValueCurve, tuple[str, ...], Mechanism]:
            return *_line(job, one.claim.epsilon, tests, method, runs, search_runs, progress), job.mechanism

        line, said, prepared = compiled_first(ready, work)
        lines.append(line)
        notes += said
    return Curve(
        mechanism=prepared.name,
        parameters={k: plain(v) for k, v in prepared.signature.parameters.items() if k not in EPSILON_NAMES},
        delta=delta,
        method=method,
        lines=tuple(lines),
        seed=seed,
        reproducible=prepared.reproducible,
        seconds=time.monotonic() - started,
        notes=tuple(dict.fromkeys(notes)),
    )


def _line(
    job: Job,
    epsilon: float,
    tests: Sequence[Claim],
    method: str,
    runs: int | None,
    search_runs: int | None,
    progress: Progress | None,
) -> tuple[PValueCurve, tuple[str, ...]]:
    """The p-values of all tests for the mechanism as it was prepared, and notes; `epsilon`: its own."""
    notes = health.required(job)
    delta = tests[0].delta
    planned = _most_runs(epsilon) if runs is None else runs
    budget = search_budget(job, search_runs, min(usual_search(epsilon), planned))
    wide = BoundAt(planned=planned, log_bar=math.log(1e6), delta=delta)
    finalists, spent = job.search(wide, budget, progress)
    learners = [Learner(arm.sample) for arm in finalists]
    entries = job.learned(finalists, learners, wide, most=3)
    best, more = job.playoff(entries, wide, budget) if len(entries) > 1 else (entries[0], 0)
    spent += more
    # A handful of events serves all test ε: the largest bound, and what is best at a few ε on the way.
    spots = np.unique(np.quantile([t.epsilon for t in tests], (0, 0.25, 0.5, 0.75, 1), method="nearest"))
    pair, pool = best.pair, [best.found]
    powers = [PowerAt(epsilon=float(e), delta=delta) for e in spots]
    pool += [found for power in powers for found in learners[best.place].events(power, most=1)]
    del finalists, learners
    again = max(budget // 6, 16)
    pool = job.recounted(pair, _different(pool), again)
    if runs is None:
        planned = _enough_runs(pool[0].estimate, again, epsilon, delta)
    chosen = [_best_for(test, pool) for test in tests]
    job.require_agreement(pair)
    totals: tuple[Counts, ...] = ()
    shards = Shards()
    for totals in confirm(
        job.mechanism,
        pair,
        [found.event for found in pool],
        seed=job.seed,
        max_runs=planned,
        workers=job.workers,
        coupled=False,  # Fisher's test asks for independent sides
        deadline=job.deadline,
    ):
        shards.add(totals)
        if progress is not None:
            progress("confirm", totals[0].runs, planned, f"ε = {epsilon:g}")
    if not totals or totals[0].runs < planned:
        raise MechanismTimeout(
            f"{job.mechanism.name} did not finish {planned} runs in {job.max_time:g} s: give fewer, or more time"
        )
    for k in set(chosen):
        job.require_agreement(pair.swapped() if pool[k].swapped else pair, pool[k].event)
    counts = [totals[k].swapped() if pool[k].swapped else totals[k] for k in chosen]
    values = [
        p_value(c, test, method=method, seed=job.seed + i)
        for i, (c, test) in enumerate(zip(counts, tests, strict=True))
    ]
    if min(values) < SUSPICIOUS:
        notes += examine(job, pair, [found.event for found in pool], shards)
    line = PValueCurve(
        epsilon=epsilon,
        test_epsilons=tuple(t.epsilon for t in tests),
        p_values=tuple(values),
        adjusted=tuple(holm(values)),
        events=tuple(pool[k].event.describe(job.relation.noun, job.mechanism.label) for k in chosen),
        counts=tuple(counts),
        pair_label=pair.label,
        search_runs=spent,
    )
    return line, notes


def _several(name: str, values: Any) -> list[float]:
    """A list of numbers that was given under a name. Raises `InvalidParameter`."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidParameter(f"{name}={values!r:.80} must be a list of numbers")
    found = [number(f"{name}: one of them", value) for value in values]
    if not found:
        raise InvalidParameter(f"{name}={values!r:.80} is empty: a curve needs at least one epsilon and one claim")
    return found


def _different(pool: Sequence[Found]) -> list[Found]:
    """Each event once."""
    return list({(str(found.event.to_json()), found.swapped): found for found in pool}.values())


def _best_for(test: Claim, pool: Sequence[Found]) -> int:
    """The event of largest power against a test ε, by the search's estimates."""
    p, q = np.array([f.estimate.p for f in pool]), np.array([f.estimate.q for f in pool])
    return int(np.argmax(PowerAt(epsilon=test.epsilon, delta=test.delta)(p, q, 100_000)))


def _most_runs(epsilon: float) -> int:
    """At most so many confirm runs for a curve: to see the same share of ε, their number must grow as 1/ε²."""
    return int(CURVE_RUNS * min(max(1 / max(epsilon, 1e-9), 1.0) ** 2, 15.0))


def _enough_runs(estimate: Estimate, runs: int, epsilon: float, delta: float) -> int:
    """Confirm runs of a curve that put 80 % of ε `CLEAR` standard errors away; of the ε shown where that is less.

    `runs`: how many the estimate is from; one standard error of it is doubted.
    """
    shown = math.log(max(estimate.p - delta, 1e-30) / max(estimate.q, 1e-30))
    if shown <= 0:
        return CURVE_RUNS
    excluded = 0.8 * (epsilon if shown > 0.8 * epsilon else shown)
    p, q = np.array([estimate.p]), np.array([estimate.q])
    power = float(PowerAt(epsilon=excluded, delta=delta)(p, q, runs)[0]) - 1 / math.sqrt(runs)
    return int(min(max((CLEAR / max(power, 1e-9)) ** 2, CURVE_RUNS), _most_runs(epsilon)))
