"""Sets of outcomes: how membership is decided, how each is said in plain English, how each is written as JSON.

An outcome is a row of numbers, NaN where there is no value. Membership kernels take arrays and numbers only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidWitness
from dpwitness.events.encoding import FALSE, NESTED, TEXTS, TRUE, entry_from_json, entry_to_json

__all__ = ["Box", "Event", "Interval", "OutcomeSet", "ScoreThreshold", "event_from_json"]

Rows = NDArray[np.float64]
Label = Callable[[float], str | None]

#: The largest finite number.
LARGEST = float(np.finfo(np.float64).max)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


class Event(Protocol):
    """A set of outcomes."""

    @property
    def width(self) -> int:
        """How many columns decide membership."""

    @property
    def size(self) -> int:
        """How much there is to say of it: the smaller the simpler."""

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows of an (n, any width) array lie in the set; shape (n,)."""

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """The set in plain English; `noun` is what one entry is called, `label` gives the text behind a number."""

    def to_json(self) -> dict[str, Any]:
        """Everything needed to build it again."""


def widen(rows: Rows, width: int) -> Rows:
    """Rows with absent entries appended up to at least the width."""
    if rows.shape[1] >= width:
        return rows
    return np.hstack([rows, np.full((len(rows), width - rows.shape[1]), np.nan)])


def _place(coordinate: int, noun: str) -> str:
    return f"{ORDINALS[coordinate]} {noun}" if coordinate < len(ORDINALS) else f"{noun} {coordinate + 1}"


