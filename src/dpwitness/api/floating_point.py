"""What the last bits of floating-point outcomes show: a finding of its own beside the verdict of a check.

A mechanism that is private in real arithmetic may not be private in floating point, and almost none is that adds noise
of double precision to a number (Mironov 2012). So a check says two things: the verdict, which no bits decide, at level
α·(1 − `BITS_SHARE`), and what the bits show, at level α·`BITS_SHARE`. Together they accuse a mechanism that keeps its
claim, as it is computed, with probability at most α.

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
from dpwitness.results.verdict import NotRefuted, Verdict, Violation
from dpwitness.runs import Role, Runner
from dpwitness.search.bits import PAIRS, RUNS, best_bits, is_rounded

Rows = NDArray[np.float64]

#: Fresh runs: so many times those that the bet should take, and so many of cheap ones, for a large lower bound.
MARGIN: Final = 3.0
CHEAP_RUNS: Final = 1 << 15
#: The share of the planned runs that may be spent on this, and of the time where compiled code is run as Python.
SHARE: Final = 0.05
SHARE_OF_TIME: Final = 0.01


def drawn_for_bits(problem: Problem, runner: Runner) -> Iterator[tuple[Pair, Rows, Rows]]:
    """Few runs of the relation's first pairs; of the first pair alone where outcomes are not of floating point."""
    for number, pair in enumerate(islice(problem.candidates(), PAIRS)):
        try:
            x, y = runner.sample(pair, RUNS, Role.BITS, number, partial_too=True, size=runner.part_of(RUNS))
        except MechanismRaised:  # the search has said so
            continue
        except MechanismTimeout:
            return
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
    most = min(float(effort.runs), max(SHARE * planned, CHEAP_RUNS if problem.mechanism.cost.in_numbers else 0))
    needed = _runs_to_refute(candidate, claim, effort.level_of_bits)
    if needed > most:
        return None
    runs, until_refuted = int(min(MARGIN * needed + 1, most)), _until_refuted(candidate, claim, effort.level_of_bits)
    plain = problem.mechanism.plain
    if plain is not None:
        # Compiled logarithms may differ from Python's in the last place: bits are those of what was given.
        share = Deadline(time.monotonic() + SHARE_OF_TIME * runner.max_time)
        alone = replace(runner, mechanism=plain, pool=None, deadline=share)
        if _confirmed(alone, candidate, runs, until_refuted) is None:
            return None
    if problem.mechanism.cost.in_numbers:
        done = _confirmed(runner, candidate, int(min(max(runs, CHEAP_RUNS), most)))
    else:
        done = _confirmed(runner, candidate, runs, until_refuted)
    return None if done is None else _violation(problem, effort, candidate, done, spent)


def with_leak(verdict: Verdict, leak: Violation | None, effort: Effort) -> Verdict:
    """The verdict with what the bits show; where that is to count as one, the violation by bits in its place.

    A violation stays as it is: a mechanism that is wrong in real arithmetic needs no bits.
    """
    if leak is None or not isinstance(verdict, NotRefuted):
        return verdict
    if effort.bits != "strict":
        return replace(verdict, floating_point=leak)
    passed = f"without these bits the claim is not refuted: what was looked at would have caught {verdict.caught}"
    return replace(leak, notes=(*verdict.notes, *leak.notes, passed), seconds=verdict.seconds)


def _runs_to_refute(candidate: Candidate, claim: Claim, alpha: float) -> float:
    """The paired runs in which the best bet refutes the claim, by the estimate; infinite where it never does."""
    estimate = candidate.estimate
    assert estimate is not None  # of the runs that chose it
    plane = claim.half_plane(estimate.p, estimate.q)
    growth = float(growth_rate(estimate.p, estimate.q, plane, estimate.both))
    return math.log(1 / alpha) / growth if growth > 0 else math.inf


def _until_refuted(candidate: Candidate, claim: Claim, alpha: float) -> Callable[[Totals], tuple[str, str]]:
    def look(totals: Totals) -> tuple[str, str]:
        refuted = log_e_value(totals[0], claim, candidate.estimate) >= math.log(1 / alpha)
        return "refuted" if refuted else "", "last bits"

    return look


def _confirmed(
    runner: Runner,
    candidate: Candidate,
    runs: int,
    look: Callable[[Totals], tuple[str, str]] | None = None,
) -> Confirmation | None:
    """Fresh runs of a candidate; None where `look` was to stop them and did not, and where there was no time for any.

    Raises `KeyboardInterrupt` where they were interrupted: nothing has been counted that could be lost.
    """
    try:
        done = confirm_events(
            runner, candidate.pair, (candidate.event,), runs, coupled=candidate.coupled,
            **({} if look is None else {"look": look}),
        )  # fmt: skip
    except MechanismTimeout:
        return None
    if done.ended == "interrupted":
        raise KeyboardInterrupt
    return done if look is None or done.ended == "refuted" else None


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
