"""A function that makes many runs a call."""

import numpy as np

from dpwitness.errors import InvalidOutcome
from dpwitness.events.encoding import array_rows
from dpwitness.mechanisms.draws import Draws
from dpwitness.mechanisms.mechanism import Rows
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.raising import raised
from dpwitness.neighbours import Data


class VectorisedMechanism(PythonMechanism):
    """A function that makes many runs a call: it takes their number and returns them along axis 0."""

    shard = 16_384

    def _run_each(self, data: Data, draws: Draws, rows: Rows, start: int) -> int:
        """Make all runs in one call; as in `Mechanism`.

        Where exceptions are outcomes, one run a call: one of several would end the others, which are no outcomes then.
        """
        n = len(rows)
        if self.errors == "outcome" and n > 1:
            rng = draws.of_run(0)
            return max(self.fill(data, rng, rows[i : i + 1], start + i) for i in range(n))
        try:
            output = self.signature.function(**self.signature.bind(self.handing.of(data)(), draws.of_run(0), n))
        except Exception as error:
            if self.errors == "outcome":
                return self._write_exception(type(error).__qualname__, rows[0])
            raise raised(self.name, error, start, data) from error
        if not self.reproducible and hasattr(output, "__len__") and len(output) == n:
            self._kept.keep(data, start, output)
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
