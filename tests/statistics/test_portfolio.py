"""Bets on many events at once: e-values by enumeration of all outcomes, and what portfolios are made of."""

import copy
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpwitness.claims import ApproxDP
from dpwitness.events import Interval, cells_of
from dpwitness.evidence import Estimate, best_bet, event_bet, lower_bound
from dpwitness.evidence.counts import Counts, CountsTable
from dpwitness.evidence.portfolio import COARSE_PARAMETERS, Epoch, Flags, Stakes, Wealth, level_left, log_e_values_of
from dpwitness.neighbours import Pair
from dpwitness.search.epochs import (
    EMPTY_PORTFOLIO,
    MOST_PORTFOLIO_EVENTS,
    PairWealth,
    Ranges,
    cuts_of,
    flags_of,
    next_pair,
    portfolio,
)
from running import soon

PAIR = Pair(np.array([0.0]), np.array([1.0]))
ROUNDING = 1e-9


def boundary(epsilon, delta=0.0):
    """Probabilities of five outcomes under D and under D′ whose privacy loss is exactly (ε, δ), both ways."""
    e = math.exp(epsilon)
    p, q = np.array([e, 1, 1, 0, 0]) / (e + 2), np.array([1, e, 1, 0, 0]) / (e + 2)
    return (1 - delta) * p + delta * np.eye(5)[3], (1 - delta) * q + delta * np.eye(5)[4]


def joint(p, q, coupled):
    """Probabilities of outcomes of both sides, with a share of runs in which the sides are as alike as they can be."""
    alike = np.minimum(p, q)
    left, right = p - alike, q - alike
    rest = np.outer(left, right) / max(left.sum(), 1e-300)  # 1 less the sum of `alike` may be round-off alone
    return (1 - coupled) * np.outer(p, q) + coupled * (np.diag(alike) + rest)


def staked(p, q, both, shares, **more):
    """Stakes on events."""
    p, q, both, shares = (np.atleast_1d(np.array(one, float)) for one in (p, q, both, shares))
    return Stakes(p=p, q=q, both=both, log_shares=np.log(shares), **more)


def epoch_of(stakes, *counts):
    """An epoch of these counts of each event, each as (n10, n11, n01, n00)."""
    return Epoch(stakes=stakes, counts=CountsTable(np.array(counts, np.int64).reshape(-1, 4).T))


@st.composite
def any_stakes(draw, events):
    """Any stakes at all: estimates that have nothing to do with the truth, shares of all the wealth or of less."""
    p, q = (np.array(draw(st.lists(st.floats(0, 1), min_size=events, max_size=events))) for _ in range(2))
    both = np.minimum(p, q) * draw(st.floats(0, 1))
    shares = np.array(draw(st.lists(st.floats(1e-3, 1), min_size=events, max_size=events)))
    shares *= draw(st.sampled_from([1.0, 0.7, 1e-3])) / shares.sum()
    return Stakes(p=p, q=q, both=np.maximum(both, p + q - 1), log_shares=np.log(shares))


def table(members, swapped, x, y):
    """Counts of events, as sets of outcomes, in runs with these outcomes of D and of D′."""
    rows = []
    for inside, exchanged in zip(members, swapped, strict=True):
        a, b = inside[list(x)], inside[list(y)]
        a, b = (b, a) if exchanged else (a, b)
        rows.append([(a & ~b).sum(), (a & b).sum(), (~a & b).sum(), (~a & ~b).sum()])
    return CountsTable(np.array(rows, np.int64).T)


def test_counts_of_swapped_events_are_those_of_the_swapped_pair():
    counts = CountsTable(np.array([[1, 5], [2, 6], [3, 7], [4, 8]]))
    directed = counts.directed(np.array([1, 1, 0]), np.array([True, False, True]))
    assert [directed.of(k) for k in range(3)] == [counts.of(1).swapped(), counts.of(1), counts.of(0).swapped()]


def test_counts_of_kept_events_go_on_and_those_of_new_events_begin():
    earlier = CountsTable(np.array([[1, 5], [2, 6], [3, 7], [4, 8]]))
    counts = CountsTable(np.array([[10, 50, 90], [20, 60, 0], [30, 70, 1], [40, 80, 2]]))
    total = counts.plus(earlier, np.array([1, -1, 0]))
    assert [total.of(k) for k in range(3)] == [counts.of(0) + earlier.of(1), counts.of(1), counts.of(2) + earlier.of(0)]


