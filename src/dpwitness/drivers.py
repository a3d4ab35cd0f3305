"""From a plain function to machine code: one driver module per mechanism, written once and cached on disk.

numba's on-disk cache never hits for a closure over a mechanism, but does for a small module that imports it. So each
mechanism gets such a module, in a file named by a fingerprint of the mechanism and of everything it refers to (numba
itself does not notice when a callee changes).
"""

import hashlib
import importlib.util
import os
import sys
import tempfile
import types as pytypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from dpwitness import scratch

DRIVER = '''"""Runs one mechanism on both inputs; written by dpwitness, safe to delete.

With `coupled`, both sides of a paired run start from the same state of the generator, and the next run starts
behind the draws of both: state[3] is SFC64's counter of draws. `position` holds the number of the run and how much it
has taken of the scratch memory.
"""
from dpwitness.drivers import WAITING, borrow, place
import numba, numpy

mechanism = WAITING.pop("{key}")


@numba.njit(nogil=True, cache=True)
def fill(rng, state, coupled, inputs, parameters, rows, position, memory):
    generator, pair, scratch = borrow(rng), borrow(inputs), (borrow(memory), borrow(position))
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
        if coupled and after[3] > state[3]:
            for k in range(5):
                state[k] = after[k]
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
        return context.cast(builder, arguments[0], value, value.type)

    return value.type(value), generate


def place(rows: Any, i: int, j: int, value: Any) -> int:
    """Write `value` into row i from column j on, as far as the row goes; return the column behind it.

    Compiled code only; a type that is listed nowhere below is refused by numba's typing.
    """
    raise NotImplementedError


def nothing(rows: Any, i: Any, j: Any, value: Any) -> Any:
    """An output with no value: the row goes on where it was."""
    return j


@overload(place, jit_options={"forceinline": True})
def _place(rows: Any, i: Any, j: Any, value: Any) -> Any:
    if isinstance(value, types.Number | types.Boolean):

        def number(rows: Any, i: Any, j: Any, value: Any) -> Any:
            if j < rows.shape[1]:
                rows[i, j] = value
            return j + 1

        return number
    if isinstance(value, types.NoneType):
        return nothing
    if isinstance(value, types.Optional):

        def optional(rows: Any, i: Any, j: Any, value: Any) -> Any:
            return j if value is None else place(rows, i, j, present(value))  # type: ignore[call-arg]  # numba gives the typing context

        return optional
    if isinstance(value, types.Array) and value.ndim == 1 and isinstance(value.dtype, types.Number | types.Boolean):
        # The common case by itself: one call an entry would cost 20 ns each.
        def array(rows: Any, i: Any, j: Any, value: Any) -> Any:
            for k in range(min(len(value), rows.shape[1] - j)):
                rows[i, j + k] = value[k]
            return j + len(value)

        return array
    if isinstance(value, types.List | types.ListType | types.UniTuple):

        def sequence(rows: Any, i: Any, j: Any, value: Any) -> Any:
            for k in range(len(value)):
                j = place(rows, i, j, value[k])
            return j

        return sequence
    if isinstance(value, types.BaseTuple):
        if len(value) == 0:
            return nothing

        def several(rows: Any, i: Any, j: Any, value: Any) -> Any:
            return place(rows, i, place(rows, i, j, value[0]), value[1:])

        return several
    return None


def load_driver(mechanism: Callable[..., Any], arguments: list[str]) -> Callable[..., int]:
    """Return the `fill` of a mechanism (see `DRIVER`), from the cache where it is there.

    `arguments`: the expressions to call it with, in order. Numba compiles, and may refuse, when it is first called.
    """
    function = getattr(mechanism, "py_func", mechanism)  # a dispatcher stays what its author made of it
    dispatcher = mechanism if function is not mechanism else numba.njit(nogil=True, forceinline=True)(mechanism)
    call = ", ".join(arguments)
    key, stable = fingerprint(function, call)
    folder = cache_folder() if stable else Path(tempfile.mkdtemp(prefix="dpwitness-"))
    name = f"_dpwitness_driver_{key}"
    path = folder / f"{name}.py"
    text = DRIVER.format(key=key, arguments=call)
    if not path.exists() or path.read_text() != text:
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        partial.write_text(text)
        partial.replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    WAITING[key] = dispatcher
    # numba unpickles cached code by module name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    fill: Callable[..., int] = module.fill
    return fill


def cache_folder() -> Path:
    """Where driver modules are kept: $DPWITNESS_CACHE_DIR, else the user's cache folder, else a temporary one."""
    given = os.environ.get("DPWITNESS_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(given) if given else Path(base) / "dpwitness"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass  # a read-only home: compile anew in each process rather than refuse to work
    return Path(tempfile.mkdtemp(prefix="dpwitness-"))


def fingerprint(function: Callable[..., Any], call: str) -> tuple[str, bool]:
    """Hash a function with all that it refers to; and whether that hash will be the same in the next process."""
    digest = hashlib.sha256()
    stable = True
    own = [Path(file).read_bytes() for file in (__file__, scratch.__file__)]
    for part in (*own, call, sys.version, numba.__version__, np.__version__):
        digest.update(repr(part).encode())
    for part in _parts(function, set()):
        if part is None:
            stable = False
        else:
            digest.update(part)
    if not stable:
        digest.update(os.urandom(16))
    return digest.hexdigest()[:24], stable


def _parts(value: Any, seen: set[int]) -> Iterator[bytes | None]:
    """Everything that decides what a function does, as bytes; None for what cannot be told."""
    value = getattr(value, "py_func", value)
    if isinstance(value, pytypes.FunctionType):
        if id(value) in seen:
            return
        seen.add(id(value))
        # numba's cached code imports the module by name: of one that only this process knows nothing may be kept.
        yield f"{value.__module__}.{value.__qualname__}".encode() if value.__module__ in sys.modules else None
        yield from _parts(value.__code__, seen)
        yield repr(value.__kwdefaults__).encode()
        for default in value.__defaults__ or ():
            yield from _parts(default, seen)
        for cell in value.__closure__ or ():
            yield from _parts(cell.cell_contents, seen)
        for name in sorted(_names(value.__code__)):
            if name in value.__globals__:
                yield name.encode()
                yield from _parts(value.__globals__[name], seen)
    elif isinstance(value, pytypes.CodeType):
        yield value.co_code
        yield repr((value.co_names, value.co_varnames, value.co_freevars)).encode()
        for constant in value.co_consts:
            yield from _parts(constant, seen)
    elif isinstance(value, pytypes.ModuleType):
        yield f"{value.__name__} {getattr(value, '__version__', '')}".encode()
        file = getattr(value, "__file__", None)
        if not hasattr(value, "__version__") and file and file.endswith(".py"):
            yield Path(file).read_bytes()  # somebody's own helpers: what is called in them may have changed
    elif isinstance(value, bool | int | float | complex | str | bytes | type(None) | type(...) | range):
        yield repr(value).encode()
    elif isinstance(value, tuple | list | frozenset):
        for item in sorted(value, key=repr) if isinstance(value, frozenset) else value:
            yield from _parts(item, seen)
        yield str(len(value)).encode()
    elif isinstance(value, np.ndarray | np.generic):
        yield repr((value.dtype, value.shape)).encode()
        yield value.tobytes()
    elif isinstance(value, type | pytypes.BuiltinFunctionType | np.ufunc):
        yield f"{getattr(value, '__module__', '')} {getattr(value, '__qualname__', value.__name__)}".encode()
    else:
        yield None


def _names(code: pytypes.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, pytypes.CodeType))
    return set(code.co_names).union(*(_names(part) for part in inner))
