"""Pairs, sizes and sharing draws compete by the evidence of a second, by times that are measured coarsely."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpwitness as dpw
from dpwitness.candidate import Candidate, Estimate
from dpwitness.claims import PureDP
from dpwitness.errors import InvalidOutcome
from dpwitness.events import Interval, Outside
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Runner
from dpwitness.search.comparison import Entry, ranked_entries
from dpwitness.search.costs import MOST, Costs, entries, runs_saved, with_sides_that_pay
from dpwitness.search.learners import RatedEvent
from dpwitness.search.objectives import BoundAt, GrowthAt
from dpwitness.search.pairs import cheaper, refined
from running import problem, runner

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


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (np.zeros((3, 4)), 12),
        (2.5, 1),
        ("four", 4),
        ([], 1),
        ([1, 2, 3], 3),
        ([{"a": 1, "b": 2}] * 5, 10),
        ({"a": [1, 2], "b": np.zeros(3)}, 5),
        ((np.zeros((4, 2)), np.zeros(4)), 12),
    ],
)
def test_how_many_entries_an_input_has(data, size):
    assert entries(data) == size


def test_inputs_of_one_size_are_never_timed(monkeypatch, counting):
    asked = timed_as(monkeypatch, counting, lambda n: 1 / 0)
    costs = Costs(runner(counting))
    assert [costs.of(of_records(n)) for n in (10, 10, 9, 11)] == [1.0] * 4
    assert not asked


def test_costs_are_powers_of_two_of_the_first_pairs(monkeypatch, counting):
    seconds = {10: 4e-6, 1: 1.9e-6, 100: 7.9e-6, 1000: 70e-6}
    asked = timed_as(monkeypatch, counting, seconds.get)
    costs = Costs(runner(counting))
    # Less than twice as much is the same price; 17.5 times is sixteen times.
    assert [costs.of(of_records(n)) for n in (10, 1, 100, 1000, 900)] == [1.0, 0.5, 1.0, 16.0, 16.0]
    assert asked == [10, 1, 100, 1000]


def test_where_timing_takes_too_long_other_pairs_cost_the_same(monkeypatch, counting):
    asked = timed_as(monkeypatch, counting, lambda n: 1e-6 * n)
    costs = Costs(replace(runner(counting), max_time=1e-9))
    assert [costs.of(of_records(n)) for n in (10, 1000, 100_000)] == [1.0, 1.0, 1.0]
    assert asked == [10]


def test_a_pair_that_is_refused_costs_as_the_first_one_and_one_that_hangs_most(monkeypatch, counting):
    def seconds(n):
        if n == 1000:
            raise InvalidOutcome("no such inputs")
        return 1e-6

    timed_as(monkeypatch, counting, seconds)
    costs = Costs(runner(counting))
    assert (costs.of(of_records(10)), costs.of(of_records(1000))) == (1.0, 1.0)
    assert Costs(runner(counting), _seconds=1e-6)._class_of(math.inf) == MOST


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
    (found, *_), _ = ranked_entries(
        runner(counting), [entry(10, cut=1.0), entry(1000, cut=0.0)], GrowthAt(claim=CLAIM), 6_000, costs=costs
    )
    assert len(found.pair.data) == winner


def test_the_best_pair_is_made_smaller_where_that_makes_runs_cheaper(monkeypatch, counting):
    timed_as(monkeypatch, counting, lambda n: 1e-6 * n)
    running, given = runner(counting), problem(counting, RECORDS, claim=0.7)
    best = entry(1000, cut=0.0)
    found, spent = cheaper(given, running, best, GrowthAt(claim=CLAIM), Costs(running), 20_000)
    assert max(map(len, found.pair.sides)) < 10
    assert RECORDS.contains(found.pair)
    assert 0 < spent <= 10_000


def test_where_fewer_records_cost_the_same_none_are_tried(monkeypatch, counting):
    timed_as(monkeypatch, counting, lambda n: 1e-6)
    running, best = runner(counting), entry(1000, cut=0.0)
    found = cheaper(problem(counting, RECORDS), running, best, GrowthAt(claim=CLAIM), Costs(running), 6_000)
    assert found == (best, 0)


def test_what_only_many_records_show_stays(monkeypatch):
    def leak(rng, data):
        return (len(data) if len(data) > 500 else 0) + rng.laplace()

    mechanism = as_mechanism(leak, [0.5, 0.5], outcome=plain)
    timed_as(monkeypatch, mechanism, lambda n: 1e-6 * n)
    running, objective = runner(mechanism), GrowthAt(claim=CLAIM)
    (best, *_), _ = ranked_entries(running, [entry(1000, cut=0.0)] * 2, objective, 4_000)
    found, spent = cheaper(problem(mechanism, RECORDS, claim=0.7), running, best, objective, Costs(running), 6_000)
    assert len(found.pair.data) == 1000
    assert spent


def test_runs_saved_by_sharing_draws():
    """At the boundary, s = p/q, E[X²] is qs(s − 1) of nested events and qs(1 + s − 2qs) of independent ones."""
    q, s = 0.2, math.exp(0.7)
    nested = Estimate(p=s * q, q=q, both=q)
    assert runs_saved(nested, CLAIM) == pytest.approx((1 + s - 2 * q * s) / (s - 1))
    assert runs_saved(replace(nested, both=s * q * q), CLAIM) == pytest.approx(1.0)
    # Sides that exclude each other tell less than independent ones, beyond the claim and at it.
    assert runs_saved(replace(nested, both=0.0), CLAIM) < 0.9
    assert runs_saved(Estimate(p=0.6, q=0.2, both=0.0), CLAIM) < 0.9


@pytest.mark.parametrize("p", np.geomspace(1e-5, 0.4, 40).tolist())
def test_runs_saved_against_the_parameter_that_is_shown_are_no_rounding_error(p):
    """As a bound asks: there nothing grows, and the growths are some 10⁻³², of either kind of sides."""
    q, s = 0.95 * p, 1 / 0.95
    shown = CLAIM.at(float(CLAIM.reached(p, q)))
    nested = (1 + s - 2 * q * s) / (s - 1)
    assert runs_saved(Estimate(p=p, q=q, both=q), shown) == pytest.approx(nested, rel=1e-6)


@pytest.mark.parametrize(
    ("both", "price", "coupled"), [(0.2, 1.9, True), (0.2, 9.0, False), (0.08, 1.9, True), (0.08, 2.1, False)]
)
def test_sharing_draws_must_earn_its_price(monkeypatch, counting, both, price, coupled):
    monkeypatch.setattr(counting, "timed", lambda pair, coupled=False: ((price if coupled else 1.0) * 1e-6, 1))
    estimate = Estimate(p=0.4, q=0.2, both=both)
    candidate = Candidate(pair=of_records(10), event=Interval(coordinate=0, low=10.0), estimate=estimate)
    settled = with_sides_that_pay(runner(counting), candidate, CLAIM)
    assert settled.coupled is coupled
    assert settled.estimate == (estimate if coupled else replace(estimate, both=None))


def one_or_the_other(rng, data):
    """ε = ln 3: with shared draws the two sides never say "yes" at once."""
    low = rng.random() < 0.25
    return "yes" if low != bool(data[0]) else "no"


@pytest.mark.campaign
def test_independent_sides_are_confirmed_and_replayed_as_such():
    options = {"claim": 0.5, "neighbours": [([0], [1])], "outcome": plain, "workers": 1}
    verdict = dpw.check(one_or_the_other, **options, search_runs=300, runs=600, seed=3)
    assert isinstance(verdict, dpw.Violation)
    assert verdict.witness.estimate.both is None
    assert verdict.counts.n11 > 0  # with shared draws there are none
    again = dpw.replay(verdict.witness, one_or_the_other, **(options | {"claim": None}), runs=600, seed=4)
    assert again.counts.n11 > 0


def late(runner, work):
    """One shard of each work is made in time."""
    yield work(0)
    if work.count > 1:
        yield None


def settled_cut(mechanism, event, estimate, *, seed, planned, budget=10_000):
    """What becomes of a candidate on 10 records before so many confirm runs, and the search runs that it took."""
    candidate = Candidate(pair=of_records(10), event=event, estimate=estimate)
    objective = GrowthAt(claim=PureDP(1.0), planned=planned)
    return refined(runner(mechanism, seed), candidate, objective, planned=planned, budget=budget)


#: What luck showed of rare events, and what a few runs of a busy machine leave of them.
LUCKY = Estimate(p=0.06, q=0.016, both=0.001)


def test_a_rare_cut_is_left_though_the_time_was_too_short_for_all_runs(monkeypatch, counting):
    monkeypatch.setattr(Runner, "_made", late)
    # Of 140,000 runs of all cuts a 32nd part is made.
    found, spent = settled_cut(counting, Interval(coordinate=0, low=12.1), LUCKY, seed=1, planned=1_400_000)
    assert 0.25 < found.estimate.p < 0.8
    assert 0 < spent < 10_000


@pytest.mark.campaign
def test_of_many_cuts_none_is_taken_for_its_luck(counting):
    """Three standard errors are exceeded by some of the nested cuts in one check of a hundred, two in one of eight."""
    event, seeds = Interval(coordinate=0, low=12.1), range(40)
    cuts = [settled_cut(counting, event, LUCKY, seed=seed, planned=40_000, budget=1000)[0] for seed in seeds]
    assert sum(found.estimate.p < 0.25 for found in cuts) <= stats.binom.isf(1e-3, len(seeds), 0.01)


def test_a_few_runs_do_not_choose_among_cuts(counting):
    found, spent = settled_cut(counting, Interval(coordinate=0, low=12.1), LUCKY, seed=1, planned=630, budget=30)
    assert (found.event, spent) == (Interval(coordinate=0, low=12.1), 0)


@pytest.mark.campaign
@pytest.mark.parametrize(
    "event",
    [Interval(coordinate=0, low=11.0, high=11.2), Outside(interval=Interval(coordinate=0, low=6.0, high=12.5))],
)
def test_a_rare_event_of_two_ends_gives_way_to_a_cut(counting, event):
    found, _ = settled_cut(counting, event, LUCKY, seed=1, planned=300_000)
    assert 0.25 < found.estimate.p < 0.8


@pytest.mark.campaign
def test_an_event_of_two_ends_stays_where_no_cut_shows_what_it_does():
    def between(rng, data):
        noise = rng.random()
        return 0.5 + noise / 50 if len(data) == 10 and noise < 0.05 else noise

    event = Interval(coordinate=0, low=0.5, high=0.52)
    estimate = Estimate(p=0.06, q=0.02, both=0.01)
    found, spent = settled_cut(
        as_mechanism(between, [0.5, 0.5], outcome=plain), event, estimate, seed=1, planned=300_000
    )
    assert found.event == event
    assert spent > 30_000


def test_a_price_of_sharing_draws_that_was_measured_once_decides_nothing(monkeypatch, counting):
    """On a busy machine one of the two measurements may be several times too long."""
    busy = iter([5.0, 3.0, 1.0])  # of the runs that share their draws

    def timed(pair, *, coupled=False):
        return (next(busy) if coupled else 1.0), 1

    monkeypatch.setattr(counting, "timed", timed)
    event = Interval(coordinate=0, low=10.0)
    candidate = Candidate(pair=of_records(10), event=event, estimate=Estimate(p=0.4, q=0.2, both=0.2))
    assert with_sides_that_pay(runner(counting), candidate, CLAIM) is candidate


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2))
def test_a_check_ends_on_few_records_where_many_cost_more(monkeypatch, seed):
    def timed(self, pair, *, coupled=False):
        return 50e-6 * max(map(len, pair.sides)), 1  # so that time is short

    monkeypatch.setattr("dpwitness.mechanisms.mechanism.Mechanism.timed", timed)
    verdict = dpw.check(
        count, claim=1.0, neighbours=RECORDS, outcome=plain, search_runs=2000, runs=3000, seed=seed, workers=1
    )
    assert max(map(len, verdict.witness.pair.sides)) <= 10
