"""The confidence in recovered counts, which an attack estimates without the truth, from the noise of its answers.

Least squares of the single answers estimates each count and its standard error. Over many partitions a value lies on
either side equally often, so that noise with a mean other than 0 moves the sums, but no value's count. Disjoint parts
of the answers must agree, counts are whole numbers, and the parts of the people by a second attribute add up: an attack
claims nothing where the answers contradict this. Among the values of one attribute alone, a whole number that the
system adds to a value in all questions looks like people: a system with other people gives the same answers.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.reconstruction.report import LEVEL
from dpwitness.reconstruction.table_builder.averaging import PartitionAnswers, outliers, usable

#: Number of standard errors beyond a limit at which an estimate contradicts the assumptions: one normal estimate in 3
#: million lies there.
CONTRADICTION_STANDARD_ERRORS: Final = 5.0
#: Largest standard error, in people, of estimates that must lie near whole numbers: larger errors fit any number.
MAX_WHOLE_ERROR: Final = 0.2
#: Smallest standard error, in people: few answers that agree by chance would have a standard error of 0.
MIN_STANDARD_ERROR: Final = 1e-3
#: Number of questions that are turned into floats at once.
CHUNK_ROWS: Final = 1 << 15
#: Shares of the answers, in the order of asking, whose counts are compared with the counts of the later answers.
MOMENTS: Final = (0.5, 0.125, 0.25, 0.75, 0.875)
#: Text of the contradiction that parts of the answers disagree.
PARTS_DISAGREE: Final = (
    "parts of the answers disagree: noises depend on the questions or their order, or people came or left"
)
#: Text of the contradiction that estimates lie between whole numbers.
FRACTIONAL_COUNTS: Final = (
    "counts are not whole: the noise of different questions is not independent, or answers are no counts"
)
#: Text of the contradiction that parts of the people do not add up.
PARTS_DO_NOT_ADD_UP: Final = (
    "parts of the people do not add up to all of them: the system adds or removes something by the values in a question"
)


def probability_right(mean: float, count: int, standard_error: float, freedom: float = math.inf) -> float:
    """The probability that `count`, at least 0, is the true count, given its unbiased estimate `mean`, in people.

    The error has Student's distribution with these degrees of freedom, normal for an infinite number. A standard error
    of 0 means that the mean is the true count, an infinite error that nothing is known. All counts from 0 on have the
    same prior probability, so that over many counts the average of these probabilities is the share of right counts.
    """
    from scipy.stats import t  # half a second

    if not standard_error > 0:
        return float(count == mean)
    if not (standard_error < math.inf and math.isfinite(mean)):
        return 0.0
    reach = min(math.ceil(9.0 * standard_error) + 2, 1 << 10)  # counts further away weigh next to nothing
    rivals = max(math.floor(mean), 0) + np.arange(-reach, reach + 1)
    rivals = rivals[rivals >= 0]
    logs = t.logpdf((rivals - mean) / standard_error, freedom)
    weights = np.exp(logs - logs.max())
    return float(weights[rivals == count].sum() / weights.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Estimates of the counts of an attribute's values, in people; an undetermined count is NaN with an infinite error.

    `failed`: the contradictions of the answers to the assumptions, in words; () if they agree.
    """

    counts: Floats  # unbiased for every mean of the noise, shape (values,)
    errors: Floats  # the standard errors of the counts, shape (values,)
    freedom: int  # the degrees of freedom of the standard errors
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _LeastSquares:
    """Least squares of answers on a design: flags of the selected values, and a column of ones for the noise's mean.

    `inverse`: the inverse of the normal equations' matrix; `identified`: flags of the determined unknowns.
    """

    inverse: Floats
    solution: Floats
    residuals: Floats
    identified: Booleans

    @classmethod
    def of(cls, design: Booleans, answers: Floats) -> "_LeastSquares":
        """Fit the answers, shape (answers,)."""
        square, product = np.zeros((design.shape[1], design.shape[1])), np.zeros(design.shape[1])
        for rows in _chunks(design):
            part = design[rows].astype(np.float64)
            square += part.T @ part
            product += part.T @ answers[rows]
        inverse = np.asarray(np.linalg.pinv(square, rcond=1e-9, hermitian=True), np.float64)
        solution = inverse @ product
        identified = np.asarray(np.abs(np.diag(inverse @ square) - 1) < 1e-6)
        return cls(
            inverse=inverse, solution=solution, residuals=answers - _predict(design, solution), identified=identified
        )

    def variances(self, design: Booleans) -> Floats:
        """The variances of the unknowns without a common variance of the noises (White 1980), in people²."""
        total = np.zeros(len(self.solution))
        for rows in _chunks(design):
            total += np.square((design[rows] @ self.inverse) * self.residuals[rows, None]).sum(axis=0)
        return total * len(design) / (len(design) - len(self.solution))


