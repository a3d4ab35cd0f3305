"""The classes of commands, options and arguments, derived from classes of click, and the layout of their help."""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import click
from click.shell_completion import CompletionItem

from dpwitness.checks import exit_error
from dpwitness.cli.console import EXIT_CODES, INTERRUPTED, TERMINATED, UNEXPECTED, show
from dpwitness.errors import InvalidData


class FileType(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """The type of a text that names files, or may hold a file's name, such as mine.py:noisy_sum or profile:FILE."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as given; an option in the place of a file is an error."""
        if str(value).startswith("--"):
            self.fail(f"a value is needed before {value}", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The completion of a file's name, left to the shell."""
        return [CompletionItem(incomplete, type="file")]


#: READ_FILE is the type of a file to read, WRITTEN_FILE of a file to write, or to replace if it exists, KEPT_FILE of a
#: file to read and to continue, and CODE of a text that may hold the name of a file.
READ_FILE, WRITTEN_FILE, KEPT_FILE, CODE = FileType(), FileType(), FileType(), FileType()


class CliOption(click.Option):
    """An option, listed in the help under `title`."""

    def __init__(self, *names: str, title: str = "options", **settings: Any) -> None:
        super().__init__(names, **settings)
        self.title = title
        if self.metavar is None and not self.is_flag and not isinstance(self.type, click.Choice):
            self.metavar = str(self.name).upper()


class Argument(click.Argument):
    """A positional argument, with its line in the help."""

    title: ClassVar[str] = "arguments"

    def __init__(self, name: str, metavar: str, help: str, **settings: Any) -> None:
        super().__init__([name], metavar=metavar, **settings)
        self.line = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """The argument's name and its line."""
        return str(self.metavar), self.line


def text_option(names: Sequence[str], text_of: Callable[[click.Context], str], help: str) -> CliOption:
    """An option that prints a text by `show`, which reports a failed output, and ends the command."""

    def show_it(context: click.Context, _: click.Parameter, asked: bool) -> None:
        if asked and not context.resilient_parsing:
            show(text_of(context))
            context.exit()

    return CliOption(*names, is_flag=True, is_eager=True, expose_value=False, callback=show_it, help=help)


#: HELP is the option that shows the help.
HELP: Final = text_option(("-h", "--help"), click.Context.get_help, "show this help and exit")
#: HELP_SETTINGS has click's settings for help: at most 120 columns on a wider terminal.
HELP_SETTINGS: Final = {"max_content_width": 120}
#: TRACEBACK is the option that shows the traceback of an error.
TRACEBACK: Final = CliOption("--traceback", is_flag=True, expose_value=False, help="show the traceback of an error")


class _TitledHelp(click.Command):
    """A command whose help lists the options under their titles."""

    def get_help_option(self, ctx: click.Context) -> click.Option:
        """The option `HELP`, whose text `show` prints, which reports a failed output."""
        return HELP

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options and arguments under their titles."""
        titles: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                titles.setdefault(getattr(parameter, "title", "options"), []).append(record)
        for title, records in titles.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Subcommand(_TitledHelp):
    """A command: a function of the parsed arguments that returns the exit code, with examples and codes in its help.

    `summary`: one line for lists of commands, and for the top of the help without a `description`. `examples`: command
    lines without their first word; `exits`: the exit codes besides 70, 130 and 143. Output of user code is redirected
    to standard error.
    """

    def __init__(
        self,
        name: str,
        *,
        summary: str,
        run: Callable[[SimpleNamespace], int],
        parameters: Sequence[click.Parameter],
        examples: Sequence[str],
        exits: Sequence[int] = (0, 2),
        description: str = "",
    ) -> None:
        text = description or f"{summary[0].upper()}{summary[1:]}."
        super().__init__(
            name, params=[*parameters, TRACEBACK], help=text, short_help=summary, context_settings=HELP_SETTINGS
        )
        self.run, self.examples, self.exits = run, examples, exits

    def invoke(self, ctx: click.Context) -> int:
        """Check the named files, import the modules of --import and run the command; return its exit code."""
        from dpwitness.mechanisms.catalog import load_module

        arguments = arguments_of(ctx)
        check_places(arguments)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                for place in getattr(arguments, "imports", ()):
                    load_module(place)
                return self.run(arguments)
        except SystemExit as error:  # raised by the user's code while it was imported or ran
            named = [getattr(arguments, option, None) for option in ("target", "mechanism", "outcome", "oracle")]
            whose = " or ".join(filter(None, [*named, *getattr(arguments, "imports", [])])) or self.name
            raise exit_error(str(whose), error) from error

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, unwrapped so that they can be copied, and the exit codes."""
        with formatter.section("examples"):
            for line in self.examples:
                formatter.write(f"  $ dpwitness {line}\n")
        with formatter.section("exit codes"):
            codes = (*self.exits, UNEXPECTED, INTERRUPTED, TERMINATED)
            formatter.write_dl([(str(code), EXIT_CODES[code]) for code in codes])


def arguments_of(context: click.Context) -> SimpleNamespace:
    """The parsed arguments: the name of the command, or of the attack's family, and the values of its options."""
    return SimpleNamespace(
        **{"command": context.info_name, "attack": context.info_name, "context": context} | context.params
    )


def check_places(arguments: SimpleNamespace) -> None:
    """Raise `InvalidData`, before anything runs, for a file that cannot be written or that another argument names too.

    It is also raised if several arguments read standard input, and if the working folder does not exist. Raises
    `InvalidParameter` for an unknown format of --plot.
    """
    from dpwitness.files import STDIN, check_writable, overwrites, shown

    try:
        arguments.folder = os.getcwd()
    except OSError as error:
        raise InvalidData(f"the working folder cannot be read: {error.strerror}; change to one that exists") from error
    named = list(_named_files(arguments))
    for name, kind, file in named:
        if kind in (WRITTEN_FILE, KEPT_FILE):
            check_writable(file)
        for other, _, text in named if kind is WRITTEN_FILE else ():
            # A text may hold a file's name, as mine.py:noisy and profile:FILE do.
            if other != name and any(overwrites(file, part) for part in {text, *re.split(r":|\s", text)} - {""}):
                raise InvalidData(f"{name} {shown(file)} would overwrite the file of {other}: give another name")
    from_stdin = [name for name, kind, file in named if kind is READ_FILE and file == STDIN]
    if len(from_stdin) > 1:
        names = " and ".join(from_stdin)
        raise InvalidData(f"- is given for {names}, and standard input can be read once: give files for the others")
    if (path := getattr(arguments, "plot", None)) is not None:
        from dpwitness.report.plots import plot_format  # imports all kinds of results

        plot_format(path)


def _named_files(arguments: SimpleNamespace) -> Iterator[tuple[str, FileType, str]]:
    """The texts that name files: the argument, its type and the text."""
    for parameter in arguments.context.command.params:
        kind, value = parameter.type, getattr(arguments, parameter.name, None)
        if isinstance(kind, FileType):
            name = str(parameter.metavar) if isinstance(parameter, Argument) else parameter.opts[-1]
            yield from ((name, kind, text) for text in ([value] if isinstance(value, str) else value or ()))


class Group(_TitledHelp, click.Group):
    """A group of commands after a common word; without a command it prints its help."""

    def __init__(self, name: str, *, summary: str, parameters: Sequence[click.Parameter] = ()) -> None:
        super().__init__(
            name, params=[*parameters, TRACEBACK], help=f"{summary[0].upper()}{summary[1:]}.", short_help=summary,
            context_settings=HELP_SETTINGS, invoke_without_command=True, callback=self._overview,
            subcommand_metavar="COMMAND …",
            epilog="`--help` behind a command shows its options, examples and exit codes.",
        )  # fmt: skip

    @staticmethod
    def _overview() -> None:
        context = click.get_current_context()
        if context.invoked_subcommand is None:
            show(context.get_help())

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order in which they were added."""
        return [*self.commands]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line for each command, and the options."""
        with formatter.section("commands"):
            commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
            formatter.write_dl([(name, one.get_short_help_str(1_000) if one else "") for name, one in commands])
        super().format_options(ctx, formatter)
