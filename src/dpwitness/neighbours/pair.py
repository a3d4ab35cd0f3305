"""Two inputs, and what every relation asks of them: numbers of one kind and shape, and where they differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours

Data = NDArray[Any]

LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two neighbouring inputs, read-only arrays of one shape, and why they were proposed."""

    data: Data
    neighbour: Data
    label: str = "given"

    def swapped(self) -> "Pair":
        """D′ and D."""
        return Pair(self.neighbour, self.data, self.label)

    def __str__(self) -> str:
        """Both inputs on one line, long ones shortened."""
        return f"{shown(self.data)} and {shown(self.neighbour)}"


def as_input(values: Any) -> Data:
    """An input as a read-only array: integers stay integers, everything else becomes floats.

    Raises `InvalidNeighbours` for text, nesting of unequal lengths, NaN or infinities, and for whole numbers that
    64 bits cannot hold.
    """
    try:
        array = np.array(values)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidNeighbours(f"input {brief(values)} must be a number or a list of numbers of one depth") from error
    kind = array.dtype.kind
    if _too_large(values, array):
        raise InvalidNeighbours(f"input {brief(values)} must hold whole numbers from −2^63 to 2^63 − 1 only")
    if kind not in "biuf":
        raise InvalidNeighbours(f"input {brief(values)} must hold numbers only")
    with np.errstate(over="ignore"):  # what a double cannot hold becomes infinite, and is refused
        array = array.astype(np.int64 if kind in "biu" else np.float64)
    if not np.all(np.isfinite(array)):
        raise InvalidNeighbours(f"input {brief(values)} must hold finite numbers only")
    array.flags.writeable = False
    return array


def _too_large(values: Any, array: Data) -> bool:
    """Whether whole numbers were given that a 64-bit integer cannot hold.

    NumPy turns such lists into objects, unsigned integers, or, without a word, into rounded floats.
    """
    if array.dtype.kind == "u":
        return bool(np.any(array > LARGEST))
    floats = array.dtype.kind == "f"
    if floats and (isinstance(values, np.ndarray) or not np.any(np.abs(array) >= 2.0**63)):
        return False
    if not floats and array.dtype.kind != "O":
        return False
    entries = np.array(values, object).ravel().tolist()
    return bool(entries) and all(isinstance(entry, int) for entry in entries)


def make_pair(data: Any, neighbour: Any, label: str) -> Pair:
    """Two inputs as a pair. Raises `InvalidNeighbours` as `as_input` does."""
    return Pair(as_input(data), as_input(neighbour), label)


def shown(data: Data) -> str:
    """An input on one line; of a long one only the ends."""
    return " ".join(np.array2string(np.asarray(data), threshold=12, separator=", ").split())


def alike(pair: Pair) -> bool:
    """Whether both inputs have one shape and hold numbers of one kind, all of them finite."""
    first, second = pair.data, pair.neighbour
    return (
        first.shape == second.shape
        and first.dtype.kind == second.dtype.kind
        and first.dtype.kind in "iuf"
        and bool(np.all(np.isfinite(first)) and np.all(np.isfinite(second)))
    )


def holds(pair: Pair, data: Data) -> bool:
    """Whether one of the two inputs is `data`: the same numbers of the same kind in the same shape."""
    return any(
        side.dtype.kind == data.dtype.kind and side.shape == data.shape and np.array_equal(side, data)
        for side in (pair.data, pair.neighbour)
    )


def distances(pair: Pair) -> NDArray[np.float64]:
    """|D_i − D′_i|, without overflow or rounding for integers."""
    high, low = np.maximum(pair.data, pair.neighbour), np.minimum(pair.data, pair.neighbour)
    if high.dtype.kind in "iu":
        # The true difference is below 2^64, and unsigned subtraction is exact modulo 2^64.
        return (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    with np.errstate(over="ignore"):
        found: NDArray[np.float64] = high - low
    return found


def check_length(length: Any) -> None:
    """Raise `InvalidNeighbours` unless it is a whole number of at least 1."""
    if isinstance(length, bool) or not (isinstance(length, int) and length >= 1):
        raise InvalidNeighbours(f"length={brief(length)} must be a whole number of at least 1")


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
