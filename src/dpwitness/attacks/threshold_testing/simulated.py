"""One call of private threshold testing, simulated on a histogram whose counts are known."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.oracle import Change, Noise, Queries, check_changes, check_histogram
from dpwitness.attacks.threshold_testing.questions import Cells, Counts, Signs
from dpwitness.attacks.threshold_testing.theory import attack_threshold
from dpwitness.errors import InvalidParameter

__all__ = ["ThresholdOracle", "paper_oracle"]


class ThresholdOracle(Queries):
    """One call of generalised private threshold testing (Chen & Machanavajjhala 2015, Alg. 2) on a histogram.

    The noisy threshold z = threshold + Lap(1/epsilon1) is drawn once. A query is a sum of cells with coefficients
    −1, 0, +1, so its sensitivity is 1; it is answered ⊤ where its value + Lap(1/epsilon2) ≥ z. `epsilon2` may be
    infinite. An attack may use only what `Queries` has. Copies of a query are answered at once: given z they are
    independent, so their number of ⊤'s is binomial.

    Parameters
    ----------
    counts
        The histogram, shape (cells,).
    rng
        Of all noise.
    epsilon1, epsilon2
        In nats per unit of sensitivity.
    threshold
        θ.
    epsilon_totals
        Of the noisy totals, each with noise Lap(1/epsilon_totals); None: none are sold.

    Raises `InvalidData` for what is no histogram, `InvalidParameter` for ε's that are not positive, or an infinite ε₁.
    """

    def __init__(
        self,
        counts: Counts,
        rng: np.random.Generator,
        *,
        epsilon1: float,
        epsilon2: float = np.inf,
        threshold: float = 0.0,
        epsilon_totals: float | None = None,
    ) -> None:
        self._counts = check_histogram(counts)
        self._values = self._counts.astype(np.float64)  # exact below 2⁵³
        noise = Noise(epsilon1=epsilon1, epsilon2=epsilon2, threshold=threshold, epsilon_totals=epsilon_totals)
        sold = None if epsilon_totals is None else self._total_all
        super().__init__(None, len(self._counts), noise, sold)
        self._rng = rng
        self._z = threshold + rng.laplace(0.0, 1 / epsilon1)

    def __call__(self, signs: Signs, /) -> bool:
        """One answer, as an `Oracle` gives it."""
        return bool(self.ask(signs))

    def ask_all(self, questions: Signs, copies: int = 1) -> Cells:
        """As `Queries` says; copies at once."""
        return self._answer(questions @ self._values, copies)

    def ask_changes(self, changes: Sequence[Change], copies: int = 1) -> list[Cells]:
        """As `Queries` says; the sum of the signs is made once for all of its cells."""
        check_changes(changes)
        return [
            self._answer(float(signs @ self._values) + change * self._values[cells], copies)
            for signs, cells, change in changes
        ]

    def larger(self, copies: int = 1) -> Cells:
        """As `Queries` says, with the same law: cells of one count have their probabilities in common.

        Without query noise the sizes follow from the sorted counts. With it, each pair is ⊤ with the probability of its
        majority (Theorem 3.5; a tie counts as ⊥), so how many are is binomial, and no pair need be stored.
        """
        from scipy.stats import binom

        self.queries += copies * self.cells**2
        values, cells = np.unique(self._counts, return_inverse=True)
        number = np.bincount(cells)
        if self.noise.epsilon2 == np.inf:
            # x_u − x_v ≥ z, compared as differences: both sides are exact in integers.
            behind = np.searchsorted(values, values + int(np.ceil(self._z)), side="left")
            return np.asarray(np.concatenate([np.cumsum(number[::-1])[::-1], [0]])[behind][cells])
        sizes = np.zeros(len(cells), np.int64)
        for k, value in enumerate(values):
            majority = binom.sf(copies // 2, copies, self._chance(values - value))
            here = np.flatnonzero(cells == k)
            sizes[here] = self._rng.binomial(number, majority, size=(len(here), len(values))).sum(axis=1)
        return sizes

    def _chance(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of ⊤ for queries of these values."""
        x = self.noise.epsilon2 * (values - self._z)
        tail = np.exp(-np.abs(x)) / 2
        return np.where(x < 0, tail, 1 - tail)

    def _answer(self, values: NDArray[np.float64], copies: int) -> Cells:
        self.queries += copies * len(values)
        if self.noise.epsilon2 == np.inf:
            return copies * (values >= self._z)
        return self._rng.binomial(copies, self._chance(values))

    def _total_all(self, parts: NDArray[np.int64]) -> NDArray[np.float64]:
        assert self.noise.epsilon_totals is not None
        total = np.bincount(parts, weights=self._values)
        return np.asarray(total + self._rng.laplace(0.0, 1 / self.noise.epsilon_totals, len(total)))


def paper_oracle(
    counts: Counts,
    rng: np.random.Generator,
    *,
    epsilon: float,
    epsilon2: float = np.inf,
    share: float = 0.5,
    threshold: float | None = None,
) -> ThresholdOracle:
    """What Algorithm 4 attacks: threshold testing with a share of ε, and noisy totals with the rest.

    Parameters
    ----------
    epsilon
        ε, in nats.
    epsilon2
        ε₂ of the threshold testing; infinite as in the paper.
    share
        The threshold's share of ε, between 0 and 1; the paper's is a half.
    threshold
        θ; by default that of Lemma 5.10 for δ = 0.05, `attack_threshold(share * epsilon, 0.05)`.

    Raises `InvalidData` for what is no histogram, `InvalidParameter` for ε, ε₂ or the share out of range.
    """
    if not 0 < share < 1:
        raise InvalidParameter(f"share={share!r} must lie between 0 and 1")
    theta = attack_threshold(share * epsilon, 0.05) if threshold is None else threshold
    return ThresholdOracle(
        counts, rng, epsilon1=share * epsilon, epsilon2=epsilon2, threshold=theta,
        epsilon_totals=(1 - share) * epsilon,
    )  # fmt: skip
