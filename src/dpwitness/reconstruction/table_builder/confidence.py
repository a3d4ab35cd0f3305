"""The confidence in recovered counts, which an attack estimates without the truth, from the noise of its answers.

First, a mean and its standard error give the probability that a whole number is right. Second, least squares of the
single answers (`fit_counts`) estimate counts without the bias of sums of partitions: over many partitions a value lies
on either side equally often, so that noise with a mean other than 0 moves the sums, but no value's count. Third,
`examine` compares all estimates with the attack's assumptions: counts are whole, so estimates must lie near whole
numbers, within their standard errors, and different estimates of one count must agree. Noise that breaks the
assumptions (correlated, keyed by something else than the people, garbled) moves estimates by fractions, which this
comparison detects. A whole number that the system adds to a value in all questions looks like people, undetected.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final, TypeAlias

import numpy as np

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.reconstruction.table_builder.averaging import (
    AnsweredBlock,
    Average,
    Sums,
    nearest,
    noise_variance,
    outliers,
    usable,
)

#: An estimate of a count and its standard error, in people.
Estimate: TypeAlias = tuple[float, float]
#: Estimate of a count, in people, about which the answers say nothing.
UNKNOWN_ESTIMATE: Final[Estimate] = (math.nan, math.inf)


def probability_right(mean: float, count: int, standard_error: float, least: int | None = None) -> float:
    """The probability that `count` is the true count, given its unbiased, normal estimate `mean`, in people.

    A standard error of 0 means that the mean is the true count, an infinite error that nothing is known. All whole
    numbers from `least` on have the same prior probability, so that over many counts the average of these probabilities
    is the share of right counts. The noise must have mean 0 and be independent between different sets of people: the
    probability does not account for noise that all questions share, such as a layer of layered noise.
    """
    if not standard_error > 0:
        return float(count == mean)
    if standard_error == math.inf:
        return 0.0
    rivals = max(math.floor(mean), math.floor(mean) if least is None else least) + _rival_offsets(standard_error)
    if least is not None:
        rivals = rivals[rivals >= least]
    squares = np.square((rivals - mean) / standard_error)
    weights = np.exp((squares.min() - squares) / 2)
    return float(weights[rivals == count].sum() / weights.sum())


def difference_right(base: Estimate, other: Estimate, sign: int, count: int) -> float:
    """The probability that `count`, at least 0, is right, if another set's count is the base set's + `sign`·count.

    Both estimates, `base` and `other`, are unbiased, normal and independent. As in `probability_right`, all counts have
    the same prior probability, also the counts of the base set: if both means have the same error, the difference is
    right.
    """
    (mean, error), (more, spread) = base, other
    if not (error > 0 and spread > 0):
        return float(count == sign * (more - mean))
    if math.inf in (error, spread):
        return 0.0
    bases = math.floor(mean) + _rival_offsets(error)
    rivals = max(count, 0) + _rival_offsets(error + spread)
    rivals = rivals[rivals >= 0]
    exponents = -np.square((bases[:, None] - mean) / error) / 2
    exponents = exponents - np.square((bases[:, None] + sign * rivals - more) / spread) / 2
    weights = np.exp(exponents - exponents.max()).sum(axis=0)
    return float(weights[rivals == count].sum() / weights.sum())


def _rival_offsets(standard_error: float) -> Integers:
    """The differences, in people, of rival counts from an estimate."""
    # Counts nine standard errors away have a weight of e⁻⁴⁰; at most 2 · 1,024 + 1 rivals are weighed.
    reach = min(math.ceil(9.0 * standard_error) + 2, 1 << 10)
    return np.arange(-reach, reach + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The counts of an attribute's values by least squares, in people; NaN, with an infinite error, where undetermined.

    `chance`: an upper bound of the p-value of the assumption that noises do not depend on the order of questions, nor
    on a question's number of values, names of values, or number of people.
    """

    counts: Floats  # unbiased for every mean of the noise, shape (values,)
    errors: Floats  # the standard errors of the counts, shape (values,)
    offset: float  # the mean of the noise
    offset_error: float  # the standard error of `offset`
    variance: float  # the variance of one noise (people²)
    chance: float


