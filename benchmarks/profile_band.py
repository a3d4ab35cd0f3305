"""How near a profile's band comes to the closed form: `python benchmarks/profile_band.py [--seeds 8] [--workers 2]`.

Prints, for each mechanism, min / median / max over the seeds of the largest relative gap (δ(ε) − band) / δ(ε) for ε in
[0, 3] where δ(ε) ≥ 10⁻⁴, up to which ε the gap stays below 2 %, and how often the band lay above the truth anywhere.
Beside it what would be had if the best event were known and only one ε asked for: its gap by a normal bound, with the
smaller variance of coupled and independent sides.
"""

import argparse
import math
import statistics
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

EPSILONS = np.arange(0.0, 3.0001, 0.01)
LEAST_DELTA = 1e-4
WANTED = 0.02


def laplace_delta(epsilon, scale=1.0):
    """δ at ε of Laplace noise of scale b, answers 1 apart: 1 − e^((ε − 1/b)/2)."""
    return max(-math.expm1((epsilon - 1 / scale) / 2), 0.0)


def cases():
    """Name, target, its ε, δ(ε), and (p, q) of the best event at ε."""
    from scipy.special import ndtr

    from dpwitness.exact import discrete_gaussian_delta, gaussian_delta

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
    import dpwitness as dpw
    from dpwitness.mechanisms.catalog import load

    target, epsilon, exact, _ = cases()[name]
    began = time.monotonic()
    found = dpw.profile(load(target), epsilon=epsilon, runs=runs, alpha=alpha, seed=seed, workers=1, max_time=max_time)
    truth = np.array([exact(e) for e in EPSILONS])
    band = found.delta(EPSILONS)
    looked = truth >= LEAST_DELTA
    gaps = np.where(looked, 1 - band / np.maximum(truth, 1e-300), 0.0)
    over = np.flatnonzero(gaps > WANTED)
    return {
        "case": name,
        "seed": seed,
        "largest_gap": float(gaps.max()),
        "within_2_percent_up_to": float(EPSILONS[over[0]]) if len(over) else 3.0,
        "gap_at": {f"{e:g}": float(gaps[round(e / 0.01)]) for e in (0.0, 0.5, 1.0, 2.0, 3.0)},
        "above_truth": bool(np.any(band > truth * (1 + 1e-12))),
        "seconds": time.monotonic() - began,
    }


def at_one_epsilon(name, runs, alpha):
    """The largest relative gap of a normal bound at one ε alone, for the best event."""
    from scipy.special import ndtri

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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=float, default=2e7)
    parser.add_argument("--alpha", type=float, default=0.001)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--cases", default="gaussian,laplace,discrete")
    parser.add_argument("--workers", type=int, default=1, help="seeds beside each other, each in a process")
    parser.add_argument("--max-time", type=float, default=600.0)
    arguments = parser.parse_args()
    tasks = [
        (name, int(arguments.runs), arguments.alpha, seed, arguments.max_time)
        for name in arguments.cases.split(",")
        for seed in range(arguments.seeds)
    ]
    with ProcessPoolExecutor(arguments.workers) as pool:
        found = list(pool.map(one, tasks))
    print(
        f"{int(arguments.runs):,} runs, confidence {1 - arguments.alpha:g}; gaps relative to δ, ε in [0, 3], δ ≥ 1e-4"
    )
    for name in arguments.cases.split(","):
        rows = [row for row in found if row["case"] == name]
        gaps, reach = ([row[key] for row in rows] for key in ("largest_gap", "within_2_percent_up_to"))
        each = ", ".join(f"{e}: {statistics.median(row['gap_at'][e] for row in rows):.2%}" for e in rows[0]["gap_at"])
        print(
            f"{name:9} largest gap {min(gaps):.2%} / {statistics.median(gaps):.2%} / {max(gaps):.2%} "
            f"(one ε alone, normal: {at_one_epsilon(name, arguments.runs, arguments.alpha):.2%}); within 2 % up to ε = "
            f"{min(reach):.2f} / {statistics.median(reach):.2f}; at ε {each}; above the truth "
            f"{sum(row['above_truth'] for row in rows)}/{len(rows)}; "
            f"{statistics.median(row['seconds'] for row in rows):.0f} s each",
            flush=True,
        )


if __name__ == "__main__":
    main()
