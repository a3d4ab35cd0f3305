"""Domains: which values one field of a record may take, and which of them break code."""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from typing_extensions import override

from dpwitness import checks
from dpwitness.checks import brief
from dpwitness.codec import JsonFields
from dpwitness.errors import InvalidNeighbours

T = TypeVar("T")
#: A value of a field: a number, a text, a flag, None, or what else records hold.
Value = Any


class NotInDomain:
    """The type of `NOT_IN_DOMAIN`."""

    def __repr__(self) -> str:
        return "NOT_IN_DOMAIN"


#: What `Domain.read` gives for a value that the domain does not hold.
NOT_IN_DOMAIN: Final = NotInDomain()


class Domain(ABC):
    """The values of one field. A value has one form inside: what `read` makes of it."""

    __slots__ = ()

    @property
    def dtype(self) -> str:
        """The NumPy type of a column of such values; "object" where there is none of its own."""
        return "object"

    @abstractmethod
    def ends(self) -> tuple[Value, ...]:
        """Values to try, the most promising first; the first two are far apart."""

    def inside(self, end: Value) -> Value:
        """A value near an end, but not at it; the end itself where there is no such thing as near."""
        return end

    def odd(self) -> tuple[Value, ...]:
        """Values that code often mishandles: a missing one, one outside a range, a new category, an empty text."""
        return ()

    def special(self, scale: float) -> tuple[Value, ...]:
        """Values that code may treat unlike others, each to be tried once: all of a small domain. By default none.

        `scale`: of the noise that the claim asks for.
        """
        return ()

    @abstractmethod
    def middle(self) -> Value:
        """An ordinary value."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Value:
        """A value as real data may hold it."""

    def near(self, value: Value) -> Iterator[Value]:
        """Other values to try in the place of one that turned out well."""
        yield from (*self.ends(), *self.odd())

    @abstractmethod
    def simpler(self, value: Value) -> Iterator[Value]:
        """Values that are shorter to write or nearer to zero, the largest steps first."""

    @abstractmethod
    def read(self, value: Value) -> Value:
        """The value as it is held inside, a NumPy scalar unwrapped; `NOT_IN_DOMAIN` for what does not belong."""

    def read_all(self, values: Sequence[Value]) -> list[Value] | None:
        """The values of a column as they are held inside; None where one of them does not belong.

        Domains that most data are made of take a whole column at once, in a tenth of the time.
        """
        read = list(map(self.read, values))
        return None if any(value is NOT_IN_DOMAIN for value in read) else read

    def holds(self, value: Value) -> bool:
        """Whether a value belongs to the domain."""
        return self.read(value) is not NOT_IN_DOMAIN

    def samples(self) -> list[Value]:
        """Values of every kind that the domain holds: all where they are listed, else those that are worth trying."""
        return [*self.ends(), *self.odd(), self.middle()]

    def to_json(self) -> dict[str, object] | None:
        """Everything needed to build it again, as JSON values; None where it cannot be written."""
        return None


def plain(value: Value) -> Value:
    """A NumPy scalar as a Python value, pandas' marks of a missing value as None; anything else as it is."""
    if isinstance(value, np.generic):
        return value.item()
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def is_missing(value: object) -> bool:
    """Whether a value stands for a missing one: None, NaN, and the marks of pandas and NumPy."""
    value = plain(value)
    try:
        return value is None or (value != value) is True  # an array is compared entry by entry
    except ArithmeticError:  # a signalling NaN
        return False


def key_of(value: object) -> Hashable:
    """What equal values of a field have in common: their type, and NaN is equal to NaN."""
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


def _call(name: str, *arguments: str, **flags: bool) -> str:
    """A domain as it is written in a call, flags that are not set left out."""
    return f"{name}({', '.join([*arguments, *(f'{flag}=True' for flag, is_set in flags.items() if is_set)])})"


