"""Domains of records like given ones, read from these."""

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dpwitness.checks import brief, items
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.datasets.choices import Categories, Text
from dpwitness.neighbours.datasets.domain import Domain, is_missing, plain
from dpwitness.neighbours.datasets.enumerated import Examples
from dpwitness.neighbours.datasets.fields import Fields, fields_of
from dpwitness.neighbours.datasets.forms import FORMS, form_of_data
from dpwitness.neighbours.datasets.frames import entries
from dpwitness.neighbours.datasets.layouts import Layout
from dpwitness.neighbours.datasets.ranges import LEAST, MOST, Integers, Numbers

__all__ = ["Like", "like"]

#: Texts of at most so many kinds are categories, and so are those of which each comes four times on average.
FEW_KINDS: Final = 20
REPEATS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """A domain that was read from records, and the form and the layout that these came in."""

    fields: Fields
    form: str
    layout: Layout

    def __str__(self) -> str:
        """The domain as it could have been written."""
        return str(self.fields)


def like(examples: Any) -> Like:
    """Records like these: the types and the ranges of the fields are read from them.

    Numbers lie between the least and the greatest that are there; texts are categories where there are few kinds or
    these repeat, else texts up to the longest; None and NaN may come where they do here. Datasets of any size have the
    types of columns, the index and the order in memory that these records have.

    Parameters
    ----------
    examples
        A list of records, an array (rows are records), a DataFrame, a dict of columns, or a tuple (X, y) of arrays.

    Raises
    ------
    InvalidNeighbours
        For no records, and for infinite numbers.
    """
    form = form_of_data(examples)
    found: Any
    if form == "list":
        found = _structure(examples)
    elif form in ("dataframe", "columns"):
        found = {name: _domain_of(examples[name], f"column {brief(name)}") for name in examples}
    elif form == "xy":
        found = (_rows(examples[0].reshape(len(examples[0]), -1)), _domain(list(examples[1]), "labels"))
    else:
        found = _rows(examples) if examples.ndim == 2 else _domain(examples.tolist(), "examples")
    return Like(fields=fields_of(found), form=form, layout=FORMS[form].layout.of(examples))


def _domain_of(column: Any, what: str) -> Domain:
    """The domain of a column: a Series, an array or a list."""
    if not hasattr(column, "isna"):
        return _domain(items(what, column, InvalidNeighbours), what)
    values, categories = entries(column), getattr(column.dtype, "categories", None)
    if categories is None or not {type(value) for value in categories} <= {str, int, float, bool}:
        return _domain(values, what)
    missing = any(map(is_missing, values))
    if len(categories) + missing < 2:
        return _domain(values, what)
    # The column can hold these and no others, however few of them are there.
    return Categories(values=tuple(categories.tolist()), missing=missing)


def _rows(array: Any) -> tuple[Domain, ...]:
    """The domains of an array's columns."""
    return tuple(_domain(column.tolist(), f"column {k + 1}") for k, column in enumerate(array.T))


def _structure(records: Sequence[Any]) -> Any:
    """The domains of records that are values, tuples, lists or dicts."""
    first = records[0] if records else None
    same = all(type(record) is type(first) for record in records)
    if same and isinstance(first, Mapping) and all(list(record) == list(first) for record in records):
        parts = {name: _structure([record[name] for record in records]) for name in first}
        made = OrderedDict if type(first) is OrderedDict else None
        return replace(fields_of(parts), made=made) if made and parts else parts
    if same and first and isinstance(first, tuple | list) and len({len(record) for record in records}) == 1:
        kind = tuple if isinstance(first, tuple) else list
        held = kind(_structure([record[k] for record in records]) for k in range(len(first)))
        return held if type(first) is kind else replace(fields_of(held), made=type(first))
    return _domain(records, "examples")


def _domain(given: Sequence[Any], what: str) -> Domain:
    """The domain that one field's values are read as."""
    values = [plain(value) for value in given]
    present = [value for value in values if not is_missing(value)]
    missing = len(present) < len(values)
    if not present:
        raise InvalidNeighbours(f"{what} hold no value: give records from which the domain can be read")
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return Categories(values=(False, True), missing=missing)
    if kinds == {int} and min(present) >= LEAST and max(present) < MOST:
        low, high = min(present), max(present)
        return Integers(low=low, high=max(high, low + 1), missing=missing)
    if kinds <= {int, float}:
        return _range(present, missing, what)
    if kinds == {str}:
        distinct = sorted(set(present))
        if 1 < len(distinct) <= max(FEW_KINDS, len(present) // REPEATS):
            return Categories(values=tuple(distinct), missing=missing)
        return Text(max_length=max(max(map(len, present)), 1), missing=missing)
    return Examples(values=tuple(values))


def _range(present: Sequence[float], missing: bool, what: str) -> Numbers:
    low, high = float(min(present)), float(max(present))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InvalidNeighbours(f"{what} hold infinite numbers: leave these out, or give numbers(low, high)")
    return Numbers(low=low, high=high if low < high else math.nextafter(low + 1, math.inf), missing=missing)
