"""What answers about many people tell of one: each row is an attack of the literature, run on a system, and counted.

python benchmarks/table_builder_persons.py [--seed 1] [--runs 10] [--json FILE]

The attacker knows some attributes of a person and wants one more, a bit. Differencing with background knowledge
(Chipperfield, Gow & Loong 2016, as Asghar & Kaafar 2020 describe it in section 9); the differential and the cloning
attack on layers of noise (Gadotti et al. 2019). The people are the 6,366 of a survey on marriages (`fair` of
statsmodels), the bit is whether they had an affair. The table of docs/attacks.md is of the defaults; a minute.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from typing_extensions import override

from dpwitness.reconstruction.table_builder.averaging import usable
from dpwitness.reconstruction.table_builder.noise_laws import NoiseLaw, truncated_normal, uniform
from dpwitness.reconstruction.table_builder.systems import (
    Block,
    BoundedNoisyCounts,
    FreshNoisyCounts,
    LayeredNoisyCounts,
    SimulatedSystem,
    System,
    Words,
)
from dpwitness.reconstruction.table_builder.tables import BoolArray, IntArray, Table, Value, Where

SECRET: Final = "affair"
#: Its list of values has many that nobody has: all years, of which six occur.
DUMMY: Final = "age"
YEARS: Final = tuple(range(100))
#: What is claimed is at least so many times as likely as the contrary.
LIKELIHOOD_RATIO: Final = 19.0


class StaticAndDynamicCounts(LayeredNoisyCounts):
    """Two noises for each condition: one that never changes, one for each set of contributors (Diffix).

    Francis, Probst Eide & Munz (2017), as Gadotti et al. (2019) describe it, section 2; with whole noises, and a fixed
    threshold of suppression instead of a noisy one.
    """

    @override
    def _noise(
        self, union: Words, attribute: str, selections: BoolArray, where: dict[str, tuple[Value, ...]]
    ) -> IntArray:
        people = [row.tobytes() for row in union]
        own = [(attribute, row.tobytes()) for row in selections]
        total = self._sticky(own) + self._sticky(list(zip(own, people, strict=True)))
        for name, chosen in where.items():
            condition = (name, self._selection(name, chosen).tobytes())
            total += self._sticky([condition]) + self._sticky([(condition, one) for one in people])
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """People with what is known of the target but for one attribute, and that attribute: with its value, the target."""

    where: Where
    attribute: str
    value: Value

    def without(self, system: System) -> Where:
        """The same people but those with the value; among them, as the attacker hopes, the target alone."""
        rest = tuple(value for value in system.values(self.attribute) if value != self.value)
        return {**self.where, self.attribute: rest}


def ask_bits(system: System, wheres: Sequence[Where]) -> IntArray:
    """How many people have the secret bit 0, and 1, within each sub-population; shape (sub-populations, 2)."""
    blocks = [Block(attribute=SECRET, selections=np.eye(2, dtype=np.bool_), where=where) for where in wheres]
    return np.array(system.ask_all(blocks))


#: Two noises within ±2 differ by exactly 1, in one direction.
EQUAL_BY_CHANCE: Final = 4 / 25
#: Groups without the target that must answer as expected: of a system with other noise each does so once in five times.
FEWEST_GROUPS: Final = 4


def difference_by_background(system: System, groups: Sequence[Group], bit: int = 0) -> int | None:
    """The target's bit, known that everybody else in the groups has `bit`; None where the answers leave it open.

    The same people have the same noise. So the answers for a group, and for those of it with the bit, are equal if the
    target has it; else they are equal where two noises happen to differ by 1. The groups are compared without the
    target, too: if these answers differ, the system or the knowledge is another, and nothing is claimed. Four groups
    agree by chance once in 1,500 times.
    """
    both = np.array([[1, 1], [bit == 0, bit == 1]], np.bool_)
    wheres = [where for group in groups for where in (group.where, group.without(system))]
    answers = np.array(system.ask_all([Block(attribute=SECRET, selections=both, where=one) for one in wheres]))
    answers = answers.reshape(-1, 2, 2)
    answers = answers[np.asarray(usable(answers)).all(axis=(1, 2))]
    if len(answers) < FEWEST_GROUPS or np.any(answers[:, 1, 0] != answers[:, 1, 1]):
        return None
    if np.any(answers[:, 0, 0] != answers[:, 0, 1]):
        return 1 - bit
    return bit if EQUAL_BY_CHANCE ** -len(answers) >= LIKELIHOOD_RATIO else None


def differential(system: System, groups: Sequence[Group], variance: float = 1.0) -> int | None:
    """The differential noise-exploitation attack (Gadotti et al. 2019, section 3); None where it claims nothing.

    A group with one bit is asked for with and without the known value. If the target does not have that bit, both
    answers are of the same people: all layers but that of the added condition cancel, and the difference is N(0, 2v).
    Else it is about N(1, 2v·(conditions + 1)), v the variance of a layer in people². Each bit has a likelihood ratio of
    all groups' differences; the target has the bit whose answers differ, and only if those of the other bit do not.
    """
    wheres = [where for group in groups for where in (group.where, group.without(system))]
    answers = ask_bits(system, wheres).reshape(-1, 2, 2)
    shown = np.asarray(usable(answers)).all(axis=1)
    difference = answers[:, 0] - answers[:, 1]
    same = np.full(len(groups), 2 * variance)[:, None]
    apart = np.array([2 * variance * (len(group.where) + 2) for group in groups])[:, None]
    ratios = (np.log(same / apart) + difference**2 / same - (difference - 1) ** 2 / apart) / 2
    sums = np.where(shown, ratios, 0.0).sum(axis=0)
    limit = math.log(LIKELIHOOD_RATIO)
    differs, equal = sums > limit, sums < -limit
    return int(differs[1]) if np.any(differs) and np.any(equal) else None


def cloning(system: System, groups: Sequence[Group], dummies: Sequence[Value], *, most: int = 40) -> int | None:
    """The cloning attack (Gadotti et al. 2019, section 4); None where it claims nothing.

    Each pair of questions is asked again with one more condition that excludes nobody: a value of another attribute
    that nobody has. If both questions of a pair are of the same people, its layers are the same in both, and all clones
    of the pair have the same difference; else the layer of the added condition differs. So differences that vary show
    that the target was among these people. Nothing need be known of anybody else: where people who share the target's
    values are of both bits, the differences vary for both, and the next group is tried. `most` groups whose
    answers are shown are cloned.
    """
    kept = np.array([[value != dummy for value in system.values(DUMMY)] for dummy in dummies], np.bool_)
    for group in groups:
        wheres = [{**where, SECRET: (bit,)} for bit in (0, 1) for where in (group.where, group.without(system))]
        if not all(usable(system.ask(DUMMY, kept[:1], where)).all() for where in wheres):
            continue
        answers = np.array([system.ask(DUMMY, kept[1:], where) for where in wheres])
        varies = [np.ptp(answers[2 * bit] - answers[2 * bit + 1]) > 0 for bit in (0, 1)]
        if usable(answers).all() and varies[0] != varies[1]:
            return int(varies[1])
        most -= 1
        if not most:
            break
    return None


class People:
    """The people of the survey, as the systems and the attackers know them."""

    def __init__(self) -> None:
        from statsmodels.datasets import fair  # type: ignore[import-untyped]  # it ships no types

        frame = fair.load_pandas().data
        self.known = tuple(name for name in frame.columns if name not in (DUMMY, "affairs"))
        columns = {name: frame[name].tolist() for name in self.known}
        self.bits = (frame["affairs"] > 0).astype(int).to_numpy()
        table = Table.from_columns({**columns, SECRET: self.bits.tolist(), DUMMY: frame[DUMMY].astype(int).tolist()})
        years = np.asarray(table.values[DUMMY], np.int64)
        codes = table.codes.copy()
        codes[:, -1] = years[codes[:, -1]]  # of all years, a value's position is the value
        self.table = Table({**table.values, DUMMY: YEARS}, codes, table.counts)
        self.unused = tuple(year for year in YEARS if year not in years)
        self._columns = np.array(list(columns.values()))

    def groups(self, target: int) -> Iterator[tuple[Group, BoolArray, BoolArray]]:
        """All groups of a target, the largest number of conditions first; who is in them, and in them but excluded."""
        equal = self._columns == self._columns[:, [target]]
        numbers = range(len(self.known))
        for size in reversed(numbers[1:]):
            for chosen in combinations(numbers, size):
                inside = equal[list(chosen)].all(axis=0)
                where = {self.known[i]: (self._columns[i, target].item(),) for i in chosen}
                for i in set(numbers) - set(chosen):
                    group = Group(where=where, attribute=self.known[i], value=self._columns[i, target].item())
                    yield group, inside, inside & equal[i]

    def background(self, target: int, wrong: int = 0) -> list[Group]:
        """Groups of which all but perhaps the target, and `wrong` others, have the bit 0; of different people."""
        others = np.arange(len(self.bits)) != target
        return self._distinct(target, lambda inside, _: int(self.bits[inside & others].sum()) == wrong)

    def singled_out(self, target: int, people: int = 1) -> list[Group]:
        """Groups from which the condition excludes the target and `people` − 1 others."""
        return self._distinct(target, lambda _, excluded: int(excluded.sum()) == people)

    def _distinct(self, target: int, wanted: Callable[[BoolArray, BoolArray], bool]) -> list[Group]:
        found = {
            inside.tobytes(): group  # the same people have the same noise: they say nothing more
            for group, inside, excluded in self.groups(target)
            if inside.sum() > MIN_PEOPLE and wanted(inside, excluded)
        }
        return list(found.values())


#: Groups of so few people are suppressed, at s = 4, with or without the target and perhaps some others.
MIN_PEOPLE: Final = 8
Make: TypeAlias = Callable[[Table, np.random.Generator], System]
#: The groups that the attacker has of a target, and what it makes of their answers.
Knowledge: TypeAlias = Callable[[People, int], list[Group]]
Attack: TypeAlias = Callable[[People, System, list[Group]], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An attack on a system; `holds`: whether both are as the attack assumes."""

    name: str
    system: Make
    answer: str
    knowledge: Knowledge
    attack: Attack
    holds: bool = True


