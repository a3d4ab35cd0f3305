"""Cells: hyperplanes of divergences, evidence from tables of counts, and what is learned for them."""

import json
import math
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dpwitness as dpw
from dpwitness import ZCDP, RenyiDP, Violation, Witness, bound, check, replay
from dpwitness.candidate import Candidate, CellsEstimate, Estimate
from dpwitness.claims.renyi import Hyperplane
from dpwitness.errors import InvalidWitness
from dpwitness.events import Cells, Interval, ScoreThreshold, event_from_json
from dpwitness.evidence import bet_on, detectable_parameter, log_e_value, lower_bound
from dpwitness.evidence.bet import OnCells
from dpwitness.evidence.counts import Counts
from dpwitness.neighbours import Pair
from dpwitness.search.cells import Aim, better_by_rows
from dpwitness.search.objectives import GrowthAt
from running import sampled, soon

ONE = [([0], [1])]
#: Two laws of three cells.
P, Q = np.array([0.1, 0.3, 0.6]), np.array([0.3, 0.45, 0.25])


def gaussian(rng, data, size):
    return data[0] + rng.standard_normal(size)


def two_values(rng, data, size):
    """Two values, each of which moves by 1/√2: exactly ½-zCDP."""
    return data[0] / math.sqrt(2) + rng.standard_normal((size, 2))


def divergence(order, p, q):
    return float(p @ np.log(p / q)) if order == 1 else math.log(np.sum(p**order * q ** (1 - order))) / (order - 1)


def bet_of(order, joint, against, *, ratios=None, event_share=0.0):
    p, q = joint.sum(axis=1), joint.sum(axis=0)
    logs = np.log(p / q) if ratios is None else ratios
    estimate = CellsEstimate(
        joint=tuple(joint.ravel().tolist()), order=order, log_ratios=tuple(map(float, logs)), against=against,
        event_share=event_share,
    )  # fmt: skip
    return Estimate(p=float(p[-1]), q=float(q[-1]), both=float(joint[-1, -1]), cells=estimate)


def counts_of(table):
    """Counts of the event that is the last cell."""
    both, hits, others = int(table[-1, -1]), int(table[-1].sum()), int(table[:, -1].sum())
    n = int(table.sum())
    cells = tuple(map(int, table.ravel()))
    return Counts(n10=hits - both, n11=both, n01=others - both, n00=n - hits - others + both, cells=cells)


@settings(deadline=None, max_examples=30)
@given(
    st.one_of(st.just(1.0), st.floats(1 + 1e-9, 1.5), st.floats(1.5, 300)),
    st.lists(st.floats(-30, 30), min_size=2, max_size=6),
    st.floats(0, 40),
    st.floats(0, 60),
)
def test_hyperplanes_are_rounded_to_the_safe_side(order, logs, scale, epsilon):
    """In arithmetic of 60 digits: a is no larger, b and c are no smaller than those of the ratios."""
    plane = Hyperplane(order=order, log_ratios=tuple(logs), scale=scale)
    pays, costs = plane.sides()
    with mpmath.workdps(60):
        a, unit = mpmath.mpf(order), mpmath.exp(-(mpmath.mpf(order) - 1) * mpmath.mpf(scale))
        allowed = mpmath.mpf(epsilon) if order == 1 else mpmath.exp((a - 1) * mpmath.mpf(epsilon)) * unit
        assert mpmath.mpf(float(plane.allowed(epsilon))) >= allowed
        for given_log, pay, cost in zip(logs, pays, costs, strict=True):
            log = mpmath.mpf(min(given_log, (600 + (order - 1) * scale) / order))
            if order == 1:
                assert mpmath.mpf(float(pay)) <= 1 + log
                assert mpmath.mpf(float(cost)) >= mpmath.exp(log)
            else:
                assert mpmath.mpf(float(pay)) <= a * mpmath.exp((a - 1) * log) * unit
                assert mpmath.mpf(float(cost)) >= (a - 1) * mpmath.exp(a * log) * unit


