"""Noise for mechanism authors: compiled samplers, each taking the generator first.

They run inside compiled mechanisms and in plain Python alike. All randomness comes from the
`numpy.random.Generator` that the mechanism was given. Units are those of the scale.
"""

import numpy as np

from dpwitness.jit import inlined


@inlined
def laplace(rng: np.random.Generator, scale: float) -> float:
    """One draw from Lap(scale): density exp(−|x|/scale)/(2·scale)."""
    # The difference of two exponentials: half the time of Generator.laplace, which takes a logarithm.
    return scale * (rng.standard_exponential() - rng.standard_exponential())


@inlined
def exponential(rng: np.random.Generator, scale: float) -> float:
    """One draw from the exponential distribution of mean `scale`."""
    return scale * rng.standard_exponential()


@inlined
def gaussian(rng: np.random.Generator, scale: float) -> float:
    """One draw from N(0, scale²)."""
    return scale * rng.standard_normal()


@inlined
def geometric(rng: np.random.Generator, scale: float) -> int:
    """One draw from the two-sided geometric distribution, P(k) ∝ exp(−|k|/scale); Ghosh et al. 2012."""
    # Floors of exponentials are geometric; the difference of two geometrics is two-sided geometric.
    return int(np.floor(scale * rng.standard_exponential()) - np.floor(scale * rng.standard_exponential()))
