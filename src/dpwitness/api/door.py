"""What the public functions do with a name that they do not have: one line that says which one to give."""

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, Final, ParamSpec, TypeVar

from dpwitness.checks import brief, near
from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.signature import takes
from dpwitness.problem import plain_function

P = ParamSpec("P")
T = TypeVar("T")

#: Names that a parameter had, and what is to be given now.
EARLIER: Final = {
    "max_runs": "runs=…, which is its name in all functions",
    "confidence": "alpha=…, which is 1 − confidence",
    "epsilons": "epsilon=…, a number or a list of them",
}


def public(function: Callable[P, T]) -> Callable[P, T]:
    """Refuse a parameter that a function lacks by `InvalidParameter`, with the name that is meant; a decorator."""
    known = inspect.signature(function).parameters
    first = [name for name, parameter in known.items() if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> T:
        for name in named:
            if name not in known:
                raise InvalidParameter(_unknown(function.__name__, name, named[name], given, known))
        if len(given) > len(first):
            raise InvalidParameter(
                f"{function.__name__} takes {' and '.join(first)} without a name, and no more: "
                f"{brief(given[len(first)])} needs its name, as epsilon=1.0"
            )
        return function(*given, **named)

    return called


def _unknown(function: str, name: str, value: Any, given: tuple[Any, ...], known: Collection[str]) -> str:
    """What to say of a parameter that a function lacks."""
    if name in EARLIER and any(EARLIER[name].startswith(f"{one}=") for one in known):
        return f"{function} has no parameter {name!r}: give {EARLIER[name]}"
    mechanism = next((plain_function(one) for one in given if callable(plain_function(one))), None)
    if mechanism is not None and takes(mechanism, name):
        whose = getattr(mechanism, "__name__", type(mechanism).__name__)
        return f"{function} has no parameter {name!r}, but {whose} has: give parameters={{{name!r}: {brief(value)}}}"
    return f"{function} has no parameter {name!r}{near(name, known) or '; it takes ' + ', '.join(known)}"
