"""Reconstruction from subset sums with small errors: the exponential and the polynomial adversary.

Dinur & Nissim, Revealing information while preserving privacy, PODS 2003, Theorems 2 and 3. The secret is a list of n
bits; a query is a set of people; its answer is the sum of their bits, wrong by at most E.
"""

import atexit
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.candidate import Candidate
from dpwitness.claims import Claim
from dpwitness.errors import InvalidParameter
from dpwitness.events import OutcomeSet
from dpwitness.neighbours import Data, Pair, as_input
from dpwitness.targets import bits as bit_relation
from dpwitness.targets import target

__all__ = [
    "Reconstruction",
    "exponential_adversary",
    "polynomial_adversary",
    "propose_bit",
    "query_count",
    "subset_family",
    "subset_sum_reconstruction",
]

Floats = NDArray[np.float64]
Bits = NDArray[np.int64]

#: Where the attacked mechanisms are; imported when first asked.
TARGETS: Final = "dpwitness.algorithms.subset_sum"

#: The exponential adversary asks 2ⁿ queries and weeds 2ⁿ candidates: above 20 people it takes minutes.
EXPONENTIAL_LIMIT: Final = 20
#: The polynomial adversary keeps its queries as a dense matrix: 1024 people and n·ln²n queries need 400 MB.
POLYNOMIAL_LIMIT: Final = 1024
LARGEST_MATRIX: Final = 1 << 26
#: People told apart by one sum of weights: a float holds whole numbers up to 2⁵³.
WORD: Final = 52
#: People in the slow target's own inputs: 720 queries and a linear program, some 0.02 s a run; 128 take 0.2 s.
RECONSTRUCTED: Final = 48
#: Held while the solver runs. It aborts the process if Python ends meanwhile, as it may below a thread that nobody
#: waits for; so the end waits for the solver, and lets nobody in after that.
SOLVING: Final = threading.Lock()
atexit.register(SOLVING.acquire)
#: Answers and sums are compared up to this, in counts: rounding errors must not weed out the truth.
TOLERANCE: Final = 1e-6


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


def query_count(size: int) -> int:
    """How many random subsets Theorem 3 asks about `size` people: ⌈n·ln²n⌉, at least n + 1 and at least 8."""
    _check_size(size)
    return max(math.ceil(size * math.log(size) ** 2), size + 1, 8)


def subset_family(size: int, queries: int, family: int) -> NDArray[np.bool_]:
    """The subsets that the bundled targets answer, shape (queries, size): who is in which.

    Read off the target itself: without errors, its sum of the weights 1, 2, 4 … names everyone in a subset.
    """
    _check_size(size)
    answer = compiled_target("bounded_subset_sums")
    rng = np.random.default_rng(0)  # nothing is drawn
    members = np.empty((queries, size), np.bool_)
    for first in range(0, size, WORD):
        people = np.arange(min(WORD, size - first))
        weights = np.zeros(size, np.int64)
        weights[first + people] = 1 << people
        codes = answer(rng, weights, 0.0, queries, "rounding", family).astype(np.int64)
        members[:, first + people] = (codes[:, None] >> people) & 1
    return members


@cache
def compiled_target(name: str) -> Callable[..., Floats]:
    """A bundled subset sum target as machine code: an attack asks it thousands of queries."""
    from dpwitness.jit import compiled  # numba is slow to import

    function: Callable[..., Floats] = compiled(getattr(import_module(TARGETS), name))
    return function


