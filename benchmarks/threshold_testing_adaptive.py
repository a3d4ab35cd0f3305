"""The adaptive attack on private threshold testing, on real histograms in which no cell holds exactly one person.

    python benchmarks/threshold_testing_adaptive.py [--seeds 50] [--workers 16] [--epsilon2 inf 0.5]

Each run draws a noisy threshold and reads the histogram through it; beside it Algorithm 4 of Chen & Machanavajjhala
(2015) with the same ε. `determined` are the cells that do not outweigh all others together. A run is good where at
least 0.98 of these are right. `--large` times one run on 262,144 cells instead.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from dpwitness.files import read_column
from dpwitness.reconstruction.threshold_testing.attack import adaptive_attack, reconstruct
from dpwitness.reconstruction.threshold_testing.oracle import ThresholdOracle
from dpwitness.reconstruction.threshold_testing.theory import attack_threshold

DATA = Path(__file__).resolve().parents[1] / "data"
EPSILONS = (1.0, 0.5, 0.1)
#: Of ε for the threshold, the rest for one total; Algorithm 4 has halves.
SHARE = 0.9
GOOD = 0.98


def without_ones(counts: np.ndarray) -> np.ndarray:
    """Cells of one person emptied."""
    return np.where(counts == 1, 0, counts)


def histograms() -> dict[str, np.ndarray]:
    """Real histograms without a cell of one, by name."""
    from statsmodels.datasets import (  # type: ignore[import-untyped]  # no stubs
        cancer,
        fair,
        nile,
        randhie,
        star98,
        statecrime,
    )

    found: dict[str, np.ndarray] = {}
    for name in ("adult_capital_loss", "medical_cost", "income", "hepth"):
        counts = read_column(DATA / f"{name}.csv")
        found[f"{name}, no ones"], found[f"{name} × 2"], found[f"{name} + 5"] = (
            without_ones(counts), 2 * counts, counts + 5
        )  # fmt: skip
    ages = read_column(DATA / "adult_age.csv", "count")
    found["adult_age, no ones"], found["adult_age + 5"] = without_ones(ages), ages + 5
    visits = np.bincount(randhie.load_pandas().data["mdvis"].astype(int))
    found["doctor visits, no ones"], found["doctor visits + 5"] = without_ones(visits), visits + 5
    deaths = cancer.load_pandas().data
    found["cancer deaths, no ones"] = without_ones(deaths["cancer"].to_numpy().astype(int))
    found["cancer population"] = deaths["population"].to_numpy().astype(int)
    found["pupils above"] = without_ones(star98.load_pandas().data["NABOVE"].to_numpy().astype(int))
    groups = ["rate_marriage", "age", "yrs_married", "children", "religious", "educ", "occupation"]
    sizes = fair.load_pandas().data.groupby(groups).size().to_numpy()
    found["affairs, groups"] = sizes[sizes != 1]
    found["nile"] = nile.load_pandas().data["volume"].to_numpy().astype(int)
    found["violent crimes"] = statecrime.load_pandas().data["violent"].to_numpy().astype(int)
    assert not any((counts == 1).any() for counts in found.values())
    return found


def one(task: tuple[str, np.ndarray, float, float, int]) -> dict[str, Any]:
    """One run of both attacks."""
    name, counts, epsilon, epsilon2, seed = task
    rng = np.random.default_rng([seed, 1])
    oracle = ThresholdOracle(
        counts, rng, epsilon1=SHARE * epsilon, epsilon2=epsilon2, epsilon_totals=(1 - SHARE) * epsilon
    )  # fmt: skip
    started = time.perf_counter()
    found = adaptive_attack(oracle, rng)
    seconds = time.perf_counter() - started
    paper = reconstruct(ThresholdOracle(
        counts, np.random.default_rng([seed, 2]), epsilon1=epsilon / 2, threshold=attack_threshold(epsilon / 2, 0.05),
        epsilon_totals=epsilon / 2,
    ))  # fmt: skip
    determined = 2 * counts <= counts.sum()
    right = found.guess == counts
    return {
        "data": name, "cells": len(counts), "epsilon": epsilon, "epsilon2": epsilon2, "seed": seed,
        "right": float(right[determined].mean()), "right_of_all": float(right.mean()),
        "algorithm_4": float((paper.guess == counts).mean()), "claimed": float(found.known.mean()),
        "claimed_wrong": int((found.known & ~right).sum()), "method": found.method, "factor": found.factor,
        "queries_a_cell": found.queries / len(counts), "seconds": seconds,
    }  # fmt: skip


def row(runs: list[dict[str, Any]]) -> str:
    """A line of the table."""
    right, all_right, paper = (np.array([r[key] for r in runs]) for key in ("right", "right_of_all", "algorithm_4"))
    first = runs[0]
    return (
        f"| {first['data']} | {first['cells']} | {first['epsilon']:g} | {first['epsilon2']:g} "
        f"| {int((right >= GOOD).sum())} of {len(runs)} | {right.mean():.4f} ({right.min():.4f}) "
        f"| {all_right.mean():.4f} | {paper.mean():.4f} | {sum(r['claimed_wrong'] for r in runs)} "
        f"| {sum('weighing' not in r['method'] for r in runs)} | {np.mean([r['queries_a_cell'] for r in runs]):,.1f} "
        f"| {np.mean([r['seconds'] for r in runs]):.2f} |"
    )


def large(seed: int) -> None:
    """Time one run on 262,144 cells drawn from the largest of the histograms."""
    rng = np.random.default_rng(seed)
    counts = rng.choice(without_ones(read_column(DATA / "income.csv")), 1 << 18)
    for epsilon2 in (np.inf, 0.5):
        found = one(("income, no ones, 262,144 cells drawn of it", counts, 1.0, epsilon2, seed))
        print(row([found]), flush=True)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--epsilon2", type=float, nargs="+", default=[np.inf, 0.5])
    parser.add_argument("--only", help="histograms whose name has this")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--json", help="all runs, into this file")
    given = parser.parse_args()
    titles = (
        "data", "cells", "ε", "ε₂", "good runs", "right of determined (least)", "right of all", "Algorithm 4",
        "claimed wrong", "fell back", "queries a cell", "s",
    )  # fmt: skip
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|", flush=True)
    if given.large:
        large(given.seeds)
        return 0
    tasks = [
        (name, counts, epsilon, epsilon2, seed)
        for name, counts in histograms().items()
        if given.only is None or given.only in name
        for epsilon2 in given.epsilon2
        for epsilon in EPSILONS
        for seed in range(given.seeds)
    ]
    runs: list[dict[str, Any]] = []
    with ProcessPoolExecutor(given.workers) as pool:
        for run in pool.map(one, tasks, chunksize=max(1, given.seeds // 10)):
            runs.append(run)
            if len(runs) % given.seeds == 0:
                print(row(runs[-given.seeds :]), flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
