"""The types of arrays, by their entries, and the difference by which equal numbers may differ."""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]
#: Outcomes, one a row, in the encoding of `dpwitness.events.encoding`, with NaN behind the last entry.
Rows: TypeAlias = NDArray[np.float64]

#: The relative difference up to which two numbers count as equal, the order of rounding errors.
RELATIVE_ROUNDING: Final = 1e-9
