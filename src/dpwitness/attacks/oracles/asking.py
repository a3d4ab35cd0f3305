"""Asking a system within what is allowed: its answers checked, questions counted, budget, rate and time kept."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.oracles.form import Form
from dpwitness.attacks.oracles.systems import System, WrongNumber
from dpwitness.attacks.oracles.transcript import Transcript, shown_question
from dpwitness.clock import Deadline
from dpwitness.errors import AttackStopped, InvalidParameter, OracleFailed

__all__ = ["Asking", "Clock", "Limits", "Waiting"]

Q = TypeVar("Q")

#: Questions that wait in a file at most.
MOST_WAITING: Final = 10_000_000
#: Seconds between two writings of the answers so far, at least.
SAVE_EVERY: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Seconds that pass, and waiting for them; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an attack may ask: `budget` questions in all, `rate` of them a second, until `deadline`; None: no limit.

    Raises `InvalidParameter` for a budget below 1 or a rate that is not positive.
    """

    budget: int | None = None
    rate: float | None = None
    deadline: Deadline | None = None
    clock: Clock = Clock()

    def __post_init__(self) -> None:
        if self.budget is not None and not self.budget >= 1:
            raise InvalidParameter(f"--budget {self.budget} must be at least 1 question")
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise InvalidParameter(f"--rate {self.rate:g} must be a positive number of questions a second")


