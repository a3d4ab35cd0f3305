"""The door for systems of the user's own: what is asked of them, counted, kept, and gone on with."""

import contextlib
import re
from decimal import Decimal
from fractions import Fraction
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwitness.errors import AttackStopped, InvalidParameter, OracleFailed
from dpwitness.machine import Deadline
from dpwitness.reconstruction.questions import Asking, Limits, system_of
from dpwitness.reconstruction.transcript import Form, Transcript, as_flag, as_number, as_whole

FORM = Form(family="toy", answer="a finite number", written=int, handed=int, read=as_number)


def asking(thing, **limits):
    return Asking(FORM, system_of(thing, FORM, seed=1), limits=Limits(**limits))


class Time:
    def __init__(self):
        self.seconds, self.pauses = 0.0, []

    def sleep(self, pause):
        self.seconds += pause
        self.pauses.append(pause)

    def clock(self):
        return SimpleNamespace(monotonic=lambda: self.seconds, sleep=self.sleep)


class Unreadable(float):
    def __float__(self):
        raise RuntimeError("no number today")


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no text today")


class Batches:
    def __init__(self):
        self.sizes = []

    def ask_all(self, questions):
        self.sizes.append(len(questions))
        return np.array(questions) * 2


@pytest.mark.parametrize(
    "thing",
    [
        lambda question: 2 * question,
        lambda: lambda question: 2 * question,
        lambda rng: lambda question: 2 * question + 0 * rng.integers(2),
        lambda seed, name="x.db": lambda question: 2 * question,
        lambda: Batches(),
        Batches,
        Batches(),
        (2.0).__mul__,
        lambda *question: 2 * question[0],
    ],
)
def test_a_callable_a_factory_or_an_object_for_batches(thing):
    assert asking(thing).ask(range(5)).tolist() == [0, 2, 4, 6, 8]


def test_a_factory_draws_by_the_seed():
    def factory(rng):
        return lambda question: rng.random()

    one, two, other = (Asking(FORM, system_of(factory, FORM, seed=seed)).ask([1, 2]).tolist() for seed in (1, 1, 2))
    assert one == two != other


@pytest.mark.parametrize(
    ("value", "number", "whole", "flag"),
    [
        (3, 3, 3, 1), (-2, -2, -2, 1), (2.5, 2.5, None, 1), (0.0, 0, 0, 0), (True, None, None, 1),
        (np.False_, None, None, 0), (np.int64(4), 4, 4, 1), (np.array([1.5]), 1.5, None, 1),
        (np.array([1, 2]), None, None, None),
        (Decimal("1.5"), 1.5, None, 1), (Fraction(1, 2), 0.5, None, 1), (None, None, None, None),
        (float("nan"), None, None, None), (float("inf"), None, None, None), (10**400, None, None, None),
        ("⊤", None, None, 1), (" False ", None, None, 0), ("12", None, None, None), ([1], None, None, None),
        (1j, None, None, None), (Decimal("sNaN"), None, None, None), (np.ma.masked, None, None, None),
        (2**53, 2.0**53, 2**53, 1), (10**30, 1e30, None, 1), (Unreadable(), None, None, None),
    ],
)  # fmt: skip
def test_what_is_an_answer(value, number, whole, flag):
    assert (as_number(value), as_whole(value), as_flag(value)) == (number, whole, flag)


def raising(error):
    def failing(question):
        raise error

    return failing


def unmade():
    raise OSError("no such database")


class Giving:
    """Answers all questions by the same thing."""

    def __init__(self, answers):
        self.answers = answers

    def ask_all(self, questions):
        return self.answers


@pytest.mark.parametrize(
    ("thing", "kind", "named"),
    [
        (7, InvalidParameter, "is int"),
        (lambda: 7, InvalidParameter, "returned int: it takes no question"),
        (unmade, OracleFailed, "could not be made: OSError: no such database"),
        (raising(OSError("503\n  try later")), OracleFailed, "raised OSError: 503 try later at question 1, 7$"),
        (raising(Silent()), OracleFailed, r"raised Silent: .* \(RuntimeError\) at question"),
        *((lambda question, value=value: value, OracleFailed, f"gave {re.escape(repr(value))} for question 1, 7: ")
          for value in (None, "12", float("nan"), [1, 2])),
        (Giving([1.0]), OracleFailed, "ask_all gave 1 answers for 2 questions at question 1, 7"),
        *((Giving(answers), OracleFailed, f"ask_all returned {type(answers).__name__}: give a list")
          for answers in (None, {1: 2.0, 2: 4.0}, {2.0, 4.0}, "24")),
    ],
)  # fmt: skip
def test_what_never_answers_is_named_with_what_it_gave(thing, kind, named):
    with pytest.raises(kind, match=named) as caught:
        asking(thing).ask([7, 8])
    assert "\n" not in str(caught.value)


def test_the_budget_stops_a_batch_in_its_midst():
    ask = asking(lambda question: question, budget=5)
    ask.ask(range(3))
    with pytest.raises(AttackStopped, match="--budget 5 is used up"):
        ask.ask([7, 8, 9])
    assert ask.asked == 5


def test_the_rate_is_kept():
    time = Time()
    ask = asking(lambda question: question, rate=4.0, clock=time.clock())
    ask.ask(range(9))
    assert time.seconds == 8 / 4  # the first is asked at once
    time.seconds += 10
    ask.ask([1])
    assert time.seconds == 12


