"""Subset sums of secret bits with small errors: blatantly non-private when the errors are below √n."""

import numpy as np
from numpy.typing import NDArray

from dpwitness.targets import bits as bit_relation
from dpwitness.targets import target

Answers = NDArray[np.float64]


def first_state(family: int) -> int:
    """The state of Park & Miller's generator that a family of subsets begins with."""
    return (abs(family) * 1_000_003 + 12_345) % 2_147_483_646 + 1


def next_state(state: int, family: int) -> int:
    """The state after `state`, equal in Python and in compiled code; a negative family keeps its state."""
    return state * 48_271 % 2_147_483_647 if family >= 0 else state


def is_member(state: int, family: int, subset: int, person: int) -> bool:
    """Whether a person is in a subset: with probability 1/2; of a negative family, by the subset's binary digits."""
    return state > 1_073_741_823 if family >= 0 else subset >> person & 1 == 1


@target(
    claim="none",
    neighbours=bit_relation(16),
    source="Dinur & Nissim 2003, Theorems 2 and 3",
    true_epsilon="∞ (bounded error)",
)
def bounded_subset_sums(
    rng: np.random.Generator,
    bits: NDArray[np.int64],
    error: float = 2.0,
    queries: int = 32,
    law: str = "uniform",
    family: int = 0,
) -> Answers:
    """Answers to `queries` subset sums, each wrong by at most `error`.

    `law`: "uniform" draws the errors from [−error, error]; "adversarial" moves each sum by at most `error` towards half
    the size of its subset; "rounding" gives the nearest multiple of 2·error. The last two laws draw nothing. `family`:
    the seed of the random subsets, which hold each person with probability 1/2. For a negative family, subset j holds
    person i if binary digit i of j is 1, so that `queries` = 2ⁿ asks for all subsets.
    """
    if not 0 <= error < np.inf:
        raise ValueError("error must be a finite number of at least 0")
    if queries < 1:
        raise ValueError("queries must be at least 1")
    if law not in ("uniform", "adversarial", "rounding"):
        raise ValueError("law must be uniform, adversarial or rounding")
    answers = np.empty(queries)
    state = first_state(family)
    for j in range(queries):
        total, size = 0, 0
        for i in range(len(bits)):
            state = next_state(state, family)
            if is_member(state, family, j, i):
                size += 1
                total += bits[i]
        if law == "uniform":
            answers[j] = total + error * (2 * rng.random() - 1)
        elif law == "adversarial":
            answers[j] = total + min(max(size / 2 - total, -error), error)
        else:
            answers[j] = total if error == 0 else np.round(total / (2 * error)) * (2 * error)
    return answers


@target(
    claim="none",
    neighbours=bit_relation(16),
    source="Dinur & Nissim 2003, Theorem 5",
    true_epsilon="∞ (bounded error), by events of probability 2^−R",
)
def binomial_subset_sums(
    rng: np.random.Generator,
    bits: NDArray[np.int64],
    fair_bits: int = 64,
    queries: int = 32,
    family: int = 0,
) -> Answers:
    """Subset sums, each with the error (sum of `fair_bits` = R fair bits) − R/2; `family`: as in the bounded sums."""
    if fair_bits < 0:
        raise ValueError("fair_bits must be at least 0")
    if queries < 1:
        raise ValueError("queries must be at least 1")
    answers = np.empty(queries)
    state = first_state(family)
    for j in range(queries):
        total = 0
        for i in range(len(bits)):
            state = next_state(state, family)
            if is_member(state, family, j, i):
                total += bits[i]
        answers[j] = total + rng.binomial(fair_bits, 0.5) - fair_bits / 2
    return answers


def packed_subsets(size: int, queries: int, family: int) -> NDArray[np.uint8]:
    """The members of each subset of a family, which curator and attacker know, eight people a byte.

    Shape (queries, ⌈size/8⌉), the first person in the lowest bit.
    """
    packed = np.zeros((queries, (size + 7) // 8), np.uint8)
    state = first_state(family)
    for j in range(queries):
        for i in range(size):
            state = next_state(state, family)
            if is_member(state, family, j, i):
                packed[j, i // 8] |= 1 << (i % 8)
    return packed
