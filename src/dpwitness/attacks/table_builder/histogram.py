"""The averaging attack on a whole histogram: Asghar & Kaafar (2020), section 4.2.2. It sees nothing but answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.averaging import Removed, chosen_values, usable
from dpwitness.attacks.table_builder.checks import Wanted, examine, noise_variance
from dpwitness.attacks.table_builder.plan import PER_VARIANCE, PILOT, Plan
from dpwitness.attacks.table_builder.protocol import System
from dpwitness.attacks.table_builder.supply import Supply
from dpwitness.attacks.table_builder.table import Where
from dpwitness.errors import InvalidParameter

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
    failed_checks
        What in the answers contradicts the attack's assumptions, in words (see `checks`). Unless this is empty the
        counts are guesses, and `confidence` says nothing.
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
    failed_checks: tuple[str, ...] = ()


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

    Raises `InvalidParameter` where no answer is above 0, and where the questions that are allowed are too few. Answers
    may be `MISSING`, as of a system that stops answering: each count is made of those that came, its confidence is of
    these, and a value of which none came has its published answer with confidence 0. A caller whose system stops
    in the middle goes on by answering `MISSING` to all that is left; nothing more is needed.
    """
    plan = plan or Plan()
    asked, known = oracle.asked, oracle.values(attribute)
    targets = np.arange(len(known)) if plan.targets is None else chosen_values(oracle, attribute, plan.targets)
    noisy = oracle.ask(attribute, np.eye(len(known), dtype=np.bool_), where)
    noisy = np.where(usable(noisy), noisy, 0)
    supply = Supply(oracle, rng, attribute, noisy, plan, where)
    base, k, first = _base(supply, plan, len(targets))
    base_k = plan.for_base(k, len(targets))
    sets = [_compared(base, value, noisy) for value in targets.tolist()]

    def done(share: float) -> None:
        if progress is not None:
            progress(round(share * len(sets)), len(sets))

    if first is None or first.partitions < base_k:
        more = supply.count([base], base_k, lambda share: done(0.0))[0]
        # Where the system answers no more the pilot is what there is.
        first = more if first is None or more.information >= first.information else first
    if not first.information:
        raise InvalidParameter(f"attribute {attribute!r}: no answer is above 0, so nothing can be averaged")
    checked = (base, base[::2]) if plan.fitted else ()
    counted = supply.count([one.values for one in sets], k, done, again=checked)
    removed, again = counted[: len(sets)], list(zip(checked, counted[len(sets) :], strict=False))
    variance = noise_variance([first, *removed])
    examined = examine(attribute, where or {}, sets, removed, first, again, fitted=plan.fitted)
    return Histogram(
        attribute=attribute,
        values=tuple(known[i] for i in targets),
        counts=tuple(one.count for one in examined.counts),
        noisy=tuple(noisy[targets].tolist()),
        confidence=tuple(one.confidence for one in examined.counts),
        base=tuple(known[i] for i in base),
        base_count=first.count,
        base_confidence=examined.base_confidence,
        base_kinds=first.kinds,
        kinds=tuple(one.kinds for one in removed),
        partitions=k,
        base_partitions=base_k,
        variance=variance,
        workarounds=supply.workarounds,
        queries=oracle.asked - asked,
        failed_checks=examined.failed,
    )


def _base(supply: Supply, plan: Plan, number: int) -> tuple[Wholes, int, Removed | None]:
    """The base set, how many two-partitions each value gets, and the base set's count where it is known already."""
    pilot = plan.pilot(supply.left)
    base = supply.base(plan.base, plan.partitions or pilot)
    first, variance = None, 0.0
    if plan.partitions is None:
        first = supply.count([base], pilot)[0]
        # Of so few values that no two sums can be compared: as many as there are.
        estimate = noise_variance([first])
        variance = PILOT / PER_VARIANCE if estimate is None else estimate
    spare = supply.overhead(base, plan.wanted(variance, number, supply.left)) * (number + 1)
    k = plan.wanted(variance, number, supply.left - min(spare, supply.left / 2))
    again = supply.base(plan.base, k)
    return again, k, first if np.array_equal(base, again) else None


def _compared(base: Wholes, value: int, noisy: Wholes) -> Wanted:
    """What to count beside the base set to learn the people with one value: the set without it, or with it."""
    published = int(noisy[value])
    if value not in base:
        return Wanted(value=value, values=np.append(base, value), sign=1, published=published)
    rest = base[base != value]
    if not np.any(noisy[rest] > 0):  # no answer would be above 0 for sure
        return Wanted(value=value, values=np.array([value]), sign=0, published=published)
    return Wanted(value=value, values=rest, sign=-1, published=published)
