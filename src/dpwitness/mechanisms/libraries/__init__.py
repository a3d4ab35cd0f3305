"""Objects of DP libraries taken as they are: a file a library, with one `LIBRARY` derived from `library.Library`.

The files of this folder are found by themselves; other packages name theirs in the entry point group
`dpwitness.libraries`.
"""

import inspect
import pkgutil
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

from dpwitness.checks import brief, class_and_text, number
from dpwitness.claims import Claim, is_claim
from dpwitness.errors import DPWitnessError, InvalidNeighbours, InvalidParameter
from dpwitness.mechanisms.libraries.library import Library
from dpwitness.neighbours import Relation, as_relation

__all__ = ["GROUP", "Library", "library_of", "registered"]

GROUP: Final = "dpwitness.libraries"
#: What holds for objects of no library.
NO_LIBRARY: Final = Library()


class _OfPackage(Library):
    """A library of another package: what goes wrong in it is said in one line that names it."""

    def __init__(self, name: str, library: Library) -> None:
        self._name = name
        self._library = library
        self.takes_distance = library.takes_distance

    def recognises(self, thing: object) -> bool:
        """Whether an object is of this library; with a warning not where it fails, as for objects of others."""
        try:
            return bool(self._library.recognises(thing))
        except Exception as error:
            warnings.warn(f"{self._failed('recognises', error)}; it is left out", stacklevel=2)
            return False

    def function(self, thing: Any) -> Callable[..., object]:
        """As `Library.function`."""
        function = self._asked("function", thing)
        if not callable(function):
            raise InvalidParameter(f"the library {self._name!r}: its function gave {brief(function)}, no function")
        return function  # type: ignore[no-any-return]  # callable() narrows Any to nothing better

    def claim(self, thing: object, d_in: object = None) -> Claim | None:
        """As `Library.claim`."""
        claim = self._asked("claim", thing, d_in)
        if not (claim is None or is_claim(claim)):
            raise InvalidParameter(f"the library {self._name!r}: its claim gave {brief(claim)}, no claim")
        return claim

    def delta(self, thing: object, d_in: object = None) -> float:
        """As `Library.delta`."""
        return number(f"the library {self._name!r}: its delta", self._asked("delta", thing, d_in))

    def may_remember(self, thing: object) -> bool:
        """As `Library.may_remember`."""
        return bool(self._asked("may_remember", thing))

    def neighbours(self, thing: object) -> Relation | None:
        """As `Library.neighbours`."""
        given = self._asked("neighbours", thing)
        try:
            return None if given is None else as_relation(given)
        except InvalidNeighbours as error:
            raise InvalidNeighbours(f"the library {self._name!r}: its {error}") from error

    def _asked(self, method: str, *given: object) -> Any:
        try:
            return getattr(self._library, method)(*given)
        except DPWitnessError:
            raise
        except Exception as error:
            raise InvalidParameter(self._failed(method, error)) from error

    def _failed(self, method: str, error: Exception) -> str:
        return f"the library {self._name!r}: its {method} raised {class_and_text(error)}"


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
                theirs.append(_OfPackage(point.name, library))
                continue
            why = f"is no object of a class derived from Library but {brief(library)}"
        warnings.warn(f"the library {point.name!r} ({point.value}) {why}; it is left out", stacklevel=2)
    modules = [import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return (*theirs, *(module.LIBRARY for module in modules if hasattr(module, "LIBRARY")))


def library_of(thing: object) -> Library:
    """Return the library that an object is of; one with the defaults of `Library` for an object of none."""
    if inspect.isroutine(thing):
        return NO_LIBRARY
    return next((library for library in registered() if library.recognises(thing)), NO_LIBRARY)
