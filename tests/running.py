"""Runners for tests: one call instead of a problem and an effort."""

import math
import os

import numpy as np
import pytest

from dpwitness.claims import ApproxDP
from dpwitness.machine import Deadline
from dpwitness.mechanisms.resolve import Requirements, as_mechanism
from dpwitness.problem import Effort, Problem, Statement
from dpwitness.problem import prepare as prepared
from dpwitness.runs import Role, Runner, Threads
from dpwitness.search import pairs


def scaled(number):
    """The share of `number` that $DPWITNESS_SEEDS is of 200 seeds, at least 2."""
    return max(number * int(os.environ.get("DPWITNESS_SEEDS", "200")) // 200, 2)


def sampled(cases, number=6):
    """The cases of a campaign test; if $DPWITNESS_SEEDS is less than 200, at most `number` cases, evenly spread."""
    cases = list(cases)
    return cases if scaled(200) >= 200 else cases[:: -(-len(cases) // number)]


def keeps_level(rounds, level, *, times=3, fewest=1, false=1e-9):
    """Whether alarms come no more often than at a level, rather than so many times as often: Wald's test (1945).

    Each round is a list of independent alarms, one of each case. The test ends after `fewest` rounds or later. If the
    mean rate of the cases is at most `level`, it says no with probability at most `false`; if the mean rate is at least
    `times` as large, it says yes with probability at most .01: the likelihood ratio, or its inverse, has a mean of at
    most 1 in each round, however the cases of a round differ.
    """
    alarm, none = math.log(times), math.log((1 - times * level) / (1 - level))
    log_ratio = 0.0
    for number, alarms in enumerate(rounds, 1):
        assert len(alarms), "a round without alarms"
        assert {*alarms} <= {True, False}, alarms
        log_ratio += sum(alarm if one else none for one in alarms)
        if log_ratio >= -math.log(false):
            return False
        if number >= fewest and log_ratio <= math.log(0.01):
            return True
    raise AssertionError("the rounds are over before they tell")


#: The mark of tests that take a minute each, and that need all their seeds to show a law.
with_all_seeds = pytest.mark.skipif(scaled(200) < 200, reason="only with all seeds, that is without $DPWITNESS_SEEDS")


def soon(cases, number, most=6):
    """The cases of a test: the first `number` for every run; for the campaign the others, at most `most` in a part."""
    first, others = list(cases)[:number], sampled(list(cases)[number:], most)
    several = (case if isinstance(case, tuple) else (case,) for case in others)
    return [*first, *(pytest.param(*case, marks=pytest.mark.campaign) for case in several)]


def stream(seed=1):
    """A generator of the kind that runs get."""
    return np.random.Generator(np.random.SFC64(seed))


def same(output):
    """The output itself: as `outcome=` it keeps a function from being compiled."""
    return output


def interpreted(function, pair, shard=None, **settings):
    """The mechanism of a function that the interpreter runs, in shards of `shard` runs."""
    requirements = Requirements(interpreted=True)
    found = as_mechanism(function, pair.data, neighbour=pair.neighbour, requirements=requirements, **settings)
    found.shard = shard or found.shard
    return found


def runner(mechanism, seed=1, workers=1, deadline=None):
    deadline = Deadline(deadline) if isinstance(deadline, int | float) else deadline
    return Runner(mechanism=mechanism, seed=seed, workers=workers, deadline=deadline)


def sample(mechanism, pair, n, *, seed, key, coupled=True, partial_too=False, **where):
    running = runner(mechanism, seed, **where)
    return running.sample(pair, n, Role.SEARCH, *key, coupled=coupled, partial_too=partial_too)


def confirm(mechanism, pair, events, *, seed, runs, coupled=True, **where):
    return runner(mechanism, seed, **where).confirm(pair, events, runs, coupled=coupled)


def last(iterator):
    *_, item = iterator
    return item


def ordered(tasks, workers, deadline=None):
    return Threads(workers).ordered(tasks, Deadline(deadline) if isinstance(deadline, int | float) else deadline)


def problem(mechanism, relation, *, data=None, claim=1.0, centre=0.0, scale=1.0):
    return Problem(
        mechanism=mechanism, function=mechanism, reference="tests:mechanism", claim=ApproxDP(claim), relation=relation,
        own_relation=False, data=data, centre=centre, scale=scale,
    )  # fmt: skip


def search(mechanism, relation, objective, *, seed, budget, centre=0.0, scale=1.0, **where):
    given = problem(mechanism, relation, centre=centre, scale=scale)
    return pairs.search(given, runner(mechanism, seed, **where), objective, budget)


def prepare(function, *, epsilon=None, seed=1, workers=1, max_time=60.0, **said):
    """A problem and its runner; the claim is ε = 1 unless the arguments state a claim."""
    if epsilon is None and said.get("claim") is None:
        said["claim"] = 1.0
    statement = Statement(mechanism=function, epsilon=epsilon, **said)
    return prepared(statement, Effort(seed=seed, workers=workers, max_time=max_time))
