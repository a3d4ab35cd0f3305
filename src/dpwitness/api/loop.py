"""What check, bound, curve, profile, replay and shrink share: they prepare a problem and confirm a fixed candidate.

Statement + Effort → Problem + Runner → (search) → Candidate → `confirm_events` → Counts → (evidence) → result
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from dpwitness.candidate import Candidate, Estimate
from dpwitness.checks import on_one_line
from dpwitness.claims import Claim
from dpwitness.errors import (
    ClusterLost,
    CompiledDiffers,
    CompiledDisagrees,
    DependentRuns,
    MechanismError,
    MechanismTimeout,
    RunsEnded,
)
from dpwitness.events import Event, codes_in
from dpwitness.evidence import Counts, bet_on, lower_bound
from dpwitness.health.dependence import Shards
from dpwitness.health.new_process import refuse_inside
from dpwitness.health.refutation import check_pass, check_refutation, require_same_in_python
from dpwitness.machine import warn, warnings_by_these_filters
from dpwitness.mechanisms.compiled.compare import difference_in_event, first_difference, require_same
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import Requirements
from dpwitness.mechanisms.signature import own_copy
from dpwitness.neighbours import Pair, Pairs, adjacent, require_adjacent
from dpwitness.problem import Effort, Problem, Statement, prepare
from dpwitness.results.text import at_least
from dpwitness.results.witness import Witness
from dpwitness.runs import Role, Runner, generator, order
from dpwitness.values import shown

T = TypeVar("T")
Totals = tuple[Counts, ...]

#: Errors after which runs are made again otherwise, or are no evidence.
MADE_AGAIN: Final = (CompiledDisagrees, DependentRuns)
#: What is said where the questions to a result were cut off.
UNASKED: Final = "before it was asked whether its runs are independent of each other"
#: Points of the course of the evidence.
POINTS: Final = 64


@warnings_by_these_filters()
def work_on(
    statement: Statement, effort: Effort, work: Callable[[Problem, Runner], T], how: Requirements | None = None
) -> T:  # fmt: skip
    """Make a problem ready and work on it; `how`: what a witness says of the rows.

    Once more in plain Python where compiled code gives other outcomes, in the time that is left. Warns
    `CompiledDiffers`.
    """
    refuse_inside()
    how, began, deadline, disagreed = how or Requirements(), time.monotonic(), None, False
    while True:
        try:
            problem, runner = prepare(statement, effort, how, began=began, deadline=deadline)
            deadline = runner.deadline
            try:
                return work(problem, runner)
            finally:
                problem.mechanism.release()
        except CompiledDisagrees as error:
            warn(str(error), CompiledDiffers, stacklevel=5)  # the caller of a public function
            how, disagreed = replace(how, interpreted=True), True
        except MechanismTimeout as error:
            if not disagreed:
                raise
            raise MechanismTimeout(f"{error}; machine code used it up, which does not do what Python does") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """Fresh runs of events that were fixed before, on a fixed pair: the counts of each, and of each shard.

    `ended`: what stopped them ("refuted", "detectable" or "converged"), else "runs", "time", "interrupted", "cluster
    lost" or "failed"; `lost`: what was raised where the cluster was lost, or where a run failed behind those that were
    counted; `coupled`: whether the sides of a run shared their draws; `notes` are for people.
    """

    runner: Runner
    pair: Pair
    events: Sequence[Event]
    totals: Totals
    shards: Shards
    ended: str
    coupled: bool = True
    lost: ClusterLost | MechanismError | None = None
    notes: tuple[str, ...] = ()

    def examine(
        self, *, against: bool, largest: bool = False, compared: Iterable[Event] | None = None
    ) -> "Confirmation":
        """Check whether counts are sound: those of a refutation (`against` the mechanism), or those of a pass.

        `largest`: a refutation is also said to be the strongest that was found. `compared`: the events in whose runs
        compiled code is compared with Python; by default all of them.

        Raises `DependentRuns` if the runs are not independent, `CompiledDisagrees` if compiled code gave other outcomes
        than Python. For a pass it raises the error of a failed run, since nothing was proved before it.
        """
        if not against and isinstance(self.lost, MechanismError):
            raise self.lost

        def questions() -> tuple[str, ...]:
            if not against:
                return check_pass(self.runner, self.pair, self.events, self.shards)
            for event in self.events if compared is None else compared:
                counts = next(total for one, total in zip(self.events, self.totals, strict=True) if one is event)
                require_agreement(self.runner, self.pair, event, counts, coupled=self.coupled)
            if largest:
                require_same_in_python(self.runner, self.pair)
            return check_refutation(self.runner, self.pair, self.events, self.shards)

        return self.unless_interrupted(questions, proved=against)

    def unless_interrupted(self, questions: Callable[[], tuple[str, ...]], *, proved: bool = True) -> "Confirmation":
        """The same with the notes of some health checks; Ctrl-C ends the checks and keeps the counts.

        `proved`: these refute something, which is not lost either to what ends a test, as pytest-timeout does.
        """
        notes: tuple[str, ...] = ()
        ended = self.ended
        if self.lost is not None:
            notes = (f"the runs ended with an error: {self.lost}",)
        try:
            notes += questions()
        except KeyboardInterrupt:
            ended = "interrupted"
            notes += (f"interrupted {UNASKED}",)
        except (Exception, RunsEnded):
            raise
        except BaseException as error:
            if not proved:
                raise
            notes += (f"ended by {on_one_line(error)} {UNASKED}",)
        return replace(self, ended=ended, notes=(*notes, *self.runner.notes))


class EvidenceCourse:
    """Points of the log e-value over the runs, thinned while they become more."""

    def __init__(self) -> None:
        self._points: list[tuple[int, float]] = []
        self._seen, self._step = 0, 1

    def add(self, runs: int, log_e: float) -> None:
        """One more; every second point goes where there are too many, and of later ones half as many are kept."""
        self._seen += 1
        if self._seen % self._step == 0:
            self._points.append((runs, log_e))
        if len(self._points) >= POINTS:
            self._points, self._step = self._points[1::2], 2 * self._step

    def ending(self, runs: int, log_e: float) -> tuple[tuple[int, float], ...]:
        """The points of fewer runs, and the last one."""
        return (*(point for point in self._points if point[0] < runs), (runs, log_e))


def bound_so_far(claim: Claim, estimate: Estimate | None, effort: Effort, *, alpha: float) -> Callable[[Totals], str]:
    """The lower bound that the counts of one event show so far, for people who watch the progress; empty for others.

    It is computed again each time when there are half as many runs more.
    """
    text, due = "", 0

    def shown(totals: Totals) -> str:
        nonlocal text, due
        (counts,) = totals
        if effort.progress is not None and counts.runs >= due:
            due = counts.runs * 3 // 2 + 1
            text = f"{claim.symbol} ≥ {at_least(lower_bound(bet_on(counts, claim, estimate), claim, alpha=alpha), 3)}"
        return text

    return shown


def confirm_events(
    runner: Runner,
    pair: Pair,
    events: Sequence[Event],
    runs: int,
    *,
    coupled: bool = True,
    look: Callable[[Totals], tuple[str, str]] = lambda totals: ("", ""),
) -> Confirmation:
    """Fresh runs of a fixed pair and fixed events, until `look` says stop, the runs are over, or the time.

    `look` gets the counts so far and returns why to stop, empty to go on, and a note for the progress. Ctrl-C, a
    cluster that is lost and a run that fails end the runs: what was counted before is evidence, since it may be looked
    at after any number of runs. Raises `CompiledDisagrees` where compiled code gives other outcomes than Python on this
    pair.
    """
    require_agreement(runner, pair)
    totals: Totals = tuple(Counts() for _ in events)
    lost: ClusterLost | MechanismError | None = None
    shards, ended = Shards(), "time"
    try:
        for totals in runner.confirm(pair, events, runs, coupled=coupled):
            shards.add(totals)
            why, note = look(totals)
            runner.report("confirm", totals[0].runs, runs, note)
            if why:
                ended = why
                break
        else:
            ended = "runs" if totals[0].runs >= runs else "time"
    except KeyboardInterrupt:
        ended = "interrupted"  # what was counted is kept: evidence is valid at any time
    except ClusterLost as error:
        if not totals[0].runs:
            raise
        ended, lost = "cluster lost", error
    except MechanismError as error:
        if not totals[0].runs or isinstance(error, MADE_AGAIN):
            raise
        ended, lost = "failed", error
    return Confirmation(
        runner=runner, pair=pair, events=events, totals=totals, shards=shards, ended=ended, coupled=coupled, lost=lost
    )


def require_agreement(
    runner: Runner, pair: Pair, event: Event | None = None, counts: Counts | None = None, *, coupled: bool = True
) -> None:
    """Compare compiled code with Python on a pair: in its first runs, or in runs that fell into an event.

    `counts`: those of the event in confirm runs; if none fell into it there is nothing to compare. `coupled` as in
    `confirm_events`. Raises `CompiledDisagrees` where an outcome differs, or no run with the event is found. Nothing to
    do for mechanisms that run as Python.
    """
    compiled, plain = runner.mechanism, runner.mechanism.plain
    if plain is None:
        return
    if event is None or counts is None:
        require_same(first_difference(compiled, plain, pair))
    elif counts.hits or counts.neighbour_hits:
        # Mostly the first will do. Of twice the runs of which h fell into the event none does by a chance of e^(−2h).
        keys = ((runner.seed, Role.CONFIRM, shard) for shard in range(2 * (counts.runs // compiled.shard + 1)))
        streams = ((generator(*key), order(*key, runs=compiled.shard)) for key in keys)
        require_same(difference_in_event(compiled, plain, pair, event.contains, streams, coupled=coupled))


def result_fields(mechanism: Mechanism, done: Confirmation) -> dict[str, Any]:
    """What verdicts, bounds and profiles say alike; the time spent is for the result to add, last."""
    return {
        "mechanism": mechanism.name,
        "parameters": {name: shown(value) for name, value in mechanism.signature.given.items()},
        "seed": done.runner.seed,
        "reproducible": mechanism.reproducible,
        "ended": done.ended,
    }


def uninterrupted(make: Callable[[], T]) -> T:
    """A result of counts that are there. Ctrl-C while it is computed does not lose it: it is computed once more."""
    try:
        return make()
    except KeyboardInterrupt:
        made: Any = make()
        return replace(made, ended="interrupted")  # type: ignore[no-any-return]  # every result says how its runs ended


def witness_of(problem: Problem, runner: Runner, alpha: float, candidate: Candidate, counts: Counts) -> Witness:
    """Everything that is needed to show it again.

    Where an attack asked other questions about the given data than they answer themselves, this very pair is all that
    is known to be neighbouring.
    """
    relation, pair, mechanism = problem.relation, candidate.pair, problem.mechanism
    judged = adjacent(relation, pair, problem.data)
    if not judged:  # of an attack; else the relation's answers change
        require_adjacent(relation, pair)
    assert candidate.estimate is not None  # of a search, or read from a witness
    return Witness(
        mechanism=problem.reference,
        parameters={name: own_copy(value) for name, value in mechanism.signature.given.items()},
        claim=problem.claim,
        alpha=alpha,
        relation=relation if judged else Pairs((pair,), relation.noun),
        data=problem.data if judged else None,
        pair=pair,
        event=candidate.event,
        description=problem.described(candidate.event),
        layout=None if mechanism.layout is None else mechanism.layout.upto(candidate.event.width),
        by_position=mechanism.by_position,
        outcome=problem.how_run.outcome,
        errors=problem.how_run.errors,
        python=problem.how_run.python,
        texts={code: text for code in codes_in(candidate.event) if (text := mechanism.label(code)) is not None},
        counts=counts,
        estimate=candidate.estimate,
        seed=runner.seed,
    )
