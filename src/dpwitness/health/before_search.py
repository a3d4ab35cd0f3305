"""Health checks before the search.

`check`, `bound` and `curve` refuse what would be a false alarm and note the rest; the pytest plugin refuses all, and
lets each be suppressed by name.
"""

import time
from functools import partial
from itertools import islice
from typing import Final

import numpy as np

from dpwitness.clock import Deadline
from dpwitness.errors import DependentRuns, InvalidNeighbours
from dpwitness.health.common import SECONDS
from dpwitness.health.findings import Finding
from dpwitness.health.first_runs import SHARE, deterministic_output, first_runs, stuck_generator
from dpwitness.neighbours import Pair, input_key, shown
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
    """Do what check, bound and curve do before the search; notes for people.

    Raises `InvalidNeighbours` where nothing could be found and `DependentRuns` where anything found would be no
    evidence.
    """
    if finding := identical_inputs(problem):
        raise InvalidNeighbours(finding.text)
    if not problem.mechanism.cost.compiled and (
        finding := stuck_generator(problem.mechanism.name, first_runs(problem, runner))
    ):
        raise DependentRuns(finding.text)  # compiled code cannot remember anything from run to run
    ignored = input_ignored(problem, runner)
    return (ignored.text,) if ignored else ()


def all_findings(problem: Problem, runner: Runner) -> list[Finding]:
    """Return all that can be found before the search, for the plugin."""
    if finding := identical_inputs(problem):
        return [finding]  # nothing else is worth saying
    seen, name = first_runs(problem, runner), problem.mechanism.name
    findings = (deterministic_output(name, seen), stuck_generator(name, seen), input_ignored(problem, runner))
    return [finding for finding in findings if finding]


def identical_inputs(problem: Problem) -> Finding | None:
    """Return `identical_inputs` where the relation proposes the same input twice, so that nothing can be found."""
    proposed = list(islice(problem.relation.candidates(problem.data), PAIRS))
    if not proposed or not all(input_key(pair.data) == input_key(pair.neighbour) for pair in proposed):
        return None
    both = shown(proposed[0].data)
    return Finding(name="identical_inputs", text=f"both inputs of every pair are {both}: give neighbours that differ")


def input_ignored(problem: Problem, runner: Runner) -> Finding | None:
    """Return `input_ignored` where from the same random numbers both inputs of every pair always gave the same.

    Nothing is said of mechanisms that draw their own randomness, or are too slow to be run so often.
    """
    mechanism = runner.mechanism
    if not mechanism.reproducible or mechanism.cost.slow:
        return None
    deadline = Deadline(time.monotonic() + min(SECONDS / 2, SHARE * runner.max_time))
    proposed = problem.candidates()
    runs = 0
    for same in Threads(1).ordered(
        (partial(_same, runner, pair, number) for number, pair in enumerate(proposed)), deadline
    ):
        if not same:
            return None  # they differ, or it would take too long to see that they never do
        runs += same
    return Finding(
        name="input_ignored",
        text=f"both inputs gave the same outcomes in every run ({runs} from the same random numbers, over all pairs): "
        f"does {mechanism.name} use its input?",
    )


def _same(runner: Runner, pair: Pair, number: int) -> int:
    """The runs made if both inputs gave the same in each of them, else 0."""
    mechanism = runner.mechanism
    few, most = TOGETHER if mechanism.cost.in_numbers else TOGETHER_ONE_BY_ONE
    most = min(most, max(ROOM // max(mechanism.width, 1), 1))
    for n in (min(most, few), most):
        key = (Role.HEALTH_SAME_DRAWS, number, n)
        if mechanism.cost.compiled:
            left, right = mechanism.pair_outcomes(pair, generator(runner.seed, *key), n, coupled=True)
        else:
            left, right = (
                mechanism.outcomes(data, generator(runner.seed, *key), n) for data in (pair.data, pair.neighbour)
            )
        width = min(left.shape[1], right.shape[1])
        longer = np.isnan(left[:, width:]).all() and np.isnan(right[:, width:]).all()
        if not longer or not np.array_equal(left[:, :width], right[:, :width], equal_nan=True):
            return 0
    return most
