"""What the attacks' commands make of the options that every command has: seeds, and the end of their time.

The options of an attack on the user's own system, the same for all families.

An attack on the user's own system from the command line: what is asked, kept, stopped and gone on with.
"""

import argparse
import functools
import os
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from dpwitness.cli.console import live, show
from dpwitness.cli.output import as_json
from dpwitness.cli.parser import number, whole
from dpwitness.errors import InvalidParameter
from dpwitness.files import STDIN, STREAMS, check_writable
from dpwitness.machine import Deadline
from dpwitness.reconstruction.asking import Asking, Limits, Waiting, load_system
from dpwitness.reconstruction.transcript import Form, State, Transcript, add_answers, read_transcript

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


#: The part of --max-time that is left for what is made of the answers.
THINKING: Final = 0.2

Q = TypeVar("Q")
R = TypeVar("R")


def attack_system(
    arguments: argparse.Namespace,
    form: Form[Q],
    settings: Mapping[str, Any],
    attack: Callable[[Asking[Q], int], R],
    *,
    partial: bool = False,
) -> R | None:
    """Run an attack on the system that the options name; None where its questions wait in a file, which is then said.

    Parameters
    ----------
    arguments
        Parsed options, `oracle_options` and the common ones among them.
    form
        Of the family's questions and answers.
    settings
        What the questions follow from besides the seed, as JSON values. An attack that goes on may have others but for
        those that its form says are `of_system`.
    attack
        From what it may ask and its seed to what it found; it must ask the same again when it gets the same answers.
        How it goes on without some of them says `Asking`.
    partial
        As `Asking` takes it.

    Raises `BadInput` for options and files that cannot be used, `OracleFailed` for a system that fails. Whatever ends
    the attack, --ask FILE has its questions and answers; where the process is killed, those of some seconds before.
    """
    asking_ends = deadline_of(arguments).earlier(THINKING * arguments.max_time)
    retries = {} if arguments.retries is None else {"retries": arguments.retries}
    limits = Limits(budget=arguments.budget, rate=arguments.rate, deadline=asking_ends, **retries)
    if arguments.ask is not None:
        check_writable(arguments.ask)
    transcript, before = _transcript(arguments, form, settings)
    seed = transcript.seed
    system = None if arguments.oracle is None else load_system(arguments.oracle, form, seed)
    kept = None if arguments.ask is None and arguments.answers is None else transcript
    save = None if arguments.ask is None else functools.partial(transcript.save, arguments.ask)
    asking = Asking(
        form,
        system,
        limits=limits,
        transcript=kept,
        save=save if _replaceable(arguments.ask) else None,
        partial=partial,
        offer=arguments.ask is not None,
    )
    try:
        with live(arguments) as progress:
            if progress is not None:
                total = arguments.budget or 0
                asking.progress = lambda asked: progress("ask", asked, max(total, asked), f"{asked:,} questions")
            return attack(asking, seed)
    except Waiting as waiting:
        if arguments.ask is None:
            raise InvalidParameter(
                f"--answers {arguments.answers}: {waiting.count} more questions wait: give --ask FILE for them"
            ) from None
        _say_waiting(arguments, waiting.count, asking.asked)
        return None
    finally:
        if save is not None and transcript.state != before:
            save()


def _replaceable(ask: str | None) -> bool:
    """Whether a file there is written anew each time: to a pipe or a device everything would be appended again."""
    return ask is not None and (os.path.isfile(ask) or not os.path.exists(ask)) and not ask.startswith(STREAMS)


def _transcript(arguments: argparse.Namespace, form: Form[Q], settings: Mapping[str, Any]) -> tuple[Transcript, State]:
    """What was asked before, from the files that there are, else nothing, and a seed; and the state of --ask FILE."""
    ask, answers = arguments.ask, arguments.answers
    begun = ask is not None and os.path.isfile(ask) and os.path.getsize(ask) > 0
    if answers is None and not begun:
        new = Transcript(form.family, seed_of(arguments), settings)
        return new, new.state
    place = ask if begun else answers
    found = read_transcript(place, form)
    found.require(arguments.seed, settings, form.of_system, place)
    before = found.state
    if begun and answers is not None:
        same = answers != STDIN and os.path.exists(answers) and os.path.samefile(ask, answers)
        if not same:
            add_answers(found, answers, form)
    return found, before


def _say_waiting(arguments: argparse.Namespace, count: int, asked: int) -> None:
    if arguments.json:
        show(as_json({"attack": arguments.attack, "waiting": count, "asked": asked, "questions": arguments.ask}))
        return
    behind = f" after {asked:,} answered ones" if asked else ""
    show(
        f"{count:,} question{'s wait' if count > 1 else ' waits'} in {arguments.ask}{behind}: fill in the answers "
        "there (or in a file with the columns id and answer, for --answers) and run the same command again",
        wrap=True,
    )


def described(arguments: argparse.Namespace, asking: Asking[Any]) -> dict[str, Any]:
    """What results of all families say of the system and of what it was asked."""
    return {
        "oracle": arguments.oracle or "files",
        "questions": asking.asked,
        "unanswered": asking.missing,
        "budget": arguments.budget,
        "rate": arguments.rate,
    }


def refuse_limits(arguments: argparse.Namespace) -> None:
    """Raise `InvalidParameter` for --budget, --rate and --retries where the system is a simulated one."""
    for name in ("budget", "rate", "retries"):
        if not is_real(arguments) and getattr(arguments, name) is not None:
            raise InvalidParameter(f"--{name} is of an attack on your own system: give --oracle, or --ask FILE, too")
