"""What pandas has, as entries of a row.

A DataFrame is a symbol of its columns and their types, how many rows it has, and then its rows: so a row more changes
no entry before it. An index comes first in each row, unless it only counts them. A Series whose index only counts is a
sequence; with another index its entries stand by the codes of their labels, as in a dict, for the same label to be in
the same place whatever its rank (`value_counts` sorts by the noisy values).
"""

from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from dpwitness.events.encoding import nested, symbol
from dpwitness.mechanisms.outcomes.row import Place, Row, append, key_codes


@append.register(type(pd.NA))
def _(value: Any, row: Row, place: Place) -> None:
    row.put(symbol("missing", str(value)), place, str(value))


@append.register(pd.Index)
@append.register(pd.api.extensions.ExtensionArray)
def _(value: Any, row: Row, place: Place) -> None:
    row.put(symbol("array", f"{type(value).__name__} {value.dtype}"), place, type(value).__name__)
    row.add(list(value), place)


@append.register(pd.Interval)
@append.register(pd.Period)
def _(value: Any, row: Row, place: Place) -> None:
    row.put(symbol(type(value).__name__, repr(value)), place, str(value))


@append.register(pd.DataFrame)
def _(frame: Any, row: Row, place: Place) -> None:
    columns = [key_codes(name, row) for name in frame.columns]
    counted = _counts(frame.index)
    shape = (columns, [str(kind) for kind in frame.dtypes], counted or str(frame.index.dtype))
    row.put(symbol("table", repr(shape)), place, f"columns {', '.join(map(repr, frame.columns[:5]))}"[:80])
    row.put(nested(len(frame)), (place, "number of", "rows"))
    series = [list(frame.iloc[:, number]) for number in range(len(columns))]
    for number, label in enumerate(frame.index, 1):
        if not counted:
            row.add(label, (place, "index of row", number))
        for name, values in zip(frame.columns, series, strict=True):
            row.add(values[number - 1], ((place, "column", name), "row", number))


@append.register(pd.Series)
def _(series: Any, row: Row, place: Place) -> None:
    labels = [] if _counts(series.index) else [key_codes(label, row) for label in series.index]
    kind = repr((key_codes(series.name, row), str(series.dtype), labels))
    row.put(symbol("series", kind), place, "series")
    row.put(nested(len(series)), (place, "number of", "rows"))
    values = list(series)
    if not labels:
        row.extend(values, place, "row")
        return
    for number in sorted(range(len(values)), key=labels.__getitem__):
        within = (place, "index", series.index[number])
        for code in labels[number]:
            row.put(code, within)
        row.add(values[number], within)


def _counts(index: Any) -> bool:
    """Whether an index only counts the rows from 0 on."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None
