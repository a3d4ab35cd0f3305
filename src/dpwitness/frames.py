"""Frames: DataFrames of pandas, DataFrames and LazyFrames of Polars, Tables of Arrow.

Only this file knows the three libraries, and it imports a library only for a frame, or for a form that needs a frame. A
frame without rows, the *blank*, is the template of every frame that is built: the library itself keeps in it the types
of columns, categories, kind of index, attributes and class.
"""

import pickle
import re
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from typing_extensions import override

from dpwitness.checks import brief, one_line
from dpwitness.errors import InvalidNeighbours

#: A frame of a library.
Frame = Any
#: A column as an object of its library: a Series of pandas or Polars, an array of Arrow.
FrameColumn = Any
#: A value of a column.
ColumnValue = Any
#: The values of columns, by name.
ValuesByColumn = Mapping[Any, Sequence[ColumnValue]]
#: A function that writes a cell as JSON values, or that reads a cell from JSON values.
Cell = Callable[[Any], Any]


#: The NumPy names of types of floats, by their names in the libraries.
_FLOAT_DTYPES: Final = {
    **{name: name.lower() for name in ("float16", "float32", "float64", "Float16", "Float32", "Float64")},
    **{"halffloat": "float16", "float": "float32", "double": "float64"},
}


class Frames(ABC):
    """The frames of one library, in one form."""

    form: str
    library: str
    kind: str  # the name of the library's class
    noun: str
    null: bool = True  # whether a missing number is null, which is not NaN

    def module(self) -> Any:
        """The library. Raises `InvalidNeighbours` where it is not installed."""
        try:
            return import_module(self.library)
        except ImportError as error:
            raise InvalidNeighbours(
                f"form={self.form!r} needs {self.library}, which cannot be imported: pip install {self.library}"
            ) from error

    def holds(self, data: object) -> bool:
        """Whether an object is a frame of this form; no library is imported."""
        library = sys.modules.get(self.library)
        return library is not None and type(data) is getattr(library, self.kind, None)

    def collected(self, data: Frame) -> Frame:
        """The frame with its rows in memory."""
        return data

    @abstractmethod
    def blank(self, data: Frame) -> Frame:
        """A frame without rows that has the schema of `data`."""

    def schema(self, data: Frame) -> dict[str, str]:
        """The properties of a frame besides its rows and their labels, as texts by name."""
        columns = self._columns(self.blank(data))
        types = {f"the type of column {name!r}": self._type(column) for name, column in columns}
        return {"their columns": f"{[name for name, _ in columns]}", **types, **self._other_properties(data)}

    def columns(self, data: Frame) -> dict[Any, list[ColumnValue]]:
        """The values of each column, by name. Missing values are None, but missing values of pandas stay as they are.

        Raises `InvalidNeighbours` for two columns of one name, and for times that `datetime` cannot hold.
        """
        self.require_names(data)
        found: dict[Any, list[ColumnValue]] = {}
        for name, column in self._columns(data):
            try:
                found[name] = self._values(column)
            except (ValueError, OverflowError) as error:
                raise InvalidNeighbours(
                    f"column {brief(name)} cannot be read ({one_line(error):.80}): give times in whole microseconds, "
                    "of the years 1 to 9999"
                ) from error
        return found

    def require_names(self, data: Frame) -> None:
        """Raise `InvalidNeighbours` for two columns of one name."""
        for name, count in Counter(self._names(data)).items():
            if count > 1:
                raise InvalidNeighbours(f"several columns are called {brief(name)}: give each a name of its own")

    def records(self, data: Frame) -> list[dict[Any, ColumnValue]]:
        """The rows of a frame, as dicts by column."""
        columns = self.columns(data)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def labels(self, data: Frame) -> Any:
        """The index of a frame whose rows have labels of their own; None for any other frame."""
        return None

    def build(self, blank: Frame, columns: ValuesByColumn) -> Frame:
        """A frame of the given columns that has the schema of a blank.

        Raises `ValueError`, `TypeError` or `OverflowError` for values that a type cannot hold.
        """
        given = zip(self._columns(blank), columns.values(), strict=True)
        return self._frame({name: self._column(values, column) for (name, column), values in given}, blank)

    def infer(self, columns: ValuesByColumn) -> Frame:
        """A blank with the types that the library itself chooses. Raises the errors of `build`, for mixed types too."""
        return self.blank(self._frame({name: self._column(values) for name, values in columns.items()}))

    def held(self, blank: Frame, name: Any, values: Sequence[ColumnValue]) -> list[ColumnValue]:
        """The values that a column of a blank returns after it is built from `values`. Raises the errors of `build`."""
        return self._values(self._column(values, dict(self._columns(blank))[name]))

    def retyped(self, blank: Frame, other: Frame, names: Sequence[Any]) -> Frame:
        """The blank with the types of another blank in the columns `names`."""
        others = dict(self._columns(other))
        return self._frame({n: others[n] if n in names else column for n, column in self._columns(blank)}, blank)

    def floats(self, blank: Frame) -> dict[Any, str]:
        """The NumPy type of each column of floats, by the column's name."""
        types = {name: _FLOAT_DTYPES.get(self._type(column)) for name, column in self._columns(blank)}
        return {name: kind for name, kind in types.items() if kind is not None}

    def categories(self, data: Frame) -> dict[Any, list[ColumnValue]]:
        """The categories of each categorical column, by the column's name."""
        return {name: found for name, column in self._columns(data) if (found := self._categories(column))}

    def lent(self, data: Frame) -> Frame | None:
        """A frame that shares the rows and protects them from changes; None if rows must be copied."""
        return None

    def to_json(self, data: Frame, write: Cell) -> dict[str, object] | None:
        """A frame as JSON values; None for a frame without a form in JSON."""
        columns = []
        for name, column in self._columns(data):
            written = self._column_to_json(column, write)
            if written is None:
                return None
            columns.append([write(name), *written])
        return {"table": self.form, "columns": columns}

    def from_json(self, value: Mapping[str, Any], read: Cell) -> Frame:
        """Build a frame from unchecked JSON. Raises `ValueError`."""
        columns = value["columns"]
        if not all(
            isinstance(c, list) and len(c) == 3 and isinstance(c[0], str) and isinstance(c[2], list) for c in columns
        ):
            raise ValueError("a column must have a name, which is a text, a type and a list of values")
        if len({len(items) for _, _, items in columns}) > 1 or len({name for name, _, _ in columns}) != len(columns):
            raise ValueError("the columns of a table must be of one length, and of different names")
        try:
            return self._frame({name: self._column_from_json(kind, items, read) for name, kind, items in columns})
        except Exception as error:  # a library may raise anything for unknown types, values and time zones
            raise ValueError(f"a {self.noun} cannot be made of these columns: {one_line(error):.200}") from error

    def _column_to_json(self, column: FrameColumn, write: Cell) -> list[Any] | None:
        """The type and the values of a column, times as integers in their unit; None without a form in JSON."""
        kind = self._type_to_json(column, write)
        values = [write(value) for value in self._physical(column)]
        lost = kind is None or any(isinstance(value, dict) and "object" in value for value in values)
        return None if lost else [kind, values]

    def _column_from_json(self, kind: Any, items: Sequence[Any], read: Cell) -> FrameColumn:
        return self._column([read(item) for item in items], self._type_from_json(kind, read))

    def _names(self, data: Frame) -> Sequence[Any]:
        """The names of columns; empty if the library lets no two columns have one name."""
        return ()

    @abstractmethod
    def _columns(self, data: Frame) -> list[tuple[Any, FrameColumn]]:
        """The names of the columns, each with its column."""

    @abstractmethod
    def _frame(self, columns: Mapping[Any, FrameColumn], blank: Frame = None) -> Frame:
        """A frame of the given columns, with the other properties of a blank."""

    def _other_properties(self, data: Frame) -> dict[str, str]:
        """The part of `schema` that does not depend on columns."""
        return {}

    @abstractmethod
    def _column(self, values: Sequence[ColumnValue], like: FrameColumn = None) -> FrameColumn:
        """A column of values, with the type of the column `like`, by default with the type that the library chooses."""

    @abstractmethod
    def _type(self, column: FrameColumn) -> str: ...

    @abstractmethod
    def _values(self, column: FrameColumn) -> list[ColumnValue]: ...

    @abstractmethod
    def _categories(self, column: FrameColumn) -> list[ColumnValue] | None: ...

    def _physical(self, column: FrameColumn) -> list[ColumnValue]:
        """The values of a column, times as integers in their unit."""
        raise NotImplementedError

    def _type_to_json(self, column: FrameColumn, write: Cell) -> Any:
        """The type of a column as JSON values; None without a form in JSON."""
        raise NotImplementedError

    def _type_from_json(self, kind: Any, read: Cell) -> FrameColumn:
        """An empty column of a type. Raises any error for a JSON value that is not a type."""
        raise NotImplementedError


