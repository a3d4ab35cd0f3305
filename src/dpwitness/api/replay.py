"""Replay a witness: count its event on fresh runs. Shrink it: make it as small as possible, and confirm that.

Smaller means fewer coordinates, smaller round numbers and a simpler event. Each step is tried on search runs of its
own, which confirm nothing: the result (`smallest`) is a candidate like that of any search.
"""

import math
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, islice, repeat
from typing import Annotated, Any, Final, cast

import numpy as np
from typing_extensions import Unpack

from dpwitness.api.check import confirm_candidate, require_budget
from dpwitness.api.door import public
from dpwitness.api.loop import work_on
from dpwitness.candidate import Candidate, Estimate
from dpwitness.checks import brief
from dpwitness.claims import ApproxDP, Claim, is_claim
from dpwitness.errors import InvalidParameter, InvalidWitness, MechanismError, MechanismTimeout
from dpwitness.events import Event
from dpwitness.evidence import runs_needed
from dpwitness.machine import Deadline
from dpwitness.mechanisms.catalog import load, load_registered
from dpwitness.mechanisms.claims import as_claim
from dpwitness.mechanisms.mechanism import Mechanism, Rows
from dpwitness.mechanisms.resolve import Requirements, mechanism_or_factory
from dpwitness.mechanisms.signature import name_of, takes
from dpwitness.neighbours import (
    Data,
    Pair,
    Pairs,
    Relation,
    as_relation,
    input_to_json,
    proposed_pairs,
    require_adjacent,
    taken,
)
from dpwitness.neighbours import smaller as smaller_pairs
from dpwitness.options import AnyMechanism, Option, ReplayOptions, ShrinkOptions
from dpwitness.problem import Effort, Problem, Statement, given_parameters, plain_function
from dpwitness.results.profile import Profile
from dpwitness.results.verdict import Verdict, Violation, WitnessedResult
from dpwitness.results.witness import Witness
from dpwitness.runs import Role, Runner
from dpwitness.search.learners import learn_events
from dpwitness.search.objectives import GrowthAt, value_of
from dpwitness.targets import target_of

#: What stands for a witness: one, a result that has one, its file, or what a file holds.
AnyWitness = Annotated[
    Witness | WitnessedResult | Profile | str | os.PathLike[str] | Mapping[str, Any],
    Option("a witness, a verdict, the file that one was saved to, or the JSON value that it holds"),
]


#: So many pairs of a relation are looked at for one that looks like that of a witness.
CANDIDATES: Final = 1000
#: How often a witness is made smaller again, at most.
SHRUNK: Final = 8


@public
def replay(witness: AnyWitness, mechanism: AnyMechanism = None, **options: Unpack[ReplayOptions]) -> Verdict:
    """Count a witness's event on fresh runs of its pair, without a search and with a new seed.

    By default the mechanism is the bundled target that the witness names. A witness file is untrusted data, so it never
    decides which other code runs. The verdict shows which claim was tested.

    Raises `InvalidNeighbours` for a pair that is not adjacent under the relation, and `InvalidParameter` for a
    mechanism that does not take the witness's parameters. Other errors as in `check`.
    """
    reference = mechanism if isinstance(mechanism, str) else None
    if reference is not None:  # before the witness is read: its module may register what that holds
        mechanism = load(reference)
    neighbours = None if options["neighbours"] is None else as_relation(options["neighbours"])
    witness = _with_its_inputs(_as_witness(witness), neighbours)
    alpha = witness.alpha if options["alpha"] is None else options["alpha"]
    runs, seed = options["runs"], options["seed"]
    own = {"alpha": alpha, "runs": 1 if runs is None else runs, "detectable_ratio": 1.0, "bits": False}
    effort = Effort.of({**options, **own})
    claim = _replayed_claim(witness.claim, as_claim(options["claim"]), options["delta"])
    if runs is None:
        effort = replace(effort, runs=max(10 * witness.counts.runs, 100_000, runs_needed(claim, alpha)))
    require_budget(claim, effort)
    relation, data = _relation_of(witness, neighbours, options["data"])
    require_adjacent(relation, witness.pair, data, what="the witness's pair")
    if seed is not None and _made(witness, seed):
        raise InvalidParameter(f"seed={seed} made this witness: its runs are not fresh; give another seed, or none")
    while _made(witness, effort.seed):
        effort = replace(effort, seed=secrets.randbits(32))
    if options["make"] is not None:
        mechanism = mechanism_or_factory(mechanism, options["make"])
    if mechanism is None:  # a file never decides which code runs: only the bundled targets are known by name alone
        mechanism, reference = load_registered(witness.mechanism), witness.mechanism
    given = given_parameters(options["parameters"])
    parameters = witness.parameters | given
    _check_parameters(witness, mechanism, parameters, given)
    if options["neighbours"] is None:
        _require_targets_own(witness, mechanism, parameters)
    statement = _statement_of(witness, mechanism, options, claim=claim, parameters=parameters, reference=reference)
    candidate = Candidate(pair=witness.pair, event=witness.event, estimate=witness.estimate)

    def work(problem: Problem, runner: Runner) -> Verdict:
        problem = replace(problem, relation=relation, data=data)
        return confirm_candidate(problem, runner, effort, candidate, notes=_without_outcome(witness, problem))

    return work_on(statement, effort, work, _rows_of(witness))


