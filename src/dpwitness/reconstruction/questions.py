"""`Asking` asks a system within a budget, a rate and a time limit, counts the questions and checks the answers.

No answer is lost: `AttackStopped`, which ends the asking, carries the answers so far.
"""

import inspect
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final, Generic, TypeVar

import numpy as np

from dpwitness.arrays import Floats
from dpwitness.checks import class_and_text, one_line
from dpwitness.errors import AttackStopped, InvalidParameter, OracleFailed
from dpwitness.machine import Deadline, Overdue
from dpwitness.mechanisms.signature import GENERATOR_NAMES
from dpwitness.reconstruction.alarm import Alarm
from dpwitness.reconstruction.transcript import Form, Row, Transcript, shown_question

Q = TypeVar("Q")

#: The largest number of questions that may wait in a file: rows for more questions would take minutes to write.
MOST_WAITING_QUESTIONS: Final = 10_000_000
#: The least time between two writings of the file of answers, in seconds.
SAVE_INTERVAL: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class System(Generic[Q]):
    """A system under attack: `answers` takes at most `at_once` questions and returns one unchecked answer for each."""

    name: str
    answers: Callable[[Sequence[Q]], Sequence[object]]
    at_once: int


class WrongNumber(ValueError):
    """The error of a system that does not give one answer a question; the message has the number or type of answers."""


