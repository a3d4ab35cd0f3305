"""The attack on `bounded_subset_sums` as a mechanism, which is at least as private as the answers."""

import numpy as np

from dpwitness.neighbours import Data
from dpwitness.reconstruction.subset_sum.candidates import DEFAULT_BITS, check_position
from dpwitness.reconstruction.subset_sum.linear_decoding import polynomial_adversary
from dpwitness.reconstruction.subset_sum.oracle import ask, query_count, subset_family
from dpwitness.targets import bits as bit_relation
from dpwitness.targets import target


@target(
    claim="none",
    neighbours=bit_relation(DEFAULT_BITS),
    source="Dinur & Nissim 2003, Theorem 3: the attack on bounded_subset_sums as a mechanism of its own",
    true_epsilon="∞ (a function of the answers is at least as private as the answers)",
    attack="subset_sum.flipped_bit",
)
def subset_sum_reconstruction(
    rng: np.random.Generator, bits: Data, error: float = 4.0, position: int = 0, law: str = "uniform"
) -> int:
    """One bit that the polynomial adversary reconstructs from fresh answers of `bounded_subset_sums`.

    Post-processing can only lose information, so a witness against this mechanism is a witness against the answers. The
    mechanism cannot be compiled and is slow, as real mechanisms are.

    Parameters
    ----------
    bits
        The secret bits, shape (n,), n at most 4096.
    error
        E, in counts: no answer is wrong by more.
    position
        Position of the returned bit, from 0.
    law
        Law of the errors: "uniform", "adversarial", "rounding" or "binomial", as `ask` takes it.

    Returns
    -------
    int
        The recovered bit, 0 or 1.

    Raises `InvalidParameter` for a position outside of the bits.
    """
    size = len(bits)
    check_position(position, size)
    queries = query_count(size)
    family = int(rng.integers(1 << 30))
    answers = ask(bits, error, queries, law, family, rng)
    return int(polynomial_adversary(subset_family(size, queries, family), answers).bits[position])
