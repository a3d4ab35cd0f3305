"""What grows with runs, cells and records: CPU time and peak memory, each line in a process of its own.

    python benchmarks/growth.py [--repeats 3] [--most-runs 1e9] [--only runs|cells|records] [--json FILE] [--plot FILE]

runs: a check of compiled code whose claim holds, of 10⁵ to 10⁹ confirm runs; of 10¹⁰ runs the first shards, some in
the middle and the last, 10⁷ runs each. cells: a histogram of 10 to 10⁶ noisy cells, of which ten are returned (more
than 10,000 values of one outcome are refused), compiled and vectorised; and whole checks of histograms that are
returned as they are. records: plain Python that looks at `len` alone, on lists of numbers, lists of dicts and data
frames of 10 to 10⁶ records. Nanoseconds of a paired run are those of one more: the difference between two numbers of
runs, which leaves out what a process does once; the least of the repeats. Five minutes of CPU time.
"""

import argparse
import json
import multiprocessing
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpwitness as dpw
from dpwitness.events import Event, Interval
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.noise import laplace
from dpwitness.runs import Role, Runner
from dpwitness.runs.shards import EventCells

EPSILON = 1.0
SIZES = tuple(10**k for k in range(1, 7))
SAMPLED = 10**10
#: Noisy cells, and calls of plain Python, of one measured number of runs: about a second.
CELLS = 30_000_000
CALLS = 200_000


def ten_cells(rng: np.random.Generator, counts: np.ndarray, epsilon: float) -> np.ndarray:
    first = np.zeros(10)
    for i in range(len(counts)):
        noisy = counts[i] + laplace(rng, 1 / epsilon)
        if i < 10:
            first[i] = noisy
    return first


def ten_cells_at_once(rng: np.random.Generator, counts: np.ndarray, epsilon: float, size: int) -> np.ndarray:
    return (counts + rng.laplace(0, 1 / epsilon, (size, len(counts))))[:, :10]


def length(data: Any, epsilon: float) -> float:
    return len(data) + random.expovariate(epsilon) - random.expovariate(epsilon)


def histograms(cells: int) -> Pair:
    return Pair(np.ones(cells), np.array([2.0] + [1.0] * (cells - 1)))


#: Inputs of so many records, and of one more.
RECORDS: dict[str, Callable[[int], Pair]] = {
    "list of numbers": lambda n: Pair([0.5] * n, [0.5] * (n + 1)),
    "list of dicts": lambda n: Pair([{"age": 50} for _ in range(n)], [{"age": 50} for _ in range(n + 1)]),
    "data frame": lambda n: Pair(pd.DataFrame({"age": [50] * n}), pd.DataFrame({"age": [50] * (n + 1)})),
}


