"""Texts that say how one input differs from D."""

import datetime
import math
import numbers
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from dpwitness.checks import brief
from dpwitness.frames import PANDAS, Frames, dtype_text, frames_of
from dpwitness.neighbours.inputs import Data, shown

#: Differing entries that are listed.
LISTED: Final = 12
#: Letters of a text that is shown whole.
WHOLE: Final = 60


class Labelled(NamedTuple):
    """A record of a pair (X, y): a row of X, and its label."""

    features: list[Data]
    label: Data


def both(data: Data, neighbour: Data, unit: str | int | None = None) -> tuple[str, str]:
    """Two inputs on a line each, which differ where the inputs do: both whole where they are short enough.

    Else the second line says what differs from the first input, D. `unit`: the field that says whose a record is.
    """
    first, second = _whole(data), _whole(neighbour)
    if first is not None and second is not None and first != second:
        return first, second
    text = None if unit is None or same(data, neighbour) else _of_units(data, neighbour, unit)
    return summary(data), text or difference(data, neighbour)


def summary(data: Data) -> str:
    """An input on one line, of a long one its length and the first entries."""
    whole = _whole(data)
    if whole is not None:
        return whole
    if isinstance(data, np.ndarray) and data.ndim:
        return f"{'×'.join(map(str, data.shape))} values, {_first_entries(data)}"
    if isinstance(data, list) and all(type(item) in (int, float, bool) for item in data):
        return f"{len(data)} values, {_first_entries(np.array(data, object))}"
    if (labelled := _labelled(data)) is not None and data[0].size > LISTED:
        return f"{len(labelled)} records, the first: {_item(labelled[0])}"
    if isinstance(data, str | bytes):
        return f"{len(data)} {'characters' if isinstance(data, str) else 'bytes'}, {data[:60]!r}…"
    return shown(data)


def difference(data: Data, neighbour: Data) -> str:
    """What an input has other than D; never the same text as that of D."""
    if same(data, neighbour):
        return "the same as D"
    if type(data) is not type(neighbour):
        return f"{summary(neighbour)} ({_kind(neighbour)}), where D is {_kind(data)}"
    text: str | None = None
    if isinstance(data, np.ndarray) and data.ndim:
        text = _of_arrays(data, neighbour)
    elif (
        (records := _labelled(data)) is not None
        and (others := _labelled(neighbour)) is not None
        and _dtypes(data) == _dtypes(neighbour)
    ):
        text = _of_items(records, others, "record")
    elif isinstance(data, list | tuple | str | bytes):
        text = _of_items(data, neighbour, _word(data or neighbour))
    elif isinstance(data, dict):
        text = _of_dicts(data, neighbour)
    elif isinstance(data, set | frozenset):
        text = _of_sets(data, neighbour)
    elif frames_of(data) is not None or (hasattr(data, "index") and hasattr(data, "iloc")):
        text = _of_tables(data, neighbour)
    if text is not None:
        return text
    before, after = _plain(data), _plain(neighbour)
    return after if before != after else f"another {type(neighbour).__name__} than D: {after}"


def same(data: Data, other: Data) -> bool:
    """Whether two values look the same, also in kind, order, signs of zeros and NaN."""
    if data is other:
        return True
    if type(data) is not type(other):
        return False
    if isinstance(data, float | np.floating):
        if data != data or other != other:
            return bool(data != data and other != other)
        return bool(data == other and math.copysign(1, data) == math.copysign(1, other))
    if isinstance(data, list | tuple):
        return len(data) == len(other) and all(map(same, data, other))
    if isinstance(data, dict):
        return len(data) == len(other) and all(map(same, data.items(), other.items()))
    if isinstance(data, np.ndarray):
        if data.dtype != other.dtype or data.shape != other.shape:
            return False
        return not _differing(data, other) if data.ndim else same(data[()], other[()])
    # A table, in which 1 and 1.0 are of other dtypes.
    if frames_of(data) is not None or (hasattr(data, "equals") and hasattr(data, "index")):
        return _of_tables(data, other) is None
    try:
        return bool(data == other)
    except (TypeError, ValueError):
        return False


def _kind(value: object) -> str:
    """What a value is, with its length or shape."""
    name = type(value).__name__
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"{name} of {len(value)}" if hasattr(value, "__len__") else name


def _whole(data: Data) -> str | None:
    """An input that is short enough to be shown whole."""
    if isinstance(data, np.ndarray):
        return str(data.tolist()) if data.size <= LISTED and data.dtype.kind in "biuf" else None
    try:
        return repr(data) if _leaves(data) <= LISTED else None
    except ValueError:  # an integer of too many digits
        return None


