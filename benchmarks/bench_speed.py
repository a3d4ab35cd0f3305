"""Speed: `pytest -n 0 benchmarks/bench_speed.py` (pytest-benchmark); compare ratios within one run."""

import math

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.events import OutcomeSet
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.runs import Runner, default_workers
from throughput import numpy_laplace, svt_by_hand

SEVEN = ("histogram", "histogram_wrong_scale", "svt", "isvt1", "isvt2", "isvt3", "isvt4")
RUNS = 1_000_000
PAIR = dpw.pairs(([0.0] * 10, [1.0] * 9 + [-1.0])).given[0]


#: SVT on both inputs, the event ⊥⊥⊤ counted, and nothing else.
hand_written = svt_by_hand(numpy_laplace)


@pytest.mark.benchmark(group="raw runs of svt, event counted")
def test_hand_written_loop(benchmark):
    rng = np.random.Generator(np.random.SFC64(1))
    hand_written(rng, PAIR.data, PAIR.neighbour, 0.7, 10)
    counts = benchmark(hand_written, rng, PAIR.data, PAIR.neighbour, 0.7, RUNS)
    assert counts.sum() == RUNS


@pytest.mark.parametrize("coupled", [False, True], ids=["independent", "coupled"])
@pytest.mark.benchmark(group="raw runs of svt, event counted")
def test_engine_on_one_core(benchmark, coupled):
    mechanism = as_mechanism(load("svt"), PAIR.data, epsilon=0.7)
    event = OutcomeSet([[0, 0, 1]])

    def run():
        *_, (counts,) = Runner(mechanism=mechanism, seed=1, workers=1).confirm(PAIR, [event], RUNS, coupled=coupled)
        return counts

    run()
    assert benchmark(run).runs == RUNS


@pytest.mark.benchmark(group="seven founding targets at 0.7, own claim")
def test_seven_targets(benchmark):
    for name in SEVEN:
        dpw.check(load(name), epsilon=0.7, seed=0)  # warm: compiled
    seeds = iter(range(1, 1000))

    def run():
        seed = next(seeds)
        return [dpw.check(load(name), epsilon=0.7, seed=seed) for name in SEVEN]

    verdicts = benchmark.pedantic(run, rounds=5)
    assert [isinstance(v, dpw.Violation) for v in verdicts] == [name not in ("histogram", "svt") for name in SEVEN]


@pytest.mark.benchmark(group="399 p-values of the paper's figures")
def test_figures(benchmark):
    tests = [round(0.1 * k, 1) for k in range(1, 20)]

    def run():
        return [dpw.curve(load(name), epsilon=[0.2, 0.7, 1.5], claims=tests, seed=1) for name in SEVEN]

    curves = benchmark.pedantic(run, rounds=1, warmup_rounds=0)
    assert sum(len(line.p_values) for curve in curves for line in curve.lines) == 399
    assert all(math.isfinite(p) for curve in curves for line in curve.lines for p in line.p_values)
    assert default_workers() >= 1
