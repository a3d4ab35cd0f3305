"""The place of a mechanism's code (file and line), for annotations and for other tools' reports."""

import functools
import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: PlaceRecord is a place of code in a record: "file", a path for people and tools, and "line", from 1.
PlaceRecord = Mapping[str, Any]


def place_of(mechanism: object, root: Path) -> dict[str, object] | None:
    """The place of a mechanism's function; None for code without a file."""
    found = _of_function(mechanism)
    return None if found is None else place(*found, root)


def place(file: str, line: int, root: Path) -> dict[str, object]:
    """The place of a file and a line; the path is relative to `root` if it lies below and is not installed there."""
    path = Path(os.path.realpath(file))
    base = Path(os.path.realpath(root))
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    own = path.is_relative_to(base) and not installed
    return {"file": (path.relative_to(base) if own else path).as_posix(), "line": line}


def below_root(found: PlaceRecord | None) -> bool:
    """Whether a place lies in the project, where the project's tools can show it."""
    return found is not None and not Path(str(found["file"])).is_absolute()


def _of_function(mechanism: object) -> tuple[str, int] | None:
    """The file and line of a callable; for an instance of a user's class, the file and line of the class."""
    while isinstance(mechanism, functools.partial):
        mechanism = mechanism.func
    mechanism = inspect.unwrap(mechanism) if callable(mechanism) else mechanism
    mechanism = getattr(mechanism, "py_func", mechanism)  # the source of a function that numba has compiled
    mechanism = getattr(mechanism, "__func__", mechanism)
    code = getattr(mechanism, "__code__", None)
    if code is not None:
        return (code.co_filename, code.co_firstlineno) if os.path.isfile(code.co_filename) else None
    kind = mechanism if inspect.isclass(mechanism) else type(mechanism)
    if kind.__module__.partition(".")[0] in ("builtins", "dpwitness"):
        return None
    try:
        file = inspect.getsourcefile(kind)
        return None if file is None else (file, inspect.getsourcelines(kind)[1])
    except (OSError, TypeError):  # a class without a source, such as one written in C
        return None
