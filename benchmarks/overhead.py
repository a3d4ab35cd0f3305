"""What a run of plain Python costs beside the call itself: a check against a loop written by hand, in CPU time.

    python benchmarks/overhead.py [--repeats 5] [--only NAME] [--json FILE] [--plot FILE]

One worker, in processes two. Of every case: seconds of one more paired run of ours (from two checks that make
different numbers of runs, so that what a check costs by itself falls out), of a pair of calls by hand, their ratio, in
turn, minimum and median. Runs in other processes are timed by the clock, all others in CPU time.
"""

import argparse
import inspect
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpwitness as dpw
from dpwitness.mechanisms.remote.client import RemoteFunction


def count(data: list[Any], epsilon: float) -> float:
    return len(data) + random.expovariate(epsilon) - random.expovariate(epsilon)


def noisy_length(rng: np.random.Generator, data: list[Any], epsilon: float, tag: object = ("plain",)) -> float:
    return len(str(tag) and data) + rng.laplace(0, 1 / epsilon)


def python_sum(rng: np.random.Generator, data: list[float], epsilon: float, tag: object = ("plain",)) -> float:
    return sum(map(float, str(tag) and data)) + rng.laplace(
        0, 1 / epsilon
    )  # text in a tuple: numba does not compile it


def column_sum(rng: np.random.Generator, data: pd.DataFrame, epsilon: float) -> float:
    return data["age"].sum() + rng.laplace(0, 100 / epsilon)


