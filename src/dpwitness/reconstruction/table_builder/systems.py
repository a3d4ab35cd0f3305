"""A table of people and attributes, kept as distinct rows (profiles) and the number of people who have each.

What an attack may ask of a system, a simulated one or the user's: selections of one attribute's values.

Admissible noise of systems like TableBuilder: bounded, whole, of mean zero (Asghar & Kaafar 2020, section 6).

Query systems with bounded noise, as an attacker meets them: they take questions and give answers.

Algorithms 1 and 2 of Asghar & Kaafar (2020), the deployed variant with keys, and two that resist the attack.

Systems that answer the same counts under other rules: each a defence that averaging has an answer to, or has not.

Asghar & Kaafar (2020), sections 2.2, 7 and 9. All but the first two restrict the questions of another system.

What is asked of a system that publishes counts: a condition → how many people satisfy it, with noise.

The user's own system, as the attacks see it: selections of values become conditions.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.files import read_rows, shown
from dpwitness.jit import compiled
from dpwitness.reconstruction.asking import Asking
from dpwitness.reconstruction.transcript import Form, as_whole

Where = Mapping[str, Collection[Any]]

#: Above this a count, or a sum of 10³ of them, would no longer be exact.
LARGEST: Final = 1 << 40


class Table:
    """People (rows) and attributes (columns); every person has one value of each attribute.

    Attributes
    ----------
    values
        For each attribute, its values in the order in which queries select them; they may include values nobody has.
    codes
        Profiles as positions in `values`; shape (profiles, attributes).
    counts
        How many people have each profile, at least 1; shape (profiles,).
    """

    def __init__(
        self, values: Mapping[str, Sequence[Any]], codes: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> None:
        self.values: dict[str, tuple[Any, ...]] = {name: tuple(v) for name, v in values.items()}
        self.codes, index = np.unique(codes, axis=0, return_inverse=True)
        self.counts = np.bincount(index.ravel(), weights=counts).astype(np.int64)
        kept = self.counts > 0
        self.codes, self.counts = self.codes[kept], self.counts[kept]
        if not self.values:
            raise InvalidData("the table has no attribute")
        if not len(self.counts):
            raise InvalidData("the table holds nobody: all counts are 0")

    @property
    def people(self) -> int:
        """How many people the table holds."""
        return int(self.counts.sum())

    @classmethod
    def from_counts(
        cls, counts: Sequence[int] | NDArray[Any], values: Sequence[Any] | None = None, name: str = "value"
    ) -> "Table":
        """One attribute, from the number of people with each of its values. Raises `InvalidData` for no counts."""
        array = np.asarray(counts)
        if array.ndim != 1 or not array.size or array.dtype.kind not in "biuf":
            raise InvalidData("a histogram is a list of at least one count")
        bad = array[~((array >= 0) & (array == np.floor(array)) & (array <= LARGEST))]
        if len(bad):
            raise InvalidData(f"a histogram holds whole counts from 0 to 2^40, not {bad[0]:g}")
        labels = tuple(range(len(array))) if values is None else tuple(values)
        if len(set(labels)) != len(array):
            raise InvalidData(f"{len(array)} counts need as many different values, not {len(set(labels))}")
        return cls({name: labels}, np.arange(len(array))[:, None], array.astype(np.int64))

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[Any]], counts: Sequence[int] | None = None) -> "Table":
        """One row a person, or `counts` people a row. Raises `InvalidData` for missing values, naming the row."""
        lengths = {len(column) for column in columns.values()}
        if len(lengths) != 1 or lengths == {0}:
            raise InvalidData("a table needs at least one column and one row, and columns of one length")
        values: dict[str, list[Any]] = {}
        codes = []
        for name, column in columns.items():
            for row, value in enumerate(column, 1):
                if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
                    raise InvalidData(
                        f"attribute {name!r}, row {row}: the value is missing; fill it in or leave the row out"
                    )
            values[name] = sorted(set(column), key=_order)
            place = {value: i for i, value in enumerate(values[name])}
            codes.append([place[value] for value in column])
        weights = np.ones(lengths.pop(), np.int64) if counts is None else np.asarray(counts, np.int64)
        return cls(values, np.array(codes, np.int64).T, weights)

    def only(self, attributes: Collection[str]) -> "Table":
        """The same people with fewer attributes."""
        places = [self.column(name) for name in dict.fromkeys(attributes)]
        kept = {name: self.values[name] for name in dict.fromkeys(attributes)}
        return Table(kept, self.codes[:, places], self.counts)

    def histogram(self, attribute: str, where: Where | None = None) -> NDArray[np.int64]:
        """The true number of people with each value of the attribute; shape (values,)."""
        inside = self.profiles(where or {})
        code = self.codes[inside, self.column(attribute)]
        size = len(self.values[attribute])
        return np.bincount(code, weights=self.counts[inside], minlength=size).astype(np.int64)

    def column(self, attribute: str) -> int:
        """The attribute's position; raises `InvalidParameter` where there is none of that name."""
        names = list(self.values)
        if attribute not in self.values:
            raise InvalidParameter(f"there is no attribute {attribute!r}; the attributes are {', '.join(names)}")
        return names.index(attribute)

    def positions(self, attribute: str, chosen: Collection[Any]) -> NDArray[np.int64]:
        """Where the given values stand among the attribute's; raises `InvalidParameter` for an unknown one."""
        self.column(attribute)
        place = {value: i for i, value in enumerate(self.values[attribute])}
        unknown = [value for value in chosen if value not in place]
        if unknown:
            raise InvalidParameter(f"attribute {attribute!r} has no value {unknown[0]!r}")
        return np.array([place[value] for value in chosen], np.int64)

    def profiles(self, where: Where) -> NDArray[np.bool_]:
        """Which profiles satisfy all conditions, each a set of values of an attribute; shape (profiles,)."""
        inside = np.ones(len(self.counts), np.bool_)
        for attribute, chosen in where.items():
            inside &= np.isin(self.codes[:, self.column(attribute)], self.positions(attribute, chosen))
        return inside