@public
def shrink(violation: AnyWitness, mechanism: AnyMechanism = None, **options: Unpack[ShrinkOptions]) -> Violation:
    """Make a witness as small as possible, confirmed on fresh runs; if none is smaller, return `violation` unchanged.

    Every simpler pair belongs to the relation of the witness, or to `neighbours`. If the witness has `data`, or `data`
    are given here, the inputs stay as they are and only the event is simplified. If the mechanism fails during the
    search, a note of the violation says so. In place of a violation you may give a witness, its file, or the JSON in
    it, as for `replay`: it is replayed first, since a file proves nothing. Raises `InvalidNeighbours` for a witness
    outside `neighbours`, and `InvalidWitness` if fresh runs do not refute the claim.
    """
    if not isinstance(violation, Violation):
        replayed: dict[str, Any] = {name: value for name, value in options.items() if name not in ("runs", "given")}
        seen_again = replay(violation, mechanism, **replayed)
        if not isinstance(seen_again, Violation):
            raise InvalidWitness(f"there is nothing to shrink: fresh runs did not refute the claim ({seen_again!r})")
        violation = seen_again
    neighbours = None if options["neighbours"] is None else as_relation(options["neighbours"])
    old = _with_its_inputs(violation.witness, neighbours)
    if mechanism is None and options["make"] is None:
        mechanism = load_registered(old.mechanism)
    mechanism = mechanism_or_factory(mechanism, options["make"])
    relation, data = _relation_of(old, neighbours, options["data"])
    require_adjacent(relation, old.pair, data, what="the witness's pair")
    seed = _shrinking_seed(violation.seed)
    effort = Effort.of({**options, "alpha": violation.alpha, "seed": seed, "bits": False})
    statement = _statement_of(old, mechanism, options, claim=violation.claim, parameters=old.parameters)

    def work(problem: Problem, runner: Runner) -> Verdict | None:
        problem = replace(problem, relation=relation, data=data)
        small, spent = smallest(problem, runner, effort, old.pair, old.event)
        return None if small is None else confirm_candidate(problem, runner, effort, small, spent=spent)

    try:
        verdict = work_on(statement, effort, work, _rows_of(old))
    except MechanismTimeout:
        return violation  # what was proved stands, whatever the time for making it smaller was
    except MechanismError as error:
        return replace(violation, notes=(*violation.notes, f"it could not be made smaller: {error}"))
    if verdict is not None and verdict.ended == "interrupted":
        raise KeyboardInterrupt
    if not isinstance(verdict, Violation):
        return violation
    searched, course = violation.course, verdict.course
    if searched is not None and course is not None:
        course = replace(course, pairs=searched.pairs, events=searched.events)
    return replace(
        verdict,
        course=None if searched is None else course,
        search_runs=violation.search_runs + violation.counts.runs + verdict.search_runs,
        seconds=violation.seconds + verdict.seconds,
        notes=violation.notes,
        others=violation.others,
    )


def _shrinking_seed(seed: int) -> int:
    """The seed with which a violation of that seed is made smaller."""
    return int(np.random.SeedSequence((seed, 0x5347)).generate_state(1, np.uint64)[0])


