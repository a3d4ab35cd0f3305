"""Outcomes of plain Python, of any type, as rows of numbers; see `dpwitness.events.encoding`.

Different outcomes have different rows, up to collisions of a 48-bit hash. Types of numbers and of sequences are not
part of a value: 5, 5.0 and NumPy's 5 are one value, and so are a list, a tuple and an array of one axis with equal
values. The entries of numbers, flags, texts and None are in `encoding`; other values have these entries:

=====================  ========================================================================================
list, array in others  a symbol; the length; the values
dict                   a symbol; each value at its key; a symbol of the keys in their order
set, frozenset         a symbol; the size; a symbol at each element, since their order is not released
dataclass              a symbol of the class and its fields; then the values
bytes                  a symbol of all bytes; their number; the first `BYTE_ENTRIES` as numbers
Decimal, Fraction      the nearest float, then a symbol of the exact number
date, time, duration   seconds (of a date, since 1970), then a symbol of the exact value
tables, Series         see `tabular`
others                 the array of `numpy.asarray`, for objects with `__array__`
=====================  ========================================================================================

`flatten` alone knows types; `Columns` gives entries their coordinates.
"""

import datetime
import fractions
import importlib
import math
import numbers
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, singledispatch
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.arrays import Rows
from dpwitness.checks import DEEPEST_LEVEL
from dpwitness.errors import InvalidOutcome
from dpwitness.events.encoding import (
    EXACT_INTEGER_LIMIT,
    NOT_A_NUMBER,
    array_rows,
    entries,
    exception_code,
    nested,
    symbol,
    text_code,
)
from dpwitness.mechanisms.columns import (
    ELEMENT_SYMBOL,
    EQUAL_CODES,
    LIST_SYMBOL,
    MAPPING_SYMBOL,
    MOST_COLUMNS,
    Columns,
    Node,
    NodePath,
    OutputTraits,
    node_name,
)

#: The largest number of names that a text lists, to stay on one line.
LISTED_NAMES: Final = 12
#: The number of leading bytes with an entry each; a code of all bytes tells longer values apart.
BYTE_ENTRIES: Final = 32
#: The date from which the seconds of dates count.
EPOCH: Final = datetime.datetime(1970, 1, 1)
#: The types of sequences, whose values follow each other in a row.
SEQUENCE_TYPES: Final = (tuple, list, deque, range)
#: The common types of integers.
INTEGER_TYPES: Final = frozenset({int, np.int64})
#: The common types of numbers.
NUMBER_TYPES: Final = INTEGER_TYPES | {float, np.float64}
#: Python's types of values whose entries are in `encoding`, besides texts.
ENCODED_TYPES: Final = (float, int, bool, type(None))
#: The common types of immutable single values: outcomes of these types need no copy.
SINGLE_TYPES: Final = NUMBER_TYPES | {bool, np.bool_, str, type(None)}


def is_sequence(value: object) -> bool:
    """Whether an outcome is a list, a tuple, a deque, a range, or an array with axes."""
    return isinstance(value, SEQUENCE_TYPES) or (isinstance(value, np.ndarray) and value.ndim > 0)


def is_plain_list(value: object) -> bool:
    """Whether an outcome is a sequence of single values, whose row holds the entries of these values alone."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and (
            value.dtype.kind in "biuf" or (value.dtype.kind in "OU" and is_plain_list([*value]))
        )
    if not isinstance(value, SEQUENCE_TYPES) or hasattr(value, "_fields"):
        return False
    kinds = set(map(type, value)) - SINGLE_TYPES
    single = np.integer | np.floating | np.bool_ | np.str_
    return all(issubclass(kind, single) and not issubclass(kind, np.timedelta64) for kind in kinds)


def single_value(value: object) -> object:
    """The value of an array without axes; any other object unchanged."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value.tolist() if isinstance(value, np.ma.MaskedArray) else value[()]
    return value


