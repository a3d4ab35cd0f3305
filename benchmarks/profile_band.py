"""The gap between a profile's band and the closed form: `python benchmarks/profile_band.py [--seeds 8] [--workers 2]`.

For each mechanism: the largest relative gap (δ(ε) − band) / δ(ε) for ε in [0, 3] where δ(ε) ≥ 10⁻⁴, the median gap at
some ε, and the number of bands that lay above the truth anywhere. For comparison, the largest gap of a normal bound at
one ε with the best event known, at the smaller variance of coupled and independent sides.
"""

import math
import statistics
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from scipy.special import ndtr, ndtri

import dpwitness as dpw
from dpwitness.exact import discrete_gaussian_delta, gaussian_delta
from dpwitness.mechanisms.catalog import load
from results import Table, finish, parser_of

EPSILONS = np.arange(0.0, 3.0001, 0.01)
LEAST_DELTA = 1e-4
SHOWN = (0.0, 0.5, 1.0, 2.0, 3.0)


def laplace_delta(epsilon, scale=1.0):
    """δ at ε of Laplace noise of scale b, answers 1 apart: 1 − e^((ε − 1/b)/2)."""
    return max(-math.expm1((epsilon - 1 / scale) / 2), 0.0)


def cases():
    """By name: the target, its ε, the function δ(ε), and the function (p, q) of the best event at ε."""

    def gaussian_event(epsilon):
        return ndtr(0.5 - epsilon), ndtr(-0.5 - epsilon)

    def laplace_event(epsilon):
        return 1 - math.exp(-(1 - epsilon) / 2) / 2, math.exp(-(1 + epsilon) / 2) / 2

    def discrete_event(epsilon):
        k = np.arange(-60, 61)
        weights = np.exp(-(k**2) / 2) / np.exp(-(k**2) / 2).sum()
        above = k >= math.floor(epsilon + 0.5) + 1
        return weights[np.roll(above, -1)].sum(), weights[above].sum()

    sigma = math.sqrt(2 * math.log(1.25 / 1e-5))  # μ = 1
    return {
        "gaussian": ("gaussian_mechanism", sigma, lambda e: gaussian_delta(e, mu=1.0), gaussian_event),
        "laplace": ("laplace_mechanism", 1.0, laplace_delta, laplace_event),
        "discrete": ("discrete_gaussian", 1.0, lambda e: discrete_gaussian_delta(e, sigma=1.0), discrete_event),
    }


def one(task):
    name, runs, alpha, seed, max_time = task
    target, epsilon, exact, _ = cases()[name]
    found = dpw.profile(load(target), epsilon=epsilon, runs=runs, alpha=alpha, seed=seed, workers=1, max_time=max_time)
    truth = np.array([exact(e) for e in EPSILONS])
    band = found.delta(EPSILONS)
    gaps = np.where(truth >= LEAST_DELTA, 1 - band / np.maximum(truth, 1e-300), 0.0)
    return {
        "case": name,
        "seed": seed,
        "largest_gap": float(gaps.max()),
        "gaps": [float(gaps[round(e / 0.01)]) for e in SHOWN],
        "above_truth": bool(np.any(band > truth * (1 + 1e-12))),
    }


def at_one_epsilon(name, runs, alpha):
    """The largest relative gap of a normal bound at one ε alone, for the best event."""
    _, _, exact, event = cases()[name]
    worst = 0.0
    for epsilon in EPSILONS:
        truth = exact(epsilon)
        if truth >= LEAST_DELTA:
            p, q = event(float(epsilon))
            s = math.exp(epsilon)
            apart = p * (1 - p) + s**2 * q * (1 - q)
            coupled = p - q + (s - 1) ** 2 * q - (p - s * q) ** 2  # M(D′) in the event only where M(D) is
            spread = math.sqrt(min(apart, coupled) / runs)
            worst = max(worst, -float(ndtri(alpha)) * spread / truth)
    return worst


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=float, default=2e7)
    parser.add_argument("--alpha", type=float, default=0.001)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--cases", nargs="+", choices=cases(), default=list(cases()))
    parser.add_argument("--workers", type=int, default=1, help="seeds beside each other, each in a process")
    parser.add_argument("--max-time", type=float, default=600.0)
    given = parser.parse_args()
    runs, rows = int(given.runs), []
    table = Table("mechanism", "largest gap", "by a normal bound", *(f"ε = {e:g}" for e in SHOWN), "above the truth")
    with ProcessPoolExecutor(given.workers) as pool:
        for name in given.cases:
            tasks = [(name, runs, given.alpha, seed, given.max_time) for seed in range(given.seeds)]
            found = list(pool.map(one, tasks))
            rows += found
            gaps = [row["largest_gap"] for row in found]
            table.add(
                name, f"{min(gaps):.2%}, {statistics.median(gaps):.2%}, {max(gaps):.2%}",
                f"{at_one_epsilon(name, runs, given.alpha):.2%}",
                *(f"{statistics.median(row['gaps'][k] for row in found):.2%}" for k in range(len(SHOWN))),
                sum(row["above_truth"] for row in found),
            )  # fmt: skip
    text = f"{runs:,} paired runs, confidence {1 - given.alpha:g}; gaps of {given.seeds} seeds: least, median, largest."
    finish(given, "The band of a privacy profile", text, table, rows)


if __name__ == "__main__":
    main()
