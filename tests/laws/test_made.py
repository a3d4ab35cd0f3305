"""Objects that are used up: they are named, and `make=` makes a new one for each run."""

import random
from functools import partial

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.problem import Effort, Statement, prepare

PAIR = [([0.0], [1.0])]
FEW = {"runs": 2000, "search_runs": 2000, "seed": 1, "workers": 1}


class OnceOnly:
    """Noise for one release: as an object with a budget is."""

    epsilon = 1.0
    sensitivity = 1.0

    def __init__(self):
        self.left = 3

    def randomise(self, value):
        self.left -= 1
        if self.left < 0:
            raise ValueError("budget exceeded")
        return value + random.gauss(0, 3)


def used_up():
    noise = OnceOnly()
    return lambda data: noise.randomise(data[0])


def on_one_input(rng, data):
    if data[0] == 1.0:
        raise ValueError("no ones")
    return data[0] + rng.laplace()


def now_and_then(rng, data):
    if rng.random() < 0.5:
        raise ValueError("no luck")
    return data[0]


@pytest.mark.parametrize(
    ("mechanism", "told", "differ"),
    [
        (used_up(), "budget exceeded", False),
        (on_one_input, "no ones", True),
        (now_and_then, "no luck", False),
    ],
)
def test_an_exception_is_told_with_the_inputs_that_raise(mechanism, told, differ):
    """An object that is used up raises on both inputs, which is no difference between them."""
    with pytest.raises(dpw.MechanismRaised, match=told) as raised:
        dpw.check(partial(mechanism), claim=1.0, neighbours=PAIR, **FEW)
    assert ("a difference between neighbours" in str(raised.value)) is differ


def test_the_claim_and_the_relation_are_those_of_what_is_made():
    problem, _ = prepare(Statement(make=OnceOnly), Effort(seed=1, workers=1))
    assert problem.claim == dpw.PureDP(1.0)
    (pair,) = problem.relation.candidates()
    assert {float(pair.data), float(pair.neighbour)} == {0.0, 1.0}


@pytest.mark.campaign
def test_one_made_for_each_run_is_checked_replayed_and_made_small():
    def make():
        left = iter([1.0])

        def noisy(rng, data):
            return float(next(left) * data[0] * 9 + rng.laplace())

        return noisy

    verdict = dpw.check(make=make, claim=1.0, neighbours=PAIR, **FEW)
    assert isinstance(verdict, dpw.Violation)
    assert isinstance(dpw.replay(verdict.witness, make=make, seed=2), dpw.Violation)
    assert isinstance(dpw.shrink(verdict, make=make), dpw.Violation)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "make="),
        ({"mechanism": np.sum, "make": OnceOnly}, "not both"),
        ({"make": 7}, "make=7"),
        ({"make": lambda needed: needed}, "TypeError"),
        ({"make": lambda: np.sum}, "the same"),
    ],
)
def test_what_cannot_be_made_is_told(given, told):
    with pytest.raises(dpw.BadInput, match=told):
        Statement(**given)