def test_no_waiting_beyond_the_end_of_the_time():
    ask = asking(lambda question: question, rate=0.01, deadline=Deadline(monotonic() + 60))
    with pytest.raises(AttackStopped, match="--max-time is over after 1 questions"):
        ask.ask([1, 2])  # the second may be asked after 100 s


def test_no_call_begins_after_the_deadline():
    called = []
    ask = asking(called.append, deadline=Deadline(monotonic() - 1))
    assert np.isnan(ask.ask_some([1, 2])).all()
    assert (called, ask.asked) == ([], 0)
    assert "--max-time is over after 0 questions" in ask.stopped


class Failing:
    """Answers questions by themselves, but raises at each call whose number is listed, and from one of them on."""

    def __init__(self, *calls, end=np.inf):
        self.calls, self.end, self.called = calls, end, []

    def __call__(self, question):
        self.called.append(question)
        if len(self.called) in self.calls or len(self.called) >= self.end:
            raise ConnectionError("503")
        return question


@pytest.mark.parametrize(
    ("system", "number", "limits", "missing", "asked", "pauses", "stopped"),
    [
        # A failure is tried again after growing pauses, or once, or not beyond the end of the time.
        (Failing(4, 8, 9, 10), 20, {}, [], 20, [1, 1, 2, 4], None),
        (Failing(4, 5), 6, {"retries": 1}, [3], 6, [1], None),
        (Failing(4), 6, {"deadline": 0.9}, [3], 6, [], None),
        # A question that is refused is left out.
        (Failing(*range(4, 8)), 6, {}, [3], 6, [1, 2, 4], None),
        # A quota ends it after ten questions, and those after it are never asked.
        (Failing(end=801), 1218, {}, range(800, 1218), 810, [1, 2, 4],
         "ConnectionError: 503 at question 801, 800 (tried 4 times); the 9 questions after it"),
        (Failing(end=6), 200, {"retries": 0}, range(5, 200), 15, [], "503 at question 6, 5; the 9 questions after it"),
        (Failing(), 6, {"budget": 4}, [4, 5], 4, [], "--budget 4 is used up"),
    ],
)  # fmt: skip
def test_failures_leave_gaps_and_ten_in_a_row_end_the_asking(system, number, limits, missing, asked, pauses, stopped):
    time = Time()
    if "deadline" in limits:
        limits = {"deadline": Deadline(monotonic() + limits["deadline"])}
    ask = asking(system, clock=time.clock(), **limits)
    found = ask.ask_some(iter(range(number)))
    assert np.flatnonzero(np.isnan(found)).tolist() == list(missing)
    assert found[~np.isnan(found)].tolist() == [one for one in range(number) if one not in missing]
    assert (ask.asked, ask.missing) == (asked, asked - (number - len(missing)))
    assert time.pauses == pauses
    assert len(system.called) == asked + len(pauses)
    assert ask.stopped is None if stopped is None else stopped in ask.stopped
    if stopped is not None:  # what answers no more is not asked again
        assert np.isnan(ask.ask_some(range(number, number + 5))).all()
        assert len(system.called) == asked + len(pauses)


def test_a_batch_that_fails_is_tried_again_as_a_whole_and_ends_in_the_answers_before():
    class Quota:
        left, sizes = 5_000, ()

        def ask_all(self, questions):
            self.sizes += (len(questions),)
            if len(questions) > self.left:
                raise PermissionError("quota")
            self.left -= len(questions)
            return questions

    system, transcript, time = Quota(), Transcript("toy", 1, {}), Time()
    limits = Limits(clock=time.clock())
    ask = Asking(FORM, system_of(system, FORM, seed=1), limits=limits, transcript=transcript)
    found = ask.ask_some(range(9_000))
    assert found[:4_096].tolist() == list(range(4_096))
    assert np.isnan(found[4_096:]).all()
    answered = [row.question for row in transcript.rows if row.answer is not None]
    assert (system.sizes, time.pauses, answered) == (5 * (4_096,), [1, 2, 4], list(range(4_096)))
    assert "PermissionError: quota at question 4097, 4096 (tried 4 times); the 4095 questions after it" in ask.stopped


@given(
    st.lists(st.booleans(), max_size=30), st.integers(0, 2), st.one_of(st.none(), st.integers(1, 30)), st.integers(1, 7)
)
def test_an_answer_that_was_given_is_never_asked_again(failures, retries, budget, number):
    """A run ends by itself, by failures or by its budget; the next one asks the questions without an answer alone."""
    calls, answered = iter(failures), list[int]()

    def system(question):
        if next(calls, False):
            raise ConnectionError("503")
        answered.append(question)
        return question

    transcript = Transcript("toy", 1, {})
    for allowed in (budget, None):
        ask = Asking(
            FORM,
            system_of(system, FORM, seed=1),
            limits=Limits(budget=allowed, retries=retries, clock=Time().clock()),
            transcript=transcript,
        )
        with contextlib.suppress(OracleFailed):
            ask.ask_some(range(number))
    assert sorted(answered) == sorted(row.question for row in transcript.rows if row.answer is not None)
    assert len(answered) == len(set(answered))


def test_nothing_answered_is_a_failure_of_the_system():
    time, system = Time(), Failing(end=1)
    with pytest.raises(OracleFailed, match=r"503 at question 1, 0$"):
        asking(system, clock=time.clock()).ask_some(range(50))
    assert len(system.called) == 10
    assert time.pauses == []
    with pytest.raises(OracleFailed, match="gave None for question 1"):
        asking(lambda question: None).ask_some(range(3))
