"""The cost of a run on each pair: pairs and events compete by the evidence of a second, not by that of a run.

A seed should give the same choices each time, and measured seconds vary. So inputs of about the same size are taken to
cost the same and are not timed. For others the least seconds of several timed calls decide, in classes: a pair costs
1, 2, 4, 8, … times as much as the first one, or a half, a quarter, …, and what is less than twice the price is the same
price. Where all inputs are of one size, no measured time decides which pair is chosen.
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

#: Inputs whose numbers of entries differ by less than this factor are of about the same size.
SIZES_ALIKE: Final = 4
#: Levels of nested lists, tuples and dicts whose entries are counted.
ENTRY_LEVELS: Final = 3
#: The share of the time that timing of pairs takes at most.
TIMING_SHARE: Final = 0.05
#: The cost, in runs of the first pair, of a run that does not end in time.
UNENDED_COST: Final = 2.0**20


def entries(data: object, depth: int = ENTRY_LEVELS) -> int:
    """The number of entries of an input: numbers, cells of a table, fields of all records, letters; at least 1.

    A list of records has as many times the entries of its first record, so that long lists need not be read.
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

    `affordable`: the paired confirm runs of the first pair that there is time for. `timing`: whether runs may be made
    to be timed; else all pairs cost the same.
    """

    runner: Runner
    affordable: float = math.inf
    timing: bool = True
    _first: Pair | None = None
    _classes: dict[int, float] = field(default_factory=dict)  # by size, in powers of `SIZES_ALIKE`
    _seconds: float | None = None  # of the first pair, once another one is compared with it
    _spent: float = 0.0  # seconds on timing

    def of(self, pair: Pair) -> float:
        """The cost of a paired run of this pair, in paired runs of the first pair: a power of two.

        The first pair is the pair of the first call.
        """
        if not self.timing:
            return 1.0
        place = int(math.log(entries_of(pair), SIZES_ALIKE) + 1e-9)
        if self._first is None:
            self._first = pair
            self._classes[place] = 1.0
        if place not in self._classes:
            if self._seconds is None:
                self._seconds = self._timed(self._first)
            self._classes[place] = self._class_of(self._timed(pair))
        return self._classes[place]

    def priced(self, objective: Objective, pair: Pair) -> Objective:
        """The objective by which events of a pair compete with those of pairs that cost more or less."""
        return objective.priced(self.of(pair), self.affordable)

    def _class_of(self, seconds: float) -> float:
        if math.isinf(seconds):
            return UNENDED_COST
        first = self._seconds
        if not first or not seconds or math.isinf(first):  # nothing was measured
            return 1.0
        return 2.0 ** int(math.log2(seconds / first))  # towards 0: less than twice as much is the same

    def _timed(self, pair: Pair) -> float:
        """Seconds of a run on this pair; infinite where it did not end in time, 0 where the mechanism rejects it.

        0, too, once timing took too long: on a busy machine it may take all of the time that there is to search.
        """
        if self._spent > self.runner.max_time * TIMING_SHARE:
            return 0.0
        began = time.monotonic()

        def seconds() -> tuple[float]:
            try:
                return (self.runner.mechanism.timed(pair)[0],)
            except MechanismError:  # it is raised where the pair is run
                return (0.0,)

        # On a thread, which can be left behind at the deadline.
        (found,) = Threads(1).ordered([seconds], self.runner.deadline)
        self._spent += time.monotonic() - began
        return math.inf if found is None else found[0]


def affordable_runs(problem: Problem, runner: Runner) -> float:
    """Paired confirm runs that there is time for, by the measured cost of a run; infinite where it was not measured.

    A power of ten, so that a small change of speed changes nothing, and for one worker, since what is chosen must not
    depend on their number.
    """
    seconds = 2 * problem.mechanism.cost.seconds_per_run
    if not seconds:
        return math.inf
    return float(10.0 ** math.floor(math.log10(max(runner.max_time / 2 / seconds, 1.0))))
