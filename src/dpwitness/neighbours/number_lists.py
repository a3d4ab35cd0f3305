"""Answers to queries of a given sensitivity: what threshold mechanisms and noise addition take.

Counts a cell, one person more or fewer.

One bit a person, one of them flipped.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.inputs import LARGEST, Data, as_finite_numbers
from dpwitness.neighbours.pair import (
    Pair,
    alike,
    check_flag,
    check_keys,
    check_length,
    check_noun,
    distances,
    holds,
    make_pair,
    same_shape,
)
from dpwitness.neighbours.relation import drop_coordinate, drop_differing_coordinate, nearer_to_zero

_QUERIES_FIELDS: Final = ("length", "sensitivity", "may_move", "direction", "noun", "any_length")
#: Relative to the sensitivity: how far answers may lie apart beyond it, by rounding alone.
TOLERANCE: Final = 1e-9
#: The same where the answers are so large that doubles of their size are further apart. A pair so much further apart
#: than the claim allows would take some 10¹² runs to be told from one that is not.
COARSE_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Queries:
    """Answers to `length` queries, each of sensitivity `sensitivity`.

    `may_move`: on a neighbour "all" answers may move, or only "one". `direction`: "any", or "up" if the answers can
    only move together (adding a person never lowers a count). `any_length`: whether the claim holds for any number of
    queries; by default it is about `length` queries, or as many as the given data hold, and says nothing of fewer.
    """

    length: int = 10
    sensitivity: float = 1.0
    may_move: str = "all"
    direction: str = "any"
    noun: str = "answer"
    any_length: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_length(self.length)
        number = isinstance(self.sensitivity, int | float) and not isinstance(self.sensitivity, bool)
        if not (number and 0 < self.sensitivity <= sys.float_info.max):
            raise InvalidNeighbours(f"sensitivity={brief(self.sensitivity)} must be positive and finite")
        if not isinstance(self.may_move, str) or self.may_move not in ("all", "one"):
            raise InvalidNeighbours(f"may_move={brief(self.may_move)} must be 'all' or 'one'")
        if not isinstance(self.direction, str) or self.direction not in ("any", "up"):
            raise InvalidNeighbours(f"direction={brief(self.direction)} must be 'any' or 'up'")
        check_noun(self.noun)
        check_flag("any_length", self.any_length)

    def __str__(self) -> str:
        """As in a call, without what is as usual."""
        parts = [str(self.length)]
        parts += [f"sensitivity={self.sensitivity:g}"] * (self.sensitivity != 1)
        parts += [f"may_move={self.may_move!r}"] * (self.may_move != "all")
        parts += [f"direction={self.direction!r}"] * (self.direction != "any")
        parts += ["any_length=True"] * self.any_length
        return f"queries({', '.join(parts)})"

    def moves(self, length: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """How the answers may move, in units of the sensitivity."""
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

    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """The patterns of StatDP (Ding et al. 2018) and those that move one answer against all others.

        Without data they stand around `centre`, at a few distances of the order of the noise. Raises
        `InvalidNeighbours` for data that are no list of answers.
        """
        if data is not None:
            bases = [("the data", self._answers(data))]
        else:
            half = (np.arange(self.length) < self.length // 2) * self.sensitivity
            anchor = float(np.floor(centre))  # whole numbers read better in a witness
            bases = [(f"{anchor:g}", np.full(self.length, anchor))]
            if self.may_move == "all" and self.direction == "any" and self.length > 1:
                yield make_pair(anchor + half, anchor + self.sensitivity - half, "X shape")
        for place, base in bases:
            for name, move in self.moves(len(base)):
                yield _moved(base, move * self.sensitivity, f"{name} around {place}")
        if data is None:  # far from the centre too, in case the mechanism compares with something else
            step = _step(scale, self.sensitivity)
            for name, move in list(self.moves(self.length))[:2]:
                for k in (-10, 10):
                    base = np.full(self.length, anchor + k * step)
                    yield _moved(base, move * self.sensitivity, f"{name} around {anchor + k * step:g}")

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """The same moves split elsewhere, higher and lower, and with the first half of the answers higher or lower."""
        step = _step(scale, self.sensitivity)
        index = np.arange(len(pair.data))
        half = index < len(index) // 2
        move = pair.neighbour - pair.data
        lead = int(np.argmax(move != move[0])) if np.any(move != move[0]) else len(move)
        for cut in (lead - 1, lead + 1, lead + 3):
            if 0 < cut < len(index) and self.may_move == "all" and lead < len(index):
                moved = np.where(index < cut, move[0], move[-1])
                if np.any(moved):
                    yield _moved(pair.data, moved, f"{pair.label}, split after {cut}")
        for shift, name in ((np.full(len(index), step), "shifted"), (step * half, "first half shifted")):
            for k in (-1, 1):
                label = f"{pair.label}, {name} by {k * step:g}"
                first, second = (_moved(side, k * shift, label).neighbour for side in pair.sides)
                yield Pair(first, second, label)

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Fewer answers where any number of them will do, fewer that differ, and numbers nearer to zero or rounder."""
        if self.any_length:
            yield from filter(self.contains, drop_coordinate(pair))
        if self.may_move == "all":
            yield from filter(self.contains, drop_differing_coordinate(pair))
        yield from filter(self.contains, nearer_to_zero(pair))

    def take(self, data: object) -> Data:
        """As in `Relation`: numbers only."""
        return as_finite_numbers(data)

    def contains(self, pair: Pair, data: Data | None = None) -> bool:
        """Whether no answer moves by more than the sensitivity, and only as `may_move` and `direction` allow.

        `data` count as they are given to the mechanism: whole numbers as such where the sensitivity is whole, too.
        """
        if not alike(pair) or pair.data.ndim != 1 or pair.data.size == 0:
            return False
        if data is not None:
            if not same_shape(data, pair) or not holds(pair, self._answers(data)):
                return False
        elif not self.any_length and pair.data.size != self.length:
            return False
        moved = int(np.count_nonzero(pair.data != pair.neighbour))
        if moved == 0 or (self.may_move == "one" and moved > 1):
            return False
        if self.direction == "up" and np.any(pair.data < pair.neighbour) and np.any(pair.data > pair.neighbour):
            return False
        allowed: Any = self.sensitivity * (1 + TOLERANCE)
        if pair.data.dtype.kind == "f":
            apart = np.spacing(np.maximum(np.abs(pair.data), np.abs(pair.neighbour)))
            allowed = allowed + np.minimum(apart, self.sensitivity * COARSE_TOLERANCE)
        return bool(np.all(distances(pair) <= allowed))

    def to_json(self) -> dict[str, Any]:
        """As in `Relation`."""
        values = {name: getattr(self, name) for name in _QUERIES_FIELDS}
        return {"kind": "queries", **values, "sensitivity": float(self.sensitivity)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Queries":
        """Build it from what `to_json` wrote, its kind left out. Raises `InvalidNeighbours`."""
        check_keys("queries", value, _QUERIES_FIELDS)
        return cls(**value)

    def _answers(self, data: Data) -> Data:
        """Data as the mechanism gets them: integers only where all neighbours are whole numbers, too."""
        if data.ndim != 1 or data.size == 0:
            raise InvalidNeighbours(f"queries need a list of at least one answer, not shape {data.shape}")
        whole = data.dtype.kind in "iu" and float(self.sensitivity).is_integer()
        return data if whole else data.astype(np.float64)


def _step(scale: float, sensitivity: float) -> float:
    """A shift of about the noise, in whole sensitivities: round numbers read better in a witness."""
    return max(1.0, float(np.round(scale / sensitivity))) * sensitivity


def _moved(base: Data, move: Data, label: str) -> Pair:
    """An input and the one that lies `move` from it; integers stay integers, since `move` is whole then."""
    return make_pair(base, base + move.astype(base.dtype), label)


def queries(
    length: int = 10,
    sensitivity: float = 1.0,
    may_move: str = "all",
    direction: str = "any",
    *,
    any_length: bool = False,
) -> Queries:
    """Answers to `length` queries of the given sensitivity; see `Queries`. Raises `InvalidNeighbours`."""
    return Queries(length, sensitivity, may_move, direction, any_length=any_length)


_FIELDS: Final = ("length", "noun", "any_length")


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts per cell; neighbours differ by one person in one cell.

    `any_length`: whether the claim holds for any number of cells; by default it is about `length` cells, or as many as
    the given data hold.
    """

    length: int = 5
    noun: str = "cell"
    any_length: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_length(self.length)
        check_noun(self.noun)
        check_flag("any_length", self.any_length)

    def __str__(self) -> str:
        """As in a call, without what is as usual."""
        return f"histogram({self.length}{', any_length=True' if self.any_length else ''})"

    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """One person more, or fewer, in the first, last, largest, smallest and middle cell.

        Raises `InvalidNeighbours` for data that are no list of whole counts.
        """
        if data is None:
            bases = [np.zeros(self.length, np.int64), np.full(self.length, 10, np.int64)]
        else:
            bases = [_counts(data)]
        for base in bases:
            cells = [0, int(base.argmax()), int(base.argmin()), len(base) - 1, len(base) // 2]
            for cell in dict.fromkeys(cells):
                for step in (1, -1):
                    if 0 <= int(base[cell]) + step <= LARGEST:
                        changed = base.copy()
                        changed[cell] += step
                        sign = "one more" if step == 1 else "one fewer"
                        yield make_pair(base, changed, f"{sign} in cell {cell + 1}")

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """None: the candidates are all there is to try."""
        return iter(())

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Fewer cells where any number of them will do, and smaller counts."""
        if self.any_length:
            yield from filter(self.contains, drop_coordinate(pair))
        yield from filter(self.contains, nearer_to_zero(pair))

    def take(self, data: object) -> Data:
        """As in `Relation`: numbers only."""
        return as_finite_numbers(data)

    def contains(self, pair: Pair, data: Data | None = None) -> bool:
        """Whether both are whole counts of at least 0 that differ by one in one cell.

        `data` that are whole numbers written as floats count as integers, as they are given to the mechanism.
        """
        if not alike(pair) or pair.data.ndim != 1 or pair.data.dtype.kind == "f":
            return False
        if data is not None:
            if not same_shape(data, pair) or not _are_counts(data) or not holds(pair, _counts(data)):
                return False
        elif not self.any_length and pair.data.size != self.length:
            return False
        if np.any(pair.data < 0) or np.any(pair.neighbour < 0):
            return False
        return bool(distances(pair).sum() == 1)

    def to_json(self) -> dict[str, Any]:
        """As in `Relation`."""
        return {"kind": "histogram", **{name: getattr(self, name) for name in _FIELDS}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Histogram":
        """Build it from what `to_json` wrote, its kind left out. Raises `InvalidNeighbours`."""
        check_keys("histogram", value, _FIELDS)
        return cls(**value)


def _are_counts(data: Data) -> bool:
    """Whether these are whole numbers from 0 to the largest that an integer holds."""
    if data.dtype.kind == "f" and np.any(data >= float(LARGEST)):  # as a double that is 2^63, one too many
        return False
    return bool(np.all((data >= 0) & (data == np.floor(data))))


def _counts(data: Data) -> Data:
    """Data as integers. Raises `InvalidNeighbours` for what is no histogram."""
    if data.ndim != 1 or data.size == 0:
        raise InvalidNeighbours(f"a histogram is a list of at least one count, not of shape {data.shape}")
    if not _are_counts(data):
        bad = next(value for value in data if not _are_counts(np.atleast_1d(value)))
        raise InvalidNeighbours(f"a histogram holds whole counts of at least 0, not {bad:g}")
    return data.astype(np.int64)


def histogram(length: int = 5, *, any_length: bool = False) -> Histogram:
    """A histogram of `length` cells, one person more or fewer in one cell; see `Histogram`.

    Raises `InvalidNeighbours`.
    """
    return Histogram(length, any_length=any_length)


@dataclass(frozen=True, slots=True)
class Bits:
    """One bit a person; neighbours differ in one bit.

    `any_length`: whether the claim holds for any number of people; by default it is about `length` of them, or as many
    as the given data hold.
    """

    length: int = 10
    noun: str = "value"
    any_length: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_length(self.length)
        check_noun(self.noun)
        check_flag("any_length", self.any_length)

    def __str__(self) -> str:
        """As in a call, without what is as usual."""
        return f"bits({self.length}{', any_length=True' if self.any_length else ''})"

    def candidates(self, data: Data | None = None, *, centre: float = 0.0, scale: float = 1.0) -> Iterator[Pair]:
        """The first, last and middle bit flipped in all zeros, all ones and alternating bits, or in the data.

        Raises `InvalidNeighbours` for data that are no bits.
        """
        if data is None:
            index = np.arange(self.length)
            bases = [np.zeros(self.length, np.int64), np.ones(self.length, np.int64), index % 2]
        else:
            if data.ndim != 1 or data.size == 0 or not _are_bits(data):
                raise InvalidNeighbours("bits are a list of zeros and ones")
            bases = [data.astype(np.int64)]
        for base in bases:
            for place in dict.fromkeys([0, len(base) - 1, len(base) // 2]):
                changed = base.copy()
                changed[place] = 1 - changed[place]
                yield make_pair(base, changed, f"bit {place + 1} flipped")

    def variations(self, pair: Pair, *, scale: float = 1.0) -> Iterator[Pair]:
        """None: the candidates are all there is to try."""
        return iter(())

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Fewer people where any number of them will do, and more zeros."""
        if self.any_length:
            yield from filter(self.contains, drop_coordinate(pair))
        yield from filter(self.contains, nearer_to_zero(pair))

    def take(self, data: object) -> Data:
        """As in `Relation`: numbers only."""
        return as_finite_numbers(data)

    def contains(self, pair: Pair, data: Data | None = None) -> bool:
        """Whether both are lists of integers 0 and 1 that differ in one place.

        `data` that are bits written as floats count as integers, as they are given to the mechanism.
        """
        if not alike(pair) or pair.data.ndim != 1 or pair.data.dtype.kind == "f":
            return False
        if data is not None:
            if not same_shape(data, pair) or not _are_bits(data) or not holds(pair, data.astype(np.int64)):
                return False
        elif not self.any_length and pair.data.size != self.length:
            return False
        flipped = int(np.count_nonzero(pair.data != pair.neighbour))
        return flipped == 1 and _are_bits(pair.data) and _are_bits(pair.neighbour)

    def to_json(self) -> dict[str, Any]:
        """As in `Relation`."""
        return {"kind": "bits", **{name: getattr(self, name) for name in _FIELDS}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Bits":
        """Build it from what `to_json` wrote, its kind left out. Raises `InvalidNeighbours`."""
        check_keys("bits", value, _FIELDS)
        return cls(**value)


def _are_bits(data: Data) -> bool:
    return bool(np.all((data == 0) | (data == 1)))


def bits(length: int = 10, *, any_length: bool = False) -> Bits:
    """`length` bits, one of them flipped; see `Bits`. Raises `InvalidNeighbours`."""
    return Bits(length, any_length=any_length)
