"""The options of commands: the options of public functions, which take the same values, and further options."""

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

import click

from _dpwitness_session import BITS
from dpwitness.cli.command import CODE, KEPT_FILE, READ_FILE, WRITTEN_FILE, Argument, CliOption, FileType
from dpwitness.cli.values import given_options, number, seconds, span, whole
from dpwitness.errors import InvalidParameter
from dpwitness.options import MOST_WORKERS, NO_DEFAULT, Option, options_of

#: CommandParameters is the type of a list of the arguments and options of a command.
CommandParameters = list[click.Parameter]

#: OPTION_TYPES has the types of options by name; other options are texts.
OPTION_TYPES: Final[dict[str, Callable[[str], Any] | FileType | click.IntRange]] = {
    "epsilon": number, "delta": number, "alpha": number, "claims": span, "runs": whole, "seed": whole,
    "workers": click.IntRange(1, MOST_WORKERS), "max_time": seconds, "detectable_ratio": number,
    "claim": CODE, "outcome": CODE, "keep": KEPT_FILE,
}  # fmt: skip
#: ADJACENCY_CHOICES has the adjacencies by the texts of --adjacency; "either" leaves the claim's adjacency open.
ADJACENCY_CHOICES: Final = {"add-remove": "add-remove", "replace-one": "replace-one", "either": None}
#: FORM_CHOICES has the forms in which a mechanism may get the records of --records.
FORM_CHOICES: Final = ("dataframe", "polars", "polars-lazy", "arrow", "array", "list", "columns", "xy")


def of_function(function: str) -> CommandParameters:
    """The command-line options of a public function; an option that is not given is None."""
    found: CommandParameters = []
    for name, option in options_of(function).items():
        if option.metavar is not None:
            kind = span if (function, name) == ("curve", "epsilon") else OPTION_TYPES.get(name)
            found.append(_option(name, option, metavar=option.metavar, type=kind))
        elif option.choices:
            choices = tuple(BITS) if name == "bits" else option.choices
            found.append(_option(name, option, type=click.Choice(choices)))
    return found


def common(*, max_time: float, workers: str | None = None) -> CommandParameters:
    """The common options of an attack; `max_time`: the default in seconds; `workers`: the help of --workers."""
    check = options_of("check")
    check["workers"] = replace(check["workers"], text=workers or check["workers"].text)
    check["max_time"] = replace(check["max_time"], default=max_time)
    own = [(name, check[name]) for name in ("seed", "workers", "max_time")]
    made = [_option(k, one, metavar=one.metavar, type=OPTION_TYPES[k], default=one.default) for k, one in own]
    return [*made, *printing()]


def _option(name: str, option: Option, **settings: Any) -> CliOption:
    """The command-line option for an option that `dpwitness.options` declares."""
    default = option.default
    text = ""
    if default not in (None, NO_DEFAULT) and not isinstance(default, bool):
        text = f" (default {default if isinstance(default, str) else f'{default:g}'}{'s' * (name == 'max_time')})"
    about = re.sub(r"`(\w+)`", r"--\1", f"{option.text}{text}")
    return CliOption(f"--{name.replace('_', '-')}", required=default is NO_DEFAULT, help=about, **settings)


def require_one(arguments: SimpleNamespace, *names: str) -> None:
    """Raise `InvalidParameter` if more than one of the named options is given."""
    if len(given := given_options(arguments, names)) > 1:
        raise InvalidParameter(f"{' and '.join(given)} exclude each other: leave one out")


def printing(*, quiet: bool = True, save: str = "write the result as JSON") -> CommandParameters:
    """The options --save, --json and, with `quiet`, --quiet for a command with progress; `save`: the help of --save."""
    return [
        CliOption("--save", type=WRITTEN_FILE, metavar="FILE", help=save),
        CliOption("--json", is_flag=True, help="print only the result, as JSON, on stdout"),
        *([CliOption("--quiet", is_flag=True, help="no progress on stderr")] if quiet else []),
    ]


