"""Tables of Polars and of Arrow: their columns read, and made again, each of the very type that it had.

Types are those of the library itself: an interface common to several libraries would lose categories, widths of texts
and what may be missing. Neither library is imported before one of its tables, or a form that asks for one, is there.
DataFrames of pandas have an index as well: see `neighbours.layouts`.
"""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from importlib import import_module
from typing import Any, Final

from typing_extensions import override

from dpwitness.errors import InvalidNeighbours

Table = Any  # a DataFrame or a LazyFrame of Polars, a Table of Arrow
Column = Any
#: The type of a column: a DataType of Polars, an `ArrowKind`.
Kind = Any
Value = Any

#: Units of times, in days: so many of them are one.
A_DAY: Final = {"D": 1, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
#: Days since 1970, and of a length of time, that `datetime` can hold.
DATES: Final = tuple(day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
LENGTHS: Final = (timedelta.min.days, timedelta.max.days)


@dataclass(frozen=True, slots=True)
class Ticks:
    """A time, or a length of time, that `datetime` cannot hold: so many of a unit, of a time since 1970 in UTC."""

    count: int
    unit: str


@dataclass(frozen=True, slots=True)
class Times:
    """A type of times or of lengths of time.

    Attributes
    ----------
    unit
        One of `A_DAY`.
    days
        The first and the last that `datetime` can hold.
    """

    unit: str
    days: tuple[int, ...] = LENGTHS

    def beyond(self, count: int | None) -> bool:
        """Whether `datetime` cannot hold so many of the unit."""
        if count is None:
            return False
        # A day less at both ends: a time zone may be up to a day away.
        return (self.unit == "ns" and count % 1_000 != 0) or not (
            self.days[0] < count // A_DAY[self.unit] < self.days[1]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """What a table is besides its rows; `more` is what its library keeps besides names and types."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    more: Any = None


class Tables(ABC):
    """The tables of one library, in one form."""

    form: str
    library: str
    of: str  # the library's own class
    noun: str
    #: Types that are written by their name alone, and the attributes of those that take some.
    plain: frozenset[str]
    settings: Mapping[str, tuple[str, ...]]

    def module(self) -> Any:
        """The library. Raises `InvalidNeighbours` where it is not installed."""
        return installed(self.library, f"form={self.form!r}")

    def holds(self, data: object) -> bool:
        """Whether it is such a table; a class derived from it is none. Imports nothing."""
        library = sys.modules.get(self.library)
        return library is not None and type(data) is getattr(library, self.of)

    def eager(self, data: Table) -> Table:
        """The table itself, with its rows."""
        return data

    def lent(self, data: Table) -> Callable[[], Table]:
        """What hands it out so that nothing can be changed in it; the rows are not copied."""
        return lambda: data

    @abstractmethod
    def schema(self, table: Table) -> Schema:
        """Names and types of the columns."""

    @abstractmethod
    def kind(self, column: Column) -> Kind:
        """The type of a column by itself."""

    @abstractmethod
    def columns(self, table: Table) -> list[Column]:
        """The columns."""

    @abstractmethod
    def table(self, schema: Schema, columns: Sequence[Column]) -> Table:
        """A table of columns that have the types of a schema."""

    @abstractmethod
    def usual(self, values: Sequence[Value]) -> Kind:
        """The type that the library itself takes for values. Raises `ValueError` and `TypeError`."""

    @abstractmethod
    def float_type(self, kind: Kind) -> str | None:
        """The NumPy type of a type of floats; None for any other."""

    @abstractmethod
    def has_nan(self, column: Column) -> bool:
        """Whether a column of floats holds NaN, which is a number there; what is missing is null."""

    @abstractmethod
    def categories(self, column: Column) -> list[Value] | None:
        """The only values that the type of a column can hold; None where it is no list of values."""

    @abstractmethod
    def times(self, kind: Kind) -> Times | None:
        """What a type of times counts; None for any other type."""

    @abstractmethod
    def counts(self, column: Column) -> list[int | None]:
        """The whole numbers that a column of times is made of."""

    @abstractmethod
    def of_counts(self, kind: Kind, counts: Sequence[int | None]) -> Column:
        """A column of times. Raises `ValueError` and `OverflowError`."""

    @abstractmethod
    def _values(self, column: Column, kind: Kind) -> list[Value]: ...

    @abstractmethod
    def _column(self, kind: Kind, values: Sequence[Value]) -> Column: ...

    def entries(self, column: Column, kind: Kind) -> list[Value]:
        """The values of a column, None where one is missing; times that `datetime` cannot hold are `Ticks`."""
        times = self.times(kind)
        if times is None:
            return self._values(column, kind)
        counts = self.counts(column)
        beyond = [times.beyond(count) for count in counts]
        if not any(beyond):
            return self._values(column, kind)
        rest = self.of_counts(kind, [None if odd else count for odd, count in zip(beyond, counts, strict=True)])
        values = zip(beyond, counts, self._values(rest, kind), strict=True)
        return [Ticks(count, times.unit) if odd and count is not None else value for odd, count, value in values]

    def column(self, kind: Kind, values: Sequence[Value]) -> Column:
        """A column of a type. Raises `ValueError`, `TypeError` or `OverflowError` for values that it cannot hold."""
        odd = {place: value for place, value in enumerate(values) if type(value) is Ticks}
        if not odd:
            return self._column(kind, values)
        times = self.times(kind)
        if times is None or any(value.unit != times.unit for value in odd.values()):
            raise ValueError(f"{kind} holds no {next(iter(odd.values()))}")
        rest = self._column(kind, [None if place in odd else value for place, value in enumerate(values)])
        counts = self.counts(rest)
        for place, value in odd.items():
            counts[place] = value.count
        return self.of_counts(kind, counts)

    def contents(self, table: Table) -> dict[str, list[Value]]:
        """The values of each column, by name."""
        schema = self.schema(table)
        return dict(zip(schema.names, map(self.entries, self.columns(table), schema.kinds), strict=True))

    def rows(self, data: Table) -> list[dict[str, Value]]:
        """The rows of a table."""
        columns = self.contents(self.eager(data))
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def kind_to_json(self, kind: Kind) -> object:
        """A type as JSON values; None for one that is not made again from a file."""
        name = self._name(kind)
        if name in self.plain:
            return name
        if name not in self.settings:
            return None
        given = [getattr(self._own(kind), setting) for setting in self.settings[name]]
        return {name: [value.to_list() if hasattr(value, "to_list") else value for value in given]}

    def kind_from_json(self, value: object) -> Kind:
        """Build a type from unchecked JSON. Raises `ValueError`, and what the library raises."""
        if isinstance(value, str) and value in self.plain:
            return self._kind(value, [])
        if isinstance(value, Mapping) and len(value) == 1:
            ((name, given),) = value.items()
            if name in self.settings and isinstance(given, list) and len(given) == len(self.settings[name]):
                return self._kind(name, given)
        raise ValueError(f"{value!s:.80} is no type of a column of a {self.noun}")

    def _own(self, kind: Kind) -> object:
        """What has the settings of a type as attributes."""
        return kind

    @abstractmethod
    def _name(self, kind: Kind) -> str: ...

    @abstractmethod
    def _kind(self, name: str, given: Sequence[object]) -> Kind: ...


class PolarsTables(Tables):
    """DataFrames of Polars."""

    form = "polars"
    library = "polars"
    of = "DataFrame"
    noun = "Polars DataFrame"
    plain = frozenset((
        "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "Boolean",
        "String", "Binary", "Date", "Time", "Null",
    ))  # fmt: skip
    settings: Mapping[str, tuple[str, ...]] = {
        "Datetime": ("time_unit", "time_zone"),
        "Duration": ("time_unit",),
        "Decimal": ("precision", "scale"),
        "Enum": ("categories",),
        "Categorical": (),
    }

    @override
    def kind_to_json(self, kind: Kind) -> object:
        written = super().kind_to_json(kind)
        # Categorical has no settings here: one of categories with a name would come back as another type.
        return None if written is None or self.kind_from_json(written) != kind else written

    @override
    def lent(self, data: Table) -> Callable[[], Table]:
        if objects := [name for name, kind in data.collect_schema().items() if kind == self.module().Object]:
            raise InvalidNeighbours(
                f"column {objects[0]!r} of the {self.noun} holds Python objects, which are not copied with it: give "
                "columns of Polars' own types, or a list of dicts"
            )
        return lambda: data.clone()  # of the same columns: only the list of these can be changed

    @override
    def schema(self, table: Table) -> Schema:
        return Schema(names=tuple(table.columns), kinds=tuple(table.dtypes))

    @override
    def kind(self, column: Column) -> Kind:
        return column.dtype

    @override
    def columns(self, table: Table) -> list[Column]:
        return list(table.get_columns())

    @override
    def table(self, schema: Schema, columns: Sequence[Column]) -> Table:
        named = [column.alias(name) for name, column in zip(schema.names, columns, strict=True)]
        return self._guarded(lambda: self.module().DataFrame(named))

    @override
    def usual(self, values: Sequence[Value]) -> Kind:
        return self.module().Series(values, strict=True).dtype

    @override
    def float_type(self, kind: Kind) -> str | None:
        return str(kind).lower() if kind.is_float() else None

    @override
    def has_nan(self, column: Column) -> bool:
        return bool(column.dtype.is_float() and column.is_nan().any())

    @override
    def categories(self, column: Column) -> list[Value] | None:
        found: list[Value] | None = column.dtype.categories.to_list() if self._name(column.dtype) == "Enum" else None
        return found

    @override
    def times(self, kind: Kind) -> Times | None:
        match self._name(kind):
            case "Date":
                return Times("D", DATES)
            case "Datetime":
                return Times(kind.time_unit, DATES)
            case "Duration":
                return Times(kind.time_unit)
            case "Time":
                return Times("ns")
        return None

    @override
    def counts(self, column: Column) -> list[int | None]:
        found: list[int | None] = column.to_physical().to_list()
        return found

    @override
    def of_counts(self, kind: Kind, counts: Sequence[int | None]) -> Column:
        polars = self.module()
        return self._guarded(lambda: polars.Series(counts, dtype=polars.Int64).cast(kind, strict=True))

    @override
    def _values(self, column: Column, kind: Kind) -> list[Value]:
        found: list[Value] = self._guarded(column.to_list)
        return found

    @override
    def _column(self, kind: Kind, values: Sequence[Value]) -> Column:
        polars = self.module()
        return self._guarded(lambda: polars.Series(values, dtype=kind, strict=True))

    def _guarded(self, make: Callable[[], object]) -> Any:
        """What a call makes. Raises `ValueError` in place of an exception of Polars' own."""
        try:
            return make()
        except self.module().exceptions.PolarsError as error:
            raise ValueError(str(error)) from error

    @override
    def _name(self, kind: Kind) -> str:
        return str(kind.base_type().__name__)

    @override
    def _kind(self, name: str, given: Sequence[object]) -> Kind:
        return self._guarded(lambda: getattr(self.module(), name)(*given))


class LazyPolarsTables(PolarsTables):
    """LazyFrames of Polars: of rows that are there, which only the mechanism collects."""

    form = "polars-lazy"
    of = "LazyFrame"
    noun = "Polars LazyFrame"

    @override
    def eager(self, data: Table) -> Table:
        try:
            return data.collect()
        except Exception as error:  # whatever its plan raises
            raise InvalidNeighbours(f"a LazyFrame cannot be collected: {' '.join(str(error).split()):.200}") from error

    @override
    def table(self, schema: Schema, columns: Sequence[Column]) -> Table:
        return super().table(schema, columns).lazy()


@dataclass(frozen=True, slots=True, eq=False)
class ArrowKind:
    """The type of a column of Arrow: a field, with what may be missing, and the values of one of a dictionary."""

    field: Any
    dictionary: Any = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrowKind) or not self.field.equals(other.field, check_metadata=True):
            return False
        if self.dictionary is None or other.dictionary is None:
            return self.dictionary is other.dictionary
        return bool(self.dictionary.equals(other.dictionary))

    def __hash__(self) -> int:
        return hash(self.field)

    def __str__(self) -> str:
        text = f"{self.field.type}{'' if self.field.nullable else ' not null'}"
        return text if self.dictionary is None else f"{text} of {self.dictionary.to_pylist()}"


def _of_rows(metadata: dict[bytes, bytes] | None, rows: int) -> dict[bytes, bytes] | None:
    """The metadata of a table of so many rows: what pandas keeps there of an index that counts them says how many."""
    if metadata is None:
        return None
    try:
        kept = json.loads(metadata[b"pandas"])
        for index in kept["index_columns"]:
            if isinstance(index, dict) and index["kind"] == "range":
                index["stop"] = index["start"] + rows * index["step"]
    except (KeyError, TypeError, ValueError):  # it is of nobody's pandas
        return metadata
    return {**metadata, b"pandas": json.dumps(kept).encode()}


class ArrowTables(Tables):
    """Tables of Arrow."""

    form = "arrow"
    library = "pyarrow"
    of = "Table"
    noun = "PyArrow Table"
    plain = frozenset((
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "halffloat", "float", "double",
        "bool", "string", "large_string", "binary", "large_binary", "date32[day]", "date64[ms]", "time32[s]",
        "time32[ms]", "time64[us]", "time64[ns]", "duration[s]", "duration[ms]", "duration[us]", "duration[ns]", "null",
    ))  # fmt: skip
    settings: Mapping[str, tuple[str, ...]] = {"timestamp": ("unit", "tz"), "decimal128": ("precision", "scale")}

    @override
    def schema(self, table: Table) -> Schema:
        fields = [field.with_name("") for field in table.schema]
        kinds = tuple(map(ArrowKind, fields, map(self._dictionary, table.columns)))
        return Schema(names=tuple(table.column_names), kinds=kinds, more=_of_rows(table.schema.metadata, 0))

    @override
    def kind(self, column: Column) -> Kind:
        return ArrowKind(self.module().field("", column.type), self._dictionary(column))

    @override
    def columns(self, table: Table) -> list[Column]:
        return list(table.columns)

    @override
    def table(self, schema: Schema, columns: Sequence[Column]) -> Table:
        arrow = self.module()
        fields = [kind.field.with_name(name) for kind, name in zip(schema.kinds, schema.names, strict=True)]
        more = _of_rows(schema.more, len(columns[0]) if columns else 0)
        return arrow.Table.from_arrays(columns, schema=arrow.schema(fields, metadata=more))

    @override
    def usual(self, values: Sequence[Value]) -> Kind:
        arrow = self.module()
        return ArrowKind(arrow.field("", arrow.array(values).type))

    @override
    def float_type(self, kind: Kind) -> str | None:
        return {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(kind.field.type))

    @override
    def has_nan(self, column: Column) -> bool:
        compute = import_module("pyarrow.compute")
        return bool(self.module().types.is_floating(column.type) and compute.any(compute.is_nan(column)).as_py())

    @override
    def categories(self, column: Column) -> list[Value] | None:
        dictionary = self._dictionary(column)
        return None if dictionary is None else dictionary.to_pylist()

    def _dictionary(self, column: Column) -> Any:
        """The values of all chunks of a column of a dictionary; None for any other column."""
        arrow = self.module()
        if not arrow.types.is_dictionary(column.type):
            return None
        chunks = column.unify_dictionaries().chunks if hasattr(column, "chunks") else [column]
        return chunks[0].dictionary if chunks else arrow.array([], column.type.value_type)

    @override
    def times(self, kind: Kind) -> Times | None:
        types, own = self.module().types, kind.field.type
        if types.is_date32(own):
            return Times("D", DATES)
        if types.is_date64(own):
            return Times("ms", DATES)
        if types.is_timestamp(own):
            return Times(own.unit, DATES)
        return Times(own.unit) if types.is_time(own) or types.is_duration(own) else None

    @override
    def counts(self, column: Column) -> list[int | None]:
        arrow = self.module()
        found: list[int | None] = column.cast(getattr(arrow, f"int{column.type.bit_width}")()).to_pylist()
        return found

    @override
    def of_counts(self, kind: Kind, counts: Sequence[int | None]) -> Column:
        arrow, own = self.module(), kind.field.type
        self._require_present(kind, counts)
        return arrow.array(counts, getattr(arrow, f"int{own.bit_width}")()).view(own)

    @override
    def _values(self, column: Column, kind: Kind) -> list[Value]:
        times = self.times(kind)
        if times is not None and times.unit == "ns":  # which to_pylist leaves to pandas
            arrow, types, own = self.module(), self.module().types, column.type
            coarser = arrow.timestamp("us", own.tz) if types.is_timestamp(own) else arrow.duration("us")
            column = column.cast(arrow.time64("us") if types.is_time(own) else coarser)
        found: list[Value] = column.to_pylist()
        return found

    @override
    def _column(self, kind: Kind, values: Sequence[Value]) -> Column:
        arrow = self.module()
        self._require_present(kind, values)
        if kind.dictionary is None:
            return arrow.array(values, kind.field.type)
        places = {value: place for place, value in enumerate(kind.dictionary.to_pylist())}
        if any(value is not None and value not in places for value in values):
            raise ValueError("a value is not in the dictionary")
        own = kind.field.type
        codes = arrow.array([None if value is None else places[value] for value in values], own.index_type)
        return arrow.DictionaryArray.from_arrays(codes, kind.dictionary, ordered=own.ordered)

    def _require_present(self, kind: Kind, values: Sequence[Value]) -> None:
        if not kind.field.nullable and any(value is None for value in values):
            raise ValueError("a column that is not null cannot hold None")

    @override
    def kind_to_json(self, kind: Kind) -> object:
        own = super().kind_to_json(kind) if kind.dictionary is None else self._dictionary_to_json(kind)
        if own is not None and kind.field.metadata:
            own = {"with metadata": [own, texts_of(kind.field.metadata)]}
        return own if own is None or kind.field.nullable else {"not null": [own]}

    def _dictionary_to_json(self, kind: Kind) -> object:
        """The type of a column of a dictionary of texts, numbers or flags; None for other values."""
        of = kind.field.type
        index, value = (self._name(ArrowKind(self.module().field("", part))) for part in (of.index_type, of.value_type))
        entries = kind.dictionary.to_pylist()
        if value not in self.plain or not all(type(entry) in (str, int, bool) for entry in entries):
            return None
        return {"dictionary": [index, value, entries, of.ordered]}

    @override
    def kind_from_json(self, value: object) -> Kind:
        arrow = self.module()
        match value:
            case {"not null": [inner], **rest} if not rest:
                found = self.kind_from_json(inner)
                return ArrowKind(found.field.with_nullable(False), found.dictionary)
            case {"with metadata": [inner, metadata], **rest} if not rest:
                found = self.kind_from_json(inner)
                return ArrowKind(found.field.with_metadata(bytes_of(metadata)), found.dictionary)
            case {"dictionary": [index, of, list(entries), bool(ordered)], **rest} if not rest:
                index, of = self.kind_from_json(index).field.type, self.kind_from_json(of).field.type
                return ArrowKind(arrow.field("", arrow.dictionary(index, of, ordered)), arrow.array(entries, of))
        return super().kind_from_json(value)

    @override
    def _own(self, kind: Kind) -> object:
        return kind.field.type

    @override
    def _name(self, kind: Kind) -> str:
        name = str(kind.field.type)
        return name if name in self.plain else name.partition("[")[0].partition("(")[0]

    @override
    def _kind(self, name: str, given: Sequence[object]) -> Kind:
        arrow = self.module()
        own = getattr(arrow, name)(*given) if given else arrow.type_for_alias(name)
        return ArrowKind(arrow.field("", own))


def texts_of(metadata: Mapping[bytes, bytes]) -> dict[str, str]:
    """Metadata of Arrow as JSON values. Raises `UnicodeDecodeError` for what is no UTF-8."""
    return {name.decode(): text.decode() for name, text in metadata.items()}


def bytes_of(metadata: object) -> dict[bytes, bytes]:
    """Metadata of Arrow from unchecked JSON. Raises `ValueError`."""
    if not isinstance(metadata, Mapping) or not all(
        isinstance(text, str) for item in metadata.items() for text in item
    ):
        raise ValueError("metadata must be texts by name")
    return {name.encode(): text.encode() for name, text in metadata.items()}


POLARS: Final = PolarsTables()
LAZY_POLARS: Final = LazyPolarsTables()
ARROW: Final = ArrowTables()
#: The forms of tables.
TABLES: Final[tuple[Tables, ...]] = (POLARS, LAZY_POLARS, ARROW)


def tables_of(data: object) -> Tables | None:
    """The form of a table; None for anything else, DataFrames of pandas among it. Imports nothing."""
    return next((tables for tables in TABLES if tables.holds(data)), None)


def dtype_text(dtype: Any) -> str:
    """A type of pandas with all its settings: the categories of one in their order."""
    categories = getattr(dtype, "categories", None)
    if categories is None:
        return repr(dtype)
    return f"{dtype!r} {categories.dtype!r} {categories.tolist()!r} {dtype.ordered}"


def is_frame(data: object) -> bool:
    """Whether it is a DataFrame of pandas or of a class derived from it; pandas is not imported for the question."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas" for kind in type(data).__mro__
    )


def installed(library: str, what: str) -> Any:
    """A library that need not be there. Raises `InvalidNeighbours` where it is not installed."""
    try:
        return import_module(library)
    except ImportError as error:
        raise InvalidNeighbours(f"{what} needs {library}, which cannot be imported: pip install {library}") from error
