"""How sure an attack may be of a count that nobody tells it: from the noise that its own answers show.

Counts from single answers, by least squares: what two-partitions say beyond their sums.

A sum of both sides' answers tells how many people a set has, whatever the sides. Each answer by itself tells in
addition how many have each value: over many partitions a value lies on either side equally often. These estimates hang
on other assumptions than the sums do: a noise whose mean is not 0 moves the sums, and no value's count.

What the answers themselves say of the attack's assumptions, and so of how right its counts are.

Counts are whole. So estimates of many of them must lie near whole numbers, as near as their standard errors say, and
different ways to the same count must agree. Noise that is not what it is taken for (correlated, keyed by something
else than the people, garbled) moves estimates by fractions, and shows in this. What it cannot show is a whole number
of people that is added to a value in all of its questions: no answer tells that from people.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.reconstruction.table_builder.averaging import Removed, Sums, nearest, outliers, usable
from dpwitness.reconstruction.table_builder.systems import NoiseLaw, Where, truncated_laplace, truncated_normal, uniform

#: Standard errors beyond which another count is no rival.
REACH = 9.0
MOST_RIVALS = 1 << 10
#: Share of systems whose noise is uniform; and scales of other noise laws, in units of the r in question.
UNIFORM, SCALES = 0.8, (0.2, 0.3, 0.45, 0.65, 1.0)
#: What a mean or a correlation of sums, in standard errors, and the Kolmogorov-Smirnov distance times √sums exceed
#: about once in a thousand times where noises are independent and the law is right.
LIMIT, DISTANCE_LIMIT = 3.3, 1.95
FEW = 20


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
    reach = min(math.ceil(REACH * standard_error) + 2, MOST_RIVALS)
    centre = math.floor(mean) if least is None else max(math.floor(mean), least)
    rivals = np.arange(centre - reach, centre + reach + 1)
    if least is not None:
        rivals = rivals[rivals >= least]
    exponents = -np.square((rivals - mean) / standard_error) / 2
    weights = np.exp(exponents - exponents.max())
    return float(weights[rivals == count].sum() / weights.sum())


def difference_right(base: tuple[float, float], other: tuple[float, float], sign: int, count: int) -> float:
    """The probability that `count` is right, at least 0, where another count is the base's + `sign`·it.

    Parameters
    ----------
    base, other
        Of both counts the unbiased, normal mean and its standard error, in people; independent of each other.

    As `probability_right`, over all counts that the base set may have: where both means are wrong by the same number of
    people their difference is right.
    """
    (mean, error), (more, spread) = base, other
    if not (error > 0 and spread > 0):
        return float(count == sign * (more - mean))
    if math.inf in (error, spread):
        return 0.0
    reach = min(math.ceil(REACH * error) + 2, MOST_RIVALS)
    bases = math.floor(mean) + np.arange(-reach, reach + 1)
    reach = min(math.ceil(REACH * (error + spread)) + 2, MOST_RIVALS)
    rivals = max(count, 0) + np.arange(-reach, reach + 1)
    rivals = rivals[rivals >= 0]
    exponents = -np.square((bases[:, None] - mean) / error) / 2
    exponents = exponents - np.square((bases[:, None] + sign * rivals - more) / spread) / 2
    weights = np.exp(exponents - exponents.max()).sum(axis=0)
    return float(weights[rivals == count].sum() / weights.sum())


def parameter_right(sums: tuple[int, ...], guess: int, plus: int, minus: int) -> float | None:
    """The probability that noise lies within ±`guess` and no further, given sums of so many noises.

    Noise is taken for uniform in four of five systems; in the others for normal or Laplace noise that is truncated at r
    and rounded, of several scales: its largest values are so rare that sums may never show them. All r are equally
    probable beforehand. None where the sums are not that: where their mean is not 0, or some of them are `outliers`, or
    they hang on those asked just before, or the law that fits them best does not fit.
    """
    seen = np.array(sums)
    if guess < 1 or np.any(outliers(seen)):
        return None
    # Of few sums the standard deviation may be anything: that of uniform noise is used where it is larger.
    expected = math.sqrt((plus + minus) * guess * (guess + 1) / 3)
    spread = max(float(seen.std()), 0.5 if len(seen) >= FEW else expected)
    apart = [float(seen.mean()) * math.sqrt(len(seen)) / spread]
    apart += [
        float(seen[lag:] @ seen[:-lag]) / (spread**2 * math.sqrt(len(seen))) for lag in (1, 2, 3) if lag < len(seen)
    ]
    if max(map(abs, apart)) > LIMIT:
        return None
    steps = [0, 1, 2, 3, 4]
    while steps[-1] < 3 * guess + 8:
        steps.append(math.ceil(1.5 * steps[-1]))
    widths = np.diff([*steps, 2 * steps[-1] - steps[-2]])
    weights, places, laws = [], [], []
    for step, width in zip(steps, widths.tolist(), strict=True):
        r = guess + step
        kinds = [(uniform(r), UNIFORM)]
        for scale in SCALES:
            share = (1 - UNIFORM) / 2 / len(SCALES)
            kinds += [(truncated_normal(r, scale * guess), share), (truncated_laplace(r, scale * guess), share)]
        for law, share in kinds:
            low, p = _law_of_sums(law, plus + minus)
            with np.errstate(divide="ignore"):
                weights.append(float(np.log(p[seen - low]).sum()) + math.log(share * width))
            places.append(r)
            laws.append((low, p))
    logs = np.array(weights)
    low, p = laws[int(logs.argmax())]
    below = np.searchsorted(np.sort(seen), low + np.arange(len(p)), side="right") / len(seen)
    if float(np.max(np.abs(below - np.cumsum(p)))) > DISTANCE_LIMIT / math.sqrt(len(seen)):
        return None
    posterior = np.exp(logs - logs.max())
    return float(posterior[np.array(places) == guess].sum() / posterior.sum())


def _law_of_sums(law: NoiseLaw, number: int) -> tuple[int, NDArray[np.float64]]:
    """The smallest sum of so many noises of a symmetric law, and the probability of each from there on."""
    length = number * 2 * law.bound + 1
    size = 1 << (length - 1).bit_length()
    p = np.zeros(2 * law.bound + 1)
    p[np.array(law.support) + law.bound] = law.probabilities
    return -number * law.bound, np.clip(np.fft.irfft(np.fft.rfft(p, size) ** number, size)[:length], 0.0, None)


Flags = NDArray[np.bool_]
Wholes = NDArray[np.int64]
Reals = NDArray[np.float64]
#: Fits until no more answers turn out to be outliers; and answers for each unknown, at least.
MOST_FITS, ANSWERS_EACH = 30, 2
#: Questions between two whose noises are compared.
LAGS = (1, 2, 3, 4, 5, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Selections of one attribute's values within a sub-population (a bit a value), and their answers.

    `bits`: as `numpy.packbits` has them, shape (questions, bytes).
    """

    attribute: str
    where: Where
    bits: NDArray[np.uint8]
    width: int
    answers: Wholes

    @property
    def selections(self) -> Flags:
        """Shape (questions, values)."""
        return np.unpackbits(self.bits, axis=1, count=self.width).astype(np.bool_)

    @property
    def place(self) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
        """What selections must share to be fitted together."""
        return self.attribute, tuple((name, tuple(map(repr, values))) for name, values in sorted(self.where.items()))


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
        At most with this probability independent noises would hang as much on the order of questions, on how many and
        which values a question names, and on how many people it has.
    """

    counts: Reals
    errors: Reals
    offset: float
    offset_error: float
    variance: float
    chance: float


def together(asked: Sequence[Asked]) -> tuple[Flags, Wholes]:
    """Usable questions and answers, each question once: the same people have the same noise.

    Both sides of a partition whose sum is an outlier are left out.
    """
    selections = np.vstack([one.selections for one in asked])
    answers = np.concatenate([one.answers for one in asked])
    said = np.concatenate([_plausible(one.answers) for one in asked])
    _, first = np.unique(np.packbits(selections[said], axis=1), axis=0, return_index=True)
    first = np.sort(first)  # the order of asking says whether noise hangs on it
    return selections[said][first], answers[said][first]


def _plausible(answers: Wholes) -> Flags:
    """Which answers of partitions, first sides and then second ones, are usable and have no sum that is an outlier."""
    said = usable(answers)
    halves = answers.reshape(2, -1)
    both = np.asarray(np.all(said.reshape(2, -1), axis=0))
    wrong = np.zeros(len(both), np.bool_)
    wrong[both] = outliers(halves[:, both].sum(axis=0))
    return said & ~np.tile(wrong, 2)


def fit_counts(asked: Sequence[Asked]) -> Fit | None:
    """Least squares of answers of one `place`: each is the counts of its values + the noise's mean + a noise.

    Answers that are `outliers` of the fit are left out. Standard errors are the larger of two: as if all noises had one
    variance, and without that (White 1980). None where there are too few answers.
    """
    selections, answers = together(asked)
    known = np.flatnonzero(selections.any(axis=0))
    unknowns = len(known) + 1
    design = np.hstack([selections[:, known], np.ones((len(answers), 1))]).astype(np.float64)
    kept = np.ones(len(answers), np.bool_)
    for _ in range(MOST_FITS):
        left = design[kept]
        if len(left) < ANSWERS_EACH * unknowns:
            return None
        inverse = np.linalg.pinv(left.T @ left, rcond=1e-9, hermitian=True)
        found = inverse @ (left.T @ answers[kept])
        errors = answers - design @ found
        centred = errors - np.median(errors[kept])
        before, kept = kept, ~outliers(centred)
        if np.array_equal(before, kept):
            break
    left, residuals = design[before], errors[before]
    spread = len(left) / (len(left) - unknowns)
    variance = float(np.mean(np.square(residuals))) * spread
    half = left @ inverse
    white = np.square(half * residuals[:, None]).sum(axis=0) * spread
    error = np.sqrt(np.maximum(variance * np.diag(inverse), white))
    told = np.abs(np.diag(inverse @ (left.T @ left)) - 1) < 1e-6
    counts, spreads = np.full(selections.shape[1], np.nan), np.full(selections.shape[1], np.inf)
    counts[known], spreads[known] = np.where(told, found, np.nan)[:-1], np.where(told, error, np.inf)[:-1]
    return Fit(
        counts=counts,
        errors=spreads,
        offset=float(found[-1]) if told[-1] else math.nan,
        offset_error=float(error[-1]) if told[-1] else math.inf,
        variance=variance,
        chance=_independent(selections[before], np.round(answers[before] - residuals), residuals),
    )


def with_counts(fit: Fit, asked: Sequence[Asked], whole: Wholes) -> Fit:
    """The same fit with the mean of the noise that follows from known counts, shape (values,): much better known."""
    selections, answers = together(asked)
    noise = answers - selections.astype(np.int64) @ whole[: selections.shape[1]]
    noise = noise[~outliers(noise)]
    error = math.sqrt(max(float(noise.var()), fit.variance) / len(noise))
    return replace(fit, offset=float(noise.mean()), offset_error=error)


def _independent(selections: Flags, people: Reals, residuals: Reals) -> float:
    """The probability at most that independent noises would hang as much on what must not matter (see `Fit.chance`)."""
    from scipy.stats import chi2, norm  # half a second

    n = len(residuals)
    noise = residuals - residuals.mean()
    variance = float(noise @ noise) / n
    if not variance > 0:
        return 1.0
    found = []
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
        found.append(float(chi2.sf(square, max(int(np.count_nonzero(many)), 1))))
    for lag in LAGS:
        if 8 * lag < n:
            correlation = float(noise[lag:] @ noise[:-lag]) / (variance * math.sqrt(n - lag))
            found.append(2 * float(norm.sf(abs(correlation))))
    return min(1.0, len(found) * min(found))


#: Standard errors of an estimate that can tell fractions, and of one whose nearest whole number is as good as sure.
TELLING, DECISIVE = 0.2, 0.15
#: A check fails where assumptions that hold would fail it less often than that.
LEVEL: Final = 1e-3
#: An estimate so many standard errors below half a person less than none is no count.
FAR: Final = 5.0
#: Rounding at random has twice the variance of rounding to the nearest multiple, and is noise.
ROUNDING: Final = 1.5
#: Standard errors below this (people) are taken to be this: of a few answers that agree by chance they are 0.
SMALLEST_ERROR: Final = 1e-3
FRACTIONS = "counts are not whole: the noise of different questions is not independent, or answers are no counts"
NEGATIVE = "a count is negative: something else than people and independent noise is in the answers"
DEPENDENT = "noises are not independent: they hang on the order of questions, or on what they name beside people"
ROUNDED = "all answers are multiples of {}: they are rounded by the count itself, and no noise"
BIASED = "answers are too large or too small by {:.3g} on average: counts without noise are not what is published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A set of values that was counted to learn one value: `sign`·(its count − the base set's), or with 0 its count.

    `published`: the system's own answer for the value.
    """

    value: int
    values: Wholes
    sign: int
    published: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The count of one value, and the probability that it is right if the assumptions hold."""

    count: int
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """Counts, how sure each is, and why nothing is claimed, if so.

    Attributes
    ----------
    base_confidence
        The probability that the base set's count is right.
    held
        The probability that estimates lie near whole numbers because the assumptions hold, where one system in two
        breaks them so that they lie anywhere: 1/2 where no estimate is good enough to tell. All others are times it.
    ratio
        By how much estimates lie further from whole numbers than their standard errors say; at least 1. All standard
        errors are multiplied by it (Birge 1932).
    failed
        What the answers contradict, in words; () where they agree with the assumptions.
    """

    counts: tuple[Counted, ...]
    base_confidence: float
    held: float
    ratio: float
    failed: tuple[str, ...]


@dataclass(slots=True)
class _Deviations:
    """How far estimates lie from what they should be: distances, standard errors, and how many offsets are in each.

    `telling`: which of them would lie anywhere between whole numbers if they meant nothing.
    """

    apart: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    offsets: list[float] = field(default_factory=list)
    telling: list[bool] = field(default_factory=list)

    def add(self, apart: float, error: float, offsets: float = 0.0) -> None:
        """Of two estimates of the same; nothing where an error is infinite."""
        if error < math.inf:
            self.apart.append(apart)
            self.errors.append(error)
            self.offsets.append(offsets)
            self.telling.append(False)

    def add_whole(self, estimate: float, error: float, offsets: float = 0.0) -> None:
        """Of an estimate and the nearest whole number; nothing where the error is too large to tell."""
        if error <= TELLING:
            self.add(estimate - nearest(estimate), error, offsets)
            self.telling[-1] = True

    def add_fit(self, fit: Fit) -> None:
        """Of all counts of a fit."""
        for count, error in zip(fit.counts.tolist(), fit.errors.tolist(), strict=True):
            self.add_whole(count, error)

    def judged(self, offset_error: float) -> tuple[float, float, float]:
        """The ratio of Birge, the probability of deviations that are larger, and the evidence for whole numbers.

        The evidence is the likelihood of these deviations divided by that of estimates that lie anywhere between whole
        numbers. Estimates that share the estimated mean of the noise share its error: one more unknown, known so well.
        """
        if not self.apart:
            return 1.0, 1.0, 1.0
        from scipy.stats import chi2, norm  # half a second

        apart, offsets = np.array(self.apart), np.array(self.offsets)
        weights = 1 / np.square(np.maximum(self.errors, SMALLEST_ERROR))
        known = 1 / max(offset_error, SMALLEST_ERROR) ** 2
        precision = float(offsets @ (weights * offsets)) + known
        shared = float(offsets @ (weights * apart)) / precision
        square = float(weights @ np.square(apart)) - precision * shared**2
        largest = float(np.max(np.sqrt(weights) * np.abs(apart - offsets * shared)))
        number = len(apart)
        chance = min(1.0, 2 * float(chi2.sf(square, number)), 4 * number * float(norm.sf(largest)))
        told, squares = np.array(self.telling), weights * np.square(apart - offsets * shared)
        log = float(np.log(weights / (2 * math.pi))[told].sum()) - math.log(precision / known)
        log = 0.5 * (log - float(squares[told].sum()) - known * shared**2)
        return math.sqrt(max(square / number, 1.0)), chance, math.exp(min(log, 50.0))


def examine(
    attribute: str,
    where: Where,
    wanted: Sequence[Wanted],
    removed: Sequence[Removed],
    first: Removed,
    again: Sequence[tuple[Wholes, Removed]] = (),
    *,
    fitted: bool = True,
) -> Examined:
    """Compare all that answers say of the same counts; the counts, and what may be claimed of them.

    Parameters
    ----------
    attribute, where
        Whose values are counted, of which people.
    wanted, removed
        The sets of values that were counted, and their counts.
    first, again
        The base set's count; and that of some sets by another attribute's partitions, if there is one: of the base set
        itself first.
    fitted
        False: counts are those of Algorithm 4, though the fit may know better.
    """
    variance = noise_variance([first, *removed])
    base = _own(attribute, where, first.asked)
    fit = fit_counts(base) if base else None
    decisive = fit is not None and bool(np.all(fit.errors[_selected(base)] <= DECISIVE))
    deviations, offset_error = _Deviations(), 0.0
    estimates: list[tuple[float, float]] = [(math.nan, math.inf)] * len(wanted)
    whole = np.zeros(0, np.int64)
    if fit is not None:
        whole = np.nan_to_num(np.floor(fit.counts + 0.5)).astype(np.int64)
        fit = with_counts(fit, base, whole) if decisive else fit
        estimates = [
            (float(fit.counts[one.value]), float(fit.errors[one.value])) if one.sign < 0 else (math.nan, math.inf)
            for one in wanted
        ]
    if fit is not None and decisive:
        offset_error = fit.offset_error
        for values, other in again:
            expected = float(whole[values].sum()) + other.noises * fit.offset
            deviations.add(other.mean - expected, _error(other, variance), other.noises)
        for i, (one, other) in enumerate(zip(wanted, removed, strict=True)):
            if one.sign < 0:
                expected = float(whole[one.values].sum()) + other.noises * fit.offset
                deviations.add(other.mean - expected, _error(other, variance), other.noises)
            elif one.sign > 0 and (found := _alone(one.value, whole, fit, _own(attribute, where, other.asked))):
                estimates[i] = found[0], math.hypot(found[1], fit.offset_error)
                deviations.add_whole(*found, 1.0)
    else:
        for _, other in again[:1]:
            deviations.add(other.mean - first.mean, math.hypot(_error(other, variance), _error(first, variance)))
        for other in (first, *removed):
            deviations.add_whole(other.mean, _error(other, variance))
    for other in (first, *removed):
        for apart, error in _between(other, variance):
            deviations.add(apart, error)
    groups = [_others(attribute, where, other.asked) for other in (first, *removed, *(other for _, other in again))]
    fits = [one for one in (fit, *map(fit_counts, chain.from_iterable(groups))) if one is not None]
    for each in fits:
        deviations.add_fit(each)
    ratio, chance, evidence = deviations.judged(offset_error)
    held = evidence / (1 + evidence)
    failed = [FRACTIONS] if chance < LEVEL else []
    if fits and len(fits) * min(each.chance for each in fits) < LEVEL:
        failed.append(DEPENDENT)
    unit = int(np.gcd.reduce([np.gcd.reduce(one.answers[usable(one.answers)]) for one in _all([first, *removed])]))
    if unit > 1 and variance is not None and variance < ROUNDING * (unit**2 - 1) / 12:
        failed.append(ROUNDED.format(unit))
    if any(count < -0.5 - FAR * error for count, error in estimates):
        failed.append(NEGATIVE)
    biased = [each.offset for each in fits if abs(each.offset) > math.sqrt(each.variance) + FAR * each.offset_error]
    if biased:
        failed.append(BIASED.format(biased[0]))
    counts = [
        _count(one, other, first, variance, ratio, estimate if fitted and not failed else (math.nan, math.inf))
        for one, other, estimate in zip(wanted, removed, estimates, strict=True)
    ]
    # What is counted beside the base values hangs on all of these.
    known = _all_right(fit, ratio) if fit is not None and decisive else 1.0
    counts = [
        replace(count, confidence=held * (known if one.sign > 0 else 1.0) * count.confidence)
        for one, count in zip(wanted, counts, strict=True)
    ]
    sure = held * probability_right(first.mean, first.count, ratio * _error(first, variance), 0)
    return Examined(counts=tuple(counts), base_confidence=sure, held=held, ratio=ratio, failed=tuple(failed))


def _count(
    one: Wanted, other: Removed, first: Removed, variance: float | None, ratio: float, estimate: tuple[float, float]
) -> Counted:
    """The count of one value by the way with the smaller standard error: by Algorithm 4, or by the fit."""
    error, base_error = _error(other, variance), _error(first, variance)
    if estimate[1] < (math.hypot(error, base_error) if one.sign else error):
        count = max(nearest(estimate[0]), 0)
        return Counted(count=count, confidence=probability_right(estimate[0], count, ratio * estimate[1], 0))
    if not other.information:
        return Counted(count=max(one.published, 0), confidence=0.0)
    count = max(one.sign * (other.count - first.count) if one.sign else other.count, 0)
    if not one.sign:
        return Counted(count=count, confidence=probability_right(other.mean, count, ratio * error, 0))
    sure = difference_right((first.mean, ratio * base_error), (other.mean, ratio * error), one.sign, count)
    return Counted(count=count, confidence=sure)


def _all_right(fit: Fit, ratio: float) -> float:
    """The probability that all counts of a fit round to the right ones."""
    told = [i for i, error in enumerate(fit.errors) if error < math.inf]
    return math.prod(
        probability_right(float(fit.counts[i]), nearest(float(fit.counts[i])), ratio * float(fit.errors[i]))
        for i in told
    )


def _alone(value: int, whole: Wholes, fit: Fit, asked: Sequence[Asked]) -> tuple[float, float] | None:
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


def _own(attribute: str, where: Where, asked: Sequence[Asked]) -> list[Asked]:
    """The questions about values of the attribute itself."""
    return [one for one in asked if one.attribute == attribute and dict(one.where) == dict(where)]


def _others(attribute: str, where: Where, asked: Sequence[Asked]) -> list[list[Asked]]:
    """The questions about values of other attributes, by what can be fitted together."""
    mine = _own(attribute, where, asked)
    rest = sorted((one for one in asked if not any(one is other for other in mine)), key=lambda one: repr(one.place))
    return [list(group) for _, group in groupby(rest, key=lambda one: one.place)]


def _between(one: Removed, variance: float | None) -> list[tuple[float, float]]:
    """How far the means of a set's sums by one attribute lie from those by the attributes before, with its error."""
    found, mean, information = [], 0.0, 0.0
    asked = sorted(one.asked, key=lambda part: repr(part.place))
    for _, group in groupby(asked, key=lambda part: part.place):
        totals = [Sums.of(part.answers.reshape(2, -1)).totals for part in group]
        sums = np.concatenate(totals)
        sums = sums[~outliers(sums)]
        if not len(sums) or not variance:
            continue
        more = len(sums) / 2
        if information:
            found.append((float(sums.mean()) - mean, math.sqrt(variance * (1 / more + 1 / information))))
        mean = (information * mean + more * float(sums.mean())) / (information + more)
        information += more
    return found


def _all(removed: Sequence[Removed]) -> list[Asked]:
    """All questions that were kept, of which there are some."""
    return [part for one in removed for part in one.asked if len(part.answers)]


def _selected(asked: Sequence[Asked]) -> NDArray[np.bool_]:
    """Which values are in any question."""
    return np.asarray(np.any([one.selections.any(axis=0) for one in asked], axis=0))


def noise_variance(removed: Sequence[Removed]) -> float | None:
    """The variance of one noise, from how far sums of the same count lie apart (people²)."""
    freedom = sum(one.freedom for one in removed)
    return sum(one.squares for one in removed) / freedom if freedom else None


def _error(one: Removed, variance: float | None) -> float:
    """The standard error of a mean in people; infinite where nothing tells it."""
    return math.inf if variance is None or not one.information else math.sqrt(variance / one.information)
