"""Look for a witness against a claim, and prove it: all steps of one check.

    Statement + Effort → Problem + Runner → search → Candidate → fresh runs → Counts → Verdict

The file goes from the public function over a check for each adjacency, where the relation leaves it open, and the check
of one relation, which searches and then confirms, or bets in epochs where runs are expensive, to the verdict.
"""

import math
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any, Final

import numpy as np
from typing_extensions import Unpack

from dpwitness.api.door import public
from dpwitness.api.floating_point import LEAST_RUNS, drawn_for_bits, leak_of_bits, unless_proved, with_leak
from dpwitness.api.loop import (
    Confirmation,
    EvidenceCourse,
    Totals,
    bound_so_far,
    confirm_events,
    result_fields,
    uninterrupted,
    witness_of,
    work_on,
)
from dpwitness.api.outputs import drawn_outputs, outputs_of
from dpwitness.candidate import Candidate, Estimate
from dpwitness.checks import on_one_line
from dpwitness.claims import Claim
from dpwitness.claims.renyi import bounds_divergences
from dpwitness.errors import (
    BudgetTooSmall,
    ClusterLost,
    DependentRuns,
    InvalidNeighbours,
    MechanismRaised,
    MechanismTimeout,
    RunsEnded,
)
from dpwitness.events import Event, Interval
from dpwitness.evidence import (
    MOST_RUNS,
    Counts,
    EProcess,
    bet_on,
    detectable_parameter,
    growth_rate,
    log_e_value,
    lower_bound,
    runs_needed,
    runs_to_detect,
    why_enough,
)
from dpwitness.evidence.portfolio import Wealth, level_left
from dpwitness.health import before_search, findings
from dpwitness.health.dependence import Series, Shards, series_of
from dpwitness.health.explanation import explained
from dpwitness.machine import Deadline
from dpwitness.mechanisms.mechanism import Cost, Rows
from dpwitness.mechanisms.resolve import example_of
from dpwitness.neighbours import Pair, Relation, adjacent, alternatives, proposed_pairs
from dpwitness.options import CHECK_RUNS, AnyMechanism, CheckOptions
from dpwitness.problem import Effort, Problem, Statement
from dpwitness.results.verdict import ABORTED_ENDS, Course, NotRefuted, Verdict, Violation
from dpwitness.runs import Runner, Tried
from dpwitness.search.cells import Aim, better, better_by_rows
from dpwitness.search.costs import Costs, affordable_runs
from dpwitness.search.epochs import PairWealth, next_pair, runs_of_next_epoch
from dpwitness.search.objectives import PROVED_IN, GrowthAt, value_of
from dpwitness.search.pairs import (
    SCREENING_PART,
    SCREENING_RUNS,
    Search,
    SearchedPair,
    best_candidate,
    different,
    made_in_time,
    proposed,
    refuse_constant,
    search_budget,
    usual_runs,
)

#: Seconds of a run above which every run is evidence: 10⁵ search runs would take minutes.
EXPENSIVE: Final = 50e-6
#: The most pairs of a check in epochs.
MOST_PAIRS: Final = 32
#: The most pairs of a slow mechanism.
MOST_PAIRS_IF_SLOW: Final = 12
#: The most pairs of a very slow mechanism.
MOST_PAIRS_IF_VERY_SLOW: Final = 4
#: Seconds of a run above which a mechanism is very slow.
VERY_SLOW: Final = 0.5
#: The part of a shard, 1 in 16, that an epoch has at least: runs that take about as long as choosing the next bet.
EPOCH_PART_OF_SHARD: Final = 16
#: Epochs of the runs that the user gives, at least.
LEAST_EPOCHS: Final = 256
#: Places of the wealth kept for variations of the best pair.
VARIATIONS: Final = 4
#: Runs of every other pair before variations of the best pair are added.
RUNS_BEFORE_VARIATIONS: Final = 4
#: Places of the wealth kept for unusual pairs: each takes .15 nats at most off all others.
UNUSUAL_PLACES: Final = 1
#: The part of the affordable runs, 1 in 8, that unusual pairs get where nothing was won.
UNUSUAL_PART: Final = 8
#: The share of the time that is left behind the bets on unusual pairs.
LEFT_BY_UNUSUAL: Final = 0.42
#: The share of the time that is left behind the look at last bits, which takes a few per cent.
LEFT_BY_BITS: Final = 0.36
#: Log wealth, in nats, above which the bets of the epochs go on without unusual pairs.
WON_NATS: Final = 1.0
#: Runs from which on it is asked whether a pass has enough runs.
FIRST_ASKED: Final = 64
#: Runs from which on that is asked where runs are nearly free: they take a tenth of a second.
FIRST_ASKED_IF_CHEAP: Final = 1 << 20
#: The growth of the runs after which that is asked again.
ASKING_GROWTH: Final = 1.1
#: The part of the runs of the detectable parameter asked for, 1 in 4, that the search gets.
SEARCH_PART: Final = 4
#: Runs with one outcome that show a constant mechanism: another outcome of 1 % is missed by 300 in one check of twenty.
CONSTANT_RUNS: Final = 1_000


