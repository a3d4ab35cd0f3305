"""Entries, each a pair with an event, compared on search runs of their own, slice by slice.

Counting needs no memory, so many runs tell apart what the rows of a search could not.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from dpwitness.candidate import Estimate, Tally
from dpwitness.errors import MechanismTimeout
from dpwitness.events import Event
from dpwitness.neighbours import Pair
from dpwitness.neighbours.inputs import input_key
from dpwitness.runs import Role, Runner
from dpwitness.search.costs import Costs
from dpwitness.search.cuts import LOWER, CutCells, OutcomeCells
from dpwitness.search.learners import RatedEvent, tolerance
from dpwitness.search.objectives import Objective, value_of

#: By how many standard errors a value is lowered where entries are compared: the largest of some 24 noisy values is
#: partly noise.
STANDARD_ERRORS: Final = 1.0
#: How many times more runs of an entry are counted at most where they cost less.
MOST_MORE: Final = 64.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A pair and an event to compare.

    `cuts`: all intervals, or sets of outcomes, that the event is one of, where they are to be counted with it;
    `learned_from`: by how many runs a better one of them may be chosen; 0 if by any.
    """

    pair: Pair
    found: RatedEvent
    cuts: CutCells | OutcomeCells | None = None
    learned_from: int = 0

    @classmethod
    def uncounted(cls, pair: Pair, event: Event) -> "Entry":
        """One that nothing is known of."""
        return cls(pair, RatedEvent(event=event, swapped=False, estimate=Estimate(p=0.0, q=0.0), value=0.0))


#: Of the runs by which entries are told apart all get a half together; the others are given out in slices.
FIRST_SHARE: Final = 2
SLICES: Final = 16
#: An entry with cuts is cut by one of two halves of its first runs, then whenever its runs have grown so many times:
#: those that come in between value it, and did not choose the cut.
GROWN: Final = 2.0
#: What is expected to be gained by knowing which of two entries is better, as a share of the value, that does not
#: matter.
NO_MATTER: Final = 0.005
#: The best is counted until its standard error is at most this share of its value: of many that are known little, the
#: one that shows far more than all others does so by chance.
KNOWN: Final = 0.05


@dataclass(slots=True)
class _Comparison:
    """The entries with their latest estimates, what was counted of each, and the runs spent."""

    runner: Runner
    objectives: Sequence[Objective]  # of each entry
    latest: list[Entry]
    tallies: list[Tally]
    role: Role
    prices: list[float]  # of a run of each
    spent: int = 0
    turns: Counter[int] = field(default_factory=Counter)  # of each entry
    since: dict[int, Tally] = field(default_factory=dict)  # of an entry with cuts, since its event was chosen

    @classmethod
    def of(
        cls,
        runner: Runner,
        entries: Sequence[Entry],
        objective: Objective,
        role: Role,
        costs: Costs | None,
    ) -> "_Comparison":
        """Entries of which nothing was counted; they compete for seconds where there are `costs`, else for runs."""
        objectives = [objective if costs is None else costs.priced(objective, entry.pair) for entry in entries]
        prices = [1.0 if costs is None else costs.of(entry.pair) for entry in entries]
        return cls(runner, objectives, list(entries), [Tally() for _ in entries], role, prices)

    def runs_of(self, number: int, n: int, among: Sequence[int]) -> int:
        """As many runs of an entry as take its even share of the time of n runs of each of those."""
        mean = sum(self.prices[one] for one in among) / len(among)
        return max(int(n * min(mean / self.prices[number], MOST_MORE)), 8)

    def by_what_they_came_with(self) -> tuple[list[int], list[int]]:
        """The numbers of entries, and of those that can hardly win by the runs that they come with, best first."""
        floor = max((entry.found.lower_value for entry in self.latest), default=-math.inf)
        left_out = [number for number, entry in enumerate(self.latest) if _at_most(entry.found) < floor]
        remaining = sorted(set(range(len(self.latest))).difference(left_out))
        return remaining, sorted(left_out, key=lambda number: -self.value(number))

    def count(self, numbers: Sequence[int], n: int) -> None:
        """Count the events of entries of one pair on n more runs, and value them anew."""
        entries, first = [self.latest[number] for number in numbers], numbers[0]
        events = [entry.cuts or entry.found.event for entry in entries]
        tallies = self.runner.tallies(entries[0].pair, events, n, self.role, first, self.turns[first])
        self.spent += n
        self.turns[first] += 1
        for number, entry, tally in zip(numbers, entries, tallies, strict=True):
            self._revalue(number, tally.swapped if entry.found.swapped else tally)

    def _revalue(self, number: int, tally: Tally) -> None:
        """Value an entry by what was counted of it in more runs, D first."""
        entry, objective = self.latest[number], self.objectives[number]
        self.tallies[number] = total = self.tallies[number] + tally
        if cuts := entry.cuts:  # it was cut by earlier runs: those since value it
            since = self.since[number] = self.since.get(number, Tally()) + tally
            found = valued(entry.found, cuts.estimate(entry.found.event, since), since.runs, objective)
            # Fewer runs than a set of outcomes was learned from would choose another one by chance.
            if total.runs >= entry.learned_from and GROWN * since.runs >= total.runs:
                event, estimate = cuts.best(total, objective)
                kept = value_of(cuts.estimate(found.event, total), objective, total.runs)
                if not entry.learned_from or value_of(estimate, objective, total.runs) > kept:
                    # Until more are counted it is worth what the last one was, which these runs did not choose.
                    if since.runs == total.runs:  # the first cut: the event before was not chosen here
                        found = valued(found, estimate, total.runs, objective)
                    found = replace(found, event=event, estimate=estimate)
                    del self.since[number]
        else:
            found = revalued(entry.found, total, objective)
        self.latest[number] = replace(entry, found=found)

    def value(self, number: int) -> float:
        """What an entry promises by its latest estimate."""
        return self.latest[number].found.value

    def promise(self, number: int) -> float:
        """What an entry promises `LOWER` standard errors lower."""
        mean, error = self.mean_and_error(number)
        return mean - LOWER * error

    def mean_and_error(self, number: int) -> tuple[float, float]:
        """What it shows, not lowered, and the standard error of that."""
        found = self.latest[number].found
        error = (found.value - found.lower_value) / 2
        return found.value + error, error


