"""Runs to refutation against the least that any test needs: `python benchmarks/runs_to_refutation.py [CASE …]`.

Of a fixed pair whose sides are independent, laws P and Q of their outcomes, and a claim of pure ε, every test of level
α takes at least log(1/α)/KL_inf paired runs in the mean, where KL_inf is the minimum of KL(P‖P′) + KL(Q‖Q′) over all
pairs of laws that the claim allows. Beside it stands what a check takes in confirm runs of the event that its search
found, looked at after each run, its search runs not counted; and what the best single event would take. Options:
--seeds N, --alpha A, --json FILE.
"""

import argparse
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

import dpwitness as dpw
from dpwitness.algorithms.noise_addition import histogram
from dpwitness.algorithms.randomized_response import randomized_response
from dpwitness.algorithms.sparse_vector import svt
from dpwitness.candidate import Estimate
from dpwitness.evidence import growth_rate
from dpwitness.evidence.bet import bets_and_weights
from dpwitness.exact import target_probability
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Role, Runner

Laws = tuple[np.ndarray, np.ndarray]
#: Runs that are drawn at once, and at most so many times the limit.
BLOCK = 16_384
MOST = 20


def limit(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """KL_inf in nats a run, of two laws over the same cells, shapes (k,), and a claim of pure ε.

    P′ = P/λ and Q′ = Q/(2 − λ) in cells where the claim allows both, else the two are mixed at the ratio e^ε that it
    just allows, whichever of them is larger; λ is such that P′ adds up to 1 (Lagrange's conditions, convex).
    """
    most = math.exp(epsilon)

    def nearest(share: float) -> Laws:
        first, second = p / share, q / (2 - share)
        above, below = first > most * second, second > most * first
        small = (p + q) / (share * most + 2 - share)
        large = (p + q) / (share + (2 - share) * most)
        first = np.where(above, most * small, np.where(below, large, first))
        second = np.where(above, small, np.where(below, most * large, second))
        return first, second

    share = brentq(lambda one: nearest(one)[0].sum() - nearest(one)[1].sum(), 1e-9, 2 - 1e-9, xtol=1e-14)
    first, second = nearest(share)
    return float(stats.entropy(p, first) + stats.entropy(q, second))  # both normalised again


def best_event(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """The growth of the best event, in either direction."""
    plane = dpw.PureDP(epsilon).half_plane()
    order = np.argsort(-np.log(p / q))
    ways = ((p, q, order), (q, p, order[::-1]))
    rates = [growth_rate(np.cumsum(a[way]), np.cumsum(b[way]), plane).max() for a, b, way in ways]
    return float(max(rates))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A mechanism, a pair, the laws of what tells its sides apart, and a claim that does not hold."""

    mechanism: Callable[..., Any]
    pair: Pair
    laws: Laws
    epsilon: float
    parameters: dict[str, float]


def _laplace(scale: float, at: float) -> np.ndarray:
    return np.maximum(np.diff(stats.laplace.cdf(np.linspace(-400, 401, 160_001), at, scale)), 1e-300)


def mean_of_list(epsilon: float) -> Callable[..., Any]:
    """The mean of a list with its true length in the scale of the noise."""

    def mechanism(rng, data, size):
        return data.mean() + 2 / (len(data) * epsilon) * rng.laplace(size=size)

    return mechanism


def ten_values(rng, data, size):
    """Ten values with Laplace noise of scale 1."""
    return data + rng.laplace(size=(size, 10))


def _means(epsilon: float) -> Case:
    scales = np.linspace(-60 / epsilon, 60 / epsilon, 160_001)
    laws = [
        np.maximum(np.diff(stats.laplace.cdf(scales, at, scale)), 1e-300)
        for at, scale in ((0.0, 2 / epsilon), (0.5, 1 / epsilon))
    ]
    return Case(mechanism=mean_of_list(epsilon), pair=Pair(np.array([0.0]), np.array([0.0, 1.0])),
                laws=(laws[0], laws[1]), epsilon=epsilon, parameters={})  # fmt: skip


def _shifted(mechanism: Any, pair: Pair, truth: float, claim: float, parameters: dict[str, float]) -> Case:
    laws = (_laplace(1.0, 0.0), _laplace(1.0, truth))
    return Case(mechanism=mechanism, pair=pair, laws=laws, epsilon=claim, parameters=parameters)


def _sparse(share: float) -> Case:
    answers = np.array([0.0] * 9 + [1.0]), np.array([1.0] * 9 + [-1.0])
    patterns = [*([0] * k + [1] for k in range(10)), [0] * 10]
    laws = [np.array([target_probability("svt", one, side, epsilon=0.1) for one in patterns]) for side in answers]
    truth = float(np.abs(np.log(laws[0] / laws[1])).max())
    return Case(mechanism=svt, pair=Pair(*answers), laws=(laws[0], laws[1]), epsilon=share * truth,
                parameters={"epsilon": 0.1})  # fmt: skip


def _responded(share: float) -> Case:
    truth = 1 / (1 + math.exp(-1.0))
    laws = np.array([truth, 1 - truth]), np.array([1 - truth, truth])
    return Case(mechanism=randomized_response, pair=Pair(np.array([1]), np.array([0])), laws=laws,
                epsilon=share, parameters={"epsilon": 1.0})  # fmt: skip


CASES: dict[str, Callable[[], Case]] = {
    "Laplace mean, claim .01": lambda: _means(0.01),
    "Laplace mean, claim .1": lambda: _means(0.1),
    "ten Laplace, claim .5": lambda: _shifted(ten_values, Pair(np.zeros(10), np.eye(10)[0]), 1.0, 0.5, {}),
    "ten Laplace, claim .8": lambda: _shifted(ten_values, Pair(np.zeros(10), np.eye(10)[0]), 1.0, 0.8, {}),
    "histogram at .7": lambda: _shifted(
        histogram, Pair(np.zeros(5, np.int64), np.eye(5, dtype=np.int64)[0]), 1.0, 0.7, {"epsilon": 1.0}
    ),
    "svt at .7": lambda: _sparse(0.7),
    "randomized response at .7": lambda: _responded(0.7),
}


def runs_of(case: Case, seed: int, alpha: float, most: int) -> float:
    """Paired confirm runs until the claim is refuted, looked at after each; infinite beyond `most`."""
    claim = dpw.PureDP(case.epsilon)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = dpw.check(
            case.mechanism, claim=claim, neighbours=[(case.pair.data, case.pair.neighbour)], alpha=alpha, seed=seed,
            parameters=case.parameters, runs=1_000, workers=1, bits=False,
        )  # fmt: skip
        mechanism = as_mechanism(
            case.mechanism, case.pair.data, parameters=case.parameters, neighbour=case.pair.neighbour
        )
    runner = Runner(mechanism=mechanism, seed=seed, workers=1)
    witness = verdict.witness
    estimate = Estimate(p=witness.estimate.p, q=witness.estimate.q)
    table, weights = bets_and_weights(claim, estimate)
    logs = np.zeros(len(weights))
    for block, done in enumerate(range(0, most, BLOCK)):
        rows = runner.sample(witness.pair, BLOCK, Role.CONFIRM, block, coupled=False)
        a, b = (witness.event.contains(side) for side in rows)
        walked = logs + np.cumsum(table[np.where(a, np.where(b, 1, 0), np.where(b, 2, 3))], axis=0)
        reached = np.flatnonzero(np.logaddexp.reduce(walked + weights, axis=1) >= math.log(1 / alpha))
        if len(reached):
            return float(done + reached[0] + 1)
        logs = walked[-1]
    return math.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"parts of the names of {', '.join(CASES)}")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    print(f"{'case':28s} {'limit':>9s} {'best event':>10s} {'mean':>9s} {'±':>6s} {'ratio':>6s}  never")
    for name, make in CASES.items():
        if given.cases and not any(part in name for part in given.cases):
            continue
        case = make()
        nats = math.log(1 / given.alpha)
        least, single = nats / limit(*case.laws, case.epsilon), nats / best_event(*case.laws, case.epsilon)
        taken = np.array([runs_of(case, seed, given.alpha, int(MOST * least)) for seed in range(given.seeds)])
        inside = taken[np.isfinite(taken)]
        mean, error = inside.mean(), inside.std() / math.sqrt(len(inside))
        rows.append({"case": name, "limit": least, "best_event": single, "mean": mean, "error": error,
                     "ratio": mean / least, "never": len(taken) - len(inside)})  # fmt: skip
        print(f"{name:28s} {least:9.1f} {single:10.1f} {mean:9.1f} {error:6.1f} {mean / least:6.2f} "
              f"{len(taken) - len(inside):6d}", flush=True)  # fmt: skip
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
