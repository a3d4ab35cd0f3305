"""Find the largest ε, or parameter of another family of claims, that a mechanism can be shown to exceed."""

import math
from dataclasses import replace
from typing import Final

from typing_extensions import Unpack

from dpwitness.api.check import adjacency_note
from dpwitness.api.door import public
from dpwitness.api.loop import bound_so_far, confirm_events, result_fields, uninterrupted, witness_of, work_on
from dpwitness.api.outputs import drawn_outputs
from dpwitness.claims.renyi import bounds_divergences
from dpwitness.evidence import bet_on, lower_bound
from dpwitness.health import before_search, findings
from dpwitness.options import AnyMechanism, BoundOptions
from dpwitness.problem import Effort, Problem, Statement
from dpwitness.results.bound import Bound
from dpwitness.results.verdict import ABORT_REASONS, Course
from dpwitness.runs import Runner, Tried
from dpwitness.search.cells import Aim, better
from dpwitness.search.objectives import BoundAt, Objective, ParameterAt
from dpwitness.search.pairs import best_candidate, search_budget

#: The largest number of paired search runs of a bound, unless the user gives the number.
MOST_BOUND_SEARCH_RUNS: Final = 8_000_000


@public
def bound(mechanism: AnyMechanism = None, **options: Unpack[BoundOptions]) -> Bound:
    """Find the largest ε (nats) that the mechanism can be shown to exceed at δ, with confidence 1 − alpha.

    Searches for the event with the largest expected lower bound, then makes all `runs` paired confirm runs on it.
    `epsilon` is the mechanism's own parameter; no claim is needed. With `claim`, the parameter of the claim's family is
    bounded instead, in its unit: ε for `PureDP(1)`, ρ for `ZCDP(0.5)`, ε at α = 8 for `RenyiDP(8, 0.4)`; the claim's
    own value of the parameter is ignored. For `PrivacyProfile` and `TradeOff` the bound is the ε by which the mechanism
    exceeds them. Raises the errors of `check`.
    """
    statement, effort = Statement.of(mechanism, {**options, "claim_needed": False}), Effort.of(options)
    of_family = options["claim"] is not None
    return work_on(statement, effort, lambda problem, runner: _bound(problem, runner, effort, of_family=of_family))


def _bound(problem: Problem, runner: Runner, effort: Effort, *, of_family: bool) -> Bound:
    """The lower bound of a candidate that a search finds, from all confirm runs.

    `of_family`: whether the bound is of the parameter of a given claim.
    """
    notes = before_search.make_required_checks(problem, runner)
    problem = replace(problem, claim=problem.claim.at(0.0))  # at the δ of the statement
    runner = replace(runner, tried=Tried())
    delta, runs, alpha = getattr(problem.claim, "delta", 0.0), effort.runs, effort.alpha
    budget = search_budget(problem, runner, effort.search_runs, min(max(runs // 4, 100_000), MOST_BOUND_SEARCH_RUNS))
    # Slow code makes fewer runs, as many as fit in the time.
    planned = runs if problem.mechanism.threads else min(runs, 4 * budget)
    threshold = math.log(1 / alpha)
    objective: Objective = BoundAt(planned=planned, log_threshold=threshold, delta=delta)
    if of_family:
        objective = ParameterAt(planned=planned, log_threshold=threshold, claim=problem.claim)
    candidate, spent = best_candidate(problem, runner, objective, planned=runs, budget=budget)
    if bounds_divergences(problem.claim):
        aim = Aim(claim=problem.claim, planned=planned, log_threshold=threshold, of_bound=True)
        candidate, more = better(runner.searching(), candidate, aim, objective, budget)
        spent += more
    shown = bound_so_far(problem.claim, candidate.estimate, effort, alpha=alpha)
    done = confirm_events(
        runner,
        candidate.pair,
        (candidate.event,),
        runs,
        coupled=candidate.coupled,
        look=lambda totals: ("", shown(totals)),
    )
    (counts,) = done.totals
    lower = lower_bound(bet_on(counts, problem.claim, candidate.estimate), problem.claim, alpha=alpha)
    done = done.examine(against=lower > 0, largest=True)
    outputs = None
    try:
        if done.ended not in ABORT_REASONS:
            outputs = drawn_outputs(problem, runner, candidate)
    except KeyboardInterrupt:  # the bound is kept
        done = replace(done, ended="interrupted")
    course = Course(pairs=runner.tried.pairs, events=runner.tried.events, outputs=outputs)
    return uninterrupted(
        lambda: Bound(
            **result_fields(problem.mechanism, done),
            # The claim of the witness is just refuted: a replay tests it, and a shrunk witness must still refute it.
            witness=witness_of(replace(problem, claim=problem.claim.at(lower)), runner, alpha, candidate, counts),
            delta=delta,
            confidence=1 - alpha,
            epsilon_lower_bound=lower,
            search_runs=spent,
            course=course,
            seconds=runner.seconds,
            notes=(*notes, *done.notes, *adjacency_note(problem, candidate.pair), *findings.notes_on_counts(counts)),
        )
    )
