"""What a function reaches: every value and function that its code names, through module attributes too.

`digest` hashes it, so that machine code is stored for just that; `rebuilt` makes a copy in which every numba function
on the way is made anew, so that nothing that was compiled for other values is used, and the mechanism's plain helpers
are compiled along; `constants` hashes the values
alone, to compare them between processes.
"""

import dis
import enum
import hashlib
import numbers
import sys
import types as pytypes
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

#: Packages whose functions are known by name and version.
KNOWN = frozenset({"builtins", "cmath", "math", "numba", "numpy", "operator", "scipy"})
#: The module whose functions are compiled along with whatever calls them.
NOISE: Final = "dpwitness.noise"
#: How numba compiles plain functions: they hold no GIL, are called by compiled code alone, and inlined there.
INLINED: Final[dict[str, object]] = {
    **{"nopython": True, "nogil": True, "forceinline": True},
    **{"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
}

Path = tuple[str, ...]
Seen = dict[int, bool]
EMPTY = object()


def is_numba(value: object) -> bool:
    """Whether it is a function that numba compiles."""
    return _is_of(value, "numba.core.dispatcher", "Dispatcher")


def _is_of(value: object, module: str, name: str) -> bool:
    """Whether a value is of a class of numba's, which takes 0.4 s to import; False if it is not imported."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def root_of(value: object) -> str:
    """The package that a function or a class says it is of; of one made by `exec` it may be nothing that is a text."""
    return str(value.__module__).partition(".")[0]


#: Instructions that load a global variable, and one of a function round it; in the body of a class too.
GLOBAL: Final = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
FREE: Final = frozenset(("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"))


def names(code: pytypes.CodeType, local: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Every global or free variable that the code loads, with the attributes read from it: ("config", "SCALE").

    `local`: variables of functions round it. Those are free in a function or comprehension inside, but no globals.
    """
    local |= frozenset(code.co_cellvars)
    chain: list[str] = []
    for step in dis.get_instructions(code):
        if chain and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            chain.append(step.argval)
        elif step.opname not in ("CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL"):
            if chain:
                yield tuple(chain)
            loads = step.opname in GLOBAL or (step.opname in FREE and step.argval not in local)
            chain = [step.argval] if loads else []
    if chain:
        yield tuple(chain)
    for constant in code.co_consts:
        if isinstance(constant, pytypes.CodeType):
            yield from names(constant, local)


def _loads_globally(code: pytypes.CodeType, name: str) -> bool:
    """Whether code, or a function inside it, loads a global variable of that name."""
    loads = any(step.opname in GLOBAL and step.argval == name for step in dis.get_instructions(code))
    return loads or any(_loads_globally(part, name) for part in code.co_consts if isinstance(part, pytypes.CodeType))


def variables(function: pytypes.FunctionType) -> dict[str, object]:
    """The globals and free variables of a function, by name; `EMPTY` for a variable that is not bound yet."""
    known = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            known[name] = cell.cell_contents
        except ValueError:
            known[name] = EMPTY
    return known


def enters_python(function: pytypes.FunctionType, seen: frozenset[object] = frozenset()) -> bool:
    """Whether code of the function stands under `numba.objmode`, or of one that is called as it was compiled."""
    known, seen = variables(function), seen | {function}
    for name, *attributes in set(names(function.__code__)):
        value: Any = known.get(name)
        for attribute in attributes:
            if isinstance(value, pytypes.ModuleType):
                value = getattr(value, attribute, None)
        if _is_of(value, "numba.core.withcontexts", "_ObjModeContextType"):
            return True
        # Others are remade, and asked themselves.
        as_it_is = is_numba(value) and not value._can_compile and value.py_func not in seen
        if as_it_is and enters_python(value.py_func, seen):
            return True
    return False


def digest(function: Callable[..., object]) -> tuple[bytes, bool]:
    """Hash everything that decides what a function does; and whether all of it could be told.

    Where it could not, machine code must not be kept: the same hash may stand for other code next time.
    """
    reached = hashlib.sha256()
    complete = True
    for part in _function(function, {}, root=True):
        if part is None:
            complete = False
            continue
        # Of a file whose name the locale cannot read, the module's name has halves of surrogate pairs.
        data = part if isinstance(part, bytes) else part.encode(errors="surrogatepass")
        reached.update(len(data).to_bytes(8, "little") + data)
    return reached.digest(), complete


def _function(value: Any, seen: Seen, *, root: bool = False) -> Iterator[bytes | str | None]:
    """A Python function, or one that numba compiles; `seen`: whether the walk is still within a function, by its id."""
    if is_numba(value):
        yield repr(sorted((k, str(v)) for k, v in value.targetoptions.items()))
        if not root and not value._can_compile:
            yield None  # compiled for the globals of then, which nothing tells
    function = getattr(value, "py_func", value)
    if id(function) in seen:
        if seen[id(function)]:
            yield None  # numba 0.68 crashes where it loads the machine code of a recursive function
        return
    seen[id(function)] = True
    # numba's machine code on disk imports the module by name: of one that only this process knows nothing may be kept.
    yield f"{function.__module__}.{function.__qualname__}" if function.__module__ in sys.modules else None
    yield from _code(function.__code__, seen)
    for part in (*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())):
        yield from _value(part, seen)
    known = variables(function)
    if any(_loads_globally(function.__code__, name) for name in function.__code__.co_freevars):
        yield None  # two variables of one name
    for path in sorted(set(names(function.__code__))):
        if path[0] in known:
            yield ".".join(path)
            yield from _reached(known[path[0]], path[1:], seen)
    seen[id(function)] = False