@pytest.mark.parametrize("order", [1.0, 1.3, 2.0, 5.0])
def test_whatever_the_ratios_are_no_law_exceeds_what_its_divergence_allows(order):
    """Σ a·P − Σ b·Q ≤ c at the true divergence of random laws, and no room is left at the true ratios."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        true = divergence(order, p, q)
        for logs in (np.log(p / q), rng.normal(size=4) * 2):
            plane = Hyperplane(order=order, log_ratios=tuple(logs.tolist()), scale=true)
            pays, costs = plane.sides()
            left = plane.allowed(true) - (pays @ p - costs @ q)
            assert left >= -1e-15
        room = Hyperplane(order=order, log_ratios=tuple(np.log(p / q).tolist()), scale=true)
        assert room.allowed(true) - (room.sides()[0] @ p - room.sides()[1] @ q) <= 1e-10


def together():
    """Both sides hang together as closely as they can."""
    cuts = np.union1d(np.cumsum(P)[:-1], np.cumsum(Q)[:-1])
    parts = np.diff(cuts, prepend=0.0, append=1.0)
    middles = np.append(cuts, 1.0) - parts / 2
    found = np.zeros((3, 3))
    np.add.at(found, tuple(np.searchsorted(np.cumsum(side)[:-1], middles) for side in (P, Q)), parts)
    return found


JOINT = np.outer(P, Q)


@pytest.mark.parametrize("joint", [JOINT, together()], ids=["independent", "together"])
@pytest.mark.parametrize(("order", "claim"), [(1.0, ZCDP), (2.0, ZCDP), (3.0, lambda e: RenyiDP(3.0, e))])
def test_the_mean_of_the_e_value_is_at_most_one(joint, order, claim):
    """Over all outcomes of three runs, of laws that just keep the claim at this order; bets of any kind."""
    true = divergence(order, P, Q)
    tested = claim(true / order if claim is ZCDP else true)
    against = 0.3 * tested.parameter
    other = bet_of(order, joint, 0.0, ratios=[-1.0, 0.2, 1.7])
    for bet in (bet_of(order, joint, against), other, bet_of(order, joint, against, event_share=0.4)):
        mean = 0.0
        for runs in product(range(9), repeat=3):
            table = np.bincount(runs, minlength=9).reshape(3, 3)
            chance = float(np.prod(joint.ravel()[list(runs)]))
            if chance:
                mean += chance * math.exp(log_e_value(counts_of(table), tested, bet))
        assert 0.2 < mean <= 1 + 1e-12


def test_the_evidence_falls_in_the_parameter_and_the_bound_is_where_it_ends():
    rng = np.random.default_rng(2)
    counts = counts_of(rng.multinomial(50_000, JOINT.ravel()).reshape(3, 3))
    bet = bet_of(1.0, JOINT, 0.25)
    logs = [log_e_value(counts, ZCDP(x), bet) for x in np.linspace(0, 3, 60)]
    assert all(before >= after for before, after in pairwise(logs))
    found = lower_bound(bet_on(counts, ZCDP(0.1), bet), ZCDP(0.1), alpha=1e-3)
    assert log_e_value(counts, ZCDP(found), bet) >= math.log(1e3)
    assert log_e_value(counts, ZCDP(found + 1e-6), bet) < math.log(1e3)
    assert 0.9 * divergence(1.0, P, Q) < found < divergence(1.0, P, Q)
    assert OnCells(ZCDP(0.1), bet.cells).divergence_seen(counts) == pytest.approx(divergence(1.0, P, Q), rel=0.03)


def test_what_would_have_been_detected_is_refuted_as_often_as_said():
    """A mechanism whose hyperplane mean is that of the detectable parameter: 95 % of its checks refute the claim."""
    rng, n, alpha = np.random.default_rng(3), 20_000, 1e-3
    claim = RenyiDP(2.0, 0.9 * divergence(2.0, P, Q))
    bet = bet_of(2.0, JOINT, claim.epsilon)
    tables = [rng.multinomial(n, JOINT.ravel()).reshape(3, 3) for _ in range(300)]
    limits = [detectable_parameter(bet_on(counts_of(table), claim, bet), claim, alpha=alpha) for table in tables[:5]]
    assert max(limits) < 1.2 * claim.epsilon
    stated = RenyiDP(2.0, claim.epsilon - (max(limits) - divergence(2.0, P, Q)))  # so that the truth is detectable
    caught = sum(log_e_value(counts_of(t), stated, bet) >= math.log(1 / alpha) for t in tables)
    assert caught >= stats.binom.isf(1 - 1e-6, 300, 0.93)


@pytest.mark.parametrize(("order", "epsilon", "runs"), [(2.0, 1.0, 20_000), (2.0, 1.0, 200_000), (4.0, 0.5, 50_000)])
def test_a_gaussian_of_what_would_have_been_detected_is_refuted(order, epsilon, runs):
    """Its cells show less than its divergence: at the parameter that they would have to show, 29 to 47 % were.

    It is an estimate, said to be of about 95 %: 68 to 95 % are.
    """
    claim, alpha, rng = RenyiDP(order, epsilon), 0.05, np.random.default_rng(4)
    cuts = np.linspace(-2.5, 3.5, 17)

    def law(parameter):
        sides = (stats.norm.cdf(cuts - shift) for shift in (math.sqrt(2 * parameter / order), 0.0))
        return np.outer(*(np.diff(side, prepend=0.0, append=1.0) for side in sides))

    own = law(epsilon)
    bet = bet_of(order, own, epsilon)
    limit = detectable_parameter(bet_on(counts_of(np.round(runs * own).astype(int)), claim, bet), claim, alpha=alpha)
    tables = rng.multinomial(runs, law(limit).ravel(), 200).reshape(200, *own.shape)
    assert np.mean([log_e_value(counts_of(table), claim, bet) >= math.log(1 / alpha) for table in tables]) > 0.6


def test_a_bet_that_nothing_can_win_does_not_say_what_it_would_have_caught():
    """Likelihood ratios from e^−0.2 to e^0.2: X is at most 1.2 − e^−0.2 = 0.38, and ρ = 2 allows a mean of 2."""
    bet = CellsEstimate(joint=(0.3, 0.2, 0.2, 0.3), order=1.0, log_ratios=(-0.2, 0.2), against=2.0)
    counts = Counts(n11=30_000, n10=20_000, n01=20_000, n00=30_000, cells=(30_000, 20_000, 20_000, 30_000))
    estimate = Estimate(p=0.5, q=0.5, cells=bet)
    assert detectable_parameter(bet_on(counts, ZCDP(2.0), estimate), ZCDP(2.0), alpha=1e-6) == math.inf


def test_where_cells_could_never_win_an_event_is_confirmed():
    """ρ = 0.02 against a claim of 2: the table of cells would only seem to say more."""

    def much_noise(rng, data, size):
        return 0.2 * data[0] + rng.standard_normal(size)

    found = check(much_noise, claim=ZCDP(2.0), neighbours=ONE, runs=30_000, search_runs=200_000, seed=1, workers=1)
    assert found.witness.estimate.cells is None


def test_other_claims_take_the_event_of_the_cells():
    """Cells say nothing of (ε, δ), nor of orders above the claim's: the four counts do."""
    counts = counts_of(np.random.default_rng(0).multinomial(5_000, JOINT.ravel()).reshape(3, 3))
    bet = bet_of(4.0, JOINT, 0.5)
    plain = Counts(n10=counts.n10, n11=counts.n11, n01=counts.n01, n00=counts.n00)
    for claim in (dpw.PureDP(0.3), RenyiDP(2.0, 0.2)):
        assert log_e_value(counts, claim, bet) == log_e_value(plain, claim, Estimate(p=bet.p, q=bet.q, both=bet.both))


