"""Runs: their streams, shards and counts, the deadline, and the threads that make them."""

import itertools
import math
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import dpwitness
from dpwitness.candidate import Candidate, Estimate, Tally
from dpwitness.errors import MechanismTimeout
from dpwitness.events import (
    FEATURES,
    Box,
    Cells,
    Feature,
    FeatureEvent,
    Interval,
    OutcomeSet,
    Outside,
    ScoreThreshold,
    is_partition,
)
from dpwitness.evidence.counts import Counts
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair, pairs
from dpwitness.runs import Role, Runner, generator
from dpwitness.runs.shards import BLOCK_NUMBERS, OutcomeRows, tally_of_rows
from dpwitness.runs.streams import order
from dpwitness.search.cuts import cuts_around
from dpwitness.search.samples import sample_of
from running import confirm, last, ordered, runner, sample
from truth import target_probability

PAIR = pairs(([0.0] * 10, [1.0] * 9 + [-1.0])).given[0]
EVENTS = [OutcomeSet([[0, 0, 1]]), Interval(coordinate=4, low=1.0)]


def svt(epsilon=0.7):
    return as_mechanism(load("svt"), PAIR.data, epsilon=epsilon)


def cells_of(event, x, y):
    """The counts of rows of D and D′."""
    here, there = event.contains(x), event.contains(y)
    cells = {"n10": here & ~there, "n11": here & there, "n01": ~here & there, "n00": ~here & ~there}
    return Counts(**{name: int(np.sum(rows)) for name, rows in cells.items()})


def events_of_every_kind(rng):
    def interval(coordinate):
        return Interval(coordinate=int(coordinate), low=float(rng.integers(0, 3)))

    def chosen(n):
        return tuple(map(int, rng.choice(5, n, replace=False)))

    for name, kind in FEATURES.items():
        number = {"": math.nan, "value": 1.0, "positive": 2.0, "power": 3.0, "place": 1.0}[kind.number]
        feature = Feature(name=name, columns=chosen(kind.entries or 1), number=number)
        yield FeatureEvent(feature=feature, within=interval(0))
    score = ScoreThreshold(
        coordinates=tuple(sorted(chosen(2))),
        edges=([0.5], [0.5, 1.5]),
        weights=([0, 1, -1], [0, 1, 2, 5]),
        threshold=1.0,
    )
    yield from (score, Cells(score=score, cuts=[1.0, 1.5]), interval(2), Outside(interval=interval(3)))
    yield from (Box(sides=(interval(0), interval(3))), OutcomeSet([[1, 1, 1]]), OutcomeSet([[], [2], [0, 1]]))


@pytest.mark.parametrize("role", list(Role))
def test_the_order_of_sides_does_not_follow_from_the_draws(role):
    drawn = np.asarray(generator(7, role, 3).bit_generator.random_raw(4), "<u8").view(np.uint8)
    assert order(7, role, 3, runs=256).tolist() != np.unpackbits(drawn).tolist()


def test_every_kind_of_event_needs_no_more_than_its_width_and_an_entry_behind_it():
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 3, (400, 6)).astype(float)
    rows[np.arange(6) >= rng.integers(0, 7, (400, 1))] = math.nan
    for _ in range(5):
        for event in events_of_every_kind(rng):
            narrow = np.ascontiguousarray(rows[:, : event.width + 1])
            assert np.array_equal(event.contains(rows), event.contains(narrow)), event
            if is_partition(event):
                assert np.array_equal(event.cell_of(rows), event.cell_of(narrow)), event


def test_no_role_is_another_or_another_with_a_number_behind_it():
    """Numbers of pairs, rounds and shards stay below 2²⁰: keys that begin alike must go on with a larger one."""
    values = {name: role.value for name, role in Role.__members__.items()}
    assert len(set(values.values())) == len(values)
    for one, other in itertools.permutations(values.values(), 2):
        assert other[: len(one)] != one or other[len(one)] >= 1 << 20


def test_no_confirm_run_repeats_a_search_run(monkeypatch):
    """Whatever confirm runs draw is new: of 10⁴ numbers of 53 bits two are equal with probability 10⁻⁸.

    Both sides of a coupled run draw the same.
    """
    drawn, stage = {"search": [], "confirm": [], "after": []}, ["search"]

    def mechanism(rng, data):
        drawn[stage[0]].append(rng.random())
        return data[0] + drawn[stage[0]][-1]

    original = Runner.confirm

    def staged(*given, **settings):
        stage[0] = "confirm"
        yield from original(*given, **settings)
        stage[0] = "after"

    monkeypatch.setattr(Runner, "confirm", staged)
    settings = {"neighbours": pairs(([0], [1])), "alpha": 1e-100, "search_runs": 500, "runs": 1_200, "seed": 5}
    verdict = dpwitness.check(mechanism, claim=1.0, outcome=float, **settings)
    assert set(Counter(drawn["confirm"][: 2 * verdict.counts.runs]).values()) == {2}
    assert len(drawn["confirm"]) >= 2 * verdict.counts.runs > 100
    assert len(drawn["search"]) >= 2 * 500
    assert not set(drawn["confirm"]) & {*drawn["search"], *drawn["after"]}


