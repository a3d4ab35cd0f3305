"""Machine code of plain functions: one driver module per mechanism, written once and cached on disk.

numba's on-disk cache never hits for a closure over a mechanism, but does for a small module that imports it. So each
mechanism gets a small module, in a file named by a fingerprint of the mechanism and of everything it refers to (numba
itself does not notice when a callee changes).
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

#: The text of the module that runs one mechanism on both inputs.
DRIVER = '''"""Runs one mechanism on both inputs; written by dpwitness, safe to delete.

`order[i]` is 1 where D′ comes first in paired run i.
`state` is the living state of `rng`. With `coupled`, both sides of a paired run start from the same state, and the next
run starts behind the draws of both: state[3] is SFC64's counter of draws, state[4] the half of a word that 32-bit draws
leave. `position` holds the number of the run.
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
    # Word by word, and no function of numba's: arrays of five words and `max` are a tenth of the time of compiling.
    a0 = a1 = a2 = a3 = a4 = numpy.uint64(0)
    for i in range(runs):
        b0, b1, b2, b3, b4 = state[0], state[1], state[2], state[3], state[4]
        for turn in range(2):  # one call in the text: inlined twice it takes twice as long to compile
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
            # The half word that one side has left the other may have used: the next run must not see it.
            state[4] = 0
    return longest
'''

#: The text of the module that runs one function.
FUNCTION_MODULE = '''"""Runs one function; written by dpwitness, safe to delete."""
from dpwitness.mechanisms.compiled.driver import MECHANISMS

function = MECHANISMS.pop("{key}")


def call(*values):
    return function(*values)
'''

#: The beginnings of lines of numba's messages that say where it failed, not why.
PLACE_LINES: Final = (
    "Failed in", "During", "File ", "raised from", "There are", "- Of which", ">>>", "^", "- Resolution failure",
)  # fmt: skip


class Refused(Exception):
    """Numba cannot compile a mechanism; the message is numba's."""


def reason(message: str) -> str:
    """The line of numba's message that says why, with the call that numba has no code for."""
    # Without colours, which numba writes wherever colorama is installed.
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", message).splitlines()]
    why = next((line for line in lines if line and not line.startswith(PLACE_LINES)), "no reason given")
    if why.startswith("No implementation of function") and "place" in why:
        return "it returns something else than numbers and flags"
    calls = [line[4:] for line in lines if line.startswith(">>> ")]
    if calls and why.endswith(":"):
        why = f"{why} {calls[0]}"
    return why if len(why) <= 160 else f"{why[:159]}…"


#: The mechanisms of driver modules that are being imported, by fingerprint.
MECHANISMS: dict[str, object] = {}
#: The drivers that this process has loaded, by their files.
DRIVERS: dict[Path, Any] = {}


def load_driver(mechanism: Callable[..., object], arguments: list[str]) -> Any:
    """Return the `fill` of a mechanism (see `DRIVER`), with its machine code from the cache if it is there.

    `arguments`: the expressions to call it with, in order. Numba compiles, and may refuse, when it is first called.
    """
    return _load(mechanism, DRIVER, "fill", ", ".join(arguments))


def compiled(function: Callable[..., object]) -> Any:
    """A function with all that it calls as machine code, without the GIL, from the cache if it is there."""
    return _load(function, FUNCTION_MODULE, "call", "")


def _load(function: Callable[..., object], text: str, name: str, call: str) -> Any:
    """The function `name` of a module of this text, which runs `function`."""
    key, complete = fingerprint(function, text + call)
    module = f"_dpwitness_driver_{key}"
    text = text.format(key=key, arguments=call)
    try:
        path = _written(cache_folder() if complete else private_folder(), module, text)
    except OSError:  # a full disk, or a folder that has just been removed
        path = _written(private_folder(), module, text)
    # The key holds every value and function that is reached: in one process the same key is the same machine code.
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
    """Import a driver module."""
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    MECHANISMS[key] = mechanism
    sys.modules[name] = module  # numba unpickles cached code by module name
    spec.loader.exec_module(module)
    return module


def _written(folder: Path, name: str, text: str) -> Path:
    """The file of a driver module; a file with another text is written anew. Raises `OSError`."""
    path, own = folder / f"{name}.py", text.encode()
    if not path.exists() or path.read_bytes() != own:
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        partial.write_bytes(own)
        partial.replace(path)
    return path


def machine_code(mechanism: Any) -> Any:
    """A function as numba is to compile it: anew, with its present globals and callees, and with bounds checks.

    A numba function that was compiled before holds its earlier globals, and reads any memory out of bounds. Raises
    `Refused` for a function that enters numba's `objmode`.
    """
    numba = jit.with_numba()

    def remake(copy: pytypes.FunctionType, options: Mapping[str, object]) -> Any:
        if enters_python(copy):
            # Python code may keep an object from run to run that compiled code does not show.
            raise Refused("it enters objmode, which is plain Python within machine code")
        return numba.jit(**{**options, "boundscheck": True})(copy)

    function = getattr(mechanism, "py_func", mechanism)
    copy = rebuilt(function, remake, helpers=True)
    return remake(copy, mechanism.targetoptions if is_numba(mechanism) else INLINE_OPTIONS)


@cache
def _own_code() -> tuple[bytes, ...]:
    """The files that stand behind every driver."""
    here = Path(__file__)
    rows = here.with_name("rows.py")  # importing it imports numba
    files = (here, rows, *(Path(str(module.__file__)) for module in (encoding, jit)))
    return tuple(file.read_bytes() for file in files)


def fingerprint(function: Callable[..., object], text: str) -> tuple[str, bool]:
    """The hash of a module's text and of all that a function reaches; whether it may name machine code on disk."""
    code = hashlib.sha256()
    for part in (*_own_code(), text, sys.version, version("numba"), version("numpy")):
        code.update(repr(part).encode())
    reached, complete = digest(function)
    code.update(reached)
    if not complete:
        code.update(os.urandom(16))
    return code.hexdigest()[:24], complete
