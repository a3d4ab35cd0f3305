"""The protocol of events, the texts that describe them, and the registry of their kinds."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Protocol, TypeAlias, TypeGuard, TypeVar

import numpy as np

from dpwitness.arrays import Booleans, Floats, Integers, Rows
from dpwitness.checks import brief, finite, items, number, whole
from dpwitness.codec import (
    Codec,
    Family,
    UnknownKind,
    codec_of,
    register,
    whole_below,
    write_fields,
    write_object,
)
from dpwitness.errors import InvalidParameter, InvalidWitness
from dpwitness.events.encoding import (
    CODE_TEXTS,
    EXACT_INTEGER_LIMIT,
    FALSE,
    LEAST_NUMBER,
    NEGATIVE_ZERO,
    NESTED_SEQUENCE,
    SYMBOL,
    TEXT,
    TRUE,
    is_code,
    is_exception,
    text_code,
)

#: Label is a function from an entry to the text that it encodes; None for a number that is not a code.
Label = Callable[[float], str | None]


class Counted(Protocol):
    """A set of outcomes, and whether each run's outcome lies in it."""

    __slots__ = ()

    @property
    def width(self) -> int:
        """The number of columns that decide membership; later columns matter at most by being present."""

    def contains(self, rows: Rows) -> Booleans:
        """Whether each of the rows (n, any width) lies in the set, shape (n,); entries of missing columns are NaN."""


class Partition(Counted, Protocol):
    """A set that is a union of some cells of a partition; runs are counted in every cell."""

    __slots__ = ()

    @property
    def cells(self) -> int:
        """The number of cells of the partition."""

    @property
    def inside(self) -> Booleans:
        """Whether each cell belongs to the set; shape (cells,)."""

    def cell_of(self, rows: Rows) -> Integers:
        """The number of the cell that each outcome lies in, from 0; shape (n,)."""


def is_partition(event: Counted) -> TypeGuard[Partition]:
    """Whether an event is a `Partition`."""
    return callable(getattr(event, "cell_of", None))


class Event(Counted, Protocol):
    """A set of outcomes. An outcome is a row of numbers (see `encoding`), with NaN for an absent value.

    A kind of event is one class with these members, made readable from JSON by `register_event`; a dataclass needs no
    `to_json` and no `from_json`. Events are immutable and can be pickled.
    """

    __slots__ = ()

    kind: ClassVar[str]  # the name of the kind, as it stands in JSON

    @property
    def complexity(self) -> tuple[int, int]:
        """The length of the set's description as a pair, level and size; smaller is simpler.

        The level is 0 for one outcome or one interval, 1 for several intervals or a feature, 2 for a list of outcomes,
        3 for a set that only a formula describes. The size is the number of entries, bounds, sides, outcomes or terms.
        """

    def simpler(self) -> Sequence["Event"]:
        """Simpler events, each made of a part of this event; empty if it has no parts."""
        return ()

    def rounded(self) -> Iterator["Event"]:
        """Copies of this event with rounded numbers, in rising order of the number of digits."""
        return iter(())

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """The set in plain English; `noun` is the word for one entry, `label` gives the text that a code encodes."""

    def to_json(self) -> dict[str, object]:
        """The event as JSON, with `kind` under the key "kind"; for a dataclass, its fields."""
        return write_fields(self)


def widen(rows: Rows, width: int) -> Rows:
    """The rows with at least `width` columns, shape (…, n, columns): absent entries are added at the end."""
    if rows.shape[-1] >= width:
        return rows
    return np.concatenate([rows, np.full((*rows.shape[:-1], width - rows.shape[-1]), np.nan)], axis=-1)


def of_one_width(x: Rows, y: Rows, least: int = 0) -> tuple[Rows, Rows]:
    """The rows of D and of D′, widened to the same number of columns, at least `least`."""
    width = max(x.shape[-1], y.shape[-1], least)
    return widen(x, width), widen(y, width)


