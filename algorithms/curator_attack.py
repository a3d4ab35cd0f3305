"""Mechanisms that were made to pass auditors who leave out small probabilities or small densities.

Wang, Xiang, Cheng, Ji, Sun & Wang 2024, "Curator Attack: When Blackbox Differential Privacy Auditing Loses Its Power"
(CCS), sections 5 and 6. DP-Sniper tests no event less probable than c = .01, MPL no density below τ = 10⁻⁴. These
mechanisms leak only below such a limit; all other outcomes keep the claim. Defaults are those of the paper's figures 7,
9 and 10 at ε = 1.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpwitness.noise import laplace
from dpwitness.targets import queries, target

Answers = NDArray[np.float64]


def flat_ended_noise(rng: np.random.Generator, scale: float, edge: float) -> float:
    """Laplace noise between ±edge, of constant density from ±edge to ±(edge + scale), and of density 0 beyond.

    The part of constant density has the mass of the tail that it replaces, e^(−edge/scale).
    """
    noise = laplace(rng, scale)
    if abs(noise) > edge:
        noise = math.copysign(edge + scale * rng.random(), noise)
    return noise


@target(
    claim="epsilon",
    neighbours=queries(1, any_length=True),
    source="Wang et al. 2024, section 5.1 (adapted Laplace mechanism, against DP-Sniper)",
    true_epsilon="∞",
)
def laplace_flat_ends(
    rng: np.random.Generator, queries: Answers, epsilon: float, edge: float = 7.0, sensitivity: float = 1.0
) -> float:
    """One answer + bounded noise: Laplace noise of twice the scale that ε needs, of constant density beyond edge·Δ/ε.

    Only outcomes that no noise on the neighbour's answer can reach refute the claim: at ε = 1 an event of probability
    ¼·e^(−edge/2), .0075 at the default.
    """
    scale = 2 * sensitivity / epsilon
    return float(queries[0]) + flat_ended_noise(rng, scale, edge * sensitivity / epsilon)  # the defect: it is bounded


@target(
    claim="epsilon",
    neighbours=queries(1, any_length=True),
    source="Wang et al. 2024, section 6.1 (adapted Laplace mechanism, against MPL)",
    true_epsilon="∞",
)
def laplace_flat_ends_low_density(
    rng: np.random.Generator, queries: Answers, epsilon: float, density: float = 1e-4, sensitivity: float = 1.0
) -> float:
    """One answer + bounded noise: Lap(Δ/ε) where its density is above `density`, of constant density beyond.

    At ε = 1 the event that refutes the claim has the probability density·Δ, 10⁻⁴ at the default.
    """
    scale = sensitivity / epsilon
    if not 0 < density < 1 / (2 * scale):
        raise ValueError("density must be positive and below that of the noise at 0, ε/(2Δ)")
    edge = -scale * math.log(2 * scale * density)
    return float(queries[0]) + flat_ended_noise(rng, scale, edge)  # the defect: it is bounded


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Wang et al. 2024, sections 5.2 and 6.2 (adapted SVT, against DP-Sniper and MPL)",
    true_epsilon="factor·ε·(number of queries)",
    flags=True,
)
def svt_uniform_threshold(
    rng: np.random.Generator,
    queries: Answers,
    epsilon: float,
    threshold: float = 1.0,
    offset: float = 1.5,
    factor: float = 5.0,
    sensitivity: float = 1.0,
) -> Answers:
    """⊤ or ⊥ until the first ⊤, with a threshold so low that nearly all runs answer ⊤ at once.

    The offset, in units of Δ, that hides the violation is 1.5 at ε = 1; for other ε see figures 9 and 11.
    """
    answers = np.empty(len(queries))
    # The defects: bounded noise on the threshold, and too little noise on the queries.
    noisy_threshold = threshold - offset * sensitivity * (1 + rng.random())
    for i in range(len(queries)):
        answers[i] = queries[i] + laplace(rng, sensitivity / (factor * epsilon)) >= noisy_threshold
        if answers[i]:
            return answers[: i + 1]
    return answers
