"""Averaging attacks on bounded noise: they take the noise out of answers and see nothing but answers.

Asghar & Kaafar (2020): Algorithm 4 with section 4.2.2. The trick: many questions with different
contributors, and so with different noise, yet with one true answer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.oracle import Oracle
from dpwitness.attacks.table_builder.table import Where
from dpwitness.errors import InvalidParameter

__all__ = [
    "Removed",
    "average",
    "choose_base",
    "chosen_values",
    "compared",
    "nearest",
    "recover_value",
    "remove_noise",
    "two_partitions",
]

Flags = NDArray[np.bool_]
Wholes = NDArray[np.int64]
MOST_PARTITIONS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What the noise remover found: the mean of its sums, the count nearest to it, and what that cost."""

    mean: float
    count: int
    partitions: int
    queries: int


def nearest(mean: float) -> int:
    """The nearest whole number; halves go up, so that of two equally bad guesses one is taken without bias to 0."""
    return int(np.floor(mean + 0.5))


def two_partitions(rng: np.random.Generator, size: int, k: int | None = None) -> Flags:
    """`k` different two-partitions of `size` values without replacement, or all, in random order; one side each.

    There are 2^(size−1) − 1 of them (Lemma 4); never more are given. Shape (partitions, size). The last value is always
    on the other side, so that no partition is met twice. Raises `InvalidParameter` for fewer than two values.
    """
    if size < 2:
        raise InvalidParameter(f"a set of {size} values has no two-partition: at least 2 are needed")
    if k is not None and k < 1:
        raise InvalidParameter(f"partitions={k!r} must be at least 1")
    if min((1 << (size - 1)) - 1, math.inf if k is None else k) > MOST_PARTITIONS:
        raise InvalidParameter(
            f"{size} values have 2^{size - 1} − 1 two-partitions: use at most {MOST_PARTITIONS} of them, not "
            f"{'all' if k is None else k}"
        )
    if size <= 62:
        total = (1 << (size - 1)) - 1
        codes = 1 + rng.choice(total, min(total if k is None else k, total), replace=False)
        return np.asarray((codes[:, None] >> np.arange(size)) & 1, np.bool_)
    found = np.zeros((0, size), np.bool_)
    while len(found) < (k or 0):
        more = rng.random((k or 0, size)) < 0.5
        more[:, -1] = False
        found = np.unique(np.vstack([found, more[more.any(axis=1)]]), axis=0)
    return np.asarray(rng.permutation(found)[:k])


def chosen_values(oracle: Oracle, attribute: str, positions: Sequence[int] | Wholes) -> Wholes:
    """Positions of values as an array; raises `InvalidParameter` for repeated ones and those that are not there."""
    size = len(oracle.values(attribute))
    array = np.asarray(positions, np.int64)
    if np.any((array < 0) | (array >= size)) or len(np.unique(array)) != len(array):
        raise InvalidParameter(f"positions {array.tolist()} must be different and below {size}")
    return array


def remove_noise(
    oracle: Oracle,
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


def average(oracle: Oracle, attribute: str, base: Wholes, sides: Flags, beside: Wholes, where: Where | None) -> Removed:
    """Algorithm 4 for given two-partitions of the values at the positions `base`.

    `sides`: which of them are on the first side, a row a partition, shape (partitions, len(base)); the values at the
    positions `beside` are always on the second one.
    """
    selections = np.zeros((2 * len(sides), len(oracle.values(attribute))), np.bool_)
    selections[: len(sides), base] = sides
    selections[len(sides) :, base] = ~sides
    selections[len(sides) :, beside] = True
    mean = float(oracle.ask(attribute, selections, where).sum()) / len(sides)
    return Removed(mean=mean, count=nearest(mean), partitions=len(sides), queries=2 * len(sides))


def recover_value(
    oracle: Oracle,
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


def choose_base(oracle: Oracle, attribute: str, size: int, where: Where | None = None) -> Wholes:
    """Positions of the `size` values with the largest answers, all of them above 0; fewer where there are no more."""
    answers = oracle.ask(attribute, np.eye(len(oracle.values(attribute)), dtype=np.bool_), where)
    order = np.argsort(-answers, kind="stable")
    return np.sort(order[: np.count_nonzero(answers)][:size])
