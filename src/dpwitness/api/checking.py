"""Look for a witness against a claim, and prove it."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dpwitness.api.adjacencies import check_each_adjacency
from dpwitness.api.door import public
from dpwitness.api.epochs import check_in_epochs, in_epochs
from dpwitness.api.loop import confirmed, prepared
from dpwitness.api.requirements import require_budget
from dpwitness.api.verdicts import Tested, until_refuted, verdict_of
from dpwitness.attacks.candidate import Attack
from dpwitness.candidate import Candidate
from dpwitness.checks import seconds
from dpwitness.claims import Claim
from dpwitness.claims.hyperplane import bounds_divergences
from dpwitness.effort import CHECK_RUNS, MAX_TIME, Effort
from dpwitness.evidence import detectable_parameter, growth_rate, log_e_value, lower_bound
from dpwitness.health import before_search
from dpwitness.mechanisms.accountants import Accountant
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import Outcome
from dpwitness.neighbours import Relation
from dpwitness.problem import Problem, Statement
from dpwitness.results.verdict import Verdict
from dpwitness.runs import Progress, Runner
from dpwitness.search.budget import search_budget, usual_runs
from dpwitness.search.cells import Aim, better
from dpwitness.search.find import find
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.refining import refined


@public
def check(
    mechanism: Callable[..., Any] | Mechanism | str | None = None,
    *,
    make: Callable[[], Any] | None = None,
    epsilon: float | None = None,
    claim: Claim | Accountant | float | str | None = None,
    delta: float | None = None,
    d_in: Any = None,
    neighbours: Relation | Sequence[Any] | None = None,
    data: Any = None,
    parameters: Mapping[str, Any] | None = None,
    outcome: Outcome | None = None,
    errors: str = "raise",
    alpha: float = 1e-6,
    runs: int = CHECK_RUNS,
    max_time: float | str = MAX_TIME,
    search_runs: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    cluster: Any = None,
    reference: str | None = None,
    attack: str | Attack | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Look for a witness against a claim and prove it on fresh runs.

    Parameters
    ----------
    mechanism
        A function of a generator, data and parameters; see `dpwitness.mechanisms`.
    make
        In place of `mechanism`: a function without parameters that returns a new one, called for each run, for objects
        that one run, or a number of them, uses up.
    epsilon
        The mechanism's own parameter, where it has one of that name; and the claim, unless `claim` says another. Nats.
        By default what the object itself claims: diffprivlib's `.epsilon`, OpenDP's `map(d_in)`.
    claim
        The claim where it is not the mechanism's parameter: such as `ApproxDP(1.0, 1e-5)`, or a number, the claimed ε
        in nats; or an accountant of dp-accounting or Opacus, whose whole privacy profile is claimed then. The mechanism
        keeps the ε that it has.
    delta
        The claimed δ, and the mechanism's parameter of that name; by default what the object itself claims, else 0.
    d_in
        The distance between neighbours that an OpenDP measurement's claim is for.
    neighbours
        A relation, such as `queries(10)`, or a list of pairs, as `[([1, 1], [2, 0])]`; by default that of a target.
    data
        D, around which the relation makes the neighbours.
    parameters
        Values for other parameters of the mechanism, by name.
    outcome
        A function that turns what the mechanism returns into what is released of it, or names of attributes that are
        released, as "coef_,intercept_" of a fitted model.
    errors
        "outcome": a run that raises has the exception's class for an outcome; "raise": it ends the check. Functions
        run as plain Python with the former.
    alpha
        The probability of a false alarm: at most this, however often one looks.
    runs, max_time
        Paired confirm runs, and seconds for everything together, compiling left out.
    search_runs
        Paired search runs; they find the event and are then thrown away.
    seed
        Of all random streams: the same seed gives the same counts. None draws one.
    workers
        Threads for compiled code, processes for plain Python; by default one for each core.
    cluster
        Where to run instead: "local", Dask workers of this machine; the address of a Dask scheduler; or a
        `distributed.Client`. The same seed gives the same counts there.
    reference
        The name that a witness is saved under.
    attack
        Pairs and events that are tried first: the name of an attack's generator of candidates, such as
        "threshold_testing" or "subset_sum.flipped_bit" (see `dpwitness.attacks`), or such a function. Where nothing
        else says which inputs are neighbours, the family's own relation does.
    progress
        Called with a stage, what is done of it, its size and a note.

    Returns
    -------
        `Violation` where the claim is refuted, with the witness; else `NotRefuted`, which says what would have been
        detected. Where the relation leaves the adjacency open (`records(…, adjacency=None)`), each has a check of its
        own at an even share of alpha: a `Violation` where any is refuted; `others` holds the other verdicts.

    Raises `BadInput` for what cannot be used, `MechanismError` when the mechanism misbehaves: `DependentRuns` where its
    runs are not independent, so that counts of them are no evidence.
    """
    statement = Statement(
        mechanism=mechanism, make=make, epsilon=epsilon, claim=claim, delta=delta, d_in=d_in, neighbours=neighbours,
        data=data, parameters=parameters, outcome=outcome, errors=errors, reference=reference, attack=attack,
    )  # fmt: skip
    effort = Effort(
        alpha=alpha, max_runs=runs, max_time=seconds("max_time", max_time), search_runs=search_runs,
        seed=seed, workers=workers, cluster=cluster, progress=progress,
    )  # fmt: skip
    require_budget(statement.stated.claim, effort)

    def work(problem: Problem, runner: Runner) -> Verdict:
        before_search.report_time_needed(problem, runner, effort.alpha)
        return check_problem(problem, runner, effort)

    return prepared(statement, effort, work)


