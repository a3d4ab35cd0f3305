"""How often averaging attacks succeed, and how many queries that takes: Asghar & Kaafar (2020), section 4."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.noise_laws import NoiseLaw, uniform
from dpwitness.errors import InvalidParameter

__all__ = [
    "chebyshev_bound",
    "expected_right",
    "histogram_bound",
    "noise_removed",
    "partitions_needed",
    "perturbation_found",
    "rounded_error_law",
    "sub_populations_needed",
    "sum_law",
    "value_bound",
]

MOST_PARTITIONS = 1 << 22


def _law(noise: NoiseLaw | int) -> NoiseLaw:
    return uniform(noise) if isinstance(noise, int | np.integer) else noise


def _probability(wanted: float) -> None:
    if not 0 < wanted < 1:
        raise InvalidParameter(f"probability={wanted!r} must lie between 0 and 1")


def _partitions(k: int) -> None:
    if not k >= 1:
        raise InvalidParameter(f"partitions={k!r} must be at least 1")


def perturbation_found(r: int, m: int) -> float:
    """Proposition 2: the probability that Algorithm 3 finds uniform noise's r from `m` sub-populations (3m answers)."""
    if m < 0:
        raise InvalidParameter(f"m={m!r} must not be negative")
    return float(-np.expm1(m * np.log1p(-20 / (2 * uniform(r).bound + 1) ** 3)))


def sub_populations_needed(r: int, probability: float) -> int:
    """The smallest `m` with which Algorithm 3 succeeds with the wanted probability."""
    _probability(probability)
    return math.ceil(math.log1p(-probability) / math.log1p(-20 / (2 * uniform(r).bound + 1) ** 3))


def chebyshev_bound(noise: NoiseLaw | int, k: int) -> float:
    """Inequality (4): a lower bound on the probability that `k` two-partitions give the right count; 0.0 if vacuous.

    For uniform noise within ±r it is 1 − 8r(r+1)/(3k).
    """
    _partitions(k)
    return max(0.0, 1 - 8 * _law(noise).variance / k)


def sum_law(noise: NoiseLaw | int, terms: int) -> tuple[int, NDArray[np.float64]]:
    """The law of a sum of independent noises: its smallest value, and the probability of each value from there on.

    Exact but for rounding (about 1e-15): the power of the characteristic function on a grid longer than the support.
    """
    law = _law(noise)
    low, high = law.support[0], law.support[-1]
    single = np.zeros(high - low + 1)
    single[np.array(law.support) - low] = law.probabilities
    length = terms * (high - low) + 1
    size = 1 << (length - 1).bit_length()
    probabilities = np.fft.irfft(np.fft.rfft(single, size) ** terms, size)[:length]
    return terms * low, np.clip(probabilities, 0.0, None)


def noise_removed(noise: NoiseLaw | int, k: int, *, ties: Literal["wrong", "half", "right"] = "wrong") -> float:
    """Equation (5): the probability that Algorithm 4 gives the right count from `k` two-partitions.

    The mean must lie within less than ½ of the count. A mean exactly between two counts is `"wrong"` as in the paper's
    formula, right every other time, `"half"`, as it is when it is rounded, or `"right"`, as in the paper's examples.
    """
    _partitions(k)
    low, law = sum_law(noise, 2 * k)
    twice = 2 * (low + np.arange(len(law)))
    right = float(law[np.abs(twice) < k].sum())
    share = {"wrong": 0.0, "half": 0.5, "right": 1.0}[ties]
    return min(right + share * float(law[np.abs(twice) == k].sum()), 1.0)


def rounded_error_law(noise: NoiseLaw | int, k: int) -> tuple[int, NDArray[np.float64]]:
    """The law of Algorithm 4's error in people: the smallest error, and the probability of each from there on.

    Of a mean between two counts the upper one is taken, as `dpwitness.attacks.table_builder.averaging.nearest` does.
    """
    _partitions(k)
    low, law = sum_law(noise, 2 * k)
    errors = (2 * (low + np.arange(len(law))) + k) // (2 * k)
    return int(errors[0]), np.bincount(errors - errors[0], weights=law).astype(np.float64)


def expected_right(noise: NoiseLaw | int, k: int, base_partitions: int, values: int, empty: int) -> float:
    """How many of `values` counts, `empty` of them 0, the histogram attack gets right on average (section 4.2.2).

    Each is the difference of two noise removals; those below 0 are cut off, so that an empty value is right as often as
    its difference is not positive. Taken as independent of the base set's removal, with which empty values share some
    noise.
    """
    low, first = rounded_error_law(noise, k)
    base_low, second = rounded_error_law(noise, base_partitions)
    differences = np.add.outer(low + np.arange(len(first)), -(base_low + np.arange(len(second))))
    joint = np.outer(first, second)
    return float((values - empty) * joint[differences == 0].sum() + empty * joint[differences <= 0].sum())


def value_bound(noise: NoiseLaw | int, k: int) -> float:
    """The union bound for one target value, two noise removals (section 4.2.2); 0.0 if vacuous."""
    return max(0.0, 1 - 2 * (1 - noise_removed(noise, k)))


def histogram_bound(noise: NoiseLaw | int, k: int, values: int) -> float:
    """The union bound for all of `values` counts, values + 1 noise removals (section 4.2.2); 0.0 if vacuous."""
    return max(0.0, 1 - (values + 1) * (1 - noise_removed(noise, k)))


def partitions_needed(noise: NoiseLaw | int, probability: float) -> int:
    """The number of two-partitions from which on Algorithm 4 succeeds with the wanted probability: 2k answers.

    Even k are the harder ones, as they allow ties: with this k, with k + 1 and with every larger one it succeeds.
    Raises `InvalidParameter` where more than 4 million would be needed.
    """
    _probability(probability)
    law, high = _law(noise), 2
    while noise_removed(law, high) < probability:
        high *= 2
        if high > MOST_PARTITIONS:
            raise InvalidParameter(f"probability={probability!r} needs more than {MOST_PARTITIONS} two-partitions")
    low = high // 2 - high // 2 % 2
    while high - low > 2:  # over even k, where success grows steadily
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if noise_removed(law, middle) >= probability else (middle, high)
    return high - 1 if noise_removed(law, high - 1) >= probability else high
