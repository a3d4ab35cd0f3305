"""DataFrames, tables, Series and single columns of pandas, Polars and Arrow as entries of a row.

A value's node follows from its column and its index label, not from its rank (`value_counts` sorts by noisy values).
The order of columns and labels is a further entry.
"""

import sys
from typing import Any

from dpwitness.events.encoding import symbol
from dpwitness.frames import ARROW, PANDAS, POLARS, Frames, dtype_text
from dpwitness.mechanisms.columns import Node
from dpwitness.mechanisms.outcomes import RowWriter, flatten, listed, put_list


def put_frame(
    frames: Frames, frame: Any, row: RowWriter, node: Node, *, series: bool = False, name: object = ""
) -> None:
    """Put a frame: the values, row after row, then the types and the order of columns, then the labels of rows.

    `series`: the frame is a single column of this `name`, whose values have no node of a column around them.
    """
    columns, index, word = frames.columns(frame), getattr(frame, "index", None), "series" if series else "table"
    counted = index is not None and getattr(index, "step", 0) == 1 and index.start == 0 and index.name is None
    labels = None if index is None or counted else list(index)
    row.mark(node, symbol(word), "a Series" if series else "a DataFrame")
    row.length(len(frame), node, "rows")
    within = [
        row.nodes(one, "row", len(frame)) if labels is None else row.each(one, "index", labels)
        for one in ([node] if series else row.each(node, "column", columns))
    ]
    for number in range(len(frame)):
        for values, nodes in zip(columns.values(), within, strict=True):
            row.add(values[number], nodes[number])
    # An index of several levels keeps labels of rows that were removed.
    levels = [[level.tolist() for level in getattr(axis, "levels", ())] for axis in getattr(frame, "axes", ())]
    form = symbol(word, repr((frames.schema(frame), levels, labels is None, row.codes(name))))
    row.mark(row.at(node, "order of", "columns"), form, listed([*columns]))
    if labels is not None:
        order = symbol("labels", repr([row.codes(label) for label in labels]))
        row.mark(row.at(node, "order of", "labels"), order, listed(labels))


def _put_array(value: Any, row: RowWriter, node: Node) -> None:
    """Put an index or an array of pandas."""
    levels = [level.tolist() for level in getattr(value, "levels", ())]  # they keep labels of rows that were removed
    kind = symbol("array", f"{type(value).__name__} {dtype_text(value.dtype)} {getattr(value, 'names', '')} {levels}")
    row.traits.label(kind, type(value).__name__)
    put_list(list(value), row, node, kind)


def register() -> None:
    """Register the types of pandas, Polars and Arrow with `flatten`, where they are imported."""
    polars, arrow, pd = (sys.modules.get(name) for name in ("polars", "pyarrow", "pandas"))

    def add(frames: Frames, frame: type, as_frame: Any, *columns: type) -> None:
        flatten.register(frame, lambda value, row, node: put_frame(frames, value, row, node))
        for column in columns:
            flatten.register(
                column,
                lambda value, row, node: put_frame(
                    frames, as_frame(value), row, node, series=True, name=getattr(value, "name", None)
                ),
            )

    if polars is not None:
        add(POLARS, polars.DataFrame, polars.Series.to_frame, polars.Series)
    if arrow is not None:
        add(ARROW, arrow.Table, lambda one: arrow.table([one], names=[""]), arrow.ChunkedArray, arrow.Array)
        flatten.register(arrow.Scalar, lambda value, row, node: row.add(value.as_py(), node))
    if pd is not None:
        add(PANDAS, pd.DataFrame, pd.Series.to_frame, pd.Series)
        flatten.register(pd.Index, _put_array)
        flatten.register(pd.api.extensions.ExtensionArray, _put_array)
        flatten.register(type(pd.NA), lambda value, row, node: row.mark(node, symbol("missing", "<NA>"), "<NA>"))
