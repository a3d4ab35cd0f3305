"""Find the largest ε, or parameter of another family of claims, that a mechanism can be shown to exceed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dpwitness.api.check import adjacency_note
from dpwitness.api.door import public
from dpwitness.api.loop import believed, confirmed, made_whole, prepared, result_fields
from dpwitness.checks import seconds
from dpwitness.claims import Claim
from dpwitness.claims.renyi import bounds_divergences
from dpwitness.evidence import bet_on, lower_bound
from dpwitness.health import before_search, findings
from dpwitness.mechanisms.claims import Accountant
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.python import Outcome
from dpwitness.neighbours import Relation
from dpwitness.problem import Effort, Problem, Statement
from dpwitness.results.bound import Bound
from dpwitness.runs import Progress, Runner
from dpwitness.search.cells import Aim, better
from dpwitness.search.objectives import BoundAt, Objective, ParameterAt
from dpwitness.search.pairs import find, search_budget

BOUND_RUNS: Final = 20_000_000
MAX_TIME: Final = 600.0
MOST_SEARCH_RUNS: Final = 8_000_000


@public
def bound(
    mechanism: Callable[..., Any] | Mechanism | str | None = None,
    *,
    make: Callable[[], Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    claim: Claim | Accountant | float | str | None = None,
    d_in: Any = None,
    alpha: float = 0.001,
    runs: int = BOUND_RUNS,
    neighbours: Relation | Sequence[Any] | None = None,
    data: Any = None,
    parameters: Mapping[str, Any] | None = None,
    outcome: Outcome | None = None,
    errors: str = "raise",
    max_time: float | str = MAX_TIME,
    search_runs: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    cluster: Any = None,
    reference: str | None = None,
    progress: Progress | None = None,
) -> Bound:
    """Find the largest ε (nats) that the mechanism can be shown to exceed at δ, with confidence 1 − alpha.

    Searches for the event whose lower bound promises most at `runs` paired confirm runs, then spends all of them on it.
    `epsilon` is the mechanism's own parameter; one without it, which carries no claim either, needs `claim`. `claim`:
    bounds the parameter of its family instead, in its unit, as ε for `PureDP(1)`, ρ for `ZCDP(0.5)` or ε at α = 8 for
    `RenyiDP(8, 0.4)`; what it states of the parameter plays no part. `PrivacyProfile` and `TradeOff` bound the ε by
    which they are exceeded. Other parameters and errors as in `check`.
    """
    statement = Statement(
        mechanism=mechanism, make=make, epsilon=epsilon, delta=delta, claim=claim, d_in=d_in, neighbours=neighbours,
        data=data, parameters=parameters, outcome=outcome, errors=errors, reference=reference,
    )  # fmt: skip
    effort = Effort(
        alpha=alpha, max_runs=runs, max_time=seconds("max_time", max_time),
        search_runs=search_runs, seed=seed, workers=workers, cluster=cluster, progress=progress,
    )  # fmt: skip
    return prepared(
        statement,
        effort,
        lambda problem, runner: _bound(problem, runner, effort, of_family=claim is not None),
    )


def _bound(problem: Problem, runner: Runner, effort: Effort, *, of_family: bool) -> Bound:
    """Search, then confirm, all runs. `of_family`: the bound is of the parameter of the claim that was given."""
    notes = before_search.required(problem, runner)
    problem = replace(problem, claim=problem.claim.at(0.0))  # at the δ of the statement
    delta, runs, alpha = getattr(problem.claim, "delta", 0.0), effort.max_runs, effort.alpha
    budget = search_budget(problem, runner, effort.search_runs, min(max(runs // 4, 100_000), MOST_SEARCH_RUNS))
    # Of slow code what fits in the time.
    planned = runs if problem.mechanism.threads else min(runs, 4 * budget)
    threshold = math.log(1 / alpha)
    objective: Objective = BoundAt(planned=planned, log_threshold=threshold, delta=delta)
    if of_family:
        objective = ParameterAt(planned=planned, log_threshold=threshold, claim=problem.claim)
    candidate, spent = find(problem, runner, objective, planned=runs, budget=budget)
    if bounds_divergences(problem.claim):
        aim = Aim(claim=problem.claim, planned=planned, log_threshold=threshold, of_bound=True)
        candidate, more = better(runner.searching(), candidate, aim, objective, budget)
        spent += more
    events = (candidate.event,)
    done, shards = confirmed(runner, candidate.pair, events, runs)
    (counts,) = done.totals
    lower = lower_bound(bet_on(counts, problem.claim, candidate.estimate), problem.claim, alpha=alpha)
    done, said = believed(runner, candidate.pair, events, done, shards, against=lower > 0)
    return made_whole(
        lambda: Bound(
            **result_fields(problem, runner, alpha, candidate, done),
            delta=delta,
            confidence=1 - alpha,
            epsilon_lower_bound=lower,
            search_runs=spent,
            seconds=runner.seconds,
            notes=(*notes, *said, *adjacency_note(problem, candidate.pair), *findings.of_counts(counts)),
        )
    )
