"""Outcomes of plain Python, of any type, as rows of numbers; see `dpwitness.events.encoding`.

Outcomes of different values have rows that differ, up to a hash of 48 bits. Types of numbers and of sequences are not
part of a value: 5, 5.0 and NumPy's 5 are one value, and so are a list, a tuple and an array of one axis with equal
values. Any value that is not a number, flag, text, None or sequence begins with a symbol of its kind:

=====================  ========================================================================================
list, array in others  a symbol; its length; then the values (of an array of records, a symbol of the fields)
dict                   a symbol; each value at its key; a symbol of the keys in their order
set, frozenset         a symbol; its size; a symbol at each element: the order of elements was not released
dataclass              a symbol of the class and its fields; then the values
bytes                  a symbol of all bytes, their number, and the first `BYTE_ENTRIES` as numbers
complex                a symbol, the real and the imaginary part
Decimal, Fraction      the nearest float, then a symbol of the exact number
date, time, duration   seconds (of a date since 1970), then a symbol of the exact value
Enum                   a symbol of the class and the member's name
others                 the array of `numpy.asarray`, for objects with `__array__`; see also `tabular`
=====================  ========================================================================================

`flatten` is the only place that knows types; `Columns` gives entries their coordinates.
"""

import datetime
import enum
import fractions
import importlib
import math
import numbers
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, singledispatch
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.checks import DEEPEST_LEVEL
from dpwitness.errors import InvalidOutcome
from dpwitness.events.encoding import (
    EXACT_INTEGER_LIMIT,
    FALSE,
    NOT_A_NUMBER,
    TRUE,
    Rows,
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
    OutputTraits,
    Path,
    node_name,
)

#: Names that a text lists at most, so that it stays on one line.
LISTED_NAMES: Final = 12
#: Bytes of a value that have an entry each: a longer value has a code of all of its bytes.
BYTE_ENTRIES: Final = 32
#: The time from which the seconds of a date count.
EPOCH: Final = datetime.datetime(1970, 1, 1)
#: The types of sequences, whose values follow each other in a row.
SEQUENCE_TYPES: Final = (tuple, list, deque, range)
#: The types of integers that many outcomes have.
INTEGER_TYPES: Final = frozenset({int, np.int64})
#: The types of numbers that many outcomes have.
NUMBER_TYPES: Final = INTEGER_TYPES | {float, np.float64}
#: The types of immutable single values: an outcome of such a type needs no copy.
SINGLE_TYPES: Final = NUMBER_TYPES | {bool, np.bool_, str, type(None)}


def is_sequence(value: object) -> bool:
    """Whether an outcome is a sequence, whose row holds its values one after the other."""
    return isinstance(value, SEQUENCE_TYPES) or (isinstance(value, np.ndarray) and value.ndim > 0)


def is_plain_list(value: object) -> bool:
    """Whether an outcome is a list of single values, which are all that its row holds."""
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