def _order(value: Any) -> tuple[int, Any]:
    return (0, value) if isinstance(value, int | float) else (1, str(value))


def read_table(path: str | Path) -> Table:
    """A table from a CSV file with a header line: one row a person, or, with a column "count", that many people a row.

    Raises `InvalidData`, with the line, for missing values, uneven rows and counts that are no whole numbers.
    """
    rows, place = read_rows(path), shown(path)
    if len(rows) < 2:
        raise InvalidData(f"{place} holds no table: it needs a header line and at least one row")
    header = [cell.strip() for cell in rows[0][1]]
    if len(set(header)) != len(header) or "" in header:
        raise InvalidData(f"{place}: every column needs a name of its own, not {', '.join(map(repr, header))}")
    columns: dict[str, list[Any]] = {name: [] for name in header}
    for number, row in rows[1:]:
        if len(row) != len(header):
            raise InvalidData(f"{place}, line {number}: {len(row)} values for {len(header)} columns")
        for name, cell in zip(header, row, strict=True):
            if not cell.strip() or cell.strip().lower() in ("nan", "na", "null", "?"):
                raise InvalidData(
                    f"{place}, line {number}: the value of {name!r} is missing; fill it in or leave the row out"
                )
            columns[name].append(parse_value(cell.strip()))
    if "count" not in columns:
        return Table.from_columns(columns)
    counts = columns.pop("count")
    for (number, _), count in zip(rows[1:], counts, strict=True):
        if not isinstance(count, int) or not 0 <= count <= LARGEST:
            raise InvalidData(f"{place}, line {number}: count {count!r} must be a whole number from 0 to 2^40")
    if not columns:
        return Table.from_counts(counts)
    return Table.from_columns(columns, counts)


def parse_value(cell: str) -> Any:
    """A cell as a whole number, else a number, else text."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass  # perhaps of the next kind; text in the end
    return cell


Wholes = NDArray[np.int64]
Flags = NDArray[np.bool_]
#: Instead of an answer that was refused or never came. What int64 makes of NaN on most machines; no count is so small.
MISSING: Final = -(1 << 63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Questions that share a sub-population: how many people in `where` have one of the selected values.

    `selections`: a row a question, a column a value of the attribute; shape (questions, values).
    """

    attribute: str
    selections: Flags
    where: Where = field(default_factory=dict)


