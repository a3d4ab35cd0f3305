"""DataFrames, Series and other values of pandas as entries of a row; see `tabular`."""

from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from dpwitness.events.encoding import symbol
from dpwitness.mechanisms.outcomes import Node, Row, append
from dpwitness.mechanisms.shapes import SHAPED, Shape
from dpwitness.mechanisms.tabular import ColumnShape, TableShape, known, put_values


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
    shape = TableShape(
        names=tuple(frame.columns), kinds=tuple(frame.dtypes), rows=len(frame), labels=_labels(frame.index),
        index=frame.index.dtype,
    )  # fmt: skip
    shape.put([list(frame.iloc[:, number]) for number in range(len(shape.names))], row, node)


@append.register(pd.Series)
def _(series: Any, row: Row, node: Node | None) -> None:
    shape = ColumnShape(name=series.name, kind=series.dtype, rows=len(series), labels=_labels(series.index))
    shape.put(list(series), row, node)


def _frame_shape(frame: Any, values: list[object], level: int) -> Shape:
    names, labels, kinds = known(frame.columns), _labels(frame.index), []
    for _, series in frame.items():  # noqa: PERF102  # it has no `values()`
        kinds.append(series.dtype)
        put_values(series.tolist(), values)
    labels = None if labels is None else known(labels)
    shape = TableShape(names=names, kinds=tuple(kinds), rows=len(frame), labels=labels, index=frame.index.dtype)
    return TableShape, shape, ()


def _series_shape(series: Any, values: list[object], level: int) -> Shape:
    labels = _labels(series.index)
    labels = None if labels is None else known(labels)
    known([] if series.name is None else [series.name])
    put_values(series.tolist(), values)
    return ColumnShape, ColumnShape(name=series.name, kind=series.dtype, rows=len(series), labels=labels), ()


SHAPED.update({pd.DataFrame: _frame_shape, pd.Series: _series_shape})


def _labels(index: Any) -> tuple[object, ...] | None:
    """The labels of rows; None where they only count the rows from 0 on."""
    counted = isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None
    return None if counted else tuple(index)
