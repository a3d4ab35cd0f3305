"""What check, bound, curve, profile, replay and shrink share: preparing, and confirming a candidate that is fixed.

Statement + Effort → Problem + Runner → (search) → Candidate → `confirmed` → Counts → (evidence) → result
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from dpwitness.candidate import Candidate
from dpwitness.effort import Effort
from dpwitness.errors import ClusterLost, CompiledDiffers, CompiledDisagrees, MixedKinds
from dpwitness.events import Event, codes_in
from dpwitness.evidence import Counts
from dpwitness.health.dependence import Shards
from dpwitness.health.new_process import refuse_inside
from dpwitness.health.refutation import check_pass, check_refutation
from dpwitness.mechanisms.compiled.compare import difference_in_event, first_difference
from dpwitness.mechanisms.resolve import How
from dpwitness.neighbours import Pair, Pairs, adjacent
from dpwitness.problem import Problem, Statement, prepare
from dpwitness.results.witness import Witness
from dpwitness.runs import Role, Runner, generator
from dpwitness.values import shown

T = TypeVar("T")
Totals = tuple[Counts, ...]

#: Shards of confirm runs in which runs with the event are looked for, to compare them with Python.
COMPARED_SHARDS: Final = 4
#: Seconds for comparing runs of a pass: 2 % of a check.
PASS_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """Counts of each event; why the runs ended: "refuted", "runs", "time", "interrupted" or "cluster lost".

    `lost`: what was raised where the cluster was lost.
    """

    totals: Totals
    ended: str
    lost: ClusterLost | None = None


def prepared(
    statement: Statement, effort: Effort, work: Callable[[Problem, Runner], T], how: How | None = None
) -> T:  # fmt: skip
    """Make a problem ready and work on it; `how`: what a witness says of the rows.

    Once more in plain Python where compiled code gives other outcomes, and once more with rows that tell a sequence of
    one entry from that entry alone where a mechanism returns both; in the time that is left. Warns `CompiledDiffers`.
    """
    refuse_inside()
    how, began, deadline = how or How(), time.monotonic(), None
    while True:
        try:
            problem, runner = prepare(statement, effort, how, began=began, deadline=deadline)
            deadline = runner.deadline
            try:
                return work(problem, runner)
            finally:
                problem.mechanism.release()
        except CompiledDisagrees as error:
            warnings.warn(str(error), CompiledDiffers, stacklevel=3)
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

    `look` gets the counts so far and returns whether to stop and a note for the progress. Raises `CompiledDisagrees`
    where compiled code gives other outcomes than Python on this pair.
    """
    require_agreement(runner, pair)
    totals: Totals = tuple(Counts() for _ in events)
    shards, ended, lost = Shards(), "time", None
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
    return Confirmed(totals=totals, ended=ended, lost=lost), shards


def believed(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards, *, against: bool) -> tuple[str, ...]:
    """Ask what has to be asked of counts that speak `against` a mechanism, or of a pass; notes for people."""
    if against:
        return (*require_evidence(runner, pair, events, shards), *runner.notes)
    require_sound_pass(runner, pair, shards)
    return runner.notes


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


def require_evidence(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards) -> tuple[str, ...]:
    """Ask whether counts that speak against a mechanism can be believed; notes for people.

    Raises `DependentRuns` where its runs are not independent, `CompiledDisagrees` where compiled code gave other
    outcomes than Python in the runs that fell into the events.
    """
    for event in events:
        require_agreement(runner, pair, event)
    return check_refutation(runner, pair, events, shards)


def require_sound_pass(runner: Runner, pair: Pair, shards: Shards) -> None:
    """Ask whether the runs of a pass were independent, and the code the user's. Raises as `require_evidence`."""
    check_pass(runner, shards)
    compiled, plain = runner.mechanism, runner.mechanism.plain
    if plain is not None:
        rng = generator(runner.seed, Role.CONFIRM)
        _refuse(first_difference(compiled, plain, pair, rng, runs=1 << 20, seconds=PASS_SECONDS))


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
        streams = (generator(runner.seed, Role.CONFIRM, shard) for shard in range(COMPARED_SHARDS))
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
