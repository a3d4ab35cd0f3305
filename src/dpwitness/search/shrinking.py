"""The smallest candidate that is expected to refute: fewer coordinates, smaller round numbers, a simpler event.

Each step is tried on search runs of its own. Nothing is confirmed here: the result is a candidate like that of any
search, and `api.replay.shrink` confirms it.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from dpwitness.candidate import Candidate, Estimate
from dpwitness.errors import MechanismError, MechanismTimeout
from dpwitness.events import Event
from dpwitness.machine import Deadline
from dpwitness.mechanisms.mechanism import Rows
from dpwitness.neighbours import Pair
from dpwitness.neighbours import smaller as smaller_pairs
from dpwitness.problem import Effort, Problem
from dpwitness.runs import Role, Runner
from dpwitness.search.learners import learn_events
from dpwitness.search.objectives import GrowthAt, value_of

#: Paired search runs of one step: of compiled or vectorised code, and of plain Python at most.
COMPILED_RUNS: Final = 200_000
PYTHON_RUNS: Final = 10_000
#: Where plain Python is so slow that not so many steps of so many runs fit in the time, nothing is tried.
STEPS: Final = 20
LEAST: Final = 100
#: A step is kept where it is expected to refute within this share of the runs there are.
SHARE: Final = 0.5
#: Of the time: until when inputs are shrunk, and until when the event is; the rest is for the confirm runs.
INPUTS_UNTIL: Final = 0.5
EVENT_UNTIL: Final = 0.75


@dataclass(slots=True)
class _Shrinker:
    """One shrinking: what draws its runs, and how many it has drawn."""

    runner: Runner
    objective: GrowthAt
    needed: float  # nats a run
    deadline: float  # by `time.monotonic`
    runs: int = 16  # of one step
    steps: int = 0
    spent: int = 0

    @property
    def in_time(self) -> bool:
        """Whether there is time for another step."""
        return time.monotonic() < self.deadline

    @property
    def _running(self) -> Runner:
        return replace(self.runner, deadline=Deadline(self.deadline))

    def _step(self) -> int:
        """The number of one more step, which has a stream of its own."""
        self.steps += 1
        self.spent += self.runs
        return self.steps

    def value(self, pair: Pair, event: Event) -> tuple[float, Estimate]:
        """The growth rate of an event in nats a run, and its rates, on runs of its own."""
        estimate = self._running.tally(pair, event, self.runs, Role.SHRINK, self._step()).estimate
        return value_of(estimate, self.objective, self.runs), estimate

    def outcomes(self, pair: Pair) -> tuple[Rows, Rows]:
        """Fresh search runs of a pair."""
        return self._running.sample(pair, self.runs, Role.SHRINK, self._step())


def smallest(
    problem: Problem, runner: Runner, effort: Effort, pair: Pair, event: Event
) -> tuple[Candidate | None, int]:
    """Shrink what refutes the claim, by the steps of the relation; None where nothing smaller was found in time.

    Where the problem has data the inputs stay as they are, and only the event gets simpler. The candidate is expected
    to refute within a share of the confirm runs; whether it does is for them to say, with a seed that is not that of
    the runs which made the witness. Returns it, D first, and the paired runs spent. Raises `MechanismError` where the
    mechanism fails on its own inputs.
    """
    started = time.monotonic()
    log_threshold = math.log(1 / effort.alpha)
    objective = GrowthAt(claim=problem.claim, planned=effort.runs, log_threshold=log_threshold)
    needed = log_threshold / (SHARE * effort.runs)
    shrinker = _Shrinker(runner, objective, needed, started + INPUTS_UNTIL * effort.max_time)
    try:
        if not _affordable(shrinker, pair, event, effort.max_time):
            return None, shrinker.spent
        small = _smallest_pair(shrinker, pair, lambda larger: smaller_pairs(problem.relation, larger, problem.data))
        shrinker.deadline = started + EVENT_UNTIL * effort.max_time
        chosen = _simplest(shrinker, small, event)
    except MechanismTimeout:
        return None, shrinker.spent  # the time is over: the witness there was stays
    if chosen is None or (small is pair and chosen.event.complexity > event.complexity):
        return None, shrinker.spent
    return chosen, shrinker.spent


def _affordable(shrinker: _Shrinker, pair: Pair, event: Event, max_time: float) -> bool:
    """Settle the runs of one step; whether `STEPS` steps of `LEAST` runs fit into the time."""
    if shrinker.runner.mechanism.cost.in_numbers:
        shrinker.runs = COMPILED_RUNS
        return True
    started = time.perf_counter()
    shrinker.value(pair, event)
    cost = (time.perf_counter() - started) / shrinker.runs
    # A power of ten, as for the search, so that a small change of speed changes nothing.
    shrinker.runs = int(min(PYTHON_RUNS, 10 ** math.floor(math.log10(max_time / STEPS / cost))))
    return shrinker.runs >= LEAST


def _refutable(shrinker: _Shrinker, pair: Pair) -> bool:
    """Whether some event of this pair would refute in the runs there are; none of one that the mechanism rejects."""
    try:
        x, y = shrinker.outcomes(pair)
    except MechanismError:
        return False  # it rejects such inputs, or the time is over: the pair stays as it was
    return learn_events(x, y, shrinker.objective, thorough=False, most=1)[0].value >= shrinker.needed


def _smallest_pair(shrinker: _Shrinker, pair: Pair, steps: Callable[[Pair], Iterator[Pair]]) -> Pair:
    """Take the first smaller pair that is refutable, and begin again, until none is or the time is over."""
    while True:
        for smaller in steps(pair):
            if not shrinker.in_time:
                return pair
            if _refutable(shrinker, smaller):
                pair = smaller
                break
        else:
            return pair


def _candidates(shrinker: _Shrinker, pair: Pair, event: Event) -> tuple[Pair, list[Event]]:
    """The pair in its better direction, and candidates for its event, simplest first.

    They are learned anew, then the one there was, and parts of each.
    """
    x, y = shrinker.outcomes(pair)
    learned = learn_events(x, y, shrinker.objective)
    swapped = learned[0].swapped
    wholes = [rated.event for rated in learned if rated.swapped == swapped]
    if not swapped and event.width <= x.shape[1]:
        wholes.append(event)
    parts = [part for whole in wholes for part in whole.simpler()]
    return pair.swapped() if swapped else pair, sorted([*parts, *wholes], key=lambda candidate: candidate.complexity)


def _simplest(shrinker: _Shrinker, pair: Pair, event: Event) -> Candidate | None:
    """The simplest event that would refute, with the roundest numbers of which half the growth is left."""
    pair, candidates = _candidates(shrinker, pair, event)
    for candidate in candidates:
        if not shrinker.in_time:
            return None
        value, estimate = shrinker.value(pair, candidate)
        if value < shrinker.needed:
            continue
        for rounder in candidate.rounded():
            rounded, its_estimate = shrinker.value(pair, rounder)
            if rounded >= max(shrinker.needed, value / 2):
                return Candidate(pair=pair, event=rounder, estimate=its_estimate)
        return Candidate(pair=pair, event=candidate, estimate=estimate)
    return None
