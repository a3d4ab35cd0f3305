"""The form in which a mechanism gets a dataset: an array, a list, a frame, columns, features and labels, a record.

Neighbours differ in their records only. So both are built in one layout, which follows from an example or from the
domain, never from the records that are present.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from typing import Any, ClassVar, Final, Self

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.frames import ARROW, LAZY_POLARS, PANDAS, POLARS, Frame, Frames, frames_of
from dpwitness.neighbours.domains import Domain, Value, is_real, key_of
from dpwitness.neighbours.fields import Fields, Record
from dpwitness.neighbours.inputs import Array, Data, require_unmasked

DType = np.dtype[Any]
#: The values of a field: an array or a list.
FieldValues = Any
#: The NumPy types of the domains whose values an array of numbers can hold.
NUMERIC_DTYPES: Final = ("float64", "int64", "bool")


class Layout(ABC):
    """The properties of a dataset besides its records: form, class, types of columns, index.

    Two datasets of a form are alike besides their records if and only if their layouts are equal.
    """

    @classmethod
    def needs(cls, fields: Fields) -> str | None:
        """A text on the records that the form needs; None if records of the fields fit."""
        return None

    @classmethod
    def columns(cls, fields: Fields | None, data: Data) -> list[FieldValues] | None:
        """The array or list of each field's values; None for data in rows, of another form or of other `fields`."""
        return None

    @classmethod
    def read(cls, fields: Fields, data: Data) -> list[Record] | None:
        """The flat records of a dataset; None for data of another form, or if a record is outside the domain."""
        columns = cls.columns(fields, data)
        if columns is None or len(columns) != len(fields.domains) or len(set(map(len, columns))) != 1:
            return None
        read = []
        for domain, column in zip(fields.domains, columns, strict=True):
            values = domain.read_all(_with_flags(domain, _entries(column)))
            if values is None:
                return None
            read.append(values)
        return list(zip(*read, strict=True))

    @classmethod
    def outside(cls, fields: Fields, data: Data) -> str:
        """The text of the first record of a dataset that is outside the domain, with its number from 1."""
        columns = cls.columns(fields, data)
        if columns is None or len(columns) != len(fields.domains):
            rows = enumerate(cls.rows(data), 1)
            return next(
                (f"record {k}, {brief(row)}," for k, row in rows if fields.read_all([row]) is None), brief(data)
            )
        named = fields.names if len(fields.names) == len(columns) else range(len(columns))
        for k, row in enumerate(zip(*map(_entries, columns), strict=False), 1):
            for name, domain, value in zip(named, fields.domains, row, strict=True):
                if domain.read_all(_with_flags(domain, [value])) is None:
                    return f"record {k}, where {name} is {brief(value)},"
        return brief(data)

    @classmethod
    def rows(cls, data: Data) -> list[Value]:
        """The records of a dataset in this form, with their values exactly as the mechanism gets them."""
        return list(zip(*map(_entries, cls.columns(None, data) or ()), strict=True))

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
        """The values of a missing number in this form: NaN, None, or both as two different values."""
        return (math.nan,)

    def fitted(self, fields: Fields) -> "Layout":
        """The layout with the domain's own type for every column whose type cannot hold the whole domain."""
        return self

    @abstractmethod
    def build(self, fields: Fields, records: Sequence[Record]) -> Data:
        """A dataset of the given records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLayout(Layout):
    """The layout of a list of records."""

    missing = (math.nan, None)

    @classmethod
    @override
    def read(cls, fields: Fields, data: Data) -> list[Record] | None:
        return fields.read_all(data) if type(data) is list else None

    @classmethod
    @override
    def rows(cls, data: Data) -> list[Value]:
        return list(data)

    @override
    def build(self, fields: Fields, records: Sequence[Record]) -> Data:
        return [fields.build(record) for record in records]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLayout(Layout):
    """The layout of a single record outside a dataset."""

    missing = (math.nan, None)

    @classmethod
    @override
    def read(cls, fields: Fields, data: Data) -> list[Record] | None:
        return fields.read_all(cls.rows(data))

    @classmethod
    @override
    def rows(cls, data: Data) -> list[Value]:
        # A number is held as an array without axes.
        return [data.item() if isinstance(data, np.ndarray) and data.ndim == 0 else data]

    @override
    def build(self, fields: Fields, records: Sequence[Record]) -> Data:
        return fields.build(records[0])


def _entries(column: FieldValues) -> list[Value]:
    return list(column.tolist() if isinstance(column, np.ndarray) else column)


def _with_flags(domain: Domain, values: list[Value]) -> list[Value]:
    """The values; of a domain of flags, 0 and 1 become False and True, as an array of numbers holds flags."""
    if domain.dtype != "bool":
        return values
    return [bool(value) if isinstance(value, int | float) and value in (0, 1) else value for value in values]


def array_of(dtype: DType | None, domain: Domain, values: Sequence[Value]) -> FieldValues:
    """A column of values of a domain: an array of a dtype, or a list if `dtype` is None."""
    if dtype is None:
        return list(values)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # a number beyond a narrow type becomes infinite, which no domain holds
            array = np.array([np.nan if value is None else value for value in values], np.float64).astype(dtype)
        if dtype.itemsize < np.dtype(np.float64).itemsize:
            for place, value in enumerate(array.tolist()):
                if not domain.holds(value):  # rounded out of the domain: take the next float towards the middle
                    array[place] = np.nextafter(array[place], array.dtype.type(domain.middle()))
        return array
    if dtype.kind == "O":
        array = np.empty(len(values), object)
        for place, value in enumerate(values):  # one by one: a list is an entry, not an axis
            array[place] = value
        return array
    return np.array(list(values), dtype)


def fits(domain: Domain, column_of: Callable[[Sequence[Value]], FieldValues], *, floats: bool) -> bool:
    """Whether a column holds every value of a domain; reals may be rounded within their range.

    `column_of`: the function that makes a column of values; `floats`: whether the column holds floats.
    """
    values = domain.samples()
    try:
        again = _with_flags(domain, _entries(column_of(values)))
    except (OverflowError, TypeError, ValueError):  # errors of libraries for values that a type does not hold
        return False
    if floats and is_real(domain):
        return True
    pairs = zip(values, again, strict=True)
    return all(key_of(domain.read(one)) == key_of(domain.read(other)) for one, other in pairs)


def _is_numeric(fields: Fields) -> bool:
    """Whether a record is a number, or a tuple of numbers."""
    return fields.flat and fields.kind != "dict" and all(domain.dtype in NUMERIC_DTYPES for domain in fields.domains)


def _needs_names(fields: Fields) -> str | None:
    named = fields.flat and fields.kind == "dict"
    return None if named else "records that are dicts of single values: their names become columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraysLayout(Layout):
    """The layout of an array or a list of each field's values; the fields `matrix` share one array."""

    matrix: ClassVar[slice]

    dtypes: tuple[DType | None, ...]  # the dtype of each field; None for a list

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        return cls(dtypes=tuple(getattr(column, "dtype", None) for column in cls.columns(None, data) or ()))

    @classmethod
    def usual(cls, fields: Fields) -> Self:
        """The layout whose array of several fields holds floats if one of these fields is real, else integers."""
        together = fields.domains[cls.matrix]
        one = np.dtype(np.float64 if any(domain.dtype == "float64" for domain in together) else np.int64)
        others = (domain.dtype for domain in fields.domains[len(together) :])
        return cls(dtypes=(*[one for _ in together], *(np.dtype(d) if d in NUMERIC_DTYPES else None for d in others)))

    @override
    def fitted(self, fields: Fields) -> Layout:
        fit = [
            dtype is None or fits(domain, partial(array_of, dtype, domain), floats=dtype.kind == "f")
            for dtype, domain in zip(self.dtypes, fields.domains, strict=True)
        ]
        fit[self.matrix] = [all(fit[self.matrix])] * len(fit[self.matrix])
        both = zip(self.dtypes, self.usual(fields).dtypes, fit, strict=True)
        return replace(self, dtypes=tuple(own if fitting else usual for own, usual, fitting in both))

    @override
    def build(self, fields: Fields, records: Sequence[Record]) -> Data:
        both = enumerate(zip(self.dtypes, fields.domains, strict=True))
        return self.joined(fields, [array_of(dtype, domain, [r[k] for r in records]) for k, (dtype, domain) in both])

    @abstractmethod
    def joined(self, fields: Fields, columns: list[FieldValues]) -> Data:
        """The dataset of the given columns."""

    def _matrix(self, columns: list[FieldValues]) -> Array:
        """The columns as one array of shape (records, fields)."""
        matrix = np.empty((len(columns[0]), len(columns)), columns[0].dtype)
        for k, column in enumerate(columns):
            matrix[:, k] = column
        return matrix


