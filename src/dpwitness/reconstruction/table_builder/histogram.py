"""The averaging attack on a whole histogram: Asghar & Kaafar (2020), section 4.2.2."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from dpwitness.arrays import Integers
from dpwitness.reconstruction.report import Finding
from dpwitness.reconstruction.table_builder.averaging import (
    PartitionAnswers,
    nearest,
    noise_variance,
    usable,
    value_positions,
)
from dpwitness.reconstruction.table_builder.confidence import (
    contradicted_additivity,
    estimate_counts,
    probability_right,
)
from dpwitness.reconstruction.table_builder.supply import (
    PARTITIONS_PER_VARIANCE,
    PILOT_PARTITIONS,
    CountingPlan,
    Supply,
)
from dpwitness.reconstruction.table_builder.systems import QuerySystem
from dpwitness.reconstruction.table_builder.tables import AttributeValue, Where

#: A function that is called with the number of counted values and the number of all values.
CountedProgress: TypeAlias = Callable[[int, int], None]
#: Note for a result that claims nothing because all sums agree.
NO_NOISE_NOTE: Final = (
    "all sums agree: the answers are exact, or totals are sums of published answers, whose noise stays"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredHistogram:
    """A recovered histogram: the count of each value, and the noisy count that the system publishes."""

    attribute: str
    where: Where
    values: tuple[AttributeValue, ...]
    counts: tuple[int, ...]
    published: tuple[int, ...]
    confidence: tuple[float, ...]  # the probability that each count is right, from the answers alone
    base: tuple[AttributeValue, ...]  # the values of the base set, on whose count all counts depend
    base_partitions: int  # the number of two-partitions of the base set with usable answers
    used: tuple[int, ...]  # the number of two-partitions of each value with usable answers
    partitions: int  # the number of two-partitions that were planned for each value
    variance: float | None  # the variance of one noise (people²), from the answers; None without two sums to compare
    workarounds: tuple[str, ...]  # notes on steps other than partitioning the attribute's values
    queries: int
    failed_checks: tuple[str, ...] = ()  # contradictions to the attack's assumptions, which void the confidence

    @property
    def finding(self) -> Finding:
        """The counts and their claims; nothing is claimed where all sums agree or no sums can be compared."""
        claims = np.array(self.confidence) * bool(self.variance)
        return Finding(guess=np.array(self.counts), probability=claims, contradicted=self.failed_checks)

    def to_json(self) -> dict[str, object]:
        """The attribute, values and numbers of questions, as a dict for JSON."""
        return {
            "where": {name: list(values) for name, values in self.where.items()},
            "attribute": self.attribute,
            "values": list(self.values),
            "published": list(self.published),
            "base": list(self.base),
            "base_partitions": self.base_partitions,
            "partitions": self.partitions,
            "noise_variance": self.variance,
            "workarounds": list(self.workarounds),
            "queries": self.queries,
        }


def recover_histogram(
    oracle: QuerySystem,
    rng: np.random.Generator,
    attribute: str,
    plan: CountingPlan | None = None,
    *,
    where: Where | None = None,
    progress: CountedProgress | None = None,
) -> RecoveredHistogram:
    """Recover the counts, at least 0, of an attribute's values among the people in `where` (section 4.2.2).

    `rng` draws the partitions; `plan` has the values to count and the numbers of questions.

    Raises `InvalidParameter` where no answer is above 0, and where the plan allows too few questions. A system that
    stops answering returns `MISSING_ANSWER` from then on: each count and its confidence use the answers that came, and
    a value without a sum gets its published answer with confidence 0.
    """
    plan, where = plan or CountingPlan(), where or {}
    asked, known = oracle.asked, oracle.values(attribute)
    targets = np.arange(len(known)) if plan.targets is None else value_positions(oracle, attribute, plan.targets)
    noisy = oracle.ask(attribute, np.eye(len(known), dtype=np.bool_), where)
    noisy = np.where(usable(noisy), noisy, 0)
    supply = Supply(oracle, rng, attribute, noisy, where, questions=plan.questions)
    base, k, first = _choose_base(supply, plan, len(targets))
    base_k = plan.for_base(k, len(targets))

    def done(share: float) -> None:
        if progress is not None:
            progress(round(share * len(targets)), len(targets))

    if first is None or first.number < base_k:
        more = supply.count([base], base_k, lambda share: done(0.0))[0]
        # If the system has stopped answering, the pilot may have counted by more partitions.
        first = more if first is None or more.number >= first.number else first
    sets = [base[base != value] if value in base else np.append(base, value) for value in targets]
    counted = supply.count(sets, k, done, divide=first)
    estimates = estimate_counts(first, counted, len(known))
    counts, confidence = [], []
    for value, other in zip(targets.tolist(), counted, strict=True):
        estimate = float(estimates.counts[value])
        if plan.fitted and not math.isnan(estimate):
            count = nearest(estimate)
        elif first.number and other.number:
            count = (-1 if value in base else 1) * (nearest(other.mean) - nearest(first.mean))
        else:
            count = int(noisy[value])
        counts.append(max(count, 0))
        error = float(estimates.errors[value])
        confidence.append(probability_right(estimate, counts[-1], error, estimates.freedom))
    variance = noise_variance([first, *counted])
    return RecoveredHistogram(
        attribute=attribute,
        where=where,
        values=tuple(known[i] for i in targets),
        counts=tuple(counts),
        published=tuple(noisy[targets].tolist()),
        confidence=tuple(confidence),
        base=tuple(known[i] for i in base),
        base_partitions=first.number,
        used=tuple(one.number for one in counted),
        partitions=k,
        variance=variance,
        workarounds=(*supply.workarounds, NO_NOISE_NOTE) if variance == 0 else supply.workarounds,
        queries=oracle.asked - asked,
        failed_checks=(*estimates.failed, *contradicted_additivity(supply.divided_sets, supply.divided)),
    )


def _choose_base(supply: Supply, plan: CountingPlan, number: int) -> tuple[Integers, int, PartitionAnswers | None]:
    """The base set, the number of two-partitions for each value, and the base set's count if a pilot has counted it."""
    pilot = plan.pilot(supply.left)
    base = supply.base(plan.base, plan.partitions or pilot)
    if plan.partitions is not None:
        return base, plan.partitions_for(0.0, number, supply.left), None
    first = supply.count([base], pilot)[0]
    # Without an estimate of the variance, a value gets as many partitions as the pilot.
    estimate = noise_variance([first])
    variance = PILOT_PARTITIONS / PARTITIONS_PER_VARIANCE if estimate is None else estimate
    k = plan.partitions_for(variance, number, supply.left)
    again = supply.base(plan.base, k)
    return again, k, first if np.array_equal(base, again) else None
