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

outcomes → the event on last bits with most nats against the claim → fresh runs → a `Violation` with that event
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np

from dpwitness.api.loop import Confirmation, Totals, confirm_events, result_fields, uninterrupted, witness_of
from dpwitness.arrays import Floats, Rows
from dpwitness.candidate import Candidate, Estimate
from dpwitness.claims import Claim
from dpwitness.errors import CompiledDisagrees, DependentRuns, MechanismError, MechanismRaised, MechanismTimeout
from dpwitness.events import Feature, FeatureEvent, Interval, widen
from dpwitness.events.features import numbers
from dpwitness.evidence import bet_on, growth_rate, log_e_value, lower_bound
from dpwitness.machine import Deadline
from dpwitness.neighbours import Pair
from dpwitness.problem import Effort, Problem
from dpwitness.results.verdict import ABORT_REASONS, NotRefuted, Verdict, Violation
from dpwitness.runs import Role, Runner
from dpwitness.search.costs import affordable_runs

#: The number of fresh runs for each run that the bet is expected to take.
RUNS_FACTOR: Final = 3.0
#: The least number of fresh runs of cheap code, for a large lower bound.
CHEAP_RUNS: Final = 1 << 15
#: The largest share of the planned runs for the test of last bits.
RUNS_SHARE: Final = 0.05
#: The least number of runs of a pair whose last bits are tested.
LEAST_RUNS: Final = 64
#: The level at which plain Python must show the leak of compiled code, in few runs, which are no evidence.
PYTHON_LEVEL: Final = 1e-3
#: The share of the time in which compiled code is compared with Python.
PYTHON_SHARE: Final = 0.01