class System(ABC):
    """All that an attack sees of a query system.

    Attributes
    ----------
    asked
        How many questions were asked so far.
    """

    asked: int = 0

    @property
    @abstractmethod
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""

    @abstractmethod
    def values(self, attribute: str) -> tuple[Any, ...]:
        """The values of an attribute, in the order of a selection; raises `InvalidParameter` for an unknown one."""

    @abstractmethod
    def ask(self, attribute: str, selections: Flags, where: Where | None = None) -> Wholes:
        """Answer counting queries: how many people satisfy `where` and have a selected value of the attribute.

        `selections`: a row a query, a column a value, shape (queries, values); returns shape (queries,). An answer
        that was refused, or that there is no more allowance for, is `MISSING`: attacks go on with those there are, and
        their confidence is of these.
        """

    def ask_all(self, blocks: Sequence[Block]) -> list[Wholes]:
        """Answer several blocks of questions, none of which depends on another's answers."""
        return [self.ask(block.attribute, block.selections, block.where) for block in blocks]


MOST = 10_000
Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLaw:
    """A distribution on `support` (increasing whole numbers) with mean 0; counts of people are the unit."""

    support: tuple[int, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        p = np.asarray(self.probabilities, np.float64)
        if len(p) != len(self.support) or not len(p) or np.any(np.diff(self.support) <= 0):
            raise InvalidParameter("a noise law needs one probability for each of its increasing whole numbers")
        if not (np.all(p >= 0) and abs(p.sum() - 1) < 1e-9):
            raise InvalidParameter(f"probabilities {self.probabilities!r} must not be negative and must sum to 1")
        if abs(float(p @ np.asarray(self.support))) > 1e-7 * max(self.bound, 1):
            raise InvalidParameter(
                f"noise of mean {float(p @ np.asarray(self.support)):g} is biased: the mean must be 0"
            )

    @property
    def bound(self) -> int:
        """The largest absolute value: the perturbation parameter r."""
        return max(abs(self.support[0]), abs(self.support[-1]))

    @property
    def variance(self) -> float:
        """Var(E), in people²."""
        return float(np.asarray(self.probabilities) @ np.square(np.asarray(self.support, np.float64)))

    @property
    def entropy(self) -> float:
        """Shannon entropy in bits."""
        p = np.asarray([q for q in self.probabilities if q > 0])
        return float(-(p * np.log2(p)).sum())

    def at(self, quantiles: Reals) -> Wholes:
        """The noise at each quantile in [0, 1): inversion of the distribution function; same shape."""
        cumulative = np.cumsum(self.probabilities)[:-1]
        return np.asarray(self.support, np.int64)[np.searchsorted(cumulative, quantiles, side="right")]

    def sample(self, rng: np.random.Generator, n: int) -> Wholes:
        """`n` independent draws."""
        return self.at(rng.random(n))


def _radius(r: int) -> int:
    if isinstance(r, bool) or not isinstance(r, int | np.integer) or not r >= 1:
        raise InvalidParameter(f"perturbation r={r!r} must be a whole number of at least 1")
    if r > MOST:
        raise InvalidParameter(f"perturbation r={r!r} must be at most {MOST}: more would drown every count")
    return int(r)


def uniform(r: int) -> NoiseLaw:
    """Uniform on −r…r: the noise of Algorithm 1."""
    r = _radius(r)
    return NoiseLaw(support=tuple(range(-r, r + 1)), probabilities=(1 / (2 * r + 1),) * (2 * r + 1))


def maximum_entropy(support: int | Sequence[int], variance: float) -> NoiseLaw:
    """The law of largest entropy on `support` (r means −r…r) with mean 0 and at most the given variance.

    By Lagrange multipliers p(e) ∝ exp(a·e − λ·e²) with λ ≥ 0, and λ = 0 where the variance bound does not bind; a is 0
    on a symmetric support. Both are found by root search. Raises `InvalidParameter` where no law satisfies the bounds.
    Asghar & Kaafar (2020), section 6, after Marley & Leaver (2011).
    """
    from scipy.optimize import brentq

    given = support if isinstance(support, Sequence) else range(-_radius(support), support + 1)
    values = np.array(sorted(set(given)), np.float64)
    if not (len(values) > 1 and values[0] < 0 < values[-1]):
        raise InvalidParameter(f"support {list(given)!r} must hold whole numbers below and above 0")
    if not 0 < variance < math.inf:
        raise InvalidParameter(f"variance={variance!r} must be positive and finite")

    def tilted(a: float, decay: float) -> Reals:
        exponents = a * values - decay * values**2
        weights = np.exp(exponents - exponents.max())
        return np.asarray(weights / weights.sum())

    def centred(decay: float) -> Reals:
        if np.array_equal(values, -values[::-1]):
            return tilted(0.0, decay)
        reach = 1.0
        while tilted(reach, decay) @ values < 0 or tilted(-reach, decay) @ values > 0:
            reach *= 2
        return tilted(brentq(lambda a: float(tilted(a, decay) @ values), -reach, reach, xtol=1e-14), decay)

    def excess(decay: float) -> float:
        return float(centred(decay) @ values**2) - variance

    p = centred(0.0)
    if float(p @ values**2) > variance:
        high = 1.0
        while excess(high) > 0:
            high *= 2
            if high > 1e4:
                raise InvalidParameter(f"variance={variance!r} is too small for noise on {values.astype(int).tolist()}")
        p = centred(brentq(excess, 0.0, high, xtol=1e-14))
    return NoiseLaw(support=tuple(int(v) for v in values), probabilities=tuple(float(q) for q in p))


def _rounded(r: int, distribution: Callable[[Reals], Reals]) -> NoiseLaw:
    """A continuous law on [−r, r] rounded to the nearest whole number: its mass on each unit cell."""
    edges = np.clip(np.arange(-r, r + 2) - 0.5, -r, r)
    mass = np.diff(distribution(edges))
    mass = (mass + mass[::-1]) / 2  # symmetric to the last bit, so that the mean is exactly 0
    return NoiseLaw(support=tuple(range(-r, r + 1)), probabilities=tuple(float(q) for q in mass / mass.sum()))


def truncated_normal(r: int, scale: float) -> NoiseLaw:
    """N(0, scale²) truncated to [−r, r] and rounded."""
    from scipy.stats import norm

    if not 0 < scale < math.inf:
        raise InvalidParameter(f"scale={scale!r} must be positive and finite")
    return _rounded(_radius(r), lambda x: np.asarray(norm.cdf(x, scale=scale)))


def truncated_laplace(r: int, scale: float) -> NoiseLaw:
    """Lap(scale) truncated to [−r, r] and rounded."""
    from scipy.stats import laplace

    if not 0 < scale < math.inf:
        raise InvalidParameter(f"scale={scale!r} must be positive and finite")
    return _rounded(_radius(r), lambda x: np.asarray(laplace.cdf(x, scale=scale)))


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


#: Sets of up to 64,000 values are told apart by a sum of their words times these.
MIXING = np.random.default_rng(0).integers(0, 1 << 64, 1000, np.uint64) | np.uint64(1)


class QuestionRefused(InvalidParameter):
    """The system does not answer this question, or no more of them."""


class ExactCounts(Counts):
    """Suppression alone: 0 for at most s people, else the true count (section 2.2). The noise law only bounds s."""

    def _noise(self, union: Words, attribute: str, selections: Flags, where: Any) -> Wholes:
        return np.zeros(len(union), np.int64)


class FreshNoisyCounts(Counts):
    """Fresh noise for every question, the same one asked again included (section 2.2)."""

    def _noise(self, union: Words, attribute: str, selections: Flags, where: Any) -> Wholes:
        return self.law.sample(self._rng, len(union))


class _Restricted(System):
    """Another system behind rules of its own."""

    def __init__(self, inner: System) -> None:
        self._inner = inner
        self.asked = 0

    @property
    def attributes(self) -> tuple[str, ...]:
        """As in `System`."""
        return self._inner.attributes

    def values(self, attribute: str) -> tuple[Any, ...]:
        """As in `System`."""
        return self._inner.values(attribute)

    def ask(self, attribute: str, selections: Flags, where: Where | None = None) -> Wholes:
        """As in `System`."""
        selections = np.asarray(selections, np.bool_)
        answers = self._answers(attribute, selections, where)
        self.asked += len(selections)
        return answers

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        raise NotImplementedError


class WithoutTotals(_Restricted):
    """No fresh noise on totals: several values are answered by the sum of the answers for each (section 7)."""

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        each = self._inner.ask(attribute, np.eye(selections.shape[1], dtype=np.bool_), where)
        return np.asarray(selections.astype(np.int64) @ each)


class SingleValues(_Restricted):
    """A language with "and" and "not" but without "or" (section 9): one value, or all values but one or two."""

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        named = [(len(self.values(name)), np.array([len(chosen)])) for name, chosen in (where or {}).items()]
        for size, number in [*named, (selections.shape[1], selections.sum(axis=1))]:
            if np.any((number != 1) & (number < size - 2)):
                raise QuestionRefused("a question names one value, or all but one or two: there is no 'or'")
        return self._inner.ask(attribute, selections, where)


class CappedCounts(_Restricted):
    """At most `cap` questions (query throttling, section 7); one more raises `QuestionRefused`."""

    def __init__(self, inner: System, cap: int) -> None:
        super().__init__(inner)
        self.cap = cap

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        if self.asked + len(selections) > self.cap:
            raise QuestionRefused(f"{self.asked} of {self.cap} questions are spent: no {len(selections)} more")
        return self._inner.ask(attribute, selections, where)


class AuditedCounts(_Restricted):
    """Query auditing (section 7.2): at most `limit` two-partitions of any set of values are answered.

    A question is refused where it would complete one more pair of disjoint questions with the same union.
    """

    def __init__(self, inner: System, limit: int) -> None:
        super().__init__(inner)
        self.limit = limit
        self._asked: dict[Any, Words] = {}
        self._unions: dict[Any, Words] = {}

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        place = (attribute, tuple(sorted((name, tuple(chosen)) for name, chosen in (where or {}).items())))
        padded = np.zeros((len(selections), -(-selections.shape[1] // 64) * 64), np.bool_)
        padded[:, : selections.shape[1]] = selections
        new = np.packbits(padded, axis=1).view(np.uint64)
        known = self._asked.get(place, new[:0])
        rows = np.vstack([known, new])
        rows = rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])]  # asked again is not asked anew
        unions = [self._unions.get(place, new[:0, 0])]
        for i in range(len(known), len(rows)):
            disjoint = rows[:i][~np.any(rows[:i] & rows[i], axis=1)]
            unions.append(((disjoint | rows[i]) * MIXING[: rows.shape[1]]).sum(axis=1, dtype=np.uint64))
        self._unions[place] = np.sort(np.concatenate(unions))
        if np.any(self._unions[place][self.limit :] == self._unions[place][: -self.limit]):
            raise QuestionRefused(f"more than {self.limit} pairs of questions part one set of values in two")
        self._asked[place] = rows
        return self._inner.ask(attribute, selections, where)


#: For each attribute that a question names the values that it allows: {"age": [30, 31], "sex": ["F"]}.
Condition: TypeAlias = Mapping[str, Sequence[Any]]


class Oracle(Protocol):
    """A system under attack: the user's own, behind `--oracle`.

    It may also be an object with `ask_all(questions)`, a list of conditions → as many counts. `values`, a mapping from
    each attribute to all of its values, may be an attribute of it: then the command needs no --values.
    """

    def __call__(self, condition: dict[str, list[Any]], /) -> int | None:
        """How many people satisfy the condition, as the system publishes it: a whole number; 0 or None if suppressed.

        A person satisfies {"age": [30, 31], "sex": ["F"]} who has, of each attribute named, one of the values listed.
        """


def _written(condition: Condition) -> Any:
    return {name: [_plain(value) for value in values] for name, values in condition.items()}


def _handed(condition: Condition) -> dict[str, list[Any]]:
    return {name: list(values) for name, values in condition.items()}


def _read(answer: object) -> float | None:
    """A whole number; a suppressed count, None, is 0."""
    return 0.0 if answer is None else as_whole(answer)


def _plain(value: Any) -> Any:
    """A value as JSON has it. Raises `InvalidParameter` for other things than numbers, flags and texts."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, int | float | str):
        raise InvalidParameter(f"value {value!r} of type {type(value).__name__} must be a number, a flag or a text")
    if isinstance(plain, float) and not math.isfinite(plain):
        raise InvalidParameter(f"value {plain!r} must be finite: leave it out")
    return plain


FORM: Final[Form[Condition]] = Form(
    family="table_builder",
    answer="a whole number, or None for a suppressed count",
    written=_written,
    handed=_handed,
    read=_read,
)


def values_of(thing: object) -> dict[str, tuple[Any, ...]] | None:
    """What an oracle says of its attributes in `values`, or None where it says nothing.

    Raises `InvalidParameter` for something that is no mapping of names to values.
    """
    given = getattr(thing, "values", None)
    if given is None or callable(given):  # the method of a mapping
        return None
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameter(
            f"values of the oracle is {type(given).__name__}: give a mapping from attributes to values"
        )
    found = {}
    for name, values in given.items():
        if not isinstance(name, str) or isinstance(values, str) or not hasattr(values, "__iter__"):
            raise InvalidParameter(f"values of the oracle: {name!r} must be a name, with a list of values")
        found[name] = tuple(_plain(value) for value in values)
        if len(set(found[name])) != len(found[name]) or not found[name]:
            raise InvalidParameter(f"values of the oracle: {name!r} needs different values, at least one")
    return found


class AskedSystem(System):
    """The user's system as the attacks see it: selections of values become conditions.

    Parameters
    ----------
    asking
        What asks it, in the form `FORM`.
    values
        For each attribute all of its values.
    """

    def __init__(self, asking: Asking[Condition], values: Mapping[str, Sequence[Any]]) -> None:
        self._asking = asking
        self._values = {name: tuple(given) for name, given in values.items()}

    @property
    def asked(self) -> int:  # type: ignore[override]  # what asks counts
        """As in `System`."""
        return self._asking.asked

    @property
    def attributes(self) -> tuple[str, ...]:
        """As in `System`."""
        return tuple(self._values)

    def values(self, attribute: str) -> tuple[Any, ...]:
        """As in `System`."""
        if attribute not in self._values:
            raise InvalidParameter(f"there is no attribute {attribute!r}; the attributes are {', '.join(self._values)}")
        return self._values[attribute]

    def ask(self, attribute: str, selections: Flags, where: Where | None = None) -> Wholes:
        """As in `System`."""
        return self.ask_all([Block(attribute=attribute, selections=selections, where=where or {})])[0]

    def ask_all(self, blocks: Sequence[Block]) -> list[Wholes]:
        """As in `System`: one batch. An answer that is NaN was refused or did not come: it is `MISSING`."""
        ends = np.cumsum([len(block.selections) for block in blocks])
        if not len(ends) or not ends[-1]:
            return [np.zeros(0, np.int64) for _ in blocks]
        answers = self._asking.ask(_Questions(self, blocks, int(ends[-1])))
        came = ~np.isnan(answers)
        whole = np.where(came, answers, 0).astype(np.int64)
        return np.split(np.where(came, whole, MISSING), ends[:-1])


class _Questions(Sequence[Condition]):
    """The questions of some blocks, each made when it is asked: many of them need no memory."""

    def __init__(self, system: AskedSystem, blocks: Sequence[Block], size: int) -> None:
        self._system, self._blocks, self._size = system, blocks, size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Condition]:
        for block in self._blocks:
            known = self._system.values(block.attribute)
            fixed = {name: list(values) for name, values in block.where.items()}
            for row in block.selections:
                yield {**fixed, block.attribute: [known[i] for i in np.flatnonzero(row)]}

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place]
