"""What check, bound, curve, profile, replay and shrink share: preparing, and confirming a candidate that is fixed.

Statement + Effort → Problem + Runner → (search) → Candidate → `confirmed` → Counts → (evidence) → result
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from dpwitness.candidate import Candidate
from dpwitness.errors import (
    ClusterLost,
    CompiledDiffers,
    CompiledDisagrees,
    DependentRuns,
    MechanismError,
    MixedKinds,
)
from dpwitness.events import Event, codes_in
from dpwitness.evidence import Counts
from dpwitness.health.dependence import Shards
from dpwitness.health.new_process import refuse_inside
from dpwitness.health.refutation import check_pass, check_refutation
from dpwitness.mechanisms.compiled.compare import difference_in_event, first_difference
from dpwitness.mechanisms.resolve import Requirements
from dpwitness.neighbours import Pair, Pairs, adjacent
from dpwitness.problem import Effort, Problem, Statement, prepare
from dpwitness.results.witness import Witness
from dpwitness.runs import Role, Runner, generator, order
from dpwitness.values import shown

T = TypeVar("T")
Totals = tuple[Counts, ...]

#: Errors after which runs are made again otherwise, or are no evidence.
MADE_AGAIN: Final = (CompiledDisagrees, DependentRuns, MixedKinds)
#: Shards of confirm runs in which runs with the event are looked for, to compare them with Python.
COMPARED_SHARDS: Final = 4
#: Seconds for comparing runs of a pass: 2 % of a check.
PASS_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """Counts of each event; why the runs ended: "refuted", "runs", "time", "interrupted", "cluster lost" or "failed".

    `lost`: what was raised where the cluster was lost, or where a run failed behind those that were counted.
    """

    totals: Totals
    ended: str
    lost: ClusterLost | MechanismError | None = None

    def require_runs(self) -> None:
        """Raise what a failed run raised: where nothing was proved before it, the error is the result."""
        if isinstance(self.lost, MechanismError):
            raise self.lost


def prepared(
    statement: Statement, effort: Effort, work: Callable[[Problem, Runner], T], how: Requirements | None = None
) -> T:  # fmt: skip
    """Make a problem ready and work on it; `how`: what a witness says of the rows.

    Once more in plain Python where compiled code gives other outcomes, and once more with rows that tell a sequence of
    one entry from that entry alone where a mechanism returns both; in the time that is left. Warns `CompiledDiffers`.
    """
    refuse_inside()
    how, began, deadline = how or Requirements(), time.monotonic(), None
    while True:
        try:
            problem, runner = prepare(statement, effort, how, began=began, deadline=deadline)
            deadline = runner.deadline
            try:
                return work(problem, runner)
            finally:
                problem.mechanism.release()
        except CompiledDisagrees as error:
            warnings.warn(str(error), CompiledDiffers, stacklevel=4)  # the caller of a public function
            how = replace(how, interpreted=True)
        except MixedKinds:  # raised once at most: by mechanisms that are neither marked nor keyed
            how = replace(how, marked=True, keyed=not how.by_position)


def confirmed(
    runner: Runner,
    pair: Pair,
    events: Sequence[Event],
    runs: int,
    *,
    coupled: bool = True,
    look: Callable[[Totals], tuple[bool, str]] = lambda totals: (False, ""),
) -> tuple[Confirmed, Shards]:
    """Fresh runs of a fixed pair and fixed events, until `look` says stop, the runs are over, or the time.

    `look` gets the counts so far and returns whether to stop and a note for the progress. Ctrl-C, a cluster that is
    lost and a run that fails end the runs: what was counted before is evidence, since it may be looked at after any
    number of runs. Raises `CompiledDisagrees` where compiled code gives other outcomes than Python on this pair.
    """
    require_agreement(runner, pair)
    totals: Totals = tuple(Counts() for _ in events)
    lost: ClusterLost | MechanismError | None = None
    shards, ended = Shards(), "time"
    try:
        for totals in runner.confirm(pair, events, runs, coupled=coupled):
            shards.add(totals)
            stop, note = look(totals)
            runner.report("confirm", totals[0].runs, runs, note)
            if stop:
                ended = "refuted"
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
    return Confirmed(totals=totals, ended=ended, lost=lost), shards


def believed(
    runner: Runner, pair: Pair, events: Sequence[Event], done: Confirmed, shards: Shards, *, against: bool
) -> tuple[Confirmed, tuple[str, ...]]:
    """Ask what has to be asked of counts that speak `against` a mechanism, or of a pass; notes for people.

    Raises what a failed run raised where the counts speak not against it; see `unless_interrupted` for the rest.
    """
    if not against:
        done.require_runs()
        return unless_interrupted(done, runner, lambda: require_sound_pass(runner, pair, events, shards))
    return unless_interrupted(done, runner, lambda: require_evidence(runner, pair, events, shards))


def unless_interrupted(
    done: Confirmed, runner: Runner, questions: Callable[[], tuple[str, ...]]
) -> tuple[Confirmed, tuple[str, ...]]:
    """What the questions that are asked of counts say, for people; Ctrl-C ends them, and the counts stand.

    Raises what the questions do: `DependentRuns` and `CompiledDisagrees`.
    """
    notes: tuple[str, ...] = ()
    if isinstance(done.lost, MechanismError):
        notes = (f"the runs ended with an error: {done.lost}",)
    try:
        notes += questions()
    except KeyboardInterrupt:
        done = replace(done, ended="interrupted")
        notes += ("interrupted before it was asked whether its runs are independent of each other",)
    return done, (*notes, *runner.notes)


def result_fields(
    problem: Problem, runner: Runner, alpha: float, candidate: Candidate, done: Confirmed
) -> dict[str, Any]:
    """What a verdict and a bound say alike; the time spent is for the result to add, last."""
    (counts,) = done.totals
    mechanism = problem.mechanism
    return {
        "mechanism": mechanism.name,
        "parameters": {name: shown(value) for name, value in mechanism.signature.parameters.items()},
        "witness": witness_of(problem, runner, alpha, candidate, counts),
        "seed": runner.seed,
        "reproducible": mechanism.reproducible,
        "ended": done.ended,
    }


def made_whole(make: Callable[[], T]) -> T:
    """A result of counts that are there. Ctrl-C while it is computed does not lose it: it is computed once more."""
    try:
        return make()
    except KeyboardInterrupt:
        made: Any = make()
        return replace(made, ended="interrupted")  # type: ignore[no-any-return]  # every result says how its runs ended


def require_evidence(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards) -> tuple[str, ...]:
    """Ask whether counts that speak against a mechanism can be believed; notes for people.

    Raises `DependentRuns` where its runs are not independent, `CompiledDisagrees` where compiled code gave other
    outcomes than Python in the runs that fell into the events.
    """
    for event in events:
        require_agreement(runner, pair, event)
    return check_refutation(runner, pair, events, shards)


def require_sound_pass(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards) -> tuple[str, ...]:
    """Ask whether the runs of a pass were independent, and the code the user's. Raises as `require_evidence`."""
    check_pass(runner, pair, events, shards)
    compiled, plain = runner.mechanism, runner.mechanism.plain
    if plain is not None:
        rng = generator(runner.seed, Role.CONFIRM)
        _refuse(first_difference(compiled, plain, pair, rng, runs=1 << 20, seconds=PASS_SECONDS))
    return ()


