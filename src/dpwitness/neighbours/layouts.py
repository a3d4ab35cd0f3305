"""What a dataset is besides its records, and columns of the types that it says.

Neighbours differ in their records and in nothing else. So both are built in one layout, which comes from an example or
from the domain, never from the records that happen to be there. Then those of DataFrames of pandas (types of columns,
index, attributes and class), and of tables of Polars and Arrow.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import Domain, Value, is_real, key_of
from dpwitness.neighbours.fields import Fields, Record
from dpwitness.neighbours.inputs import Data
from dpwitness.tables import ARROW, LAZY_POLARS, POLARS, Column, Kind, Schema, Tables, dtype_text, installed, is_frame

DType = np.dtype[Any]
#: Types of columns that an array can hold.
NUMERIC: Final = ("float64", "int64", "bool")


class Layout(ABC):
    """A form, and what a dataset in it is besides its records: class, types of columns, index, order in memory.

    Two datasets of a form are alike besides their records if and only if their layouts are equal.
    """

    __slots__ = ()

    @staticmethod
    def needs(fields: Fields) -> str | None:
        """What the form asks of records and these fields do not give; None where they do."""
        return None

    @staticmethod
    @abstractmethod
    def read(fields: Fields, data: Data) -> list[Record] | None:
        """The flat records of a dataset; None for another form, or where one of them does not belong."""

    @staticmethod
    @abstractmethod
    def rows(data: Data) -> list[Value]:
        """The records of a dataset in this form as the mechanism gets them: no value is read as a domain holds it."""

    @staticmethod
    def row_labels(data: Data) -> list[Value] | None:
        """The labels of the rows; None where rows have no labels of their own."""
        return None

    @classmethod
    def of(cls, data: Data) -> Self:
        """The layout of a dataset in this form."""
        return cls()

    @classmethod
    def usual(cls, fields: Fields) -> Self:
        """The layout of datasets without an example."""
        return cls()

    @property
    def missing(self) -> tuple[float | None, ...]:
        """How a missing number is held: as NaN, as None, or as either, which are then two values."""
        return (math.nan,)

    def fitted(self, fields: Fields) -> "Layout":
        """The same, with the domain's own type wherever a type cannot hold all that the domain does."""
        return self

    @abstractmethod
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        """A dataset of these records.

        `without`: rows with labels of their own have those of a dataset of so many records more, without these.
        """


def read_columns(fields: Fields, columns: Sequence[Sequence[Value]]) -> list[Record] | None:
    """The flat records of columns of equal length; None where one of them does not belong."""
    if len({len(column) for column in columns}) != 1:
        return None
    read = []
    for domain, column in zip(fields.domains, columns, strict=True):
        values = domain.read_all([flag_of(domain, value) for value in column] if domain.dtype == "bool" else column)
        if values is None:
            return None
        read.append(values)
    return list(zip(*read, strict=True))


def flag_of(domain: Domain, value: Value) -> Value:
    """A flag that an array of numbers holds as 0 or 1."""
    return bool(value) if domain.dtype == "bool" and isinstance(value, int | float) and value in (0, 1) else value


def columns_of(fields: Fields, records: Sequence[Record]) -> list[list[Value]]:
    """The values of each field."""
    return [[record[k] for record in records] for k in range(len(fields.domains))]


def array_of(dtype: DType | None, domain: Domain, values: Sequence[Value]) -> Column:
    """A column as an array of that type, or as a list where there is none."""
    if dtype is None:
        return list(values)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # beyond a narrow type it is infinite, which no domain holds
            array = np.array([np.nan if value is None else value for value in values], np.float64).astype(dtype)
        if dtype.itemsize < np.dtype(np.float64).itemsize:
            for place, value in enumerate(array.tolist()):
                if not domain.holds(value):  # rounding took it out of its domain: the next one towards the middle
                    array[place] = np.nextafter(array[place], array.dtype.type(domain.middle()))
        return array
    if dtype.kind == "O":
        array = np.empty(len(values), object)
        for place, value in enumerate(values):  # one by one: a list is an entry, not an axis
            array[place] = value
        return array
    return np.array(list(values), dtype)


