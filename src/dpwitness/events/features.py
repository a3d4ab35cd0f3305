"""Features of an outcome: numbers computed from its entries, which may show differences that no single entry shows.

Features of one or two entries are differences, order, residues and the bits of a float; features of all entries are
sums, extremes and their places, lengths, and counts of a value.

A feature has a name, the columns that it looks at, and for some kinds a number. `FEATURES` holds the kinds by name. A
feature is NaN if an entry that it needs is absent or not a number; then the outcome lies in no event of the feature.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.arrays import Booleans, Floats, Integers, Rows
from dpwitness.checks import brief, items, kind, near, number, text
from dpwitness.codec import JsonFields
from dpwitness.errors import InvalidParameter
from dpwitness.events.encoding import FALSE, LEAST_NUMBER, NESTED_SEQUENCE, TRUE, RowEntry
from dpwitness.events.event import (
    LARGEST_FLOAT,
    LISTED_ITEMS,
    ORDINALS,
    ColumnNumber,
    Event,
    Label,
    Statistic,
    as_noun,
    column,
    number_text,
    place_text,
    places_text,
    register_event,
    widen,
)
from dpwitness.events.intervals import Interval
from dpwitness.events.outcome_set import OutcomeSet


@dataclass(frozen=True, slots=True)
class FeatureKind:
    """A kind of feature: its function of a block of rows, and its text for people."""

    #: The text with "{0}" and "{1}" for the entries, "{number}" for the number, "{all}" for all entries; if the number
    #: is a place, "{rank}" is its word ("third") and "{entry}" the entry there.
    text: str
    #: The number of entries; None for a kind that uses all entries up to its one column.
    entries: int | None
    #: The function from entries of shape (n, number of entries) and the feature's number to values of shape (n,).
    compute: Callable[[Rows, float], Floats]
    #: The meaning of the number: "" for a kind without one, "value" of an entry, "positive", "power" for a
    #: number of bits, or "place" from 1.
    number: str = ""
    #: Whether the values are whole numbers.
    whole: bool = False


def numbers(entries: Rows) -> Floats:
    """The entries for arithmetic, in the same shape: flags become 1 and 0, entries of other values NaN."""
    # Entries of other values are at most NESTED_SEQUENCE, as is −∞. Most columns hold numbers alone and need no copy.
    codes = (entries <= NESTED_SEQUENCE) & (entries > -np.inf)
    if codes.any():
        entries = np.where(codes, np.nan, entries)
    flags = (entries == TRUE) | (np.abs(entries) == FALSE)
    if flags.any():
        entries = np.where(flags, np.round(entries), entries)
    return entries


# Features of one or two entries.


def _both_numbers(entries: Rows) -> tuple[Floats, Floats]:
    """The two entries of each row as numbers; shape (n,) each."""
    return numbers(entries[:, 0]), numbers(entries[:, 1])


def _difference(entries: Rows, number: float) -> Floats:
    first, second = _both_numbers(entries)
    return first - second


def _order(entries: Rows, number: float) -> Floats:
    # Entries are compared, not their numbers: texts and other values can be equal too.
    first, second = entries.T
    absent = np.isnan(first) | np.isnan(second)
    return np.where(absent, np.nan, np.greater(first, second).astype(np.float64) - np.less(first, second))


def _residue(entries: Rows, number: float) -> Floats:
    """The entry modulo `number`, rounded to nine digits: sums of decimal fractions miss multiples by rounding."""
    column = numbers(entries[:, 0])
    decimals = 9 - int(np.ceil(np.log10(number)))
    rest = np.mod(column, number)
    if abs(decimals) <= 300:
        rest = np.round(rest, decimals)
    rest[rest >= number] = 0.0
    return rest


def _significand(entries: Rows) -> tuple[Integers, Integers, Booleans]:
    """Integers s < 2^53 and e with |x| = s·2^e, and whether the entry x has them (is finite and not 0); shape (n,)."""
    column = numbers(entries[:, 0])
    usable = np.isfinite(column) & (column != 0)
    fraction, exponent = np.frexp(np.where(usable, column, 1.0))
    significand = np.ldexp(np.abs(fraction), 53).astype(np.int64)
    return significand, exponent.astype(np.int64) - 53, usable


def _zeros(significand: Integers) -> Floats:
    """The number of trailing zero bits of positive integers."""
    return np.frexp((significand & -significand).astype(np.float64))[1].astype(np.float64) - 1


def _power_of_two(entries: Rows, number: float) -> Floats:
    """The largest e such that 2^e divides the entry; NaN for 0.

    Floating-point noise added to x ends on the grid of the last bits of x and of the sum (Mironov 2012, "On
    significance of the least significant bits for differential privacy").
    """
    significand, exponent, usable = _significand(entries)
    return np.where(usable, _zeros(significand) + exponent, np.nan)


def _trailing_zeros(entries: Rows, number: float) -> Floats:
    """The number of zero bits at the end of the entry's significand of 53 bits; NaN for 0."""
    significand, _, usable = _significand(entries)
    return np.where(usable, _zeros(significand), np.nan)


def _low_bits(entries: Rows, number: float) -> Floats:
    """The last `number` bits of the entry's significand, as an integer; NaN for 0."""
    significand, _, usable = _significand(entries)
    return np.where(usable, significand & ((1 << int(number)) - 1), np.nan)


# Features of all entries. They work on transposed rows: numpy reduces the first axis faster than a short last one.


def _columns(entries: Rows) -> Floats:
    """The entries as numbers, transposed; shape (columns, n)."""
    return np.ascontiguousarray(numbers(entries).T)


def _differences(entries: Rows) -> Floats:
    """Each number minus the number before it, NaN if either is absent; shape (columns − 1, n)."""
    columns = _columns(entries)
    return np.asarray(columns[1:] - columns[:-1]) if len(columns) > 1 else np.full_like(columns, np.nan)


def _steps(entries: Rows) -> Floats:
    """The first number, then the `_differences`: the steps of a running sum; shape (columns, n)."""
    columns = _columns(entries)
    return np.concatenate([columns[:1], columns[1:] - columns[:-1]])


def _total(columns: Floats) -> Floats:
    """The sum of each outcome's numbers, NaN for an outcome without numbers; shape (n,)."""
    absent = np.isnan(columns)
    if not absent.any():
        return np.asarray(np.add.reduce(columns, axis=0))
    sums = np.asarray(np.add.reduce(np.where(absent, 0.0, columns), axis=0))
    sums[absent.all(axis=0)] = np.nan
    return sums


def _largest(columns: Floats) -> Floats:
    return np.asarray(np.fmax.reduce(columns, axis=0))


def _smallest(columns: Floats) -> Floats:
    return np.asarray(np.fmin.reduce(columns, axis=0))


def _count(inside: Booleans) -> Floats:
    """The number of flags of shape (columns, n) that are set for each outcome; shape (n,)."""
    return np.asarray(np.add.reduce(inside.view(np.int8), axis=0, dtype=np.float64))


def _place(columns: NDArray[Any], wanted: Floats | float) -> Floats:
    """The place, from 1, of each outcome's first entry that equals `wanted`, else NaN; shape (n,)."""
    places = np.full(columns.shape[1], np.nan)
    for place in range(len(columns), 0, -1):
        places[columns[place - 1] == wanted] = place
    return places


def _sort_numbers(entries: Rows) -> Floats:
    """The numbers of each row in rising order, NaN last."""
    return np.sort(numbers(entries), axis=1)


def _gap(entries: Rows, number: float) -> Floats:
    """The largest minus the second largest number of each row; NaN for a row with fewer than two numbers."""
    rising = _sort_numbers(entries)
    if rising.shape[1] < 2:
        return np.full(len(rising), np.nan)
    last = np.maximum(rising.shape[1] - np.count_nonzero(np.isnan(rising), axis=1), 2) - 1
    row = np.arange(len(rising))
    return np.asarray(rising[row, last] - rising[row, last - 1])


def _rank(entries: Rows, number: float) -> Floats:
    """The rank of entry `number`: one more than the number of smaller entries; NaN if it is not a number."""
    columns = _columns(entries)
    own = columns[int(number) - 1]
    return np.where(np.isnan(own), np.nan, 1.0 + _count(columns < own))


def _above(entries: Rows, number: float) -> Floats:
    # Entries of other values lie below all numbers, flags next to 0 and 1: at other thresholds they need no conversion.
    if number <= LEAST_NUMBER or number == 1 or abs(number) <= FALSE:
        entries = numbers(entries)
    # A matrix product is five times as fast as a count along the few entries of a row; float32 is exact below 2^24.
    return ((entries > number).astype(np.float32) @ np.ones(entries.shape[1], np.float32)).astype(np.float64)


def _different(entries: Rows, number: float) -> Floats:
    values = np.sort(entries, axis=1)  # NaN goes last
    changes = (values[:, 1:] != values[:, :-1]) & ~np.isnan(values[:, 1:])
    return np.asarray(np.count_nonzero(changes, axis=1) + (~np.isnan(values[:, 0])), np.float64)


def _last_place(entries: Rows, number: float) -> Floats:
    backwards = np.ascontiguousarray(entries.T[::-1])
    return len(backwards) + 1 - _place(backwards, number)


def _kinds_of_rises(rise: str, along: str, rises: Callable[[Rows], Floats]) -> dict[str, FeatureKind]:
    """Three kinds of features of rises: the smallest, the largest, and the number of rises above a value."""
    more = f"number of rises above {{number}} along {along}"
    return {
        f"smallest {rise}": FeatureKind(f"smallest rise along {along}", None, lambda e, number: _smallest(rises(e))),
        f"largest {rise}": FeatureKind(f"largest rise along {along}", None, lambda e, number: _largest(rises(e))),
        f"{rise}s above": FeatureKind(more, None, lambda e, number: _count(rises(e) > number), "value", whole=True),
    }


#: FEATURES has the kinds of features by name.
FEATURES: Final[dict[str, FeatureKind]] = {
    "difference": FeatureKind("{0} − {1}", 2, _difference),
    "distance": FeatureKind("distance of {0} and {1}", 2, lambda e, number: np.abs(_difference(e, number))),
    "sum of two": FeatureKind("{0} + {1}", 2, lambda e, number: np.add(*_both_numbers(e))),
    "ratio": FeatureKind("{0} / {1}", 2, lambda e, number: np.divide(*_both_numbers(e))),
    "order": FeatureKind("sign of {0} − {1}", 2, _order, whole=True),
    "present": FeatureKind("presence of {0}", 1, lambda e, number: (~np.isnan(e[:, 0])).astype(np.float64), whole=True),
    "residue": FeatureKind("{0} modulo {number}", 1, _residue, "positive"),
    "power of two": FeatureKind("exponent of the largest power of 2 that divides {0}", 1, _power_of_two, whole=True),
    "trailing zeros": FeatureKind("trailing zero bits of {0}", 1, _trailing_zeros, whole=True),
    "low bits": FeatureKind("last {number} bits of {0}", 1, _low_bits, "power", whole=True),
    "sum": FeatureKind("sum of {all}", None, lambda e, number: _total(_columns(e))),
    "largest": FeatureKind("largest of {all}", None, lambda e, number: _largest(_columns(e))),
    "smallest": FeatureKind("smallest of {all}", None, lambda e, number: _smallest(_columns(e))),
    "range": FeatureKind(
        "largest minus smallest of {all}", None, lambda e, number: _largest(c := _columns(e)) - _smallest(c)
    ),
    "order statistic": FeatureKind(
        "{rank} smallest of {all}", None, lambda e, number: _sort_numbers(e)[:, int(number) - 1], "place"
    ),
    "gap": FeatureKind("largest minus second largest of {all}", None, _gap),
    "rank": FeatureKind("rank of {entry} among {all}", None, _rank, "place", whole=True),
    "above": FeatureKind("number of {all} above {number}", None, _above, "value", whole=True),
    "sum of absolute values": FeatureKind(
        "sum of the absolute values of {all}", None, lambda e, number: _total(np.abs(_columns(e)))
    ),
    "sum of absolute differences": FeatureKind(
        "sum of the absolute rises along {all}", None, lambda e, number: _total(np.abs(_differences(e)))
    ),
    **_kinds_of_rises("difference", "{all}", _differences),
    **_kinds_of_rises("step", "0 and {all}", _steps),
    "place of largest": FeatureKind(
        "place of the largest of {all}", None, lambda e, number: _place(c := _columns(e), _largest(c)), whole=True
    ),
    "place of smallest": FeatureKind(
        "place of the smallest of {all}", None, lambda e, number: _place(c := _columns(e), _smallest(c)), whole=True
    ),
    "length": FeatureKind(
        "number of {all} present", None, lambda e, number: np.count_nonzero(~np.isnan(e), axis=1) * 1.0, whole=True
    ),
    "different": FeatureKind("number of different values among {all}", None, _different, whole=True),
    "count": FeatureKind(
        "number of {all} equal to {number}", None, lambda e, number: np.count_nonzero(e == number, axis=1) * 1.0,
        "value", whole=True,
    ),
    "first place": FeatureKind(
        "place of the first of {all} equal to {number}", None,
        lambda e, number: _place(np.ascontiguousarray(e.T), number), "value", whole=True,
    ),
    "last place": FeatureKind("place of the last of {all} equal to {number}", None, _last_place, "value", whole=True),
    "first place above": FeatureKind(
        "place of the first of {all} above {number}", None, lambda e, number: _place(_columns(e) > number, True),
        "value", whole=True,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature(JsonFields):
    """A feature: the name of its kind, its columns (from 0), and its number where the kind has one.

    A feature of all entries up to a column has this column alone. Raises `InvalidParameter`.
    """

    name: str
    columns: tuple[ColumnNumber, ...]
    number: RowEntry = math.nan

    def __post_init__(self) -> None:
        kind = FEATURES.get(text("name", self.name))
        if kind is None:
            raise InvalidParameter(
                f"feature {brief(self.name)} is unknown"
                f"{near(self.name, FEATURES) or '; known are ' + ', '.join(FEATURES)}"
            )
        object.__setattr__(self, "columns", tuple(map(column, items("columns", self.columns))))
        number("number", self.number)
        if len(self.columns) != (kind.entries or 1) or len(set(self.columns)) != len(self.columns):
            raise InvalidParameter(f"columns={self.columns!r}: {self.name} needs {kind.entries or 1}, each once")
        right, what = {
            "": (math.isnan(self.number), "no number"),
            "value": (not math.isnan(self.number), "a value"),
            "positive": (0 < self.number <= LARGEST_FLOAT, "a positive number"),
            "power": (self.number in range(1, 53), "1 to 52 bits"),
            "place": (self.number in range(1, self.width + 1), f"a place from 1 to {self.width}"),
        }[kind.number]
        if not right:
            raise InvalidParameter(f"number={self.number!r}: {self.name} needs {what}")

    @property
    def kind(self) -> FeatureKind:
        """The entry of `FEATURES` for the feature's name."""
        return FEATURES[self.name]

    @property
    def width(self) -> int:
        """The number of columns up to the last that decides the feature."""
        return max(self.columns) + 1

    def values(self, rows: Rows) -> Floats:
        """The feature's values for rows of shape (n, any width); shape (n,), NaN for rows without a value."""
        rows = widen(rows, self.width)
        with np.errstate(all="ignore"):  # ∞ − ∞ and 0 / 0 are NaN, sums may overflow
            if self.kind.entries is not None:
                return self.kind.compute(rows[:, list(self.columns)], self.number)
            values = np.empty(len(rows))
            for start in range(0, len(rows), 2048):  # blocks that fit the processor's cache take a quarter of the time
                block = slice(start, start + 2048)
                values[block] = self.kind.compute(rows[block, : self.width], self.number)
            return values

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """The feature in plain English."""
        places = [place_text(column, noun) for column in self.columns]
        several = places_text(self.width, noun) if self.kind.entries is None else places[0]
        rank = entry = ""
        if self.kind.number == "place":
            place = int(self.number)
            rank, entry = ORDINALS[place - 1] if place <= len(ORDINALS) else f"{place}-th", place_text(place - 1, noun)
        return self.kind.text.format(*places, all=several, number=self.number_text(label), rank=rank, entry=entry)

    def number_text(self, label: Label | None = None) -> str:
        """The text of the feature's number, or the text that the number encodes."""
        behind = label(self.number) if label and self.kind.number == "value" else None
        return behind or ({TRUE: "⊤", FALSE: "⊥"}.get(self.number) or number_text(self.number))


def is_of_bits(event: Event) -> bool:
    """Whether an event concerns the last bits of floating-point numbers, hence the implementation."""
    return bool(getattr(event, "of_bits", False))


@register_event
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureEvent(Event):
    """Outcomes whose feature has a value in a set: an interval, or an `OutcomeSet` of rows (value,)."""

    kind: ClassVar[str] = "feature"

    feature: Feature
    within: Interval | OutcomeSet

    def __post_init__(self) -> None:
        kind("feature", self.feature, Feature, "a Feature", InvalidParameter)
        kind("within", self.within, (Interval, OutcomeSet), "an Interval or an OutcomeSet", InvalidParameter)
        if self.within.width != 1 or (isinstance(self.within, OutcomeSet) and np.isnan(self.within.rows).any()):
            raise InvalidParameter(f"within={brief(self.within)} must be a set of values, in the first column")

    @property
    @override
    def width(self) -> int:
        return self.feature.width

    @property
    def complexity(self) -> tuple[int, int]:
        """The complexity (level, size): level 1, and the number of the feature's columns plus the size of `within`."""
        return 1, len(self.feature.columns) + self.within.complexity[1]

    @override
    def contains(self, rows: Rows) -> Booleans:
        """Whether each outcome's value lies in the set, shape (n,); false without a value."""
        return self.within.contains(self.feature.values(rows)[:, None])

    @property
    def of_bits(self) -> bool:
        """Whether the event concerns the last bits of floating-point numbers, which real numbers do not have."""
        return self.feature.name in ("power of two", "trailing zeros", "low bits")

    def statistic(self) -> Statistic:
        """The feature as a statistic, with the ends of the interval; a set of values has no ends."""
        low, high = (self.within.low, self.within.high) if isinstance(self.within, Interval) else (math.nan, math.nan)
        return Statistic(
            key=self.feature,
            value=self.feature.values,
            describe=self.feature.describe,
            low=low,
            high=high,
            between=self.between if isinstance(self.within, Interval) else None,
        )

    def between(self, low: float, high: float) -> "FeatureEvent":
        """The event of another range of the same feature."""
        return FeatureEvent(feature=self.feature, within=Interval(coordinate=0, low=low, high=high))

    def simpler(self) -> Sequence[Event]:
        """Events with one bound of the interval, or with one value of the set."""
        parts = [part for part in self.within.simpler() if isinstance(part, Interval | OutcomeSet)]
        return [FeatureEvent(feature=self.feature, within=part) for part in parts]

    def rounded(self) -> Iterator[Event]:
        """Events with bounds of 1, 2 and 3 significant digits."""
        for part in self.within.rounded():
            if isinstance(part, Interval):
                yield FeatureEvent(feature=self.feature, within=part)

    @override
    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        low, high, whole = self._ends()
        phrase = self._phrase(low, high, noun) or self._place_phrase(noun, label)
        if phrase is not None:
            return phrase
        subject = self.feature.describe(noun, label)
        if math.isnan(low):
            values = self.within.rows[:, 0].tolist() if isinstance(self.within, OutcomeSet) else []
            more = ", …" if len(values) > LISTED_ITEMS else ""
            return f"{subject} one of {', '.join(map(number_text, values[:LISTED_ITEMS]))}{more}"
        if low == high:
            return f"{subject} is {number_text(low)}"
        if high == np.inf:
            return f"{subject} at least {number_text(low)}" if low > -np.inf else f"{subject} present"
        least, most = number_text(low), ("up to " if whole else "below ") + number_text(high)
        return f"{subject} {most}" if low == -np.inf else f"{subject} from {least} to {most.removeprefix('up to ')}"

    def _place_phrase(self, noun: str, label: Label | None) -> str | None:
        """The text that names the entry at a place; None for features that are not places, or without names."""
        kind, names = self.feature.name, as_noun(noun).places
        if not names or "place" not in kind:
            return None
        columns = np.flatnonzero(self.within.contains(np.arange(1.0, self.width + 1)[:, None])).tolist()
        listed = " or ".join(place_text(c, noun) for c in columns)
        value = self.feature.number_text(label)
        what = {
            "first place": f"first equal to {value}",
            "last place": f"last equal to {value}",
            "first place above": f"first above {value}",
        }.get(kind, kind.removeprefix("place of "))
        return f"the {what} of {places_text(self.width, noun)} is {listed or 'none'}"

    def _ends(self) -> tuple[float, float, bool]:
        """The smallest and the largest value, NaN for several listed values, and whether the largest is in the set.

        For a feature of whole numbers the half-open interval [3, 5) holds 3 and 4.
        """
        if isinstance(self.within, OutcomeSet):
            value = float(self.within.rows[0, 0]) if len(self.within.rows) == 1 else math.nan
            return value, value, True
        low, high = self.within.low, self.within.high
        if not self.feature.kind.whole:
            return low, high, low == high
        return np.ceil(low), np.ceil(high) - 1, True

    def _phrase(self, low: float, high: float, noun: str) -> str | None:
        """The text of an order, presence or divisibility; None for other features, and for several listed values."""
        if math.isnan(low):
            return None
        places = [place_text(column, noun) for column in self.feature.columns]
        orders: dict[tuple[float, float], str] = {
            (-1, -1): "below",
            (-1, 0): "at most",
            (0, 0): "equal to",
            (0, 1): "at least",
            (1, 1): "above",
        }
        match self.feature.name:
            case "order" if max(low, -1) == -1 and min(high, 1) == 1:
                return f"{places[0]} and {places[1]} present"
            case "order" if (max(low, -1), min(high, 1)) in orders:
                return f"{places[0]} {orders[max(low, -1), min(high, 1)]} {places[1]}"
            case "present" if low == high or low > 0 or high < 1:
                return f"{places[0]} {'present' if low > 0 else 'absent'}"
            case "residue" if low == high == 0:
                return f"{places[0]} is a multiple of {self.feature.number_text()}"
            case "trailing zeros" if high == np.inf and low == 1:
                return f"the last bit of {places[0]} is 0"
            case "trailing zeros" if low == -np.inf and high == 0:
                return f"the last bit of {places[0]} is 1"
            case "trailing zeros" if high == np.inf and low > 0:
                return f"the last {number_text(low)} bits of {places[0]} are zero"
            case "trailing zeros" if low == -np.inf and 0 <= high < np.inf:
                return f"the last {number_text(high + 1)} bits of {places[0]} are not all zero"
            case "power of two" if high == np.inf and low > -np.inf:
                return f"{places[0]} is a multiple of 2^{number_text(low)}"
            case "power of two" if low == -np.inf and high < np.inf:
                return f"{places[0]} is no multiple of 2^{number_text(high + 1)}"
        return None
