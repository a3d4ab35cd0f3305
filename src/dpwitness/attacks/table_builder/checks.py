"""What the answers themselves say of the attack's assumptions, and so of how right its counts are.

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

from dpwitness.attacks.table_builder.averaging import Removed, Sums, nearest, outliers, usable
from dpwitness.attacks.table_builder.confidence import difference_right, probability_right
from dpwitness.attacks.table_builder.fit import Asked, Fit, fit_counts, with_counts
from dpwitness.attacks.table_builder.table import Where

__all__ = ["Counted", "Examined", "Wanted", "examine", "noise_variance"]

Wholes = NDArray[np.int64]
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
