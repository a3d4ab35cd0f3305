"""Checks that bet from the first run on: every road through them, and mechanisms whose runs are no evidence."""

import itertools
import json
import math
import time
from dataclasses import replace

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.api import epochs as epochs_module
from dpwitness.candidate import Candidate
from dpwitness.errors import BudgetTooSmall, DependentRuns, InvalidOutcome, MechanismTimeout
from dpwitness.events import Interval
from dpwitness.evidence import Counts, Estimate, runs_to_detect
from dpwitness.evidence.counts import CountsTable
from dpwitness.neighbours import Pair, Relation
from dpwitness.problem import Effort
from dpwitness.results.verdict import verdict_from_json
from dpwitness.runs import Runner
from dpwitness.search.epochs import PairWealth
from running import prepare, soon

ONE = dpw.pairs(([0.0], [1.0]))
#: One process; no run is thrown away.
HERE = {"search_runs": 0, "seed": 1, "workers": 1}
#: Randomised response of ε = 1, and of ε = 3.
TRUTH, CLEAR = (math.exp(epsilon) / (1 + math.exp(epsilon)) for epsilon in (1.0, 3.0))


def answers(rng, data):
    return "yes" if (rng.random() < CLEAR) == (data[0] == 1) else "no"


def honest(rng, data):
    return "yes" if (rng.random() < TRUTH) == (data[0] == 1) else "no"


def many_numbers(rng, data, size):
    return data[0] * 3 + rng.laplace(size=size)


def ragged(rng, data):
    return [str(rng.random() < 0.5)] * (1 + (rng.random() < CLEAR) + 2 * (data[0] == 1 and rng.random() < CLEAR))


def released(value):
    """What a mechanism returns, all of it: functions with `outcome=` run as plain Python, nothing is compiled."""
    return value


def checked(mechanism, *, claim=1.0, neighbours=ONE, **settings):
    return dpw.check(mechanism, claim=claim, neighbours=neighbours, **HERE | outcome_of(mechanism) | settings)


def outcome_of(mechanism):
    return {} if "size" in mechanism.__code__.co_varnames else {"outcome": released}


@pytest.mark.usefixtures("asked_here")  # shrinking refutes many times
@pytest.mark.parametrize("mechanism", soon([many_numbers, answers, ragged], 1))
def test_a_violation_is_saved_read_replayed_and_shrunk(mechanism, tmp_path):
    found = checked(mechanism)
    assert isinstance(found, dpw.Violation)
    assert found.ended == "refuted"
    assert 0 < found.counts.runs <= found.epoch_runs < 2_000
    assert found.search_runs == 0
    assert found.epsilon_lower_bound >= 1.0
    assert f"runs: {found.epoch_runs:,} in epochs" in str(found)
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert verdict_from_json(told).to_json() == found.to_json()
    found.witness.save(tmp_path / "witness.json")
    settings = {"runs": 20_000, "workers": 1, **outcome_of(mechanism)}
    again = dpw.replay(dpw.Witness.load(tmp_path / "witness.json"), mechanism, seed=2, **settings)
    assert isinstance(again, dpw.Violation)
    shrunk = dpw.shrink(found, mechanism, max_time=0.7, **settings)
    assert isinstance(shrunk, dpw.Violation)


@pytest.mark.campaign
def test_epochs_end_when_what_the_user_wants_to_detect_has_been_looked_for():
    ratio, most = 1.5, 200_000
    verdict = checked(honest, claim=1.3, runs=most, detectable_ratio=ratio)  # its runs are well within that claim
    looked_for = runs_to_detect(verdict.claim, ratio * 1.3, alpha=verdict.alpha) / epochs_module.SEARCH_DIVISOR
    assert isinstance(verdict, dpw.NotRefuted)
    assert (verdict.ended, verdict.runs_made) == ("detectable", verdict.epoch_runs + verdict.counts.runs)
    assert looked_for <= verdict.epoch_runs <= 1.1 * looked_for  # an epoch is a sixteenth of the runs so far
    # Runs come in shards of 65,536 at most.
    assert verdict.counts.runs <= 65_536 < most
    assert verdict.detectable_epsilon <= ratio * 1.3
    refuted = checked(answers, claim=1.0, runs=most, detectable_ratio=ratio)
    assert isinstance(refuted, dpw.Violation)


