"""Two inputs, and what relations between numbers ask of them: one kind and shape, and where they differ.

In what two inputs differ besides their values: a verdict on such a pair may rest on that alone.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import brief, in_memory
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.difference import difference
from dpwitness.neighbours.inputs import Data, Input, as_finite_numbers, input_key, shown

#: How labels of pairs that attacks propose begin; what follows says what the inputs and the event mean.
ATTACK: Final = "attack: "
#: Inputs that are held at a time: both of some twenty candidates, and what they are computed from.
HELD: Final = 48


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two neighbouring inputs, of any kind, and why they were proposed."""

    json_keys: ClassVar[tuple[str, ...]] = ("input: data", "neighbour", "label")

    data: Input
    neighbour: Input
    label: str = field(default="given", metadata={"json": "optional"})

    @property
    def sides(self) -> tuple[Data, Data]:
        """D and D′."""
        return self.data, self.neighbour

    @property
    def key(self) -> frozenset[Hashable]:
        """What two pairs of the same inputs have in common, in either direction."""
        return frozenset(map(input_key, self.sides))

    def swapped(self) -> "Pair":
        """D′ and D."""
        return Pair(self.neighbour, self.data, self.label)

    def __str__(self) -> str:
        """Both inputs on one line, long ones shortened."""
        first, second = shown(self.data), shown(self.neighbour)
        return f"{first} and {second if first != second else difference(self.data, self.neighbour)}"


def make_pair(data: Any, neighbour: Any, label: str) -> Pair:
    """Two inputs of finite numbers as a pair. Raises `InvalidNeighbours` for anything else."""
    return Pair(as_finite_numbers(data), as_finite_numbers(neighbour), label)


def alike(pair: Pair) -> bool:
    """Whether both inputs are arrays of one shape and hold numbers of one kind, all of them finite."""
    first, second = pair.sides
    return (
        isinstance(first, np.ndarray)
        and isinstance(second, np.ndarray)
        and first.shape == second.shape
        and first.dtype.kind == second.dtype.kind
        and first.dtype.kind in "iuf"
        and bool(np.all(np.isfinite(first)) and np.all(np.isfinite(second)))
    )


def same_shape(data: Data, pair: Pair) -> bool:
    """Whether data are an array of the shape of a pair of arrays."""
    return isinstance(data, np.ndarray) and data.shape == pair.data.shape


def holds(pair: Pair, data: Data) -> bool:
    """Whether one of the two inputs is `data`: the same values of the same kinds in the same shape."""
    return input_key(data) in map(input_key, pair.sides)


def distances(pair: Pair) -> NDArray[np.float64]:
    """|D_i − D′_i|, without overflow or rounding for integers."""
    high: NDArray[Any]
    low: NDArray[Any]
    high, low = np.maximum(*pair.sides), np.minimum(*pair.sides)
    if high.dtype.kind in "iu":
        # The true difference is below 2^64, and unsigned subtraction is exact modulo 2^64.
        return (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    with np.errstate(over="ignore"):
        found: NDArray[np.float64] = high - low
    return found


def check_length(length: Any) -> None:
    """Raise `InvalidNeighbours` unless it is a whole number of at least 1, and memory has room for such inputs."""
    if isinstance(length, bool) or not (isinstance(length, int) and length >= 1):
        raise InvalidNeighbours(f"length={brief(length)} must be a whole number of at least 1")
    in_memory("length", length, 8 * HELD * length, InvalidNeighbours)


def check_flag(name: str, value: Any) -> None:
    """Raise `InvalidNeighbours` unless it is True or False."""
    if not isinstance(value, bool):
        raise InvalidNeighbours(f"{name}={brief(value)} must be True or False")


def check_noun(noun: Any) -> None:
    """Raise `InvalidNeighbours` unless it is a text."""
    if not isinstance(noun, str):
        raise InvalidNeighbours(f"noun={brief(noun)} must be a text")


def check_keys(kind: str, value: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Raise `InvalidNeighbours` unless an object of a file has these keys and no others."""
    if set(value) != set(names):
        found = ", ".join(sorted(map(str, value))) or "nothing"
        raise InvalidNeighbours(f"a relation of kind {kind} holds {', '.join(names)}, not {found:.80}")


def unlike(pair: Pair) -> str | None:
    """What the types of two arrays or tables differ in; None where it is nothing, or where they are neither.

    The relations of this package make no such pair, but a user may give one.
    """
    first, second = pair.sides
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and first.ndim and second.ndim:
        return _told("the type of their arrays", first.dtype, second.dtype)
    kinds = type(first).__name__, type(second).__name__
    if kinds == ("DataFrame", "DataFrame"):
        return _of_frames(first, second)
    tabular = {"DataFrame", "Series", "ndarray"} & set(kinds)
    numbers = any(isinstance(side, np.ndarray) and not side.ndim for side in pair.sides)
    return _told("their type", *kinds) if tabular and not numbers else None


def _of_frames(first: Any, second: Any) -> str | None:
    if list(first.columns) != list(second.columns):
        return _told("their columns", list(first.columns), list(second.columns))
    for k, name in enumerate(first.columns):
        told = _told(f"the type of column {name!r}", first.dtypes.iloc[k], second.dtypes.iloc[k])
        if told:
            return told
    kinds = [
        f"{type(frame.index).__name__} of {frame.index.dtype}, name {frame.index.name!r}" for frame in (first, second)
    ]
    return _told("their index", *kinds)


def _told(what: str, first: object, second: object) -> str | None:
    if repr(first) == repr(second):
        return None
    return f"{what} ({first!s:.60} and {second!s:.60})"