class RowWriter:
    """A writer of outcomes as rows, one by one; `flatten` puts the entries of a value at the nodes of its tree.

    Parameters
    ----------
    columns
        The columns of entries; None: columns are made for the first outcome, in runs that decide nothing.
    traits
        The texts and new entries of outcomes, to which the writer adds.
    """

    def __init__(self, columns: Columns | None, traits: OutputTraits) -> None:
        self.columns, self.traits, self._learns = columns or Columns(), traits, columns is None
        self.values: list[float] = []
        self.others: list[tuple[Node, int, float]] = []
        self.depth = 0  # how many containers are around the value that is being read

    def write(self, value: Any, attributes: Sequence[str] = ()) -> list[float]:
        """The row of an outcome; `attributes`: the names of the attributes from which the outcome was read, if any.

        Raises `TypeError` for an object of an unknown type, and `RecursionError` for an object that holds itself or is
        nested too deep.
        """
        self.values, self.others, self.depth = self.columns.blank.copy(), [], 0
        root = self.columns.root
        if attributes:
            for name, item in zip(attributes, value if len(attributes) > 1 else (value,), strict=True):
                self.add(item, self.at(root, "attribute", name))
        elif is_plain_list(value := single_value(value)):
            put_items(value, self, root)
        else:
            self.add(value, root)
        return self._with_others() if self.others else self.values

    def _with_others(self) -> list[float]:
        others = [node.entry(part) for node, part, _ in self.others]
        if self._learns:
            self.columns, self._learns = self.columns.extended(others, len(others)), False
            return [entry for _, _, entry in self.others]
        for entry in () if self.columns.full else others:
            self.traits.entry(entry)
        self.traits.longest = max(self.traits.longest, self.count)
        content = [(node.path, part, entry) for node, part, entry in self.others]
        return [*self.values, float(len(content)), symbol("entries", repr(content))]

    @property
    def count(self) -> int:
        """The number of entries of the last written outcome."""
        return len(self.others) + sum(entry == entry for entry in self.values)

    def put(self, node: Node, *entries: float) -> None:
        """Put entries at a node."""
        known = node.coordinates
        if len(entries) == 1 and known:
            self.values[known[0]] = entries[0]
            return
        for part, entry in enumerate(entries):
            if part < len(known):
                self.values[known[part]] = entry
            else:
                self.others.append((node, part, entry))

    def mark(self, node: Node, code: float, text: str) -> None:
        """Put a code, and keep the text that it encodes."""
        self.put(node, code)
        self.traits.label(code, text)

    def text(self, text: str, node: Node) -> None:
        """Put the entry of a text."""
        self.mark(node, text_code(text), text)

    def at(self, node: Node, word: str, name: object) -> Node:
        """The node within another node for a word and a name, such as "key" and "a"."""
        # Names of other types are looked up by codes: equal tuples, exact numbers and dates may have different codes.
        kept = type(name) in SINGLE_TYPES or (type(name) is tuple and {str, int}.issuperset(map(type, name)))
        known = node.children.get((word, type(name), name)) if kept else None
        if known is not None:
            return known
        path = (*node.path, (word, tuple(EQUAL_CODES.get(code, code) for code in self.codes(name))))
        child = self.columns.node(path)
        if child is None:
            return Node(path, node_name(node.name if node.path else "", word, name))
        child.name = child.name or node_name(node.name if node.path else "", word, name)
        if kept and name == name:
            node.children[word, type(name), name] = child
        return child

    def each(self, node: Node, word: str, names: Iterable[object]) -> list[Node]:
        """The nodes of names within another node; a repeated name, such as NaN, has a node for each occurrence."""
        seen: dict[NodePath, int] = {}
        found = []
        for name in names:
            own = self.at(node, word, name)
            seen[own.path] = again = seen.get(own.path, 0) + 1
            found.append(own if again == 1 else self.at(own, "occurrence", again))
        return found

    def nodes(self, node: Node, word: str, count: int) -> list[Node]:
        """The nodes of values 1 to `count` within another node."""
        known = node.values.setdefault(word, [])
        found = known[:count]
        for number in range(len(found) + 1, count + 1):
            found.append(self.at(node, word, number))
            if found[-1].coordinates and len(known) == number - 1:
                known.append(found[-1])
        return found

    def codes(self, value: object) -> list[float]:
        """The entries of a key or of an element of a set, by which elements are sorted."""
        own = FlatRow(OutputTraits(labels=self.traits.labels))
        own.depth = self.depth
        own.add(value, own.columns.root)
        return own.values

    def length(self, length: int, node: Node, what: str = "values") -> None:
        """Put the length of a container at the node "number of" `what`."""
        self.put(self.at(node, "number of", what), float(length))

    def begin_list(self, length: int, node: Node, codes: Sequence[float]) -> None:
        """Put the codes and the length that precede the values of a list within an outcome."""
        self.put(node, *codes)
        self.length(length, node)

    def extend(self, values: Sequence[object], node: Node, word: str = "value") -> None:
        """Put the entries of values at nodes 1, 2, … within a node."""
        for value, child in zip(values, self.nodes(node, word, len(values)), strict=True):
            self.add(value, child)

    def add(self, value: Any, node: Node) -> None:
        """Put the entries of a value. Raises `TypeError` for a value without a distinct encoding."""
        kind = type(value)
        # The common types come first: `flatten` takes ten times as long.
        if kind is float and (value < 0 or value > 0):
            self.put(node, value)
        elif kind is int and -EXACT_INTEGER_LIMIT < value < EXACT_INTEGER_LIMIT:
            self.put(node, float(value))
        elif kind is str:
            self.text(value, node)
        elif kind in ENCODED_TYPES:
            self.put(node, *entries(value))
        else:
            self.depth += 1
            if self.depth > DEEPEST_LEVEL:
                raise RecursionError(f"it is nested deeper than {DEEPEST_LEVEL} levels")
            flatten(value, self, node)
            self.depth -= 1

    def rows(self, outcomes: Sequence[Any]) -> Rows | None:
        """Rows of many outcomes at once, the same as from `write`; None for outcomes of several kinds.

        Kinds are numbers, flags and texts, and tuples or arrays of these of one length, at least 2.
        """
        values = self.uniform_entries(outcomes)
        return None if values is None else self.place_entries(values, several=type(outcomes[0]) in (tuple, np.ndarray))

    def place_entries(self, values: Rows, *, several: bool) -> Rows | None:
        """Rows of entries of shape (n, k), of single values or of lists (`several`); None if an entry has no column."""
        count = values.shape[1]
        if self._learns:
            self.write([0.0] * count if several else 0.0)
        root = self.columns.root
        nodes = self.nodes(root, "value", count) if several else [root]
        at = [c for node in nodes for c in node.coordinates[:1]]
        if len(at) < count:
            return None
        if at == [*range(len(self.columns.entries))]:
            return values
        rows = np.full((len(values), len(self.columns.entries)), np.nan)
        rows[:, at] = values
        return rows

    def uniform_entries(self, outcomes: Sequence[Any]) -> Rows | None:
        """The entries of many outcomes of one kind, of shape (n, k); None for several kinds, see `rows`."""
        kinds = set(map(type, outcomes))
        if kinds <= NUMBER_TYPES:
            try:
                numbers = np.array(outcomes, np.float64)
            except OverflowError:
                return None
            if kinds & INTEGER_TYPES and np.any(np.abs(numbers) >= EXACT_INTEGER_LIMIT):
                return None
            return array_rows(numbers.reshape(-1, 1))
        if kinds <= {bool, np.bool_}:
            return array_rows(np.array(outcomes, np.bool_).reshape(-1, 1))
        if kinds == {str}:
            codes = {text: text_code(text) for text in dict.fromkeys(outcomes)}
            for text, code in codes.items():
                self.traits.label(code, text)
            return np.array([*map(codes.__getitem__, outcomes)]).reshape(-1, 1)
        if kinds in ({tuple}, {np.ndarray}) and len(outcomes[0]) > 1 and len(set(map(len, outcomes))) == 1:
            if kinds == {tuple}:
                flat = self.uniform_entries([*chain.from_iterable(outcomes)])
                return None if flat is None or flat.shape[1] > 1 else flat.reshape(len(outcomes), -1)
            if len({outcome.dtype for outcome in outcomes}) == 1:
                return array_rows(np.stack(outcomes))
        return None


