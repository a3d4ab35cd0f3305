"""What a run of plain Python costs beside the call itself: confirm runs against a loop written by hand, in CPU time.

    python benchmarks/overhead.py [--turns 60] [--only NAME] [--json FILE] [--plot FILE]

One worker, in processes two. Ours and the loop by hand take turns of about 30 ms, at least of one shard, with as many
paired runs each. Of every case: the median seconds of a paired run by hand and of ours, and the least, the median and
the largest ratio of two turns beside each other. Runs in other processes are timed by the clock, in turns of 0.2 s.
"""

import argparse
import inspect
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpwitness as dpw
from dpwitness.api.loop import confirm_events
from dpwitness.evidence.bet import log_e_value
from dpwitness.mechanisms.remote import RemoteFunction
from dpwitness.problem import Effort, Statement, prepare
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.pairs import best_candidate


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


#: Seconds of a turn: the machine's speed changes within seconds. Processes take longer to begin and to end.
TURN = 0.03
TURN_ELSEWHERE = 0.2


@dataclass(frozen=True)
class Case:
    """A mechanism, two inputs, what is asked of an output by hand, and what the ratio is to be at most."""

    name: str
    function: Callable[..., Any]
    pair: tuple[Any, Any]
    below: Callable[[Any], bool] = lambda out: out < 9
    aim: float | None = None
    by_hand_runs: int = 1  # that a call by hand makes
    elsewhere: bool = False  # whether other processes make the runs
    workers: int = 1

    def seconds_of(self, work: Callable[[], object]) -> float:
        """Seconds of some work, of this process where all is done here."""
        clock = time.perf_counter if self.elsewhere else time.process_time
        started = clock()
        work()
        return clock() - started


def rows(n: int) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
    records = [{"age": 50} for _ in range(n)]
    return records, [*[dict(r) for r in records], {"age": 100}]


def frames(n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    frame = pd.DataFrame({"age": [50] * n})
    return frame, pd.concat([frame, pd.DataFrame({"age": [100]})], ignore_index=True)


def cases() -> Iterator[Case]:
    for n in (10, 1_000, 30_000):
        yield Case(f"count of {n} dicts", count, rows(n), aim=2.0)
    yield Case("count of 10 dicts, generator given", noisy_length, rows(10))
    for n, aim in ((10, 2.0), (1_000, 1.2)):
        values = [0.5] * n
        yield Case(f"sum over a list of {n}", python_sum, (values, [*values[:-1], 1.0]), aim=aim)
    for n in (10, 1_000, 30_000):
        yield Case(f"sum of a column of {n}", column_sum, frames(n), aim=1.3)
    numbers = np.full(10, 0.5), np.full(10, 0.6)
    yield Case("vectorised", vectorised, numbers, lambda out: bool((out < 9).all()), 1.5, 16_384)
    there = dpw.remote(sys.executable, f"{__file__}:count")
    yield Case("in another interpreter", there, rows(10), elsewhere=True)
    yield Case("in two processes", python_sum, ([0.5] * 300, [0.5] * 301), elsewhere=True, workers=2)
    yield Case("texts out", text_out, rows(10), lambda out: out == "few")
    yield Case("tuples out", pair_out, rows(10), lambda out: out[0] < 9)
    yield Case("dicts out", dict_out, rows(10), lambda out: out["count"] < 9, 3.0)
    yield Case("data frames out", frame_out, frames(10), lambda out: out["sum"][0] < 9, 1.5)


def by_hand(case: Case, runs: int) -> None:
    """Pairs of calls, and what is asked of their outputs."""
    rng = np.random.default_rng(1)
    function = count if isinstance(case.function, RemoteFunction) else case.function
    names = inspect.signature(function).parameters
    first = (rng,) if "rng" in names else ()
    last = (case.by_hand_runs,) if "size" in names else ()
    hits = 0
    for _ in range(-(-runs // case.by_hand_runs)):
        for data in case.pair:
            hits += case.below(function(*first, data, 1.0, *last))


def measured(case: Case, turns: int) -> list[tuple[float, float]]:
    """Seconds of a paired run by hand and of ours, in turns beside each other; the first of them alternates."""
    statement = Statement(
        mechanism=case.function, claim=3.0, parameters={"epsilon": 1.0}, neighbours=dpw.pairs(case.pair)
    )
    problem, runner = prepare(statement, Effort(seed=1, workers=case.workers, max_time=600.0))
    runner.expect(math.inf)
    objective = GrowthAt(claim=problem.claim, planned=100_000, log_threshold=14.0)
    candidate, _ = best_candidate(problem, runner, objective, planned=100_000, budget=200)

    def ours(runs: int, seed: int) -> None:
        done = confirm_events(
            replace(runner, seed=seed), candidate.pair, (candidate.event,), runs, coupled=candidate.coupled,
            look=lambda totals: ("", f"{log_e_value(totals[0], problem.claim, candidate.estimate):.1f}"),
        )  # fmt: skip
        assert done.ended == "runs", done

    shard = runner.mechanism.shard_of(candidate.pair)  # large inputs have large ones: a turn has whole shards
    ours(shard * case.workers, 2)  # processes start
    fitting = (TURN_ELSEWHERE if case.elsewhere else TURN) / case.seconds_of(partial(ours, shard, 3))
    runs = shard * max(round(fitting), 1)
    times = []
    for turn in range(turns):
        works = [partial(by_hand, case, runs), partial(ours, runs, 4 + turn)]
        order = 1 if turn % 2 else -1
        hand, own = [case.seconds_of(work) / runs for work in works[::order]][::order]
        times.append((hand, own))
    return times


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    table = []
    for case in cases():
        if given.only not in case.name:
            continue
        times = measured(case, given.turns)
        # Not the ratio of the medians: these may be of different times, and the machine of another speed at each.
        ratios = sorted(ours / hand for hand, ours in times)
        line = {
            "case": case.name,
            "by hand, µs": round(1e6 * statistics.median(hand for hand, _ in times), 2),
            "ours, µs": round(1e6 * statistics.median(ours for _, ours in times), 2),
            "ratio, least": round(ratios[0], 2),
            "ratio, median": round(statistics.median(ratios), 2),
            "ratio, most": round(ratios[-1], 2),
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
