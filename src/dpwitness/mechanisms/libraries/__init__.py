"""Objects of DP libraries as mechanisms: each file has a `LIBRARY`, an object of a class derived from `Library`.

Other packages register a library in the entry-point group `dpwitness.libraries`.
"""

import inspect
import warnings
from functools import cache
from importlib.metadata import entry_points
from typing import Final

from dpwitness.checks import brief, class_and_text
from dpwitness.mechanisms.libraries.library import Library
from dpwitness.mechanisms.libraries.objects import LIBRARY as OBJECTS
from dpwitness.mechanisms.libraries.opendp import LIBRARY as OPENDP

__all__ = ["LIBRARY_GROUP", "Library", "library_of", "registered"]

#: The entry-point group of libraries.
LIBRARY_GROUP: Final = "dpwitness.libraries"
#: The library of objects that no other library recognises, with the defaults of `Library`.
NO_LIBRARY: Final = Library()


@cache
def registered() -> tuple[Library, ...]:
    """All libraries, in order of precedence; a library that cannot be loaded is left out with a warning."""
    others = []
    for point in sorted(entry_points(group=LIBRARY_GROUP), key=lambda point: point.name):
        try:
            library = point.load()
        except (Exception, SystemExit) as error:
            why = f"cannot be loaded: {class_and_text(error)}"
        else:
            if isinstance(library, Library):
                others.append(library)
                continue
            why = f"is {brief(library)}, and must be an object of a class derived from Library"
        warnings.warn(f"the library {point.name!r} ({point.value}) {why}; it is left out", stacklevel=2)
    return (*others, OPENDP, OBJECTS)


def library_of(thing: object) -> Library:
    """The library of an object; `NO_LIBRARY` if no library recognises it.

    A library that raises is passed over with a warning: it must not hide objects of other libraries.
    """
    if inspect.isroutine(thing):
        return NO_LIBRARY
    for library in registered():
        try:
            if library.recognises(thing):
                return library
        except Exception as error:
            warnings.warn(
                f"the library {type(library).__name__!r} is left out: its recognises raised {class_and_text(error)}",
                stacklevel=2,
            )
    return NO_LIBRARY
