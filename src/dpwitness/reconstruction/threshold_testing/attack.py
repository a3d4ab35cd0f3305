"""Counts read off a histogram through private threshold testing: Algorithms 3 and 4 of Chen & Machanavajjhala (2015).

All difference queries x_u − x_v are compared with one noisy threshold. larger(v), the cells u whose difference to v is
answered ⊤, shrinks as x_v grows, so the cells fall into parts in the order of their counts. One noisy total a part
then gives each part's count; or, where it is known up to what count all counts occur, the parts' order does.

The adaptive attack: whichever way of weighing suits the query noise, on one call of private threshold testing.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.threshold_testing.oracle import LARGEST, Counts, Queries
from dpwitness.reconstruction.threshold_testing.query_noise import NoisyWeighed, Ruler, votings, weigh_noisy
from dpwitness.reconstruction.threshold_testing.relative_counts import Scales
from dpwitness.reconstruction.threshold_testing.theory import attack_threshold
from dpwitness.reconstruction.threshold_testing.weighing import Weighed, weigh


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


#: Beyond this ε₂ the ruler is too short for whole numbers, and a vote among copies takes the noise away.
VOTE_FROM: Final = 1.5
#: An error in one cell passes a fresh sum next to the threshold with this probability at most: the cell is in it with
#: probability 1/2, and with 1/2 on the side that shows the error.
PASSES: Final = 0.75
#: Where the ruler read fewer of the cells, they are weighed by votes as well.
NEARLY_ALL: Final = 0.98
#: Laplace noise of so many times its scale comes once in a million times.
CONTRADICTED: Final = 13.8
#: And once in a thousand times.
UNLIKELY: Final = 6.9
#: With this confidence a factor is taken for known.
SURE: Final = 0.95


def adaptive_attack(oracle: Queries, rng: np.random.Generator, *, copies: int | None = None) -> Reconstruction:
    """Read a histogram through one call of private threshold testing, by queries chosen from the answers so far.

    Without query noise counts are found up to a common factor, which one noisy total then gives, or ε₁ limits. What was
    found is tried on fresh sums; where these are not as predicted, Algorithm 4 is run instead if the oracle sells
    totals, and else nothing is claimed and all guesses are 0.

    Parameters
    ----------
    oracle
        What may be asked, with its ε₂.
    rng
        For the attack's own choices.
    copies
        Of each query at a time, for finite ε₂; None: as many as ε₂ asks for.

    Raises `InvalidParameter` for copies out of range.
    """
    if copies is not None and copies < 1:
        raise InvalidParameter(f"copies={copies!r} must be at least 1")
    epsilon2 = oracle.noise.epsilon2
    read = weigh_noisy(oracle, rng, copies) if epsilon2 <= VOTE_FROM else None
    if read is not None and read.tried and read.known.mean() >= NEARLY_ALL:
        return _as_read(oracle, read)
    for scales in [Scales(oracle)] if epsilon2 == np.inf else votings(Ruler(oracle, rng), copies):
        weighed = weigh(scales, rng)
        if weighed.tried:
            return _in_people(oracle, weighed, scales.negated, scales.copies)
    if read is not None and read.tried and read.known.any():
        return _as_read(oracle, read)
    if oracle.sells_totals:
        return reconstruct(oracle, copies=scales.copies)
    nothing = np.zeros(oracle.cells, np.int64)
    return Reconstruction(
        guess=nothing, known=nothing > 0, confidence=0.0, method="weighing", queries=oracle.queries
    )  # fmt: skip


def _as_read(oracle: Queries, read: NoisyWeighed) -> Reconstruction:
    """What query noise as a ruler gave, in people."""
    parts = np.where(read.known, 0, 1 + np.cumsum(~read.known))
    guess, _ = _totalled(oracle, read.guess, read.known, parts)
    return Reconstruction(
        guess=guess,
        known=read.known,
        confidence=1 - PASSES**read.tried,
        method="noisy weighing",
        queries=oracle.queries,
    )


def _in_people(oracle: Queries, weighed: Weighed, negated: bool, copies: int = 1) -> Reconstruction:
    """Counts in people from counts in the common unit, as far as totals or the threshold's noise tell the factor."""
    known = weighed.known
    counts, unit = weighed.low, 1
    totalled, total = _totalled(oracle, weighed.low, known, _alike(oracle, weighed, copies))
    limit = _factor_limit(oracle, weighed, negated)
    weight = float(counts[known].sum())
    factor, sure = 1, 0.0
    if weight == 0:
        sure = 1.0
    elif total is not None and oracle.noise.epsilon_totals is not None:
        factor, sure = _likeliest_factor(total, weight, oracle.noise.epsilon_totals)
        if sure == 0 and (unit := _largest_unit(counts[known])) > 1:  # a unit that suits all need not be the largest
            known = known & (counts % unit == 0)
            counts = counts // unit
            factor, sure = _likeliest_factor(total, float(counts[known].sum()), oracle.noise.epsilon_totals)
    elif limit is not None and limit < 2:
        sure = SURE
    certain = sure >= SURE
    guess = totalled if total is not None else np.rint(weighed.likeliest).astype(np.int64)
    if certain and total is not None:
        guess = _limited(guess, weighed, factor)
    guess = np.where(known, factor * counts, guess)
    confidence = 1 - PASSES**weighed.tried
    if not certain or factor > 1:
        confidence = min(confidence, _shared_unit(counts[known]))
    return Reconstruction(
        guess=guess, known=known, factor=factor if certain else None, factor_at_most=None if certain else limit,
        confidence=confidence * (sure if certain else 1.0), method="weighing", queries=oracle.queries,
    )  # fmt: skip


