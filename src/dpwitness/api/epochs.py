"""A check that bets from the first run on, since its runs are expensive: epochs on many pairs, then one candidate.

`search.epochs` has the portfolios of each pair; this file shares the wealth among pairs, hands out epochs, and ends
with a verdict.
"""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Final

import numpy as np

from dpwitness.api.floating_point import LEAST_BITS_RUNS, leak_of_bits, unless_proved, with_leak
from dpwitness.api.loop import Confirmation, EvidenceCourse, confirm_events
from dpwitness.api.verdict import CandidateEvidence, until_settled, verdict_of
from dpwitness.candidate import Candidate, Estimate
from dpwitness.claims import Claim
from dpwitness.claims.renyi import bounds_divergences
from dpwitness.errors import ClusterLost, InvalidNeighbours, MechanismRaised, MechanismTimeout
from dpwitness.events import Event, Interval
from dpwitness.evidence import MOST_RUNS, bet_on, runs_to_detect
from dpwitness.evidence.portfolio import Wealth
from dpwitness.health import before_search
from dpwitness.health.dependence import Series, Shards, series_of
from dpwitness.mechanisms.mechanism import Cost
from dpwitness.neighbours import Pair
from dpwitness.problem import Effort, Problem
from dpwitness.results.verdict import Verdict, Violation
from dpwitness.runs import Runner
from dpwitness.search.cells import Aim, better_by_rows
from dpwitness.search.costs import Costs, affordable_runs
from dpwitness.search.epochs import EPOCH_DIVISOR, PairWealth, next_pair
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.pairs import (
    SCREENING_DIVISOR,
    SCREENING_RUNS,
    Search,
    SearchedPair,
    different,
    made_in_time,
    proposed,
    refuse_constant,
)
from dpwitness.search.sensitivity import LEADING_PAIRS, by_sensitivity, measurable

#: The seconds of a run above which every run is evidence: 600,000 paired search runs would take more than a minute.
EXPENSIVE_RUN_SECONDS: Final = 50e-6
#: The largest number of pairs of a check in epochs.
MOST_EPOCH_PAIRS: Final = 32
#: The largest number of pairs of a slow mechanism.
MOST_EPOCH_PAIRS_IF_SLOW: Final = 12
#: The largest number of pairs of a very slow mechanism.
MOST_EPOCH_PAIRS_IF_VERY_SLOW: Final = 4
#: The seconds of a run above which a mechanism is very slow.
VERY_SLOW_SECONDS: Final = 0.5
#: The least mean number of runs of a leading pair before the other pairs join: a mechanism of ε = 2.5 is refuted at
#: ε = 1 in about 200 runs.
LEADING_RUNS: Final = 96
#: The least mean number of epochs of a leading pair before the other pairs join: the first epoch bets nothing.
LEADING_EPOCHS: Final = 3
#: The divisor of a shard that gives the least runs of an epoch, 8 to 131 ms long: learning from them takes 20 ms.
SHARD_DIVISOR: Final = 2
#: The least number of epochs into which the runs that the user gives are divided.
LEAST_EPOCHS: Final = 256
#: The number of places of the wealth kept for variations of the best pair.
VARIATION_PLACES: Final = 4
#: The least number of runs of every pair before variations of the best pair are added.
RUNS_BEFORE_VARIATIONS: Final = 4
#: The number of places of the wealth kept for unusual pairs: a place costs the evidence at most 0.15 nats.
UNUSUAL_PLACES: Final = 1
#: The divisor of the runs that fit in the time: an eighth is for unusual pairs, if the other pairs have won nothing.
UNUSUAL_DIVISOR: Final = 8
#: The share of `max_time` that the bets on unusual pairs leave to later bets.
SHARE_AFTER_UNUSUAL_PAIRS: Final = 0.42
#: The log wealth, in nats, above which the bets of the epochs go on without unusual pairs.
WINNING_NATS: Final = 1.0
#: The divisor, for the search runs, of the runs that would detect `effort.detectable_ratio` times the parameter.
SEARCH_DIVISOR: Final = 4
#: The least number of runs, all of one outcome, that show a constant mechanism: 1,000 runs miss an outcome of
#: probability 1 % with probability 4·10⁻⁵.
CONSTANT_RUNS: Final = 1_000
#: The share of the time that is left after the test of last bits, which takes a few per cent.
SHARE_AFTER_BITS_TEST: Final = 0.36


