"""p-values of many test ε, as in the figures of Ding et al. 2018."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dpwitness.api.loop import Totals, confirmed, prepared, require_agreement
from dpwitness.candidate import Estimate
from dpwitness.checks import number, whole
from dpwitness.claims import ApproxDP
from dpwitness.effort import Effort
from dpwitness.errors import BudgetTooSmall, InvalidParameter, MechanismTimeout
from dpwitness.evidence import holm, p_value
from dpwitness.health import before_search
from dpwitness.health.refutation import check_refutation
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import Outcome
from dpwitness.mechanisms.signature import EPSILON_NAMES
from dpwitness.neighbours import Pair, Relation
from dpwitness.problem import Problem, Statement
from dpwitness.results.curve import Curve, PValueCurve
from dpwitness.runs import Progress, Runner
from dpwitness.search.budget import search_budget, usual_runs
from dpwitness.search.find import learned, reestimated
from dpwitness.search.halving import search
from dpwitness.search.learners import RatedEvent, learn
from dpwitness.search.objectives import BoundAt, PowerAt
from dpwitness.search.ranking import playoff
from dpwitness.values import shown

CURVE_RUNS: Final = 1_500_000
MAX_TIME: Final = 600.0
METHODS: Final = ("exact", "score")
SUSPICIOUS: Final = 0.01  # a p-value that someone may take for evidence
CLEAR: Final = 7.5  # standard errors; a p-value of 10⁻⁶ takes 4.8


def curve(
    mechanism: Callable[..., Any] | Mechanism | None = None,
    *,
    make: Callable[[], Any] | None = None,
    epsilons: Sequence[float],
    claims: Sequence[float],
    delta: float | None = None,
    method: str = "exact",
    runs: int | None = None,
    neighbours: Relation | Sequence[Any] | None = None,
    data: Any = None,
    parameters: Mapping[str, Any] | None = None,
    outcome: Outcome | None = None,
    errors: str = "raise",
    max_time: float = MAX_TIME,
    search_runs: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    cluster: Any = None,
    reference: str | None = None,
    progress: Progress | None = None,
) -> Curve:
    """p-values of every test ε in `claims`, for the mechanism run with each ε of `epsilons` (nats).

    These are the figures of Ding et al. 2018.

    One search serves every test ε of a mechanism's ε, and one fresh sample of `runs` paired runs (by default as many as
    80 % of ε takes to exclude) tests each event chosen: these p-values depend on each other, as Holm's adjustment
    allows. `method`: "exact" or "score", see `evidence.p_value`. Other parameters and errors as in `check`; raises
    `MechanismTimeout` if the runs cannot be done in `max_time` for each ε: a p-value for a fixed number of runs cannot
    be had from fewer.
    """
    started = time.monotonic()
    if runs is not None:
        runs = whole("runs", runs, 1, error=BudgetTooSmall)
    effort = Effort(
        max_time=max_time, search_runs=search_runs, seed=seed, workers=workers, cluster=cluster, progress=progress
    )
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidParameter(f"method={method!r} must be one of {', '.join(METHODS)}")
    statements = [
        Statement(
            mechanism=mechanism, make=make, epsilon=epsilon, delta=delta, neighbours=neighbours, data=data,
            parameters=parameters, outcome=outcome, errors=errors, reference=reference,
        )
        for epsilon in _several("epsilons", epsilons)
    ]  # fmt: skip
    # Before anything is run: a mistake in the last ε must not cost the others.
    stated = [statement.stated for statement in statements]
    delta = stated[0].claim.largest(0.0)
    tests = [ApproxDP(e, delta) for e in _several("claims", claims)]
    lines: list[PValueCurve] = []
    notes: list[str] = []
    mechanisms: list[Mechanism] = []

    def work(problem: Problem, runner: Runner) -> tuple[PValueCurve, tuple[str, ...]]:
        mechanisms.append(problem.mechanism)
        return _line(problem, runner, effort, tests, (method, runs))

    for statement in statements:
        line, said = prepared(statement, effort, work)
        lines.append(line)
        notes += said
    ran = mechanisms[-1]
    return Curve(
        mechanism=ran.name,
        parameters={k: shown(v) for k, v in ran.signature.parameters.items() if k not in EPSILON_NAMES},
        delta=delta,
        method=method,
        lines=tuple(lines),
        seed=effort.seed or 0,
        reproducible=ran.reproducible,
        seconds=time.monotonic() - started,
        notes=tuple(dict.fromkeys(notes)),
    )


def _line(
    problem: Problem,
    runner: Runner,
    effort: Effort,
    tests: Sequence[ApproxDP],
    how: tuple[str, int | None],
) -> tuple[PValueCurve, tuple[str, ...]]:
    """The p-values of all tests for one mechanism, and notes; `how`: the method, and the confirm runs if given."""
    notes = before_search.required(problem, runner)
    method, runs = how
    epsilon, delta = problem.claim.parameter, tests[0].delta
    planned = _most_runs(epsilon) if runs is None else runs
    budget = search_budget(problem, runner, effort.search_runs, min(usual_runs(problem.claim), planned))
    pair, pool, spent = _pool(problem, runner, tests, planned, budget)
    again = max(budget // 6, 16)
    pool = reestimated(runner, pair, pool, again)
    if runs is None:
        planned = _runs_to_exclude(pool[0].estimate, again, epsilon, delta)
    chosen = [_best_for(test, pool) for test in tests]
    events = [found.event for found in pool]

    def look(totals: Totals) -> tuple[bool, str]:
        return False, f"ε = {epsilon:g}"

    # Fisher's test asks for independent sides.
    done, shards = confirmed(runner, pair, events, planned, coupled=False, look=look)
    if done.ended == "interrupted":
        raise KeyboardInterrupt
    if done.lost is not None:
        raise done.lost
    if done.totals[0].runs < planned:
        raise MechanismTimeout(
            f"{problem.mechanism.name} did not finish {planned} runs in {runner.max_time:g} s: give fewer, or more time"
        )
    for k in set(chosen):
        require_agreement(runner, pair.swapped() if pool[k].swapped else pair, pool[k].event)
    counts = [done.totals[k].swapped() if pool[k].swapped else done.totals[k] for k in chosen]
    values = [
        p_value(c, test, method=method, seed=runner.seed + i)
        for i, (c, test) in enumerate(zip(counts, tests, strict=True))
    ]
    if min(values) < SUSPICIOUS:
        notes += check_refutation(runner, pair, events, shards)
    line = PValueCurve(
        epsilon=epsilon,
        test_epsilons=tuple(test.epsilon for test in tests),
        p_values=tuple(values),
        adjusted=tuple(holm(values)),
        events=tuple(problem.described(pool[k].event) for k in chosen),
        counts=tuple(counts),
        pair_label=pair.label,
        search_runs=spent,
    )
    return line, (*notes, *runner.notes)


def _pool(
    problem: Problem, runner: Runner, tests: Sequence[ApproxDP], planned: int, budget: int
) -> tuple[Pair, list[RatedEvent], int]:
    """A pair and a handful of events for all tests, each once, and the search runs spent.

    The event of the largest bound, and what is best at a few ε on the way.
    """
    searching, delta = runner.searching(), tests[0].delta
    wide = BoundAt(planned=planned, log_threshold=math.log(1e6), delta=delta)
    finalists, spent = search(problem, searching, wide, budget)
    entries = learned(searching, finalists, wide, 3)
    best, more = playoff(searching, entries, wide, budget) if len(entries) > 1 else (entries[0], 0)
    spots = np.unique(np.quantile([test.epsilon for test in tests], (0, 0.25, 0.5, 0.75, 1), method="nearest"))
    powers = [PowerAt(epsilon=float(e), delta=delta) for e in spots]
    pool = [best.found, *(found for power in powers for found in learn(finalists[best.place].sample, power, most=1))]
    different = {(str(found.event.to_json()), found.swapped): found for found in pool}
    return best.pair, list(different.values()), spent + more


def _several(name: str, values: Any) -> list[float]:
    """A list of numbers that was given under a name. Raises `InvalidParameter`."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidParameter(f"{name}={values!r:.80} must be a list of numbers")
    found = [number(f"{name}: one of them", value) for value in values]
    if not found:
        raise InvalidParameter(f"{name}={values!r:.80} is empty: a curve needs at least one epsilon and one claim")
    return found


