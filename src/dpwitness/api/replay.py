"""Replay a witness: count its event on fresh runs. Shrink it: make it as small as possible, and confirm the result.

Smaller means fewer coordinates, smaller round numbers and a simpler event. Each step is tried on search runs of its
own, which confirm nothing: the result (`smallest`) is a candidate, which fresh runs confirm.
"""

import math
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice, repeat
from typing import Annotated, Any, Final, cast

from typing_extensions import Unpack

from dpwitness.api.door import public
from dpwitness.api.loop import work_on
from dpwitness.api.verdict import confirm_candidate, require_budget
from dpwitness.arrays import Rows
from dpwitness.candidate import Candidate, Estimate
from dpwitness.checks import brief
from dpwitness.claims import ApproxDP, Claim, is_claim
from dpwitness.errors import InvalidParameter, InvalidWitness, MechanismError, MechanismTimeout
from dpwitness.events import Event
from dpwitness.evidence import runs_needed, why_excluded
from dpwitness.machine import Deadline
from dpwitness.mechanisms.catalog import load, load_registered
from dpwitness.mechanisms.claims import as_claim
from dpwitness.mechanisms.mechanism import Cost, Mechanism
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
from dpwitness.runs import Role, Runner, seed_after
from dpwitness.search.learners import learn_events
from dpwitness.search.objectives import GrowthAt, value_of
from dpwitness.targets import target_of

#: A witness, a result that has a witness, the file of a witness, or the JSON value of the file.
AnyWitness = Annotated[
    Witness | WitnessedResult | Profile | str | os.PathLike[str] | Mapping[str, Any],
    Option("a witness, a verdict, the file that one was saved to, or the JSON value that it holds"),
]

#: A violation, whose witness is made smaller.
AViolation = Annotated[Violation, Option("a violation, as `check` and `replay` return it")]

#: The largest number of shrinkings in a row after which the first witness's seed is still known not to be fresh.
MOST_TRACED_SHRINKINGS: Final = 8
#: The number of pairs of a relation that are searched for the inputs of a witness whose file could not hold them.
MOST_SEARCHED_PAIRS: Final = 1_000


@public
def replay(witness: AnyWitness, mechanism: AnyMechanism = None, **options: Unpack[ReplayOptions]) -> Verdict:
    """Count a witness's event on fresh runs of its pair, without a search and with a new seed.

    By default the mechanism is the bundled target that the witness names. A witness file is untrusted data, so it never
    decides which other code runs. The verdict shows which claim was tested.

    Raises `InvalidNeighbours` for a pair that is not adjacent under the relation, and `InvalidParameter` for a
    mechanism that does not take the witness's parameters. Raises the errors of `check`, too.
    """
    case = _ReplayCase.of(witness, mechanism, options)
    witness, alpha, runs, seed = case.witness, options["alpha"], options["runs"], options["seed"]
    alpha = witness.alpha if alpha is None else alpha
    own = {"alpha": alpha, "runs": 1 if runs is None else runs, "bits": False}
    effort = Effort.of({**options, **own})
    claim = _replayed_claim(witness.claim, as_claim(options["claim"]), options["delta"])
    if runs is None:
        effort = replace(effort, runs=max(10 * witness.counts.runs, 100_000, runs_needed(claim, alpha)))
    require_budget(claim, effort)
    if seed is not None and _made(witness, seed):
        raise InvalidParameter(f"seed={seed} made this witness: its runs are not fresh; give another seed, or none")
    while _made(witness, effort.seed):
        effort = replace(effort, seed=secrets.randbits(32))
    given = given_parameters(options["parameters"])
    parameters = witness.parameters | given
    _check_parameters(witness, case.mechanism, parameters, given)
    if options["neighbours"] is None:
        _require_targets_own(witness, case.mechanism, parameters)
    candidate = Candidate(pair=witness.pair, event=witness.event, estimate=witness.estimate)
    enough = partial(why_excluded, alpha=effort.level, witness=witness.counts)

    def work(problem: Problem, runner: Runner) -> Verdict:
        notes = _without_outcome(witness, problem)
        return confirm_candidate(case.judged(problem), runner, effort, candidate, notes=notes, enough=enough)

    return work_on(case.statement(options, claim, parameters), effort, work, case.requirements)