def in_epochs(cost: Cost, effort: Effort) -> bool:
    """Whether a check bets from the first run on: the user asks for no search runs, or runs are expensive."""
    if effort.search_runs is not None:
        return effort.search_runs == 0
    return not cost.cheap_in_bulk and cost.seconds_per_run > EXPENSIVE_RUN_SECONDS


def enough_search(claim: Claim, effort: Effort) -> int:
    """The number of search runs that suffice for `effort.detectable_ratio`; `MOST_RUNS` if no ratio above 1 is set."""
    ratio = effort.detectable_ratio
    if ratio is None or ratio * claim.parameter <= claim.parameter:
        return MOST_RUNS
    return -(-runs_to_detect(claim, ratio * claim.parameter, alpha=effort.level) // SEARCH_DIVISOR)


def check_in_epochs(problem: Problem, runner: Runner, effort: Effort, notes: tuple[str, ...]) -> Verdict:
    """Bet from the first run on, and learn the bets of each epoch from all runs before it.

    The portfolios of `search.epochs` are renewed before every epoch, for half of the runs or of the time, or until
    every pair had `enough_search` runs. If nothing was won by then, unusual pairs are screened. Then the best candidate
    is fixed, and the other half of the runs gives the parameter that a test of its event alone would have detected. All
    bets together are one e-value.
    """
    epochs = epochs_of(problem, runner, effort, notes)
    leak = None
    try:
        epochs.bet(max(effort.runs // 2, 1))
        if epochs.ended == "runs" and epochs.candidate is None:  # too few runs of each pair to choose a candidate
            epochs.bet(effort.runs)
        if epochs.ended == "runs":
            epochs.bet_on_unusual()
        if epochs.ended == "runs":
            leak = epochs.leak_of_bits()
    except KeyboardInterrupt:
        if not epochs.runs:
            raise
        epochs.ended = "interrupted"
    except ClusterLost as error:
        if not epochs.runs:
            raise
        epochs.ended, epochs.lost = "cluster lost", error
    if not epochs.runs:
        raise MechanismTimeout(
            f"{problem.mechanism.name} did not finish its first runs in time: give a larger max_time"
        )
    refuse_constant(problem.mechanism, epochs.courses, late=epochs.runs < CONSTANT_RUNS)
    candidate = epochs.candidate
    if candidate is None and epochs.late and epochs.ended == "runs":
        epochs.ended = "time"  # no pair has two runs
    if epochs.ended != "runs" or candidate is None:
        return with_leak(epochs.end(candidate), leak, effort)
    return with_leak(unless_proved(lambda: epochs.bet_all_on(candidate), leak, effort), leak, effort)


def epochs_of(problem: Problem, runner: Runner, effort: Effort, notes: tuple[str, ...]) -> "Epochs":
    """The epochs before their first run, with places for the relation's first pairs, variations and an unusual pair."""
    cost = problem.mechanism.cost
    most = MOST_EPOCH_PAIRS
    if cost.slow:
        most = MOST_EPOCH_PAIRS_IF_VERY_SLOW if cost.seconds_per_run > VERY_SLOW_SECONDS else MOST_EPOCH_PAIRS_IF_SLOW
    attacked = proposed(problem, effort.runs)
    events: dict[frozenset[Hashable], list[Event]] = {}
    for candidate in attacked:
        events.setdefault(candidate.pair.key, []).append(candidate.event)
    first = [found.pair for found in attacked]
    made = chain(first, made_in_time(problem.candidates(), runner.searching()))
    searched = not cost.slow and effort.search_runs is None  # whether runs may be made that are no evidence
    leading = 0
    if searched and not attacked and measurable(problem.mechanism):
        every = different(chain(made, problem.unusual()))
        ordered = by_sensitivity(every, runner.searching(), most, LEADING_PAIRS)
        pairs, leading = ordered.pairs, ordered.leading
    else:
        pairs = list(islice(different(made), most))
    if not pairs:
        raise InvalidNeighbours("the relation proposes no pair of inputs")
    # The epochs of slow mechanisms time each run, so that no run is made for timing alone.
    costs = Costs(runner.searching(), affordable_runs(problem, runner), timing=not cost.slow)
    costs.of(problem.first)  # makes the cost of the relation's first pair the unit of costs
    courses = [
        PairWealth(pair=pair, index=k, proposals=tuple(events.get(pair.key, ())), cost=costs.of(pair))
        for k, pair in enumerate(pairs)
    ]
    kept = UNUSUAL_PLACES if searched and next(problem.unusual(), None) is not None else 0
    places = len(pairs) + (VARIATION_PLACES if len(pairs) > 1 else 0) + kept
    later = courses[leading:] if leading else []
    courses = courses[: len(courses) - len(later)]
    return Epochs(problem, runner, effort, notes, costs, courses, places, kept, later, numbered=len(pairs))


@dataclass(slots=True)
class Epochs:
    """The pairs of a check in epochs, the wealth on each, and why the epochs ended."""

    problem: Problem
    runner: Runner
    effort: Effort
    notes: tuple[str, ...]
    costs: Costs
    courses: list[PairWealth]
    places: int  # equal shares of the wealth, each for one pair or unused
    kept: int = 0  # places for unusual pairs
    later: list[PairWealth] = field(default_factory=list)  # the other pairs, which join unless the leading pairs win
    runs: int = 0
    searched: int = 0  # paired runs that are no evidence
    varied: bool = False
    numbered: int = 0  # pairs numbered so far; the number of a pair that was left out is not used again
    ended: str = "runs"
    lost: ClusterLost | None = None
    late: bool = False  # whether an epoch ended with fewer runs than it should have
    course: EvidenceCourse = field(default_factory=EvidenceCourse)

    @property
    def wealth(self) -> Wealth:
        """The wealth so far."""
        accounts = tuple(tuple(epochs) for course in self.courses for epochs in course.epochs)
        return Wealth(accounts=accounts, unused=2 * (self.places - len(self.courses)))

    @property
    def best(self) -> PairWealth:
        """The pair with the strongest evidence against the claim."""
        return max(self.courses, key=lambda course: (max(course.wealth, course.promise), course.runs))

    @property
    def candidate(self) -> Candidate | None:
        """The candidate for the remaining runs, of the best pair; if its outcomes are all equal, of another pair."""
        best = self.best
        candidate = best.candidate(self.problem.claim, self._planned(best.cost))
        if candidate is not None and best.tells(candidate.event):
            return candidate
        return next(filter(None, (course.ordinary() for course in self.courses)), candidate)

    def _planned(self, cost: float) -> int:
        """The number of remaining runs that fit in the time at the cost of a run."""
        return int(max(min(self.effort.runs - self.runs, self.costs.affordable / cost), 1))

    def _course_of(self, candidate: Candidate) -> PairWealth:
        return next(course for course in self.courses if course.pair.key == candidate.pair.key)

    @property
    def series(self) -> tuple[Series, ...]:
        """The outcomes of all runs in the order of time."""
        return series_of((course.pair, course.x, course.y, course.turns) for course in self.courses)

    def bet(self, most: int, left: float = 0.5) -> None:
        """Bet until the claim is refuted, `most` runs are made in all, or the share `left` of the time is left.

        Without evidence against the claim, betting also ends once all pairs have `enough_search` runs.
        """
        claim, threshold = self.problem.claim, math.log(1 / self.effort.level)
        enough = enough_search(claim, self.effort)
        runner, least = self.runner.betting(left), self._least_of_epoch
        while self.runs < most:
            if self.later and self._leading_ended:
                self._join()
            course = next_pair(self.courses)
            n = min(max(course.runs // EPOCH_DIVISOR, least), most - self.runs)
            try:
                made = course.advance(runner, claim, n, self.problem.mechanism.label)
            except MechanismRaised as error:
                self._leave_out(course, error)
                continue
            self.runs += made
            log_wealth = self._log_wealth()
            self.course.add(self.runs, log_wealth)
            runner.report("search", self.runs, most, f"log e-value {log_wealth:.1f} of {threshold:.1f}")
            if log_wealth >= threshold:
                self.ended = "refuted"
                return
            if made < n:
                self.late = True
                if runner.deadline is not None and not runner.deadline.left:
                    self.ended = "time"  # a run was cut off, and later bets would depend on its slowness
            if made < n or course.full:
                return
            if log_wealth <= 0 and not self.later and min(course.runs for course in self.courses) >= enough:
                return
            if not self.varied and min(course.runs for course in self.courses) >= RUNS_BEFORE_VARIATIONS:
                self.varied = True
                self._add(self.problem.variations(self.best.pair), min(VARIATION_PLACES, self._free - self.kept))

    @property
    def _least_of_epoch(self) -> int:
        """The least number of runs of an epoch: 2 for a slow mechanism, else runs that take as long as learning.

        The number is 1 where the user asks for no search runs, and so wants to save runs and not time.
        """
        cost = self.problem.mechanism.cost
        if cost.slow:
            return 2
        if self.effort.search_runs is not None:
            return 1
        return max(min(cost.shard // SHARD_DIVISOR, self.effort.runs // LEAST_EPOCHS), 1)

    @property
    def _free(self) -> int:
        """The number of places without a pair."""
        return self.places - len(self.courses) - len(self.later)

    @property
    def _leading_ended(self) -> bool:
        """Whether leading pairs had `LEADING_RUNS` and `LEADING_EPOCHS` on average, and have not won `WINNING_NATS`."""
        epochs = sum(len(course.epochs[0]) for course in self.courses)
        done = min(self.runs / LEADING_RUNS, epochs / LEADING_EPOCHS) >= len(self.courses)
        return done and self._log_wealth() <= WINNING_NATS

    def _join(self) -> None:
        """Let the later pairs compete for runs."""
        self.courses, self.later = [*self.courses, *self.later], []

    def _add(self, pairs: Iterable[Pair], most: int) -> None:
        """Give places to the first pairs that have no place, to at most `most` pairs."""
        for pair in islice(different(pairs, (course.pair for course in self.courses)), max(most, 0)):
            self.courses.append(PairWealth(pair=pair, index=self.numbered, cost=self.costs.of(pair)))
            self.numbered += 1

    def bet_on_unusual(self) -> None:
        """Bet on the unusual pairs that look best in a few runs, which are no evidence, if betting has won nothing."""
        if not self.kept or self._log_wealth() > WINNING_NATS:
            return
        self._join()
        most = int(min(self.effort.runs, self.costs.affordable)) // UNUSUAL_DIVISOR
        objective = GrowthAt(claim=self.problem.claim, log_threshold=math.log(1 / self.effort.level))
        runner = self.runner.searching(SHARE_AFTER_UNUSUAL_PAIRS)
        known = (course.pair for course in self.courses)
        pairs = list(different(made_in_time(self.problem.unusual(), runner), known))
        state = Search(runner=runner, objective=objective, budget=most)
        searched = [SearchedPair(pair, k) for k, pair in enumerate(pairs)]
        best = state.screened(searched, most // SCREENING_DIVISOR, SCREENING_RUNS)
        self.searched += state.spent
        before = len(self.courses)
        self._add((one.pair for one in best if one.value > 0), self._free)
        self.runner.tried.pairs -= len(self.courses) - before  # `_verdict` counts all pairs that are bet on
        self.bet(self.runs + most, SHARE_AFTER_UNUSUAL_PAIRS)

    def _leave_out(self, course: PairWealth, error: MechanismRaised) -> None:
        """Leave out a pair that cannot be run and had no bet; the pair's place is then unused, with wealth 1.

        Raises `error` if the pair had a bet, and if no other pair is left.
        """
        self._join()
        if course.runs or len(self.courses) == 1:
            raise error
        self.runner.leave_out(error)
        self.courses = [other for other in self.courses if other is not course]

    def leak_of_bits(self) -> Violation | None:
        """The violation by the last bits of the outcomes so far, proved on fresh runs; None without a violation."""
        seen = ((c.pair, c.x, c.y) for c in self.courses if c.runs >= LEAST_BITS_RUNS)
        runner, cost = self.runner.searching(SHARE_AFTER_BITS_TEST), min(course.cost for course in self.courses)
        return leak_of_bits(self.problem, runner, self.effort, seen, self._planned(cost))

    def bet_all_on(self, candidate: Candidate) -> Verdict:
        """Bet all of the wealth on one candidate, in the remaining runs and time."""
        claim, wealth, runs = self.problem.claim, self.wealth, max(self.effort.runs - self.runs, 1)
        fixed = self._on_cells(candidate, runs)
        before = wealth.log_e_value(claim)
        look = until_settled(self.problem, fixed.estimate, self.effort, self.course, (self.runs, before))
        try:
            done = confirm_events(self.runner, fixed.pair, (fixed.event,), runs, coupled=fixed.coupled, look=look)
        except MechanismTimeout:  # no further run was done in time, so the earlier bets are the evidence
            self.ended = "time"
            return self.end(candidate)
        done.shards.series, done.shards.chosen = self.series, self._course_of(fixed).later_counts(fixed)
        wealth = replace(wealth, last=bet_on(done.totals[0], claim, fixed.estimate))
        return self._verdict(fixed, done, wealth, self.runs + done.totals[0].runs)

    def end(self, candidate: Candidate | None) -> Verdict:
        """The verdict without further runs: the claim is refuted, or the check was interrupted."""
        if candidate is None:  # no event was chosen: take the event that the first entry is present
            even = Estimate(p=0.5, q=0.5, both=0.5)
            candidate = Candidate(pair=self.best.pair, event=Interval(coordinate=0), estimate=even)
        seen = self._course_of(candidate)
        counts = seen.counts(candidate)
        done = Confirmation(
            runner=self.runner, pair=candidate.pair, events=(candidate.event,), totals=(counts,),
            shards=Shards(series=self.series, chosen=seen.later_counts(candidate)), ended=self.ended, lost=self.lost,
        )  # fmt: skip
        done.shards.add(done.totals)
        return self._verdict(candidate, done, self.wealth, self.runs)

    def _on_cells(self, candidate: Candidate, runs: int) -> Candidate:
        """The candidate, or a bet on cells of the outcomes so far if the cells promise faster growth."""
        claim, threshold = self.problem.claim, math.log(1 / self.effort.level)
        if not bounds_divergences(claim):
            return candidate
        aim = Aim(claim=claim, planned=runs, log_threshold=threshold, of_bound=False)
        objective = GrowthAt(claim=claim, planned=runs, log_threshold=threshold)
        return better_by_rows(*self._course_of(candidate).outcomes_of(candidate), candidate, aim, objective)

    def _verdict(self, candidate: Candidate, done: Confirmation, wealth: Wealth, made: int) -> Verdict:
        """The verdict by the evidence of all bets."""
        mechanism = self.problem.mechanism
        slow_notes: tuple[str, ...] = ()
        if mechanism.cost.slow:  # other mechanisms were tested for this before the search
            slow_notes = before_search.ignored_throughout(mechanism, ((c.x, c.y) for c in self.courses))
            sides = ((data, rows) for c in self.courses for data, rows in zip(c.pair.sides, (c.x, c.y), strict=True))
            slow_notes += before_search.same_throughout(sides)
        tried = self.runner.tried
        tried.pairs += sum(course.runs > 0 for course in self.courses)
        tried.events += sum(course.compared for course in self.courses)
        evidence = CandidateEvidence(
            candidate=candidate,
            confirmation=done,
            bet=wealth,
            course=self.course,
            outcomes=self._course_of(candidate).outcomes_of(candidate),
            runs_made=made,
            search_runs=self.searched,
            epoch_runs=self.runs,
            pass_notes=slow_notes,
        )
        return verdict_of(self.problem, self.effort, evidence, self.notes)

    def _log_wealth(self) -> float:
        """The logarithm of the mean wealth of all places; an unused place has wealth 1."""
        logs = [course.wealth for course in self.courses] + [0.0] * (self.places - len(self.courses))
        return float(np.logaddexp.reduce(logs)) - math.log(self.places)
