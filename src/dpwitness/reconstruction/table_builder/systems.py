"""The interface `QuerySystem` between attacks and query systems, and simulated systems, which answer from a `Table`.

Asghar & Kaafar (2020), Algorithms 1 and 2. An attack asks a `QuerySystem` for the number of people who have one of the
selected values of an attribute, and sees nothing else. `oracle.AskedSystem` asks the user's own system.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.algorithms.table_builder import splitmix64  # type: ignore[import-not-found]  # it is ../../algorithms
from dpwitness.arrays import Booleans, Integers
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.noise_laws import (
    NoiseLaw,
    as_law,
    maximum_entropy,
    truncated_normal,
    uniform,
)
from dpwitness.reconstruction.table_builder.tables import AttributeValue, Table, Where, require_attribute

#: Keys of sets of people, shape (sets,).
Keys: TypeAlias = NDArray[np.uint64]
#: The value in place of an answer that was refused or never came: the least int64, which no count equals.
MISSING_ANSWER: Final = -(1 << 63)
#: Number of bits of a key that choose a cell of the perturbation table: 65,536 cells hold probabilities to 2⁻¹⁶.
CELL_BITS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Questions about one sub-population: each asks for the number of people in `where` with a selected value.

    `selections`: a row for each question, a column for each value of the attribute; shape (questions, values).
    """

    attribute: str
    selections: Booleans
    where: Where = field(default_factory=dict)


class QuerySystem(ABC):
    """A query system under attack; `asked`: the number of questions so far; `values`: all values of each attribute."""

    asked: int = 0

    def __init__(self, values: Mapping[str, Sequence[AttributeValue]]) -> None:
        self._values = {name: tuple(known) for name, known in values.items()}

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(self._values)

    def values(self, attribute: str) -> tuple[AttributeValue, ...]:
        """The values of an attribute, in the order of selections. Raises `InvalidParameter` for an unknown name."""
        require_attribute(self._values, attribute)
        return self._values[attribute]

    @abstractmethod
    def ask(self, attribute: str, selections: Booleans, where: Where | None = None) -> Integers:
        """The published numbers of people in `where` who have a selected value of the attribute, shape (queries,).

        `selections`: a row for each query, a column for each value, shape (queries, values). A refused answer, or an
        answer beyond the budget of questions, is `MISSING_ANSWER`.
        """

    def ask_all(self, blocks: Iterable[Block]) -> list[Integers]:
        """The answers to several blocks of questions, which do not depend on each other's answers."""
        return [self.ask(block.attribute, block.selections, block.where) for block in blocks]


class SimulatedSystem(QuerySystem):
    """A simulated system: true counts, suppression, and a random key for each set of contributors.

    Each profile has a key of 64 bits, and a set of people the xor of its profiles' keys: different sets have equal keys
    with probability 2⁻⁶⁴.
    """

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
        self._keys = rng.integers(0, 1 << 64, len(table.counts), np.uint64, endpoint=False)

    @override
    def ask(self, attribute: str, selections: Booleans, where: Where | None = None) -> Integers:
        where = where or {}
        inside = self._table.profiles(where)
        counts = self._table.histogram(attribute, where)
        keys = np.zeros(len(counts), np.uint64)
        np.bitwise_xor.at(keys, self._table.codes[inside, self._table.column(attribute)], self._keys[inside])
        selections = np.asarray(selections, np.bool_)
        people, key = selections @ counts, np.zeros(len(selections), np.uint64)
        for selected, one in zip(selections.T, keys, strict=True):
            key[selected] ^= one
        self.asked += len(selections)
        shown = people > self.suppression
        answers = np.zeros(len(selections), np.int64)
        answers[shown] = people[shown] + self._noise(key[shown])
        return answers

    @abstractmethod
    def _noise(self, keys: Keys) -> Integers:
        """The noise of questions with more than s people; `keys`: their contributors' keys, shape (questions,)."""


class ExactCounts(SimulatedSystem):
    """A system with suppression but no noise (section 2.2): 0 for at most s people, else the true count."""

    @override
    def _noise(self, keys: Keys) -> Integers:
        return np.zeros(len(keys), np.int64)


class FreshNoisyCounts(SimulatedSystem):
    """A system with fresh noise for every question, repeated questions included (section 2.2)."""

    @override
    def _noise(self, keys: Keys) -> Integers:
        return self.law.sample(self._rng, len(keys))


class BoundedNoisyCounts(SimulatedSystem):
    """The system of Algorithm 1: fresh noise for each new set of contributors, kept in a dictionary."""

    @cached_property
    def _dictionary(self) -> dict[object, int]:
        return {}

    @override
    def _noise(self, keys: Keys) -> Integers:
        names = keys.tolist()
        new = [name for name in dict.fromkeys(names) if name not in self._dictionary]
        self._dictionary.update(zip(new, self._fresh_noise(len(new)).tolist(), strict=True))
        return np.fromiter(map(self._dictionary.__getitem__, names), np.int64, len(names))

    def _fresh_noise(self, n: int) -> Integers:
        return self.law.sample(self._rng, n)


class KeyedNoisyCounts(SimulatedSystem):
    """The deployed system: the key of the contributors selects from a table of noises.

    Fraser & Wooton (2005); Asghar & Kaafar (2020), section 5.1.
    """

    @override
    def _noise(self, keys: Keys) -> Integers:
        cells = splitmix64(keys) >> np.uint64(64 - CELL_BITS)
        return self.law.at((cells + 0.5) / (1 << CELL_BITS))


#: Simulated systems by their names, as --system takes them.
SYSTEMS: Final[Mapping[str, type[SimulatedSystem]]] = {
    "bounded": BoundedNoisyCounts,
    "keyed": KeyedNoisyCounts,
    "exact": ExactCounts,
    "fresh": FreshNoisyCounts,
}
#: Names of the laws of simulated noise, as --noise takes them.
NOISE_LAWS: Final = ("uniform", "maximum-entropy", "normal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """The options of a simulated system: `system` is a name in `SYSTEMS`, `noise` a law in `NOISE_LAWS`.

    `perturbation`: the noise's bound r, in people. `scale`: the standard deviation, in people, of normal noise before
    its truncation, or the largest of maximum-entropy noise; None means 1; uniform noise takes no scale. `suppression`:
    the largest suppressed number of people; None means max(r, 4).
    """

    system: str = "bounded"
    noise: str = "uniform"
    perturbation: int = 2
    scale: float | None = None
    suppression: int | None = None

    @property
    def suppressed(self) -> int:
        """The largest number of people for which the system answers 0."""
        return max(self.perturbation, 4) if self.suppression is None else self.suppression

    @property
    def noise_bound(self) -> int:
        """The largest error, in people, of the answer for one value among all people."""
        return 0 if self.system == "exact" else self.perturbation

    def law(self) -> NoiseLaw:
        """The law of the system's noise. Raises `InvalidParameter` for a scale or bound out of range."""
        if self.noise == "uniform":
            if self.scale is not None:
                raise InvalidParameter("--scale says nothing of uniform noise: choose another --noise, or leave it out")
            return uniform(self.perturbation)
        scale = 1.0 if self.scale is None else self.scale
        if self.noise == "maximum-entropy":
            return maximum_entropy(self.perturbation, scale * scale)  # refuses an infinite square
        return truncated_normal(self.perturbation, scale)
