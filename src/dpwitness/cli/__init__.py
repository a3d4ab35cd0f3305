"""The command line: arguments → api → report → exit code.

0 not refuted, 1 violated, 2 bad input, 70 an unexpected error, 130 interrupted, 143 terminated. Everything that takes
time to import is imported by `main`, so that an interruption or a failure there ends as it should.
"""

import contextlib
import gc
import sys
from collections.abc import Sequence

from dpwitness.checks import exit_error
from dpwitness.cli.console import Interrupts, exit_at_once_refused, explain, of_command, reserved_stdout, streams

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code. An error is one line on stderr, with `--traceback` its traceback too.

    Without `argv` it is the command of this process, which ends behind it.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    # Read before there is a parser: its modules may be what fails.
    trace = any(len(text) > 3 and "--traceback".startswith(text) for text in given)
    alone = argv is None
    refused = exit_at_once_refused() if alone else contextlib.nullcontext()
    with Interrupts(last=alone) as interrupts, streams(), reserved_stdout(for_good=alone), refused:
        try:
            code = _run(given, trace, alone=alone)
        except BaseException as error:
            interrupts.hold()
            if interrupts.came:
                error = KeyboardInterrupt().with_traceback(error.__traceback__)
            code = explain(error, trace=trace)
        if not interrupts.came:
            return code
        # CPython remembers a KeyboardInterrupt that passed through the exec of a text, such as those of dataclasses,
        # and would end the process by SIGINT, whatever its exit code. The next text that ends well lets it forget.
        exec("")
        return interrupts.code


def _run(given: list[str], trace: bool, *, alone: bool) -> int:
    if alone:  # what is imported stays: looking through it for garbage is a fourteenth of a short check
        gc.disable()
    import dpwitness
    from dpwitness.cli.commands import COMMANDS, parse

    try:
        arguments = parse(given)
        if alone:
            if arguments.command in COMMANDS:
                getattr(dpwitness, arguments.command)
            gc.freeze()
            gc.enable()
    except SystemExit as done:  # of --help and --version
        return int(done.code or 0)
    arguments.traceback = trace
    try:
        with of_command(arguments.run):
            code: int = arguments.run(arguments)
    except SystemExit as error:  # of the user's code, while it was imported or ran
        named = [getattr(arguments, option, None) for option in ("target", "mechanism", "outcome", "oracle")]
        whose = " or ".join(filter(None, [*named, *getattr(arguments, "imports", [])])) or arguments.command
        raise exit_error(whose, error) from error
    return code
