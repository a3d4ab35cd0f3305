"""Finding a mechanism by name: a registered target, `path/file.py:function`, or `package.module:object`."""

import difflib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from dpwitness.errors import UnknownTarget

GROUP = "dpwitness.targets"


def registered() -> dict[str, EntryPoint]:
    """All registered targets by name: ours, and those of other installed packages."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def load_registered(name: str) -> Callable[..., Any]:
    """Return the registered target of that name, and nothing else. Raises `UnknownTarget`."""
    points = registered()
    if name not in points:
        near = difflib.get_close_matches(name, points, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`dpwitness list` shows the bundled ones."
        if ":" in name:
            hint = (
                "it is not a registered target, so its code is not run unless you name it: give the mechanism yourself"
            )
        raise UnknownTarget(f"unknown target {name!r}: {hint}")
    return _callable(points[name].load(), name)


def load(name: str) -> Callable[..., Any]:
    """Return a registered target, a function of a file or an object of a module; the last two run the user's code.

    Raises `UnknownTarget` where there is no such file, module or function.
    """
    place, colon, attribute = name.rpartition(":")
    if not colon:
        if Path(name).suffix == ".py":
            raise UnknownTarget(f"{name} is a file: say which function, {name}:FUNCTION")
        return load_registered(name)
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise UnknownTarget(f"there is no file {place}")
        module = _run_file(path)
    else:
        try:
            module = importlib.import_module(place)
        except ImportError as error:
            raise UnknownTarget(f"cannot import {place}: {error}") from error
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
            near = difflib.get_close_matches(attribute, names, n=3, cutoff=0.4) or names[:5]
            raise UnknownTarget(f"{place} has no {attribute!r}; it has: {', '.join(near) or 'no functions'}")
        found = getattr(found, part)
    return _callable(found, name)


def _callable(found: Any, name: str) -> Callable[..., Any]:
    if not callable(found):
        raise UnknownTarget(f"{name} is no function but {type(found).__name__}")
    return found  # type: ignore[no-any-return]  # callable() narrows Any to nothing better


def _run_file(path: Path) -> Any:
    name = f"_dpwitness_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UnknownTarget(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))  # as when the file is run: it may import its neighbours
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UnknownTarget(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module