def test_counts_of_cells_add_up_and_swap():
    one, other = counts_of(np.arange(9).reshape(3, 3)), counts_of(np.ones((3, 3), np.int64))
    assert (one + other).cells == tuple(k + 1 for k in range(9))
    assert (Counts() + one) == one
    assert one.swapped().cells == (0, 3, 6, 1, 4, 7, 2, 5, 8)
    assert one.swapped().swapped() == one
    with pytest.raises(ValueError, match="must add up to the 3 runs"):
        Counts(n10=3, cells=(1, 1, 0, 0))
    with pytest.raises(ValueError, match="must be a square number"):
        Counts(n10=3, cells=(1, 1, 1))


@pytest.mark.parametrize(
    ("mechanism", "claim", "least"),
    soon([(gaussian, ZCDP(0.5), 0.94), (gaussian, RenyiDP(2.0, 1.0), 0.9), (two_values, ZCDP(0.5), 0.92)], 0),
    ids=["one value", "Rényi", "two values"],
)
def test_a_bound_by_cells_shows_nearly_all_of_a_gaussian(mechanism, claim, least):
    """Where the best event shows 0.78 of ρ and 0.66 of D₂ (quadrature); confidence 0.999."""
    found = bound(mechanism, claim=claim, neighbours=ONE, runs=400_000, search_runs=150_000, seed=1, workers=1)
    assert least * claim.parameter < found.lower_bound < claim.parameter
    assert len(found.counts.cells) == len(found.witness.estimate.cells.joint)
    assert "cells" in str(found)


