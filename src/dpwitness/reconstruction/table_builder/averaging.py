"""Partitions of the values of an attribute: questions with different contributors that have one true sum.

Asghar & Kaafar (2020), section 4.2 (Lemma 4), section 7.2 (three-partitions), appendix C.

Averaging attacks on bounded noise: they take the noise out of answers and see nothing but answers.

Asghar & Kaafar (2020): Algorithm 4 with section 4.2.2. The trick: many questions with different
contributors, and so with different noise, yet with one true answer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.systems import MISSING, System, Where

Flags = NDArray[np.bool_]
Wholes = NDArray[np.int64]
MOST_PARTITIONS = 1 << 20


def how_many(size: int, extra: int = 0) -> int:
    """How many two-partitions `two_partitions` can give: (2^(size−1) − 1)·2^extra; 0 for fewer than two values."""
    return ((1 << (size - 1)) - 1) << extra if size >= 2 else 0


def two_partitions(rng: np.random.Generator, size: int, k: int | None = None, extra: int = 0) -> Flags:
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
    total = how_many(size, extra)
    if min(total, math.inf if k is None else k) > MOST_PARTITIONS:
        raise InvalidParameter(
            f"{size + extra} values have 2^{(total + 1).bit_length() - 1} − 1 two-partitions or so: use at most "
            f"{MOST_PARTITIONS} of them, not {'all' if k is None else k}"
        )
    k = total if k is None else min(k, total)
    if size + extra <= 62:
        codes = rng.choice(total, k, replace=False)
        sides = 1 + (codes >> extra)
        both = [sides[:, None] >> np.arange(size), codes[:, None] >> np.arange(extra)]
        return np.asarray(np.hstack(both) & 1, np.bool_)
    found = np.zeros((0, size + extra), np.bool_)
    while len(found) < k:
        more = rng.random((k, size + extra)) < 0.5
        more[:, size - 1] = False
        found = np.unique(np.vstack([found, more[more[:, :size].any(axis=1)]]), axis=0)
    return np.asarray(rng.permutation(found)[:k])


def several_partitions(rng: np.random.Generator, size: int, k: int, parts: int) -> Wholes:
    """Up to `k` different partitions of `size` values into `parts` sets, none empty: the set of each value.

    Shape (partitions, size). Drawn at random, so that of all partitions of few values some may not be met.
    """
    if not 2 <= parts <= size:
        raise InvalidParameter(f"parts={parts!r} must lie between 2 and the number of values, {size}")
    found = np.zeros((0, size), np.int64)
    for _ in range(50):  # of few values there may be fewer than k
        drawn = rng.integers(0, parts, (2 * k, size))
        drawn = _in_order_of_appearance(drawn, parts)
        drawn = drawn[drawn.max(axis=1) == parts - 1]
        found = np.unique(np.vstack([found, drawn]), axis=0)
        if len(found) >= k:
            break
    return np.asarray(rng.permutation(found)[:k])


def _in_order_of_appearance(labels: Wholes, parts: int) -> Wholes:
    """The same partitions with their sets numbered in the order in which the values meet them."""
    renamed = np.full((len(labels), parts), -1)
    met = np.zeros(len(labels), np.int64)
    rows = np.arange(len(labels))
    out = np.empty_like(labels)
    for column in range(labels.shape[1]):
        label = labels[:, column]
        new = renamed[rows, label] < 0
        renamed[rows[new], label[new]] = met[new]
        met += new
        out[:, column] = renamed[rows, label]
    return out


#: Robust standard deviations from the median beyond which a value is no noise, and values from which on that is judged.
#: Sums of bounded noises hardly come to 3 of them; a table lookup gone wrong, or a garbled answer, comes to hundreds.
OUTLIER, FEWEST_JUDGED = 6.0, 20
#: The share of values from which on one and the same is no garbled answer.
OFTEN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """For each partition into `parts` sets the sum of their answers: one true count + `parts` noises."""

    parts: int
    totals: Wholes

    @classmethod
    def of(cls, answers: Wholes) -> "Sums":
        """From answers, shape (parts, partitions).

        A partition with a suppressed side, that is, an answer of 0, is left out: whether a side is suppressed depends
        on its people alone, so that what is left is as unbiased as before. So is one with an answer that is `MISSING`.
        """
        return cls(parts=len(answers), totals=answers[:, np.all(usable(answers), axis=0)].sum(axis=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What the noise remover found: the mean of its sums, the count nearest to it, and what that cost.

    Attributes
    ----------
    kinds
        Of how many parts the partitions were, and how many there were of these: ((2, 200),).
    information
        The variance of one noise divided by that of the mean: half the number of two-partitions.
    squares, freedom
        `squares / freedom` estimates the variance of one noise (people²) from how far the sums lie apart.
    dropped
        Sums that were left out as outliers.
    asked
        The single answers, as `dpwitness.reconstruction.table_builder.confidence.Asked`, where they were kept.
    """

    mean: float
    count: int
    queries: int
    kinds: tuple[tuple[int, int], ...]
    information: float
    squares: float
    freedom: int
    dropped: int = 0
    asked: tuple[Any, ...] = field(default=(), compare=False, repr=False)

    @property
    def partitions(self) -> int:
        """How many sums were averaged."""
        return sum(k for _, k in self.kinds)

    @property
    def noises(self) -> float:
        """How many times the mean holds the mean of the noise: 2 of two-partitions."""
        return self.partitions / self.information if self.information else 0.0


