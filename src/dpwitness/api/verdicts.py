"""From what was tested to a verdict: a check that searches first and one in epochs end alike."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dpwitness.api.loop import Confirmed, Totals, believed, made_whole, result_fields
from dpwitness.candidate import Candidate, Estimate
from dpwitness.claims import Claim
from dpwitness.effort import Effort
from dpwitness.evidence import log_e_value
from dpwitness.health import findings
from dpwitness.health.dependence import Shards
from dpwitness.problem import Problem
from dpwitness.results.verdict import NotRefuted, Verdict, Violation
from dpwitness.runs import Runner

__all__ = ["Tested", "until_refuted", "verdict_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A candidate, its counts, and the evidence; `lower_bound` and `detectable` are computed where they are said.

    `search_runs` and `epoch_runs`: what was spent before; `of_epochs`: whether the counts are of these; `pass_notes`:
    what to say of a pass alone.
    """

    candidate: Candidate
    done: Confirmed
    shards: Shards
    log_e_value: float
    lower_bound: Callable[[], float]
    detectable: Callable[[], float]
    search_runs: int = 0
    epoch_runs: int = 0
    of_epochs: bool = False
    pass_notes: tuple[str, ...] = ()


def until_refuted(
    claim: Claim, estimate: Estimate | None, alpha: float, *, before: float = 0.0
) -> Callable[[Totals], tuple[bool, str]]:
    """What stops confirm runs of one event once the claim is refuted; `before`: the log e-value of earlier bets."""
    threshold = math.log(1 / alpha)

    def look(totals: Totals) -> tuple[bool, str]:
        log_e = before + log_e_value(totals[0], claim, estimate)
        return log_e >= threshold, f"log e-value {log_e:.1f} of {threshold:.1f}"

    return look


def verdict_of(problem: Problem, runner: Runner, effort: Effort, tested: Tested, notes: tuple[str, ...]) -> Verdict:
    """The verdict, once it has been asked whether the counts can be believed.

    Raises `DependentRuns` where the claim would be refuted by runs that are not independent.
    """
    candidate = tested.candidate
    refuted = tested.log_e_value >= math.log(1 / effort.alpha)
    done, said = believed(runner, candidate.pair, (candidate.event,), tested.done, tested.shards, against=refuted)
    tested = replace(tested, done=done)
    return made_whole(lambda: _made(problem, runner, effort, tested, (*notes, *said), refuted=refuted))


def _made(
    problem: Problem, runner: Runner, effort: Effort, tested: Tested, notes: tuple[str, ...], *, refuted: bool
) -> Verdict:
    """The verdict of what was tested, and was asked for."""
    (counts,) = tested.done.totals
    notes += findings.of_counts(counts)
    common: dict[str, Any] = {
        **result_fields(problem, runner, effort.alpha, tested.candidate, tested.done),
        "claim": problem.claim,
        "alpha": effort.alpha,
        "log_e_value": tested.log_e_value,
        "epsilon_lower_bound": tested.lower_bound(),
        "search_runs": tested.search_runs,
        "epoch_runs": tested.epoch_runs,
        "runs_made": tested.epoch_runs + (0 if tested.of_epochs else counts.runs),
    }
    if refuted:
        return Violation(**common, notes=notes, seconds=runner.seconds)
    notes += tested.pass_notes
    verdict = NotRefuted(**common, notes=notes, detectable_epsilon=tested.detectable(), seconds=runner.seconds)
    return replace(verdict, notes=(*notes, *findings.of_pass(verdict)))
