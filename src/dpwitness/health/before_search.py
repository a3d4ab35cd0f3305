"""Health checks before the search.

`check`, `bound`, `curve` and `profile` refuse what would be a false alarm and note the rest; the pytest plugin refuses
all, and lets each be suppressed by name.
"""

import time
from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Final

import numpy as np

from dpwitness.clock import Deadline
from dpwitness.errors import DependentRuns, InvalidNeighbours, MechanismRaised
from dpwitness.evidence import runs_needed
from dpwitness.health.common import SECONDS
from dpwitness.health.findings import Finding
from dpwitness.health.first_runs import SHARE, deterministic_output, first_runs, stuck_generator
from dpwitness.mechanisms.mechanism import Mechanism, Rows
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.raising import of_both
from dpwitness.neighbours import Pair, shown
from dpwitness.neighbours.unlike import unlike
from dpwitness.problem import Problem
from dpwitness.runs import Role, Runner, Threads, generator

#: Proposed pairs that are compared.
PAIRS: Final = 64
#: Runs of both inputs of a pair from the same random numbers: where they are cheap in numbers, and where not. Few are
#: made first, which mostly settles it.
TOGETHER: Final = (64, 4096)
TOGETHER_ONE_BY_ONE: Final = (2, 64)
#: Numbers that the outcomes of one input may hold.
ROOM: Final = 1 << 17


def required(problem: Problem, runner: Runner) -> tuple[str, ...]:
    """Do what check, bound, curve and profile do before the search; notes for people.

    Raises `InvalidNeighbours` where nothing could be found and `DependentRuns` where anything found would be no
    evidence.
    """
    if finding := identical_inputs(problem):
        raise InvalidNeighbours(finding.text)
    if not problem.mechanism.cost.compiled and (
        finding := stuck_generator(problem.mechanism.name, first_runs(problem, runner))
    ):
        raise DependentRuns(finding.text)  # compiled code cannot remember anything from run to run
    found = unlike_inputs(problem), input_ignored(problem, runner)
    return tuple(finding.text for finding in found if finding)


def report_time_needed(problem: Problem, runner: Runner, alpha: float) -> None:
    """Tell the progress before the runs where a check has no time to refute anything; its verdict says so after them.

    No error: what was measured in a few runs may be wrong, and every check ends with a verdict.
    """
    if finding := time_needed(problem, runner, alpha):
        runner.report("search", 0, runs_needed(problem.claim, alpha), finding.text)


def all_findings(problem: Problem, runner: Runner) -> list[Finding]:
    """Return all that can be found before the search, for the plugin."""
    if finding := identical_inputs(problem):
        return [finding]  # nothing else is worth saying
    seen, name = first_runs(problem, runner), problem.mechanism.name
    findings = (deterministic_output(name, seen), stuck_generator(name, seen), input_ignored(problem, runner))
    return [finding for finding in findings if finding]


def identical_inputs(problem: Problem) -> Finding | None:
    """Return `identical_inputs` where the relation proposes the same input twice, so that nothing can be found."""
    both = None
    for pair in islice(problem.relation.candidates(problem.data), PAIRS):
        if len(pair.key) != 1:
            return None
        both = shown(pair.data) if both is None else both
    if both is None:
        return None
    return Finding(name="identical_inputs", text=f"both inputs of every pair are {both}: give neighbours that differ")


def unlike_inputs(problem: Problem) -> Finding | None:
    """Return `unlike_inputs` where D and D′ of a pair differ in more than their values, as an explicit pair may."""
    for pair in islice(problem.relation.candidates(problem.data), PAIRS):
        if difference := unlike(pair):
            text = f"D and D′ differ in {difference}, not in their records alone: a verdict may rest on that"
            return Finding(name="unlike_inputs", text=text)
    return None


