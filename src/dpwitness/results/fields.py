"""The types of the fields of results, with their JSON, and the errors for damaged files."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from inspect import formatannotation
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, cast, get_args, get_origin, get_type_hints

from dpwitness.checks import brief, finite, is_of, json_value
from dpwitness.codec import (
    Codec,
    JsonFields,
    UnknownKind,
    codec_of,
    mapping,
    or_infinite,
    read_fields,
    whole_below,
)
from dpwitness.errors import BadInput, InvalidParameter, InvalidWitness
from dpwitness.files import read_text, shown
from dpwitness.values import value_from_json, value_to_json


def read_result(kind: object, what: str, value: object) -> Any:
    """Build a result from unchecked JSON; `what` names it in messages. Raises `InvalidWitness`, as `UnknownKind`."""
    try:
        return read_fields(kind, what, value) if isinstance(kind, type) else codec_of(kind).read(what, value)
    except KeyError as error:
        raise InvalidWitness(f"the {what} lacks {error}") from error
    except UnknownKind:  # the file may be whole
        raise
    except Exception as error:  # of a wrong value, and whatever a class of another package raises for one
        raise InvalidWitness(f"the {what} is damaged: {str(error) or type(error).__name__}") from error


def read_json(path: str | Path) -> object:
    """The JSON value of a file. Raises `InvalidData` where it cannot be read, `InvalidWitness` where it is no JSON."""
    try:
        return json_value(read_text(path), parse_constant=_refuse)
    except BadInput:
        raise
    except ValueError as error:
        raise InvalidWitness(f"{shown(path)} is not JSON: {error}") from error


def _refuse(name: str) -> float:
    raise InvalidWitness(f"{name} is no JSON number")


def _read_alpha(name: str, value: object) -> float:
    alpha = finite(name, value)
    if not 0 < alpha < 1:
        raise ValueError(f"{name}={alpha!r} must lie between 0 and 1")
    return alpha


def _read_parameters(name: str, value: object) -> dict[str, object]:
    parameters = {}
    for parameter, item in mapping(name, value).items():
        try:
            parameters[parameter] = value_from_json(item)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"parameter {parameter}={brief(item)} cannot be read: {error}") from error
    return parameters


_TEXTS: Final = codec_of(list[tuple[float, str]])

Count: TypeAlias = Annotated[int, whole_below(1 << 63)]
Seed: TypeAlias = Annotated[int, whole_below(1 << 128)]
Alpha: TypeAlias = Annotated[
    float,
    Codec(
        lambda value: value,
        _read_alpha,
        lambda _: {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    ),
]
#: A parameter that would have been detected: infinite, and null in JSON, where none would.
Detectable: TypeAlias = Annotated[float, or_infinite(math.inf)]
#: Parameters of a mechanism as they are built again; `dict[str, Any]` holds them as people read them.
Parameters: TypeAlias = Annotated[
    dict[str, Any],
    Codec(
        lambda given: {name: value_to_json(value) for name, value in given.items()},
        _read_parameters,
        lambda _: {"type": "object"},
    ),
]
#: Texts by the numbers that encode them.
Texts: TypeAlias = Annotated[
    Mapping[float, str],
    Codec(
        lambda texts: _TEXTS.write(list(texts.items())),
        lambda name, value: dict(_TEXTS.read(name, value)),
        _TEXTS.schema,
    ),
]


class CheckedFields(JsonFields):
    """A result: its text and its file may rely on the types of its fields.

    Raises `InvalidParameter` for a value that is not of the annotated type of its field, or not in the range that the
    codec of a number has.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, hint in _hints(kind).items():
            value, place = getattr(self, name), f"{kind.__name__}: {name}"
            wanted, codec = (get_args(hint) if get_origin(hint) is Annotated else (hint, None))[:2]
            if not is_of(value, hint):
                raise InvalidParameter(f"{place}={brief(value)} must be of the type {formatannotation(wanted)}")
            if isinstance(codec, Codec) and wanted in (int, float):
                try:
                    codec.read(place, codec.write(value))
                except ValueError as error:
                    raise InvalidParameter(str(error)) from error


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The annotations of the fields of a dataclass, by name."""
    hints = get_type_hints(kind, include_extras=True)
    return {one.name: hints[one.name] for one in fields(cast(Any, kind))}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """Paired runs by what they were made for, as a result states them; those of `confirm` are read from its counts."""

    search: Count
    epochs: Count | None = field(default=None, metadata={"json": "sparse"})
    confirm: Count = field(default=0, metadata={"json": "optional"})
