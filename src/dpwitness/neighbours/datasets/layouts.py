"""What a dataset is besides its records: its class, the types of its columns, its index, its order in memory.

Neighbours differ in their records and in nothing else. So both are built in one layout, which comes from an example or
from the domain, never from the records that happen to be there.
"""

import copy
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np

from dpwitness.neighbours.datasets.domain import NOT_IN_DOMAIN, Domain, key_of
from dpwitness.neighbours.datasets.fields import Fields, Record

__all__ = ["NUMERIC", "ArrayLayout", "ColumnsLayout", "Layout", "ListLayout", "RecordLayout", "XYLayout"]

#: Types of columns that an array can hold.
NUMERIC: Final = ("float64", "int64", "bool")

Make = Callable[[Any, Domain, Sequence[Any]], Any]


class Layout(Protocol):
    """How a form is filled in. Two datasets are alike besides their records if and only if their layouts are equal."""

    def fitted(self, fields: Fields) -> "Layout":
        """The same, with the domain's own type wherever a type cannot hold all that the domain does."""

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """A dataset of these records.

        `without`: rows with labels of their own have those of a dataset of one record more, without this one.
        """


def transposed(fields: Fields, records: Sequence[Record]) -> list[list[Any]]:
    """The columns of flat records."""
    return [[record[k] for record in records] for k in range(len(fields.domains))]


def samples(domain: Domain) -> list[Any]:
    """Values of every kind that a domain holds: all where they are listed, else those that are worth trying."""
    listed = getattr(domain, "values", ())
    return [*(listed if isinstance(listed, tuple) else ()), *domain.ends(), *domain.odd(), domain.middle()]


def holds(dtype: Any, domain: Domain, make: Make, read: Callable[[Any], list[Any]]) -> bool:
    """Whether a column of a type gives back what a domain holds; numbers may be rounded, but stay in their range."""
    values = samples(domain)
    try:
        found = [flag(domain, value) for value in read(make(dtype, domain, values))]
    except (OverflowError, TypeError, ValueError):  # what NumPy and pandas raise for values that a type does not hold
        return False
    rounded = getattr(dtype, "kind", "") == "f" and isinstance(domain.middle(), float) and not hasattr(domain, "values")
    return all(
        rounded or key_of(domain.read(again)) == key_of(domain.read(value))
        for value, again in zip(values, found, strict=True)
    )


def flag(domain: Domain, value: Any) -> Any:
    """A flag that an array of numbers holds as 0 or 1."""
    return bool(value) if domain.dtype == "bool" and isinstance(value, int | float) and value in (0, 1) else value


def array_of(dtype: Any, domain: Domain, values: Sequence[Any]) -> Any:
    """A column as an array of that type, or as a list where there is none."""
    if dtype is None:
        return list(values)
    if dtype.kind == "f":
        filled = [np.nan if value is None else value for value in values]
        with np.errstate(over="ignore"):  # beyond a narrow type it is infinite, which no domain holds
            made = np.array(filled, np.float64).astype(dtype)
        return made if dtype.itemsize >= np.dtype(np.float64).itemsize else _within(made, domain)
    if dtype.kind == "O":
        made = np.empty(len(values), object)
        for place, value in enumerate(values):  # one by one: a list is an entry, not an axis
            made[place] = value
        return made
    return np.array(list(values), dtype)


def _within(made: Any, domain: Domain) -> Any:
    """Numbers of a narrow type; where rounding took one out of its domain, the next one towards the middle."""
    for place, value in enumerate(made.tolist()):
        if domain.read(value) is NOT_IN_DOMAIN:
            made[place] = np.nextafter(made[place], made.dtype.type(domain.middle()))
    return made


def array_type(domain: Domain) -> np.dtype[Any] | None:
    """The type of an array of such values; None where they stand in a list."""
    return np.dtype(domain.dtype) if domain.dtype in NUMERIC else None


def matrix_type(domains: Sequence[Domain]) -> np.dtype[Any]:
    """Floats where one of the fields needs them, integers otherwise."""
    return np.dtype(np.float64 if any(domain.dtype == "float64" for domain in domains) else np.int64)


