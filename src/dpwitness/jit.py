"""How dpwitness compiles its own kernels. Numba, which takes half a second to import, is imported when it is needed."""

import hashlib
import sys
import threading
from collections.abc import Callable
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from dpwitness.images import Compiled
from dpwitness.machine import COMPILING, cache_folder, numba_cache, numba_writes_to

F = TypeVar("F", bound=Callable[..., Any])
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

                def on_start(self, event: Any) -> None:
                    COMPILING.start()

                def on_end(self, event: Any) -> None:
                    COMPILING.stop()

            event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]  # numba has no types
            _listening = True
    return numba


def compiled(function: F) -> F:
    """Compile a kernel that holds no GIL; the machine code is kept on disk where a folder for it can be found.

    It may write to arrays that it is given to write to, and to no others.
    """

    def make(cache: bool) -> Any:
        numba = with_numba()
        try:
            with numba_cache():
                return numba.njit(nogil=True, cache=cache)(function)
        except RuntimeError:  # numba found no folder that it can write to: ours is one, if there is any
            with numba_writes_to(cache_folder()):
                return numba.njit(nogil=True, cache=cache)(function)

    source = sys.modules[function.__module__].__file__
    text = Path(source).read_bytes() if source else b""
    key = hashlib.sha256(text).hexdigest() + f" {function.__module__}.{function.__qualname__}"
    return cast(F, update_wrapper(Compiled(make, key if source else None, cache_folder, read_only=False), function))


class Inlined:
    """A function that compiled code calls, and inlines; called from Python it is compiled too."""

    targetoptions: Final = {"nopython": True, "nogil": True, "forceinline": True}
    _can_compile: Final = True

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        update_wrapper(self, function)

    @cached_property
    def dispatcher(self) -> Any:
        """What numba makes of it."""
        return with_numba().njit(nogil=True, forceinline=True)(self.py_func)

    @property
    def _numba_type_(self) -> Any:  # what numba takes a value of a class that it does not know for
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run it."""
        return self.dispatcher(*arguments, **named)

    def __reduce__(self) -> tuple[Any, ...] | str:
        function = self.py_func
        by_name = function.__module__ != "__main__" and function.__module__ in sys.modules
        if by_name and getattr(sys.modules[function.__module__], function.__qualname__, None) is self:
            return function.__qualname__
        return Inlined, (function,)


def inlined(function: F) -> F:
    """Compile a function that is only ever called from compiled code, and inline it into its caller.

    Measured on `svt`: a call that is not inlined costs 20 ns of a run's 85.
    """
    return cast(F, Inlined(function))