@public
def check(mechanism: AnyMechanism = None, **options: Unpack[CheckOptions]) -> Verdict:
    """Look for a witness against a claim and prove it on fresh runs.

    Returns
    -------
        `Violation` with a witness if the claim is refuted; else `NotRefuted`, which says what would have been detected.
        If the relation leaves the adjacency open (`records(…, adjacency=None)`), each adjacency is checked at an equal
        share of alpha. The result is then a `Violation` if any is refuted, and `others` holds the other verdicts.

    Raises `BadInput` for arguments that cannot be used, and `MechanismError` if the mechanism misbehaves. One
    `MechanismError` is `DependentRuns`: the runs are not independent, so their counts are no evidence.
    """
    statement, effort = Statement.of(mechanism, options), Effort.of(options)
    require_budget(statement.stated.claim, effort)

    def work(problem: Problem, runner: Runner) -> Verdict:
        before_search.report_time_needed(problem, runner, effort.alpha)
        return check_problem(problem, runner, effort)

    return work_on(statement, effort, work)


def check_problem(problem: Problem, runner: Runner, effort: Effort, *, notes: tuple[str, ...] | None = None) -> Verdict:
    """Search, then confirm, once for each adjacency where the relation leaves it open.

    `notes`: the notes of health checks that are done; None does them here.
    """
    known = before_search.required(problem, runner) if notes is None else notes
    verdict = check_each_adjacency(problem, runner, effort, partial(_check_relation, notes=known))
    return _with_notes(verdict, *_own_delta(problem)) if isinstance(verdict, Violation) else verdict


Check = Callable[[Problem, Runner, Effort], Verdict]


def check_each_adjacency(problem: Problem, runner: Runner, effort: Effort, check: Check) -> Verdict:
    """The verdict of `check`; if the relation leaves the adjacency open, the main verdict of one check for each.

    Each check gets an even share of α, so that together they raise a false alarm with probability at most α, and an
    even share of the time. The main verdict is the violation with the largest e-value, else the pass that would have
    detected least; the other verdicts are its `others`. A later error or interruption does not lose a proved violation.
    `DependentRuns` does: it is about the same mechanism, so the counts are no evidence.
    """
    relations, left_out = _relations_of(problem)
    if not left_out and len(relations) < 2:
        return check(problem, runner, effort)
    notes = tuple(f"not checked: {str(left)[:200]}, of which the attack proposes no pair" for left in left_out)
    effort = replace(effort, alpha=effort.alpha / len(relations))
    require_budget(problem.claim, effort)
    verdicts: list[Verdict] = []
    for k, relation in enumerate(relations):
        share = _with_share(runner, len(relations) - k, first=k == 0)
        try:
            verdicts.append(check(replace(problem, relation=relation), share, effort))
        except KeyboardInterrupt:
            if not verdicts:
                raise
            verdicts[-1] = replace(verdicts[-1], ended="interrupted")
        except BaseException as error:  # of any other kind: what was proved is not lost to it
            violated = any(isinstance(verdict, Violation) for verdict in verdicts)
            if isinstance(error, DependentRuns | RunsEnded) or not violated:
                raise
            text = on_one_line(error)
            verdicts[-1] = _with_notes(verdicts[-1], f"under {relation!s:.200} the check failed: {text}")
            continue
        if verdicts[-1].ended in ABORTED_ENDS:
            left = [str(other)[:200] for other in relations[len(verdicts) :]]
            verdicts[-1] = _with_notes(verdicts[-1], f"not checked: {'; '.join(left)}") if left else verdicts[-1]
            break
    return _with_notes(_most_telling(verdicts), *notes)


