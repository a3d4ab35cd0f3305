"""Health checks of mechanisms that are slow, or that draw from the global generators."""

import random
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.evidence import runs_needed
from dpwitness.health import before_search
from dpwitness.health.findings import useful_runs
from dpwitness.problem import Effort, Statement, prepare
from dpwitness.results.text import at_most

PAIR = [([0.0], [1.0])]
IGNORES = "both inputs gave the same values in every run"


class Slow:
    """A mechanism that numba does not see, and that takes its time."""

    def __init__(self, seconds, weight):
        self.seconds, self.weight = seconds, weight
        self.__name__ = "slow"

    def __call__(self, rng, data):
        time.sleep(self.seconds)
        return self.weight * data[0] + rng.laplace()


def job(mechanism, **effort):
    return prepare(Statement(mechanism=mechanism, claim=1.0, neighbours=PAIR), Effort(seed=1, workers=1, **effort))


def with_cost(mechanism, seconds, **effort):
    """A job whose mechanism is said to take so many seconds a run."""
    problem, runner = job(mechanism, **effort)
    problem.mechanism.cost = replace(problem.mechanism.cost, seconds_per_run=seconds)
    return problem, runner


def test_too_slow_for_alpha_is_told_before_the_runs():
    needed = runs_needed(dpw.PureDP(1.0), 1e-6)
    problem, runner = with_cost(Slow(0, 1), 2.0, max_time=60.0)
    found = before_search.time_needed(problem, runner, 1e-6)
    assert found.name == "too_slow"
    advised = at_most(1.3 * 4 * useful_runs(problem.claim, 1e-6))
    for said in (f"needs {needed} runs on each input", f"{4 * needed} s with 1 core;", f"max_time={advised} or"):
        assert said in found.text
    told = []
    before_search.report_time_needed(problem, replace(runner, progress=lambda *report: told.append(report)), 1e-6)
    assert told == [("search", 0, needed, found.text)]


def test_the_time_that_is_advised_is_never_zero():
    needed = runs_needed(dpw.PureDP(1.0), 1e-6)
    found = before_search.time_needed(*with_cost(Slow(0, 1), 1e-6, max_time=1e-9), 1e-6)
    advised = at_most(1.3 * 2e-6 * useful_runs(dpw.PureDP(1.0), 1e-6))
    assert f", {2e-6 * needed:.4g} s with 1 core; others take longer: give max_time={advised} or more" in found.text


def test_enough_time_is_enough():
    needed = runs_needed(dpw.PureDP(1.0), 1e-6)
    limit = 60.0 / (2 * needed)
    assert before_search.time_needed(*with_cost(Slow(0, 1), 1.01 * limit, max_time=60.0), 1e-6) is not None
    assert before_search.time_needed(*with_cost(Slow(0, 1), 0.99 * limit, max_time=60.0), 1e-6) is None
    assert before_search.time_needed(*with_cost(Slow(0, 1), 1.01 * limit, max_time=60.0), 0.5) is None


def test_a_check_without_the_time_says_so_before_and_after_its_runs():
    told = []
    effort = {"max_time": 0.4, "workers": 1, "seed": 1, "progress": lambda *report: told.append(report)}
    verdict = dpw.check(Slow(0.021, 1), claim=1.0, neighbours=PAIR, **effort)
    assert isinstance(verdict, dpw.NotRefuted)
    assert told[0][3].startswith("slow takes ")
    assert any("at least" in note and "are needed" in note for note in verdict.notes)


@pytest.mark.campaign
@pytest.mark.parametrize("weight", [0, 9])
def test_a_slow_mechanism_that_ignores_its_input_is_noted_after_its_runs(weight):
    verdict = dpw.check(Slow(0.021, weight), claim=1.0, neighbours=PAIR, alpha=0.1, runs=30, seed=1, workers=1)
    noted = [note for note in verdict.notes if IGNORES in note]
    assert bool(noted) == (weight == 0)


def drawing_from_numpy(data):
    return np.random.normal()  # noqa: NPY002 - the global generator is the subject


def drawing_from_random(data):
    return random.gauss(0, 1)


def drawing_and_looking(data):
    return data[0] + random.gauss(0, 1)


def drawing_from_the_system(data):
    return random.SystemRandom().gauss(0, 1)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (drawing_from_numpy, True),
        (drawing_from_random, True),
        (drawing_and_looking, False),
        (drawing_from_the_system, False),  # no seed repeats it: nothing can be said
    ],
)
def test_functions_of_the_global_generators_that_ignore_their_input(function, found):
    problem, runner = job(partial(function))
    assert not problem.mechanism.reproducible
    finding = before_search.input_ignored(problem, runner)
    assert (finding is not None) == found
    assert not problem.mechanism.draws_globally
