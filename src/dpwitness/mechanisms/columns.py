"""Columns of outcomes: the coordinate of each entry in a row, the same for every outcome of a mechanism.

An outcome is a tree; an *entry* is a number at a node, such as a key, a column and an index label, a field or a
position. Columns are fixed before the runs whose rows they lay out: a row follows from the outcome alone, on both sides
and in every process. An entry that an outcome lacks is NaN. Entries without a column are two numbers behind the
columns: their count, and one code for all of them. Between samples `extended` gives these entries columns, up to a
limit, since random keys would fill the memory; columns never move.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar, Final

import numpy as np

from dpwitness.codec import whole_below
from dpwitness.events.encoding import FALSE, NEGATIVE_ZERO, TRUE, symbol

#: The largest number of columns, or twice the entries of the largest outcome if that number is larger: random keys
#: would fill the memory.
MOST_COLUMNS: Final = 512
#: The largest number of texts and new entries that a mechanism keeps: random texts would fill the
#: memory.
MOST_LABELS: Final = 10_000
#: The numbers to which flags and negative zero are equal as keys of a dict, by their codes.
EQUAL_CODES: Final = {TRUE: 1.0, FALSE: 0.0, NEGATIVE_ZERO: 0.0}
#: The symbol before the values of a list, so that an empty list has an entry.
LIST_SYMBOL: Final = symbol("list")
#: The symbol before the values of a dict, so that an empty dict has an entry.
MAPPING_SYMBOL: Final = symbol("mapping")
#: The symbol at the node of an element of a set, unless the element's code is in `EQUAL_CODES`.
ELEMENT_SYMBOL: Final = symbol("element")

#: A step from a node of an outcome to a node within it: a word, and the codes of the key, label or number.
Step = tuple[str, tuple[float, ...]]
#: The steps from the root of an outcome to a node.
NodePath = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of outcomes: the path to its node, its index among the node's entries, and its name for people."""

    json_keys: ClassVar[tuple[str, ...]] = ("name", "at: path", "part")

    path: NodePath
    part: Annotated[int, whole_below(1 << 16)]  # the index at the node; texts and numbers have up to three entries
    name: str = field(compare=False)


class Node:
    """A node of an outcome's tree: the coordinates of its entries, and the nodes within it.

    `values`: the nodes of values 1, 2, …, by word. `mappings`: for the keys of a dict, the code of their order, their
    nodes, and the node of their order.
    """

    __slots__ = ("children", "coordinates", "mappings", "name", "path", "values")

    def __init__(self, path: NodePath, name: str) -> None:
        self.path, self.name = path, name
        self.coordinates: list[int] = []
        self.children: dict[tuple[str, type, object], Node] = {}
        self.values: dict[str, list[Node]] = {}
        self.mappings: dict[tuple[object, ...], tuple[float, list[Node], Node]] = {}

    def entry(self, part: int) -> Entry:
        """The entry of the node with the index `part`."""
        return Entry(self.path, part, self.name if part == 0 else f"{self.name} (part {part + 1})")


