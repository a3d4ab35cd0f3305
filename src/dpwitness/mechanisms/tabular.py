"""DataFrames, tables, Series and single columns of pandas, Polars and Arrow as entries of a row.

A value's node follows from its column and its index label, not from its rank (`value_counts` sorts by noisy values).
The order of columns and labels is a further entry.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dpwitness.events.encoding import symbol
from dpwitness.frames import ARROW, POLARS, Frames, dtype_text
from dpwitness.mechanisms.columns import Node
from dpwitness.mechanisms.outcomes import LISTED_NAMES, Row, flatten, listed, put_list


def put_table(
    names: Sequence[object], columns: Sequence[Sequence[object]], kinds: Sequence[str], rows: int,
    labels: Sequence[object] | None, more: str, row: Row, node: Node,
) -> None:  # fmt: skip
    """Put the values of a table at the nodes of their columns and labels, row after row.

    `columns`: the values of each column; `kinds`: the columns' types; `labels`: the labels of rows, None for 0, 1, …;
    `more`: further properties of the table.
    """
    row.mark(node, symbol("table"), "a DataFrame")
    row.length(rows, node, "rows")
    own = [_rows(labels, rows, row, one) for one in row.each(node, "column", names)]
    for number in range(rows):
        for values, nodes in zip(columns, own, strict=True):
            row.add(values[number], nodes[number])
    if not columns:  # rows are labels alone
        for label in _rows(labels, rows, row, node):
            row.mark(label, symbol("row"), "present")
    form = symbol("table", repr(([row.codes(name) for name in names], tuple(kinds), labels is None, more)))
    described = [f"{name!r} ({kind})" for name, kind in zip(names, kinds, strict=True)]
    row.mark(row.at(node, "order of", "columns"), form, ", ".join(described[:LISTED_NAMES]))
    if labels is not None:
        order = symbol("labels", repr([row.codes(label) for label in labels]))
        row.mark(row.at(node, "order of", "labels"), order, listed(labels))


def put_column(
    name: object, values: Sequence[object], kind: str, labels: Sequence[object] | None, more: str, row: Row, node: Node
) -> None:
    """Put a single column: its values by their labels, or by numbers from 1 if `labels` is None."""
    row.mark(node, symbol("series"), "a Series")
    row.length(len(values), node, "rows")
    for value, within in zip(values, _rows(labels, len(values), row, node), strict=True):
        row.add(value, within)
    form = symbol("series", repr((row.codes(name), kind, more, [row.codes(label) for label in labels or ()])))
    row.mark(row.at(node, "order of", "labels"), form, "0, 1, …" if labels is None else listed(labels))


def _rows(labels: Sequence[object] | None, count: int, row: Row, node: Node) -> list[Node]:
    return row.nodes(node, "row", count) if labels is None else row.each(node, "index", labels)


def _add(frames: Frames, table: type, as_frame: Callable[[Any], Any], *columns: type) -> None:
    """Register the types of a library: tables, and single columns, which `as_frame` converts to a frame."""

    def of_table(value: Any, row: Row, node: Node) -> None:
        schema, values = frames.schema(value), frames.columns(value)
        kinds, more = [schema[f"the type of column {name!r}"] for name in values], schema.get("their metadata", "")
        put_table([*values], [*values.values()], kinds, len(value), None, more, row, node)

    def of_column(value: Any, row: Row, node: Node) -> None:
        frame = as_frame(value)
        ((name, values),) = frames.columns(frame).items()
        kind = frames.schema(frame)[f"the type of column {name!r}"]
        put_column(getattr(value, "name", None), values, kind, None, "", row, node)

    flatten.register(table, of_table)
    for column in columns:
        flatten.register(column, of_column)


def _add_pandas(pd: Any) -> None:
    def of_frame(frame: Any, row: Row, node: Node) -> None:
        labels = _labels(frame.index)
        more = _described(frame.columns) + ("" if labels is None else _described(frame.index))
        series = [one for _, one in frame.items()]
        columns, kinds = [one.tolist() for one in series], [dtype_text(one.dtype) for one in series]
        put_table((*frame.columns,), columns, kinds, len(frame), labels, more, row, node)

    def of_series(series: Any, row: Row, node: Node) -> None:
        labels = _labels(series.index)
        more = "" if labels is None else _described(series.index)
        put_column(series.name, series.tolist(), dtype_text(series.dtype), labels, more, row, node)

    def _labels(index: Any) -> tuple[object, ...] | None:
        # None for the labels 0, 1, …
        counted = isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None
        return None if counted else tuple(index)

    def _described(index: Any) -> str:
        # Types with all their settings, names, and levels, which keep labels of rows that were removed.
        levels = index.levels if isinstance(index, pd.MultiIndex) else ()
        within = [_described(level) + repr(level.tolist()) for level in levels]
        return repr((dtype_text(index.dtype), within, list(index.names)))

    def of_index(value: Any, row: Row, node: Node) -> None:
        described = _described(value) if isinstance(value, pd.Index) else dtype_text(value.dtype)
        kind = symbol("array", f"{type(value).__name__} {described}")
        row.traits.label(kind, type(value).__name__)
        put_list(list(value), row, node, kind)

    flatten.register(pd.DataFrame, of_frame)
    flatten.register(pd.Series, of_series)
    flatten.register(pd.Index, of_index)
    flatten.register(pd.api.extensions.ExtensionArray, of_index)
    flatten.register(type(pd.NA), lambda value, row, node: row.mark(node, symbol("missing", str(value)), str(value)))


def register() -> None:
    """Register the types of pandas, Polars and Arrow with `flatten`, where they are imported."""
    polars, arrow, pandas = (sys.modules.get(name) for name in ("polars", "pyarrow", "pandas"))
    if polars is not None:
        _add(POLARS, polars.DataFrame, polars.Series.to_frame, polars.Series)
    if arrow is not None:
        as_table = partial(arrow.table, names=[""])
        _add(ARROW, arrow.Table, lambda column: as_table([column]), arrow.ChunkedArray, arrow.Array)
        flatten.register(arrow.Scalar, lambda value, row, node: row.add(value.as_py(), node))
    if pandas is not None:
        _add_pandas(pandas)
