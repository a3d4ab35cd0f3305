"""How often a claim that holds is refuted, and that one run of these tests tells α from three times α.

Each kind of bet is one test: repetitions at the boundary of a claim, with seeds of their own, whose alarms are pooled
over all cases of the kind. They go on until they tell α from 3α (`keeps_level`): the file fails with probability at
least .99 where any kind has a true level of 3α, and with probability at most 10⁻⁶ where all kinds keep α.

$DPWITNESS_SEEDS is twice the least number of repetitions of each case of `check`, `bound`, `profile` and `curve`
(200 where it is not set). $DPWITNESS_FIRST_SEED is the first seed.

Kinds that draw counts from a law are in the default suite; kinds that call `check`, `bound`, `profile` and `curve`,
with search, runs, health checks and verdict, are marked `campaign`.
"""

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import count, product

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from dpwitness import NotRefuted, bound, check, curve, pairs, profile
from dpwitness.candidate import CellsEstimate, Estimate
from dpwitness.claims import ZCDP, ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, TradeOff
from dpwitness.errors import CompiledDiffers, SlowMechanism
from dpwitness.evidence import bet_on, holm, log_e_value, lower_bound, p_value
from dpwitness.evidence.counts import Counts, CountsTable
from dpwitness.evidence.portfolio import Epoch, Flags, Stakes, Wealth
from dpwitness.evidence.profile_band import PlannedLine, band_of
from dpwitness.mechanisms.resolve import as_mechanism
from running import keeps_level, sampled, scaled
from samplers import PLAIN, SAMPLERS
from truth import gaussian_delta

SEEDS = scaled(100)
FIRST = int(os.environ.get("DPWITNESS_FIRST_SEED", "0"))
ALPHA = 0.1
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
    nested,
]  # fmt: skip
VECTORISED = [many_laplace, many_flags, many_texts, many_gaussian]
PYTHON = [text, any_length, special]
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


#: Two laws of three cells, and an event: the first cell.
P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.3, 0.45])
SETS = np.array(list(product([False, True], repeat=3)))[1:-1]
#: Runs of a repetition at which the e-value is looked at.
LOOKS = np.unique(np.geomspace(4, 1_000_000, 60).astype(int))


def joint(coupled):
    """The law of pairs of cells, with a share of runs in which both sides are alike as often as they can be."""
    same = np.minimum(P, Q)
    return (1 - coupled) * np.outer(P, Q) + coupled * (np.diag(same) + np.outer(P - same, Q - same) / (1 - same.sum()))


def counts_of(table):
    both, hits, others = (int(one) for one in (table[0, 0], table[0].sum(), table[:, 0].sum()))
    n00 = int(table.sum()) - hits - others + both
    return Counts(n10=hits - both, n11=both, n01=others - both, n00=n00, cells=tuple(map(int, table.ravel())))


def reached(family, *, by_cells):
    """The claim of a family that P and Q just keep: by the event, or by all events of cells in both directions."""
    if not by_cells:
        return family.at(float(family.reached(P[0], Q[0])))
    return family.at(max(float(np.max(family.reached(SETS @ a, SETS @ b))) for a, b in ((P, Q), (Q, P))))


def divergence(order):
    return float(P @ np.log(P / Q)) if order == 1 else math.log(np.sum(P**order * Q ** (1 - order))) / (order - 1)


@dataclass(frozen=True)
class Boundary:
    """A claim that a law of pairs of cells just keeps, and the estimate that a bet against it follows from.

    The estimate shows a violation by a fourth of the parameter, so that something is bet.
    """

    claim: object
    estimate: Estimate
    joint: np.ndarray

    def tables(self, seed):
        """Counts of cells after each look."""
        rng = np.random.default_rng(seed)
        steps = np.diff(LOOKS, prepend=0)
        return np.cumsum(rng.multinomial(steps, self.joint.ravel()).reshape(-1, 3, 3), axis=0)

    def refuted(self, seed):
        """Whether the e-value against the claim reaches 1/α at any look."""
        for table in self.tables(seed):
            if log_e_value(counts_of(table), self.claim, self.estimate) >= math.log(1 / ALPHA):
                bet = bet_on(counts_of(table), self.claim, self.estimate)
                assert self.claim.curved or lower_bound(bet, self.claim, alpha=ALPHA) >= self.claim.parameter
                return True
        return False

    def bound_above(self, seed):
        """Whether the bound exceeds the true parameter at the look at which the e-value against that is largest."""
        stated = self.claim.at(0.9 * self.claim.parameter)
        bets = [bet_on(counts_of(table), stated, self.estimate) for table in self.tables(seed)]
        most = max(bets, key=lambda bet: bet.log_e_value(self.claim))
        return lower_bound(most, stated, alpha=ALPHA) > self.claim.parameter


