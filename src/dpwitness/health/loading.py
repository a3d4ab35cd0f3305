"""Where a function is defined, so that another process can load it."""

import builtins
import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from dpwitness.mechanisms.compiled.reach import KNOWN, names, root_of, variables
from dpwitness.mechanisms.libraries import library_of


class CannotLoad(Exception):
    """The mechanism cannot be loaded anew; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a function can be loaded from: a module, its file, and the name in it."""

    module: str
    file: str | None
    name: str


def place_of(function: object) -> Place:
    """Where a function can be loaded from. Raises `CannotLoad` for what only this process has."""
    plain = getattr(function, "py_func", function)
    name = str(getattr(plain, "__qualname__", type(plain).__qualname__))
    known = getattr(builtins, name, None) is plain
    if not known and not isinstance(plain, FunctionType):
        raise CannotLoad(f"{name} is no plain function")
    if "<" in name:
        raise CannotLoad(f"{name} is defined inside another function")
    module = sys.modules.get(plain.__module__)
    if module is None:
        raise CannotLoad(f"{name} is of no module that can be imported, as what `exec` made")
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function and found is not plain:
        raise CannotLoad(f"{plain.__module__} has no {name} that is this function")
    file = getattr(module, "__file__", None)
    if plain.__module__ == "__main__" and not (file and Path(file).is_file()):  # of a pipe it is "<stdin>"
        raise CannotLoad(f"{name} was written in an interactive session")
    return Place(module=plain.__module__, file=None if file is None else str(Path(file).resolve()), name=name)


def may_remember(value: object) -> bool:
    """Whether a mechanism, or what it reaches, holds anything in which noise could be kept from run to run.

    Whole numbers, texts, and modules and functions that are installed with Python or NumPy hold none. A real number may
    be noise that was drawn once; of an object nothing is known, unless its library says what it is.
    """
    return _may_remember(value, set())


def _may_remember(value: object, seen: set[int]) -> bool:
    value = getattr(value, "py_func", value)
    if id(value) in seen or isinstance(value, bool | int | str | bytes | type(None) | np.ufunc):
        return False
    if isinstance(value, BuiltinFunctionType):  # a method, as of a list, is of this type too
        return not isinstance(value.__self__, ModuleType | type(None))
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] not in KNOWN
    if isinstance(value, FunctionType | type) and root_of(value) in KNOWN:
        return False
    if not isinstance(value, FunctionType):
        return library_of(value).may_remember(value)
    seen.add(id(value))
    there = variables(value)
    reached = [there[path[0]] for path in names(value.__code__) if path[0] in there]
    kept = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *vars(value).values())
    return any(_may_remember(found, seen) for found in (*reached, *kept))


def load(place: Place) -> Callable[..., Any]:
    """The function at a place, of a module that is imported here for the first time."""
    if place.module == "builtins":
        return getattr(builtins, place.name)  # type: ignore[no-any-return]
    found: Any = sys.modules.get(_name(place)) or _module(place)
    for part in place.name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def _name(place: Place) -> str:
    # As in multiprocessing: what stands under `if __name__ == "__main__"` must not run.
    return "__dpwitness_main__" if place.module == "__main__" else place.module


def _module(place: Place) -> ModuleType:
    """Import a module by its name where that leads to the same file, else from its file under its name."""
    name = _name(place)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is not None and (place.file is None or (spec.origin and str(Path(spec.origin).resolve()) == place.file)):
        return importlib.import_module(name)
    if place.file is None:
        raise ImportError(f"there is no module {name}")
    sys.path.insert(0, str(Path(place.file).parent))
    spec = importlib.util.spec_from_file_location(name, place.file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{place.file} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
