"""Supporting hyperplanes of the pairs of distributions over k cells that a bound of a Rényi divergence allows.

Let P and Q be the laws of the cell that M(D) and M(D′) fall into. Rényi divergences are jointly quasi-convex and fall
under data processing (van Erven & Harremoës 2014, IEEE Trans. Inf. Theory 60(7), Theorems 13 and 9), so the pairs of
P and Q that a bound of D_α(M(D) ‖ M(D′)) allows are a convex region. For an order α > 1 they have
    Σ P_i^α·Q_i^(1−α) ≤ e^((α−1)·D_α),
and the tangent of that sum at likelihood ratios r_i lies below it: by the weighted means of arithmetic and geometry,
    α·r_i^(α−1)·P_i − (α−1)·r_i^α·Q_i ≤ P_i^α·Q_i^(1−α)
cell by cell, whatever r_i > 0 is. So where D_α is at most ε
    Σ a_i·P_i − Σ b_i·Q_i ≤ c  with  a_i = α·r_i^(α−1),  b_i = (α−1)·r_i^α,  c = e^((α−1)·ε).
How well the ratios are known decides power, never validity. The order 1 is the limit, the Kullback-Leibler divergence:
a_i = 1 + log r_i, b_i = r_i, c = ε, by P_i·log(P_i/Q_i) ≥ (1 + log r_i)·P_i − r_i·Q_i.
"""

import math
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeGuard

import numpy as np

from dpwitness.claims.claim import Claim, Floats

__all__ = ["DivergenceClaim", "Hyperplane", "bounds_divergences"]

#: Numbers below lose digits as doubles; nothing here is as small where it matters.
TINY: Final = 1e-290


class DivergenceClaim(Claim, Protocol):
    """A claim that bounds Rényi divergences, so that cells of the outcomes show more than an event does."""

    @property
    def orders(self) -> tuple[float, ...]:
        """Orders α ≥ 1 of divergences that are worth a try against it."""

    def largest_divergence(self, order: float, parameter: float) -> float:
        """The largest D_order(M(D) ‖ M(D′)) that `at(parameter)` allows, in nats; infinite where it says nothing.

        It does not fall in the parameter.
        """


def bounds_divergences(claim: Claim) -> TypeGuard[DivergenceClaim]:
    """Whether a claim bounds Rényi divergences, and says so."""
    return callable(getattr(claim, "largest_divergence", None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperplane:
    """The tangent of a divergence at likelihood ratios of k cells.

    `order` is at least 1, `log_ratios` are logarithms of P_i/Q_i, shape (k,). All that it gives is multiplied by
    e^(−(order − 1)·scale), with `scale` in nats, so that nothing overflows. Raises `ValueError` for other numbers.
    """

    order: float
    log_ratios: tuple[float, ...]
    scale: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.order < math.inf or not 0 <= self.scale < math.inf:
            raise ValueError(f"order={self.order!r} must be at least 1 and finite, scale={self.scale!r} not negative")
        if len(self.log_ratios) < 2 or not all(math.isfinite(ratio) for ratio in self.log_ratios):
            raise ValueError("a hyperplane needs finite logarithms of ratios for at least two cells")

    def sides(self) -> tuple[Floats, Floats]:
        """What a run pays by the cell of M(D), and what it costs by that of M(D′); shape (k,) each.

        Rounded to the safe side: a_i downwards, b_i upwards.
        """
        less, logs = self.order - 1, np.asarray(self.log_ratios, np.float64)
        if less == 0:
            lost = 1e-15 * (8 + np.abs(logs))
            return 1 + logs - lost, np.exp(np.minimum(logs, 700.0)) * (1 + lost)
        # A smaller ratio is as valid as the one given: so that no exponent overflows.
        logs = np.minimum(logs, (600 + less * self.scale) / self.order)
        lost = 1e-15 * (8 + self.order * (np.abs(logs) + self.scale))
        pays = self.order * np.exp(less * (logs - self.scale))
        costs = less * np.exp(self.order * logs - less * self.scale)
        return np.where(pays > TINY, pays * (1 - lost), 0.0), costs * (1 + lost) + TINY

    def allowed(self, epsilon: Any) -> Any:
        """What a divergence of at most ε allows of the mean of `sides`, rounded upwards. Broadcasts."""
        epsilon = np.asarray(epsilon, np.float64)
        lost = 1e-15 * (8 + self.order * (epsilon + self.scale))
        if self.order == 1:
            return (epsilon * (1 + lost))[()]
        with np.errstate(over="ignore"):
            return (np.exp((self.order - 1) * (epsilon - self.scale)) * (1 + lost) + TINY)[()]
