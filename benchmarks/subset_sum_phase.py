"""Where blatant non-privacy ends: the share of bits recovered against E/√n, and the random walk of Theorem 5.

    python benchmarks/subset_sum_phase.py --plot phase.svg --walk-plot walk.svg --json phase.json

Dinur & Nissim, PODS 2003. Every attack has fresh random bits, n·ln²n fresh random subsets and fresh errors of a bundled
target; a share of 1/2 is what guessing gives. For binomial errors E = √R, twice their standard deviation.
"""

import argparse
import io
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from dpwitness.attacks.subset_sum.adversaries import polynomial_adversary
from dpwitness.attacks.subset_sum.oracle import ask, query_count, subset_family
from dpwitness.attacks.subset_sum.theory import confidence_bound, simulate_confidence, threshold
from dpwitness.report.plots import plot_format

LAWS = ("uniform", "adversarial", "rounding", "binomial")
RATIOS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def phase(sizes: list[int], laws: list[str], trials: int, seed: int) -> list[dict[str, Any]]:
    rows = []
    for place, size in enumerate(sizes):
        for number, law in enumerate(laws):
            for step, ratio in enumerate(RATIOS):
                rng = np.random.default_rng([seed, place, number, step])
                started = time.perf_counter()
                shares, squares = [], []
                for _ in range(trials):
                    family = int(rng.integers(1 << 30))
                    secret = rng.integers(0, 2, size)
                    queries = query_count(size)
                    answers = ask(secret, ratio * math.sqrt(size), queries, law, family, rng)
                    subsets = subset_family(size, queries, family)
                    shares.append(float(np.mean(polynomial_adversary(subsets, answers).bits == secret)))
                    fit = np.linalg.lstsq(subsets.astype(float), answers, rcond=None)[0]
                    squares.append(float(np.mean((fit > 0.5) == secret)))
                row = {
                    "size": size,
                    "law": law,
                    "ratio": ratio,
                    "error": ratio * math.sqrt(size),
                    "recovered": float(np.mean(shares)),
                    "standard_error": float(np.std(shares, ddof=1) / math.sqrt(trials)),
                    "least_squares": float(np.mean(squares)),
                    "seconds_each": (time.perf_counter() - started) / trials,
                }
                rows.append(row)
                print("{size:4d} {law:12s} {ratio:7.3f} {recovered:.3f}".format(**row), flush=True)
    return rows


