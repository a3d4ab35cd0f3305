"""The output of a command: files are checked before the runs, and written after the result is printed on stdout."""

import contextlib
import os
from collections.abc import Callable
from types import SimpleNamespace

from dpwitness.cli.console import (
    BAD_INPUT,
    INTERRUPTED,
    NOT_REFUTED,
    UNEXPECTED,
    VIOLATED,
    deliver,
    show,
)
from dpwitness.files import json_text, write_json
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.profile import Profile
from dpwitness.results.verdict import Verdict, Violation


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
