"""The band of a privacy profile: its tightness, and claims outside it. `test_level` simulates its level."""

import functools
import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr, ndtri

import dpwitness as dpw
from dpwitness.algorithms.gaussian_noise import gaussian_mechanism
from dpwitness.algorithms.noise_addition import laplace_mechanism
from dpwitness.api.profile import _covering
from dpwitness.claims import ZCDP, ApproxDP, GaussianDP, PrivacyProfile, RenyiDP, TradeOff
from dpwitness.errors import InvalidWitness
from dpwitness.events import Interval
from dpwitness.evidence import Counts, Estimate, profile_band
from dpwitness.evidence.profile_band import (
    BandLine,
    PlannedLine,
    ProfileBand,
    band_of,
    best_bets,
    detectable_delta,
    lower_means,
)
from dpwitness.report.plots import claimed_delta
from dpwitness.results.saved import result_from_json
from truth import gaussian_delta

#: The parameter of `gaussian_mechanism` that makes it N(q, 1): μ = 1.
UNIT = math.sqrt(2 * math.log(1.25 / 1e-5))
GRID = np.linspace(0.0, 5.0, 251)
TRUTH = np.array([gaussian_delta(e, mu=1.0) for e in GRID])


def probabilities(epsilon, mu=1.0):
    """(p, q) of the best event at ε for N(μ, 1) against N(0, 1)."""
    return float(ndtr(mu / 2 - epsilon / mu)), float(ndtr(-mu / 2 - epsilon / mu))


def planned(epsilons, alpha, mu=1.0, swapped=False):
    """Lines of these slopes that share alpha; both sides are moved by the same noise."""
    rates = [probabilities(epsilon, mu) for epsilon in epsilons]
    return [
        PlannedLine(slope=math.exp(e), alpha=alpha / len(rates), estimate=Estimate(p=p, q=q, both=q), swapped=swapped)
        for e, (p, q) in zip(epsilons, rates, strict=True)
    ]


@pytest.mark.parametrize("slope", [1.0, 2.5])
@pytest.mark.parametrize("law", [(0.5, 0.2, 0.1, 0.2), (0.3, 0.0, 0.0, 0.7), (0.1, 0.6, 0.2, 0.1)])
def test_a_lower_mean_is_too_large_with_probability_alpha_at_most(slope, law):
    """All counts of twelve runs, with their probabilities."""
    alpha, n, law = 0.4, 12, np.array(law)
    cells = np.array([c for c in itertools.product(range(n + 1), repeat=4) if sum(c) == n], np.float64)
    chances = stats.multinomial(n, law).pmf(cells)
    payoffs = np.array([1.0, 1 - slope, -slope, 0.0])
    values, thresholds = np.tile(payoffs, (len(cells), 1)), np.full(len(cells), -math.log(alpha))
    bets = best_bets(n * law[None] + 0.5, payoffs[None], thresholds[:1])
    found = lower_means(cells, values, np.repeat(bets, len(cells)), thresholds)
    mean = float(law @ payoffs)
    assert chances.sum() == pytest.approx(1.0)
    assert 0 < chances[found > mean].sum() <= alpha


@given(
    p=st.floats(0, 1), q=st.floats(0, 1), slope=st.floats(1e-3, 1e3), other=st.floats(1e-3, 1e3),
    low=st.floats(0, 1), high=st.floats(0, 1),
)  # fmt: skip
def test_a_line_lies_below_its_event_at_every_slope(p, q, slope, other, low, high):
    line = BandLine(slope=slope, difference=p - slope * q, q_low=low * q, q_high=q + high * (1 - q))
    assert line.at(other) <= p - other * q + 1e-12 * (1 + slope + other)


@pytest.mark.parametrize("swapped", [False, True])
def test_the_power_of_one_line_is_that_of_its_own_test(swapped):
    """A test of rates (0.1, 0.5), and its complement in the other direction, mixed with constant answers."""
    line = BandLine(slope=1.0, difference=0.4, q_low=0.1, q_high=0.1, swapped=swapped)
    power = ProfileBand((line,)).power([0.05, 0.1, 0.3, 0.5, 1.0])
    assert power == pytest.approx([0.25, 0.5, 0.5 + 0.2 * 5 / 9, 0.9, 1.0], abs=5e-3)


@functools.cache
def exact_band(mu=1.0, both_directions=False, n=10**9):
    """The band of counts that are exactly as expected."""
    epsilons = np.arange(0.0, 5.0, 0.05)
    found = []
    for swapped in (False, True) if both_directions else (False,):
        lines = planned(epsilons, 0.001, mu, swapped)
        counts = []
        for line in lines:
            p, q = (round(n * value) for value in (line.estimate.p, line.estimate.q))
            counts.append(Counts(n10=p - q, n11=q, n00=n - p))
        found += band_of(lines, counts, n).lines
    return ProfileBand(tuple(found))


