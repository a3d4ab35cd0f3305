"""The mechanism of a user's function or object: it runs compiled, as plain Python, or many runs a call."""

import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief, class_and_text, is_failure
from dpwitness.errors import (
    CompiledDiffers,
    CompiledDisagrees,
    InvalidParameter,
    MechanismError,
    MechanismRaised,
    SlowMechanism,
)
from dpwitness.mechanisms.columns import Columns, OutputTraits
from dpwitness.mechanisms.command import OutsideFunction
from dpwitness.mechanisms.compiled.compare import first_difference, require_same
from dpwitness.mechanisms.compiled.driver import Refused, reason
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.libraries import library_of
from dpwitness.mechanisms.mechanism import InputConversion, Mechanism
from dpwitness.mechanisms.python import OutcomeSummary, PythonMechanism, VectorisedMechanism
from dpwitness.mechanisms.signature import LEGACY_NAME, LegacyGenerator, Signature, name_of
from dpwitness.mechanisms.sql import SqlFunction, SqlMechanism
from dpwitness.neighbours import Data, Pair, as_array


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """Requirements of a mechanism, from earlier attempts to test it or from the event of a witness."""

    #: Whether the mechanism must run as plain Python.
    interpreted: bool = False
    #: The columns of a witness; None for a file without columns.
    columns: Columns | None = None
    #: Whether the rows of a witness's event are by position.
    by_position: bool = False
    #: The texts that numbers in a witness's event encode, by code.
    texts: Mapping[float, str] = field(default_factory=dict)


#: The names of methods that run an object of a library; a class that has one of these methods is not a mechanism.
RUN_METHODS: Final = ("add_noise", "fit", "quick_result", "randomise")


def as_mechanism(
    function: Callable[..., object] | Mechanism,
    data: Data,
    *,
    parameters: Mapping[str, object] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    outcome: OutcomeSummary | None = None,
    neighbour: Data | None = None,
    errors: str = "raise",
    requirements: Requirements | None = None,
    compile_seconds: float = math.inf,
) -> Mechanism:
    """The `Mechanism` of a user's function or object, with its cost measured; a `Mechanism` as it is, or its `plain`.

    A plain function is compiled if numba can within `compile_seconds`, unless `outcome` is given, or exceptions are
    outcomes. Compiled code is used only if it gives the outcomes of plain Python from the same seeds. The warning
    `SlowMechanism` says that numba refused the function, `CompiledDiffers` that outcomes differ.

    `data`, `neighbour`: the inputs of the first runs. `epsilon` (nats), `delta`: the values of parameters named after
    ε and δ. `outcome`, `errors`: as in `PythonMechanism`. Raises `InvalidParameter` for parameters that do not fit the
    function, and for an object that cannot be called; `MechanismRaised` and `InvalidOutcome` if the first runs fail.
    """
    pair, requirements = Pair(data, data if neighbour is None else neighbour), requirements or Requirements()
    if isinstance(function, Mechanism):
        if requirements.interpreted and function.plain is not None:
            return _measure(function.plain, pair, requirements)
        return apply_requirements(function, requirements)
    compilable = inspect.isfunction(getattr(function, "py_func", function))
    signature = Signature.of(function if compilable else called(function), parameters or {}, epsilon, delta)
    if signature.generator == LEGACY_NAME and not isinstance(function, OutsideFunction):
        legacy = _with_legacy_generator(signature, pair)
        signature, compilable = legacy, compilable and legacy is signature
    refused = None
    if compilable and signature.size is None:
        # An event by columns cannot be counted in the rows of compiled code, which are by position.
        interpreted = requirements.interpreted or requirements.columns is not None
        if outcome is None and errors == "raise" and _takes_arrays(pair) and not interpreted:
            try:
                return _measure(_compiled(signature, pair, compile_seconds), pair, requirements)
            except Refused as error:
                refused = reason(str(error))
            except CompiledDisagrees as error:
                warnings.warn(str(error), CompiledDiffers, stacklevel=2)
                interpreted = True
        if interpreted:
            signature = signature.interpreted()
    made = _kind_of(function, signature, errors)(signature, outcome, errors=errors)
    plain = _measure(with_conversion(made, pair), pair, requirements)
    if refused is not None:
        warnings.warn(
            f"{signature.name} runs as plain Python, {plain.cost.seconds_per_run * 1e6:.0f} µs a run; numba cannot "
            f"compile it: {refused}; docs/refused.md says what to do",
            SlowMechanism,
            stacklevel=2,
        )
    return plain


