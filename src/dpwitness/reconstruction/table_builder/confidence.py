"""How sure an attack may be of counts without the truth: from the noise that its own answers show.

Three things follow one another. A mean and its standard error give the probability that a whole number is right. Least
squares of the single answers (`fit_counts`) tell counts in another way than sums of partitions do: over many partitions
a value lies on either side equally often, so that a noise whose mean is not 0 moves the sums, and no value's count. And
`examine` compares all that answers say of the same counts with the attack's assumptions: counts are whole, so estimates
of many of them must lie near whole numbers, as near as their standard errors say, and different ways to the same count
must agree. Noise that is not what it is taken for (correlated, keyed by something else than the people, garbled) moves
estimates by fractions, and shows in this. What it cannot show is a whole number of people that is added to a value in
all of its questions: no answer tells that from people.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final, TypeAlias

import numpy as np

from dpwitness.reconstruction.table_builder.averaging import (
    AnsweredBlock,
    Average,
    Sums,
    nearest,
    noise_variance,
    outliers,
    usable,
)
from dpwitness.reconstruction.table_builder.tables import BoolArray, FloatArray, IntArray, Where

#: An estimate of a count and its standard error, in people.
Estimate: TypeAlias = tuple[float, float]
UNKNOWN: Final[Estimate] = (math.nan, math.inf)
#: Standard errors beyond which another count is no rival.
REACH: Final = 9.0
MAX_RIVALS: Final = 1 << 10


def probability_right(mean: float, count: int, standard_error: float, least: int | None = None) -> float:
    """The probability that `count` is the true one, given an unbiased, normal `mean` of it.

    Parameters
    ----------
    mean, standard_error
        In people; a standard error of 0 means that the mean is the true count, an infinite one that nothing is known.
    least
        The smallest count that is possible.

    All whole numbers from `least` on are taken to be equally probable beforehand, so that over many counts the average
    of these probabilities is the share of right ones. It rests on noise of mean 0 that is independent between different
    sets of people: a noise that all questions share, as layered noise has, does not show in it.
    """
    if not standard_error > 0:
        return float(count == mean)
    if standard_error == math.inf:
        return 0.0
    rivals = max(math.floor(mean), math.floor(mean) if least is None else least) + _reach(standard_error)
    if least is not None:
        rivals = rivals[rivals >= least]
    squares = np.square((rivals - mean) / standard_error)
    weights = np.exp((squares.min() - squares) / 2)
    return float(weights[rivals == count].sum() / weights.sum())


def difference_right(base: Estimate, other: Estimate, sign: int, count: int) -> float:
    """The probability that `count` is right, at least 0, where another count is the base's + `sign`·it.

    Both estimates are unbiased, normal and independent of each other. As `probability_right`, over all counts that the
    base set may have: where both means are wrong by the same number of people their difference is right.
    """
    (mean, error), (more, spread) = base, other
    if not (error > 0 and spread > 0):
        return float(count == sign * (more - mean))
    if math.inf in (error, spread):
        return 0.0
    bases = math.floor(mean) + _reach(error)
    rivals = max(count, 0) + _reach(error + spread)
    rivals = rivals[rivals >= 0]
    exponents = -np.square((bases[:, None] - mean) / error) / 2
    exponents = exponents - np.square((bases[:, None] + sign * rivals - more) / spread) / 2
    weights = np.exp(exponents - exponents.max()).sum(axis=0)
    return float(weights[rivals == count].sum() / weights.sum())


def _reach(standard_error: float) -> IntArray:
    """By how much rivals may differ from an estimate."""
    reach = min(math.ceil(REACH * standard_error) + 2, MAX_RIVALS)
    return np.arange(-reach, reach + 1)


#: Fits until no more answers turn out to be outliers; and answers for each unknown, at least.
MAX_FITS, ANSWERS_EACH = 30, 2
#: Questions between two whose noises are compared.
LAGS: Final = (1, 2, 3, 4, 5, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The counts of an attribute's values, in people; NaN, with an infinite error, where the answers do not tell them.

    Attributes
    ----------
    counts, errors
        Estimates, unbiased whatever the mean of the noise, and their standard errors; shape (values,).
    offset, offset_error
        The mean of the noise.
    variance
        Of one noise (people²).
    chance
        At most with this probability independent noises would depend as much on the order of questions, on how many and
        which values a question names, and on how many people it has.
    """

    counts: FloatArray
    errors: FloatArray
    offset: float
    offset_error: float
    variance: float
    chance: float