def fit_counts(asked: Sequence[AnsweredBlock]) -> Fit | None:
    """Fit the counts of values to answers of one `place`: an answer is its values' counts + the noise's mean + a noise.

    Answers that are `outliers` of the fit are left out. A standard error is the larger of two estimates, with a common
    variance of all noises and without (White 1980). None for fewer than two answers for each unknown.
    """
    selections, answers = _select_distinct_questions(asked)
    known = np.flatnonzero(selections.any(axis=0))
    unknowns = len(known) + 1
    design = np.hstack([selections[:, known], np.ones((len(answers), 1))]).astype(np.float64)
    kept = np.ones(len(answers), np.bool_)
    for _ in range(30):  # an upper limit: the loop ends when the outliers stay the same
        left = design[kept]
        if len(left) < 2 * unknowns:
            return None
        inverse = np.linalg.pinv(left.T @ left, rcond=1e-9, hermitian=True)
        solution = inverse @ (left.T @ answers[kept])
        errors = answers - design @ solution
        before, kept = kept, ~outliers(errors - np.median(errors[kept]))
        if np.array_equal(before, kept):
            break
    left, residuals = design[before], errors[before]
    spread = len(left) / (len(left) - unknowns)
    variance = float(np.mean(np.square(residuals))) * spread
    white = np.square((left @ inverse) * residuals[:, None]).sum(axis=0) * spread
    error = np.sqrt(np.maximum(variance * np.diag(inverse), white))
    identified = np.abs(np.diag(inverse @ (left.T @ left)) - 1) < 1e-6
    solution, error = np.where(identified, solution, np.nan), np.where(identified, error, np.inf)
    counts, spreads = np.full(selections.shape[1], np.nan), np.full(selections.shape[1], np.inf)
    counts[known], spreads[known] = solution[:-1], error[:-1]
    return Fit(
        counts=counts,
        errors=spreads,
        offset=float(solution[-1]),
        offset_error=float(error[-1]),
        variance=variance,
        chance=_dependence_p_value(selections[before], np.round(answers[before] - residuals), residuals),
    )


def _select_distinct_questions(asked: Sequence[AnsweredBlock]) -> tuple[Booleans, Integers]:
    """The plausible questions and their answers, each question once, since the same people have the same noise."""
    selections = np.vstack([one.selections for one in asked])
    answers = np.concatenate([one.answers for one in asked])
    plausible = np.concatenate([_flag_plausible(one.answers) for one in asked])
    _, first = np.unique(np.packbits(selections[plausible], axis=1), axis=0, return_index=True)
    first = np.sort(first)  # `_dependence_p_value` needs the order of asking
    return selections[plausible][first], answers[plausible][first]


def _flag_plausible(answers: Integers) -> Booleans:
    """Flags of the usable answers whose partition's sum is not an outlier; first sides, then second sides."""
    plausible = usable(answers)
    halves = answers.reshape(2, -1)
    both = np.asarray(np.all(plausible.reshape(2, -1), axis=0))
    wrong = np.zeros(len(both), np.bool_)
    wrong[both] = outliers(halves[:, both].sum(axis=0))
    return plausible & ~np.tile(wrong, 2)


