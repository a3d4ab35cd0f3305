"""The parameters of a function for the generator, the number of runs and the data, recognised by name."""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief, near
from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.compiled.reach import rebuilt

#: The names of the parameter that gets the generator.
GENERATOR_NAMES: Final = frozenset({"rng", "prng", "generator", "random_state"})
#: The name of the generator's parameter in scikit-learn, whose functions may need a `RandomState`.
LEGACY_NAME: Final = "random_state"
#: The names of the parameter that gets the number of runs.
SIZE_NAMES: Final = frozenset({"size", "n_samples"})
#: The names of the parameter that gets ε.
EPSILON_NAMES: Final = frozenset({"epsilon", "eps"})
#: The names of the parameter that gets δ.
DELTA_NAMES: Final = frozenset({"delta"})
#: The names of the parameters that get ε or δ.
BUDGET_NAMES: Final = EPSILON_NAMES | DELTA_NAMES
#: The names of parameters that are never the input.
RESERVED_NAMES: Final = GENERATOR_NAMES | SIZE_NAMES | BUDGET_NAMES


def name_of(thing: object) -> str:
    """The name of a function, or of the function in a `functools.partial`; of another object the name of its type."""
    named = thing.func if isinstance(thing, functools.partial) else thing
    return str(getattr(named, "__name__", type(named).__name__))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A function and the meaning of its parameters."""

    #: The function to call: the user's own, or a copy of it for the interpreter, see `plain`.
    function: Callable[..., object]
    #: The function's name, for messages.
    name: str
    #: The name of the parameter for the generator; None without one.
    generator: str | None
    #: The name of the parameter for the number of runs; None without one.
    size: str | None
    #: The name of the parameter for the input.
    data: str
    #: The names of all parameters but `*args` and `**kwargs`, as declared.
    order: tuple[str, ...]
    #: The values of all parameters but generator, number of runs and input; see `own_copy`.
    parameters: dict[str, Any]
    #: The values of `parameters` as the caller gave them, not copied.
    given: dict[str, Any] = field(default_factory=dict)
    #: The names of the leading parameters that have to be passed by position.
    by_position: tuple[str, ...] = ()
    #: The user's own function, if `function` is a copy of it.
    original: Callable[..., object] | None = None
    #: Whether `function` is a copy that the interpreter runs.
    plain: bool = False

    @classmethod
    def of(
        cls,
        function: Callable[..., object],
        given: Mapping[str, object],
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> "Signature":
        """Match the parameters of a function, or of a callable object, with values given by name.

        `epsilon` (nats), `delta`: the values of parameters named after ε and δ that `given` lacks. Raises
        `InvalidParameter` for unknown and missing parameters, for a function without an input, and for a `size` or
        `n_samples` that is not given and has a default such as 20: it may be a setting of the function.
        """
        plain = getattr(function, "py_func", function)
        name = name_of(plain)
        if inspect.iscoroutinefunction(plain):
            raise InvalidParameter(f"{name} is an async function: wrap it in one that returns asyncio.run({name}(…))")
        try:
            declared, by_position = declared_by(plain)
        except (TypeError, ValueError) as error:
            raise InvalidParameter(f"{name}: its parameters cannot be read ({error}); wrap it in a function") from error
        names = [key for key, parameter in declared.items() if parameter.kind not in _VARIABLE_KINDS]
        generator = next((key for key in names if key in GENERATOR_NAMES), None)
        if generator in given:
            raise InvalidParameter(
                f"{name} gets the generator of each run as {generator!r}: leave it out (parameters=, or --set)"
            )
        size = next((key for key in names if key in SIZE_NAMES - set(given)), None)
        if size is not None and not _is_run_count(declared[size].default):
            raise InvalidParameter(
                f"{name}: {size}={declared[size].default!r} may be the number of runs or a setting of its own; for a "
                f"setting give parameters={{{size!r}: …}} (command line: --set {size}=…), for the number of runs "
                "take its default away"
            )
        data = next((key for key in names if key not in {generator, size, *BUDGET_NAMES}), None)
        if data is None:
            raise InvalidParameter(
                f"{name} takes no data: its first parameter besides the generator, ε and δ is the input"
            )
        own = {key: declared[key].default for key in names if key not in (generator, size, data)}
        made = getattr(plain, "example", plain)  # the mechanism that a factory makes
        if isinstance(made, functools.partial):  # an ε bound by it is the user's choice, not a default
            given = {**{key: made.keywords[key] for key in BUDGET_NAMES & set(made.keywords)}, **given}
        hint = "" if generator else f"; its input is {data!r}, and it takes no generator, which is called rng"
        values = _values(name, own, given, epsilon, delta, hint)
        return cls(
            function=function,
            name=name,
            generator=generator,
            size=size,
            data=data,
            order=tuple(names),
            parameters={key: own_copy(value) for key, value in values.items()},
            given=values,
            by_position=by_position,
        )

    def __reduce__(self) -> tuple[object, ...]:
        # The user's own function is sent: the process that gets it makes the copy for the interpreter.
        fields = {name: getattr(self, name) for name in self.__slots__ if name not in ("function", "original")}
        return _restored, (self.given_function, fields)

    @property
    def given_function(self) -> Callable[..., object]:
        """The user's own function."""
        return self.original or self.function

    def arguments(
        self, data: object, rng: np.random.Generator | None, size: int | None = None
    ) -> tuple[list[object], dict[str, object]]:
        """The positional arguments of a call, and its keyword arguments."""
        bound = {self.data: data, **self.parameters}
        if self.generator is not None:
            bound[self.generator] = rng
        if self.size is not None:
            bound[self.size] = size
        return [bound.pop(name) for name in self.by_position], bound

    def call(self, data: object, rng: np.random.Generator | None, size: int | None = None) -> object:
        """Call the function once."""
        first, rest = self.arguments(data, rng, size)
        return self.function(*first, **rest)

    def interpreted(self) -> "Signature":
        """The signature with the function, and all numba functions that it reaches, as plain Python."""
        plain: Any = getattr(self.function, "py_func", self.function)
        copy = rebuilt(plain, lambda copy, options: copy)
        return replace(self, function=copy, original=self.given_function, plain=True)


