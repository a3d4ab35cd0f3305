"""A check in which no run is thrown away: it bets from the first run on, and learns from each run what to bet next.

For mechanisms whose runs are dear, and where `search_runs=0` asks for it. For half of the runs, or of the time, the
portfolios of `search.courses` are renewed before every epoch; then the best candidate is fixed, and the other half says
what a test of that event alone would have caught. The wealth goes on throughout: all of it is one e-value.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final

import numpy as np

from dpwitness.api.loop import Confirmed, confirmed
from dpwitness.api.verdicts import Tested, until_refuted, verdict_of
from dpwitness.candidate import Candidate
from dpwitness.claims import Claim
from dpwitness.claims.hyperplane import bounds_divergences
from dpwitness.effort import Effort
from dpwitness.errors import ClusterLost, InvalidNeighbours, MechanismRaised, MechanismTimeout
from dpwitness.events import Interval
from dpwitness.candidate import Estimate
from dpwitness.evidence import detectable_parameter, runs_needed
from dpwitness.evidence.portfolio import Wealth, lower_bound_of
from dpwitness.health import before_search
from dpwitness.health.dependence import Series, Shards, series_of
from dpwitness.mechanisms.cost import Cost
from dpwitness.neighbours import Pair
from dpwitness.problem import Problem
from dpwitness.results.verdict import Verdict
from dpwitness.runs import Runner
from dpwitness.search.cells import Aim, better_by_rows
from dpwitness.search.courses import Course, next_course, runs_of_next_epoch
from dpwitness.search.halving import refuse_constant
from dpwitness.search.objectives import GrowthAt

#: Seconds a run from which on no run is thrown away: from here on 10⁵ search runs would take minutes.
DEAR: Final = 50e-6
#: Pairs at most, of which runs are made; of slow mechanisms, and of those that take most of a second.
PAIRS: Final = 32
PAIRS_IF_SLOW: Final = 12
PAIRS_IF_VERY_SLOW: Final = 4
VERY_SLOW: Final = 0.5
#: Of these, how many are variations of the pair that does best, tried once all others have had so many runs.
VARIATIONS: Final = 4
FIRST: Final = 4
#: Runs that are all the same by more than chance: what happens in 1 % of them is missed by 300 in one check of twenty.
MANY: Final = 1_000


def in_epochs(cost: Cost, effort: Effort) -> bool:
    """Whether a check bets from the first run on: where the user asks for no search runs, or runs are dear."""
    if effort.search_runs is not None:
        return effort.search_runs == 0
    return not cost.in_numbers and cost.seconds_per_run > DEAR


@dataclass(slots=True)
class _Epochs:
    """The courses of a check, and why they ended."""

    problem: Problem
    runner: Runner
    effort: Effort
    courses: list[Course]
    places: int  # pairs that have a share of the wealth, used or not
    runs: int = 0
    ended: str = "runs"
    lost: ClusterLost | None = None
    late: bool = False  # whether an epoch ended with fewer runs than it should have

    @property
    def wealth(self) -> Wealth:
        """What became of the wealth so far."""
        courses = tuple(tuple(epochs) for course in self.courses for epochs in course.epochs)
        return Wealth(courses=courses, unused=2 * (self.places - len(self.courses)))

    @property
    def best(self) -> Course:
        """The course whose pair speaks most against the claim."""
        return max(self.courses, key=lambda course: (max(course.wealth, course.promise), course.runs))

    @property
    def candidate(self) -> Candidate | None:
        """What to test in the runs that are left; of the best pair, unless its runs were all the same."""
        best = self.best
        found = best.candidate(self.problem.claim, max(self.effort.max_runs - self.runs, 1))
        if found is not None and best.tells(found.event):
            return found
        return next(filter(None, (course.ordinary() for course in self.courses)), found)

    def course_of(self, candidate: Candidate) -> Course:
        """The course of a candidate's pair."""
        return next(course for course in self.courses if course.pair.key == candidate.pair.key)

    @property
    def series(self) -> tuple[Series, ...]:
        """All runs in the order of time."""
        return series_of((course.pair, course.x, course.y, course.turns) for course in self.courses)

    def bet(self, most: int) -> None:
        """Go on until the claim is refuted, so many runs were made in all, or half of the time is over."""
        claim, threshold, varied = self.problem.claim, math.log(1 / self.effort.alpha), False
        slow = self.runner.mechanism.cost.slow
        while self.runs < most:
            course = next_course(self.courses)
            n = min(runs_of_next_epoch(course, 2 if slow else 1), most - self.runs)
            try:
                made = course.advance(self.runner, claim, n, self.problem.mechanism.label)
            except MechanismRaised as error:
                self._leave_out(course, error)
                continue
            self.runs += made
            log_wealth = self._log_wealth()
            self.runner.report("search", self.runs, most, f"log e-value {log_wealth:.1f} of {threshold:.1f}")
            if log_wealth >= threshold:
                self.ended = "refuted"
                return
            self.late |= made < n
            if made < n or course.full:
                return
            if not varied and min(course.runs for course in self.courses) >= FIRST:
                varied = True
                room = min(self.places - len(self.courses), VARIATIONS)
                pairs = islice(_different(self.problem.variations(self.best.pair), self.courses), room)
                first = self.places - VARIATIONS  # no index comes twice, of courses that were left out neither
                self.courses += [Course(pair=pair, index=first + k) for k, pair in enumerate(pairs)]

    def _leave_out(self, course: Course, error: MechanismRaised) -> None:
        """Go on without a pair that cannot be run, of which nothing was bet: its place keeps its wealth.

        Raises the error where something was, and where no pair is left.
        """
        if course.runs or len(self.courses) == 1:
            raise error
        self.runner.leave_out(error)
        self.courses = [other for other in self.courses if other is not course]

    def tested(self, candidate: Candidate, done: Confirmed, shards: Shards, wealth: Wealth) -> Tested:
        """What was tested in the end, with the evidence of all bets."""
        claim, alpha, mechanism = self.problem.claim, self.effort.alpha, self.problem.mechanism
        ignored: tuple[str, ...] = ()
        if mechanism.cost.slow:  # of others it is known before the search
            ignored = before_search.ignored_throughout(mechanism, ((c.x, c.y) for c in self.courses))
        return Tested(
            candidate=candidate,
            done=done,
            shards=shards,
            log_e_value=wealth.log_e_value(claim),
            lower_bound=partial(lower_bound_of, wealth, claim, alpha=alpha),
            detectable=partial(_detectable, wealth, claim, alpha),
            epoch_runs=self.runs,
            pass_notes=ignored,
        )

    def _log_wealth(self) -> float:
        """The logarithm of the mean wealth of all places; those that are not used keep theirs."""
        logs = [course.wealth for course in self.courses] + [0.0] * (self.places - len(self.courses))
        return float(np.logaddexp.reduce(logs)) - math.log(self.places)


