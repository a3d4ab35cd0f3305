"""Evidence over the sessions of a history: its expectation by enumeration, its level, and late violations."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from dpwitness import Interval, PureDP
from dpwitness.evidence import Counts, Estimate, log_e_value
from dpwitness.evidence.kept import log_weight
from dpwitness.neighbours import Pair, Pairs
from dpwitness.results.kept import KeptEvidence
from dpwitness.results.witness import Witness
from running import scaled

CLAIM = PureDP(1.0)
PAIR = Pair(np.array([0.0]), np.array([1.0]))
WITNESS = Witness(
    mechanism="tests:noisy", parameters={}, claim=CLAIM, alpha=0.1, pair=PAIR, relation=Pairs((PAIR,)), seed=1,
    event=Interval(coordinate=0, high=0.0), description="output below 0", counts=Counts(),
    estimate=Estimate(p=0.6, q=0.2, both=0.1),
)  # fmt: skip
OTHER = replace(WITNESS, event=Interval(coordinate=0, high=-1.0), estimate=Estimate(p=0.3, q=0.1, both=0.1))
#: 6/(π²b²) of the sessions b from 1 on.
WEIGHTS = 6 / (math.pi * np.arange(1, 100)) ** 2


def shares(witness):
    """The probabilities of (1,0), (1,1), (0,1) and (0,0) for a mechanism that exactly meets the claim, p = e·q."""
    n10, n11 = 0.5 if witness is WITNESS else 0.2, 0.1
    n01 = (n10 + n11) / math.e - n11
    return n10, n11, n01, 1 - n10 - n11 - n01


def kept(sessions=(), **fields):
    """The kept evidence after sessions with the given counts."""
    found = KeptEvidence(neighbours="", witness=WITNESS, **fields)
    for counts in sessions:
        found = found.after("a", len(found.sessions), counts)
    return found


def bet_on_other(found):
    return replace(found, witness=OTHER, settled=found.log_wealth, began=len(found.sessions))


def drawn(rng, witness, runs, sessions):
    for row in rng.multinomial(runs, shares(witness), sessions).tolist():
        yield Counts(n10=row[0], n11=row[1], n01=row[2], n00=row[3])


def one_run(witness):
    """The counts of one run, with their probabilities."""
    for name, chance in zip(("n10", "n11", "n01", "n00"), shares(witness), strict=True):
        yield Counts(**{name: 1}), chance


def test_the_wealth_expected_of_a_claim_that_is_kept_is_the_wealth_that_was_bet():
    """By enumeration of four sessions of one run; after the second session the outcomes choose the event."""
    paths = [(kept(), 1.0)]
    for session in range(4):
        paths = [
            (found.after("a", session, counts), chance * more)
            for found, chance in paths
            for counts, more in one_run(found.witness)
        ]
        expected = sum(chance * math.exp(found.log_wealth) for found, chance in paths)
        assert expected == pytest.approx(WEIGHTS[: session + 1].sum(), rel=1e-9)
        if session == 1:
            paths = [(bet_on_other(one) if one.sessions[0].counts.n10 else one, chance) for one, chance in paths]


def test_all_beginnings_together_bet_no_more_than_there_is():
    weights = np.exp([log_weight(session) for session in range(1, 100_000)])
    assert 1 - 1e-5 < weights.sum() < 1
    assert weights[:99] == pytest.approx(WEIGHTS)


def test_a_violation_that_begins_late_is_found_as_if_the_history_began_there():
    before = [Counts(n10=10, n11=20, n01=30, n00=40)] * 49
    late = [Counts(n10=600, n11=100, n01=50, n00=250)] * 2
    found, alone = kept([*before, *late]), log_e_value(late[0] + late[1], CLAIM, WITNESS.estimate)
    assert log_e_value(sum(before, Counts()) + late[0] + late[1], CLAIM, WITNESS.estimate) < 0 < alone
    assert found.log_wealth == pytest.approx(log_weight(50) + alone, abs=0.1)
    assert log_weight(50) == pytest.approx(-8.3, abs=0.05)


def test_wealth_of_an_earlier_event_goes_on_and_that_of_a_refuted_history_does_not():
    rng = np.random.default_rng(1)
    first, second = drawn(rng, WITNESS, 50, 2)
    found = bet_on_other(kept([first]))
    assert found.log_wealth == pytest.approx(kept([first]).log_wealth)
    (third,) = drawn(rng, OTHER, 50, 1)
    own = log_e_value(third, CLAIM, OTHER.estimate)
    won = np.logaddexp(math.log(WEIGHTS[0]) + log_e_value(first, CLAIM, WITNESS.estimate), math.log(WEIGHTS[1])) + own
    assert found.after("b", 5, third).log_wealth == pytest.approx(won)
    assert found.after("b", 5, third).sessions[1].log_e_value == pytest.approx(own)
    anew = kept([first]).anew()
    assert anew.log_wealth == found.anew().log_wealth == -math.inf
    assert anew.versions == {}
    again = anew.after("b", 5, second)
    assert again.log_wealth == pytest.approx(math.log(WEIGHTS[0]) + log_e_value(second, CLAIM, WITNESS.estimate))
    assert list(again.versions) == ["b"]


def histories(number, sessions, runs, seed):
    """The largest log wealth of each history, for a number of histories of a mechanism that exactly meets the claim.

    The event changes whenever the wealth has fallen below that before the last change, as the worst habit would.
    """
    rng = np.random.default_rng(seed)
    for _ in range(number):
        found, most = kept(), -math.inf
        for session in range(sessions):
            (counts,) = drawn(rng, found.witness, runs, 1)
            found = found.after("a", session, counts)
            most = max(most, found.log_wealth)
            if found.witness is WITNESS and found.log_wealth < math.log(0.5):
                found = bet_on_other(found)
        yield most


@pytest.mark.campaign
def test_the_level_holds_over_whole_histories():
    number = scaled(2_000)
    alarms = sum(most >= math.log(10) for most in histories(number, 12, 200, 1))
    assert alarms <= binom.isf(1e-9, number, 0.1)


@pytest.mark.campaign
def test_many_sessions_show_what_none_shows_alone():
    """2.5 % more hits than the claim allows: refuted at α = 10⁻⁶ within 30 sessions of 20,000 runs, never in one."""
    rng = np.random.default_rng(2)
    more = np.array([0.015, 0, 0, -0.015])
    found = []
    for _ in range(20):
        rows = rng.multinomial(20_000, shares(WITNESS) + more, 30).tolist()
        counts = [Counts(n10=a, n11=b, n01=c, n00=d) for a, b, c, d in rows]
        assert max(log_e_value(one, CLAIM, WITNESS.estimate) for one in counts) < math.log(1e6)
        found.append(kept(counts).log_wealth >= math.log(1e6))
    assert sum(found) >= 19
