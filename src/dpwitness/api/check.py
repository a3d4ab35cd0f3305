"""All steps of one check: the search for a witness against a claim, and its proof on runs that did not choose it.

    Statement + Effort → Problem + Runner → search → Candidate → fresh runs → Counts → Verdict

The file has the public function, the check of each adjacency that the relation leaves open, and the check of one
relation, which searches and then confirms, or bets in epochs where runs are expensive.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from typing_extensions import Unpack

from dpwitness.api.door import public
from dpwitness.api.epochs import SEARCH_DIVISOR, SHARE_AFTER_BITS_TEST, check_in_epochs, enough_search, in_epochs
from dpwitness.api.floating_point import drawn_for_bits, leak_of_bits, unless_proved, with_leak
from dpwitness.api.kept import check_after_kept
from dpwitness.api.loop import work_on
from dpwitness.api.verdict import confirm_candidate, require_budget, with_notes
from dpwitness.candidate import Candidate
from dpwitness.checks import on_one_line
from dpwitness.claims.renyi import bounds_divergences
from dpwitness.errors import ClusterLost, DependentRuns, InvalidNeighbours, RunsEnded
from dpwitness.evidence import growth_rate
from dpwitness.health import before_search
from dpwitness.machine import Deadline
from dpwitness.neighbours import Pair, Relation, adjacent, alternatives, proposed_pairs
from dpwitness.options import CHECK_RUNS, AnyMechanism, CheckOptions
from dpwitness.problem import Effort, Problem, Statement
from dpwitness.results.kept import KeptEvidence
from dpwitness.results.verdict import ABORT_REASONS, Verdict, Violation
from dpwitness.runs import Runner, Tried
from dpwitness.search.cells import Aim, better
from dpwitness.search.costs import affordable_runs
from dpwitness.search.objectives import PROOF_DIVISOR, GrowthAt, value_of
from dpwitness.search.pairs import best_candidate, search_budget, usual_runs


@public
def check(mechanism: AnyMechanism = None, **options: Unpack[CheckOptions]) -> Verdict:
    """Look for a witness against a claim and prove it on fresh runs.

    Returns
    -------
        `Violation` with a witness if the claim is refuted; else `NotRefuted` with the detectable parameter.
        If the relation leaves the adjacency open (`records(…, adjacency=None)`), each adjacency is checked at an equal
        share of alpha. The result is then a `Violation` if the claim is refuted under one adjacency, and `others` holds
        the other verdicts.

    Raises `BadInput` for arguments that cannot be used, and `MechanismError` if the mechanism misbehaves. One
    `MechanismError` is `DependentRuns`: the runs are not independent, so their counts are no evidence.
    """
    statement, effort = Statement.of(mechanism, options), Effort.of(options)
    require_budget(statement.stated.claim, effort)
    history = None if options["keep"] is None else KeptEvidence.load(options["keep"])[0]

    def work(problem: Problem, runner: Runner) -> Verdict:
        before_search.report_time_needed(problem, runner, effort.alpha)
        if history is None:
            return check_problem(problem, runner, effort)
        return check_after_kept(problem, runner, effort, history, in_the_time_left)[0]

    def in_the_time_left(problem: Problem, runner: Runner, effort: Effort) -> Verdict:
        return check_problem(problem, _with_share(runner, 1, first=False), effort)

    return work_on(statement, effort, work)


def check_problem(problem: Problem, runner: Runner, effort: Effort, *, notes: tuple[str, ...] | None = None) -> Verdict:
    """Search, then confirm, once for each adjacency that the relation leaves open.

    `notes`: the notes of health checks done before; None: the health checks are done here.
    """
    known = before_search.make_required_checks(problem, runner) if notes is None else notes
    verdict = check_each_adjacency(problem, runner, effort, partial(_check_relation, notes=known))
    return with_notes(verdict, *_own_delta(problem)) if isinstance(verdict, Violation) else verdict


#: A function that checks the claim of a problem.
Check = Callable[[Problem, Runner, Effort], Verdict]


def check_each_adjacency(problem: Problem, runner: Runner, effort: Effort, check: Check) -> Verdict:
    """The verdict of `check`; for an open adjacency the main verdict of one check for each adjacency.

    Each check gets an even share of α, so that together they raise a false alarm with probability at most α, and an
    even share of the time. The main verdict is the violation with the largest e-value, else the pass with the largest
    detectable ε; the other verdicts are its `others`. A later error or interruption does not lose a proved violation,
    except `DependentRuns`: the mechanism is the same, so the counts are no evidence.
    """
    relations, left_out = _relations_of(problem)
    if not left_out and len(relations) < 2:
        return check(problem, runner, effort)
    notes = tuple(f"not checked: {str(left)[:200]}, for which the attack proposes no pair" for left in left_out)
    effort = replace(effort, alpha=effort.alpha / len(relations))
    require_budget(problem.claim, effort)
    verdicts: list[Verdict] = []
    for k, relation in enumerate(relations):
        share = _with_share(runner, len(relations) - k, first=k == 0)
        try:
            verdicts.append(check(replace(problem, relation=relation), share, effort))
        except KeyboardInterrupt:
            if not verdicts:
                raise
            verdicts[-1] = replace(verdicts[-1], ended="interrupted")
        except BaseException as error:  # of any kind, as by pytest-timeout: a proved violation is kept
            violated = any(isinstance(verdict, Violation) for verdict in verdicts)
            if isinstance(error, DependentRuns | RunsEnded) or not violated:
                raise
            text = on_one_line(error)
            verdicts[-1] = with_notes(verdicts[-1], f"under {relation!s:.200} the check failed: {text}")
            continue
        if verdicts[-1].ended in ABORT_REASONS:
            left = [str(other)[:200] for other in relations[len(verdicts) :]]
            verdicts[-1] = with_notes(verdicts[-1], f"not checked: {'; '.join(left)}") if left else verdicts[-1]
            break
    return with_notes(_most_telling(verdicts), *notes)


def adjacency_note(problem: Problem, pair: Pair) -> tuple[str, ...]:
    """A note of the adjacency under which the inputs of a pair are neighbours, if the relation leaves it open."""
    each = alternatives(problem.relation)
    own = [str(one)[:200] for one in each if adjacent(one, pair, problem.data)] if len(each) > 1 else []
    if not own:
        return ()
    return (f"these inputs are neighbours under {' and '.join(own)}: the result is about that adjacency only",)


def _own_delta(problem: Problem) -> tuple[str, ...]:
    """A note where the mechanism has a δ > 0 but the claim has δ = 0, which may be a mistake in the claim."""
    claim, delta = problem.claim, problem.mechanism.signature.parameters.get("delta")
    if claim.symbol != "ε" or claim.largest(0.0) or not isinstance(delta, float) or not 0 < delta < 1:
        return ()
    return (f"the mechanism ran with delta={delta:g}, the claim has δ = 0: state that δ too if it is claimed",)


def _relations_of(problem: Problem) -> tuple[list[Relation], list[Relation]]:
    """The relations that have a pair, a relation for each adjacency; and the relations left out.

    A relation is left out if the user's attack proposes no pair of it, unless no relation would remain.
    """
    all_of_them = alternatives(problem.relation)
    each = [relation for relation in all_of_them if next(proposed_pairs(relation, problem.data), None) is not None]
    if len(each) < 2 or problem.attack is None:
        return each, []
    tested: list[Relation] = []
    left_out: list[Relation] = []
    for relation in each:
        try:
            replace(problem, relation=relation).proposals(problem.attack, CHECK_RUNS)
        except InvalidNeighbours:
            left_out.append(relation)
        else:
            tested.append(relation)
    return (tested, left_out) if tested else (each, [])


def _with_share(runner: Runner, shares: int, *, first: bool) -> Runner:
    """The runner with an even share of the time that is left."""
    if runner.deadline is None:
        return runner
    now, share = time.monotonic(), runner.deadline.left / shares
    began = runner.began if first else now
    return replace(runner, began=began, deadline=Deadline(now + share), max_time=max(share, 1e-9))


def _most_telling(verdicts: list[Verdict]) -> Verdict:
    """The main verdict, with the other verdicts; `ended` comes from an interrupted verdict, if there is one."""
    chosen = max(
        verdicts, key=lambda one: (1, one.log_e_value) if isinstance(one, Violation) else (0, one.detectable_epsilon)
    )
    others = tuple(verdict for verdict in verdicts if verdict is not chosen)
    ended = next((verdict.ended for verdict in verdicts if verdict.ended in ABORT_REASONS), chosen.ended)
    return replace(chosen, others=others, ended=ended)


def _check_relation(problem: Problem, runner: Runner, effort: Effort, notes: tuple[str, ...]) -> Verdict:
    """The verdict on a claim under one relation: search, then confirm."""
    runner = replace(runner, tried=Tried())
    if in_epochs(problem.mechanism.cost, effort):
        return check_in_epochs(problem, runner, effort, notes)
    claim, log_threshold = problem.claim, math.log(1 / effort.level)
    usual, planned = min(usual_runs(claim), effort.runs), effort.runs
    if not problem.mechanism.cost.cheap_in_bulk:
        enough = enough_search(claim, effort)
        usual, planned = min(usual, enough), min(planned, SEARCH_DIVISOR * enough)
    budget = search_budget(problem, runner, effort.search_runs, usual)
    # An event of the stop value is proved in 1/`PROOF_DIVISOR` of the search runs; no evidence grows faster than the
    # evidence of an event that always holds on D and never on D′.
    fastest = float(growth_rate(1.0, 0.0, claim.half_plane(1.0, 0.0)))
    objective = GrowthAt(
        claim=claim,
        planned=effort.runs,
        log_threshold=log_threshold,
        stop_value=min(PROOF_DIVISOR * log_threshold / budget, fastest / 2),
    )
    if effort.search_runs is not None:  # the comparison of candidates stays within the search runs that the user gives
        planned = budget
    candidate, spent = best_candidate(problem, runner, objective, planned=planned, budget=budget)
    if bounds_divergences(claim):
        aim = Aim(claim=claim, planned=effort.runs, log_threshold=log_threshold, of_bound=False)
        candidate, more = better(runner.searching(), candidate, aim, objective, budget)
        spent += more

    def leak(runner: Runner) -> Violation | None:
        most = min(effort.runs, affordable_runs(problem, runner))
        return leak_of_bits(problem, runner, effort, drawn_for_bits(problem, runner), most)

    clear = _promises_most(candidate, objective, budget)
    found = None if clear else leak(runner.searching(SHARE_AFTER_BITS_TEST))
    verdict = unless_proved(
        lambda: confirm_candidate(problem, runner, effort, candidate, spent=spent, notes=notes), found, effort
    )
    if clear and not verdict.refuted and verdict.ended not in ABORT_REASONS:  # the search overestimated the candidate
        try:
            found = leak(runner)
        except KeyboardInterrupt:  # the verdict is kept
            verdict = replace(verdict, ended="interrupted")
        except ClusterLost:
            verdict = replace(verdict, ended="cluster lost")
    return with_leak(verdict, found, effort)


def _promises_most(candidate: Candidate, objective: GrowthAt, runs: int) -> bool:
    """Whether the candidate's value, lowered by three standard errors of its search runs, reaches the stop value."""
    assert candidate.estimate is not None  # of a search
    return value_of(candidate.estimate, objective, runs, 3.0) >= objective.stop_value
