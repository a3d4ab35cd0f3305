"""The types of the fields of results, with their JSON, and the errors for damaged files."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from dpwitness.checks import brief, finite, json_value
from dpwitness.codec import Codec, UnknownKind, codec_of, mapping, or_infinite, read_fields, whole_below
from dpwitness.errors import BadInput, InvalidWitness
from dpwitness.files import read_text, shown
from dpwitness.values import value_from_json, value_to_json

T = TypeVar("T")


def read_result(kind: type[T] | Codec[T], what: str, value: object) -> T:
    """The result in unchecked JSON, called `what` in messages. Raises `InvalidWitness` or `UnknownKind`."""
    try:
        found: T = kind.read(what, value) if isinstance(kind, Codec) else read_fields(kind, what, value)
        return found
    except KeyError as error:
        raise InvalidWitness(f"the {what} lacks {error}") from error
    except UnknownKind:  # the file may be undamaged
        raise
    except Exception as error:  # a wrong value; another package's class may raise anything
        raise InvalidWitness(f"the {what} is damaged: {str(error) or type(error).__name__}") from error


def read_json(path: str | Path) -> object:
    """The JSON value of a file. Raises `InvalidData` for an unreadable file, `InvalidWitness` for one without JSON."""
    try:
        return json_value(read_text(path), parse_constant=_refuse)
    except BadInput:
        raise
    except ValueError as error:
        raise InvalidWitness(f"{shown(path)} is not JSON: {error}") from error


def _refuse(name: str) -> float:
    raise InvalidWitness(f"{name} is not a number in JSON")


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


#: _TEXTS_CODEC is the codec of pairs of a number and its text.
_TEXTS_CODEC: Final = codec_of(list[tuple[float, str]])

#: Count is the type of a number of runs, below 2^63.
Count: TypeAlias = Annotated[int, whole_below(1 << 63)]
#: Seed is the type of a seed, below 2^128.
Seed: TypeAlias = Annotated[int, whole_below(1 << 128)]
#: Alpha is the type of a false-alarm probability, above 0 and below 1.
Alpha: TypeAlias = Annotated[
    float,
    Codec(
        lambda value: value,
        _read_alpha,
        lambda _: {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    ),
]
#: Detectable is the type of a detectable parameter: infinite (null in JSON) if no parameter is detectable.
Detectable: TypeAlias = Annotated[float, or_infinite(math.inf)]
#: Parameters is the type of a mechanism's own parameters; `dict[str, Any]` holds parameters for people.
Parameters: TypeAlias = Annotated[
    dict[str, Any],
    Codec(
        lambda given: {name: value_to_json(value) for name, value in given.items()},
        _read_parameters,
        lambda _: {"type": "object"},
    ),
]
#: Texts is the type of texts by the numbers that encode them.
Texts: TypeAlias = Annotated[
    Mapping[float, str],
    Codec(
        lambda texts: _TEXTS_CODEC.write(list(texts.items())),
        lambda name, value: dict(_TEXTS_CODEC.read(name, value)),
        _TEXTS_CODEC.schema,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """The numbers of paired runs of each stage of a result; readers take `confirm` from the counts."""

    search: Count
    epochs: Count | None = field(default=None, metadata={"json": "sparse"})
    confirm: Count = field(default=0, metadata={"json": "optional"})