def _dependence_p_value(selections: Booleans, people: Floats, residuals: Floats) -> float:
    """An upper bound of the p-value of the assumption of `Fit.chance`."""
    from scipy.stats import chi2, norm  # half a second

    n = len(residuals)
    noise = residuals - residuals.mean()
    variance = float(noise @ noise) / n
    # Residuals of exact answers are rounding errors of about 1e-9 of the largest count.
    if not variance > (1e-9 * max(1.0, float(np.abs(people).max(initial=0.0)))) ** 2:
        return 1.0
    p_values = []
    groups = (
        np.arange(n) * 16 // n,
        selections.sum(axis=1),
        selections.argmax(axis=1),
        selections.shape[1] - selections[:, ::-1].argmax(axis=1),
        people,
    )
    for group in groups:
        _, place, size = np.unique(group, return_inverse=True, return_counts=True)
        # A group of one noise does not show dependence.
        sums, many = np.bincount(place, weights=noise), size > 1
        square = float(np.sum(np.square(sums[many]) / size[many])) / variance
        p_values.append(float(chi2.sf(square, max(int(np.count_nonzero(many)), 1))))
    for lag in (1, 2, 3, 4, 5, 8, 16, 32, 64):
        if 8 * lag < n:
            correlation = float(noise[lag:] @ noise[:-lag]) / (variance * math.sqrt(n - lag))
            p_values.append(2 * float(norm.sf(abs(correlation))))
    return min(1.0, len(p_values) * min(p_values))


#: Level of each check of the assumptions: one check in 1,000 fails although the assumptions hold.
LEVEL: Final = 1e-3
#: Standard errors beyond a limit at which an estimate contradicts the assumptions: one normal estimate in 3 million.
CONTRADICTION_STANDARD_ERRORS: Final = 5.0
#: Smallest standard error, in people: few answers that agree by chance would have a standard error of 0.
MIN_STANDARD_ERROR: Final = 1e-3
#: Text of the contradiction that estimates lie between whole numbers.
FRACTIONAL_COUNTS: Final = (
    "counts are not whole: the noise of different questions is not independent, or answers are no counts"
)
#: Text of the contradiction that noises depend on the questions.
DEPENDENT_NOISE: Final = (
    "noises are not independent: they depend on the order of questions, or on more than the people counted"
)
#: Text of the contradiction that sets of the same people have different counts.
CHANGED_PEOPLE: Final = "counts of the same people do not agree: people came or left meanwhile, or the noise has a mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A set of values whose count gives the count of `value`: `sign`·(set − base set), or set if `sign` is 0.

    `published`: the system's own answer for the value.
    """

    value: int
    values: Integers
    sign: int
    published: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """The count of each value, and the probability that it is right.

    `failed`: the contradictions of the answers to the assumptions, in words; () if they agree.
    """

    counts: tuple[int, ...]
    confidence: tuple[float, ...]
    failed: tuple[str, ...]


@dataclass(slots=True)
class _Deviations:
    """The deviations of estimates from their expected values, in people.

    `rows`: deviation, standard error, number of noise means in the estimate, and whether the estimate would lie
    anywhere between whole numbers if the assumptions were broken.
    """

    rows: list[tuple[float, float, float, bool]] = field(default_factory=list)

    def add(self, apart: float, error: float, offsets: float = 0.0, *, telling: bool = False) -> None:
        """Add the difference of two estimates of one count, unless its standard error is infinite."""
        if error < math.inf:
            self.rows.append((apart, error, offsets, telling))

    def add_average(self, one: Average, variance: float | None, people: int, offset: float) -> None:
        """Add the difference between an average and its value by a fit: `people`, and the noise's mean `offset`."""
        self.add(one.mean - (people + one.noises * offset), one.error(variance), one.noises)

    def add_whole(self, estimate: float, error: float, offsets: float = 0.0) -> None:
        """Add the difference of an estimate from the nearest whole number, unless its error is above 0.2 people."""
        if error <= 0.2:  # with a larger error fractions and whole numbers look alike
            self.add(estimate - nearest(estimate), error, offsets, telling=True)

    def judge(self, offset_error: float) -> tuple[float, float, float]:
        """The Birge ratio, the p-value of the deviations, and the likelihood ratio of whole numbers.

        The likelihood ratio compares these deviations with estimates that lie anywhere between whole numbers. Estimates
        that use the estimated mean of the noise share its error, `offset_error`, which is one more unknown.
        """
        if not self.rows:
            return 1.0, 1.0, 1.0
        from scipy.stats import chi2, norm  # half a second

        apart, errors, offsets, telling = map(np.array, zip(*self.rows, strict=True))
        weights = 1 / np.square(np.maximum(errors, MIN_STANDARD_ERROR))
        known = 1 / max(offset_error, MIN_STANDARD_ERROR) ** 2
        precision = float(offsets @ (weights * offsets)) + known
        shared = float(offsets @ (weights * apart)) / precision
        square = float(weights @ np.square(apart)) - precision * shared**2
        largest = float(np.max(np.sqrt(weights) * np.abs(apart - offsets * shared)))
        number = len(apart)
        p_value = min(1.0, 2 * float(chi2.sf(square, number)), 4 * number * float(norm.sf(largest)))
        squares = weights * np.square(apart - offsets * shared)
        log = float(np.log(weights / (2 * math.pi))[telling].sum()) - math.log(precision / known)
        log = 0.5 * (log - float(squares[telling].sum()) - known * shared**2)
        return math.sqrt(max(square / number, 1.0)), p_value, math.exp(min(log, 50.0))