def require_agreement(runner: Runner, pair: Pair, event: Event | None = None, *, coupled: bool = True) -> None:
    """Compare compiled code with Python on a pair: in its first runs, or in confirm runs that fell into an event.

    `coupled` as in `confirmed`. Raises `CompiledDisagrees` where an outcome differs. Nothing to do for mechanisms that
    run as Python.
    """
    compiled, plain = runner.mechanism, runner.mechanism.plain
    if plain is None:
        return
    if event is None:
        _refuse(first_difference(compiled, plain, pair))
    else:
        keys = ((runner.seed, Role.CONFIRM, shard) for shard in range(COMPARED_SHARDS))
        streams = ((generator(*key), order(*key, runs=compiled.shard)) for key in keys)
        _refuse(difference_in_event(compiled, plain, pair, event.contains, streams, coupled=coupled))


def _refuse(difference: str | None) -> None:
    if difference is not None:
        raise CompiledDisagrees(difference)


def witness_of(problem: Problem, runner: Runner, alpha: float, candidate: Candidate, counts: Counts) -> Witness:
    """Everything that is needed to show it again.

    Where an attack asked other questions about the given data than they answer themselves, this very pair is all that
    is known to be neighbouring.
    """
    relation, pair, mechanism = problem.relation, candidate.pair, problem.mechanism
    judged = adjacent(relation, pair, problem.data)
    assert candidate.estimate is not None  # of a search, or read from a witness
    return Witness(
        mechanism=problem.reference,
        parameters=dict(mechanism.signature.parameters),
        claim=problem.claim,
        alpha=alpha,
        relation=relation if judged else Pairs((pair,), relation.noun),
        data=problem.data if judged else None,
        pair=pair,
        event=candidate.event,
        description=problem.described(candidate.event),
        layout=None if mechanism.layout is None else mechanism.layout.upto(candidate.event.width),
        by_position=mechanism.by_position,
        texts={code: text for code in codes_in(candidate.event) if (text := mechanism.label(code)) is not None},
        counts=counts,
        estimate=candidate.estimate,
        seed=runner.seed,
    )
