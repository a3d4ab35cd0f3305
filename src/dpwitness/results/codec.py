"""Results as JSON and back: a `Form` for each class, one pair of functions, `to_json` and `from_json`, for all of them.

What is read is data that nobody has checked. Each value is checked where it is read, an error names its field, and no
code of a file is run.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from dpwitness.candidate import CellsEstimate
from dpwitness.checks import brief, finite, text, whole
from dpwitness.claims import Claim, claim_from_json
from dpwitness.codec import codec_of
from dpwitness.errors import BadInput, InvalidNeighbours, InvalidWitness
from dpwitness.events import event_from_json
from dpwitness.evidence import Estimate
from dpwitness.evidence.counts import Counts
from dpwitness.files import read_text, shown
from dpwitness.neighbours import Relation, input_from_json, input_to_json, relation_from_json, relation_to_json
from dpwitness.values import value_from_json, value_to_json

T = TypeVar("T")

_REQUIRED: Final = object()
#: What a `get` gives for a key that is not written.
OMITTED: Final = object()


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value: `write` makes JSON of it; `read` takes a name and parsed JSON, and raises `BadInput`."""

    write: Callable[[Any], Any]
    read: Callable[[str, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of an object: its kind, where its value comes from, and what it is where a file lacks it."""

    kind: Kind
    get: Callable[[Any], Any] | None = None  # None: the attribute of the key's name
    default: Any = _REQUIRED
    derived: bool = False  # written for people, not read back


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """The keys of the object that stands for a `T`, in their order; `make` takes what was read of them by name."""

    make: Callable[..., T]
    keys: Mapping[str, Kind | Key] = field(kw_only=True)

    def write(self, value: T) -> dict[str, Any]:
        """Everything, as JSON values."""
        written = {}
        for name, key in _keys(self):
            part = getattr(value, name) if key.get is None else key.get(value)
            if part is not OMITTED:
                written[name] = key.kind.write(part)
        return written

    def read(self, name: str, value: Any) -> T:
        """Build it from parsed JSON called `name`. Raises `KeyError` for a missing key, else `BadInput`."""
        if not isinstance(value, Mapping):
            raise InvalidWitness(f"{name}={brief(value)} must be an object")
        found = {}
        for key_name, key in _keys(self):
            if not key.derived:
                given = value[key_name] if key.default is _REQUIRED else value.get(key_name, key.default)
                found[key_name] = key.kind.read(key_name, given)
        return self.make(**found)


def _keys(form: Form[Any]) -> list[tuple[str, Key]]:
    return [(name, key if isinstance(key, Key) else Key(kind=key)) for name, key in form.keys.items()]


def to_json(form: Form[T], value: T) -> dict[str, Any]:
    """A result, or a part of one, as JSON values without NaN and infinities."""
    return form.write(value)


def from_json(form: Form[T], value: Any, what: str) -> T:
    """Build what `to_json` wrote; `what` names it in messages. Raises `InvalidWitness`."""
    try:
        return form.read(what, value)
    except KeyError as error:
        raise InvalidWitness(f"the {what} lacks {error}") from error
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidWitness(f"the {what} is damaged: {error}") from error


def read_json(path: str | Path) -> Any:
    """The JSON value of a file. Raises `InvalidData` where it cannot be read, `InvalidWitness` where it is no JSON."""
    try:
        return json.loads(read_text(path), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise InvalidWitness(f"{shown(path)} is not JSON: {error}") from error


def _refuse(name: str) -> float:
    raise InvalidWitness(f"{name} is no JSON number")


def as_kind(form: Form[Any]) -> Kind:
    """A form as the kind of a value within another."""
    return Kind(form.write, form.read)


def optional(kind: Kind) -> Kind:
    """The kind, or null."""
    return Kind(
        lambda value: None if value is None else kind.write(value),
        lambda name, value: None if value is None else kind.read(name, value),
    )


def many(kind: Kind) -> Kind:
    """A list of values of one kind, a tuple here."""

    def read(name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise InvalidWitness(f"{name}={brief(value)} must be a list")
        return tuple(kind.read(name, item) for item in value)

    return Kind(lambda values: [kind.write(value) for value in values], read)


def plain(check: Callable[[str, Any], Any]) -> Kind:
    """What JSON has itself, checked when it is read."""
    return Kind(lambda value: value, check)


def whole_below(limit: int) -> Kind:
    """A whole number from 0 to below `limit`, a power of 2; 1.0 is none."""

    def read(name: str, value: Any) -> int:
        if isinstance(value, float) or not 0 <= whole(name, value, 0, error=InvalidWitness) < limit:
            raise InvalidWitness(f"{name}={brief(value)} must be a whole number below 2^{limit.bit_length() - 1}")
        return int(value)

    return plain(read)


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidWitness(f"{name}={brief(value)} must be an object")
    return dict(value)


def _parameters(name: str, value: Any) -> dict[str, Any]:
    found = {}
    for parameter, item in _object(name, value).items():
        try:
            found[parameter] = value_from_json(item)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidWitness(f"parameter {parameter}={brief(item)} cannot be read: {error}") from error
    return found


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidWitness(f"{name}={brief(value)} must be true or false")
    return value


def _relation(relation: Relation) -> dict[str, Any] | None:
    """A relation as it can be read back; None for one that only another package could build again."""
    written = relation_to_json(relation)
    try:
        relation_from_json(written)
    except InvalidNeighbours:
        return None
    return written


TEXT: Final = plain(lambda name, value: text(name, value, InvalidWitness))
FLAG: Final = plain(_flag)
NUMBER: Final = plain(lambda name, value: finite(name, value, InvalidWitness))
WHOLE: Final = whole_below(1 << 63)
NULL: Final = Kind(lambda _: None, lambda *_: None)
#: JSON has no infinity: null, and a reason beside it.
OR_INFINITE: Final = Kind(
    lambda value: value if math.isfinite(value) else None,
    lambda name, value: math.inf if value is None else NUMBER.read(name, value),
)
SEED: Final = whole_below(1 << 128)
SECONDS: Final = Kind(lambda value: round(value, 3), NUMBER.read)
#: Parameters as people read them; those of a witness, which must be rebuilt, are `PARAMETERS`.
OBJECT: Final = plain(_object)
PARAMETERS: Final = Kind(lambda given: {name: value_to_json(value) for name, value in given.items()}, _parameters)
VERSIONS: Final = plain(
    lambda name, value: {
        TEXT.read("a name", package): TEXT.read("a version", version)
        for package, version in _object(name, value).items()
    }
)
INPUT: Final = Kind(input_to_json, lambda _, value: input_from_json(value))
RELATION: Final = Kind(_relation, lambda _, value: relation_from_json(value))
EVENT: Final = Kind(lambda event: event.to_json(), lambda _, value: event_from_json(value))
CLAIM: Final = Kind(codec_of(Claim).write, lambda _, value: claim_from_json(value))
COUNTS: Final = as_kind(
    Form(
        lambda **found: Counts(**found),
        keys={
            **dict.fromkeys(("n10", "n11", "n01", "n00"), WHOLE),
            "cells": Key(kind=many(WHOLE), get=lambda counts: counts.cells or OMITTED, default=[]),
        },
    )
)
#: A bet on cells: logarithms of ratios, and a table of probabilities.
_CELLS: Final = as_kind(
    Form(
        CellsEstimate,
        keys={"joint": many(NUMBER), "order": NUMBER, "log_ratios": many(NUMBER), "against": NUMBER},
    )
)
ESTIMATE: Final = as_kind(
    Form(
        Estimate,
        keys={
            "p": NUMBER,
            "q": NUMBER,
            "both": Key(kind=optional(NUMBER), default=None),
            "cells": Key(kind=optional(_CELLS), get=lambda estimate: estimate.cells or OMITTED, default=None),
        },
    )
)
