"""Graded events in fast checks: a bet on all outcomes, in both directions, and what is learned for it."""

import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpwitness as dpw
from dpwitness import ApproxDP, GaussianDP, NotRefuted, PureDP, Violation, Witness, check, replay, shrink
from dpwitness.candidate import GRADED_SHARE, Candidate, CellsEstimate, Estimate, Grades
from dpwitness.errors import InvalidParameter, InvalidWitness, MechanismTimeout
from dpwitness.events import Cells, Interval, ScoreThreshold, SplitEvent, event_from_json
from dpwitness.evidence import EventBet, bet_on, growth_rate, log_e_value, lower_bound
from dpwitness.evidence.bet import grade_factors
from dpwitness.evidence.counts import Counts
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Runner
from dpwitness.search.graded_events import _grades, better_by_grades

#: Two laws of three cells; the event is the first cell.
P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.3, 0.45])
INSIDE = np.array([True, False, False])
CLAIMS = [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0), dpw.PrivacyProfile([(0.2, 0.2), (0.5, 0.05)])]
GRADES = [
    Grades(up=(0.6, 0.2, 0.0), down=(0.0, 0.0, 0.4)),
    Grades(up=(0.0, 0.3, 0.1), down=(0.7, 0.0, 0.2)),
    Grades(up=(1.0, 0.0, 0.0), down=(0.0, 0.0, 0.0)),
    Grades(up=(0.05, 0.0, 0.0), down=(0.0, 0.02, 0.1)),
]


def at_boundary(claim, p=P, q=Q):
    """The claim of the family that two laws just keep, in both directions: by all events."""
    sets = np.array(list(product([0, 1], repeat=len(p))))[1:-1]
    return claim.at(float(max(np.max(claim.reached(sets @ a, sets @ b)) for a, b in ((p, q), (q, p)))))


def joints():
    """Both sides independent of each other, and one of them as often as possible like the other."""
    same = np.minimum(P, Q)
    left = 1 - same.sum()
    return {"independent": np.outer(P, Q), "together": np.diag(same) + np.outer(P - same, Q - same) / left}


def estimate_of(grades, joint):
    return Estimate(p=float(joint[0].sum()), q=float(joint[:, 0].sum()), both=float(joint[0, 0]), grades=grades)


def counts_of(table):
    both, hits, others, n = (int(one) for one in (table[0, 0], table[0].sum(), table[:, 0].sum(), table.sum()))
    cells = tuple(map(int, table.ravel()))
    return Counts(n10=hits - both, n11=both, n01=others - both, n00=n - hits - others + both, cells=cells)


@pytest.mark.parametrize("sides", ["independent", "together"])
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_mean_of_the_e_value_is_at_most_one(sides, claim):
    """Over all outcomes of three runs, of laws that just keep the claim; grades of any kind, and D and D′ exchanged."""
    for joint, grades in product((joints()[sides], joints()[sides].T), GRADES):
        kept, estimate = at_boundary(claim), estimate_of(grades, joint)
        mean = 0.0
        for runs in product(range(9), repeat=3):
            chance = float(np.prod(joint.ravel()[list(runs)]))
            if chance:
                table = np.bincount(runs, minlength=9).reshape(3, 3)
                mean += chance * math.exp(log_e_value(counts_of(table), kept, estimate))
        assert 0.2 < mean <= 1 + 1e-12


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_no_run_loses_all_and_no_law_that_keeps_the_claim_wins(data):
    """Whatever the grades are: E[1 + λX] ≤ 1 at the boundary, and 1 + λX > 0."""
    k = data.draw(st.integers(2, 5))
    shares = st.lists(st.floats(0.01, 1), min_size=k, max_size=k).map(lambda one: np.array(one) / sum(one))
    p, q = data.draw(shares), data.draw(shares)
    up, down = (np.array(data.draw(st.lists(st.floats(0, 1), min_size=k, max_size=k))) for _ in range(2))
    total = max(up.max() + down.max(), 1e-3)
    grades = Grades(up=tuple(up / total + 1e-12), down=tuple(down / total))
    for family in CLAIMS[:3]:
        claim = at_boundary(family, p, q)
        factors = grade_factors(claim, Estimate(p=float(p[0]), q=float(q[0]), grades=grades))
        assert factors.min() >= 1e-3 - 1e-9
        assert np.outer(p, q).ravel() @ factors <= 1 + 1e-7


