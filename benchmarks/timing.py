"""Ten samplers whose time is looked at: `python benchmarks/timing.py [NAME …] [--seeds N] [--runs N] [--json FILE]`.

The outcomes of each keep ε = 1 by themselves, and that is the claim of all. Of five the time tells more; five do the
same work whatever the input and the noise are, as far as Python lets them: no branch, no loop and no whole number of
Python follows from either. Times are of the machine that runs this, and of what else it does meanwhile.
"""

import argparse
import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpwitness as dpw

EPSILON = 1.0
KEEP = math.exp(-EPSILON)  # the probability of one more step of geometric noise
STEPS = 48  # beyond 48 steps lies noise of probability 10⁻²¹
#: Of 1,024 draws of randomised response so many tell the truth: ε = log(748/276) = 0.997.
DRAWS, TRUE = 1024, 748
#: The answers by the true bit, which is 1 or 2, and the draw. An index of 0 takes CPython 3.11 some 10 ns longer than
#: one of 1: its 0 has no digits, and is read by another branch. Both answers are one object each: where the lies were
#: objects of their own, which are rarely in a cache, their time gave them away.
ONE, TWO = 1.0, 2.0
ANSWERS = ((), (ONE,) * TRUE + (TWO,) * (DRAWS - TRUE), (TWO,) * TRUE + (ONE,) * (DRAWS - TRUE))
#: The probability of a lie: ε = 0.99998. In floating point, since a whole number of more than 30 bits takes Python
#: longer than a smaller one, and NumPy makes its own of Python's.
LIE = 1 / (1 + math.exp(0.99998))


def geometric_by_loop(rng, data):
    """Two-sided geometric noise; the loops take as many steps as the noise has."""
    noise = 0
    while rng.random() < KEEP:
        noise += 1
    while rng.random() < KEEP:
        noise -= 1
    return data[0] + noise


def truncated_by_rejection(rng, data):
    """A number from 0 to 10, by the exponential mechanism; a value near an end is rejected more often."""
    while True:
        value = data[0] + rng.laplace(0.0, 2 / EPSILON)
        if 0 <= value <= 10:
            return value


def count_by_records(rng, data):
    """A noisy count; the loop takes a step for each record."""
    count = 0
    for record in data:
        count += record >= 0
    return count + rng.laplace(0.0, 1 / EPSILON)


def any_with_early_exit(rng, data):
    """Randomised response on whether any record is above 10; the search ends at the first."""
    above = any(record > 10 for record in data)
    return ANSWERS[1 + above][rng.integers(DRAWS)]


def more_work_for_a_flag(rng, data):
    """Randomised response on a flag; where it is set, something else is computed as well."""
    if data[0] == 2:
        sum(range(50))
    return ANSWERS[data[0]][rng.integers(DRAWS)]


def geometric_by_fixed_steps(rng, data):
    """Two-sided geometric noise from as many draws each time."""
    steps = np.cumprod(rng.random((2, STEPS)) < KEEP, axis=1).sum(axis=1)
    return data[0] + steps[0] - steps[1]


def response_by_table(rng, data):
    """Randomised response from a table."""
    return ANSWERS[data[0]][rng.integers(DRAWS)]


def response_by_arithmetic(rng, data):
    """Randomised response by floating-point arithmetic."""
    lie = np.floor(rng.random() + LIE)
    return data[0] + lie * (1.0 - 2.0 * data[0])


def any_of_all(rng, data):
    """Randomised response on whether any record is above 10; all are compared."""
    above = np.maximum.reduce((data > 10.0).astype(np.float64))
    lie = np.floor(rng.random() + LIE)
    return above + lie * (1.0 - 2.0 * above)


def laplace_of_numpy(rng, data):
    """A number and NumPy's Laplace noise."""
    return data[0] + rng.laplace(0.0, 1 / EPSILON)


