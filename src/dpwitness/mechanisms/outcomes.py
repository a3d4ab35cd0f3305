"""What a run of plain Python returned, of whatever type, as a row of numbers; see `dpwitness.events.encoding`.

Outcomes of different values have rows that differ, up to a hash of 48 bits. Types of numbers and of sequences are no
part of a value: 5, 5.0 and NumPy's 5 are one, and so are a list, a tuple and an array of any dtype that hold the same.
What is no number, flag, text, None or sequence begins with a symbol that says of what kind it is:

=====================  ========================================================================================
dict                   a symbol of its keys in their order; then, by the codes of the keys, each key and its value
set, frozenset         a symbol, how many, the elements by their codes: their order is nothing that was released
dataclass              a symbol of the class and its fields; then the values
bytes                  a symbol of all of them, how many, and the first `BYTES` as numbers
complex                a symbol, the real and the imaginary part
Decimal, Fraction      the nearest float, then a symbol of the exact number
date, time, duration   seconds (of a date since 1970), then a symbol of the exact value
Enum                   a symbol of the class and the member's name
array                  as a list; of records, a symbol of the fields first
others                 what `numpy.asarray` makes of them, where they offer `__array__`; see also `tabular`
=====================  ========================================================================================

A row is written by position, one entry behind the other, or by the nodes of the outcome's tree (see `layout`).
"""

import datetime
import enum
import fractions
import importlib
import importlib.util
import math
import numbers
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, singledispatch
from itertools import chain
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import DEEPEST
from dpwitness.codec import whole_below
from dpwitness.events.encoding import (
    FALSE,
    NEGATIVE_ZERO,
    NOT_A_NUMBER,
    TRUE,
    WHOLE,
    array_rows,
    entries,
    nested,
    symbol,
    text_code,
)

#: Texts that a mechanism keeps for messages, and places of dates, at most: random ones would fill the memory.
LABELS: Final = 10_000
#: Characters that it keeps of one, and of the name of a key.
LABEL: Final = 300
#: Names of keys that a text lists.
LISTED: Final = 12
#: Behind the entry of a sequence of one entry, where the mechanism returns bare values too.
SINGLE: Final = symbol("sequence of one")

#: Words whose names are a user's own.
QUOTED: Final = ("key", "field", "column", "index", "attribute", "element")
SEQUENCES: Final = (tuple, list, deque, range)

