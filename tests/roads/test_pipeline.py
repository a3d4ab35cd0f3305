import math
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import dpwitness as dpw
from dpwitness.api.loop import confirm_events
from dpwitness.claims import ApproxDP
from dpwitness.errors import (
    CompiledDisagrees,
    DependentRuns,
    InvalidOutcome,
    InvalidParameter,
    MechanismRaised,
    MechanismTimeout,
)
from dpwitness.events import Interval
from dpwitness.evidence import Counts, Estimate, bet_on, log_e_value, lower_bound
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.runs import Runner
from running import confirm, sampled, with_all_seeds


def cases(*names):
    """Each at ε = 0.7 with a short search in the suite; in the campaign others, with the search that is usual."""
    short = [(name, 0.7, 0, 100_000) for name in names]
    usual = [(name, epsilon, seed, None) for name in names for epsilon in (0.2, 0.7, 1.5) for seed in range(3)]
    return [*short, *(pytest.param(*case, marks=pytest.mark.campaign) for case in sampled(usual, 5))]


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "epsilon", "seed", "search_runs"), cases("laplace_mechanism", "histogram", "svt"))
def test_right_mechanisms_are_not_refuted_at_their_claim(name, epsilon, seed, search_runs):
    verdict = dpw.check(load(name), epsilon=epsilon, seed=seed, search_runs=search_runs, runs=1_000_000)
    assert isinstance(verdict, dpw.NotRefuted)
    assert epsilon < verdict.detectable_epsilon < 1.5 * epsilon  # a pass says what it would have caught
    assert verdict.epsilon_lower_bound <= epsilon


@pytest.mark.parametrize(("name", "epsilon", "seed", "search_runs"), cases("isvt1", "isvt2", "isvt3", "isvt4"))
def test_broken_mechanisms_are_refuted(name, epsilon, seed, search_runs):
    verdict = dpw.check(load(name), epsilon=epsilon, seed=seed, search_runs=search_runs)
    assert isinstance(verdict, dpw.Violation)
    assert verdict.log_e_value >= math.log(1e6)
    assert verdict.epsilon_lower_bound >= epsilon


@pytest.mark.campaign
@pytest.mark.parametrize(("seed", "search_runs"), [(0, 100_000), (1, None)])
@pytest.mark.parametrize(("epsilon", "kind"), [(0.2, dpw.Violation), (0.7, dpw.Violation), (1.5, dpw.NotRefuted)])
def test_the_wrong_scale_is_refuted_where_it_is_less_private(epsilon, kind, seed, search_runs):
    verdict = dpw.check(load("histogram_wrong_scale"), epsilon=epsilon, seed=seed, search_runs=search_runs)
    assert isinstance(verdict, kind)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("name", "epsilon", "runs", "least", "truth"),
    [
        ("histogram_wrong_scale", 1.5, 2_000_000, 0.60, 1 / 1.5),
        # The pair that moves most answers up and the rest down: more than an optimal event allows with independent
        # sides (0.0846 at 2·10⁷ runs).
        ("svt", 0.1, 5_000_000, 0.078, 0.1),
    ],
)
def test_a_bound_is_near_the_truth_and_never_above_it(name, epsilon, runs, least, truth):
    assert least <= dpw.bound(load(name), epsilon=epsilon, runs=runs, seed=1).epsilon_lower_bound <= truth