class ArrayLayout(ArraysLayout):
    """The layout of an array of numbers, of one axis or of records by fields."""

    matrix = slice(None)

    @classmethod
    @override
    def needs(cls, fields: Fields) -> str | None:
        return None if _is_numeric(fields) else "records that are numbers, or tuples of numbers"

    @classmethod
    @override
    def columns(cls, fields: Fields | None, data: Data) -> list[FieldValues] | None:
        if not isinstance(data, np.ndarray) or data.ndim not in (1, 2) or data.dtype.kind not in "biuf":
            return None
        if fields is not None and data.ndim != (1 if fields.kind == "value" else 2):
            return None
        return [*data.T] if data.ndim == 2 else [data]

    @override
    def joined(self, fields: Fields, columns: list[FieldValues]) -> Data:
        return columns[0] if fields.kind == "value" else self._matrix(columns)


class ColumnsLayout(ArraysLayout):
    """The layout of a dict of arrays and lists."""

    matrix = slice(0)

    @classmethod
    @override
    def needs(cls, fields: Fields) -> str | None:
        return _needs_names(fields)

    @classmethod
    @override
    def columns(cls, fields: Fields | None, data: Data) -> list[FieldValues] | None:
        if type(data) is not dict or (fields is not None and not fields.has_names(data)):
            return None
        columns = list(data.values())
        known = all(isinstance(c, list) or (isinstance(c, np.ndarray) and c.ndim == 1) for c in columns)
        return columns if known else None

    @override
    def joined(self, fields: Fields, columns: list[FieldValues]) -> Data:
        return dict(zip(fields.names, columns, strict=True))


