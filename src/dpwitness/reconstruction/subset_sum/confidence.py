"""The claims of a reconstruction rest on its prediction of answers that it did not use.

The attack draws the subsets, so for any system the mean answer to subsets with a person, less the mean answer to
subsets without this person, is the number that the person adds. In sums of bits a person adds the bit; in scaled sums,
or other answers, a 1 adds less than 1. The claim for a bit is the least probability that it is right, under all scales
and all further differences between people that the answers leave open.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from scipy.special import expit, fdtrc

from dpwitness.arrays import Floats
from dpwitness.reconstruction.report import LEVEL
from dpwitness.reconstruction.subset_sum.linear_decoding import PersonBits, Reconstruction, Subsets

#: Number of standard errors by which the true scale may differ from its estimate: 95 % of normal estimates are nearer.
SCALE_STANDARD_ERRORS: Final = 2.0
#: Number of standard errors by which a scale must exceed 0 for a claim: one in 700 systems that answer noise alone has
#: a scale that large.
SIGNIFICANT_STANDARD_ERRORS: Final = 3.0
#: Median deviations from the median beyond which answers are clipped: one normal answer in a million lies there.
CLIP_MEDIAN_DEVIATIONS: Final = 7.3
#: Nats by which a log likelihood may lie below the largest log likelihood: the difference at two standard errors.
LIKELIHOOD_NATS: Final = 2.0
#: Number of scales within the confidence limits for which claims are computed; the least claim counts.
TRIED_SCALES: Final = 5
#: Smallest difference between a fit's mean fractions for ones and for zeros that fresh answers can check.
MIN_CONTRAST: Final = 0.02
#: p-value of the F test below which claims are lowered in proportion: noise may hide people whose ones add less than 1.
DOUBTFUL_P_VALUE: Final = 0.05
#: Root mean square error, relative to the answers' standard deviation, below which rounding alone explains errors.
ROUND_OFF: Final = 1e-6
#: Standard deviations of people's values beyond their bits for which the likelihood is computed, in counts.
FURTHER_DEVIATIONS: Final = np.append(0.0, np.geomspace(0.01, 10.0, 61))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The slope of held-out answers on the recovered bits, in counts, and its standard error.

    The slope is 1 where all bits are right and the answers are their sums, and 0 where the answers do not depend on the
    bits. `zero`, `zero_error`: the count that a bit recovered as 0 adds, and its standard error.
    """

    value: float
    error: float
    zero: float
    zero_error: float

    @property
    def low(self) -> float:
        """The lower confidence value of the scale, two standard errors below it."""
        return self.value - SCALE_STANDARD_ERRORS * self.error

    @property
    def high(self) -> float:
        """The upper confidence value of the scale, two standard errors above it."""
        return self.value + SCALE_STANDARD_ERRORS * self.error

    @property
    def significant(self) -> bool:
        """Whether the answers confirm the bits: the scale exceeds 0, and people with bit 0 do not lower the answers."""
        limit = SIGNIFICANT_STANDARD_ERRORS
        return self.value > limit * self.error and self.zero >= -limit * self.zero_error


def held_out_scale(subsets: Subsets, answers: Floats, reconstruction: Reconstruction) -> Scale | None:
    """The scale of answers that the reconstruction did not use, fitted beside a constant and the subsets' sizes.

    Its unit is the scale that the reconstruction itself expects, since some of its bits are wrong. None where the
    answers determine no scale, as where all bits are equal and predict no more than a constant.
    """
    expected = _expected_scale(reconstruction)
    columns = np.column_stack(
        [
            subsets.sums(reconstruction.bits.astype(np.float64)),
            subsets.sums(np.ones(subsets.people)),
            np.ones(len(answers)),
        ]
    )
    spare = len(answers) - columns.shape[1]
    if spare < 2 or expected < MIN_CONTRAST or np.linalg.matrix_rank(columns) < columns.shape[1]:
        return None
    # The limits of clipping do not depend on the bits, so clipping adds no scale to answers that have no scale.
    middle = float(np.median(answers))
    if (far := CLIP_MEDIAN_DEVIATIONS * float(np.median(np.abs(answers - middle)))) > 0:
        answers = np.clip(answers, middle - far, middle + far)
    gram = columns.T @ columns
    values = np.linalg.solve(gram, columns.T @ answers)
    errors = np.sqrt(np.sum((columns @ values - answers) ** 2) / spare * np.maximum(np.diag(np.linalg.inv(gram)), 0.0))
    # Sums of this size are rounded by about 1e-9, so no standard error is smaller.
    errors = np.maximum(errors, 1e-9)
    return Scale(
        value=float(values[0]) / expected,
        error=float(errors[0]) / expected,
        zero=float(values[1]),
        zero_error=float(errors[1]),
    )


def _expected_scale(reconstruction: Reconstruction) -> float:
    """The scale that a fit predicts for fresh answers; 1 if the fit has no probabilities, or all bits are equal."""
    ones = reconstruction.bits == 1
    if reconstruction.expected_right is None or ones.all() or not ones.any():
        return 1.0
    return float(reconstruction.fractions[ones].mean() - reconstruction.fractions[~ones].mean())