def flags_in(members, swapped, x, y):
    """The flags of such runs."""
    hits, others = members[:, list(x)], members[:, list(y)]
    turned = swapped[:, None]
    return Flags(hits=np.where(turned, others, hits).T, others=np.where(turned, hits, others).T, times=np.ones(len(x)))


@pytest.mark.campaign
@given(
    st.data(), st.floats(0, 2), st.sampled_from([0.0, 0.01, 0.3]), st.floats(0, 1), st.sampled_from([1, 1, 1, 2]),
    st.booleans(),
)  # fmt: skip
@settings(max_examples=40)
def test_the_factor_of_an_epoch_has_expectation_1_at_most_whatever_is_staked(
    data, epsilon, delta, coupled, runs, graded
):
    claim = ApproxDP(epsilon, delta)
    cells = joint(*boundary(epsilon, delta), coupled)
    k = data.draw(st.integers(1, 4))
    members = data.draw(hnp.arrays(np.bool_, (k, 5)))
    swapped = data.draw(hnp.arrays(np.bool_, k))
    stakes = data.draw(any_stakes(k))
    if graded:  # any fractions at all, here the shares
        stakes = replace(stakes, fractions=np.exp(stakes.log_shares))
    total = expected = 0.0
    places = [(x, y) for x in range(5) for y in range(5) if cells[x, y] > 0]
    for combination in itertools.combinations_with_replacement(places, runs):
        orders = 1 if len(set(combination)) == 1 else math.factorial(runs)
        probability = orders * math.prod(cells[place] for place in combination)
        x, y = zip(*combination, strict=True)
        flags = flags_in(members, swapped, x, y) if graded else None
        epoch = Epoch(stakes=stakes, counts=table(members, swapped, x, y), flags=flags)
        total += probability
        expected += probability * math.exp(log_e_values_of([epoch], claim)[0])
    assert total == pytest.approx(1)
    assert expected <= 1 + ROUNDING


def test_a_factor_is_what_bets_and_money_kept_come_to():
    """Σ w_k ∏(1 + λ_k X_ki) + 1 − Σ w_k, run by run."""
    claim = ApproxDP(0.5, 0.01)
    stakes = staked([0.6, 0.2], [0.1, 0.01], [0.05, 0.0], [0.3, 0.5])
    counts = [(3, 1, 2, 4), (1, 0, 0, 9)]
    expected = 0.2
    for k, (share, seen) in enumerate(zip((0.3, 0.5), counts, strict=True)):
        bet = float(best_bet(stakes.p[k], stakes.q[k], claim.half_plane(), stakes.both[k]))
        pays = [a - math.exp(0.5) * b - 0.01 for a, b in ((1, 0), (1, 1), (0, 1), (0, 0))]
        expected += share * math.prod((1 + bet * pay) ** n for pay, n in zip(pays, seen, strict=True))
    epoch, nothing = epoch_of(stakes, *counts), epoch_of(EMPTY_PORTFOLIO.stakes)
    assert log_e_values_of([nothing, epoch, nothing], claim) == pytest.approx([0.0, math.log(expected), 0.0])