@pytest.mark.campaign
@pytest.mark.parametrize("stage", ["search", "confirm"])
def test_an_interrupt_keeps_what_was_bet(stage):
    def interrupt(now, done, total, note):
        if now == stage and done >= 60:
            raise KeyboardInterrupt

    verdict = checked(honest, progress=interrupt, runs=1_000)
    assert isinstance(verdict, dpw.NotRefuted)
    assert verdict.ended == "interrupted"
    assert verdict.epoch_runs == (500 if stage == "confirm" else pytest.approx(60, abs=10))
    assert verdict.runs_made == verdict.epoch_runs + (verdict.counts.runs if stage == "confirm" else 0)


def test_an_interrupt_before_the_first_runs_count_is_no_timeout(monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "epoch", interrupt)
    with pytest.raises(KeyboardInterrupt):
        checked(honest, runs=100)


def slow(rng, data):
    time.sleep(0.001)
    return honest(rng, data)


def test_time_runs_out_within_an_epoch():
    verdict = checked(slow, max_time=0.6, search_runs=None)
    assert isinstance(verdict, dpw.NotRefuted)
    assert verdict.ended == "time"
    assert 0 < verdict.epoch_runs < 600


def stuck(rng, data):
    time.sleep(0.2)
    return honest(rng, data)


def test_not_even_one_run_in_time_is_an_error():
    with pytest.raises(MechanismTimeout, match="give a larger max_time"):
        checked(stuck, max_time=0.1)


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_the_fewest_runs_are_enough_for_a_verdict(runs):
    with pytest.raises(BudgetTooSmall, match=f"runs={runs} is too small"):
        checked(answers, runs=runs)
    verdict = checked(honest, runs=runs, alpha=0.9)
    assert verdict.epoch_runs + verdict.counts.runs >= runs


@pytest.mark.filterwarnings("ignore::dpwitness.SlowMechanism")
def test_an_epoch_with_a_run_that_does_not_answer_is_not_left_out(monkeypatch):
    """More would be bet on the condition that it answered: the mean e-value of such a system was 2.2."""
    mechanism = prepare(honest, neighbours=ONE)[0].mechanism
    calls, fill = itertools.count(), mechanism.pair_rows

    def pair_rows(*given):
        if next(calls) == 9:
            raise MechanismTimeout("honest did not answer in 1 s")
        return fill(*given)

    monkeypatch.setattr(mechanism, "pair_rows", pair_rows)
    with pytest.raises(MechanismTimeout, match="did not answer in 1 s"):
        dpw.check(mechanism, claim=1.0, neighbours=ONE, runs=1_000, max_time=60, **HERE)
    assert next(calls) > 9


def test_few_runs_that_are_all_the_same_are_no_reason_to_refuse():
    verdict = checked(lambda rng, data: "same", runs=600)
    assert isinstance(verdict, dpw.NotRefuted)
    assert verdict.log_e_value <= 0


def parity(rng, data):
    return next(COUNT) % 2


def late_parity(rng, data):
    k = next(COUNT)
    return k % 2 if k > 50 else int(rng.random() < 0.5)


def walk(rng, data):
    KEPT[data[0]] = 0.98 * KEPT.get(data[0], 0.0) + rng.normal()
    return float(KEPT[data[0]])


def one_noise_a_call(rng, data, size):
    return np.full(size, rng.laplace()) + 1e-3 * rng.random(size)


def calls_in_turn(rng, data, size):
    return np.full(size, float(next(COUNT) % 2))


