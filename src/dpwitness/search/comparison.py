"""Entries, each a pair with an event, told apart on search runs of their own: by halving, or slice by slice.

Counting needs no memory, so many runs tell apart what the rows of a search could not.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dpwitness.candidate import Estimate, Tally
from dpwitness.neighbours import Pair
from dpwitness.runs import Role, Runner
from dpwitness.search.costs import Costs
from dpwitness.search.cuts import CutCells, OutcomeCells
from dpwitness.search.learners import RatedEvent, tolerance
from dpwitness.search.objectives import Objective, value_of

#: By how many standard errors a value is lowered where entries are compared: the largest of some 24 noisy values is
#: partly noise.
STANDARD_ERRORS: Final = 1.0
#: How many times more runs of an entry are counted at most where they cost less.
MOST_MORE: Final = 64.0
#: How often an entry that may have its place by chance is counted again.
MOST_COUNTED_AGAIN: Final = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """A pair and an event to compare; `place` says which promising pair it came from, −1 for an attack's.

    `cuts`: all intervals, or sets of outcomes, that the event is one of, where they are to be counted with it;
    `learned_from`: by how many runs a better one of them may be chosen; 0 if by any.
    """

    pair: Pair
    found: RatedEvent
    place: int = -1
    cuts: CutCells | OutcomeCells | None = None
    learned_from: int = 0


#: Of the runs by which entries are told apart all get a fourth together; the others are given out in slices.
FIRST_SHARE: Final = 4
SLICES: Final = 16
#: Entries are apart by so many standard errors; a difference of such a share of the best value does not matter.
APART: Final = 3.0
NO_MATTER: Final = 0.01


@dataclass(slots=True)
class _Comparison:
    """The entries with their latest estimates, what was counted of each, and the runs spent."""

    runner: Runner
    objectives: Sequence[Objective]  # of each entry
    latest: list[Entry]
    tallies: list[Tally]
    role: Role
    spent: int = 0
    turns: Counter[int] = field(default_factory=Counter)  # of each entry
    since: dict[int, Tally] = field(default_factory=dict)  # of an entry with cuts, since its event was chosen

    def count(self, number: int, n: int) -> None:
        """Count an entry's event on n more runs, and value it anew."""
        entry, before, cuts = self.latest[number], self.tallies[number], self.latest[number].cuts
        event, objective = cuts or entry.found.event, self.objectives[number]
        tally = self.runner.tally(entry.found.directed(entry.pair), event, n, self.role, number, self.turns[number])
        self.spent += n
        self.turns[number] += 1
        self.tallies[number] = total = before + tally
        if cuts:  # it was cut by earlier runs: these value it, and place the next cut
            since = self.since[number] = self.since.get(number, Tally()) + tally
            found = valued(entry.found, cuts.estimate(entry.found.event, since), since.runs, objective)
            # Fewer runs than a set of outcomes was learned from would choose another one by chance.
            if total.runs >= entry.learned_from:
                event, estimate = cuts.best(total, objective)
                kept = value_of(cuts.estimate(found.event, total), objective, total.runs)
                if not entry.learned_from or value_of(estimate, objective, total.runs) > kept:
                    found = replace(found, event=event, estimate=estimate)
                    del self.since[number]
        else:
            found = revalued(entry.found, total, objective)
        self.latest[number] = replace(entry, found=found)

    def value(self, number: int) -> float:
        """What an entry promises by its latest estimate."""
        return self.latest[number].found.value

    def mean_and_error(self, number: int) -> tuple[float, float]:
        """What it shows, not lowered, and the standard error of that."""
        found = self.latest[number].found
        error = (found.value - found.lower_value) / 2
        return found.value + error, error


