"""The noise remover, Algorithm 4 of Asghar & Kaafar (2020), averages bounded noise.

The two sides of every partition of an attribute's values have the same true sum, but different people, and so different
noise (section 4.2, Lemma 4).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.systems import MISSING_ANSWER, QuerySystem

#: Largest number of two-partitions of one set of values: the sides of 20 values take 20 MB.
MAX_PARTITIONS: Final = 1 << 20
#: Positions of some values among all values of an attribute.
Positions: TypeAlias = Sequence[int] | Integers


def number_of_partitions(size: int, extra: int = 0) -> int:
    """The number of two-partitions that `two_partitions` can draw: (2^(size−1) − 1)·2^extra; 0 for a size below 2."""
    return ((1 << (size - 1)) - 1) << extra if size >= 2 else 0


def two_partitions(rng: np.random.Generator, size: int, k: int | None = None, extra: int = 0) -> Booleans:
    """Draw `k` different two-partitions of `size` values, or all of them, in random order: flags of the first sides.

    At most `number_of_partitions` exist (Lemma 4) and are returned. Shape (partitions, size + extra). The last of the
    `size` values is always on the second side, so that each partition is drawn once. `extra`: number of values that may
    lie on either side, in the last columns; each side has one of the `size` values (appendix C, first workaround).

    Raises `InvalidParameter` for fewer than two values.
    """
    if size < 2:
        raise InvalidParameter(f"a set of {size} values has no two-partition: at least 2 are needed")
    if k is not None and k < 1:
        raise InvalidParameter(f"partitions={k!r} must be at least 1")
    total = number_of_partitions(size, extra)
    if min(total, math.inf if k is None else k) > MAX_PARTITIONS:
        raise InvalidParameter(
            f"{size + extra} values have 2^{(total + 1).bit_length() - 1} − 1 two-partitions or so: use at most "
            f"{MAX_PARTITIONS} of them, not {'all' if k is None else k}"
        )
    k = total if k is None else min(k, total)
    if size + extra <= 62:
        codes = rng.choice(total, k, replace=False)
        sides = 1 + (codes >> extra)
        both = [sides[:, None] >> np.arange(size), codes[:, None] >> np.arange(extra)]
        return np.asarray(np.hstack(both) & 1, np.bool_)
    drawn = np.zeros((0, size + extra), np.bool_)
    while len(drawn) < k:
        more = rng.random((k, size + extra)) < 0.5
        more[:, size - 1] = False
        drawn = np.unique(np.vstack([drawn, more[more[:, :size].any(axis=1)]]), axis=0)
    return np.asarray(rng.permutation(drawn)[:k])


def usable(answers: Integers) -> Booleans:
    """Flags of the usable answers: neither 0, which may be a suppressed count, nor `MISSING_ANSWER`."""
    return np.asarray((answers != 0) & (answers != MISSING_ANSWER))


def nearest(mean: float) -> int:
    """The nearest whole number; halves go up, which has no bias towards 0."""
    return int(np.floor(mean + 0.5))


def outliers(values: Integers | Floats) -> Booleans:
    """Flags of values more than 6 robust standard deviations from the median, where bounded noise does not reach.

    The median absolute deviation (at least 1: noise is whole) estimates the standard deviation, as long as fewer than
    half of the values are wrong. Fewer than 20 values have no outlier, and a value that 5 % of the values equal is no
    outlier: answers that are rounded to tens have few different sums.
    """
    if len(values) < 20:
        return np.zeros(len(values), np.bool_)
    apart = np.abs(values - np.median(values))
    # Sums of bounded noises hardly exceed 3 standard deviations; garbled answers, or another table's, exceed hundreds.
    far = apart > 6.0 * max(1.4826 * float(np.median(apart)), 1.0)
    if far.any():
        _, place, number = np.unique(values, return_inverse=True, return_counts=True)
        far &= number[place] < 0.05 * len(values)
    return np.asarray(far)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """Two-partitions of a set of values.

    `sides`: flags of the values at the positions `base` that are on the first side, shape (partitions, len(base)); the
    values at the positions `beside` are always on the second side.
    """

    base: Integers
    beside: Integers
    sides: Booleans

    @property
    def values(self) -> Integers:
        """The positions of all values of the set."""
        return np.append(self.base, self.beside)

    def selections(self, width: int) -> Booleans:
        """The questions, first sides, then second sides, about an attribute with `width` values; shape (2·k, width)."""
        k = len(self.sides)
        selections = np.zeros((2 * k, width), np.bool_)
        selections[:k, self.base] = self.sides
        selections[k:, self.base] = ~self.sides
        selections[k:, self.beside] = True
        return selections


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PartitionAnswers:
    """The partitions whose two answers are usable, and these answers, first sides, then second sides; shape (2, k).

    Partitions whose sum is one of the `outliers` are left out, too: a garbled answer would move the mean by many
    people. Suppression of a side depends on its people alone, so the remaining sums are unbiased.
    """

    partitions: Partitions
    answers: Integers

    @classmethod
    def of(cls, partitions: Partitions, given: Integers) -> "PartitionAnswers":
        """Choose the usable answers among the answers to all questions of the partitions, shape (2·k,)."""
        both = given.reshape(2, -1)
        kept = np.asarray(usable(both).all(axis=0))
        kept[kept] = ~outliers(both[:, kept].sum(axis=0))
        left = Partitions(base=partitions.base, beside=partitions.beside, sides=partitions.sides[kept])
        return cls(partitions=left, answers=both[:, kept])

    @property
    def number(self) -> int:
        """The number of partitions."""
        return int(self.answers.shape[1])

    @property
    def mean(self) -> float:
        """The estimate of Algorithm 4, in people: the mean sum of the two sides; NaN without a partition."""
        return float(self.answers.sum(axis=0).mean()) if self.number else math.nan


def noise_variance(counted: Sequence[PartitionAnswers]) -> float | None:
    """The variance of one answer's noise (people²), from repeated sums of a count; None if no count has two sums."""
    sums = [one.answers.sum(axis=0) for one in counted if one.number]
    freedom = sum(len(one) - 1 for one in sums)
    return sum(float(np.square(one - one.mean()).sum()) for one in sums) / (2 * freedom) if freedom else None


def value_positions(oracle: QuerySystem, attribute: str, positions: Positions) -> Integers:
    """Positions of values as an array; raises `InvalidParameter` for repeated and for unknown positions."""
    size = len(oracle.values(attribute))
    array = np.asarray(positions, np.int64)
    if np.any((array < 0) | (array >= size)) or len(np.unique(array)) != len(array):
        raise InvalidParameter(f"positions {array.tolist()} must be different and below {size}")
    return array


def choose_base(oracle: QuerySystem, attribute: str, size: int) -> Integers:
    """Positions of the values with the largest answers above 0, at most `size` of them."""
    answers = oracle.ask(attribute, np.eye(len(oracle.values(attribute)), dtype=np.bool_))
    answers = np.where(usable(answers), answers, 0)
    order = np.argsort(-answers, kind="stable")
    return np.sort(order[: np.count_nonzero(answers)][:size])
