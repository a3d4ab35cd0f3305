"""`dpwitness attack table_builder`: averaging attacks on noisy counts, of a simulated system or of the user's own.

The attack sees a system's answers alone; the data make the simulated system, and say afterwards how much is right.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from dpwitness.attacks.family import AttackFamily, Commands
from dpwitness.attacks.options import deadline_of, require_time, seed_of
from dpwitness.attacks.oracles.command import attack_system, described
from dpwitness.attacks.oracles.options import is_real
from dpwitness.attacks.table_builder import options, outcome, simulation
from dpwitness.attacks.table_builder.averaging import choose_base
from dpwitness.attacks.table_builder.goal_command import Goal
from dpwitness.attacks.table_builder.perturbation import (
    Perturbation,
    find_perturbation_within,
    find_perturbation_without_totals,
    largest_sum,
    pairs_within,
    usable_conditions,
)
from dpwitness.attacks.table_builder.protocol import System
from dpwitness.attacks.table_builder.report import (
    defences_text,
    histogram_text,
    parameter_text,
    plot_histogram,
    plot_parameter,
)
from dpwitness.attacks.table_builder.table import Table
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.progress import live
from dpwitness.cli.results import check_places, hand_over
from dpwitness.errors import InvalidParameter

MOST_SUMS = 100_000
Result = dict[str, Any]


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Declare the command and its options."""
    options.declare(commands, family, run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit code is 0, or 2 for bad input, which raises."""
    options.check(arguments)
    check_places(arguments)  # before the attack, not after it
    if arguments.defences:
        return _defences(arguments)
    started = time.monotonic()
    result = _attack_own(arguments) if is_real(arguments) else _attack_simulated(arguments)
    if result is None:
        return NOT_REFUTED  # its questions wait in a file
    result["seconds"] = time.monotonic() - started
    texts = (histogram_text, plot_histogram) if arguments.recover == "histogram" else (parameter_text, plot_parameter)
    text, plot = texts
    return hand_over(arguments, NOT_REFUTED, lambda: result, lambda: text(result), plot=lambda path: plot(result, path))


def _attack_simulated(arguments: argparse.Namespace) -> Result:
    """Make a system of the data, attack it, and compare."""
    law, table = simulation.law_of(arguments), simulation.table_of(arguments)
    seed = seed_of(arguments)
    noise, choices = (np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(2))
    suppression = simulation.suppression_of(arguments, law)
    about = {
        "attack": arguments.attack,
        "recover": arguments.recover,
        "data": arguments.data or simulation.EMBEDDED,
        "system": arguments.system,
        "noise": arguments.noise,
        "perturbation": law.bound,
        "suppression": suppression,
        "seed": seed,
    }
    known = law if arguments.system in simulation.INDEPENDENT else None
    if arguments.recover == "perturbation":
        known = law if arguments.system == "without-totals" else known
        system = simulation.system(arguments, law, table, noise)
        found = _find_parameter(arguments, system, choices)
        result = outcome.found_parameter(found, known) | {"right": found.guess == law.bound}
        return about | {"attribute": _attribute(arguments, system)} | result | {"queries": system.asked}
    goal = Goal(arguments, table.values)
    if known is not None and goal.needs_no_other(table, suppression):
        table = table.only([goal.attribute, *goal.where])  # few profiles make a quick system
    system = simulation.system(arguments, law, table, noise)
    return about | goal.recover(system, choices) | goal.compare(goal.true(table), known, suppression)


def _attack_own(arguments: argparse.Namespace) -> Result | None:
    """Attack the user's system; None where its questions wait in a file."""
    from dpwitness.attacks.table_builder.asked import AskedSystem
    from dpwitness.attacks.table_builder.questions import FORM

    table = simulation.table_of(arguments) if arguments.data else None
    values = _own_values(arguments, table)
    goal = Goal(arguments, values) if arguments.recover == "histogram" else None
    true = None if goal is None or table is None else goal.true(table)
    names = ("recover", "column", "where", "value", "partitions", "base", "base_partitions", "sums", "budget")
    settings = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    settings["values"] = {name: list(given) for name, given in values.items()}

    def attack(asking: Any, seed: int) -> Result:
        system, rng = AskedSystem(asking, values), np.random.default_rng(seed)
        about = {"attack": arguments.attack, "recover": arguments.recover, "data": arguments.data, "seed": seed}
        about |= described(arguments, asking) | {"stopped": None}
        if goal is None:
            attribute = _attribute(arguments, system)
            found = outcome.found_parameter(_find_parameter(arguments, system, rng), None)
            about |= described(arguments, asking) | {"stopped": asking.stopped}
            return about | found | {"attribute": attribute, "queries": asking.asked}
        result = about | goal.recover(system, rng)
        result |= described(arguments, asking) | {"stopped": asking.stopped}
        return result | ({"right": None, "true": None} if true is None else goal.compare(true, None, None))

    return attack_system(arguments, FORM, settings, attack, partial=True)


def _own_values(arguments: argparse.Namespace, table: Table | None) -> Mapping[str, Sequence[Any]]:
    """The attributes of the user's system and their values: of --values, else of --data, else of the system itself."""
    from dpwitness.attacks.table_builder.questions import values_of
    from dpwitness.mechanisms.catalog import load_object

    if arguments.values is not None:
        return simulation.values_of(arguments.values)
    if table is not None:
        return table.values
    values = None if arguments.oracle is None else values_of(load_object(arguments.oracle))
    if values is None:
        raise InvalidParameter("the attack must know which values to ask for: give --values NAME=A,B,C, or --data")
    return values


def _attribute(arguments: argparse.Namespace, system: System) -> str:
    """The attribute whose pairs of values are added up to find r: the one with the fewest values."""
    return str(arguments.column or min(system.attributes, key=lambda name: len(system.values(name))))


def _find_parameter(arguments: argparse.Namespace, system: System, rng: np.random.Generator) -> Perturbation:
    """Algorithm 3 in sub-populations by the other attributes, or within the attribute where it is the only one."""
    deadline = deadline_of(arguments)
    sums = 200 if arguments.sums is None else arguments.sums
    if not 1 <= sums <= MOST_SUMS:
        raise InvalidParameter(f"--sums {sums} must lie between 1 and {MOST_SUMS}")
    attribute = _attribute(arguments, system)
    base = choose_base(system, attribute, 16)
    if arguments.budget is not None:
        sums = min(sums, max(1, (arguments.budget - system.asked) // 3))
    if len(system.attributes) == 1:
        return find_perturbation_within(system, rng, attribute, base, sums)
    if len(base) < 2:
        raise InvalidParameter(f"attribute {attribute!r} has {len(base)} answers above 0: at least 2 are needed")
    values = {name: system.values(name) for name in system.attributes}
    within = simulation.conditions(values, attribute, rng)
    if arguments.budget is not None:
        within = islice(within, sums)
    _, answers = usable_conditions(system, attribute, (int(base[0]), int(base[1])), within, sums)
    for name in sorted(values, key=lambda name: -len(values[name])):
        require_time(arguments, deadline, "--sums")
        # Sub-populations may be few: sets of values are as good, so that more attributes never tell less.
        missing = sums - len(answers)
        if arguments.budget is not None:
            missing = min(missing, (arguments.budget - system.asked - len(values[name])) // 3)
        if missing > 0 and len(base := choose_base(system, name, 16)) >= 2:
            answers = np.vstack([answers, pairs_within(system, rng, name, base, missing)])
    found = largest_sum(answers)
    if found.guess or len(values) < 3:
        return found
    # Totals without noise of their own (section 7.1): two attributes with few values, within the others'.
    first, second = sorted(values, key=lambda name: len(values[name]))[:2]
    del values[second]
    within = simulation.conditions(values, first, rng)
    return find_perturbation_without_totals(system, first, second, within, sums)


def _defences(arguments: argparse.Namespace) -> int:
    """Measure the table of defences."""
    from dpwitness.attacks.table_builder.defences import measure

    seed = seed_of(arguments)
    with live(arguments) as progress:
        show = None if progress is None else lambda done, of, row: progress("measure", done, of, row)
        rows = measure(seed, deadline=deadline_of(arguments), progress=show)
    result = {"attack": arguments.attack, "defences": rows, "seed": seed}
    return hand_over(arguments, NOT_REFUTED, lambda: result, lambda: defences_text(rows))
