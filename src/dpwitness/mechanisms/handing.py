"""How inputs are handed to a mechanism: exactly as they were given, as far as it can take them so."""

from collections.abc import Callable
from dataclasses import dataclass

from dpwitness.neighbours import Data, as_array, copier


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    """How a mechanism gets its inputs.

    Attributes
    ----------
    lists_as_arrays
        Lists of numbers as arrays: it cannot do with lists.
    writeable
        Even large arrays as a copy for each run: it writes to them.
    """

    lists_as_arrays: bool = False
    writeable: bool = False

    def of(self, data: Data) -> Callable[[], Data]:
        """Return what hands out an input, a fresh copy each time where it could be changed."""
        array = as_array(data) if self.lists_as_arrays else None
        return copier(data if array is None else array, writeable=self.writeable)
