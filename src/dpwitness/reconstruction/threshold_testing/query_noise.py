"""The adaptive attack with query noise: the share of ⊤'s among copies of each query removes the noise (Theorem 3.5).

With finite ε₂ each copy of a query of value q is ⊤ with probability F(ε₂(q − z)), independently; F is the distribution
function of Lap(1). A query counts as reaching the noisy threshold z where more than a share `cut` of its copies are ⊤.
The majority, a cut at 1/2, fails for a query that nearly equals z. Two cuts amount to thresholds half a count apart;
queries are whole numbers, so one of these thresholds is at least a quarter of a count from all queries.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from dpwitness.errors import InvalidParameter
from dpwitness.exact import laplace_cdf
from dpwitness.reconstruction.threshold_testing.comparison import Comparison
from dpwitness.reconstruction.threshold_testing.oracle import Queries
from dpwitness.reconstruction.threshold_testing.theory import MOST_COPIES

#: The ε₂ (nats) from which on cuts at 1/4 and 3/4 suffice: F falls from 1/2 to 1/4 within a quarter of a count, so no
#: query is ⊤ with a probability between 1/8 and 1/2, or no query with one between 1/2 and 7/8.
QUARTER_CUTS_EPSILON: Final = 4 * float(np.log(2))
#: The number of copies with which a probability of ⊤ that differs by 1/8 from a cut lies 6 standard errors from it.
QUARTER_CUTS_COPIES: Final = 576


def majority_comparisons(oracle: Queries, copies: int | None = None) -> Iterator[Comparison]:
    """Two comparisons with different cuts, at least one of which is free of query noise.

    `copies`: the number of copies of each query; by default whole numbers are 6 standard errors from a cut. Raises
    `InvalidParameter` where this takes more than 10^12 copies.
    """
    epsilon2, enough, cuts = oracle.noise.epsilon2, QUARTER_CUTS_COPIES, [0.25, 0.75]
    if epsilon2 < QUARTER_CUTS_EPSILON:
        # Within a count of z, F rises by at least ε₂ exp(−ε₂)/2 a count, and by a quarter of that in a quarter count.
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
