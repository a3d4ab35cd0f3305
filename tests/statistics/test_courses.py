"""Which pair gets the next runs of a check in epochs, and when a check goes in epochs."""

import math

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.api.epochs import in_epochs
from dpwitness.events import Interval
from dpwitness.evidence.counts import NO_COUNTS
from dpwitness.evidence.portfolio import Epoch
from dpwitness.mechanisms.mechanism import Cost
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.problem import Effort
from dpwitness.runs import Runner
from dpwitness.runs.executors import THREAD_VARIABLES, threads_of_each
from dpwitness.search import epochs as courses_module
from dpwitness.search.epochs import NOTHING, PairWealth, Portfolio, next_pair
from dpwitness.search.learners import Proposal
from dpwitness.search.pairs import different


def course(
    index: int, runs: int, *, wealth: float = 0.0, promise: float = 0.0, seconds: float = 0.002, epochs: int = 2
) -> PairWealth:
    rows = np.zeros((runs, 1))
    coming = Portfolio(events=(), swapped=NOTHING.swapped, stakes=NOTHING.stakes, promise=promise)
    return PairWealth(
        pair=Pair(np.array([0]), np.array([1])),
        index=index,
        epochs=([Epoch(stakes=NOTHING.stakes, counts=NO_COUNTS)] * epochs, []),
        x=rows,
        y=rows,
        log_wealth=np.full(2, wealth),
        coming=[coming, NOTHING],
        seconds_per_run=seconds if runs else math.inf,
    )


def test_a_pair_that_has_no_runs_yet_comes_first():
    assert next_pair([course(0, 4), course(1, 0), course(2, 1)]).index == 1


def test_runs_that_take_long_are_charged_by_their_seconds():
    slow, quick = course(0, 10, seconds=0.5), course(1, 40)
    assert next_pair([slow, quick]) is quick  # its 40 runs took 0.08 s, those of the other one 5 s


def test_one_long_epoch_charges_nothing():
    compiling, other = course(0, 10, seconds=0.5, epochs=1), course(1, 40)
    assert next_pair([compiling, other]) is compiling


def test_short_runs_are_charged_as_runs_however_long_they_took():
    slow, quick = course(0, 10, seconds=0.09), course(1, 40)
    assert next_pair([slow, quick]) is slow  # a busy machine must not change what a seed gives


def test_runs_on_many_records_are_charged_by_their_measured_price():
    dear, quick = course(0, 10), course(1, 40)
    assert next_pair([dear, quick]) is dear
    dear.cost = 8.0
    assert next_pair([dear, quick]) is quick


def test_slow_growth_is_stayed_with_where_no_pair_grows_faster():
    growing, idle = course(0, 200, wealth=1.8, promise=3.0), course(1, 100)
    assert next_pair([growing, idle]) is growing


def test_a_luckier_start_does_not_keep_the_runs():
    lucky, idle = course(0, 60, wealth=0.2, promise=2.0), course(1, 20)
    assert next_pair([lucky, idle]) is idle


def test_each_pair_is_tried_once_in_whichever_direction():
    zero, one, two = (np.array([value]) for value in (0, 1, 2))
    proposed = [Pair(zero, one), Pair(one, zero), Pair(zero, two), Pair(zero, one)]
    assert list(different(proposed)) == [proposed[0], proposed[2]]
    assert list(different(proposed, [course(0, 1).pair])) == [proposed[2]]


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
    verdict = dpw.check(
        noise,
        claim=2.0,
        neighbours=[([0.0], [1.0])],
        outcome=lambda found: str(found) and found,  # keeps it plain Python
        search_runs=0,
        runs=2000,
        seed=1,
        workers=1,
    )
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
    runner = Runner(mechanism=as_mechanism(noise, pair.data, neighbour=pair.neighbour), seed=1, workers=1)
    course = PairWealth(pair=pair, index=0)
    while len(asked) < 4:
        course.advance(runner, dpw.PureDP(0.5), 8, lambda value: None)
    assert good in course._learned
    assert len(course._learned) == len(set(course._learned)) <= 40 + courses_module.KEPT_EVENTS
