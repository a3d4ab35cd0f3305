"""The search of a pair and an event on it, by runs that are no evidence.

`best_candidate` compares the candidates of attacks with the candidates of successive halving over the relation's pairs:
few runs of all pairs, twice the runs of the better half, and so on, then also with variations of the best pair (Karnin,
Koren & Somekh 2013, ICML). The events of the remaining pairs, and all ranges of their statistics, are compared on runs
that did not choose them. `search.epochs` is the search where runs are not nearly free.
"""

import math
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, pairwise
from typing import Final, Protocol

import numpy as np

from dpwitness.arrays import Rows
from dpwitness.candidate import Candidate
from dpwitness.claims import Claim
from dpwitness.errors import BudgetTooSmall, InvalidOutcome, MechanismRaised, MechanismTimeout
from dpwitness.events import of_one_width
from dpwitness.events.encoding import NONE, NOT_A_NUMBER
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.neighbours import Pair, adjacent, alternatives, require_adjacent
from dpwitness.problem import Problem, plain_function
from dpwitness.proposals import attack_named
from dpwitness.runs import Role, Runner
from dpwitness.search.comparison import ComparedEvent, compare, valued
from dpwitness.search.costs import Costs, affordable_runs
from dpwitness.search.cuts import cuts_around
from dpwitness.search.learners import RatedEvent, chosen, compared
from dpwitness.search.objectives import Objective
from dpwitness.search.samples import Sample, SeenOutcomes, counted
from dpwitness.search.sensitivity import LEADING_PAIRS, by_sensitivity, measurable
from dpwitness.targets import target_of

#: The number of paired search runs against a claim whose parameter is at least 0.7.
SEARCH_RUNS: Final = 600_000
#: The least number of paired search runs of a slow mechanism.
LEAST_SEARCH_RUNS: Final = 64


def usual_runs(claim: Claim) -> int:
    """The usual number of paired search runs: a violation by a given share of ε needs more runs the smaller ε is."""
    return int(SEARCH_RUNS * min(max(0.7 / max(claim.parameter, 1e-9), 1.0), 4.0))


def search_budget(problem: Problem, runner: Runner, given: int | None, usual: int) -> int:
    """The number of paired search runs: the given number, else the usual number, or fewer for slow code."""
    if given == 0:
        raise BudgetTooSmall("search_runs=0 is for check alone, which can bet from the first run on: give at least 1")
    if given is not None:
        return given
    cost = problem.mechanism.cost
    if cost.compiled:
        return usual
    # The number is rounded to a power of ten, so that a small change of speed does not change the search.
    share = 4 if cost.batched else 8  # plain Python slows down most when the machine is busy
    fits = 10 ** math.floor(math.log10(max(runner.max_time / share / (2 * max(cost.seconds_per_run, 1e-9)), 1)))
    return int(min(usual, max(fits, LEAST_SEARCH_RUNS)))


#: The largest number of entries of one pair's outcomes in memory, both sides together: 32 MiB.
PAIR_ENTRIES: Final = 1 << 22
#: The largest number of paired runs drawn at a time where outcomes are counted and not kept.
COUNTED_BLOCK_RUNS: Final = 1 << 17
#: The divisor of the search runs: an eighth goes first to the pairs of the largest measured sensitivities.
LEADING_DIVISOR: Final = 8
#: The number of pairs whose events are compared; a bound compares twice as many pairs, as it has more runs.
PROMISING_PAIRS: Final = 4
#: The number of unusual pairs that join the search of the usual pairs after the screening.
UNUSUAL_PAIRS: Final = 2
#: The divisor of all search runs: a quarter is the largest part for the screening of unusual pairs.
SCREENING_DIVISOR: Final = 4
#: The largest number of screening runs of an unusual pair where runs are not nearly free.
SCREENING_RUNS: Final = 32
#: The least number of screening runs of an unusual pair: fewer runs show no contrast, so some pairs are left out.
LEAST_SCREENING_RUNS: Final = 12
#: The largest number of screening runs of an unusual pair, where the usual pairs showed nothing.
MOST_SCREENING_RUNS: Final = 1 << 12
#: The divisor of the unusual pairs: events are learned from the runs of a quarter, the pairs of the largest contrast.
SCREENED_DIVISOR: Final = 4
#: The least number of unusual pairs from whose runs events are learned.
LEAST_SCREENED_PAIRS: Final = 12
#: The least number of a pair's runs before each look of the first round of compiled code, by the look's divisor of the
#: round (1/64, 1/8). A clear violation may end the search at a look; learning takes longer than 10³ compiled runs.
LOOK_DIVISORS: Final = {64: 1 << 10, 8: 1 << 13}
#: The least number of a pair's runs before each look, by the look's divisor, of code whose runs take longer than
#: learning an event from these runs.
LOOK_DIVISORS_IF_INTERPRETED: Final = {64: 1 << 6, 8: 1 << 6}
#: The number of fresh runs, for each run that chose an event, that check whether the event ends the search.
CHECK_FACTOR: Final = 4
#: The share of the remaining time for making the usual pairs, and later for making the unusual pairs.
PAIR_MAKING_SHARE: Final = 0.25
#: The share of the time so far above which an error names the time of making the pairs.
NAMED_PAIR_MAKING_SHARE: Final = 0.2
#: The largest factor by which a pair of costly runs gets fewer runs: still fewer runs would show nothing.
LARGEST_COST_FACTOR: Final = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisingPair:
    """One of the best pairs of a search, and a sample of its runs."""

    pair: Pair
    sample: Sample
    certain: RatedEvent | None = None  # an event that reached the stop value on runs of its own


