"""Which pair gets the next runs of a search or of a check in epochs, and at what price; when a check goes in epochs."""

import math
from dataclasses import replace

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.api.epochs import in_epochs
from dpwitness.candidate import Estimate
from dpwitness.claims import PureDP
from dpwitness.errors import InvalidOutcome
from dpwitness.events import Interval
from dpwitness.evidence.counts import NO_COUNTS
from dpwitness.evidence.portfolio import Epoch
from dpwitness.mechanisms.mechanism import Cost
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.problem import Effort
from dpwitness.runs import Role
from dpwitness.runs.executors import THREAD_VARIABLES, threads_of_each
from dpwitness.search import epochs as courses_module
from dpwitness.search.comparison import Entry, compare
from dpwitness.search.costs import UNFINISHED_RUN_COST, Costs
from dpwitness.search.epochs import EMPTY_PORTFOLIO, PairWealth, Portfolio, next_pair
from dpwitness.search.learners import Proposal, RatedEvent
from dpwitness.search.objectives import BoundAt, GrowthAt
from dpwitness.search.pairs import different
from running import runner

PAIR = Pair(np.array([0]), np.array([1]))


def course(runs, *, wealth=0.0, promise=0.0, seconds=0.002, epochs=2, cost=1.0):
    rows = np.zeros((runs, 1))
    coming = Portfolio(events=(), swapped=EMPTY_PORTFOLIO.swapped, stakes=EMPTY_PORTFOLIO.stakes, promise=promise)
    return PairWealth(
        pair=PAIR,
        index=0,
        epochs=([Epoch(stakes=EMPTY_PORTFOLIO.stakes, counts=NO_COUNTS)] * epochs, []),
        x=rows,
        y=rows,
        log_wealth=np.full(2, wealth),
        coming=[coming, EMPTY_PORTFOLIO],
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


def test_each_pair_is_tried_once_in_whichever_direction():
    zero, one, two = (np.array([value]) for value in (0, 1, 2))
    proposed = [Pair(zero, one), Pair(one, zero), Pair(zero, two), Pair(zero, one)]
    assert list(different(proposed)) == [proposed[0], proposed[2]]
    assert list(different(proposed, [PAIR])) == [proposed[2]]


def test_no_run_of_plain_python_is_thrown_away_that_takes_as_long_as_a_call_of_a_library():
    effort = Effort(seed=1)
    assert in_epochs(Cost(seconds_per_run=80e-6), effort)
    assert not in_epochs(Cost(seconds_per_run=10e-6), effort)
    assert not in_epochs(Cost(seconds_per_run=80e-6, compiled=True), effort)


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


def test_libraries_in_one_of_several_processes_start_as_many_threads_as_it_has_cores(monkeypatch):
    monkeypatch.setattr("dpwitness.runs.executors.default_workers", lambda: 8)
    for name in THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert threads_of_each(4) == dict.fromkeys(THREAD_VARIABLES, "2")
    monkeypatch.setenv(THREAD_VARIABLES[0], "5")
    assert threads_of_each(16) == dict.fromkeys(THREAD_VARIABLES[1:], "1")


def test_an_event_learned_before_stays_beside_the_new_ones_while_it_wins(monkeypatch):
    """What learners propose changes from renewal to renewal; a good event that they forget is not lost."""
    good, poor = Interval(coordinate=0, low=2.0), [Interval(coordinate=0, low=10.0 + k) for k in range(40)]
    asked = []

    def proposed(sample, objective, *, thorough):
        asked.append(len(asked))
        return [Proposal(event=event) for event in ([good, *poor[:20]] if len(asked) == 1 else poor[len(asked) :])]

    def noise(rng, data, size):
        return 3 * data[0] + rng.laplace(size=size)

    monkeypatch.setattr(courses_module, "propose", proposed)
    pair = Pair(np.array([1.0]), np.array([0.0]))
    where = runner(as_mechanism(noise, pair.data, neighbour=pair.neighbour))
    winning = PairWealth(pair=pair, index=0)
    while len(asked) < 4:
        winning.advance(where, dpw.PureDP(0.5), 8, lambda value: None)
    assert any(good in coming.events for coming in winning.coming)


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
        (lambda n: math.inf if n == 1000 else 1e-6, math.inf, (10, 1000), [1.0, UNFINISHED_RUN_COST], [10, 1000]),
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