def _made(kind: type[SimulatedSystem], law: NoiseLaw) -> Make:
    return lambda table, rng: kind(table, noise=law, suppression=4, rng=rng)


#: Noise of standard deviation 1 before it is rounded.
LAYER: Final = truncated_normal(4, 1.0)
LAYERS: Final = _made(StaticAndDynamicCounts, LAYER)
STICKY: Final = _made(BoundedNoisyCounts, uniform(2))
FRESH: Final = _made(FreshNoisyCounts, uniform(2))
BACKGROUND: Final = "differencing, the others' bits known"
DIFFERENTIAL: Final = "the differential attack"
CLONING: Final = "cloning, nobody else known"
#: Clones of a pair, the first of which shows whether it is answered. That 10 differences of different people agree by
#: chance happens once in 10⁵ times or so.
CLONES: Final = 11


def _background(people: People, system: System, groups: list[Group]) -> int | None:
    return difference_by_background(system, groups)


def _differential(people: People, system: System, groups: list[Group]) -> int | None:
    return differential(system, groups, LAYER.variance)


def _cloning(people: People, system: System, groups: list[Group]) -> int | None:
    return cloning(system, groups, people.unused[:CLONES])


def _any_groups(people: People, target: int) -> list[Group]:
    return [group for group, _, _ in people.groups(target)]


