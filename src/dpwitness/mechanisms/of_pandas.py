"""DataFrames, Series and other values of pandas as entries of a row; see `tabular`."""

from collections.abc import Iterable
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from dpwitness.events.encoding import symbol
from dpwitness.mechanisms.outcomes import Node, Row, append
from dpwitness.mechanisms.shapes import SHAPED, NoShape, Shape
from dpwitness.mechanisms.tabular import ColumnShape, TableShape, known, put_values
from dpwitness.tables import dtype_text


@append.register(type(pd.NA))
def _(value: object, row: Row, node: Node | None) -> None:
    row.put(symbol("missing", str(value)), node, str(value))


@append.register(pd.Index)
@append.register(pd.api.extensions.ExtensionArray)
def _(value: Any, row: Row, node: Node | None) -> None:
    described = _described(value) if isinstance(value, pd.Index) else dtype_text(value.dtype)
    row.put(symbol("array", f"{type(value).__name__} {described}"), node, type(value).__name__)
    row.add(list(value), node)


@append.register(pd.Interval)
@append.register(pd.Period)
def _(value: object, row: Row, node: Node | None) -> None:
    row.put(symbol(type(value).__name__, repr(value)), node, str(value))


@append.register(pd.DataFrame)
def _(frame: Any, row: Row, node: Node | None) -> None:
    _table(frame, frame.dtypes).put([list(frame.iloc[:, number]) for number in range(frame.shape[1])], row, node)
    _append_attributes(frame, row, node)


@append.register(pd.Series)
def _(series: Any, row: Row, node: Node | None) -> None:
    _column(series).put(list(series), row, node)
    _append_attributes(series, row, node)


def _append_attributes(value: Any, row: Row, node: Node | None) -> None:
    """What a user has put beside the values; of an object that is no outcome, of which kind it is."""
    if value.attrs:
        row.add({name: _outcome_or_kind(one) for name, one in value.attrs.items()}, row.at(node, "attribute", "attrs"))


def _outcome_or_kind(value: Any) -> Any:
    try:
        Row().add(value)
    except TypeError:
        return type(value).__qualname__
    return value


def _table(frame: Any, dtypes: Iterable[object]) -> TableShape:
    labels = _labels(frame.index)
    more = _described(frame.columns) + ("" if labels is None else _described(frame.index))
    kinds = tuple(map(dtype_text, dtypes))
    return TableShape(names=tuple(frame.columns), kinds=kinds, rows=len(frame), labels=labels, more=more)


def _column(series: Any) -> ColumnShape:
    labels = _labels(series.index)
    more = "" if labels is None else _described(series.index)
    return ColumnShape(name=series.name, kind=dtype_text(series.dtype), rows=len(series), labels=labels, more=more)


def _described(index: Any) -> str:
    """An index besides its labels: types with all their settings, and names.

    Levels, as categories, keep the labels of rows that are gone.
    """
    levels = index.levels if isinstance(index, pd.MultiIndex) else ()
    return repr(
        (dtype_text(index.dtype), [_described(level) + repr(level.tolist()) for level in levels], list(index.names))
    )


def _frame_shape(frame: Any, values: list[object], level: int) -> Shape:
    dtypes = []
    for _, series in frame.items():  # noqa: PERF102  # it has no `values()`
        dtypes.append(series.dtype)
        put_values(series.tolist(), values)
    shape = _table(frame, dtypes)
    _require_known(shape.names, shape.labels, frame)
    return TableShape, shape, ()


def _series_shape(series: Any, values: list[object], level: int) -> Shape:
    shape = _column(series)
    _require_known([] if series.name is None else [series.name], shape.labels, series)
    put_values(series.tolist(), values)
    return ColumnShape, shape, ()


def _require_known(names: Iterable[object], labels: Iterable[object] | None, value: Any) -> None:
    """As `known`, of names and labels; attributes beside the values are laid out by themselves."""
    known(names)
    known(labels or ())
    if value.attrs:
        raise NoShape


SHAPED.update({pd.DataFrame: _frame_shape, pd.Series: _series_shape})


def _labels(index: Any) -> tuple[object, ...] | None:
    """The labels of rows; None where they only count the rows from 0 on."""
    counted = isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None
    return None if counted else tuple(index)