def adjacency_note(problem: Problem, pair: Pair) -> tuple[str, ...]:
    """A note of the adjacency under which the pair is neighbouring, if the relation leaves it open."""
    each = alternatives(problem.relation)
    own = [str(one)[:200] for one in each if adjacent(one, pair, problem.data)] if len(each) > 1 else []
    if not own:
        return ()
    return (f"these inputs are neighbours under {' and '.join(own)}: the result is about that adjacency only",)


def _own_delta(problem: Problem) -> tuple[str, ...]:
    """A note where the mechanism has a δ and the claim of ε has none, which may be a mistake in the claim."""
    claim, delta = problem.claim, problem.mechanism.signature.parameters.get("delta")
    if claim.symbol != "ε" or claim.largest(0.0) or not isinstance(delta, float) or not 0 < delta < 1:
        return ()
    return (f"the mechanism ran with delta={delta:g}, the claim has δ = 0: state that δ too if it is claimed",)


def _relations_of(problem: Problem) -> tuple[list[Relation], list[Relation]]:
    """The relations, one for each adjacency, that have a pair; and those of which the user's attack proposes none.

    The second list is empty unless the attack proposes a pair of another adjacency.
    """
    all_of_them = alternatives(problem.relation)
    each = [relation for relation in all_of_them if next(proposed_pairs(relation, problem.data), None) is not None]
    if len(each) < 2 or problem.attack is None:
        return each, []
    tested: list[Relation] = []
    left_out: list[Relation] = []
    for relation in each:
        try:
            replace(problem, relation=relation).proposals(problem.attack, CHECK_RUNS)
        except InvalidNeighbours:
            left_out.append(relation)
        else:
            tested.append(relation)
    return (tested, left_out) if tested else (each, [])


def _with_share(runner: Runner, shares: int, *, first: bool) -> Runner:
    """The runner with an even share of the time that is left."""
    if runner.deadline is None:
        return runner
    now, share = time.monotonic(), runner.deadline.left / shares
    began = runner.began if first else now
    return replace(runner, began=began, deadline=Deadline(now + share), max_time=max(share, 1e-9))


def _with_notes(verdict: Verdict, *notes: str) -> Verdict:
    return replace(verdict, notes=(*verdict.notes, *notes))


def _most_telling(verdicts: list[Verdict]) -> Verdict:
    """The main verdict, with the others; it ended as an interrupted verdict did, if there is one."""
    chosen = max(
        verdicts, key=lambda one: (1, one.log_e_value) if isinstance(one, Violation) else (0, one.detectable_epsilon)
    )
    others = tuple(verdict for verdict in verdicts if verdict is not chosen)
    ended = next((verdict.ended for verdict in verdicts if verdict.ended in ABORTED_ENDS), chosen.ended)
    return replace(chosen, others=others, ended=ended)


