"""JSON of values of any kind, such as parameters and inputs of a mechanism, and back, unchanged.

JSON lacks infinities, NaN, tuples and arrays. Values that JSON has are written as such; any other value is an object::

    {"float": "inf"}, {"float": "-inf"}, {"float": "nan"}, {"float": "-0.0"}
    {"tuple": [1, 2]}, {"set": [1, 2]}, {"frozenset": [1, 2]}
    {"dict": {"name": 1}}, or {"items": [[1, "one"], [2, "two"]]} where a name is not a text
    {"bytes": "AAEC"} in base 64
    {"scalar": 1, "dtype": "int8"}  of NumPy
    {"array": [[1.0, {"float": "inf"}]], "dtype": "float64"}, and "shape" for an array of several axes without entries
    {"dataframe": [["age", "int64", [31, 47]]], "index": INDEX}
    {"series": [31, 47], "dtype": "int64", "name": "age", "index": INDEX}
    {"table": "polars", "columns": [["age", "Int64", [31, 47]]]}, or "polars-lazy"
    {"object": "<function f>"}      a value that no file can hold; it is read back as `UnreadableValue`

INDEX is `{"range": [0, 2, 1], "name": null}` or `{"labels": ["a", "b"], "dtype": "str", "name": "id"}`. A dtype is its
name, or `{"categories": ["a", "b"], "dtype": "str", "ordered": false}`, whose values are places in the categories.
Times and differences of times are integers in the unit of the dtype's name, in UTC if there is a time zone; a missing
time is null. Types of Polars have the library's own names, types with settings are objects such as
`{"Datetime": ["us", null]}`.
A table of Arrow, and a DataFrame with an index of several levels, are written as objects that no file can hold.

The memory order and byte order of an array, the `attrs` of a DataFrame and the `freq` of its index are not written;
files of earlier releases may hold them.
"""

import base64
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from dpwitness.checks import as_text, too_deep
from dpwitness.frames import LAZY_POLARS, PANDAS, POLARS, frames_of, is_series

#: The floats that JSON lacks, and −0.0, by their names in files.
_FLOATS_BY_NAME: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan, "-0.0": -0.0}
#: The dtypes of arrays and scalars in files.
_ARRAY_DTYPES: Final = frozenset(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
)
#: The types of tuples and sets, by their names in files.
_CONTAINERS_BY_NAME: Final = {"tuple": tuple, "set": set, "frozenset": frozenset}


@dataclass(frozen=True, slots=True)
class UnreadableValue:
    """The mark of a value that its file could not hold; `text`: the text of the value."""

    text: str

    def __repr__(self) -> str:
        return self.text


def value_to_json(value: object, depth: int = 0) -> Any:
    """A value as JSON values; see the module for their form."""
    if isinstance(value, np.generic) and value.dtype.name in _ARRAY_DTYPES:
        return {"scalar": value_to_json(value.item()), "dtype": value.dtype.name}
    if type(value) is float and (not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)):
        return {"float": repr(value)}
    if value is None or type(value) in (bool, int, float) or (type(value) is str and _has_utf8(value)):
        return value
    written = _container_to_json(value, depth + 1) if depth < 20 else None  # a deeper list may hold itself
    if written is not None:
        return written
    text = value.text if isinstance(value, UnreadableValue) else as_text(value)
    return {"object": text.encode("ascii", "backslashreplace").decode()[:200]}


def _container_to_json(value: Any, depth: int) -> object:
    """A container of values, or bytes, as JSON values; None for any other value."""
    kind = type(value)
    if kind is list:
        return [value_to_json(item, depth) for item in value]
    if kind in (set, frozenset):  # sorted, so that every process writes the same order
        items = sorted((value_to_json(item, depth) for item in value), key=repr)
        return {kind.__name__: items}
    if kind is tuple:
        return {"tuple": [value_to_json(item, depth) for item in value]}
    if kind is dict and all(type(name) is str and _has_utf8(name) for name in value):
        return {"dict": {name: value_to_json(item, depth) for name, item in value.items()}}
    if kind is dict:
        return {"items": [[value_to_json(part, depth) for part in item] for item in value.items()]}
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is np.ndarray and value.dtype.name in _ARRAY_DTYPES:
        # Empty lists do not determine the shape of an array of several axes.
        more = {"shape": list(value.shape)} if not value.size and value.ndim != 1 else {}
        return {"array": value_to_json(value.tolist()), "dtype": value.dtype.name, **more}
    frames = PANDAS if is_series(value) else frames_of(value)
    return None if frames is None else frames.to_json(value, partial(value_to_json, depth=depth))


