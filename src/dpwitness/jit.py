"""Compilation by numba, which is imported with the first compiled function, as its import takes half a second."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from dpwitness.machine import COMPILATION_STOPWATCH, cache_folder, numba_writes_to

F = TypeVar("F", bound=Callable[..., Any])
#: The lock that a thread holds while it imports numba or makes a kernel.
_lock = threading.RLock()
#: The compiled kernels, by their functions.
_kernels: Final[dict[Callable[..., Any], Any]] = {}
#: The module numba; None until it is imported.
_numba: Any = None


def with_numba() -> Any:
    """The module numba. `COMPILATION_STOPWATCH` counts the seconds for which it compiles."""
    global _numba
    with _lock:
        if _numba is None:
            import numba
            from numba.core import event

            class Listener(event.Listener):
                """A listener that times compilation; callees are compiled within their caller's compilation."""

                def on_start(self, event: object) -> None:
                    COMPILATION_STOPWATCH.start()

                def on_end(self, event: object) -> None:
                    COMPILATION_STOPWATCH.stop()

            event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]  # numba has no types
            _numba = numba
    return _numba


def inlined(function: F) -> F:
    """A function as machine code that is inlined in kernels of the same file."""
    return with_numba().njit(nogil=True, forceinline=True)(function)  # type: ignore[no-any-return]  # numba has no types


def kernel(function: F) -> F:
    """A function as machine code that holds no GIL, kept in the cache folder; numba compiles it for its first call.

    Numba compiles it anew if its file has changed, so its callees and constants must be in the same file.
    """
    with _lock:
        if function not in _kernels:
            _kernels[function] = kept(with_numba().njit(nogil=True)(function), cache_folder())
    return _kernels[function]  # type: ignore[no-any-return]  # numba has no types


def kept(dispatcher: Any, folder: Path) -> Any:
    """A numba function whose machine code is kept in a folder, which must be the user's own.

    A damaged file counts as absent and is written anew. If the disk is full, machine code is not kept.
    """
    from numba.core.caching import FunctionCache

    class KeptCode(FunctionCache):
        """A cache of one function's machine code that raises no error for a damaged file or a full disk."""

        def load_overload(self, signature: object, context: object) -> object:
            try:
                return super().load_overload(signature, context)  # type: ignore[no-untyped-call]
            except Exception:  # unpickling a damaged file may raise anything
                try:
                    self.flush()  # type: ignore[no-untyped-call]
                except OSError:
                    self.disable()  # type: ignore[no-untyped-call]
                return None

        def save_overload(self, signature: object, data: object) -> None:
            try:
                super().save_overload(signature, data)  # type: ignore[no-untyped-call]
            except OSError:
                self.disable()  # type: ignore[no-untyped-call]

    with numba_writes_to(folder):
        dispatcher._cache = KeptCode(dispatcher.py_func)  # type: ignore[no-untyped-call]  # as njit(cache=True) does
    return dispatcher
