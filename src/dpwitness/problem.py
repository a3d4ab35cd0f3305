"""Statements and efforts of users, and problems that are ready to run.

`Statement` and `Effort` hold the options of a public function; `prepare` turns both into a `Problem` and its `Runner`.
"""

import inspect
import math
import numbers
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, Self, cast, get_args

from _dpwitness_session import SMALLEST_ALPHA
from dpwitness.candidate import Candidate
from dpwitness.checks import brief, class_and_text, kind, number, probability, seconds, seed_or_new, too_deep, whole
from dpwitness.claims import Claim, is_claim
from dpwitness.errors import (
    DPWitnessError,
    InvalidNeighbours,
    InvalidParameter,
    MechanismRaised,
)
from dpwitness.events import Event, Noun
from dpwitness.events.event import LONGEST_TEXT, NO_NUMBER
from dpwitness.evidence import MOST_RUNS
from dpwitness.files import as_utf8, from_here
from dpwitness.jit import with_numba
from dpwitness.machine import Deadline
from dpwitness.mechanisms.catalog import FILE_PREFIX, load
from dpwitness.mechanisms.claims import Accountant, StatedClaim, as_claim, stated_claim
from dpwitness.mechanisms.command import OutsideFunction
from dpwitness.mechanisms.libraries import library_of
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.python import OutcomeSummary, summary
from dpwitness.mechanisms.resolve import Requirements, as_mechanism, example_of, mechanism_or_factory
from dpwitness.mechanisms.signature import name_of, require_no_other, takes
from dpwitness.neighbours import (
    Data,
    Pair,
    Relation,
    adjacent,
    adjacent_candidates,
    adjacent_unusual,
    adjacent_variations,
    as_relation,
    proposed_pairs,
    taken,
)
from dpwitness.options import ALPHA, CHECK_RUNS, MAX_TIME, MOST_RATIO, MOST_WORKERS, Errors, LastBits
from dpwitness.proposals import Attack, chosen_attack
from dpwitness.runs import (
    OVERRUN_SECONDS,
    Dispatcher,
    Pool,
    Progress,
    Runner,
    cluster_of,
    default_workers,
    is_of_dask,
    local_processes,
    within_seconds,
)
from dpwitness.targets import target_of

