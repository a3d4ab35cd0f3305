"""Counts a cell, one person more or fewer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

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
from dpwitness.neighbours.steps import drop_coordinate, nearer_to_zero

__all__ = ["Histogram", "histogram"]

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