def _reached(value: object, attributes: Path, seen: Seen) -> Iterator[bytes | str | None]:
    """A value, or what is read from it while it is a module."""
    while isinstance(value, pytypes.ModuleType):
        if value.__name__.partition(".")[0] in KNOWN:
            yield f"{value.__name__} {getattr(value, '__version__', '')}"
            return
        if not attributes:
            yield None  # a module as a whole: what is read from it later is not known
            return
        value, attributes = getattr(value, attributes[0], EMPTY), attributes[1:]
    yield from _value(value, seen)


def _code(code: pytypes.CodeType, seen: Seen) -> Iterator[bytes | str | None]:
    yield code.co_code
    yield code.co_exceptiontable  # what stands in `try`, and in its `else`
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags))
    for constant in code.co_consts:
        yield from _code(constant, seen) if isinstance(constant, pytypes.CodeType) else _value(constant, seen)


def _value(value: object, seen: Seen) -> Iterator[bytes | str | None]:
    """The bytes of a value that numba takes for a constant; None for what cannot be told."""
    if is_numba(value):
        yield from _function(value, seen)
    elif isinstance(value, enum.Enum):
        yield from _value(type(value), seen)
        yield value.name
    elif isinstance(value, bool | int | float | complex | str | bytes | type(None) | type(...) | range):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, tuple | frozenset):
        yield f"{type(value).__qualname__} {len(value)} {getattr(value, '_fields', '')}"
        for item in sorted(value, key=repr) if isinstance(value, frozenset) else value:
            yield from _value(item, seen)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcSU":
        yield repr((value.dtype.str, value.shape))
        yield value.tobytes()
    elif isinstance(value, type):
        yield from _class(value, seen)
    elif isinstance(value, pytypes.BuiltinFunctionType | np.ufunc | np.dtype) or _is_of(
        value, "numba.core.types", "Type"
    ):
        yield f"{getattr(value, '__module__', '')} {getattr(value, '__qualname__', value)}"
    elif isinstance(value, pytypes.FunctionType):
        if root_of(value) in KNOWN:
            yield f"{value.__module__}.{value.__qualname__}"
        else:
            yield from _function(value, seen)
    else:
        yield None