def examine(
    attribute: str,
    differences: Sequence[Difference],
    averages: Sequence[Average],
    first: Average,
    again: Sequence[tuple[Integers, Average]] = (),
    *,
    fitted: bool = True,
) -> Examination:
    """Compare all estimates of the counts with each other; return the counts, probabilities and contradictions.

    Parameters
    ----------
    attribute
        The attribute whose values are counted.
    differences, averages
        The sets of values that were counted, and their counts.
    first, again
        The base set's count; and some sets with their counts by another attribute's partitions, the base set first, or
        () without another attribute.
    fitted
        False: Algorithm 4 gives the counts, even if the fit has smaller standard errors.
    """
    variance = noise_variance([first, *averages])
    base = [block for block in first.asked if block.attribute == attribute]
    fit = fit_counts(base) if base else None
    estimates = [
        UNKNOWN_ESTIMATE
        if fit is None or one.sign >= 0
        else (float(fit.counts[one.value]), float(fit.errors[one.value]))
        for one in differences
    ]
    deviations, offset_error = _Deviations(), 0.0
    if decisive := fit is not None and _is_decisive(fit, base):
        whole = np.nan_to_num(np.floor(fit.counts + 0.5)).astype(np.int64)
        fit = _with_counts(fit, base, whole)
        offset_error = fit.offset_error
        for values, other in again:
            deviations.add_average(other, variance, int(whole[values].sum()), fit.offset)
        for i, (one, other) in enumerate(zip(differences, averages, strict=True)):
            if one.sign < 0:
                deviations.add_average(other, variance, int(whole[one.values].sum()), fit.offset)
            elif one.sign > 0 and (alone := _count_outside(attribute, one.value, whole, fit, other.asked)):
                estimates[i] = alone[0], math.hypot(alone[1], offset_error)
                deviations.add_whole(*alone, 1.0)
    else:
        for _, other in again[:1]:
            deviations.add(other.mean - first.mean, math.hypot(other.error(variance), first.error(variance)))
        for other in (first, *averages):
            deviations.add_whole(other.mean, other.error(variance))
    for other in (first, *averages):
        for apart in _compare_attributes(other, variance):
            deviations.add(*apart)
    fits = [] if fit is None else [fit]
    for other in (first, *averages, *(other for _, other in again)):
        groups = _group_by_place([one for one in other.asked if one.attribute != attribute])
        fits += [one for one in map(fit_counts, groups) if one is not None]
    for each in fits:
        for estimate in zip(each.counts.tolist(), each.errors.tolist(), strict=True):
            deviations.add_whole(*estimate)
    # All standard errors are multiplied by the ratio (Birge 1932).
    ratio, p_value, likelihood_ratio = deviations.judge(offset_error)
    failed = tuple(_contradictions(p_value, fits, estimates, [first, *averages], variance))
    if not decisive and _have_people_changed(differences, averages, first, estimates, fits, variance):
        failed = (*failed, CHANGED_PEOPLE)
    # The probability that the assumptions hold, by a prior of 1/2; else estimates lie anywhere between whole numbers.
    held = likelihood_ratio / (1 + likelihood_ratio)
    # The count of a value outside the base set depends on all base values.
    base_right = _probability_all_right(fit, ratio) if decisive and fit is not None else 1.0
    counts, confidence = [], []
    for one, other, estimate in zip(differences, averages, estimates, strict=True):
        by_fit = estimate if fitted and not failed else UNKNOWN_ESTIMATE
        count, right = _better_count(one, other, first, variance, ratio, by_fit)
        counts.append(count)
        confidence.append(held * (base_right if one.sign > 0 else 1.0) * right)
    return Examination(counts=tuple(counts), confidence=tuple(confidence), failed=failed)


