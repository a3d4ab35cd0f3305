"""Domains: the values that one field of a record may take, among them values that often break code."""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count, zip_longest
from typing import Any, Final, TypeVar

import numpy as np
from typing_extensions import override

from dpwitness import checks
from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours

T = TypeVar("T")
#: A value of a field: a number, a text, a flag, None, or any other object.
Value = Any


#: The mark that `Domain.read` returns for a value outside the domain; None may be a value.
NOT_IN_DOMAIN: Final = object()


class Domain(ABC):
    """The values of one field. `read` brings each value to its one internal form."""

    @property
    def dtype(self) -> str:
        """The NumPy type of a column of the domain; "object" where NumPy has no narrower type."""
        return "object"

    @abstractmethod
    def ends(self) -> tuple[Value, ...]:
        """Values to try, the most promising first; the first two are far apart."""

    def inside(self, end: Value) -> Value:
        """A value near an end of the domain; by default the end itself."""
        return end

    def odd(self) -> tuple[Value, ...]:
        """Values that code often mishandles: missing, outside a range, a new category, or an empty text."""
        return ()

    def special(self, scale: float) -> tuple[Value, ...]:
        """Values that code may treat as special, each to be tried once; by default no values.

        `scale`: the scale of the noise that the claim asks for, in the unit of the field.
        """
        return ()

    @abstractmethod
    def middle(self) -> Value:
        """An ordinary value of the domain."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Value:
        """A value as real data may hold it."""

    def near(self, value: Value) -> Iterator[Value]:
        """Other values to try in the place of a value that showed a large difference."""
        yield from (*self.odd(), *self.ends())

    @abstractmethod
    def simpler(self, value: Value) -> Iterator[Value]:
        """Values that are shorter to write or nearer to zero, the largest steps first."""

    @abstractmethod
    def read(self, value: Value) -> Value:
        """The value in its internal form, a NumPy scalar unwrapped; `NOT_IN_DOMAIN` for a value outside the domain."""

    def read_all(self, values: Sequence[Value]) -> list[Value] | None:
        """The values of a column in their internal form; None if a value is outside the domain."""
        read = list(map(self.read, values))
        return None if any(value is NOT_IN_DOMAIN for value in read) else read

    def holds(self, value: Value) -> bool:
        """Whether a value belongs to the domain."""
        return self.read(value) is not NOT_IN_DOMAIN

    def samples(self) -> list[Value]:
        """Values of every kind that the domain holds: all listed values, else the values to try."""
        return [*self.ends(), *self.odd(), self.middle()]

    def to_json(self) -> dict[str, object] | None:
        """The domain as JSON values; None for a domain without a form in JSON."""
        return None


def plain(value: Value) -> Value:
    """A NumPy scalar as a Python value, pandas' marks of a missing value as None; any other object unchanged."""
    if isinstance(value, np.generic):
        return value.item()
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def is_missing(value: object) -> bool:
    """Whether a value is missing: None, NaN, or the mark of pandas or NumPy for a missing value."""
    value = plain(value)
    try:
        return value is None or (value != value) is True  # of an array the comparison is an array
    except ArithmeticError:  # a signalling NaN
        return False


def key_of(value: object) -> Hashable:
    """The key of a value of a field. Equal values of one type have equal keys, NaN too."""
    if isinstance(value, float) and value != value:
        return "NaN"
    try:
        hash(value)
    except TypeError:
        return type(value), repr(value)
    return type(value), value


def _check_flags(**flags: object) -> None:
    for name, value in flags.items():
        checks.kind(name, value, bool, "a bool", InvalidNeighbours)


def _call_text(name: str, *arguments: str, **flags: bool) -> str:
    """The call that makes a domain, as text, without flags that are False."""
    return f"{name}({', '.join([*arguments, *(f'{flag}=True' for flag, is_set in flags.items() if is_set)])})"


#: The largest number of values of a domain whose values are all tried as special values.
SMALL_DOMAIN_VALUES: Final = 128
#: The largest number of listed values that are ends of a domain: more ends would delay the values of other fields.
LISTED_ENDS: Final = 24


