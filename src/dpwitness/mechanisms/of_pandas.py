"""DataFrames, Series and other values of pandas as entries of a row.

Rows by position begin with a symbol of columns, types and labels. Rows that know places have the value of each column
and label at a coordinate of its own: the same label is in the same place whatever its rank (`value_counts` sorts by the
noisy values). What order columns and labels had is one more entry.
"""

from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from dpwitness.events.encoding import symbol
from dpwitness.mechanisms.outcomes import LISTED, Node, Row, append, key_codes, listed, put_columns, put_series


@append.register(type(pd.NA))
def _(value: object, row: Row, node: Node | None) -> None:
    row.put(symbol("missing", str(value)), node, str(value))


@append.register(pd.Index)
@append.register(pd.api.extensions.ExtensionArray)
def _(value: Any, row: Row, node: Node | None) -> None:
    row.put(symbol("array", f"{type(value).__name__} {value.dtype}"), node, type(value).__name__)
    row.add(list(value), node)


@append.register(pd.Interval)
@append.register(pd.Period)
def _(value: object, row: Row, node: Node | None) -> None:
    row.put(symbol(type(value).__name__, repr(value)), node, str(value))


@append.register(pd.DataFrame)
def _(frame: Any, row: Row, node: Node | None) -> None:
    columns = [key_codes(name, row) for name in frame.columns]
    counted = _counts(frame.index)
    shape = (columns, [str(kind) for kind in frame.dtypes], counted or str(frame.index.dtype))
    if row.keyed:
        labels = None if counted else list(frame.index)
        put_columns([*frame.columns], [list(frame.iloc[:, k]) for k in range(len(columns))], labels, row, node)
        kinds = [f"{name!r} ({kind})" for name, kind in zip(frame.columns, frame.dtypes, strict=True)]
        row.put(symbol("table", repr(shape)), row.at(node, "order of", "columns"), ", ".join(kinds[:LISTED]))
        return
    row.structured = True
    row.put(symbol("table", repr(shape)), node, f"columns {', '.join(map(repr, frame.columns[:5]))}"[:80])
    row.length(len(frame), node, "rows")
    series = [list(frame.iloc[:, number]) for number in range(len(columns))]
    for number, label in enumerate(frame.index, 1):
        if not counted:
            row.add(label)
        for values in series:
            row.add(values[number - 1])


@append.register(pd.Series)
def _(series: Any, row: Row, node: Node | None) -> None:
    counted = _counts(series.index)
    labels = [] if counted else [key_codes(label, row) for label in series.index]
    kind = symbol("series", repr((key_codes(series.name, row), str(series.dtype), labels)))
    if row.keyed:
        put_series(list(series), None if counted else list(series.index), row, node)
        row.put(kind, row.at(node, "order of", "labels"), listed([*series.index]))
        return
    row.structured = True
    row.put(kind, node, "series")
    row.length(len(series), node, "rows")
    values = list(series)
    if not labels:
        row.extend(values, node, "row")
        return
    for number in sorted(range(len(values)), key=labels.__getitem__):
        for code in labels[number]:
            row.put(code, None)
        row.add(values[number])


def _counts(index: object) -> bool:
    """Whether an index only counts the rows from 0 on."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None
