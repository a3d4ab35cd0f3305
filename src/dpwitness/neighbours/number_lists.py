"""Relations between lists of numbers: answers to queries, counts of a histogram, and bits."""

import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import Field, dataclass, field, fields
from itertools import product
from typing import Any, ClassVar, Final

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Floats
from dpwitness.checks import brief, flag, in_memory
from dpwitness.checks import kind as check_kind
from dpwitness.codec import JsonFields
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import GREATEST_INT64, NOISE_MAGNITUDES, SPECIAL_NUMBERS, parts_of
from dpwitness.neighbours.inputs import Array, Data, as_finite_numbers
from dpwitness.neighbours.pair import Pair, alike, holds, make_pair
from dpwitness.neighbours.relation import Relation, written_by_fields


class NumberList(JsonFields, Relation):
    """A relation of lists of `length` numbers.

    `any_length`: whether the claim is for lists of any length; by default it is for lists of `length` numbers, or of
    the length of the given data, and not for shorter lists.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # all subclasses are dataclasses

    length: int
    any_length: bool

    def __post_init__(self) -> None:
        if isinstance(self.length, bool) or not (isinstance(self.length, int) and self.length >= 1):
            raise InvalidNeighbours(f"length={brief(self.length)} must be a whole number of at least 1")
        # Some 48 inputs are in memory at a time, 8 bytes a number: the inputs of twenty candidates, and their bases.
        in_memory("length", self.length, 8 * 48 * self.length, InvalidNeighbours)
        check_kind("noun", self.noun, str, "a text", InvalidNeighbours)
        flag("any_length", self.any_length, InvalidNeighbours)

    def __str__(self) -> str:
        """The call that makes this relation, without parameters at their defaults."""
        settings = [str(self.length)]
        for setting in fields(self)[1:]:
            value = getattr(self, setting.name)
            if setting.name != "noun" and value != setting.default:
                settings.append(f"{setting.name}={f'{value:g}' if type(value) in (int, float) else repr(value)}")
        return f"{self.kind}({', '.join(settings)})"

    def read(self, data: Data) -> Data:
        """Data in the form that the mechanism gets. Raises `InvalidNeighbours` for data that are not a list."""
        if data.ndim != 1 or data.size == 0:
            raise InvalidNeighbours(f"{self.kind}: give a list of at least one {self.noun}, not shape {data.shape}")
        return data

    @abstractmethod
    def adjacent(self, pair: Pair) -> bool:
        """Whether the claim calls two lists of one length and one kind of finite numbers adjacent."""

    @override
    def contains(self, pair: Pair, data: Data | None = None) -> bool:
        """Whether both inputs are adjacent lists of one length; `data` are compared after `read`."""
        if not alike(pair) or pair.data.ndim != 1 or not pair.data.size:
            return False
        if data is None:
            return (self.any_length or pair.data.size == self.length) and self.adjacent(pair)
        if not isinstance(data, np.ndarray) or data.shape != pair.data.shape:
            return False
        try:
            return holds(pair, self.read(data)) and self.adjacent(pair)
        except InvalidNeighbours:
            return False

    @override
    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Pairs with fewer numbers (if `any_length`), fewer differing numbers, or numbers nearer to zero or rounder."""
        if self.any_length:
            yield from filter(self.contains, _drop_coordinate(pair))
        yield from filter(self.contains, _drop_differing_coordinate(pair))
        yield from filter(self.contains, _nearer_to_zero(pair))

    @override
    def take(self, data: object) -> Data:
        return as_finite_numbers(data)


#: The largest excess of an answer's move over the sensitivity that counts as rounding, as a share of the sensitivity.
TOLERANCE: Final = 1e-9
#: The largest further excess that counts as rounding for large answers, whose doubles lie further apart, as a share of
#: the sensitivity; detecting this excess would need some 10¹² runs.
COARSE_TOLERANCE: Final = 1e-6