def walks(fair_bits: list[int], seed: int) -> list[dict[str, Any]]:
    rows = []
    for place, bits in enumerate(fair_bits):
        for step, part in enumerate((1024, 256, 64, 16, 4, 1)):
            answers = bits // part
            if answers < 1:
                continue
            rng = np.random.default_rng([seed, place, step])
            number = max(min(100_000, 1 << 24) // max(answers // 160, 1), 1_000)
            largest, last = [], []
            for start in range(0, number, 500):  # flat in memory
                paths = simulate_confidence(rng, bits, answers, min(500, number - start))
                largest.append(np.abs(paths).max(axis=1))
                last.append(paths[:, -1])
            peaks, ends = np.concatenate(largest), np.concatenate(last)
            for delta in (0.1, 0.25, 0.4):
                limit = threshold(delta)
                rows.append(
                    {
                        "fair_bits": bits,
                        "answers": answers,
                        "delta": delta,
                        "limit": limit,
                        "walks": number,
                        "mean": float(ends.mean()),
                        "mean_error": float(ends.std(ddof=1) / math.sqrt(number)),
                        "mean_expected": 2 * answers / bits,
                        "quantile_99": float(np.quantile(peaks, 0.99)),
                        "measured": float(np.mean(peaks >= limit)),
                        "bound": confidence_bound(bits, answers, limit).probability,
                    }
                )
    return rows


def phase_table(rows: list[dict[str, Any]], key: str) -> str:
    columns = list(dict.fromkeys((row["law"], row["size"]) for row in rows))
    found = {(row["law"], row["size"], row["ratio"]): row for row in rows}
    lines = [
        "| E/√n | " + " | ".join(f"{law} {size}" for law, size in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    lines += [
        f"| {ratio:g} | " + " | ".join(f"{found[law, size, ratio][key]:.3f}" for law, size in columns) + " |"
        for ratio in RATIOS
    ]
    return "\n".join(lines)


def walk_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| R | t | t/R | mean confidence (2t/R) | 99 % of peaks below | δ | P(peak ≥ δ′) measured | bound |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['fair_bits']} | {r['answers']} | 1/{r['fair_bits'] // r['answers']} | {r['mean']:.4f} ± "
        f"{r['mean_error']:.4f} ({r['mean_expected']:.4f}) | {r['quantile_99']:.3f} | {r['delta']} | "
        f"{r['measured']:.5f} | {r['bound']:.5f} |"
        for r in rows
    ]
    return "\n".join(lines)


def plot_phase(rows: list[dict[str, Any]], path: str) -> None:
    from matplotlib.figure import Figure

    laws, sizes = (list(dict.fromkeys(row[key] for row in rows)) for key in ("law", "size"))
    figure = Figure(figsize=(3.2 * len(laws), 3.6), layout="constrained")
    for place, law in enumerate(laws):
        axes = figure.add_subplot(1, len(laws), place + 1)
        for size in sizes:
            here = [row for row in rows if row["law"] == law and row["size"] == size]
            x, y, e = ([row[key] for row in here] for key in ("ratio", "recovered", "standard_error"))
            axes.errorbar(x, y, yerr=e, marker="o", ms=3, lw=1, label=f"n = {size}")
        axes.axhline(0.5, color="black", lw=0.8, ls="--")
        axes.set(xscale="log", xlabel="E/√n", ylim=(0.4, 1.02), title=law)
        if place == 0:
            axes.set_ylabel("share of bits recovered")
            axes.legend()
    _write(figure, path)


def plot_walks(rows: list[dict[str, Any]], path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    largest = max(row["fair_bits"] for row in rows)
    for place, delta in enumerate(dict.fromkeys(row["delta"] for row in rows)):
        here = [row for row in rows if row["delta"] == delta and row["fair_bits"] == largest]
        x = [row["answers"] / row["fair_bits"] for row in here]
        axes.plot(x, [row["measured"] for row in here], "o-", color=f"C{place}", label=f"δ = {delta:g}, measured")
        axes.plot(x, [row["bound"] for row in here], "--", color=f"C{place}", label=f"δ = {delta:g}, bound")
    axes.set(xscale="log", xlabel="t/R", ylabel="P(|confidence| reaches δ′)", title=f"R = {largest}")
    axes.legend()
    _write(figure, path)


def _write(figure: Any, path: str) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=plot_format(path), dpi=150)
    Path(path).write_bytes(buffer.getvalue())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS))
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", help="the phase diagram as .svg, .png or .pdf")
    parser.add_argument("--walk-plot", help="the random walk against its bound")
    parser.add_argument("--json", help="all figures")
    arguments = parser.parse_args()
    started = time.perf_counter()
    rows = phase(arguments.sizes, arguments.laws, arguments.trials, arguments.seed)
    print("\nShare of bits recovered by the linear program\n\n" + phase_table(rows, "recovered"))
    print("\nShare recovered by rounding a least-squares fit\n\n" + phase_table(rows, "least_squares"))
    walked = walks([256, 4096, 65536], arguments.seed)
    print("\nConfidence in one bit behind binomial errors\n\n" + walk_table(walked))
    print(f"\n{time.perf_counter() - started:.0f} s")
    if arguments.plot:
        plot_phase(rows, arguments.plot)
    if arguments.walk_plot:
        plot_walks(walked, arguments.walk_plot)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"phase": rows, "walk": walked}, indent=1, allow_nan=False))


if __name__ == "__main__":
    main()
