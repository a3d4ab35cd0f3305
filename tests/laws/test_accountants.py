"""Claims read off accountants: what they state is what is tested; those of dp-accounting and Opacus as they are."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpwitness import NotRefuted, PrivacyProfile, Violation, bound, check, replay
from dpwitness.errors import InvalidClaim
from dpwitness.mechanisms.claims import claim_of
from truth import gaussian_delta

ONE = [([0], [1])]
LIMITS = {"neighbours": ONE, "search_runs": 30_000, "runs": 400_000, "seed": 3, "workers": 1}


def unit(rng, data, size):
    """N(0, 1) against N(1, 1)."""
    return data[0] + rng.standard_normal(size)


def less_noise(rng, data, size):
    """What the accountants below aren't told: σ = 0.7."""
    return data[0] + 0.7 * rng.standard_normal(size)


class OfEpsilon:
    """States δ for an ε, as dp-accounting does."""

    def get_epsilon(self, target_delta):
        raise AssertionError("δ can be asked for")

    def get_delta(self, target_epsilon):
        return gaussian_delta(target_epsilon, mu=1.0)


class OfDelta:
    """States ε for a δ, as Opacus does; raises where δ is more than ε = 0 needs, and knows nothing of tiny δ."""

    def get_epsilon(self, delta, **ignored):
        if delta > 0.2:
            raise ValueError("f(a) and f(b) must have different signs\nmore")
        return math.nan if delta < 1e-9 else 1 + math.sqrt(2 * math.log(1 / delta))


class OfNothing:
    """Allows everything."""

    def get_epsilon(self, delta):
        return math.inf


def test_a_profile_holds_what_was_stated():
    found = claim_of(OfEpsilon())
    assert isinstance(found, PrivacyProfile)
    assert found.points[0] == (0.0, gaussian_delta(0.0, mu=1.0))
    assert all(delta == gaussian_delta(epsilon, mu=1.0) for epsilon, delta in found.points)
    stated = claim_of(OfDelta()).points
    assert [delta for _, delta in stated] == [0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8]
    assert all(epsilon == 1 + math.sqrt(2 * math.log(1 / delta)) for epsilon, delta in stated)


@pytest.mark.campaign
def test_an_accountant_stands_wherever_a_claim_does():
    accountant = OfEpsilon()
    kept, broken = (check(function, claim=accountant, **LIMITS) for function in (unit, less_noise))
    assert isinstance(kept, NotRefuted)
    assert isinstance(broken, Violation)
    assert kept.claim == broken.claim == claim_of(accountant)
    assert isinstance(replay(broken.witness, less_noise, claim=accountant, seed=9, workers=1), Violation)
    found = bound(less_noise, claim=accountant, neighbours=ONE, runs=200_000, search_runs=30_000, seed=1, workers=1)
    at = np.linspace(-4, 4, 161)
    true = float(np.max(kept.claim.reached(ndtr(1 / 0.7 - at), ndtr(-at))))
    assert 0.4 * true < found.lower_bound <= true  # the largest excess is that of rare events


def test_one_that_states_nothing_is_refused():
    with pytest.raises(InvalidClaim, match=r"^claim=OfNothing: it states no \(ε, δ\)"):
        check(unit, claim=OfNothing(), **LIMITS)


@pytest.mark.parametrize("name", ["get_epsilon", "get_delta"])
def test_one_that_knows_of_no_runs_accuses_nobody(name):
    """As Opacus' without a history, and dp-accounting's that nothing was composed with."""
    accountant = type("Fresh", (), {name: lambda self, value: 0.0})()
    with pytest.raises(InvalidClaim, match=r"^claim=Fresh: it states ε = 0 at δ = .* without a composed mechanism"):
        claim_of(accountant)


def dp_accounting(name):
    module, kind = {"rdp": ("rdp", "RdpAccountant"), "pld": ("pld", "PLDAccountant")}[name]
    library = pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    accountant = getattr(pytest.importorskip(f"dp_accounting.{module}"), kind)()
    return accountant.compose(library.GaussianDpEvent(1.0))


@pytest.mark.library
@pytest.mark.parametrize("name", ["rdp", "pld"])
def test_of_dp_accounting(name):
    """Its δ is never less than that of the closed form, and nearly the same where it is not by Rényi orders."""
    accountant = dp_accounting(name)
    for epsilon, delta in claim_of(accountant).points:
        exact = gaussian_delta(epsilon, mu=1.0)
        assert delta >= exact * (1 - 1e-6)
        if name == "pld" and exact > 1e-9:
            assert delta <= exact * 1.01
    assert isinstance(check(unit, claim=accountant, **LIMITS), NotRefuted)
    assert isinstance(check(less_noise, claim=accountant, **{**LIMITS, "runs": 4_000_000}), Violation)
