"""Leaks through the last bits of floating-point outcomes: a finding of its own beside the verdict of a check.

A mechanism that is private in real arithmetic may not be private in floating point: almost all mechanisms that add
noise of double precision to a number are not (Mironov 2012). So a check has two results: the verdict, without last
bits, at level α·(1 − `BITS_SHARE`), and the leak through last bits, at level α·`BITS_SHARE`. Together they accuse a
mechanism that keeps its claim, as it is computed, with probability at most α.

The runs of both begin with the same draws. Each event was fixed before its runs, and the sum of the two levels holds
for any dependence between them.

A sum x + noise in double precision lies on the grid of its last bits: 1 + noise is always a multiple of 2^−53; with
Laplace noise of scale 1, 0 + noise lies off this grid in a quarter of the runs (Mironov 2012; Haney et al. 2022). Such
a leak shows in a large part of the runs or nowhere, so a few runs of a few pairs find it.

outcomes → the event on last bits with the fastest growth → fresh runs → a `Violation` with that event
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

import numpy as np

from dpwitness.api.loop import Confirmation, Totals, confirm_events, result_fields, uninterrupted, witness_of
from dpwitness.arrays import Rows
from dpwitness.candidate import Candidate
from dpwitness.claims import Claim
from dpwitness.errors import CompiledDisagrees, DependentRuns, MechanismError, MechanismRaised, MechanismTimeout
from dpwitness.events.features import numbers
from dpwitness.evidence import bet_on, growth_rate, log_e_value, lower_bound
from dpwitness.machine import Deadline
from dpwitness.neighbours import Pair
from dpwitness.problem import Effort, Problem
from dpwitness.results.verdict import ABORT_REASONS, NotRefuted, Verdict, Violation
from dpwitness.runs import Role, Runner
from dpwitness.search.costs import affordable_runs
from dpwitness.search.learners import Statistics, bit_families, rate
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.samples import sample_of

#: The largest number of runs of a pair whose last bits are tested.
MOST_BITS_RUNS: Final = 512
#: The largest number of pairs whose last bits are tested.
MOST_BITS_PAIRS: Final = 12
#: The number of fresh runs in plain Python for each run that the bet is expected to take.
RUNS_FACTOR: Final = 3.0
#: The number of fresh runs of cheap code, which give a larger lower bound than the runs that refute the claim.
CHEAP_RUNS: Final = 1 << 15
#: The largest share of the planned runs for the test of last bits.
RUNS_SHARE: Final = 0.05
#: The least number of runs of a pair whose last bits are tested.
LEAST_BITS_RUNS: Final = 64
#: The level at which plain Python must show the leak of compiled code, in few runs, which are no evidence.
PYTHON_LEVEL: Final = 1e-3
#: The share of the time in which compiled code is compared with Python.
PYTHON_SHARE: Final = 0.01


def drawn_for_bits(problem: Problem, runner: Runner) -> Iterator[tuple[Pair, Rows, Rows]]:
    """Outcomes of a few runs of the relation's first pairs; nothing if the first pair has whole numbers only."""
    affordable = RUNS_SHARE * affordable_runs(problem, runner)
    n = int(max(min(MOST_BITS_RUNS, affordable / MOST_BITS_PAIRS), LEAST_BITS_RUNS))
    for number, pair in enumerate(islice(problem.candidates(), int(min(MOST_BITS_PAIRS, affordable / n)))):
        try:
            drawn = runner.sample(pair, n, Role.BITS, number, partial_too=True, size=runner.part_of(n))
        except MechanismRaised:  # the search has reported it
            continue
        except MechanismTimeout:
            return
        x, y = drawn
        if number == 0 and not (is_rounded(x) or is_rounded(y)):
            return
        if len(x) > 1:
            yield pair, x, y


def leak_of_bits(
    problem: Problem, runner: Runner, effort: Effort, outcomes: Iterable[tuple[Pair, Rows, Rows]], planned: float
) -> Violation | None:
    """The violation by last bits, proved on fresh runs at the level of bits; None without a violation.

    `outcomes` as in `best_bits`; `planned`: the runs of the check, a small part of which prove the leak.
    """
    if not effort.bits:
        return None
    claim, alpha, spent = problem.claim, effort.level_of_bits, 0

    def counted() -> Iterator[tuple[Pair, Rows, Rows]]:
        nonlocal spent
        for pair, x, y in outcomes:
            spent += len(x)
            yield pair, x, y

    cheap = problem.mechanism.cost.cheap_in_bulk and RUNS_SHARE * affordable_runs(problem, runner) >= CHEAP_RUNS
    most = min(float(effort.runs), max(RUNS_SHARE * planned, CHEAP_RUNS if cheap else 0))
    candidate = best_bits(counted(), claim, alpha, most)
    try:
        if candidate is None or not _same_in_python(problem, runner, candidate, most):
            return None
        if cheap:
            done = _confirmed(runner, candidate, int(min(CHEAP_RUNS, most)))
        else:
            done = _confirmed(runner, candidate, int(most), _until_refuted(candidate, claim, alpha))
    except MechanismTimeout:
        return None
    return _violation(problem, effort, candidate, done, spent)


