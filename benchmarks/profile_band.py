"""The gap between a profile's band and the closed form: `python benchmarks/profile_band.py [--seeds 8] [--workers 2]`.

The mechanism is Gaussian noise with μ = 1. The table has the largest relative gap (δ(ε) − band) / δ(ε) for ε in [0, 3]
where δ(ε) ≥ 10⁻⁴, the median gap at some ε, and the number of bands that lay above the truth anywhere. For comparison
it has the largest gap of a normal bound at one ε with the best event known, at the smaller of the variances of coupled
and of independent sides.
"""

import math
import statistics
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri

import dpwitness as dpw
from results import Table, finish, parser_of
from truth import gaussian_delta

#: The ε (nats) at which gaps are computed.
EPSILONS = np.arange(0.0, 3.0001, 0.01)
#: The smallest true δ(ε) at which a gap counts.
LEAST_DELTA = 1e-4
#: The ε (nats) of the table's columns.
SHOWN = (0.0, 0.5, 1.0, 2.0, 3.0)


#: The ε at which the mechanism has μ = 1 with its δ of 10⁻⁵.
EPSILON = math.sqrt(2 * math.log(1.25 / 1e-5))
#: The true δ(ε) at each of `EPSILONS`.
TRUTH = np.array([gaussian_delta(epsilon, mu=1.0) for epsilon in EPSILONS])


def gaps_of(seed, runs, alpha, max_time):
    """The relative gap of one band at each ε, and whether the band lies above the truth anywhere."""
    found = dpw.profile(
        "gaussian_mechanism",
        epsilon=EPSILON,
        delta=1e-5,
        runs=runs,
        alpha=alpha,
        seed=seed,
        workers=1,
        max_time=max_time,
    )
    band = found.delta(EPSILONS)
    gaps = np.where(TRUTH >= LEAST_DELTA, 1 - band / TRUTH, 0.0)
    return gaps, bool(np.any(band > TRUTH * (1 + 1e-12)))


def at_one_epsilon(runs, alpha):
    """The largest relative gap of a normal bound at one ε alone, for the best event: an output above ½ + ε."""
    p, q, s = ndtr(0.5 - EPSILONS), ndtr(-0.5 - EPSILONS), np.exp(EPSILONS)
    apart = p * (1 - p) + s**2 * q * (1 - q)
    coupled = p - q + (s - 1) ** 2 * q - (p - s * q) ** 2  # M(D′) in the event only where M(D) is
    spread = np.sqrt(np.minimum(apart, coupled) / runs)
    return float(np.max(np.where(TRUTH >= LEAST_DELTA, -ndtri(alpha) * spread / TRUTH, 0.0)))


def main() -> None:
    parser = parser_of(__doc__, seeds=8, workers=1)
    parser.add_argument("--runs", type=float, default=2e7)
    parser.add_argument("--alpha", type=float, default=0.001)
    parser.add_argument("--max-time", type=float, default=600.0)
    given = parser.parse_args()
    runs = int(given.runs)
    with ProcessPoolExecutor(given.workers) as pool:
        one = partial(gaps_of, runs=runs, alpha=given.alpha, max_time=given.max_time)
        found = list(pool.map(one, range(given.seeds)))
    largest = [gaps.max() for gaps, _ in found]
    table = Table("largest gap", "by a normal bound", *(f"ε = {e:g}" for e in SHOWN), "above the truth")
    table.add(
        f"{min(largest):.2%}, {statistics.median(largest):.2%}, {max(largest):.2%}",
        f"{at_one_epsilon(runs, given.alpha):.2%}",
        *(f"{statistics.median(gaps[round(e / 0.01)] for gaps, _ in found):.2%}" for e in SHOWN),
        sum(above for _, above in found),
    )
    text = f"{runs:,} paired runs, confidence {1 - given.alpha:g}; gaps of {given.seeds} seeds: least, median, largest."
    rows = [{"gaps": gaps.tolist(), "above_truth": above} for gaps, above in found]
    finish(given, "The band of a privacy profile", text, table, rows)


if __name__ == "__main__":
    main()