@pytest.mark.parametrize("seeds", [100, pytest.param(600, marks=[pytest.mark.campaign, with_all_seeds])])
def test_level_of_coupled_runs_at_an_exact_boundary(seeds):
    """The Laplace mechanism at its own claim with the event of largest ratio, a look after every shard."""
    pair = dpw.pairs(([0.0], [1.0])).given[0]
    mechanism = as_mechanism(load("laplace_mechanism"), pair.data, epsilon=1.0)
    event, claim, alpha = Interval(coordinate=0, high=0.0), ApproxDP(epsilon=1.0), 0.05
    q = math.exp(-1) / 2
    hint = Estimate(p=0.51, q=q, both=q)
    alarms = 0
    for seed in range(seeds):
        looks = confirm(mechanism, pair, [event], seed=seed, runs=10 * mechanism.shard)
        alarms += any(log_e_value(counts, claim, hint) >= math.log(1 / alpha) for (counts,) in looks)
    assert alarms <= stats.binom.isf(1e-9, seeds, alpha)
    assert alarms > 0  # the boundary is met: an e-value that never grows would prove nothing


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("name", "limits"),
    [("isvt4", {"seed": 4, "search_runs": 100_000}), ("isvt1", {"seed": 5, "search_runs": 0, "runs": 2_000})],
)
def test_the_same_seed_gives_the_same_verdict_for_any_number_of_workers(name, limits):
    """By a search, and by epochs."""
    one, two = (dpw.check(load(name), epsilon=0.7, workers=workers, **limits) for workers in (1, 2))
    assert isinstance(one, dpw.Violation)
    assert (one.epoch_runs, one.log_e_value) == (two.epoch_runs, two.log_e_value)
    assert one.witness.to_json() == two.witness.to_json()
    assert one.reproducible


@pytest.mark.campaign
def test_a_curve_of_another_familys_parameter():
    """Gaussian noise of μ = 1 is ½-zCDP; by binary events D_2 and ρ show two thirds and more of their size."""
    settings = {"epsilon": [math.sqrt(2 * math.log(1.25 / 1e-5))], "runs": 50_000, "search_runs": 20_000, "seed": 3}
    gaussian = load("gaussian_mechanism")
    for claim, tests in ((dpw.GaussianDP(9.0), (0.8, 1.0, 1.2)), (dpw.ZCDP(9.0), (0.2, 0.5, 0.6))):
        found = dpw.curve(gaussian, claim=claim, claims=tests, **settings)
        low, true, high = found.lines[0].p_values
        assert low < 1e-6
        assert true > 1e-4
        assert high > 0.5
        assert str(found).splitlines()[1].startswith(f"test {claim.symbol}")
    with pytest.raises(InvalidParameter, match="method='score' is for claims of ε and δ, not for μ = 1"):
        dpw.curve(gaussian, claim=dpw.GaussianDP(1.0), claims=[1.0], method="score", **settings)
    with pytest.raises(InvalidParameter, match="a parameter of μ = 1 is not negative"):
        dpw.curve(gaussian, claim=dpw.GaussianDP(1.0), claims=[-1.0], **settings)
    with pytest.raises(dpw.errors.InvalidClaim, match=r"claims=\[1\.0, 701\.0\]: mu=701\.0 must be a number"):
        dpw.curve(gaussian, claim=dpw.GaussianDP(1.0), claims=[1.0, 701.0], **settings)


def test_mechanisms_that_say_nothing_are_refused():
    def constant(rng, data):
        return 3.0

    def nan(rng, data):
        return np.nan

    for function, message in ((constant, r"constant returned \[3\] on each"), (nan, "nan returned NaN")):
        with pytest.raises(InvalidOutcome, match=message):
            dpw.check(function, epsilon=1.0, neighbours=dpw.queries(2), seed=1, search_runs=2_000)


def test_a_mechanism_without_noise_is_refuted_at_once():
    def naked(rng, data):
        return data[0]

    verdict = dpw.check(naked, epsilon=5.0, neighbours=dpw.queries(2), seed=1, search_runs=20_000)
    assert isinstance(verdict, dpw.Violation)
    assert verdict.counts.neighbour_hits == 0


@pytest.mark.parametrize("shards", [0, 1])
def test_a_p_value_for_a_fixed_number_of_runs_is_not_had_from_fewer(shards, monkeypatch):
    """A curve that is cut off by its deadline has no p-values: they hold for the number of runs planned."""

    def noisy(rng, data, epsilon, size):
        return data[0] + rng.laplace(0, 1 / epsilon, size)

    settings = {"epsilon": [1.0], "claims": [0.5], "neighbours": dpw.pairs(([0.0], [1.0])), "seed": 1}
    settings |= {"runs": 50_000, "search_runs": 2_000}
    assert dpw.curve(noisy, **settings).lines[0].counts[0].runs == 50_000
    original = Runner.confirm
    monkeypatch.setattr(Runner, "confirm", lambda *given, **more: islice(original(*given, **more), shards))
    with pytest.raises(MechanismTimeout, match="noisy did not finish 50000 runs in 600 s: give fewer, or more time"):
        dpw.curve(noisy, **settings)


