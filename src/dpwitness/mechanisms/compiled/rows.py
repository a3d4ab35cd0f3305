"""Outcomes as rows by position, in compiled code, in the encoding of `dpwitness.events.encoding`.

Numba chooses the implementation of `place` by the type of the value, and refuses types that `_place` does not list. It
requires equal annotations of `place`, its implementations, and `_place`, although `_place` gets types.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from dpwitness.arrays import Rows
from dpwitness.events import encoding
from dpwitness.events.encoding import EXACT_INTEGER_LIMIT, FALSE, LOW_BITS, NEGATIVE_ZERO, NONE, NOT_A_NUMBER, TRUE
from dpwitness.jit import inlined

#: The bits of −0.0 as an integer of 64 bits.
NEGATIVE_ZERO_BITS: Final = -(1 << 63)
#: The mask of the low bits of an integer of 64 bits, which are the second entry of a large integer.
LOW_MASK: Final = (1 << LOW_BITS) - 1


def _untyped(value: Any) -> Any:
    return value  # functions of numba have no annotations: an `Any` here satisfies mypy


@intrinsic
def borrow(typing_context: Any, value: Any) -> Any:
    """Return an array or a generator without its reference count, or any other value as it is.

    The caller of `fill` holds a reference meanwhile. A counted argument costs two atomic operations a run, 10 ns each.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not isinstance(value, types.Array | types.NumPyRandomGeneratorType):
            return arguments[0]
        struct = _untyped(cgutils).create_struct_proxy(value)(context, builder, value=arguments[0])
        struct.meminfo = _untyped(cgutils).get_null_value(struct.meminfo.type)
        return struct._getvalue()

    return value(value), generate


@intrinsic
def present(typing_context: Any, value: Any) -> Any:
    """Return the value of an optional that is not None."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        inner = context.cast(builder, arguments[0], value, value.type)
        # The caller releases one reference to the result: without this reference the memory would be freed twice.
        context.nrt.incref(builder, value.type, inner)
        return inner

    return value.type(value), generate


#: The function `encoding.nested`, compiled.
nested_length = inlined(encoding.nested)


@inlined
def real(x: float) -> float:
    """Return the entry of a float: NaN and −0 are encoded, other floats unchanged.

    The order of tests makes both branches rare: a branch that is taken at random costs 3 ns an entry.
    """
    if x != x:
        return NOT_A_NUMBER
    if np.float64(x).view(np.int64) == NEGATIVE_ZERO_BITS:
        return NEGATIVE_ZERO
    return x


def place(rows: Rows, i: int, j: int, value: Any) -> int:
    """Write a value into row i from column j on, cut off at the end of the row; return the column behind the value.

    For compiled code only.
    """
    raise NotImplementedError


def _whole(rows: Rows, i: int, j: int, value: Any) -> int:
    """Write an integer of 64 bits; it has two entries if a float cannot hold it."""
    if -EXACT_INTEGER_LIMIT < value < EXACT_INTEGER_LIMIT:
        if j < rows.shape[1]:
            rows[i, j] = value
        return j + 1
    if j < rows.shape[1]:
        rows[i, j] = value >> LOW_BITS << LOW_BITS
    if j + 1 < rows.shape[1]:
        rows[i, j + 1] = value & LOW_MASK
    return j + 2


def _small(rows: Rows, i: int, j: int, value: Any) -> int:
    if j < rows.shape[1]:
        rows[i, j] = value
    return j + 1


def _number(rows: Rows, i: int, j: int, value: Any) -> int:
    if j < rows.shape[1]:
        rows[i, j] = real(value)
    return j + 1


def _flag(rows: Rows, i: int, j: int, value: Any) -> int:
    if j < rows.shape[1]:
        rows[i, j] = TRUE if value else FALSE
    return j + 1


def _nothing(rows: Rows, i: int, j: int, value: Any) -> int:
    if j < rows.shape[1]:
        rows[i, j] = NONE
    return j + 1


def _optional(rows: Rows, i: int, j: int, value: Any) -> int:
    return place(rows, i, j, None) if value is None else place(rows, i, j, present(value))  # type: ignore[call-arg]  # numba gives the typing context


def _floats(rows: Rows, i: int, j: int, value: Any) -> int:
    """Write an array of floats in one loop: a call for each entry would cost 20 ns each."""
    free = rows.shape[1] - j  # `min` would be another function to compile
    for k in range(len(value) if len(value) < free else free):
        rows[i, j + k] = real(value[k])
    return j + len(value)


def _sequence(rows: Rows, i: int, j: int, value: Any) -> int:
    for k in range(len(value)):
        j = place(rows, i, j, value[k])
    return j


def _nested_sequence(rows: Rows, i: int, j: int, value: Any) -> int:
    """Write the sequences within a sequence, each as its length and its entries."""
    for k in range(len(value)):
        j = place(rows, i, place(rows, i, j, nested_length(len(value[k]))), value[k])
    return j


def _empty_tuple(rows: Rows, i: int, j: int, value: Any) -> int:
    return j


def _tuple(rows: Rows, i: int, j: int, value: Any) -> int:
    return place(rows, i, place(rows, i, j, value[0]), value[1:])


def _nested_tuple(rows: Rows, i: int, j: int, value: Any) -> int:
    return place(rows, i, place(rows, i, place(rows, i, j, nested_length(len(value[0]))), value[0]), value[1:])


#: The types of sequences, whose length is an entry if they are within a sequence.
NESTED_TYPES: Final = types.Array | types.List | types.ListType | types.BaseTuple


@overload(place, jit_options={"forceinline": True})
def _place(rows: Rows, i: int, j: int, value: Any) -> Callable[..., Any] | None:
    """The implementation of `place` for the numba type `value`; None for a type that no outcome has."""
    if isinstance(value, types.Integer):
        return _whole if _untyped(value).bitwidth == 64 else _small
    for kind, code in (
        (types.Float, _number),
        (types.Boolean, _flag),
        (types.NoneType, _nothing),
        (types.Optional, _optional),
    ):
        if isinstance(value, kind):
            return code
    if isinstance(value, types.Array) and value.ndim != 1:
        return None
    if isinstance(value, types.Array) and isinstance(value.dtype, types.Float):
        return _floats
    if isinstance(value, types.Array | types.List | types.ListType | types.UniTuple):
        return _nested_sequence if isinstance(value.dtype, NESTED_TYPES) else _sequence
    if isinstance(value, types.BaseTuple):
        if len(value) == 0:
            return _empty_tuple
        return _nested_tuple if isinstance(_untyped(value)[0], NESTED_TYPES) else _tuple
    return None