def _class(value: type, seen: Seen) -> Iterator[bytes | str | None]:
    yield f"{value.__module__}.{value.__qualname__}"
    if issubclass(value, enum.Enum):
        for name, member in value.__members__.items():
            yield name
            yield from _value(member.value, seen)
    elif issubclass(value, tuple) and hasattr(value, "_fields"):
        yield repr(value._fields)
    elif root_of(value) not in KNOWN and not issubclass(value, BaseException):
        yield None


Remake = Callable[[pytypes.FunctionType, dict[str, object]], object]


def rebuilt(function: pytypes.FunctionType, remake: Remake, *, helpers: bool = False) -> Any:
    """A copy of a function that calls copies of all numba functions that it reaches.

    `remake(copy, options)` makes what stands in the place of a function that numba compiles with `options`. `helpers`:
    plain functions of the function's own package, and of `dpwitness.noise`, are remade too. The caller's own objects
    stay as they are.
    """
    return _Rebuilder(remake, root_of(function) if helpers else None).function(function)


class _Rebuilder:
    def __init__(self, remake: Remake, package: str | None) -> None:
        self._remake = remake
        self._package = package  # whose plain functions are remade
        self._copies: dict[int, object] = {}

    def function(self, function: pytypes.FunctionType, options: dict[str, object] | None = None) -> object:
        space = dict(function.__globals__)
        cells = {name: pytypes.CellType() for name in function.__code__.co_freevars}
        copy = pytypes.FunctionType(
            function.__code__, space, function.__name__, function.__defaults__, tuple(cells.values()) or None
        )
        copy.__kwdefaults__, copy.__module__, copy.__qualname__ = (
            function.__kwdefaults__,
            function.__module__,
            function.__qualname__,
        )
        result = copy if options is None else self._remake(copy, options)
        self._copies[id(function)] = result  # before what it calls: it may call itself
        known = variables(function)
        paths: dict[str, set[Path]] = {}
        for name, *attributes in set(names(function.__code__)):
            paths.setdefault(name, set()).add(tuple(attributes))
        for name in {*paths, *cells} & set(known):
            value = self._value(known[name], paths.get(name, set()))
            if name in cells:
                if value is not EMPTY:
                    cells[name].cell_contents = value
            else:
                space[name] = value
        return result

    def _value(self, value: Any, attributes: set[Path]) -> Any:
        if is_numba(value) and value._can_compile:
            return self._remade(value.py_func, value.targetoptions)
        if self._package is not None and isinstance(value, pytypes.FunctionType):
            if value.__module__ == NOISE or root_of(value) == self._package:
                return self._remade(value, INLINED)
            return value
        if isinstance(value, pytypes.ModuleType) and value.__name__.partition(".")[0] not in KNOWN:
            space = {}
            for name in {path[0] for path in attributes if path}:
                inner = {path[1:] for path in attributes if path and path[0] == name}
                old = getattr(value, name, EMPTY)
                new = self._value(old, inner)
                if new is not old:
                    space[name] = new
            if space:
                module = pytypes.ModuleType(value.__name__)
                module.__dict__.update(vars(value) | space)
                return module
        return value

    def _remade(self, function: pytypes.FunctionType, options: dict[str, object]) -> object:
        if id(function) not in self._copies:
            self.function(function, options)
        return self._copies[id(function)]


def constants(function: Callable[..., object]) -> str | None:
    """Return a digest of the module-level numbers and arrays that a function and those it calls use; None without any.

    They are compiled into it. Unlike in `digest`, neither code nor names of modules count: it is the same in every
    process that loads the function. This package's own modules are left out: they draw nothing when they are imported.
    """
    values: dict[str, str] = {}
    seen: set[int] = set()

    def visit(function: object) -> None:
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
                values[f"{plain.__qualname__} {path}"] = f"{value.dtype} {value.shape} {value.tobytes()!r}"
            elif isinstance(value, numbers.Number):
                values[f"{plain.__qualname__} {path}"] = repr(value)
            else:
                visit(value)

    visit(function)
    return hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest() if values else None