@dataclass(frozen=True)
class Sampler:
    """A sampler, two neighbouring inputs, and whether its time tells more than its outcomes."""

    function: Callable[..., Any]
    pair: tuple[Any, Any]
    leaks: bool

    @property
    def name(self) -> str:
        """That of the function."""
        return self.function.__name__


SAMPLERS = (
    Sampler(geometric_by_loop, ([3], [4]), leaks=True),
    Sampler(truncated_by_rejection, ([0.0], [1.0]), leaks=True),
    Sampler(count_by_records, ([1.5] * 20, [1.5] * 21), leaks=True),
    Sampler(any_with_early_exit, ([20.0, *[1.5] * 20], [2.0, *[1.5] * 20]), leaks=True),
    Sampler(more_work_for_a_flag, ([1], [2]), leaks=True),
    Sampler(geometric_by_fixed_steps, (np.array([3]), np.array([4])), leaks=False),
    Sampler(response_by_table, ([1], [2]), leaks=False),
    Sampler(response_by_arithmetic, (np.array([0.0]), np.array([1.0])), leaks=False),
    Sampler(any_of_all, (np.array([20.0] + [1.5] * 20), np.array([2.0] + [1.5] * 20)), leaks=False),
    Sampler(laplace_of_numpy, ([0.25], [1.25]), leaks=False),
)


def row_of(sampler: Sampler, seeds: int, runs: int, search_runs: int) -> dict[str, Any]:
    """Check one sampler with each seed."""
    verdicts = [
        dpw.check(
            sampler.function,
            claim=EPSILON,
            neighbours=[sampler.pair],
            observe="time",
            runs=runs,
            search_runs=search_runs,
            max_time="5m",
            seed=seed,
        )
        for seed in range(seeds)
    ]
    refuted = [verdict for verdict in verdicts if isinstance(verdict, dpw.Violation)]
    return {
        "sampler": sampler.name,
        "leaks": sampler.leaks,
        "refuted": len(refuted),
        "seeds": seeds,
        "epsilon_lower_bound": statistics.median(verdict.epsilon_lower_bound for verdict in refuted or verdicts),
        "paired_confirm_runs": int(statistics.median(verdict.counts.runs for verdict in verdicts)),
        "seconds": statistics.median(verdict.seconds for verdict in verdicts),
        "event": max(verdicts, key=lambda verdict: verdict.log_e_value).witness.description,
    }


def main() -> None:
    names = [sampler.name for sampler in SAMPLERS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)} (default: all)")
    parser.add_argument("--seeds", type=int, default=20, metavar="N")
    parser.add_argument("--runs", type=int, default=20_000, metavar="N", help="paired confirm runs (default 20000)")
    parser.add_argument("--search-runs", type=int, default=4_000, metavar="N", help="paired search runs (default 4000)")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(names)):
        parser.error(f"no sampler is called {', '.join(unknown)}")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    machine = f"{platform.python_implementation()} {platform.python_version()}, NumPy {np.__version__}, {sys.platform}"
    print(f"{machine}; {os.cpu_count()} cores, load {load:.1f}; claim ε = {EPSILON:g}", flush=True)
    print(f"{'sampler':26}{'time leaks':>11}{'refuted':>9}{'ε ≥':>7}{'runs':>8}{'s':>6}  event", flush=True)
    rows = []
    for sampler in SAMPLERS:
        if arguments.names and sampler.name not in arguments.names:
            continue
        row = row_of(sampler, arguments.seeds, arguments.runs, arguments.search_runs)
        rows.append(row)
        print(
            f"{row['sampler']:26}{'yes' if row['leaks'] else 'no':>11}{row['refuted']:>6}/{row['seeds']:<2}"
            f"{row['epsilon_lower_bound']:>7.2f}{row['paired_confirm_runs']:>8}{row['seconds']:>6.1f}  "
            f"{row['event']:.70}",
            flush=True,
        )
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine, "load": load, "claim": EPSILON, "samplers": rows}, file, indent=1)


if __name__ == "__main__":
    main()
