"""Values of any kind as JSON and back, unchanged: parameters of a mechanism, and its inputs.

JSON has no infinities, no NaN, no tuples and no arrays. What it has stands for itself, texts included; the rest is an
object with one key:

    {"float": "inf"}, {"float": "-inf"}, {"float": "nan"}, {"float": "-0.0"}
    {"tuple": [1, 2]}, {"set": [1, 2]}, {"frozenset": [1, 2]}
    {"dict": {"name": 1}}, {"items": [[1, "one"], [2, "two"]]} where names are no texts
    {"bytes": "AAEC"} in base 64
    {"array": [[1.0, {"float": "inf"}]], "dtype": "float64"}, and of several axes without entries their "shape": [0, 2]
    {"dataframe": [["age", "int64", [31, 47]]], "index": [0, 1]}
    {"series": [31, 47], "dtype": "int64", "name": "age", "index": [0, 1]}
    {"object": "<function f>"}      what no file can hold; it says so when it is read back
"""

import base64
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpwitness.checks import as_text

__all__ = ["Unreadable", "shown", "unreadable_in", "value_from_json", "value_to_json"]

#: Deeper nesting is not written: it would be a list that holds itself.
DEEPEST: Final = 20
#: Letters of the text that stands for what no file can hold.
LONGEST: Final = 200
_FLOATS: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan, "-0.0": -0.0}
_DTYPES: Final = frozenset(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
)
#: Dtypes of columns that pandas makes again from a list of values and the dtype's name.
_COLUMNS: Final = _DTYPES | {"object", "str", "string", "category", "boolean", "Int64", "Float64"}
_SEQUENCES: Final = {"tuple": tuple, "set": set, "frozenset": frozenset}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a value that a file could not hold; `text` is how it looked."""

    text: str

    def __repr__(self) -> str:
        return self.text


def value_to_json(value: Any, depth: int = 0) -> Any:
    """A value as JSON values; see the module for their form."""
    if isinstance(value, np.generic) and value.dtype.name in _DTYPES:
        value = value.item()
    if type(value) is float and (not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)):
        return {"float": repr(value)}
    if value is None or type(value) in (bool, int, float) or (type(value) is str and _has_utf8(value)):
        return value
    written = _container_to_json(value, depth + 1) if depth < DEEPEST else None
    if written is None:
        text = value.text if isinstance(value, Unreadable) else as_text(value)
        written = {"object": text.encode("ascii", "backslashreplace").decode()[:LONGEST]}
    return written


def _container_to_json(value: Any, depth: int) -> Any:
    """What holds other values, and bytes; None for anything else."""
    kind = type(value)
    if kind is list:
        return [value_to_json(item, depth) for item in value]
    if kind in (set, frozenset):  # in an order that is the same in every process
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
    if kind is np.ndarray and value.dtype.name in _DTYPES:
        shape = {} if value.size or value.ndim == 1 else {"shape": list(value.shape)}  # no entries, so no lists of them
        return {"array": value_to_json(value.tolist()), "dtype": value.dtype.name, **shape}
    return _table_to_json(value, depth)


def _table_to_json(value: Any, depth: int) -> Any:
    """A DataFrame or Series whose columns have one of the usual dtypes; None for anything else."""
    pandas = sys.modules.get("pandas")  # where nobody has imported it, this is none of its objects
    if pandas is None:
        return None
    if type(value) is pandas.Series and _writable(value):
        items = [value_to_json(item, depth) for item in value.tolist()]
        index = value_to_json(value.index.tolist(), depth)
        name = value_to_json(value.name, depth)
        return {"series": items, "dtype": value.dtype.name, "name": name, "index": index}
    if type(value) is pandas.DataFrame and all(_writable(column) for _, column in value.items()):
        columns = [
            [value_to_json(name, depth), column.dtype.name, [value_to_json(item, depth) for item in column.tolist()]]
            for name, column in value.items()
        ]
        return {"dataframe": columns, "index": value_to_json(value.index.tolist(), depth)}
    return None


def _writable(column: Any) -> bool:
    """Whether a column is made again from its values: of dtypes with settings of their own, only usual ones are."""
    return column.dtype.name in _COLUMNS and column.index.nlevels == 1


def _has_utf8(text: str) -> bool:
    """Whether a text can be written to a file: half of a surrogate pair cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def value_from_json(value: Any) -> Any:
    """Build a value from parsed JSON that nobody has checked. Raises `ValueError`; runs no code of the file."""
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
        case {"dict": dict(items), **rest} if not rest:
            return {name: value_from_json(item) for name, item in items.items()}
        case {"array": entries, "dtype": str(name), **rest} if not rest and name in _DTYPES:
            return np.array(value_from_json(entries), dtype=name)
        case {"array": list(), "dtype": str(name), "shape": list(shape), **rest} if not rest and name in _DTYPES:
            return _empty(shape, name)
        case {"object": str(text), **rest} if not rest:
            return Unreadable(text)
        case {"bytes": str(letters), **rest} if not rest:
            return base64.b64decode(letters, validate=True)
        case {"items": list(items), **rest} if not rest:
            return _dict(items)
        case {"series": list()} | {"dataframe": list()}:
            return _table(value)
    for name, kind in _SEQUENCES.items():
        if set(value) == {name} and isinstance(value[name], list):
            return _hashable(kind, [value_from_json(item) for item in value[name]])
    raise ValueError(
        "an object must have one of the keys float, tuple, set, frozenset, dict, items, bytes, array, dataframe, "
        "series or object, and nothing else"
    )