def blocks(rng, data):
    return float(next(COUNT) // 64 % 2) + rng.random()


COUNT = itertools.count()
KEPT = {}


@pytest.mark.campaign
@pytest.mark.parametrize(
    "mechanism",
    [parity, late_parity, walk, one_noise_a_call, calls_in_turn, blocks],
    ids=lambda function: function.__name__,
)
def test_runs_that_hang_together_convict_nobody(mechanism):
    """All of them treat the two inputs alike, if one runs them once: refused, or passed."""
    KEPT.clear()
    try:
        verdict = checked(mechanism, claim=0.5, alpha=0.01, runs=600)
    except (DependentRuns, InvalidOutcome):
        return
    assert isinstance(verdict, dpw.NotRefuted)


@pytest.mark.parametrize("pairs", [1, 3])
def test_the_wealth_of_pairs_that_were_never_bet_on_counts(pairs):
    """The e-value is the mean over all places from the start: leaving those out that bet nothing would lift it."""
    given = [([0.0], [float(k + 1)]) for k in range(pairs)]
    problem, runner = prepare(many_numbers, neighbours=given)
    epochs = epochs_module.epochs_of(problem, runner, Effort(runs=64), ())
    epochs.bet(64)
    assert epochs.places > pairs - (pairs == 1)
    shares = sum(len(course.epochs) for course in epochs.courses) + epochs.wealth.unused
    assert shares == 2 * epochs.places
    assert epochs.wealth.log_e_value(problem.claim) == pytest.approx(epochs._log_wealth(), rel=1e-9)
    left = replace(epochs.wealth, unused=0).log_e_value(problem.claim)
    assert (left > epochs._log_wealth() + 0.1) == (pairs > 1)  # what a mistake here would be worth


class One(Relation):
    """One pair, and many variations of it."""

    noun = "value"

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        yield Pair(np.zeros(1), np.ones(1))

    def variations(self, pair, *, scale=1.0):
        return (Pair(np.zeros(1), np.full(1, 2.0 + k)) for k in range(10))

    def contains(self, pair, data=None):
        return True


def test_no_more_pairs_are_bet_on_than_have_a_share_of_the_wealth():
    problem, runner = prepare(many_numbers, neighbours=One())
    epochs = epochs_module.epochs_of(problem, runner, Effort(runs=64), ())
    epochs.bet(64)
    assert epochs.varied
    assert len(epochs.courses) <= epochs.places


def test_counts_of_the_epochs_are_in_the_direction_of_the_candidate():
    pair, event = dpw.pairs(([0.0], [1.0])).given[0], Interval(coordinate=0, low=0.5)
    seen = CountsTable(np.array([[7], [5], [3], [2]]))
    course = PairWealth(pair=pair, index=0, numbers={event: 0}, seen=seen)
    estimate = Estimate(p=0.5, q=0.2, both=0.1)
    along = course.counts(Candidate(pair=pair, event=event, estimate=estimate))
    against = course.counts(Candidate(pair=pair.swapped(), event=event, estimate=estimate))
    assert (along.n10, along.n11, along.n01, along.n00) == (7, 5, 3, 2)
    assert (against.n10, against.n11, against.n01, against.n00) == (3, 5, 7, 2)
    other = course.counts(Candidate(pair=pair, event=Interval(coordinate=0), estimate=estimate))
    assert other.runs == 0


def test_an_event_is_counted_in_the_runs_since_it_was_chosen():
    """Those that chose it hold it more often; and of too few later ones nothing is said."""
    pair, low, high = dpw.pairs(([0.0], [1.0])).given[0], Interval(coordinate=0, low=0.5), Interval(coordinate=0, low=2)
    x, y = np.ones((40, 1)), np.ones((40, 1))
    x[20:28], y[20:25] = 0.0, 0.0
    course = PairWealth(pair=pair, index=0, x=x, y=y, chosen=[(low, 20), (high, 39)])
    along = Candidate(pair=pair, event=high, estimate=None)
    assert course.later_counts(along) == ((low, Counts(n11=12, n01=3, n00=5)),)
    assert course.later_counts(replace(along, pair=pair.swapped())) == ((low, Counts(n11=12, n10=3, n00=5)),)


def test_the_verdict_has_the_e_value_by_which_the_runs_ended(monkeypatch):
    said, confirm_events = [], epochs_module.confirm_events

    def confirm(*given, look, **named):
        return confirm_events(*given, look=lambda totals: said.append(look(totals)) or said[-1], **named)

    monkeypatch.setattr(epochs_module, "confirm_events", confirm)
    verdict = checked(honest, runs=2_000)
    assert f"log e-value {verdict.log_e_value:.1f} of" in said[-1][1]