def stack(parts: Sequence[Rows]) -> Rows:
    """Parts of any widths, shapes (…, n, width), as one array of shape (…, all n, largest width)."""
    parts = [part for part in parts if part.shape[-2]]
    width = max(part.shape[-1] for part in parts)
    return parts[0] if len(parts) == 1 else np.concatenate([widen(part, width) for part in parts], axis=-2)


#: LONGEST_TEXT is the largest number of characters of an event's text: it must fit on a line of a verdict.
LONGEST_TEXT: Final = 100
#: LARGEST_FLOAT is the largest finite float.
LARGEST_FLOAT: Final = float(np.finfo(np.float64).max)
#: MOST_EVENT_COLUMNS bounds the column numbers that an event may name: an outcome has at most 10,000 entries.
MOST_EVENT_COLUMNS: Final = 1 << 14
#: NO_NUMBER is the text for the None, NaN and text values of an entry that also holds numbers.
NO_NUMBER: Final = "no number"
#: LISTED_ITEMS is the number of entries, outcomes or values after which a text cuts a list, to stay on one line.
LISTED_ITEMS: Final = 8
#: ORDINALS has the words for the first ten places; a later place is written as a number.
ORDINALS: Final = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip


class Noun(str):
    """The word for one entry of an outcome, with facts about the entries of a mechanism's outcomes.

    `places`: the names of entries by coordinate, such as "column 'age', row 2", if outcomes have keys. `flags`: whether
    0 and 1 are the answers ⊥ and ⊤. `mixed`: for each coordinate with entries that are not numbers, their text: "no
    number" (None, NaN, text), or "raises ValueError" if they are all exceptions. `single`: whether no outcome has more
    than one value. `parts`: for values of several entries, such as dates, the coordinate of the first entry by the
    coordinates of the other entries.
    """

    __slots__ = ("flags", "mixed", "parts", "places", "single")
    places: Mapping[int, str]
    flags: bool
    mixed: Mapping[int, str]
    single: bool
    parts: Mapping[int, int]

    def __new__(
        cls, noun: str, places: Mapping[int, str] = MappingProxyType({}), *, flags: bool = False,
        mixed: Mapping[int, str] = MappingProxyType({}), single: bool = False,
        parts: Mapping[int, int] = MappingProxyType({}),
    ) -> "Noun":  # fmt: skip
        """Build a `Noun` from a word such as "answer"."""
        new = super().__new__(cls, noun)
        new.places, new.flags, new.mixed, new.single, new.parts = places, flags, mixed, single, parts
        return new


def as_noun(noun: str) -> Noun:
    """The word as a `Noun`; a plain text becomes a noun without facts about the entries."""
    return noun if isinstance(noun, Noun) else Noun(noun)


def place_text(coordinate: int, noun: str) -> str:
    """The name of an entry: "first answer", "answer 11", "output" for a single entry, or its name in a `Noun`."""
    noun = as_noun(noun)
    if coordinate in noun.places:
        return noun.places[coordinate]
    if noun.single and (coordinate == 0 or coordinate in noun.parts):
        return f"{noun} (part {coordinate + 1})" if coordinate else str(noun)
    return f"{ORDINALS[coordinate]} {noun}" if coordinate < len(ORDINALS) else f"{noun} {coordinate + 1}"


def places_text(width: int, noun: str) -> str:
    """The first `width` entries as a text, with their names if the noun has names."""
    if width == 1:
        return place_text(0, noun)
    if not as_noun(noun).places and not as_noun(noun).single:
        return f"the first {width} {noun}s"
    named = join_texts([place_text(c, noun) for c in range(min(width, LISTED_ITEMS))], more=width > LISTED_ITEMS)
    return f"({named} ({width} entries))" if width > LISTED_ITEMS else f"({named})"


def join_texts(texts: Sequence[str], *, more: bool = False) -> str:
    """The texts on one line, separated by semicolons if a text has a comma; `more` adds "…"."""
    between = "; " if any("," in text for text in texts) else ", "
    return between.join([*texts, "…"] if more else texts)