def test_grades_grow_at_least_as_fast_as_every_event_of_cells():
    rng = np.random.default_rng(3)
    for epsilon, delta in product((0.1, 0.5), (0.0, 0.01)):
        claim = ApproxDP(epsilon, delta)
        for _ in range(10):
            p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
            sets = np.array(list(product([0, 1], repeat=5)))[1:-1]
            best = max(np.max(growth_rate(sets @ a, sets @ b, claim.half_plane())) for a, b in ((p, q), (q, p)))
            grades = _grades(np.outer(p, q) * 1e6, claim.half_plane())
            factors = grade_factors(claim, Estimate(p=0.5, q=0.5, grades=grades))
            assert np.outer(p, q).ravel() @ np.log(factors) >= 0.98 * best  # 250 steps


def test_the_event_loses_its_share_at_most():
    joint = joints()["independent"]
    counts = counts_of(np.random.default_rng(5).multinomial(2_000, joint.ravel()).reshape(3, 3))
    claim, estimate = PureDP(0.3), estimate_of(GRADES[1], joint)  # grades that pay nothing
    event = EventBet(counts, replace(estimate, grades=None))
    shared, left = bet_on(counts, claim, estimate), math.log(1 - GRADED_SHARE)
    assert shared.log_e_value(claim) >= event.log_e_value(claim) + left
    assert lower_bound(shared, claim, alpha=1e-3) >= lower_bound(event, claim, alpha=1e-3 * (1 - GRADED_SHARE))
    assert "all outcomes were bet on, in 3 cells" in shared.comparison(claim)
    # Counts of other cells, as those of another event: the event alone.
    assert log_e_value(replace(counts, cells=()), claim, estimate) == event.log_e_value(claim)


SCORE = ScoreThreshold([0], [[0.0, 1.0, 2.0]], [[-1.0, 0.5, 0.2, 1.0, 0.0]], 0.0)


def test_a_split_event_is_its_event_and_its_cells():
    split = SplitEvent(Interval(coordinate=0, low=0.5), SCORE, [-0.5, 0.1], [0.3])
    rows = np.array([[-1.0], [0.2], [math.nan], [0.7], [1.5], [3.0]])
    assert split.cell_of(rows).tolist() == [0, 2, 1, 4, 3, 4]
    assert split.inside.tolist() == [False] * 3 + [True] * 2
    assert (split.contains(rows) == split.inside[split.cell_of(rows)]).all()
    assert event_from_json(json.loads(json.dumps(split.to_json()))).to_json() == split.to_json()
    assert split.describe() == split.event.describe()
    assert split.simpler() == (split.event,)
    assert (
        split.statistic().value(rows)[[0, 1, 3]] == rows[[0, 1, 3], 0]
    ).all()  # for the figure of both distributions
    two = SplitEvent(
        split.event, ScoreThreshold([0, 2], [*SCORE.edges, []], [*SCORE.weights, [0, 0]], 0.0), [-0.5, 0.1], [0.3]
    )
    assert (two.cell_of(np.hstack([rows, rows, rows])) == split.cell_of(rows)).all()


@pytest.mark.parametrize(
    ("event", "outside", "within", "why"),
    [
        (Cells(SCORE, [0.0]), [0.0], [], "cells already"),
        (Interval(coordinate=0), [1.0, 0.0], [], "rising"),
        (Interval(coordinate=0), [], list(range(80)), "too many"),
        (Interval(coordinate=0), [math.nan], [math.nan, 1.0], "rising"),
    ],
)
def test_a_split_that_cannot_be_is_refused(event, outside, within, why):
    with pytest.raises(InvalidParameter, match=why):
        SplitEvent(event, SCORE, outside, within)


