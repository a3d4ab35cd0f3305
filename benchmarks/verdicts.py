"""Verdicts and curves over many seeds: `python benchmarks/verdicts.py verdicts|curves|bounds [--seeds 20]`.

Prints how often each target is refuted at its claim; how the p-values of the correct targets lie around their true ε;
and the lower bounds that `bound` reaches.
"""

import argparse
import time

import numpy as np

import dpwitness as dpw
from dpwitness.mechanisms.catalog import load

RIGHT = ("histogram", "svt", "laplace_mechanism")
BROKEN = ("isvt1", "isvt2", "isvt3", "isvt4")
EPSILONS = (0.2, 0.7, 1.5)


def verdicts(seeds):
    for name in (*RIGHT, *BROKEN, "histogram_wrong_scale"):
        for epsilon in EPSILONS:
            found = [dpw.check(load(name), epsilon=epsilon, seed=seed) for seed in range(seeds)]
            refuted = sum(isinstance(v, dpw.Violation) for v in found)
            seconds = np.mean([v.seconds for v in found])
            most = max(v.counts.runs for v in found)
            print(
                f"{name:22} ε₀={epsilon}: refuted {refuted}/{seeds}, {seconds:.2f} s each, {most:,} runs at most",
                flush=True,
            )


def curves(seeds):
    grid = [round(0.1 * k, 1) for k in range(1, 20)]
    for name in ("histogram", "histogram_wrong_scale", "svt", "laplace_mechanism"):
        for epsilon in EPSILONS:
            true = 1 / epsilon if name == "histogram_wrong_scale" else epsilon
            tests = sorted({*grid, round(0.8 * true, 6), round(true, 6)})
            lines = [
                dpw.curve(load(name), epsilon=[epsilon], claims=tests, seed=seed).lines[0] for seed in range(seeds)
            ]
            p = np.array([line.p_values for line in lines])
            low = np.array(tests) <= 0.8 * true + 1e-6
            high = np.array(tests) >= true - 1e-6
            above = np.mean(p[:, high].min(axis=1) > 0.01) if high.any() else float("nan")
            print(
                f"{name:22} ε₀={epsilon}: largest p at ≤ 0.8·true {p[:, low].max():.2g}; "
                f"all p at ≥ true above 0.01 in {above:.0%} of {seeds} seeds",
                flush=True,
            )
    for epsilon in EPSILONS:
        line = dpw.curve(load("isvt1"), epsilon=[epsilon], claims=[*grid, 5.0], seed=0).lines[0]
        print(f"isvt1 ε₀={epsilon}: largest p at test ε 0.1…1.9 and 5: {max(line.p_values):.2g}", flush=True)


def bounds(seeds):
    for name, epsilon, runs in (("svt", 0.1, 20_000_000), ("histogram_wrong_scale", 1.5, 20_000_000)):
        found = [dpw.bound(load(name), epsilon=epsilon, runs=runs, seed=seed) for seed in range(seeds)]
        values = [b.epsilon_lower_bound for b in found]
        print(
            f"{name} ε={epsilon}, {runs:,} runs, 99.9 %: bounds {min(values):.4f} … {np.median(values):.4f} … "
            f"{max(values):.4f} over {seeds} seeds, {np.mean([b.seconds for b in found]):.1f} s each",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("verdicts", "curves", "bounds"))
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    started = time.perf_counter()
    {"verdicts": verdicts, "curves": curves, "bounds": bounds}[arguments.what](arguments.seeds)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
