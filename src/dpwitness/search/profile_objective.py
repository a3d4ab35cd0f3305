"""What a search for a privacy profile looks for: large lower bounds of δ at several ε. Never evidence."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["SEVERAL", "DeltaAt"]

Floats = NDArray[np.float64]

#: ε at which pairs are compared, and events are learned.
SEVERAL: Final = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaAt:
    """The lower bound of δ to expect at some ε from `planned` runs at level α (normal approximation).

    Of several ε the sum of those that are positive, each times e^(ε/2), as δ falls in ε; where none is, the largest.
    """

    stop_value: ClassVar[float] = math.inf

    epsilons: tuple[float, ...]
    planned: int
    log_threshold: float  # log(1/α)
    error_factor: float = 1.0  # multiplies every `standard_errors`

    def __call__(
        self, p: Floats, q: Floats, runs: int, standard_errors: float = 1.0, both: Floats | None = None
    ) -> Floats:
        """The value; see `Objective`."""
        joint = p * q if both is None else both
        factor = np.sqrt(2 * self.log_threshold / self.planned) + self.error_factor * standard_errors / np.sqrt(runs)
        total, largest = np.zeros(np.shape(p)), np.full(np.shape(p), -np.inf)
        for epsilon in self.epsilons:
            s = math.exp(epsilon)
            # One imagined run more in each cell that decides: what was not seen in a few runs is not impossible.
            square = p - joint + s**2 * (q - joint) + (s - 1) ** 2 * joint + (1 + s**2) / runs
            value = p - s * q - factor * np.sqrt(square)
            total, largest = total + math.exp(epsilon / 2) * np.maximum(value, 0.0), np.maximum(largest, value)
        return np.asarray(np.where(largest > 0, total, largest))

    def for_repeating_outcomes(self) -> "DeltaAt":
        """As in `Objective`: errors count a quarter; what is rare but clear would lose to what is frequent else."""
        return replace(self, error_factor=0.25)
