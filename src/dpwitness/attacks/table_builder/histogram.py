"""The averaging attack on a whole histogram: Asghar & Kaafar (2020), section 4.2.2. It sees nothing but answers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.averaging import Removed, chosen_values
from dpwitness.attacks.table_builder.confidence import difference_right, probability_right
from dpwitness.attacks.table_builder.plan import PER_VARIANCE, PILOT, Plan
from dpwitness.attacks.table_builder.protocol import System
from dpwitness.attacks.table_builder.supply import Supply
from dpwitness.attacks.table_builder.table import Where

__all__ = ["Histogram", "recover_histogram"]

Wholes = NDArray[np.int64]
#: Called with how many values are done, of how many.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """A recovered histogram: for each value its count, and the noisy answer that the system gives directly.

    Attributes
    ----------
    confidence
        For each count the probability that it is right, as far as answers alone can tell (see `probability_right`).
    base
        Values of the base set; its count is `base_count`, right with probability `base_confidence`.
    base_kinds, kinds
        Numbers of partitions by how many parts they have, for the base set and for each value: ((2, 200),).
    partitions
        Two-partitions that were wanted for each value.
    variance
        Of one noise, estimated from the answers (people²); None where no two sums could be compared.
    workarounds
        What was done beside partitioning the attribute's values, in words.
    """

    attribute: str
    values: tuple[Any, ...]
    counts: tuple[int, ...]
    noisy: tuple[int, ...]
    confidence: tuple[float, ...]
    base: tuple[Any, ...]
    base_count: int
    base_confidence: float
    base_kinds: tuple[tuple[int, int], ...]
    kinds: tuple[tuple[tuple[int, int], ...], ...]
    partitions: int
    base_partitions: int
    variance: float | None
    workarounds: tuple[str, ...]
    queries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """A set of values that is counted to learn one value: `sign`·(its count − the base set's), or with 0 its count."""

    values: Wholes
    sign: int


def recover_histogram(
    oracle: System,
    rng: np.random.Generator,
    attribute: str,
    plan: Plan | None = None,
    *,
    where: Where | None = None,
    progress: Progress | None = None,
) -> Histogram:
    """The counts of an attribute's values (section 4.2.2); negative ones become 0.

    Parameters
    ----------
    oracle, rng
        The system, and what draws the partitions.
    plan
        Which values, and how many questions.
    where
        Only these people.
    progress
        Called with how many values are done, of how many.

    Raises `InvalidParameter` where no answer is above 0, and where the questions that are allowed are too few.
    """
    plan = plan or Plan()
    asked, known = oracle.asked, oracle.values(attribute)
    targets = np.arange(len(known)) if plan.targets is None else chosen_values(oracle, attribute, plan.targets)
    noisy = oracle.ask(attribute, np.eye(len(known), dtype=np.bool_), where)
    supply = Supply(oracle, rng, attribute, noisy, plan, where)
    base, k, first = _base(supply, plan, len(targets))
    base_k = plan.for_base(k, len(targets))
    sets = [_compared(base, value, noisy) for value in targets.tolist()]

    def done(share: float) -> None:
        if progress is not None:
            progress(round(share * len(sets)), len(sets))

    if first is None or first.partitions < base_k:
        first = supply.count([base], base_k, lambda share: done(0.0))[0]
    removed = supply.count([one.values for one in sets], k, done)
    variance = _variance([first, *removed])
    sure = probability_right(first.mean, first.count, _error(first, variance), 0)
    counts, confidence = _differences(sets, removed, first, variance)
    return Histogram(
        attribute=attribute,
        values=tuple(known[i] for i in targets),
        counts=tuple(counts),
        noisy=tuple(noisy[targets].tolist()),
        confidence=tuple(confidence),
        base=tuple(known[i] for i in base),
        base_count=first.count,
        base_confidence=sure,
        base_kinds=first.kinds,
        kinds=tuple(one.kinds for one in removed),
        partitions=k,
        base_partitions=base_k,
        variance=variance,
        workarounds=supply.workarounds,
        queries=oracle.asked - asked,
    )


def _base(supply: Supply, plan: Plan, number: int) -> tuple[Wholes, int, Removed | None]:
    """The base set, how many two-partitions each value gets, and the base set's count where it is known already."""
    pilot = plan.pilot(supply.left)
    base = supply.base(plan.base, plan.partitions or pilot)
    first, variance = None, 0.0
    if plan.partitions is None:
        first = supply.count([base], pilot)[0]
        # Of so few values that no two sums can be compared: as many as there are.
        estimate = _variance([first])
        variance = PILOT / PER_VARIANCE if estimate is None else estimate
    spare = supply.overhead(base, plan.wanted(variance, number, supply.left)) * (number + 1)
    k = plan.wanted(variance, number, supply.left - min(spare, supply.left / 2))
    again = supply.base(plan.base, k)
    return again, k, first if np.array_equal(base, again) else None


def _compared(base: Wholes, value: int, noisy: Wholes) -> _Set:
    """What to count beside the base set to learn the people with one value: the set without it, or with it."""
    if value not in base:
        return _Set(values=np.append(base, value), sign=1)
    rest = base[base != value]
    if not np.any(noisy[rest] > 0):  # no answer would be above 0 for sure
        return _Set(values=np.array([value]), sign=0)
    return _Set(values=rest, sign=-1)


def _differences(
    sets: Sequence[_Set], removed: Sequence[Removed], first: Removed, variance: float | None
) -> tuple[list[int], list[float]]:
    """For each value its count, at least 0, and the probability that it is right."""
    counts, confidence = [], []
    base = first.mean, _error(first, variance)
    for wanted, one in zip(sets, removed, strict=True):
        error = _error(one, variance)
        count = max(wanted.sign * (one.count - first.count) if wanted.sign else one.count, 0)
        counts.append(count)
        if wanted.sign:
            confidence.append(difference_right(base, (one.mean, error), wanted.sign, count))
        else:
            confidence.append(probability_right(one.mean, count, error, 0))
    return counts, confidence


def _variance(removed: Sequence[Removed]) -> float | None:
    """The variance of one noise, from how far sums of the same count lie apart (people²)."""
    freedom = sum(one.freedom for one in removed)
    return sum(one.squares for one in removed) / freedom if freedom else None


def _error(one: Removed, variance: float | None) -> float:
    """The standard error of a mean in people; infinite where nothing tells it."""
    return math.inf if variance is None else math.sqrt(variance / one.information)
