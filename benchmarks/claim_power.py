"""How many runs it takes to refute a claim of each kind, against the best that any event and half-plane could do.

    python benchmarks/claim_power.py [--seeds 200] [--workers 16] [--json FILE] [KIND …]

Six cases for each kind of claim: three laws, claims of 0.5 and 0.8 of the largest parameter that an event shows. Every
seed searches, as `check` does; the event and the estimate that it finds are then bet on in fresh paired runs of
independent sides, looked at after each run, until the claim is refuted. The median of these runs stands beside
log(1/α)/KL*, where KL* is the growth rate of the best event and half-plane for the true probabilities. Where the search
chooses cells, the ratio may be below 1: no event is as good. α = 10⁻⁶; `--alpha` says another.
"""

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import dpwitness as dpw
from dpwitness.claims.regions import CurvedClaim, boundary_of
from dpwitness.evidence import growth_rate, runs_needed
from dpwitness.evidence.bet import OnCells, bets_and_weights
from dpwitness.mechanisms.resolve import as_mechanism

#: Seeds of one task of a process.
CHUNK = 10
#: Runs that are drawn at once.
BLOCK = 4_096
DELTA = 0.01
SEARCH_RUNS = 100_000
#: Runs are counted up to so many times log(1/α)/KL*.
MOST = 6.0
FRACTIONS = (0.5, 0.8)
#: δ at these ε make a privacy profile.
EPSILONS = np.linspace(0, 2, 9)


@dataclass(frozen=True, kw_only=True)
class Law:
    """A mechanism of one parameter, and P and Q of a family of events that holds the best one.

    `rates` gives both as arrays of one shape, for a parameter; they are those of outcomes above a threshold.
    """

    mechanism: Callable[..., Any]
    rates: Callable[[float], tuple[Any, Any]]
    parameter: float = 1.0


def gaussian(rng, data, size):
    """N(0, 1) against N(1, 1)."""
    return data[0] + rng.standard_normal(size)


def laplace(rng, data, size):
    """Lap(1) against Lap(1) + 1."""
    return data[0] + rng.laplace(size=size)


def geometric(rng, data, size):
    """Two-sided geometric noise, ε = 1."""
    p = 1 - math.exp(-1)
    return data[0] + rng.geometric(p, size) - rng.geometric(p, size)


def responded(rng, data, size):
    """Randomised response, ε = 1."""
    return (rng.random(size) < 1 / (1 + math.exp(-1))) == (data[0] == 1)


def _gaussian(mu):
    at = np.linspace(-5, 6, 1_101)
    return stats.norm.sf(at - mu), stats.norm.sf(at)


def _laplace(epsilon):
    at = np.linspace(-12, 13, 1_251)
    return stats.laplace.sf(at - epsilon), stats.laplace.sf(at)


def _geometric(epsilon):
    at = np.arange(-12, 14)
    return stats.dlaplace.sf(at - 2, epsilon), stats.dlaplace.sf(at - 1, epsilon)  # at and above, D moved by 1


def _responded(epsilon):
    t = 1 / (1 + math.exp(-epsilon))
    return np.array([t]), np.array([1 - t])


GAUSSIAN = Law(mechanism=gaussian, rates=_gaussian)
LAPLACE = Law(mechanism=laplace, rates=_laplace)
GEOMETRIC = Law(mechanism=geometric, rates=_geometric)
RESPONDED = Law(mechanism=responded, rates=_responded)


def _of_family(claim: Any) -> Callable[[Law, float], Any]:
    """The member of a claim's family at a share of the largest parameter that an event of a law shows."""
    return lambda law, share: claim.at(share * float(np.max(claim.reached(*law.rates(law.parameter)))))


def _profile(law: Law, share: float) -> Any:
    """The privacy profile of the law with a smaller parameter."""
    p, q = law.rates(share * law.parameter)
    return dpw.PrivacyProfile([(e, float(max(np.max(p - math.exp(e) * q), 0.0))) for e in EPSILONS])


