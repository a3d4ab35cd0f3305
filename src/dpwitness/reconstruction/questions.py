"""`Asking` asks a system within a budget, a rate and a time limit, counts the questions and checks the answers."""

import inspect
import json
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import numpy as np

from dpwitness.arrays import Floats
from dpwitness.checks import brief, class_and_text, whole
from dpwitness.errors import AttackStopped, InvalidParameter, OracleFailed
from dpwitness.machine import Deadline
from dpwitness.mechanisms.signature import GENERATOR_NAMES
from dpwitness.reconstruction.transcript import Form, Transcript, TranscriptRow

Q = TypeVar("Q")
R = TypeVar("R")

#: The largest number of questions that a file gets at once: more rows would take minutes to write.
MOST_WAITING_QUESTIONS: Final = 1_000_000
#: The least time between two writings of the file of answers, in seconds.
SAVE_INTERVAL: Final = 3.0
#: The number of questions in a row without an answer after which no further question is asked.
MOST_FAILURES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class System(Generic[Q]):
    """A system under attack: `answers` takes at most `at_once` questions and returns one unchecked answer for each."""

    name: str
    answers: Callable[[Sequence[Q]], Sequence[object]]
    at_once: int


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
                raise TypeError(f"ask_all returned {type(given).__name__}: give a list with one answer a question")
            given = list(given)
            if len(given) != len(questions):
                raise ValueError(f"ask_all gave {len(given)} answers for {len(questions)} questions")
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
class Limits:
    """The limits of an attack: `budget` questions in all, `rate` questions a second, a `deadline`; None: no limit.

    No call begins after the deadline. `retries`: the number of repeats of a call that raised, after 1, 2, 4, … seconds.
    Raises `InvalidParameter` for a budget below 1, a rate that is not positive, negative retries.
    """

    budget: int | None = None
    rate: float | None = None
    deadline: Deadline | None = None
    retries: int = 3
    clock: Any = time  # a test's own clock has `monotonic` and `sleep`, too

    def __post_init__(self) -> None:
        if self.budget is not None:
            whole("--budget", self.budget, 1)
        whole("--retries", self.retries, 0)
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise InvalidParameter(f"--rate {self.rate:g} must be a positive number of questions a second")


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
    - `ask` raises `AttackStopped` at the first question without an answer.

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
        The limits on all questions of this run; answers in the transcript are used even beyond the budget.
    transcript
        The transcript that gets all questions and answers; None: they are not kept.
    save
        A function that writes the transcript, called every few seconds, and by the caller at the end; None: no file.
    """

    def __init__(
        self,
        form: Form[Q],
        system: System[Q] | None,
        *,
        limits: Limits | None = None,
        transcript: Transcript | None = None,
        save: Callable[[], None] | None = None,
    ) -> None:
        self.form, self.system, self.limits, self.transcript = form, system, limits or Limits(), transcript
        self.progress: Callable[[int], None] | None = None
        self.asked = self.missing = 0
        self.stopped: str | None = None
        self._next_call = -np.inf  # the earliest time of the next call by the rate, in seconds
        self._save, self._next_save = save, self.limits.clock.monotonic() + SAVE_INTERVAL
        self._answered = False  # whether any question has an answer
        self._failures: list[OracleFailed] = []  # the failures of the questions since the last answer
        if transcript is not None:
            transcript.begin()
            self._answered = any(row.answer is not None for row in transcript.rows)

    def ask(self, questions: Iterable[Q]) -> Floats:
        """The answers to questions that may all be asked at once, shape (questions,); ⊤ is 1 and ⊥ is 0.

        Raises `AttackStopped` where the budget or the time is used up, or a question gets no answer; `OracleFailed`
        where the system raises, or gives no valid answer, and has answered no question before; and `Waiting` where
        there is no system, and the transcript lacks all answers or some of the questions.
        """
        answers, stopped = self._collect(iter(questions), strict=True)
        if stopped is not None:
            self.stopped = str(stopped)
            raise stopped
        return answers

    def ask_some(self, questions: Iterable[Q]) -> Floats:
        """The answers, shape (questions,), NaN for each unanswered question; see `stopped` and `missing`.

        Raises `OracleFailed` where the first ten questions, or all if there are fewer, get no valid answer, and
        `Waiting` where `ask` does.
        """
        answers, stopped = self._collect(iter(questions), strict=False)
        if stopped is not None:
            self.stopped = str(stopped)
        elif not self._answered and self._failures:
            raise self._failures[0]
        return answers

    def _collect(self, questions: Iterator[Q], *, strict: bool) -> tuple[Floats, AttackStopped | None]:
        """The answers, NaN where missing, and the error that ended the asking; `strict`: no answers after the error."""
        if self.system is None:
            return self._collect_from_file(questions, strict=strict)
        answers = array("d")  # rows of millions of questions would take much memory
        stopped = None if self.stopped is None else AttackStopped(self.stopped)
        size, rate = self.system.at_once, self.limits.rate
        if rate is not None:  # a call asks at most the questions of one second
            size = max(1, min(size, int(rate)))
        while batch := list(islice(questions, size)):
            rows = [self._row(question) for question in batch]
            open_ = [(question, row) for question, row in zip(batch, rows, strict=True) if row.answer is None]
            try:
                if stopped is None:
                    self._ask_batch(open_, self.system, strict)
            except AttackStopped as error:
                stopped = error
            answers.extend(row.value for row in rows)
            if stopped is not None and strict:
                break
        return np.array(answers, np.float64), stopped

    def _row(self, question: Q) -> TranscriptRow:
        """The question's row in the transcript, or a row that no transcript keeps."""
        row = TranscriptRow(None) if self.transcript is None else self.transcript.row(self.form.written(question))
        self.asked += row.answer is not None
        return row

    def _collect_from_file(self, questions: Iterator[Q], *, strict: bool) -> tuple[Floats, AttackStopped | None]:
        """The transcript's answers, and the error. Raises `Waiting` as `ask` does."""
        first = list(islice(questions, MOST_WAITING_QUESTIONS + 1))
        if len(first) > MOST_WAITING_QUESTIONS:
            raise InvalidParameter(
                f"the attack asks more than {MOST_WAITING_QUESTIONS:,} questions at once, too many for a file: give a "
                "system by --oracle"
            )
        known = 0 if self.transcript is None else len(self.transcript.rows)
        rows = [self._row(question) for question in first]
        unanswered = [row for row in rows if row.answer is None]
        asked, stopped = self._within_budget(unanswered)
        asked = [] if strict and stopped is not None else asked  # a part of the answers would not do
        for row in asked:
            row.asked = True
        new = self.transcript is not None and any(row.asked for row in self.transcript.rows[known:])
        if asked and (new or len(asked) == len(rows)):
            raise Waiting(len(asked))
        if asked:
            number, one = f"{len(asked):,} of {len(rows):,} questions", _shorten(asked[0].question)
            stopped = AttackStopped(f"{number} have no answer in the file, question {one} among them")
        self.asked += len(asked)
        self.missing += len(asked)
        return np.array([row.value for row in rows], np.float64), stopped

    def _within_budget(self, questions: list[R]) -> tuple[list[R], AttackStopped | None]:
        """The first questions, as many as the budget allows, and the error if it does not allow all."""
        budget = self.limits.budget
        if budget is None or len(questions) <= budget - self.asked:
            return questions, None
        error = AttackStopped(f"--budget {budget} is used up, and the attack asks more questions: allow more")
        return questions[: max(budget - self.asked, 0)], error

    def _ask_batch(self, batch: list[tuple[Q, TranscriptRow]], system: System[Q], strict: bool) -> None:
        """Ask the system the questions that the budget allows, and put the answers into their rows.

        Raises the errors of `ask`; but unless `strict`, unanswered questions raise only if there are ten in a row.
        """
        asked, stopped = self._within_budget(batch)
        if asked:
            failed = self._take_answers(asked, self._call([question for question, _ in asked], system), system)
            self._save_at_intervals()
            if self.progress is not None:
                self.progress(self.asked)
            if failed and (strict or len(self._failures) >= MOST_FAILURES):
                first, others = (failed[0], 0) if strict else (self._failures[0], len(self._failures) - 1)
                if not self._answered:
                    raise first
                more = f"; the {others} questions after it got no answer either" if others else ""
                raise AttackStopped(f"{first}{more}") from first
        if stopped is not None:
            raise stopped

    def _call(self, batch: list[Q], system: System[Q]) -> Sequence[object] | OracleFailed:
        """The system's answers to a batch of questions, or its failure after all retries.

        A failed call is repeated only where the question before it was answered: retries do not help a system that has
        never answered, or that has stopped answering, as after a quota.
        """
        tries = 1 + self.limits.retries * (self._answered and not self._failures)
        for tried in range(1, tries + 1):
            self._wait(len(batch))
            try:
                return system.answers(batch)
            except Exception as error:  # the user's code: it may raise anything
                often = f" (tried {tried} times)" if tried > 1 else ""
                failed = OracleFailed(
                    f"oracle {system.name} raised {class_and_text(error)} at question {self._next_question(batch[0])}"
                    f"{often}"
                )
                failed.__cause__ = error
            if tried == tries or not self._pause(2.0 ** (tried - 1)):
                break
        return failed

    def _take_answers(
        self, asked: list[tuple[Q, TranscriptRow]], given: Sequence[object] | OracleFailed, system: System[Q]
    ) -> list[OracleFailed]:
        """Put the answers of a call into their rows; return the failures of the questions without a valid answer."""
        failed = list[OracleFailed]()
        for place, (question, row) in enumerate(asked):
            row.asked = True
            if isinstance(given, OracleFailed):
                failed.append(given)
            elif (answer := self.form.read(given[place])) is None:
                number = self._next_question(question)
                reason = f"gave {brief(given[place])} for question {number}: give {self.form.answer}"
                failed.append(OracleFailed(f"oracle {system.name} {reason}"))
            else:
                row.answer, self._answered = answer, True
                self._failures.clear()
            if row.answer is None:
                self._failures.append(failed[-1])
            self.asked += 1
            self.missing += row.answer is None
        return failed

    def _save_at_intervals(self) -> None:
        """Write the answers every few seconds, in case the process is killed; a long file less often."""
        now = self.limits.clock.monotonic
        if self._save is not None and (started := now()) >= self._next_save:
            self._save()
            self._next_save = now() + max(SAVE_INTERVAL, 20 * (now() - started))

    def _next_question(self, question: Q) -> str:
        """The next question as text for a message: its number, from 1, and its content."""
        return f"{self.asked + 1}, {_shorten(self.form.written(question))}"

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
        now, rate = self.limits.clock.monotonic(), self.limits.rate
        pause = max(self._next_call - now, 0.0)
        if not self._pause(pause):
            raise AttackStopped(
                f"--max-time is over after {self.asked} questions, and the attack asks more: allow more time"
            )
        if rate is not None:
            self._next_call = now + pause + number / rate


def _shorten(question: object) -> str:
    """A question as JSON on one line, without its middle if it is long."""
    text = json.dumps(question, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:80]} … {text[-30:]}"