#: The texts of pandas' dtypes that files hold: text and values determine a column.
_DTYPE_TEXTS: Final = re.compile(
    r"bool|boolean|object|str|string\[(python|pyarrow)\]|string|([iI]nt|uint|UInt)(8|16|32|64)|float16|[fF]loat(32|64)"
    r"|datetime64\[(s|ms|us|ns)(, [\w/+:-]+)?\]|timedelta64\[(s|ms|us|ns)\]"
)


class PandasFrames(Frames):
    """The DataFrames of pandas; a dataset of records needs an index that counts the rows."""

    form = "dataframe"
    library = "pandas"
    kind = "DataFrame"
    noun = "DataFrame"
    null = False

    @override
    def blank(self, data: Frame) -> Frame:
        return data.iloc[:0]

    @override
    def labels(self, data: Frame) -> Any:
        return None if hasattr(data.index, "step") else data.index

    def state(self, data: Frame) -> bytes | None:
        """A frame as bytes that show every change; None if objects in its columns may hide a change."""
        pd, columns = self.module(), [column for _, column in data.items()]
        plain = {str, bytes, int, float, bool, type(None), type(pd.NA), pd.Timestamp, pd.Timedelta}
        if not all(set(map(type, column)) <= plain for column in columns if column.dtype.kind == "O"):
            return None
        categories = [column.dtype.categories for column in columns if isinstance(column.dtype, pd.CategoricalDtype)]
        # The pickle of a frame lacks attributes that a function added, and values that an index computes once.
        computed = [axis.values for axis in data.axes if type(axis) in (pd.RangeIndex, pd.MultiIndex)]
        return pickle.dumps((data, computed, [*map(list, map(vars, (data, *data.axes, *categories)))]), 5)

    @override
    def _names(self, data: Frame) -> Sequence[Any]:
        return data.columns.tolist() if data.ndim == 2 else ()

    @override
    def _columns(self, data: Frame) -> list[tuple[Any, FrameColumn]]:
        return list(data.items()) if data.ndim == 2 else [(data.name, data)]

    def _frame(self, columns: Mapping[Any, FrameColumn], blank: Frame = None) -> Frame:
        pd = self.module()
        frame = pd.DataFrame(dict(enumerate(columns.values())))
        frame.columns = pd.Index(list(columns)) if blank is None else blank.columns
        if blank is None:
            return frame
        index, stop = blank.index, blank.index.start + len(frame) * blank.index.step
        return frame.set_axis(type(index)(index.start, stop, index.step, name=index.name)).__finalize__(blank)

    def _other_properties(self, data: Frame) -> dict[str, str]:
        index, names = data.index, data.columns
        counted = f"from {index.start} in steps of {index.step}" if hasattr(index, "step") else "none"
        return {
            "their index": f"{type(index).__name__} of {dtype_text(index.dtype)}, names {list(index.names)}",
            "the numbers of their rows": counted,
            "the names of their columns": f"{list(names.names)}",
            "the type of the names of their columns": dtype_text(names.dtype),
            "their attrs": f"{data.attrs!r}",
        }

    def _column(self, values: Sequence[ColumnValue], like: FrameColumn = None) -> FrameColumn:
        pd, dtype = self.module(), None if like is None else like.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            codes = {category: code for code, category in enumerate(dtype.categories.tolist())}
            return pd.Series(pd.Categorical.from_codes([codes.get(value, -1) for value in values], dtype=dtype))
        return pd.Series(list(values), dtype=dtype)  # without dtype, texts in an object column would change it

    def _type(self, column: FrameColumn) -> str:
        return dtype_text(column.dtype)

    def _values(self, column: FrameColumn) -> list[ColumnValue]:
        values: list[ColumnValue] = column.tolist()
        return values

    def _categories(self, column: FrameColumn) -> list[ColumnValue] | None:
        categories = getattr(column.dtype, "categories", None)
        return None if categories is None else categories.tolist()

    @override
    def to_json(self, data: Frame, write: Cell) -> dict[str, object] | None:
        """A DataFrame or a Series as JSON values; None also if the names of columns have a name of their own."""
        pd, written, index = self.module(), super().to_json(data, write), self._index_to_json(data.index, write)
        if index is None or written is None:
            return None
        columns: Any = written["columns"]
        if type(data) is pd.Series:
            return {"series": columns[0][2], "dtype": columns[0][1], "name": columns[0][0], "index": index}
        plain = data.columns.names == [None] and pd.Index(list(data.columns)).dtype == data.columns.dtype
        return {"dataframe": columns, "index": index} if plain else None

    @override
    def from_json(self, value: Mapping[str, Any], read: Cell) -> Frame:
        """A DataFrame or a Series. `attrs` and `freq`, which earlier releases wrote, are ignored."""
        pd, kind = self.module(), "series" if "series" in value else "dataframe"
        keys = {kind, "index"} | ({"dtype", "name"} if kind == "series" else set())
        if not keys <= set(value) <= keys | {"attrs"}:
            raise ValueError(f"a {kind} must have the keys {', '.join(sorted(keys))}, and nothing else")
        columns = value[kind] if kind == "dataframe" else [[value["name"], value["dtype"], value[kind]]]
        if not all(isinstance(column, list) and len(column) == 3 for column in columns):
            raise ValueError("a column must have a name, a dtype and a list of values")
        try:
            names, index = [read(name) for name, _, _ in columns], self._index_from_json(value["index"], read)
            hash((*names, *index))  # an array is neither a name nor a label
            made = [self._column_from_json(dtype, items, read).set_axis(index) for _, dtype, items in columns]
            if kind == "series":
                return made[0].rename(names[0])
            frame = pd.DataFrame(dict(enumerate(made)), index=index)
            frame.columns = pd.Index(names)
        except (TypeError, ValueError, OverflowError, KeyError, ImportError) as error:  # KeyError: unknown time zone
            raise ValueError(f"a {kind} cannot be made of these columns: {error}") from error
        return frame

    def _physical(self, column: FrameColumn) -> list[ColumnValue]:
        dtype = column.dtype
        if getattr(dtype, "categories", None) is not None:
            return list(column.cat.codes.tolist())
        if getattr(dtype, "kind", "") in ("m", "M"):
            missing = column.isna()
            return [None if gone else time for time, gone in zip(column.astype("int64").tolist(), missing, strict=True)]
        absent = None if dtype == "object" else self.module().NA  # only an object column holds NA as a value
        return [None if value is absent else value for value in column.tolist()]

    def _type_to_json(self, column: FrameColumn, write: Cell) -> Any:
        pd, dtype = self.module(), column.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            known = self._column_to_json(pd.Series(dtype.categories, dtype=dtype.categories.dtype), write)
            return known and {"categories": known[1], "dtype": known[0], "ordered": bool(dtype.ordered)}
        name = dtype_text(dtype)
        return name if _DTYPE_TEXTS.fullmatch(name) and pd.api.types.pandas_dtype(name) == dtype else None

    def _column_from_json(self, kind: Any, items: Any, read: Cell) -> FrameColumn:
        pd = self.module()
        if isinstance(kind, Mapping) and set(kind) == {"categories", "dtype", "ordered"}:
            known = self._column_from_json(kind["dtype"], kind["categories"], read)
            categories = pd.CategoricalDtype(pd.Index(known, dtype=known.dtype), kind["ordered"] is True)
            return pd.Series(pd.Categorical.from_codes(items, dtype=categories))
        if not isinstance(kind, str) or not _DTYPE_TEXTS.fullmatch(kind):
            raise ValueError(f"a column has no dtype {brief(kind)}: numbers, texts, flags, times or categories")
        if kind.startswith(("datetime64", "timedelta64")) and not all(
            item is None or type(item) is int for item in items
        ):
            raise ValueError("times are whole numbers of their unit, or null")
        return pd.Series([read(item) for item in items], dtype=kind)

    def _index_to_json(self, index: Any, write: Cell) -> dict[str, object] | None:
        """An index as JSON values; None for an index of several levels, or whose class does not follow from labels."""
        pd = self.module()
        if isinstance(index, pd.RangeIndex):
            return {"range": [index.start, index.stop, index.step], "name": write(index.name)}
        if index.nlevels > 1 or type(pd.Index([], dtype=index.dtype)) is not type(index):
            return None
        column = self._column_to_json(pd.Series(index, dtype=index.dtype), write)
        return None if column is None else {"labels": column[1], "dtype": column[0], "name": write(index.name)}

    def _index_from_json(self, value: Any, read: Cell) -> Any:
        pd = self.module()
        match value:
            case list():
                return pd.Index(read(value))
            case {"labels": labels, "dtype": kind, "name": name, **rest} if set(rest) <= {"freq"}:
                column = self._column_from_json(kind, labels, read)
                return pd.Index(column, dtype=column.dtype, name=read(name))
            case {"range": [int(), int(), int()] as ends, "name": name, **rest} if not rest:
                if all(abs(end) < 1 << 31 for end in ends):
                    return pd.RangeIndex(*ends, name=read(name))
        raise ValueError(
            "an index must be a list, or have the keys range (whole numbers: start, stop, step) and name, or labels, "
            "dtype and name"
        )