def _kind_of(function: object, signature: Signature, errors: str) -> type[PythonMechanism]:
    """The class of the mechanism of a function that is not compiled. Raises `InvalidParameter`."""
    if signature.size is not None:
        if errors == "outcome":
            raise InvalidParameter(
                f"errors='outcome' tests single runs, and {signature.name} makes {signature.size} runs a call: take "
                f"the parameter {signature.size!r} away"
            )
        return VectorisedMechanism
    if isinstance(function, OutsideFunction):
        return function.kind
    return SqlMechanism if isinstance(function, SqlFunction) else PythonMechanism


def _takes_arrays(pair: Pair) -> bool:
    """Whether both inputs are arrays of numbers with the same number of axes."""
    axes = {-1 if array is None else array.ndim for array in map(as_array, pair.sides)}
    return len(axes) == 1 and -1 not in axes


def _compiled(signature: Signature, pair: Pair, seconds: float) -> CompiledMechanism:
    """The function as machine code, with the same outcomes as plain Python.

    Raises `Refused` if numba does not compile it, and `CompiledDisagrees` if the outcomes differ.
    """
    compiled, runs_as_python = CompiledMechanism(signature), f"{signature.name} runs as plain Python"
    try:
        compiled.compile_for(pair, seconds)
    except MechanismRaised as error:
        # Python may not raise: `if data:` raises for an array, not for the user's list, and NumPy divides by 0.
        if not _accepts_inputs(with_conversion(PythonMechanism(signature.interpreted()), pair), pair):
            raise
        raise CompiledDisagrees(
            f"{runs_as_python}: on arrays, compiled, it raises an error that it does not raise in Python"
        ) from error
    plain = PythonMechanism(compiled.signature.interpreted())
    plain.begin(None, by_position=True)  # as compiled code writes rows
    compiled.plain = with_conversion(plain, pair)
    difference = first_difference(compiled, plain, pair)
    if difference is not None and signature.generator is None:
        difference = (
            f"{runs_as_python}: it draws its own randomness, so its machine code and Python cannot be compared; let it "
            "take an rng to have it compiled"
        )
    require_same(difference)
    compiled.nested = plain.nested
    return compiled


def _with_legacy_generator(signature: Signature, pair: Pair) -> Signature:
    """The signature; its function gets a `RandomState` if a first run raises an error that asks for a `RandomState`.

    Functions of scikit-learn call `check_random_state`, which takes no `Generator`.
    """
    try:
        with np.errstate():
            signature.call(InputConversion().source(pair.data)(), np.random.Generator(np.random.SFC64(0)), 1)
    except (TypeError, ValueError) as error:
        if "RandomState" in str(error):
            return replace(signature, function=LegacyGenerator(signature.function))
    except BaseException as error:  # it is reported when the mechanism runs
        if not (is_failure(error) or isinstance(error, SystemExit)):
            raise
    return signature


def with_conversion(mechanism: PythonMechanism, pair: Pair) -> PythonMechanism:
    """The mechanism, with lists of numbers as arrays if it runs on arrays and not on the inputs as given.

    Both inputs are tried: on one of them a mechanism may return before an operation that lists lack.
    """
    arrays = InputConversion.to_arrays(pair) if mechanism.converts else None
    if arrays is not None and not _accepts_inputs(mechanism, pair):
        mechanism.conversion = arrays
        if not _accepts_inputs(mechanism, pair):  # then the error for the inputs as given is reported
            mechanism.conversion = InputConversion()
    return mechanism


def _accepts_inputs(mechanism: PythonMechanism, pair: Pair) -> bool:
    """Whether the mechanism makes one run on each input without an error."""
    errors, mechanism.errors = mechanism.errors, "raise"  # an exception here is not an outcome yet
    try:
        for data in pair.sides:
            mechanism.outcomes(data, np.random.Generator(np.random.SFC64(0)), 1)
    except MechanismError:
        return False
    finally:
        mechanism.errors = errors
    return True


