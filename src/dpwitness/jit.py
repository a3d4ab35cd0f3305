"""How dpwitness compiles its own kernels. Numba, which takes half a second to import, is imported when it is needed."""

import hashlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from dpwitness.images import Compiled
from dpwitness.machine import COMPILING, cache_folder, numba_cache, numba_writes_to

F = TypeVar("F", bound=Callable[..., Any])
#: Options of numba for what only compiled code calls: a fifth of compiling is what Python would call it by.
BARE: Final = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
INLINED: Final[Mapping[str, Any]] = {"nopython": True, "nogil": True, "forceinline": True, **BARE}
_lock = threading.Lock()
_listening = False


def with_numba() -> Any:
    """Numba, imported; from then on `COMPILING` is the time that it compiles."""
    global _listening
    import numba
    from numba.core import event

    with _lock:
        if not _listening:

            class Listener(event.Listener):
                """A function that another one calls is compiled within it."""

                def on_start(self, event: object) -> None:
                    COMPILING.start()

                def on_end(self, event: object) -> None:
                    COMPILING.stop()

            event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]  # numba has no types
            _listening = True
    return numba


def compiled(function: F, plain: Callable[..., object] | None = None) -> F:
    """Compile a kernel that holds no GIL; the machine code is kept on disk where a folder for it can be found.

    It may write to arrays that it is given to write to, and to no others. `plain`: the same in NumPy, which a process
    runs as long as there is no machine code and it has taken little time.
    """

    def make(callable: bool) -> Any:
        numba = with_numba()
        if not callable:
            return numba.njit(nogil=True, **BARE)(function)
        try:
            with numba_cache():
                return numba.njit(nogil=True, cache=True)(function)
        except RuntimeError:  # numba found no folder that it can write to: ours is one, if there is any
            with numba_writes_to(cache_folder()):
                return numba.njit(nogil=True, cache=True)(function)

    def key() -> str:
        texts = [Path(inspect.getfile(part)).read_bytes() for part in _parts(function, set())]
        return f"{function.__module__}.{function.__qualname__} {hashlib.sha256(b''.join(texts)).hexdigest()}"

    return cast(F, update_wrapper(Compiled(make, key, cache_folder, read_only=False, plain=plain), function))


def compiled_late(plain: F) -> Callable[[F], F]:
    """Compile a kernel once it pays: until then its work is done by `plain`."""
    return lambda function: compiled(function, plain)


def _parts(function: Callable[..., object], seen: set[object]) -> Iterator[Callable[..., Any]]:
    """A kernel, and the inlined functions that it calls."""
    seen.add(function)
    yield function
    code, known = function.__code__, function.__globals__
    for name in code.co_names:
        value = known.get(name)
        if isinstance(value, Inlined) and value.py_func not in seen:
            yield from _parts(value.py_func, seen)


class Inlined:
    """A function that compiled code calls, and inlines.

    In Python it is what it was: numba's calls of machine code take 9 µs with a generator, `noise.laplace` takes 1.3.
    """

    _can_compile: Final = True

    def __init__(self, function: Callable[..., object], options: Mapping[str, object] = INLINED) -> None:
        self.py_func = function
        self.targetoptions = dict(options)  # as numba's dispatchers call them
        update_wrapper(self, function)

    @cached_property
    def _inner(self) -> Any:
        return with_numba().jit(**self.targetoptions)(self.py_func)

    @property
    def _numba_type_(self) -> Any:  # what numba takes a value of a class that it does not know for
        return self._inner._numba_type_

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run it."""
        return self.py_func(*arguments, **named)

    def __reduce__(self) -> tuple[Any, ...] | str:
        function = self.py_func
        by_name = function.__module__ != "__main__" and function.__module__ in sys.modules
        if by_name and getattr(sys.modules[function.__module__], function.__qualname__, None) is self:
            return function.__qualname__
        return Inlined, (function, self.targetoptions)


def inlined(function: F) -> F:
    """Compile a function that is only ever called from compiled code, and inline it into its caller.

    Measured on `svt`: a call that is not inlined costs 20 ns of a run's 85.
    """
    return cast(F, Inlined(function))


def outlined(function: F) -> F:
    """Compile a function that is only ever called from compiled code, and seldom; it may call itself."""
    return cast(F, Inlined(function, {"nopython": True, "nogil": True, **BARE}))


class NumbaFunction:
    """A function that numba knows and compiled code calls, imported when that is compiled; in Python, `python`."""

    def __init__(self, module: str, name: str, python: Callable[..., object]) -> None:
        self.module, self.name, self._python = module, name, python

    @property
    def _numba_type_(self) -> Any:
        with_numba()
        from numba.core.registry import cpu_target

        function = getattr(import_module(self.module), self.name)
        cpu_target.typing_context.refresh()  # it may have been imported just now
        return cpu_target.typing_context.resolve_value_type(function)

    def __call__(self, *arguments: Any) -> Any:
        """Run it in Python."""
        return self._python(*arguments)