def _predict(design: Booleans, solution: Floats) -> Floats:
    """The expected answers, shape (answers,)."""
    return np.concatenate([design[rows] @ solution for rows in _chunks(design)])


def _chunks(design: Booleans) -> Iterator[slice]:
    """Slices of rows whose floats take 30 MB for 112 columns."""
    return (slice(start, start + CHUNK_ROWS) for start in range(0, len(design), CHUNK_ROWS))


def estimate_counts(first: PartitionAnswers, counted: Sequence[PartitionAnswers], width: int) -> Estimates:
    """Estimate the counts of an attribute with `width` values, and check the assumptions.

    An answer is its values' counts + the noise's mean + a noise. Least squares of the answers about the values of
    `first`, the base values, give their counts; any other value gets the mean of the answers that hold it, less the
    counts of base values.
    Standard errors are the larger of two estimates, with a common variance of all noises and without (White 1980), and
    are multiplied by the root of χ²/df of disjoint halves. Fewer than two answers for each unknown say nothing.
    """
    known = np.sort(np.append(first.partitions.base, first.partitions.beside))
    inside = [first, *(one for one in counted if np.isin(one.partitions.values, known).all())]
    questions = np.vstack([one.partitions.selections(width)[:, known] for one in inside])
    given = np.concatenate([one.answers.ravel() for one in inside])
    counts, errors = np.full(width, np.nan), np.full(width, np.inf)
    if not len(given):
        return Estimates(counts=counts, errors=errors, freedom=1, failed=())
    # A question that comes twice counts once, since the same people have the same noise.
    _, new = np.unique(np.packbits(questions, axis=1), axis=0, return_index=True)
    new = np.sort(new)  # the order of asking
    design, answers = _with_ones(questions[new]), given[new].astype(np.float64)
    kept = np.ones(len(answers), np.bool_)
    for _ in range(30):  # an upper limit: the loop ends when the outliers stay the same
        if np.count_nonzero(kept) < 2 * design.shape[1]:
            return Estimates(counts=counts, errors=errors, freedom=1, failed=())
        fit, before = _LeastSquares.of(design[kept], answers[kept]), kept
        kept = ~outliers(answers - _predict(design, fit.solution) - np.median(fit.residuals))
        if np.array_equal(before, kept):
            break
    design, freedom = design[before], len(fit.residuals) - design.shape[1]
    # One person² more, as few answers may agree by chance.
    variance = (float(np.square(fit.residuals).sum()) + 1) / freedom
    spread = np.sqrt(np.maximum(variance * np.diag(fit.inverse), fit.variances(design)))
    spread = np.where(fit.identified, np.maximum(spread, MIN_STANDARD_ERROR), np.inf)
    counts[known], errors[known] = np.where(fit.identified, fit.solution, np.nan)[:-1], spread[:-1]
    for one in counted:
        for value in np.setdiff1d(one.partitions.values, known):
            counts[value], errors[value] = _count_outside(one, int(value), known, fit, variance, width)
    order, size = np.arange(len(design)) / len(design), design.sum(axis=1)
    splits = [size <= np.median(size), *(order < moment for moment in MOMENTS)]
    compared = [_compare_parts(design, fit, variance, freedom, split) for split in splits]
    ratio = math.sqrt(max(1.0, *(square for square, _ in compared[:2])))  # of the halves
    failed = [PARTS_DISAGREE] if len(compared) * min(p_value for _, p_value in compared) < LEVEL else []
    failed += [*_contradictions(counts, errors, freedom), *_describe_noise(fit, answers, variance, float(spread[-1]))]
    return Estimates(counts=counts, errors=ratio * errors, freedom=freedom, failed=tuple(failed))


def _with_ones(questions: Booleans) -> Booleans:
    """The design of questions: a last column for the noise's mean."""
    return np.hstack([questions, np.ones((len(questions), 1), np.bool_)])


def _count_outside(
    one: PartitionAnswers, value: int, known: Integers, fit: _LeastSquares, variance: float, width: int
) -> tuple[float, float]:
    """The count of a value outside the base set and its standard error, in people; (NaN, ∞) if it is undetermined."""
    questions = one.partitions.selections(width)
    rows = questions[:, value]
    design, answers = _with_ones(questions[rows][:, known]), one.answers.ravel()[rows]
    rest = answers - design @ fit.solution
    kept = ~outliers(rest)
    if np.count_nonzero(kept) < 2 or not fit.identified.all():
        return math.nan, math.inf
    mean = design[kept].mean(axis=0)
    noise = max(variance, float(rest[kept].var(ddof=1))) / np.count_nonzero(kept)
    return float(rest[kept].mean()), math.sqrt(noise + variance * float(mean @ fit.inverse @ mean))