@pytest.fixture
def asked(monkeypatch):
    """The seeds, roles and keys of the streams that are asked for."""
    found = []

    def recorded(seed, *key):
        found.append((seed, *key))
        return generator(seed, *key)

    monkeypatch.setattr(dpwitness.runs.shards, "generator", recorded)
    return found


def flat(asked):
    return [(seed, *role.value, *key) for seed, role, *key in asked]


def test_each_role_and_shard_has_a_stream_of_its_own(asked):
    mechanism = svt()
    runs = 2 * mechanism.shard + 1
    sample(mechanism, PAIR, runs, seed=5, key=(0, 0))
    runner(mechanism, seed=5).tallies(PAIR, EVENTS[:1], runs, Role.COMPARISON, 1)
    last(confirm(mechanism, PAIR, EVENTS, seed=5, runs=runs))
    assert [key[1] for key in asked] == [Role.SEARCH] * 3 + [Role.COMPARISON] * 3 + [Role.CONFIRM] * 3
    states = {str(generator(*key).bit_generator.state) for key in asked}
    assert len(set(asked)) == len(states) == 9


def test_a_check_draws_no_stream_twice(asked):
    """Pairs, rounds, the runs that choose among finalists, those that estimate the winner, and evidence.

    But for what last bits show, another verdict with evidence of its own, which may share draws with the first.
    """
    few = {"seed": 5, "search_runs": 40_000, "runs": 100_000, "bits": False}
    verdict = dpwitness.check(load("laplace_mechanism"), epsilon=1.0, **few)
    assert verdict.counts.runs > 0
    assert {Role.SEARCH, Role.COMPARISON, Role.CONFIRM} <= {key[1] for key in asked}
    assert len(set(flat(asked))) == len(asked)


def test_a_check_in_epochs_draws_no_stream_twice(asked):
    """Runs that came again would be bet on by who has seen them.

    Epochs of several pairs, of one that is left out, of variations that come later, and confirm runs.
    """

    def noisy(rng, data):
        if data[0] >= 10:
            raise ValueError("too large")
        return data[0] + rng.laplace()

    few = {"neighbours": dpwitness.queries(1), "seed": 5, "search_runs": 0, "runs": 300, "bits": False, "workers": 1}
    verdict = dpwitness.check(noisy, claim=1.0, outcome=float, **few)
    evidence = [key for key in asked if key[1].evidence]
    drawn = Counter(role for _, role, *_ in evidence)
    assert drawn[Role.EPOCH] > 30
    assert drawn[Role.CONFIRM] > 0
    assert (verdict.epoch_runs, verdict.counts.runs) == (150, 150)
    assert len(set(flat(evidence))) == len(evidence)
    assert len({key[2] for key in evidence if key[1] is Role.EPOCH}) > 3  # pairs: one raised, and some are variations


class Widening(Mechanism):
    """Returns one number a run, and three from the run `late` on, whatever its width was thought to be."""

    threads = True
    outcomes, pair_rows = CompiledMechanism.outcomes, CompiledMechanism.pair_rows

    def __init__(self, width, shard, late):
        super().__init__(Signature.of(lambda data: 0, {}))
        self.width, self.shard, self.late = width, shard, late
        self.starts = []

    def fill_pair(self, runs, rng, rows):
        self.starts.append(runs.start)
        length = 1 if runs.start < self.late else 3
        drawn = rng.random((2, rows.shape[1], 3))
        drawn[:, :, length:] = math.nan
        rows[:] = drawn[:, :, : rows.shape[2]]
        return length


