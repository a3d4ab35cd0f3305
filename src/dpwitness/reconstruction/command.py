"""The options that the commands of all families share, and `run_attack`, by which they run an attack."""

import functools
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import click

from dpwitness.cli import options as shared
from dpwitness.cli.command import CODE, KEPT_FILE, READ_FILE, Command, Option
from dpwitness.cli.console import NOT_REFUTED, live, show
from dpwitness.cli.output import hand_over
from dpwitness.cli.values import number, refuse, whole
from dpwitness.errors import InvalidParameter, OracleFailed
from dpwitness.files import json_text
from dpwitness.machine import Deadline, Overdue
from dpwitness.mechanisms.catalog import load_object
from dpwitness.proposals import AttackFamily, Commands
from dpwitness.reconstruction.alarm import Alarm
from dpwitness.reconstruction.questions import Asking, Limits, Waiting, system_of
from dpwitness.reconstruction.report import Asked, EndedAttack, Result
from dpwitness.reconstruction.transcript import Form, State, Transcript, add_answers, read_transcript

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: The help of --workers for an attack on one thread.
ONE_THREAD_HELP: Final = "maximum number of threads; this attack asks one question after another, on one thread"
#: The default of --max-time of an attack, in seconds.
MAX_TIME: Final = 600.0

#: A function that shows progress: the stage's name, the number of steps done, the number of all steps, and a text.
Progress: TypeAlias = Callable[[str, int, int, str], None]

Q = TypeVar("Q")
R = TypeVar("R")
S = TypeVar("S", bound="DataclassInstance")