class Listed(Domain):
    """A domain of listed values, all different; the first value is an ordinary value."""

    values: tuple[Value, ...]
    _places: dict[Hashable, int]

    @property
    @override
    def dtype(self) -> str:
        values = (*self.values, *self.odd())
        kinds = set(map(type, values))
        fits = kinds != {int} or (min(values) >= LEAST_INT64 and max(values) <= GREATEST_INT64)
        dtypes = {bool: "bool", int: "int64", float: "float64"}
        return dtypes.get(kinds.pop(), "object") if len(kinds) == 1 and fits else "object"

    @override
    def ends(self) -> tuple[Value, ...]:
        """The last and the first value, then the other values; a single value is followed by odd values or itself."""
        first, *others = self.values
        return (others[-1], first, *others[:-1])[:LISTED_ENDS] if others else (first, *(self.odd() or (first,)))

    @override
    def special(self, scale: float) -> tuple[Value, ...]:
        return self.values[:SMALL_DOMAIN_VALUES]

    @override
    def middle(self) -> Value:
        return self.values[0]

    @override
    def draw(self, rng: np.random.Generator) -> Value:
        return self.values[int(rng.integers(len(self.values)))]

    @override
    def simpler(self, value: Value) -> Iterator[Value]:
        yield from self.values[: min(self._places.get(key_of(value), LISTED_ENDS), LISTED_ENDS)]

    @override
    def samples(self) -> list[Value]:
        return [*self.values, *Domain.samples(self)]


