"""Attacks on private threshold testing: the ordered partition and the adaptive attack, and the counts that they claim.

Algorithm 3 of Chen & Machanavajjhala (2015) asks all differences x_u − x_v under one noisy threshold. The set larger(v)
of the cells u whose difference to v is answered ⊤ shrinks as x_v grows, so equal sets give parts of cells in the order
of counts. Algorithm 4 asks for a noisy total for each part, which gives its count; if all counts up to a known k occur,
the order of the parts gives their counts (Theorem 5.12).

The adaptive attack asks signed sums of cells, chosen by the answers so far: it finds counts relative to each other
(`relative_counts`; against query noise by copies, `majority_comparisons`), and claims counts of people if noisy
totals, or the law of the threshold's noise, determine their common factor.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from dpwitness.arrays import Booleans
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.report import Finding
from dpwitness.reconstruction.threshold_testing.comparison import Comparison, majority_comparisons
from dpwitness.reconstruction.threshold_testing.oracle import LARGEST_COUNT, Cells, Counts, Queries
from dpwitness.reconstruction.threshold_testing.relative_counts import (
    RelativeCounts,
    find_relative_counts,
    prevailing_unit,
)
from dpwitness.reconstruction.threshold_testing.theory import attack_threshold

#: The fraction of cells from which on a property, such as a common unit, is taken for a property of all cells.
PREVAILING_FRACTION: Final = 0.98
#: The least probability with which a factor is claimed, and the confidence of the factor's limit.
FACTOR_CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reconstruction:
    """Guessed counts, and the attack's claims about them without the truth; arrays of shape (cells,).

    `confidence`: the expected fraction of right counts among the claimed counts; where no count is claimed, among all
    guesses, if all cells of each part have the same count.
    """

    guess: Counts
    known: Booleans  # the guesses that are claimed to be right
    factor: int | None = 1  # the factor that the guesses include; None: they are counts up to a whole factor
    factor_at_most: float | None = None  # the limit, with confidence 0.95, of an unknown factor; None without a limit
    confidence: float
    method: str  # "weighing", "partition and totals" or "partition"
    queries: int  # the number of threshold queries
    contradicted: tuple[str, ...] = ()  # assumptions that the answers contradict, in words

    @property
    def finding(self) -> Finding:
        """The guess and its claims."""
        return Finding(
            guess=self.guess,
            probability=np.where(self.known, self.confidence, 0.0),
            contradicted=self.contradicted,
            up_to_factor=self.factor is None,
        )

    def right_claims(self, truth: Counts) -> Booleans:
        """Flags of the right claims; an unknown factor is the whole number that makes most claims right."""
        if self.factor is not None:
            return np.asarray(self.known & (self.guess == truth))
        some = self.known & (self.guess > 0)
        factors, number = np.unique(truth[some] / self.guess[some], return_counts=True)
        whole = (factors == np.rint(factors)) & (factors >= 1)
        if self.factor_at_most is not None:
            whole &= factors <= self.factor_at_most
        factor = int(factors[np.argmax(np.where(whole, number, 0))]) if whole.any() else 1
        return np.asarray(self.known & (self.guess * factor == truth))


def ordered_partition(oracle: Queries, *, copies: int = 1) -> tuple[Cells, Cells | None]:
    """Algorithm 3: the number of each cell's part, from 0, and the number of nested sets larger(·) that hold the cell.

    Both have shape (cells,). Two cells are in one part if their sets larger(·) are equal; parts are in descending order
    of these sets, that is, in ascending order of the counts. Without query noise the sets are nested, so their sizes
    determine them. With a finite ε₂ every comparison is the majority of `copies` copies (Theorem 3.5; a tie counts as
    ⊥); the sets may then not be nested, and only their sizes are compared. The second value is None unless the sets are
    nested.
    """
    if not copies >= 1:
        raise InvalidParameter(f"copies={copies!r} must be at least 1")
    sizes, inside = oracle.larger(copies)
    _, part = np.unique(-sizes, return_inverse=True)
    # Sets of given sizes are nested exactly if each cell is in this number of sets (Gale & Ryser 1957).
    in_nested = np.searchsorted(np.sort(-sizes), -np.arange(len(sizes)), side="left")
    nested = np.array_equal(np.sort(inside), in_nested[::-1])
    return part.ravel(), inside if nested else None


def reconstruct(oracle: Queries, *, copies: int = 1) -> Reconstruction:
    """Algorithm 4: the ordered partition gives parts of cells, and the noisy total of each part gives its count.

    Where the oracle gives no totals, the guess of a cell is the number of its part: a lower limit of its count if the
    noisy threshold is positive (Lemma 5.10). Raises `InvalidParameter` for copies out of range.
    """
    part, _ = ordered_partition(oracle, copies=copies)
    nothing = np.zeros(len(part), np.bool_)
    total = oracle.totals(part)
    if total is None:
        return Reconstruction(guess=part, known=nothing, confidence=0.0, method="partition", queries=oracle.queries)
    size = np.bincount(part)
    epsilon, confidence = oracle.noise.epsilon_totals, 0.0
    if epsilon is not None:  # a part's mean rounds to its count where its noise Lap(1/ε) is below half the part's size
        confidence = float(np.average(1 - np.exp(-epsilon * size / 2), weights=size))
    return Reconstruction(
        guess=np.rint(total / size).astype(np.int64)[part],
        known=nothing,
        confidence=confidence,
        method="partition and totals",
        queries=oracle.queries,
    )


def reconstruct_supported(oracle: Queries, support: int, *, delta: float = 0.05, copies: int = 1) -> Reconstruction:
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
    return Reconstruction(
        guess=part,
        known=(part <= most) & holds,
        confidence=1 - delta if holds else 0.0,
        method="partition",
        queries=oracle.queries,
        contradicted=() if holds else (contradiction,),
    )


def _explained_by_one_threshold(part: Cells, inside: Cells, most: int, highest: int) -> bool:
    """Whether one ⌈z⌉ from 0 to `highest` explains the number of sets that hold each cell of the parts 0..`most`.

    If a part's number is its count, a cell is in larger(v) for all cells v of parts that are at least ⌈z⌉ lower.
    """
    claimed = part <= most
    up_to = np.concatenate([np.zeros(highest, np.int64), np.cumsum(np.bincount(part))])  # of parts −highest, …
    return any(np.array_equal(inside[claimed], up_to[part[claimed] + highest - lower]) for lower in range(highest + 1))


def score(counts: Counts, guess: Counts, small: int = 5) -> tuple[float, float]:
    """The fractions of right guesses among all cells, and among cells of at most `small` people (NaN without cells)."""
    right = counts == guess
    few = counts <= small
    return float(right.mean()), float(right[few].mean()) if few.any() else float("nan")


def adaptive_attack(oracle: Queries, rng: np.random.Generator, *, copies: int | None = None) -> Reconstruction:
    """Read a histogram through one call of private threshold testing, by queries chosen from the answers so far.

    Counts are found up to a common factor, which a noisy total then gives, or ε₁ limits. Fresh sums test the counts. If
    their answers are not as predicted, or other counts may explain all answers as well, the attack uses Algorithm 4
    where the oracle gives totals, and else claims nothing; guesses that failed the test become 0.

    `copies`: the number of copies of each query, for finite ε₂; None: the number that ε₂ needs. `rng` draws the sums.
    Raises `InvalidParameter` for copies out of range.
    """
    if copies is not None and copies < 1:
        raise InvalidParameter(f"copies={copies!r} must be at least 1")
    noiseless = oracle.noise.epsilon2 == np.inf
    for comparison in [Comparison(oracle)] if noiseless else majority_comparisons(oracle, copies):
        found = find_relative_counts(comparison, rng)
        if found.fresh_sums:
            break
    if found.fresh_sums and found.unique:
        return _claim_relative(oracle, found, comparison.negated, comparison.copies)
    if oracle.sells_totals:
        return reconstruct(oracle, copies=comparison.copies)
    guess = np.rint(found.likeliest).astype(np.int64) if found.fresh_sums else np.zeros(oracle.cells, np.int64)
    nothing = np.zeros(oracle.cells, np.bool_)
    return Reconstruction(guess=guess, known=nothing, confidence=0.0, method="weighing", queries=oracle.queries)


def _claim_relative(oracle: Queries, found: RelativeCounts, negated: bool, copies: int = 1) -> Reconstruction:
    """Claim counts, in people if totals or the threshold's noise determine the factor, else in the common unit."""
    known, counts, epsilon = found.known, found.low, oracle.noise.epsilon_totals
    guess, total = _complete_by_totals(oracle, counts, known, _parts(oracle, found, copies))
    limit = _factor_limit(oracle, found, negated)
    units = float(counts[known].sum())
    factor, probability = 1, 0.0
    if units == 0:
        probability = 1.0
    elif total is not None and epsilon is not None:
        factor, probability = _likeliest_factor(total, units, epsilon)
        # Nearly all counts may be multiples of a larger unit.
        exceptions = int((1 - PREVAILING_FRACTION) * np.count_nonzero(counts[known]))
        if probability == 0 and (unit := prevailing_unit(counts[known], exceptions)) > 1:
            known = known & (counts % unit == 0)
            counts = counts // unit
            factor, probability = _likeliest_factor(total, float(counts[known].sum()), epsilon)
    elif limit is not None and limit < 2:
        probability = FACTOR_CONFIDENCE
    certain = probability >= FACTOR_CONFIDENCE
    if total is None:
        guess = np.rint(found.likeliest).astype(np.int64)
    elif certain:  # a part's mean is moved into the limits of each cell
        guess = np.clip(guess, factor * found.low, factor * np.minimum(found.high, LARGEST_COUNT // factor))
    # A wrong count shows in a fresh sum with probability at least 1/4: the sum holds the cell with probability 1/2, and
    # is then with probability 1/2 on the side of the threshold that shows the error.
    confidence = 1 - 0.75**found.fresh_sums
    if not certain or factor > 1:
        # The probability that one more cell is a multiple of the unit, as all known cells are (Jeffreys' rule of
        # succession): if the unit is several people, answers may hide a cell between two multiples.
        n = int(np.count_nonzero(counts[known]))
        confidence = min(confidence, (n + 0.5) / (n + 1))
    return Reconstruction(
        guess=np.where(known, factor * counts, guess),
        known=known,
        factor=factor if certain else None,
        factor_at_most=None if certain else limit,
        confidence=confidence * (probability if certain else 1.0),
        method="weighing",
        queries=oracle.queries,
    )


def _parts(oracle: Queries, found: RelativeCounts, copies: int) -> Cells:
    """The number of each cell's part for the noisy totals, shape (cells,).

    Part 0 holds the known cells. Other cells that the answers do not tell apart form one part: of more people, with
    less noise a cell. Where many cells have wide limits, Algorithm 3 gives the parts.
    """
    known, wide = found.known, found.high - found.low > 1
    columns = [found.low, found.high, np.rint(4 * found.likeliest).astype(np.int64)]
    if oracle.sells_totals and wide.mean() > 1 - PREVAILING_FRACTION:
        columns = [ordered_partition(oracle, copies=copies)[0]]
    parts = np.zeros(len(known), np.int64)
    if not known.all():
        _, part = np.unique(np.stack(columns)[:, ~known], axis=1, return_inverse=True)
        parts[~known] = 1 + part.ravel()
    return parts


def _complete_by_totals(oracle: Queries, counts: Counts, known: Booleans, parts: Cells) -> tuple[Counts, float | None]:
    """The counts, with the mean of its part for each unknown cell, and the known cells' noisy total or None."""
    total = oracle.totals(parts) if known.any() else None
    if total is None:
        return counts, None
    mean = total / np.maximum(np.bincount(parts, minlength=len(total)), 1)
    return np.where(known, counts, np.maximum(np.rint(mean[parts]), 0).astype(np.int64)), float(total[0])


def _likeliest_factor(total: float, units: float, epsilon: float) -> tuple[int, float]:
    """The whole factor under which the noisy total is likeliest, and its probability by a uniform prior.

    The probability is 0 where the total contradicts all factors.
    """
    best = max(1, round(total / units))
    factors = np.arange(max(1, best - 50), best + 51)
    misfit = epsilon * np.abs(total - factors * units)
    if misfit.min() > 13.8:  # Laplace noise exceeds 13.8 times its scale with probability 10⁻⁶
        return best, 0.0
    likelihood = np.exp(misfit.min() - misfit)
    return best, float(likelihood[factors == best][0] / likelihood.sum())


def _factor_limit(oracle: Queries, found: RelativeCounts, negated: bool) -> float | None:
    """The upper limit of the factor with confidence 0.95: the largest likely z, divided by ⌈z⌉ − 1 in units.

    None without ε₁ or ⌈z⌉, and where even units of one person are unlikely, so that the stated ε₁ or θ is wrong.
    """
    epsilon1 = oracle.noise.epsilon1
    if epsilon1 is None or found.threshold is None or found.threshold < 2:
        return None
    theta = -oracle.noise.threshold if negated else oracle.noise.threshold
    # P(|Lap(1/ε₁)| > ln(1/β)/ε₁) = β: both tails, since queries are asked negated where z is not positive.
    highest = theta + np.log(1 / (1 - FACTOR_CONFIDENCE)) / epsilon1
    if epsilon1 * (found.threshold - 1 - theta) > 6.9:  # |noise| exceeds 6.9 times its scale with probability 10⁻³
        return None
    return max(1.0, float(highest / (found.threshold - 1)))
