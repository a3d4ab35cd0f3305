"""How many paired runs it takes to refute a claim, where a check bets from the first run on.

    python benchmarks/small_sample_race.py [--repetitions 300] [--first 0] [--workers 1] [--sides coupled] [ROWS …]

The rows are those of González et al. 2025 and Kutta et al. 2026: α = 0.05, D = (0), D′ = (0, 1), mean and median of the
runs, and of mechanisms that keep the claim how many were refuted all the same. What runs here is
`PairWealth.advance` of `dpwitness.search.epochs`, epoch by epoch, as `check(…, search_runs=0)` on one pair does it; a
check has coupled sides: those of a run share their draws. The published testers draw independent sides.
"""

import argparse
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpwitness.claims import ApproxDP, Claim, GaussianDP
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Runner
from dpwitness.search.epochs import PairWealth, runs_of_next_epoch

DELTA = 1e-5
Rows = Any


def gaussian_mean(epsilon: float) -> Callable[..., Rows]:
    """The mean, with the true length in the scale of the noise."""

    def mechanism(rng, data, size):
        return data.mean() + 2 / (len(data) * epsilon) * rng.standard_normal(size)

    return mechanism


def laplace_mean(epsilon: float) -> Callable[..., Rows]:
    """The same with Laplace noise."""

    def mechanism(rng, data, size):
        return data.mean() + 2 / (len(data) * epsilon) * rng.laplace(size=size)

    return mechanism


def gaussian_twin(epsilon: float) -> Callable[..., Rows]:
    """A noisy sum by a noisy length, half of the budget each: it keeps the claim."""
    sigma = math.sqrt(2 * math.log(1.25 / (DELTA / 2))) / (epsilon / 2)

    def mechanism(rng, data, size):
        noise = sigma * rng.standard_normal((size, 2))
        return (data.sum() + noise[:, 0]) / (len(data) + noise[:, 1])

    return mechanism


def laplace_twin(epsilon: float) -> Callable[..., Rows]:
    """The mean with a noisy length, half of the budget each: it keeps the claim."""

    def mechanism(rng, data, size):
        noise = rng.laplace(size=(size, 2))
        length = np.maximum(1e-12, len(data) + 2 / epsilon * noise[:, 0])
        return data.sum() / length + 2 / (length * epsilon / 2) * noise[:, 1]

    return mechanism


def ten_laplace(rng, data, size):
    """Ten values with Laplace noise of scale 1: ε = 1 where one of them moves by 1."""
    return data + rng.laplace(size=(size, 10))


def one_gaussian(rng, data, size):
    """N(0, 1) or N(1, 1): exactly 1-GDP."""
    return data[0] + rng.standard_normal(size)


def number(rng, data, size):
    """How many records there are: tells D from D′ always."""
    return np.full(size, float(len(data)))


LISTS = Pair(np.array([0.0]), np.array([0.0, 1.0]))
SHIFTED = Pair(np.array([0.0]), np.array([1.0]))
TEN = Pair(np.zeros(10), np.eye(10)[0])


@dataclass(frozen=True, kw_only=True)
class Row:
    """One race: until when it goes, and what is known of it."""

    mechanism: Callable[..., Rows]
    claim: Claim
    pair: Pair = LISTS
    most: int = 2_000  # runs
    alpha: float = 0.05
    holds: bool = False  # the claim
    once: bool = False  # nothing in it is random
    known: str = ""


