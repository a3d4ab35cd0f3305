"""How far to trust a reconstruction: how well it predicts answers that it did not use.

The subsets are drawn by the attack, so whatever a system answers, the mean of its answers with a person less the mean
without them is what that person's bit adds. A system that answers sums of bits adds 1 for each 1 and 0 for each 0; one
that answers a share of them, or something else, adds less. What is claimed of a bit is the least that it is under all
such scales, and all further differences between people, that the answers leave open.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from dpwitness.reconstruction.subset_sum.linear_decoding import Bits, Flags, Floats, Reconstruction, Subsets, expit

#: Standard errors by which a scale may be off.
ERRORS: Final = 2.0
#: Standard errors by which it must differ from 0, for anything to be claimed: one system of noise in 700 shows as much.
SHOWN: Final = 3.0
#: Median deviations from their median within which answers count in full: of normal ones all but one in a million.
CLIPPED: Final = 7.3
#: Nats by which a likelihood may be below the largest one: two standard errors.
LIKELY: Final = 2.0
#: Scales that are tried between the limits.
SCALES: Final = 5
#: The least part of the bits' scale that a prediction is expected to bear out, if it is to tell anything of it.
LEAST: Final = 0.02
#: Standard errors, and parts of a count beyond them, by which a person is off 0 and 1: none in 15,000 is by chance.
BETWEEN_ERRORS: Final = 4.0
BETWEEN: Final = 0.05
#: In parts of what others with a 1 add: what some people may add for theirs. 0: all add the same.
PARTS: Final = np.linspace(0.0, 0.9, 10)
#: Nats by which this must explain people's values better to be as probable as that all add the same: of 64 people with
#: equal ones one system in 30 shows as much.
DOUBT: Final = 2.0
#: Bits by which this must lower what is claimed, to be told.
TOLD: Final = 1.0
#: Steps of expectation maximization: more change a likelihood by less than a nat.
STEPS: Final = 60
#: The share of systems that answer sums of bits in which some pair of people seems to add another number together.
PAIRED: Final = 1e-3
#: Of least squares: what is added to the diagonal, in parts of the number of answers; and up to what part of the
#: answers' spread errors are those of rounding.
RIDGE: Final = 1e-9
ROUNDING: Final = 1e-6
#: Standard deviations by which people's values may differ beyond their bits, in counts.
FURTHER: Final = np.append(0.0, np.geomspace(0.01, 10.0, 61))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Confidence:
    """What is claimed of a reconstruction without the truth, and on what that rests; None: not measured.

    Attributes
    ----------
    expected_right
        How many bits are claimed to be right.
    bits
        The probability with which each bit is claimed to be right, 1/2 where nothing is claimed, shape (n,).
    fresh_questions, fresh_error, fresh_error_of_constant
        How many answers were kept for checking, and by how much the reconstruction misses them, and the best constant
        answer: root mean squares, in counts.
    halves_agree_on
        Of how many bits two reconstructions from two halves of the questions agree.
    scale, scale_error
        See `Scale`: of the fresh answers, and of either half of the others as the other half predicts them.
    between
        How many people add neither 0 nor as much as others whose bit is 1: nothing is claimed of them, and of others no
        more than that as many more may be so.
    less
        About how many people seem to add a part of what others with a 1 add, where this lowers what is claimed.
    """

    expected_right: float
    bits: Floats
    basis: str
    fresh_questions: int | None = None
    fresh_error: float | None = None
    fresh_error_of_constant: float | None = None
    halves_agree_on: int | None = None
    scale: float | None = None
    scale_error: float | None = None
    between: int = 0
    less: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """By how much more a bit recovered as 1 adds to answers than one recovered as 0, in counts, and the standard error.

    1 where all bits are right and the answers are their sums; 0 where the answers say nothing. `zero`: how much a bit
    recovered as 0 adds, and the standard error of that.
    """

    value: float
    error: float
    zero: float
    zero_error: float

    @property
    def low(self) -> float:
        """The least that it may be."""
        return self.value - ERRORS * self.error

    @property
    def high(self) -> float:
        """The most that it may be."""
        return self.value + ERRORS * self.error

    @property
    def significant(self) -> bool:
        """Whether the answers confirm the bits at all. A bit of 0 that lowers the sums does not count."""
        return self.value > SHOWN * self.error and self.zero >= -SHOWN * self.zero_error


def held_out_scale(subsets: Subsets, answers: Floats, reconstruction: Reconstruction) -> Scale | None:
    """The scale that answers show which a reconstruction was not made of, beside a constant and the subsets' sizes.

    In parts of the scale that the reconstruction itself expects, since some of its bits are wrong. None: nothing can be
    said, as where all bits are alike, which predicts no more than a constant does.
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
    if spare < 2 or expected < LEAST or np.linalg.matrix_rank(columns) < columns.shape[1]:
        return None
    # By the answers alone: what has nothing to do with the bits shows none when it is clipped.
    middle = float(np.median(answers))
    if (far := CLIPPED * float(np.median(np.abs(answers - middle)))) > 0:
        answers = np.clip(answers, middle - far, middle + far)
    gram = columns.T @ columns
    values = np.linalg.solve(gram, columns.T @ answers)
    errors = np.sqrt(np.sum((columns @ values - answers) ** 2) / spare * np.maximum(np.diag(np.linalg.inv(gram)), 0.0))
    # No error is below what sums of this size are rounded to.
    errors = np.maximum(errors, 1e-9)
    return Scale(
        value=float(values[0]) / expected,
        error=float(errors[0]) / expected,
        zero=float(values[1]),
        zero_error=float(errors[1]),
    )


