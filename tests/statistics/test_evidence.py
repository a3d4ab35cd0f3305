import itertools
import math
from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import special, stats
from scipy.optimize import brentq

from dpwitness.claims import ZCDP, ApproxDP, GaussianDP, HalfPlane, PrivacyProfile, RenyiDP
from dpwitness.evidence import (
    Estimate,
    best_bet,
    bet_on,
    detectable_at_best,
    detectable_at_rate,
    detectable_parameter,
    detectable_probability,
    event_bet,
    growth_rate,
    half_of_excess,
    holm,
    log_e_value,
    lower_bound,
    p_value,
    runs_needed,
    runs_to_detect,
    why_enough,
    why_excluded,
)
from dpwitness.evidence.bet import BET_GRID, EXACT_HITS, PARAMETERS, bets_and_weights
from dpwitness.evidence.bounds import RARE_RATE
from dpwitness.evidence.counts import Counts, CountsTable
from dpwitness.evidence.portfolio import Epoch, Stakes, largest_bet, log_e_values_of
from reference import best_growth, log_wealth, payoffs
from running import soon
from truth import gaussian_delta

cell, few, unit = st.integers(0, 10**7), st.integers(0, 40), st.floats(0, 1)
any_counts = st.builds(Counts, n10=cell, n11=cell, n01=cell, n00=cell)
small_counts = st.builds(Counts, n10=few, n11=few, n01=few, n00=few)
epsilons = st.floats(0.01, 6)
deltas = st.sampled_from([0.0, 1e-6, 1e-3, 0.1])
hints = st.one_of(st.none(), st.builds(Estimate, p=unit, q=unit))

#: Event probabilities and claims: cases with clear and with small violations, common and rare events.
CASES = [
    (0.5, 0.25, 0.5), (0.1, 0.05, 0.5), (0.02, 0.005, 0.7), (0.01, 0.006, 0.2), (0.3, 0.01, 1.5), (0.001, 0.0, 1.0),
    (0.9, 0.5, 0.4),
]  # fmt: skip


def law(p, q, both=None):
    """Probabilities of the four cells; of independent sides where nothing else is said."""
    both = p * q if both is None else both
    return np.maximum([p - both, both, q - both, 1 - p - q + both], 0.0)


def counts_of(cells):
    return Counts(**dict(zip(("n10", "n11", "n01", "n00"), map(int, cells), strict=True)))


def sample(rng, p, q, n):
    """Counts of n paired runs with independent sides."""
    return counts_of(rng.multinomial(n, law(p, q)))


def looks(rng, cells, runs, number):
    """The counts after each of so many batches of runs."""
    return [counts_of(path) for path in np.cumsum(rng.multinomial(runs, cells, size=number), axis=0)]


def expected(p, q, runs):
    """Counts as they are expected of independent sides."""
    hits, others, both = round(p * runs), round(q * runs), round(p * q * runs)
    return Counts(n10=hits - both, n11=both, n01=others - both, n00=runs - hits - others + both)


def refutes(counts, claim, hint, alpha):
    return log_e_value(counts, claim, hint) >= math.log(1 / alpha)


@given(small_counts, epsilons, deltas)
def test_e_value_is_the_mixture_of_run_by_run_wealth(counts, epsilon, delta):
    claim, hint = ApproxDP(epsilon=epsilon, delta=delta), Estimate(p=0.4, q=0.1)
    xs = payoffs(counts, claim)
    bets = BET_GRID / (claim.ratio + delta)
    spread = np.logaddexp.reduce([log_wealth(xs, lam) for lam in bets]) - math.log(len(bets))
    favourite = log_wealth(xs, float(best_bet(0.4, 0.1, HalfPlane(math.exp(epsilon), delta))))
    both = np.logaddexp(spread, favourite) - math.log(2)
    assert log_e_value(counts, claim, hint) == pytest.approx(both, abs=1e-9, rel=1e-9)
    assert log_e_value(counts, claim) == pytest.approx(spread, abs=1e-9, rel=1e-9)


ESTIMATES = [
    None, Estimate(p=0.6, q=0.1), Estimate(p=0.6, q=0.2, both=0.2), Estimate(p=0.1, q=0.0, both=0.0),
    Estimate(p=0.3, q=0.3, both=0.1),
]  # fmt: skip


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("claim", [ApproxDP(1.0), ApproxDP(0.5, 1e-3), GaussianDP(1.0), ZCDP(0.1)], ids=str)
def test_the_bets_of_an_e_value_share_its_wealth(claim, estimate):
    values, log_weights = bets_and_weights(claim, estimate)
    assert np.exp(log_weights).sum() <= 1 + 1e-12
    assert np.isfinite(values).all()  # no bet can lose more than all


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("runs", [1, 2, 5])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.7, 0.01), (0.3, 0.05)])
def test_the_mean_of_an_e_value_is_one_at_the_boundary(epsilon, delta, runs, estimate):
    """The defining property, by enumeration of all counts; sides share none, some or all of their randomness."""
    claim, factorial = ApproxDP(epsilon, delta), math.factorial
    counts = [found for found in itertools.product(range(runs + 1), repeat=4) if sum(found) == runs]
    values = [math.exp(log_e_value(counts_of(found), claim, estimate)) for found in counts]
    for q in (0.0, 0.1, 0.2, 0.3):
        p = math.exp(epsilon) * q + delta
        for coupling in (0.0, 0.5, 1.0):
            cells = law(p, q, (1 - coupling) * p * q + coupling * min(p, q))
            chances = [
                factorial(runs) * math.prod(c**n / factorial(n) for c, n in zip(cells, found, strict=True))
                for found in counts
            ]
            assert np.dot(chances, values) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.campaign