def dtype_text(dtype: Any) -> str:
    """The text of a dtype of pandas with all its settings, such as its categories in order."""
    categories, storage = getattr(dtype, "categories", None), getattr(dtype, "storage", None)
    if categories is not None:
        ordered = ", ordered" if dtype.ordered else ""
        return f"category of {dtype_text(categories.dtype)} {categories.tolist()}{ordered}"
    return f"string[{storage}]" if str(dtype) == "string" and storage else str(dtype)


#: The types of Polars that files hold, by name, each with the names of its settings.
_POLARS_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32"), ()),
    **dict.fromkeys(("Float64", "Boolean", "String", "Binary", "Date", "Time", "Null", "Categorical"), ()),
    "Datetime": ("time_unit", "time_zone"), "Duration": ("time_unit",), "Enum": ("categories",),
}  # fmt: skip


class PolarsFrames(Frames):
    """The DataFrames of Polars."""

    form = "polars"
    library = "polars"
    kind = "DataFrame"
    noun = "Polars DataFrame"

    @override
    def blank(self, data: Frame) -> Frame:
        return data.clear()

    @override
    def lent(self, data: Frame) -> Frame | None:
        if objects := [name for name, kind in data.collect_schema().items() if kind == self.module().Object]:
            raise InvalidNeighbours(
                f"column {objects[0]!r} of the {self.noun} holds Python objects, which are not copied with it: give "
                "columns of Polars' own types, or a list of dicts"
            )
        return data.clone()  # a mechanism can change only the clone's list of columns

    def _columns(self, data: Frame) -> list[tuple[Any, FrameColumn]]:
        try:
            frame = data.collect() if hasattr(data, "collect") else data
            return [(column.name, column) for column in frame.get_columns()]
        except Exception as error:  # the plan of a LazyFrame may raise anything
            raise InvalidNeighbours(f"a LazyFrame cannot be collected: {' '.join(str(error).split()):.200}") from error

    def _frame(self, columns: Mapping[Any, FrameColumn], blank: Frame = None) -> Frame:
        return self.module().DataFrame(dict(columns))  # from a list Polars would rename a column with an empty name

    def _column(self, values: Sequence[ColumnValue], like: FrameColumn = None) -> FrameColumn:
        pl = self.module()
        try:
            return pl.Series(values, dtype=None if like is None else like.dtype, strict=True)
        except pl.exceptions.PolarsError as error:
            raise ValueError(str(error)) from error

    def _type(self, column: FrameColumn) -> str:
        return str(column.dtype)

    def _categories(self, column: FrameColumn) -> list[ColumnValue] | None:
        return column.dtype.categories.to_list() if column.dtype == self.module().Enum else None

    def _values(self, column: FrameColumn) -> list[ColumnValue]:
        kind, values = column.dtype, column.to_list()
        if (getattr(kind, "time_unit", "") == "ns" or kind == self.module().Time) and any(
            time % 1_000 for time in self._physical(column) if time is not None
        ):
            raise ValueError("times of nanoseconds")
        return values  # type: ignore[no-any-return]

    def _physical(self, column: FrameColumn) -> list[ColumnValue]:
        values: list[ColumnValue] = (column.to_physical() if column.dtype.is_temporal() else column).to_list()
        return values

    def _type_to_json(self, column: FrameColumn, write: Cell) -> Any:
        kind, name = column.dtype, column.dtype.base_type().__name__
        if name not in _POLARS_SETTINGS:
            return None
        given = [getattr(kind, setting) for setting in _POLARS_SETTINGS[name]]
        written = {name: [one.to_list() if hasattr(one, "to_list") else one for one in given]} if given else name
        # Named categories would be read back without their name.
        return written if self._type_from_json(written, write).dtype == kind else None

    def _type_from_json(self, kind: Any, read: Cell) -> FrameColumn:
        ((name, given),) = kind.items() if isinstance(kind, Mapping) else ((kind, []),)
        if len(given) != len(_POLARS_SETTINGS[name]):
            raise ValueError(f"{name} has {len(_POLARS_SETTINGS[name])} settings")
        return self.module().Series([], dtype=getattr(self.module(), name)(*given))