def event_boundary(family, coupled=0.0):
    law, claim = joint(coupled), reached(family, by_cells=False)
    wrong = claim.at(1.25 * claim.parameter)
    q = float(wrong.smallest(P[0], wrong.parameter))
    return Boundary(claim, Estimate(p=float(P[0]), q=q, both=float(law[0, 0]) * q / float(Q[0])), law)


def cells_boundary(family, order, share=0.0, coupled=0.0):
    """Of `family` the divergence of this order is the largest that is bounded; a `share` is bet on the event."""
    law, true = joint(coupled), divergence(order)
    claim = family.at(true if isinstance(family, RenyiDP) else true / order)
    cells = CellsEstimate(
        joint=tuple(law.ravel().tolist()), order=order, log_ratios=tuple(np.log(P / Q).tolist()),
        against=0.8 * claim.parameter, event_share=share,
    )  # fmt: skip
    return Boundary(claim, Estimate(p=float(P[0]), q=float(Q[0]), both=float(law[0, 0]), cells=cells), law)


PROFILE = PrivacyProfile([(0.2, 0.2), (0.5, 0.05)])
ON_EVENT = [
    *(event_boundary(family, coupled) for family in (PureDP(1.0), ApproxDP(1.0, 0.05)) for coupled in (0.0, 1.0)),
    *(event_boundary(family) for family in (GaussianDP(1.0), PROFILE, RenyiDP(3.0, 0.1), ZCDP(0.1))),
]
ON_CELLS = [
    cells_boundary(ZCDP(0.1), 1.0), cells_boundary(RenyiDP(2.0, 0.1), 2.0),
    cells_boundary(RenyiDP(3.0, 0.1), 3.0, share=0.4), cells_boundary(ZCDP(0.1), 1.0, coupled=1.0),
]  # fmt: skip


@cache
def wealth_at_boundary(seed):
    """The claim, and the largest wealth at any look of two accounts in epochs and of a last bet, with its logarithm.

    One account has shares on three events, the other one bets on the graded event that these make up; the third event
    is one of D′.
    """
    law, rng = joint((0.0, 1.0)[seed % 2]), np.random.default_rng(seed)
    claim = reached(ApproxDP(1.0, (0.0, 0.05)[seed // 2 % 2]), by_cells=True)
    members, swapped = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]], np.bool_), np.array([False, False, True])
    p, q = (np.where(swapped, members @ b, members @ a) for a, b in ((P, Q), (Q, P)))
    both = np.einsum("ki,ij,kj->k", members, law, members)
    stakes = Stakes(p=p, q=0.85 * q, both=0.85 * both, log_shares=np.log([0.4, 0.2, 0.4]))
    hits, others = members[:, np.repeat(np.arange(3), 3)].T, members[:, np.tile(np.arange(3), 3)].T
    hits, others = np.where(swapped, others, hits), np.where(swapped, hits, others)
    on_grades = replace(stakes, fractions=np.array([0.1, 0.0, 0.1]))
    accounts, logs = ([], []), []
    wealth = Wealth(accounts=((), ()))
    for runs in np.diff(LOOKS[:45:5], prepend=0):
        times = rng.multinomial(runs, law.ravel())
        table = np.array([times @ cells for cells in (hits & ~others, hits & others, ~hits & others, ~hits & ~others)])
        flags = Flags(hits=hits, others=others, times=times.astype(float))
        accounts[0].append(Epoch(stakes=stakes, counts=CountsTable(table)))
        accounts[1].append(Epoch(stakes=on_grades, counts=CountsTable(table), flags=flags))
        wealth = Wealth(accounts=(tuple(accounts[0]), tuple(accounts[1])))
        logs.append((wealth.log_e_value(claim), wealth))
    estimate = Estimate(p=float(p[0]), q=float(0.85 * q[0]), both=float(0.85 * both[0]))
    for table in np.cumsum(rng.multinomial(np.diff(LOOKS[:45:5], prepend=0), law.ravel()).reshape(-1, 3, 3), axis=0):
        last = replace(wealth, last=bet_on(counts_of(table), claim, estimate))
        logs.append((last.log_e_value(claim), last))
    return claim, *max(logs, key=lambda one: one[0])


