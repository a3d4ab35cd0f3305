"""How often a claim that holds is refuted, over many seeds: `pytest -m campaign`.

$DPWITNESS_SEEDS says how many seeds, $DPWITNESS_FIRST_SEED which is the first.

Every mechanism here has a privacy loss of exactly its claim, so an alarm is as likely as it can be.
"""

import math
import os
import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from dpwitness import NotRefuted, bound, check, pairs
from dpwitness.claims import ZCDP, ApproxDP, GaussianDP, PrivacyProfile, RenyiDP, TradeOff
from dpwitness.claims.regions import boundary_of
from dpwitness.errors import CompiledDiffers, SlowMechanism
from dpwitness.evidence import Estimate, growth_rate, log_e_value
from dpwitness.evidence.counts import Counts
from dpwitness.exact import gaussian_delta
from dpwitness.mechanisms.resolve import as_mechanism
from running import sampled
from samplers import PLAIN, SAMPLERS

pytestmark = [pytest.mark.campaign, pytest.mark.new_process]

SEEDS = int(os.environ.get("DPWITNESS_SEEDS", "100"))
FIRST = int(os.environ.get("DPWITNESS_FIRST_SEED", "0"))
ALPHA = 0.05
ONE = pairs(([0], [1]))
#: Randomised response of ε = 1: the probability of the truth.
TRUTH = math.e / (1 + math.e)
DELTA = 0.01
#: δ of N(0, 1) against N(1, 1) at ε = 1 (Balle & Wang 2018, Theorem 8).
GAUSS = float(stats.norm.cdf(-0.5) - math.e * stats.norm.cdf(-1.5))


def laplace(rng, data):
    return data[0] + rng.standard_exponential() - rng.standard_exponential()


def responded(rng, data):
    return data[0] if rng.random() < TRUTH else 1 - data[0]


def flagged(rng, data):
    return (rng.random() < TRUTH) == (data[0] == 1)


def two_sided_geometric(rng, data):
    return data[0] + np.floor(rng.standard_exponential()) - np.floor(rng.standard_exponential())


def histogram(rng, data):
    cells = np.zeros(3)
    for i in range(3):
        cells[i] = rng.standard_exponential() - rng.standard_exponential()
    cells[0] += data[0]
    return cells


def infinite(rng, data):
    return np.inf if (rng.random() < TRUTH) == (data[0] == 1) else 0.0


def not_a_number(rng, data):
    return np.nan if (rng.random() < TRUTH) == (data[0] == 1) else rng.random()


def length(rng, data):
    return np.zeros(2 if (rng.random() < TRUTH) == (data[0] == 1) else 1)


def nested(rng, data):
    both = rng.random(3)
    return (both[:1], both[1:]) if (rng.random() < TRUTH) == (data[0] == 1) else (both[:2], both[2:])


def whole_numbers(rng, data):
    k = rng.integers(0, 1000)
    return data[0] if k < 1000 * TRUTH - rng.random() else 1 - data[0]


def permuted(rng, data):
    return rng.permutation(100)[0] < 50, data[0] if rng.random() < TRUTH else 1 - data[0]


def leaks_with_delta(rng, data):
    if rng.random() < DELTA:
        return data[0] + 2
    return data[0] if rng.random() < TRUTH else 1 - data[0]


def gaussian(rng, data):
    return data[0] + rng.standard_normal()


def rounded_at_times(rng, data):
    answer = data[0] + rng.standard_exponential() - rng.standard_exponential()
    return np.round(answer, 1) if rng.random() < 0.05 else answer


def equal_at_times(rng, data):
    answers = np.zeros(2)
    for i in range(2):
        answers[i] = rng.standard_exponential() - rng.standard_exponential()
    if rng.random() < 0.01:
        answers[1] = answers[0]
    answers += data[0] / 2
    return answers


def one_value_at_times(rng, data):
    """A value that is returned in a share of the runs that is e times as large on one input, and noise else."""
    return 0.25 if rng.random() < 0.02 * math.exp(data[0]) else rng.standard_exponential()


def many_laplace(rng, data, size):
    return data[0] + rng.laplace(size=size)


def many_flags(rng, data, size):
    return (rng.random(size) < TRUTH) == (data[0] == 1)