def pooled_scale(scales: Sequence[Scale | None]) -> Scale | None:
    """The mean of independent scales, each weighted by the inverse of its variance; None if all scales are None."""
    known = [scale for scale in scales if scale is not None]
    if not known:
        return None

    def mean(values: list[float], errors: list[float]) -> tuple[float, float]:
        weights = 1 / np.array(errors) ** 2
        return float(weights @ values / weights.sum()), 1 / math.sqrt(weights.sum())

    value, error = mean([scale.value for scale in known], [scale.error for scale in known])
    zero, zero_error = mean([scale.zero for scale in known], [scale.zero_error for scale in known])
    return Scale(value=value, error=error, zero=zero, zero_error=zero_error)


def claims_of_fit(fit: Reconstruction, scale: Scale | None) -> Floats:
    """The claimed probability that each bit of a least-squares fit is right, at least 1/2, shape (n,)."""
    means, variances = _fitted_values(fit)
    claims = np.ones(len(fit.bits))
    if scale is None or not scale.significant:
        return claims / 2
    # Scales above 1 are tried only where the answers exclude 1: in a sum of bits a bit adds at most 1.
    high = 1.0 if scale.low < 1 else scale.high
    for tried in (*np.linspace(scale.low, high, TRIED_SCALES), 1.0):
        odds = tried * (means - tried / 2) / (variances + _further_variance(means, variances, tried))
        claims = np.minimum(claims, expit(np.where(fit.bits == 1, odds, -odds)))
    if scale.low > 1:
        # A system may sample a fraction 1/scale of the people and scale their sum up: a 0 may be a person left out.
        claims = np.where(fit.bits == 0, np.minimum(claims, 1 / (2 - 1 / scale.high)), claims)
    return np.maximum(claims, 0.5)


def equal_ones_p_value(subsets: Subsets, answers: Floats, plain: Reconstruction, bits: PersonBits) -> float:
    """The p-value (F test) of the assumption that all people with bit 1 add the same number, and all others add 0.

    `plain`: a least-squares fit to these answers that is not sharpened, so that values are not rounded to bits.
    """
    # Squared errors of two nested fits, both with a constant: by the sum of the bits, and by each person's own value.
    sums, fitted = subsets.sums(bits.astype(np.float64)), subsets.sums(_fitted_values(plain)[0])
    sums, centred = sums - sums.mean(), answers - answers.mean()
    of_bits = float(centred @ centred) - float(sums @ centred) ** 2 / max(float(sums @ sums), 1e-9)
    of_values = float(np.sum((centred - fitted + fitted.mean()) ** 2))
    people, spare = subsets.people, len(answers) - subsets.people - 1
    least = spare * (ROUND_OFF * float(np.std(answers))) ** 2
    if spare <= 0 or people < 2 or not least:
        return 1.0
    ratio = (of_bits - of_values) / (people - 1) / (max(of_values, least) / spare)
    return float(fdtrc(people - 1, spare, max(ratio, 0.0)))


def pairs_add_more(subsets: Subsets, answers: Floats, plain: Reconstruction) -> bool:
    """Whether some two people together add another number than the sum of both, so that answers are not sums.

    The statistic of a pair is the slope, in standard errors, of the errors of `plain` least squares on whether both
    people are in a subset. Subsets are drawn at random, so errors of any law that ignore them have slopes near 0.
    """
    number, people = len(answers), subsets.people
    spare = number - people - 1
    errors = answers - subsets.sums(_fitted_values(plain)[0])
    errors -= errors.mean()
    spread = math.sqrt(float(errors @ errors) / max(spare, 1))
    if spare <= 0 or people < 2 or spread <= ROUND_OFF * float(np.std(answers)):
        return False
    sizes, together = subsets.moments(np.ones(number)), subsets.gram()
    # The number of subsets with both people of a pair, with either person alone, and with neither person.
    first, second = np.triu_indices(people, 1)
    both = together[first, second]
    kinds = np.stack([both, sizes[first] - both, sizes[second] - both, number - sizes[first] - sizes[second] + both])
    told = kinds.min(axis=0) > 0
    slopes = subsets.weighted(errors, errors)[0][first, second][told]
    deviation = spread / np.sqrt(np.sum(1 / kinds[:, told], axis=0))
    most = -NormalDist().inv_cdf(LEVEL / (2 * max(len(slopes), 1)))
    return bool(np.any(np.abs(slopes) > most * deviation))


def _fitted_values(fit: Reconstruction) -> tuple[Floats, Floats]:
    """The means and variances of a least-squares fit, which are never None."""
    assert fit.means is not None
    assert fit.variances is not None
    return fit.means, fit.variances


def _further_variance(means: Floats, variances: Floats, scale: float) -> float:
    """The largest variance of people's values beyond their bits and errors that the likelihood admits, in counts²."""
    logs = []
    for deviation in FURTHER_DEVIATIONS:
        variance = np.maximum(variances + deviation**2, 1e-12)
        away = np.stack([means**2, (means - scale) ** 2]) / (2 * variance)
        logs.append(float(np.sum(np.logaddexp(-away[0], -away[1]) - np.log(variance) / 2)))
    return float(FURTHER_DEVIATIONS[np.flatnonzero(np.array(logs) >= max(logs) - LIKELIHOOD_NATS)[-1]] ** 2)