#: The share of α for a leak in the last bits of floating-point outcomes: few runs show a leak, and a verdict at the
#: rest of α needs only 0.001 nats more evidence.
BITS_SHARE: Final = 1e-3
#: The module that a check of plain Python imports before its runs, for its health checks: its import is slow, and on a
#: busy machine would take all of the runs' time.
SLOW_MODULE: Final = "scipy.stats"
#: The seconds, beside `max_time`, for reading, compiling and trying out a mechanism, whose first runs may import
#: libraries. With a larger value a check could return more than 10 s after its `max_time`.
FIRST_RUNS_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The checked options of a test's effort; a seed and workers are chosen by default. Raises `InvalidParameter`."""

    alpha: float = ALPHA
    runs: int = CHECK_RUNS
    max_time: float = MAX_TIME
    detectable_ratio: float | None = None
    search_runs: int | None = None
    seed: int | None = None
    workers: int | None = None
    cluster: Any = None
    executor: Executor | None = None
    progress: Progress | None = None
    bits: LastBits = True
    given: frozenset[str] = frozenset()  # the names of the options that the caller gave, if known

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Self:
        """The effort among the options of a public function."""
        return cls(**_fields_in(options, cls))

    @property
    def elsewhere(self) -> bool:
        """Whether the user's executor or cluster makes the runs."""
        return self.executor is not None or self.cluster is not None

    @property
    def limits_by_default(self) -> bool:
        """Whether the limits of runs and time are the defaults."""
        return self.given.isdisjoint({"runs", "max_time"}) and (self.runs, self.max_time) == (CHECK_RUNS, MAX_TIME)

    @property
    def level(self) -> float:
        """The false-alarm probability of the verdict: α less `level_of_bits`."""
        return self.alpha - self.level_of_bits

    @property
    def level_of_bits(self) -> float:
        """The false-alarm probability of a leak in the last bits of floats; 0 if the bits are not tested."""
        return BITS_SHARE * self.alpha if self.bits else 0.0

    def __post_init__(self) -> None:
        if not (isinstance(self.bits, bool) or (isinstance(self.bits, str) and self.bits == "strict")):
            raise InvalidParameter(f'bits={brief(self.bits)} must be True, False or "strict"')
        if self.progress is not None and not callable(self.progress):
            raise InvalidParameter(
                f"progress={brief(self.progress)} must be a function of a stage, two numbers and a note"
            )
        if probability("alpha", self.alpha) < SMALLEST_ALPHA:
            raise InvalidParameter(f"alpha={brief(self.alpha)} is too small: give at least {SMALLEST_ALPHA}")
        address = isinstance(self.cluster, str) and "://" in self.cluster
        if not (self.cluster is None or address or hasattr(self.cluster, "scheduler_info")):
            raise InvalidParameter(
                f"cluster={brief(self.cluster)} must be the address of a Dask scheduler such as "
                '"tcp://host:8786", or a distributed.Client'
            )
        if self.executor is not None:
            wanted = "an executor of concurrent.futures, such as ProcessPoolExecutor(8)"
            kind("executor", self.executor, Executor, wanted, InvalidParameter)
        if self.executor is not None and self.cluster is not None:
            raise InvalidParameter("executor= and cluster= both say where the runs are made: give one of the two")
        settled = {
            "runs": min(whole("runs", self.runs, 1), MOST_RUNS),
            # The operating system can wait for a few times 10⁹ s at most.
            "max_time": min(seconds("max_time", self.max_time), 1e9),
            "seed": seed_or_new(self.seed),
            "workers": default_workers() if self.workers is None else whole("workers", self.workers, 1, MOST_WORKERS),
        }
        if self.detectable_ratio is not None:
            ratio = number("detectable_ratio", self.detectable_ratio)
            if not 1 <= ratio <= MOST_RATIO:
                raise InvalidParameter(f"detectable_ratio={brief(ratio)} must lie between 1 and {MOST_RATIO:g}")
            settled["detectable_ratio"] = ratio
        if self.search_runs is not None:
            settled["search_runs"] = min(whole("search_runs", self.search_runs, 0), MOST_RUNS)
        for name, value in settled.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A user's statement of what is tested: the options of `check` except the effort's options. Nothing has run yet."""

    mechanism: Callable[..., Any] | Mechanism | str | None = None
    make: Callable[[], Any] | None = None
    epsilon: float | None = None
    delta: float | None = None
    claim: Claim | Accountant | float | str | None = None
    d_in: Any = None
    neighbours: Relation | Sequence[Any] | None = None
    data: Any = None
    parameters: Mapping[str, Any] | None = None
    outcome: OutcomeSummary | None = None
    errors: str = "raise"
    reference: str | None = None
    attack: str | Attack | None = None
    claim_needed: bool = True  # whether a claim is judged; False: a parameter is measured

    @classmethod
    def of(cls, mechanism: Any, options: Mapping[str, object]) -> Self:
        """The statement of a mechanism by the options of a public function."""
        return cls(mechanism=mechanism, **_fields_in(options, cls))

    def __post_init__(self) -> None:
        """Settle the mechanism, by its name or its factory, and the claim."""
        mechanism: Any = mechanism_or_factory(self.mechanism, self.make)
        reference = self.reference
        if isinstance(mechanism, str):
            reference = mechanism if reference is None else reference
            mechanism = load(mechanism)
        settled = {"mechanism": mechanism, "make": None, "claim": as_claim(self.claim), "reference": reference}
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    @property
    def stated(self) -> StatedClaim:
        """The claim, and the values of the mechanism's ε and δ. Raises `InvalidClaim` without a claim."""
        thing, delta = plain_function(example_of(self.mechanism)), self.delta
        own = target_of(thing)
        if delta is None and own is not None and own.delta and not is_claim(self.claim):
            delta = given_parameters(self.parameters).get("delta")  # the target claims the δ with which it runs
        return stated_claim(
            thing, epsilon=self.epsilon, delta=delta, claim=self.claim, d_in=self.d_in, needed=self.claim_needed
        )

    def require_types(self) -> None:
        """Raise `InvalidParameter` for an `outcome`, `errors` or `reference` of another type."""
        summary(self.outcome)
        if not isinstance(self.errors, str) or self.errors not in get_args(Errors):
            raise InvalidParameter(f"errors={brief(self.errors)} must be {' or '.join(map(repr, get_args(Errors)))}")
        if self.reference is not None:
            kind("reference", self.reference, str, "a text, the name that a witness is saved under", InvalidParameter)


def _fields_in(options: Mapping[str, object], kind: type[Effort | Statement]) -> dict[str, Any]:
    return {field.name: options[field.name] for field in fields(kind) if field.name in options}


