"""The exponential adversary finds a list of bits that no answer contradicts.

Dinur & Nissim, Revealing information while preserving privacy, PODS 2003, Theorem 2.
"""

from typing import Final

import numpy as np

from dpwitness.arrays import Floats
from dpwitness.errors import InvalidParameter
from dpwitness.jit import kernel
from dpwitness.reconstruction.subset_sum.linear_decoding import PersonBits

#: Tolerance of the comparison of answers with sums, in counts: rounding errors must not exclude the truth.
ANSWER_TOLERANCE: Final = 1e-6


def _smallest_candidate(answers: Floats, size: int, error: float) -> np.int64:
    """Return the smallest candidate that no answer contradicts by more than `error`; −1 without such a candidate.

    Bit i of a candidate is person i's. The search chooses bits from the last person to the first, 0 before 1. After
    each choice it compares all subsets of the chosen people that hold the last chosen person; one contradiction
    excludes all candidates with these bits. A candidate's sum over a subset is the number of ones in the AND of two
    words, which the compiler turns into one instruction. Subsets come in a mixed order, by an odd factor, so that a
    contradiction comes soon.
    """
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
        # This person's bit becomes 1; where it is 1 already, the bit of the person chosen before does.
        while person < size and (candidate >> np.uint64(person)) & np.uint64(1) == np.uint64(1):
            candidate ^= np.uint64(1) << np.uint64(person)
            person += 1
        if person == size:
            return np.int64(-1)
        candidate |= np.uint64(1) << np.uint64(person)


def exponential_adversary(answers: Floats, error: float) -> PersonBits:
    """The first list of bits that no answer contradicts (Theorem 2), shape (n,).

    The list differs from the secret in at most 4E places: with E = n/40 at least nine tenths of the bits are right.

    `answers`: one for each of all 2ⁿ subsets, in counts, shape (2ⁿ,); person i is in subset j if binary digit i of j is
    1. `error`: E, in counts, the largest error of an answer.

    Raises `InvalidParameter` for answers that no list of bits agrees with.
    """
    answers = np.ascontiguousarray(answers, np.float64)
    size = len(answers).bit_length() - 1
    candidate = int(kernel(_smallest_candidate)(answers, size, error + ANSWER_TOLERANCE))
    if candidate < 0:
        raise InvalidParameter(
            f"no list of {size} bits agrees with all answers within error={error:g}: give a larger error"
        )
    return (candidate >> np.arange(size)) & 1
