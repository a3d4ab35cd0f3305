"""The query system under attack: subsets go in, sums with small errors come out of a bundled target.

Dinur & Nissim, Revealing information while preserving privacy, PODS 2003. The secret is a list of n bits; a query is a
set of people; its answer is the sum of their bits, wrong by at most E.
"""

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.neighbours import Data

__all__ = ["LAWS", "ask", "check_error", "check_queries", "check_size", "query_count", "subset_family"]

Floats = NDArray[np.float64]

#: Where the attacked mechanisms are; imported when first asked.
TARGETS: Final = "dpwitness.algorithms.subset_sum"
#: Laws of the errors: three within ±E, and binomial ones of standard deviation E/2.
LAWS: Final = ("uniform", "adversarial", "rounding", "binomial")
#: The polynomial adversary keeps its queries as a dense matrix: 1024 people and n·ln²n queries need 400 MB.
POLYNOMIAL_LIMIT: Final = 1024
LARGEST_MATRIX: Final = 1 << 26
#: People told apart by one sum of weights: a float holds whole numbers up to 2⁵³.
WORD: Final = 52


def query_count(size: int) -> int:
    """How many random subsets Theorem 3 asks about `size` people: ⌈n·ln²n⌉, at least n + 1 and at least 8.

    Raises `InvalidParameter` for fewer than 1 or more than 1024 people.
    """
    check_size(size)
    return max(math.ceil(size * math.log(size) ** 2), size + 1, 8)


def subset_family(size: int, queries: int, family: int) -> NDArray[np.bool_]:
    """The subsets that the bundled targets answer: who is in which.

    Read off the target itself: without errors, its sum of the weights 1, 2, 4 … names everyone in a subset.

    Parameters
    ----------
    size, queries
        How many people and how many subsets.
    family
        The seed of random subsets; negative: subset j is the binary digits of j.

    Returns
    -------
    ndarray
        Shape (queries, size). Raises `InvalidParameter` for a size that `query_count` refuses.
    """
    check_size(size)
    answer = _compiled("bounded_subset_sums")
    rng = np.random.default_rng(0)  # nothing is drawn
    members = np.empty((queries, size), np.bool_)
    for first in range(0, size, WORD):
        people = np.arange(min(WORD, size - first))
        weights = np.zeros(size, np.int64)
        weights[first + people] = 1 << people
        codes = answer(rng, weights, 0.0, queries, "rounding", family).astype(np.int64)
        members[:, first + people] = (codes[:, None] >> people) & 1
    return members


def ask(secret: Data, error: float, queries: int, law: str, family: int, rng: np.random.Generator) -> Floats:
    """Answers of a bundled target about the secret, shape (queries,), in counts.

    Parameters
    ----------
    secret
        The bits, shape (n,).
    error
        E, in counts.
    law
        One of `LAWS`: those of `bounded_subset_sums`, or "binomial" for `binomial_subset_sums` with R = E² fair bits,
        whose error has the standard deviation E/2.
    family
        Which subsets, as `subset_family` takes it.
    """
    bits = np.ascontiguousarray(secret, np.int64)
    if law == "binomial":
        return _compiled("binomial_subset_sums")(rng, bits, round(error**2), queries, family)
    return _compiled("bounded_subset_sums")(rng, bits, float(error), queries, law, family)


@cache
def _compiled(name: str) -> Callable[..., Floats]:
    """A bundled target as machine code: an attack asks it thousands of queries."""
    from dpwitness.jit import compiled  # numba is slow to import

    function: Callable[..., Floats] = compiled(getattr(import_module(TARGETS), name))
    return function


def check_error(error: float) -> None:
    """Raise `InvalidParameter` for an error that is negative or not finite."""
    if not 0 <= error < math.inf:
        raise InvalidParameter(f"error={error!r} must be a finite number of at least 0")


def check_queries(size: int, queries: int) -> None:
    """Raise `InvalidParameter` for numbers of people or queries that the polynomial adversary cannot take."""
    check_size(size)
    if queries < 1:
        raise InvalidParameter(f"queries={queries!r} must be at least 1")
    if size * queries > LARGEST_MATRIX:
        raise InvalidParameter(
            f"queries={queries} about size={size} people are too many: at most {LARGEST_MATRIX // size} fit"
        )


def check_size(size: int) -> None:
    """Raise `InvalidParameter` for fewer than 1 or more than 1024 people."""
    if size < 1:
        raise InvalidParameter(f"size={size!r} must be at least 1 person")
    if size > POLYNOMIAL_LIMIT:
        raise InvalidParameter(f"size={size} is too large: at most {POLYNOMIAL_LIMIT} people fit")
