"""Compiled runs against loops written by hand: `python benchmarks/throughput.py [--json FILE]`.

A loop by hand runs a mechanism on both inputs with independent draws and counts one event: no rows, no arrays, no
choice of the event at run time. It draws by NumPy's generator as a user would (a Laplace number is the difference of
two exponentials, twice as fast as `Generator.laplace`), or by `dpwitness.noise`, as our runs do. Each loop is written
out: a common loop with inlined events took up to twice as long.

Times are processor times of one worker; loops and our runs alternate in one process. Each ratio is the time of a loop
by hand by our time, minimum and median over the rounds: above 1 our runs are faster.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from dpwitness import noise
from dpwitness.events import Event, Interval, OutcomeSet
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Runner
from results import Table, finish, parser_of

EPSILON = 0.7
#: Processor seconds of each part of a round.
SECONDS = 0.3
Loop = Callable[..., Any]


@numba.njit(nogil=True, forceinline=True)
def numpy_laplace(rng, scale):
    return scale * (rng.standard_exponential() - rng.standard_exponential())


def svt_by_hand(laplace: Loop) -> Loop:
    @numba.njit(nogil=True)
    def loop(rng, data, neighbour, epsilon, runs):
        """The event ⊥⊥⊤."""
        counts = np.zeros(4, np.int64)
        for _ in range(runs):
            inside = 0
            for side in range(2):
                queries = data if side == 0 else neighbour
                threshold = 0.5 + laplace(rng, 2 / epsilon)
                length = 0
                stopped = False
                for i in range(len(queries)):
                    length += 1
                    if queries[i] + laplace(rng, 4 / epsilon) >= threshold:
                        stopped = True
                        break
                if stopped and length == 3:
                    inside += 1 + side
            counts[inside] += 1
        return counts

    return loop


def histogram_by_hand(laplace: Loop) -> Loop:
    @numba.njit(nogil=True)
    def loop(rng, data, neighbour, epsilon, runs):
        """The first cell at least 1."""
        scale = 1 / epsilon
        counts = np.zeros(4, np.int64)
        for _ in range(runs):
            inside = 0
            for side in range(2):
                cells = data if side == 0 else neighbour
                for i in range(len(cells)):
                    noisy = cells[i] + laplace(rng, scale)
                    if i == 0 and noisy >= 1:
                        inside += 1 + side
            counts[inside] += 1
        return counts

    return loop


def gptt_by_hand(laplace: Loop) -> Loop:
    @numba.njit(nogil=True)
    def loop(rng, data, neighbour, epsilon, runs):
        """The event ⊥…⊥⊤…⊤, five of each."""
        counts = np.zeros(4, np.int64)
        for _ in range(runs):
            inside = 0
            for side in range(2):
                queries = data if side == 0 else neighbour
                threshold = 0.5 + laplace(rng, 1 / epsilon)
                equal = True
                for i in range(len(queries)):
                    answer = queries[i] + laplace(rng, 1 / epsilon) >= threshold
                    equal &= answer == (i >= 5)
                if equal:
                    inside += 1 + side
            counts[inside] += 1
        return counts

    return loop


@dataclass(frozen=True)
class Case:
    """A target, its parameters beside ε, a pair, an event, and the loop by hand."""

    target: str
    pair: Pair
    event: Event
    by_hand: Callable[[Loop], Loop]
    parameters: dict[str, float]
    claim: str = "epsilon"


def _counts(cells: int) -> Pair:
    return Pair(np.ones(cells, np.int64), np.array([2] + [1] * (cells - 1)))


QUERIES = Pair(np.zeros(10), np.array([1.0] * 9 + [-1.0]))
HALVES = Pair(np.repeat([0.0, 1.0], 5), np.repeat([1.0, 0.0], 5))
FIRST = Interval(coordinate=0, low=1.0)
CASES = {
    "svt, 10 queries": Case("svt", QUERIES, OutcomeSet([[0, 0, 1]]), svt_by_hand, {}),
    "histogram, 10 cells": Case("histogram", _counts(10), FIRST, histogram_by_hand, {}),
    "histogram, 4,096 cells": Case("histogram", _counts(4096), FIRST, histogram_by_hand, {}),
    "gptt, 10 queries": Case(
        "gptt", HALVES, OutcomeSet([[0] * 5 + [1] * 5]), gptt_by_hand, {"epsilon2": EPSILON}, "epsilon1"
    ),
}


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """Nanoseconds of a paired run in each round, by hand and ours, and their ratios."""
    mechanism = as_mechanism(load(case.target), case.pair.data, parameters={case.claim: EPSILON, **case.parameters})

    def ours(coupled: bool) -> Callable[[int, int], Any]:
        def run(seed: int, runs: int) -> Any:
            runner = Runner(mechanism=mechanism, seed=seed, workers=1)
            *_, (counts,) = runner.confirm(case.pair, [case.event], runs, coupled=coupled)
            return counts.n00, counts.n10, counts.n01, counts.n11

        return run

    def by_hand(laplace: Loop) -> Callable[[int, int], Any]:
        loop = case.by_hand(laplace)

        def run(seed: int, runs: int) -> Any:
            rng = np.random.Generator(np.random.SFC64(seed))
            return tuple(loop(rng, case.pair.data, case.pair.neighbour, EPSILON, runs))

        return run

    roads = {
        "by hand, NumPy's generator": by_hand(numpy_laplace),
        "by hand, dpwitness.noise": by_hand(numba.njit(forceinline=True)(noise.laplace)),
        "ours, coupled": ours(True),
        "ours, independent": ours(False),
    }
    runs, seconds = 1 << 7, 0.0
    while seconds < SECONDS / 4:  # finds the runs that fill a round, after everything is compiled
        runs *= 2
        for run in roads.values():
            run(0, 2)
        started = time.process_time()
        roads["by hand, NumPy's generator"](0, runs)
        seconds = time.process_time() - started
    runs = int(runs * SECONDS / seconds)
    times: dict[str, list[float]] = {road: [] for road in roads}
    counted = {}
    for seed in range(1, rounds + 1):
        for road, run in roads.items():
            started = time.process_time()
            counted[road] = run(seed, runs)
            times[road].append((time.process_time() - started) / runs * 1e9)
    _same_event(counted, runs)
    return {
        "runs": runs,
        "nanoseconds": times,
        "ratios": {
            f"{hand.removeprefix('by hand, ')}, {our.removeprefix('ours, ')}": _summary(times[hand], times[our])
            for hand in list(roads)[:2]
            for our in list(roads)[2:]
        },
    }


def _same_event(counted: dict[str, Any], runs: int) -> None:
    """Require that all loops count the same event: equal shares of each side, within six standard errors."""
    shares = {road: ((n10 + n11) / runs, (n01 + n11) / runs) for road, (_, n10, n01, n11) in counted.items()}
    for road, pair in shares.items():
        for share, other in zip(pair, next(iter(shares.values())), strict=True):
            error = (max(share * (1 - share), 1 / runs) * 2 / runs) ** 0.5
            if abs(share - other) > 6 * error:
                raise SystemExit(f"{road} counts another event: {shares}")


def _summary(hand: list[float], ours: list[float]) -> dict[str, float]:
    """The ratio of the least times, and the median of the rounds' ratios."""
    each = [a / b for a, b in zip(hand, ours, strict=True)]
    return {"minimum": min(hand) / min(ours), "median": statistics.median(each)}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("cases", nargs="*", default=list(CASES), help="those to measure; all by default")
    given = parser.parse_args()
    table, results = Table("mechanism", "draws of the loop by hand", "our draws", "minimum", "median"), {}
    for name in given.cases:
        results[name] = result = measure(CASES[name], given.rounds)
        print(", ".join(f"{road} {min(times):.1f}" for road, times in result["nanoseconds"].items()), "ns a paired run")
        for kind, ratio in result["ratios"].items():
            table.add(name, *kind.split(", "), f"{ratio['minimum']:.2f}", f"{ratio['median']:.2f}")
    text = "The time of a loop by hand by that of our compiled runs: above 1 our runs are the faster ones. "
    text += f"numpy {np.__version__}, numba {numba.__version__}, {given.rounds} rounds."
    finish(given, "Compiled runs beside loops by hand", text, table, results)


if __name__ == "__main__":
    main()