class Row:
    """Writes outcomes as rows, one after the other: `flatten` puts the entries of a value at the nodes of its tree.

    Parameters
    ----------
    columns
        The columns of entries. None: the first outcome gives them, for runs that decide nothing.
    traits
        The texts, dates and new entries of outcomes, which are kept besides the rows.
    """

    def __init__(self, columns: Columns | None, traits: OutputTraits) -> None:
        self.columns, self.traits, self._learns = columns or Columns(), traits, columns is None
        self.values: list[float] = []
        self.others: list[tuple[Node, int, float]] = []
        self.depth = 0  # of the containers that are being read

    def write(self, value: Any, attributes: Sequence[str] = ()) -> list[float]:
        """The row of an outcome; `attributes`: the names of the attributes whose value, or values, it is.

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
        """The number of entries of the last outcome."""
        return len(self.others) + sum(entry == entry for entry in self.values)

    def put(self, node: Node, *entries: float) -> None:
        """Put the entries of a node."""
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
        """The node of a word and a name within another node, such as "key" and "a"."""
        # Other tuples, exact numbers and dates that are equal may have other codes.
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
        """The nodes of names; a repeated name, such as NaN, has a node for each time."""
        seen: dict[Path, int] = {}
        found = []
        for name in names:
            own = self.at(node, word, name)
            seen[own.path] = again = seen.get(own.path, 0) + 1
            found.append(own if again == 1 else self.at(own, "occurrence", again))
        return found

    def nodes(self, node: Node, word: str, count: int) -> list[Node]:
        """The nodes of the values from 1 to `count` within another node."""
        known = node.values.setdefault(word, [])
        found = known[:count]
        for number in range(len(found) + 1, count + 1):
            found.append(self.at(node, word, number))
            if found[-1].coordinates and len(known) == number - 1:
                known.append(found[-1])
        return found

    def codes(self, value: object) -> list[float]:
        """The entries of a key or an element, which are also its sort key."""
        own = FlatRow(OutputTraits(labels=self.traits.labels))
        own.depth = self.depth
        own.add(value, own.columns.root)
        return own.values

    def length(self, length: int, node: Node, what: str = "values") -> None:
        """Put the length of a container, as an entry with a name of its own."""
        self.put(self.at(node, "number of", what), float(length))

    def begin_list(self, length: int, node: Node, codes: Sequence[float]) -> None:
        """Put the codes and the length that stand before the values of a list within an outcome."""
        self.put(node, *codes)
        self.length(length, node)

    def extend(self, values: Sequence[object], node: Node, word: str = "value") -> None:
        """Put the entries of several values."""
        for value, child in zip(values, self.nodes(node, word, len(values)), strict=True):
            self.add(value, child)

    def add(self, value: Any, node: Node) -> None:
        """Put the entries of a value. Raises `TypeError` for a value without a distinct encoding."""
        kind = type(value)
        # The common cases by themselves: all others take ten times as long.
        if kind is float and (value < 0 or value > 0):
            entry = value
        elif kind is int and -EXACT_INTEGER_LIMIT < value < EXACT_INTEGER_LIMIT:
            entry = float(value)
        elif kind is bool:
            entry = TRUE if value else FALSE
        elif kind is str:
            self.text(value, node)
            return
        elif value is None or kind is float or kind is int:
            self.put(node, *entries(value))
            return
        else:
            self.depth += 1
            if self.depth > DEEPEST_LEVEL:
                raise RecursionError(f"it is nested deeper than {DEEPEST_LEVEL} levels")
            COMMON_WRITERS.get(kind, flatten)(value, self, node)
            self.depth -= 1
            return
        self.put(node, entry)

    def rows(self, outcomes: Sequence[Any]) -> Rows | None:
        """Rows of many outcomes at once, equal to their rows one by one; None for outcomes of several kinds.

        The outcomes are all numbers, all flags, all texts, or tuples or arrays of one length, at least 2, of these.
        """
        values = self.uniform_entries(outcomes)
        return None if values is None else self.place_entries(values, several=type(outcomes[0]) in (tuple, np.ndarray))

    def place_entries(self, values: Rows, *, several: bool) -> Rows | None:
        """Entries of shape (n, k), of single values or of lists (`several`), as rows; None if one has no column."""
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
        """The entries of many outcomes of one kind; None for outcomes of several kinds, see `rows`."""
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
            dtypes = {outcome.dtype for outcome in outcomes}
            if len(dtypes) == 1 and dtypes.pop().itemsize <= 8:  # a long double takes two entries
                return array_rows(np.stack(outcomes))
        return None


class FlatRow(Row):
    """A row with the entries of an outcome in order, as in compiled code and in files without names of entries."""

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
    """Names in their order, for people; of more than 12 names the first 12 and the number."""
    shown = [repr(name.item() if isinstance(name, np.generic) else name) for name in names[:LISTED_NAMES]]
    return ", ".join(shown) + (f", … ({len(names)})" if len(names) > LISTED_NAMES else "") or "none"


@singledispatch
def flatten(value: object, row: Row, node: Node) -> None:
    """Put the entries of an object; `flatten.register` adds a type. Each node gets its entries at once.

    Raises `TypeError` for a type that is not known.
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
    """Register the types of a library once a mechanism returns one: the library is not imported before."""
    if library in ("pandas", "polars", "pyarrow"):
        importlib.import_module(f"{__package__}.tabular").register()


def _put_fields(value: Any, row: Row, node: Node) -> None:
    """Put the symbol and the fields of a dataclass."""
    names = [*value.__dataclass_fields__]
    row.mark(node, symbol("dataclass", repr((type(value).__qualname__, names))), type(value).__name__)
    for name in names:
        row.add(getattr(value, name), row.at(node, "field", name))


def _put_converted(value: object, row: Row, node: Node) -> None:
    """Put an object that converts to an array, such as a tensor of another library."""
    array = np.asarray(value.detach() if hasattr(value, "detach") else value)
    if array.ndim == 0 and array.dtype.kind == "O":
        raise TypeError(f"{type(value).__name__} has no encoding as an outcome")
    kind = symbol("array", type(value).__qualname__)
    row.traits.label(kind, type(value).__name__)
    if array.ndim == 0:
        row.put(node, kind, *row.codes(array[()]))
    else:
        put_list(array, row, node, kind)


@flatten.register
def _(value: ExceptionOutcome, row: Row, node: Node) -> None:
    row.mark(node, exception_code(value.name), f"raises {value.name}")