@pytest.mark.parametrize(("runs", "late"), [(1_000, 0), (BLOCK_NUMBERS + 2, 0), (2 * BLOCK_NUMBERS + 1, BLOCK_NUMBERS)])
def test_rows_that_are_too_narrow_are_made_again_from_the_same_draws(runs, late):
    """Of one block, of the first of two, and of the last of three."""
    narrow, wide = Widening(1, runs, late), Widening(3, runs, late)
    events = [Interval(coordinate=0, low=0.5), OutcomeSet([[1.0]])]
    (halves, none), other = (last(confirm(made, PAIR, events, seed=1, runs=runs)) for made in (narrow, wide))
    assert len(narrow.starts) == len({*narrow.starts}) + 1  # one block is made twice
    assert abs(halves.hits / halves.runs - 0.5) < 5 * 0.5 / math.sqrt(halves.runs)
    assert none == Counts(n00=runs)
    assert len(wide.starts) > 1 or other == (halves, none)


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_samples_and_tallies_hold_every_shard(shards):
    mechanism = as_mechanism(lambda rng, data: data[0] + rng.random(), np.array([0.0]))
    mechanism.shard = 5
    pair, n = pairs(([0.0], [1.0])).given[0], 5 * shards - 2
    both = np.stack(sample(mechanism, pair, n, seed=5, key=(4,)))
    assert both.shape == (2, n, 1)
    assert len(np.unique(both[0])) == n
    for k in range(shards):
        own = both[:, 5 * k : 5 * k + 5]
        runs = PairedRuns.d_first(pair, own.shape[1], coupled=True)
        assert np.array_equal(mechanism.pair_outcomes(runs, generator(5, Role.SEARCH, 4, k)), own)
    event = Interval(coordinate=0, low=0.5, high=1.5)
    (tally,), cells = runner(mechanism, seed=5).tallies(pair, [event], n, Role.SEARCH, 4), cells_of(event, *both)
    assert tally == Tally(n10=cells.n10, n11=cells.n11, n01=cells.n01, n00=cells.n00)


@pytest.mark.parametrize("coupled", [True, False])
def test_both_sides_have_the_right_distribution_and_agree_more_where_they_are_coupled(coupled):
    n = 400_000
    (counts, _) = last(confirm(svt(), PAIR, EVENTS, seed=7, runs=n, coupled=coupled))
    p, q = (target_probability("svt", [0, 0, 1], data, epsilon=0.7) for data in PAIR.sides)
    assert abs(counts.hits / n - p) < 5 * math.sqrt(p * (1 - p) / n)
    assert abs(counts.neighbour_hits / n - q) < 5 * math.sqrt(q * (1 - q) / n)
    if coupled:
        assert counts.n11 / n > 5 * p * q
    else:
        assert abs(counts.n11 / n - p * q) < 5 * math.sqrt(p * q / n)


def test_coupled_runs_are_independent_of_each_other():
    """What one run of D did says nothing about the next run of D′, though their draws follow each other."""
    pair = pairs(([0.0] * 4, [3.0] * 4)).given[0]
    mechanism = as_mechanism(load("svt"), pair.data, epsilon=1.0)
    left, right = sample(mechanism, pair, 200_000, seed=9, key=(0,))
    stops = [np.sum(~np.isnan(rows), axis=1) for rows in (left, right)]
    for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        table = np.histogram2d(stops[a][:-1], stops[b][1:], bins=[np.arange(1, 6)] * 2)[0]
        assert stats.chi2_contingency(table).pvalue > 1e-6
    together = np.histogram2d(*stops, bins=[np.arange(1, 6)] * 2)[0]
    assert stats.chi2_contingency(together).pvalue < 1e-12  # within a run the sides are dependent, as intended


def one_by_one(rng, data):
    THREADS.append(threading.current_thread())
    time.sleep(0.001)
    return data + rng.random()


def many_a_call(rng, data, size):
    THREADS.append(threading.current_thread())
    time.sleep(0.001 * size)
    return data + rng.random(size)


THREADS = []
LAST = 60.0  # seconds: nothing here waits so long


@pytest.mark.parametrize(("function", "calls"), [(one_by_one, 399), (many_a_call, 1)])
def test_no_run_goes_on_behind_the_deadline_beside_the_next_ones(monkeypatch, function, calls):
    """Threads cannot share the mechanism: both would draw from the global generators that each run seeds."""
    monkeypatch.setattr("dpwitness.runs.executors.TASK_GRACE_SECONDS", LAST)
    mechanism = as_mechanism(function, 1.0)
    mechanism.shard = 200
    THREADS.clear()
    with pytest.raises(MechanismTimeout, match="first 200 runs"):
        last(confirm(mechanism, Pair(1.0, 0.0), EVENTS[1:], seed=1, runs=200, deadline=time.monotonic() + 0.05))
    assert 1 <= len(THREADS) <= calls  # of 400 runs
    assert not any(thread.is_alive() for thread in THREADS)