def exponential_adversary(answers: Floats, error: float) -> Bits:
    """Weed out every list of bits that some answer contradicts; return the first left over, shape (n,).

    `answers`: to all 2ⁿ subsets, shape (2ⁿ,); person i is in subset j if digit i of j is 1. `error`: no answer is wrong
    by more. The result differs from the secret in at most 4·`error` places (Theorem 2), so with `error` = n/40 at least
    nine tenths of it are right. Raises `InvalidParameter` for a number of answers that is no power of 2 or too large, a
    negative error, and answers that no list of bits agrees with.
    """
    answers = np.ascontiguousarray(answers, np.float64)
    size = len(answers).bit_length() - 1
    if answers.ndim != 1 or len(answers) != 1 << max(size, 0):
        raise InvalidParameter(f"{answers.size} answers are not those to all subsets: give 2ⁿ of them")
    check_exponential(size)
    check_error(error)
    from dpwitness.attacks.subset_sum.kernel import weed

    found = int(weed(answers, error + TOLERANCE))
    if found < 0:
        raise InvalidParameter(
            f"no list of {size} bits agrees with all answers within error={error:g}: give a larger one"
        )
    return (found >> np.arange(size)) & 1


def polynomial_adversary(subsets: NDArray[np.bool_], answers: Floats) -> Reconstruction:
    """Solve the linear program of Theorem 3 and round.

    `subsets`: shape (t, n), who is in which query; `answers`: shape (t,). Of all solutions of

        a_j − E ≤ Σ_{i ∈ q_j} c_i ≤ a_j + E,  0 ≤ c_i ≤ 1

    this takes one for the smallest E for which there is any. It lies in the middle of the solutions for the true E, so
    it rounds better than a corner does, and E need not be known. Only some n of the t constraints bind: the program
    starts from the worst of a least-squares fit and takes in what its solution violates until nothing is violated. That
    solves the whole program (n = 256: 0.9 s; all constraints at once take 3.6 s, and (1) as it stands 9 s). Raises
    `InvalidParameter` for shapes that do not fit.
    """
    from scipy import sparse  # 0.2 s
    from scipy.optimize import linprog

    matrix = np.ascontiguousarray(subsets, np.float64)
    if matrix.ndim != 2 or not matrix.size or answers.shape != (len(matrix),):
        raise InvalidParameter(f"subsets {matrix.shape} and answers {answers.shape} do not fit: give (t, n) and (t,)")
    if not np.isfinite(answers).all():
        raise InvalidParameter("the answers must be finite numbers")
    queries, size = matrix.shape
    # The normal equations: 5 times as fast as lstsq, and the start need not be exact. A little ridge for few queries.
    gram = matrix.T @ matrix + 1e-9 * queries * np.eye(size)
    fractions = np.clip(np.linalg.solve(gram, matrix.T @ answers), 0.0, 1.0)
    rows = sparse.csr_array(matrix)
    chosen = np.zeros(queries, np.bool_)
    bounds: list[tuple[float | None, float | None]] = [*[(0.0, 1.0)] * size, (0.0, None)]
    bound, programs = 0.0, 0
    while True:
        residual = np.abs(matrix @ fractions - answers)
        violated = (residual > bound + TOLERANCE) & ~chosen
        if not violated.any():
            break
        worst = np.argsort(-np.where(violated, residual, 0.0))[: size if programs else 2 * size]
        chosen[worst[violated[worst]]] = True
        part, wanted = rows[chosen], answers[chosen]
        slack = sparse.csr_array(-np.ones((2 * len(wanted), 1)))
        with SOLVING:
            solved = linprog(  # type: ignore[call-overload]  # the stubs know no sparse matrices; linprog does
                np.append(np.zeros(size), 1.0),
                A_ub=sparse.hstack([sparse.vstack([part, -part]), slack]).tocsc(),
                b_ub=np.concatenate([wanted, -wanted]),
                bounds=bounds,
                method="highs-ipm",  # twice as fast as the dual simplex at n = 512, the same below
            )
        if solved.status != 0:
            raise InvalidParameter(f"the linear program of {len(wanted)} answers was not solved: {solved.message}")
        programs += 1
        fractions, bound = np.clip(solved.x[:size], 0.0, 1.0), float(solved.x[size])
    return Reconstruction(
        bits=(fractions > 0.5).astype(np.int64),
        fractions=fractions,
        largest_residual=float(residual.max()),
        programs=programs,
        constraints=int(chosen.sum()),
    )


