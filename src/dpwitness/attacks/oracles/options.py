"""The options of an attack on the user's own system, the same for all families."""

import argparse
from typing import Final

from dpwitness.cli.arguments import number, whole

__all__ = ["REAL", "is_real", "oracle_options"]

#: Options that name a system of the user's.
REAL: Final = ("oracle", "ask", "answers")


def oracle_options(parser: argparse.ArgumentParser, question: str, answer: str) -> None:
    """--oracle, --ask, --answers, --budget, --rate, --retries.

    `question`: what the system is given; `answer`: what it gives for it; both for the help.
    """
    group = parser.add_argument_group("your own system (instead of a simulated one)")
    group.add_argument(
        "--oracle",
        metavar="WHAT",
        help=f"path/file.py:function or package.module:object, which is given {question} and gives {answer}; "
        "a function without parameters that returns such a function; or an object with ask_all(questions)",
    )
    group.add_argument(
        "--ask",
        metavar="FILE",
        help="write the questions into a file (.csv, else JSON lines) and stop; once they are answered there, the same "
        "command goes on. With --oracle: keep questions and answers there, to go on after an interruption",
    )
    group.add_argument("--answers", metavar="FILE", help="answers from a file with the columns id and answer")
    group.add_argument("--budget", type=whole, metavar="N", help="questions at most (default: as the attack needs)")
    group.add_argument("--rate", type=number, metavar="PER_SECOND", help="questions a second at most")
    group.add_argument(
        "--retries",
        type=whole,
        metavar="N",
        help="how often a call that fails is tried again, after 1, 2, 4, … seconds (default 3); a question that gets "
        "no answer then is left out, and ten such in a row end the asking",
    )


def is_real(arguments: argparse.Namespace) -> bool:
    """Whether the attack is on a system of the user's: named by --oracle, or behind files."""
    return any(getattr(arguments, name) is not None for name in REAL)
