"""The noise remover, Algorithm 4 of Asghar & Kaafar (2020), averages bounded noise away.

It sees answers alone. Many pairs of questions about different people, and so with different noise, have one true sum:
the two sides of each partition of an attribute's values (section 4.2, Lemma 4).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.systems import MISSING_ANSWER, System
from dpwitness.reconstruction.table_builder.tables import BoolArray, FloatArray, IntArray, Where

#: Largest number of two-partitions of one set of values: the sides of 20 values take 20 MB.
MAX_PARTITIONS: Final = 1 << 20
#: Positions of some values among all values of an attribute.
Positions: TypeAlias = Sequence[int] | IntArray
#: Pairs of a number of parts and the number of partitions into as many parts: ((2, 200),).
Kinds: TypeAlias = tuple[tuple[int, int], ...]


def number_of_partitions(size: int, extra: int = 0) -> int:
    """The number of two-partitions that `two_partitions` can draw: (2^(size−1) − 1)·2^extra; 0 for a size below 2."""
    return ((1 << (size - 1)) - 1) << extra if size >= 2 else 0


def two_partitions(rng: np.random.Generator, size: int, k: int | None = None, extra: int = 0) -> BoolArray:
    """Draw the first sides of `k` different two-partitions of `size` values, or of all, in random order.

    At most 2^(size−1) − 1 partitions exist (Lemma 4) and are returned. Shape (partitions, size + extra). The last of
    the `size` values is always on the second side, so that each partition is drawn once. `extra`: number of values that
    may lie on either side, in the last columns; each side has one of the `size` values (appendix C, first workaround).

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