def system_of(thing: Any, form: Form[Q], *, seed: int, name: str | None = None) -> System[Q]:
    """The system that the user's object `thing` is, or makes.

    `thing` is a function from a question to its answer; an object with `ask_all`, from a list of questions to as many
    answers; or a factory of either, which requires no parameters except `rng` (a `numpy.random.Generator`) or `seed`.
    `seed` determines both.

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
    except (TypeError, ValueError):  # a function of an extension module without a signature
        return None
    known = GENERATOR_NAMES | {"seed"}
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            return None
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD and p.name not in known:
            return None
    return {
        p.name: seed if p.name == "seed" else np.random.default_rng([seed, 0x5F57])  # no attack uses this stream
        for p in parameters
        if p.name in known
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The clock of the limits, in seconds; tests replace it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of an attack: `budget` questions in all, `rate` questions a second, a `deadline`; None: no limit.

    At the deadline an `Alarm` interrupts the running call. `retries`: how often a call that raised is repeated, after
    1, 2, 4, … seconds. Raises `InvalidParameter` for a budget below 1, a rate that is not positive, negative retries.
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


class Waiting(Exception):  # no error: the attack continues in another run, once its questions are answered
    """`count` questions wait in the transcript, since no system answers them in this run."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class Asking(Generic[Q]):
    """An attack's access to a system, by questions within limits; a transcript keeps the answers.

    Answers come from the transcript where it has them, else from the system. An attack that is deterministic given its
    seed and the answers asks the same questions again, so it continues after an interruption, or when a person has
    answered its questions in a file.

    **Missing answers.** A system may refuse a question, fail for a moment, or reach a quota; a file may be half filled
    in. A family chooses one of two methods:

    - `ask_some` gives NaN for each question without an answer. The family drops the NaN, uses the other answers, and
      reports `stopped`. Nothing is raised unless all answers are missing.
    - `ask` raises `AttackStopped` at the first question without an answer; the error's `answers` are the answers before
      this question. A family that can report a partial result catches the error.

    Attributes
    ----------
    asked, missing
        The number of questions so far, including questions that the transcript answers, and how many have no answer.
    stopped
        The reason why no more answers come; None while answers come.
    progress
        A function that is called with the number of questions asked, or None.

    Parameters
    ----------
    system
        The system; None: only the transcript answers, and `Waiting` is raised where it lacks questions, or all answers
        of a batch.
    limits
        The limits on all questions, also questions of the transcript; but answers in the transcript are always used.
    transcript
        The transcript that gets all questions and answers; None: they are not kept.
    save
        A function that writes the transcript, called every few seconds, and by the caller at the end; None: no file.
    offer
        Whether, without a system, new questions are added to the transcript, so that a person can answer them.
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
        self._next = -np.inf  # the earliest time of the next call by the rate, in seconds
        self._save, self._saved, self._between = save, self.limits.clock.now(), SAVE_INTERVAL
        self._unused = 0  # the number of answers in the transcript whose questions were not asked in this run
        if transcript is not None:
            transcript.begin()
            self._unused = transcript.answered
        self._answered = self._unused > 0  # whether any question has an answer
        self._alarm = Alarm(self.limits.deadline)
        self._refused: list[OracleFailed] = []  # the failures of the questions since the last answer

    @property
    def left(self) -> float:
        """The number of questions that the budget still allows besides the transcript's; inf without a budget."""
        return np.inf if self.limits.budget is None else self.limits.budget - self.asked - self._unused

    @property
    def last_answered(self) -> int:
        """The number, from 1, of the transcript's last row with an answer; 0 without answers."""
        rows = [] if self.transcript is None else self.transcript.rows
        return max((place for place, row in enumerate(rows, 1) if row.answer is not None), default=0)

    def ask(self, questions: Iterable[Q]) -> Floats:
        """The answers to questions that may all be asked at once, shape (questions,); ⊤ is 1 and ⊥ is 0.

        Raises `AttackStopped` where the budget or the time is used up, or a question gets no answer; the error's
        `answers` are the answers to the questions before. Raises `OracleFailed` where the system raises, or gives no
        valid answer, and has answered no question before; and `Waiting` where there is no system, and the transcript
        lacks all answers or some of the questions.
        """
        answers, stopped = self._collect(iter(questions), whole=True)
        if stopped is not None:
            stopped.answers = tuple(answers[: int(np.argmax(np.append(np.isnan(answers), True)))].tolist())
            raise stopped
        return answers

    def ask_some(self, questions: Iterable[Q]) -> Floats:
        """The answers, shape (questions,), NaN for each unanswered question; see `stopped` and `missing`.

        Raises `OracleFailed` where the first ten questions, or all if there are fewer, get no valid answer, and
        `Waiting` where `ask` does.
        """
        answers, stopped = self._collect(iter(questions), whole=False)
        if stopped is not None:
            self.stopped = str(stopped)
        elif not self._answered and self._refused:
            raise self._refused[0]
        return answers

    def recorded(self, questions: Iterable[Q]) -> Floats:
        """The transcript's answers, shape (questions,), NaN where it has no answer; the system is not asked."""
        if self.transcript is None:
            return np.array([np.nan for _ in questions])
        rows = (self._find(self.form.written(question)) for question in questions)
        return np.array([np.nan if row is None else row.value for row in rows], np.float64)

    def _collect(self, questions: Iterator[Q], *, whole: bool) -> tuple[Floats, AttackStopped | None]:
        """The answers, NaN where missing, and the error that ended the asking; `whole`: no answers follow the error."""
        if self.system is None:
            rows, stopped = self._collect_from_file(questions, whole=whole)
            return np.array([row.value for row in rows], np.float64), stopped
        with self._alarm:
            return self._collect_from_system(self.system, questions, whole=whole)

    def _collect_from_system(
        self, system: System[Q], questions: Iterator[Q], *, whole: bool
    ) -> tuple[Floats, AttackStopped | None]:
        """The system's answers and the error, as `_collect` returns them."""
        answers = array("d")  # rows of millions of questions would take much memory
        stopped = None if self.stopped is None else AttackStopped(self.stopped)
        size, rate = system.at_once, self.limits.rate
        if rate is not None:  # a call asks at most the questions of one second
            size = max(1, min(size, int(rate)))
        while batch := list(islice(questions, size)):
            asked = [(question, self._row(question)) for question in batch]
            if stopped is None:
                try:
                    self._ask_batch([one for one in asked if one[1].answer is None], system, whole)
                except AttackStopped as error:
                    stopped = error
            answers.extend(row.value for _, row in asked)
            if stopped is not None and whole:
                break
            if stopped is not None and not self._unused:
                answers.extend(np.nan for _ in questions)
        return np.array(answers, np.float64), stopped

    def _row(self, question: Q) -> Row:
        """The question's row in the transcript, else a new row."""
        if self.transcript is None:
            return Row(0, None)
        written = self.form.written(question)
        return self._find(written) or Row(0, written)

    def _find(self, written: object) -> Row | None:
        """The question's row in the transcript, or None; a row with an answer counts as asked."""
        assert self.transcript is not None
        row = self.transcript.find(written)
        if row is not None and row.answer is not None:
            self._unused -= 1
            self.asked += 1
        return row

    def _collect_from_file(self, questions: Iterator[Q], *, whole: bool) -> tuple[list[Row], AttackStopped | None]:
        """The questions' rows, with the transcript's answers, and the error. Raises `Waiting` as `ask` does."""
        assert self.transcript is not None
        # Questions are counted before rows are made: counting takes seconds, rows for all questions take minutes.
        most = MOST_WAITING_QUESTIONS + len(self.transcript.rows)
        first = list(islice(questions, most + 1))
        if len(first) > most and self.left > MOST_WAITING_QUESTIONS:
            raise InvalidParameter(
                f"the attack asks more than {MOST_WAITING_QUESTIONS:,} questions at once, too many for a file: give "
                "--budget, or a system by --oracle"
            )
        rows, unanswered = list[Row](), list[Row]()
        stopped: AttackStopped | None = None
        for question in chain(first, questions):
            rows.append(row := self._row(question))
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

    def _ask_batch(self, batch: list[tuple[Q, Row]], system: System[Q], whole: bool) -> None:
        """Ask the system the questions that the budget allows, and put the answers into their rows.

        Raises as `ask` does; but unless `whole`, unanswered questions raise only if there are ten in a row.
        """
        asked = batch[: int(min(len(batch), max(self.left, 0)))]
        if asked:
            failed = self._take_answers(asked, self._call([question for question, _ in asked], system), system)
            self._save_at_intervals()
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

    def _call(self, batch: list[Q], system: System[Q]) -> Sequence[object] | OracleFailed:
        """The system's answers to a batch of questions, or its failure after all retries.

        A failed call is repeated only where the question before it was answered: retries do not help a system that has
        never answered, or that has stopped answering, as after a quota.
        """
        tries = 1 + self.limits.retries * (self._answered and not self._refused)
        for tried in range(1, tries + 1):
            self._wait(len(batch))
            try:
                return self._alarm.call(system.answers, batch)
            except Overdue as error:
                raise AttackStopped(
                    f"--max-time is over after {self.asked} questions, and oracle {system.name} has not answered "
                    f"question {self._next_question(batch)}: allow more time{self._kept_note}"
                ) from error
            except WrongNumber as error:
                message = (
                    f"oracle {system.name} gave {error} for {len(batch)} questions, from question {self.asked + 1} on: "
                    f"give one answer a question{self._kept_note}"
                )
                raise (AttackStopped if self._answered else OracleFailed)(message) from error
            except Exception as error:  # the user's code: it may raise anything
                often = f" (tried {tried} times)" if tried > 1 else ""
                failed = OracleFailed(
                    f"oracle {system.name} raised {class_and_text(error)} at question "
                    f"{self._next_question(batch)}{often}{self._kept_note}"
                )
                failed.__cause__ = error
            if tried == tries or not self._pause(2.0 ** (tried - 1)):
                break
        return failed

    def _take_answers(
        self, asked: list[tuple[Q, Row]], given: Sequence[object] | OracleFailed, system: System[Q]
    ) -> list[OracleFailed]:
        """Put the answers of a call into their rows; return the failures of the questions without a valid answer."""
        failed = list[OracleFailed]()
        for place, (question, row) in enumerate(asked):
            if isinstance(given, OracleFailed):
                failed.append(given)
            elif (answer := self.form.read(given[place])) is None:
                failed.append(
                    OracleFailed(
                        f"oracle {system.name} gave {_shorten(given[place])} for question "
                        f"{self._next_question([question])}: give {self.form.answer}{self._kept_note}"
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
    def _kept_note(self) -> str:
        """The end of messages about failures."""
        return "" if self._save is None else "; the answers so far are kept"

    def _over_budget(self) -> AttackStopped:
        asked = f"{self.asked + self._unused} questions were asked"
        return AttackStopped(f"--budget {self.limits.budget} is used up: {asked}, and the attack asks more: allow more")

    def _save_at_intervals(self) -> None:
        """Write the answers every few seconds, in case the process is killed; a long file less often."""
        now = self.limits.clock.now
        if self._save is not None and now() - self._saved >= self._between:
            started = now()
            self._save()
            self._saved = now()
            self._between = max(SAVE_INTERVAL, 20 * (self._saved - started))

    def _next_question(self, batch: Sequence[Q]) -> str:
        """The next question as text for a message: its number, from 1, and its content."""
        return f"{self.asked + 1}, {shown_question(self.form.written(batch[0]))}"

    def _pause(self, seconds: float) -> bool:
        """Wait for some seconds; False, without waiting, if the deadline comes first."""
        deadline = self.limits.deadline
        if deadline is not None and deadline.left <= seconds:
            return False
        if seconds:
            self.limits.clock.sleep(seconds)
        return True

    def _wait(self, number: int) -> None:
        """Wait until the rate allows `number` more questions. Raises `AttackStopped` if the deadline comes first."""
        now, rate = self.limits.clock.now(), self.limits.rate
        pause = max(self._next - now, 0.0)
        if not self._pause(pause):
            raise AttackStopped(
                f"--max-time is over after {self.asked} questions, and the attack asks more: allow more time"
            )
        if rate is not None:
            self._next = now + pause + number / rate


def _shorten(value: object) -> str:
    """An invalid answer as text for a message, its end left out if it is long."""
    text = one_line(value, repr)
    return text if len(text) <= 80 else f"{text[:60]} … ({type(value).__name__})"
