"""The output of a command: files are checked before the runs, and written after the result is printed on stdout."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

from dpwitness.cli.command import READ_FILE, Argument, FileType
from dpwitness.cli.console import (
    BAD_INPUT,
    INTERRUPTED,
    NOT_REFUTED,
    UNEXPECTED,
    VIOLATED,
    deliver,
    printable,
    show,
    to_stderr,
)
from dpwitness.errors import InvalidData, InvalidWitness
from dpwitness.files import STDIN, check_writable, json_text, overwrites, shown, write_json
from dpwitness.mechanisms.catalog import load
from dpwitness.report import github, sarif
from dpwitness.report.plots import plot_format
from dpwitness.report.source import place_of
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
    written = [(name, text) for name, kind, text in named if kind.written]
    for file in (text for _, kind, text in named if kind.written or kind.kept):
        check_writable(file)
    for name, file in written:
        for other, _, text in named:
            # A text may hold a file's name, as mine.py:noisy, profile:FILE and age=@FILE do.
            if other != name and any(overwrites(file, part) for part in {text, *re.split(r":|=@|\s", text)} - {""}):
                raise InvalidData(f"{name} {shown(file)} would overwrite the file of {other}: give another name")
    from_stdin = [name for name, kind, file in named if kind is READ_FILE and file == STDIN]
    if len(from_stdin) > 1:
        raise InvalidData(
            f"- is given for {' and '.join(from_stdin)}, and standard input can be read once: give files for the others"
        )
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
    last: Callable[[], object] | None = None,
    readable: bool = False,
) -> int:
    """Print a result as text or, with --json, as JSON, then write --save and --plot; return the code of `deliver`.

    `value` returns the result as JSON values, `report` as text, `plot` draws it into a file; `last` is called at the
    end. `readable`: whether the file of --save must be readable as a result.
    """
    steps: list[Callable[[], object]] = [
        lambda: show(json_text(value()) if arguments.json else report(), coloured=not arguments.json)
    ]
    if (save := getattr(arguments, "save", None)) is not None:
        steps.append(lambda: _save(save, value(), readable=readable))
    if plot is not None and arguments.plot is not None:
        steps.append(lambda: plot(arguments.plot))
    if last is not None:
        steps.append(last)
    with contextlib.suppress(OSError):  # if the folder was removed, the result is printed all the same
        os.chdir(arguments.folder)  # a mechanism may have changed the working folder
    return deliver(code, *steps)


def _save(path: str, value: dict[str, object], *, readable: bool) -> None:
    """Write a result. Raises `InvalidWitness` if it must be readable and holds a kind that no class registers."""
    write_json(path, value)
    if not readable:
        return
    from dpwitness.results.saved import result_from_json  # imports all kinds of results

    try:
        result_from_json(value)
    except InvalidWitness as error:
        raise InvalidWitness(f"{shown(path)} was written, and cannot be read back: {error}") from error


def mark_violation(
    arguments: SimpleNamespace, code: int, result: Verdict | Bound | Curve | Profile, mechanism: object
) -> None:
    """Write --sarif, and on GitHub Actions mark the mechanism's line for a violation. Raises `InvalidData`."""
    path, marked = getattr(arguments, "sarif", None), code == VIOLATED and github.runs_here()
    if path is None and not marked:
        return
    root, reference = Path(arguments.folder), None if result.witness is None else result.witness.mechanism
    if mechanism is None and reference is not None:  # a replay ran the bundled target that the witness names
        mechanism = load(reference)
    record = {
        **result.to_json(),
        "claim": str(getattr(result, "claim", None)),
        "text": str(result),
        "source": place_of(mechanism, reference, root),
    }
    if marked:
        to_stderr(f"{printable(github.annotation(record, root))}\n")  # GitHub reads both streams
    if path is not None:
        write_json(path, sarif.log([record]))


def exit_code(result: Verdict | Bound | Curve | Profile) -> int:
    """The exit code of a result, by its verdict and by the reason why its runs ended."""
    if result.ended == "interrupted":
        return INTERRUPTED
    if isinstance(result, Violation) or (isinstance(result, Profile) and result.refuted):
        return VIOLATED
    if isinstance(result, Curve) and result.ended == "time":
        return BAD_INPUT  # a requested line is missing
    return {"cluster lost": UNEXPECTED, "failed": BAD_INPUT}.get(result.ended, NOT_REFUTED)
