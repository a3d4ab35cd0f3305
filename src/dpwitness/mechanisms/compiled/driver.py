"""From a plain function to machine code: one driver module per mechanism, written once and cached on disk.

numba's on-disk cache never hits for a closure over a mechanism, but does for a small module that imports it. So each
mechanism gets such a module, in a file named by a fingerprint of the mechanism and of everything it refers to (numba
itself does not notice when a callee changes).
"""

import hashlib
import importlib.util
import math
import os
import sys
import types as pytypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from dpwitness import noise
from dpwitness.cache import cache_folder, private_folder
from dpwitness.events import encoding
from dpwitness.events.encoding import FALSE, LOW_BITS, NEGATIVE_ZERO, NONE, NOT_A_NUMBER, TRUE, WHOLE
from dpwitness.jit import inlined
from dpwitness.mechanisms.compiled import scratch
from dpwitness.mechanisms.compiled.reach import digest, is_numba, rebuilt

LOW_MASK: Final = (1 << LOW_BITS) - 1

DRIVER = '''"""Runs one mechanism on both inputs; written by dpwitness, safe to delete.

With `coupled`, both sides of a paired run start from the same state of the generator, and the next run starts
behind the draws of both: state[3] is SFC64's counter of draws, state[4] the half of a word that 32-bit draws leave.
`position` holds the number of the run and how much it has taken of the scratch memory.
"""
from dpwitness.mechanisms.compiled.driver import WAITING, borrow, place
import numba, numpy

mechanism = WAITING.pop("{key}")


@numba.njit(nogil=True, cache={cache})
def fill(rng, state, coupled, data, neighbour, parameters, rows, position, memory):
    generator, scratch = borrow(rng), (borrow(memory), borrow(position))
    pair = (borrow(data), borrow(neighbour))
    before, after = numpy.empty(5, numpy.uint64), numpy.empty(5, numpy.uint64)
    runs = rows.shape[0] // 2
    longest = 0
    for i in range(runs):
        for k in range(5):  # word by word: a slice would bring in numba's formatting of errors, 2 s of compiling
            before[k] = state[k]
        for side in range(2):  # one call in the text: inlined twice it takes twice as long to compile
            position[0], position[1] = side * runs + i, 0
            given = pair[side]
            row = side * runs + i
            length = place(rows, row, 0, mechanism({arguments}))
            for j in range(length, rows.shape[1]):
                rows[row, j] = numpy.nan
            longest = max(longest, length)
            if coupled and side == 0:
                for k in range(5):
                    after[k] = state[k]
                    state[k] = before[k]
        if coupled:
            if after[3] > state[3]:
                for k in range(5):
                    state[k] = after[k]
            # The half word that one side has left the other may have used: the next run must not see it.
            state[4] = 0
    return longest
'''

#: Mechanisms on their way into a driver module that is just being imported, by fingerprint.
WAITING: dict[str, Any] = {}


def _untyped(value: Any) -> Any:
    """Numba's inner functions have no types; mypy is told so here, once."""
    return value


@intrinsic
def borrow(typing_context: Any, value: Any) -> Any:
    """Give the value without its reference count: the caller of `fill` holds it all the while.

    A counted argument costs two atomic operations a run, 10 ns each for generator and data.
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
    """The value of an optional that is known to be there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        inner = context.cast(builder, arguments[0], value, value.type)
        # The caller gives up one count of what is returned; without one of its own the memory is freed twice.
        context.nrt.incref(builder, value.type, inner)
        return inner

    return value.type(value), generate


def place(rows: Any, i: int, j: int, value: Any) -> int:
    """Write `value` into row i from column j on, as far as the row goes; return the column behind it.

    Compiled code only; a type that is listed nowhere below is refused by numba's typing.
    """
    raise NotImplementedError


#: `encoding.nested`, compiled.
nested_length = inlined(encoding.nested)


@inlined
def real(x: Any) -> Any:
    """A float as an entry: NaN and −0 have values of their own."""
    if x < 0 or x > 0:  # one branch for nearly all
        return x
    if x != x:
        return NOT_A_NUMBER
    return NEGATIVE_ZERO if math.copysign(1.0, x) < 0 else 0.0


