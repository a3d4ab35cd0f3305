"""The cost of each defence for the attacker: each row counts the questions of an attack of Asghar & Kaafar (2020).

python benchmarks/table_builder_defences.py [--seed 1] [--runs 10] [--json FILE]

The rows are sections 2.2, 6, 7 and 9 of the paper, and a differentially private table for comparison. The system
answers counts of doctor's visits in the RAND health insurance experiment (statsmodels), of people with five more
attributes. It takes half a minute at the defaults.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from typing_extensions import override

import results
from dpwitness.arrays import Booleans, Integers
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.averaging import (
    Average,
    Kinds,
    Sums,
    average,
    choose_base,
    nearest,
    value_positions,
)
from dpwitness.reconstruction.table_builder.differencing import recover_suppressed
from dpwitness.reconstruction.table_builder.histogram import recover_histogram
from dpwitness.reconstruction.table_builder.noise_laws import NoiseLaw, truncated_normal, uniform
from dpwitness.reconstruction.table_builder.supply import PARTITIONS_PER_VARIANCE, Plan
from dpwitness.reconstruction.table_builder.systems import (
    Block,
    BoundedNoisyCounts,
    ExactCounts,
    FreshNoisyCounts,
    KeyedNoisyCounts,
    SimulatedSystem,
    System,
    WithoutTotals,
    Words,
)
from dpwitness.reconstruction.table_builder.tables import Table, Where
from dpwitness.reconstruction.table_builder.theory import expected_right, noise_removed
from table_builder_systems import GrowingNoisyCounts, ValueLayeredNoisyCounts


class QuestionRefused(InvalidParameter):
    """The system does not answer this question, or no further question."""


class Restricted(System):
    """Another system behind rules of its own: `require` raises `QuestionRefused`."""

    def __init__(self, inner: System) -> None:
        super().__init__({name: inner.values(name) for name in inner.attributes})
        self._inner = inner

    @override
    def ask(self, attribute: str, selections: Booleans, where: Where | None = None) -> Integers:
        selections = np.asarray(selections, np.bool_)
        self.require(attribute, selections, where or {})
        answers = self._inner.ask(attribute, selections, where)
        self.asked += len(selections)
        return answers

    def require(self, attribute: str, selections: Booleans, where: Where) -> None:
        """Refuse questions that are against the rules."""
        raise NotImplementedError


class SingleValues(Restricted):
    """A system without "or" in questions (section 9): a question names one value, or all values but one or two."""

    @override
    def require(self, attribute: str, selections: Booleans, where: Where) -> None:
        named = [(len(self.values(name)), np.array([len(chosen)])) for name, chosen in where.items()]
        for size, number in [*named, (selections.shape[1], selections.sum(axis=1))]:
            if np.any((number != 1) & (number < size - 2)):
                raise QuestionRefused("a question names one value, or all but one or two: there is no 'or'")


class PrivateTable(System):
    """Geometric noise for each cell of a table, drawn once: ε-DP for one person more or fewer (Ghosh et al. 2009).

    `attributes` span the table. A question about them is answered by the sum of its noisy cells; other questions are
    not answered, as nothing but the table is published.
    """

    def __init__(self, table: Table, attributes: Sequence[str], *, epsilon: float, rng: np.random.Generator) -> None:
        self._table = table.only(attributes)
        super().__init__(self._table.values)
        cells = np.zeros([len(self._table.values[name]) for name in self.attributes], np.int64)
        cells[tuple(self._table.codes.T)] = self._table.counts
        # The difference of two geometric variables: P[noise = k] is proportional to exp(-ε·|k|).
        up, down = rng.geometric(-np.expm1(-epsilon), (2, *cells.shape))
        self._cells = cells + up - down

    @override
    def ask(self, attribute: str, selections: Booleans, where: Where | None = None) -> Integers:
        cells = self._cells
        for name, chosen in (where or {}).items():
            cells = np.take(cells, self._table.positions(name, chosen), axis=self._table.column(name))
        others = tuple(axis for axis in range(cells.ndim) if axis != self._table.column(attribute))
        self.asked += len(selections)
        return np.asarray(np.asarray(selections, np.int64) @ cells.sum(axis=others))


class CappedCounts(Restricted):
    """A system that answers at most `cap` questions (query throttling, section 7)."""

    def __init__(self, inner: System, cap: int) -> None:
        super().__init__(inner)
        self.cap = cap

    @override
    def require(self, attribute: str, selections: Booleans, where: Where) -> None:
        if self.asked + len(selections) > self.cap:
            raise QuestionRefused(f"{self.asked} of {self.cap} questions are spent: no {len(selections)} more")


#: The factors of a hash of sets of up to 64,000 values: the sum of a set's words times these factors.
MIXING = np.random.default_rng(0).integers(0, 1 << 64, 1000, np.uint64) | np.uint64(1)


class AuditedCounts(Restricted):
    """Query auditing (section 7.2): at most `limit` two-partitions of any set of values are answered.

    A question is refused where it would complete one more pair of disjoint questions with the same union.
    """

    def __init__(self, inner: System, limit: int) -> None:
        super().__init__(inner)
        self.limit = limit
        self._asked: dict[Any, Words] = {}
        self._unions: dict[Any, Words] = {}

    @override
    def require(self, attribute: str, selections: Booleans, where: Where) -> None:
        place = (attribute, tuple(sorted((name, tuple(chosen)) for name, chosen in where.items())))
        padded = np.zeros((len(selections), -(-selections.shape[1] // 64) * 64), np.bool_)
        padded[:, : selections.shape[1]] = selections
        new = np.packbits(padded, axis=1).view(np.uint64)
        known = self._asked.get(place, new[:0])
        rows = np.vstack([known, new])
        rows = rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])]  # a repeated question counts once
        unions = [self._unions.get(place, new[:0, 0])]
        for i in range(len(known), len(rows)):
            disjoint = rows[:i][~np.any(rows[:i] & rows[i], axis=1)]
            unions.append(((disjoint | rows[i]) * MIXING[: rows.shape[1]]).sum(axis=1, dtype=np.uint64))
        self._unions[place] = np.sort(np.concatenate(unions))
        if np.any(self._unions[place][self.limit :] == self._unions[place][: -self.limit]):
            raise QuestionRefused(f"more than {self.limit} pairs of questions part one set of values in two")
        self._asked[place] = rows


def recover_by_repeating(
    oracle: System, attribute: str, targets: Integers, times: int, *, where: Where | None = None
) -> list[int]:
    """The counts behind fresh noise: each question is asked `times` times (section 2.2), the total 2.5 times as often.

    The count of a value whose answer is 0 is the total less the answer for all other values.
    """
    eye = np.eye(len(oracle.values(attribute)), dtype=np.bool_)
    shown = oracle.ask(attribute, eye[targets], where) > 0
    total = oracle.ask(attribute, np.ones((5 * times // 2, len(eye)), np.bool_), where).mean()
    counts = []
    for value, is_shown in zip(targets.tolist(), shown.tolist(), strict=True):
        row = eye[value] if is_shown else ~eye[value]
        mean = oracle.ask(attribute, np.tile(row, (times, 1)), where).mean()
        counts.append(max(nearest(mean if is_shown else nearest(total) - mean), 0))
    return counts


def several_partitions(rng: np.random.Generator, size: int, k: int, parts: int) -> Integers:
    """Up to `k` different partitions of `size` values into `parts` sets, none empty: the set of each value.

    Shape (partitions, size). They are drawn at random, so that some partitions of few values may be missed.
    """
    if not 2 <= parts <= size:
        raise InvalidParameter(f"parts={parts!r} must lie between 2 and the number of values, {size}")
    labels = np.zeros((0, size), np.int64)
    for _ in range(50):  # few values may have fewer than k partitions
        drawn = rng.integers(0, parts, (2 * k, size))
        # Two partitions are equal if their sets, numbered by their first values, are equal.
        members = drawn == np.arange(parts)[:, None, None]
        meetings = np.where(members.any(axis=2), members.argmax(axis=2), size)
        drawn = np.take_along_axis(meetings.argsort(axis=0).argsort(axis=0).T, drawn, axis=1)
        labels = np.unique(np.vstack([labels, drawn[drawn.max(axis=1) == parts - 1]]), axis=0)
        if len(labels) >= k:
            break
    return np.asarray(rng.permutation(labels)[:k])


def remove_noise_in_parts(
    oracle: System,
    rng: np.random.Generator,
    attribute: str,
    base: Integers,
    k: int,
    parts: int,
    *,
    beside: tuple[int, ...] = (),
    where: Where | None = None,
) -> Average:
    """The noise remover with `k` partitions into `parts` sets (section 7.2), `parts` answers each.

    No two questions cover the counted values, so that an audit of two-partitions finds no pair. The variance of the
    mean is parts·Var(E)/k. Values `beside` the base lie in the last set.
    """
    labels = several_partitions(rng, len(base), k, parts)
    selections = np.zeros((parts, len(labels), len(oracle.values(attribute))), np.bool_)
    for part in range(parts):
        selections[part][:, base] = labels == part
    selections[-1][:, list(beside)] = True
    answers = oracle.ask(attribute, selections.reshape(-1, selections.shape[-1]), where)
    return average([Sums.of(answers.reshape(parts, -1))])


def recover_in_parts(
    oracle: System, rng: np.random.Generator, attribute: str, base: Integers, targets: Integers, k: int
) -> list[int]:
    """The histogram attack with three-partitions: k for each target, 2.5·k for the base set."""
    base = value_positions(oracle, attribute, base)
    eye = np.eye(len(oracle.values(attribute)), dtype=np.bool_)
    shown = oracle.ask(attribute, eye[targets]) > 0
    first = remove_noise_in_parts(oracle, rng, attribute, base, 5 * k // 2, 3).count
    counts = []
    for value, is_shown in zip(targets.tolist(), shown.tolist(), strict=True):
        if value in base:
            rest = remove_noise_in_parts(oracle, rng, attribute, base[base != value], k, 3)
            counts.append(max(first - rest.count, 0))
            continue
        more, beside = (np.append(base, value), ()) if is_shown else (base, (value,))
        counts.append(max(remove_noise_in_parts(oracle, rng, attribute, more, k, 3, beside=beside).count - first, 0))
    return counts


def recover_below_layers(
    oracle: System, rng: np.random.Generator, attribute: str, targets: Integers, k: int, *, other: str, parts: int = 5
) -> list[int]:
    """The counts behind a noise layer for each value named: the same people are split into 2 sets, and into `parts`.

    The people with a value in T, split into p sets by the values of another attribute, give p answers. Their sum is
    n(T) + p·s(T) + s(other) and p noises that differ from split to split; s are the layers, which never change. So the
    means for 2 sets and for `parts` sets tell n(T) from s(T). A value's count is that of everybody, split likewise,
    less that of the people with all other values; s(other) is in both. More sets are no better, as sets of few values
    repeat with their noise. `k` questions are asked for each mean, 2·k for everybody.
    """
    everything, known = np.arange(len(oracle.values(other))), oracle.values(attribute)

    def mean(where: Where, sets: int, questions: int) -> float:
        return remove_noise_in_parts(oracle, rng, other, everything, questions // sets, sets, where=where).mean

    everybody, counts = mean({}, 2, 2 * k), []
    for value in targets.tolist():
        others: Where = {attribute: known[:value] + known[value + 1 :]}
        rest = (parts * mean(others, 2, k) - 2 * mean(others, parts, k)) / (parts - 2)
        counts.append(max(nearest(everybody - rest), 0))
    return counts


def below_layers_right(law: NoiseLaw, k: int, parts: int = 5) -> float:
    """The probability that `recover_below_layers` has a count right, if its error is normal."""
    from scipy.stats import norm

    # k questions give k/p sums of p noises, whose mean has the variance p²·Var(E)/k.
    variance = (2 + (2 * parts / (parts - 2)) ** 2 * 2) * law.variance / k
    return float(1 - 2 * norm.sf(0.5 / np.sqrt(variance)))


def recover_by_splitting(oracle: System, attribute: str, targets: Integers) -> tuple[list[int], Average]:
    """Split averaging (section 9): everybody is those with a value and those without it, for every value there is.

    It needs "not" but no "or": for each value b of each attribute, (b) + (not b); and for all people without the target
    a, (b and not a) + (not b and not a). The number of sums is that of values with answers above 0. Returns the counts
    of the targets, and the count of everybody.
    """
    everybody = _split(oracle, attribute, None)
    counts = [max(everybody.count - _split(oracle, attribute, int(value)).count, 0) for value in targets]
    return counts, everybody


def _split(oracle: System, attribute: str, without: int | None) -> Average:
    """The count of everybody, or of all people without one value, by splitting at each value of each attribute."""
    known = oracle.values(attribute)
    rest = tuple(value for i, value in enumerate(known) if i != without)
    blocks = []
    for name in oracle.attributes:
        eye = np.eye(len(oracle.values(name)), dtype=np.bool_)
        where: Where = {}
        if name != attribute:
            one_side = eye[:1] if len(eye) == 2 else eye  # two values make one partition
            rows = np.vstack([one_side, ~one_side])
            where = {} if without is None else {attribute: rest}
        else:
            kept = np.arange(len(eye)) != (-1 if without is None else without)
            rows = np.vstack([eye[kept], (~eye & kept)[kept]])
        blocks.append(Block(attribute=name, selections=rows, where=where))
    answers = oracle.ask_all(blocks)
    return average([Sums.of(one.reshape(2, -1)) for one in answers])


#: The counts of the targets, and a function from a noise law to the number of right counts expected by theory, if any.
Found: TypeAlias = tuple[Sequence[int], Callable[[NoiseLaw], float] | None]
Attack: TypeAlias = Callable[[System, np.random.Generator, Integers], Found]

ATTRIBUTE: Final = "mdvis"
OTHERS: Final = ("disea", "hlthg", "hlthf", "idp", "physlm")
#: Twelve of 59 values: nine of 6,308 to 26 people, and three that are suppressed at s = 4, of 3, 2 and 1.
TARGETS: Final = (0, 1, 2, 3, 4, 5, 10, 15, 20, 40, 48, 69)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defence:
    """A row: a system, the attack on it, its place in the paper, and its noise `law` if theory predicts a result."""

    name: str
    answer: str
    source: str
    system: Callable[[Table, np.random.Generator], System]
    attack: Attack
    law: NoiseLaw | None = None
    targets: tuple[int, ...] = TARGETS


def _simple(kind: type[SimulatedSystem], noise: NoiseLaw | int = 2) -> Callable[..., System]:
    law = uniform(noise) if isinstance(noise, int) else noise

    def make(table: Table, rng: np.random.Generator) -> System:
        return kind(table, noise=law, suppression=max(law.bound, 4), rng=rng)

    return make


def _behind(rule: Callable[[System], System]) -> Callable[..., System]:
    inner = _simple(BoundedNoisyCounts)
    return lambda table, rng: rule(inner(table, rng))


def averaging(plan: Plan | None = None) -> Attack:
    """The histogram attack by two-partitions alone, to which the theory applies."""

    def attack(system: System, rng: np.random.Generator, targets: Integers) -> Found:
        wanted = replace(plan or Plan(), targets=tuple(targets.tolist()), fitted=False)
        found = recover_histogram(system, rng, ATTRIBUTE, wanted)
        return found.counts, _expected(found.base_kinds, found.kinds[0], len(targets))

    return attack


def _expected(base: Kinds, kinds: Kinds, number: int) -> Callable[[NoiseLaw], float]:
    return lambda law: expected_right(law, base, [kinds] * number, [False] * number)


def _differencing(system: System, rng: np.random.Generator, targets: Integers) -> Found:
    return recover_suppressed(system, rng, ATTRIBUTE, tuple(targets.tolist())).counts.tolist(), None


def _repeating(system: System, rng: np.random.Generator, targets: Integers) -> Found:
    times = PARTITIONS_PER_VARIANCE  # fresh noise of variance 2, as r = 2 has it: 0.14 people of standard error
    counts = recover_by_repeating(system, ATTRIBUTE, targets, times)
    return counts, lambda law: len(targets) * noise_removed(law, ((1, times),), ties="half")


def _three(system: System, rng: np.random.Generator, targets: Integers) -> Found:
    # The variance of three noises instead of two: half as many partitions more than 200.
    k = 3 * PARTITIONS_PER_VARIANCE
    base = choose_base(system, ATTRIBUTE, 20)
    counts = recover_in_parts(system, rng, ATTRIBUTE, base, targets, k)
    return counts, _expected(((3, 5 * k // 2),), ((3, k),), len(targets))


def _splitting(system: System, rng: np.random.Generator, targets: Integers) -> Found:
    return recover_by_splitting(system, ATTRIBUTE, targets)[0], None


def _below_layers(system: System, rng: np.random.Generator, targets: Integers) -> Found:
    k = 24 * PARTITIONS_PER_VARIANCE  # the variance of the error is 48 people² / k: one in 2,300 is wrong
    counts = recover_below_layers(system, rng, ATTRIBUTE, targets, k, other="disea")
    return counts, lambda law: len(targets) * below_layers_right(law, k)


def geometric(epsilon: float) -> NoiseLaw:
    """The two-sided geometric law of a private table, cut off where its tail is below 10⁻¹⁷."""
    support = np.arange(-round(40 / epsilon), round(40 / epsilon) + 1)
    weights = np.exp(-epsilon * np.abs(support))
    return NoiseLaw(support=tuple(support.tolist()), probabilities=tuple((weights / weights.sum()).tolist()))


def _private(system: System, rng: np.random.Generator, targets: Integers) -> Found:
    found = recover_histogram(
        system, rng, ATTRIBUTE, Plan(targets=tuple(targets.tolist()), partitions=200, fitted=False)
    )
    return found.counts, lambda law: len(targets) * noise_removed(law, ((2, 1),))  # a count is two cells


def _averaged(name: str, source: str, kind: type[SimulatedSystem], law: NoiseLaw) -> Defence:
    """A system of independent noises of one law, which two-partitions average away."""
    return Defence(
        name=name, answer="two-partitions", source=source, system=_simple(kind, law), attack=averaging(), law=law
    )


def _capped(cap: int) -> Defence:
    """A system that answers at most `cap` questions."""
    return Defence(
        name=f"a cap of {cap:,} questions, ±2",
        answer="fewer two-partitions",
        source="section 7",
        system=_behind(lambda inner: CappedCounts(inner, cap)),
        attack=averaging(Plan(questions=cap)),
        law=uniform(2),
    )


def _unanswered(name: str, source: str, system: Callable[..., System], k: int) -> Defence:
    """A system whose noise k two-partitions a value do not average away."""
    answer = "none known here: two-partitions fail"
    return Defence(name=name, answer=answer, source=source, system=system, attack=averaging(Plan(partitions=k)))


ROWS: Final = (
    Defence(name="counts of at most 4 suppressed, no noise", answer="differencing: everybody minus all but the value",
            source="section 2.2", system=_simple(ExactCounts), attack=_differencing),
    Defence(name="fresh noise within ±2 for each question", answer="the same question, again and again",
            source="section 2.2", system=_simple(FreshNoisyCounts), attack=_repeating, law=uniform(2)),
    _averaged("the same people get the same noise, ±2 (Algorithm 1)", "section 4.2", BoundedNoisyCounts, uniform(2)),
    _averaged("the same by keys (as deployed), ±2", "section 5.1", KeyedNoisyCounts, uniform(2)),
    _averaged("another admissible law: normal within ±2", "section 6", BoundedNoisyCounts, truncated_normal(2, 1.0)),
    _averaged("more noise, ±5", "section 6", BoundedNoisyCounts, uniform(5)),
    _averaged("more noise, ±10", "section 6", BoundedNoisyCounts, uniform(10)),
    _capped(500),
    _capped(2000),
    Defence(name="an audit: at most 50 two-partitions of a set, ±2", answer="three-partitions", source="section 7.2",
            system=_behind(lambda inner: AuditedCounts(inner, 50)), attack=_three, law=uniform(2),
            targets=(0, 10, 48)),  # the audit compares each question with all earlier ones
    Defence(name="no 'or' in questions, ±2", answer="split averaging: with a value, and without it",
            source="section 9", system=_behind(SingleValues), attack=_splitting),
    _unanswered("totals are sums of published answers, ±2", "section 7", _simple(WithoutTotals), 200),
    _unanswered("the t-th noise within ±2·√t", "section 6", _simple(GrowingNoisyCounts), 200),
    Defence(name="one more noise for each value named (layers), ±2",
            answer="into 2 sets and into 5: its layer counts 2 and 5 times", source="section 9",
            system=_simple(ValueLayeredNoisyCounts), attack=_below_layers, law=uniform(2)),
    Defence(name="a private table: geometric noise of ε = 1 for each cell, drawn once",
            answer="none: every answer is a sum of its cells", source="Ghosh et al. 2009",
            system=lambda table, rng: PrivateTable(table, (ATTRIBUTE, "idp"), epsilon=1.0, rng=rng),
            attack=_private, law=geometric(1.0)),
)  # fmt: skip


def measure(
    seed: int, *, runs: int = 10, rows: Sequence[Defence] = ROWS, table: Table | None = None
) -> list[dict[str, Any]]:
    """Run each row's attack on `runs` systems; return the rows of the table.

    `questions`: the mean number of questions a value, with the questions for all values together. `right`: the share of
    counts recovered; `published`: the share of published answers that are right; `predicted`: the share that theory
    expects, or null; `two_partitions`: the share that 200 two-partitions a value recover, or null where a question is
    refused.
    """
    people = visits() if table is None else table
    streams = [np.random.SeedSequence([seed, i]).spawn(runs) for i in range(len(rows))]
    return [_measured(row, people, spawned) for row, spawned in zip(rows, streams, strict=True)]


def visits() -> Table:
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
        fresh = row.system(table, np.random.default_rng(stream))  # the same system before its first question
        published += int(np.sum(fresh.ask(ATTRIBUTE, eye[targets]) == true))
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
    row: Defence, table: Table, streams: Sequence[np.random.SeedSequence], targets: Integers, true: Integers
) -> float | None:
    """The share of counts that 200 two-partitions a value recover; None where a question is refused."""
    attack, right = averaging(Plan(partitions=200)), 0
    for stream in streams:
        rng = np.random.default_rng(stream)
        try:
            found, _ = attack(row.system(table, rng), rng, targets)
        except QuestionRefused:
            return None
        right += int(np.sum(np.array(found) == true))
    return right / (len(streams) * len(true))


def defences_table(rows: Sequence[dict[str, Any]]) -> results.Table:
    """The table of benchmarks/RESULTS.md."""
    table = results.Table(
        "Defence", "Attack on this defence", "Questions per value", "Right as published", "Right by two-partitions",
        "Right by this attack", "Theory",
    )  # fmt: skip
    for row in rows:
        plain = "refused" if row["two_partitions"] is None else f"{row['two_partitions']:.0%}"
        theory = "" if row["predicted"] is None else f"{row['predicted']:.1%}"
        table.add(
            row["defence"], f"{row['answer']} ({row['source']})", f"{row['questions']:,.0f}",
            f"{row['published']:.0%}", plain, f"{row['right']:.1%}", theory,
        )  # fmt: skip
    return table


def main() -> None:
    parser = results.parser_of(__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10, help="systems a row (default 10)")
    given = parser.parse_args()
    rows = measure(given.seed, runs=given.runs)
    text = f"""{given.runs} systems a row: twelve counts of doctor's visits in the RAND health insurance experiment,
nine of 26 to 6,308 people and three suppressed ones of 1, 2 and 3. By two-partitions: by 200 of them for each value."""
    results.finish(given, "Defences of TableBuilder, and what they cost the attacker", text, defences_table(rows), rows)


if __name__ == "__main__":
    main()
