"""The verdict of confirm runs: evidence of a candidate, the rule to stop, and the contents of a violation or a pass."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from dpwitness.api.loop import (
    Confirmation,
    EvidenceCourse,
    Totals,
    bound_so_far,
    confirm_events,
    result_fields,
    uninterrupted,
    witness_of,
)
from dpwitness.api.outputs import drawn_outputs, outputs_of
from dpwitness.arrays import Rows
from dpwitness.candidate import Candidate, Estimate
from dpwitness.claims import Claim
from dpwitness.errors import BudgetTooSmall, RunsEnded
from dpwitness.evidence import (
    MOST_RUNS,
    Bet,
    Counts,
    EProcess,
    bet_on,
    detectable_parameter,
    log_e_value,
    lower_bound,
    runs_needed,
    why_enough,
)
from dpwitness.evidence.portfolio import level_left
from dpwitness.health import findings
from dpwitness.health.explanation import explain
from dpwitness.mechanisms.resolve import example_of
from dpwitness.problem import Effort, Problem
from dpwitness.results.verdict import ABORT_REASONS, Course, NotRefuted, Verdict, Violation
from dpwitness.runs import Runner

#: The number of runs after which a check first tests whether a pass needs no further runs.
FIRST_TEST_RUNS: Final = 64
#: The value in place of `FIRST_TEST_RUNS` for compiled or vectorised code, which makes these runs in 0.1 s.
FIRST_TEST_RUNS_IF_CHEAP: Final = 1 << 20
#: The factor by which the runs grow between two tests of whether a pass needs no further runs.
TEST_GROWTH: Final = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateEvidence:
    """A candidate, its counts, all bets, and the course of their evidence.

    `outcomes`: the outcomes of D and of D′ in earlier runs, if kept; `runs_made`: all runs with a bet, with the runs of
    epochs; `search_runs` and `epoch_runs`: the runs before the last bet; `pass_notes`: notes that only a pass has.
    """

    candidate: Candidate
    confirmation: Confirmation
    bet: EProcess
    course: EvidenceCourse
    runs_made: int
    outcomes: tuple[Rows, Rows] | None = None
    search_runs: int = 0
    epoch_runs: int = 0
    pass_notes: tuple[str, ...] = ()


def confirm_candidate(
    problem: Problem,
    runner: Runner,
    effort: Effort,
    candidate: Candidate,
    *,
    spent: int = 0,
    notes: tuple[str, ...] = (),
    enough: Callable[[Bet, Claim, float], str] | None = None,
) -> Verdict:
    """The verdict of fresh runs of a fixed candidate, which end once the claim is refuted; `spent`: search runs.

    `enough`: see `until_settled`. Raises `DependentRuns` where runs that are not independent would refute the claim.
    """
    claim, estimate, course = problem.claim, candidate.estimate, EvidenceCourse()
    look = until_settled(problem, estimate, effort, course, enough=enough)
    done = confirm_events(runner, candidate.pair, (candidate.event,), effort.runs, coupled=candidate.coupled, look=look)
    (counts,) = done.totals
    evidence = CandidateEvidence(
        candidate=candidate,
        confirmation=done,
        bet=bet_on(counts, claim, estimate),
        course=course,
        runs_made=counts.runs,
        search_runs=spent,
    )
    return verdict_of(problem, effort, evidence, notes)


def until_settled(
    problem: Problem,
    estimate: Estimate | None,
    effort: Effort,
    course: EvidenceCourse,
    earlier: tuple[int, float] = (0, 0.0),
    enough: Callable[[Bet, Claim, float], str] | None = None,
    wealth: Callable[[Counts], EProcess] | None = None,
) -> Callable[[Totals], tuple[str, str]]:
    """The function that ends confirm runs of one event once the claim is refuted, or a pass needs no further runs.

    `course` gets the evidence after each look; `earlier`: the runs and the log e-value of earlier bets. `enough`: the
    reason why a pass needs no further runs, by its bet, the claim and the log e-value; None: `why_enough` at the
    detectable ratio of `effort`. `wealth`: all bets, also the bets of earlier sessions, by the event's counts; None: a
    bet on the event after `earlier`.
    """
    runs_before, before = earlier
    claim, alpha, ratio = problem.claim, effort.level, effort.detectable_ratio
    threshold, left, asked_next = math.log(1 / alpha), level_left(alpha, before), FIRST_TEST_RUNS
    if problem.mechanism.cost.cheap_in_bulk:
        asked_next = FIRST_TEST_RUNS_IF_CHEAP
    if ratio is None and (problem.mechanism.cost.cheap_in_bulk or not effort.limits_by_default):
        ratio = 1.0  # runs are nearly free, or the user has said how many to make
    if enough is None and ratio != 1:
        enough = partial(why_enough, alpha=left, ratio=ratio)

    shown = bound_so_far(claim, estimate, effort, alpha=alpha)

    def look(totals: Totals) -> tuple[str, str]:
        nonlocal asked_next
        (counts,) = totals
        log_e = before + log_e_value(counts, claim, estimate) if wealth is None else wealth(counts).log_e_value(claim)
        why = ""
        course.add(runs_before + counts.runs, log_e)
        if log_e >= threshold:
            why = "refuted"
        elif enough is not None and counts.runs >= asked_next:
            asked_next = math.ceil(TEST_GROWTH * counts.runs)
            why = enough(bet_on(counts, claim, estimate), claim, log_e)
        return why, ", ".join(filter(None, (shown(totals), f"log e-value {log_e:.1f} of {threshold:.1f}")))

    return look


def verdict_of(problem: Problem, effort: Effort, evidence: CandidateEvidence, notes: tuple[str, ...]) -> Verdict:
    """The verdict of the evidence, after the health checks of its counts.

    Raises `DependentRuns` where the claim would be refuted by runs that are not independent.
    """
    claim, alpha, level, bet = problem.claim, effort.alpha, effort.level, evidence.bet
    log_e = bet.log_e_value(claim)
    refuted = log_e >= math.log(1 / level)
    done = evidence.confirmation.examine(against=refuted)
    (counts,) = done.totals
    explanation, outputs, tried = None, None, done.runner.tried
    try:
        if refuted:
            explanation = explain(done.runner, example_of(problem.function), claim, done.pair)
        if evidence.outcomes is not None:
            outputs = outputs_of(problem, evidence.candidate.event, *evidence.outcomes)
        if outputs is None and done.ended not in ABORT_REASONS:
            outputs = drawn_outputs(problem, done.runner, evidence.candidate)
    except KeyboardInterrupt:  # the verdict is kept
        done = replace(done, ended="interrupted")
    except BaseException as error:  # of any kind, as by pytest-timeout: a proved violation is kept
        if isinstance(error, RunsEnded) or not refuted:
            raise
    grown = evidence.course.ending(evidence.runs_made, log_e)
    course = Course(pairs=tried.pairs, events=tried.events, evidence=grown, outputs=outputs)

    def verdict() -> Verdict:
        witness = witness_of(problem, done.runner, alpha, evidence.candidate, counts)
        common: dict[str, Any] = {
            **result_fields(problem.mechanism, done),
            "witness": replace(witness, explanation=explanation),
            "claim": claim,
            "alpha": alpha,
            "log_e_value": log_e,
            "epsilon_lower_bound": lower_bound(bet, claim, alpha=level),
            "search_runs": evidence.search_runs,
            "epoch_runs": evidence.epoch_runs,
            "runs_made": evidence.runs_made,
            "course": course,
            "notes": (*notes, *done.notes, *findings.notes_on_counts(counts)),
        }
        if refuted:
            return Violation(**common, seconds=done.runner.seconds)
        detectable = detectable_parameter(bet, claim, alpha=level)
        passed = NotRefuted(**common, detectable_epsilon=detectable, seconds=done.runner.seconds)
        return with_notes(passed, *evidence.pass_notes, *findings.notes_on_pass(passed))

    return uninterrupted(verdict)


def with_notes(verdict: Verdict, *notes: str) -> Verdict:
    """The verdict with `notes` added after its own."""
    return replace(verdict, notes=(*verdict.notes, *notes))


def require_budget(claim: Claim, effort: Effort) -> None:
    """Raise `BudgetTooSmall` if the runs are too few to prove even the clearest violation."""
    needed = runs_needed(claim, effort.level)
    if needed >= MOST_RUNS:
        raise BudgetTooSmall(
            f"claim={claim}: no test can refute it: even the clearest violation at alpha={effort.alpha:g} would need "
            "more than 10^18 runs"
        )
    if effort.runs < needed:
        raise BudgetTooSmall(
            f"runs={effort.runs} is too small: even the clearest violation of {claim} at "
            f"alpha={effort.alpha:g} needs {needed} runs; give at least that many"
        )
