"""The system under attack answers questions about subsets of people with noisy sums of their secret bits.

Dinur & Nissim, Revealing information while preserving privacy, PODS 2003. The system is the user's own, as `FORM`
describes it, or a bundled target, whose answers `ask` returns. Both have the limits that are checked here.
"""

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np

from dpwitness.arrays import Booleans, Floats
from dpwitness.checks import whole
from dpwitness.mechanisms.compiled.driver import compiled
from dpwitness.neighbours import Data
from dpwitness.reconstruction.subset_sum.linear_decoding import Subsets
from dpwitness.reconstruction.transcript import Form, as_number

#: Names of the laws of errors: three within ±E, and binomial and normal errors of standard deviation E/2.
ERROR_LAWS: Final = ("uniform", "adversarial", "rounding", "binomial", "gaussian")
#: Largest number of people: the adversaries need matrices of n × n numbers, 128 MB each for 4,096 people.
LARGEST_SIZE: Final = 4096
#: Largest number of people times subsets: the matrix is kept as bits, 256 MB.
LARGEST_MATRIX_ENTRIES: Final = 1 << 31
#: Largest number of people of the exponential adversary, which asks 2ⁿ queries: 24 people take 128 MB of answers.
LARGEST_EXPONENTIAL_SIZE: Final = 24
#: Largest E, in counts: the number E² of fair bits of binomial errors fits into 64 bits.
LARGEST_ERROR: Final = 10**6
#: Largest absolute value of an answer, in counts: sums of squares stay finite, as the JSON of results needs.
LARGEST_ANSWER: Final = 1e100


def as_sum(value: object) -> float | None:
    """A number of at most `LARGEST_ANSWER` in absolute value as a float; None for all other values."""
    number = as_number(value)
    return number if number is not None and abs(number) <= LARGEST_ANSWER else None


#: Form of the questions, subsets of people, and of the answers, sums of bits, in calls and transcripts.
#: The user's system gets a bool array, True for the people of the subset, shape (people,).
FORM: Final[Form[Booleans]] = Form(
    family="subset_sum",
    answer=f"a finite number, of at most {LARGEST_ANSWER:g} in size",
    written=lambda subset: np.flatnonzero(subset).tolist(),  # the people of the subset, from 0
    handed=np.copy,
    read=as_sum,
    of_system=("size",),
)


def query_count(size: int) -> int:
    """The number of random subsets that Theorem 3 asks about `size` people: ⌈n·ln²n⌉, at least n + 1 and at least 8.

    Raises `InvalidParameter` for fewer than 1 or more than 4096 people.
    """
    whole("size", size, 1, LARGEST_SIZE)
    return max(math.ceil(size * math.log(size) ** 2), size + 1, 8)


def subset_family(size: int, queries: int, family: int) -> Subsets:
    """The `queries` subsets of `size` people whose sums the bundled targets answer with.

    `family`: the seed of random subsets. With a negative `family`, person i is in subset j if binary digit i of j is 1.
    """
    return Subsets(_compile_target("packed_subsets")(size, queries, family), size)


def ask(secret: Data, error: float, queries: int, law: str, family: int, rng: np.random.Generator) -> Floats:
    """The answers of a bundled target about the secret bits, shape (queries,), in counts.

    `family`: the seed of subsets, as `subset_family` takes it. `law`: a law of `bounded_subset_sums`, or "binomial" for
    `binomial_subset_sums` with R = E² fair bits, whose error has the standard deviation E/2, or "gaussian" for exact
    sums with normal errors of that deviation.
    """
    bits = np.ascontiguousarray(secret, np.int64)
    bounded: Callable[..., Floats] = _compile_target("bounded_subset_sums")
    binomial: Callable[..., Floats] = _compile_target("binomial_subset_sums")
    if law == "binomial":
        return binomial(rng, bits, round(error**2), queries, family)
    if law == "gaussian":
        return bounded(rng, bits, 0.0, queries, "rounding", family) + rng.normal(0.0, error / 2, queries)
    return bounded(rng, bits, float(error), queries, law, family)


@cache
def _compile_target(name: str) -> Callable[..., Any]:
    """The function `name` of the targets' module, compiled, since an attack asks thousands of queries."""
    function: Callable[..., Any] = compiled(getattr(import_module("dpwitness.algorithms.subset_sum"), name))
    return function


def check_queries(size: int, queries: int) -> None:
    """Raise `InvalidParameter` for numbers of people or queries that are too small or too large."""
    whole("size", size, 1, LARGEST_SIZE)
    whole("queries", queries, 1, LARGEST_MATRIX_ENTRIES // size)