@given(any_counts, epsilons, hints)
def test_a_larger_delta_never_strengthens_the_bound(counts, epsilon, hint):
    bounds = [lower_bound(event_bet(counts), ApproxDP(0.0, d), alpha=0.01) for d in (0.0, 1e-3, 0.05)]
    assert bounds == sorted(bounds, reverse=True)


@given(any_counts, any_counts)
def test_counts_add_up_and_swapping_exchanges_the_sides(a, b):
    assert a + b == b + a
    assert (a + b).runs == a.runs + b.runs
    assert Counts() + a == a
    assert a.swapped() == Counts(n10=a.n01, n11=a.n11, n01=a.n10, n00=a.n00)
    assert (a.hits, a.neighbour_hits, a.swapped().hits) == (a.n10 + a.n11, a.n01 + a.n11, a.neighbour_hits)
    with pytest.raises(ValueError, match="n01=-1"):
        Counts(n01=-1)


@given(any_counts, hints, deltas)
def test_lower_bound_is_where_the_e_value_stops_to_refute(counts, hint, delta):
    """To a thousandth, and to a ten-thousandth of small bounds."""
    lower = lower_bound(event_bet(counts, hint), ApproxDP(0.0, delta), alpha=1e-3)
    at, above = (min(x, 700) for x in (lower, max(lower * 1.0011, lower + 1.01e-4)))
    assert lower == 0 or log_e_value(counts, ApproxDP(at, delta), hint) >= math.log(1e3) - 1e-6
    assert lower == 0 or lower >= 600 or log_e_value(counts, ApproxDP(above, delta), hint) < math.log(1e3) + 1e-6


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan])
def test_a_lower_bound_asks_for_a_level_between_0_and_1(alpha):
    with pytest.raises(ValueError, match=f"alpha={alpha}"):
        lower_bound(event_bet(Counts(n10=10)), ApproxDP(0.0), alpha=alpha)


@given(any_counts, hints, deltas, st.floats(0, 20))
@example(Counts(n10=40_000, n01=24_120, n00=10**6), Estimate(p=0.04, q=0.024), 0.0, 0.48249)
def test_the_bound_of_a_refuted_claim_is_at_least_the_claim(counts, hint, delta, epsilon):
    """And that of one that is not refuted is below it: the claim and its bound say the same, whatever was counted."""
    alpha, claim = 1e-3, ApproxDP(epsilon=epsilon, delta=delta)
    lower = lower_bound(event_bet(counts, hint), claim, alpha=alpha)
    if refutes(counts, claim, hint, alpha):
        assert lower >= epsilon
    else:
        assert lower < epsilon or lower == epsilon == 0


@pytest.mark.parametrize("delta", [0.0, 0.005])
@pytest.mark.parametrize("hint", [None, Estimate(p=0.04, q=0.024), Estimate(p=0.04, q=0.024, both=0.02)])
def test_the_bound_of_a_claim_that_is_only_just_refuted_is_the_claim(hint, delta):
    """And that of one only just not refuted lies below it: δ and hint are those of the claim's own e-value."""
    counts, alpha = Counts(n10=20_000, n11=20_000, n01=4_000, n00=956_000), 1e-3
    end = brentq(lambda x: log_e_value(counts, ApproxDP(x, delta), hint) - math.log(1 / alpha), 0.0, 3.0, xtol=1e-9)
    refuted, standing = end - 1e-8, end + 1e-8
    assert 0.1 < refuted < 1
    assert lower_bound(event_bet(counts, hint), ApproxDP(refuted, delta), alpha=alpha) == refuted
    below = lower_bound(event_bet(counts, hint), ApproxDP(standing, delta), alpha=alpha)
    assert PARAMETERS[np.searchsorted(PARAMETERS, standing) - 1] == below < standing


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("seed", range(4))
def test_below_a_claim_that_stands_the_bound_is_the_last_point_of_the_grid_that_is_refuted(delta, seed):
    rng, claim, alpha = np.random.default_rng(seed), ApproxDP(1.0, delta), 0.05
    bet = event_bet(counts_of(rng.multinomial(3_000, [0.5, 0.05, 0.15, 0.3])), Estimate(p=0.55, q=0.2, both=0.05))
    points = bet.parameters(claim, above=False)
    evidence = np.array(list(bet.log_e_values(claim, points, claim)))
    assert np.all(np.diff(evidence) <= 1e-9)
    assert bet.log_e_value(claim) < -math.log(alpha) < evidence[0]
    assert lower_bound(bet, claim, alpha=alpha) == points[evidence >= -math.log(alpha)][-1]


