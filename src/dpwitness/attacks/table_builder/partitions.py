"""Partitions of the values of an attribute: questions with different contributors that have one true sum.

Asghar & Kaafar (2020), section 4.2 (Lemma 4), section 7.2 (three-partitions), appendix C.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter

__all__ = ["MOST_PARTITIONS", "how_many", "several_partitions", "two_partitions"]

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
