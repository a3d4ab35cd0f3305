"""The values and functions that the code of a function names, also through attributes of modules.

`digest` hashes them, so that machine code is stored for exactly these; `rebuilt` makes a copy of a function whose numba
callees are new, so that no code compiled for other values is used, and whose plain helpers are compiled with it;
`constants` hashes the values alone, to compare them between processes.
"""

import dis
import hashlib
import numbers
import sys
import types as pytypes
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

#: The packages whose functions are identified by name and version, and not by their code.
KNOWN_PACKAGES = frozenset({"builtins", "cmath", "math", "numba", "numpy", "operator", "scipy"})
#: The module whose functions are compiled with their callers.
NOISE_MODULE: Final = "dpwitness.noise"
#: The options with which numba compiles plain functions: without the GIL, for compiled callers alone, and inlined.
INLINE_OPTIONS: Final[dict[str, object]] = {
    **{"nopython": True, "nogil": True, "forceinline": True},
    **{"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
}

#: The names of a variable and of the attributes read from it.
AttributePath = tuple[str, ...]
#: The functions that a walk has visited, by id, and whether the walk is still within the function.
Seen = dict[int, bool]
#: The mark of a variable that is not bound yet, or of a missing attribute.
UNBOUND_MARK = object()


def is_numba(value: object) -> bool:
    """Whether a value is a function that numba compiles."""
    return _is_of(value, "numba.core.dispatcher", "Dispatcher")


def _is_of(value: object, module: str, name: str) -> bool:
    """Whether a value is of a class of numba; numba is not imported to find out, as the import takes 0.4 s."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def root_of(value: object) -> str:
    """The name of the package of a function or a class; for code of `exec` it may be any text."""
    return str(value.__module__).partition(".")[0]


#: The bytecode instructions that load a global variable, also in the body of a class.
GLOBAL_LOADS: Final = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
#: The bytecode instructions that load a variable of an enclosing function, also in the body of a class.
FREE_LOADS: Final = frozenset(("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"))


def names(code: pytypes.CodeType, local: frozenset[str] = frozenset()) -> Iterator[AttributePath]:
    """Every global or free variable that the code loads, with the attributes read from it: ("config", "SCALE").

    `local`: the variables of enclosing code objects, which are not yielded.
    """
    local |= frozenset(code.co_cellvars)
    chain: list[str] = []
    for step in dis.get_instructions(code):
        if chain and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            chain.append(step.argval)
        elif step.opname not in ("CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL"):
            if chain:
                yield tuple(chain)
            loads = step.opname in GLOBAL_LOADS or (step.opname in FREE_LOADS and step.argval not in local)
            chain = [step.argval] if loads else []
    if chain:
        yield tuple(chain)
    for constant in code.co_consts:
        if isinstance(constant, pytypes.CodeType):
            yield from names(constant, local)


def _loads_globally(code: pytypes.CodeType, name: str) -> bool:
    """Whether code, or a function inside it, loads a global variable of that name."""
    loads = any(step.opname in GLOBAL_LOADS and step.argval == name for step in dis.get_instructions(code))
    return loads or any(_loads_globally(part, name) for part in code.co_consts if isinstance(part, pytypes.CodeType))


def variables(function: pytypes.FunctionType) -> dict[str, object]:
    """The globals and free variables of a function, by name; `UNBOUND_MARK` for a variable that is not bound yet."""
    known = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            known[name] = cell.cell_contents
        except ValueError:
            known[name] = UNBOUND_MARK
    return known


def _is_known(module: pytypes.ModuleType) -> bool:
    """Whether a module is of `KNOWN_PACKAGES`."""
    return module.__name__.partition(".")[0] in KNOWN_PACKAGES


def used_values(function: pytypes.FunctionType, *, into_known: bool = False) -> Iterator[tuple[AttributePath, Any]]:
    """The values of the paths that a function's code reads, sorted by path; `UNBOUND_MARK` for a missing attribute.

    A path is followed through modules, through modules of `KNOWN_PACKAGES` only with `into_known`.
    """
    known = variables(function)
    for path in sorted(set(names(function.__code__))):
        if path[0] in known:
            value = known[path[0]]
            for attribute in path[1:]:
                if not isinstance(value, pytypes.ModuleType) or (_is_known(value) and not into_known):
                    break
                value = getattr(value, attribute, UNBOUND_MARK)
            yield path, value


def enters_python(function: pytypes.FunctionType, seen: frozenset[object] = frozenset()) -> bool:
    """Whether the function, or a callee that `rebuilt` does not copy, has code under `numba.objmode`."""
    seen |= {function}
    for _, value in used_values(function, into_known=True):
        if _is_of(value, "numba.core.withcontexts", "_ObjModeContextType"):
            return True
        # Other callees are copied, and tested then.
        kept = is_numba(value) and not value._can_compile and value.py_func not in seen
        if kept and enters_python(value.py_func, seen):
            return True
    return False


def digest(function: Callable[..., object]) -> tuple[bytes, bool]:
    """The hash of everything that decides the results of a function, and whether it covers everything.

    Machine code must not be kept under an incomplete hash, which may be the same for other code.
    """
    reached = hashlib.sha256()
    complete = True
    for part in _function(function, {}, root=True):
        if part is None:
            complete = False
            continue
        # The name of a module may have lone surrogates, from a file name that the locale cannot decode.
        data = part if isinstance(part, bytes) else part.encode(errors="surrogatepass")
        reached.update(len(data).to_bytes(8, "little") + data)
    return reached.digest(), complete


def _function(value: Any, seen: Seen, *, root: bool = False) -> Iterator[bytes | str | None]:
    """The parts to hash of a function of Python or numba; None for an unknown part."""
    if is_numba(value):
        yield repr(sorted((k, str(v)) for k, v in value.targetoptions.items()))
        if not root and not value._can_compile:
            yield None  # it was compiled for earlier globals
    function = getattr(value, "py_func", value)
    if id(function) in seen:
        if seen[id(function)]:
            yield None  # numba 0.68 crashes when it loads the machine code of a recursive function
        return
    seen[id(function)] = True
    # numba's machine code on disk imports the module by name: code of a module that cannot be imported is not kept.
    yield f"{function.__module__}.{function.__qualname__}" if function.__module__ in sys.modules else None
    yield from _code(function.__code__, seen)
    for part in (*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())):
        yield from _value(part, seen)
    if any(_loads_globally(function.__code__, name) for name in function.__code__.co_freevars):
        yield None  # a global and a free variable have one name
    for path, used in used_values(function):
        yield ".".join(path)
        if isinstance(used, pytypes.ModuleType) and _is_known(used):
            yield f"{used.__name__} {getattr(used, '__version__', '')}"
        else:
            yield from _value(used, seen)
    seen[id(function)] = False


def _code(code: pytypes.CodeType, seen: Seen) -> Iterator[bytes | str | None]:
    yield code.co_code
    yield code.co_exceptiontable  # the ranges of `try` and of its `else`
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags))
    for constant in code.co_consts:
        yield from _code(constant, seen) if isinstance(constant, pytypes.CodeType) else _value(constant, seen)


def _value(value: object, seen: Seen) -> Iterator[bytes | str | None]:
    """The parts to hash of a value that numba compiles in as a constant; None for a value of unknown content."""
    if is_numba(value):
        yield from _function(value, seen)
    elif isinstance(value, bool | int | float | complex | str | bytes | type(None) | type(...) | range):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, tuple | frozenset):
        yield f"{type(value).__qualname__} {len(value)} {getattr(value, '_fields', '')}"
        for item in sorted(value, key=repr) if isinstance(value, frozenset) else value:
            yield from _value(item, seen)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcSU":
        yield repr((value.dtype.str, value.shape))
        yield value.tobytes()
    elif isinstance(value, type) and (root_of(value) in KNOWN_PACKAGES or issubclass(value, BaseException)):
        yield f"{value.__module__}.{value.__qualname__}"
    elif isinstance(value, pytypes.BuiltinFunctionType | np.ufunc | np.dtype) or _is_of(
        value, "numba.core.types", "Type"
    ):
        yield f"{getattr(value, '__module__', '')} {getattr(value, '__qualname__', value)}"
    elif isinstance(value, pytypes.FunctionType):
        if root_of(value) in KNOWN_PACKAGES:
            yield f"{value.__module__}.{value.__qualname__}"
        else:
            yield from _function(value, seen)
    else:
        yield None


#: A function: (copy of a function, numba's options for it) → replacement of the copy.
Remake = Callable[[pytypes.FunctionType, dict[str, object]], object]


def rebuilt(function: pytypes.FunctionType, remake: Remake, *, helpers: bool = False) -> Any:
    """A copy of a function that calls copies of all numba functions that it reaches; the originals stay unchanged.

    `remake(copy, options)` returns the replacement of a copied callee. `helpers`: plain functions of the function's
    package, and of `dpwitness.noise`, are copied and replaced too.
    """
    return _Rebuilder(remake, root_of(function) if helpers else None).function(function)


class _Rebuilder:
    """A maker of copies of functions and their callees, one copy of each; see `rebuilt`."""

    def __init__(self, remake: Remake, package: str | None) -> None:
        self._remake = remake
        self._package = package  # whose plain functions are copied too
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
        self._copies[id(function)] = result  # before the callees are copied: the function may call itself
        known = variables(function)
        paths: dict[str, set[AttributePath]] = {}
        for name, *attributes in set(names(function.__code__)):
            paths.setdefault(name, set()).add(tuple(attributes))
        for name in {*paths, *cells} & set(known):
            value = self._value(known[name], paths.get(name, set()))
            if name in cells:
                if value is not UNBOUND_MARK:
                    cells[name].cell_contents = value
            else:
                space[name] = value
        return result

    def _value(self, value: Any, attributes: set[AttributePath]) -> Any:
        if is_numba(value) and value._can_compile:
            return self._remade(value.py_func, value.targetoptions)
        if self._package is not None and isinstance(value, pytypes.FunctionType):
            if value.__module__ == NOISE_MODULE or root_of(value) == self._package:
                return self._remade(value, INLINE_OPTIONS)
            return value
        if isinstance(value, pytypes.ModuleType) and not _is_known(value):
            space = {}
            for name in {path[0] for path in attributes if path}:
                inner = {path[1:] for path in attributes if path and path[0] == name}
                old = getattr(value, name, UNBOUND_MARK)
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
    """A digest of the global numbers and arrays that a function and its callees use, which are compiled in.

    None without numbers and arrays. The digest covers neither code nor names of modules, so it is the same in every
    process that loads the function, unless a module draws numbers when it is imported; dpwitness's modules draw no
    numbers, and are left out.
    """
    values: dict[str, str] = {}
    seen: set[int] = set()

    def visit(function: object) -> None:
        plain = getattr(function, "py_func", function)
        if not isinstance(plain, pytypes.FunctionType) or id(plain) in seen:
            return
        seen.add(id(plain))
        if root_of(plain) in KNOWN_PACKAGES | {"dpwitness"}:
            return
        for path, value in used_values(plain):
            if isinstance(value, np.ndarray):
                values[f"{plain.__qualname__} {path}"] = f"{value.dtype} {value.shape} {value.tobytes()!r}"
            elif isinstance(value, numbers.Number):
                values[f"{plain.__qualname__} {path}"] = repr(value)
            else:
                visit(value)

    visit(function)
    return hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest() if values else None
