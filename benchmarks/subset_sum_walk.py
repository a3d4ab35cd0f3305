"""The random walk of Theorem 5: an adversary's confidence in one bit behind binomial errors, measured and bounded.

    python benchmarks/subset_sum_walk.py --json walk.json

Dinur & Nissim, PODS 2003. `bound` is that of the proof with its constants computed, `chernoff` that by the exact
moments of a step, which says how many queries may be allowed.
"""

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.subset_sum.theory import chernoff_bound, simulate_confidence, steps, threshold


def confidence_bound(fair_bits: int, answers: int, limit: float) -> float:
    """Bound the probability that |confidence| reaches `limit` (nats, δ′ of the lecture) within `answers` answers.

    As in the proof: errors stay within a width but for a small probability; within it the steps are bounded, their
    mean is small, and Hoeffding's inequality bounds their sum, for the largest of all partial sums as for the last.
    Tails and mean are exact here. The proof's width of log²n·√R exceeds R/2, and so says nothing, unless R is in the
    thousands; this takes, of 200 widths up to 8·√R, the one that gives the smallest bound.
    """
    from scipy.stats import binom  # 0.4 s

    if answers < 1:
        raise InvalidParameter(f"answers={answers!r} must be at least 1")
    if fair_bits < 1:
        raise InvalidParameter(f"fair_bits={fair_bits!r} must be at least 1")
    size = steps(fair_bits)
    if not limit > 0:
        raise InvalidParameter(f"limit={limit!r} must be positive")
    weights = binom.pmf(np.arange(fair_bits + 1), fair_bits, 0.5)
    best = 1.0
    first = max(math.floor(fair_bits / 2 - 8 * math.sqrt(fair_bits)), 0)
    for lost in np.unique(np.linspace(first, (fair_bits - 1) // 2, 200).astype(np.int64)).tolist():
        low, high = lost + 1, fair_bits - lost - 1  # these k and all between are within the width
        if low > high:
            break
        inside = slice(low, high + 1)
        tail = 2 * float(binom.cdf(lost, fair_bits, 0.5))
        mean = float(weights[inside] @ size[inside]) / (1 - tail)
        largest = float(np.abs(size[inside]).max())
        variation = 2 * answers * largest**2
        up, down = limit - answers * mean, limit + answers * mean
        above = math.exp(-(up**2) / variation) if up > 0 else 1.0
        below = math.exp(-(down**2) / variation) if down > 0 else 1.0
        # Leaving the width once in t answers; else the walk has bounded steps.
        probability = -math.expm1(answers * math.log1p(-tail)) + above + below if tail < 1 else 1.0
        best = min(best, probability)
    return best


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
                        "bound": confidence_bound(bits, answers, limit),
                        "chernoff": chernoff_bound(bits, limit)(answers),
                    }
                )
    return rows


def walk_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| R | t | t/R | mean confidence (2t/R) | 99 % of peaks below | δ | P(peak ≥ δ′) measured | bound | chernoff |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['fair_bits']} | {r['answers']} | 1/{r['fair_bits'] // r['answers']} | {r['mean']:.4f} ± "
        f"{r['mean_error']:.4f} ({r['mean_expected']:.4f}) | {r['quantile_99']:.3f} | {r['delta']} | "
        f"{r['measured']:.5f} | {r['bound']:.5f} | {r['chernoff']:.5f} |"
        for r in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fair-bits", type=int, nargs="+", default=[256, 4096, 65536])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="all figures")
    arguments = parser.parse_args()
    started = time.perf_counter()
    walked = walks(arguments.fair_bits, arguments.seed)
    print(walk_table(walked))
    print(f"\n{time.perf_counter() - started:.0f} s")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"walk": walked}, indent=1, allow_nan=False))


if __name__ == "__main__":
    main()
