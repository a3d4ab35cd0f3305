"""What `fast_noise` saves a mechanism that draws by NumPy's samplers: `python benchmarks/fast_noise.py [--json FILE]`.

Without it and with it alternate in one process, paired runs with shared draws, processor time of one worker. The ratio
is the time without by the time with it: minimum and median over the rounds.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np

from dpwitness.events import Event, Interval, OutcomeSet
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Runner

EPSILON = 0.7
#: Processor seconds of each part of a round.
SECONDS = 0.3


def laplace(rng, data, epsilon):
    return data[0] + rng.laplace(0, 1 / epsilon)


def exponential(rng, data, epsilon):
    return data[0] + rng.exponential(1 / epsilon)


def svt(rng, queries, epsilon, threshold=0.5, cutoff=1, sensitivity=1.0):
    """The bundled target, with NumPy's sampler."""
    answers = np.empty(len(queries))
    noisy_threshold = threshold + rng.laplace(0, 2 * sensitivity / epsilon)
    count = 0
    for i in range(len(queries)):
        if queries[i] + rng.laplace(0, 4 * cutoff * sensitivity / epsilon) >= noisy_threshold:
            answers[i] = True
            count += 1
            if count >= cutoff:
                return answers[: i + 1]
        else:
            answers[i] = False
    return answers


def histogram(rng, counts, epsilon):
    return counts + rng.laplace(scale=1 / epsilon, size=counts.shape)


ONE = Pair(np.array([0.0]), np.array([1.0]))
FIRST = Interval(coordinate=0, low=1.0)
CASES: dict[str, tuple[Any, Pair, Event]] = {
    "x + rng.laplace": (laplace, ONE, FIRST),
    "x + rng.exponential": (exponential, ONE, FIRST),
    "svt, 10 queries": (svt, Pair(np.zeros(10), np.array([1.0] * 9 + [-1.0])), OutcomeSet([[0, 0, 1]])),
    "histogram, 10 cells": (histogram, Pair(np.ones(10), np.array([2.0] + [1.0] * 9)), FIRST),
    "histogram, 4,096 cells": (histogram, Pair(np.ones(4096), np.array([2.0] + [1.0] * 4095)), FIRST),
}


def measure(function: Any, pair: Pair, event: Event, rounds: int) -> dict[str, Any]:
    """Nanoseconds of a paired run in each round, without fast noise and with it."""
    mechanisms = {fast: as_mechanism(function, pair.data, epsilon=EPSILON, fast_noise=fast) for fast in (False, True)}
    assert all(one.compiled for one in mechanisms.values())
    assert mechanisms[True].signature.fast_noise

    def run(fast: bool, seed: int, runs: int) -> float:
        started = time.process_time()
        for _ in Runner(mechanism=mechanisms[fast], seed=seed, workers=1).confirm(pair, [event], runs, coupled=True):
            pass
        return time.process_time() - started

    runs, seconds = 1 << 7, 0.0
    while seconds < SECONDS / 4:  # as many as fill a round; before that, all is compiled
        runs *= 2
        run(True, 0, 2)
        seconds = run(False, 0, runs)
    runs = int(runs * SECONDS / seconds)
    times: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(1, rounds + 1):
        for fast, own in times.items():
            own.append(run(fast, seed, runs) / runs * 1e9)
    each = [without / fast for without, fast in zip(times[False], times[True], strict=True)]
    return {
        "runs": runs,
        "nanoseconds": {"without": times[False], "fast": times[True]},
        "ratio": {"minimum": min(times[False]) / min(times[True]), "median": statistics.median(each)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write all times and ratios to this file")
    given = parser.parse_args()
    results = {}
    print(f"numpy {np.__version__}, numba {numba.__version__}; ns a paired run, the least of {given.rounds} rounds")
    for name, case in CASES.items():
        results[name] = result = measure(*case, given.rounds)
        without, fast = (min(times) for times in result["nanoseconds"].values())
        ratio = result["ratio"]
        print(
            f"{name}: {without:.1f} without, {fast:.1f} fast; ratio {ratio['minimum']:.2f} / {ratio['median']:.2f}",
            flush=True,
        )
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
