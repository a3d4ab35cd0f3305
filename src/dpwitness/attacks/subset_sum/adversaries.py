"""Reconstruction from random subset sums with small errors, by a linear program or by least squares.

Dinur & Nissim, Revealing information while preserving privacy, PODS 2003, Theorem 3. See nothing but answers.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.subset_sum.least_squares import fit
from dpwitness.attacks.subset_sum.program import smallest_error
from dpwitness.attacks.subset_sum.subsets import Subsets
from dpwitness.clock import Deadline
from dpwitness.errors import AttackStopped, InvalidParameter

__all__ = ["ADVERSARIES", "Reconstruction", "least_squares_adversary", "polynomial_adversary", "suited"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Bits = NDArray[np.int64]

#: By the names that the command line has for them.
ADVERSARIES: Final = ("polynomial", "least-squares", "exponential")
#: Laws of the errors whose likelihood is that of least squares, or nearly.
NORMAL: Final = ("binomial", "gaussian")
#: Laws behind which a least-squares fit recovers more than the program. Adversarial errors are not normal, but pull
#: the fitted values evenly to 1/2, not past it.
FITTED: Final = (*NORMAL, "adversarial")
#: Residuals are compared up to this, in counts.
TOLERANCE: Final = 1e-6
#: Residuals within so much of the largest are expected to bind in the next program.
NEAR: Final = 0.97


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconstruction:
    """What an adversary made of the answers.

    Attributes
    ----------
    bits
        Shape (n,).
    fractions
        What was rounded, in [0, 1], shape (n,): the solution of the linear program, or the probabilities of a 1.
    largest_residual
        By how much the fractions miss an answer at most, in counts. Program (1) of Theorem 3 has a solution for an
        error E exactly if that of the linear program is at most E, and then this is one.
    expected_right
        How many bits are right if the errors are normal, as least squares takes them; None where the answers are no
        such, and of the linear program, which has no law of them.
    spread
        The standard deviation of the errors, in counts, as least squares estimates it, or was told; None otherwise.
    offset
        What all answers have in common, in counts; 0 where that is presumed.
    means, variances
        Of least squares: what the answers say of each bit before it is taken for 0 or 1, and how far that may be off;
        None otherwise.
    programs, constraints
        How many linear programs were solved, the last of that many answers.
    """

    bits: Bits
    fractions: Floats
    largest_residual: float
    expected_right: float | None = None
    spread: float | None = None
    offset: float = 0.0
    means: Floats | None = None
    variances: Floats | None = None
    programs: int = 0
    constraints: int = 0


def suited(law: str) -> str:
    """The adversary that recovers more behind errors of a law: "least-squares" or "polynomial"."""
    return "least-squares" if law in FITTED else "polynomial"


def least_squares_adversary(
    subsets: Subsets | Flags,
    answers: Floats,
    *,
    variance: float | None = None,
    offset: bool = False,
    deadline: Deadline | None = None,
) -> Reconstruction:
    """The more probable value of each bit, where errors are about normal; see `least_squares`.

    Parameters
    ----------
    subsets
        Who is in which query, shape (t, n).
    answers
        In counts, shape (t,).
    variance
        Of the errors, in counts²; None: estimated, from more answers than people.
    offset
        Whether all answers may have an unknown count in common.

    Raises `InvalidParameter` for shapes that do not fit, answers that are not finite or too few.
    """
    asked = _checked(subsets, answers)
    found = fit(asked, answers, variance=variance, offset=offset, deadline=deadline)
    ones = found.values
    return Reconstruction(
        bits=(ones > 0.5).astype(np.int64),
        fractions=ones,
        largest_residual=float(np.abs(asked.sums(ones) + found.offset - answers).max()),
        expected_right=float(np.maximum(ones, 1 - ones).sum()) if found.probable else None,
        spread=float(np.sqrt(found.variance)),
        offset=found.offset,
        means=found.means,
        variances=found.variances,
    )


def polynomial_adversary(
    subsets: Subsets | Flags, answers: Floats, *, offset: bool = False, deadline: Deadline | None = None
) -> Reconstruction:
    """Solve the linear program of Theorem 3 and round.

    Of all solutions of

        a_j − E ≤ Σ_{i ∈ q_j} c_i ≤ a_j + E,  0 ≤ c_i ≤ 1

    this takes one for the smallest E for which there is any. It lies in the middle of the solutions for the true E, so
    it rounds better than a corner does, and E need not be known. Only some n of the t constraints bind: the program
    starts from the worst of a least-squares fit and takes in what its solution violates until nothing is violated. That
    solves the whole program, and no more than some 3n rows of it are ever in memory as numbers.

    Parameters
    ----------
    subsets
        Who is in which query, shape (t, n).
    answers
        In counts, shape (t,).
    offset
        Whether all answers may have an unknown count in common.

    Raises `InvalidParameter` for shapes that do not fit and answers that are not finite, `AttackStopped` at the
    deadline.
    """
    asked = _checked(subsets, answers)
    queries, size = len(asked), asked.people
    # The normal equations: 5 times as fast as lstsq, and the start need not be exact. A little ridge for few queries.
    sizes = asked.moments(np.ones(queries))
    gram, moments = asked.gram() + 1e-9 * queries * np.eye(size), asked.moments(answers)
    if offset:
        gram, moments = gram - np.outer(sizes, sizes) / queries, moments - sizes * answers.mean()
    plain = np.linalg.solve(gram, moments)
    fractions = np.clip(plain, 0.0, 1.0)
    common = float(answers.mean() - sizes @ fractions / queries) if offset else 0.0
    # The values of a program lie in [0, 1]: the offset, which no more than n below the smallest answer and no more than
    # the largest one is of use, is scaled to that.
    low = float(answers.min()) - size if offset else 0.0
    width = np.full((1, 1), float(answers.max()) - low) if offset else np.zeros((1, 0))
    chosen = np.zeros(queries, np.bool_)
    bound, programs = 0.0, 0
    while True:
        residual = np.abs(asked.sums(fractions) + common - answers)
        violated = (residual > bound + TOLERANCE) & ~chosen
        if not violated.any():
            break
        if deadline is not None and not deadline.left:
            raise AttackStopped(
                f"--max-time is over after {programs} linear programs of {size} people: allow more, or a smaller "
                "--queries or --size"
            )
        near = ~chosen & (residual > NEAR * bound)
        worst = np.argsort(-np.where(near, residual, 0.0))[: size if programs else 2 * size]
        chosen[worst[near[worst]]] = True
        rows = asked.rows(chosen).astype(np.float64)
        matrix = np.hstack([rows, np.repeat(width, len(rows), axis=0)])
        solved, bound = smallest_error(matrix, answers[chosen] - low)
        fractions, common = solved[:size], low + float((width @ solved[size:]).sum())
        programs += 1
    bits = (fractions > 0.5).astype(np.int64)
    return Reconstruction(
        bits=bits,
        fractions=fractions,
        largest_residual=float(residual.max()),
        offset=common,
        programs=programs,
        constraints=int(chosen.sum()),
    )


def _checked(subsets: Subsets | NDArray[Any], answers: Floats) -> Subsets:
    asked = Subsets.of(subsets)
    if answers.shape != (len(asked),):
        raise InvalidParameter(
            f"subsets {(len(asked), asked.people)} and answers {answers.shape} do not fit: give (t, n) and (t,)"
        )
    if not np.isfinite(answers).all():
        raise InvalidParameter("the answers must be finite numbers")
    return asked