def _number(value: float) -> str:
    if value <= NESTED and value not in TEXTS and value != -np.inf:
        return f"list of {round((value / NESTED - 1) * 2**32)}"
    return TEXTS.get(value) or f"{value:.4g}".replace("-", "−")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Outcomes whose entry `coordinate` (from 0) is there and lies in [low, high).

    `low` = −inf means no lower end and `high` = +inf no upper end: infinite entries on that side are in it. So
    [+inf, +inf] is the one entry +inf, and [−inf, −`LARGEST`) the one entry −inf.
    """

    coordinate: int
    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        if not (self.coordinate >= 0 and (self.low < self.high or self.low == self.high == np.inf)):
            raise ValueError(f"coordinate={self.coordinate!r}, low={self.low!r}, high={self.high!r}: need low < high")

    @property
    def width(self) -> int:
        """As in `Event`."""
        return self.coordinate + 1

    @property
    def size(self) -> int:
        """As in `Event`."""
        return 2 - (self.low == -np.inf or self.high == np.inf)

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """As in `Event`."""
        if self.coordinate >= rows.shape[1]:
            return np.zeros(len(rows), np.bool_)
        column = rows[:, self.coordinate]
        # Half-open: an atom on a shared edge must count once. NaN compares false: an absent entry is never inside.
        if self.high == np.inf:
            return column >= self.low
        if self.low == -np.inf:
            return column < self.high
        return (column >= self.low) & (column < self.high)

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """As in `Event`."""
        place = _place(self.coordinate, noun)
        if self.low == np.inf:
            return f"{place} ∞"
        if self.low == -np.inf and self.high == -LARGEST:
            return f"{place} −∞"
        if self.low == -np.inf:
            return f"{place} present" if self.high == np.inf else f"{place} below {_number(self.high)}"
        if self.high == np.inf:
            return f"{place} at least {_number(self.low)}"
        return f"{place} from {_number(self.low)} to below {_number(self.high)}"

    def to_json(self) -> dict[str, Any]:
        """As in `Event`; no end is null, the end +inf the text "inf"."""
        return {
            "kind": "interval",
            "coordinate": self.coordinate,
            "low": None if self.low == -np.inf else _written(self.low),
            "high": None if self.high == np.inf else self.high,
        }


@dataclass(frozen=True, slots=True)
class Box:
    """Outcomes in every one of several intervals."""

    sides: tuple[Interval, ...]

    def __post_init__(self) -> None:
        if not self.sides:
            raise ValueError("a box needs at least one side")

    @property
    def width(self) -> int:
        """As in `Event`."""
        return max(side.width for side in self.sides)

    @property
    def size(self) -> int:
        """As in `Event`."""
        return sum(side.size for side in self.sides)

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """As in `Event`."""
        inside = self.sides[0].contains(rows)
        for side in self.sides[1:]:
            inside &= side.contains(rows)
        return inside

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """As in `Event`."""
        return " and ".join(side.describe(noun, label) for side in self.sides)

    def to_json(self) -> dict[str, Any]:
        """As in `Event`."""
        return {"kind": "box", "sides": [side.to_json() for side in self.sides]}


#: Up to so many outcomes of a set are compared one by one.
COMPARED = 5


class OutcomeSet:
    """Finitely many outcomes, each a row; equal means equal in every entry, absent ones included."""

    __slots__ = ("_tables", "rows")

    def __init__(self, rows: Sequence[Sequence[float]] | Rows) -> None:
        width = max((len(row) for row in rows), default=0)
        members = np.full((len(rows), width), np.nan)
        for i, row in enumerate(rows):
            members[i, : len(row)] = [
                float(e) if not isinstance(e, bool | np.bool_) else TRUE if e else FALSE for e in row
            ]
        if not len(members):
            raise ValueError("an outcome set needs at least one outcome")
        used = int(np.max(np.sum(np.cumsum(~np.isnan(members[:, ::-1]), axis=1) > 0, axis=1), initial=0))
        members = members[:, :used] + 0.0  # no negative zeros
        if used:
            members = members[np.lexsort(members.T[::-1])]  # one order, for comparing and for people
        members.flags.writeable = False
        self.rows: Rows = members
        self._tables: dict[int, tuple[Rows, NDArray[np.int64]]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutcomeSet) and np.array_equal(self.rows, other.rows, equal_nan=True)

    def __hash__(self) -> int:
        return hash(self.rows.tobytes())

    def __repr__(self) -> str:
        return f"OutcomeSet({len(self.rows)} outcomes)"

    @property
    def width(self) -> int:
        """As in `Event`."""
        return int(self.rows.shape[1])

    @property
    def size(self) -> int:
        """As in `Event`."""
        return len(self.rows)

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """As in `Event`."""
        from dpwitness.events.kernels import rows_equal, rows_in_set  # numba is imported when first used

        width = max(rows.shape[1], self.width, 1)
        rows = widen(rows, width)
        hits = np.zeros(len(rows), np.bool_)
        if len(self.rows) > COMPARED:
            rows_in_set(rows, *self._table(width), hits)
            return hits
        members, equal = widen(self.rows, width), np.empty(len(rows), np.bool_)
        for k in range(len(members)):
            rows_equal(rows, members, k, equal)
            hits |= equal
        return hits

    def _table(self, width: int) -> tuple[Rows, NDArray[np.int64]]:
        """The members as rows of a width, and the hash table that finds them; kept."""
        from dpwitness.events.kernels import fill_table

        if width not in self._tables:
            members = widen(self.rows, width)
            table = np.full(1 << (4 * len(members) - 1).bit_length(), -1, np.int64)
            fill_table(members, table)
            self._tables[width] = members, table
        return self._tables[width]

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """As in `Event`: ⊥ and ⊤ for flags."""
        # One number alone is a number, were it 0 or 1; several are answers.
        signs = (0, 1, FALSE, TRUE) if self.width > 1 else (FALSE, TRUE)
        flags = bool(np.all(np.isnan(self.rows) | np.isin(self.rows, signs)))
        texts = [_outcome(row, flags, label) for row in self.rows]
        if len(texts) == 1:
            only = self.rows[0]
            if flags and len(only) > 1 and not np.isnan(only).any() and only[-1] >= 1 and (only[:-1] < 0.5).all():
                return f"{noun}s {texts[0][:-1]} then ⊤"
            return f"{noun}s {texts[0]}" if len(only) > 1 else f"{noun} {texts[0]}"
        shown = ", ".join(texts[:8])
        return f"one of {len(texts)} outcomes: {shown}{', …' if len(texts) > 8 else ''}"

    def to_json(self) -> dict[str, Any]:
        """As in `Event`; an absent entry is null, what is no number as in `encoding.entry_to_json`."""
        return {"kind": "outcomes", "rows": [[entry_to_json(entry) for entry in row] for row in self.rows.tolist()]}


def _outcome(row: Rows, flags: bool, label: Label | None) -> str:
    present = np.flatnonzero(~np.isnan(row))
    if not len(present):
        return "nothing"
    entries = row[: present[-1] + 1]
    if flags:
        return "".join("·" if np.isnan(entry) else "⊤" if entry >= 1 else "⊥" for entry in entries)
    texts = [(label(entry) if label else None) or ("·" if np.isnan(entry) else _number(entry)) for entry in entries]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


class ScoreThreshold:
    """Outcomes whose score, a sum of one step function per entry, exceeds a threshold.

    `coordinates`: the entries used; `edges`: for each, sorted inner bin edges; `weights`: for each, one weight a bin
    (bins are half-open, [edge, next edge)) and one more, the last, for an absent entry.
    """

    __slots__ = ("coordinates", "edges", "threshold", "weights")

    def __init__(
        self,
        coordinates: Sequence[int],
        edges: Sequence[Sequence[float] | Rows],
        weights: Sequence[Sequence[float] | Rows],
        threshold: float,
    ) -> None:
        self.coordinates = tuple(int(c) for c in coordinates)
        self.edges = tuple(np.asarray(e, np.float64) for e in edges)
        self.weights = tuple(np.asarray(w, np.float64) for w in weights)
        self.threshold = float(threshold)
        if not len(self.coordinates) == len(self.edges) == len(self.weights) >= 1:
            raise ValueError("a score needs edges and weights for each of its coordinates")
        for e, w in zip(self.edges, self.weights, strict=True):
            if len(w) != len(e) + 2 or not np.all(e[1:] > e[:-1]) or np.isnan(e).any():
                raise ValueError("a score needs increasing edges and two weights more than edges")

    @property
    def width(self) -> int:
        """As in `Event`."""
        return max(self.coordinates) + 1

    @property
    def size(self) -> int:
        """As in `Event`."""
        return 10_000 + len(self.coordinates)

    def score(self, rows: Rows) -> Rows:
        """The score of each row; shape (n,)."""
        from dpwitness.events.kernels import additive_score  # numba is imported when first used

        rows = widen(rows, self.width)
        starts = np.cumsum([0] + [len(e) for e in self.edges])
        scores = np.empty(len(rows))
        additive_score(
            rows, np.array(self.coordinates), starts, np.concatenate(self.edges), np.concatenate(self.weights), scores
        )
        return scores

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """As in `Event`."""
        return self.score(rows) > self.threshold

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """As in `Event`."""
        places = ", ".join(str(c + 1) for c in self.coordinates[:8])
        more = ", …" if len(self.coordinates) > 8 else ""
        return f"learned score of {noun}s {places}{more} above {_number(self.threshold)}"

    def to_json(self) -> dict[str, Any]:
        """As in `Event`."""
        return {
            "kind": "score",
            "coordinates": list(self.coordinates),
            "edges": [[_written(edge) for edge in e.tolist()] for e in self.edges],
            "weights": [w.tolist() for w in self.weights],
            "threshold": self.threshold,
        }


def event_from_json(value: Any) -> Event:
    """Build an event from parsed JSON that nobody has checked; raises `InvalidWitness`."""
    if not isinstance(value, Mapping):
        raise InvalidWitness(f"event {value!r} must be an object with a 'kind'")
    try:
        match value.get("kind"):
            case "interval":
                return _interval(value)
            case "box":
                return Box(tuple(_interval(side) for side in value["sides"]))
            case "outcomes":
                return OutcomeSet(np.array(_padded(value["rows"])))
            case "score":
                return ScoreThreshold(
                    [_index(c) for c in value["coordinates"]],
                    [[_real(e) for e in edges] for edges in value["edges"]],
                    [[_finite(w) for w in weights] for weights in value["weights"]],
                    _finite(value["threshold"]),
                )
            case kind:
                raise InvalidWitness(f"event kind {kind!r} is unknown; known are interval, box, outcomes, score")
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidWitness):
            raise
        raise InvalidWitness(f"event of kind {value.get('kind')!r} is damaged: {error}") from error


def _padded(rows: Sequence[Sequence[Any]]) -> list[list[float]]:
    """Rows of JSON as rows of one width."""
    width = max((len(row) for row in rows), default=0)
    return [[entry_from_json(entry) for entry in (*row, *[None] * (width - len(row)))] for row in rows]


def _interval(value: Mapping[str, Any]) -> Interval:
    low, high = value["low"], value["high"]
    return Interval(
        coordinate=_index(value["coordinate"]),
        low=-np.inf if low is None else _real(low),
        high=np.inf if high is None else _finite(high),
    )


def _written(value: float) -> float | str:
    """A number as JSON has it, which knows no infinities."""
    return value if np.isfinite(value) else "inf" if value > 0 else "-inf"


def _real(value: Any) -> float:
    """What `_written` wrote."""
    return {"inf": np.inf, "-inf": -np.inf}[value] if value in ("inf", "-inf") else _finite(value)


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError(f"{value!r} must be a finite number")
    return float(value)


def _index(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1_000_000:
        raise ValueError(f"{value!r} must be a column number")
    return value
