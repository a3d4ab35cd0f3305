"""Values of any kind as JSON and back, unchanged: parameters and inputs of a mechanism.

JSON has no infinities, no NaN, no tuples and no arrays. What it has stands for itself, texts included; the rest is an
object with one key:

    {"float": "inf"}, {"float": "-inf"}, {"float": "nan"}, {"float": "-0.0"}
    {"tuple": [1, 2]}, {"set": [1, 2]}, {"frozenset": [1, 2]}
    {"dict": {"name": 1}}, {"items": [[1, "one"], [2, "two"]]} where names are no texts
    {"bytes": "AAEC"} in base 64
    {"scalar": 1, "dtype": "int8"}  of NumPy
    {"array": [[1.0, {"float": "inf"}]], "dtype": "float64"}, and of several axes without entries their "shape": [0, 2],
                                    of columns that lie one behind the other in memory "order": "F",
                                    and of the byte order of other machines "dtype": ">i4"
    {"dataframe": [["age", "int64", [31, 47]]], "index": INDEX}, and where they have any, "columns": INDEX, "attrs": {}
    {"series": [31, 47], "dtype": "int64", "name": "age", "index": INDEX}
    {"table": "polars", "columns": [["age", "Int64", [31, 47]]]}, or "polars-lazy", or "arrow" with any "metadata"
    {"object": "<function f>"}      what no file can hold; it says so when it is read back

INDEX is {"range": [0, 2, 1], "name": null} or {"labels": ["a", "b"], "dtype": "str", "name": "id"}, with "freq": "D" or
the like where times say that they are evenly spaced. A dtype is its name, or
{"categories": ["a", "b"], "dtype": "str", "ordered": false}, of which the values are places. Times and differences of
times are whole numbers of the unit in the dtype's name, in UTC where there is a time zone, and null where one is
missing. Types of Polars and Arrow are written as these name them, those with settings as {"Datetime": ["us", null]},
{"decimal128": [10, 2]} or {"dictionary": ["int8", "string", ["a", "b"], false]}.
"""

import base64
import math
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np

from dpwitness.checks import as_text, one_line, too_deep
from dpwitness.tables import TABLES, Schema, Tables, bytes_of, tables_of, texts_of

