"""The parser of every command: it reads the texts of options, wraps help, and gives errors of one line."""

import argparse
import ast
import json
import math
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NoReturn, cast

from dpwitness import checks
from dpwitness.checks import json_value, near
from dpwitness.cli.console import NOT_REFUTED, show
from dpwitness.errors import BadInput, InvalidParameter
from dpwitness.options import MOST_WORKERS

#: JSON has no infinities: as parameters they are these texts.
INFINITE: Final = ("inf", "-inf", "Infinity", "-Infinity")
LONGEST_TIME: Final = 1e9  # seconds; a lock cannot wait for much longer
MOST_TESTS: Final = 10_000
#: Levels of lists in an input or a parameter: as many as a NumPy array may have.
DEEPEST: Final = 32


@dataclass(frozen=True, slots=True)
class FileOption:
    """The type of an argument that names files: its value stays the text.

    `written`: what was there is replaced, so that no other argument may name it; `kept`: what was there is read, and
    goes on. `files`: those that a text names.
    """

    written: bool = False
    kept: bool = False
    files: Callable[[str], Sequence[str]] = lambda text: (text,)

    def __call__(self, text: str) -> str:
        """The value of a text: itself."""
        return text


def _module(place: str) -> Sequence[str]:
    return (place if place.endswith(".py") else f"{place.replace('.', '/')}.py",)


def _code(text: str) -> Sequence[str]:
    place = text.rpartition(":")[0]
    return _module(place) if place else ()


def _program(text: str) -> Sequence[str]:
    try:
        return shlex.split(text)
    except ValueError:  # its reader says what is wrong
        return ()


READ: Final = FileOption()
WRITTEN: Final = FileOption(written=True)
KEPT: Final = FileOption(kept=True)
#: package.module or path/file.py; that and the name of an object; the words of a command line.
MODULE: Final = FileOption(files=_module)
CODE: Final = FileOption(files=_code)
PROGRAM: Final = FileOption(files=_program)
#: A text in which a file stands behind a mark: zcdp:0.5 names none, profile:FILE and age=@FILE do.
CLAIM: Final = FileOption(files=lambda text: text.split(":", 1)[1:])
VALUES: Final = FileOption(files=lambda text: text.split("=@", 1)[1:])


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
    if not 1 <= value <= MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"{text!r} must be from 1 to {MOST_WORKERS}")
    return value


def seconds(text: str) -> float:
    """A time: 60, 60s, 500ms, 2m or 1h."""
    try:
        value = checks.seconds("time", text)
    except InvalidParameter:
        value = math.nan
    if not 0 < value <= LONGEST_TIME:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a positive time of at most {LONGEST_TIME:g} s, such as 60, 60s, 500ms, 2m or 1h"
        )
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


def settings(given: Sequence[str]) -> dict[str, object]:
    """NAME=VALUE pairs; values are JSON where they can be, or `True`, `None` or `(0, 1)` as in Python, else text."""
    found: dict[str, object] = {}
    require_each_once("--set", given)
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
            found[name] = _literal(value)
        except ValueError as error:
            raise InvalidParameter(f"--set {item!r}: {error}") from error
    return found


def require_each_once(option: str, given: Sequence[str]) -> None:
    """Raise `InvalidParameter` where two texts NAME=VALUE are of one name."""
    names = [item.partition("=")[0] for item in given]
    for name in names:
        if names.count(name) > 1:
            raise InvalidParameter(f"{option} {name}=… is given {names.count(name)} times: leave out all but one")


def refuse(options: object, names: Sequence[str], reason: str) -> None:
    """Raise `InvalidParameter` for the first of these options that is given."""
    for name in names:
        if getattr(options, name) not in (None, ()):
            raise InvalidParameter(f"--{name.replace('_', '-')} {reason}")


def _literal(text: str) -> object:
    """The flag, None or tuple that Python reads in a text; the text itself where there is none of these."""
    if text not in ("True", "False", "None") and not (text.startswith("(") and text.count("(") <= DEEPEST):
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def given_input(text: str) -> object:
    """An input as JSON: numbers, texts, lists and objects of such. Raises `BadInput`."""
    try:
        return _json(text, parse_int=_machine_integer, objects=True)
    except NotJSON as error:
        raise BadInput(f"--pair {text!r} must be JSON, such as '[1, 1]', '\"text\"' or '[{{\"age\": 30}}]'") from error
    except ValueError as error:
        raise BadInput(f"--pair {text!r}: {error}") from error


class NotJSON(Exception):
    """A text that is no JSON at all."""


