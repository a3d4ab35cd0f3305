"""What tells one input from another, for people: first what differs, with lengths."""

import datetime
import math
import numbers
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dpwitness.checks import brief
from dpwitness.neighbours.inputs import shown

#: Differing entries that are listed.
LISTED: Final = 12
#: Letters of a text that is shown whole.
WHOLE: Final = 60


def both(data: Any, neighbour: Any) -> tuple[str, str]:
    """Two inputs on a line each, which differ where the inputs do: both whole where they are short enough.

    Else the second line says what differs from the first input, D.
    """
    first, second = _whole(data), _whole(neighbour)
    if first is not None and second is not None and first != second:
        return first, second
    return summary(data), difference(data, neighbour)


def summary(data: Any) -> str:
    """An input on one line, of a long one its length and the first entries."""
    whole = _whole(data)
    if whole is not None:
        return whole
    if isinstance(data, np.ndarray) and data.ndim:
        return f"{'×'.join(map(str, data.shape))} values, {_ends(data)}"
    if isinstance(data, list) and all(type(item) in (int, float, bool) for item in data):
        return f"{len(data)} values, {_ends(np.array(data, object))}"
    if isinstance(data, str | bytes):
        return f"{len(data)} {'characters' if isinstance(data, str) else 'bytes'}, {data[:60]!r}…"
    return shown(data)


def difference(data: Any, neighbour: Any) -> str:
    """What an input is, told by what it has other than D; never the same text as that of D."""
    if same(data, neighbour):
        return "the same as D"
    if type(data) is not type(neighbour):
        return f"{summary(neighbour)} ({_kind(neighbour)}), where D is {_kind(data)}"
    compare: Callable[[Any, Any], str | None] | None = None
    if isinstance(data, np.ndarray) and data.ndim:
        compare = _of_arrays
    elif isinstance(data, list | tuple | str | bytes):
        compare = _of_sequences
    elif isinstance(data, dict):
        compare = _of_dicts
    elif isinstance(data, set | frozenset):
        compare = _of_sets
    elif hasattr(data, "index") and hasattr(data, "iloc"):
        compare = _of_tables
    told = None if compare is None else compare(data, neighbour)
    if told is not None:
        return told
    before, after = _plain(data), _plain(neighbour)
    return after if before != after else f"another {type(neighbour).__name__} than D: {after}"


def same(data: Any, other: Any) -> bool:
    """Whether two values are the same to whoever looks at them: in kind, order, signs of zeros and NaN too."""
    if data is other:
        return True
    if type(data) is not type(other):
        return False
    if isinstance(data, float | np.floating):
        return bool(data == other and math.copysign(1, data) == math.copysign(1, other)) or bool(
            data != data and other != other
        )
    if isinstance(data, list | tuple):
        return len(data) == len(other) and all(map(same, data, other))
    if isinstance(data, dict):
        return len(data) == len(other) and all(
            same(a, b) and same(x, y) for (a, x), (b, y) in zip(data.items(), other.items(), strict=True)
        )
    if isinstance(data, np.ndarray):
        if data.dtype != other.dtype or data.shape != other.shape:
            return False
        return not _differing(data, other) if data.ndim else same(data[()], other[()])
    if hasattr(data, "equals") and hasattr(data, "index"):  # a table, in which 1 and 1.0 are of other dtypes
        return _of_tables(data, other) is None
    try:
        return bool(data == other)
    except (TypeError, ValueError):
        return False


def _kind(value: Any) -> str:
    """What a value is, with its length or shape."""
    name = type(value).__name__
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"{name} of {len(value)}" if hasattr(value, "__len__") else name


def _whole(data: Any) -> str | None:
    """An input that is short enough to be shown whole."""
    if isinstance(data, np.ndarray):
        if data.size > LISTED or data.dtype.kind not in "biuf":
            return None
        return str(data.tolist())
    try:
        return repr(data) if _leaves(data) <= LISTED else None
    except (RecursionError, ValueError):  # nested too deeply, or an integer of too many digits
        return None


def _leaves(data: Any) -> int:
    """How many values containers hold; more than are shown whole for what is no plain value, and for long texts."""
    if isinstance(data, dict):
        return sum(map(_leaves, data)) // 2 + sum(map(_leaves, data.values())) if len(data) <= LISTED else len(data)
    if isinstance(data, list | tuple | set | frozenset):
        return sum(map(_leaves, data)) if len(data) <= LISTED else len(data)
    if isinstance(data, str | bytes):
        return 1 if len(data) <= WHOLE else LISTED + 1
    plain = data is None or isinstance(data, numbers.Number | datetime.date | datetime.time | datetime.timedelta)
    return 1 if plain else LISTED + 1