def fit_counts(asked: Sequence[AnsweredBlock]) -> Fit | None:
    """Least squares of answers of one `place`: each is the counts of its values + the noise's mean + a noise.

    Answers that are `outliers` of the fit are left out. Standard errors are the larger of two: as if all noises had one
    variance, and without that (White 1980). None where there are too few answers.
    """
    selections, answers = _distinct_questions(asked)
    known = np.flatnonzero(selections.any(axis=0))
    unknowns = len(known) + 1
    design = np.hstack([selections[:, known], np.ones((len(answers), 1))]).astype(np.float64)
    kept = np.ones(len(answers), np.bool_)
    for _ in range(MAX_FITS):
        left = design[kept]
        if len(left) < ANSWERS_EACH * unknowns:
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
        chance=_independent(selections[before], np.round(answers[before] - residuals), residuals),
    )


def _distinct_questions(asked: Sequence[AnsweredBlock]) -> tuple[BoolArray, IntArray]:
    """Usable questions and answers, each question once: the same people have the same noise."""
    selections = np.vstack([one.selections for one in asked])
    answers = np.concatenate([one.answers for one in asked])
    plausible = np.concatenate([_plausible(one.answers) for one in asked])
    _, first = np.unique(np.packbits(selections[plausible], axis=1), axis=0, return_index=True)
    first = np.sort(first)  # in the order of asking, which shows whether noise depends on it
    return selections[plausible][first], answers[plausible][first]


def _plausible(answers: IntArray) -> BoolArray:
    """Which answers of partitions, first sides and then second ones, are usable and have no sum that is an outlier."""
    plausible = usable(answers)
    halves = answers.reshape(2, -1)
    both = np.asarray(np.all(plausible.reshape(2, -1), axis=0))
    wrong = np.zeros(len(both), np.bool_)
    wrong[both] = outliers(halves[:, both].sum(axis=0))
    return plausible & ~np.tile(wrong, 2)


def _independent(selections: BoolArray, people: FloatArray, residuals: FloatArray) -> float:
    """At most how probable it is that independent noises depend as much on what must not matter (see `Fit.chance`)."""
    from scipy.stats import chi2, norm  # half a second

    n = len(residuals)
    noise = residuals - residuals.mean()
    variance = float(noise @ noise) / n
    if not variance > (ROUND_OFF * max(1.0, float(np.abs(people).max(initial=0.0)))) ** 2:
        return 1.0  # exact answers, but for round-off
    chances = []
    groups = (
        np.arange(n) * 16 // n,
        selections.sum(axis=1),
        selections.argmax(axis=1),
        selections.shape[1] - selections[:, ::-1].argmax(axis=1),
        people,
    )
    for group in groups:
        _, place, size = np.unique(group, return_inverse=True, return_counts=True)
        # Groups of one say nothing: each noise is as far from 0 as it is.
        sums, many = np.bincount(place, weights=noise), size > 1
        square = float(np.sum(np.square(sums[many]) / size[many])) / variance
        chances.append(float(chi2.sf(square, max(int(np.count_nonzero(many)), 1))))
    for lag in LAGS:
        if 8 * lag < n:
            correlation = float(noise[lag:] @ noise[:-lag]) / (variance * math.sqrt(n - lag))
            chances.append(2 * float(norm.sf(abs(correlation))))
    return min(1.0, len(chances) * min(chances))


