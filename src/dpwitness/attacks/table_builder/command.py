"""`dpwitness attack table_builder`: averaging attacks on bounded noisy counts, on real data.

The system is simulated on the data; the attack sees its answers alone.
"""

import argparse
import time
from typing import Any

import numpy as np

from dpwitness.attacks.family import AttackFamily, Commands
from dpwitness.attacks.options import MAX_TIME, ONE_THREAD, deadline_of, require_time, seed_of
from dpwitness.attacks.table_builder import simulation
from dpwitness.attacks.table_builder.averaging import choose_base
from dpwitness.attacks.table_builder.histogram import recover_histogram
from dpwitness.attacks.table_builder.noise_laws import NoiseLaw
from dpwitness.attacks.table_builder.perturbation import (
    Perturbation,
    find_perturbation,
    find_perturbation_within,
    usable_conditions,
)
from dpwitness.attacks.table_builder.report import histogram_text, parameter_text, plot_histogram, plot_parameter
from dpwitness.attacks.table_builder.systems import Oracle
from dpwitness.attacks.table_builder.table import Table
from dpwitness.attacks.table_builder.theory import histogram_bound, perturbation_found
from dpwitness.cli import options
from dpwitness.cli.arguments import number, whole
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.cli.parser import command
from dpwitness.cli.progress import live
from dpwitness.cli.results import check_places, hand_over
from dpwitness.errors import InvalidParameter

