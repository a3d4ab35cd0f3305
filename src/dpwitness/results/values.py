"""Parameters of a mechanism as JSON and back, unchanged.

JSON has no infinities, no NaN, no tuples and no arrays. What it has stands for itself, texts included; the rest is an
object with one key:

    {"float": "inf"}, {"float": "-inf"}, {"float": "nan"}
    {"tuple": [1, 2]}
    {"dict": {"name": 1}}
    {"array": [[1.0, {"float": "inf"}]], "dtype": "float64"}
    {"object": "<function f>"}      what no file can hold; it says so when it is read back
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

__all__ = ["Unreadable", "shown", "value_from_json", "value_to_json"]

#: Deeper nesting is not written: it would be a list that holds itself.
DEEPEST: Final = 20
#: Letters of the text that stands for what no file can hold.
LONGEST: Final = 200
_FLOATS: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_DTYPES: Final = frozenset(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a parameter that a file could not hold; `text` is how it looked."""

    text: str

    def __repr__(self) -> str:
        return self.text


def value_to_json(value: Any, depth: int = 0) -> Any:
    """A parameter as JSON values; see the module for their form."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(float(value))}
    if value is None or type(value) in (bool, int, float) or (type(value) is str and _has_utf8(value)):
        return value
    if depth < DEEPEST:
        if type(value) is list:
            return [value_to_json(item, depth + 1) for item in value]
        if type(value) is tuple:
            return {"tuple": [value_to_json(item, depth + 1) for item in value]}
        if type(value) is dict and all(type(name) is str and _has_utf8(name) for name in value):
            return {"dict": {name: value_to_json(item, depth + 1) for name, item in value.items()}}
        if type(value) is np.ndarray and value.dtype.name in _DTYPES:
            return {"array": value_to_json(value.tolist()), "dtype": value.dtype.name}
    return {"object": value.text if isinstance(value, Unreadable) else ascii(value)[:LONGEST]}


def _has_utf8(text: str) -> bool:
    """Whether a text can be written to a file: half of a surrogate pair cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def value_from_json(value: Any) -> Any:
    """Build a parameter from parsed JSON that nobody has checked. Raises `ValueError`; runs no code of the file."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value!r} must be written as {{'float': '{value!r}'}}")
        return value
    if isinstance(value, list):
        return [value_from_json(item) for item in value]
    if not isinstance(value, Mapping):
        raise ValueError("it must be a number, a text, a list or an object with one key")
    match dict(value):
        case {"float": str(name), **rest} if not rest and name in _FLOATS:
            return _FLOATS[name]
        case {"tuple": list(items), **rest} if not rest:
            return tuple(value_from_json(item) for item in items)
        case {"dict": dict(items), **rest} if not rest:
            return {name: value_from_json(item) for name, item in items.items()}
        case {"array": entries, "dtype": str(name), **rest} if not rest and name in _DTYPES:
            return np.array(value_from_json(entries), dtype=name)
        case {"object": str(text), **rest} if not rest:
            return Unreadable(text)
    raise ValueError("an object must have the one key float, tuple, dict, array or object")


def shown(value: Any) -> Any:
    """A parameter as a JSON value for people; infinities, and what JSON cannot hold, are texts."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, bool | int | float | str | type(None)) else repr(value)
