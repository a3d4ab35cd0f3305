"""Linear decoding: bits from noisy sums of random subsets, by a linear program or by least squares.

Dinur & Nissim, Revealing information while preserving privacy, PODS 2003, Theorem 3: bits that miss no answer by more
than its error are nearly the secret. The linear program minimizes the largest error.

If answers have normal errors, a least-squares fit has normal errors of known size about each bit. Since each bit is 0
or 1, the fit gives probabilities of bits, which sharpen the fit: expectation propagation (Minka, UAI 2001).

If some answers have large errors, the fit with the least sum of absolute errors gives them little weight (Dwork,
McSherry & Talwar, The price of privacy and the limits of LP decoding, STOC 2007).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import expit

from dpwitness.arrays import Booleans, Floats, Integers
from dpwitness.errors import InvalidParameter

#: Bits of people, 0 or 1, shape (people,).
PersonBits = Integers
#: A selection of rows of a matrix.
RowSelection: TypeAlias = slice | Integers | Booleans
K = TypeVar("K", np.float32, np.float64)

#: Names of the adversaries, as --adversary takes them.
ADVERSARIES: Final = ("polynomial", "least-squares", "least-absolute", "exponential")
#: Names of the normal, or nearly normal, laws of errors: least squares maximizes their likelihood.
NORMAL_LAWS: Final = ("binomial", "gaussian")


def choose_adversary(law: str) -> str:
    """The adversary that recovers more bits from answers with errors of the law: "least-squares" or "polynomial"."""
    # Adversarial errors are not normal, but move all values of a fit towards 1/2, not past it.
    return "least-squares" if law in (*NORMAL_LAWS, "adversarial") else "polynomial"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reconstruction:
    """The bits that an adversary reconstructed from answers; arrays of shape (n,); None for uncomputed values.

    `expected_right` is None, too, where the answers contradict normal errors.
    """

    bits: PersonBits
    fractions: Floats  # the linear program's solution, or the probabilities of a 1, which are rounded to bits
    largest_residual: float | None = None  # the least E, in counts, for which program (1) of Theorem 3 has a solution
    expected_right: float | None = None  # the expected number of right bits, by least squares
    spread: float | None = None  # the standard deviation of the errors that least squares assumes, in counts
    offset: float = 0.0  # the count that all answers have in common
    means: Floats | None = None  # each person's value by least squares, before rounding to a bit
    variances: Floats | None = None  # the variances of `means`, in counts²


#: Number of entries of the matrix that are unpacked at a time: 32 MB as floats.
BLOCK_ENTRIES: Final = 1 << 22


class Subsets:
    """A family of subsets of people; its matrix Q has a 1 for each person in a subset, shape (subsets, people).

    The matrix is unpacked block by block: n·ln²n subsets of 2,048 people take 2 GB as floats, 30 MB as bits.

    `packed`: eight people a byte, the first in the lowest bit, shape (subsets, ⌈people/8⌉), uint8.
    """

    def __init__(self, packed: NDArray[np.uint8], people: int) -> None:
        self.packed, self.people = packed, people
        self._gram: Floats | None = None

    @classmethod
    def drawn(cls, rng: np.random.Generator, number: int, people: int) -> "Subsets":
        """Draw `number` random subsets, each of which has each person with probability 1/2."""
        return cls(rng.integers(0, 256, (number, -(-people // 8)), np.uint8), people)

    def __len__(self) -> int:
        return len(self.packed)

    def __iter__(self) -> Iterator[Booleans]:
        return (self.rows(slice(place, place + 1))[0] for place in range(len(self)))

    def part(self, rows: RowSelection) -> "Subsets":
        """The subsets of the given rows."""
        return Subsets(self.packed[rows], self.people)

    def rows(self, chosen: RowSelection) -> Booleans:
        """The chosen rows of the matrix, shape (chosen, people)."""
        return np.unpackbits(self.packed[chosen], axis=1, count=self.people, bitorder="little").view(np.bool_)

    def sums(self, values: Floats) -> Floats:
        """The sum of each subset's values, Q·values, shape (subsets,)."""
        return np.concatenate([block @ values for _, block in self._blocks(np.float64)])

    def moments(self, answers: Floats) -> Floats:
        """The sum of the answers to subsets with each person, Qᵀ·answers, shape (people,)."""
        total = np.zeros(self.people)
        for rows, block in self._blocks(np.float64):
            total += block.T @ answers[rows]
        return total

    def gram(self) -> Floats:
        """The number of subsets that have both people of each pair, QᵀQ, shape (people, people), read-only."""
        if self._gram is None:  # made once for all fits, in t·n² steps for t subsets of n people
            total = np.zeros((self.people, self.people))
            for _, block in self._blocks(np.float32):  # exact: a block has fewer than 2²⁴ rows
                total += block.T @ block
            total.flags.writeable = False
            self._gram = total
        return self._gram

    def weighted(self, weights: Floats, answers: Floats) -> tuple[Floats, Floats]:
        """The normal equations of a weighted fit by people and a constant: shapes (n + 1, n + 1) and (n + 1,)."""
        gram, moments = np.zeros((self.people + 1, self.people + 1)), np.zeros(self.people + 1)
        for rows, block in self._blocks(np.float64):
            columns = np.column_stack([block, np.ones(len(block))])
            weighed = columns.T * weights[rows]
            gram += weighed @ columns
            moments += weighed @ answers[rows]
        return gram, moments

    def _blocks(self, kind: type[K]) -> Iterator[tuple[slice, NDArray[K]]]:
        """The row numbers of each block of the matrix, and the block as numbers of the type `kind`."""
        step = max(BLOCK_ENTRIES // self.people, 1)
        for first in range(0, len(self), step):
            rows = slice(first, min(first + step, len(self)))
            yield rows, self.rows(rows).astype(kind)


def smallest_error(matrix: Floats, answers: Floats) -> tuple[Floats, float]:
    """The smallest E with |matrix·x − answers| ≤ E for an x in [0, 1]ⁿ: x, shape (n,), and E, in counts.

    `matrix`: a 1 for each person in a subset, else 0, shape (t, n). Raises `InvalidParameter` where the solver (HiGHS)
    fails by rounding errors.
    """
    rows, people = matrix.shape
    error = np.ones((rows, 1))
    found = linprog(
        np.append(np.zeros(people), 1.0),
        A_ub=np.block([[matrix, -error], [-matrix, -error]]),
        b_ub=np.concatenate([answers, -answers]),
        bounds=[(0, 1)] * people + [(0, None)],
        method="highs-ipm",
    )
    if not found.success or found.x is None:
        raise InvalidParameter(
            f"the linear program of {rows} answers was not solved: are they of a size with the sums?"
        )
    return np.clip(found.x[:-1], 0.0, 1.0), float(found.x[-1])


#: Largest number of steps of expectation propagation; most fits take fewer than 10 steps, and later steps change
#: little.
MAX_STEPS: Final = 30
#: Factor of each step of expectation propagation, since whole steps may oscillate.
DAMPING: Final = 0.7
#: Smallest variance of errors that least squares assumes, in counts²: a variance of 0 would be a divisor.
MIN_VARIANCE: Final = 1e-6


def least_squares_adversary(
    subsets: Subsets,
    answers: Floats,
    *,
    variance: float | None = None,
    offset: bool = False,
    sharpened: bool = True,
) -> Reconstruction:
    """Reconstruct the more probable value of each bit from answers with about normal errors.

    Where the answers are not sums of bits with normal errors, `expected_right` is None, and the fractions are not
    probabilities but the fitted values, cut off at 0 and 1.

        Parameters ---------- subsets The people of each query, shape (t, n). answers The answers in counts, finite,
        shape (t,). variance The variance of the errors, in counts²; None: estimated, from more answers than people.
        offset Whether all answers may have an unknown count in common. sharpened Whether the fit assumes that values
        are 0 or 1. Without this assumption no bit depends on the rounding of other bits, which matters where questions
        hardly tell two people apart.

    Raises `InvalidParameter` for too few answers to estimate the variance.
    """
    gram, moments, common = _normal_equations(subsets, answers, offset)
    plain: Floats = np.linalg.lstsq(gram, moments, rcond=1e-10)[0].astype(np.float64)
    if variance is None:
        needed = subsets.people + offset
        if len(answers) <= needed:
            raise InvalidParameter(
                f"{len(answers)} answers about {subsets.people} people do not tell how wrong they are: ask more than "
                f"{needed}"
            )
        missed = subsets.sums(plain) - (answers - common(plain))
        variance = float(np.sum(missed**2)) / (len(answers) - needed)
    variance = max(variance, MIN_VARIANCE)
    probable = False
    if sharpened:
        fractions, means, variances = _propagate_expectations(gram / variance, moments / variance)
        shared = common(fractions)
        error = float(np.mean((subsets.sums(fractions) + shared - answers) ** 2))
        # If the errors are normal, the mean squared residual is at most their variance and six of its standard errors.
        probable = error <= variance * (1 + 6 * math.sqrt(2 / len(answers))) + 100 * MIN_VARIANCE
    if not probable:
        inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
        fractions, shared = np.clip(plain, 0.0, 1.0), common(plain)
        means, variances = plain, variance * np.maximum(np.diag(inverse), 0.0)
    return Reconstruction(
        bits=(fractions > 0.5).astype(np.int64),
        fractions=fractions,
        expected_right=float(np.maximum(fractions, 1 - fractions).sum()) if probable else None,
        spread=math.sqrt(variance),
        offset=shared,
        means=means,
        variances=variances,
    )


def _normal_equations(
    subsets: Subsets, answers: Floats, offset: bool, ridge: float = 0.0
) -> tuple[Floats, Floats, Callable[[Floats], float]]:
    """The matrix and right side of a fit by people, and a function from its solution to the offset of all answers."""
    sizes = subsets.moments(np.ones(len(answers)))
    gram, moments = subsets.gram(), subsets.moments(answers)
    if ridge:
        gram = gram + ridge * len(answers) * np.eye(subsets.people)
    if not offset:
        return gram, moments, lambda values: 0.0
    # The column of ones for the offset is eliminated.
    centre = float(answers.mean())
    gram, moments = gram - np.outer(sizes, sizes) / len(answers), moments - sizes * centre
    return gram, moments, lambda values: centre - float(sizes @ values) / len(answers)


def _propagate_expectations(gram: Floats, moments: Floats) -> tuple[Floats, Floats, Floats]:
    """Expectation propagation, given the normal equations divided by the errors' variance; arrays of shape (n,).

    Returns the probability that each bit is 1, and the mean and variance of each bit by the answers and the
    distribution of all other bits.
    """
    people = len(gram)
    # The precision, and precision·mean, of the normal factor that replaces the prior: mean 1/2, variance 1/4.
    precision, shift, ones = np.full(people, 4.0), np.full(people, 2.0), np.full(people, 0.5)
    for _ in range(MAX_STEPS):
        covariance = np.linalg.inv(gram + np.diag(precision))
        spread = np.diag(covariance)
        centre = covariance @ (moments + shift)
        own = np.maximum(1 / spread - precision, 1e-12)
        means = (centre / spread - shift) / own
        before, ones = ones, expit((means - 0.5) * own)
        sharper = np.maximum(1 / np.maximum(ones * (1 - ones), 1e-6) - own, 0.0)
        aim = np.where(sharper > 0, (sharper + own) * ones - means * own, 0.0)
        precision, shift = precision + DAMPING * (sharper - precision), shift + DAMPING * (aim - shift)
        if np.abs(ones - before).max() < 1e-4:  # no probability moves by more
            break
    return ones, means, 1 / own


#: Tolerance of the comparison of residuals, in counts, above the rounding errors of sums.
RESIDUAL_TOLERANCE: Final = 1e-6


def polynomial_adversary(subsets: Subsets, answers: Floats, *, offset: bool = False) -> Reconstruction:
    """Solve the linear program of Theorem 3 and round its solution to bits.

    The program has the constraints

        a_j − E ≤ Σ_{i ∈ q_j} c_i ≤ a_j + E,  0 ≤ c_i ≤ 1

    and the smallest E with a solution, so E need not be known. About n of the t constraints bind: a first program has
    the constraints that a least-squares fit violates most, and each further program adds constraints that the last
    solution violates. A solution that violates no constraint solves the whole program, and at most about 3n rows of the
    matrix are in memory as numbers.

    Parameters and errors: see `least_squares_adversary`.
    """
    queries, size = len(subsets), subsets.people
    # `solve` is 5 times as fast as `lstsq`, and the start need not be exact. The ridge makes few queries solvable.
    gram, moments, common_of = _normal_equations(subsets, answers, offset, ridge=1e-9)
    fractions = np.clip(np.linalg.solve(gram, moments), 0.0, 1.0)
    common = common_of(fractions)
    # A program's variables lie in [0, 1]: the offset, from the smallest answer less n to the largest, is scaled.
    low = float(answers.min()) - size if offset else 0.0
    width = np.full((1, 1), float(answers.max()) - low) if offset else np.zeros((1, 0))
    chosen = np.zeros(queries, np.bool_)
    bound, programs = 0.0, 0
    while True:
        residual = np.abs(subsets.sums(fractions) + common - answers)
        violated = (residual > bound + RESIDUAL_TOLERANCE) & ~chosen
        if not violated.any():
            break
        near = ~chosen & (residual > 0.97 * bound)  # these constraints are likely to bind in the next program
        worst = np.argsort(-np.where(near, residual, 0.0), kind="stable")[: size if programs else 2 * size]
        chosen[worst[near[worst]]] = True
        rows = subsets.rows(chosen).astype(np.float64)
        matrix = np.hstack([rows, np.repeat(width, len(rows), axis=0)])
        solved, bound = smallest_error(matrix, answers[chosen] - low)
        fractions, common = solved[:size], low + float((width @ solved[size:]).sum())
        programs += 1
    return Reconstruction(
        bits=(fractions > 0.5).astype(np.int64),
        fractions=fractions,
        largest_residual=float(residual.max()),
        offset=common,
    )


def least_absolute_adversary(subsets: Subsets, answers: Floats, *, offset: bool = False) -> Reconstruction:
    """Round the values with the least sum of absolute errors to bits; a fraction of the answers may have any error.

    Least squares are repeated, each answer weighted by the inverse of its last error (Schlossmacher, JASA 68, 1973).
    Parameters and errors: see `least_squares_adversary`.
    """
    people, common = subsets.people, 0.0
    weights, fractions = np.ones(len(subsets)), np.full(people, 0.5)
    for _ in range(40):  # an upper limit: the loop ends when values settle
        gram, moments = subsets.weighted(weights, answers)
        if not offset:
            gram, moments = gram[:-1, :-1], moments[:-1]
        # Near a solution weights differ by more than the precision of floats, so the diagonal gets a small ridge.
        gram[np.diag_indices(len(gram))] += 1e-13 * gram.max()
        values = np.linalg.lstsq(gram, moments, rcond=1e-12)[0].astype(np.float64)
        before, fractions = fractions, values[:people]
        common = float(values[people:].sum())
        missed = np.abs(subsets.sums(fractions) + common - answers)
        if np.abs(fractions - before).max() < 1e-3:
            break
        # Errors below a quarter of their median have equal weights, so that no weight is infinite.
        weights = 1 / np.maximum(missed, 0.25 * float(np.median(missed)) + RESIDUAL_TOLERANCE)
    return Reconstruction(
        bits=(fractions > 0.5).astype(np.int64),
        fractions=np.clip(fractions, 0.0, 1.0),
        offset=common,
    )


def clip_answers(answers: Floats, people: int) -> Floats:
    """The answers, clipped to 10⁶·n around their median, so that squares stay finite (sums of bits lie within n)."""
    middle, reach = float(np.median(np.clip(answers, -1e300, 1e300))), 1e6 * people
    return np.clip(answers, middle - reach, middle + reach)