MOST_SUMS = 100_000
#: Options of one of the two goals alone.
OF_HISTOGRAM = ("partitions", "base", "base_partitions", "where")
OF_PARAMETER = ("sums",)


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Declare the command and its options."""
    examples = ("attack table_builder --partitions 200", "attack table_builder --recover perturbation --perturbation 3")
    parser = command(commands, family.name, summary=family.summary, run=run, examples=examples)
    parser.description = "Simulates a system that publishes counts with bounded noise, and averages the noise away."
    parser.add_argument(
        "--recover",
        choices=("histogram", "perturbation"),
        default="histogram",
        help="the count of each value (default), or r, how large the noise is",
    )
    parser.add_argument(
        "--data", metavar="FILE.csv", help=f"people, or values with a column of counts (default: {simulation.EMBEDDED})"
    )
    parser.add_argument("--column", metavar="NAME", help="the attacked attribute (default: the first)")
    parser.add_argument("--perturbation", type=whole, default=2, help="r: noise lies within ±r (default 2)")
    parser.add_argument("--suppression", type=whole, help="s: counts of at most s become 0 (default: max(r, 4))")
    parser.add_argument("--system", choices=tuple(simulation.SYSTEMS), default="bounded", help="who shares a noise")
    parser.add_argument("--noise", choices=simulation.LAWS, default="uniform", help="its law (default uniform)")
    parser.add_argument("--scale", type=number, help="its scale (of maximum-entropy: the standard deviation at most)")
    group = parser.add_argument_group("--recover histogram")
    group.add_argument("--partitions", type=whole, help="two-partitions for each value (default 200)")
    group.add_argument("--base", type=whole, metavar="N", help="values in the base set (default: as few as suffice)")
    group.add_argument(
        "--base-partitions", type=whole, help="two-partitions of the base set, asked once (default 1000, or all)"
    )
    group.add_argument("--where", metavar="NAME=VALUE", action="append", help="only people with this (repeatable)")
    group = parser.add_argument_group("--recover perturbation")
    group.add_argument("--sums", type=whole, help="sub-populations to ask for, 3 answers each (default 200)")
    options.plot(parser)
    options.common(parser, max_time=MAX_TIME, workers=ONE_THREAD)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit code is 0, or 2 for bad input, which raises."""
    for name in OF_PARAMETER if arguments.recover == "histogram" else OF_HISTOGRAM:
        if getattr(arguments, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise InvalidParameter(f"{option} says nothing of --recover {arguments.recover}: leave one of them out")
    check_places(arguments)  # before the attack, not after it
    return _histogram(arguments) if arguments.recover == "histogram" else _parameter(arguments)


def _described(arguments: argparse.Namespace, attribute: str, law: NoiseLaw, suppression: int) -> dict[str, Any]:
    """What both goals say of the attacked system."""
    return {
        "attack": arguments.attack,
        "recover": arguments.recover,
        "data": arguments.data or simulation.EMBEDDED,
        "attribute": attribute,
        "system": arguments.system,
        "noise": arguments.noise,
        "perturbation": law.bound,
        "suppression": suppression,
    }


def _theory_holds(arguments: argparse.Namespace) -> bool:
    """Whether the paper's formulas for uniform noise apply."""
    return arguments.noise == "uniform" and arguments.system in ("bounded", "keyed")


def _generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Streams of the system's noise and of the attack's choices."""
    noise, choices = np.random.SeedSequence(seed).spawn(2)
    return np.random.default_rng(noise), np.random.default_rng(choices)


def _histogram(arguments: argparse.Namespace) -> int:
    started, deadline = time.monotonic(), deadline_of(arguments)
    law, table = simulation.law_of(arguments), simulation.table_of(arguments)
    where = simulation.where_of(arguments.where or [])
    attribute = arguments.column or next(iter(table.values))
    table = table.only([attribute, *where])
    seed = seed_of(arguments)
    noise, rng = _generators(seed)
    oracle = simulation.system(arguments, law, table, noise)
    partitions = 200 if arguments.partitions is None else arguments.partitions
    base_partitions = max(partitions, 1000) if arguments.base_partitions is None else arguments.base_partitions
    if partitions < 1 or base_partitions < 1:
        raise InvalidParameter("--partitions and --base-partitions must be at least 1")
    # Without one of its values the base set must still have enough two-partitions; 11 values have 1,023 of them.
    size = max(partitions.bit_length() + 2, 11) if arguments.base is None else arguments.base
    base = choose_base(oracle, attribute, size, where)
    with live(arguments) as progress:

        def done(values: int, of: int) -> None:
            require_time(arguments, deadline, "--partitions")
            if progress is not None:
                progress("recover", values, of, f"{oracle.asked} queries")

        found = recover_histogram(
            oracle, rng, attribute, base, partitions, base_partitions=base_partitions, where=where, progress=done
        )
    true = table.histogram(attribute, where).tolist()
    k = min(partitions, (1 << (len(base) - 2)) - 1)
    provable = _theory_holds(arguments) and k * law.bound < 1 << 22
    result = _described(arguments, attribute, law, oracle.suppression) | {
        "where": {name: list(chosen) for name, chosen in where.items()},
        "values": list(found.values),
        **_compared(true, list(found.noisy), list(found.counts), oracle.suppression),
        "base": [found.values[i] for i in found.base],
        "base_partitions": found.base_partitions,
        "partitions": k,
        "all_right_at_least": histogram_bound(law, k, len(true)) if provable else None,
        "queries": oracle.asked,
        "seed": seed,
        "seconds": time.monotonic() - started,
    }
    return hand_over(
        arguments,
        NOT_REFUTED,
        lambda: result,
        lambda: histogram_text(result),
        plot=lambda path: plot_histogram(result, path),
    )


def _compared(true: list[int], published: list[int], recovered: list[int], suppression: int) -> dict[str, Any]:
    """True, published and recovered counts, and how many of them are right."""
    hidden = [(t, c) for t, c in zip(true, recovered, strict=True) if 0 < t <= suppression]
    return {
        "true": true,
        "published": published,
        "recovered": recovered,
        "right": sum(t == c for t, c in zip(true, recovered, strict=True)),
        "right_as_published": sum(t == c for t, c in zip(true, published, strict=True)),
        "suppressed": len(hidden),
        "suppressed_right": sum(t == c for t, c in hidden),
    }


def _parameter(arguments: argparse.Namespace) -> int:
    started, deadline = time.monotonic(), deadline_of(arguments)
    sums = 200 if arguments.sums is None else arguments.sums
    if not 1 <= sums <= MOST_SUMS:
        raise InvalidParameter(f"--sums {sums} must lie between 1 and {MOST_SUMS}")
    law, table = simulation.law_of(arguments), simulation.table_of(arguments)
    seed = seed_of(arguments)
    noise, rng = _generators(seed)
    oracle = simulation.system(arguments, law, table, noise)
    attribute = arguments.column or min(table.values, key=lambda name: len(table.values[name]))
    found = _find(oracle, table, attribute, sums, rng)
    require_time(arguments, deadline, "--sums")
    result = _described(arguments, attribute, law, oracle.suppression) | {
        "guess": found.guess,
        "right": found.guess == law.bound,
        "smallest_sum": found.smallest,
        "largest_sum": found.largest,
        "sums": found.sums,
        "probability": perturbation_found(law.bound, found.sums) if _theory_holds(arguments) else None,
        "queries": oracle.asked,
        "seed": seed,
        "seconds": time.monotonic() - started,
    }
    return hand_over(
        arguments,
        NOT_REFUTED,
        lambda: result,
        lambda: parameter_text(result),
        plot=lambda path: plot_parameter(result, path),
    )


def _find(oracle: Oracle, table: Table, attribute: str, sums: int, rng: np.random.Generator) -> Perturbation:
    """Algorithm 3 in sub-populations by the other attributes, or within the attribute where it is the only one."""
    base = choose_base(oracle, attribute, 16)
    if len(table.values) == 1:
        return find_perturbation_within(oracle, rng, attribute, base, sums)
    if len(base) < 2:
        raise InvalidParameter(f"attribute {attribute!r} has {len(base)} answers above 0: at least 2 are needed")
    pair = (int(base[0]), int(base[1]))
    within = usable_conditions(oracle, attribute, pair, simulation.conditions(table, attribute, rng), sums)
    return find_perturbation(oracle, attribute, pair, within)
