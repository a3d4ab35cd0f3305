"""The least-squares adversary: what each bit is, and how sure that is, behind errors of any law with a variance.

A least-squares fit has normal errors of known size about each bit. That a bit is 0 or 1 and nothing in between turns
the fit into a probability, and these probabilities sharpen the fit: expectation propagation (Minka, UAI 2001).
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.subset_sum.subsets import Subsets
from dpwitness.clock import Deadline
from dpwitness.errors import AttackStopped, InvalidParameter

__all__ = ["Fit", "fit"]

Floats = NDArray[np.float64]

#: Steps at most; most take fewer than 10, and later ones change little.
STEPS: Final = 30
#: Probabilities that move by less are final.
SETTLED: Final = 1e-4
#: How much of a step is taken: whole ones may swing.
DAMPING: Final = 0.7
#: The least variance of errors that is told from none.
SMALLEST: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What least squares make of answers.

    `values`: the probability that each bit is 1, shape (n,), if the answers are such as sums of bits with normal errors
    are (`probable`); else the fitted values, cut off at 0 and 1, which are no probabilities. `variance`: of the errors.
    `means`, `variances`: what the answers say of each bit, before it is taken for 0 or 1, and how far that may be off.
    `offset`: what all answers have in common, in counts.
    """

    values: Floats
    variance: float
    probable: bool
    means: Floats
    variances: Floats
    offset: float


def fit(
    subsets: Subsets,
    answers: Floats,
    *,
    variance: float | None = None,
    offset: bool = False,
    deadline: Deadline | None = None,
) -> Fit:
    """Fit the bits to the answers.

    Parameters
    ----------
    subsets, answers
        Whose bits were summed; the noisy sums in counts, shape (t,).
    variance
        Of the errors, in counts². None: as the fit shows it, which takes more answers than people.
    offset
        Whether all answers may have an unknown count in common.

    Raises `InvalidParameter` for answers too few to tell their errors, `AttackStopped` at the deadline.
    """
    gram, moments = subsets.gram(), subsets.moments(answers)
    sizes = subsets.moments(np.ones(len(answers)))
    centre = float(answers.mean()) if offset else 0.0
    if offset:  # the normal equations with a column of ones, solved for it
        gram = gram - np.outer(sizes, sizes) / len(answers)
        moments = moments - sizes * centre

    def common(values: Floats) -> float:
        return centre - float(sizes @ values) / len(answers) if offset else 0.0

    plain: Floats = np.linalg.lstsq(gram, moments, rcond=1e-10)[0].astype(np.float64)
    if variance is None:
        variance = _variance(subsets, answers - common(plain), plain, offset)
    variance = max(variance, SMALLEST)
    ones, means, variances = _probabilities(gram / variance, moments / variance, deadline)
    missed = float(np.mean((subsets.sums(ones) + common(ones) - answers) ** 2))
    # What is expected of bits misses answers by no more than the errors are, give or take six standard deviations.
    if missed > variance * (1 + 6 * math.sqrt(2 / len(answers))) + 100 * SMALLEST:
        inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
        return Fit(
            values=np.clip(plain, 0.0, 1.0),
            variance=variance,
            probable=False,
            means=plain,
            variances=variance * np.maximum(np.diag(inverse), 0.0),
            offset=common(plain),
        )
    return Fit(values=ones, variance=variance, probable=True, means=means, variances=variances, offset=common(ones))


def _probabilities(gram: Floats, moments: Floats, deadline: Deadline | None) -> tuple[Floats, Floats, Floats]:
    """Of a 1 for each bit, by expectation propagation; both arguments in parts of the errors' variance.

    And mean and variance of what the answers alone say of each bit, given what is known of all others.
    """
    # Precision and precision·mean of what stands for the knowledge that a bit is 0 or 1: at first mean 1/2, variance
    # 1/4.
    precision, shift = np.full(len(moments), 4.0), np.full(len(moments), 2.0)
    ones = np.full(len(moments), 0.5)
    for _ in range(STEPS):
        if deadline is not None and not deadline.left:
            raise AttackStopped("--max-time is over before the least-squares fit is: allow more, or a smaller --size")
        covariance = np.linalg.inv(gram + np.diag(precision))
        spread = np.diag(covariance)
        own = np.maximum(1 / spread - precision, 1e-12)
        mean = (covariance @ (moments + shift) / spread - shift) / own
        before, ones = ones, 1 / (1 + np.exp(np.clip(-(mean - 0.5) * own, -700, 700)))
        if np.abs(ones - before).max() < SETTLED:
            break
        sharper = np.maximum(1 / np.maximum(ones * (1 - ones), 1e-6) - own, 0.0)
        aim = np.where(sharper > 0, (sharper + own) * ones - mean * own, 0.0)
        precision = precision + DAMPING * (sharper - precision)
        shift = shift + DAMPING * (aim - shift)
    return ones, mean, 1 / own


def _variance(subsets: Subsets, answers: Floats, plain: Floats, offset: bool) -> float:
    """The variance of the errors, from what the fit misses; its parameters are taken into account."""
    needed = subsets.people + offset
    spare = len(answers) - needed
    if spare < 1:
        raise InvalidParameter(
            f"{len(answers)} answers about {subsets.people} people do not tell how wrong they are: ask more than "
            f"{needed}"
        )
    return float(np.sum((subsets.sums(plain) - answers) ** 2)) / spare
