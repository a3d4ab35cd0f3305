"""The success probabilities and numbers of queries of averaging attacks: Asghar & Kaafar (2020), section 4."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from dpwitness.arrays import Floats
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.noise_laws import NoiseLaw, as_law

#: Pairs of a number of parts and the number of partitions into this number of parts: ((2, 200),).
Kinds: TypeAlias = tuple[tuple[int, int], ...]


def _as_kinds(k: int | Kinds) -> Kinds:
    """The number of partitions for each number of parts; an integer k means k partitions into two parts."""
    kinds = k if isinstance(k, tuple) else ((2, k),)
    if not all(number >= 1 for _, number in kinds):
        raise InvalidParameter(f"partitions={k!r} must be at least 1")
    return kinds


def _probability_of_extreme(law: NoiseLaw) -> float:
    """The probability that a sum of two noises less a third shows the law's bound r: it lies beyond ±3(r − 1)."""
    p = dict(zip(law.support, law.probabilities, strict=True))
    # The probabilities of the noises ±(r − d).
    high, low = (np.array([p.get(sign * (law.bound - d), 0.0) for d in range(3)]) for sign in (1, -1))
    return float(sum(np.convolve(np.convolve(one, one), other)[:3].sum() for one, other in ((high, low), (low, high))))


def perturbation_found(noise: NoiseLaw | int, m: int) -> float:
    """Proposition 2 for any noise: the probability that Algorithm 3 finds r from `m` sub-populations (3m answers).

    A sum of uniform noise shows r with probability 20/(2r+1)³.
    """
    if m < 0:
        raise InvalidParameter(f"m={m!r} must not be negative")
    return float(-np.expm1(m * np.log1p(-min(_probability_of_extreme(as_law(noise)), 1 - 1e-16))))


def weighted_law(noise: NoiseLaw | int, k: int | Kinds) -> tuple[int, Floats, int]:
    """The law of the error of Algorithm 4's mean: smallest multiple, probabilities from it on, and divisor.

    Errors are multiples of 1/divisor people. Sums of p parts have the weight 1/p, the inverse of their variance.
    """
    kinds, law = _as_kinds(k), as_law(noise)
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

    The mean must differ from the count by less than ½. A mean exactly between two counts is `"wrong"`, as in the
    paper's formula, or `"right"`, as in its examples, or right with probability ½, `"half"`, as when it is rounded.
    """
    low, law, divisor = weighted_law(noise, k)
    twice = 2 * (low + np.arange(len(law)))
    right = float(law[np.abs(twice) < divisor].sum())
    share = {"wrong": 0.0, "half": 0.5, "right": 1.0}[ties]
    return min(right + share * float(law[np.abs(twice) == divisor].sum()), 1.0)


def rounded_error_law(noise: NoiseLaw | int, k: int | Kinds) -> tuple[int, Floats]:
    """The law of Algorithm 4's error in people: the smallest error, and the probability of each error from it on.

    A mean exactly between two counts is rounded up, as in `averaging.nearest`.
    """
    low, law, divisor = weighted_law(noise, k)
    errors = (2 * (low + np.arange(len(law))) + divisor) // (2 * divisor)
    return int(errors[0]), np.bincount(errors - errors[0], weights=law).astype(np.float64)


def expected_right(
    noise: NoiseLaw | int, base: int | Kinds, kinds: Sequence[int | Kinds], empty: Sequence[bool]
) -> float:
    """The expected number of counts that the histogram attack gets right (section 4.2.2).

    `base`, `kinds`: the partitions of the base set and of each count; `empty`: whether nobody has the value. Each count
    is the difference of two averages, and at least 0, so the count 0 is right as often as the difference is not
    positive. The averages are treated as independent, although empty values share some noise with the base set.
    """
    law, first = as_law(noise), _as_kinds(base)
    return float(
        sum(_pair_probabilities(law, _as_kinds(one), first)[nobody] for one, nobody in zip(kinds, empty, strict=True))
    )


@lru_cache(maxsize=64)
def _pair_probabilities(law: NoiseLaw, k: Kinds, base: Kinds) -> tuple[float, float]:
    """The probabilities that the averages of `k` and `base` have the same error, and that the first is not larger."""
    low, first = rounded_error_law(law, k)
    base_low, second = rounded_error_law(law, base)
    # The place of each error of `first` in `second`; errors outside of `second` have probability 0.
    places = np.clip(np.arange(len(first)) + low - base_low, -1, len(second))
    same = np.append(second, 0.0)
    tail = np.append(np.cumsum(second[::-1])[::-1], 0.0)
    return float(first @ same[places]), float(first @ tail[np.maximum(places, 0)])


def histogram_bound(noise: NoiseLaw | int, k: int | Kinds, values: int = 1) -> float:
    """The union bound for all of `values` counts, values + 1 noise removals (section 4.2.2); at least 0."""
    return max(0.0, 1 - (values + 1) * (1 - noise_removed(noise, k)))
