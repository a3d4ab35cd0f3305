"""Outcomes with keys as rows by key: which coordinate holds which entry, the same for every outcome of a mechanism.

An *entry* is a number at a place of an outcome: under a key, a column and an index label, a field, a position. A
`RowLayout` gives entries their coordinates and never moves them; it is fixed before the runs whose rows it lays out, so
that a row follows from the outcome alone, on both sides and in every process. An entry that an outcome lacks is NaN.
Entries that a layout lacks stand behind it, in a form that is the same everywhere:

- while it grows, a code of each and its value, by which `settled` gives them coordinates once the runs are done;
- once it is full (keys that are random would fill any memory), their number, and one code for all of them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.codec import whole_below
from dpwitness.events.encoding import FALSE, NEGATIVE_ZERO, TRUE, symbol
from dpwitness.mechanisms.outcomes import LABELS, Row, key_codes, said

Rows = NDArray[np.float64]
#: A step from a place of an outcome to one within: a word, and the codes of the key, label or number.
Step = tuple[str, tuple[float, ...]]
Path = tuple[Step, ...]

#: Entries of a layout at most, or twice as many as the largest outcome has.
MOST: Final = 512
#: Flags and negative zeros find what 1 and 0 find in a dict.
_EQUAL: Final = {TRUE: 1.0, FALSE: 0.0, NEGATIVE_ZERO: 0.0}


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


class Place:
    """A place of outcomes: the coordinates of its entries, and the places within that a layout knows."""

    __slots__ = ("blocks", "children", "coordinates", "name", "path")

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.coordinates: list[int] = []
        self.children: dict[tuple[str, type, Any], Place] = {}
        self.blocks: dict[int, int] = {}

    def entry(self, part: int) -> Entry:
        """One of the entries here, by their number."""
        return Entry(self.path, part, self.name if part == 0 else f"{self.name} (part {part + 1})")


class RowLayout:
    """The coordinates of entries: that of `entries[c]` is c. `full`: whether further entries are only counted.

    The first entry is that of the outcome as a whole, where a value or an exception stands that holds nothing else.
    """

    def __init__(self, entries: Sequence[Entry], *, full: bool = False) -> None:
        self.entries, self.full = tuple(entries), full
        self.blank = [math.nan] * len(self.entries)
        self._places: dict[Path, Place] = {(): Place((), ROOT_NAME)}
        self._coordinates = {(entry.path, entry.part): c for c, entry in enumerate(self.entries)}
        for entry, c in zip(self.entries, range(len(self.entries)), strict=True):
            place = self._places.setdefault(entry.path, Place(entry.path, entry.name))
            if len(place.coordinates) == entry.part:
                place.coordinates.append(c)
        self.root = self._places[()]

    def __reduce__(self) -> Any:
        return _rebuilt, (self.entries, self.full)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowLayout) and (self.entries, self.full) == (other.entries, other.full)

    def __hash__(self) -> int:
        return hash((self.entries, self.full))

    def place(self, path: Path) -> Place | None:
        """The place at the end of a path; None where there is no entry."""
        return self._places.get(path)

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
        kept = new[: max(most - len(self.entries), 0)]
        return RowLayout((*self.entries, *kept), full=len(kept) < len(new))


ROOT_NAME: Final = "outcome"
ROOT: Final = RowLayout((Entry((), 0, ROOT_NAME),))


def _rebuilt(entries: tuple[Entry, ...], full: bool) -> RowLayout:
    return RowLayout(entries, full=full)


class KeyedRow(Row):
    """A row that is laid out; `found`: entries behind the layout by their codes, to which new ones are added."""

    __slots__ = ("_fresh", "_parts", "found", "layout", "rest", "values")
    keyed = True

    def __init__(self, layout: RowLayout, labels: dict[float, str], found: dict[float, Entry]) -> None:
        super().__init__(labels=labels)
        self.layout, self.found = layout, found
        self.values = layout.blank.copy()
        self.rest: list[tuple[Place, int, float]] = []
        self._parts: dict[Place, int] = {}
        self._fresh: dict[Path, Place] = {}

    def put(self, entry: float, place: Any, label: str | None = None) -> None:
        """As in `Row`, at the coordinate of the place, or behind the layout."""
        place = place or self.layout.root
        part = self._parts.get(place, 0)
        self._parts[place] = part + 1
        if part < len(place.coordinates):
            self.values[place.coordinates[part]] = entry
        else:
            self.rest.append((place, part, entry))
        if label is not None:
            self.label(entry, label)

    def at(self, place: Any, word: str, name: Any) -> Place:
        """The place within another that a word and a name lead to."""
        place = place or self.layout.root
        found = place.children.get((word, type(name), name))
        return self._child(place, word, name) if found is None else found

    def _child(self, place: Place, word: str, name: Any) -> Place:
        path = (*place.path, (word, tuple(_EQUAL.get(code, code) for code in key_codes(name, self))))
        known = self.layout.place(path)
        if known is None:
            outer = "" if place is self.layout.root or not place.path else place.name
            known = self._fresh.setdefault(path, Place(path, said(outer, word, name)))
        elif not (isinstance(name, float) and math.isnan(name)) and self.layout.place(place.path) is place:
            place.children[word, type(name), name] = known
        return known

    def length(self, length: int, place: Any, what: str = "values") -> None:
        """As in `Row`: a number with a name of its own, for people to count."""
        self.put(float(length), self.at(place, "number of", what))

    def extend(self, values: Any, place: Any, word: str = "value") -> None:
        """As in `Row`."""
        for number, value in enumerate(values, 1):
            self.add(value, self.at(place, word, number))

    def block(self, numbers: list[float], place: Any) -> None:
        """As in `Row`: at once where their coordinates follow each other."""
        place, n = place or self.layout.root, len(numbers)
        start = place.blocks.get(n)
        if start is None:
            places = [self.at(place, "value", number) for number in range(1, n + 1)]
            for number, within in zip(numbers, places, strict=True):
                self.put(number, within)
            ends = [within.coordinates[0] if within.coordinates else -1 for within in places]
            if n and ends[0] >= 0 and ends == list(range(ends[0], ends[0] + n)):
                place.blocks[n] = ends[0]
            return
        self.values[start : start + n] = numbers

    def written(self) -> list[float]:
        """All of its numbers: those that are laid out, and what stands behind them."""
        if not self.rest:
            return self.values
        if self.layout.full:
            return self.values + others([(place.entry(part), entry) for place, part, entry in self.rest])
        for place, part, entry in self.rest:
            made = place.entry(part)
            code = made.code
            if code not in self.found and len(self.found) < LABELS:
                self.found[code] = made
            self.values += (code, entry)
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


def others(found: Sequence[tuple[Entry, float]]) -> list[float]:
    """What stands behind a full layout for entries that it lacks: how many there are, and a code of all of them."""
    return [float(len(found)), symbol("entries", repr([(entry.path, entry.part, value) for entry, value in found]))]


def settled(rows: Rows, base: RowLayout, layout: RowLayout, found: Mapping[float, Entry]) -> tuple[Rows, RowLayout]:
    """Give the entries behind a layout coordinates of their own, as far as there is room.

    Parameters
    ----------
    rows
        Rows of shape (2, n, any width) that `base` laid out.
    layout
        What `base` has become since: the same with further entries, perhaps.
    found
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
    places = np.nonzero(~np.isnan(codes))
    kinds, first, numbers = np.unique(codes[places], return_index=True, return_inverse=True)
    known = [found.get(code) for code in kinds.tolist()]
    longest = int(np.count_nonzero(~np.isnan(codes), axis=2).max(initial=0)) + start
    new = layout.extended([entry for k in np.argsort(first) if (entry := known[k]) is not None], max(MOST, 2 * longest))
    made = np.full((2, rows.shape[1], new.width), np.nan)
    made[:, :, :start] = rows[:, :, :start]
    at = np.array([-1 if entry is None else _or_none(new.coordinate(entry)) for entry in known], np.int64)[numbers]
    held, sides, runs = values[places], places[0], places[1]
    inside = at >= 0
    made[sides[inside], runs[inside], at[inside]] = held[inside]
    if new.full:
        for side, run, entries in _by_run(sides, runs, [known[k] for k in numbers], held, ~inside):
            made[side, run, len(new.entries) :] = others(entries)
    return made, new


def flat_names(width: int) -> dict[int, str]:
    """Names of the entries of outcomes that are written flat: by position, with lengths before lists."""
    return {c: f"entry {c + 1} of the flat outcome" for c in range(width)}


def _or_none(coordinate: int | None) -> int:
    return -1 if coordinate is None else coordinate


def _by_run(
    sides: NDArray[np.intp], runs: NDArray[np.intp], entries: Sequence[Entry | None], values: Rows,
    chosen: NDArray[np.bool_],
) -> Iterator[tuple[int, int, list[tuple[Entry, float]]]]:  # fmt: skip
    """The chosen entries of each run that has any, with their values."""
    together: dict[tuple[int, int], list[tuple[Entry, float]]] = {}
    for k in np.flatnonzero(chosen):
        entry = entries[int(k)] or Entry((), -1, "")  # of more kinds than are kept
        together.setdefault((int(sides[k]), int(runs[k])), []).append((entry, float(values[k])))
    return ((side, run, found) for (side, run), found in together.items())
