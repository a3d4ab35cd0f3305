"""The output of a command: files are checked before the runs, and written after the result is printed on stdout."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace

from dpwitness.cli.command import KEPT_FILE, READ_FILE, WRITTEN_FILE, Argument, FileType
from dpwitness.cli.console import (
    BAD_INPUT,
    INTERRUPTED,
    NOT_REFUTED,
    UNEXPECTED,
    VIOLATED,
    deliver,
    show,
)
from dpwitness.errors import InvalidData
from dpwitness.files import STDIN, check_writable, json_text, overwrites, shown, write_json
from dpwitness.report.plots import plot_format
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.profile import Profile
from dpwitness.results.verdict import Verdict, Violation


def check_places(arguments: SimpleNamespace) -> None:
    """Raise `InvalidData`, before anything runs, for a file that cannot be written or that another argument names too.

    It is also raised if several arguments read standard input, and if the working folder does not exist. Raises
    `InvalidParameter` for an unknown format of --plot.
    """
    try:
        arguments.folder = os.getcwd()
    except OSError as error:
        raise InvalidData(f"the working folder cannot be read: {error.strerror}; change to one that exists") from error
    named = list(_named_files(arguments))
    for name, kind, file in named:
        if kind in (WRITTEN_FILE, KEPT_FILE):
            check_writable(file)
        for other, _, text in named if kind is WRITTEN_FILE else ():
            # A text may hold a file's name, as mine.py:noisy, profile:FILE and age=@FILE do.
            if other != name and any(overwrites(file, part) for part in {text, *re.split(r":|=@|\s", text)} - {""}):
                raise InvalidData(f"{name} {shown(file)} would overwrite the file of {other}: give another name")
    from_stdin = [name for name, kind, file in named if kind is READ_FILE and file == STDIN]
    if len(from_stdin) > 1:
        names = " and ".join(from_stdin)
        raise InvalidData(f"- is given for {names}, and standard input can be read once: give files for the others")
    if (path := getattr(arguments, "plot", None)) is not None:
        plot_format(path)


def _named_files(arguments: SimpleNamespace) -> Iterator[tuple[str, FileType, str]]:
    """The texts that name files: the argument, its type and the text."""
    for parameter in arguments.context.command.params:
        kind, value = parameter.type, getattr(arguments, parameter.name, None)
        if isinstance(kind, FileType):
            name = str(parameter.metavar) if isinstance(parameter, Argument) else parameter.opts[-1]
            yield from ((name, kind, text) for text in ([value] if isinstance(value, str) else value or ()))


def hand_over(
    arguments: SimpleNamespace,
    code: int,
    value: Callable[[], dict[str, object]],
    report: Callable[[], str],
    plot: Callable[[str], object] | None = None,
) -> int:
    """Print a result as text or, with --json, as JSON, then write --save and --plot; return the code of `deliver`.

    `value` returns the result as JSON values, `report` as text, `plot` draws it into a file.
    """
    steps: list[Callable[[], object]] = [lambda: show(json_text(value()) if arguments.json else report())]
    if (save := getattr(arguments, "save", None)) is not None:
        steps.append(lambda: write_json(save, value()))
    if plot is not None and getattr(arguments, "plot", None) is not None:
        steps.append(lambda: plot(arguments.plot))
    with contextlib.suppress(OSError):  # if the folder was removed, the result is printed all the same
        os.chdir(arguments.folder)  # a mechanism may have changed the working folder
    return deliver(code, *steps)


def exit_code(result: Verdict | Bound | Curve | Profile) -> int:
    """The exit code of a result, by its verdict and by the reason why its runs ended."""
    if result.ended == "interrupted":
        return INTERRUPTED
    if isinstance(result, Violation) or (isinstance(result, Profile) and result.refuted):
        return VIOLATED
    if isinstance(result, Curve) and result.ended == "time":
        return BAD_INPUT  # a requested line is missing
    return {"cluster lost": UNEXPECTED, "failed": BAD_INPUT}.get(result.ended, NOT_REFUTED)