def many_texts(rng, data, size):
    return np.where((rng.random(size) < TRUTH) == (data[0] == 1), "yes", "no").tolist()


def many_gaussian(rng, data, size):
    return data[0] + rng.normal(size=size)


def text(rng, data):
    return "yes" if (rng.random() < TRUTH) == (data[0] == 1) else "no"


def any_length(rng, data):
    return [str(rng.random())] * (3 if (rng.random() < TRUTH) == (data[0] == 1) else 2)


def special(rng, data):
    values = (None, -0.0, math.inf, True) if (rng.random() < TRUTH) == (data[0] == 1) else (math.nan, 0.0, -math.inf, 1)
    return [str(rng.random()), *values]


COMPILED = [
    laplace, responded, flagged, two_sided_geometric, histogram, infinite, not_a_number, length, whole_numbers,
    permuted, leaks_with_delta, gaussian, rounded_at_times, equal_at_times, one_value_at_times,
]  # fmt: skip
VECTORISED = [many_laplace, many_flags, many_texts, many_gaussian]
PYTHON = [text, any_length, special, nested]  # lists of different lengths inside run as Python
DELTAS = {"leaks_with_delta": DELTA, "gaussian": GAUSS, "many_gaussian": GAUSS}


def flag_now_and_then(rng, data):
    """A flag that both inputs raise in 1 % of the runs, and randomised response in these."""
    return "none" if rng.random() >= 0.01 else ("yes" if (rng.random() < TRUTH) == (data[0] == 1) else "no")


def vector(rng, data, size):
    """Ten values, one of which moves."""
    noise = rng.laplace(size=(size, 10))
    noise[:, 3] += data[0]
    return noise


EPOCHS = [
    laplace, responded, two_sided_geometric, infinite, not_a_number, leaks_with_delta, many_gaussian, many_texts,
    vector, text, any_length, special, flag_now_and_then,
]  # fmt: skip


@pytest.mark.parametrize("function", sampled(EPOCHS, 7), ids=lambda function: function.__name__)
def test_a_claim_that_just_holds_is_refuted_in_epochs_no_more_often_than_said(function):
    """From the first run on, on coupled sides; and the lower bounds, too, are above the truth no more often."""
    mechanism = made(function)
    claim = ApproxDP(epsilon=1.0, delta=DELTAS.get(function.__name__, 0.0))
    alarms = above = 0
    for seed in range(FIRST, FIRST + SEEDS):
        verdict = check(
            mechanism, claim=1.0, delta=claim.delta, neighbours=ONE, alpha=ALPHA, seed=seed, search_runs=0,
            runs=600, workers=1,
        )  # fmt: skip
        alarms += not isinstance(verdict, NotRefuted)
        above += verdict.epsilon_lower_bound > 1.0
    print(f"{function.__name__}: {alarms} of {SEEDS} refuted at α = {ALPHA}, {above} bounds above the truth")
    assert alarms <= stats.binom.isf(1e-6, SEEDS, ALPHA)
    assert above <= stats.binom.isf(1e-6, SEEDS, ALPHA)


def made(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowMechanism)
        warnings.simplefilter("ignore", CompiledDiffers)
        return as_mechanism(function, np.array([0]), neighbour=np.array([1]))


@pytest.mark.parametrize(
    "function", sampled([*COMPILED, *VECTORISED, *PYTHON], 12), ids=lambda function: function.__name__
)
def test_a_claim_that_just_holds_is_refuted_no_more_often_than_said(function):
    mechanism = made(function)
    assert mechanism.threads is (function in COMPILED)
    runs = 2_000 if function in PYTHON else 20_000
    claim = ApproxDP(epsilon=1.0, delta=DELTAS.get(function.__name__, 0.0))
    alarms = 0
    for seed in range(FIRST, FIRST + SEEDS):
        verdict = check(
            mechanism, claim=1.0, delta=claim.delta, neighbours=ONE, alpha=ALPHA, seed=seed, search_runs=2_000,
            runs=runs, workers=1,
        )  # fmt: skip
        alarms += not isinstance(verdict, NotRefuted)
    print(f"{function.__name__}: {alarms} of {SEEDS} refuted at α = {ALPHA}")
    assert alarms <= stats.binom.isf(1e-6, SEEDS, ALPHA)


