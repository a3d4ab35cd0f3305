"""Tables 2 and 3 of Chen & Machanavajjhala (2015): counts read off real histograms through private threshold testing.

    python benchmarks/threshold_testing_tables.py [--repeat 100] [--adaptive-repeat 20]

Prints the paper's figure, ours (mean ± standard error) and the adaptive attack's with its queries per cell; and both
attacks under query noise. The paper does not print θ; ours is that of δ = 0.05.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from dpwitness.files import read_column
from dpwitness.reconstruction.threshold_testing.attack import (
    Reconstruction,
    adaptive_attack,
    reconstruct,
    score,
)
from dpwitness.reconstruction.threshold_testing.oracle import ThresholdOracle
from dpwitness.reconstruction.threshold_testing.theory import attack_threshold

FILES = {
    "Adult": "adult_capital_loss.csv",
    "MedicalCost": "medical_cost.csv",
    "Income": "income.csv",
    "HEPTH": "hepth.csv",
}
EPSILONS = (1.0, 0.5, 0.1)
# The paper's means of 10 runs: all cells, and cells of at most 5.
PAPER = {
    "Adult": ((0.994, 0.999), (0.991, 0.997), (0.981, 0.992)),
    "MedicalCost": ((0.985, 1.0), (0.977, 1.0), (0.949, 0.960)),
    "Income": ((0.798, 1.0), (0.741, 1.0), (0.636, 0.979)),
    "HEPTH": ((0.904, 1.0), (0.795, 1.0), (0.477, 0.970)),
}
SPLITS = {"Lee & Clifton": 0.25, "Chen et al.": 0.5}

Attack = Callable[[np.random.Generator], Reconstruction]
DATA = Path(__file__).resolve().parents[1] / "data"


def repeated(counts: np.ndarray, attack: Attack, repeat: int, *key: int) -> tuple[np.ndarray, float]:
    """Scores (all, small) of each repetition, shape (repeat, 2), and the mean number of queries per cell."""
    found = [attack(np.random.default_rng([*key, k])) for k in range(repeat)]
    return np.array([score(counts, f.guess) for f in found]), float(np.mean([f.queries for f in found])) / len(counts)


def paper(
    counts: np.ndarray,
    rng: np.random.Generator,
    *,
    epsilon: float,
    delta: float = 0.05,
    epsilon2: float = np.inf,
    copies: int = 1,
) -> Reconstruction:
    """Algorithm 4 with halves of ε."""
    half = epsilon / 2
    theta = attack_threshold(half, delta)
    oracle = ThresholdOracle(
        counts, rng, epsilon1=half, epsilon2=epsilon2, threshold=theta, epsilon_totals=half
    )  # fmt: skip
    return reconstruct(oracle, copies=copies)


def adaptive(
    counts: np.ndarray, rng: np.random.Generator, *, epsilon1: float, epsilon2: float = np.inf
) -> Reconstruction:
    """The adaptive attack, all of ε for the threshold testing."""
    return adaptive_attack(ThresholdOracle(counts, rng, epsilon1=epsilon1, epsilon2=epsilon2), rng)


def shown(values: np.ndarray) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.4f} ± {error:.4f}"


def tables(data: dict[str, np.ndarray], repeat: int, repeat_adaptive: int) -> None:
    print(f"## Tables 2 and 3: {repeat} repetitions, δ = 0.05; adaptive: {repeat_adaptive} repetitions, ε₂ = ∞\n")
    print("| data | ε | paper: all | all | spread of a mean of 10 | adaptive: all | paper: ≤ 5 | ≤ 5 | adaptive: ≤ 5 "
          "| queries per cell, adaptive |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for i, (name, counts) in enumerate(data.items()):
        for j, epsilon in enumerate(EPSILONS):
            ours, _ = repeated(counts, partial(paper, counts, epsilon=epsilon), repeat, 1, i, j)
            best, cost = repeated(counts, partial(adaptive, counts, epsilon1=epsilon), repeat_adaptive, 2, i, j)
            printed = PAPER[name][j]
            spread = ours[:, 0].std(ddof=1) / np.sqrt(10)
            print(
                f"| {name} | {epsilon} | {printed[0]:.3f} | {shown(ours[:, 0])} | ±{spread:.4f} | {shown(best[:, 0])} "
                f"| {printed[1]:.3f} | {shown(ours[:, 1])} | {shown(best[:, 1])} | {cost:.2f} |",
                flush=True,
            )


def query_noise(data: dict[str, np.ndarray], repeat: int) -> None:
    print(f"\n## Finite ε₂, adaptive (ε₁ + ε₂ = ε): {repeat} repetitions\n")
    print("| data | split | ε | ε₂ | all | least | queries per cell |")
    print("|---|---|---|---|---|---|---|")
    for i, (name, counts) in enumerate(data.items()):
        for m, (split, share) in enumerate(SPLITS.items()):
            for j, epsilon in enumerate(EPSILONS):
                one, two = share * epsilon, (1 - share) * epsilon
                found, cost = repeated(
                    counts,
                    partial(adaptive, counts, epsilon1=one, epsilon2=two),
                    repeat, 5, i, m, j,
                )  # fmt: skip
                print(
                    f"| {name} | {split} | {epsilon} | {two:g} | {shown(found[:, 0])} | {found[:, 0].min():.4f} "
                    f"| {cost:.3g} |",
                    flush=True,
                )
    copies = (1, 11, 101, 1001, 10_001, 100_001, 1_000_001, 10_000_001)
    print("\n## Finite ε₂, Algorithms 3 and 4 with the majority over t copies (Theorem 3.5), ε = 1: all cells right\n")
    print("| data | split | " + " | ".join(f"t = {t:g}" for t in copies) + " |")
    print("|---" * (2 + len(copies)) + "|")
    for i, (name, counts) in enumerate(data.items()):
        for m, (split, share) in enumerate(SPLITS.items()):
            # Half of ε is spent on the totals, as in Algorithm 4; the split is that of the other half.
            two = (1 - share) / share / 2
            cells = []
            for k, t in enumerate(copies):
                found, _ = repeated(
                    counts,
                    partial(paper, counts, epsilon=1.0, epsilon2=two, copies=t),
                    min(repeat, 3), 6, i, m, k,
                )  # fmt: skip
                cells.append(f"{found[:, 0].mean():.3f}")
            print(f"| {name} | {split} | " + " | ".join(cells) + " |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=100)
    parser.add_argument("--adaptive-repeat", type=int, default=20)
    given = parser.parse_args()
    data = {name: read_column(DATA / file) for name, file in FILES.items()}
    tables(data, given.repeat, given.adaptive_repeat)
    query_noise(data, max(given.adaptive_repeat // 4, 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
