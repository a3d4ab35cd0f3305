"""From a plain function to machine code: one driver module per mechanism, written once and cached on disk.

numba's on-disk cache never hits for a closure over a mechanism, but does for a small module that imports it. So each
mechanism gets such a module, in a file named by a fingerprint of the mechanism and of everything it refers to (numba
itself does not notice when a callee changes).
"""

import dis
import hashlib
import importlib.util
import math
import os
import sys
import types as pytypes
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpwitness import jit, noise
from dpwitness.events import encoding
from dpwitness.images import Compiled
from dpwitness.machine import cache_folder, numba_cache, private_folder
from dpwitness.mechanisms.compiled import scratch
from dpwitness.mechanisms.compiled.reach import digest, enters_python, is_numba, rebuilt
from dpwitness.mechanisms.compiled.refusals import Refused

DRIVER = '''"""Runs one mechanism on both inputs; written by dpwitness, safe to delete.

`order[i]` is 1 where D′ comes first in paired run i.
All runs draw from a copy of the generator's state, which is written back in the end.
With `coupled`, both sides of a paired run start from the same state of the generator, and the next run starts
behind the draws of both: state[3] is SFC64's counter of draws, state[4] the half of a word that 32-bit draws leave.
`position` holds the number of the run and how much it has taken of the scratch memory.
"""
from dpwitness.mechanisms.compiled.driver import WAITING
from dpwitness.mechanisms.compiled.rows import borrow, place
from dpwitness.sfc64 import copied, drawing_from
import numba, numpy

mechanism = WAITING.pop("{key}")


@numba.njit(nogil=True, cache={cache})
def fill(rng, own_state, coupled, order, data, neighbour, parameters, rows, position, memory):
    state = copied(own_state)
    generator, scratch = drawing_from(rng, state), (borrow(memory), borrow(position))
    pair, outcomes = (borrow(data), borrow(neighbour)), borrow(rows)
    runs = rows.shape[0] // 2
    longest = 0
    # Word by word, and no function of numba's: arrays of five words and `max` are a tenth of the time of compiling.
    a0 = a1 = a2 = a3 = a4 = numpy.uint64(0)
    for i in range(runs):
        b0, b1, b2, b3, b4 = state[0], state[1], state[2], state[3], state[4]
        for turn in range(2):  # one call in the text: inlined twice it takes twice as long to compile
            side = turn ^ order[i]
            position[0], position[1] = side * runs + i, 0
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
    for k in range(len(state)):
        own_state[k] = state[k]
    return longest
'''

#: Mechanisms on their way into a driver module that is just being imported, by fingerprint.
WAITING: dict[str, object] = {}
#: Drivers that were loaded in this process, by their files.
LOADED: dict[Path, Callable[..., int]] = {}


def load_driver(mechanism: Callable[..., object], arguments: list[str], *, on_disk: bool = True) -> Callable[..., int]:
    """Return the `fill` of a mechanism (see `DRIVER`), from the cache where it is there.

    `arguments`: the expressions to call it with, in order. `on_disk`: whether machine code may be stored for other
    processes. Numba compiles, and may refuse, when it is first called.
    """
    call = ", ".join(arguments)
    key, complete = fingerprint(mechanism, call)
    name = f"_dpwitness_driver_{key}"
    try:
        path = _written(cache_folder() if on_disk and complete else private_folder(), name, key, call)
    except OSError:  # a full disk, or a folder that has just been removed
        path = _written(private_folder(), name, key, call)
    # The key holds every value and function that is reached: in one process the same key is the same machine code.
    if complete and path in LOADED:
        return LOADED[path]
    kept = on_disk and complete and path.parent != private_folder()
    make = partial(_module, machine_code(mechanism), name, path, key)
    fill = Compiled(make, (lambda: key) if kept else None, lambda: path.parent, read_only=True)
    if complete:
        LOADED[path] = fill
    return fill


def _module(mechanism: jit.Inlined, name: str, path: Path, key: str, callable: bool) -> Any:
    """Import a driver module; its `fill`, as numba's dispatcher."""
    numba = jit.with_numba()
    scratch.teach_numba()
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    WAITING[key] = mechanism
    # numba unpickles cached code by module name.
    sys.modules[name] = module
    with numba_cache():
        spec.loader.exec_module(module)
    return module.fill if callable else numba.njit(nogil=True, **jit.BARE)(module.fill.py_func)