def settings_of(kind: type[S], options: object, **more: object) -> S:
    """An instance of the dataclass `kind`, each field of which takes the value of the option of its name.

    An option that is None or missing leaves the field's default; `more` overrules the options.
    """
    given = {field.name: getattr(options, field.name, None) for field in fields(kind)} | more
    return kind(**{name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackOptions:
    """The options of every attack, including the options of `oracle_options`."""

    attack: str
    max_time: float
    seed: int | None = None
    json: bool = False
    quiet: bool = False
    oracle: str | None = None
    ask: str | None = None
    answers: str | None = None
    budget: int | None = None
    rate: float | None = None
    retries: int | None = None

    @property
    def own_system(self) -> bool:
        """Whether the user's own system is attacked, by --oracle or through files."""
        return any(option is not None for option in (self.oracle, self.ask, self.answers))

    def require_own_system(self) -> None:
        """Raise `InvalidParameter` for --budget, --rate and --retries where the system is simulated."""
        if not self.own_system:
            reason = "is of an attack on your own system: give --oracle, or --ask FILE, too"
            refuse(self, ("budget", "rate", "retries"), reason)

    def seed_or_fresh(self) -> int:
        """The given seed, or a fresh seed of 32 bits. Raises `InvalidParameter` for a negative seed."""
        if self.seed is None:
            return secrets.randbits(32)
        if self.seed < 0:
            raise InvalidParameter(f"--seed {self.seed} must be at least 0")
        return self.seed

    def deadline(self) -> Deadline:
        """The deadline, --max-time seconds from now."""
        return Deadline(time.monotonic() + self.max_time)

    def require_time(self, deadline: Deadline, smaller: str) -> None:
        """Raise `InvalidParameter` after the deadline; the message asks for more time or a smaller option `smaller`."""
        if not deadline.left:
            raise InvalidParameter(
                f"--max-time {self.max_time:g}: the attack takes longer than {self.max_time:g} s; "
                f"allow more time or a smaller {smaller}"
            )


def oracle_options(question: str, answer: str) -> list[click.Parameter]:
    """The options of the user's own system; the help says that the system gets `question` and returns `answer`."""
    own = functools.partial(Option, title="your own system (instead of a simulated system)")
    return [
        own(
            "--oracle",
            type=CODE,
            metavar="WHAT",
            help=f"path/file.py:function or package.module:object, which gets {question} and returns {answer}; "
            "a function without parameters that returns such a function; or an object with ask_all(questions)",
        ),
        own(
            "--ask",
            type=KEPT_FILE,
            metavar="FILE",
            help="write the questions to a file (.csv, else JSON lines) and stop; fill in the answers and repeat the "
            "command. With --oracle: keep questions and answers in the file, to continue after an interruption",
        ),
        own("--answers", type=READ_FILE, metavar="FILE", help="answers from a file with the columns id and answer"),
        own("--budget", type=whole, metavar="N", help="maximum number of questions (default: as the attack needs)"),
        own("--rate", type=number, metavar="PER_SECOND", help="maximum number of questions per second"),
        own(
            "--retries",
            type=whole,
            metavar="N",
            help="how often a failed call is repeated, after 1, 2, 4, … seconds (default 3); a question that then has "
            "no answer is left out, and ten such questions in a row end the attack",
        ),
    ]


def add_attack_command(
    commands: Commands,
    family: AttackFamily,
    run: Callable[[SimpleNamespace], int],
    parameters: Sequence[click.Parameter],
    *,
    workers: str = ONE_THREAD_HELP,
    **settings: Any,
) -> None:
    """Add a family's command, with its own parameters and the parameters of every attack.

    `workers`: the help of --workers; `settings`: the examples and the description of the `Command`.
    """
    parameters = [*parameters, shared.PLOT, *shared.common(max_time=MAX_TIME, workers=workers)]
    command = Command(family.name, summary=family.summary, run=run, parameters=parameters, **settings)
    commands.add_command(command)


def run_attack(
    options: AttackOptions,
    form: Form[Q],
    settings: Mapping[str, object],
    attack: Callable[[Asking[Q], int], tuple[R, str | None]],
    simulate: Callable[[int, Progress | None], R],
) -> EndedAttack[R] | None:
    """Run an attack on the system that the options name; None, after a printed line, if questions wait in a file.

    Parameters
    ----------
    form
        The form of the family's questions and answers.
    settings
        The settings that determine the questions, besides the seed, as JSON values. An attack that continues from a
        file may change all of them but `form.of_system`.
    attack
        The attack on the user's system, a function of an `Asking` and the seed. It returns the findings, and the reason
        for an early stop or None. Equal answers must make it ask equal questions.
    simulate
        The attack on a simulated system, a function of the seed and the progress that returns the findings. It uses no
        `Asking`, which asks one question after another.

    Raises `BadInput` for unusable options and files, `OracleFailed` for a system that fails. However the attack ends,
    --ask FILE has its questions and answers; after a kill the file lacks the answers of the last seconds.
    """
    started = time.monotonic()
    if not options.own_system:
        seed = options.seed_or_fresh()
        with live(quiet=options.quiet, seconds=options.max_time) as progress:
            found = simulate(seed, progress)
        seconds = time.monotonic() - started
        return EndedAttack(attack=options.attack, found=found, asked=None, seed=seed, seconds=seconds)
    # A fifth of the time is kept for the computation after the last answer.
    asking_ends = options.deadline().earlier(0.2 * options.max_time)
    limits = settings_of(Limits, options, deadline=asking_ends)
    transcript, before = _transcript(options, form, settings)
    seed, system = transcript.seed, None
    if options.oracle is not None:
        try:
            with Alarm(asking_ends) as alarm:
                thing = alarm.call(load_object, options.oracle)
                system = alarm.call(functools.partial(system_of, thing, form, seed=seed, name=options.oracle))
        except Overdue as error:
            raise OracleFailed(
                f"oracle {options.oracle} was not made within --max-time {options.max_time:g}: allow more time"
            ) from error
    save = None if options.ask is None else functools.partial(transcript.save, options.ask)
    asking = Asking(
        form,
        system,
        limits=limits,
        transcript=None if options.ask is None and options.answers is None else transcript,
        save=save if _is_rewritable(options.ask) else None,
        offer=options.ask is not None,
    )
    waiting = 0
    try:
        with live(quiet=options.quiet, seconds=options.max_time) as progress:
            if progress is not None:
                total = options.budget or 0
                asking.progress = lambda asked: progress("ask", asked, max(total, asked), f"{asked:,} questions")
            found, stopped = attack(asking, seed)
    except Waiting as ended:
        if options.ask is None:
            raise InvalidParameter(
                f"--answers {options.answers}: {ended.count} more questions wait: give --ask FILE for them"
            ) from None
        waiting = ended.count
    finally:
        if save is not None and transcript.state != before:
            save()
    if waiting:
        _say_waiting(options, waiting, asking.asked)
        return None
    asked = Asked(
        oracle=options.oracle or "files",
        questions=asking.asked,
        unanswered=asking.missing,
        budget=options.budget,
        rate=options.rate,
        stopped=stopped,
    )
    return EndedAttack(attack=options.attack, found=found, asked=asked, seed=seed, seconds=time.monotonic() - started)


def _is_rewritable(ask: str | None) -> bool:
    """Whether --ask is a file that can be written again: a pipe or a device would get all rows twice."""
    return ask is not None and (os.path.isfile(ask) or not os.path.exists(ask))


def _transcript(options: AttackOptions, form: Form[Q], settings: Mapping[str, object]) -> tuple[Transcript, State]:
    """The transcript in the files, else an empty transcript, and its state before the answers of --answers."""
    ask, answers = options.ask, options.answers
    begun = ask if ask is not None and os.path.isfile(ask) and os.path.getsize(ask) > 0 else None
    place = begun or answers
    if place is None:
        new = Transcript(form.family, options.seed_or_fresh(), settings)
        return new, new.state
    transcript = read_transcript(place, form)
    transcript.require(options.seed, settings, form.of_system, place)
    before = transcript.state
    if begun is not None and answers is not None:
        add_answers(transcript, answers, form)
    return transcript, before


def _say_waiting(options: AttackOptions, count: int, asked: int) -> None:
    if options.json:
        show(json_text({"attack": options.attack, "waiting": count, "asked": asked, "questions": options.ask}))
        return
    behind = f" after {asked:,} answered ones" if asked else ""
    show(
        f"{count:,} question{'s wait' if count > 1 else ' waits'} in {options.ask}{behind}: fill in the answers "
        "there (or in a file with the columns id and answer, for --answers) and run the same command again",
    )


def finish(arguments: SimpleNamespace, result: Result | None) -> int:
    """Print a result and write --save and --plot, unless the result is None; return the exit code."""
    if result is None:
        return NOT_REFUTED
    return hand_over(arguments, NOT_REFUTED, result.to_json, result.text, plot=result.plot)