class Columns:
    """The columns of entries: `entries[c]` has the coordinate c; `full`: further entries get no columns later."""

    def __init__(self, entries: Iterable[Entry] = (), *, full: bool = False) -> None:
        self.entries, self.full = tuple(entries), full
        self.blank = [math.nan] * len(self.entries)
        self.root = Node((), "outcome")
        self._nodes: dict[NodePath, Node] = {(): self.root}
        for c, entry in enumerate(self.entries):
            for depth in range(1, len(entry.path) + 1):  # nodes on the way may have no columns of their own
                node = self._nodes.setdefault(entry.path[:depth], Node(entry.path[:depth], ""))
            node = self._nodes[entry.path]
            node.name = node.name or entry.name
            if len(node.coordinates) == entry.part:
                node.coordinates.append(c)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Columns, full=self.full), (self.entries,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and (self.entries, self.full) == (other.entries, other.full)

    def __hash__(self) -> int:
        return hash((self.entries, self.full))

    @property
    def plain(self) -> bool:
        """Whether the columns belong to one single value, or to a list of single values in its order."""
        paths = [entry.path for entry in self.entries]
        values = [(("value", (float(k),)),) for k in range(1, len(paths) + 1)]
        return not self.full and (not any(paths) or paths == values)

    def node(self, path: NodePath) -> Node | None:
        """The node at the end of a path; None if no entry with a column lies at it or within it."""
        return self._nodes.get(path)

    def coordinate(self, path: NodePath, part: int) -> int | None:
        """The coordinate of an entry; None for an entry without a column."""
        node = self._nodes.get(path)
        return node.coordinates[part] if node is not None and part < len(node.coordinates) else None

    @property
    def parts(self) -> dict[int, int]:
        """The coordinate of a value's first entry, by the coordinate of each further entry of the value."""
        return {c: node.coordinates[0] for node in self._nodes.values() for c in node.coordinates[1:]}

    @property
    def names(self) -> dict[int, str]:
        """The names of entries for people, by coordinate; if `full`, also of two entries for all others."""
        named = {c: entry.name for c, entry in enumerate(self.entries)}
        if self.full:
            named |= {len(named): "number of other entries", len(named) + 1: "all other entries together"}
        return named

    def upto(self, width: int) -> "Columns":
        """Columns of the first `width` entries; these columns if `width` is larger than their number."""
        return self if width > len(self.entries) else Columns(self.entries[:width])

    def extended(self, entries: Iterable[Entry], longest: int = 0) -> "Columns":
        """Columns with further entries, full if not all fit; `longest`: the number of the largest outcome's entries."""
        new = [entry for entry in entries if self.coordinate(entry.path, entry.part) is None]
        if self.full or not new:
            return self
        room = max(max(MOST_COLUMNS, 2 * longest) - len(self.entries), 0)
        return Columns((*self.entries, *new[:room]), full=room < len(new))


def node_name(outer: str, word: str, name: object) -> str:
    """The name of a node for people, such as "key 'a', value 2"; `outer`: the name of the node around it, or ""."""
    if isinstance(name, np.generic):
        name = name.item()
    quoted = word in ("key", "field", "column", "index", "attribute", "element")  # names from the user's outcome
    own = f"{word} {cut(repr(name))}" if quoted else f"{word} {name}"
    return f"{outer}, {own}" if outer else own


def cut(text: str) -> str:
    """A text, or the first 300 characters of a longer text."""
    return text if len(text) <= 300 else f"{text[:300]}…"


@dataclass(slots=True, kw_only=True)
class OutputTraits:
    """Properties of outcomes that rows do not hold, for people and for the columns of later runs."""

    #: The texts of outcomes, and the names of exceptions and symbols, by code.
    labels: dict[float, str] = field(
        default_factory=lambda: {LIST_SYMBOL: "a list", MAPPING_SYMBOL: "a dict", ELEMENT_SYMBOL: "present"}
    )
    #: Entries without a column, in the order of their first occurrence.
    entries: dict[tuple[NodePath, int], Entry] = field(default_factory=dict)
    #: The number of entries of the largest outcome with an entry without a column.
    longest: int = 0

    def label(self, code: float, text: str) -> None:
        """Keep the text that a code encodes."""
        if len(self.labels) < MOST_LABELS or code in self.labels:
            self.labels[code] = cut(text)

    def entry(self, entry: Entry) -> None:
        """Keep an entry without a column."""
        if len(self.entries) < MOST_LABELS:
            self.entries.setdefault((entry.path, entry.part), entry)

    def adopt(self, other: "OutputTraits") -> None:
        """Add the traits of other outcomes."""
        self.labels.update(other.labels)
        for entry in other.entries.values():
            self.entry(entry)
        self.longest = max(self.longest, other.longest)
