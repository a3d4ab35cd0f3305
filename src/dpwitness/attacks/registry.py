"""Attacks by name: the families of the entry-point group `dpwitness.attacks`, ours and those of others alike.

[project.entry-points."dpwitness.attacks"]
my_family = "my_package.my_attacks:FAMILY"
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from dpwitness.attacks.candidate import Attack
from dpwitness.attacks.family import AttackFamily, Commands
from dpwitness.checks import brief
from dpwitness.errors import InvalidParameter, UnknownAttack
from dpwitness.neighbours import Relation

__all__ = ["GROUP", "ChosenAttack", "add_commands", "attack_named", "chosen_attack", "family_named", "registered"]

GROUP: Final = "dpwitness.attacks"


def registered() -> dict[str, EntryPoint]:
    """All registered families by name, not loaded: ours, and those of other installed packages."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def family_named(name: str) -> AttackFamily:
    """Load the registered family of that name.

    Raises `UnknownAttack` where there is none, where its package cannot be imported, and where what it names is no
    `AttackFamily` of that name.
    """
    points = registered()
    if name not in points:
        near = difflib.get_close_matches(name, points, n=3, cutoff=0.5) or list(points)
        raise UnknownAttack(f"unknown attack family {name!r}: the group {GROUP!r} has {' and '.join(near) or 'none'}")
    point = points[name]
    whose = f"attack family {name!r} ({point.value}{f' of {point.dist.name}' if point.dist else ''})"
    try:
        found = point.load()
    except Exception as error:  # another package's code: it may raise anything
        raise UnknownAttack(f"{whose} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(found, AttackFamily):
        raise UnknownAttack(f"{whose} is {type(found).__name__}: register an AttackFamily")
    if found.name != name:
        raise UnknownAttack(f"{whose} calls itself {found.name!r}: give the entry point and the family one name")
    return found


def attack_named(name: str) -> Attack:
    """The generator of candidates that a target's `attack=` names.

    Parameters
    ----------
    name
        `"family.generator"`, or `"family"` where the family has one generator only.

    Raises `UnknownAttack` where there is no such family or generator, or the family cannot be loaded.
    """
    family, _, generator = name.partition(".")
    return family_named(family).generator(generator)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenAttack:
    """What `attack=` of a check names: what proposes candidates, and the relation of its family, if it has one."""

    propose: Attack | None = None
    relation: Relation | None = None


def chosen_attack(given: str | Attack | None) -> ChosenAttack:
    """The attack that a user names as a target would, or brings; None: neither.

    Raises `UnknownAttack`, and `InvalidParameter` for what is neither.
    """
    if isinstance(given, str):
        return ChosenAttack(propose=attack_named(given), relation=family_named(given.partition(".")[0]).relation)
    if given is not None and not callable(given):
        raise InvalidParameter(f"attack={brief(given)} must be a name, such as 'threshold_testing', or a function")
    return ChosenAttack(propose=given)


def add_commands(commands: Commands, warn: Callable[[str], None]) -> None:
    """Declare the command of every registered family on the subparsers of `dpwitness attack`.

    A family that cannot be loaded, or whose command cannot be declared, hides no other: `warn` gets one line about it.
    """
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
        except Exception as error:  # another package's code: it may raise anything
            warn(f"attack family {name!r} has a command that cannot be declared: {type(error).__name__}: {error}")
