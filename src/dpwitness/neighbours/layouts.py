"""What a dataset is besides its records, and columns of the types that it says.

Neighbours differ in their records and in nothing else. So both are built in one layout, which comes from an example or
from the domain, never from the records that happen to be there.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

import numpy as np
from typing_extensions import override

from dpwitness.neighbours.domains import NOT_IN_DOMAIN, Domain, Numbers, Value, key_of
from dpwitness.neighbours.fields import Fields, Record
from dpwitness.neighbours.inputs import Data

DType = np.dtype[Any]
Column = Any  # an array, a list, or a column of a library that has no types
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
    records, domains = [], fields.domains
    for row in zip(*columns, strict=True):
        record = tuple(domain.read(flag_of(domain, value)) for domain, value in zip(domains, row, strict=True))
        if any(value is NOT_IN_DOMAIN for value in record):
            return None
        records.append(record)
    return records


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
    if isinstance(domain, Numbers) and (getattr(dtype, "kind", "") == "f" if floats is None else floats):
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
