"""Runs to a refutation, beside the least mean number of any test, or beside published sequential tests.

    python benchmarks/runs_to_refutation.py [--seeds 40] [CASE …]
    python benchmarks/runs_to_refutation.py --race [--seeds 1000] [--workers 2] [CASE …]

For a fixed pair with independent sides, laws P and Q of outcomes, and a claim of pure ε, every test of level α takes at
least log(1/α)/KL_inf paired runs in the mean, where KL_inf is the minimum of KL(P‖P′) + KL(Q‖Q′) over all pairs of laws
that the claim allows. The other columns are the confirm runs of a check on the event that its search found, with
evidence computed after each run and search runs not counted, and the runs that the best single event would take. The
limit ignores δ, with which it may be larger.

`--race`: the paired runs of a check that bets from the first run on (`search_runs=0`), all of them counted, on the
mechanisms NonDPLaplace1 and NonDPGaussian1 of González et al. (2025) and Kutta et al. (2026); D = (0), D′ = (0, 1).
"""

import math
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

import dpwitness as dpw
from dpwitness.evidence import growth_rate
from dpwitness.evidence.bet import bets_and_weights
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Runner
from dpwitness.search.epochs import EPOCH_DIVISOR, PairWealth
from results import Table, finish, parser_of

#: The laws of the outcomes of both sides, probabilities of the same cells, each of shape (k,).
Laws = tuple[np.ndarray, np.ndarray]
#: The number of runs drawn at once.
BLOCK = 16_384
#: The largest number of runs of a seed, in multiples of the least mean number of any test.
MOST = 20
#: The largest number of paired runs of the race.
RACE_RUNS = 5_000
#: The mean runs of Kutta et al. (2026), Table 1, by noise and claimed ε.
PUBLISHED = {("laplace", 0.01): 86.5, ("laplace", 0.1): 114.1, ("normal", 0.01): 59.1, ("normal", 0.1): 68.0}


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


@dataclass(frozen=True, kw_only=True)
class Case:
    """A mechanism that draws its own noise, a pair, the laws of both sides' outcomes, and a claim that fails."""

    mechanism: Callable[..., Any]
    pair: Pair
    laws: Laws
    claim: dpw.ApproxDP


def best_event(case: Case) -> float:
    """The growth rate of log wealth by the best event in either direction, in nats a run."""
    p, q = case.laws
    order = np.argsort(-np.log(p / q))
    ways = ((p, q, order), (q, p, order[::-1]))
    plane = case.claim.half_plane()
    return float(max(growth_rate(np.cumsum(a[way]), np.cumsum(b[way]), plane).max() for a, b, way in ways))


def noisy_mean(noise: str, epsilon: float) -> Callable[..., Any]:
    """The mechanism that releases the mean of a list with the list's true length in the scale of the noise."""

    def mechanism(rng, data, size):
        draws = rng.laplace(size=size) if noise == "laplace" else rng.standard_normal(size)
        return data.mean() + 2 / (len(data) * epsilon) * draws

    return mechanism


def with_own_generator(mechanism: Callable[..., Any], seed: int | None = None) -> Callable[..., Any]:
    """The mechanism with a generator of its own, so that the sides of a run are independent."""
    rng = np.random.default_rng(seed)
    return lambda data, size: mechanism(rng, data, size)


#: The pair of lists of the race.
LISTS = Pair(np.array([0.0]), np.array([0.0, 1.0]))


def claim_of(noise: str, epsilon: float) -> dpw.ApproxDP:
    """The claim of a noisy mean."""
    return dpw.ApproxDP(epsilon, 1e-5 if noise == "normal" else 0.0)


def mean_of_list(noise: str, epsilon: float) -> Case:
    edges = np.linspace(-60 / epsilon, 60 / epsilon, 160_001)
    law = {"laplace": stats.laplace, "normal": stats.norm}[noise]
    laws = _masses(edges, 0.0, 2 / epsilon, law), _masses(edges, 0.5, 1 / epsilon, law)
    mechanism = with_own_generator(noisy_mean(noise, epsilon))
    return Case(mechanism=mechanism, pair=LISTS, laws=laws, claim=claim_of(noise, epsilon))


def noisy_values(entries: int, epsilon: float) -> Case:
    """Several values with Laplace noise of scale 1, of which one moves by 1."""
    mechanism = with_own_generator(lambda rng, data, size: data + rng.laplace(size=(size, entries)))
    edges = np.linspace(-400, 401, 160_001)
    laws = _masses(edges, 0.0, 1.0), _masses(edges, 1.0, 1.0)
    pair = Pair(np.zeros(entries), np.eye(entries)[0])
    return Case(mechanism=mechanism, pair=pair, laws=laws, claim=dpw.ApproxDP(epsilon))


def _masses(edges: np.ndarray, at: float, scale: float, law: stats.rv_continuous = stats.laplace) -> np.ndarray:
    return np.maximum(np.diff(law.cdf(edges, at, scale)), 1e-300)


