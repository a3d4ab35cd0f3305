"""What the attacks' commands share: options that all of them take, seeds, and the end of their time."""

import argparse
import secrets
import time

from dpwitness.clock import Deadline
from dpwitness.errors import InvalidParameter

__all__ = ["add_common", "deadline_of", "require_time", "seed_of"]

#: For an attack that asks one question after another, which is all of them but repeated ones.
ONE_THREAD = "threads at most (default: all cores); this attack asks one question after another, on one"


def add_common(parser: argparse.ArgumentParser, *, workers: str = ONE_THREAD) -> None:
    """Declare --seed, --max-time, --workers, --json, --save, --plot and --quiet; `workers` is the help of that one."""
    from dpwitness.cli.arguments import seconds, threads, whole

    parser.add_argument("--seed", type=whole, help="repeat an earlier run (default: a fresh seed)")
    parser.add_argument(
        "--max-time", type=seconds, default=600.0, help="time for everything, as 60s or 2m (default 10m)"
    )
    parser.add_argument("--workers", type=threads, help=workers)
    parser.add_argument("--json", action="store_true", help="print the result alone, as JSON, on stdout")
    parser.add_argument("--save", metavar="FILE", help="write the result as JSON")
    parser.add_argument("--plot", metavar="FILE", help="draw it as .svg, .png or .pdf")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def seed_of(arguments: argparse.Namespace) -> int:
    """The seed that was given, or a fresh one of 32 bits. Raises `InvalidParameter` for a negative one."""
    if arguments.seed is None:
        return secrets.randbits(32)
    if arguments.seed < 0:
        raise InvalidParameter(f"--seed {arguments.seed} must be at least 0")
    return int(arguments.seed)


def deadline_of(arguments: argparse.Namespace) -> Deadline:
    """When the time that --max-time gives is over, from now on."""
    return Deadline(time.monotonic() + arguments.max_time)


def require_time(arguments: argparse.Namespace, deadline: Deadline, smaller: str) -> None:
    """Raise `InvalidParameter`, which names the option to make `smaller`, where the time is over."""
    if not deadline.left:
        raise InvalidParameter(
            f"--max-time {arguments.max_time:g}: the attack takes longer than {arguments.max_time:g} s; "
            f"allow more time or a smaller {smaller}"
        )
