"""The point where a condition begins to hold, by halving an interval.

scipy finds roots in fewer steps, but interpolates: the number that it returns may lie on either side of the root. A
bound must be a value that was tried and refuted. Halving also follows conditions without a root function, such as
functions that overflow to infinity or jump.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Ends = TypeVar("Ends", float, NDArray[np.float64])


def halved(holds: Callable[[Ends], bool | NDArray[np.bool_]], low: Ends, high: Ends, steps: int) -> tuple[Ends, Ends]:
    """The interval from `low` to `high` after some halvings: the condition holds at its high end, not at its low end.

    Arrays are intervals of their own, all halved at once. An end that no step moved was not tried.
    """
    for _ in range(steps):
        middle = (low + high) / 2
        beyond = holds(middle)
        if isinstance(middle, float):
            low, high = (low, middle) if beyond else (middle, high)
        else:
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return low, high
