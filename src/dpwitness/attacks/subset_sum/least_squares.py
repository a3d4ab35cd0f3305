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
    """

    values: Floats
    variance: float
    probable: bool


def fit(subsets: Subsets, answers: Floats, *, variance: float | None = None, deadline: Deadline | None = None) -> Fit:
    """Fit the bits to the answers.

    Parameters
    ----------
    subsets, answers
        Whose bits were summed; the noisy sums in counts, shape (t,).
    variance
        Of the errors, in counts². None: as the fit shows it, which takes more answers than people.

    Raises `InvalidParameter` for answers too few to tell their errors, `AttackStopped` at the deadline.
    """
    gram, moments = subsets.gram(), subsets.moments(answers)
    plain: Floats = np.linalg.lstsq(gram, moments, rcond=1e-10)[0].astype(np.float64)
    if variance is None:
        variance = _variance(subsets, answers, plain)
    variance = max(variance, SMALLEST)
    ones = _probabilities(gram / variance, moments / variance, deadline)
    missed = float(np.mean((subsets.sums(ones) - answers) ** 2))
    # What is expected of bits misses answers by no more than the errors are, give or take six standard deviations.
    if missed > variance * (1 + 6 * math.sqrt(2 / len(answers))) + 100 * SMALLEST:
        return Fit(values=np.clip(plain, 0.0, 1.0), variance=variance, probable=False)
    return Fit(values=ones, variance=variance, probable=True)


def _probabilities(gram: Floats, moments: Floats, deadline: Deadline | None) -> Floats:
    """Of a 1 for each bit, by expectation propagation; both arguments in parts of the errors' variance."""
    # Precision and precision·mean of what stands for the knowledge that a bit is 0 or 1: at first mean 1/2, variance
    # 1/4.
    precision, shift = np.full(len(moments), 4.0), np.full(len(moments), 2.0)
    ones = np.full(len(moments), 0.5)
    for _ in range(STEPS):
        if deadline is not None and not deadline.left:
            raise AttackStopped("--max-time is over before the least-squares fit is: allow more, or a smaller --size")
        covariance = np.linalg.inv(gram + np.diag(precision))
        spread = np.diag(covariance)
        # What the answers alone say of each bit, given what is known of all others.
        own = np.maximum(1 / spread - precision, 1e-12)
        mean = (covariance @ (moments + shift) / spread - shift) / own
        before, ones = ones, 1 / (1 + np.exp(np.clip(-(mean - 0.5) * own, -700, 700)))
        if np.abs(ones - before).max() < SETTLED:
            break
        sharper = np.maximum(1 / np.maximum(ones * (1 - ones), 1e-6) - own, 0.0)
        aim = np.where(sharper > 0, (sharper + own) * ones - mean * own, 0.0)
        precision = precision + DAMPING * (sharper - precision)
        shift = shift + DAMPING * (aim - shift)
    return ones


def _variance(subsets: Subsets, answers: Floats, plain: Floats) -> float:
    """The variance of the errors, from what the fit misses; its n parameters are taken into account."""
    spare = len(answers) - subsets.people
    if spare < 1:
        raise InvalidParameter(
            f"{len(answers)} answers about {subsets.people} people do not tell how wrong they are: ask more than "
            f"{subsets.people}"
        )
    return float(np.sum((subsets.sums(plain) - answers) ** 2)) / spare
