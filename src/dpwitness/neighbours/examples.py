"""Domains read from examples: given records, or records drawn from a hypothesis strategy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief, items
from dpwitness.errors import InvalidNeighbours
from dpwitness.frames import frames_of
from dpwitness.neighbours.domains import (
    GREATEST_INT64,
    LEAST_INT64,
    Categories,
    Domain,
    Examples,
    Range,
    Text,
    Value,
    is_missing,
    key_of,
    plain,
)
from dpwitness.neighbours.fields import Fields, fields_of
from dpwitness.neighbours.forms import FORMS, Layout, form_of_data
from dpwitness.neighbours.inputs import Array, Data, require_shallow

#: The number of records drawn from a hypothesis strategy: enough to show its kinds of records within a second. Another
#: name of this constant would change the draws, which follow from the text of `collect` below.
DRAWN: Final = 100


def is_strategy(value: object) -> bool:
    """Whether a value is a hypothesis strategy; hypothesis is not imported."""
    return any(kind.__name__ == "SearchStrategy" for kind in type(value).__mro__)


def from_strategy(strategy: Any) -> Examples:
    """The domain of records drawn from a hypothesis strategy, the same records each time; numbers are sorted.

    Raises `InvalidNeighbours`.
    """
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis.errors import HypothesisException

    found: list[Value] = []

    # Hypothesis derives its draws from the text of this function, its decorators included.
    @settings(
        derandomize=True, database=None, max_examples=DRAWN, phases=[Phase.generate], deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def collect(value: object) -> None:
        found.append(value)

    try:
        collect()
    except HypothesisException as error:
        raise InvalidNeighbours(f"domain {brief(strategy)}: hypothesis cannot draw from it ({error})") from error
    distinct = list({key_of(value): value for value in found}.values())
    if {type(value) for value in distinct} in ({int}, {float}):
        distinct.sort(key=lambda value: (value == value, np.float64(value)))
    return Examples(values=tuple(distinct), source=f"records drawn from {brief(strategy)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """The fields, the form and the layout that were read from example records."""

    fields: Fields
    form: str
    layout: Layout

    def __str__(self) -> str:
        return str(self.fields)


def like(examples: Data) -> Like:
    """A domain of records like the examples, which give the types and the ranges of the fields.

    Numbers range from the least to the greatest given. Texts are categories if few of them differ or they repeat, else
    texts up to the longest length. None and NaN are allowed in fields in which examples have them. Datasets of any size
    have the types of columns and the index of the examples.

    Parameters
    ----------
    examples
        A list of records, an array (rows are records), a DataFrame of pandas or Polars, a LazyFrame (which is
        collected once, here), a Table of PyArrow, a dict of columns, or a tuple (X, y) of arrays.

    Raises
    ------
    InvalidNeighbours
        If there are no records, or infinite numbers.
    """
    require_shallow(examples, "the list of examples")
    form = form_of_data("examples", examples)
    structure: object
    frames = frames_of(examples)
    if frames is not None:
        examples = frames.collected(examples)
    if frames is not None or form == "columns":
        columns, known = (examples, {}) if frames is None else (frames.columns(examples), frames.categories(examples))
        structure = {name: _domain_of_column(values, known.get(name, ()), name) for name, values in columns.items()}
    elif form == "list":
        structure = _structure(examples)
    elif form == "xy":
        structure = (_domains_of_rows(examples[0].reshape(len(examples[0]), -1)), _domain(list(examples[1]), "labels"))
    else:
        structure = _domains_of_rows(examples) if examples.ndim == 2 else _domain(examples.tolist(), "examples")
    return Like(fields=fields_of(structure), form=form, layout=FORMS[form].of(examples))


def _domain_of_column(column: Any, categories: Sequence[Value], name: object) -> Domain:
    """The domain of a column; `categories`: all values of a categorical type, also values that no record has."""
    what = f"column {brief(name)}"
    values = items(what, column, InvalidNeighbours)
    if categories and {type(value) for value in categories} <= {str, int, float, bool}:
        missing = any(map(is_missing, values))
        if len(categories) + missing >= 2:
            return Categories(values=tuple(categories), missing=missing)
    return _domain(values, what)


def _domains_of_rows(array: Array) -> tuple[Domain, ...]:
    return tuple(_domain(column.tolist(), f"column {k + 1}") for k, column in enumerate(array.T))


def _structure(records: Sequence[Value]) -> object:
    """The domains of records that are values, tuples, lists or dicts."""
    first = records[0] if records else None
    same = all(type(record) is type(first) for record in records)
    if same and type(first) is dict and all(list(record) == list(first) for record in records):
        return {name: _structure([record[name] for record in records]) for name in first}
    if same and type(first) in (tuple, list) and first and len({len(record) for record in records}) == 1:
        return type(first)(_structure([record[k] for record in records]) for k in range(len(first)))
    return _domain(records, "examples")


def _domain(given: Sequence[Value], what: str) -> Domain:
    """The domain of a field, read from its values; `what` names the field in messages."""
    values = [plain(value) for value in given]
    present = [value for value in values if not is_missing(value)]
    missing = len(present) < len(values)
    if not present:
        raise InvalidNeighbours(f"{what}: there is no value; give records from which the domain can be read")
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return Categories(values=(False, True), missing=missing)
    if kinds == {int} and min(present) >= LEAST_INT64 and max(present) < GREATEST_INT64:
        low = min(present)
        return Range(low=low, high=max(*present, low + 1), whole=True, missing=missing)
    if kinds <= {int, float} and all(abs(value) < 1 << 1023 for value in present if type(value) is int):
        least, most = float(min(present)), float(max(present))
        if not (math.isfinite(least) and math.isfinite(most)):
            raise InvalidNeighbours(f"{what}: there are infinite numbers; leave these out, or give numbers(low, high)")
        high = most if least < most else math.nextafter(least + 1, math.inf)
        return Range(low=least, high=high, whole=False, missing=missing)
    if kinds == {str}:
        distinct = sorted(set(present))
        # Few different texts are categories, and so are texts that each come four times on average.
        if 1 < len(distinct) <= max(20, len(present) // 4):
            return Categories(values=tuple(distinct), missing=missing)
        return Text(max_length=max(max(map(len, present)), 1), missing=missing)
    return Examples(values=tuple(values))
