"""The protocol of events, how events are described and written, and the kinds of events by name."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Protocol, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

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
    FALSE,
    LEAST_NUMBER,
    NEGATIVE_ZERO,
    NESTED,
    SYMBOL,
    TEXT,
    TEXTS,
    TRUE,
    Rows,
    is_code,
    is_exception,
    text_code,
)

#: Entries of an outcome that a message shows, and how a mechanism returned those that stand for what is no number.
SHOWN: Final = 6
RETURNED: Final = {TRUE: "True", FALSE: "False", NEGATIVE_ZERO: "-0.0"}
#: How the labels of counts since 1970, or of lengths of time, begin that say of which unit alone: NumPy's.
COUNTED: Final = ("datetime64", "timedelta64")
#: The text behind a number, for mechanisms that return texts; None where a number is a number.
Label = Callable[[float], str | None]


class Counted(Protocol):
    """What is asked of a set of outcomes that runs are counted in."""

    __slots__ = ()

    @property
    def width(self) -> int:
        """How many columns decide membership: of entries from there on, at most whether there are any is looked at."""

    def contains(self, rows: Rows) -> NDArray[np.bool_]:
        """Which outcomes lie in the set.

        `rows` has the shape (n, any width); entries beyond its width are absent. The answer has the shape (n,).
        """


class Partition(Counted, Protocol):
    """A set that is made of some of the cells of a partition, of which all are counted."""

    __slots__ = ()

    @property
    def cells(self) -> int:
        """How many cells there are."""

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which of the cells the set is made of; shape (cells,)."""

    def cell_of(self, rows: Rows) -> NDArray[np.int64]:
        """The number of the cell that each outcome lies in, from 0; shape (n,)."""


def is_partition(event: Counted) -> TypeGuard[Partition]:
    """Whether a set is made of cells that are counted."""
    return callable(getattr(event, "cell_of", None))


class Event(Counted, Protocol):
    """A set of outcomes. An outcome is a row of numbers (see `encoding`), NaN where there is no value.

    A kind of event is one class with these members, made readable from JSON by `register_event`; a dataclass needs no
    `to_json` and no `from_json`. Its values don't change once they are made, and can be pickled.
    """

    __slots__ = ()

    kind: ClassVar[str]  # the name of the kind, as it stands in JSON

    @property
    def complexity(self) -> tuple[int, int]:
        """How much there is to say of the set; less is simpler.

        First the level: 0 for one outcome or one interval, 1 for several intervals, 2 for a list of outcomes, 3 for a
        set that only a formula describes. Then how many entries, bounds, sides, outcomes or terms there are.
        """

    def simpler(self) -> Sequence["Event"]:
        """Simpler events that are made of parts of this one; none where it has no parts."""
        return ()

    def rounded(self) -> Iterator["Event"]:
        """The same event with rounder numbers, the roundest first; only those that differ from it."""
        return iter(())

    def describe(self, noun: str = "value", label: Label | None = None) -> str:
        """The set in plain English; `noun` is what one entry is called, `label` gives the text behind a number."""

    def to_json(self) -> dict[str, object]:
        """Everything needed to build it again, with `kind` under the key "kind"; of a dataclass its fields."""
        return write_fields(self)


def widen(rows: Rows, width: int) -> Rows:
    """Rows of shape (…, n, at least `width`): those given, with absent entries appended where they are narrower."""
    if rows.shape[-1] >= width:
        return rows
    return np.concatenate([rows, np.full((*rows.shape[:-1], width - rows.shape[-1]), np.nan)], axis=-1)


def of_one_width(x: Rows, y: Rows, least: int = 0) -> tuple[Rows, Rows]:
    """Rows of D and of D′ with as many entries: at least so many."""
    width = max(x.shape[-1], y.shape[-1], least)
    return widen(x, width), widen(y, width)