def _empty(shape: list[Any], dtype: str) -> Any:
    """An array of several axes without entries."""
    if 0 not in shape or not all(type(length) is int and 0 <= length < 1 << 31 for length in shape):
        raise ValueError("the shape of an array without entries must be a list of lengths, one of them 0")
    return np.zeros(shape, dtype)


def _hashable(kind: type, items: list[Any]) -> Any:
    try:
        return kind(items)
    except TypeError as error:
        raise ValueError(f"a {kind.__name__} cannot hold a list, a dict or a set") from error


def _dict(items: list[Any]) -> dict[Any, Any]:
    if not all(isinstance(item, list) and len(item) == 2 for item in items):
        raise ValueError("items must be a list of pairs, each a name and its value")
    try:
        return {value_from_json(name): value_from_json(item) for name, item in items}
    except TypeError as error:
        raise ValueError("a name of a dict cannot be a list, a dict or a set") from error


def _table(value: Mapping[str, Any]) -> Any:
    """A DataFrame or Series."""
    import pandas  # type: ignore[import-untyped]  # no stubs

    kind, keys = ("series", {"series", "dtype", "name", "index"}) if "series" in value else ("dataframe", _FRAME)
    if set(value) != keys:
        raise ValueError(f"a {kind} must have the keys {', '.join(sorted(keys))}, and nothing else")
    columns = [[value["name"], value["dtype"], value["series"]]] if kind == "series" else value["dataframe"]
    if not all(
        isinstance(column, list) and len(column) == 3 and column[1] in _COLUMNS and isinstance(column[2], list)
        for column in columns
    ):
        raise ValueError(f"a column must have a name, one of the dtypes {', '.join(sorted(_COLUMNS))}, and a list")
    index = pandas.Index(value_from_json(value["index"]))
    names = [value_from_json(name) for name, _, _ in columns]
    try:
        made = [
            pandas.Series(value_from_json(items), dtype=dtype, index=index, name=name)
            for name, (_, dtype, items) in zip(names, columns, strict=True)
        ]
        if kind == "series":
            return made[0]
        frame = pandas.DataFrame(dict(enumerate(made)), index=index)
        frame.columns = pandas.Index(names)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a {kind} cannot be made of these columns: {error}") from error
    return frame


_FRAME: Final = {"dataframe", "index"}


def unreadable_in(value: Any) -> bool:
    """Whether what was read from a file holds something that the file could not hold."""
    if isinstance(value, Unreadable):
        return True
    if isinstance(value, Mapping):
        return any(unreadable_in(part) for item in value.items() for part in item)
    return isinstance(value, list | tuple | set | frozenset) and any(unreadable_in(item) for item in value)


def shown(value: Any) -> Any:
    """A parameter as a JSON value for people; infinities, and what JSON cannot hold, are texts."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, bool | int | float | str | type(None)) else as_text(value)
