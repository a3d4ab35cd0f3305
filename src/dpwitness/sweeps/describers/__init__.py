"""Describers, which turn a name of a module into mechanisms. One file a library, with one `DESCRIBER`.

All packages, dpwitness too, name their describers in the entry point group `dpwitness.describers`. The first describer
that describes a thing is used: describers of other packages come first, then describers of dpwitness, `signatures`
last.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, Protocol

from dpwitness.checks import on_one_line
from dpwitness.claims import Claim
from dpwitness.neighbours import Relation

#: NO_DATA is the reason why a function that releases nothing about data is not run.
NO_DATA: Final = "it has no known parameter or method that takes data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The recipe by which a describer makes a mechanism of a thing later, in another process."""

    label: str = ""  # a text that tells the recipes of one thing apart, as bounds=(0, 10)
    settings: Mapping[str, Any] = field(default_factory=dict)  # JSON values for the describer in another process
    refused: str = ""  # the reason why the recipe cannot be run; empty if it can be tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A mechanism with its claim and the inputs that are neighbours.

    `of_records`: whether the input is records of several people; then a mechanism that returns an entry for each record
    is not run, since its claim is about one record. `strict`: whether the attempt is run only if it runs on all of the
    first pairs and on the smallest inputs; a later attempt leaves out inputs that the mechanism refuses. `unknown`: the
    name of the parameter taken for the data, if the name is not one usual for data, else empty; then the attempt is
    checked only if two runs on an input differ, unlike runs of a formula of ε and settings.
    """

    mechanism: Callable[..., Any]  # a function that `check` takes
    claim: Claim
    relations: tuple[Relation, ...]  # all relations that the claim may mean; a refutation needs a violation under each
    adjacency: str  # the relations in words
    parameters: Mapping[str, Any] = field(default_factory=dict)  # the mechanism's parameters, ε among them
    of_records: bool = False
    strict: bool = False
    unknown: str = ""


class Describer(Protocol):
    """A describer of the names of one library as mechanisms; a thing is the object behind a name."""

    def describes(self, thing: object, place: str) -> bool:
        """Whether the describer knows the thing, without running it; `place`: its name, as package.module:name."""

    def recipes(self, thing: object, place: str) -> Sequence[Recipe]:
        """The recipes of the thing, at least one, and the same in every process."""

    def attempts(self, thing: object, recipe: Recipe) -> Iterator[Attempt]:
        """The attempts that the recipe may mean, the most likely first: the first that runs is checked.

        The method is called in a new process. Raises every error of making the mechanism.
        """


@cache
def registered() -> dict[str, Describer]:
    """Return all describers by name, in the order of use; a broken describer is left out with a warning."""
    found: dict[str, Describer] = {}
    points = entry_points(group="dpwitness.describers")
    for point in sorted(points, key=lambda one: (one.value.startswith("dpwitness."), one.name)):
        try:
            describer = point.load()
            found |= {point.name: describer} if describer.describes and describer.recipes and describer.attempts else {}
        except (Exception, SystemExit) as error:
            _warn(f"the describer {point.name!r} ({point.value}) cannot be loaded: {on_one_line(error)}")
    return found | {"signatures": import_module(f"{__name__}.signatures").DESCRIBER}


def describer_of(thing: object, place: str) -> tuple[str, Describer] | None:
    """Return the name and the describer of a module's name; None if no describer finds a claim."""
    for name, one in registered().items():
        try:
            if one.describes(thing, place):
                return name, one
        except Exception as error:
            _warn(f"the describer {name!r}: its describes raised at {place}: {on_one_line(error)}")
    return None


def _warn(why: str) -> None:
    warnings.warn(f"{why}; it is left out", stacklevel=3)
