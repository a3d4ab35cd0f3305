"""Defences, and the attack that answers each: the rows of the table that `defences` measures.

Asghar & Kaafar (2020), sections 2.2, 6, 7 and 9. The system answers counts of doctor's visits in the RAND health
insurance experiment (statsmodels), of people with five more attributes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder import workarounds
from dpwitness.attacks.table_builder.averaging import choose_base
from dpwitness.attacks.table_builder.histogram import recover_histogram
from dpwitness.attacks.table_builder.noise_laws import NoiseLaw, truncated_normal, uniform
from dpwitness.attacks.table_builder.plan import PER_VARIANCE, Plan
from dpwitness.attacks.table_builder.protocol import System
from dpwitness.attacks.table_builder.restricted import (
    AuditedCounts,
    CappedCounts,
    ExactCounts,
    FreshNoisyCounts,
    SingleValues,
    WithoutTotals,
)
from dpwitness.attacks.table_builder.systems import (
    BoundedNoisyCounts,
    Counts,
    GrowingNoisyCounts,
    KeyedNoisyCounts,
    LayeredNoisyCounts,
)
from dpwitness.attacks.table_builder.table import Table
from dpwitness.attacks.table_builder.theory import Kinds, expected_right_of, noise_removed
from dpwitness.attacks.table_builder.variants import recover_by_repeating, recover_by_splitting, recover_in_parts
from dpwitness.attacks.table_builder.without_totals import add_up

__all__ = ["ATTRIBUTE", "OTHERS", "ROWS", "Defence", "averaging"]

Wholes = NDArray[np.int64]
#: Counts of the targets, and how many of them theory expects to be right under a law, if it does.
Found: TypeAlias = tuple[Sequence[int], Callable[[NoiseLaw], float] | None]
Attack: TypeAlias = Callable[[System, np.random.Generator, Wholes], Found]

ATTRIBUTE: Final = "mdvis"
OTHERS: Final = ("disea", "hlthg", "hlthf", "idp", "physlm")
#: Of 59 values: nine with answers, of 6,308 to 26 people, and three that are suppressed at s = 4, of 3, 2 and 1.
TARGETS: Final = (0, 1, 2, 3, 4, 5, 10, 15, 20, 40, 48, 69)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defence:
    """A row: a system, the attack that answers it, and where the paper speaks of it; `law` where theory tells more."""

    name: str
    answer: str
    source: str
    system: Callable[[Table, np.random.Generator], System]
    attack: Attack
    law: NoiseLaw | None = None
    targets: tuple[int, ...] = TARGETS


def _simple(kind: type[Counts], noise: NoiseLaw | int = 2, **more: Any) -> Callable[..., System]:
    law = uniform(noise) if isinstance(noise, int) else noise

    def make(table: Table, rng: np.random.Generator) -> System:
        return kind(table, noise=law, suppression=max(law.bound, 4), rng=rng, **more)

    return make


def _behind(rule: Callable[[System], System]) -> Callable[..., System]:
    inner = _simple(BoundedNoisyCounts)
    return lambda table, rng: rule(inner(table, rng))


def averaging(plan: Plan | None = None) -> Attack:
    """The histogram attack by two-partitions alone, of which the theory speaks."""

    def attack(system: System, rng: np.random.Generator, targets: Wholes) -> Found:
        more = plan or Plan()
        values = {name: getattr(more, name) for name in ("partitions", "base_partitions", "base", "questions")}
        found = recover_histogram(system, rng, ATTRIBUTE, Plan(targets=tuple(targets.tolist()), fitted=False, **values))
        return found.counts, _expected(found.base_kinds, found.kinds[0], len(targets))

    return attack


def _expected(base: Kinds, kinds: Kinds, number: int) -> Callable[[NoiseLaw], float]:
    return lambda law: expected_right_of(law, base, [kinds] * number, [False] * number)


def _differencing(system: System, rng: np.random.Generator, targets: Wholes) -> Found:
    return [workarounds.subtract(system, ATTRIBUTE, value) for value in targets.tolist()], None


def _repeating(system: System, rng: np.random.Generator, targets: Wholes) -> Found:
    times = PER_VARIANCE  # fresh noise of variance 2, as r = 2 has it: 0.14 people of standard error
    counts = recover_by_repeating(system, ATTRIBUTE, targets, times)
    return counts, lambda law: len(targets) * noise_removed(law, ((1, times),), ties="half")


def _three(system: System, rng: np.random.Generator, targets: Wholes) -> Found:
    k = 3 * PER_VARIANCE  # the variance of three noises instead of two: half as many partitions more than 200
    base = choose_base(system, ATTRIBUTE, 20)
    counts = recover_in_parts(system, rng, ATTRIBUTE, base, targets, k)
    return counts, _expected(((3, 5 * k // 2),), ((3, k),), len(targets))


def _splitting(system: System, rng: np.random.Generator, targets: Wholes) -> Found:
    return recover_by_splitting(system, ATTRIBUTE, targets)[0], None


def _adding_up(system: System, rng: np.random.Generator, targets: Wholes) -> Found:
    found = recover_histogram(
        system, rng, ATTRIBUTE, Plan(targets=tuple(targets.tolist()), partitions=10, fitted=False)
    )
    found = add_up(system, found)
    known = [kinds for kinds in found.kinds if kinds]  # a suppressed count has no sum at all
    return found.counts, lambda law: sum(noise_removed(law, kinds, ties="half") for kinds in known)


def _averaged(name: str, source: str, kind: type[Counts], law: NoiseLaw) -> Defence:
    """A system of independent noises of one law, which two-partitions average away."""
    return Defence(
        name=name, answer="two-partitions", source=source, system=_simple(kind, law), attack=averaging(), law=law
    )


def _capped(cap: int) -> Defence:
    """So many questions, and no more."""
    return Defence(
        name=f"a cap of {cap:,} questions, ±2",
        answer="fewer two-partitions",
        source="section 7",
        system=_behind(lambda inner: CappedCounts(inner, cap)),
        attack=averaging(Plan(questions=cap)),
        law=uniform(2),
    )


def _unanswered(name: str, source: str, system: Callable[..., System], k: int) -> Defence:
    """A system that two-partitions, k a value, do not average away."""
    answer = "none known here: two-partitions fail"
    return Defence(name=name, answer=answer, source=source, system=system, attack=averaging(Plan(partitions=k)))


ROWS: Final = (
    Defence(
        name="counts of at most 4 suppressed, no noise",
        answer="differencing: everybody minus all but the value",
        source="section 2.2",
        system=_simple(ExactCounts),
        attack=_differencing,
    ),
    Defence(
        name="fresh noise within ±2 for each question",
        answer="the same question, again and again",
        source="section 2.2",
        system=_simple(FreshNoisyCounts),
        attack=_repeating,
        law=uniform(2),
    ),
    _averaged("the same people get the same noise, ±2 (Algorithm 1)", "section 4.2", BoundedNoisyCounts, uniform(2)),
    _averaged("the same by keys (as deployed), ±2", "section 5.1", KeyedNoisyCounts, uniform(2)),
    _averaged("another admissible law: normal within ±2", "section 6", BoundedNoisyCounts, truncated_normal(2, 1.0)),
    _averaged("more noise, ±5", "section 6", BoundedNoisyCounts, uniform(5)),
    _averaged("more noise, ±10", "section 6", BoundedNoisyCounts, uniform(10)),
    _capped(500),
    _capped(2000),
    Defence(
        name="an audit: at most 50 two-partitions of a set, ±2",
        answer="three-partitions",
        source="section 7.2",
        system=_behind(lambda inner: AuditedCounts(inner, 50)),
        attack=_three,
        law=uniform(2),
        targets=(0, 10, 48),  # the audit compares each question with all earlier ones
    ),
    Defence(
        name="no 'or' in questions, ±2",
        answer="split averaging: with a value, and without it",
        source="section 9",
        system=_behind(SingleValues),
        attack=_splitting,
    ),
    Defence(
        name="totals are sums of published answers, ±2",
        answer="adding up by other attributes",
        source="section 7",
        system=_behind(WithoutTotals),
        attack=_adding_up,
        law=uniform(2),
    ),
    _unanswered("the t-th noise within ±2·√t", "section 6", _simple(GrowingNoisyCounts), 200),
    _unanswered(
        "one more noise for each value named (layers), ±2",
        "section 9",
        _simple(LayeredNoisyCounts, per_value=True),
        400,
    ),
)
