"""Generalised private threshold testing (Chen & Machanavajjhala 2015): the sparse vector technique that never stops.

Any number of queries is compared with one noisy threshold, ⊤ (1) for "at least", ⊥ (0) for "below". Three published
mechanisms are instances; they are not ε-DP for any ε (Theorem 4.7).
"""

import numpy as np
from numpy.typing import NDArray

from dpwitness.noise import laplace
from dpwitness.targets import queries, target

Answers = NDArray[np.float64]


@target(
    claim="epsilon1",
    neighbours=queries(10, any_length=True),
    source="Chen & Machanavajjhala 2015, Alg. 2",
    true_epsilon="∞",
    attack="threshold_testing.gptt",
    flags=True,
)
def gptt(
    rng: np.random.Generator,
    queries: Answers,
    epsilon1: float,
    epsilon2: float = np.inf,
    threshold: float = 0.5,
    sensitivity: float = 1.0,
) -> Answers:
    """Generalised private threshold testing; with ε₂ = ∞ the queries get no noise at all."""
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, sensitivity / epsilon1)
    scale = sensitivity / epsilon2
    for i in range(len(queries)):  # the defect: it never stops
        noise = laplace(rng, scale) if scale > 0 else 0.0
        answers[i] = queries[i] + noise >= noisy_threshold
    return answers


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Lee & Clifton 2014; Chen & Machanavajjhala 2015, Section 3",
    true_epsilon="∞",
    attack="threshold_testing.gptt_lee_clifton",
    flags=True,
)
def gptt_lee_clifton(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 0.5,
    sensitivity: float = 1.0,
) -> Answers:
    """Private threshold testing with a quarter of ε for the threshold, and three quarters for every query."""
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, 4 * sensitivity / epsilon)
    for i in range(len(queries)):  # the defect: it never stops
        answers[i] = queries[i] + laplace(rng, 4 * sensitivity / (3 * epsilon)) >= noisy_threshold
    return answers


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Chen, Xiao, Zhang & Xu 2015; Chen & Machanavajjhala 2015, Section 3",
    true_epsilon="∞",
    attack="threshold_testing.gptt_chen",
    flags=True,
)
def gptt_chen(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 0.5,
    sensitivity: float = 1.0,
) -> Answers:
    """Private threshold testing with half of ε for the threshold, and half for every query."""
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, 2 * sensitivity / epsilon)
    for i in range(len(queries)):  # the defect: it never stops
        answers[i] = queries[i] + laplace(rng, 2 * sensitivity / epsilon) >= noisy_threshold
    return answers


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Stoddard, Chen & Machanavajjhala 2014; Chen & Machanavajjhala 2015, Section 3",
    true_epsilon="∞",
    attack="threshold_testing.gptt_stoddard",
    flags=True,
)
def gptt_stoddard(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 0.5,
    sensitivity: float = 1.0,
) -> Answers:
    """Private threshold testing with all of ε for the threshold, and no noise on the queries."""
    answers = np.empty(len(queries))
    noisy_threshold = threshold + laplace(rng, sensitivity / epsilon)
    for i in range(len(queries)):
        answers[i] = queries[i] >= noisy_threshold  # the defect: the query has no noise
    return answers
