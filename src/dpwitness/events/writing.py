"""The parts of an event as text for people, and as JSON."""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from dpwitness.events.encoding import NESTED, SYMBOL, TEXT, TEXTS, is_code, is_exception
from dpwitness.events.event import Event

__all__ = [
    "EXACT",
    "LARGEST",
    "Noun",
    "as_noun",
    "codes_in",
    "column_from_json",
    "finite_from_json",
    "list_from_json",
    "number_from_json",
    "number_text",
    "number_to_json",
    "object_from_json",
    "place_text",
    "places_text",
]

#: The largest finite number.
LARGEST = float(np.finfo(np.float64).max)
#: Below this all whole numbers are exact.
EXACT = 2.0**53
INFINITIES = {"inf": math.inf, "-inf": -math.inf}
#: Entries that a text names of several.
NAMED = 8
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


class Noun(str):
    """What an entry of an outcome is called, and what is known of the entries of a mechanism's outcomes.

    `places`: names by coordinate, such as "column 'age', row 2", where outcomes have keys. `flags`: whether 0 and 1 are
    the answers ⊥ and ⊤. `mixed`: the coordinates at which there is more than numbers: None, NaN, text.
    """

    __slots__ = ("flags", "mixed", "places")
    places: Mapping[int, str]
    flags: bool
    mixed: Container[int]

    def __new__(
        cls, noun: str, places: Mapping[int, str] = MappingProxyType({}), *, flags: bool = False,
        mixed: Container[int] = (),
    ) -> "Noun":  # fmt: skip
        """Make it of a noun, such as "answer"."""
        made = super().__new__(cls, noun)
        made.places, made.flags, made.mixed = places, flags, mixed
        return made


def as_noun(noun: str) -> Noun:
    """A noun of which nothing more is known."""
    return noun if isinstance(noun, Noun) else Noun(noun)


def place_text(coordinate: int, noun: str) -> str:
    """An entry by its place: "first answer", "answer 11", or its name in a `Noun`."""
    places = as_noun(noun).places
    if coordinate in places:
        return places[coordinate]
    return f"{ORDINALS[coordinate]} {noun}" if coordinate < len(ORDINALS) else f"{noun} {coordinate + 1}"


def places_text(width: int, noun: str) -> str:
    """The first so many entries, by their names where they have any."""
    if width == 1:
        return place_text(0, noun)
    places = as_noun(noun).places
    if not places:
        return f"the first {width} {noun}s"
    more = f", … ({width} entries)" if width > NAMED else ""
    return f"({', '.join(place_text(c, noun) for c in range(min(width, NAMED)))}{more})"


def number_text(value: float) -> str:
    """A number with as many digits as it takes to compare with it; what is no number by its name."""
    if value <= NESTED and value not in TEXTS and value != -math.inf:
        if value > TEXT:
            return f"list of {round((value / NESTED - 1) * 2**32)}"
        return "another text" if value > SYMBOL else "an exception" if is_exception(value) else "another kind of value"
    if value in TEXTS:
        return TEXTS[value]
    value = float(value)
    short = f"{value:.0f}" if math.isfinite(value) and value.is_integer() and abs(value) < EXACT else f"{value:.4g}"
    return (short if float(short) == value else repr(value)).replace("-", "−").replace("inf", "∞")


def codes_in(event: Event) -> set[float]:
    """The codes of texts, symbols and exceptions that an event compares with."""

    def numbers(value: object) -> Iterator[float]:
        if isinstance(value, float):
            yield value
        elif isinstance(value, Mapping):
            for item in value.values():
                yield from numbers(item)
        elif isinstance(value, list | tuple):
            for item in value:
                yield from numbers(item)

    return {number for number in numbers(event.to_json()) if is_code(number)}


def number_to_json(value: float) -> float | str:
    """A number as JSON has it, which knows no infinities: they are the texts "inf" and "-inf"."""
    return value if math.isfinite(value) else "inf" if value > 0 else "-inf"


def number_from_json(value: object) -> float:
    """What `number_to_json` wrote. Raises `ValueError` for anything else."""
    return INFINITIES[value] if isinstance(value, str) and value in INFINITIES else finite_from_json(value)


def finite_from_json(value: object) -> float:
    """A finite number. Raises `ValueError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} must be a finite number")
    return float(value)


def column_from_json(value: object) -> int:
    """A column number, from 0. Raises `ValueError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1_000_000:
        raise ValueError(f"{value!r} must be a column number")
    return value


def list_from_json(value: object) -> Sequence[object]:
    """A list. Raises `ValueError` for anything else."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"{value!r:.80} must be a list")
    return value


def object_from_json(value: object) -> Mapping[str, object]:
    """An object. Raises `ValueError` for anything else."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r:.80} must be an object")
    return value
