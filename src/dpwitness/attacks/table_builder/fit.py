"""Counts from single answers, by least squares: what two-partitions say beyond their sums.

A sum of both sides' answers tells how many people a set has, whatever the sides. Each answer by itself tells in
addition how many have each value: over many partitions a value lies on either side equally often. These estimates hang
on other assumptions than the sums do: a noise whose mean is not 0 moves the sums, and no value's count.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.averaging import outliers, usable
from dpwitness.attacks.table_builder.table import Where

__all__ = ["Asked", "Fit", "fit_counts", "together", "with_counts"]

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