def _expected_scale(reconstruction: Reconstruction) -> float:
    """The scale that a least-squares fit expects fresh answers to show, 1 where all its bits are certain."""
    ones = reconstruction.bits == 1
    if reconstruction.expected_right is None or ones.all() or not ones.any():
        return 1.0
    return float(reconstruction.fractions[ones].mean() - reconstruction.fractions[~ones].mean())


def pooled_scale(scales: Sequence[Scale | None], *, correlation: float = 0.0) -> Scale | None:
    """Several measurements as one, each weighted by the inverse of its variance; None where there is none.

    `correlation`: of each two of them.
    """
    some = [one for one in scales if one is not None]
    if len(some) < 2:
        return some[0] if some else None

    def mean(values: list[float], errors: list[float]) -> tuple[float, float]:
        weights = 1 / np.array(errors) ** 2
        inflated = 1 + correlation * (len(errors) - 1)
        return float(weights @ values / weights.sum()), math.sqrt(inflated / weights.sum())

    value, error = mean([one.value for one in some], [one.error for one in some])
    zero, zero_error = mean([one.zero for one in some], [one.zero_error for one in some])
    return Scale(value=value, error=error, zero=zero, zero_error=zero_error)


def claims_of_fit(fit: Reconstruction, scale: Scale | None) -> Floats:
    """The probability with which each bit of a least-squares fit is claimed to be right, at least 1/2, shape (n,)."""
    means, variances = _values(fit)
    claims = np.ones(len(fit.bits))
    if scale is None or not scale.significant:
        return claims / 2
    # Above 1 only where the answers exclude 1: there are no sums of bits in which a bit adds more.
    high = 1.0 if scale.low < 1 else scale.high
    for tried in (*np.linspace(scale.low, high, SCALES), 1.0):
        odds = tried * (means - tried / 2) / (variances + _further_variance(means, variances, tried))
        claims = np.minimum(claims, expit(np.where(fit.bits == 1, odds, -odds)))
    return np.maximum(claims, 0.5)


def people_between(plain: Reconstruction, scale: Scale) -> Flags:
    """Who adds neither 0 nor what a bit adds, by `plain` least squares, which takes nobody for a bit; shape (n,)."""
    means, variances = _values(plain)
    far = BETWEEN_ERRORS * np.sqrt(variances) + BETWEEN
    between = (means > far) & (means < min(scale.low, 1.0) - far)
    return np.asarray(between | (means < -far) | (means > max(scale.high, 1.0) + far))


def claims_of_parts(claims: Floats, bits: Bits, plain: Reconstruction, scale: Scale, spare: int) -> tuple[Floats, int]:
    """The claims, or less where some people's ones seem to add a part of what others' add; and how many people's do.

    Values are 0, a part of a number or that number, and normal errors beside it. For each part the likelihood of
    `plain` least squares is maximized (expectation maximization) over the number, how many people add which, and the
    errors' variance, which `spare` more answers than people and a constant tell. Nobody's own value need show it: that
    those near 0 are too many on one side is enough. The more a part is preferred to equal ones, the nearer is a claim
    to the probability that it leaves; the least counts.
    """
    means, variances = _values(plain)
    variances = np.maximum(variances, 1e-12)
    people, parts = len(means), len(PARTS)
    counts = np.tile([0.5, 0.25, 0.25], (parts, 1))
    counts[0] = 0.5, 0.0, 0.5  # all add the same: there is no part
    shares = np.stack([np.zeros(parts), PARTS, np.ones(parts)], axis=1)
    number, wider = np.full(parts, scale.value), np.ones(parts)  # what others add; the variance, in parts of `plain`'s
    for step in range(STEPS + 1):
        away = (means - (number[:, np.newaxis] * shares)[:, :, np.newaxis]) ** 2 / variances
        logs = -away / (2 * wider[:, np.newaxis, np.newaxis])
        top = logs.max(axis=1, keepdims=True)
        each = counts[:, :, np.newaxis] * np.exp(logs - top)
        total = each.sum(axis=1, keepdims=True)
        each /= total
        if step == STEPS:
            break
        counts = np.maximum(each.mean(axis=2), 1e-9)  # none is 0: people may come to be nearest to it
        held = each / variances
        number = np.sum((held @ means) * shares, axis=1) / np.maximum(
            np.sum(held.sum(axis=2) * shares**2, axis=1), 1e-9
        )
        wider = (spare + np.sum(each * away, axis=(1, 2))) / (spare + people)
    likelihood = np.sum(np.log(total) + top, axis=(1, 2)) - (people + spare) / 2 * np.log(wider) - spare / 2 / wider
    odds = np.append(0.0, expit(likelihood[1:] - likelihood[0] - DOUBT))
    zeros = each[:, 0]
    left = np.minimum(np.where(bits == 1, 1 - zeros, zeros), claims)
    lowered = np.maximum(claims + np.min(odds[:, np.newaxis] * (left - claims), axis=0), 0.5)
    best = int(np.argmax(odds))
    shown = odds[best] > 0.5 and lowered.sum() < claims.sum() - TOLD
    return lowered, max(round(float(people * counts[best, 1])), 1) if shown else 0


