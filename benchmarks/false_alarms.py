"""How often bundled targets that keep their claim are refuted at it: `python benchmarks/false_alarms.py [TARGET …]`.

Each seed is a whole check: pairs and events are searched as for a user, the last bits are looked at, and α = 0.01. The
limit is the number of false alarms that a level of α exceeds in one series of a thousand. Refutations by the last bits
are counted beside the others: they speak of the floating-point implementation, and where noise is drawn in double
precision they are right. Options: --seeds N, --first N, --runs N, --workers N, --json FILE.
"""

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from scipy.stats import binom

import dpwitness as dpw
from dpwitness.mechanisms.catalog import load_registered, registered
from dpwitness.targets import target_of

ALPHA = 0.01
EPSILON = 1.0
#: What `true_epsilon` of a target begins with that keeps its claim at every setting.
KEEP = ("ε at δ", "below ε", "at most ε", "ρ = ε²/2")
#: Seeds of one task of a process.
CHUNK = 10


def correct_targets() -> list[str]:
    """Bundled targets of a claim that they keep."""
    found = []
    for name in registered():
        target = target_of(load_registered(name))
        if target is not None and (target.true_epsilon == "ε" or target.true_epsilon.startswith(KEEP)):
            found.append(name)
    return found


def refuted(seed: int, *, name: str, runs: int) -> str:
    """By what a check refuted it: "outcomes" or "bits"; "" where it did not."""
    warnings.simplefilter("ignore")
    verdict = dpw.check(name, epsilon=EPSILON, alpha=ALPHA, runs=runs, seed=seed, workers=1)
    if isinstance(verdict, dpw.Violation):
        return "bits" if verdict.by_bits else "outcomes"
    return "" if verdict.floating_point is None else "bits"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    limit = int(binom.isf(1e-3, arguments.seeds, ALPHA))
    print(f"at most {limit} of {arguments.seeds} seeds; α = {ALPHA}\n")
    print(f"{'target':<34} refuted  by bits  within  seconds")
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(arguments.workers) as pool:
        for name in arguments.targets or correct_targets():
            started = time.perf_counter()
            seeds = range(arguments.first, arguments.first + arguments.seeds)
            found = list(pool.map(partial(refuted, name=name, runs=arguments.runs), seeds, chunksize=CHUNK))
            counts = {kind: found.count(kind) for kind in ("outcomes", "bits")}
            rows.append({"target": name, "seeds": len(found), **counts, "seconds": time.perf_counter() - started})
            within = "yes" if counts["outcomes"] <= limit else "NO"
            print(
                f"{name:<34} {counts['outcomes']:7,}  {counts['bits']:7,}  {within:>6}  {rows[-1]['seconds']:7.1f}",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
