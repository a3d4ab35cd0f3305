"""Averaging attacks on bounded noise: they take the noise out of answers and see nothing but answers.

Asghar & Kaafar (2020): Algorithm 4 with sections 2.2, 4.2.2, 9 and appendix C. The trick: many questions with different
contributors, and so with different noise, yet with one true answer.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.oracle import Oracle
from dpwitness.attacks.table_builder.table import Where
from dpwitness.errors import InvalidParameter

__all__ = [
    "Histogram",
    "Removed",
    "choose_base",
    "count_by_other_attribute",
    "count_from_two",
    "nearest",
    "not_empty",
    "recover_histogram",
    "recover_value",
    "remove_noise",
    "shows_absence",
    "subtract",
    "two_partitions",
]

Flags = NDArray[np.bool_]
Wholes = NDArray[np.int64]
MOST_PARTITIONS = 1 << 20
#: Called with how many values are done, of how many.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What the noise remover found: the mean of its sums, the count nearest to it, and what that cost."""

    mean: float
    count: int
    partitions: int
    queries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """A recovered histogram: for each value its count, and the noisy answer that the system gives directly."""

    attribute: str
    values: tuple[Any, ...]
    counts: tuple[int, ...]
    noisy: tuple[int, ...]
    base: tuple[int, ...]  # positions of the base set in `values`
    base_count: int
    base_partitions: int
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

    `base`: positions of values whose own answers are not 0; two-partitions of them are asked for, at most
    2^(len(base)−1) − 1. `beside`: positions of suppressed values, put on one side of each partition (section 4.2.2).
    """
    base, beside = chosen_values(oracle, attribute, base), chosen_values(oracle, attribute, beside)
    sides = two_partitions(rng, len(base), k)
    return _average(oracle, attribute, base, sides, beside, where)


def _average(
    oracle: Oracle, attribute: str, base: Wholes, sides: Flags, beside: Wholes, where: Where | None
) -> Removed:
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
    if value in base:
        without = remove_noise(oracle, rng, attribute, base[base != value], k, where=where).count
        return max(base_count - without, 0)
    alone = np.zeros((1, len(oracle.values(attribute))), np.bool_)
    alone[0, value] = True
    if oracle.ask(attribute, alone, where)[0] > 0:
        more = remove_noise(oracle, rng, attribute, np.append(base, value), k, where=where)
    else:
        more = remove_noise(oracle, rng, attribute, base, k, beside=[value], where=where)
    return max(more.count - base_count, 0)


def choose_base(oracle: Oracle, attribute: str, size: int, where: Where | None = None) -> Wholes:
    """Positions of the `size` values with the largest answers, all of them above 0; fewer where there are no more."""
    answers = oracle.ask(attribute, np.eye(len(oracle.values(attribute)), dtype=np.bool_), where)
    order = np.argsort(-answers, kind="stable")
    return np.sort(order[: np.count_nonzero(answers)][:size])


def recover_histogram(
    oracle: Oracle,
    rng: np.random.Generator,
    attribute: str,
    base: Sequence[int] | Wholes,
    k: int,
    *,
    base_partitions: int | None = None,
    same_partitions: bool = False,
    where: Where | None = None,
    progress: Progress | None = None,
) -> Histogram:
    """The counts of all values of an attribute (section 4.2.2); negative ones become 0.

    The base set is counted once with `base_partitions` two-partitions (default `k`), then each value with `k`: of its
    own, or the same for all values, so that the errors of values that nobody has are all the same. Raises
    `InvalidParameter` for a base set of fewer than three values, or of values whose answers are 0.
    """
    base = chosen_values(oracle, attribute, base)
    size = len(oracle.values(attribute))
    asked = oracle.asked
    noisy = oracle.ask(attribute, np.eye(size, dtype=np.bool_), where)
    if len(base) < 3 or np.any(noisy[base] == 0):
        raise InvalidParameter(
            f"attribute {attribute!r}: {np.count_nonzero(noisy[base])} of the {len(base)} base values have an answer "
            "above 0; at least 3 are needed, and no others"
        )
    whole = remove_noise(oracle, rng, attribute, base, base_partitions or k, where=where)
    seed = int(rng.integers(1 << 63))
    counts = []
    for value in range(size):
        if same_partitions:
            rng = np.random.default_rng(seed)
        if value in base:
            counts.append(whole.count - remove_noise(oracle, rng, attribute, base[base != value], k, where=where).count)
        else:
            wider, beside = (np.append(base, value), ()) if noisy[value] > 0 else (base, (value,))
            counts.append(
                remove_noise(oracle, rng, attribute, wider, k, beside=beside, where=where).count - whole.count
            )
        if progress is not None:
            progress(value + 1, size)
    return Histogram(
        attribute=attribute,
        values=oracle.values(attribute),
        counts=tuple(max(count, 0) for count in counts),
        noisy=tuple(noisy.tolist()),
        base=tuple(base.tolist()),
        base_count=whole.count,
        base_partitions=whole.partitions,
        partitions=min(k, (1 << len(base)) - 1),
        queries=oracle.asked - asked,
    )


def not_empty(oracle: Oracle, attribute: str, value: int, helpers: Sequence[int], where: Where | None = None) -> bool:
    """Whether a suppressed value certainly has people: with it, a helper's answer changes (appendix C; section 9).

    Under uniform noise a value with people is missed with probability up to (2r+1)^−len(helpers). Answers of helpers
    must be above 0.
    """
    selections = np.zeros((2 * len(helpers), len(oracle.values(attribute))), np.bool_)
    for i, helper in enumerate(helpers):
        selections[[2 * i, 2 * i + 1], helper] = True
        selections[2 * i + 1, value] = True
    answers = oracle.ask(attribute, selections, where)
    return bool(np.any(answers[::2] != answers[1::2]))


def count_from_two(
    oracle: Oracle,
    rng: np.random.Generator,
    attribute: str,
    pair: tuple[int, int],
    suppressed: Sequence[int],
    k: int | None = None,
    *,
    where: Where | None = None,
) -> Removed:
    """Count the people with one of the given values where only two answers are above 0 (appendix C, first workaround).

    The suppressed values that certainly have people are partitioned; one of the pair goes to each side, so that neither
    side is suppressed and each new side brings new noise. The others stay on the second side.
    """
    asked = oracle.asked
    pair_, rest = chosen_values(oracle, attribute, pair), chosen_values(oracle, attribute, suppressed)
    sure = np.array([not_empty(oracle, attribute, int(value), list(pair), where) for value in rest], np.bool_)
    if np.count_nonzero(sure) < 2:
        raise InvalidParameter(
            f"attribute {attribute!r}: only {np.count_nonzero(sure)} of {len(rest)} suppressed values show that they "
            "have people; at least 2 are needed"
        )
    inner = two_partitions(rng, int(np.count_nonzero(sure)), k)
    ends = np.tile(np.array([True, False]), (len(inner), 1))
    found = _average(
        oracle, attribute, np.concatenate([pair_, rest[sure]]), np.hstack([ends, inner]), rest[~sure], where
    )
    return Removed(mean=found.mean, count=found.count, partitions=found.partitions, queries=oracle.asked - asked)


def count_by_other_attribute(
    oracle: Oracle,
    rng: np.random.Generator,
    where: Where,
    other: str,
    k: int | None = None,
    *,
    base_size: int = 12,
) -> Removed:
    """Count a sub-population by two-partitions of another attribute (appendix C, second workaround).

    `where`: for instance {"age": [17]}. Up to `base_size` values of the other attribute with answers above 0 are
    partitioned, its other values stay on one side: everybody has one of them.
    """
    asked = oracle.asked
    base = choose_base(oracle, other, base_size, where)
    beside = np.setdiff1d(np.arange(len(oracle.values(other))), base)
    found = remove_noise(oracle, rng, other, base, k, beside=beside, where=where)
    return Removed(mean=found.mean, count=found.count, partitions=found.partitions, queries=oracle.asked - asked)


def subtract(oracle: Oracle, attribute: str, value: int, where: Where | None = None) -> int:
    """The differencing attack of section 2.2: all people minus all but those with the value.

    Exact against mere suppression; against noise within ±r the difference is off by up to 2r.
    """
    selections = np.ones((2, len(oracle.values(attribute))), np.bool_)
    selections[1, chosen_values(oracle, attribute, [value])] = False
    total, without = oracle.ask(attribute, selections, where)
    return int(total - without)


def shows_absence(oracle: Oracle, attribute: str, value: int, where: Where) -> bool:
    """The differencing attack of section 9: whether somebody in the group certainly lacks the value.

    The attacker knows that all of the group but perhaps one, the target, have the value. If the answers for the group
    and for those of it with the value differ, the target lacks it. Equal answers happen by chance as often as two
    noises differ by exactly 1.
    """
    selections = np.ones((2, len(oracle.values(attribute))), np.bool_)
    selections[1] = False
    selections[1, chosen_values(oracle, attribute, [value])] = True
    group, with_value = oracle.ask(attribute, selections, where)
    return bool(group != with_value)
