"""The texts of a pair of inputs, one line each; the second line says how D′ differs from D."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from pprint import pformat
from typing import Final, NamedTuple

import numpy as np

from dpwitness.checks import ADDRESS, as_text
from dpwitness.frames import frames_of, is_series
from dpwitness.neighbours.inputs import Data, input_key, shown

#: The largest number of changes that a text lists, so that the text stays on one line.
MOST_CHANGES: Final = 6
#: The largest number of characters of an input that is shown whole, and of a record in a text.
SHOWN_CHARACTERS: Final = 160


def both(data: Data, neighbour: Data) -> tuple[str, str]:
    """Two inputs as one line each; the lines differ if the inputs do. Short inputs are shown whole.

    For longer inputs the second line is the difference from the first input, D.
    """
    first, second = _whole(data), _whole(neighbour)
    if first is not None and second is not None and first != second:
        return first, second
    return summary(data), difference(data, neighbour)


def summary(data: Data) -> str:
    """An input on one line, a long array by its shape and its first entries."""
    if (whole := _whole(data)) is not None:
        return whole
    if isinstance(data, np.ndarray) and data.ndim:
        return f"{'×'.join(map(str, data.shape))} values, [{', '.join(map(as_text, data.ravel()[:6].tolist()))}, …]"
    return shown(data)


def difference(data: Data, neighbour: Data) -> str:
    """The difference of an input from D, on one line that differs from every text of D."""
    if type(data) is not type(neighbour):
        return f"{summary(neighbour)} ({_kind(neighbour)}), where D is {_kind(data)}"
    if isinstance(data, np.ndarray) and (data.dtype, data.shape) == (neighbour.dtype, neighbour.shape):
        places = _differing(data, neighbour) if data.ndim and not data.dtype.hasobject else []
        lines = [f"entry {', '.join(str(k + 1) for k in p)}: {data[p]} → {neighbour[p]}" for p in places[:MOST_CHANGES]]
        if places:
            return f"the same but for {_listed(lines, len(places))}"
    first, second = _dataset(data), _dataset(neighbour)
    if first is None or second is None:
        texts = (ADDRESS.sub("", pformat(side, sort_dicts=False)) for side in (data, neighbour))
        before, after = ([line.strip() for line in text.splitlines()] for text in texts)
        if before != after:
            return f"D {_changes(before, after, 'line')}"
    elif first.layout != second.layout:
        both_layouts = (first.layout, second.layout), (second.layout, first.layout)
        old, new = ("; ".join([line for line in own if line not in other] or own) for own, other in both_layouts)
        return f"{second.size}, {new}, where D has {old}"
    elif first.texts != second.texts:
        return f"{second.size}: D {_changes(first.texts, second.texts, second.word)}"
    return "the same as D" if input_key(data) == input_key(neighbour) else f"another {type(data).__name__} than D"


def _whole(data: Data) -> str | None:
    """The text of a short input; None for a long input, a frame, or an array of objects."""
    long_array = isinstance(data, np.ndarray) and (data.size > SHOWN_CHARACTERS or data.dtype.kind not in "biuf")
    if long_array or frames_of(data) is not None:
        return None
    text = as_text(data.tolist() if isinstance(data, np.ndarray) else data)
    return text if len(text) <= SHOWN_CHARACTERS and "\n" not in text else None


def _kind(value: object) -> str:
    """The class of a value, with its length or shape."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    name = type(value).__name__
    return f"{name} of {len(value)}" if hasattr(value, "__len__") else name


def _differing(data: Data, other: Data) -> list[tuple[int, ...]]:
    """The places in which two arrays of one shape and type differ; NaN is equal to NaN, and −0.0 is not 0.0."""
    differs = (data != other) & ((data == data) | (other == other))
    if data.dtype.kind == "f":
        differs |= (data == 0) & (np.signbit(data) != np.signbit(other))
    return [tuple(place) for place in np.argwhere(differs).tolist()]


class _Dataset(NamedTuple):
    """The layout of a dataset in lines, and one line for each record."""

    layout: list[str]
    texts: list[str]
    word: str  # the noun for a record

    @property
    def size(self) -> str:
        """The number of records, as text."""
        return f"{len(self.texts)} {self.word}{'' if len(self.texts) == 1 else 's'}"


