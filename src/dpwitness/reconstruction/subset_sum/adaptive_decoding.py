"""Decoding behind errors of an unknown law: least squares on answers that are corrected by the law's estimated score.

An efficient estimate needs only the score of the errors' law, −(log f)′, and that can be estimated from the errors of
a first fit (Stone, Annals of Statistics 3(2), 1975; Bickel, 10(3), 1982). Here it is fitted by score matching
(Hyvärinen, JMLR 6, 2005), a linear system: as that of normal errors, of errors with heavy tails, or of errors within a
bound, whichever fits better to answers that it was not made of. Corrected answers have errors that a fit may take for
normal ones. Fit and score are made in turn until nothing moves. The errors are those beside what is expected of each
answer without itself, as in approximate message passing for generalized linear models (Schniter, Rangan & Fletcher,
Asilomar 2016).
"""

import dataclasses
import math
from typing import Final, NamedTuple

import numpy as np

from dpwitness.machine import Deadline
from dpwitness.reconstruction.subset_sum.linear_decoding import (
    FARTHEST,
    SETTLED,
    SMALLEST,
    Belief,
    Floats,
    Reconstruction,
    Subsets,
    least_squares_adversary,
    require_time,
    within_reach,
)

#: Rounds at most; most take fewer than 20. Of the first ones the score is that of normal errors.
ROUNDS: Final = 40
NORMAL_ROUNDS: Final = 5
#: After so many rounds steps become shorter: a few laws swing between two scores.
PATIENCE: Final = 20
#: The score of Student's t is about u/(1 + (u/a)²): these a, in standard deviations of the errors' middle.
TAILS: Final = (0.7, 1.5, 4.0)
#: A correction that promises more than its errors' spread can hold is believed up to this.
LEAST_PART: Final = 0.25
#: Where edges of bounded errors are looked for: from the outermost ones inwards, in standard deviations.
INWARDS: Final = np.linspace(0.0, 3.2, 11)
#: Added to the diagonal of the system for the score, whose columns have length 1.
RIDGE: Final = 3e-4


def adaptive_adversary(
    subsets: Subsets, answers: Floats, *, sharpened: bool = True, deadline: Deadline | None = None
) -> Reconstruction:
    """The more probable value of each bit, behind independent errors of any law, with an unknown count in all answers.

    `spread` of the result is the standard deviation of normal errors that would tell as much. Parameters and errors are
    those of `least_squares_adversary`.
    """
    answers = within_reach(answers, subsets.people)
    corrected, variance = corrected_answers(subsets, answers, deadline)
    found = least_squares_adversary(
        subsets, corrected, variance=variance, offset=True, sharpened=sharpened, deadline=deadline
    )
    missed = answers - subsets.sums(found.fractions)
    offset = float(np.median(missed))
    return dataclasses.replace(found, offset=offset, largest_residual=float(np.abs(missed - offset).max()))


def corrected_answers(subsets: Subsets, answers: Floats, deadline: Deadline | None = None) -> tuple[Floats, float]:
    """Answers with about normal errors that tell as much, shape (t,), and the variance of these errors.

    Of normal errors they are the answers themselves. What all answers have in common is lost.
    """
    number, people = len(answers), subsets.people
    sizes = subsets.moments(np.ones(number))
    gram = subsets.gram() - np.outer(sizes, sizes) / number
    belief = Belief.of(people)
    expected = subsets.sums(belief.ones)
    # How far what is expected may be off, and what the corrected answers add to that: nothing at first.
    uncertain, weight, corrected = people / 16, 0.0, np.zeros(number)
    best = answers, float(np.var(answers))
    for step in range(ROUNDS):
        require_time(deadline, "before the fit is")
        variance = 1 / (1 / uncertain - weight)
        without = (expected / uncertain - weight * corrected) * variance
        score = _estimated(answers - without, variance, normal=step < NORMAL_ROUNDS)
        if score is None:
            break
        corrected = without + score.values / score.slope
        rest = max(score.square / score.slope**2 - variance, LEAST_PART * variance, SMALLEST)
        weight, best = 1 / rest, (corrected, rest)
        moments = subsets.moments(corrected) - sizes * float(corrected.mean())
        covariance, centre, change = belief.step(
            gram * weight, moments * weight, shorter=0.85 ** max(step - PATIENCE, 0)
        )
        expected = subsets.sums(centre)
        expected += float(np.mean(corrected - expected))
        # No more than at first: what all answers have in common is moved by errors far off, but for all alike.
        uncertain = float(np.sum(covariance * gram)) / number + rest / number
        uncertain = min(max(uncertain, SMALLEST**2), people / 8)
        if change < SETTLED and step > NORMAL_ROUNDS:
            break
    return best