CASES: dict[str, Callable[[], Case]] = {
    **{f"{noise} mean, claim {claim:g}": partial(mean_of_list, noise, claim) for noise, claim in PUBLISHED},
    "ten Laplace, claim .5": partial(noisy_values, 10, 0.5),
    "ten Laplace, claim .8": partial(noisy_values, 10, 0.8),
    "histogram at .7": partial(noisy_values, 5, 0.7),
}


def runs_of(case: Case, seed: int, alpha: float, most: int) -> float:
    """Paired confirm runs until the claim is refuted, with evidence after each; infinite beyond `most`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = dpw.check(
            case.mechanism, claim=case.claim, neighbours=[(case.pair.data, case.pair.neighbour)], alpha=alpha,
            seed=seed, max_time=20.0, workers=1, bits=False,
        )  # fmt: skip
    witness = verdict.witness
    table, weights = bets_and_weights(case.claim, witness.estimate)
    logs = np.zeros(len(weights))
    for done in range(0, most, BLOCK):
        rows = (case.mechanism(side, BLOCK).reshape(BLOCK, -1) for side in (witness.pair.data, witness.pair.neighbour))
        a, b = (witness.event.contains(np.asarray(side, np.float64)) for side in rows)
        cells = np.where(a, np.where(b, 1, 0), np.where(b, 2, 3))  # (1,0), (1,1), (0,1) or (0,0)
        walked = logs + np.cumsum(table[cells], axis=0)
        reached = np.flatnonzero(np.logaddexp.reduce(walked + weights, axis=1) >= math.log(1 / alpha))
        if len(reached):
            return float(done + reached[0] + 1)
        logs = walked[-1]
    return math.inf


def beside_the_limit(names: list[str], given: Any) -> None:
    table = Table("case", "limit", "best event", "mean", "standard error", "mean / limit", "never")
    nats = math.log(1 / given.alpha)
    for name in names:
        case = CASES[name]()
        least, single = nats / limit(*case.laws, case.claim.epsilon), nats / best_event(case)
        taken = np.array([runs_of(case, seed, given.alpha, int(MOST * least)) for seed in range(given.seeds)])
        inside = taken[np.isfinite(taken)]
        mean, error = inside.mean(), inside.std() / math.sqrt(len(inside))
        numbers = (f"{number:.1f}" for number in (least, single, mean, error))
        table.add(name, *numbers, f"{mean / least:.2f}", len(taken) - len(inside))
    text = f"Paired runs to a refutation at α = {given.alpha}, {given.seeds} seeds; limit: the least mean of any test."
    finish(given, "Runs to a refutation", text, table)


def raced(noise: str, epsilon: float, coupled: bool, alpha: float, seed: int) -> int:
    """The paired runs of one check in epochs until the claim is refuted, or `RACE_RUNS`."""
    mechanism = noisy_mean(noise, epsilon)
    mechanism = mechanism if coupled else with_own_generator(mechanism, seed)
    found = as_mechanism(mechanism, LISTS.data, neighbour=LISTS.neighbour)
    runner = Runner(mechanism=found, seed=seed, workers=1)
    pair, claim = PairWealth(pair=LISTS, index=0), claim_of(noise, epsilon)
    while pair.wealth < math.log(1 / alpha) and pair.runs < RACE_RUNS:
        pair.advance(runner, claim, max(pair.runs // EPOCH_DIVISOR, 1), found.label)
    return pair.runs


def race(names: list[str], given: Any) -> None:
    table = Table("case", "Kutta et al.", "independent sides", "coupled sides", "not refuted")
    with ProcessPoolExecutor(given.workers) as pool:
        for (noise, epsilon), published in PUBLISHED.items():
            name = f"{noise} mean, claim {epsilon:g}"
            if name not in names:
                continue
            runs = [
                np.array(list(pool.map(partial(raced, noise, epsilon, coupled, given.alpha), range(given.seeds))))
                for coupled in (False, True)
            ]
            means = (f"{one.mean():.1f} ± {one.std(ddof=1) / math.sqrt(given.seeds):.1f}" for one in runs)
            table.add(name, published, *means, sum(int((one >= RACE_RUNS).sum()) for one in runs))
    text = f"Mean paired runs to a refutation and their standard error, α = {given.alpha}, {given.seeds} seeds."
    finish(given, "The race of sequential tests", text, table)


def main() -> None:
    parser = parser_of(__doc__, seeds=40, workers=1)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"parts of the names of {', '.join(CASES)}")
    parser.add_argument("--race", action="store_true")
    parser.add_argument("--alpha", type=float, default=0.05)
    given = parser.parse_args()
    names = [name for name in CASES if not given.cases or any(part in name for part in given.cases)]
    (race if given.race else beside_the_limit)(names, given)


if __name__ == "__main__":
    main()