@pytest.mark.campaign
@pytest.mark.filterwarnings("error")
def test_a_bound_of_a_large_order_rests_on_an_event_where_cells_overflow():
    """Two Gaussians: D_α = α/2, of which an event shows what the rarest runs tell."""
    found = bound(gaussian, claim=RenyiDP(1e6, 1.0), neighbours=ONE, runs=50_000, search_runs=30_000, seed=1, workers=1)
    assert found.lower_bound > 1.5
    assert found.witness.estimate.cells is None


@pytest.mark.campaign
def test_where_cells_do_not_keep_what_they_promised_the_event_is_left():
    """A hyperplane for likelihood ratios far beyond those that there are."""
    rng = np.random.default_rng(5)
    claim, counts = RenyiDP(8.0, 0.1), counts_of(rng.multinomial(30_000, JOINT.ravel()).reshape(3, 3))
    bounds = [
        lower_bound(bet_on(counts, claim, bet), claim, alpha=1e-3)
        for bet in (bet_of(8.0, JOINT, 3.0, ratios=[-4, 0, 4], event_share=share) for share in (0.0, 0.25))
    ]
    assert bounds[0] == 0.0
    assert 0.5 < bounds[1] < divergence(8.0, P, Q)


def test_the_estimate_beside_cells_is_that_of_their_event():
    rng = np.random.default_rng(3)
    x, y = 1 + rng.standard_normal((8_000, 1)), rng.standard_normal((8_000, 1))
    claim, pair = ZCDP(0.1), Pair(np.array([0]), np.array([1]))
    plain = Candidate(pair=pair, event=Interval(coordinate=0, low=2.0), estimate=Estimate(p=0.16, q=0.02, both=0.0))
    aim = Aim(claim=claim, planned=8_000, log_threshold=math.log(1e6), of_bound=False)
    found = better_by_rows(x, y, plain, aim, GrowthAt(claim=claim, planned=8_000))
    assert isinstance(found.event, Cells)
    here, there = found.event.contains(x[4_000:]), found.event.contains(y[4_000:])  # the runs that did not learn it
    rates = found.estimate.p, found.estimate.q, found.estimate.both
    assert rates == pytest.approx((here.mean(), there.mean(), (here & there).mean()))