def test_a_graded_event_pays_each_run_what_its_parts_come_to():
    """∏ (1 + Σ φ_k λ̄_k X_ki), D′ first in a swapped event; the other epochs' factors are as they were."""
    claim = ApproxDP(0.5, 0.01)
    events = [Interval(coordinate=0, low=1.0), Interval(coordinate=0, low=2.0), Interval(coordinate=0, high=0.0)]
    swapped = np.array([False, False, True])
    x, y = (np.array(rows, np.float64)[:, None] for rows in ([0, 1, 2, 2, -1], [1, 0, -1, -1, 2]))
    fractions = np.array([0.5, 0.2, 0.1])
    stakes = staked([0.6] * 3, [0.1] * 3, [0.0] * 3, [1 / 3] * 3, fractions=fractions)
    flags = flags_of(events, swapped, x, y)
    assert sorted(flags.times) == [1, 1, 1, 2]  # two runs fell into the same events
    epoch = Epoch(stakes=stakes, counts=CountsTable(np.zeros((4, 3), np.int64)), flags=flags)
    slope, most = math.exp(0.5), 0.999 / (math.exp(0.5) + 0.01)
    expected = 0.0
    for a, b in zip(x[:, 0], y[:, 0], strict=True):
        pays = [(a >= 1) - slope * (b >= 1), (a >= 2) - slope * (b >= 2), (b < 0) - slope * (a < 0)]
        expected += math.log1p(sum(part * most * (pay - 0.01) for part, pay in zip(fractions, pays, strict=True)))
    single = Epoch(stakes=replace(stakes, fractions=None), counts=CountsTable(np.full((4, 3), 2)))
    assert log_e_values_of([epoch, single], claim) == pytest.approx([expected, log_e_values_of([single], claim)[0]])
    # Against a weaker claim the bets are those against this one, and each run pays less.
    weaker = ApproxDP(1.0, 0.01)
    assert log_e_values_of([epoch], weaker, claim)[0] < expected


def test_more_than_the_wealth_cannot_be_staked():
    with pytest.raises(ValueError, match="more than a graded event can bet"):
        staked([1, 1], [1, 1], [1, 1], [0.5, 0.5], fractions=np.array([0.7, 0.4]))
    with pytest.raises(ValueError, match="more than its wealth"):
        staked([0.5, 0.5], [0.1, 0.1], [0.0, 0.0], [0.6, 0.5])
    with pytest.raises(ValueError, match="which runs fell into which events"):
        epoch_of(staked(1, 1, 1, 1, fractions=np.ones(1)), (0, 0, 0, 0))
    with pytest.raises(ValueError, match="0 counts must be as many as the stakes, 1"):
        epoch_of(staked(1, 1, 1, 1))


class Told:
    """A runner whose next outcomes are told."""

    processes = 0

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)

    def epoch(self, pair, events, n, *key):
        runs = [self.outcomes.pop(0) for _ in range(n)]
        x, y = (np.array([[run[side]] for run in runs], np.float64) for side in (0, 1))
        return CountsTable(cells_of(events, x, y)), x, y, np.empty((3, 0), np.int64)


def after(course, claim, *outcomes):
    """A copy of a course, one epoch of these outcomes later."""
    course = copy.deepcopy(course)
    assert course.advance(Told(*outcomes), claim, len(outcomes), lambda value: None) == len(outcomes)
    return course


def begun(claim, x, y):
    """A course that has seen outcomes, and has all of its wealth."""
    course = PairWealth(pair=PAIR, index=0)
    return after(course, claim, *zip(x, y, strict=True))


def expectation(course, claim, cells, epochs, runs=1):
    """The mean wealth after so many more epochs, by enumeration of all that can happen."""
    if not epochs:
        return math.exp(course.wealth)
    places = list(zip(*np.nonzero(cells), strict=True))
    return sum(
        math.prod(cells[place] for place in combination)
        * expectation(after(course, claim, *combination), claim, cells, epochs - 1, runs)
        for combination in itertools.product(places, repeat=runs)
    )


TRUTH = math.e / (1 + math.e)
#: Randomised response of ε = 1: both outcomes on either side; independent sides, and sides alike as often as possible.
ANSWERS = [joint(np.array([TRUTH, 1 - TRUTH]), np.array([1 - TRUTH, TRUTH]), coupled) for coupled in (0.0, 1.0)]


@pytest.mark.parametrize("cells", ANSWERS, ids=["independent", "coupled"])
@pytest.mark.parametrize(("epochs", "runs"), [(2, 1), pytest.param(4, 1, marks=pytest.mark.campaign), (1, 2)])
def test_what_a_course_bets_is_an_e_value_at_the_boundary(cells, epochs, runs):
    """The rule itself, from the first run on: what it bets next is chosen by what happened before."""
    claim = ApproxDP(1.0)
    first = begun(claim, [0, 0, 1], [1, 1, 1])
    assert expectation(first, claim, cells, epochs, runs) <= 1 + ROUNDING
    assert after(first, claim, (0, 1)).wealth > 0.05  # it bets
    assert expectation(PairWealth(pair=PAIR, index=0), claim, cells, 2 + (epochs > 2)) <= 1 + ROUNDING


