"""Asks a system within a budget, a rate and a time limit; counts the questions and checks the answers.

Answers are never lost: `AttackStopped`, which ends the asking, carries the answers so far.
"""

import inspect
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import class_and_text, one_line
from dpwitness.errors import AttackStopped, InvalidParameter, OracleFailed
from dpwitness.machine import Deadline, Overdue
from dpwitness.mechanisms.signature import GENERATOR_NAMES
from dpwitness.reconstruction.alarm import Alarm
from dpwitness.reconstruction.transcript import Form, Row, Transcript, shown_question

Q = TypeVar("Q")

#: The largest number of questions that may wait in a file: rows for more would take minutes.
MOST_WAITING: Final = 10_000_000
#: The least time between two writings of the answers so far, in seconds.
SAVE_INTERVAL: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class System(Generic[Q]):
    """A system: `answers` takes at most `at_once` questions and gives one unchecked answer for each."""

    name: str
    answers: Callable[[Sequence[Q]], Sequence[object]]
    at_once: int


class WrongNumber(ValueError):
    """The system did not give one answer a question; the message says what it gave."""


def system_of(thing: Any, form: Form[Q], *, seed: int, name: str | None = None) -> System[Q]:
    """The system behind an object of the user's.

    Parameters
    ----------
    thing
        A callable of one question; a callable without required parameters but `rng` (a `numpy.random.Generator`) or
        `seed` (an int), which returns one; or an object with `ask_all`, a list of questions → one answer each.
    seed
        The seed of a factory's `rng` and `seed`.

    Raises `InvalidParameter` for any other object, `OracleFailed` where a factory raises.
    """
    name = name or str(getattr(thing, "__name__", type(thing).__name__))
    oracle = thing
    if (arguments := _factory_arguments(thing, seed)) is not None:
        try:
            oracle = thing(**arguments)
        except Exception as error:  # the user's code: it may raise anything
            raise OracleFailed(f"oracle {name} could not be made: {class_and_text(error)}") from error
    if callable(ask_all := getattr(oracle, "ask_all", None)):

        def answers(questions: Sequence[Q]) -> Sequence[object]:
            given = ask_all([form.handed(question) for question in questions])
            if not hasattr(given, "__iter__") or isinstance(given, Mapping | Set | str | bytes):
                raise WrongNumber(f"{type(given).__name__} from ask_all")
            given = list(given)
            if len(given) != len(questions):
                raise WrongNumber(f"{len(given)} answers from ask_all")
            return given

        return System(name=name, answers=answers, at_once=4096)  # bounds the memory of a batch
    if not callable(oracle):
        kind = f"is {type(oracle).__name__}"
        if oracle is not thing:
            kind = f"returned {type(oracle).__name__}: it takes no question, so it was called to make a system"
        raise InvalidParameter(
            f"oracle {name} {kind}; give a function of one question, a function without parameters that returns one, "
            "or an object with ask_all(questions)"
        )
    return System(name=name, answers=lambda questions: [oracle(form.handed(one)) for one in questions], at_once=1)


