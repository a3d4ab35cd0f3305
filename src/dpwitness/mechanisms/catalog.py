"""Mechanisms by name: a registered target, `path/file.py:function`, or `package.module:object`."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from dpwitness.checks import INTERRUPTS, class_and_text, near
from dpwitness.errors import UnknownTarget
from dpwitness.files import as_utf8
from dpwitness.mechanisms.libraries import library_of

#: The entry-point group of registered targets.
TARGET_GROUP = "dpwitness.targets"
#: The prefix of the names of modules that are loaded from files.
FILE_PREFIX = "_dpwitness_file_"
#: The prefix of a program's name in a witness.
PROGRAM_PREFIX = "command:"


def registered() -> dict[str, EntryPoint]:
    """All registered targets by name: bundled targets, and targets of other installed packages."""
    return {point.name: point for point in sorted(_targets(), key=lambda point: point.name)}


def is_registered(name: str) -> bool:
    """Whether a target has this name."""
    return any(point.name == name for point in _targets())


def _targets() -> Iterator[EntryPoint]:
    """The registered targets, one for each name.

    An entry point is a target, or a module whose table `TARGETS` has several targets: places `module:function` by name.
    Bundled targets come first, so a module of another package is imported only if the name looked for is not bundled.
    """
    seen: set[str] = set()
    points = entry_points(group=TARGET_GROUP)
    for point in sorted(points, key=lambda point: (not point.value.startswith("dpwitness."), point.name)):
        for target in _table(point) or [point]:
            if target.name not in seen:
                seen.add(target.name)
                yield target


def _table(point: EntryPoint) -> list[EntryPoint]:
    """The targets of an entry point's module; empty if the module cannot be loaded, or the point names an object."""
    try:
        places = {} if point.attr else importlib.import_module(point.module).TARGETS
        return [EntryPoint(name, place, TARGET_GROUP) for name, place in places.items()]
    except (Exception, SystemExit):  # another package's code may raise any error; loading the target says which
        return []


def load_registered(name: str) -> Callable[..., object]:
    """Return the registered target `name`; code that is not registered is not run.

    Raises `UnknownTarget`, also if the package that registers the target cannot be imported.
    """
    point = next((point for point in _targets() if point.name == name), None)
    if point is None:
        hint = near(name, registered()) or ": `dpwitness list` shows the bundled ones."
        if ":" in name:
            option = "--command PROGRAM" if name.startswith(PROGRAM_PREFIX) else "--mechanism FILE.py:FUNCTION"
            hint = (
                ": it is not a registered target, so its code is not run unless you name it: give the mechanism "
                f"yourself ({option})"
            )
        raise UnknownTarget(f"unknown target {name!r}{hint}")
    try:
        target = point.load()
    except Exception as error:  # another package's code may raise any exception
        owner = f" of {point.dist.name}" if point.dist else ""
        raise UnknownTarget(
            f"target {name!r} ({point.value}{owner}) cannot be loaded: {class_and_text(error)}"
        ) from error
    return _callable(target, name)


def load(name: str) -> Callable[..., object]:
    """Return a registered target, or the function of a file or a module. Raises `UnknownTarget`."""
    if ":" in name:
        return load_code(name)
    if Path(name).suffix == ".py":
        raise UnknownTarget(f"{name} is a file: say which function, {name}:FUNCTION")
    return load_registered(name)


def load_code(name: str) -> Callable[..., object]:
    """Return a callable object of a file or a module; this runs the user's code. Raises the errors of `load_object`."""
    return _callable(load_object(name), name)


def load_object(name: str) -> object:
    """Return an object of a file or a module; this runs the user's code.

    Raises `UnknownTarget` for an unknown file, module or attribute, and for a module that raises when it is imported; a
    `SystemExit` is raised as it is.
    """
    place, _, attribute = name.rpartition(":")
    if not place or not attribute or place.endswith(":"):  # "file.py::test" is pytest's notation
        raise UnknownTarget(f"{name!r} must be path/file.py:FUNCTION or package.module:OBJECT")
    value: object = (module := load_module(place))
    for part in attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            names = [name for name, one in vars(module).items() if not name.startswith("_") and callable(one)]
            meant = near(attribute, names) or f"; it has: {', '.join(names[:20]) or 'no functions'}"
            raise UnknownTarget(f"{place} has no {attribute!r}{meant}") from error
        except Exception as error:  # raised by a property, or a module's __getattr__
            raise UnknownTarget(f"{name} cannot be loaded: {class_and_text(error)}") from error
    return value


def load_module(place: str) -> ModuleType:
    """Return the module of a file or of a name; this runs the user's code. Raises the errors of `load_object`."""
    try:
        if place.endswith(".py"):
            return _run_file(place)
        if "" in place.split(".") or os.path.basename(place) != place:
            raise UnknownTarget(
                f"{place!r} is not the name of a module: give a file, such as path/file.py, or a module, such as "
                "package.module"
            )
        with _importable_from(os.getcwd()):  # as `python -m` does
            return importlib.import_module(place)
    except (*INTERRUPTS, SystemExit, UnknownTarget):
        raise
    except BaseException as error:  # a panic of Rust is not an `Exception`
        raise UnknownTarget(f"{place} cannot be loaded: {class_and_text(error)}") from error


def _callable(value: Any, name: str) -> Callable[..., object]:
    if not callable(library_of(value).function(value)):
        raise UnknownTarget(f"{name} is a {type(value).__name__}: give the name of a function")
    return value  # type: ignore[no-any-return]  # it stays `Any` for mypy


@contextmanager
def _importable_from(folder: str) -> Iterator[None]:
    """Put a folder first in `sys.path`, as Python does for a script there; after the context it is last.

    Files of the user may be imported later, but must not shadow libraries that are imported later.
    """
    new = folder not in sys.path
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:  # the user's code may have removed it
            sys.path.remove(folder)
        if new:
            sys.path.append(folder)


def _run_file(place: str) -> ModuleType:
    try:
        path = Path(place).resolve()
        there = path.is_file()
    except (OSError, ValueError) as error:  # a name that is too long, a folder without access, a null byte
        raise UnknownTarget(f"cannot read {place}: {getattr(error, 'strerror', None) or error}") from error
    if not there:
        raise UnknownTarget(f"there is no file {place}")
    name = f"{FILE_PREFIX}{as_utf8(path.stem)}"  # numba compiles no function of a module whose name is not UTF-8
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _importable_from(str(path.parent)):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # a half-run module must not be used
        raise
    return module