def test_no_run_begins_in_the_last_quarter_of_the_time_in_which_more_is_bet(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    betting = Runner(mechanism=svt(), seed=1, max_time=100.0).restarted().betting(0.25)
    assert (betting.deadline.left, betting.deadline.closed) == (100.0, False)
    monkeypatch.setattr(time, "monotonic", lambda: 85.0)
    assert (betting.deadline.left, betting.deadline.closed) == (20.0, True)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_has_begun_is_waited_for_where_more_is_bet(workers):
    """Else a run of D′ that takes long, and tells against a bet, is left out, and what was won before is bet again."""
    deadline, number = SimpleNamespace(left=60.0, patience=30.0, closed=False), [0]

    def seventh_is_late(rng, data):
        number[0] += 1
        if number[0] == 7:
            deadline.closed = True
            return 99.0
        return data + rng.random()

    pair = Pair(1.0, 0.0)
    mechanism = as_mechanism(seventh_is_late, pair.data)
    mechanism.cost = replace(mechanism.cost, seconds_per_run=0.1)  # so that a shard has one run
    betting = runner(mechanism, workers=workers, deadline=deadline)
    number[0], deadline.closed = 0, False  # to see whether it can be compiled it was run
    _, x, y, _ = betting.epoch(pair, EVENTS[1:], 32, 0, 0)
    assert len(x) == len(y) == 4  # three paired runs before it, and its own, after which none begins
    assert 99.0 in np.concatenate([x, y])
    _, x, _, _ = betting.epoch(pair, EVENTS[1:], 32, 0, 1)
    assert len(x) == 0


def test_who_wants_no_more_waits_for_what_runs_and_begins_nothing_new():
    begun, done, free = [], [], threading.Event()

    def run(k):
        begun.append(k)
        if k:
            free.wait(30)
            time.sleep(0.05)  # the closing thread must still be waiting now
        done.append(k)

    looks = ordered((partial(run, k) for k in range(10)), 2)
    next(looks)  # of at most four that were handed in, two run
    while len(begun) < 3:
        time.sleep(0.001)
    threading.Timer(0.05, free.set).start()
    looks.close()
    assert sorted(begun) == sorted(done) == [0, 1, 2]


def test_counts_of_a_stopped_check_are_a_prefix():
    """Stopping early drops later shards, whatever more was already running."""
    for planned, seconds, runs in ((10**9, 1e-7, 131_072), (10**9, 1e-6, 16_384), (10**6, 1e-7, 32_768)):
        mechanism = svt()
        mechanism.cost = replace(mechanism.cost, seconds_per_run=seconds)
        (first,) = next(confirm(mechanism, PAIR, EVENTS[:1], seed=5, runs=planned, workers=3))
        assert (type(first), first.runs) == (Counts, runs)
        mechanism.shard = runs
        assert first == next(confirm(mechanism, PAIR, EVENTS[:1], seed=5, runs=runs, workers=1))[0]


@pytest.mark.parametrize("coupled", [True, False])
def test_a_larger_shard_begins_with_the_runs_of_a_smaller_one(coupled):
    """So runs that are evidence can be made again, and compared with Python, without knowing how large shards were."""
    small, large = (
        OutcomeRows(
            mechanism=svt(), pair=PAIR, seed=5, role=Role.CONFIRM, runs=1 << 20, size=size, width=11, coupled=coupled
        )
        for size in (100, 800)
    )
    for shard in (0, 1, 7):
        np.testing.assert_array_equal(small(shard)[1], large(shard)[1][:, :100])


@pytest.mark.parametrize(("both", "coupled"), [(None, False), (0.25, True)])
def test_sides_share_draws_unless_the_estimate_is_of_independent_sides(both, coupled):
    assert Candidate(pair=PAIR, event=EVENTS[0], estimate=Estimate(p=0.5, q=0.5, both=both)).coupled == coupled


def test_tallies_and_tables_of_cells_have_d_first():
    x, y = np.array([[1.0], [1.0], [0.0], [1.0]]), np.array([[0.0], [1.0], [0.0], [0.0]])
    tally = tally_of_rows(Interval(coordinate=0, low=1.0), x, y)
    assert (tally.n10, tally.n11, tally.n01, tally.n00) == (2, 1, 0, 1)
    cells = cuts_around(Interval(coordinate=0, low=1.0), sample_of(np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]])))
    cells = replace(cells, edges=np.array([1.0, 2.0]))
    x, y = np.array([[2.0], [1.0]]), np.array([[0.0], [2.0]])
    tally = tally_of_rows(cells, x, y)
    assert tally.swapped() == tally_of_rows(cells, y, x)
    assert np.reshape(tally.cells, (4, 4)).tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert (tally.n10, tally.n11, tally.n01, tally.n00) == (1, 1, 0, 0)
