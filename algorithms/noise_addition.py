"""Mechanisms that add noise to each number and release all of them."""

import math

import numpy as np
from numpy.typing import NDArray

from dpwitness.noise import geometric, laplace
from dpwitness.targets import histogram as histogram_relation
from dpwitness.targets import pairs, queries, target


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
    """Every cell + Lap(ε), the inverse of the right scale."""
    noisy = np.empty(len(counts))
    for i in range(len(counts)):
        noisy[i] = counts[i] + laplace(rng, epsilon)  # the defect: the scale should be 1 / epsilon
    return noisy


@target(
    claim="epsilon",
    neighbours=queries(1, any_length=True),
    source="Bichsel et al. 2021 (LaplaceParallel)",
    true_epsilon="ε",
)
def laplace_parallel(
    rng: np.random.Generator, queries: NDArray[np.float64], epsilon: float, copies: int = 20, sensitivity: float = 1.0
) -> NDArray[np.float64]:
    """One answer released `copies` times, each with its own Lap(copies·Δ/ε)."""
    noisy = np.empty(copies)
    for i in range(copies):
        noisy[i] = queries[0] + laplace(rng, copies * sensitivity / epsilon)
    return noisy


@target(
    claim="epsilon",
    neighbours=queries(10, any_length=True),
    source="Wang, Ding, Wang, Kifer & Zhang 2019 (PrefixSum)",
    true_epsilon="ε if one answer moves; (number of queries)·ε otherwise",
)
def prefix_sum(
    rng: np.random.Generator, queries: NDArray[np.float64], epsilon: float, sensitivity: float = 1.0
) -> NDArray[np.float64]:
    """The running sums of answers that each get Lap(Δ/ε), enough where one answer moves."""
    sums, total = np.empty(len(queries)), 0.0
    for i in range(len(queries)):
        total += queries[i] + laplace(rng, sensitivity / epsilon)
        sums[i] = total
    return sums


@target(
    claim="epsilon",
    neighbours=queries(1, any_length=True),
    source="Ghosh, Roughgarden & Sundararajan 2012",
    true_epsilon="ε",
)
def geometric_mechanism(
    rng: np.random.Generator, queries: NDArray[np.int64], epsilon: float, sensitivity: float = 1.0
) -> float:
    """One whole number + two-sided geometric noise of scale ⌈Δ⌉/ε, as rounded answers move by ⌈Δ⌉."""
    return float(math.floor(queries[0]) + geometric(rng, math.ceil(sensitivity) / epsilon))


def geometric_bits(epsilon: float) -> int:
    """The k of GeoSample: ε becomes ln(1 + 2^−k)."""
    return max(math.ceil(math.log(2 / epsilon)), 0)


@target(
    claim="epsilon",
    neighbours=pairs(*(([k], [k + 1]) for k in range(5))),
    source="Balcer & Vadhan 2018, Alg. 4.8 (GeoSample), with k = ⌈ln(2/ε)⌉ as in Bichsel et al. 2021",
    true_epsilon="ln(1 + 2^−⌈ln(2/ε)⌉): .1178 at ε = .1",
)
def truncated_geometric(rng: np.random.Generator, count: NDArray[np.int64], epsilon: float, largest: int = 5) -> float:
    """A count from 0 to `largest` with geometric noise, cut off at both ends, computed in integers."""
    k, n, c = geometric_bits(epsilon), largest, count[0]  # the defect, where it gives more than ε: log₂ for ln
    one = 2**k
    total = (2 * one + 1) * (one + 1) ** (n - 1)
    drawn = rng.integers(1, total + 1)
    for z in range(n):  # the least z with P(Z ≤ z)·total ≥ drawn
        below = one ** (c - z) * (one + 1) ** (n - (c - z)) if z < c else 0
        above = total - one ** (z - c + 1) * (one + 1) ** (n - 1 - (z - c)) if z >= c else 0
        if below + above >= drawn:
            return float(z)
    return float(n)


@target(
    claim="epsilon",
    neighbours=queries(1, any_length=True),
    source="Mironov 2012, section 5.2",
    true_epsilon="at most ε, also of its floating-point numbers",
)
def snapping_mechanism(
    rng: np.random.Generator,
    queries: NDArray[np.float64],
    epsilon: float,
    bound: float = 1024.0,
    sensitivity: float = 1.0,
) -> float:
    """One answer within ± bound + Lap(λ), rounded to a multiple of the least power of two that is at least λ."""
    scale = (1 + bound / sensitivity * 2.0**-49) * sensitivity / epsilon
    if not scale < bound < 2.0**46 * scale:
        raise ValueError("the bound must lie between the scale of the noise and 2^46 times that")
    exponent = -1  # the exponent of a uniform number whose doubles have probabilities equal to their widths
    while rng.random() < 0.5 and exponent > -1000:
        exponent -= 1
    uniform = math.ldexp(1 + rng.random(), exponent)
    noise = scale * math.log(uniform) * (1.0 if rng.random() < 0.5 else -1.0)
    grid = 2.0 ** math.ceil(math.log2(scale))
    noisy = min(max(queries[0], -bound), bound) + noise
    return float(min(max(math.floor(noisy / grid + 0.5) * grid, -bound), bound))