def frame_out(rng: np.random.Generator, data: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    return pd.DataFrame({"sum": [data["age"].sum() + rng.laplace(0, 100 / epsilon)]})


def text_out(data: list[Any], epsilon: float) -> str:
    return "many" if count(data, epsilon) > 10 else "few"


def pair_out(data: list[Any], epsilon: float) -> tuple[float, float]:
    return count(data, epsilon / 2), count(data, epsilon / 2)


def dict_out(data: list[Any], epsilon: float) -> dict[str, float]:
    return {"count": count(data, epsilon)}


def vectorised(rng: np.random.Generator, data: np.ndarray, epsilon: float, size: int) -> np.ndarray:
    return data.sum() + rng.laplace(0, 1 / epsilon, size)


@dataclass(frozen=True)
class Case:
    """A mechanism, two inputs, how many runs, and what the ratio is to be at most."""

    name: str
    function: Callable[..., Any]
    pair: tuple[Any, Any]
    runs: int
    below: Callable[[Any], bool] = lambda out: out < 9
    aim: float | None = None
    by_hand_runs: int = 1  # that a call by hand makes
    elsewhere: bool = False  # whether other processes make the runs
    workers: int = 1

    def clock(self) -> float:
        """Seconds, of this process where all is done here."""
        return time.perf_counter() if self.elsewhere else time.process_time()


def rows(n: int) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
    records = [{"age": 50} for _ in range(n)]
    return records, [*[dict(r) for r in records], {"age": 100}]


def frames(n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    frame = pd.DataFrame({"age": [50] * n})
    return frame, pd.concat([frame, pd.DataFrame({"age": [100]})], ignore_index=True)


def cases() -> Iterator[Case]:
    for n, aim in ((10, 2.0), (1_000, 2.0), (30_000, 2.0)):
        # A check of 30,000 takes two seconds by itself, a tenth more or less: that must not count among its runs.
        yield Case(f"count of {n} dicts", count, rows(n), 400_000 if n < 30_000 else 3_200_000, aim=aim)
    yield Case("count of 10 dicts, generator given", noisy_length, rows(10), 300_000)
    for n, aim in ((10, 2.0), (1_000, 1.2)):
        values = [0.5] * n
        yield Case(
            f"sum over a list of {n}",
            python_sum,
            (values, [*values[:-1], 1.0]),
            200_000 if n < 100 else 30_000,
            aim=aim,
        )
    for n in (10, 1_000, 30_000):
        yield Case(f"sum of a column of {n}", column_sum, frames(n), 20_000, aim=1.3)
    numbers = np.full(10, 0.5), np.full(10, 0.6)  # of a million runs on a check costs by itself what it costs of more
    yield Case("vectorised", vectorised, numbers, 32_000_000, lambda out: bool((out < 9).all()), 1.5, 16_384)
    there = dpw.remote(sys.executable, f"{__file__}:count")
    yield Case("in another interpreter", there, rows(10), 200_000, elsewhere=True)
    yield Case("in two processes", python_sum, ([0.5] * 300, [0.5] * 301), 400_000, elsewhere=True, workers=2)
    yield Case("texts out", text_out, rows(10), 300_000, lambda out: out == "few")
    yield Case("tuples out", pair_out, rows(10), 200_000, lambda out: out[0] < 9)
    yield Case("dicts out", dict_out, rows(10), 100_000, lambda out: out["count"] < 9, 3.0)
    yield Case("data frames out", frame_out, frames(10), 3_000, lambda out: out["sum"][0] < 9, 1.5)


def by_hand(case: Case, runs: int) -> float:
    """Seconds of a pair of calls and of what is asked of their outputs."""
    rng = np.random.default_rng(1)
    function = count if isinstance(case.function, RemoteFunction) else case.function
    names = inspect.signature(function).parameters
    first = (rng,) if "rng" in names else ()
    last = (case.by_hand_runs,) if "size" in names else ()
    started, hits = case.clock(), 0
    for _ in range(-(-runs // case.by_hand_runs)):
        for data in case.pair:
            hits += case.below(function(*first, data, 1.0, *last))
    return (case.clock() - started) / runs


def by_us(case: Case, runs: int) -> tuple[float, int]:
    """Seconds of a check, and its paired runs; the claim holds, so that all of them are made."""
    started = case.clock()
    verdict = dpw.check(
        case.function, claim=3.0, parameters={"epsilon": 1.0}, neighbours=dpw.pairs(case.pair), runs=runs,
        search_runs=200, max_time=600, workers=case.workers, seed=1,
    )  # fmt: skip
    return case.clock() - started, verdict.search_runs + verdict.counts.runs


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    table = []
    for case in cases():
        if given.only not in case.name:
            continue
        by_us(case, 300)
        ratios, hand_times, our_times = [], [], []
        for _ in range(given.repeats):
            hand = by_hand(case, max(case.runs // 8, 100))
            small, few = by_us(case, case.runs // 8)
            large, many = by_us(case, case.runs)
            ours = (large - small) / (many - few)
            hand = min(hand, by_hand(case, max(case.runs // 8, 100)))
            ratios.append(ours / hand)
            hand_times.append(hand)
            our_times.append(ours)
        line = {
            "case": case.name,
            "by hand, µs": round(1e6 * min(hand_times), 2),
            "ours, µs": round(1e6 * min(our_times), 2),
            "ratio, least": round(min(ratios), 2),
            "ratio, median": round(statistics.median(ratios), 2),
            "aim": case.aim,
        }
        table.append(line)
        print(line, flush=True)
    if given.json:
        given.json.write_text(json.dumps(table, indent=1) + "\n")
    if given.plot:
        plot(table, given.plot)
    return 0


def plot(table: list[dict[str, Any]], path: Path) -> None:
    """Draw the ratios beside what they are to be at most."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(8, 0.4 * len(table) + 1.5), layout="constrained").subplots()
    names = [line["case"] for line in table]
    axes.barh(names, [line["ratio, median"] for line in table], color="tab:blue")
    aims = [(line["aim"], line["case"]) for line in table if line["aim"]]
    if aims:
        axes.plot(*zip(*aims, strict=True), "k|", markersize=14, label="to be at most")
        axes.legend()
    axes.axvline(1, color="grey", lw=0.8)
    axes.set_xlabel("a paired run of ours / a pair of calls by hand")
    axes.invert_yaxis()
    axes.figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