def _made(witness: Witness, seed: int | None) -> bool:
    """Whether the runs of a seed made a witness, or one that it was made smaller from: they are not fresh."""
    if seed is None:
        return False
    return witness.seed in accumulate(repeat(seed, 1 + SHRUNK), lambda one, _: _shrinking_seed(one))


def _as_witness(given: AnyWitness) -> Witness:
    """The witness in what was given. Raises `InvalidWitness` where there is none, and as `Witness.load`."""
    if isinstance(given, WitnessedResult | Profile):
        if given.witness is None:
            raise InvalidWitness(f"witness={brief(given)} holds no witness: nothing was refuted")
        by_bits = getattr(given, "floating_point", None)  # of a pass the one thing that was refuted
        return given.witness if by_bits is None else by_bits.witness
    if isinstance(given, str | os.PathLike):
        return Witness.load(given)
    if isinstance(given, Mapping):
        return Witness.from_json(given)
    if not isinstance(given, Witness):
        raise InvalidWitness(f"witness={brief(given)} must be a witness, a verdict, a file, or what a file holds")
    return given


def _with_its_inputs(witness: Witness, neighbours: Relation | None) -> Witness:
    """A witness whose inputs no file could hold, with the pair among those given that looks like it.

    Raises `InvalidWitness` where there is none.
    """
    if not witness.unreadable_inputs:
        return witness
    given = () if neighbours is None else islice(proposed_pairs(neighbours), CANDIDATES)
    looks = [input_to_json(side) for side in witness.pair.sides]
    for pair in given:
        for one in (pair, pair.swapped()):
            if [input_to_json(side) for side in one.sides] == looks:
                return replace(witness, pair=one)
    raise InvalidWitness(
        f"no file can hold the inputs {witness.pair} of the witness: give a pair that looks so, neighbours=[(D, D′)]"
    )


def _statement_of(
    witness: Witness,
    mechanism: Any,
    options: Mapping[str, Any],
    *,
    claim: Claim,
    parameters: Mapping[str, object],
    reference: str | None = None,
) -> Statement:
    """What a witness states: the mechanism is made ready on its pair, not on a candidate of another shape.

    `reference`: the name under which the mechanism was found; by default the witness's where the function is called so.
    """
    name = getattr(mechanism, "name", None) or getattr(mechanism, "__name__", None)
    named = witness.mechanism.rpartition(":")[2].rpartition(".")[2] == name
    pair = Pairs((witness.pair,), "value" if witness.relation is None else witness.relation.noun)
    return Statement(
        mechanism=mechanism, claim=claim, neighbours=pair, parameters=parameters, outcome=options["outcome"],
        errors=witness.errors or options["errors"], reference=reference or (witness.mechanism if named else None),
    )  # fmt: skip


def _without_outcome(witness: Witness, problem: Problem) -> tuple[str, ...]:
    """A note where the runs of a witness were summarised, and these are not: no file decides which code runs."""
    if witness.outcome is None or problem.how_run.outcome or getattr(problem.mechanism, "outcome", None):
        return ()
    return (
        f"the witness was found with outcome={witness.outcome}, this replay is without: give it again (--outcome), "
        "unless the mechanism itself returns that now",
    )


def _rows_of(witness: Witness) -> Requirements:
    """What a witness says of the rows that its event looks at."""
    # Version 0.2 wrote exceptions where the first value of a list stands.
    by_position = witness.by_position or (witness.layout is None and witness.errors == "outcome")
    return Requirements(columns=witness.layout, by_position=by_position, texts=witness.texts)


def _relation_of(witness: Witness, neighbours: Relation | None, data: object) -> tuple[Relation, Data | None]:
    """The relation and D that a witness is judged by: those given, else its own, else its pair alone.

    With a relation given, the witness's own data count for nothing: they would decide which lengths are adjacent.
    """
    relation = witness.relation or Pairs((witness.pair,)) if neighbours is None else neighbours
    if data is not None:
        return relation, taken(relation, data)
    return relation, witness.data if neighbours is None else None