@dataclass(frozen=True, slots=True)
class LegacyGenerator:
    """A function that is called with NumPy's legacy generator, a `RandomState` with the bit generator of the run."""

    function: Any

    @property
    def __wrapped__(self) -> Callable[..., object]:
        """The function, from which `inspect` reads the parameters."""
        return self.function  # type: ignore[no-any-return]  # the field is `Any`

    def __call__(self, *values: object, random_state: np.random.Generator, **named: object) -> object:
        """Call the function with a new `RandomState`: an old state may hold one draw of a pair of normal draws."""
        legacy = np.random.RandomState(random_state.bit_generator)
        return self.function(*values, random_state=legacy, **named)


def declared_by(function: Any) -> tuple[Mapping[str, inspect.Parameter], tuple[str, ...]]:
    """The parameters of a function, and the names of its leading parameters that must be passed by position.

    A wrapper with `*args` or `**kwargs` (`functools.wraps`) has the parameters of the wrapped function. With `*args` it
    may read the first argument by position, as `functools.singledispatch` does: parameters up to the input are passed
    by position, and all parameters if the wrapper has no `**kwargs`. Raises the errors of `inspect.signature`.
    """
    wraps = hasattr(function, "__wrapped__")
    code = getattr(function, "__code__", None)  # None for a wrapper in C, as of `functools.cache`
    variable = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) if wraps and code is not None else 0
    declared = inspect.signature(function, follow_wrapped=bool(variable) or code is None).parameters
    places = [
        name for name, one in declared.items() if one.kind not in (inspect.Parameter.KEYWORD_ONLY, *_VARIABLE_KINDS)
    ]
    count = sum(one.kind is inspect.Parameter.POSITIONAL_ONLY for one in declared.values())
    if variable & inspect.CO_VARARGS:
        takes_names = variable & inspect.CO_VARKEYWORDS
        count = next(
            (k + 1 for k, name in enumerate(places) if takes_names and name not in RESERVED_NAMES), len(places)
        )
    return declared, tuple(places[:count])


def _restored(function: Callable[..., object], fields: dict[str, Any]) -> Signature:
    """A signature that another process sent, with a new copy of the function if the interpreter runs a copy."""
    sent = Signature(function=function, **fields)
    return replace(sent, plain=False).interpreted() if sent.plain else sent


def _is_run_count(default: object) -> bool:
    """Whether a default fits a number of runs, as NumPy's `size`: no default, None or 1."""
    return default is inspect.Parameter.empty or default is None or (type(default) is int and default == 1)


#: The kinds of `*args` and `**kwargs`.
_VARIABLE_KINDS: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _values(
    name: str,
    own: Mapping[str, object],
    given: Mapping[str, object],
    epsilon: float | None,
    delta: float | None,
    hint: str,
) -> dict[str, object]:
    """The values of parameters with the defaults `own`; `hint`: the end of a message about a missing value."""
    unknown = [key for key in given if key not in own]
    if unknown:
        known = f"it takes: {', '.join(own) or 'no others'}{near(unknown[0], own)}"
        raise InvalidParameter(f"{name} has no parameter {unknown[0]!r}; {known}")
    values = {key: given.get(key, default) for key, default in own.items()}
    for names, option, value in ((EPSILON_NAMES, "epsilon", epsilon), (DELTA_NAMES, "delta", delta)):
        if value is not None:
            require_no_other(names & set(own), given, option, value)
            values.update({key: float(value) for key in names & set(own) - set(given)})
    missing = [key for key, value in values.items() if value is inspect.Parameter.empty]
    if missing:
        first = missing[0]
        setting = f"parameters={{{first!r}: …}} (command line: --set {first}=…)"
        for names, option in ((EPSILON_NAMES, "epsilon"), (DELTA_NAMES, "delta")):
            if first in names:
                setting = f"{option}=… (command line: --{option})"
        raise InvalidParameter(f"{name} needs a value for {first!r}: give {setting}{hint}")
    return values


def require_no_other(names: Collection[str], given: Mapping[str, object], option: str, value: float) -> None:
    """Raise `InvalidParameter` if all parameters named after an option were given values unlike the option.

    The mechanism would run with one value, and its claim be tested with another.
    """
    if names and all(isinstance(other := given.get(name), Real) and other != value for name in names):
        name = min(names)
        raise InvalidParameter(
            f"{option}={value:g} and parameters={{{name!r}: {brief(given[name])}}} (command line: --set; or bound by "
            f"functools.partial) give {name!r} two values: leave out one of the two. For a claim that is not the "
            "mechanism's own value give claim=…"
        )


def own_copy(value: Any) -> object:
    """A copy of a parameter's value, safe for the caller's object: containers are copied, array copies read-only."""
    if type(value) in (list, tuple, set):
        return type(value)(own_copy(item) for item in value)
    if type(value) is dict:
        return {key: own_copy(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flags.writeable = False
    return value


def takes(function: object, name: str) -> bool:
    """Whether a function has a parameter `name`."""
    try:
        return name in declared_by(getattr(function, "py_func", function))[0]
    except (TypeError, ValueError):  # a builtin without a signature: `Signature.of` will say so
        return False