def number_text(value: float) -> str:
    """A number in four digits, or in all its digits if four would change it; a special value by its name."""
    if value <= NESTED_SEQUENCE and value not in CODE_TEXTS and value != -math.inf:
        if value > TEXT:
            return f"list of {round((value / NESTED_SEQUENCE - 1) * 2**32)}"
        return "another text" if value > SYMBOL else "an exception" if is_exception(value) else "another kind of value"
    if value in CODE_TEXTS:
        return CODE_TEXTS[value]
    value = float(value)
    short = f"{value:.0f}" if value.is_integer() and abs(value) < EXACT_INTEGER_LIMIT else f"{value:.4g}"
    return (short if float(short) == value else repr(value)).replace("-", "−").replace("inf", "∞")


def outcome_text(outcome: Sequence[float], label: Label, noun: Noun | None = None) -> str:
    """The first six values of an outcome on one line; `label` gives the texts that codes encode."""
    whole = {} if noun is None else whole_texts(outcome, noun, label)
    present = [(c, value) for c, value in enumerate(outcome) if value == value and whole.get(c, "") is not None]
    texts = [whole.get(c) or code_text(c, value, noun, label) or _entry_text(value) for c, value in present[:6]]
    return f"[{', '.join(texts)}{', …' if len(present) > 6 else ''}]"


def whole_texts(outcome: Sequence[float], noun: Noun, label: Label | None) -> dict[int, str | None]:
    """The texts of values that take several entries, by coordinate: the text at the first entry, None at later entries.

    The last entry of such a value is the code of the exact value.
    """
    others = defaultdict[int, list[int]](list)
    for c in sorted(noun.parts):
        if c < len(outcome) and outcome[c] == outcome[c]:
            others[noun.parts[c]].append(c)
    texts: dict[int, str | None] = {}
    for first, further in others.items():
        *numbers, code = [outcome[c] for c in (first, *further)]
        if is_code(code) and all(LEAST_NUMBER <= number < math.inf for number in numbers):
            count = sum(map(int, numbers)) if len(numbers) > 1 else numbers[0]  # integers from 2^53 on have two entries
            exact = label(code) if label else None
            if exact is not None and exact.startswith(("datetime64", "timedelta64")):
                exact = f"{number_text(count)} {exact}"
            if exact is not None:
                texts |= {**dict.fromkeys(further), first: exact}
    return texts


def code_text(coordinate: int, code: float, noun: Noun | None, label: Label | None) -> str | None:
    """The text that a code encodes; in quotes if its column holds dates too. None for a number."""
    text = label(code) if label else None
    if text is None or noun is None or coordinate not in noun.parts.values():
        return text
    return repr(text) if code == text_code(text) else text


def _entry_text(value: float) -> str:
    if value in (TRUE, FALSE, NEGATIVE_ZERO):
        return "-0.0" if value == NEGATIVE_ZERO else str(value == TRUE)
    return number_text(value) if value < LEAST_NUMBER else f"{value:.6g}"


def column(value: object) -> int:
    """The value as a column number from 0. Raises `InvalidParameter`."""
    return whole("coordinate", value, 0, MOST_EVENT_COLUMNS - 1)


def read_end(name: str, value: object) -> float:
    """The value as an end of an interval: a number or an infinity. Raises `InvalidParameter`, for NaN too."""
    found = number(name, value)
    if math.isnan(found):
        raise InvalidParameter(f"{name}=nan must be a number")
    return found