@public
def shrink(violation: AViolation, mechanism: AnyMechanism = None, **options: Unpack[ShrinkOptions]) -> Violation:
    """Make a witness as small as possible, confirmed on fresh runs; return `violation` if no witness is smaller.

    Every simpler pair belongs to the relation of the witness, or to `neighbours`. If the witness has `data`, or `data`
    are given here, the inputs stay as they are and only the event is simplified. If the mechanism fails during the
    search, a note of the violation says so. Raises `InvalidNeighbours` for a witness outside `neighbours`.
    """
    if not isinstance(violation, Violation):
        raise InvalidWitness(f"violation={brief(violation)} must be a Violation, as check and replay return it")
    case = _ReplayCase.of(violation, mechanism, options)
    old = case.witness
    effort = Effort.of({**options, "alpha": violation.alpha, "seed": _shrinking_seed(violation.seed), "bits": False})

    def work(problem: Problem, runner: Runner) -> Verdict | None:
        problem = case.judged(problem)
        small, spent = smallest(problem, runner, effort, old.pair, old.event)
        return None if small is None else confirm_candidate(problem, runner, effort, small, spent=spent)

    try:
        verdict = work_on(case.statement(options, violation.claim, old.parameters), effort, work, case.requirements)
    except MechanismTimeout:
        return violation  # the proved violation stands
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReplayCase:
    """A witness, and the mechanism, the relation and the data by which it is judged.

    The user gives the mechanism, the relation and the data, or else they are the witness's own. If the relation is
    given, the witness's own data are not used, since they would decide which lengths are adjacent.
    """

    witness: Witness
    mechanism: Any
    reference: str | None  # the name by which the mechanism was found
    relation: Relation
    data: Data | None

    @classmethod
    def of(cls, given: AnyWitness, mechanism: Any, options: Mapping[str, Any]) -> "_ReplayCase":
        """Read a witness, and find its mechanism. Raises `InvalidWitness` and `InvalidNeighbours`."""
        reference = mechanism if isinstance(mechanism, str) else None
        if reference is not None:  # before the witness is read: the module may register classes that the file needs
            mechanism = load(reference)
        neighbours, data = options["neighbours"], options["data"]
        relation = None if neighbours is None else as_relation(neighbours)
        witness = _with_its_inputs(_as_witness(given), relation)
        own = witness.data if relation is None else None
        relation = relation or witness.relation or Pairs((witness.pair,))
        data = own if data is None else taken(relation, data)
        require_adjacent(relation, witness.pair, data, what="the witness's pair")
        if mechanism is None and options["make"] is None:
            mechanism, reference = load_registered(witness.mechanism), witness.mechanism
        mechanism = mechanism_or_factory(mechanism, options["make"])
        return cls(witness=witness, mechanism=mechanism, reference=reference, relation=relation, data=data)

    def statement(self, options: Mapping[str, Any], claim: Claim, parameters: Mapping[str, object]) -> Statement:
        """The statement that is tested, with the witness's pair as relation, on which the mechanism is made ready."""
        witness = self.witness
        pair = Pairs((witness.pair,), "value" if witness.relation is None else witness.relation.noun)
        return Statement(
            mechanism=self.mechanism, claim=claim, neighbours=pair, parameters=parameters, outcome=options["outcome"],
            errors=witness.errors or options["errors"], reference=self.reference,
        )  # fmt: skip

    def judged(self, problem: Problem) -> Problem:
        """The problem with the relation and the data of the case."""
        return replace(problem, relation=self.relation, data=self.data)

    @property
    def requirements(self) -> Requirements:
        """The requirements of the witness on the rows that its event looks at."""
        witness = self.witness
        # Version 0.2 wrote an exception in the place of a list's first value.
        by_position = witness.by_position or (witness.layout is None and witness.errors == "outcome")
        return Requirements(columns=witness.layout, by_position=by_position, texts=witness.texts)


def _shrinking_seed(seed: int) -> int:
    """The seed for shrinking a violation that was found with `seed`."""
    return seed_after(seed, 0x5347)


def _made(witness: Witness, seed: int | None) -> bool:
    """Whether a seed made a witness, or a witness from which it was shrunk, so that the seed's runs are not fresh."""
    if seed is None:
        return False
    return witness.seed in accumulate(repeat(seed, 1 + MOST_TRACED_SHRINKINGS), lambda one, _: _shrinking_seed(one))