class FlatRow(RowWriter):
    """A writer of rows by position: an outcome's entries in order, as in compiled code and in files without columns."""

    def __init__(self, traits: OutputTraits) -> None:
        super().__init__(Columns(), traits)

    @override
    def write(self, value: object, attributes: Sequence[str] = ()) -> list[float]:
        self.values, self.depth, root = [], 0, self.columns.root
        if is_sequence(value := single_value(value)):
            put_items(value, self, root)
        else:
            self.add(value, root)
        return self.values

    @override
    def put(self, node: Node, *entries: float) -> None:
        self.values += entries

    @override
    def at(self, node: Node, word: str, name: object) -> Node:
        if word in ("key", "column"):
            raise InvalidOutcome("rows by position hold no keys: dpwitness 0.2 replays files of outcomes with keys")
        return Node((), "")

    @override
    def nodes(self, node: Node, word: str, count: int) -> list[Node]:
        return [Node((), "")] * count

    @override
    def length(self, length: int, node: Node, what: str = "values") -> None:
        self.put(node, nested(length))

    @override
    def begin_list(self, length: int, node: Node, codes: Sequence[float]) -> None:
        self.length(length, node)

    @override
    def place_entries(self, values: Rows, *, several: bool) -> Rows | None:
        return values


@dataclass(frozen=True, slots=True)
class ExceptionOutcome:
    """The outcome of a run that raised an exception of the class `name`."""

    name: str


