"""What the adaptive threshold attack claims and guesses: on made-up histograms, and of systems that are not as stated.

    python benchmarks/threshold_testing_claims.py [--runs 20] [--table histograms kept broken] [--only NAME]

`histograms`: adaptive attack and Algorithm 4 of Chen & Machanavajjhala (2015) on systems of the same ε and the same
split of it. `kept`: what is claimed against what is right, of the user's own systems (no totals), with and without ε₁.
`broken`: the same where the system is not as stated. A claim is right where the count is the guess times one factor:
the one that the attack says, or where it says none a whole one, the same for all cells of a run.
"""

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np

from dpwitness.reconstruction.threshold_testing.attack import adaptive_attack, reconstruct
from dpwitness.reconstruction.threshold_testing.oracle import Noise, Queries, ThresholdOracle
from dpwitness.reconstruction.threshold_testing.theory import attack_threshold

EPSILONS = (1.0, 0.5, 0.1)
GOOD = 0.98


def histograms() -> dict[str, np.ndarray]:
    """Made-up histograms, by name."""
    rng = np.random.default_rng(2015)
    sparse = np.zeros(4096, np.int64)
    sparse[rng.permutation(4096)[:139]] = np.rint(np.exp(rng.normal(3, 1.5, 139)))
    spike, few_people = np.zeros(1024, np.int64), np.zeros(1024, np.int64)
    spike[300] = 10_000
    few_people[rng.permutation(1024)[:12]] = rng.integers(1, 60, 12)
    sixteens = 16 * rng.poisson(3, 150)
    return {
        "sparse": sparse,
        "heavy tail": np.floor(2 * rng.pareto(0.9, 1024)).astype(np.int64),
        "multiples of 16": 16 * rng.poisson(3, 1024),
        "multiples of 16, four others": np.concatenate([sixteens, [17, 35, 59, 101], np.zeros(800, np.int64)]),
        "multiples of 16, one other": np.concatenate([sixteens, [17], np.zeros(300, np.int64)]),
        "all even": 2 * np.floor(3 * rng.pareto(1.2, 1024)).astype(np.int64),
        "uniform": rng.integers(0, 101, 1024),
        "one spike": spike,
        "three different counts": rng.choice([0, 7, 40], 1024, p=[0.6, 0.3, 0.1]),
        "five different counts": rng.choice([0, 3, 5, 24, 100], 512),
        "twelve cells not empty": few_people,
        "all alike": np.full(1024, 9),
    }


def compared(name: str, counts: np.ndarray, epsilon: float, runs: int) -> str:
    """A line of the first table."""
    started = time.perf_counter()
    determined = 2 * counts <= counts.sum()
    rows, half = [], epsilon / 2
    for k in range(runs):
        oracle = ThresholdOracle(counts, np.random.default_rng([1, k]), epsilon1=half, epsilon_totals=half)
        found = adaptive_attack(oracle, np.random.default_rng([2, k]))
        paper = reconstruct(ThresholdOracle(
            counts, np.random.default_rng([3, k]), epsilon1=half, threshold=attack_threshold(half, 0.05),
            epsilon_totals=half,
        ))  # fmt: skip
        right = found.guess == counts
        rows.append((
            right[determined].mean(), right.mean(), (paper.guess == counts).mean(), found.known.sum(),
            (found.known & ~found.right_claims(counts)).sum(), found.confidence, found.queries / len(counts),
        ))  # fmt: skip
    mine, every, paper_right, claimed, wrong, sure, queries = np.array(rows).T
    said = float((claimed * sure).sum() / max(claimed.sum(), 1))
    return (
        f"| {name} | {epsilon:g} | {(mine >= GOOD).sum()} of {runs} | {mine.mean():.4f} ({mine.min():.4f}) "
        f"| {every.mean():.4f} | {paper_right.mean():.4f} | {claimed.sum() / runs / len(counts):.3f} "
        f"| {said:.4f} | {1 - wrong.sum() / max(claimed.sum(), 1):.4f} | {queries.mean():.1f} "
        f"| {(time.perf_counter() - started) / runs:.2f} |"
    )


System = Callable[[np.ndarray, np.random.Generator], Callable[[np.ndarray], np.ndarray]]


def shifted(counts: np.ndarray, rng: np.random.Generator, *, scale: float = 3.3) -> tuple[np.ndarray, float]:
    """Counts as numbers, and a noisy threshold."""
    return counts.astype(np.float64), float(rng.laplace(0.0, scale))