def test_the_three_bounds_of_a_line_share_its_level(monkeypatch):
    """Exactly: a simulated level would not see a factor of two."""
    lines, levels = [*planned([0.0], 0.01), *planned([1.0], 0.03)], []

    def recorded(counted, values, bets, thresholds):
        levels.append(np.exp(-thresholds))
        return np.zeros(len(counted))

    monkeypatch.setattr(profile_band, "lower_means", recorded)
    band_of(lines, [Counts(n10=5, n11=5, n01=5, n00=5)] * 2, 20)
    assert len(levels) == 3
    assert np.all(np.sum(levels, axis=0) <= np.array([line.alpha for line in lines]) * (1 + 1e-12))


def test_the_bets_of_a_mean_share_its_wealth_and_none_can_lose_more(monkeypatch):
    def recorded(counted, values, bets, log_weights, thresholds):
        assert np.exp(log_weights).sum() <= 1 + 1e-12
        assert np.all(bets.T * np.ptp(values, axis=1) < 1)
        assert bets.shape[1] == len(log_weights)
        return np.zeros(len(counted))

    values = np.array([[1.0, -1.0, -2.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
    monkeypatch.setattr(profile_band, "_lower_means", recorded)
    lower_means(np.full((2, 4), 3.0), values, np.array([0.1, 100.0]), np.full(2, 5.0))


def test_the_band_of_a_billion_runs_is_near_the_closed_form():
    """Relative to δ: 2.5 standard errors of the difference and what √(2 log 1/α) asks for; 0.036 at ε = 3."""
    band = exact_band().delta(GRID)
    assert np.all(band <= TRUTH)
    for epsilon, within in ((0.0, 1e-3), (1.0, 2e-3), (2.0, 0.01), (3.0, 0.036)):
        k = round(epsilon / 0.02)
        assert band[k] >= (1 - within) * TRUTH[k]


@pytest.mark.campaign
def test_the_power_lies_below_the_gaussian_trade_off_function():
    """Dong, Roth & Su 2022, Definition 3: G(a) = Φ(Φ⁻¹(a) + μ)."""
    rates = np.array([1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99])
    truth = ndtr(ndtri(rates) + 1)
    for both in (False, True):
        power = exact_band(both_directions=both).power(rates)
        assert np.all(power <= truth)
        # One direction alone tells of the small rates what the slopes from 1 on say.
        assert np.all(power[1:5] >= truth[1:5] * 0.97)
    assert np.all(power[1:] >= truth[1:] * 0.98)
    assert exact_band().power(0.0) == 0
    assert exact_band().power(1.0) == 1


CLAIMS = [
    (ApproxDP(1.0, TRUTH[50]), ApproxDP(1.0, TRUTH[50] * 0.97)),
    (GaussianDP(1.0), GaussianDP(0.97)),
    (ZCDP(0.5), ZCDP(0.3)),
    (RenyiDP(2.0, 1.0), RenyiDP(2.0, 0.6)),
    (
        PrivacyProfile([(0.5, TRUTH[25]), (2.0, TRUTH[100])]),
        PrivacyProfile([(0.5, TRUTH[25]), (2.0, TRUTH[100] * 0.95)]),
    ),
    (TradeOff(lambda a: float(ndtr(-ndtri(a) - 1.0))), TradeOff(lambda a: float(ndtr(-ndtri(a) - 0.97)))),
]  # fmt: skip


@pytest.mark.parametrize(("true", "false"), CLAIMS, ids=[str(true)[:20] for true, _ in CLAIMS])
def test_a_claim_that_holds_lies_inside_and_one_that_does_not_outside(true, false):
    lines = exact_band().lines
    assert max(line.outside(true) for line in lines) <= 0
    assert max(line.outside(false) for line in lines) > 0


@pytest.fixture(scope="module")
def found():
    return dpw.profile(
        gaussian_mechanism, epsilon=UNIT, claim=GaussianDP(0.8), runs=400_000, seed=1, workers=1, alpha=0.001
    )


def released(rng, data, epsilon, size):
    """A one comes with 0.3 from 1 and 0.001 from 0: only from 1 to 0 is a claim of ε = 1 broken."""
    return 1.0 * (rng.random(size) < np.where(data[0] > 0.5, 0.3, 0.001))


@pytest.mark.usefixtures("asked_here")
@pytest.mark.parametrize("pair", [([0.0], [1.0]), ([1.0], [0.0])])
def test_a_witness_has_first_the_input_on_which_its_event_is_likelier(pair):
    few = {"runs": 20_000, "search_runs": 4_000, "seed": 1, "workers": 1, "neighbours": dpw.pairs(pair)}
    found = dpw.profile(released, epsilon=1.0, claim=1.0, **few)
    assert found.refuted
    assert [list(side) for side in found.witness.pair.sides] == [[1.0], [0.0]]
    assert found.witness.counts.hits > found.witness.counts.neighbour_hits
    measured = dpw.profile(released, epsilon=1.0, **few)
    assert (measured.claim, measured.witness) == (None, None)  # what was not to be judged is not accused


@pytest.mark.parametrize("first", [0, 1])
def test_the_events_of_a_band_share_alpha_and_are_planned_in_the_direction_in_which_they_show_most(first):
    """Thresholds of N(1, 1) and N(0, 1), in either order."""
    cuts = np.linspace(-4.0, 5.0, 60)
    p, q = ndtr(first - cuts), ndtr(1 - first - cuts)
    both = np.minimum(p, q)
    cells = np.stack([p - both, both, q - both, 1 - np.maximum(p, q)], axis=1)
    thresholds = [Interval(coordinate=0, low=cut) for cut in cuts.tolist()]
    alpha = 0.01
    events, lines = _covering(thresholds, cells, 100_000, 100_000, alpha)
    assert sum(line.alpha for line in lines) == pytest.approx(alpha)
    for event, line in zip(events, lines, strict=True):
        on_one, on_zero = ndtr(1 - event.low), ndtr(-event.low)
        rates = (on_zero, on_one) if line.swapped is (first == 1) else (on_one, on_zero)
        assert (line.estimate.p, line.estimate.q) == pytest.approx(rates)
        assert line.estimate.p > line.slope * line.estimate.q


def test_a_claim_outside_the_band_is_refuted_with_a_witness_that_replays(found, tmp_path):
    assert found.refuted
    assert "is not 0.8-GDP" in repr(found)
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(found.to_json(), allow_nan=False))
    again = dpw.replay(dpw.Witness.load(path), gaussian_mechanism, seed=2, workers=1, runs=400_000)
    assert isinstance(again, dpw.Violation)
    assert again.claim == GaussianDP(0.8)
    read = result_from_json(json.loads(path.read_text()))
    assert read.to_json() == found.to_json()
    assert np.array_equal(read.delta(GRID), found.delta(GRID))
    path.write_text(json.dumps(found.to_json() | {"witness": None}))
    with pytest.raises(InvalidWitness, match=r"profile\.json holds no witness"):
        dpw.Witness.load(path)


def test_a_profile_says_which_delta_it_could_have_shown_where_it_ends(found):
    end = found.largest_epsilon + 0.05
    assert found.delta(end) == 0 < found.detectable_delta < 0.01
    assert found.to_json()["detectable_delta"] == found.detectable_delta
    assert f"no δ(ε) below {found.detectable_delta:.3g}" in str(found)


@pytest.mark.campaign
@pytest.mark.parametrize(("epsilon", "runs"), [(0.0, 1_000), (1.5, 100_000), (4.0, 10**6)])
def test_the_detectable_delta_is_in_the_band_in_95_percent_of_samples(epsilon, runs):
    samples, rng = 500, np.random.default_rng(3)
    delta = detectable_delta(epsilon, runs, alpha=0.01, power=0.95)
    shown = []
    for part in (1.0, 0.8):
        line = PlannedLine(slope=math.exp(epsilon), alpha=0.01, estimate=Estimate(p=part * delta, q=0.0))
        hits = rng.binomial(runs, part * delta, samples).tolist()
        bands = {n: band_of([line], [Counts(n10=n, n00=runs - n)], runs).delta(epsilon) > 0 for n in set(hits)}
        shown.append(sum(bands[n] for n in hits))
    assert shown[1] < stats.binom.ppf(1e-6, samples, 0.95) <= shown[0]
    assert detectable_delta(epsilon, 2, alpha=0.01, power=0.95) == math.inf


@pytest.mark.campaign
def test_a_profile_is_repeatable_and_a_claim_that_holds_is_not_refuted():
    first, second = (
        dpw.profile(
            laplace_mechanism, epsilon=1.0, claim=1.0, runs=20_000, search_runs=4_000, seed=3, workers=workers
        ).to_json()
        for workers in (1, 2)
    )
    assert first["verdict"] == "not-refuted"
    assert first["witness"] is None
    assert first["events"] == second["events"]


def test_the_picture_draws_what_a_claim_allows():
    """Nowhere less: else it would convict a mechanism that just keeps its claim."""
    drawn = claimed_delta(GaussianDP(1.0), GRID)
    assert np.all(drawn >= TRUTH - 1e-12)
    assert drawn == pytest.approx(TRUTH, rel=5e-3, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1.05, 3.05])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
def test_the_picture_of_a_claim_with_corners_is_exact(epsilon, delta):
    # Kairouz, Oh & Viswanath 2015, Theorem 3.1: the corner besides (0, δ) lies where p + q = 1.
    q = (1 - delta) / (1 + math.exp(epsilon))
    at = np.linspace(0.0, 1.2 * epsilon, 25)
    truth = np.maximum(1 - q - np.exp(at) * q, delta)
    assert claimed_delta(ApproxDP(epsilon, delta), at) == pytest.approx(truth, abs=1e-12)
    assert claimed_delta(TradeOff([(0.0, 1 - delta), (q, q), (1 - delta, 0.0)]), at) == pytest.approx(truth, abs=1e-12)
