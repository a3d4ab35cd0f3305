"""Private threshold testing as an attacker sees it: signed sums of a histogram's cells go in, ⊤'s come out."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidData, InvalidParameter

__all__ = ["Counts", "ThresholdOracle", "check_histogram"]

Counts = NDArray[np.int64]
Signs = NDArray[np.int8]

#: Above this a count, or a sum of 10⁶ of them, would no longer be exact.
LARGEST: Final = 1 << 40


def check_histogram(counts: object) -> Counts:
    """Counts per cell as an array. Raises `InvalidData` for fewer than two cells, negative or fractional counts."""
    values = np.asarray(counts)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise InvalidData(f"a histogram is a list of counts, not an array of shape {values.shape}, kind {values.dtype}")
    if len(values) < 2:
        raise InvalidData(f"a histogram of {len(values)} cell(s) has nothing to compare: give at least 2 cells")
    bad = np.flatnonzero(~((values >= 0) & (values == np.floor(values)) & (values <= LARGEST)))
    if len(bad):
        raise InvalidData(f"cell {bad[0] + 1} holds {values[bad[0]]:g}: a count must be a whole number of at least 0")
    return values.astype(np.int64)


class ThresholdOracle:
    """One call of generalised private threshold testing (Chen & Machanavajjhala 2015, Alg. 2) on a histogram.

    The noisy threshold z = threshold + Lap(1/epsilon1) is drawn once. A query is a sum of cells with coefficients
    −1, 0, +1, so its sensitivity is 1; it is answered ⊤ where its value + Lap(1/epsilon2) ≥ z. `epsilon2` may be
    infinite. An attack may use only the methods and the number of cells; `queries` counts what it asked.

    Raises `InvalidParameter` for ε₁ or ε₂ that are not positive, or an infinite ε₁.
    """

    def __init__(
        self,
        counts: Counts,
        rng: np.random.Generator,
        *,
        epsilon1: float,
        epsilon2: float = np.inf,
        threshold: float = 0.0,
    ) -> None:
        if not 0 < epsilon1 < np.inf:
            raise InvalidParameter(f"epsilon1={epsilon1!r} must be positive and finite")
        if not epsilon2 > 0:
            raise InvalidParameter(f"epsilon2={epsilon2!r} must be positive (inf: no noise on the queries)")
        self.cells = len(counts)
        self.epsilon2 = float(epsilon2)
        self.queries = 0
        self._counts = counts.astype(np.float64)  # exact below 2⁵³
        self._rng = rng
        self._z = threshold + rng.laplace(0.0, 1 / epsilon1)

    def ask(self, signs: Signs, copies: int = 1) -> int:
        """How many of `copies` repetitions of one query are answered ⊤; `signs`: −1, 0 or 1 for each cell."""
        return int(self._answer(np.array([self._value(signs)]), copies)[0])

    def ask_each(self, signs: Signs, cells: NDArray[np.int64], change: int, copies: int = 1) -> NDArray[np.int64]:
        """The same for several queries: `signs` with `change` added to the coefficient of one of `cells` each."""
        if len(cells) and np.max(np.abs(signs[cells] + change)) > 1:
            raise ValueError("a coefficient outside −1, 0, 1 would raise the sensitivity above 1")
        return self._answer(self._value(signs) + change * self._counts[cells], copies)

    def _value(self, signs: Signs) -> float:
        return float(self._counts @ signs)

    def _answer(self, values: NDArray[np.float64], copies: int) -> NDArray[np.int64]:
        self.queries += copies * len(values)
        if self.epsilon2 == np.inf:
            return copies * (values >= self._z)
        x = self.epsilon2 * (values - self._z)
        tail = np.exp(-np.abs(x)) / 2
        # Given z the copies are independent: their number of ⊤'s is binomial.
        return self._rng.binomial(copies, np.where(x < 0, tail, 1 - tail))