def _have_people_changed(
    differences: Sequence[Difference],
    averages: Sequence[Average],
    first: Average,
    estimates: Sequence[Estimate],
    fits: Sequence[Fit],
    variance: float | None,
) -> bool:
    """Whether counts of the base set without one value contradict the earlier count of the base set.

    The set without a value should have the base set's people less the fit's count of the value. Where no fit determines
    the counts, the sets without one of n values together have n − 1 times as many people as the base set. A difference
    that a mean of the noise explains is no change.
    """
    from scipy.stats import norm, t  # half a second

    taken = [place for place, one in enumerate(differences) if one.sign < 0]
    if not variance:  # the attack claims nothing then; three sums that agree by chance have a variance of 0, too
        return False
    # Few sums estimate the noise badly: standard errors grow by the ratio of Student's and normal quantiles.
    freedom = sum(one.freedom for one in (first, *averages))
    wide = float(t.isf(LEVEL / 4, freedom) / norm.isf(LEVEL / 4))
    without, apart, error = [averages[place] for place in taken], _Deviations(), first.error(variance)
    for place, other in zip(taken, without, strict=True):
        count, spread = estimates[place]
        if (both := math.hypot(other.error(variance), spread)) <= 0.5:  # small enough to show a change by one person
            apart.add(other.mean - (first.mean - count), wide * both, 1.0)
    values = {differences[place].value for place in taken}
    if apart.rows or not taken or not all(values.issuperset(differences[place].values.tolist()) for place in taken):
        return apart.judge(wide * error)[1] < LEVEL
    n = len(taken)
    more = sum(other.mean for other in without) - (n - 1) * first.mean
    noises = sum(other.noises for other in without) - (n - 1) * first.noises
    apart.add(more, wide * math.hypot((n - 1) * error, *(other.error(variance) for other in without)))
    return apart.judge(0.0)[1] < LEVEL and abs(more - noises * (fits[0].offset if fits else 0)) > abs(more) / 2


def _is_decisive(fit: Fit, asked: Sequence[AnsweredBlock]) -> bool:
    """Whether each asked value has a standard error of at most 0.15 people, so that its count rounds to the truth."""
    selected = np.any([one.selections.any(axis=0) for one in asked], axis=0)
    return bool(np.all(fit.errors[selected] <= 0.15))


def _probability_all_right(fit: Fit, ratio: float) -> float:
    """The probability that all counts of a fit round to the true counts."""
    estimates = zip(fit.counts.tolist(), fit.errors.tolist(), strict=True)
    known = [(count, error) for count, error in estimates if error < math.inf]
    return math.prod(probability_right(count, nearest(count), ratio * error) for count, error in known)


def _with_counts(fit: Fit, asked: Sequence[AnsweredBlock], whole: Integers) -> Fit:
    """The fit with a better estimate of the noise's mean, which the known counts `whole`, shape (values,), give."""
    selections, answers = _select_distinct_questions(asked)
    noise = answers - selections.astype(np.int64) @ whole
    noise = noise[~outliers(noise)]
    error = math.sqrt(max(float(noise.var()), fit.variance) / len(noise))
    return replace(fit, offset=float(noise.mean()), offset_error=error)


