"""How a dataset is handed to the mechanism: an array, a list, a table, columns, features and labels, a record."""

import copy
import math
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import Domain, Value
from dpwitness.neighbours.fields import Fields, Record
from dpwitness.neighbours.inputs import Array, Data, require_unmasked
from dpwitness.neighbours.layouts import (
    NUMERIC,
    ArrowLayout,
    DType,
    FrameLayout,
    Layout,
    LazyPolarsLayout,
    NamedLayout,
    PolarsLayout,
    array_of,
    columns_of,
    fits,
    read_columns,
)
from dpwitness.tables import TABLES, is_frame, tables_of


def _is_numeric(fields: Fields) -> bool:
    """Whether a record is a number, or a tuple of numbers."""
    return fields.flat and fields.kind != "dict" and all(domain.dtype in NUMERIC for domain in fields.domains)


def _column_type(domain: Domain) -> DType | None:
    """The type of an array of such values; None where they stand in a list."""
    return np.dtype(domain.dtype) if domain.dtype in NUMERIC else None


def _fitted_column(dtype: DType | None, domain: Domain) -> DType | None:
    return dtype if dtype is None or fits(dtype, domain) else _column_type(domain)


def _matrix(dtype: DType, order: str, domains: Sequence[Domain], records: Sequence[Record]) -> Array:
    """Records by fields."""
    matrix = np.empty((len(records), len(domains)), dtype, order="F" if order == "F" else "C")
    for k, domain in enumerate(domains):
        matrix[:, k] = array_of(dtype, domain, [record[k] for record in records])
    return matrix


def _matrix_type(domains: Sequence[Domain]) -> DType:
    """Floats where one of the fields needs them, integers otherwise."""
    return np.dtype(np.float64 if any(domain.dtype == "float64" for domain in domains) else np.int64)


def _fitted_matrix(dtype: DType, domains: Sequence[Domain]) -> DType:
    fit = all(fits(dtype, domain, entries=lambda column: column.tolist()) for domain in domains)
    return dtype if fit else _matrix_type(domains)


