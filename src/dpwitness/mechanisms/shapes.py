"""Outcomes of one shape, laid out at once: dicts with the same keys, tables with the same columns, lists as long.

What they have in common is found once, by laying out the first of them with marks in the place of its values; then
those of all others are one array. The rows are those of `layout.keyed_row`, which lays out whatever has no shape.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.events.encoding import NONE, WHOLE, Rows
from dpwitness.mechanisms.layout import KeyedRow, RowLayout, keyed_row
from dpwitness.mechanisms.mechanism import LONGEST_ROW, OutputTraits
from dpwitness.mechanisms.outcomes import (
    LABELS,
    NUMBERS,
    SINGLE_VALUES,
    WHOLE_NUMBERS,
    Entry,
    Node,
    Row,
    append,
    uniform_rows,
)

#: What an outcome is without its single values: of which type, its keys, its length or the like, and the shapes within
#: where one of them is no single value. That of a single value is `VALUE`.
Shape: TypeAlias = tuple[Any, ...]
VALUE: Final[Shape] = ()
#: Types of keys and labels that are equal only where the rows are: 1, 1.0 and True are one key of a dict.
NAMES: Final = frozenset({str, int})
#: Levels of nesting that a shape has at most; what holds itself has more.
LEVELS: Final = 8
#: Shapes that are kept. A mechanism whose keys are random has too many to gain from them.
SHAPES: Final = 256
#: Outcomes of one shape in a batch that are laid out at once: of fewer, one after the other is as fast.
FEW: Final = 4
#: Entries at most of a dict that is held as it is: of more the row may be too long, which is told at once.
FLAT: Final = 1_000


class NoShape(Exception):
    """An outcome holds something that is laid out by itself."""


#: By type: how the shape of an object is found, its single values put behind the others, and how an object of a shape
#: is made, or what is laid out as it is. `tabular` adds tables.
SHAPED: Final[dict[type, Callable[[Any, list[Any], int], Shape]]] = {}
REBUILT: Final[dict[type, Callable[[Any, Iterator[Any], Sequence[Shape]], Any]]] = {}


def shape_of(value: object, values: list[object], level: int = 0) -> Shape:
    """The shape of an outcome, whose single values are put behind `values`. Raises `NoShape`."""
    kind = type(value)
    if kind in SINGLE_VALUES:
        values.append(value)
        return VALUE
    shaped = SHAPED.get(kind)
    if shaped is None or level == LEVELS:
        raise NoShape
    return shaped(value, values, level + 1)


def rebuilt(shape: Shape, values: Iterator[object]) -> object:
    """An outcome of a shape, with these single values."""
    if not shape:
        return next(values)
    kind, content, *within = shape
    return REBUILT[kind](content, values, *within)


def _items_of(items: Any, values: list[object], level: int) -> Sequence[Shape]:
    """The shapes of what an object holds."""
    if SINGLE_VALUES.issuperset(map(type, items)):
        values += items
        return ()
    return tuple([shape_of(item, values, level) for item in items])


def _rebuilt_items(count: int, values: Iterator[object], within: Sequence[Shape]) -> list[object]:
    return [rebuilt(shape, values) for shape in within or repeat(VALUE, count)]


def _dict_shape(value: dict[object, object], values: list[object], level: int) -> Shape:
    if not NAMES.issuperset(map(type, value)):
        raise NoShape
    return dict, tuple(value), _items_of(value.values(), values, level)


def _rebuilt_dict(keys: Sequence[object], values: Iterator[object], within: Sequence[Shape]) -> dict[object, object]:
    return dict(zip(keys, _rebuilt_items(len(keys), values, within), strict=True))


def _list_shape(value: Sequence[object], values: list[object], level: int) -> Shape:
    return list, len(value), _items_of(value, values, level)


def _array_shape(value: NDArray[Any], values: list[object], level: int) -> Shape:
    if not value.ndim or value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        raise NoShape
    values += value.ravel().tolist()
    return np.ndarray, value.shape, ()


def _rebuilt_array(content: tuple[int, ...], values: Iterator[object], _: Sequence[Shape]) -> NDArray[Any]:
    array = np.empty(content, object)
    for k in range(array.size):
        array.flat[k] = next(values)
    return array


SHAPED.update({dict: _dict_shape, list: _list_shape, tuple: _list_shape, np.ndarray: _array_shape})
REBUILT.update({dict: _rebuilt_dict, list: _rebuilt_items, np.ndarray: _rebuilt_array})


class Mark(float):
    """Stands for a single value of an outcome, by its number."""


@append.register
def _(value: Mark, row: Row, node: Node | None) -> None:
    row.put(value, node)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Template:
    """What the rows of all outcomes of a shape have in common."""

    #: Their shape.
    shape: Shape
    #: A row, with NaN where the values are.
    row: Rows
    #: Where values are in it, and which of the outcome's.
    coordinates: NDArray[np.int64]
    numbers: NDArray[np.int64]
    #: Texts and entries behind the layout, as they are for `layout.KeyedRow`.
    labels: dict[float, str]
    unplaced: dict[float, Entry]

    def fill(self, values: list[object], rows: Rows, runs: Sequence[int], traits: OutputTraits) -> NDArray[np.bool_]:
        """Write the values of outcomes as the rows `runs`; return which have one that takes two entries.

        Those are to be laid out one by one.
        """
        row = Row(labels=traits.labels)
        for code, text in self.labels.items():
            row.label(code, text)
        for code, entry in self.unplaced.items():
            if len(traits.entries) < LABELS:
                traits.entries.setdefault(code, entry)
        width = min(len(self.row), rows.shape[1])
        encoded = value_rows(values, len(runs), len(self.numbers), row)
        written = np.repeat(self.row[None, :width], len(runs), axis=0)
        seen = self.coordinates < width
        written[:, self.coordinates[seen]] = encoded[:, self.numbers[seen]]
        at = slice(None) if len(runs) == len(rows) else runs
        rows[at, :width] = written
        rows[at, width:] = np.nan
        odd: NDArray[np.bool_] = np.isnan(encoded).any(axis=1)  # type: ignore[assignment]  # with an axis it is an array
        return odd


@dataclass(slots=True)
class Held:
    """An outcome that has a shape which came before: the template, and its single values, which nothing changes."""

    template: Template
    values: list[Any]

    @property
    def outcome(self) -> object:
        """The outcome, or what is laid out as it is."""
        return rebuilt(self.template.shape, iter(self.values))


TEMPLATE: Final = attrgetter("template")
VALUES: Final = attrgetter("values")

#: Types of outcomes whose keys are found at once; the key of single values.
KEYS: Final[Mapping[type, Callable[[Any], Any]]] = {Held: TEMPLATE, dict: tuple}
SINGLE: Final = "value"


def _key_of(outcome: object) -> Template | tuple[str | int, ...] | str | None:
    """What outcomes of one shape have in common; None for what is laid out alone."""
    if type(outcome) is Held:
        return outcome.template
    if type(outcome) is dict:
        return tuple(outcome)
    return SINGLE if type(outcome) in SINGLE_VALUES else None


def _held_by(key: object) -> Callable[[Any], Iterable[Any]]:
    """What returns the single values of an outcome with this key."""
    return VALUES if type(key) is Template else dict.values if type(key) is tuple else lambda value: (value,)


#: Which rows of a batch are laid out by a template, and the values of their outcomes, one behind the other.
Group: TypeAlias = tuple[Template, Sequence[int], list[Any]]


class Shapes:
    """The templates of the shapes that outcomes have had, by one layout; `attributes` as for `layout.keyed_row`."""

    def __init__(self, layout: RowLayout, attributes: Sequence[str] = ()) -> None:
        self.layout, self._attributes = layout, attributes
        self._templates: dict[Shape, Template | bool] = {}  # True where it is not made yet, False where there is none

    def held(self, value: object) -> Held | None:
        """An outcome as one of its shape; None where it has none, or one that is new."""
        values: list[Any] = []
        try:
            shape = shape_of(value, values)
        except NoShape:
            return None
        template = self._templates.get(shape)
        if template is None:
            # What is new may not come again: its template is made when it does.
            if len(self._templates) < SHAPES:
                self._templates[shape] = True
            return None
        if template is True:
            template = self._template_of(shape, len(values))
        return Held(template, values) if isinstance(template, Template) else None

    def grouped(self, outcomes: Sequence[object]) -> tuple[list[Group], list[int]]:
        """The outcomes of a batch by template, and which of them are to be laid out alone.

        Each is `Held`, or a single value, or a dict of `NAMES` and such; anything else is laid out alone.
        """
        several: Any = outcomes
        kinds = set(map(type, outcomes))
        keys: list[Any] = [*map(_key_of if len(kinds) > 1 else KEYS.get(kinds.pop(), _key_of), several)]
        groups: dict[Any, Sequence[int]]
        if keys.count(keys[0]) == len(keys):
            groups = {keys[0]: range(len(keys))}
        else:
            groups = defaultdict(list)
            for i, key in enumerate(keys):
                groups[key].append(i)  # type: ignore[attr-defined]  # they are lists here
        alone = [*groups.pop(None, ())]
        found: list[Group] = []
        for key, runs in groups.items():
            template = self._template_by(key) if len(runs) >= FEW else None
            if not isinstance(template, Template):
                alone += runs
                continue
            own = several if len(runs) == len(keys) else [several[i] for i in runs]
            found.append((template, runs, [*chain.from_iterable(map(_held_by(key), own))]))
        return found, alone

    def _template_by(self, key: Any) -> Template | bool:
        """The template of outcomes with this key; see `_key_of`."""
        if type(key) is Template:
            return key
        return self._template_of(VALUE, 1) if key is SINGLE else self._template_of((dict, key, ()), len(key))

    def _template_of(self, shape: Shape, count: int) -> Template | bool:
        """The template of a shape of so many values, as it is kept."""
        template = self._templates.get(shape, True)
        if template is True:
            template = self._template(shape, count)
            if len(self._templates) < SHAPES or shape in self._templates:
                self._templates[shape] = template
        return template

    def _template(self, shape: Shape, count: int) -> Template | bool:
        """False where a row is more than values and what the others have, too."""
        row = KeyedRow(self.layout, {}, {})
        keyed_row(rebuilt(shape, map(Mark, range(count))), row, self._attributes)
        if row.count > LONGEST_ROW or (self.layout.full and row.rest):
            return False
        written = row.written()
        marks = [(c, int(entry)) for c, entry in enumerate(written) if type(entry) is Mark]
        coordinates, numbers = np.array(marks, np.int64).reshape(-1, 2).T
        template = np.array(written)
        template[coordinates] = np.nan
        return Template(
            shape=shape, row=template, coordinates=coordinates, numbers=numbers, labels=row.labels,
            unplaced=row.unplaced,
        )  # fmt: skip


def value_rows(values: list[object], runs: int, width: int, row: Row) -> Rows:
    """The entries of `width` single values a run, as `encoding.entries` has them; NaN where a value has two."""
    kinds = set(map(type, values))
    if len(kinds) == 1 or kinds <= NUMBERS:
        return _entries(values, kinds, row).reshape(runs, width)
    rows = np.empty((runs, width))
    for k in range(width):
        column = values[k::width]
        rows[:, k] = _entries(column, set(map(type, column)), row)
    return rows


def _entries(values: Sequence[Any], kinds: set[type], row: Row) -> Rows:
    """As `value_rows`, of values of these kinds."""
    if kinds == {type(None)}:
        return np.full(len(values), NONE)
    known = uniform_rows(values, row) if values else np.empty((0, 1))
    if known is not None:
        return known[:, 0]
    if len(kinds) == 1 and kinds <= WHOLE_NUMBERS:  # some of them too large
        return np.array([float(value) if abs(int(value)) < WHOLE else np.nan for value in values])
    entries = np.empty(len(values))
    for kind in kinds:
        own = np.array([type(value) is kind for value in values])
        entries[own] = _entries([value for value in values if type(value) is kind], {kind}, row)
    return entries
