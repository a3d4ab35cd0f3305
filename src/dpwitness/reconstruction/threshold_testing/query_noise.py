"""The adaptive attack with query noise: a majority among copies of each query takes the noise away (Theorem 3.5).

With finite ε₂ the answer to a query of value q is ⊤ with probability F(ε₂(q − z)), F the Laplace distribution function,
anew for each copy. A query counts as reaching the noisy threshold z where more than a share `cut` of its copies are ⊤.
The majority, a cut at 1/2, does not tell on which side of z a query lies that z nearly equals. Queries are whole
numbers, so of two cuts that stand for places half a count apart one is at least a quarter of a count from all of them.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from dpwitness.errors import InvalidParameter
from dpwitness.exact import laplace_cdf
from dpwitness.reconstruction.threshold_testing.comparison import Comparison
from dpwitness.reconstruction.threshold_testing.oracle import Queries
from dpwitness.reconstruction.threshold_testing.theory import MOST_COPIES

#: The ε₂ (nats) from which on cuts at 1/4 and 3/4 suffice: F falls from 1/2 to 1/4 within a quarter of a count, so one
#: of the cuts has no whole number between 1/8 and 1/2, or between 1/2 and 7/8.
SHARP_EPSILON: Final = 4 * float(np.log(2))
#: The number of copies with which shares that differ by 1/8 from the cut lie 6 standard errors from it.
SHARP_COPIES: Final = 576


def majority_comparisons(oracle: Queries, copies: int | None = None) -> Iterator[Comparison]:
    """Two comparisons by shares of copies of each query; one of them takes the noise away.

    `copies`: by default the number that puts whole numbers 6 standard errors from the cut. Raises `InvalidParameter`
    where ε₂ is so small that this takes more than 10^12 copies.
    """
    epsilon2, enough, cuts = oracle.noise.epsilon2, SHARP_COPIES, [0.25, 0.75]
    if epsilon2 < SHARP_EPSILON:
        # Within a count of z, F rises by at least ε₂ exp(−ε₂)/2 a count, and a quarter of that in a quarter of a count.
        ratio = 24 / (epsilon2 * float(np.exp(-epsilon2)))
        if not ratio * ratio <= MOST_COPIES:
            raise InvalidParameter(
                f"epsilon2={epsilon2:g} is too small: to read a query takes {ratio * ratio:.2g} copies of it, more "
                "than 10^12; give a larger one"
            )
        enough = int(np.ceil(ratio * ratio))
        cuts = laplace_cdf(epsilon2 * np.array([0.25, -0.25])).tolist()
    negated = Comparison(oracle, copies=enough).negated
    for cut in cuts:
        yield Comparison(oracle, copies=copies or enough, cut=cut, negated=negated)
