"""Pairs compete by the evidence of a second, by times that are measured coarsely."""

import math
from dataclasses import replace

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.candidate import Estimate
from dpwitness.claims import PureDP
from dpwitness.errors import InvalidOutcome
from dpwitness.events import Interval
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Role
from dpwitness.search.comparison import Entry, compare
from dpwitness.search.costs import UNENDED_COST, Costs
from dpwitness.search.learners import RatedEvent
from dpwitness.search.objectives import BoundAt, GrowthAt
from running import runner

RECORDS = dpw.records(dpw.numbers(0, 1), form="list")
CLAIM = PureDP(0.7)


def plain(found):
    """An outcome as it is; a function that gives it keeps a mechanism plain Python."""
    return found


def count(rng, data):
    """Of scale 1: e¹ where 0.7 is claimed, whatever the number of records."""
    return len(data) + rng.laplace()


def of_records(n):
    return Pair([0.5] * n, [0.5] * (n - 1))


def timed_as(monkeypatch, mechanism, seconds):
    """Have a mechanism take so many seconds on inputs of so many records; returns the sizes it was timed on."""
    asked = []

    def timed(pair, *, coupled=False):
        asked.append(max(map(len, pair.sides)))
        return seconds(asked[-1]), 1

    monkeypatch.setattr(mechanism, "timed", timed)
    return asked


@pytest.fixture
def counting():
    return as_mechanism(count, [0.5, 0.5], outcome=plain)


def refusing(n):
    if n == 1000:
        raise InvalidOutcome("no such inputs")
    return 1e-6


@pytest.mark.parametrize(
    ("seconds", "max_time", "sizes", "costs", "timed"),
    [
        (lambda n: 1 / 0, math.inf, (10, 10, 9, 11), [1.0] * 4, []),  # inputs of one size are never timed
        # Powers of two of the first pair's: less than twice as much is the same price; 17.5 times is sixteen times.
        ({10: 4e-6, 1: 1.9e-6, 100: 7.9e-6, 1000: 70e-6}.get, math.inf, (10, 1, 100, 1000, 900),
         [1.0, 0.5, 1.0, 16.0, 16.0], [10, 1, 100, 1000]),
        (lambda n: 1e-6 * n, 1e-9, (10, 1000, 100_000), [1.0, 1.0, 1.0], [10]),  # where timing takes too long
        (refusing, math.inf, (10, 1000), [1.0, 1.0], [10, 1000]),
        (lambda n: math.inf if n == 1000 else 1e-6, math.inf, (10, 1000), [1.0, UNENDED_COST], [10, 1000]),
    ],
)  # fmt: skip
def test_what_pairs_cost(monkeypatch, counting, seconds, max_time, sizes, costs, timed):
    asked = timed_as(monkeypatch, counting, seconds)
    given = runner(counting)
    found = Costs(given if max_time == math.inf else replace(given, max_time=max_time))
    assert [found.of(of_records(n)) for n in sizes] == costs
    assert asked == timed


def test_growth_counts_by_the_second_and_bounds_by_the_runs_that_fit():
    p, q = np.array([0.5]), np.array([0.1])
    growth = GrowthAt(claim=CLAIM, planned=1000)
    assert growth.priced(4.0, math.inf)(p, q, 10**6) == pytest.approx(growth(p, q, 10**6) / 4)
    bound = BoundAt(planned=10**6, log_threshold=math.log(1000))
    assert bound.priced(1.0, math.inf) == bound.priced(4.0, 4e6) == bound
    assert bound.priced(4.0, 1e6) == replace(bound, planned=250_000)
    # Where nothing is shown the detectable excess counts: it is larger for runs that cost more.
    fair = np.array([0.5 * math.exp(-0.7)])
    assert growth.priced(4.0, 1000)(p, fair, 10**6) < growth.priced(1.0, 1000)(p, fair, 10**6) < 0


def entry(n, *, cut):
    """That many records, and fewer by one; D is the larger one."""
    event = Interval(coordinate=0, low=n + cut)
    return Entry(of_records(n), RatedEvent(event=event, swapped=False, estimate=Estimate(p=0, q=0), value=0.0))


@pytest.mark.campaign
@pytest.mark.parametrize(("seconds", "winner"), [(lambda n: 1e-6 * n, 10), (lambda n: 1e-6, 1000)])
def test_a_pair_of_many_records_must_earn_its_price(monkeypatch, counting, seconds, winner):
    timed_as(monkeypatch, counting, seconds)
    costs = Costs(runner(counting))
    # The one of 1,000 shows more a run: half of its runs are in the event, of the other's 0.18.
    both = [entry(10, cut=1.0), entry(1000, cut=0.0)]
    (found, *_), _ = compare(runner(counting), both, GrowthAt(claim=CLAIM), 6_000, Role.COMPARISON, costs)
    assert len(found.pair.data) == winner