@pytest.mark.parametrize(
    ("up", "down", "why"),
    [
        ((0.5,), (0.5,), "two cells"), ((0.5, 0.0), (0.1, 0.0, 0.0), "two cells"), ((0.8, 0.0), (0.0, 0.3), "add up"),
        ((0.0, 0.0), (0.0, 0.0), "add up"), ((0.5, -0.1), (0.0, 0.3), "add up"),
        ((math.nan, 0.1), (0.0, 0.3), "add up"),
    ],
)  # fmt: skip
def test_grades_that_cannot_be_are_refused(up, down, why):
    with pytest.raises(ValueError, match=why):
        Grades(up=up, down=down)


def test_an_estimate_has_cells_or_grades():
    cells = CellsEstimate(joint=(0.25,) * 4, order=2.0, log_ratios=(0.1, -0.2), against=1.0)
    with pytest.raises(ValueError, match="one of the two"):
        Estimate(p=0.5, q=0.5, cells=cells, grades=Grades(up=(0.5, 0.0), down=(0.0, 0.5)))


def test_a_graded_event_has_its_share_and_says_nothing_of_larger_parameters():
    """Against smaller parameters it pays no less than against the claim, against larger ones nothing."""
    joint = joints()["independent"]
    counts, claim = counts_of(np.round(100_000 * joint)), PureDP(0.65)
    bet = bet_on(counts, claim, estimate_of(Grades(up=(0.02, 0.0, 0.0), down=(0.0, 0.0, 0.06)), joint))
    (graded, share), (event, rest) = bet.parts
    assert (share, share + rest) == (GRADED_SHARE, 1)
    at_claim = graded.log_e_value(claim)
    assert at_claim > event.log_e_value(claim) + 5
    assert bet.log_e_value(claim) == pytest.approx(at_claim + math.log(GRADED_SHARE), abs=0.01)
    assert all(graded.log_e_value(PureDP(x)) >= at_claim for x in (0.0, 0.3, 0.65))
    assert all(graded.log_e_value(PureDP(x)) == -math.inf for x in (0.66, 3.0))


def test_a_shared_bet_that_does_not_refute_the_claim_bounds_less():
    joint = joints()["independent"]
    bet = bet_on(counts_of(np.round(1_000 * joint)), PureDP(3.0), estimate_of(GRADES[0], joint))
    assert bet.log_e_value(PureDP(3.0)) < math.log(1e6)
    assert lower_bound(bet, PureDP(3.0), alpha=1e-6) < math.log(2.3)  # what these counts are


def test_the_wealth_of_a_shared_bet_refutes_its_lower_bound():
    counts = counts_of(np.random.default_rng(5).multinomial(2_000, joints()["independent"].ravel()).reshape(3, 3))
    bet = bet_on(counts, PureDP(0.3), estimate_of(GRADES[1], joints()["independent"]))  # grades that pay nothing
    for alpha in (0.05, 1e-3, 1e-6):
        bound = lower_bound(bet, PureDP(0.3), alpha=alpha)
        assert bound > 0.3
        assert bet.log_e_value(PureDP(bound)) >= math.log(1 / alpha)


#: Two inputs with Laplace noise of scale 1, 1 apart: exactly 1-DP.
ONE = [([0.0], [1.0])]


def laplace(rng, data, size):
    return data[0] + rng.laplace(size=size)


@pytest.fixture(scope="module")
def violation():
    return check(laplace, claim=PureDP(0.6), neighbours=ONE, search_runs=200_000, seed=3, workers=1, alpha=1e-3)


@pytest.mark.campaign
def test_a_violation_bets_on_all_outcomes_and_names_the_event(violation, tmp_path):
    assert isinstance(violation, Violation)
    witness = violation.witness
    assert witness.estimate.grades is not None
    assert isinstance(witness.event, SplitEvent)
    assert witness.description == witness.event.event.describe("output") or "output" in witness.description
    assert len(witness.counts.cells) == witness.event.cells**2
    assert "all outcomes were bet on" in str(violation)
    event = EventBet(witness.counts, replace(witness.estimate, grades=None))
    assert violation.log_e_value > 1.1 * event.log_e_value(violation.claim)
    witness.save(tmp_path / "w.json")
    again = Witness.load(tmp_path / "w.json")
    assert again.to_json() == witness.to_json()
    seen = replay(again, laplace, seed=7, workers=1)
    assert isinstance(seen, Violation)
    assert seen.witness.estimate == witness.estimate
    assert isinstance(replay(again, laplace, claim=PureDP(1.0), runs=50_000, seed=8, workers=1), NotRefuted)


