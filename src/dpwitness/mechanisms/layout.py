"""Outcomes with keys as rows by key: which coordinate holds which entry, the same for every outcome of a mechanism.

An outcome with keys is a tree: an *entry* is a number at a node, under a key, a column and an index label, a field, a
position. A `RowLayout` gives entries their coordinates and never moves them; it is fixed before the runs whose rows it
lays out, so that a row follows from the outcome alone, on both sides and in every process. An entry that an outcome
lacks is NaN. Entries that a layout lacks stand behind it, in a form that is the same everywhere:

- while it grows, a code of each and its value, by which `settled` gives them coordinates once the runs are done;
- once it is full (keys that are random would fill any memory), their number, and one code for all of them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from typing_extensions import override

from dpwitness.events.encoding import Rows, nested, symbol
from dpwitness.mechanisms.outcomes import EQUAL, LABELS, Entry, Node, Path, Place, Row, key_codes, node_name

#: Entries of a layout at most, or twice as many as the largest outcome has.
MOST: Final = 512
ROOT_NAME: Final = "outcome"


class RowLayout:
    """The coordinates of entries: that of `entries[c]` is c. `full`: whether further entries are only counted.

    The first entry is that of the outcome as a whole, where a value or an exception stands that holds nothing else.
    """

    def __init__(self, entries: Sequence[Entry], *, full: bool = False) -> None:
        self.entries, self.full = tuple(entries), full
        self.blank = [math.nan] * len(self.entries)
        self._nodes: dict[Path, Node] = {(): Node((), ROOT_NAME)}
        self._coordinates = {(entry.path, entry.part): c for c, entry in enumerate(self.entries)}
        for c, entry in enumerate(self.entries):
            node = self._nodes.setdefault(entry.path, Node(entry.path, entry.name))
            if len(node.coordinates) == entry.part:
                node.coordinates.append(c)
        self.root = self._nodes[()]
        firsts = {c: self._coordinates.get((entry.path, 0)) for c, entry in enumerate(self.entries) if entry.part}
        #: Where further entries of a value stand, and where the first one does.
        self.parts = {c: first for c, first in firsts.items() if first is not None}

    def __reduce__(self) -> tuple[object, ...]:
        return partial(RowLayout, full=self.full), (self.entries,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowLayout) and (self.entries, self.full) == (other.entries, other.full)

    def __hash__(self) -> int:
        return hash((self.entries, self.full))

    def node(self, path: Path) -> Node | None:
        """The node at the end of a path; None where there is no entry."""
        return self._nodes.get(path)

    def coordinate(self, entry: Entry) -> int | None:
        """The coordinate of an entry; None where it has none."""
        return self._coordinates.get((entry.path, entry.part))

    @property
    def width(self) -> int:
        """Entries of a row that lacks nothing of it."""
        return len(self.entries) + 2 * self.full

    @property
    def names(self) -> dict[int, str]:
        """Names for people of all coordinates."""
        named = {c: entry.name for c, entry in enumerate(self.entries)}
        if self.full:
            named |= {len(named): "number of other entries", len(named) + 1: "all other entries together"}
        return named

    def upto(self, width: int) -> "RowLayout":
        """The first so many entries; all where what stands behind them counts too."""
        return self if width > len(self.entries) else RowLayout(self.entries[:width])

    def extended(self, entries: Sequence[Entry], most: int) -> "RowLayout":
        """With further entries, as far as there is room for `most`; full where that is not for all of them."""
        new = [entry for entry in entries if self.coordinate(entry) is None]
        if self.full or not new:
            return self
        added = new[: max(most - len(self.entries), 0)]
        return RowLayout((*self.entries, *added), full=len(added) < len(new))


ROOT: Final = RowLayout((Entry((), 0, ROOT_NAME),))


class KeyedRow(Row):
    """A row that is laid out; `unplaced`: entries behind the layout by their codes, to which new ones are added."""

    __slots__ = ("_parts", "_unknown", "layout", "rest", "unplaced", "values")
    keyed = True

    def __init__(
        self,
        layout: RowLayout,
        labels: dict[float, str],
        unplaced: dict[float, Entry],
        dates: dict[Place, str] | None = None,
    ) -> None:
        super().__init__(labels=labels, dates={} if dates is None else dates)
        self.layout, self.unplaced = layout, unplaced
        self.values = layout.blank.copy()
        self.rest: list[tuple[Node, int, float]] = []
        self._parts: dict[Node, int] = {}
        self._unknown: dict[Path, Node] = {}  # nodes that the layout has not

    @override
    def put(self, entry: float, node: Node | None, label: str | None = None) -> None:
        node = node or self.layout.root
        part = self._parts.get(node, 0)
        self._parts[node] = part + 1
        if part < len(node.coordinates):
            self.values[node.coordinates[part]] = entry
        else:
            self.rest.append((node, part, entry))
        if label is not None:
            self.label(entry, label)

    @override
    def place(self, node: Node | None) -> Place:
        node = node or self.layout.root
        return node.path, self._parts.get(node, 0)

    @override
    def at(self, node: Node | None, word: str, name: object) -> Node:
        node = node or self.layout.root
        known = node.children.get((word, type(name), name))
        return self._child(node, word, name) if known is None else known

    def _child(self, node: Node, word: str, name: object) -> Node:
        path = (*node.path, (word, tuple(EQUAL.get(code, code) for code in key_codes(name, self))))
        child = self.layout.node(path)
        if child is None:
            outer = "" if node is self.layout.root or not node.path else node.name
            child = self._unknown.setdefault(path, Node(path, node_name(outer, word, name)))
        elif not (isinstance(name, float) and math.isnan(name)) and self.layout.node(node.path) is node:
            node.children[word, type(name), name] = child
        return child

    @override
    def length(self, length: int, node: Node | None, what: str = "values") -> None:
        # A number with a name of its own, for people to count.
        self.put(float(length), self.at(node, "number of", what))

    @override
    def extend(self, values: Iterable[object], node: Node | None, word: str = "value") -> None:
        for number, value in enumerate(values, 1):
            self.add(value, self.at(node, word, number))

    @override
    def block(self, numbers: list[float], node: Node | None) -> None:
        # At once where their coordinates follow each other.
        node, n = node or self.layout.root, len(numbers)
        start = node.blocks.get(n)
        if start is not None:
            self.values[start : start + n] = numbers
            return
        children = [self.at(node, "value", number) for number in range(1, n + 1)]
        for number, child in zip(numbers, children, strict=True):
            self.put(number, child)
        firsts = [child.coordinates[0] if child.coordinates else -1 for child in children]
        if n and firsts[0] >= 0 and firsts == list(range(firsts[0], firsts[0] + n)):
            node.blocks[n] = firsts[0]

    def written(self) -> list[float]:
        """All of its numbers: those that are laid out, and what stands behind them."""
        if not self.rest:
            return self.values
        if self.layout.full:
            return self.values + others([(node.entry(part), value) for node, part, value in self.rest])
        for node, part, value in self.rest:
            entry = node.entry(part)
            code = entry.code
            if code not in self.unplaced and len(self.unplaced) < LABELS:
                self.unplaced[code] = entry
            self.values += (code, value)
        return self.values

    @property
    def count(self) -> int:
        """How many entries the outcome has."""
        return sum(self._parts.values())


def keyed_row(value: Any, row: KeyedRow, attributes: Sequence[str] = ()) -> None:
    """Write an outcome into an empty row; `attributes`: those of which it is the value, or of several the values.

    Raises as `row.row_of`.
    """
    if attributes:
        for name, item in zip(attributes, value if len(attributes) > 1 else (value,), strict=True):
            row.add(item, row.at(None, "attribute", name))
    else:
        row.add(value)


def others(entries: Sequence[tuple[Entry, float]]) -> list[float]:
    """What stands behind a full layout for entries that it lacks: how many there are, and a code of all of them."""
    return [float(len(entries)), symbol("entries", repr([(entry.path, entry.part, value) for entry, value in entries]))]


def settled(rows: Rows, base: RowLayout, layout: RowLayout, unplaced: Mapping[float, Entry]) -> tuple[Rows, RowLayout]:
    """Give the entries behind a layout coordinates of their own, as far as there is room.

    Parameters
    ----------
    rows
        Rows of shape (2, n, any width) that `base` laid out.
    layout
        What `base` has become since: the same with further entries, perhaps.
    unplaced
        Entries by their codes.

    Returns
    -------
    The rows laid out by the new layout, and that layout. Both follow from the rows and the layouts alone.
    """
    start = len(base.entries)
    if base.full or rows.shape[2] <= start:
        return rows, layout
    codes, values = rows[:, :, start::2], rows[:, :, start + 1 :: 2]
    codes = codes[:, :, : values.shape[2]]
    present = np.nonzero(~np.isnan(codes))
    kinds, first, numbers = np.unique(codes[present], return_index=True, return_inverse=True)
    known = [unplaced.get(code) for code in kinds.tolist()]
    longest = int(np.count_nonzero(~np.isnan(codes), axis=2).max(initial=0)) + start
    new = layout.extended([entry for k in np.argsort(first) if (entry := known[k]) is not None], max(MOST, 2 * longest))
    result = np.full((2, rows.shape[1], new.width), np.nan)
    result[:, :, :start] = rows[:, :, :start]
    coordinates = [None if entry is None else new.coordinate(entry) for entry in known]
    at = np.array([-1 if c is None else c for c in coordinates], np.int64)[numbers]
    sides, runs, present_values = present[0], present[1], values[present]
    inside = at >= 0
    result[sides[inside], runs[inside], at[inside]] = present_values[inside]
    if new.full:
        outside: dict[tuple[int, int], list[tuple[Entry, float]]] = {}
        for k in np.flatnonzero(~inside):
            entry = known[numbers[k]] or Entry((), -1, "")  # of more kinds than are kept
            outside.setdefault((int(sides[k]), int(runs[k])), []).append((entry, float(present_values[k])))
        for (side, run), entries in outside.items():
            result[side, run, len(new.entries) :] = others(entries)
    return result, new


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatShape:
    """What outcomes that are written flat have in common: the name of each entry, and which are lengths of lists.

    `lengths`: coordinates of lengths, and the entries there.
    """

    names: tuple[str, ...]
    lengths: tuple[tuple[int, float], ...]

    def fits(self, rows: Rows) -> bool:
        """Whether all outcomes have it, as far as rows of shape (2, n, any width) go."""
        width, size = rows.shape[2], len(self.names)
        same = all(bool((rows[:, :, c] == entry).all()) for c, entry in self.lengths if c < width)
        full = width < size or not np.isnan(rows[:, :, size - 1]).any()
        return same and full and (width <= size or bool(np.isnan(rows[:, :, size]).all()))


class FlatRow(Row):
    """A row by position that keeps the names of its entries, as a keyed row has them."""

    __slots__ = ("_last", "lengths", "names")

    def __init__(self, labels: dict[float, str], dates: dict[Place, str] | None = None) -> None:
        super().__init__(labels=labels, dates={} if dates is None else dates)
        self.names: list[str] = []
        self.lengths: list[tuple[int, float]] = []
        self._last: Node | None = None

    @property
    def shape(self) -> FlatShape:
        """What other outcomes may have in common with this one."""
        return FlatShape(names=tuple(self.names), lengths=tuple(self.lengths))

    @override
    def put(self, entry: float, node: Node | None, label: str | None = None) -> None:
        super().put(entry, node, label)
        node = node or ROOT.root
        self.names.append(node.entry(1 if node is self._last else 0).name)
        self._last = node

    @override
    def at(self, node: Node | None, word: str, name: object) -> Node:
        self.structured = True
        return self._child(node, word, name)

    @staticmethod
    def _child(node: Node | None, word: str, name: object) -> Node:
        return Node((), node_name("" if node is None else node.name, word, name))

    @override
    def length(self, length: int, node: Node | None, what: str = "values") -> None:
        self.structured = True
        self.lengths.append((len(self.entries), nested(length)))
        self.put(nested(length), node)

    @override
    def extend(self, values: Iterable[object], node: Node | None, word: str = "value") -> None:
        for number, value in enumerate(values, 1):
            self.add(value, self._child(node, word, number))

    @override
    def block(self, numbers: list[float], node: Node | None) -> None:
        for number, entry in enumerate(numbers, 1):
            self.put(entry, self._child(node, "value", number))


def flat_names(width: int) -> dict[int, str]:
    """Names of the entries of outcomes that are written flat: by position, with lengths before lists."""
    return {c: f"entry {c + 1} of the flat outcome" for c in range(width)}