def nearest(mean: float) -> int:
    """The nearest whole number; halves go up, so that of two equally bad guesses one is taken without bias to 0."""
    return int(np.floor(mean + 0.5))


def usable(answers: Wholes) -> Flags:
    """Which answers say something: those that are neither 0, that is, suppressed, nor `MISSING`."""
    return np.asarray((answers != 0) & (answers != MISSING))


def outliers(values: NDArray[Any]) -> Flags:
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


def combined(sums: Sequence[Sums], queries: int) -> Removed:
    """Average sums of the same count, each weighted by the inverse of its variance: one over its number of parts.

    Sums that are `outliers` among those of as many parts are left out: of bounded noise there are none, and a garbled
    answer would move the mean by many people. Raises `InvalidParameter` where there is no sum at all.
    """
    kinds: dict[int, int] = {}
    weighted = information = squares = 0.0
    freedom = dropped = 0
    wrong = _outliers_by_parts(sums)
    for one, out in zip(sums, wrong, strict=True):
        totals = one.totals[~out]
        dropped += int(np.count_nonzero(out))
        if not len(totals):
            continue
        kinds[one.parts] = kinds.get(one.parts, 0) + len(totals)
        weighted += float(totals.sum()) / one.parts
        information += len(totals) / one.parts
        squares += float(np.square(totals - totals.mean()).sum()) / one.parts
        freedom += len(totals) - 1
    if not kinds:
        raise InvalidParameter("each partition has a side whose answer is 0: take values with larger answers")
    mean = weighted / information
    return Removed(
        mean=mean,
        count=nearest(mean),
        queries=queries,
        kinds=tuple(sorted(kinds.items())),
        information=information,
        squares=squares,
        freedom=freedom,
        dropped=dropped,
    )


def _outliers_by_parts(sums: Sequence[Sums]) -> list[Flags]:
    """For each of the sums which are outliers among all of as many parts."""
    found = [np.zeros(len(one.totals), np.bool_) for one in sums]
    for parts in {one.parts for one in sums}:
        places = [i for i, one in enumerate(sums) if one.parts == parts]
        ends = np.cumsum([len(sums[i].totals) for i in places])[:-1]
        together = outliers(np.concatenate([sums[i].totals for i in places]))
        for i, out in zip(places, np.split(together, ends), strict=True):
            found[i] = out
    return found


def chosen_values(oracle: System, attribute: str, positions: Sequence[int] | Wholes) -> Wholes:
    """Positions of values as an array; raises `InvalidParameter` for repeated ones and those that are not there."""
    size = len(oracle.values(attribute))
    array = np.asarray(positions, np.int64)
    if np.any((array < 0) | (array >= size)) or len(np.unique(array)) != len(array):
        raise InvalidParameter(f"positions {array.tolist()} must be different and below {size}")
    return array


