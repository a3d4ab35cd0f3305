"""Which counts `dpwitness attack table_builder` is to recover, and how right they are."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpwitness.attacks.options import deadline_of, require_time
from dpwitness.attacks.oracles.options import is_real
from dpwitness.attacks.table_builder import outcome, simulation
from dpwitness.attacks.table_builder.plan import BASE_SIZE, Plan
from dpwitness.attacks.table_builder.protocol import System
from dpwitness.attacks.table_builder.table import Table, parse_value
from dpwitness.cli.progress import live
from dpwitness.errors import InvalidParameter

__all__ = ["Goal"]

Result = dict[str, Any]


class Goal:
    """Which counts are wanted, by which plan: from the options, whose system it does not know."""

    def __init__(self, arguments: argparse.Namespace, values: Mapping[str, Sequence[Any]]) -> None:
        self.arguments, self.deadline = arguments, deadline_of(arguments)
        self.where = simulation.where_of(arguments.where or [])
        self.attribute = arguments.column or next(iter(values))
        for name in (self.attribute, *self.where):
            if name not in values:
                raise InvalidParameter(f"there is no attribute {name!r}; the attributes are {', '.join(values)}")
        if self.attribute in self.where:
            raise InvalidParameter(f"--where {self.attribute}=…: this is the attacked attribute; give another --column")
        self.where = {
            name: tuple(_same(values[name], one, f"--where {name}={one}") for one in chosen)
            for name, chosen in self.where.items()
        }
        self.known = list(values[self.attribute])
        self.targets = None if arguments.value is None else tuple(_place(self.known, text) for text in arguments.value)
        more = {} if arguments.base is None else {"base": arguments.base}
        self.plan = Plan(
            targets=self.targets,
            partitions=arguments.partitions,
            base_partitions=arguments.base_partitions,
            questions=arguments.budget,
            **more,
        )

    def needs_no_other(self, table: Table, suppression: int) -> bool:
        """Whether so many values are not suppressed that the attack partitions no other attribute in any case."""
        base = self.plan.base if isinstance(self.plan.base, int) else 0
        return min(base, int(np.sum(table.histogram(self.attribute, self.where) > suppression)) - 1) >= BASE_SIZE

    def recover(self, system: System, rng: np.random.Generator) -> Result:
        """What the attack finds."""
        from dpwitness.attacks.table_builder.without_totals import recover

        with live(self.arguments) as progress:

            def done(values: int, of: int) -> None:
                require_time(self.arguments, self.deadline, "--partitions")
                if progress is not None and not is_real(self.arguments):  # there the questions are shown
                    progress("recover", values, of, f"{system.asked} queries")

            self.found = recover(system, rng, self.attribute, self.plan, where=self.where, progress=done)
        return {"where": {name: list(v) for name, v in self.where.items()}, **outcome.found_histogram(self.found)}

    def true(self, table: Table) -> list[int]:
        """The true count of each wanted value, 0 of one that nobody in the table has.

        Raises `InvalidParameter` where the table knows none of the values.
        """
        counts = table.histogram(self.attribute, self.where)
        people = dict(zip(table.values[self.attribute], counts.tolist(), strict=True))
        if not any(value in people for value in self.known):
            raise InvalidParameter(
                f"--data has none of the values of {self.attribute!r}, which are {_some(self.known)}; it has "
                f"{_some(list(people))}"
            )
        wanted = self.known if self.targets is None else [self.known[place] for place in self.targets]
        return [people.get(value, 0) for value in wanted]

    def compare(self, wanted: list[int], law: Any, suppression: int | None) -> Result:
        """How much of it is right."""
        return outcome.compared(wanted, self.found, suppression) | outcome.predicted(law, self.found, wanted)


def _place(known: list[Any], text: str) -> int:
    """The position of a value that --value names."""
    for value in (parse_value(text), text):
        if value in known:
            return known.index(value)
    raise InvalidParameter(f"--value {text!r} is no value of the attribute; it has {_some(known)}")


def _same(known: Sequence[Any], value: Any, option: str) -> Any:
    """The known value that an option names, as a number or as its text."""
    found = [one for one in known if one == value] or [one for one in known if str(one) == str(value)]
    if not found:
        raise InvalidParameter(f"{option}: there is no such value; the attribute has {_some(known)}")
    return found[0]


def _some(values: Sequence[Any]) -> str:
    """The first values on a line."""
    return ", ".join(map(str, values[:8])) + (", …" if len(values) > 8 else "")