def _check_relation(problem: Problem, runner: Runner, effort: Effort, notes: tuple[str, ...]) -> Verdict:
    """Search, then confirm, in one relation."""
    runner = replace(runner, tried=Tried())
    if in_epochs(problem.mechanism.cost, effort):
        return _check_in_epochs(problem, runner, effort, notes)
    claim, log_threshold = problem.claim, math.log(1 / effort.level)
    usual = min(usual_runs(claim), effort.runs)
    if not problem.mechanism.cost.cheap_in_bulk:
        usual = min(usual, _enough_search(claim, effort))
    budget = search_budget(problem, runner, effort.search_runs, usual)
    # A pair of the stop value is proved in 1/`PROVED_IN` of the search runs; no event grows faster than one that always
    # holds on D and never on D′.
    fastest = float(growth_rate(1.0, 0.0, claim.half_plane(1.0, 0.0)))
    objective = GrowthAt(
        claim=claim,
        planned=effort.runs,
        log_threshold=log_threshold,
        stop_value=min(PROVED_IN * log_threshold / budget, fastest / 2),
    )
    # A number of search runs that the user gives is kept.
    planned = budget if effort.search_runs is not None else effort.runs
    candidate, spent = best_candidate(problem, runner, objective, planned=planned, budget=budget)
    if bounds_divergences(claim):
        aim = Aim(claim=claim, planned=effort.runs, log_threshold=log_threshold, of_bound=False)
        candidate, more = better(runner.searching(), candidate, aim, objective, budget)
        spent += more

    def leak(runner: Runner) -> Violation | None:
        most = min(effort.runs, affordable_runs(problem, runner))
        return leak_of_bits(problem, runner, effort, drawn_for_bits(problem, runner), most)

    clear = _promises_most(candidate, objective, budget)
    found = None if clear else leak(runner.searching(LEFT_BY_BITS))
    verdict = unless_proved(
        lambda: confirm_candidate(problem, runner, effort, candidate, spent=spent, notes=notes), found, effort
    )
    if clear and not verdict.refuted and verdict.ended not in ABORTED_ENDS:  # it promised more than it kept
        try:
            found = leak(runner)
        except KeyboardInterrupt:  # the verdict is there
            verdict = replace(verdict, ended="interrupted")
        except ClusterLost:
            verdict = replace(verdict, ended="cluster lost")
    return with_leak(verdict, found, effort)


def _promises_most(candidate: Candidate, objective: GrowthAt, runs: int) -> bool:
    """Whether the search runs show a violation so clearly that the last bits need not be looked at before it."""
    assert candidate.estimate is not None  # of a search
    return value_of(candidate.estimate, objective, runs, 3.0) >= objective.stop_value


def confirm_candidate(
    problem: Problem,
    runner: Runner,
    effort: Effort,
    candidate: Candidate,
    *,
    spent: int = 0,
    notes: tuple[str, ...] = (),
) -> Verdict:
    """Fresh runs of a fixed candidate until the claim is refuted or the runs are over; `spent`: search runs.

    Raises `DependentRuns` where the claim would be refuted by runs that are not independent.
    """
    claim, estimate, course = problem.claim, candidate.estimate, EvidenceCourse()
    look = _until_settled(problem, estimate, effort, course)
    done = confirm_events(runner, candidate.pair, (candidate.event,), effort.runs, coupled=candidate.coupled, look=look)
    (counts,) = done.totals
    evidence = Evidence(
        candidate=candidate,
        confirmation=done,
        bet=bet_on(counts, claim, estimate),
        course=course,
        runs_made=counts.runs,
        search_runs=spent,
    )
    return _verdict_of(problem, effort, evidence, notes)


def in_epochs(cost: Cost, effort: Effort) -> bool:
    """Whether a check bets from the first run on: the user asks for no search runs, or runs are expensive."""
    if effort.search_runs is not None:
        return effort.search_runs == 0
    return not cost.cheap_in_bulk and cost.seconds_per_run > EXPENSIVE