def wealth_refutes(seed):
    """Whether it reaches 1/α."""
    _, most, _ = wealth_at_boundary(seed)
    return most >= math.log(1 / ALPHA)


def wealth_bounds_above(seed):
    """Whether the bound of it exceeds the true parameter."""
    claim, _, wealth = wealth_at_boundary(seed)
    return lower_bound(wealth, claim.at(0.9 * claim.parameter), alpha=ALPHA) > claim.parameter


def p_value_at_boundary(seed):
    """A p-value of independent sides; of every fourth seed the smallest of three by Holm's adjustment."""
    rng, n = np.random.default_rng(seed), 1_000
    family = (PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0), PureDP(1.0))[seed % 4]
    claim, tests = reached(family, by_cells=False), 3 if seed % 4 == 3 else 1
    values = []
    for test in range(tests):
        a, b = rng.random(n) < P[0], rng.random(n) < Q[0]
        cells = (int(np.sum(both)) for both in (a & ~b, a & b, ~a & b, ~a & ~b))
        counts = Counts(**dict(zip(("n10", "n11", "n01", "n00"), cells, strict=True)))
        values.append(p_value(counts, claim, seed=1_000 * seed + test))
    return min(holm(values)) <= ALPHA


EPSILONS = np.linspace(0.0, 5.0, 251)
#: δ(ε) of N(0, 1) against N(1, 1).
DELTA_OF_GAUSS = np.array([gaussian_delta(e, mu=1.0) for e in EPSILONS])


def band_at_boundary(seed):
    """Whether the band of three events of coupled Gaussian noise lies above the true profile anywhere."""
    rng, n, lines, counts = np.random.default_rng(seed), 2_000, [], []
    noise = rng.standard_normal(n)
    for epsilon in (0.0, 0.7, 1.5):
        p, q = float(ndtr(0.5 - epsilon)), float(ndtr(-0.5 - epsilon))
        lines.append(PlannedLine(slope=math.exp(epsilon), alpha=ALPHA / 3, estimate=Estimate(p=p, q=q, both=q)))
        hits, others = int(np.sum(noise + 1 > 0.5 + epsilon)), int(np.sum(noise > 0.5 + epsilon))
        counts.append(Counts(n10=hits - others, n11=others, n00=n - hits))
    return bool(np.any(band_of(lines, counts, n).delta(EPSILONS) > DELTA_OF_GAUSS + 1e-12))


@cache
def made(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowMechanism)
        warnings.simplefilter("ignore", CompiledDiffers)
        return as_mechanism(function, np.array([0]), neighbour=np.array([1]))


def settings_of(seed):
    return {"neighbours": ONE, "alpha": ALPHA, "seed": seed, "workers": 1}


def checked(function, seed):
    """A check that searches first."""
    mechanism, delta = made(function), DELTAS.get(function.__name__, 0.0)
    assert mechanism.threads is (function in COMPILED)
    runs = 2_000 if function in PYTHON else 20_000
    verdict = check(mechanism, claim=1.0, delta=delta, search_runs=2_000, runs=runs, **settings_of(seed))
    return not isinstance(verdict, NotRefuted)


def checked_in_epochs(function, seed):
    """A check that bets from the first run on; its bound exceeds the truth only where it refutes."""
    claim = ApproxDP(epsilon=1.0, delta=DELTAS.get(function.__name__, 0.0))
    verdict = check(made(function), claim=claim, search_runs=0, runs=300, **settings_of(seed))
    assert verdict.refuted is not isinstance(verdict, NotRefuted)
    return verdict.refuted or verdict.epsilon_lower_bound > 1.0


#: Claims that just hold, of mechanisms that reach them: the boundary of each kind of claim that is no (ε, δ).
BOUNDARIES = {
    "gdp": (gaussian, GaussianDP(1.0)),
    "trade-off": (gaussian, TradeOff(lambda a: ndtr(-ndtri(a) - 1.0))),
    "profile": (gaussian, PrivacyProfile([(e, gaussian_delta(e, mu=1.0)) for e in np.linspace(0, 3, 13)])),
    "rdp": (flagged, RenyiDP(4.0, float(RenyiDP(4.0, 0.0).reached(TRUTH, 1 - TRUTH)))),
    "zcdp": (flagged, ZCDP(float(ZCDP(0.0).reached(TRUTH, 1 - TRUTH)))),
}


