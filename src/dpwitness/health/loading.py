"""Where a function is found, so that a process that has not imported its file yet can load it."""

import builtins
import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any


class CannotLoad(Exception):
    """The mechanism cannot be loaded anew; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a function can be loaded from: a module, its file, and the name in it."""

    module: str
    file: str | None
    name: str


def place_of(function: Any) -> Place:
    """Where a function can be loaded from. Raises `CannotLoad` for what only this process has."""
    plain = getattr(function, "py_func", function)
    name = getattr(plain, "__qualname__", type(plain).__qualname__)
    known = getattr(builtins, name, None) is plain
    if not known and not isinstance(plain, FunctionType):
        raise CannotLoad(f"{name} is no plain function")
    if "<" in name:
        raise CannotLoad(f"{name} is defined inside another function")
    module = sys.modules.get(plain.__module__)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function and found is not plain:
        raise CannotLoad(f"{plain.__module__} has no {name} that is this function")
    file = getattr(module, "__file__", None)
    if plain.__module__ == "__main__" and not file:
        raise CannotLoad(f"{name} was written in an interactive session")
    return Place(module=plain.__module__, file=None if file is None else str(Path(file).resolve()), name=name)


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
