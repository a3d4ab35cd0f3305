"""Datasets of 10,000 and 100,000 records, where nothing was found among fewer and a run among so many is still fast.

Counters that overflow, samples that are taken of many records, limits of memory: some code breaks for its users alone.
"""

import time
from itertools import islice
from typing import Final

from dpwitness.errors import InvalidOutcome, MechanismRaised, MechanismTimeout
from dpwitness.neighbours import Pair, large, require_adjacent
from dpwitness.problem import Problem
from dpwitness.runs import Role, Runner, Threads, generator
from dpwitness.search.learners import learn_events
from dpwitness.search.objectives import Objective
from dpwitness.search.ranking import Entry, revalued

__all__ = ["among_many_records"]

#: Numbers of records; how long a run takes among the first is measured only.
SIZES: Final = (1_000, 10_000, 100_000)
#: Seconds of a run from which on ten times as many records are not tried: 100 times longer where time or memory grow
#: with the square of their number.
FAST: Final = 500e-6
#: Paired runs of each pair: to learn an event from, and to see it again.
RUNS: Final = 32
AGAIN: Final = 128


def among_many_records(problem: Problem, runner: Runner, objective: Objective) -> tuple[Entry | None, int]:
    """A pair of many records with an event that promises evidence on runs of its own, and the paired runs spent.

    None where there is none, the mechanism is too slow, or the relation has no such datasets. Raises `MechanismRaised`
    where it raises on one of two neighbours alone.
    """
    spent = 0
    try:
        for level, size in enumerate(SIZES):
            pair = None
            # The first is to time a run on; and to make 100,000 records takes longer than to run most mechanisms.
            most = 1 if size in (SIZES[0], SIZES[-1]) else None
            for number, pair in enumerate(islice(large(problem.relation, size, problem.data), most)):
                if level == 0:
                    break
                key = level * 10 + number
                x, y = runner.sample(pair, RUNS, Role.MANY_RECORDS, 0, key)
                spent += RUNS
                found = learn_events(x, y, objective, thorough=False, most=1)[0]
                if found.value <= 0:
                    continue
                directed = pair.swapped() if found.swapped else pair
                again = revalued(
                    found, runner.tally(directed, found.event, AGAIN, Role.MANY_RECORDS, 1, key), objective
                )
                spent += AGAIN
                if again.lower_value > 0:
                    require_adjacent(problem.relation, pair)
                    return Entry(pair, again), spent
            if pair is None or (size != SIZES[-1] and not _fast(runner, pair)):
                break
    except MechanismRaised as error:
        runner.leave_out(error)
    except (InvalidOutcome, MechanismTimeout):
        pass  # an output for each record, of which no row holds so many; or too slow after all
    return None, spent


def _fast(runner: Runner, pair: Pair) -> bool:
    """Whether a run takes less than `FAST`: the faster one of two, since in the first code may be compiled."""

    def seconds() -> tuple[float]:
        began = time.perf_counter()
        runner.mechanism.pair_outcomes(pair, generator(runner.seed, Role.MANY_RECORDS, 2), 1, coupled=False)
        return ((time.perf_counter() - began) / 2,)

    times = [one[0] for one in Threads(1).ordered([seconds, seconds], runner.deadline) if one is not None]
    return len(times) == 2 and min(times) < FAST
