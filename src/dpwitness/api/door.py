"""Makes a function public: its options give the signature and the docstring, and unknown names get a helpful error."""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence  # noqa: F401  # see `_hint`
from concurrent.futures import Executor  # noqa: F401
from textwrap import fill, indent
from typing import Any, Final, ForwardRef, ParamSpec, TypeVar

import numpy as np

from dpwitness.checks import brief, near
from dpwitness.claims import Claim  # noqa: F401
from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.claims import Accountant  # noqa: F401
from dpwitness.mechanisms.mechanism import Mechanism  # noqa: F401
from dpwitness.mechanisms.python import Outcome  # noqa: F401
from dpwitness.mechanisms.signature import name_of, takes
from dpwitness.neighbours import Relation  # noqa: F401
from dpwitness.options import FUNCTIONS, Option, option_in, options_of, type_in
from dpwitness.problem import plain_function
from dpwitness.proposals import Attack  # noqa: F401
from dpwitness.runs import Progress  # noqa: F401

P = ParamSpec("P")
T = TypeVar("T")

#: Names that a parameter had, and what is to be given now.
EARLIER: Final = {
    "max_runs": "runs=…, which is its name in all functions",
    "confidence": "alpha=…, which is 1 − confidence",
    "epsilons": "epsilon=…, a number or a list of them",
}


def public(function: Callable[P, T]) -> Callable[P, T]:
    """Give a function that takes `**options` the options listed under its name: defaults, signature and docstring.

    It gets the names of those that the caller gave, too, as `given`. An unknown parameter raises `InvalidParameter`,
    which suggests the right name.
    """
    declared = inspect.signature(function)
    own = [one for one in declared.parameters.values() if one.kind is not one.VAR_KEYWORD]
    options = options_of(function.__name__)
    defaults = {name: option.default for name, option in options.items()}
    kinds = FUNCTIONS[function.__name__][0].__annotations__
    signature = declared.replace(
        parameters=[one.replace(annotation=type_in(one.annotation)) for one in own]
        + [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=type_in(kinds[name]))
            for name, default in defaults.items()
        ]
    )

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> T:
        for name in named:
            if name not in signature.parameters:
                raise InvalidParameter(_unknown(function.__name__, name, named[name], given, signature.parameters))
        if len(given) > len(own):
            raise InvalidParameter(
                f"{function.__name__} takes {' and '.join(one.name for one in own)} without a name, and no more: "
                f"{brief(given[len(own)])} needs its name, as epsilon=1.0"
            )
        try:
            signature.bind(*given, **named)
        except TypeError as error:  # a required parameter is missing, or one is given twice
            raise TypeError(f"{function.__name__}() {error}") from None
        said = frozenset(named)
        named.update({name: default for name, default in defaults.items() if name not in named}, given=said)
        with np.errstate(all="warn", under="ignore"):  # as by default, whatever the user's modules have set
            return function(*given, **named)

    called.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect` and Sphinx look at first
    hints = {one.name: _hint(one.annotation) for one in signature.parameters.values()}
    called.__annotations__ = {**hints, "return": declared.return_annotation}  # what `typing.get_type_hints` looks at
    called.__doc__ = _reference(function, {one.name: option_in(one.annotation) for one in own} | options)
    return called


def _hint(kind: object) -> Any:
    """A type that may be written as text, whose names are looked up here: those of `options` are not imported there."""
    return ForwardRef(kind, module=__name__) if isinstance(kind, str) else kind


def _reference(function: Callable[..., object], options: Mapping[str, Option]) -> str:
    """The docstring with a section of all parameters, before what it says of the result."""
    text, returns, result = inspect.cleandoc(function.__doc__ or "").partition("Returns\n-------\n")
    lines = [line for name, option in options.items() for line in (name, indent(fill(option.reference, 112), "    "))]
    return "\n".join([f"{text.rstrip()}\n", "Parameters", "----------", *lines, "", f"{returns}{result}"])


def _unknown(function: str, name: str, value: object, given: tuple[object, ...], known: Collection[str]) -> str:
    """What to say of a parameter that a function lacks."""
    if name in EARLIER and any(EARLIER[name].startswith(f"{one}=") for one in known):
        return f"{function} has no parameter {name!r}: give {EARLIER[name]}"
    mechanism = next((plain_function(one) for one in given if callable(plain_function(one))), None)
    if mechanism is not None and takes(mechanism, name):
        whose = name_of(mechanism)
        return f"{function} has no parameter {name!r}, but {whose} has: give parameters={{{name!r}: {brief(value)}}}"
    return f"{function} has no parameter {name!r}{near(name, known) or '; it takes ' + ', '.join(known)}"