def test_a_course_that_has_asked_learners_bets_an_e_value_too():
    rng = np.random.default_rng(1)
    claim = ApproxDP(1.0)
    course = begun(claim, (rng.random(40) < 0.1).astype(int), (rng.random(40) < 0.6).astype(int))
    assert course.runs >= 32
    assert expectation(course, claim, ANSWERS[0], 2) <= 1 + ROUNDING


def test_where_the_claim_is_broken_the_wealth_grows():
    claim = ApproxDP(0.1)
    course = begun(claim, [0, 0, 1], [1, 1, 1])
    assert expectation(course, claim, ANSWERS[0], 2) > 1.1


def poorest(courses):
    """An adversary: always the course that has won least."""
    return min(courses, key=lambda course: (course.wealth, course.runs))


@pytest.mark.parametrize("rule", [next_pair, poorest])
def test_the_mean_of_courses_is_an_e_value_whoever_gets_the_next_epoch(rule):
    claim = ApproxDP(1.0)
    courses = [begun(claim, [0, 0], [1, 1]), begun(claim, [1, 0], [0, 0])]

    def mean(courses, epochs):
        if not epochs:
            return float(np.mean([math.exp(course.wealth) for course in courses]))
        chosen = [course is rule(courses) for course in courses]
        assert sum(chosen) == 1
        cells = ANSWERS[0]
        return sum(
            cells[place]
            * mean([after(c, claim, place) if mine else c for c, mine in zip(courses, chosen, strict=True)], epochs - 1)
            for place in zip(*np.nonzero(cells), strict=True)
        )

    assert mean(courses, 3) <= 1 + ROUNDING


entries = st.sampled_from([0.0, -0.0, 1.0, 2.0, 2.5, -1e300, 1e300, np.inf, -np.inf, np.nan, 0.1, 0.30000000000000004])


some_rows = st.integers(1, 3).flatmap(
    lambda width: st.tuples(
        *(hnp.arrays(np.float64, (30, width), elements=entries, fill=st.nothing()) for _ in range(2))
    )
)


@given(some_rows, st.floats(0, 1.5), st.sampled_from([0.0, 0.1]))
@settings(max_examples=15)
def test_a_portfolio_stakes_its_wealth_and_the_same_with_the_inputs_exchanged(rows, epsilon, delta):
    x, y = rows
    claim, cuts = ApproxDP(epsilon, delta), cuts_of(x, y)
    one, other = (portfolio([Ranges(cuts).seen(*sides)], claim, 0.25) for sides in ((x, y), (y, x)))
    assert len(one.events) == len(other.events)
    if 0 < len(one.events) < MOST_PORTFOLIO_EVENTS:  # else which of several equal ones are left out may differ
        assert np.exp(one.stakes.log_shares).sum() == pytest.approx(1)
        shares = [
            dict(zip(zip(p.events, p.swapped ^ turned, strict=True), np.exp(p.stakes.log_shares), strict=True))
            for p, turned in ((one, False), (other, True))
        ]
        assert shares[0] == pytest.approx(shares[1])


def test_many_runs_are_counted_like_the_sum_of_their_parts():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(30_000, 1)), rng.normal(size=(30_000, 1))
    events = Ranges(cuts_of(x, y))[:20]
    parts = [cells_of(events, x[start : start + 1_000], y[start : start + 1_000]) for start in range(0, 30_000, 1_000)]
    assert np.array_equal(cells_of(events, x, y), np.sum(parts, axis=0))


def wealth_of(counts, estimate, **more):
    """The wealth of one course with one event."""
    return Wealth(accounts=((epoch_of(staked(*estimate, 1.0), counts),),), **more)


