"""Domains without a scale: categories and flags, and text."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.datasets.domain import NOT_IN_DOMAIN, key_of, plain, required

__all__ = ["DTYPES", "Categories", "Text", "categories", "flags", "text"]

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