def _row(name: str, system: Make, answer: str, *, knowledge: Knowledge | None = None, holds: bool = True) -> Row:
    usual, attack = {
        BACKGROUND: (People.background, _background),
        DIFFERENTIAL: (People.singled_out, _differential),
        CLONING: (_any_groups, _cloning),
    }[answer]
    return Row(name=name, system=system, answer=answer, knowledge=knowledge or usual, attack=attack, holds=holds)


NAMES: Final = {
    STICKY: "the same people get the same noise, ±2",
    LAYERS: "layers of noise for each condition, static and for the people",
    FRESH: "fresh noise for each question, ±2",
}
ROWS: Final = (
    _row(NAMES[STICKY], STICKY, BACKGROUND),
    _row(NAMES[LAYERS], LAYERS, DIFFERENTIAL),
    _row(NAMES[LAYERS], LAYERS, CLONING),
    _row(
        f"{NAMES[STICKY]}; one of the others lacks the bit",
        STICKY,
        BACKGROUND,
        knowledge=lambda people, target: people.background(target, wrong=1),
        holds=False,
    ),
    _row(
        f"{NAMES[LAYERS]}; somebody else has the same values",
        LAYERS,
        DIFFERENTIAL,
        knowledge=lambda people, target: people.singled_out(target, 2),
        holds=False,
    ),
    *(_row(NAMES[FRESH], FRESH, answer, holds=False) for answer in (BACKGROUND, DIFFERENTIAL, CLONING)),
    _row(NAMES[STICKY], STICKY, CLONING, holds=False),
    _row(NAMES[STICKY], STICKY, DIFFERENTIAL, holds=False),
    _row(NAMES[LAYERS], LAYERS, BACKGROUND, holds=False),
)


