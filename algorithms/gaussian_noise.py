"""Mechanisms of (ε, δ)-differential privacy: Gaussian noise and its alternatives, right and wrong."""

import math

import numpy as np
from numpy.typing import NDArray

from dpwitness.noise import discrete_gaussian as discrete_gaussian_noise
from dpwitness.noise import gaussian
from dpwitness.targets import half_epsilon_squared, histogram, queries, target

Answers = NDArray[np.float64]
Counts = NDArray[np.int64]


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ at ε of N(0, 1) against N(μ, 1); Balle & Wang 2018, Theorem 8."""
    near, far = (epsilon / mu - mu / 2) / math.sqrt(2.0), (epsilon / mu + mu / 2) / math.sqrt(2.0)
    return 0.5 * math.erfc(near) - 0.5 * math.exp(epsilon) * math.erfc(far)


def largest_mu(epsilon: float, delta: float) -> float:
    """The largest Δ/σ for which Gaussian noise is (ε, δ)-DP: Newton's steps for log δ, which is concave in μ."""
    mu = min(epsilon / math.sqrt(2 * math.log(1.25 / delta)), 1.0)
    for _ in range(60):
        found = gaussian_delta(mu, epsilon)
        if found <= 0:  # too small for a double
            mu *= 2
            continue
        rises = math.exp(-((epsilon / mu - mu / 2) ** 2) / 2) / math.sqrt(2 * math.pi)
        step = math.log(delta / found) * found / rises
        mu = max(mu + step, mu / 2)
        if abs(step) < 1e-13 * mu:
            break
    return mu


@target(
    claim="epsilon",
    delta=1e-5,
    neighbours=queries(1, any_length=True),
    source="Dwork & Roth 2014, Theorem A.1 (ε < 1)",
    true_epsilon="below ε at δ; μ = ε/√(2·log(1.25/δ))",
)
def gaussian_mechanism(
    rng: np.random.Generator, queries: Answers, epsilon: float, delta: float = 1e-5, sensitivity: float = 1.0
) -> float:
    """One answer + N(0, σ²) with σ = Δ·√(2·log(1.25/δ))/ε."""
    return float(queries[0]) + gaussian(rng, sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon)


@target(
    claim="epsilon",
    delta=1e-5,
    neighbours=queries(1, any_length=True),
    source="a slip of the square root in Dwork & Roth 2014, Theorem A.1",
    true_epsilon="above ε at δ; μ = ε/√(log(1.25/δ))",
)
def gaussian_wrong_sigma(
    rng: np.random.Generator, queries: Answers, epsilon: float, delta: float = 1e-5, sensitivity: float = 1.0
) -> float:
    """One answer + N(0, σ²) with σ = √(Δ·log(1.25/δ))/ε."""
    sigma = math.sqrt(sensitivity * math.log(1.25 / delta)) / epsilon  # the defect: 2 is missing, Δ² should be there
    return float(queries[0]) + gaussian(rng, sigma)


@target(
    claim="epsilon",
    delta=1e-5,
    neighbours=queries(1, any_length=True),
    source="Balle & Wang 2018, Alg. 1",
    true_epsilon="ε at δ",
)
def analytic_gaussian(
    rng: np.random.Generator, queries: Answers, epsilon: float, delta: float = 1e-5, sensitivity: float = 1.0
) -> float:
    """One answer + N(0, σ²) with the smallest σ that is (ε, δ)-DP."""
    return float(queries[0]) + gaussian(rng, sensitivity / largest_mu(epsilon, delta))


@target(
    claim="epsilon",
    states=half_epsilon_squared,
    neighbours=queries(1, any_length=True),
    source="Canonne, Kamath & Steinke 2020, Alg. 3",
    true_epsilon="ρ = ε²/2",
)
def discrete_gaussian(rng: np.random.Generator, queries: Counts, epsilon: float, sensitivity: float = 1.0) -> float:
    """One whole number + discrete Gaussian noise of scale ⌈Δ⌉/ε, as rounded answers move by ⌈Δ⌉: ½ε²-zCDP."""
    return float(math.floor(queries[0]) + discrete_gaussian_noise(rng, math.ceil(sensitivity) / epsilon))


@target(
    claim="epsilon",
    delta=1e-3,
    neighbours=queries(1, any_length=True),
    source="Geng, Ding, Guo & Kumar 2020, Theorem 1",
    true_epsilon="ε at δ",
)
def truncated_laplace(
    rng: np.random.Generator, queries: Answers, epsilon: float, delta: float = 1e-3, sensitivity: float = 1.0
) -> float:
    """One answer + Laplace noise of scale Δ/ε, cut off where the tail of width Δ has probability δ."""
    bound = math.log(1 + math.expm1(epsilon) / (2 * delta))  # the largest noise, in scales
    size = -math.log1p(rng.random() * math.expm1(-bound)) * sensitivity / epsilon
    return float(queries[0]) + (size if rng.random() < 0.5 else -size)


@target(
    claim="epsilon",
    delta=1e-5,
    neighbours=queries(4, any_length=True),
    source="Dong, Roth & Su 2022, Corollary 2",
    true_epsilon="ε at δ; μ = √k·Δ/σ",
)
def gaussian_composition(
    rng: np.random.Generator, queries: Answers, epsilon: float, delta: float = 1e-5, sensitivity: float = 1.0
) -> Answers:
    """All k answers + N(0, σ²) each, with σ for k-fold composition: μ² adds up."""
    sigma = math.sqrt(len(queries)) * sensitivity / largest_mu(epsilon, delta)
    noisy = np.empty(len(queries))
    for i in range(len(queries)):
        noisy[i] = queries[i] + gaussian(rng, sigma)
    return noisy


def step_sigma(epsilon: float, delta: float, rate: float) -> float:
    """The noise multiplier of a step that is (ε, δ)-DP thanks to the sampling; Balle et al. 2018."""
    return 1 / largest_mu(math.log1p(math.expm1(epsilon) / rate), delta / rate)


@target(
    claim="epsilon",
    delta=1e-5,
    neighbours=histogram(3),
    source="Abadi et al. 2016, Alg. 1, one step; Balle, Barthe & Gaboardi 2018",
    true_epsilon="ε at δ",
)
def dp_sgd_step(
    rng: np.random.Generator, records: Counts, epsilon: float, delta: float = 1e-5, sampling_rate: float = 0.5
) -> float:
    """A step of DP-SGD: each record is in the batch by its own coin, gradients are clipped to 1, their sum is noised.

    `records`: the numbers of records with the clipped gradients −1, 0 and 1.
    """
    batch = np.empty(3)
    for i in range(3):
        batch[i] = rng.binomial(records[i], sampling_rate)
    return float(batch[2] - batch[0] + gaussian(rng, step_sigma(epsilon, delta, sampling_rate)))


@target(
    claim="epsilon",
    delta=1e-5,
    neighbours=histogram(3),
    source="a common slip in Abadi et al. 2016, Alg. 1: the size of the batch is secret too",
    true_epsilon="above ε at δ",
)
def dp_sgd_step_true_batch_size(
    rng: np.random.Generator, records: Counts, epsilon: float, delta: float = 1e-5, sampling_rate: float = 0.5
) -> float:
    """A step of DP-SGD that divides by the number of records in the batch."""
    batch = np.empty(3)
    for i in range(3):
        batch[i] = rng.binomial(records[i], sampling_rate)
    noisy = batch[2] - batch[0] + gaussian(rng, step_sigma(epsilon, delta, sampling_rate))
    return float(noisy / max(batch.sum(), 1.0))  # the defect: it should be the expected size, which is public
