"""The search whose runs are no evidence: which pair, and which event on it.

`finalists` compares what attacks propose with what successive halving over the relation's pairs finds: few runs of all
pairs, twice the runs of the better half, and so on, then the same with variations of the best (Karnin, Koren & Somekh
2013, ICML). The events of the pairs that are left are counted on runs that did not choose them. Two more steps find
what so few runs cannot show: datasets of many records, if nothing was found with fewer; and for a candidate with a cut,
a better place of the cut, if many more confirm runs are planned than the search had.

For mechanisms whose runs are nearly free; see `search.epochs` for others.
"""

import math
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice, pairwise
from typing import Final, Protocol

import numpy as np

from dpwitness.candidate import Candidate, Estimate
from dpwitness.claims import Claim
from dpwitness.errors import BudgetTooSmall, InvalidOutcome, MechanismRaised, MechanismTimeout
from dpwitness.events import Event, Interval, Nested, around, of_one_width, scale_of, thresholds_of
from dpwitness.events.encoding import NONE, NOT_A_NUMBER
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns, Rows
from dpwitness.neighbours import Pair, adjacent, alternatives, pairs_of_size, require_adjacent
from dpwitness.problem import Problem, plain_function
from dpwitness.proposals import attack_named
from dpwitness.runs import Role, Runner, Threads, generator
from dpwitness.search.comparison import (
    MOST_MORE,
    STANDARD_ERRORS,
    Entry,
    ranked_entries,
    revalued,
    told_apart,
)
from dpwitness.search.costs import Costs, affordable_runs, cheaper_pairs
from dpwitness.search.cuts import LOWER, CutCells, cuts_around
from dpwitness.search.epochs import cuts_of
from dpwitness.search.learners import RatedEvent, chosen, compared
from dpwitness.search.objectives import Objective, value_of
from dpwitness.search.samples import Sample, SeenOutcomes, counted, sample_of
from dpwitness.targets import target_of

SEARCH_RUNS: Final = 600_000
FEWEST: Final = 64


def usual_runs(claim: Claim) -> int:
    """Search runs for a claim: the smaller ε is, the harder it is to see a violation by a given share of it."""
    return int(SEARCH_RUNS * min(max(0.7 / max(claim.parameter, 1e-9), 1.0), 4.0))


def search_budget(problem: Problem, runner: Runner, given: int | None, usual: int) -> int:
    """Paired search runs: those given, else the usual number, or for slow code what fits in a part of the time."""
    if given == 0:
        raise BudgetTooSmall("search_runs=0 is for check alone, which can bet from the first run on: give at least 1")
    if given is not None:
        return given
    cost = problem.mechanism.cost
    if cost.compiled:
        return usual
    # Rounded to a power of ten, so that a small change of speed does not change the search.
    share = 4 if cost.batched else 8  # plain Python slows down most when the machine is busy
    fits = 10 ** math.floor(math.log10(max(runner.max_time / share / (2 * max(cost.seconds_per_run, 1e-9)), 1)))
    return int(min(usual, max(fits, FEWEST)))


#: Numbers that the outcomes of one pair may hold in memory, both sides together.
ROOM: Final = 1 << 22
#: Paired runs that are drawn at a time to be counted.
PART: Final = 1 << 17
#: Of how many pairs the events are compared; twice as many in a thorough search: a bound has the runs for it.
PROMISING: Final = 4
#: How many unusual pairs are searched like others. Of all of them so many runs are made at first where runs are not
#: nearly free, at least so many, and 1/`SCREENING` of all search runs at most; then as many again in all of one pair in
#: so many, or of so many. Where nothing was found half of this share, and so many of each at most.
SCREENED: Final = 2
FIRST_LOOK: Final = 32
LEAST_LOOK: Final = 12
SCREENING: Final = 4
SECOND_LOOK: Final = 4
LEAST_KEPT: Final = 12
MOST_LOOK: Final = 1 << 12
#: The first round looks at such shares of its runs first, where these are so many runs of a pair at least: where runs
#: cost next to nothing, learning an event takes longer. What few runs show is tried on so many times as many.
LEAST_FIRST: Final = {64: 1 << 10, 8: 1 << 13}
LEAST_FIRST_IF_INTERPRETED: Final = {64: 1 << 6, 8: 1 << 6}
LOOKED: Final = 4
#: The share of the time that is left that goes into making the usual pairs, and of the rest into the unusual ones.
MAKING: Final = 0.25
#: The share of the time so far from which on that is named, where no run was done in time.
LONG: Final = 0.2
#: How many times fewer runs of a pair are drawn at most, however much they cost: fewer would not show what it does.
MOST_FEWER: Final = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisingPair:
    """A pair that promised much, and what was seen of it."""

    pair: Pair
    sample: Sample
    certain: RatedEvent | None = None  # an event that reached the stop value on runs of its own


