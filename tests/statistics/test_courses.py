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
    runner = Runner(mechanism=as_mechanism(noise, pair.data, neighbour=pair.neighbour), seed=1, workers=1)
    winning = PairWealth(pair=pair, index=0)
    while len(asked) < 4:
        winning.advance(runner, dpw.PureDP(0.5), 8, lambda value: None)
    assert any(good in coming.events for coming in winning.coming)