def _leaves(data: Data) -> int:
    """How many values containers hold; more than are shown whole for what is no plain value, and for long texts."""
    if isinstance(data, str | bytes):
        return 1 if len(data) <= WHOLE else LISTED + 1
    if isinstance(data, dict | list | tuple | set | frozenset):
        if len(data) > LISTED:
            return len(data)
        if isinstance(data, dict):
            return sum(map(_leaves, data)) // 2 + sum(map(_leaves, data.values()))
        return sum(map(_leaves, data))
    plain = data is None or isinstance(data, numbers.Number | datetime.date | datetime.time | datetime.timedelta)
    return 1 if plain else LISTED + 1


def _plain(value: object) -> str:
    """A value on one line."""
    if isinstance(value, Labelled):
        return f"features {_first_entries(np.array(value.features, object))}, label {_item(value.label)}"
    return shown(_scalar(value)) if not isinstance(value, np.ndarray) else _first_entries(value)


def _item(value: object) -> str:
    """A value on one line; a number with as many digits as it takes: two that differ must not look the same."""
    if not isinstance(value, int | float):
        return _plain(value)
    rounded = f"{value:g}" if type(value) is float else ""
    exact = rounded and float(rounded) == value and (value != 0 or math.copysign(1, value) > 0)
    return rounded if exact else repr(value)


def _scalar(value: Data) -> Data:
    """A number of numpy's as one of Python's, unless it would lose digits."""
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.longdouble) else value


def _first_entries(data: Data) -> str:
    values = [_item(value) if isinstance(value, float) else repr(value) for value in data.ravel()[:6].tolist()]
    more = ", …" if data.size > 6 else ""
    return f"[{', '.join(values)}{more}]{'' if data.ndim < 2 else f' of shape {data.shape}'}"


def _change(before: Data, after: Data) -> str:
    """A value and what it has become."""
    if type(before) is type(after) and isinstance(before, dict) and list(before) == list(after):
        return _of_dicts(before, after)
    if isinstance(before, Labelled) and isinstance(after, Labelled):
        fields = zip(("features", "label"), before, after, strict=True)
        return ", ".join(f"{name} {_change(old, new)}" for name, old, new in fields if not same(old, new))
    first, second = _item(before), _item(after)
    if first != second:
        return f"{first} → {second}"
    if type(before) is not type(after):
        return f"{first} ({type(before).__name__}) → {second} ({type(after).__name__})"
    return difference(before, after)


def _first_of(texts: Sequence[str]) -> str:
    """The first of some texts, and how many more there are."""
    return ", ".join(texts[:LISTED]) + (f" and {len(texts) - LISTED} more" if len(texts) > LISTED else "")


def _word(items: Sequence[Data]) -> str:
    """What the items of a sequence are called."""
    if isinstance(items, str | bytes):
        return "character" if isinstance(items, str) else "byte"
    return "record" if any(isinstance(item, dict | tuple | list) for item in items[:3]) else "value"


def _of_items(data: Sequence[Data], other: Sequence[Data], word: str) -> str:
    """What items there are in place of others, from where sequences begin to differ to where they end to."""
    n, m = len(data), len(other)
    many = f"{m} {word}{'' if m == 1 else 's'}"
    start = next((k for k in range(min(n, m)) if not same(data[k], other[k])), min(n, m))
    ends = next((k for k in range(min(n, m) - start) if not same(data[n - 1 - k], other[m - 1 - k])), min(n, m) - start)
    if ends == m - start:
        return f"{many}: D without {_numbered(data[start : n - ends], start, word)}"
    if ends == n - start:
        added = _numbered(other[start : m - ends], start, word)
        return f"{many}: D with {'one' if m - n == 1 else m - n} more, {added}"
    first = _change(data[start], other[start])
    if n != m:
        return f"{many}, where D has {n}: the first that differs is {word} {start + 1}: {first}"
    places = [k for k in range(start, n - ends) if not same(data[k], other[k])]
    if len(places) > 2 and Counter(map(repr, data)) == Counter(map(repr, other)):
        return f"{many}: those of D in another order, from {word} {start + 1} on: {first}"
    return f"{many}: D but for {_first_of([f'{word} {k + 1}: {_change(data[k], other[k])}' for k in places])}"