def compare(
    runner: Runner,
    entries: Sequence[Entry],
    objective: Objective,
    budget: int,
    role: Role,
    costs: Costs | None = None,
) -> tuple[list[Entry], int]:
    """The entries, counted until the best is known or no longer matters, best first, and the runs spent.

    About `budget` runs at most, or until the deadline. The events of one pair are counted in the same runs: all pairs
    get a few, then, slice by slice, that of the best entry so far or of its strongest rival, whichever is known less
    well (Kalyanakrishnan, Tewari, Auer & Stone 2012, ICML). The best is the one that promises most less its errors: a
    rare event may show much by chance; of those that promise nearly as much, the simplest. Its strongest rival is the
    one by which most may be gained; runs end where that is next to nothing and the best is known.

    `role`: of streams that none of the entries was chosen by. `costs`: by which entries compete for seconds, not runs;
    each gets an even share of the time that so many runs of all take.
    """
    state = _Comparison.of(runner, entries, objective, role, costs)
    remaining, left_out = state.by_what_they_came_with()
    with suppress(MechanismTimeout):  # what was counted until then decides
        _count(state, remaining, budget)
    if max(map(state.value, remaining)) <= 0:  # no event looks good: one that happens
        telling = [number for number in remaining if state.latest[number].found.telling]
        left_out = [number for number in remaining if telling and number not in telling] + left_out
        remaining = telling or remaining
    best = max(map(state.promise, remaining))
    good = [number for number in remaining if state.promise(number) >= best - tolerance(best)]
    winner = min(good, key=lambda number: state.latest[number].found.event.complexity)
    ranked = dict.fromkeys([winner, *sorted(remaining, key=lambda number: -state.promise(number)), *left_out])
    return [state.latest[number] for number in ranked], state.spent


def _count(state: _Comparison, remaining: Sequence[int], budget: int) -> None:
    """Count entries in about so many runs, until the best is known. Raises `MechanismTimeout` at the deadline."""
    pairs: dict[Hashable, list[int]] = {}
    for number in remaining:
        pairs.setdefault(tuple(map(input_key, state.latest[number].pair.sides)), []).append(number)
    beside = {number: of_pair for of_pair in pairs.values() for number in of_pair}
    each, slice_of = budget // (FIRST_SHARE * len(pairs)), budget // SLICES
    for of_pair in pairs.values():
        halves = 2 if any(state.latest[number].cuts for number in of_pair) else 1
        for _ in range(halves):
            state.count(of_pair, state.runs_of(of_pair[0], each // halves, remaining))
    left = budget - each * len(pairs)
    while left > 0:
        shown = {number: state.mean_and_error(number) for number in remaining}
        best = max(remaining, key=state.promise)
        gains = {number: _gain(shown[number], shown[best]) for number in remaining if number != best}
        matters = NO_MATTER * abs(shown[best][0])
        rival = max(gains, key=gains.__getitem__, default=best)
        settled = gains.get(rival, 0.0) <= matters
        if settled and shown[best][1] <= KNOWN * abs(shown[best][0]):
            return
        counted = best if settled else max(best, rival, key=lambda number: shown[number][1])
        mattering = [number for number in beside[counted] if number == best or gains[number] > matters]
        state.count(mattering, state.runs_of(counted, slice_of, remaining))
        left -= max(slice_of, 8)


def _gain(one: tuple[float, float], other: tuple[float, float]) -> float:
    """By how much the first of two normal means is expected to exceed the second, where it does; means and errors."""
    more, error = one[0] - other[0], math.hypot(one[1], other[1])
    if error == 0 or not math.isfinite(error):
        return max(more, 0.0)
    z = more / error
    return more * 0.5 * math.erfc(-z / math.sqrt(2)) + error * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


#: What an event promises at most: so many times the two errors between its values more. Objectives that count a
#: quarter of each error make that nearly four errors.
HARDLY_MORE: Final = 8


def _at_most(found: RatedEvent) -> float:
    """What an event promises at most; its values are lowered by one error, and by three."""
    return found.value + HARDLY_MORE * (found.value - found.lower_value)


def revalued(found: RatedEvent, tally: Tally, objective: Objective) -> RatedEvent:
    """An event with the estimate and the value of a tally."""
    return valued(found, tally.estimate, tally.runs, objective)


def valued(found: RatedEvent, estimate: Estimate, runs: int, objective: Objective) -> RatedEvent:
    """An event with an estimate of so many runs, and its value."""
    value, lower = (value_of(estimate, objective, runs, errors) for errors in (STANDARD_ERRORS, 3.0))
    return replace(found, estimate=estimate, value=value, lower_value=lower)