def fits(
    dtype: object,
    domain: Domain,
    build: Callable[[Any, Domain, Sequence[Value]], Column] = array_of,
    entries: Callable[[Column], list[Value]] = list,
    *,
    floats: bool | None = None,
) -> bool:
    """Whether a column of a type gives back what a domain holds; numbers may be rounded, but stay in their range.

    `floats`: whether it is a type of floats; by default as the type itself says.
    """
    values = domain.samples()
    try:
        again = [flag_of(domain, value) for value in entries(build(dtype, domain, values))]
    except (OverflowError, TypeError, ValueError):  # what libraries raise for values that a type does not hold
        return False
    if is_real(domain) and (getattr(dtype, "kind", "") == "f" if floats is None else floats):
        return True
    pairs = zip(values, again, strict=True)
    return all(key_of(domain.read(one)) == key_of(domain.read(other)) for one, other in pairs)


class NamedLayout(Layout):
    """Columns with names."""

    __slots__ = ()

    @staticmethod
    @override
    def needs(fields: Fields) -> str | None:
        named = fields.flat and fields.kind == "dict"
        return None if named else "records that are dicts of single values: their names become columns"


Frame = Any  # a DataFrame
Index = Any  # that of a DataFrame


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameLayout(NamedLayout):
    """A DataFrame: `blank` is one without rows, `labels` are the index of the example.

    An index that counts the rows counts those that are there. One of labels belongs to the rows: a row that is removed
    takes its label with it, and a row that is added gets one of the same kind that no other has.
    """

    blank: Frame
    labels: Index

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        if not is_frame(data) or list(data.columns) != list(fields.names):
            return None
        return read_columns(fields, [column.tolist() for _, column in data.items()])

    @staticmethod
    @override
    def rows(data: Data) -> list[Value]:
        return list(zip(*(column.tolist() for _, column in data.items()), strict=True))

    @staticmethod
    @override
    def row_labels(data: Data) -> list[Value] | None:
        import pandas as pd  # type: ignore[import-untyped]  # no stubs; 0.5 s

        return None if isinstance(data.index, pd.RangeIndex) else data.index.tolist()

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        return cls(blank=data.iloc[:0], labels=data.index)

    @classmethod
    @override
    def usual(cls, fields: Fields) -> Self:
        pd = installed("pandas", "form='dataframe'")

        columns = {k: pd.Series([], dtype=_series_type(domain)) for k, domain in enumerate(fields.domains)}
        blank = pd.DataFrame(columns, index=pd.RangeIndex(0))
        blank.columns = pd.Index(fields.names)
        return cls(blank=blank, labels=blank.index)

    @override
    def fitted(self, fields: Fields) -> Layout:
        import pandas as pd

        def entries(column: Column) -> list[Value]:
            entries: list[Value] = pd.Series(column, dtype=column.dtype).tolist()
            return entries

        blank = self.blank
        for k, (dtype, domain) in enumerate(zip(self.blank.dtypes, fields.domains, strict=True)):
            if not fits(dtype, domain, _series_values, entries):
                blank = self.blank.copy() if blank is self.blank else blank
                blank.isetitem(k, pd.Series([], index=blank.index, dtype=_series_type(domain)))
        return replace(self, blank=blank)

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        import pandas as pd

        index = self._index(len(records), without)
        types = zip(self.blank.dtypes, fields.domains, columns_of(fields, records), strict=True)
        columns = {
            # With its type: pandas would take texts in an object column for a column of texts.
            k: pd.Series(_series_values(dtype, domain, values), index=index, dtype=dtype)
            for k, (dtype, domain, values) in enumerate(types)
        }
        frame = pd.DataFrame(columns, index=index)
        frame.columns = self.blank.columns
        kind = type(self.blank)
        if kind is not pd.DataFrame:
            try:
                frame = kind(frame)
            except Exception as error:  # whatever that class raises
                raise InvalidNeighbours(
                    f"a {kind.__name__} cannot be made of a DataFrame ({brief(str(error))}): give pandas.DataFrame(…)"
                ) from error
        return frame.__finalize__(self.blank)

    def _index(self, n: int, without: tuple[int, ...]) -> Index:
        """The index of so many rows."""
        import pandas as pd

        first = self.labels
        if isinstance(first, pd.RangeIndex):
            return pd.RangeIndex(first.start, first.start + n * first.step, first.step, name=first.name)
        return _continued(first, n + len(without)).delete(list(without)) if without else _continued(first, n)

    @property
    def key(self) -> tuple[object, ...]:
        """What layouts have in common if and only if they are equal, the labels of single rows aside."""
        import pandas as pd

        frame, index = self.blank, self.labels
        counted = (index.start, index.step) if isinstance(index, pd.RangeIndex) else ()
        dtypes = tuple(map(dtype_text, [*frame.dtypes, frame.columns.dtype, index.dtype]))
        names = (*frame.columns, frame.columns.name, *index.names)
        return type(frame), dtypes, tuple(map(repr, names)), type(index), counted, repr(frame.attrs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrameLayout) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _series_type(domain: Domain) -> object:
    """The type that pandas takes for values of the whole domain; it must not follow from those that are present."""
    import pandas as pd

    return np.dtype(domain.dtype) if domain.dtype in NUMERIC else pd.Series(domain.samples()).dtype