def _best_for(test: ApproxDP, pool: Sequence[RatedEvent]) -> int:
    """The event of largest power against a test ε, by the search's estimates."""
    p, q = np.array([f.estimate.p for f in pool]), np.array([f.estimate.q for f in pool])
    return int(np.argmax(PowerAt(epsilon=test.epsilon, delta=test.delta)(p, q, 100_000)))


def _most_runs(epsilon: float) -> int:
    """At most so many confirm runs for a curve: to see the same share of ε, their number must grow as 1/ε²."""
    return int(CURVE_RUNS * min(max(1 / max(epsilon, 1e-9), 1.0) ** 2, 15.0))


def _runs_to_exclude(estimate: Estimate, runs: int, epsilon: float, delta: float) -> int:
    """Confirm runs of a curve that put 80 % of ε `CLEAR` standard errors away; of the ε shown where that is less.

    `runs`: how many the estimate is from; it is lowered by one standard error.
    """
    apparent = math.log(max(estimate.p - delta, 1e-30) / max(estimate.q, 1e-30))
    if apparent <= 0:
        return CURVE_RUNS
    excluded = 0.8 * (epsilon if apparent > 0.8 * epsilon else apparent)
    p, q = np.array([estimate.p]), np.array([estimate.q])
    power = float(PowerAt(epsilon=excluded, delta=delta)(p, q, runs)[0]) - 1 / math.sqrt(runs)
    return int(min(max((CLEAR / max(power, 1e-9)) ** 2, CURVE_RUNS), _most_runs(epsilon)))
