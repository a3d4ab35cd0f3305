"""The adaptive attack: whichever way of weighing suits the query noise, on one call of private threshold testing."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.threshold_testing.comparing import Scales
from dpwitness.attacks.threshold_testing.noisy_weighing import NoisyWeighed, weigh_noisy
from dpwitness.attacks.threshold_testing.oracle import Queries
from dpwitness.attacks.threshold_testing.questions import Counts
from dpwitness.attacks.threshold_testing.reconstruction import Reconstruction, reconstruct
from dpwitness.attacks.threshold_testing.ruler import Ruler, votings
from dpwitness.attacks.threshold_testing.weighing import Weighed, weigh
from dpwitness.errors import InvalidParameter

__all__ = ["adaptive_attack"]

#: Beyond this ε₂ the ruler is too short for whole numbers, and a vote among copies takes the noise away.
VOTE_FROM: Final = 1.5
#: An error in one cell passes a fresh sum next to the threshold with this probability at most: the cell is in it with
#: probability 1/2, and with 1/2 on the side that shows the error.
PASSES: Final = 0.75
#: Where the ruler read fewer of the cells, they are weighed by votes as well.
NEARLY_ALL: Final = 0.98
#: Laplace noise of so many times its scale comes once in a million times.
CONTRADICTED: Final = 13.8
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
            return _in_people(oracle, weighed, scales.negated)
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
    guess, _ = _totalled(oracle, read.guess, read.known)
    return Reconstruction(
        guess=guess,
        known=read.known,
        confidence=1 - PASSES**read.tried,
        method="noisy weighing",
        queries=oracle.queries,
    )


def _in_people(oracle: Queries, weighed: Weighed, negated: bool) -> Reconstruction:
    """Counts in people from counts in the common unit, as far as totals or the threshold's noise tell the factor."""
    known = weighed.known
    guess, total = _totalled(oracle, weighed.low, known)
    counts, limit = weighed.low, _factor_limit(oracle, weighed, negated)
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
    guess = np.where(known, factor * counts, guess)
    certain = sure >= SURE
    return Reconstruction(
        guess=guess, known=known, factor=factor if certain else None, factor_at_most=None if certain else limit,
        confidence=(1 - PASSES**weighed.tried) * (sure if certain else 1.0), method="weighing", queries=oracle.queries,
    )  # fmt: skip


def _totalled(oracle: Queries, counts: Counts, known: NDArray[np.bool_]) -> tuple[Counts, float | None]:
    """The counts, those of unknown cells by a noisy total of each; and the noisy total of all known cells, if any."""
    parts = np.zeros(len(counts), np.int64)
    unknown = np.flatnonzero(~known)
    parts[unknown] = np.arange(1, len(unknown) + 1)
    if known.any():
        total = oracle.totals(parts)
        if total is not None:
            guess = counts.copy()
            guess[unknown] = np.maximum(np.rint(total[1:]), 0).astype(np.int64)
            return guess, float(total[0])
    return counts, None


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
    """The limit of the factor with confidence 0.95: so many units of ⌈z⌉ − 1 fit below what z is at most; or None."""
    epsilon1 = oracle.noise.epsilon1
    if epsilon1 is None or weighed.threshold is None or weighed.threshold < 2:
        return None
    theta = -oracle.noise.threshold if negated else oracle.noise.threshold
    # P(Lap(1/ε₁) > ln(1/(2β))/ε₁) = β.
    highest = theta + np.log(1 / (2 * (1 - SURE))) / epsilon1
    return max(1.0, float(highest / (weighed.threshold - 1)))
