"""The one preparation of everything that runs a mechanism: the claim, the parameters and the relation agree."""

import inspect
import math
import numbers
import secrets
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any, Final, TypeVar, cast

import numpy as np

from dpwitness.claim import Claim
from dpwitness.clock import Deadline
from dpwitness.errors import (
    BadInput,
    BudgetTooSmall,
    CompiledDiffers,
    CompiledDisagrees,
    InvalidNeighbours,
    InvalidParameter,
)
from dpwitness.health.new_process import refuse_inside
from dpwitness.job import Job, Progress, plain_function
from dpwitness.mechanisms.libraries import library_of
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import Outcome as OutcomeFunction
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import takes
from dpwitness.neighbours import Relation, as_input, pairs
from dpwitness.runs import default_workers
from dpwitness.targets import target_of

T = TypeVar("T")

SEARCH_RUNS: Final = 600_000
CENTRES: Final = ("threshold", "theta", "T")
MOST_WORKERS: Final = 1024
LONGEST_TIME: Final = 1e9  # seconds; the operating system waits no longer than a few times that


def prepare(
    function: Callable[..., Any] | Mechanism,
    epsilon: float | None,
    neighbours: Relation | Sequence[Any] | None,
    data: Any,
    parameters: Mapping[str, Any] | None,
    outcome: OutcomeFunction | None,
    seed: int | None,
    workers: int | None,
    max_time: float,
    reference: str | None,
    *,
    delta: float | None = None,
    claim: Claim | None = None,
    interpreted: bool = False,
) -> Job:
    """Match function, parameters, relation and data; compile; draw a seed where none is given.

    The one preparation of everything that runs a mechanism. `epsilon` and `delta` go to parameters of the mechanism;
    `claim` is what will be tested, by which the size of the noise is guessed where no `epsilon` is given. Raises
    `BadInput` for what cannot be used, `MechanismError` when the mechanism misbehaves on its first run.
    """
    refuse_inside()
    began = time.monotonic()
    workers = None if workers is None else whole("workers", workers, 1, MOST_WORKERS)
    seed = secrets.randbits(32) if seed is None else whole("seed", seed, 0, (1 << 128) - 1)
    if outcome is not None and not callable(outcome):
        raise InvalidParameter(f"outcome={outcome!r:.80} must be a function of what the mechanism returns")
    if reference is not None and not isinstance(reference, str):
        raise InvalidParameter(f"reference={reference!r:.80} must be a text, the name that a witness is saved under")
    user = plain_function(function)
    own = target_of(user)
    relation = _relation(user, neighbours)
    given = None if data is None else as_input(data)
    values = _parameters(parameters)
    if own is not None and epsilon is not None and own.claim not in values and takes(function, own.claim):
        values[own.claim] = epsilon  # a target whose ε has another name
    relation = _of_one_sensitivity(user, relation, values, own_relation=neighbours is None)
    first = next(iter(relation.candidates(given)), None)
    if first is None:
        raise InvalidNeighbours("the relation proposes no pair of inputs")
    mechanism = as_mechanism(
        function,
        first.data,
        parameters=values,
        epsilon=epsilon,
        delta=delta,
        outcome=outcome,
        neighbour=first.neighbour,
        interpreted=interpreted,
    )
    own_values = mechanism.signature.parameters
    centre = next((float(own_values[name]) for name in CENTRES if isinstance(own_values.get(name), int | float)), 0.0)
    seconds = min(float(max_time), LONGEST_TIME)
    noise = claim.epsilon if epsilon is None and claim is not None else epsilon
    return Job(
        mechanism=mechanism,
        reference=reference or _reference(function),
        relation=relation,
        own_relation=neighbours is None,
        data=given,
        centre=centre,
        scale=1 / noise if noise else 1.0,
        seed=seed,
        workers=workers or default_workers(),
        began=began,
        # From here on: what it took to read, compile and try out the mechanism is not taken from its runs.
        deadline=Deadline(time.monotonic() + seconds),
        max_time=seconds,
    )


def compiled_first(ready: Callable[[bool], Job], work: Callable[[Job], T]) -> T:
    """Work with a job made ready; once more in plain Python where compiled code turns out to give other outcomes.

    `ready`: makes the job, of the interpreted mechanism where it is told so. Warns `CompiledDiffers`.
    """
    try:
        return work(ready(False))
    except CompiledDisagrees as error:
        warnings.warn(str(error), CompiledDiffers, stacklevel=3)
    return work(ready(True))


def _relation(function: Any, given: Relation | Sequence[Any] | None) -> Relation:
    """The relation that was given, a list of pairs among them, else the target's or the object's own."""
    if given is None:
        own = target_of(function)
        relation: Relation | None = own.neighbours if own else library_of(function).neighbours(function)
        if relation is None:
            raise InvalidNeighbours(
                f"{getattr(function, '__name__', 'the mechanism')} does not say which inputs are neighbours: give "
                "neighbours=queries(…), histogram(…), bits(…) or pairs(…) (command line: --pair, --queries or --data)"
            )
        return relation
    if isinstance(given, list | tuple):
        for pair in given:
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise InvalidNeighbours(f"neighbours={given!r:.80}: a list must hold pairs (D, D′), not {pair!r:.40}")
        return pairs(*given)
    if not callable(getattr(given, "candidates", None)) or not callable(getattr(given, "variations", None)):
        raise InvalidNeighbours(
            f"neighbours={given!r:.80} is no relation: give queries(…), histogram(…), bits(…) or a list of pairs"
        )
    return cast(Relation, given)


