"""The options of `dpwitness attack table_builder`."""

import argparse
from typing import Any, Final

from dpwitness.attacks.family import AttackFamily, Commands
from dpwitness.attacks.options import MAX_TIME, ONE_THREAD
from dpwitness.attacks.oracles.options import is_real, oracle_options
from dpwitness.attacks.table_builder import simulation
from dpwitness.cli import options
from dpwitness.cli.arguments import number, whole
from dpwitness.cli.parser import command
from dpwitness.errors import InvalidParameter

__all__ = ["check", "declare"]

#: Options of one of the two goals alone.
OF_HISTOGRAM: Final = ("partitions", "base", "base_partitions", "where", "value")
OF_PARAMETER: Final = ("sums",)
#: Options of a simulated system, and of the user's own.
OF_SIMULATION: Final = ("perturbation", "suppression", "system", "noise", "scale")
OF_REAL: Final = ("values", "rate")


def declare(commands: Commands, family: AttackFamily, run: Any) -> None:
    """Declare the command and its options."""
    examples = (
        "attack table_builder --perturbation 5",
        "attack table_builder --recover perturbation --perturbation 3",
        "attack table_builder --oracle mine.py:system --values age=17:90 --value 42",
        "attack table_builder --defences",
    )
    parser = command(commands, family.name, summary=family.summary, run=run, examples=examples)
    parser.description = (
        "Averages away the bounded noise of counts that a system publishes: a simulated one, or your own (--oracle)."
    )
    parser.add_argument(
        "--recover",
        choices=("histogram", "perturbation"),
        default="histogram",
        help="the count of each value (default), or r, how large the noise is",
    )
    parser.add_argument("--defences", action="store_true", help="measure what each defence costs the attacker instead")
    parser.add_argument(
        "--data", metavar="FILE.csv", help=f"people, or values with a column of counts (default: {simulation.EMBEDDED})"
    )
    parser.add_argument("--column", metavar="NAME", help="the attacked attribute (default: the first)")
    group = parser.add_argument_group("the simulated system")
    group.add_argument("--perturbation", type=whole, help="r: noise lies within ±r (default 2)")
    group.add_argument("--suppression", type=whole, help="s: counts of at most s become 0 (default: max(r, 4))")
    group.add_argument("--system", choices=tuple(simulation.SYSTEMS), help="who shares a noise (default bounded)")
    group.add_argument("--noise", choices=simulation.LAWS, help="its law (default uniform)")
    group.add_argument("--scale", type=number, help="its scale (of maximum-entropy: the standard deviation at most)")
    group = parser.add_argument_group("--recover histogram")
    group.add_argument("--value", metavar="VALUE", action="append", help="only this value's count (repeatable)")
    group.add_argument("--where", metavar="NAME=VALUE", action="append", help="only people with this (repeatable)")
    group.add_argument("--partitions", type=whole, help="two-partitions a value (default: 100 × the noise's variance)")
    group.add_argument("--base", type=whole, metavar="N", help="values in the base set at most (default 20)")
    group.add_argument(
        "--base-partitions", type=whole, help="two-partitions of the base set, asked once (default: 2.5 × as many)"
    )
    group = parser.add_argument_group("--recover perturbation")
    group.add_argument("--sums", type=whole, help="sub-populations to ask for, 3 answers each (default 200)")
    oracle_options(parser, 'a condition such as {"age": [30, 31]}', "a whole number, the noisy count")
    parser.add_argument(
        "--values",
        metavar="NAME=VALUES",
        action="append",
        help="an attribute of your own system: A,B,C or LOW:HIGH or @FILE, a value a line (repeatable; or --data)",
    )
    options.plot(parser)
    options.common(parser, max_time=MAX_TIME, workers=ONE_THREAD)


def check(arguments: argparse.Namespace) -> None:
    """Raise `InvalidParameter` for options that say nothing of what is asked for; then fill in the defaults."""
    other = OF_PARAMETER if arguments.recover == "histogram" else OF_HISTOGRAM
    _refuse(arguments, other, f"says nothing of --recover {arguments.recover}")
    if arguments.defences:
        if arguments.recover != "histogram":
            raise InvalidParameter(f"--recover {arguments.recover} says nothing of --defences: leave one of them out")
        more = ("budget", "data", "column", "oracle", "ask", "answers", "plot")
        names = (*OF_HISTOGRAM, *OF_SIMULATION, *OF_REAL, *more)
        _refuse(arguments, names, "says nothing of --defences")
    if is_real(arguments):
        _refuse(arguments, OF_SIMULATION, "describes a simulated system")
    else:
        _refuse(arguments, OF_REAL, "is of an attack on your own system, --oracle")
    defaults = {"perturbation": 2, "system": "bounded", "noise": "uniform"}
    for name, value in defaults.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], reason: str) -> None:
    for name in names:
        if getattr(arguments, name) is not None:
            raise InvalidParameter(f"--{name.replace('_', '-')} {reason}: leave one of them out")
