"""What the last bits of floating-point outcomes show: a finding of its own beside the verdict of a check.

A mechanism that is private in real arithmetic may not be private in floating point, and almost none is that adds noise
of double precision to a number (Mironov 2012). So a check says two things: the verdict, which no bits decide, at level
α·(1 − `BITS_SHARE`), and what the bits show, at level α·`BITS_SHARE`. Together they accuse a mechanism that keeps its
claim, as it is computed, with probability at most α.

The runs of both begin with the same draws: each event was fixed before its runs, and the sum of two levels holds
whatever one has to do with the other.

In this order: outcomes → the set of bits that shows most (`search.bits`) → fresh runs → a `Violation` of that event.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.api.loop import Confirmation, Totals, confirm_events, result_fields, uninterrupted
from dpwitness.candidate import Candidate
from dpwitness.claims import Claim
from dpwitness.errors import MechanismRaised, MechanismTimeout
from dpwitness.evidence import bet_on, growth_rate, log_e_value, lower_bound
from dpwitness.machine import Deadline
from dpwitness.neighbours import Pair
from dpwitness.problem import Effort, Problem
from dpwitness.results.verdict import STOPPED, NotRefuted, Verdict, Violation
from dpwitness.runs import Role, Runner
from dpwitness.search.bits import PAIRS, RUNS, best_bits, is_rounded
from dpwitness.search.costs import affordable_runs

Rows = NDArray[np.float64]

#: Fresh runs: so many times those that the bet should take, and so many of cheap ones, for a large lower bound.
MARGIN: Final = 3.0
CHEAP_RUNS: Final = 1 << 15
#: The share of the planned runs that may be spent on this, how many of a pair at least, and the share of the time where
#: compiled code is run as Python.
SHARE: Final = 0.05
FEWEST: Final = 64
#: The level at which plain Python must show what compiled code does: no evidence, so that few runs do.
SAME: Final = 1e-3
SHARE_OF_TIME: Final = 0.01


def drawn_for_bits(problem: Problem, runner: Runner) -> Iterator[tuple[Pair, Rows, Rows]]:
    """Few runs of the relation's first pairs; of the first pair alone where outcomes are not of floating point."""
    affordable = SHARE * affordable_runs(problem, runner)
    n = int(max(min(RUNS, affordable / PAIRS), FEWEST))
    for number, pair in enumerate(islice(problem.candidates(), int(min(PAIRS, affordable / n)))):
        try:
            drawn = runner.sample(pair, n, Role.BITS, number, partial_too=True, size=runner.part_of(n))
        except MechanismRaised:  # the search has said so
            continue
        except MechanismTimeout:
            return
        x, y = map(problem.mechanism.without_time, drawn)
        if number == 0 and not (is_rounded(x) or is_rounded(y)):
            return
        if len(x) > 1:
            yield pair, x, y


