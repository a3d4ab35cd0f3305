"""Health checks before the search: whether runs vary, are independent, use their input and are fast enough.

`check`, `bound`, `curve` and `profile` refuse mechanisms that would give false alarms and note other findings
(`make_required_checks`); the pytest plugin refuses every finding whose check is not suppressed by name
(`all_findings`).
"""

import time
from collections.abc import Hashable, Iterable
from functools import partial
from itertools import islice
from typing import Final

import numpy as np

from dpwitness.arrays import Rows
from dpwitness.errors import DependentRuns, InvalidNeighbours, MechanismRaised
from dpwitness.events import of_one_width, stack
from dpwitness.events.encoding import is_text
from dpwitness.evidence import runs_needed
from dpwitness.health.dependence import MOST_CALLED_ENTRIES, Series, refuse_series
from dpwitness.health.findings import (
    CHECK_SECONDS,
    CONSTANT_OUTCOME_REMARK,
    OVERHEAD,
    HealthFinding,
    only_outcome,
    useful_runs,
)
from dpwitness.machine import Deadline
from dpwitness.mechanisms.failures import describe_both_inputs
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.neighbours import Data, Pair, input_key, proposed_pairs, shown
from dpwitness.neighbours.pair import unlike
from dpwitness.problem import Problem
from dpwitness.results.text import at_most
from dpwitness.runs import Role, Runner, Threads, generator

#: LEAST_FINDING_RUNS is the smallest number of runs, or of texts, for a finding: with probability 2·10⁻⁴, 128 texts
#: drawn from 1,000 equally likely texts all differ.
LEAST_FINDING_RUNS: Final = 128
#: TIME_SHARE is the share of a check's time that one of its health checks may take.
TIME_SHARE: Final = 1 / 20
#: MOST_PROPOSED_PAIRS is the largest number of proposed pairs whose two inputs are compared.
MOST_PROPOSED_PAIRS: Final = 64


def make_required_checks(problem: Problem, runner: Runner) -> tuple[str, ...]:
    """Make the health checks of check, bound, curve and profile before the search; returns notes for people.

    Raises `InvalidNeighbours` for identical inputs, and `DependentRuns` for runs that cannot be evidence.
    """
    if finding := identical_inputs(problem):
        raise InvalidNeighbours(finding.text)
    name, seen = problem.mechanism.name, None
    if not problem.mechanism.cost.compiled:  # compiled code has no memory from run to run, and returns no texts
        seen = first_runs(problem, runner)
        if finding := stuck_generator(name, seen):
            raise DependentRuns(finding.text)
    found = unlike_inputs(problem), unrepeated_texts(name, seen), input_ignored(problem, runner)
    return tuple(finding.text for finding in found if finding)


def report_time_needed(problem: Problem, runner: Runner, alpha: float) -> None:
    """Report, before the runs, too little time to refute anything. This is no error, as measured times may be wrong."""
    if finding := time_needed(problem, runner, alpha):
        runner.report("search", 0, runs_needed(problem.claim, alpha), finding.text)


def all_findings(problem: Problem, runner: Runner) -> list[HealthFinding]:
    """The findings of all health checks before the search, for the plugin."""
    if finding := identical_inputs(problem):
        return [finding]  # the other checks need two inputs
    seen, name = first_runs(problem, runner), problem.mechanism.name
    on_runs = (check(name, seen) for check in (deterministic_output, unrepeated_texts, stuck_generator))
    return [finding for finding in (unlike_inputs(problem), *on_runs, input_ignored(problem, runner)) if finding]


def first_runs(problem: Problem, runner: Runner) -> tuple[Series, Series] | None:
    """Runs of both inputs of the relation's first pair; None if `LEAST_FINDING_RUNS` of each would take too long."""
    limit = min(CHECK_SECONDS, TIME_SHARE * runner.max_time) / 2  # seconds for each side
    if LEAST_FINDING_RUNS * runner.mechanism.cost.seconds_per_run > limit:
        return None
    drawn = partial(_draw_series, runner, problem.first, limit)
    seen = next(Threads(1).ordered([drawn], runner.searching().deadline))  # a run may hang
    return seen if seen and min(len(side.rows) for side in seen) >= LEAST_FINDING_RUNS else None