def _replayed_claim(stated: Claim, claim: Claim | float | None, delta: float | None) -> Claim:
    """The claim of a witness, with what is given in its place."""
    if is_claim(claim):
        if delta is not None and delta != getattr(claim, "delta", None):
            raise InvalidParameter(f"delta={delta!r} is not the δ of claim={claim}: give one of the two")
        return claim
    if claim is None and delta is None:
        return stated
    own = getattr(stated, "delta", None)
    if claim is None and own is None:
        raise InvalidParameter(f"delta={delta!r}: the witness's claim, {stated}, has no δ; give claim=… too")
    epsilon = cast("float", stated.parameter if claim is None else claim)  # a number: it is no claim
    return ApproxDP(epsilon, (own or 0.0) if delta is None else delta)


def _require_targets_own(witness: Witness, mechanism: object, parameters: Mapping[str, object]) -> None:
    """Raise `InvalidNeighbours` for a pair that the relation of a target does not call adjacent.

    A file must not say by itself which inputs a claim calls adjacent: only the user may.
    """
    target = target_of(plain_function(mechanism))
    if target is None:
        return
    relation = target.neighbours
    sensitivity = parameters.get("sensitivity")
    if isinstance(sensitivity, int | float):
        relation = relation.of_sensitivity(float(sensitivity))
    require_adjacent(
        relation, witness.pair, what="the witness's pair, unless you give its relation (neighbours=, --pair),"
    )


def _check_parameters(
    witness: Witness, mechanism: object, own: Mapping[str, object], given: Mapping[str, object]
) -> None:
    """Raise `InvalidParameter` where a mechanism cannot be the one that a witness is about."""
    if isinstance(mechanism, Mechanism):
        return  # made ready elsewhere, with its parameters
    for name in witness.unreadable:
        if name not in given:
            raise InvalidParameter(
                f"the parameter {name}={brief(own[name])} of {witness.mechanism} cannot be written to a file: give "
                f"parameters={{{name!r}: …}}"
            )
    for name in own:
        if not takes(mechanism, name):
            raise InvalidParameter(
                f"{name_of(mechanism)} has no parameter {name!r}, which the witness gives to {witness.mechanism}: "
                "replay it against a mechanism with the same parameters"
            )


#: Paired search runs of one step: of compiled or vectorised code, and of plain Python at most.
COMPILED_RUNS: Final = 200_000
PYTHON_RUNS: Final = 10_000
#: Where plain Python is so slow that not so many steps of so many runs fit in the time, nothing is tried.
STEPS: Final = 20
LEAST: Final = 100
#: A step is kept where it is expected to refute within this share of the runs there are.
SHARE: Final = 0.5
#: Of the time: until when inputs are shrunk, and until when the event is; the rest is for the confirm runs.
INPUTS_UNTIL: Final = 0.5
EVENT_UNTIL: Final = 0.75


@dataclass(slots=True)
class _Shrinker:
    """One shrinking: what draws its runs, and how many it has drawn."""

    runner: Runner
    objective: GrowthAt
    needed: float  # nats a run
    deadline: float  # by `time.monotonic`
    runs: int = 16  # of one step
    steps: int = 0
    spent: int = 0

    @property
    def in_time(self) -> bool:
        """Whether there is time for another step."""
        return time.monotonic() < self.deadline

    @property
    def _running(self) -> Runner:
        return replace(self.runner, deadline=Deadline(self.deadline))

    def _step(self) -> int:
        """The number of one more step, which has a stream of its own."""
        self.steps += 1
        self.spent += self.runs
        return self.steps

    def value(self, pair: Pair, event: Event) -> tuple[float, Estimate]:
        """The growth rate of an event in nats a run, and its rates, on runs of its own."""
        estimate = self._running.tally(pair, event, self.runs, Role.SHRINK, self._step()).estimate
        return value_of(estimate, self.objective, self.runs), estimate

    def outcomes(self, pair: Pair) -> tuple[Rows, Rows]:
        """Fresh search runs of a pair."""
        return self._running.sample(pair, self.runs, Role.SHRINK, self._step())