def _of_units(data: Data, other: Data, unit: str | int) -> str | None:
    """The records of a unit that are gone, new or others; None where more differs, or these are no records of units."""
    sides = [_records(side) for side in (data, other)]
    try:
        owners = [[repr(_scalar(record[unit])) for record in side] for side in sides]
    except (KeyError, IndexError, TypeError):
        return None
    gone, new = ([k for k in dict.fromkeys(owners[i]) if k not in set(owners[1 - i])] for i in (0, 1))

    def split(units: Sequence[str], *, those: bool = True) -> list[list[Data]]:
        """Of each side the records of these units, or all others."""
        both = zip(sides, owners, strict=True)
        return [[r for r, owner in zip(*side, strict=True) if (owner in units) is those] for side in both]

    if not gone and not new:
        gone = new = [unit for unit in dict.fromkeys(owners[0]) if not same(*split([unit]))]
        if not gone:
            return None
    if len(gone) > 1 or len(new) > 1 or not same(*split([*gone, *new], those=False)):
        return None
    own = split([*gone, *new])
    tabular = frames_of(data) is not None or hasattr(data, "iloc") or isinstance(data, np.ndarray)
    word = "row" if tabular else "record"
    name = unit if isinstance(unit, str) else f"field {unit + 1}"

    def of(side: int, owner: list[str]) -> str:
        count = len(own[side])
        return f"the {f'{count} {word}s' if count > 1 else word} of {name} {owner[0]}"

    many = f"{len(sides[1])} {word}{'' if len(sides[1]) == 1 else 's'}"
    listed = ", ".join(map(_item, own[1 if new else 0][:3])) + (", …" if len(own[1 if new else 0]) > 3 else "")
    if not new:
        return f"{many}: D without {of(0, gone)}: {listed}"
    instead = f" in place of {of(0, gone)}" if gone else ""
    return f"{many}: D with {of(1, new)}{instead}: {listed}"


def _labelled(data: Data) -> list[Labelled] | None:
    """The records of a pair (X, y): a tuple of an array of rows and as many labels; None where it is none."""
    if type(data) is not tuple or len(data) != 2:
        return None
    features, labels = data
    if not isinstance(features, np.ndarray) or features.ndim != 2 or not isinstance(labels, np.ndarray | list):
        return None
    if np.ndim(labels) != 1 or len(labels) != len(features):
        return None
    values = labels.tolist() if isinstance(labels, np.ndarray) else labels
    return [Labelled(row, label) for row, label in zip(features.tolist(), values, strict=True)]


def _dtypes(data: Data) -> list[object]:
    """What a pair (X, y) is made of: the types of its arrays, None of a list."""
    return [getattr(side, "dtype", None) for side in data]


def _records(data: Data) -> list[Data]:
    """The records of a dataset; none of what is not one."""
    frames = frames_of(data)
    if frames is not None:
        return _rows(data, labels=False) if frames is PANDAS else frames.records(data)
    if isinstance(data, dict):
        columns = [list(column) for column in data.values()]
        return [dict(zip(data, row, strict=True)) for row in zip(*columns, strict=False)]
    return data.tolist() if isinstance(data, np.ndarray) else data if isinstance(data, list) else []


def _numbered(items: Sequence[Data], start: int, word: str) -> str:
    """Some items that follow each other, with their numbers from 1."""
    text = f"{items[:60]!r}" if isinstance(items, str | bytes) else ", ".join(map(_item, items[:3]))
    if len(items) == 1:
        return f"{word} {start + 1}: {text}"
    return f"{word}s {start + 1} to {start + len(items)}: {text}{', …' if len(items) > 3 else ''}"


def _of_arrays(data: Data, other: Data) -> str:
    if data.dtype != other.dtype:
        return f"{summary(other)} of dtype {other.dtype}, where D has {data.dtype}"
    if data.shape != other.shape:
        if data.shape[1:] == other.shape[1:] and other.ndim:
            return _of_items(data.tolist(), other.tolist(), "value" if data.ndim == 1 else "row")
        return f"{summary(other)}, where D has {'×'.join(map(str, data.shape))}"
    texts: list[str] = []
    for place in _differing(data, other):
        counted = ", ".join(str(index + 1) for index in place)
        changed = _change(_scalar(data[place]), _scalar(other[place])) if len(texts) < LISTED else ""
        texts.append(f"entry {counted if len(place) == 1 else f'({counted})'}: {changed}")
    return f"the same but for {_first_of(texts)}"


def _differing(data: Data, other: Data) -> list[tuple[int, ...]]:
    """Where two arrays of one shape and dtype differ."""
    if data.dtype.kind in "biufcSUmM":
        differs = (data != other) & ~((data != data) & (other != other))  # NaN and NaT are the same as themselves
        if data.dtype.kind == "f":
            differs |= (data == 0) & (np.signbit(data) != np.signbit(other))
    else:
        first, second = data.ravel().tolist(), other.ravel().tolist()
        differs = np.array([not same(a, b) for a, b in zip(first, second, strict=True)], bool).reshape(data.shape)
    return [tuple(place) for place in np.argwhere(differs).tolist()]


