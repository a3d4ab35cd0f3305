"""Objects of DP libraries as mechanisms: each file has a `LIBRARY`, an object of a class derived from `Library`.

Other packages register a library in the entry-point group `dpwitness.libraries`.
"""

import copy
import inspect
import warnings
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Any, Final

from dpwitness.checks import brief, class_and_text
from dpwitness.errors import DPWitnessError, InvalidParameter
from dpwitness.mechanisms.libraries.library import Library
from dpwitness.mechanisms.libraries.objects import LIBRARY as OBJECTS
from dpwitness.mechanisms.libraries.opendp import LIBRARY as OPENDP
from dpwitness.neighbours import as_relation

__all__ = ["LIBRARY_GROUP", "Library", "library_of", "registered"]

#: The entry-point group of libraries.
LIBRARY_GROUP: Final = "dpwitness.libraries"
#: The library of objects that no other library recognises, with the defaults of `Library`.
NO_LIBRARY: Final = Library()


def _named(name: str, library: Library) -> Library:
    """The library of another package; its errors become `InvalidParameter`, in one line with the library's name."""

    def asked(method: str, *given: object) -> Any:
        try:
            found = getattr(library, method)(*given)
        except DPWitnessError:
            raise
        except Exception as error:
            raise InvalidParameter(f"the library {name!r}: its {method} raised {class_and_text(error)}") from error
        return as_relation(found) if method == "neighbours" and found is not None else found

    named = copy.copy(library)
    for method in ("recognises", "function", "claim", "delta", "may_remember", "neighbours"):
        setattr(named, method, partial(asked, method))
    return named


@cache
def registered() -> tuple[Library, ...]:
    """All libraries, those of other packages first; a library that cannot be loaded is left out with a warning."""
    others = []
    for point in sorted(entry_points(group=LIBRARY_GROUP), key=lambda point: point.name):
        try:
            library = point.load()
        except (Exception, SystemExit) as error:
            why = f"cannot be loaded: {class_and_text(error)}"
        else:
            if isinstance(library, Library):
                others.append(_named(point.name, library))
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
        except InvalidParameter as error:
            warnings.warn(f"{error}; it is left out", stacklevel=2)
    return NO_LIBRARY