def _measure(mechanism: Mechanism, pair: Pair, requirements: Requirements) -> Mechanism:
    apply_requirements(mechanism, requirements).measure(pair)
    if isinstance(mechanism, PythonMechanism) and not (mechanism.reproducible or mechanism.cost.batched):
        slow = mechanism.cost.seconds_per_run > 500e-6  # seeding the global generators takes 40 µs a run
        mechanism.draws_globally = slow and mechanism.repeats_if_seeded(pair)
    return mechanism


def apply_requirements(mechanism: Mechanism, requirements: Requirements) -> Mechanism:
    """The same mechanism, whose rows from now on have the columns and texts of the requirements."""
    mechanism.begin(requirements.columns, by_position=requirements.by_position)
    mechanism.traits.adopt(OutputTraits(labels=dict(requirements.texts)))
    return mechanism


def called(thing: object) -> Callable[..., object]:
    """The function of an object; bound methods, partial functions and other callable objects stay as they are.

    Raises `InvalidParameter` for an object that is not callable, and for a library's class.
    """
    if inspect.isclass(thing) and any(hasattr(thing, name) for name in RUN_METHODS):
        raise InvalidParameter(f"{thing.__name__} is a class: give an object of it, or make=…")
    function: Callable[..., object] = library_of(thing).function(thing)
    if not callable(function):
        raise InvalidParameter(
            f"{brief(thing)} is not callable: give a function, an object with .randomise(x) or an OpenDP measurement"
        )
    name = type(thing).__name__
    # A callable that an extension module defines may have no signature.
    if function is thing and not (inspect.isbuiltin(thing) or name == "method-wrapper"):
        return function

    def wrapper(value: object) -> object:
        return function(value)

    wrapper.__name__ = wrapper.__qualname__ = getattr(thing, "__name__", name)
    wrapper.__module__ = type(thing).__module__
    return wrapper


class MechanismFactory:
    """A callable that makes a new mechanism by `make()` for each call, since many calls may use up one object.

    `example`: a mechanism from which parameters and claim are read; it is never run.
    """

    def __init__(self, make: Callable[[], object]) -> None:
        if not callable(make):
            raise InvalidParameter(f"make={brief(make)} must be a function without parameters that returns a mechanism")
        self.make = make
        try:
            self.example, another = make(), make()
        except BaseException as error:
            if not is_failure(error):
                raise
            raise InvalidParameter(
                f"make= raised {class_and_text(error, brackets=True)}: it must return a new mechanism, without "
                "parameters"
            ) from error
        if self.example is another:
            raise InvalidParameter(
                f"make= returned the same {type(another).__name__} twice: let it make a new object in each call"
            )
        function = called(self.example)
        self.__name__ = self.__qualname__ = name_of(self.example)
        with suppress(TypeError, ValueError):  # a builtin without a signature: `Signature.of` will say so
            self.__signature__ = inspect.signature(function)

    def __call__(self, *values: object, **named: object) -> object:
        """Make a mechanism, and run it once."""
        return self.ready()(*values, **named)

    def ready(self) -> Callable[..., object]:
        """The function of a new mechanism, for one call."""
        return called(self.make())

    def __getstate__(self) -> dict[str, object]:
        # Without the example, which may hold handles of C libraries that cannot be sent.
        return {name: value for name, value in vars(self).items() if name != "example"}


def mechanism_or_factory(mechanism: object, make: Callable[[], object] | None) -> Any:
    """The mechanism, or the factory of `make`. Raises `InvalidParameter` unless exactly one of the two is given."""
    if (mechanism is None) == (make is None):
        both = "" if make is None else ", not both"
        raise InvalidParameter(
            f"give a mechanism, or make=, a function that returns a new mechanism for each run{both}"
        )
    return mechanism if make is None else MechanismFactory(make)


def example_of(thing: object) -> object:
    """The object from which a claim and a relation are read: the example of a factory, or the object itself."""
    return thing.example if isinstance(thing, MechanismFactory) else thing