@dataclass(frozen=True, slots=True, kw_only=True)
class HowRun:
    """The options --outcome, --errors and --python of a command line; a field is None if its option is absent."""

    outcome: str | None = None
    errors: Literal["outcome"] | None = None
    python: str | None = None

    @classmethod
    def of(cls, statement: Statement) -> Self:
        """The options for the mechanism of a statement; an outcome function is named as mechanisms are."""
        names, function = statement.outcome, example_of(plain_function(statement.mechanism))
        if names is not None and not isinstance(names, str):
            names = _reference(names) if callable(names) else ",".join(names)
        python = getattr(function, "python", None) if isinstance(function, OutsideFunction) else None
        return cls(
            outcome=None if names is None else as_utf8(names),
            errors="outcome" if statement.errors == "outcome" else None,
            python=None if python is None else as_utf8(from_here(Path(python))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A mechanism that runs, its claim, and the relation of its inputs.

    `function` is the user's own function, whose target may name an attack; `own_relation`: whether the relation is the
    target's, so that the target's attack may propose inputs too; `attack`: the attack that the user names; `centre` is
    the value with which the mechanism compares, `scale` roughly the scale of its noise.
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
    accepted: Pair | None = None  # the relation's first pair whose inputs the mechanism accepts
    how_run: HowRun = HowRun()

    @property
    def first(self) -> Pair:
        """The first pair of the relation that the mechanism accepts."""
        return self.accepted or next(proposed_pairs(self.relation, self.data))

    def candidates(self) -> Iterator[Pair]:
        """The pairs of the user's attack, then of the relation. Raises the errors of `adjacent_candidates`."""
        if self.attack is not None:
            yield from (candidate.pair for candidate in self.proposals(self.attack, CHECK_RUNS))
        yield from adjacent_candidates(self.relation, self.data, centre=self.centre, scale=self.scale)

    def proposals(self, attack: Attack, planned: int) -> list[Candidate]:
        """The candidates of an attack that the relation calls adjacent; `planned`: the planned number of confirm runs.

        Raises `InvalidNeighbours` without adjacent candidates, and `InvalidParameter` if the attack raises, or proposes
        an object that is not a candidate.
        """
        try:
            proposed = list(attack(dict(self.mechanism.signature.parameters), self.data, self.claim, planned))
        except DPWitnessError:
            raise
        except Exception as error:  # the user's own attack may raise anything
            raise InvalidParameter(f"attack={brief(attack)} raised {class_and_text(error)}") from error
        for candidate in proposed:
            if not isinstance(candidate, Candidate) or not callable(getattr(candidate.event, "contains", None)):
                raise InvalidParameter(
                    f"attack={brief(attack)} proposes {brief(candidate)}: it must be a Candidate of a pair and an event"
                )
        candidates = [candidate for candidate in proposed if adjacent(self.relation, candidate.pair, self.data)]
        if not candidates:
            raise InvalidNeighbours(
                f"the attack proposes no pair of {self.relation}: leave out the relation (the attack has its own), or "
                "the attack"
            )
        return candidates

    def variations(self, pair: Pair) -> Iterator[Pair]:
        """The variations of a pair within the relation, with the data if they are given."""
        return adjacent_variations(self.relation, pair, self.data, scale=self.scale)

    def unusual(self) -> Iterator[Pair]:
        """The unusual pairs of the relation; no pairs if data are given, since data must not change."""
        if self.data is not None:
            return iter(())
        return adjacent_unusual(self.relation, centre=self.centre, scale=self.scale)

    def described(self, event: Event) -> str:
        """An event in plain English, with names of entries, and with texts in place of their numbers."""
        text = event.describe(self.noun, self.mechanism.label)
        return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"

    @property
    def noun(self) -> Noun:
        """The noun for an entry of an outcome, with the names and flags of entries."""
        own, mechanism = target_of(plain_function(example_of(self.function))), self.mechanism
        single = not mechanism.places and (mechanism.width <= 1 or bool(mechanism.parts))
        return Noun(
            "output" if single else self.relation.noun, mechanism.places, flags=own is not None and own.flags,
            mixed={c: self._others(kinds) for c, kinds in mechanism.mixed.items()}, single=single,
            parts=mechanism.parts,
        )  # fmt: skip

    def _others(self, kinds: Set[float | None]) -> str:
        """The words for outcomes that are not numbers: if all are exceptions, their classes."""
        if None in kinds:
            return NO_NUMBER
        raises = "raises an exception"
        classes = sorted(self.mechanism.label(code) or raises for code in kinds if code is not None)
        return " or ".join(classes) if len(classes) <= 3 else raises


def prepare(
    statement: Statement,
    effort: Effort,
    how: Requirements | None = None,
    *,
    began: float | None = None,
    deadline: Deadline | None = None,
) -> tuple[Problem, Runner]:
    """Make the problem and the runner of a statement and an effort: match parameters, compile, make the first runs.

    `how`: the requirements that an earlier attempt found; `began`, `deadline`: the start and the deadline of an earlier
    attempt. Raises `BadInput` for an argument that cannot be used, and `MechanismError` if the mechanism misbehaves on
    its first run.
    """
    began = time.monotonic() if began is None else began
    stated, function = statement.stated, cast("Callable[..., Any] | Mechanism", statement.mechanism)
    statement.require_types()
    user = example_of(plain_function(function))
    own = target_of(user)
    attack, relation_of_attack = chosen_attack(statement.attack)
    relation = _relation_of(user, statement.neighbours, relation_of_attack)
    if statement.d_in is not None:
        library_of(user).require_distance(user, statement.d_in, relation)
    data = None if statement.data is None else taken(relation, statement.data)
    values = given_parameters(statement.parameters)
    epsilon = stated.epsilon
    if own is not None and epsilon is not None and takes(function, own.claim):
        require_no_other((own.claim,), values, "epsilon", epsilon)
        values[own.claim] = epsilon  # the target's parameter ε may have another name
    relation = _with_sensitivity(user, relation, values, own_relation=statement.neighbours is None)
    resolve = partial(
        as_mechanism, function, parameters=values, epsilon=epsilon, delta=stated.delta, outcome=statement.outcome,
        errors=statement.errors, requirements=how or Requirements(),
        compile_seconds=max(effort.max_time / 4, FIRST_RUNS_SECONDS),  # plain Python needs the rest
    )  # fmt: skip
    with_numba()  # not in the thread below, where an import that takes too long would go on during the next check
    first, mechanism = within_seconds(
        partial(_first_accepted, resolve, islice(proposed_pairs(relation, data), 32)),
        max(effort.max_time if deadline is None else deadline.left, FIRST_RUNS_SECONDS),
        what=f"{name_of(function)} did not finish its first runs",
    )
    if not mechanism.cost.compiled:
        import_module(SLOW_MODULE)
    problem = Problem(
        mechanism=mechanism,
        function=function,
        reference=statement.reference or _reference(function),
        claim=stated.claim,
        relation=relation,
        own_relation=statement.neighbours is None,
        data=data,
        attack=attack,
        accepted=first,
        how_run=HowRun.of(statement),
        centre=_centre(mechanism),
        scale=min(1 / (epsilon or stated.claim.parameter or 1.0), 1e12),  # with a larger scale inputs exceed 64 bits
    )
    assert effort.seed is not None  # `Effort` settles the seed and the workers
    assert effort.workers is not None
    runner = Runner(
        mechanism=mechanism, seed=effort.seed, workers=effort.workers, pool=_pool(mechanism, effort),
        deadline=deadline or _deadline(began, effort.max_time),
        max_time=effort.max_time,
        began=began,
        due=began + effort.max_time + OVERRUN_SECONDS,
        progress=effort.progress,
    )  # fmt: skip
    return problem, runner


def _deadline(began: float, max_time: float) -> Deadline:
    """The deadline of the runs of a prepared mechanism.

    The first `FIRST_RUNS_SECONDS` of its preparation do not count, and after a long preparation runs still have
    `FIRST_RUNS_SECONDS`, or `max_time` if that is less.
    """
    now = time.monotonic()
    return Deadline(max(min(began + FIRST_RUNS_SECONDS, now) + max_time, now + min(max_time, FIRST_RUNS_SECONDS)))


def _relation_of(function: object, given: Relation | Sequence[object] | None, otherwise: Relation | None) -> Relation:
    """The given relation, else the target's or the object's relation, else `otherwise`. Raises `InvalidNeighbours`."""
    if given is not None:
        return as_relation(given)
    own = target_of(function)
    stated: Relation | Sequence[object] | None = own.neighbours if own else library_of(function).neighbours(function)
    relation = otherwise if stated is None else as_relation(stated)
    if relation is None:
        raise InvalidNeighbours(
            f"{getattr(function, '__name__', 'the mechanism')} does not say which inputs are neighbours: give "
            "neighbours=records(…), queries(…), histogram(…), bits(…) or pairs(…) (command line: --records, "
            "--pair, --queries or --data)"
        )
    return relation


def _with_sensitivity(
    function: object, relation: Relation, values: Mapping[str, object], *, own_relation: bool
) -> Relation:
    """The relation; the target's own relation gets the sensitivity with which the mechanism runs.

    Raises `InvalidParameter` if the user's relation has another sensitivity: the mechanism's noise would be for other
    neighbours than the tested ones.
    """
    at = relation.sensitivity
    given = values.get("sensitivity", _default_sensitivity(function))
    if isinstance(given, bool) or not isinstance(given, numbers.Real) or not isinstance(at, numbers.Real):
        return relation
    if math.isclose(given, at, rel_tol=1e-12):
        return relation
    scaled = relation.of_sensitivity(float(given))
    if own_relation and scaled is not relation:
        return scaled
    raise InvalidParameter(
        f"{getattr(function, '__name__', type(function).__name__)} runs with sensitivity={given!r}, but its neighbours "
        f"have sensitivity={at!r}: give the relation sensitivity={given!r}, or the mechanism "
        f"parameters={{'sensitivity': {at!r}}}"
    )


def _default_sensitivity(function: Any) -> Any:
    """The default of a function's parameter `sensitivity`; None without the parameter."""
    try:
        return inspect.signature(getattr(function, "py_func", function)).parameters["sensitivity"].default
    except (KeyError, TypeError, ValueError):  # no such parameter, or no signature
        return None


def _first_accepted(resolve: Callable[..., Mechanism], pairs: Iterable[Pair]) -> tuple[Pair, Mechanism]:
    """The first accepted pair, and the mechanism tried on it. Raises the first pair's error, or `InvalidNeighbours`."""
    refused: MechanismRaised | None = None
    for pair in pairs:
        try:
            return pair, resolve(pair.data, neighbour=pair.neighbour)
        except MechanismRaised as error:
            if not error.on_both_inputs:
                raise error if refused is None else refused from error.__cause__
            refused = refused or error
    raise refused or InvalidNeighbours("the relation proposes no pair of inputs")


def _pool(mechanism: Mechanism, effort: Effort) -> Dispatcher | None:
    """The dispatcher to the user's executor or cluster, or to processes if threads cannot share the mechanism; or None.

    None: threads of this process make the runs.
    """
    workers, seed = effort.workers or 1, effort.seed or 0  # neither is None, see `Effort`
    cluster = effort.executor if is_of_dask(effort.executor) else effort.cluster
    if cluster is not None:
        pool: Pool = cluster_of(cluster)
    elif effort.executor is not None:
        pool = Pool(effort.executor, workers)
    elif workers > 1 and not mechanism.threads:
        pool = local_processes(workers)
    else:
        return None
    return Dispatcher(mechanism, pool, seed=seed, threads=workers)


def _centre(mechanism: Mechanism) -> float:
    """The finite value of the parameter `threshold`, `theta` or `T` of a mechanism; 0.0 without these parameters."""
    values = mechanism.signature.parameters
    given = (value for name in ("threshold", "theta", "T") if isinstance(value := values.get(name), int | float))
    return next((float(value) for value in given if abs(value) <= sys.float_info.max), 0.0)


def plain_function(function: object) -> object:
    """The user's own callable in a `Mechanism`; any other object itself."""
    if isinstance(function, Mechanism):
        return function.signature.given_function
    return function


def given_parameters(given: Mapping[str, object] | None) -> dict[str, Any]:
    """A copy of the given parameters of the mechanism. Raises `InvalidParameter`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidParameter(f"parameters={brief(given)} must be a mapping from names to values")
    for name, value in given.items():
        if too_deep(value):
            raise InvalidParameter(f"parameter {name} holds itself, or is nested too deep: give plain values")
    return dict(given)


def _reference(function: object) -> str:
    function = getattr(plain_function(function), "py_func", plain_function(function))
    module = getattr(function, "__module__", None) or "?"  # a function made by `exec` may have no module
    script = getattr(sys.modules["__main__"], "__file__", None)
    if module == "__main__" and script is not None and os.path.isfile(script):  # another process needs the file's name
        module = from_here(Path(script).resolve())
    elif (
        str(module).startswith(FILE_PREFIX) and (file := getattr(sys.modules.get(module), "__file__", None)) is not None
    ):
        module = from_here(Path(file))
    return f"{module}:{getattr(function, '__qualname__', type(function).__qualname__)}"