def _contradictions(
    p_value: float,
    fits: Sequence[Fit],
    estimates: Sequence[Estimate],
    averages: Sequence[Average],
    variance: float | None,
) -> Iterator[str]:
    if p_value < LEVEL:
        yield FRACTIONAL_COUNTS
    if fits and len(fits) * min(each.chance for each in fits) < LEVEL:
        yield DEPENDENT_NOISE
    units = [np.gcd.reduce(part.answers[usable(part.answers)]) for one in averages for part in one.asked]
    unit = int(np.gcd.reduce(np.array(units, np.int64)))
    # Random rounding is noise with twice the variance of rounding to the nearest multiple: 1.5 separates the two.
    if unit > 1 and variance is not None and variance < 1.5 * (unit**2 - 1) / 12:
        yield f"all answers are multiples of {unit}: they are rounded counts, not counts with noise"
    if any(count < -0.5 - CONTRADICTION_STANDARD_ERRORS * error for count, error in estimates):
        yield "a count is negative: the answers hold more than people and independent noise"
    for each in fits:
        if abs(each.offset) > math.sqrt(each.variance) + CONTRADICTION_STANDARD_ERRORS * each.offset_error:
            yield (
                f"answers are too large or too small by {each.offset:.3g} on average: the published numbers are not "
                "counts with noise"
            )
            break


def _better_count(
    one: Difference, other: Average, first: Average, variance: float | None, ratio: float, estimate: Estimate
) -> tuple[int, float]:
    """The count by Algorithm 4 or by the fit, whichever has the smaller error, and the probability that it is right."""
    mean, error = estimate
    other_error, base_error = other.error(variance), first.error(variance)
    if error < (math.hypot(other_error, base_error) if one.sign else other_error):
        count = max(nearest(mean), 0)
        return count, probability_right(mean, count, ratio * error, 0)
    if not other.information:
        return max(one.published, 0), 0.0
    if not one.sign:
        count = max(other.count, 0)
        return count, probability_right(other.mean, count, ratio * other_error, 0)
    count = max(one.sign * (other.count - first.count), 0)
    ends = (first.mean, ratio * base_error), (other.mean, ratio * other_error)
    return count, difference_right(*ends, one.sign, count)


def _count_outside(
    attribute: str, value: int, whole: Integers, fit: Fit, asked: Sequence[AnsweredBlock]
) -> Estimate | None:
    """Estimate the count of a value outside the base set from the answers that hold it, less the known other counts.

    The standard error does not include the error of the noise's mean. None for fewer than two answers.
    """
    rest = []
    for one in asked:
        if one.attribute != attribute:
            continue
        selections = one.selections
        rows = usable(one.answers) & selections[:, value]
        counts = whole.copy()
        counts[value] = 0
        rest.append(one.answers[rows] - selections[rows].astype(np.int64) @ counts)
    values = np.concatenate(rest) if rest else np.zeros(0)
    values = values[~outliers(values)]
    if len(values) < 2:
        return None
    variance = max(float(values.var(ddof=1)), fit.variance)
    return float(values.mean()) - fit.offset, math.sqrt(variance / len(values))


def _group_by_place(asked: Sequence[AnsweredBlock]) -> list[list[AnsweredBlock]]:
    """Group blocks of questions by their place, one group for each fit."""
    ordered = sorted(asked, key=lambda one: repr(one.place))
    return [list(group) for _, group in groupby(ordered, key=lambda one: one.place)]


def _compare_attributes(one: Average, variance: float | None) -> Iterator[Estimate]:
    """The differences of a set's mean sum by an attribute from the mean by all attributes before, with their errors."""
    mean, information = 0.0, 0.0
    for group in _group_by_place(one.asked):
        sums = np.concatenate([Sums.of(part.answers.reshape(2, -1)).totals for part in group])
        sums = sums[~outliers(sums)]
        if not len(sums) or not variance:
            continue
        more = len(sums) / 2
        if information:
            yield float(sums.mean()) - mean, math.sqrt(variance * (1 / more + 1 / information))
        mean = (information * mean + more * float(sums.mean())) / (information + more)
        information += more