class Score(NamedTuple):
    """An estimated score at each error, shape (t,), its mean slope, and the mean of its square."""

    values: Floats
    slope: float
    square: float


def _estimated(errors: Floats, variance: float, *, normal: bool) -> Score | None:
    """The score of errors that are known to hold normal ones of a variance, where it is of any use.

    `normal`: the errors are taken for normal ones. Each half of the errors has the score that fits the other half.
    """
    middle = float(np.median(errors))
    scale = max(1.4826 * float(np.median(np.abs(errors - middle))), math.sqrt(SMALLEST))
    u = np.clip((errors - middle) / scale, -FARTHEST, FARTHEST)
    linear = np.stack([np.ones_like(u), u]), np.stack([np.zeros_like(u), np.ones_like(u)])
    families = [linear]
    if not normal:
        tails = [1 + (u / a) ** 2 for a in TAILS]
        heavy = [u / q for q in tails], [(2 - q) / q**2 for q in tails]
        families.append((np.vstack([linear[0], *heavy[0]]), np.vstack([linear[1], *heavy[1]])))
        if (bounded := _score_of_bounded(u, math.sqrt(variance) / scale)) is not None:
            families.append((np.vstack([linear[0], bounded[0]]), np.vstack([linear[1], bounded[1]])))
    found = [_fitted(values, slopes) for values, slopes in families]
    # Score matching: the smaller, the nearer to the score; its least value is −1/2 of the information.
    best = min(found, key=lambda one: one.square / 2 - one.slope)
    if not best.slope > 0:
        return None
    return Score(best.values / scale, best.slope / scale**2, best.square / scale**2)


def _fitted(values: Floats, slopes: Floats) -> Score:
    """The sum of functions, shape (functions, t), that is nearest to the score.

    Its slope and square are those at one half of the errors where it is fitted to the other half.
    """
    parts = (slice(0, None, 2), slice(1, None, 2))
    slope, square = 0.0, 0.0
    for here, other in (parts, parts[::-1]):
        weights = _matched(values[:, other], slopes[:, other])
        slope += float(np.sum(weights @ slopes[:, here])) / values.shape[1]
        square += float(np.sum((weights @ values[:, here]) ** 2)) / values.shape[1]
    return Score(_matched(values, slopes) @ values, slope, square)


def _matched(values: Floats, slopes: Floats) -> Floats:
    """The weights of functions, shape (functions,), that minimize the mean of half the square less the slope."""
    gram, mean = values @ values.T / values.shape[1], slopes.mean(axis=1)
    squares = np.diag(gram)
    # A function that is 0 at all these errors, as where none is near an edge, has no weight.
    length = np.where(squares > SMALLEST**2, 1 / np.sqrt(np.maximum(squares, SMALLEST**2)), 0.0)
    weights: Floats = length * np.linalg.solve(
        gram * length[:, None] * length + RIDGE * np.eye(len(gram)), length * mean
    )
    return weights


def _score_of_bounded(errors: Floats, spread: float) -> tuple[Floats, Floats] | None:
    """Score and slope of errors that are uniform between two edges, beside normal ones; the edges are the likeliest."""
    from scipy.special import ndtr  # 0.3 s

    if not float(np.ptp(errors)) > 4 * spread:
        return None
    low, high = float(errors.min()) + spread, float(errors.max()) - spread

    def density(low: float, high: float) -> Floats:
        return np.maximum(ndtr((errors - low) / spread) - ndtr((errors - high) / spread), 1e-12)

    def likelihood(low: float, high: float) -> float:
        return float(np.log(density(low, high)).sum()) - len(errors) * math.log(high - low) if high > low else -math.inf

    for _ in range(2):
        low = max((float(errors.min()) + INWARDS * spread).tolist(), key=lambda edge: likelihood(edge, high))
        high = max((float(errors.max()) - INWARDS * spread).tolist(), key=lambda edge: likelihood(low, edge))
    below, above = (errors - low) / spread, (errors - high) / spread
    here, (one, other) = density(low, high), (np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) for z in (below, above))
    score = -(one - other) / (here * spread)
    slope = (below * one - above * other) / (here * spread**2) + score**2
    # Beyond the edges by so much that the density rounds to nothing, as behind normal errors alone.
    outside = here < 1e-9
    score[outside] = np.where(below < 0, below, above)[outside] / spread
    slope[outside] = 1 / spread**2
    return score, slope