def usable(answers: IntArray) -> BoolArray:
    """Flags of the usable answers, which are neither 0, that is, suppressed, nor `MISSING_ANSWER`."""
    return np.asarray((answers != 0) & (answers != MISSING_ANSWER))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The sum of the answers of each partition into `parts` sets: one true count + `parts` noises."""

    parts: int
    totals: IntArray

    @classmethod
    def of(cls, answers: IntArray) -> "Sums":
        """Sum the answers of each partition, shape (parts, partitions).

        Partitions with a suppressed side, that is, an answer of 0, or with a `MISSING_ANSWER` are left out: whether a
        side is suppressed depends on its people alone, so the remaining sums are unbiased.
        """
        return cls(parts=len(answers), totals=answers[:, np.all(usable(answers), axis=0)].sum(axis=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredBlock:
    """Two-partitions of one attribute's values within a sub-population, and their answers.

    `bits`: first sides, then second sides, a bit for each value, as `numpy.packbits` packs them; shape (questions,
    bytes).
    """

    attribute: str
    where: Where
    bits: NDArray[np.uint8]
    width: int
    answers: IntArray

    @property
    def selections(self) -> BoolArray:
        """The values that each question selects, shape (questions, values)."""
        return np.unpackbits(self.bits, axis=1, count=self.width).astype(np.bool_)

    @property
    def place(self) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
        """The attribute and the sub-population; one fit takes blocks of one place."""
        return self.attribute, tuple((name, tuple(map(repr, values))) for name, values in sorted(self.where.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """The mean of the sums that the noise remover averaged, in people.

    Attributes
    ----------
    kinds
        Pairs of a number of parts and the number of partitions into as many parts: ((2, 200),).
    information
        The variance of one noise divided by the variance of the mean: half the number of two-partitions; 0 without a
        sum.
    squares, freedom
        The sum of squared deviations (people²) and its degrees of freedom: `squares / freedom` estimates the variance
        of one noise.
    asked
        The single answers, if they were kept.
    """

    mean: float
    kinds: Kinds
    information: float
    squares: float
    freedom: int
    asked: tuple[AnsweredBlock, ...] = field(default=(), compare=False, repr=False)

    @property
    def count(self) -> int:
        """The count nearest to the mean."""
        return nearest(self.mean)

    @property
    def partitions(self) -> int:
        """The number of sums that were averaged."""
        return sum(k for _, k in self.kinds)

    @property
    def noises(self) -> float:
        """The number of noises in the mean of the sums: 2 for two-partitions."""
        return self.partitions / self.information if self.information else 0.0

    def error(self, variance: float | None) -> float:
        """The standard error of the mean in people, given the variance of one noise (people²); infinite if unknown."""
        return math.inf if variance is None or not self.information else math.sqrt(variance / self.information)


def nearest(mean: float) -> int:
    """The nearest whole number; halves go up, which has no bias towards 0."""
    return int(np.floor(mean + 0.5))


def outliers(values: IntArray | FloatArray) -> BoolArray:
    """Flags of values that are more than 6 robust standard deviations from the median, out of reach of bounded noise.

    The standard deviation is estimated by the median absolute deviation (1 at least: noise is whole), which works as
    long as less than half of the values are wrong. Fewer than 20 values have no outlier, and a value that at least 5 %
    of the values equal is no outlier: answers that are rounded to tens have few different sums.
    """
    if len(values) < 20:
        return np.zeros(len(values), np.bool_)
    apart = np.abs(values - np.median(values))
    # Sums of bounded noises hardly reach 3 standard deviations; a wrong table lookup, or a garbled answer, hundreds.
    far = apart > 6.0 * max(1.4826 * float(np.median(apart)), 1.0)
    if far.any():
        _, place, number = np.unique(values, return_inverse=True, return_counts=True)
        far &= number[place] < 0.05 * len(values)
    return np.asarray(far)


def average(sums: Sequence[Sums], asked: tuple[AnsweredBlock, ...] = ()) -> Average:
    """Average sums of the same count, each weighted by the inverse of its variance: one over its number of parts.

    Sums that are `outliers` among the sums of as many parts are left out: bounded noise has no outliers, and a garbled
    answer would move the mean by many people. The average without any sum has no `information`. `asked`: the single
    answers to keep.
    """
    kinds: dict[int, int] = {}
    weighted = information = squares = 0.0
    freedom = 0
    for parts in dict.fromkeys(one.parts for one in sums):
        groups = [one.totals for one in sums if one.parts == parts]
        wrong = np.split(outliers(np.concatenate(groups)), np.cumsum([len(one) for one in groups])[:-1])
        for group, out in zip(groups, wrong, strict=True):
            totals = group[~out]
            if not len(totals):
                continue
            kinds[parts] = kinds.get(parts, 0) + len(totals)
            weighted += float(totals.sum()) / parts
            information += len(totals) / parts
            squares += float(np.square(totals - totals.mean()).sum()) / parts
            freedom += len(totals) - 1
    return Average(
        mean=weighted / information if information else 0.0,
        kinds=tuple(sorted(kinds.items())),
        information=information,
        squares=squares,
        freedom=freedom,
        asked=asked,
    )


def noise_variance(averages: Sequence[Average]) -> float | None:
    """The variance of one noise (people²), estimated from deviations of sums of the same count; None without any."""
    freedom = sum(one.freedom for one in averages)
    return sum(one.squares for one in averages) / freedom if freedom else None


def value_positions(oracle: System, attribute: str, positions: Positions) -> IntArray:
    """Positions of values as an array; raises `InvalidParameter` for repeated and for unknown positions."""
    size = len(oracle.values(attribute))
    array = np.asarray(positions, np.int64)
    if np.any((array < 0) | (array >= size)) or len(np.unique(array)) != len(array):
        raise InvalidParameter(f"positions {array.tolist()} must be different and below {size}")
    return array


def both_sides(width: int, base: IntArray, sides: BoolArray, beside: IntArray) -> BoolArray:
    """The selections of two-partitions: first sides, then second sides; shape (2·partitions, width).

    `sides`: flags of the values at the positions `base` that are on the first side, shape (partitions, len(base)); the
    values at the positions `beside` are always on the second side.
    """
    selections = np.zeros((2 * len(sides), width), np.bool_)
    selections[: len(sides), base] = sides
    selections[len(sides) :, base] = ~sides
    selections[len(sides) :, beside] = True
    return selections


def choose_base(oracle: System, attribute: str, size: int) -> IntArray:
    """Positions of the values with the largest answers above 0, at most `size` of them."""
    answers = oracle.ask(attribute, np.eye(len(oracle.values(attribute)), dtype=np.bool_))
    answers = np.where(usable(answers), answers, 0)
    order = np.argsort(-answers, kind="stable")
    return np.sort(order[: np.count_nonzero(answers)][:size])
