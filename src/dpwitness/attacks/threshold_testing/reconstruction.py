"""Counts read off a histogram through private threshold testing: Algorithms 3 and 4 of Chen & Machanavajjhala (2015).

All difference queries x_u − x_v are compared with one noisy threshold. larger(v), the cells u whose difference to v is
answered ⊤, shrinks as x_v grows, so the cells fall into parts in the order of their counts. One noisy total a part
then gives each part's count.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.oracle import Counts, check_histogram
from dpwitness.attacks.threshold_testing.theory import attack_threshold
from dpwitness.errors import InvalidParameter

__all__ = ["Reconstruction", "ordered_partition", "reconstruct", "score"]


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    """Guessed counts, one a cell, and how many threshold queries they took."""

    guess: Counts
    queries: int


def ordered_partition(
    counts: Counts,
    noisy_threshold: float,
    *,
    epsilon2: float = np.inf,
    copies: int = 1,
    rng: np.random.Generator | None = None,
) -> NDArray[np.int64]:
    """Algorithm 3 for a given noisy threshold: the number, from 0, of each cell's part; shape (cells,).

    Two cells are in one part if their sets larger(·) are equal; parts are in descending order of these sets, that is,
    in ascending order of the counts. Without query noise the sets are nested, so their sizes say everything, and the
    sizes follow from the sorted counts: O(k log k) for k² comparisons. With a finite `epsilon2` every comparison is the
    majority over `copies` copies (Theorem 3.5; a tie counts as ⊥); the sets are no longer nested, and their sizes are
    what is compared.
    """
    values, cells = np.unique(counts, return_inverse=True)
    number = np.bincount(cells)
    if epsilon2 == np.inf:
        # x_u − x_v ≥ z, compared as differences: both sides are exact in integers.
        behind = np.searchsorted(values, values + int(np.ceil(noisy_threshold)), side="left")
        sizes = np.concatenate([np.cumsum(number[::-1])[::-1], [0]])[behind][cells]
    else:
        if rng is None:
            raise ValueError("query noise needs a generator")
        sizes = _noisy_sizes(values, number, noisy_threshold, epsilon2, copies, rng, cells)
    _, part = np.unique(-sizes, return_inverse=True)
    return part


def _noisy_sizes(
    values: Counts,
    number: NDArray[np.int64],
    noisy_threshold: float,
    epsilon2: float,
    copies: int,
    rng: np.random.Generator,
    cells: NDArray[np.int64],
) -> NDArray[np.int64]:
    """|larger(v)| of every cell: each other cell counts with the probability that the majority of its copies is ⊤.

    The pairs of cells of given counts have that probability in common and are independent, so how many of them are
    larger is binomial: exact, and no pair need be stored.
    """
    from scipy.stats import binom

    sizes = np.zeros(len(cells), np.int64)
    for k, value in enumerate(values):
        x = epsilon2 * (values - value - noisy_threshold)
        tail = np.exp(-np.abs(x)) / 2
        majority = binom.sf(copies // 2, copies, np.where(x < 0, tail, 1 - tail))
        here = np.flatnonzero(cells == k)
        sizes[here] = rng.binomial(number, majority, size=(len(here), len(values))).sum(axis=1)
    return sizes


def reconstruct(
    counts: Counts,
    rng: np.random.Generator,
    *,
    epsilon: float,
    epsilon2: float = np.inf,
    delta: float = 0.05,
    threshold: float | None = None,
    copies: int = 1,
) -> Reconstruction:
    """Algorithm 4: half of ε orders the cells by threshold testing, half buys the noisy total of each part.

    Parameters
    ----------
    counts
        The histogram, shape (cells,).
    epsilon2
        ε₂ of the threshold testing; infinite as in the paper, or finite with the majority over `copies` copies.
    delta, threshold
        θ is `attack_threshold(epsilon / 2, delta)` unless `threshold` says another.

    Raises `InvalidData` for what is no histogram, `InvalidParameter` for ε, ε₂, δ or copies out of range.
    """
    x = check_histogram(counts)
    half = epsilon / 2
    theta = attack_threshold(half, delta) if threshold is None else threshold
    if not epsilon2 > 0:
        raise InvalidParameter(f"epsilon2={epsilon2!r} must be positive (inf: no noise on the queries)")
    if not copies >= 1:
        raise InvalidParameter(f"copies={copies!r} must be at least 1")
    noisy_threshold = theta + rng.laplace(0.0, 1 / half)
    part = ordered_partition(x, noisy_threshold, epsilon2=epsilon2, copies=copies, rng=rng)
    size = np.bincount(part)
    total = np.bincount(part, weights=x) + rng.laplace(0.0, 1 / half, len(size))
    guess = np.rint(total / size).astype(np.int64)
    return Reconstruction(guess[part], copies * len(x) ** 2)


def score(counts: Counts, guess: Counts, small: int = 5) -> tuple[float, float]:
    """The fraction of cells guessed right: of all, and of those that hold at most `small` (NaN if none does)."""
    right = counts == guess
    few = counts <= small
    return float(right.mean()), float(right[few].mean()) if few.any() else float("nan")