def checked_claim(name, seed):
    """A check of another claim, at the whole level."""
    function, claim = BOUNDARIES[name]
    limits = {"search_runs": 2_000, "runs": 20_000, "bits": False, **settings_of(seed)}
    return not isinstance(check(made(function), claim=claim, **limits), NotRefuted)


def bounded(case, seed):
    """A bound of ε or of another parameter. The functions read no constants: comparing those takes a new process."""
    if isinstance(case, str):
        function, claim = BOUNDARIES[case]
        found = bound(made(function), claim=claim, search_runs=2_000, runs=20_000, **settings_of(seed))
        return found.epsilon_lower_bound > claim.parameter
    delta = DELTAS.get(case.__name__, 0.0)
    found = bound(made(case), epsilon=1.0, delta=delta, search_runs=2_000, runs=20_000, **settings_of(seed))
    return found.epsilon_lower_bound > 1.0


def profiled(function, seed):
    """A band that lies above δ(ε) of N(0, 1) against N(1, 1), or of a Laplace mechanism of ε = 1, anywhere."""
    truth = DELTA_OF_GAUSS if function is gaussian else np.maximum(-np.expm1((EPSILONS - 1) / 2), 0.0)
    found = profile(made(function), claim=9.0, search_runs=2_000, runs=20_000, **settings_of(seed))
    return bool(np.any(found.delta(EPSILONS) > truth + 1e-12))


def curved(function, seed):
    """A p-value of at most α at the true ε."""
    how = {key: value for key, value in settings_of(seed).items() if key != "alpha"}
    found = curve(made(function), epsilon=1.0, claims=[1.0], search_runs=2_000, runs=20_000, **how)
    return found.lines[0].p_values[0] <= ALPHA


@dataclass(frozen=True)
class Kind:
    """A kind of bet: whether a case of it raises an alarm in one repetition with a seed."""

    alarm: Callable[[object, int], bool]
    cases: tuple = (None,)
    road: bool = False

    def rounds(self):
        """The alarms of all cases, over and over, each repetition with a seed of its own."""
        seeds = count(FIRST)
        while True:
            yield [self.alarm(case, next(seeds)) for case in self.cases]


KINDS = {
    "a bet on an event": Kind(Boundary.refuted, tuple(ON_EVENT)),
    "a bet on cells": Kind(Boundary.refuted, tuple(ON_CELLS)),
    "bets in epochs": Kind(lambda _, seed: wealth_refutes(seed), (None,) * 4),  # seeds choose among four laws
    "bounds": Kind(Boundary.bound_above, (*ON_EVENT[:5], *ON_CELLS[:2])),
    "bounds of epochs": Kind(lambda _, seed: wealth_bounds_above(seed), (None,) * 4),
    "p-values": Kind(lambda _, seed: p_value_at_boundary(seed), (None,) * 4),
    "a band": Kind(lambda _, seed: band_at_boundary(seed)),
    "check": Kind(checked, sampled([*COMPILED, *VECTORISED, *PYTHON], 12), road=True),
    "check in epochs": Kind(checked_in_epochs, tuple(EPOCHS), road=True),
    "check of another claim": Kind(checked_claim, tuple(BOUNDARIES), road=True),
    "bound": Kind(bounded, (laplace, gaussian, histogram, "gdp"), road=True),
    "profile": Kind(profiled, (gaussian, laplace), road=True),
    "curve": Kind(curved, (many_laplace, many_flags), road=True),
}


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_rounds_tell_three_times_the_level(spread):
    """Also where the cases of a round differ."""
    rng = np.random.default_rng(1)

    def kept(level):
        rates = np.array([level * (1 + spread), level * (1 - spread)] * 6)
        return [keeps_level((rng.random(12) < rates for _ in count()), ALPHA, false=1e-6) for _ in range(500)]

    assert sum(kept(3 * ALPHA)) <= stats.binom.isf(1e-6, 500, 0.01)
    assert all(kept(ALPHA))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.campaign] * kind.road) for name, kind in KINDS.items()],
)
def test_a_claim_that_just_holds_is_refuted_no_more_often_than_said(name):
    kind = KINDS[name]
    assert keeps_level(kind.rounds(), ALPHA, fewest=SEEDS if kind.road else 1, false=1e-6 / len(KINDS))


@pytest.mark.campaign
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
