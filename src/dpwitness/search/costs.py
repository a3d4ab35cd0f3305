"""The cost of a run on each pair, since pairs and events compete by evidence per second, not per run.

A seed should give the same choices each time, but measured seconds vary. So pairs of one class of input size cost the
same, and only one pair of each class is timed, by the least seconds of several calls. Its cost, in runs of the first
pair, is rounded towards 1 to a power of two. Where all inputs are of one class, no measured time affects a choice.
"""

import math
import time
from dataclasses import dataclass, field
from typing import Final

from dpwitness.errors import MechanismError
from dpwitness.neighbours import Pair
from dpwitness.problem import Problem
from dpwitness.runs import Runner, Threads
from dpwitness.search.objectives import Objective

#: The ratio of consecutive classes of input size, in entries.
SIZE_CLASS_RATIO: Final = 4
#: The number of levels of nested lists, tuples and dicts whose entries are counted.
ENTRY_LEVELS: Final = 3
#: The share of `max_time` for timing pairs; once it is spent, no further pair is timed.
TIMING_SHARE: Final = 0.05
#: The cost, in runs of the first pair, of a run that does not end in time.
UNFINISHED_RUN_COST: Final = 2.0**20


def entries(data: object, depth: int = ENTRY_LEVELS) -> int:
    """The number of entries of an input: numbers, cells of a table, fields of all records, characters; at least 1.

    Every record of a list counts as its first record, so that long lists need not be read.
    """
    size = getattr(data, "size", None)  # arrays, DataFrames, Series
    if isinstance(size, int):
        return max(size, 1)
    if isinstance(data, str | bytes):
        return max(len(data), 1)
    if not isinstance(data, dict | list | tuple) or not data or depth == 0:
        return 1
    if isinstance(data, list):
        return len(data) * entries(data[0], depth - 1)
    return sum(entries(part, depth - 1) for part in (data.values() if isinstance(data, dict) else data))


def entries_of(pair: Pair) -> int:
    """The number of entries of the larger input of a pair."""
    return max(map(entries, pair.sides))


@dataclass(slots=True)
class Costs:
    """The costs of paired runs of the pairs of one search.

    `affordable`: the number of paired confirm runs of the first pair that fit in half of the time. `timing`: whether
    pairs are timed; else all pairs cost the same.
    """

    runner: Runner
    affordable: float = math.inf
    timing: bool = True
    _first: Pair | None = None
    _classes: dict[int, float] = field(default_factory=dict)  # the cost in each size class
    _seconds: float | None = None  # the seconds of a run of the first pair, timed once another class comes
    _spent: float = 0.0  # seconds spent on timing

    def of(self, pair: Pair) -> float:
        """The cost of a paired run of this pair, in paired runs of the pair of the first call: a power of two."""
        if not self.timing:
            return 1.0
        place = int(math.log(entries_of(pair), SIZE_CLASS_RATIO) + 1e-9)
        if self._first is None:
            self._first = pair
            self._classes[place] = 1.0
        if place not in self._classes:
            if self._seconds is None:
                self._seconds = self._timed(self._first)
            self._classes[place] = self._class_of(self._timed(pair))
        return self._classes[place]

    def priced(self, objective: Objective, pair: Pair) -> Objective:
        """The objective by which events of this pair compete with events of pairs of another cost."""
        return objective.priced(self.of(pair), self.affordable)

    def _class_of(self, seconds: float) -> float:
        if math.isinf(seconds):
            return UNFINISHED_RUN_COST
        first = self._seconds
        if not first or not seconds or math.isinf(first):  # no time was measured
            return 1.0
        return 2.0 ** int(math.log2(seconds / first))  # `int` rounds towards 0, a cost of 1

    def _timed(self, pair: Pair) -> float:
        """Seconds of a run on this pair; infinite if the run did not end in time, 0 if the mechanism rejects it.

        The seconds are 0 once `TIMING_SHARE` is used up, since a busy machine could spend all search time on it.
        """
        if self._spent > self.runner.max_time * TIMING_SHARE:
            return 0.0
        began = time.monotonic()

        def seconds() -> tuple[float]:
            try:
                return (self.runner.mechanism.timed(pair)[0],)
            except MechanismError:  # the search raises the error when it runs the pair
                return (0.0,)

        # The call runs on a thread, which can be abandoned at the deadline.
        (found,) = Threads(1).ordered([seconds], self.runner.deadline)
        self._spent += time.monotonic() - began
        return math.inf if found is None else found[0]


def affordable_runs(problem: Problem, runner: Runner) -> float:
    """The number of paired confirm runs that fit in half of the time on one worker; infinite if no cost was measured.

    It is a power of ten, so that small changes of speed and the number of workers change no choice.
    """
    seconds = 2 * problem.mechanism.cost.seconds_per_run
    if not seconds:
        return math.inf
    return float(10.0 ** math.floor(math.log10(max(runner.max_time / 2 / seconds, 1.0))))
