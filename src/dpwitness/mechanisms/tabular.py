"""DataFrames, Tables, Series and columns, of whatever library, as entries of a row.

Rows by position begin with a symbol of columns, types and labels. Rows that know places have the value of each column
and label at a coordinate of its own: the same label is in the same place whatever its rank (`value_counts` sorts by the
noisy values). What order columns and labels had is one more entry.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from dpwitness.events.encoding import symbol
from dpwitness.mechanisms.outcomes import (
    LISTED,
    SINGLE_VALUES,
    Node,
    Row,
    append,
    key_codes,
    listed,
    put_columns,
    put_series,
)
from dpwitness.mechanisms.shapes import NAMES, REBUILT, SHAPED, NoShape, Shape
from dpwitness.tables import ARROW, POLARS, Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """What a table is without its values; `labels` of rows are None where they are only counted."""

    names: tuple[object, ...]
    kinds: tuple[str, ...]
    rows: int
    labels: tuple[object, ...] | None = None
    more: str = ""  # what its library keeps besides

    def symbol(self, row: Row) -> float:
        """A symbol of columns, types and labels."""
        names = [key_codes(name, row) for name in self.names]
        return symbol("table", repr((names, self.kinds, self.labels is None, self.more)))

    def put(self, columns: Sequence[Sequence[object]], row: Row, node: Node | None) -> None:
        """Append the entries of a table."""
        if not row.keyed:
            row.structured = True
            row.put(self.symbol(row), node, f"columns {', '.join(map(repr, self.names[:5]))}"[:80])
            row.length(self.rows, node, "rows")
            for number in range(self.rows):
                if self.labels is not None:
                    row.add(self.labels[number])
                for values in columns:
                    row.add(values[number])
            return
        put_columns(self.names, columns, self.labels, self.rows, row, node)
        described = [f"{name!r} ({kind})" for name, kind in zip(self.names, self.kinds, strict=True)]
        row.put(self.symbol(row), row.at(node, "order of", "columns"), ", ".join(described[:LISTED]))
        if self.labels is not None:
            order = symbol("labels", repr([key_codes(label, row) for label in self.labels]))
            row.put(order, row.at(node, "order of", "labels"), listed(self.labels))


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnShape:
    """What a column by itself is without its values."""

    name: object
    kind: str
    rows: int
    labels: tuple[object, ...] | None = None
    more: str = ""  # as that of a table

    def put(self, values: Sequence[object], row: Row, node: Node | None) -> None:
        """Append the entries of a column."""
        codes = [key_codes(label, row) for label in self.labels or ()]
        form = symbol("series", repr((key_codes(self.name, row), self.kind, self.more, codes)))
        if row.keyed:
            put_series(values, self.labels, row, node)
            shown = "0, 1, …" if self.labels is None else listed(self.labels)
            row.put(form, row.at(node, "order of", "labels"), shown)
            return
        row.structured = True
        row.put(form, node, "series")
        row.length(self.rows, node, "rows")
        if not codes:
            row.extend(values, node, "row")
            return
        for number in sorted(range(len(values)), key=codes.__getitem__):
            for code in codes[number]:
                row.put(code, None)
            row.add(values[number])


@dataclass(frozen=True, slots=True)
class Laid:
    """What is laid out as a table or a column of a shape."""

    put: Callable[[Row, Node | None], None] = field(repr=False)


@append.register
def _(value: Laid, row: Row, node: Node | None) -> None:
    value.put(row, node)


def known(names: Iterable[object]) -> tuple[object, ...]:
    """Names of columns or rows. Raises `NoShape` for those that may be equal though they are others."""
    found = tuple(names)
    if not NAMES.issuperset(map(type, found)):
        raise NoShape
    return found


def put_values(own: list[object], values: list[object]) -> None:
    """Put the values of a column behind others. Raises `NoShape` where one of them is no single value."""
    if not SINGLE_VALUES.issuperset(map(type, own)):
        raise NoShape
    values += own


def _rebuilt_table(shape: TableShape, values: Iterator[object], _: Sequence[Shape]) -> Laid:
    columns = [[*islice(values, shape.rows)] for _ in shape.names]
    return Laid(lambda row, node: shape.put(columns, row, node))


def _rebuilt_column(shape: ColumnShape, values: Iterator[object], _: Sequence[Shape]) -> Laid:
    own = [*islice(values, shape.rows)]
    return Laid(lambda row, node: shape.put(own, row, node))


REBUILT.update({TableShape: _rebuilt_table, ColumnShape: _rebuilt_column})


def _add(library: Tables, table: type, *columns: type) -> None:
    """Register the types of a library: of tables, and of columns by themselves."""

    def shape_of_table(value: Any) -> TableShape:
        schema = library.schema(value)
        kinds, more = tuple(map(str, schema.kinds)), "" if schema.more is None else repr(schema.more)
        return TableShape(names=schema.names, kinds=kinds, rows=len(value), more=more)

    def append_table(value: object, row: Row, node: Node | None) -> None:
        shape_of_table(value).put([*library.contents(value).values()], row, node)

    def table_shape(value: object, values: list[object], level: int) -> Shape:
        shape = shape_of_table(value)
        known(shape.names)
        for column in library.contents(value).values():
            put_values(column, values)
        return TableShape, shape, ()

    def shape_of_column(value: Any) -> ColumnShape:
        return ColumnShape(name=getattr(value, "name", None), kind=str(library.kind(value)), rows=len(value))

    def append_column(value: object, row: Row, node: Node | None) -> None:
        shape_of_column(value).put(library.entries(value, library.kind(value)), row, node)

    def column_shape(value: object, values: list[object], level: int) -> Shape:
        put_values(library.entries(value, library.kind(value)), values)
        return ColumnShape, shape_of_column(value), ()

    append.register(table, append_table)
    SHAPED[table] = table_shape
    for column in columns:
        append.register(column, append_column)
        SHAPED[column] = column_shape


def register() -> None:
    """Register the types of the libraries that are imported, each once."""
    polars, arrow = sys.modules.get("polars"), sys.modules.get("pyarrow")
    if polars is not None and polars.DataFrame not in SHAPED:
        _add(POLARS, polars.DataFrame, polars.Series)
    if arrow is not None and arrow.Table not in SHAPED:
        _add(ARROW, arrow.Table, arrow.ChunkedArray, arrow.Array)
        append.register(arrow.Scalar, lambda value, row, node: row.add(value.as_py(), node))
