"""DataFrames, Tables and columns of Polars and Arrow as entries of a row; see `tabular`. Imported with one of them."""

import sys
from typing import Any

from dpwitness.mechanisms.outcomes import Node, Row, append
from dpwitness.mechanisms.shapes import SHAPED, Shape
from dpwitness.mechanisms.tabular import ColumnShape, TableShape, known, put_values
from dpwitness.tables import ARROW, POLARS, Tables


def _add(library: Tables, table: type, *columns: type) -> None:
    """Register the types of a library: of tables, and of columns by themselves."""

    def shape_of_table(value: Any) -> TableShape:
        schema = library.schema(value)
        return TableShape(names=schema.names, kinds=schema.kinds, rows=len(value))

    def append_table(value: object, row: Row, node: Node | None) -> None:
        shape_of_table(value).put([*library.contents(value).values()], row, node)

    def table_shape(value: object, values: list[object], level: int) -> Shape:
        shape = shape_of_table(value)
        known(shape.names)
        for column in library.contents(value).values():
            put_values(column, values)
        return TableShape, shape, ()

    def shape_of_column(value: Any) -> ColumnShape:
        return ColumnShape(name=getattr(value, "name", None), kind=library.kind(value), rows=len(value))

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