def ask(secret: Data, error: float, queries: int, law: str, family: int, rng: np.random.Generator) -> Floats:
    """Answers of a bundled target about the secret, shape (queries,).

    `law`: one of `bounded_subset_sums`, or "binomial" for `binomial_subset_sums` with R = E² fair bits, whose error has
    the standard deviation E/2.
    """
    bits = np.ascontiguousarray(secret, np.int64)
    if law == "binomial":
        return compiled_target("binomial_subset_sums")(rng, bits, round(error**2), queries, family)
    return compiled_target("bounded_subset_sums")(rng, bits, float(error), queries, law, family)


def propose_bit(parameters: dict[str, Any], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
    """Propose that the bit at `position`, 1 in D and 0 in D′, is recovered as 1."""
    position = int(parameters["position"])
    base = np.arange(RECONSTRUCTED) % 2 if data is None else np.array(data, np.int64)
    if base.ndim != 1 or not 0 <= position < len(base):
        raise InvalidParameter(f"position={position} must be one of the {base.size} bits, counted from 0")
    one, zero = base.copy(), base.copy()
    one[position], zero[position] = 1, 0
    yield Candidate(pair=Pair(as_input(one), as_input(zero), f"bit {position + 1} flipped"), event=OutcomeSet([[1.0]]))


@target(
    claim="none",
    neighbours=bit_relation(RECONSTRUCTED),
    source="Dinur & Nissim 2003, Theorem 3: the attack on bounded_subset_sums as a mechanism of its own",
    true_epsilon="∞ (what is made of the answers alone is no less private than they are)",
    attack="dpwitness.attacks.subset_sum.reconstruction:propose_bit",
)
def subset_sum_reconstruction(
    rng: np.random.Generator,
    bits: Data,
    error: float = 4.0,
    position: int = 0,
    law: str = "uniform",
) -> int:
    """One bit of what the polynomial adversary makes of fresh answers of `bounded_subset_sums`.

    Post-processing can only lose information, so a witness against this is one against the answers. Slow on purpose.
    """
    size = len(bits)
    if not 0 <= position < size:
        raise InvalidParameter(f"position={position} must be one of the {size} bits, counted from 0")
    queries = query_count(size)
    family = int(rng.integers(1 << 30))
    answers = ask(bits, error, queries, law, family, rng)
    return int(polynomial_adversary(subset_family(size, queries, family), answers).bits[position])


def check_error(error: float) -> None:
    """Raise `InvalidParameter` for an error that is negative or not finite."""
    if not 0 <= error < math.inf:
        raise InvalidParameter(f"error={error!r} must be a finite number of at least 0")


def check_exponential(size: int) -> None:
    """Raise `InvalidParameter` for more people than the exponential adversary can take."""
    _check_size(size)
    if size > EXPONENTIAL_LIMIT:
        raise InvalidParameter(
            f"size={size} is too large for the exponential adversary, which asks 2^{size} queries: at most "
            f"{EXPONENTIAL_LIMIT} people fit; use the polynomial one for more"
        )


def check_queries(size: int, queries: int) -> None:
    """Raise `InvalidParameter` for numbers of people or queries that the polynomial adversary cannot take."""
    _check_size(size)
    if queries < 1:
        raise InvalidParameter(f"queries={queries!r} must be at least 1")
    if size * queries > LARGEST_MATRIX:
        raise InvalidParameter(
            f"queries={queries} about size={size} people are too many: at most {LARGEST_MATRIX // size} fit"
        )


def _check_size(size: int) -> None:
    if size < 1:
        raise InvalidParameter(f"size={size!r} must be at least 1 person")
    if size > POLYNOMIAL_LIMIT:
        raise InvalidParameter(f"size={size} is too large: at most {POLYNOMIAL_LIMIT} people fit")