@overload(place, jit_options={"forceinline": True})
def _place(rows: Any, i: Any, j: Any, value: Any) -> Any:
    if isinstance(value, types.Integer) and _untyped(value).bitwidth == 64:

        def whole(rows: Any, i: Any, j: Any, value: Any) -> Any:
            if -WHOLE < value < WHOLE:
                if j < rows.shape[1]:
                    rows[i, j] = value
                return j + 1
            if j < rows.shape[1]:
                rows[i, j] = value >> LOW_BITS << LOW_BITS
            if j + 1 < rows.shape[1]:
                rows[i, j + 1] = value & LOW_MASK
            return j + 2

        return whole
    if isinstance(value, types.Integer):

        def small(rows: Any, i: Any, j: Any, value: Any) -> Any:
            if j < rows.shape[1]:
                rows[i, j] = value
            return j + 1

        return small
    if isinstance(value, types.Float):

        def number(rows: Any, i: Any, j: Any, value: Any) -> Any:
            if j < rows.shape[1]:
                rows[i, j] = real(value)
            return j + 1

        return number
    if isinstance(value, types.Boolean):

        def flag(rows: Any, i: Any, j: Any, value: Any) -> Any:
            if j < rows.shape[1]:
                rows[i, j] = TRUE if value else FALSE
            return j + 1

        return flag
    if isinstance(value, types.NoneType):

        def nothing(rows: Any, i: Any, j: Any, value: Any) -> Any:
            if j < rows.shape[1]:
                rows[i, j] = NONE
            return j + 1

        return nothing
    if isinstance(value, types.Optional):

        def optional(rows: Any, i: Any, j: Any, value: Any) -> Any:
            return place(rows, i, j, None) if value is None else place(rows, i, j, present(value))  # type: ignore[call-arg]  # numba gives the typing context

        return optional
    if isinstance(value, types.Array) and value.ndim == 1 and isinstance(value.dtype, types.Float):
        # The common case by itself: one call an entry would cost 20 ns each.
        def array(rows: Any, i: Any, j: Any, value: Any) -> Any:
            for k in range(min(len(value), rows.shape[1] - j)):
                rows[i, j + k] = real(value[k])
            return j + len(value)

        return array
    if (isinstance(value, types.Array) and value.ndim == 1) or isinstance(
        value, types.List | types.ListType | types.UniTuple
    ):
        nested = isinstance(value.dtype, types.Array | types.List | types.ListType | types.BaseTuple)

        def sequence(rows: Any, i: Any, j: Any, value: Any) -> Any:
            for k in range(len(value)):
                if nested:
                    j = place(rows, i, j, nested_length(len(value[k])))
                j = place(rows, i, j, value[k])
            return j

        return sequence
    if isinstance(value, types.BaseTuple):
        if len(value) == 0:

            def empty(rows: Any, i: Any, j: Any, value: Any) -> Any:
                return j

            return empty
        nested = isinstance(_untyped(value)[0], types.Array | types.List | types.ListType | types.BaseTuple)
        if nested:

            def several(rows: Any, i: Any, j: Any, value: Any) -> Any:
                return place(
                    rows, i, place(rows, i, place(rows, i, j, nested_length(len(value[0]))), value[0]), value[1:]
                )

        else:

            def several(rows: Any, i: Any, j: Any, value: Any) -> Any:
                return place(rows, i, place(rows, i, j, value[0]), value[1:])

        return several
    return None


def load_driver(mechanism: Callable[..., Any], arguments: list[str], *, keep: bool = True) -> Callable[..., int]:
    """Return the `fill` of a mechanism (see `DRIVER`), from the cache where it is there.

    `arguments`: the expressions to call it with, in order. `keep`: whether machine code may be kept on disk. Numba
    compiles, and may refuse, when it is first called.
    """
    call = ", ".join(arguments)
    key, complete = fingerprint(mechanism, call)
    name = f"_dpwitness_driver_{key}"
    try:
        path = _written(cache_folder() if keep and complete else private_folder(), name, key, call)
    except OSError:  # a full disk, or a folder that has just been removed
        path = _written(private_folder(), name, key, call)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    WAITING[key] = machine_code(mechanism)
    # numba unpickles cached code by module name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    fill: Callable[..., int] = module.fill
    return fill


def _written(folder: Path, name: str, key: str, call: str) -> Path:
    """The file of a driver module; one that says something else is written anew."""
    path = folder / f"{name}.py"
    text = DRIVER.format(key=key, arguments=call, cache=folder != private_folder())
    if not path.exists() or path.read_text() != text:
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        partial.write_text(text)
        partial.replace(path)
    return path


def machine_code(mechanism: Any) -> Any:
    """A mechanism as numba is to compile it: anew, with all that it calls, and with bounds checks.

    A numba function that was compiled before holds the globals of then; and out of bounds it reads what lies there.
    """

    def remake(copy: pytypes.FunctionType, options: dict[str, Any]) -> Any:
        return numba.jit(**{**options, "boundscheck": True})(copy)

    function = getattr(mechanism, "py_func", mechanism)
    given = mechanism.targetoptions if is_numba(mechanism) else {"nopython": True, "nogil": True, "forceinline": True}
    return remake(rebuilt(function, remake), given)


def fingerprint(mechanism: Callable[..., Any], call: str) -> tuple[str, bool]:
    """Hash a mechanism with all that it reaches; and whether machine code may be kept under that name."""
    found = hashlib.sha256()
    own = [Path(file).read_bytes() for file in (__file__, scratch.__file__, encoding.__file__, noise.__file__)]
    for part in (*own, call, sys.version, numba.__version__, np.__version__):
        found.update(repr(part).encode())
    parts, complete = digest(mechanism)
    found.update(parts)
    if not complete:
        found.update(os.urandom(16))
    return found.hexdigest()[:24], complete
