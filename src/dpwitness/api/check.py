"""What must hold before the runs: that they can be enough for a violation to be proved.

From what was tested to a verdict: a check that searches first and one in epochs end alike.

A check in which no run is thrown away: it bets from the first run on, and learns from each run what to bet next.

For mechanisms whose runs are dear, and where `search_runs=0` asks for it. For half of the runs, or of the time, the
portfolios of `search.courses` are renewed before every epoch; then the best candidate is fixed, and the other half says
what a test of that event alone would have caught. The wealth goes on throughout: all of it is one e-value.

A claim that leaves open which datasets are adjacent: a check of its own for each adjacency, at its share of α.

Look for a witness against a claim, and prove it.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Final

import numpy as np

from dpwitness.api.door import public
from dpwitness.api.loop import Confirmed, Totals, believed, confirmed, made_whole, prepared, result_fields
from dpwitness.candidate import Candidate, Estimate
from dpwitness.checks import seconds
from dpwitness.claims import Claim
from dpwitness.claims.renyi import bounds_divergences
from dpwitness.errors import (
    BudgetTooSmall,
    ClusterLost,
    DependentRuns,
    DPWitnessError,
    InvalidNeighbours,
    MechanismRaised,
    MechanismTimeout,
)
from dpwitness.events import Interval
from dpwitness.evidence import (
    Bet,
    bet_on,
    detectable_parameter,
    growth_rate,
    log_e_value,
    lower_bound,
    runs_needed,
)
from dpwitness.evidence.portfolio import Wealth
from dpwitness.health import before_search, findings
from dpwitness.health.dependence import Series, Shards, series_of
from dpwitness.machine import Deadline
from dpwitness.mechanisms.claims import Accountant
from dpwitness.mechanisms.mechanism import Cost, Mechanism
from dpwitness.mechanisms.python import Outcome
from dpwitness.neighbours import Pair, Relation, adjacent
from dpwitness.problem import CHECK_RUNS, MAX_TIME, Effort, Problem, Statement
from dpwitness.proposals import Attack
from dpwitness.results.verdict import NotRefuted, Verdict, Violation
from dpwitness.runs import Progress, Runner
from dpwitness.search.cells import Aim, better, better_by_rows
from dpwitness.search.epochs import PairWealth, next_pair, runs_of_next_epoch
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.pairs import find, proposed, refined, refuse_constant, search_budget, usual_runs

#: Runs that nobody makes.
MOST: Final = 10**18


def require_budget(claim: Claim, effort: Effort) -> None:
    """Raise `BudgetTooSmall` where not even the clearest violation could be refuted."""
    needed = runs_needed(claim, effort.alpha)
    if needed >= MOST:
        raise BudgetTooSmall(
            f"claim={claim}: no test can refute it: even the clearest violation at alpha={effort.alpha:g} would need "
            "more than 10^18 runs"
        )
    if effort.max_runs < needed:
        raise BudgetTooSmall(
            f"runs={effort.max_runs} is too small: even the clearest violation of {claim} at "
            f"alpha={effort.alpha:g} needs {needed} runs; give at least that many"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A candidate, its counts, and all that was bet.

    `search_runs` and `epoch_runs`: what was spent before; `of_epochs`: whether the counts are of these; `pass_notes`:
    what to say of a pass alone.
    """

    candidate: Candidate
    done: Confirmed
    shards: Shards
    bet: Bet
    search_runs: int = 0
    epoch_runs: int = 0
    of_epochs: bool = False
    pass_notes: tuple[str, ...] = ()


def until_refuted(
    claim: Claim, estimate: Estimate | None, alpha: float, *, before: float = 0.0
) -> Callable[[Totals], tuple[bool, str]]:
    """What stops confirm runs of one event once the claim is refuted; `before`: the log e-value of earlier bets."""
    threshold = math.log(1 / alpha)

    def look(totals: Totals) -> tuple[bool, str]:
        log_e = before + log_e_value(totals[0], claim, estimate)
        return log_e >= threshold, f"log e-value {log_e:.1f} of {threshold:.1f}"

    return look


