"""Runs to refutation against the least that any test needs: `python benchmarks/runs_to_refutation.py [CASE …]`.

For a fixed pair with independent sides, laws P and Q of outcomes, and a claim of pure ε, every test of level α takes at
least log(1/α)/KL_inf paired runs in the mean, where KL_inf is the minimum of KL(P‖P′) + KL(Q‖Q′) over all pairs of laws
that the claim allows. The other columns are the confirm runs of a check on the event that its search found, with
evidence computed after each run and search runs not counted, and the runs that the best single event would take. The
limit ignores δ, with which it may be larger.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

import dpwitness as dpw
from dpwitness.events import Event
from dpwitness.evidence import growth_rate
from dpwitness.evidence.bet import bets_and_weights
from dpwitness.neighbours import Pair
from results import Table, finish, parser_of
from truth import target_probability

Laws = tuple[np.ndarray, np.ndarray]
#: The number of runs drawn at once.
BLOCK = 16_384
#: The largest number of runs, in multiples of the limit.
MOST = 20


def limit(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """KL_inf in nats a run, of two laws over the same cells, shapes (k,), and a claim of pure ε.

    P′ = P/λ and Q′ = Q/(2 − λ) in cells where the claim allows both; in other cells P′ and Q′ have the largest allowed
    ratio, e^ε. λ makes P′ add up to 1 (Lagrange's conditions, convex).
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


def best_event(case: "Case") -> float:
    """The growth of the best event in either direction, in nats a run."""
    (p, q), plane = case.laws, dpw.ApproxDP(case.epsilon, case.delta).half_plane()
    order = np.argsort(-np.log(p / q))
    ways = ((p, q, order), (q, p, order[::-1]))
    rates = [growth_rate(np.cumsum(a[way]), np.cumsum(b[way]), plane).max() for a, b, way in ways]
    return float(max(rates))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A mechanism that draws its own noise, a pair, the laws of both sides' outcomes, and a claim that fails."""

    mechanism: Callable[..., Any]
    pair: Pair
    laws: Laws
    epsilon: float
    delta: float = 0.0


def mean_of_list(epsilon: float, noise: str = "laplace", delta: float = 0.0) -> Case:
    """The mean of a list with its true length in the scale of the noise."""
    rng, law = np.random.default_rng(), {"laplace": stats.laplace, "normal": stats.norm}[noise]

    def mechanism(data, size):
        return data.mean() + 2 / (len(data) * epsilon) * getattr(rng, noise)(size=size)

    edges = np.linspace(-60 / epsilon, 60 / epsilon, 160_001)
    laws = _masses(edges, 0.0, 2 / epsilon, law), _masses(edges, 0.5, 1 / epsilon, law)
    pair = Pair(np.array([0.0]), np.array([0.0, 1.0]))
    return Case(mechanism=mechanism, pair=pair, laws=laws, epsilon=epsilon, delta=delta)


def noisy_values(entries: int, claim: float) -> Case:
    """Several values with Laplace noise of scale 1, of which one moves by 1."""
    rng = np.random.default_rng()

    def mechanism(data, size):
        return data + rng.laplace(size=(size, entries))

    edges = np.linspace(-400, 401, 160_001)
    pair = Pair(np.zeros(entries), np.eye(entries)[0])
    return Case(
        mechanism=mechanism, pair=pair, laws=(_masses(edges, 0.0, 1.0), _masses(edges, 1.0, 1.0)), epsilon=claim
    )


def _masses(edges: np.ndarray, at: float, scale: float, law: stats.rv_continuous = stats.laplace) -> np.ndarray:
    return np.maximum(np.diff(law.cdf(edges, at, scale)), 1e-300)


def by_law(laws: Laws, epsilon: float) -> Case:
    """The number of an outcome, drawn by its law: 0 on D, 1 on D′."""
    rng, ends = np.random.default_rng(), [np.cumsum(law)[:-1] for law in laws]

    def mechanism(data, size):
        return np.searchsorted(ends[int(data[0])], rng.random(size))

    return Case(mechanism=mechanism, pair=Pair(np.array([0]), np.array([1])), laws=laws, epsilon=epsilon)


def sparse_vector(share: float) -> Case:
    """The outcomes of `svt` at ε = 0.1 on its worst ten answers, by the place of the first ⊤, if any."""
    answers = np.array([0.0] * 9 + [1.0]), np.array([1.0] * 9 + [-1.0])
    patterns = [*([0] * k + [1] for k in range(10)), [0] * 10]
    first, second = (
        np.array([target_probability("svt", one, side, epsilon=0.1) for one in patterns]) for side in answers
    )
    return by_law((first, second), share * float(np.abs(np.log(first / second)).max()))


def responded(share: float) -> Case:
    """Randomised response at ε = 1."""
    truth = 1 / (1 + math.exp(-1.0))
    return by_law((np.array([truth, 1 - truth]), np.array([1 - truth, truth])), share)


CASES: dict[str, Callable[[], Case]] = {
    "Laplace mean, claim .01": lambda: mean_of_list(0.01),
    "Laplace mean, claim .1": lambda: mean_of_list(0.1),
    "Gaussian mean, claim .01": lambda: mean_of_list(0.01, "normal", 1e-5),
    "Gaussian mean, claim .1": lambda: mean_of_list(0.1, "normal", 1e-5),
    "ten Laplace, claim .5": lambda: noisy_values(10, 0.5),
    "ten Laplace, claim .8": lambda: noisy_values(10, 0.8),
    "histogram at .7": lambda: noisy_values(5, 0.7),
    "svt at .7": lambda: sparse_vector(0.7),
    "randomized response at .7": lambda: responded(0.7),
}


def place(event: Event, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where paired runs fall: in (1,0), (1,1), (0,1) or (0,0), by 0 to 3; shape (n,)."""
    a, b = event.contains(x), event.contains(y)
    return np.where(a, np.where(b, 1, 0), np.where(b, 2, 3))


def runs_of(case: Case, seed: int, alpha: float, most: int) -> float:
    """Paired confirm runs until the claim is refuted, with evidence after each; infinite beyond `most`."""
    claim = dpw.ApproxDP(case.epsilon, case.delta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = dpw.check(
            case.mechanism, claim=claim, neighbours=[(case.pair.data, case.pair.neighbour)], alpha=alpha, seed=seed,
            max_time=20.0, workers=1, bits=False,
        )  # fmt: skip
    witness = verdict.witness
    table, weights = bets_and_weights(claim, witness.estimate)
    logs = np.zeros(len(weights))
    for done in range(0, most, BLOCK):
        rows = (case.mechanism(side, BLOCK).reshape(BLOCK, -1) for side in (witness.pair.data, witness.pair.neighbour))
        seen = place(witness.event, *(np.asarray(side, np.float64) for side in rows))
        walked = logs + np.cumsum(table[seen], axis=0)
        reached = np.flatnonzero(np.logaddexp.reduce(walked + weights, axis=1) >= math.log(1 / alpha))
        if len(reached):
            return float(done + reached[0] + 1)
        logs = walked[-1]
    return math.inf


def main() -> None:
    parser = parser_of(__doc__, seeds=40)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"parts of the names of {', '.join(CASES)}")
    parser.add_argument("--alpha", type=float, default=0.05)
    given = parser.parse_args()
    table = Table("case", "limit", "best event", "mean", "standard error", "mean / limit", "never")
    for name, make in CASES.items():
        if given.cases and not any(part in name for part in given.cases):
            continue
        case = make()
        nats = math.log(1 / given.alpha)
        least, single = nats / limit(*case.laws, case.epsilon), nats / best_event(case)
        most = int(MOST * least)
        taken = np.array([runs_of(case, seed, given.alpha, most) for seed in range(given.seeds)])
        inside = taken[np.isfinite(taken)]
        mean, error = inside.mean(), inside.std() / math.sqrt(len(inside))
        numbers = (f"{number:.1f}" for number in (least, single, mean, error))
        table.add(name, *numbers, f"{mean / least:.2f}", len(taken) - len(inside))
    text = f"Paired runs to a refutation at α = {given.alpha}, {given.seeds} seeds; limit: the least mean of any test."
    finish(given, "Runs to a refutation", text, table)


if __name__ == "__main__":
    main()