def row_of_numbers(name: str, value: object) -> Floats:
    """A list of numbers as an array of shape (n,). Raises `InvalidParameter` for other values."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.ndim == 1:
        return np.asarray(value, np.float64)
    return np.array([number(f"an entry of {name}", entry) for entry in items(name, value)], np.float64)


#: _INFINITIES has the infinities by the texts that stand for them in JSON.
_INFINITIES: Final = {"inf": math.inf, "-inf": -math.inf}


def _read_number(name: str, value: object) -> float:
    return _INFINITIES[value] if isinstance(value, str) and value in _INFINITIES else finite(name, value)


def array_of(kind: object) -> object:
    """The codec of an array whose JSON is the list type `kind`."""
    listed = codec_of(kind)
    return Codec(lambda values: listed.write(values.tolist()), listed.read, listed.schema)


#: ColumnNumber is the type of a column number, from 0.
ColumnNumber: TypeAlias = Annotated[int, whole_below(MOST_EVENT_COLUMNS)]
#: Number is the type of a number or an infinity; in JSON the infinities are the texts "inf" and "-inf".
Number: TypeAlias = Annotated[
    float,
    Codec(
        lambda value: value if math.isfinite(value) else "inf" if value > 0 else "-inf",
        _read_number,
        lambda _: {"anyOf": [{"type": "number"}, {"enum": list(_INFINITIES)}]},
    ),
]
#: NUMBERS_CODEC is the codec of an array of numbers of shape (n,).
NUMBERS_CODEC: Final = array_of(list[float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A number computed from each outcome that alone decides whether the outcome lies in an event.

    The event holds the outcomes with values in [low, high), or if `outside` all other outcomes; both ends are NaN for a
    list of values. `between` makes the event of another range, which must have one infinite end unless `two_ended`; it
    is None if the event is not a range. Events of the same statistic have equal `key`.
    """

    key: Hashable
    value: Callable[[Rows], Floats]  # the values (n,) of rows (n, any width); NaN where a row has no value
    describe: Callable[[str, Label | None], str]
    low: float = math.nan
    high: float = math.nan
    outside: bool = False
    between: Callable[[float, float], Event] | None = None
    two_ended: bool = True
    coordinate: int | None = None  # the entry (from 0) that is the value; None for a value computed from entries


def statistic_of(event: Event) -> Statistic | None:
    """The statistic that decides an event; None for kinds without a method `statistic`."""
    own = getattr(event, "statistic", None)
    found: Statistic | None = own() if callable(own) else None
    return found


def outcomes_of(event: Event) -> Rows | None:
    """The outcomes that an event lists, as rows; None for kinds without an attribute `rows`."""
    return getattr(event, "rows", None)


EventClass = TypeVar("EventClass", bound=type[Event])

#: _REGISTRY has the kinds of events that files may name.
_REGISTRY: Final = Family()


def register_event(kind: EventClass) -> EventClass:
    """Class decorator: make a kind of event readable from JSON, so that witnesses with it can be saved and replayed.

    A dataclass is written and read by its fields. Other classes have `to_json`, and a class method `from_json` that
    raises `KeyError`, `TypeError` or `ValueError` for a damaged event. A witness file never decides which code
    runs: another package's kind is known once its module is imported. Raises `ValueError` for a class whose `kind` is
    not a text, or is the `kind` of another class.
    """
    _REGISTRY.register(kind)
    return kind


def event_from_json(value: object) -> Event:
    """The event that unchecked JSON describes. Raises `InvalidWitness`."""
    if not isinstance(value, Mapping) or not isinstance(name := value.get("kind"), str):
        raise InvalidWitness(f"event {brief(value)} must be an object with a 'kind'")
    gone = {"split": "a graded event", "trees": "a score of decision trees", "weighted": "an event of weighted runs"}
    if name in gone:
        raise UnknownKind(f"event kind {name!r}, {gone[name]}: dpwitness 0.2 reads the file, later versions do not")
    if name not in _REGISTRY.kinds:
        raise UnknownKind.of("event", name, _REGISTRY.kinds)
    try:
        event: Event = _REGISTRY.read(name, "event", value)
        whole("width", event.width, 0, MOST_EVENT_COLUMNS)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else error
        raise InvalidWitness(f"event of kind {name!r} is damaged: {what}") from error
    return event


register(Event, Codec(write_object, lambda _, value: event_from_json(value), _REGISTRY.schema))


def codes_in(event: Event) -> set[float]:
    """The codes of texts, symbols and exceptions that an event compares with."""

    def numbers(value: object) -> Iterator[float]:
        if isinstance(value, float):
            yield value
        elif isinstance(value, Mapping):
            for item in value.values():
                yield from numbers(item)
        elif isinstance(value, list | tuple):
            for item in value:
                yield from numbers(item)

    return {number for number in numbers(event.to_json()) if is_code(number)}
