"""Objects of DP libraries taken as they are: a file a library, with one `LIBRARY` derived from `library.Library`.

Other packages name theirs in the entry point group `dpwitness.libraries`.
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

__all__ = ["GROUP", "Library", "library_of", "registered"]

GROUP: Final = "dpwitness.libraries"
#: The defaults, for objects of no library.
NO_LIBRARY: Final = Library()


#: The methods of a library.
METHODS: Final = ("recognises", "function", "claim", "delta", "may_remember", "neighbours")


def _named(name: str, library: Library) -> Library:
    """The library of another package, whose errors are one line that names it."""

    def asked(method: str, *given: object) -> Any:
        try:
            found = getattr(library, method)(*given)
        except DPWitnessError:
            raise
        except Exception as error:
            raise InvalidParameter(f"the library {name!r}: its {method} raised {class_and_text(error)}") from error
        return as_relation(found) if method == "neighbours" and found is not None else found

    named = copy.copy(library)
    for method in METHODS:
        setattr(named, method, partial(asked, method))
    return named


@cache
def registered() -> tuple[Library, ...]:
    """Return all libraries, those of other packages first; one that is broken is left out with a warning."""
    theirs = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            library = point.load()
        except (Exception, SystemExit) as error:
            why = f"cannot be loaded: {class_and_text(error)}"
        else:
            if isinstance(library, Library):
                theirs.append(_named(point.name, library))
                continue
            why = f"is no object of a class derived from Library but {brief(library)}"
        warnings.warn(f"the library {point.name!r} ({point.value}) {why}; it is left out", stacklevel=2)
    return (*theirs, OPENDP, OBJECTS)


def library_of(thing: object) -> Library:
    """Return the library that an object is of; one with the defaults of `Library` for an object of none.

    A library that fails is left out with a warning: it must not hide objects of others.
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
