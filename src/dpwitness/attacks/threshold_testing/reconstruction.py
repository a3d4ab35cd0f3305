"""Counts read off a histogram through private threshold testing: Algorithms 3 and 4 of Chen & Machanavajjhala (2015).

All difference queries x_u − x_v are compared with one noisy threshold. larger(v), the cells u whose difference to v is
answered ⊤, shrinks as x_v grows, so the cells fall into parts in the order of their counts. One noisy total a part
then gives each part's count; or, where it is known up to what count all counts occur, the parts' order does.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.oracle import Queries
from dpwitness.attacks.threshold_testing.questions import Counts
from dpwitness.attacks.threshold_testing.theory import attack_threshold
from dpwitness.errors import InvalidParameter

__all__ = ["Reconstruction", "ordered_partition", "reconstruct", "reconstruct_supported", "score"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reconstruction:
    """Guessed counts, and what the attack says of them without knowing the truth.

    Parameters
    ----------
    guess
        One count a cell, shape (cells,).
    known
        Which of them the attack claims to be right, shape (cells,); the others are guesses.
    factor
        1: counts as they are. None: the answers determine them up to a common whole factor only.
    factor_at_most
        Where the factor is unknown, its limit with confidence 0.95; None where there is none.
    confidence
        The expected fraction of right ones among the claimed counts. Where none is claimed: of all guesses, if all
        cells of each part have the same count.
    method
        "weighing", "noisy weighing", "partition and totals" or "partition".
    queries
        Threshold queries asked.
    """

    guess: Counts
    known: NDArray[np.bool_]
    factor: int | None = 1
    factor_at_most: float | None = None
    confidence: float
    method: str
    queries: int


def ordered_partition(oracle: Queries, *, copies: int = 1) -> NDArray[np.int64]:
    """Algorithm 3: the number, from 0, of each cell's part; shape (cells,).

    Two cells are in one part if their sets larger(·) are equal; parts are in descending order of these sets, that is,
    in ascending order of the counts. Without query noise the sets are nested, so their sizes say everything. With a
    finite ε₂ every comparison is the majority over `copies` copies (Theorem 3.5; a tie counts as ⊥); the sets are no
    longer nested, and their sizes are what is compared.
    """
    if not copies >= 1:
        raise InvalidParameter(f"copies={copies!r} must be at least 1")
    _, part = np.unique(-oracle.larger(copies), return_inverse=True)
    return part.ravel()


def reconstruct(oracle: Queries, *, copies: int = 1) -> Reconstruction:
    """Algorithm 4: threshold testing orders the cells, and the noisy total of each part gives its count.

    Where the oracle sells no totals, the number of its part is all that is guessed of a cell: a lower limit of its
    count if the noisy threshold is positive (Lemma 5.10).

    Parameters
    ----------
    oracle
        `paper_oracle` is one of the paper's.
    copies
        Of each query, whose majority counts.

    Raises `InvalidParameter` for copies out of range.
    """
    part = ordered_partition(oracle, copies=copies)
    size = np.bincount(part)
    total = oracle.totals(part)
    nothing = np.zeros(len(part), np.bool_)
    if total is None:
        return Reconstruction(
            guess=part, known=nothing, confidence=0.0, method="partition", queries=oracle.queries
        )  # fmt: skip
    guess = np.rint(total / size).astype(np.int64)[part]
    return Reconstruction(
        guess=guess, known=nothing, confidence=_right_totals(oracle, size), method="partition and totals",
        queries=oracle.queries,
    )  # fmt: skip


def _right_totals(oracle: Queries, size: NDArray[np.int64]) -> float:
    """The expected fraction of cells whose part's mean rounds to its count: noise Lap(1/ε) within half the part's size.

    0 where the ε of the totals is not known.
    """
    epsilon = oracle.noise.epsilon_totals
    return 0.0 if epsilon is None else float(np.average(1 - np.exp(-epsilon * size / 2), weights=size))


def reconstruct_supported(oracle: Queries, support: int, *, delta: float = 0.05, copies: int = 1) -> Reconstruction:
    """Algorithm 3's own attack: where all counts from 0 to k occur, the smallest parts are those of 0, 1 and so on.

    Theorem 5.12: with θ = α = ⌈ln(1/δ)/ε₁⌉ and k > 2α, part i is the cells of count i for all i ≤ k − 2α, with
    probability at least 1 − δ.

    Parameters
    ----------
    oracle
        Of a known ε₁ and of that θ.
    support
        k: every count from 0 to k occurs in the histogram.
    delta
        Between 0 and 1.
    copies
        As `reconstruct` takes them.

    Returns
    -------
    Reconstruction
        The parts' numbers as guesses, those up to k − 2α claimed.

    Raises `InvalidParameter` for an oracle of unknown ε₁ or another θ, for a δ out of range, and for k at most 2α.
    """
    if oracle.noise.epsilon1 is None:
        raise InvalidParameter("epsilon1 of the oracle is not known: the attack of Theorem 5.12 needs it")
    alpha = attack_threshold(oracle.noise.epsilon1, delta)
    if oracle.noise.threshold != alpha:
        raise InvalidParameter(
            f"threshold={oracle.noise.threshold:g} of the oracle must be ⌈ln(1/δ)/ε₁⌉ = {alpha} for δ = {delta:g}"
        )
    if not support > 2 * alpha:
        raise InvalidParameter(f"support={support} must exceed 2α = {2 * alpha}: below, Theorem 5.12 says nothing")
    part = ordered_partition(oracle, copies=copies)
    known = part <= support - 2 * alpha
    return Reconstruction(
        guess=part, known=known, confidence=1 - delta, method="partition", queries=oracle.queries
    )  # fmt: skip


def score(counts: Counts, guess: Counts, small: int = 5) -> tuple[float, float]:
    """The fraction of cells guessed right: of all, and of those that hold at most `small` (NaN if none does)."""
    right = counts == guess
    few = counts <= small
    return float(right.mean()), float(right[few].mean()) if few.any() else float("nan")