def test_a_curve_asks_for_independent_sides_for_its_exact_test():
    """With shared draws the event {u < 0.3} would lie within {u < 0.6}, and one cell would be 0."""

    def coin(rng, data, epsilon):
        return rng.random() < 0.3 * data[0]

    runs = 20_000
    found = dpw.curve(coin, epsilon=[1.0], claims=[0.5], neighbours=dpw.pairs(([1.0], [2.0])), seed=1, runs=runs)
    (counts,) = found.lines[0].counts
    p, q = counts.hits / runs, counts.neighbour_hits / runs
    assert {round(10 * p), round(10 * q)} in ({3, 6}, {4, 7})
    assert abs(counts.n10 / runs - p * (1 - q)) < 5 * math.sqrt(p * (1 - p) * q * (1 - q) / runs)


def test_a_curve_compares_with_python_the_runs_that_it_counted(monkeypatch):
    """Those of the pair as it was confirmed, whichever side of it an event is likelier on."""
    confirmed, compared = [], []
    confirm = Runner.confirm

    def confirms(self, pair, *given, coupled):
        confirmed.append((pair.key, coupled))
        return confirm(self, pair, *given, coupled=coupled)

    def compares(compiled, plain, pair, contains, streams, *, coupled):
        compared.append((pair.key, coupled))

    monkeypatch.setattr(Runner, "confirm", confirms)
    monkeypatch.setattr("dpwitness.api.loop.difference_in_event", compares)
    pair = dpw.pairs(([1.0], [0.0]))
    dpw.curve(one_answer, epsilon=[1.0], claims=[0.2, 0.9], neighbours=pair, seed=1, runs=2_000, search_runs=2_000)
    assert set(compared) == set(confirmed) == {(confirmed[0][0], False)}


@pytest.mark.parametrize("pair", [([1.0], [0.0]), ([0.0], [1.0])])
def test_p_values_are_adjusted_and_questioned_where_any_is_small(monkeypatch, pair):
    asked = []
    monkeypatch.setattr("dpwitness.api.curve.check_refutation", lambda *given: asked.append(given) or ())
    how = {"neighbours": dpw.pairs(pair), "seed": 1, "runs": 20_000, "search_runs": 2_000}
    (line,) = dpw.curve(one_answer, epsilon=[1.0], claims=[0.5, 2.0], **how).lines
    small, large = line.p_values
    assert 0 < small < 1e-6 < 0.5 < large
    assert line.adjusted == (2 * small, large)  # Holm 1979
    assert len(asked) == 1


def test_a_bound_has_its_confidence_and_a_witness_against_just_less(monkeypatch):
    monkeypatch.setattr("dpwitness.api.loop.check_refutation", lambda *_: ())
    how = {"neighbours": dpw.pairs(([0.0], [1.0])), "seed": 1, "runs": 20_000, "search_runs": 2_000}
    bound = dpw.bound(half_noise, alpha=0.01, **how)
    assert bound.confidence == 0.99
    assert 1 < bound.epsilon_lower_bound == bound.witness.claim.epsilon


def one_answer(rng, data, epsilon):
    return data[0] + rng.laplace(0, 1 / epsilon)


STAYS = math.exp(1) / (1 + math.exp(1))


def responds(rng, data):
    """Randomised response."""
    return 1 if (rng.random() < STAYS) == (data[0] == 1) else 0


BITS = dpw.pairs(([0], [1]))


@pytest.mark.parametrize(
    ("limits", "by_default"),
    [
        ({}, True),
        ({"seed": 3}, True),
        ({"max_time": 60}, False),
        ({"max_time": "60s"}, False),
        ({"runs": 4_000_000}, False),
    ],
)
def test_a_limit_that_is_given_counts_as_one_whatever_its_value(monkeypatch, limits, by_default):
    monkeypatch.setattr("dpwitness.api.check.work_on", lambda statement, effort, work: effort)
    assert dpw.check(responds, claim=1.0, neighbours=BITS, **limits).limits_by_default is by_default


