"""What a domain is: which values one field of a record may take, and which of them give broken code away.

Domains without a scale: categories and flags, and text.

Domains of numbers: a range, its ends, and what lies outside where the mechanism promises to clip.

How a record is made of fields: a single value, a tuple, or a dict; inside it is the flat tuple of its values.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final, Protocol

import numpy as np

from dpwitness.checks import brief, number
from dpwitness.errors import InvalidNeighbours


class NotInDomain:
    """The type of `NOT_IN_DOMAIN`."""

    def __repr__(self) -> str:
        """Its name."""
        return "NOT_IN_DOMAIN"


#: What `Domain.read` gives for a value that the domain does not hold.
NOT_IN_DOMAIN: Final = NotInDomain()


class Domain(Protocol):
    """The values of one field. A value has one form inside: what `read` makes of it."""

    @property
    def dtype(self) -> str:
        """The NumPy type of a column of such values; "object" where there is none of its own."""

    def ends(self) -> tuple[Any, ...]:
        """Values to try, the most promising first; the first two are far apart."""

    def inside(self, end: Any) -> Any:
        """A value near an end, but not at it; the end itself where there is no such thing as near."""

    def odd(self) -> tuple[Any, ...]:
        """Values that code stumbles over: a missing one, one outside a range, a new category, an empty text."""

    def middle(self) -> Any:
        """An ordinary value."""

    def draw(self, rng: np.random.Generator) -> Any:
        """A value as real data may hold it."""

    def near(self, value: Any) -> Iterator[Any]:
        """Other values to try in the place of one that turned out well."""

    def simpler(self, value: Any) -> Iterator[Any]:
        """Values that are shorter to write or nearer to zero, the largest steps first."""

    def read(self, value: Any) -> Any:
        """The value as it is held inside, a NumPy scalar unwrapped; `NOT_IN_DOMAIN` for what does not belong."""

    def to_json(self) -> dict[str, Any] | None:
        """Everything needed to build it again, as JSON values; None where it cannot be written."""


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python value; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def is_missing(value: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN, and the marks of pandas and NumPy."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal nor different; an array is no single value
        return type(value).__name__ == "NAType"


def key_of(value: Any) -> Any:
    """What equal values of a field have in common: their type, and NaN is equal to NaN."""
    if isinstance(value, float) and value != value:
        return "NaN"
    try:
        hash(value)
    except TypeError:
        return type(value), repr(value)
    return type(value), value


def required(name: str, value: Any, kind: type) -> None:
    """Raise `InvalidNeighbours` unless a setting of a domain is of a type."""
    if not isinstance(value, kind):
        raise InvalidNeighbours(f"{name}={brief(value)} must be a {kind.__name__}")


#: Categories that are tried as an end.
TRIED: Final = 24
#: Categories that are shown to people.
SHOWN: Final = 6
#: Columns of one of these types have a NumPy type of their own.
DTYPES: Final = {bool: "bool", int: "int64", float: "float64"}
#: Short texts that code may stumble over; each is tried where it is not too long.
ODD: Final = ("0", " ", "é", '"', ",", "a\nb", "NaN")


@dataclass(frozen=True, slots=True, kw_only=True)
class Categories:
    """One of `values`: texts, whole numbers, flags, or numbers, all of one type.

    `other`: a value of that type which is none of these may come; `missing`: None may come.
    """

    values: tuple[Any, ...]
    other: bool = False
    missing: bool = False
    _known: frozenset[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        required("other", self.other, bool)
        required("missing", self.missing, bool)
        if len({type(value) for value in self.values}) != 1 or type(self.values[0]) not in (str, bool, int, float):
            raise InvalidNeighbours(
                f"categories {brief(self.values)} must be texts, whole numbers, numbers or flags, all of one type"
            )
        known = frozenset(map(key_of, self.values))
        if len(known) != len(self.values) or "NaN" in known:
            raise InvalidNeighbours(f"categories {brief(self.values)} must differ from each other, NaN left out")
        if len(self.values) + self.other + self.missing < 2:
            raise InvalidNeighbours(f"categories {brief(self.values)}: give at least two, so that records can differ")
        if self.other and type(self.values[0]) is bool:
            raise InvalidNeighbours("categories of flags have no other value: leave out other=True")
        object.__setattr__(self, "_known", known)

    def __str__(self) -> str:
        """As in a call, shortened."""
        shown = [repr(value) for value in self.values[:SHOWN]]
        more = [f"… {len(self.values) - SHOWN} more"] if len(self.values) > SHOWN else []
        settings = [f"{name}=True" for name in ("other", "missing") if getattr(self, name)]
        return f"categories({', '.join([*shown, *more, *settings])})"

    @property
    def dtype(self) -> str:
        """That of the values; none of its own where some may be missing."""
        return "object" if self.missing else DTYPES.get(type(self.values[0]), "object")

    def ends(self) -> tuple[Any, ...]:
        """The last and the first, then the others; of a single one also what else may come."""
        last, first = self.values[-1], self.values[0]
        found = [last, *([first, *self.values[1:-1]] if len(self.values) > 1 else self.odd())]
        return tuple(found[:TRIED])

    def inside(self, end: Any) -> Any:
        """The end itself."""
        return end

    def odd(self) -> tuple[Any, ...]:
        """A new one and None, where these may come."""
        return (*([self._new()] if self.other else []), *([None] if self.missing else []))

    def middle(self) -> Any:
        """The first."""
        return self.values[0]

    def draw(self, rng: np.random.Generator) -> Any:
        """Any of the values, with the same probability."""
        return self.values[int(rng.integers(len(self.values)))]

    def near(self, value: Any) -> Iterator[Any]:
        """Every other category, a few at most."""
        yield from (*self.odd(), *self.ends())

    def simpler(self, value: Any) -> Iterator[Any]:
        """The categories that were given before this one."""
        place = self.values.index(value) if key_of(value) in self._known else len(self.values)
        yield from self.values[: min(place, TRIED)]

    def read(self, value: Any) -> Any:
        """The value itself; NaN, as a column of a DataFrame has it for None, is None."""
        value = plain(value)
        if value is None or value != value:
            return None if self.missing else NOT_IN_DOMAIN
        kind = type(self.values[0])
        if kind is float and type(value) is int:
            value = float(value)
        if kind is int and type(value) is float and value.is_integer():
            value = int(value)  # of a column of floats
        inside = type(value) is kind and (self.other or key_of(value) in self._known)
        return value if inside else NOT_IN_DOMAIN

    def to_json(self) -> dict[str, Any]:
        """As in `Domain`."""
        return {"categories": list(self.values), "other": self.other, "missing": self.missing}

    def _new(self) -> Any:
        """A value that is none of the categories."""
        if type(self.values[0]) is str:
            new = "other"
            while new in self.values:
                new += "_"
            return new
        return max(self.values) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Texts of at most `max_length` characters; `missing`: None may come."""

    max_length: int
    missing: bool = False

    def __post_init__(self) -> None:
        required("missing", self.missing, bool)
        if isinstance(self.max_length, bool) or not isinstance(self.max_length, int) or self.max_length < 1:
            raise InvalidNeighbours(f"max_length={brief(self.max_length)} must be a whole number of at least 1")

    def __str__(self) -> str:
        """As in a call."""
        return f"text({self.max_length}{', missing=True' if self.missing else ''})"

    @property
    def dtype(self) -> str:
        """None of its own."""
        return "object"

    def ends(self) -> tuple[Any, ...]:
        """The longest and the empty one."""
        return "z" * min(self.max_length, 1000), ""

    def inside(self, end: Any) -> Any:
        """The end itself."""
        return end

    def odd(self) -> tuple[Any, ...]:
        """None where it may come, quotes, line ends, and other letters."""
        return (*([None] if self.missing else []), *(v for v in ODD if len(v) <= self.max_length))

    def middle(self) -> str:
        """A short one."""
        return "a"

    def draw(self, rng: np.random.Generator) -> str:
        """Lower-case letters."""
        length = int(rng.integers(1, min(self.max_length, 8), endpoint=True))
        return "".join(chr(97 + int(letter)) for letter in rng.integers(26, size=length))

    def near(self, value: str | None) -> Iterator[Any]:
        """Other texts of all kinds."""
        yield from (*self.ends(), *self.odd())

    def simpler(self, value: str | None) -> Iterator[str]:
        """Shorter ones."""
        for other in dict.fromkeys(["", "a", (value or "")[: len(value or "") // 2]]):
            if value is None or len(other) < len(value):
                yield other

    def read(self, value: Any) -> Any:
        """The text itself; NaN, as a column of a DataFrame has it for None, is None."""
        value = plain(value)
        if value is None or value != value:
            return None if self.missing else NOT_IN_DOMAIN
        return value if type(value) is str and len(value) <= self.max_length else NOT_IN_DOMAIN

    def to_json(self) -> dict[str, Any]:
        """As in `Domain`."""
        return {"text": self.max_length, "missing": self.missing}


def categories(*values: Any, other: bool = False, missing: bool = False) -> Categories:
    """One of these values; see `Categories`. Raises `InvalidNeighbours`."""
    return Categories(values=tuple(map(plain, values)), other=other, missing=missing)


def flags(*, missing: bool = False) -> Categories:
    """False or True."""
    return Categories(values=(False, True), missing=missing)


def text(max_length: int = 20, *, missing: bool = False) -> Text:
    """Texts of at most so many characters; see `Text`. Raises `InvalidNeighbours`."""
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


#: A record inside: the values of its fields in order, nesting left out.
Record = tuple[Any, ...]
#: Fields of a record and levels of nesting that a file may hold.
MOST_FIELDS: Final = 10_000
DEEPEST: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """A record's structure: a domain alone (`names` is None and there is one part), or parts by position or by name.

    A part is a `Domain` or `Fields` again. `made`: the class of records where it is derived from the kind's own, as a
    named tuple is.
    """

    parts: tuple["Domain | Fields", ...]
    kind: str = "value"  # "value", "tuple", "list" or "dict"
    names: tuple[str, ...] = ()
    made: Any = None

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains of the flat record."""
        found: list[Domain] = []
        for part in self.parts:
            found += part.domains if isinstance(part, Fields) else [part]
        return tuple(found)

    @property
    def paths(self) -> tuple[str, ...]:
        """What people call the values of the flat record."""
        labels = self.names if self.kind == "dict" else [f"field {k + 1}" for k in range(len(self.parts))]
        labels = ["value"] if self.kind == "value" else labels
        found: list[str] = []
        for label, part in zip(labels, self.parts, strict=True):
            inner = part.paths if isinstance(part, Fields) else ("",)
            found += [f"{label} {path}".strip() for path in inner]
        return tuple(found)

    def __str__(self) -> str:
        """As it was written."""
        if self.kind == "dict":
            return "{" + ", ".join(f"{name!r}: {part}" for name, part in zip(self.names, self.parts, strict=True)) + "}"
        inside = ", ".join(map(str, self.parts))
        if self.kind == "tuple":
            return f"({inside}{',' if len(self.parts) == 1 else ''})"
        return f"[{inside}]" if self.kind == "list" else inside

    def build(self, record: Record) -> Any:
        """The record as a user's code sees it."""
        return self._build(iter(record))

    def _build(self, values: Iterator[Any]) -> Any:
        built = [part._build(values) if isinstance(part, Fields) else next(values) for part in self.parts]
        if self.kind == "dict":
            return (self.made or dict)(zip(self.names, built, strict=True))
        if self.kind == "tuple":
            return getattr(self.made, "_make", self.made or tuple)(built)
        if self.kind == "list":
            return built if self.made is None else self.made(built)
        return built[0]

    def read(self, record: Any) -> Record | None:
        """The flat record, or None for what is none of this structure and these domains."""
        if self.kind == "dict":
            if not isinstance(record, Mapping) or list(record) != list(self.names):
                return None
            values = list(record.values())
        elif self.kind != "value":
            kind = self.made or (tuple if self.kind == "tuple" else list)
            if type(record) is not kind or len(record) != len(self.parts):
                return None
            values = list(record)
        else:
            values = [record]
        flat: list[Any] = []
        for part, value in zip(self.parts, values, strict=True):
            if isinstance(part, Fields):
                inner = part.read(value)
                if inner is None:
                    return None
                flat += inner
            else:
                flat.append(part.read(value))
                if flat[-1] is NOT_IN_DOMAIN:
                    return None
        return tuple(flat)

    def middle(self) -> Record:
        """An ordinary record."""
        return tuple(domain.middle() for domain in self.domains)

    def draw(self, rng: np.random.Generator, n: int) -> list[Record]:
        """So many records as real data may hold them."""
        domains = self.domains
        return [tuple(domain.draw(rng) for domain in domains) for _ in range(n)]

    def to_json(self) -> dict[str, Any] | None:
        """The structure as JSON values; None where a domain cannot be written."""
        parts = [part.to_json() for part in self.parts]
        if self.made is not None or any(part is None for part in parts):
            return None
        if self.kind == "value":
            return parts[0]
        return {self.kind: dict(zip(self.names, parts, strict=True)) if self.kind == "dict" else parts}


def fields_of(given: Any) -> Fields:
    """The structure that a domain, or tuples and dicts of domains, describe. Raises `InvalidNeighbours`."""
    if isinstance(given, Fields):
        return given
    part = _part(given, DEEPEST, "")
    fields = part if isinstance(part, Fields) else Fields(parts=(part,))
    if not 0 < len(fields.domains) <= MOST_FIELDS:
        raise InvalidNeighbours(f"domain {brief(given)} must have from 1 to {MOST_FIELDS} fields")
    return fields


def _part(given: Any, levels: int, where: str) -> Domain | Fields:
    """A part of a record; `where` names it in messages: nothing for the whole."""
    if not levels:
        raise InvalidNeighbours(f"a domain is nested deeper than {DEEPEST} levels")
    if isinstance(given, Fields):
        return given.parts[0] if given.kind == "value" else given
    if isinstance(given, Mapping):
        if not all(isinstance(name, str) for name in given):
            raise InvalidNeighbours(f"domain {brief(given)}: the names of its fields must be texts")
        return Fields(
            kind="dict",
            names=tuple(given),
            parts=tuple(_part(v, levels - 1, f" of {name!r}") for name, v in given.items()),
        )
    if where and isinstance(given, tuple | list) and given and all(isinstance(end, int | float) for end in given):
        how = (
            f"integers({given[0]}, {given[-1]})" if all(isinstance(end, int) for end in given) else "numbers(low, high)"
        )
        raise InvalidNeighbours(
            f"domain{where} {brief(given)} must be a domain: for a range give {how}, for a few values categories(…)"
        )
    if isinstance(given, tuple | list):
        kind = "tuple" if isinstance(given, tuple) else "list"
        return Fields(kind=kind, parts=tuple(_part(v, levels - 1, where) for v in given))
    methods = ("ends", "middle", "draw", "read")
    if isinstance(given, type) or not all(callable(getattr(given, name, None)) for name in methods):
        raise InvalidNeighbours(
            f"domain{where} {brief(given)} must be numbers(low, high), integers(low, high), categories(…), "
            "flags(), text(…), a tuple or a dict of such, like(examples), or a hypothesis strategy"
        )
    domain: Domain = given
    return domain


def fields_from_json(value: Any, levels: int = DEEPEST) -> Fields:
    """Build a structure from parsed JSON that nobody has checked. Raises `InvalidNeighbours`."""
    return fields_of(_read(value, levels))


def _read(value: Any, levels: int) -> Any:
    if not levels:
        raise InvalidNeighbours(f"a domain is nested deeper than {DEEPEST} levels")
    if not isinstance(value, Mapping):
        raise InvalidNeighbours(f"domain {brief(value)} must be an object")
    keys = set(value)
    if keys == {"tuple"} and isinstance(value["tuple"], list):
        return tuple(_read(part, levels - 1) for part in value["tuple"])
    if keys == {"list"} and isinstance(value["list"], list):
        return [_read(part, levels - 1) for part in value["list"]]
    if keys == {"dict"} and isinstance(value["dict"], Mapping):
        return {name: _read(part, levels - 1) for name, part in value["dict"].items()}
    for name, (others, make) in _READERS.items():
        if keys == {name, *others}:
            return make(value[name], {other: value[other] for other in others})
    raise InvalidNeighbours(
        f"domain {brief(value)} must hold one of tuple, list, dict, {', '.join(_READERS)}, and its settings"
    )


def _numbers(ends: Any, settings: dict[str, Any]) -> Numbers:
    return numbers(*_two(ends), **settings)


def _integers(ends: Any, settings: dict[str, Any]) -> Integers:
    return integers(*_two(ends), **settings)


def _categories(values: Any, settings: dict[str, Any]) -> Categories:
    if not isinstance(values, list) or not values:
        raise InvalidNeighbours(f"categories={brief(values)} must be a list of values")
    return Categories(values=tuple(values), **settings)


def _text(max_length: Any, settings: dict[str, Any]) -> Text:
    return Text(max_length=max_length, **settings)


def _two(ends: Any) -> tuple[Any, Any]:
    if not isinstance(ends, list) or len(ends) != 2:
        raise InvalidNeighbours(f"the ends {brief(ends)} must be a list of two numbers")
    return ends[0], ends[1]


#: Of each domain: the key that holds its values, the keys of its settings, and what builds it.
_READERS: Final[dict[str, tuple[tuple[str, ...], Callable[[Any, dict[str, Any]], Domain]]]] = {
    "numbers": (("clipped", "missing"), _numbers),
    "integers": (("clipped", "missing"), _integers),
    "categories": (("other", "missing"), _categories),
    "text": (("missing",), _text),
}
