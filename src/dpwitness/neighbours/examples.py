"""Domains that are a list of records: those that a hypothesis strategy draws, or examples of any kind.

Domains of records like given ones, read from these.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief, items
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.domains import (
    DTYPES,
    LEAST,
    MOST,
    NOT_IN_DOMAIN,
    Categories,
    Domain,
    Fields,
    Integers,
    Numbers,
    Text,
    fields_of,
    is_missing,
    key_of,
    plain,
)
from dpwitness.neighbours.forms import FORMS, form_of_data
from dpwitness.neighbours.layouts import Layout, entries

#: Examples that are tried in one place.
TRIED: Final = 8
#: Records that are drawn from a hypothesis strategy.
DRAWN: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Records of any kind, those given and no others: what a hypothesis strategy drew, for example."""

    values: tuple[Any, ...]
    source: str = "examples"
    _known: dict[Any, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known: dict[Any, int] = {}
        for place, value in enumerate(self.values):
            known.setdefault(key_of(value), place)
        if len(known) < 2:
            raise InvalidNeighbours(f"{self.source}: give at least two records that differ, not {len(known)}")
        object.__setattr__(self, "_known", known)

    def __str__(self) -> str:
        """Where they come from, and how many."""
        return f"{len(self._known)} {self.source}"

    @property
    def dtype(self) -> str:
        """That of the values, where all are numbers or flags."""
        kinds = {type(value) for value in self.values}
        return DTYPES.get(kinds.pop(), "object") if len(kinds) == 1 else "object"

    def ends(self) -> tuple[Any, ...]:
        """The last (hypothesis draws the simplest first), the first, and some between."""
        distinct = [self.values[place] for place in self._known.values()]
        return (distinct[-1], distinct[0], *distinct[-2:0:-1])[:TRIED]

    def inside(self, end: Any) -> Any:
        """The end itself."""
        return end

    def odd(self) -> tuple[Any, ...]:
        """None: which of them are odd is not known."""
        return ()

    def middle(self) -> Any:
        """The first."""
        return self.values[0]

    def draw(self, rng: np.random.Generator) -> Any:
        """Any of them."""
        return self.values[int(rng.integers(len(self.values)))]

    def near(self, value: Any) -> Iterator[Any]:
        """The neighbours in the order in which they were given, and others."""
        place = self._known.get(key_of(value), 0)
        yield from self.values[max(place - TRIED // 2, 0) : place + TRIED // 2]

    def simpler(self, value: Any) -> Iterator[Any]:
        """Those given earlier."""
        yield from self.values[: min(self._known.get(key_of(value), 0), TRIED)]

    def read(self, value: Any) -> Any:
        """The given record that is equal to it."""
        place = self._known.get(key_of(plain(value)))
        return NOT_IN_DOMAIN if place is None else self.values[place]

    def to_json(self) -> None:
        """None: a record of any kind has no form in JSON."""


def is_strategy(value: Any) -> bool:
    """Whether it is a hypothesis strategy; hypothesis is not imported for the question."""
    return any(kind.__name__ == "SearchStrategy" for kind in type(value).__mro__)


def drawn(strategy: Any) -> Examples:
    """Records drawn from a hypothesis strategy, the same ones every time, numbers in their order.

    Raises `InvalidNeighbours` where hypothesis finds none, or is not installed.
    """
    try:
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis.errors import HypothesisException
    except ImportError as error:  # a foreign class of that name
        raise InvalidNeighbours(
            f"domain {brief(strategy)} looks like a hypothesis strategy: install hypothesis, or give like(examples)"
        ) from error
    found: list[Any] = []

    @settings(
        derandomize=True, database=None, max_examples=DRAWN, phases=[Phase.generate], deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    try:
        collect()
    except HypothesisException as error:
        raise InvalidNeighbours(f"domain {brief(strategy)}: hypothesis cannot draw from it ({error})") from error
    distinct = list({key_of(value): value for value in found}.values())
    if {type(value) for value in distinct} in ({int}, {float}):
        distinct.sort(key=lambda value: (value == value, np.float64(value)))
    return Examples(values=tuple(distinct), source=f"records drawn from {brief(strategy)}")


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
