"""Machine code of plain functions: one driver module per mechanism, written once and cached on disk.

numba's cache never hits for a closure over a mechanism, but does for a small module that imports it. The module's file
is named by a fingerprint of the mechanism and of all that it reaches: numba does not notice a changed callee.
"""

import hashlib
import importlib.util
import os
import re
import sys
import types as pytypes
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from dpwitness import jit
from dpwitness.events import encoding
from dpwitness.machine import cache_folder, private_folder
from dpwitness.mechanisms.compiled.reach import INLINE_OPTIONS, digest, enters_python, is_numba, rebuilt

#: The source of a module that runs one mechanism on both inputs.
DRIVER = '''"""Runs one mechanism on both inputs; written by dpwitness, safe to delete.

`order[i]` is 1 where D′ comes first in paired run i.
`state` is the live state of `rng`. With `coupled`, both sides of a paired run start from the same state, and the next
run starts behind the draws of both: state[3] is SFC64's counter of draws, state[4] the half-word that 32-bit draws
leave. `position` holds the row of the present run.
"""
from dpwitness.mechanisms.compiled.driver import MECHANISMS
from dpwitness.mechanisms.compiled.rows import borrow, place
import numpy

mechanism = MECHANISMS.pop("{key}")


def fill(rng, state, coupled, order, data, neighbour, parameters, rows, position):
    generator, outcomes = borrow(rng), borrow(rows)
    pair = (borrow(data), borrow(neighbour))
    runs = rows.shape[0] // 2
    longest = 0
    # Word by word: copies of arrays and `max` would take a tenth of the time of compiling.
    a0 = a1 = a2 = a3 = a4 = numpy.uint64(0)
    for i in range(runs):
        b0, b1, b2, b3, b4 = state[0], state[1], state[2], state[3], state[4]
        for turn in range(2):  # one call in the source: two inlined calls take twice as long to compile
            side = turn ^ order[i]
            position[0] = side * runs + i
            given = pair[side]
            row = side * runs + i
            length = place(outcomes, row, 0, mechanism({arguments}))
            for j in range(length, rows.shape[1]):
                outcomes[row, j] = numpy.nan
            if length > longest:
                longest = length
            if coupled and turn == 0:
                a0, a1, a2, a3, a4 = state[0], state[1], state[2], state[3], state[4]
                state[0], state[1], state[2], state[3], state[4] = b0, b1, b2, b3, b4
        if coupled:
            if a3 > state[3]:
                state[0], state[1], state[2], state[3], state[4] = a0, a1, a2, a3, a4
            # The half-word that one side leaves may have been used by the other side: the next run must not use it.
            state[4] = 0
    return longest
'''

#: The source of a module that runs one function.
FUNCTION_MODULE = '''"""Runs one function; written by dpwitness, safe to delete."""
from dpwitness.mechanisms.compiled.driver import MECHANISMS

function = MECHANISMS.pop("{key}")


def call(*values):
    return function(*values)
'''

#: The beginnings of lines of numba's messages that name the place of a failure, not its reason.
PLACE_LINES: Final = (
    "Failed in", "During", "File ", "raised from", "There are", "- Of which", ">>>", "^", "- Resolution failure",
)  # fmt: skip


class Refused(Exception):
    """Numba cannot compile a mechanism; the text is numba's message, see `reason`."""


def reason(message: str) -> str:
    """The reason in numba's message, in one line, with the call that numba has no code for."""
    # numba writes colours if colorama is installed.
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", message).splitlines()]
    why = next((line for line in lines if line and not line.startswith(PLACE_LINES)), "no reason given")
    if why.startswith("No implementation of function") and "place" in why:
        return "it returns something else than numbers and flags"
    calls = [line[4:] for line in lines if line.startswith(">>> ")]
    if calls and why.endswith(":"):
        why = f"{why} {calls[0]}"
    return why if len(why) <= 160 else f"{why[:159]}…"


