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


def total(entries: Rows, number: float) -> Column:
    """The sum of the numbers; none where there is no number."""
    values = numbers(entries)
    absent = np.isnan(values)
    sums = np.where(absent, 0.0, values).sum(axis=1)
    sums[absent.all(axis=1)] = np.nan
    return sums


def largest(entries: Rows, number: float) -> Column:
    """The largest number."""
    return np.asarray(np.fmax.reduce(numbers(entries), axis=1))


def smallest(entries: Rows, number: float) -> Column:
    """The smallest number."""
    return np.asarray(np.fmin.reduce(numbers(entries), axis=1))


def _place(values: Rows, wanted: Column) -> Column:
    """The place, from 1, of the first entry of each row that equals a value; NaN where none does."""
    equal = values == wanted[:, None]
    return np.where(equal.any(axis=1), equal.argmax(axis=1) + 1.0, np.nan)


def place_of_largest(entries: Rows, number: float) -> Column:
    """The place, from 1, of the largest number, of several the first."""
    values = numbers(entries)
    return _place(values, np.fmax.reduce(values, axis=1))


def place_of_smallest(entries: Rows, number: float) -> Column:
    """The place, from 1, of the smallest number, of several the first."""
    values = numbers(entries)
    return _place(values, np.fmin.reduce(values, axis=1))


def length(entries: Rows, number: float) -> Column:
    """How many entries are there."""
    return np.count_nonzero(~np.isnan(entries), axis=1).astype(np.float64)


def different(entries: Rows, number: float) -> Column:
    """How many different entries are there."""
    values = np.sort(entries, axis=1)  # NaN goes last
    changes = (values[:, 1:] != values[:, :-1]) & ~np.isnan(values[:, 1:])
    return np.count_nonzero(changes, axis=1) + (~np.isnan(values[:, 0])).astype(np.float64)


def count(entries: Rows, number: float) -> Column:
    """How many entries equal a value."""
    return np.count_nonzero(entries == number, axis=1).astype(np.float64)


def first_place(entries: Rows, number: float) -> Column:
    """The place, from 1, of the first entry that equals a value; none where no entry does."""
    return _place(entries, np.full(len(entries), number))
