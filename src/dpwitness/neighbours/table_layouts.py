"""Tables of Polars and of Arrow: their schema is that of an example, or follows from the domain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import Domain, Numbers, Value
from dpwitness.neighbours.fields import Fields, Record
from dpwitness.neighbours.inputs import Data
from dpwitness.neighbours.layouts import Layout, NamedLayout, array_of, columns_of, fits, read_columns
from dpwitness.tables import ARROW, LAZY_POLARS, POLARS, Column, Kind, Schema, Tables


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
        schema = cls.tables.schema(table)
        if schema.names != fields.names:
            return None
        return read_columns(fields, list(map(cls.tables.entries, cls.tables.columns(table), schema.kinds)))

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
        if isinstance(domain, Numbers) and dtype is not None:
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