def _has_utf8(text: str) -> bool:
    """Whether a text can be written to a file: half of a surrogate pair cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def value_from_json(value: object) -> object:
    """Build a value from unchecked JSON. Raises `ValueError`; runs no code of the file."""
    if too_deep(value):
        raise ValueError("it is nested too deep")
    return _value(value)


def _value(value: object) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value!r} must be written as {{'float': '{value!r}'}}")
        return value
    if isinstance(value, list):
        return [_value(item) for item in value]
    if not isinstance(value, Mapping):
        raise ValueError("it must be a number, a text, a list or an object with one key")
    match dict(value):
        case {"float": str(name), **rest} if not rest and name in _FLOATS_BY_NAME:
            return _FLOATS_BY_NAME[name]
        case {"dict": dict(items), **rest} if not rest:
            return {name: _value(item) for name, item in items.items()}
        case {"array": entries, "dtype": str(name), **rest} if rest in ({}, {"order": "F"}):
            return _array(_value(entries), name, rest.get("order", "C"))
        case {"array": list(), "dtype": str(name), "shape": list(shape), **rest} if not rest:
            return _empty(shape, _array_dtype(name))
        case {"scalar": item, "dtype": str(name), **rest} if not rest and name in _ARRAY_DTYPES:
            return _scalar(_value(item), name)
        case {"object": str(text), **rest} if not rest:
            return UnreadableValue(text)
        case {"bytes": str(letters), **rest} if not rest:
            return base64.b64decode(letters, validate=True)
        case {"items": list(items), **rest} if not rest:
            return _dict(items)
        case {"series": list()} | {"dataframe": list()}:
            return PANDAS.from_json(value, _value)
        case {"table": str(form), "columns": list(), **rest} if not rest:
            known = {frames.form: frames for frames in (POLARS, LAZY_POLARS)}
            if form not in known:
                raise ValueError(f"a table must be one of {', '.join(known)}, not {form!r:.40}")
            return known[form].from_json(value, _value)
    for name, kind in _CONTAINERS_BY_NAME.items():
        if set(value) == {name} and isinstance(value[name], list):
            return _hashable(kind, [_value(item) for item in value[name]])
    raise ValueError(
        "an object must have one of the keys float, tuple, set, frozenset, dict, items, bytes, scalar, array, "
        "dataframe, series, table or object, and nothing else"
    )


def _scalar(value: object, dtype: str) -> Any:
    if isinstance(value, bool | int | float):
        with np.errstate(over="ignore"), suppress(ValueError, OverflowError):
            made = np.array(value, dtype)
            if repr(made.item()) == repr(value):
                return made[()]
    raise ValueError(f"a scalar of dtype {dtype} cannot be {value!r:.40}")


def _array(entries: object, name: str, order: Any) -> Any:
    try:
        return np.array(entries, _array_dtype(name), order=order)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"an array of dtype {name!r:.40} cannot hold these entries: {error}") from error


def _array_dtype(name: str) -> np.dtype[Any]:
    """The dtype of an array in a file; earlier releases also wrote a byte order, such as ">i4"."""
    if name not in _ARRAY_DTYPES and name.strip("<>") not in {np.dtype(known).str[1:] for known in _ARRAY_DTYPES}:
        raise ValueError(f"an array cannot have the dtype {name!r:.40}: give one of {', '.join(sorted(_ARRAY_DTYPES))}")
    return np.dtype(name)


def _empty(shape: list[object], dtype: np.dtype[Any]) -> Any:
    if 0 not in shape or not all(type(length) is int and 0 <= length < 1 << 31 for length in shape):
        raise ValueError("the shape of an array without entries must be a list of lengths, one of them 0")
    return np.zeros(shape, dtype)


def _hashable(kind: type, items: list[object]) -> object:
    try:
        return kind(items)
    except TypeError as error:
        raise ValueError(f"a {kind.__name__} cannot hold a list, a dict or a set") from error


def _dict(items: list[Any]) -> dict[object, object]:
    if not all(isinstance(item, list) and len(item) == 2 for item in items):
        raise ValueError("items must be a list of pairs, each a name and its value")
    try:
        return {_value(name): _value(item) for name, item in items}
    except TypeError as error:
        raise ValueError("a name of a dict cannot be a list, a dict or a set") from error


def unreadable_in(value: object) -> bool:
    """Whether a value that was read from a file holds an `UnreadableValue`."""
    if isinstance(value, UnreadableValue):
        return True
    if isinstance(value, Mapping):
        return any(unreadable_in(part) for item in value.items() for part in item)
    return isinstance(value, list | tuple | set | frozenset) and any(unreadable_in(item) for item in value)


def shown(value: object) -> object:
    """A parameter as a JSON value for people; numbers that are not finite, and values that JSON lacks, are texts."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, bool | int | float | str | type(None)) else as_text(value)