#: PLOT is the option that draws the result.
PLOT: Final = CliOption("--plot", type=WRITTEN_FILE, metavar="FILE", help="draw the result as .svg, .png or .pdf")
#: DETAILS is the option that prints all lines of a verdict.
DETAILS: Final = CliOption("--details", is_flag=True, help="print all that is known of the verdict")
#: TARGET has the argument TARGET and the option of its parameters.
TARGET: Final[CommandParameters] = [
    Argument("target", "TARGET",
             "a bundled name, path/file.py:function or package.module:object; not given with --command",
             type=CODE, required=False),
    CliOption("--set", metavar="NAME=VALUE", multiple=True, help="a parameter of the mechanism (repeatable)"),
]  # fmt: skip
#: IMPORT is the option --import, whose modules register the kinds in a file: a file never decides which code runs.
IMPORT: Final = CliOption(
    "--import", "imports", type=CODE, metavar="MODULE", multiple=True,
    help="package.module or path/file.py to import first: it registers your own events, relations or claims "
    "(repeatable)",
)  # fmt: skip
#: WITNESS has the argument WITNESS.json and the options of the mechanism of a replay.
WITNESS: Final[CommandParameters] = [
    Argument("witness", "WITNESS.json", "a witness, or a result written by --save (-: standard input)", type=READ_FILE),
    CliOption("--mechanism", type=CODE, metavar="TARGET",
              help="the mechanism, if the witness names no bundled target: a file never decides which code runs"),
    IMPORT,
]  # fmt: skip
#: PROGRAMS has the options of a mechanism in another interpreter or in a program of any language.
PROGRAMS: Final[CommandParameters] = [
    CliOption("--python", type=READ_FILE, metavar="PATH",
              help="interpreter of another environment that runs the mechanism"),
    CliOption(
        "--command", "program", type=CODE, metavar="PROGRAM",
        help="in place of TARGET: a program that answers requests, with its arguments, as './release --epsilon 1'",
    ),
    CliOption("--seeded", is_flag=True,
              help="the random numbers of the program of --command follow from the seeds that it gets"),
    CliOption("--batch", type=whole, metavar="N", help="number of runs in one request to the program of --command"),
]  # fmt: skip


def inputs(title: str = "inputs (default: the target's own relation)") -> CommandParameters:
    """The options of the neighbouring inputs and of D."""
    return [
        CliOption("--pair", nargs=2, multiple=True, metavar="D D′", title=title,
                  help="two neighbouring inputs as JSON (repeatable)"),
        CliOption("--queries", type=whole, metavar="N", title=title, help="answers to N queries of sensitivity 1"),
        CliOption("--may-move", type=click.Choice(("all", "one")), title=title,
                  help="how many answers may differ between neighbours (default all)"),
        CliOption("--direction", type=click.Choice(("any", "up")), title=title,
                  help="up: all answers move in the same direction (default any)"),
        CliOption("--records", type=READ_FILE, metavar="FILE.csv", title=title,
                  help="records to start from; neighbours differ in one (-: stdin)"),
        CliOption("--adjacency", type=click.Choice(tuple(ADJACENCY_CHOICES)), metavar="HOW", title=title,
                  help=f"{', '.join(ADJACENCY_CHOICES)} (default add-remove)"),
        CliOption(
            "--form", type=click.Choice(FORM_CHOICES), metavar="FORM", title=title,
            help=f"what the mechanism gets: {', '.join(FORM_CHOICES)} (default dataframe; xy: the last column is y)",
        ),
        CliOption("--size", type=whole, metavar="N", title=title,
                  help="only datasets of N records (default any number)"),
        CliOption(
            "--unit", metavar="COL", title=title,
            help="the column that names the unit, such as a person: neighbours differ in all records of one unit",
        ),
        CliOption("--at-most", type=whole, metavar="N", title=title,
                  help="maximum number of records of a unit (default any number)"),
        CliOption("--domain", metavar="COL=VALUES", multiple=True, title=title,
                  help="the domain of a column of --records: LOW:HIGH or A,B,C (default: from the file; repeatable)"),
        *data("take D from a file; the relation makes the neighbours", title),
    ]  # fmt: skip


def data(help: str, title: str = "options") -> CommandParameters:
    """The options --data and --column: numbers from a CSV file, or from standard input."""
    return [
        CliOption("--data", type=READ_FILE, metavar="FILE.csv", title=title, help=f"{help} (-: standard input)"),
        CliOption("--column", metavar="NAME", title=title, help="the column of --data (default: count, else the last)"),
    ]