def _departure(values: Floats, covariance: Floats, freedom: int) -> tuple[float, float]:
    """The χ² per degree of freedom of values of mean 0, and its p-value; (0, 1) if there are no values."""
    from scipy.stats import f  # half a second

    if not len(values):
        return 0.0, 1.0
    square = float(values @ np.linalg.pinv(covariance, hermitian=True) @ values) / len(values)
    return square, float(f.sf(square, len(values), freedom))


def _compare_parts(
    design: Booleans, fit: _LeastSquares, variance: float, freedom: int, first: Booleans
) -> tuple[float, float]:
    """The χ² per degree of freedom, and the p-value, of estimates from two parts of the answers, by flags of the first.

    The p-value is of χ² or of the largest difference of one count, which one person who leaves makes. A part with fewer
    answers than unknowns has χ² 0 and p-value 1.
    """
    from scipy.stats import t  # half a second

    if min(np.count_nonzero(first), np.count_nonzero(~first)) < len(fit.solution):
        return 0.0, 1.0
    one, other = (_LeastSquares.of(design[some], fit.residuals[some]) for some in (first, ~first))
    both = np.flatnonzero(one.identified & other.identified)
    apart, spread = (one.solution - other.solution)[both], variance * (one.inverse + other.inverse)[np.ix_(both, both)]
    square, p_value = _departure(apart, spread, freedom)
    largest = float(np.max(np.abs(apart) / np.sqrt(np.diag(spread)), initial=0.0))
    return square, 2 * min(p_value, 2 * max(len(both), 1) * float(t.sf(largest, freedom)))


def contradicted_additivity(sets: Booleans, answers: Integers) -> tuple[str, ...]:
    """The contradiction of parts of the people that do not add up, in words; () if they do, or are too few to tell.

    `sets`: flags of the values in each question, shape (questions, values). `answers`: the answers about either part of
    the people and about both, shape (3, questions). The first two answers less the third have no people left, but three
    noises, and once the number that the system adds to a value in each question. An F test compares this with 0.
    """
    kept = np.asarray(usable(answers).all(axis=0))
    rest = np.asarray(np.array([1, 1, -1]) @ answers, np.float64)
    kept[kept] = ~outliers(rest[kept])
    design = _with_ones(sets[kept][:, sets.any(axis=0)])
    freedom = len(design) - design.shape[1]
    if freedom < design.shape[1]:
        return ()
    fit = _LeastSquares.of(design, rest[kept])
    variance = (float(np.square(fit.residuals).sum()) + 1) / freedom
    added = np.flatnonzero(fit.identified[:-1])
    _, p_value = _departure(fit.solution[added], variance * fit.inverse[np.ix_(added, added)], freedom)
    return (PARTS_DO_NOT_ADD_UP,) if p_value < LEVEL else ()


def _contradictions(counts: Floats, errors: Floats, freedom: int) -> Iterator[str]:
    """The contradictions of estimates to counts of people, in words."""
    from scipy.stats import f  # half a second

    whole = errors <= MAX_WHOLE_ERROR
    squares = np.square((counts - np.floor(counts + 0.5)) / errors)[whole]
    if len(squares) and f.sf(squares.mean(), len(squares), freedom) < LEVEL:
        yield FRACTIONAL_COUNTS
    if np.any(counts < -0.5 - CONTRADICTION_STANDARD_ERRORS * errors):
        yield "a count is negative: the answers hold more than people and independent noise"


def _describe_noise(fit: _LeastSquares, answers: Floats, variance: float, error: float) -> Iterator[str]:
    """The contradictions of answers to counts with noise, in words; `error`: the standard error of the noise's mean."""
    offset = float(fit.solution[-1])
    if abs(offset) > math.sqrt(variance) + CONTRADICTION_STANDARD_ERRORS * error:
        yield (
            f"answers are too large or too small by {offset:.3g} on average: the published numbers are not counts with "
            "noise"
        )
    unit = int(np.gcd.reduce(answers.astype(np.int64)))
    # Random rounding is noise with twice the variance of rounding to the nearest multiple: 1.5 separates the two.
    if unit > 1 and variance < 1.5 * (unit**2 - 1) / 12:
        yield f"all answers are multiples of {unit}: they are rounded counts, not counts with noise"
