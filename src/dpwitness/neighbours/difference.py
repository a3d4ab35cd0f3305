"""The texts of a pair of inputs, one line each; for long inputs the second line says how D′ differs from D."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from pprint import pformat
from typing import Final

import numpy as np

from dpwitness.checks import ADDRESS, as_text
from dpwitness.frames import frames_of, is_series
from dpwitness.neighbours.inputs import Data, input_key, shown

#: The largest number of changes that a text lists, so that the text stays on one line.
MOST_CHANGES: Final = 6
#: The largest number of characters of an input that is shown whole, and of an entry in a text.
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
    """The difference of `neighbour` from `data`, called D, on one line that differs from every text of D."""
    if type(data) is not type(neighbour):
        return f"{summary(neighbour)} ({type(neighbour).__name__}), where D is a {type(data).__name__}"
    (properties, entries), (others, other_entries) = _parts(data), _parts(neighbour)
    if properties != others:
        new = ([text for text in others if text not in properties] or others)[:MOST_CHANGES]
        old = ([text for text in properties if text not in others] or properties)[:MOST_CHANGES]
        return f"{'; '.join(new)}, where D has {'; '.join(old)}"
    if entries != other_entries:
        return f"D {_changes(entries, other_entries)}"
    return "the same as D" if input_key(data) == input_key(neighbour) else f"another {type(data).__name__} than D"


def _whole(data: Data) -> str | None:
    """The text of a short input; None for a long input, a frame, or an array of objects."""
    long_array = isinstance(data, np.ndarray) and (data.size > SHOWN_CHARACTERS or data.dtype.kind not in "biuf")
    if long_array or frames_of(data) is not None:
        return None
    text = as_text(data.tolist() if isinstance(data, np.ndarray) else data)
    return text if len(text) <= SHOWN_CHARACTERS and "\n" not in text else None


def _parts(data: Data) -> tuple[list[str], list[str]]:
    """The properties of an input besides its entries, and its entries, such as records, as one text each."""
    if isinstance(data, np.ndarray) and data.ndim:
        return [f"type {data.dtype}", f"shape {data.shape[1:]}"], list(
            map(as_text if data.dtype.hasobject else repr, data.tolist())
        )
    frame = data.to_frame() if is_series(data) else data
    if frames := frames_of(frame):
        labels = frames.labels(frame)
        rows = [as_text(row) for row in frames.records(frame)]
        texts = rows if labels is None else [f"{label!r}: {row}" for label, row in zip(labels, rows, strict=True)]
        return [f"{what} {text}" for what, text in frames.schema(frame).items()], texts
    if type(data) is list:
        return [], list(map(as_text, data))
    if type(data) in (dict, tuple):
        properties: list[str] = []
        entries: list[str] = []
        for name, part in data.items() if type(data) is dict else enumerate(data, 1):
            inner = _parts(part) if type(part) in (np.ndarray, list, dict, tuple) else ([], [as_text(part)])
            properties += [f"{name!r} of {type(part).__name__}", *(f"{name!r} of {text}" for text in inner[0])]
            entries += [f"{name!r}: {text}" for text in inner[1]]
        return properties, entries
    return [], [line.strip() for line in ADDRESS.sub("", pformat(data)).splitlines()]


def _changes(first: list[str], second: list[str]) -> str:
    """The text of the removed, added and replaced entries, with their numbers from 1."""
    # Equal ends are cut off first: the time of SequenceMatcher grows with the square of the number of equal lines.
    head = _common(first, second)
    tail = _common(first[head:][::-1], second[head:][::-1])
    matched = SequenceMatcher(None, first[head : len(first) - tail], second[head : len(second) - tail])
    texts = []
    for tag, *places in matched.get_opcodes():
        i, j, k, n = (head + place for place in places)
        if tag == "replace" and j - i == n - k:
            texts += [f"but for entry {p + 1}: {_change(first[p], second[k + p - i])}" for p in range(i, j)]
        elif tag != "equal":
            texts += [f"without {_numbered(first, i, j)}"] if i < j else []
            texts += [f"with {_numbered(second, k, n)}"] if k < n else []
    more = len(texts) - MOST_CHANGES
    return "; ".join(texts[:MOST_CHANGES]) + (f"; and {more} more" if more > 0 else "")


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the common beginning of two texts, or of two lists of texts."""
    pairs = zip(first, second, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _change(before: str, after: str) -> str:
    """The text before and after a change; long texts are cut to the part around their first difference."""
    long = max(len(before), len(after)) > SHOWN_CHARACTERS
    start = max(_common(before, after) - SHOWN_CHARACTERS // 2, 0) if long else 0
    return " → ".join(f"{'…' if start else ''}{text[start:]:.{SHOWN_CHARACTERS}}" for text in (before, after))


def _numbered(lines: list[str], start: int, end: int) -> str:
    """The text of consecutive entries: the numbers of all entries, from 1, and the first three entries."""
    numbers = f"entry {end}" if end == start + 1 else f"entries {start + 1} to {end}"
    texts = [f"{line:.{SHOWN_CHARACTERS}}" for line in lines[start : min(end, start + 3)]]
    return f"{numbers}: {', '.join(texts)}{', …' if end > start + 3 else ''}"