def test_a_bound_stops_at_a_point_that_stands_below_a_claim_that_is_refuted():
    """Of a curved claim each point has a bet of its own: were those below it not asked, two bets would decide."""
    claim, counts, alpha = GaussianDP(1.0), Counts(n10=1158, n11=21, n00=22517), 1e-6
    bet = bet_on(counts, claim, Estimate(p=0.1, q=0.02))
    assert bet.log_e_value(claim) >= math.log(1 / alpha)
    assert 0.9 < lower_bound(bet, claim, alpha=alpha) < claim.parameter


@pytest.mark.parametrize(
    "claim", [0.03, 0.05001, *(pytest.param(claim, marks=pytest.mark.campaign) for claim in (0.05, 0.07))]
)
def test_bounds_with_a_claim_among_them_keep_their_level(claim):
    """True ε 0.05, a look after each of 3 batches: above it with probability at most α, whatever the claim."""
    rng = np.random.default_rng(24)
    alpha, seeds, true, q = 0.1, 120, 0.05, 0.1
    p = math.exp(true) * q
    hint = Estimate(p=p, q=q * 0.999, both=q * 0.999)
    above = 0
    for _ in range(seeds):
        seen = looks(rng, law(p, q, q), 100_000, 3)  # shared draws: X varies least
        above += any(lower_bound(event_bet(c, hint), ApproxDP(claim), alpha=alpha) > true for c in seen)
    assert above <= stats.binom.isf(1e-9, seeds, alpha)
    assert above > 0 or claim > true  # a bound that never comes near the truth would prove nothing


