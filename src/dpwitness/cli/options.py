"""The options of commands: those of the public functions, and what only a command line has.

An option with the name of a parameter takes what the parameter takes.
"""

import argparse
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from dpwitness.cli.parser import CLAIM, CODE, MODULE, PROGRAM, READ, WRITTEN, number, seconds, span, threads, whole
from dpwitness.options import REQUIRED, Option, options_of

#: What the text of an option is turned into, where it does not stay text.
KINDS: Final[dict[str, Callable[[str], Any]]] = {
    "epsilon": number, "delta": number, "alpha": number, "claims": span, "runs": whole, "seed": whole,
    "workers": threads, "max_time": seconds, "detectable_ratio": number,
    "claim": CLAIM, "outcome": CODE,
}  # fmt: skip
#: Choices that only undo a setting of the project: in Python they are the default.
SETTINGS_ALONE: Final = {"bits": ("report",)}
#: Of --adjacency: a claim that leaves it open is about either.
ADJACENCIES: Final = {"add-remove": "add-remove", "replace-one": "replace-one", "either": None}
#: What a mechanism may get of --records.
FORMS: Final = ("dataframe", "polars", "polars-lazy", "arrow", "array", "list", "columns", "xy")


def of_function(parser: argparse.ArgumentParser, function: str) -> None:
    """The options of a public function that a command line can give; one that is not given is None."""
    for name, option in options_of(function).items():
        place: Any = parser
        if name == "bits":
            text = "do not test the last bits of floating-point outcomes"
            place = parser.add_mutually_exclusive_group()
            place.add_argument("--no-bits", dest="bits", action="store_const", const=False, help=text)
        if option.metavar is not None:
            several = {"nargs": "+"} if (function, name) == ("curve", "epsilon") else {}
            _add(parser, name, option, metavar=option.metavar, type=KINDS.get(name), **several)
        elif option.flag:
            _add(parser, name, option, action=argparse.BooleanOptionalAction)
        elif option.choices:
            _add(place, name, option, choices=(*SETTINGS_ALONE.get(name, ()), *option.choices))


def common(parser: argparse.ArgumentParser, *, max_time: float, workers: str | None = None) -> None:
    """Options of an attack that every command has; `max_time`: the default in seconds; `workers`: the help."""
    check = options_of("check")
    own = {
        "seed": check["seed"],
        "workers": replace(check["workers"], text=workers or check["workers"].text),
        "max_time": replace(check["max_time"], default=max_time),
    }
    for name, option in own.items():
        _add(parser, name, option, metavar=option.metavar, type=KINDS[name], default=option.default)
    printing(parser)


def _add(parser: argparse._ActionsContainer, name: str, option: Option, **settings: Any) -> None:
    default = (
        ""
        if option.default in (None, REQUIRED) or isinstance(option.default, bool)
        else f" (default {_as_written(option.default)})"
    )
    if name == "max_time":
        default = default.replace(")", "s)")
    parser.add_argument(
        f"--{name.replace('_', '-')}",
        required=option.default is REQUIRED,
        help=re.sub(r"`(\w+)`", r"--\1", f"{option.text}{default}").replace("%", "%%"),
        **settings,
    )


def _as_written(default: object) -> str:
    """A default as a person would write it: 4e6, not 4e+06."""
    text = str(default) if isinstance(default, str) else f"{default:g}"
    return text.replace("e+0", "e").replace("e-0", "e-")


def printing(parser: argparse.ArgumentParser, *, quiet: bool = True, save: str = "write the result as JSON") -> None:
    """Where the result goes; `quiet`: whether the command shows progress, `save`: the help of --save."""
    parser.add_argument("--save", type=WRITTEN, metavar="FILE", help=save)
    parser.add_argument("--json", action="store_true", help="print only the result, as JSON, on stdout")
    if quiet:
        parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def plot(parser: argparse.ArgumentParser) -> None:
    """--plot; the format follows from the name."""
    parser.add_argument("--plot", type=WRITTEN, metavar="FILE", help="draw the result as .svg, .png or .pdf")


def sarif(parser: argparse.ArgumentParser) -> None:
    """--sarif."""
    parser.add_argument(
        "--sarif", type=WRITTEN, metavar="FILE", help="write a violation as SARIF 2.1.0, for code scanning and editors"
    )