def _plain(value: Any) -> str:
    """A value on one line; a number with all of its digits."""
    return shown(_scalar(value)) if not isinstance(value, np.ndarray) else _ends(value)


def _ends(data: Any) -> str:
    """The first entries of an array."""
    values = data.ravel()[:6].tolist()
    more = ", …" if data.size > 6 else ""
    return f"[{', '.join(map(_number, values))}{more}]{'' if data.ndim < 2 else f' of shape {data.shape}'}"


def _number(value: Any) -> str:
    """A number with as many digits as it takes: two that differ must not look the same."""
    if type(value) is not float:
        return repr(value)
    rounded = f"{value:g}"
    return rounded if float(rounded) == value and (value != 0 or math.copysign(1, value) > 0) else repr(value)


def change(before: Any, after: Any) -> str:
    """A value and what it has become."""
    if type(before) is type(after) and isinstance(before, dict) and list(before) == list(after):
        return _of_dicts(before, after)
    first, second = (
        _number(value) if isinstance(value, int | float) else _plain(value)
        for value in (before, after)
    )  # fmt: skip
    if first == second:
        if type(before) is not type(after):
            return f"{first} ({type(before).__name__}) → {second} ({type(after).__name__})"
        return difference(before, after)
    return f"{first} → {second}"


def _word(items: Sequence[Any]) -> str:
    """What the items of a sequence are called."""
    if isinstance(items, str):
        return "character"
    if isinstance(items, bytes):
        return "byte"
    return "record" if any(isinstance(item, dict | tuple | list) for item in items[:3]) else "value"


def _of_sequences(data: Any, other: Any) -> str:
    return _of_items(data, other, _word(data) if len(data) else _word(other))


def _of_items(data: Sequence[Any], other: Sequence[Any], word: str) -> str:
    """What items there are in place of others, from where sequences begin to differ to where they end to."""
    n, m = len(data), len(other)
    many = f"{m} {word}{'' if m == 1 else 's'}"
    start = next((k for k in range(min(n, m)) if not same(data[k], other[k])), min(n, m))
    ends = next((k for k in range(min(n, m) - start) if not same(data[n - 1 - k], other[m - 1 - k])), min(n, m) - start)
    if ends == m - start:
        return f"{many}: D without {_listed(data[start : n - ends], start, word)}"
    if ends == n - start:
        added = _listed(other[start : m - ends], start, word)
        return f"{many}: D with {'one' if m - n == 1 else m - n} more, {added}"
    if n != m:
        first = f"{word} {start + 1}: {change(data[start], other[start])}"
        return f"{many}, where D has {n}: the first that differs is {first}"
    places = [k for k in range(start, n - ends) if not same(data[k], other[k])]
    if len(places) > 2 and Counter(map(repr, data)) == Counter(map(repr, other)):
        return f"{many}: those of D in another order, from {word} {start + 1} on: {change(data[start], other[start])}"
    listed = ", ".join(f"{word} {k + 1}: {change(data[k], other[k])}" for k in places[:LISTED])
    return f"{many}: D but for {listed}{f' and {len(places) - LISTED} more' if len(places) > LISTED else ''}"


def _listed(items: Sequence[Any], start: int, word: str) -> str:
    """Some items that follow each other, with their numbers from 1."""
    told = ", ".join(map(_item, list(items)[:3])) if not isinstance(items, str | bytes) else f"{items[:60]!r}"
    if len(items) == 1:
        return f"{word} {start + 1}: {told}"
    return f"{word}s {start + 1} to {start + len(items)}: {told}{', …' if len(items) > 3 else ''}"


def _item(value: Any) -> str:
    return _number(value) if isinstance(value, int | float) else _plain(value)


def _of_arrays(data: Any, other: Any) -> str | None:
    if data.dtype != other.dtype:
        return f"{summary(other)} of dtype {other.dtype}, where D has {data.dtype}"
    if data.shape != other.shape:
        if data.shape[1:] == other.shape[1:] and other.ndim:
            word = "value" if data.ndim == 1 else "row"
            return _of_items(data.tolist(), other.tolist(), word)
        return f"{summary(other)}, where D has {'×'.join(map(str, data.shape))}"
    places = _differing(data, other)
    listed = ", ".join(
        f"entry {_place(place)}: {change(_scalar(data[place]), _scalar(other[place]))}" for place in places[:LISTED]
    )
    more = f" and {len(places) - LISTED} more" if len(places) > LISTED else ""
    return f"the same but for {listed}{more}"


