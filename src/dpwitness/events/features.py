"""Features of an outcome: numbers computed from its entries, in which it may show what no entry shows alone.

A feature has a name, the columns that it looks at, and for some a number. `FEATURES` holds the kinds by name: functions
of a whole block of rows, with their text for people. Where a feature has no value (an entry that it needs is absent, or
is no number) it is NaN, and no event of it holds.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import entry_features, row_features
from dpwitness.events.encoding import FALSE, TRUE, entry_from_json, entry_to_json
from dpwitness.events.event import Label, Rows, widen
from dpwitness.events.writing import LARGEST, column_from_json, list_from_json, number_text, place_text, places_text

__all__ = ["FEATURES", "Feature", "Kind"]

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of feature: what it computes from the rows of the entries that it looks at, and how it is said.

    `compute(entries, number)` takes rows of shape (n, number of entries) and gives shape (n,).
    """

    compute: Callable[[Rows, float], Column]
    #: "{0}" and "{1}" stand for the entries, "{number}" for the number, "{all}" for the first so many entries.
    text: str
    #: How many entries it looks at; None: the first so many, as its one column number says.
    entries: int | None
    #: Whether it needs a number: "" none, "value" of an entry, "positive", or "power" of two.
    number: str = ""
    #: Whether its values are whole numbers.
    whole: bool = False


FEATURES: Final[dict[str, Kind]] = {
    "difference": Kind(compute=entry_features.difference, text="{0} − {1}", entries=2),
    "sum of two": Kind(compute=entry_features.sum_of_two, text="{0} + {1}", entries=2),
    "ratio": Kind(compute=entry_features.ratio, text="{0} / {1}", entries=2),
    "order": Kind(compute=entry_features.order, text="sign of {0} − {1}", entries=2, whole=True),
    "present": Kind(compute=entry_features.present, text="presence of {0}", entries=1, whole=True),
    "residue": Kind(compute=entry_features.residue, text="{0} modulo {number}", entries=1, number="positive"),
    "power of two": Kind(
        compute=entry_features.power_of_two, text="exponent of the largest power of 2 that divides {0}", entries=1,
        whole=True,
    ),
    "trailing zeros": Kind(
        compute=entry_features.trailing_zeros, text="trailing zero bits of {0}", entries=1, whole=True
    ),
    "low bits": Kind(
        compute=entry_features.low_bits, text="last {number} bits of {0}", entries=1, number="power", whole=True
    ),
    "sum": Kind(compute=row_features.total, text="sum of {all}", entries=None),
    "largest": Kind(compute=row_features.largest, text="largest of {all}", entries=None),
    "smallest": Kind(compute=row_features.smallest, text="smallest of {all}", entries=None),
    "place of largest": Kind(
        compute=row_features.place_of_largest, text="place of the largest of {all}", entries=None, whole=True
    ),
    "place of smallest": Kind(
        compute=row_features.place_of_smallest, text="place of the smallest of {all}", entries=None, whole=True
    ),
    "length": Kind(compute=row_features.length, text="number of {all} present", entries=None, whole=True),
    "different": Kind(compute=row_features.different, text="number of different {all}", entries=None, whole=True),
    "count": Kind(
        compute=row_features.count, text="number of {all} equal to {number}", entries=None, number="value", whole=True
    ),
    "first place": Kind(
        compute=row_features.first_place, text="place of the first of {all} equal to {number}", entries=None,
        number="value", whole=True,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One feature: the name of its kind, its columns (from 0), and its number where the kind has one.

    A kind of all entries has one column, the last that it looks at. Raises `ValueError` for what is no such feature.
    """

    name: str
    columns: tuple[int, ...]
    number: float = math.nan

    def __post_init__(self) -> None:
        kind = FEATURES.get(self.name)
        if kind is None:
            raise ValueError(f"feature {self.name!r} is unknown; known are {', '.join(FEATURES)}")
        if len(self.columns) != (kind.entries or 1) or len(set(self.columns)) != len(self.columns):
            raise ValueError(f"columns={self.columns!r}: {self.name} needs {kind.entries or 1}, each once")
        if min(self.columns) < 0:
            raise ValueError(f"columns={self.columns!r} must not be negative")
        right = {
            "": math.isnan(self.number),
            "value": not math.isnan(self.number),
            "positive": 0 < self.number <= LARGEST,
            "power": self.number in range(1, 53),
        }
        if not right[kind.number]:
            wanted = {"": "no number", "value": "a value", "positive": "a positive number", "power": "1 to 52 bits"}
            raise ValueError(f"number={self.number!r}: {self.name} needs {wanted[kind.number]}")

    @property
    def kind(self) -> Kind:
        """What it computes."""
        return FEATURES[self.name]

    @property
    def width(self) -> int:
        """How many columns decide it."""
        return max(self.columns) + 1

    def values(self, rows: Rows) -> Column:
        """Its value for each row of shape (n, any width); shape (n,), NaN where it has none."""
        rows = widen(rows, self.width)
        entries = rows[:, : self.width] if self.kind.entries is None else rows[:, list(self.columns)]
        with np.errstate(all="ignore"):  # ∞ − ∞, 0 / 0 and sums that overflow: no value, or infinite
            return self.kind.compute(entries, self.number)

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """The feature in plain English."""
        places = [place_text(column, noun) for column in self.columns]
        several = places_text(self.width, noun) if self.kind.entries is None else places[0]
        return self.kind.text.format(*places, all=several, number=self.number_text(label))

    def number_text(self, label: Label | None = None) -> str:
        """Its number, or the text behind it."""
        behind = label(self.number) if label and self.kind.number == "value" else None
        return behind or ({TRUE: "⊤", FALSE: "⊥"}.get(self.number) or number_text(self.number))

    def to_json(self) -> dict[str, Any]:
        """Everything needed to build it again."""
        return {"name": self.name, "columns": list(self.columns), "number": entry_to_json(self.number)}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """The reverse, of a value that nobody has checked. Raises `KeyError`, `TypeError` or `ValueError`."""
        columns = tuple(column_from_json(column) for column in list_from_json(value["columns"]))
        name = value["name"]
        if not isinstance(name, str):
            raise ValueError(f"feature name {name!r} must be a text")
        return cls(name=name, columns=columns, number=entry_from_json(value["number"]))