def _places_of(values: Sequence[Value]) -> dict[Hashable, int]:
    """The place of each value, by the value's key; of equal values the place of the first value."""
    return {key_of(value): place for place, value in reversed(list(enumerate(values)))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Categories(Listed):
    """The domain of listed values of one type: texts, whole numbers, numbers or flags.

    `other`: unlisted values of the type are allowed too; `missing`: None is allowed.
    """

    values: tuple[Value, ...]
    other: bool = False
    missing: bool = False
    _places: dict[Hashable, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_flags(other=self.other, missing=self.missing)
        if len({type(value) for value in self.values}) != 1 or type(self.values[0]) not in (str, bool, int, float):
            raise InvalidNeighbours(
                f"categories {brief(self.values)} must be texts, whole numbers, numbers or flags, all of one type, "
                "each given by itself: categories('red', 'blue')"
            )
        places = _places_of(self.values)
        if len(places) != len(self.values) or "NaN" in places:
            raise InvalidNeighbours(f"categories {brief(self.values)} must differ from each other, NaN left out")
        if self.other and type(self.values[0]) is bool:
            raise InvalidNeighbours("categories of flags have no other value: leave out other=True")
        object.__setattr__(self, "_places", places)

    def __str__(self) -> str:
        shown = [repr(value) for value in self.values[:6]]
        more = [f"… {len(self.values) - len(shown)} more"] if len(self.values) > len(shown) else []
        return _call_text("categories", *shown, *more, other=self.other, missing=self.missing)

    @override
    def to_json(self) -> dict[str, object]:
        return {"categories": list(self.values), "other": self.other, "missing": self.missing}

    @override
    def odd(self) -> tuple[Value, ...]:
        return (*([self._new()] if self.other else []), *([None] if self.missing else []))

    def _new(self) -> Value:
        if type(self.values[0]) is not str:
            return max(self.values) + 1
        return next(new for k in count() if (new := "other" + "_" * k) not in self.values)

    @override
    def read(self, value: Value) -> Value:
        """The value itself; NaN is None, since a column of a DataFrame may hold NaN for None."""
        value = plain(value)
        if is_missing(value):
            return None if self.missing else NOT_IN_DOMAIN
        kind = type(self.values[0])
        if kind is float and type(value) is int:
            try:
                value = float(value)
            except OverflowError:  # an integer beyond doubles
                return NOT_IN_DOMAIN
        if kind is int and type(value) is float and value.is_integer():
            value = int(value)  # a column of floats may hold whole numbers
        belongs = type(value) is kind and (self.other or key_of(value) in self._places)
        return value if belongs else NOT_IN_DOMAIN

    @override
    def read_all(self, values: Sequence[Value]) -> list[Value] | None:
        kind = type(self.values[0])
        if kind is not float and set(map(type, values)) == {kind} and set(values) <= set(self.values):
            return list(values)
        return Domain.read_all(self, values)


def categories(*values: Value, other: bool = False, missing: bool = False) -> Categories:
    """A domain of the given values; see `Categories`. Raises `InvalidNeighbours`."""
    return Categories(values=tuple(map(plain, values)), other=other, missing=missing)


def flags(*, missing: bool = False) -> Categories:
    """The domain of False and True."""
    return Categories(values=(False, True), missing=missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples(Listed):
    """The domain of given records of any kind, such as draws from a hypothesis strategy; without a form in JSON."""

    values: tuple[Value, ...]
    source: str = "examples"
    _places: dict[Hashable, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        first = sorted(_places_of(self.values).values())
        if len(first) < 2:
            raise InvalidNeighbours(f"{self.source}: give at least two records that differ, not {len(first)}")
        object.__setattr__(self, "values", tuple(self.values[place] for place in first))
        object.__setattr__(self, "_places", _places_of(self.values))

    def __str__(self) -> str:
        return f"{len(self.values)} {self.source}"

    @override
    def read(self, value: Value) -> Value:
        place = self._places.get(key_of(plain(value)))
        return NOT_IN_DOMAIN if place is None else self.values[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Domain):
    """The domain of texts of at most `max_length` characters; `missing`: None is allowed."""

    max_length: int
    missing: bool = False

    def __post_init__(self) -> None:
        _check_flags(missing=self.missing)
        if isinstance(self.max_length, bool) or not isinstance(self.max_length, int) or self.max_length < 1:
            raise InvalidNeighbours(f"max_length={brief(self.max_length)} must be a whole number of at least 1")

    def __str__(self) -> str:
        return _call_text("text", str(self.max_length), missing=self.missing)

    @override
    def to_json(self) -> dict[str, object]:
        return {"text": self.max_length, "missing": self.missing}

    @override
    def ends(self) -> tuple[Value, ...]:
        return "z" * min(self.max_length, 1000), ""

    @override
    def odd(self) -> tuple[Value, ...]:
        texts = ("0", " ", "é", '"', ",", "a\nb", "NaN")
        return (*([None] if self.missing else []), *(v for v in texts if len(v) <= self.max_length))

    @override
    def middle(self) -> str:
        return "a"

    @override
    def draw(self, rng: np.random.Generator) -> str:
        length = int(rng.integers(1, min(self.max_length, 8), endpoint=True))
        return "".join(chr(97 + int(letter)) for letter in rng.integers(26, size=length))

    @override
    def simpler(self, value: str | None) -> Iterator[str]:
        for other in dict.fromkeys(["", "a", (value or "")[: len(value or "") // 2]]):
            if value is None or len(other) < len(value):
                yield other

    @override
    def read(self, value: Value) -> Value:
        """The text itself; NaN is None, since a column of a DataFrame may hold NaN for None."""
        value = plain(value)
        if is_missing(value):
            return None if self.missing else NOT_IN_DOMAIN
        return value if type(value) is str and len(value) <= self.max_length else NOT_IN_DOMAIN


def text(max_length: int = 20, *, missing: bool = False) -> Text:
    """A domain of texts of at most `max_length` characters; see `Text`. Raises `InvalidNeighbours`."""
    return Text(max_length=max_length, missing=missing)


#: The magnitude at which a sum of two numbers overflows, and the addition of a small number changes nothing.
OVERFLOW_MAGNITUDE: Final = 1e308
#: The least integer of 64 bits.
LEAST_INT64: Final = -(2**63)
#: The greatest integer of 64 bits.
GREATEST_INT64: Final = 2**63 - 1
#: Magnitudes of values to try, in scales of the noise that the claim asks for. The list is long, as a mechanism's own
#: scale is not known.
NOISE_MAGNITUDES: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 5.0, 7.0, 10.0, 30.0, 100.0)
#: Numbers that code may treat as special: codes of a missing number, limits of digits and bits, and large counts.
SPECIAL_NUMBERS: Final = (-1, 99, 999, 500, -99, -999, 9999, 64, 127, 255, 65_535, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range(Domain):
    """The domain of numbers from `low` to `high`: integers of 64 bits where `whole`, else doubles.

    `clipped`: the mechanism promises to clip to the range itself, so any finite number is allowed; `missing`: NaN and
    None are allowed. Only inputs of the claim's domain can violate the claim, so the user states both. A missing
    integer is None. A missing double is NaN or None: two different values where records are Python objects, but both
    are NaN in an array or a column of floats.
    """

    low: float
    high: float
    whole: bool
    clipped: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        for name, end in (("low", self.low), ("high", self.high)):
            if self.whole and (type(end) is not int or not LEAST_INT64 <= end <= GREATEST_INT64):
                raise InvalidNeighbours(f"{name}={brief(end)} must be a whole number of 64 bits")
            if not self.whole and not (isinstance(end, float) and math.isfinite(end)):
                raise InvalidNeighbours(f"{name}={brief(end)} must be a finite number")
        if not self.low < self.high:
            raise InvalidNeighbours(f"{self.kind} from low={self.low} to high={self.high}: low must be below high")
        _check_flags(clipped=self.clipped, missing=self.missing)

    @property
    def kind(self) -> str:
        """The name of the function that makes the domain; in JSON the key of both ends."""
        return "integers" if self.whole else "numbers"

    def __str__(self) -> str:
        ends = (f"{end:g}" if isinstance(end, float) else str(end) for end in (self.low, self.high))
        return _call_text(self.kind, *ends, clipped=self.clipped, missing=self.missing)

    @override
    def to_json(self) -> dict[str, object]:
        return {self.kind: [self.low, self.high], "clipped": self.clipped, "missing": self.missing}

    @property
    @override
    def dtype(self) -> str:
        return "int64" if self.whole and not self.missing else "float64"

    @override
    def ends(self) -> tuple[float, ...]:
        return _ends(self.low, self.high, self.whole)

    @override
    def inside(self, end: float) -> float:
        """The number a hundredth of the range away from an end, and at least 1 away in a long range of integers.

        The squares of numbers much nearer to an end at zero would vanish in a sum.
        """
        step = self.high / 100 - self.low / 100
        if self.whole:
            step = max((self.high - self.low) // 100, int(self.high - self.low > 1))
        return end + step if end == self.low else end - step

    @override
    def odd(self) -> tuple[float | None, ...]:
        """Missing numbers if they are allowed, and allowed numbers outside the range, near and far."""
        span = min(self.high - self.low, OVERFLOW_MAGNITUDE)
        near = (self.low - span, self.high + span)
        outside = (
            (GREATEST_INT64, *near, LEAST_INT64)
            if self.whole
            else (OVERFLOW_MAGNITUDE, *near, -OVERFLOW_MAGNITUDE, math.ulp(0.0), -math.ulp(0.0))
        )
        missing = [None] if self.whole else [math.nan, None]
        return (
            *(missing if self.missing else ()),
            *dict.fromkeys(v for v in outside if not self.low <= v <= self.high and self.holds(v)),
        )

    @override
    def special(self, scale: float) -> tuple[float, ...]:
        """All integers of a small range; else `SPECIAL_NUMBERS`, shares of the range, and multiples of `scale`."""
        if self.whole and self.high - self.low < SMALL_DOMAIN_VALUES:
            return tuple(range(int(self.low), int(self.high) + 1))
        span = self.high / 2 - self.low / 2
        shares = [self.low + 2 * span * share for share in (0.01, 0.99, 0.25, 0.75, 0.1, 0.9, 0.001, 0.999, 0.4, 0.6)]
        signed = [sign * size * scale for size in NOISE_MAGNITUDES for sign in (1, -1)]
        tried = [v for v in (*SPECIAL_NUMBERS, *shares, *signed) if self.low < v < self.high]
        return tuple(v for v in dict.fromkeys(map(self._rounded, tried)) if self.low < v < self.high)

    def _rounded(self, value: float) -> float:
        return round(value) if self.whole else float(value)

    def _between(self, value: float, other: float) -> float:
        """The number midway between two numbers; doubles are halved first, so that the sum does not overflow."""
        return (value + other) // 2 if self.whole else value / 2 + other / 2

    @override
    def middle(self) -> float:
        return self._between(self.low, self.high)

    @override
    def draw(self, rng: np.random.Generator) -> float:
        """A uniform draw; doubles from a range longer than 1 have two decimal digits."""
        if self.whole:
            return int(rng.integers(int(self.low), int(self.high), endpoint=True))
        value = self.low + float(rng.random()) * min(self.high - self.low, OVERFLOW_MAGNITUDE)
        value = round(value, 2) if self.high - self.low > 1 else value
        return min(max(value, self.low), self.high)

    @override
    def near(self, value: float | None) -> Iterator[float | None]:
        if value is not None and math.isfinite(value):
            steps = (value + 1, value - 1) if self.whole else (self._between(value, self.middle()),)
            between = (self._between(value, end) for end in (self.low, self.high))
            yield from filter(self.holds, (*between, *steps))
        yield from (self.high, self.low, *self.odd())

    @override
    def simpler(self, value: float | None) -> Iterator[float]:
        """Numbers that are shorter to write: zero, the value with fewer digits, half the value, and the ends."""
        if value is None or not math.isfinite(value):
            yield self.high
            return
        rounder = (float(f"{value:.{digits}g}") for digits in (1, 2, 3))
        for other in (*map(self._rounded, (0, *rounder, value / 2)), self.low, self.high):
            if self.holds(other) and _length(other) < _length(value):
                yield other

    @override
    def read(self, value: Value) -> Value:
        """The number as a float, or as an int in a domain of integers, also from a float; NaN is then None."""
        value = plain(value)
        if value is None:
            return None if self.missing else NOT_IN_DOMAIN
        if isinstance(value, bool) or not isinstance(value, int | float):
            return NOT_IN_DOMAIN
        if value != value:
            return (None if self.whole else math.nan) if self.missing else NOT_IN_DOMAIN
        try:
            number = int(value) if self.whole else float(value)
        except OverflowError:  # an infinity as an integer, or an integer that no double can hold
            return NOT_IN_DOMAIN
        if self.whole and number != value:
            return NOT_IN_DOMAIN
        low, high = self.low, self.high
        if self.clipped:
            low, high = (LEAST_INT64, GREATEST_INT64) if self.whole else (-sys.float_info.max, sys.float_info.max)
        return number if low <= number <= high else NOT_IN_DOMAIN

    @override
    def read_all(self, values: Sequence[Value]) -> list[Value] | None:
        # Most columns hold numbers of one type in the range. A NaN, which has no order, makes the sum NaN.
        one_type = set(map(type, values)) == {int if self.whole else float}
        if one_type and (total := sum(values)) == total and self.low <= min(values) and max(values) <= self.high:
            return list(values)
        return Domain.read_all(self, values)


def numbers(low: float, high: float, *, clipped: bool = False, missing: bool = False) -> Range:
    """A domain of numbers from `low` to `high`, both included; see `Range`. Raises `InvalidNeighbours`."""
    ends = {}
    for name, value in (("low", plain(low)), ("high", plain(high))):
        ends[name] = checks.number(name, value, InvalidNeighbours) if type(value) is int else value
    return Range(**ends, whole=False, clipped=clipped, missing=missing)


def integers(low: int, high: int, *, clipped: bool = False, missing: bool = False) -> Range:
    """A domain of integers from `low` to `high`, both included; see `Range`. Raises `InvalidNeighbours`."""
    return Range(low=plain(low), high=plain(high), whole=True, clipped=clipped, missing=missing)


def is_real(domain: Domain) -> bool:
    """Whether a domain is a range of doubles, which a narrower type may round."""
    return isinstance(domain, Range) and not domain.whole


@lru_cache(1 << 14)  # every record that is made needs it
def _ends(low: float, high: float, whole: bool) -> tuple[float, ...]:
    """Both ends and zero, round numbers and numbers just inside the ends in turn, and all of at most 24 integers."""
    inside = [high - 1, low + 1] if whole else [math.nextafter(high, low), math.nextafter(low, high), math.ulp(0.0)]
    every = range(int(low), int(high) + 1) if whole and high - low < 24 else ()
    tried = (high, low, 0, *in_turn((iter(_round_numbers(low, high)), iter(inside))), *every)
    return tuple(dict.fromkeys(int(v) if whole else float(v) for v in tried if low <= v <= high))


def in_turn(kinds: Sequence[Iterator[T]]) -> Iterator[T]:
    """The first item of each iterator, then the second item of each, and so on."""
    none: Any = object()
    return (one for row in zip_longest(*kinds, fillvalue=none) for one in row if one is not none)


def parts_of(places: Sequence[T], most: float = math.inf) -> Iterator[Sequence[T]]:
    """The halves of some places, then the quarters, … and single places, without steps of more than `most` parts."""
    chunk = len(places) // 2
    while chunk and len(places) // chunk <= most:
        for start in range(0, len(places), chunk):
            yield places[start : start + chunk]
        chunk //= 2


def _round_numbers(low: float, high: float) -> list[int]:
    """Powers of two and ten inside a range, borders of types and codes, and all their negatives.

    Code puts its limits at round numbers. Powers in the outer half of either side come first, then borders, then all
    other powers, each from the greatest on.
    """
    powers = {base**k for base in (2, 10) for k in range(64)}
    signed = [sign * v for v in sorted(powers, reverse=True) for sign in (1, -1)]
    outer = [v for v in signed if v > high / 2 or v < low / 2]
    # Ends of narrower types, of the integers that floats hold, of numbers of digits, and of codes of missing values.
    ends = (99, 999, 2**7, 2**8, 2**15, 2**16, 2**24, 2**31, 2**32, 2**53, 9, 9999)
    borders = [sign * v for v in ends for sign in (1, -1)]
    return list(dict.fromkeys(v for v in (*outer, *borders, *signed) if low < v < high))


def _length(value: float) -> tuple[int, float]:
    """The number of characters of a number without sign and final zeros, then its magnitude."""
    return len(f"{value:.17g}".rstrip("0").lstrip("-")), abs(value)
