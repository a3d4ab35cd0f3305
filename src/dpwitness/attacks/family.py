"""What a family of attacks says of itself: all that `check` and the command line know of it."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from dpwitness.attacks.candidate import Attack
from dpwitness.errors import UnknownAttack
from dpwitness.neighbours import Relation

__all__ = ["AttackFamily", "Commands"]

#: Where commands are declared: what `add_subparsers` of a parser returns, whatever its class of parsers.
Commands: TypeAlias = "argparse._SubParsersAction[Any]"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackFamily:
    """Attacks of one origin, registered under their name in the entry-point group `dpwitness.attacks`.

    Parameters
    ----------
    name
        The entry point's name: of the command, and of the family in a target's `attack=`.
    summary
        One line for the help.
    generators
        Generators of candidates by name. A target asks for one as `attack="family.generator"`, or as `attack="family"`
        where the family has no other.
    add_command
        Declares `dpwitness attack NAME` on what it is given, the subparsers of `dpwitness attack`: it adds a parser of
        the family's name whose default `run` takes the parsed arguments and returns the exit code. None: no command.
    default
        The name of the generator that is meant where the family alone is named, as by `check(…, attack="family")`.
    relation
        Which inputs are neighbours for mechanisms of the kind that the family attacks, where nobody says so.
    """

    name: str
    summary: str
    generators: Mapping[str, Attack] = field(default_factory=lambda: MappingProxyType({}))
    add_command: Callable[[Commands], None] | None = None
    default: str | None = None
    relation: Relation | None = None

    def generator(self, name: str) -> Attack:
        """The generator of that name; for "" the default, or the only one. Raises `UnknownAttack`."""
        name = name or self.default or ""
        if not name and len(self.generators) == 1:
            return next(iter(self.generators.values()))
        if name not in self.generators:
            names = " or ".join(f"{self.name}.{known}" for known in sorted(self.generators))
            what = f"has no generator of candidates {name!r}" if name else "does not say which generator of candidates"
            raise UnknownAttack(
                f"attack family {self.name!r} {what}: "
                + (f"name {names}" if names else "it has a command alone, so no target can name it")
            )
        return self.generators[name]
