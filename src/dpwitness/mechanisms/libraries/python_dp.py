"""python-dp (Google's C++ library as PyDP): mechanisms that randomise a number, and algorithms over a list.

The former have `.add_noise(x)`, the latter `.quick_result(list)`, which begins anew with each list.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpwitness.mechanisms.libraries.library import Library, number, of_sensitivity
from dpwitness.neighbours import Relation


class PythonDP(Library):
    """Objects with `.add_noise(x)` or `.quick_result(list)`, of whatever class.

    `.epsilon` (nats), `.delta` and `.sensitivity` are theirs.
    """

    def recognises(self, thing: object) -> bool:
        """Whether it has one of the methods."""
        return not isinstance(thing, type) and (hasattr(thing, "add_noise") or hasattr(thing, "quick_result"))

    def function(self, thing: Any) -> Callable[..., object]:
        """Return its `.add_noise`, or its `.quick_result` of a list of numbers."""
        if hasattr(thing, "quick_result"):
            return lambda values: thing.quick_result(np.atleast_1d(values).tolist())
        return lambda value: thing.add_noise(number(value))

    def neighbours(self, thing: object) -> Relation | None:
        """Return 0 and its sensitivity."""
        return of_sensitivity(thing)


LIBRARY = PythonDP()