def target(parser: argparse.ArgumentParser) -> None:
    """TARGET and its parameters."""
    parser.add_argument(
        "target",
        type=CODE,
        metavar="TARGET",
        nargs="?",
        help="a bundled name, path/file.py:function or package.module:object; not given with --command",
    )
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="a parameter of the mechanism (repeatable)"
    )


def witness(parser: argparse.ArgumentParser) -> None:
    """WITNESS.json and the mechanism that it is replayed against."""
    parser.add_argument(
        "witness",
        type=READ,
        metavar="WITNESS.json",
        help="a witness, or a result written by --save (-: standard input)",
    )
    parser.add_argument(
        "--mechanism",
        type=CODE,
        metavar="TARGET",
        help="the mechanism, if the witness names no bundled target: a file never decides which code runs",
    )
    importing(parser)


def importing(parser: argparse.ArgumentParser) -> None:
    """--import: what registers the kinds that a file holds, which never decides itself which code runs."""
    parser.add_argument(
        "--import",
        dest="imports",
        type=MODULE,
        metavar="MODULE",
        action="append",
        default=[],
        help="package.module or path/file.py to import first: it registers your own events, relations or claims "
        "(repeatable)",
    )


def import_modules(arguments: argparse.Namespace) -> None:
    """Import what --import names. Raises `UnknownTarget`."""
    from dpwitness.mechanisms.catalog import load_module

    for place in arguments.imports:
        load_module(place)


def python(parser: argparse.ArgumentParser) -> None:
    """--python: which interpreter runs the mechanism."""
    parser.add_argument(
        "--python", type=READ, metavar="PATH", help="interpreter of another environment that runs the mechanism"
    )


def program(parser: argparse.ArgumentParser) -> None:
    """--command, --seeded and --batch: a program of any language that is the mechanism."""
    parser.add_argument(
        "--command",
        dest="program",
        type=PROGRAM,
        metavar="PROGRAM",
        help="in place of TARGET: a program that answers requests, with its arguments, as './release --epsilon 1'",
    )
    parser.add_argument(
        "--seeded",
        action="store_true",
        help="the random numbers of the program of --command follow from the seeds that it gets",
    )
    parser.add_argument(
        "--batch", type=whole, metavar="N", help="number of runs in one request to the program of --command"
    )


def inputs(parser: argparse.ArgumentParser, title: str = "inputs (default: the target's own relation)") -> None:
    """Which inputs are neighbours, and D."""
    group = parser.add_argument_group(title)
    group.add_argument(
        "--pair", nargs=2, action="append", metavar=("D", "D′"), help="two neighbouring inputs as JSON (repeatable)"
    )
    group.add_argument("--queries", type=whole, metavar="N", help="answers to N queries of sensitivity 1")
    group.add_argument(
        "--may-move", choices=("all", "one"), help="how many answers may differ between neighbours (default all)"
    )
    group.add_argument(
        "--direction", choices=("any", "up"), help="up: all answers move in the same direction (default any)"
    )
    group.add_argument(
        "--records", type=READ, metavar="FILE.csv", help="records to start from; neighbours differ in one (-: stdin)"
    )
    names = ", ".join(ADJACENCIES)
    group.add_argument("--adjacency", choices=tuple(ADJACENCIES), metavar="HOW", help=f"{names} (default add-remove)")
    group.add_argument(
        "--form",
        choices=FORMS,
        metavar="FORM",
        help=f"what the mechanism gets: {', '.join(FORMS)} (default dataframe; xy: the last column is y)",
    )
    group.add_argument("--size", type=whole, metavar="N", help="only datasets of N records (default any number)")
    group.add_argument(
        "--unit",
        metavar="COL",
        help="the column that names the unit, such as a person: neighbours differ in all records of one unit",
    )
    group.add_argument(
        "--at-most", type=whole, metavar="N", help="maximum number of records of a unit (default any number)"
    )
    group.add_argument(
        "--domain",
        metavar="COL=VALUES",
        action="append",
        default=[],
        help="the domain of a column of --records: LOW:HIGH or A,B,C (default: from the file; repeatable)",
    )
    data(group, "take D from a file; the relation makes the neighbours")


def data(parser: argparse._ActionsContainer, help: str) -> None:
    """--data and --column: numbers from a CSV file, or from standard input."""
    parser.add_argument("--data", type=READ, metavar="FILE.csv", help=f"{help} (-: standard input)")
    parser.add_argument("--column", metavar="NAME", help="the column of --data (default: count, else the last)")