def smallest(
    problem: Problem, runner: Runner, effort: Effort, pair: Pair, event: Event
) -> tuple[Candidate | None, int]:
    """Shrink what refutes the claim, by the steps of the relation; None where nothing smaller was found in time.

    Where the problem has data the inputs stay as they are, and only the event gets simpler. The candidate is expected
    to refute within a share of the confirm runs; whether it does is for them to say, with a seed that is not that of
    the runs which made the witness. Returns it, D first, and the paired runs spent. Raises `MechanismError` where the
    mechanism fails on its own inputs.
    """
    started = time.monotonic()
    log_threshold = math.log(1 / effort.alpha)
    objective = GrowthAt(claim=problem.claim, planned=effort.runs, log_threshold=log_threshold)
    needed = log_threshold / (SHARE * effort.runs)
    shrinker = _Shrinker(runner, objective, needed, started + INPUTS_UNTIL * effort.max_time)
    try:
        if not _affordable(shrinker, pair, event, effort.max_time):
            return None, shrinker.spent
        small = _smallest_pair(shrinker, pair, lambda larger: smaller_pairs(problem.relation, larger, problem.data))
        shrinker.deadline = started + EVENT_UNTIL * effort.max_time
        chosen = _simplest(shrinker, small, event)
    except MechanismTimeout:
        return None, shrinker.spent  # the time is over: the witness there was stays
    if chosen is None or (small is pair and chosen.event.complexity > event.complexity):
        return None, shrinker.spent
    return chosen, shrinker.spent


def _affordable(shrinker: _Shrinker, pair: Pair, event: Event, max_time: float) -> bool:
    """Settle the runs of one step; whether `STEPS` steps of `LEAST` runs fit into the time."""
    if shrinker.runner.mechanism.cost.cheap_in_bulk:
        shrinker.runs = COMPILED_RUNS
        return True
    started = time.perf_counter()
    shrinker.value(pair, event)
    cost = (time.perf_counter() - started) / shrinker.runs
    # A power of ten, as for the search, so that a small change of speed changes nothing.
    shrinker.runs = int(min(PYTHON_RUNS, 10 ** math.floor(math.log10(max_time / STEPS / cost))))
    return shrinker.runs >= LEAST


def _refutable(shrinker: _Shrinker, pair: Pair) -> bool:
    """Whether some event of this pair would refute in the runs there are; none of one that the mechanism rejects."""
    try:
        x, y = shrinker.outcomes(pair)
    except MechanismError:
        return False  # it rejects such inputs, or the time is over: the pair stays as it was
    return learn_events(x, y, shrinker.objective, thorough=False, most=1)[0].value >= shrinker.needed


def _smallest_pair(shrinker: _Shrinker, pair: Pair, steps: Callable[[Pair], Iterator[Pair]]) -> Pair:
    """Take the first smaller pair that is refutable, and begin again, until none is or the time is over."""
    while True:
        for smaller in steps(pair):
            if not shrinker.in_time:
                return pair
            if _refutable(shrinker, smaller):
                pair = smaller
                break
        else:
            return pair


def _candidates(shrinker: _Shrinker, pair: Pair, event: Event) -> tuple[Pair, list[Event]]:
    """The pair in its better direction, and candidates for its event, simplest first.

    They are learned anew, then the one there was, and parts of each.
    """
    x, y = shrinker.outcomes(pair)
    learned = learn_events(x, y, shrinker.objective)
    swapped = learned[0].swapped
    wholes = [rated.event for rated in learned if rated.swapped == swapped]
    if not swapped and event.width <= x.shape[1]:
        wholes.append(event)
    parts = [part for whole in wholes for part in whole.simpler()]
    return pair.swapped() if swapped else pair, sorted([*parts, *wholes], key=lambda candidate: candidate.complexity)


def _simplest(shrinker: _Shrinker, pair: Pair, event: Event) -> Candidate | None:
    """The simplest event that would refute, with the roundest numbers of which half the growth is left."""
    pair, candidates = _candidates(shrinker, pair, event)
    for candidate in candidates:
        if not shrinker.in_time:
            return None
        value, estimate = shrinker.value(pair, candidate)
        if value < shrinker.needed:
            continue
        for rounder in candidate.rounded():
            rounded, its_estimate = shrinker.value(pair, rounder)
            if rounded >= max(shrinker.needed, value / 2):
                return Candidate(pair=pair, event=rounder, estimate=its_estimate)
        return Candidate(pair=pair, event=candidate, estimate=estimate)
    return None