#: The mechanisms of driver modules during their import, by fingerprint.
MECHANISMS: dict[str, object] = {}
#: The drivers that this process has loaded, by file.
DRIVERS: dict[Path, Any] = {}


def load_driver(mechanism: Callable[..., object], arguments: list[str]) -> Any:
    """Return the function `fill` of a mechanism's `DRIVER`, with machine code from the cache if it is there.

    `arguments`: the expressions of the mechanism's arguments, in order. Numba compiles, or refuses, at the first call.
    """
    return _load(mechanism, DRIVER, "fill", ", ".join(arguments))


def compiled(function: Callable[..., object]) -> Any:
    """A function and its callees as machine code, from the cache if it is there; it runs without the GIL."""
    return _load(function, FUNCTION_MODULE, "call", "")


def _load(function: Callable[..., object], text: str, name: str, arguments: str) -> Any:
    """The function `name` of the module with the source `text`, which runs `function`."""
    key, complete = fingerprint(function, text + arguments)
    module = f"_dpwitness_driver_{key}"
    text = text.format(key=key, arguments=arguments)
    try:
        path = _written(cache_folder() if complete else private_folder(), module, text)
    except OSError:  # a full disk, or a folder that was removed
        path = _written(private_folder(), module, text)
    # A complete key covers every value and function that is reached: the same key means the same machine code.
    if complete and path in DRIVERS:
        return DRIVERS[path]
    run = getattr(_module(machine_code(function), module, path, key), name)
    run = jit.with_numba().njit(nogil=True)(run)
    if path.parent != private_folder():
        run = jit.kept(run, path.parent)
    if complete:
        DRIVERS[path] = run
    return run


def _module(mechanism: Any, name: str, path: Path, key: str) -> pytypes.ModuleType:
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    MECHANISMS[key] = mechanism
    sys.modules[name] = module  # numba unpickles cached code by module name
    spec.loader.exec_module(module)
    return module


def _written(folder: Path, name: str, text: str) -> Path:
    """The file of a driver module with the source `text`, written if need be. Raises `OSError`."""
    path, content = folder / f"{name}.py", text.encode()
    if not path.exists() or path.read_bytes() != content:
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        partial.write_bytes(content)
        partial.replace(path)
    return path


def machine_code(mechanism: Any) -> Any:
    """A numba function of new copies of a mechanism and its callees, with present globals and with bounds checks.

    A numba function that was compiled before has its earlier globals, and does not check bounds. Raises `Refused` for a
    function that enters numba's `objmode`.
    """
    numba = jit.with_numba()

    def remake(copy: pytypes.FunctionType, options: Mapping[str, object]) -> Any:
        if enters_python(copy):
            # Its Python code may keep an object from run to run.
            raise Refused("it enters objmode, which is plain Python within machine code")
        return numba.jit(**{**options, "boundscheck": True})(copy)

    function = getattr(mechanism, "py_func", mechanism)
    copy = rebuilt(function, remake, helpers=True)
    return remake(copy, mechanism.targetoptions if is_numba(mechanism) else INLINE_OPTIONS)


@cache
def _own_code() -> tuple[bytes, ...]:
    """The content of this package's files on which every driver depends."""
    here = Path(__file__)
    rows = here.with_name("rows.py")  # importing it imports numba
    files = (here, rows, *(Path(str(module.__file__)) for module in (encoding, jit)))
    return tuple(file.read_bytes() for file in files)


def fingerprint(function: Callable[..., object], text: str) -> tuple[str, bool]:
    """The hash of a module's source and of all that a function reaches, and whether the hash is complete.

    An incomplete hash is made random, so that no stored machine code is used for it.
    """
    code = hashlib.sha256()
    for part in (*_own_code(), text, sys.version, version("numba"), version("numpy")):
        code.update(repr(part).encode())
    reached, complete = digest(function)
    code.update(reached)
    if not complete:
        code.update(os.urandom(16))
    return code.hexdigest()[:24], complete
