"""What a run costs, and what follows from it. Laplace noise of scale 1 on a sum that differs by 1 is 1-DP exactly."""

import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from dpwitness import Violation, check, pairs
from dpwitness.errors import MechanismRaised
from dpwitness.mechanisms.mechanism import SLOW_RUN_SECONDS, Cost
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair, as_finite_numbers
from dpwitness.noise import laplace


def noisy_sum(rng, data):
    total = 0.0
    for k in range(len(data) - 1, -1, -64):  # every 64th value: it is their number that is tested, not the adding
        total += data[k]
    return total + laplace(rng, 1.0)


def noisy_sums(rng, data, size):
    return data.sum() + rng.laplace(0.0, 1.0, size=size)


@pytest.mark.parametrize(
    ("mechanism", "values", "budget"),
    [
        pytest.param(noisy_sum, 32_561, 1_000, marks=pytest.mark.campaign),
        (noisy_sums, 300_000, None),
        pytest.param(noisy_sums, 3_000_000, None, marks=pytest.mark.campaign),
    ],
)
def test_a_sum_over_many_values_is_searched_with_the_full_budget(mechanism, values, budget):
    """Rows as wide as the input left 64 search runs for 32,561 values, and none for three million."""
    data, neighbour = np.zeros(values), np.zeros(values)
    neighbour[-1] = 1.0
    ready = as_mechanism(mechanism, data, neighbour=neighbour)  # compiled before: tracing makes that slow
    if budget is None:  # the budget is what fits in the time: here in that of an idle machine, whatever this one does
        ready.cost = replace(ready.cost, seconds_per_run=3e-6)
    tracemalloc.start()
    verdict = check(ready, epsilon=0.5, neighbours=[(data, neighbour)], search_runs=budget, seed=1, max_time=600)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(verdict, Violation)
    if budget is None:
        assert verdict.search_runs >= 50_000  # of 100,000, which fit in the time; the rest once the best is known
    else:
        assert verdict.search_runs >= budget  # not 64; what is uncertain is counted again on as many
    # Two inputs of three million values are 48 MB; copies of both, and both as bytes for other processes, are 98 more.
    assert most < 220e6


def test_the_cost_is_that_of_the_outcome_and_not_of_the_input():
    mechanism = as_mechanism(lambda data: (data.sum(), data[0]), as_finite_numbers(np.zeros(1_000)))
    assert mechanism.cost.width == mechanism.width == 2
    assert 0 < mechanism.cost.seconds_per_run < 1
    assert (mechanism.cost.compiled, mechanism.cost.batched) == (True, False)


def test_one_call_in_which_the_machine_was_busy_does_not_make_a_mechanism_slow(monkeypatch):
    mechanism = as_mechanism(lambda data: data[0] + 0.5, as_finite_numbers(np.zeros(2)))
    now, steps = 0.0, iter([*[1e-5] * 12, 0.2])  # 0.2 s pass in the first call that counts

    def clock():
        nonlocal now
        now += next(steps, 3e-4)
        return now

    monkeypatch.setattr("dpwitness.mechanisms.mechanism.perf_counter", clock)
    seconds, _ = mechanism.timed(Pair(np.zeros(2), np.ones(2)))
    assert 0 < seconds < 1e-6  # 0.0003 s for 512 runs or more of both inputs


def test_a_call_that_raises_while_it_is_timed_does_not_make_a_mechanism_fast():
    calls = []

    def dropped(data):
        calls.append(data)
        time.sleep(0.002)
        if len(calls) > 2:
            raise ValueError("a dropped connection")
        return float(data[0])

    mechanism = PythonMechanism(Signature.of(dropped, {}), None)
    seconds, _ = mechanism.timed(Pair(np.zeros(2), np.ones(2)))
    assert seconds > 1e-4


class NoText(RuntimeError):
    def __str__(self):
        raise ValueError("no text")


def test_an_exception_without_a_text_is_told_by_its_class():
    def raises(data):
        raise NoText

    with pytest.raises(MechanismRaised, match=r"raises raised NoText \(NoText whose text cannot be read "):
        check(raises, claim=1.0, neighbours=pairs(([0.0], [1.0])), outcome=float)


@pytest.mark.parametrize("kind", [{"compiled": True}, {"batched": True}, {}], ids=str)
def test_shards_follow_from_the_cost(kind):
    """16,384 runs a call of 10,000 cells were 1.3 gigabytes for each array."""
    for seconds in (1e-7, 2e-6, 4e-6, 6e-5, 5e-4, 3.9e-3, 1e-2, SLOW_RUN_SECONDS):
        cost = Cost(**kind, seconds_per_run=seconds)
        assert 2 * seconds * cost.shard < 0.33
        larger = [cost.shards_larger(cost.shard, runs) for runs in (1, 1 << 19, 1 << 20, 10**10)]
        assert larger == sorted(larger)
        assert set(larger) <= {1, 2, 4, 8}
        assert 2 * seconds * cost.shard * max(larger) < 0.33
    assert Cost(**kind, seconds_per_run=1e-6).shard >= 16_384
    if "batched" in kind:  # machine code counts its rows in blocks
        assert max(width * Cost(batched=True, width=width).shard for width in (1, 65, 10_000, 10**6)) <= 1 << 22
