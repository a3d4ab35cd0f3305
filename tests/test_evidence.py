import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpwitness.claim import Claim
from dpwitness.counts import Counts
from dpwitness.evidence import (
    GRID,
    Estimate,
    best_bet,
    detectable_epsilon,
    epsilon_lower_bound,
    growth_rate,
    holm,
    log_e_value,
    log_mean_e_value,
    p_value,
    runs_needed,
)
from reference import best_growth, log_wealth, payoffs

cell = st.integers(0, 10**7)
any_counts = st.builds(Counts, n10=cell, n11=cell, n01=cell, n00=cell)
small_counts = st.builds(
    Counts, n10=st.integers(0, 40), n11=st.integers(0, 40), n01=st.integers(0, 40), n00=st.integers(0, 40)
)
epsilons = st.floats(0.01, 6)
deltas = st.sampled_from([0.0, 1e-6, 1e-3, 0.1])
hints = st.one_of(st.none(), st.builds(Estimate, p=st.floats(0, 1), q=st.floats(0, 1)))

#: Event probabilities and claims: six cases with clear and with small violations, common and rare events.
CASES = [
    (0.5, 0.25, 0.5),
    (0.1, 0.05, 0.5),
    (0.02, 0.005, 0.7),
    (0.01, 0.006, 0.2),
    (0.3, 0.01, 1.5),
    (0.001, 0.0, 1.0),
    (0.9, 0.5, 0.4),
]


def sample(rng, p, q, n):
    """Counts of n paired runs with independent sides."""
    n10, n11, n01, n00 = rng.multinomial(n, [p * (1 - q), p * q, (1 - p) * q, (1 - p) * (1 - q)])
    return Counts(n10=int(n10), n11=int(n11), n01=int(n01), n00=int(n00))


@given(small_counts, epsilons, deltas)
def test_e_value_is_the_mixture_of_run_by_run_wealth(counts, epsilon, delta):
    claim, hint = Claim(epsilon=epsilon, delta=delta), Estimate(p=0.4, q=0.1)
    xs = payoffs(counts, claim)
    bets = GRID / (claim.ratio + delta)
    spread = np.logaddexp.reduce([log_wealth(xs, lam) for lam in bets]) - math.log(len(bets))
    favourite = log_wealth(xs, float(best_bet(0.4, 0.1, epsilon, delta)))
    expected = np.logaddexp(spread, favourite) - math.log(2)
    assert log_e_value(counts, claim, hint) == pytest.approx(expected, abs=1e-9, rel=1e-9)
    assert log_e_value(counts, claim) == pytest.approx(spread, abs=1e-9, rel=1e-9)


