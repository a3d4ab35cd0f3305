"""Objects of DP libraries taken as they are: a file a library, with one `LIBRARY` derived from `library.Library`.

The files of this folder are found by themselves; other packages name theirs in the entry point group
`dpwitness.libraries`.
"""

import inspect
import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from dpwitness.mechanisms.libraries.library import Library

__all__ = ["GROUP", "Library", "library_of", "registered"]

GROUP: Final = "dpwitness.libraries"
#: What holds for objects of no library.
NO_LIBRARY: Final = Library()


@cache
def registered() -> tuple[Library, ...]:
    """Return all libraries, those of other packages first. Raises what an entry point raises when it is loaded."""
    theirs = [point.load() for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)]
    modules = [import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return (*theirs, *(module.LIBRARY for module in modules if hasattr(module, "LIBRARY")))


def library_of(thing: object) -> Library:
    """Return the library that an object is of; one with the defaults of `Library` for an object of none."""
    if inspect.isroutine(thing):
        return NO_LIBRARY
    return next((library for library in registered() if library.recognises(thing)), NO_LIBRARY)
