"""Attacks on private threshold testing: the ordered partition and the adaptive attack, and the counts that they claim.

Algorithm 3 of Chen & Machanavajjhala (2015) asks all differences x_u − x_v under one noisy threshold. The set larger(v)
of the cells u whose difference to v is answered ⊤ shrinks as x_v grows, so equal sets give parts of cells in the order
of counts. Algorithm 4 asks for a noisy total for each part, which gives its count; if all counts up to a known k occur,
the order of the parts gives their counts (Theorem 5.12).

The adaptive attack asks signed sums of cells, chosen by the answers so far, and finds counts up to a common factor
(`relative_counts`).
"""

import numpy as np

from dpwitness.arrays import Booleans
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.report import Finding
from dpwitness.reconstruction.threshold_testing.comparison import noise_free_comparisons
from dpwitness.reconstruction.threshold_testing.oracle import CellCounts, CellIntegers, QueryAccess
from dpwitness.reconstruction.threshold_testing.relative_counts import find_relative_counts
from dpwitness.reconstruction.threshold_testing.theory import attack_threshold


def ordered_partition(oracle: QueryAccess, *, copies: int = 1) -> tuple[CellIntegers, CellIntegers | None]:
    """Algorithm 3: the number of each cell's part, from 0, and the number of nested sets larger(·) that hold the cell.

    Both have shape (cells,). larger(v) holds the cells u for which the majority of `copies` copies of x_u − x_v is ⊤
    (Theorem 3.5; a tie counts as ⊥): cells² questions, x_v − x_v included, the questions for one v at once. Two cells
    are in one part if their sets larger(·) are equal; parts are in descending order of these sets, that is, in
    ascending order of the counts. Without query noise the sets are nested, so their sizes determine them. With a finite
    ε₂ they may not be nested, and only their sizes are compared. The second value is None unless the sets are nested.
    """
    if not copies >= 1:
        raise InvalidParameter(f"copies={copies!r} must be at least 1")
    cells = np.arange(oracle.cells)
    sizes, inside = np.zeros_like(cells), np.zeros_like(cells)
    for v in cells:
        signs = np.zeros(oracle.cells, np.int8)
        signs[v] = -1
        (tops,) = oracle.ask_changes([(signs, cells, 1)], copies)
        larger = 2 * tops > copies
        sizes[v] = np.count_nonzero(larger)
        inside += larger
    _, part = np.unique(-sizes, return_inverse=True)
    # Sets of given sizes are nested exactly if each cell is in this number of sets (Gale & Ryser 1957).
    in_nested = np.searchsorted(np.sort(-sizes), -cells, side="left")
    nested = np.array_equal(np.sort(inside), in_nested[::-1])
    return part.ravel(), inside if nested else None


def reconstruct(oracle: QueryAccess, *, copies: int = 1) -> Finding:
    """Algorithm 4: the ordered partition gives parts of cells, and the noisy total of each part gives its count.

    Where the oracle gives no totals, the guess of a cell is the number of its part: a lower limit of its count if the
    noisy threshold is positive (Lemma 5.10). Nothing is claimed: cells of different counts may be in one part. Raises
    `InvalidParameter` for copies out of range.
    """
    guess, _ = ordered_partition(oracle, copies=copies)
    if oracle.totals is not None:
        guess = np.rint(oracle.totals(guess) / np.bincount(guess)).astype(np.int64)[guess]
    return Finding(guess=guess, probability=np.zeros(len(guess)))