@pytest.mark.campaign
def test_a_violation_is_shrunk_to_its_event(violation):
    small = shrink(violation, laplace, neighbours=ONE, workers=1)
    assert isinstance(small, Violation)
    assert not isinstance(small.witness.event, SplitEvent)
    assert small.witness.estimate.grades is None


@pytest.mark.campaign
def test_damaged_grades_in_a_file_are_refused(violation):
    written = json.dumps(violation.witness.to_json())
    for key, value in (("up", [0.5]), ("up", None), ("down", ["x"]), ("up", [2.0] * violation.witness.event.cells)):
        damaged = json.loads(written)
        damaged["estimate"]["grades"][key] = value
        with pytest.raises(InvalidWitness):
            Witness.from_json(damaged)
    damaged = json.loads(written)
    damaged["event"]["within"] = [1.0, 0.0]
    with pytest.raises(InvalidWitness):
        Witness.from_json(damaged)


def better(laws, claim, inside, budget=1 << 20, deadline=None):
    """`better_by_grades` for outcomes drawn by their laws."""
    ends = [np.cumsum(law)[:-1] for law in laws]

    def mechanism(rng, data, size):
        return np.searchsorted(ends[int(data[0])], rng.random(size)).astype(float)

    pair = Pair(np.array([0]), np.array([1]))
    event = Interval(coordinate=0, low=float(np.min(inside)), high=float(np.max(inside)) + 0.5)
    p, q = (float(law[list(inside)].sum()) for law in laws)
    runner = Runner(mechanism=as_mechanism(mechanism, pair.data), seed=1, workers=1)
    candidate = Candidate(pair=pair, event=event, estimate=Estimate(p=p, q=q))
    return (candidate, *better_by_grades(runner, candidate, claim, budget))


def test_grades_are_taken_where_they_grow_clearly_faster():
    """Half and half of the excess lies in both directions: no event shows more than one of them."""
    laws = np.array([0.4, 0.35, 0.25]), np.array([0.25, 0.35, 0.4])
    candidate, found, spent = better(laws, PureDP(0.1), [0])
    assert 0 < spent <= (1 << 20) // 32
    assert found.event.event == candidate.event
    assert replace(found.estimate, grades=None) == candidate.estimate
    grades = found.estimate.grades
    assert max(grades.up) > 0.02 < max(grades.down)


@pytest.mark.parametrize(
    ("laws", "claim", "budget"),
    [
        (([0.3, 0.7], [0.1, 0.9]), 0.5, 1 << 20),  # one event alone exceeds the claim
        (([0.5, 0.5], [0.5, 0.5]), 0.5, 1 << 20),  # none
        (([1.0, 0.0], [0.0, 1.0]), 0.5, 1 << 20),  # nothing grows faster
        (([0.4, 0.35, 0.25], [0.25, 0.35, 0.4]), 0.3, 1 << 12),  # too few runs to learn from
    ],
)
def test_else_the_event_stays(laws, claim, budget):
    candidate, found, _ = better(tuple(map(np.array, laws)), PureDP(claim), [0], budget)
    assert found is candidate


def test_when_the_time_is_over_the_event_stays():
    class Late:
        mechanism = as_mechanism(laplace, np.zeros(1))

        def sample(self, *_args, **_options):
            raise MechanismTimeout("late")

    candidate = Candidate(
        pair=Pair(np.zeros(1), np.ones(1)), event=Interval(coordinate=0, high=0.0), estimate=Estimate(p=0.5, q=0.18)
    )
    assert better_by_grades(Late(), candidate, PureDP(0.6), 1 << 22) == (candidate, 0)
