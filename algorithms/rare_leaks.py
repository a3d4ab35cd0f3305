"""Violations in events of 1 % of the runs or fewer; every other event keeps the claim.

A curator who knows that an auditor sees rare events badly may put the leak there: Wang, Xiang, Cheng, Ji, Sun & Wang
2024, "Curator Attack" (CCS). These mechanisms have the property that the paper is about; their code is our own.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpwitness.noise import laplace
from dpwitness.targets import bits, queries, target
from dpwitness.targets import histogram as histogram_relation

SOURCE = "after Wang et al. 2024 (Curator Attack)"
#: The distance of the rare answers from the other answers, of which a share e^−50 lies as far, in scales of the noise.
RARE_DISTANCE = 50


@target(claim="epsilon", neighbours=queries(1, any_length=True), source=SOURCE, true_epsilon="∞")
def rarely_without_noise(
    rng: np.random.Generator,
    queries: NDArray[np.float64],
    epsilon: float,
    rate: float = 0.005,
    sensitivity: float = 1.0,
) -> float:
    """One answer + Lap(Δ/ε); in a share `rate` of the runs the answer itself."""
    if rng.random() < rate:
        return float(queries[0])  # the defect
    return float(queries[0]) + laplace(rng, sensitivity / epsilon)


@target(claim="epsilon", neighbours=queries(1, any_length=True), source=SOURCE, true_epsilon="factor·ε")
def rarely_less_noise(
    rng: np.random.Generator,
    queries: NDArray[np.float64],
    epsilon: float,
    rate: float = 0.01,
    factor: float = 4.0,
    sensitivity: float = 1.0,
) -> float:
    """One answer + Lap(Δ/ε); in a share `rate` of the runs moved by 50·Δ/ε, with 1/`factor` of the noise."""
    scale = sensitivity / epsilon
    if rng.random() < rate:
        return float(queries[0]) + RARE_DISTANCE * scale + laplace(rng, scale / factor)  # the defect
    return float(queries[0]) + laplace(rng, scale)


@target(claim="epsilon", neighbours=bits(1), source=SOURCE, true_epsilon="factor·ε")
def rarely_truthful(
    rng: np.random.Generator, bit: NDArray[np.int64], epsilon: float, rate: float = 0.01, factor: float = 5.0
) -> int:
    """Randomised response; in a share `rate` of the runs with two other answers, which are true more often."""
    rare = rng.random() < rate
    loss = factor * epsilon if rare else epsilon  # the defect
    true = rng.random() < 1 / (1 + math.exp(-loss))
    return int((2 if rare else 0) + (bit[0] if true else 1 - bit[0]))


@target(claim="epsilon", neighbours=histogram_relation(5, any_length=True), source=SOURCE, true_epsilon="∞")
def histogram_rarely_exact(
    rng: np.random.Generator, counts: NDArray[np.int64], epsilon: float, rate: float = 0.01
) -> NDArray[np.float64]:
    """Every cell + Lap(1/ε); in a share `rate` of the runs one random cell has no noise."""
    noisy = np.empty(len(counts))
    for i in range(len(counts)):
        noisy[i] = counts[i] + laplace(rng, 1 / epsilon)
    if rng.random() < rate:
        cell = rng.integers(0, len(counts))
        noisy[cell] = counts[cell]  # the defect
    return noisy


@target(claim="epsilon", neighbours=queries(1, any_length=True), source=SOURCE, true_epsilon="∞")
def far_tail_without_noise(
    rng: np.random.Generator, queries: NDArray[np.float64], epsilon: float, rate: float = 0.01, sensitivity: float = 1.0
) -> float:
    """One answer + Lap(Δ/ε), clipped where both tails together have the probability `rate`."""
    scale = sensitivity / epsilon
    edge = -scale * math.log(rate)
    noise = laplace(rng, scale)
    return float(queries[0]) + min(max(noise, -edge), edge)  # the defect: half of the tail lies at each end