def _differing(data: Any, other: Any) -> list[tuple[int, ...]]:
    """Where two arrays of one shape and dtype differ."""
    if data.dtype.kind in "fc":
        bits = np.ascontiguousarray(data).tobytes() != np.ascontiguousarray(other).tobytes()
        if not bits:
            return []
        differs = ~((data == other) | (np.isnan(data) & np.isnan(other)))
        if data.dtype.kind == "f":
            differs |= (data == 0) & (other == 0) & (np.signbit(data) != np.signbit(other))
    elif data.dtype.kind in "biuSUmM":
        differs = data != other
        if data.dtype.kind in "mM":
            differs &= ~(np.isnat(data) & np.isnat(other))
    else:
        first, second = data.ravel().tolist(), other.ravel().tolist()
        differs = np.array([not same(a, b) for a, b in zip(first, second, strict=True)], bool).reshape(data.shape)
    return [tuple(map(int, place)) for place in zip(*np.nonzero(differs), strict=True)]


def _scalar(value: Any) -> Any:
    """A number of numpy's as one of Python's, unless it would lose digits."""
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.longdouble) else value


def _place(place: tuple[int, ...]) -> str:
    """A place counted from 1: 7, or (2, 3) in an array of several dimensions."""
    counted = [str(index + 1) for index in place]
    return counted[0] if len(counted) == 1 else f"({', '.join(counted)})"


def _of_dicts(data: dict[Any, Any], other: dict[Any, Any]) -> str:
    """The keys that are gone, those that are new, and those whose values differ."""
    told = [f"without {brief(key)}: {_item(data[key])}" for key in data if key not in other]
    told += [f"with {brief(key)}: {_item(other[key])}" for key in other if key not in data]
    told += [
        f"{brief(key)}: {change(value, other[key])}"
        for key, value in data.items()
        if key in other and not same(value, other[key])
    ]
    if not told:
        if set(map(repr, data)) == set(map(repr, other)):
            return f"the keys and values of D in another order: {', '.join(map(brief, other))}"
        kinds = [f"key {change(a, b)}" for a, b in zip(data, other, strict=True) if not same(a, b)]
        return ", ".join(kinds[:LISTED])
    more = f" and {len(told) - LISTED} more" if len(told) > LISTED else ""
    return f"{', '.join(told[:LISTED])}{more}"


def _of_sets(data: Any, other: Any) -> str:
    gone, new = (sorted(map(repr, one - another)) for one, another in ((data, other), (other, data)))
    told = [f"without {', '.join(gone[:LISTED])}"] if gone else []
    told += [f"with {', '.join(new[:LISTED])}"] if new else []
    return f"{len(other)} elements: D {' and '.join(told) or 'with elements of another kind'}"


def _of_tables(data: Any, other: Any) -> str | None:
    """How two tables differ, in columns, types, rows or index; None where they do not."""
    frame = hasattr(data, "columns")
    if frame and not same(list(data.columns), list(other.columns)):
        return f"columns {_item(list(other.columns))}, where D has {_item(list(data.columns))}"
    kinds = [list(table.dtypes) if frame else [table.dtype] for table in (data, other)]
    for k, (before, after) in enumerate(zip(*kinds, strict=True)):
        if before != after or str(before) != str(after):
            column = f"column {data.columns[k]!r} " if frame else ""
            first, second = (str(kind) if str(before) != str(after) else repr(kind) for kind in (before, after))
            return f"{len(other)} rows, {column}of dtype {second}, where D has {first}"
    if not frame and not same(data.name, other.name):
        return f"named {other.name!r}, where D is named {data.name!r}"
    indices = [_index(table.index) for table in (data, other)]
    before, after = (_rows(table, frame=frame, labelled=False) for table in (data, other))
    told = [] if same(before, after) else [_of_items(before, after, "row")]
    if indices[0] != indices[1]:
        told.append(f"an index of {indices[1]}, where that of D is of {indices[0]}")
    if told:
        return "; ".join(told)
    before, after = (_rows(table, frame=frame, labelled=not _counts(table.index)) for table in (data, other))
    return None if same(before, after) else _of_items(before, after, "row")


def _index(index: Any) -> str:
    """The kind of an index, its names and first labels."""
    if _counts(index):
        return f"row numbers{f' named {index.name!r}' if index.name is not None else ''}"
    names = "" if not any(name is not None for name in index.names) else f" named {list(index.names)}"
    return f"{type(index).__name__} of {index.dtype}{names}"


def _counts(index: Any) -> bool:
    """Whether an index only counts the rows from 0 on."""
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)


def _rows(table: Any, *, frame: bool, labelled: bool) -> list[Any]:
    """The rows of a table, with their labels where the index does not only count them."""
    labels = list(table.index)
    if not frame:
        values = table.tolist()
        return [{label: value} for label, value in zip(labels, values, strict=True)] if labelled else values
    names = list(table.columns)
    columns = [table.iloc[:, k].tolist() for k in range(len(names))]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] if names else [{} for _ in labels]
    return [{label: row} for label, row in zip(labels, rows, strict=True)] if labelled else rows
