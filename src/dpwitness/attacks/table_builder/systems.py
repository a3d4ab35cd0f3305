"""Query systems with bounded noise, as an attacker meets them: they take questions and give answers.

Algorithms 1 and 2 of Asghar & Kaafar (2020), the deployed variant with keys, and two that resist the attack.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.noise_laws import NoiseLaw, uniform
from dpwitness.attacks.table_builder.protocol import System
from dpwitness.attacks.table_builder.table import Table, Where
from dpwitness.errors import InvalidParameter
from dpwitness.jit import compiled

__all__ = [
    "BoundedNoisyCounts",
    "Counts",
    "GrowingNoisyCounts",
    "KeyedNoisyCounts",
    "LayeredNoisyCounts",
    "attribute_analyser",
]

Wholes = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]
#: Whose counts are kept; an attack comes back to few.
MOST_SUB_POPULATIONS = 4096


@compiled
def _gather(selections: Flags, counts: Wholes, words: Words, people: Wholes, union: Words) -> None:
    for i in range(selections.shape[0]):
        for j in range(selections.shape[1]):
            if selections[i, j]:
                people[i] += counts[j]
                for w in range(words.shape[1]):
                    # Cells share nobody, so that "or" and "xor" are the same here: one kernel for sets and keys.
                    union[i, w] ^= words[j, w]


class Counts(System):
    """What the systems share: true counts, suppression, and one identity per set of contributors."""

    def __init__(
        self, table: Table, *, noise: NoiseLaw | int, suppression: int | None = None, rng: np.random.Generator
    ) -> None:
        self.law = uniform(noise) if isinstance(noise, int | np.integer) else noise
        self.suppression = self.law.bound if suppression is None else suppression
        if not self.suppression >= self.law.bound:
            raise InvalidParameter(
                f"suppression s={suppression!r} must be at least the perturbation r={self.law.bound}: "
                "otherwise an answer could be negative"
            )
        self.asked = 0
        self._table, self._rng = table, rng
        self._words = self._identities()
        self._cells: dict[Any, tuple[Wholes, Words]] = {}

    @property
    def attributes(self) -> tuple[str, ...]:
        """As in `System`."""
        return tuple(self._table.values)

    def values(self, attribute: str) -> tuple[Any, ...]:
        """As in `System`."""
        self._table.column(attribute)
        return self._table.values[attribute]

    def ask(self, attribute: str, selections: Flags, where: Where | None = None) -> Wholes:
        """As in `System`: 0 for at most s people (Algorithm 1), else the count + noise."""
        fixed = {name: tuple(chosen) for name, chosen in (where or {}).items()}
        if attribute in fixed:
            raise InvalidParameter(f"attribute {attribute!r} is already fixed by the sub-population")
        counts, words = self._cells_of(attribute, fixed)
        selections = np.ascontiguousarray(selections, np.bool_)
        if selections.ndim != 2 or selections.shape[1] != len(counts):
            raise InvalidParameter(f"attribute {attribute!r} has {len(counts)} values: a query selects among as many")
        people = np.zeros(len(selections), np.int64)
        union = np.zeros((len(selections), words.shape[1]), np.uint64)
        _gather(selections, counts, words, people, union)
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

    def _cells_of(self, attribute: str, where: Mapping[str, tuple[Any, ...]]) -> tuple[Wholes, Words]:
        """People and identity of each value of the attribute within the sub-population."""
        name = (attribute, tuple(sorted(where.items())))
        if name not in self._cells:
            if len(self._cells) >= MOST_SUB_POPULATIONS:
                self._cells.clear()
            inside = self._table.profiles(where)
            code = self._table.codes[inside, self._table.column(attribute)]
            counts = self._table.histogram(attribute, where)
            size = len(counts)
            words = np.zeros((size, self._words.shape[1]), np.uint64)
            np.bitwise_xor.at(words, code, self._words[inside])
            self._cells[name] = counts, words
        return self._cells[name]

    def _noise(self, union: Words, attribute: str, selections: Flags, where: Mapping[str, tuple[Any, ...]]) -> Wholes:
        raise NotImplementedError


class BoundedNoisyCounts(Counts):
    """Algorithm 1: fresh noise for each new set of contributors, kept in a dictionary."""

    def __init__(
        self, table: Table, *, noise: NoiseLaw | int, suppression: int | None = None, rng: np.random.Generator
    ) -> None:
        super().__init__(table, noise=noise, suppression=suppression, rng=rng)
        self._dictionary: dict[bytes, int] = {}

    def _fresh(self, n: int) -> Wholes:
        return self.law.sample(self._rng, n)

    def _noise(self, union: Words, attribute: str, selections: Flags, where: Mapping[str, tuple[Any, ...]]) -> Wholes:
        whole_row = np.dtype((np.void, union.itemsize * union.shape[1]))
        return self._kept(self._dictionary, union.view(whole_row).ravel().tolist())

    def _kept(self, known: dict[Any, int], names: list[Any]) -> Wholes:
        """The noise that each name has in a dictionary, fresh for those that have none."""
        new = [name for name in dict.fromkeys(names) if name not in known]
        known.update(zip(new, self._fresh(len(new)).tolist(), strict=True))
        return np.fromiter(map(known.__getitem__, names), np.int64, len(names))


class GrowingNoisyCounts(BoundedNoisyCounts):
    """The mitigation of section 6: the i-th fresh noise is uniform within ±⌈r·√i⌉.

    The variance of the attack's average then stays near 2r²/3 people² however many queries it asks. Answers can be
    negative.
    """

    def _fresh(self, n: int) -> Wholes:
        first = len(self._dictionary) + 1
        bound = np.ceil(self.law.bound * np.sqrt(np.arange(first, first + n))).astype(np.int64)
        return np.asarray(self._rng.integers(-bound, bound, endpoint=True), np.int64)


class LayeredNoisyCounts(BoundedNoisyCounts):
    """The layered noise of section 9 (Diffix): one noise per set of contributors and one per condition of the query.

    The noise of a condition that all queries of an attack share, as that of a sub-population, never averages out: the
    noise remover counts the sub-population wrong by twice that noise. But it is the same with and without a value, so
    differences are free of it. `per_value`: each selected value is a condition of its own; its noise stays in them.
    """

    def __init__(
        self,
        table: Table,
        *,
        noise: NoiseLaw | int,
        suppression: int | None = None,
        rng: np.random.Generator,
        per_value: bool = False,
    ) -> None:
        super().__init__(table, noise=noise, suppression=suppression, rng=rng)
        self._per_value = per_value
        self._conditions: dict[Any, int] = {}

    def _noise(self, union: Words, attribute: str, selections: Flags, where: Mapping[str, tuple[Any, ...]]) -> Wholes:
        layers = super()._noise(union, attribute, selections, where)
        for name, chosen in where.items():
            places = self._table.positions(name, chosen).tolist()
            parts = places if self._per_value else [frozenset(places)]
            layers += self._kept(self._conditions, [(name, part) for part in parts]).sum()
        if self._per_value:
            each = self._kept(self._conditions, [(attribute, value) for value in range(selections.shape[1])])
            return np.asarray(layers + selections.astype(np.int64) @ each)
        return layers + self._kept(self._conditions, [(attribute, row.tobytes()) for row in selections])


class KeyedNoisyCounts(Counts):
    """The deployed variant: a random key a person, xor over the contributors, mapped into a perturbation table.

    `cells`: the size of the table, a power of two; the table holds the noise law as exactly as that size allows.
    Fraser & Wooton (2005); Asghar & Kaafar (2020), section 5.1.
    """

    def __init__(
        self,
        table: Table,
        *,
        noise: NoiseLaw | int,
        suppression: int | None = None,
        rng: np.random.Generator,
        cells: int = 1 << 16,
    ) -> None:
        if not (isinstance(cells, int) and 2 <= cells <= 1 << 24 and cells & (cells - 1) == 0):
            raise InvalidParameter(f"cells={cells!r} must be a power of two, at most {1 << 24}")
        super().__init__(table, noise=noise, suppression=suppression, rng=rng)
        self._perturbations = self.law.at((np.arange(cells) + 0.5) / cells)
        self._shift = np.uint64(64 - (cells.bit_length() - 1))

    def _identities(self) -> Words:
        keys = self._rng.integers(0, 1 << 64, self._table.people, np.uint64, endpoint=False)
        starts = np.cumsum(self._table.counts) - self._table.counts
        return np.asarray(np.bitwise_xor.reduceat(keys, starts), np.uint64)[:, None]

    def _noise(self, union: Words, attribute: str, selections: Flags, where: Mapping[str, tuple[Any, ...]]) -> Wholes:
        key = union[:, 0]
        # The finaliser of splitmix64 (Steele, Lea & Flood 2014): xor keys are linear, the noise must not be.
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        cell = (key ^ (key >> np.uint64(31))) >> self._shift
        return np.asarray(self._perturbations[cell.astype(np.int64)])


def attribute_analyser(oracle: System, attribute: str, values: Sequence[Any], where: Where | None = None) -> Wholes:
    """Algorithm 2: the answers for each of the values, then that to the total query; shape (len(values) + 1,).

    Without values the total query asks for the whole sub-population.
    """
    known = oracle.values(attribute)
    unknown = [value for value in values if value not in known]
    if unknown:
        raise InvalidParameter(f"attribute {attribute!r} has no value {unknown[0]!r}")
    selections = np.zeros((len(values) + 1, len(known)), np.bool_)
    for i, value in enumerate(values):
        selections[[i, -1], known.index(value)] = True
    if not len(values):
        selections[:] = True  # everyone has one of the attribute's values
    return oracle.ask(attribute, selections, where)
