"""The noise remover, Algorithm 4 of Asghar & Kaafar (2020), averages bounded noise.

The two sides of every partition of an attribute's values have the same true sum, but different people, and so different
noise (section 4.2, Lemma 4).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.systems import MISSING_ANSWER, Block, System

#: Largest number of two-partitions of one set of values: the sides of 20 values take 20 MB.
MAX_PARTITIONS: Final = 1 << 20
#: Positions of some values among all values of an attribute.
Positions: TypeAlias = Sequence[int] | Integers
#: Pairs of a number of parts and the number of partitions into as many parts: ((2, 200),).
Kinds: TypeAlias = tuple[tuple[int, int], ...]


def number_of_partitions(size: int, extra: int = 0) -> int:
    """The number of two-partitions that `two_partitions` can draw: (2^(size−1) − 1)·2^extra; 0 for a size below 2."""
    return ((1 << (size - 1)) - 1) << extra if size >= 2 else 0


def two_partitions(rng: np.random.Generator, size: int, k: int | None = None, extra: int = 0) -> Booleans:
    """Draw `k` different two-partitions of `size` values, or all of them, in random order: flags of the first sides.

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


def usable(answers: Integers) -> Booleans:
    """Flags of the usable answers: neither 0, which may be a suppressed count, nor `MISSING_ANSWER`."""
    return np.asarray((answers != 0) & (answers != MISSING_ANSWER))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The sums of the answers of partitions into `parts` sets; each is the true count + `parts` noises, in people."""

    parts: int
    totals: Integers

    @classmethod
    def of(cls, answers: Integers) -> "Sums":
        """The sums of each partition's answers, shape (parts, partitions), without partitions with unusable answers.

        Suppression of a side depends on its people alone, so the remaining sums are unbiased.
        """
        return cls(parts=len(answers), totals=answers[:, np.all(usable(answers), axis=0)].sum(axis=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredBlock(Block):
    """Two-partitions, first sides, then second sides, and their answers, shape (questions,)."""

    answers: Integers

    @property
    def place(self) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
        """The attribute and the sub-population: `fit_counts` takes blocks of one place."""
        return self.attribute, tuple((name, tuple(map(repr, values))) for name, values in sorted(self.where.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """The mean of the sums that the noise remover averaged, in people."""

    mean: float
    kinds: Kinds
    information: float  # variance of one noise / variance of the mean: half the number of two-partitions, or 0
    squares: float  # the sum of squared deviations (people²), an estimate of `freedom` times the variance of one noise
    freedom: int  # the degrees of freedom of `squares`
    asked: tuple[AnsweredBlock, ...] = field(default=(), compare=False, repr=False)  # single answers kept for checks

    @property
    def count(self) -> int:
        """The count nearest to the mean."""
        return nearest(self.mean)

    @property
    def partitions(self) -> int:
        """The number of averaged sums."""
        return sum(k for _, k in self.kinds)

    @property
    def noises(self) -> float:
        """The number of noises in the mean of the sums: 2 for two-partitions."""
        return self.partitions / self.information if self.information else 0.0

    def error(self, variance: float | None) -> float:
        """The standard error of the mean, in people, by the variance of one noise (people²); infinite if unknown."""
        return math.inf if variance is None or not self.information else math.sqrt(variance / self.information)


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
    # Sums of bounded noises hardly exceed 3 standard deviations; a garbled answer, or that of another table, hundreds.
    far = apart > 6.0 * max(1.4826 * float(np.median(apart)), 1.0)
    if far.any():
        _, place, number = np.unique(values, return_inverse=True, return_counts=True)
        far &= number[place] < 0.05 * len(values)
    return np.asarray(far)


def average(sums: Sequence[Sums], asked: tuple[AnsweredBlock, ...] = ()) -> Average:
    """The average of sums of one count, each with the weight 1/parts, the inverse of its variance.

    Sums that are `outliers` among the sums of as many parts are left out: bounded noise has no outliers, and a garbled
    answer would move the mean by many people. The average of no sum has `information` 0. `asked`: the single answers to
    keep.
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
    """The variance of one noise (people²), estimated from deviations of sums of one count; None without two sums."""
    freedom = sum(one.freedom for one in averages)
    return sum(one.squares for one in averages) / freedom if freedom else None


def value_positions(oracle: System, attribute: str, positions: Positions) -> Integers:
    """Positions of values as an array; raises `InvalidParameter` for repeated and for unknown positions."""
    size = len(oracle.values(attribute))
    array = np.asarray(positions, np.int64)
    if np.any((array < 0) | (array >= size)) or len(np.unique(array)) != len(array):
        raise InvalidParameter(f"positions {array.tolist()} must be different and below {size}")
    return array


def both_sides(width: int, base: Integers, sides: Booleans, beside: Integers) -> Booleans:
    """The selections of two-partitions: first sides, then second sides; shape (2·partitions, width).

    `sides`: flags of the values at the positions `base` that are on the first side, shape (partitions, len(base)); the
    values at the positions `beside` are always on the second side.
    """
    selections = np.zeros((2 * len(sides), width), np.bool_)
    selections[: len(sides), base] = sides
    selections[len(sides) :, base] = ~sides
    selections[len(sides) :, beside] = True
    return selections


def choose_base(oracle: System, attribute: str, size: int) -> Integers:
    """Positions of the values with the largest answers above 0, at most `size` of them."""
    answers = oracle.ask(attribute, np.eye(len(oracle.values(attribute)), dtype=np.bool_))
    answers = np.where(usable(answers), answers, 0)
    order = np.argsort(-answers, kind="stable")
    return np.sort(order[: np.count_nonzero(answers)][:size])
