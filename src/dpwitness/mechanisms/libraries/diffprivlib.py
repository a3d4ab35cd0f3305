"""diffprivlib: mechanisms that randomise a number with `.randomise(x)`, and those that select by utilities."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from dpwitness.mechanisms.libraries.library import Library, number, of_sensitivity
from dpwitness.neighbours import Relation


class Diffprivlib(Library):
    """Objects with `.randomise(x)`, of whatever class: `.epsilon`, `.delta` (nats) and `.sensitivity` are theirs.

    What `Exponential` and `PermuteAndFlip` are private about is their list of utilities, so this is their input.
    """

    def recognises(self, thing: object) -> bool:
        """Whether it has the method."""
        return hasattr(thing, "randomise")

    def function(self, thing: Any) -> Callable[..., object]:
        """Return its `.randomise`; for one that selects by utilities, that of the same mechanism with others."""
        if not inspect.isclass(thing) and hasattr(thing, "utility"):
            return selection(thing)
        return lambda value: thing.randomise(number(value))

    def neighbours(self, thing: object) -> Relation | None:
        """Return 0 and its sensitivity; None for one that selects."""
        return None if hasattr(thing, "utility") else of_sensitivity(thing)


def selection(thing: Any) -> Callable[..., object]:
    """Return what makes a mechanism like the one given, with the utilities that are its input, and selects."""
    names = inspect.signature(type(thing)).parameters
    settings = {name: getattr(thing, name) for name in names if name not in ("utility", "random_state")}

    def select(utilities: Any) -> object:
        return type(thing)(**settings, utility=np.atleast_1d(utilities).tolist()).randomise()

    return select


LIBRARY = Diffprivlib()
