"""Private threshold testing in numbers: Theorems 3.5 and 4.7 and Lemma 5.10 of Chen & Machanavajjhala (2015).

Theorem 4.7: t copies of two queries have the answers 0ᵗ1ᵗ on D and 1ᵗ0ᵗ on D′; the event ⊥ᵗ⊤ᵗ has probability V on D
and V′ on D′. All answers share the noisy threshold, so many copies show on which side of it each query lies, and the
ratio V/V′ grows with t.
"""

from bisect import bisect_left
from typing import Final

import numpy as np

from dpwitness.checks import probability
from dpwitness.errors import InvalidParameter
from dpwitness.exact import pattern_probability

#: The largest number of copies of a query: the number of ⊤'s over all cells must fit into 64 bits.
MOST_COPIES: Final = 10**12


def mirrored_probabilities(
    copies: int, epsilon1: float, epsilon2: float, *, threshold: float = 0.0, base: float = 0.0
) -> tuple[float, float]:
    """V and V′ of Theorem 4.7 for t copies, by quadrature (relative error below 10⁻⁸); with ε₂ = ∞ V′ is 0.

    The noise of the threshold is Lap(1/ε₁) and the noise of queries Lap(1/ε₂), in nats per unit of sensitivity; θ (the
    `threshold`) and b (the `base`) are in counts: D is bᵗ(b+1)ᵗ, D′ is (b+1)ᵗbᵗ.
    """
    answers = np.repeat([0.0, 1.0], copies)
    scales = {"threshold": threshold, "threshold_scale": 1 / epsilon1, "query_scale": 1 / epsilon2}
    return (
        pattern_probability(answers, base + answers, **scales),
        pattern_probability(answers, base + 1 - answers, **scales),
    )


def attack_threshold(epsilon: float, delta: float) -> int:
    """θ = ⌈ln(1/δ)/ε⌉, in counts: the noisy threshold is positive with probability at least 1 − δ (Lemma 5.10).

    `epsilon`: ε₁ of the threshold's noise, in nats. Raises `InvalidParameter` unless 0 < ε < ∞ and 0 < δ < 1.
    """
    if not 0 < epsilon < np.inf:
        raise InvalidParameter(f"epsilon={epsilon!r} must be positive and finite")
    probability("delta", delta)
    with np.errstate(over="ignore"):
        theta = float(np.ceil(-np.log(delta) / np.float64(epsilon)))  # −ln δ: 1/δ overflows for the smallest δ
    if not np.isfinite(theta):
        raise InvalidParameter(f"epsilon={epsilon!r} is too small: the threshold ln(1/δ)/ε is no finite count")
    return int(theta)


def copies_for(beta: float, queries: int, *, epsilon2: float, distance: float = 0.25) -> int:
    """The least odd number t of copies of each query for which all majorities are right (Theorem 3.5).

    With probability at least 1 − β all majorities are right about the side of the noisy threshold on which their query
    lies: each errs with probability at most β/|Q| (the union bound; the paper has (1 − β/|Q|)^|Q|). All queries must be
    at least `distance` counts from the threshold, for which the paper has no number: t grows with 1/distance², and half
    of all thresholds between two whole numbers are more than a quarter from both. ε₂ is in nats per unit of
    sensitivity, finite. Raises `InvalidParameter` for values out of range.
    """
    probability("beta", beta)
    if not 0 < epsilon2 < np.inf:
        raise InvalidParameter(f"epsilon2={epsilon2!r} must be positive and finite (without query noise: one copy)")
    from scipy.stats import binom

    wrong = float(np.exp(-epsilon2 * distance)) / 2

    def suffices(half: int) -> bool:
        return bool(binom.logsf(half, 2 * half + 1, wrong) <= np.log(beta) - np.log(queries))

    largest = (MOST_COPIES - 1) // 2
    if not suffices(largest):
        raise InvalidParameter(f"epsilon2={epsilon2:g} is too small: {beta=:g} takes more than 10^12 copies of a query")
    return 2 * bisect_left(range(largest), True, key=suffices) + 1