CELLS = ("n10", "n11", "n01", "n00")
#: Claims that just hold, of mechanisms that reach them: the boundary of each kind.
BOUNDARIES = {
    "gdp": (many_gaussian, GaussianDP(1.0)),
    "trade-off": (many_gaussian, TradeOff(lambda a: ndtr(-ndtri(a) - 1.0))),
    "profile": (many_gaussian, PrivacyProfile([(e, gaussian_delta(e, mu=1.0)) for e in np.linspace(0, 3, 13)])),
    "rdp": (many_flags, RenyiDP(4.0, float(RenyiDP(4.0, 0.0).reached(TRUTH, 1 - TRUTH)))),
    "zcdp": (many_flags, ZCDP(float(ZCDP(0.0).reached(TRUTH, 1 - TRUTH)))),
}


@pytest.mark.parametrize("name", BOUNDARIES)
def test_a_claim_of_any_kind_that_just_holds_is_refuted_no_more_often_than_said(name):
    function, claim = BOUNDARIES[name]
    mechanism, alarms = made(function), 0
    for seed in range(FIRST, FIRST + SEEDS):
        limits = {"neighbours": ONE, "alpha": ALPHA, "seed": seed, "search_runs": 2_000, "workers": 1}
        alarms += not isinstance(check(mechanism, claim=claim, runs=20_000, **limits), NotRefuted)
    print(f"{claim}: {alarms} of {SEEDS} refuted at α = {ALPHA}")
    assert alarms <= stats.binom.isf(1e-6, SEEDS, ALPHA)


@pytest.mark.parametrize("stated", [0.5, 0.8])
def test_a_gaussian_is_refuted_in_nearly_as_few_runs_as_can_be(stated):
    """N(0, 1) against N(1, 1) with a fixed event: median runs against log(1/α)/KL* of the best event and half-plane."""
    claim = GaussianDP(stated)
    at = np.linspace(-2, 3, 101)
    p, q = ndtr(1 - at), ndtr(-at)
    rates = np.array([growth_rate(*pair, boundary_of(claim).planes).max() for pair in zip(p, q, strict=True)])
    best = int(rates.argmax())
    needed, taken = math.log(1 / ALPHA) / rates[best], []
    estimate = Estimate(p=float(p[best]), q=float(q[best]))
    for seed in range(FIRST, FIRST + max(SEEDS, 40)):  # fewer do not tell a median
        rng, counts = np.random.default_rng(seed), np.zeros(4, np.int64)
        while log_e_value(Counts(**dict(zip(CELLS, map(int, counts), strict=True))), claim, estimate) < math.log(
            1 / ALPHA
        ):
            x, y = rng.random() < p[best], rng.random() < q[best]
            counts[(0 if not y else 1) if x else (2 if y else 3)] += 1
        taken.append(counts.sum())
    print(f"{claim}: median {np.median(taken)} runs; log(1/α)/KL* is {needed:.0f}")
    assert np.median(taken) <= 1.2 * needed


@pytest.mark.parametrize("sampler", sampled([*SAMPLERS, *PLAIN], 5), ids=lambda function: function.__name__)
def test_samplers_of_one_law_are_never_refuted(sampler):
    """Both inputs give one law, drawn in different ways: 0-DP, so nothing above 0 is ever exceeded."""
    mechanism = made(sampler)
    settings = {"neighbours": ONE, "workers": 1, "search_runs": 4_000}
    runs = 40_000 if mechanism.threads and sampler.__name__ != "thousands_on_one_input" else 2_000
    alarms = above = 0
    for seed in range(FIRST, FIRST + SEEDS):
        verdict = check(mechanism, claim=0.5, alpha=1e-3, seed=seed, runs=runs, **settings)
        alarms += not isinstance(verdict, NotRefuted)
        above += bound(mechanism, epsilon=0.5, seed=seed, runs=runs, **settings).epsilon_lower_bound > 0
    print(f"{sampler.__name__}: {alarms} of {SEEDS} refuted at α = 0.001; {above} bounds above 0 at confidence 0.999")
    assert alarms == 0
    assert above <= stats.binom.isf(1e-6, SEEDS, 1e-3)