def _rows() -> dict[str, Row]:
    published = {
        ("Gaussian", 0.01): "59.1", ("Gaussian", 0.1): "68.0", ("Laplace", 0.01): "86.5", ("Laplace", 0.1): "114.1",
    }  # fmt: skip
    made = {"Gaussian": (gaussian_mean, gaussian_twin), "Laplace": (laplace_mean, laplace_twin)}
    rows = {}
    for (noise, epsilon), runs in published.items():
        claim = ApproxDP(epsilon, DELTA if noise == "Gaussian" else 0.0)
        leak, twin = made[noise]
        rows[f"{noise} {epsilon:g}"] = Row(mechanism=leak(epsilon), claim=claim, known=f"{runs} Kutta et al.")
        rows[f"{noise} twin {epsilon:g}"] = Row(mechanism=twin(epsilon), claim=claim, most=500, holds=True)
    for epsilon, most, runs in ((0.5, 3_000, "219.7"), (0.8, 8_000, "1,700"), (1.0, 1_000, "3.3 %")):
        rows[f"ten Laplace {epsilon:g}"] = Row(
            mechanism=ten_laplace, claim=ApproxDP(epsilon), pair=TEN, most=most, holds=epsilon == 1,
            known=f"{runs} Kutta et al.",
        )  # fmt: skip
    for mu, most, runs in ((0.5, 3_000, "187.8"), (0.8, 8_000, "1,453"), (1.0, 1_000, "1.1 %")):
        rows[f"Gaussian mean 1, mu {mu:g}"] = Row(
            mechanism=one_gaussian, claim=GaussianDP(mu), pair=SHIFTED, most=most, holds=mu == 1,
            known=f"{runs} Kutta et al.",
        )  # fmt: skip
    for epsilon in (0.01, 0.1, 1.0):
        least = math.log(1e6) / math.log1p(math.exp(-epsilon))
        rows[f"always or never {epsilon:g}"] = Row(
            mechanism=number, claim=ApproxDP(epsilon), alpha=1e-6, most=500, once=True, known=f"at least {least:.1f}"
        )
    return rows


class IndependentSides(Runner):
    """A runner of which no two sides share a draw."""

    def _drawn(self, *arguments, coupled, **more):
        return super()._drawn(*arguments, coupled=False, **more)


def race(row: Row, seed: int, coupled: bool) -> tuple[int, bool]:
    """The runs until the claim was refuted, or all of them; and whether it was."""
    mechanism = as_mechanism(row.mechanism, row.pair.data, neighbour=row.pair.neighbour)
    runner = (Runner if coupled else IndependentSides)(mechanism=mechanism, seed=seed, workers=1)
    course = PairWealth(pair=row.pair, index=0)
    while course.runs < row.most:
        n = min(runs_of_next_epoch(course, 1), row.most - course.runs)
        course.advance(runner, row.claim, n, lambda value: None)
        if course.wealth >= math.log(1 / row.alpha):
            return course.runs, True
    return course.runs, False


def raced(name: str, seed: int, coupled: bool) -> tuple[int, bool]:
    """The same by name, for another process."""
    return race(_rows()[name], seed, coupled)


def show(name: str, row: Row, seeds: range, coupled: bool, processes: Executor) -> None:
    """One line of the table."""
    began = time.monotonic()
    seeds = seeds[:1] if row.once else seeds
    found = list(processes.map(raced, [name] * len(seeds), seeds, [coupled] * len(seeds)))
    runs, refuted = np.array([n for n, _ in found]), np.mean([was for _, was in found])
    error = runs.std() / math.sqrt(len(runs))
    print(
        f"{name:24s} {'coupled' if coupled else 'independent':11s} {runs.mean():7.1f} ± {error:5.1f}"
        f"  median {np.median(runs):6.0f}  95 % {np.quantile(runs, 0.95):6.0f}  refuted {refuted:6.1%}"
        f"{'  (claim holds)' if row.holds else ''}  {row.known}  [{time.monotonic() - began:.0f} s]",
        flush=True,
    )


def main() -> None:
    rows = _rows()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"which races, of {', '.join(rows)}; all of them")
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=1, help="processes, a race in each")
    parser.add_argument("--sides", choices=["independent", "coupled"], help="by default both")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.repetitions)
    with ProcessPoolExecutor(given.workers) as processes:
        for name, row in rows.items():
            if not given.rows or name in given.rows:
                for coupled in (False, True):
                    if given.sides in (None, "coupled" if coupled else "independent"):
                        show(name, row, seeds, coupled, processes)


if __name__ == "__main__":
    main()