def test_a_share_on_the_event_loses_that_share_at_most():
    rng = np.random.default_rng(5)
    claim, counts = RenyiDP(2.0, 0.1), counts_of(rng.multinomial(3_000, JOINT.ravel()).reshape(3, 3))
    alone = bet_on(counts, claim, bet_of(2.0, JOINT, 0.1))
    shared = bet_on(counts, claim, bet_of(2.0, JOINT, 0.1, event_share=0.25))
    assert shared.log_e_value(claim) >= alone.log_e_value(claim) + math.log(0.75)
    assert lower_bound(shared, claim, alpha=1e-3) >= lower_bound(alone, claim, alpha=0.75e-3)
    # A part that refutes alone, with its share, refutes with the other part too.
    assert shared.log_e_value(claim.at(lower_bound(shared, claim, alpha=1e-3))) >= math.log(1e3)
    weak = claim.at(0.9 * divergence(2.0, P, Q))
    limits = [detectable_parameter(bet_on(counts, weak, b), weak, alpha=a) for b, a in (
        (bet_of(2.0, JOINT, weak.parameter), 0.75e-3), (bet_of(2.0, JOINT, weak.parameter, event_share=0.25), 1e-3),
    )]  # fmt: skip
    assert limits[1] <= limits[0]


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is cells
def test_a_claim_that_no_event_refutes_soon_is_refuted_by_cells_saved_and_replayed(tmp_path):
    claim = ZCDP(0.42)  # events of a Gaussian show 0.39 at most
    verdict = check(gaussian, claim=claim, neighbours=ONE, search_runs=60_000, runs=200_000, seed=2, workers=1)
    assert isinstance(verdict, Violation)
    assert 0.42 <= verdict.lower_bound < 0.5
    assert "divergence of order" in str(verdict)
    verdict.witness.save(tmp_path / "w.json")
    witness = Witness.load(tmp_path / "w.json")
    assert witness.to_json() == verdict.witness.to_json()
    assert isinstance(replay(witness, gaussian, seed=7, workers=1), Violation)
    kept = replay(witness, gaussian, claim=ZCDP(0.5), runs=100_000, seed=8, workers=1)
    assert not isinstance(kept, Violation)
    assert 0.5 < kept.detectable < 0.55


@pytest.mark.campaign
def test_a_damaged_bet_on_cells_is_refused(tmp_path):
    found = bound(gaussian, claim=ZCDP(0.5), neighbours=ONE, runs=50_000, search_runs=30_000, seed=1, workers=1)
    written = json.loads(json.dumps(found.witness.to_json()))
    logs = written["estimate"]["cells"]["log_ratios"]
    for key, value in (
        ("joint", [0.5, 0.5]), ("log_ratios", [1.0]), ("against", -1), ("joint", ["x"]), ("order", 0.5),
        ("order", 1e308), ("against", 1e308), ("event_share", 1.0), ("event_share", -0.1), ("event_share", 1e-320),
        ("log_ratios", [1e308, *logs[1:]]),
    ):  # fmt: skip
        damaged = json.loads(json.dumps(written))
        damaged["estimate"]["cells"][key] = value
        with pytest.raises(InvalidWitness):
            Witness.from_json(damaged)
    written["counts"]["cells"][0] += 1
    with pytest.raises(InvalidWitness, match="must add up"):
        Witness.from_json(written)


def test_cells_lie_between_their_cuts():
    score = ScoreThreshold([0], [[0.0, 1.0, 2.0]], [[-1.0, 0.0, 1.0, 2.0, 0.5]], 0.0)
    event = Cells(score, [-1.0, 0.0, 1.0])
    rows = np.array([[-5.0], [0.0], [1.5], [2.0], [np.nan]])
    assert event.cell_of(rows).tolist() == [0, 1, 2, 3, 2]
    assert (
        event.contains(rows).tolist() == event.inside[event.cell_of(rows)].tolist() == [False, False, True, True, True]
    )
    assert event_from_json(json.loads(json.dumps(event.to_json()))).to_json() == event.to_json()
    assert event.describe() == "the upper 2 of 4 cells: learned score of values 1 above 0"
    with pytest.raises(ValueError, match="must be one of them"):
        Cells(score, [-1.0, 1.0])
    with pytest.raises(InvalidWitness, match="rising numbers"):
        event_from_json({**event.to_json(), "cuts": [1.0, 0.0]})


def rare(rng, data):
    """N(0, σ²) against N(1, σ²) with σ = 3.43: `gaussian_wrong_sigma` at ε = 1, δ = 10⁻⁵."""
    return data[0] + math.sqrt(math.log(1.25e5)) * rng.standard_normal()


@pytest.mark.campaign
@pytest.mark.parametrize("seed", sampled(range(10), 1))
def test_a_violation_in_the_tail_is_refuted_where_the_runs_are_given(seed):
    """δ(1) is 3.7·10⁻⁵, shown by one event in 2,000: about 3·10⁷ coupled runs by the best cut at α = 10⁻⁶."""
    verdict = check(rare, claim=dpw.ApproxDP(1.0, 1e-5), neighbours=ONE, runs=200_000_000, max_time=300.0, seed=seed)
    assert isinstance(verdict, Violation)
    assert 1.0 <= verdict.lower_bound < 1.4