def _draw_series(runner: Runner, pair: Pair, limit: float) -> tuple[Series, Series]:
    """Series of up to 64 calls on D and on D′, with at most `limit` seconds for each side."""
    mechanism = runner.mechanism
    rows = 64 if mechanism.cost.batched else 4

    def drawn(side: int) -> Series:
        data, end, blocks = pair.sides[side], time.monotonic() + limit, list[Rows]()
        while len(blocks) < 64 and (not blocks or time.monotonic() < end):
            rng = generator(runner.seed, Role.HEALTH_FIRST_RUNS, side, len(blocks))
            blocks.append(mechanism.outcomes(data, rng, rows, start=len(blocks) * rows))
        return Series(data, stack(blocks), np.arange(len(blocks) * rows))

    try:
        return drawn(0), drawn(1)
    except MechanismRaised as error:
        raise describe_both_inputs(mechanism, pair, error) from error.__cause__


def deterministic_output(name: str, seen: tuple[Series, Series] | None) -> HealthFinding | None:
    """The finding `deterministic_output` if all runs on both inputs returned the same outcome; else None."""
    if seen is None:
        return None
    rows = stack([side.rows for side in seen])
    always = only_outcome(rows)
    if always is None:
        return None
    return HealthFinding(
        name="deterministic_output",
        text=f"{name} returned {[*always]} on each of {len(rows)} runs, on both {shown(seen[0].data)} and "
        f"{shown(seen[1].data)}: does it add noise, does it use its input?",
    )


def stuck_generator(name: str, seen: tuple[Series, Series] | None) -> HealthFinding | None:
    """The finding `stuck_generator` if runs depend on each other, so that counts are no evidence; else None."""
    try:
        refuse_series(name, (), seen or ())
    except DependentRuns as error:
        return HealthFinding(name="stuck_generator", text=str(error))
    return None


def identical_inputs(problem: Problem) -> HealthFinding | None:
    """The finding `identical_inputs` if the relation's first pairs consist of equal inputs; else None."""
    both = None
    for pair in islice(proposed_pairs(problem.relation, problem.data), MOST_PROPOSED_PAIRS):
        if len(pair.key) != 1:
            return None
        both = shown(pair.data) if both is None else both
    if both is None:
        return None
    return HealthFinding(
        name="identical_inputs", text=f"both inputs of every pair are {both}: give neighbours that differ"
    )


def unrepeated_texts(name: str, seen: tuple[Series, Series] | None) -> HealthFinding | None:
    """The finding `unrepeated_texts` if `LEAST_FINDING_RUNS` or more texts of an entry all differ; else None."""
    for entries in stack([side.rows for side in seen]).T if seen else ():
        texts = entries[is_text(entries)]
        if len(texts) >= LEAST_FINDING_RUNS and len(np.unique(texts)) == len(texts):
            return HealthFinding(
                name="unrepeated_texts",
                text=f"{len(texts)} runs of {name} returned {len(texts)} different texts, and a text is compared as a "
                "whole: give outcome=, a function of the text that returns its value, such as outcome=float",
            )
    return None


def unlike_inputs(problem: Problem) -> HealthFinding | None:
    """The finding `unlike_inputs` if D and D′ of a pair differ in more than their records; else None."""
    if problem.relation.judged:  # the relation makes pairs that differ in their records alone
        return None
    for pair in islice(proposed_pairs(problem.relation, problem.data), MOST_PROPOSED_PAIRS):
        if difference := unlike(pair):
            text = f"D and D′ differ in {difference}, not only in their records: the verdict may be due to that"
            return HealthFinding(name="unlike_inputs", text=text)
    return None


def input_ignored(problem: Problem, runner: Runner) -> HealthFinding | None:
    """The finding `input_ignored` if both inputs of each pair gave equal outcomes for equal random numbers, or None.

    Mechanisms whose randomness no seed repeats are not tested; `ignored_throughout` tests slow mechanisms.
    """
    mechanism = runner.mechanism
    if mechanism.cost.slow:
        return None
    if mechanism.reproducible:
        return _find_ignored_input(problem, runner)
    if not isinstance(mechanism, PythonMechanism) or mechanism.cost.batched:
        return None
    deadline = Deadline(time.monotonic() + min(CHECK_SECONDS / 2, TIME_SHARE * runner.max_time))
    if not next(Threads(1).ordered([partial(mechanism.repeats_if_seeded, problem.first)], deadline)):  # a run may hang
        return None
    mechanism.draws_globally = True  # for this check alone, as seeding takes longer than a fast run
    try:
        return _find_ignored_input(problem, runner)
    finally:
        mechanism.draws_globally = False