def put_list(value: Any, row: Row, node: Node, *kind: float) -> None:
    """Put a sequence within an outcome, its length and its values; `kind`: codes of its type."""
    about: tuple[float, ...] = ()
    if isinstance(value, np.ndarray) and value.ndim > 1 and not len(value):
        about = (symbol("shape", repr(value.shape)),)
        row.traits.label(about[0], f"shape {value.shape}")
    elif isinstance(value, np.ndarray) and value.dtype.names is not None:
        about = (symbol("records", repr(value.dtype.names)),)
        row.traits.label(about[0], "records")
    row.begin_list(len(value), node, (*kind, LIST_SYMBOL, *about))
    put_items(value, row, node)


def put_items(value: Any, row: Row, node: Node) -> None:
    """Put the values of a sequence, one after the other."""
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
    elif value.dtype.names is None and value.ndim == 1:
        row.extend(value.tolist() if value.dtype.kind in "OUSbiuc" else list(value), node)
    else:
        row.extend(list(value), node, "row")


def _numeric_entries(value: NDArray[Any]) -> list[float] | None:
    """The entries of a plain array of one axis of flags or numbers of at most 64 bits; None for any other array."""
    if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        return None
    rows = array_rows(value.reshape(1, -1))
    return None if rows is None else rows[0].tolist()


@flatten.register
def _(value: numbers.Number, row: Row, node: Node) -> None:
    if isinstance(value, enum.Enum):
        flatten.dispatch(enum.Enum)(value, row, node)
    elif isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        row.mark(node, symbol("complex"), "complex")
        row.add(value.real, row.at(node, "part", "real"))
        row.add(value.imag, row.at(node, "part", "imaginary"))
    elif isinstance(value, np.longdouble) and math.isfinite(value) and float(value) != value:
        exact = symbol("long double", repr(value))
        row.traits.label(exact, str(value))
        row.put(node, *entries(value), exact)
    else:
        row.put(node, *entries(value))


@flatten.register
def _(value: np.bool_, row: Row, node: Node) -> None:
    row.put(node, *entries(value))


@flatten.register
def _(value: str, row: Row, node: Node) -> None:
    if isinstance(value, enum.Enum):
        flatten.dispatch(enum.Enum)(value, row, node)
    else:
        row.text(str(value), node)


@flatten.register(Decimal)
@flatten.register(fractions.Fraction)
def _(value: Any, row: Row, node: Node) -> None:
    try:
        nearest = entries(float(value))
    except OverflowError:  # of a fraction
        nearest = [math.inf if value > 0 else -math.inf]
    except ValueError:  # a signalling NaN
        nearest = [NOT_A_NUMBER]
    exact = symbol(type(value).__name__, f"{value!s}")
    row.traits.label(exact, repr(value))  # not as a number or a text is told
    row.put(node, *nearest, exact)


@flatten.register
def _(value: enum.Enum, row: Row, node: Node) -> None:
    name = f"{type(value).__qualname__}.{value.name or value.value}"  # a combination of flags may have no name
    row.mark(node, symbol("enum", name), name)


@flatten.register(bytes)
@flatten.register(bytearray)
@flatten.register(memoryview)
def _(value: Any, row: Row, node: Node) -> None:
    held = bytes(value)
    row.mark(node, symbol("bytes", held.hex()), repr(held) if len(held) <= BYTE_ENTRIES else f"{len(held)} bytes")
    row.length(len(held), node, "bytes")
    row.extend(held[:BYTE_ENTRIES], node, "byte")


@flatten.register(datetime.date)
@flatten.register(datetime.time)
@flatten.register(datetime.timedelta)
def _(value: Any, row: Row, node: Node) -> None:
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
    if isinstance(value, datetime.date):
        row.traits.date(node.path, "s")
    code = symbol("time", f"{exact} {getattr(value, 'fold', 0)}")
    row.traits.label(code, str(value))
    row.put(node, *entries(seconds), code)


def _length_of(value: datetime.timedelta) -> str:
    """The exact text of a duration; a duration of pandas without nanoseconds has the same text."""
    nanoseconds = getattr(value, "nanoseconds", 0)
    plain = repr(datetime.timedelta(value.days, value.seconds, value.microseconds))
    return f"{plain} {nanoseconds}" if nanoseconds else plain


@flatten.register(np.datetime64)
@flatten.register(np.timedelta64)
def _(value: Any, row: Row, node: Node) -> None:
    if np.isnat(value):
        row.mark(node, symbol("missing", "NaT"), "NaT")
        return
    if isinstance(value, np.datetime64):
        unit, step = np.datetime_data(value.dtype)
        # Seconds as "1s": Python's dates, which are other outcomes, are in "s", and are told apart as of another unit.
        row.traits.date(node.path, unit if step == 1 and unit != "s" else f"{step}{unit}")
    code = symbol("time", value.dtype.str)
    row.traits.label(code, str(value.dtype))
    row.put(node, *entries(int(value.astype(np.int64))), code)


