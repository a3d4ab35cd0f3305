"""Noise for mechanism authors: samplers that take the generator first, for compiled mechanisms and plain Python alike.

All randomness comes from the mechanism's `numpy.random.Generator`: the same generator gives the same noise compiled and
in Python. Noise has the unit of its scale.
"""

import math

import numpy as np


def laplace(rng: np.random.Generator, scale: float) -> float:
    """One draw from Lap(scale): density exp(−|x|/scale)/(2·scale)."""
    # This takes less than half of the time of `Generator.laplace`.
    return scale * math.copysign(rng.standard_exponential(), rng.random() - 0.5)


def exponential(rng: np.random.Generator, scale: float) -> float:
    """One draw from the exponential distribution of mean `scale`."""
    return scale * rng.standard_exponential()


def gumbel(rng: np.random.Generator, scale: float) -> float:
    """One draw of Gumbel noise, P(X ≤ x) = exp(−exp(−x/scale)), by which noisy max is the exponential mechanism."""
    x = rng.standard_exponential()
    return -scale * math.log(x) if x > 0 else math.inf


def gaussian(rng: np.random.Generator, scale: float) -> float:
    """One draw from N(0, scale²)."""
    return scale * rng.standard_normal()


def geometric(rng: np.random.Generator, scale: float) -> int:
    """One draw of two-sided geometric (discrete Laplace) noise, P(k) ∝ exp(−|k|/scale); Ghosh et al. 2012."""
    # Floors of exponential numbers are geometric, and the difference of two is two-sided geometric.
    return math.floor(scale * rng.standard_exponential()) - math.floor(scale * rng.standard_exponential())


def discrete_gaussian(rng: np.random.Generator, scale: float) -> int:
    """One draw from the discrete Gaussian, P(k) ∝ exp(−k²/(2·scale²)); Canonne, Kamath & Steinke 2020, Alg. 3."""
    width = math.floor(scale) + 1.0
    while True:
        k = geometric(rng, width)
        off = abs(k) - scale**2 / width
        # k has acceptance probability exp(−off²/(2·scale²)): an exponential number exceeds x with probability exp(−x).
        if off**2 <= 2 * scale**2 * rng.standard_exponential():
            return k