def with_leak(verdict: Verdict, leak: Violation | None, effort: Effort) -> Verdict:
    """The verdict; a leak through last bits is noted on a pass or, with `bits="strict"`, replaces the pass."""
    if leak is None or not isinstance(verdict, NotRefuted):
        return verdict
    if effort.bits != "strict":
        return replace(verdict, floating_point=leak)
    passed = f"without these bits the claim is not refuted: the check would have caught {verdict.caught}"
    ended = verdict.ended if verdict.ended in ABORT_REASONS else leak.ended
    return replace(leak, notes=(*verdict.notes, *leak.notes, passed), seconds=verdict.seconds, ended=ended)


def unless_proved(verdict: Callable[[], Verdict], leak: Violation | None, effort: Effort) -> Verdict:
    """The verdict; if its runs fail and `bits="strict"`, the violation by bits that was proved before them."""
    try:
        return verdict()
    except (DependentRuns, CompiledDisagrees):  # errors that void the runs of the leak too
        raise
    except MechanismError as error:
        if leak is None or effort.bits != "strict":
            raise
        return replace(leak, notes=(*leak.notes, f"the runs after this proof ended with an error: {error}"))


def _runs_to_refute(candidate: Candidate, claim: Claim, alpha: float) -> float:
    """The paired runs in which the best bet for the estimate refutes the claim; infinite without growth."""
    estimate = candidate.estimate
    assert estimate is not None  # from the runs that chose the event
    plane = claim.half_plane(estimate.p, estimate.q)
    growth = float(growth_rate(estimate.p, estimate.q, plane, estimate.both))
    return math.log(1 / alpha) / growth if growth > 0 else math.inf


def _same_in_python(problem: Problem, runner: Runner, candidate: Candidate, most: float) -> bool:
    """Whether the function shows the same leak in plain Python, if it was compiled.

    Compiled logarithms may differ from Python's in the last place, so only the compiled code might leak.
    """
    plain, claim = problem.mechanism.plain, problem.claim
    if plain is None:
        return True
    share = Deadline(time.monotonic() + PYTHON_SHARE * runner.max_time)
    alone = replace(runner, mechanism=plain, pool=None, deadline=share)
    runs = int(min(RUNS_FACTOR * _runs_to_refute(candidate, claim, PYTHON_LEVEL) + 1, most))
    try:
        done = _confirmed(alone, candidate, runs, _until_refuted(candidate, claim, PYTHON_LEVEL))
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
    """The counts of a candidate in fresh runs. Raises `KeyboardInterrupt` where the runs are interrupted."""
    done = confirm_events(runner, candidate.pair, (candidate.event,), runs, coupled=candidate.coupled, look=look)
    if done.ended == "interrupted":
        raise KeyboardInterrupt
    return done


def _violation(
    problem: Problem, effort: Effort, candidate: Candidate, done: Confirmation, spent: int
) -> Violation | None:
    """The violation by last bits; None if the fresh runs do not refute the claim. Raises `DependentRuns`."""
    claim, alpha = problem.claim, effort.level_of_bits
    (counts,) = done.totals
    bet = bet_on(counts, claim, candidate.estimate)
    log_e = bet.log_e_value(claim)
    if log_e < math.log(1 / alpha):
        return None
    if effort.bits == "strict" or not problem.mechanism.cost.compiled:
        done = done.examine(against=effort.bits == "strict", compared=())
    return uninterrupted(
        lambda: Violation(
            **result_fields(problem.mechanism, done),
            witness=witness_of(problem, done.runner, alpha, candidate, counts),
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


def is_rounded(rows: Rows) -> bool:
    """Whether outcomes hold numbers that are not whole; the last bits of whole numbers show no rounding."""
    plain = numbers(rows)
    return bool(np.any(plain != np.round(plain), where=np.isfinite(plain)))


def best_bits(outcomes: Iterable[tuple[Pair, Rows, Rows]], claim: Claim, alpha: float, most: float) -> Candidate | None:
    """The event on last bits whose bet grows fastest, in outcomes of some pairs; None if no event refutes the claim.

    Rows have the shape (n, any width), with n paired runs, at least 2. An event refutes the claim at level `alpha` if
    its bet is expected to do so in `most` runs; the first pair with such an event ends the search. The first half of
    the runs chooses an event, and the second half gives its estimate.
    """
    learner, objective = Statistics(of=bit_families), GrowthAt(claim=claim)
    for pair, x, y in outcomes:
        sample = sample_of(x, y)
        rated = rate(sample, objective, list(learner.propose(sample, objective, thorough=True)))
        found = max(rated, key=lambda one: one.value, default=None)
        if found is not None and found.value > 0:
            candidate = Candidate(pair=found.directed(pair), event=found.event, estimate=found.estimate)
            if _runs_to_refute(candidate, claim, alpha) <= most:
                return candidate
    return None