@pytest.mark.parametrize("claimed", soon([1.0, 0.8, 1.2], 1))
@pytest.mark.parametrize("last", [False, True])
def test_a_lower_bound_is_above_the_truth_with_probability_alpha_at_most(claimed, last):
    """All counts of 4 runs of randomised response of ε = 1, with their probabilities."""
    cells, alpha, n = ANSWERS[0], 0.2, 4
    probabilities = cells[[0, 0, 1, 1], [1, 0, 0, 1]]  # of (1,0), (1,1), (0,1), (0,0) for the event {0}
    above = 0.0
    for n10, n11, n01 in itertools.product(range(n + 1), repeat=3):
        counts = (n10, n11, n01, n - n10 - n11 - n01)
        if counts[3] < 0:
            continue
        ways = math.factorial(n) / math.prod(math.factorial(k) for k in counts)
        probability = ways * math.prod(p**k for p, k in zip(probabilities, counts, strict=True))
        nothing = (0, 0, 0, 0)
        wealth = wealth_of(nothing if last else counts, (0.85, 0.1, 0.08))
        if last:
            made = Counts(n10=counts[0], n11=counts[1], n01=counts[2], n00=counts[3])
            wealth = wealth_of(nothing, (0.9, 0.1, 0.09), last=event_bet(made, Estimate(p=0.85, q=0.1, both=0.08)))
        claim = ApproxDP(claimed)
        bound = lower_bound(wealth, claim, alpha=alpha)
        above += probability * (bound > 1.0 + ROUNDING)
        refuted = wealth.log_e_value(claim) >= math.log(1 / alpha)
        assert (bound >= claimed) if refuted else (bound <= claimed)
    assert above <= alpha


def test_a_lower_bound_falls_with_alpha_and_rises_with_the_counts():
    claim = ApproxDP(0.5)
    bounds = [
        [lower_bound(wealth_of((n, 0, 1, n), (0.5, 0.02, 0.0)), claim, alpha=alpha) for n in (20, 30)]
        for alpha in (0.01, 0.05)
    ]
    assert 0.5 < bounds[0][0] < bounds[0][1] < bounds[1][1]
    assert bounds[0][0] < bounds[1][0] < bounds[1][1]


def test_shares_that_nothing_was_bet_on_stay_in_the_mean():
    claim = ApproxDP(0.1)
    one = wealth_of((20, 0, 0, 4), (0.9, 0.05, 0.0))
    log_e = one.log_e_value(claim)
    assert log_e > 2
    spread = wealth_of((20, 0, 0, 4), (0.9, 0.05, 0.0), unused=3)
    assert spread.log_e_value(claim) == pytest.approx(math.log((math.exp(log_e) + 3) / 4))
    assert lower_bound(spread, claim, alpha=0.05) < lower_bound(one, claim, alpha=0.05)


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("seed", soon(range(4), 1))
def test_where_bets_are_fixed_evidence_falls_with_the_parameter_and_the_bound_is_the_last_point_that_is_refuted(
    delta, seed
):
    rng, claim, alpha = np.random.default_rng(seed), ApproxDP(1.0, delta), 0.05
    k, probabilities = 12, np.array([0.5, 0.05, 0.15, 0.3])  # ln(0.55/0.2) = 1.01
    cells = np.rint(300 * probabilities)[:, None].astype(np.int64) + rng.integers(-3, 4, (4, k))
    p, q = rng.uniform(0.5, 0.6, k), rng.uniform(0.1, 0.2, k)
    stakes = Stakes(p=p, q=q, both=np.full(k, 0.05), log_shares=np.full(k, -math.log(k)))
    epoch = Epoch(stakes=stakes, counts=CountsTable(cells))
    wealth = Wealth(accounts=((epoch, epoch), ()), unused=1)
    points = COARSE_PARAMETERS[COARSE_PARAMETERS < 1.0]
    evidence = np.array([wealth.log_e_value(claim.at(float(x)), claim) for x in points])
    assert np.all(np.diff(evidence) <= 1e-9)
    assert wealth.log_e_value(claim) < -math.log(alpha) < evidence[0]
    assert lower_bound(wealth, claim, alpha=alpha) == points[evidence >= -math.log(alpha)][-1]


@pytest.mark.parametrize("before", [-2.0, 0.0, 1.5])
def test_the_level_of_a_last_bet_makes_both_together_refute_at_alpha(before):
    assert before + math.log(1 / level_left(1e-3, before)) == pytest.approx(math.log(1e3))