def reconstruct_supported(oracle: QueryAccess, support: int, *, delta: float = 0.05, copies: int = 1) -> Finding:
    """Algorithm 3 without totals: where all counts from 0 to k occur, part i holds the cells of count i, up to a limit.

    Theorem 5.12: with θ = α = ⌈ln(1/δ)/ε₁⌉ and k > 2α this holds for all i ≤ k − 2α with probability at least 1 − δ.
    The number of its part is the guess for each cell; guesses up to k − 2α (`support` is k) are claimed. No count is
    claimed where the answers contradict the theorem: parts are too few, sets larger(·) are not nested, or no single
    threshold from 0 to 2α explains the sets, because the threshold changes.

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
    part, inside = ordered_partition(oracle, copies=copies)
    most = support - 2 * alpha
    # With z in 0..2α, of probability 1 − δ, the cells of count k − 2α + 1 have a part of their own, too.
    holds = inside is not None and part.max() > most and _explained_by_one_threshold(part, inside, most, 2 * alpha)
    contradiction = (
        f"the answers contradict Theorem 5.12, so not every count up to {support} occurs, ε₁ or ε₂ is wrong, or the "
        "threshold or the counts changed"
    )
    probability = np.where(part <= most, 1 - delta, 0.0)
    return Finding(guess=part, probability=probability, contradicted=() if holds else (contradiction,))


def _explained_by_one_threshold(part: CellIntegers, inside: CellIntegers, most: int, highest: int) -> bool:
    """Whether one ⌈z⌉ from 0 to `highest` explains the number of sets that hold each cell of the parts 0..`most`.

    If a part's number is its count, a cell is in larger(v) for all cells v of parts that are at least ⌈z⌉ lower.
    """
    claimed = part <= most
    up_to = np.concatenate([np.zeros(highest, np.int64), np.cumsum(np.bincount(part))])  # of parts −highest, …
    return any(np.array_equal(inside[claimed], up_to[part[claimed] + highest - lower]) for lower in range(highest + 1))


def adaptive_attack(oracle: QueryAccess, rng: np.random.Generator, *, copies: int | None = None) -> Finding:
    """Read a histogram through one call of private threshold testing, by queries chosen from the answers so far.

    Counts are found and claimed up to a common whole factor, which the answers do not show. Fresh sums test the counts.
    If their answers are not as predicted, or other counts may explain all answers as well, nothing is claimed.

    `copies`: the number of copies of each query, for finite ε₂; None: the number that ε₂ needs. `rng` draws the sums.
    Raises `InvalidParameter` for copies out of range.
    """
    if copies is not None and copies < 1:
        raise InvalidParameter(f"copies={copies!r} must be at least 1")
    for comparison in noise_free_comparisons(oracle, copies):
        found = find_relative_counts(comparison, rng)
        if found.fresh_sums:
            break
    # A wrong count shows in a fresh sum with probability at least 1/4: the sum holds the cell with probability 1/2, and
    # is then with probability 1/2 on the side of the threshold that shows the error. If the unit is several people, the
    # answers may hide a cell between two multiples: the probability that one more cell is a multiple of the unit, as
    # all known cells are, is (n + ½)/(n + 1) (Jeffreys' rule of succession).
    n = int(np.count_nonzero(found.counts[found.known]))
    confidence = min(1 - 0.75**found.fresh_sums, (n + 0.5) / (n + 1))
    return Finding(guess=found.counts, probability=np.where(found.known, confidence, 0.0), up_to_factor=True)


def right_claims(found: Finding, truth: CellCounts) -> Booleans:
    """Flags of the right claims; an unknown factor is the whole number that makes most claims right."""
    factor = 1
    if found.up_to_factor:
        some = found.claimed & (found.guess > 0)
        factors, number = np.unique(truth[some] / found.guess[some], return_counts=True)
        whole = (factors == np.rint(factors)) & (factors >= 1)
        factor = int(factors[np.argmax(np.where(whole, number, 0))]) if whole.any() else 1
    return np.asarray(found.claimed & (factor * found.guess == truth))


def score(counts: CellCounts, guess: CellCounts, small: int = 5) -> tuple[float, float]:
    """The fractions of right guesses among all cells, and among cells of at most `small` people (NaN without cells)."""
    right = counts == guess
    few = counts <= small
    return float(right.mean()), float(right[few].mean()) if few.any() else float("nan")
