"""Which pair gets the next runs of a search or of a check in epochs, and at what price; when a check goes in epochs."""

import math

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.candidate import Estimate
from dpwitness.claims import PureDP
from dpwitness.events import Interval
from dpwitness.evidence.counts import NO_COUNTS
from dpwitness.evidence.portfolio import Epoch
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Role
from dpwitness.search import epochs as courses_module
from dpwitness.search.comparison import Entry, compare
from dpwitness.search.costs import Costs
from dpwitness.search.epochs import NOTHING, PairWealth, Portfolio, next_pair
from dpwitness.search.learners import RatedEvent
from dpwitness.search.objectives import GrowthAt
from running import runner

PAIR = Pair(np.array([0]), np.array([1]))


def course(runs, *, wealth=0.0, promise=0.0, seconds=0.002, epochs=2, cost=1.0):
    rows = np.zeros((runs, 1))
    coming = Portfolio(events=(), swapped=NOTHING.swapped, stakes=NOTHING.stakes, promise=promise)
    return PairWealth(
        pair=PAIR,
        index=0,
        epochs=([Epoch(stakes=NOTHING.stakes, counts=NO_COUNTS)] * epochs, []),
        x=rows,
        y=rows,
        log_wealth=np.full(2, wealth),
        coming=[coming, NOTHING],
        seconds_per_run=seconds if runs else math.inf,
        cost=cost,
    )


@pytest.mark.parametrize(
    ("next_one", "others"),
    [
        (course(0), [course(4), course(1)]),  # one that has no runs yet
        (course(40), [course(10, seconds=0.5)]),  # its 40 runs took 0.08 s, those of the other one 5 s
        (course(10, seconds=0.5, epochs=1), [course(40)]),  # one long epoch, in which code is compiled, charges nothing
        (course(10, seconds=0.09), [course(40)]),  # a busy machine must not change what a seed gives
        (course(10), [course(40)]),
        (course(40), [course(10, cost=8.0)]),  # runs on many records have a measured price
        (course(200, wealth=1.8, promise=3.0), [course(100)]),  # slow growth, where no pair grows faster
        (course(20), [course(60, wealth=0.2, promise=2.0)]),  # a luckier start does not keep the runs
    ],
)
def test_which_pair_gets_the_next_runs(next_one, others):
    assert next_pair([next_one, *others]) is next_pair([*others, next_one]) is next_one


@pytest.mark.campaign
def test_a_pair_whose_outcomes_fill_the_memory_ends_the_epochs(monkeypatch):
    def noise(rng, data):
        return [float(data[0] + value) for value in rng.laplace(size=2)]

    monkeypatch.setattr(courses_module, "PAIR_NUMBERS", 1 << 10)
    plain = {"outcome": lambda found: str(found) and found}  # keeps it plain Python
    effort = {"search_runs": 0, "runs": 2000, "seed": 1, "workers": 1}
    verdict = dpw.check(noise, claim=2.0, neighbours=[([0.0], [1.0])], **plain, **effort)
    # Both sides of 256 runs hold 2 · 2 · 256 numbers; the last epoch may add a tenth.
    assert 256 <= verdict.epoch_runs <= 282
    assert isinstance(verdict, dpw.NotRefuted)
    assert verdict.witness.counts.runs == 2000 - verdict.epoch_runs


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
