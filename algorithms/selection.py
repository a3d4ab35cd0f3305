"""Mechanisms that select the largest of several answers, of which only the place should be released."""

import numpy as np
from numpy.typing import NDArray

from dpwitness.noise import exponential, gumbel, laplace
from dpwitness.targets import queries, target

Answers = NDArray[np.float64]


@target(
    claim="epsilon",
    neighbours=queries(5, any_length=True),
    source="Ding et al. 2018, Alg. 5; Dwork & Roth 2014, section 3.3",
    true_epsilon="at most ε",
)
def noisy_max_laplace(rng: np.random.Generator, queries: Answers, epsilon: float, sensitivity: float = 1.0) -> int:
    """The place of the largest answer + Lap(2Δ/ε)."""
    place, largest = 0, -np.inf
    for i in range(len(queries)):
        noisy = queries[i] + laplace(rng, 2 * sensitivity / epsilon)
        if noisy > largest:
            place, largest = i, noisy
    return place


@target(
    claim="epsilon",
    neighbours=queries(5, any_length=True),
    source="Ding et al. 2018, Alg. 6",
    true_epsilon="ε",
)
def noisy_max_exponential(rng: np.random.Generator, queries: Answers, epsilon: float, sensitivity: float = 1.0) -> int:
    """The place of the largest answer + exponential noise of mean 2Δ/ε."""
    place, largest = 0, -np.inf
    for i in range(len(queries)):
        noisy = queries[i] + exponential(rng, 2 * sensitivity / epsilon)
        if noisy > largest:
            place, largest = i, noisy
    return place


@target(
    claim="epsilon",
    neighbours=queries(5, any_length=True),
    source="Ding et al. 2018, Alg. 7",
    true_epsilon="(number of queries)/2 · ε",
)
def noisy_max_laplace_value(
    rng: np.random.Generator, queries: Answers, epsilon: float, sensitivity: float = 1.0
) -> float:
    """The largest answer + Lap(2Δ/ε), not its place."""
    largest = -np.inf
    for i in range(len(queries)):
        largest = max(largest, queries[i] + laplace(rng, 2 * sensitivity / epsilon))
    return float(largest)  # the defect: the place should be released


@target(
    claim="epsilon",
    neighbours=queries(5, any_length=True),
    source="Ding et al. 2018, Alg. 8",
    true_epsilon="∞",
)
def noisy_max_exponential_value(
    rng: np.random.Generator, queries: Answers, epsilon: float, sensitivity: float = 1.0
) -> float:
    """The largest answer + exponential noise of mean 2Δ/ε, not its place."""
    largest = -np.inf
    for i in range(len(queries)):
        largest = max(largest, queries[i] + exponential(rng, 2 * sensitivity / epsilon))
    return float(largest)  # the defect: the place should be released


@target(
    claim="epsilon",
    neighbours=queries(5, any_length=True),
    source="McSherry & Talwar 2007; Dwork & Roth 2014, section 3.4",
    true_epsilon="ε",
)
def exponential_mechanism(rng: np.random.Generator, scores: Answers, epsilon: float, sensitivity: float = 1.0) -> int:
    """A place with probability proportional to e^(ε·score/(2Δ)): the largest score + Gumbel noise of that scale."""
    place, largest = 0, -np.inf
    for i in range(len(scores)):
        noisy = scores[i] + gumbel(rng, 2 * sensitivity / epsilon)
        if noisy > largest:
            place, largest = i, noisy
    return place


@target(
    claim="epsilon",
    neighbours=queries(5, any_length=True),
    source="a common slip in McSherry & Talwar 2007: 2 is needed unless all scores move the same way",
    true_epsilon="2·ε",
)
def exponential_mechanism_half_scale(
    rng: np.random.Generator, scores: Answers, epsilon: float, sensitivity: float = 1.0
) -> int:
    """A place with probability proportional to e^(ε·score/Δ)."""
    place, largest = 0, -np.inf
    for i in range(len(scores)):
        noisy = scores[i] + gumbel(rng, sensitivity / epsilon)  # the defect: the scale should be 2Δ/ε
        if noisy > largest:
            place, largest = i, noisy
    return place