def _parameters(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters that were given for the mechanism, as a copy."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidParameter(f"parameters={given!r:.80} must be a mapping from names to values")
    return dict(given)


def _of_one_sensitivity(
    function: Any, relation: Relation, values: Mapping[str, Any], *, own_relation: bool
) -> Relation:
    """The relation, of the sensitivity that the mechanism runs with where the relation is the target's own.

    Raises `InvalidParameter` where the user gave a relation of another sensitivity than the mechanism's: its noise
    would be for neighbours that are not those that are tested.
    """
    at = getattr(relation, "sensitivity", None)
    given = values.get("sensitivity", _default_of(function, "sensitivity"))
    if isinstance(given, bool) or not isinstance(given, numbers.Real) or not isinstance(at, numbers.Real):
        return relation
    if math.isclose(given, at, rel_tol=1e-12):
        return relation
    if own_relation and is_dataclass(relation) and not isinstance(relation, type):
        return replace(relation, sensitivity=float(given))
    name = getattr(function, "__name__", type(function).__name__)
    raise InvalidParameter(
        f"{name} runs with sensitivity={given!r}, but its neighbours have sensitivity={at!r}: give the relation "
        f"sensitivity={given!r}, or the mechanism parameters={{'sensitivity': {at!r}}}"
    )


def whole(name: str, value: Any, least: int, most: int | None = None, error: type[BadInput] = InvalidParameter) -> int:
    """A setting that must be a whole number from `least` to `most`; 1e6 is one. Raises `error`."""
    given = value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidParameter(f"{name}={given!r} must be a whole number")
    if int(value) < least or (most is not None and int(value) > most):
        limits = f"at least {least}" if most is None or most > 1 << 64 else f"from {least} to {most}"
        raise error(f"{name}={given!r} must be a whole number {limits}")
    return int(value)


def number(name: str, value: Any) -> float:
    """A setting that must be a number. Raises `InvalidParameter`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidParameter(f"{name}={value!r} must be a number")
    try:
        return float(value)
    except OverflowError as error:
        raise InvalidParameter(f"{name}={value!r:.80} is too large") from error


def check_limits(
    alpha: float, runs: int, max_time: float, name: str = "max_runs", progress: Progress | None = None
) -> int:
    """Return the number of runs; raise where a level, a number of runs (called `name`) or a time makes no sense."""
    if progress is not None and not callable(progress):
        raise InvalidParameter(f"progress={progress!r:.80} must be a function of a stage, two numbers and a note")
    if not 0 < number("alpha", alpha) < 1:
        raise InvalidParameter(f"alpha={alpha!r} must lie between 0 and 1")
    runs = whole(name, runs, 1, error=BudgetTooSmall)
    if not number("max_time", max_time) > 0:
        raise InvalidParameter(f"max_time={max_time!r} must be a positive number of seconds")
    return runs


def usual_search(epsilon: float) -> int:
    """Search runs for a claim: a violation by a given share of ε is the harder to see, the smaller ε is."""
    return int(SEARCH_RUNS * min(max(0.7 / max(epsilon, 1e-9), 1.0), 4.0))


def search_budget(job: Job, given: int | None, usual: int) -> int:
    """Search runs: as given; as usual for compiled code; for slow code what fits in a quarter of the time."""
    if given is not None:
        return whole("search_runs", given, 1, error=BudgetTooSmall)
    if job.mechanism.threads:
        return usual
    data = next(iter(job.relation.candidates(job.data))).data
    some = min(job.mechanism.shard, 16) if job.mechanism.shard < 1000 else 1000
    rows = np.empty((some, max(job.mechanism.width, 8)))
    began = time.perf_counter()
    times: list[float] = []
    while not times or (len(times) < 5 and time.perf_counter() - began < 0.05):
        started = time.perf_counter()
        job.mechanism.fill(data, np.random.default_rng(0), rows, 0)
        times.append(time.perf_counter() - started)
    cost = 2 * min(times) / len(rows)  # the least: a busy machine must not change the search
    # Rounded to a power of ten, so that a small change of speed does not change the search.
    share = 4 if job.mechanism.shard >= 1000 else 8  # plain Python slows down most when the machine is busy
    fits = 10 ** math.floor(math.log10(max(job.max_time / share / cost, 1)))
    return int(min(usual, max(fits, 64)))


def _default_of(function: Any, name: str) -> Any:
    """The default of a function's parameter of that name; None where there is none."""
    try:
        declared = inspect.signature(getattr(function, "py_func", function)).parameters.get(name)
    except (TypeError, ValueError):
        return None
    return None if declared is None or declared.default is inspect.Parameter.empty else declared.default


def _reference(function: Any) -> str:
    function = plain_function(function)
    function = getattr(function, "py_func", function)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}:{name}"