def half_noise(rng, data, size):
    return data[0] + rng.laplace(0, 0.5, size)


@pytest.mark.usefixtures("asked_here")  # the subject is the level
def test_a_verdict_and_its_bound_leave_the_last_bits_their_share_of_alpha(monkeypatch):
    """With nearly all of α for the last bits, what reaches 1/α alone refutes nothing."""
    monkeypatch.setattr("dpwitness.problem.BITS_SHARE", 1 - 1e-6)
    alpha, how = 0.01, {"claim": 1.0, "neighbours": dpw.pairs(([0.0], [1.0])), "seed": 1, "search_runs": 5_000}
    clear = dpw.check(half_noise, alpha=alpha, runs=20_000, **how)
    assert isinstance(clear, dpw.Violation)
    bet, level = bet_on(clear.counts, clear.claim, clear.witness.estimate), 1e-6 * alpha
    assert clear.epsilon_lower_bound == lower_bound(bet, clear.claim, alpha=level)
    assert clear.epsilon_lower_bound < lower_bound(bet, clear.claim, alpha=alpha)
    few = int(11 / clear.log_e_value * clear.counts.runs)
    verdict = dpw.check(half_noise, alpha=alpha, runs=few, **how)
    assert math.log(1 / alpha) < verdict.log_e_value < math.log(1 / level)
    assert isinstance(verdict, dpw.NotRefuted)


ONE = dpw.pairs(([0.0], [1.0])).given[0]
HALF = Interval(coordinate=0, low=0.5)


def confirmed(*parts, runs=100):
    """A confirmation of runs that come in these parts; an error among them is raised."""

    def confirm(pair, events, runs, coupled):
        for part in parts:
            if isinstance(part, Exception):
                raise part
            yield (Counts(n00=part),)

    mechanism = SimpleNamespace(plain=None, label=lambda code: None)
    alone = SimpleNamespace(mechanism=mechanism, confirm=confirm, report=lambda *_: None, notes=())
    return confirm_events(alone, ONE, [HALF], runs)


@pytest.mark.parametrize("kind", [CompiledDisagrees, DependentRuns])
def test_runs_that_are_no_evidence_are_lost_to_an_error_and_others_are_not(kind):
    failed = confirmed(50, MechanismRaised("no more"))
    assert (failed.ended, failed.totals) == ("failed", (Counts(n00=50),))
    with pytest.raises(kind, match="no more"):
        confirmed(50, kind("no more"))
    with pytest.raises(MechanismRaised, match="no more"):
        confirmed(MechanismRaised("no more"))


def test_a_failed_run_ends_a_pass_and_not_what_was_proved_before_it(monkeypatch):
    monkeypatch.setattr("dpwitness.api.loop.check_refutation", lambda *_: ())
    monkeypatch.setattr("dpwitness.api.loop.check_pass", lambda *_: ())
    done = confirmed(50, MechanismRaised("no more"))
    assert done.examine(against=True).notes == ("the runs ended with an error: no more",)
    with pytest.raises(MechanismRaised, match="no more"):
        done.examine(against=False)


def in_python(rng, data, scale):
    """A number with noise that is not compiled, as it reads a text."""
    return float(str(data[0])) + rng.laplace(0.0, scale)


@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
def test_a_replay_of_a_mended_mechanism_ends_once_it_would_have_caught_half_of_what_the_witness_shows():
    pair = dpw.pairs(([0.0], [1.0]))
    options = {"epsilon": 1.0, "neighbours": pair, "seed": 3, "max_time": 60, "workers": 1}
    found = dpw.check(in_python, parameters={"scale": 0.25}, search_runs=0, **options)
    assert isinstance(found, dpw.Violation)
    ends = {}
    for scale, constant in ((0.25, 0), (1.0, 0), (1.0, 100)):
        replayed = dpw.replay(
            found.witness,
            lambda rng, data, scale, constant=constant, own=scale: in_python(rng, data, own) - constant,
            seed=5,
        )
        ends[scale, constant] = replayed.ended
        assert replayed.ended == "refuted" or replayed.counts.runs < 100_000  # as many as it may make
    assert list(ends.values()) == ["refuted", "excluded", "excluded"]
