"""The decorator of public functions: signature and docstring come from the options, unknown names get a clear error."""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence  # noqa: F401  # names in the types of options
from concurrent.futures import Executor  # noqa: F401
from textwrap import fill, indent
from typing import Any, ParamSpec, TypeVar, get_type_hints  # noqa: F401

import numpy as np

from dpwitness.checks import brief, near
from dpwitness.claims import Claim  # noqa: F401
from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.claims import Accountant  # noqa: F401
from dpwitness.mechanisms.mechanism import Mechanism  # noqa: F401
from dpwitness.mechanisms.python import OutcomeSummary  # noqa: F401
from dpwitness.mechanisms.signature import name_of, takes
from dpwitness.neighbours import Relation  # noqa: F401
from dpwitness.options import FUNCTIONS, option_in, options_of
from dpwitness.problem import plain_function
from dpwitness.proposals import Attack  # noqa: F401
from dpwitness.runs import Progress  # noqa: F401

P = ParamSpec("P")
T = TypeVar("T")


def public(function: Callable[P, T]) -> Callable[P, T]:
    """Give a function with `**options` the defaults, signature and docstring of the options listed under its name.

    The option `given` holds the names of the options that the caller gave. An unknown parameter raises
    `InvalidParameter`, which suggests the right name.
    """
    own = list(inspect.signature(function).parameters.values())[:-1]
    options = options_of(function.__name__)
    defaults = {name: option.default for name, option in options.items()}
    kinds = get_type_hints(function, globals()) | get_type_hints(FUNCTIONS[function.__name__][0], globals())
    signature = inspect.Signature(
        [one.replace(annotation=kinds[one.name]) for one in own]
        + [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name])
            for name, default in defaults.items()
        ],
        return_annotation=kinds["return"],
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
        with np.errstate(all="warn", under="ignore"):  # NumPy's default, which the user's modules may have changed
            return function(*given, **named)

    said_of = {one.name: option_in(one.annotation) for one in own} | options
    lines = [line for name, option in said_of.items() for line in (name, indent(fill(option.reference, 112), "    "))]
    text, returns, result = inspect.cleandoc(function.__doc__ or "").partition("Returns\n-------\n")
    called.__doc__ = "\n".join([f"{text.rstrip()}\n", "Parameters", "----------", *lines, "", f"{returns}{result}"])
    called.__signature__ = signature  # type: ignore[attr-defined]  # `inspect` and Sphinx read it first
    called.__annotations__ = {name: kinds[name] for name in (*signature.parameters, "return")}
    return called


def _unknown(function: str, name: str, value: object, given: tuple[object, ...], known: Collection[str]) -> str:
    """The message for a parameter that a function lacks."""
    mechanism = next((plain_function(one) for one in given if callable(plain_function(one))), None)
    if mechanism is not None and takes(mechanism, name):
        whose = name_of(mechanism)
        return f"{function} has no parameter {name!r}, but {whose} has: give parameters={{{name!r}: {brief(value)}}}"
    return f"{function} has no parameter {name!r}{near(name, known) or '; it takes ' + ', '.join(known)}"