def _dataset(data: Data) -> _Dataset | None:
    """The lines of an array, a list, a table, or columns of one length; None for any other object."""
    layout: list[str] = []
    labelled = type(data) is tuple and len(data) == 2 and isinstance(data[0], np.ndarray)
    columns = dict(zip(("features", "label"), data, strict=True)) if labelled else data
    records: Sequence[Data]
    if isinstance(data, np.ndarray) and data.ndim:
        layout, records, word = [f"type {data.dtype}", f"shape {data.shape[1:]}"], data.tolist(), "value"
    elif frames := frames_of(frame := data.to_frame() if is_series(data) else data):
        layout, records, word = [f"{what} {text}" for what, text in frames.schema(frame).items()], _rows(data), "row"
    elif type(columns) is dict and columns and _are_columns([*columns.values()]):
        layout = [f"{name!r} of {getattr(column, 'dtype', 'list')}" for name, column in columns.items()]
        rows = zip(*(x.tolist() if isinstance(x, np.ndarray) else x for x in columns.values()), strict=True)
        records, word = [dict(zip(columns, row, strict=True)) for row in rows], "record"
    elif isinstance(data, list | tuple):
        records, word = data, "record" if any(isinstance(one, dict | list | tuple) for one in data[:1]) else "value"
    else:
        return None
    return _Dataset(layout, list(map(as_text, records)), word)


def _are_columns(columns: Sequence[Data]) -> bool:
    lists = all(isinstance(one, list) or (isinstance(one, np.ndarray) and one.ndim) for one in columns)
    return lists and len(set(map(len, columns))) == 1


def _rows(data: Data) -> list[Data]:
    """The rows of a table, with their labels unless the labels only count the rows."""
    frames = frames_of(data)
    rows: list[Data] = data.tolist() if frames is None else [*frames.records(data)]
    labels = frames.labels(data) if frames is not None else None if hasattr(data.index, "step") else data.index
    return rows if labels is None else [{label: row} for label, row in zip(labels, rows, strict=True)]


def _changes(first: Sequence[str], second: Sequence[str], word: str) -> str:
    """The text of the removed, added and replaced lines; `word`: the noun for a line."""
    # Equal ends are cut off first: the time of SequenceMatcher grows with the square of the number of equal lines.
    head = _common(first, second)
    tail = _common(first[head:][::-1], second[head:][::-1])
    matched = SequenceMatcher(None, first[head : len(first) - tail], second[head : len(second) - tail])
    texts = []
    for tag, *places in matched.get_opcodes():
        i, j, k, n = (head + place for place in places)
        if tag == "replace" and j - i == n - k:
            texts += [f"but for {word} {p + 1}: {_change(first[p], second[k + p - i])}" for p in range(i, j)]
            continue
        texts += [f"without {_numbered(first, i, j, word)}"] if i < j and tag != "equal" else []
        texts += [f"with {_numbered(second, k, n, word)}"] if k < n and tag != "equal" else []
    return _listed(texts, len(texts))


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the common beginning of two texts, or of two lists of lines."""
    pairs = zip(first, second, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _change(before: str, after: str) -> str:
    """The change of a text; of long texts only the part in which they begin to differ."""
    long = max(len(before), len(after)) > SHOWN_CHARACTERS
    start = max(_common(before, after) - SHOWN_CHARACTERS // 2, 0) if long else 0
    return " → ".join(f"{'…' if start else ''}{text[start:]:.{SHOWN_CHARACTERS}}" for text in (before, after))


def _numbered(lines: Sequence[str], start: int, end: int, word: str) -> str:
    """Up to three consecutive lines, with the numbers of all of them from 1."""
    numbers = f"{word} {end}" if end == start + 1 else f"{word}s {start + 1} to {end}"
    texts = [f"{line:.{SHOWN_CHARACTERS}}" for line in lines[start : min(end, start + 3)]]
    return f"{numbers}: {', '.join(texts)}{', …' if end > start + 3 else ''}"


def _listed(texts: Sequence[str], count: int) -> str:
    """The first texts, and the number of further changes; `count`: the number of all changes."""
    shown = texts[:MOST_CHANGES]
    return "; ".join(shown) + (f"; and {count - len(shown)} more" if count > len(shown) else "")