#: Deeper nesting is not written: it would be a list that holds itself.
DEEPEST: Final = 20
#: Letters of the text that stands for what no file can hold.
LONGEST: Final = 200
_FLOATS: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan, "-0.0": -0.0}
_DTYPES: Final = frozenset(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
)
#: Of arrays also those of a byte order that is not this machine's.
_ARRAYS: Final = _DTYPES | {order + np.dtype(name).str[1:] for name in _DTYPES for order in "<>"}
#: Dtypes of columns that pandas makes again from a list of values and the dtype's name.
_COLUMNS: Final = _DTYPES | {
    "object", "str", "string", "string[python]", "string[pyarrow]", "boolean", "Float32", "Float64",
    "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64",
}  # fmt: skip
#: Names of dtypes of times, and of differences of times.
_TIMES: Final = re.compile(r"datetime64\[(s|ms|us|ns)(, [\w/+:-]+)?\]|timedelta64\[(s|ms|us|ns)\]")
#: The keys of an index.
_INDEXES: Final = ({"range", "name"}, {"labels", "dtype", "name"}, {"labels", "dtype", "name", "freq"})
_SEQUENCES: Final = {"tuple": tuple, "set": set, "frozenset": frozenset}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a value that a file could not hold; `text` is how it looked."""

    text: str

    def __repr__(self) -> str:
        return self.text


def value_to_json(value: object, depth: int = 0) -> Any:
    """A value as JSON values; see the module for their form."""
    if isinstance(value, np.generic) and value.dtype.name in _DTYPES:
        return {"scalar": value_to_json(value.item()), "dtype": value.dtype.name}
    if type(value) is float and (not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)):
        return {"float": repr(value)}
    if value is None or type(value) in (bool, int, float) or (type(value) is str and _has_utf8(value)):
        return value
    written = _container_to_json(value, depth + 1) if depth < DEEPEST else None
    if written is not None:
        return written
    text = value.text if isinstance(value, Unreadable) else as_text(value)
    return {"object": text.encode("ascii", "backslashreplace").decode()[:LONGEST]}


def _container_to_json(value: Any, depth: int) -> object:
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
        more: dict[str, object] = {}
        if not value.size and value.ndim != 1:  # no entries, so no lists of them
            more["shape"] = list(value.shape)
        if value.flags.f_contiguous and not value.flags.c_contiguous:
            more["order"] = "F"
        name = value.dtype.name if value.dtype.isnative else value.dtype.str
        return {"array": value_to_json(value.tolist()), "dtype": name, **more}
    return _table_to_json(value, depth)


def _table_to_json(value: Any, depth: int) -> object:
    """A DataFrame or Series whose columns have one of the usual dtypes; None for anything else."""
    tables = tables_of(value)
    if tables is not None:
        return _columns_to_json(tables, tables.eager(value), depth)
    pandas = sys.modules.get("pandas")  # if it is not imported, this is none of its objects
    if pandas is None:
        return None
    if type(value) is pandas.Series:
        index, column = _index_to_json(value.index, depth), _column_to_json(value, depth)
        if index is None or column is None:
            return None
        return {"series": column[1], "dtype": column[0], "name": value_to_json(value.name, depth), "index": index}
    if type(value) is pandas.DataFrame:
        index, names = _index_to_json(value.index, depth), _index_to_json(value.columns, depth)
        columns = [_column_to_json(value.iloc[:, k], depth) for k in range(len(value.columns))]
        if index is None or names is None or None in columns:
            return None
        named = [
            [value_to_json(name, depth), *column] for name, column in zip(value.columns, columns, strict=True) if column
        ]
        usual = _index_to_json(pandas.Index(list(value.columns)), depth)
        more = {} if names == usual else {"columns": names}
        if value.attrs:
            more["attrs"] = value_to_json(dict(value.attrs), depth)
            if unreadable_in(value_from_json(more["attrs"])):
                return None
        return {"dataframe": named, "index": index, **more}
    return None


def _columns_to_json(tables: Tables, table: object, depth: int) -> dict[str, object] | None:
    """A table of Polars or Arrow; None where a column is of a type that is not made again from a file."""
    schema = tables.schema(table)
    if not schema.names and len(table):  # type: ignore[arg-type]  # rows without columns
        return None
    columns = []
    try:
        kinds = [*map(tables.kind_to_json, schema.kinds)]
        more = {"metadata": texts_of(schema.more)} if schema.more else {}
    except UnicodeDecodeError:  # metadata that is no text
        return None
    for name, kind, written, column in zip(schema.names, schema.kinds, kinds, tables.columns(table), strict=True):
        values = tables.entries(column, kind) if tables.times(kind) is None else tables.counts(column)
        entries = [str(v) if type(v) is Decimal else value_to_json(v, depth) for v in values]
        if written is None or any(isinstance(entry, dict) and "object" in entry for entry in entries):
            return None
        columns.append([name, written, entries])
    return {"table": tables.form, "columns": columns, **more}


def _index_to_json(index: Any, depth: int) -> dict[str, object] | None:
    """An index; None where it has several levels, or labels or a step that are not made again from a file."""
    import pandas  # type: ignore[import-untyped]  # no stubs

    name = value_to_json(index.name, depth)
    if isinstance(index, pandas.RangeIndex):
        return {"range": [index.start, index.stop, index.step], "name": name}
    column = _column_to_json(pandas.Series(index, dtype=index.dtype), depth) if index.nlevels == 1 else None
    if column is None or pandas.Index([], dtype=index.dtype).__class__ is not type(index):
        return None
    written = {"labels": column[1], "dtype": column[0], "name": name}
    step = getattr(index, "freq", None)
    if step is None:
        return written
    try:
        again = pandas.tseries.frequencies.to_offset(step.freqstr)
    except ValueError:  # its text is none that pandas reads
        again = None
    return {**written, "freq": step.freqstr} if again == step else None  # unlike of one's own holidays


def _column_to_json(column: Any, depth: int) -> tuple[object, list[object]] | None:
    """The dtype and the entries of a column; None for a dtype that is not made again from a file."""
    import pandas

    dtype = column.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        known = dtype.categories
        categories = _column_to_json(pandas.Series(known, dtype=known.dtype), depth)
        if categories is None:
            return None
        codes = column.cat.codes.tolist()
        return {"categories": categories[1], "dtype": categories[0], "ordered": bool(dtype.ordered)}, codes
    name = str(dtype) if dtype.name != "string" else f"string[{dtype.storage}]"
    if _TIMES.fullmatch(name):
        if pandas.api.types.pandas_dtype(name) != dtype:
            return None
        whole, missing = column.astype("int64").tolist(), column.isna().tolist()
        return name, [None if gone else entry for entry, gone in zip(whole, missing, strict=True)]
    if name not in _COLUMNS:
        return None
    entries = column.tolist()
    if dtype.name != "object":  # in an object column NA stands as it is
        entries = [None if entry is pandas.NA else entry for entry in entries]
    written = [value_to_json(entry, depth) for entry in entries]
    lost = any(isinstance(entry, dict) and "object" in entry for entry in written)
    return None if lost else (name, written)


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
        case {"float": str(name), **rest} if not rest and name in _FLOATS:
            return _FLOATS[name]
        case {"dict": dict(items), **rest} if not rest:
            return {name: _value(item) for name, item in items.items()}
        case {"array": entries, "dtype": str(name), **rest} if not rest and name in _ARRAYS:
            return np.array(_value(entries), dtype=name)
        case {"array": list(entries), "dtype": str(name), "order": "F", **rest} if not rest and name in _ARRAYS:
            return np.array(_value(entries), dtype=name, order="F")
        case {"array": list(), "dtype": str(name), "shape": list(shape), **rest} if not rest and name in _ARRAYS:
            return _empty(shape, name)
        case {"scalar": item, "dtype": str(name), **rest} if not rest and name in _DTYPES:
            return _scalar(_value(item), name)
        case {"object": str(text), **rest} if not rest:
            return Unreadable(text)
        case {"bytes": str(letters), **rest} if not rest:
            return base64.b64decode(letters, validate=True)
        case {"items": list(items), **rest} if not rest:
            return _dict(items)
        case {"series": list()} | {"dataframe": list()}:
            return _table(value)
        case {"table": str(form), "columns": list(columns), **rest} if set(rest) <= {"metadata"}:
            return _of_columns(form, columns, rest.get("metadata", {}))
    for name, kind in _SEQUENCES.items():
        if set(value) == {name} and isinstance(value[name], list):
            return _hashable(kind, [_value(item) for item in value[name]])
    raise ValueError(
        "an object must have one of the keys float, tuple, set, frozenset, dict, items, bytes, scalar, array, "
        "dataframe, series, table or object, and nothing else"
    )


def _scalar(value: object, dtype: str) -> Any:
    """A number or flag of NumPy."""
    if isinstance(value, bool | int | float):
        with np.errstate(over="ignore"), suppress(ValueError, OverflowError):
            made = np.array(value, dtype)
            if repr(made.item()) == repr(value):
                return made[()]
    raise ValueError(f"a scalar of dtype {dtype} cannot be {value!r:.40}")


def _empty(shape: list[object], dtype: str) -> Any:
    """An array of several axes without entries."""
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


def _table(value: Mapping[str, Any]) -> object:
    """A DataFrame or Series."""
    import pandas

    series = "series" in value
    kind, keys = ("series", {"series", "dtype", "name", "index"}) if series else ("dataframe", {"dataframe", "index"})
    if not keys <= set(value) <= keys | (set() if series else {"columns", "attrs"}):
        raise ValueError(f"a {kind} must have the keys {', '.join(sorted(keys))}, and nothing else")
    columns = [[value["name"], value["dtype"], value["series"]]] if series else value["dataframe"]
    if not all(isinstance(column, list) and len(column) == 3 for column in columns):
        raise ValueError("a column must have a name, a dtype and a list of values")
    try:
        index = _index(value["index"])
        names = [_value(name) for name, _, _ in columns]
        hash(tuple(names))  # what has no hash, as an array, is no name
        filled = [_column(dtype, items) for _, dtype, items in columns]
        if series:
            return pandas.Series(filled[0], index=index, name=names[0], dtype=filled[0].dtype)
        if any(len(column) != len(index) for column in filled):
            raise ValueError("its columns and its index must be of one length")
        # With their types: pandas would take texts in an object column for a column of texts.
        typed = {k: pandas.Series(column, index=index, dtype=column.dtype) for k, column in enumerate(filled)}
        frame = pandas.DataFrame(typed, index=index)
        frame.columns = _index(value["columns"]) if "columns" in value else pandas.Index(names)
        if "attrs" in value:
            frame.attrs = dict(_value(value["attrs"]))
    except (TypeError, ValueError, OverflowError, KeyError, ImportError) as error:  # of a time zone, or a library
        raise ValueError(f"a {kind} cannot be made of these columns: {error}") from error
    return frame


def _of_columns(form: str, columns: list[Any], metadata: object) -> Any:
    """A table of Polars or Arrow."""
    tables = next((tables for tables in TABLES if tables.form == form), None)
    if tables is None:
        raise ValueError(f"a table must be one of {', '.join(tables.form for tables in TABLES)}, not {form!r:.40}")
    if not all(isinstance(c, list) and len(c) == 3 and isinstance(c[2], list) for c in columns):
        raise ValueError("a column must have a name, a type and a list of values")
    if len({len(items) for _, _, items in columns}) > 1 or len({str(name) for name, _, _ in columns}) != len(columns):
        raise ValueError("the columns of a table must be of one length, and of different names")
    if not all(isinstance(name, str) for name, _, _ in columns):
        raise ValueError("the name of a column must be a text")
    kinds, made = [], []
    try:
        for _, kind, items in columns:
            kinds.append(tables.kind_from_json(kind))
            made.append(_of_kind(tables, kinds[-1], items))
        more = bytes_of(metadata) or None
        return tables.table(Schema(names=tuple(name for name, _, _ in columns), kinds=tuple(kinds), more=more), made)
    except (TypeError, ValueError, OverflowError, LookupError, ArithmeticError, NotImplementedError) as error:
        reason = one_line(error)
        raise ValueError(f"a {tables.noun} cannot be made of these columns: {reason:.200}") from error


def _of_kind(tables: Tables, kind: object, items: list[object]) -> object:
    """A column of Polars or Arrow. Raises what the library raises for values that do not fit."""
    if tables.times(kind) is None:
        values = [_value(item) for item in items]
        if "ecimal" in str(kind):
            values = [None if value is None else Decimal(value) for value in values]
        return tables.column(kind, values)
    if not all(item is None or type(item) is int for item in items):
        raise ValueError("times are whole numbers of their unit, or null")
    column = tables.of_counts(kind, items)  # type: ignore[arg-type]  # just seen
    tables.entries(column, kind)  # an unknown time zone is noticed here
    return column


def _column(dtype: object, items: object) -> Any:
    """A column of that dtype. Raises `ValueError`, and what pandas raises for values that do not fit."""
    import pandas

    if not isinstance(items, list):
        raise ValueError("the values of a column must be a list")
    if isinstance(dtype, Mapping) and set(dtype) == {"categories", "dtype", "ordered"}:
        if not all(type(code) is int for code in items):
            raise ValueError("the values of a column of categories are their places among these, or -1")
        known = _column(dtype["dtype"], dtype["categories"])
        categories = pandas.CategoricalDtype(pandas.Index(known, dtype=known.dtype), dtype["ordered"] is True)
        return pandas.Categorical.from_codes(items, dtype=categories)
    times = _TIMES.fullmatch(dtype) if isinstance(dtype, str) else None
    if times is not None:
        if not all(item is None or type(item) is int for item in items):
            raise ValueError("times are whole numbers of their unit, or null")
        missing = -(2**63)  # what stands for a missing time among whole numbers
        whole = pandas.array(items, dtype="Int64").to_numpy("int64", na_value=missing)
        of_times = pandas.api.types.pandas_dtype(dtype)
        plain = whole.view(f"{of_times.kind}8[{times[1] or times[3]}]")
        zone = getattr(of_times, "tz", None)
        return pandas.array(plain if zone is None else pandas.DatetimeIndex(plain, tz="UTC").tz_convert(zone))
    if not isinstance(dtype, str) or dtype not in _COLUMNS:
        raise ValueError(f"a column must have one of the dtypes {', '.join(sorted(_COLUMNS))}, times or categories")
    return pandas.Series(_value(items), dtype=dtype).array


def _index(value: object) -> Any:
    """An index, or the labels of one. Raises `ValueError`, and what pandas raises."""
    import pandas

    if isinstance(value, list):
        return pandas.Index(_value(value))
    if not isinstance(value, Mapping) or set(value) not in _INDEXES:
        raise ValueError("an index must be a list, or have the keys range and name, or labels, dtype, name and freq")
    name = _value(value["name"])
    if "labels" in value:
        labels = _column(value["dtype"], value["labels"])
        index = pandas.Index(labels, dtype=labels.dtype, name=name)
        if "freq" in value:
            of_times = isinstance(index, pandas.DatetimeIndex | pandas.TimedeltaIndex)
            if not of_times or not isinstance(value["freq"], str):
                raise ValueError("only an index of times has a freq, a text such as 'D'")
            index.freq = value["freq"]
        return index
    ends = value["range"]
    if not isinstance(ends, list) or len(ends) != 3 or not all(type(end) is int and abs(end) < 1 << 31 for end in ends):
        raise ValueError("the range of an index must be three whole numbers: start, stop and step")
    return pandas.RangeIndex(*ends, name=name)


def unreadable_in(value: object) -> bool:
    """Whether what was read from a file holds something that the file could not hold."""
    if isinstance(value, Unreadable):
        return True
    if isinstance(value, Mapping):
        return any(unreadable_in(part) for item in value.items() for part in item)
    return isinstance(value, list | tuple | set | frozenset) and any(unreadable_in(item) for item in value)


def shown(value: object) -> object:
    """A parameter as a JSON value for people; infinities, and what JSON cannot hold, are texts."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, bool | int | float | str | type(None)) else as_text(value)