def _order(array: Array) -> str:
    """In which order the entries lie in memory; "C" where an array of one row or column has both."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLayout(Layout):
    """A list of records."""

    missing = (math.nan, None)

    kind: type = list

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        return fields.read_all(data) if isinstance(data, list) else None

    @staticmethod
    @override
    def rows(data: Data) -> list[Value]:
        return list(data)

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        return cls(kind=type(data))

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        items = [fields.build(record) for record in records]
        return items if self.kind is list else self.kind(items)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLayout(Layout):
    """One record alone."""

    missing = (math.nan, None)

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        return fields.read_all(RecordLayout.rows(data))

    @staticmethod
    @override
    def rows(data: Data) -> list[Value]:
        # A number is held as an array without axes.
        return [data.item() if isinstance(data, np.ndarray) and data.ndim == 0 else data]

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        return fields.build(records[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLayout(Layout):
    """An array of numbers, of one axis or of records by fields."""

    dtype: DType
    order: str = field(default="C", compare=False)  # which one cannot be told of a single row

    @staticmethod
    @override
    def needs(fields: Fields) -> str | None:
        return None if _is_numeric(fields) else "records that are numbers, or tuples of numbers"

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        if not isinstance(data, np.ndarray) or not data.ndim or data.dtype.kind not in "biuf":
            return None
        width = len(fields.domains)
        if data.shape != ((len(data),) if fields.kind == "value" else (len(data), width)):
            return None
        return read_columns(fields, data.reshape(-1, width).T.tolist())

    @staticmethod
    @override
    def rows(data: Data) -> list[Value]:
        rows: list[Value] = data.tolist()
        return rows

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        return cls(dtype=data.dtype, order=_order(data))

    @classmethod
    @override
    def usual(cls, fields: Fields) -> Self:
        return cls(dtype=_matrix_type(fields.domains))

    @override
    def fitted(self, fields: Fields) -> Layout:
        return replace(self, dtype=_fitted_matrix(self.dtype, fields.domains))

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        if fields.kind == "value":
            return array_of(self.dtype, fields.domains[0], [record[0] for record in records])
        return _matrix(self.dtype, self.order, fields.domains, records)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsLayout(NamedLayout):
    """A dict of arrays and lists."""

    dtypes: tuple[DType | None, ...]  # None: a list
    kind: type = dict
    empty: Data = field(default_factory=dict, compare=False)

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        if not isinstance(data, Mapping) or not fields.has_names(data):
            return None
        columns = list(data.values())
        if not all(isinstance(c, list) or (isinstance(c, np.ndarray) and c.ndim == 1) for c in columns):
            return None
        return read_columns(fields, list(map(list, columns)))

    @staticmethod
    @override
    def rows(data: Data) -> list[Value]:
        return list(zip(*data.values(), strict=True))

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        empty: Data = {}
        if isinstance(data, MutableMapping):
            empty = copy.copy(data)  # its settings, such as what a defaultdict makes
            empty.clear()
        dtypes = tuple(column.dtype if isinstance(column, np.ndarray) else None for column in data.values())
        return cls(dtypes=dtypes, kind=type(empty), empty=empty)

    @classmethod
    @override
    def usual(cls, fields: Fields) -> Self:
        return cls(dtypes=tuple(map(_column_type, fields.domains)))

    @override
    def fitted(self, fields: Fields) -> Layout:
        return replace(self, dtypes=tuple(map(_fitted_column, self.dtypes, fields.domains)))

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        columns = copy.copy(self.empty)
        arrays = map(array_of, self.dtypes, fields.domains, columns_of(fields, records))
        for name, array in zip(fields.names, arrays, strict=True):
            columns[name] = array
        return columns


@dataclass(frozen=True, slots=True, kw_only=True)
class XYLayout(Layout):
    """A tuple of an array of features and an array or a list of labels."""

    features: DType
    labels: DType | None
    order: str = field(default="C", compare=False)

    @staticmethod
    @override
    def needs(fields: Fields) -> str | None:
        if fields.kind == "tuple" and len(fields.parts) == 2 and not isinstance(fields.parts[1], Fields):
            features = fields.parts[0]
            if _is_numeric(features) if isinstance(features, Fields) else features.dtype in NUMERIC:
                return None
        return "records ((x1, …, xk), y) of numbers x and a label y"

    @staticmethod
    @override
    def read(fields: Fields, data: Data) -> list[Record] | None:
        if not _is_xy(data):
            return None
        features, labels = data[0], np.asarray(data[1], None if isinstance(data[1], np.ndarray) else object)
        if features.ndim != 2 or labels.ndim != 1 or features.shape != (len(labels), len(fields.domains) - 1):
            return None
        return read_columns(fields, [*features.T.tolist(), labels.tolist()])

    @staticmethod
    @override
    def rows(data: Data) -> list[Value]:
        return list(zip(data[0].tolist(), data[1], strict=True))

    @classmethod
    @override
    def of(cls, data: Data) -> Self:
        labels = data[1].dtype if isinstance(data[1], np.ndarray) else None
        return cls(features=data[0].dtype, labels=labels, order=_order(data[0]))

    @classmethod
    @override
    def usual(cls, fields: Fields) -> Self:
        *features, label = fields.domains
        return cls(features=_matrix_type(features), labels=_column_type(label))

    @override
    def fitted(self, fields: Fields) -> Layout:
        *features, label = fields.domains
        return replace(
            self, features=_fitted_matrix(self.features, features), labels=_fitted_column(self.labels, label)
        )

    @override
    def build(self, fields: Fields, records: Sequence[Record], without: tuple[int, ...] = ()) -> Data:
        *domains, label = fields.domains
        features = _matrix(self.features, self.order, domains, [record[:-1] for record in records])
        return features, array_of(self.labels, label, [record[-1] for record in records])


def _is_xy(data: Data) -> bool:
    """Whether it is a tuple of an array of features and an array or a list of labels."""
    both = type(data) is tuple and len(data) == 2
    return both and isinstance(data[0], np.ndarray) and isinstance(data[1], np.ndarray | list)


#: The forms by name.
FORMS: Final[dict[str, type[Layout]]] = {
    "array": ArrayLayout,
    "list": ListLayout,
    "dataframe": FrameLayout,
    "polars": PolarsLayout,
    "polars-lazy": LazyPolarsLayout,
    "arrow": ArrowLayout,
    "columns": ColumnsLayout,
    "xy": XYLayout,
    "record": RecordLayout,
}


OF_TABLES: Final = frozenset(tables.form for tables in TABLES)


def usual_form(fields: Fields) -> str:
    """The form of records where none was given: (X, y), an array of numbers, else a list of records."""
    if isinstance(fields.parts[0], Fields) and XYLayout.needs(fields) is None:
        return "xy"
    return "array" if _is_numeric(fields) and fields.kind != "list" else "list"


def form_meant(form: object, known: str | None) -> Any:
    """The form that a name means; `known` is that of a base or of examples. Other names mean themselves."""
    if form == "pandas":
        return "dataframe"
    return known if form == "dataframe" and known in OF_TABLES else form


def form_of_data(name: str, data: object) -> str:
    """The form in which a dataset was given as an argument of that name. Raises `InvalidNeighbours`."""
    if is_frame(data):
        return "dataframe"
    tables = tables_of(data)
    if tables is not None:
        return tables.form
    require_unmasked(data)
    if isinstance(data, np.ndarray) and data.ndim in (1, 2):
        return "array"
    if isinstance(data, list):
        return "list"
    if isinstance(data, Mapping):
        return "columns"
    if _is_xy(data):
        return "xy"
    raise InvalidNeighbours(
        f"{name}={brief(data)} must be a list of records, an array, a DataFrame of pandas or Polars, a LazyFrame, "
        "a Table of PyArrow, a dict of columns, or a tuple (X, y) of arrays"
    )


def check_form(form: object, fields: Fields) -> None:
    """Raise `InvalidNeighbours` unless it is a form for such records."""
    if not isinstance(form, str) or form not in FORMS:
        raise InvalidNeighbours(f"form={brief(form)} must be one of {', '.join(FORMS)}, pandas")
    needs = FORMS[form].needs(fields)
    if needs is not None:
        raise InvalidNeighbours(f"form={form!r} needs {needs}, not {fields!s:.80}")