def _trade_off(law: Law, share: float) -> Any:
    """The trade-off function of the law with a smaller parameter."""
    p, q = law.rates(share * law.parameter)
    order = np.argsort(q)[:: max(len(q) // 60, 1)]
    inside = [(float(q[k]), float(1 - p[k])) for k in order if 1e-9 < q[k] < 1 - 1e-9]
    return dpw.TradeOff(_convex([(0.0, 1.0), *inside, (1.0, 0.0)]))


def _convex(points):
    """The lower convex hull of points in the order of their first numbers."""
    hull: list[tuple[float, float]] = []
    for point in points:
        while len(hull) > 1 and _turn(hull[-2], hull[-1], point) <= 1e-15:
            hull.pop()
        hull.append(point)
    return hull


def _turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


KINDS: dict[str, tuple[tuple[Law, ...], Callable[[Law, float], Any]]] = {
    "PureDP": ((LAPLACE, GEOMETRIC, RESPONDED), _of_family(dpw.PureDP(0.0))),
    "ApproxDP": ((GAUSSIAN, LAPLACE, RESPONDED), _of_family(dpw.ApproxDP(0.0, DELTA))),
    "GaussianDP": ((GAUSSIAN, LAPLACE, RESPONDED), _of_family(dpw.GaussianDP(0.0))),
    "ZCDP": ((GAUSSIAN, LAPLACE, RESPONDED), _of_family(dpw.ZCDP(0.0))),
    "RenyiDP": ((GAUSSIAN, LAPLACE, RESPONDED), _of_family(dpw.RenyiDP(2.0, 0.0))),
    "PrivacyProfile": ((GAUSSIAN, LAPLACE, RESPONDED), _profile),
    "TradeOff": ((GAUSSIAN, LAPLACE, RESPONDED), _trade_off),
}


def best_rate(claim: Any, law: Law) -> float:
    """KL*: the growth rate of the best event and half-plane, of independent sides."""
    p, q = law.rates(law.parameter)
    if not isinstance(claim, CurvedClaim):
        return float(np.max(growth_rate(p, q, claim.half_plane(p, q))))
    planes = boundary_of(claim).planes
    return max(float(growth_rate(x, y, planes).max()) for x, y in zip(p, q, strict=True) if 0 < y < x < 1)


def runs_to_refutation(claim: Any, witness: Any, mechanism: Any, seed: int, most: int, alpha: float) -> float:
    """Paired runs of independent sides until the event of a witness refutes the claim; infinite beyond `most`."""
    rng, event, estimate = np.random.default_rng((seed, 1)), witness.event, witness.estimate
    pair = witness.pair
    logs = np.zeros(1)
    for done in range(0, most, BLOCK):
        x, y = (mechanism_rows(mechanism, rng, side, BLOCK) for side in (pair.data, pair.neighbour))
        if estimate.cells is not None and getattr(event, "cell_of", None):
            k = len(estimate.cells.log_ratios)
            pairs = event.cell_of(x) * k + event.cell_of(y)
            steps, weights = OnCells(claim, independent(estimate.cells)).gains(claim, pairs)
        else:
            table, weights = bets_and_weights(claim, replace(estimate, both=None, cells=None))
            a, b = event.contains(x), event.contains(y)
            steps = table[np.where(a, np.where(b, 1, 0), np.where(b, 2, 3))]
        walked = logs + np.cumsum(steps, axis=0)
        wealth = np.logaddexp.reduce(walked + weights, axis=1)
        reached = np.flatnonzero(wealth >= math.log(1 / alpha))
        if len(reached):
            return float(done + reached[0] + 1)
        logs = walked[-1]
    return math.inf


def independent(cells: Any) -> Any:
    """The same estimate for sides that do not hang together."""
    k = len(cells.log_ratios)
    joint = np.array(cells.joint).reshape(k, k)
    law = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return replace(cells, joint=tuple((law / law.sum()).ravel().tolist()))


def mechanism_rows(mechanism: Callable[..., Any], rng: np.random.Generator, data: Any, size: int) -> Any:
    """Outcomes as rows of numbers, flags as events see them."""
    from dpwitness.events.encoding import array_rows

    return array_rows(np.asarray(mechanism(rng, data, size)).reshape(size, 1))


def outcomes(task: tuple[str, int, float, float, int, int]) -> tuple[list[float], int, float]:
    """Runs to refutation of the seeds of a task, how many bet on cells, and seconds."""
    kind, place, share, alpha, first, last = task
    laws, claimed = KINDS[kind]
    law, began = laws[place], time.perf_counter()
    claim = claimed(law, share)
    needed = math.log(1 / alpha) / best_rate(claim, law)
    # So few confirm runs that none of them refutes: they are not what is measured, and a refutation is questioned.
    few = runs_needed(claim, alpha)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanism = as_mechanism(law.mechanism, np.array([0]), neighbour=np.array([1]))
    taken, cells = [], 0
    for seed in range(first, last):
        verdict = dpw.check(
            mechanism, claim=claim, neighbours=[([0], [1])], alpha=alpha, seed=seed, workers=1,
            search_runs=SEARCH_RUNS, runs=few,
        )  # fmt: skip
        witness = verdict.witness
        taken.append(runs_to_refutation(claim, witness, law.mechanism, seed, int(MOST * needed) + 1, alpha))
        cells += witness.estimate.cells is not None
    return taken, cells, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all of them")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--alpha", type=float, default=1e-6)
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    rows = []
    print(f"{'claim':38s} {'law':10s} {'needed':>9s} {'median':>9s} {'ratio':>6s}  never  cells  ms a seed")
    with ProcessPoolExecutor(given.workers) as pool:
        tasks = {
            (kind, place, share): [
                pool.submit(outcomes, (kind, place, share, given.alpha, first, min(first + CHUNK, given.seeds)))
                for first in range(0, given.seeds, CHUNK)
            ]
            for kind, (laws, _) in KINDS.items()
            if not given.kinds or kind in given.kinds
            for place in range(len(laws))
            for share in FRACTIONS
        }
        for (kind, place, share), parts in tasks.items():
            law = KINDS[kind][0][place]
            claim = KINDS[kind][1](law, share)
            needed = math.log(1 / given.alpha) / best_rate(claim, law)
            done = [part.result() for part in parts]
            taken = np.array([runs for part in done for runs in part[0]])
            cells, seconds = sum(part[1] for part in done), sum(part[2] for part in done)
            ratio = float(np.median(taken)) / needed
            rows.append(
                {
                    "kind": kind, "law": law.mechanism.__name__, "share": share, "alpha": given.alpha,
                    "seeds": given.seeds, "needed": needed, "median": float(np.median(taken)), "ratio": ratio,
                    "never": int(np.isinf(taken).sum()), "cells": cells, "seconds": seconds,
                }
            )  # fmt: skip
            print(
                f"{f'{kind} at {share:g} of what an event shows':38s} {law.mechanism.__name__:10s} {needed:9.0f}"
                f" {np.median(taken):9.0f} {ratio:6.2f}  {np.isinf(taken).sum():5d}  {cells:5d}"
                f"  {1e3 * seconds / given.seeds:8.1f}{'' if ratio <= 1.2 else '  ABOVE 1.2'}",
                flush=True,
            )
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