def _as_witness(given: AnyWitness) -> Witness:
    """The witness of a result, a file or a JSON value. Raises `InvalidWitness` if the result has no witness.

    A file raises the errors of `Witness.load`.
    """
    if isinstance(given, WitnessedResult | Profile):
        if given.witness is None:
            raise InvalidWitness(f"witness={brief(given)} holds no witness: nothing was refuted")
        by_bits = getattr(given, "floating_point", None)  # a pass may hold a violation by last bits
        return given.witness if by_bits is None else by_bits.witness
    if isinstance(given, str | os.PathLike):
        return Witness.load(given)
    if isinstance(given, Mapping):
        return Witness.from_json(given)
    if not isinstance(given, Witness):
        raise InvalidWitness(f"witness={brief(given)} must be a witness, a verdict, a file, or what a file holds")
    return given


def _with_its_inputs(witness: Witness, relation: Relation | None) -> Witness:
    """The witness. If its file could not hold the inputs, its pair is the relation's pair with the same JSON.

    Raises `InvalidWitness` if no pair of the relation has the same JSON.
    """
    if not witness.unreadable_inputs:
        return witness
    written = [input_to_json(side) for side in witness.pair.sides]
    for pair in () if relation is None else islice(proposed_pairs(relation), MOST_SEARCHED_PAIRS):
        for one in (pair, pair.swapped()):
            if [input_to_json(side) for side in one.sides] == written:
                return replace(witness, pair=one)
    raise InvalidWitness(
        f"no file can hold the inputs {witness.pair} of the witness: give these inputs, as neighbours=[(D, D′)]"
    )


def _without_outcome(witness: Witness, problem: Problem) -> tuple[str, ...]:
    """A note for a replay without the witness's `outcome=`: a file must not choose the code that runs."""
    if witness.outcome is None or problem.how_run.outcome or getattr(problem.mechanism, "outcome", None):
        return ()
    return (
        f"the witness was found with outcome={witness.outcome}, this replay is without: give it again (--outcome), "
        "unless the mechanism itself returns that now",
    )


def _replayed_claim(stated: Claim, claim: Claim | float | None, delta: float | None) -> Claim:
    """The claim of a witness, or the given claim, ε or δ in its place."""
    if is_claim(claim):
        if delta is not None and delta != getattr(claim, "delta", None):
            raise InvalidParameter(f"delta={delta!r} is not the δ of claim={claim}: give one of the two")
        return claim
    if claim is None and delta is None:
        return stated
    own = getattr(stated, "delta", None)
    if claim is None and own is None:
        raise InvalidParameter(f"delta={delta!r}: the witness's claim, {stated}, has no δ; give claim=… too")
    epsilon = cast("float", stated.parameter if claim is None else claim)  # a claim was returned above
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
    """Raise `InvalidParameter` where a mechanism cannot take the parameters of a witness."""
    if isinstance(mechanism, Mechanism):
        return  # it was made ready with its parameters
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


#: The number of paired search runs of a step of compiled or vectorised code.
COMPILED_STEP_RUNS: Final = 200_000
#: The least and the largest number of paired search runs of a step of plain Python.
PYTHON_STEP_RUNS: Final = (100, 10_000)
#: The least number of steps that must fit in the time, or nothing is shrunk.
LEAST_SHRINKING_STEPS: Final = 20
#: The share of the confirm runs within which a smaller witness is expected to refute the claim.
REFUTING_SHARE: Final = 0.5
#: The share of the time at which shrinking of the inputs ends.
INPUTS_TIME_SHARE: Final = 0.5
#: The share of the time at which shrinking of the event ends; the rest is for the confirm runs.
EVENT_TIME_SHARE: Final = 0.75


@dataclass(slots=True)
class _Shrinker:
    """One shrinking: the runner of its steps, each on a stream of its own, and the paired runs spent."""

    runner: Runner
    objective: GrowthAt
    needed: float  # the least growth rate of a smaller witness, in nats a run
    runs: int  # paired search runs of one step
    steps: int = 0

    @property
    def spent(self) -> int:
        return self.runs * self.steps

    def value(self, pair: Pair, event: Event) -> tuple[float, Estimate]:
        """The growth rate of an event in nats a run, and the estimate of the event's probabilities."""
        self.steps += 1
        estimate = self.runner.tallies(pair, [event], self.runs, Role.SHRINK, self.steps)[0].estimate
        return value_of(estimate, self.objective, self.runs), estimate

    def outcomes(self, pair: Pair) -> tuple[Rows, Rows]:
        """The outcomes of both sides of a pair, from fresh runs."""
        self.steps += 1
        return self.runner.sample(pair, self.runs, Role.SHRINK, self.steps)


