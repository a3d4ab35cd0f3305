"""Tests whether a mechanism may keep noise from run to run in an object that it reaches."""

import os
import sys
from functools import cache
from pathlib import Path
from sysconfig import get_path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Final

import numpy as np

from dpwitness.mechanisms.compiled.reach import KNOWN_PACKAGES, names, root_of, variables
from dpwitness.mechanisms.libraries import library_of

#: The folder of the standard library, by two paths, which may differ if the interpreter is reached by links.
STANDARD_LIBRARY: Final = {Path(place).resolve() for place in (os.path.dirname(os.__file__), get_path("stdlib"))}


def is_installed(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package, which another process imports by name."""
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts) or _is_of_python(file)


@cache
def _is_of_python(file: str) -> bool:
    return any(Path(file).resolve().is_relative_to(folder) for folder in STANDARD_LIBRARY)


def may_remember(value: object) -> bool:
    """Whether a mechanism may keep noise from run to run in an object that it reaches.

    Integers, texts, and modules and functions of Python, NumPy and SciPy keep no noise. A real number may be noise that
    was drawn once; other objects may keep noise, unless their library says that they do not.
    """
    return _reaches(value, set())


def _is_known(package: str) -> bool:
    """Whether a package is in `KNOWN_PACKAGES` or the standard library, and not a user's file of the same name."""
    if package in KNOWN_PACKAGES or package in sys.builtin_module_names:
        return True
    file = getattr(sys.modules.get(package), "__file__", None)
    return package in sys.stdlib_module_names and file is not None and _is_of_python(file)


def _reaches(value: object, seen: set[int]) -> bool:
    """Whether a value reaches an object that may keep noise, or a module that is not known (`_is_known`).

    `seen`: the ids of functions that were visited.
    """
    value = getattr(value, "py_func", value)
    if id(value) in seen or isinstance(value, bool | int | str | bytes | type(None) | np.ufunc):
        return False
    if isinstance(value, BuiltinFunctionType):  # methods of built-in objects, such as a list, have this type too
        return not isinstance(value.__self__, ModuleType | type(None))
    if isinstance(value, ModuleType):
        return not _is_known(value.__name__.partition(".")[0])
    if isinstance(value, FunctionType | type) and _is_known(root_of(value)):
        return False
    if not isinstance(value, FunctionType):
        return library_of(value).may_remember(value)
    seen.add(id(value))
    known = variables(value)
    reached = [known[path[0]] for path in names(value.__code__) if path[0] in known]
    kept = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *vars(value).values())
    return any(_reaches(found, seen) for found in (*reached, *kept))