def _factory_arguments(thing: object, seed: int) -> dict[str, object] | None:
    """The arguments of a factory of systems; None for an object that is not a factory."""
    if not callable(thing) or (hasattr(thing, "ask_all") and not inspect.isclass(thing)):
        return None
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):  # of an extension: it says nothing of its parameters
        return None
    known = GENERATOR_NAMES | {"seed"}
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            return None
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD and p.name not in known:
            return None
    return {
        p.name: seed if p.name == "seed" else np.random.default_rng([seed, 0x5F57])  # a stream of its own
        for p in parameters
        if p.name in known
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The clock that limits are measured by, in seconds; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of an attack: `budget` questions in all, `rate` questions a second, a `deadline`; None: no limit.

    A call that has not returned at the deadline is ended, as far as `Alarm` can.
    `retries`: the number of times that a call that raised is repeated, after pauses of 1, 2, 4, … seconds. Raises
    `InvalidParameter` for a budget below 1, a rate that is not positive, or a negative number of retries.
    """

    budget: int | None = None
    rate: float | None = None
    deadline: Deadline | None = None
    retries: int = 3
    clock: Clock = Clock()

    def __post_init__(self) -> None:
        if self.budget is not None and not self.budget >= 1:
            raise InvalidParameter(f"--budget {self.budget} must be at least 1 question")
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise InvalidParameter(f"--rate {self.rate:g} must be a positive number of questions a second")
        if not self.retries >= 0:
            raise InvalidParameter(f"--retries {self.retries} must be at least 0")


class Waiting(Exception):  # no error: the attack goes on in another run, once its questions are answered
    """`count` questions wait in the transcript: no system answers them here."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class Asking(Generic[Q]):
    """The only way from an attack on a system to its answers.

    Answers come from the transcript where it has them, then from the system. An attack that is deterministic given its
    seed and the answers asks the same questions again, so an interrupted one, or one whose questions are in a file,
    continues where it was.

    **Missing answers.** A system may refuse a question, be down for a moment, or reach a quota; a file may be filled in
    by half. A family chooses one of two ways:

    - `ask_some` gives NaN for each question that has no answer, and goes on. A family drops the NaN, uses the rest,
      and reports `stopped`. Nothing is raised unless there is no answer at all.
    - `ask` is for a family that needs all answers: at the first question without one it raises `AttackStopped`, whose
      `answers` are those before it. The family catches this if it can report what it knows so far.

    Attributes
    ----------
    asked, missing
        The number of questions so far, with those that the transcript answers; the number of unanswered ones.
    stopped
        The reason why no more answers come; None while they do.
    progress
        If set, called with the number of questions asked.

    Parameters
    ----------
    system
        None: only the transcript answers, and `Waiting` is raised where it lacks questions, or all answers of a batch.
    limits
        The limits on all questions, with those of the transcript; but earlier answers are used in any case.
    transcript
        The transcript that gets all questions and answers; None: they are not kept.
    save
        A function that writes the transcript, called every few seconds, and by the caller at the end; None: no file.
    offer
        Without a system: whether new questions can be written into the transcript, to be answered for another run.
    """

    def __init__(
        self,
        form: Form[Q],
        system: System[Q] | None,
        *,
        limits: Limits | None = None,
        transcript: Transcript | None = None,
        save: Callable[[], None] | None = None,
        offer: bool = True,
    ) -> None:
        if system is None and transcript is None:
            raise InvalidParameter("an attack needs a system, or a transcript that its questions are written to")
        self.form, self.system, self.limits, self.transcript = form, system, limits or Limits(), transcript
        self.progress: Callable[[int], None] | None = None
        self.asked = self.missing = 0
        self.stopped: str | None = None
        self._offer = offer
        self._next = -np.inf
        self._save, self._saved, self._between = save, self.limits.clock.now(), SAVE_INTERVAL
        self._unused = 0  # answers of the transcript that were not asked for
        if transcript is not None:
            transcript.begin()
            self._unused = transcript.answered
        self._answered = self._unused > 0  # whether there was any answer
        self._alarm = Alarm(self.limits.deadline)
        self._refused: list[OracleFailed] = []  # of the questions since the last answer

    @property
    def left(self) -> float:
        """The number of questions that the budget still allows, the transcript's counted; inf without a budget."""
        return np.inf if self.limits.budget is None else self.limits.budget - self.asked - self._unused

    @property
    def last_answered(self) -> int:
        """The place, from 1, of the transcript's last answered row, asked in this run or not; 0 without one."""
        rows = [] if self.transcript is None else self.transcript.rows
        return max((place for place, row in enumerate(rows, 1) if row.answer is not None), default=0)

    def ask(self, questions: Iterable[Q]) -> NDArray[np.float64]:
        """The answers to questions that may all be asked at once, shape (questions,); ⊤ is 1 and ⊥ is 0.

        Raises
        ------
        AttackStopped
            Where the budget or the time is used up, or a question gets no answer; its `answers` are this batch's
            answers until then.
        OracleFailed
            Where the system raises, or gives no valid answer, and nothing was answered before.
        Waiting
            Where there is no system and the transcript answers none of these questions, or lacks some of them.
        """
        answers, stopped = self._collect(iter(questions), whole=True)
        if stopped is not None:
            stopped.answers = tuple(answers[: int(np.argmax(np.append(np.isnan(answers), True)))].tolist())
            raise stopped
        return answers

    def ask_some(self, questions: Iterable[Q]) -> NDArray[np.float64]:
        """The answers, shape (questions,), NaN for each unanswered question; see `stopped` and `missing`.

        Raises `OracleFailed` and `Waiting` where `ask` does.
        """
        answers, stopped = self._collect(iter(questions), whole=False)
        if stopped is not None:
            self.stopped = str(stopped)
        elif not self._answered and self._refused:
            raise self._refused[0]
        return answers

    def recorded(self, questions: Iterable[Q]) -> NDArray[np.float64]:
        """The answers in the transcript, NaN for each question without one; no question is asked."""
        if self.transcript is None:
            return np.array([np.nan for _ in questions])
        rows = (self._find(self.form.written(question)) for question in questions)
        return np.array([np.nan if row is None else row.value for row in rows], np.float64)

    def _collect(self, questions: Iterator[Q], *, whole: bool) -> tuple[NDArray[np.float64], AttackStopped | None]:
        """The answers, NaN for a missing one, and the end of the asking; `whole`: the answers end there, too."""
        if self.system is None:
            rows, stopped = self._of_file(questions, whole=whole)
            return np.array([row.value for row in rows], np.float64), stopped
        with self._alarm:
            return self._of_system(self.system, questions, whole=whole)

    def _of_system(
        self, system: System[Q], questions: Iterator[Q], *, whole: bool
    ) -> tuple[NDArray[np.float64], AttackStopped | None]:
        """The answers of the system, and the end of the asking, as `_collect` returns them."""
        answers = array("d")  # of millions of questions rows would take much memory
        stopped = None if self.stopped is None else AttackStopped(self.stopped)
        size, rate = system.at_once, self.limits.rate
        if rate is not None:  # no more than a second's
            size = max(1, min(size, int(rate)))
        while batch := list(islice(questions, size)):
            asked = [(question, self._row(question)) for question in batch]
            if stopped is None:
                try:
                    self._fill([one for one in asked if one[1].answer is None], system, whole)
                except AttackStopped as error:
                    stopped = error
            answers.extend(row.value for _, row in asked)
            if stopped is not None and whole:
                break
            if stopped is not None and not self._unused:
                answers.extend(np.nan for _ in questions)
        return np.array(answers, np.float64), stopped

    def _row(self, question: Q) -> Row:
        """The row of a question: that of the transcript, else a new one."""
        if self.transcript is None:
            return Row(0, None)
        written = self.form.written(question)
        return self._find(written) or Row(0, written)

    def _find(self, written: object) -> Row | None:
        """The question's row in the transcript, None without one; an answered row counts as asked."""
        assert self.transcript is not None
        row = self.transcript.find(written)
        if row is not None and row.answer is not None:
            self._unused -= 1
            self.asked += 1
        return row

    def _of_file(self, questions: Iterator[Q], *, whole: bool) -> tuple[list[Row], AttackStopped | None]:
        """The rows of the questions, answered by the transcript alone. Raises `Waiting` if answers are missing."""
        assert self.transcript is not None
        # The questions are counted before they are written: counting takes seconds, rows for all take minutes.
        most = MOST_WAITING + len(self.transcript.rows)
        first = list(islice(questions, most + 1))
        if len(first) > most and self.left > MOST_WAITING:
            raise InvalidParameter(
                f"the attack asks more than {MOST_WAITING:,} questions at once, too many for a file: give "
                "--budget, or a system by --oracle"
            )
        rows, unanswered = list[Row](), list[Row]()
        stopped: AttackStopped | None = None
        for question in chain(first, questions):
            written = self.form.written(question)
            rows.append(row := self._find(written) or Row(0, written))
            if row.answer is not None:
                continue
            if len(unanswered) < self.left:
                unanswered.append(row)
                continue
            stopped = stopped or self._over_budget()
            if whole:
                return rows, stopped
        new = [row for row in unanswered if not row.id]
        if unanswered and (len(unanswered) == len(rows) or (new and self._offer)):
            if new:
                self.transcript.forget_unasked()
            for row in new:
                self.transcript.add(row)
            raise Waiting(len(unanswered))
        if unanswered:
            number = f"{len(unanswered):,} of {len(rows):,} questions have" if len(unanswered) > 1 else "1 question has"
            one = shown_question(unanswered[0].question)
            stopped = AttackStopped(f"{number} no answer in the file, question {one} among them")
        self.asked += len(unanswered)
        self.missing += len(unanswered)
        return rows, stopped

    def _fill(self, batch: list[tuple[Q, Row]], system: System[Q], whole: bool) -> None:
        """Ask the system for answers, as far as the budget goes.

        Raises as `ask`; but unless `whole`, `AttackStopped` only where no more answers are to be expected.
        """
        asked = batch[: int(min(len(batch), max(self.left, 0)))]
        if asked:
            failed = self._read(asked, self._given([question for question, _ in asked], system), system)
            self._keep()
            if self.progress is not None:
                self.progress(self.asked)
            if failed and (whole or len(self._refused) >= 10):
                first, others = (failed[0], 0) if whole else (self._refused[0], len(self._refused) - 1)
                if not self._answered:
                    raise first
                more = f"; the {others} questions after it got no answer either" if others else ""
                raise AttackStopped(f"{first}{more}") from first
        if len(asked) < len(batch):
            raise self._over_budget()

    def _given(self, batch: list[Q], system: System[Q]) -> Sequence[object] | OracleFailed:
        """The system's answers to a batch of questions, or its failure after all retries.

        A call is tried again where the question before it was answered: a system that never answered has another fault,
        and one that answers no more, as after a quota, is not waited for at each question.
        """
        tries = 1 + self.limits.retries * (self._answered and not self._refused)
        for tried in range(1, tries + 1):
            self._wait(len(batch))
            try:
                return self._alarm.call(system.answers, batch)
            except Overdue as error:
                raise AttackStopped(
                    f"--max-time is over after {self.asked} questions, and oracle {system.name} has not answered "
                    f"question {self._place(batch)}: allow more time{self._where_kept}"
                ) from error
            except WrongNumber as error:
                message = (
                    f"oracle {system.name} gave {error} for {len(batch)} questions, from question {self.asked + 1} on: "
                    f"give one answer a question{self._where_kept}"
                )
                raise (AttackStopped if self._answered else OracleFailed)(message) from error
            except Exception as error:  # the user's code: it may raise anything
                often = f" (tried {tried} times)" if tried > 1 else ""
                failed = OracleFailed(
                    f"oracle {system.name} raised {class_and_text(error)} at question "
                    f"{self._place(batch)}{often}{self._where_kept}"
                )
                failed.__cause__ = error
            if tried == tries or not self._pause(2.0 ** (tried - 1)):
                break
        return failed

    def _read(
        self, asked: list[tuple[Q, Row]], given: Sequence[object] | OracleFailed, system: System[Q]
    ) -> list[OracleFailed]:
        """Keep the answers of a call; return the failures of the questions without a valid answer."""
        failed = list[OracleFailed]()
        for place, (question, row) in enumerate(asked):
            if isinstance(given, OracleFailed):
                failed.append(given)
            elif (answer := self.form.read(given[place])) is None:
                failed.append(
                    OracleFailed(
                        f"oracle {system.name} gave {_shorten(given[place])} for question {self._place([question])}: "
                        f"give {self.form.answer}{self._where_kept}"
                    )
                )
            else:
                row.answer, self._answered = answer, True
                self._refused.clear()
            if row.answer is None:
                self._refused.append(failed[-1])
            self.asked += 1
            self.missing += row.answer is None
            if self.transcript is not None and not row.id:
                self.transcript.add(row)
        return failed

    @property
    def _where_kept(self) -> str:
        return "" if self._save is None else "; the answers so far are kept"

    def _over_budget(self) -> AttackStopped:
        asked = f"{self.asked + self._unused} questions were asked"
        return AttackStopped(f"--budget {self.limits.budget} is used up: {asked}, and the attack asks more: allow more")

    def _keep(self) -> None:
        """Write the answers every few seconds, in case the process is killed; a long file less often."""
        now = self.limits.clock.now
        if self._save is not None and now() - self._saved >= self._between:
            started = now()
            self._save()
            self._saved = now()
            self._between = max(SAVE_INTERVAL, 20 * (self._saved - started))

    def _place(self, batch: Sequence[Q]) -> str:
        """The next question as text for a message: its number, from 1, and its content."""
        return f"{self.asked + 1}, {shown_question(self.form.written(batch[0]))}"

    def _pause(self, seconds: float) -> bool:
        """Wait before the next try; False where the time would be over first."""
        deadline = self.limits.deadline
        if deadline is not None and deadline.left <= seconds:
            return False
        self.limits.clock.sleep(seconds)
        return True

    def _wait(self, number: int) -> None:
        """Wait until `number` more questions may be asked. Raises `AttackStopped` if the time is over first."""
        limits, clock = self.limits, self.limits.clock
        now = clock.now()
        pause = max(self._next - now, 0.0)
        if limits.deadline is not None and limits.deadline.left <= pause:
            raise AttackStopped(
                f"--max-time is over after {self.asked} questions, and the attack asks more: allow more time"
            )
        if pause:
            clock.sleep(pause)
        if limits.rate is not None:
            self._next = now + pause + number / limits.rate


def _shorten(value: object) -> str:
    """The value that came instead of an answer, as text for a message."""
    text = one_line(value, repr)
    return text if len(text) <= 80 else f"{text[:60]} … ({type(value).__name__})"
