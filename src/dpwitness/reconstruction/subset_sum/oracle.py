"""The query system under attack: subsets go in, sums with small errors come out of a bundled target.

Dinur & Nissim, Revealing information while preserving privacy, PODS 2003. The secret is a list of n bits; a query is a
set of people; its answer is the sum of their bits, wrong by at most E.

The exponential adversary: every list of bits that no answer contradicts is as good as the secret.

Dinur & Nissim, Revealing information while preserving privacy, PODS 2003, Theorem 2. It sees nothing but answers.
"""

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.jit import compiled
from dpwitness.neighbours import Data
from dpwitness.reconstruction.subset_sum.linear_decoding import Subsets

Floats = NDArray[np.float64]

#: Where the attacked mechanisms are; imported when first asked.
TARGETS: Final = "dpwitness.algorithms.subset_sum"
#: Laws of the errors: three within ±E, and binomial and normal ones of standard deviation E/2.
LAWS: Final = ("uniform", "adversarial", "rounding", "binomial", "gaussian")
#: Matrices of n × n numbers, 128 MB each, are what the adversaries need for 4096 people; subsets are kept as bits.
LARGEST_SIZE: Final = 4096
LARGEST_MATRIX: Final = 1 << 31
#: E² fair bits of binomial errors fit into 64 bits.
LARGEST_ERROR: Final = 10**6


def query_count(size: int) -> int:
    """How many random subsets Theorem 3 asks about `size` people: ⌈n·ln²n⌉, at least n + 1 and at least 8.

    Raises `InvalidParameter` for fewer than 1 or more than 4096 people.
    """
    check_size(size)
    return max(math.ceil(size * math.log(size) ** 2), size + 1, 8)


def subset_family(size: int, queries: int, family: int) -> Subsets:
    """The subsets that the bundled targets answer: who is in which.

    Parameters
    ----------
    size, queries
        How many people and how many subsets.
    family
        The seed of random subsets; negative: subset j is the binary digits of j.

    Returns
    -------
    Subsets
        `queries` subsets of `size` people. Raises `InvalidParameter` for a size that `query_count` refuses.
    """
    check_size(size)
    packed = np.zeros((queries, -(-size // 8)), np.uint8)
    _members()(packed, size, family)
    return Subsets(packed, size)


def _fill(packed: NDArray[np.uint8], size: int, family: int) -> None:
    """The targets' own subsets, drawn as they draw them: Park & Miller's generator."""
    state = (abs(family) * 1_000_003 + 12_345) % 2_147_483_646 + 1
    for j in range(len(packed)):
        for i in range(size):
            state = state * 48_271 % 2_147_483_647
            if state > 1_073_741_823 if family >= 0 else j >> i & 1 == 1:
                packed[j, i // 8] |= 1 << (i % 8)


@cache
def _members() -> Callable[[NDArray[np.uint8], int, int], None]:
    """`_fill` as machine code."""
    from dpwitness.jit import compiled  # numba is slow to import

    function: Callable[[NDArray[np.uint8], int, int], None] = compiled(_fill)
    return function


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
        whose error has the standard deviation E/2, or "gaussian": exact sums and normal errors of that deviation.
    family
        Which subsets, as `subset_family` takes it.
    """
    bits = np.ascontiguousarray(secret, np.int64)
    if law == "binomial":
        return _compiled("binomial_subset_sums")(rng, bits, round(error**2), queries, family)
    if law == "gaussian":
        return _compiled("bounded_subset_sums")(rng, bits, 0.0, queries, "rounding", family) + rng.normal(
            0.0, error / 2, queries
        )
    return _compiled("bounded_subset_sums")(rng, bits, float(error), queries, law, family)


@cache
def _compiled(name: str) -> Callable[..., Floats]:
    """A bundled target as machine code: an attack asks it thousands of queries."""
    from dpwitness.jit import compiled  # numba is slow to import

    function: Callable[..., Floats] = compiled(getattr(import_module(TARGETS), name))
    return function


def check_error(error: float) -> None:
    """Raise `InvalidParameter` for an error that is negative or above a million, beside which no sum shows."""
    if not 0 <= error <= LARGEST_ERROR:
        raise InvalidParameter(f"error={error!r} must be a finite number of at least 0 and at most {LARGEST_ERROR}")


def check_queries(size: int, queries: int) -> None:
    """Raise `InvalidParameter` for numbers of people or queries that the adversaries cannot take."""
    check_size(size)
    if queries < 1:
        raise InvalidParameter(f"queries={queries!r} must be at least 1")
    if size * queries > LARGEST_MATRIX:
        raise InvalidParameter(
            f"queries={queries} about size={size} people are too many: at most {LARGEST_MATRIX // size} fit"
        )


def check_size(size: int) -> None:
    """Raise `InvalidParameter` for fewer than 1 or more than 4096 people."""
    if size < 1:
        raise InvalidParameter(f"size={size!r} must be at least 1 person")
    if size > LARGEST_SIZE:
        raise InvalidParameter(f"size={size} is too large: at most {LARGEST_SIZE} people fit")


Bits = NDArray[np.int64]

#: The exponential adversary asks 2ⁿ queries: 24 people take 128 MB of answers.
EXPONENTIAL_LIMIT: Final = 24
#: Answers and sums are compared up to this, in counts: rounding errors must not weed out the truth.
TOLERANCE: Final = 1e-6


@compiled
def _weed(answers: Floats, error: float) -> np.int64:
    """Return the smallest candidate that no answer contradicts by more than `error`, −1 if there is none.

    Bit i of a candidate is person i's. The bits are chosen one by one, the last person's first and 0 before 1; all
    subsets of the people chosen so far, with the one just chosen, are compared before the next: nearly every beginning
    that is wrong falls there, with all that would follow. A candidate's sum over a subset is the number of ones in the
    AND of two words, which the compiler makes one instruction of. An odd factor runs through the subsets in no order,
    so that a contradiction comes soon.
    """
    size = 0
    while 1 << size < len(answers):
        size += 1
    if size == 0:
        return np.int64(0) if abs(answers[0]) <= error else np.int64(-1)
    if abs(answers[0]) > error:
        return np.int64(-1)
    candidate = np.uint64(0)
    person = size - 1
    while True:
        # All subsets of person … size − 1 that hold this person.
        number = np.uint64(1) << np.uint64(size - 1 - person)
        last = number - np.uint64(1)
        place = np.uint64(0)
        fits = True
        for _ in range(number):
            place = (place + np.uint64(0x9E3779B97F4A7C15)) & last
            subset = ((place << np.uint64(1)) | np.uint64(1)) << np.uint64(person)
            x = candidate & subset
            x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
            x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
            x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            ones = np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
            if abs(ones - answers[subset]) > error:
                fits = False
                break
        if fits:
            if person == 0:
                return np.int64(candidate)
            person -= 1
            continue
        # The next beginning: this person's bit is 1 instead of 0, or the next of an earlier person's is.
        while person < size and (candidate >> np.uint64(person)) & np.uint64(1) == np.uint64(1):
            candidate ^= np.uint64(1) << np.uint64(person)
            person += 1
        if person == size:
            return np.int64(-1)
        candidate |= np.uint64(1) << np.uint64(person)


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
            f"{EXPONENTIAL_LIMIT} people fit; use another one for more"
        )
