"""The histogram attack of Asghar & Kaafar (2020) at its default number of questions: counts right beside the theory.

The theory is that of Algorithm 4 alone, on which counts from single answers improve (--sums: without these).

python benchmarks/table_builder_rates.py [--seeds 200] [--workers 16] [--tables age visits voters] [--r 2 3 5 10]
    [--laws uniform] [--partitions K] [--sums] [--json FILE]
"""

import argparse
import json
import math
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import beta, norm

from dpwitness.reconstruction.table_builder import noise_laws
from dpwitness.reconstruction.table_builder.histogram import recover_histogram
from dpwitness.reconstruction.table_builder.supply import Plan
from dpwitness.reconstruction.table_builder.systems import BoundedNoisyCounts
from dpwitness.reconstruction.table_builder.tables import Table, read_table
from dpwitness.reconstruction.table_builder.theory import expected_right

#: The attacked attribute comes first; of the last table's six values the other attributes are partitioned too.
STATSMODELS = {
    "visits": ("randhie", ("mdvis",)),
    "voters": ("anes96", ("age",)),
    "jobs": (
        "fair",
        ("occupation", "rate_marriage", "age", "yrs_married", "children", "religious", "educ", "occupation_husb"),
    ),
}
TABLES = ("age", "visits", "voters", "jobs")
LAWS = {
    "uniform": noise_laws.uniform,
    "normal": lambda r: noise_laws.truncated_normal(r, r / 2),
    "laplace": lambda r: noise_laws.truncated_laplace(r, r / 2),
    "maximum-entropy": lambda r: noise_laws.maximum_entropy(r, r * r / 6),
}
DATA = Path(__file__).resolve().parents[1] / "data"
FAILURE = 0.01  # of an interval


@cache
def table_named(name):
    if name == "age":
        return read_table(DATA / "adult_age.csv")
    import statsmodels.datasets

    module, columns = STATSMODELS[name]
    frame = getattr(statsmodels.datasets, module).load_pandas().data
    return Table.from_columns({column: frame[column].tolist() for column in columns})


def one_run(job):
    name, law_name, r, seed, partitions, sums = job
    started = time.process_time()
    table, law = table_named(name), LAWS[law_name](r)
    attribute = next(iter(table.values))
    true = table.histogram(attribute)
    noise, choices = (np.random.default_rng(stream) for stream in np.random.SeedSequence([seed, r]).spawn(2))
    system = BoundedNoisyCounts(table, noise=law, suppression=max(law.bound, 4), rng=noise)
    found = recover_histogram(system, choices, attribute, Plan(partitions=partitions, fitted=not sums))
    return {
        "right": int(np.sum(np.array(found.counts) == true)),
        "values": len(true),
        "expected": expected_right(law, found.base_kinds, found.kinds, (true == 0).tolist()),
        "sure": 0.0 if found.failed_checks else sum(found.confidence),
        "partitions": found.partitions,
        "queries": found.queries,
        "workarounds": list(found.workarounds),
        "seconds": time.process_time() - started,
    }


def interval(right, values):
    """Of the rate: the wider one of counts that are independent, and of runs, whose counts share the base set's."""
    hits, trials = int(right.sum()), len(right) * values
    low = beta.ppf(FAILURE / 2, hits, trials - hits + 1) if hits else 0.0
    high = beta.ppf(1 - FAILURE / 2, hits + 1, trials - hits) if hits < trials else 1.0
    spread = norm.isf(FAILURE / 2) * right.std(ddof=1) / np.sqrt(len(right)) / values if len(right) > 1 else 0.0
    return max(min(float(low), hits / trials - spread), 0.0), min(max(float(high), hits / trials + spread), 1.0)


def summary(case, runs):
    values, right = runs[0]["values"], np.array([run["right"] for run in runs])
    low, high = interval(right, values)
    mean = {key: float(np.mean([run[key] for run in runs])) for key in ("expected", "sure", "partitions", "queries")}
    return {
        "table": case[0],
        "law": case[1],
        "r": case[2],
        "runs": len(runs),
        "values": values,
        "right": float(right.mean()) / values,
        "worst": int(right.min()) / values,
        "low": low,
        "high": high,
        "theory": mean["expected"] / values,
        "theory_inside": mean["expected"] / values <= high,
        "own_confidence": mean["sure"] / values,
        "partitions": mean["partitions"],
        "queries_a_value": mean["queries"] / values,
        "seconds": sum(run["seconds"] for run in runs),
        "workarounds": sorted({text for run in runs for text in run["workarounds"]}),
    }


def line(row):
    inside = "yes" if row["theory_inside"] else "NO"
    return (
        f"{row['table']:<7} {row['law']:<15} {row['r']:>3} {row['values']:>6} {row['right']:>9.3%} "
        f"{row['worst']:>8.1%} {row['low']:>8.3%}–{row['high']:<8.3%} {row['theory']:>8.3%} {inside:>3} "
        f"{row['own_confidence']:>8.3%} {row['partitions']:>6.0f} {row['queries_a_value']:>8,.0f} "
        f"{row['seconds']:>7.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES[:3])
    parser.add_argument("--r", nargs="+", type=int, default=[2, 3, 5, 10])
    parser.add_argument("--laws", nargs="+", choices=tuple(LAWS), default=["uniform"])
    parser.add_argument("--partitions", type=int, help="two-partitions a value, instead of what the noise asks for")
    parser.add_argument("--sums", action="store_true", help="by sums of partitions alone, as Algorithm 4 has it")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    started = time.perf_counter()
    cases = list(product(arguments.tables, arguments.laws, sorted(arguments.r, reverse=True)))
    jobs = [(*case, seed, arguments.partitions, arguments.sums) for case in cases for seed in range(arguments.seeds)]
    with ProcessPoolExecutor(arguments.workers) as pool:
        size = max(1, math.ceil(len(jobs) / (arguments.workers * 32)))
        runs = list(pool.map(one_run, jobs, chunksize=size))
    rows = [summary(case, runs[i * arguments.seeds : (i + 1) * arguments.seeds]) for i, case in enumerate(cases)]
    print(f"{arguments.seeds} seeds a line; asked: right on average ≥ 99 %, worst run ≥ 90 %, theory not above it")
    print(
        "table   law               r values     right    worst   99 % interval      theory  in      own      k  queries"
        "   cpu s"
    )
    for row in sorted(rows, key=lambda row: (arguments.tables.index(row["table"]), row["law"], row["r"])):
        print(line(row))
        for text in row["workarounds"]:
            print(f"        {text}")
    met = all(row["right"] >= 0.99 and row["worst"] >= 0.9 and row["theory_inside"] for row in rows)
    print(f"{'all met' if met else 'NOT all met'}; {time.perf_counter() - started:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
