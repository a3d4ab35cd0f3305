"""Local mechanisms: a person's one value is randomised before it is sent; any two values are neighbours."""

import math

import numpy as np
from numpy.typing import NDArray

from dpwitness.targets import bits, pairs, target

Values = NDArray[np.int64]
Bits = NDArray[np.float64]

#: The number of values that a person may have.
KINDS = 6
#: The relation under which any two values are neighbours.
ANY_TWO = pairs(*(([a], [b]) for a in range(KINDS) for b in range(a + 1, KINDS)))


@target(claim="epsilon", neighbours=bits(1), source="Warner 1965; Dwork & Roth 2014, section 3.2", true_epsilon="ε")
def randomized_response(rng: np.random.Generator, bit: Values, epsilon: float) -> bool:
    """One bit, true with probability e^ε/(1 + e^ε), else the other bit."""
    return bool((bit[0] == 1) == (rng.random() < 1 / (1 + math.exp(-epsilon))))


@target(
    claim="epsilon",
    neighbours=ANY_TWO,
    source="Kairouz, Oh & Viswanath 2016 (k-RR); Wang et al. 2017 (direct encoding)",
    true_epsilon="ε",
)
def generalized_randomized_response(rng: np.random.Generator, value: Values, epsilon: float, kinds: int = KINDS) -> int:
    """One of `kinds` values, true with probability e^ε/(e^ε + kinds − 1), else a random other value."""
    if rng.random() < 1 / (1 + (kinds - 1) * math.exp(-epsilon)):
        return int(value[0])
    other = rng.integers(0, kinds - 1)
    return int(other + (other >= value[0]))


@target(claim="epsilon", neighbours=ANY_TWO, source="Wang, Blocki, Li & Jha 2017 (OUE)", true_epsilon="ε")
def optimal_unary_encoding(rng: np.random.Generator, value: Values, epsilon: float, kinds: int = KINDS) -> Bits:
    """A bit for each value: the person's own is 1 with probability 1/2, each other with 1/(1 + e^ε)."""
    sent = np.empty(kinds)
    for i in range(kinds):
        sent[i] = rng.random() < (0.5 if value[0] == i else 1 / (1 + math.exp(epsilon)))
    return sent


def place_in_filter(value: int, number: int, length: int) -> int:
    """The place in a Bloom filter to which hash function `number` maps a value (double hashing).

    As in Kirsch & Mitzenmacher 2008, with an odd step, so that two hash functions of a value seldom agree.
    """
    return (7 * value + 3 + number * (2 * (value * 5 % 4) + 1)) % length


def bloom_filter(value: int, hashes: int, length: int) -> Bits:
    """The Bloom filter that holds one value."""
    held = np.zeros(length)
    for number in range(hashes):
        held[place_in_filter(value, number, length)] = 1
    return held


@target(
    claim="none",
    neighbours=ANY_TWO,
    source="Erlingsson, Pihur & Korolova 2014, steps 1 to 3; Bichsel et al. 2021",
    true_epsilon="bits that differ (at most 2·hashes) · ln(q*/p*): .4001 at the defaults",
)
def rappor(
    rng: np.random.Generator,
    value: Values,
    hashes: int = 4,
    length: int = 20,
    f: float = 0.75,
    p: float = 0.45,
    q: float = 0.55,
) -> Bits:
    """A value in a Bloom filter, each bit replaced by a fair coin with probability f, then randomised again.

    The second step sends 1 with probability q for a 1, and with probability p for a 0.
    """
    sent = bloom_filter(value[0], hashes, length)
    for i in range(length):
        if rng.random() < f:
            sent[i] = rng.random() < 0.5
        sent[i] = rng.random() < (q if sent[i] == 1 else p)
    return sent


@target(
    claim="none",
    neighbours=ANY_TWO,
    source="Erlingsson, Pihur & Korolova 2014, steps 1 and 2; Bichsel et al. 2021",
    true_epsilon="bits that differ (at most 2·hashes) · ln((2 − f)/f): .8007 at the defaults",
)
def one_time_rappor(
    rng: np.random.Generator, value: Values, hashes: int = 4, length: int = 20, f: float = 0.95
) -> Bits:
    """A value in a Bloom filter, each bit replaced by a fair coin with probability f."""
    sent = bloom_filter(value[0], hashes, length)
    for i in range(length):
        if rng.random() < f:
            sent[i] = rng.random() < 0.5
    return sent
