"""Columns with an index as entries of a row that knows places, whatever library they come from."""

from collections.abc import Sequence
from typing import Any

from dpwitness.events.encoding import symbol
from dpwitness.mechanisms.outcomes.row import Place, Row


def put_series(values: Sequence[Any], labels: Sequence[Any] | None, row: Row, place: Place) -> None:
    """Values by their labels, or by their numbers from 1 where there are none."""
    row.put(symbol("series"), place, "a Series")
    row.length(len(values), place, "rows")
    for value, within in zip(values, _rows(labels, len(values), row, place), strict=True):
        row.add(value, within)


def put_columns(
    names: Sequence[Any], columns: Sequence[Sequence[Any]], labels: Sequence[Any] | None, row: Row, place: Place
) -> None:
    """The values of a table by column and label, row after row, so that a row more changes no entry before it."""
    row.put(symbol("table"), place, "a DataFrame")
    rows = len(columns[0]) if columns else len(labels or ())
    row.length(rows, place, "rows")
    seen: dict[Any, int] = {}
    places = [_rows(labels, rows, row, _again(row, row.at(place, "column", name), name, seen)) for name in names]
    for number in range(rows):
        for values, within in zip(columns, places, strict=True):
            row.add(values[number], within[number])
    if not columns:  # its rows have a label and nothing else
        for within in _rows(labels, rows, row, place):
            row.put(symbol("row"), within, "present")


def _rows(labels: Sequence[Any] | None, count: int, row: Row, place: Place) -> list[Place]:
    """The places of rows; where a label comes again, by how often it was there."""
    if labels is None:
        return [row.at(place, "row", number) for number in range(1, count + 1)]
    seen: dict[Any, int] = {}
    return [_again(row, row.at(place, "index", label), label, seen) for label in labels]


def _again(row: Row, place: Place, name: Any, seen: dict[Any, int]) -> Place:
    """The place itself where a name comes for the first time, then one for each further time."""
    seen[name] = seen.get(name, 0) + 1
    return place if seen[name] == 1 else row.at(place, "occurrence", seen[name])