@pytest.mark.parametrize("coupling", [None, 0.0, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("most", [0.0, 0.3])
def test_growth_rate_is_the_maximum_over_all_bets_however_the_sides_are_coupled(coupling, most):
    """Of 3,000 violators of claims between ε = 0.01 and 6, against the zero of the slope found by halving alone."""
    rng = np.random.default_rng(26)
    slope = np.exp(np.exp(rng.uniform(math.log(0.01), math.log(6), 3_000)))
    p = np.exp(rng.uniform(math.log(1e-5), 0, slope.size))
    intercept = rng.uniform(0, most, slope.size) * p
    q = np.clip((p - intercept) / slope * np.exp(-rng.exponential(rng.choice([0.1, 1, 10], slope.size))), 0, 1)
    plane = HalfPlane(slope, intercept)
    both = None if coupling is None else np.maximum(coupling * np.minimum(p, q), p + q - 1)
    together = p * q if both is None else both
    cells = (p - together, together, q - together, 1 - p - q + together)
    values = (1 - intercept, 1 - slope - intercept, -slope - intercept, -intercept)
    low, high = np.zeros(slope.size), 0.999 / (slope + intercept)
    for _ in range(60):
        middle = (low + high) / 2
        rises = sum(c * x / (1 + middle * x) for c, x in zip(cells, values, strict=True)) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    best = sum(c * np.log1p(low * x) for c, x in zip(cells, values, strict=True))
    clear = best > 1e-8  # below it 14 nats take 10⁹ runs, and rounding shows
    assert np.mean(clear) > 0.5
    assert growth_rate(p, q, plane, both)[clear] == pytest.approx(best[clear], rel=1e-6)


@given(unit, st.floats(1e-9, 1), epsilons, deltas)
def test_nothing_grows_where_the_claim_holds(p, q, epsilon, delta):
    p = min(p, math.exp(epsilon) * q + delta)
    assert float(growth_rate(p, q, HalfPlane(math.exp(epsilon), delta))) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("epsilon", [360.0, 700.0])
def test_where_a_slope_is_huge_nothing_grows_and_nobody_is_warned(epsilon):
    steep = ApproxDP(epsilon=epsilon).half_plane()
    assert growth_rate(0.9, 0.5, steep) == 0.0
    assert best_bet(0.9, 0.0, steep) == pytest.approx(0.999 / steep.slope)


@pytest.mark.parametrize("method", ["exact", "score"])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_p_values_at_the_boundary_are_not_below_uniform(method, delta):
    rng = np.random.default_rng(21)
    claim, q = ApproxDP(epsilon=0.4, delta=delta), 0.1
    p = claim.ratio * q + delta
    values = [p_value(sample(rng, p, q, 5_000), claim, method=method, seed=i) for i in range(1_000)]
    assert stats.kstest(values, "uniform", alternative="greater").pvalue > 1e-3


def score_statistic(counts, distance, contrast):
    """Miettinen & Nurminen (1985): rates fitted under the hypothesis by brute force, variance · N/(N − 1)."""
    a, b, n = counts
    q = np.linspace(1e-6, 1 - 1e-6, 200_001)
    p = contrast(q)
    inside = (p > 0) & (p < 1)
    p, q = p[inside], q[inside]
    fit = int(np.argmax(a * np.log(p) + (n - a) * np.log1p(-p) + b * np.log(q) + (n - b) * np.log1p(-q)))
    scale = (contrast(1.0) - contrast(0.0)) ** 2
    variance = (p[fit] * (1 - p[fit]) + scale * q[fit] * (1 - q[fit])) / n * 2 * n / (2 * n - 1)
    return distance / math.sqrt(variance)


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize(("hits", "others"), [(300, 100), (260, 140), (200, 140), (40, 0)])
def test_the_score_test_is_miettinens(hits, others, delta):
    """Of the ratio e^ε at δ = 0; at δ > 0 of the difference e^−ε·δ of the thinned rate of D and the rate of D′."""
    n, epsilon, seed = 1000, 0.5, 7
    counts, claim = Counts(n10=hits, n01=others, n00=n - hits - others), ApproxDP(epsilon=epsilon, delta=delta)
    if delta == 0:
        a, b, m = (hits, others, n) if others else (hits + 1, others + 1, n + 2)
        found = score_statistic((a, b, m), a / m - math.exp(epsilon) * b / m, lambda q: math.exp(epsilon) * q)
    else:
        thinned = int(np.random.default_rng(seed).binomial(hits, math.exp(-epsilon)))
        least = delta * math.exp(-epsilon)
        found = score_statistic((thinned, others, n), (thinned - others) / n - least, lambda q: q + least)
    # The rates that statsmodels fits by a closed formula are off in the third digit.
    tolerance = 3e-3 if delta else 1e-4
    assert stats.norm.isf(p_value(counts, claim, method="score", seed=seed)) == pytest.approx(found, rel=tolerance)


@pytest.mark.parametrize(
    ("counts", "claim", "least"),
    [
        # Where nothing varies; of the first none of the three hits is left when they are thinned.
        (Counts(n10=3, n00=99_997), ApproxDP(2.0, 1e-9), 1.0),
        (Counts(n10=1000), ApproxDP(10.0, 1e-5), 1.0),
        (Counts(n11=1000), ApproxDP(0.0), 1.0),
        # Where the ratio has no square.
        (Counts(n10=10), ApproxDP(700.0), 0.5),
        (Counts(n10=10, n11=5, n01=3, n00=30), ApproxDP(355.0), 0.5),
    ],
)
def test_the_score_test_sees_nothing_where_it_cannot(counts, claim, least):
    assert p_value(counts, claim, method="score", seed=1) >= least


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 2**31), st.floats(0.0, 2.0))
def test_thinned_fisher_is_scipys_fisher_on_the_thinned_table(hits, others, seed, epsilon):
    n = 300
    both = max(hits + others - n, 0)
    counts = Counts(n10=hits - both, n11=both, n01=others - both, n00=n - hits - others + both)
    thinned = int(np.random.default_rng(seed).binomial(hits, math.exp(-epsilon)))
    found = stats.fisher_exact([[thinned, n - thinned], [others, n - others]], alternative="greater").pvalue
    assert p_value(counts, ApproxDP(epsilon=epsilon), seed=seed) == pytest.approx(found, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("claim", [ApproxDP(0.5, 0.01), GaussianDP(0.6)], ids=str)
def test_other_p_values_invert_scipys_bounds(claim):
    """Of Clopper and Pearson, each at half of the level: just there both bounds together keep the claim."""
    counts = Counts(n10=300, n01=100, n00=600)
    level = p_value(counts, claim)
    low = stats.binomtest(300, 1000, alternative="greater").proportion_ci(1 - level / 2).low
    high = stats.binomtest(100, 1000, alternative="less").proportion_ci(1 - level / 2).high
    if claim.curved:
        assert stats.norm.ppf(low) - stats.norm.ppf(high) == pytest.approx(0.6, abs=1e-4)
        with pytest.raises(ValueError, match="method='score'"):
            p_value(counts, claim, method="score")
    else:
        assert low == pytest.approx(claim.ratio * high + claim.delta, rel=1e-6)
    assert p_value(counts, claim.at(0.4)) < level < p_value(counts, claim.at(0.7))
    with pytest.raises(ValueError, match="method='magic'"):
        p_value(counts, claim, method="magic")


@pytest.mark.parametrize("claim", [GaussianDP(1.0), RenyiDP(2.0, 0.3)], ids=str)
def test_a_p_value_of_a_curved_claim_is_at_most_alpha_with_probability_alpha(claim):
    """All counts of ten runs with independent sides, at the boundary p = G(q), with their probabilities."""
    n, q = 10, 0.2
    p = claim.largest(q)
    values = np.empty((n + 1, n + 1))
    for a, b in itertools.product(range(n + 1), repeat=2):
        both = max(a + b - n, 0)
        values[a, b] = p_value(Counts(n10=a - both, n01=b - both, n11=both, n00=n - a - b + both), claim)
    chances = np.outer(stats.binom(n, p).pmf(np.arange(n + 1)), stats.binom(n, q).pmf(np.arange(n + 1)))
    for alpha in (0.01, 0.05, 0.2, 0.5):
        assert chances[values <= alpha].sum() <= alpha
    assert values.min() < 0.05  # that some counts refute


def test_several_claims():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.02, 0.02, 0.9]) == pytest.approx([1.0, 0.08, 0.08, 1.0])
    # By its definition: p₍ᵢ₎ is refused where n − j + 1 times every p₍ⱼ₎ up to it is at most α.
    values = np.random.default_rng(1).random(19) ** 4
    adjusted = [max((19 - (values < p).sum()) * p for p in values[values <= own]) for own in values]
    assert holm(values) == pytest.approx(np.minimum(adjusted, 1.0))


