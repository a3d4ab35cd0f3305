"""Which pair: spend runs where they promise most. Everything here is thrown away before evidence begins."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Final, Protocol

import numpy as np

from dpwitness.errors import InvalidOutcome, MechanismTimeout
from dpwitness.events.encoding import NONE, NOT_A_NUMBER
from dpwitness.mechanisms.mechanism import Mechanism, Rows
from dpwitness.neighbours import Pair
from dpwitness.problem import Problem
from dpwitness.runs import Role, Runner, stack
from dpwitness.search.learners import RatedEvent, learn_events
from dpwitness.search.objectives import Objective
from dpwitness.search.ranking import revalued
from dpwitness.search.samples import Sample, counted, sample_of

#: Numbers that the outcomes of one pair may hold in memory, both sides together.
ROOM: Final = 1 << 22
#: Paired runs that are drawn at a time to be counted.
PART: Final = 1 << 17
#: How many pairs go on to the playoff; twice as many in a thorough search: a bound has the runs for it.
FINALISTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalist:
    """A pair that promised much, and what was seen of it."""

    pair: Pair
    sample: Sample
    certain: RatedEvent | None = None  # an event that reached the stop value on runs of its own


@dataclass(slots=True)
class Arm:
    """A pair in the search: the outcomes of both sides so far, the best event in them, how often it was drawn from."""

    pair: Pair
    index: int
    x: Rows = field(default_factory=lambda: np.empty((0, 1)))
    y: Rows = field(default_factory=lambda: np.empty((0, 1)))
    found: RatedEvent | None = None
    certain: bool = False
    turns: int = 0

    @property
    def value(self) -> float:
        """What its best event promises."""
        return -np.inf if self.found is None else self.found.value


class Drawn(Protocol):
    """Something that holds outcomes of D and of D′."""

    x: Rows
    y: Rows


@dataclass(frozen=True, slots=True)
class Growth:
    """What one more share of runs gave an arm: runs asked for, runs drawn, all rows, the best event in them."""

    asked: int
    drawn: int
    x: Rows
    y: Rows
    found: RatedEvent | None


@dataclass(slots=True, kw_only=True)
class Search:
    """One search by successive halving: its setting, the paired runs spent, and whether the time is over."""

    runner: Runner
    objective: Objective
    budget: int
    spent: int = 0
    late: bool = False

    @property
    def thorough(self) -> bool:
        """Whether nothing ends it early, and runs are cheap."""
        return bool(np.isinf(self.objective.stop_value)) and self.runner.mechanism.threads

    def halve(self, arms: list[Arm], budget: int, keep: int) -> list[Arm]:
        """Few runs for all, twice the runs for the better half, and so on; the same total in every round.

        Returns at most `keep` arms, best first. Raises `MechanismTimeout` where no run was done in time.
        """
        rounds = max((len(arms) - 1) // keep, 0).bit_length() + 1
        for _ in range(rounds):
            self._grow(arms, max(budget // (rounds * len(arms)), 8))
            if self.late:
                seen = sorted((arm for arm in arms if len(arm.x)), key=lambda arm: -arm.value)
                if not seen:
                    name = self.runner.mechanism.name
                    raise MechanismTimeout(f"{name} did not finish one run of the search in time: give more time")
                return seen[:keep]
            arms = sorted(arms, key=lambda arm: -arm.value)[: max((len(arms) + 1) // 2, keep)]
            self._check(arms[0])
            if arms[0].certain:
                return arms[:1]
        return arms[:keep]

    def _grow(self, arms: Sequence[Arm], share: int) -> None:
        """Draw `share` more runs for each arm: arms beside each other, or the shards of one arm."""
        runner = self.runner
        spread = len(arms) >= runner.beside and (runner.beside > 1 or runner.mechanism.threads)
        spread &= runner.mechanism.layout is None  # which grows by what is drawn, in the order of the arms
        drawing = runner.alone() if spread else runner
        tasks = [partial(_grown, self, drawing, arm, share, len(arms) > 1) for arm in arms]
        results: Iterable[Growth | None] = (
            runner.each(tasks, workers=runner.beside) if spread else (task() for task in tasks)
        )
        try:
            for arm, growth in zip(arms, results, strict=False):
                if growth is None:
                    self.late = True
                    break
                # Nothing is written to an arm by a task: one left behind at the deadline must change nothing.
                arm.x, arm.y, arm.found = growth.x, growth.y, growth.found
                arm.turns += growth.asked > 0
                self.spent += growth.drawn
                runner.report("search", self.spent, self.budget)
                if growth.drawn < growth.asked:
                    self.late = True
                    break
        except MechanismTimeout:
            self.late = True

    def _check(self, arm: Arm) -> None:
        """Try an event that reaches the stop value on fresh runs: the best of so many looks may be luck."""
        if arm.found is None or arm.found.lower_value < self.objective.stop_value:
            return
        pair = arm.pair.swapped() if arm.found.swapped else arm.pair
        n = max(self.budget // 10, 64)
        try:
            tally = self.runner.tally(pair, arm.found.event, n, Role.CHECK_OF_SEARCH, arm.index, arm.turns)
        except MechanismTimeout:
            self.late = True
            return
        self.spent += n
        arm.found = revalued(arm.found, tally, self.objective)
        arm.certain = arm.found.lower_value >= self.objective.stop_value

    def more(self, arm: Arm, n: int) -> Sample:
        """What was seen of a pair; n fresh runs, which need no room in memory, where outcomes repeat."""
        rows = sample_of(arm.x, arm.y)
        if self.late or not rows.repeats or n <= len(arm.x):
            return rows
        parts = 2 * -(-n // (2 * PART))
        each = -(-n // parts)
        draw = partial(self.runner.sample, arm.pair, each, Role.SEARCH, arm.index)
        try:
            table = counted((draw(arm.turns + turn) for turn in range(parts)), rows.width, n)
        except MechanismTimeout:
            return rows
        self.spent += parts * each
        return table or rows


def search(problem: Problem, runner: Runner, objective: Objective, budget: int) -> tuple[list[Finalist], int]:
    """Find the pairs that promise most: successive halving over the relation's pairs, then over variations of the best.

    Returns the finalists, best first, and the paired runs spent, in total about `budget`. A pair whose value reaches
    the objective's stop value on fresh runs ends the search at once; where there is none and outcomes repeat, as many
    runs again are spent on the finalists. At the deadline it ends with what was drawn until then. Raises
    `InvalidOutcome` if every run of every pair returned the same, and `MechanismTimeout` if no run was done in time.
    """
    state = Search(runner=runner, objective=objective, budget=budget)
    keep = 2 * FINALISTS if state.thorough else FINALISTS
    numbers = count()
    arms = [Arm(pair, next(numbers)) for pair in problem.candidates()]
    first = list(arms)
    if len(arms) > 1:
        arms = state.halve(arms, budget // 2, keep)
        refuse_constant(problem.mechanism, first, state.late)
        if not arms[0].certain and not state.late:
            varied = [pair for arm in arms[:2] for pair in problem.variations(arm.pair)]
            arms += [Arm(pair, next(numbers)) for pair in varied]
            arms = state.halve(arms, budget - state.spent, keep)
    else:
        arms = state.halve(arms, budget, 1)
        refuse_constant(problem.mechanism, first, state.late)
    more = budget // len(arms) if state.thorough else 0
    found = [
        Finalist(pair=arm.pair, sample=state.more(arm, more), certain=arm.found if arm.certain else None)
        for arm in arms
    ]
    return found, state.spent


def _grown(state: Search, runner: Runner, arm: Arm, share: int, ranked: bool) -> Growth:
    """More runs for one arm, as many as memory has room for; the best event where arms are `ranked`."""
    width = max(arm.x.shape[1], arm.y.shape[1], runner.mechanism.cost.width)  # of the outcomes, not of the input
    n = max(min(share, ROOM // (2 * width) - len(arm.x)), 0)
    x, y, drawn = arm.x, arm.y, 0
    if n:
        new = runner.sample(arm.pair, n, Role.SEARCH, arm.index, arm.turns, partial_too=True)
        x, y, drawn = stack([x, new[0]]), stack([y, new[1]]), len(new[0])
    found = learn_events(x, y, state.objective, thorough=False, most=1)[0] if ranked else arm.found
    return Growth(n, drawn, x, y, found)


def refuse_constant(mechanism: Mechanism, arms: Sequence[Drawn], late: bool) -> None:
    """Raise `InvalidOutcome` for a mechanism that returns nothing but NaN, or always the same.

    Not when the search ended `late`: the few runs of a slow mechanism may be the same by chance.
    """
    parts = [part for arm in arms for part in (arm.x, arm.y) if len(part)]
    total = sum(map(len, parts))
    first = parts[0][:1]
    if late or not all(
        part.shape[1] == first.shape[1] and np.all((part == first) | np.isnan(part) & np.isnan(first)) for part in parts
    ):
        return
    if np.all(np.isnan(first) | (first == NOT_A_NUMBER) | (first == NONE)):
        raise InvalidOutcome(
            f"{mechanism.name} returned NaN or nothing on each of its first {total} runs: there is nothing to test"
        )
    shown = [mechanism.label(entry) or entry for entry in first[0].tolist()]
    raise InvalidOutcome(
        f"{mechanism.name} returned {shown} on each of its first {total} runs, on every input: there is nothing to test"
    )
