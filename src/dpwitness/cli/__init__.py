"""The command line: arguments → pipeline → report → exit code (0 not refuted, 1 violated, 2 bad input)."""

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence

from dpwitness.cli.arguments import parser
from dpwitness.errors import DPWitnessError

__all__ = ["main"]

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    warnings.showwarning = lambda message, *_, **__: print(f"dpwitness: warning: {message}", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # ⊤ and ε on any terminal
    try:
        arguments = parser().parse_args(argv)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except DPWitnessError as error:
        print(f"dpwitness: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("dpwitness: interrupted before anything was confirmed", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED
