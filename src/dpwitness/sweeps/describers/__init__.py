"""Describers: what a name of a module is as a mechanism. One file a library, with one `DESCRIBER`.

The files of this folder are found by themselves; other packages name theirs in the entry point group
`dpwitness.describers`. The first that describes a thing is asked, and `signatures` is asked last.
"""

import pkgutil
import warnings
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from dpwitness.checks import on_one_line
from dpwitness.errors import InvalidParameter
from dpwitness.sweeps.describers.describer import Attempt, Describer, Recipe

__all__ = ["GROUP", "Attempt", "Describer", "Recipe", "describer_named", "describer_of", "registered"]

GROUP: Final = "dpwitness.describers"
#: Of the files here those that are no describer, and the one that is asked last.
PROTOCOL, LAST = "describer", "signatures"


class _OfPackage:
    """A describer of another package: what it fails on is left to others."""

    def __init__(self, name: str, describer: Describer) -> None:
        self._name = name
        self._describer = describer
        self.recipes = describer.recipes
        self.attempts = describer.attempts

    def describes(self, thing: object, place: str) -> bool:
        """As `Describer.describes`; with a warning not where that fails."""
        try:
            return bool(self._describer.describes(thing, place))
        except Exception as error:
            _left_out(f"the describer {self._name!r}: its describes raised at {place}: {on_one_line(error)}")
            return False


def _left_out(why: str) -> None:
    warnings.warn(f"{why}; it is left out", stacklevel=3)


@cache
def registered() -> dict[str, Describer]:
    """Return all describers by name, those of other packages first; one that is broken is left out with a warning."""
    found: dict[str, Describer] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            found[point.name] = _OfPackage(point.name, point.load())
        except (Exception, SystemExit) as error:  # what has no such methods included
            _left_out(f"the describer {point.name!r} ({point.value}) cannot be loaded: {on_one_line(error)}")
    ours = [one.name for one in pkgutil.iter_modules(__path__) if one.name not in (PROTOCOL, LAST)]
    return found | {name: import_module(f"{__name__}.{name}").DESCRIBER for name in (*ours, LAST)}


def describer_of(thing: object, place: str) -> tuple[str, Describer] | None:
    """Return who describes what a module has under a name; None where nothing shows a claim."""
    return next(((name, one) for name, one in registered().items() if one.describes(thing, place)), None)


def describer_named(name: str) -> Describer:
    """Return the describer of a name. Raises `InvalidParameter` for one that is not installed."""
    if name not in registered():
        raise InvalidParameter(f"describer={name!r} is not known here; known: {', '.join(registered())}")
    return registered()[name]