def listed(names: Sequence[object]) -> str:
    """Names in their order, for people; of over `LISTED_NAMES` names the first names and the number of names."""
    shown = [repr(name.item() if isinstance(name, np.generic) else name) for name in names[:LISTED_NAMES]]
    return ", ".join(shown) + (f", … ({len(names)})" if len(names) > LISTED_NAMES else "") or "none"


@singledispatch
def flatten(value: object, row: RowWriter, node: Node) -> None:
    """Put the entries of an object at a node and within it, all entries of a node at once.

    `flatten.register` adds a type. Raises `TypeError` for an unknown type.
    """
    _import_for(type(value).__module__.partition(".")[0])
    known = flatten.dispatch(type(value))
    if known is not flatten.dispatch(object):
        known(value, row, node)
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        _put_fields(value, row, node)
    elif hasattr(value, "__array__") and not isinstance(value, type):
        _put_converted(value, row, node)
    else:
        raise TypeError(f"{type(value).__name__} has no encoding as an outcome")


@cache
def _import_for(library: str) -> None:
    """Register the types of a library of tables when a mechanism returns an object of it."""
    if library in ("pandas", "polars", "pyarrow"):
        importlib.import_module(f"{__package__}.tabular").register()


def _put_fields(value: Any, row: RowWriter, node: Node) -> None:
    names = [*value.__dataclass_fields__]
    row.mark(node, symbol("dataclass", repr((type(value).__qualname__, names))), type(value).__name__)
    for name in names:
        row.add(getattr(value, name), row.at(node, "field", name))


def _put_converted(value: object, row: RowWriter, node: Node) -> None:
    """Put an object that converts to an array, such as a tensor of another library."""
    array = np.asarray(value.detach() if hasattr(value, "detach") else value)
    if array.ndim == 0 and array.dtype.kind in "OVc":  # a complex number would convert to itself
        raise TypeError(f"{type(value).__name__} has no encoding as an outcome")
    kind = symbol("array", type(value).__qualname__)
    row.traits.label(kind, type(value).__name__)
    if array.ndim == 0:
        row.put(node, kind, *row.codes(array[()]))
    else:
        put_list(array, row, node, kind)


@flatten.register
def _(value: ExceptionOutcome, row: RowWriter, node: Node) -> None:
    row.mark(node, exception_code(value.name), f"raises {value.name}")


def put_list(value: Any, row: RowWriter, node: Node, *kind: float) -> None:
    """Put a sequence within an outcome: its length and its values; `kind`: codes of its type."""
    about: tuple[float, ...] = ()
    if isinstance(value, np.ndarray) and value.ndim > 1 and not len(value):
        about = (symbol("shape", repr(value.shape)),)
        row.traits.label(about[0], f"shape {value.shape}")
    row.begin_list(len(value), node, (*kind, LIST_SYMBOL, *about))
    put_items(value, row, node)


def put_items(value: Any, row: RowWriter, node: Node) -> None:
    """Put the values of a sequence within a node, or of a named tuple at the names of its fields."""
    if not isinstance(value, np.ndarray):
        names = getattr(value, "_fields", None)
        if names is not None and isinstance(value, tuple):
            for name, item in zip(names, value, strict=True):
                row.add(item, row.at(node, "field", name))
        else:
            row.extend(value, node)
        return
    if isinstance(value, np.matrix):  # whose rows are matrices again
        value = np.asarray(value)
    numbers = _numeric_entries(value)
    if numbers is not None:
        for entry, child in zip(numbers, row.nodes(node, "value", len(numbers)), strict=True):
            row.put(child, entry)
    elif isinstance(value, np.ma.MaskedArray):  # None where an entry is masked
        row.extend(value.tolist(), node)
    elif value.ndim == 1:
        row.extend(value.tolist() if value.dtype.kind in "OUSbiuc" else list(value), node)
    else:
        row.extend(list(value), node, "row")


def _numeric_entries(value: NDArray[Any]) -> list[float] | None:
    """The entries of an array with one axis, of flags or numbers of at most 64 bits; None for any other array."""
    if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.kind not in "biuf":
        return None
    rows = array_rows(value.reshape(1, -1))
    return None if rows is None else rows[0].tolist()


@flatten.register
def _(value: numbers.Real, row: RowWriter, node: Node) -> None:
    row.put(node, *entries(value))


@flatten.register
def _(value: np.bool_, row: RowWriter, node: Node) -> None:
    row.put(node, *entries(value))


@flatten.register
def _(value: str, row: RowWriter, node: Node) -> None:
    row.text(str(value), node)