def verdict_of(problem: Problem, runner: Runner, effort: Effort, tested: Tested, notes: tuple[str, ...]) -> Verdict:
    """The verdict, once it has been asked whether the counts can be believed.

    Raises `DependentRuns` where the claim would be refuted by runs that are not independent.
    """
    candidate = tested.candidate
    refuted = tested.bet.log_e_value(problem.claim) >= math.log(1 / effort.alpha)
    done, said = believed(runner, candidate.pair, (candidate.event,), tested.done, tested.shards, against=refuted)
    tested = replace(tested, done=done)
    return made_whole(lambda: _made(problem, runner, effort, tested, (*notes, *said), refuted=refuted))


def _made(
    problem: Problem, runner: Runner, effort: Effort, tested: Tested, notes: tuple[str, ...], *, refuted: bool
) -> Verdict:
    """The verdict of what was tested, and was asked for."""
    (counts,) = tested.done.totals
    notes += findings.of_counts(counts)
    common: dict[str, Any] = {
        **result_fields(problem, runner, effort.alpha, tested.candidate, tested.done),
        "claim": problem.claim,
        "alpha": effort.alpha,
        "log_e_value": tested.bet.log_e_value(problem.claim),
        "epsilon_lower_bound": lower_bound(tested.bet, problem.claim, alpha=effort.alpha),
        "search_runs": tested.search_runs,
        "epoch_runs": tested.epoch_runs,
        "runs_made": tested.epoch_runs + (0 if tested.of_epochs else counts.runs),
    }
    if refuted:
        return Violation(**common, notes=notes, seconds=runner.seconds)
    notes += tested.pass_notes
    detectable = detectable_parameter(tested.bet, problem.claim, alpha=effort.alpha)
    verdict = NotRefuted(**common, notes=notes, detectable_epsilon=detectable, seconds=runner.seconds)
    return replace(verdict, notes=(*notes, *findings.of_pass(verdict)))


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
    courses: list[PairWealth]
    places: int  # pairs that have a share of the wealth, used or not
    runs: int = 0
    ended: str = "runs"
    lost: ClusterLost | None = None
    late: bool = False  # whether an epoch ended with fewer runs than it should have

    @property
    def wealth(self) -> Wealth:
        """What became of the wealth so far."""
        accounts = tuple(tuple(epochs) for course in self.courses for epochs in course.epochs)
        return Wealth(accounts=accounts, unused=2 * (self.places - len(self.courses)))

    @property
    def best(self) -> PairWealth:
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

    def course_of(self, candidate: Candidate) -> PairWealth:
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
            course = next_pair(self.courses)
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
                self.courses += [PairWealth(pair=pair, index=first + k) for k, pair in enumerate(pairs)]

    def _leave_out(self, course: PairWealth, error: MechanismRaised) -> None:
        """Go on without a pair that cannot be run, of which nothing was bet: its place keeps its wealth.

        Raises the error where something was, and where no pair is left.
        """
        if course.runs or len(self.courses) == 1:
            raise error
        self.runner.leave_out(error)
        self.courses = [other for other in self.courses if other is not course]

    def tested(self, candidate: Candidate, done: Confirmed, shards: Shards, wealth: Wealth) -> Tested:
        """What was tested in the end, with the evidence of all bets."""
        mechanism = self.problem.mechanism
        ignored: tuple[str, ...] = ()
        if mechanism.cost.slow:  # of others it is known before the search
            ignored = before_search.ignored_throughout(mechanism, ((c.x, c.y) for c in self.courses))
        return Tested(
            candidate=candidate,
            done=done,
            shards=shards,
            bet=wealth,
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
    attacked = proposed(problem, effort.max_runs)
    pairs = list(islice(_different(chain((found.pair for found in attacked), problem.candidates())), most))
    if not pairs:
        raise InvalidNeighbours("the relation proposes no pair of inputs")
    events = [tuple(found.event for found in attacked if found.pair.key == pair.key) for pair in pairs]
    courses = [PairWealth(pair=pair, index=k, proposals=events[k]) for k, pair in enumerate(pairs)]
    return _Epochs(problem, runner, effort, courses, len(pairs) + (VARIATIONS if len(pairs) > 1 else 0))


def _different(pairs: Iterable[Pair], courses: Sequence[PairWealth] = ()) -> Iterator[Pair]:
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
    wealth = replace(wealth, last=bet_on(done.totals[0], problem.claim, tested.estimate))
    return verdict_of(problem, runner, effort, epochs.tested(tested, done, shards, wealth), notes)


def _on_cells(claim: Claim, effort: Effort, course: PairWealth, candidate: Candidate, runs: int) -> Candidate:
    """The candidate, or cells of the outcomes so far where they promise more."""
    if not bounds_divergences(claim):
        return candidate
    threshold = math.log(1 / effort.alpha)
    aim = Aim(claim=claim, planned=runs, log_threshold=threshold, of_bound=False)
    objective = GrowthAt(claim=claim, planned=runs, log_threshold=threshold)
    return better_by_rows(*course.outcomes_of(candidate), candidate, aim, objective)


def _anything(course: PairWealth) -> Candidate:
    """An event for a verdict where none promised anything: that there is a first value."""
    return Candidate(pair=course.pair, event=Interval(coordinate=0), estimate=Estimate(p=0.5, q=0.5, both=0.5))


Check = Callable[[Problem, Runner, Effort], Verdict]


def check_each_adjacency(problem: Problem, runner: Runner, effort: Effort, check: Check) -> Verdict:
    """The verdict of `check`; where the relation leaves the adjacency open, that which matters most of one for each.

    Each is checked at an even share of α, so that all together raise a false alarm with probability α at most, and in
    an even share of the time that is left. The violation with the largest e-value comes back, else the pass that would
    have detected least; the other verdicts are its `others`. What was found is not lost to an error or an interruption
    that comes after it, but to `DependentRuns`: of the same mechanism, whose counts are no evidence then.
    """
    relations, left_out = _possible(problem)
    if not left_out and len(relations) < 2:
        return check(problem, runner, effort)
    notes = tuple(f"not checked: {str(left)[:200]}, of which the attack proposes no pair" for left in left_out)
    effort = replace(effort, alpha=effort.alpha / len(relations))
    require_budget(problem.claim, effort)
    found: list[Verdict] = []
    for k, relation in enumerate(relations):
        share = _with_share(runner, len(relations) - k, first=k == 0)
        try:
            found.append(check(replace(problem, relation=relation), share, effort))
        except KeyboardInterrupt:
            if not found:
                raise
            found[-1] = replace(found[-1], ended="interrupted")
        except (Exception, SystemExit) as error:  # of any kind: what was proved is not lost to it
            if isinstance(error, DependentRuns) or not any(isinstance(verdict, Violation) for verdict in found):
                raise
            text = str(error) if isinstance(error, DPWitnessError) else f"{type(error).__name__}: {error}"
            found[-1] = _noted(found[-1], f"under {relation!s:.200} nothing was found out: {text}")
            continue
        if found[-1].ended in ("interrupted", "cluster lost"):
            left = [str(other)[:200] for other in relations[len(found) :]]
            found[-1] = _noted(found[-1], f"not checked: {'; '.join(left)}") if left else found[-1]
            break
    return _noted(_joined(found), *notes)


def adjacency_note(problem: Problem, pair: Pair) -> tuple[str, ...]:
    """Of which adjacency a pair is, where the relation leaves that open: what it shows says nothing of the others."""
    each = problem.relation.alternatives()
    if len(each) < 2:
        return ()
    own = [str(relation)[:200] for relation in each if adjacent(relation, pair, problem.data)]
    return (f"these inputs are neighbours under {' and '.join(own)}: only of that anything is said",) if own else ()


def _possible(problem: Problem) -> tuple[list[Relation], list[Relation]]:
    """The relations, one for each adjacency, that have any pair: a single record cannot be removed.

    Apart from them those of which the user's attack proposes none, as long as it does of another.
    """
    all_of_them = problem.relation.alternatives()
    each = [relation for relation in all_of_them if next(iter(relation.candidates(problem.data)), None) is not None]
    kept: list[Relation] = []
    left: list[Relation] = []
    for relation in each:
        (kept if len(each) < 2 or _attacked(problem, relation) else left).append(relation)
    return (kept, left) if kept else (each, [])


def _attacked(problem: Problem, relation: Relation) -> bool:
    """Whether the attack that the user names, if any, proposes a pair of a relation."""
    if problem.attack is None:
        return True
    try:
        replace(problem, relation=relation).proposals(problem.attack, CHECK_RUNS)
    except InvalidNeighbours:
        return False
    return True


def _with_share(runner: Runner, shares: int, *, first: bool) -> Runner:
    """The same runner with an even share of the time that is left."""
    if runner.deadline is None:
        return runner
    now, share = time.monotonic(), runner.deadline.left / shares
    began = runner.began if first else now
    return replace(runner, began=began, deadline=Deadline(now + share), max_time=max(share, 1e-9))


def _noted(verdict: Verdict, *notes: str) -> Verdict:
    return replace(verdict, notes=(*verdict.notes, *notes))


def _joined(found: list[Verdict]) -> Verdict:
    """The verdict that matters most, with the others; as it ended where one of them was interrupted."""

    def weight(verdict: Verdict) -> tuple[bool, float]:
        if isinstance(verdict, Violation):
            return True, verdict.log_e_value
        return False, verdict.detectable_epsilon

    chosen = max(found, key=weight)
    others = tuple(verdict for verdict in found if verdict is not chosen)
    ended = next((verdict.ended for verdict in found if verdict.ended in ("interrupted", "cluster lost")), chosen.ended)
    return replace(chosen, others=others, ended=ended)


@public
def check(
    mechanism: Callable[..., Any] | Mechanism | str | None = None,
    *,
    make: Callable[[], Any] | None = None,
    epsilon: float | None = None,
    claim: Claim | Accountant | float | str | None = None,
    delta: float | None = None,
    d_in: Any = None,
    neighbours: Relation | Sequence[Any] | None = None,
    data: Any = None,
    parameters: Mapping[str, Any] | None = None,
    outcome: Outcome | None = None,
    errors: str = "raise",
    alpha: float = 1e-6,
    runs: int = CHECK_RUNS,
    max_time: float | str = MAX_TIME,
    search_runs: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    cluster: Any = None,
    reference: str | None = None,
    attack: str | Attack | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Look for a witness against a claim and prove it on fresh runs.

    Parameters
    ----------
    mechanism
        A function of a generator, data and parameters; see `dpwitness.mechanisms`.
    make
        In place of `mechanism`: a function without parameters that returns a new one, called for each run, for objects
        that one run, or a number of them, uses up.
    epsilon
        The mechanism's own parameter, where it has one of that name; and the claim, unless `claim` says another. Nats.
        By default what the object itself claims: diffprivlib's `.epsilon`, OpenDP's `map(d_in)`.
    claim
        The claim where it is not the mechanism's parameter: such as `ApproxDP(1.0, 1e-5)`, or a number, the claimed ε
        in nats; or an accountant of dp-accounting or Opacus, whose whole privacy profile is claimed then. The mechanism
        keeps the ε that it has.
    delta
        The claimed δ, and the mechanism's parameter of that name; by default what the object itself claims, else 0.
    d_in
        The distance between neighbours that an OpenDP measurement's claim is for.
    neighbours
        A relation, such as `queries(10)`, or a list of pairs, as `[([1, 1], [2, 0])]`; by default that of a target.
    data
        D, around which the relation makes the neighbours.
    parameters
        Values for other parameters of the mechanism, by name.
    outcome
        A function that turns what the mechanism returns into what is released of it, or names of attributes that are
        released, as "coef_,intercept_" of a fitted model.
    errors
        "outcome": a run that raises has the exception's class for an outcome; "raise": it ends the check. Functions
        run as plain Python with the former.
    alpha
        The probability of a false alarm: at most this, however often one looks.
    runs, max_time
        Paired confirm runs, and seconds for everything together, compiling left out.
    search_runs
        Paired search runs; they find the event and are then thrown away.
    seed
        Of all random streams: the same seed gives the same counts. None draws one.
    workers
        Threads for compiled code, processes for plain Python; by default one for each core.
    cluster
        Where to run instead: "local", Dask workers of this machine; the address of a Dask scheduler; or a
        `distributed.Client`. The same seed gives the same counts there.
    reference
        The name that a witness is saved under.
    attack
        Pairs and events that are tried first: the name of an attack's generator of candidates, such as
        "threshold_testing" or "subset_sum.flipped_bit" (see `dpwitness.attacks`), or such a function. Where nothing
        else says which inputs are neighbours, the family's own relation does.
    progress
        Called with a stage, what is done of it, its size and a note.

    Returns
    -------
        `Violation` where the claim is refuted, with the witness; else `NotRefuted`, which says what would have been
        detected. Where the relation leaves the adjacency open (`records(…, adjacency=None)`), each has a check of its
        own at an even share of alpha: a `Violation` where any is refuted; `others` holds the other verdicts.

    Raises `BadInput` for what cannot be used, `MechanismError` when the mechanism misbehaves: `DependentRuns` where its
    runs are not independent, so that counts of them are no evidence.
    """
    statement = Statement(
        mechanism=mechanism, make=make, epsilon=epsilon, claim=claim, delta=delta, d_in=d_in, neighbours=neighbours,
        data=data, parameters=parameters, outcome=outcome, errors=errors, reference=reference, attack=attack,
    )  # fmt: skip
    effort = Effort(
        alpha=alpha, max_runs=runs, max_time=seconds("max_time", max_time), search_runs=search_runs,
        seed=seed, workers=workers, cluster=cluster, progress=progress,
    )  # fmt: skip
    require_budget(statement.stated.claim, effort)

    def work(problem: Problem, runner: Runner) -> Verdict:
        before_search.report_time_needed(problem, runner, effort.alpha)
        return check_problem(problem, runner, effort)

    return prepared(statement, effort, work)


def check_problem(problem: Problem, runner: Runner, effort: Effort, *, notes: tuple[str, ...] | None = None) -> Verdict:
    """Search, then confirm, once for each adjacency where the relation leaves it open.

    `notes`: those of health checks that were done already; None does them here.
    """
    known = before_search.required(problem, runner) if notes is None else notes

    def check_one(problem: Problem, runner: Runner, effort: Effort) -> Verdict:
        return _check_relation(problem, runner, effort, known)

    return check_each_adjacency(problem, runner, effort, check_one)


def _check_relation(problem: Problem, runner: Runner, effort: Effort, notes: tuple[str, ...]) -> Verdict:
    """Search, then confirm, in one relation."""
    if in_epochs(problem.mechanism.cost, effort):
        return check_in_epochs(problem, runner, effort, notes)
    claim, log_threshold = problem.claim, math.log(1 / effort.alpha)
    budget = search_budget(problem, runner, effort.search_runs, min(usual_runs(claim), effort.max_runs))
    # A pair so good is proved in a twentieth of the search; and none grows faster than D always in, D′ never.
    fastest = float(growth_rate(1.0, 0.0, claim.half_plane(1.0, 0.0)))
    objective = GrowthAt(
        claim=claim,
        planned=effort.max_runs,
        log_threshold=log_threshold,
        stop_value=min(20 * log_threshold / budget, fastest / 2),
    )
    candidate, spent = find(problem, runner, objective, planned=effort.max_runs, budget=budget)
    if effort.search_runs is None:  # else the user has said how many
        candidate, more = refined(runner.searching(), candidate, objective, planned=effort.max_runs, budget=budget)
        spent += more
    if bounds_divergences(claim):
        aim = Aim(claim=claim, planned=effort.max_runs, log_threshold=log_threshold, of_bound=False)
        candidate, more = better(runner.searching(), candidate, aim, objective, budget)
        spent += more
    return confirm_candidate(problem, runner, effort, candidate, spent=spent, notes=notes)


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
    claim, alpha, estimate = problem.claim, effort.alpha, candidate.estimate
    look = until_refuted(claim, estimate, alpha)
    done, shards = confirmed(runner, candidate.pair, (candidate.event,), effort.max_runs, look=look)
    (counts,) = done.totals
    tested = Tested(
        candidate=candidate,
        done=done,
        shards=shards,
        bet=bet_on(counts, claim, estimate),
        search_runs=spent,
    )
    return verdict_of(problem, runner, effort, tested, notes)