def together_matter(subsets: Subsets, answers: Floats) -> bool:
    """Whether two people add another number together than each without the other: then answers are no sums.

    Of each pair, the slope of the errors of plain least squares on whether both are in a subset, in standard errors.
    Subsets are drawn, so errors of any law that do not depend on them show none.
    """
    number, people = len(answers), subsets.people
    spare = number - people - 1
    if spare <= 0 or people < 2:
        return False
    sizes, together = subsets.moments(np.ones(number)), subsets.gram()
    centred = together - np.outer(sizes, sizes) / number
    centred[np.diag_indices(people)] += RIDGE * number  # conditions may not tell people apart
    errors = answers - answers.mean()
    values: Floats = np.linalg.solve(centred, subsets.moments(errors)).astype(np.float64)
    errors = errors - subsets.sums(values)
    errors -= errors.mean()
    spread = math.sqrt(float(errors @ errors) / spare)
    if spread <= ROUNDING * float(np.std(answers)):
        return False
    # Of how many subsets each pair makes one or the other kind: both, one, the other one, neither.
    first, second = np.triu_indices(people, 1)
    both = together[first, second]
    kinds = np.stack([both, sizes[first] - both, sizes[second] - both, number - sizes[first] - sizes[second] + both])
    told = kinds.min(axis=0) > 0
    slopes = subsets.weighted(errors, errors)[0][first, second][told]
    deviation = spread / np.sqrt(np.sum(1 / kinds[:, told], axis=0))
    most = -NormalDist().inv_cdf(PAIRED / (2 * max(len(slopes), 1)))
    return bool(np.any(np.abs(slopes) > most * deviation))


def claims_of_sums(claims: Floats, bits: Bits, between: Flags, scale: Scale) -> Floats:
    """The claims, or less where the answers show that they are no sums of bits; shape (n,).

    Where some people add neither 0 nor 1, 1/2 of these, and of others the share of the others, by Laplace's rule of
    succession: one of them may be so near to 0 or 1 that it does not show. Where a bit adds s > 1 the sums may be of a
    part 1/s of the people, scaled up: who adds 0 then is as often one who is left out.
    """
    if found := int(between.sum()):
        claims = np.where(between, 0.5, np.clip(claims, 0.5, 1 - (found + 1) / (len(claims) + 2)))
    if scale.low > 1:
        claims = np.where(bits == 0, np.minimum(claims, 1 / (2 - 1 / scale.high)), claims)
    return claims


def claim_of_program(fit: Reconstruction, scale: Scale | None, agree: int | None) -> float:
    """The probability with which every bit of a linear program is claimed to be right, at least 1/2.

    `fit`: of least squares to the same answers, which shows how far people differ beyond their bits; `agree`: of how
    many bits two halves of the questions agree.
    """
    if scale is None or not scale.significant:
        return 0.5
    means, variances = _values(fit)
    further = math.sqrt(_further_variance(means, variances, 1.0))
    right = (1 + math.erf(0.5 / further / math.sqrt(2))) / 2 if further else 1.0
    return max(min(_right_of_agreement(agree, len(means)), (1 + scale.low) / 2, right), 0.5)


def _values(fit: Reconstruction) -> tuple[Floats, Floats]:
    assert fit.means is not None
    assert fit.variances is not None
    return fit.means, fit.variances


def _further_variance(means: Floats, variances: Floats, scale: float) -> float:
    """The most variance that values have beyond bits of a scale and their errors, as far as the likelihood allows."""
    logs = []
    for deviation in FURTHER:
        variance = np.maximum(variances + deviation**2, 1e-12)
        away = np.stack([means**2, (means - scale) ** 2]) / (2 * variance)
        logs.append(float(np.sum(np.logaddexp(-away[0], -away[1]) - np.log(variance) / 2)))
    return float(FURTHER[np.flatnonzero(np.array(logs) >= max(logs) - LIKELY)[-1]] ** 2)


def _right_of_agreement(agree: int | None, size: int) -> float:
    """The share p of bits that are right if each is in either half, independently: p² + (1 − p)² of them agree.

    Of the share that agrees a standard deviation is taken off: where bits agree by chance, nothing is claimed.
    """
    share = 0.5 if agree is None else agree / size
    share = max(share - math.sqrt(share * (1 - share) / size), 0.5)
    return (1 + math.sqrt(2 * share - 1)) / 2