@dataclass(slots=True)
class SearchedPair:
    """A pair in the search: the outcomes of both sides so far, the best event in them, its rounds of runs (`turns`)."""

    pair: Pair
    index: int
    seen: SeenOutcomes = field(default_factory=SeenOutcomes)
    found: RatedEvent | None = None
    certain: bool = False
    turns: int = 0
    refused: MechanismRaised | None = None  # the error of a mechanism that takes neither input

    @property
    def value(self) -> float:
        """The value of the best event by the objective; −∞ without an event."""
        return -np.inf if self.found is None else self.found.value

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """The outcomes of D and of D′."""
        return self.seen.rows


class Drawn(Protocol):
    """An object that holds the outcomes of a pair."""

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """The outcomes of D and of D′."""


@dataclass(frozen=True, slots=True)
class MoreRuns:
    """The result of more runs of a pair: runs asked for, runs drawn, all outcomes, the best event in them.

    `compared`: the number of events compared; `refused`: the error of a mechanism that takes neither input.
    """

    asked: int
    drawn: int
    seen: SeenOutcomes
    found: RatedEvent | None
    compared: int = 0
    refused: MechanismRaised | None = None


@dataclass(slots=True, kw_only=True)
class Search:
    """One search by successive halving: its setting, paired runs spent, and seconds of making pairs (`making`)."""

    runner: Runner
    objective: Objective
    budget: int
    costs: Costs | None = None
    spent: int = 0
    late: bool = False
    making: float = 0.0

    @property
    def thorough(self) -> bool:
        """Whether no value ends the search early, and several threads may run the mechanism."""
        return bool(np.isinf(self.objective.stop_value)) and self.runner.mechanism.threads

    def priced(self, pair: Pair) -> Objective:
        """The objective for a pair, by the cost of its runs where pairs compete for seconds."""
        return self.objective if self.costs is None else self.costs.priced(self.objective, pair)

    def halve(self, searched: list[SearchedPair], budget: int, keep: int) -> list[SearchedPair]:
        """Halve the pairs round by round: few runs of all pairs, then twice the runs of each pair of the better half.

        All rounds have equal totals of runs. Returns at most `keep` pairs, best first. Raises `MechanismTimeout` if no
        run was done in time.
        """
        rounds = max((len(searched) - 1) // keep, 0).bit_length() + 1
        for turn in range(rounds):
            share = max(budget // (rounds * len(searched)), 8)
            looks = self._looks(share) if turn == 0 else [share]
            for number, more in enumerate(looks, 1):
                ranked = len(searched) > 1 or number < len(looks)  # a single pair's events are learned from all runs
                self._grow(searched, more, ranked=ranked)
                searched = self._taken(searched)
                if self.late:
                    return sorted(self.seen(searched), key=lambda one: -one.value)[:keep]
                searched = sorted(searched, key=lambda one: -one.value)
                if ranked:
                    self._check(searched[0], CHECK_FACTOR * more)
                if searched[0].certain:
                    return searched[:1]
            searched = searched[: max((len(searched) + 1) // 2, keep)]
        return searched[:keep]

    def _looks(self, share: int) -> list[int]:
        """The number of runs of a pair in each part of the first round.

        The first parts are small, because a violation ends the search.
        """
        if np.isinf(self.objective.stop_value):
            return [share]
        least = LOOK_DIVISORS if self.runner.mechanism.cost.compiled else LOOK_DIVISORS_IF_INTERPRETED
        ends = [0, *(share // part for part, runs in least.items() if share // part >= runs), share]
        return [end - before for before, end in pairwise(ends)]

    def seen(self, searched: list[SearchedPair]) -> list[SearchedPair]:
        """The pairs with runs. Raises `MechanismTimeout` where no pair has runs."""
        if not any(one.seen.runs for one in searched):
            made = f" (making pairs of inputs took {self.making:.2g} s of it)"
            raise MechanismTimeout(
                f"{self.runner.mechanism.name} did not finish the first runs of the search in time"
                f"{made if self.making > NAMED_PAIR_MAKING_SHARE * self.runner.seconds else ''}: give a larger max_time"
            )
        return [one for one in searched if one.seen.runs]

    def screened(self, unusual: list[SearchedPair], budget: int, most: int) -> list[SearchedPair]:
        """The `UNUSUAL_PAIRS` best pairs of many unusual pairs; most unusual pairs show nothing.

        `budget`: paired runs of all pairs together in the first look; `most`: paired runs of each.

        The first look ranks pairs by the contrast of single entries, since a leak at an unusual value is large as a
        rule. Events that all learners find in more runs decide between the pairs of the largest contrast.
        """
        n = min(budget // max(len(unusual), 1), most)
        if n < LEAST_SCREENING_RUNS:
            unusual, n = unusual[: budget // LEAST_SCREENING_RUNS], LEAST_SCREENING_RUNS
        self._grow(unusual, n, ranked=False)
        for one in unusual:
            if one.refused is not None:
                self.runner.leave_out(one.refused)
        seen = [one for one in unusual if one.seen.runs]
        kept = max(len(unusual) // SCREENED_DIVISOR, LEAST_SCREENED_PAIRS)
        seen = sorted(seen, key=lambda one: -contrast(*one.rows))[:kept]
        if seen and not self.late:
            self._grow(seen, n * len(unusual) // len(seen), ranked=True)
        return sorted(seen, key=lambda one: -one.value)[:UNUSUAL_PAIRS]

    def leading(self, searched: Sequence[SearchedPair]) -> SearchedPair | None:
        """The best of the pairs of the largest measured sensitivities, after 1/`LEADING_DIVISOR` of the budget.

        None if the search does not stop early, or no sensitivity can be measured or stands out.
        """
        if np.isinf(self.objective.stop_value) or not measurable(self.runner.mechanism):
            return None
        by_key = {one.pair.key: one for one in searched}
        ordered = by_sensitivity([one.pair for one in searched], self.runner, LEADING_PAIRS, LEADING_PAIRS)
        leading = [by_key[pair.key] for pair in ordered.pairs[: ordered.leading]]
        return self.halve(leading, self.budget // LEADING_DIVISOR, 1)[0] if leading else None

    def promising(self, searched: Sequence[SearchedPair]) -> list[PromisingPair]:
        """The pairs as results of the search, with more runs if the search is thorough."""
        more = self.budget // len(searched) if self.thorough else 0
        return [
            PromisingPair(pair=one.pair, sample=self.more(one, more), certain=one.found if one.certain else None)
            for one in searched
        ]

    def _share(self, pair: Pair, share: int) -> int:
        """The number of paired runs of a pair in a round: `share`, or fewer if a run costs more than 1."""
        cost = 1.0 if self.costs is None else self.costs.of(pair)
        return max(int(share / min(max(cost, 1.0), LARGEST_COST_FACTOR)), min(share, 8))

    def _taken(self, searched: list[SearchedPair]) -> list[SearchedPair]:
        """The pairs whose inputs the mechanism takes. Raises its error where it takes the inputs of no pair."""
        refused = [one.refused for one in searched if one.refused is not None]
        if len(refused) == len(searched):
            raise refused[0]
        for error in refused:
            self.runner.leave_out(error)
        return [one for one in searched if one.refused is None]

    def _grow(self, searched: Sequence[SearchedPair], share: int, *, ranked: bool) -> None:
        """Draw `share` more paired runs of each pair, fewer if they cost more; pairs or shards run at the same time.

        `ranked`: whether the best event of each pair is learned.
        """
        runner = self.runner
        spread = len(searched) >= runner.beside and (runner.beside > 1 or runner.mechanism.threads)
        spread &= runner.mechanism.layout is None  # a layout grows with the outcomes, in the order of the pairs
        drawing = runner.alone() if spread else runner
        shares = [self._share(one.pair, share) for one in searched]  # before threads start, as runs may be timed
        tasks = [partial(_grown, self, drawing, one, own, ranked) for one, own in zip(searched, shares, strict=True)]
        results: Iterable[MoreRuns | None] = (
            runner.each(tasks, workers=runner.beside) if spread else (task() for task in tasks)
        )
        try:
            for one, growth in zip(searched, results, strict=False):
                if growth is None:
                    self.late = True
                    break
                # No task writes to a pair, since a task abandoned at the deadline must change nothing.
                one.seen, one.found, one.refused = growth.seen, growth.found, growth.refused
                if one.refused is not None:
                    continue
                runner.tried.pairs += one.turns == 0
                runner.tried.events += growth.compared
                one.turns += growth.asked > 0
                self.spent += growth.drawn
                runner.report("search", self.spent, self.budget)
                if growth.drawn < growth.asked:
                    self.late = True
                    break
        except MechanismTimeout:
            self.late = True

    def _check(self, one: SearchedPair, runs: int) -> None:
        """Count a best event that reaches the stop value on fresh runs; the search ends if it reaches it again."""
        found, objective = one.found, self.priced(one.pair)
        if found is None or found.lower_value < objective.stop_value:
            return
        n = min(runs, max(self.budget // 10, 64))
        try:
            (tally,) = self.runner.tallies(
                found.directed(one.pair), [found.event], n, Role.CHECK_OF_SEARCH, one.index, one.turns
            )
        except MechanismTimeout:
            self.late = True
            return
        self.spent += n
        one.found = valued(found, tally.estimate, tally.runs, objective)
        one.certain = one.found.lower_value >= objective.stop_value

    def more(self, searched: SearchedPair, n: int) -> Sample:
        """A sample of a pair: its runs so far, or, where outcomes repeat and need little memory, n fresh runs."""
        rows = searched.seen.sample
        if self.late or not rows.repeats or n <= searched.seen.runs:
            return rows
        parts = 2 * -(-n // (2 * COUNTED_BLOCK_RUNS))
        each = -(-n // parts)
        draw = partial(self.runner.sample, searched.pair, each, Role.SEARCH, searched.index)
        try:
            table = counted((draw(searched.turns + turn) for turn in range(parts)), rows.width, n)
        except MechanismTimeout:
            return rows
        self.spent += parts * each
        return table or rows


def search(
    problem: Problem, runner: Runner, objective: Objective, budget: int, costs: Costs | None = None
) -> tuple[list[PromisingPair], int]:
    """Find the pairs that promise most: successive halving over the relation's pairs, then over variations of the best.

    Returns the promising pairs, best first, and the paired runs spent, in total about `budget`. A pair whose value
    reaches the objective's stop value on fresh runs ends the search at once. A thorough search spends as many runs
    again on the promising pairs if outcomes repeat. The deadline ends the search with the runs drawn until then. Raises
    `InvalidOutcome` if all runs returned the same outcome, and `MechanismTimeout` if no run was done in time. `costs`:
    the costs of runs where pairs compete for seconds; None where they compete for runs.
    """
    state = Search(runner=runner, objective=objective, budget=budget, costs=costs)
    keep = 2 * PROMISING_PAIRS if state.thorough else PROMISING_PAIRS
    numbers = count()
    began = time.monotonic()
    searched = [SearchedPair(pair, next(numbers)) for pair in made_in_time(problem.candidates(), runner)]
    state.making = time.monotonic() - began
    first = list(searched)

    def unusual() -> list[SearchedPair]:
        began = time.monotonic()
        known = (one.pair for one in (*first, *searched))
        pairs = list(different(made_in_time(problem.unusual(), runner), known))
        state.making += time.monotonic() - began
        return [SearchedPair(pair, next(numbers)) for pair in pairs]

    # Where runs are expensive, the usual pairs may take all of the time, so the unusual pairs are screened first.
    early, others = not problem.mechanism.cost.cheap_in_bulk, None
    if early:
        state.priced(searched[0].pair)  # makes the cost of a usual pair the unit of costs
        others = unusual()
        leading = state.leading([*searched, *others])
        if leading is not None and leading.certain:
            return state.promising([leading]), state.spent
        if leading is not None and all(one is not leading for one in searched):  # an unusual pair leads
            searched, others = [leading, *searched], [one for one in others if one is not leading]
        searched += state.screened(others, budget // SCREENING_DIVISOR, SCREENING_RUNS)
    if len(searched) > 1:
        looked_at = {one.index for one in searched}
        searched = state.halve(searched, budget // 2, keep)
        refuse_constant(problem.mechanism, first, state.late)
        if not searched[0].certain and not state.late:
            varied = [pair for one in searched[:2] for pair in problem.variations(one.pair)]
            best = searched[0].found
            searched += [SearchedPair(pair, next(numbers)) for pair in varied]
            if state.thorough or best is None or best.lower_value <= 0:
                others = unusual() if others is None else others
                rest = [one for one in others if one.index not in looked_at and one.refused is None]
                searched += state.screened(rest, budget // (2 * SCREENING_DIVISOR), MOST_SCREENING_RUNS)
            searched = state.halve(searched, budget - state.spent, keep)
    else:
        searched = state.halve(searched, budget, 1)
        refuse_constant(problem.mechanism, first, state.late)
    return state.promising(searched), state.spent


def made_in_time(pairs: Iterable[Pair], runner: Runner) -> Iterator[Pair]:
    """The pairs that are made in `PAIR_MAKING_SHARE` of the remaining time, at least one: long inputs take long."""
    deadline = runner.deadline
    least = 0.0 if deadline is None else deadline.left * (1 - PAIR_MAKING_SHARE)
    for pair in pairs:
        yield pair
        if deadline is not None and deadline.left <= least:
            return


def different(pairs: Iterable[Pair], known: Iterable[Pair] = ()) -> Iterator[Pair]:
    """The pairs that are not among the known pairs, without repetitions; (D′, D) is a repetition of (D, D′)."""
    seen: set[Hashable] | None = None
    for pair in pairs:
        if seen is None:  # only once a pair comes: the keys of known pairs may take as long as making the pairs
            seen = {one.key for one in known}
        if pair.key not in seen:
            seen.add(pair.key)
            yield pair


def _grown(state: Search, runner: Runner, one: SearchedPair, share: int, ranked: bool) -> MoreRuns:
    """The result of `share` more runs of a pair, fewer if memory is full, with the best event if pairs are `ranked`."""
    width = max(one.seen.width, runner.mechanism.cost.width)  # the width of the outcomes, not of the input
    n = max(min(share, PAIR_ENTRIES // (2 * width) - one.seen.runs), 0)
    seen, drawn = one.seen, 0
    if n:
        try:
            new = runner.sample(one.pair, n, Role.SEARCH, one.index, one.turns, partial_too=True)
        except MechanismRaised as error:
            if not error.on_both_inputs:
                raise
            return MoreRuns(0, 0, seen, None, refused=error)
        seen, drawn = seen.plus(*new), len(new[0])
    if not ranked:
        return MoreRuns(n, drawn, seen, one.found)
    rated = compared(seen.sample, state.priced(one.pair), thorough=False)
    return MoreRuns(n, drawn, seen, chosen(rated, 1)[0], len(rated))


#: The number of entries of an outcome that the contrast looks at.
CONTRASTED_ENTRIES: Final = 64
#: Shares of the runs of both sides at which the contrast cuts an entry.
CONTRAST_SHARES: Final = np.concatenate([[0.01], np.arange(1, 16) / 16, [0.99]])
#: The number of most frequent repeated values of an entry that the contrast looks at.
CONTRASTED_VALUES: Final = 16


def contrast(x: Rows, y: Rows) -> float:
    """The largest log ratio (nats) of the rates of an interval of an entry on both sides, less two standard errors.

    The intervals lie below, above and exactly at a few quantiles of the runs of both sides, and at the most frequent
    repeated values, which continuous noise does not have. The contrast takes a small part of the time of `learn`.
    """
    x, y = of_one_width(x, y)
    return max(_contrast_of_entry(*np.sort([x[:, k], y[:, k]])) for k in range(min(x.shape[1], CONTRASTED_ENTRIES)))


def _contrast_of_entry(x: Rows, y: Rows) -> float:
    """The contrast of one entry whose values are sorted; NaN is a value of its own."""
    values, times = np.unique(np.concatenate([x, y]), return_counts=True)
    cuts = np.repeat(values, times)[(CONTRAST_SHARES * (len(x) + len(y))).astype(np.int64)]
    often = np.argsort(-times, kind="stable")[:CONTRASTED_VALUES]
    exact = np.concatenate([cuts, values[often[times[often] > 1]]])
    counts = []
    for side in (x, y):
        below, numbers = np.searchsorted(side, cuts), np.searchsorted(side, np.nan)
        equal = np.searchsorted(side, exact, "right") - np.searchsorted(side, exact)
        counts.append(np.concatenate([below, np.maximum(numbers - below, 0), equal]))
    most, total = np.maximum(*counts), np.maximum(np.add(*counts), 1)
    # The interval of Wilson (1927), which also holds where one side has no run; 4 is the square of two standard errors.
    share = (most + 2 - 2 * np.sqrt(most * (total - most) / total + 1)) / (total + 4)
    best = max(float(share.max()), 1e-9)
    return math.log(best / (1 - best))


def refuse_constant(mechanism: Mechanism, searched: Sequence[Drawn], late: bool) -> None:
    """Raise `InvalidOutcome` for a mechanism that returned nothing but NaN, or one outcome in all runs.

    No error is raised if the search ended `late`, as few runs may be the same by chance, or without any run.
    """

    def parts() -> Iterator[Rows]:
        """The outcomes of one side of one pair after the other, since joining all of them is slow."""
        return (part for one in searched for part in one.rows if len(part))

    some = next(parts(), None)
    if late or some is None:  # `Search.seen` raises the error of a search without any run
        return
    first = some[:1]
    if not all(
        part.shape[1] == first.shape[1] and np.all((part == first) | np.isnan(part) & np.isnan(first))
        for part in parts()
    ):
        return
    total = sum(map(len, parts()))
    if np.all(np.isnan(first) | (first == NOT_A_NUMBER) | (first == NONE)):
        raise InvalidOutcome(
            f"{mechanism.name} returned NaN or nothing on each of its first {total} runs: there is nothing to test"
        )
    shown = mechanism.outcome_text(first[0].tolist())
    raise InvalidOutcome(
        f"{mechanism.name} returned {shown} on each of its first {total} runs, on every input (without noise, with the "
        "same noise in every run, or with rare other outcomes): there is nothing to test"
    )


#: The ratio of planned confirm runs to search runs from which on an event is compared with all ranges of its statistic.
RANGE_RATIO: Final = 20
#: The divisor of the confirm runs that fit in the time: the candidates of a check are compared in a quarter of these
#: runs, since an event of probability 10⁻⁴ on D′ comes too rarely in fewer runs to be told from an event of 3·10⁻⁴.
COMPARISON_DIVISOR: Final = 4


def best_candidate(
    problem: Problem, runner: Runner, objective: Objective, *, planned: int, budget: int
) -> tuple[Candidate, int]:
    """The best candidate of attacks and search, D first, and the paired search runs spent.

    `planned`: the paired confirm runs that will follow; `budget`: paired search runs. Raises the errors of `search`.
    """
    runner = runner.searching()
    costs = Costs(runner, affordable=affordable_runs(problem, runner))
    entries, spent = [ComparedEvent.uncounted(one.pair, one.event) for one in proposed(problem, planned)], 0
    runner.tried.pairs += len({entry.pair.key for entry in entries})
    runner.tried.events += len(entries)
    if entries:
        ranked, spent = compare(runner, entries, objective, budget // 4, Role.ATTACK)
        entries = ranked[:1]
        if entries[0].found.lower_value >= objective.stop_value:
            return _candidate(entries[0]), spent
    try:
        promising, more = search(problem, runner, objective, budget, costs)
    except MechanismTimeout:
        if not entries:
            raise
        promising, more = [], 0  # too slow to search, but the attack's candidate can still be confirmed
    spent += more
    thorough, threads = math.isinf(objective.stop_value), problem.mechanism.threads
    certain = [ComparedEvent(one.pair, one.certain) for one in promising if one.certain]
    most = 6 if thorough else 2  # a bound has the runs to compare many events
    cut = threads if thorough else planned >= RANGE_RATIO * budget  # fewer runs would choose among ranges by chance
    entries += certain + learned(runner, promising, objective, most, costs, cut=cut)
    best = certain[0] if certain else max(entries, key=_rank)
    several = len(entries) > 1 or best.cuts is not None  # events to choose from
    if several and (certain or best.found.lower_value < objective.stop_value):
        if thorough:
            share = max(budget, planned // 2) if threads else budget
        else:
            share = max(budget, int(min(planned, costs.affordable)) // COMPARISON_DIVISOR)
        if certain:  # it takes no more runs to tell the event from others of its sample than to check it
            share = min(budget // 5, CHECK_FACTOR * max(one.sample.training_runs for one in promising))
        (best, *_), more = compare(runner, entries, objective, share, Role.COMPARISON, costs)
        spent += more
    if costs.of(best.pair) != 1:  # the mechanism's cost was measured on a pair of cost 1
        problem.mechanism.measure(best.pair)
    return _candidate(best), spent


def learned(
    runner: Runner,
    promising: Sequence[PromisingPair],
    objective: Objective,
    most: int,
    costs: Costs | None = None,
    *,
    cut: bool = False,
) -> list[ComparedEvent]:
    """The best events in the outcomes of promising pairs, at most `most` of each pair; each pair on a thread.

    `costs`: as in `search`; `cut`: whether one event stands for all ranges of its statistic, which are counted with it.
    """
    objectives = [objective if costs is None else costs.priced(objective, one.pair) for one in promising]
    tasks = [partial(compared, one.sample, own) for one, own in zip(promising, objectives, strict=True)]
    results = [rated or [] for rated in replace(runner, deadline=None).each(tasks)]
    entries = []
    for one, rated in zip(promising, results, strict=True):
        runner.tried.events += len(rated)
        cut_already: set[tuple[bool, Hashable]] = set()
        for found in chosen(rated, most) if rated else ():
            cuts = cuts_around(found.event, one.sample) if cut else None
            if cuts is not None:
                key = found.swapped, cuts.key
                if key in cut_already:
                    continue
                cut_already.add(key)
            entries.append(ComparedEvent(one.pair, found, cuts, one.sample.training_runs if one.sample.repeats else 0))
    return entries


def proposed(problem: Problem, planned: int) -> list[Candidate]:
    """The candidates of the attack that the user names, else of the target's own attack, under its own relation."""
    if problem.attack is not None:
        return problem.proposals(problem.attack, planned)
    own = target_of(plain_function(problem.function))
    if own is None or own.attack is None or not problem.own_relation:
        return []
    attack = attack_named(own.attack)
    relation, whole = problem.relation, problem.relation
    if len(alternatives(own.neighbours)) > 1:  # each adjacency is checked by itself, without other candidates
        whole = own.neighbours
    found = []
    for candidate in attack(dict(problem.mechanism.signature.parameters), problem.data, problem.claim, planned):
        # An attack may also propose pairs of other inputs than the given data.
        if adjacent(relation, candidate.pair, problem.data) or adjacent(relation, candidate.pair, None):
            found.append(candidate)
        else:
            require_adjacent(whole, candidate.pair, what="the attack's candidate")
    return found


def _rank(entry: ComparedEvent) -> tuple[bool, bool, float]:
    """The rank of an entry by its value three standard errors lower: the best of many is overestimated.

    Where that value is not positive, an event that holds some runs and not all comes first.
    """
    found = entry.found
    return found.lower_value > 0, found.telling, found.lower_value


def _candidate(entry: ComparedEvent) -> Candidate:
    return Candidate(pair=entry.found.directed(entry.pair), event=entry.found.event, estimate=entry.found.estimate)