#: The largest finite number.
LARGEST: Final = float(np.finfo(np.float64).max)
#: Columns of outcomes: these have 10,000 entries at most, and rows are made as wide as an event asks.
COLUMNS: Final = 1 << 14
#: Below this all whole numbers are exact.
EXACT: Final = 2.0**53
#: What is said of entries that are no number, where they are not all exceptions.
NO_NUMBER: Final = "no number"
#: How many digits rounded bounds and thresholds have, in turn.
DIGITS: Final = (1, 2, 3)
#: Entries that a text names of several.
NAMED: Final = 8
ORDINALS: Final = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip


class Noun(str):
    """What an entry of an outcome is called, and what is known of the entries of a mechanism's outcomes.

    `places`: names by coordinate, such as "column 'age', row 2", where outcomes have keys. `flags`: whether 0 and 1 are
    the answers ⊥ and ⊤. `mixed`: the coordinates at which there is more than numbers, and what else: "no number" (None,
    NaN, text), or "raises ValueError" where all else are exceptions. `single`: whether no outcome has more than one
    value. `dates`: the coordinates of dates, with
    their units, see `date_text`. `parts`: the coordinates of further entries of one value, as a date has, and where
    the first one stands.
    """

    __slots__ = ("dates", "flags", "mixed", "parts", "places", "single")
    places: Mapping[int, str]
    flags: bool
    mixed: Mapping[int, str]
    single: bool
    dates: Mapping[int, str]
    parts: Mapping[int, int]

    def __new__(
        cls, noun: str, places: Mapping[int, str] = MappingProxyType({}), *, flags: bool = False,
        mixed: Mapping[int, str] = MappingProxyType({}), single: bool = False,
        dates: Mapping[int, str] = MappingProxyType({}), parts: Mapping[int, int] = MappingProxyType({}),
    ) -> "Noun":  # fmt: skip
        """Make it of a noun, such as "answer"."""
        new = super().__new__(cls, noun)
        new.dates, new.parts = dates, parts
        new.places, new.flags, new.mixed, new.single = places, flags, mixed, single
        return new

    def date_unit(self, coordinate: int | None) -> str | None:
        """The unit of the dates at a coordinate; None where there are none, or dates of several units."""
        return None if coordinate is None else self.dates.get(coordinate) or None


def as_noun(noun: str) -> Noun:
    """A noun of which nothing more is known."""
    return noun if isinstance(noun, Noun) else Noun(noun)


def place_text(coordinate: int, noun: str) -> str:
    """An entry by its place: "first answer", "answer 11", "output" of one alone, or its name in a `Noun`."""
    noun = as_noun(noun)
    if coordinate in noun.places:
        return noun.places[coordinate]
    if noun.single and (coordinate == 0 or coordinate in noun.parts):
        return f"{noun} (part {coordinate + 1})" if coordinate else str(noun)
    return f"{ORDINALS[coordinate]} {noun}" if coordinate < len(ORDINALS) else f"{noun} {coordinate + 1}"


def places_text(width: int, noun: str) -> str:
    """The first so many entries, by their names where they have any."""
    if width == 1:
        return place_text(0, noun)
    if not as_noun(noun).places and not as_noun(noun).single:
        return f"the first {width} {noun}s"
    named = joined([place_text(c, noun) for c in range(min(width, NAMED))], more=width > NAMED)
    return f"({named} ({width} entries))" if width > NAMED else f"({named})"


def joined(texts: Sequence[str], *, more: bool = False) -> str:
    """Texts one after the other, with semicolons where one of them has a comma; `more`: whether others follow."""
    between = "; " if any("," in text for text in texts) else ", "
    return between.join([*texts, "…"] if more else texts)


def number_text(value: float) -> str:
    """A number with as many digits as it takes to compare with it; what is no number by its name."""
    if value <= NESTED and value not in TEXTS and value != -math.inf:
        if value > TEXT:
            return f"list of {round((value / NESTED - 1) * 2**32)}"
        return "another text" if value > SYMBOL else "an exception" if is_exception(value) else "another kind of value"
    if value in TEXTS:
        return TEXTS[value]
    value = float(value)
    short = f"{value:.0f}" if math.isfinite(value) and value.is_integer() and abs(value) < EXACT else f"{value:.4g}"
    return (short if float(short) == value else repr(value)).replace("-", "−").replace("inf", "∞")


