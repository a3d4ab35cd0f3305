"""Candidates that attacks propose to a check, each a pair of neighbours and an event, and attacks by name.

Families of attacks, of this package and of others, are the entry points of the group `dpwitness.attacks`:

    [project.entry-points."dpwitness.attacks"]
    my_family = "my_package.my_attacks:FAMILY"
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Candidate as Candidate
from dpwitness.checks import brief, class_and_text, near
from dpwitness.claims import Claim
from dpwitness.errors import InvalidParameter, UnknownAttack
from dpwitness.neighbours import Data, Relation

if TYPE_CHECKING:
    import click

#: The entry-point group of families of attacks.
ATTACK_GROUP: Final = "dpwitness.attacks"

#: A generator of candidates from the mechanism's parameters, the user's D or None, the claim, and the planned number of
#: paired runs. It draws nothing at random and runs nothing; its candidates are tried beside the search.
Attack = Callable[[Mapping[str, Any], Data | None, Claim, int], Iterable[Candidate]]
#: The group of commands `dpwitness attack`, to which families add their commands.
Commands: TypeAlias = "click.Group"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackFamily:
    """Attacks of one origin, registered under the family's name in the entry-point group `dpwitness.attacks`.

    Parameters
    ----------
    name
        The name of the entry point, of the command, and of the family in a target's `attack=`.
    summary
        One line for the help.
    generators
        Generators of candidates by name. A target names a generator as `attack="family.generator"`, or as
        `attack="family"` for the default.
    add_command
        A function that adds a `click.Command` of the family's name, which returns the exit code, to its argument, the
        `click.Group` of `dpwitness attack`. None: no command.
    default
        The generator that the family's name alone means, as in `check(…, attack="family")`. None: the only generator.
    relation
        The default relation of the mechanisms that the family attacks.
    """

    name: str
    summary: str
    generators: Mapping[str, Attack] = field(default_factory=lambda: MappingProxyType({}))
    add_command: Callable[[Commands], None] | None = None
    default: str | None = None
    relation: Relation | None = None

    def generator(self, name: str) -> Attack:
        """The generator of a name; for "" the default, or the only generator. Raises `UnknownAttack`."""
        name = name or self.default or ""
        if not name and len(self.generators) == 1:
            return next(iter(self.generators.values()))
        if name not in self.generators:
            names = " or ".join(f"{self.name}.{known}" for known in sorted(self.generators))
            what = f"has no generator of candidates {name!r}" if name else "does not say which generator of candidates"
            raise UnknownAttack(
                f"attack family {self.name!r} {what}: "
                + (f"name {names}" if names else "it has only a command, so no target can name it")
            )
        return self.generators[name]


def registered() -> dict[str, EntryPoint]:
    """The entry points of all registered families, of this and of other installed packages, by name."""
    return {point.name: point for point in sorted(entry_points(group=ATTACK_GROUP), key=lambda point: point.name)}


def family_named(name: str) -> AttackFamily:
    """The registered family of a name. Raises `UnknownAttack`, also for an entry point of another type."""
    points = registered()
    if name not in points:
        known = f": the group {ATTACK_GROUP!r} has {' and '.join(points) or 'none'}"
        raise UnknownAttack(f"unknown attack family {name!r}{near(name, points) or known}")
    point = points[name]
    whose = f"attack family {name!r} ({point.value}{f' of {point.dist.name}' if point.dist else ''})"
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # another package's code: it may raise anything
        raise UnknownAttack(f"{whose} cannot be loaded: {class_and_text(error)}") from error
    if not isinstance(found, AttackFamily):
        raise UnknownAttack(f"{whose} is {type(found).__name__}: register an AttackFamily")
    if found.name != name:
        raise UnknownAttack(f"{whose} calls itself {found.name!r}: give the entry point and the family one name")
    return found


def attack_named(name: str) -> Attack:
    """The generator of a name, "family.generator", or "family" for the default. Raises `UnknownAttack`."""
    family, _, generator = name.partition(".")
    return family_named(family).generator(generator)


def chosen_attack(given: str | Attack | None) -> tuple[Attack | None, Relation | None]:
    """The attack that a user names, and its family's relation; or the given function, and None. Raises `BadInput`."""
    if isinstance(given, str):
        return attack_named(given), family_named(given.partition(".")[0]).relation
    if given is not None and not callable(given):
        raise InvalidParameter(f"attack={brief(given)} must be a name, such as 'threshold_testing', or a function")
    return given, None


def add_commands(commands: Commands, warn: Callable[[str], None]) -> None:
    """Add each family's command to `dpwitness attack`; `warn` gets a line for each family or command that fails."""
    for name in registered():
        try:
            family = family_named(name)
        except UnknownAttack as error:
            warn(str(error))
            continue
        if family.add_command is None:
            continue
        try:
            family.add_command(commands)
        except (Exception, SystemExit) as error:  # another package's code: it may raise anything
            warn(f"attack family {name!r} has a command that cannot be declared: {class_and_text(error)}")


def as_numbers(data: object) -> NDArray[Any] | None:
    """Data as an array of finite numbers; None for other data, such as records of text."""
    try:
        array = np.asarray(data)
    except ValueError:  # lists of several lengths
        return None
    return array if array.dtype.kind in "biuf" and np.isfinite(array).all() else None


def is_histogram(values: NDArray[Any]) -> bool:
    """Whether values, of shape (cells,), are whole numbers and not negative."""
    return values.ndim == 1 and not np.any(values < 0) and not np.any(values != np.floor(values))