def told_apart(
    runner: Runner, entries: Sequence[Entry], objective: Objective, budget: int, role: Role
) -> tuple[Entry, int]:
    """The best of a few entries, counted until it is known or no longer matters, and the runs spent.

    About `budget` runs at most: all of the entries on a few of them; then, slice by slice, the best so far or its
    strongest rival, whichever is known less well (Kalyanakrishnan, Tewari, Auer & Stone 2012, ICML). Where the runs end
    before that is known, the best is the one that promises most less its error: a rare event may show much by chance.
    """
    numbers = range(len(entries))
    state = _Comparison(runner, [objective] * len(entries), list(entries), [Tally() for _ in entries], role)
    for number in numbers:
        state.count(number, max(budget // (FIRST_SHARE * len(numbers)), 8))
    while True:
        shown = [state.mean_and_error(number) for number in numbers]
        best = max(numbers, key=lambda number: shown[number][0])
        mean, error = shown[best]
        most = mean + NO_MATTER * abs(mean)
        rivals = [
            number
            for number in numbers
            if number != best and shown[number][0] + APART * math.hypot(error, shown[number][1]) > most
        ]
        if not rivals or state.spent >= budget:
            return state.latest[max(numbers, key=state.value)], state.spent
        rival = max(rivals, key=lambda number: sum(shown[number]))
        state.count(max(best, rival, key=lambda number: shown[number][1]), max(budget // SLICES, 8))


def best_entry(
    runner: Runner,
    entries: Sequence[Entry],
    objective: Objective,
    budget: int,
    role: Role = Role.COMPARISON,
    costs: Costs | None = None,
) -> tuple[Entry, int]:
    """The best of several pairs with events, each counted on search runs of its own; halving again.

    Counting needs no memory, so this tells apart what the rows of the search could not. Returns the winner with its new
    estimate, and the paired runs spent. Of the last two the simpler one wins if it is nearly as good. A winner that
    promises something, but not three standard errors lower, is counted once more; if that was chance, another one wins.
    `role`: of streams that none of the entries was chosen by; `costs`: by which entries compete for seconds, not runs,
    and each gets an even share of the time that so many runs of all take.
    """
    ranked, spent = ranked_entries(runner, entries, objective, budget, role, costs)
    return ranked[0], spent


def ranked_entries(
    runner: Runner,
    entries: Sequence[Entry],
    objective: Objective,
    budget: int,
    role: Role = Role.COMPARISON,
    costs: Costs | None = None,
) -> tuple[list[Entry], int]:
    """As `best_entry`; the winner is followed by the others, those first that were left out last.

    What can hardly win by the runs that it comes with is left out at once: the others get its runs.
    """
    objectives = [objective if costs is None else costs.priced(objective, entry.pair) for entry in entries]
    prices = [1.0 if costs is None else costs.of(entry.pair) for entry in entries]
    state = _Comparison(runner, objectives, list(entries), [Tally() for _ in entries], role)
    floor = max((entry.found.lower_value for entry in entries), default=-math.inf)
    remaining = [k for k, entry in enumerate(entries) if not _at_most(entry.found) < floor]
    left_out = sorted(set(range(len(entries))).difference(remaining), key=lambda number: -state.value(number))
    rounds = max(len(remaining) - 1, 0).bit_length()
    for turn in range(rounds):
        # Half of the runs in the last two rounds: the last ones are the most alike.
        n = max(int(budget * _share_of_round(turn, rounds)) // len(remaining), 8)
        mean = sum(prices[number] for number in remaining) / len(remaining)
        for number in remaining:
            state.count(number, max(int(n * min(mean / prices[number], MOST_MORE)), 8))
        remaining.sort(key=lambda number: -state.value(number))
        if turn < rounds - 1:
            kept = (len(remaining) + 1) // 2
            remaining, left_out = remaining[:kept], remaining[kept:] + left_out
    counted_again: set[int] = set()
    while True:
        if state.value(remaining[0]) <= 0:  # no event looks good: one that happens
            remaining = [number for number in remaining if state.latest[number].found.telling] or remaining
        best = state.value(remaining[0])
        good = [number for number in remaining if state.value(number) >= best - tolerance(best)]
        winner = min(good, key=lambda number: state.latest[number].found.event.complexity)
        uncertain = state.latest[winner].found.lower_value <= 0 < state.value(winner) and winner not in counted_again
        if not uncertain or len(counted_again) == MOST_COUNTED_AGAIN:
            order = dict.fromkeys([winner, *remaining, *left_out])
            return [state.latest[number] for number in order], state.spent
        counted_again.add(winner)
        # A rare event shows nothing in fewer runs than those by which it won; where they cost little, as many again.
        again = state.tallies[winner].runs if runner.mechanism.threads else 0
        state.tallies[winner] = Tally()
        state.latest[winner] = replace(state.latest[winner], cuts=None)
        state.count(winner, max(budget // 5, again, 8))
        remaining = sorted(range(len(entries)), key=lambda number: -state.value(number))


#: What an event promises at most: so many times the two errors between its values more. Objectives that count a
#: quarter of each error make that nearly four errors.
HARDLY_MORE: Final = 8


def _at_most(found: RatedEvent) -> float:
    """What an event promises at most; its values are lowered by one error, and by three."""
    return found.value + HARDLY_MORE * (found.value - found.lower_value)


def _share_of_round(turn: int, rounds: int) -> float:
    """What part of the runs a round gets."""
    if rounds < 4:
        return 1 / rounds
    return 1 / 4 if turn >= rounds - 2 else 1 / (2 * (rounds - 2))


def revalued(found: RatedEvent, tally: Tally, objective: Objective) -> RatedEvent:
    """An event with the estimate and the value of a tally."""
    return valued(found, tally.estimate, tally.runs, objective)


def valued(found: RatedEvent, estimate: Estimate, runs: int, objective: Objective) -> RatedEvent:
    """An event with an estimate of so many runs, and its value."""
    value, lower = (value_of(estimate, objective, runs, errors) for errors in (STANDARD_ERRORS, 3.0))
    return replace(found, estimate=estimate, value=value, lower_value=lower)
