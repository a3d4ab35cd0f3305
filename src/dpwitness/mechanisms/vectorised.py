"""A function that makes many runs a call."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import InvalidOutcome
from dpwitness.events.encoding import array_rows
from dpwitness.mechanisms.mechanism import Order, Rows, Turns, raised
from dpwitness.mechanisms.python import BACKWARDS, Draws, PythonMechanism, Raised, Side
from dpwitness.neighbours import Data


class VectorisedMechanism(PythonMechanism):
    """A function that makes many runs a call: it takes their number and returns them along axis 0."""

    shard = 16_384

    def turns(self, order: Order) -> Turns:
        """As in `Mechanism`: the rows of a call stand beside each other."""
        runs = len(order)
        rows = self.made - 2 * runs + np.arange(runs)
        second = rows + runs
        return np.stack([np.full(runs, os.getpid()), *((second, rows) if order[0] else (rows, second))])

    def _run_sides(self, sides: Sequence[Side], start: int, order: Order | None) -> int:
        """One call makes all runs of a side, which come in the order of the first run."""
        turned = order is not None and order[0]
        return max(self._run_all(sides[k], start) for k in (BACKWARDS if turned else range(len(sides))))

    def _run_all(self, side: Side, start: int) -> int:
        """Make all runs of one side in one call."""
        data, draws, rows = side.data, side.draws, side.rows
        n = len(rows)
        if self.errors == "outcome":
            return self._run_singly(data, draws, rows, start)
        try:
            output = self.signature.call(self.handing.of(data)(), draws.of_run(0), n)
        except Exception as error:
            raise raised(self.name, error, start, data) from error
        if not self.reproducible and hasattr(output, "__len__") and len(output) == n:
            self._kept.keep(data, start, output)
        if self._outcome is None and isinstance(output, np.ndarray) and output.dtype.kind in "biuf":
            if output.ndim not in (1, 2) or len(output) != n:
                raise InvalidOutcome(
                    f"{self.name} returned an array of shape {output.shape} for {n} runs from {start} on: "
                    "return one row for each run"
                )
            values = None if self.keyed and output.ndim == 2 else array_rows(output.reshape(n, -1))
            if values is not None:
                self._positional |= output.ndim == 2
                width = min(values.shape[1], rows.shape[1])
                rows[:, :width] = values[:, :width]
                rows[:, width:] = np.nan
                return self.check_length(values.shape[1], start)
        self._require_each(output, n, start)
        return self.check_length(max(self._write(output[i], rows[i], start + i) for i in range(n)), start)

    def _run_singly(self, data: Data, draws: Draws, rows: Rows, start: int) -> int:
        """One run a call, where exceptions are outcomes: one of several runs would end the others."""
        rng, n = draws.of_run(0), len(rows)
        outputs: list[Any] = []
        for i in range(n):
            own = rng if n == 1 else self._draws(rng, 1).of_run(0)
            try:
                output = self.signature.call(self.handing.of(data)(), own, 1)
            except Exception as error:
                outputs.append(Raised(type(error).__qualname__))
            else:
                self._require_each(output, 1, start + i)
                outputs.append(output[0])
        if not self.reproducible:
            self._kept.keep(data, start, outputs)
        return self.check_length(
            max(self._placed(output, rows[i], start + i) for i, output in enumerate(outputs)), start
        )

    def _require_each(self, output: Any, n: int, start: int) -> None:
        """Raise `InvalidOutcome` for what is not one outcome for each run."""
        if not hasattr(output, "__len__") or len(output) != n:
            raise InvalidOutcome(
                f"{self.name} returned {brief(output)} for {n} runs from {start} on: return one for each"
            )
