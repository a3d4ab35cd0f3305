"""What a run costs, and what follows from it. Laplace noise of scale 1 on a sum that differs by 1 is 1-DP exactly."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from dpwitness import Violation, check
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.noise import laplace
from running import sampled


def noisy_sum(rng, data):
    total = 0.0
    for k in range(len(data) - 1, -1, -64):  # every 64th value: it is their number that is tested, not the adding
        total += data[k]
    return total + laplace(rng, 1.0)


def noisy_sums(rng, data, size):
    return data.sum() + rng.laplace(0.0, 1.0, size=size)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("mechanism", "values", "budget"),
    sampled([(noisy_sum, 32_561, 1_000), (noisy_sums, 300_000, None), (noisy_sums, 3_000_000, None)], 2),
)
def test_a_sum_over_many_values_is_searched_with_the_full_budget(mechanism, values, budget):
    """Rows as wide as the input left 64 search runs for 32,561 values, and none for three million."""
    data, neighbour = np.zeros(values), np.zeros(values)
    neighbour[-1] = 1.0
    ready = as_mechanism(mechanism, data, neighbour=neighbour)  # compiled before: tracing makes that slow
    if budget is None:  # the budget is what fits in the time: here in that of an idle machine, whatever this one does
        ready.cost = replace(ready.cost, seconds_per_run=3e-6)
    tracemalloc.start()
    how = {"search_runs": budget, "seed": 1, "max_time": 600, "workers": 1}  # a slow machine sends inputs to processes
    verdict = check(ready, epsilon=0.5, neighbours=[(data, neighbour)], **how)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(verdict, Violation)
    if budget is None:
        assert verdict.search_runs >= 50_000  # of 100,000, which fit in the time; the rest once the best is known
    else:
        assert verdict.search_runs >= budget  # not 64; what is uncertain is counted again on as many
    # Two inputs of three million values are 48 MB, and so are their copies; a key of one input takes 51 for a while.
    assert most < 160e6