#: In parts of the largest count: errors of a fit to exact answers.
ROUND_OFF: Final = 1e-9
#: Standard errors of an estimate that can tell fractions, and of one whose nearest whole number is as good as sure.
TELLING, DECISIVE = 0.2, 0.15
#: Standard errors with which a set shows that one person came or left.
SHARP: Final = 0.5
#: A check fails where assumptions that hold would fail it less often than that.
LEVEL: Final = 1e-3
#: An estimate so many standard errors below half a person less than none is no count.
FAR: Final = 5.0
#: Rounding at random has twice the variance of rounding to the nearest multiple, and is noise.
ROUNDING: Final = 1.5
#: Standard errors below this (people) are taken to be this: of a few answers that agree by chance they are 0.
SMALLEST_ERROR: Final = 1e-3
FRACTIONS: Final = "counts are not whole: the noise of different questions is not independent, or answers are no counts"
NEGATIVE: Final = "a count is negative: the answers hold more than people and independent noise"
DEPENDENT: Final = (
    "noises are not independent: they depend on the order of questions, or on more than the people counted"
)
CHANGED: Final = "counts of the same people do not agree: people came or left meanwhile, or the noise has a mean"
ROUNDED: Final = "all answers are multiples of {}: they are rounded counts, not counts with noise"
BIASED: Final = "answers are too large or too small by {:.3g} on average: what is published is not a count with noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A set of values that is counted to learn one value: `sign`·(its count − the base set's), or with 0 its count.

    `published`: the system's own answer for the value.
    """

    value: int
    values: IntArray
    sign: int
    published: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """The count of each value, and the probability that it is right.

    `failed`: what the answers contradict, in words; () where they agree with the assumptions.
    """

    counts: tuple[int, ...]
    confidence: tuple[float, ...]
    failed: tuple[str, ...]


@dataclass(slots=True)
class _Deviations:
    """How far estimates lie from what they should be.

    `rows`: distance, standard error, how many offsets are in it, and whether it would lie anywhere between whole
    numbers if it meant nothing.
    """

    rows: list[tuple[float, float, float, bool]] = field(default_factory=list)

    def add(self, apart: float, error: float, offsets: float = 0.0, *, telling: bool = False) -> None:
        """Of two estimates of the same; nothing where an error is infinite."""
        if error < math.inf:
            self.rows.append((apart, error, offsets, telling))

    def add_average(self, one: Average, variance: float | None, people: int, offset: float) -> None:
        """Of an average and what a fit expects of it: so many people, and the mean of the noise."""
        self.add(one.mean - (people + one.noises * offset), one.error(variance), one.noises)

    def add_whole(self, estimate: float, error: float, offsets: float = 0.0) -> None:
        """Of an estimate and the nearest whole number; nothing where the error is too large to tell."""
        if error <= TELLING:
            self.add(estimate - nearest(estimate), error, offsets, telling=True)

    def judge(self, offset_error: float) -> tuple[float, float, float]:
        """The ratio of Birge, the probability of deviations that are larger, and the evidence for whole numbers.

        The evidence is the likelihood of these deviations divided by that of estimates that lie anywhere between whole
        numbers. Estimates that share the estimated mean of the noise share its error: one more unknown, known so well.
        """
        if not self.rows:
            return 1.0, 1.0, 1.0
        from scipy.stats import chi2, norm  # half a second

        apart, errors, offsets, telling = map(np.array, zip(*self.rows, strict=True))
        weights = 1 / np.square(np.maximum(errors, SMALLEST_ERROR))
        known = 1 / max(offset_error, SMALLEST_ERROR) ** 2
        precision = float(offsets @ (weights * offsets)) + known
        shared = float(offsets @ (weights * apart)) / precision
        square = float(weights @ np.square(apart)) - precision * shared**2
        largest = float(np.max(np.sqrt(weights) * np.abs(apart - offsets * shared)))
        number = len(apart)
        chance = min(1.0, 2 * float(chi2.sf(square, number)), 4 * number * float(norm.sf(largest)))
        squares = weights * np.square(apart - offsets * shared)
        log = float(np.log(weights / (2 * math.pi))[telling].sum()) - math.log(precision / known)
        log = 0.5 * (log - float(squares[telling].sum()) - known * shared**2)
        return math.sqrt(max(square / number, 1.0)), chance, math.exp(min(log, 50.0))


def examine(
    attribute: str,
    where: Where,
    differences: Sequence[Difference],
    averages: Sequence[Average],
    first: Average,
    again: Sequence[tuple[IntArray, Average]] = (),
    *,
    fitted: bool = True,
) -> Examination:
    """Compare all that answers say of the same counts; the counts, and what may be claimed of them.

    Parameters
    ----------
    attribute, where
        Whose values are counted, of which people.
    differences, averages
        The sets of values that were counted, and their counts.
    first, again
        The base set's count; and that of some sets by another attribute's partitions, if there is one: of the base set
        itself first.
    fitted
        False: counts are those of Algorithm 4, though the fit may know better.
    """
    variance = noise_variance([first, *averages])
    base = _own(attribute, where, first.asked)
    fit = fit_counts(base) if base else None
    estimates = [
        UNKNOWN if fit is None or one.sign >= 0 else (float(fit.counts[one.value]), float(fit.errors[one.value]))
        for one in differences
    ]
    deviations, offset_error = _Deviations(), 0.0
    if decisive := fit is not None and _decisive(fit, base):
        whole = np.nan_to_num(np.floor(fit.counts + 0.5)).astype(np.int64)
        fit = _with_counts(fit, base, whole)
        offset_error = fit.offset_error
        for values, other in again:
            deviations.add_average(other, variance, int(whole[values].sum()), fit.offset)
        for i, (one, other) in enumerate(zip(differences, averages, strict=True)):
            if one.sign < 0:
                deviations.add_average(other, variance, int(whole[one.values].sum()), fit.offset)
            elif one.sign > 0 and (alone := _count_outside(one.value, whole, fit, _own(attribute, where, other.asked))):
                estimates[i] = alone[0], math.hypot(alone[1], offset_error)
                deviations.add_whole(*alone, 1.0)
    else:
        for _, other in again[:1]:
            deviations.add(other.mean - first.mean, math.hypot(other.error(variance), first.error(variance)))
        for other in (first, *averages):
            deviations.add_whole(other.mean, other.error(variance))
    for other in (first, *averages):
        for apart in _between(other, variance):
            deviations.add(*apart)
    fits = [] if fit is None else [fit]
    for other in (first, *averages, *(other for _, other in again)):
        groups = _groups([one for one in other.asked if not _is_own(one, attribute, where)])
        fits += [one for one in map(fit_counts, groups) if one is not None]
    for each in fits:
        for estimate in zip(each.counts.tolist(), each.errors.tolist(), strict=True):
            deviations.add_whole(*estimate)
    # All standard errors are multiplied by the ratio (Birge 1932).
    ratio, chance, evidence = deviations.judge(offset_error)
    failed = tuple(_contradictions(chance, fits, estimates, [first, *averages], variance))
    if not decisive and _changed(differences, averages, first, estimates, fits, variance):
        failed = (*failed, CHANGED)
    # That assumptions hold, where one system in two breaks them so that estimates lie anywhere between whole numbers:
    # 1/2 where no estimate is good enough to tell.
    held = evidence / (1 + evidence)
    # What is counted beside the base values depends on all of these.
    base_right = _all_right(fit, ratio) if decisive and fit is not None else 1.0
    counts, confidence = [], []
    for one, other, estimate in zip(differences, averages, estimates, strict=True):
        by_fit = estimate if fitted and not failed else UNKNOWN
        count, right = _better_count(one, other, first, variance, ratio, by_fit)
        counts.append(count)
        confidence.append(held * (base_right if one.sign > 0 else 1.0) * right)
    return Examination(counts=tuple(counts), confidence=tuple(confidence), failed=failed)


def _changed(
    differences: Sequence[Difference],
    averages: Sequence[Average],
    first: Average,
    estimates: Sequence[Estimate],
    fits: Sequence[Fit],
    variance: float | None,
) -> bool:
    """Whether the base set without single values does not have the people that it should, by what was asked before.

    That is those of the base set less the fit's count of the value. Where no fit tells these, the sets without one of
    n values have n − 1 times as many people as the base set, together. What a mean of the noise explains is no change.
    """
    from scipy.stats import norm, t  # half a second

    taken = [place for place, one in enumerate(differences) if one.sign < 0]
    if not variance:  # nothing is claimed then; and of three sums that agree by chance it is 0, too
        return False
    # Few sums tell the noise badly: Student's law reaches `LEVEL` so many times as far out as the normal one.
    freedom = sum(one.freedom for one in (first, *averages))
    wide = float(t.isf(LEVEL / 4, freedom) / norm.isf(LEVEL / 4))
    without, apart, error = [averages[place] for place in taken], _Deviations(), first.error(variance)
    for place, other in zip(taken, without, strict=True):
        count, spread = estimates[place]
        if (both := math.hypot(other.error(variance), spread)) <= SHARP:
            apart.add(other.mean - (first.mean - count), wide * both, 1.0)
    values = {differences[place].value for place in taken}
    if apart.rows or not taken or not all(values.issuperset(differences[place].values.tolist()) for place in taken):
        return apart.judge(wide * error)[1] < LEVEL
    n = len(taken)
    more = sum(other.mean for other in without) - (n - 1) * first.mean
    noises = sum(other.noises for other in without) - (n - 1) * first.noises
    apart.add(more, wide * math.hypot((n - 1) * error, *(other.error(variance) for other in without)))
    return apart.judge(0.0)[1] < LEVEL and abs(more - noises * (fits[0].offset if fits else 0)) > abs(more) / 2


def _decisive(fit: Fit, asked: Sequence[AnsweredBlock]) -> bool:
    """Whether the nearest whole number of each value in these questions is as good as sure."""
    selected = np.any([one.selections.any(axis=0) for one in asked], axis=0)
    return bool(np.all(fit.errors[selected] <= DECISIVE))


def _all_right(fit: Fit, ratio: float) -> float:
    """The probability that all counts of a fit round to the right ones."""
    estimates = zip(fit.counts.tolist(), fit.errors.tolist(), strict=True)
    known = [(count, error) for count, error in estimates if error < math.inf]
    return math.prod(probability_right(count, nearest(count), ratio * error) for count, error in known)


def _with_counts(fit: Fit, asked: Sequence[AnsweredBlock], whole: IntArray) -> Fit:
    """The same fit with the mean of the noise that follows from known counts, shape (values,): much better known."""
    selections, answers = _distinct_questions(asked)
    noise = answers - selections.astype(np.int64) @ whole[: selections.shape[1]]
    noise = noise[~outliers(noise)]
    error = math.sqrt(max(float(noise.var()), fit.variance) / len(noise))
    return replace(fit, offset=float(noise.mean()), offset_error=error)


def _contradictions(
    chance: float,
    fits: Sequence[Fit],
    estimates: Sequence[Estimate],
    averages: Sequence[Average],
    variance: float | None,
) -> Iterator[str]:
    """What the answers contradict, in words."""
    if chance < LEVEL:
        yield FRACTIONS
    if fits and len(fits) * min(each.chance for each in fits) < LEVEL:
        yield DEPENDENT
    units = [np.gcd.reduce(part.answers[usable(part.answers)]) for one in averages for part in one.asked]
    unit = int(np.gcd.reduce(np.array(units, np.int64)))
    if unit > 1 and variance is not None and variance < ROUNDING * (unit**2 - 1) / 12:
        yield ROUNDED.format(unit)
    if any(count < -0.5 - FAR * error for count, error in estimates):
        yield NEGATIVE
    for each in fits:
        if abs(each.offset) > math.sqrt(each.variance) + FAR * each.offset_error:
            yield BIASED.format(each.offset)
            break


def _better_count(
    one: Difference, other: Average, first: Average, variance: float | None, ratio: float, estimate: Estimate
) -> tuple[int, float]:
    """The count of one value by the way with the smaller standard error, Algorithm 4 or the fit; and whether right."""
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


def _count_outside(value: int, whole: IntArray, fit: Fit, asked: Sequence[AnsweredBlock]) -> Estimate | None:
    """The count of a value outside the base set, from the answers that it is in, less the base values in each.

    With its standard error, but for that of the noise's mean; None where there are too few answers.
    """
    rest = []
    for one in asked:
        selections = one.selections
        rows = usable(one.answers) & selections[:, value]
        counts = whole[: one.width].copy()
        counts[value] = 0
        rest.append(one.answers[rows] - selections[rows].astype(np.int64) @ counts)
    values = np.concatenate(rest) if rest else np.zeros(0)
    values = values[~outliers(values)]
    if len(values) < 2:
        return None
    variance = max(float(values.var(ddof=1)), fit.variance)
    return float(values.mean()) - fit.offset, math.sqrt(variance / len(values))


def _is_own(one: AnsweredBlock, attribute: str, where: Where) -> bool:
    """Whether the questions are about values of the attribute itself."""
    return one.attribute == attribute and dict(one.where) == dict(where)


def _own(attribute: str, where: Where, asked: Sequence[AnsweredBlock]) -> list[AnsweredBlock]:
    return [one for one in asked if _is_own(one, attribute, where)]


def _groups(asked: Sequence[AnsweredBlock]) -> list[list[AnsweredBlock]]:
    """Questions by what can be fitted together."""
    ordered = sorted(asked, key=lambda one: repr(one.place))
    return [list(group) for _, group in groupby(ordered, key=lambda one: one.place)]


def _between(one: Average, variance: float | None) -> Iterator[Estimate]:
    """How far the means of a set's sums by one attribute lie from those by the attributes before, with its error."""
    mean, information = 0.0, 0.0
    for group in _groups(one.asked):
        sums = np.concatenate([Sums.of(part.answers.reshape(2, -1)).totals for part in group])
        sums = sums[~outliers(sums)]
        if not len(sums) or not variance:
            continue
        more = len(sums) / 2
        if information:
            yield float(sums.mean()) - mean, math.sqrt(variance * (1 / more + 1 / information))
        mean = (information * mean + more * float(sums.mean())) / (information + more)
        information += more
