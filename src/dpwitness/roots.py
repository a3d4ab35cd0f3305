"""The point where a condition begins to hold, by halving an interval.

scipy finds roots in fewer steps, but interpolates: its result may lie on either side of the root, while a bound must be
a value that was tried and refuted. Halving also works for functions that jump or overflow to infinity.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from dpwitness.arrays import Booleans, Floats

Ends = TypeVar("Ends", float, Floats)


def halved(holds: Callable[[Ends], bool | Booleans], low: Ends, high: Ends, steps: int) -> tuple[Ends, Ends]:
    """The ends of an interval after `steps` halvings: the condition holds at the high end, not at the low end.

    Entries of arrays are separate intervals, all halved at once. An end that no step moved was not tried.
    """
    for _ in range(steps):
        middle = (low + high) / 2
        beyond = holds(middle)
        if isinstance(middle, float):
            low, high = (low, middle) if beyond else (middle, high)
        else:
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return low, high
