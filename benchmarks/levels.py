"""The levels of checks and lower bounds: false alarms against claims that hold.

    python benchmarks/levels.py [--seeds 1000] [--workers 16] [--roads search bound epochs targets] [--only CASE …]

Each mechanism of this file has exactly the claimed parameter on its worst pair of inputs, where a false alarm is most
likely; α = 0.05. Every seed is one check. "search" finds an event and confirms it on fresh runs; "bound" gives a lower
bound at confidence 0.95, and "epochs" bets from the first run on: these two take seconds a seed, and 200 seeds are
enough. "targets" checks the bundled targets that keep their claim at ε = 1, with a test of last bits: refutations by
last bits concern the floating-point implementation and are right where noise is drawn in double precision. The limit is
the number of false alarms that a test of level α exceeds in one series of a thousand. "with cells" is the number of
checks whose evidence was a table of cells.
"""

import math
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

import dpwitness as dpw
from dpwitness.mechanisms.catalog import load_registered, registered
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.targets import target_of
from results import Table, finish, most_false_alarms, parser_of
from truth import gaussian_delta

#: The level of each check.
ALPHA = 0.05
#: The number of seeds that a process checks before it reports.
SEEDS_A_TASK = 25
#: The beginnings of `true_epsilon` of targets that keep their claim at every setting.
KEEP = ("ε at δ", "below ε", "at most ε", "ρ = ε²/2")
#: The options of a check or a bound, by the name in --roads.
ROADS: dict[str, dict[str, int]] = {
    "search": {"search_runs": 4_000, "runs": 20_000},
    "bound": {"search_runs": 8_000, "runs": 20_000},
    "epochs": {"search_runs": 0, "runs": 200},
    "targets": {"runs": 20_000},
}
#: The probability of the true answer in randomised response of ε = 1.
TRUTH = math.e / (1 + math.e)
#: The two laws of the answers 0 and 1 in this randomised response, on the inputs 0 and 1.
RESPONSES = np.array([TRUTH, 1 - TRUTH]), np.array([1 - TRUTH, TRUTH])


def gaussian(rng, data, size):
    """N(0, 1) against N(1, 1): exactly 1-GDP, ½-zCDP and (α, α/2)-RDP for every α."""
    return data[0] + rng.standard_normal(size)


def laplace(rng, data, size):
    """Laplace noise: exactly 1-DP."""
    return data[0] + rng.laplace(size=size)


def responded(rng, data, size):
    """Randomised response: exactly 1-DP, with the divergences of one event."""
    return (rng.random(size) < TRUTH) == (data[0] == 1)


def geometric(rng, data, size):
    """Two-sided geometric noise: exactly 1-DP."""
    p = 1 - math.exp(-1)
    return data[0] + rng.geometric(p, size) - rng.geometric(p, size)


def several(rng, data, size):
    """Four values with N(0, 1) noise, two of which move by 1/√2: exactly 1-GDP."""
    noise = rng.standard_normal((size, 4))
    noise[:, :2] += data[0] / math.sqrt(2)
    return noise


#: Two laws of six outcomes, so far apart that cells show all of their divergences.
SIX = np.array([0.02, 0.08, 0.15, 0.2, 0.25, 0.3]), np.array([0.3, 0.25, 0.2, 0.15, 0.08, 0.02])


def six(rng, data, size):
    """One of six outcomes, by one of two laws."""
    return np.searchsorted(np.cumsum(SIX[int(data[0])])[:-1], rng.random(size)).astype(float)


def divergence(laws, order):
    """D_α of the second law from the first; both directions are equal, as the laws mirror each other."""
    p, q = laws[::-1]
    return float(logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1))


def largest_rho(laws):
    """The largest D_α/α of two laws that mirror each other, at the limit of α = 1 or on a fine grid of orders."""
    p, q = laws[::-1]
    return max(float(p @ np.log(p / q)), *(divergence(laws, a) / a for a in 1 + np.geomspace(1e-4, 200, 4_000)))


def trade_off(a):
    """The trade-off function of N(0, 1) against N(1, 1)."""
    return ndtr(-ndtri(a) - 1.0)


def profile():
    """The privacy profile of N(0, 1) against N(1, 1)."""
    return dpw.PrivacyProfile([(e, gaussian_delta(e, mu=1.0)) for e in np.linspace(0, 3, 13)])


