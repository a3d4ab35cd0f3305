"""Query systems as an attack sees them, and simulated ones: Algorithms 1 and 2 of Asghar & Kaafar (2020).

An attack asks a `System` how many people have one of the selected values of an attribute, and sees nothing else. The
systems here answer from a `Table`; `oracle.AskedSystem` answers from a system of the user's.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.algorithms.table_builder import splitmix64  # type: ignore[import-not-found]  # it is ../../algorithms
from dpwitness.errors import InvalidParameter
from dpwitness.jit import kernel
from dpwitness.reconstruction.table_builder.noise_laws import (
    NoiseLaw,
    as_law,
    maximum_entropy,
    truncated_laplace,
    truncated_normal,
    uniform,
)
from dpwitness.reconstruction.table_builder.tables import BoolArray, IntArray, Table, Value, Where, require_attribute

Words: TypeAlias = NDArray[np.uint64]
#: A sub-population with its values in tuples, which can be a key.
Fixed: TypeAlias = Mapping[str, tuple[Value, ...]]
#: Instead of an answer that was refused or never came. What int64 makes of NaN on most machines; no count is so small.
MISSING: Final = -(1 << 63)
#: Sub-populations whose counts are cached; an attack asks about few of them again.
MAX_SUB_POPULATIONS: Final = 4096
#: Of the perturbation table of the deployed variant, which holds a noise law as exactly as that size allows.
CELLS_BITS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Questions that share a sub-population: how many people in `where` have one of the selected values.

    `selections`: a row a question, a column a value of the attribute; shape (questions, values).
    """

    attribute: str
    selections: BoolArray
    where: Where = field(default_factory=dict)