@dataclass(slots=True)
class SearchedPair:
    """A pair in the search: the outcomes of both sides so far, the best event in them, how often it was drawn from."""

    pair: Pair
    index: int
    seen: SeenOutcomes = field(default_factory=SeenOutcomes)
    found: RatedEvent | None = None
    certain: bool = False
    turns: int = 0
    refused: MechanismRaised | None = None  # it takes neither of the two inputs

    @property
    def value(self) -> float:
        """What its best event promises."""
        return -np.inf if self.found is None else self.found.value

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """The outcomes of D and of D′."""
        return self.seen.rows


class Drawn(Protocol):
    """Something that holds outcomes."""

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """Those of D and of D′."""


@dataclass(frozen=True, slots=True)
class MoreRuns:
    """What one more share of runs gave a pair: runs asked for, runs drawn, all outcomes, the best event in them.

    `compared`: of how many events; `refused`: what a mechanism raised that takes neither input.
    """

    asked: int
    drawn: int
    seen: SeenOutcomes
    found: RatedEvent | None
    compared: int = 0
    refused: MechanismRaised | None = None


@dataclass(slots=True, kw_only=True)
class Search:
    """One search by successive halving: its setting, the paired runs spent, and whether the time is over.

    `making`: the seconds that its pairs took to make.
    """

    runner: Runner
    objective: Objective
    budget: int
    costs: Costs | None = None
    spent: int = 0
    late: bool = False
    making: float = 0.0

    @property
    def thorough(self) -> bool:
        """Whether nothing ends it early, and runs are cheap."""
        return bool(np.isinf(self.objective.stop_value)) and self.runner.mechanism.threads

    def priced(self, pair: Pair) -> Objective:
        """The objective for a pair, by what its runs cost where pairs compete for seconds."""
        return self.objective if self.costs is None else self.costs.priced(self.objective, pair)

    def halve(self, searched: list[SearchedPair], budget: int, keep: int) -> list[SearchedPair]:
        """Few runs for all, twice the runs for the better half, and so on; the same total in every round.

        Returns at most `keep` pairs, best first. Raises `MechanismTimeout` where no run was done in time.
        """
        rounds = max((len(searched) - 1) // keep, 0).bit_length() + 1
        for turn in range(rounds):
            share = max(budget // (rounds * len(searched)), 8)
            looks = self._looks(share) if turn == 0 else [share]
            for number, more in enumerate(looks, 1):
                ranked = len(searched) > 1 or number < len(looks)  # of a single pair events are learned later, from all
                self._grow(searched, more, ranked=ranked)
                searched = self._taken(searched)
                if self.late:
                    return sorted(self.seen(searched), key=lambda one: -one.value)[:keep]
                searched = sorted(searched, key=lambda one: -one.value)
                if ranked:
                    self._check(searched[0], LOOKED * more, clearly=number < len(looks))
                if searched[0].certain:
                    return searched[:1]
            searched = searched[: max((len(searched) + 1) // 2, keep)]
        return searched[:keep]

    def _looks(self, share: int) -> list[int]:
        """The runs of the first round, for each pair: few at first, where a clear violation would end the search."""
        if np.isinf(self.objective.stop_value):
            return [share]
        least = LEAST_FIRST if self.runner.mechanism.cost.compiled else LEAST_FIRST_IF_INTERPRETED
        ends = [0, *(share // part for part, runs in least.items() if share // part >= runs), share]
        return [end - before for before, end in pairwise(ends)]

    def seen(self, searched: list[SearchedPair]) -> list[SearchedPair]:
        """The pairs that there were runs of. Raises `MechanismTimeout` where there are none."""
        if not any(one.seen.runs for one in searched):
            made = f" (making pairs of inputs took {self.making:.2g} s of it)"
            raise MechanismTimeout(
                f"{self.runner.mechanism.name} did not finish the first runs of the search in time"
                f"{made if self.making > LONG * self.runner.seconds else ''}: give a larger max_time"
            )
        return [one for one in searched if one.seen.runs]

    def drawn(self, searched: list[SearchedPair], share: int) -> list[SearchedPair]:
        """The pairs whose inputs the mechanism takes, with so many more runs of each. Raises as `halve`."""
        self._grow(searched, share, ranked=False)
        return self.seen(self._taken(searched))

    def screened(self, unusual: list[SearchedPair], budget: int, most: int) -> list[SearchedPair]:
        """The `SCREENED` pairs that promise most, of many of which most show nothing.

        `budget`: the runs of all of them together in a first look, of each so many at `most`.

        A first look at them compares intervals of single entries alone: a leak at a single value is a large one as a
        rule. What all learners find in more runs decides between those that are left.
        """
        n = min(budget // max(len(unusual), 1), most)
        if n < LEAST_LOOK:
            unusual, n = unusual[: budget // LEAST_LOOK], LEAST_LOOK
        self._grow(unusual, n, ranked=False)
        for one in unusual:
            if one.refused is not None:
                self.runner.leave_out(one.refused)
        seen = [one for one in unusual if one.seen.runs]
        kept = max(len(unusual) // SECOND_LOOK, LEAST_KEPT)
        seen = sorted(seen, key=lambda one: -contrast(*one.rows))[:kept]
        if seen and not self.late:
            self._grow(seen, n * len(unusual) // len(seen), ranked=True)
        return sorted(seen, key=lambda one: -one.value)[:SCREENED]

    def _share(self, pair: Pair, share: int) -> int:
        """Its share of the runs of a round: what it shows in few of them counts less, if they cost more."""
        cost = 1.0 if self.costs is None else self.costs.of(pair)
        return max(int(share / min(max(cost, 1.0), MOST_FEWER)), min(share, 8))

    def _taken(self, searched: list[SearchedPair]) -> list[SearchedPair]:
        """The pairs whose inputs the mechanism takes. Raises what it raised where there are none."""
        refused = [one.refused for one in searched if one.refused is not None]
        if len(refused) == len(searched):
            raise refused[0]
        for error in refused:
            self.runner.leave_out(error)
        return [one for one in searched if one.refused is None]

    def _grow(self, searched: Sequence[SearchedPair], share: int, *, ranked: bool) -> None:
        """Draw `share` more runs for each pair, fewer where they cost more: pairs beside each other, or its shards.

        The best event of each is looked for where they are `ranked` by it.
        """
        runner = self.runner
        spread = len(searched) >= runner.beside and (runner.beside > 1 or runner.mechanism.threads)
        spread &= runner.mechanism.layout is None  # which grows by what is drawn, in the order of the pairs
        drawing = runner.alone() if spread else runner
        shares = [self._share(one.pair, share) for one in searched]  # before there are threads: it may time runs
        tasks = [partial(_grown, self, drawing, one, own, ranked) for one, own in zip(searched, shares, strict=True)]
        results: Iterable[MoreRuns | None] = (
            runner.each(tasks, workers=runner.beside) if spread else (task() for task in tasks)
        )
        try:
            for one, growth in zip(searched, results, strict=False):
                if growth is None:
                    self.late = True
                    break
                # Nothing is written to a pair by a task: one left behind at the deadline must change nothing.
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

    def _check(self, one: SearchedPair, few: int, *, clearly: bool) -> None:
        """Try an event on fresh runs, as the best of so many is overestimated: whether it stops the search.

        One that reaches the stop value is tried on few runs first. `clearly`: no other will do; else what suffices,
        which many runs show.
        """
        found, objective, many = one.found, self.priced(one.pair), max(self.budget // 10, 64)
        if found is None:
            return
        tries = {min(few, many): objective.stop_value} if found.lower_value >= objective.stop_value else {}
        if not clearly and found.lower_value >= objective.sufficient_value:
            tries[many] = objective.sufficient_value
        for n, stop in tries.items():
            try:
                tally = self.runner.tally(
                    found.directed(one.pair), found.event, n, Role.CHECK_OF_SEARCH, one.index, one.turns
                )
            except MechanismTimeout:
                self.late = True
                return
            self.spent += n
            one.found = revalued(found, tally, objective)
            one.certain = one.found.lower_value >= stop
            if one.certain:
                return

    def more(self, one: SearchedPair, n: int) -> Sample:
        """What was seen of a pair; n fresh runs, which need no room in memory, where outcomes repeat."""
        rows = one.seen.sample
        if self.late or not rows.repeats or n <= one.seen.runs:
            return rows
        parts = 2 * -(-n // (2 * PART))
        each = -(-n // parts)
        draw = partial(self.runner.sample, one.pair, each, Role.SEARCH, one.index)
        try:
            table = counted((draw(one.turns + turn) for turn in range(parts)), rows.width, n)
        except MechanismTimeout:
            return rows
        self.spent += parts * each
        return table or rows


def search(
    problem: Problem, runner: Runner, objective: Objective, budget: int, costs: Costs | None = None
) -> tuple[list[PromisingPair], int]:
    """Find the pairs that promise most: successive halving over the relation's pairs, then over variations of the best.

    Returns the promising pairs, best first, and the paired runs spent, in total about `budget`. A pair whose value
    reaches the objective's stop value on fresh runs ends the search at once; where there is none and outcomes repeat,
    as many runs again are spent on the promising pairs. At the deadline it ends with what was drawn until then. Raises
    `InvalidOutcome` if every run of every pair returned the same, and `MechanismTimeout` if no run was done in time.
    `costs`: by which pairs compete for seconds, not runs.
    """
    state = Search(runner=runner, objective=objective, budget=budget, costs=costs)
    keep = 2 * PROMISING if state.thorough else PROMISING
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

    # Where runs are not nearly free time may be over before more than the usual pairs were seen.
    early, others = not problem.mechanism.cost.cheap_in_bulk, None
    if early:
        state.priced(searched[0].pair)  # that of an ordinary pair is what others cost more or less than
        others = unusual()
        searched += state.screened(others, budget // SCREENING, FIRST_LOOK)
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
                searched += state.screened(rest, budget // (2 * SCREENING), MOST_LOOK)
            searched = state.halve(searched, budget - state.spent, keep)
    else:
        searched = state.halve(searched, budget, 1)
        refuse_constant(problem.mechanism, first, state.late)
    more = budget // len(searched) if state.thorough else 0
    found = [
        PromisingPair(pair=one.pair, sample=state.more(one, more), certain=one.found if one.certain else None)
        for one in searched
    ]
    return found, state.spent


def sampled(
    problem: Problem, runner: Runner, pairs: Sequence[Pair], objective: Objective, budget: int
) -> tuple[list[PromisingPair], int]:
    """Pairs that searches have found, with as many fresh runs of each as `search` would make.

    Returns and raises as `search`; the paired runs spent are `budget` at most.
    """
    state = Search(runner=runner, objective=objective, budget=budget)
    each = budget // len(pairs)
    searched = [SearchedPair(pair, LEARNED_FROM + k) for k, pair in enumerate(pairs)]
    found = state.drawn(searched, each // 4 if state.thorough else each)
    refuse_constant(problem.mechanism, found, state.late)
    more = each // 2 if state.thorough else 0
    return [PromisingPair(pair=one.pair, sample=state.more(one, more)) for one in found], state.spent


def made_in_time(pairs: Iterable[Pair], runner: Runner) -> Iterator[Pair]:
    """The pairs that are made in `MAKING` of the time that is left, at least one: those of long inputs take a while."""
    deadline = runner.deadline
    least = 0.0 if deadline is None else deadline.left * (1 - MAKING)
    for pair in pairs:
        yield pair
        if deadline is not None and deadline.left <= least:
            return


def different(pairs: Iterable[Pair], known: Iterable[Pair] = ()) -> Iterator[Pair]:
    """The pairs, each once, without those that are known: events are tried in both directions anyway."""
    seen: set[Hashable] | None = None
    for pair in pairs:
        if seen is None:  # not without a pair: the keys of those that are known may take as long as to make them
            seen = {one.key for one in known}
        if pair.key not in seen:
            seen.add(pair.key)
            yield pair


def _grown(state: Search, runner: Runner, one: SearchedPair, share: int, ranked: bool) -> MoreRuns:
    """More runs for one pair, as many as memory has room for; the best event where pairs are `ranked`."""
    width = max(one.seen.width, runner.mechanism.cost.width)  # of the outcomes, not of the input
    n = max(min(share, ROOM // (2 * width) - one.seen.runs), 0)
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


#: Entries that a first look compares, its cuts, as shares of the runs of both sides, and how many repeated values.
ENTRIES: Final = 64
CUTS: Final = np.concatenate([[0.01], np.arange(1, 16) / 16, [0.99]])
REPEATED: Final = 16


def contrast(x: Rows, y: Rows) -> float:
    """The largest log ratio of the rates of an interval of an entry, two standard errors lower: a quick look.

    Below, above and exactly at a few quantiles of the runs of both sides, and at the values that come most often: one
    that comes twice is not of continuous noise. A small part of the time of `learn`.
    """
    x, y = of_one_width(x, y)
    return max(_contrast_of_entry(*np.sort([x[:, k], y[:, k]])) for k in range(min(x.shape[1], ENTRIES)))


def _contrast_of_entry(x: Rows, y: Rows) -> float:
    """The same of one entry, in order; NaN is a value of its own."""
    values, times = np.unique(np.concatenate([x, y]), return_counts=True)
    cuts = np.repeat(values, times)[(CUTS * (len(x) + len(y))).astype(np.int64)]
    often = np.argsort(-times, kind="stable")[:REPEATED]
    exact = np.concatenate([cuts, values[often[times[often] > 1]]])
    counts = []
    for side in (x, y):
        below, numbers = np.searchsorted(side, cuts), np.searchsorted(side, np.nan)
        equal = np.searchsorted(side, exact, "right") - np.searchsorted(side, exact)
        counts.append(np.concatenate([below, np.maximum(numbers - below, 0), equal]))
    most, total = np.maximum(*counts), np.maximum(np.add(*counts), 1)
    # The interval of Wilson (1927), which also holds where one side has none; four is two standard errors squared.
    share = (most + 2 - 2 * np.sqrt(most * (total - most) / total + 1)) / (total + 4)
    best = max(float(share.max()), 1e-9)
    return math.log(best / (1 - best))


def refuse_constant(mechanism: Mechanism, searched: Sequence[Drawn], late: bool) -> None:
    """Raise `InvalidOutcome` for a mechanism that returns nothing but NaN, or always the same.

    Not when the search ended `late`: the few runs of a slow mechanism may be the same by chance; nor without any run.
    """

    def parts() -> Iterator[Rows]:
        """Rows of one side of one pair after the other: to put together those of all pairs takes a while."""
        return (part for one in searched for part in one.rows if len(part))

    some = next(parts(), None)
    if late or some is None:  # where no run was done in time, what comes next says so
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
            for number, pair in enumerate(islice(pairs_of_size(problem.relation, size, problem.data), most)):
                if level == 0:
                    break
                key = level * 10 + number
                sample = sample_of(*runner.sample(pair, RUNS, Role.MANY_RECORDS, 0, key))
                spent += RUNS
                (found,) = _shown(runner, sample, objective, 1, thorough=False)
                if found.value <= 0:
                    continue
                tally = runner.tally(found.directed(pair), found.event, AGAIN, Role.MANY_RECORDS, 1, key)
                again = revalued(found, tally, objective)
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


def _shown(
    runner: Runner, sample: Sample, objective: Objective, most: int, *, thorough: bool = True
) -> list[RatedEvent]:
    """The events that the outcomes of one more pair show, at most so many."""
    rated = compared(sample, objective, thorough=thorough)
    runner.tried.pairs += 1
    runner.tried.events += len(rated)
    return chosen(rated, most)


def _fast(runner: Runner, pair: Pair) -> bool:
    """Whether a run takes less than `FAST`: the faster one of two, since in the first code may be compiled."""

    def seconds() -> tuple[float]:
        began = time.perf_counter()
        run = PairedRuns.d_first(pair, 1, coupled=False, columns=runner.mechanism.columns)
        runner.mechanism.pair_outcomes(run, generator(runner.seed, Role.MANY_RECORDS, 2))
        return ((time.perf_counter() - began) / 2,)

    times = [one[0] for one in Threads(1).ordered([seconds, seconds], runner.deadline) if one is not None]
    return len(times) == 2 and min(times) < FAST


#: An event is compared with those of other entries by as many runs as there are confirm runs. None of them is the best
#: of many learned events: they are lowered by fewer standard errors.
MOVED_LOWER: Final = 1.0

#: Pairs with fewer records are not tried where so many times the planned confirm runs fit in the time: then few
#: seconds are to be saved, and a seed should give the same pair however long its runs took.
ENOUGH_TIME: Final = 10
#: Else the search leaves them such a share of the time.
TO_CHEAPEN: Final = 0.1
#: The number of the first sample of a pair that is searched no more, among the streams of its role.
LEARNED_FROM: Final = 1 << 20

#: Confirm runs for each search run from which on the cut is placed anew, what part of them it takes, and at most.
MANY: Final = 20
#: The same for what is not compiled: few search runs fit in its time, and chance decides between cuts.
MANY_IF_INTERPRETED: Final = 1
#: And there so many standard errors count: rare events vary most, and by chance the best of `TRIED` cuts is beyond two
#: in one check of eight.
ERRORS_IF_INTERPRETED: Final = 3.0
#: What few runs liked is tried on such a part of the search runs, then on a tenth.
FEW_AGAIN: Final = 100
#: Of one event alone so many.
ERRORS_OF_ONE: Final = 2.0
SHARE: Final = 10
MOST_RUNS: Final = 20_000_000
#: Runs whose outcomes are held to find the places of cuts.
SEEN: Final = 1_000_000
#: And how many numbers these hold at most, both sides together.
SEEN_NUMBERS: Final = 1 << 24
#: How much rarer and more frequent events are tried; where chance may have chosen, up to such a share of the runs.
RARER: Final = 1 / 24
MORE_FREQUENT: Final = 6.0
TRIED: Final = 24
#: Of the cuts of an entry at quantiles one of so many, where any of them will do to begin with.
CUTS_APART: Final = 3
MOST_FREQUENT: Final = 0.8
#: Of an event that holds so many of the runs a better cut would lower what a pass detects by little.
FREQUENT: Final = 0.25


def refined(
    runner: Runner, candidate: Candidate, objective: Objective, *, planned: int, budget: int
) -> tuple[Candidate, int]:
    """The candidate with the best cut, of rarer and more frequent ones, and the paired runs spent.

    `planned`: confirm runs, those that there is time for; `budget`: search runs so far. Nothing is tried if these are
    not many fewer, or if the candidate is good enough. In plain Python a rare event that has no such cut, as one of two
    ends, must promise more than the best cut of any entry. Where the time is short the cuts are compared by fewer runs:
    on a busy machine runs take longer than was measured, and what few runs liked best may be a rare tail.
    """
    estimate, event = candidate.estimate, candidate.event
    assert estimate is not None  # of a search
    compiled = runner.mechanism.cost.compiled
    if planned < (MANY if compiled else MANY_IF_INTERPRETED) * budget:
        return candidate, 0
    rare = not compiled and estimate.p < FREQUENT
    if not rare and not thresholds_of(event):
        return candidate, 0
    runs, spent = min(planned // SHARE, MOST_RUNS), 0
    if runs < FEWEST:  # the best of these would be chosen by chance
        return candidate, 0
    good = value_of(estimate, objective, budget) >= objective.stop_value
    try:
        if good and not compiled:  # its estimate may be of much fewer runs than the budget
            for n in sorted({max(budget // part, FEWEST) for part in (FEW_AGAIN, 10)}):
                seen = runner.tally(
                    candidate.pair, event, n, Role.REFINEMENT, 2, partial_too=True, size=runner.part_of(n)
                )  # fmt: skip
                spent += seen.runs
                good = value_of(seen.estimate, objective, seen.runs) >= objective.stop_value
                if good:
                    break
        if good:
            return candidate, spent
        held = min(SEEN, SEEN_NUMBERS // (2 * max(runner.mechanism.width, 1)))
        n = held if compiled else max(min(held, runs // 4), FEWEST)
        # For half of the time at most: else none is left to count in.
        rows, others = runner.for_half().sample(
            candidate.pair, n, Role.REFINEMENT, 0, partial_too=True, size=runner.part_of(n)
        )  # fmt: skip
        spent += len(rows)
        kept = -math.inf
        if rare and not around(event, rows, (1.0,)):  # of two ends, or of a feature
            n = runs // 2
            seen = runner.for_half().tally(
                candidate.pair, event, n, Role.REFINEMENT, 3, partial_too=True, size=runner.part_of(n)
            )  # fmt: skip
            spent += seen.runs
            kept = value_of(seen.estimate, objective, seen.runs, ERRORS_OF_ONE)
            event, estimate = _best_cut(rows, others, objective) or (event, estimate)
        most = MORE_FREQUENT if compiled else max(MORE_FREQUENT, MOST_FREQUENT / max(estimate.p, 1 / budget))
        factors = sorted([1.0, *np.geomspace(RARER, most, TRIED).tolist()])  # its own cut among them
        nested = Nested.around(event, rows, factors)
        if not nested.events:
            return candidate, spent
        tally = runner.tally(
            candidate.pair, nested, runs, Role.REFINEMENT, 1, partial_too=True, size=runner.part_of(runs)
        )  # fmt: skip
    except MechanismTimeout:
        return candidate, spent
    # By the table of how many of them hold the outcome: what lies in the smallest event lies in all of them.
    holding = np.arange(len(nested.events) + 1)
    estimates = [tally.estimate_of(holding > number) for number in reversed(range(len(nested.events)))]
    thorough = math.isinf(objective.stop_value)
    errors = (LOWER if thorough else STANDARD_ERRORS) if compiled else ERRORS_IF_INTERPRETED
    values = [value_of(found, objective, tally.runs, errors) for found in estimates]
    best = int(np.argmax(values))
    # What is not compiled was chosen by few runs: its value is overestimated. One of the cuts is nearly its own.
    # So is what a bound has compared: many entries, and no stop value.
    before = value_of(estimate, objective, budget) if compiled and not thorough else kept
    if values[best] <= before:
        return candidate, spent + tally.runs
    return replace(candidate, event=nested.events[best], estimate=estimates[best]), spent + tally.runs


def _best_cut(x: Rows, y: Rows, objective: Objective) -> tuple[Event, Estimate] | None:
    """The half-line of one entry that promises most, of a few, and its rates; None where no entry varies."""
    found = []
    for column, cuts in cuts_of(x, y).items():
        for cut in map(float, cuts[len(cuts) % CUTS_APART // 2 :: CUTS_APART]):
            for event in (Interval(coordinate=column, low=cut), Interval(coordinate=column, high=cut)):
                a, b = event.contains(x), event.contains(y)
                found.append((event, Estimate(p=float(a.mean()), q=float(b.mean()), both=float((a & b).mean()))))
    return max(found, key=lambda one: value_of(one[1], objective, len(x), ERRORS_OF_ONE), default=None)


def best_refined(
    runner: Runner, found: Sequence[Candidate], objective: Objective, *, planned: int, budget: int
) -> tuple[Candidate, int]:
    """The best of some candidates once each has its best cut, as `refined` finds it, and the paired runs spent.

    What the search held in memory is too few runs to place the cut of a rare event: which candidate came first says
    little before. They are told apart on runs of their own, as many as the cuts were placed by at most.
    """
    refinements = [refined(runner, one, objective, planned=planned, budget=budget) for one in found]
    spent = sum(more for _, more in refinements)
    if len(found) < 2:
        return refinements[0][0], spent
    # The cuts that there were compete too, since they were chosen by more runs than the new ones.
    tried = {id(one) for one, runs in refinements if runs}
    different = list({id(one): one for one in (*(new for new, _ in refinements), *found)}.values())
    # What chose the cut does not value it.
    entries = [Entry.uncounted(one.pair, one.event, place) for place, one in enumerate(different)]
    try:
        ranked, more = told_apart(runner, entries, objective, planned // SHARE * 2, Role.PLACED_CUTS)
    except MechanismTimeout:
        return refinements[0][0], spent
    best = ranked[0]
    winner = different[best.place]
    # Events with cuts come with rates of more runs than these; the rates of others are what few runs liked best.
    return (winner if id(winner) in tried else _candidate(best)), spent + more


def finalists(
    problem: Problem, runner: Runner, objective: Objective, *, planned: int, budget: int
) -> tuple[list[Candidate], int]:
    """The best candidate of attacks and search, D first, and the paired search runs spent.

    It is followed by those that it was compared with last, of other pairs or families. `planned`: the paired confirm
    runs that will follow; `budget`: paired search runs. Raises as `search`.
    """
    runner = runner.searching()
    costs = Costs(runner, affordable=affordable_runs(problem, runner))
    short = costs.affordable < ENOUGH_TIME * planned
    # Where time is short, some of it belongs to finding a cheaper pair.
    searching = runner.until(runner.max_time * TO_CHEAPEN) if short else runner
    entries, spent = [Entry.uncounted(one.pair, one.event) for one in proposed(problem, planned)], 0
    runner.tried.pairs += len({entry.pair.key for entry in entries})
    runner.tried.events += len(entries)
    if entries:  # at least two, so that all are counted
        ranked, spent = ranked_entries(runner, [*entries, entries[0]], objective, budget // 4, Role.ATTACK)
        entries = ranked[:1]
        if entries[0].found.lower_value >= objective.stop_value:
            return [_candidate(entries[0])], spent
    try:
        promising, more = search(problem, searching, objective, budget, costs)
    except MechanismTimeout:
        if not entries:
            raise
        promising, more = [], 0  # too slow to search: what the attack proposes can still be confirmed
    spent += more
    thorough = math.isinf(objective.stop_value)
    certain = [Entry(one.pair, one.certain, place) for place, one in enumerate(promising) if one.certain]
    most = 6 if thorough else 2  # a bound tells many apart
    entries += certain + learned(
        searching, promising, objective, most, costs, cut=thorough and problem.mechanism.cost.compiled
    )
    best = certain[0] if certain else max(entries, key=_rank)
    ranked = [best]
    if len(entries) > 1 and (certain or best.found.lower_value < objective.stop_value):
        cheap = thorough and problem.mechanism.threads  # slow code: the budget is all that fits
        share = max(budget, planned // 2 if cheap else 0)
        if certain:  # as many runs as made it certain tell it from events of the same sample
            share = min(budget // 5, LOOKED * max(one.sample.training_runs for one in promising))
        try:
            if cheap:
                ranked, more = told_apart(searching, entries, objective, share, Role.COMPARISON, costs)
            else:
                ranked, more = ranked_entries(searching, entries, objective, share, costs=costs)
            best = ranked[0]
        except MechanismTimeout:
            more = 0  # it only refines: the best of the search stays, and half of the time is left to confirm it
        spent += more
        if cheap:
            best, more = best_place(problem, searching, best, objective, costs, planned)
            ranked, spent = [best, *ranked], spent + more
    if short and not certain and best.found.lower_value < objective.stop_value:
        best, more = cheaper(problem, runner, best, objective, costs, budget)
        spent += more
    if costs.of(best.pair) != 1:  # its runs take longer, or less long, than those that the cost was measured on
        problem.mechanism.measure(best.pair)
    if not thorough and best.found.lower_value <= 0:
        large, more = among_many_records(problem, runner, objective)
        spent += more
        if large is not None:
            problem.mechanism.measure(large.pair)  # its runs take longer than those that the cost was measured on
            best = large
    different = {_family(best): best}
    for entry in ranked if ranked[0] is best else ():
        different.setdefault(_family(entry), entry)
    return [_candidate(entry) for entry in different.values()], spent


def best_place(
    problem: Problem, runner: Runner, entry: Entry, objective: Objective, costs: Costs, budget: int
) -> tuple[Entry, int]:
    """The best of an entry and of those `at_other_places`, and the runs spent: about `budget`, or none."""
    moved = at_other_places(problem, entry)
    if not moved:
        return entry, 0
    try:
        ranked, spent = told_apart(runner, [entry, *moved], objective, budget, Role.MOVED, costs, MOVED_LOWER)
    except MechanismTimeout:
        return entry, 0  # it only refines
    return ranked[0], spent


def at_other_places(problem: Problem, entry: Entry) -> list[Entry]:
    """An interval of one entry of the outcomes, at every entry, on pairs that move all numbers as the first one moves.

    Of entries that come one after the other, as answers of the sparse vector technique do, a later one may be rarer and
    show more, and most where the numbers before it move one way and its own the other way: so there are pairs with
    numbers alike, and pairs whose sides are exchanged from the place on. None where the event is of another kind, and
    where inputs are not lists of as many numbers as there are places.
    """
    scale, cuts, (x, y) = scale_of(entry.found.event), entry.cuts, entry.pair.sides
    if scale is None or scale.coordinate is None or not isinstance(cuts, CutCells):
        return []
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.ndim == 1 and x.shape == y.shape):
        return []
    places = min(len(x), problem.mechanism.width)
    if places < 2 or scale.coordinate >= places:
        return []
    found = []
    for place in range(places):
        event = Interval(coordinate=place, low=scale.low, high=scale.high)
        own = scale_of(event)
        assert own is not None  # as the event that it was made of has one
        for turn in dict.fromkeys((len(x), place or len(x))):  # from which on the sides are exchanged
            exchanged = np.arange(len(x)) >= turn
            pair = Pair(np.where(exchanged, y[0], x[0]), np.where(exchanged, x[0], y[0]), entry.pair.label)
            if adjacent(problem.relation, pair, problem.data):
                own_cuts = replace(cuts, event=event, scale=own)
                found.append(Entry.uncounted(pair, event, entry.place, swapped=entry.found.swapped, cuts=own_cuts))
    return found


def _family(entry: Entry) -> tuple[object, str]:
    """What entries have in common whose events differ by a cut: one can be made of the other."""
    event = entry.found.event
    families = [str(family.above(1.0).to_json()) for family in thresholds_of(event)]
    return entry.found.directed(entry.pair).key, str(families or event.to_json())


def cheaper(
    problem: Problem, runner: Runner, best: Entry, objective: Objective, costs: Costs, budget: int
) -> tuple[Entry, int]:
    """The entry, or one of a pair with fewer records where that gives more evidence a second; and the runs spent.

    About half of `budget` paired runs, which take an eighth of the time for the confirm runs at most. Where runs on
    fewer records cost the same, nothing is run. Raises `MechanismRaised` where one of two neighbours alone does.
    """
    spent, found = 0, [best]
    pairs = list(cheaper_pairs(problem, best.pair, costs))
    if not pairs:
        return best, 0
    price = costs.of(best.pair)
    # Pairs that cost less get more runs of the same time: all of them together no more than those of the docstring.
    most = min(budget / 4 / min(price / costs.of(pairs[0]), MOST_MORE), costs.affordable / 16 / price)
    try:
        for number, pair in enumerate(pairs):
            n = max(int(most / len(pairs) * min(price / costs.of(pair), MOST_MORE)), 8)
            n = min(n, ROOM // (2 * max(runner.mechanism.cost.width, 1)))
            sample = sample_of(*runner.sample(pair, n, Role.CHEAPER, LEARNED_FROM, number))
            spent += n
            found += [Entry(pair, one) for one in _shown(runner, sample, costs.priced(objective, pair), 2)]
        ranked, more = ranked_entries(runner, found, objective, int(most), Role.CHEAPER, costs)
        spent += more
        # Few runs of the pair that there was were made here: what it promised before gives way to a promise only.
        if ranked[0].found.value > 0 or best.found.value <= 0:
            best = ranked[0]
    except MechanismRaised as error:  # so few records are refused: the pair stays as it was
        runner.leave_out(error)
    except (InvalidOutcome, MechanismTimeout):
        pass
    return best, spent


def cheaper_candidate(
    problem: Problem, runner: Runner, candidate: Candidate, objective: Objective, costs: Costs, budget: int
) -> tuple[Candidate, int]:
    """As `cheaper`, of a candidate."""
    assert candidate.estimate is not None  # of earlier runs
    found = RatedEvent(event=candidate.event, swapped=False, estimate=candidate.estimate, value=0.0)
    before = Entry(candidate.pair, found)
    best, spent = cheaper(problem, runner, before, objective, costs, budget)
    if best is before or best.pair is candidate.pair:
        return candidate, spent
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
) -> list[Entry]:
    """The events that the outcomes of promising pairs show, at most so many of each; each pair on a thread.

    `costs`: as in `search`; `cut`: of intervals of one scale there is one, with all of the others.
    """
    objectives = [objective if costs is None else costs.priced(objective, one.pair) for one in promising]
    tasks = [partial(compared, one.sample, own) for one, own in zip(promising, objectives, strict=True)]
    results = [rated or [] for rated in replace(runner, deadline=None).each(tasks)]
    entries = []
    for place, (one, rated) in enumerate(zip(promising, results, strict=True)):
        runner.tried.events += len(rated)
        scales: set[tuple[bool, Hashable]] = set()
        for found in chosen(rated, most) if rated else ():
            cuts = cuts_around(found.event, one.sample) if cut else None
            if cuts is not None:
                key = found.swapped, cuts.key
                if key in scales:
                    continue
                scales.add(key)
            entries.append(Entry(one.pair, found, place, cuts, one.sample.training_runs if one.sample.repeats else 0))
    return entries


def proposed(problem: Problem, planned: int) -> list[Candidate]:
    """What the attack that the user names proposes, else the target's own, which says nothing of other relations."""
    if problem.attack is not None:
        return problem.proposals(problem.attack, planned)
    own = target_of(plain_function(problem.function))
    if own is None or own.attack is None or not problem.own_relation:
        return []
    attack = attack_named(own.attack)
    relation, whole = problem.relation, problem.relation
    if len(alternatives(own.neighbours)) > 1:  # each is checked by itself: what is of another one is left out
        whole = own.neighbours
    found = []
    for candidate in attack(dict(problem.mechanism.signature.parameters), problem.data, problem.claim, planned):
        # About given data other questions may be asked, too.
        if adjacent(relation, candidate.pair, problem.data) or adjacent(relation, candidate.pair, None):
            found.append(candidate)
        else:
            require_adjacent(whole, candidate.pair, what="the attack's candidate")
    return found


def _rank(entry: Entry) -> tuple[bool, bool, float]:
    """By what an entry promises three standard errors lower: the best of many is overestimated, most where rare.

    Where that is nothing, an event that some runs are in and some are not comes first.
    """
    found = entry.found
    return found.lower_value > 0, found.telling, found.lower_value


def _candidate(entry: Entry) -> Candidate:
    return Candidate(pair=entry.found.directed(entry.pair), event=entry.found.event, estimate=entry.found.estimate)
