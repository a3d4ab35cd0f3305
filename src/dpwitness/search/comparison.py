"""Entries, each a pair with an event, compared on search runs of their own, slice by slice.

Counting keeps no outcomes, so it takes more runs than a sample holds, and tells nearly equal events apart.
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
from dpwitness.runs import Role, Runner
from dpwitness.search.costs import Costs
from dpwitness.search.cuts import COMPARISON_STANDARD_ERRORS, CutCells, OutcomeCells
from dpwitness.search.learners import RatedEvent, tolerance
from dpwitness.search.objectives import Objective, value_of

#: The number of standard errors by which values are lowered: the largest of many noisy values is partly noise.
VALUE_STANDARD_ERRORS: Final = 1.0
#: The largest number of runs of a cheap entry for each run of an entry of the mean cost.
MOST_CHEAP_RUNS: Final = 64.0


@dataclass(frozen=True, slots=True)
class ComparedEvent:
    """A pair and an event to compare.

    `cuts`: the cells of all ranges, or sets of outcomes, that are counted with the event; None: the event alone.
    `learned_from`: the least number of runs by which another event of `cuts` is chosen; 0: any number.
    """

    pair: Pair
    found: RatedEvent
    cuts: CutCells | OutcomeCells | None = None
    learned_from: int = 0

    @classmethod
    def uncounted(cls, pair: Pair, event: Event) -> "ComparedEvent":
        """An entry without any runs."""
        return cls(pair, RatedEvent(event=event, swapped=False, estimate=Estimate(p=0.0, q=0.0), value=0.0))


#: The divisor of the runs of a comparison: all pairs share a half evenly before the best entries get the other runs.
EVEN_DIVISOR: Final = 2
#: The number of slices of the runs of a comparison; each slice goes to one pair.
SLICES: Final = 16
#: The factor by which the runs of an entry with cuts grow before its event is chosen anew; until then the runs since
#: the last choice, which did not choose the event, value the event.
CHOOSING_GROWTH: Final = 2.0
#: The expected gain of replacing the best entry by its rival, as a share of the value, below which counting stops.
LEAST_GAIN: Final = 0.005
#: The largest standard error of the best entry, as a share of its value, at which counting stops: with fewer runs the
#: entry may be best by chance.
LARGEST_RELATIVE_ERROR: Final = 0.05


@dataclass(slots=True)
class _EventComparison:
    """The entries with their latest estimates, their counts, and the runs spent."""

    runner: Runner
    objectives: Sequence[Objective]  # the objective of each entry
    latest: list[ComparedEvent]
    tallies: list[Tally]
    role: Role
    prices: list[float]  # the price of a run of each entry, in runs of the first pair
    spent: int = 0
    turns: Counter[int] = field(default_factory=Counter)  # the slices counted so far, by the first entry of a slice
    since: dict[int, Tally] = field(default_factory=dict)  # an entry's counts since its event was chosen from cuts

    def runs_of(self, number: int, n: int, among: Sequence[int]) -> int:
        """The number of runs of an entry that take an even share of the time of n runs of each entry in `among`."""
        mean = sum(self.prices[one] for one in among) / len(among)
        return max(int(n * min(mean / self.prices[number], MOST_CHEAP_RUNS)), 8)

    def count(self, numbers: Sequence[int], n: int) -> None:
        """Count the events of entries of one pair on n more runs, and value them again."""
        entries, first = [self.latest[number] for number in numbers], numbers[0]
        events = [entry.cuts or entry.found.event for entry in entries]
        tallies = self.runner.tallies(entries[0].pair, events, n, self.role, first, self.turns[first])
        self.spent += n
        self.turns[first] += 1
        for number, entry, tally in zip(numbers, entries, tallies, strict=True):
            self._revalue(number, tally.swapped() if entry.found.swapped else tally)

    def _revalue(self, number: int, tally: Tally) -> None:
        """Value an entry by its tally of more runs, whose first side is D."""
        entry, objective = self.latest[number], self.objectives[number]
        self.tallies[number] = total = self.tallies[number] + tally
        if cuts := entry.cuts:  # earlier runs chose the entry's event, and later runs value the event
            since = self.since[number] = self.since.get(number, Tally()) + tally
            found = valued(entry.found, cuts.estimate(entry.found.event, since), since.runs, objective)
            # Fewer runs than a set of outcomes was learned from would choose another set by chance.
            if total.runs >= entry.learned_from and CHOOSING_GROWTH * since.runs >= total.runs:
                event, estimate = cuts.best(total, objective)
                kept = value_of(cuts.estimate(found.event, total), objective, total.runs)
                if not entry.learned_from or value_of(estimate, objective, total.runs) > kept:
                    # Until more runs are counted, the entry has the value of the event before, which other runs chose.
                    if since.runs == total.runs:  # the first choice in this comparison
                        found = valued(found, estimate, total.runs, objective)
                    found = replace(found, event=event, estimate=estimate)
                    del self.since[number]
        else:
            found = valued(entry.found, total.estimate, total.runs, objective)
        self.latest[number] = replace(entry, found=found)

    def value(self, number: int) -> float:
        """The value of an entry by its latest estimate."""
        return self.latest[number].found.value

    def promise(self, number: int) -> float:
        """The value of an entry `COMPARISON_STANDARD_ERRORS` standard errors lower."""
        mean, error = self.mean_and_error(number)
        return mean - COMPARISON_STANDARD_ERRORS * error

    def mean_and_error(self, number: int) -> tuple[float, float]:
        """The value of an entry, not lowered, and its standard error."""
        found = self.latest[number].found
        error = (found.value - found.lower_value) / 2
        return found.value + error, error


def compare(
    runner: Runner,
    entries: Sequence[ComparedEvent],
    objective: Objective,
    budget: int,
    role: Role,
    costs: Costs | None = None,
) -> tuple[list[ComparedEvent], int]:
    """Count entries until the best is known or no longer matters; return the entries, best first, and the runs spent.

    Counting takes about `budget` runs at most, and ends at the deadline. The events of one pair are counted in the same
    runs: all pairs get an even part, and then each slice goes to the pair of the best entry so far or of its strongest
    rival, whichever has the larger error (Kalyanakrishnan, Tewari, Auer & Stone 2012, ICML). The best entry has the
    largest value less its errors, as a rare event may show much by chance; of entries with nearly this value the best
    entry is the simplest. The strongest rival is the entry with the largest expected gain.

    `role`: the role of streams that chose no entry. `costs`: the costs of runs where entries compete for seconds, each
    for an even share of the time of `budget` runs; None where they compete for runs.
    """
    objectives = [objective if costs is None else costs.priced(objective, entry.pair) for entry in entries]
    prices = [1.0 if costs is None else costs.of(entry.pair) for entry in entries]
    state = _EventComparison(runner, objectives, list(entries), [Tally() for _ in entries], role, prices)
    remaining = list(range(len(entries)))
    with suppress(MechanismTimeout):  # the runs before the deadline decide
        _count(state, remaining, budget)
    if max(map(state.value, remaining)) <= 0:  # no event looks good: events that hold some runs and not all come first
        remaining = [number for number in remaining if state.latest[number].found.telling] or remaining
    best = max(map(state.promise, remaining))
    good = [number for number in remaining if state.promise(number) >= best - tolerance(best)]
    winner = min(good, key=lambda number: state.latest[number].found.event.complexity)
    ranked = dict.fromkeys(
        [winner, *sorted(remaining, key=lambda number: -state.promise(number)), *range(len(entries))]
    )
    return [state.latest[number] for number in ranked], state.spent


def _count(state: _EventComparison, remaining: Sequence[int], budget: int) -> None:
    """Count entries in about `budget` runs, until the best is known. Raises `MechanismTimeout` at the deadline."""
    pairs: dict[Hashable, list[int]] = {}
    for number in remaining:
        pairs.setdefault(state.latest[number].pair.digests, []).append(number)
    beside = {number: of_pair for of_pair in pairs.values() for number in of_pair}
    each, slice_of = budget // (EVEN_DIVISOR * len(pairs)), budget // SLICES
    for of_pair in pairs.values():
        halves = 2 if any(state.latest[number].cuts for number in of_pair) else 1
        for _ in range(halves):
            state.count(of_pair, state.runs_of(of_pair[0], each // halves, remaining))
    left = budget - each * len(pairs)
    while left > 0:
        shown = {number: state.mean_and_error(number) for number in remaining}
        best = max(remaining, key=state.promise)
        gains = {number: _gain(shown[number], shown[best]) for number in remaining if number != best}
        matters = LEAST_GAIN * abs(shown[best][0])
        rival = max(gains, key=gains.__getitem__, default=best)
        settled = gains.get(rival, 0.0) <= matters
        if settled and shown[best][1] <= LARGEST_RELATIVE_ERROR * abs(shown[best][0]):
            return
        counted = best if settled else max(best, rival, key=lambda number: shown[number][1])
        mattering = [number for number in beside[counted] if number == best or gains[number] > matters]
        state.count(mattering, state.runs_of(counted, slice_of, remaining))
        left -= max(slice_of, 8)


def _gain(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The expected improvement of the first unknown value over the second; each has an estimate and its error."""
    more, error = one[0] - other[0], math.hypot(one[1], other[1])
    if error == 0 or not math.isfinite(error):
        return max(more, 0.0)
    z = more / error
    return more * 0.5 * math.erfc(-z / math.sqrt(2)) + error * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def valued(found: RatedEvent, estimate: Estimate, runs: int, objective: Objective) -> RatedEvent:
    """The event with an estimate from `runs` paired runs, and its value."""
    value, lower = (value_of(estimate, objective, runs, errors) for errors in (VALUE_STANDARD_ERRORS, 3.0))
    return replace(found, estimate=estimate, value=value, lower_value=lower)
