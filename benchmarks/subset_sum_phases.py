"""Where blatant non-privacy ends, for two adversaries: the share of bits recovered against E/√n.

    python benchmarks/subset_sum_phases.py --workers 16 --seeds 8 --json phases.json

Dinur & Nissim, PODS 2003. Every attack has fresh random bits, n·ln²n fresh random subsets and fresh errors of a bundled
target; a share of 1/2 is what guessing gives. Errors of the laws binomial and gaussian have the standard deviation E/2.
`expected` is the share that least squares expects to be right, from the answers alone; nan where it sees that the
answers are no sums of bits with normal errors.
"""

import argparse
import json
import math
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

LAWS = ("uniform", "adversarial", "rounding", "binomial", "gaussian")
RATIOS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)


def attack(case: tuple[int, str, float, int]) -> dict[str, Any]:
    """One secret, both adversaries."""
    import numpy as np

    from dpwitness.reconstruction.subset_sum.linear_decoding import least_squares_adversary, polynomial_adversary
    from dpwitness.reconstruction.subset_sum.oracle import ask, query_count, subset_family

    size, law, ratio, seed = case
    rng = np.random.default_rng([seed, size, LAWS.index(law), RATIOS.index(ratio)])
    secret, family, queries = rng.integers(0, 2, size), int(rng.integers(1 << 30)), query_count(size)
    answers = ask(secret, ratio * math.sqrt(size), queries, law, family, rng)
    subsets = subset_family(size, queries, family)
    row: dict[str, Any] = {"size": size, "law": law, "ratio": ratio, "seed": seed}
    for name, adversary in (("polynomial", polynomial_adversary), ("least_squares", least_squares_adversary)):
        started = time.perf_counter()
        found = adversary(subsets, answers)
        row[name] = float(np.mean(found.bits == secret))
        row[f"{name}_seconds"] = time.perf_counter() - started
    row["expected"] = None if found.expected_right is None else found.expected_right / size  # of the last of both
    return row


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over seeds, with standard errors."""
    groups: dict[tuple[int, str, float], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["size"], row["law"], row["ratio"]), []).append(row)
    found = []
    for (size, law, ratio), some in groups.items():
        line: dict[str, Any] = {"size": size, "law": law, "ratio": ratio, "seeds": len(some)}
        for key in ("polynomial", "least_squares", "expected", "polynomial_seconds", "least_squares_seconds"):
            values = [row[key] for row in some if row[key] is not None] or [math.nan]
            mean = sum(values) / len(values)
            spread = math.sqrt(sum((v - mean) ** 2 for v in values) / max(len(values) - 1, 1))
            line[key], line[f"{key}_error"] = mean, spread / math.sqrt(len(values))
        found.append(line)
    return found


def table(lines: list[dict[str, Any]]) -> str:
    """Rows E/√n; for each law and size: linear program / least squares (what least squares expects)."""
    columns = list(dict.fromkeys((line["law"], line["size"]) for line in lines))
    found = {(line["law"], line["size"], line["ratio"]): line for line in lines}
    text = [
        "| E/√n | " + " | ".join(f"{law} {size}" for law, size in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for ratio in dict.fromkeys(line["ratio"] for line in lines):
        cells = (found[law, size, ratio] for law, size in columns)
        text.append(
            f"| {ratio:g} | "
            + " | ".join(f"{c['polynomial']:.3f} / {c['least_squares']:.3f} ({c['expected']:.3f})" for c in cells)
            + " |"
        )
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=["uniform", "adversarial", "binomial", "gaussian"])
    parser.add_argument("--ratios", type=float, nargs="+", choices=RATIOS, default=list(RATIOS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", help="all figures")
    arguments = parser.parse_args()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # before NumPy is imported: the workers are as many threads as there should be
    started = time.perf_counter()
    cases = [
        (size, law, ratio, seed)
        for size in sorted(arguments.sizes, reverse=True)  # the long ones first
        for law in arguments.laws
        for ratio in arguments.ratios
        for seed in range(arguments.seeds)
    ]
    with ProcessPoolExecutor(arguments.workers) as pool:
        rows = list(pool.map(attack, cases))
    lines = sorted(summary(rows), key=lambda line: (arguments.laws.index(line["law"]), line["size"], line["ratio"]))
    print("linear program / least squares (share that least squares expects)\n\n" + table(lines))
    for size in sorted(arguments.sizes):
        here = [line for line in lines if line["size"] == size]
        parts = (
            f"{name} {sum(line[f'{key}_seconds'] for line in here) / len(here):.2f} s"
            for name, key in (("linear program", "polynomial"), ("least squares", "least_squares"))
        )
        print(f"\nn = {size}: {', '.join(parts)} an attack")
    print(f"\n{time.perf_counter() - started:.0f} s")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"attacks": rows}, indent=1, allow_nan=False))


if __name__ == "__main__":
    main()
