"""The noise remover, Algorithm 4 of Asghar & Kaafar (2020): it averages bounded noise away.

It sees nothing but answers. The idea: many questions about different people, and so with different noise, have the
same true sum. Partitions of the values of an attribute give them (section 4.2, Lemma 4).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.systems import MISSING, System
from dpwitness.reconstruction.table_builder.tables import BoolArray, FloatArray, IntArray, Where

MAX_PARTITIONS: Final = 1 << 20
#: Robust standard deviations from the median beyond which a value is no noise, and values from which on that is judged.
#: Sums of bounded noises hardly come to 3 of them; a table lookup gone wrong, or a garbled answer, comes to hundreds.
OUTLIER, FEWEST_JUDGED = 6.0, 20
#: The share of values from which on one and the same is no garbled answer.
OFTEN: Final = 0.05
#: Positions of values among an attribute's.
Positions: TypeAlias = Sequence[int] | IntArray
#: Numbers of partitions by how many parts they have: ((2, 200),).
Kinds: TypeAlias = tuple[tuple[int, int], ...]


def number_of_partitions(size: int, extra: int = 0) -> int:
    """How many two-partitions `two_partitions` can give: (2^(size−1) − 1)·2^extra; 0 for fewer than two values."""
    return ((1 << (size - 1)) - 1) << extra if size >= 2 else 0


def two_partitions(rng: np.random.Generator, size: int, k: int | None = None, extra: int = 0) -> BoolArray:
    """`k` different two-partitions of `size` values without replacement, or all, in random order; one side each.

    There are 2^(size−1) − 1 of them (Lemma 4); never more are given. Shape (partitions, size + extra). The last of the
    `size` values is always on the other side, so that no partition is met twice. `extra`: values that may lie on either
    side, in the last columns; each side has one of the others (appendix C, first workaround).

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
    """Which answers say something: those that are neither 0, that is, suppressed, nor `MISSING`."""
    return np.asarray((answers != 0) & (answers != MISSING))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """For each partition into `parts` sets the sum of their answers: one true count + `parts` noises."""

    parts: int
    totals: IntArray

    @classmethod
    def of(cls, answers: IntArray) -> "Sums":
        """From answers, shape (parts, partitions).

        A partition with a suppressed side, that is, an answer of 0, is left out: whether a side is suppressed depends
        on its people alone, so that what is left is as unbiased as before. So is one with an answer that is `MISSING`.
        """
        return cls(parts=len(answers), totals=answers[:, np.all(usable(answers), axis=0)].sum(axis=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredBlock:
    """Two-partitions of one attribute's values within a sub-population, and their answers.

    `bits`: first sides, then second ones, a bit a value, as `numpy.packbits` has them; shape (questions, bytes).
    """

    attribute: str
    where: Where
    bits: NDArray[np.uint8]
    width: int
    answers: IntArray

    @property
    def selections(self) -> BoolArray:
        """Shape (questions, values)."""
        return np.unpackbits(self.bits, axis=1, count=self.width).astype(np.bool_)

    @property
    def place(self) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
        """What selections must share to be fitted together."""
        return self.attribute, tuple((name, tuple(map(repr, values))) for name, values in sorted(self.where.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """What the noise remover found: the mean of its sums.

    Attributes
    ----------
    kinds
        Of how many parts the partitions were, and how many there were of these: ((2, 200),).
    information
        The variance of one noise divided by that of the mean: half the number of two-partitions; 0 where there is no
        sum.
    squares, freedom
        `squares / freedom` estimates the variance of one noise (people²) from how far the sums lie apart.
    asked
        The single answers, where they were kept.
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
        """How many sums were averaged."""
        return sum(k for _, k in self.kinds)

    @property
    def noises(self) -> float:
        """How many times the mean holds the mean of the noise: 2 of two-partitions."""
        return self.partitions / self.information if self.information else 0.0

    def error(self, variance: float | None) -> float:
        """The standard error of the mean in people, for that variance of one noise; infinite where nothing tells it."""
        return math.inf if variance is None or not self.information else math.sqrt(variance / self.information)


def nearest(mean: float) -> int:
    """The nearest whole number; halves go up, so that of two equally bad guesses one is taken without bias to 0."""
    return int(np.floor(mean + 0.5))


def outliers(values: IntArray | FloatArray) -> BoolArray:
    """Which values are no sum of the same count and bounded noise: more than 6 robust standard deviations away.

    That is of the median; the standard deviation is estimated by the median absolute deviation (1 at least: noise is
    whole). It holds as long as less than half of the values are wrong. A value that is there often is none: answers
    that are rounded to tens give few different sums. Of fewer than 20 values none is judged.
    """
    if len(values) < FEWEST_JUDGED:
        return np.zeros(len(values), np.bool_)
    apart = np.abs(values - np.median(values))
    far = apart > OUTLIER * max(1.4826 * float(np.median(apart)), 1.0)
    if far.any():
        _, place, number = np.unique(values, return_inverse=True, return_counts=True)
        far &= number[place] < OFTEN * len(values)
    return np.asarray(far)


def average(sums: Sequence[Sums], asked: tuple[AnsweredBlock, ...] = ()) -> Average:
    """Average sums of the same count, each weighted by the inverse of its variance: one over its number of parts.

    Sums that are `outliers` among those of as many parts are left out: of bounded noise there are none, and a garbled
    answer would move the mean by many people. Without `information` where there is no sum at all. `asked`: the single
    answers, to be kept.
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
    """The variance of one noise, from how far sums of the same count lie apart (people²)."""
    freedom = sum(one.freedom for one in averages)
    return sum(one.squares for one in averages) / freedom if freedom else None


def value_positions(oracle: System, attribute: str, positions: Positions) -> IntArray:
    """Positions of values as an array; raises `InvalidParameter` for repeated ones and those that are not there."""
    size = len(oracle.values(attribute))
    array = np.asarray(positions, np.int64)
    if np.any((array < 0) | (array >= size)) or len(np.unique(array)) != len(array):
        raise InvalidParameter(f"positions {array.tolist()} must be different and below {size}")
    return array


def both_sides(width: int, base: IntArray, sides: BoolArray, beside: IntArray) -> BoolArray:
    """The selections of two-partitions: first sides, then second ones; shape (2·partitions, width).

    `sides`: which of the values at the positions `base` are on the first side, shape (partitions, len(base)); those at
    the positions `beside` are always on the second one.
    """
    selections = np.zeros((2 * len(sides), width), np.bool_)
    selections[: len(sides), base] = sides
    selections[len(sides) :, base] = ~sides
    selections[len(sides) :, beside] = True
    return selections


def choose_base(oracle: System, attribute: str, size: int) -> IntArray:
    """Positions of the `size` values with the largest answers, all of them above 0; fewer where there are no more."""
    answers = oracle.ask(attribute, np.eye(len(oracle.values(attribute)), dtype=np.bool_))
    answers = np.where(usable(answers), answers, 0)
    order = np.argsort(-answers, kind="stable")
    return np.sort(order[: np.count_nonzero(answers)][:size])
