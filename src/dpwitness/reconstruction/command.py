"""The command of a family of attacks: the options that all families share, and `run_attack`, which runs an attack."""

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import click

from dpwitness.checks import seed_or_new
from dpwitness.cli import options as shared
from dpwitness.cli.command import CODE, KEPT_FILE, CliOption, Subcommand
from dpwitness.cli.console import NOT_REFUTED, live, show
from dpwitness.cli.output import hand_over
from dpwitness.cli.values import number, refuse, whole
from dpwitness.files import json_text
from dpwitness.machine import Deadline
from dpwitness.mechanisms.catalog import load_object
from dpwitness.proposals import AttackFamily, Commands
from dpwitness.reconstruction.questions import Asking, Limits, Waiting, system_of
from dpwitness.reconstruction.report import Asked, AttackResult, EndedAttack
from dpwitness.reconstruction.transcript import Form, Transcript, read_transcript

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: The default of --max-time of an attack, in seconds.
ATTACK_MAX_TIME: Final = 600.0
#: Names of the options that only an attack on the user's own system takes.
OWN_SYSTEM_OPTIONS: Final = ("budget", "rate", "retries")

#: A function that shows progress: the stage's name, the number of steps done, the number of all steps, and a text.
AttackProgress: TypeAlias = Callable[[str, int, int, str], None]

Q = TypeVar("Q")
R = TypeVar("R")
S = TypeVar("S", bound="DataclassInstance")
OptionsT = TypeVar("OptionsT", bound="AttackOptions")


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
    budget: int | None = None
    rate: float | None = None
    retries: int | None = None

    @property
    def own_system(self) -> bool:
        """Whether the user's own system is attacked, by --oracle or through a file."""
        return self.oracle is not None or self.ask is not None

    def deadline(self) -> Deadline:
        """The deadline, --max-time seconds from now."""
        return Deadline(time.monotonic() + self.max_time)


def oracle_options(question: str, answer: str) -> list[click.Parameter]:
    """The options of the user's own system; the help says that the system gets `question` and returns `answer`."""
    own = functools.partial(CliOption, title="your own system (instead of a simulated system)")
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
            metavar="FILE.csv",
            help="write the questions to a file and stop; fill in the answers and repeat the command. With --oracle: "
            "keep questions and answers in the file, to continue after an interruption",
        ),
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
    kind: type[OptionsT],
    attack: Callable[[OptionsT, SimpleNamespace], AttackResult | None],
    parameters: Sequence[click.Parameter],
    *,
    simulated: Sequence[str] = (),
    own: Sequence[str] = OWN_SYSTEM_OPTIONS,
    **settings: Any,
) -> None:
    """Add a family's command, with its own parameters and the parameters of every attack.

    Parameters
    ----------
    kind, attack
        The class of the family's options, and the attack, a function of these options and all arguments that returns
        None where the questions wait in a file. It raises `BadInput`.
    simulated, own
        Names of the options of a simulated system alone, and of the user's own system alone.
    settings
        The examples and the description of the `Subcommand`.
    """

    def run(arguments: SimpleNamespace) -> int:
        options = settings_of(kind, arguments)
        if options.own_system:
            refuse(arguments, simulated, "describes a simulated system: leave it out where you attack your own")
        else:
            refuse(arguments, own, "is of an attack on your own system: give --oracle, or --ask FILE, too")
        result = attack(options, arguments)
        if result is None:
            return NOT_REFUTED
        return hand_over(arguments, NOT_REFUTED, result.to_json, result.text, plot=result.plot)

    workers = "maximum number of threads; this attack asks one question after another, on one thread"
    parameters = [*parameters, shared.PLOT, *shared.common(max_time=ATTACK_MAX_TIME, workers=workers)]
    commands.add_command(Subcommand(family.name, summary=family.summary, run=run, parameters=parameters, **settings))


def run_attack(
    options: AttackOptions,
    form: Form[Q],
    settings: Mapping[str, object],
    attack: Callable[[Asking[Q], int], R],
    simulate: Callable[[int, AttackProgress | None], R],
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
        The attack on the user's system, a function of an `Asking` and the seed that returns the findings. Equal answers
        must make it ask equal questions.
    simulate
        The attack on a simulated system, a function of the seed and the progress that returns the findings. It uses no
        `Asking`, which asks one question after another.

    Raises `BadInput` for unusable options and files, `OracleFailed` for a system that fails. However the attack ends,
    --ask FILE has its questions and answers; after a kill the file lacks the answers of the last seconds.
    """
    started = time.monotonic()
    if options.own_system:
        transcript = _transcript(options, form, settings)
        if (ended := _attack_own_system(options, form, transcript, attack)) is None:
            return None
        (found, asked), seed = ended, transcript.seed
    else:
        asked, seed = None, seed_or_new(options.seed)
        with live(quiet=options.quiet, seconds=options.max_time) as progress:
            found = simulate(seed, progress)
    return EndedAttack(attack=options.attack, found=found, asked=asked, seed=seed, seconds=time.monotonic() - started)


def _transcript(options: AttackOptions, form: Form[Q], settings: Mapping[str, object]) -> Transcript:
    """The transcript in the file of --ask, else an empty transcript."""
    if options.ask is None or not os.path.isfile(options.ask) or not os.path.getsize(options.ask):
        return Transcript(form.family, seed_or_new(options.seed), settings)
    transcript = read_transcript(options.ask, form)
    transcript.require(options.seed, settings, form.of_system, options.ask)
    return transcript


def _attack_own_system(
    options: AttackOptions, form: Form[Q], transcript: Transcript, attack: Callable[[Asking[Q], int], R]
) -> tuple[R, Asked] | None:
    """The findings of an attack and its questions; None, after a printed line, if questions wait in the transcript."""
    # A fifth of the time is kept for the computation after the last answer.
    limits = settings_of(Limits, options, deadline=options.deadline().earlier(0.2 * options.max_time))
    system, save = None, None
    if options.oracle is not None:
        system = system_of(load_object(options.oracle), form, seed=transcript.seed, name=options.oracle)
    if options.ask is not None:
        save = functools.partial(transcript.save, options.ask)
    asking = Asking(form, system, limits=limits, transcript=None if save is None else transcript, save=save)
    waiting = 0
    try:
        with live(quiet=options.quiet, seconds=options.max_time) as progress:
            if progress is not None:
                total = options.budget or 0
                asking.progress = lambda asked: progress("ask", asked, max(total, asked), f"{asked:,} questions")
            found = attack(asking, transcript.seed)
    except Waiting as ended:
        waiting = ended.count
    finally:
        if save is not None and transcript.rows:
            save()
    if not waiting:
        return found, Asked(
            oracle=options.oracle or "files",
            questions=asking.asked,
            unanswered=asking.missing,
            budget=options.budget,
            rate=options.rate,
            stopped=asking.stopped,
        )
    behind = f" after {asking.asked:,} answered ones" if asking.asked else ""
    number = f"{waiting:,} question{'s wait' if waiting > 1 else ' waits'} in {options.ask}{behind}"
    values = {"attack": options.attack, "waiting": waiting, "asked": asking.asked, "questions": options.ask}
    show(json_text(values) if options.json else f"{number}: fill in the answers there and run the same command again")
    return None