def remove_noise(
    oracle: System,
    rng: np.random.Generator,
    attribute: str,
    base: Sequence[int] | Wholes,
    k: int | None = None,
    *,
    beside: Sequence[int] | Wholes = (),
    where: Where | None = None,
) -> Removed:
    """Algorithm 4: how many people (within `where`) have a value of the attribute that is in `base` or `beside`.

    Parameters
    ----------
    oracle, rng
        The system, and what draws the two-partitions.
    base
        Positions of at least two values whose own answers are not 0, all different; others raise `InvalidParameter`.
    k
        How many two-partitions of them are asked for, two answers each; None, or more than there are: all
        2^(len(base)−1) − 1.
    beside
        Positions of suppressed values, put on one side of each partition (section 4.2.2).
    where
        Only people who satisfy this.
    """
    base, beside = chosen_values(oracle, attribute, base), chosen_values(oracle, attribute, beside)
    sides = two_partitions(rng, len(base), k)
    return average(oracle, attribute, base, sides, beside, where)


def halves(width: int, base: Wholes, sides: Flags, beside: Wholes) -> Flags:
    """The selections of two-partitions: first sides, then second ones; shape (2·partitions, width).

    `sides`: which of the values at the positions `base` are on the first side, shape (partitions, len(base)); those at
    the positions `beside` are always on the second one.
    """
    selections = np.zeros((2 * len(sides), width), np.bool_)
    selections[: len(sides), base] = sides
    selections[len(sides) :, base] = ~sides
    selections[len(sides) :, beside] = True
    return selections


def average(oracle: System, attribute: str, base: Wholes, sides: Flags, beside: Wholes, where: Where | None) -> Removed:
    """Algorithm 4 for given two-partitions (see `halves`)."""
    selections = halves(len(oracle.values(attribute)), base, sides, beside)
    answers = oracle.ask(attribute, selections, where).reshape(2, -1)
    return combined([Sums.of(answers)], len(selections))


def recover_value(
    oracle: System,
    rng: np.random.Generator,
    attribute: str,
    value: int,
    base: Sequence[int] | Wholes,
    k: int,
    *,
    base_count: int | None = None,
    where: Where | None = None,
) -> int:
    """How many people have one value (a position): the count with it minus the count without it (section 4.2.2).

    Negative differences become 0. `base_count`: the noise remover's count of the base set, where it is known already.
    """
    base = chosen_values(oracle, attribute, base)
    if base_count is None:
        base_count = remove_noise(oracle, rng, attribute, base, k, where=where).count
    shown = True
    if value not in base:
        alone = np.zeros((1, len(oracle.values(attribute))), np.bool_)
        alone[0, value] = True
        shown = bool(oracle.ask(attribute, alone, where)[0] > 0)
    other, beside, sign = compared(base, value, shown)
    more = remove_noise(oracle, rng, attribute, other, k, beside=beside, where=where)
    return max(sign * (more.count - base_count), 0)


def compared(base: Wholes, value: int, shown: bool) -> tuple[Wholes, tuple[int, ...], int]:
    """What to count beside the base set to learn the people with one value: base, `beside`, and their sign.

    The base set without the value, if it is there; else with it, partitioned where its own answer is `shown`, beside
    where it is suppressed.
    """
    if value in base:
        return base[base != value], (), -1
    return (np.append(base, value), (), 1) if shown else (base, (value,), 1)


def choose_base(oracle: System, attribute: str, size: int, where: Where | None = None) -> Wholes:
    """Positions of the `size` values with the largest answers, all of them above 0; fewer where there are no more."""
    answers = oracle.ask(attribute, np.eye(len(oracle.values(attribute)), dtype=np.bool_), where)
    answers = np.where(usable(answers), answers, 0)
    order = np.argsort(-answers, kind="stable")
    return np.sort(order[: np.count_nonzero(answers)][:size])