def divergence_of_laplace(order):
    """D_α of Lap(1) against Lap(1) + 1 (Mironov 2017, Table II)."""
    a = order
    return math.log(a / (2 * a - 1) * math.exp(a - 1) + (a - 1) / (2 * a - 1) * math.exp(-a)) / (a - 1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A mechanism on the inputs 0 and 1, or a bundled target, and a claim that holds."""

    mechanism: Callable[..., Any] | str
    claim: Callable[[], Any] = lambda: dpw.PureDP(1.0)


def correct_targets() -> dict[str, Case]:
    """The bundled targets that keep their claim."""
    targets = {name: target_of(load_registered(name)) for name in registered()}
    true = {name: target.true_epsilon for name, target in targets.items() if target is not None}
    return {name: Case(mechanism=name) for name, one in true.items() if one == "ε" or one.startswith(KEEP)}


CASES = {
    "PureDP, randomised response": Case(mechanism=responded),
    "PureDP, Laplace": Case(mechanism=laplace),
    "PureDP, geometric": Case(mechanism=geometric),
    "ApproxDP, Gaussian": Case(mechanism=gaussian, claim=lambda: dpw.ApproxDP(1.0, gaussian_delta(1.0, mu=1.0))),
    "GaussianDP, Gaussian": Case(mechanism=gaussian, claim=lambda: dpw.GaussianDP(1.0)),
    "GaussianDP, four values": Case(mechanism=several, claim=lambda: dpw.GaussianDP(1.0)),
    "ZCDP, Gaussian": Case(mechanism=gaussian, claim=lambda: dpw.ZCDP(0.5)),
    "ZCDP, randomised response": Case(mechanism=responded, claim=lambda: dpw.ZCDP(largest_rho(RESPONSES))),
    "RenyiDP 2, Gaussian": Case(mechanism=gaussian, claim=lambda: dpw.RenyiDP(2.0, 1.0)),
    "RenyiDP 2, Laplace": Case(mechanism=laplace, claim=lambda: dpw.RenyiDP(2.0, divergence_of_laplace(2.0))),
    "RenyiDP 4, randomised response": Case(
        mechanism=responded, claim=lambda: dpw.RenyiDP(4.0, divergence(RESPONSES, 4.0))
    ),
    "ZCDP, six outcomes": Case(mechanism=six, claim=lambda: dpw.ZCDP(largest_rho(SIX))),
    "RenyiDP 2, six outcomes": Case(mechanism=six, claim=lambda: dpw.RenyiDP(2.0, divergence(SIX, 2.0))),
    "PrivacyProfile, Gaussian": Case(mechanism=gaussian, claim=profile),
    "TradeOff, Gaussian": Case(mechanism=gaussian, claim=lambda: dpw.TradeOff(trade_off)),
    **correct_targets(),
}


def outcomes(name: str, road: str, first: int, last: int) -> np.ndarray:
    """The numbers of false alarms, refutations by last bits, too high bounds and checks with cells; the seconds."""
    case, began = CASES[name], time.perf_counter()
    warnings.simplefilter("ignore")
    claim, mechanism, counts = case.claim(), case.mechanism, np.zeros(4)
    more: dict[str, Any] = {"epsilon": 1.0}
    if road != "targets":  # read once for all seeds
        more = {"claim": claim, "neighbours": [([0], [1])]}
        mechanism = as_mechanism(mechanism, np.array([0]), neighbour=np.array([1]))
    test: Callable[..., Any] = dpw.bound if road == "bound" else dpw.check
    for seed in range(first, last):
        verdict = test(mechanism, alpha=ALPHA, seed=seed, workers=1, **more, **ROADS[road])
        refuted, bits = isinstance(verdict, dpw.Violation), getattr(verdict, "floating_point", None) is not None
        by_bits = bits or (refuted and verdict.by_bits)
        above = road != "targets" and verdict.lower_bound > claim.parameter * (1 + 1e-9)
        counts += refuted and not by_bits, by_bits, above, bool(getattr(verdict.counts, "cells", ()))
    return np.append(counts, time.perf_counter() - began)


def main() -> None:
    parser = parser_of(__doc__, seeds=1_000, workers=1)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--roads", nargs="+", choices=ROADS, default=["search", "targets"])
    given = parser.parse_args()
    limit = most_false_alarms(given.seeds, ALPHA)
    titles = ("case", "road", "refuted", "by bits", "bound too high", "with cells", "ms a check", "within the limit")
    table = Table(*titles)
    chosen = [
        (name, road)
        for name in given.only
        for road in given.roads
        if (road == "targets") == isinstance(CASES[name].mechanism, str)
    ]
    starts = range(0, given.seeds, SEEDS_A_TASK)
    with ProcessPoolExecutor(given.workers) as pool:
        for name, road in chosen:
            tasks = [pool.submit(outcomes, name, road, one, min(one + SEEDS_A_TASK, given.seeds)) for one in starts]
            *counts, seconds = sum(task.result() for task in tasks)
            alarms, bits, above, cells = map(int, counts)
            within = "yes" if max(alarms, above) <= limit else "NO"
            table.add(name, road, alarms, bits, above, cells, f"{1e3 * seconds / given.seeds:.1f}", within)
    text = f"Of {given.seeds} seeds at α = {ALPHA}, at most {limit} may refute the claim or bound it above the truth."
    finish(given, "Levels", text, table)


if __name__ == "__main__":
    main()