def test_runs_needed_is_the_smallest_number_that_can_refute():
    claim, alpha, hint = ApproxDP(epsilon=0.7, delta=1e-5), 1e-6, Estimate(p=1.0, q=0.0)
    n = runs_needed(claim, alpha)
    assert refutes(Counts(n10=n), claim, hint, alpha)
    assert not refutes(Counts(n10=n - 1), claim, hint, alpha)


@pytest.mark.parametrize(("p", "q", "epsilon"), soon(CASES, 1, most=3))
def test_median_runs_to_refutation_are_within_15_percent_of_an_oracle(p, q, epsilon):
    """log(1/α)/KL* runs are what an oracle needs that knows P and P′; the hint comes from a search sample."""
    rng = np.random.default_rng(22)
    alpha, claim = 1e-6, ApproxDP(epsilon=epsilon)
    oracle = math.log(1 / alpha) / best_growth(p, q, epsilon)
    runs = []
    for _ in range(200):
        searched = sample(rng, p, q, int(4 * oracle))
        hint = Estimate(p=searched.hits / searched.runs, q=searched.neighbour_hits / searched.runs)
        counts = Counts()
        while not refutes(counts, claim, hint, alpha):
            counts += sample(rng, p, q, max(int(oracle / 100), 1))
        runs.append(counts.runs)
    assert np.median(runs) <= 1.15 * oracle


@pytest.mark.parametrize("claim", [ApproxDP(epsilon=1.0), GaussianDP(1.0)], ids=str)
def test_what_a_bulk_event_would_have_caught_passes_in_an_event_of_the_rare_rate(claim):
    """There the parameter that a pass states for the rare rate is caught: as often as stated, and not far earlier."""
    rng, alpha, n, samples = np.random.default_rng(5), 1e-6, 4_000_000, 400

    def caught(parameter):
        q = claim.smallest(RARE_RATE, parameter)
        hint = Estimate(p=RARE_RATE, q=q)
        return sum(refutes(sample(rng, RARE_RATE, q, n), claim, hint, alpha) for _ in range(samples))

    bulk, rare = (detectable_at_rate(rate, n, claim, alpha=alpha) for rate in (0.3, RARE_RATE))
    assert claim.parameter < bulk < 1.05 * claim.parameter < rare
    assert caught(bulk) == 0
    assert caught(rare) >= stats.binom.ppf(1e-9, samples, 0.95)
    assert caught((claim.parameter + rare) / 2) <= samples / 2


def mu_of(epsilon, delta):
    """Of Gaussian noise that just keeps (ε, δ)."""
    return brentq(lambda mu: gaussian_delta(epsilon, mu=mu) - delta, 1e-3, 50.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.0, 1e-3), (0.3, 1e-5), (3.0, 1e-5)])
@pytest.mark.parametrize("p", [0.7, 0.5, 0.1])
def test_gaussian_noise_of_the_parameter_that_a_pass_would_have_caught_is_caught(epsilon, delta, p):
    """A pass sees noise that just keeps (ε, δ) by an event that shows a part of ε alone."""
    claim, alpha, rng = ApproxDP(epsilon, delta), 1e-6, np.random.default_rng(1)

    def counts(mu, runs):
        q = stats.norm.cdf(stats.norm.ppf(p) - mu)
        return counts_of(rng.multinomial(runs, law(p, q, q))), q

    for runs in (20_000, 1_000_000):
        seen, q = counts(mu_of(epsilon, delta), runs)
        estimate = Estimate(p=p, q=q)
        caught = detectable_parameter(bet_on(seen, claim, estimate), claim, alpha=alpha)
        mu = mu_of(1.02 * caught, delta)
        assert sum(refutes(counts(mu, runs)[0], claim, estimate, alpha) for _ in range(100)) >= 90


