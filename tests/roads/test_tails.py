"""Checks and bounds of weighted runs: what they show that plain runs do not, witnesses, replays and refusals."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.claims import ApproxDP
from dpwitness.errors import InvalidParameter, InvalidWitness
from dpwitness.events import Weighted
from dpwitness.noise import gaussian
from running import scaled, with_all_seeds

ONE = [([1.0], [0.0])]
FEW = {"runs": 400_000, "search_runs": 50_000, "workers": 1, "bits": False, "seed": 1}


def subsampled(rng, data, sigma=0.6, rate=0.012):
    """A step of DP-SGD on one record: it is in the batch with probability `rate`."""
    total = 0.0
    if rng.random() < rate:
        total = data[0]
    return total + gaussian(rng, sigma)


def narrow(rng, data):
    """A little more than δ(1) = 0.01."""
    return 0.55 * data[0] + gaussian(rng, 1.0)


def numpys_own(rng, data):
    return data[0] + rng.normal(0.0, 1.0)


@pytest.fixture(scope="module")
def violation():
    return dpw.check(narrow, claim=ApproxDP(1.0, 3e-4), neighbours=ONE, tails=True, **FEW)


@pytest.mark.campaign
def test_a_violation_in_a_tail_is_shown_by_fewer_runs(violation):
    assert violation.refuted
    assert isinstance(violation.witness.event, Weighted)
    plain = dpw.check(narrow, claim=ApproxDP(1.0, 3e-4), neighbours=ONE, **FEW)
    assert not plain.refuted or plain.witness.counts.runs > violation.witness.counts.runs


@pytest.mark.campaign
def test_a_witness_says_that_its_runs_were_weighted(violation):
    text = str(violation)
    assert "weighted runs" in text
    assert "of the runs the noise was shifted, by" in text
    assert 0 < violation.epsilon_lower_bound < 2.0


def test_it_is_saved_and_replayed(violation, tmp_path):
    file = tmp_path / "witness.json"
    violation.witness.save(file)
    again = dpw.replay(file, narrow, seed=5, workers=1)
    assert again.refuted
    assert again.witness.weighted
    assert dpw.shrink(violation, narrow) is violation


@pytest.mark.parametrize("change", ["stake", "event", "offset"])
def test_a_file_that_was_changed_proves_nothing(violation, change):
    value = violation.witness.to_json()
    value = json.loads(json.dumps(value))
    if change == "stake":  # weighted runs by bets on plain ones
        del value["estimate"]["stake"]
    elif change == "event":  # and the other way round
        value["event"] = {**value["event"]["event"], "description": "x"}
    else:
        value["event"]["offset"] += 1
    with pytest.raises(InvalidWitness):
        dpw.replay(value, narrow, seed=5, workers=1)


def test_a_replay_is_of_a_claim_of_epsilon_and_delta(violation):
    with pytest.raises(InvalidParameter, match=r"claims of \(ε, δ\)"):
        dpw.replay(violation, narrow, claim="gdp:0.1", seed=5)


def test_tails_are_for_claims_of_epsilon_and_delta():
    for of in (dpw.check, dpw.bound):
        with pytest.raises(InvalidParameter, match=r"claims of \(ε, δ\)"):
            of(
                narrow,
                claim="zcdp:0.1",
                neighbours=ONE,
                tails=True,
                **{**FEW, "bits": False} if of is dpw.check else {},
            )


def test_its_runs_are_made_here():
    with ThreadPoolExecutor(1) as executor, pytest.raises(InvalidParameter, match="leave out executor"):
        dpw.check(narrow, claim=1.0, neighbours=ONE, tails=True, executor=executor)
    with pytest.raises(InvalidParameter, match="tails=1 must be True or False"):
        dpw.check(narrow, claim=1.0, neighbours=ONE, tails=1)


def test_other_noise_is_tested_as_always_and_a_note_says_why():
    verdict = dpw.check(numpys_own, claim=ApproxDP(1.0, 0.3), neighbours=ONE, tails=True, **{**FEW, "runs": 20_000})
    assert not verdict.refuted
    assert "no runs were weighted: it calls none of the samplers of dpwitness.noise itself" in verdict.notes
    assert not verdict.witness.weighted


@pytest.mark.campaign
def test_a_clear_violation_is_tested_as_always():
    verdict = dpw.check(narrow, claim=0.1, neighbours=ONE, tails=True, **{**FEW, "runs": 100_000})
    assert verdict.refuted
    assert not verdict.witness.weighted


def delta_of(epsilon, sigma=0.6, rate=0.012):
    """δ(ε) of `subsampled` on the inputs 1 and 0."""
    from scipy import stats

    t = np.linspace(-5.0, 8.0, 200_001)
    p = (1 - rate) * stats.norm.sf(t / sigma) + rate * stats.norm.sf((t - 1) / sigma)
    return float(np.max(p - math.exp(epsilon) * stats.norm.sf(t / sigma)))


@pytest.mark.campaign
@with_all_seeds
def test_a_subsampled_gaussian_exceeds_a_small_delta():
    assert 1.9e-5 < delta_of(1.5) < 2.7e-5
    for seed in range(2):
        common = {"neighbours": ONE, "delta": 5e-6, "runs": 5_000_000, "seed": seed}
        plain, weighted = (dpw.bound(subsampled, epsilon=1.5, tails=tails, **common) for tails in (False, True))
        assert weighted.epsilon_lower_bound > max(plain.epsilon_lower_bound, 1.5)
        assert delta_of(weighted.epsilon_lower_bound) >= 5e-6  # never above the truth


@pytest.mark.campaign
def test_a_wrong_sigma_is_refuted_at_a_small_delta_in_every_seed():
    runs = []
    for seed in range(min(scaled(80), 8)):
        effort = {"runs": 5_000_000, "max_time": 300, "seed": seed}
        found = dpw.check("gaussian_wrong_sigma", epsilon=1.0, tails=True, bits=False, **effort)
        assert found.refuted
        runs.append(found.witness.counts.runs)
    assert np.median(runs) <= 3_000_000  # plain runs of sides that share their draws need 2.6·10⁷


def laplace_of_both(rng, data):
    return data[0] + rng.laplace(0.0, 1.0) + gaussian(rng, 0.01)


def test_fast_noise_leaves_runs_as_they_are():
    given = {"claim": ApproxDP(1.2, 1e-4), "neighbours": ONE, "tails": True, "fast_noise": True}
    verdict = dpw.check(laplace_of_both, **given, **FEW)
    assert "no runs were weighted: fast_noise=True draws its noise in other calls" in str(verdict)
