"""How inputs are handed to a mechanism: exactly as they were given, as far as it can take them so."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours import Data, Pair, as_array, copier, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    """How a mechanism gets its inputs: both of a pair in the same way.

    Attributes
    ----------
    lists_as_arrays
        Lists of numbers as arrays: it cannot do with lists.
    empty
        The type of the array that a list without entries becomes: it must not follow from what is not there.
    """

    lists_as_arrays: bool = False
    empty: str = "float64"

    @classmethod
    def arrays(cls, pair: Pair) -> "Handing | None":
        """Lists as arrays, for pairs like this one; None where its inputs are no lists of numbers."""
        both = [as_array(side) if type(side) is list else None for side in pair.sides]
        if both[0] is None or both[1] is None:
            return None
        types = {array.dtype.name for array in both if array is not None and array.size}
        return cls(lists_as_arrays=True, empty=types.pop() if len(types) == 1 else "float64")

    def of(self, data: Data) -> Callable[[], Data]:
        """Return what hands out an input, a fresh copy each time where it could be changed.

        Raises `InvalidNeighbours` for a list that no array holds, where lists are handed over as arrays.
        """
        if not self.lists_as_arrays or type(data) is not list:
            return copier(data)
        array = as_array(data)
        if array is None:
            raise InvalidNeighbours(
                f"input {shown(data)} is a list that no array of numbers holds, and the mechanism takes arrays only: "
                "give arrays, or form='array'"
            )
        return copier(array if array.size else np.empty(array.shape, self.empty))
