"""A function that makes many runs a call."""

import numpy as np

from dpwitness.errors import InvalidOutcome
from dpwitness.events.encoding import array_rows
from dpwitness.mechanisms.mechanism import Rows, raised
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.neighbours import Data


class VectorisedMechanism(PythonMechanism):
    """A function that makes many runs a call: it takes their number and returns them along axis 0."""

    shard = 16_384

    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        """Make all runs in one call; as in `Mechanism`."""
        n = len(rows)
        try:
            output = self.signature.function(**self.signature.bind(self.handing(data)(), rng, n))
        except Exception as error:
            raise raised(self.name, error, start, data) from error
        if self._outcome is None and isinstance(output, np.ndarray) and output.dtype.kind in "biuf":
            if output.ndim not in (1, 2) or len(output) != n:
                raise InvalidOutcome(
                    f"{self.name} returned an array of shape {output.shape} for {n} runs from {start} on: "
                    "return one row for each run"
                )
            values = array_rows(output.reshape(n, -1))
            if values is not None:
                width = min(values.shape[1], rows.shape[1])
                rows[:, :width] = values[:, :width]
                rows[:, width:] = np.nan
                return self.check_length(values.shape[1], start)
        if not hasattr(output, "__len__") or len(output) != n:
            raise InvalidOutcome(
                f"{self.name} returned {output!r:.80} for {n} runs from {start} on: return one for each"
            )
        return self.check_length(max(self._write(output[i], rows[i], start + i) for i in range(n)), start)