def outcome_text(outcome: Sequence[float], label: Label, noun: Noun | None = None) -> str:
    """The values of an outcome on one line: texts and kinds of values by their names where `label` has them."""
    whole = {} if noun is None else whole_texts(outcome, noun, label)
    present = [(c, value) for c, value in enumerate(outcome) if value == value and whole.get(c, "") is not None]
    texts = [whole.get(c) or code_text(c, value, noun, label) or _entry_text(value) for c, value in present[:SHOWN]]
    return f"[{', '.join(texts)}{', …' if len(present) > SHOWN else ''}]"


def whole_texts(outcome: Sequence[float], noun: Noun, label: Label | None) -> dict[int, str | None]:
    """Values of several entries, the last the code of the exact value, each as one text.

    By coordinate: the texts where the first entries stand, None where the others do.
    """
    others = defaultdict[int, list[int]](list)
    for c in sorted(noun.parts):
        if c < len(outcome) and outcome[c] == outcome[c]:
            others[noun.parts[c]].append(c)
    texts: dict[int, str | None] = {}
    for first, further in others.items():
        *numbers, code = [outcome[c] for c in (first, *further)]
        if is_code(code) and all(LEAST_NUMBER <= number < math.inf for number in numbers):
            count = sum(map(int, numbers)) if len(numbers) > 1 else numbers[0]  # of whole numbers from 2^53 on
            exact, unit = label(code) if label else None, noun.date_unit(first)
            if exact is None or exact.startswith(COUNTED):
                exact = date_text(count, unit) if unit else exact and f"{number_text(count)} {exact}"
            if exact is not None:
                texts |= {**dict.fromkeys(further), first: exact}
    return texts


def code_text(coordinate: int, code: float, noun: Noun | None, label: Label | None) -> str | None:
    """The text behind a code; in quotes if it is a text that the mechanism returned where it returned dates, too."""
    text = label(code) if label else None
    if text is None or noun is None or coordinate not in noun.parts.values():
        return text
    return repr(text) if code == text_code(text) else text


def _entry_text(value: float) -> str:
    if value in RETURNED:
        return RETURNED[value]
    return number_text(value) if value < LEAST_NUMBER else f"{value:.6g}"


def text_at(coordinate: int | None, noun: str) -> Callable[[float], str]:
    """What makes texts of the numbers of an entry."""
    unit = as_noun(noun).date_unit(coordinate)
    return partial(date_text, unit=unit) if unit else number_text


def date_text(value: float, unit: str) -> str:
    """A date: so many of a unit of NumPy's since 1970, "s" with fractions; what is no date as a number."""
    if value in TEXTS or not LEAST_NUMBER <= value < math.inf:
        return number_text(value)
    try:
        # Of whole numbers the same are below 2.5 and below 3.
        count, unit = (round(value * 1e6), "us") if unit == "s" else (math.ceil(value), unit)
        text = str(np.int64(count).astype(f"datetime64[{unit}]")).replace("T", " ")
    except OverflowError:  # of no date that NumPy can hold
        return number_text(value)
    return (text.rstrip("0").removesuffix(".") if "." in text else text).removesuffix(" 00:00:00")


def is_date_unit(text: str) -> bool:
    """Whether a text is a unit of NumPy's dates, or so many of one."""
    return re.fullmatch(r"([1-9]\d{0,8})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)", text, re.ASCII) is not None


def column(value: object) -> int:
    """A column number, from 0. Raises `InvalidParameter`."""
    return value if type(value) is int and 0 <= value < COLUMNS else whole("coordinate", value, 0, COLUMNS - 1)


def edge(name: str, value: Any) -> float:
    """A number where outcomes begin or end, an infinity among them. Raises `InvalidParameter`, for NaN too."""
    found: float = value if type(value) in (float, int) else number(name, value)
    if found != found:
        raise InvalidParameter(f"{name}=nan must be a number")
    return found


