"""DataFrames, Series and other values of pandas as entries of a row.

Rows by position begin with a symbol of columns, types and labels. Rows that know places have the value of each column
and label at a coordinate of its own: the same label is in the same place whatever its rank (`value_counts` sorts by the
noisy values). What order columns and labels had is one more entry.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

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
    names, counted = [*frame.columns], _counts(frame.index)
    series = [list(frame.iloc[:, number]) for number in range(len(names))]
    if row.keyed:
        labels = None if counted else list(frame.index)
        _put_table(names, [*frame.dtypes], labels, frame.index.dtype, series, row, node)
        return
    row.structured = True
    form = _form(names, [*frame.dtypes], counted, frame.index.dtype, row)
    row.put(form, node, f"columns {', '.join(map(repr, frame.columns[:5]))}"[:80])
    row.length(len(frame), node, "rows")
    for number, label in enumerate(frame.index, 1):
        if not counted:
            row.add(label)
        for values in series:
            row.add(values[number - 1])


@append.register(pd.Series)
def _(series: Any, row: Row, node: Node | None) -> None:
    counted = _counts(series.index)
    if row.keyed:
        _put_column(series.name, series.dtype, None if counted else list(series.index), list(series), row, node)
        return
    labels = [] if counted else [key_codes(label, row) for label in series.index]
    row.structured = True
    row.put(symbol("series", repr((key_codes(series.name, row), str(series.dtype), labels))), node, "series")
    row.length(len(series), node, "rows")
    values = list(series)
    if not labels:
        row.extend(values, node, "row")
        return
    for number in sorted(range(len(values)), key=labels.__getitem__):
        for code in labels[number]:
            row.put(code, None)
        row.add(values[number])


def _form(names: Sequence[object], kinds: Sequence[object], counted: bool, index: object, row: Row) -> float:
    """A symbol of columns, types and labels."""
    shape = [key_codes(name, row) for name in names], [str(kind) for kind in kinds], counted or str(index)
    return symbol("table", repr(shape))


def _put_table(
    names: Sequence[object],
    kinds: Sequence[object],
    labels: Sequence[object] | None,
    index: object,
    columns: Sequence[Sequence[object]],
    row: Row,
    node: Node | None,
) -> None:
    """A DataFrame by columns and labels; without labels where its index only counts."""
    put_columns(names, columns, labels, row, node)
    described = [f"{name!r} ({kind})" for name, kind in zip(names, kinds, strict=True)]
    form = _form(names, kinds, labels is None, index, row)
    row.put(form, row.at(node, "order of", "columns"), ", ".join(described[:LISTED]))


def _put_column(
    name: object,
    kind: object,
    labels: Sequence[object] | None,
    values: Sequence[object],
    row: Row,
    node: Node | None,
) -> None:
    """A Series by labels."""
    codes = [key_codes(label, row) for label in labels or ()]
    form = symbol("series", repr((key_codes(name, row), str(kind), codes)))
    put_series(values, labels, row, node)
    row.put(form, row.at(node, "order of", "labels"), "0, 1, …" if labels is None else listed(labels))


@dataclass(frozen=True, slots=True)
class Laid:
    """What is laid out as a table of a shape."""

    put: Callable[[Row, Node | None], None]


@append.register
def _(value: Laid, row: Row, node: Node | None) -> None:
    value.put(row, node)


def _names_of(labels: Any) -> tuple[object, ...]:
    """Names of columns or rows. Raises `NoShape` for those that may be equal though they are others."""
    names = tuple(labels)
    if not NAMES.issuperset(map(type, names)):
        raise NoShape
    return names


def _put_values(series: Any, values: list[Any]) -> None:
    own = series.tolist()
    if not SINGLE_VALUES.issuperset(map(type, own)):
        raise NoShape
    values += own


def _frame_shape(frame: Any, values: list[Any], level: int) -> Shape:
    names, index = _names_of(frame.columns), frame.index
    labels = None if _counts(index) else _names_of(index)
    kinds = []
    for _, series in frame.items():  # noqa: PERF102  # it has no `values()`
        kinds.append(series.dtype)
        _put_values(series, values)
    return pd.DataFrame, (names, tuple(kinds), labels, index.dtype, len(index)), ()


def _rebuilt_frame(content: tuple[Any, ...], values: Iterator[Any], _: Sequence[Shape]) -> Laid:
    names, kinds, labels, index, rows = content
    columns = [[*islice(values, rows)] for _ in names]
    return Laid(lambda row, node: _put_table(names, kinds, labels, index, columns, row, node))


def _series_shape(series: Any, values: list[Any], level: int) -> Shape:
    index = series.index
    labels = None if _counts(index) else _names_of(index)
    if series.name is not None:
        _names_of((series.name,))
    _put_values(series, values)
    return pd.Series, (series.name, series.dtype, labels, len(index)), ()


def _rebuilt_series(content: tuple[Any, ...], values: Iterator[Any], _: Sequence[Shape]) -> Laid:
    name, kind, labels, rows = content
    own = [*islice(values, rows)]
    return Laid(lambda row, node: _put_column(name, kind, labels, own, row, node))


SHAPED.update({pd.DataFrame: _frame_shape, pd.Series: _series_shape})
REBUILT.update({pd.DataFrame: _rebuilt_frame, pd.Series: _rebuilt_series})


def _counts(index: object) -> bool:
    """Whether an index only counts the rows from 0 on."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None