class XYLayout(ArraysLayout):
    """The layout of a tuple of an array of features and an array or a list of labels."""

    matrix = slice(-1)

    @classmethod
    @override
    def needs(cls, fields: Fields) -> str | None:
        if fields.kind == "tuple" and len(fields.parts) == 2 and not isinstance(fields.parts[1], Fields):
            features = fields.parts[0]
            if _is_numeric(features) if isinstance(features, Fields) else features.dtype in NUMERIC_DTYPES:
                return None
        return "records ((x1, …, xk), y) of numbers x and a label y"

    @classmethod
    @override
    def columns(cls, fields: Fields | None, data: Data) -> list[FieldValues] | None:
        if not _is_xy(data) or data[0].ndim != 2 or getattr(data[1], "ndim", 1) != 1:
            return None
        return [*data[0].T, data[1]]

    @override
    def joined(self, fields: Fields, columns: list[FieldValues]) -> Data:
        return self._matrix(columns[:-1]), columns[-1]


def _is_xy(data: Data) -> bool:
    """Whether an object is a tuple of an array of features and an array or a list of labels."""
    both = type(data) is tuple and len(data) == 2
    return both and isinstance(data[0], np.ndarray) and isinstance(data[1], np.ndarray | list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameLayout(Layout):
    """The layout of a library's frames; `blank` is a frame without rows with all other properties.

    In Polars and Arrow a missing number is null, and NaN another value, which only data of the user hold.
    """

    frames: ClassVar[Frames]

    blank: Frame

    @property
    @override
    def missing(self) -> tuple[float | None, ...]:
        return (None,) if self.frames.null else (math.nan,)

    @classmethod
    @override
    def needs(cls, fields: Fields) -> str | None:
        texts = not cls.frames.null or all(isinstance(name, str) for name in fields.names)
        return _needs_names(fields) or (None if texts else "names of columns that are texts")

    @classmethod
    @override
    def columns(cls, fields: Fields | None, data: Data) -> list[FieldValues] | None:
        if not cls.frames.holds(data) or cls.frames.labels(data) is not None:
            return None
        columns = cls.frames.columns(data)
        return None if fields and not fields.has_names(columns) else list(columns.values())

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        return cls(blank=cls.frames.blank(data))

    @classmethod
    @override
    def usual(cls, fields: Fields) -> Self:
        return cls(blank=cls._usual(fields, fields.names))

    @classmethod
    def _usual(cls, fields: Fields, names: Sequence[Any]) -> Frame:
        """A blank whose types hold the whole domain, as types must not depend on the records that are present."""
        cls.frames.module()
        samples = {n: domain.samples() for n, domain in zip(fields.names, fields.domains, strict=True) if n in names}
        longest = max(map(len, samples.values()))
        try:
            return cls.frames.infer({name: [*islice(cycle(values), longest)] for name, values in samples.items()})
        except (OverflowError, TypeError, ValueError) as error:
            raise InvalidNeighbours(
                f"a {cls.frames.noun} has no type of column for all of {fields!s:.80}: give values of one type"
            ) from error

    @override
    def fitted(self, fields: Fields) -> Layout:
        floats, blank = self.frames.floats(self.blank), self.blank
        odd = [
            name
            for name, domain in zip(fields.names, fields.domains, strict=True)
            if not fits(domain, partial(self.frames.held, blank, name), floats=name in floats)
        ]
        if odd:
            blank = self.frames.retyped(blank, self._usual(fields, odd), odd)
        return replace(self, blank=blank)

    @override
    def build(self, fields: Fields, records: Sequence[Record]) -> Data:
        floats, columns = self.frames.floats(self.blank), {}
        for k, (name, domain) in enumerate(zip(fields.names, fields.domains, strict=True)):
            values: Sequence[Value] = [record[k] for record in records]
            if name in floats and is_real(domain):
                rounded = array_of(np.dtype(floats[name]), domain, values).tolist()
                values = [None if value is None else number for value, number in zip(values, rounded, strict=True)]
            columns[name] = values
        return self.frames.build(self.blank, columns)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.frames.schema(self.blank) == other.frames.schema(other.blank)

    def __hash__(self) -> int:
        return hash(tuple(self.frames.schema(self.blank).items()))


class PandasLayout(FrameLayout):
    """The layout of a DataFrame of pandas."""

    frames = PANDAS


class PolarsLayout(FrameLayout):
    """The layout of a DataFrame of Polars."""

    frames = POLARS


class LazyPolarsLayout(FrameLayout):
    """The layout of a LazyFrame of Polars."""

    frames = LAZY_POLARS


class ArrowLayout(FrameLayout):
    """The layout of a Table of Arrow."""

    frames = ARROW


#: The layout of each form, by the name of the form in files and calls.
FORMS: Final[dict[str, type[Layout]]] = {
    "array": ArrayLayout,
    "list": ListLayout,
    "dataframe": PandasLayout,
    "polars": PolarsLayout,
    "polars-lazy": LazyPolarsLayout,
    "arrow": ArrowLayout,
    "columns": ColumnsLayout,
    "xy": XYLayout,
    "record": RecordLayout,
}


def usual_form(fields: Fields) -> str:
    """The default form of records: (X, y), an array of numbers, else a list of records."""
    if isinstance(fields.parts[0], Fields) and XYLayout.needs(fields) is None:
        return "xy"
    return "array" if _is_numeric(fields) and fields.kind != "list" else "list"


def form_of_data(name: str, data: object) -> str:
    """The form of a dataset that was given as the argument `name`. Raises `InvalidNeighbours`."""
    frames = frames_of(data)
    if frames is not None:
        if frames.labels(data) is not None:
            raise InvalidNeighbours(
                f"{name}: the index of the DataFrame must count its rows: give reset_index(drop=True)"
            )
        return frames.form
    require_unmasked(data)
    if isinstance(data, np.ndarray) and data.ndim in (1, 2):
        return "array"
    if type(data) is list:
        return "list"
    if type(data) is dict:
        return "columns"
    if _is_xy(data):
        return "xy"
    raise InvalidNeighbours(
        f"{name}={brief(data)} must be a list of records, an array, a DataFrame of pandas or Polars, a LazyFrame, "
        "a Table of PyArrow, a dict of columns, or a tuple (X, y) of arrays"
    )


def check_form(form: object, fields: Fields) -> None:
    """Raise `InvalidNeighbours` unless `form` is a form that can hold the records."""
    if not isinstance(form, str) or form not in FORMS:
        raise InvalidNeighbours(f"form={brief(form)} must be one of {', '.join(FORMS)}, pandas")
    needs = FORMS[form].needs(fields)
    if needs is not None:
        raise InvalidNeighbours(f"form={form!r} needs {needs}, not {fields!s:.80}")