#: Values of a domain of which each is tried.
SMALL: Final = 128
#: Listed values that are tried as an end, and those that are shown to people.
TRIED: Final = 24
SHOWN: Final = 6
#: Columns of one of these types have a NumPy type of their own.
DTYPES: Final = {bool: "bool", int: "int64", float: "float64"}


class Listed(Domain):
    """A domain that is a list of values, an ordinary one first."""

    __slots__ = ()
    values: tuple[Value, ...]

    @override
    def middle(self) -> Value:
        return self.values[0]

    @override
    def draw(self, rng: np.random.Generator) -> Value:
        return self.values[int(rng.integers(len(self.values)))]

    @override
    def special(self, scale: float) -> tuple[Value, ...]:
        return self.values[:SMALL]

    @override
    def samples(self) -> list[Value]:
        return [*self.values, *Domain.samples(self)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Categories(JsonFields, Listed):
    """One of `values`: texts, whole numbers, flags, or numbers, all of one type.

    `other`: another value of that type is allowed too; `missing`: None is allowed.
    """

    json_keys: ClassVar[tuple[str, ...]] = ("categories: values", "other", "missing")

    values: tuple[Value, ...]
    other: bool = False
    missing: bool = False
    _known: frozenset[Hashable] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_flags(other=self.other, missing=self.missing)
        if len({type(value) for value in self.values}) != 1 or type(self.values[0]) not in (str, bool, int, float):
            raise InvalidNeighbours(
                f"categories {brief(self.values)} must be texts, whole numbers, numbers or flags, all of one type, "
                "each given by itself: categories('red', 'blue')"
            )
        known = frozenset(map(key_of, self.values))
        if len(known) != len(self.values) or "NaN" in known:
            raise InvalidNeighbours(f"categories {brief(self.values)} must differ from each other, NaN left out")
        if self.other and type(self.values[0]) is bool:
            raise InvalidNeighbours("categories of flags have no other value: leave out other=True")
        object.__setattr__(self, "_known", known)

    def __str__(self) -> str:
        more = [f"… {len(self.values) - SHOWN} more"] if len(self.values) > SHOWN else []
        return _call("categories", *map(repr, self.values[:SHOWN]), *more, other=self.other, missing=self.missing)

    @property
    @override
    def dtype(self) -> str:
        return "object" if self.missing else DTYPES.get(type(self.values[0]), "object")

    @override
    def ends(self) -> tuple[Value, ...]:
        """The last and the first, then the others; of a single one also what else may come, or the same one again."""
        first, *others = self.values
        return (others[-1], first, *others[:-1])[:TRIED] if others else (first, *(self.odd() or (first,)))

    @override
    def odd(self) -> tuple[Value, ...]:
        return (*([self._new()] if self.other else []), *([None] if self.missing else []))

    def _new(self) -> Value:
        if type(self.values[0]) is not str:
            return max(self.values) + 1
        new = "other"
        while new in self.values:
            new += "_"
        return new

    @override
    def near(self, value: Value) -> Iterator[Value]:
        yield from (*self.odd(), *self.ends())

    @override
    def simpler(self, value: Value) -> Iterator[Value]:
        place = self.values.index(value) if key_of(value) in self._known else len(self.values)
        yield from self.values[: min(place, TRIED)]

    @override
    def read(self, value: Value) -> Value:
        """The value itself; NaN, as a column of a DataFrame has it for None, is None."""
        value = plain(value)
        if is_missing(value):
            return None if self.missing else NOT_IN_DOMAIN
        kind = type(self.values[0])
        if kind is float and type(value) is int:
            value = float(value)
        if kind is int and type(value) is float and value.is_integer():
            value = int(value)  # of a column of floats
        belongs = type(value) is kind and (self.other or key_of(value) in self._known)
        return value if belongs else NOT_IN_DOMAIN

    @override
    def read_all(self, values: Sequence[Value]) -> list[Value] | None:
        kind = type(self.values[0])
        if kind is not float and set(map(type, values)) == {kind} and set(values) <= set(self.values):
            return list(values)
        return Domain.read_all(self, values)


def categories(*values: Value, other: bool = False, missing: bool = False) -> Categories:
    """One of the given values; see `Categories`. Raises `InvalidNeighbours`."""
    return Categories(values=tuple(map(plain, values)), other=other, missing=missing)


def flags(*, missing: bool = False) -> Categories:
    """False or True."""
    return Categories(values=(False, True), missing=missing)


#: Examples that are tried in one place.
EXAMPLES_TRIED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples(Listed):
    """Records of any kind, those given and no others: what a hypothesis strategy drew, for example.

    They have no form in JSON.
    """

    values: tuple[Value, ...]
    source: str = "examples"
    _places: dict[Hashable, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places: dict[Hashable, int] = {}
        for place, value in enumerate(self.values):
            places.setdefault(key_of(value), place)
        if len(places) < 2:
            raise InvalidNeighbours(f"{self.source}: give at least two records that differ, not {len(places)}")
        object.__setattr__(self, "_places", places)

    def __str__(self) -> str:
        return f"{len(self._places)} {self.source}"

    @property
    @override
    def dtype(self) -> str:
        kinds = {type(value) for value in self.values}
        return DTYPES.get(kinds.pop(), "object") if len(kinds) == 1 else "object"

    @override
    def ends(self) -> tuple[Value, ...]:
        """The last (hypothesis draws the simplest first), the first, and some between."""
        distinct = [self.values[place] for place in self._places.values()]
        return (distinct[-1], distinct[0], *distinct[-2:0:-1])[:EXAMPLES_TRIED]

    @override
    def near(self, value: Value) -> Iterator[Value]:
        place = self._places.get(key_of(value), 0)
        yield from self.values[max(place - EXAMPLES_TRIED // 2, 0) : place + EXAMPLES_TRIED // 2]

    @override
    def simpler(self, value: Value) -> Iterator[Value]:
        yield from self.values[: min(self._places.get(key_of(value), 0), EXAMPLES_TRIED)]

    @override
    def read(self, value: Value) -> Value:
        place = self._places.get(key_of(plain(value)))
        return NOT_IN_DOMAIN if place is None else self.values[place]


#: Short texts that code may mishandle; each is tried where it is not too long.
ODD_TEXTS: Final = ("0", " ", "é", '"', ",", "a\nb", "NaN")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(JsonFields, Domain):
    """Texts of at most `max_length` characters; `missing`: None is allowed."""

    json_keys: ClassVar[tuple[str, ...]] = ("text: max_length", "missing")

    max_length: int
    missing: bool = False

    def __post_init__(self) -> None:
        _check_flags(missing=self.missing)
        if isinstance(self.max_length, bool) or not isinstance(self.max_length, int) or self.max_length < 1:
            raise InvalidNeighbours(f"max_length={brief(self.max_length)} must be a whole number of at least 1")

    def __str__(self) -> str:
        return _call("text", str(self.max_length), missing=self.missing)

    @override
    def ends(self) -> tuple[Value, ...]:
        return "z" * min(self.max_length, 1000), ""

    @override
    def odd(self) -> tuple[Value, ...]:
        return (*([None] if self.missing else []), *(v for v in ODD_TEXTS if len(v) <= self.max_length))

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
        """The text itself; NaN, as a column of a DataFrame has it for None, is None."""
        value = plain(value)
        if is_missing(value):
            return None if self.missing else NOT_IN_DOMAIN
        return value if type(value) is str and len(value) <= self.max_length else NOT_IN_DOMAIN


def text(max_length: int = 20, *, missing: bool = False) -> Text:
    """Texts of at most `max_length` characters; see `Text`. Raises `InvalidNeighbours`."""
    return Text(max_length=max_length, missing=missing)


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


#: Magnitudes in scales of the noise that the claim asks for: a mechanism's own scale is not known.
LADDER: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 5.0, 7.0, 10.0, 30.0, 100.0)
#: Numbers that stand for a missing one, the last ones of some numbers of digits and bits, and large counts.
SPECIAL: Final = (-1, 99, 999, 500, -99, -999, 9999, 64, 127, 255, 65_535, 1_000_000)

#: Places of a range that are tried, as shares of it from its low end on.
SHARES: Final = (0.01, 0.99, 0.25, 0.75, 0.1, 0.9, 0.001, 0.999, 0.4, 0.6)


class Range(JsonFields, Domain):
    """Numbers from `low` to `high`.

    `clipped`: the mechanism promises to clip to that range itself, so any finite number is allowed; `missing`: NaN and
    None are allowed. Only inputs of the claim's domain can violate it, so both are for the user to state.
    """

    __slots__ = ()
    kind: ClassVar[str]  # the function that makes the domain, and the key of both ends in JSON
    low: float
    high: float
    clipped: bool
    missing: bool

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InvalidNeighbours(f"{self.kind} from low={self.low} to high={self.high}: low must be below high")
        _check_flags(clipped=self.clipped, missing=self.missing)

    def __str__(self) -> str:
        ends = (f"{end:g}" if isinstance(end, float) else str(end) for end in (self.low, self.high))
        return _call(self.kind, *ends, clipped=self.clipped, missing=self.missing)

    def _special(self, scale: float) -> Iterator[float]:
        """Magnitudes, in scales of the noise and in parts of the range, and special numbers, inside the range."""
        span = self.high / 2 - self.low / 2
        signed = [sign * size * scale for size in LADDER for sign in (1, -1)]
        shares = [self.low + 2 * span * share for share in SHARES]
        yield from (v for v in (*SPECIAL, *shares, *signed) if self.low < v < self.high)

    @abstractmethod
    def rounder(self, value: Value) -> Iterator[Value]:
        """Zero, half of a value, and the value with fewer digits."""

    @override
    def simpler(self, value: Value) -> Iterator[Value]:
        """Those and the ends, where they are shorter to write."""
        if value is None or not math.isfinite(value):
            yield self.high
            return
        for other in (*self.rounder(value), self.low, self.high):
            if self.holds(other) and _length(other) < _length(value):
                yield other


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers(Range):
    """Doubles; see `Range`.

    A missing number is NaN or None, two different values where records are Python objects, both NaN in an array or a
    column of floats.
    """

    kind: ClassVar[str] = "numbers"
    json_keys: ClassVar[tuple[str, ...]] = ("numbers: range", "clipped", "missing")

    low: float
    high: float
    clipped: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        for name, value in (("low", self.low), ("high", self.high)):
            if not isinstance(value, float) or not math.isfinite(value):
                raise InvalidNeighbours(f"{name}={brief(value)} must be a finite number")
        Range.__post_init__(self)

    @property
    def range(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    @classmethod
    def from_keys(cls, numbers: tuple[float, float], clipped: bool, missing: bool) -> "Numbers":
        """Build it from what a file holds. Raises `InvalidNeighbours`."""
        return cls(low=numbers[0], high=numbers[1], clipped=clipped, missing=missing)

    @property
    @override
    def dtype(self) -> str:
        return "float64"

    @override
    def ends(self) -> tuple[float, ...]:
        return _ends_of_numbers(self.low, self.high)

    @override
    def inside(self, end: float) -> float:
        """A hundredth of the range away from it: not so near that a sum of squares vanishes."""
        hundredth = self.high / 100 - self.low / 100
        return end + hundredth if end == self.low else end - hundredth

    @override
    def odd(self) -> tuple[float | None, ...]:
        """NaN, None and what lies outside, near and far, where these may come."""
        span = min(self.high - self.low, HUGE)
        outside = [HUGE, self.low - span, self.high + span, -HUGE, TINY, -TINY] if self.clipped else []
        missing = [math.nan, None] if self.missing else []
        return (*missing, *(v for v in outside if not self.low <= v <= self.high))

    @override
    def special(self, scale: float) -> tuple[float, ...]:
        return tuple(dict.fromkeys(map(float, self._special(scale))))

    @override
    def middle(self) -> float:
        return self.low / 2 + self.high / 2  # halved first, so that the sum does not overflow

    @override
    def draw(self, rng: np.random.Generator) -> float:
        """Uniform in the range, with two decimal digits where these are enough."""
        value = self.low + float(rng.random()) * min(self.high - self.low, HUGE)
        value = round(value, 2) if self.high - self.low > 1 else value
        return min(max(value, self.low), self.high)

    @override
    def near(self, value: float | None) -> Iterator[float | None]:
        if value is not None and math.isfinite(value):
            yield from (value / 2 + other / 2 for other in (self.middle(), self.low, self.high))
        yield from (self.high, self.low, *self.odd())

    @override
    def rounder(self, value: float) -> Iterator[float]:
        yield from (0.0, *(float(f"{value:.{digits}g}") for digits in (1, 2, 3)), value / 2)

    @override
    def read(self, value: Value) -> Value:
        value = plain(value)
        if value is None:
            return None if self.missing else NOT_IN_DOMAIN
        if isinstance(value, bool) or not isinstance(value, int | float):
            return NOT_IN_DOMAIN
        try:
            value = float(value)
        except OverflowError:
            return NOT_IN_DOMAIN
        if math.isnan(value):
            return math.nan if self.missing else NOT_IN_DOMAIN
        belongs = self.low <= value <= self.high or (self.clipped and math.isfinite(value))
        return value if belongs else NOT_IN_DOMAIN

    @override
    def read_all(self, values: Sequence[Value]) -> list[Value] | None:
        # Most columns are floats in the range; the sum is NaN where one of them is, and that has no order.
        plain_floats = set(map(type, values)) == {float} and not math.isnan(sum(values))
        if plain_floats and self.low <= min(values) and max(values) <= self.high:
            return list(values)
        return Domain.read_all(self, values)


def numbers(low: float, high: float, *, clipped: bool = False, missing: bool = False) -> Numbers:
    """Numbers from `low` to `high`, both included; see `Numbers`. Raises `InvalidNeighbours`."""
    ends = {}
    for name, value in (("low", plain(low)), ("high", plain(high))):
        whole = isinstance(value, int) and not isinstance(value, bool)
        ends[name] = checks.number(name, value, InvalidNeighbours) if whole else value
    return Numbers(**ends, clipped=clipped, missing=missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Integers(Range):
    """Whole numbers; see `Range`. A missing one is None."""

    kind: ClassVar[str] = "integers"
    json_keys: ClassVar[tuple[str, ...]] = ("integers: range", "clipped", "missing")

    low: int
    high: int
    clipped: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        for name, value in (("low", self.low), ("high", self.high)):
            if isinstance(value, bool) or not isinstance(value, int) or not LEAST <= value <= MOST:
                raise InvalidNeighbours(f"{name}={brief(value)} must be a whole number of 64 bits")
        Range.__post_init__(self)

    @property
    def range(self) -> tuple[int, int]:
        """Both ends."""
        return self.low, self.high

    @classmethod
    def from_keys(cls, integers: tuple[int, int], clipped: bool, missing: bool) -> "Integers":
        """Build it from what a file holds. Raises `InvalidNeighbours`."""
        return cls(low=integers[0], high=integers[1], clipped=clipped, missing=missing)

    @property
    @override
    def dtype(self) -> str:
        return "float64" if self.missing else "int64"

    @override
    def ends(self) -> tuple[int, ...]:
        return _ends_of_integers(self.low, self.high)

    @override
    def inside(self, end: int) -> int:
        """A hundredth of the range away from it, at least 1 where that is not the other end."""
        step = max((self.high - self.low) // 100, 1 if self.high - self.low > 1 else 0)
        return end + step if end == self.low else end - step

    @override
    def odd(self) -> tuple[int | None, ...]:
        """None and what lies outside, near and far, where these may come."""
        span = self.high - self.low
        outside = [MOST, self.low - span, self.high + span, LEAST] if self.clipped else []
        outside = [v for v in outside if self.holds(v) and not self.low <= v <= self.high]
        return (*([None] if self.missing else []), *dict.fromkeys(outside))

    @override
    def special(self, scale: float) -> tuple[int, ...]:
        if self.high - self.low < SMALL:
            return tuple(range(self.low, self.high + 1))
        return tuple(v for v in dict.fromkeys(map(round, self._special(scale))) if self.low < v < self.high)

    @override
    def middle(self) -> int:
        return (self.low + self.high) // 2

    @override
    def draw(self, rng: np.random.Generator) -> int:
        return int(rng.integers(self.low, self.high, endpoint=True))

    @override
    def near(self, value: int | None) -> Iterator[int | None]:
        if value is not None:
            steps = ((value + self.low) // 2, (value + self.high) // 2, value + 1, value - 1)
            yield from filter(self.holds, steps)
        yield from (self.high, self.low, *self.odd())

    @override
    def rounder(self, value: int) -> Iterator[int]:
        digits = len(str(abs(value)))
        yield from (0, *(round(value, -places) for places in range(digits - 1, 0, -1)), int(value / 2))

    @override
    def read(self, value: Value) -> Value:
        """An int; NaN is None, and a float is whole where a column of floats held it."""
        value = plain(value)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None if self.missing else NOT_IN_DOMAIN
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return NOT_IN_DOMAIN
        belongs = self.low <= value <= self.high or (self.clipped and LEAST <= value <= MOST)
        return value if belongs else NOT_IN_DOMAIN

    @override
    def read_all(self, values: Sequence[Value]) -> list[Value] | None:
        if set(map(type, values)) == {int} and self.low <= min(values) and max(values) <= self.high:
            return list(values)
        return Domain.read_all(self, values)


def integers(low: int, high: int, *, clipped: bool = False, missing: bool = False) -> Integers:
    """Whole numbers from `low` to `high`, both included; see `Integers`. Raises `InvalidNeighbours`."""
    return Integers(low=plain(low), high=plain(high), clipped=clipped, missing=missing)


@lru_cache(1 << 14)  # asked for with every record that is made
def _ends_of_numbers(low: float, high: float) -> tuple[float, ...]:
    """Both ends, zero; round numbers, just inside the ends, the tiniest number, by turns."""
    inside = [math.nextafter(high, low), math.nextafter(low, high), TINY]
    ends = (high, low, 0.0, *in_turn((map(float, _round_numbers(low, high)), iter(inside))))
    return tuple(dict.fromkeys(v for v in ends if low <= v <= high))


@lru_cache(1 << 14)
def _ends_of_integers(low: int, high: int) -> tuple[int, ...]:
    """Both ends, zero; round numbers and just inside the ends, by turns; all numbers of a small range."""
    every = range(low, high + 1) if high - low < EVERY else ()
    ends = (high, low, 0, *in_turn((iter(_round_numbers(low, high)), iter([high - 1, low + 1]))), *every)
    return tuple(dict.fromkeys(v for v in ends if low <= v <= high))


def in_turn(kinds: Sequence[Iterator[T]]) -> Iterator[T]:
    """One of each, then the second of each, and so on."""
    waiting = list(kinds)
    while waiting:
        for kind in list(waiting):
            try:
                yield next(kind)
            except StopIteration:
                waiting.remove(kind)


def _round_numbers(low: float, high: float) -> list[int]:
    """Powers of two and ten inside a range, their negatives, and `BORDERS`: where code puts its limits.

    First those in the outer half of either side, then borders, then all others, each from the greatest on.
    """
    powers = {base**k for base in (2, 10) for k in range(64)}
    signed = [sign * v for v in sorted(powers, reverse=True) for sign in (1, -1)]
    outer = [v for v in signed if v > high / 2 or v < low / 2]
    borders = [sign * v for v in BORDERS for sign in (1, -1)]
    return list(dict.fromkeys(v for v in (*outer, *borders, *signed) if low < v < high))


def _length(value: float) -> tuple[int, float]:
    """How long a number is to write, then how large it is."""
    return len(f"{value:.17g}".rstrip("0").lstrip("-")), abs(value)