@written_by_fields
@dataclass(frozen=True, slots=True)
class Queries(NumberList):
    """The relation of answers to `length` queries, each of sensitivity `sensitivity`.

    `may_move`: "all" answers may differ on a neighbour, or only "one". `direction`: "any", or "up" if all answers move
    in the same direction (adding a person never lowers a count). `any_length`: as in `NumberList`.
    """

    kind: ClassVar[str] = "queries"

    length: int = 10
    sensitivity: float = 1.0
    may_move: str = "all"
    direction: str = "any"
    noun: str = "answer"
    any_length: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        NumberList.__post_init__(self)
        number = isinstance(self.sensitivity, int | float) and not isinstance(self.sensitivity, bool)
        if not (number and 0 < self.sensitivity <= sys.float_info.max):
            raise InvalidNeighbours(f"sensitivity={brief(self.sensitivity)} must be positive and finite")
        if not isinstance(self.may_move, str) or self.may_move not in ("all", "one"):
            raise InvalidNeighbours(f"may_move={brief(self.may_move)} must be 'all' or 'one'")
        if not isinstance(self.direction, str) or self.direction not in ("any", "up"):
            raise InvalidNeighbours(f"direction={brief(self.direction)} must be 'any' or 'up'")

    def moves(self, length: int) -> Iterator[tuple[str, Floats]]:
        """The moves of the answers between neighbours by name, in units of the sensitivity."""
        last, first, middle = np.zeros(length), np.zeros(length), np.zeros(length)
        last[-1], first[0], middle[length // 2] = 1, 1, 1
        ones = np.ones(length)
        half = np.where(np.arange(length) < length // 2, 1.0, -1.0)
        if self.may_move == "all" and length > 1:
            if self.direction == "any":
                yield "all up but the last", ones - 2 * last
                yield "half up, half down", half
                yield "all down but the last", 2 * last - ones
                yield "half down, half up", -half
                yield "first up, rest down", 2 * first - ones
                yield "first down, rest up", ones - 2 * first
            yield "all up", ones
            yield "all up, last stays", ones - last
            yield "first half up", (half + 1) / 2
        yield "first up", first
        if length > 1:
            yield "last up", last
        if length > 2:
            yield "middle up", middle

    @override
    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """The patterns of StatDP (Ding et al. 2018), and moves of one answer against all other answers.

        Without data the answers lie at `centre` and at ten noise scales from it. Raises `InvalidNeighbours` for data
        that are not a list of answers.
        """
        if data is not None:
            yield from self._moved(self.read(data), "the data")
            return
        anchor = self._resolved(float(np.floor(centre)))  # whole numbers read better in a witness
        yield from filter(self.adjacent, self._around(anchor, scale))  # rounding may move large numbers too far

    def _around(self, anchor: float, scale: float) -> Iterator[Pair]:
        """Pairs with all answers near `anchor`, then near values far from `anchor`."""
        if self.may_move == "all" and self.direction == "any" and self.length > 1:
            half = (np.arange(self.length) < self.length // 2) * self.sensitivity
            yield make_pair(anchor + half, anchor + self.sensitivity - half, "X shape")
        yield from self._moved(np.full(self.length, anchor), f"{anchor:g}")
        # Bases far from the centre, in case the mechanism compares the answers with another value.
        names = [name for name, _ in self.moves(self.length)][:2]
        for name, k in product(names, (-10, 10)):
            base = np.full(self.length, anchor + k * self._step(scale))
            yield from self._moved(base, f"{base[0]:g}", [name])

    def _resolved(self, centre: float) -> float:
        """The centre itself, or 0.0 if doubles of its size are too far apart for neighbours."""
        return centre if self.adjacent(_moved(np.array([centre]), np.array([self.sensitivity]), "")) else 0.0

    def _moved(self, base: Data, place: str, names: Sequence[str] | None = None) -> Iterator[Pair]:
        """The pairs of `base` and each of its moves, or each move in `names`; `place` describes `base`."""
        for name, move in self.moves(len(base)):
            if names is None or name in names:
                yield _moved(base, move * self.sensitivity, f"{name} around {place}")

    @override
    def unusual(self, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs of equal answers at 0.01 to 100 noise scales and at special numbers, then pairs of other shapes.

        In the last pairs one answer moves, the first answer lies apart from the other answers, or answers rise or fall
        evenly.
        """
        n, centre = self.length, self._resolved(centre)
        # Answers that move together behave unlike answers that move against each other.
        known = [name for name, _ in self.moves(n)]
        two = [name for name in ("half up, half down", "all up", "first half up", "first up") if name in known][:2]
        offsets = [sign * size * scale for size in NOISE_MAGNITUDES for sign in (1, -1)]
        around = [centre, centre - self.sensitivity, *(centre + offset for offset in offsets)]
        for value in map(float, dict.fromkeys([*around, *offsets, *SPECIAL_NUMBERS])):
            yield from self._moved(np.full(n, value), f"{value:g}", two if value >= centre else two[:1])
        if n == 1:
            return
        for place in _places(n):
            single = (np.arange(n) == place) * self.sensitivity
            yield _moved(np.full(n, centre), single, f"answer {place + 1} up around {centre:g}")
        for lead in [sign * size * scale for size in (1.0, 10.0, 100.0) for sign in (1, -1)]:
            ahead = centre + lead * (np.arange(n) == 0)
            yield from self._moved(ahead, f"{centre:g}, the first {lead:+g}", [two[0], "first up"])
            yield from self._moved(centre + lead * np.arange(n), f"{centre:g} in steps of {lead:g}", two[:1])

    @override
    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs that split the pair's moves elsewhere, or that shift all or half of its answers up or down."""
        step = self._step(scale)
        index = np.arange(len(pair.data))
        half = index < len(index) // 2
        move = pair.neighbour - pair.data
        lead = int(np.argmax(move != move[0])) if np.any(move != move[0]) else len(move)
        for cut in (lead - 1, lead + 1, lead + 3):
            if 0 < cut < len(index) and self.may_move == "all" and lead < len(index):
                split = np.where(index < cut, move[0], move[-1])
                if np.any(split):
                    yield _moved(pair.data, split, f"{pair.label}, split after {cut}")
        for shift, name in ((np.full(len(index), step), "shifted"), (step * half, "first half shifted")):
            for k in (-1, 1):
                label = f"{pair.label}, {name} by {k * step:g}"
                first, second = (_moved(side, k * shift, label).neighbour for side in pair.sides)
                yield Pair(first, second, label)

    def _step(self, scale: float) -> float:
        """The noise scale rounded to whole sensitivities, at least 1: round numbers read better in a witness."""
        return max(1.0, float(np.round(scale / self.sensitivity))) * self.sensitivity

    @override
    def read(self, data: Data) -> Data:
        """Answers as integers if they and the sensitivity, and so all neighbours, are whole numbers; else as floats."""
        whole = NumberList.read(self, data).dtype.kind in "iu" and float(self.sensitivity).is_integer()
        return data if whole else data.astype(np.float64)

    @override
    def adjacent(self, pair: Pair) -> bool:
        """Whether answers move by at most the sensitivity, as `may_move` and `direction` allow."""
        moved = int(np.count_nonzero(pair.data != pair.neighbour))
        if moved == 0 or (self.may_move == "one" and moved > 1):
            return False
        if self.direction == "up" and np.any(pair.data < pair.neighbour) and np.any(pair.data > pair.neighbour):
            return False
        allowed: Any = self.sensitivity * (1 + TOLERANCE)
        if pair.data.dtype.kind == "f":
            apart = np.spacing(np.maximum(np.abs(pair.data), np.abs(pair.neighbour)))
            allowed = allowed + np.minimum(apart, self.sensitivity * COARSE_TOLERANCE)
        return bool(np.all(_distances(pair) <= allowed))


def queries(
    length: int = 10,
    sensitivity: float = 1.0,
    may_move: str = "all",
    direction: str = "any",
    *,
    any_length: bool = False,
) -> Queries:
    """The relation of answers to `length` queries of a sensitivity; see `Queries`. Raises `InvalidNeighbours`."""
    return Queries(length, sensitivity, may_move, direction, any_length=any_length)


@written_by_fields
@dataclass(frozen=True, slots=True)
class Histogram(NumberList):
    """Counts of `length` cells; neighbours differ by one person in one cell. `any_length`: as in `NumberList`."""

    kind: ClassVar[str] = "histogram"

    length: int = 5
    noun: str = "cell"
    any_length: bool = field(default=False, kw_only=True)

    @override
    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs that differ in the first, last, middle, largest or smallest cell. Raises `InvalidNeighbours`."""
        usual = (np.zeros(self.length, np.int64), np.full(self.length, 10, np.int64))
        for base in usual if data is None else [self.read(data)]:
            cells = [0, int(base.argmax()), int(base.argmin()), len(base) - 1, len(base) // 2]
            for cell in dict.fromkeys(cells):
                for step, name in ((1, "one more"), (-1, "one fewer")):
                    if 0 <= int(base[cell]) + step <= GREATEST_INT64:
                        changed = base.copy()
                        changed[cell] += step
                        yield make_pair(base, changed, f"{name} in cell {cell + 1}")

    @override
    def unusual(self, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs with one person more in a cell; cells hold 0, 1, a multiple of the noise scale or a special number."""
        magnitudes = [round(size * scale) for size in NOISE_MAGNITUDES if size >= 1]
        counts = dict.fromkeys([1, *magnitudes, *(v for v in SPECIAL_NUMBERS if v > 0)])
        empty, first = np.zeros(self.length, np.int64), np.arange(self.length) == 0
        bases = [(empty, place, "all empty") for place in _places(self.length)]
        for count in counts:
            bases.append((empty + count, 0, f"all {count}"))
            if self.length > 1:
                bases += [(first * count, cell, f"the first {count}") for cell in (0, self.length - 1)]
                bases.append((~first * count, 0, f"all but it {count}"))
        for base, cell, rest in bases:
            more = (np.arange(self.length) == cell).astype(np.int64)
            yield _moved(base, more, f"one more in cell {cell + 1}, {rest}")

    @override
    def read(self, data: Data) -> Data:
        """Counts as integers, also from whole numbers that are written as floats."""
        whole = (NumberList.read(self, data) >= 0) & (data == np.floor(data))
        if data.dtype.kind == "f":
            whole &= data < float(GREATEST_INT64)  # this double is 2^63, one too many
        if not np.all(whole):
            raise InvalidNeighbours(f"a histogram holds whole counts of at least 0, not {data[~whole][0]:g}")
        return data.astype(np.int64)

    @override
    def adjacent(self, pair: Pair) -> bool:
        counts = pair.data.dtype.kind != "f" and all(np.all(side >= 0) for side in pair.sides)
        return counts and bool(_distances(pair).sum() == 1)


def histogram(length: int = 5, *, any_length: bool = False) -> Histogram:
    """A histogram of `length` cells; neighbours differ by one person in one cell. Raises `InvalidNeighbours`."""
    return Histogram(length, any_length=any_length)


@written_by_fields
@dataclass(frozen=True, slots=True)
class Bits(NumberList):
    """One bit of each of `length` people; neighbours differ in one bit. `any_length`: as in `NumberList`."""

    kind: ClassVar[str] = "bits"

    length: int = 10
    noun: str = "value"
    any_length: bool = field(default=False, kw_only=True)

    @override
    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs that differ in the first, last or middle bit. Raises `InvalidNeighbours` for data that are not bits."""
        usual = (np.zeros(self.length, np.int64), np.ones(self.length, np.int64), np.arange(self.length) % 2)
        for base in usual if data is None else [self.read(data)]:
            yield from _flipped(base, dict.fromkeys([0, len(base) - 1, len(base) // 2]))

    @override
    def unusual(self, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """Pairs with one of up to 24 bits flipped, of zeros, of ones, and of ones followed by zeros."""
        index = np.arange(self.length)
        for base in (0 * index, 0 * index + 1, (index < len(index) // 2).astype(np.int64)):
            yield from _flipped(base, _places(self.length))

    @override
    def read(self, data: Data) -> Data:
        """Bits as integers, also from floats."""
        if not _are_bits(NumberList.read(self, data)):
            raise InvalidNeighbours("bits are a list of zeros and ones")
        return data.astype(np.int64)

    @override
    def adjacent(self, pair: Pair) -> bool:
        flipped = int(np.count_nonzero(pair.data != pair.neighbour))
        return flipped == 1 and pair.data.dtype.kind != "f" and all(map(_are_bits, pair.sides))


def _places(n: int) -> list[int]:
    """The places of a list of length n, at most 24 of them, evenly spaced."""
    count = min(n, 24)
    return sorted({k * n // count for k in range(count)})


def _flipped(base: Data, places: Iterable[int]) -> Iterator[Pair]:
    """The pairs of `base` and `base` with one bit flipped, for each place."""
    for place in places:
        changed = base.copy()
        changed[place] = 1 - changed[place]
        yield make_pair(base, changed, f"bit {place + 1} flipped")


def _are_bits(data: Data) -> bool:
    return bool(np.all((data == 0) | (data == 1)))


def bits(length: int = 10, *, any_length: bool = False) -> Bits:
    """`length` bits; neighbours differ in one bit. See `Bits`. Raises `InvalidNeighbours`."""
    return Bits(length, any_length=any_length)


def _distances(pair: Pair) -> Floats:
    """The distances |D_i − D′_i| as floats; integers are subtracted without overflow or rounding."""
    high: Array = np.maximum(*pair.sides)
    low: Array = np.minimum(*pair.sides)
    if high.dtype.kind in "iu":
        # The true difference is below 2^64, and unsigned subtraction is exact modulo 2^64.
        return (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(high - low, np.float64)


def _moved(base: Data, move: Data, label: str) -> Pair:
    """The pair of `base` and `base + move`; integers stay integers, since their `move` is whole."""
    return make_pair(base, base + move.astype(base.dtype), label)


# The steps of shrinking below ignore adjacency: `NumberList.smaller` leaves out pairs that are not adjacent.


def _drop_coordinate(pair: Pair) -> Iterator[Pair]:
    """Pairs without half of the coordinates, a quarter, … a single coordinate."""
    for dropped in parts_of(range(pair.data.size)):
        keep = np.ones(pair.data.size, bool)
        keep[dropped] = False
        if np.any(pair.data[keep] != pair.neighbour[keep]):
            yield make_pair(pair.data[keep], pair.neighbour[keep], "shrunk")


def _drop_differing_coordinate(pair: Pair) -> Iterator[Pair]:
    """Pairs with fewer differing coordinates: without half of them, a quarter, … a single coordinate."""
    differing = np.flatnonzero(pair.data != pair.neighbour).tolist()
    for places in parts_of(differing):
        if len(places) < len(differing):
            changed = pair.neighbour.copy()
            changed[places] = pair.data[places]
            yield make_pair(pair.data, changed, "shrunk")


def _nearer_to_zero(pair: Pair) -> Iterator[Pair]:
    """Pairs of smaller or rounder numbers; differences between D and D′ stay, and integers stay integers."""
    base: Data = np.minimum(*pair.sides)
    shifts: list[Data] = [base, np.full_like(base, base.min() if base.min() > 0 else base.max())]
    shifts += [np.where(np.arange(base.size) == i, base, 0) for i in range(base.size if 1 < base.size <= 16 else 0)]
    half, whole = (np.round(values).astype(base.dtype) for values in (base / 2, base))
    shifts += [np.where(np.abs(base) >= 2, base - half, 0).astype(base.dtype), base - whole]
    for shift in shifts:
        shifted = make_pair(pair.data - shift, pair.neighbour - shift, "shrunk")
        if _length(shifted) < _length(pair):
            yield shifted


def _length(pair: Pair) -> tuple[float, int]:
    """The sum of the magnitudes of a pair's numbers, then the number of their characters; smaller is simpler."""
    digits = sum(len(f"{value:g}") for side in pair.sides for value in side)
    return float(sum(np.abs(side.astype(np.float64)).sum() for side in pair.sides)), digits