@flatten.register(Decimal)
@flatten.register(fractions.Fraction)
def _(value: Any, row: RowWriter, node: Node) -> None:
    try:
        nearest = entries(float(value))
    except OverflowError:  # a large fraction
        nearest = [math.inf if value > 0 else -math.inf]
    except ValueError:  # a signalling NaN
        nearest = [NOT_A_NUMBER]
    exact = symbol(type(value).__name__, f"{value!s}")
    row.traits.label(exact, repr(value))  # unlike the label of a number or a text
    row.put(node, *nearest, exact)


@flatten.register(bytes)
@flatten.register(bytearray)
@flatten.register(memoryview)
def _(value: Any, row: RowWriter, node: Node) -> None:
    held = bytes(value)
    row.mark(node, symbol("bytes", held.hex()), repr(held) if len(held) <= BYTE_ENTRIES else f"{len(held)} bytes")
    row.length(len(held), node, "bytes")
    row.extend(held[:BYTE_ENTRIES], node, "byte")


@flatten.register(datetime.date)
@flatten.register(datetime.time)
@flatten.register(datetime.timedelta)
def _(value: Any, row: RowWriter, node: Node) -> None:
    if value != value:  # pandas' NaT is of a type of dates
        row.mark(node, symbol("missing", str(value)), str(value))
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
    code = symbol("time", f"{exact} {getattr(value, 'fold', 0)}")
    row.traits.label(code, str(value))
    row.put(node, *entries(seconds), code)


def _length_of(value: datetime.timedelta) -> str:
    """The exact text of a duration; Python's and pandas' durations have one text, but for pandas' nanoseconds."""
    nanoseconds = getattr(value, "nanoseconds", 0)
    plain = repr(datetime.timedelta(value.days, value.seconds, value.microseconds))
    return f"{plain} {nanoseconds}" if nanoseconds else plain


@flatten.register(np.datetime64)
@flatten.register(np.timedelta64)
def _(value: Any, row: RowWriter, node: Node) -> None:
    if np.isnat(value):
        row.mark(node, symbol("missing", "NaT"), "NaT")
        return
    code = symbol("time", value.dtype.str)
    row.traits.label(code, str(value.dtype))
    row.put(node, *entries(int(value.astype(np.int64))), code)


@flatten.register
def put_mapping(value: Mapping, row: RowWriter, node: Node) -> None:  # type: ignore[type-arg]  # `singledispatch` takes no type arguments
    """Put a dict: each value at its key, and the order of the keys."""
    names = (*value,)
    known = node.mappings.get(names)
    if known is None:
        order = symbol("mapping", repr([row.codes(name) for name in names]))
        row.traits.label(order, listed(names))
        known = order, row.each(node, "key", names), row.at(node, "order of", "keys")
        # Only texts: equal keys may have different codes (1, 1.0 and True). Only some orders: keys may be random.
        kept = len(node.mappings) < MOST_COLUMNS and set(map(type, names)) <= {str}
        if kept and all(one.coordinates for one in known[1]):
            node.mappings[names] = known
    row.put(node, MAPPING_SYMBOL)
    for item, child in zip(value.values(), known[1], strict=True):
        row.add(item, child)
    row.put(known[2], known[0])


@flatten.register
def _(value: Set, row: RowWriter, node: Node) -> None:  # type: ignore[type-arg]  # `singledispatch` takes no type arguments
    row.mark(node, symbol("set"), "a set")
    row.length(len(value), node, "elements")
    if isinstance(row, FlatRow):
        row.put(node, *chain.from_iterable(sorted(row.codes(element) for element in value)))
        return
    others = []  # elements without a node of their own, which are numbered
    for element in sorted(value, key=row.codes):
        if _recurs(element):
            code = row.codes(element)[0]
            row.put(row.at(node, "element", element), code if code in EQUAL_CODES else ELEMENT_SYMBOL)
        else:
            others.append(element)
    row.extend(others, node, "other element")


def _recurs(element: object) -> bool:
    """Whether an element of a set has a node of its own, as texts, bytes, flags, None and whole numbers have.

    A drawn real number would have a node in one run alone. Elements that are equal as outcomes have one node: 5, 5.0
    and NumPy's 5.
    """
    value = element.item() if isinstance(element, np.generic) else element
    return isinstance(value, str | bytes | int | None) or (isinstance(value, float) and value.is_integer())


@flatten.register(tuple)
@flatten.register(list)
@flatten.register(deque)
@flatten.register(range)
@flatten.register(np.ndarray)
def _(value: Any, row: RowWriter, node: Node) -> None:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        row.add(single_value(value), node)
    else:
        put_list(value, row, node)


def flat_names(width: int) -> dict[int, str]:
    """The names of the first `width` entries of rows by position."""
    return {c: f"entry {c + 1} of the flat outcome" for c in range(width)}
