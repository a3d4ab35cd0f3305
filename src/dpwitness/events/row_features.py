"""What all entries of an outcome show together: sums, extremes and their places, lengths, counts of a value."""

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.entry_features import numbers

__all__ = [
    "count",
    "different",
    "first_place",
    "largest",
    "length",
    "place_of_largest",
    "place_of_smallest",
    "smallest",
    "total",
]

Rows = NDArray[np.float64]
Column = NDArray[np.float64]


def _columns(entries: Rows) -> Rows:
    """The numbers by column, shape (columns, n): along the few entries of a row numpy reduces more slowly."""
    return np.ascontiguousarray(numbers(entries).T)


def total(entries: Rows, number: float) -> Column:
    """The sum of the numbers; none where there is no number."""
    columns = _columns(entries)
    absent = np.isnan(columns)
    if not absent.any():
        return np.asarray(np.add.reduce(columns, axis=0))
    sums = np.asarray(np.add.reduce(np.where(absent, 0.0, columns), axis=0))
    sums[absent.all(axis=0)] = np.nan
    return sums


def largest(entries: Rows, number: float) -> Column:
    """The largest number."""
    return np.asarray(np.fmax.reduce(_columns(entries), axis=0))


def smallest(entries: Rows, number: float) -> Column:
    """The smallest number."""
    return np.asarray(np.fmin.reduce(_columns(entries), axis=0))


def _place(columns: Rows, wanted: Column) -> Column:
    """The place, from 1, of the first entry of each row that equals a value; NaN where none does."""
    places = np.full(columns.shape[1], np.nan)
    for place in range(len(columns), 0, -1):
        places[columns[place - 1] == wanted] = place
    return places


def place_of_largest(entries: Rows, number: float) -> Column:
    """The place, from 1, of the largest number, of several the first."""
    columns = _columns(entries)
    return _place(columns, np.fmax.reduce(columns, axis=0))


def place_of_smallest(entries: Rows, number: float) -> Column:
    """The place, from 1, of the smallest number, of several the first."""
    columns = _columns(entries)
    return _place(columns, np.fmin.reduce(columns, axis=0))


def length(entries: Rows, number: float) -> Column:
    """How many entries are there."""
    return np.asarray(np.count_nonzero(~np.isnan(entries), axis=1), np.float64)


def different(entries: Rows, number: float) -> Column:
    """How many different entries are there."""
    values = np.sort(entries, axis=1)  # NaN goes last
    changes = (values[:, 1:] != values[:, :-1]) & ~np.isnan(values[:, 1:])
    return np.asarray(np.count_nonzero(changes, axis=1) + (~np.isnan(values[:, 0])), np.float64)


def count(entries: Rows, number: float) -> Column:
    """How many entries equal a value."""
    return np.asarray(np.count_nonzero(entries == number, axis=1), np.float64)


def first_place(entries: Rows, number: float) -> Column:
    """The place, from 1, of the first entry that equals a value; none where no entry does."""
    return _place(np.ascontiguousarray(entries.T), np.full(len(entries), number))