class Waiting(Exception):  # no error: the attack goes on in another run, once its questions are answered
    """No system answers these questions here, `count` of them: they are in the transcript."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class Asking(Generic[Q]):
    """The only way from an attack on a user's system to its answers.

    Answers come from the transcript as far as it goes, then from the system. An attack that is deterministic given its
    seed and the answers asks the same questions again, so an interrupted one, or one whose questions a file carries,
    goes on where it was. `progress`, if set, is called with the number of questions asked.

    Parameters
    ----------
    form
        Of the family's questions and answers.
    system
        None: only the transcript answers, and `Waiting` is raised at the first batch that it does not.
    limits
        On all questions, those of the transcript included.
    transcript
        Gets all questions and answers; None: they are not kept.
    save
        Writes the transcript; called every few seconds, and by the caller at the end. None: it is not written.
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
        if system is None and transcript is None:
            raise InvalidParameter("an attack needs a system, or a transcript that its questions are written to")
        self.form, self.system, self.limits, self.transcript = form, system, limits or Limits(), transcript
        self.progress: Callable[[int], None] | None = None
        self.asked = 0
        self._next = -np.inf
        self._save, self._saved, self._between = save, self.limits.clock.now(), SAVE_EVERY

    @property
    def left(self) -> float:
        """How many questions the budget still has; inf without one."""
        return np.inf if self.limits.budget is None else self.limits.budget - self.asked

    def one(self, question: Q) -> float:
        """The answer to one question, as `ask` gives it."""
        return float(self.ask([question])[0])

    def ask(self, questions: Iterable[Q]) -> NDArray[np.float64]:
        """The answers to questions that may all be asked at once, shape (questions,); ⊤ is 1 and ⊥ is 0.

        Questions may be made as they are taken, from an iterator. Of a sequence that the budget has not enough for,
        none is asked.

        Raises
        ------
        AttackStopped
            Where the budget or the time is used up; its `answers` are those that there were before.
        OracleFailed
            Where the system raises, or gives what is no answer.
        Waiting
            Where there is no system and the transcript answers none of these questions.
        InvalidData
            Where the transcript has other questions, or answers only some of a batch.
        """
        if isinstance(questions, Sized):
            self._allow(len(questions))
        answers: list[float] = []
        try:
            self._collect(iter(questions), answers)
        except AttackStopped as stopped:
            stopped.answers = tuple(answers)
            raise
        return np.array(answers, np.float64)

    def _collect(self, questions: Iterator[Q], answers: list[float]) -> None:
        if self.transcript is not None:
            answers.extend(self._known(questions, self.transcript))
        if self.system is None:
            assert self.transcript is not None
            if left := list(islice(self._allowed(questions), MOST_WAITING + 1)):
                if len(left) > MOST_WAITING:
                    raise InvalidParameter(
                        f"the attack asks more than {MOST_WAITING:,} questions at once, too many for a file: give "
                        "--budget, or a system by --oracle"
                    )
                raise Waiting(self.transcript.wait(map(self.form.written, left), answered=len(answers)))
            return
        size = self._at_once(self.system)
        while batch := list(islice(questions, int(max(min(size, self.left), 1)))):
            self._allow(1)
            answers += self._answered(batch, self.system)

    def _allow(self, number: int) -> None:
        if number > self.left:
            raise AttackStopped(
                f"--budget {self.limits.budget} is used up: {self.asked} questions were asked, and the next step asks "
                f"{number} more; allow at least {self.asked + number}"
            )

    def _allowed(self, questions: Iterator[Q]) -> Iterator[Q]:
        """Questions as far as the budget goes, to be asked before the next batch is taken."""
        for number, question in enumerate(questions, 1):
            self._allow(number)
            yield question

    def _known(self, questions: Iterator[Q], transcript: Transcript) -> Iterator[float]:
        """The answers of the transcript, as far as it goes; the questions must be the same."""
        while self.asked < transcript.answered:
            if (question := next(questions, None)) is None:
                return
            self._allow(1)
            yield transcript.answer(self.asked, self.form.written(question))
            self.asked += 1

    def _at_once(self, system: System[Q]) -> int:
        rate = self.limits.rate
        return system.at_once if rate is None else max(1, min(system.at_once, int(rate)))

    def _answered(self, batch: list[Q], system: System[Q]) -> list[float]:
        """Ask the system: wait as the rate demands, check, keep."""
        self._wait(len(batch))
        kept = "" if self._save is None else "; the answers so far are kept"
        try:
            given = system.answers(batch)
        except WrongNumber as error:
            raise OracleFailed(
                f"oracle {system.name} gave {error} for {len(batch)} questions, from question {self.asked + 1} on: "
                f"give one answer a question{kept}"
            ) from error
        except Exception as error:  # the user's code: it may raise anything
            raise OracleFailed(
                f"oracle {system.name} raised {type(error).__name__}: {error} at question {self._told(batch)}{kept}"
            ) from error
        answers = [self.form.read(one) for one in given]
        for place, answer in enumerate(answers):
            if answer is None:
                raise OracleFailed(
                    f"oracle {system.name} gave {_short(given[place])} for question {self._told(batch[place:])}: give "
                    f"{self.form.answer}{kept}"
                )
            if self.transcript is not None:
                self.transcript.add(self.form.written(batch[place]), answer)
            self.asked += 1
        self._keep()
        if self.progress is not None:
            self.progress(self.asked)
        return [answer for answer in answers if answer is not None]

    def _keep(self) -> None:
        """Write the answers where the last time is long ago, against a kill; a long file less often."""
        now = self.limits.clock.now
        if self._save is not None and now() - self._saved >= self._between:
            started = now()
            self._save()
            self._saved = now()
            self._between = max(SAVE_EVERY, 20 * (self._saved - started))

    def _told(self, batch: Sequence[Q]) -> str:
        """The next question for a message: its number, from 1, and its text."""
        return f"{self.asked + 1}, {shown_question(self.form.written(batch[0]))}"

    def _wait(self, number: int) -> None:
        """Wait until `number` more questions may be asked. Raises `AttackStopped` where the time is over before."""
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


def _short(value: object) -> str:
    """What came instead of an answer, for a message."""
    try:
        text = repr(value)
    except Exception as error:  # an object of the user's, whose own conversion may fail
        text = f"{type(value).__name__} whose text cannot be had ({type(error).__name__})"
    return text if len(text) <= 80 else f"{text[:60]} … ({type(value).__name__})"
