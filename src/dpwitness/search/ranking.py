"""Pairs with events, ranked by search runs that did not choose them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from dpwitness.candidate import Tally
from dpwitness.neighbours import Pair
from dpwitness.runs import Role, Runner
from dpwitness.search.learners import RatedEvent, tolerance
from dpwitness.search.objectives import Objective, value_of

#: By how many standard errors a value in the playoff is lowered: the largest of some 24 noisy values is partly noise.
STANDARD_ERRORS: Final = 1.0
#: How often a winner of the playoff that may owe it to luck is counted again.
MOST_COUNTED_AGAIN: Final = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """A pair and an event in a playoff; `place` says which finalist it came from, −1 for an attack's."""

    pair: Pair
    found: RatedEvent
    place: int = -1

    @property
    def directed(self) -> Pair:
        """The pair with D first."""
        return self.pair.swapped() if self.found.swapped else self.pair


@dataclass(slots=True)
class _Playoff:
    """The entries with their latest estimates, what was counted of each, and the runs spent."""

    runner: Runner
    objective: Objective
    latest: list[Entry]
    tallies: list[Tally]
    role: Role
    spent: int = 0

    def count(self, number: int, turn: int, n: int) -> None:
        """Count an entry's event on n more runs, and value it anew."""
        entry = self.latest[number]
        self.tallies[number] += self.runner.tally(entry.directed, entry.found.event, n, self.role, number, turn)
        self.spent += n
        found = revalued(entry.found, self.tallies[number], self.objective)
        self.latest[number] = replace(entry, found=found)

    def value(self, number: int) -> float:
        """What an entry promises by its latest estimate."""
        return self.latest[number].found.value


def playoff(
    runner: Runner, entries: Sequence[Entry], objective: Objective, budget: int, role: Role = Role.PLAYOFF
) -> tuple[Entry, int]:
    """The best of several pairs with events, each counted on search runs of its own; halving again.

    Counting needs no memory, so this tells apart what the rows of the search could not. Returns the winner with its new
    estimate, and the paired runs spent. Of the last two the simpler one wins if it is nearly as good. A winner that
    promises something, but not three standard errors lower, is counted once more; if that was luck, another one wins.
    `role`: of streams that none of the entries was chosen by.
    """
    rounds = max(len(entries) - 1, 0).bit_length()
    state = _Playoff(runner, objective, list(entries), [Tally() for _ in entries], role)
    alive = list(range(len(entries)))
    for turn in range(rounds):
        n = max(budget // (rounds * len(alive)), 8)
        for number in alive:
            state.count(number, turn, n)
        alive.sort(key=lambda number: -state.value(number))
        if turn < rounds - 1:
            alive = alive[: (len(alive) + 1) // 2]
    counted_again: set[int] = set()
    while True:
        if state.value(alive[0]) <= 0:  # nothing promises anything: an event that happens
            alive = [number for number in alive if state.latest[number].found.telling] or alive
        best = state.value(alive[0])
        good = [number for number in alive if state.value(number) >= best - tolerance(best)]
        winner = min(good, key=lambda number: state.latest[number].found.event.complexity)
        uncertain = state.latest[winner].found.lower_value <= 0 < state.value(winner) and winner not in counted_again
        if not uncertain or len(counted_again) == MOST_COUNTED_AGAIN:
            return state.latest[winner], state.spent
        counted_again.add(winner)
        state.tallies[winner] = Tally()  # the runs by which it won
        state.count(winner, rounds, max(budget // 5, 8))
        alive = sorted(range(len(entries)), key=lambda number: -state.value(number))


def revalued(found: RatedEvent, tally: Tally, objective: Objective) -> RatedEvent:
    """An event with the estimate and the value of a tally."""
    estimate = tally.estimate
    value, lower = (value_of(estimate, objective, tally.runs, errors) for errors in (STANDARD_ERRORS, 3.0))
    return replace(found, estimate=estimate, value=value, lower_value=lower)
