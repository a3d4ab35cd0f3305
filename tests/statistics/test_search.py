"""The search ends early only for an event that stood fresh runs, and luck does not choose what is tested."""

import math
from dataclasses import replace

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.claims import ApproxDP
from dpwitness.events import Interval
from dpwitness.evidence import Estimate
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import pairs, queries
from dpwitness.runs import Role, Runner
from dpwitness.search.comparison import ComparedEvent, compare
from dpwitness.search.cuts import cuts_around
from dpwitness.search.learners import RatedEvent, chosen
from dpwitness.search.objectives import BoundAt, GrowthAt, value_of
from dpwitness.search.samples import sample_of
from running import runner, search

BUDGET = 60_000


def searched(target, objective, epsilon=0.7, seed=1):
    relation = queries(10)
    data = next(iter(relation.candidates())).data
    mechanism = as_mechanism(load(target), data, epsilon=epsilon)
    return search(mechanism, relation, objective, centre=0.5, scale=1 / epsilon, seed=seed, budget=BUDGET)


def test_what_ends_the_search_was_counted_on_runs_of_its_own():
    (only,), spent = searched("isvt3", GrowthAt(claim=ApproxDP(0.7), stop_value=1e-4))
    fresh = BUDGET // 10
    assert only.certain is not None
    assert spent < BUDGET
    for share in (only.certain.estimate.p, only.certain.estimate.q, only.certain.estimate.both):
        assert share * fresh == pytest.approx(round(share * fresh), abs=1e-6)


@pytest.mark.campaign
def test_luck_does_not_end_the_search(monkeypatch):
    """An event that shows nothing, however good it seemed when it was chosen, is found out on fresh runs."""

    def lucky(rated, most):
        (found,) = chosen(rated, most)
        return [replace(found, value=1.0, lower_value=1.0)]

    monkeypatch.setattr("dpwitness.search.pairs.chosen", lucky)
    finalists, spent = searched("svt", GrowthAt(claim=ApproxDP(0.7), stop_value=1e-4))
    assert all(arm.certain is None for arm in finalists)
    assert spent >= BUDGET


@pytest.mark.parametrize(("scale", "clear"), [(0.5, True), (1.0, False)])
def test_a_clear_violation_of_one_pair_ends_the_search_after_a_small_part_of_it(scale, clear):
    def noisy(rng, data, size):  # not compiled, yet fast
        return sum(data) + rng.laplace(0, scale, size)

    relation = pairs(([1.0], [0.0]))
    mechanism = as_mechanism(noisy, relation.given[0].data)
    objective = GrowthAt(claim=ApproxDP(1.0), stop_value=1e-4)
    (only,), spent = search(mechanism, relation, objective, centre=0.5, scale=1, seed=1, budget=BUDGET)
    assert (only.certain is not None) == clear
    assert spent < BUDGET // 8 if clear else spent >= BUDGET


def counted(rng, data, size, *, broken):
    """A count with Lap(1); broken, with a fifth of that from 500 on: then ε = 5."""
    return data[0] + rng.laplace(0.0, 0.2 if broken and data[0] >= 500 else 1.0, size)


@pytest.mark.campaign
@pytest.mark.parametrize("broken", [True, False])
def test_a_leak_at_large_counts_alone_is_found(broken):
    settings = {"claim": 1.0, "neighbours": queries(1), "parameters": {"broken": broken}, "workers": 1}
    verdicts = [dpw.check(counted, seed=seed, search_runs=60_000, runs=60_000, **settings) for seed in range(2)]
    assert [verdict.refuted for verdict in verdicts] == [broken] * 2
    assert all(verdict.witness.pair.data[0] >= 499 for verdict in verdicts if broken)


#: Laplace noise of scale 10 on 1 and on 0: all events above 1 have the ratio e^0.1, and the frequent ones show it best.
SHIFTED = pairs(([1.0], [0.0])).given[0]
BOUND = BoundAt(planned=200_000, log_threshold=math.log(1000))
MANY = replace(BOUND, planned=20_000_000)


def above(rare):
    """The event that holds the share e^-rare / 2 of the runs of D."""
    return Interval(coordinate=0, low=1 + 10 * rare)


def laplace_runner(seed):
    return runner(as_mechanism(load("laplace_mechanism"), SHIFTED.data, epsilon=0.1), seed)


def ranked_by(entries, seed, budget, objective=BOUND):
    return compare(laplace_runner(seed), entries, objective, budget, Role.COMPARISON)


def entry(event, pair=SHIFTED, *, swapped=False):
    nothing = Estimate(p=0.0, q=0.0)
    return ComparedEvent(pair, RatedEvent(event=event, swapped=swapped, estimate=nothing, value=0.0))


def test_events_of_one_pair_are_counted_in_the_same_runs_in_either_direction():
    """Each of the three in all runs; below −10 on D′ against D is what above 1 + 10 is on D against D′, mirrored."""
    below = Interval(coordinate=0, high=-10.0)
    events = [entry(above(1.0)), entry(below, swapped=True), entry(above(1.5))]
    other_way = entry(below, SHIFTED.swapped())
    ranked, spent = ranked_by(events, 1, 2_000_000)
    assert spent == 1_000_000  # half of them tell the best
    found = {one.found.event: one.found.estimate for one in ranked}
    p, q = 0.5 * math.exp(-1.0), 0.5 * math.exp(-1.1)
    for event in (above(1.0), below):
        assert found[event].p == pytest.approx(p, abs=5 * math.sqrt(p / spent))
        assert found[event].q == pytest.approx(q, abs=5 * math.sqrt(q / spent))
    (alone, _), _ = ranked_by([other_way, entry(above(1.0))], 1, 400_000)  # another pair than the one that is swapped
    assert alone.found.estimate.p > alone.found.estimate.q


@pytest.mark.campaign
def test_a_playoff_is_not_won_by_luck():
    """An event of half of the runs against 20 that are rare, where all have the ratio e^0.1.

    So the frequent one promises the largest bound. But in the first round each rare one is seen about 6 times: with
    shared draws its log ratio has a standard error of √((e^0.1 − 1)/6) = 0.13, and some of the 20 seem to show 0.3.
    """
    entries = [entry(above(rare)) for rare in (0.0, *(math.log(3000) - 0.01 * np.arange(20)))]
    for seed in range(5):
        ranked, _ = ranked_by(entries, seed, 4_000_000, MANY)
        assert ranked[0].found.event == above(0.0)


def test_a_cut_is_valued_by_runs_that_did_not_choose_it(monkeypatch):
    halves, tallies = [], Runner.tallies

    def kept(self, *given, **how):
        halves.extend(tallies(self, *given, **how))
        return halves[-1:]

    monkeypatch.setattr(Runner, "tallies", kept)
    where = laplace_runner(1)
    cuts = cuts_around(above(0.0), sample_of(*where.sample(SHIFTED, 20_000, Role.SEARCH, 0)))
    (best,), _ = compare(where, [replace(entry(above(0.0)), cuts=cuts)], BOUND, 400_000, Role.COMPARISON)
    first, second = halves
    chosen_by_first, _ = cuts.best(first, BOUND)
    assert best.found.value == value_of(cuts.estimate(chosen_by_first, second), BOUND, second.runs, 1.0)
    assert best.found.event == cuts.best(first + second, BOUND)[0]