@given(
    st.floats(0.02, 1), epsilons, deltas, unit, unit, st.sampled_from([0.9, 1.0, 1.05]), st.sampled_from([12, 16, 20])
)
def test_detectable_epsilon_holds_for_every_coupling_and_larger_violation(p, epsilon, delta, share, part, known, size):
    """What is expected less 1.645 standard deviations reaches the bar for one of the bets, by the four cells; and no
    smaller ε does for the worst coupling."""
    claim, runs, alpha = ApproxDP(epsilon=epsilon, delta=delta), 2**size, 1e-6
    counts = Counts(n10=round(p * runs), n00=runs - round(p * runs))
    p = counts.hits / runs
    hint = Estimate(p=min(p * known, 1.0), q=p * math.exp(-epsilon))
    assume(runs * claim.smallest(p, epsilon) > EXACT_HITS)
    detectable = detectable_parameter(event_bet(counts, hint), claim, alpha=alpha)
    bets = np.append(BET_GRID / (claim.ratio + delta), best_bet(hint.p, hint.q, claim.half_plane()))
    weights = np.log(np.append(np.full(len(BET_GRID), 0.5 / len(BET_GRID)), 0.5))

    def excess(q, both):
        cells = np.array([p - both, both, q - both, 1 - p - q + both])
        logs = np.log1p(np.outer([1 - delta, 1 - claim.ratio - delta, -claim.ratio - delta, -delta], bets))
        mean = cells @ logs
        deviation = np.sqrt(np.maximum(cells @ (logs - mean) ** 2, 0.0))
        nats = runs * mean - stats.norm.ppf(0.95) * math.sqrt(runs) * deviation + weights
        return float(nats.max()) - math.log(1 / alpha)

    if not math.isfinite(detectable):
        assert p <= delta or excess(1e-30, 0.0) < 1e-6
        return
    q = (p - delta) * math.exp(-detectable) * share
    least, most = max(p + q - 1, 0.0), min(p, q)
    assert excess(q, least + part * (most - least)) >= -1e-6
    worse = (p - delta) * math.exp(-detectable + 1e-4)
    assert excess(worse, max(p + worse - 1, 0.0)) < 0


@pytest.mark.campaign
@given(
    st.integers(20, 40), st.floats(0.3, 1), unit, st.floats(0, 0.05), st.floats(0.2, 3.0), unit,
    st.sampled_from([0.05, 1e-3]),
)  # fmt: skip
def test_few_runs_refute_the_detectable_epsilon_in_95_percent_of_all_that_can_happen(
    n, share, epsilon, delta, known, part, alpha
):
    claim, hits = ApproxDP(epsilon, delta), max(round(share * n), 1)
    p = hits / n
    hint = Estimate(p=p, q=min(claim.smallest(p, epsilon + known) + 1e-9, 1.0))
    detectable = detectable_parameter(event_bet(Counts(n10=hits, n00=n - hits), hint), claim, alpha=alpha)
    assume(math.isfinite(detectable))
    q = claim.smallest(p, detectable)
    assume(p + q < 1 - 1e-6 or p == 1)
    least, most = max(p + q - 1, 0.0), min(p, q)
    table = np.array(
        [(a, b, c, n - a - b - c) for a in range(n + 1) for b in range(n + 1 - a) for c in range(n + 1 - a - b)]
    )
    values, log_weights = bets_and_weights(claim, hint)
    refuted = np.logaddexp.reduce(table @ values + log_weights, axis=1) >= math.log(1 / alpha)

    def power(both):
        logs = special.xlogy(table, law(p, q, both)).sum(axis=1) - special.gammaln(table + 1).sum(axis=1)
        return float(np.exp(logs[refuted] + special.gammaln(n + 1)).sum())

    worst = power(least)
    assert worst == pytest.approx(0.95, abs=1e-6) if detectable > epsilon else worst >= 0.95 - 1e-9
    assert power(least + part * (most - least)) >= worst - 1e-3


def test_detectable_epsilon_grows_with_delta_and_is_infinite_where_the_event_was_never_seen():
    """Of p = 0.1 a leak of δ = 0.05 explains half: the other half must show the ratio."""
    bet = event_bet(Counts(n10=100_000, n00=900_000))
    values = [detectable_parameter(bet, ApproxDP(1.0, d), alpha=1e-6) for d in (0.0, 0.01, 0.05, 0.1)]
    assert values[0] < values[1] < values[2] < values[3] == math.inf
    for counts in (Counts(n00=1000), Counts()):
        assert detectable_parameter(event_bet(counts), ApproxDP(epsilon=1.0), alpha=1e-6) == math.inf


def test_a_pass_is_never_enough_while_there_is_evidence():
    """At ten times the runs that detect 1.1 times the claim: by how many standard errors X exceeds 0 decides alone."""
    claim, n, slope = ApproxDP(1.0), 400_000, math.e
    p = math.e / (1 + math.e)
    error = math.sqrt(p * (1 - p) * (1 + slope**2) / n)  # of hits − slope·others
    for excess in (-2.0, 0.0, 0.9, 1.1, 2.0, 4.0):
        hits, others, both = round((p + excess * error) * n), round((1 - p) * n), round(p * (1 - p) * n)
        counts = Counts(n10=hits - both, n11=both, n01=others - both, n00=n - hits - others + both)
        bet = event_bet(counts, Estimate(p=p, q=1 - p))
        assert bet.standard_errors(claim) == pytest.approx(excess, abs=0.05)
        why = why_enough(bet, claim, bet.log_e_value(claim), alpha=1e-6, ratio=1.1)
        assert why == ("detectable" if excess < 1 else "")
        assert not why_enough(bet, claim, 0.1, alpha=1e-6, ratio=1.1)  # other bets have won something


