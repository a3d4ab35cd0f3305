"""python-dp (Google's C++ library as PyDP): mechanisms that randomise a number with `.add_noise(x)`."""

import inspect
from collections.abc import Callable
from typing import Any

from dpwitness.mechanisms.libraries.library import Library, number, of_sensitivity
from dpwitness.neighbours import Relation


class PythonDP(Library):
    """Objects with `.add_noise(x)`, of whatever class: `.epsilon` (nats) and `.sensitivity` are theirs."""

    def recognises(self, thing: object) -> bool:
        """Whether it has the method."""
        return hasattr(thing, "add_noise") and not inspect.isroutine(thing)

    def function(self, thing: Any) -> Callable[..., Any]:
        """Return its `.add_noise`."""

        def add_noise(value: Any) -> Any:
            return thing.add_noise(number(value))

        return add_noise

    def neighbours(self, thing: Any) -> Relation | None:
        """Return 0 and its sensitivity."""
        return of_sensitivity(thing)


LIBRARY = PythonDP()
