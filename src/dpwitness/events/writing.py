"""The parts of an event as text for people, and as JSON."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import brief, items, number, whole
from dpwitness.errors import InvalidParameter
from dpwitness.events.encoding import NESTED, SYMBOL, TEXT, TEXTS, is_exception

__all__ = [
    "COLUMNS",
    "EXACT",
    "LARGEST",
    "Noun",
    "column",
    "column_from_json",
    "edge",
    "finite_from_json",
    "list_from_json",
    "number_from_json",
    "number_text",
    "number_to_json",
    "object_from_json",
    "place_text",
    "row_of_numbers",
]

#: The largest finite number.
LARGEST = float(np.finfo(np.float64).max)
#: Columns of outcomes: these have 10,000 entries at most, and rows are made as wide as an event asks.
COLUMNS = 1 << 14
#: Below this all whole numbers are exact.
EXACT = 2.0**53
INFINITIES = {"inf": math.inf, "-inf": -math.inf}
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


class Noun(str):
    """What an entry of an outcome is called, and the names of those entries that have one of their own."""

    __slots__ = ("places",)
    places: Mapping[int, str]

    def __new__(cls, noun: str, places: Mapping[int, str]) -> "Noun":
        """Make it of a noun, such as "answer", and of names by coordinate, such as "column 'age', row 2"."""
        made = super().__new__(cls, noun)
        made.places = places
        return made


def place_text(coordinate: int, noun: str) -> str:
    """An entry by its place: "first answer", "answer 11", or its name in a `Noun`."""
    name = getattr(noun, "places", {}).get(coordinate)
    if name is not None:
        return str(name)
    return f"{ORDINALS[coordinate]} {noun}" if coordinate < len(ORDINALS) else f"{noun} {coordinate + 1}"


def number_text(value: float) -> str:
    """A whole number in full, another to four digits; what is no number by its name."""
    if value <= NESTED and value not in TEXTS and value != -math.inf:
        if value > TEXT:
            return f"list of {round((value / NESTED - 1) * 2**32)}"
        return "another text" if value > SYMBOL else "an exception" if is_exception(value) else "another kind of value"
    whole = math.isfinite(value) and value == math.floor(value) and abs(value) < EXACT
    return TEXTS.get(value) or (f"{value:.0f}" if whole else f"{value:.4g}").replace("-", "−").replace("inf", "∞")


def column(value: Any) -> int:
    """A column number, from 0. Raises `InvalidParameter`."""
    return value if type(value) is int and 0 <= value < COLUMNS else whole("coordinate", value, 0, COLUMNS - 1)


def edge(name: str, value: Any) -> float:
    """A number where outcomes begin or end, an infinity among them. Raises `InvalidParameter`, for NaN too."""
    found: float = value if type(value) in (float, int) else number(name, value)
    if found != found:
        raise InvalidParameter(f"{name}=nan must be a number")
    return found


def row_of_numbers(name: str, value: Any) -> NDArray[np.float64]:
    """A list of numbers as an array of one axis. Raises `InvalidParameter` for anything else."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.ndim == 1:
        return np.asarray(value, np.float64)
    return np.array([number(f"an entry of {name}", entry) for entry in items(name, value)], np.float64)


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
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < COLUMNS:
        raise ValueError(f"{value!r} must be a column number")
    return value


def list_from_json(value: object) -> Sequence[object]:
    """A list. Raises `ValueError` for anything else."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"{brief(value)} must be a list")
    return value


def object_from_json(value: object) -> Mapping[str, object]:
    """An object. Raises `ValueError` for anything else."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{brief(value)} must be an object")
    return value