class LazyPolarsFrames(PolarsFrames):
    """The LazyFrames of Polars over rows in memory; a mechanism gets its input before it is collected."""

    form = "polars-lazy"
    kind = "LazyFrame"
    noun = "Polars LazyFrame"

    @override
    def collected(self, data: Frame) -> Frame:
        return self._frame(dict(self._columns(data)))

    def _frame(self, columns: Mapping[Any, FrameColumn], blank: Frame = None) -> Frame:
        return super()._frame(columns).lazy()


class ArrowFrames(Frames):
    """Tables of Arrow; built tables have no metadata. The values of a dictionary array are part of its type."""

    form = "arrow"
    library = "pyarrow"
    kind = "Table"
    noun = "PyArrow Table"

    @override
    def lent(self, data: Frame) -> Frame | None:
        return data

    @override
    def blank(self, data: Frame) -> Frame:
        return data[:0].replace_schema_metadata(None)  # pandas writes the number of rows into the metadata

    @override
    def _names(self, data: Frame) -> Sequence[Any]:
        return data.column_names  # type: ignore[no-any-return]  # Arrow is Any here

    @override
    def _columns(self, data: Frame) -> list[tuple[Any, FrameColumn]]:
        return list(zip(data.column_names, data.columns, strict=True))

    def _frame(self, columns: Mapping[Any, FrameColumn], blank: Frame = None) -> Frame:
        return self.module().table([*columns.values()], names=[*columns])

    def _other_properties(self, data: Frame) -> dict[str, str]:
        return {"their metadata": f"{data.schema.metadata}"}

    def _dictionary(self, array: Any) -> Any:
        """The dictionary of all chunks of a dictionary array; None for an array of another type."""
        pa = self.module()
        if not pa.types.is_dictionary(array.type):
            return None
        chunks = array.unify_dictionaries().chunks if hasattr(array, "chunks") else [array]
        return chunks[0].dictionary if chunks else pa.array([], array.type.value_type)

    def _column(self, values: Sequence[ColumnValue], like: FrameColumn = None) -> FrameColumn:
        pa = self.module()
        kind: Any = None if like is None else like.type
        known = None if like is None else self._dictionary(like)
        if known is None:
            return pa.array(values, kind)
        # The example's dictionary is kept: Arrow's own would depend on the records that are present.
        places = {None: None, **{value: place for place, value in enumerate(known.to_pylist())}}
        if not places.keys() >= set(values):
            raise ValueError("a value is not in the dictionary")
        codes = pa.array([places[value] for value in values], kind.index_type)
        return pa.DictionaryArray.from_arrays(codes, known, ordered=kind.ordered)

    def _type(self, column: FrameColumn) -> str:
        known = self._categories(column)
        return str(column.type) if known is None else f"{column.type} of {known}"

    def _categories(self, column: FrameColumn) -> list[ColumnValue] | None:
        known = self._dictionary(column)
        return None if known is None else known.to_pylist()

    def _values(self, column: FrameColumn) -> list[ColumnValue]:
        pa, kind = self.module(), column.type
        if getattr(kind, "unit", "") == "ns":  # to_pylist would give objects of pandas
            time = pa.time64("us") if pa.types.is_time(kind) else pa.duration("us")
            kind = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else time
        values: list[ColumnValue] = column.cast(kind).to_pylist()
        return values

    @override
    def to_json(self, data: Frame, write: Cell) -> dict[str, object] | None:
        return None  # no file holds a table of Arrow


#: The frames of pandas.
PANDAS: Final = PandasFrames()
#: The frames of Polars.
POLARS: Final = PolarsFrames()
#: The lazy frames of Polars.
LAZY_POLARS: Final = LazyPolarsFrames()
#: The tables of Arrow.
ARROW: Final = ArrowFrames()
#: The frames of all libraries.
FRAMES: Final[tuple[Frames, ...]] = (PANDAS, POLARS, LAZY_POLARS, ARROW)


def frames_of(data: object) -> Frames | None:
    """The `Frames` that hold an object; None for any other object. No library is imported."""
    return next((frames for frames in FRAMES if frames.holds(data)), None)


def is_series(data: object) -> bool:
    """Whether an object is a Series of pandas; no library is imported."""
    return isinstance(data, getattr(sys.modules.get("pandas"), "Series", ()))
