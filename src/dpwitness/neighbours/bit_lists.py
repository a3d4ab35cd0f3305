"""One bit a person, one of them flipped."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.inputs import Data, as_finite_numbers
from dpwitness.neighbours.pair import (
    Pair,
    alike,
    check_flag,
    check_keys,
    check_length,
    check_noun,
    holds,
    make_pair,
    same_shape,
)
from dpwitness.neighbours.steps import drop_coordinate, nearer_to_zero

__all__ = ["Bits", "bits"]

_FIELDS: Final = ("length", "noun", "any_length")


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
