"""The adaptive attack: whichever way of weighing suits the query noise, on one call of private threshold testing."""

from typing import Final

import numpy as np

from dpwitness.attacks.threshold_testing.noisy_weighing import even_cut, weigh_noisy
from dpwitness.attacks.threshold_testing.oracle import Counts, ThresholdOracle, check_histogram
from dpwitness.attacks.threshold_testing.reconstruction import Reconstruction
from dpwitness.attacks.threshold_testing.weighing import weigh
from dpwitness.errors import InvalidParameter

__all__ = ["adaptive_attack"]

#: Beyond this ε₂ the ruler is too short for whole numbers, and a vote among copies takes the noise away.
VOTE_FROM: Final = 1.5
VOTE_COPIES: Final = 1001


def adaptive_attack(
    counts: Counts,
    rng: np.random.Generator,
    *,
    epsilon1: float,
    epsilon2: float = np.inf,
    threshold: float = 0.0,
    copies: int | None = None,
) -> Reconstruction:
    """Read a histogram through one call of private threshold testing, by queries chosen from the answers so far.

    `copies` of each query at a time (None: as many as ε₂ asks for). Raises `InvalidData` for what is no histogram,
    `InvalidParameter` for ε₁, ε₂ or copies out of range.
    """
    x = check_histogram(counts)
    if copies is not None and copies < 1:
        raise InvalidParameter(f"copies={copies!r} must be at least 1")
    oracle = ThresholdOracle(x, rng, epsilon1=epsilon1, epsilon2=epsilon2, threshold=threshold)
    if epsilon2 == np.inf:
        return weigh(oracle, rng)
    if epsilon2 > VOTE_FROM:
        return weigh(oracle, rng, copies=copies or VOTE_COPIES, cut=even_cut(oracle, rng))
    return weigh_noisy(oracle, rng, copies)
