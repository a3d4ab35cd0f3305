"""`make=`: a mechanism that is made anew for each run, since one object would be used up by many."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dpwitness.checks import brief
from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.resolve import called

__all__ = ["Made", "example_of", "given_or_made"]


class Made:
    """A callable that makes a new mechanism by `make()` for each call, and calls that.

    Attributes
    ----------
    example
        One that was made to see its parameters, and the claim that it carries. It is never run.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        if not callable(make):
            raise InvalidParameter(f"make={brief(make)} must be a function without parameters that returns a mechanism")
        self.make = make
        try:
            self.example, another = make(), make()
        except Exception as error:
            raise InvalidParameter(
                f"make= raised {type(error).__name__} ({error}): it must return a new mechanism, without parameters"
            ) from error
        if self.example is another:
            raise InvalidParameter(
                f"make= returned the same {type(another).__name__} twice: let it make a new one in each call"
            )
        function = called(self.example)
        self.__name__ = self.__qualname__ = getattr(self.example, "__name__", type(self.example).__name__)
        with suppress(TypeError, ValueError):  # a builtin without a signature: what matches parameters will say so
            self.__signature__ = inspect.signature(function)

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Make one, and run it."""
        return called(self.make())(*values, **named)

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which needs no example: handles of C libraries cannot be sent."""
        return {name: value for name, value in vars(self).items() if name != "example"}


def given_or_made(mechanism: Any, make: Callable[[], Any] | None) -> Any:
    """Return the mechanism, or what makes one for each run. Raises `InvalidParameter` unless exactly one was given."""
    if (mechanism is None) == (make is None):
        raise InvalidParameter("give a mechanism, or make=, a function that returns a new one for each run, not both")
    return mechanism if make is None else Made(make)


def example_of(thing: Any) -> Any:
    """Return the object that carries a claim and a relation: one of those that are made, or the thing itself."""
    return thing.example if isinstance(thing, Made) else thing
