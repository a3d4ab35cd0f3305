"""diffprivlib: mechanisms that randomise a number with `.randomise(x)`."""

import inspect
from collections.abc import Callable
from typing import Any

from dpwitness.mechanisms.libraries.library import Library, number, of_sensitivity
from dpwitness.neighbours import Relation


class Diffprivlib(Library):
    """Objects with `.randomise(x)`, of whatever class: `.epsilon`, `.delta` (nats) and `.sensitivity` are theirs."""

    def recognises(self, thing: object) -> bool:
        """Whether it has the method."""
        return hasattr(thing, "randomise") and not inspect.isroutine(thing)

    def function(self, thing: Any) -> Callable[..., Any]:
        """Return its `.randomise`."""

        def randomise(value: Any) -> Any:
            return thing.randomise(number(value))

        return randomise

    def neighbours(self, thing: Any) -> Relation | None:
        """Return 0 and its sensitivity."""
        return of_sensitivity(thing)


LIBRARY = Diffprivlib()
