"""The steps that check, bound, curve, profile, replay and shrink share: prepare a problem, confirm a fixed candidate.

Statement + Effort → Problem + Runner → (search) → Candidate → `confirm_events` → Counts → (evidence) → result
"""

import time
import warnings
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
#: The counts of each event so far.
Totals = tuple[Counts, ...]

#: The errors after which counts are no evidence: compiled and Python's outcomes differ, or runs depend on each other.
VOIDING_ERRORS: Final = (CompiledDisagrees, DependentRuns)
#: The text, at the end of a note, that a result came before its runs were tested for independence.
UNTESTED_RUNS_TEXT: Final = "before its runs were tested for independence"
#: The largest number of points of the course of the evidence.
MOST_POINTS: Final = 64


def work_on(
    statement: Statement, effort: Effort, work: Callable[[Problem, Runner], T], how: Requirements | None = None
) -> T:  # fmt: skip
    """The result of `work` on the prepared problem of a statement; `how`: the requirements of a witness on rows.

    Where compiled code gives other outcomes than Python, the warning `CompiledDiffers` is given, and the work is
    repeated in plain Python, in the time that is left.
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
            warnings.warn(str(error), CompiledDiffers, stacklevel=5)  # the caller of a public function
            how, disagreed = replace(how, interpreted=True), True
        except MechanismTimeout as error:
            if not disagreed:
                raise
            raise MechanismTimeout(f"{error}; compiled code, which differs from Python, used up the time") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The counts of fixed events in fresh runs of a fixed pair, in all and by shard.

    `ended`: the reason why the runs ended, "refuted", "detectable", "converged", "excluded", "runs", "time",
    "interrupted", "cluster lost" or "failed"; `lost`: the error of a lost cluster, or of a run that failed after the
    counted runs; `coupled`: whether the sides of a run shared their draws; `notes` are for people.
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
        """Do the health checks of a refutation (`against` the mechanism), or of a pass.

        `largest`: whether runs without these events are compared with Python too, since the result is the largest bound
        found. `compared`: the events in whose runs compiled code is compared with Python; None: all events.

        Raises `DependentRuns` if the runs are not independent, `CompiledDisagrees` if compiled code gave other outcomes
        than Python, and, for a pass, the error of a failed run, since nothing was proved before it.
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
        """The confirmation with the notes of health checks; Ctrl-C ends the checks and keeps the counts.

        `proved`: whether the counts refute a claim; a refutation is kept even if pytest-timeout ends the test.
        """
        notes: tuple[str, ...] = ()
        ended = self.ended
        if self.lost is not None:
            notes = (f"the runs ended with an error: {self.lost}",)
        try:
            notes += questions()
        except KeyboardInterrupt:
            ended = "interrupted"
            notes += (f"interrupted {UNTESTED_RUNS_TEXT}",)
        except (Exception, RunsEnded):
            raise
        except BaseException as error:
            if not proved:
                raise
            notes += (f"ended by {on_one_line(error)} {UNTESTED_RUNS_TEXT}",)
        return replace(self, ended=ended, notes=(*notes, *self.runner.notes))


class EvidenceCourse:
    """Points of the log e-value over the runs, thinned as their number grows."""

    def __init__(self) -> None:
        self._points: list[tuple[int, float]] = []
        self._seen, self._step = 0, 1

    def add(self, runs: int, log_e: float) -> None:
        """Add a point; at `MOST_POINTS` points every second point is dropped, now and later."""
        self._seen += 1
        if self._seen % self._step == 0:
            self._points.append((runs, log_e))
        if len(self._points) >= MOST_POINTS:
            self._points, self._step = self._points[1::2], 2 * self._step

    def ending(self, runs: int, log_e: float) -> tuple[tuple[int, float], ...]:
        """All points of the course: the kept points before `runs` runs, and the log e-value at `runs`."""
        return (*(point for point in self._points if point[0] < runs), (runs, log_e))


def bound_so_far(claim: Claim, estimate: Estimate | None, effort: Effort, *, alpha: float) -> Callable[[Totals], str]:
    """The function that gives the lower bound of one event so far, as text for the progress; empty without progress.

    The bound is computed anew whenever the runs have grown by a half.
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
    """The counts of fixed events in at most `runs` fresh runs of a fixed pair; `look` or the deadline ends them.

    `look` gets the counts so far and returns the reason to stop, empty to go on, and a note for the progress. Ctrl-C, a
    lost cluster and a failed run end the runs: the counts before are evidence, which is valid after any number of runs.
    Raises `CompiledDisagrees` where compiled code gives other outcomes than Python on this pair.
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
        ended = "interrupted"  # the counts are kept, as evidence is valid at any time
    except ClusterLost as error:
        if not totals[0].runs:
            raise
        ended, lost = "cluster lost", error
    except MechanismError as error:
        if not totals[0].runs or isinstance(error, VOIDING_ERRORS):
            raise
        ended, lost = "failed", error
    return Confirmation(
        runner=runner, pair=pair, events=events, totals=totals, shards=shards, ended=ended, coupled=coupled, lost=lost
    )


def require_agreement(
    runner: Runner, pair: Pair, event: Event | None = None, counts: Counts | None = None, *, coupled: bool = True
) -> None:
    """Compare compiled code with Python on a pair: in its first runs, or in runs that fell into an event.

    `counts`: the counts of the event in confirm runs; without a hit there is nothing to compare. `coupled` as in
    `confirm_events`. Raises `CompiledDisagrees` where an outcome differs, or no run with the event is found. A
    mechanism that runs as Python is not compared.
    """
    compiled, plain = runner.mechanism, runner.mechanism.plain
    if plain is None:
        return
    if event is None or counts is None:
        require_same(first_difference(compiled, plain, pair))
    elif counts.hits or counts.neighbour_hits:
        # In most cases an early run falls into the event. If h of n runs did, no run of 2n does with probability e^−2h.
        keys = ((runner.seed, Role.CONFIRM, shard) for shard in range(2 * (counts.runs // compiled.shard + 1)))
        streams = ((generator(*key), order(*key, runs=compiled.shard)) for key in keys)
        require_same(difference_in_event(compiled, plain, pair, event.contains, streams, coupled=coupled))


def result_fields(mechanism: Mechanism, done: Confirmation) -> dict[str, Any]:
    """The common fields of verdicts, bounds and profiles, except the seconds."""
    return {
        "mechanism": mechanism.name,
        "parameters": {name: shown(value) for name, value in mechanism.signature.given.items()},
        "seed": done.runner.seed,
        "reproducible": mechanism.reproducible,
        "ended": done.ended,
    }


def uninterrupted(make: Callable[[], T]) -> T:
    """The result that `make` computes from finished counts; after Ctrl-C it is computed once more, and not lost."""
    try:
        return make()
    except KeyboardInterrupt:
        made: Any = make()
        return replace(made, ended="interrupted")  # type: ignore[no-any-return]  # every result says how its runs ended


def witness_of(problem: Problem, runner: Runner, alpha: float, candidate: Candidate, counts: Counts) -> Witness:
    """The witness of a candidate: everything that a replay needs.

    Where an attack proposed a pair that the relation does not call adjacent for the given data, the relation of the
    witness is that pair alone.
    """
    relation, pair, mechanism = problem.relation, candidate.pair, problem.mechanism
    judged = adjacent(relation, pair, problem.data)
    if not judged:  # an attack's pair is adjacent without the data; else the relation contradicts itself
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
