"""Events that list their outcomes."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.arrays import Booleans, Integers, Rows
from dpwitness.checks import brief, items, number
from dpwitness.errors import InvalidParameter
from dpwitness.events.counting import row_hashes, rows_equal
from dpwitness.events.encoding import CODE_TEXTS, EXACT_INTEGER_LIMIT, FALSE, TRUE, RowEntry, is_exception
from dpwitness.events.event import (
    LISTED_ITEMS,
    Event,
    Label,
    Noun,
    array_of,
    as_noun,
    code_text,
    join_texts,
    number_text,
    place_text,
    register_event,
    whole_texts,
    widen,
)


@register_event
class OutcomeSet(Event):
    """A list of outcomes, each a row; equal outcomes are equal in every entry, absent entries included.

    `rows` has the shape (k, width) in ascending order and accepts True and False. Raises `InvalidParameter`.
    """

    kind: ClassVar[str] = "outcomes"
    json_keys: ClassVar[tuple[str, ...]] = ("kind", "rows")

    __slots__ = ("_tables", "rows")
    rows: Annotated[Rows, array_of(list[list[RowEntry]])]

    def __init__(self, rows: Sequence[Sequence[float]] | Rows) -> None:
        if isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind in "iuf":
            members = rows.astype(np.float64)
        else:
            members = _fill_rows(rows)
        if not len(members):
            raise InvalidParameter(f"rows={brief(rows)}: an outcome set needs at least one outcome")
        present = np.flatnonzero(~np.isnan(members).all(axis=0))
        members = members[:, : present[-1] + 1 if len(present) else 0] + 0.0  # no negative zeros
        if members.shape[1] and len(members) > 1:
            members = members[np.lexsort(members.T[::-1])]  # ascending: equal sets have equal rows and equal texts
        members.flags.writeable = False
        self.rows = members
        self._tables: dict[int, tuple[Rows, NDArray[np.uint64], Integers]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutcomeSet) and np.array_equal(self.rows, other.rows, equal_nan=True)

    def __hash__(self) -> int:
        return hash(self.rows.tobytes())

    def __repr__(self) -> str:
        return f"OutcomeSet({len(self.rows)} outcomes)"

    @property
    @override
    def width(self) -> int:
        return int(self.rows.shape[1])

    @property
    def complexity(self) -> tuple[int, int]:
        """The complexity (level, size): (0, number of entries) for a single outcome, else (2, number of outcomes)."""
        return (0, self.width) if len(self.rows) == 1 else (2, len(self.rows))

    @override
    def contains(self, rows: Rows) -> Booleans:
        if len(self.rows) > 5:  # five comparisons or fewer take less time than hashes
            return self.places(rows) >= 0
        width = max(rows.shape[1], self.width, 1)
        rows = widen(rows, width)
        hits = np.zeros(len(rows), np.bool_)
        for member in widen(self.rows, width):
            hits |= rows_equal(rows, member)
        return hits

    def places(self, rows: Rows) -> Integers:
        """The index in `self.rows` of each of n outcomes, −1 for an outcome outside the set; shape (n,)."""
        width = max(rows.shape[1], self.width, 1)
        rows = widen(rows, width)
        members, hashes, order = self._table(width)
        wanted = row_hashes(rows)
        near = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
        same = np.flatnonzero(hashes[near] == wanted)
        places = order[near[same]]
        first, second = rows[same], members[places]
        equal = ((first == second) | (np.isnan(first) & np.isnan(second))).all(axis=1)  # hashes may be equal by chance
        found = np.full(len(rows), -1)
        found[same[equal]] = places[equal]
        return found

    def _table(self, width: int) -> tuple[Rows, NDArray[np.uint64], Integers]:
        """The members as rows of `width` columns, the rows' hashes in rising order, and each hash's row index."""
        if width not in self._tables:
            members = widen(self.rows, width)
            hashes = row_hashes(members)
            order = np.argsort(hashes)
            self._tables[width] = members, hashes[order], order
        return self._tables[width]

    def simpler(self) -> Sequence[Event]:
        """Events of one outcome each, for the first eight; empty if the set has a single outcome."""
        if len(self.rows) == 1:
            return ()
        return [OutcomeSet(self.rows[k : k + 1]) for k in range(min(len(self.rows), 8))]

    @override
    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """The outcomes in plain English: ⊥ and ⊤ for flags, and all digits of numbers, which are compared exactly."""
        noun, texts = as_noun(noun), self.texts(noun, label)
        if noun.places:
            return texts[0] if len(self.rows) == 1 else f"one of {len(self.rows)} outcomes: {self._join(texts, ' or ')}"
        if len(self.rows) == 1:
            flags = self._of_flags(noun)
            only = self.rows[0]
            if len(only) == 1 and is_exception(only[0]):
                return texts[0]
            if flags and len(only) > 1 and not np.isnan(only).any() and only[-1] >= 1 and (only[:-1] < 0.5).all():
                return f"{noun}s {texts[0][:-1]} then ⊤"
            return f"{noun}s {texts[0]}" if len(only) > 1 and not noun.single else f"{noun} {texts[0]}"
        return f"one of {len(self.rows)} outcomes: {self._join(texts, ', ')}"

    def _join(self, texts: Sequence[str], between: str) -> str:
        """The first texts, as many as fit in 70 characters, or one text; "…" if `self.rows` has further outcomes."""
        ends = accumulate(len(text) + len(between) for text in texts)
        first = texts[: max(1, sum(end <= 70 for end in ends))]
        return between.join([*first, *(["…"] if len(first) < len(self.rows) else [])])

    def texts(self, noun: str = "value", label: Label | None = None) -> list[str]:
        """The first `LISTED_ITEMS` outcomes, each in plain English."""
        noun, shown = as_noun(noun), self.rows[:LISTED_ITEMS]
        if noun.places:
            return [_keyed_text(row, noun, label) for row in shown]
        flags = self._of_flags(noun)
        return [_outcome_text(row, flags, noun, label) for row in shown]

    def _of_flags(self, noun: Noun) -> bool:
        # 0 and 1 are numbers unless the noun says that they are answers.
        signs = (0, 1, FALSE, TRUE) if noun.flags else (FALSE, TRUE)
        return bool(np.all(np.isnan(self.rows) | np.isin(self.rows, signs)))


def _fill_rows(rows: Sequence[Sequence[float]] | Rows) -> Rows:
    """Rows of any lengths as an array (k, longest length), flags encoded. Raises `InvalidParameter`."""
    listed = [items("a row of an outcome set", row) for row in items("rows", rows)]
    members = np.full((len(listed), max(map(len, listed), default=0)), np.nan)
    for i, row in enumerate(listed):
        members[i, : len(row)] = [_entry(entry) for entry in row]
    return members


def _entry(value: object) -> float:
    if isinstance(value, bool | np.bool_):
        return TRUE if value else FALSE
    return number("an entry of an outcome set", value)


def _outcome_text(row: Rows, flags: bool, noun: Noun, label: Label | None) -> str:
    present = np.flatnonzero(~np.isnan(row))
    if not len(present):
        return "nothing"
    entries = row[: present[-1] + 1]
    if flags:
        return "".join("·" if np.isnan(entry) else "⊤" if entry >= 1 else "⊥" for entry in entries)
    texts = [*_texts(entries, noun, label).values()]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _keyed_text(row: Rows, noun: Noun, label: Label | None) -> str:
    """The text of an outcome with keys: every present entry, after "exactly" unless entry 0 alone is present."""
    texts = {c: text for c, text in _texts(row, noun, label).items() if not np.isnan(row[c])}
    if [*texts] == [0]:
        return texts[0] if is_exception(row[0]) else f"{place_text(0, noun)} {texts[0]}"
    return f"exactly {join_texts([f'{place_text(c, noun)} {text}' for c, text in texts.items()]) or 'nothing'}"


def _texts(row: Rows, noun: Noun, label: Label | None) -> dict[int, str]:
    """The texts of the values of an outcome, by the coordinates of their first entries."""
    entries = row.tolist()
    whole = whole_texts(entries, noun, label)
    return {
        c: whole.get(c) or ("·" if math.isnan(entry) else _entry_text(c, entry, noun, label))
        for c, entry in enumerate(entries)
        if whole.get(c, "") is not None
    }


def _entry_text(coordinate: int, value: float, noun: Noun, label: Label | None) -> str:
    """The exact text of one entry."""
    return code_text(coordinate, value, noun, label) or _exact_text(value)


def _exact_text(value: float) -> str:
    """A number with all its digits; a special value by its name."""
    plain = abs(value) < EXACT_INTEGER_LIMIT and value not in CODE_TEXTS
    return repr(value).removesuffix(".0").replace("-", "−") if plain else number_text(value)