def _written(folder: Path, name: str, key: str, call: str) -> Path:
    """The file of a driver module; one that says something else is written anew."""
    path = folder / f"{name}.py"
    text = DRIVER.format(key=key, arguments=call, cache=folder != private_folder())
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    return path


def machine_code(mechanism: Any) -> jit.Inlined:
    """A mechanism as numba is to compile it: as it is now, anew, with all that it calls, and with bounds checks.

    A numba function that was compiled before holds the globals of then; and out of bounds it reads what lies there.
    Raises `Refused` for one that enters numba's `objmode`.
    """

    def remake(copy: pytypes.FunctionType, options: Mapping[str, object]) -> jit.Inlined:
        if enters_python(copy):
            raise Refused("it enters objmode, where Python would draw from another state of the generator")
        copy.__code__ = without_imports(copy.__code__)
        return jit.Inlined(copy, {**options, "boundscheck": True})

    function = getattr(mechanism, "py_func", mechanism)
    given = mechanism.targetoptions if is_numba(mechanism) else jit.INLINED
    return remake(rebuilt(function, remake), given)


#: Modules that numba knows. They are loaded already: their import does nothing but give a variable its value.
IMPORTED: Final = {"math": math, "numpy": np, "numpy.random": np.random, "dpwitness.noise": noise}


def without_imports(code: pytypes.CodeType) -> pytypes.CodeType:
    """The code with constants in the place of its imports of `IMPORTED`, which numba cannot compile.

    `import math`, `from math import exp` and `import numpy.random as r` store the same as before in the same variables
    at the same places. Of imports that stand behind a branch, or are stored anywhere else than in local variables of
    their own, the code stays as it is; and numba then refuses it.
    """
    steps = list(dis.get_instructions(code))
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    written, constants = bytearray(code.co_code), list(code.co_consts)

    def write(step: dis.Instruction, name: str, value: int = 0) -> None:
        written[step.offset : step.offset + 2] = bytes([dis.opmap[name], value])

    for k, step in enumerate(steps):
        if step.opcode in (*dis.hasjrel, *dis.hasjabs) or step.is_jump_target:
            break
        if step.opname != "IMPORT_NAME":
            continue
        level, members = steps[k - 2 : k]
        module, taken = IMPORTED.get(step.argval), [step]
        # An import gives the outermost package, unless it is followed by what is taken from the module.
        source = module if members.argval else sys.modules.get(step.argval.partition(".")[0])
        if members.argval:  # from module import members
            taken += steps[k + 1 : k + 1 + 2 * len(members.argval) : 2]
        elif steps[k + 1].opname == "IMPORT_FROM":  # import package.module as name
            taken.append(steps[k + 1])
        stores = [steps[steps.index(one) + 1] for one in (taken[1:] or taken)]
        if (
            module is None
            or sys.modules.get(step.argval) is not module
            or level.argval != 0
            or any(one.opname not in ("LOAD_CONST", "LOAD_SMALL_INT") for one in (level, members))
            or any(one.opname != "STORE_FAST" or one.argval in parameters for one in stores)
            or not all(hasattr(source, one.argval) for one in taken[1:])
            or len(constants) + len(taken) > 256
        ):
            return code
        for one in (level, members):
            write(one, "NOP")
        for one in taken:
            write(one, "LOAD_CONST", len(constants))
            constants.append(source if one is step else getattr(source, one.argval))
    return code.replace(co_code=bytes(written), co_consts=tuple(constants))


@cache
def _own_code() -> tuple[bytes, ...]:
    """The files that stand behind every driver."""
    here = Path(__file__)
    imported = [Path(str(module.__file__)) for module in (scratch, encoding, noise, jit)]
    others = here.with_name("rows.py"), Path(noise.__file__).with_name("sfc64.py")  # importing them imports numba
    files = (here, *imported, *others)
    return tuple(file.read_bytes() for file in files)


def fingerprint(mechanism: Callable[..., object], call: str) -> tuple[str, bool]:
    """Hash a mechanism with all that it reaches; and whether machine code may be kept under that name."""
    code = hashlib.sha256()
    for part in (*_own_code(), call, sys.version, version("numba"), version("numpy")):
        code.update(repr(part).encode())
    reached, complete = digest(mechanism)
    code.update(reached)
    if not complete:
        code.update(os.urandom(16))
    return code.hexdigest()[:24], complete