def peak() -> float:
    """The most memory that this process has held, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the peak of memory is read from /proc/self/status, which is not there")


def one_more(run: Callable[[int], object], few: int, many: int, repeats: int) -> float:
    """Nanoseconds of one more run; the least of the repeats."""
    run(few)
    times = []
    for _ in range(repeats):
        started = time.process_time()
        run(few)
        between = time.process_time()
        run(many)
        times.append((time.process_time() - between - (between - started)) / (many - few))
    return 1e9 * min(times)


def confirm(mechanism: Mechanism, pair: Pair, event: Event, runs: int) -> object:
    """So many confirm runs on one worker."""
    *_, last = Runner(mechanism=mechanism, seed=1, workers=1).confirm(pair, [event], runs)
    return last


def of_runs(runs: int) -> dict[str, float]:
    """A check of compiled code with so many confirm runs."""

    def check(confirm_runs: int) -> float:
        started = time.process_time()
        verdict = dpw.check(
            "laplace_mechanism", claim=EPSILON, parameters={"epsilon": 0.9 * EPSILON}, runs=confirm_runs,
            search_runs=100_000, max_time=36_000, workers=1, seed=1,
        )  # fmt: skip
        assert verdict.counts.runs == confirm_runs
        return time.process_time() - started

    before = min(check(100_000) for _ in range(2))  # the first one compiles
    seconds = check(runs)
    return {"seconds": seconds, "ns a run": 1e9 * (seconds - before) / (runs - 100_000) if runs > 100_000 else 0.0}


def of_sampled_runs(place: float) -> dict[str, float]:
    """The 10⁷ runs at a place of 10¹⁰ (0 the first, 1 the last), by the shards that a check would make."""
    pair, event = Pair(np.array([0.0]), np.array([1.0])), Interval(coordinate=0, low=0.5)
    mechanism = as_mechanism(load("laplace_mechanism"), pair.data, parameters={"epsilon": EPSILON})
    size = mechanism.shard * mechanism.cost.shards_larger(mechanism.shard, SAMPLED)
    work = EventCells(
        mechanism=mechanism, pair=pair, seed=1, role=Role.CONFIRM, runs=SAMPLED, size=size,
        width=EventCells.width_for(mechanism, [event]), events=(event,),
    )  # fmt: skip
    several = 10**7 // size
    first = round(place * (work.count - 1 - several))  # the very last one is shorter
    work(first)
    started = time.process_time()
    for shard in range(first, first + several):
        work(shard)
    return {"ns a run": 1e9 * (time.process_time() - started) / several / size}


def of_cells(kind: str, cells: int, repeats: int) -> dict[str, float]:
    """One more run of a mechanism that makes so many noisy cells and returns ten."""
    pair = histograms(cells)
    function = {"compiled": ten_cells, "vectorised": ten_cells_at_once}[kind]
    mechanism = as_mechanism(function, pair.data, parameters={"epsilon": EPSILON})
    mechanism.measure(pair)
    few = max(CELLS // 5 // cells, 2)
    run = partial(confirm, mechanism, pair, Interval(coordinate=0, low=1.5))
    paired = one_more(run, few, few + max(CELLS // cells, 8), repeats)
    return {"ns a run": paired, "ns a cell": paired / 2 / cells, "runs of a shard": mechanism.shard}


def of_whole_histograms(kind: str, cells: int) -> dict[str, float]:
    """A check of a histogram that is returned as it is; its claim holds."""
    function: Any = {"compiled": "histogram", "vectorised": at_once}[kind]
    started = time.process_time()
    dpw.check(
        function, claim=EPSILON, parameters={"epsilon": 0.9 * EPSILON}, neighbours=dpw.pairs(histograms(cells).sides),
        runs=max(CELLS // cells, 1_000), max_time=3_600, workers=1, seed=1,
    )  # fmt: skip
    return {"seconds": time.process_time() - started}


def at_once(rng: np.random.Generator, counts: np.ndarray, epsilon: float, size: int) -> np.ndarray:
    return counts + rng.laplace(0, 1 / epsilon, (size, len(counts)))


def of_records(kind: str, records: int, repeats: int) -> dict[str, float]:
    """One more run of plain Python that looks at the number of records alone."""
    pair = RECORDS[kind](records)
    with warnings.catch_warnings(action="ignore", category=dpw.CompiledDiffers):  # it runs as Python, as it should
        mechanism = as_mechanism(length, pair.data, parameters={"epsilon": EPSILON}, neighbour=pair.neighbour)
    mechanism.measure(pair)
    run = partial(confirm, mechanism, pair, Interval(coordinate=0, low=records + 0.5))
    few = mechanism.shard_of(pair)
    return {"ns a run": one_more(run, few, few + max(CALLS, few), repeats), "runs of a shard": few}


@dataclass(frozen=True)
class Line:
    """A row of a table, and what measures it in a process of its own."""

    table: str
    kind: str
    size: int
    measure: Callable[[], dict[str, float]]


def lines(most: float, repeats: int) -> Iterator[Line]:
    for runs in (10**k for k in range(5, 10)):
        if runs <= most:
            yield Line("runs", "all runs of a check", runs, partial(of_runs, runs))
    for name, place in (("the first", 0.0), ("in the middle", 0.5), ("the last", 1.0)):
        yield Line("runs", f"10⁷ of 10¹⁰ runs, {name}", SAMPLED, partial(of_sampled_runs, place))
    for kind in ("compiled", "vectorised"):
        for cells in SIZES:
            yield Line("cells", kind, cells, partial(of_cells, kind, cells, repeats))
        for cells in SIZES[:4]:
            yield Line("cells", f"{kind}, a whole check", cells, partial(of_whole_histograms, kind, cells))
    for kind in RECORDS:
        for records in SIZES:
            yield Line("records", kind, records, partial(of_records, kind, records, repeats))


def measured(line: Line) -> dict[str, float]:
    """What a line measures, and the peak of memory of this process."""
    empty = peak()
    found = line.measure()
    return {**found, "peak MB": peak(), "MB before": empty}


def plot(results: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 6.0), layout="constrained")
    axes = figure.subplots(2, 3, squeeze=False)
    for column, table in enumerate(("runs", "cells", "records")):
        own = [result for result in results if result["table"] == table]
        for row, name in enumerate(("ns a cell" if table == "cells" else "ns a run", "peak MB")):
            panel = axes[row][column]
            for kind in dict.fromkeys(result["kind"] for result in own):
                points = [(r["size"], r[name]) for r in own if r["kind"] == kind and r.get(name)]
                if points:
                    panel.plot(*zip(*points, strict=True), "o-", label=kind)
            panel.set(xscale="log", xlabel=table, ylabel=name, ylim=(0, None))
            panel.legend(fontsize="x-small")
    figure.savefig(path, dpi=150)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most-runs", type=float, default=1e9)
    parser.add_argument("--only", choices=("runs", "cells", "records"))
    parser.add_argument("--json", type=Path, help="write the tables to this file")
    parser.add_argument("--plot", type=Path, help="draw them: .svg, .png or .pdf")
    given = parser.parse_args()
    results = []
    for line in lines(given.most_runs, given.repeats):
        if given.only in (None, line.table):
            with multiprocessing.get_context("spawn").Pool(1) as one:
                found = one.apply(measured, (line,))
            results.append({"table": line.table, "kind": line.kind, "size": line.size, **found})
            values = ", ".join(f"{name} {value:,.4g}" for name, value in found.items())
            print(f"{line.table}: {line.kind}, {line.size:,}: {values}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    if given.plot:
        plot(results, given.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