def test_a_replay_has_enough_runs_once_it_would_have_caught_half_of_the_excess_of_its_witness():
    claim, hint = ApproxDP(1.0), Estimate(p=0.6, q=0.1)
    seen = Counts(n10=60, n11=10, n01=4, n00=56)
    least = half_of_excess(seen, claim)
    assert least == pytest.approx((1 + math.log(70 / 130 / (15 / 131))) / 2)
    ends = set()
    for share in (0.0, 0.5, 0.9):  # of the claim, that the mended mechanism shows
        for runs in np.geomspace(50, 1e5, 24).astype(int).tolist():
            bet = event_bet(expected(0.5, claim.smallest(0.5, share), runs), hint)
            why = why_excluded(bet, claim, bet.log_e_value(claim), alpha=1e-6, witness=seen)
            assert why == ("excluded" if detectable_parameter(bet, claim, alpha=1e-6) <= least else "")
            assert not why_excluded(bet, claim, 0.1, alpha=1e-6, witness=seen)  # other bets have won something
            ends.add(why)
    assert ends == {"", "excluded"}


def test_a_replay_without_its_event_ends_once_half_of_the_witness_s_rate_would_have_shown_it():
    claim, hint, rate = ApproxDP(1.0), Estimate(p=0.02, q=0.001), 0.02
    seen = Counts(n10=20, n00=980)
    for runs in (64, 1_000, 1_300, 1_450, 10_000):
        why = why_excluded(event_bet(Counts(n00=runs), hint), claim, 0.0, alpha=1e-6, witness=seen)
        assert why == ("excluded" if (1 - rate / 2) ** runs < 1e-6 else "")


def ended(rng, truth, ratio, claim, alpha=1e-6, most=4_000_000):
    """How a check of randomised response of that ε ends, with a look whenever the runs have grown by a tenth."""
    p = math.exp(truth) / (1 + math.exp(truth))
    counts, step, hint = Counts(), 1_000, Estimate(p=p, q=1 - p)
    while counts.runs < most:
        counts = counts + sample(rng, p, 1 - p, step)
        step = math.ceil(counts.runs / 10)
        bet = event_bet(counts, hint)
        log_e = bet.log_e_value(claim)
        if log_e >= math.log(1 / alpha):
            return "refuted"
        if why := why_enough(bet, claim, log_e, alpha=alpha, ratio=ratio):
            return why
    return "runs"


@pytest.mark.parametrize(("ratio", "why"), [(1.1, "detectable"), (None, "converged")])
def test_a_violation_that_is_detectable_is_not_passed_by_an_early_end(ratio, why):
    """Where runs end, 1.1 times the claim is 6.9 standard errors away, half of that 3.5: beyond 1 in 99 of 100."""
    rng, claim, n = np.random.default_rng(31), ApproxDP(1.0), 60 if ratio else 15
    detectable = 1.1 if ratio else 1.034  # a doubling gains 1 % there: 1 − 1/√2 of 0.034
    assert [ended(rng, detectable, ratio, claim) for _ in range(n)] == ["refuted"] * n
    half = [ended(rng, 1 + (detectable - 1) / 2, ratio, claim) for _ in range(n)]
    assert half.count(why) <= stats.binom.isf(1e-6, n, stats.norm.sf(2.4))
    correct = [ended(rng, 1.0, ratio, claim) for _ in range(n)]
    assert "refuted" not in correct
    # One in six goes on at first, and few to the end.
    assert correct.count(why) >= stats.binom.ppf(1e-6, n, 1 - stats.norm.sf(1.0))


@pytest.mark.parametrize("claim", [ApproxDP(1.0), ApproxDP(3.0, 1e-5), GaussianDP(1.0)])
@pytest.mark.parametrize("ratio", [1.05, 2.0])
def test_runs_to_detect_are_the_fewest_that_detect(claim, ratio):
    n = runs_to_detect(claim, ratio * claim.parameter, alpha=1e-6)
    assert detectable_at_best(n, claim, alpha=1e-6) <= ratio * claim.parameter * (1 + 1e-9)
    assert detectable_at_best(int(0.99 * n) - 2, claim, alpha=1e-6) > ratio * claim.parameter


TAILS = [
    (ApproxDP(1.0), 100_000),
    (ApproxDP(1.0, 1e-5), 20_000_000),
    (ApproxDP(0.5, 0.01), 5_000),
    (RenyiDP(8.0, 4.0), 1_000_000),
    (GaussianDP(1.0), 100_000),
    (PrivacyProfile([(0.5, 0.01), (1.0, 1e-4), (2.0, 1e-8)]), 10_000_000),
]


def share_refuted(counts, claim, estimate, alpha):
    """Of samples of counts, many of them alike."""
    known = {one: refutes(one, claim, estimate, alpha) for one in set(counts)}
    return np.mean([known[one] for one in counts])


@pytest.mark.parametrize(("claim", "runs"), TAILS)
def test_an_event_of_the_detectable_probability_is_refuted_in_95_percent_of_samples(claim, runs):
    alpha, samples, rng = 0.01, 1_000, np.random.default_rng(1)
    p = detectable_probability(runs, claim, alpha=alpha)
    shares = []
    for part in (1.0, 0.9):
        counts = [Counts(n10=n, n00=runs - n) for n in rng.binomial(runs, part * p, samples).tolist()]
        shares.append(share_refuted(counts, claim, Estimate(p=part * p, q=0.0), alpha))
    assert stats.binom.ppf(1e-6, samples, 0.95) <= samples * shares[0]
    assert samples * shares[1] < stats.binom.ppf(1e-6, samples, 0.95)  # a tenth less is not seen as often