def order_of(array: Any) -> str:
    """In which order the entries lie in memory; "C" where an array of one row or column has both."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _matrix(dtype: np.dtype[Any], order: str, domains: Sequence[Domain], records: Sequence[Record]) -> Any:
    """Records by fields."""
    made = np.empty((len(records), len(domains)), dtype, order="F" if order == "F" else "C")
    for k, domain in enumerate(domains):
        made[:, k] = array_of(dtype, domain, [record[k] for record in records])
    return made


def _array_entries(column: Any) -> list[Any]:
    found: list[Any] = column.tolist()
    return found


def _fitted_matrix(dtype: np.dtype[Any], domains: Sequence[Domain]) -> np.dtype[Any]:
    fits = all(holds(dtype, domain, array_of, _array_entries) for domain in domains)
    return dtype if fits else matrix_type(domains)


def _fitted_column(dtype: np.dtype[Any] | None, domain: Domain) -> np.dtype[Any] | None:
    return dtype if dtype is None or holds(dtype, domain, array_of, list) else array_type(domain)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLayout:
    """A list of records."""

    kind: type = list

    @classmethod
    def of(cls, data: Any) -> "ListLayout":
        """That of a list."""
        return cls(kind=type(data))

    @classmethod
    def usual(cls, fields: Fields) -> "ListLayout":
        """That of any records."""
        return cls()

    def fitted(self, fields: Fields) -> "ListLayout":
        """As in `Layout`: a list holds anything."""
        return self

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """As in `Layout`."""
        made = [fields.build(record) for record in records]
        return made if self.kind is list else self.kind(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLayout:
    """One record alone."""

    @classmethod
    def of(cls, data: Any) -> "RecordLayout":
        """That of a record."""
        return cls()

    @classmethod
    def usual(cls, fields: Fields) -> "RecordLayout":
        """That of any record."""
        return cls()

    def fitted(self, fields: Fields) -> "RecordLayout":
        """As in `Layout`."""
        return self

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """As in `Layout`; of one record."""
        return fields.build(records[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLayout:
    """An array of numbers, of one axis or of records by fields."""

    dtype: np.dtype[Any]
    order: str = field(default="C", compare=False)  # which one cannot be told of a single row

    @classmethod
    def of(cls, data: Any) -> "ArrayLayout":
        """That of an array."""
        return cls(dtype=data.dtype, order=order_of(data))

    @classmethod
    def usual(cls, fields: Fields) -> "ArrayLayout":
        """That of records of numbers."""
        return cls(dtype=matrix_type(fields.domains))

    def fitted(self, fields: Fields) -> "ArrayLayout":
        """As in `Layout`."""
        return replace(self, dtype=_fitted_matrix(self.dtype, fields.domains))

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """As in `Layout`."""
        if fields.kind == "value":
            return array_of(self.dtype, fields.domains[0], [record[0] for record in records])
        return _matrix(self.dtype, self.order, fields.domains, records)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsLayout:
    """A dict of arrays and lists."""

    dtypes: tuple[np.dtype[Any] | None, ...]  # None: a list
    kind: type = dict
    empty: Any = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, data: Any) -> "ColumnsLayout":
        """That of a dict of columns."""
        empty: Any = {}
        if isinstance(data, MutableMapping):
            empty = copy.copy(data)  # its settings, such as what a defaultdict makes
            empty.clear()
        dtypes = tuple(column.dtype if isinstance(column, np.ndarray) else None for column in data.values())
        return cls(dtypes=dtypes, kind=type(empty), empty=empty)

    @classmethod
    def usual(cls, fields: Fields) -> "ColumnsLayout":
        """That of any records with names."""
        return cls(dtypes=tuple(map(array_type, fields.domains)))

    def fitted(self, fields: Fields) -> "ColumnsLayout":
        """As in `Layout`."""
        return replace(self, dtypes=tuple(map(_fitted_column, self.dtypes, fields.domains)))

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """As in `Layout`."""
        made = copy.copy(self.empty)
        for name, column in zip(
            fields.names, map(array_of, self.dtypes, fields.domains, transposed(fields, records)), strict=True
        ):
            made[name] = column
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class XYLayout:
    """A tuple of an array of features and an array or a list of labels."""

    features: np.dtype[Any]
    labels: np.dtype[Any] | None
    order: str = field(default="C", compare=False)

    @classmethod
    def of(cls, data: Any) -> "XYLayout":
        """That of a tuple (X, y)."""
        labels = data[1].dtype if isinstance(data[1], np.ndarray) else None
        return cls(features=data[0].dtype, labels=labels, order=order_of(data[0]))

    @classmethod
    def usual(cls, fields: Fields) -> "XYLayout":
        """That of records ((x1, …, xk), y)."""
        *features, label = fields.domains
        return cls(features=matrix_type(features), labels=array_type(label))

    def fitted(self, fields: Fields) -> "XYLayout":
        """As in `Layout`."""
        *features, label = fields.domains
        return replace(
            self, features=_fitted_matrix(self.features, features), labels=_fitted_column(self.labels, label)
        )

    def build(self, fields: Fields, records: Sequence[Record], without: int | None = None) -> Any:
        """As in `Layout`."""
        *domains, label = fields.domains
        features = _matrix(self.features, self.order, domains, [record[:-1] for record in records])
        return features, array_of(self.labels, label, [record[-1] for record in records])