def smallest(
    problem: Problem, runner: Runner, effort: Effort, pair: Pair, event: Event
) -> tuple[Candidate | None, int]:
    """Shrink a pair and an event by the relation's steps; return a candidate and the number of paired runs spent.

    The candidate is None where no smaller candidate was found in time. Where the problem has data, the inputs stay and
    only the event gets simpler. The candidate is expected to refute within `REFUTING_SHARE` of the confirm runs, whose
    seed differs from the witness's seed. Raises `MechanismError` where the mechanism fails on its own inputs.
    """
    started = time.monotonic()
    runs = _runs_of_a_step(problem.mechanism.cost, effort.max_time)
    if runs < PYTHON_STEP_RUNS[0]:
        return None, 0
    log_threshold = math.log(1 / effort.alpha)
    objective = GrowthAt(claim=problem.claim, planned=effort.runs, log_threshold=log_threshold)
    until = replace(runner, deadline=Deadline(started + INPUTS_TIME_SHARE * effort.max_time))
    shrinker = _Shrinker(until, objective, log_threshold / (REFUTING_SHARE * effort.runs), runs)
    small = _smallest_pair(shrinker, problem, pair)
    shrinker.runner = replace(runner, deadline=Deadline(started + EVENT_TIME_SHARE * effort.max_time))
    try:
        chosen = _simplest(shrinker, small, event)
    except MechanismTimeout:  # the earlier witness stays
        return None, shrinker.spent
    if chosen is None or (small is pair and chosen.event.complexity > event.complexity):
        return None, shrinker.spent
    return chosen, shrinker.spent


def _runs_of_a_step(cost: Cost, max_time: float) -> int:
    """The paired runs of a step; of plain Python a power of ten, so that `LEAST_SHRINKING_STEPS` fit in the time."""
    if cost.cheap_in_bulk:
        return COMPILED_STEP_RUNS
    fitting = max_time / LEAST_SHRINKING_STEPS / (2 * max(cost.seconds_per_run, 1e-9))
    return int(min(PYTHON_STEP_RUNS[1], 10 ** math.floor(math.log10(max(fitting, 1.0)))))


def _smallest_pair(shrinker: _Shrinker, problem: Problem, pair: Pair) -> Pair:
    """The pair after repeated steps, each to the first smaller pair that is refutable, until the deadline."""
    try:
        while True:
            steps = smaller_pairs(problem.relation, pair, problem.data)
            smaller = next((one for one in steps if _refutable(shrinker, one)), None)
            if smaller is None:
                return pair
            pair = smaller
    except MechanismTimeout:
        return pair


def _refutable(shrinker: _Shrinker, pair: Pair) -> bool:
    """Whether an event of a pair is expected to refute; False for a pair that the mechanism rejects."""
    try:
        x, y = shrinker.outcomes(pair)
    except MechanismTimeout:
        raise
    except MechanismError:
        return False
    return learn_events(x, y, shrinker.objective, thorough=False, most=1)[0].value >= shrinker.needed


def _candidates(shrinker: _Shrinker, pair: Pair, event: Event) -> tuple[Pair, list[Event]]:
    """The pair in the direction of the best learned event, and candidates for the event in rising complexity.

    The candidates are newly learned events, the given event, and parts of each.
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
    """The simplest event that is expected to refute, with the roundest numbers that keep half of its growth."""
    pair, candidates = _candidates(shrinker, pair, event)
    for candidate in candidates:
        value, estimate = shrinker.value(pair, candidate)
        if value < shrinker.needed:
            continue
        for rounder in candidate.rounded():
            rounded, its_estimate = shrinker.value(pair, rounder)
            if rounded >= max(shrinker.needed, value / 2):
                return Candidate(pair=pair, event=rounder, estimate=its_estimate)
        return Candidate(pair=pair, event=candidate, estimate=estimate)
    return None
