"""Mechanisms that add noise to each number and release all of them."""

import numpy as np
from numpy.typing import NDArray

from dpwitness.noise import laplace
from dpwitness.targets import histogram as histogram_relation
from dpwitness.targets import queries, target


@target(
    claim="epsilon",
    neighbours=queries(1, any_length=True),
    source="Dwork, McSherry, Nissim & Smith 2006",
    true_epsilon="ε",
)
def laplace_mechanism(
    rng: np.random.Generator, queries: NDArray[np.float64], epsilon: float, sensitivity: float = 1.0
) -> float:
    """One answer + Lap(Δ/ε)."""
    return float(queries[0]) + laplace(rng, sensitivity / epsilon)


@target(
    claim="epsilon",
    neighbours=histogram_relation(5, any_length=True),
    source="Ding et al. 2018, Alg. 9",
    true_epsilon="ε",
)
def histogram(rng: np.random.Generator, counts: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """Every cell + Lap(1/ε); the whole vector is released."""
    noisy = np.empty(len(counts))
    for i in range(len(counts)):
        noisy[i] = counts[i] + laplace(rng, 1 / epsilon)
    return noisy


@target(
    claim="epsilon",
    neighbours=histogram_relation(5, any_length=True),
    source="Ding et al. 2018, Alg. 10",
    true_epsilon="1/ε",
)
def histogram_wrong_scale(rng: np.random.Generator, counts: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """Every cell + Lap(ε): the scale turned upside down."""
    noisy = np.empty(len(counts))
    for i in range(len(counts)):
        noisy[i] = counts[i] + laplace(rng, epsilon)  # the defect: the scale should be 1 / epsilon
    return noisy
