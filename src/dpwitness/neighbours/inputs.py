"""Inputs of a mechanism: any Python objects.

Numbers and numeric arrays are read-only arrays, the fast path. Any other object stays as it was given, and a mechanism
that could change it gets a fresh copy. A copy for each run would cost more than most runs, so many runs of plain Python
share one input as long as no run changes it.
"""

import copy
import pickle
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import DEEPEST_LEVEL, brief, too_deep
from dpwitness.codec import Codec
from dpwitness.errors import InvalidNeighbours
from dpwitness.frames import PANDAS, frames_of, is_series
from dpwitness.neighbours.domains import GREATEST_INT64
from dpwitness.values import value_from_json, value_to_json

#: An input: any Python object.
Data = Any
#: An array of any type of numbers.
Array = NDArray[Any]

#: The types of immutable values, which runs share.
ATOMS: Final = frozenset(
    {bool, int, float, complex, str, bytes, type(None), Decimal, Fraction, date, datetime, time, timedelta}
)


def as_input(value: object) -> Data:
    """A copy of a value as an input that nothing changes any more.

    A number becomes an array without axes, an array of numbers a read-only copy, any other value a deep copy. Raises
    `InvalidNeighbours` for a masked array, for an object that cannot be copied, and as `require_shallow` does.
    """
    require_unmasked(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return read_only(value.copy(order="K"))
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        large = isinstance(value, int) and abs(value) > GREATEST_INT64
        return value if large else as_numbers(value)
    require_shallow(value)
    try:
        return copier(value)()
    except InvalidNeighbours:
        raise
    except Exception as error:
        raise InvalidNeighbours(f"input {brief(value)} cannot be copied ({error}): give plain data") from error


def require_unmasked(data: object) -> None:
    """Raise `InvalidNeighbours` for a masked array, whose mask would be lost where inputs become arrays."""
    if isinstance(data, np.ma.MaskedArray):
        raise InvalidNeighbours(
            f"input {brief(data)} is a masked array, whose mask would be lost: give data.filled(np.nan), or "
            "data.tolist(), which has None in the place of masked entries"
        )


def require_shallow(data: Data, what: str = "an input") -> None:
    """Raise `InvalidNeighbours` for an object that holds itself, or is nested too deep for readers of inputs."""
    if too_deep(data):
        raise InvalidNeighbours(f"{what} holds itself, or is nested too deep")


def as_numbers(values: object) -> Array:
    """Numbers as a read-only array of int64 or, if any is a real number, of float64.

    Raises `InvalidNeighbours` for text, for lists of unequal lengths, and for whole numbers that 64 bits cannot hold.
    """
    try:
        array = np.array(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidNeighbours(f"input {brief(values)} must be a number or a list of numbers of one depth") from error
    if _too_large(values, array):
        raise InvalidNeighbours(f"input {brief(values)} must hold whole numbers from −2^63 to 2^63 − 1 only")
    if array.dtype.kind not in "biuf":
        raise InvalidNeighbours(f"input {brief(values)} must hold numbers only")
    with np.errstate(over="ignore"):  # a number that no double holds becomes infinite
        return read_only(array.astype(np.float64 if array.dtype.kind == "f" else np.int64))


def as_finite_numbers(values: object) -> Array:
    """Finite numbers as a read-only array. Raises `InvalidNeighbours` for NaN and infinities, and as `as_numbers`."""
    array = as_numbers(values)
    if not np.all(np.isfinite(array)):
        raise InvalidNeighbours(f"input {brief(values)} must hold finite numbers only")
    return array


def as_array(data: Data) -> Array | None:
    """An array of numbers, or a list of numbers or of flags of one depth, as an array; None for any other value."""
    if isinstance(data, np.ndarray):
        return data if data.dtype.kind in "biuf" else None
    if type(data) is not list or too_deep(data):
        return None
    kinds = _kinds_within(data) - {list}
    try:
        if kinds == {bool}:
            return read_only(np.array(data, bool))
        numbers = all(kind in (int, float) or issubclass(kind, np.integer | np.floating) for kind in kinds)
        return as_numbers(data) if numbers else None
    except (InvalidNeighbours, ValueError):  # a list of more than one depth, or a number too large
        return None


def read_only(array: Array) -> Array:
    """The array itself, made read-only."""
    array.flags.writeable = False
    return array


def _too_large(values: object, array: Array) -> bool:
    """Whether all values are whole numbers, and a value is outside the range of 64-bit integers.

    NumPy silently turns lists of such numbers into objects, unsigned integers or rounded floats.
    """
    if array.dtype.kind == "u":
        return bool(np.any(array > GREATEST_INT64))
    floats = array.dtype.kind == "f"
    if floats and (isinstance(values, np.ndarray) or not np.any(np.abs(array) >= 2.0**63)):
        return False
    if not floats and array.dtype.kind != "O":
        return False
    entries = np.array(values, object).ravel().tolist()
    return bool(entries) and all(isinstance(entry, int) for entry in entries)


def copier(data: Data) -> Callable[[], Data]:
    """A function that returns an input, a fresh copy for each call if a mechanism could change the input.

    An array without axes is a number. The copy of any other array is writable and keeps its order in memory:
    neighbours must not differ in either property.
    """
    if isinstance(data, np.ndarray) and not data.dtype.hasobject:
        if data.ndim == 0:
            number = data.item()
            return lambda: number
        return partial(data.copy, order="K")
    if _immutable(data):
        return lambda: data
    frames = frames_of(data)
    if frames is not None and frames.lent(data) is not None:
        return partial(frames.lent, data)
    try:
        # Deep copies of pandas' objects share labels and objects in columns. Protocol 5 would keep arrays read-only.
        return partial(pickle.loads, pickle.dumps(data, 4))
    except Exception:  # an object that cannot be pickled, such as a function, may raise anything
        return partial(copy.deepcopy, data)


def _immutable(value: Data) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(_immutable, value))
    return type(value) in ATOMS or (isinstance(value, np.generic) and not isinstance(value, np.void))


#: The containers whose pickles show every change; so do pickles of `ATOMS`, and of arrays of numbers, texts and times.
PICKLED_CONTAINERS: Final = frozenset({list, dict, tuple, set, frozenset})


def _kinds_within(data: Data) -> set[type]:
    """The types of an input and of all items in its containers; `object` for an array that may hold objects."""
    kinds: set[type] = set()
    level: list[Any] = [data]
    for _ in range(DEEPEST_LEVEL):
        inner: list[Any] = []
        for kind in set(map(type, level)):
            kinds.add(kind)
            own: list[Any] = [item for item in level if type(item) is kind]
            if kind in PICKLED_CONTAINERS:
                inner += chain.from_iterable(own)
                inner += chain.from_iterable(map(dict.values, own)) if kind is dict else ()
            elif kind is np.ndarray and any(item.dtype.kind not in "biufcSUmM" for item in own):
                kinds.add(object)
        if not inner:
            return kinds
        level = inner
    return {object}  # the input may hold itself


@dataclass(slots=True)
class SharedInput:
    """An input that many runs get and nothing else uses."""

    value: Data
    before: bytes  # the pickle of the value before the first run
    compared: bool = False  # whether the value was compared after a run

    @property
    def changed(self) -> bool:
        """Whether a run changed the value."""
        return _pickled(self.value) != self.before


def shared_input(value: Data) -> SharedInput | None:
    """The value as a shared input, which nothing else may use; None if a change could go unseen."""
    before = _pickled(value) if PANDAS.holds(value) or _pickles_show_all(value) else None
    return None if before is None else SharedInput(value, before)


def _pickled(data: Data) -> bytes | None:
    """An input as bytes, which also show whether its arrays are writable; None if it cannot be pickled."""
    with suppress(Exception):  # an object that a run put into the input may raise anything
        return PANDAS.state(data) if PANDAS.holds(data) else pickle.dumps(data, 5)
    return None


def _pickles_show_all(data: Data) -> bool:
    """Whether an input holds only `PICKLED_CONTAINERS`, `ATOMS` and arrays: other objects may hide a change."""
    return all(
        kind in ATOMS or kind in PICKLED_CONTAINERS or kind is np.ndarray
        or (issubclass(kind, np.generic) and kind is not np.void)
        for kind in _kinds_within(data)
    )  # fmt: skip


#: The number of entries of an array that are hashed at once: the copy of a large array would fill the memory.
DIGEST_ENTRIES: Final = 1 << 16


def input_key(data: Data) -> Hashable:
    """A key that is equal exactly for inputs of the same types, shapes and values.

    Signs of zeros and of NaN do not count in numbers and arrays. A list of numbers has the key of its array. An object
    that JSON cannot hold has a key of its own.
    """
    kind = type(data)
    if kind in (str, bool, type(None)):
        return kind.__name__, data
    if kind is int or kind is float:
        return kind.__name__, str(data + 0)
    array = as_array(data)
    if array is not None:
        return array.dtype.str, array.shape, _digest(np.ascontiguousarray(array).reshape(-1))
    if kind in (list, tuple, dict) and _kinds_within(data) <= ATOMS | {list, tuple, dict}:
        return kind.__name__, repr(data)  # a key for each record would take eight times as long
    if kind in (list, tuple):
        return kind.__name__, tuple(map(input_key, data))
    if kind is dict:
        return "dict", tuple((input_key(name), input_key(item)) for name, item in data.items())
    if isinstance(data, np.generic):
        return kind.__name__, str(data + 0)  # type: ignore[operator]  # a number
    written = value_to_json(data)
    if isinstance(written, dict) and "object" in written:
        return kind.__name__, id(data)
    return kind.__name__, repr(written)


def _digest(array: Array) -> bytes:
    """A digest of the entries of an array with one axis; −0.0 counts as 0.0, and every NaN as the same."""
    digest = blake2b(digest_size=16)
    for first in range(0, array.size, DIGEST_ENTRIES):
        part = array[first : first + DIGEST_ENTRIES]
        if array.dtype.kind == "f":
            part = part + array.dtype.type(0)
            part[np.isnan(part)] = np.nan
        digest.update(part.data)
    return digest.digest()


def shown(data: Data) -> str:
    """An input on one line; a long list is shown by its ends."""
    if isinstance(data, np.ndarray):
        return " ".join(np.array2string(data, threshold=12, separator=", ").split())
    frames = frames_of(data)
    if frames is not None:
        with suppress(InvalidNeighbours):  # times that `datetime` cannot hold
            columns = frames.columns(data)
            rows = len(next(iter(columns.values()), ()))
            text = ", ".join(f"{name}: {_brief_list(column)}" for name, column in columns.items())
            return f"{frames.noun} of {rows} {'row' if rows == 1 else 'rows'} ({text:.200})"
    if is_series(data):
        return f"Series {_brief_list(data.tolist())}"
    if type(data) is list:
        return _brief_list(data)
    if type(data) is tuple:
        return f"({', '.join(map(shown, data))})"
    return brief(data)


def _brief_list(items: list[Data]) -> str:
    """A list on one line; a long list is shown by its ends and the number of its items."""
    if len(items) <= 12:
        return f"[{', '.join(map(shown, items))}]"
    ends = [*map(shown, items[:3]), "…", *map(shown, items[-3:])]
    return f"[{', '.join(ends)}] ({len(items)} items)"


def input_to_json(data: Data) -> object:
    """An input as JSON values: integers, floats and arrays of them as numbers and lists; see `values` for the rest."""
    if isinstance(data, np.ndarray) and data.dtype in (np.int64, np.float64) and np.all(np.isfinite(data)):
        # A list has no order in memory and, without entries, no shape and no dtype.
        plain = data.flags.c_contiguous and (data.size or (data.ndim == 1 and data.dtype == np.float64))
        return data.tolist() if plain else value_to_json(data)
    return {"list": value_to_json(data)} if type(data) is list else value_to_json(data)


def input_from_json(value: Any) -> Data:
    """Build an input from unchecked JSON, without running code; an `UnreadableValue` stands for a lost value.

    Raises `InvalidNeighbours`.
    """
    if isinstance(value, int | float | list) and not isinstance(value, bool):
        return as_finite_numbers(value)
    try:
        listed = isinstance(value, dict) and set(value) == {"list"} and isinstance(value["list"], list)
        data = value_from_json(value["list"] if listed else value)
    except ValueError as error:
        raise InvalidNeighbours(f"input {brief(value)}: {error}") from error
    return as_input(data)


#: An input with its form in JSON.
Input: TypeAlias = Annotated[Data, Codec(input_to_json, lambda _, value: input_from_json(value))]


def exact_key(value: Data) -> Hashable:
    """A key that is equal exactly for values that a mechanism cannot tell apart, not even by type or sign."""
    if type(value) in ATOMS:  # most values, in a third of the time
        return type(value), repr(value)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, Mapping):
        return kind, tuple((exact_key(name), exact_key(item)) for name, item in value.items())
    if isinstance(value, list | tuple):
        return kind, tuple(map(exact_key, value))
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return kind, value.dtype.str, value.shape, value.strides, value.tobytes()
    return kind, repr(value)