def leak_of_bits(
    problem: Problem, runner: Runner, effort: Effort, outcomes: Iterable[tuple[Pair, Rows, Rows]], planned: float
) -> Violation | None:
    """What the last bits show, proved on fresh runs at the level of bits; None where that is nothing.

    `outcomes` as in `best_bits`; `planned`: the runs of the check, of which it takes a small part at most.
    """
    if not effort.bits:
        return None
    spent = 0

    def counted() -> Iterator[tuple[Pair, Rows, Rows]]:
        nonlocal spent
        for pair, x, y in outcomes:
            spent += len(x)
            yield pair, x, y

    claim, candidate = problem.claim, best_bits(counted(), problem.claim)
    if candidate is None:
        return None
    cheap = problem.mechanism.cost.in_numbers and SHARE * affordable_runs(problem, runner) >= CHEAP_RUNS
    try:
        if cheap:  # the best of many events is overestimated
            candidate = candidate.seen(runner.tally(candidate.pair, candidate.event, CHEAP_RUNS // 8, Role.BITS, PAIRS))
            spent += CHEAP_RUNS // 8
        most = min(float(effort.runs), max(SHARE * planned, CHEAP_RUNS if cheap else 0))
        needed = _runs_to_refute(candidate, claim, effort.level_of_bits)
        if needed > most or not _same_in_python(problem, runner, candidate, most):
            return None
        if cheap:
            done = _confirmed(runner, candidate, int(min(max(MARGIN * needed, CHEAP_RUNS), most)))
        else:
            until_refuted = _until_refuted(candidate, claim, effort.level_of_bits)
            done = _confirmed(runner, candidate, int(min(MARGIN * needed + 1, most)), until_refuted)
    except MechanismTimeout:
        return None
    return _violation(problem, effort, candidate, done, spent)


def with_leak(verdict: Verdict, leak: Violation | None, effort: Effort) -> Verdict:
    """The verdict with what the bits show; where that is to count as one, the violation by bits in its place.

    A violation stays as it is: a mechanism that is wrong in real arithmetic needs no bits.
    """
    if leak is None or not isinstance(verdict, NotRefuted):
        return verdict
    if effort.bits != "strict":
        return replace(verdict, floating_point=leak)
    passed = f"without these bits the claim is not refuted: what was looked at would have caught {verdict.caught}"
    ended = verdict.ended if verdict.ended in STOPPED else leak.ended
    return replace(leak, notes=(*verdict.notes, *leak.notes, passed), seconds=verdict.seconds, ended=ended)


def _runs_to_refute(candidate: Candidate, claim: Claim, alpha: float) -> float:
    """The paired runs in which the best bet refutes the claim, by the estimate; infinite where it never does."""
    estimate = candidate.estimate
    assert estimate is not None  # of the runs that chose it
    plane = claim.half_plane(estimate.p, estimate.q)
    growth = float(growth_rate(estimate.p, estimate.q, plane, estimate.both))
    return math.log(1 / alpha) / growth if growth > 0 else math.inf


def _same_in_python(problem: Problem, runner: Runner, candidate: Candidate, most: float) -> bool:
    """Whether the function as it was given shows the same bits, where it was compiled.

    Compiled logarithms may differ from Python's in the last place, so the leak might be of the compiled code alone.
    """
    plain, claim = problem.mechanism.plain, problem.claim
    if plain is None:
        return True
    share = Deadline(time.monotonic() + SHARE_OF_TIME * runner.max_time)
    alone = replace(runner, mechanism=plain, pool=None, deadline=share)
    runs = int(min(MARGIN * _runs_to_refute(candidate, claim, SAME) + 1, most))
    try:
        done = _confirmed(alone, candidate, runs, _until_refuted(candidate, claim, SAME))
    except MechanismTimeout:
        return False
    return done.ended == "refuted"


def _until_refuted(candidate: Candidate, claim: Claim, alpha: float) -> Callable[[Totals], tuple[str, str]]:
    def look(totals: Totals) -> tuple[str, str]:
        refuted = log_e_value(totals[0], claim, candidate.estimate) >= math.log(1 / alpha)
        return "refuted" if refuted else "", "last bits"

    return look


def _confirmed(
    runner: Runner,
    candidate: Candidate,
    runs: int,
    look: Callable[[Totals], tuple[str, str]] = lambda totals: ("", ""),
) -> Confirmation:
    """Fresh runs of a candidate. Raises `KeyboardInterrupt` where they are interrupted: nothing of them is lost."""
    done = confirm_events(runner, candidate.pair, (candidate.event,), runs, coupled=candidate.coupled, look=look)
    if done.ended == "interrupted":
        raise KeyboardInterrupt
    return done


def _violation(
    problem: Problem, effort: Effort, candidate: Candidate, done: Confirmation, spent: int
) -> Violation | None:
    """The violation by bits, if its runs refute the claim and are independent of each other.

    Raises `DependentRuns` where they are not.
    """
    claim, alpha = problem.claim, effort.level_of_bits
    (counts,) = done.totals
    bet = bet_on(counts, claim, candidate.estimate)
    log_e = bet.log_e_value(claim)
    if log_e < math.log(1 / alpha):
        return None
    if effort.bits == "strict" or not problem.mechanism.cost.compiled:
        done = done.examine(against=effort.bits == "strict", compared=())
    common: dict[str, Any] = result_fields(problem, alpha, candidate, done)
    return uninterrupted(
        lambda: Violation(
            **common,
            claim=claim,
            alpha=alpha,
            log_e_value=log_e,
            epsilon_lower_bound=lower_bound(bet, claim, alpha=alpha),
            search_runs=spent,
            runs_made=counts.runs,
            notes=done.notes,
            seconds=done.runner.seconds,
        )
    )