def _json(text: str, *, parse_int: Callable[[str], int] = int, objects: bool = False) -> object:
    """A JSON value of finite numbers, flags, texts, null and lists of these; of `objects` too where these may be.

    Raises `NotJSON`, and `ValueError` for JSON of other things.
    """
    try:
        value = json_value(text, DEEPEST, parse_int=parse_int, parse_float=_finite, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise NotJSON from error
    _check(value, DEEPEST, objects=objects)
    return value


def _check(value: object, levels: int, *, objects: bool) -> None:
    if isinstance(value, dict):
        if not objects:
            raise ValueError("an object must be a number, a text, true, false, null or a list of such")
        value = [*value.values()]
    if isinstance(value, list):
        if not levels:
            raise ValueError(f"lists are nested deeper than {DEEPEST} levels")
        for item in value:
            _check(item, levels - 1, objects=objects)


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


EXIT_CODES: Final[Mapping[int, str]] = {
    0: "not refuted, or done",
    1: "violated: the claim is refuted",
    2: "bad input: one line on stderr says what, which value, and what to do",
    70: (
        "an unexpected error, a cluster lost during the confirm runs, or a result that cannot be printed; "
        "--traceback shows where"
    ),
    130: "interrupted by Ctrl-C, with the result so far",
    143: "terminated by SIGTERM, with the result so far",
}


class Formatter(argparse.HelpFormatter):
    """Wraps prose at the terminal's width, and leaves examples, which are to be copied, as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(
            line
            if line.startswith("  $")
            else textwrap.fill(line, width, subsequent_indent=" " * 7 * line.startswith(" "), break_on_hyphens=False)
            for line in text.splitlines()
        )


class Commands(argparse._SubParsersAction):  # type: ignore[type-arg]  # generic for type checkers only
    """Commands below a parser; each keeps the line that its parent's help has of it."""

    def add_parser(self, name: str, **settings: Any) -> Any:
        """Declare a command."""
        made = super().add_parser(name, **settings)
        made.summary = settings.get("help") or ""
        return made


class Parser(argparse.ArgumentParser):
    """Says what is wrong on one line; every command has `--traceback`."""

    #: A line about the command, for lists of commands.
    summary: str = ""
    #: Those below it.
    commands: Mapping[str, "Parser"] = MappingProxyType({})

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        # No abbreviations: `--out` would be taken for `--outcome`, and another one once an option is added.
        super().__init__(*arguments, **{"formatter_class": Formatter, "allow_abbrev": False, **settings})
        self.set_defaults(parser=self)
        # Suppressed: else the default of the inner parser would overwrite what stands before the command.
        self.add_argument(
            "--traceback", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
        )

    def add_commands(self, dest: str, metavar: str) -> Commands:
        """Commands below this one; without any of them the overview is printed."""
        commands = cast(Commands, self.add_subparsers(action=Commands, dest=dest, metavar=metavar, parser_class=Parser))
        self.set_defaults(run=lambda _: overview(self, commands.choices))
        self.commands = commands.choices
        return commands

    @property
    def options(self) -> list[str]:
        """The names of its options."""
        return [*self._option_string_actions]

    @property
    def arguments(self) -> dict[str, argparse.Action]:
        """What it takes, by the name of the value; of several options for one value the last."""
        return {action.dest: action for action in self._actions}

    def named_files(self, arguments: argparse.Namespace) -> Iterator[tuple[str, FileOption, str]]:
        """The files that arguments name: by which argument, of which type, and which file."""
        for action in self._actions:
            if isinstance(action.type, FileOption):
                name = action.option_strings[-1] if action.option_strings else str(action.metavar)
                value = getattr(arguments, action.dest, None)
                for text in [value] if isinstance(value, str) else value or []:
                    yield from ((name, action.type, file) for file in action.type.files(text))

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse what is no choice, with the one that is near."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += near(value, action.choices or (), most=1)
            raise

    def _print_message(self, message: str, file: object = None) -> None:
        """Print help and version so that a failure shows; argparse keeps it to itself."""
        show(message.rstrip("\n"))

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage; `main` prints one line and exits with 2."""
        raise BadInput(f"{message}; see `{self.prog} --help`")


def command(
    subparsers: Any, name: str, *, summary: str, run: object, examples: Sequence[str], exits: Sequence[int] = (0, 2)
) -> Parser:
    """A command's parser, with examples and exit codes in its help.

    `subparsers`: what `add_commands` gave, of all commands or of the attacks; `summary`: one line, for lists of
    commands and the top of the help. `run` is called with the parsed arguments and returns the exit code. `examples`:
    command lines without their first word; `exits`: the exit codes besides 70, 130 and 143.
    """
    codes = [f"  {code:<4} {EXIT_CODES[code]}" for code in (*exits, 70, 130, 143)]
    epilog = "\n".join(["examples:", *(f"  $ dpwitness {line}" for line in examples), "", "exit codes:", *codes])
    add: Parser = subparsers.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=epilog
    )
    add.set_defaults(run=run)
    return add


def overview(above: Parser, below: Mapping[str, Parser]) -> int:
    """Print the commands below a parser, a line each."""
    width = max(map(len, below))
    head = [f"{above.description}", "", f"usage: {above.prog} COMMAND …", ""]
    lines = [f"  {name:<{width}}  {inner.summary}".rstrip() for name, inner in below.items()]
    last = f"`{above.prog} COMMAND --help` has the options of a command, examples and exit codes."
    show("\n".join([*head, *lines, "", last]), wrap=True)
    return NOT_REFUTED