def measure(
    seed: int, *, runs: int = 10, targets: int = 12, rows: Sequence[Row] = ROWS, pool: int = 30
) -> list[dict[str, Any]]:
    """Run each row's attack on `targets` people, half of them with each bit, of each of `runs` systems.

    They are drawn from `pool` people with each bit, who are drawn once for the same knowledge.

    `claimed`: the share of people of whom a bit was claimed; `right`: the share of claims that are true, or null;
    `questions`: asked for each person, on average.
    """
    people = People()
    streams = np.random.SeedSequence(seed).spawn(len(rows))
    pools: dict[Knowledge, list[list[tuple[int, list[Group]]]]] = {}
    out = []
    for row, stream in zip(rows, streams, strict=True):
        if row.knowledge not in pools:
            pools[row.knowledge] = _pool(people, row.knowledge, pool, np.random.default_rng(stream))
        out.append(_measured(row, people, pools[row.knowledge], stream.spawn(runs), targets))
    return out


def _pool(
    people: People, knowledge: Knowledge, size: int, rng: np.random.Generator
) -> list[list[tuple[int, list[Group]]]]:
    """Targets of each bit of whom the attacker has enough groups, and these."""
    pool: list[list[tuple[int, list[Group]]]] = [[], []]
    for target in rng.permutation(len(people.bits)).tolist():
        wanted = pool[people.bits[target]]
        if len(wanted) < size and len(groups := knowledge(people, target)) >= FEWEST_GROUPS:
            wanted.append((target, groups))
        if min(map(len, pool)) == size:
            break
    return pool


def _measured(
    row: Row,
    people: People,
    pool: list[list[tuple[int, list[Group]]]],
    streams: Sequence[np.random.SeedSequence],
    targets: int,
) -> dict[str, Any]:
    claimed = right = questions = 0
    for stream in streams:
        rng = np.random.default_rng(stream)
        for target in range(targets):
            bit = target % 2
            system = row.system(people.table, rng)
            _, groups = pool[bit][rng.integers(len(pool[bit]))]
            found = row.attack(people, system, groups)
            claimed += found is not None
            right += found == bit
            questions += system.asked
    number = len(streams) * targets
    return {
        "defence": row.name,
        "answer": row.answer,
        "holds": row.holds,
        "people": number,
        "questions": questions / number,
        "claimed": claimed / number,
        "right": right / claimed if claimed else None,
    }


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The table as `docs/attacks.md` has it."""
    lines = [
        "| Defence | Attack | Assumptions hold | Questions per person | People with a claim | Claims that are right |",
        "|---|---|---|---:|---:|---:|",
    ]
    for row in rows:
        right = "" if row["right"] is None else f"{row['right']:.1%}"
        lines.append(
            f"| {row['defence']} | {row['answer']} | {'yes' if row['holds'] else 'no'} | {row['questions']:,.0f} "
            f"| {row['claimed']:.1%} | {right} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10, help="systems a row (default 10)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    started = time.perf_counter()
    rows = measure(arguments.seed, runs=arguments.runs)
    print(markdown(rows))
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
