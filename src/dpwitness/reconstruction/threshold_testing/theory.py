"""Private threshold testing in numbers: Theorem 4.7 and Lemma 5.10 of Chen & Machanavajjhala (2015).

Theorem 4.7: t copies of two queries have the answers 0ᵗ1ᵗ on D and 1ᵗ0ᵗ on D′; the event ⊥ᵗ⊤ᵗ has probability V on D
and V′ on D′. All answers share the noisy threshold, so many copies show on which side of it each query lies, and the
ratio V/V′ grows with t.
"""

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
