"""Whether a mechanism, or what it reaches, holds anything in which noise, or a generator, is kept from run to run."""

import numbers
import sys
from collections.abc import Callable, Set
from types import BuiltinFunctionType, FunctionType, ModuleType

import numpy as np

from dpwitness.mechanisms.compiled.reach import KNOWN, names, root_of, variables
from dpwitness.mechanisms.libraries import library_of


def may_remember(value: object) -> bool:
    """Whether a mechanism, or what it reaches, holds anything in which noise could be kept from run to run.

    Whole numbers, texts, and modules and functions that are installed with Python or NumPy hold none. A real number may
    be noise that was drawn once; of an object nothing is known, unless its library says what it is.
    """
    return _reaches(value, lambda held: library_of(held).may_remember(held), KNOWN, set())


def may_hold_generator(value: object) -> bool:
    """Whether a mechanism, or what it reaches, holds anything that could be a generator of its own.

    The global generators of Python and NumPy are not meant, nor what else is installed with them; and data are none.
    """

    def keeps(held: object) -> bool:
        return not _is_data(held) and may_remember(held)

    return _reaches(value, keeps, KNOWN | sys.stdlib_module_names, set())


def _is_data(value: object) -> bool:
    """Whether a value is numbers and texts alone."""
    if isinstance(value, tuple | list):
        return all(map(_is_data, value))
    if isinstance(value, np.ndarray):
        return bool(value.dtype != object)
    return value is None or isinstance(value, numbers.Number | str | bytes)


def _reaches(value: object, keeps: Callable[[object], bool], known: Set[str], seen: set[int]) -> bool:
    """Whether a value reaches an object for which `keeps` is true, or a module that is not of a `known` package.

    `seen`: the functions that were looked at on the way, by their identities.
    """
    value = getattr(value, "py_func", value)
    if id(value) in seen or isinstance(value, bool | int | str | bytes | type(None) | np.ufunc):
        return False
    if isinstance(value, BuiltinFunctionType):  # a method, as of a list, is of this type too
        return not isinstance(value.__self__, ModuleType | type(None))
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] not in known
    if isinstance(value, FunctionType | type) and root_of(value) in known:
        return False
    if not isinstance(value, FunctionType):
        return keeps(value)
    seen.add(id(value))
    there = variables(value)
    reached = [there[path[0]] for path in names(value.__code__) if path[0] in there]
    kept = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *vars(value).values())
    return any(_reaches(found, keeps, known, seen) for found in (*reached, *kept))