def _shared_unit(counts: Counts) -> float:
    """How likely one more cell is a whole number of the unit, as all these are (Jeffreys' rule of succession).

    Of a unit of several people no answer need show a single cell that lies between two whole numbers of it.
    """
    n = int(np.count_nonzero(counts))
    return (n + 0.5) / (n + 1)


def _alike(oracle: Queries, weighed: Weighed, copies: int) -> NDArray[np.int64]:
    """The number of each cell's part for the noisy totals, shape (cells,).

    0: the known cells. Those of others that the answers do not tell apart are one part: more people, and less noise in
    each. Where many cells have no close limits Algorithm 3 tells them apart.
    """
    known, wide = weighed.known, weighed.high - weighed.low > 1
    columns = [weighed.low, weighed.high, np.rint(4 * weighed.likeliest).astype(np.int64)]
    if oracle.sells_totals and wide.mean() > 1 - NEARLY_ALL:
        columns = [ordered_partition(oracle, copies=copies)]
    parts = np.zeros(len(known), np.int64)
    if not known.all():
        _, part = np.unique(np.stack(columns)[:, ~known], axis=1, return_inverse=True)
        parts[~known] = 1 + part.ravel()
    return parts


def _totalled(
    oracle: Queries, counts: Counts, known: NDArray[np.bool_], parts: NDArray[np.int64]
) -> tuple[Counts, float | None]:
    """The counts, those of unknown cells by the mean of their part; and the noisy total of all known cells, if any."""
    total = oracle.totals(parts) if known.any() else None
    if total is None:
        return counts, None
    mean = total / np.maximum(np.bincount(parts, minlength=len(total)), 1)
    return np.where(known, counts, np.maximum(np.rint(mean[parts]), 0).astype(np.int64)), float(total[0])


def _limited(guess: Counts, weighed: Weighed, factor: int) -> Counts:
    """Guesses within the limits of their cells; where the totals do not tell better, the simplest ones."""
    low, high = factor * weighed.low, factor * np.minimum(weighed.high, LARGEST // factor)
    return np.clip(guess, low, high)


def _largest_unit(counts: Counts) -> int:
    """The largest unit that nearly all counts are whole numbers of, by the first 2,000 that are not 0."""
    some = counts[counts > 0][:2_000]
    units = np.unique(np.gcd(some[1:], some[:-1]))
    return int(max((unit for unit in units if np.mean(some % unit == 0) >= NEARLY_ALL), default=1))


def _likeliest_factor(total: float, weight: float, epsilon: float) -> tuple[int, float]:
    """The whole factor that makes the noisy total likeliest, and its probability if all are alike beforehand.

    The probability is 0 where the total contradicts all of them.
    """
    best = max(1, round(total / weight))
    factors = np.arange(max(1, best - 50), best + 51)
    misfit = epsilon * np.abs(total - factors * weight)
    if misfit.min() > CONTRADICTED:
        return best, 0.0
    chances = np.exp(misfit.min() - misfit)
    return best, float(chances[factors == best][0] / chances.sum())


def _factor_limit(oracle: Queries, weighed: Weighed, negated: bool) -> float | None:
    """The limit of the factor with confidence 0.95: so many units of ⌈z⌉ − 1 fit below what z is at most; or None.

    None also where not even units of one person are likely: then ε₁ or θ is not what was said.
    """
    epsilon1 = oracle.noise.epsilon1
    if epsilon1 is None or weighed.threshold is None or weighed.threshold < 2:
        return None
    theta = -oracle.noise.threshold if negated else oracle.noise.threshold
    # P(|Lap(1/ε₁)| > ln(1/β)/ε₁) = β: both tails, since queries are asked negated where z is not positive.
    highest = theta + np.log(1 / (1 - SURE)) / epsilon1
    if epsilon1 * (weighed.threshold - 1 - theta) > UNLIKELY:
        return None
    return max(1.0, float(highest / (weighed.threshold - 1)))