def check_problem(problem: Problem, runner: Runner, effort: Effort, *, notes: tuple[str, ...] | None = None) -> Verdict:
    """Search, then confirm, once for each adjacency where the relation leaves it open.

    `notes`: those of health checks that were done already; None does them here.
    """
    known = before_search.required(problem, runner) if notes is None else notes

    def check_one(problem: Problem, runner: Runner, effort: Effort) -> Verdict:
        return _check_relation(problem, runner, effort, known)

    return check_each_adjacency(problem, runner, effort, check_one)


def _check_relation(problem: Problem, runner: Runner, effort: Effort, notes: tuple[str, ...]) -> Verdict:
    """Search, then confirm, in one relation."""
    if in_epochs(problem.mechanism.cost, effort):
        return check_in_epochs(problem, runner, effort, notes)
    claim, log_threshold = problem.claim, math.log(1 / effort.alpha)
    budget = search_budget(problem, runner, effort.search_runs, min(usual_runs(claim), effort.max_runs))
    # A pair so good is proved in a twentieth of the search; and none grows faster than D always in, D′ never.
    fastest = float(growth_rate(1.0, 0.0, claim.half_plane(1.0, 0.0)))
    objective = GrowthAt(
        claim=claim,
        planned=effort.max_runs,
        log_threshold=log_threshold,
        stop_value=min(20 * log_threshold / budget, fastest / 2),
    )
    candidate, spent = find(problem, runner, objective, planned=effort.max_runs, budget=budget)
    if effort.search_runs is None:  # else the user has said how many
        candidate, more = refined(runner.searching(), candidate, objective, planned=effort.max_runs, budget=budget)
        spent += more
    if bounds_divergences(claim):
        aim = Aim(claim=claim, planned=effort.max_runs, log_threshold=log_threshold, of_bound=False)
        candidate, more = better(runner.searching(), candidate, aim, objective, budget)
        spent += more
    return confirm_candidate(problem, runner, effort, candidate, spent=spent, notes=notes)


def confirm_candidate(
    problem: Problem,
    runner: Runner,
    effort: Effort,
    candidate: Candidate,
    *,
    spent: int = 0,
    notes: tuple[str, ...] = (),
) -> Verdict:
    """Fresh runs of a fixed candidate until the claim is refuted or the runs are over; `spent`: search runs.

    Raises `DependentRuns` where the claim would be refuted by runs that are not independent.
    """
    claim, alpha, estimate = problem.claim, effort.alpha, candidate.estimate
    look = until_refuted(claim, estimate, alpha)
    done, shards = confirmed(runner, candidate.pair, (candidate.event,), effort.max_runs, look=look)
    (counts,) = done.totals
    tested = Tested(
        candidate=candidate,
        done=done,
        shards=shards,
        log_e_value=log_e_value(counts, claim, estimate),
        lower_bound=partial(lower_bound, counts, claim, alpha=alpha, estimate=estimate),
        detectable=partial(detectable_parameter, counts, claim, alpha=alpha, estimate=estimate),
        search_runs=spent,
    )
    return verdict_of(problem, runner, effort, tested, notes)