@pytest.mark.parametrize("coupling", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_expected_e_value_of_one_run_is_at_most_one_at_the_boundary(coupling, delta):
    """The defining property, exactly, for sides that share none, some or all of their randomness."""
    claim = Claim(epsilon=0.7, delta=delta)
    q = 0.2
    p = claim.ratio * q + delta
    both = (1 - coupling) * p * q + coupling * min(p, q)
    cells = {"n10": p - both, "n11": both, "n01": q - both, "n00": 1 - p - q + both}
    for hint in (None, Estimate(p=0.6, q=0.1), Estimate(p=0.6, q=0.2, both=0.15)):
        mean = sum(w * math.exp(log_e_value(Counts(**{name: 1}), claim, hint)) for name, w in cells.items())
        assert mean == pytest.approx(1.0, abs=1e-12)


@given(any_counts, epsilons, hints)
def test_a_larger_delta_never_strengthens_the_bound(counts, epsilon, hint):
    bounds = [epsilon_lower_bound(counts, delta=d, alpha=0.01) for d in (0.0, 1e-3, 0.05)]
    assert bounds == sorted(bounds, reverse=True)


@given(any_counts, any_counts)
def test_merging_counts_commutes_and_swapping_exchanges_the_sides(a, b):
    assert a + b == b + a
    assert (a + b).runs == a.runs + b.runs
    assert a.swapped() == Counts(n10=a.n01, n11=a.n11, n01=a.n10, n00=a.n00)
    assert a.swapped().swapped() == a


@given(any_counts, hints)
def test_lower_bound_is_where_the_e_value_stops_to_refute(counts, hint):
    alpha = 1e-3
    lower = epsilon_lower_bound(counts, alpha=alpha, hint=hint)
    if lower > 0:
        assert log_e_value(counts, Claim(epsilon=min(lower, 700)), hint) >= math.log(1 / alpha) - 1e-6
    if lower < 600:
        above = max(lower * 1.0011, lower + 1.01e-4)
        assert log_e_value(counts, Claim(epsilon=above), hint) < math.log(1 / alpha) + 1e-6 or lower == 0


def test_counts_refuse_negative_numbers():
    with pytest.raises(ValueError, match="n01=-1 must not be negative"):
        Counts(n01=-1)


@pytest.mark.parametrize(("p", "q", "epsilon"), CASES)
@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_growth_rate_is_the_maximum_over_all_bets(p, q, epsilon, delta):
    assert float(growth_rate(p, q, epsilon, delta)) == pytest.approx(best_growth(p, q, epsilon, delta), rel=1e-5)


@given(st.floats(0, 1), st.floats(1e-9, 1), epsilons, deltas)
def test_nothing_grows_where_the_claim_holds(p, q, epsilon, delta):
    p = min(p, math.exp(epsilon) * q + delta)
    assert float(growth_rate(p, q, epsilon, delta)) == pytest.approx(0, abs=1e-12)


def test_level_at_the_boundary_while_peeking_after_every_batch():
    """2,000 mechanisms exactly at their claim, a look after each of 200 batches: false alarms within α = 0.05."""
    rng = np.random.default_rng(20)
    claim, alpha, seeds, looks = Claim(epsilon=0.5), 0.05, 2_000, 200
    q = 0.05
    p = claim.ratio * q
    cells = [p * (1 - q), p * q, (1 - p) * q, (1 - p) * (1 - q)]
    alarms = 0
    for _ in range(seeds):
        hint = Estimate(p=min(1.0, p * rng.uniform(0.8, 1.25)), q=q)
        paths = np.cumsum(rng.multinomial(500, cells, size=looks), axis=0)
        alarms += any(
            log_e_value(Counts(n10=int(a), n11=int(b), n01=int(c), n00=int(d)), claim, hint) >= math.log(1 / alpha)
            for a, b, c, d in paths
        )
    assert alarms <= stats.binom.isf(1e-9, seeds, alpha)
    assert alarms > 0  # a test that could never alarm would prove nothing


@pytest.mark.parametrize("method", ["exact", "score"])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_p_values_at_the_boundary_are_not_below_uniform(method, delta):
    rng = np.random.default_rng(21)
    claim = Claim(epsilon=0.4, delta=delta)
    q = 0.1
    p = claim.ratio * q + delta
    values = [p_value(sample(rng, p, q, 5_000), claim, method=method, seed=i) for i in range(2_000)]
    assert stats.kstest(values, "uniform", alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize(("p", "q", "epsilon"), CASES)
def test_median_runs_to_refutation_are_within_15_percent_of_an_oracle(p, q, epsilon):
    """log(1/α)/KL* runs are what an oracle needs that knows P and P′; the hint comes from a search sample."""
    rng = np.random.default_rng(22)
    alpha, claim = 1e-6, Claim(epsilon=epsilon)
    oracle = math.log(1 / alpha) / best_growth(p, q, epsilon)
    cells = [p * (1 - q), p * q, (1 - p) * q, (1 - p) * (1 - q)]
    step = max(int(oracle / 100), 1)
    runs = []
    for _ in range(200):
        searched = sample(rng, p, q, int(4 * oracle))
        hint = Estimate(p=searched.hits / searched.runs, q=searched.neighbour_hits / searched.runs)
        counts, log_e = Counts(), 0.0
        while log_e < math.log(1 / alpha):
            more = rng.multinomial(step, cells)
            counts += Counts(n10=int(more[0]), n11=int(more[1]), n01=int(more[2]), n00=int(more[3]))
            log_e = log_e_value(counts, claim, hint)
        runs.append(counts.runs)
    assert np.median(runs) <= 1.15 * oracle


def test_detectable_epsilon_is_refuted_in_95_percent_of_samples():
    rng = np.random.default_rng(23)
    claim, alpha, n, p = Claim(epsilon=0.5), 1e-4, 40_000, 0.1
    hint = Estimate(p=p, q=p * math.exp(-0.5))
    observed = Counts(n10=3757, n11=243, n01=2183, n00=33_817)
    assert observed.runs == n
    detectable = detectable_epsilon(observed, claim, alpha=alpha, hint=hint)
    q = p * math.exp(-detectable)
    refuted = sum(log_e_value(sample(rng, p, q, n), claim, hint) >= math.log(1 / alpha) for _ in range(1_000))
    assert stats.binom.ppf(1e-6, 1_000, 0.93) <= refuted <= 1_000
    assert refuted <= stats.binom.ppf(1 - 1e-6, 1_000, 0.985)


def test_detectable_epsilon_is_infinite_where_the_event_was_never_seen():
    assert detectable_epsilon(Counts(n00=1000), Claim(epsilon=1.0), alpha=1e-6) == math.inf
    assert detectable_epsilon(Counts(), Claim(epsilon=1.0), alpha=1e-6) == math.inf


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 2**31), st.floats(0.0, 2.0))
def test_thinned_fisher_is_scipys_fisher_on_the_thinned_table(hits, others, seed, epsilon):
    n = 300
    counts = Counts(n10=hits, n01=others, n00=0) if hits + others <= n else None
    if counts is None:
        both = hits + others - n
        counts = Counts(n10=hits - both, n11=both, n01=others - both)
    counts += Counts(n00=n - counts.runs)
    thinned = int(np.random.default_rng(seed).binomial(hits, math.exp(-epsilon)))
    expected = stats.fisher_exact([[thinned, n - thinned], [others, n - others]], alternative="greater").pvalue
    assert p_value(counts, Claim(epsilon=epsilon), seed=seed) == pytest.approx(expected, rel=1e-6, abs=1e-300)


def test_clopper_pearson_p_value_inverts_scipys_bounds():
    counts, claim = Counts(n10=300, n01=100, n00=600), Claim(epsilon=0.5, delta=0.01)
    level = p_value(counts, claim)
    low = stats.binomtest(300, 1000, alternative="greater").proportion_ci(1 - level / 2).low
    high = stats.binomtest(100, 1000, alternative="less").proportion_ci(1 - level / 2).high
    assert low == pytest.approx(claim.ratio * high + claim.delta, rel=1e-6)


def test_runs_needed_is_the_smallest_number_that_can_refute():
    claim, alpha = Claim(epsilon=0.7, delta=1e-5), 1e-6
    n = runs_needed(claim, alpha)
    hint = Estimate(p=1.0, q=0.0)
    assert log_e_value(Counts(n10=n), claim, hint) >= math.log(1 / alpha)
    assert log_e_value(Counts(n10=n - 1), claim, hint) < math.log(1 / alpha)


def test_several_claims():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert log_mean_e_value([math.log(2), math.log(4)]) == pytest.approx(math.log(3))
    with pytest.raises(ValueError, match="at least one"):
        log_mean_e_value([])


def test_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method='magic' must be"):
        p_value(Counts(n00=1), Claim(epsilon=1.0), method="magic")