def input_ignored(problem: Problem, runner: Runner) -> Finding | None:
    """Return `input_ignored` where from the same random numbers both inputs of every pair always gave the same.

    Nothing is said of mechanisms whose randomness no seed repeats; of slow ones see `ignored_throughout`.
    """
    mechanism = runner.mechanism
    if mechanism.cost.slow:
        return None
    if mechanism.reproducible:
        return _input_ignored(problem, runner)
    first = problem.first
    if not isinstance(mechanism, PythonMechanism) or mechanism.cost.batched:
        return None
    deadline = Deadline(time.monotonic() + min(SECONDS / 2, SHARE * runner.max_time))
    if not next(Threads(1).ordered([partial(mechanism.repeats_if_seeded, first)], deadline)):  # a run may hang
        return None
    mechanism.draws_globally = True  # for these runs alone: seeding takes longer than a fast run
    try:
        return _input_ignored(problem, runner)
    finally:
        mechanism.draws_globally = False


def _input_ignored(problem: Problem, runner: Runner) -> Finding | None:
    deadline = Deadline(time.monotonic() + min(SECONDS / 2, SHARE * runner.max_time))
    proposed = problem.candidates()
    runs = 0
    for same in Threads(1).ordered(
        (partial(_same, runner, pair, number) for number, pair in enumerate(proposed)), deadline
    ):
        if not same:
            return None  # they differ, or it would take too long to see that they never do
        runs += same
    return _ignoring(runner.mechanism.name, runs)


def ignored_throughout(mechanism: Mechanism, outcomes: Iterable[tuple[Rows, Rows]]) -> tuple[str, ...]:
    """Return a note where coupled runs of a check, of many pairs, gave the same on both inputs each time.

    `outcomes`: rows of D and of D′ for each pair, as long.
    """
    both = list(outcomes)
    runs = sum(len(left) for left, _ in both)
    same = all(np.array_equal(left, right, equal_nan=True) for left, right in both)
    return (_ignoring(mechanism.name, runs).text,) if runs and same and mechanism.reproducible else ()


def _ignoring(name: str, runs: int) -> Finding:
    return Finding(
        name="input_ignored",
        text=f"both inputs gave the same outcomes in every run ({runs} from the same random numbers, over all pairs): "
        f"does {name} use its input?",
    )


def time_needed(problem: Problem, runner: Runner, alpha: float) -> Finding | None:
    """Return `too_slow` where even the clearest violation takes longer to refute than there is time."""
    mechanism = problem.mechanism
    needed = runs_needed(problem.claim, alpha)
    cores = runner.pool.workers if runner.pool is not None else runner.workers if mechanism.threads else 1
    seconds = 2 * needed * mechanism.cost.seconds_per_run / cores
    if seconds <= runner.max_time:
        return None
    return Finding(
        name="too_slow",
        text=f"{mechanism.name} takes {mechanism.cost.seconds_per_run:.3g} s a run: even the clearest violation of "
        f"{problem.claim} at alpha={alpha:g} needs {needed} runs on each input, {seconds:.0f} s with {cores} "
        f"{'core' if cores == 1 else 'cores'}: give max_time={2 * seconds:.0f} or more, or make it faster",
    )


def _same(runner: Runner, pair: Pair, number: int) -> int:
    """The runs made if both inputs gave the same in each of them, else 0."""
    mechanism = runner.mechanism
    few, most = TOGETHER if mechanism.cost.in_numbers else TOGETHER_ONE_BY_ONE
    most = min(most, max(ROOM // max(mechanism.width, 1), 1))
    for n in (min(most, few), most):
        key = (Role.HEALTH_SAME_DRAWS, number, n)
        try:
            if mechanism.cost.compiled:
                left, right = mechanism.pair_outcomes(pair, generator(runner.seed, *key), n, coupled=True)
            else:
                left, right = (mechanism.outcomes(data, generator(runner.seed, *key), n) for data in pair.sides)
        except MechanismRaised as error:
            told = error if mechanism.cost.compiled else of_both(mechanism.fill, pair, error)
            if not told.on_both_inputs:
                raise told from error.__cause__
            return 0  # the search goes on without the pair, and says so
        width = min(left.shape[1], right.shape[1])
        longer = np.isnan(left[:, width:]).all() and np.isnan(right[:, width:]).all()
        if not longer or not np.array_equal(left[:, :width], right[:, :width], equal_nan=True):
            return 0
    return most