def as_stated(counts: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    x, z = shifted(counts, rng)
    return lambda q: q @ x >= z


def query_noise(scale: float) -> System:
    def system(counts: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
        x, z = shifted(counts, rng)
        return lambda q: q @ x + rng.laplace(0.0, scale, len(q)) >= z

    return system


def sticky_noise(scale: float) -> System:
    """The same question has the same noise."""

    def system(counts: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
        (x, z), keys = shifted(counts, rng), rng.normal(0.0, 1e3, len(counts))

        def answer(q: np.ndarray) -> np.ndarray:
            u = np.mod(q @ keys, 1.0) - 0.5
            return q @ x - scale * np.sign(u) * np.log1p(-2 * np.abs(u) * (1 - 1e-12)) >= z

        return answer

    return system


def flipped(share: float) -> System:
    def system(counts: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
        x, z = shifted(counts, rng)
        return lambda q: (q @ x >= z) ^ (rng.random(len(q)) < share)

    return system


def garbage(share: float) -> System:
    def system(counts: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
        x, z = shifted(counts, rng)
        return lambda q: np.where(rng.random(len(q)) < share, rng.random(len(q)) < 0.5, q @ x >= z)

    return system


def constant(counts: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    return lambda q: np.full(len(q), rng.random() < 2)


def offset(amount: float) -> System:
    def system(counts: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
        x, z = shifted(counts, rng)
        return lambda q: q @ x + amount >= z

    return system


def other_size(counts: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """The system leaves out the last tenth of the cells, and adds three of its own to every sum."""
    x, z = shifted(counts, rng)
    x[-max(1, len(x) // 10) :] = 0
    return lambda q: q @ x + 3 * counts.max() >= z


def fractions(counts: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """Cells are weighted, so that they hold no whole numbers."""
    x, z = shifted(counts, rng)
    x *= rng.uniform(0.5, 1.5, len(x))
    return lambda q: q @ x >= z


def moved(counts: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """The threshold is drawn anew after some hundred questions, and again."""
    x, z = shifted(counts, rng)
    state = {"asked": 0, "z": z, "next": 300}

    def answer(q: np.ndarray) -> np.ndarray:
        state["asked"] += len(q)
        if state["asked"] > state["next"]:
            state["z"], state["next"] = float(rng.laplace(0.0, 3.3)), 2 * state["next"]
        return q @ x >= state["z"]

    return answer


BROKEN: dict[str, tuple[System, dict[str, float]]] = {
    "noise of scale 0.2": (query_noise(0.2), {}),
    "noise of scale 2": (query_noise(2.0), {}),
    "sticky noise of scale 1": (sticky_noise(1.0), {}),
    "0.1 % flipped": (flipped(0.001), {}),
    "5 % flipped": (flipped(0.05), {}),
    "all flipped": (flipped(1.0), {}),
    "5 % garbage": (garbage(0.05), {}),
    "all garbage": (garbage(1.0), {}),
    "a constant": (constant, {}),
    "offset of 20": (offset(20.0), {"epsilon1": 0.3}),
    "other size": (other_size, {"epsilon1": 0.3}),
    "fractions of people": (fractions, {}),
    "threshold drawn anew": (moved, {}),
    "ε₁ a tenth of that stated": (as_stated, {"epsilon1": 3.0}),
    "ε₁ ten times that stated": (as_stated, {"epsilon1": 0.03}),
}
KEPT: dict[str, tuple[System, dict[str, float]]] = {
    "as stated, ε₁ unknown": (as_stated, {}),
    "as stated, ε₁ known": (as_stated, {"epsilon1": 0.3}),
}


def asked(answer: Callable[[np.ndarray], np.ndarray], cells: int, noise: Noise) -> Queries:
    """What the attack may ask."""
    return Queries(lambda questions: answer(np.array(list(questions), np.float64)), cells, noise)


def claims(name: str, system: System, stated: dict[str, float], runs: int) -> str:
    """A line of the second and third table: all histograms, each so many runs."""
    claimed = right = false_runs = runs_with = systems = 0
    said = 0.0
    for h, counts in enumerate(small_histograms()):
        for k in range(runs):
            answer = system(counts, np.random.default_rng([4, h, k]))
            oracle = asked(answer, len(counts), Noise(**stated))
            found = adaptive_attack(oracle, np.random.default_rng([5, h, k]))
            n, good = int(found.known.sum()), int(found.right_claims(counts).sum())
            claimed, right, said = claimed + n, right + good, said + n * found.confidence
            runs_with, false_runs, systems = runs_with + (n > 0), false_runs + (good < n), systems + 1
    return (
        f"| {name} | {systems} | {runs_with} | {false_runs} | {claimed} | {said / max(claimed, 1):.4f} "
        f"| {right / max(claimed, 1):.4f} |"
    )


def small_histograms() -> list[np.ndarray]:
    """Of about a hundred cells each."""
    rng = np.random.default_rng(16)
    heavy = np.floor(3 * rng.pareto(1.1, 90)).astype(np.int64)
    return [
        heavy,
        2 * heavy,
        16 * rng.poisson(3, 90),
        np.concatenate([16 * rng.poisson(3, 90), [17, 35, 59, 101]]),
        np.concatenate([16 * rng.poisson(3, 90), [17]]),
        rng.integers(0, 60, 80),
        rng.choice([0, 7, 40], 120, p=[0.5, 0.3, 0.2]),
        np.concatenate([np.zeros(60, np.int64), rng.integers(1, 60, 15)]),
    ]


TITLES = {
    "histograms": (
        "histogram", "ε", "≥ .98 right", "right of determined", "right of all", "Algorithm 4", "claimed", "said",
        "of these right", "queries a cell", "s",
    ),
    "kept": ("system", "runs", "with claims", "with a false one", "cells claimed", "said", "right"),
}  # fmt: skip


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--table", nargs="+", default=["histograms", "kept", "broken"])
    parser.add_argument("--only", default="", help="lines whose name has this")
    given = parser.parse_args()
    for table in given.table:
        titles = TITLES["histograms" if table == "histograms" else "kept"]
        print("\n| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|", flush=True)
        if table == "histograms":
            for name, counts in histograms().items():
                for epsilon in EPSILONS:
                    if given.only in name:
                        print(compared(name, counts, epsilon, given.runs), flush=True)
            continue
        for name, (system, stated) in (KEPT if table == "kept" else BROKEN).items():
            if given.only in name:
                print(claims(name, system, stated, given.runs), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
