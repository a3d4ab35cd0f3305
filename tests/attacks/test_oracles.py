"""The door for systems of the user's own: what is asked of them, counted, kept, and gone on with."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpwitness.attacks.oracles.asking import Asking, Clock, Limits
from dpwitness.attacks.oracles.form import Form, as_flag, as_number, as_whole
from dpwitness.attacks.oracles.systems import system_of
from dpwitness.clock import Deadline
from dpwitness.errors import AttackStopped, InvalidParameter, OracleFailed

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
        return Clock(now=lambda: self.seconds, sleep=self.sleep)


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


@pytest.mark.parametrize(("thing", "message"), [(7, "is int"), (lambda: 7, "returned int: it takes no question")])
def test_what_is_no_system(thing, message):
    with pytest.raises(InvalidParameter, match=message):
        asking(thing)


def test_a_factory_that_raises():
    def factory():
        raise OSError("no such database")

    with pytest.raises(OracleFailed, match="factory could not be made: OSError: no such database"):
        asking(factory)


@pytest.mark.parametrize(
    ("value", "number", "whole", "flag"),
    [
        (3, 3, 3, 1), (2.5, 2.5, None, 1), (0.0, 0, 0, 0), (True, None, None, 1), (np.False_, None, None, 0),
        (np.int64(4), 4, 4, 1), (np.array([1.5]), 1.5, None, 1), (np.array([1, 2]), None, None, None),
        (Decimal("1.5"), 1.5, None, 1), (Fraction(1, 2), 0.5, None, 1), (None, None, None, None),
        (float("nan"), None, None, None), (float("inf"), None, None, None), (10**400, None, None, None),
        ("⊤", None, None, 1), (" False ", None, None, 0), ("12", None, None, None), ([1], None, None, None),
        (1j, None, None, None), (Decimal("sNaN"), None, None, None),
    ],
)  # fmt: skip
def test_what_is_an_answer(value, number, whole, flag):
    assert (as_number(value), as_whole(value), as_flag(value)) == (number, whole, flag)


@pytest.mark.parametrize("value", [None, "12", float("nan"), [1, 2], object()])
def test_a_wrong_answer_names_the_question_and_the_value(value):
    ask = asking(lambda question: value if question == 7 else 0.0)
    with pytest.raises(OracleFailed, match=r"gave .* for question 4, 7: give a finite number$") as caught:
        ask.ask([4, 5, 6, 7, 8])
    assert repr(value) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ask.asked == 3


@pytest.mark.parametrize(("answers", "what"), [([1.0], "1 answers"), (None, "NoneType from ask_all")])
def test_one_answer_a_question(answers, what):
    class Short:
        def ask_all(self, questions):
            return answers

    with pytest.raises(OracleFailed, match=f"gave {what}.* for 2 questions, from question 1 on: give one"):
        asking(Short()).ask([1, 2])


def test_an_exception_of_the_system():
    with pytest.raises(OracleFailed, match=r"raised ZeroDivisionError: .* at question 3, 0$"):
        asking(lambda question: 1 / question).ask([2, 1, 0])


def test_the_budget_stops_before_a_batch_that_does_not_fit():
    ask = asking(lambda question: question, budget=5)
    assert ask.left == 5
    ask.ask(range(3))
    with pytest.raises(AttackStopped, match=r"--budget 5 is used up: 3 questions .* 3 more; allow at least 6"):
        ask.ask(range(3))
    assert (ask.asked, ask.left) == (3, 2)
    with pytest.raises(AttackStopped) as stopped:
        ask.ask(iter([7, 8, 9]))  # its length is not known: it is asked as far as the budget goes
    assert ask.asked == 5
    assert stopped.value.answers == (7, 8)
    with pytest.raises(InvalidParameter, match="--budget 0"):
        Limits(budget=0)


def test_a_batch_is_no_larger_than_the_budget_leaves():
    system = Batches()
    with pytest.raises(AttackStopped) as stopped:
        asking(system, budget=5).ask(iter(range(7)))
    assert system.sizes == [5]
    assert stopped.value.answers == (0, 2, 4, 6, 8)
    assert asking(system, budget=5).ask(iter(range(5))).tolist() == [0, 2, 4, 6, 8]


def test_the_rate_is_kept():
    time = Time()
    ask = asking(lambda question: question, rate=4.0, clock=time.clock())
    ask.ask(range(9))
    assert time.seconds == 8 / 4  # the first is asked at once
    time.seconds += 10
    ask.ask([1])
    assert time.seconds == 12


def test_batches_are_as_large_as_a_second_allows():
    time, system = Time(), Batches()
    asking(system, rate=100.0, clock=time.clock()).ask(range(250))
    assert system.sizes == [100, 100, 50]
    assert time.seconds == 2.0
    with pytest.raises(InvalidParameter, match="--rate 0"):
        Limits(rate=0.0)


def test_no_waiting_beyond_the_end_of_the_time():
    import time as system_time

    ask = asking(lambda question: question, rate=0.01, deadline=Deadline(system_time.monotonic() + 60))
    with pytest.raises(AttackStopped, match="--max-time is over after 1 questions"):
        ask.ask([1, 2])  # the second may be asked after 100 s
