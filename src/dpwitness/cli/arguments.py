"""What the command line understands: one parser, checked while it is read."""

import argparse
import json
import math
from importlib import import_module
from typing import Any, NoReturn

from dpwitness.errors import BadInput, InvalidParameter
from dpwitness.neighbours import Relation, pairs, queries

#: Modules with an `add(subparsers)` each, for the attacks that `dpwitness attack` can run.
ATTACKS = (
    "dpwitness.cli.attack_gptt",
    "dpwitness.cli.attack_subset_sum",
    "dpwitness.cli.attack_tbe",
)


#: JSON has no infinities: as parameters they are these texts.
INFINITE = ("inf", "-inf")


class Parser(argparse.ArgumentParser):
    """Says what is wrong on one line."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage; `main` prints one line and exits with 2."""
        raise BadInput(f"{message}; see `{self.prog} --help`")


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands; each sets `run`."""
    from dpwitness.cli import commands

    top = Parser(prog="dpwitness", description="Finds and proves violations of differential privacy.")
    top.add_argument("--version", action="version", version=_version())
    command = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    add = command.add_parser("list", help="the bundled targets, their claims, their true ε")
    add.add_argument("--json", action="store_true", help="print JSON")
    add.set_defaults(run=commands.list_targets)

    add = command.add_parser("check", help="look for a violation of a claim and prove it")
    _target(add)
    add.add_argument("--epsilon", type=number, help="the mechanism's ε, and the claim unless --claim")
    add.add_argument("--claim", type=number, help="the claimed ε, where it is not the mechanism's parameter")
    add.add_argument("--delta", type=number, help="the claimed δ, and a parameter of that name (default 0)")
    add.add_argument("--alpha", type=number, default=1e-6, help="probability of a false alarm (default 1e-6)")
    add.add_argument("--max-runs", type=whole, help="paired confirm runs at most")
    add.add_argument("--max-time", type=seconds, default=60.0, help="time for everything, as 60s or 2m (default 60s)")
    _common(add)
    add.add_argument("--save", metavar="FILE", help="write the result, witness included, as JSON")
    add.set_defaults(run=commands.check_target)

    add = command.add_parser("curve", help="p-value against test ε, as in the figures of Ding et al. 2018")
    _target(add)
    add.add_argument("--epsilon", type=number, nargs="+", required=True, help="the mechanism's ε: one line each")
    add.add_argument("--claims", type=span, required=True, metavar="FROM:TO:STEP", help="test ε, both ends included")
    add.add_argument("--delta", type=number, help="the tested δ, and a parameter of that name (default 0)")
    add.add_argument("--method", choices=("exact", "score"), default="exact", help="the test (default exact)")
    add.add_argument("--runs", type=whole, help="paired confirm runs a line")
    add.add_argument("--max-time", type=seconds, default=600.0, help="time for each line (default 10m)")
    add.add_argument("--plot", metavar="FILE", help="draw it as .svg, .png or .pdf")
    _common(add)
    add.add_argument("--save", metavar="FILE", help="write the result as JSON")
    add.set_defaults(run=commands.curve_target)

    add = command.add_parser("bound", help="the largest ε that the mechanism can be shown to exceed")
    _target(add)
    add.add_argument("--epsilon", type=number, required=True, help="the mechanism's ε")
    add.add_argument("--delta", type=number, help="δ, and a parameter of that name (default 0)")
    add.add_argument("--confidence", type=number, default=0.999, help="of the bound (default 0.999)")
    add.add_argument("--runs", type=whole, help="paired confirm runs")
    add.add_argument("--max-time", type=seconds, default=600.0, help="time for everything (default 10m)")
    _common(add)
    add.add_argument("--save", metavar="FILE", help="write the result, witness included, as JSON")
    add.set_defaults(run=commands.bound_target)

    add = command.add_parser("replay", help="count a saved witness's event on fresh runs")
    add.add_argument("witness", metavar="WITNESS.json", help="a witness, or a result written by --save")
    add.add_argument(
        "--mechanism",
        metavar="TARGET",
        help="the mechanism, where the witness names no bundled one: a file never decides which code runs",
    )
    add.add_argument("--max-runs", type=whole, help="paired runs at most (default ten times the witness's)")
    add.add_argument("--max-time", type=seconds, default=60.0, help="time for everything (default 60s)")
    _common(add)
    add.add_argument("--save", metavar="FILE", help="write the result as JSON")
    add.set_defaults(run=commands.replay_witness)

    add = command.add_parser("attack", help="run an attack on data and report what it recovers")
    attacks = add.add_subparsers(dest="attack", required=True, metavar="NAME", parser_class=Parser)
    for module in ATTACKS:
        import_module(module).add(attacks)
    return top


def _version() -> str:
    from importlib.metadata import version

    return f"dpwitness {version('dpwitness')}"


def _target(add: argparse.ArgumentParser) -> None:
    add.add_argument("target", metavar="TARGET", help="a bundled name, path/file.py:function or package.module:object")
    add.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="a parameter of the mechanism (repeatable)"
    )
    group = add.add_argument_group("inputs (default: the target's own relation)")
    group.add_argument(
        "--pair", nargs=2, action="append", metavar=("D", "D′"), help="two neighbouring inputs as JSON (repeatable)"
    )
    group.add_argument("--queries", type=whole, metavar="N", help="answers to N queries of sensitivity 1")
    group.add_argument("--may-move", choices=("all", "one"), help="which answers move on a neighbour (default all)")
    group.add_argument("--direction", choices=("any", "up"), help="whether answers may move against each other")
    group.add_argument("--data", metavar="FILE.csv", help="take D from a file; the relation makes the neighbours")
    group.add_argument("--column", metavar="NAME", help="the column of --data (default: count, else the last)")


def _common(add: argparse.ArgumentParser) -> None:
    add.add_argument("--seed", type=whole, help="repeat an earlier run (default: a fresh seed)")
    add.add_argument("--workers", type=whole, help="threads (default: all cores)")
    add.add_argument("--json", action="store_true", help="print the result alone, as JSON, on stdout")
    add.add_argument("--quiet", action="store_true", help="no progress on stderr")


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number") from error
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} must be a finite number")
    return value


def whole(text: str) -> int:
    """A whole number, 1e6 included."""
    try:
        return int(text)
    except ValueError:
        value = number(text)
    if value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number")
    return int(value)


def seconds(text: str) -> float:
    """A time: 60, 60s, 500ms, 2m or 1h."""
    for unit, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)):
        if text.endswith(unit):
            return number(text.removesuffix(unit)) * factor
    return number(text)


def span(text: str) -> list[float]:
    """FROM:TO:STEP with both ends, or a list with commas."""
    if ":" not in text:
        return [number(part) for part in text.split(",")]
    parts = text.split(":")
    if len(parts) != 3:
        raise argparse.ArgumentTypeError(f"{text!r} must be FROM:TO:STEP, such as 0.1:2.0:0.1")
    low, high, step = (number(part) for part in parts)
    if not (step > 0 and low <= high):
        raise argparse.ArgumentTypeError(f"{text!r} needs FROM ≤ TO and a positive STEP")
    steps = math.floor((high - low) / step + 1e-9)
    if steps > 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} makes {steps + 1} values: at most 10000")
    return [round(low + k * step, 12) for k in range(steps + 1)]


def settings(given: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; values are JSON where they can be, else text."""
    found: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidParameter(f"--set {item!r} must be NAME=VALUE")
        try:
            found[name] = float(value) if value in INFINITE else json.loads(value)
        except ValueError:
            found[name] = value
    return found


def relation(arguments: argparse.Namespace) -> Relation | None:
    """The relation that the options describe; None leaves it to the target."""
    extras = [name for name in ("may_move", "direction") if getattr(arguments, name)]
    if arguments.pair:
        if arguments.queries or extras or arguments.data:
            raise BadInput(
                "--pair already says everything about the inputs: leave out --queries, --may-move and --data"
            )
        return pairs(*([_parsed(side) for side in pair] for pair in arguments.pair))
    if arguments.queries is not None or extras:
        length = 10 if arguments.queries is None else arguments.queries
        return queries(length, may_move=arguments.may_move or "all", direction=arguments.direction or "any")
    return None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"--pair {text!r} must be a number or a list in JSON, such as '[1, 1]'") from error