def drawn_for_bits(problem: Problem, runner: Runner) -> Iterator[tuple[Pair, Rows, Rows]]:
    """Outcomes of a few runs of the relation's first pairs; nothing if the first pair has whole numbers only."""
    affordable = RUNS_SHARE * affordable_runs(problem, runner)
    n = int(max(min(MOST_RUNS, affordable / MOST_PAIRS), LEAST_RUNS))
    for number, pair in enumerate(islice(problem.candidates(), int(min(MOST_PAIRS, affordable / n)))):
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
    spent = 0

    def counted() -> Iterator[tuple[Pair, Rows, Rows]]:
        nonlocal spent
        for pair, x, y in outcomes:
            spent += len(x)
            yield pair, x, y

    claim, candidate = problem.claim, best_bits(counted(), problem.claim)
    if candidate is None:
        return None
    cheap = problem.mechanism.cost.cheap_in_bulk and RUNS_SHARE * affordable_runs(problem, runner) >= CHEAP_RUNS
    try:
        if cheap:  # the best of many events is overestimated
            (tally,) = runner.tallies(candidate.pair, [candidate.event], CHEAP_RUNS // 8, Role.BITS, MOST_PAIRS)
            candidate, spent = candidate.seen(tally), spent + tally.runs
        most = min(float(effort.runs), max(RUNS_SHARE * planned, CHEAP_RUNS if cheap else 0))
        needed = _runs_to_refute(candidate, claim, effort.level_of_bits)
        if needed > most or not _same_in_python(problem, runner, candidate, most):
            return None
        if cheap:
            done = _confirmed(runner, candidate, int(min(max(RUNS_FACTOR * needed, CHEAP_RUNS), most)))
        else:
            until_refuted = _until_refuted(candidate, claim, effort.level_of_bits)
            done = _confirmed(runner, candidate, int(min(RUNS_FACTOR * needed + 1, most)), until_refuted)
    except MechanismTimeout:
        return None
    return _violation(problem, effort, candidate, done, spent)


def with_leak(verdict: Verdict, leak: Violation | None, effort: Effort) -> Verdict:
    """A pass with the leak through bits, or, with `bits="strict"`, the leak as violation; another verdict as it is."""
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
    """Fresh runs of a candidate. Raises `KeyboardInterrupt` where they are interrupted."""
    done = confirm_events(runner, candidate.pair, (candidate.event,), runs, coupled=candidate.coupled, look=look)
    if done.ended == "interrupted":
        raise KeyboardInterrupt
    return done


def _violation(
    problem: Problem, effort: Effort, candidate: Candidate, done: Confirmation, spent: int
) -> Violation | None:
    """The violation by bits; None if its runs do not refute the claim. Raises `DependentRuns`."""
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


#: The largest number of runs of a pair whose last bits are tested.
MOST_RUNS: Final = 256
#: The largest number of pairs tested.
MOST_PAIRS: Final = 12
#: The largest number of columns of an outcome that are tested.
MOST_COLUMNS: Final = 64
#: The number of columns whose every cut is tried: the columns in which the bits differ most.
CUT_COLUMNS: Final = 4
#: Bits by which a grid of rounding is finer than typical outcomes; learners test a coarser grid, as it is no rounding.
SIGNIFICANT_BITS: Final = 20
#: Bits of the mantissa of a double.
MANTISSA_BITS: Final = 53
#: The largest share of the runs of either side in which an entry may lie on a coarser grid.
COARSE_SHARE: Final = 0.25
#: The least nats against the claim that an event shows in the runs that chose it: chance may give a few nats.
LEAST_NATS: Final = 12.0
#: The nats against the claim at which no further pair is tested.
STOP_NATS: Final = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBits:
    """A candidate, and the nats of its event against the claim in the runs that chose it."""

    candidate: Candidate
    nats: float


def is_rounded(rows: Rows) -> bool:
    """Whether outcomes hold numbers that are not whole; the last bits of whole numbers show no rounding."""
    plain = numbers(rows)
    return bool(np.any(plain != np.round(plain), where=np.isfinite(plain)))


def best_bits(outcomes: Iterable[tuple[Pair, Rows, Rows]], claim: Claim) -> Candidate | None:
    """The event on last bits with the most evidence against a claim, in outcomes of some pairs.

    None for evidence below `LEAST_NATS`. Rows have the shape (n, any width), with n paired runs, at least 2. Evidence
    of `STOP_NATS` ends the search. The candidate's estimate comes from the same runs.
    """
    best: FoundBits | None = None
    for pair, x, y in outcomes:
        best = max(filter(None, (best, *_of_pair(pair, x, y, claim))), key=lambda one: one.nats, default=None)
        if best is not None and best.nats >= STOP_NATS:
            break
    return best.candidate if best is not None and best.nats >= LEAST_NATS else None


def _of_pair(pair: Pair, x: Rows, y: Rows, claim: Claim) -> Iterator[FoundBits]:
    """The best event of each of the most promising columns and features."""
    width = min(max(x.shape[1], y.shape[1]), MOST_COLUMNS)
    sides = np.stack([widen(rows, width)[:, :width] for rows in (x, y)])
    if not is_rounded(sides):
        return
    plain = numbers(sides)
    sizes = np.abs(plain).reshape(-1, width)
    sizes[~np.isfinite(sizes) | (sizes == 0)] = np.nan
    columns = np.flatnonzero(~np.isnan(sizes).all(axis=0))
    finest = np.floor(np.log2(np.nanmedian(sizes[:, columns], axis=0))) - SIGNIFICANT_BITS
    entries = sides[:, :, columns]
    for name in ("power of two", "trailing zeros"):
        values = Feature(name=name, columns=(0,)).values(entries.reshape(-1, 1)).reshape(entries.shape)
        most = finest if name == "power of two" else np.full(len(columns), MANTISSA_BITS - 1.0 - SIGNIFICANT_BITS)
        coarse = (values > most).mean(axis=1).max(axis=0) > COARSE_SHARE
        for place in _promising(np.where(coarse, np.nan, values), most):
            feature = Feature(name=name, columns=(int(columns[place]),))
            one = _best_cut(pair, feature, values[:, :, place], most[place], claim)
            if one is not None:
                yield one


def _promising(values: Floats, most: Floats) -> list[int]:
    """The columns in which the values differ most, in standard errors; shape (2, n, width)."""
    clipped = np.where(np.isnan(values), most, np.minimum(values, most))
    means, spread = clipped.mean(axis=1), clipped.var(axis=1).sum(axis=0)
    apart = np.abs(means[0] - means[1]) / np.sqrt(spread + 1e-9)
    return [int(column) for column in np.argsort(-apart, kind="stable")[:CUT_COLUMNS] if apart[column] > 0]


def _best_cut(pair: Pair, feature: Feature, values: Floats, most: float, claim: Claim) -> FoundBits | None:
    """The event {value ≥ t} or {value < t}, t ≤ `most`, with most nats, in either direction; `values`: shape (2, n)."""
    n = values.shape[1]
    cuts = np.unique(values)  # NaN goes last
    cuts = cuts[cuts <= most]
    if not len(cuts):
        return None
    members = np.stack([values[None] >= cuts[:, None, None], values[None] < cuts[:, None, None]])
    shares = members.mean(axis=3)  # of {≥, <}, cut and side
    p = np.stack([shares[..., 0], shares[..., 1]])
    q = p[::-1]
    plane = claim.half_plane(p, q)
    allowed = plane.slope * q + plane.intercept
    # One imagined run in the event on either side, since few runs may miss it by chance.
    nats = n * p * np.log((p + 1 / n) / (allowed + 1 / n))
    swapped, below, k = np.unravel_index(int(np.argmax(nats)), nats.shape)
    cut = float(cuts[k])
    within = Interval(coordinate=0, high=cut) if below else Interval(coordinate=0, low=cut)
    both = float(np.logical_and(*members[below, k]).mean())
    estimate = Estimate(p=float(p[swapped, below, k]), q=float(q[swapped, below, k]), both=both)
    event = FeatureEvent(feature=feature, within=within)
    found = Candidate(pair=pair.swapped() if swapped else pair, event=event, estimate=estimate)
    return FoundBits(candidate=found, nats=float(nats[swapped, below, k]))