class System(ABC):
    """All that an attack sees of a query system; `asked`: how many questions were asked so far.

    `values`: for each attribute all of its values.
    """

    asked: int = 0

    def __init__(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._values = {name: tuple(known) for name, known in values.items()}

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(self._values)

    def values(self, attribute: str) -> tuple[Value, ...]:
        """The values of an attribute, in the order of a selection; raises `InvalidParameter` for an unknown one."""
        require_attribute(self._values, attribute)
        return self._values[attribute]

    @abstractmethod
    def ask(self, attribute: str, selections: BoolArray, where: Where | None = None) -> IntArray:
        """Answer counting queries: how many people satisfy `where` and have a selected value of the attribute.

        `selections`: a row a query, a column a value, shape (queries, values); returns shape (queries,). An answer
        that was refused, or that there is no more allowance for, is `MISSING`: attacks go on with those there are, and
        their confidence is of these.
        """

    def ask_all(self, blocks: Sequence[Block]) -> list[IntArray]:
        """Answer several blocks of questions, none of which depends on another's answers."""
        return [self.ask(block.attribute, block.selections, block.where) for block in blocks]


def _gather(selections: BoolArray, counts: IntArray, words: Words, people: IntArray, union: Words) -> None:
    for i in range(selections.shape[0]):
        for j in range(selections.shape[1]):
            if selections[i, j]:
                people[i] += counts[j]
                for w in range(words.shape[1]):
                    # Cells share nobody, so that "or" and "xor" are the same here: one kernel for sets and keys.
                    union[i, w] ^= words[j, w]


class SimulatedSystem(System):
    """What simulated systems share: true counts, suppression, and one identity per set of contributors."""

    #: Noises that the answer for one value among all people holds at most; None: their size grows with the questions,
    #: or with the values that they name.
    noises: ClassVar[int | None] = 1

    def __init__(
        self, table: Table, *, noise: NoiseLaw | int, suppression: int | None = None, rng: np.random.Generator
    ) -> None:
        self.law = as_law(noise)
        self.suppression = self.law.bound if suppression is None else suppression
        if not self.suppression >= self.law.bound:
            raise InvalidParameter(
                f"suppression s={suppression!r} must be at least the perturbation r={self.law.bound}: "
                "otherwise an answer could be negative"
            )
        super().__init__(table.values)
        self._table, self._rng = table, rng
        self._words = self._identities()
        self._cells: dict[object, tuple[IntArray, Words]] = {}

    @property
    def noise_bound(self) -> int | None:
        """By how much the answer for one value misses its count at most, among all people; None without a limit."""
        return None if self.noises is None else self.noises * self.law.bound

    @override
    def ask(self, attribute: str, selections: BoolArray, where: Where | None = None) -> IntArray:
        fixed = {name: tuple(chosen) for name, chosen in (where or {}).items()}
        if attribute in fixed:
            raise InvalidParameter(f"attribute {attribute!r} is already fixed by the sub-population")
        counts, words = self._cells_of(attribute, fixed)
        selections = np.ascontiguousarray(selections, np.bool_)
        if selections.ndim != 2 or selections.shape[1] != len(counts):
            raise InvalidParameter(f"attribute {attribute!r} has {len(counts)} values: a query selects among as many")
        people = np.zeros(len(selections), np.int64)
        union = np.zeros((len(selections), words.shape[1]), np.uint64)
        kernel(_gather)(selections, counts, words, people, union)
        self.asked += len(selections)
        shown = people > self.suppression
        answers = np.zeros(len(selections), np.int64)
        answers[shown] = people[shown] + self._noise(union[shown], attribute, selections[shown], fixed)
        return answers

    def _identities(self) -> Words:
        """One bit a profile: the union over a query's profiles is its set of contributors; (profiles, words)."""
        profiles = len(self._table.counts)
        words = np.zeros((profiles, -(-profiles // 64)), np.uint64)
        index = np.arange(profiles)
        words[index, index // 64] = np.uint64(1) << (index % 64).astype(np.uint64)
        return words

    def _cells_of(self, attribute: str, where: Fixed) -> tuple[IntArray, Words]:
        """People and identity of each value of the attribute within the sub-population."""
        name = (attribute, tuple(sorted(where.items())))
        if name not in self._cells:
            if len(self._cells) >= MAX_SUB_POPULATIONS:
                self._cells.clear()
            inside = self._table.profiles(where)
            code = self._table.codes[inside, self._table.column(attribute)]
            counts = self._table.histogram(attribute, where)
            words = np.zeros((len(counts), self._words.shape[1]), np.uint64)
            np.bitwise_xor.at(words, code, self._words[inside])
            self._cells[name] = counts, words
        return self._cells[name]

    @abstractmethod
    def _noise(self, union: Words, attribute: str, selections: BoolArray, where: Fixed) -> IntArray:
        """Of questions with more than s people; `union`: the identities of their contributors."""


class ExactCounts(SimulatedSystem):
    """Suppression alone: 0 for at most s people, else the true count (section 2.2). The noise law only bounds s."""

    noises = 0

    @override
    def _noise(self, union: Words, attribute: str, selections: BoolArray, where: Fixed) -> IntArray:
        return np.zeros(len(union), np.int64)


class FreshNoisyCounts(SimulatedSystem):
    """Fresh noise for every question, the same one asked again included (section 2.2)."""

    @override
    def _noise(self, union: Words, attribute: str, selections: BoolArray, where: Fixed) -> IntArray:
        return self.law.sample(self._rng, len(union))


class BoundedNoisyCounts(SimulatedSystem):
    """Algorithm 1: fresh noise for each new set of contributors, kept in a dictionary."""

    @cached_property
    def _dictionary(self) -> dict[object, int]:
        return {}

    @override
    def _noise(self, union: Words, attribute: str, selections: BoolArray, where: Fixed) -> IntArray:
        whole_row = np.dtype((np.void, union.itemsize * union.shape[1]))
        return self._sticky(union.view(whole_row).ravel().tolist())

    def _sticky(self, names: Sequence[object]) -> IntArray:
        """The noise that each name has in the dictionary, fresh for those that have none."""
        new = [name for name in dict.fromkeys(names) if name not in self._dictionary]
        self._dictionary.update(zip(new, self._fresh(len(new)).tolist(), strict=True))
        return np.fromiter(map(self._dictionary.__getitem__, names), np.int64, len(names))

    def _fresh(self, n: int) -> IntArray:
        return self.law.sample(self._rng, n)


class KeyedNoisyCounts(SimulatedSystem):
    """The deployed variant: a random key a person, xor over the contributors, mapped into a perturbation table.

    Fraser & Wooton (2005); Asghar & Kaafar (2020), section 5.1.
    """

    @override
    def _identities(self) -> Words:
        keys = self._rng.integers(0, 1 << 64, self._table.people, np.uint64, endpoint=False)
        starts = np.cumsum(self._table.counts) - self._table.counts
        return np.asarray(np.bitwise_xor.reduceat(keys, starts), np.uint64)[:, None]

    @override
    def _noise(self, union: Words, attribute: str, selections: BoolArray, where: Fixed) -> IntArray:
        keys: Words = splitmix64(union[:, 0])
        return self._perturbations[(keys >> np.uint64(64 - CELLS_BITS)).astype(np.int64)]

    @cached_property
    def _perturbations(self) -> IntArray:
        return self.law.at((np.arange(1 << CELLS_BITS) + 0.5) / (1 << CELLS_BITS))


class WithoutTotals(BoundedNoisyCounts):
    """No fresh noise on totals: several values are answered by the sum of the answers for each (section 7)."""

    @override
    def ask(self, attribute: str, selections: BoolArray, where: Where | None = None) -> IntArray:
        asked = self.asked
        each = super().ask(attribute, np.eye(len(self.values(attribute)), dtype=np.bool_), where)
        self.asked = asked + len(selections)
        return np.asarray(np.asarray(selections, np.int64) @ each)


SYSTEMS: Final[Mapping[str, type[SimulatedSystem]]] = {
    "bounded": BoundedNoisyCounts,
    "keyed": KeyedNoisyCounts,
    "exact": ExactCounts,
    "fresh": FreshNoisyCounts,
    "without-totals": WithoutTotals,
}
#: Of these the theory of independent noises of one law holds.
INDEPENDENT: Final = ("bounded", "keyed", "fresh")
LAWS: Final = ("uniform", "maximum-entropy", "normal", "laplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A bundled system: its name among `SYSTEMS`, the law of its noise among `LAWS`, and what becomes 0.

    `scale`: None is 1, or no scale of uniform noise; `suppression`: None is max(r, 4).
    """

    system: str = "bounded"
    noise: str = "uniform"
    perturbation: int = 2
    scale: float | None = None
    suppression: int | None = None

    @property
    def suppressed(self) -> int:
        """Counts of at most so many are answered by 0."""
        return max(self.perturbation, 4) if self.suppression is None else self.suppression

    def law(self) -> NoiseLaw:
        """The law of its noise. Raises `InvalidParameter` for what describes none."""
        if self.noise == "uniform":
            if self.scale is not None:
                raise InvalidParameter("--scale says nothing of uniform noise: choose another --noise, or leave it out")
            return uniform(self.perturbation)
        scale = 1.0 if self.scale is None else self.scale
        if self.noise == "maximum-entropy":
            return maximum_entropy(self.perturbation, scale * scale)  # infinite where it overflows: refused
        return (truncated_normal if self.noise == "normal" else truncated_laplace)(self.perturbation, scale)