def _series_values(dtype: Any, domain: Domain, values: Sequence[Value]) -> Column:
    """The values of a column of that type, as an array of NumPy or of pandas."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        codes = {category: code for code, category in enumerate(dtype.categories.tolist())}
        return pd.Categorical.from_codes([codes.get(value, -1) for value in values], dtype=dtype)
    if isinstance(dtype, np.dtype) and dtype.kind not in "mM":
        return array_of(dtype, domain, values)
    if getattr(dtype, "kind", "") == "f":  # numbers beside a mask
        values = array_of(getattr(dtype, "numpy_dtype", np.dtype(np.float64)), domain, values)  # a sparse type has none
    return pd.array(list(values), dtype=dtype)


def _continued(labels: Index, n: int) -> Index:
    """The first `n` labels of an index, and after its last ones others of the same kind, each different.

    Numbers, times and periods go on from the greatest one, texts are numbered. Labels of other kinds, and those that
    repeat, come again from the first. Raises `InvalidNeighbours` where there is none to come again.
    """
    import pandas as pd

    have = len(labels)
    if n <= have:
        return _without_step(labels[:n])
    following = _following(labels, n - have) if labels.is_unique else None
    if following is not None:
        more = labels.append(pd.Index(following, dtype=labels.dtype, name=labels.name))
        return _without_step(pd.Index(more, dtype=labels.dtype))  # again: pandas may make texts of objects
    if not have:
        raise InvalidNeighbours(
            f"the index of a DataFrame without rows is a {type(labels).__name__}, whose labels cannot be made up: give "
            "rows, or reset_index(drop=True)"
        )
    return labels.take(np.arange(n) % have)


def _following(labels: Index, count: int) -> list[Value] | None:
    """So many further labels; None where there is no rule for such."""
    import pandas as pd

    numbers = range(1, count + 1)
    if isinstance(labels, pd.DatetimeIndex | pd.TimedeltaIndex):
        zero = pd.Timedelta(0) if isinstance(labels, pd.TimedeltaIndex) else pd.Timestamp(0, tz=labels.tz)
        last = labels.dropna().max() if len(labels.dropna()) else zero
        return [last + pd.Timedelta(days=k) for k in numbers]
    if isinstance(labels, pd.PeriodIndex) and len(labels):
        return [labels.max() + k for k in numbers]
    if labels.inferred_type in ("string", "empty") and not isinstance(labels, pd.CategoricalIndex):
        known = set(labels)
        free = (str(k) for k in itertools.count(len(labels)) if str(k) not in known)
        return list(itertools.islice(free, count))
    kind = getattr(labels.dtype, "kind", "O")
    if kind not in "iuf" or labels.hasnans:
        return None
    last = labels.max() if len(labels) else 0
    if kind == "f":
        return [last + k for k in numbers]
    most = np.iinfo(getattr(labels.dtype, "numpy_dtype", labels.dtype)).max
    return [int(last) + k for k in numbers] if int(last) + count <= most else None


def _without_step(labels: Index) -> Index:
    """An index of times that does not say that they are evenly spaced: without one row they are not."""
    import pandas as pd

    if isinstance(labels, pd.DatetimeIndex | pd.TimedeltaIndex) and labels.freq is not None:
        labels = labels.copy()
        labels.freq = None
    return labels


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout(NamedLayout):
    """A table: `nan` are the columns of an example in which NaN is a value; in all others what is missing is null."""

    tables: ClassVar[Tables]

    schema: Schema
    nan: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    @override
    def missing(self) -> tuple[float | None, ...]:
        return (None, math.nan) if self.nan else (None,)

    @staticmethod
    @override
    def needs(fields: Fields) -> str | None:
        texts = all(isinstance(name, str) for name in fields.names)
        return NamedLayout.needs(fields) or (None if texts else "names of columns that are texts")

    @classmethod
    @override
    def read(cls, fields: Fields, data: Data) -> list[Record] | None:
        if not cls.tables.holds(data):
            return None
        table = cls.tables.eager(data)
        if cls.tables.schema(table).names != fields.names:
            return None
        return read_columns(fields, cls._entries(table))

    @classmethod
    @override
    def rows(cls, data: Data) -> list[Value]:
        return list(zip(*cls._entries(cls.tables.eager(data)), strict=True))

    @classmethod
    def _entries(cls, table: Data) -> list[list[Value]]:
        """The values of each column."""
        return list(map(cls.tables.entries, cls.tables.columns(table), cls.tables.schema(table).kinds))

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        table = cls.tables.eager(data)
        schema = cls.tables.schema(table)
        columns = zip(schema.names, cls.tables.columns(table), strict=True)
        return cls(schema=schema, nan=frozenset(name for name, column in columns if cls.tables.has_nan(column)))

    @classmethod
    @override
    def usual(cls, fields: Fields) -> Self:
        cls.tables.module()
        return cls(schema=Schema(names=tuple(map(str, fields.names)), kinds=tuple(map(cls._usual, fields.domains))))

    @classmethod
    def _usual(cls, domain: Domain) -> Kind:
        """The type for values of the whole domain; it must not follow from those that are present."""
        try:
            return cls.tables.usual(domain.samples())
        except (OverflowError, TypeError, ValueError) as error:
            raise InvalidNeighbours(
                f"a {cls.tables.noun} has no type of column for all of {domain!s:.80}: give values of one type"
            ) from error

    @override
    def fitted(self, fields: Fields) -> Layout:
        def build(kind: Kind, domain: Domain, values: Sequence[Value]) -> Column:
            return self._column(kind, domain, values, nan=True)

        def fitting(kind: Kind, domain: Domain) -> Kind:
            floats = self.tables.float_type(kind) is not None
            if fits(kind, domain, build, lambda column: self.tables.entries(column, kind), floats=floats):
                return kind
            return self._usual(domain)

        return replace(self, schema=replace(self.schema, kinds=tuple(map(fitting, self.schema.kinds, fields.domains))))

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        columns = [
            self._column(kind, domain, values, nan=name in self.nan)
            for name, kind, domain, values in zip(
                fields.names, self.schema.kinds, fields.domains, columns_of(fields, records), strict=True
            )
        ]
        return self.tables.table(self.schema, columns)

    def _column(self, kind: Kind, domain: Domain, values: Sequence[Value], *, nan: bool) -> Column:
        """A column; floats of a narrow type are rounded into the domain, and NaN is null unless `nan`."""
        dtype = self.tables.float_type(kind)
        if is_real(domain) and dtype is not None:
            rounded = array_of(np.dtype(dtype), domain, values).tolist()
            values = [
                None if value is None or (value != value and not nan) else number
                for value, number in zip(values, rounded, strict=True)
            ]
        return self.tables.column(kind, values)


class PolarsLayout(TableLayout):
    """A DataFrame of Polars."""

    __slots__ = ()
    tables = POLARS


class LazyPolarsLayout(TableLayout):
    """A LazyFrame of Polars."""

    __slots__ = ()
    tables = LAZY_POLARS


class ArrowLayout(TableLayout):
    """A Table of Arrow."""

    __slots__ = ()
    tables = ARROW