#: A step from a node of an outcome to one within: a word, and the codes of the key, label or number.
Step = tuple[str, tuple[float, ...]]
Path = tuple[Step, ...]
#: Where an entry stands: its coordinate in a row by position; else the path of its node, and which number there it is.
Place = int | tuple[Path, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of outcomes: the way to it, which of several numbers there it is, and its name for people."""

    json_keys: ClassVar[tuple[str, ...]] = ("name", "at: path", "part")

    path: Path
    part: Annotated[int, whole_below(1 << 16)]  # a text or a number takes three
    name: str = field(compare=False)

    @property
    def code(self) -> float:
        """The code that stands for it behind a layout."""
        return symbol("entry", repr((self.path, self.part)))


class Node:
    """A node of the tree that an outcome is: the coordinates of its entries, and the nodes within that a layout has."""

    __slots__ = ("blocks", "children", "coordinates", "name", "path")

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.coordinates: list[int] = []
        self.children: dict[tuple[str, type, object], Node] = {}
        self.blocks: dict[int, int] = {}

    def entry(self, part: int) -> Entry:
        """One of the entries here, by their number."""
        return Entry(self.path, part, self.name if part == 0 else f"{self.name} (part {part + 1})")


@dataclass(slots=True, kw_only=True)
class Row:
    """The entries of one outcome, one behind the other, and the texts behind them.

    `structured`: whether the outcome holds more than single values, so that rows by position would not do: see
    `layout.KeyedRow`, which has a coordinate for each node. A node of None is the outcome as a whole.
    """

    keyed: ClassVar[bool] = False

    entries: list[float] = field(default_factory=list)
    labels: dict[float, str] = field(default_factory=dict)
    dates: dict[Place, str] = field(default_factory=dict)  # of which unit those are that stand there; "": of several
    structured: bool = False
    depth: int = 0  # of the containers that are being read

    def put(self, entry: float, node: Node | None, label: str | None = None) -> None:
        """Append an entry; `label` is the text that stands behind it."""
        self.entries.append(entry)
        if label is not None:
            self.label(entry, label)

    def label(self, entry: float, text: str) -> None:
        """Keep the text that stands behind an entry."""
        if len(self.labels) < LABELS or entry in self.labels:
            self.labels[entry] = _cut(text)

    def place(self, node: Node | None) -> Place:
        """Where the next entry of a node will stand."""
        return len(self.entries)

    def date(self, count: float, unit: str, node: Node | None) -> None:
        """Append the entries of a date: so many of a unit since 1970."""
        note_date(self.dates, self.place(node), unit)
        self.add(count, node)

    def text(self, text: str, node: Node | None) -> None:
        """Append the entry of a text."""
        self.put(text_code(text), node, text)

    def at(self, node: Node | None, word: str, name: object) -> Node | None:
        """The node within another that a word and a name lead to, such as "key" and "a"."""
        self.structured = True
        return None

    def length(self, length: int, node: Node | None, what: str = "values") -> None:
        """Append an entry for the number of values that something holds."""
        self.structured = True
        self.put(nested(length), node)

    def block(self, numbers: list[float], node: Node | None) -> None:
        """Append the entries of an array of numbers."""
        self.entries += numbers

    def add(self, value: Any, node: Node | None = None) -> None:
        """Append the entries of a value. Raises `TypeError` for what cannot be told from others of its kind."""
        kind = type(value)
        if kind is float or kind is int or kind is bool or value is None:
            for entry in entries(value):
                self.put(entry, node)
        elif kind is str:
            self.text(value, node)
        else:
            self.depth += 1
            if self.depth > DEEPEST:
                raise RecursionError(f"it is nested deeper than {DEEPEST} levels")
            append(value, self, node)
            self.depth -= 1

    def extend(self, values: Iterable[object], node: Node | None, word: str = "value") -> None:
        """Append the entries of several values."""
        for value in values:
            # The common case by itself: −0, NaN and all other types take ten times as long.
            if type(value) is float and (value < 0 or value > 0):
                self.entries.append(value)
            else:
                self.add(value)


def note_date(dates: dict[Place, str], place: Place, unit: str) -> None:
    """Note that dates of a unit stand at a place, of `LABELS` places; an empty unit where they are of several."""
    if place in dates or len(dates) < LABELS:
        dates[place] = unit if dates.get(place, unit) == unit else ""


def row_of(value: object, row: Row) -> None:
    """Write an outcome into an empty row: of a sequence the entries alone, without their number.

    Raises `TypeError` for an object of a type that is not known, and `RecursionError` for one that holds itself or
    is nested too deep.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if is_sequence(value):
        append_entries(value, row, None)
    else:
        row.add(value)


def is_sequence(value: object) -> bool:
    """Whether the row of an outcome is that of its entries."""
    return isinstance(value, SEQUENCES) or (isinstance(value, np.ndarray) and value.ndim > 0)


def node_name(outer: str, word: str, name: object) -> str:
    """A node for people, such as "key 'a', value 2"; `outer` names the node that it lies in, empty at the top."""
    if isinstance(name, np.generic):
        name = name.item()
    own = f"{word} {_cut(repr(name))}" if word in QUOTED else f"{word} {name}"
    return f"{outer}, {own}" if outer else own


def _cut(text: str) -> str:
    return text if len(text) <= LABEL else f"{text[:LABEL]}…"


def listed(names: Sequence[object]) -> str:
    """Names in their order, for people; of many the first."""
    shown = [repr(name.item() if isinstance(name, np.generic) else name) for name in names[:LISTED]]
    return ", ".join(shown) + (f", … ({len(names)})" if len(names) > LISTED else "") or "none"


@singledispatch
def append(value: object, row: Row, node: Node | None) -> None:
    """Append the entries of an object to a row; `append.register` adds a type.

    Raises `TypeError` for a type that is not known.
    """
    _import_for(type(value).__module__.partition(".")[0])
    known = append.dispatch(type(value))
    if known is not append.dispatch(object):
        known(value, row, node)
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        _append_fields(value, row, node)
    elif hasattr(value, "__array__") and not isinstance(value, type):
        _append_converted(value, row, node)
    else:
        raise TypeError(f"{type(value).__name__} is no kind of outcome")


@cache
def _import_for(library: str) -> None:
    """Import the module for a library's types once a mechanism returns one: the library is not imported before."""
    if library in ("polars", "pyarrow"):
        importlib.import_module(f"{__package__}.tabular").register()
        return
    name = f"{__package__}.of_{library}"
    if importlib.util.find_spec(name) is not None:
        importlib.import_module(name)


def _append_fields(value: Any, row: Row, node: Node | None) -> None:
    """A dataclass."""
    names = [*value.__dataclass_fields__]
    row.put(symbol("dataclass", repr((type(value).__qualname__, names))), node, type(value).__name__)
    for name in names:
        row.add(getattr(value, name), row.at(node, "field", name))


def _append_converted(value: object, row: Row, node: Node | None) -> None:
    """What offers itself as an array: tensors, columns and the like of other libraries."""
    array = np.asarray(value.detach() if hasattr(value, "detach") else value)
    if array.ndim == 0 and array.dtype.kind == "O":
        raise TypeError(f"{type(value).__name__} is no kind of outcome")
    row.put(symbol("array", type(value).__qualname__), node, type(value).__name__)
    row.add(array, node)


def key_codes(value: object, row: Row) -> list[float]:
    """The entries of a key or an element, by which it is sorted; its labels go to the row's."""
    own = Row(labels=row.labels, depth=row.depth)
    own.add(value)
    return own.entries


def append_entries(value: Any, row: Row, node: Node | None) -> None:
    """The entries of a sequence, one after the other."""
    if isinstance(value, np.ndarray) and value.ndim > 1 and not len(value):
        row.put(symbol("shape", repr(value.shape)), node, f"shape {value.shape}")
    if not isinstance(value, np.ndarray):
        names = getattr(value, "_fields", None)
        if names is not None and isinstance(value, tuple):
            for name, item in zip(names, value, strict=True):
                row.add(item, row.at(node, "field", name))
        else:
            row.extend(value, node)
        return
    if value.dtype.names is not None:
        row.put(symbol("records", repr(value.dtype.names)), node, "records")
        row.extend(list(value), node, "row")
        return
    if isinstance(value, np.matrix):  # whose rows are matrices again
        value = np.asarray(value)
    elif isinstance(value, np.ma.MaskedArray):  # None where an entry is masked
        row.extend(value.tolist(), node)
        return
    quick = numeric_entries(value)
    if quick is None:
        row.extend(
            value.tolist() if value.ndim == 1 and value.dtype.kind in "OUSbiuc" else list(value), node,
            "value" if value.ndim == 1 else "row",
        )  # fmt: skip
        return
    row.block(quick, node)


def numeric_entries(value: NDArray[Any]) -> list[float] | None:
    """The entries of a plain array of one axis that holds flags or numbers of at most 64 bits; None for any other."""
    if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        return None
    rows = array_rows(value.reshape(1, -1))
    return None if rows is None else rows[0].tolist()


#: Types of single values that nothing changes any more.
WHOLE_NUMBERS: Final = frozenset({int, np.int64})
NUMBERS: Final = WHOLE_NUMBERS | {float, np.float64}
FLAGS: Final = frozenset({bool, np.bool_})
SINGLE_VALUES: Final = NUMBERS | FLAGS | {str, type(None)}


def uniform_rows(outcomes: Sequence[Any], row: Row) -> NDArray[np.float64] | None:
    """Rows by position of many outcomes at once, the same as one by one; their texts go to the labels of `row`.

    All are numbers, or flags, or texts, or tuples or arrays of so many of one of these, at least two; else None.
    """
    kinds = set(map(type, outcomes))
    if kinds <= NUMBERS:
        try:
            numbers = np.array(outcomes, np.float64)
        except OverflowError:
            return None
        if kinds & WHOLE_NUMBERS and np.any(np.abs(numbers) >= WHOLE):
            return None
        return array_rows(numbers.reshape(-1, 1))
    if kinds <= FLAGS:
        return array_rows(np.array(outcomes, np.bool_).reshape(-1, 1))
    if kinds == {str}:
        codes = {text: entries(text)[0] for text in dict.fromkeys(outcomes)}
        for text, code in codes.items():
            row.label(code, text)
        return np.array([*map(codes.__getitem__, outcomes)]).reshape(-1, 1)
    if kinds in ({tuple}, {np.ndarray}) and len(outcomes[0]) > 1 and len(set(map(len, outcomes))) == 1:
        if kinds == {tuple}:
            flat = uniform_rows([*chain.from_iterable(outcomes)], row)
            return None if flat is None else flat.reshape(len(outcomes), -1)
        dtypes = {outcome.dtype for outcome in outcomes}
        if len(dtypes) == 1 and dtypes.pop().itemsize <= 8:  # a long double takes two entries
            return array_rows(np.stack(outcomes))
    return None


#: Bytes of a value that have an entry each.
BYTES: Final = 32
EPOCH: Final = datetime.datetime(1970, 1, 1)


@append.register
def _(value: numbers.Number, row: Row, node: Node | None) -> None:
    if isinstance(value, enum.Enum):
        append.dispatch(enum.Enum)(value, row, node)
        return
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        row.put(symbol("complex"), node, "complex")
        row.add(value.real, row.at(node, "part", "real"))
        row.add(value.imag, row.at(node, "part", "imaginary"))
        return
    for entry in entries(value):
        row.put(entry, node)
    if isinstance(value, np.longdouble) and math.isfinite(value) and float(value) != value:
        row.put(symbol("long double", repr(value)), node, str(value))


@append.register
def _(value: np.bool_, row: Row, node: Node | None) -> None:
    row.put(entries(value)[0], node)


@append.register
def _(value: str, row: Row, node: Node | None) -> None:
    if isinstance(value, enum.Enum):
        append.dispatch(enum.Enum)(value, row, node)
    else:
        row.text(str(value), node)


@append.register(Decimal)
@append.register(fractions.Fraction)
def _(value: Any, row: Row, node: Node | None) -> None:
    try:
        row.add(float(value), node)
    except OverflowError:  # of a fraction
        row.put(math.inf if value > 0 else -math.inf, node)
    except ValueError:  # a signalling NaN
        row.put(NOT_A_NUMBER, node)
    row.put(symbol(type(value).__name__, f"{value!s}"), node, repr(value))  # not as a number or a text is told


@append.register
def _(value: enum.Enum, row: Row, node: Node | None) -> None:
    name = f"{type(value).__qualname__}.{value.name or value.value}"  # a combination of flags may have no name
    row.put(symbol("enum", name), node, name)


@append.register(bytes)
@append.register(bytearray)
@append.register(memoryview)
def _(value: Any, row: Row, node: Node | None) -> None:
    held = bytes(value)
    row.put(symbol("bytes", held.hex()), node, repr(held) if len(held) <= BYTES else f"{len(held)} bytes")
    row.length(len(held), node, "bytes")
    row.extend(held[:BYTES], node, "byte")


@append.register(datetime.date)
@append.register(datetime.time)
@append.register(datetime.timedelta)
def _(value: Any, row: Row, node: Node | None) -> None:
    if value != value:  # pandas' NaT is of such a type
        row.put(symbol("missing", str(value)), node, str(value))
        return
    if isinstance(value, datetime.timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, datetime.datetime):
        seconds = (value.replace(tzinfo=None) - EPOCH).total_seconds()
    elif isinstance(value, datetime.date):
        seconds = 86_400.0 * (value.toordinal() - EPOCH.toordinal())
    else:
        seconds = value.hour * 3600.0 + value.minute * 60 + value.second + value.microsecond / 1e6
    exact = _length_of(value) if isinstance(value, datetime.timedelta) else value.isoformat()
    if isinstance(value, datetime.date):
        row.date(seconds, "s", node)
    else:
        row.add(seconds, node)
    row.put(symbol("time", f"{exact} {getattr(value, 'fold', 0)}"), node, str(value))


def _length_of(value: datetime.timedelta) -> str:
    """The same for pandas' kind, which counts nanoseconds besides, where these are 0."""
    nanoseconds = getattr(value, "nanoseconds", 0)
    plain = repr(datetime.timedelta(value.days, value.seconds, value.microseconds))
    return f"{plain} {nanoseconds}" if nanoseconds else plain


@append.register(np.datetime64)
@append.register(np.timedelta64)
def _(value: Any, row: Row, node: Node | None) -> None:
    if np.isnat(value):
        row.put(symbol("missing", "NaT"), node, "NaT")
        return
    count = int(value.astype(np.int64))
    if isinstance(value, np.datetime64):
        unit, step = np.datetime_data(value.dtype)
        # Seconds as "1s": Python's dates, which are other outcomes, are in "s", and are told apart as of another unit.
        row.date(count, unit if step == 1 and unit != "s" else f"{step}{unit}", node)
    else:
        row.add(count, node)
    row.put(symbol("time", value.dtype.str), node, str(value.dtype))


#: What stands at the node of an element of a set, but for those of `EQUAL`.
PRESENT: Final = symbol("element")
#: Flags and negative zeros find what 1 and 0 find in a dict.
EQUAL: Final = {TRUE: 1.0, FALSE: 0.0, NEGATIVE_ZERO: 0.0}
#: Types of elements that come again, so that each has a node of its own; so do whole numbers of other types.
NAMES: Final = (str, bytes, int, type(None))


def _comes_again(element: object) -> bool:
    """Whether an element of a set has a node of its own: for each real number that was drawn it would be of one run.

    What is one outcome by itself is one element: 5, 5.0 and NumPy's.
    """
    value = element.item() if isinstance(element, np.generic) else element
    return isinstance(value, NAMES) or (isinstance(value, float) and value.is_integer())


@append.register
def _(value: Mapping, row: Row, node: Node | None) -> None:  # type: ignore[type-arg]  # what is dispatched on has no arguments
    names = [*value]
    codes = [key_codes(name, row) for name in names]
    order = symbol("mapping", repr(codes))
    if row.keyed:
        row.put(symbol("mapping"), node, "a dict")
        for name in names:
            row.add(value[name], row.at(node, "key", name))
        row.put(order, row.at(node, "order of", "keys"), listed(names))
        return
    row.structured = True
    row.put(order, node, f"keys {', '.join(map(repr, names[:5]))}"[:80])
    for number in sorted(range(len(names)), key=codes.__getitem__):
        for code in codes[number]:
            row.put(code, None)
        row.add(value[names[number]], None)


@append.register
def _(value: Set, row: Row, node: Node | None) -> None:  # type: ignore[type-arg]  # as above
    row.put(symbol("set"), node, "a set")
    row.length(len(value), node, "elements")
    if row.keyed:
        others = []  # they stand by their order
        for element in sorted(value, key=lambda element: key_codes(element, row)):
            if _comes_again(element):
                code = key_codes(element, row)[0]
                present = (code, None) if code in EQUAL else (PRESENT, "present")
                row.put(present[0], row.at(node, "element", element), present[1])
            else:
                others.append(element)
        row.extend(others, node, "other element")
        return
    for codes in sorted(key_codes(element, row) for element in value):
        for code in codes:
            row.put(code, None)


@append.register(tuple)
@append.register(list)
@append.register(deque)
@append.register(range)
@append.register(np.ndarray)
def _(value: Any, row: Row, node: Node | None) -> None:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        row.add(value.tolist() if isinstance(value, np.ma.MaskedArray) else value[()], node)
        return
    if row.keyed:
        row.put(symbol("list"), node, "a list")  # so that what holds nothing is there, too
    row.length(len(value), node)
    append_entries(value, row, node)


@append.register
def _(value: np.void, row: Row, node: Node | None) -> None:
    if value.dtype.names is None:
        append(value.tobytes(), row, node)
        return
    row.put(symbol("record", repr(value.dtype.names)), node, "record")
    for name in value.dtype.names:
        row.add(value[name], row.at(node, "field", name))


def put_series(values: Sequence[object], labels: Sequence[object] | None, row: Row, node: Node | None) -> None:
    """Values by their labels, or by their numbers from 1 where there are none."""
    row.put(symbol("series"), node, "a Series")
    row.length(len(values), node, "rows")
    for value, within in zip(values, _rows(labels, len(values), row, node), strict=True):
        row.add(value, within)


def put_columns(
    names: Sequence[object],
    columns: Sequence[Sequence[object]],
    labels: Sequence[object] | None,
    rows: int,
    row: Row,
    node: Node | None,
) -> None:
    """The values of a table by column and label, row after row, so that a row more changes no entry before it."""
    row.put(symbol("table"), node, "a DataFrame")
    row.length(rows, node, "rows")
    seen: dict[object, int] = {}
    nodes = [_rows(labels, rows, row, _again(row, row.at(node, "column", name), name, seen)) for name in names]
    for number in range(rows):
        for values, own in zip(columns, nodes, strict=True):
            row.add(values[number], own[number])
    if not columns:  # its rows have a label and nothing else
        for label in _rows(labels, rows, row, node):
            row.put(symbol("row"), label, "present")


def _rows(labels: Sequence[object] | None, count: int, row: Row, node: Node | None) -> list[Node | None]:
    """The nodes of rows; where a label comes again, by how often it was there."""
    if labels is None:
        return [row.at(node, "row", number) for number in range(1, count + 1)]
    seen: dict[object, int] = {}
    return [_again(row, row.at(node, "index", label), label, seen) for label in labels]


def _again(row: Row, node: Node | None, name: object, seen: dict[object, int]) -> Node | None:
    """The node itself where a name comes for the first time, then one for each further time."""
    seen[name] = seen.get(name, 0) + 1
    return node if seen[name] == 1 else row.at(node, "occurrence", seen[name])
