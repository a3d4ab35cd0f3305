"""The module-level values that are compiled into a function, compared between processes."""

import hashlib
import numbers
import types as pytypes
from collections.abc import Callable
from typing import Any

import numpy as np

from dpwitness.mechanisms.compiled.reach import KNOWN, names, root_of, variables


def constants(function: Callable[..., Any]) -> str | None:
    """Return a digest of the module-level numbers and arrays that a function and those it calls use; None without any.

    They are compiled into it. Unlike in `digest`, neither code nor names of modules count: it is the same in every
    process that loads the function. This package's own modules are left out: they draw nothing when they are imported.
    """
    found: dict[str, str] = {}
    seen: set[int] = set()

    def visit(function: Any) -> None:
        plain = getattr(function, "py_func", function)
        if not isinstance(plain, pytypes.FunctionType) or id(plain) in seen:
            return
        seen.add(id(plain))
        if root_of(plain) in KNOWN | {"dpwitness"}:
            return
        there = variables(plain)
        for path in sorted(set(names(plain.__code__))):
            value = there.get(path[0])
            for attribute in path[1:]:
                if not isinstance(value, pytypes.ModuleType) or value.__name__.partition(".")[0] in KNOWN:
                    break
                value = getattr(value, attribute, None)
            if isinstance(value, np.ndarray):
                found[f"{plain.__qualname__} {path}"] = f"{value.dtype} {value.shape} {value.tobytes()!r}"
            elif isinstance(value, numbers.Number):
                found[f"{plain.__qualname__} {path}"] = repr(value)
            else:
                visit(value)

    visit(function)
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest() if found else None