def _find_ignored_input(problem: Problem, runner: Runner) -> HealthFinding | None:
    deadline = Deadline(time.monotonic() + min(CHECK_SECONDS / 2, TIME_SHARE * runner.max_time))
    asked = (partial(_count_same_runs, runner, pair, number) for number, pair in enumerate(problem.candidates()))
    runs = 0
    for same in Threads(1).ordered(asked, deadline):
        if not same:
            return None  # the outcomes differ, or there is no time for all pairs
        runs += same
    return _ignored_finding(runner.mechanism.name, runs)


def ignored_throughout(mechanism: Mechanism, outcomes: Iterable[tuple[Rows, Rows]]) -> tuple[str, ...]:
    """A note if all coupled runs gave equal outcomes on both inputs, or (); `outcomes`: rows of D and D′ by pair."""
    both = list(outcomes)
    runs = sum(len(left) for left, _ in both)
    same = all(np.array_equal(left, right, equal_nan=True) for left, right in both)
    return (_ignored_finding(mechanism.name, runs).text,) if runs and same and mechanism.reproducible else ()


def same_throughout(outcomes: Iterable[tuple[Data, Rows]]) -> tuple[str, ...]:
    """A note if for every input in `outcomes` all runs on this input returned the same outcome; else ()."""
    by_input: dict[Hashable, list[Rows]] = {}
    for data, rows in outcomes:
        if len(rows):
            by_input.setdefault(input_key(data), []).append(rows)
    sides = [stack(blocks) for blocks in by_input.values()]
    runs, inputs = sum(map(len, sides)), len(sides)
    # Noise of two equally likely values repeats in 20 runs with probability 10⁻⁶.
    if runs - inputs < 20 or any(only_outcome(rows) is None for rows in sides):
        return ()
    return (f"every run on an input returned the same ({runs} runs on {inputs} inputs): {CONSTANT_OUTCOME_REMARK}",)


def _ignored_finding(name: str, runs: int) -> HealthFinding:
    return HealthFinding(
        name="input_ignored",
        text=f"both inputs gave the same values in every run ({runs} from the same random numbers, over all pairs): "
        f"does {name} use its input?",
    )


def time_needed(problem: Problem, runner: Runner, alpha: float) -> HealthFinding | None:
    """The finding `too_slow` if to refute the clearest violation takes more seconds than the check has; else None."""
    mechanism = problem.mechanism
    needed = runs_needed(problem.claim, alpha)
    cores = runner.pool.workers if runner.pool is not None else runner.workers if mechanism.threads else 1
    seconds = 2 * needed * mechanism.cost.seconds_per_run / cores
    if seconds <= runner.max_time:
        return None
    advised = at_most(OVERHEAD * seconds * useful_runs(problem.claim, alpha) / needed)
    return HealthFinding(
        name="too_slow",
        text=f"{mechanism.name} takes {mechanism.cost.seconds_per_run:.3g} s a run: even the clearest violation of "
        f"{problem.claim} at alpha={alpha:g} needs {needed} runs on each input, {at_most(seconds)} s with {cores} "
        f"{'core' if cores == 1 else 'cores'}; others take longer: give max_time={advised} or more, or make it faster",
    )


def _count_same_runs(runner: Runner, pair: Pair, number: int) -> int:
    """The number of runs if both inputs gave the same outcomes in each of them, else 0."""
    mechanism = runner.mechanism
    most = 4096 if mechanism.cost.cheap_in_bulk else 64
    most = max(min(most, MOST_CALLED_ENTRIES // max(mechanism.width, 1)), 2)
    for n in (2, most):  # two runs mostly show a difference
        key = (Role.HEALTH_SAME_DRAWS, number, n)
        try:
            if mechanism.cost.compiled:
                runs = PairedRuns.d_first(pair, n, coupled=True)
                left, right = mechanism.pair_outcomes(runs, generator(runner.seed, *key))
            else:
                left, right = (mechanism.outcomes(data, generator(runner.seed, *key), n) for data in pair.sides)
        except MechanismRaised as error:
            raised = error if mechanism.cost.compiled else describe_both_inputs(mechanism, pair, error)
            if not raised.on_both_inputs:
                raise raised from error.__cause__
            return 0  # the search reports the error and leaves out the pair
        if not np.array_equal(*of_one_width(left, right), equal_nan=True):
            return 0
    return most