def _enough_search(claim: Claim, effort: Effort) -> int:
    """Search runs that suffice for the detectable parameter that the user asks for; `MOST_RUNS` without one."""
    ratio = effort.detectable_ratio
    if ratio is None or ratio * claim.parameter <= claim.parameter:
        return MOST_RUNS
    return -(-runs_to_detect(claim, ratio, alpha=effort.level) // SEARCH_PART)


def _check_in_epochs(problem: Problem, runner: Runner, effort: Effort, notes: tuple[str, ...]) -> Verdict:
    """Bet from the first run on, and learn from each run the bets of the next: no run is thrown away.

    For half of the runs, or of the time, the portfolios of `search.epochs` are renewed before every epoch; or until
    every pair had its part of the runs that bring the detectable parameter to the one the user wants. Where nothing was
    won until then, unusual pairs are screened. Then the best candidate is fixed, and the other half of the runs gives
    the parameter that a test of its event alone would have detected. All bets together are one e-value.
    """
    epochs = _epochs_of(problem, runner, effort, notes)
    leak = None
    try:
        epochs.bet(max(effort.runs // 2, 1))
        if epochs.ended == "runs" and epochs.candidate is None:  # too few on each pair to choose by: nothing to test
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
        epochs.ended = "time"  # not two runs of any pair
    if epochs.ended != "runs" or candidate is None:
        return with_leak(epochs.end(candidate), leak, effort)
    return with_leak(unless_proved(lambda: epochs.bet_all_on(candidate), leak, effort), leak, effort)


def _epochs_of(problem: Problem, runner: Runner, effort: Effort, notes: tuple[str, ...]) -> "_Epochs":
    """A share of the wealth for each of the relation's first pairs, some for variations, one for an unusual pair."""
    cost = problem.mechanism.cost
    most = MOST_PAIRS
    if cost.slow:
        most = MOST_PAIRS_IF_VERY_SLOW if cost.seconds_per_run > VERY_SLOW else MOST_PAIRS_IF_SLOW
    attacked = proposed(problem, effort.runs)
    events: dict[frozenset[Hashable], list[Event]] = {}
    for candidate in attacked:
        events.setdefault(candidate.pair.key, []).append(candidate.event)
    made = made_in_time(problem.candidates(), runner.searching())
    pairs = list(islice(different(chain((found.pair for found in attacked), made)), most))
    if not pairs:
        raise InvalidNeighbours("the relation proposes no pair of inputs")
    # Of slow mechanisms what each run took is known from the epochs: none is made to be timed alone.
    costs = Costs(runner.searching(), affordable_runs(problem, runner), timing=not cost.slow)
    courses = [
        PairWealth(pair=pair, index=k, proposals=tuple(events.get(pair.key, ())), cost=costs.of(pair))
        for k, pair in enumerate(pairs)
    ]
    searched = not cost.slow and effort.search_runs is None  # with runs that are no evidence
    kept = UNUSUAL_PLACES if searched and next(problem.unusual(), None) is not None else 0
    places = len(pairs) + (VARIATIONS if len(pairs) > 1 else 0) + kept
    return _Epochs(problem, runner, effort, notes, costs, courses, places, kept, numbered=len(pairs))


@dataclass(slots=True)
class _Epochs:
    """The pairs of a check in epochs, the wealth on each, and why the epochs ended."""

    problem: Problem
    runner: Runner
    effort: Effort
    notes: tuple[str, ...]
    costs: Costs
    courses: list[PairWealth]
    places: int  # pairs that have a share of the wealth, used or not
    kept: int = 0  # of these, for unusual pairs
    runs: int = 0
    searched: int = 0  # paired runs that are no evidence
    varied: bool = False
    numbered: int = 0  # pairs: no number is used twice, also not that of a pair that was left out
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
        """The candidate for the runs that are left: of the best pair, unless all of its outcomes are equal."""
        best = self.best
        candidate = best.candidate(self.problem.claim, self._planned(best.cost))
        if candidate is not None and best.tells(candidate.event):
            return candidate
        return next(filter(None, (course.ordinary() for course in self.courses)), candidate)

    def _planned(self, cost: float) -> int:
        """The number of runs that are left, and fit in the time at the cost of a run."""
        return int(max(min(self.effort.runs - self.runs, self.costs.affordable / cost), 1))

    def _later_counts(self, candidate: Candidate) -> tuple[tuple[Event, Counts], ...]:
        """The counts of events that were chosen earlier in later runs of the candidate's pair; empty for a new pair."""
        of_pair = (course for course in self.courses if course.pair.key == candidate.pair.key)
        return next((course.later_counts(candidate) for course in of_pair), ())

    def _course_of(self, candidate: Candidate) -> PairWealth:
        return next(course for course in self.courses if course.pair.key == candidate.pair.key)

    @property
    def series(self) -> tuple[Series, ...]:
        """All runs in the order of time."""
        return series_of((course.pair, course.x, course.y, course.turns) for course in self.courses)

    def bet(self, most: int, left: float = 0.5) -> None:
        """Bet until the claim is refuted, `most` runs are made in all, or the share `left` of the time is left.

        Without evidence against the claim it also ends once all pairs have the runs of the detectable parameter.
        """
        claim, threshold = self.problem.claim, math.log(1 / self.effort.level)
        enough = _enough_search(claim, self.effort)
        runner, least = self.runner.betting(left), self._least_of_epoch
        while self.runs < most:
            course = next_pair(self.courses)
            n = min(runs_of_next_epoch(course, least), most - self.runs)
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
                    self.ended = "time"  # a run that had begun did not end: what is bet now would know that
            if made < n or course.full:
                return
            if log_wealth <= 0 and min(course.runs for course in self.courses) >= enough:
                return
            if not self.varied and min(course.runs for course in self.courses) >= RUNS_BEFORE_VARIATIONS:
                self.varied = True
                self._add(self.problem.variations(self.best.pair), min(VARIATIONS, self._free - self.kept))

    @property
    def _least_of_epoch(self) -> int:
        """The least runs of an epoch: 2 of a slow mechanism, else runs that take as long as learning from them.

        It is 1 where the user wants no search runs, and so cares for runs and not for time.
        """
        cost = self.problem.mechanism.cost
        if cost.slow:
            return 2
        if self.effort.search_runs is not None:
            return 1
        return max(min(cost.shard // EPOCH_PART_OF_SHARD, self.effort.runs // LEAST_EPOCHS), 1)

    @property
    def _free(self) -> int:
        """Places without a pair."""
        return self.places - len(self.courses)

    def _add(self, pairs: Iterable[Pair], most: int) -> None:
        """Give at most `most` of the pairs a place each, where they have none yet."""
        for pair in islice(different(pairs, (course.pair for course in self.courses)), max(most, 0)):
            self.courses.append(PairWealth(pair=pair, index=self.numbered, cost=self.costs.of(pair)))
            self.numbered += 1

    def bet_on_unusual(self) -> None:
        """Bet on the best unusual pairs, where nothing was won on the others.

        They are chosen by a few runs of each, which are no evidence.
        """
        if not self.kept or self._log_wealth() > WON_NATS:
            return
        most = int(min(self.effort.runs, self.costs.affordable)) // UNUSUAL_PART
        objective = GrowthAt(claim=self.problem.claim, log_threshold=math.log(1 / self.effort.level))
        runner = self.runner.searching(LEFT_BY_UNUSUAL)
        known = (course.pair for course in self.courses)
        pairs = list(different(made_in_time(self.problem.unusual(), runner), known))
        state = Search(runner=runner, objective=objective, budget=most)
        searched = [SearchedPair(pair, k) for k, pair in enumerate(pairs)]
        best = state.screened(searched, most // SCREENING_PART, SCREENING_RUNS)
        self.searched += state.spent
        before = len(self.courses)
        self._add((one.pair for one in best if one.value > 0), self._free)
        self.runner.tried.pairs -= len(self.courses) - before  # these are counted with all that are bet on
        self.bet(self.runs + most, LEFT_BY_UNUSUAL)

    def _leave_out(self, course: PairWealth, error: MechanismRaised) -> None:
        """Leave out a pair that cannot be run and had no bet: its place keeps its wealth.

        Raises the error where the pair had a bet, and where no pair is left.
        """
        if course.runs or len(self.courses) == 1:
            raise error
        self.runner.leave_out(error)
        self.courses = [other for other in self.courses if other is not course]

    def leak_of_bits(self) -> Violation | None:
        """The violation by the last bits of the outcomes so far, proved on fresh runs; None without one."""
        seen = ((c.pair, c.x, c.y) for c in self.courses if c.runs >= LEAST_RUNS)
        runner, cost = self.runner.searching(LEFT_BY_BITS), min(course.cost for course in self.courses)
        return leak_of_bits(self.problem, runner, self.effort, seen, self._planned(cost))

    def bet_all_on(self, candidate: Candidate) -> Verdict:
        """Bet all of the wealth on one candidate, in the runs and the time that are left."""
        claim, wealth, runs = self.problem.claim, self.wealth, max(self.effort.runs - self.runs, 1)
        fixed = self._on_cells(candidate, runs)
        before = wealth.log_e_value(claim)
        look = _until_settled(self.problem, fixed.estimate, self.effort, self.course, (self.runs, before))
        try:
            done = confirm_events(self.runner, fixed.pair, (fixed.event,), runs, coupled=fixed.coupled, look=look)
        except MechanismTimeout:  # not one run more: what was bet until then is the evidence
            self.ended = "time"
            return self.end(candidate)
        done.shards.series, done.shards.chosen = self.series, self._later_counts(fixed)
        wealth = replace(wealth, last=bet_on(done.totals[0], claim, fixed.estimate))
        return self._verdict(fixed, done, wealth, self.runs + done.totals[0].runs)

    def end(self, candidate: Candidate | None) -> Verdict:
        """The verdict without further runs: the claim is refuted, or the check was interrupted."""
        if candidate is None:  # no event looked good: take the event that there is a first value
            even = Estimate(p=0.5, q=0.5, both=0.5)
            candidate = Candidate(pair=self.best.pair, event=Interval(coordinate=0), estimate=even)
        counts = self._course_of(candidate).counts(candidate)
        done = Confirmation(
            runner=self.runner, pair=candidate.pair, events=(candidate.event,), totals=(counts,),
            shards=Shards(series=self.series, chosen=self._later_counts(candidate)), ended=self.ended, lost=self.lost,
        )  # fmt: skip
        done.shards.add(done.totals)
        return self._verdict(candidate, done, self.wealth, self.runs)

    def _on_cells(self, candidate: Candidate, runs: int) -> Candidate:
        """The candidate, or a bet on cells of the outcomes so far if that looks better."""
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
        if mechanism.cost.slow:  # of others it is known without these runs
            slow_notes = before_search.ignored_throughout(mechanism, ((c.x, c.y) for c in self.courses))
            sides = ((data, rows) for c in self.courses for data, rows in zip(c.pair.sides, (c.x, c.y), strict=True))
            slow_notes += before_search.same_throughout(sides)
        tried = self.runner.tried
        tried.pairs += sum(course.runs > 0 for course in self.courses)
        tried.events += sum(course.compared for course in self.courses)
        seen = next((course for course in self.courses if course.pair.key == candidate.pair.key), None)
        evidence = Evidence(
            candidate=candidate,
            confirmation=done,
            bet=wealth,
            course=self.course,
            outcomes=None if seen is None else seen.outcomes_of(candidate),
            runs_made=made,
            search_runs=self.searched,
            epoch_runs=self.runs,
            pass_notes=slow_notes,
        )
        return _verdict_of(self.problem, self.effort, evidence, self.notes)

    def _log_wealth(self) -> float:
        """The logarithm of the mean wealth of all places; those that are not used keep theirs."""
        logs = [course.wealth for course in self.courses] + [0.0] * (self.places - len(self.courses))
        return float(np.logaddexp.reduce(logs)) - math.log(self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A candidate, its counts, all bets, and the course of their evidence.

    `outcomes`: of D and of D′ in earlier runs, if kept; `runs_made`: all runs with a bet, those of epochs among them;
    `search_runs` and `epoch_runs`: the runs before the last bet; `pass_notes`: notes for a pass alone.
    """

    candidate: Candidate
    confirmation: Confirmation
    bet: EProcess
    course: EvidenceCourse
    runs_made: int
    outcomes: tuple[Rows, Rows] | None = None
    search_runs: int = 0
    epoch_runs: int = 0
    pass_notes: tuple[str, ...] = ()


def _until_settled(
    problem: Problem,
    estimate: Estimate | None,
    effort: Effort,
    course: EvidenceCourse,
    earlier: tuple[int, float] = (0, 0.0),
) -> Callable[[Totals], tuple[str, str]]:
    """The function that ends confirm runs of one event once the claim is refuted, or a pass has enough runs.

    `course` gets the evidence after each look; `earlier`: the runs and the log e-value of earlier bets.
    """
    runs_before, before = earlier
    claim, alpha, ratio = problem.claim, effort.level, effort.detectable_ratio
    threshold, left, asked_next = math.log(1 / alpha), level_left(alpha, before), FIRST_ASKED
    if problem.mechanism.cost.cheap_in_bulk:
        asked_next = FIRST_ASKED_IF_CHEAP
    if ratio is None and (problem.mechanism.cost.cheap_in_bulk or not effort.limits_by_default):
        ratio = 1.0  # runs are nearly free, or the user has said how many to make

    shown = bound_so_far(claim, estimate, effort, alpha=alpha)

    def look(totals: Totals) -> tuple[str, str]:
        nonlocal asked_next
        (counts,) = totals
        log_e, why = before + log_e_value(counts, claim, estimate), ""
        course.add(runs_before + counts.runs, log_e)
        if log_e >= threshold:
            why = "refuted"
        elif ratio != 1 and counts.runs >= asked_next:
            asked_next = math.ceil(ASKING_GROWTH * counts.runs)
            why = why_enough(bet_on(counts, claim, estimate), claim, log_e, alpha=left, ratio=ratio)
        return why, ", ".join(filter(None, (shown(totals), f"log e-value {log_e:.1f} of {threshold:.1f}")))

    return look


def _verdict_of(problem: Problem, effort: Effort, evidence: Evidence, notes: tuple[str, ...]) -> Verdict:
    """The verdict of the evidence, after the health checks of its counts.

    Raises `DependentRuns` where the claim would be refuted by runs that are not independent.
    """
    claim, alpha, level, bet = problem.claim, effort.alpha, effort.level, evidence.bet
    log_e = bet.log_e_value(claim)
    refuted = log_e >= math.log(1 / level)
    done = evidence.confirmation.examine(against=refuted)
    (counts,) = done.totals
    explanation, outputs, tried = None, None, done.runner.tried
    try:
        if refuted:
            explanation = explained(done.runner, example_of(problem.function), claim, done.pair)
        if evidence.outcomes is not None:
            outputs = outputs_of(problem, evidence.candidate.event, *evidence.outcomes)
        if outputs is None and done.ended not in ABORTED_ENDS:
            outputs = drawn_outputs(problem, done.runner, evidence.candidate)
    except KeyboardInterrupt:  # the verdict is there
        done = replace(done, ended="interrupted")
    except BaseException as error:  # of any other kind, as by pytest-timeout: what was proved is not lost to it
        if isinstance(error, RunsEnded) or not refuted:
            raise
    grown = evidence.course.ending(evidence.runs_made, log_e)
    course = Course(pairs=tried.pairs, events=tried.events, evidence=grown, outputs=outputs)

    def verdict() -> Verdict:
        witness = witness_of(problem, done.runner, alpha, evidence.candidate, counts)
        common: dict[str, Any] = {
            **result_fields(problem.mechanism, done),
            "witness": replace(witness, explanation=explanation),
            "claim": claim,
            "alpha": alpha,
            "log_e_value": log_e,
            "epsilon_lower_bound": lower_bound(bet, claim, alpha=level),
            "search_runs": evidence.search_runs,
            "epoch_runs": evidence.epoch_runs,
            "runs_made": evidence.runs_made,
            "course": course,
            "notes": (*notes, *done.notes, *findings.notes_on_counts(counts)),
        }
        if refuted:
            return Violation(**common, seconds=done.runner.seconds)
        detectable = detectable_parameter(bet, claim, alpha=level)
        passed = NotRefuted(**common, detectable_epsilon=detectable, seconds=done.runner.seconds)
        return _with_notes(passed, *evidence.pass_notes, *findings.notes_on_pass(passed))

    return uninterrupted(verdict)


def require_budget(claim: Claim, effort: Effort) -> None:
    """Raise `BudgetTooSmall` where not even the clearest violation could be refuted."""
    needed = runs_needed(claim, effort.level)
    if needed >= MOST_RUNS:
        raise BudgetTooSmall(
            f"claim={claim}: no test can refute it: even the clearest violation at alpha={effort.alpha:g} would need "
            "more than 10^18 runs"
        )
    if effort.runs < needed:
        raise BudgetTooSmall(
            f"runs={effort.runs} is too small: even the clearest violation of {claim} at "
            f"alpha={effort.alpha:g} needs {needed} runs; give at least that many"
        )