@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize("q", [1e-6, 1e-5, 1e-3])
def test_no_event_of_less_delta_than_the_detectable_one_is_refuted_more_often(q, coupled):
    """Whatever its rate on D′ is: of all events with p − s·q = δ, that which never happens there shows most."""
    claim, runs, alpha, samples, rng = ApproxDP(1.0, 1e-6), 10_000_000, 0.01, 1_000, np.random.default_rng(2)
    p = detectable_probability(runs, claim, alpha=alpha) + claim.ratio * q
    both = q if coupled else p * q
    counts = [counts_of(cells) for cells in rng.multinomial(runs, law(p, q, both), samples)]
    refuted = share_refuted(counts, claim, Estimate(p=p, q=q, both=both), alpha)
    assert samples * refuted <= stats.binom.isf(1e-6, samples, 0.95)


def power_of_an_event(claim, runs, alpha, p):
    """Of bets placed for it, and for rarer ones."""

    def fewest(estimate):
        return bisect_left(
            range(runs + 1), True, key=lambda hits: refutes(Counts(n10=hits, n00=runs - hits), claim, estimate, alpha)
        )

    estimates = [Estimate(p=part * p, q=0.0) for part in (1.0, 0.9, 0.7, 0.5)]
    return stats.binom.sf(min(map(fewest, estimates)) - 1, runs, p)


def power_of_a_portfolio(claim, runs, alpha, p):
    """Of all of the wealth on one event, without a grid."""
    at = [np.array([part]) for part in (p, 0.0, 0.0, 0.0)]
    stakes = Stakes(p=at[0], q=at[1], both=at[2], log_shares=at[3])

    def refuted(hits):
        epoch = Epoch(stakes=stakes, counts=CountsTable(np.array([[hits], [0], [0], [runs - hits]])))
        return log_e_values_of([epoch], claim)[0] >= math.log(1 / alpha)

    return stats.binom.sf(bisect_left(range(runs + 1), True, key=refuted) - 1, runs, p)


def power_of_a_graded_event(claim, runs, alpha, p):
    """At best: S never happens on D′, T never on D, and never both in one run; for the best of several bets.

    Half of the wealth is on the graded event, as in epochs, the other half on S.
    """
    most = int(stats.binom.isf(1e-9, runs, min(2 * p, 1.0)))
    both = np.arange(most + 1)
    likely = stats.binom.pmf(both, runs, min(2 * p, 1.0))
    of_event = stats.binom.pmf(both, both[:, None], 0.5)  # how many of both are those of S on D
    event = [log_e_value(Counts(n10=hits, n00=runs - hits), claim, Estimate(p=p, q=0.0)) for hits in range(most + 1)]
    plane = claim.half_plane(p, 0.0)
    most, powers = float(largest_bet(plane)), []
    for part in (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02):
        none = -part * plane.intercept
        graded = both * math.log1p(most * (none + part / 2)) + (runs - both) * math.log1p(most * none)
        whole = np.logaddexp(graded[:, None], event) - math.log(2)
        powers.append(likely @ (of_event * (whole >= math.log(1 / alpha))).sum(axis=1))
    return max(powers)


@pytest.mark.parametrize(
    ("claim", "runs", "alpha"),
    [
        (ApproxDP(0.0, 1e-9), 20, 0.05),
        (ApproxDP(0.0, 1e-9), 100_000, 0.05),
        (ApproxDP(0.2, 1e-4), 20_000, 1e-6),
        (ApproxDP(1.0, 1e-5), 1_000_000, 0.01),
        (GaussianDP(0.1), 2_000, 0.05),
        (RenyiDP(8.0, 0.4), 1_000, 0.05),
    ],
)
def test_what_no_single_event_shows_graded_ones_show_down_to_three_fifths_of_it(claim, runs, alpha):
    """Against ε near 0 a graded event shows less than any single one, as it wins on both sides."""
    p = detectable_probability(runs, claim, alpha=alpha)
    assert power_of_an_event(claim, runs, alpha, p) >= 0.95
    assert power_of_an_event(claim, runs, alpha, 0.9 * p) < 0.95
    for power in (power_of_an_event, power_of_a_portfolio, power_of_a_graded_event):
        assert power(claim, runs, alpha, 0.6 * p) < 0.95
    if claim.parameter < 0.5:
        assert power_of_a_graded_event(claim, runs, alpha, 0.9 * p) >= 0.95


def test_too_few_runs_show_no_event_at_all():
    claim = ApproxDP(1.0, 1e-3)
    needed = runs_needed(claim, 0.01)
    assert detectable_probability(0, claim, alpha=0.01) == math.inf
    assert detectable_probability(needed - 1, claim, alpha=0.01) == math.inf
    assert 0.9 < detectable_probability(needed, claim, alpha=0.01) <= 1
    assert claim.delta < detectable_probability(10**19, claim, alpha=0.01) < 1.001 * claim.delta
