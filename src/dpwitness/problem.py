"""What is tested: as the user states it, and made ready to run."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from dpwitness.attacks.candidate import Attack
from dpwitness.attacks.registry import chosen_attack
from dpwitness.candidate import Candidate
from dpwitness.claims import Claim, is_claim
from dpwitness.clock import Deadline
from dpwitness.effort import CHECK_RUNS, Effort
from dpwitness.errors import InvalidNeighbours, InvalidParameter
from dpwitness.events import Event, Noun
from dpwitness.mechanisms.accountants import Accountant, as_claim
from dpwitness.mechanisms.carried import Stated, stated_claim
from dpwitness.mechanisms.made import example_of, given_or_made
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import How, Outcome, as_mechanism
from dpwitness.mechanisms.signature import takes
from dpwitness.mechanisms.summary import summary
from dpwitness.neighbours import Data, Pair, Relation, adjacent, adjacent_candidates, adjacent_variations, taken
from dpwitness.related import of_one_sensitivity, relation_of
from dpwitness.runs import Remote, Runner, in_time, on_all_cores, on_cluster
from dpwitness.targets import target_of

#: What an exception is: the end of everything, or an outcome.
ERRORS: Final = ("raise", "outcome")
#: Seconds at least for the first runs, which may import what the others use.
FIRST_RUNS: Final = 10.0
#: Parameters of a mechanism that name the value which it compares with.
CENTRES: Final = ("threshold", "theta", "T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a user says of a mechanism, nothing of it looked at yet. The fields are the parameters of `check`."""

    mechanism: Callable[..., Any] | Mechanism | None = None
    make: Callable[[], Any] | None = None
    epsilon: float | None = None
    delta: float | None = None
    claim: Claim | Accountant | float | None = None
    d_in: Any = None
    neighbours: Relation | Sequence[Any] | None = None
    data: Any = None
    parameters: Mapping[str, Any] | None = None
    outcome: Outcome | None = None
    errors: str = "raise"
    reference: str | None = None
    attack: str | Attack | None = None

    def __post_init__(self) -> None:
        """Settle what is run, the mechanism or one that is made for each run; and what an accountant claims."""
        made = given_or_made(self.mechanism, self.make)
        for name, value in {"mechanism": made, "make": None, "claim": as_claim(self.claim)}.items():
            object.__setattr__(self, name, value)

    @property
    def stated(self) -> Stated:
        """The claim, and what goes to the mechanism's parameters. Raises `InvalidClaim` where there is no claim."""
        thing, delta = plain_function(example_of(self.mechanism)), self.delta
        own = target_of(thing)
        if delta is None and own is not None and own.delta and not is_claim(self.claim):
            delta = _parameters(self.parameters).get("delta")  # it claims the δ that it is run with
        return stated_claim(thing, epsilon=self.epsilon, delta=delta, claim=self.claim, d_in=self.d_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A mechanism that runs, what it claims, and which inputs are neighbours.

    `function` is the user's own, which may name an attack; `own_relation`: the target's own, so that its attack may
    propose inputs too; `attack`: another, which the user names;
    `centre` is the value that the mechanism compares with, `scale` roughly the size of its noise.
    """

    mechanism: Mechanism
    function: Any
    reference: str
    claim: Claim
    relation: Relation
    own_relation: bool
    data: Data | None
    centre: float
    scale: float
    attack: Attack | None = None

    def candidates(self) -> Iterator[Pair]:
        """The relation's pairs, before them those of the attack that the user names.

        Raises `InvalidNeighbours` at the first that the relation does not contain.
        """
        if self.attack is not None:
            yield from (candidate.pair for candidate in self.proposals(self.attack, CHECK_RUNS))
        yield from adjacent_candidates(self.relation, self.data, centre=self.centre, scale=self.scale)

    def proposals(self, attack: Attack, planned: int) -> list[Candidate]:
        """What an attack proposes that the relation calls adjacent, for so many planned confirm runs.

        Raises `InvalidNeighbours` where that is nothing.
        """
        found = attack(dict(self.mechanism.signature.parameters), self.data, self.claim, planned)
        kept = [candidate for candidate in found if adjacent(self.relation, candidate.pair, self.data)]
        if not kept:
            raise InvalidNeighbours(
                f"the attack proposes no pair of {self.relation}: leave out the relation, which the attack brings, or "
                "the attack"
            )
        return kept

    def variations(self, pair: Pair) -> Iterator[Pair]:
        """Pairs of the relation like this one."""
        return adjacent_variations(self.relation, pair, self.data, scale=self.scale)

    def described(self, event: Event) -> str:
        """An event in plain English, with the texts behind numbers and the names of entries that have any."""
        own, mechanism = target_of(plain_function(example_of(self.function))), self.mechanism
        noun = Noun(
            self.relation.noun, mechanism.places, flags=own is not None and own.flags, mixed=mechanism.mixed
        )  # fmt: skip
        return event.describe(noun, mechanism.label)


def prepare(
    statement: Statement,
    effort: Effort,
    how: How | None = None,
    *,
    began: float | None = None,
    deadline: Deadline | None = None,
) -> tuple[Problem, Runner]:
    """Match function, parameters, relation and data; compile; set the clock.

    The one preparation of everything that runs a mechanism. `how`: what an earlier one has shown; `began`, `deadline`:
    when it began, and until when there is time. Raises `BadInput` for what cannot be used, `MechanismError` when the
    mechanism misbehaves on its first run.
    """
    began = time.monotonic() if began is None else began
    stated, function = statement.stated, cast("Callable[..., Any] | Mechanism", statement.mechanism)
    _check_types(statement)
    user = example_of(plain_function(function))
    own, attack = target_of(user), chosen_attack(statement.attack)
    relation = relation_of(user, statement.neighbours, attack.relation)
    data = None if statement.data is None else taken(relation, statement.data)
    values = _parameters(statement.parameters)
    epsilon = stated.epsilon
    if own is not None and epsilon is not None and own.claim not in values and takes(function, own.claim):
        values[own.claim] = epsilon  # a target whose ε has another name
    relation = of_one_sensitivity(user, relation, values, own_relation=statement.neighbours is None)
    first = next(iter(relation.candidates(data)), None)
    if first is None:
        raise InvalidNeighbours("the relation proposes no pair of inputs")
    made = partial(
        as_mechanism, function, first.data, parameters=values, epsilon=epsilon, delta=stated.delta,
        outcome=statement.outcome, neighbour=first.neighbour, errors=statement.errors, how=how or How(),
    )  # fmt: skip
    mechanism = in_time(made, max(effort.max_time, FIRST_RUNS), what=f"{_name(function)} did not finish its first runs")
    problem = Problem(
        mechanism=mechanism,
        function=function,
        reference=statement.reference or _reference(function),
        claim=stated.claim,
        relation=relation,
        own_relation=statement.neighbours is None,
        data=data,
        attack=attack.propose,
        centre=_centre(mechanism),
        scale=1 / (epsilon or stated.claim.parameter or 1.0),
    )
    assert effort.seed is not None  # it and the workers are settled when the effort is made
    assert effort.workers is not None
    runner = Runner(
        mechanism=mechanism, seed=effort.seed, workers=effort.workers, pool=_pool(mechanism, effort),
        # From here on: what it took to read, compile and try out the mechanism is not taken from its runs.
        deadline=deadline or Deadline(time.monotonic() + effort.max_time),
        max_time=effort.max_time,
        began=began,
        progress=effort.progress,
    )  # fmt: skip
    return problem, runner


def _pool(mechanism: Mechanism, effort: Effort) -> Remote | None:
    """The cluster where there is one, else other processes for a mechanism that threads cannot share."""
    workers, seed = effort.workers or 1, effort.seed or 0  # both are settled
    if effort.cluster is not None:
        return on_cluster(mechanism, effort.cluster, workers, seed)
    return on_all_cores(mechanism, workers, seed) if workers > 1 and not mechanism.threads else None


def _centre(mechanism: Mechanism) -> float:
    """The value that a mechanism compares with, by the names of its parameters; 0.0 if none."""
    values = mechanism.signature.parameters
    return next((float(values[name]) for name in CENTRES if isinstance(values.get(name), int | float)), 0.0)


def plain_function(function: Any) -> Any:
    """The user's own callable behind a `Mechanism`."""
    if isinstance(function, Mechanism):
        return function.signature.original or function.signature.function
    return function


def _check_types(statement: Statement) -> None:
    outcome, reference = statement.outcome, statement.reference
    summary(outcome)
    if statement.errors not in ERRORS:
        raise InvalidParameter(f"errors={statement.errors!r:.80} must be {' or '.join(map(repr, ERRORS))}")
    if reference is not None and not isinstance(reference, str):
        raise InvalidParameter(f"reference={reference!r:.80} must be a text, the name that a witness is saved under")


def _parameters(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters that were given for the mechanism, as a copy."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidParameter(f"parameters={given!r:.80} must be a mapping from names to values")
    return dict(given)


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _reference(function: Any) -> str:
    function = getattr(plain_function(function), "py_func", plain_function(function))
    return f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', type(function).__qualname__)}"