def check_in_epochs(problem: Problem, runner: Runner, effort: Effort, notes: tuple[str, ...]) -> Verdict:
    """Bet from the first run on; see the module. Raises as `check_problem`."""
    epochs = _begun(problem, runner, effort)
    runner.expect(2 * runs_needed(problem.claim, effort.alpha) * problem.mechanism.cost.seconds_per_run)
    try:
        epochs.runner = runner.searching()
        epochs.bet(max(effort.max_runs // 2, 1))
        if epochs.ended == "runs" and epochs.candidate is None:  # too few on each pair to choose by: nothing to test
            epochs.bet(effort.max_runs)
    except KeyboardInterrupt:
        epochs.ended = "interrupted"
    except ClusterLost as error:
        if not epochs.runs:
            raise
        epochs.ended, epochs.lost = "cluster lost", error
    if not epochs.runs:
        raise MechanismTimeout(f"{problem.mechanism.name} did not finish its first runs in time: give more time")
    refuse_constant(problem.mechanism, epochs.courses, late=epochs.runs < MANY)
    candidate = epochs.candidate
    if candidate is None and epochs.late and epochs.ended == "runs":
        epochs.ended = "time"  # not two runs of any pair
    if epochs.ended != "runs" or candidate is None:
        return _ended(problem, runner, effort, epochs, candidate, notes)
    return _confirmed(problem, runner, effort, epochs, candidate, notes)


def _begun(problem: Problem, runner: Runner, effort: Effort) -> _Epochs:
    """A course for each of the relation's first pairs, and room for variations of the best where there are several."""
    cost = problem.mechanism.cost
    most = PAIRS
    if cost.slow:
        most = PAIRS_IF_VERY_SLOW if cost.seconds_per_run > VERY_SLOW else PAIRS_IF_SLOW
    pairs = list(islice(_different(problem.candidates()), most))
    if not pairs:
        raise InvalidNeighbours("the relation proposes no pair of inputs")
    courses = [Course(pair=pair, index=k) for k, pair in enumerate(pairs)]
    return _Epochs(problem, runner, effort, courses, len(pairs) + (VARIATIONS if len(pairs) > 1 else 0))


def _different(pairs: Iterable[Pair], courses: Sequence[Course] = ()) -> Iterator[Pair]:
    """The pairs, each once and none that a course has: events are tried in both directions anyway."""
    seen = {course.pair.key for course in courses}
    for pair in pairs:
        if (key := pair.key) not in seen:
            seen.add(key)
            yield pair


def _ended(
    problem: Problem,
    runner: Runner,
    effort: Effort,
    epochs: _Epochs,
    candidate: Candidate | None,
    notes: tuple[str, ...],
) -> Verdict:
    """The verdict where the epochs were all there was: the claim is refuted, or somebody interrupted."""
    candidate = candidate or _anything(epochs.best)
    done = Confirmed(totals=(epochs.course_of(candidate).counts(candidate),), ended=epochs.ended, lost=epochs.lost)
    shards = Shards(series=epochs.series)
    shards.add(done.totals)
    tested = replace(epochs.tested(candidate, done, shards, epochs.wealth), of_epochs=True)
    return verdict_of(problem, runner, effort, tested, notes)


def _confirmed(
    problem: Problem, runner: Runner, effort: Effort, epochs: _Epochs, candidate: Candidate, notes: tuple[str, ...]
) -> Verdict:
    """Bet all of the wealth on one candidate, in the runs and the time that are left."""
    wealth, runs = epochs.wealth, max(effort.max_runs - epochs.runs, 1)
    tested = _on_cells(problem.claim, effort, epochs.course_of(candidate), candidate, runs)
    look = until_refuted(problem.claim, tested.estimate, effort.alpha, before=wealth.log_e_value(problem.claim))
    try:
        done, shards = confirmed(runner, tested.pair, (tested.event,), runs, look=look)
    except MechanismTimeout:  # not one run more: what was bet until then is the evidence
        epochs.ended = "time"
        return _ended(problem, runner, effort, epochs, candidate, notes)
    shards.series = epochs.series
    wealth = replace(wealth, last=done.totals[0], estimate=tested.estimate)
    return verdict_of(problem, runner, effort, epochs.tested(tested, done, shards, wealth), notes)


def _on_cells(claim: Claim, effort: Effort, course: Course, candidate: Candidate, runs: int) -> Candidate:
    """The candidate, or cells of the outcomes so far where they promise more."""
    if not bounds_divergences(claim):
        return candidate
    threshold = math.log(1 / effort.alpha)
    aim = Aim(claim=claim, planned=runs, log_threshold=threshold, of_bound=False)
    objective = GrowthAt(claim=claim, planned=runs, log_threshold=threshold)
    return better_by_rows(*course.outcomes_of(candidate), candidate, aim, objective)


def _detectable(wealth: Wealth, claim: Claim, alpha: float) -> float:
    """What the last event would have detected; infinite where no event was tested in the end."""
    if wealth.last is None or wealth.estimate is None:
        return math.inf
    before = replace(wealth, last=None).log_e_value(claim)
    left = min(math.exp(min(math.log(alpha) + before, 0.0)), 0.5)  # the level that the wealth leaves to this event
    return detectable_parameter(wealth.last, claim, alpha=left, estimate=wealth.estimate)


def _anything(course: Course) -> Candidate:
    """An event for a verdict where none promised anything: that there is a first value."""
    return Candidate(pair=course.pair, event=Interval(coordinate=0), estimate=Estimate(p=0.5, q=0.5, both=0.5))