def _of_dicts(data: dict[Data, Data], other: dict[Data, Data]) -> str:
    """The keys that are gone, those that are new, and those whose values differ."""
    texts = [f"without {brief(key)}: {_item(data[key])}" for key in data if key not in other]
    texts += [f"with {brief(key)}: {_item(other[key])}" for key in other if key not in data]
    common = [key for key in data if key in other and not same(data[key], other[key])]
    texts += [f"{brief(key)}: {_change(data[key], other[key])}" for key in common]
    if texts:
        return _first_of(texts)
    if set(map(repr, data)) == set(map(repr, other)):
        return f"the keys and values of D in another order: {', '.join(map(brief, other))}"
    kinds = [f"key {_change(a, b)}" for a, b in zip(data, other, strict=True) if not same(a, b)]
    return ", ".join(kinds[:LISTED])


def _of_sets(data: Data, other: Data) -> str:
    texts = []
    for word, elements in (("without", data - other), ("with", other - data)):
        if elements:
            texts.append(f"{word} {', '.join(sorted(map(repr, elements))[:LISTED])}")
    return f"{len(other)} elements: D {' and '.join(texts) or 'with elements of another kind'}"


def _of_tables(data: Data, other: Data) -> str | None:
    """How two tables differ, in columns, types, rows or index; None where they do not."""
    frames = frames_of(data)
    if frames is not None and frames is not PANDAS:
        return _of_schemas(frames, data, other)
    frame = hasattr(data, "columns")
    if frame and not same(list(data.columns), list(other.columns)):
        return f"columns {_item(list(other.columns))}, where D has {_item(list(data.columns))}"
    kinds = [list(table.dtypes) if frame else [table.dtype] for table in (data, other)]
    for k, both_kinds in enumerate(zip(*kinds, strict=True)):
        if texts := told_apart(*both_kinds):
            column = f"column {data.columns[k]!r} " if frame else ""
            return f"{len(other)} rows, {column}of dtype {texts[1]:.200}, where D has {texts[0]:.200}"
    if not frame and not same(data.name, other.name):
        return f"named {other.name!r}, where D is named {data.name!r}"
    rows = _rows(data, labels=False), _rows(other, labels=False)
    found = [] if same(*rows) else [_of_items(*rows, "row")]
    index, other_index = _index(data.index), _index(other.index)
    if index != other_index:
        found.append(f"an index of {other_index}, where that of D is of {index}")
    elif texts := told_apart(data.index.dtype, other.index.dtype):
        found.append(f"an index of dtype {texts[1]:.200}, where that of D is of {texts[0]:.200}")
    if not found:
        labels = not _only_counts(data.index)
        rows = _rows(data, labels=labels), _rows(other, labels=labels)
        found = [] if same(*rows) else [_of_items(*rows, "row")]
    if frame and not same(list(data.columns.names), list(other.columns.names)):
        found.append(f"columns named {other.columns.name!r}, where those of D are named {data.columns.name!r}")
    if not same(data.attrs, other.attrs):
        found.append(f"attrs {other.attrs!r:.80}, where D has {data.attrs!r:.80}")
    return "; ".join(found) or None


def told_apart(before: object, after: object) -> tuple[str, str] | None:
    """The shortest texts of two types of pandas that differ; None where the types do not."""
    for text in (str, repr, dtype_text):
        if text(before) != text(after):
            return text(before), text(after)
    return None


def _of_schemas(frames: Frames, data: Data, other: Data) -> str | None:
    """How two frames without an index differ."""
    first, second, rows = frames.schema(data), frames.schema(other), (frames.records(data), frames.records(other))
    for what in {**first, **second}:
        if first.get(what) != second.get(what):
            name = what.replace("the type of column", "column").replace("their ", "")
            return f"{len(rows[1])} rows, {name} of dtype {second.get(what)}, where D has {first.get(what)}"
    return None if same(*rows) else _of_items(*rows, "row")


def _index(index: Data) -> str:
    """The kind of an index, its names and first labels."""
    if _only_counts(index):
        return f"row numbers{f' named {index.name!r}' if index.name is not None else ''}"
    names = "" if not any(name is not None for name in index.names) else f" named {list(index.names)}"
    return f"{type(index).__name__} of {index.dtype}{names}"


def _only_counts(index: Data) -> bool:
    """Whether an index only counts the rows from 0 on."""
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)


def _rows(table: Data, *, labels: bool) -> list[Data]:
    """The rows of a table, with their labels if asked for."""
    if hasattr(table, "columns"):
        names = list(table.columns)
        columns = [table.iloc[:, k].tolist() for k in range(len(names))]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] or [{} for _ in table.index]
    else:
        rows = table.tolist()
    return [{label: row} for label, row in zip(table.index, rows, strict=True)] if labels else rows
