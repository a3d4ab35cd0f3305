"""Domains of numbers: a range, its ends, and what lies outside where the mechanism promises to clip."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief, number
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.datasets.domain import NOT_IN_DOMAIN, plain, required

__all__ = ["Integers", "Numbers", "integers", "numbers"]

#: Magnitudes at which sums overflow, or all digits are lost.
HUGE: Final = 1e308
#: The smallest positive number, which is subnormal.
TINY: Final = 5e-324
#: The least and the greatest integer of 64 bits.
LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1
#: Whole numbers in a range of which each is tried.
EVERY: Final = 24
#: Where types of fewer bits end, whole numbers stop to be exact floats, and digits or codes of missing values do.
BORDERS: Final = (99, 999, 2**7, 2**8, 2**15, 2**16, 2**24, 2**31, 2**32, 2**53, 9, 9999)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Numbers from `low` to `high`.

    `clipped`: the mechanism promises to clip to that range itself, so that any finite number may come; `missing`: NaN
    and None may come, two different values where records are Python objects, both NaN in an array or a column of
    floats. A claim is broken by inputs of its domain only, so both are said by the user.
    """

    low: float
    high: float
    clipped: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        for name, value in (("low", self.low), ("high", self.high)):
            if not isinstance(value, float) or not math.isfinite(value):
                raise InvalidNeighbours(f"{name}={brief(value)} must be a finite number")
        if not self.low < self.high:
            raise InvalidNeighbours(f"numbers from low={self.low!r} to high={self.high!r}: low must be below high")
        _check_flags(self.clipped, self.missing)

    def __str__(self) -> str:
        """As in a call."""
        return f"numbers({self.low:g}, {self.high:g}{_flags(self.clipped, self.missing)})"

    @property
    def dtype(self) -> str:
        """Doubles."""
        return "float64"

    def ends(self) -> tuple[float, ...]:
        """Both ends, zero; round numbers, just inside the ends, the tiniest number, by turns."""
        return _ends_of_numbers(self.low, self.high)

    def inside(self, end: float) -> float:
        """A hundredth of the range away from it: not so near that a sum of squares vanishes."""
        hundredth = self.high / 100 - self.low / 100
        return end + hundredth if end == self.low else end - hundredth

    def odd(self) -> tuple[float | None, ...]:
        """NaN, None and what lies outside, near and far, where these may come."""
        span = min(self.high - self.low, HUGE)
        outside = [HUGE, self.low - span, self.high + span, -HUGE, TINY, -TINY] if self.clipped else []
        missing = [math.nan, None] if self.missing else []
        return (*missing, *(v for v in outside if not self.low <= v <= self.high))

    def middle(self) -> float:
        """Half way; halved first, so that the sum does not overflow."""
        return self.low / 2 + self.high / 2

    def draw(self, rng: np.random.Generator) -> float:
        """Uniform in the range, with two decimal digits where these are enough."""
        value = self.low + float(rng.random()) * min(self.high - self.low, HUGE)
        return self._inside(round(value, 2)) if self.high - self.low > 1 else self._inside(value)

    def near(self, value: float | None) -> Iterator[float | None]:
        """Half way to either end and to the middle, and ends."""
        for other in (self.middle(), self.low, self.high):
            if value is not None and math.isfinite(value):
                yield value / 2 + other / 2
        yield from (self.high, self.low, *self.odd())

    def simpler(self, value: float | None) -> Iterator[float]:
        """Zero, the nearest end, half, and fewer digits."""
        if value is None or not math.isfinite(value):
            yield self.high
            return
        for other in (0.0, *_rounder(value), value / 2, self.low, self.high):
            if self.read(other) is not NOT_IN_DOMAIN and _length(other) < _length(value):
                yield other

    def read(self, value: Any) -> Any:
        """A float, NaN or None."""
        value = plain(value)
        if value is None:
            return None if self.missing else NOT_IN_DOMAIN
        if isinstance(value, bool) or not isinstance(value, int | float):
            return NOT_IN_DOMAIN
        try:
            found = float(value)
        except OverflowError:
            return NOT_IN_DOMAIN
        if math.isnan(found):
            return math.nan if self.missing else NOT_IN_DOMAIN
        inside = self.low <= found <= self.high or (self.clipped and math.isfinite(found))
        return found if inside else NOT_IN_DOMAIN

    def to_json(self) -> dict[str, Any]:
        """As in `Domain`."""
        return {"numbers": [self.low, self.high], "clipped": self.clipped, "missing": self.missing}

    def _inside(self, value: float) -> float:
        return min(max(value, self.low), self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Integers:
    """Whole numbers from `low` to `high`; `clipped` and `missing` as in `Numbers`, a missing one is None."""

    low: int
    high: int
    clipped: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        for name, value in (("low", self.low), ("high", self.high)):
            if isinstance(value, bool) or not isinstance(value, int) or not LEAST <= value <= MOST:
                raise InvalidNeighbours(f"{name}={brief(value)} must be a whole number of 64 bits")
        if not self.low < self.high:
            raise InvalidNeighbours(f"integers from low={self.low} to high={self.high}: low must be below high")
        _check_flags(self.clipped, self.missing)

    def __str__(self) -> str:
        """As in a call."""
        return f"integers({self.low}, {self.high}{_flags(self.clipped, self.missing)})"

    @property
    def dtype(self) -> str:
        """Integers of 64 bits; doubles where some may be missing."""
        return "float64" if self.missing else "int64"

    def ends(self) -> tuple[int, ...]:
        """Both ends, zero; round numbers and just inside the ends, by turns; all numbers of a small range."""
        return _ends_of_integers(self.low, self.high)

    def inside(self, end: int) -> int:
        """A hundredth of the range away from it, at least 1 where that is not the other end."""
        step = max((self.high - self.low) // 100, 1 if self.high - self.low > 1 else 0)
        return end + step if end == self.low else end - step

    def odd(self) -> tuple[int | None, ...]:
        """None and what lies outside, near and far, where these may come."""
        span = self.high - self.low
        outside = [MOST, self.low - span, self.high + span, LEAST] if self.clipped else []
        inside = [v for v in outside if self.read(v) is not NOT_IN_DOMAIN and not self.low <= v <= self.high]
        return (*([None] if self.missing else []), *dict.fromkeys(inside))

    def middle(self) -> int:
        """Half way, rounded down."""
        return (self.low + self.high) // 2

    def draw(self, rng: np.random.Generator) -> int:
        """Uniform in the range."""
        return int(rng.integers(self.low, self.high, endpoint=True))

    def near(self, value: int | None) -> Iterator[int | None]:
        """Half way to either end, the next ones, and ends."""
        if value is not None:
            steps = ((value + self.low) // 2, (value + self.high) // 2, value + 1, value - 1)
            yield from (step for step in steps if self.read(step) is not NOT_IN_DOMAIN)
        yield from (self.high, self.low, *self.odd())

    def simpler(self, value: int | None) -> Iterator[int]:
        """Zero, half, fewer digits, the ends."""
        if value is None:
            yield self.high
            return
        digits = [round(value, -places) for places in range(len(str(abs(value))) - 1, 0, -1)]
        for other in (0, *digits, int(value / 2), self.low, self.high):
            if self.read(other) is not NOT_IN_DOMAIN and _length(other) < _length(value):
                yield other

    def read(self, value: Any) -> Any:
        """An int; NaN is None, and a float is whole where a column of floats held it."""
        value = plain(value)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None if self.missing else NOT_IN_DOMAIN
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return NOT_IN_DOMAIN
        inside = self.low <= value <= self.high or (self.clipped and LEAST <= value <= MOST)
        return value if inside else NOT_IN_DOMAIN

    def to_json(self) -> dict[str, Any]:
        """As in `Domain`."""
        return {"integers": [self.low, self.high], "clipped": self.clipped, "missing": self.missing}


def numbers(low: float, high: float, *, clipped: bool = False, missing: bool = False) -> Numbers:
    """Numbers from `low` to `high`, both included; see `Numbers`. Raises `InvalidNeighbours`."""
    return Numbers(low=_end("low", low), high=_end("high", high), clipped=clipped, missing=missing)


def integers(low: int, high: int, *, clipped: bool = False, missing: bool = False) -> Integers:
    """Whole numbers from `low` to `high`, both included; see `Integers`. Raises `InvalidNeighbours`."""
    return Integers(low=plain(low), high=plain(high), clipped=clipped, missing=missing)


@lru_cache(1 << 14)  # asked for with every record that is made
def _ends_of_numbers(low: float, high: float) -> tuple[float, ...]:
    inside = [math.nextafter(high, low), math.nextafter(low, high), TINY]
    found = (high, low, 0.0, *by_turns(list(map(float, round_numbers(low, high))), inside))
    return tuple(dict.fromkeys(v for v in found if low <= v <= high))


@lru_cache(1 << 14)
def _ends_of_integers(low: int, high: int) -> tuple[int, ...]:
    every = range(low, high + 1) if high - low < EVERY else ()
    found = (high, low, 0, *by_turns(round_numbers(low, high), [high - 1, low + 1]), *every)
    return tuple(dict.fromkeys(v for v in found if low <= v <= high))


def by_turns(first: Sequence[float], second: Sequence[float]) -> Iterator[Any]:
    """One of each, as long as there are two; then the rest."""
    for pair in zip_longest(first, second):
        yield from (value for value in pair if value is not None)


def round_numbers(low: float, high: float) -> list[int]:
    """Powers of two and ten inside a range, their negatives, and `BORDERS`: where code puts its limits.

    First those in the outer half of either side, then borders, then all others, each from the greatest on.
    """
    powers = {base**k for base in (2, 10) for k in range(64)}
    signed = [sign * v for v in sorted(powers, reverse=True) for sign in (1, -1)]
    outer = [v for v in signed if v > high / 2 or v < low / 2]
    borders = [sign * v for v in BORDERS for sign in (1, -1)]
    return list(dict.fromkeys(v for v in (*outer, *borders, *signed) if low < v < high))


def _end(name: str, value: Any) -> Any:
    """An end of a range, a whole number as a float. Raises `InvalidNeighbours` for one that is too large."""
    value = plain(value)
    return number(name, value, InvalidNeighbours) if isinstance(value, int) and not isinstance(value, bool) else value


def _check_flags(clipped: Any, missing: Any) -> None:
    required("clipped", clipped, bool)
    required("missing", missing, bool)


def _flags(clipped: bool, missing: bool) -> str:
    return f"{', clipped=True' if clipped else ''}{', missing=True' if missing else ''}"


def _rounder(value: float) -> Iterator[float]:
    """The value with one significant digit, two, three."""
    for digits in (1, 2, 3):
        yield float(f"{value:.{digits}g}")


def _length(value: float) -> tuple[int, float]:
    """How long a number is to write, then how large it is."""
    return len(f"{value:.17g}".rstrip("0").lstrip("-")), abs(value)
