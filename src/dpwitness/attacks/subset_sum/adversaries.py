"""Reconstruction from subset sums with small errors: the exponential and the polynomial adversary.

Dinur & Nissim, Revealing information while preserving privacy, PODS 2003, Theorems 2 and 3. See nothing but answers.
"""

import atexit
import threading
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.subset_sum.oracle import check_error, check_size
from dpwitness.errors import InvalidParameter
from dpwitness.jit import compiled

__all__ = ["Reconstruction", "check_exponential", "exponential_adversary", "polynomial_adversary"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Bits = NDArray[np.int64]

#: The exponential adversary asks 2ⁿ queries and weeds 2ⁿ candidates: above 20 people it takes minutes.
EXPONENTIAL_LIMIT: Final = 20
#: Held while the solver runs. It aborts the process if Python ends meanwhile, as it may below a thread that nobody
#: waits for; so the end waits for the solver, and lets nobody in after that.
SOLVING: Final = threading.Lock()
atexit.register(SOLVING.acquire)
#: Answers and sums are compared up to this, in counts: rounding errors must not weed out the truth.
TOLERANCE: Final = 1e-6


@compiled
def _weed(answers: Floats, error: float) -> np.int64:
    """Return the smallest candidate that no answer contradicts by more than `error`, −1 if there is none.

    Bit i of a candidate is person i's. A candidate's sum over a subset is the number of ones in the AND of two words,
    which the compiler makes one instruction of. Nearly every candidate falls after a few subsets, provided that these
    are asked in no order: an odd factor runs through all of them.
    """
    everything = len(answers)
    last = np.uint64(everything - 1)
    for k in range(everything):
        candidate = np.uint64(k)
        place = np.uint64(0)
        fits = True
        for _ in range(everything):
            place = (place + np.uint64(0x9E3779B97F4A7C15)) & last
            x = candidate & place
            x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
            x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
            x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            ones = np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
            if abs(ones - answers[place]) > error:
                fits = False
                break
        if fits:
            return np.int64(k)
    return np.int64(-1)


def exponential_adversary(answers: Floats, error: float) -> Bits:
    """Weed out every list of bits that some answer contradicts, and take the first left over (Theorem 2).

    Parameters
    ----------
    answers
        To all 2ⁿ subsets, in counts, shape (2ⁿ,); person i is in subset j if digit i of j is 1.
    error
        E, in counts: no answer is wrong by more.

    Returns
    -------
    ndarray
        Bits, shape (n,). They differ from the secret in at most 4E places, so with E = n/40 at least nine tenths of
        them are right.

    Raises `InvalidParameter` for a number of answers that is no power of 2 or too large, a negative error, and answers
    that no list of bits agrees with.
    """
    answers = np.ascontiguousarray(answers, np.float64)
    size = len(answers).bit_length() - 1
    if answers.ndim != 1 or len(answers) != 1 << max(size, 0):
        raise InvalidParameter(f"{answers.size} answers are not those to all subsets: give 2ⁿ of them")
    check_exponential(size)
    check_error(error)
    found = int(_weed(answers, error + TOLERANCE))
    if found < 0:
        raise InvalidParameter(
            f"no list of {size} bits agrees with all answers within error={error:g}: give a larger one"
        )
    return (found >> np.arange(size)) & 1


def check_exponential(size: int) -> None:
    """Raise `InvalidParameter` for more people than the exponential adversary can take, or none."""
    check_size(size)
    if size > EXPONENTIAL_LIMIT:
        raise InvalidParameter(
            f"size={size} is too large for the exponential adversary, which asks 2^{size} queries: at most "
            f"{EXPONENTIAL_LIMIT} people fit; use the polynomial one for more"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconstruction:
    """What the polynomial adversary made of the answers.

    `bits`: the rounded solution, shape (n,); `fractions`: the solution of the linear program, in [0, 1], shape (n,);
    `largest_residual`: by how much it misses an answer at most, in counts. Program (1) of Theorem 3 has a solution for
    an error E exactly if this is at most E, and then this is one. `programs` were solved, the last of `constraints`
    answers.
    """

    bits: Bits
    fractions: Floats
    largest_residual: float
    programs: int
    constraints: int


def polynomial_adversary(subsets: Flags, answers: Floats, *, seconds: float = np.inf) -> Reconstruction:
    """Solve the linear program of Theorem 3 and round.

    Of all solutions of

        a_j − E ≤ Σ_{i ∈ q_j} c_i ≤ a_j + E,  0 ≤ c_i ≤ 1

    this takes one for the smallest E for which there is any. It lies in the middle of the solutions for the true E, so
    it rounds better than a corner does, and E need not be known. Only some n of the t constraints bind: the program
    starts from the worst of a least-squares fit and takes in what its solution violates until nothing is violated. That
    solves the whole program (n = 256: 0.9 s; all constraints at once take 3.6 s, and (1) as it stands 9 s).

    Parameters
    ----------
    subsets
        Who is in which query, shape (t, n).
    answers
        In counts, shape (t,).
    seconds
        That one program may take.

    Raises `InvalidParameter` for shapes that do not fit, answers that are not finite, and a program that takes longer.
    """
    matrix = np.ascontiguousarray(subsets, np.float64)
    if matrix.ndim != 2 or not matrix.size or answers.shape != (len(matrix),):
        raise InvalidParameter(f"subsets {matrix.shape} and answers {answers.shape} do not fit: give (t, n) and (t,)")
    if not np.isfinite(answers).all():
        raise InvalidParameter("the answers must be finite numbers")
    queries, size = matrix.shape
    # The normal equations: 5 times as fast as lstsq, and the start need not be exact. A little ridge for few queries.
    gram = matrix.T @ matrix + 1e-9 * queries * np.eye(size)
    fractions = np.clip(np.linalg.solve(gram, matrix.T @ answers), 0.0, 1.0)
    chosen = np.zeros(queries, np.bool_)
    bound, programs = 0.0, 0
    while True:
        residual = np.abs(matrix @ fractions - answers)
        violated = (residual > bound + TOLERANCE) & ~chosen
        if not violated.any():
            break
        worst = np.argsort(-np.where(violated, residual, 0.0))[: size if programs else 2 * size]
        chosen[worst[violated[worst]]] = True
        fractions, bound = _smallest_error(matrix[chosen], answers[chosen], seconds)
        programs += 1
    return Reconstruction(
        bits=(fractions > 0.5).astype(np.int64),
        fractions=fractions,
        largest_residual=float(residual.max()),
        programs=programs,
        constraints=int(chosen.sum()),
    )


def _smallest_error(matrix: Floats, answers: Floats, seconds: float) -> tuple[Floats, float]:
    """The smallest E for which the program has a solution, and the solution, shape (n,)."""
    from scipy import sparse  # 0.2 s
    from scipy.optimize import linprog

    size = matrix.shape[1]
    rows = sparse.csr_array(matrix)
    slack = sparse.csr_array(-np.ones((2 * len(answers), 1)))
    bounds: list[tuple[float | None, float | None]] = [*[(0.0, 1.0)] * size, (0.0, None)]
    with SOLVING:
        solved = linprog(  # type: ignore[call-overload]  # the stubs know no sparse matrices; linprog does
            np.append(np.zeros(size), 1.0),
            A_ub=sparse.hstack([sparse.vstack([rows, -rows]), slack]).tocsc(),
            b_ub=np.concatenate([answers, -answers]),
            bounds=bounds,
            method="highs-ipm",  # twice as fast as the dual simplex at n = 512, the same below
            options={} if np.isinf(seconds) else {"time_limit": seconds},
        )
    if solved.status == 1:
        raise InvalidParameter(
            f"the linear program of {len(answers)} answers takes longer than {seconds:.3g} s: allow more, or ask fewer"
        )
    if solved.status != 0:
        raise InvalidParameter(f"the linear program of {len(answers)} answers was not solved: {solved.message}")
    return np.clip(solved.x[:size], 0.0, 1.0), float(solved.x[size])