@flatten.register
def put_mapping(value: Mapping, row: Row, node: Node) -> None:  # type: ignore[type-arg]  # `singledispatch` takes no arguments of types
    """Put a dict: each value at its key, and the order of the keys."""
    names = (*value,)
    known = node.mappings.get(names)
    if known is None:
        order = symbol("mapping", repr([row.codes(name) for name in names]))
        row.traits.label(order, listed(names))
        known = order, row.each(node, "key", names), row.at(node, "order of", "keys")
        # Keys that are equal may be others: 1, 1.0 and True. And keys have more orders than fit into any memory.
        kept = len(node.mappings) < MOST_COLUMNS and set(map(type, names)) <= {str}
        if kept and all(one.coordinates for one in known[1]):
            node.mappings[names] = known
    row.put(node, MAPPING_SYMBOL)
    for item, child in zip(value.values(), known[1], strict=True):
        row.add(item, child)
    row.put(known[2], known[0])


@flatten.register
def _(value: Set, row: Row, node: Node) -> None:  # type: ignore[type-arg]  # as above
    row.mark(node, symbol("set"), "a set")
    row.length(len(value), node, "elements")
    if isinstance(row, FlatRow):
        row.put(node, *chain.from_iterable(sorted(row.codes(element) for element in value)))
        return
    others = []  # they stand by their order
    for element in sorted(value, key=row.codes):
        if _comes_again(element):
            code = row.codes(element)[0]
            row.put(row.at(node, "element", element), code if code in EQUAL_CODES else ELEMENT_SYMBOL)
        else:
            others.append(element)
    row.extend(others, node, "other element")


def _comes_again(element: object) -> bool:
    """Whether an element of a set has a node of its own: an element of a type that repeats, or a whole number.

    A drawn real number would have a node in one run alone. Values that are equal as outcomes are one element: 5, 5.0
    and NumPy's 5.
    """
    value = element.item() if isinstance(element, np.generic) else element
    return isinstance(value, str | bytes | int | None) or (isinstance(value, float) and value.is_integer())


@flatten.register(tuple)
@flatten.register(list)
@flatten.register(deque)
@flatten.register(range)
@flatten.register(np.ndarray)
def _(value: Any, row: Row, node: Node) -> None:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        row.add(single_value(value), node)
    else:
        put_list(value, row, node)


#: The functions that write the most common containers: a lookup by `flatten` takes as long as writing three numbers.
COMMON_WRITERS: Final[dict[type, Callable[[Any, Row, Node], None]]] = {
    dict: put_mapping,
    list: put_list,
    tuple: put_list,
}


@flatten.register
def _(value: np.void, row: Row, node: Node) -> None:
    if value.dtype.names is None:
        flatten(value.tobytes(), row, node)
        return
    row.mark(node, symbol("record", repr(value.dtype.names)), "record")
    for name in value.dtype.names:
        row.add(value[name], row.at(node, "field", name))


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatShape:
    """The shape that flat outcomes of compiled code share: names of entries, and the lengths of lists.

    `lengths`: the coordinates of lengths of lists, and their entries.
    """

    names: tuple[str, ...]
    lengths: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, value: object) -> "FlatShape":
        """The shape of numbers and flags in lists and arrays."""
        names: list[str] = []
        lengths: list[tuple[int, float]] = []

        def visit(item: Any, name: str) -> None:
            if is_sequence(item):
                if name:
                    lengths.append((len(names), nested(len(item))))
                    names.append(name)
                word = "row" if isinstance(item, np.ndarray) and item.ndim > 1 else "value"
                for number, inner in enumerate(item, 1):
                    visit(inner, node_name(name, word, number))
            else:
                names.extend(Node((), name).entry(part).name for part in range(len(entries(item))))

        visit(single_value(value), "")
        return cls(names=tuple(names), lengths=tuple(lengths))

    def fits(self, rows: Rows) -> bool:
        """Whether all outcomes have the shape, as far as rows of shape (2, n, any width) show it."""
        width, size = rows.shape[2], len(self.names)
        same = all(bool((rows[:, :, c] == entry).all()) for c, entry in self.lengths if c < width)
        full = width < size or not np.isnan(rows[:, :, size - 1]).any()
        return same and full and (width <= size or bool(np.isnan(rows[:, :, size]).all()))


def flat_names(width: int) -> dict[int, str]:
    """The names of the entries of flat outcomes: by position, with lengths before lists."""
    return {c: f"entry {c + 1} of the flat outcome" for c in range(width)}
