"""What the attacks' commands make of the options that every command has: seeds, and the end of their time."""

import argparse
import secrets
import time
from typing import Final

from dpwitness.clock import Deadline
from dpwitness.errors import InvalidParameter

__all__ = ["MAX_TIME", "ONE_THREAD", "deadline_of", "require_time", "seed_of"]

#: The help of --workers, where an attack asks one question after another.
ONE_THREAD: Final = "threads at most; this attack asks one question after another, on one"
#: The default of --max-time, in seconds.
MAX_TIME: Final = 600.0


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
