"""The perturbation finder: it finds how large the bounded noise of a system is that does not say so.

Asghar & Kaafar (2020), Algorithm 3, with Remarks 1 and 2. It sees nothing but answers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.averaging import chosen_values, usable
from dpwitness.reconstruction.table_builder.systems import Block, System, Where

Flags = NDArray[np.bool_]
Wholes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """What the perturbation finder found: the guess for r, from how many sums within which bounds.

    `plus`, `minus`: how many answers are added and subtracted in each sum; `seen`: the sums.
    """

    guess: int
    smallest: int
    largest: int
    sums: int
    queries: int
    plus: int = 2
    minus: int = 1
    seen: tuple[int, ...] = ()


def usable_conditions(
    oracle: System, attribute: str, pair: tuple[int, int], conditions: Iterable[Where], m: int
) -> tuple[list[Where], Wholes]:
    """The first `m` conditions that suit Algorithm 3, and their answers (n₁, n₂, n₁ + n₂), shape (conditions, 3).

    In these no answer is 0, and no two share their contributors: two conditions surely differ where they exclude each
    other, and where their totals have unequal answers (Lemma 2).
    """
    selections = _pair_and_total(oracle, attribute, pair)
    found: list[Where] = []
    rows: list[Wholes] = []
    totals: dict[int, list[Where]] = {}
    left = iter(conditions)
    while len(found) < m and (some := list(islice(left, m - len(found)))):
        blocks = [Block(attribute=attribute, selections=selections, where=condition) for condition in some]
        for condition, answers in zip(some, oracle.ask_all(blocks), strict=True):
            rivals = totals.setdefault(int(answers[2]), [])
            if usable(answers).all() and all(_exclude(condition, rival) for rival in rivals):
                rivals.append(condition)
                found.append(condition)
                rows.append(answers)
    return found, np.array(rows, np.int64).reshape(-1, 3)


def _pair_and_total(oracle: System, attribute: str, pair: tuple[int, int]) -> Flags:
    selections = np.zeros((3, len(oracle.values(attribute))), np.bool_)
    selections[[0, 2], pair[0]] = True
    selections[[1, 2], pair[1]] = True
    return selections


def _exclude(first: Where, second: Where) -> bool:
    return any(set(first[name]).isdisjoint(second[name]) for name in first.keys() & second.keys())


def find_perturbation(
    oracle: System, attribute: str, pair: tuple[int, int], conditions: Sequence[Where]
) -> Perturbation:
    """Algorithm 3 with Remarks 1 and 2: two values of an attribute, apart and together, in each sub-population."""
    selections = _pair_and_total(oracle, attribute, pair)
    answers = oracle.ask_all([Block(attribute=attribute, selections=selections, where=where) for where in conditions])
    return largest_sum(np.array(answers, np.int64).reshape(-1, 3))


def find_perturbation_without_totals(
    oracle: System, first: str, second: str, conditions: Iterable[Where], m: int
) -> Perturbation:
    """Algorithm 3 where totals carry no noise of their own: two attributes' sums of the same people (section 7.1).

    In each sub-population the answers for all values of the one attribute and those for all of the other have the same
    true sum. The first `m` sub-populations without an answer of 0 are used. The more values the two have, the more
    questions this takes: of n noises in all, each must be large.
    """
    asked, left = oracle.asked, iter(conditions)
    sizes = [len(oracle.values(name)) for name in (first, second)]
    sums: list[int] = []
    while len(sums) < m and (some := list(islice(left, m - len(sums)))):
        blocks = [
            Block(attribute=name, selections=np.eye(size, dtype=np.bool_), where=where)
            for where in some
            for name, size in zip((first, second), sizes, strict=True)
        ]
        answers = oracle.ask_all(blocks)
        pairs = zip(answers[::2], answers[1::2], strict=True)
        sums += [int(one.sum() - other.sum()) for one, other in pairs if usable(one).all() and usable(other).all()]
    return _guess(np.array(sums, np.int64), sizes[0], sizes[1], queries=oracle.asked - asked)


def find_perturbation_within(
    oracle: System, rng: np.random.Generator, attribute: str, base: Sequence[int] | Wholes, m: int
) -> Perturbation:
    """Algorithm 3 in a single attribute: `m` pairs of disjoint sets of values, apart and together.

    As `pairs_within`. Raises `InvalidParameter` where no answers came.
    """
    return largest_sum(pairs_within(oracle, rng, attribute, base, m))


def pairs_within(
    oracle: System, rng: np.random.Generator, attribute: str, base: Sequence[int] | Wholes, m: int
) -> Wholes:
    """Answers (n₁, n₂, n₁ + n₂) for `m` pairs of disjoint sets of values of one attribute; shape (pairs, 3).

    No set is asked for twice, so all noises are independent. `base`: positions of values with answers above 0. Asks for
    fewer pairs where the values allow no more; leaves out those with an answer that is 0 or `MISSING`.
    """
    base = chosen_values(oracle, attribute, base)
    if len(base) < 2:
        raise InvalidParameter(f"attribute {attribute!r}: {len(base)} answers above 0; at least 2 are needed")
    used: set[bytes] = set()
    rows: list[Flags] = []
    for _ in range(50 * m):
        label = rng.integers(0, 3, len(base))
        sets = [label == 0, label == 1, label < 2]
        names = {chosen.tobytes() for chosen in sets}
        if sets[0].any() and sets[1].any() and not names & used:
            used |= names
            rows.extend(sets)
            if len(rows) == 3 * m:
                break
    selections = np.zeros((len(rows), len(oracle.values(attribute))), np.bool_)
    selections[:, base] = rows
    answers = oracle.ask(attribute, selections).reshape(-1, 3)
    return np.asarray(answers[usable(answers).all(axis=1)])


def largest_sum(answers: Wholes) -> Perturbation:
    """The guess from answers (n₁, n₂, n₁ + n₂), a row a sub-population; shape (sub-populations, 3)."""
    return _guess(answers[:, 0] + answers[:, 1] - answers[:, 2], 2, 1, queries=answers.size)


def _guess(sums: Wholes, plus: int, minus: int, *, queries: int) -> Perturbation:
    """The guess from sums of so many noises each."""
    if not len(sums):
        raise InvalidParameter("no sub-population has answers above 0 for both values: take other values")
    smallest, largest = int(sums.min()), int(sums.max())
    # Low side: ⌈−z/3⌉. The −⌈z/3⌉ of the printed algorithm misses −3r+1 and −3r+2, which Proposition 2 counts.
    guess = max(-(smallest // (plus + minus)), -(-largest // (plus + minus)))
    return Perturbation(
        guess=guess,
        smallest=smallest,
        largest=largest,
        sums=len(sums),
        queries=queries,
        plus=plus,
        minus=minus,
        seen=tuple(sums.tolist()),
    )