def row_of_numbers(name: str, value: object) -> Rows:
    """A list of numbers as an array of one axis. Raises `InvalidParameter` for anything else."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.ndim == 1:
        return np.asarray(value, np.float64)
    return np.array([number(f"an entry of {name}", entry) for entry in items(name, value)], np.float64)


_INFINITIES: Final = {"inf": math.inf, "-inf": -math.inf}


def _read_number(name: str, value: object) -> float:
    return _INFINITIES[value] if isinstance(value, str) and value in _INFINITIES else finite(name, value)


def array_of(kind: object) -> object:
    """The codec of an array as lists of that type."""
    listed = codec_of(kind)
    return Codec(lambda values: listed.write(values.tolist()), listed.read, listed.schema)


#: A column number, from 0.
Column: TypeAlias = Annotated[int, whole_below(COLUMNS)]
#: A number, infinities among them: JSON knows none, so they are the texts "inf" and "-inf".
Number: TypeAlias = Annotated[
    float,
    Codec(
        lambda value: value if math.isfinite(value) else "inf" if value > 0 else "-inf",
        _read_number,
        lambda _: {"anyOf": [{"type": "number"}, {"enum": list(_INFINITIES)}]},
    ),
]
NUMBERS: Final = array_of(list[float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One value of each outcome that alone decides an event, and the events of other ranges of this value.

    The event holds the values from `low` up to, and without, `high`, or where `outside` all others; a list of values
    where both are NaN. `between` makes the event of another range, of one end alone unless `two_ended`; it is None
    where the event is no range. `key` is the same for all events of one statistic.
    """

    key: Hashable
    value: Callable[[Rows], Rows]  # of rows (n, any width) the values (n,); NaN where there is none
    describe: Callable[[str, Label | None], str]
    low: float = math.nan
    high: float = math.nan
    outside: bool = False
    between: Callable[[float, float], Event] | None = None
    two_ended: bool = True
    coordinate: int | None = None  # the entry (from 0) that is the value, None of others


def statistic_of(event: Event) -> Statistic | None:
    """The one value that decides an event; None for kinds that do not say so (a method `statistic`)."""
    own = getattr(event, "statistic", None)
    found: Statistic | None = own() if callable(own) else None
    return found


def outcomes_of(event: Event) -> Rows | None:
    """The outcomes that an event holds one by one; None for kinds that do not say so (an attribute `rows`)."""
    return getattr(event, "rows", None)


Kind = TypeVar("Kind", bound=type[Event])

_FAMILY: Final = Family()
#: Kinds of events in files of version 0.2 that later versions do not read, and what they are.
GONE: Final = {
    "split": "a graded event",
    "trees": "a score of decision trees",
    "weighted": "an event of weighted runs",
}


def register_event(kind: Kind) -> Kind:
    """Make a kind of event readable from JSON, so that witnesses with it can be saved and replayed; a class decorator.

    A dataclass is written and read by its fields. Other classes have `to_json`, and a class method `from_json` that
    raises `KeyError`, `TypeError` or `ValueError` for what is no such event. A witness file never decides which code
    runs: another package's kind is known once its module was imported. Raises `ValueError` for what is no class whose
    `kind` is a text, and where another class has the same `kind` already.
    """
    _FAMILY.register(kind)
    return kind


def event_from_json(value: object) -> Event:
    """Build an event from unchecked JSON; raises `InvalidWitness`."""
    if not isinstance(value, Mapping) or not isinstance(name := value.get("kind"), str):
        raise InvalidWitness(f"event {brief(value)} must be an object with a 'kind'")
    if name in GONE:
        raise UnknownKind(f"event kind {name!r}, {GONE[name]}: dpwitness 0.2 reads the file, later versions do not")
    if name not in _FAMILY.kinds:
        raise UnknownKind.of("event", name, _FAMILY.kinds)
    try:
        event: Event = _FAMILY.read(name, "event", value)
        whole("width", event.width, 0, COLUMNS)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else error
        raise InvalidWitness(f"event of kind {name!r} is damaged: {what}") from error
    return event


register(Event, Codec(write_object, lambda _, value: event_from_json(value), _FAMILY.schema))


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
