"""What the command line understands: one parser, checked while it is read."""

import argparse
import json
import math
from collections.abc import Callable
from typing import Any, NoReturn

from dpwitness.attacks.registry import add_commands
from dpwitness.cli.console import say, show
from dpwitness.errors import BadInput, InvalidParameter
from dpwitness.neighbours import Relation, pairs, queries

#: JSON has no infinities: as parameters they are these texts.
INFINITE = ("inf", "-inf", "Infinity", "-Infinity")
MOST_THREADS = 1024
LONGEST_TIME = 1e9  # seconds; a lock cannot wait for much longer
MOST_TESTS = 10_000
#: Levels of lists in an input or a parameter: as many as a NumPy array may have.
DEEPEST = 32


class Parser(argparse.ArgumentParser):
    """Says what is wrong on one line; every command has `--traceback`."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        # Suppressed: else the default of the inner parser would overwrite what stands before the command.
        self.add_argument(
            "--traceback", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
        )

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help and version so that a failure shows; argparse keeps it to itself."""
        show(message.rstrip("\n"))

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage; `main` prints one line and exits with 2."""
        raise BadInput(f"{message}; see `{self.prog} --help`")


def parser(*, attacks: bool = True) -> argparse.ArgumentParser:
    """Build the parser of all commands; each sets `run`. `attacks`: those of the attack families too."""
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
    add.add_argument("--claim", type=number, help="the claimed ε (default the witness's)")
    add.add_argument("--delta", type=number, help="the claimed δ (default the witness's)")
    add.add_argument("--alpha", type=number, help="probability of a false alarm (default the witness's)")
    _inputs(add, "inputs: the relation of the claim, which must contain the witness's pair (default the witness's own)")
    add.add_argument("--max-runs", type=whole, help="paired runs at most (default ten times the witness's)")
    add.add_argument("--max-time", type=seconds, default=60.0, help="time for everything (default 60s)")
    _common(add)
    add.add_argument("--save", metavar="FILE", help="write the result as JSON")
    add.set_defaults(run=commands.replay_witness)

    add = command.add_parser("attack", help="run an attack on data and report what it recovers")
    families = add.add_subparsers(dest="attack", required=True, metavar="NAME", parser_class=Parser)
    if attacks:
        add_commands(families, warn=lambda message: say(f"warning: {message}"))
    return top


def parse(given: list[str]) -> argparse.Namespace:
    """Parse a command line; a parsed one has `run`. Raises `BadInput`."""
    top = parser(attacks="attack" in given)  # what other packages register is loaded where it is asked for
    for text in given:
        if text.startswith("--") and text.endswith("=--"):  # argparse takes this for an option without a value
            top.error(f"{text!r} has no value")
    return top.parse_args(given)


def _version() -> str:
    from importlib.metadata import version

    return f"dpwitness {version('dpwitness')}"


def _target(add: argparse.ArgumentParser) -> None:
    add.add_argument("target", metavar="TARGET", help="a bundled name, path/file.py:function or package.module:object")
    add.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="a parameter of the mechanism (repeatable)"
    )
    add.add_argument(
        "--outcome",
        metavar="FILE.py:FUNCTION",
        help="what makes numbers, flags or text of an output",
    )
    _inputs(add, "inputs (default: the target's own relation)")


def _inputs(add: argparse.ArgumentParser, title: str) -> None:
    group = add.add_argument_group(title)
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
    add.add_argument("--workers", type=threads, help="threads (default: all cores)")
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


def threads(text: str) -> int:
    """A number of threads."""
    value = whole(text)
    if not 1 <= value <= MOST_THREADS:
        raise argparse.ArgumentTypeError(f"{text!r} must be from 1 to {MOST_THREADS}")
    return value


def seconds(text: str) -> float:
    """A time: 60, 60s, 500ms, 2m or 1h."""
    for unit, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)):
        if text.endswith(unit):
            value = number(text.removesuffix(unit)) * factor
            break
    else:
        value = number(text)
    if not 0 < value <= LONGEST_TIME:
        raise argparse.ArgumentTypeError(f"{text!r} must be a positive time of at most {LONGEST_TIME:g} s")
    return value


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
    if not (high - low) / step < MOST_TESTS:
        raise argparse.ArgumentTypeError(f"{text!r} makes more than {MOST_TESTS} values")
    steps = math.floor((high - low) / step + 1e-9)
    return [round(low + k * step, 12) for k in range(steps + 1)]


def settings(given: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; values are JSON where they can be, else text."""
    found: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidParameter(f"--set {item!r} must be NAME=VALUE")
        if value in INFINITE:
            found[name] = float(value)
            continue
        try:
            found[name] = _json(value)
        except NotJSON:
            found[name] = value
        except ValueError as error:
            raise InvalidParameter(f"--set {item!r}: {error}") from error
    return found


def relation(arguments: argparse.Namespace) -> Relation | None:
    """The relation that the options describe; None leaves it to the target."""
    extras = [name for name in ("may_move", "direction") if getattr(arguments, name)]
    if arguments.pair:
        if arguments.queries is not None or extras or arguments.data is not None:
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
        return _json(text, parse_int=_machine_integer)
    except NotJSON as error:
        raise BadInput(f"--pair {text!r} must be a number or a list in JSON, such as '[1, 1]'") from error
    except ValueError as error:
        raise BadInput(f"--pair {text!r}: {error}") from error


class NotJSON(Exception):
    """A text that is no JSON at all."""


def _json(text: str, *, parse_int: Callable[[str], int] = int) -> Any:
    """A JSON value of finite numbers, flags, texts, null and lists of these.

    Raises `NotJSON`, and `ValueError` for JSON of other things.
    """
    try:
        value = json.loads(text, parse_int=parse_int, parse_float=_finite, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise NotJSON from error
    except RecursionError as error:
        raise ValueError(f"lists are nested deeper than {DEEPEST} levels") from error
    _check(value, DEEPEST)
    return value


def _check(value: Any, levels: int) -> None:
    if isinstance(value, dict):
        raise ValueError("an object must be a number, a text, true, false, null or a list of such")
    if isinstance(value, list):
        if not levels:
            raise ValueError(f"lists are nested deeper than {DEEPEST} levels")
        for item in value:
            _check(item, levels - 1)


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large for a number of 64 bits")
    return value


def _machine_integer(text: str) -> int:
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{text} does not fit into 64 bits")
    return value
