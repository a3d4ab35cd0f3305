"""How often averaging attacks succeed, and how many queries that takes: Asghar & Kaafar (2020), section 4."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.systems import NoiseLaw, uniform

MOST_PARTITIONS = 1 << 22
#: Numbers of partitions by how many parts they have, ((2, 200),); a number alone is one of two-partitions.
Kinds: TypeAlias = tuple[tuple[int, int], ...]


def _law(noise: NoiseLaw | int) -> NoiseLaw:
    return uniform(noise) if isinstance(noise, int | np.integer) else noise


def _probability(wanted: float) -> None:
    if not 0 < wanted < 1:
        raise InvalidParameter(f"probability={wanted!r} must lie between 0 and 1")


def _kinds(k: int | Kinds) -> Kinds:
    kinds = k if isinstance(k, tuple) else ((2, k),)
    if not all(number >= 1 for _, number in kinds):
        raise InvalidParameter(f"partitions={k!r} must be at least 1")
    return kinds


def _extreme(law: NoiseLaw, plus: int, minus: int) -> float:
    """The probability that a sum of `plus` noises minus `minus` others gives r away.

    It does where it lies beyond ±n(r − 1) with n = plus + minus, so that its n-th part rounds up to r.
    """
    n, p = plus + minus, dict(zip(law.support, law.probabilities, strict=True))
    near = [np.array([p.get(sign * (law.bound - d), 0.0) for d in range(n)]) for sign in (1, -1)]  # d short of ±r
    found = 0.0
    for high, low in (near, near[::-1]):
        tail = np.ones(1)
        for side in [high] * plus + [low] * minus:
            tail = np.convolve(tail, side)[:n]
        found += float(tail.sum())
    return found


def perturbation_found(noise: NoiseLaw | int, m: int, *, plus: int = 2, minus: int = 1) -> float:
    """Proposition 2 for any noise: the probability that Algorithm 3 finds r from `m` sub-populations (3m answers).

    `plus`, `minus`: how many answers are added and subtracted in each; two and one in Algorithm 3, where uniform noise
    gives r away with probability 20/(2r+1)³ each time.
    """
    if m < 0:
        raise InvalidParameter(f"m={m!r} must not be negative")
    return float(-np.expm1(m * np.log1p(-min(_extreme(_law(noise), plus, minus), 1 - 1e-16))))


def sub_populations_needed(noise: NoiseLaw | int, probability: float) -> int:
    """The smallest `m` with which Algorithm 3 succeeds with the wanted probability."""
    _probability(probability)
    extreme = _extreme(_law(noise), 2, 1)
    if not extreme > 0:
        raise InvalidParameter("this noise takes its largest value so rarely that no sum gives it away")
    return math.ceil(math.log1p(-probability) / math.log1p(-min(extreme, 1 - 1e-16)))


def chebyshev_bound(noise: NoiseLaw | int, k: int) -> float:
    """Inequality (4): a lower bound on the probability that `k` two-partitions give the right count; 0.0 if vacuous.

    For uniform noise within ±r it is 1 − 8r(r+1)/(3k).
    """
    _kinds(k)
    return max(0.0, 1 - 8 * _law(noise).variance / k)


def weighted_law(noise: NoiseLaw | int, k: int | Kinds) -> tuple[int, NDArray[np.float64], int]:
    """The law of the error of Algorithm 4's mean: smallest value, probabilities from there on, and what divides both.

    Sums of p parts count for 1/p of their value, as in `dpwitness.reconstruction.table_builder.averaging.combined`.
    """
    kinds, law = _kinds(k), _law(noise)
    common = math.lcm(*(parts for parts, _ in kinds))
    low, high = law.support[0], law.support[-1]
    length = sum(common * number for _, number in kinds) * (high - low) + 1
    size = 1 << (length - 1).bit_length()
    transform = np.ones(size // 2 + 1, np.complex128)
    for parts, number in kinds:
        single = np.zeros(common // parts * (high - low) + 1)
        single[common // parts * (np.array(law.support) - low)] = law.probabilities
        transform *= np.fft.rfft(single, size) ** (parts * number)
    probabilities = np.clip(np.fft.irfft(transform, size)[:length], 0.0, None)
    return sum(common * number for _, number in kinds) * low, probabilities, sum(common // p * n for p, n in kinds)


def noise_removed(noise: NoiseLaw | int, k: int | Kinds, *, ties: Literal["wrong", "half", "right"] = "wrong") -> float:
    """Equation (5): the probability that Algorithm 4 gives the right count from `k` two-partitions.

    The mean must lie within less than ½ of the count. A mean exactly between two counts is `"wrong"` as in the paper's
    formula, right every other time, `"half"`, as it is when it is rounded, or `"right"`, as in the paper's examples.
    """
    low, law, divisor = weighted_law(noise, k)
    twice = 2 * (low + np.arange(len(law)))
    right = float(law[np.abs(twice) < divisor].sum())
    share = {"wrong": 0.0, "half": 0.5, "right": 1.0}[ties]
    return min(right + share * float(law[np.abs(twice) == divisor].sum()), 1.0)


def rounded_error_law(noise: NoiseLaw | int, k: int | Kinds) -> tuple[int, NDArray[np.float64]]:
    """The law of Algorithm 4's error in people: the smallest error, and the probability of each from there on.

    Of a mean between two counts the upper one is taken, as `averaging.nearest` does.
    """
    low, law, divisor = weighted_law(noise, k)
    errors = (2 * (low + np.arange(len(law))) + divisor) // (2 * divisor)
    return int(errors[0]), np.bincount(errors - errors[0], weights=law).astype(np.float64)


def expected_right(
    noise: NoiseLaw | int, k: int | Kinds, base_partitions: int | Kinds, values: int, empty: int
) -> float:
    """How many of `values` counts, `empty` of them 0, the histogram attack gets right on average (section 4.2.2).

    Each is the difference of two noise removals; those below 0 are cut off, so that an empty value is right as often as
    its difference is not positive. Taken as independent of the base set's removal, with which empty values share some
    noise.
    """
    exact, cut_off = _pair_right(_law(noise), _kinds(k), _kinds(base_partitions))
    return (values - empty) * exact + empty * cut_off


def expected_right_of(noise: NoiseLaw | int, base: Kinds, kinds: Sequence[Kinds], empty: Sequence[bool]) -> float:
    """`expected_right` where values differ in their partitions: `kinds` of each, and whether it is empty."""
    pairs = [_pair_right(_law(noise), one, base)[nobody] for one, nobody in zip(kinds, empty, strict=True)]
    return float(sum(pairs))


@lru_cache(maxsize=64)
def _pair_right(law: NoiseLaw, k: Kinds, base: Kinds) -> tuple[float, float]:
    """How often two removals have the same error, and how often the first has no larger one."""
    low, first = rounded_error_law(law, k)
    base_low, second = rounded_error_law(law, base)
    # Where in `second` each error of `first` stands; before its beginning and beyond its end there is a 0.
    places = np.clip(np.arange(len(first)) + low - base_low, -1, len(second))
    same = np.append(second, 0.0)
    tail = np.append(np.cumsum(second[::-1])[::-1], 0.0)
    return float(first @ same[places]), float(first @ tail[np.maximum(places, 0)])


def value_bound(noise: NoiseLaw | int, k: int | Kinds) -> float:
    """The union bound for one target value, two noise removals (section 4.2.2); 0.0 if vacuous."""
    return max(0.0, 1 - 2 * (1 - noise_removed(noise, k)))


def histogram_bound(noise: NoiseLaw | int, k: int | Kinds, values: int) -> float:
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
