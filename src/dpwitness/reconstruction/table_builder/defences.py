"""Defences, and the attack that answers each: the rows of the table that `defences` measures.

Asghar & Kaafar (2020), sections 2.2, 6, 7 and 9. The system answers counts of doctor's visits in the RAND health
insurance experiment (statsmodels), of people with five more attributes.

What each defence costs the attacker: every row of the table is an attack that is run on a system, and counted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.machine import Deadline
from dpwitness.reconstruction.table_builder import variants
from dpwitness.reconstruction.table_builder.averaging import choose_base
from dpwitness.reconstruction.table_builder.histogram import add_up, recover_histogram
from dpwitness.reconstruction.table_builder.supply import PER_VARIANCE, Plan
from dpwitness.reconstruction.table_builder.systems import (
    AuditedCounts,
    BoundedNoisyCounts,
    CappedCounts,
    Counts,
    ExactCounts,
    FreshNoisyCounts,
    GrowingNoisyCounts,
    KeyedNoisyCounts,
    LayeredNoisyCounts,
    NoiseLaw,
    QuestionRefused,
    SingleValues,
    System,
    Table,
    WithoutTotals,
    truncated_normal,
    uniform,
)
from dpwitness.reconstruction.table_builder.theory import Kinds, expected_right_of, noise_removed
from dpwitness.reconstruction.table_builder.variants import recover_by_repeating, recover_by_splitting, recover_in_parts

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
    return [variants.subtract(system, ATTRIBUTE, value) for value in targets.tolist()], None


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


#: Called with how many rows are done, of how many, and the next one's name.
Progress: TypeAlias = Callable[[int, int, str], None]


def measure(
    seed: int, *, runs: int = 10, deadline: Deadline | None = None, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Run each row's attack `runs` times on as many systems; the rows of the table.

    `questions`: asked for each value, on average, what is asked once for all of them included. `right`: the share of
    counts recovered; `published`: of those that were right as published; `predicted`: what theory expects, or null;
    `two_partitions`: the share that two-partitions alone recover, 200 a value, or null where a question is refused.

    Raises `InvalidParameter` where the deadline passes.
    """
    table = _table()
    rows = []
    for i, row in enumerate(ROWS):
        if progress is not None:
            progress(i, len(ROWS), row.name)
        if deadline is not None and not deadline.left:
            raise InvalidParameter(f"--max-time: {i} of {len(ROWS)} defences are measured; allow more time")
        rows.append(_measured(row, table, np.random.SeedSequence([seed, i]).spawn(runs)))
    return rows


def _table() -> Table:
    from statsmodels.datasets import randhie  # type: ignore[import-untyped]  # it ships no types

    frame = randhie.load_pandas().data
    return Table.from_columns({name: frame[name].round().astype(int).tolist() for name in (ATTRIBUTE, *OTHERS)})


def _measured(row: Defence, table: Table, streams: Sequence[np.random.SeedSequence]) -> dict[str, Any]:
    targets = table.positions(ATTRIBUTE, row.targets)
    true = table.histogram(ATTRIBUTE)[targets]
    eye = np.eye(len(table.values[ATTRIBUTE]), dtype=np.bool_)
    published = right = questions = 0
    predicted: list[float] = []
    for stream in streams:
        rng = np.random.default_rng(stream)
        system = row.system(table, rng)
        found, expected = row.attack(system, rng, targets)
        right += int(np.sum(np.array(found) == true))
        questions += system.asked
        published += int(np.sum(row.system(table, rng).ask(ATTRIBUTE, eye[targets]) == true))
        if row.law is not None and expected is not None:
            predicted.append(expected(row.law))
    number = len(streams) * len(true)
    return {
        "defence": row.name,
        "answer": row.answer,
        "source": row.source,
        "questions": questions / number,
        "published": published / number,
        "two_partitions": _plain(row, table, streams[:2], targets, true),
        "right": right / number,
        "predicted": float(np.mean(predicted)) / len(true) if predicted else None,
    }


def _plain(
    row: Defence, table: Table, streams: Sequence[np.random.SeedSequence], targets: Wholes, true: Wholes
) -> float | None:
    """The share right by 200 two-partitions a value."""
    attack, right = averaging(Plan(partitions=200)), 0
    for stream in streams:
        rng = np.random.default_rng(stream)
        try:
            found, _ = attack(row.system(table, rng), rng, targets)
        except QuestionRefused:
            return None
        right += int(np.sum(np.array(found) == true))
    return right / (len(streams) * len(true))
